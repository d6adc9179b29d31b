//! Tapes: formulas laid out as straight-line code in static single assignment form, out of
//! [primitive operations](super::primitive) only. A backend sees nothing else. The operations of a
//! formula are decided before: fused multiply-adds in [`fuse`](super::fuse), elementary functions
//! in [`elementary`](super::elementary). So every backend computes the same bits.

use super::elementary::{Arithmetic, Elementary, Special, reciprocal_root};
use super::fuse::fuse;
use super::op::{Binary, Unary};
use super::primitive::{FALSE, One, Primitives, TRUE, Three, Two, rough_power};
use super::{Expression, Graph, Input, Node};
use rustc_hash::FxHashMap;
use std::fmt::{self, Display};

/// Number of an instruction, which names its result.
pub type Register = u32;

/// One instruction; its arguments are earlier instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// A number or a pattern of bits.
    Constant(u64),
    /// A state component.
    State(u32),
    /// A parameter.
    Parameter(u32),
    /// The time.
    Time,
    /// An operation of one argument.
    One(One, Register),
    /// An operation of two arguments.
    Two(Two, Register, Register),
    /// An operation of three arguments.
    Three(Three, Register, Register, Register),
    /// A function of two arguments. Its value is the third register if the fourth, a mask, is true
    /// (see [`Arithmetic::repair`]).
    Repair(Elementary, [Register; 4]),
}

impl Instruction {
    /// The arguments, in order.
    pub fn arguments(self) -> impl Iterator<Item = Register> {
        use Instruction::*;
        let (list, count) = match self {
            Constant(_) | State(_) | Parameter(_) | Time => ([0; 4], 0),
            One(_, a) => ([a, 0, 0, 0], 1),
            Two(_, a, b) => ([a, b, 0, 0], 2),
            Three(_, a, b, c) => ([a, b, c, 0], 3),
            Repair(_, list) => (list, 4),
        };
        list.into_iter().take(count)
    }

    /// This instruction with other arguments.
    pub fn map(self, f: impl Fn(Register) -> Register) -> Instruction {
        use Instruction::*;
        match self {
            Constant(_) | State(_) | Parameter(_) | Time => self,
            One(op, a) => One(op, f(a)),
            Two(op, a, b) => Two(op, f(a), f(b)),
            Three(op, a, b, c) => Three(op, f(a), f(b), f(c)),
            Repair(function, list) => Repair(function, list.map(f)),
        }
    }
}

/// Straight-line code from (t, x, parameters) to some outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Tape {
    /// The prologue, followed by the body.
    pub instructions: Vec<Instruction>,
    /// Number of leading instructions that depend on parameters and numbers only. A backend runs
    /// them once for each set of parameters.
    pub prologue: usize,
    /// Results.
    pub outputs: Vec<Register>,
    /// Condition of going on, a mask, of a map that is iterated. The loop ends early when it
    /// becomes false. Turns that other lanes still need must leave the outputs of a lane that is
    /// done unchanged.
    pub goes_on: Option<Register>,
    /// Length of the state.
    pub states: usize,
    /// Length of the parameters.
    pub parameters: usize,
}

impl Tape {
    /// Lay out the instructions that `outputs` need, with multiply-adds fused.
    ///
    /// # Panics
    /// If the graph reads a slot of a template: templates are instantiated before they become
    /// tapes.
    pub fn new(graph: &Graph, outputs: &[Node], states: usize, parameters: usize) -> Tape {
        let (graph, outputs) = fuse(graph, outputs);
        Tape::of_fused(&graph, &outputs, states, parameters)
    }

    /// Lay out a graph whose multiply-adds are fused already.
    ///
    /// # Panics
    /// See [`Tape::new`].
    pub fn of_fused(graph: &Graph, outputs: &[Node], states: usize, parameters: usize) -> Tape {
        Builder::default().tape(graph, (outputs, None), states, parameters)
    }

    /// Lay out a map that is iterated while the condition `goes_on` is true; nothing more is fused.
    ///
    /// # Panics
    /// See [`Tape::new`].
    pub fn of_loop(
        graph: &Graph,
        outputs: &[Node],
        goes_on: Node,
        states: usize,
        parameters: usize,
    ) -> Tape {
        Builder::default().tape(graph, (outputs, Some(goes_on)), states, parameters)
    }

    /// [`Tape::of_fused`] for a kernel that runs over rows, in all lanes of a vector: reciprocals
    /// of roots are computed by [`reciprocal_root`].
    ///
    /// # Panics
    /// See [`Tape::new`].
    pub fn for_rows(graph: &Graph, outputs: &[Node], states: usize, parameters: usize) -> Tape {
        Builder { for_rows: true, ..Builder::default() }.tape(
            graph,
            (outputs, None),
            states,
            parameters,
        )
    }

    /// Number of instructions of the body that compute something: the cost of one evaluation.
    pub fn operations(&self) -> usize {
        self.instructions[self.prologue..].iter().filter(|i| i.arguments().next().is_some()).count()
    }

    /// True if its lanes are not independent evaluations, so that all of them have to be computed
    /// together.
    pub fn mixes_lanes(&self) -> bool {
        self.instructions.iter().any(|i| {
            matches!(
                i,
                Instruction::One(One::Spread(_), _) | Instruction::Three(Three::Shuffle, ..)
            )
        })
    }

    /// True if the body reads the time.
    pub fn reads_time(&self) -> bool {
        self.instructions.contains(&Instruction::Time)
    }
}

/// Builder of code, every distinct instruction once.
#[derive(Default)]
struct Builder {
    code: Vec<Instruction>,
    /// True for instructions that depend on parameters only.
    uniform: Vec<bool>,
    known: FxHashMap<Instruction, Register>,
    /// True if reciprocals of roots are computed by multiplications.
    for_rows: bool,
}

/// Value of a formula: a number, or the mask of a condition.
#[derive(Clone, Copy)]
struct Lowered {
    register: Register,
    is_mask: bool,
}

impl Builder {
    fn put(&mut self, instruction: Instruction) -> Register {
        *self.known.entry(instruction).or_insert_with(|| {
            self.code.push(instruction);
            self.uniform.push(match instruction {
                // Parameters may differ from lane to lane.
                Instruction::State(_) | Instruction::Time | Instruction::One(One::Spread(_), _) => {
                    false
                }
                _ => instruction.arguments().all(|a| self.uniform[a as usize]),
            });
            self.code.len() as Register - 1
        })
    }

    /// Twice a number that depends on parameters only, unless it is a constant whose double
    /// overflows.
    fn twice(&mut self, number: Register) -> Option<Register> {
        let overflows = self.constant(number).is_some_and(|constant| !(2.0 * constant).is_finite());
        (!overflows).then(|| self.two(Two::Add, number, number))
    }

    /// x if a number is x + x.
    fn half(&self, a: Register) -> Option<Register> {
        match self.code[a as usize] {
            Instruction::Two(Two::Add, x, y) if x == y => Some(x),
            _ => None,
        }
    }

    /// Factors of the product a b, of which a number that depends on parameters only is doubled in
    /// place of one that is computed every time: a product of 2x waits for one operation more.
    /// Doubling is exact unless it overflows.
    fn factors(&mut self, a: Register, b: Register) -> (Register, Register) {
        for (number, other) in [(a, b), (b, a)] {
            if self.uniform[number as usize]
                && !self.uniform[other as usize]
                && let Some(x) = self.half(other)
                && let Some(twice) = self.twice(number)
            {
                return self.factors(twice, x);
            }
        }
        (a, b)
    }

    /// 2a as a product that waits for one operation less, if a is a product with a number that
    /// depends on parameters only. The bits are those of a + a, unless a is below the normal
    /// numbers.
    fn doubled(&mut self, a: Register) -> Option<Register> {
        let Instruction::Two(Two::Mul, x, y) = self.code[a as usize] else { return None };
        let (number, other) = if self.uniform[x as usize] { (x, y) } else { (y, x) };
        if !self.uniform[number as usize] || self.uniform[a as usize] {
            return None;
        }
        let twice = self.twice(number)?;
        Some(self.two(Two::Mul, twice, other))
    }

    fn constant(&self, register: Register) -> Option<f64> {
        match self.code[register as usize] {
            Instruction::Constant(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// Result of an operation on bits that needs no instruction because the second argument is a
    /// known mask. So the case distinctions of an elementary function cost nothing for a constant
    /// argument.
    fn masked(&mut self, op: Two, value: Register, mask: Register) -> Option<Register> {
        match (op, self.constant(mask)?.to_bits()) {
            (Two::And, TRUE) | (Two::Or | Two::Xor, FALSE) => Some(value),
            (Two::And, FALSE) | (Two::Or, TRUE) => Some(mask),
            _ => None,
        }
    }

    /// The tape of these outputs, and of a loop's condition.
    fn tape(
        mut self,
        graph: &Graph,
        (outputs, goes_on): (&[Node], Option<Node>),
        states: usize,
        parameters: usize,
    ) -> Tape {
        let roots: Vec<Node> = outputs.iter().copied().chain(goes_on).collect();
        let mut values = self.lower(graph, &roots);
        let goes_on = values.split_off(outputs.len()).pop().map(|condition| self.mask(condition));
        let outputs: Vec<Register> =
            values.into_iter().map(|value| self.number_of(value)).collect();
        lay_out((&self.code, &self.uniform), (&outputs, goes_on), states, parameters)
    }

    /// Lower the nodes that `outputs` need.
    fn lower(&mut self, graph: &Graph, outputs: &[Node]) -> Vec<Lowered> {
        let order = graph.reachable(outputs);
        self.known.reserve(order.len());
        let place = |node: Node| order.binary_search(&node).expect("arguments are reachable");
        let mut values: Vec<Lowered> = Vec::with_capacity(order.len());
        for &node in &order {
            let at = |n: Node| values[place(n)];
            let value = match graph.expression(node) {
                Expression::Constant(bits) => number(self.put(Instruction::Constant(bits))),
                Expression::Input(Input::State(i)) => number(self.put(Instruction::State(i))),
                Expression::Input(Input::Parameter(i)) => {
                    number(self.put(Instruction::Parameter(i)))
                }
                Expression::Input(Input::Time) => number(self.put(Instruction::Time)),
                Expression::Input(Input::Slot(_)) => panic!("a template's slot reached a tape"),
                Expression::Unary(op, a) => self.unary(op, at(a)),
                Expression::Binary(Binary::Div, a, b)
                    if self.for_rows
                        && graph.expression(a) == Expression::Constant(1f64.to_bits()) =>
                {
                    match graph.expression(b) {
                        Expression::Unary(Unary::Sqrt, square) => {
                            let square = self.number_of(at(square));
                            number(reciprocal_root(self, square))
                        }
                        _ => self.binary(Binary::Div, at(a), at(b)),
                    }
                }
                Expression::Binary(op, a, b) => self.binary(op, at(a), at(b)),
                Expression::Select(c, a, b) => {
                    let (c, a, b) =
                        (self.mask(at(c)), self.number_of(at(a)), self.number_of(at(b)));
                    number(self.three(Three::Select, c, a, b))
                }
                Expression::Largest(a, b) => {
                    let (a, b) = (self.number_of(at(a)), self.number_of(at(b)));
                    let size = self.size(a);
                    number(self.two(Two::LargerInteger, size, b))
                }
                Expression::RoughPower(a, b) => {
                    let (a, b) = (self.number_of(at(a)), self.number_of(at(b)));
                    number(rough_power(self, a, b))
                }
                Expression::Spread(a, lane) => {
                    let a = self.number_of(at(a));
                    number(self.one(One::Spread(lane), a))
                }
                Expression::Fused(op, a, b, c) => {
                    let [a, b, c] = [a, b, c].map(|n| self.number_of(at(n)));
                    number(self.three(op.into(), a, b, c))
                }
            };
            values.push(value);
        }
        outputs.iter().map(|&o| values[place(o)]).collect()
    }

    fn unary(&mut self, op: Unary, a: Lowered) -> Lowered {
        if op == Unary::Not {
            let (a, all) = (self.mask(a), self.bits(TRUE));
            return mask(self.two(Two::Xor, a, all));
        }
        let a = self.number_of(a);
        number(match op {
            Unary::Neg => {
                let sign = self.bits(SIGN);
                self.two(Two::Xor, a, sign)
            }
            Unary::Abs => self.size(a),
            Unary::Round => self.rounded(a),
            Unary::Sqrt => self.one(One::Sqrt, a),
            Unary::Not => unreachable!("a condition, handled above"),
            Unary::Sin => Elementary::Sin.expand(self, [a, a]),
            Unary::Cos => Elementary::Cos.expand(self, [a, a]),
            Unary::Tan => Elementary::Tan.expand(self, [a, a]),
            Unary::Asin => Elementary::Asin.expand(self, [a, a]),
            Unary::Acos => Elementary::Acos.expand(self, [a, a]),
            Unary::Atan => Elementary::Atan.expand(self, [a, a]),
            Unary::Sinh => Elementary::Sinh.expand(self, [a, a]),
            Unary::Cosh => Elementary::Cosh.expand(self, [a, a]),
            Unary::Tanh => Elementary::Tanh.expand(self, [a, a]),
            Unary::Exp => Elementary::Exp.expand(self, [a, a]),
            Unary::Log => Elementary::Log.expand(self, [a, a]),
            Unary::Log10 => Elementary::Log10.expand(self, [a, a]),
            Unary::Log1p => Elementary::Log1p.expand(self, [a, a]),
            Unary::Expm1 => Elementary::Expm1.expand(self, [a, a]),
            Unary::Erf => Elementary::Erf.expand(self, [a, a]),
            Unary::Gamma => Elementary::Special(Special::Gamma).expand(self, [a, a]),
            Unary::LogGamma => Elementary::Special(Special::LogGamma).expand(self, [a, a]),
        })
    }

    /// |a|
    fn size(&mut self, a: Register) -> Register {
        let rest = self.bits(!SIGN);
        if self.is_size(a, rest) { a } else { self.two(Two::And, a, rest) }
    }

    /// True if a number is known to have no sign; `rest` are the other bits.
    fn is_size(&self, a: Register, rest: Register) -> bool {
        match self.code[a as usize] {
            Instruction::Two(Two::And, _, mask) => mask == rest,
            // Of integers one of which is not negative.
            Instruction::Two(Two::LargerInteger, ..) => true,
            Instruction::One(One::Spread(_), a) => self.is_size(a, rest),
            _ => false,
        }
    }

    /// The nearest integer: a sum of the size at which doubles are the integers is rounded to one.
    fn rounded(&mut self, a: Register) -> Register {
        const INTEGERS: f64 = (1u64 << 52) as f64;
        let size = self.size(a);
        let integers = self.bits(INTEGERS.to_bits());
        let moved = self.two(Two::Add, size, integers);
        let nearest = self.two(Two::Sub, moved, integers);
        let sign = self.bits(SIGN);
        let sign = self.two(Two::And, a, sign);
        let nearest = self.two(Two::Or, nearest, sign);
        let is_fractional = self.two(Two::Less, size, integers);
        self.three(Three::Select, is_fractional, nearest, a)
    }

    fn binary(&mut self, op: Binary, a: Lowered, b: Lowered) -> Lowered {
        if let Binary::And | Binary::Or = op {
            let (a, b) = (self.mask(a), self.mask(b));
            return mask(self.two(if op == Binary::And { Two::And } else { Two::Or }, a, b));
        }
        let (a, b) = (self.number_of(a), self.number_of(b));
        match op {
            Binary::Add => number(self.two(Two::Add, a, b)),
            Binary::Sub => number(self.two(Two::Sub, a, b)),
            Binary::Mul => number(self.two(Two::Mul, a, b)),
            Binary::Div => number(self.two(Two::Div, a, b)),
            Binary::Pow => number(Elementary::Pow.expand(self, [a, b])),
            Binary::Atan2 => number(Elementary::Atan2.expand(self, [a, b])),
            Binary::BesselJ => self.special(Special::BesselJ, a, b),
            Binary::EllipticK => self.special(Special::EllipticK, a, b),
            Binary::EllipticE => self.special(Special::EllipticE, a, b),
            Binary::Polygamma => self.special(Special::Polygamma, a, b),
            Binary::GammaP => self.special(Special::GammaP, a, b),
            Binary::Min => {
                let first = self.two(Two::Less, a, b);
                number(self.chosen(first, a, b))
            }
            Binary::Max => {
                let first = self.two(Two::Less, b, a);
                number(self.chosen(first, a, b))
            }
            Binary::Less => mask(self.two(Two::Less, a, b)),
            Binary::LessEqual => mask(self.two(Two::LessEqual, a, b)),
            Binary::Equal => mask(self.two(Two::Equal, a, b)),
            Binary::And | Binary::Or => unreachable!("conditions, handled above"),
        }
    }

    fn special(&mut self, function: Special, a: Register, b: Register) -> Lowered {
        number(Elementary::Special(function).expand(self, [a, b]))
    }

    /// a if `first` is true, else b; but NaN if a is.
    fn chosen(&mut self, first: Register, a: Register, b: Register) -> Register {
        let is_number = self.two(Two::Equal, a, a);
        let all = self.bits(TRUE);
        let is_nan = self.two(Two::Xor, is_number, all);
        let take = self.two(Two::Or, first, is_nan);
        self.three(Three::Select, take, a, b)
    }

    /// A condition as a mask: a number is true if it is not 0.
    fn mask(&mut self, value: Lowered) -> Register {
        if value.is_mask {
            return value.register;
        }
        let (zero, all) = (self.number(0.0), self.bits(TRUE));
        let is_zero = self.two(Two::Equal, value.register, zero);
        self.two(Two::Xor, is_zero, all)
    }

    /// A condition as a number: 1 for true, 0 for false.
    fn number_of(&mut self, value: Lowered) -> Register {
        if !value.is_mask {
            return value.register;
        }
        let one = self.number(1.0);
        self.two(Two::And, value.register, one)
    }
}

/// Sign bit.
const SIGN: u64 = 1 << 63;

fn number(register: Register) -> Lowered {
    Lowered { register, is_mask: false }
}

fn mask(register: Register) -> Lowered {
    Lowered { register, is_mask: true }
}

impl Primitives for Builder {
    type Value = Register;

    fn bits(&mut self, bits: u64) -> Register {
        self.put(Instruction::Constant(bits))
    }

    fn one(&mut self, op: One, a: Register) -> Register {
        match self.constant(a) {
            Some(a) => self.number(op.evaluate(a)),
            None => self.put(Instruction::One(op, a)),
        }
    }

    fn two(&mut self, op: Two, a: Register, b: Register) -> Register {
        if let Some(known) = self.masked(op, a, b).or_else(|| self.masked(op, b, a)) {
            return known;
        }
        let (a, b) = if op == Two::Mul { self.factors(a, b) } else { (a, b) };
        if op == Two::Add
            && a == b
            && let Some(product) = self.doubled(a)
        {
            return product;
        }
        match (self.constant(a), self.constant(b)) {
            (Some(a), Some(b)) => self.number(op.evaluate(a, b)),
            _ if op.commutes() && b < a => self.put(Instruction::Two(op, b, a)),
            _ => self.put(Instruction::Two(op, a, b)),
        }
    }

    fn three(&mut self, op: Three, a: Register, b: Register, c: Register) -> Register {
        let (a, b) = if op == Three::Select { (a, b) } else { self.factors(a, b) };
        match (self.constant(a), self.constant(b), self.constant(c)) {
            (Some(a), Some(b), Some(c)) => self.number(op.evaluate(a, b, c)),
            (Some(mask), ..) if op == Three::Select && mask.to_bits() == TRUE => b,
            (Some(mask), ..) if op == Three::Select && mask.to_bits() == FALSE => c,
            _ => self.put(Instruction::Three(op, a, b, c)),
        }
    }
}

impl Arithmetic for Builder {
    fn repair(
        &mut self,
        function: Elementary,
        [a, b]: [Register; 2],
        fast: Register,
        valid: Register,
    ) -> Register {
        match (self.constant(a), self.constant(b)) {
            (Some(a), Some(b)) => self.number(function.evaluate(a, b)),
            _ => self.put(Instruction::Repair(function, [a, b, fast, valid])),
        }
    }
}

/// Order the instructions that `outputs` need: first those that depend on parameters only, then the
/// rest, each output with its instructions before the next one, so that values die young.
fn lay_out(
    (code, uniform): (&[Instruction], &[bool]),
    (outputs, goes_on): (&[Register], Option<Register>),
    states: usize,
    parameters: usize,
) -> Tape {
    let mut seen = vec![false; code.len()];
    let (mut prologue, mut body) = (Vec::new(), Vec::new());
    // A register is pushed twice: to open it, and to place it after its arguments.
    let mut stack: Vec<(Register, bool)> = Vec::new();
    for &output in outputs.iter().chain(&goes_on) {
        stack.push((output, false));
        while let Some((register, arguments_placed)) = stack.pop() {
            let i = register as usize;
            if arguments_placed {
                if uniform[i] { prologue.push(register) } else { body.push(register) }
            } else if !seen[i] {
                seen[i] = true;
                stack.push((register, true));
                let first = stack.len();
                stack
                    .extend(code[i].arguments().filter(|&a| !seen[a as usize]).map(|a| (a, false)));
                stack[first..].reverse();
            }
        }
    }
    let mut place = vec![Register::MAX; code.len()];
    for (new, &old) in prologue.iter().chain(&body).enumerate() {
        place[old as usize] = new as Register;
    }
    Tape {
        instructions: prologue
            .iter()
            .chain(&body)
            .map(|&old| code[old as usize].map(|a| place[a as usize]))
            .collect(),
        prologue: prologue.len(),
        outputs: outputs.iter().map(|&o| place[o as usize]).collect(),
        goes_on: goes_on.map(|mask| place[mask as usize]),
        states,
        parameters,
    }
}

impl Display for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, instruction) in self.instructions.iter().enumerate() {
            if i == 0 && self.prologue > 0 {
                writeln!(f, "once for each set of parameters:")?;
            }
            if i == self.prologue {
                writeln!(f, "body:")?;
            }
            write!(f, "  r{i} = ")?;
            match *instruction {
                Instruction::Constant(bits) => match f64::from_bits(bits) {
                    // A mask or a pattern, not a number.
                    v if v.is_nan() || v.is_subnormal() => writeln!(f, "{bits:#x}")?,
                    v => writeln!(f, "{v}")?,
                },
                Instruction::State(k) => writeln!(f, "x[{k}]")?,
                Instruction::Parameter(k) => writeln!(f, "parameter[{k}]")?,
                Instruction::Time => writeln!(f, "t")?,
                Instruction::One(op, a) => writeln!(f, "{} r{a}", op.name())?,
                Instruction::Two(op, a, b) => writeln!(f, "r{a} {} r{b}", op.name())?,
                Instruction::Three(Three::Select, c, a, b) => {
                    writeln!(f, "if r{c} then r{a} else r{b}")?
                }
                Instruction::Three(Three::Fma, a, b, c) => writeln!(f, "fma r{a}*r{b} + r{c}")?,
                Instruction::Three(Three::Fms, a, b, c) => writeln!(f, "fma r{a}*r{b} - r{c}")?,
                Instruction::Three(Three::Fnma, a, b, c) => writeln!(f, "fma r{c} - r{a}*r{b}")?,
                Instruction::Three(Three::Shuffle, a, b, c) => {
                    writeln!(f, "lanes r{c} of r{a} and r{b}")?
                }
                Instruction::Repair(function, [a, b, fast, valid]) => {
                    writeln!(f, "r{fast} if r{valid} else {function:?}(r{a}, r{b})")?
                }
            }
        }
        writeln!(
            f,
            "outputs: {}",
            self.outputs.iter().map(|r| format!("r{r}")).collect::<Vec<_>>().join(" ")
        )?;
        self.goes_on.map_or(Ok(()), |mask| writeln!(f, "while: r{mask}"))
    }
}
