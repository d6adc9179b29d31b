//! Pages of ensembles: all trajectories at once.

use super::command::command;
use super::invariants::{cost_rows, drift_table, invariants};
use super::{AGAIN, Axes, model_section, sampled, section};
use crate::error::Error;
use crate::store::{Status, StoredRun};
use crate::summary::StoredSummary;
use holonome_figures::numbers::{count, number};
use holonome_figures::{Axis, Chart, Curve, Page, Panel, Preset, Samples, Style, Table};
use serde_json::Value;

/// Number of bins of a histogram.
const BINS: usize = 60;

/// Maximum number of columns of the trajectories.
const COLUMNS: usize = 24;

/// Maximum number of trajectories drawn one by one; of more, those with the extremes of every
/// column.
const DOTS: usize = 6000;

/// One number of each trajectory.
struct Column {
    name: String,
    drift: bool,
    values: Vec<f64>,
}

impl AsRef<[f64]> for Column {
    fn as_ref(&self) -> &[f64] {
        &self.values
    }
}

/// Page of an ensemble.
pub(super) fn page(run: &StoredRun, numbers: usize) -> Result<Page, Error> {
    let columns = read(run)?;
    let mut summary = StoredSummary::from(run.summary());
    let text = |key: &str| {
        run.attributes().get(key).and_then(Value::as_str).unwrap_or_default().to_string()
    };
    let (model, method) = (text("model"), text("method"));
    let mut page = Page {
        title: format!("{model} by {method}, {} trajectories", count(run.samples() as u64)),
        ..Page::default()
    };
    page.facts = facts(run, method, &summary);
    let failed = summary.failed;
    if failed > 0 {
        page.warnings.push(format!(
            "{} of {} trajectories failed before the end.",
            count(failed),
            count(run.samples() as u64)
        ));
    }
    if run.status() != Status::Finished {
        page.warnings.push(format!(
            "The ensemble is not at its end: {} of {} trajectories are there.",
            run.samples(),
            run.samples_planned()
        ));
    }
    page.warnings.append(&mut summary.warnings);
    page.sections.push(section(panels(run, &columns, &summary, numbers)));
    let mut rows = cost_rows(&[&summary]);
    rows.insert(0, vec!["cost of all".to_string(), String::new()]);
    let cost = Table { title: "Cost".to_string(), rows, ..Table::default() };
    let tables = drift_table(&invariants(summary.drift), &summary.units).into_iter().chain([cost]);
    page.sections.push(section(tables.map(Panel::Table).collect()));
    let again = command(run.attributes()).map(|command| (AGAIN.to_string(), command));
    let source = (format!("{model}.holo"), text("source"));
    page.sections.push(model_section([source].into_iter().chain(again)));
    Ok(page)
}

/// What varies, the method, and what the ensemble took.
fn facts(run: &StoredRun, method: String, summary: &StoredSummary) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_string(), value));
    for pair in run
        .attributes()
        .get("sweep")
        .and_then(|sweep| sweep["vary"].as_array())
        .into_iter()
        .flatten()
    {
        fact(
            pair[0].as_str().unwrap_or_default(),
            format!("= {}", pair[1].as_str().unwrap_or_default()),
        );
    }
    fact("method", method);
    if let Some(t) = summary.t {
        fact("until t =", number(t));
    }
    if let Some(steps) = summary.steps {
        fact("steps", count(steps));
    }
    if let Some(cost) = &summary.cost {
        fact("seconds", format!("{:.3}", cost.wall_seconds));
    }
    facts
}

/// Charts of the results, drifts last, and their explorer.
fn panels(
    run: &StoredRun,
    columns: &[Column],
    summary: &StoredSummary,
    numbers: usize,
) -> Vec<Panel> {
    let mut panels = super::measures::panels(&summary.measures);
    let varied = varied(run);
    for drift in [false, true] {
        // Varied quantities need no histogram. Final states first.
        let mut of_kind: Vec<&Column> =
            columns.iter().filter(|c| c.drift == drift && !varied.contains(&stem(c))).collect();
        of_kind.sort_by_key(|column| !column.name.ends_with(" at T"));
        let name = |column: &Column| column.name.trim_start_matches("drift ").to_string();
        let charts: Vec<(String, Chart)> = of_kind
            .into_iter()
            .filter_map(|column| Some((name(column), histogram(column)?)))
            .collect();
        if !charts.is_empty() {
            panels.push(Panel::Charts(charts));
        }
    }
    let first = run.trajectories().map_or(0, |range| range.start);
    let samples = thinned(columns, first, numbers);
    let presets = presets(run, columns);
    let title = "Trajectories".to_string();
    panels.push(Panel::Explorer { title, runs: vec![samples], presets });
    panels
}

/// Varied quantities, final values of recorded ones, and single values of each trajectory.
fn read(run: &StoredRun) -> Result<Vec<Column>, Error> {
    let arrays = run.arrays();
    let times = run.times().map_err(Error::store)?.len().max(1);
    let (mut columns, mut places) = (Vec::new(), Vec::new());
    // Single values tell more in less space.
    let mut order: Vec<usize> = (0..arrays.len()).collect();
    order.sort_by_key(|&k| !arrays[k].once);
    for k in order {
        let array = &arrays[k];
        let names = run.column_names(&array.name).map_err(Error::store)?;
        let width = names.len();
        for (place, name) in names.into_iter().enumerate().take(COLUMNS / 3) {
            let drift = array.once && array.name.starts_with("drift_");
            let name = match (array.once, name.strip_prefix("drift_").filter(|_| drift)) {
                (false, _) => format!("{name} at T"),
                (true, Some(of)) => format!("drift {of}"),
                (true, None) => name,
            };
            places.push((k, if array.once { place } else { (times - 1) * width + place }));
            columns.push(Column { name, drift, values: Vec::new() });
        }
    }
    places.truncate(COLUMNS);
    columns.truncate(COLUMNS);
    let values = sampled::whole(run, &arrays, &places)?;
    columns.iter_mut().zip(values).for_each(|(column, values)| column.values = values);
    columns.retain(|column| {
        column.name != "failed" || column.values.iter().any(|failed| *failed != 0.0)
    });
    Ok(columns)
}

/// A result of all trajectories over a varied quantity.
pub(super) fn chart(run: &StoredRun, axes: &Axes) -> Result<Chart, Error> {
    let columns = read(run)?;
    let first = run.trajectories().map_or(0, |range| range.start);
    let samples = thinned(&columns, first, DOTS * (columns.len() + 1));
    let begin = presets(run, &columns).into_iter().next();
    sampled::points(&samples.columns, (axes, begin), |name, known| {
        let path = run.path().display();
        Error::option(format!("{path} has no column '{name}'; it has {known}"))
    })
}

/// Names of the varied quantities.
fn varied(run: &StoredRun) -> Vec<&str> {
    let pairs = run.attributes().get("sweep").and_then(|sweep| sweep["vary"].as_array());
    pairs.into_iter().flatten().filter_map(|pair| pair[0].as_str()).collect()
}

/// Name of the quantity to which a column belongs.
fn stem(column: &Column) -> &str {
    column.name.split(['.', '[', ' ']).next().unwrap_or_default()
}

/// Number of trajectories per bin of values; for drifts per bin of their powers of ten.
fn histogram(column: &Column) -> Option<Chart> {
    let log = column.drift;
    let fits = |x: &f64| x.is_finite() && (!log || *x > 0.0);
    let value = |x: f64| if log { x.log10() } else { x };
    let all: Vec<f64> = column.values.iter().copied().filter(fits).map(value).collect();
    let (low, high) = all.iter().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
    if all.is_empty() {
        return None;
    }
    let width = if high > low { (high - low) / BINS as f64 } else { 1.0 };
    let mut counts = vec![0.0; BINS];
    for x in &all {
        counts[(((x - low) / width) as usize).min(BINS - 1)] += 1.0;
    }
    let centre = |k: usize| low + (k as f64 + 0.5) * width;
    let (x, y) = (0..BINS)
        .filter(|&k| high > low || counts[k] > 0.0)
        .map(|k| (centre(k), counts[k]))
        .unzip();
    let name = column.name.trim_start_matches("drift ");
    let left = column.values.len() - all.len();
    let note = match (left, log) {
        (0, _) => String::new(),
        (left, true) => {
            format!(" {} without drift, or that failed, are left out.", count(left as u64))
        }
        (left, false) => format!(" {} that failed are left out.", count(left as u64)),
    };
    let label =
        if log { format!("log₁₀ of the largest drift of {name}") } else { column.name.clone() };
    Some(Chart {
        title: if log {
            format!("Largest drift of {name}")
        } else {
            column.name.replace(" at T", " at the end")
        },
        note: format!("{} trajectories.{note}", count(all.len() as u64)),
        x: Axis::linear(label),
        y: Axis::linear("trajectories"),
        curves: vec![Curve {
            name: String::new(),
            colour: usize::from(log),
            x,
            y,
            style: Style::Bars,
            bounds: Vec::new(),
        }],
        ..Chart::default()
    })
}

/// Trajectories that are drawn one by one.
fn thinned(columns: &[Column], first: u64, numbers: usize) -> Samples {
    let rows = columns.first().map_or(0, |column| column.values.len());
    let kept = sampled::drawn(columns, numbers.min(DOTS * columns.len().max(1)));
    let mut all =
        vec![("trajectory".to_string(), kept.iter().map(|&k| first as f64 + k as f64).collect())];
    all.extend(
        columns.iter().map(|column| (column.name.clone(), sampled::at(&column.values, &kept))),
    );
    Samples { columns: all, of: rows, ..Samples::default() }
}

/// Initial axes: first the results over a varied quantity.
fn presets(run: &StoredRun, columns: &[Column]) -> Vec<Preset> {
    let varied = varied(run).first().copied().unwrap_or_default();
    let x = columns
        .iter()
        .find(|column| column.name == varied)
        .map_or("trajectory", |column| &column.name);
    let result = |column: &&Column| column.name.ends_with(" at T");
    let over = |column: &Column| Preset {
        name: format!("{} over {x}", column.name),
        x: x.to_string(),
        y: column.name.clone(),
        section: None,
    };
    let ends: Vec<&Column> = columns.iter().filter(result).collect();
    let mut presets: Vec<Preset> = ends.iter().map(|column| over(column)).collect();
    if let [a, b, ..] = ends[..] {
        let name = format!("{} over {}", b.name, a.name);
        presets.push(Preset { name, x: a.name.clone(), y: b.name.clone(), section: None });
    }
    presets.extend(columns.iter().filter(|column| column.drift).map(over));
    presets
}
