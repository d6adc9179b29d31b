//! Table of operations, one row each. A row defines an operation's name in the language, its
//! documentation, its value and its derivative. The parser, the interpreter, the calculus and the
//! language guide all read this table, so an operation with a column missing does not compile.

use super::elementary::{Elementary, Special};
use super::{Graph, Node};

/// The partial derivative of an operation of one argument, from (argument, result).
type Partials1 = fn(&mut Graph, (Node, Node)) -> [Option<Node>; 1];
/// The partial derivatives of an operation of two arguments, from (first, second, result).
type Partials2 = fn(&mut Graph, (Node, Node, Node)) -> [Option<Node>; 2];

macro_rules! operations {
    (
        $(#[$meta:meta])* $kind:ident;
        evaluate $values:tt ($($value_argument:ident),+) : $value_type:ty;
        partials $nodes:tt ($($node_argument:ident),+) -> $count:literal : $derivative_type:ty;
        $( $op:ident, $name:literal, $doc:literal, $value:expr, $derivative:expr; )+
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $kind { $( #[doc = $doc] $op, )+ }

        impl $kind {
            /// Every operation of this kind, in the table's order.
            pub const ALL: &[$kind] = &[$($kind::$op),+];

            /// Name in the language and in dumps.
            pub fn name(self) -> &'static str {
                match self { $( $kind::$op => $name, )+ }
            }

            /// Documentation for the language guide.
            pub fn doc(self) -> &'static str {
                match self { $( $kind::$op => $doc, )+ }
            }

            /// Value in double precision.
            #[inline(always)]
            pub fn evaluate(self, $($value_argument: f64),+) -> f64 {
                match self { $( $kind::$op => { let f: $value_type = $value; f $values } )+ }
            }

            /// Partial derivatives with respect to each argument, given the arguments and the
            /// result; `None` stands for zero.
            pub fn partials(self, graph: &mut Graph, $($node_argument: Node),+) -> [Option<Node>; $count] {
                match self { $( $kind::$op => { let f: $derivative_type = $derivative; f(graph, $nodes) } )+ }
            }
        }
    };
}

/// 1 for true, 0 for false: conditions are numbers in the graph.
fn truth(condition: bool) -> f64 {
    if condition { 1.0 } else { 0.0 }
}

operations! {
    /// Operations of one argument.
    Unary;
    evaluate (x) (x) : fn(f64) -> f64;
    partials (x, y) (x, y) -> 1 : Partials1;
    Neg, "-", "negation", |x| -x, |g, (_, _)| [Some(g.constant(-1.0))];
    Sqrt, "sqrt", "square root", |x| x.sqrt(), |g, (_, y)| { let half = g.constant(0.5); [Some(g.div(half, y))] };
    Sin, "sin", "sine of an angle in radians", |x| Elementary::Sin.evaluate(x, x), |g, (x, _)| [Some(g.unary(Unary::Cos, x))];
    Cos, "cos", "cosine of an angle in radians", |x| Elementary::Cos.evaluate(x, x), |g, (x, _)| { let s = g.unary(Unary::Sin, x); [Some(g.neg(s))] };
    Tan, "tan", "tangent of an angle in radians", |x| Elementary::Tan.evaluate(x, x), |g, (_, y)| { let one = g.one(); let s = g.mul(y, y); [Some(g.add(one, s))] };
    Asin, "asin", "inverse sine, in radians, of a number in [-1, 1]", |x| Elementary::Asin.evaluate(x, x), |g, (x, _)| { let r = root_of_one_minus_square(g, x); let one = g.one(); [Some(g.div(one, r))] };
    Acos, "acos", "inverse cosine, in radians, of a number in [-1, 1]", |x| Elementary::Acos.evaluate(x, x), |g, (x, _)| { let r = root_of_one_minus_square(g, x); let minus = g.constant(-1.0); [Some(g.div(minus, r))] };
    Atan, "atan", "inverse tangent, in radians", |x| Elementary::Atan.evaluate(x, x), |g, (x, _)| { let one = g.one(); let s = g.mul(x, x); let d = g.add(one, s); [Some(g.div(one, d))] };
    Sinh, "sinh", "hyperbolic sine", |x| Elementary::Sinh.evaluate(x, x), |g, (x, _)| [Some(g.unary(Unary::Cosh, x))];
    Cosh, "cosh", "hyperbolic cosine", |x| Elementary::Cosh.evaluate(x, x), |g, (x, _)| [Some(g.unary(Unary::Sinh, x))];
    Tanh, "tanh", "hyperbolic tangent", |x| Elementary::Tanh.evaluate(x, x), |g, (x, _)| { let c = g.unary(Unary::Cosh, x); let s = g.mul(c, c); let one = g.one(); [Some(g.div(one, s))] };
    Exp, "exp", "exponential", |x| Elementary::Exp.evaluate(x, x), |_, (_, y)| [Some(y)];
    Log, "log", "natural logarithm of a positive number", |x| Elementary::Log.evaluate(x, x), |g, (x, _)| { let one = g.one(); [Some(g.div(one, x))] };
    Log10, "log10", "logarithm of a positive number to base 10", |x| Elementary::Log10.evaluate(x, x), |g, (x, _)| { let slope = g.constant(std::f64::consts::LOG10_E); [Some(g.div(slope, x))] };
    Log1p, "log1p", "log(1 + x), accurate next to 0", |x| Elementary::Log1p.evaluate(x, x), |g, (x, _)| { let one = g.one(); let u = g.add(one, x); [Some(g.div(one, u))] };
    Expm1, "expm1", "exp(x) - 1, accurate next to 0", |x| Elementary::Expm1.evaluate(x, x), |g, (x, _)| [Some(g.unary(Unary::Exp, x))];
    Erf, "erf", "error function", |x| Elementary::Erf.evaluate(x, x), |g, (x, _)| { let (factor, square) = (g.constant(std::f64::consts::FRAC_2_SQRT_PI), g.mul(x, x)); let square = g.neg(square); let decay = g.unary(Unary::Exp, square); [Some(g.mul(factor, decay))] };
    Gamma, "gamma", "gamma function; a name of yours goes first", |x| special(Special::Gamma, x, x), |g, (x, y)| { let zero = g.zero(); let rate = g.binary(Binary::Polygamma, zero, x); [Some(g.mul(y, rate))] };
    LogGamma, "lgamma", "log of |gamma(x)|", |x| special(Special::LogGamma, x, x), |g, (x, _)| { let zero = g.zero(); [Some(g.binary(Binary::Polygamma, zero, x))] };
    Abs, "abs", "absolute value, differentiated piecewise", |x| x.abs(), |g, (x, _)| { let zero = g.zero(); let c = g.binary(Binary::Less, x, zero); let (minus, one) = (g.constant(-1.0), g.one()); [Some(g.select(c, minus, one))] };
    Round, "round", "the nearest integer, of two the even one; its derivative is 0", |x| x.round_ties_even(), |_, (_, _)| [None];
    Not, "not", "logical negation", |x| truth(x == 0.0), |_, (_, _)| [None];
}

operations! {
    /// Operations of two arguments.
    Binary;
    evaluate (a, b) (a, b) : fn(f64, f64) -> f64;
    partials (a, b, y) (a, b, y) -> 2 : Partials2;
    Add, "+", "sum", |a, b| a + b, |g, (_, _, _)| { let one = g.one(); [Some(one), Some(one)] };
    Sub, "-", "difference", |a, b| a - b, |g, (_, _, _)| { let (one, minus) = (g.one(), g.constant(-1.0)); [Some(one), Some(minus)] };
    Mul, "*", "product", |a, b| a * b, |_, (a, b, _)| [Some(b), Some(a)];
    Div, "/", "quotient", |a, b| a / b, |g, (_, b, y)| { let one = g.one(); let r = g.div(one, b); let q = g.div(y, b); [Some(r), Some(g.neg(q))] };
    Pow, "pow", "power; the base must be positive unless the exponent is an integer", |a, b| Elementary::Pow.evaluate(a, b), |g, (a, b, y)| {
        let one = g.one();
        let lower = g.sub(b, one);
        let p = g.pow(a, lower);
        let l = g.unary(Unary::Log, a);
        let (da, db) = (g.mul(b, p), g.mul(y, l));
        // An exponent that becomes 0 by differentiation ends a polynomial, where the power below it
        // is infinite; and 0ᵇ is 0 for all b > 0.
        [Some(zero_where_zero(g, b, da)), Some(zero_where_zero(g, y, db))]
    };
    Atan2, "atan2", "angle of the point (second argument, first argument), in radians", |a, b| Elementary::Atan2.evaluate(a, b), |g, (a, b, _)| {
        let (aa, bb) = (g.mul(a, a), g.mul(b, b));
        let n = g.add(aa, bb);
        let (u, v) = (g.div(b, n), g.div(a, n));
        [Some(u), Some(g.neg(v))]
    };
    Min, "min", "the smaller of two numbers, differentiated piecewise", |a, b| if a < b || a.is_nan() { a } else { b }, |g, (a, b, _)| { let c = g.binary(Binary::LessEqual, a, b); let (one, zero) = (g.one(), g.zero()); [Some(g.select(c, one, zero)), Some(g.select(c, zero, one))] };
    Max, "max", "the larger of two numbers, differentiated piecewise", |a, b| if b < a || a.is_nan() { a } else { b }, |g, (a, b, _)| { let c = g.binary(Binary::LessEqual, b, a); let (one, zero) = (g.one(), g.zero()); [Some(g.select(c, one, zero)), Some(g.select(c, zero, one))] };
    BesselJ, "besselj", "Bessel function of the first kind of a whole order n", |a, b| special(Special::BesselJ, a, b), |g, (a, b, _)| {
        let one = g.one();
        let (below, above) = (g.sub(a, one), g.add(a, one));
        let (below, above) = (g.binary(Binary::BesselJ, below, b), g.binary(Binary::BesselJ, above, b));
        let (half, difference) = (g.constant(0.5), g.sub(below, above));
        [None, Some(g.mul(half, difference))]
    };
    EllipticK, "ellipk", "derivative of order n of the complete elliptic integral K", |a, b| special(Special::EllipticK, a, b), |g, (a, b, _)| [None, Some(next_order(g, Binary::EllipticK, a, b))];
    EllipticE, "ellipe", "derivative of order n of the complete elliptic integral E", |a, b| special(Special::EllipticE, a, b), |g, (a, b, _)| [None, Some(next_order(g, Binary::EllipticE, a, b))];
    Polygamma, "polygamma", "derivative of order n of digamma", |a, b| special(Special::Polygamma, a, b), |g, (a, b, _)| [None, Some(next_order(g, Binary::Polygamma, a, b))];
    GammaP, "gammainc", "regularised lower incomplete gamma function P(a, x)", |a, b| special(Special::GammaP, a, b), |g, (a, b, _)| {
        // xᵃ⁻¹ e^(−x − ln Γ(a))
        let one = g.one();
        let lower = g.sub(a, one);
        let power = g.pow(b, lower);
        let whole = g.unary(Unary::LogGamma, a);
        let exponent = g.add(b, whole);
        let exponent = g.neg(exponent);
        let decay = g.unary(Unary::Exp, exponent);
        [None, Some(g.mul(power, decay))]
    };
    Less, "<", "less than", |a, b| truth(a < b), |_, (_, _, _)| [None, None];
    LessEqual, "<=", "at most", |a, b| truth(a <= b), |_, (_, _, _)| [None, None];
    Equal, "==", "equal", |a, b| truth(a == b), |_, (_, _, _)| [None, None];
    And, "and", "both", |a, b| truth(a != 0.0 && b != 0.0), |_, (_, _, _)| [None, None];
    Or, "or", "one or both", |a, b| truth(a != 0.0 || b != 0.0), |_, (_, _, _)| [None, None];
}

/// Value of a special function, bit for bit as a tape computes it.
fn special(function: Special, a: f64, b: f64) -> f64 {
    Elementary::Special(function).evaluate(a, b)
}

/// An operation whose first argument is the order of a derivative, differentiated once more.
fn next_order(g: &mut Graph, op: Binary, order: Node, x: Node) -> Node {
    let one = g.one();
    let order = g.add(order, one);
    g.binary(op, order, x)
}

/// A product with the factor `a`, which is 0 where `a` is.
fn zero_where_zero(g: &mut Graph, a: Node, product: Node) -> Node {
    if g.value(a).is_some() {
        return product;
    }
    let zero = g.zero();
    let is_zero = g.binary(Binary::Equal, a, zero);
    g.select(is_zero, zero, product)
}

fn root_of_one_minus_square(g: &mut Graph, x: Node) -> Node {
    let one = g.one();
    // (1 - x)(1 + x) keeps its accuracy near |x| = 1, where 1 - x^2 cancels.
    let (a, b) = (g.sub(one, x), g.add(one, x));
    let product = g.mul(a, b);
    g.sqrt(product)
}

impl Unary {
    /// True for a function that is called, and whose derivatives never end.
    pub fn is_special(self) -> bool {
        matches!(self, Unary::Gamma | Unary::LogGamma)
    }
}

impl Binary {
    /// True for a function that is called, and whose derivatives never end.
    pub fn is_special(self) -> bool {
        matches!(
            self,
            Binary::BesselJ
                | Binary::EllipticK
                | Binary::EllipticE
                | Binary::Polygamma
                | Binary::GammaP
        )
    }

    /// True if the order of the arguments does not matter, bit for bit.
    pub fn commutes(self) -> bool {
        matches!(self, Binary::Add | Binary::Mul | Binary::Equal | Binary::And | Binary::Or)
    }
}
