//! Reference solution against which errors are measured, and its accuracy.
//!
//! The reference is computed twice, by two methods that share only the field; the claimed accuracy
//! is the largest distance between them so far. The second method is the less accurate one, so the
//! claim is cautious. Both hold the known invariants, so that errors grow with T instead of T². If
//! one of the invariants varies along the flow, both run without: they would hold what is not
//! constant.
//!
//! If trajectories separate exponentially, no tolerance helps for long: the two computations part,
//! and errors are measured up to there.

use super::trial::{Monitor, Samples, Trial};
use crate::error::Error;
use crate::options::{RunOptions, StepSize};
use crate::problem::Problem;
use crate::simulation::prepare;
use holonome_integrate::method::{Method, MethodTreatment, Scheme};
use holonome_integrate::plan::Stepping;
use holonome_words::option;
use serde::{Deserialize, Serialize};

/// A solution at the samples' times, computed twice.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Reference {
    /// First method.
    pub method: String,
    /// Its relative tolerance; the absolute one is 0.
    pub rtol: f64,
    /// Method of the second computation.
    pub checked_by: String,
    /// Its relative tolerance.
    pub checked_at: f64,
    /// Largest distance between the two up to `good_until`.
    pub error: Option<f64>,
    /// Time of the last sample up to which the two agree to [`USEFUL`] of the state's norm; `None`
    /// if they never do.
    pub good_until: Option<f64>,
    /// Reason why it is not good until the end.
    pub reason: Option<String>,
    #[serde(skip)]
    end: f64,
    #[serde(skip)]
    times: Vec<f64>,
    #[serde(skip)]
    states: Vec<Vec<f64>>,
}

/// Relative error below which a reference is useful.
pub const USEFUL: f64 = 1e-6;

/// Tolerances of the two computations. The first pair leaves little but rounding, which more steps
/// would only increase; the second is for fields whose error estimates do not become that small.
const TOLERANCES: [(f64, f64); 2] = [(1e-15, 1e-14), (1e-12, 1e-11)];

/// Reason if the computations part although neither failed.
const PARTED: &str = "the two computations part, as where trajectories separate exponentially";
const SINGULAR: &str = "the constraints are singular, and both methods solve for multipliers";
fn parted_at_once() -> String {
    let reference = option("reference");
    format!("the start is not where {reference} aims, and each computation takes its own way there")
}

impl Reference {
    /// Number of work items that [`Reference::make`] reports.
    pub(super) const COMPUTATIONS: usize = 2;

    /// Compute the reference at `times`, ascending from the start to the end.
    pub(super) fn make(
        problem: &Problem,
        common: &RunOptions,
        times: Vec<f64>,
        monitor: &Monitor<'_>,
    ) -> Result<Reference, Error> {
        let mut best: Option<Reference> = None;
        for tolerances in TOLERANCES {
            let reference = Reference::attempt(problem, common, &times, tolerances, monitor)?;
            let complete = reference.times.len() == times.len();
            let further = best.as_ref().is_none_or(|best| reference.times.len() > best.times.len());
            if further {
                best = Some(reference);
            }
            if complete || monitor.stopped() {
                break;
            }
        }
        (0..Reference::COMPUTATIONS).for_each(|_| monitor.finish_one());
        Ok(best.expect("there are tolerances to try"))
    }

    fn attempt(
        problem: &Problem,
        common: &RunOptions,
        times: &[f64],
        (rtol, checked_at): (f64, f64),
        monitor: &Monitor<'_>,
    ) -> Result<Reference, Error> {
        let singular = !problem.examined.singular.is_empty();
        let corrects = singular || invariants_hold(problem);
        let treatment = if corrects { MethodTreatment::Corrected } else { MethodTreatment::Plain };
        let [method, checked_by] = ["dop853", "tsit5"].map(|name| {
            let scheme = Scheme::named(name).expect("a registered scheme");
            Method { treatment, ..Method::plain(scheme) }
        });
        let mut reference = Reference {
            method: method.to_string(),
            rtol,
            checked_by: checked_by.to_string(),
            checked_at,
            end: common.until,
            ..Reference::default()
        };
        if singular {
            reference.reason = Some(SINGULAR.to_string());
            return Ok(reference);
        }
        let run =
            |(method, rtol): (Method, f64)| solve(problem, common, method, rtol, times, monitor);
        let (first, second) = rayon::join(|| run((method, rtol)), || run((checked_by, checked_at)));
        let ((first, failed), (second, also)) = (first?, second?);
        let common_count = first.t.len().min(second.t.len());
        reference.reason = failed
            .map(|why| format!("{method}: {why}"))
            .or(also.map(|why| format!("{checked_by}: {why}")));
        reference.times = first.t[..common_count].to_vec();
        reference.states = first.x;
        let (mut error, mut size): (f64, f64) = (0.0, 0.0);
        for (k, other) in second.x[..common_count].iter().enumerate() {
            let state = &reference.states[k];
            size = size.max(distance(state, &vec![0.0; state.len()]));
            error = error.max(distance(state, other));
            if error > USEFUL * size {
                let aims = common.reference.is_some();
                reference.reason.get_or_insert_with(|| {
                    if aims { parted_at_once() } else { PARTED.to_string() }
                });
                break;
            }
            (reference.good_until, reference.error) = (Some(reference.times[k]), Some(error));
        }
        // Before any motion, agreement means nothing.
        reference.good_until = reference.good_until.filter(|&t| t > 0.0);
        reference.error = reference.error.filter(|_| reference.good_until.is_some());
        Ok(reference)
    }

    /// Distance of `x` from the reference at `t`, which is one of its times; `None` if the
    /// reference is no longer good there.
    pub(super) fn distance(&self, t: f64, x: &[f64]) -> Option<f64> {
        Some(distance(self.at(t)?, x))
    }

    /// State at `t`; `None` if that is not one of the samples' times or the reference is not good
    /// there.
    pub fn at(&self, t: f64) -> Option<&[f64]> {
        // k·h may lie a rounding beyond the end.
        let t = t.min(self.end);
        if t > self.good_until? {
            return None;
        }
        let k = self.times.binary_search_by(|time| time.total_cmp(&t)).ok()?;
        Some(&self.states[k])
    }
}

/// True if the model has invariants, none of which is known to vary.
fn invariants_hold(problem: &Problem) -> bool {
    let examined = &problem.examined;
    let unrolled = examined.field.as_ref().is_some_and(|(field, _)| !field.groups.is_empty());
    let templated = examined.rows.as_ref().is_some_and(|rows| !rows.groups.is_empty());
    (unrolled || templated) && examined.varying.is_empty()
}

/// States at `times` as far as the run got, and why it got no further.
fn solve(
    problem: &Problem,
    common: &RunOptions,
    method: Method,
    rtol: f64,
    times: &[f64],
    monitor: &Monitor<'_>,
) -> Result<(Samples, Option<String>), Error> {
    let options = RunOptions {
        method,
        step: StepSize::adaptive(rtol),
        max_step: common.max_step,
        until: common.until,
        reference: common.reference.clone(),
        ..RunOptions::default()
    };
    let simulation = prepare(problem.clone(), options)?;
    let mut plan = simulation.plan.clone();
    if let Stepping::Adaptive(adaptive) = &mut plan.stepping {
        adaptive.samples = times.to_vec();
    }
    let trial = Trial::record(&simulation, &plan, monitor);
    Ok((trial.samples, trial.failed.map(|failed| failed.message)))
}

pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}
