//! The Gauss collocation methods of one, two and three stages, `gauss2`, `gauss4`
//! and `gauss6`, for any field: of s stages and order 2s, symmetric and symplectic.
//! They keep quadratic invariants. One stage is the implicit midpoint rule,
//! `implicit-midpoint`. The nodes c are
//!
//! 1/2,   1/2 ± √3/6,   1/2 and 1/2 ± √15/10.
//!
//! The unknowns are the increments Z_i = h Σ a_ij X(x + Z_j), solved by Newton's
//! method to round-off, and x₁ = x + h Σ b_i X(x + Z_i) is a compensated sum:
//! together they keep the error of rounding a random walk of increments, not of
//! states. The iteration starts from the polynomial of the step before.

use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{Equation, Equations, Function, Guess, Monitored, PhaseSpace, Value};

pub(super) static MIDPOINT: Scheme = Scheme {
    name: "implicit-midpoint",
    other_names: &[],
    needs: Needs::Canonical,
    description: "implicit midpoint rule: keeps quadratic invariants, for any Hamiltonian",
    citation: "Hairer, Lubich, Wanner, GNI, II.1 (1.7), VI.4",
    file: include_str!("gauss.rs"),
    step: Step::Map(step_2, facts(1)),
};

pub(super) static GAUSS2: Scheme = Scheme {
    name: "gauss2",
    other_names: &[],
    needs: Needs::Canonical,
    description: "the Gauss method of one stage, which is the implicit midpoint rule",
    citation: "Hairer, Lubich, Wanner, GNI, II.1.3, VI.4",
    file: include_str!("gauss.rs"),
    step: Step::Map(step_2, facts(1)),
};

pub(super) static GAUSS4: Scheme = Scheme {
    name: "gauss4",
    other_names: &[],
    needs: Needs::Canonical,
    description: "the Gauss method of two stages: keeps quadratic invariants",
    citation: "Hairer, Lubich, Wanner, GNI, II.1.3, VI.4",
    file: include_str!("gauss.rs"),
    step: Step::Map(step_4, facts(2)),
};

pub(super) static GAUSS6: Scheme = Scheme {
    name: "gauss6",
    other_names: &[],
    needs: Needs::Canonical,
    description: "the Gauss method of three stages: keeps quadratic invariants",
    citation: "Hairer, Lubich, Wanner, GNI, II.1.3, VI.4",
    file: include_str!("gauss.rs"),
    step: Step::Map(step_6, facts(3)),
};

/// Facts of the Gauss method of so many stages.
const fn facts(stages: u32) -> SchemeFacts {
    SchemeFacts { order: 2 * stages, symmetric: true, symplectic: true, explicit: false }
}

/// Implicit midpoint rule.
fn step_2(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    collocation(space, t, h, x, &[0.5])
}

/// Method of two stages.
fn step_4(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let d = 3f64.sqrt() / 6.0;
    collocation(space, t, h, x, &[0.5 - d, 0.5 + d])
}

/// Method of three stages.
fn step_6(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let d = 15f64.sqrt() / 10.0;
    collocation(space, t, h, x, &[0.5 - d, 0.5, 0.5 + d])
}

/// Step with the nodes `c`. The iteration starts from the polynomial of the step before (HLW
/// VIII.6.1): the fields at its stages, extrapolated to the stages of this one. It starts from the
/// straight line if there was none.
fn collocation(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
    c: &[f64],
) -> Vec<Value> {
    let times: Vec<Value> = c.iter().map(|&c| space.time(t, c, h)).collect();
    let expected =
        space.carried_guess(&x.repeat(c.len()), &mut |space| space.field(t, x).repeat(c.len()));
    let sweep_size = sweep_sizes(space, (t, h), x).repeat(c.len());
    let sizes = (&expected[..], &sweep_size[..]);
    let Stages { increment, fields } =
        stages(space, h, x, c, sizes, &mut |space, i, y| space.field(times[i], y));
    let next: Vec<Value> =
        c.iter().flat_map(|&ci| combination(space, &lagrange(c, 1.0 + ci), &fields)).collect();
    space.carry(&next);
    space.accumulate(x, &increment)
}

/// Nodes of six stages: order 12.
pub const NODES_6: [f64; 6] = [
    0.033_765_242_898_423_99,
    0.169_395_306_766_867_74,
    0.380_690_406_958_401_56,
    0.619_309_593_041_598_4,
    0.830_604_693_233_132_3,
    0.966_234_757_101_576,
];

/// Field at a stage, which is given by its number.
pub type StageField<'a> = &'a mut dyn FnMut(&mut dyn PhaseSpace, usize, &[Value]) -> Vec<Value>;

/// Follow the flow of `field`, for the time h from x, in one step with the nodes `c`.
pub fn follow(
    space: &mut dyn PhaseSpace,
    h: Value,
    x: &[Value],
    c: &[f64],
    field: StageField,
) -> Vec<Value> {
    let expected = field(space, 0, x).repeat(c.len());
    let (one, Stages { increment, .. }) =
        (space.constant(1.0), stages(space, h, x, c, (&expected, &[]), field));
    space.moved(x, one, &increment)
}

/// Results of the stages of a step.
struct Stages {
    /// h Σ b_i X(x + Z_i).
    increment: Vec<Value>,
    /// X(x + Z_i).
    fields: Vec<Vec<Value>>,
}

/// Scales of the components of a general field for fixed-point iteration, which ends by them. Units
/// of components are unknown: each has the scale of its own terms. These cancel at rest, where
/// their rounding is all that is left of their sum. Empty if the equations have other scales.
fn sweep_sizes(space: &mut dyn PhaseSpace, (t, h): (Value, Value), x: &[Value]) -> Vec<Value> {
    let terms = space.term_sizes(t, x);
    let of_one = |(&term, &x): (&Value, &Value)| {
        let moved = space.product(h, term);
        let [own, moved] = [x, moved].map(|value| space.function(Function::Magnitude, value));
        space.sum(own, moved)
    };
    terms.iter().zip(x).map(of_one).collect()
}

/// Solve for the stages, with a guess from the fields that are expected at them, and scales for
/// fixed-point iteration.
fn stages(
    space: &mut dyn PhaseSpace,
    h: Value,
    x: &[Value],
    c: &[f64],
    (expected, sweep_size): (&[Value], &[Value]),
    field: StageField,
) -> Stages {
    let n = x.len();
    let (a, b) = coefficients(c);
    let expected: Vec<Vec<Value>> =
        expected.chunks(n).map(|slope| space.multiplied(h, slope)).collect();
    let straight = expected.iter().all(|slope| *slope == expected[0]);
    let mut guess = Vec::with_capacity(c.len() * n);
    for (a, &c) in a.iter().zip(c) {
        let line = space.constant(c);
        guess.extend(if straight {
            space.multiplied(line, &expected[0])
        } else {
            combination(space, a, &expected)
        });
    }
    let rows: Vec<Equation> = (0..c.len()).flat_map(|_| (0..n).map(Equation::Stage)).collect();
    let size = space.sizes(x, &expected[0]).repeat(c.len());
    let (guess, monitored) = (Guess::At(&guess), Monitored::Never);
    let equations = Equations { rows: &rows, size: &size, sweep_size, guess, monitored };
    let (mut fields, mut k) = (Vec::new(), Vec::new());
    space.solve(&equations, &mut |space, z| {
        fields.clear();
        for (i, z) in z.chunks(n).enumerate() {
            let one = space.constant(1.0);
            let y = space.moved(x, one, z);
            fields.push(field(space, i, &y));
        }
        k = fields.iter().map(|field| space.multiplied(h, field)).collect();
        a.iter()
            .zip(z.chunks(n))
            .flat_map(|(a, z)| {
                let sum = combination(space, a, &k);
                space.difference(z, &sum)
            })
            .collect()
    });
    Stages { increment: combination(space, &b, &k), fields }
}

/// Σ w_i k_i
fn combination(space: &mut dyn PhaseSpace, w: &[f64], k: &[Vec<Value>]) -> Vec<Value> {
    let zero = space.constant(0.0);
    let mut sum = vec![zero; k[0].len()];
    for (&w, k) in w.iter().zip(k) {
        let w = space.constant(w);
        sum = space.moved(&sum, w, k);
    }
    sum
}

/// The values at `at` of the Lagrange polynomials of the nodes `c`.
fn lagrange(c: &[f64], at: f64) -> Vec<f64> {
    let factor = |j: usize, k: usize| (at - c[k]) / (c[j] - c[k]);
    (0..c.len()).map(|j| (0..c.len()).filter(|&k| k != j).map(|k| factor(j, k)).product()).collect()
}

/// a_ij = ∫₀^{c_i} ℓ_j and b_j = ∫₀¹ ℓ_j with the Lagrange polynomials ℓ_j of the nodes.
pub(crate) fn coefficients(c: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
    let integral = |j: usize, end: f64| {
        // ℓ_j as coefficients of 1, τ, τ², …
        let mut l = vec![1.0];
        for (_, &ck) in c.iter().enumerate().filter(|&(k, _)| k != j) {
            let mut next = vec![0.0; l.len() + 1];
            for (i, &l) in l.iter().enumerate() {
                next[i + 1] += l / (c[j] - ck);
                next[i] -= l * ck / (c[j] - ck);
            }
            l = next;
        }
        l.iter().enumerate().rev().fold(0.0, |sum, (i, &l)| (sum + l / (i + 1) as f64) * end)
    };
    let row = |end: f64| (0..c.len()).map(|j| integral(j, end)).collect();
    (c.iter().map(|&ci| row(ci)).collect(), row(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trees::{HIGHEST_ORDER, StageWeights};

    #[test]
    fn facts_are_those_of_the_coefficients() {
        let d = (3f64.sqrt() / 6.0, 15f64.sqrt() / 10.0);
        let nodes: [&[f64]; 3] = [&[0.5], &[0.5 - d.0, 0.5 + d.0], &[0.5 - d.1, 0.5, 0.5 + d.1]];
        for (scheme, c) in [&GAUSS2, &GAUSS4, &GAUSS6].into_iter().zip(nodes) {
            let (a, b) = coefficients(c);
            let miss =
                StageWeights::new(&a, HIGHEST_ORDER).first_miss(&b, &b, &|tree| 1.0 / tree.gamma);
            let order = miss.expect("a finite order").order - 1;
            assert_eq!(scheme.facts(), SchemeFacts::of_coefficients(order, &a, &b));
        }
    }

    #[test]
    fn polynomials_are_continued() {
        // 1 − 3τ + 2τ² through three nodes, beyond them.
        let p = |t: f64| 1.0 - 3.0 * t + 2.0 * t * t;
        let c = [0.1, 0.5, 0.9];
        for at in [0.5, 1.1, 1.9] {
            let sum: f64 = lagrange(&c, at).iter().zip(c).map(|(l, c)| l * p(c)).sum();
            // Weights up to 10, a few roundings.
            assert!((sum - p(at)).abs() < 40.0 * f64::EPSILON, "{at}: {sum}");
        }
    }

    #[test]
    fn coefficients_are_those_of_the_tables() {
        // HLW II.1 table 1.1; a few roundings.
        let d = 3f64.sqrt() / 6.0;
        let (a, b) = coefficients(&[0.5 - d, 0.5 + d]);
        for (found, expected) in
            a.concat().into_iter().chain(b).zip([0.25, 0.25 - d, 0.25 + d, 0.25, 0.5, 0.5])
        {
            assert!((found - expected).abs() < 4.0 * f64::EPSILON, "{found} {expected}");
        }
        let r = 15f64.sqrt();
        let (a, b) = coefficients(&[0.5 - r / 10.0, 0.5, 0.5 + r / 10.0]);
        let table = [
            [5.0 / 36.0, 2.0 / 9.0 - r / 15.0, 5.0 / 36.0 - r / 30.0],
            [5.0 / 36.0 + r / 24.0, 2.0 / 9.0, 5.0 / 36.0 - r / 24.0],
            [5.0 / 36.0 + r / 30.0, 2.0 / 9.0 + r / 15.0, 5.0 / 36.0],
            [5.0 / 18.0, 4.0 / 9.0, 5.0 / 18.0],
        ];
        for (found, expected) in a.concat().into_iter().chain(b).zip(table.concat()) {
            assert!((found - expected).abs() < 8.0 * f64::EPSILON, "{found} {expected}");
        }
    }
}
