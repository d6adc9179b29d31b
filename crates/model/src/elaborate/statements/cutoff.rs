//! Checks of sums over pairs that end at a distance: boxes too small for it, and terms that do not
//! go to zero there.
//!
//! A distance with which a term compares is a cut-off if the term is the same wherever beyond it
//! the pair is. That is tried, so that all formulas of a cut-off are judged alike.

use crate::elaborate::reach::{Cutoff, Distance, ShortBox};
use crate::functional::{Functional, Source, Term};
use crate::graph::interpret::{Interpreter, Kernel, Program};
use crate::graph::tape::Tape;
use crate::graph::{Graph, Input, Node};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use rustc_hash::FxHashMap;

/// Tolerance for terms and forces at the edge, relative to the largest at half of the distance and
/// beyond.
const ZERO: f64 = 1e-3;

/// Distance of the last sample from the edge, relative to the reach.
const EDGE: f64 = 1e-6;

/// Number of steps from half of the reach to the edge, at which terms are evaluated.
const LOOKS: usize = 20;

/// Distances beyond the reach, relative to it, at which a term is evaluated.
const BEYOND: [f64; 3] = [1.0 + EDGE, 1.5, 7.0];

/// Direction of a pair: along no axis and no diagonal.
const DIRECTION: [f64; 3] = [0.64, 0.6, 0.48];

/// Distance at which a sum ends and the lengths of its box, as a formula, and the finding about it
/// at an initial state, if any; `None` if the sum does not end at a distance. `moves` is true if
/// the sum moves the state, false if it is recorded.
pub(super) fn judged(
    cutoff: &Cutoff,
    span: Span,
    moves: bool,
    x: &[f64],
    parameters: &[f64],
) -> Option<(Functional, Option<Diagnostic>)> {
    let mut farthest: Option<(Functional, Vec<f64>, [[f64; 2]; 2])> = None;
    for distance in &cutoff.distances {
        let Some(mut pair) = Pair::new(&cutoff.term, distance) else { continue };
        for row in 0..cutoff.term.rows() {
            let formula = cutoff.numbers(distance, row);
            let numbers = formula.evaluate(0.0, x, parameters);
            if farthest.as_ref().is_none_or(|(_, others, _)| numbers[0] > others[0]) {
                pair.bind(&cutoff.term, row, x, parameters);
                farthest =
                    pair.looks(numbers[0]).map(|looks| (formula, numbers, looks)).or(farthest);
            }
        }
    }
    let (formula, numbers, [largest, last]) = farthest?;
    if let Some(short) = ShortBox::among(&numbers) {
        let finding =
            Diagnostic::error(short.to_string(), span, "these would miss images of their partners");
        return Some((formula, Some(finding.help("take a larger box or a shorter cut-off"))));
    }
    let jumps = |k: usize| last[k] > ZERO * largest[k];
    let jump = match (jumps(0), jumps(1)) {
        (true, _) => Some(("the terms do", "the energy jumps whenever a pair crosses it")),
        (false, true) => Some(("the forces do", "the forces jump there, and the energy drifts")),
        _ => None,
    };
    let finding = jump.filter(|_| moves).map(|(what, then)| {
        let message = format!("{what} not go to zero at the cut-off: {then}");
        Diagnostic::warning(message, span, "ends abruptly")
            .help("multiply it by `switched` of \"molecules.holo\", which fades it out")
    });
    Some((formula, finding))
}

/// A pair whose distance can be chosen.
struct Pair {
    program: Program,
    /// Values of the slots, followed by the components of the distance.
    slots: Vec<f64>,
    /// Number of the term's components, which the derivatives follow.
    roots: usize,
    dimension: usize,
}

impl Pair {
    /// A pair of a term; `None` in a space of too many dimensions.
    fn new(term: &Term, distance: &Distance) -> Option<Pair> {
        let dimension = distance.apart.len();
        if dimension > DIRECTION.len() {
            return None;
        }
        let first = term.slots.len() as u32;
        let mut graph = term.graph.clone();
        let chosen: FxHashMap<Node, Node> = (first..)
            .zip(&distance.apart)
            .map(|(k, &part)| (part, graph.input(Input::Slot(k))))
            .collect();
        let mut nodes = graph.substituted(&term.roots, &chosen);
        for root in 0..nodes.len() {
            let slopes =
                graph.adjoint(nodes[root], |input| matches!(input, Input::Slot(k) if k >= first));
            nodes.extend(slopes.into_iter().map(|(_, slope)| slope));
        }
        let mut g = Graph::new();
        let outputs = g.instantiate(&graph, &nodes, |g, input| match input {
            Input::Slot(k) => g.state(k as usize),
            other => g.input(other),
        });
        let slots = vec![0.0; term.slots.len() + dimension];
        let program = Interpreter.program(&Tape::new(&g, &outputs, slots.len(), 0));
        Some(Pair { program, slots, roots: term.roots.len(), dimension })
    }

    /// Reads the numbers of a row.
    fn bind(&mut self, term: &Term, row: usize, x: &[f64], parameters: &[f64]) {
        let row = term.row(row);
        for (k, source) in term.slots.iter().enumerate() {
            let at = row.at(k) as usize;
            self.slots[k] = match source {
                Source::State => x[at],
                Source::Parameter => parameters[at],
                Source::Number => term.numbers[at],
            };
        }
    }

    /// Components of the term at a distance, followed by their derivatives.
    fn at(&mut self, distance: f64) -> Vec<f64> {
        let size = DIRECTION[..self.dimension].iter().map(|d| d * d).sum::<f64>().sqrt();
        let first = self.slots.len() - self.dimension;
        for (slot, d) in self.slots[first..].iter_mut().zip(DIRECTION) {
            *slot = distance * d / size;
        }
        let mut values = vec![0.0; self.program.outputs()];
        let work = &mut vec![0.0; self.program.work_len()];
        self.program.run(&self.program.bind(&[]), &[0.0], &self.slots, &mut values, work);
        values
    }

    /// Sizes of the terms and of their derivatives, beside those beyond the reach: the largest from
    /// half of the reach on, and the last ones before its end. `None` if the terms do not end
    /// there, or have no values.
    fn looks(&mut self, reach: f64) -> Option<[[f64; 2]; 2]> {
        if !(reach > 0.0 && reach.is_finite()) {
            return None;
        }
        let [beyond, rest @ ..] = BEYOND.map(|part| self.at(reach * part));
        if !beyond.iter().all(|v| v.is_finite()) || rest.iter().any(|values| *values != beyond) {
            return None;
        }
        let (mut largest, mut last) = ([0.0f64; 2], [0.0f64; 2]);
        for look in 0..=LOOKS {
            let part = 0.5 + 0.5 * look as f64 / LOOKS as f64;
            let values = self.at(reach * part.min(1.0 - EDGE));
            let size = |range: std::ops::Range<usize>| {
                range.map(|k| (values[k] - beyond[k]).powi(2)).sum::<f64>().sqrt()
            };
            last = [size(0..self.roots), size(self.roots..values.len())];
            if !last.iter().all(|size| size.is_finite()) {
                return None;
            }
            largest = [0, 1].map(|k| largest[k].max(last[k]));
        }
        (largest[0] > 0.0).then_some([largest, last])
    }
}
