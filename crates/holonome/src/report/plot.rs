//! Figures for papers: what `holonome plot` draws.

use super::comparison::work_precision;
use super::invariants::{Source, charts, invariants};
use super::{Stored, sampled, sweep};
use crate::error::Error;
use crate::store::{ArrayLayout, StoredRun};
use holonome_figures::{Axis, Chart, Curve, Figure, Style};
use holonome_model::syntax::diagnostic::did_you_mean;
use holonome_words::option;
use serde_json::Value;
use std::path::Path;

/// Points of a curve.
const POINTS: usize = 8000;

/// What is drawn over what; where nothing is said, what suits the result.
#[derive(Clone, Debug, Default)]
pub struct Axes {
    /// The column along the horizontal axis: `t`, `q.x`; of an ensemble also what varies.
    pub x: Option<String>,
    /// Columns along the vertical axis.
    pub y: Vec<String>,
}

/// A figure of what a folder holds: of a run the drifts over time, beside the orbit where it is one in the plane or in
/// space; of a comparison error over time and over work; of an ensemble its first result over what varies.
///
/// # Errors
/// When the folder holds no result or is damaged, or has nothing of that name.
pub fn figure(path: &Path, axes: &Axes) -> Result<Figure, Error> {
    let chosen = axes.x.is_some() || !axes.y.is_empty();
    let panels = match Stored::open(path)? {
        Stored::Comparison(_) if chosen => {
            return Err(Error::option(format!(
                "{} and {} choose among a run's columns, but {} is a comparison: leave them out",
                option("x"),
                option("y"),
                path.display()
            )));
        }
        Stored::Comparison(value) => work_precision(&value).into_iter().map(|(_, chart)| chart).collect(),
        Stored::Run(run) if chosen => vec![of_columns(&run, axes)?],
        Stored::Run(run) => {
            let invariants = invariants(&run.summary()["drift"]);
            let times = run.times().map_err(Error::store)?;
            let source = Source { name: "", run: &run, times: &times, invariants: &invariants };
            let mut panels: Vec<Chart> = orbit(&run)?.into_iter().collect();
            let drifts = charts(&[source])?.into_iter().next();
            panels.extend(drifts.map(|(_, mut chart)| {
                // In print the samples would hide their largest.
                chart.curves.retain(|curve| curve.style != Style::Faint);
                chart.y.label = "largest |drift| so far".to_string();
                chart
            }));
            panels
        }
        Stored::Sweep(run) => vec![sweep::chart(&run, axes)?],
    };
    match panels.iter().any(|chart| !chart.is_empty()) {
        true => Ok(Figure { panels }),
        false => Err(Error::option(format!("{} has nothing to draw: name columns by {}", path.display(), option("y")))),
    }
}

/// Columns of a run over another.
fn of_columns(run: &StoredRun, axes: &Axes) -> Result<Chart, Error> {
    let x = axes.x.as_deref().unwrap_or("t");
    let names: Vec<&str> = std::iter::once(x).chain(axes.y.iter().map(String::as_str)).collect();
    if names.len() == 1 {
        return Err(Error::option(format!(
            "{} is over something: name a column by {}",
            option("x").with(x),
            option("y")
        )));
    }
    let mut columns = named(run, &names)?;
    let over = columns.remove(0);
    let deviations = axes.y.iter().all(|name| name.starts_with("drift.") || name.starts_with("residual."));
    let curves = columns.into_iter().zip(&axes.y).enumerate();
    let curves = curves.map(|(colour, (values, name))| Curve {
        name: name.clone(),
        colour,
        x: over.clone(),
        y: if deviations { values.into_iter().map(f64::abs).collect() } else { values },
        style: Style::Line,
        bounds: Vec::new(),
    });
    let label = axes.y.join(", ");
    let y = if deviations { Axis::log(label) } else { Axis::linear(label) };
    let equal = x != "t" && !deviations && axes.y.iter().all(|name| stem(name) == stem(x));
    Ok(Chart { x: Axis::linear(x), y, curves: curves.collect(), equal, ..Chart::default() })
}

/// The quantity that a component belongs to.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// The first member of the first vector of positions with two or three components, in its plane or seen along its third
/// axis.
fn orbit(run: &StoredRun) -> Result<Option<Chart>, Error> {
    let is_position = |array: &ArrayLayout| {
        matches!(array.attributes.get("role").and_then(Value::as_str), Some("coordinate" | "state"))
    };
    let Some(array) = run.arrays().into_iter().find(is_position) else { return Ok(None) };
    let names = run.column_names(&array.name).map_err(Error::store)?;
    let Some(last) = names.last().filter(|last| last.ends_with(['y', 'z']) && last.contains('.')) else {
        return Ok(None);
    };
    let of = |component: &str| format!("{}.{component}", stem(last));
    let mut chart = of_columns(run, &Axes { x: Some(of("x")), y: vec![of("y")] })?;
    // It is alone in its panel, whose axes name it.
    chart.curves.iter_mut().for_each(|curve| curve.name.clear());
    Ok(Some(chart))
}

/// Columns of a run by their names, thinned so that no extreme is lost.
fn named(run: &StoredRun, names: &[&str]) -> Result<Vec<Vec<f64>>, Error> {
    let mut all = vec![("t".to_string(), None)];
    for array in run.arrays() {
        let columns = run.column_names(&array.name).map_err(Error::store)?;
        all.extend(columns.into_iter().enumerate().map(|(place, name)| (name, Some((array.name.clone(), place)))));
    }
    let place = |name: &&str| -> Result<Option<(String, usize)>, Error> {
        match all.iter().find(|(known, _)| known == name) {
            Some((_, place)) => Ok(place.clone()),
            None => {
                let known = || all.iter().map(|(known, _)| known.as_str());
                let help = match did_you_mean(name, known()) {
                    Some(meant) => format!("did you mean '{meant}'?"),
                    None => format!("it has {}", known().take(20).collect::<Vec<_>>().join(", ")),
                };
                Err(Error::option(format!("{} has no column '{name}'; {help}", run.path().display())))
            }
        }
    };
    let places = names.iter().map(place).collect::<Result<Vec<_>, Error>>()?;
    sampled::named(run, &places, POINTS)
}
