//! Functions of a model that are evaluated member by member: for every output, which templates of which rows add to it.

use super::expansion::mixed;
use crate::functional::{Functional, Source, Term};
use crate::graph::{Expression, Graph, Input, Node};
use std::sync::Arc;

/// A vector-valued function of a model, in the order of its outputs.
#[derive(Clone, Debug)]
pub struct Function {
    parts: Vec<Part>,
    /// The contributions to output o are `start[o]..start[o + 1]`.
    start: Vec<u32>,
    contributions: Vec<Contribution>,
}

/// What a row of a template adds to an output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Contribution {
    /// Which part of the function.
    pub part: u32,
    /// Which row of its table.
    pub row: u32,
    /// Which of its formulas.
    pub formula: u32,
}

/// The formulas of one template, with the table of its rows.
#[derive(Clone, Debug)]
struct Part {
    graph: Graph,
    /// Those that are values, then their derivatives.
    formulas: Vec<Formula>,
    values: usize,
    term: Arc<Term>,
}

/// What a family of outputs reads.
pub(super) struct Reads {
    /// A bit for every input.
    inputs: Vec<u64>,
    pub time: bool,
}

impl Reads {
    /// The inputs, increasing.
    pub fn inputs(&self) -> impl Iterator<Item = u32> {
        let words = self.inputs.iter().enumerate().filter(|(_, word)| **word != 0);
        words.flat_map(|(k, word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * k as u32 + bit))
    }
}

/// A formula over the slots of a template.
#[derive(Clone, Debug)]
pub(super) struct Formula {
    pub node: Node,
    /// What it reads.
    pub slots: Vec<u32>,
    pub reads_time: bool,
    /// Its derivatives: slot, and the number of the formula. Formulas that are derivatives themselves have none.
    pub partials: Vec<(u32, u32)>,
}

impl Formula {
    fn new(graph: &Graph, node: Node) -> Formula {
        let (mut slots, mut reads_time) = (Vec::new(), false);
        for reached in graph.reachable(&[node]) {
            match graph.expression(reached) {
                Expression::Input(Input::Slot(k)) => slots.push(k),
                Expression::Input(Input::Time) => reads_time = true,
                _ => {}
            }
        }
        slots.sort_unstable();
        Formula { node, slots, reads_time, partials: Vec::new() }
    }
}

impl Part {
    /// With formulas for `nodes`, and then for their derivatives, if they are `smooth`.
    fn new(mut graph: Graph, nodes: &[Node], term: Arc<Term>, smooth: bool) -> Part {
        let mut formulas: Vec<Formula> = nodes.iter().map(|&node| Formula::new(&graph, node)).collect();
        let differentiated = if smooth { nodes.len() } else { 0 };
        for k in 0..differentiated {
            let is_state = |input: Input| matches!(input, Input::Slot(k) if term.slots[k as usize] == Source::State);
            let partials = graph.adjoint(nodes[k], is_state);
            for (input, node) in partials {
                if let Input::Slot(slot) = input {
                    let number = formulas.len() as u32;
                    formulas[k].partials.push((slot, number));
                    formulas.push(Formula::new(&graph, node));
                }
            }
        }
        Part { graph, formulas, values: nodes.len(), term }
    }
}

/// Contributions of one formula to one output from which on the output is accumulated. Fewer are added up in a register,
/// in a formula that equal members share; nodes of a net have up to six.
const PILE: usize = 8;

impl Function {
    fn new(parts: Vec<Part>, outputs: usize, mut list: Vec<(u32, Contribution)>) -> Function {
        // In the order of parts and rows for every output: sums are made in that order.
        list.sort_by_key(|&(output, _)| output);
        let mut start = vec![0; outputs + 1];
        for &(output, _) in &list {
            start[output as usize + 1] += 1;
        }
        for o in 0..outputs {
            start[o + 1] += start[o];
        }
        Function { parts, start, contributions: list.into_iter().map(|(_, contribution)| contribution).collect() }
    }

    /// The values of a functional.
    pub fn value(functional: &Functional) -> Function {
        Function::values(functional, true)
    }

    /// The values of a functional that nobody differentiates.
    pub fn size(functional: &Functional) -> Function {
        Function::values(functional, false)
    }

    fn values(functional: &Functional, smooth: bool) -> Function {
        let (mut parts, mut list) = (Vec::new(), Vec::new());
        for term in &functional.terms {
            let part = Part::new(term.graph.clone(), &term.roots, Arc::new(term.clone()), smooth);
            let number = parts.len() as u32;
            for row in 0..term.rows() as u32 {
                for (formula, &root) in term.roots.iter().enumerate() {
                    if !term.graph.is_zero(root) {
                        let output = term.first_output[row as usize] + formula as u32;
                        list.push((output, Contribution { part: number, row, formula: formula as u32 }));
                    }
                }
            }
            parts.push(part);
        }
        Function::new(parts, functional.outputs, list)
    }

    /// The gradient of a functional with one output with respect to its first `inputs` inputs.
    pub fn gradient(functional: &Functional, inputs: usize) -> Function {
        let (mut parts, mut list) = (Vec::new(), Vec::new());
        for term in &functional.terms {
            let (graph, gradients) = term.gradients();
            let gradient = &gradients[0];
            let nodes: Vec<Node> = gradient.iter().map(|&(_, node)| node).collect();
            let number = parts.len() as u32;
            for row in 0..term.rows() as u32 {
                for (formula, &(slot, _)) in gradient.iter().enumerate() {
                    let input = term.row(row as usize)[slot as usize];
                    if (input as usize) < inputs {
                        list.push((input, Contribution { part: number, row, formula: formula as u32 }));
                    }
                }
            }
            parts.push(Part::new(graph, &nodes, Arc::new(term.clone()), true));
        }
        Function::new(parts, inputs, list)
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.start.len() - 1
    }

    pub(super) fn contributions(&self, output: u32) -> &[Contribution] {
        &self.contributions[self.start[output as usize] as usize..self.start[output as usize + 1] as usize]
    }

    pub(super) fn formula(&self, part: u32, formula: u32) -> &Formula {
        &self.parts[part as usize].formulas[formula as usize]
    }

    pub(super) fn graph(&self, part: u32) -> &Graph {
        &self.parts[part as usize].graph
    }

    pub(super) fn term(&self, part: u32) -> &Term {
        &self.parts[part as usize].term
    }

    /// The input that a slot reads, if it reads one.
    pub(super) fn input(&self, contribution: &Contribution, slot: u32) -> Option<u32> {
        let reads_state = self.term(contribution.part).slots[slot as usize] == Source::State;
        reads_state.then(|| self.entry(contribution, slot))
    }

    /// What a family of outputs reads.
    pub(super) fn reads(&self, first: u32, stride: u32, length: u32) -> Reads {
        let mut reads = Reads { inputs: Vec::new(), time: false };
        for i in 0..length {
            for contribution in self.contributions(first + i * stride) {
                let formula = self.formula(contribution.part, contribution.formula);
                reads.time |= formula.reads_time;
                for input in formula.slots.iter().filter_map(|&slot| self.input(contribution, slot)) {
                    let (word, bit) = (input as usize / 64, input % 64);
                    if reads.inputs.len() <= word {
                        reads.inputs.resize(word + 1, 0);
                    }
                    reads.inputs[word] |= 1 << bit;
                }
            }
        }
        reads
    }

    /// What a slot is bound to.
    pub(super) fn entry(&self, contribution: &Contribution, slot: u32) -> u32 {
        self.term(contribution.part).row(contribution.row as usize)[slot as usize]
    }

    /// Whether one formula adds so often to a member of a family of outputs that writing it out for each member is too long.
    pub(super) fn piles_up(&self, first: u32, stride: u32, length: u32) -> bool {
        let mut counts: Vec<((u32, u32), usize)> = Vec::new();
        (0..length).any(|i| {
            let contributions = self.contributions(first + i * stride);
            counts.clear();
            contributions.len() >= PILE
                && contributions.iter().any(|c| {
                    let formula = (c.part, c.formula);
                    let known = counts.iter().position(|(known, _)| *known == formula).unwrap_or_else(|| {
                        counts.push((formula, 0));
                        counts.len() - 1
                    });
                    counts[known].1 += 1;
                    counts[known].1 >= PILE
                })
        })
    }

    /// Number of formulas of a part that are values of the function, not derivatives of them.
    pub(super) fn values_of(&self, part: u32) -> usize {
        self.parts[part as usize].values
    }

    /// Number of parts.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// For each member of a family of outputs how many members from it on are alike: what adds to them is the same but for
    /// the inputs, each of which moves on by the same distance from one member to the next.
    pub(super) fn runs(&self, first: u32, stride: u32, length: u32) -> Vec<u32> {
        let mut runs = vec![1; length as usize];
        let mut behind = None;
        for i in (1..length).rev() {
            let step = self.step(first + (i - 1) * stride, first + i * stride);
            let member = i as usize - 1;
            if step.is_some() {
                runs[member] = if step == behind { runs[member + 1] + 1 } else { 2 };
            }
            behind = step;
        }
        runs
    }

    /// How the contributions to one output differ from those to another, as a hash; none if not by their inputs only.
    fn step(&self, from: u32, to: u32) -> Option<u64> {
        let (from, to) = (self.contributions(from), self.contributions(to));
        if from.len() != to.len() {
            return None;
        }
        let mut hash = from.len() as u64;
        for (a, b) in from.iter().zip(to) {
            if (a.part, a.formula) != (b.part, b.formula) {
                return None;
            }
            hash = mixed(mixed(hash, u64::from(a.part)), u64::from(a.formula));
            let part = &self.parts[a.part as usize];
            for (slot, source) in part.term.slots.iter().enumerate() {
                let [x, y] = [a, b].map(|c| part.term.row(c.row as usize)[slot]);
                if *source == Source::Number {
                    let [x, y] = [x, y].map(|at| part.term.numbers[at as usize].to_bits());
                    if x != y {
                        return None;
                    }
                } else {
                    hash = mixed(hash, u64::from(y.wrapping_sub(x)));
                }
            }
        }
        Some(hash)
    }

    /// Whether nothing adds to a family of outputs.
    pub(super) fn is_zero(&self, first: u32, stride: u32, length: u32) -> bool {
        (0..length).all(|i| self.contributions(first + i * stride).is_empty())
    }
}
