//! Elimination of many linear systems of one pattern as a row program: each system is a row.

use crate::functional::{Source, Stretches};
use crate::graph::linear::{Factors, Matrix};
use crate::graph::{Graph, Input, Node};
use crate::rows::{Piece, RowTable};

/// Linear systems with the same pattern of entries. All numbers of system k are k places after
/// those of the first.
pub struct Alike<'a> {
    /// Number of systems.
    pub count: usize,
    /// (row, column) of the entries of one system, with the places of the first system's values.
    pub entries: &'a [((u32, u32), u32)],
    /// Places of the first system's right-hand sides, in the order of its rows.
    pub right: &'a [u32],
    /// Order of elimination in which no pivot vanishes.
    pub order: &'a [u32],
}

impl Alike<'_> {
    /// Piece that solves them without pivoting. The solutions are outputs in the order of the
    /// right-hand sides, row after row; the inverses of the pivots follow all of them.
    pub fn elimination(&self) -> Option<Piece> {
        let (n, read) = (self.order.len(), self.entries.len());
        let mut g = Graph::new();
        let mut slot = |k: usize| g.input(Input::Slot(k as u32));
        let values: Vec<Node> = (0..read).map(&mut slot).collect();
        let right: Vec<Node> = self.order.iter().map(|&row| slot(read + row as usize)).collect();
        let mut position = vec![0; n];
        self.order.iter().enumerate().for_each(|(new, &old)| position[old as usize] = new);
        let mut matrix = Matrix::zeros(&mut g, n);
        for (&((i, j), _), &value) in self.entries.iter().zip(&values) {
            matrix.set(position[i as usize], position[j as usize], value);
        }
        let factors = Factors::general(&mut g, &matrix);
        let solution = factors.solve(&mut g, &right);
        let outputs = [&solution[..], factors.inverse_pivots()].concat();
        let places = |k: u32| k * self.count as u32;
        let targets = self.order.iter().copied().chain(n as u32..2 * n as u32).map(places);
        let first = self
            .entries
            .iter()
            .map(|&(_, place)| place)
            .chain(self.right.iter().copied())
            .chain(targets);
        let width = read + n + outputs.len();
        let mut rows = Stretches::new(width);
        rows.push_stretch(first, std::iter::repeat_n(1, width), self.count);
        let slots = vec![Source::State; read + n];
        Piece::new(&RowTable { slots: &slots, rows, numbers: &[] }, &g, outputs, None)
    }
}
