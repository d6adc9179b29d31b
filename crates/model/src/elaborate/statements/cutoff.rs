//! Checks of sums over pairs that end at a distance: boxes too small for it, and terms that do not go to zero there.

use crate::elaborate::reach::{self, ShortBox};
use crate::functional::{Pairs, Side, Source, Term};
use crate::graph::interpret::{Interpreter, Kernel, Program};
use crate::graph::tape::Tape;
use crate::graph::{Graph, Input, Node};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

/// Tolerance for terms and forces at the edge, relative to the largest at half of the distance and beyond.
const ZERO: f64 = 1e-3;

/// Distance of the last sample from the edge, relative to the reach.
const EDGE: f64 = 1e-6;

/// Number of steps from half of the reach to the edge, at which terms are evaluated.
const LOOKS: usize = 20;

/// Finding about a sum at an initial state, if any. `moves` is true if the sum moves the state, false if it is
/// recorded.
pub(super) fn finding(term: &Term, span: Span, moves: bool, x: &[f64], parameters: &[f64]) -> Option<Diagnostic> {
    let pairs = term.pairs.as_deref()?;
    let numbers = reach::of(term)?.evaluate(0.0, x, parameters);
    if let Some(short) = ShortBox::among(&numbers) {
        let finding = Diagnostic::error(short.to_string(), span, "these would miss images of their partners");
        return Some(finding.help("take a larger box or a shorter cut-off"));
    }
    let reach = numbers[0];
    if !moves || reach.is_nan() || reach <= 0.0 {
        return None;
    }
    let mut pair = Pair::new(term, pairs, x, parameters);
    let (mut largest, mut last) = ([0.0f64; 2], [0.0f64; 2]);
    for look in 0..=LOOKS {
        let part = 0.5 + 0.5 * look as f64 / LOOKS as f64;
        last = pair.at(reach * part.min(1.0 - EDGE))?;
        largest = [0, 1].map(|k| largest[k].max(last[k]));
    }
    let jumps = |k: usize| last[k] > ZERO * largest[k];
    let (what, then) = match (jumps(0), jumps(1)) {
        (true, _) => ("the terms do", "the energy jumps whenever a pair crosses it"),
        (false, true) => ("the forces do", "the forces jump there, and the energy drifts"),
        _ => return None,
    };
    let finding = Diagnostic::warning(format!("{what} not go to zero at the cut-off: {then}"), span, "ends abruptly");
    Some(finding.help("multiply it by `switched` of \"molecules.holo\", which fades it out"))
}

/// A pair whose distance can be chosen.
struct Pair<'a> {
    term: &'a Term,
    graph: Graph,
    /// Values of the slots.
    slots: Vec<f64>,
    /// Slots of the second member that place it, with the derivatives of the squared distance.
    moving: Vec<(u32, Node)>,
    square: Node,
    /// Sums of squares of the terms, and of their derivatives.
    sizes: [Node; 2],
}

impl<'a> Pair<'a> {
    fn new(term: &'a Term, pairs: &Pairs, x: &[f64], parameters: &[f64]) -> Pair<'a> {
        let entry = |(k, source): (usize, &Source)| {
            let at = term.row(0).at(k) as usize;
            match source {
                Source::State => x[at],
                Source::Parameter => parameters[at],
                Source::Number => term.numbers[at],
            }
        };
        let slots: Vec<f64> = term.slots.iter().enumerate().map(entry).collect();
        let mut graph = term.graph.clone();
        let g = &mut graph;
        let mut square = g.zero();
        let [first, second] = &pairs.points;
        for (&a, &b) in first.iter().zip(second) {
            let apart = g.sub(a, b);
            square = with_square(g, square, apart);
        }
        let is_second = |input: Input| {
            matches!(input, Input::Slot(k) if pairs.sides[k as usize] == Side::Second
                && term.slots[k as usize] == Source::State)
        };
        let of_slots = |list: Vec<(Input, Node)>| {
            let slot = |(input, node)| if let Input::Slot(k) = input { Some((k, node)) } else { None };
            list.into_iter().filter_map(slot).collect::<Vec<_>>()
        };
        let moving = of_slots(g.adjoint(square, is_second));
        let mut sizes = [g.zero(); 2];
        for &root in &term.roots {
            sizes[0] = with_square(g, sizes[0], root);
            for (_, d) in of_slots(g.adjoint(root, is_second)) {
                sizes[1] = with_square(g, sizes[1], d);
            }
        }
        Pair { term, graph, slots, moving, square, sizes }
    }

    fn values(&self, nodes: &[Node]) -> Vec<f64> {
        let mut g = Graph::new();
        let roots = g.instantiate(&self.graph, nodes, |g, input| match input {
            Input::Slot(k) => g.state(k as usize),
            other => g.input(other),
        });
        let program: Program = Interpreter.program(&Tape::new(&g, &roots, self.term.slots.len(), 0));
        let mut values = vec![0.0; roots.len()];
        program.run(&program.bind(&[]), &[0.0], &self.slots, &mut values, &mut vec![0.0; program.work_len()]);
        values
    }

    /// Sizes of the terms and of their derivatives at a distance; `None` if the pair cannot be put there.
    fn at(&mut self, distance: f64) -> Option<[f64; 2]> {
        // Newton's method along the gradient, from the current place of the pair.
        for _ in 0..50 {
            let nodes: Vec<Node> = self.moving.iter().map(|&(_, d)| d).chain([self.square]).collect();
            let values = self.values(&nodes);
            let (slopes, square) = values.split_at(self.moving.len());
            let steepness: f64 = slopes.iter().map(|d| d * d).sum();
            let missing = distance * distance - square[0];
            if missing.abs() <= 1e-12 * distance * distance {
                let sizes = self.values(&self.sizes);
                let sizes = [sizes[0].sqrt(), sizes[1].sqrt()];
                return sizes.iter().all(|size| size.is_finite()).then_some(sizes);
            }
            for (&(slot, _), slope) in self.moving.iter().zip(slopes) {
                self.slots[slot as usize] += missing / steepness * slope;
            }
        }
        None
    }
}

fn with_square(g: &mut Graph, sum: Node, a: Node) -> Node {
    let square = g.mul(a, a);
    g.add(sum, square)
}
