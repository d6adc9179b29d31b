//! Functionals: every formula of a model as a sum of term templates.
//!
//! A *term* is one small expression over a few local slots with a table that binds the slots row by
//! row: a bond, a pair, a site. The Hamiltonian of a chain of a million links is two terms, not a
//! million formulas. Small models are unrolled into one graph ([`Functional::unroll`]); sums over
//! rows ([`Functional::evaluate`], [`rows`](crate::rows)) never unroll anything.

mod near;
mod stretches;

pub use near::{List, Neighbours, Pairs, Side, Which};
pub use stretches::{Entries, Stretch, Stretches};

use crate::graph::aligned::Aligned;
use crate::graph::interpret::{Backend, Interpreter, Kernel};
use crate::graph::op::Binary;
use crate::graph::tape::Tape;
use crate::graph::{Expression, Graph, Input, Node};
use crate::syntax::span::Span;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Source of a slot's value in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Entries of the row table are state components; in a formula of a
    /// [`Start`](crate::elaborate::model::start::Start) they are inputs of a trajectory.
    State,
    /// Entries of the row table are parameters.
    Parameter,
    /// Entries of the row table are positions in [`Term::numbers`].
    Number,
}

/// A template and its rows.
#[derive(Clone, Debug)]
pub struct Term {
    /// The template's expressions over `Input::Slot` and `Input::Time`.
    pub graph: Graph,
    /// Components of the value; a row adds component c to output `first + c`, with `first` from the
    /// row table.
    pub roots: Vec<Node>,
    /// Source of each slot.
    pub slots: Vec<Source>,
    /// Entries of the slots, followed by the first output, for each row.
    pub table: Stretches,
    /// Numbers that depend on the row.
    pub numbers: Vec<f64>,
    /// Pairs of a sum over near pairs, whose rows are its members and not its pairs.
    pub pairs: Option<Box<Pairs>>,
    /// Places in the text of the first nodes of the graph: those that the text itself has.
    pub spans: Arc<[Span]>,
}

/// A vector-valued function of (t, x, parameters): each output is a sum of terms.
#[derive(Clone, Debug, Default)]
pub struct Functional {
    /// Number of outputs.
    pub outputs: usize,
    /// The terms.
    pub terms: Vec<Term>,
}

impl Term {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.table.rows()
    }

    /// A row of the table.
    pub fn row(&self, row: usize) -> Entries<'_> {
        self.table.row(row)
    }

    /// The term with its outputs moved up by `by`.
    pub(crate) fn with_outputs_moved(self, by: u32) -> Term {
        Term { table: self.table.moved(self.slots.len(), by), ..self }
    }

    /// Calls `f` with every row; for a sum over near pairs, with the row of every pair.
    pub(crate) fn each_row(&self, f: &mut dyn FnMut(Entries)) {
        let Some(pairs) = &self.pairs else { return self.table.each().for_each(f) };
        let mut entries = vec![0; self.table.width()];
        pairs.which.each(&mut |i, j| {
            let [first, second] = [i, j].map(|member| self.row(member));
            for (k, entry) in entries.iter_mut().enumerate() {
                let of_second = pairs.sides.get(k) == Some(&Side::Second);
                *entry = if of_second { second.at(k) } else { first.at(k) };
            }
            f(Entries::of(&entries));
        });
    }

    /// Member of a pair that the outputs belong to, in a sum over near pairs.
    pub(crate) fn output_side(&self) -> Side {
        let outputs = || self.table.each().map(|row| row.last());
        if outputs().zip(outputs().skip(1)).all(|(a, b)| a == b) { Side::Both } else { Side::First }
    }

    /// The term with its rows in stretches in which each number slot reads one number: derivations
    /// for a chain of a million links then treat one of them.
    pub fn evened(&self) -> Term {
        if !self.slots.contains(&Source::Number) {
            return self.clone();
        }
        let of_numbers: Vec<usize> =
            (0..self.slots.len()).filter(|&k| self.slots[k] == Source::Number).collect();
        let number = |row: Entries, k: usize| self.numbers[row.at(k) as usize];
        let (mut table, mut numbers) = (Stretches::new(self.table.width()), Vec::new());
        for stretch in self.table.iter() {
            let same = |a: usize, b: usize| {
                let [a, b] = [a, b].map(|offset| stretch.row(offset));
                of_numbers.iter().all(|&k| number(a, k).to_bits() == number(b, k).to_bits())
            };
            let mut first = 0;
            while first < stretch.rows {
                let end = (first + 1..stretch.rows)
                    .find(|&row| !same(first, row))
                    .unwrap_or(stretch.rows);
                let (mut entries, mut step): (Vec<u32>, Vec<u32>) =
                    (stretch.row(first).iter().collect(), stretch.step.to_vec());
                for &k in &of_numbers {
                    let value = number(stretch.row(first), k);
                    (entries[k], step[k]) = (numbers.len() as u32, 0);
                    numbers.push(value);
                }
                table.push_stretch(entries, step, end - first);
                first = end;
            }
        }
        Term { table, numbers, ..self.clone() }
    }

    /// Upper bound for the number of rows computed in one evaluation.
    pub fn evaluated_rows(&self) -> usize {
        self.pairs.as_ref().map_or(self.rows(), |pairs| pairs.which.pairs())
    }

    /// Parameter that is 0 in a row and by which an operation divides, if there is one.
    fn divisor(&self, operation: Node, row: Entries, parameters: &[f64]) -> Option<Divisor> {
        let Expression::Binary(Binary::Div, above, below) = self.graph.expression(operation) else {
            return None;
        };
        let entries = |node: Node, wanted: Source| {
            let nodes = self.graph.reachable(&[node]).into_iter();
            let slots = nodes.filter_map(move |node| match self.graph.expression(node) {
                Expression::Input(Input::Slot(k)) if self.slots[k as usize] == wanted => Some(k),
                _ => None,
            });
            slots.map(move |k| row.at(k as usize))
        };
        let parameter =
            entries(below, Source::Parameter).find(|&entry| parameters[entry as usize] == 0.0)?;
        Some(Divisor { parameter, over: entries(above, Source::State).collect() })
    }

    /// Slots that each component reads.
    fn slots_of_roots(&self) -> Vec<Vec<usize>> {
        let slots = |root: &Node| {
            let inputs =
                self.graph.reachable(&[*root]).into_iter().map(|node| self.graph.expression(node));
            let slot = |e| {
                if let Expression::Input(Input::Slot(k)) = e { Some(k as usize) } else { None }
            };
            inputs.filter_map(slot).collect()
        };
        self.roots.iter().map(slots).collect()
    }
}

/// Operation that has no finite value.
#[derive(Clone, Debug, PartialEq)]
pub struct NotFinite {
    /// Its place in the text.
    pub span: Span,
    /// The parameter that makes it so, if it divides by one that is 0.
    pub divisor: Option<Divisor>,
}

/// Parameter that is 0, of a quotient.
#[derive(Clone, Debug, PartialEq)]
pub struct Divisor {
    /// Its place among the parameter values.
    pub parameter: u32,
    /// Components of the state that are divided by it.
    pub over: Vec<u32>,
}

/// A compiled template: a kernel whose state is the slots, of one state or of several in lanes.
///
/// Arrays of lanes are ordered by number, then by lane.
pub struct Template {
    kernel: Box<dyn Kernel>,
    parameters: Aligned,
    slots: usize,
}

impl Template {
    /// Compiles `roots` over the slots of a template's graph.
    pub fn new(graph: &Graph, roots: &[Node], slots: usize, backend: &dyn Backend) -> Template {
        Template::in_lanes(graph, roots, slots, (backend, 1))
    }

    /// [`Template::new`] for so many states side by side.
    pub fn in_lanes(
        graph: &Graph,
        roots: &[Node],
        slots: usize,
        (backend, lanes): (&dyn Backend, usize),
    ) -> Template {
        let mut g = Graph::new();
        let roots = g.instantiate(graph, roots, |g, input| match input {
            Input::Slot(k) => g.state(k as usize),
            other => g.input(other),
        });
        let tape = Tape::new(&g, &roots, slots, 0);
        let kernel = backend.compile_any(&tape, lanes);
        Template { parameters: kernel.bind(&[]), kernel, slots }
    }

    /// Number of states side by side.
    pub fn lanes(&self) -> usize {
        self.kernel.lanes()
    }

    /// Scratch needed by [`Template::row`], in numbers.
    pub fn work_len(&self) -> usize {
        (1 + self.slots + self.kernel.outputs()) * self.lanes() + self.kernel.work_len()
    }

    /// Values of the components in a row of `term`.
    pub fn row<'w>(
        &self,
        term: &Term,
        row: Entries,
        t: f64,
        x: &[f64],
        parameters: &[f64],
        work: &'w mut [f64],
    ) -> &'w [f64] {
        self.row_beside(term, row, t, (x, &[]), parameters, work)
    }

    /// [`Template::row`] of a template with twice the slots of `term`: each slot of the second half
    /// reads `beside` in place of the state, or 0 if its source is not the state.
    pub fn row_beside<'w>(
        &self,
        term: &Term,
        row: Entries,
        t: f64,
        (x, beside): (&[f64], &[f64]),
        parameters: &[f64],
        work: &'w mut [f64],
    ) -> &'w [f64] {
        let lanes = self.lanes();
        let (times, work) = work.split_at_mut(lanes);
        let (local, work) = work.split_at_mut(self.slots * lanes);
        let (value, work) = work.split_at_mut(self.kernel.outputs() * lanes);
        let (local_x, local_beside) = local.split_at_mut(term.slots.len() * lanes);
        let take = |local: &mut [f64], all: &[f64], entry: u32| {
            let of_lanes = all[entry as usize * lanes..].iter();
            local.iter_mut().zip(of_lanes).for_each(|(local, &number)| *local = number);
        };
        let slots = || term.slots.iter().zip(row.iter());
        for (local, (source, entry)) in local_x.chunks_exact_mut(lanes).zip(slots()) {
            match source {
                Source::State => take(local, x, entry),
                Source::Parameter => take(local, parameters, entry),
                Source::Number => local.fill(term.numbers[entry as usize]),
            }
        }
        for (local, (source, entry)) in local_beside.chunks_exact_mut(lanes).zip(slots()) {
            match source {
                Source::State => take(local, beside, entry),
                _ => local.fill(0.0),
            }
        }
        times.fill(t);
        self.kernel.run(&self.parameters, times, local, value, work);
        value
    }
}

impl Functional {
    /// These components of the state, or of what follows it.
    pub fn components(range: Range<usize>, span: Span) -> Functional {
        let mut graph = Graph::new();
        let root = graph.input(Input::Slot(0));
        let mut table = Stretches::new(2);
        table.push_rows(vec![range.start as u32, 0], &[1, 1], range.len());
        let spans = vec![span; graph.len()].into();
        let term = Term {
            graph,
            roots: vec![root],
            slots: vec![Source::State],
            table,
            numbers: Vec::new(),
            pairs: None,
            spans,
        };
        Functional { outputs: range.len(), terms: vec![term] }
    }

    /// Formulas of a graph over states and parameters, as one term with one row.
    pub fn of_nodes(graph: &Graph, outputs: &[Node], span: Span) -> Functional {
        let (mut own, mut slots, mut entries) = (Graph::new(), Vec::new(), Vec::new());
        let mut known: FxHashMap<Input, Node> = FxHashMap::default();
        let roots = own.instantiate(graph, outputs, |own, input| {
            let (source, entry) = match input {
                Input::State(k) => (Source::State, k),
                Input::Parameter(k) => (Source::Parameter, k),
                other => return own.input(other),
            };
            *known.entry(input).or_insert_with(|| {
                slots.push(source);
                entries.push(entry);
                own.input(Input::Slot(slots.len() as u32 - 1))
            })
        });
        entries.push(0);
        let mut table = Stretches::new(entries.len());
        table.push(&entries);
        let spans = vec![span; own.len()].into();
        let (numbers, pairs) = (Vec::new(), None);
        let term = Term { graph: own, roots, slots, table, numbers, pairs, spans };
        Functional { outputs: outputs.len(), terms: vec![term] }
    }

    /// Upper bound for the size of the unrolled graph: nodes of every template times its rows.
    pub fn unrolled_size(&self) -> usize {
        self.terms
            .iter()
            .map(|t| t.graph.len().saturating_mul(t.evaluated_rows()))
            .fold(0, usize::saturating_add)
    }

    /// The functional as nodes of `g`: every template instantiated for each of its rows.
    pub fn unroll(&self, g: &mut Graph) -> Vec<Node> {
        self.unroll_over(g, &mut |g, component| g.state(component))
    }

    /// [`Functional::unroll`] with nodes in the place of the components of the state and of what
    /// follows it.
    pub fn unroll_over(
        &self,
        g: &mut Graph,
        state: &mut dyn FnMut(&mut Graph, usize) -> Node,
    ) -> Vec<Node> {
        let zero = g.zero();
        let mut outputs = vec![zero; self.outputs];
        for term in &self.terms {
            let plan = term.graph.reachable(&term.roots);
            term.each_row(&mut |row| {
                let values = g.instantiate_plan(
                    &term.graph,
                    &plan,
                    &term.roots,
                    &mut |g, input| match input {
                        Input::Slot(k) => {
                            let entry = row.at(k as usize);
                            match term.slots[k as usize] {
                                Source::State => state(g, entry as usize),
                                Source::Parameter => g.parameter(entry as usize),
                                Source::Number => g.constant(term.numbers[entry as usize]),
                            }
                        }
                        other => g.input(other),
                    },
                );
                for (component, value) in values.into_iter().enumerate() {
                    let output = &mut outputs[row.last() as usize + component];
                    *output = g.add(*output, value);
                }
            });
        }
        outputs
    }

    /// The functional with terms that are [evened](Term::evened).
    pub fn evened(&self) -> Functional {
        Functional { outputs: self.outputs, terms: self.terms.iter().map(Term::evened).collect() }
    }

    /// The value at (t, x), by a loop over rows.
    pub fn evaluate(&self, t: f64, x: &[f64], parameters: &[f64]) -> Vec<f64> {
        self.evaluate_by(&Interpreter, t, x, parameters)
    }

    /// [`Functional::evaluate`] by templates compiled for `backend`, which pays for a large model.
    pub fn evaluate_by(
        &self,
        backend: &dyn Backend,
        t: f64,
        x: &[f64],
        parameters: &[f64],
    ) -> Vec<f64> {
        let templates = self.templates(backend);
        let mut outputs = vec![0.0; self.outputs];
        self.run(&templates, t, x, parameters, &mut outputs, &mut vec![0.0; work_len(&templates)]);
        outputs
    }

    /// The templates compiled, for [`Functional::run`].
    pub fn templates(&self, backend: &dyn Backend) -> Vec<Template> {
        self.templates_in_lanes(backend, 1)
    }

    /// [`Functional::templates`] for so many states side by side.
    pub fn templates_in_lanes(&self, backend: &dyn Backend, lanes: usize) -> Vec<Template> {
        let compiled =
            |t: &Term| Template::in_lanes(&t.graph, &t.roots, t.slots.len(), (backend, lanes));
        self.terms.iter().map(compiled).collect()
    }

    /// [`Functional::evaluate`] with its own compiled `templates`, for repeated evaluation, in their
    /// lanes: nothing is allocated.
    pub fn run(
        &self,
        templates: &[Template],
        t: f64,
        x: &[f64],
        parameters: &[f64],
        outputs: &mut [f64],
        work: &mut [f64],
    ) {
        outputs.fill(0.0);
        for (term, template) in self.terms.iter().zip(templates) {
            term.each_row(&mut |row| {
                let value = template.row(term, row, t, x, parameters, work);
                let first = row.last() as usize * template.lanes();
                for (output, v) in outputs[first..].iter_mut().zip(value) {
                    *output += v;
                }
            });
        }
    }

    /// Operation from which on values at (t, x) are not finite, or with `differentiated` the
    /// derivatives by the state; `None` if all are finite.
    pub fn not_finite_at(
        &self,
        t: f64,
        x: &[f64],
        parameters: &[f64],
        differentiated: bool,
    ) -> Option<NotFinite> {
        self.terms.iter().find_map(|term| {
            let mut graph = term.graph.clone();
            // Operations with what each contributes, in the order in which numbers are passed on.
            let mut contributions: Vec<(Node, Node)> = Vec::new();
            if differentiated {
                let moves = |input| matches!(input, Input::Slot(k) if term.slots[k as usize] == Source::State);
                for &root in &term.roots {
                    graph.adjoint_by(root, moves, |operation, share| contributions.push((operation, share)));
                }
            } else {
                contributions.extend(graph.reachable(&term.roots).into_iter().map(|node| (node, node)));
            }
            let nodes: Vec<Node> = contributions.iter().map(|&(_, node)| node).collect();
            let template = Template::new(&graph, &nodes, term.slots.len(), &Interpreter);
            let (mut found, mut work) = (None, vec![0.0; template.work_len()]);
            term.each_row(&mut |row| {
                if found.is_none() {
                    let values = template.row(term, row, t, x, parameters, &mut work);
                    let at = values.iter().position(|value| !value.is_finite());
                    found = at.map(|at| (at, term.divisor(contributions[at].0, row, parameters)));
                }
            });
            let (at, divisor) = found?;
            let span = term.spans.get(contributions[at].0.index()).copied();
            Some(NotFinite { span: span?, divisor })
        })
    }

    /// True for each output that reads an entry that is `marked`.
    pub fn reads_marked(&self, marked: impl Fn(Source, u32) -> bool) -> Vec<bool> {
        let mut reads = vec![false; self.outputs];
        for term in &self.terms {
            let slots = term.slots_of_roots();
            for row in term.table.each() {
                for (output, slots) in reads[row.last() as usize..].iter_mut().zip(&slots) {
                    *output |= slots.iter().any(|&k| marked(term.slots[k], row.at(k)));
                }
            }
        }
        reads
    }

    /// True if an output reads a component of the state, or what follows it, in this range.
    pub fn reads_state_within(&self, range: &Range<usize>) -> bool {
        let in_range = |source: &Source, entry: u32| {
            *source == Source::State && range.contains(&(entry as usize))
        };
        let reads = |term: &Term| {
            let row_reads = |row: Entries| {
                term.slots.iter().zip(row.iter()).any(|(source, entry)| in_range(source, entry))
            };
            term.table.iter().any(|s| row_reads(s.row(0)) || row_reads(s.row(s.rows - 1)))
        };
        self.terms.iter().any(reads)
    }

    /// State components that output number `output` reads, increasing.
    pub fn reads(&self, output: usize) -> Vec<u32> {
        let mut found = Vec::new();
        for term in &self.terms {
            let slots = term.slots_of_roots();
            for row in term.table.each() {
                let first = row.last() as usize;
                if !(first..first + term.roots.len()).contains(&output) {
                    continue;
                }
                for &k in &slots[output - first] {
                    if term.slots[k] == Source::State {
                        found.push(row.at(k));
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Scratch needed by [`Functional::run`], in numbers.
pub fn work_len(templates: &[Template]) -> usize {
    templates.iter().map(Template::work_len).max().unwrap_or(0)
}
