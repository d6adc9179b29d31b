//! Lines: rows at consecutive places in all that they read, so that a loop runs over the arrays in
//! place.

use super::{BLOCK, Piece, Places};
use crate::functional::Source;
use crate::graph::interpret::RowPlace;

/// Places of the rows of a piece in arrays.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Place at which the first row reads every slot. The contents of the table are given by
    /// `table`.
    pub slots: Vec<RowPlace>,
    /// Contents of the table.
    pub table: Source,
    /// Place of every output of the first row, if those of the next row follow.
    pub outputs: Option<Vec<u32>>,
}

impl Line {
    /// Line of a piece, if its rows form one.
    pub fn of(piece: &Piece) -> Option<Line> {
        // Sums are made by whole blocks.
        let whole = piece.blocks.len().checked_sub(1)?;
        if piece.blocks.within(0..whole).any(|block| block.rows as usize != BLOCK) {
            return None;
        }
        let mut tables: Vec<Source> = piece.slots.iter().map(|&(_, source)| source).collect();
        tables.retain(|&source| source != Source::State);
        tables.dedup();
        let table = match tables[..] {
            [] => Source::Parameter,
            [table] => table,
            _ => return None,
        };
        let place = |(k, &(_, source)): (usize, &(u32, Source))| match (source, even(piece, k)?) {
            (Source::State, (place, 0)) if piece.rows > 1 => Some(RowPlace::Still(place)),
            (Source::State, (first, 0 | 1)) => Some(RowPlace::State(first)),
            (_, (first, 1)) => Some(RowPlace::Table(first)),
            _ => None,
        };
        let slots = piece.slots.iter().enumerate().map(place).collect::<Option<_>>()?;
        let follows = |(first, step): (u32, i64)| (step == 1 || piece.rows == 1).then_some(first);
        let outputs = piece.slots.len()..piece.slots.len() + piece.outputs.len();
        Some(Line {
            slots,
            table,
            outputs: outputs.map(|k| even(piece, k).and_then(follows)).collect(),
        })
    }
}

/// First entry of slot or output `k`, and step to the next row if it is the same everywhere; 0 for
/// a single row.
fn even(piece: &Piece, k: usize) -> Option<(u32, i64)> {
    let (mut row, mut known) = (0, None);
    for block in piece.blocks.iter() {
        let (rows, Places::Even { first, step }) = (block.rows, block.place(k)) else {
            return None;
        };
        let (start, stride) = *known.get_or_insert((first, i64::from(step)));
        // A block of one row has no step.
        if i64::from(first) != i64::from(start) + stride * row
            || (rows > 1 && i64::from(step) != stride)
        {
            return None;
        }
        row += i64::from(rows);
    }
    known
}
