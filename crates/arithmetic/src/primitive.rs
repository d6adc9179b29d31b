//! Primitive operations of a processor: all that a tape consists of, and so all that
//! a backend must support. A value is 64 bits. Arithmetic reads them as a double and rounds to
//! nearest, ties to even; the operations on bits are for the exponents and signs inside elementary
//! functions. A comparison yields a *mask*, all ones or all zeros, for [`Three::Select`] and the
//! operations on bits.
//!
//! NaNs count as equal to each other: it is not fixed which of two NaNs an operation passes on, and
//! with which sign, and nothing may depend on it.

/// Operations of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum One {
    /// √a, correctly rounded.
    Sqrt,
    /// The bits shifted left by a fixed count below 64, filled with zeros.
    ShiftLeft(u8),
    /// The bits shifted right by a fixed count below 64, filled with zeros.
    ShiftRight(u8),
    /// The value in this lane, in every lane. All lanes of a kernel are then computed together.
    Spread(u8),
}

/// Operations of two arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Two {
    /// a + b
    Add,
    /// a − b
    Sub,
    /// a b
    Mul,
    /// a / b
    Div,
    /// The mask of a < b; false if one is NaN.
    Less,
    /// The mask of a ≤ b; false if one is NaN.
    LessEqual,
    /// The mask of a = b; false if one is NaN.
    Equal,
    /// Bits set in both.
    And,
    /// Bits set in either.
    Or,
    /// Bits set in exactly one.
    Xor,
    /// The bits as integers, added modulo 2⁶⁴.
    AddInteger,
    /// The bits as integers, subtracted modulo 2⁶⁴.
    SubInteger,
    /// The larger of the bits as signed integers. Of numbers ≥ 0 that is the larger number, and a
    /// NaN with its sign cleared is larger than all: a running maximum that keeps a NaN for ever.
    LargerInteger,
}

/// Operations of three arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Three {
    /// a b + c with one rounding.
    Fma,
    /// a b − c with one rounding.
    Fms,
    /// c − a b with one rounding.
    Fnma,
    /// b if the mask a is true, c if it is false.
    Select,
    /// In every lane one lane of a or b: its number, counted on from a to b, is the integer in c.
    /// All lanes of a kernel are then computed together.
    Shuffle,
}

/// The mask for true.
pub const TRUE: u64 = u64::MAX;

/// The mask for false.
pub const FALSE: u64 = 0;

fn mask(condition: bool) -> f64 {
    f64::from_bits(if condition { TRUE } else { FALSE })
}

impl One {
    /// Result; for [`One::Spread`] that of an argument that is the same in all lanes.
    #[inline(always)]
    pub fn evaluate(self, a: f64) -> f64 {
        match self {
            One::Spread(_) => a,
            One::Sqrt => a.sqrt(),
            One::ShiftLeft(count) => f64::from_bits(a.to_bits() << count),
            One::ShiftRight(count) => f64::from_bits(a.to_bits() >> count),
        }
    }

    /// Symbol in dumps.
    pub fn name(self) -> String {
        match self {
            One::Sqrt => "sqrt".to_string(),
            One::ShiftLeft(count) => format!("<<{count}"),
            One::ShiftRight(count) => format!(">>{count}"),
            One::Spread(lane) => format!("@{lane}"),
        }
    }
}

impl Two {
    /// Every operation of two arguments.
    pub const ALL: [Two; 13] = [
        Two::Add,
        Two::Sub,
        Two::Mul,
        Two::Div,
        Two::Less,
        Two::LessEqual,
        Two::Equal,
        Two::And,
        Two::Or,
        Two::Xor,
        Two::AddInteger,
        Two::SubInteger,
        Two::LargerInteger,
    ];

    /// Result of the operation.
    #[inline(always)]
    pub fn evaluate(self, a: f64, b: f64) -> f64 {
        let (i, j) = (a.to_bits(), b.to_bits());
        match self {
            Two::Add => a + b,
            Two::Sub => a - b,
            Two::Mul => a * b,
            Two::Div => a / b,
            Two::Less => mask(a < b),
            Two::LessEqual => mask(a <= b),
            Two::Equal => mask(a == b),
            Two::And => f64::from_bits(i & j),
            Two::Or => f64::from_bits(i | j),
            Two::Xor => f64::from_bits(i ^ j),
            Two::AddInteger => f64::from_bits(i.wrapping_add(j)),
            Two::SubInteger => f64::from_bits(i.wrapping_sub(j)),
            Two::LargerInteger => f64::from_bits((i as i64).max(j as i64) as u64),
        }
    }

    /// True if the order of the arguments does not matter.
    pub fn commutes(self) -> bool {
        !matches!(self, Two::Sub | Two::Div | Two::Less | Two::LessEqual | Two::SubInteger)
    }

    /// Symbol in dumps.
    pub fn name(self) -> &'static str {
        match self {
            Two::Add => "+",
            Two::Sub => "-",
            Two::Mul => "*",
            Two::Div => "/",
            Two::Less => "<",
            Two::LessEqual => "<=",
            Two::Equal => "==",
            Two::And => "&",
            Two::Or => "|",
            Two::Xor => "^",
            Two::AddInteger => "+i",
            Two::SubInteger => "-i",
            Two::LargerInteger => "max_i",
        }
    }
}

impl Three {
    /// Every operation of three arguments that acts on each lane alone.
    pub const ALL: [Three; 4] = [Three::Fma, Three::Fms, Three::Fnma, Three::Select];

    /// Result of the operation; for [`Three::Shuffle`] that in a kernel of one lane.
    #[inline(always)]
    pub fn evaluate(self, a: f64, b: f64, c: f64) -> f64 {
        match self {
            Three::Shuffle => shuffle(&[a], &[b], c),
            Three::Fma => a.mul_add(b, c),
            Three::Fms => a.mul_add(b, -c),
            Three::Fnma => (-a).mul_add(b, c),
            Three::Select => {
                let mask = a.to_bits();
                f64::from_bits((mask & b.to_bits()) | (!mask & c.to_bits()))
            }
        }
    }
}

/// The number that [`Three::Shuffle`] takes from the lanes of a or b: the integer in `place` counts
/// on from one to the other, modulo the number of lanes of both.
#[inline(always)]
pub fn shuffle(a: &[f64], b: &[f64], place: f64) -> f64 {
    let place = place.to_bits() as usize % (2 * a.len());
    *a.get(place).unwrap_or_else(|| &b[place - a.len()])
}

/// Target of operations: [`Numbers`] carries them out at once, a tape records them for later. Code
/// over it is written once for both.
pub trait Primitives {
    /// A value.
    type Value: Copy;

    /// A value with these bits.
    fn bits(&mut self, bits: u64) -> Self::Value;

    /// An operation of one argument.
    fn one(&mut self, op: One, a: Self::Value) -> Self::Value;

    /// An operation of two arguments.
    fn two(&mut self, op: Two, a: Self::Value, b: Self::Value) -> Self::Value;

    /// An operation of three arguments.
    fn three(&mut self, op: Three, a: Self::Value, b: Self::Value, c: Self::Value) -> Self::Value;

    /// A number.
    fn number(&mut self, value: f64) -> Self::Value {
        self.bits(value.to_bits())
    }
}

/// Doubles, with all operations carried out at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers;

impl Primitives for Numbers {
    type Value = f64;

    fn bits(&mut self, bits: u64) -> f64 {
        f64::from_bits(bits)
    }

    fn one(&mut self, op: One, a: f64) -> f64 {
        op.evaluate(a)
    }

    fn two(&mut self, op: Two, a: f64, b: f64) -> f64 {
        op.evaluate(a, b)
    }

    fn three(&mut self, op: Three, a: f64, b: f64, c: f64) -> f64 {
        op.evaluate(a, b, c)
    }
}

/// Approximate aᵇ, for a positive, normal a and |b| ≤ 1 with a normal result: relative error within
/// 2e-4, in 20 operations, of which 12 wait for each other. Step-size control does not need more and
/// cannot wait.
///
/// The result is 2 to the power of b log₂ a, of which the exponent is split off at either end. The
/// polynomials are the best ones of their degree, for log₂ on [1, 2] and relative to 2ʳ on [−1/2,
/// 1/2].
pub fn rough_power<A: Primitives>(m: &mut A, a: A::Value, b: A::Value) -> A::Value {
    use Two::{Add, AddInteger, And, Mul, Or, Sub};
    const LOGARITHM: [f64; 5] = [
        -2.5128546239059855,
        4.070090791858758,
        -2.120675131120078,
        0.6451423635899062,
        -0.08161580849841568,
    ];
    const EXPONENTIAL: [f64; 4] =
        [0.9999280735394012, 0.6932609854606553, 0.2426111221932161, 0.05517166905792616];
    /// Doubles of this size are the integers.
    const INTEGERS: f64 = (1u64 << 52) as f64;
    const ROUNDING: f64 = 1.5 * INTEGERS;
    const MANTISSA: u64 = (1 << 52) - 1;
    const BIAS: f64 = 1023.0;
    let number = |m: &mut A, value: f64| m.bits(value.to_bits());
    // a = 2ᵏ f, the exponent with its bias.
    let field = m.one(One::ShiftRight(52), a);
    let integers = number(m, INTEGERS);
    let k = m.two(Or, field, integers);
    let shift = number(m, INTEGERS + BIAS);
    let k = m.two(Sub, k, shift);
    let (mask, one) = (m.bits(MANTISSA), number(m, 1.0));
    let f = m.two(And, a, mask);
    let f = m.two(Or, f, one);
    let square = m.two(Mul, f, f);
    let [c0, c1, c2, c3, c4] = LOGARITHM.map(|c| number(m, c));
    let k = m.two(Add, k, c0);
    let low = m.three(Three::Fma, c1, f, k);
    let high = m.three(Three::Fma, c3, f, c2);
    let high = m.three(Three::Fma, c4, square, high);
    let logarithm = m.three(Three::Fma, high, square, low);
    // 2ʸ = 2ʲ 2ʳ with y = b log₂ a and j the nearest integer, in the low bits of the sum.
    let rounding = number(m, ROUNDING);
    let moved = m.three(Three::Fma, b, logarithm, rounding);
    let j = m.two(Sub, moved, rounding);
    let r = m.three(Three::Fms, b, logarithm, j);
    let square = m.two(Mul, r, r);
    let [c0, c1, c2, c3] = EXPONENTIAL.map(|c| number(m, c));
    let low = m.three(Three::Fma, c1, r, c0);
    let high = m.three(Three::Fma, c3, r, c2);
    let power = m.three(Three::Fma, high, square, low);
    let exponent = m.one(One::ShiftLeft(52), moved);
    m.two(AddInteger, power, exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rough_powers_are_good_to_four_digits() {
        // Over all binary exponents, several mantissas in each, and the exponents of step-size
        // control.
        for k in -1000..1000 {
            for step in 0..16 {
                let a = 2f64.powi(k) * (1.0 + f64::from(step) / 16.0 + 1e-3);
                for b in [-0.125, -0.17, 0.04, -1.0 / 3.0, 1.0] {
                    let rough = rough_power(&mut Numbers, a, b);
                    // 9e-5·ln 2 for the logarithm and 7.5e-5 for the exponential.
                    assert!((rough / a.powf(b) - 1.0).abs() < 1.4e-4, "{a:e}^{b}: {rough:e}");
                }
            }
        }
    }
}
