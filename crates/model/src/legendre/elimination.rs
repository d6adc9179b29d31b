//! Elimination of a mass matrix, sparse, as formulas and as numbers at once: ½ zᵀM⁻¹z by pivots on
//! the diagonal, or in pairs where the diagonal has none.

use crate::graph::{Graph, Node};
use std::collections::{BTreeMap, BTreeSet};

/// Share of the scaled mass matrix below which a number is a rounding error: of a matrix that is
/// regular in units of its own diagonal the pivots are far larger.
pub(super) const SINGULAR: f64 = 1e-10;
/// Share of the largest number of its row that a pivot has at least. Those of a positive definite
/// matrix always find one of which this holds.
const DOMINANT: f64 = 1e-3;

/// Entry of the mass matrix.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) node: Node,
    /// Its value at the start.
    pub(super) value: f64,
    /// True if it moves along the motion.
    pub(super) moves: bool,
}

/// Result of an elimination.
pub(super) struct Eliminated {
    /// ½ zᵀM⁻¹z of the velocities with pivots.
    pub(super) kinetic: Node,
    /// z of every velocity, less what those with pivots determine.
    pub(super) z: Vec<Node>,
    /// Velocities without a pivot.
    pub(super) without: Vec<usize>,
    /// What is left of the mass matrix: formulas that vanish, each with its row and column.
    pub(super) left: Vec<(Node, [usize; 2])>,
    /// Determinants of the pivots with their rows and columns.
    pub(super) pivots: Vec<(Node, Vec<usize>)>,
}

/// Unit of each velocity in which the diagonal of a mass matrix is 1, given by its entries (row,
/// column, value), where the diagonal is not 0.
pub(super) fn units(size: usize, entries: &[(usize, usize, f64)]) -> Vec<f64> {
    let mut units = vec![0.0; size];
    for &(i, j, value) in entries {
        if i == j {
            units[i] = value.abs().sqrt();
        }
    }
    let diagonal = units.clone();
    for &(i, j, value) in entries {
        for (k, other) in [(i, j), (j, i)] {
            if diagonal[k] == 0.0 {
                let unit = if diagonal[other] > 0.0 { diagonal[other] } else { 1.0 };
                units[k] = units[k].max(value.abs() / unit);
            }
        }
    }
    units.iter().map(|&unit| if unit > 0.0 { unit } else { 1.0 }).collect()
}

#[derive(Clone, Copy)]
enum Pivot {
    One(usize),
    Two(usize, usize),
}

/// An elimination under way.
pub(super) struct Elimination<'g> {
    g: &'g mut Graph,
    /// What is left of the matrix, by rows; both of a pair of equal entries are kept.
    rows: Vec<BTreeMap<usize, Entry>>,
    z: Vec<Node>,
    units: Vec<f64>,
    left: BTreeSet<usize>,
    /// Sums of squares by their pivots.
    squares: Vec<(Node, Node)>,
    /// The terms of ½ zᵀM⁻¹z that pairs give.
    kinetic: Node,
    pivots: Vec<(Node, Vec<usize>)>,
}

impl<'g> Elimination<'g> {
    /// Begins with z and the entries of M, each pair of equal ones once.
    pub(super) fn new(
        g: &'g mut Graph,
        z: Vec<Node>,
        entries: &[(usize, usize, Entry)],
    ) -> Elimination<'g> {
        let numbers: Vec<_> = entries.iter().map(|&(i, j, e)| (i, j, e.value)).collect();
        let mut rows = vec![BTreeMap::new(); z.len()];
        for &(i, j, entry) in entries {
            rows[i].insert(j, entry);
            rows[j].insert(i, entry);
        }
        Elimination {
            units: units(z.len(), &numbers),
            left: (0..z.len()).collect(),
            kinetic: g.zero(),
            squares: Vec::new(),
            pivots: Vec::new(),
            g,
            rows,
            z,
        }
    }

    /// Eliminates all velocities that have a pivot; `None` if this takes more than `most` nodes.
    pub(super) fn run(mut self, most: usize) -> Option<Eliminated> {
        while let Some(pivot) = self.pivot() {
            match pivot {
                Pivot::One(i) => self.eliminate(i),
                Pivot::Two(i, j) => self.eliminate_pair(i, j),
            }
            if self.g.len() > most {
                return None;
            }
        }
        let two = self.g.constant(2.0);
        let mut kinetic = self.kinetic;
        for &(pivot, squares) in &self.squares {
            let double = self.g.mul(two, pivot);
            let ratio = self.g.div(squares, double);
            kinetic = self.g.add(kinetic, ratio);
        }
        let Elimination { z, rows, pivots, .. } = self;
        let without: Vec<usize> = self.left.into_iter().collect();
        let of_row = |&i: &usize| {
            let lower = rows[i].range(..=i);
            lower.map(move |(&j, entry)| (entry.node, [i, j])).collect::<Vec<_>>()
        };
        let left = without.iter().flat_map(of_row).collect();
        Some(Eliminated { kinetic, z, without, left, pivots })
    }

    fn size(&self, i: usize, j: usize) -> f64 {
        let value = self.rows[i].get(&j).map_or(0.0, |entry| entry.value);
        value.abs() / (self.units[i] * self.units[j])
    }

    /// The next pivot: one that does not move if there is such, and with few neighbours.
    fn pivot(&self) -> Option<Pivot> {
        let largest =
            |i: usize| self.rows[i].keys().fold(0.0f64, |most, &j| most.max(self.size(i, j)));
        let suits = |&&i: &&usize| {
            let size = self.size(i, i);
            size > SINGULAR && size >= DOMINANT * largest(i)
        };
        let order = |&&i: &&usize| (self.rows[i][&i].moves, self.rows[i].len(), i);
        if let Some(&i) = self.left.iter().filter(suits).min_by_key(order) {
            return Some(Pivot::One(i));
        }
        let pairs = self
            .left
            .iter()
            .flat_map(|&i| self.rows[i].range(i + 1..).map(move |(&j, _)| (self.size(i, j), i, j)));
        let (size, i, j) = pairs.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (size > SINGULAR).then_some(Pivot::Two(i, j))
    }

    /// Takes row `i` out of the matrix: its entries beside the diagonal.
    fn take(&mut self, i: usize) -> Vec<(usize, Entry)> {
        self.left.remove(&i);
        let row = std::mem::take(&mut self.rows[i]);
        for &j in row.keys().filter(|&&j| j != i) {
            self.rows[j].remove(&i);
        }
        row.into_iter().filter(|&(j, _)| j != i).collect()
    }

    /// Subtracts a b from entry (i, j).
    fn subtract(&mut self, (i, j): (usize, usize), a: Entry, b: Entry) {
        let zero = Entry { node: self.g.zero(), value: 0.0, moves: false };
        let old = self.rows[i].get(&j).copied().unwrap_or(zero);
        let entry = less(self.g, old, a, b);
        for (i, j) in [(i, j), (j, i)] {
            match self.g.is_zero(entry.node) {
                true => self.rows[i].remove(&j),
                false => self.rows[i].insert(j, entry),
            };
        }
    }

    fn eliminate(&mut self, i: usize) {
        let pivot = self.rows[i][&i];
        let row = self.take(i);
        self.pivots.push((pivot.node, vec![i; 2]));
        let own = self.z[i];
        let square = self.g.mul(own, own);
        match self.squares.iter().position(|&(known, _)| known == pivot.node) {
            Some(k) => self.squares[k].1 = self.g.add(self.squares[k].1, square),
            None => self.squares.push((pivot.node, square)),
        }
        let mut factors = Vec::with_capacity(row.len());
        for &(j, entry) in &row {
            let factor = over(self.g, entry, pivot);
            let product = self.g.mul(factor.node, own);
            self.z[j] = self.g.sub(self.z[j], product);
            factors.push(factor);
        }
        for (k, &(j, _)) in row.iter().enumerate() {
            for &(l, entry) in &row[..=k] {
                self.subtract((j, l), factors[k], entry);
            }
        }
    }

    /// Adds ½ (u, w) B⁻¹ (u, w) = (u w − ½ (c/b u² + a/b w²))/d of a block B = (a b; b c).
    fn add_pair(&mut self, [u, w]: [Node; 2], [a, c]: [Entry; 2], d: Entry) {
        let g = &mut *self.g;
        let squares = [(c, u), (a, w)].map(|(factor, z)| {
            let square = g.mul(z, z);
            g.mul(factor.node, square)
        });
        let squares = g.add(squares[0], squares[1]);
        let half = g.constant(0.5);
        let (both, squares) = (g.mul(u, w), g.mul(half, squares));
        let difference = g.sub(both, squares);
        let ratio = g.div(difference, d.node);
        self.kinetic = g.add(self.kinetic, ratio);
    }

    /// Eliminates two velocities by the entry b that couples them: their block (a b; b c) has
    /// diagonal entries that are small beside it.
    fn eliminate_pair(&mut self, i: usize, j: usize) {
        let zero = Entry { node: self.g.zero(), value: 0.0, moves: false };
        let of = |i: usize, j: usize| self.rows[i].get(&j).copied().unwrap_or(zero);
        let (a, b, c) = (of(i, i), of(i, j), of(j, j));
        let rows = [i, j].map(|k| self.take(k).into_iter().collect::<BTreeMap<usize, Entry>>());
        // B (x, y) = (u, w) by x = (w − r u)/d and y = (u − a x)/b.
        let r = over(self.g, c, b);
        let d = less(self.g, b, a, r);
        self.pivots.extend([(b.node, vec![i, j]), (d.node, vec![i, j])]);
        let solved = |g: &mut Graph, [u, w]: [Entry; 2]| {
            let right = less(g, w, r, u);
            let x = over(g, right, d);
            let right = less(g, u, a, x);
            [x, over(g, right, b)]
        };
        let own = [self.z[i], self.z[j]];
        let s = over(self.g, a, b);
        self.add_pair(own, [s, r], d);
        let columns: BTreeSet<usize> =
            rows.iter().flat_map(|row| row.keys().copied()).filter(|&k| k != j).collect();
        let columns: Vec<usize> = columns.into_iter().collect();
        let at = |k: usize| [0, 1].map(|of: usize| rows[of].get(&k).copied().unwrap_or(zero));
        for (place, &k) in columns.iter().enumerate() {
            let factors = solved(self.g, at(k));
            for (factor, own) in factors.into_iter().zip(own) {
                let product = self.g.mul(factor.node, own);
                self.z[k] = self.g.sub(self.z[k], product);
            }
            for &l in &columns[..=place] {
                for (factor, entry) in factors.into_iter().zip(at(l)) {
                    self.subtract((k, l), factor, entry);
                }
            }
        }
    }
}

/// a − b c
fn less(g: &mut Graph, a: Entry, b: Entry, c: Entry) -> Entry {
    let product = g.mul(b.node, c.node);
    let moves = a.moves || b.moves || c.moves;
    Entry { node: g.sub(a.node, product), value: a.value - b.value * c.value, moves }
}

/// a/b
fn over(g: &mut Graph, a: Entry, b: Entry) -> Entry {
    Entry { node: g.div(a.node, b.node), value: a.value / b.value, moves: a.moves || b.moves }
}
