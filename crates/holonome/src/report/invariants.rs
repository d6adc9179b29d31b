//! Invariants from a stored summary, with their charts and tables.

use super::sampled;
use crate::error::Error;
use crate::recording::TIME;
use crate::store::StoredRun;
use crate::summary::{Drift, Drifts, RunCost, StoredSummary, UnitLabels, drift_rows};
use holonome_figures::numbers::{count, small};
use holonome_figures::{Axis, Chart, Curve, Level, Style, Table};
use holonome_model::treatment::InvariantKind;
use holonome_model::treatment::feedback::gain_name;

/// Distance of 1 from its upper neighbour: smaller drifts cannot be distinguished from 0 beside
/// terms of size 1.
const ROUND_OFF: f64 = f64::EPSILON;

/// Number of points of a curve of drifts: two for each pixel of a wide panel.
const POINTS: usize = 2400;

/// An invariant of a run, or of an ensemble.
#[derive(Clone, Debug)]
pub(super) struct Invariant {
    /// Name among the options: `H`, `rod`, `rod.hidden`.
    pub key: String,
    /// Name in words.
    pub label: String,
    /// Array of its deviations.
    pub array: String,
    /// Its drift.
    pub drift: Drift,
}

impl Invariant {
    /// Scale of the terms that cancel.
    pub fn terms(&self) -> Option<f64> {
        Some(self.drift.max / self.drift.relative.filter(|relative| relative.max > 0.0)?.max)
    }
}

/// Invariants of a summary's drifts: energies, integrals, then constraints.
pub(super) fn invariants(drifts: Option<Drifts>) -> Vec<Invariant> {
    let rank = |kind| match kind {
        InvariantKind::Integral => 1,
        InvariantKind::Constraint => 2,
        InvariantKind::Hidden(_) => 3,
        _ => 0,
    };
    let mut drifts = drifts.unwrap_or_default().all;
    drifts.sort_by_key(|drift| rank(drift.kind));
    let invariant = |drift: Drift| {
        let key = match drift.kind {
            InvariantKind::Penalised => "H_penalised".to_string(),
            kind => gain_name(&drift.name, kind),
        };
        let array = if rank(drift.kind) > 1 { "residual" } else { "drift" };
        Invariant { label: drift.label("energy H"), array: format!("{array}.{key}"), key, drift }
    };
    drifts.into_iter().map(invariant).collect()
}

/// A run whose drifts are drawn.
pub(super) struct DrawnRun<'r> {
    pub name: &'r str,
    pub run: &'r StoredRun,
    pub times: &'r [f64],
    pub invariants: &'r [Invariant],
}

/// Charts of the drifts of runs: of one run all invariants in one chart, of several one chart per
/// invariant.
pub(super) fn charts(runs: &[DrawnRun]) -> Result<Vec<(String, Chart)>, Error> {
    let mut charts = Vec::new();
    match runs {
        [run] => {
            for relative in [false, true] {
                let mut chart = empty(
                    if relative {
                        "Drift over the terms that cancel"
                    } else {
                        "Drift of the invariants"
                    },
                    relative,
                );
                for (colour, invariant) in run.invariants.iter().enumerate() {
                    draw(&mut chart, run, invariant, &invariant.key, colour, relative)?;
                }
                finish(&mut chart, run.invariants.iter());
                charts.push((if relative { "relative" } else { "absolute" }.to_string(), chart));
            }
        }
        runs => {
            let mut keys: Vec<&str> = Vec::new();
            for invariant in runs.iter().flat_map(|run| run.invariants) {
                if !keys.contains(&invariant.key.as_str()) {
                    keys.push(&invariant.key);
                }
            }
            for key in keys {
                let of = |run: &DrawnRun<'_>| {
                    run.invariants.iter().position(|invariant| invariant.key == key)
                };
                let mut chart = empty(&format!("Drift of {key}"), false);
                for (colour, run) in runs.iter().enumerate() {
                    if let Some(k) = of(run) {
                        draw(&mut chart, run, &run.invariants[k], run.name, colour, false)?;
                    }
                }
                // The scales of the runs' terms differ little.
                chart.levels.truncate(1);
                finish(&mut chart, std::iter::empty());
                charts.push((key.to_string(), chart));
            }
        }
    }
    charts.retain(|(_, chart)| !chart.curves.is_empty());
    let unit = runs.first().and_then(|run| run.run.time_unit());
    for (_, chart) in &mut charts {
        chart.x.label = sampled::with_unit(TIME, unit);
    }
    Ok(charts)
}

fn empty(title: &str, relative: bool) -> Chart {
    let label = if relative { "|drift| / terms" } else { "|drift|" };
    Chart { title: title.to_string(), x: Axis::time(), y: Axis::log(label), ..Chart::default() }
}

/// Add the samples, and their largest so far.
fn draw(
    chart: &mut Chart,
    run: &DrawnRun,
    invariant: &Invariant,
    name: &str,
    colour: usize,
    relative: bool,
) -> Result<(), Error> {
    let scale = match (relative, invariant.terms()) {
        (false, _) => 1.0,
        (true, Some(terms)) => 1.0 / terms,
        // Nothing drifted, or the scale of the terms is not known.
        (true, None) => return Ok(()),
    };
    if run.run.arrays().iter().all(|array| array.name != invariant.array) {
        return Ok(());
    }
    let (x, y) = sampled::curve(run.run, run.times, &invariant.array, POINTS)?;
    let y: Vec<f64> = y.into_iter().map(|drift| drift.abs() * scale).collect();
    let (mut largest, mut steps) = (0.0f64, (Vec::new(), Vec::new()));
    for (k, (&t, &drift)) in x.iter().zip(&y).enumerate() {
        let grows = drift > largest;
        if grows {
            // A staircase: the old height until now.
            steps.0.push(t);
            steps.1.push(largest);
            largest = drift;
        }
        // The ends also show the length of the run.
        if grows || k == 0 || k + 1 == x.len() {
            steps.0.push(t);
            steps.1.push(largest);
        }
    }
    let floor =
        if relative { Some(ROUND_OFF) } else { invariant.terms().map(|terms| ROUND_OFF * terms) };
    chart.curves.push(Curve {
        name: name.to_string(),
        colour,
        x,
        y,
        style: Style::Faint,
        bounds: Vec::new(),
    });
    chart.curves.push(Curve {
        name: name.to_string(),
        colour,
        x: steps.0,
        y: steps.1,
        style: Style::Line,
        bounds: Vec::new(),
    });
    let level = floor.map(|y| Level {
        name: "round-off".to_string(),
        y,
        colour: (!relative).then_some(colour),
    });
    match level {
        // Floors that are nearly equal are drawn as one.
        Some(level) if chart.levels.iter().all(|known| (known.y / level.y).log10().abs() > 0.5) => {
            chart.levels.push(level)
        }
        _ => {}
    }
    Ok(())
}

fn finish<'i>(chart: &mut Chart, invariants: impl Iterator<Item = &'i Invariant>) {
    let largest: Vec<String> =
        invariants.map(|i| format!("{} {}", i.key, small(i.drift.max))).collect();
    let all = if largest.is_empty() {
        String::new()
    } else {
        format!("Largest over all steps: {}. ", largest.join(", "))
    };
    chart.note = format!(
        "{all}Thick: largest so far, thin: samples; nothing is drawn where a drift is exactly 0."
    );
    chart.levels.iter_mut().skip(1).for_each(|level| level.name.clear());
}

/// Table of the drifts of one run or ensemble.
pub(super) fn drift_table(invariants: &[Invariant], units: &UnitLabels) -> Option<Table> {
    let label = |i: &Invariant| match units.get(&i.array) {
        Some(unit) => format!("{} in {unit}", i.label),
        None => i.label.clone(),
    };
    let drifts: Vec<_> = invariants.iter().map(|i| (label(i), &i.drift)).collect();
    let rows = drift_rows("invariant", &drifts, 4);
    (rows.len() > 1).then(|| Table {
        title: "Drift of every invariant".to_string(),
        rows,
        note: "Largest over all accepted steps and samples; relative: over the size of the terms that cancel."
            .to_string(),
        words: false,
    })
}

/// Rows of the costs of one or several runs, without costs that no run has.
pub(super) fn cost_rows(summaries: &[&StoredSummary]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |name: &str, of: &dyn Fn(&StoredSummary) -> Option<String>| {
        let cells: Vec<Option<String>> = summaries.iter().map(|summary| of(summary)).collect();
        if cells.iter().any(Option::is_some) {
            rows.push(
                std::iter::once(name.to_string())
                    .chain(cells.into_iter().map(Option::unwrap_or_default))
                    .collect(),
            );
        }
    };
    row("steps", &|summary| summary.steps.map(count));
    for (k, (_, name, _)) in RunCost::default().counts().into_iter().enumerate() {
        let counted = |cost: &RunCost| cost.counts()[k].2;
        row(name, &|summary| summary.cost.as_ref().map(counted).filter(|n| *n > 0).map(count));
    }
    row("seconds", &|summary| {
        summary.cost.as_ref().map(|cost| format!("{:.3}", cost.wall_seconds))
    });
    rows
}
