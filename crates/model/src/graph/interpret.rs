//! Backends turn a [`Tape`] into a [`Kernel`]. The scalar interpreter is the truth that others must equal
//! bit for bit.

use super::op::{Binary, Unary};
use super::tape::{Instruction, Register, Tape};

/// Something that can run tapes: the interpreter here, machine code elsewhere.
pub trait Backend {
    /// Compiles `tape`.
    ///
    /// # Errors
    /// When this machine or system cannot run what the backend makes; the caller falls back to the
    /// [`Interpreter`], which never refuses.
    fn compile(&self, tape: &Tape) -> Result<Box<dyn Kernel>, Refused>;
}

/// Why a backend does not serve here.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    /// For the user, in one sentence.
    pub reason: String,
}

/// A compiled tape: immutable, shared between threads; scratch comes from the caller.
pub trait Kernel: Send + Sync {
    /// Scratch needed by [`Kernel::run`], in numbers.
    fn work_len(&self) -> usize;

    /// Number of outputs.
    fn outputs(&self) -> usize;

    /// Runs the prologue for one set of parameters; the result goes into every [`Kernel::run`].
    fn bind(&self, parameters: &[f64]) -> Vec<f64>;

    /// Evaluates the outputs at (t, x).
    fn run(&self, bound: &[f64], t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]);
}

/// The scalar interpreter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interpreter;

impl Backend for Interpreter {
    fn compile(&self, tape: &Tape) -> Result<Box<dyn Kernel>, Refused> {
        Ok(Box::new(Program::new(tape)))
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Unary(Unary),
    Binary(Binary),
    Select,
    Fma,
    Fms,
    Fnma,
}

impl Operation {
    #[inline(always)]
    fn evaluate(self, a: f64, b: f64, c: f64) -> f64 {
        match self {
            Operation::Binary(op) => op.evaluate(a, b),
            Operation::Fma => a.mul_add(b, c),
            Operation::Fms => a.mul_add(b, -c),
            Operation::Fnma => (-a).mul_add(b, c),
            Operation::Unary(op) => op.evaluate(a),
            Operation::Select => {
                if a != 0.0 {
                    b
                } else {
                    c
                }
            }
        }
    }

    fn of(instruction: Instruction) -> Option<(Operation, [Register; 3])> {
        use Instruction::*;
        Some(match instruction {
            Constant(_) | State(_) | Parameter(_) | Time => return None,
            Instruction::Unary(op, a) => (Operation::Unary(op), [a, a, a]),
            Instruction::Binary(op, a, b) => (Operation::Binary(op), [a, b, a]),
            Select(c, a, b) => (Operation::Select, [c, a, b]),
            Fma(a, b, c) => (Operation::Fma, [a, b, c]),
            Fms(a, b, c) => (Operation::Fms, [a, b, c]),
            Fnma(a, b, c) => (Operation::Fnma, [a, b, c]),
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Step {
    operation: Operation,
    destination: u32,
    arguments: [u32; 3],
}

/// A tape with its registers assigned to slots of the scratch: x, t, the bound values, then temporaries
/// that are reused as soon as their value is dead.
struct Program {
    prologue: Vec<Instruction>,
    /// The prologue's registers that the body reads, in the order of their slots.
    bound: Vec<Register>,
    steps: Vec<Step>,
    outputs: Vec<u32>,
    states: usize,
    slots: usize,
}

impl Program {
    fn new(tape: &Tape) -> Program {
        let code = &tape.instructions;
        let mut last_use = vec![0usize; code.len()];
        for (i, instruction) in code.iter().enumerate() {
            for a in instruction.arguments() {
                last_use[a as usize] = i;
            }
        }
        for &output in &tape.outputs {
            last_use[output as usize] = usize::MAX;
        }

        let mut slot = vec![u32::MAX; code.len()];
        let mut bound = Vec::new();
        for i in 0..tape.prologue {
            if last_use[i] >= tape.prologue {
                slot[i] = (tape.states + 1 + bound.len()) as u32;
                bound.push(i as Register);
            }
        }
        let first_temporary = (tape.states + 1 + bound.len()) as u32;
        let mut top = first_temporary;
        let mut free: Vec<u32> = Vec::new();
        let mut steps = Vec::new();
        for i in tape.prologue..code.len() {
            match code[i] {
                Instruction::State(k) => slot[i] = k,
                Instruction::Time => slot[i] = tape.states as u32,
                instruction => {
                    let (operation, arguments) =
                        Operation::of(instruction).expect("numbers and parameters are in the prologue");
                    let arguments = arguments.map(|a| slot[a as usize]);
                    // Arguments are read before the result is written, so a dead argument's slot may take it.
                    let dying = free.len();
                    for a in instruction.arguments() {
                        let s = slot[a as usize];
                        // An argument may stand twice in one instruction.
                        if last_use[a as usize] == i && s >= first_temporary && !free[dying..].contains(&s) {
                            free.push(s);
                        }
                    }
                    slot[i] = free.pop().unwrap_or_else(|| {
                        top += 1;
                        top - 1
                    });
                    steps.push(Step { operation, destination: slot[i], arguments });
                }
            }
        }
        Program {
            prologue: code[..tape.prologue].to_vec(),
            bound,
            steps,
            outputs: tape.outputs.iter().map(|&r| slot[r as usize]).collect(),
            states: tape.states,
            slots: top as usize,
        }
    }
}

impl Kernel for Program {
    fn work_len(&self) -> usize {
        self.slots
    }

    fn outputs(&self) -> usize {
        self.outputs.len()
    }

    fn bind(&self, parameters: &[f64]) -> Vec<f64> {
        let mut value = vec![0.0; self.prologue.len()];
        for (i, &instruction) in self.prologue.iter().enumerate() {
            value[i] = match instruction {
                Instruction::Constant(v) => v,
                Instruction::Parameter(k) => parameters[k as usize],
                _ => {
                    let (operation, [a, b, c]) = Operation::of(instruction).expect("no state or time in a prologue");
                    operation.evaluate(value[a as usize], value[b as usize], value[c as usize])
                }
            };
        }
        self.bound.iter().map(|&r| value[r as usize]).collect()
    }

    fn run(&self, bound: &[f64], t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        let n = self.states;
        work[..n].copy_from_slice(&x[..n]);
        work[n] = t;
        work[n + 1..n + 1 + bound.len()].copy_from_slice(bound);
        for step in &self.steps {
            let [a, b, c] = step.arguments.map(|s| work[s as usize]);
            work[step.destination as usize] = step.operation.evaluate(a, b, c);
        }
        for (o, &slot) in out.iter_mut().zip(&self.outputs) {
            *o = work[slot as usize];
        }
    }
}
