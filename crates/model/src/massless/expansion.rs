//! Formulas as Laurent series in a small number ε, term by term.

use crate::graph::op::{Binary, Unary};
use crate::graph::{Expression, Graph, Input, Node};
use rustc_hash::FxHashMap;

/// Number of coefficients that are followed: a momentum times a momentum over a mass is of first
/// order, and needs as many where one of them cancels.
const KEPT: usize = 4;

/// Σ cₖ ε^(first + k), of which the coefficients of higher powers than the last are unknown.
#[derive(Clone, Debug)]
pub(super) struct Series {
    first: i32,
    coefficients: Vec<Node>,
}

impl Series {
    /// Coefficient of εᵏ; `None` if it is unknown.
    pub(super) fn coefficient(&self, g: &mut Graph, k: i32) -> Option<Node> {
        match usize::try_from(k - self.first) {
            Ok(place) => self.coefficients.get(place).copied(),
            Err(_) => Some(g.zero()),
        }
    }

    /// The lowest power, with its coefficient; `None` for 0.
    pub(super) fn leading(&self) -> Option<(i32, Node)> {
        Some((self.first, *self.coefficients.first()?))
    }

    /// True if the series has no power below this one.
    pub(super) fn begins_at(&self, power: i32) -> bool {
        self.coefficients.is_empty() || self.first >= power
    }

    /// True if it has a limit.
    pub(super) fn is_bounded(&self) -> bool {
        self.begins_at(0)
    }

    /// node · ε^power.
    fn monomial(g: &mut Graph, node: Node, power: i32) -> Series {
        let mut coefficients = vec![g.zero(); KEPT];
        coefficients[0] = node;
        Series::new(g, power, coefficients)
    }

    /// The series without the coefficients in front that are 0. A series of which no coefficient
    /// is known to differ from 0 begins where they end.
    fn new(g: &Graph, first: i32, mut coefficients: Vec<Node>) -> Series {
        let zeros = coefficients.iter().take_while(|&&c| g.is_zero(c)).count();
        coefficients.drain(..zeros);
        Series { first: first + zeros as i32, coefficients }
    }

    /// The node that the series is, if it is one without ε.
    fn fixed(&self, g: &mut Graph) -> Option<Node> {
        let rest = self.coefficients.get(1..).unwrap_or(&[]);
        match self.first {
            0 => rest.iter().all(|&c| g.is_zero(c)).then_some(*self.coefficients.first()?),
            first => (self.coefficients.is_empty() && first >= KEPT as i32).then(|| g.zero()),
        }
    }

    fn end(&self) -> i32 {
        self.first + self.coefficients.len() as i32
    }

    fn map(&self, mut f: impl FnMut(Node) -> Node) -> Vec<Node> {
        self.coefficients.iter().map(|&c| f(c)).collect()
    }
}

/// Series of `root`, with inputs scaled. `None` if it is not found: of a function of something that
/// grows without bound.
pub(super) fn expand(
    g: &mut Graph,
    root: Node,
    scaled: impl Fn(Input) -> Option<Scaled>,
) -> Option<Series> {
    let mut known: FxHashMap<Node, Option<Series>> = FxHashMap::default();
    for node in g.reachable(&[root]) {
        let of = |argument: Node| known[&argument].as_ref();
        let series = match g.expression(node) {
            Expression::Input(input) => Some(match scaled(input) {
                Some(Scaled::Small) => {
                    let one = g.one();
                    Series::monomial(g, one, 1)
                }
                Some(Scaled::Multiple) => Series::monomial(g, node, 1),
                None => Series::monomial(g, node, 0),
            }),
            Expression::Constant(_) => Some(Series::monomial(g, node, 0)),
            Expression::Unary(op, a) => of(a).and_then(|a| unary(g, op, a)),
            Expression::Binary(op, a, b) => match (of(a), of(b)) {
                (Some(a), Some(b)) => binary(g, op, a, b),
                _ => None,
            },
            Expression::Select(condition, a, b) => match (of(condition), of(a), of(b)) {
                (Some(condition), Some(a), Some(b)) => select(g, condition, a, b),
                _ => None,
            },
            // Formulas of a model have none of these.
            Expression::Fused(..)
            | Expression::Largest(..)
            | Expression::RoughPower(..)
            | Expression::Spread(..) => None,
        };
        known.insert(node, series);
    }
    known.remove(&root)?
}

/// What becomes of an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scaled {
    /// It is ε.
    Small,
    /// It is ε times itself.
    Multiple,
}

fn unary(g: &mut Graph, op: Unary, a: &Series) -> Option<Series> {
    match op {
        Unary::Neg => {
            let coefficients = a.map(|c| g.neg(c));
            Some(Series::new(g, a.first, coefficients))
        }
        Unary::Sqrt => power(g, a, 0.5),
        _ => {
            if let Some(node) = a.fixed(g) {
                let node = g.unary(op, node);
                return Some(Series::monomial(g, node, 0));
            }
            // f(a₀ + a₁ε + …) = f(a₀) + f'(a₀) a₁ε + …
            let (at, slope) = (a.coefficient(g, 0)?, a.coefficient(g, 1)?);
            if a.first < 0 {
                return None;
            }
            let value = g.unary(op, at);
            let [derivative] = op.partials(g, at, value);
            let first = match derivative {
                Some(derivative) => g.mul(derivative, slope),
                None => g.zero(),
            };
            Some(Series::new(g, 0, vec![value, first]))
        }
    }
}

fn binary(g: &mut Graph, op: Binary, a: &Series, b: &Series) -> Option<Series> {
    match op {
        Binary::Add => Some(sum(g, a, b)),
        Binary::Sub => {
            let negated = Series { first: b.first, coefficients: b.map(|c| g.neg(c)) };
            Some(sum(g, a, &negated))
        }
        Binary::Mul => Some(product(g, a, b)),
        Binary::Div => {
            let (&divisor, rest) = b.coefficients.split_first()?;
            if rest.iter().all(|&c| g.is_zero(c)) {
                let coefficients = a.map(|c| g.div(c, divisor));
                return Some(Series::new(g, a.first - b.first, coefficients));
            }
            let inverse = power(g, b, -1.0)?;
            Some(product(g, a, &inverse))
        }
        _ => {
            let exponent = b.fixed(g);
            if let (Some(a), Some(b)) = (a.fixed(g), exponent) {
                let node = g.binary(op, a, b);
                return Some(Series::monomial(g, node, 0));
            }
            match op {
                Binary::Pow => power(g, a, g.value(exponent?)?),
                Binary::Less | Binary::LessEqual | Binary::Equal | Binary::And | Binary::Or
                    if a.first >= 0 && b.first >= 0 =>
                {
                    // Comparisons are made in the limit.
                    let (a, b) = (a.coefficient(g, 0)?, b.coefficient(g, 0)?);
                    let node = g.binary(op, a, b);
                    Some(Series::monomial(g, node, 0))
                }
                _ => None,
            }
        }
    }
}

fn select(g: &mut Graph, condition: &Series, a: &Series, b: &Series) -> Option<Series> {
    let condition = condition.fixed(g)?;
    if let Some(value) = g.value(condition) {
        return Some(if value != 0.0 { a.clone() } else { b.clone() });
    }
    let first = a.first.min(b.first);
    let coefficients = (first..a.end().min(b.end())).map(|k| {
        let (a, b) = (a.coefficient(g, k).expect("known"), b.coefficient(g, k).expect("known"));
        g.select(condition, a, b)
    });
    let coefficients = coefficients.collect();
    Some(Series::new(g, first, coefficients))
}

fn sum(g: &mut Graph, a: &Series, b: &Series) -> Series {
    let first = a.first.min(b.first);
    let coefficients = (first..a.end().min(b.end())).map(|k| {
        let (a, b) = (a.coefficient(g, k).expect("known"), b.coefficient(g, k).expect("known"));
        g.add(a, b)
    });
    let coefficients = coefficients.collect();
    Series::new(g, first, coefficients)
}

fn product(g: &mut Graph, a: &Series, b: &Series) -> Series {
    let count = a.coefficients.len().min(b.coefficients.len());
    let coefficients = (0..count).map(|k| {
        let products = (0..=k).map(|j| (a.coefficients[j], b.coefficients[k - j]));
        products.fold(g.zero(), |sum, (a, b)| {
            let product = g.mul(a, b);
            g.add(sum, product)
        })
    });
    let coefficients = coefficients.collect();
    Series::new(g, a.first + b.first, coefficients)
}

/// aʳ; `None` for a root of an odd power of ε, and for a power of what may be 0.
fn power(g: &mut Graph, a: &Series, r: f64) -> Option<Series> {
    let first = f64::from(a.first) * r;
    let (&leading, rest) = a.coefficients.split_first()?;
    if first.fract() != 0.0 {
        return None;
    }
    let whole = match r {
        0.5 => g.sqrt(leading),
        _ => {
            let exponent = g.constant(r);
            g.pow(leading, exponent)
        }
    };
    // u = aʳ: k a₀ uₖ = Σ_{j=1..k} (r j − (k − j)) aⱼ uₖ₋ⱼ (L. Euler).
    let mut u = vec![whole];
    for k in 1..=rest.len() {
        let mut sum = g.zero();
        for j in 1..=k {
            let factor = g.constant((r * j as f64 - (k - j) as f64) / k as f64);
            let product = g.mul(rest[j - 1], u[k - j]);
            let term = g.mul(factor, product);
            sum = g.add(sum, term);
        }
        u.push(g.div(sum, leading));
    }
    Some(Series::new(g, first as i32, u))
}
