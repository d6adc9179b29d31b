//! Pages of ensembles: all trajectories at once.

use super::command::command;
use super::histories::varied;
use super::invariants::{cost_rows, drift_table, invariants};
use super::{AGAIN, Axes, histories, model_section, sampled, section};
use crate::error::Error;
use crate::recording::TIME;
use crate::store::{Status, StoredRun};
use crate::summary::StoredSummary;
use holonome_figures::numbers::{count, number};
use holonome_figures::{Axis, Chart, Curve, Map, Page, Panel, Preset, Samples, Style, Table};
use holonome_words::option;
use serde_json::Value;

/// Number of bins of a histogram.
const BINS: usize = 60;

/// Maximum number of columns of the trajectories.
const COLUMNS: usize = 24;

/// Number of panels of histories that nobody asked for.
const PANELS: usize = 3;

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
    page.sections.push(section(panels(run, &columns, &summary, numbers)?));
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
) -> Result<Vec<Panel>, Error> {
    let mut panels = super::measures::panels(&summary.measures);
    let varied = varied(run);
    let maps = maps(run, columns)?;
    let histories = histories::of_page(run)?;
    let fans = histories.iter().map(|h| (h.name().to_string(), h.fan())).collect();
    let densities = histories.iter().filter_map(|h| Some((h.name().to_string(), h.density()?)));
    for charts in [maps, fans, densities.collect()] {
        if !charts.is_empty() {
            panels.push(Panel::Charts(charts));
        }
    }
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
    Ok(panels)
}

/// Maps of the results of a grid of two dimensions, the states at the end first, drifts last as powers
/// of ten; empty for other ensembles.
fn maps(run: &StoredRun, columns: &[Column]) -> Result<Vec<(String, Chart)>, Error> {
    let names = run.grid();
    let values = run.grid_values().map_err(Error::store)?;
    let long: Vec<(&String, &Vec<f64>)> =
        names.iter().zip(&values).filter(|(_, values)| values.len() > 1).collect();
    let [(x_name, x), (y_name, y)] = long[..] else { return Ok(Vec::new()) };
    let is_result = |column: &&Column| {
        column.values.len() == x.len() * y.len()
            && !names.contains(&column.name)
            && column.values.iter().any(|value| *value != column.values[0])
    };
    let mut shown: Vec<&Column> = columns.iter().filter(is_result).collect();
    shown.sort_by_key(|column| (column.drift, !column.name.ends_with(" at T")));
    let chart = |column: &Column| {
        let name = match column.drift {
            true => format!("log₁₀ of the largest {}", column.name),
            false => column.name.clone(),
        };
        // The last dimension runs fastest.
        let at = |k: usize| column.values[(k % x.len()) * y.len() + k / x.len()];
        let value = |k: usize| match column.drift {
            true if at(k) > 0.0 => at(k).log10(),
            true => f64::NAN,
            false => at(k),
        };
        let values = (0..x.len() * y.len()).map(value).collect();
        let chart = Chart {
            title: format!("{name} over {x_name} and {y_name}"),
            note: format!("{} trajectories of a grid.", count(run.samples() as u64)),
            x: Axis::linear(x_name.clone()),
            y: Axis::linear(y_name.clone()),
            map: Some(Map { name, x: x.clone(), y: y.clone(), values }),
            ..Chart::default()
        };
        (column.name.clone(), chart)
    };
    Ok(shown.into_iter().map(chart).collect())
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

/// Charts of an ensemble: histories over time if these are asked for; by default the map of a grid, or
/// a result of all trajectories over a varied quantity, or if none has values of its own, histories.
pub(super) fn charts(run: &StoredRun, axes: &Axes) -> Result<Vec<Chart>, Error> {
    let columns = read(run)?;
    if axes.x.as_deref() == Some(TIME) {
        let wanted = |name: &str| axes.y.is_empty() || axes.y.iter().any(|y| names(y, name));
        let most = if axes.y.is_empty() { PANELS } else { usize::MAX };
        let histories = histories::histories(run, most, &wanted)?;
        if histories.is_empty() {
            return Err(Error::option(format!(
                "{} has no samples of such a quantity between start and end: record them by {}",
                run.path().display(),
                option("every")
            )));
        }
        return Ok(histories.iter().map(|history| history.fan()).collect());
    }
    if axes.map.is_some() || !axes.are_chosen() {
        let mut maps = maps(run, &columns)?;
        let named = |(name, _): &(String, Chart), wanted: &str| {
            name == wanted || name.strip_suffix(" at T") == Some(wanted)
        };
        if let Some(wanted) = &axes.map {
            let Some(place) = maps.iter().position(|map| named(map, wanted)) else {
                let known: Vec<&str> = maps.iter().map(|(name, _)| name.as_str()).collect();
                let help = match known.is_empty() {
                    true => {
                        format!("it is no grid of two dimensions: give two by {}", option("over"))
                    }
                    false => format!("it has {}", known.join(", ")),
                };
                let path = run.path().display();
                return Err(Error::option(format!("{path} has no map of '{wanted}'; {help}")));
            };
            return Ok(vec![maps.swap_remove(place).1]);
        }
        if !maps.is_empty() {
            return Ok(vec![maps.swap_remove(0).1]);
        }
        let spread = varied(run).iter().any(|name| columns.iter().any(|c| c.name == *name));
        let histories =
            if spread { Vec::new() } else { histories::histories(run, PANELS, &|_| true)? };
        if !histories.is_empty() {
            return Ok(histories.iter().map(|history| history.fan()).collect());
        }
    }
    Ok(vec![over(run, axes, columns)?])
}

/// True if a name chooses a column: its own, that of its quantity, or that with any member.
fn names(chosen: &str, column: &str) -> bool {
    let quantity = || column.split(['.', '[']).next();
    column == chosen || quantity() == Some(chosen)
}

/// A result of all trajectories over a varied quantity.
fn over(run: &StoredRun, axes: &Axes, columns: Vec<Column>) -> Result<Chart, Error> {
    let first = run.trajectories().map_or(0, |range| range.start);
    let samples = thinned(&columns, first, DOTS * (columns.len() + 1));
    let begin = presets(run, &columns).into_iter().next();
    sampled::points(&samples.columns, (axes, begin), |name, known| {
        let path = run.path().display();
        Error::option(format!("{path} has no column '{name}'; it has {known}"))
    })
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
