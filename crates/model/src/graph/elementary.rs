//! Elementary functions as straight-line sequences of [primitive operations](super::primitive), so that every
//! backend computes the same bits. Written once over [`Arithmetic`]: on numbers they evaluate, on a tape they
//! expand.

use super::primitive::{Arithmetic, FALSE, Numbers};

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
}

impl Elementary {
    /// Every elementary function.
    pub const ALL: [Elementary; 13] = [
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
    ];

    /// Its value for any arguments, by code with branches and tables. Functions of one argument ignore `b`.
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
        }
    }

    /// Its value, bit for bit what a tape computes.
    pub fn evaluate(self, a: f64, b: f64) -> f64 {
        self.expand(&mut Numbers, [a, b])
    }

    /// Its expansion.
    pub fn expand<A: Arithmetic>(self, m: &mut A, [a, b]: [A::Value; 2]) -> A::Value {
        let never = m.bits(FALSE);
        m.repair(self, [a, b], a, never)
    }
}
