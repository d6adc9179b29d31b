//! Numeric half of `holonome`: one-step maps, treatments, step-size control, the stepping loop and
//! noise. It knows vectors, functions of vectors and sparsity patterns; nothing here knows text,
//! symbols or files.
//!
//! A run takes a [`plan::Plan`] (what to do), a [`system::System`] (the field and its invariants),
//! a [`state::StepState`] (the state of the run) and an [`observer::Observer`] (which stores it):
//!
//! ```
//! use holonome_integrate::observer::Recorder;
//! use holonome_integrate::plan::Plan;
//! use holonome_integrate::run::{Outcome, run};
//! use holonome_integrate::state::StepState;
//! use holonome_integrate::system::FnSystem;
//!
//! let oscillator = FnSystem::new(2, |_t, x, dx| {
//!     dx[0] = x[1];
//!     dx[1] = -x[0];
//! });
//! let plan = Plan::adaptive("dop853".parse()?, 0.0, 10.0, 1e-10, 1e-10)?.with_samples(11)?;
//! let mut state = StepState::new(&plan, &oscillator, &[1.0, 0.0], None);
//! let mut recorder = Recorder::default();
//! assert_eq!(run(&plan, &oscillator, &mut state, &mut recorder)?, Outcome::Finished);
//! assert!((recorder.x[5][0] - 5f64.cos()).abs() < 1e-8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(clippy::too_many_arguments)] // numerical kernels take their vectors and scratch one by one

pub mod averages;
pub mod controller;
pub mod cost;
pub mod dirac;
pub mod ensemble;
pub mod events;
pub mod exact;
pub mod failure;
pub mod feedback_term;
pub mod fixed_point;
pub mod method;
pub mod newton;
pub mod noise;
pub mod observer;
pub mod phase_space;
pub mod pilot;
pub mod plan;
pub mod run;
pub mod scales;
pub mod scheme;
pub mod simplified_newton;
pub mod space;
pub mod stability;
pub mod state;
pub mod system;
pub mod tableau;
pub mod terms;
pub mod treatment;
pub mod trees;
pub mod vector;
