//! `analyse`: averages of a stored run, as tables.

use crate::arguments::AnalyseArguments;
use crate::output::{print_json, show_result, warn};
use crate::table::{columns, count, exact, number, small};
use holonome::{Analysis, Error, Measure, Table, analyse as measured};
use std::process::ExitCode;

pub fn analyse(arguments: AnalyseArguments) -> Result<ExitCode, Error> {
    let output = arguments.output;
    let measures = arguments.measures.iter().map(|text| text.parse()).collect::<Result<Vec<Measure>, Error>>()?;
    let analysis = measured(&arguments.run, &measures, arguments.from)?;
    if analysis.left_out > 0 {
        let (left_out, of) = (analysis.left_out, analysis.trajectories);
        warn(&format!("{left_out} of {of} trajectories ended early and are left out"), output);
    }
    show_result(&text(&analysis), output);
    if output.json {
        print_json(&analysis.to_json());
    }
    Ok(ExitCode::SUCCESS)
}

fn text(analysis: &Analysis) -> String {
    let (from, until) = analysis.span;
    let of = match analysis.trajectories {
        1 => String::new(),
        trajectories => format!(" of {} trajectories", count(trajectories as u64)),
    };
    let samples = count(analysis.samples as u64);
    let mut out = format!("{samples} samples{of}, t = {} to {}\n", exact(from), exact(until));
    // Means stand in one table.
    let is_mean = |table: &&Table| !table.labels.is_empty();
    let means: Vec<&Table> = analysis.tables.iter().filter(is_mean).collect();
    if let Some(first) = means.first() {
        let mut rows = vec![heading("", first)];
        rows.extend(means.iter().flat_map(|table| {
            table.rows.iter().zip(&table.labels).map(|(row, label)| {
                let cells = row.iter().enumerate().map(|(k, &value)| cell(table.columns[k], value));
                [label.clone()].into_iter().chain(cells).collect()
            })
        }));
        out.push_str(&columns(&rows));
    }
    for table in analysis.tables.iter().filter(|table| !is_mean(table)) {
        let mut rows = vec![heading(&table.measure, table)[1..].to_vec()];
        rows.extend(table.rows.iter().map(|row| {
            row.iter().enumerate().map(|(k, &value)| cell(table.columns[k], value)).collect::<Vec<String>>()
        }));
        out.push_str(&format!("{}\n{}", table.measure, columns(&rows)));
    }
    out
}

fn heading(first: &str, table: &Table) -> Vec<String> {
    [first].iter().chain(&table.columns).map(|name| name.to_string()).collect()
}

fn cell(column: &str, value: f64) -> String {
    match column {
        _ if value.is_nan() => "-".to_string(),
        "error" => small(value),
        "independent" => count(value.round() as u64),
        _ => number(value),
    }
}
