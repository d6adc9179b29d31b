//! The explicit Runge–Kutta step (HNW II.1 (1.8)), written once over an abstract vector space:
//!
//! k_i = X(t + c_i h, x + h Σ_{j<i} a_ij k_j),  x₁ = x + h Σ b_i k_i.
//!
//! The first stage k₁ = X(t, x) is always given: it may be known from the step before, and it
//! outlives a rejection.

use super::map::StepFrom;
use crate::space::Space;
use crate::tableau::{Dense, Tableau};

/// The stages of a step and the point at which the next one is evaluated.
pub struct ExplicitStages<'a, N> {
    /// k_i.
    pub k: &'a mut [Vec<N>],
    /// x + h Σ a_ij k_j.
    pub y: &'a mut [N],
    /// The error estimates Σ e_i k_i, without their factor h.
    pub errors: &'a mut [Vec<N>],
}

impl<'a, N> ExplicitStages<'a, N> {
    /// The stages of a scheme in [`vector_count`] vectors: k_i, then the estimates, then y.
    pub fn of(tableau: &Tableau, vectors: &'a mut [Vec<N>]) -> ExplicitStages<'a, N> {
        let (k, rest) = vectors.split_at_mut(tableau.stage_count());
        let (errors, rest) = rest.split_at_mut(tableau.error.len());
        ExplicitStages { k, y: &mut rest[0], errors }
    }
}

/// Number of vectors that a step needs.
pub fn vector_count(tableau: &Tableau) -> usize {
    tableau.stage_count() + tableau.error.len() + 1
}

/// Compute the stages in `range`; those before it are known.
fn fill_stages<S: Space>(
    tableau: &Tableau,
    space: &mut S,
    from: StepFrom<S::Scalar>,
    stages: &mut ExplicitStages<S::Scalar>,
    range: std::ops::Range<usize>,
) {
    let StepFrom { t, h, x } = from;
    for i in range {
        let (known, rest) = stages.k.split_at_mut(i);
        space.stage_point(stages.y, x, h, &tableau.a[i], known);
        let t_i = space.time(t, tableau.c[i], h);
        space.field(&mut rest[0], t_i, stages.y);
    }
}

/// One step without an error estimate, and without the stages that only an estimate needs.
/// `stages.k[0]` is X(t, x).
pub fn fixed_step<S: Space>(
    tableau: &Tableau,
    space: &mut S,
    from: StepFrom<S::Scalar>,
    stages: &mut ExplicitStages<S::Scalar>,
    x1: &mut [S::Scalar],
) {
    fill_stages(tableau, space, from, stages, 1..tableau.stages_of_step);
    space.displaced(x1, from.x, from.h, &tableau.b, stages.k);
}

/// One step with its error estimates (the factor h is left to the norm). `stages.k[0]` is X(t, x);
/// the last stage of an FSAL scheme is evaluated at x₁ itself.
pub fn attempt<S: Space>(
    tableau: &Tableau,
    space: &mut S,
    from: StepFrom<S::Scalar>,
    stages: &mut ExplicitStages<S::Scalar>,
    x1: &mut [S::Scalar],
) {
    fixed_step(tableau, space, from, stages, x1);
    if tableau.first_same_as_last {
        let last = tableau.stages - 1;
        let t1 = space.time(from.t, tableau.c[last], from.h);
        space.field(&mut stages.k[last], t1, x1);
    } else {
        fill_stages(tableau, space, from, stages, tableau.stages_of_step..tableau.stages);
    }
    estimates(tableau, space, stages);
}

/// The error estimates of a step whose stages are known.
pub fn estimates<S: Space>(
    tableau: &Tableau,
    space: &mut S,
    stages: &mut ExplicitStages<S::Scalar>,
) {
    for (out, error) in stages.errors.iter_mut().zip(&tableau.error) {
        space.weighted_sum(out, &error.weights, stages.k);
    }
}

/// The stages that only dense output needs, after an attempt; the stage at the end of the step is
/// given by the caller, who may know it as the first stage of the next step.
pub fn dense_stages<S: Space>(
    tableau: &Tableau,
    dense: &Dense,
    space: &mut S,
    from: StepFrom<S::Scalar>,
    stages: &mut ExplicitStages<S::Scalar>,
) {
    fill_stages(tableau, space, from, stages, tableau.stages.max(dense.endpoint + 1)..dense.stages);
}
