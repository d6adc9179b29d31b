//! The formula of one member, put together out of what is stored.
//!
//! It is made twice. First only its form is looked at: a hash of the formula in which the stored numbers are called by the
//! order in which they are met, which is the same for all members that can share a template. Then the formula of one
//! member of each form is made as a graph.

use super::{Column, Columns, Definition};
use crate::functional::Source;
use crate::graph::op::{Binary, Unary};
use crate::graph::{Graph, Input, Node};
use rustc_hash::FxHashMap;

/// Something that is read: a stored number, a parameter, a number of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Leaf {
    pub source: Source,
    /// A place among the stored numbers or the parameters; of a number its bits count.
    pub entry: u32,
    pub number: f64,
}

/// What formulas are made of.
pub(super) trait Builder {
    /// A formula.
    type Formula: Copy;

    fn leaf(&mut self, number: u32) -> Self::Formula;
    fn constant(&mut self, value: f64) -> Self::Formula;
    fn time(&mut self) -> Self::Formula;
    fn unary(&mut self, op: Unary, a: Self::Formula) -> Self::Formula;
    fn binary(&mut self, op: Binary, a: Self::Formula, b: Self::Formula) -> Self::Formula;
    /// A formula of a template, which is number `identity`; `slots` stand for what it reads, in order, and the last for
    /// the time.
    fn template(
        &mut self,
        identity: [u32; 3],
        source: (&Graph, Node),
        slots: &[(Option<u32>, Self::Formula)],
    ) -> Self::Formula;
}

/// Only the form of formulas.
#[derive(Default)]
pub(super) struct Forms;

/// One step of a hash.
pub(super) fn mixed(hash: u64, with: u64) -> u64 {
    let product = u128::from(hash ^ with.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15) * 0xd1b5_4a32_d192_ed03_u128;
    (product as u64) ^ (product >> 64) as u64 ^ with
}

impl Builder for Forms {
    type Formula = u64;

    fn leaf(&mut self, number: u32) -> u64 {
        mixed(1, u64::from(number))
    }

    fn constant(&mut self, value: f64) -> u64 {
        mixed(2, value.to_bits())
    }

    fn time(&mut self) -> u64 {
        mixed(6, 0)
    }

    fn unary(&mut self, op: Unary, a: u64) -> u64 {
        mixed(mixed(3, op as u64), a)
    }

    fn binary(&mut self, op: Binary, a: u64, b: u64) -> u64 {
        mixed(mixed(mixed(4, op as u64), a), b)
    }

    fn template(&mut self, identity: [u32; 3], _: (&Graph, Node), slots: &[(Option<u32>, u64)]) -> u64 {
        let hash = identity.iter().fold(5, |hash, &id| mixed(hash, u64::from(id)));
        slots.iter().fold(hash, |hash, &(_, slot)| mixed(hash, slot))
    }
}

/// Formulas as nodes of a graph over `Input::Slot`.
#[derive(Default)]
pub(super) struct Graphs {
    pub graph: Graph,
}

impl Builder for Graphs {
    type Formula = Node;

    fn leaf(&mut self, number: u32) -> Node {
        self.graph.input(Input::Slot(number))
    }

    fn constant(&mut self, value: f64) -> Node {
        self.graph.constant(value)
    }

    fn time(&mut self) -> Node {
        self.graph.input(Input::Time)
    }

    fn unary(&mut self, op: Unary, a: Node) -> Node {
        self.graph.unary(op, a)
    }

    fn binary(&mut self, op: Binary, a: Node, b: Node) -> Node {
        self.graph.binary(op, a, b)
    }

    fn template(&mut self, _: [u32; 3], (graph, node): (&Graph, Node), slots: &[(Option<u32>, Node)]) -> Node {
        let bind = |_: &mut Graph, input: Input| {
            let wanted = match input {
                Input::Slot(k) => Some(k),
                _ => None,
            };
            slots.iter().find(|(slot, _)| *slot == wanted).map(|&(_, node)| node).expect("it reads no other slot")
        };
        self.graph.instantiate(graph, &[node], bind)[0]
    }
}

/// The derivative of a member's formula: which stored number, and the formula.
type Derivatives<F> = Vec<(u32, F)>;

/// Puts formulas of members together.
pub(super) struct Expansion<'a, B: Builder> {
    columns: &'a Columns,
    pub builder: B,
    /// What the formulas read, in the order in which it is met.
    pub leaves: Vec<Leaf>,
    values: FxHashMap<(Column, u32), B::Formula>,
    derivatives: FxHashMap<(Column, u32), Derivatives<B::Formula>>,
    /// The columns that are differentiated with respect to; for each column whether it depends on them.
    varying: Vec<bool>,
    unknown: Vec<bool>,
}

impl<'a, B: Builder> Expansion<'a, B> {
    /// Of formulas that are differentiated with respect to `unknowns`, which are stored inputs.
    pub fn new(columns: &'a Columns, unknowns: &[Column], builder: B) -> Expansion<'a, B> {
        let count = columns.list.len();
        let mut unknown = vec![false; count];
        for column in unknowns {
            unknown[column.0 as usize] = true;
        }
        let mut varying = unknown.clone();
        // Arguments come before what uses them.
        for k in 0..count {
            varying[k] |= columns.list[k].arguments.iter().any(|argument| varying[argument.0 as usize]);
        }
        Expansion {
            columns,
            builder,
            leaves: Vec::new(),
            values: FxHashMap::default(),
            derivatives: FxHashMap::default(),
            varying,
            unknown,
        }
    }

    /// Forgets the member before.
    pub fn clear(&mut self) {
        self.leaves.clear();
        self.values.clear();
        self.derivatives.clear();
    }

    fn leaf(&mut self, leaf: Leaf) -> B::Formula {
        let same = |other: &Leaf| match leaf.source {
            Source::Number => other.source == leaf.source && other.number.to_bits() == leaf.number.to_bits(),
            source => other.source == source && other.entry == leaf.entry,
        };
        let number = self.leaves.iter().position(same).unwrap_or_else(|| {
            self.leaves.push(leaf);
            self.leaves.len() - 1
        });
        self.builder.leaf(number as u32)
    }

    /// The value of a member.
    pub fn value(&mut self, column: Column, member: u32) -> B::Formula {
        let facts = self.columns.facts(column);
        if let Some(at) = facts.stored {
            return self.leaf(Leaf { source: Source::State, entry: at.first + member * at.stride, number: 0.0 });
        }
        self.defined(column, member)
    }

    /// The value of a member by its definition, wherever it is stored.
    pub fn defined(&mut self, column: Column, member: u32) -> B::Formula {
        let facts = self.columns.facts(column);
        // What is the same for all members has one number.
        let member = if facts.length == 1 { 0 } else { member };
        if let Some(&known) = self.values.get(&(column, member)) {
            return known;
        }
        let value = match facts.definition {
            Definition::Input(_) => return self.value(column, member),
            Definition::Time => return self.builder.time(),
            Definition::Constant(bits) => return self.builder.constant(f64::from_bits(bits)),
            Definition::Unary(op, a) => {
                let a = self.value(a, member);
                self.builder.unary(op, a)
            }
            Definition::Binary(op, a, b) => {
                let (a, b) = (self.value(a, member), self.value(b, member));
                self.builder.binary(op, a, b)
            }
            Definition::Call { call, first, stride } => {
                let function = self.columns.calls[call as usize].function;
                let mut sum = None;
                for k in 0..self.columns.functions[function].contributions(first + member * stride).len() {
                    let contribution = self.columns.functions[function].contributions(first + member * stride)[k];
                    let value = self.formula(call, contribution, contribution.formula);
                    sum = Some(match sum {
                        Some(sum) => self.builder.binary(Binary::Add, sum, value),
                        None => value,
                    });
                }
                sum.unwrap_or_else(|| self.builder.constant(0.0))
            }
        };
        self.values.insert((column, member), value);
        value
    }

    /// A formula of a template in the row of a contribution.
    fn formula(&mut self, call: u32, contribution: super::function::Contribution, formula: u32) -> B::Formula {
        let columns = self.columns;
        let called = &columns.calls[call as usize];
        let function = &columns.functions[called.function];
        let (part, row) = (contribution.part, contribution.row);
        let what = function.formula(part, formula);
        let term = function.term(part);
        let mut slots = Vec::with_capacity(what.slots.len() + 1);
        for &slot in &what.slots {
            let entry = term.row(row as usize)[slot as usize];
            let value = match term.slots[slot as usize] {
                Source::State => {
                    let (column, member) = called.argument(entry);
                    self.value(column, member)
                }
                Source::Parameter => self.leaf(Leaf { source: Source::Parameter, entry, number: 0.0 }),
                Source::Number => {
                    self.leaf(Leaf { source: Source::Number, entry, number: term.numbers[entry as usize] })
                }
            };
            slots.push((Some(slot), value));
        }
        if what.reads_time {
            let time = self.value(called.time, 0);
            slots.push((None, time));
        }
        self.builder.template([called.function as u32, part, formula], (function.graph(part), what.node), &slots)
    }

    /// The derivatives of a member with respect to the unknowns.
    pub fn derivatives(&mut self, column: Column, member: u32) -> Derivatives<B::Formula> {
        let columns = self.columns;
        let facts = columns.facts(column);
        if !self.varying[column.0 as usize] {
            return Vec::new();
        }
        let member = if facts.length == 1 { 0 } else { member };
        if let Some(known) = self.derivatives.get(&(column, member)) {
            return known.clone();
        }
        let derivatives = match facts.definition {
            Definition::Input(_) if self.unknown[column.0 as usize] => {
                let at = facts.stored.expect("what is solved for is stored");
                vec![(at.first + member * at.stride, self.builder.constant(1.0))]
            }
            Definition::Input(_) | Definition::Time | Definition::Constant(_) => Vec::new(),
            Definition::Unary(op, a) => {
                let inner = self.derivatives(a, member);
                self.chain_unary(op, a, member, inner)
            }
            Definition::Binary(op, a, b) => {
                let (da, db) = (self.derivatives(a, member), self.derivatives(b, member));
                self.chain_binary(op, (a, b), member, da, db)
            }
            Definition::Call { call, first, stride } => {
                let function = columns.calls[call as usize].function;
                let mut sum = Vec::new();
                for &contribution in columns.functions[function].contributions(first + member * stride) {
                    let partials = &columns.functions[function].formula(contribution.part, contribution.formula).partials;
                    for &(slot, formula) in partials {
                        let input = columns.functions[function].input(&contribution, slot);
                        let input = input.expect("derivatives are with respect to inputs");
                        let (column, of) = columns.calls[call as usize].argument(input);
                        let inner = self.derivatives(column, of);
                        if !inner.is_empty() {
                            let factor = self.formula(call, contribution, formula);
                            let scaled = self.scaled(factor, inner);
                            sum = self.added(sum, scaled);
                        }
                    }
                }
                sum
            }
        };
        self.derivatives.insert((column, member), derivatives.clone());
        derivatives
    }

    fn scaled(&mut self, factor: B::Formula, list: Derivatives<B::Formula>) -> Derivatives<B::Formula> {
        list.into_iter().map(|(at, d)| (at, self.builder.binary(Binary::Mul, factor, d))).collect()
    }

    fn added(&mut self, mut a: Derivatives<B::Formula>, b: Derivatives<B::Formula>) -> Derivatives<B::Formula> {
        for (at, d) in b {
            match a.iter_mut().find(|(other, _)| *other == at) {
                Some((_, sum)) => *sum = self.builder.binary(Binary::Add, *sum, d),
                None => a.push((at, d)),
            }
        }
        a
    }

    fn chain_unary(
        &mut self,
        op: Unary,
        a: Column,
        member: u32,
        inner: Derivatives<B::Formula>,
    ) -> Derivatives<B::Formula> {
        let value = self.value(a, member);
        let factor = match op {
            Unary::Neg => self.builder.constant(-1.0),
            Unary::Sqrt => {
                let (half, root) = (self.builder.constant(0.5), self.builder.unary(op, value));
                self.builder.binary(Binary::Div, half, root)
            }
            Unary::Sin => self.builder.unary(Unary::Cos, value),
            Unary::Cos => {
                let sine = self.builder.unary(Unary::Sin, value);
                self.builder.unary(Unary::Neg, sine)
            }
            // |a|' = a/|a|
            Unary::Abs => {
                let size = self.builder.unary(op, value);
                self.builder.binary(Binary::Div, value, size)
            }
            _ => unreachable!("a step uses no other function"),
        };
        self.scaled(factor, inner)
    }

    fn chain_binary(
        &mut self,
        op: Binary,
        (a, b): (Column, Column),
        member: u32,
        da: Derivatives<B::Formula>,
        db: Derivatives<B::Formula>,
    ) -> Derivatives<B::Formula> {
        let one = self.builder.constant(1.0);
        let (by_a, by_b) = match op {
            Binary::Add => (one, one),
            Binary::Sub => (one, self.builder.constant(-1.0)),
            Binary::Mul => (self.value(b, member), self.value(a, member)),
            Binary::Div => {
                let (a, b) = (self.value(a, member), self.value(b, member));
                let inverse = self.builder.binary(Binary::Div, one, b);
                let quotient = self.builder.binary(Binary::Div, a, b);
                let product = self.builder.binary(Binary::Mul, quotient, inverse);
                (inverse, self.builder.unary(Unary::Neg, product))
            }
            _ => unreachable!("a step uses no other operation"),
        };
        let (da, db) = (self.scaled(by_a, da), self.scaled(by_b, db));
        self.added(da, db)
    }
}
