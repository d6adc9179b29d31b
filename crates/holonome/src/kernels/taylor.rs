//! Steps of a Taylor series: the coefficients of the solution come from the formulas of the field,
//! and the last of them determine the length over which they are good.

use super::formula::Formula;
use crate::error::Error;
use crate::policy::{LONGEST_RECURRENCE, LONGEST_SERIES};
use holonome_arithmetic::Real;
use holonome_integrate::controller::{LAST_TERMS, StepControl};
use holonome_integrate::fixed_point::rules::measured;
use holonome_integrate::method::{Method, Scheme};
use holonome_integrate::scales::Vectors;
use holonome_integrate::scheme::map::{Estimate, Facts};
use holonome_model::graph::optimise::optimise;
use holonome_model::graph::series::{Recurrence, Series};
use holonome_model::graph::value::{Recording, Value, nodes};
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::Field;

/// Number of last orders that determine the length of a step. At a state at rest only every other
/// one, or every fourth, is not 0.
const LAST_ORDERS: u32 = 4;

/// Largest growth of the squares of those terms over as many orders. Terms then decrease by 0.7
/// from one to the next, and all that follow are together three times the last.
const GROWTH: f64 = 1.0 / 16.0;

/// Largest growth that counts: more is an accident. It makes a step thirteen times shorter.
const LARGEST_GROWTH: f64 = 1e6;

/// Taylor series of a field.
pub struct Taylor {
    series: Series,
    field: Formula,
    pub(super) order: u32,
    is_long: bool,
}

/// Coefficients of the solution that begins at time t, in powers of time over `length`, as nodes.
pub struct Expansion<'a> {
    pub t: Node,
    pub length: Node,
    pub coefficients: &'a [Vec<Node>],
}

/// Scales and tolerance that a step is measured against, as nodes.
pub struct Scales<'a> {
    /// S² of the vectors, and floors of momenta: see [`Yardstick::norms`].
    pub norms: &'a [Node],
    /// [`Yardstick::rtol`].
    pub tolerance: Node,
}

impl Taylor {
    /// Series of `field`, for `method`.
    ///
    /// # Errors
    /// If the field is defined piecewise, or its series would be too long.
    pub fn new(method: &Method, field: &Field) -> Result<Taylor, Error> {
        let order = method.scheme.facts().order;
        let (graph, roots) = optimise(&field.graph, &field.field);
        let instead = Method { scheme: Scheme::named("dop853").expect("a scheme"), ..*method };
        let series = Series::new(&graph, &roots).map_err(|operation| {
            Error::option(format!(
                "`{method}` needs formulas with a Taylor series, and `{operation}` has none here, as what is defined piecewise and special functions: use {instead}"
            ))
        })?;
        let operations = series.operations(order);
        if operations > LONGEST_RECURRENCE {
            return Err(Error::option(format!(
                "`{method}` would take {operations} operations a step, and is for models with up to {LONGEST_RECURRENCE}: use {instead}"
            )));
        }
        let is_long = operations > LONGEST_SERIES;
        Ok(Taylor { series, field: Formula::new(&field.graph, &field.field), order, is_long })
    }

    /// True if the coefficients of all orders would be too long as one formula.
    pub fn is_long(&self) -> bool {
        self.is_long
    }

    /// Programs that compute the coefficients order by order, of a model with this many parameters.
    pub fn recurrence(&self, parameters: usize) -> Recurrence {
        self.series.recurrence(parameters)
    }

    /// Facts about the method.
    pub fn facts(&self) -> Facts {
        let order = self.order as usize;
        Facts {
            control: Some(StepControl::of_series(self.order)),
            equal_steps: Estimate::Known,
            errors: order..order + 1,
            end_field: None,
            ends_with_field: false,
        }
    }

    /// Number of evaluations of the field that an equal step counts as, and an attempt.
    pub fn evaluations(&self) -> [u64; 2] {
        [u64::from(self.order), u64::from(self.order) + 1]
    }

    /// Coefficients of the solution at x and t, in powers of time over `length`.
    pub fn coefficients(
        &self,
        g: &mut Graph,
        (t, length): (Node, Node),
        x: &[Node],
    ) -> Vec<Vec<Node>> {
        self.series.solution(g, (t, length), x, self.order)
    }

    /// Part of their length over which the coefficients are good to the tolerance: the norm of the
    /// term of order k is at most tolᵏ, where tol to the power of the order is the relative
    /// tolerance.
    pub fn reach(
        &self,
        g: &mut Graph,
        length: Node,
        c: &[Vec<Node>],
        scales: &Scales,
        vectors: &Vectors,
    ) -> Node {
        g.record(|r| {
            let (c, norms) = (coefficients(r, c), r.values(scales.norms));
            let of = (&norms[..], r.value(scales.tolerance));
            reach(self.order, r.value(length), &c, of, vectors)
                .smaller(r.constant(largest_part(self.order)))
                .node()
        })
    }

    /// The time `h` as a part of the length of coefficients. The inverse is known long before a step
    /// has found how long it is.
    pub fn part(g: &mut Graph, h: Node, length: Node) -> Node {
        let one = g.one();
        let inverse = g.div(one, length);
        g.mul(h, inverse)
    }

    /// State after a part of the coefficients' length.
    pub fn value(g: &mut Graph, c: &[Vec<Node>], part: Node) -> Vec<Node> {
        g.record(|r| nodes(&value(&coefficients(r, c), r.value(part))))
    }

    /// Estimate of the error of an attempt over this part of an expansion, without the factor `h`,
    /// the length of the part: the last two terms or, where it is larger, the distance of the
    /// series' slope at the end from the field there, as the terms say nothing of a kink, a branch
    /// cut or a pulse that the step passes. That is as many times the first term left out as its
    /// order is.
    pub fn compared(&self, g: &mut Graph, of: &Expansion, (part, h): (Node, Node)) -> Vec<Node> {
        // The series obeys linear equations, as q' = p, term by term.
        let linear = self.field.linear_roots();
        g.record(|r| {
            let (c, [t, length]) =
                (coefficients(r, of.coefficients), [of.t, of.length].map(|n| r.value(n)));
            let [part, h] = [part, h].map(|node| r.value(node));
            let mut error = last_terms(&c, (part, h));
            let per_order = 1.0 / f64::from(self.order + 1);
            let infinity = r.constant(f64::INFINITY);
            let per_length = r.constant(1.0) / length;
            let field = self.field.recorded(r, t + h, &value(&c, part));
            for (i, error) in error.iter_mut().enumerate().filter(|(i, _)| !linear[*i]) {
                let missed = (field[i] - slope(&c, i, part) * per_length).abs() * per_order;
                // Where the field is undefined, no error is small enough.
                let missed = Value::select(missed.at_most(infinity), missed, infinity);
                *error = error.larger(missed);
            }
            nodes(&error)
        })
    }

    /// Last two terms after that part, without the factor `h`, the length of the part.
    pub fn estimate(&self, g: &mut Graph, c: &[Vec<Node>], (part, h): (Node, Node)) -> Vec<Node> {
        g.record(|r| nodes(&last_terms(&coefficients(r, c), (r.value(part), r.value(h)))))
    }
}

/// Length in whose powers an attempt expands the solution, if its step may be `longest`: that of the
/// last step as a rule, as steps grow by no more than a factor.
pub fn length_of_expansion<R: Real>(order: u32, longest: R) -> R {
    longest * (1.0 / largest_part(order))
}

/// Largest part of that length that a step may take.
fn largest_part(order: u32) -> f64 {
    StepControl::of_series(order).grow
}

fn coefficients<'r>(r: &'r Recording, c: &[Vec<Node>]) -> Vec<Vec<Value<'r>>> {
    c.iter().map(|c| r.values(c)).collect()
}

/// Σ_k termₖ partᵏ⁻¹ for 1 ≤ k < `count`, as four sums side by side.
fn sum_of_powers<R: Real>(part: R, count: usize, term: impl Fn(usize) -> R) -> R {
    let square = part * part;
    let fourth = square * square;
    let [a, b, c, d] = [1, 2, 3, 4].map(|first| {
        let terms = (first..count).step_by(4).rev().map(&term);
        terms.reduce(|sum, term| fourth.mul_add(sum, term)).unwrap_or(part.constant(0.0))
    });
    square.mul_add(part.mul_add(d, c), part.mul_add(b, a))
}

/// State after a part of the coefficients' length.
fn value<R: Real>(c: &[Vec<R>], part: R) -> Vec<R> {
    let component = |i: usize| part.mul_add(sum_of_powers(part, c.len(), |k| c[k][i]), c[0][i]);
    (0..c[0].len()).map(component).collect()
}

/// Rate of change of component i after a part of the coefficients' length, times that length.
fn slope<R: Real>(c: &[Vec<R>], i: usize, part: R) -> R {
    sum_of_powers(part, c.len(), |k| c[k][i] * k as f64)
}

/// Last two terms after a part of the coefficients' length, without the factor `h`.
fn last_terms<'r>(c: &[Vec<Value<'r>>], (part, h): (Value<'r>, Value<'r>)) -> Vec<Value<'r>> {
    let [.., before, last] = c else { unreachable!("a series has several terms") };
    let factor = part.power(part.constant((c.len() - 2) as f64)) / h;
    let terms = before.iter().zip(last);
    terms.map(|(before, last)| factor * part.mul_add(last.abs(), before.abs())).collect()
}

/// Part of the length of coefficients over which they are good; see [`Taylor::reach`]. It is near
/// 1 as a rule, where the terms of all orders may have one root: what is larger than allowed that
/// of the lowest, so that the part is not too long.
fn reach<'r>(
    order: u32,
    length: Value<'r>,
    c: &[Vec<Value<'r>>],
    (norms, tolerance): (&[Value<'r>], Value<'r>),
    vectors: &Vectors,
) -> Value<'r> {
    let [tiny, biggest, zero, one] =
        [f64::MIN_POSITIVE, f64::MAX, 0.0, 1.0].map(|number| length.constant(number));
    let (norms, floors) = norms.split_at(vectors.count());
    // Vectors that have always been 0 are measured by the attempt, against x₁.
    let per_square = |(vector, &norm): (usize, &Value<'r>)| {
        let momentum = vector.checked_sub(vectors.conjugates());
        let own = match momentum.and_then(|momentum| floors.get(momentum)) {
            Some(&floor) => norm.larger(floor / (length * length)),
            None => norm,
        };
        Value::select(tiny.at_most(own), one / own, zero)
    };
    let per_square: Vec<Value> = norms.iter().enumerate().map(per_square).collect();
    let per_count = 1.0 / vectors.sized().max(1) as f64;
    let square_of_term = |k: u32| {
        let square = measured(vectors, &per_square, &c[k as usize]);
        square.expect("a state has vectors") * per_count
    };
    // Squares of the last terms, relative to what is allowed.
    let exponent = one.constant(1.0 / f64::from(order - 1));
    let root = (tolerance * (1.0 / LAST_TERMS)).rough_power(exponent);
    let orders = || order + 1 - LAST_ORDERS..=order;
    let allowed = |k: u32| (root * root).power(one.constant(f64::from(k)));
    let relative = orders().map(|k| square_of_term(k) * (one / allowed(k)));
    let most = relative.reduce(Value::larger).expect("there are some orders");
    // While terms grow, as before a wall, small ones say nothing about those that follow.
    let of_orders = |below: u32| orders().map(|k| square_of_term(k - below)).reduce(Value::larger);
    let [last, before] = [0, LAST_ORDERS].map(|below| of_orders(below).expect("some orders"));
    let growth = (last * (one / before)).smaller(one.constant(LARGEST_GROWTH)) * (1.0 / GROWTH);
    let power = f64::from(order) / f64::from(LAST_ORDERS);
    let most = most.larger(growth.power(one.constant(power)));
    // The attempt detects terms that are not numbers.
    let most = Value::select(tiny.at_most(most), most.smaller(biggest), tiny);
    let [first, order] =
        [order + 1 - LAST_ORDERS, order].map(|k| one.constant(-0.5 / f64::from(k)));
    most.rough_power(Value::select(one.less(most), first, order))
}
