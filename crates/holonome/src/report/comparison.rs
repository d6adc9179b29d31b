//! Comparisons: work–precision diagrams and the table of all rows.

use super::invariants::invariants;
use super::section;
use crate::summary::COUNTED;
use holonome_figures::numbers::{count, exact, number, small};
use holonome_figures::text::shell_word;
use holonome_figures::{Axis, Chart, Curve, Figure, Level, Page, Panel, Section, Style, Table};
use serde_json::Value;

/// A row of the comparison, with its name.
struct Row<'v> {
    name: String,
    value: &'v Value,
}

impl Row<'_> {
    /// Error at the end; true if it is a bound.
    fn error(&self) -> Option<(f64, bool)> {
        let error = &self.value["error"];
        error["final"]
            .as_f64()
            .map(|e| (e, false))
            .or_else(|| error["final_at_most"].as_f64().map(|e| (e, true)))
    }
}

fn rows(comparison: &Value) -> Vec<Row<'_>> {
    let all = comparison["rows"].as_array().into_iter().flatten();
    let name = |value: &Value| {
        let method = value["method"].as_str().unwrap_or_default();
        if value["penalty"]["extrapolated"] == true {
            format!("{method}, extrapolated")
        } else {
            method.to_string()
        }
    };
    all.map(|value| Row { name: name(value), value }).collect()
}

/// A quantity of a row: its value, and true if it is a bound.
type Quantity<'q> = &'q dyn Fn(&Row) -> Option<(f64, bool)>;

/// A line per method: a quantity over the cost under the key `work.0`.
fn chart(rows: &[Row], title: &str, work: (&str, &str), label: &str, of: Quantity) -> Chart {
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows {
        let Some((y, bound)) = of(row).filter(|(y, _)| y.is_finite() && *y > 0.0) else { continue };
        let Some(x) = row.value["cost"][work.0].as_f64() else { continue };
        // Smallest time that a clock resolves.
        let x = x.max(1e-9);
        let k = curves.iter().position(|curve| curve.name == row.name).unwrap_or_else(|| {
            curves.push(Curve {
                name: row.name.clone(),
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

/// Measures of work: key and axis label.
const CLOCK: (&str, &str) = ("wall_seconds", "time in seconds");
const WORK: (&str, &str) = ("budget", "work in gradients");

/// Figure of a comparison, from the object in its `compare.json`; `None` if there is nothing to
/// draw.
pub(crate) fn work_precision_figure(comparison: &Value) -> Option<Figure> {
    let panels: Vec<Chart> =
        work_precision(comparison).into_iter().map(|(_, chart)| chart).collect();
    (!panels.is_empty()).then_some(Figure { panels })
}

/// Charts of the error over time and over work, by name; of the drift of the energy (or of the
/// first invariant) if no error is known. Empty if there is neither.
pub(super) fn work_precision(comparison: &Value) -> Vec<(String, Chart)> {
    let rows = rows(comparison);
    let title = format!(
        "{}, T = {}",
        comparison["model"].as_str().unwrap_or_default(),
        comparison["t"].as_f64().map_or(String::new(), number)
    );
    let reference = &comparison["reference"];
    let hamiltonian = rows.iter().any(|row| row.value["drift"]["hidden"].is_object());
    let what = if hamiltonian { "error in (q, p)" } else { "error in the state" };
    let label = match (reference["good_until"].as_f64(), comparison["t"].as_f64()) {
        (Some(good), Some(end)) if good < end => format!("{what} at t = {}", number(good)),
        _ => format!("{what} at T"),
    };
    let floor = reference["error"].as_f64().filter(|error| *error > 0.0);
    let both = |label: &str, of: Quantity| {
        [("by time", CLOCK), ("by work", WORK)]
            .map(|(name, work)| (name.to_string(), chart(&rows, &title, work, label, of)))
    };
    let mut charts = both(&label, &|row: &Row| row.error()).to_vec();
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
        let first =
            rows.iter().find_map(|row| Some(invariants(&row.value["drift"]).first()?.key.clone()));
        let Some(key) = first else { return Vec::new() };
        charts = both(&format!("largest drift of {key}"), &|row: &Row| drift(row, &key)).to_vec();
    }
    charts.retain(|(_, chart)| !chart.is_empty());
    charts
}

fn drift(row: &Row, key: &str) -> Option<(f64, bool)> {
    let invariant =
        invariants(&row.value["drift"]).into_iter().find(|invariant| invariant.key == key)?;
    Some((invariant.max, false))
}

/// Page of a comparison.
pub(super) fn page(comparison: &Value) -> Page {
    let rows = rows(comparison);
    let model = comparison["model"].as_str().unwrap_or_default();
    let mut page = Page { title: format!("{model}: methods compared"), ..Page::default() };
    let reference = &comparison["reference"];
    let mut fact = |name: &str, value: String| page.facts.push((name.to_string(), value));
    fact("until t =", comparison["t"].as_f64().map_or(String::new(), number));
    fact(
        "reference",
        format!(
            "{}, rtol {}",
            reference["method"].as_str().unwrap_or("none"),
            reference["rtol"].as_f64().map_or(String::new(), number)
        ),
    );
    if let Some(error) = reference["error"].as_f64() {
        fact("its error", small(error));
    }
    page.warnings.extend(reference["reason"].as_str().map(str::to_string));
    page.warnings.extend(
        comparison["warnings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_string),
    );
    let mut panels = Vec::new();
    let mut precision = work_precision(comparison);
    for (name, chart) in &mut precision {
        chart.title = format!("Work–precision, {name}");
    }
    if !precision.is_empty() {
        panels.push(Panel::Charts(precision));
    }
    let mut keys: Vec<String> = Vec::new();
    for invariant in rows.iter().flat_map(|row| invariants(&row.value["drift"])) {
        if !keys.contains(&invariant.key) {
            keys.push(invariant.key);
        }
    }
    let drifts = keys.iter().map(|key| {
        let title = format!("Largest drift of {key}");
        (
            key.clone(),
            chart(&rows, &title, CLOCK, &format!("largest drift of {key}"), &|row: &Row| {
                drift(row, key)
            }),
        )
    });
    let drifts: Vec<_> = drifts.filter(|(_, chart)| !chart.is_empty()).collect();
    if !drifts.is_empty() {
        panels.push(Panel::Charts(drifts));
    }
    page.sections.push(section(panels));
    page.sections.push(section(vec![Panel::Table(table(&rows, &keys))]));
    let text = |title: &str, text: String| Panel::Text { title: title.to_string(), text };
    let words: Option<Vec<&str>> =
        comparison["command"].as_array().and_then(|all| all.iter().map(Value::as_str).collect());
    let mut texts = Vec::new();
    texts.extend(
        comparison["source"]
            .as_str()
            .map(|source| text(&format!("{model}.holo"), source.to_string())),
    );
    let line = words
        .filter(|words| !words.is_empty())
        .map(|words| words.into_iter().map(shell_word).collect::<Vec<_>>());
    texts.extend(line.map(|line| text("Made again by", line.join(" "))));
    page.sections.push(Section {
        title: "The model".to_string(),
        panels: texts,
        ..Section::default()
    });
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
        let value = row.value;
        let size = value["step"]
            .as_f64()
            .map(exact)
            .or_else(|| value["rtol"].as_f64().map(|rtol| format!("rtol {}", number(rtol))));
        let mut line = vec![row.name.clone(), size.unwrap_or_default()];
        if let Some(message) = value["failure"]["message"].as_str() {
            line.push(message.to_string());
            line.resize(cells[0].len(), String::new());
            cells.push(line);
            continue;
        }
        line.push(value["steps"].as_u64().map_or(String::new(), count));
        line.push(row.error().map_or(String::new(), |(e, bound)| {
            if bound { format!("≤ {}", small(e)) } else { small(e) }
        }));
        line.push(value["order"].as_f64().map_or(String::new(), |order| format!("{order:.2}")));
        line.push(value["cost"]["budget"].as_u64().map_or(String::new(), count));
        line.push(
            value["cost"]["wall_seconds"].as_f64().map_or(String::new(), |s| format!("{s:.2e}")),
        );
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
