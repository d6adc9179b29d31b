//! Expansion of the formula of one member out of stored numbers.
//!
//! Formulas are expanded twice. First only their form is found: a hash of the formula in which the
//! stored numbers are numbered in the order of their first use. All members that can share a
//! template have the same form. Then the formula of one member of each form is built as a graph.
//!
//! Consecutive members are mostly alike, so not every member is expanded: the form of a member
//! comes with the number of members that follow with the same form and with evenly moving reads
//! ([`Expansion::alike`]).

use super::function::{Contribution, Members};
use super::{Call, Column, Columns, Definition};
use crate::functional::Source;
use crate::graph::op::{Binary, Unary};
use crate::graph::{Graph, Input, Node};
use rustc_hash::FxHashMap;

/// Stored number, parameter or number of a table that is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Leaf {
    pub source: Source,
    /// Place among the stored numbers or the parameters; ignored for a number, which is compared by
    /// its bits.
    pub entry: u32,
    pub number: f64,
    /// Step of the place from member to member.
    pub step: u32,
}

/// Builder of formulas.
pub(super) trait FormulaBuilder {
    /// Formula that is built.
    type Formula: Copy;

    fn leaf(&mut self, number: u32) -> Self::Formula;
    fn constant(&mut self, value: f64) -> Self::Formula;
    fn time(&mut self) -> Self::Formula;
    fn parameter(&mut self, number: u32) -> Self::Formula;
    fn unary(&mut self, op: Unary, a: Self::Formula) -> Self::Formula;
    fn binary(&mut self, op: Binary, a: Self::Formula, b: Self::Formula) -> Self::Formula;
    /// Formula number `identity` of a template. `slots` are the formulas for what it reads, in
    /// order, the last one for the time.
    fn template(
        &mut self,
        identity: [u32; 3],
        source: (&Graph, Node),
        slots: &[(Option<u32>, Self::Formula)],
    ) -> Self::Formula;
}

/// Builder of the form of formulas only: equal forms have equal numbers.
#[derive(Default)]
pub(super) struct Forms {
    known: FxHashMap<Vec<u64>, u64>,
    /// The form that is being looked up.
    form: Vec<u64>,
}

impl Forms {
    /// Number of the form that consists of these numbers; the first tells its kind.
    pub fn number(&mut self, form: impl IntoIterator<Item = u64>) -> u64 {
        self.form.clear();
        self.form.extend(form);
        if let Some(&number) = self.known.get(&self.form[..]) {
            return number;
        }
        let number = self.known.len() as u64;
        self.known.insert(self.form.clone(), number);
        number
    }
}

impl FormulaBuilder for Forms {
    type Formula = u64;

    fn leaf(&mut self, number: u32) -> u64 {
        self.number([1, u64::from(number)])
    }

    fn constant(&mut self, value: f64) -> u64 {
        self.number([2, value.to_bits()])
    }

    fn time(&mut self) -> u64 {
        self.number([3])
    }

    fn parameter(&mut self, number: u32) -> u64 {
        self.number([4, u64::from(number)])
    }

    fn unary(&mut self, op: Unary, a: u64) -> u64 {
        self.number([5, op as u64, a])
    }

    fn binary(&mut self, op: Binary, a: u64, b: u64) -> u64 {
        self.number([6, op as u64, a, b])
    }

    fn template(
        &mut self,
        identity: [u32; 3],
        _: (&Graph, Node),
        slots: &[(Option<u32>, u64)],
    ) -> u64 {
        let identity = identity.into_iter().map(u64::from);
        self.number([7].into_iter().chain(identity).chain(slots.iter().map(|&(_, slot)| slot)))
    }
}

/// Builder of formulas as nodes of a graph over `Input::Slot`.
#[derive(Default)]
pub(super) struct Graphs {
    pub graph: Graph,
}

impl FormulaBuilder for Graphs {
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

    fn parameter(&mut self, number: u32) -> Node {
        self.graph.parameter(number as usize)
    }

    fn unary(&mut self, op: Unary, a: Node) -> Node {
        self.graph.unary(op, a)
    }

    fn binary(&mut self, op: Binary, a: Node, b: Node) -> Node {
        self.graph.binary(op, a, b)
    }

    fn template(
        &mut self,
        _: [u32; 3],
        (graph, node): (&Graph, Node),
        slots: &[(Option<u32>, Node)],
    ) -> Node {
        let bind = |_: &mut Graph, input: Input| {
            let wanted = match input {
                Input::Slot(k) => Some(k),
                _ => None,
            };
            slots
                .iter()
                .find(|(slot, _)| *slot == wanted)
                .map(|&(_, node)| node)
                .expect("it reads no other slot")
        };
        self.graph.instantiate(graph, &[node], bind)[0]
    }
}

/// Length of the run, at most `run`, in which no moving entry meets a fixed one and no two moving
/// entries coincide.
fn met(places: impl Iterator<Item = (u32, u32)> + Clone, mut run: u32) -> u32 {
    for (place, step) in places.clone() {
        for (other, other_step) in places.clone() {
            if step > other_step && other > place {
                run = run.min((other - place).div_ceil(step - other_step));
            }
        }
    }
    run
}

/// Derivative of a member's formula.
#[derive(Clone, Copy)]
pub(super) struct Derivative<F> {
    /// Place of the stored number.
    pub unknown: u32,
    /// Step of that place from member to member.
    pub step: u32,
    pub formula: F,
}

type Derivatives<F> = Vec<Derivative<F>>;

/// Member of a column. If `moves`, it moves on with the member whose formula is expanded.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Element {
    column: Column,
    member: u32,
    moves: bool,
}

/// Expander of members' formulas.
pub(super) struct Expansion<'a, B: FormulaBuilder> {
    columns: &'a Columns,
    pub builder: B,
    /// Numbers that the formulas read, in the order of their first use.
    pub leaves: Vec<Leaf>,
    /// Number of members from this one on for which the formulas found so far are alike.
    run: u32,
    values: FxHashMap<Element, B::Formula>,
    derivatives: FxHashMap<Element, Derivatives<B::Formula>>,
    /// For each column, true if it depends on the unknowns, and true if it is one of them.
    varying: Vec<bool>,
    unknown: Vec<bool>,
}

impl<'a, B: FormulaBuilder> Expansion<'a, B> {
    /// Expander of formulas that are differentiated with respect to `unknowns`, which are stored
    /// inputs.
    pub fn new(columns: &'a Columns, unknowns: &[Column], builder: B) -> Expansion<'a, B> {
        let count = columns.list.len();
        let mut unknown = vec![false; count];
        for column in unknowns {
            unknown[column.0 as usize] = true;
        }
        let mut varying = unknown.clone();
        // Arguments precede the columns that use them.
        for k in 0..count {
            varying[k] |=
                columns.list[k].arguments.iter().any(|argument| varying[argument.0 as usize]);
        }
        Expansion {
            columns,
            builder,
            leaves: Vec::new(),
            run: u32::MAX,
            values: FxHashMap::default(),
            derivatives: FxHashMap::default(),
            varying,
            unknown,
        }
    }

    /// Forget the previous member.
    pub fn clear(&mut self) {
        self.leaves.clear();
        self.values.clear();
        self.derivatives.clear();
        self.run = u32::MAX;
    }

    /// Number of members, this one included, for which the formulas since [`Expansion::clear`] are
    /// the same but for the places that they read, which move on by their steps. `unknowns` are the
    /// places and steps of derivatives.
    pub fn alike(&self, unknowns: impl Iterator<Item = (u32, u32)> + Clone) -> u32 {
        let of = |source: Source| {
            let leaves = self.leaves.iter().filter(move |leaf| leaf.source == source);
            leaves.map(|leaf| (leaf.entry, leaf.step))
        };
        let run = met(of(Source::State), met(of(Source::Parameter), self.run));
        met(unknowns, run).max(1)
    }

    fn leaf(&mut self, leaf: Leaf) -> B::Formula {
        let same = |other: &Leaf| match leaf.source {
            Source::Number => {
                other.source == leaf.source && other.number.to_bits() == leaf.number.to_bits()
            }
            source => other.source == source && other.entry == leaf.entry,
        };
        let number = self.leaves.iter().position(same).unwrap_or_else(|| {
            self.leaves.push(leaf);
            self.leaves.len() - 1
        });
        if self.leaves[number].step != leaf.step {
            // The next member reads two different numbers here.
            self.run = 1;
        }
        self.builder.leaf(number as u32)
    }

    /// Value of a member by its definition, even if it is stored.
    pub fn defined(&mut self, column: Column, member: u32) -> B::Formula {
        self.define(Element { column, member, moves: true })
    }

    fn value(&mut self, element: Element) -> B::Formula {
        match self.columns.facts(element.column).stored {
            Some(at) => {
                let step = if element.moves { at.stride } else { 0 };
                let entry = at.first + element.member * at.stride;
                self.leaf(Leaf { source: Source::State, entry, number: 0.0, step })
            }
            None => self.define(element),
        }
    }

    /// The element whose number represents this one: member 0 of a column that is the same for all
    /// members.
    fn only(&self, element: Element) -> Element {
        match self.columns.facts(element.column).length {
            1 => Element { member: 0, moves: false, ..element },
            _ => element,
        }
    }

    fn define(&mut self, element: Element) -> B::Formula {
        let element = self.only(element);
        if let Some(&known) = self.values.get(&element) {
            return known;
        }
        let argument = |column: Column| Element { column, ..element };
        let facts = self.columns.facts(element.column);
        let value = match facts.definition {
            Definition::Input(_) => return self.value(element),
            // The formula of one member would contain all rows.
            Definition::Call { .. }
                if facts.stored.is_some() && self.columns.is_accumulated(element.column) =>
            {
                return self.value(element);
            }
            Definition::Time => return self.builder.time(),
            Definition::Parameter(number) => return self.builder.parameter(number),
            Definition::Constant(bits) => return self.builder.constant(f64::from_bits(bits)),
            Definition::Unary(op, a) => {
                let a = self.value(argument(a));
                self.builder.unary(op, a)
            }
            Definition::Binary(op, a, b) => {
                let (a, b) = (self.value(argument(a)), self.value(argument(b)));
                self.builder.binary(op, a, b)
            }
            Definition::Call { .. } => {
                let mut sum = None;
                for contribution in self.contributions(element) {
                    let value = self.formula(element, contribution, contribution.formula);
                    sum = Some(match sum {
                        Some(sum) => self.builder.binary(Binary::Add, sum, value),
                        None => value,
                    });
                }
                sum.unwrap_or_else(|| self.builder.constant(0.0))
            }
        };
        self.values.insert(element, value);
        value
    }

    /// The call that an element belongs to, with the contributions to its members.
    fn called(&self, element: Element) -> (&'a Call, &'a Members) {
        let facts = self.columns.facts(element.column);
        match (facts.definition, &facts.members) {
            (Definition::Call { call, .. }, Some(members)) => {
                (&self.columns.calls[call as usize], members)
            }
            _ => unreachable!("only calls have contributions"),
        }
    }

    /// Contributions to an element of a call. The run ends with that of equal contributions.
    fn contributions(
        &mut self,
        element: Element,
    ) -> impl Iterator<Item = Contribution> + use<'a, B> {
        let (_, members) = self.called(element);
        if element.moves {
            self.run = self.run.min(members.run(element.member));
        }
        members.contributions(element.member)
    }

    /// Step of a slot of a contribution to an element from member to member.
    fn step(&self, element: Element, contribution: Contribution, slot: u32) -> u32 {
        let (call, members) = self.called(element);
        match element.moves && members.run(element.member) > 1 {
            true => self.columns.functions[call.function].step(contribution, slot),
            false => 0,
        }
    }

    /// Element that an input of a contribution represents.
    fn argument(&mut self, element: Element, contribution: Contribution, slot: u32) -> Element {
        let (call, _) = self.called(element);
        let step = self.step(element, contribution, slot);
        let entry = self.columns.functions[call.function].entry(contribution, slot);
        let (column, member) = call.argument(entry);
        if step != 0 && call.argument(entry.wrapping_add(step)) != (column, member + 1) {
            self.run = 1;
        }
        Element { column, member, moves: step != 0 }
    }

    /// Formula of a template in the row of a contribution.
    fn formula(
        &mut self,
        element: Element,
        contribution: Contribution,
        formula: u32,
    ) -> B::Formula {
        let (called, _) = self.called(element);
        let function = &self.columns.functions[called.function];
        let what = function.formula(contribution.part, formula);
        let mut slots = Vec::with_capacity(what.slots.len() + 1);
        for &slot in &what.slots {
            let value = match function.source(contribution, slot) {
                Source::State => {
                    let argument = self.argument(element, contribution, slot);
                    self.value(argument)
                }
                Source::Parameter => {
                    let (entry, step) = (
                        function.entry(contribution, slot),
                        self.step(element, contribution, slot),
                    );
                    self.leaf(Leaf { source: Source::Parameter, entry, number: 0.0, step })
                }
                Source::Number => {
                    let number = function.number(contribution, slot);
                    self.leaf(Leaf { source: Source::Number, entry: 0, number, step: 0 })
                }
            };
            slots.push((Some(slot), value));
        }
        if what.reads_time {
            let time = self.value(Element { column: called.time, member: 0, moves: false });
            slots.push((None, time));
        }
        let identity = [called.function as u32, contribution.part, formula];
        self.builder.template(identity, (function.graph(contribution.part), what.node), &slots)
    }

    /// Derivatives of a member with respect to the unknowns.
    pub fn derivatives(&mut self, column: Column, member: u32) -> Derivatives<B::Formula> {
        self.differentiated(Element { column, member, moves: true })
    }

    fn differentiated(&mut self, element: Element) -> Derivatives<B::Formula> {
        let facts = self.columns.facts(element.column);
        if !self.varying[element.column.0 as usize] {
            return Vec::new();
        }
        let element = self.only(element);
        if let Some(known) = self.derivatives.get(&element) {
            return known.clone();
        }
        let argument = |column: Column| Element { column, ..element };
        let derivatives = match facts.definition {
            Definition::Input(_) if self.unknown[element.column.0 as usize] => {
                let at = facts.stored.expect("what is solved for is stored");
                let step = if element.moves { at.stride } else { 0 };
                let formula = self.builder.constant(1.0);
                return vec![Derivative {
                    unknown: at.first + element.member * at.stride,
                    step,
                    formula,
                }];
            }
            Definition::Input(_)
            | Definition::Time
            | Definition::Parameter(_)
            | Definition::Constant(_) => Vec::new(),
            Definition::Unary(op, a) => {
                let inner = self.differentiated(argument(a));
                self.chain_unary(op, argument(a), inner)
            }
            Definition::Binary(op, a, b) => {
                let [a, b] = [a, b].map(argument);
                let (da, db) = (self.differentiated(a), self.differentiated(b));
                self.chain_binary(op, (a, b), da, db)
            }
            Definition::Call { .. } => self.chain_call(element),
        };
        self.derivatives.insert(element, derivatives.clone());
        derivatives
    }

    fn chain_call(&mut self, element: Element) -> Derivatives<B::Formula> {
        let (call, _) = self.called(element);
        let function = &self.columns.functions[call.function];
        let mut sum = Vec::new();
        for contribution in self.contributions(element) {
            for &(slot, formula) in
                &function.formula(contribution.part, contribution.formula).partials
            {
                let argument = self.argument(element, contribution, slot);
                let inner = self.differentiated(argument);
                if !inner.is_empty() {
                    let factor = self.formula(element, contribution, formula);
                    let scaled = self.scaled(factor, inner);
                    sum = self.added(sum, scaled);
                }
            }
        }
        sum
    }

    fn scaled(
        &mut self,
        factor: B::Formula,
        list: Derivatives<B::Formula>,
    ) -> Derivatives<B::Formula> {
        let scale = |d: Derivative<B::Formula>| {
            let formula = self.builder.binary(Binary::Mul, factor, d.formula);
            Derivative { formula, ..d }
        };
        list.into_iter().map(scale).collect()
    }

    fn added(
        &mut self,
        mut a: Derivatives<B::Formula>,
        b: Derivatives<B::Formula>,
    ) -> Derivatives<B::Formula> {
        for d in b {
            match a.iter_mut().find(|other| other.unknown == d.unknown) {
                Some(sum) => {
                    if sum.step != d.step {
                        self.run = 1;
                    }
                    sum.formula = self.builder.binary(Binary::Add, sum.formula, d.formula);
                }
                None => a.push(d),
            }
        }
        a
    }

    fn chain_unary(
        &mut self,
        op: Unary,
        a: Element,
        inner: Derivatives<B::Formula>,
    ) -> Derivatives<B::Formula> {
        let value = self.value(a);
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
        (a, b): (Element, Element),
        da: Derivatives<B::Formula>,
        db: Derivatives<B::Formula>,
    ) -> Derivatives<B::Formula> {
        let one = self.builder.constant(1.0);
        let (by_a, by_b) = match op {
            Binary::Add => (one, one),
            Binary::Sub => (one, self.builder.constant(-1.0)),
            Binary::Mul => (self.value(b), self.value(a)),
            Binary::Div => {
                let (a, b) = (self.value(a), self.value(b));
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
