//! Tables of measured results.

use crate::table::{columns, count, exact, number, small};
use holonome::Table;

/// All tables; means of single numbers are in one.
pub fn tables(tables: &[Table]) -> String {
    let mut out = means(tables);
    for table in tables.iter().filter(|table| !is_mean(table)) {
        let mut rows = vec![table.columns.clone()];
        rows.extend(table.rows.iter().map(|row| cells(table, row)));
        out.push_str(&format!("{}\n{}", title(table), columns(&rows)));
    }
    out
}

/// Means, and a line on every other table.
pub fn lines(tables: &[Table]) -> String {
    let mut out = means(tables);
    for table in tables.iter().filter(|table| !is_mean(table)) {
        let column = |name: &str| table.columns.iter().position(|column| column == name);
        let shown = |row: &[f64], name: &str| {
            column(name).map_or("-".to_string(), |place| number(row[place]))
        };
        let with_error = |row: &[f64], name: &str| match column("error").map(|place| row[place]) {
            Some(error) if !error.is_nan() => format!("{} ± {}", shown(row, name), small(error)),
            _ => shown(row, name),
        };
        // In a box g tells more than the density of distances, of which the long ones are many.
        let of_box = column("g").filter(|&g| table.rows.iter().any(|row| !row[g].is_nan()));
        let height = of_box.map(|g| ("g", g)).or_else(|| Some(("density", column("density")?)));
        let line = match height {
            Some((name, height)) => {
                let highest = table.rows.iter().filter(|row| !row[height].is_nan());
                highest.max_by(|a, b| a[height].total_cmp(&b[height])).map(|row| {
                    let (from, to, high) =
                        (shown(row, "from"), shown(row, "to"), with_error(row, name));
                    format!("highest from {from} to {to}, {name} = {high}")
                })
            }
            None => table
                .rows
                .last()
                .map(|row| format!("{} after {}", with_error(row, "mean"), shown(row, "time"))),
        };
        out.push_str(&format!(
            "  {}: {}\n",
            title(table),
            line.unwrap_or_else(|| "no samples".to_string())
        ));
    }
    out
}

fn means(tables: &[Table]) -> String {
    let means: Vec<&Table> = tables.iter().filter(|table| is_mean(table)).collect();
    let Some(first) = means.first() else { return String::new() };
    let mut rows =
        vec![[String::new()].into_iter().chain(first.columns.iter().cloned()).collect::<Vec<_>>()];
    rows.extend(means.iter().flat_map(|table| {
        let row = |(row, label): (&Vec<f64>, &String)| {
            [label.clone()].into_iter().chain(cells(table, row)).collect()
        };
        table.rows.iter().zip(&table.labels).map(row)
    }));
    columns(&rows)
}

fn is_mean(table: &Table) -> bool {
    !table.labels.is_empty()
}

fn title(table: &Table) -> String {
    match &table.name {
        None => table.measure.clone(),
        Some(_) => {
            let (from, until) = table.span;
            let samples = count(table.samples as u64);
            format!("{}, {samples} samples, t = {} to {}", table.measure, exact(from), exact(until))
        }
    }
}

fn cells(table: &Table, row: &[f64]) -> Vec<String> {
    row.iter().zip(&table.columns).map(|(&value, column)| cell(column, value)).collect()
}

fn cell(column: &str, value: f64) -> String {
    match column {
        _ if value.is_nan() => "-".to_string(),
        "error" => small(value),
        "independent" => count(value.round() as u64),
        _ => number(value),
    }
}
