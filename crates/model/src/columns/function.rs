//! Functions of a model that are evaluated member by member: for every output, which templates of which rows add to it.

use crate::functional::{Evened, Pairs, Side, Source, Term};
use crate::graph::{Expression, Graph, Input, Node};
use crate::policy::PILE;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// A vector-valued function of a model.
#[derive(Debug)]
pub struct Function {
    parts: Vec<Part>,
    strands: Vec<Strand>,
    outputs: usize,
    /// What adds to families of outputs that have been asked for: first output, distance, number of outputs.
    known: Mutex<FxHashMap<[u32; 3], Arc<Members>>>,
}

/// What a formula adds to outputs in the rows of a stretch: to `output` in the first, to `output + step` in the next.
#[derive(Clone, Copy, Debug)]
struct Strand {
    output: u32,
    step: i64,
    rows: u32,
    /// That of the first row.
    contribution: Contribution,
}

/// What a row of a template adds to an output. In the order of these sums are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Contribution {
    /// Which part of the function.
    pub part: u32,
    /// Which stretch of its rows.
    pub stretch: u32,
    /// Which row of that.
    pub row: u32,
    /// Which of its formulas.
    pub formula: u32,
}

impl Contribution {
    /// The same formula so many rows on.
    pub fn moved(self, rows: u32) -> Contribution {
        Contribution { row: self.row + rows, ..self }
    }
}

/// What adds to the members of a family of outputs. It is listed for the first of members in a row that are alike: what
/// adds to them is the same but for the rows, which move on by one from member to member.
#[derive(Clone, Debug)]
pub(super) struct Members {
    /// The first of each such members, and the number of all.
    starts: Vec<u32>,
    /// What adds to the first of run i is `list[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    list: Vec<Contribution>,
    reads: Reads,
}

/// What the members of a family read, each input once if it is read by itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads {
    pub time: bool,
    /// Inputs in equal steps: first, step (modulo 2³²), number.
    pub inputs: Vec<(u32, u32, u32)>,
}

impl Members {
    /// Of strands that lie in so many members from a first one on; those of one row may lie anywhere.
    fn new(mut strands: Vec<(Range<u32>, Contribution)>, reads: Reads, length: u32) -> Members {
        strands.sort_unstable_by_key(|(members, contribution)| (members.start, *contribution));
        let mut starts: Vec<u32> = strands.iter().flat_map(|(members, _)| [members.start, members.end]).collect();
        starts.extend([0, length]);
        starts.sort_unstable();
        starts.dedup();
        let (mut first, mut list) = (vec![0], Vec::new());
        let mut active: Vec<(Range<u32>, Contribution)> = Vec::new();
        let mut next = strands.into_iter().peekable();
        for &start in &starts[..starts.len() - 1] {
            active.retain(|(members, _)| members.end > start);
            while let Some(strand) = next.next_if(|(members, _)| members.start == start) {
                active.push(strand);
            }
            let begin = list.len();
            list.extend(active.iter().map(|(members, contribution)| contribution.moved(start - members.start)));
            list[begin..].sort_unstable();
            first.push(list.len() as u32);
        }
        Members { starts, first, list, reads }
    }

    /// What they read of the function's inputs.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// For how many members from this one on what adds to them is alike.
    pub fn run(&self, member: u32) -> u32 {
        self.starts[self.at(member) + 1] - member
    }

    fn at(&self, member: u32) -> usize {
        self.starts.partition_point(|&start| start <= member) - 1
    }

    /// What adds to a member.
    pub fn contributions(&self, member: u32) -> impl Iterator<Item = Contribution> {
        let run = self.at(member);
        let moved = member - self.starts[run];
        self.of_first(run).iter().map(move |contribution| contribution.moved(moved))
    }

    fn of_first(&self, run: usize) -> &[Contribution] {
        &self.list[self.first[run] as usize..self.first[run + 1] as usize]
    }

    /// What adds to the first of members in a row that are alike, with their number.
    pub fn runs(&self) -> impl Iterator<Item = (&[Contribution], u32)> {
        let lengths = self.starts.windows(2).map(|pair| pair[1] - pair[0]);
        lengths.enumerate().map(|(run, length)| (self.of_first(run), length))
    }

    /// Whether one formula adds so often to a member that writing it out for each member is too long.
    fn piles_up(&self) -> bool {
        let most = |contributions: &[Contribution]| {
            let mut formulas: Vec<(u32, u32)> = contributions.iter().map(|c| (c.part, c.formula)).collect();
            formulas.sort_unstable();
            formulas.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0)
        };
        self.runs().any(|(contributions, _)| contributions.len() >= PILE && most(contributions) >= PILE)
    }

    /// Whether nothing adds to any.
    pub fn is_zero(&self) -> bool {
        self.list.is_empty()
    }
}

/// [`Reads`] in the making.
#[derive(Default)]
struct Reading {
    time: bool,
    lines: FxHashSet<(u32, u32, u32)>,
    /// Inputs that single rows read.
    alone: Vec<bool>,
}

impl Reading {
    /// Adds what a contribution and those behind it read, in so many rows.
    fn add(&mut self, function: &Function, contribution: Contribution, rows: u32) {
        let formula = function.formula(contribution.part, contribution.formula);
        self.time |= formula.reads_time;
        for &slot in &formula.slots {
            let Some(input) = function.input(contribution, slot) else { continue };
            if rows > 1 {
                self.lines.insert((input, function.step(contribution, slot), rows));
                continue;
            }
            let input = input as usize;
            self.alone.resize(self.alone.len().max(input + 1), false);
            self.alone[input] = true;
        }
    }

    fn reads(self) -> Reads {
        let mut inputs: Vec<(u32, u32, u32)> = self.lines.into_iter().collect();
        let mut first = 0;
        for equal in self.alone.chunk_by(|a, b| a == b) {
            if equal[0] {
                inputs.push((first, 1, equal.len() as u32));
            }
            first += equal.len() as u32;
        }
        inputs.sort_unstable();
        Reads { time: self.time, inputs }
    }
}

/// The formulas of one template, with the first two rows of each of its stretches.
#[derive(Clone, Debug)]
struct Part {
    graph: Graph,
    /// Those that are values, then their derivatives.
    formulas: Vec<Formula>,
    values: usize,
    /// Whose they are, of a sum over pairs.
    sides: Vec<Side>,
    kept: Arc<Term>,
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
    fn new(mut graph: Graph, nodes: &[Node], sides: Vec<Side>, kept: Arc<Term>, smooth: bool) -> Part {
        let mut formulas: Vec<Formula> = nodes.iter().map(|&node| Formula::new(&graph, node)).collect();
        let differentiated = if smooth { nodes.len() } else { 0 };
        for k in 0..differentiated {
            let is_state = |input: Input| matches!(input, Input::Slot(k) if kept.slots[k as usize] == Source::State);
            let partials = graph.adjoint(nodes[k], is_state);
            for (input, node) in partials {
                if let Input::Slot(slot) = input {
                    let number = formulas.len() as u32;
                    formulas[k].partials.push((slot, number));
                    formulas.push(Formula::new(&graph, node));
                }
            }
        }
        Part { graph, formulas, values: nodes.len(), sides, kept }
    }
}

impl Function {
    fn without_parts(outputs: usize) -> Function {
        Function { parts: Vec::new(), strands: Vec::new(), outputs, known: Mutex::default() }
    }

    /// The values of a functional.
    pub fn value(functional: &Evened) -> Function {
        Function::values(functional, true)
    }

    /// The values of a functional that nobody differentiates.
    pub fn size(functional: &Evened) -> Function {
        Function::values(functional, false)
    }

    fn values(functional: &Evened, smooth: bool) -> Function {
        let mut function = Function::without_parts(functional.kept.outputs);
        for (term, lengths) in functional.kept.terms.iter().zip(&functional.lengths) {
            let sides = vec![term.output_side(); term.roots.len()];
            let part = Part::new(term.graph.clone(), &term.roots, sides, Arc::new(term.clone()), smooth);
            for (formula, _) in term.roots.iter().enumerate().filter(|&(_, &root)| !term.graph.is_zero(root)) {
                function.add(formula, lengths, &|row: usize| term.first_output[row] + formula as u32);
            }
            function.parts.push(part);
        }
        function
    }

    /// The gradient of a functional with one output with respect to its first `inputs` inputs.
    pub fn gradient(functional: &Evened, inputs: usize) -> Function {
        let mut function = Function::without_parts(inputs);
        for (term, lengths) in functional.kept.terms.iter().zip(&functional.lengths) {
            let (graph, gradients) = term.gradients();
            let gradient = &gradients[0];
            let nodes: Vec<Node> = gradient.iter().map(|&(_, node)| node).collect();
            for (formula, &(slot, _)) in gradient.iter().enumerate() {
                function.add(formula, lengths, &|row: usize| term.row(row)[slot as usize]);
            }
            let sides = gradient.iter().map(|&(slot, _)| term.side(slot)).collect();
            function.parts.push(Part::new(graph, &nodes, sides, Arc::new(term.clone()), true));
        }
        function
    }

    /// Adds what a formula of the next part adds in its stretches of these lengths, of which two rows each are kept.
    fn add(&mut self, formula: usize, lengths: &[u32], output: &dyn Fn(usize) -> u32) {
        let part = self.parts.len() as u32;
        for (stretch, &rows) in lengths.iter().enumerate() {
            let (first, second) = (output(2 * stretch), output(2 * stretch + 1));
            let contribution = Contribution { part, stretch: stretch as u32, row: 0, formula: formula as u32 };
            let step = i64::from(second) - i64::from(first);
            self.strands.push(Strand { output: first, step, rows, contribution });
        }
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// What adds to outputs `first + i * stride` for i below `length`.
    pub(super) fn members(&self, first: u32, stride: u32, length: u32) -> Arc<Members> {
        // What is put there is put whole, also by a thread that panics later.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry([first, stride, length]).or_insert_with(|| Arc::new(self.found(first, stride, length))))
    }

    fn found(&self, first: u32, stride: u32, length: u32) -> Members {
        let (first, stride) = (i64::from(first), i64::from(stride.max(1)));
        let member = |output: i64| {
            let offset = output - first;
            (offset % stride == 0).then_some(offset / stride).filter(|member| (0..i64::from(length)).contains(member))
        };
        let (mut strands, mut reading) = (Vec::new(), Reading::default());
        for strand in &self.strands {
            let (output, rows) = (i64::from(strand.output), i64::from(strand.rows));
            if strand.step % stride == 0 && (output - first) % stride != 0 {
                continue;
            }
            if strand.step == stride {
                // Row k belongs to member start + k.
                let start = (output - first) / stride;
                let (from, to) = (start.max(0), (start + rows).min(i64::from(length)));
                if from < to {
                    let contribution = strand.contribution.moved((from - start) as u32);
                    reading.add(self, contribution, (to - from) as u32);
                    strands.push((from as u32..to as u32, contribution));
                }
                continue;
            }
            // The rows of a body of a sum over pairs all belong to it.
            let together = strand.step == 0 && member(output).is_some();
            if together {
                reading.add(self, strand.contribution, strand.rows);
            }
            for row in 0..rows {
                if let Some(member) = member(output + row * strand.step) {
                    let (member, contribution) = (member as u32, strand.contribution.moved(row as u32));
                    strands.push((member..member + 1, contribution));
                    if !together {
                        reading.add(self, contribution, 1);
                    }
                }
            }
        }
        Members::new(strands, reading.reads(), length)
    }

    pub(super) fn formula(&self, part: u32, formula: u32) -> &Formula {
        &self.parts[part as usize].formulas[formula as usize]
    }

    pub(super) fn graph(&self, part: u32) -> &Graph {
        &self.parts[part as usize].graph
    }

    /// What a slot of a contribution is bound to.
    pub(super) fn source(&self, contribution: Contribution, slot: u32) -> Source {
        self.parts[contribution.part as usize].kept.slots[slot as usize]
    }

    /// The input that a slot reads, if it reads one.
    pub(super) fn input(&self, contribution: Contribution, slot: u32) -> Option<u32> {
        (self.source(contribution, slot) == Source::State).then(|| self.entry(contribution, slot))
    }

    /// Number of formulas of a part that are values of the function, not derivatives of them.
    pub(super) fn values_of(&self, part: u32) -> usize {
        self.parts[part as usize].values
    }

    /// Number of parts.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The pairs of a part that sums over them.
    pub(super) fn pairs(&self, part: u32) -> Option<&Pairs> {
        self.parts[part as usize].kept.pairs.as_deref()
    }

    /// Whose a formula of such a part is.
    pub(super) fn side(&self, part: u32, formula: u32) -> Side {
        self.parts[part as usize].sides[formula as usize]
    }

    /// Whether what adds to some members has to be added up over rows: it would be too long written out for each.
    pub(super) fn piles_up(&self, members: &Members) -> bool {
        let over_pairs = |contributions: &[Contribution]| contributions.iter().any(|c| self.pairs(c.part).is_some());
        members.piles_up() || members.runs().any(|(contributions, _)| over_pairs(contributions))
    }

    /// What the slots of a part are bound to.
    pub(super) fn slots(&self, part: u32) -> &[Source] {
        &self.parts[part as usize].kept.slots
    }

    /// The numbers of a part.
    pub(super) fn numbers(&self, part: u32) -> &[f64] {
        &self.parts[part as usize].kept.numbers
    }

    /// The place that a slot reads: an input or a parameter.
    pub(super) fn entry(&self, contribution: Contribution, slot: u32) -> u32 {
        let step = self.step(contribution, slot);
        self.first_entry(contribution, slot).wrapping_add(contribution.row.wrapping_mul(step))
    }

    /// By how much that place moves on from row to row.
    pub(super) fn step(&self, contribution: Contribution, slot: u32) -> u32 {
        let kept = &self.parts[contribution.part as usize].kept;
        let second = kept.row(2 * contribution.stretch as usize + 1)[slot as usize];
        second.wrapping_sub(self.first_entry(contribution, slot))
    }

    fn first_entry(&self, contribution: Contribution, slot: u32) -> u32 {
        self.parts[contribution.part as usize].kept.row(2 * contribution.stretch as usize)[slot as usize]
    }

    /// The number that a slot for numbers reads, the same in all rows of a stretch.
    pub(super) fn number(&self, contribution: Contribution, slot: u32) -> f64 {
        self.parts[contribution.part as usize].kept.numbers[self.first_entry(contribution, slot) as usize]
    }
}
