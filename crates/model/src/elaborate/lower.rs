//! Checked expressions to term templates.
//!
//! A formula is split at its outermost sums; each summand becomes a template whose slots are the variables
//! it touches, and the ranges of the sums become rows. Whatever depends on a row's indices in a way that
//! changes the *structure* (an `if` on indices, the length of an inner sum, a component picked by an index)
//! is a *decision*; rows that decide alike share a template.

use super::expression::{Draw, Ex, Expression, IndexVariable, Kind, Range, Ranges};
use super::model::{Family, Quantity, Table};
use super::shape::Shape;
use crate::functional::{Functional, Source, Term};
use crate::graph::aligned::Aligned;
use crate::graph::interpret::{Backend, Interpreter, Kernel};
use crate::graph::op::{Binary, Unary};
use crate::graph::tape::Tape;
use crate::graph::{Expression as GraphExpression, Graph, Input, Node};
use crate::start;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Rows of all the terms of one formula, at most.
pub const MOST_ROWS: usize = 20_000_000;
/// Index values that the ranges of one formula may run through, with those that filters leave out.
const MOST_VISITED: usize = 2 * MOST_ROWS;
/// Largest size or index: beyond, doubles no longer count in ones.
pub const LARGEST_INDEX: f64 = 9.0e15;
/// Nodes of one template, at most (a sum inside a nonlinear function is unrolled in its template).
pub const LARGEST_TEMPLATE: usize = 1_000_000;
/// Nodes of all the templates of one formula, at most.
const LARGEST_TEMPLATES: usize = 4_000_000;
/// Summands of one formula that stand by themselves, at most.
const MOST_PIECES: usize = 10_000;
/// Numbers in a state, a parameter list, the outputs of a formula or its row table, at most: a few gigabytes.
pub const MOST_NUMBERS: usize = 500_000_000;

/// What lowering needs to know of the model around an expression.
pub struct Context<'a> {
    /// Families of the variables and the first state component of each.
    pub variables: Vec<(&'a Family, usize)>,
    /// Families of the parameters and the first slot of each.
    pub parameters: Vec<(&'a Family, usize)>,
    /// The constraints and the place of the first multiplier of each, for observables.
    pub multipliers: Vec<(&'a Quantity, usize)>,
    /// The tables.
    pub tables: &'a [Table],
    /// Names of the index variables, for messages.
    pub index_names: &'a [String],
}

/// A lowered formula and the index values of its family's members.
pub struct Lowered {
    /// The formula.
    pub functional: Functional,
    /// Index values, `stride` for each member.
    pub members: Vec<i32>,
    /// Number of members (1 where there is no family).
    pub count: usize,
    /// For a formula without sums and with one template: the roots of that template.
    pub symmetric_hint: Option<(Graph, Vec<Node>)>,
}

/// Lowers `body`, one value for each member of `family`. Its draws are added to `draws`: they are inputs of the
/// formula.
///
/// # Errors
/// Findings that need index values: an index out of range, a size that is not whole, too many rows.
pub fn lower(context: &Context, family: &Ranges, body: &Ex, draws: &mut Vec<Draw>) -> Result<Lowered, Diagnostic> {
    let mut pieces = Vec::new();
    split(body, Piece { ranges: Vec::new(), wrappers: Vec::new(), body: body.clone(), offset: 0 }, &mut pieces)?;
    let components = body.shape.len();
    let mut functional = Functional::default();
    let mut members = Vec::new();
    let mut count = 0;
    for (number, piece) in pieces.iter().enumerate() {
        let choices = vec![Choice::default()];
        let mut builder = Builder {
            context,
            piece,
            components,
            classes: Vec::new(),
            choices,
            rows: 0,
            entries: 0,
            written: 0,
            draws,
        };
        let mut rows = RowLoop { family_depth: family.ranges.len(), member: 0, members: Vec::new(), visited: 0 };
        let loops: Vec<&Ranges> = std::iter::once(family).chain(&piece.ranges).collect();
        rows.run(&mut builder, &loops)?;
        functional.terms.extend(builder.classes.into_iter().map(|c| c.term));
        if number == 0 {
            members = rows.members;
            count = rows.member;
        }
    }
    functional.outputs = count * components;
    if functional.outputs > MOST_NUMBERS {
        return Err(too_many_numbers(functional.outputs, body.span));
    }
    let symmetric_hint = match &functional.terms[..] {
        [only] if pieces.len() == 1 && pieces[0].ranges.is_empty() => Some((only.graph.clone(), only.roots.clone())),
        _ => None,
    };
    Ok(Lowered { functional, members, count, symmetric_hint })
}

/// A state, parameter or formula of more numbers than the limit.
pub(super) fn too_many_numbers(count: usize, span: Span) -> Diagnostic {
    Diagnostic::error(format!("these are {count} numbers, and the limit is {MOST_NUMBERS}"), span, "too many numbers")
}

/// One summand of a formula.
struct Piece {
    /// The sums around it, outermost first.
    ranges: Vec<Ranges>,
    /// What is done to it on the way out, outermost first.
    wrappers: Vec<Wrapper>,
    body: Ex,
    /// Where its components go among the formula's.
    offset: usize,
}

#[derive(Clone)]
enum Wrapper {
    Negate,
    Scale(Ex),
    Divide(Ex),
}

/// Splits `e` at sums that stand in linear position.
fn split(e: &Ex, around: Piece, out: &mut Vec<Piece>) -> Result<(), Diagnostic> {
    let with = |wrapper: Option<Wrapper>, body: &Ex| Piece {
        ranges: around.ranges.clone(),
        wrappers: around.wrappers.iter().cloned().chain(wrapper).collect(),
        body: body.clone(),
        offset: around.offset,
    };
    let moves = super::expression::DYNAMIC | super::expression::MULTIPLIER;
    let linear = |factor: &Ex| factor.depends & moves == 0 && !factor.has_sum;
    match &e.kind {
        Kind::Sum(ranges, body) => {
            let mut piece = with(None, body);
            piece.ranges.push(ranges.clone());
            split(body, piece, out)
        }
        Kind::Add(terms) if e.has_sum => {
            for (negative, term) in terms {
                split(term, with(negative.then_some(Wrapper::Negate), term), out)?;
            }
            Ok(())
        }
        Kind::Unary(Unary::Neg, a) if e.has_sum => split(a, with(Some(Wrapper::Negate), a), out),
        Kind::Scale(c, a) if a.has_sum && linear(c) => split(a, with(Some(Wrapper::Scale(c.clone())), a), out),
        Kind::Divide(a, c) if a.has_sum && linear(c) => split(a, with(Some(Wrapper::Divide(c.clone())), a), out),
        // A product of scalars is commutative: either factor may hold the sum.
        Kind::Binary(Binary::Mul, a, c) if a.has_sum && linear(c) => {
            split(a, with(Some(Wrapper::Scale(c.clone())), a), out)
        }
        Kind::Binary(Binary::Mul, c, a) if a.has_sum && linear(c) => {
            split(a, with(Some(Wrapper::Scale(c.clone())), a), out)
        }
        Kind::Binary(Binary::Div, a, c) if a.has_sum && linear(c) => {
            split(a, with(Some(Wrapper::Divide(c.clone())), a), out)
        }
        Kind::Stack(entries) if e.has_sum => {
            let mut offset = around.offset;
            for entry in entries {
                let mut piece = with(None, entry);
                piece.offset = offset;
                offset += entry.shape.len();
                split(entry, piece, out)?;
            }
            Ok(())
        }
        _ if out.len() == MOST_PIECES => Err(Diagnostic::error(
            format!("this formula has more than {MOST_PIECES} summands, with every `let` written out"),
            e.span,
            "too many",
        )),
        _ => {
            out.push(with(None, e));
            Ok(())
        }
    }
}

/// Runs through the rows of nested ranges; the first `family_depth` of them number the members.
struct RowLoop {
    family_depth: usize,
    member: usize,
    members: Vec<i32>,
    /// Index values gone through at every level: rows that a filter leaves out cost time as well.
    visited: usize,
}

impl RowLoop {
    fn run(&mut self, builder: &mut Builder, loops: &[&Ranges]) -> Result<(), Diagnostic> {
        let flat: Vec<&Range> = loops.iter().flat_map(|l| &l.ranges).collect();
        // A filter is decided once the ranges of its own sum are set.
        let mut filters: Vec<Vec<&Ex>> = vec![Vec::new(); flat.len() + 1];
        let mut depth = 0;
        for l in loops {
            depth += l.ranges.len();
            filters[depth].extend(&l.filter);
        }
        let mut names = IndexNames::new(builder.context, &flat);
        let mut row = Vec::new();
        self.descend(builder, &flat, &filters, &mut names, &mut row)
    }

    fn descend<'e>(
        &mut self,
        builder: &mut Builder,
        flat: &[&'e Range],
        filters: &[Vec<&'e Ex>],
        names: &mut IndexNames,
        row: &mut Vec<f64>,
    ) -> Result<(), Diagnostic> {
        let depth = row.len();
        self.visited += 1;
        if self.visited > MOST_VISITED {
            return Err(Diagnostic::error(
                format!("the ranges run through more than {MOST_VISITED} index values"),
                builder.piece.body.span,
                "too many rows",
            )
            .help(format!("a family or sum may have at most {MOST_ROWS} rows")));
        }
        for filter in &filters[depth] {
            if names.checked(filter, row)? == 0.0 {
                return Ok(());
            }
        }
        if depth == self.family_depth {
            self.member += 1;
            self.members.extend(row.iter().map(|&i| i as i32));
        }
        if depth == flat.len() {
            builder.row(names, row, self.member - 1)?;
        } else {
            let range = flat[depth];
            let low = names.whole(&range.low, row, "the first value of a range")?;
            let high = names.whole(&range.high, row, "the last value of a range")?;
            if high - low + 1.0 > MOST_ROWS as f64 {
                return Err(Diagnostic::error(
                    format!("the range {low}..{high} has more rows than the limit of {MOST_ROWS}"),
                    range.span,
                    "too many rows",
                )
                .help(format!("a family or sum may have at most {MOST_ROWS} rows")));
            }
            let mut i = low;
            while i <= high {
                row.push(i);
                self.descend(builder, flat, filters, names, row)?;
                row.pop();
                i += 1.0;
            }
        }
        Ok(())
    }
}

/// Index expressions of one piece: a graph whose state are the row's index values.
struct IndexNames<'a> {
    context: &'a Context<'a>,
    rows: Vec<IndexVariable>,
    graph: Graph,
    /// Inner sums' indices, as functions of the row.
    bound: FxHashMap<IndexVariable, Node>,
    /// Compiled evaluations, by node.
    kernels: FxHashMap<Node, (Box<dyn Kernel>, Aligned)>,
    /// The ranges' ends and filters of the rows with what they need to be true.
    known: FxHashMap<*const Expression, (Node, Vec<Guard>)>,
    work: Vec<f64>,
}

/// Results by expression, for those that are shared.
type Memo = FxHashMap<*const Expression, Vec<Node>>;

/// Where a walk over an index expression has been: shared expressions, with the condition that leads there.
#[derive(Default)]
struct Seen {
    pairs: FxHashSet<(*const Expression, Node)>,
    visits: usize,
}

impl<'a> IndexNames<'a> {
    fn new(context: &'a Context<'a>, flat: &[&Range]) -> Self {
        IndexNames {
            context,
            rows: flat.iter().map(|r| r.index).collect(),
            graph: Graph::new(),
            bound: FxHashMap::default(),
            kernels: FxHashMap::default(),
            known: FxHashMap::default(),
            work: Vec::new(),
        }
    }

    /// A scalar index expression as a function of the row.
    fn node(&mut self, e: &Ex) -> Node {
        self.nodes(e, &mut Memo::default())[0]
    }

    /// The components of an expression of numbers and indices.
    fn nodes(&mut self, e: &Ex, memo: &mut Memo) -> Vec<Node> {
        let shared = Arc::strong_count(e) > 1;
        if shared && let Some(known) = memo.get(&Arc::as_ptr(e)) {
            return known.clone();
        }
        let nodes = self.new_nodes(e, memo);
        if shared {
            memo.insert(Arc::as_ptr(e), nodes.clone());
        }
        nodes
    }

    fn new_nodes(&mut self, e: &Ex, memo: &mut Memo) -> Vec<Node> {
        match &e.kind {
            Kind::Number(v) => vec![self.graph.constant(*v)],
            Kind::Index(variable) => match self.bound.get(variable) {
                Some(&node) => vec![node],
                None => {
                    let k = self.rows.iter().position(|r| r == variable).expect("an index is used where it is bound");
                    vec![self.graph.state(k)]
                }
            },
            Kind::Unary(op, a) => self.nodes(a, memo).into_iter().map(|a| self.graph.unary(*op, a)).collect(),
            Kind::Binary(op, a, b) => {
                let (a, b) = (self.nodes(a, memo)[0], self.nodes(b, memo)[0]);
                vec![match op {
                    Binary::Pow => self.graph.pow(a, b),
                    _ => self.graph.binary(*op, a, b),
                }]
            }
            Kind::Add(terms) => {
                let mut sum = vec![self.graph.zero(); e.shape.len()];
                for (negative, term) in terms {
                    for (s, t) in sum.iter_mut().zip(self.nodes(term, memo)) {
                        *s = if *negative { self.graph.sub(*s, t) } else { self.graph.add(*s, t) };
                    }
                }
                sum
            }
            Kind::Scale(c, a) => {
                let c = self.nodes(c, memo)[0];
                self.nodes(a, memo).into_iter().map(|a| self.graph.mul(c, a)).collect()
            }
            Kind::Divide(a, c) => {
                let c = self.nodes(c, memo)[0];
                self.nodes(a, memo).into_iter().map(|a| self.graph.div(a, c)).collect()
            }
            Kind::Product(a, b) => {
                let (left, right) = (self.nodes(a, memo), self.nodes(b, memo));
                product(&mut self.graph, a.shape, &left, &right)
            }
            Kind::Select(c, a, b) => {
                let (c, a, b) = (self.nodes(c, memo)[0], self.nodes(a, memo), self.nodes(b, memo));
                a.into_iter().zip(b).map(|(a, b)| self.graph.select(c, a, b)).collect()
            }
            Kind::Stack(entries) => entries.iter().flat_map(|entry| self.nodes(entry, memo)).collect(),
            Kind::Identity => identity(&mut self.graph, e.shape),
            Kind::Linear(function, arguments) => {
                let shapes: Vec<Shape> = arguments.iter().map(|a| a.shape).collect();
                let values: Vec<Vec<Node>> = arguments.iter().map(|a| self.nodes(a, memo)).collect();
                (function.row().lower)(&mut self.graph, &shapes, &values)
            }
            // A `let` of indices and numbers; its own index values are guarded.
            Kind::Member(_, _, _, body) => self.nodes(body, memo),
            Kind::Component(base, list) => {
                let entries = self.nodes(base, memo);
                let axes: Vec<Node> = list.iter().map(|index| self.nodes(index, memo)[0]).collect();
                vec![self.pick(&entries, &axes, &base.shape.dimensions())]
            }
            other => unreachable!("an index expression of numbers and indices, not {other:?}"),
        }
    }

    /// `(0.4, -0.8, 0.4)[s]`: a component picked by the row, as a chain of choices.
    fn pick(&mut self, entries: &[Node], axes: &[Node], sizes: &[usize]) -> Node {
        let mut at = self.graph.zero();
        for (&axis, &size) in axes.iter().zip(sizes) {
            let (size, one) = (self.graph.constant(size as f64), self.graph.one());
            let (before, here) = (self.graph.mul(at, size), self.graph.sub(axis, one));
            at = self.graph.add(before, here);
        }
        let mut result = self.graph.constant(f64::NAN);
        for (k, &entry) in entries.iter().enumerate() {
            let k = self.graph.constant(k as f64);
            let here = self.graph.binary(Binary::Equal, at, k);
            result = self.graph.select(here, entry, result);
        }
        result
    }

    /// What must be true of the row where `e` stands: every component that it picks and every `let` member
    /// that it uses exists.
    fn guards_of(&mut self, e: &Ex, out: &mut Vec<Guard>) -> Result<(), Diagnostic> {
        let always = self.graph.one();
        self.collect(e, always, &mut Seen::default(), out)
    }

    /// [`IndexNames::guards_of`] where `when` is not 0.
    fn collect(&mut self, e: &Ex, when: Node, seen: &mut Seen, out: &mut Vec<Guard>) -> Result<(), Diagnostic> {
        if Arc::strong_count(e) > 1 && !seen.pairs.insert((Arc::as_ptr(e), when)) {
            return Ok(());
        }
        seen.visits += 1;
        if seen.visits > LARGEST_TEMPLATE {
            return Err(Diagnostic::error(
                format!(
                    "this index expression has more than {LARGEST_TEMPLATE} operations, with every choice written out"
                ),
                e.span,
                "too large",
            ));
        }
        match &e.kind {
            Kind::Member(name, checks, filter, body) => {
                for (index, _) in checks {
                    self.collect(index, when, seen, out)?;
                }
                let values: Vec<Node> = checks.iter().map(|(index, _)| self.node(index)).collect();
                // The ranges may use the let's own earlier indices: bind them to the values asked for.
                let outer: Vec<Option<Node>> = checks.iter().map(|(_, r)| self.bound.get(&r.index).copied()).collect();
                for ((_, range), &value) in checks.iter().zip(&values) {
                    self.bound.insert(range.index, value);
                    self.collect(&range.low, when, seen, out)?;
                    self.collect(&range.high, when, seen, out)?;
                    let between = Some((self.node(&range.low), self.node(&range.high)));
                    out.push(Guard { name: name.clone(), when, value, between, span: e.span });
                }
                if let Some(filter) = filter {
                    self.collect(filter, when, seen, out)?;
                    let value = self.node(filter);
                    out.push(Guard { name: name.clone(), when, value, between: None, span: e.span });
                }
                for ((_, range), outer) in checks.iter().zip(outer) {
                    match outer {
                        Some(node) => self.bound.insert(range.index, node),
                        None => self.bound.remove(&range.index),
                    };
                }
                // Of a body that is more than an index expression its own lowering takes care.
                if body.is_index() {
                    self.collect(body, when, seen, out)?;
                }
            }
            Kind::Component(base, list) if e.is_index() => {
                for (index, &size) in list.iter().zip(&base.shape.dimensions()) {
                    self.collect(index, when, seen, out)?;
                    let value = self.node(index);
                    let between = Some((self.graph.one(), self.graph.constant(size as f64)));
                    out.push(Guard { name: "the list".to_string(), when, value, between, span: e.span });
                }
                self.collect(base, when, seen, out)?;
            }
            // A branch that is not taken need not exist.
            Kind::Select(c, a, b) if c.is_index() => {
                self.collect(c, when, seen, out)?;
                let c = self.node(c);
                let not = self.graph.unary(Unary::Not, c);
                let (first, second) =
                    (self.graph.binary(Binary::And, when, c), self.graph.binary(Binary::And, when, not));
                self.collect(a, first, seen, out)?;
                self.collect(b, second, seen, out)?;
            }
            kind => {
                let mut result = Ok(());
                kind.for_each_part(&mut |part| {
                    if result.is_ok() {
                        result = self.collect(part, when, seen, out);
                    }
                });
                result?;
            }
        }
        Ok(())
    }

    /// Whether the row meets a guard.
    fn check(&mut self, guard: &Guard, row: &[f64]) -> Result<(), Diagnostic> {
        if self.evaluate_node(guard.when, row) == 0.0 {
            return Ok(());
        }
        let value = self.evaluate_node(guard.value, row);
        let Some((low, high)) = guard.between else {
            if value != 0.0 {
                return Ok(());
            }
            let message = format!("'{}' has no member here{}", guard.name, self.with(row));
            return Err(Diagnostic::error(message, guard.span, "left out by its condition"));
        };
        let [low, high] = [low, high].map(|n| self.evaluate_node(n, row));
        let value = self.check_whole(value, guard.span, row, "an index")?;
        if value < low || value > high {
            let message = format!("index {value} of '{}' is outside {low}..{high}{}", guard.name, self.with(row));
            return Err(Diagnostic::error(message, guard.span, "no such member"));
        }
        Ok(())
    }

    fn evaluate_node(&mut self, node: Node, row: &[f64]) -> f64 {
        if let Some(v) = self.graph.value(node) {
            return v;
        }
        // The common forms i, i + 1, i - 1 without a kernel.
        let state = |n: Node| match self.graph.expression(n) {
            GraphExpression::Input(Input::State(k)) => Some(row[k as usize]),
            _ => self.graph.value(n),
        };
        match self.graph.expression(node) {
            GraphExpression::Input(_) => return state(node).expect("an index is a state of its graph"),
            GraphExpression::Binary(op, a, b) => {
                if let (Some(a), Some(b)) = (state(a), state(b)) {
                    return op.evaluate(a, b);
                }
            }
            _ => {}
        }
        let graph = &self.graph;
        let states = self.rows.len();
        let (kernel, bound) = self.kernels.entry(node).or_insert_with(|| {
            let kernel =
                Interpreter.compile(&Tape::new(graph, &[node], states, 0), 1).expect("the interpreter never refuses");
            let bound = kernel.bind(&[]);
            (kernel, bound)
        });
        self.work.resize(kernel.work_len().max(self.work.len()), 0.0);
        let mut x = vec![0.0; states];
        x[..row.len()].copy_from_slice(row);
        let mut out = [0.0];
        kernel.run(bound, &[0.0], &x, &mut out, &mut self.work);
        out[0]
    }

    /// The value of a range's end or of a filter, with what it picks checked.
    fn checked(&mut self, e: &Ex, row: &[f64]) -> Result<f64, Diagnostic> {
        let key = Arc::as_ptr(e);
        if !self.known.contains_key(&key) {
            let mut guards = Vec::new();
            self.guards_of(e, &mut guards)?;
            let node = self.node(e);
            self.known.insert(key, (node, guards));
        }
        let (node, count) = {
            let (node, guards) = &self.known[&key];
            (*node, guards.len())
        };
        for k in 0..count {
            let guard = self.known[&key].1[k].clone();
            self.check(&guard, row)?;
        }
        Ok(self.evaluate_node(node, row))
    }

    fn whole(&mut self, e: &Ex, row: &[f64], what: &str) -> Result<f64, Diagnostic> {
        let value = self.checked(e, row)?;
        self.check_whole(value, e.span, row, what)
    }

    fn check_whole(&self, value: f64, span: Span, row: &[f64], what: &str) -> Result<f64, Diagnostic> {
        if value.fract() == 0.0 && value.abs() <= LARGEST_INDEX {
            return Ok(value);
        }
        let message = format!("{what} must be an integer, and this is {value}{}", self.with(row));
        Err(Diagnostic::error(message, span, "not an integer")
            .help("index arithmetic is exact: 3*(a-1)+s is fine, i/2 only where it divides"))
    }

    /// " (with i = 3, j = 4)", or nothing where no index is set.
    fn with(&self, row: &[f64]) -> String {
        if row.is_empty() {
            return String::new();
        }
        let list: Vec<String> = self
            .rows
            .iter()
            .zip(row)
            .map(|(&v, i)| format!("{} = {i}", self.context.index_names[v as usize]))
            .collect();
        format!(" (with {})", list.join(", "))
    }
}

/// What a slot reads, as a function of the row.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Slot {
    Variable { variable: usize, component: u32, indices: Vec<Node> },
    Parameter { parameter: usize, component: u32, indices: Vec<Node> },
    Multiplier { constraint: usize, component: u32, indices: Vec<Node> },
    Number(Node),
    Table { table: usize, column: usize, row: Node },
    Trajectory,
    Draw { draw: Draw, ordinal: u32 },
}

/// An index of a list or of a `let` family with the range that it must lie in, or the condition of a family
/// that must hold.
#[derive(Clone)]
struct Guard {
    name: String,
    /// Where this is 0, nothing is asked.
    when: Node,
    value: Node,
    /// `None` for a condition.
    between: Option<(Node, Node)>,
    span: Span,
}

/// A place in the tree of decisions: rows that decide alike end at the same class.
#[derive(Default)]
struct Choice {
    /// What is decided here, where anything is.
    question: Option<Node>,
    /// The next place, by the bits of the answer.
    answers: FxHashMap<u64, usize>,
    class: Option<usize>,
}

/// Rows that share a template.
struct Class {
    guards: Vec<Guard>,
    slots: Vec<(Slot, Span)>,
    term: Term,
}

struct Builder<'a> {
    context: &'a Context<'a>,
    piece: &'a Piece,
    components: usize,
    classes: Vec<Class>,
    /// The root is first.
    choices: Vec<Choice>,
    rows: usize,
    /// Entries of all row tables.
    entries: usize,
    /// Nodes of all templates.
    written: usize,
    draws: &'a mut Vec<Draw>,
}

impl Builder<'_> {
    /// Adds one row.
    fn row(&mut self, names: &mut IndexNames, row: &[f64], member: usize) -> Result<(), Diagnostic> {
        self.rows += 1;
        if self.rows > MOST_ROWS {
            return Err(Diagnostic::error(
                format!("this needs more than {MOST_ROWS} rows"),
                self.piece.body.span,
                "too many rows",
            )
            .help(format!("a family or sum may have at most {MOST_ROWS} rows")));
        }
        let class = self.class(names, row)?;
        let class = &mut self.classes[class];
        self.entries += class.slots.len();
        if self.entries > MOST_NUMBERS {
            return Err(too_many_numbers(self.entries, self.piece.body.span));
        }
        for guard in &class.guards {
            names.check(guard, row)?;
        }
        for (slot, span) in &class.slots {
            let entry = resolve(self.context, names, row, slot, *span, &mut class.term, self.draws)?;
            class.term.table.push(entry);
        }
        class.term.first_output.push((member * self.components + self.piece.offset) as u32);
        Ok(())
    }

    /// The class of a row, new where no row has decided like this one.
    fn class(&mut self, names: &mut IndexNames, row: &[f64]) -> Result<usize, Diagnostic> {
        let mut at = 0;
        while let Some(question) = self.choices[at].question {
            let answer = names.evaluate_node(question, row).to_bits();
            match self.choices[at].answers.get(&answer) {
                Some(&next) => at = next,
                None => break,
            }
        }
        if let Some(class) = self.choices[at].class {
            return Ok(class);
        }
        let (class, decisions) = self.template(names, row)?;
        self.written += class.term.graph.len();
        if self.written > LARGEST_TEMPLATES {
            return Err(Diagnostic::error(
                format!(
                    "the rows of this formula differ so much that they take more than {LARGEST_TEMPLATES} operations"
                ),
                self.piece.body.span,
                "too large",
            )
            .help("a sum inside a nonlinear function is written out for each of its lengths"));
        }
        // The same questions come in the same order for all rows that have answered alike so far.
        let mut at = 0;
        for (question, answer) in decisions {
            self.choices[at].question = Some(question);
            let new = self.choices.len();
            let next = *self.choices[at].answers.entry(answer.to_bits()).or_insert(new);
            if next == new {
                self.choices.push(Choice::default());
            }
            at = next;
        }
        self.choices[at].class = Some(self.classes.len());
        self.classes.push(class);
        Ok(self.classes.len() - 1)
    }

    /// The template of a row and the decisions that led to it.
    fn template(&self, names: &mut IndexNames, row: &[f64]) -> Result<(Class, Vec<(Node, f64)>), Diagnostic> {
        let mut lowering = Lowering {
            names,
            row,
            graph: Graph::new(),
            slots: Vec::new(),
            known: FxHashMap::default(),
            decisions: Vec::new(),
            guards: Vec::new(),
            memo: FxHashMap::default(),
            scope: 0,
            scopes: 0,
            steps: 0,
        };
        let mut roots = lowering.lower(&self.piece.body)?;
        for wrapper in self.piece.wrappers.iter().rev() {
            roots = match wrapper {
                Wrapper::Negate => roots.iter().map(|&r| lowering.graph.neg(r)).collect(),
                Wrapper::Scale(c) => {
                    let c = lowering.lower(c)?[0];
                    roots.iter().map(|&r| lowering.graph.mul(c, r)).collect()
                }
                Wrapper::Divide(c) => {
                    let c = lowering.lower(c)?[0];
                    roots.iter().map(|&r| lowering.graph.div(r, c)).collect()
                }
            };
        }
        let slots = lowering
            .slots
            .iter()
            .map(|(slot, _)| match slot {
                // What a trajectory brings along stands where the state does: a start's formulas read no state.
                // Multipliers follow the state.
                Slot::Variable { .. } | Slot::Multiplier { .. } | Slot::Trajectory | Slot::Draw { .. } => Source::State,
                Slot::Parameter { .. } => Source::Parameter,
                Slot::Number(_) | Slot::Table { .. } => Source::Number,
            })
            .collect();
        let class = Class {
            guards: lowering.guards,
            slots: lowering.slots,
            term: Term {
                graph: lowering.graph,
                roots,
                slots,
                table: Vec::new(),
                first_output: Vec::new(),
                numbers: Vec::new(),
            },
        };
        Ok((class, lowering.decisions))
    }
}

/// The entry of the row table for one slot.
fn resolve(
    context: &Context,
    names: &mut IndexNames,
    row: &[f64],
    slot: &Slot,
    span: Span,
    term: &mut Term,
    draws: &mut Vec<Draw>,
) -> Result<u32, Diagnostic> {
    let mut number = |value: f64| {
        term.numbers.push(value);
        term.numbers.len() as u32 - 1
    };
    match slot {
        Slot::Variable { variable, component, indices } => {
            let (family, first) = context.variables[*variable];
            let member = member(names, family, indices, row, span)?;
            Ok((first + member * family.shape.len()) as u32 + component)
        }
        Slot::Parameter { parameter, component, indices } => {
            let (family, first) = context.parameters[*parameter];
            let member = member(names, family, indices, row, span)?;
            Ok((first + member * family.shape.len()) as u32 + component)
        }
        Slot::Multiplier { constraint, component, indices } => {
            let (quantity, first) = context.multipliers[*constraint];
            let mut values = Vec::with_capacity(indices.len());
            for &node in indices {
                let value = names.evaluate_node(node, row);
                let what = format!("an index of '{}'", quantity.name);
                values.push(names.check_whole(value, span, row, &what)? as i64);
            }
            let Some(member) = quantity.member(&values) else {
                let list: Vec<String> = values.iter().map(i64::to_string).collect();
                let message =
                    format!("constraint '{}' has no member [{}]{}", quantity.name, list.join(","), names.with(row));
                return Err(Diagnostic::error(message, span, "no such member").related(quantity.span, "declared here"));
            };
            Ok((first + member * quantity.shape.len()) as u32 + component)
        }
        Slot::Number(node) => Ok(number(names.evaluate_node(*node, row))),
        Slot::Trajectory => Ok(start::TRAJECTORY),
        Slot::Draw { draw, .. } => {
            if draws.len() == MOST_NUMBERS {
                return Err(too_many_numbers(draws.len() + 1, span));
            }
            draws.push(*draw);
            Ok(start::FIRST_DRAW + draws.len() as u32 - 1)
        }
        Slot::Table { table, column, row: node } => {
            let table = &context.tables[*table];
            let at = names.evaluate_node(*node, row);
            let at = names.check_whole(at, span, row, "a row of a table")?;
            if at < 1.0 || at > table.rows as f64 {
                let message =
                    format!("row {at} of table '{}' is outside 1..{}{}", table.name, table.rows, names.with(row));
                return Err(Diagnostic::error(message, span, "no such row"));
            }
            Ok(number(table.columns[*column].1[at as usize - 1]))
        }
    }
}

/// The number of the family's member with these index values.
fn member(
    names: &mut IndexNames,
    family: &Family,
    indices: &[Node],
    row: &[f64],
    span: Span,
) -> Result<usize, Diagnostic> {
    let mut number = 0;
    for (k, &node) in indices.iter().enumerate() {
        let (low, high) = family.bounds[k];
        let value = names.evaluate_node(node, row);
        let value = names.check_whole(value, span, row, &format!("an index of '{}'", family.name))? as i64;
        if value < low || value > high {
            let message = format!("index {value} of '{}' is outside {low}..{high}{}", family.name, names.with(row));
            return Err(Diagnostic::error(message, span, format!("{} = {value} does not exist", family.indices[k])));
        }
        number = number * (high - low + 1) as usize + (value - low) as usize;
    }
    Ok(number)
}

struct Lowering<'l, 'a> {
    names: &'l mut IndexNames<'a>,
    row: &'l [f64],
    graph: Graph,
    slots: Vec<(Slot, Span)>,
    known: FxHashMap<Slot, Node>,
    decisions: Vec<(Node, f64)>,
    guards: Vec<Guard>,
    /// Results by expression and scope: a shared sub-expression is lowered once.
    memo: FxHashMap<(*const Expression, u32), Vec<Node>>,
    scope: u32,
    scopes: u32,
    /// Terms of inner sums gone through.
    steps: usize,
}

impl Lowering<'_, '_> {
    fn decide(&mut self, node: Node) -> f64 {
        let value = self.names.evaluate_node(node, self.row);
        if self.names.graph.value(node).is_none() && !self.decisions.iter().any(|&(n, _)| n == node) {
            self.decisions.push((node, value));
        }
        value
    }

    fn slot(&mut self, slot: Slot, span: Span) -> Node {
        if let Some(&node) = self.known.get(&slot) {
            return node;
        }
        let node = self.graph.input(Input::Slot(self.slots.len() as u32));
        self.slots.push((slot.clone(), span));
        self.known.insert(slot, node);
        node
    }

    fn indices(&mut self, list: &[Ex]) -> Result<Vec<Node>, Diagnostic> {
        list.iter()
            .map(|e| {
                self.guard(e)?;
                Ok(self.names.node(e))
            })
            .collect()
    }

    fn scalar(&mut self, e: &Ex) -> Result<Node, Diagnostic> {
        Ok(self.lower(e)?[0])
    }

    fn lower(&mut self, e: &Ex) -> Result<Vec<Node>, Diagnostic> {
        // What no inner sum binds means the same in every scope of this row.
        let scope = if e.depends & super::expression::INDEX == 0 { 0 } else { self.scope };
        let key = (Arc::as_ptr(e), scope);
        if let Some(nodes) = self.memo.get(&key) {
            return Ok(nodes.clone());
        }
        let nodes = self.lower_new(e)?;
        if self.graph.len() > LARGEST_TEMPLATE {
            return Err(Diagnostic::error(
                format!("this expression unrolls to more than {LARGEST_TEMPLATE} operations"),
                e.span,
                "too large",
            )
            .help(
                "a sum inside a nonlinear function is written out in full; sums that are only added up are not limited",
            ));
        }
        self.memo.insert(key, nodes.clone());
        Ok(nodes)
    }

    fn lower_new(&mut self, e: &Ex) -> Result<Vec<Node>, Diagnostic> {
        if e.depends & super::expression::INDEX != 0 && e.is_index() && e.shape == Shape::Scalar {
            self.guard(e)?;
            let node = self.names.node(e);
            return Ok(vec![match self.names.graph.value(node) {
                Some(v) => self.graph.constant(v),
                None => self.slot(Slot::Number(node), e.span),
            }]);
        }
        match &e.kind {
            Kind::Number(v) => Ok(vec![self.graph.constant(*v)]),
            Kind::Time => Ok(vec![self.graph.input(Input::Time)]),
            Kind::Index(_) => unreachable!("handled above"),
            Kind::Variable(variable, list) => {
                let indices = self.indices(list)?;
                Ok((0..e.shape.len() as u32)
                    .map(|component| {
                        self.slot(Slot::Variable { variable: *variable, component, indices: indices.clone() }, e.span)
                    })
                    .collect())
            }
            Kind::Parameter(parameter, list) => {
                let indices = self.indices(list)?;
                Ok((0..e.shape.len() as u32)
                    .map(|component| {
                        self.slot(
                            Slot::Parameter { parameter: *parameter, component, indices: indices.clone() },
                            e.span,
                        )
                    })
                    .collect())
            }
            Kind::Multiplier(constraint, list) => {
                let indices = self.indices(list)?;
                Ok((0..e.shape.len() as u32)
                    .map(|component| {
                        let indices = indices.clone();
                        self.slot(Slot::Multiplier { constraint: *constraint, component, indices }, e.span)
                    })
                    .collect())
            }
            Kind::Table(table, column, row) => {
                let row = self.indices(std::slice::from_ref(row))?[0];
                Ok(vec![self.slot(Slot::Table { table: *table, column: *column, row }, e.span)])
            }
            Kind::Trajectory => Ok(vec![self.slot(Slot::Trajectory, e.span)]),
            Kind::Draw(draw) => {
                let count = e.shape.len();
                Ok((0..count)
                    .map(|_| {
                        let ordinal = self.slots.len() as u32;
                        self.slot(Slot::Draw { draw: *draw, ordinal }, e.span)
                    })
                    .collect())
            }
            Kind::Member(_, _, _, body) => {
                self.guard(e)?;
                self.lower(body)
            }
            Kind::Unary(op, a) => {
                let a = self.lower(a)?;
                Ok(a.into_iter().map(|a| self.graph.unary(*op, a)).collect())
            }
            Kind::Binary(op, a, b) => {
                let (a, b) = (self.scalar(a)?, self.scalar(b)?);
                Ok(vec![match op {
                    Binary::Pow => self.graph.pow(a, b),
                    _ => self.graph.binary(*op, a, b),
                }])
            }
            Kind::Add(terms) => {
                let zero = self.graph.zero();
                let mut sum = vec![zero; e.shape.len()];
                for (negative, term) in terms {
                    let term = self.lower(term)?;
                    for (s, t) in sum.iter_mut().zip(term) {
                        *s = if *negative { self.graph.sub(*s, t) } else { self.graph.add(*s, t) };
                    }
                }
                Ok(sum)
            }
            Kind::Scale(c, a) => {
                let (c, a) = (self.scalar(c)?, self.lower(a)?);
                Ok(a.into_iter().map(|a| self.graph.mul(c, a)).collect())
            }
            Kind::Divide(a, c) => {
                let (a, c) = (self.lower(a)?, self.scalar(c)?);
                Ok(a.into_iter().map(|a| self.graph.div(a, c)).collect())
            }
            Kind::Product(a, b) => {
                let (left, right) = (self.lower(a)?, self.lower(b)?);
                Ok(product(&mut self.graph, a.shape, &left, &right))
            }
            Kind::Select(c, a, b) => {
                if c.is_index() {
                    self.guard(c)?;
                    let condition = self.names.node(c);
                    return if self.decide(condition) != 0.0 { self.lower(a) } else { self.lower(b) };
                }
                let c = self.scalar(c)?;
                let (a, b) = (self.lower(a)?, self.lower(b)?);
                Ok(a.into_iter().zip(b).map(|(a, b)| self.graph.select(c, a, b)).collect())
            }
            Kind::Stack(entries) => {
                let mut all = Vec::with_capacity(e.shape.len());
                for entry in entries {
                    all.extend(self.lower(entry)?);
                }
                Ok(all)
            }
            Kind::Component(base, list) => {
                let mut position = 0;
                for (index, &size) in list.iter().zip(&base.shape.dimensions()) {
                    self.guard(index)?;
                    let node = self.names.node(index);
                    let value = self.decide(node);
                    let value = self.names.check_whole(value, index.span, self.row, "an index")?;
                    if value < 1.0 || value > size as f64 {
                        let message = format!("index {value} is outside 1..{size}{}", self.names.with(self.row));
                        return Err(Diagnostic::error(
                            message,
                            index.span,
                            format!("this has the shape {}", base.shape),
                        ));
                    }
                    position = position * size + value as usize - 1;
                }
                // Of a variable or parameter only the component that is picked becomes a slot.
                let component = position as u32;
                Ok(vec![match &base.kind {
                    Kind::Variable(variable, list) => {
                        let indices = self.indices(list)?;
                        self.slot(Slot::Variable { variable: *variable, component, indices }, base.span)
                    }
                    Kind::Parameter(parameter, list) => {
                        let indices = self.indices(list)?;
                        self.slot(Slot::Parameter { parameter: *parameter, component, indices }, base.span)
                    }
                    _ => self.lower(base)?[position],
                }])
            }
            Kind::Identity => Ok(identity(&mut self.graph, e.shape)),
            Kind::Linear(function, arguments) => {
                let shapes: Vec<Shape> = arguments.iter().map(|a| a.shape).collect();
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.lower(argument)?);
                }
                Ok((function.row().lower)(&mut self.graph, &shapes, &values))
            }
            Kind::Sum(ranges, body) => {
                let zero = self.graph.zero();
                let mut sum = vec![zero; e.shape.len()];
                self.inner_sum(&ranges.ranges, ranges.filter.as_ref(), body, &mut sum)?;
                Ok(sum)
            }
        }
    }

    /// A sum inside a nonlinear function: written out, its length a decision.
    fn inner_sum(
        &mut self,
        ranges: &[Range],
        filter: Option<&Ex>,
        body: &Ex,
        sum: &mut [Node],
    ) -> Result<(), Diagnostic> {
        let [range, rest @ ..] = ranges else {
            self.steps += 1;
            if self.steps > LARGEST_TEMPLATE {
                return Err(Diagnostic::error(
                    format!("a sum of more than {LARGEST_TEMPLATE} terms inside a nonlinear function"),
                    body.span,
                    "too long to write out",
                )
                .help("sums that are only added up are not limited like this"));
            }
            if let Some(filter) = filter {
                self.guard(filter)?;
                let node = self.names.node(filter);
                if self.decide(node) == 0.0 {
                    return Ok(());
                }
            }
            for (s, v) in sum.iter_mut().zip(self.lower(body)?) {
                *s = self.graph.add(*s, v);
            }
            return Ok(());
        };
        self.guard(&range.low)?;
        self.guard(&range.high)?;
        let (low, high) = (self.names.node(&range.low), self.names.node(&range.high));
        for (node, what) in [(low, "the first value of a range"), (high, "the last value of a range")] {
            let value = self.names.evaluate_node(node, self.row);
            self.names.check_whole(value, range.span, self.row, what)?;
        }
        let length = self.names.graph.sub(high, low);
        let length = self.decide(length) + 1.0;
        if length > LARGEST_TEMPLATE as f64 {
            return Err(Diagnostic::error(
                format!("a sum of {length} terms inside a nonlinear function"),
                range.span,
                "too long to write out",
            )
            .help(format!("at most {LARGEST_TEMPLATE} operations may be written out")));
        }
        let outer_scope = self.scope;
        let mut k = 0.0;
        while k < length {
            let step = self.names.graph.constant(k);
            let value = self.names.graph.add(low, step);
            self.names.bound.insert(range.index, value);
            self.scopes += 1;
            self.scope = self.scopes;
            self.inner_sum(rest, filter, body, sum)?;
            k += 1.0;
        }
        self.names.bound.remove(&range.index);
        self.scope = outer_scope;
        Ok(())
    }

    /// Has every row checked for what `e` picks.
    fn guard(&mut self, e: &Ex) -> Result<(), Diagnostic> {
        match e.kind {
            Kind::Number(_) | Kind::Index(_) => Ok(()),
            _ => self.names.guards_of(e, &mut self.guards),
        }
    }
}

/// Matrix times vector or matrix.
fn product(g: &mut Graph, left: Shape, a: &[Node], b: &[Node]) -> Vec<Node> {
    let Shape::Matrix(k, l) = left else { unreachable!("checked") };
    let columns = b.len() / l;
    let mut product = Vec::with_capacity(k * columns);
    for i in 0..k {
        for j in 0..columns {
            let column: Vec<Node> = (0..l).map(|m| b[m * columns + j]).collect();
            product.push(g.dot(&a[i * l..(i + 1) * l], &column));
        }
    }
    product
}

fn identity(g: &mut Graph, shape: Shape) -> Vec<Node> {
    let Shape::Matrix(n, _) = shape else { unreachable!("checked") };
    let (zero, one) = (g.zero(), g.one());
    (0..n * n).map(|i| if i / n == i % n { one } else { zero }).collect()
}
