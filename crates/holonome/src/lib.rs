//! Integrates mechanical systems with constraints and conserved quantities so that the numbers keep the
//! structure.
//!
//! ```no_run
//! use holonome::{Problem, RunOptions, Settings, Simulation};
//!
//! let problem = Problem::load("models/spherical-pendulum.holo".as_ref(), &Settings::default())?;
//! let mut simulation = prepare(problem, RunOptions::default())?;
//! let summary = simulation.run(&mut |_| holonome::Control::Continue)?;
//! println!("{}", summary.to_json());
//! # Ok::<(), holonome::Error>(())
//! ```
//!
//! A [`Problem`] is a checked model with its numbers; a [`Simulation`] compiles it for a method and runs it
//! into a [`store`]; a [`Summary`] says how well it went. The symbolic half is `holonome_model`, the numeric
//! half `holonome_integrate`; this crate is where they meet.

pub mod arrays;
mod backend;
pub mod compare;
mod compiled;
mod component_names;
mod constant;
pub mod dump;
pub mod error;
mod feedback;
mod footprint;
pub mod gain;
mod hold;
mod integrate;
pub mod options;
pub mod orbit;
mod output;
mod penalty;
mod pilot;
pub mod problem;
pub mod recording;
pub mod report;
pub mod simulation;
pub mod solution;
pub mod source;
pub mod starts;
pub mod store;
mod structured;
pub mod summary;
pub mod sweep;
mod watched;

pub use arrays::{Array, Arrays};
pub use backend::set_threads;
pub use compare::{CompareOptions, Comparison};
pub use constant::constant;
pub use error::Error;
pub use footprint::Footprint;
pub use holonome_integrate::method;
pub use holonome_integrate::observer::Control;
pub use holonome_integrate::phase_space;
pub use holonome_integrate::plan::Metric;
pub use holonome_integrate::system;
pub use holonome_model as model;
pub use integrate::{integrate, integrate_while};
pub use options::{Gains, PenaltyStrength, RunOptions, Settings, StepSize};
pub use orbit::OrbitError;
pub use penalty::Penalised;
pub use problem::Problem;
pub use recording::Progress;
pub use simulation::{Resumed, Simulation, prepare};
pub use solution::Solution;
pub use source::Source;
pub use starts::{StartError, Starts};
pub use summary::Summary;
pub use sweep::{Sweep, SweepOptions, SweepProgress, SweepSolution, SweepSummary, prepare_sweep};
pub use watched::Watched;
