//! Reach of sums over pairs that end at a distance, and their periodic boxes.

use crate::functional::{Functional, Source, Stretches, Term};
use crate::graph::op::{Binary, Unary};
use crate::graph::{Expression, Graph, Input, Node};
use std::f64::consts::PI;
use std::sync::Arc;

/// Most rows of a term that are kept for its cut-offs.
const MOST_ROWS: usize = 16;

/// A distance with which a term compares, by any formula: `norm(d) < rc`, `dot(d, d)/rc^2 < 1`,
/// `max(0, rc - norm(d))`.
pub struct Distance {
    /// Components of what is apart.
    pub apart: Vec<Node>,
    /// The distance, and the lengths of the periodic box along each axis, if these are nearest
    /// images.
    numbers: Vec<Node>,
}

/// A term with the distances with which it compares, and some of its rows.
pub struct Cutoff {
    /// The term; its graph has the nodes of the distances too.
    pub term: Term,
    /// The distances.
    pub distances: Vec<Distance>,
}

impl Cutoff {
    /// Distances with which a term compares; `None` if there are none.
    pub fn of(term: &Term) -> Option<Cutoff> {
        let mut graph = term.graph.clone();
        let nodes = graph.reachable(&term.roots);
        let mut moves = vec![false; graph.len()];
        for &node in &nodes {
            moves[node.index()] = match graph.expression(node) {
                Expression::Input(Input::Slot(k)) => term.slots[k as usize] == Source::State,
                Expression::Input(input) => input == Input::Time,
                e => e.arguments().any(|a| moves[a.index()]),
            };
        }
        let mut distances: Vec<Distance> = Vec::new();
        for node in nodes {
            let Expression::Binary(
                Binary::Less | Binary::LessEqual | Binary::Min | Binary::Max,
                a,
                b,
            ) = graph.expression(node)
            else {
                continue;
            };
            let [a_moves, b_moves] = [a, b].map(|side| moves[side.index()]);
            let found = match (a_moves, b_moves) {
                (true, false) => isolated(&mut graph, &moves, a, b),
                (false, true) => isolated(&mut graph, &moves, b, a),
                _ => None,
            };
            let Some((apart, reach)) = found else { continue };
            let stands = |length: &Node| !moves.get(length.index()).is_some_and(|&moves| moves);
            let lengths: Vec<Node> = apart
                .iter()
                .filter_map(|&part| length_of_box(&mut graph, part).filter(stands))
                .collect();
            let numbers = std::iter::once(reach).chain(lengths).collect();
            distances.push(Distance { apart, numbers });
        }
        if distances.is_empty() {
            return None;
        }
        let (rows, mut table, mut numbers) =
            (term.rows(), Stretches::new(term.slots.len() + 1), Vec::new());
        for k in 0..rows.min(MOST_ROWS) {
            let mut row: Vec<u32> = term.row(k * rows / rows.min(MOST_ROWS)).iter().collect();
            for (entry, source) in row.iter_mut().zip(&term.slots) {
                if *source == Source::Number {
                    numbers.push(term.numbers[*entry as usize]);
                    *entry = numbers.len() as u32 - 1;
                }
            }
            table.push(&row);
        }
        let (roots, slots) = (term.roots.clone(), term.slots.clone());
        let term = Term { graph, roots, slots, table, numbers, pairs: None, spans: Arc::default() };
        Some(Cutoff { term, distances })
    }

    /// Distance and lengths of the box of a row, as a formula.
    pub fn numbers(&self, distance: &Distance, row: usize) -> Functional {
        formulas(&self.term, &distance.numbers, row)
    }
}

/// Components of a moving distance and the value that it is compared with, of a formula of a
/// distance that is compared with `bound`, which stands still.
fn isolated(
    g: &mut Graph,
    moves: &[bool],
    formula: Node,
    bound: Node,
) -> Option<(Vec<Node>, Node)> {
    let (mut node, mut bound) = (formula, bound);
    let is_moving = |node: Node| moves[node.index()];
    loop {
        if let Some(parts) = squares(g, &is_moving, node) {
            return Some((parts, g.sqrt(bound)));
        }
        (node, bound) = match g.expression(node) {
            Expression::Unary(Unary::Abs, a) => return Some((vec![a], bound)),
            Expression::Unary(Unary::Sqrt, a) => (a, g.mul(bound, bound)),
            Expression::Unary(Unary::Neg, a) => (a, g.neg(bound)),
            Expression::Binary(op, a, b) if is_moving(a) != is_moving(b) => {
                match (op, is_moving(a)) {
                    (Binary::Add, true) => (a, g.sub(bound, b)),
                    (Binary::Add, false) => (b, g.sub(bound, a)),
                    (Binary::Sub, true) => (a, g.add(bound, b)),
                    (Binary::Sub, false) => (b, g.sub(a, bound)),
                    (Binary::Mul, true) => (a, g.div(bound, b)),
                    (Binary::Mul, false) => (b, g.div(bound, a)),
                    (Binary::Div, true) => (a, g.mul(bound, b)),
                    (Binary::Div, false) => (b, g.div(a, bound)),
                    (Binary::Pow, true) => {
                        let one = g.one();
                        let inverse = g.div(one, b);
                        (a, g.pow(bound, inverse))
                    }
                    _ => return None,
                }
            }
            Expression::Binary(Binary::Mul, a, b) if a == b => (a, g.sqrt(bound)),
            _ => return None,
        };
    }
}

/// Terms of a sum of squares that move; `None` for any other node, and for the square of a length.
fn squares(g: &Graph, is_moving: &dyn Fn(Node) -> bool, node: Node) -> Option<Vec<Node>> {
    match g.expression(node) {
        Expression::Binary(Binary::Add, a, b) => {
            Some([squares(g, is_moving, a)?, squares(g, is_moving, b)?].concat())
        }
        Expression::Binary(Binary::Mul, a, b) if a == b && is_moving(a) => {
            let is_length =
                matches!(g.expression(a), Expression::Unary(Unary::Sqrt | Unary::Abs, _));
            let is_shared =
                matches!(g.expression(a), Expression::Binary(Binary::Mul, x, y) if x == y);
            (!is_length && !is_shared).then(|| vec![a])
        }
        _ => None,
    }
}

/// Length L of the box in d − L·round(d/L).
fn length_of_box(g: &mut Graph, part: Node) -> Option<Node> {
    let Expression::Binary(Binary::Sub, _, away) = g.expression(part) else { return None };
    let is_round =
        |g: &Graph, node: Node| matches!(g.expression(node), Expression::Unary(Unary::Round, _));
    match g.expression(away) {
        Expression::Unary(Unary::Round, _) => Some(g.one()),
        Expression::Binary(Binary::Mul, a, b) if is_round(g, b) => Some(a),
        Expression::Binary(Binary::Mul, a, b) if is_round(g, a) => Some(b),
        _ => None,
    }
}

/// Distance at which a sum over near pairs ends, followed by the lengths of its periodic box along
/// each axis, if it has one. Both are alike for all pairs and read nothing that moves.
pub(super) fn of(term: &Term) -> Option<Functional> {
    let pairs = term.pairs.as_deref()?;
    let nodes: Vec<Node> =
        std::iter::once(pairs.reach).chain(pairs.lengths.iter().copied()).collect();
    Some(formulas(term, &nodes, 0))
}

/// Nodes of a term as formulas of one row that read nothing that moves.
fn formulas(term: &Term, nodes: &[Node], row: usize) -> Functional {
    let (mut graph, mut kept) = (Graph::new(), Vec::new());
    let roots = graph.instantiate(&term.graph, nodes, |g, input| match input {
        Input::Slot(k) => {
            let place = kept.iter().position(|&slot| slot == k).unwrap_or(kept.len());
            if place == kept.len() {
                kept.push(k);
            }
            g.input(Input::Slot(place as u32))
        }
        other => g.input(other),
    });
    let (slots, row) = (kept.iter().map(|&k| term.slots[k as usize]).collect(), term.row(row));
    let row: Vec<u32> = kept.iter().map(|&k| row.at(k as usize)).chain([0]).collect();
    let mut table = Stretches::new(row.len());
    table.push(&row);
    let numbers = term.numbers.clone();
    let only = Term { graph, roots, slots, table, numbers, pairs: None, spans: Arc::default() };
    Functional { outputs: nodes.len(), terms: vec![only] }
}

/// Share of the pairs within reach if bodies fill a periodic box; `None` unless it has one to three
/// dimensions.
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
        lengths
            .iter()
            .map(|length| length.abs())
            .find(is_short)
            .map(|length| ShortBox { reach, length })
    }
}
