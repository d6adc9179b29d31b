//! Interpolant of a run between its samples: per step a polynomial through states at some points of
//! the step, led back to the constraints that samples meet.

use crate::arrays::Arrays;
use crate::error::Error;
use crate::kernels::CompiledSystem;
use crate::pieces::{Pieces, Within};
use crate::recording::{RecordedArray, interpolated};
use crate::store::Layout;
use crate::unheld::Unheld;
use holonome_integrate::method::{Method, MethodTreatment};
use holonome_integrate::plan::{Metric, Plan};
use holonome_integrate::run::piece_order;
use holonome_integrate::scales::Scales;
use holonome_integrate::state::{Cost, StepState};
use holonome_integrate::system::{Group, GroupKind, Place, System};
use holonome_integrate::treatment::Treatment;
use holonome_words::option;
use std::fmt;
use std::sync::Arc;

/// Part of the terms of a constraint that is rounding, or the tolerance of equations of a step.
const MET: f64 = 1e-9;

/// States of a run at any time. They meet the constraints that the samples meet by the method's
/// doing: by its treatment, or by the step itself as in RATTLE.
#[derive(Clone)]
pub struct Interpolant {
    pieces: Pieces,
    order: u32,
    system: Arc<CompiledSystem>,
    /// Treatment of states between steps, if there is one.
    treated: Option<Arc<Treated>>,
    /// The recorded variables: their layout, and the place of each in a state.
    layout: Layout,
    places: Vec<(usize, usize)>,
}

/// Treatment of states between the steps of a run.
struct Treated {
    /// Plan of a run with this treatment.
    plan: Plan,
    /// Groups of invariants that it does not hold, for which the system is changed.
    unheld: Option<Vec<bool>>,
    scales: Scales,
}

impl Treated {
    /// Treatment between the steps of a run of `plan` that has come to `end`; `None` if states stay
    /// as they are.
    fn new(plan: &Plan, system: &dyn System, end: &StepState) -> Option<Treated> {
        // A claim that failed on the way is no longer held.
        if !end.failed_claims.is_empty() {
            return None;
        }
        let projection = |unheld: Option<Vec<bool>>| {
            let method = Method { treatment: MethodTreatment::Projection, ..plan.method };
            let plan = Plan { method, gain: None, metric: Metric::Euclidean, ..plan.clone() };
            let scales = match &unheld {
                Some(unheld) => {
                    let system = Unheld::new(system, |group| unheld[group]);
                    StepState::new(&plan, &system, &end.x, None).scales
                }
                None => StepState::new(&plan, system, &end.x, None).scales,
            };
            Treated { plan, unheld, scales }
        };
        match plan.method.treatment {
            MethodTreatment::Corrected | MethodTreatment::Projection => {
                let (plan, scales) = (plan.clone(), end.scales.clone());
                let moves = Treatment::new(&plan, system).moves_the_state();
                moves.then_some(Treated { plan, unheld: None, scales })
            }
            MethodTreatment::SymmetricProjection => Some(projection(None)),
            MethodTreatment::Plain if !plan.method.scheme.follows_fields() => {
                // SHAKE, for one, does not meet hidden constraints.
                let unheld = |(number, group): (usize, &Group)| {
                    let imposed = matches!(group.kind, GroupKind::Constraint | GroupKind::Hidden);
                    !imposed || end.drift[number].max > MET * end.terms[number]
                };
                let unheld: Vec<bool> =
                    system.invariants().groups.iter().enumerate().map(unheld).collect();
                unheld.contains(&false).then(|| projection(Some(unheld)))
            }
            _ => None,
        }
    }
}

/// Scratch for states between steps.
struct Scratch<'a> {
    unheld: Option<Unheld<'a>>,
    treatment: Option<Treatment>,
    values: Vec<f64>,
    deviations: Vec<f64>,
    work: Vec<f64>,
}

impl fmt::Debug for Interpolant {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (from, to) = self.span();
        write!(f, "interpolant of order {} from {from} to {to}", self.order)
    }
}

impl Interpolant {
    /// Interpolant of a run with these steps and the final state `end`.
    pub(crate) fn new(
        pieces: Pieces,
        (plan, system, end): (&Plan, &Arc<CompiledSystem>, &StepState),
        layout: Layout,
        recorded: &[RecordedArray],
    ) -> Result<Interpolant, Error> {
        let name = option("interpolant");
        if let Some(reason) = pieces.broken() {
            return Err(Error::option(format!(
                "{name}: {reason}; run without it, or to an earlier end"
            )));
        }
        let (layout, places) = interpolated(recorded, layout);
        if places.is_empty() {
            let record = option("record");
            return Err(Error::option(format!(
                "{name}: no variable is recorded; add one to {record}"
            )));
        }
        Ok(Interpolant {
            pieces,
            order: piece_order(&plan.method),
            system: Arc::clone(system),
            treated: Treated::new(plan, &**system, end).map(Arc::new),
            layout,
            places,
        })
    }

    /// First and last time.
    pub fn span(&self) -> (f64, f64) {
        self.pieces.span()
    }

    /// Order at which the error between steps decreases with their length, unless the error of the
    /// steps themselves hides it.
    pub fn order(&self) -> u32 {
        self.order
    }

    /// Whole state at t; where an event sets the state, the one after it.
    ///
    /// # Errors
    /// If t lies outside the run, or the treatment does not reach the constraints.
    pub fn state(&self, t: f64) -> Result<Vec<f64>, Error> {
        self.state_with(t, &mut self.scratch())
    }

    fn scratch(&self) -> Scratch<'_> {
        let system: &dyn System = &*self.system;
        let invariants = system.invariants();
        let unheld = self.treated.as_ref().and_then(|treated| treated.unheld.as_ref());
        let unheld = unheld.map(|unheld| Unheld::new(system, |group| unheld[group]));
        let treated = unheld.as_ref().map_or(system, |unheld| unheld);
        let treatment = self.treated.as_ref().map(|of| Treatment::new(&of.plan, treated));
        Scratch {
            treatment,
            unheld,
            values: vec![0.0; invariants.count],
            deviations: vec![0.0; invariants.groups.len()],
            work: vec![0.0; system.work_len()],
        }
    }

    fn state_with(&self, t: f64, scratch: &mut Scratch) -> Result<Vec<f64>, Error> {
        let (from, to) = self.span();
        if !(from..=to).contains(&t) {
            return Err(Error::option(format!(
                "t = {t} lies outside of the run, which goes from {from} to {to}"
            )));
        }
        let mut x = vec![0.0; self.pieces.dimension()];
        let within = self.pieces.put(t, &mut x);
        let Scratch { unheld, treatment, values, deviations, work } = scratch;
        let treatment = self.treated.as_ref().zip(treatment.as_mut());
        let (Some(Within { h, target }), Some((treated, treatment))) = (within, treatment) else {
            return Ok(x);
        };
        let system = unheld.as_ref().map_or(&*self.system as &dyn System, |unheld| unheld);
        let (at, cost) = (((t, h), target, &treated.scales), &mut Cost::default());
        treatment
            .apply(system, Place::Within, at, &mut x, values, deviations, work, cost)
            .map_err(|_| {
                Error::option(format!(
                    "at t = {t} the constraints are not found; take shorter steps"
                ))
            })?;
        Ok(x)
    }

    /// Rate of change of the whole state at t: the model's field at [`Interpolant::state`].
    ///
    /// # Errors
    /// As [`Interpolant::state`]; if the field is not known.
    pub fn rate(&self, t: f64) -> Result<Vec<f64>, Error> {
        self.rate_with(t, &mut self.scratch())
    }

    fn rate_with(&self, t: f64, scratch: &mut Scratch) -> Result<Vec<f64>, Error> {
        let x = self.state_with(t, scratch)?;
        let mut dx = vec![0.0; x.len()];
        match self.system.motion(t, &x, &mut dx, &mut scratch.work) {
            true => Ok(dx),
            false => Err(Error::option(
                "this run does not know the rates of its variables: record more samples",
            )),
        }
    }

    /// The recorded variables at these times, one row each.
    ///
    /// # Errors
    /// As [`Interpolant::state`]; if memory does not hold them.
    pub fn at(&self, times: &[f64]) -> Result<Arrays, Error> {
        let mut scratch = self.scratch();
        self.rows(times, |t| self.state_with(t, &mut scratch))
    }

    /// Rates of change of the recorded variables at these times, one row each.
    ///
    /// # Errors
    /// As [`Interpolant::rate`]; if memory does not hold them.
    pub fn rates(&self, times: &[f64]) -> Result<Arrays, Error> {
        let mut scratch = self.scratch();
        self.rows(times, |t| self.rate_with(t, &mut scratch))
    }

    /// Parts of the recorded variables of a vector like the state at these times.
    fn rows(
        &self,
        times: &[f64],
        mut vector: impl FnMut(f64) -> Result<Vec<f64>, Error>,
    ) -> Result<Arrays, Error> {
        let layout = Layout { times: times.to_vec(), ..self.layout.clone() };
        let too_many = |_| {
            Error::option(format!("memory does not hold the variables at {} times", times.len()))
        };
        let mut arrays = Arrays::planned(&layout).map_err(too_many)?;
        for &t in times {
            let x = vector(t)?;
            let rows: Vec<&[f64]> =
                self.places.iter().map(|&(first, len)| &x[first..first + len]).collect();
            arrays.append(1, &rows);
        }
        Ok(arrays)
    }
}
