//! Rows that stand one behind the other in all that they read: a loop runs over the arrays as they are.

use super::{BLOCK, Piece, Places};
use crate::functional::Source;
use crate::graph::interpret::RowPlace;
use crate::graph::tape::Tape;
use crate::graph::{Expression, Graph, Input};

/// How the rows of a piece stand in arrays.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Where the first row reads the slots that differ from row to row; the next row follows. The table is that of the
    /// parameters or of the piece's numbers, as the slots say.
    pub moving: Vec<RowPlace>,
    /// What the table is.
    pub table: Source,
    /// The components of the state that all rows read.
    pub still: Vec<u32>,
    /// The parameters that all rows read.
    pub parameters: Vec<u32>,
    /// The first row's place of every output, if those of the next row follow.
    pub outputs: Option<Vec<u32>>,
    /// For every slot whether it moves, and its number among those that do or do not.
    slots: Vec<(bool, usize)>,
}

impl Line {
    /// That of a piece, if its rows stand in one.
    pub fn of(piece: &Piece) -> Option<Line> {
        // Sums are made by whole blocks.
        let (_, whole) = piece.blocks.split_last()?;
        if whole.iter().any(|&rows| rows as usize != BLOCK) {
            return None;
        }
        let mut line = Line {
            moving: Vec::new(),
            table: Source::Parameter,
            still: Vec::new(),
            parameters: Vec::new(),
            outputs: None,
            slots: Vec::new(),
        };
        let mut tables: Vec<Source> = piece.slots.iter().map(|&(_, source)| source).collect();
        tables.retain(|&source| source != Source::State);
        tables.dedup();
        match tables[..] {
            [] => {}
            [table] => line.table = table,
            _ => return None,
        }
        for (k, &(_, source)) in piece.slots.iter().enumerate() {
            let (first, step) = even(piece, k)?;
            match (source, step) {
                (Source::State, 0) if piece.rows > 1 => {
                    line.slots.push((false, line.still.len()));
                    line.still.push(first);
                    continue;
                }
                (Source::State, 0 | 1) => line.moving.push(RowPlace::State(first)),
                (_, 1) => line.moving.push(RowPlace::Table(first)),
                _ => return None,
            }
            line.slots.push((true, line.moving.len() - 1));
        }
        let follows = |(first, step): (u32, i64)| (step == 1 || piece.rows == 1).then_some(first);
        let outputs = piece.slots.len()..piece.slots.len() + piece.outputs.len();
        line.outputs = outputs.map(|k| even(piece, k).and_then(follows)).collect();
        for node in piece.graph.reachable(&piece.outputs) {
            if let Expression::Input(Input::Parameter(k)) = piece.graph.expression(node) {
                line.parameters.push(k);
            }
        }
        Some(line)
    }

    /// The formulas as code over the rows: its states are the slots that move, its parameters those that all rows read and
    /// then the components of the state that they do.
    pub fn tape(&self, piece: &Piece) -> Tape {
        let mut g = Graph::new();
        let parameters = self.parameters.len();
        let outputs = g.instantiate(&piece.graph, &piece.outputs, |g, input| match input {
            Input::Slot(slot) => match self.slots[piece.slots.partition_point(|&(s, _)| s < slot)] {
                (true, k) => g.state(k),
                (false, k) => g.parameter(parameters + k),
            },
            Input::Parameter(p) => {
                g.parameter(self.parameters.iter().position(|&known| known == p).expect("all that occur are known"))
            }
            other => g.input(other),
        });
        Tape::new(&g, &outputs, self.moving.len(), parameters + self.still.len())
    }
}

/// The first entry of slot or output `k` and the step to the next row, if it is the same everywhere; 0 of a single row.
fn even(piece: &Piece, k: usize) -> Option<(u32, i64)> {
    let width = piece.slots.len() + piece.outputs.len();
    let (mut row, mut known) = (0, None);
    for (places, &rows) in piece.places.chunks_exact(width).zip(&piece.blocks) {
        let Places::Even { first, step } = places[k] else { return None };
        let (start, stride) = *known.get_or_insert((first, i64::from(step)));
        // A block of one row has no step.
        if i64::from(first) != i64::from(start) + stride * row || (rows > 1 && i64::from(step) != stride) {
            return None;
        }
        row += i64::from(rows);
    }
    known
}
