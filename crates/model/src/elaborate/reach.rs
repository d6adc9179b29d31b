//! Reach of sums over pairs that end at a distance, and their periodic boxes.

use crate::functional::{Functional, Stretches, Term};
use crate::graph::{Graph, Input, Node};
use std::f64::consts::PI;

/// Distance at which a sum over pairs ends, followed by the lengths of its periodic box along each axis, if it has one.
/// Both are alike for all pairs and read nothing that moves.
pub(super) fn of(term: &Term) -> Option<Functional> {
    let pairs = term.pairs.as_deref()?;
    let nodes: Vec<Node> = std::iter::once(pairs.reach).chain(pairs.lengths.iter().copied()).collect();
    let (mut graph, mut kept) = (Graph::new(), Vec::new());
    let roots = graph.instantiate(&term.graph, &nodes, |g, input| match input {
        Input::Slot(k) => {
            let place = kept.iter().position(|&slot| slot == k).unwrap_or(kept.len());
            if place == kept.len() {
                kept.push(k);
            }
            g.input(Input::Slot(place as u32))
        }
        other => g.input(other),
    });
    let (slots, first) = (kept.iter().map(|&k| term.slots[k as usize]).collect(), term.row(0));
    let row: Vec<u32> = kept.iter().map(|&k| first.at(k as usize)).chain([0]).collect();
    let mut table = Stretches::new(row.len());
    table.push(&row);
    let only = Term { graph, roots, slots, table, numbers: term.numbers.clone(), pairs: None };
    Some(Functional { outputs: nodes.len(), terms: vec![only] })
}

/// Share of the pairs within reach if bodies fill a periodic box; `None` unless it has one to three dimensions.
pub(super) fn share(numbers: &[f64]) -> Option<f64> {
    const BALLS: [f64; 3] = [2.0, PI, 4.0 * PI / 3.0];
    let (&reach, lengths) = numbers.split_first()?;
    let ball = BALLS.get(lengths.len().checked_sub(1)?)?;
    Some(lengths.iter().fold(*ball, |share, length| share * (reach / length).abs()))
}

/// A periodic box that is too short for the distance at which a sum ends.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("the cut-off {reach} is more than half of the periodic box of length {length}")]
pub struct ShortBox {
    /// The distance.
    pub reach: f64,
    /// The length.
    pub length: f64,
}

impl ShortBox {
    /// First length that is too short. `numbers` holds the distance, followed by the lengths.
    pub(crate) fn among(numbers: &[f64]) -> Option<ShortBox> {
        let (&reach, lengths) = numbers.split_first()?;
        // Tolerance for the roundings of a length that is twice the distance by its formula.
        let is_short = |length: &f64| reach > length / 2.0 * (1.0 + 1e-12);
        lengths.iter().map(|length| length.abs()).find(is_short).map(|length| ShortBox { reach, length })
    }
}
