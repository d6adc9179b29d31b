//! Formulas of large models composed member by member: what a step of a method computes, for all
//! members of a family at once.
//!
//! A [`Column`] is a quantity with one number for every member of a family: the x-components of all
//! positions of a chain, the multipliers of its links. Columns are combined member by member, and
//! functions of the model are called with columns for their variables: the constraints, the
//! gradient of H. Nothing is computed here and nothing is unrolled. To compute some columns, the
//! formula of one member is composed out of stored numbers. Members whose formulas differ only in
//! the places of their inputs share one template, which becomes a [`Piece`](crate::rows::Piece)
//! over their rows. Derivatives are taken in the same way, by the chain rule along the columns, so
//! Newton matrices are sums of templates too: a chain of a million links has the templates of one
//! link and of its ends.
//!
//! A sum over pairs is the exception: the formula of one body would contain all others. Outputs of
//! a function to which one template contributes many times are *accumulated*
//! ([`Columns::is_accumulated`]): the template is evaluated over its rows, and each row adds to its
//! members.

mod accumulated;
mod elimination;
mod expansion;
mod function;
mod pieces;

pub use accumulated::accumulated;
pub use elimination::Alike;
pub use function::Function;
use function::{Contribution, Members, Share};
pub use pieces::{Jacobian, pieces, time_derivatives};

use crate::graph::op::{Binary, Unary};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A quantity for every member of a family. If it is the same for all members, its length is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Column(pub u32);

/// Places of a stored column: member i is at `first + i * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stored {
    /// Place of member 0.
    pub first: u32,
    /// Distance of the next member; 0 if there is one number for all.
    pub stride: u32,
}

/// Definition of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definition {
    /// An input, by a number of its own; it is stored.
    Input(u32),
    /// The time, if it is not stored.
    Time,
    /// A number, by its bits.
    Constant(u64),
    /// A parameter, by its number.
    Parameter(u32),
    /// An operation, member by member.
    Unary(Unary, Column),
    /// An operation, member by member; a column of length 1 goes with every member.
    Binary(Binary, Column, Column),
    /// Outputs `first + i * stride` of a function of the model.
    Call {
        /// Call: function and arguments.
        call: u32,
        /// Output for member 0.
        first: u32,
        /// Distance of the next member's output.
        stride: u32,
    },
}

/// Consecutive inputs of a function: component c of member i is input `first + i * columns.len() +
/// c`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InputSegment {
    /// First input.
    pub first: u32,
    /// Column for every component.
    pub columns: Vec<Column>,
}

/// A function with its arguments.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    function: usize,
    /// Increasing; they cover the inputs that the function reads.
    arguments: Vec<InputSegment>,
    time: Column,
}

impl Call {
    /// The call with other columns.
    fn mapped(&self, image: impl Fn(&Column) -> Column) -> Call {
        let segment = |s: &InputSegment| InputSegment {
            first: s.first,
            columns: s.columns.iter().map(&image).collect(),
        };
        Call {
            function: self.function,
            arguments: self.arguments.iter().map(segment).collect(),
            time: image(&self.time),
        }
    }

    /// True if one column represents `length` inputs, each by `step` from the one before.
    fn reads_one(&self, input: u32, step: u32, length: u32) -> bool {
        let last = input.wrapping_add((length - 1).wrapping_mul(step));
        let segment = |input: u32| self.arguments.partition_point(|s| s.first <= input) - 1;
        let width = self.arguments[segment(input)].columns.len() as u32;
        // The step may be one back, modulo 2³².
        segment(input) == segment(last)
            && (step.is_multiple_of(width) || step.wrapping_neg().is_multiple_of(width))
    }

    /// Columns that represent `count` inputs, each by `step` from the one before; some of them more
    /// than once.
    fn read(&self, first: u32, step: u32, count: u32) -> Vec<Column> {
        let (mut columns, mut row) = (Vec::new(), 0);
        // The step may be one back, modulo 2³².
        let (distance, back) = ((step as i32).unsigned_abs(), (step as i32) < 0);
        while row < count {
            let input = first.wrapping_add(row.wrapping_mul(step));
            let next = self.arguments.partition_point(|s| s.first <= input);
            let segment = &self.arguments[next - 1];
            let last = self.arguments.get(next).map_or(u32::MAX, |next| next.first - 1);
            let room = if back { input - segment.first } else { last - input };
            let inside = room
                .checked_div(distance)
                .map_or(count - row, |more| more.saturating_add(1).min(count - row));
            let (offset, width) = (input - segment.first, segment.columns.len() as u32);
            // The columns recur after `width` inputs at the latest.
            let column = |k: u32| {
                segment.columns[(offset.wrapping_add(k.wrapping_mul(step)) % width) as usize]
            };
            columns.extend((0..inside.min(width)).map(column));
            row += inside;
        }
        columns
    }

    /// Column and member that represent an input.
    fn argument(&self, input: u32) -> (Column, u32) {
        let segment = &self.arguments[self.arguments.partition_point(|s| s.first <= input) - 1];
        let (offset, width) = (input - segment.first, segment.columns.len() as u32);
        (segment.columns[(offset % width) as usize], offset / width)
    }
}

/// Known facts of a column.
#[derive(Clone, Debug)]
struct Facts {
    definition: Definition,
    /// Number of members.
    length: u32,
    /// Columns that it is computed from.
    arguments: Vec<Column>,
    /// Place from which its users read it.
    stored: Option<Stored>,
    /// Contributions to its members, if it is a call.
    members: Option<Arc<Members>>,
    /// True if it is a call that is accumulated.
    accumulated: bool,
}

/// Columns, and the functions that they use.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    functions: Vec<Arc<Function>>,
    calls: Vec<Call>,
    list: Vec<Facts>,
    known: FxHashMap<Definition, Column>,
}

impl Columns {
    /// Create a collection without columns.
    pub fn new() -> Columns {
        Columns::default()
    }

    /// Make a function callable; returns its number.
    pub fn function(&mut self, function: Function) -> usize {
        self.functions.push(Arc::new(function));
        self.functions.len() - 1
    }

    fn put(
        &mut self,
        definition: Definition,
        length: u32,
        arguments: Vec<Column>,
        stored: Option<Stored>,
    ) -> Column {
        *self.known.entry(definition).or_insert_with(|| {
            self.list.push(Facts {
                definition,
                length,
                arguments,
                stored,
                members: None,
                accumulated: false,
            });
            Column(self.list.len() as u32 - 1)
        })
    }

    fn facts(&self, column: Column) -> &Facts {
        &self.list[column.0 as usize]
    }

    /// Definition of a column.
    pub fn definition(&self, column: Column) -> Definition {
        self.facts(column).definition
    }

    /// Number of members.
    pub fn length(&self, column: Column) -> u32 {
        self.facts(column).length
    }

    /// Columns that this one is computed from.
    pub fn arguments(&self, column: Column) -> &[Column] {
        &self.facts(column).arguments
    }

    /// Place of a stored column.
    pub fn stored(&self, column: Column) -> Option<Stored> {
        self.facts(column).stored
    }

    /// Set the place from which users of the column read it from now on.
    pub fn store(&mut self, column: Column, at: Stored) {
        self.list[column.0 as usize].stored = Some(at);
    }

    /// New input of this length; [`Columns::store`] sets its place.
    pub fn input(&mut self, length: u32) -> Column {
        let number = self.list.len() as u32;
        self.put(Definition::Input(number), length, Vec::new(), None)
    }

    /// The time that a program receives.
    pub fn time(&mut self) -> Column {
        self.put(Definition::Time, 1, Vec::new(), None)
    }

    /// A parameter.
    pub fn parameter(&mut self, number: usize) -> Column {
        self.put(Definition::Parameter(number as u32), 1, Vec::new(), None)
    }

    /// A number.
    pub fn constant(&mut self, value: f64) -> Column {
        self.put(Definition::Constant(value.to_bits()), 1, Vec::new(), None)
    }

    /// Value of a constant; `None` for other columns.
    pub fn value(&self, column: Column) -> Option<f64> {
        match self.definition(column) {
            Definition::Constant(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// An operation of one argument, member by member.
    pub fn unary(&mut self, op: Unary, a: Column) -> Column {
        match (op, self.definition(a)) {
            (_, Definition::Constant(bits)) => self.constant(op.evaluate(f64::from_bits(bits))),
            (Unary::Neg, Definition::Unary(Unary::Neg, inner)) => inner,
            _ => self.put(Definition::Unary(op, a), self.length(a), vec![a], None),
        }
    }

    /// An operation of two arguments, member by member.
    pub fn binary(&mut self, op: Binary, a: Column, b: Column) -> Column {
        match (op, self.value(a), self.value(b)) {
            (_, Some(x), Some(y)) => return self.constant(op.evaluate(x, y)),
            (Binary::Add, Some(0.0), _) | (Binary::Mul, Some(1.0), _) => return b,
            (Binary::Add | Binary::Sub, _, Some(0.0))
            | (Binary::Mul | Binary::Div, _, Some(1.0)) => return a,
            (Binary::Mul, Some(0.0), _) | (Binary::Mul, _, Some(0.0)) => return self.constant(0.0),
            _ => {}
        }
        let length = self.length(a).max(self.length(b));
        self.put(Definition::Binary(op, a, b), length, vec![a, b], None)
    }

    /// Call a function with `arguments`, ascending. Returns a column per entry of `outputs`: first,
    /// distance, length.
    pub fn call(
        &mut self,
        function: usize,
        time: Column,
        arguments: &[InputSegment],
        outputs: &[(u32, u32, u32)],
    ) -> Vec<Column> {
        debug_assert!(
            arguments.is_sorted_by_key(|segment| segment.first),
            "arguments are looked up by their places"
        );
        let call = Call { function, arguments: arguments.to_vec(), time };
        let members: Vec<_> =
            outputs.iter().map(|&family| self.members(function, family)).collect();
        let used: Vec<Vec<Column>> =
            members.iter().map(|members| self.used(&call, members)).collect();
        outputs.iter().zip(used).map(|(&family, used)| self.output(&call, family, used)).collect()
    }

    /// Contributions to a family of outputs: first, distance, length.
    fn members(&self, function: usize, (first, stride, length): (u32, u32, u32)) -> Arc<Members> {
        self.functions[function].members(first, stride, length)
    }

    /// Column for a family of outputs of a call that reads only `used`. Calls are equal if they
    /// read the same: H_q of a separable Hamiltonian does not read p.
    fn output(&mut self, call: &Call, family: (u32, u32, u32), used: Vec<Column>) -> Column {
        if self.members(call.function, family).is_zero() {
            return self.constant(0.0);
        }
        let blank = self.constant(f64::NAN);
        let visible = |column: &Column| if used.contains(column) { *column } else { blank };
        let reduced = call.mapped(visible);
        self.put_call(reduced, family, used)
    }

    fn put_call(
        &mut self,
        call: Call,
        (first, stride, length): (u32, u32, u32),
        used: Vec<Column>,
    ) -> Column {
        let number = self.calls.iter().position(|other| *other == call).unwrap_or_else(|| {
            self.calls.push(call);
            self.calls.len() - 1
        });
        let function = self.calls[number].function;
        let members = self.members(function, (first, stride, length));
        let accumulated = self.functions[function].piles_up(&members);
        let column =
            self.put(Definition::Call { call: number as u32, first, stride }, length, used, None);
        let facts = &mut self.list[column.0 as usize];
        if facts.members.is_none() {
            facts.accumulated = accumulated;
            facts.members = Some(members);
        }
        column
    }

    /// True if a column is made by accumulating the rows of templates, not member by member. To be
    /// used it has to be stored, and so have the columns that it is computed from; see
    /// [`accumulated`].
    pub fn is_accumulated(&self, column: Column) -> bool {
        self.facts(column).accumulated
    }

    /// Parts of a function whose rows an accumulated column is made of.
    pub fn parts(&self, column: Column) -> Vec<u32> {
        let shares = self.facts(column).members.iter().flat_map(|members| members.shares());
        let mut parts: Vec<u32> = shares.map(|share| share.contribution.part).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// True if both columns are outputs of one call.
    pub fn share_call(&self, a: Column, b: Column) -> bool {
        match (self.definition(a), self.definition(b)) {
            (Definition::Call { call: a, .. }, Definition::Call { call: b, .. }) => a == b,
            _ => false,
        }
    }

    /// Column of one number for another output of the call of an accumulated column, also
    /// accumulated. `None` if that output reads a column that the call does not, if a slot reads
    /// several columns, or if it need not be accumulated. With one column per slot the rows fall
    /// into the same blocks wherever columns are stored: the bits of the sum are the same.
    pub fn beside(&mut self, column: Column, output: u32) -> Option<Column> {
        let Definition::Call { call, .. } = self.definition(column) else { return None };
        let call = self.calls[call as usize].clone();
        let (family, used) = ((output, 1, 1), self.arguments(column).to_vec());
        let members = self.members(call.function, family);
        let function = &self.functions[call.function];
        let is_known = self.used(&call, &members).iter().all(|column| used.contains(column));
        let mut read: FxHashMap<(u32, u32), Column> = FxHashMap::default();
        let mut reads_one = |share: &Share| {
            let Contribution { part, formula, .. } = share.contribution;
            function.formula(part, formula).slots.iter().all(|&slot| {
                let Some(input) = function.input(share.contribution, slot) else { return true };
                let column = call.argument(input).0;
                let step = function.step(share.contribution, slot);
                *read.entry((part, slot)).or_insert(column) == column
                    && call.reads_one(input, step, share.rows)
            })
        };
        let is_even = members.shares().iter().all(&mut reads_one);
        (is_known && is_even && function.piles_up(&members))
            .then(|| self.put_call(call, family, used))
    }

    /// The column with others in place of some that it depends on; new replacements are added to
    /// `replaced`.
    pub fn substituted(
        &mut self,
        column: Column,
        replaced: &mut FxHashMap<Column, Column>,
    ) -> Column {
        if let Some(&known) = replaced.get(&column) {
            return known;
        }
        let arguments = self.arguments(column).to_vec();
        let others: Vec<Column> =
            arguments.iter().map(|&argument| self.substituted(argument, replaced)).collect();
        let substituted = match self.definition(column) {
            _ if others == arguments => column,
            Definition::Unary(op, _) => self.unary(op, others[0]),
            Definition::Binary(op, ..) => self.binary(op, others[0], others[1]),
            Definition::Call { call, first, stride } => {
                let image = |column: &Column| {
                    arguments.iter().position(|a| a == column).map_or(*column, |k| others[k])
                };
                let call = self.calls[call as usize].mapped(image);
                let mut used = others.clone();
                used.sort_unstable();
                used.dedup();
                self.put_call(call, (first, stride, self.length(column)), used)
            }
            Definition::Input(_)
            | Definition::Time
            | Definition::Parameter(_)
            | Definition::Constant(_) => column,
        };
        replaced.insert(column, substituted);
        substituted
    }

    /// Columns that a family of outputs reads, increasing.
    fn used(&self, call: &Call, members: &Members) -> Vec<Column> {
        let reads = members.reads();
        let inputs =
            reads.inputs.iter().flat_map(|&(first, step, count)| call.read(first, step, count));
        let mut used: Vec<Column> = inputs.chain(reads.time.then_some(call.time)).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// All columns that these are computed from, and these; the search continues past `stored`
    /// columns.
    pub fn reached(&self, roots: &[Column]) -> FxHashSet<Column> {
        let (mut seen, mut stack) = (FxHashSet::default(), roots.to_vec());
        while let Some(column) = stack.pop() {
            if seen.insert(column) {
                stack.extend(self.arguments(column));
            }
        }
        seen
    }

    /// True if a column depends on any of `others` or is one; the search continues past `stored`
    /// columns.
    pub fn depends(&self, column: Column, others: &[Column]) -> bool {
        let mut seen = vec![false; self.list.len()];
        let mut stack = vec![column];
        while let Some(column) = stack.pop() {
            if others.contains(&column) {
                return true;
            }
            if !std::mem::replace(&mut seen[column.0 as usize], true) {
                stack.extend(self.arguments(column));
            }
        }
        false
    }

    /// True if a column is linear in the `unknowns`.
    pub fn is_linear(&self, column: Column, unknowns: &[Column]) -> bool {
        let mut varying: FxHashMap<Column, bool> = FxHashMap::default();
        for k in 0..self.list.len() {
            let column = Column(k as u32);
            let varies =
                unknowns.contains(&column) || self.arguments(column).iter().any(|a| varying[a]);
            varying.insert(column, varies);
        }
        let mut seen = vec![false; self.list.len()];
        let mut stack = vec![column];
        while let Some(column) = stack.pop() {
            if !varying[&column] || std::mem::replace(&mut seen[column.0 as usize], true) {
                continue;
            }
            let linear = match self.definition(column) {
                Definition::Input(_)
                | Definition::Time
                | Definition::Parameter(_)
                | Definition::Constant(_) => true,
                Definition::Unary(op, _) => op == Unary::Neg,
                Definition::Binary(op, a, b) => match op {
                    Binary::Add | Binary::Sub => true,
                    Binary::Mul => !(varying[&a] && varying[&b]),
                    Binary::Div => !varying[&b],
                    _ => false,
                },
                Definition::Call { call, .. } => {
                    let members = self.facts(column).members.as_ref().expect("a call has them");
                    self.is_call_linear(&self.calls[call as usize], members, &varying)
                }
            };
            if !linear {
                return false;
            }
            stack.extend(self.arguments(column));
        }
        true
    }

    /// True if no derivative of these outputs with respect to a varying column reads a varying
    /// column, and they jump at no value of one.
    fn is_call_linear(
        &self,
        call: &Call,
        members: &Members,
        varying: &FxHashMap<Column, bool>,
    ) -> bool {
        let function = &self.functions[call.function];
        // Only the varying reads of a formula matter; they are the same for most members.
        let mut known: FxHashMap<(u32, u32), Vec<Vec<bool>>> = FxHashMap::default();
        let mut is_linear = |contribution: Contribution| {
            let formula = function.formula(contribution.part, contribution.formula);
            let varies = |slot: &u32| {
                function
                    .input(contribution, *slot)
                    .is_some_and(|input| varying[&call.argument(input).0])
            };
            let reads: Vec<bool> = formula.slots.iter().map(varies).collect();
            let known = known.entry((contribution.part, contribution.formula)).or_default();
            if known.contains(&reads) {
                return true;
            }
            let varies = |slot: &u32| formula.slots.binary_search(slot).is_ok_and(|k| reads[k]);
            let linear =
                formula.partials.iter().filter(|(slot, _)| varies(slot)).all(|&(_, partial)| {
                    !function.formula(contribution.part, partial).slots.iter().any(varies)
                }) && !formula.jumps.iter().any(varies);
            if linear {
                known.push(reads);
            }
            linear
        };
        members.shares().iter().all(|&Share { contribution, rows, .. }| {
            let slots = &function.formula(contribution.part, contribution.formula).slots;
            let one = |slot: &u32| {
                let input = function.input(contribution, *slot);
                input.is_none_or(|input| {
                    call.reads_one(input, function.step(contribution, *slot), rows)
                })
            };
            let checked = if slots.iter().all(one) { 1 } else { rows };
            (0..checked).all(|row| is_linear(contribution.moved(row)))
        })
    }
}

#[cfg(test)]
mod tests;
