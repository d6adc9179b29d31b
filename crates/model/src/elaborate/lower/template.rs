//! The template of a row: its formula with slots in place of the numbers that it reads.

use super::arithmetic::{add_term, components};
use super::row_indices::{Guard, RowIndices};
use super::slots::Slot;
use super::{Context, LARGEST_TEMPLATE};
use crate::elaborate::expression::index_set::{self, IndexSet};
use crate::elaborate::expression::{self, CheckedExpression, Draw, Ex, Kind, Storage};
use crate::elaborate::shape::Shape;
use crate::functional::{Stretches, Term};
use crate::graph::{Graph, Input, Node};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Rows that share a template.
pub(super) struct Class {
    pub(super) guards: Vec<Guard>,
    pub(super) slots: Vec<(Slot, Span)>,
    pub(super) term: Term,
}

impl Class {
    /// Appends the entries of a row, whose guards are checked; its output is still missing.
    pub(super) fn entries(
        &mut self,
        context: &Context,
        names: &mut RowIndices,
        row: &[f64],
        draws: &mut Vec<Draw>,
        entries: &mut Vec<u32>,
    ) -> Result<(), Diagnostic> {
        for guard in &self.guards {
            names.check(guard, row)?;
        }
        for (slot, span) in &self.slots {
            entries.push(slot.entry(context, names, row, *span, &mut self.term, draws)?);
        }
        Ok(())
    }
}

/// A template while it is made.
pub(super) struct TemplateLowering<'l, 'a> {
    names: &'l mut RowIndices<'a>,
    row: &'l [f64],
    pub(super) graph: Graph,
    /// Places of the expressions that the nodes of the graph were made for.
    spans: Vec<Span>,
    slots: Vec<(Slot, Span)>,
    known: FxHashMap<Slot, Node>,
    decisions: Vec<(Node, f64)>,
    guards: Vec<Guard>,
    /// Results by expression and scope: a shared sub-expression is lowered once.
    memo: FxHashMap<(*const CheckedExpression, u32), Vec<Node>>,
    scope: u32,
    scopes: u32,
    /// Number of terms of inner sums lowered so far.
    steps: usize,
}

impl<'l, 'a> TemplateLowering<'l, 'a> {
    /// A lowering for one row of index values.
    pub(super) fn new(names: &'l mut RowIndices<'a>, row: &'l [f64]) -> TemplateLowering<'l, 'a> {
        TemplateLowering {
            names,
            row,
            graph: Graph::new(),
            spans: Vec::new(),
            slots: Vec::new(),
            known: FxHashMap::default(),
            decisions: Vec::new(),
            guards: Vec::new(),
            memo: FxHashMap::default(),
            scope: 0,
            scopes: 0,
            steps: 0,
        }
    }

    /// The class of rows with this template and the decisions that led to it, once everything is
    /// lowered; `span` is the place of the whole formula.
    pub(super) fn into_class(mut self, roots: Vec<Node>, span: Span) -> (Class, Vec<(Node, f64)>) {
        self.spans.resize(self.graph.len(), span);
        let TemplateLowering { graph, spans, slots, guards, decisions, .. } = self;
        let term = Term {
            graph,
            roots,
            slots: slots.iter().map(|(slot, _)| slot.source()).collect(),
            table: Stretches::new(slots.len() + 1),
            numbers: Vec::new(),
            pairs: None,
            spans: spans.into(),
        };
        (Class { guards, slots, term }, decisions)
    }

    fn decide(&mut self, node: Node) -> f64 {
        let value = self.names.evaluate_node(node, self.row);
        if self.names.graph.value(node).is_none() && !self.decisions.iter().any(|&(n, _)| n == node)
        {
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

    /// Lowers `e` to its components.
    pub(super) fn lower(&mut self, e: &Ex) -> Result<Vec<Node>, Diagnostic> {
        // An expression without indices has the same value in every scope of this row.
        let scope = if e.depends & expression::INDEX == 0 { 0 } else { self.scope };
        let key = (Arc::as_ptr(e), scope);
        if let Some(nodes) = self.memo.get(&key) {
            return Ok(nodes.clone());
        }
        let nodes = self.lower_new(e)?;
        // The nodes of its parts have their places already.
        self.spans.resize(self.graph.len(), e.span);
        if self.graph.len() > LARGEST_TEMPLATE {
            let message =
                format!("this expression expands to more than {LARGEST_TEMPLATE} operations");
            let help = "a sum inside a nonlinear function is expanded in full; sums that are only added up are not limited";
            return Err(Diagnostic::error(message, e.span, "too large").help(help));
        }
        self.memo.insert(key, nodes.clone());
        Ok(nodes)
    }

    fn lower_new(&mut self, e: &Ex) -> Result<Vec<Node>, Diagnostic> {
        if e.depends & expression::INDEX != 0 && e.is_index() && e.shape == Shape::Scalar {
            self.guard(e)?;
            let node = self.names.node(e);
            return Ok(vec![match self.names.graph.value(node) {
                Some(v) => self.graph.constant(v),
                None => self.slot(Slot::Number(node), e.span),
            }]);
        }
        match &e.kind {
            Kind::Time => Ok(vec![self.graph.input(Input::Time)]),
            Kind::Index(_) => unreachable!("handled above"),
            Kind::Member(storage, list) => {
                let all = 0..e.shape.len() as u32;
                self.member(*storage, list, all, e.span)
            }
            Kind::Table(table, column, row) => {
                let row = self.indices(std::slice::from_ref(row))?[0];
                Ok(vec![self.slot(Slot::Table { table: *table, column: *column, row }, e.span)])
            }
            Kind::Trajectory => Ok(vec![self.slot(Slot::Trajectory, e.span)]),
            Kind::Draw(draw) => {
                let draw = Slot::Draw { draw: *draw, ordinal: self.slots.len() as u32 };
                Ok(vec![self.slot(draw, e.span)])
            }
            Kind::Definition(_, _, _, body) => {
                self.guard(e)?;
                self.lower(body)
            }
            Kind::Add(terms) => {
                let mut sum = vec![self.graph.zero(); e.shape.len()];
                for (is_subtracted, term) in terms {
                    let term = self.lower(term)?;
                    add_term(&mut self.graph, &mut sum, *is_subtracted, &term);
                }
                Ok(sum)
            }
            Kind::Select(c, a, b) if c.is_index() => {
                self.guard(c)?;
                let condition = self.names.node(c);
                if self.decide(condition) != 0.0 { self.lower(a) } else { self.lower(b) }
            }
            Kind::Component(base, list) => self.component(base, list),
            Kind::Sum(set, body) => {
                let mut sum = vec![self.graph.zero(); e.shape.len()];
                self.inner_sum(set, 0, body, &mut sum)?;
                Ok(sum)
            }
            _ => {
                let mut parts = Ok(Vec::new());
                e.kind.for_each_part(&mut |part| {
                    if let Ok(list) = &mut parts {
                        match self.lower(part) {
                            Ok(nodes) => list.push(nodes),
                            Err(finding) => parts = Err(finding),
                        }
                    }
                });
                Ok(components(&mut self.graph, e, &parts?))
            }
        }
    }

    /// Slots of some components of a family's member.
    fn member(
        &mut self,
        storage: Storage,
        list: &[Ex],
        components: Range<u32>,
        span: Span,
    ) -> Result<Vec<Node>, Diagnostic> {
        let indices = self.indices(list)?;
        let slots = components.map(|component| {
            self.slot(Slot::Member { storage, component, indices: indices.clone() }, span)
        });
        Ok(slots.collect())
    }

    /// `base[k]`, `base[k,l]` with indices that are decisions.
    fn component(&mut self, base: &Ex, list: &[Ex]) -> Result<Vec<Node>, Diagnostic> {
        let mut position = 0;
        for (index, &size) in list.iter().zip(&base.shape.dimensions()) {
            self.guard(index)?;
            let node = self.names.node(index);
            let value = self.decide(node);
            let value = self.names.check_whole(value, index.span, self.row, "an index")?;
            if value < 1.0 || value > size as f64 {
                let with = self.names.with(self.row);
                let message = format!("index {value} is outside 1..{size}{with}");
                let label = format!("this has the shape {}", base.shape);
                return Err(Diagnostic::error(message, index.span, label));
            }
            position = position * size + value as usize - 1;
        }
        match &base.kind {
            // Only the picked component becomes a slot.
            Kind::Member(storage, list) => {
                let only = position as u32..position as u32 + 1;
                self.member(*storage, list, only, base.span)
            }
            _ => Ok(vec![self.lower(base)?[position]]),
        }
    }

    /// A sum inside a nonlinear function: unrolled, with the lengths of its ranges as decisions.
    /// The first `depth` indices of its set are bound.
    fn inner_sum(
        &mut self,
        set: &IndexSet,
        depth: usize,
        body: &Ex,
        sum: &mut [Node],
    ) -> Result<(), Diagnostic> {
        let range = set.ranges.get(depth);
        if range.is_none() {
            self.steps += 1;
            if self.steps > LARGEST_TEMPLATE {
                let message = format!(
                    "a sum of more than {LARGEST_TEMPLATE} terms inside a nonlinear function"
                );
                return Err(Diagnostic::error(message, body.span, "too long to expand")
                    .help("sums that are only added up are not limited like this"));
            }
        }
        for condition in set.decided_at(depth) {
            self.guard(condition)?;
            let node = self.names.node(condition);
            if self.decide(node) == 0.0 {
                return Ok(());
            }
        }
        let Some(range) = range else {
            let body = self.lower(body)?;
            add_term(&mut self.graph, sum, false, &body);
            return Ok(());
        };
        let (low, length) = self.extent(range)?;
        let outer_scope = self.scope;
        for k in 0..length as usize {
            let step = self.names.graph.constant(k as f64);
            let value = self.names.graph.add(low, step);
            self.names.bound.insert(range.index, value);
            self.scopes += 1;
            self.scope = self.scopes;
            self.inner_sum(set, depth + 1, body, sum)?;
        }
        self.names.bound.remove(&range.index);
        self.scope = outer_scope;
        Ok(())
    }

    /// First value of a range, and its length, which is a decision.
    fn extent(&mut self, range: &index_set::IndexRange) -> Result<(Node, f64), Diagnostic> {
        self.guard(&range.low)?;
        self.guard(&range.high)?;
        let (low, high) = (self.names.node(&range.low), self.names.node(&range.high));
        for (node, which) in [(low, "first"), (high, "last")] {
            let value = self.names.evaluate_node(node, self.row);
            let what = format_args!("the {which} value of a range");
            self.names.check_whole(value, range.span, self.row, what)?;
        }
        let length = self.names.graph.sub(high, low);
        let length = (self.decide(length) + 1.0).max(0.0);
        if length > LARGEST_TEMPLATE as f64 {
            let message = format!("a sum of {length} terms inside a nonlinear function");
            let help =
                format!("at most {LARGEST_TEMPLATE} operations may result from its expansion");
            return Err(Diagnostic::error(message, range.span, "too long to expand").help(help));
        }
        Ok((low, length))
    }

    /// Adds the guards of `e`, which every row of the template must meet.
    fn guard(&mut self, e: &Ex) -> Result<(), Diagnostic> {
        match e.kind {
            Kind::Number(_) | Kind::Index(_) => Ok(()),
            _ => self.names.guards_of(e, &mut self.guards),
        }
    }
}
