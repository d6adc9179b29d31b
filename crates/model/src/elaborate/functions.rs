//! Functions that are composed of [operations](crate::graph::op): those of linear algebra, and of
//! numbers. One row each with name, documentation, shape rule and lowering.

use super::shape::Shape;
use crate::graph::op::{Binary, Unary};
use crate::graph::{Graph, Node};

/// Largest matrix that `det` and `inverse` accept: they expand by minors, 2^n of them.
pub const LARGEST_INVERSE: usize = 6;

/// Components of a result from the arguments' shapes and components.
pub type Lower = fn(&mut Graph, &[Shape], &[Vec<Node>]) -> Vec<Node>;

/// A function from shaped arguments to a shaped result.
pub struct FunctionRow {
    /// The function.
    pub function: Function,
    /// Its name in the language.
    pub name: &'static str,
    /// Documentation, for the language guide.
    pub doc: &'static str,
    /// Usage, for error messages.
    pub usage: &'static str,
    /// Shape of the result; `None` if the arguments do not fit.
    pub shape: fn(&[Shape]) -> Option<Shape>,
    /// The result's components from the arguments' shapes and components.
    pub lower: Lower,
}

macro_rules! functions {
    ($( $function:ident, $name:literal, $doc:literal, $usage:literal, $shape:expr, $lower:expr; )+) => {
        /// Functions that are composed of operations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Function { $( #[doc = $doc] $function, )+ }

        /// The table.
        pub const FUNCTIONS: &[FunctionRow] = &[$( FunctionRow { function: Function::$function, name: $name, doc: $doc, usage: $usage, shape: $shape, lower: $lower } ),+];
    };
}

impl Function {
    /// Its row.
    pub fn row(self) -> &'static FunctionRow {
        FUNCTIONS.iter().find(|r| r.function == self).expect("every function has a row")
    }
}

use Shape::{Matrix, Scalar, Vector};

functions! {
    Dot, "dot", "inner product of two vectors (or of two matrices, entry by entry)", "dot(a, b) of two vectors of one length",
        |s| match s { [a @ (Vector(_) | Matrix(..)), b] if a == b => Some(Scalar), _ => None },
        |g, _, a| vec![g.dot(&a[0], &a[1])];
    Cross, "cross", "vector product in R^3", "cross(a, b) of two vectors in R^3",
        |s| match s { [Vector(3), Vector(3)] => Some(Vector(3)), _ => None },
        |g, _, a| (0..3).map(|i| {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            let (u, v) = (g.mul(a[0][j], a[1][k]), g.mul(a[0][k], a[1][j]));
            g.sub(u, v)
        }).collect();
    Norm, "norm", "Euclidean norm (Frobenius for a matrix)", "norm(v) of a vector or matrix",
        |s| match s { [Vector(_) | Matrix(..)] => Some(Scalar), _ => None },
        |g, _, a| { let square = g.dot(&a[0], &a[0]); vec![g.sqrt(square)] };
    Nearest, "nearest", "d − L·round(d/L), the nearest of a distance's periodic images, by components", "nearest(d, L) of a number or vector d, and one length L or one for each component",
        |s| match s { [d @ (Scalar | Vector(_)), l] if *l == Scalar || l == d => Some(*d), _ => None },
        |g, _, a| a[0].iter().enumerate().map(|(k, &d)| {
            let length = a[1][k.min(a[1].len() - 1)];
            let images = g.div(d, length);
            let images = g.unary(Unary::Round, images);
            let away = g.mul(length, images);
            g.sub(d, away)
        }).collect();
    Floor, "floor", "the largest integer that is at most the number", "floor(x) of a number",
        numbers::<1>,
        |g, _, a| vec![floor(g, a[0][0])];
    Ceil, "ceil", "the smallest integer that is at least the number", "ceil(x) of a number",
        numbers::<1>,
        |g, _, a| {
            let x = a[0][0];
            let (nearest, one) = (g.unary(Unary::Round, x), g.one());
            let (above, below) = (g.add(nearest, one), g.binary(Binary::Less, nearest, x));
            vec![g.select(below, above, nearest)]
        };
    Mod, "mod", "x − y·floor(x/y), the remainder with the sign of y", "mod(x, y) of two numbers",
        numbers::<2>,
        |g, _, a| {
            let (x, y) = (a[0][0], a[1][0]);
            let turns = g.div(x, y);
            let turns = floor(g, turns);
            let whole = g.mul(y, turns);
            let rest = g.sub(x, whole);
            // A quotient just below an integer is rounded to it.
            let (zero, product) = (g.zero(), g.mul(rest, y));
            let (other, corrected) = (g.binary(Binary::Less, product, zero), g.add(rest, y));
            vec![g.select(other, corrected, rest)]
        };
    Sign, "sign", "−1, 0 or 1; its derivative is 0", "sign(x) of a number",
        numbers::<1>,
        |g, _, a| {
            let (x, zero, one, minus) = (a[0][0], g.zero(), g.one(), g.constant(-1.0));
            let (below, above) = (g.binary(Binary::Less, x, zero), g.binary(Binary::Less, zero, x));
            let other = g.select(above, one, zero);
            vec![g.select(below, minus, other)]
        };
    Clamp, "clamp", "the number nearest to x in [a, b]", "clamp(x, a, b) of three numbers",
        numbers::<3>,
        |g, _, a| {
            let capped = g.binary(Binary::Min, a[0][0], a[2][0]);
            vec![g.binary(Binary::Max, a[1][0], capped)]
        };
    Hypot, "hypot", "√(x² + y²)", "hypot(x, y) of two numbers",
        numbers::<2>,
        |g, _, a| { let v = [a[0][0], a[1][0]]; let square = g.dot(&v, &v); vec![g.sqrt(square)] };
    BesselJ, "besselj", "Bessel function of the first kind J_n(x)", "besselj(n, x) of a whole number n and a number x",
        numbers::<2>,
        |g, _, a| vec![g.binary(Binary::BesselJ, a[0][0], a[1][0])];
    EllipticK, "ellipk", "complete elliptic integral of the first kind, of the parameter m = k²", "ellipk(m) of a number below 1",
        numbers::<1>,
        |g, _, a| { let order = g.zero(); vec![g.binary(Binary::EllipticK, order, a[0][0])] };
    EllipticE, "ellipe", "complete elliptic integral of the second kind, of the parameter m = k²", "ellipe(m) of a number up to 1",
        numbers::<1>,
        |g, _, a| { let order = g.zero(); vec![g.binary(Binary::EllipticE, order, a[0][0])] };
    Digamma, "digamma", "rate of lgamma", "digamma(x) of a number",
        numbers::<1>,
        |g, _, a| { let order = g.zero(); vec![g.binary(Binary::Polygamma, order, a[0][0])] };
    Polygamma, "polygamma", "derivative of order n of digamma", "polygamma(n, x) of a whole number n and a number x",
        numbers::<2>,
        |g, _, a| vec![g.binary(Binary::Polygamma, a[0][0], a[1][0])];
    GammaP, "gammainc", "regularised lower incomplete gamma function P(a, x)", "gammainc(a, x) of a number a that does not move and a number x",
        numbers::<2>,
        |g, _, a| vec![g.binary(Binary::GammaP, a[0][0], a[1][0])];
    Outer, "outer", "outer product a bᵀ", "outer(a, b) of two vectors",
        |s| match s { [Vector(k), Vector(l)] => Some(Matrix(*k, *l)), _ => None },
        |g, _, a| a[0].iter().flat_map(|&x| a[1].iter().map(move |&y| (x, y))).collect::<Vec<_>>().into_iter().map(|(x, y)| g.mul(x, y)).collect();
    Hat, "hat", "the antisymmetric matrix with hat(v)*w = cross(v, w)", "hat(v) of a vector in R^3",
        |s| match s { [Vector(3)] => Some(Matrix(3, 3)), _ => None },
        |g, _, a| {
            let (z, v) = (g.zero(), &a[0]);
            let n: Vec<Node> = v.iter().map(|&e| g.neg(e)).collect();
            vec![z, n[2], v[1], v[2], z, n[0], n[1], v[0], z]
        };
    Transpose, "transpose", "transposed matrix", "transpose(A) of a matrix",
        |s| match s { [Matrix(k, l)] => Some(Matrix(*l, *k)), _ => None },
        |_, s, a| { let Matrix(k, l) = s[0] else { unreachable!() }; (0..l).flat_map(|j| (0..k).map(move |i| i * l + j)).map(|i| a[0][i]).collect() };
    Trace, "trace", "sum of the diagonal", "trace(A) of a square matrix",
        |s| match s { [Matrix(k, l)] if k == l => Some(Scalar), _ => None },
        |g, s, a| { let Matrix(k, _) = s[0] else { unreachable!() }; vec![g.sum((0..k).map(|i| a[0][i * k + i]))] };
    Det, "det", "determinant", "det(A) of a square matrix up to 6 by 6",
        |s| match s { [Matrix(k, l)] if k == l && *k <= LARGEST_INVERSE => Some(Scalar), _ => None },
        |g, s, a| { let Matrix(k, _) = s[0] else { unreachable!() }; let all: Vec<usize> = (0..k).collect(); vec![minor(g, &a[0], k, &all, &all)] };
    Inverse, "inverse", "inverse matrix", "inverse(A) of a square matrix up to 6 by 6",
        |s| match s { [Matrix(k, l)] if k == l && *k <= LARGEST_INVERSE => Some(Matrix(*k, *k)), _ => None },
        |g, s, a| { let Matrix(k, _) = s[0] else { unreachable!() }; inverse(g, &a[0], k) };
    Diag, "diag", "diagonal matrix of the given scalars or of a vector's components", "diag(a, b, …) of scalars, or diag(v) of a vector",
        |s| match s { [Vector(k)] => Some(Matrix(*k, *k)), [_, ..] if s.iter().all(|s| *s == Scalar) => Some(Matrix(s.len(), s.len())), _ => None },
        |g, _, a| {
            let d: Vec<Node> = a.iter().flatten().copied().collect();
            let zero = g.zero();
            (0..d.len() * d.len()).map(|i| if i / d.len() == i % d.len() { d[i % d.len()] } else { zero }).collect()
        };
}

/// Shape of a function of N numbers.
fn numbers<const N: usize>(shapes: &[Shape]) -> Option<Shape> {
    (shapes.len() == N && shapes.iter().all(|shape| *shape == Scalar)).then_some(Scalar)
}

/// The largest integer that is at most x.
fn floor(g: &mut Graph, x: Node) -> Node {
    let (nearest, one) = (g.unary(Unary::Round, x), g.one());
    let (below, above) = (g.sub(nearest, one), g.binary(Binary::Less, x, nearest));
    g.select(above, below, nearest)
}

/// The determinant of the rows and columns listed, expanded along the first row; equal minors are
/// one node of the graph.
fn minor(g: &mut Graph, a: &[Node], n: usize, rows: &[usize], columns: &[usize]) -> Node {
    let [row, rest @ ..] = rows else { return g.one() };
    let mut sum = g.zero();
    for (k, &column) in columns.iter().enumerate() {
        let entry = a[row * n + column];
        if g.is_zero(entry) {
            continue;
        }
        let others: Vec<usize> = columns.iter().copied().filter(|&c| c != column).collect();
        let smaller = minor(g, a, n, rest, &others);
        let product = g.mul(entry, smaller);
        sum = if k % 2 == 0 { g.add(sum, product) } else { g.sub(sum, product) };
    }
    sum
}

fn inverse(g: &mut Graph, a: &[Node], n: usize) -> Vec<Node> {
    let all: Vec<usize> = (0..n).collect();
    let det = minor(g, a, n, &all, &all);
    let mut result = Vec::with_capacity(n * n);
    for i in 0..n {
        for j in 0..n {
            // Entry (i, j) is the cofactor of (j, i).
            let rows: Vec<usize> = all.iter().copied().filter(|&r| r != j).collect();
            let columns: Vec<usize> = all.iter().copied().filter(|&c| c != i).collect();
            let m = minor(g, a, n, &rows, &columns);
            let cofactor = if (i + j) % 2 == 0 { m } else { g.neg(m) };
            result.push(g.div(cofactor, det));
        }
    }
    result
}
