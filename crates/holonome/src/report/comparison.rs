//! Comparisons: work–precision diagrams and the table of all rows.

use super::invariants::{Invariant, invariants};
use super::{AGAIN, model_section, section};
use crate::compare::{Comparison, Row};
use crate::summary::{COUNTED, RunCost};
use holonome_figures::numbers::{count, exact, number, small};
use holonome_figures::text::shell_word;
use holonome_figures::{Axis, Chart, Curve, Figure, Level, Page, Panel, Style, Table};

/// Error of a row at the end; true if it is a bound.
fn error(row: &Row) -> Option<(f64, bool)> {
    let last = row.outcome.as_ref().ok()?.errors?.at_end();
    Some((last.number(), last.known().is_none()))
}

/// A quantity of a row: its value, and true if it is a bound.
type Quantity<'q> = &'q dyn Fn(&Row) -> Option<(f64, bool)>;

/// A line per method: a quantity over its work.
fn chart(rows: &[Row], title: &str, work: Work, label: &str, of: Quantity) -> Chart {
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows {
        let Some((y, bound)) = of(row).filter(|(y, _)| y.is_finite() && *y > 0.0) else { continue };
        let Ok(measured) = &row.outcome else { continue };
        // Smallest time that a clock resolves.
        let x = (work.0)(&measured.cost).max(1e-9);
        let k = curves.iter().position(|curve| curve.name == row.label()).unwrap_or_else(|| {
            curves.push(Curve {
                name: row.label(),
                colour: curves.len(),
                style: Style::Marked,
                ..Curve::default()
            });
            curves.len() - 1
        });
        curves[k].x.push(x);
        curves[k].y.push(y);
        curves[k].bounds.push(bound);
    }
    if curves.iter().all(|curve| !curve.bounds.contains(&true)) {
        curves.iter_mut().for_each(|curve| curve.bounds.clear());
    }
    Chart {
        title: title.to_string(),
        x: Axis::log(work.1),
        y: Axis::log(label),
        curves,
        ..Chart::default()
    }
}

/// Measure of work, and its axis label.
type Work = (fn(&RunCost) -> f64, &'static str);
const CLOCK: Work = (|cost| cost.wall_seconds, "time in seconds");
const WORK: Work = (|cost| cost.in_gradients() as f64, "work in gradients");

/// Figure of a comparison; `None` if there is nothing to draw.
pub(super) fn work_precision_figure(comparison: &Comparison) -> Option<Figure> {
    let panels: Vec<Chart> =
        work_precision(comparison).into_iter().map(|(_, chart)| chart).collect();
    (!panels.is_empty()).then_some(Figure { panels, ..Figure::default() })
}

/// Charts of the error over time and over work, by name; of the drift of the energy (or of the
/// first invariant) if no error is known. Empty if there is neither.
pub(super) fn work_precision(comparison: &Comparison) -> Vec<(String, Chart)> {
    let Comparison { model, t, reference, rows, .. } = comparison;
    let title = format!("{model}, T = {}", number(*t));
    let hamiltonian = rows.iter().flat_map(|row| &row.outcome).any(|run| run.drift.hamiltonian);
    let what = if hamiltonian { "error in (q, p)" } else { "error in the state" };
    let label = match reference.good_until {
        Some(good) if good < *t => format!("{what} at t = {}", number(good)),
        _ => format!("{what} at T"),
    };
    let floor = reference.error.filter(|error| *error > 0.0);
    let both = |label: &str, of: Quantity| {
        [("by time", CLOCK), ("by work", WORK)]
            .map(|(name, work)| (name.to_string(), chart(rows, &title, work, label, of)))
    };
    let mut charts = both(&label, &error).to_vec();
    for (_, chart) in &mut charts {
        chart.levels.extend(floor.map(|y| Level {
            name: "error of the reference".to_string(),
            y,
            colour: None,
        }));
        let open = chart.curves.iter().any(|curve| !curve.bounds.is_empty());
        chart.note = format!("Work: {COUNTED}.");
        if open {
            chart.note.push_str(" Open markers: at most.");
        }
    }
    if charts.iter().all(|(_, chart)| chart.is_empty()) {
        let Some(key) = keys(rows).into_iter().next() else { return Vec::new() };
        charts = both(&format!("largest drift of {key}"), &|row: &Row| drift(row, &key)).to_vec();
    }
    charts.retain(|(_, chart)| !chart.is_empty());
    charts
}

fn drift(row: &Row, key: &str) -> Option<(f64, bool)> {
    let found = drifts(row).into_iter().find(|invariant| invariant.key == key)?;
    Some((found.drift.max, false))
}

fn drifts(row: &Row) -> Vec<Invariant> {
    invariants(row.outcome.as_ref().ok().map(|measured| measured.drift.clone()))
}

/// Names of the invariants of all rows.
fn keys(rows: &[Row]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for invariant in rows.iter().flat_map(drifts) {
        if !keys.contains(&invariant.key) {
            keys.push(invariant.key);
        }
    }
    keys
}

/// Page of a comparison.
pub(super) fn page(comparison: &Comparison) -> Page {
    let Comparison { model, t, reference, rows, warnings, source, command, .. } = comparison;
    let mut page = Page { title: format!("{model}: methods compared"), ..Page::default() };
    let mut fact = |name: &str, value: String| page.facts.push((name.to_string(), value));
    fact("until t =", number(*t));
    fact("reference", format!("{}, rtol {}", reference.method, number(reference.rtol)));
    if let Some(error) = reference.error {
        fact("its error", small(error));
    }
    page.warnings.extend(reference.reason.iter().chain(warnings).cloned());
    let mut panels = Vec::new();
    let mut precision = work_precision(comparison);
    for (name, chart) in &mut precision {
        chart.title = format!("Work–precision, {name}");
    }
    if !precision.is_empty() {
        panels.push(Panel::Charts(precision));
    }
    let keys = keys(rows);
    let drifts = keys.iter().map(|key| {
        let title = format!("Largest drift of {key}");
        (
            key.clone(),
            chart(rows, &title, CLOCK, &format!("largest drift of {key}"), &|row: &Row| {
                drift(row, key)
            }),
        )
    });
    let drifts: Vec<_> = drifts.filter(|(_, chart)| !chart.is_empty()).collect();
    if !drifts.is_empty() {
        panels.push(Panel::Charts(drifts));
    }
    page.sections.push(section(panels));
    page.sections.push(section(vec![Panel::Table(table(rows, &keys))]));
    let mut texts = vec![(format!("{model}.holo"), source.clone())];
    if !command.is_empty() {
        let line: Vec<_> = command.iter().map(|word| shell_word(word)).collect();
        texts.push((AGAIN.to_string(), line.join(" ")));
    }
    page.sections.push(model_section(texts));
    page
}

fn table(rows: &[Row], keys: &[String]) -> Table {
    let mut head: Vec<String> =
        ["method", "step or tolerance", "steps", "error at T", "order", "work", "seconds"]
            .map(String::from)
            .to_vec();
    head.extend(keys.iter().map(|key| format!("drift {key}")));
    let mut cells = vec![head];
    for row in rows {
        let size =
            row.step.map(exact).or_else(|| row.rtol.map(|rtol| format!("rtol {}", number(rtol))));
        let mut line = vec![row.label(), size.unwrap_or_default()];
        let measured = match &row.outcome {
            Ok(measured) => measured,
            Err(failed) => {
                line.push(failed.message.clone());
                line.resize(cells[0].len(), String::new());
                cells.push(line);
                continue;
            }
        };
        line.push(count(measured.steps));
        line.push(error(row).map_or(String::new(), |(e, bound)| {
            if bound { format!("≤ {}", small(e)) } else { small(e) }
        }));
        line.push(measured.order.map_or(String::new(), |order| format!("{order:.2}")));
        line.push(count(measured.cost.in_gradients()));
        line.push(format!("{:.2e}", measured.cost.wall_seconds));
        line.extend(
            keys.iter().map(|key| drift(row, key).map_or(String::new(), |(max, _)| small(max))),
        );
        cells.push(line);
    }
    Table {
        title: "Every run".to_string(),
        rows: cells,
        note: "Largest drifts over all accepted steps and samples.".to_string(),
        words: false,
    }
}
