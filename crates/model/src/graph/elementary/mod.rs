//! Elementary functions as straight-line sequences of [primitive operations](super::primitive), so
//! that every backend computes the same bits. Written once over [`Arithmetic`]: on numbers they
//! evaluate, on a tape they expand.
//!
//! All follow one plan. The argument is reduced to a short interval, with negligible rounding;
//! there the function is a polynomial of least maximal error; and the result is composed such that
//! the last addition is the only one that rounds at the size of the result. There are no tables and
//! no branches: both results are computed and one is selected. The coefficients, and the errors of
//! the polynomials that the files quote, come from `suite/reference/elementary.py`.
//!
//! The remaining error is that of the last rounding, half a unit in the last place (ulp), and part
//! of that of the one before. `tests/elementary.rs` compares all functions with an
//! arbitrary-precision reference over all doubles. The table lists the largest errors among some
//! ten million arguments of each, many of them in difficult regions, and the arguments that are
//! left to [`Elementary::exact`] (see [`Arithmetic::repair`]):
//!
//! | function | operations | error in ulps | left out |
//! | --- | --- | --- | --- |
//! | sin, cos | 40, both 46 | 0.89 | beyond 2⁴⁰ |
//! | tan | 55 | 1.09 | beyond 2⁴⁰ |
//! | asin, acos | 40, 43 | 0.69 | |
//! | atan | 47 | 0.77 | |
//! | atan2 | 59 | 0.98; 1.35 of subnormal numbers, 1.14 where left out | one beyond 2¹⁰²⁰ |
//! | sinh, cosh | 47, 39, both 55 | 0.88, 1.08 | |
//! | tanh | 48 | 0.97 | |
//! | exp | 27 | 1.05 | |
//! | log | 32 | 0.75 | zero, negative, subnormal, ∞ |
//! | log₁₀ | 45 | 0.54 | zero, negative, subnormal, ∞ |
//! | ln(1 + x) | 40 | 0.75 | −1 and below, ∞ |
//! | eˣ − 1 | 39 | 0.92 | above 700 |
//! | erf | 81 | 1.38 | |
//! | pow | 132; about 100 with a constant exponent | 1.01 | |
//!
//! The methods are classical: J.-M. Muller, *Elementary Functions*, 3rd ed., Birkhäuser 2016; W. J.
//! Cody and W. Waite, *Software Manual for the Elementary Functions*, Prentice-Hall 1980.
//! Double-word arithmetic is that of T. J. Dekker, *A floating-point technique for extending the
//! available precision*, Numer. Math. 18 (1971).

mod error_function;
mod exponential;
mod hyperbolic;
mod inverse;
mod logarithm;
mod power;
mod reciprocal_root;
mod special;
mod steps;
mod trigonometric;

use super::primitive::{Numbers, Primitives, TRUE};
pub use reciprocal_root::reciprocal_root;
pub use special::Special;

/// Primitive operations with a way out where a straight line does not suffice.
pub trait Arithmetic: Primitives {
    /// `fast` if the mask `valid` is true, else the function itself, by [`Elementary::exact`]. A
    /// straight-line backend computes `fast` and flags that `valid` was false somewhere; the run is
    /// then repeated by a backend that can branch.
    fn repair(
        &mut self,
        function: Elementary,
        arguments: [Self::Value; 2],
        fast: Self::Value,
        valid: Self::Value,
    ) -> Self::Value;
}

impl Arithmetic for Numbers {
    fn repair(&mut self, function: Elementary, [a, b]: [f64; 2], fast: f64, valid: f64) -> f64 {
        if valid.to_bits() == TRUE { fast } else { function.exact(a, b) }
    }
}

/// The elementary functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elementary {
    /// sin a
    Sin,
    /// cos a
    Cos,
    /// tan a
    Tan,
    /// arcsin a
    Asin,
    /// arccos a
    Acos,
    /// arctan a
    Atan,
    /// sinh a
    Sinh,
    /// cosh a
    Cosh,
    /// tanh a
    Tanh,
    /// eᵃ
    Exp,
    /// ln a
    Log,
    /// aᵇ
    Pow,
    /// The angle of the point (b, a).
    Atan2,
    /// log₁₀ a
    Log10,
    /// ln(1 + a)
    Log1p,
    /// eᵃ − 1
    Expm1,
    /// erf a
    Erf,
    /// A special function of an order a and a number b.
    Special(Special),
}

impl Elementary {
    /// Every elementary function; the special ones are in [`Special::ALL`].
    pub const ALL: [Elementary; 17] = [
        Elementary::Sin,
        Elementary::Cos,
        Elementary::Tan,
        Elementary::Asin,
        Elementary::Acos,
        Elementary::Atan,
        Elementary::Sinh,
        Elementary::Cosh,
        Elementary::Tanh,
        Elementary::Exp,
        Elementary::Log,
        Elementary::Pow,
        Elementary::Atan2,
        Elementary::Log10,
        Elementary::Log1p,
        Elementary::Expm1,
        Elementary::Erf,
    ];

    /// Value by code with branches and tables, for the arguments that the straight-line code leaves
    /// out. Functions of one argument ignore `b`. For other arguments [`Elementary::evaluate`] may
    /// differ in the last bit.
    pub fn exact(self, a: f64, b: f64) -> f64 {
        match self {
            Elementary::Sin => libm::sin(a),
            Elementary::Cos => libm::cos(a),
            Elementary::Tan => libm::tan(a),
            Elementary::Asin => libm::asin(a),
            Elementary::Acos => libm::acos(a),
            Elementary::Atan => libm::atan(a),
            Elementary::Sinh => libm::sinh(a),
            Elementary::Cosh => libm::cosh(a),
            Elementary::Tanh => libm::tanh(a),
            Elementary::Exp => libm::exp(a),
            Elementary::Log => libm::log(a),
            Elementary::Pow => libm::pow(a, b),
            Elementary::Atan2 => libm::atan2(a, b),
            Elementary::Log10 => libm::log10(a),
            Elementary::Log1p => libm::log1p(a),
            Elementary::Expm1 => libm::expm1(a),
            Elementary::Erf => libm::erf(a),
            Elementary::Special(function) => function.evaluate(a, b),
        }
    }

    /// Value, bit for bit as a tape computes it.
    pub fn evaluate(self, a: f64, b: f64) -> f64 {
        self.expand(&mut Numbers, [a, b])
    }

    /// Expansion into primitive operations.
    pub fn expand<A: Arithmetic>(self, m: &mut A, [a, b]: [A::Value; 2]) -> A::Value {
        match self {
            Elementary::Sin => trigonometric::sine(m, a),
            Elementary::Cos => trigonometric::cosine(m, a),
            Elementary::Tan => trigonometric::tangent(m, a),
            Elementary::Asin => inverse::arcsine(m, a),
            Elementary::Acos => inverse::arccosine(m, a),
            Elementary::Atan => inverse::arctangent(m, a),
            Elementary::Sinh => hyperbolic::sine(m, a),
            Elementary::Cosh => hyperbolic::cosine(m, a),
            Elementary::Tanh => hyperbolic::tangent(m, a),
            Elementary::Exp => exponential::exponential(m, a),
            Elementary::Log => logarithm::logarithm(m, a),
            Elementary::Pow => power::power(m, a, b),
            Elementary::Atan2 => inverse::angle(m, a, b),
            Elementary::Log10 => logarithm::to_base_ten(m, a),
            Elementary::Log1p => logarithm::of_one_more(m, a),
            Elementary::Expm1 => exponential::exponential_less_one(m, a),
            Elementary::Erf => error_function::error_function(m, a),
            // No straight line suffices anywhere: it is called.
            Elementary::Special(_) => {
                let (none, never) = (m.number(f64::NAN), m.bits(0));
                m.repair(self, [a, b], none, never)
            }
        }
    }
}
