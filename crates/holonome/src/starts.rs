//! Where the trajectories of an ensemble start.
//!
//! ```no_run
//! use holonome::{Problem, Settings};
//!
//! let vary = [("p".to_string(), "(0.1*normal(), 0, -1)".to_string())];
//! let path = "models/spherical-pendulum.holo".as_ref();
//! let (problem, starts) = Problem::load_varied(path, &Settings::default(), &vary, 1000)?;
//! let (mut parameters, mut x) = (problem.model.parameter_values.clone(), problem.model.initial.clone());
//! let mut work = starts.work();
//! for i in 0..starts.trajectories() {
//!     starts.at(i, &mut parameters, &mut x, &mut work)?;
//! }
//! # Ok::<(), holonome::Error>(())
//! ```

use crate::backend::backend;
use crate::error::Error;
use crate::penalty::SlowManifold;
use crate::problem::{Problem, farthest_move};
use holonome_integrate::noise::Noise;
use holonome_model::consistency::{Constraints, HiddenConstraints, Miss, Projection};
use holonome_model::elaborate::expression::Draw;
use holonome_model::elaborate::model::Model;
use holonome_model::scales::Scales;
use holonome_model::start::{CompiledStart, NoStart};
use holonome_words::option;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most trajectories: each has a stream of random numbers of its own.
const MOST_TRAJECTORIES: u64 = 1 << 32;

/// What differs between the trajectories of an ensemble (`--vary`), and how many there are.
pub(crate) struct Ensemble<'a> {
    pub vary: &'a [(String, String)],
    pub trajectories: u64,
}

impl<'a> Ensemble<'a> {
    /// One trajectory, as the file has it.
    pub const ONE: Ensemble<'static> = Ensemble { vary: &[], trajectories: 1 };

    pub fn new(vary: &'a [(String, String)], trajectories: u64) -> Result<Ensemble<'a>, Error> {
        match trajectories {
            0 => Err(Error::option(format!(
                "{trajectories}: there must be at least one",
                trajectories = option("trajectories")
            ))),
            1..=MOST_TRAJECTORIES => Ok(Ensemble { vary, trajectories }),
            n => Err(Error::option(format!(
                "{trajectories}: {n} is more than the limit of {MOST_TRAJECTORIES}",
                trajectories = option("trajectories")
            ))),
        }
    }
}

/// Random number `count` (from 1) of a trajectory: the same whatever else the model holds.
pub(crate) fn drawn(noise: &Noise, count: u64, which: Draw) -> f64 {
    match which {
        Draw::Normal => noise.normal(count, 0),
        Draw::Uniform => noise.uniform(count, 0),
    }
}

/// Where the trajectories of an ensemble start: each one's parameter values and initial state, as functions of its
/// number. Immutable, shared between threads.
pub struct Starts {
    /// With the first trajectory's numbers, before they are projected.
    model: Model,
    start: CompiledStart,
    trajectories: u64,
    seed: u64,
    projection: Option<Projection>,
    /// `None` where a start may be off the constraint set.
    checks: Option<Checks>,
    /// Moves every start of a penalised ensemble that differs from the first.
    slow: Option<SlowManifold>,
    /// How many starts were projected far from where they were.
    far: AtomicU64,
}

/// What every start is checked for.
struct Checks {
    constraints: Constraints,
    hidden: Option<HiddenConstraints>,
}

/// Why a trajectory cannot start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StartError {
    /// A parameter or an initial value does not exist.
    #[error("trajectory {trajectory}: {reason}; correct what {vary} gives it, or what it is made of", vary = option("vary"))]
    NoStart {
        /// Which trajectory.
        trajectory: u64,
        /// Which value, and why.
        reason: NoStart,
    },
    /// It starts off the constraint set.
    #[error(
        "the initial state of trajectory {trajectory} does not meet {miss}; correct the varied values, or let \
         {project_initial} move every start onto the constraint set", project_initial = option("project_initial")
    )]
    OffSet {
        /// Which trajectory.
        trajectory: u64,
        /// Which constraint, and by how much.
        miss: Box<Miss>,
    },
    /// `--project-initial` does not find the constraint set.
    #[error("{project_initial}: trajectory {trajectory}: {reason}; let it start nearer to the constraint set", project_initial = option("project_initial"))]
    NotProjected {
        /// Which trajectory.
        trajectory: u64,
        /// Why, in words.
        reason: String,
    },
    /// A penalised one does not find the slow manifold.
    #[error("{slow_manifold}: trajectory {trajectory}: {reason}; {slow_manifold_off} leaves every start where it is", slow_manifold = option("slow_manifold"), slow_manifold_off = option("slow_manifold").of("off"))]
    NotSlow {
        /// Which trajectory.
        trajectory: u64,
        /// Why, in words.
        reason: String,
    },
}

impl StartError {
    /// Which trajectory.
    pub fn trajectory(&self) -> u64 {
        match *self {
            StartError::NoStart { trajectory, .. }
            | StartError::OffSet { trajectory, .. }
            | StartError::NotProjected { trajectory, .. }
            | StartError::NotSlow { trajectory, .. } => trajectory,
        }
    }

    /// The constraint that it does not meet, if that is what is wrong.
    pub fn miss(&self) -> Option<&Miss> {
        match self {
            StartError::OffSet { miss, .. } => Some(miss),
            _ => None,
        }
    }
}

impl Starts {
    /// The starts of an ensemble: of trajectory 0 the problem, and the initial state before it was projected.
    pub(crate) fn new(problem: &Problem, initial: Vec<f64>, ensemble: &Ensemble) -> Result<Starts, Error> {
        let mut model = problem.model.clone();
        let (mut projection, mut checks) = (None, None);
        // Where all start alike, they start like trajectory 0, which has been projected and checked.
        if !model.start.is_same() {
            model.initial = initial;
            if problem.settings.project_initial {
                let found = Projection::new(&model).map_err(|e| {
                    Error::option(format!("{project_initial}: {e}", project_initial = option("project_initial")))
                })?;
                projection = Some(found);
                model.start.state = vec![true; model.dimension()];
            }
            checks = (!problem.settings.start_off_set).then(|| {
                let scales = Scales::new(&model);
                let field = problem.examined.field.as_ref().filter(|(_, structure)| !structure.hidden.is_empty());
                Checks {
                    constraints: Constraints::that_vary(&model, &scales, backend()),
                    hidden: field.map(|(field, structure)| {
                        HiddenConstraints::new(&model, &scales, (field, structure), backend())
                    }),
                }
            });
        }
        let start = CompiledStart::new(&model, backend()).map_err(|diagnostic| Error::Model {
            text: Box::new(problem.source.clone()),
            diagnostics: vec![diagnostic],
        })?;
        let (trajectories, seed) = (ensemble.trajectories, problem.settings.seed);
        Ok(Starts { model, start, trajectories, seed, projection, checks, slow: None, far: AtomicU64::new(0) })
    }

    /// The same starts of a penalised model, moved onto its slow manifold if that is given. Parameter values are followed
    /// by ω then.
    pub(crate) fn penalised(self, slow: Option<SlowManifold>) -> Starts {
        Starts { slow, ..self }
    }

    /// How many starts `--project-initial` has moved far since this was last asked.
    pub(crate) fn take_far(&self) -> u64 {
        self.far.swap(0, Ordering::Relaxed)
    }

    /// How many there are.
    pub fn trajectories(&self) -> u64 {
        self.trajectories
    }

    /// Whether parameter value `k` may differ between trajectories.
    pub fn varies_parameter(&self, k: usize) -> bool {
        self.model.start.parameters.get(k) == Some(&true)
    }

    /// Whether component `k` of the initial state may differ between trajectories.
    pub fn varies_state(&self, k: usize) -> bool {
        self.model.start.state.get(k) == Some(&true)
    }

    /// Scratch for [`Starts::at`].
    pub fn work(&self) -> Vec<f64> {
        let checks = self
            .checks
            .as_ref()
            .map_or(0, |c| c.hidden.as_ref().map_or(0, |h| h.work_len(&self.model)).max(c.constraints.work_len()));
        vec![0.0; self.start.work_len().max(checks)]
    }

    /// Puts the parameter values and the initial state of trajectory `i`, which is below
    /// [`Starts::trajectories`]. Nothing is allocated, unless `--project-initial` moves the state.
    ///
    /// # Errors
    /// When a value is not finite, or the state is off the constraint set.
    ///
    /// # Panics
    /// When a slice has the wrong length: as many as the model has parameter values and components of the state,
    /// and as long a scratch as [`Starts::work`] gives.
    pub fn at(&self, i: u64, parameters: &mut [f64], x: &mut [f64], work: &mut [f64]) -> Result<(), StartError> {
        let noise = Noise::new(self.seed, i as u32);
        let draw = |count, which| drawn(&noise, count, which);
        let own = self.model.parameter_values.len();
        self.start
            .put(&self.model, i as f64, draw, &mut parameters[..own], x, work)
            .map_err(|reason| StartError::NoStart { trajectory: i, reason })?;
        if let Some(projection) = &self.projection {
            let moved = projection
                .project(&parameters[..own], x)
                .map_err(|reason| StartError::NotProjected { trajectory: i, reason })?;
            let far = farthest_move(&self.model, x, &moved.initial).is_some();
            self.far.fetch_add(u64::from(far), Ordering::Relaxed);
            x.copy_from_slice(&moved.initial);
        }
        let miss = self.checks.as_ref().and_then(|checks| checks.first_miss(&self.model, &parameters[..own], x, work));
        if let Some(miss) = miss {
            return Err(StartError::OffSet { trajectory: i, miss: Box::new(miss) });
        }
        if let Some(slow) = &self.slow {
            slow.put(parameters, x).map_err(|reason| StartError::NotSlow { trajectory: i, reason })?;
        }
        Ok(())
    }
}

impl Checks {
    fn first_miss(&self, model: &Model, parameters: &[f64], x: &[f64], work: &mut [f64]) -> Option<Miss> {
        let mut first = None;
        self.constraints.misses(model, parameters, x, work, &mut |miss| {
            first.get_or_insert(miss);
        });
        if let (None, Some(hidden)) = (&first, &self.hidden) {
            hidden.misses(model, parameters, x, work, &mut |miss| {
                first.get_or_insert(miss);
            });
        }
        first
    }
}
