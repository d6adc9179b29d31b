//! The Gauss collocation methods of one, two and three stages, `gauss2`, `gauss4`
//! and `gauss6`, for any field: of s stages and order 2s, symmetric and
//! symplectic. They keep quadratic invariants. One stage is the implicit midpoint
//! rule, `implicit-midpoint`. The nodes c are
//!
//! 1/2,   1/2 ± √3/6,   1/2 and 1/2 ± √15/10.
//!
//! The unknowns are Z_i = Σ μ_ij k_j with k_j = h b_j X(x + Z_j) and μ_ij =
//! a_ij/b_j, solved by Newton's method to round-off, and x₁ = x + Σ k_j is a
//! compensated sum: together they keep the error of rounding a random walk of
//! increments, not of states. The method is symplectic for any b if μ_ij + μ_ji =
//! 1, which holds exactly in machine numbers (Antoñana, Makazaga, Murua 2017):
//! rounded a_ij would let the energy grow by some 1e-17 of itself in every step.
//! The iteration starts from the polynomial of the step before.

use super::collocation::Collocation;
use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{Equation, Equations, Function, Guess, Monitored, PhaseSpace, Value};
use std::sync::LazyLock;

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

static ONE_STAGE: LazyLock<Collocation> = LazyLock::new(|| Collocation::gauss(1));
static TWO_STAGES: LazyLock<Collocation> = LazyLock::new(|| Collocation::gauss(2));
static THREE_STAGES: LazyLock<Collocation> = LazyLock::new(|| Collocation::gauss(3));
static SIX_STAGES: LazyLock<Collocation> = LazyLock::new(|| Collocation::gauss(6));

/// Implicit midpoint rule.
fn step_2(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    collocation(space, (t, h), x, &ONE_STAGE)
}

/// Method of two stages.
fn step_4(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    collocation(space, (t, h), x, &TWO_STAGES)
}

/// Method of three stages.
fn step_6(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    collocation(space, (t, h), x, &THREE_STAGES)
}

/// Step of `method`. The iteration starts from the polynomial of the step before (HLW VIII.6.1): the
/// fields at its stages, extrapolated to the stages of this one. It starts from the straight line if
/// there was none.
fn collocation(
    space: &mut dyn PhaseSpace,
    (t, h): (Value, Value),
    x: &[Value],
    method: &Collocation,
) -> Vec<Value> {
    let c = &method.nodes[..];
    let times: Vec<Value> = c.iter().map(|&c| space.time(t, c, h)).collect();
    let expected =
        space.carried_guess(&x.repeat(c.len()), &mut |space| space.field(t, x).repeat(c.len()));
    let sweep_size = sweep_sizes(space, (t, h), x).repeat(c.len());
    let sizes = (&expected[..], &sweep_size[..]);
    let Stages { increment, fields } =
        stages(space, h, x, method, sizes, &mut |space, i, y| space.field(times[i], y));
    let next: Vec<Value> =
        c.iter().flat_map(|&ci| combination(space, &lagrange(c, 1.0 + ci), &fields)).collect();
    space.carry(&next);
    space.accumulate(x, &increment)
}

/// Field at a stage, which is given by its number.
pub type StageField<'a> = &'a mut dyn FnMut(&mut dyn PhaseSpace, usize, &[Value]) -> Vec<Value>;

/// Follow the flow of `field`, for the time h from x, in one step of six stages: order 12.
pub fn follow(space: &mut dyn PhaseSpace, h: Value, x: &[Value], field: StageField) -> Vec<Value> {
    let method = &SIX_STAGES;
    let expected = field(space, 0, x).repeat(method.stages);
    let (one, Stages { increment, .. }) =
        (space.constant(1.0), stages(space, h, x, method, (&expected, &[]), field));
    space.moved(x, one, &increment)
}

/// Results of the stages of a step.
struct Stages {
    /// Σ k_i.
    increment: Vec<Value>,
    /// X(x + Z_i).
    fields: Vec<Vec<Value>>,
}

/// Scales of the components of a general field for fixed-point iteration, which ends by them. Units
/// of components are unknown: each has the scale of its own terms. These cancel at rest, where
/// their rounding is all that is left of their sum. Empty if the equations have other scales.
pub(super) fn sweep_sizes(
    space: &mut dyn PhaseSpace,
    (t, h): (Value, Value),
    x: &[Value],
) -> Vec<Value> {
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
    method: &Collocation,
    (expected, sweep_size): (&[Value], &[Value]),
    field: StageField,
) -> Stages {
    let n = x.len();
    let (mu, c) = (&method.of_increments.stages, &method.nodes);
    let slopes: Vec<&[Value]> = expected.chunks(n).collect();
    let first = space.multiplied(h, slopes[0]);
    let guess: Vec<Value> = if slopes.iter().all(|slope| *slope == slopes[0]) {
        c.iter()
            .flat_map(|&c| {
                let line = space.constant(c);
                space.multiplied(line, &first)
            })
            .collect()
    } else {
        let k = increments(space, h, method, &slopes);
        mu.iter().flat_map(|mu| combination(space, mu, &k)).collect()
    };
    let rows: Vec<Equation> = (0..c.len()).flat_map(|_| (0..n).map(Equation::Stage)).collect();
    let size = space.sizes(x, &first).repeat(c.len());
    let (guess, monitored) = (Guess::At(&guess), Monitored::Never);
    let equations =
        Equations { rows: &rows, size: &size, sweep_size, guess, monitored, monotone: None };
    let (mut fields, mut k) = (Vec::new(), Vec::new());
    space.solve(&equations, &mut |space, z| {
        fields.clear();
        for (i, z) in z.chunks(n).enumerate() {
            let one = space.constant(1.0);
            let y = space.moved(x, one, z);
            fields.push(field(space, i, &y));
        }
        k = increments(space, h, method, &fields);
        mu.iter()
            .zip(z.chunks(n))
            .flat_map(|(mu, z)| {
                let sum = combination(space, mu, &k);
                space.difference(z, &sum)
            })
            .collect()
    });
    let (first, rest) = k.split_first().expect("a method has a stage");
    let increment = rest.iter().fold(first.clone(), |sum, k| space.plus(&sum, k));
    Stages { increment, fields }
}

/// Increments k_i = h b_i F_i, whose sum is x₁ − x.
fn increments<F: AsRef<[Value]>>(
    space: &mut dyn PhaseSpace,
    h: Value,
    method: &Collocation,
    fields: &[F],
) -> Vec<Vec<Value>> {
    let of_stage = |(&b, field): (&f64, &F)| {
        let share = space.scaled(b, h);
        space.multiplied(share, field.as_ref())
    };
    method.weights.iter().zip(fields).map(of_stage).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trees::{HIGHEST_ORDER, StageWeights};

    #[test]
    fn facts_are_those_of_the_coefficients() {
        let methods = [&ONE_STAGE, &TWO_STAGES, &THREE_STAGES];
        for (scheme, method) in [&GAUSS2, &GAUSS4, &GAUSS6].into_iter().zip(methods) {
            let (a, b) = (&method.of_field.stages, &method.weights);
            let miss =
                StageWeights::new(a, HIGHEST_ORDER).first_miss(b, b, &|tree| 1.0 / tree.gamma);
            let order = miss.expect("a finite order").order - 1;
            assert_eq!(scheme.facts(), SchemeFacts::of_coefficients(order, a, b));
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
}
