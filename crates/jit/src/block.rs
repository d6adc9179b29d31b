//! Block interpreter: like the interpreter, but carries out every instruction on a block of lanes
//! before the next one. The loops over lanes have a fixed length, so the compiler turns them into
//! vector instructions. It compiles them several times, and the version for the processor is chosen
//! at run time.
//!
//! Closures do not inherit the target features of the function around them, so there are macros and
//! loops instead.

use holonome_model::graph::aligned::Aligned;
use holonome_model::graph::elementary::Elementary;
use holonome_model::graph::interpret::{Backend, Kernel, Prologue, Refused};
use holonome_model::graph::primitive::{One, TRUE, Three, Two, shuffle};
use holonome_model::graph::tape::{Instruction, Tape};

/// Interpreter of tapes on any processor, many lanes at once.
#[derive(Clone, Copy, Debug)]
pub struct BlockInterpreter {
    features: Features,
}

/// Version of the loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Features {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Lanes in a block: enough to hide the interpretation, few enough for the values to stay in the
/// nearest cache.
const BLOCK: usize = 64;

impl BlockInterpreter {
    /// Interpreter with the best instructions of this processor.
    pub fn detect() -> BlockInterpreter {
        #[cfg(target_arch = "x86_64")]
        let features = match crate::Isa::detect() {
            Ok(crate::Isa::Avx512) => Features::Avx512,
            Ok(crate::Isa::Avx2) => Features::Avx2,
            Err(_) => Features::Baseline,
        };
        #[cfg(not(target_arch = "x86_64"))]
        let features = Features::Baseline;
        BlockInterpreter { features }
    }

    /// Interpreter with only the instructions for which this program was compiled.
    pub fn baseline() -> BlockInterpreter {
        BlockInterpreter { features: Features::Baseline }
    }

    /// Number of lanes for which ensembles run best.
    pub fn preferred_lanes(&self) -> usize {
        BLOCK
    }

    /// Program for `lanes` lanes: all lanes of its arrays, or the first one of `stride`.
    pub(crate) fn compile_lanes(self, tape: &Tape, lanes: usize, stride: usize) -> Box<dyn Kernel> {
        debug_assert!(lanes == stride || lanes == 1);
        let compiled = if lanes == stride {
            self.compile(tape, lanes)
        } else {
            self.compile_first_lane(tape, stride)
        };
        compiled.expect("the interpreter never refuses")
    }
}

impl Backend for BlockInterpreter {
    fn compile(&self, tape: &Tape, lanes: usize) -> Result<Box<dyn Kernel>, Refused> {
        Ok(Box::new(Program::new(tape, lanes, *self)))
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    One(One),
    Two(Two),
    Three(Three),
    Repair(Elementary),
}

#[derive(Clone, Copy, Debug)]
struct Step {
    operation: Operation,
    destination: u32,
    arguments: [u32; 4],
}

/// A tape whose values have slots in the scratch: x, t, the bound values, temporaries that are
/// reused as soon as their value is dead, and finally the outputs. A slot holds a block of lanes.
pub(crate) struct Program {
    prologue: Prologue,
    steps: Vec<Step>,
    outputs: Vec<u32>,
    goes_on: Option<u32>,
    states: usize,
    lanes: usize,
    slots: usize,
    features: Features,
    /// Lanes that a loop works on at once: 1, 4 or 8.
    width: usize,
    /// Lanes of a slot, a multiple of the width.
    block: usize,
}

/// True if spread numbers are those of lanes that there are, and all lanes are in one block.
fn mixed_within(code: &[Instruction], lanes: usize) -> bool {
    code.iter().all(|instruction| match instruction {
        Instruction::Three(Three::Shuffle, ..) => lanes == 1 || lanes == 4 || lanes == 8,
        Instruction::One(One::Spread(lane), _) => usize::from(*lane) < lanes && lanes <= BLOCK,
        _ => true,
    })
}

/// Last read of each value of a tape; 0 if there is none.
fn last_uses(tape: &Tape) -> Vec<usize> {
    let code = &tape.instructions;
    let mut last_use = vec![0usize; code.len()];
    for &output in tape.outputs.iter().chain(&tape.goes_on) {
        last_use[output as usize] = usize::MAX;
    }
    for (i, instruction) in code.iter().enumerate().rev() {
        for a in instruction.arguments() {
            assert!((a as usize) < i, "an instruction reads a later one");
            if last_use[i] != 0 {
                last_use[a as usize] = last_use[a as usize].max(i);
            }
        }
    }
    last_use
}

impl Program {
    /// # Panics
    /// If the tape is out of order: an instruction reads a later one or a state that does not
    /// exist, or numbers and parameters follow the prologue.
    pub(crate) fn new(tape: &Tape, lanes: usize, with: BlockInterpreter) -> Program {
        assert!(lanes > 0, "a kernel has at least one lane");
        let code = &tape.instructions;
        let last_use = last_uses(tape);
        let prologue = Prologue::new(tape);
        let mut slot = vec![u32::MAX; code.len()];
        for (k, &register) in prologue.bound().iter().enumerate() {
            slot[register as usize] = (tape.states + 1 + k) as u32;
        }
        let first_temporary = (tape.states + 1 + prologue.bound().len()) as u32;
        let mut top = first_temporary;
        let mut free: Vec<u32> = Vec::new();
        let mut steps = Vec::new();
        for i in tape.prologue..code.len() {
            let instruction = code[i];
            let operation = match instruction {
                Instruction::State(k) => {
                    assert!((k as usize) < tape.states, "there is no state {k}");
                    slot[i] = k;
                    continue;
                }
                Instruction::Time => {
                    slot[i] = tape.states as u32;
                    continue;
                }
                Instruction::Constant(_) | Instruction::Parameter(_) => {
                    panic!("numbers and parameters are in the prologue")
                }
                _ if last_use[i] == 0 => continue,
                Instruction::One(op, _) => Operation::One(op),
                Instruction::Two(op, ..) => Operation::Two(op),
                Instruction::Three(op, ..) => Operation::Three(op),
                Instruction::Repair(function, _) => Operation::Repair(function),
            };
            let mut arguments = [0; 4];
            let dying = free.len();
            for (place, a) in arguments.iter_mut().zip(instruction.arguments()) {
                let s = slot[a as usize];
                *place = s;
                // A result may take the slot of a dead argument: in every lane, arguments are read
                // before the result is written. An argument may occur twice in one instruction.
                if last_use[a as usize] == i && s >= first_temporary && !free[dying..].contains(&s)
                {
                    free.push(s);
                }
            }
            slot[i] = free.pop().unwrap_or_else(|| {
                top += 1;
                top - 1
            });
            steps.push(Step { operation, destination: slot[i], arguments });
        }
        assert!(mixed_within(code, lanes), "a lane that there is not, or too many of them");
        let width = match lanes {
            1 => 1,
            2..=4 => 4,
            _ => 8,
        };
        Program {
            prologue,
            steps,
            outputs: tape.outputs.iter().map(|&r| slot[r as usize]).collect(),
            goes_on: tape.goes_on.map(|r| slot[r as usize]),
            states: tape.states,
            lanes,
            slots: top as usize,
            features: with.features,
            width,
            block: lanes.next_multiple_of(width).min(BLOCK),
        }
    }

    /// Put the bound values and states of lanes `first`.. into their slots; returns the number of
    /// these lanes. The rest of a slot is padded with the last of them; its results are ignored.
    fn load(&self, bound: &[f64], x: &[f64], first: usize, work: &mut [f64]) -> usize {
        let count = self.block.min(self.lanes - first);
        let values = self.prologue.bound().len();
        for k in 0..self.states {
            self.fill(x, k, first, count, k, work);
        }
        for k in 0..values {
            self.fill(bound, k, first, count, self.states + 1 + k, work);
        }
        count
    }

    #[inline]
    fn fill(
        &self,
        from: &[f64],
        k: usize,
        first: usize,
        count: usize,
        slot: usize,
        work: &mut [f64],
    ) {
        let start = k * self.lanes + first;
        let slot = &mut work[slot * self.block..][..self.block];
        let (used, rest) = slot.split_at_mut(count);
        used.copy_from_slice(&from[start..][..count]);
        rest.fill(used[count - 1]);
    }

    /// Evaluate a block whose states, time and bound values are in the scratch.
    fn evaluate(&self, work: &mut [f64]) {
        assert!(work.len() >= self.slots * self.block, "the scratch is too short");
        let (steps, block, work) = (&self.steps[..], self.block, work.as_mut_ptr());
        // SAFETY: all slots are below `self.slots`, for which the scratch has room; `block` is a
        // multiple of `width`; the features were detected.
        unsafe {
            match (self.features, self.width) {
                (Features::Baseline, 1) => evaluate::<1>(steps, 1, work),
                (Features::Baseline, 4) => evaluate::<4>(steps, block, work),
                (Features::Baseline, _) => evaluate::<8>(steps, block, work),
                #[cfg(target_arch = "x86_64")]
                (Features::Avx2, 1) => evaluate_avx2::<1>(steps, 1, work),
                #[cfg(target_arch = "x86_64")]
                (Features::Avx2, 4) => evaluate_avx2::<4>(steps, block, work),
                #[cfg(target_arch = "x86_64")]
                (Features::Avx2, _) => evaluate_avx2::<8>(steps, block, work),
                #[cfg(target_arch = "x86_64")]
                (Features::Avx512, 1) => evaluate_avx512::<1>(steps, 1, work),
                #[cfg(target_arch = "x86_64")]
                (Features::Avx512, 4) => evaluate_avx512::<4>(steps, block, work),
                #[cfg(target_arch = "x86_64")]
                (Features::Avx512, _) => evaluate_avx512::<8>(steps, block, work),
            }
        }
    }
}

/// # Safety
/// See [`evaluate`]; the processor has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn evaluate_avx2<const W: usize>(steps: &[Step], block: usize, work: *mut f64) {
    // SAFETY: the caller's promise.
    unsafe { evaluate::<W>(steps, block, work) }
}

/// # Safety
/// See [`evaluate`]; the processor has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
unsafe fn evaluate_avx512<const W: usize>(steps: &[Step], block: usize, work: *mut f64) {
    // SAFETY: the caller's promise.
    unsafe { evaluate::<W>(steps, block, work) }
}

/// Run the steps on one block.
///
/// # Safety
/// `work` holds `block` numbers for every slot that the steps name, and `block` is a multiple of
/// `W`.
#[inline(always)]
unsafe fn evaluate<const W: usize>(steps: &[Step], block: usize, work: *mut f64) {
    // With one lane known at compile time there is no loop.
    let block = if W == 1 { 1 } else { block };
    for step in steps {
        let [a, b, c, d] = step.arguments;
        let (a, b) = (place(work, a, block), place(work, b, block));
        let (c, d) = (place(work, c, block), place(work, d, block));
        let result = place(work, step.destination, block).cast::<[f64; W]>();
        // Loop over lanes. Arguments are read in whole groups before the result, which may take
        // their place.
        macro_rules! each {
            (|$($argument:ident),*| $value:expr) => {
                for group in 0..block / W {
                    // SAFETY: a group of a slot that the steps name, which the caller promises.
                    $(let $argument = unsafe { $argument.cast::<[f64; W]>().add(group).read() };)*
                    let mut values = [0.0; W];
                    for lane in 0..W {
                        $(let $argument = $argument[lane];)*
                        values[lane] = $value;
                    }
                    // SAFETY: as above.
                    unsafe { result.add(group).write(values) };
                }
            };
        }
        match step.operation {
            Operation::Two(Two::Add) => each!(|a, b| Two::Add.evaluate(a, b)),
            Operation::Two(Two::Sub) => each!(|a, b| Two::Sub.evaluate(a, b)),
            Operation::Two(Two::Mul) => each!(|a, b| Two::Mul.evaluate(a, b)),
            Operation::Two(Two::Div) => each!(|a, b| Two::Div.evaluate(a, b)),
            Operation::Two(Two::Less) => each!(|a, b| Two::Less.evaluate(a, b)),
            Operation::Two(Two::LessEqual) => each!(|a, b| Two::LessEqual.evaluate(a, b)),
            Operation::Two(Two::Equal) => each!(|a, b| Two::Equal.evaluate(a, b)),
            Operation::Two(Two::And) => each!(|a, b| Two::And.evaluate(a, b)),
            Operation::Two(Two::Or) => each!(|a, b| Two::Or.evaluate(a, b)),
            Operation::Two(Two::Xor) => each!(|a, b| Two::Xor.evaluate(a, b)),
            Operation::Two(Two::AddInteger) => each!(|a, b| Two::AddInteger.evaluate(a, b)),
            Operation::Two(Two::SubInteger) => each!(|a, b| Two::SubInteger.evaluate(a, b)),
            Operation::Two(Two::LargerInteger) => each!(|a, b| Two::LargerInteger.evaluate(a, b)),
            Operation::Three(Three::Fma) => each!(|a, b, c| Three::Fma.evaluate(a, b, c)),
            Operation::Three(Three::Fms) => each!(|a, b, c| Three::Fms.evaluate(a, b, c)),
            Operation::Three(Three::Fnma) => each!(|a, b, c| Three::Fnma.evaluate(a, b, c)),
            Operation::Three(Three::Select) => each!(|a, b, c| Three::Select.evaluate(a, b, c)),
            Operation::One(One::Sqrt) => each!(|a| One::Sqrt.evaluate(a)),
            Operation::One(One::Spread(lane)) => {
                // SAFETY: the lane is one of the block's, which holds all lanes if there are such
                // steps.
                let value = unsafe { a.add(usize::from(lane)).read() };
                for group in 0..block / W {
                    // SAFETY: as above, a group of a slot that the steps name.
                    unsafe { result.add(group).write([value; W]) };
                }
            }
            Operation::Three(Three::Shuffle) => {
                // SAFETY: slots that the steps name, of as many numbers as there are lanes.
                let [a, b, places] =
                    [a, b, c].map(|slot| unsafe { std::slice::from_raw_parts(slot, block) });
                let mut shuffled = [0.0; W];
                shuffled.iter_mut().zip(places).for_each(|(s, &place)| *s = shuffle(a, b, place));
                // SAFETY: as above; nothing reads the arguments any more.
                unsafe { result.write(shuffled) };
            }
            Operation::One(One::ShiftLeft(count)) => each!(|a| One::ShiftLeft(count).evaluate(a)),
            Operation::One(One::ShiftRight(count)) => each!(|a| One::ShiftRight(count).evaluate(a)),
            Operation::Repair(function) => {
                each!(|a, b, c, d| if d.to_bits() == TRUE { c } else { function.exact(a, b) })
            }
        }
    }
}

/// Start of a slot.
#[inline(always)]
fn place(work: *mut f64, slot: u32, block: usize) -> *mut f64 {
    work.wrapping_add(slot as usize * block)
}

impl Kernel for Program {
    fn lanes(&self) -> usize {
        self.lanes
    }

    fn work_len(&self) -> usize {
        (self.slots + self.outputs.len()) * self.block
    }

    fn outputs(&self) -> usize {
        self.outputs.len()
    }

    fn bind(&self, parameters: &[f64]) -> Aligned {
        self.prologue.bind(parameters, self.lanes)
    }

    fn rebind(&self, bound: &mut [f64], lane: usize, parameters: &[f64]) {
        self.prologue.rebind(bound, self.lanes, lane, parameters);
    }

    fn run(&self, bound: &[f64], t: &[f64], x: &[f64], out: &mut [f64], work: &mut [f64]) {
        for first in (0..self.lanes).step_by(self.block) {
            let count = self.load(bound, x, first, work);
            self.fill(t, 0, first, count, self.states, work);
            self.evaluate(work);
            for (k, &slot) in self.outputs.iter().enumerate() {
                out[k * self.lanes + first..][..count]
                    .copy_from_slice(&work[slot as usize * self.block..][..count]);
            }
        }
    }

    fn iterate(&self, bound: &[f64], x: &mut [f64], count: u64, work: &mut [f64]) {
        assert!(self.outputs.len() <= self.states, "more outputs than states to put them into");
        let block = self.block;
        for first in (0..self.lanes).step_by(block) {
            let lanes = self.load(bound, x, first, work);
            for _ in 0..count {
                self.evaluate(work);
                // An output may be another state, so all are read before any is written.
                let (slots, outputs) = work.split_at_mut(self.slots * block);
                for (out, &slot) in outputs.chunks_exact_mut(block).zip(&self.outputs) {
                    out.copy_from_slice(&slots[slot as usize * block..][..block]);
                }
                let stops = self.goes_on.is_some_and(|mask| {
                    slots[mask as usize * block..][..block]
                        .iter()
                        .any(|lane| lane.to_bits() != TRUE)
                });
                let used = self.outputs.len() * block;
                slots[..used].copy_from_slice(&outputs[..used]);
                if stops {
                    break;
                }
            }
            for k in 0..self.outputs.len() {
                x[k * self.lanes + first..][..lanes].copy_from_slice(&work[k * block..][..lanes]);
            }
        }
    }
}
