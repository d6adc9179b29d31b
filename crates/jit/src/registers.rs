//! Which value is in which register. The order of the steps is known, so the value to give up is the one that is
//! read again last (L. A. Belady, IBM Systems Journal 5, 78, 1966); one that can be read from memory as it is costs
//! less to give up than one that has to be stored first.

use crate::encode::Vector;
use crate::steps::{NEVER, Value};

/// No register.
pub(crate) const OUTSIDE: Vector = u8::MAX;

/// How much sooner a value with a home may be read again and still be given up before one without.
const STORE_COST: u32 = 2;

/// The registers and what they hold.
pub(crate) struct Registers {
    /// By register.
    values: [Value; 32],
    /// By register: the next step that reads the value.
    next: [u32; 32],
    /// By value: its register.
    places: Vec<Vector>,
    /// A bit for every register that holds nothing.
    free: u32,
    /// A bit for every register that holds an argument of the step at hand.
    pinned: u32,
    /// Registers that are to be free at the end of a turn.
    reserved: u32,
    count: usize,
}

impl Registers {
    pub(crate) fn new(count: usize, values: usize) -> Registers {
        Registers {
            values: [NEVER; 32],
            next: [NEVER; 32],
            places: vec![OUTSIDE; values],
            free: u32::MAX >> (32 - count),
            pinned: 0,
            reserved: 0,
            count,
        }
    }

    /// Asks not to give these registers to anything where there are others.
    pub(crate) fn reserve(&mut self, registers: u32) {
        self.reserved = registers;
    }

    pub(crate) fn place(&self, value: Value) -> Option<Vector> {
        Some(self.places[value as usize]).filter(|&r| r != OUTSIDE)
    }

    pub(crate) fn is_free(&self, register: Vector) -> bool {
        self.free & (1 << register) != 0
    }

    pub(crate) fn pin(&mut self, register: Vector) {
        self.pinned |= 1 << register;
    }

    pub(crate) fn unpin(&mut self) {
        self.pinned = 0;
    }

    /// Notes when the value in `register` is read again.
    pub(crate) fn read_next(&mut self, register: Vector, next: u32) {
        self.next[register as usize] = next;
    }

    /// `register` now holds `value`.
    pub(crate) fn put(&mut self, register: Vector, value: Value, next: u32) {
        debug_assert!(self.is_free(register));
        self.free &= !(1 << register);
        self.values[register as usize] = value;
        self.next[register as usize] = next;
        self.places[value as usize] = register;
    }

    /// The value in `register`, which now holds nothing.
    pub(crate) fn take(&mut self, register: Vector) -> Value {
        debug_assert!(!self.is_free(register));
        let value = std::mem::replace(&mut self.values[register as usize], NEVER);
        self.places[value as usize] = OUTSIDE;
        self.free |= 1 << register;
        value
    }

    /// A free register, if there is one.
    pub(crate) fn vacant(&self) -> Option<Vector> {
        let best = if self.free & !self.reserved != 0 { self.free & !self.reserved } else { self.free };
        (best != 0).then(|| best.trailing_zeros() as Vector)
    }

    /// How many registers hold nothing.
    pub(crate) fn vacancies(&self) -> u32 {
        self.free.count_ones()
    }

    /// The register to give up at step `now`, when none is free; `has_home` says what need not be stored.
    pub(crate) fn victim(&self, now: u32, has_home: impl Fn(Value) -> bool) -> Vector {
        let (mut best, mut victim) = (0, OUTSIDE);
        for r in 0..self.count {
            if self.pinned & (1 << r) != 0 {
                continue;
            }
            let distance = self.next[r].saturating_sub(now);
            let cost = if has_home(self.values[r]) { 1 } else { STORE_COST };
            let key = distance / cost + 1;
            if key > best {
                (best, victim) = (key, r as Vector);
            }
        }
        assert!(victim != OUTSIDE, "a step has fewer arguments than there are registers");
        victim
    }
}
