//! A tape as machine code, and its checks.

use crate::block::BlockInterpreter;
use crate::emit::{self, Emitted, Shape};
use crate::isa::Isa;
use crate::memory::Executable;
use crate::steps::Analysis;
use holonome_model::graph::aligned::{Aligned, LINE_NUMBERS, first_aligned};
use holonome_model::graph::interpret::{Kernel, Prologue, Refused, keep_one_by_one};
use holonome_model::graph::primitive::Three;
use holonome_model::graph::tape::{Instruction, Tape};

/// Operations above which a tape is not compiled as a loop: registers carried between turns no
/// longer matter, and the code would fill the instruction cache twice.
pub(crate) const LONGEST_LOOP: usize = 8192;

/// Numbers of scratch that alignment to a cache line may skip.
pub(crate) const LINE: usize = LINE_NUMBERS;

/// Code before it is executable.
pub(crate) struct Parts {
    prologue: Prologue,
    pub shape: Shape,
    pub run: Emitted,
    /// True if `run` goes from each state to the next.
    pub chains: bool,
    pub iterate: Option<Emitted>,
    repairs: bool,
}

impl Parts {
    pub(crate) fn new(tape: &Tape, shape: Shape) -> Result<Parts, Refused> {
        assert!(shape.computed > 0, "a kernel has at least one lane");
        let prologue = Prologue::new(tape);
        // There are at most as many spilled values as values.
        let longest = tape
            .states
            .max(tape.outputs.len())
            .max(prologue.bound().len())
            .max(tape.instructions.len());
        if !shape.reaches(longest) {
            return Err(Refused {
                reason: "the formulas are too long for machine code".to_string(),
            });
        }
        let shuffles =
            tape.instructions.iter().any(|i| matches!(i, Instruction::Three(Three::Shuffle, ..)));
        if shuffles && (shape.isa != Isa::Avx512 || shape.vectors != 1) {
            return Err(Refused { reason: "these lanes cannot be shuffled".to_string() });
        }
        let analysis = Analysis::new(tape, &prologue, shape.side_by_side());
        // Single evaluations ignore the condition of a loop.
        let short = tape.operations() <= LONGEST_LOOP || tape.goes_on.is_some();
        let loops = tape.outputs.len() <= tape.states && !tape.reads_time() && short;
        // Computing needs registers too.
        let registers = shape.isa.registers() / 2;
        let iterate = loops.then(|| emit::iterate(&analysis.iterate(registers), shape));
        let repairs = analysis.repairs();
        let chains = loops && !repairs && tape.outputs.len() == tape.states && tape.states > 0;
        let run = emit::run(&analysis.run(), shape, chains.then_some(tape.states));
        Ok(Parts { prologue, shape, run, chains, iterate, repairs })
    }
}

/// A tape as machine code.
pub(crate) struct Compiled {
    pub(crate) prologue: Prologue,
    shape: Shape,
    states: usize,
    outputs: usize,
    reads_time: bool,
    /// Numbers of scratch for spilled values.
    spills: usize,
    memory: Executable,
    /// True if the entry at the start goes from each state to the next.
    chains: bool,
    /// Start of the loop in it.
    iterate: Option<usize>,
    /// Lanes that one call computes, and bytes by which its pointers are ahead of the arrays.
    together: usize,
    bias: usize,
    /// Program that repeats calls in which a repair is due.
    exact: Option<Box<dyn Kernel>>,
}

impl Compiled {
    pub(crate) fn new(tape: &Tape, shape: Shape) -> Result<Compiled, Refused> {
        let Parts { prologue, shape, run, chains, iterate, repairs } = Parts::new(tape, shape)?;
        let spills =
            run.spills.max(iterate.as_ref().map_or(0, |i| i.spills)) * shape.width.numbers();
        let mut bytes = run.bytes;
        let iterate = iterate.map(|i| {
            // On a cache line, as the emitter assumes when it aligns the loop.
            bytes.resize(bytes.len().next_multiple_of(64), 0xcc);
            let start = bytes.len();
            bytes.extend(i.bytes);
            start
        });
        let memory = Executable::new(&bytes).map_err(|reason| Refused { reason })?;
        Ok(Compiled {
            prologue,
            shape,
            states: tape.states,
            outputs: tape.outputs.len(),
            reads_time: tape.reads_time(),
            spills,
            memory,
            chains,
            iterate,
            together: shape.together(),
            bias: shape.bias() as usize,
            exact: repairs.then(|| {
                BlockInterpreter::detect().compile_lanes(tape, shape.computed, shape.lanes)
            }),
        })
    }

    /// Numbers of scratch kept over a call: x if a call may be repeated, or the outputs of one
    /// turn.
    fn kept(&self) -> usize {
        let both = self.exact.is_some() || self.iterate.is_none();
        if both { self.states.max(self.outputs) * self.shape.lanes } else { 0 }
    }

    /// Call the code at `offset` for every vector of lanes; returns true if a repair is due.
    ///
    /// # Safety
    /// There is an entry at `offset`. The arrays are at least as long as the tape's states and
    /// outputs for all lanes and its bound values for those that are computed, t has these if the
    /// tape reads it, and spills fit into `scratch`. For an entry that iterates, `out` may be `x`,
    /// and then x may be written to.
    unsafe fn call(
        &self,
        offset: usize,
        inputs: [*const f64; 3],
        out: *mut f64,
        scratch: *mut f64,
        count: u64,
    ) -> bool {
        let mut flag = 0;
        let mut first = 0;
        while first < self.shape.computed {
            let shift = first * size_of::<f64>() + self.bias;
            let inputs = inputs.map(|p| p.wrapping_byte_add(shift));
            let (out, scratch) =
                (out.wrapping_byte_add(shift), scratch.wrapping_byte_add(self.bias));
            // SAFETY: the memory holds what the emitter made for this tape. It reads and writes
            // only elements k * lanes + first .. + together of the arrays, for variables k of the
            // tape (of bound values with the lanes that are computed), and the scratch up to the
            // spills; the caller promises that all of them exist.
            flag |= unsafe { self.memory.call(offset, inputs, [out, scratch], count) };
            first += self.together;
        }
        flag != 0
    }

    /// Evaluate once, given that the lengths of all arrays are checked.
    fn run_checked(&self, bound: &[f64], t: &[f64], x: &[f64], out: &mut [f64], work: &mut [f64]) {
        let first = first_aligned(work);
        let scratch = &mut work[first..];
        // SAFETY: the entry is at the start; the lengths are checked, and the scratch is long
        // enough after the less than LINE numbers that alignment skips.
        let repair = unsafe {
            self.call(
                0,
                [x.as_ptr(), t.as_ptr(), bound.as_ptr()],
                out.as_mut_ptr(),
                scratch.as_mut_ptr(),
                1,
            )
        };
        if repair && let Some(exact) = &self.exact {
            exact.run(bound, t, x, out, work);
        }
    }

    fn check(&self, bound: &[f64], x: &[f64], work: &[f64]) {
        assert!(
            bound.len() >= self.prologue.bound().len() * self.shape.computed,
            "bound values are missing"
        );
        assert!(x.len() >= self.states * self.shape.lanes, "the state is too short");
        assert!(work.len() >= self.work_len(), "the scratch is too short");
    }
}

impl Kernel for Compiled {
    fn lanes(&self) -> usize {
        self.shape.lanes
    }

    fn work_len(&self) -> usize {
        self.kept() + (self.spills + LINE).max(self.exact.as_ref().map_or(0, |e| e.work_len()))
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn bind(&self, parameters: &[f64]) -> Aligned {
        self.prologue.bind(parameters, self.shape.computed)
    }

    fn rebind(&self, bound: &mut [f64], lane: usize, parameters: &[f64]) {
        self.prologue.rebind(bound, self.shape.computed, lane, parameters);
    }

    fn run(&self, bound: &[f64], t: &[f64], x: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.check(bound, x, work);
        assert!(t.len() >= self.shape.computed, "the time is missing");
        assert!(out.len() >= self.outputs * self.shape.lanes, "no room for the outputs");
        self.run_checked(bound, t, x, out, work);
    }

    fn iterate(&self, bound: &[f64], x: &mut [f64], count: u64, work: &mut [f64]) {
        self.check(bound, x, work);
        assert!(self.outputs <= self.states, "more outputs than states to put them into");
        assert!(!self.reads_time, "a map of time and state cannot be iterated");
        let used = self.outputs * self.shape.lanes;
        if count == 0 || used == 0 {
            return;
        }
        let (kept, work) = work.split_at_mut(self.kept());
        let Some(entry) = self.iterate else {
            for _ in 0..count {
                let out = &mut kept[..used];
                // The time is not read, so any array of its length will do.
                self.run_checked(bound, x, x, out, work);
                if self.shape.computed == self.shape.lanes {
                    x[..used].copy_from_slice(out);
                } else {
                    // The first lane alone has results.
                    let numbers = x
                        .iter_mut()
                        .step_by(self.shape.lanes)
                        .zip(out.iter().step_by(self.shape.lanes));
                    numbers.take(self.outputs).for_each(|(x, out)| *x = *out);
                }
            }
            return;
        };
        let states = self.states * self.shape.lanes;
        if self.exact.is_some() {
            kept[..states].copy_from_slice(&x[..states]);
        }
        let first = first_aligned(work);
        let scratch = &mut work[first..];
        let place = x.as_mut_ptr();
        // SAFETY: the entry of the loop; lengths are checked above, the outputs have room in x, the
        // tape does not read the time, and the scratch is long enough as in `run`.
        let repair = unsafe {
            self.call(entry, [place, place, bound.as_ptr()], place, scratch.as_mut_ptr(), count)
        };
        if repair && let Some(exact) = &self.exact {
            x[..states].copy_from_slice(&kept[..states]);
            exact.iterate(bound, x, count, work);
        }
    }

    fn iterate_keeping(&self, bound: &[f64], states: &mut [f64], work: &mut [f64]) {
        if !self.chains {
            return keep_one_by_one(self, bound, states, work);
        }
        self.check(bound, states, work);
        let len = self.states * self.shape.lanes;
        let count = states.len() / len - 1;
        if count == 0 {
            return;
        }
        let first = first_aligned(work);
        let scratch = &mut work[first..];
        let x = states.as_mut_ptr();
        // SAFETY: the entry at the start goes from state to state; it reads `count` states from the
        // first one on and writes as many from the second one on, all of which exist; the tape does
        // not read the time, and the scratch is long enough as in `run`.
        unsafe {
            self.call(0, [x, x, bound.as_ptr()], x.add(len), scratch.as_mut_ptr(), count as u64)
        };
    }
}
