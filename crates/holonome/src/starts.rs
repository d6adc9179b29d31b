//! Starts of the trajectories of an ensemble.
//!
//! ```no_run
//! use holonome::{Problem, Settings, SweepOptions};
//!
//! let vary = vec![("p".to_string(), "(0.1*normal(), 0, -1)".to_string())];
//! let sweep = SweepOptions { trajectories: 1000, vary, ..SweepOptions::default() };
//! let path = "models/spherical-pendulum.holo".as_ref();
//! let (problem, starts) = Problem::load_varied(path, &Settings::default(), &sweep)?;
//! let (mut parameters, mut x) = (problem.model.parameter_values.clone(), problem.model.initial.clone());
//! let mut work = starts.work();
//! for i in 0..starts.trajectories() {
//!     starts.at(i, &mut parameters, &mut x, &mut work)?;
//! }
//! # Ok::<(), holonome::Error>(())
//! ```

use crate::backend::backend;
use crate::ensemble::{Ensemble, GivenNumbers, draw};
use crate::error::{Error, StartError};
use crate::options::{Settings, SweepOptions};
use crate::penalty::SlowManifold;
use crate::problem::{Checked, Problem, farthest_move};
use holonome_integrate::noise::Noise;
use holonome_model::consistency::{
    self, Constraints, HiddenConstraints, Miss, Projection, RowHiddenConstraints,
};
use holonome_model::derived::Derived;
use holonome_model::elaborate::model::Model;
use holonome_model::elaborate::start::CompiledStart;
use holonome_model::scales::Scales;
use holonome_model::syntax::diagnostic::Diagnostic;
use holonome_words::option;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Starts of the trajectories of an ensemble: parameter values and initial state of each, as
/// functions of its number. Immutable, shared between threads.
pub struct Starts {
    /// Model with the first trajectory's numbers, before they are projected.
    model: Model,
    start: CompiledStart,
    trajectories: u64,
    seed: u64,
    /// Values that are given as numbers; `None` if they come later.
    each: Vec<Option<GivenNumbers>>,
    /// Values that are given as numbers for all trajectories.
    fixed: Vec<Vec<f64>>,
    projection: Option<Projection>,
    /// `None` if a start may be off the constraint set.
    checks: Option<Checks>,
    /// Slow manifold onto which every start of a penalised ensemble is moved, if the starts differ.
    slow: Option<SlowManifold>,
    /// Place of the trajectory's number among the parameter values, for an ensemble in a heat bath.
    trajectory: Option<usize>,
    /// True if the momenta are those of the reversed model.
    reversed: bool,
}

/// Constraints that every start is checked for.
pub(crate) struct Checks {
    constraints: Constraints,
    hidden: Hidden,
}

/// Hidden constraints.
enum Hidden {
    None,
    Unrolled(HiddenConstraints),
    Templated(Box<RowHiddenConstraints>),
}

/// Problems of ensembles.
impl Problem {
    /// Read and check a model file for an ensemble. Returns the problem of trajectory 0, and the
    /// starts of all.
    ///
    /// # Errors
    /// All mistakes in the model and in the varied values, at once.
    pub fn load_varied(
        path: &Path,
        settings: &Settings,
        sweep: &SweepOptions,
    ) -> Result<(Problem, Starts), Error> {
        let ensemble = Ensemble::new(sweep)?;
        Problem::read(path, settings, &ensemble)?.with_starts(&ensemble)
    }

    /// The problem once more, with values of these names that are given later, by
    /// [`Starts::put`].
    pub(crate) fn settable(&self, names: &[&str]) -> Result<(Problem, Starts), Error> {
        let Problem { name, source, tables, settings, .. } = self;
        let ensemble = Ensemble::given_later(names);
        Problem::read_text(name, source.text(), tables, settings, &ensemble)?.with_starts(&ensemble)
    }

    /// [`Problem::load_varied`] for a model's text.
    ///
    /// # Errors
    /// All mistakes in the model and in the varied values, at once.
    pub fn from_text_varied(
        name: &str,
        text: &str,
        tables: &BTreeMap<String, String>,
        settings: &Settings,
        sweep: &SweepOptions,
    ) -> Result<(Problem, Starts), Error> {
        let ensemble = Ensemble::new(sweep)?;
        Problem::read_text(name, text, tables, settings, &ensemble)?.with_starts(&ensemble)
    }

    /// Test claims with the numbers of other trajectories too: an integral may be one only with
    /// those of the first.
    fn test_claims(&mut self, starts: &Starts) -> Result<(), Error> {
        let parameters = 0..self.model.parameter_values.len();
        if self.model.integrals.is_empty()
            || !parameters.clone().any(|k| starts.varies_parameter(k))
        {
            return Ok(());
        }
        let last = starts.trajectories() - 1;
        let mut tested = vec![last / 2, last];
        tested.dedup();
        for i in tested.into_iter().filter(|&i| i > 0) {
            let mut model = Model::clone(&self.model);
            // A trajectory that cannot start is reported when the ensemble reaches it.
            if starts
                .at(i, &mut model.parameter_values, &mut model.initial, &mut starts.work())
                .is_err()
            {
                continue;
            }
            let examined = consistency::examine_by(backend(), &Derived::new(model), self.span);
            for (name, finding) in examined.varying.into_iter().zip(examined.unverified) {
                if !self.examined.varying.contains(&name) {
                    let message = format!("in trajectory {i}, {}", finding.message);
                    let finding = Diagnostic { message, ..finding };
                    self.examined.varying.push(name);
                    self.examined.unverified.push(finding);
                }
            }
        }
        if self.settings.allow_unverified {
            self.examined.leave_out_unverified();
        }
        Ok(())
    }
}

impl Checked {
    fn with_starts(self, ensemble: &Ensemble) -> Result<(Problem, Starts), Error> {
        let Checked(mut problem, initial) = self;
        let starts = Starts::new(&problem, initial, ensemble)?;
        problem.test_claims(&starts)?;
        Ok((problem, starts))
    }
}

impl Starts {
    /// Starts of an ensemble from the problem of trajectory 0 and its initial state before
    /// projection.
    pub(crate) fn new(
        problem: &Problem,
        initial: Vec<f64>,
        ensemble: &Ensemble,
    ) -> Result<Starts, Error> {
        let mut model = Model::clone(&problem.model);
        let (mut projection, mut checks) = (None, None);
        // If all start alike, they start like trajectory 0, which has been projected and checked.
        if !model.start.is_same() {
            model.initial = initial;
            if problem.settings.project_initial {
                let found = Projection::new(backend(), &model).map_err(|e| {
                    Error::option(format!(
                        "{project_initial}: {e}",
                        project_initial = option("project_initial")
                    ))
                })?;
                projection = Some(found);
                model.start.state = vec![true; model.dimension()];
            }
            checks = (!problem.settings.start_off_set).then(|| Checks::new(problem, &model));
        }
        let start = CompiledStart::new(&model, backend(), 1).map_err(|diagnostic| {
            Error::Model { text: Box::new(problem.source.clone()), diagnostics: vec![diagnostic] }
        })?;
        let (trajectories, seed) = (ensemble.trajectories, problem.settings.seed);
        let each = ensemble.each.iter().map(|(_, numbers)| numbers.clone()).collect();
        Ok(Starts {
            model,
            start,
            trajectories,
            seed,
            each,
            fixed: problem.settings.given.iter().map(|(_, numbers)| numbers.clone()).collect(),
            projection,
            checks,
            slow: None,
            trajectory: None,
            reversed: false,
        })
    }

    /// Starts of a penalised model, moved onto its slow manifold if given, or to `first` if all
    /// start alike. Parameter values are then followed by ω.
    pub(crate) fn penalised(mut self, slow: Option<SlowManifold>, first: &[f64]) -> Starts {
        match self.model.start.is_same() {
            true => self.model.initial = first.to_vec(),
            false => self.slow = slow,
        }
        self
    }

    /// Starts of a model in a heat bath, whose parameter values hold the trajectory's number at
    /// this place.
    pub(crate) fn in_heat_bath(self, trajectory: usize) -> Starts {
        Starts { trajectory: Some(trajectory), ..self }
    }

    /// Starts of the reversed model.
    pub(crate) fn reversed(self) -> Starts {
        Starts { reversed: true, ..self }
    }

    /// Number of trajectories.
    pub fn trajectories(&self) -> u64 {
        self.trajectories
    }

    /// True if parameter value `k` may differ between trajectories.
    pub fn varies_parameter(&self, k: usize) -> bool {
        self.model.start.parameters.get(k) == Some(&true)
    }

    /// True if component `k` of the initial state may differ between trajectories.
    pub fn varies_state(&self, k: usize) -> bool {
        self.model.start.state.get(k) == Some(&true)
    }

    /// Scratch for [`Starts::at`].
    pub fn work(&self) -> Vec<f64> {
        let checks = self.checks.as_ref().map_or(0, |checks| checks.work_len(&self.model));
        vec![0.0; self.start.work_len().max(checks)]
    }

    /// Put the parameter values and the initial state of trajectory `i`, which is below
    /// [`Starts::trajectories`]. Allocates nothing, unless `--project-initial` moves the state.
    ///
    /// # Errors
    /// If a value is not finite, or the state is off the constraint set.
    ///
    /// # Panics
    /// If a slice has the wrong length: the number of the model's parameter values, the number of
    /// the state's components, and the length of [`Starts::work`].
    pub fn at(
        &self,
        i: u64,
        parameters: &mut [f64],
        x: &mut [f64],
        work: &mut [f64],
    ) -> Result<(), StartError> {
        self.begin(i, parameters, x, work).map(|_| ())
    }

    /// As [`Starts::at`]; true if `--project-initial` moved the state far.
    pub(crate) fn begin(
        &self,
        i: u64,
        parameters: &mut [f64],
        x: &mut [f64],
        work: &mut [f64],
    ) -> Result<bool, StartError> {
        self.put(i, |number| self.each_of(number, i), (parameters, x), work)
    }

    /// Numbers of trajectory `i` for a value that has some for each trajectory.
    fn each_of(&self, number: usize, i: u64) -> &[f64] {
        self.each[number].as_ref().map_or(&[], |numbers| numbers.of(i))
    }

    /// Numbers of trajectory `i` for a value that is given as numbers.
    fn given(&self, number: usize, i: u64) -> &[f64] {
        match self.fixed.get(number) {
            Some(numbers) => numbers,
            None => self.each_of(number - self.fixed.len(), i),
        }
    }

    /// How many numbers each value has that is given for every trajectory.
    pub(crate) fn widths(&self) -> &[usize] {
        self.model.start.given.get(self.fixed.len()..).unwrap_or_default()
    }

    /// Put the parameter values and the initial state of trajectory `i`, whose values that are
    /// given as numbers are those of `given`, by their places. True if `--project-initial` moved
    /// the state far.
    pub(crate) fn put<'g>(
        &self,
        i: u64,
        given: impl Fn(usize) -> &'g [f64],
        (parameters, x): (&mut [f64], &mut [f64]),
        work: &mut [f64],
    ) -> Result<bool, StartError> {
        let mut far = false;
        let given = |number: usize| match self.fixed.get(number) {
            Some(numbers) => numbers,
            None => given(number - self.fixed.len()),
        };
        let own = self.model.parameter_values.len();
        let put = |count, which, drawn: &mut [f64]| {
            draw(|_| Noise::new(self.seed, i as u32), (count, which), drawn);
        };
        let given = |number, _| given(number);
        self.start
            .put(&self.model, |_| i as f64, (put, given), &mut parameters[..own], x, work)
            .map_err(|reason| StartError::NoStart { trajectory: i, reason })?;
        if let Some(projection) = &self.projection {
            let moved = projection
                .project(&parameters[..own], x)
                .map_err(|reason| StartError::NotProjected { trajectory: i, reason })?;
            far = farthest_move(&self.model, x, &moved.initial).is_some();
            x.copy_from_slice(&moved.initial);
        }
        let miss = self
            .checks
            .as_ref()
            .and_then(|checks| checks.first_miss(&self.model, &parameters[..own], x, work));
        if let Some(miss) = miss {
            return Err(StartError::OffSet { trajectory: i, miss: Box::new(miss) });
        }
        if self.reversed {
            self.model.turn_momenta(x, 1);
        }
        if let Some(place) = self.trajectory {
            parameters[place] = i as f64;
        }
        if let Some(slow) = &self.slow {
            slow.put(parameters, x)
                .map_err(|reason| StartError::NotSlow { trajectory: i, reason })?;
        }
        Ok(far)
    }
}

/// Starts of several trajectories side by side. Immutable, shared between threads.
pub(crate) struct StartLanes {
    lanes: usize,
    start: CompiledStart,
    checks: Option<Checks>,
}

impl Starts {
    /// These starts in so many lanes; `None` if they are moved, or checked over rows.
    pub(crate) fn in_lanes(&self, lanes: usize) -> Option<StartLanes> {
        if self.projection.is_some() || self.slow.is_some() {
            return None;
        }
        let checks = match &self.checks {
            Some(checks) => Some(checks.in_lanes(&self.model, lanes)?),
            None => None,
        };
        let start = CompiledStart::new(&self.model, backend(), lanes).ok()?;
        Some(StartLanes { lanes, start, checks })
    }
}

impl StartLanes {
    /// Length of the scratch of [`StartLanes::put`].
    pub fn work_len(&self, starts: &Starts) -> usize {
        let checks = self.checks.as_ref().map_or(0, |checks| checks.work_len(&starts.model));
        self.start.work_len().max(checks)
    }

    /// Put the parameter values and the initial states of trajectories into the lanes; if they are
    /// fewer, the last one fills the others. False if one of them has no start: [`Starts::at`] then
    /// says which, and why.
    pub fn put(
        &self,
        starts: &Starts,
        trajectories: Range<u64>,
        parameters: &mut [f64],
        x: &mut [f64],
        work: &mut [f64],
    ) -> bool {
        let of = |lane: usize| (trajectories.start + lane as u64).min(trajectories.end - 1);
        let own = starts.model.parameter_values.len() * self.lanes;
        let put = |count, which, drawn: &mut [f64]| {
            draw(|lane| Noise::new(starts.seed, of(lane) as u32), (count, which), drawn);
        };
        let given = |number: usize, lane: usize| starts.given(number, of(lane));
        let started = self.start.put(
            &starts.model,
            |lane| of(lane) as f64,
            (put, given),
            &mut parameters[..own],
            x,
            work,
        );
        let misses = |checks: &Checks| {
            checks.first_miss(&starts.model, &parameters[..own], x, work).is_some()
        };
        if started.is_err() || self.checks.as_ref().is_some_and(misses) {
            return false;
        }
        if starts.reversed {
            starts.model.turn_momenta(x, self.lanes);
        }
        if let Some(place) = starts.trajectory {
            let numbers = &mut parameters[place * self.lanes..][..self.lanes];
            numbers.iter_mut().enumerate().for_each(|(lane, number)| *number = of(lane) as f64);
        }
        true
    }
}

impl Checks {
    /// These checks for so many states of `model` side by side; `None` if they are made over rows.
    fn in_lanes(&self, model: &Model, lanes: usize) -> Option<Checks> {
        let hidden = match &self.hidden {
            Hidden::None => Hidden::None,
            Hidden::Unrolled(hidden) => Hidden::Unrolled(hidden.in_lanes(model, backend(), lanes)),
            Hidden::Templated(_) => return None,
        };
        Some(Checks { constraints: self.constraints.in_lanes(model, backend(), lanes), hidden })
    }

    /// Checks of starts that differ from each other where those of `model` do.
    fn new(problem: &Problem, model: &Model) -> Checks {
        let scales = Scales::by(backend(), model);
        let hidden = match (&problem.examined.field, &problem.examined.rows) {
            (Some((field, structure)), _) if !structure.hidden.is_empty() => {
                let field = (&**field, structure);
                Hidden::Unrolled(HiddenConstraints::new(model, &scales, field, backend()))
            }
            (None, Some(rows)) if !model.constraints.is_empty() => {
                let hidden = RowHiddenConstraints::new(model, &scales, rows, backend());
                Hidden::Templated(Box::new(hidden))
            }
            _ => Hidden::None,
        };
        let constraints = Constraints::that_vary(model, &scales, backend());
        Checks { constraints, hidden }
    }

    /// Checks of any states.
    pub(crate) fn of_states(problem: &Problem) -> Checks {
        let mut model = Model::clone(&problem.model);
        model.start.state = vec![true; model.dimension()];
        Checks::new(problem, &model)
    }

    /// Length of the scratch of [`Checks::first_miss`].
    pub(crate) fn work_len(&self, model: &Model) -> usize {
        let hidden = match &self.hidden {
            Hidden::Unrolled(hidden) => hidden.work_len(model),
            // It has scratch of its own.
            Hidden::Templated(_) | Hidden::None => 0,
        };
        hidden.max(self.constraints.work_len())
    }

    pub(crate) fn first_miss(
        &self,
        model: &Model,
        parameters: &[f64],
        x: &[f64],
        work: &mut [f64],
    ) -> Option<Miss> {
        let mut first = None;
        self.constraints.misses(model, parameters, x, work, &mut |miss| {
            first.get_or_insert(miss);
        });
        if first.is_some() {
            return first;
        }
        let found = &mut |miss| {
            first.get_or_insert(miss);
        };
        match &self.hidden {
            Hidden::None => {}
            Hidden::Unrolled(hidden) => hidden.misses(model, parameters, x, work, found),
            Hidden::Templated(hidden) => hidden.misses(model, parameters, x, found),
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAJECTORIES: u64 = 21;

    fn starts(text: &str, vary: &[(&str, &str)], settings: &Settings) -> (Problem, Starts) {
        let vary = vary.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let each = vec![("c".to_string(), (0..TRAJECTORIES).map(|i| i as f64 / 3.0).collect())];
        let sweep =
            SweepOptions { trajectories: TRAJECTORIES, vary, each, ..SweepOptions::default() };
        Problem::from_text_varied("model", text, &BTreeMap::new(), settings, &sweep).unwrap()
    }

    /// Starts of trajectories from `first` on in so many lanes, by trajectory; `None` if one has none.
    fn together(
        (problem, starts): &(Problem, Starts),
        lanes: usize,
        trajectories: Range<u64>,
    ) -> Option<Vec<(Vec<u64>, Vec<u64>)>> {
        let compiled = starts.in_lanes(lanes).expect("these starts are not moved");
        let model = &problem.model;
        let mut parameters = vec![f64::NAN; model.parameter_values.len() * lanes];
        let mut x = vec![f64::NAN; model.dimension() * lanes];
        let work = &mut vec![f64::NAN; compiled.work_len(starts)];
        let count = (trajectories.end - trajectories.start) as usize;
        let started = compiled.put(starts, trajectories, &mut parameters, &mut x, work);
        let lane = |all: &[f64], lane: usize| -> Vec<u64> {
            all.iter().skip(lane).step_by(lanes).map(|number| number.to_bits()).collect()
        };
        started.then(|| (0..count).map(|k| (lane(&parameters, k), lane(&x, k))).collect())
    }

    fn alone(
        (problem, starts): &(Problem, Starts),
        i: u64,
    ) -> Result<(Vec<u64>, Vec<u64>), StartError> {
        let mut parameters = problem.model.parameter_values.clone();
        let mut x = problem.model.initial.clone();
        starts.at(i, &mut parameters, &mut x, &mut starts.work())?;
        let bits = |all: Vec<f64>| all.into_iter().map(f64::to_bits).collect();
        Ok((bits(parameters), bits(x)))
    }

    /// Draws, values that are given, chains of them, and momenta of velocities: in lanes as alone, for
    /// fewer trajectories than lanes, too.
    #[test]
    fn starts_in_lanes_are_those_alone() {
        let free = "parameter c = 0\nparameter m = 1\ncoordinate q : R^2 = (1, c)\n\
            momentum p of q\nhamiltonian dot(p, p)/(2*m) + dot(q, q)/2";
        let solved = "parameter c = 0\nparameter m = 2\ncoordinate q : R^2 = (1, c)\n\
            velocity v of q = (0.1, c)\nhamiltonian dot(p_q, p_q)/(2*m*(1 + q.x^2)) + dot(q, q)/2";
        let pendulum = "parameter c = 0\nparameter g = 1\ncoordinate q : R^2 = (1, 0)\n\
            momentum p of q = (0, c)\nhamiltonian dot(p, p)/2 + g*q.y\nconstraint rod : dot(q, q) = 1";
        let moving = "parameter c = 0\nparameter m = 2\ncoordinate q : R^2 = (1, c)\n\
            velocity v of q = (0.1, c)\nlagrangian m*(1 + q.x^2)*dot(q', q')/2 - dot(q, q)/2";
        let cases: [(&str, &[(&str, &str)]); 4] = [
            (free, &[("m", "1 + 0.1*uniform()"), ("p", "(m*normal(), c + normal())")]),
            (solved, &[("m", "1 + uniform()"), ("q", "(normal(), c)")]),
            (pendulum, &[("g", "1 + normal()^2")]),
            (moving, &[("m", "1 + uniform()")]),
        ];
        for (text, vary) in cases {
            let made = starts(text, vary, &Settings::default());
            for lanes in [1, 4, 8, 16] {
                for first in [0, 3, TRAJECTORIES - 1] {
                    let all = first..TRAJECTORIES.min(first + lanes as u64);
                    let alone: Vec<_> = all.clone().map(|i| alone(&made, i).unwrap()).collect();
                    assert_eq!(together(&made, lanes, all), Some(alone), "{text}\n{lanes} lanes");
                }
            }
        }
    }

    /// Starts that are not finite, or off a constraint or a hidden one, in one lane of several.
    #[test]
    fn a_start_that_is_missing_is_seen_in_its_lane() {
        let text = "parameter c = 0\nparameter l = 1\ncoordinate q : R^2 = (1, 0)\n\
            momentum p of q = (0, 1)\nhamiltonian dot(p, p)/2 + l*q.y\nconstraint rod : dot(q, q) = 1";
        for vary in [
            ("l", "1/(i - 6)"),
            ("q", "(1 + 0.1*max(0, 1 - (i - 6)^2), 0)"),
            ("p", "(0.1*max(0, 1 - (i - 6)^2), 1)"),
        ] {
            let made = starts(text, &[vary], &Settings::default());
            assert!(alone(&made, 6).is_err() && alone(&made, 5).is_ok(), "{vary:?}");
            assert!(together(&made, 8, 0..6).is_some() && together(&made, 8, 7..15).is_some());
            assert!(together(&made, 8, 0..7).is_none(), "{vary:?}");
            assert!(together(&made, 8, 3..11).is_none(), "{vary:?}");
        }
    }
}
