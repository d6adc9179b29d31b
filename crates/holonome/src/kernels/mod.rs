//! Compiled kernels of fields, and whole steps over them: a field of the symbolic half as a system
//! of the numeric half. Small systems have kernels for what a step calls and for whole steps, large
//! ones a kernel for each template.

mod bound;
mod collocation;
mod deferred;
mod field_jacobian;
mod following;
mod formula;
mod lane_quantities;
mod lanes;
mod loops;
mod map;
mod march;
mod mending;
mod monitoring;
mod pull;
mod recurrence;
mod series;
mod settling;
mod system;
mod tangents;
mod taylor;
mod tracing;
mod vectors;
mod watching;
mod whole_step;

pub use bound::{Bound, Parametric, Quantities, WideBound, compile_parts, compile_rows};
pub use field_jacobian::FieldJacobian;
pub use following::WithVelocities;
pub(crate) use formula::Formula;
pub use lane_quantities::LaneQuantities;
pub use lanes::{CompiledLanes, LaneMonitor, LaneWatch, MonitorBound, WatchBound};
pub use map::{CompiledStep, StepSource};
pub use mending::Mend;
pub(crate) use monitoring::Monitoring;
pub use monitoring::WideMonitor;
pub use system::{CompiledSystem, ParametricEvents, UnrolledParts, WideRates};
pub use tangents::TangentSteps;
pub(crate) use taylor::Taylor;
pub use vectors::StateVectors;
pub use watching::Watching;
pub use whole_step::single_step;

#[cfg(test)]
mod tests;
