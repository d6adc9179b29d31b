//! The tape: a graph laid out as straight-line code in static single assignment form. It is all a backend
//! ever sees. Fused multiply-adds are decided here and nowhere else, so every backend computes the same bits.

use super::op::{Binary, Unary};
use super::{Expression, Graph, Input, Node};
use std::fmt::{self, Display};

/// The number of an instruction, whose result it names.
pub type Register = u32;

/// One instruction; its arguments are earlier instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instruction {
    /// A number.
    Constant(f64),
    /// A state component.
    State(u32),
    /// A parameter.
    Parameter(u32),
    /// The time.
    Time,
    /// An operation of one argument.
    Unary(Unary, Register),
    /// An operation of two arguments.
    Binary(Binary, Register, Register),
    /// `if(c, a, b)`
    Select(Register, Register, Register),
    /// a·b + c with one rounding.
    Fma(Register, Register, Register),
    /// a·b − c with one rounding.
    Fms(Register, Register, Register),
    /// c − a·b with one rounding.
    Fnma(Register, Register, Register),
}

impl Instruction {
    /// The arguments, in order.
    pub fn arguments(self) -> impl Iterator<Item = Register> {
        use Instruction::*;
        let (list, count) = match self {
            Constant(_) | State(_) | Parameter(_) | Time => ([0; 3], 0),
            Unary(_, a) => ([a, 0, 0], 1),
            Binary(_, a, b) => ([a, b, 0], 2),
            Select(a, b, c) | Fma(a, b, c) | Fms(a, b, c) | Fnma(a, b, c) => ([a, b, c], 3),
        };
        list.into_iter().take(count)
    }

    fn map(self, f: impl Fn(Register) -> Register) -> Instruction {
        use Instruction::*;
        match self {
            Constant(_) | State(_) | Parameter(_) | Time => self,
            Unary(op, a) => Unary(op, f(a)),
            Binary(op, a, b) => Binary(op, f(a), f(b)),
            Select(a, b, c) => Select(f(a), f(b), f(c)),
            Fma(a, b, c) => Fma(f(a), f(b), f(c)),
            Fms(a, b, c) => Fms(f(a), f(b), f(c)),
            Fnma(a, b, c) => Fnma(f(a), f(b), f(c)),
        }
    }
}

/// Straight-line code from (t, x, parameters) to some outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Tape {
    /// First the prologue, then the body.
    pub instructions: Vec<Instruction>,
    /// How many leading instructions depend on parameters and numbers only. A backend runs them once for
    /// each set of parameters.
    pub prologue: usize,
    /// The results.
    pub outputs: Vec<Register>,
    /// Length of the state.
    pub states: usize,
    /// Length of the parameters.
    pub parameters: usize,
}

impl Tape {
    /// Lays out what `outputs` need, with multiply-adds fused.
    ///
    /// # Panics
    /// If the graph reads a slot of a template: templates are instantiated before they become tapes.
    pub fn new(graph: &Graph, outputs: &[Node], states: usize, parameters: usize) -> Tape {
        let order = graph.reachable(outputs);
        let position = |node: Node| order.binary_search(&node).expect("arguments are reachable") as u32;
        let mut code: Vec<Instruction> = order
            .iter()
            .map(|&node| match graph.expression(node) {
                Expression::Constant(bits) => Instruction::Constant(f64::from_bits(bits)),
                Expression::Input(Input::State(i)) => Instruction::State(i),
                Expression::Input(Input::Parameter(i)) => Instruction::Parameter(i),
                Expression::Input(Input::Time) => Instruction::Time,
                Expression::Input(Input::Slot(_)) => panic!("a template's slot reached a tape"),
                Expression::Unary(op, a) => Instruction::Unary(op, position(a)),
                Expression::Binary(op, a, b) => Instruction::Binary(op, position(a), position(b)),
                Expression::Select(c, a, b) => Instruction::Select(position(c), position(a), position(b)),
            })
            .collect();
        let mut outputs: Vec<Register> = outputs.iter().map(|&node| position(node)).collect();
        let uniform = uniform(&code);
        let live = fuse(&mut code, &outputs, &uniform);

        // The prologue first; both parts keep their order.
        let (first, second): (Vec<usize>, Vec<usize>) = (0..code.len()).filter(|&i| live[i]).partition(|&i| uniform[i]);
        let prologue = first.len();
        let layout = [first, second].concat();
        let mut place = vec![Register::MAX; code.len()];
        for (new, &old) in layout.iter().enumerate() {
            place[old] = new as Register;
        }
        let instructions = layout.iter().map(|&i| code[i].map(|a| place[a as usize])).collect();
        for output in &mut outputs {
            *output = place[*output as usize];
        }
        Tape { instructions, prologue, outputs, states, parameters }
    }

    /// How many instructions of the body compute something: the cost of one evaluation.
    pub fn operations(&self) -> usize {
        self.instructions[self.prologue..].iter().filter(|i| i.arguments().next().is_some()).count()
    }
}

/// Which instructions depend on nothing but parameters and numbers.
fn uniform(code: &[Instruction]) -> Vec<bool> {
    let mut uniform = vec![true; code.len()];
    for (i, instruction) in code.iter().enumerate() {
        uniform[i] = match instruction {
            Instruction::State(_) | Instruction::Time => false,
            _ => instruction.arguments().all(|a| uniform[a as usize]),
        };
    }
    uniform
}

/// Turns a product that only one sum or difference uses into a fused multiply-add; returns what is still
/// needed.
fn fuse(code: &mut [Instruction], outputs: &[Register], uniform: &[bool]) -> Vec<bool> {
    let mut uses = vec![0u32; code.len()];
    for argument in code.iter().flat_map(|i| i.arguments()).chain(outputs.iter().copied()) {
        uses[argument as usize] += 1;
    }
    let mut live = vec![true; code.len()];
    for i in 0..code.len() {
        // A product of parameters is computed once for the run; fusing it would bring it into the loop.
        let product = |r: Register| match code[r as usize] {
            Instruction::Binary(Binary::Mul, a, b) if uses[r as usize] == 1 && uniform[r as usize] == uniform[i] => {
                Some((a, b))
            }
            _ => None,
        };
        let fused = match code[i] {
            Instruction::Binary(Binary::Add, x, y) => {
                // The later product is the one that is ready last: fusing it shortens the chain.
                product(y)
                    .map(|(a, b)| (Instruction::Fma(a, b, x), y))
                    .or_else(|| product(x).map(|(a, b)| (Instruction::Fma(a, b, y), x)))
            }
            Instruction::Binary(Binary::Sub, x, y) => product(y)
                .map(|(a, b)| (Instruction::Fnma(a, b, x), y))
                .or_else(|| product(x).map(|(a, b)| (Instruction::Fms(a, b, y), x))),
            _ => None,
        };
        if let Some((instruction, absorbed)) = fused {
            code[i] = instruction;
            live[absorbed as usize] = false;
        }
    }
    live
}

impl Display for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Instruction::*;
        for (i, instruction) in self.instructions.iter().enumerate() {
            if i == 0 && self.prologue > 0 {
                writeln!(f, "once for each set of parameters:")?;
            }
            if i == self.prologue {
                writeln!(f, "body:")?;
            }
            write!(f, "  r{i} = ")?;
            match *instruction {
                Constant(v) => writeln!(f, "{v}")?,
                State(k) => writeln!(f, "x[{k}]")?,
                Parameter(k) => writeln!(f, "parameter[{k}]")?,
                Time => writeln!(f, "t")?,
                Unary(op, a) => writeln!(f, "{} r{a}", op.name())?,
                Binary(op, a, b) => writeln!(f, "r{a} {} r{b}", op.name())?,
                Select(c, a, b) => writeln!(f, "if r{c} then r{a} else r{b}")?,
                Fma(a, b, c) => writeln!(f, "fma r{a}*r{b} + r{c}")?,
                Fms(a, b, c) => writeln!(f, "fma r{a}*r{b} - r{c}")?,
                Fnma(a, b, c) => writeln!(f, "fma r{c} - r{a}*r{b}")?,
            }
        }
        writeln!(f, "outputs: {}", self.outputs.iter().map(|r| format!("r{r}")).collect::<Vec<_>>().join(" "))
    }
}
