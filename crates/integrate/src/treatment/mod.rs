//! Discrete treatments: they wrap a one-step map and move its result, or its start and its result,
//! towards the invariants' level set.

pub mod correction;
pub mod derivative;
pub mod normal_equations;
pub mod projection;
pub mod stopping;
pub mod symmetric_projection;

use crate::cost::Cost;
use crate::method;
use crate::plan::{Metric, Plan};
use crate::scales::{Kept, Scales, Vectors};
use crate::system::{Mended, Place, System};
use correction::Correction;
use derivative::{BaseDerivative, NoDerivative, SecondDerivative, Tangents};
use holonome_arithmetic::square;
use projection::Projection;
use stopping::Unconverged;
use symmetric_projection::SymmetricProjection;

/// Square of the distance by which a projection moves a state, each vector relative to its size:
/// Σ_b |d_b|²/σ_b² with the squared sizes `sizes`. Vectors without a size do not count.
pub fn squared_distance(vectors: &Vectors, sizes: &[f64], d: &[f64]) -> f64 {
    let part =
        |(vector, size): (usize, &f64)| match square(&d[vectors.components_of(vector)]) / size {
            part if *size > 0.0 => part,
            _ => 0.0,
        };
    sizes.iter().enumerate().map(part).sum()
}

/// True if a projection of `plan`'s method moves a state in the metric of the step's error, not in
/// the Euclidean one.
pub fn projects_by_error(plan: &Plan) -> bool {
    plan.metric != Metric::Euclidean
}

/// Treatment of a step's result, with its scratch.
pub enum Treatment {
    /// No treatment.
    None,
    /// [`Correction`].
    Correction(Box<Correction>),
    /// [`Projection`].
    Projection(Box<Projection>),
    /// [`SymmetricProjection`], which is not a treatment of a result: it surrounds the step.
    SymmetricProjection(Box<SymmetricProjection>),
}

/// Scales that a run of `plan` keeps if results of its steps are moved, and if that takes weights.
pub fn kept(plan: &Plan, moves: bool, weights: bool) -> Kept {
    let equal_steps = plan.fixed_step().is_some();
    let lagged = plan.method.scheme.runge_kutta().is_some_and(|tableau| tableau.lagged.is_some());
    Kept { sizes: moves || !equal_steps, weights, lagged: weights && equal_steps && lagged }
}

impl Treatment {
    /// Discrete part of the treatment of `plan`'s method over `system`.
    pub fn new(plan: &Plan, system: &dyn System) -> Treatment {
        let tolerance = plan.projection_tolerance.unwrap_or(0.0);
        match Treatment::effective(plan, system) {
            method::MethodTreatment::Plain | method::MethodTreatment::Feedback => Treatment::None,
            method::MethodTreatment::Corrected => {
                let correction = Correction::new(system);
                Treatment::Correction(Box::new(correction))
            }
            method::MethodTreatment::Projection => {
                let by_error = Treatment::weighs(plan, system);
                let projection = Projection::new(system, tolerance, by_error);
                Treatment::Projection(Box::new(projection))
            }
            method::MethodTreatment::SymmetricProjection => {
                let projection =
                    SymmetricProjection::new(system, tolerance, projects_by_error(plan));
                Treatment::SymmetricProjection(Box::new(projection))
            }
        }
    }

    /// Treatment of `plan`'s method, plain if there is nothing to correct: the field at the end of
    /// a step then stays known.
    fn effective(plan: &Plan, system: &dyn System) -> method::MethodTreatment {
        match system.invariants().corrected_rows().contains(&true) {
            true => plan.method.treatment,
            false => method::MethodTreatment::Plain,
        }
    }

    /// True if the treatment of `plan` moves a state in the metric of the step's error.
    fn weighs(plan: &Plan, system: &dyn System) -> bool {
        match Treatment::effective(plan, system) {
            method::MethodTreatment::Corrected => true,
            method::MethodTreatment::Projection => projects_by_error(plan),
            method::MethodTreatment::Plain
            | method::MethodTreatment::Feedback
            | method::MethodTreatment::SymmetricProjection => false,
        }
    }

    /// Scales that a run of `plan` over `system` keeps.
    pub fn kept(plan: &Plan, system: &dyn System) -> Kept {
        let moves = Treatment::effective(plan, system).moves_the_state();
        kept(plan, moves, Treatment::weighs(plan, system))
    }

    /// True if a step's result differs from that of its base map.
    pub fn moves_the_state(&self) -> bool {
        !matches!(self, Treatment::None)
    }

    /// Treat the state `x` at time `t`, in or after a step of the length `h`. `scales` are those
    /// after that step. `values` receives F at the resulting state and `deviations` that of every
    /// group, for monitoring. Returns the square of the innovation of a correction, of a projection
    /// that of its [distance](squared_distance), 0 without a treatment.
    pub fn apply(
        &mut self,
        system: &dyn System,
        place: Place,
        ((t, h), target, scales): ((f64, f64), &[f64], &Scales),
        x: &mut [f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
    ) -> Result<f64, Unconverged> {
        if matches!(self, Treatment::Correction(_) | Treatment::Projection(_)) {
            match system.mend(place, (t, target, &scales.carried), x, values, deviations, work) {
                Some(Mended::Corrected { innovation }) => {
                    cost.count_corrections(1);
                    return Ok(innovation);
                }
                Some(Mended::Projected { iterations, moved }) => {
                    cost.count_projections(1, iterations);
                    return Ok(moved);
                }
                None => {}
            }
        }
        match self {
            Treatment::None => {
                system.monitor(t, target, x, values, deviations, work);
                Ok(0.0)
            }
            Treatment::SymmetricProjection(projection) => {
                system.monitor(t, target, x, values, deviations, work);
                Ok(projection.moved())
            }
            Treatment::Correction(correction) => {
                let weights = scales.weights(system.vectors().count());
                Ok(correction.apply(
                    system,
                    (t, target, weights),
                    place,
                    x,
                    values,
                    deviations,
                    work,
                    cost,
                ))
            }
            Treatment::Projection(projection) => projection.apply(
                system,
                ((t, h), target, scales),
                x,
                values,
                deviations,
                work,
                cost,
            ),
        }
    }

    /// Make the step from `x0` at t₀ to `x1` at t₁ by the `base` map and treat it, with its tangent
    /// vectors. `scales` are those after the step.
    ///
    /// # Errors
    /// If the step or its treatment has no result.
    pub fn differentiate(
        &mut self,
        system: &dyn System,
        times: (f64, f64, f64),
        (target, scales): (&[f64], &Scales),
        (x0, x1): (&[f64], &mut [f64]),
        tangents: Tangents,
        base: BaseDerivative,
        second: SecondDerivative,
        work: &mut [f64],
    ) -> Result<(), NoDerivative> {
        if let Treatment::SymmetricProjection(projection) = self {
            let of = (target, scales);
            return projection.differentiate(
                system,
                times,
                of,
                (x0, x1),
                tangents,
                base,
                second,
                work,
            );
        }
        base(x0, x1, tangents.vectors).map_err(NoDerivative::Base)?;
        let (_, t1, h) = times;
        match self {
            Treatment::Correction(correction) => {
                let weights = scales.weights(system.vectors().count());
                let of = (t1, target, weights);
                correction.differentiate(system, of, x1, tangents, second, work);
                Ok(())
            }
            Treatment::Projection(projection) => {
                let of = ((t1, h), target, scales);
                projection.differentiate(system, of, x1, tangents, second, work)
            }
            Treatment::None | Treatment::SymmetricProjection(_) => Ok(()),
        }
    }
}
