//! Loops whose operations are [packed](crate::pack).

use crate::emit::Shape;
use crate::isa::Isa;
use crate::kernel::Compiled;
use crate::pack::{Fixed, LANES, pack, suits};
use holonome_model::graph::aligned::{Aligned, LINE_NUMBERS, first_aligned};
use holonome_model::graph::interpret::Kernel;
use holonome_model::graph::tape::Tape;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Turns from which on a loop is packed. That takes two to four microseconds for each operation, as
/// long as some 8000 turns.
pub(crate) const FEWEST: u64 = 8192;
/// Turns of one call for which it is worthwhile to put the numbers into the lanes of packs.
const FEWEST_AT_ONCE: u64 = 8;
/// No state.
const NONE: u32 = u32::MAX;

/// Kernel of one lane that iterates in packs once it has been iterated often.
pub(crate) struct PackedLoop {
    tape: Tape,
    isa: Isa,
    /// Code of the operations one by one.
    alone: Compiled,
    /// Turns from which on it is packed, and those made.
    fewest: u64,
    turns: AtomicU64,
    /// `None` if nothing is won by packs.
    packs: OnceLock<Option<Packs>>,
}

/// Code of packs.
struct Packs {
    code: Compiled,
    /// State in every lane of those of the code; lanes that need none repeat another.
    states: Vec<u32>,
    /// Lanes of them that are results, and the states that they are.
    results: Vec<(u32, u32)>,
    /// Number in every lane of a bound value of the code: that of a bound value of the operations
    /// one by one, or bits.
    fixed: Vec<Fixed>,
}

/// Largest scratch of a kernel of `tape` for its packs. There are at most as many states in lanes,
/// spilled values and bound values as there are arguments of its operations.
pub(crate) fn most_work(tape: &Tape) -> usize {
    if suits(tape) { LANES * (2 * tape.states + 4 * tape.instructions.len()) } else { 0 }
}

impl PackedLoop {
    /// True if [`PackedLoop::new`] may be of use.
    pub(crate) fn suits(tape: &Tape, isa: Isa) -> bool {
        isa == Isa::Avx512 && suits(tape)
    }

    /// Kernel of a tape, of which there is code, that is packed from `fewest` turns on.
    pub(crate) fn new(tape: &Tape, alone: Compiled, isa: Isa, fewest: u64) -> PackedLoop {
        let (turns, packs) = (AtomicU64::new(0), OnceLock::new());
        let packed = PackedLoop { tape: tape.clone(), isa, alone, fewest, turns, packs };
        packed.packs(0);
        packed
    }

    /// Packs for so many turns more, once there have been enough.
    fn packs(&self, count: u64) -> Option<&Packs> {
        if self.packs.get().is_none()
            && self.turns.fetch_add(count, Relaxed).saturating_add(count) < self.fewest
        {
            return None;
        }
        self.packs.get_or_init(|| Packs::new(&self.tape, &self.alone, self.isa)).as_ref()
    }
}

impl Packs {
    /// Code of the packs of a tape, if they are worthwhile and possible.
    fn new(tape: &Tape, alone: &Compiled, isa: Isa) -> Option<Packs> {
        let packed = pack(tape)?;
        let code = Compiled::new(&packed.tape, Shape::new(isa, LANES, &packed.tape)).ok()?;
        let bound = alone.prologue.bound();
        let place = |fixed: Fixed| match fixed {
            Fixed::Bound(register) => {
                Fixed::Bound(bound.binary_search(&register).expect("the body reads it") as u32)
            }
            bits => bits,
        };
        let parameters = code.prologue.bound().iter().map(|&k| packed.parameters[k as usize]);
        let fixed: Vec<Fixed> = parameters.flatten().map(place).collect();
        let (mut results, mut known) = (Vec::new(), vec![false; tape.states]);
        let changing = packed.states[..packed.tape.outputs.len()].as_flattened();
        for (lane, &k) in changing.iter().enumerate().filter(|&(_, &k)| k != NONE) {
            if !std::mem::replace(&mut known[k as usize], true) {
                results.push((lane as u32, k));
            }
        }
        let some = |held: [u32; LANES]| {
            let first = *held.iter().find(|&&k| k != NONE).expect("it holds a state");
            held.map(|k| if k == NONE { first } else { k })
        };
        let states = packed.states.into_iter().flat_map(some).collect();
        let packs = Packs { code, states, results, fixed };
        (packs.work_len() <= most_work(tape)).then_some(packs)
    }

    fn work_len(&self) -> usize {
        LINE_NUMBERS + self.states.len() + self.fixed.len() + self.code.work_len()
    }

    fn iterate(&self, bound: &[f64], x: &mut [f64], count: u64, work: &mut [f64]) {
        let first = first_aligned(work);
        let (states, work) = work[first..].split_at_mut(self.states.len());
        let (values, work) = work.split_at_mut(self.fixed.len());
        states.iter_mut().zip(&self.states).for_each(|(lane, &k)| *lane = x[k as usize]);
        for (lane, fixed) in values.iter_mut().zip(&self.fixed) {
            *lane = match *fixed {
                Fixed::Bound(k) => bound[k as usize],
                Fixed::Bits(bits) => f64::from_bits(bits),
            };
        }
        self.code.iterate(values, states, count, work);
        self.results.iter().for_each(|&(lane, k)| x[k as usize] = states[lane as usize]);
    }
}

impl Kernel for PackedLoop {
    fn lanes(&self) -> usize {
        1
    }

    fn work_len(&self) -> usize {
        self.alone.work_len().max(most_work(&self.tape))
    }

    fn outputs(&self) -> usize {
        self.alone.outputs()
    }

    fn bind(&self, parameters: &[f64]) -> Aligned {
        self.alone.bind(parameters)
    }

    fn rebind(&self, bound: &mut [f64], lane: usize, parameters: &[f64]) {
        self.alone.rebind(bound, lane, parameters);
    }

    fn run(&self, bound: &[f64], t: &[f64], x: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.alone.run(bound, t, x, out, work);
    }

    fn iterate(&self, bound: &[f64], x: &mut [f64], count: u64, work: &mut [f64]) {
        match self.packs(count).filter(|_| count >= FEWEST_AT_ONCE) {
            Some(packs) => packs.iterate(bound, x, count, work),
            None => self.alone.iterate(bound, x, count, work),
        }
    }

    fn iterate_keeping(&self, bound: &[f64], states: &mut [f64], work: &mut [f64]) {
        self.alone.iterate_keeping(bound, states, work);
    }
}

#[cfg(test)]
mod tests;
