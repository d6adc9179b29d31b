//! Interpolant of a run between its samples: per step the polynomial of the scheme's dense output,
//! or the cubic that has the field at both ends, given by states at some points of the step.

use crate::arrays::Arrays;
use crate::error::Error;
use crate::kernels::CompiledSystem;
use crate::pieces::Pieces;
use crate::recording::{RecordedArray, interpolated};
use crate::store::Layout;
use holonome_integrate::plan::Plan;
use holonome_integrate::run::piece_order;
use holonome_integrate::state::{Cost, StepState};
use holonome_integrate::system::{Place, System};
use holonome_integrate::treatment::Treatment;
use holonome_words::option;
use std::fmt;
use std::sync::Arc;

/// States of a run at any time. If the method corrects or projects, they meet the constraints like
/// the samples.
#[derive(Clone)]
pub struct Interpolant {
    pieces: Pieces,
    order: u32,
    /// System, plan and final state with which a state is treated.
    system: Arc<CompiledSystem>,
    plan: Plan,
    end: Arc<StepState>,
    /// The recorded variables: their layout, and the place of each in a state.
    layout: Layout,
    places: Vec<(usize, usize)>,
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
        let (plan, system, end) = (plan.clone(), Arc::clone(system), Arc::new(end.clone()));
        Ok(Interpolant {
            pieces,
            order: piece_order(&plan.method),
            system,
            plan,
            end,
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

    /// Whole state at t.
    ///
    /// # Errors
    /// If t lies outside the run, or the treatment does not reach the constraints.
    pub fn state(&self, t: f64) -> Result<Vec<f64>, Error> {
        let (from, to) = self.span();
        if !(from..=to).contains(&t) {
            return Err(Error::option(format!(
                "t = {t} lies outside of the run, which goes from {from} to {to}"
            )));
        }
        let mut x = vec![0.0; self.pieces.dimension()];
        let h = self.pieces.put(t, &mut x);
        let (system, end) = (&*self.system, &*self.end);
        let mut treatment = Treatment::new(&self.plan, system);
        // A claim that failed on the way is no longer held.
        if treatment.moves_the_state() && end.failed_claims.is_empty() && h > 0.0 {
            let invariants = system.invariants();
            let (mut values, mut deviations) =
                (vec![0.0; invariants.count], vec![0.0; invariants.groups.len()]);
            let mut work = vec![0.0; system.work_len()];
            let at = ((t, h), &end.target[..], &end.scales);
            treatment
                .apply(
                    system,
                    Place::Within,
                    at,
                    &mut x,
                    &mut values,
                    &mut deviations,
                    &mut work,
                    &mut Cost::default(),
                )
                .map_err(|_| {
                    Error::option(format!(
                        "at t = {t} the constraints are not found; take shorter steps"
                    ))
                })?;
        }
        Ok(x)
    }

    /// Rate of change of the whole state at t: the model's field at [`Interpolant::state`].
    ///
    /// # Errors
    /// As [`Interpolant::state`]; if the field is not known.
    pub fn rate(&self, t: f64) -> Result<Vec<f64>, Error> {
        let x = self.state(t)?;
        let (mut dx, mut work) = (vec![0.0; x.len()], vec![0.0; self.system.work_len()]);
        match self.system.motion(t, &x, &mut dx, &mut work) {
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
        self.rows(times, |t| self.state(t))
    }

    /// Rates of change of the recorded variables at these times, one row each.
    ///
    /// # Errors
    /// As [`Interpolant::rate`]; if memory does not hold them.
    pub fn rates(&self, times: &[f64]) -> Result<Arrays, Error> {
        self.rows(times, |t| self.rate(t))
    }

    /// Parts of the recorded variables of a vector like the state at these times.
    fn rows(
        &self,
        times: &[f64],
        vector: impl Fn(f64) -> Result<Vec<f64>, Error>,
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
