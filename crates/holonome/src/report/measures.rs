//! Panels of the measures of a run or an ensemble.

use crate::measure;
use holonome_figures::numbers::{number, small};
use holonome_figures::{Axis, Chart, Curve, Panel, Style, Table};

/// Panels of the measures in a summary: a chart of each, and a table of means.
pub(super) fn panels(all: &[measure::Table]) -> Vec<Panel> {
    let charts: Vec<(String, Chart)> = all
        .iter()
        .filter(|table| table.labels.is_empty())
        .map(|table| (name(table), chart(table)))
        .collect();
    let mut rows = vec![["", "mean", "error"].map(str::to_string).to_vec()];
    for table in all {
        let shown =
            |(label, row): (&String, &Vec<f64>)| vec![label.clone(), number(row[0]), small(row[1])];
        rows.extend(table.labels.iter().zip(&table.rows).map(shown));
    }
    let means = (rows.len() > 1).then(|| {
        let note = "With standard errors.".to_string();
        Panel::Table(Table { title: "Averages".to_string(), rows, note, ..Table::default() })
    });
    (!charts.is_empty()).then_some(Panel::Charts(charts)).into_iter().chain(means).collect()
}

fn name(table: &measure::Table) -> String {
    table.name.clone().unwrap_or_else(|| table.measure.clone())
}

fn chart(table: &measure::Table) -> Chart {
    let column = |name: &str| table.columns.iter().position(|column| column == name);
    let values = |place: usize| table.rows.iter().map(move |row| row[place]);
    let (x, y, style, axis, label) = match (column("from"), column("to"), column("density")) {
        (Some(from), Some(to), Some(density)) => {
            let middle = values(from).zip(values(to)).map(|(from, to)| 0.5 * (from + to)).collect();
            match column("within") {
                Some(_) => (middle, Some(density), Style::Line, "distance", "density"),
                None => (middle, Some(density), Style::Bars, "value", "density"),
            }
        }
        _ => (
            column("time").into_iter().flat_map(values).collect(),
            column("mean"),
            Style::Line,
            "time",
            "mean",
        ),
    };
    let error = column("error")
        .map_or(f64::NAN, |error| values(error).filter(|e| !e.is_nan()).fold(0.0, f64::max));
    let (from, until) = table.span;
    Chart {
        title: table.measure.clone(),
        note: format!(
            "{} samples from t = {from} to {until}; standard errors up to {error:.1e}.",
            table.samples
        ),
        x: Axis::linear(axis),
        y: Axis::linear(label),
        curves: vec![Curve {
            name: String::new(),
            colour: 0,
            y: y.into_iter().flat_map(values).collect(),
            x,
            style,
            bounds: Vec::new(),
        }],
        ..Chart::default()
    }
}
