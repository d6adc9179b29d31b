//! Functions of a model that are evaluated member by member, with the contributions of templates to
//! every output.

use crate::functional::{Functional, Pairs, Side, Source, Stretch, Term};
use crate::graph::{Expression, Graph, Input, Node};
use crate::policy::{OWN_PILE, PILE};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Vector-valued function of a model.
#[derive(Debug)]
pub struct Function {
    parts: Vec<Part>,
    strands: Vec<Strand>,
    outputs: usize,
    /// Contributions to families of outputs asked for so far, by first output, distance and number
    /// of outputs.
    known: Mutex<FxHashMap<[u32; 3], Arc<Members>>>,
}

/// Contributions of a formula in the rows of a stretch: to `output` in the first, to `output +
/// step` in the next.
#[derive(Clone, Copy, Debug)]
struct Strand {
    output: u32,
    step: i64,
    rows: u32,
    /// Contribution of the first row.
    contribution: Contribution,
}

/// Contribution of a row of a template to an output. Sums are formed in the order of contributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Contribution {
    /// Part of the function.
    pub part: u32,
    /// Stretch of the part's rows.
    pub stretch: u32,
    /// Row of the stretch.
    pub row: u32,
    /// Formula of the part.
    pub formula: u32,
}

impl Contribution {
    /// Contribution of the same formula `rows` rows later.
    pub fn moved(self, rows: u32) -> Contribution {
        Contribution { row: self.row + rows, ..self }
    }
}

/// Contributions of a formula to members of a family in consecutive rows: to `member` in the first,
/// to `member + step` in the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub member: u32,
    pub step: i32,
    pub rows: u32,
    /// Contribution of the first row.
    pub contribution: Contribution,
}

/// Contributions to the members of a family of outputs.
#[derive(Debug)]
pub(super) struct Members {
    shares: Vec<Share>,
    reads: Reads,
    length: u32,
    listed: OnceLock<Listed>,
}

/// Contributions to each member of a family. They are listed for the first of each run of alike
/// members only: for the others they are the same but for the rows, which move on by one from
/// member to member.
#[derive(Debug)]
struct Listed {
    /// First member of each run, then the number of all members.
    starts: Vec<u32>,
    /// Bounds in `list`: the contributions to the first member of run i are `list[first[i]..first[i
    /// + 1]]`.
    first: Vec<u32>,
    list: Vec<Contribution>,
}

/// Inputs that the members of a family read, each once if it is read by a single row.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads {
    pub time: bool,
    /// Inputs in equal steps: first, step (modulo 2³²), number.
    pub inputs: Vec<(u32, u32, u32)>,
}

impl Listed {
    fn new(shares: &[Share], length: u32) -> Listed {
        // Strands with the consecutive members that they add to; a strand of one row may add to any
        // member.
        let mut strands: Vec<(Range<u32>, Contribution)> = Vec::new();
        for &Share { member, step, rows, contribution } in shares {
            if step == 1 {
                strands.push((member..member + rows, contribution));
                continue;
            }
            for row in 0..rows {
                let member = member.wrapping_add_signed(row as i32 * step);
                strands.push((member..member + 1, contribution.moved(row)));
            }
        }
        strands.sort_unstable_by_key(|(members, contribution)| (members.start, *contribution));
        let mut starts: Vec<u32> =
            strands.iter().flat_map(|(members, _)| [members.start, members.end]).collect();
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
            list.extend(
                active
                    .iter()
                    .map(|(members, contribution)| contribution.moved(start - members.start)),
            );
            list[begin..].sort_unstable();
            first.push(list.len() as u32);
        }
        Listed { starts, first, list }
    }

    fn at(&self, member: u32) -> usize {
        self.starts.partition_point(|&start| start <= member) - 1
    }

    fn of_first(&self, run: usize) -> &[Contribution] {
        &self.list[self.first[run] as usize..self.first[run + 1] as usize]
    }
}

impl Members {
    fn new(shares: Vec<Share>, reads: Reads, length: u32) -> Members {
        Members { shares, reads, length, listed: OnceLock::new() }
    }

    /// Inputs of the function that they read.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Contributions to them, formula by formula and stretch by stretch.
    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    fn listed(&self) -> &Listed {
        self.listed.get_or_init(|| Listed::new(&self.shares, self.length))
    }

    /// Number of members from this one on to which the contributions are alike.
    pub fn run(&self, member: u32) -> u32 {
        let listed = self.listed();
        listed.starts[listed.at(member) + 1] - member
    }

    /// Contributions to a member.
    pub fn contributions(&self, member: u32) -> impl Iterator<Item = Contribution> {
        let listed = self.listed();
        let run = listed.at(member);
        let moved = member - listed.starts[run];
        listed.of_first(run).iter().map(move |contribution| contribution.moved(moved))
    }

    /// True if one formula contributes to a member so often that unrolling it for each member is
    /// too long.
    fn piles_up(&self) -> bool {
        // The rows of a body of a sum over pairs need no list.
        if self.shares.iter().any(|share| share.step == 0 && share.rows as usize >= PILE) {
            return true;
        }
        let formulas = |contributions: &[Contribution]| {
            let mut formulas: Vec<(u32, u32)> =
                contributions.iter().map(|c| (c.part, c.formula)).collect();
            formulas.sort_unstable();
            formulas
        };
        let most = |formulas: &Vec<(u32, u32)>| {
            formulas.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0)
        };
        let listed = self.listed();
        let kinds: FxHashSet<_> =
            (0..listed.starts.len() - 1).map(|run| formulas(listed.of_first(run))).collect();
        let are_alike = 2 * kinds.len() <= self.length as usize;
        kinds.iter().map(most).max() >= Some(if are_alike { PILE } else { OWN_PILE })
    }

    /// True if there are no contributions.
    pub fn is_zero(&self) -> bool {
        self.shares.is_empty()
    }
}

/// Builder of [`Reads`].
#[derive(Default)]
struct Reading {
    time: bool,
    lines: FxHashSet<(u32, u32, u32)>,
    /// Inputs that single rows read.
    alone: Vec<bool>,
}

impl Reading {
    /// Add the reads of a contribution in `rows` consecutive rows.
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

/// Formulas of one template, with its rows.
#[derive(Clone, Debug)]
struct Part {
    graph: Graph,
    /// Formulas that are values, then their derivatives.
    formulas: Vec<Formula>,
    /// Side of each formula, in a sum over pairs.
    sides: Vec<Side>,
    term: Arc<Term>,
}

/// Formula over the slots of a template.
#[derive(Clone, Debug)]
pub(super) struct Formula {
    pub node: Node,
    /// Slots that it reads.
    pub slots: Vec<u32>,
    /// Slots at some values of which it jumps.
    pub jumps: Vec<u32>,
    pub reads_time: bool,
    /// Derivatives: slot and number of the formula. Formulas that are derivatives themselves have
    /// none.
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
        let jumps = graph.reachable(&graph.jumps(node)).into_iter();
        let jumps = jumps.filter_map(|node| match graph.expression(node) {
            Expression::Input(Input::Slot(k)) => Some(k),
            _ => None,
        });
        Formula { node, slots, jumps: jumps.collect(), reads_time, partials: Vec::new() }
    }
}

impl Part {
    /// Part with formulas for `nodes`, and then for the derivatives of the first `smooth` of them.
    fn new(
        mut graph: Graph,
        nodes: &[Node],
        sides: Vec<Side>,
        term: Arc<Term>,
        smooth: usize,
    ) -> Part {
        let mut formulas: Vec<Formula> =
            nodes.iter().map(|&node| Formula::new(&graph, node)).collect();
        for k in 0..smooth {
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
        Part { graph, formulas, sides, term }
    }
}

impl Function {
    fn without_parts(outputs: usize) -> Function {
        Function { parts: Vec::new(), strands: Vec::new(), outputs, known: Mutex::default() }
    }

    /// Values of an [evened](Functional::evened) functional.
    pub fn value(functional: &Functional) -> Function {
        Function::values(functional, true)
    }

    /// Values of a functional, without their derivatives.
    pub fn size(functional: &Functional) -> Function {
        Function::values(functional, false)
    }

    fn values(functional: &Functional, smooth: bool) -> Function {
        let mut function = Function::without_parts(functional.outputs);
        for term in &functional.terms {
            let sides = vec![term.output_side(); term.roots.len()];
            let smooth = if smooth { term.roots.len() } else { 0 };
            let part =
                Part::new(term.graph.clone(), &term.roots, sides, Arc::new(term.clone()), smooth);
            for (formula, _) in
                term.roots.iter().enumerate().filter(|&(_, &root)| !term.graph.is_zero(root))
            {
                function.add(formula, term, term.slots.len(), formula as u32);
            }
            function.parts.push(part);
        }
        function
    }

    /// Gradient of an evened functional with one output with respect to its first `inputs` inputs.
    pub fn gradient(functional: &Functional, inputs: usize) -> Function {
        Function::with_gradient(functional, inputs, false)
    }

    /// Gradient with respect to all of its `inputs` inputs, followed by the value of each term.
    pub fn gradient_and_terms(functional: &Functional, inputs: usize) -> Function {
        Function::with_gradient(functional, inputs, true)
    }

    fn with_gradient(functional: &Functional, inputs: usize, with_terms: bool) -> Function {
        let values = if with_terms { functional.terms.len() } else { 0 };
        let mut function = Function::without_parts(inputs + values);
        for (number, term) in functional.terms.iter().enumerate() {
            let (graph, gradients) = term.gradients();
            let gradient = &gradients[0];
            let mut nodes: Vec<Node> = gradient.iter().map(|&(_, node)| node).collect();
            let mut sides: Vec<Side> = gradient.iter().map(|&(slot, _)| term.side(slot)).collect();
            for (formula, &(slot, _)) in gradient.iter().enumerate() {
                function.add(formula, term, slot as usize, 0);
            }
            if with_terms {
                function.add(gradient.len(), term, term.slots.len(), (inputs + number) as u32);
                nodes.push(term.roots[0]);
                sides.push(term.output_side());
            }
            function.parts.push(Part::new(
                graph,
                &nodes,
                sides,
                Arc::new(term.clone()),
                gradient.len(),
            ));
        }
        function
    }

    /// Add the contributions of a formula of the next part, which is made of `term`. The outputs
    /// are `behind` places after those in a column of its table.
    fn add(&mut self, formula: usize, term: &Term, column: usize, behind: u32) {
        let part = self.parts.len() as u32;
        for (stretch, rows) in (0..).zip(term.table.iter()) {
            let contribution = Contribution { part, stretch, row: 0, formula: formula as u32 };
            let (output, step) = (rows.first[column] + behind, i64::from(rows.step[column] as i32));
            self.strands.push(Strand { output, step, rows: rows.rows as u32, contribution });
        }
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Contributions to outputs `first + i * stride` for i below `length`.
    pub(super) fn members(&self, first: u32, stride: u32, length: u32) -> Arc<Members> {
        // Entries are inserted whole, even by a thread that panics later.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(
            known
                .entry([first, stride, length])
                .or_insert_with(|| Arc::new(self.found(first, stride, length))),
        )
    }

    fn found(&self, first: u32, stride: u32, length: u32) -> Members {
        let (first, stride) = (i64::from(first), i64::from(stride.max(1)));
        let member = |output: i64| {
            let offset = output - first;
            (offset % stride == 0)
                .then_some(offset / stride)
                .filter(|member| (0..i64::from(length)).contains(member))
        };
        let (mut shares, mut reading) = (Vec::new(), Reading::default());
        for strand in &self.strands {
            let (output, rows) = (i64::from(strand.output), i64::from(strand.rows));
            if strand.step % stride == 0 && (output - first) % stride != 0 {
                continue;
            }
            if strand.step % stride == 0 {
                // Row k adds to member start + k * step.
                let (start, step) = ((output - first) / stride, strand.step / stride);
                let (from, to) = inside(start, step, rows, i64::from(length));
                if from < to {
                    let contribution = strand.contribution.moved(from as u32);
                    let (member, step, rows) =
                        ((start + from * step) as u32, step as i32, (to - from) as u32);
                    reading.add(self, contribution, rows);
                    shares.push(Share { member, step, rows, contribution });
                }
                continue;
            }
            for row in 0..rows {
                if let Some(member) = member(output + row * strand.step) {
                    let contribution = strand.contribution.moved(row as u32);
                    reading.add(self, contribution, 1);
                    shares.push(Share { member: member as u32, step: 1, rows: 1, contribution });
                }
            }
        }
        Members::new(shares, reading.reads(), length)
    }

    pub(super) fn formula(&self, part: u32, formula: u32) -> &Formula {
        &self.parts[part as usize].formulas[formula as usize]
    }

    pub(super) fn graph(&self, part: u32) -> &Graph {
        &self.parts[part as usize].graph
    }

    /// Source of a slot of a contribution.
    pub(super) fn source(&self, contribution: Contribution, slot: u32) -> Source {
        self.parts[contribution.part as usize].term.slots[slot as usize]
    }

    /// Input that a slot reads; `None` if it reads none.
    pub(super) fn input(&self, contribution: Contribution, slot: u32) -> Option<u32> {
        (self.source(contribution, slot) == Source::State).then(|| self.entry(contribution, slot))
    }

    /// Number of parts.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Pairs of a part; `None` if it is not a sum over pairs.
    pub(super) fn pairs(&self, part: u32) -> Option<&Pairs> {
        self.parts[part as usize].term.pairs.as_deref()
    }

    /// Side of a formula of such a part.
    pub(super) fn side(&self, part: u32, formula: u32) -> Side {
        self.parts[part as usize].sides[formula as usize]
    }

    /// True if the contributions to members have to be accumulated over rows: unrolled they would
    /// be too long.
    pub(super) fn piles_up(&self, members: &Members) -> bool {
        let over_pairs =
            || members.shares().iter().any(|share| self.pairs(share.contribution.part).is_some());
        over_pairs() || members.piles_up()
    }

    /// Sources of the slots of a part.
    pub(super) fn slots(&self, part: u32) -> &[Source] {
        &self.parts[part as usize].term.slots
    }

    /// Numbers of a part.
    pub(super) fn numbers(&self, part: u32) -> &[f64] {
        &self.parts[part as usize].term.numbers
    }

    fn stretch(&self, contribution: Contribution) -> Stretch<'_> {
        self.parts[contribution.part as usize].term.table.get(contribution.stretch as usize)
    }

    /// Place that a slot reads: an input or a parameter.
    pub(super) fn entry(&self, contribution: Contribution, slot: u32) -> u32 {
        self.stretch(contribution).row(contribution.row as usize).at(slot as usize)
    }

    /// Step of that place from row to row.
    pub(super) fn step(&self, contribution: Contribution, slot: u32) -> u32 {
        self.stretch(contribution).step[slot as usize]
    }

    /// Number that a slot for numbers reads, the same in all rows of a stretch.
    pub(super) fn number(&self, contribution: Contribution, slot: u32) -> f64 {
        let first = self.stretch(contribution).first[slot as usize];
        self.parts[contribution.part as usize].term.numbers[first as usize]
    }
}

/// Range of k below `count` for which start + k step is in 0..`length`.
fn inside(start: i64, step: i64, count: i64, length: i64) -> (i64, i64) {
    let up_to = |distance: i64, step: i64| (distance.max(0) as u64).div_ceil(step as u64) as i64;
    match step {
        0 if (0..length).contains(&start) => (0, count),
        0 => (0, 0),
        1.. => (up_to(-start, step), up_to(length - start, step).min(count)),
        _ => (up_to(start - length + 1, -step), up_to(start + 1, -step).min(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_inside_are_those_between_the_ends() {
        for (length, count) in [(1, 1), (5, 4), (3, 9)] {
            for step in -3..=3 {
                for start in -12..=12 {
                    let rows = (0..count).filter(|row| (0..length).contains(&(start + row * step)));
                    let rows: Vec<i64> = rows.collect();
                    let (from, to) = inside(start, step, count, length);
                    assert!(
                        rows.iter().copied().eq(from..to.max(from)),
                        "{start} {step}: {rows:?}, {from}..{to}"
                    );
                }
            }
        }
    }
}
