//! Random tapes and what has to come out of them: for the tests of `crates/jit`, and for
//! `fuzz_targets/tapes.rs` (coverage-guided).
//!
//! A case is made of bytes, so that a fuzzer can vary it and a test can shrink it. The tapes are
//! not sensible; they have every operation, long and short lives, outputs that are inputs, numbers
//! or each other.

use holonome_model::graph::elementary::Elementary;
use holonome_model::graph::interpret::Kernel;
use holonome_model::graph::primitive::{FALSE, One, TRUE, Three, Two};
use holonome_model::graph::tape::{Instruction, Register, Tape};

/// A tape with its inputs.
#[derive(Clone, Debug)]
pub struct Case {
    /// The code.
    pub tape: Tape,
    /// How many evaluations side by side.
    pub lanes: usize,
    /// By parameter, then by lane.
    pub parameters: Vec<f64>,
    /// By lane.
    pub t: Vec<f64>,
    /// By state, then by lane.
    pub x: Vec<f64>,
    /// How often the tape is iterated, if it can be.
    pub count: u64,
}

const LANES: [usize; 12] = [1, 8, 4, 1, 8, 4, 2, 3, 16, 12, 7, 70];
/// More lanes are never mixed.
const MOST_MIXED: usize = 16;
const SPECIAL: [u64; 20] = [
    0,                     // 0
    0x8000_0000_0000_0000, // −0, the sign
    0x7fff_ffff_ffff_ffff, // all but the sign
    0x3ff0_0000_0000_0000, // 1
    0xbff0_0000_0000_0000, // −1
    0x3fe0_0000_0000_0000, // 1/2
    0x4000_0000_0000_0000, // 2
    0x7ff0_0000_0000_0000, // ∞
    0xfff0_0000_0000_0000, // −∞
    0x7ff8_0000_0000_0000, // NaN
    0x7ff0_0000_0000_0001, // a signalling NaN
    0xffff_ffff_ffff_ffff, // true
    0x0000_0000_0000_0001, // the smallest subnormal
    0x800f_ffff_ffff_ffff, // the largest subnormal, negative
    0x0010_0000_0000_0000, // the smallest normal
    0x7fef_ffff_ffff_ffff, // the largest
    0xffef_ffff_ffff_ffff, // its negative
    0x4330_0000_0000_0000, // 2^52
    0x3ca0_0000_0000_0000, // 2^-53
    0x0000_0000_0000_0034, // 52
];

/// A source of choices; zeros when it has run dry.
struct Bytes<'a> {
    left: &'a [u8],
}

impl Bytes<'_> {
    fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    fn byte(&mut self) -> u8 {
        match self.left.split_first() {
            Some((&first, rest)) => {
                self.left = rest;
                first
            }
            None => 0,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        let wide = if n > 256 { usize::from(self.byte()) << 8 } else { 0 };
        (wide + usize::from(self.byte())) % n.max(1)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Mostly numbers near 1; every eighth one is special, unless they are to be tame.
    fn number(&mut self, tame: bool) -> f64 {
        let (kind, a, b) = (self.byte(), self.byte(), self.byte());
        match kind {
            _ if tame => 0.5 + f64::from(u16::from_le_bytes([a, b])) / 65536.0,
            0..32 => f64::from_bits(SPECIAL[usize::from(a) % SPECIAL.len()]),
            // Any exponent and sign.
            32..48 => f64::from_bits(u64::from_le_bytes([b, a, b ^ 0x55, a, b, kind, a, b])),
            _ => (f64::from(i16::from_le_bytes([a, b])) + f64::from(kind) / 256.0) / 8192.0,
        }
    }
}

/// What a value is good for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Mask,
    Bits,
}

/// What the masks of repairs are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repairs {
    None,
    AlwaysValid,
    Any,
}

struct Builder {
    code: Vec<Instruction>,
    kinds: Vec<Kind>,
    /// Whether numbers stay near 1. Otherwise a tape soon has infinities and NaNs everywhere, which
    /// tests them but hides mistakes elsewhere.
    tame: bool,
    lanes: usize,
}

impl Builder {
    fn put(&mut self, instruction: Instruction, kind: Kind) -> Register {
        self.code.push(instruction);
        self.kinds.push(kind);
        self.code.len() as Register - 1
    }

    /// Some value: mostly a young one.
    fn any(&self, bytes: &mut Bytes) -> Register {
        let n = self.code.len();
        let how = bytes.byte();
        if how < 160 {
            (n - 1 - usize::from(how) % n.min(8)) as Register
        } else {
            bytes.below(n) as Register
        }
    }

    /// Some value of this kind, if that is soon found.
    fn of(&self, kind: Kind, bytes: &mut Bytes) -> Register {
        let start = self.any(bytes) as usize;
        if bytes.byte() < 24 && kind != Kind::Mask && !self.tame {
            return start as Register;
        }
        let found =
            (0..=start).rev().chain(start + 1..self.code.len()).find(|&i| self.kinds[i] == kind);
        found.unwrap_or(start) as Register
    }

    /// A number between 1 and 2 with the mantissa of `a`.
    fn tamed(&mut self, a: Register) -> Register {
        let mantissa = self.put(Instruction::Constant((1 << 52) - 1), Kind::Bits);
        let exponent = self.put(Instruction::Constant(1.0f64.to_bits()), Kind::Bits);
        let a = self.put(Instruction::Two(Two::And, a, mantissa), Kind::Bits);
        self.put(Instruction::Two(Two::Or, a, exponent), Kind::Number)
    }

    fn step(&mut self, bytes: &mut Bytes, repairs: Repairs) {
        use Kind::*;
        let choice = bytes.byte();
        match choice {
            0..96 if self.tame => {
                let (mut a, b) = (self.of(Number, bytes), self.of(Number, bytes));
                let op = [Two::Mul, Two::Add, Two::Sub, Two::Div][usize::from(choice) % 4];
                // The exponents of a long chain of products would grow without bound.
                if choice % 8 < 4 {
                    let b = self.put(Instruction::Two(op, b, a), Bits);
                    a = self.tamed(b);
                } else {
                    let b = self.tamed(b);
                    a = self.put(Instruction::Two(op, a, b), Bits);
                    a = self.tamed(a);
                }
                self.kinds[a as usize] = Number;
            }
            96..168 if self.tame => {
                let op = [Three::Fma, Three::Fms, Three::Fnma][usize::from(choice) % 3];
                let [a, b, c] = [(); 3].map(|()| self.of(Number, bytes));
                let a = self.put(Instruction::Three(op, a, b, c), Bits);
                // Sums of a few are tame enough.
                if choice.is_multiple_of(2) {
                    self.tamed(a);
                }
            }
            0..96 => {
                let op = [
                    Two::Add,
                    Two::Sub,
                    Two::Mul,
                    Two::Add,
                    Two::Sub,
                    Two::Mul,
                    Two::Mul,
                    Two::Div,
                ][usize::from(choice) % 8];
                let (a, b) = (self.of(Number, bytes), self.of(Number, bytes));
                self.put(Instruction::Two(op, a, b), Number);
            }
            96..168 => {
                let op = [Three::Fma, Three::Fms, Three::Fnma][usize::from(choice) % 3];
                let [a, b, c] = [(); 3].map(|()| self.of(Number, bytes));
                self.put(Instruction::Three(op, a, b, c), Number);
            }
            168..192 => {
                let op = [Two::Less, Two::LessEqual, Two::Equal][usize::from(choice) % 3];
                let (a, b) = (self.of(Number, bytes), self.of(Number, bytes));
                self.put(Instruction::Two(op, a, b), Mask);
            }
            192..208 => {
                let (mask, a, b) = (self.of(Mask, bytes), self.any(bytes), self.any(bytes));
                let same = self.kinds[a as usize] == self.kinds[b as usize];
                let kind = if same { self.kinds[a as usize] } else { Bits };
                self.put(Instruction::Three(Three::Select, mask, a, b), kind);
            }
            208..216 => {
                // Signs.
                let a = self.of(Number, bytes);
                let (op, bits) =
                    [(Two::Xor, SPECIAL[1]), (Two::And, SPECIAL[2]), (Two::Or, SPECIAL[1])]
                        [usize::from(choice) % 3];
                let sign = self.put(Instruction::Constant(bits), Bits);
                self.put(Instruction::Two(op, a, sign), Number);
            }
            216..226 => {
                let op = [Two::And, Two::Or, Two::Xor][usize::from(choice) % 3];
                let (a, b) = (self.of(Mask, bytes), self.of(Mask, bytes));
                self.put(Instruction::Two(op, a, b), Mask);
            }
            226..236 => {
                let op = [
                    Two::AddInteger,
                    Two::SubInteger,
                    Two::LargerInteger,
                    Two::And,
                    Two::Or,
                    Two::Xor,
                ][usize::from(choice) % 6];
                let (a, b) = (self.any(bytes), self.any(bytes));
                self.put(Instruction::Two(op, a, b), Bits);
            }
            236..238 if self.lanes <= MOST_MIXED => {
                let a = self.any(bytes);
                let (lane, kind) = (bytes.below(self.lanes) as u8, self.kinds[a as usize]);
                self.put(Instruction::One(One::Spread(lane), a), kind);
            }
            236..242 => {
                let count = bytes.byte() % 64;
                let op = if choice.is_multiple_of(2) {
                    One::ShiftLeft(count)
                } else {
                    One::ShiftRight(count)
                };
                let a = self.any(bytes);
                self.put(Instruction::One(op, a), Bits);
            }
            242..248 if self.tame => {
                let a = self.any(bytes);
                let a = self.tamed(a);
                self.put(Instruction::One(One::Sqrt, a), Number);
            }
            242..248 => {
                let a = self.of(Number, bytes);
                self.put(Instruction::One(One::Sqrt, a), Number);
            }
            _ if repairs == Repairs::None => {
                let bits = bytes.number(self.tame).to_bits();
                self.put(Instruction::Constant(bits), Number);
            }
            _ => {
                let function = bytes.pick(&Elementary::ALL);
                let [a, b, fast] = [(); 3].map(|()| self.of(Number, bytes));
                let mut valid = self.of(Mask, bytes);
                if repairs == Repairs::AlwaysValid {
                    let yes = self.put(Instruction::Constant(TRUE), Mask);
                    valid = self.put(Instruction::Two(Two::Or, valid, yes), Mask);
                }
                self.put(Instruction::Repair(function, [a, b, fast, valid]), Number);
            }
        }
    }
}

/// The case that the bytes describe; all of them describe one.
pub fn case(bytes: &[u8]) -> Case {
    let mut bytes = Bytes { left: bytes };
    let lanes = bytes.pick(&LANES);
    let iterated = bytes.byte() < 160;
    let states = match bytes.byte() {
        n @ 0..224 => usize::from(n % 9) + usize::from(iterated),
        n => usize::from(n - 190),
    };
    let parameters = usize::from(bytes.byte() % 4);
    let hoard = bytes.byte();
    let tame = bytes.byte() < 128;
    let repairs = bytes.pick(&[Repairs::None, Repairs::None, Repairs::AlwaysValid, Repairs::Any]);
    let repairs = if tame && repairs == Repairs::Any { Repairs::None } else { repairs };
    let count = u64::from(bytes.byte() % 5);

    let mut b = Builder { code: Vec::new(), kinds: Vec::new(), tame, lanes };
    for bits in [FALSE, TRUE] {
        b.put(Instruction::Constant(bits), Kind::Mask);
    }
    b.put(Instruction::Constant(bytes.number(tame).to_bits()), Kind::Number);
    for k in 0..parameters {
        b.put(Instruction::Parameter(k as u32), Kind::Number);
    }
    for k in 0..states {
        b.put(Instruction::State(k as u32), Kind::Number);
    }
    if !iterated {
        b.put(Instruction::Time, Kind::Number);
    }
    let x: Vec<f64> = (0..states * lanes)
        .map(|i| if i < 64 { bytes.number(tame) } else { i as f64 / 7.0 })
        .collect();
    let t: Vec<f64> = (0..lanes).map(|i| i as f64 + 0.5).collect();
    let values = (0..parameters * lanes)
        .map(|i| if i < 16 { bytes.number(tame) } else { 1.0 / (i + 1) as f64 })
        .collect();
    let want = if iterated { bytes.below(states + 1) } else { bytes.below(12) };
    let choices: Vec<u8> = (0..2 * want).map(|_| bytes.byte()).collect();

    let first = b.code.len();
    while !bytes.is_empty() {
        b.step(&mut bytes, repairs);
    }
    // Everything lives until the end, in the order in which it was made or the other way round.
    if hoard < 64 {
        let mut all: Vec<Register> = (first as Register..b.code.len() as Register).collect();
        all.retain(|&r| b.kinds[r as usize] == Kind::Number);
        if hoard.is_multiple_of(2) {
            all.reverse();
        }
        let mut sum = 2;
        for r in all {
            // Every bit of every number shows in the sum of tame ones.
            let op = if tame { Two::AddInteger } else { Two::Add };
            sum = b.put(Instruction::Two(op, sum, r), Kind::Number);
        }
        if tame {
            b.tamed(sum);
        }
    }
    let n = b.code.len();
    let outputs: Vec<Register> = choices
        .chunks_exact(2)
        .map(|c| match c[0] {
            // States by preference: permutations.
            0..80 if states > 0 => (3 + parameters + usize::from(c[1]) % states) as Register,
            80..120 => (usize::from(c[1]) % n) as Register,
            _ => (n - 1 - usize::from(c[1]) % n.min(1 + want + want / 2)) as Register,
        })
        .collect();
    Case {
        tape: lay_out(&b.code, &outputs, states, parameters),
        lanes,
        parameters: values,
        t,
        x,
        count,
    }
}

/// Brings what depends on parameters only to the front.
fn lay_out(code: &[Instruction], outputs: &[Register], states: usize, parameters: usize) -> Tape {
    let mut uniform = vec![true; code.len()];
    for (i, instruction) in code.iter().enumerate() {
        let mixed = matches!(instruction, Instruction::One(One::Spread(_), _));
        uniform[i] = !mixed
            && !matches!(instruction, Instruction::State(_) | Instruction::Time)
            && instruction.arguments().all(|a| uniform[a as usize]);
    }
    let (prologue, body): (Vec<usize>, Vec<usize>) = (0..code.len()).partition(|&i| uniform[i]);
    let mut place = vec![0; code.len()];
    for (new, &old) in prologue.iter().chain(&body).enumerate() {
        place[old] = new as Register;
    }
    let at = |r: Register| place[r as usize];
    let moved = |instruction| match instruction {
        Instruction::One(op, a) => Instruction::One(op, at(a)),
        Instruction::Two(op, a, b) => Instruction::Two(op, at(a), at(b)),
        Instruction::Three(op, a, b, c) => Instruction::Three(op, at(a), at(b), at(c)),
        Instruction::Repair(function, list) => Instruction::Repair(function, list.map(at)),
        input => input,
    };
    Tape {
        instructions: prologue.iter().chain(&body).map(|&i| moved(code[i])).collect(),
        prologue: prologue.len(),
        outputs: outputs.iter().map(|&o| at(o)).collect(),
        goes_on: None,
        states,
        parameters,
    }
}

/// What is known of a value. Which NaN an operation gives is not fixed, so nothing is known of bits
/// made from one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// These bits.
    Exactly(u64),
    /// Some NaN.
    Nan,
    /// Nothing.
    Nothing,
}

impl Known {
    /// Whether `value` can be it.
    pub fn allows(self, value: f64) -> bool {
        match self {
            Known::Exactly(bits) => value.to_bits() == bits,
            Known::Nan => value.is_nan(),
            Known::Nothing => true,
        }
    }

    /// The result of arithmetic.
    fn number(value: f64) -> Known {
        if value.is_nan() { Known::Nan } else { Known::Exactly(value.to_bits()) }
    }

    /// As an argument of arithmetic.
    fn value(self) -> Option<f64> {
        match self {
            Known::Exactly(bits) => Some(f64::from_bits(bits)),
            Known::Nan => Some(f64::NAN),
            Known::Nothing => None,
        }
    }
}

fn one(op: One, a: Known) -> Known {
    match (op, a) {
        (One::Sqrt, a) => a.value().map_or(Known::Nothing, |a| Known::number(op.evaluate(a))),
        (_, Known::Exactly(a)) => Known::Exactly(op.evaluate(f64::from_bits(a)).to_bits()),
        _ => Known::Nothing,
    }
}

fn two(op: Two, a: Known, b: Known) -> Known {
    const SIGN: u64 = 1 << 63;
    let arithmetic = matches!(op, Two::Add | Two::Sub | Two::Mul | Two::Div);
    let comparison = matches!(op, Two::Less | Two::LessEqual | Two::Equal);
    if let (Known::Exactly(i), Known::Exactly(j)) = (a, b) {
        let value = op.evaluate(f64::from_bits(i), f64::from_bits(j));
        return if arithmetic { Known::number(value) } else { Known::Exactly(value.to_bits()) };
    }
    if arithmetic || comparison {
        return match (a.value(), b.value()) {
            (Some(a), Some(b)) if arithmetic => Known::number(op.evaluate(a, b)),
            (Some(a), Some(b)) => Known::Exactly(op.evaluate(a, b).to_bits()),
            _ => Known::Nothing,
        };
    }
    // One argument is not known in full.
    let (unknown, other) = match (a, b) {
        (Known::Exactly(bits), other) | (other, Known::Exactly(bits)) => (other, bits),
        _ => return Known::Nothing,
    };
    match (op, other) {
        (Two::And, FALSE) => Known::Exactly(FALSE),
        (Two::Or, TRUE) => Known::Exactly(TRUE),
        (Two::Or | Two::Xor, FALSE) | (Two::And, TRUE) => unknown,
        // Only the sign changes.
        (Two::Or | Two::Xor, SIGN) => unknown,
        (Two::And, other) if other == !SIGN => unknown,
        _ => Known::Nothing,
    }
}

fn three(op: Three, a: Known, b: Known, c: Known) -> Known {
    match (op, a) {
        (Three::Select, Known::Exactly(TRUE)) => b,
        (Three::Select, Known::Exactly(FALSE)) => c,
        (Three::Select, Known::Exactly(_)) => panic!("a mask is all ones or all zeros"),
        (Three::Select, _) => Known::Nothing,
        _ => match (a.value(), b.value(), c.value()) {
            (Some(a), Some(b), Some(c)) => Known::number(op.evaluate(a, b, c)),
            _ => Known::Nothing,
        },
    }
}

/// What each instruction gives, by lane, and whether every repair's mask is certainly true.
fn expected(
    tape: &Tape,
    parameters: &[Vec<Known>],
    t: &[Known],
    x: &[Vec<Known>],
) -> (Vec<Vec<Known>>, bool) {
    let mut valid_throughout = true;
    let mut values: Vec<Vec<Known>> = Vec::with_capacity(tape.instructions.len());
    for &instruction in &tape.instructions {
        let of_lane = |lane: usize| {
            let at = |r: Register| values[r as usize][lane];
            match instruction {
                Instruction::Constant(bits) => Known::Exactly(bits),
                Instruction::State(k) => x[k as usize][lane],
                Instruction::Parameter(k) => parameters[k as usize][lane],
                Instruction::Time => t[lane],
                Instruction::One(One::Spread(from), a) => values[a as usize][usize::from(from)],
                Instruction::One(op, a) => one(op, at(a)),
                Instruction::Two(op, a, b) => two(op, at(a), at(b)),
                Instruction::Three(op, a, b, c) => three(op, at(a), at(b), at(c)),
                Instruction::Repair(_, [_, _, fast, valid])
                    if at(valid) == Known::Exactly(TRUE) =>
                {
                    at(fast)
                }
                Instruction::Repair(function, [a, b, _, valid]) => {
                    match (at(valid), at(a).value(), at(b).value()) {
                        (Known::Exactly(_), Some(a), Some(b)) => {
                            Known::number(function.exact(a, b))
                        }
                        _ => Known::Nothing,
                    }
                }
            }
        };
        if let Instruction::Repair(_, [.., valid]) = instruction {
            valid_throughout &=
                values[valid as usize].iter().all(|&valid| valid == Known::Exactly(TRUE));
        }
        values.push((0..t.len()).map(of_lane).collect());
    }
    (tape.outputs.iter().map(|&o| values[o as usize].clone()).collect(), valid_throughout)
}

impl Case {
    /// Each number by lane.
    fn by_lane(&self, numbers: &[f64]) -> Vec<Vec<Known>> {
        let known = |lanes: &[f64]| lanes.iter().map(|x| Known::Exactly(x.to_bits())).collect();
        numbers.chunks(self.lanes).map(known).collect()
    }

    /// The parameters of one lane.
    pub fn parameters_of(&self, lane: usize) -> Vec<f64> {
        (0..self.tape.parameters).map(|k| self.parameters[k * self.lanes + lane]).collect()
    }

    /// Whether the tape is a map of its states to themselves.
    pub fn is_map(&self) -> bool {
        self.tape.outputs.len() <= self.tape.states && !self.tape.reads_time()
    }

    /// Whether the tape is one that gives all of them.
    pub fn chains(&self) -> bool {
        self.is_map() && self.tape.outputs.len() == self.tape.states && self.tape.states > 0
    }

    /// The states and outputs after `count` turns, and whether nothing certainly had to be
    /// repaired.
    fn turns(&self, count: u64) -> (Vec<Vec<Known>>, Vec<Vec<Known>>, bool) {
        let (parameters, mut x) = (self.by_lane(&self.parameters), self.by_lane(&self.x));
        let t = self.by_lane(&self.t).concat();
        let (mut out, mut valid) = (Vec::new(), true);
        for turn in 0..count {
            if turn > 0 {
                x[..out.len()].clone_from_slice(&out);
            }
            let (next, throughout) = expected(&self.tape, &parameters, &t, &x);
            out = next;
            valid &= throughout;
        }
        (x, out, valid)
    }

    /// Whether straight-line code may say that something has to be repaired within `count` turns.
    pub fn may_repair(&self, count: u64) -> bool {
        !self.turns(count).2
    }

    /// What one evaluation gives: by output, then by lane.
    pub fn expected_run(&self) -> Vec<Known> {
        self.turns(1).1.concat()
    }

    /// What the states are after the iterations: by state, then by lane.
    pub fn expected_iterate(&self) -> Vec<Known> {
        self.state_after(self.count)
    }

    /// The same after so many of them.
    pub fn state_after(&self, count: u64) -> Vec<Known> {
        let (mut x, out, _) = self.turns(count);
        x[..out.len()].clone_from_slice(&out);
        x.concat()
    }

    /// Runs a kernel of this case.
    ///
    /// # Panics
    /// When it gives something else than it has to, or writes elsewhere.
    pub fn check(&self, kernel: &dyn Kernel, who: &str) {
        const CANARY: f64 = -12345.678;
        assert_eq!((kernel.lanes(), kernel.outputs()), (self.lanes, self.tape.outputs.len()));
        let mut bound = kernel.bind(&self.parameters_of(0));
        for lane in 0..self.lanes {
            kernel.rebind(&mut bound, lane, &self.parameters_of(lane));
        }
        // The scratch starts anywhere, and with anything in it.
        for shift in [0, 1] {
            let padded =
                |numbers: &[f64]| [&vec![CANARY; shift + 1], numbers, &[CANARY; 9]].concat();
            let inner = |list: &[f64]| list[shift + 1..list.len() - 9].to_vec();
            let intact = |list: &[f64]| {
                let edges = list[..shift + 1].iter().chain(&list[list.len() - 9..]);
                edges.into_iter().all(|&e| e == CANARY)
            };
            let mut work = padded(&vec![f64::NAN; kernel.work_len()]);
            let end = work.len() - 9;

            let mut out = padded(&vec![0.0; self.tape.outputs.len() * self.lanes]);
            let out_end = out.len() - 9;
            kernel.run(
                &bound,
                &self.t,
                &self.x,
                &mut out[shift + 1..out_end],
                &mut work[shift + 1..end],
            );
            assert!(intact(&work) && intact(&out), "{who}: run wrote elsewhere");
            self.compare(&self.expected_run(), &inner(&out), &format!("{who}: run"));

            if self.is_map() {
                let mut x = padded(&self.x);
                let x_end = x.len() - 9;
                kernel.iterate(
                    &bound,
                    &mut x[shift + 1..x_end],
                    self.count,
                    &mut work[shift + 1..end],
                );
                assert!(intact(&work) && intact(&x), "{who}: iterate wrote elsewhere");
                self.compare(&self.expected_iterate(), &inner(&x), &format!("{who}: iterate"));
            }
            // A lane that stops its loop early stops no chain: it is compared where no lane of a
            // tape has a say.
            if self.chains() && self.tape.goes_on.is_none() {
                let len = self.x.len();
                let mut states =
                    padded(&[&self.x[..], &vec![0.0; len * self.count as usize]].concat());
                let states_end = states.len() - 9;
                kernel.iterate_keeping(
                    &bound,
                    &mut states[shift + 1..states_end],
                    &mut work[shift + 1..end],
                );
                assert!(intact(&work) && intact(&states), "{who}: iterate_keeping wrote elsewhere");
                for (turn, state) in inner(&states).chunks_exact(len).enumerate() {
                    self.compare(
                        &self.state_after(turn as u64),
                        state,
                        &format!("{who}: state {turn}"),
                    );
                }
            }
        }
    }

    /// # Panics
    /// When a result cannot be what is known of it.
    pub fn compare(&self, expected: &[Known], result: &[f64], who: &str) {
        assert_eq!(expected.len(), result.len(), "{who}");
        for (i, (known, &value)) in expected.iter().zip(result).enumerate() {
            assert!(
                known.allows(value),
                "{who}: number {} of lane {} is {value:e} ({:#x}), not {known:x?}; {} lanes, {} turns\n{}\nx {:?}",
                i / self.lanes,
                i % self.lanes,
                value.to_bits(),
                self.lanes,
                self.count,
                self.tape,
                self.x,
            );
        }
    }
}
