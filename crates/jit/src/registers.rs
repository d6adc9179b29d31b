//! Allocation of values to registers. The order of the steps is known, so the value to evict is the
//! one that is read again last (L. A. Belady, IBM Systems Journal 5, 78, 1966). A value that is in
//! memory as well costs less to evict than one that has to be stored first.

use crate::encode::Vector;
use crate::steps::{NEVER, Value};

/// No register.
pub(crate) const OUTSIDE: Vector = u8::MAX;

/// Factor by which a value without a home must be read later than one with a home to be evicted
/// before it.
const STORE_COST: u32 = 2;

/// Registers and the values in them.
pub(crate) struct Registers {
    /// Value, by register.
    values: [Value; 32],
    /// Next step that reads the value, by register.
    next: [u32; 32],
    /// Register, by value.
    places: Vec<Vector>,
    /// Bits of the registers that are free.
    free: u32,
    /// Bits of the registers that hold an argument of the current step.
    pinned: u32,
    /// Bits of the registers that should be free at the end of a turn.
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

    /// Give these registers to a value only if no others are free.
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

    /// Set the next step that reads the value in `register`.
    pub(crate) fn read_next(&mut self, register: Vector, next: u32) {
        self.next[register as usize] = next;
    }

    /// Put `value` into the free `register`.
    pub(crate) fn put(&mut self, register: Vector, value: Value, next: u32) {
        debug_assert!(self.is_free(register));
        self.free &= !(1 << register);
        self.values[register as usize] = value;
        self.next[register as usize] = next;
        self.places[value as usize] = register;
    }

    /// Free `register` and return its value.
    pub(crate) fn take(&mut self, register: Vector) -> Value {
        debug_assert!(!self.is_free(register));
        let value = std::mem::replace(&mut self.values[register as usize], NEVER);
        self.places[value as usize] = OUTSIDE;
        self.free |= 1 << register;
        value
    }

    /// A free register, preferably one that is not reserved.
    pub(crate) fn vacant(&self) -> Option<Vector> {
        let best =
            if self.free & !self.reserved != 0 { self.free & !self.reserved } else { self.free };
        (best != 0).then(|| best.trailing_zeros() as Vector)
    }

    /// Number of free registers.
    pub(crate) fn vacancies(&self) -> u32 {
        self.free.count_ones()
    }

    /// Register to evict at step `now` when none is free; values with `has_home` need not be
    /// stored.
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
