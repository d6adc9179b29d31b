//! Formulas over intervals of time: bounds of all values that a formula takes in one.

use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Expression, Graph, Input, Node};
use std::f64::consts::{PI, TAU};

/// Bounds of a set of numbers, ∞ if there are none. Rounding is left out: what is sought are jumps
/// and pulses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    const ALL: Interval = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };

    pub fn new(low: f64, high: f64) -> Interval {
        if low <= high { Interval { low, high } } else { Interval::ALL }
    }

    fn point(x: f64) -> Interval {
        Interval::new(x, x)
    }

    pub fn width(self) -> f64 {
        self.high - self.low
    }

    pub fn middle(self) -> f64 {
        self.low + 0.5 * self.width()
    }

    pub fn hull(self, other: Interval) -> Interval {
        Interval::new(self.low.min(other.low), self.high.max(other.high))
    }

    fn contains(self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    /// Image under a function that rises.
    fn rising(self, f: impl Fn(f64) -> f64) -> Interval {
        Interval::new(f(self.low), f(self.high))
    }

    /// Image under a function that is even and rises from 0 on.
    fn even(self, f: impl Fn(f64) -> f64) -> Interval {
        let (a, b) = (f(self.low.abs()), f(self.high.abs()));
        Interval::new(if self.contains(0.0) { f(0.0) } else { a.min(b) }, a.max(b))
    }

    /// Hull of a function at the corners of two intervals.
    fn corners(self, other: Interval, f: impl Fn(f64, f64) -> f64) -> Interval {
        let all = [
            (self.low, other.low),
            (self.low, other.high),
            (self.high, other.low),
            (self.high, other.high),
        ];
        let values = all.map(|(a, b)| f(a, b));
        if values.iter().any(|value| value.is_nan()) {
            return Interval::ALL;
        }
        Interval::new(
            values.into_iter().fold(f64::INFINITY, f64::min),
            values.into_iter().fold(f64::NEG_INFINITY, f64::max),
        )
    }

    /// Cosine: it has a maximum at every multiple of 2π, and minima between.
    fn cosine(self) -> Interval {
        let turns =
            |phase: f64| ((self.high - phase) / TAU).floor() >= ((self.low - phase) / TAU).ceil();
        if !self.width().is_finite() || self.width() >= TAU {
            return Interval::new(-1.0, 1.0);
        }
        let (a, b) = (self.low.cos(), self.high.cos());
        Interval::new(
            if turns(PI) { -1.0 } else { a.min(b) },
            if turns(0.0) { 1.0 } else { a.max(b) },
        )
    }

    /// Truth of a condition: 0, 1 or both.
    fn truth(never: bool, always: bool) -> Interval {
        Interval::new(if always { 1.0 } else { 0.0 }, if never { 0.0 } else { 1.0 })
    }

    fn unary(self, op: Unary) -> Interval {
        let f = |x: f64| op.evaluate(x);
        match op {
            Unary::Neg => Interval::new(-self.high, -self.low),
            Unary::Exp
            | Unary::Expm1
            | Unary::Erf
            | Unary::Atan
            | Unary::Sinh
            | Unary::Tanh
            | Unary::Round => self.rising(f),
            Unary::Log1p => Interval::new(self.low.max(-1.0), self.high).rising(f),
            Unary::Sqrt | Unary::Log | Unary::Log10 => {
                Interval::new(self.low.max(0.0), self.high).rising(f)
            }
            Unary::Asin => Interval::new(self.low.max(-1.0), self.high.min(1.0)).rising(f),
            Unary::Acos => {
                let angle = Interval::new(self.low.max(-1.0), self.high.min(1.0));
                Interval::new(f(angle.high), f(angle.low))
            }
            Unary::Cosh | Unary::Abs => self.even(f),
            Unary::Cos => self.cosine(),
            Unary::Sin => Interval::new(self.low - PI / 2.0, self.high - PI / 2.0).cosine(),
            Unary::Tan => {
                let no_pole = (self.low / PI + 0.5).floor() == (self.high / PI + 0.5).floor();
                if no_pole { self.rising(f) } else { Interval::ALL }
            }
            // They have poles.
            Unary::Gamma | Unary::LogGamma => Interval::ALL,
            Unary::Not => Interval::truth(!self.contains(0.0), self == Interval::point(0.0)),
        }
    }

    fn binary(self, op: Binary, other: Interval, same: bool) -> Interval {
        let product = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
        match op {
            Binary::Add => Interval::new(self.low + other.low, self.high + other.high),
            Binary::Sub => Interval::new(self.low - other.high, self.high - other.low),
            Binary::Mul if same => self.even(|x| x * x),
            Binary::Mul => self.corners(other, product),
            Binary::Div if other.contains(0.0) => Interval::ALL,
            Binary::Div => self.corners(other, |a, b| product(a, 1.0 / b)),
            Binary::Pow if other.width() == 0.0 && other.low.fract() == 0.0 => {
                let f = |x: f64| x.powf(other.low);
                match (other.low >= 0.0, other.low % 2.0 == 0.0) {
                    (true, true) => self.even(f),
                    (true, false) => self.rising(f),
                    (false, _) if self.contains(0.0) => Interval::ALL,
                    (false, _) => self.corners(other, f64::powf),
                }
            }
            Binary::Pow => Interval::new(self.low.max(0.0), self.high).corners(other, f64::powf),
            Binary::Atan2 if other.low > 0.0 => self.corners(other, f64::atan2),
            Binary::Atan2 => Interval::new(-PI, PI),
            Binary::BesselJ => Interval::new(-1.0, 1.0),
            Binary::GammaP => Interval::new(0.0, 1.0),
            Binary::EllipticK | Binary::EllipticE | Binary::Polygamma => Interval::ALL,
            Binary::Min => Interval::new(self.low.min(other.low), self.high.min(other.high)),
            Binary::Max => Interval::new(self.low.max(other.low), self.high.max(other.high)),
            Binary::Less => Interval::truth(self.low >= other.high, self.high < other.low),
            Binary::LessEqual => Interval::truth(self.low > other.high, self.high <= other.low),
            Binary::Equal => {
                let apart = self.high < other.low || other.high < self.low;
                Interval::truth(apart, self.width() == 0.0 && self == other)
            }
            Binary::And => {
                let zero = Interval::point(0.0);
                let [may_fail, may_hold] =
                    [self.contains(0.0) || other.contains(0.0), self != zero && other != zero];
                Interval::truth(!may_hold, !may_fail)
            }
            Binary::Or => {
                let zero = Interval::point(0.0);
                let holds = !self.contains(0.0) || !other.contains(0.0);
                Interval::truth(self == zero && other == zero, holds)
            }
        }
    }
}

/// A formula of the time alone, ready to be bounded.
pub(super) struct TimeFormula {
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Time,
    Value(Interval),
    Unary(Unary, usize),
    Binary(Binary, usize, usize),
    Select(usize, usize, usize),
}

impl TimeFormula {
    /// Formula of `node`, where `value` gives all inputs but the time.
    pub fn new(graph: &Graph, node: Node, value: impl Fn(Input) -> f64) -> TimeFormula {
        let plan = graph.reachable(&[node]);
        let place =
            |node: Node| plan.binary_search(&node).expect("the plan has what nodes depend on");
        let step = |&node: &Node| match graph.expression(node) {
            Expression::Constant(bits) => Step::Value(Interval::point(f64::from_bits(bits))),
            Expression::Input(Input::Time) => Step::Time,
            Expression::Input(input) => Step::Value(Interval::point(value(input))),
            Expression::Unary(op, a) => Step::Unary(op, place(a)),
            Expression::Binary(op, a, b) => Step::Binary(op, place(a), place(b)),
            Expression::Select(c, a, b) => Step::Select(place(c), place(a), place(b)),
            // Formulas of a model have no other nodes.
            _ => Step::Value(Interval::ALL),
        };
        TimeFormula { steps: plan.iter().map(step).collect() }
    }

    /// Bounds of the values at times from `from` to `until`; `work` is scratch.
    pub fn bounds(&self, from: f64, until: f64, work: &mut Vec<Interval>) -> Interval {
        work.clear();
        for step in &self.steps {
            work.push(match *step {
                Step::Time => Interval::new(from, until),
                Step::Value(value) => value,
                Step::Unary(op, a) => work[a].unary(op),
                Step::Binary(op, a, b) => work[a].binary(op, work[b], a == b),
                Step::Select(c, a, _) if !work[c].contains(0.0) => work[a],
                Step::Select(c, _, b) if work[c] == Interval::point(0.0) => work[b],
                Step::Select(_, a, b) => work[a].hull(work[b]),
            });
        }
        work.last().copied().unwrap_or(Interval::ALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random intervals and points within them: every value of an operation lies within its bounds.
    #[test]
    fn bounds_hold_all_values() {
        let mut random = 0.5f64;
        let mut next = || {
            random = (random * 9301.0 + 0.49297).fract();
            6.0 * random - 3.0
        };
        for _ in 0..2000 {
            let mut interval = || {
                let (a, b) = (next(), next());
                (Interval::new(a.min(b), a.max(b)), a + (b - a) * (next() / 6.0 + 0.5))
            };
            let ((a, x), (b, y)) = (interval(), interval());
            // Bounds are not rounded outwards.
            let within = |bounds: Interval, value: f64| {
                value.is_nan() || (bounds.low - 1e-12..=bounds.high + 1e-12).contains(&value)
            };
            for &op in Unary::ALL {
                assert!(
                    within(a.unary(op), op.evaluate(x)),
                    "{op:?} of {a:?} at {x}: {:?}",
                    a.unary(op)
                );
            }
            for &op in Binary::ALL {
                let bounds = a.binary(op, b, false);
                assert!(
                    within(bounds, op.evaluate(x, y)),
                    "{op:?} of {a:?} and {b:?} at {x}, {y}: {bounds:?}"
                );
            }
        }
    }
}
