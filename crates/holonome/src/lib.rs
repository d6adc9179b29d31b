//! [storage]: crate::store
//!
#![doc = include_str!("../library.md")]
//!
//! # Contents, by theme
//!
//! - **models**: [`Problem`] with [`Settings`]; findings on its text are [`Diagnostic`]s in a
//!   [`Source`];
//! - **runs**: [`prepare`] with [`RunOptions`] gives a [`Simulation`], which gives a [`Solution`]
//!   with [`Arrays`] and a [`Summary`], or a folder of [`store`]; [`Resumed`] continues a run;
//! - **ensembles**: [`prepare_sweep`] with [`SweepOptions`] gives a [`Sweep`], which gives a
//!   [`SweepSolution`]; [`sweep::Share`] divides one between processes, [`sweep::merge`] joins parts;
//!   [`each`] reads values of trajectories from texts and files;
//! - **comparisons**: [`mod@compare`];
//! - **first integrals** that a model does not state: [`first_integrals`];
//! - **published experiments** as data: [`study`];
//! - **methods**: [`method`] has the registry and the definition of a scheme; [`phase_space`] the
//!   terms in which steps are written, [`tableau`] the coefficients of Runge–Kutta schemes;
//! - **fields of one's own**: [`integrate`] and [`system`];
//! - **errors**: [`Error`]; [`spell_options`] sets the spelling of options in its messages.
//!
//! The symbolic half is the crate `holonome_model`, the numeric half `holonome_integrate`; this
//! crate joins them.

mod analysis;
mod arrays;
mod backend;
mod backward;
#[doc(hidden)]
pub mod check;
pub mod compare;
mod constant;
mod defaults;
#[doc(hidden)]
pub mod dump;
pub mod each;
mod ensemble;
mod error;
mod events;
mod feedback;
pub mod first_integrals;
mod footprint;
#[doc(hidden)]
pub mod gain;
mod heat_bath;
mod hold;
mod includes;
mod integrate;
mod interpolant;
mod kernels;
mod knots;
mod landing;
mod least_norm;
mod measure;
mod monitored;
mod not_a_model;
mod options;
pub mod orbit;
mod output;
mod penalty;
mod pieces;
mod pilot;
mod policy;
#[doc(hidden)]
pub mod problem;
mod pulses;
#[doc(hidden)]
pub mod recording;
mod regular;
pub mod report;
mod serial;
mod simulation;
mod solution;
mod source;
mod starts;
mod step;
pub mod store;
pub mod study;
pub mod summary;
pub mod sweep;
mod unheld;

// Models.
pub use holonome_model::syntax::diagnostic::{Diagnostic, Severity};
pub use holonome_model::treatment::InvariantKind;
pub use options::Settings;
pub use problem::Problem;
pub use source::{Finding, Labelled, Source};
pub use starts::Starts;

// Runs.
pub use arrays::{Array, Arrays};
pub use events::EventTable;
pub use footprint::Footprint;
pub use holonome_integrate::observer::Control;
pub use holonome_integrate::plan::{Metric, Singular};
pub use interpolant::Interpolant;
pub use monitored::Monitored;
pub use options::{
    Gains, MethodTrial, PenaltyStrength, RunOptions, StepSize, SweepOptions, Thermostat,
    until_event,
};
pub use orbit::OrbitError;
pub use penalty::Penalised;
pub use recording::Progress;
pub use simulation::{
    Flow, Longer, Resumed, Simulation, VectorField, open_run, origin, prepare, prepare_settable,
};
pub use solution::Solution;
pub use summary::Summary;

// Averages.
pub use analysis::{Analysis, analyse};
pub use holonome_model::elaborate::statistic::Statistic;
pub use measure::{Measure, Table};

// Ensembles and comparisons.
pub use backend::{bound_threads, set_threads};
pub use compare::{CompareOptions, Comparison};
pub use sweep::{Sweep, SweepProgress, SweepSolution, SweepSummary, prepare_sweep};

// Methods, and fields and steps of one's own.
pub use holonome_integrate::{method, phase_space, system, tableau};
pub use integrate::{integrate, integrate_while};

// Errors, and the faces that show them.
pub use constant::constant;
pub use defaults::left_to_model;
pub use error::{Error, ErrorFacts, ErrorReport, StartError};
pub use holonome_jit::{report_exhausted_memory, return_freed_arrays};
#[doc(hidden)]
pub use holonome_model as model;
#[doc(hidden)]
pub use holonome_words::option;
pub use holonome_words::{Spelling, spell_options};
