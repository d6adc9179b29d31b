//! Figures and pages of plain numbers: charts, motions and tables, as one HTML file or as a figure
//! for a paper.
//!
//! The crate knows no models and no runs. A [`Page`] is a list of [`Panel`]s, filled by its caller;
//! it opens from disk, without a network, and holds everything it shows.

mod chart;
mod decimation;
mod figure;
mod film;
mod motion;
pub mod numbers;
mod page;
pub mod text;

pub use chart::{Axis, Chart, Curve, Level, Map, Style};
pub use decimation::Extremes;
pub use figure::{Figure, Format};
pub use film::{Film, Video};
pub use motion::{Body, Drawn, DrawnNumbers, Motion};
pub use page::{Page, Panel, Preset, Samples, Section, Table};
