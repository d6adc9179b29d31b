//! Expression trees for the tests: one tree becomes a graph and is evaluated on dual numbers, so
//! that neither the graph's simplifications nor its derivative table check themselves.
#![allow(dead_code)] // each test uses its own part

use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Graph, Node};
use num_dual::DualNum;
use proptest::prelude::*;

/// An expression over the state.
#[derive(Clone, Debug)]
pub enum Tree {
    Number(f64),
    State(usize),
    Unary(Unary, Box<Tree>),
    Binary(Binary, Box<Tree>, Box<Tree>),
    Select(Box<Tree>, Box<Tree>, Box<Tree>),
}

use Tree::{Number, State};

pub fn unary(op: Unary, a: Tree) -> Tree {
    Tree::Unary(op, Box::new(a))
}

pub fn binary(op: Binary, a: Tree, b: Tree) -> Tree {
    Tree::Binary(op, Box::new(a), Box::new(b))
}

pub fn select(c: Tree, a: Tree, b: Tree) -> Tree {
    Tree::Select(Box::new(c), Box::new(a), Box::new(b))
}

/// Σ coefficient·state.
pub fn combination(coefficients: &[(f64, usize)]) -> Tree {
    coefficients
        .iter()
        .map(|&(c, k)| binary(Binary::Mul, Number(c), State(k)))
        .reduce(|a, b| binary(Binary::Add, a, b))
        .expect("a term")
}

impl Tree {
    /// The tree as a node.
    pub fn build(&self, g: &mut Graph) -> Node {
        match self {
            Number(v) => g.constant(*v),
            State(k) => g.state(*k),
            Tree::Unary(op, a) => {
                let a = a.build(g);
                g.unary(*op, a)
            }
            Tree::Binary(op, a, b) => {
                let (a, b) = (a.build(g), b.build(g));
                if *op == Binary::Pow { g.pow(a, b) } else { g.binary(*op, a, b) }
            }
            Tree::Select(c, a, b) => {
                let (c, a, b) = (c.build(g), a.build(g), b.build(g));
                g.select(c, a, b)
            }
        }
    }

    /// Value of the tree on numbers that carry derivatives. `touch` sees every intermediate result.
    pub fn evaluate<D: DualNum<Primitive = f64>>(
        &self,
        x: &[D],
        touch: &mut dyn FnMut(D) -> D,
    ) -> D {
        let result = match self {
            // Not touched: an integer exponent has to stay one.
            Number(v) => return D::from(*v),
            State(k) => x[*k].clone(),
            Tree::Unary(op, a) => apply(*op, a.evaluate(x, touch)),
            Tree::Binary(op, a, b) => {
                let exponent = match (op, &**b) {
                    (Binary::Pow, Number(v)) => Some(*v),
                    _ => None,
                };
                let (a, b) = (a.evaluate(x, touch), b.evaluate(x, touch));
                match exponent {
                    Some(v) => power(a, v),
                    None => apply_two(*op, a, b),
                }
            }
            Tree::Select(c, a, b) => {
                let c = c.evaluate(x, touch);
                // Both branches, so that `touch` sees the same sequence whichever is taken.
                let (a, b) = (a.evaluate(x, touch), b.evaluate(x, touch));
                if c.re() != 0.0 { a } else { b }
            }
        };
        touch(result)
    }
}

fn truth<D: DualNum<Primitive = f64>>(condition: bool) -> D {
    D::from(if condition { 1.0 } else { 0.0 })
}

/// aᵛ by the derivative's definition: num-dual's own `powf` divides by a³ even if the order does
/// not need it.
fn power<D: DualNum<Primitive = f64>>(a: D, v: f64) -> D {
    if v.fract() == 0.0 && v.abs() < 100.0 { a.powi(v as i32) } else { a.powf(v) }
}

/// The oracle of every operation of one argument; a new row of the table does not compile until it
/// is here.
pub fn apply<D: DualNum<Primitive = f64>>(op: Unary, a: D) -> D {
    match op {
        Unary::Neg => -a,
        Unary::Sqrt => a.sqrt(),
        Unary::Sin => a.sin(),
        Unary::Cos => a.cos(),
        Unary::Tan => a.tan(),
        Unary::Asin => a.asin(),
        Unary::Acos => a.acos(),
        Unary::Atan => a.atan(),
        Unary::Sinh => a.sinh(),
        Unary::Cosh => a.cosh(),
        Unary::Tanh => a.tanh(),
        Unary::Exp => a.exp(),
        Unary::Log => a.ln(),
        Unary::Log10 => a.log10(),
        Unary::Log1p => a.ln_1p(),
        Unary::Expm1 => a.exp_m1(),
        Unary::Erf => error_function(a),
        Unary::Gamma | Unary::LogGamma => unreachable!("special functions have tables"),
        Unary::Abs => {
            if a.re() < 0.0 {
                -a
            } else {
                a
            }
        }
        Unary::Round => D::from(a.re().round_ties_even()),
        Unary::Not => truth(a.re() == 0.0),
    }
}

/// erf a = 2/√π e^(−a²) Σ 2ⁿ a²ⁿ⁺¹/(1·3·…·(2n + 1)), a sum of terms of one sign; beyond 10 it is 1 to
/// all digits, and its derivatives are 0.
fn error_function<D: DualNum<Primitive = f64>>(a: D) -> D {
    if a.re().abs() > 10.0 {
        return D::from(a.re().signum());
    }
    let square = a.clone() * a.clone();
    let (mut sum, mut term) = (a.clone(), a);
    for n in 1..500 {
        term = term * square.clone() * (2.0 / f64::from(2 * n + 1));
        sum += term.clone();
    }
    (-square).exp() * sum * std::f64::consts::FRAC_2_SQRT_PI
}

/// The oracle of every operation of two arguments.
pub fn apply_two<D: DualNum<Primitive = f64>>(op: Binary, a: D, b: D) -> D {
    match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::Pow => (a.ln() * b).exp(),
        // num-dual divides by b whatever its size.
        Binary::Atan2 if a.re().abs() > b.re().abs() => {
            -(b / a.clone()).atan() + std::f64::consts::FRAC_PI_2.copysign(a.re())
        }
        Binary::Atan2 if b.re() < 0.0 => {
            (a.clone() / b).atan() + std::f64::consts::PI.copysign(a.re())
        }
        Binary::Atan2 => (a / b).atan(),
        Binary::BesselJ
        | Binary::EllipticK
        | Binary::EllipticE
        | Binary::Polygamma
        | Binary::GammaP => unreachable!("special functions have tables"),
        Binary::Min => {
            if a.re() <= b.re() {
                a
            } else {
                b
            }
        }
        Binary::Max => {
            if a.re() >= b.re() {
                a
            } else {
                b
            }
        }
        Binary::Less => truth(a.re() < b.re()),
        Binary::LessEqual => truth(a.re() <= b.re()),
        Binary::Equal => truth(a.re() == b.re()),
        Binary::And => truth(a.re() != 0.0 && b.re() != 0.0),
        Binary::Or => truth(a.re() != 0.0 || b.re() != 0.0),
    }
}

/// Random trees over `states` variables. Functions get arguments inside their domain and away from
/// poles: the subject of the tests is the calculus, not the spread of NaN.
pub fn trees(states: usize) -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![3 => (0..states).prop_map(State), 1 => (-20i32..20).prop_map(|k| Number(f64::from(k) / 8.0))];
    leaf.prop_recursive(6, 40, 3, |inner| {
        let one = Box::new(|v: f64| Number(v));
        let square = |a: Tree| binary(Binary::Mul, a.clone(), a);
        let positive = move |a: Tree| binary(Binary::Add, square(unary(Unary::Tanh, a)), Number(0.5));
        let bounded = |a: Tree| binary(Binary::Mul, Number(0.9), unary(Unary::Sin, a));
        prop_oneof![
            4 => (prop::sample::select(vec![Binary::Add, Binary::Sub, Binary::Mul, Binary::Min, Binary::Max]), inner.clone(), inner.clone())
                .prop_map(|(op, a, b)| binary(op, a, b)),
            2 => (prop::sample::select(vec![Unary::Neg, Unary::Sin, Unary::Cos, Unary::Atan, Unary::Tanh, Unary::Abs]), inner.clone())
                .prop_map(|(op, a)| unary(op, a)),
            1 => (prop::sample::select(vec![Unary::Asin, Unary::Acos, Unary::Tan, Unary::Sinh, Unary::Cosh, Unary::Exp]), inner.clone())
                .prop_map(move |(op, a)| unary(op, bounded(a))),
            1 => (prop::sample::select(vec![Unary::Sqrt, Unary::Log]), inner.clone()).prop_map(move |(op, a)| unary(op, positive(a))),
            1 => (inner.clone(), inner.clone()).prop_map(move |(a, b)| binary(Binary::Div, a, positive(b))),
            1 => (inner.clone(), prop::sample::select(vec![2.0, 3.0, -1.0, -2.0, 0.5, 1.5, -0.5, 7.0, 0.3, -1.7])).prop_map(move |(a, e)| binary(Binary::Pow, positive(a), one(e))),
            1 => (inner.clone(), inner.clone()).prop_map(move |(a, b)| binary(Binary::Pow, positive(a), bounded(b))),
            1 => (inner.clone(), inner.clone()).prop_map(move |(a, b)| binary(Binary::Atan2, positive(a), b)),
            1 => (inner.clone(), inner.clone(), inner.clone(), inner.clone(), prop::sample::select(vec![Binary::Less, Binary::LessEqual]))
                .prop_map(|(l, r, a, b, op)| select(binary(op, l, r), a, b)),
        ]
    })
}
