//! A comparison as JSON and as CSV.

use super::errors::Size;
use super::{Comparison, Failed, Row, Trend, budget_of};
use crate::summary::{counts, drift_json};
use holonome_model::treatment::InvariantKind;
use holonome_model::treatment::feedback::gain_name;
use serde_json::{Map, Value, json};
use std::path::Path;

impl Comparison {
    /// The object that `compare --json` prints.
    pub fn to_json(&self, out: &Path) -> Value {
        let reference = &self.reference;
        let mut all = json!({
            "model": self.model, "t": self.t,
            "reference": {
                "method": reference.method.to_string(), "rtol": reference.rtol,
                "checked_by": reference.checked_by.to_string(), "checked_at": reference.checked_at,
                "error": reference.good_until.map(|_| reference.error), "good_until": reference.good_until,
                "reason": reference.reason,
            },
            "rows": self.rows.iter().map(|row| row_json(row, self.hamiltonian)).collect::<Vec<_>>(),
            "warnings": self.warnings,
            "source": self.source, "command": self.command, "out": out.display().to_string(),
        });
        if let (true, Some(object)) = (self.interrupted, all.as_object_mut()) {
            object.insert("interrupted".to_string(), json!(true));
        }
        all
    }

    /// A header, and a line per run. One of `error` and `error_at_most` is empty; likewise for the
    /// largest error.
    pub fn to_csv(&self) -> String {
        let invariants = self.invariants();
        let mut header: Vec<String> = [
            "method",
            "step",
            "rtol",
            "atol",
            "given_budget",
            "omega",
            "extrapolated",
            "steps",
            "error_time",
            "error",
            "error_at_most",
            "largest_error",
            "largest_error_at_most",
            "order",
            "budget",
        ]
        .map(String::from)
        .to_vec();
        header.extend(counts(&Default::default()).map(|(name, _)| name.to_string()));
        header.push("wall_seconds".to_string());
        for &(name, kind) in &invariants {
            let name = gain_name(name, kind);
            header.extend(
                ["final_drift", "largest_drift", "slope", "growth", "oscillation", "secular"]
                    .map(|what| format!("{what} {name}")),
            );
        }
        header.push("failure".to_string());
        let columns = header.len();
        let mut out = line(header);
        for row in &self.rows {
            out.push_str(&line(csv_row(row, columns, &invariants)));
        }
        out
    }
}

fn row_json(row: &Row, hamiltonian: bool) -> Value {
    let (rtol, atol) = row.tolerance.unzip();
    let mut all = Map::new();
    let mut set = |key: &str, value: Value| drop(all.insert(key.to_string(), value));
    set("method", json!(row.method.to_string()));
    set("step", json!(row.step));
    set("rtol", json!(rtol));
    set("atol", json!(atol));
    set("budget", json!(row.budget));
    if let Some(omega) = row.penalty {
        set("penalty", json!({"omega": omega, "extrapolated": row.extrapolated}));
    }
    match &row.outcome {
        Ok(measured) => {
            set("steps", json!(measured.steps));
            set("error", measured.errors.map_or(Value::Null, |e| {
                let [(last, last_at_most), (max, max_at_most)] = [e.last, e.max].map(split);
                json!({"t": e.t, "final": last, "final_at_most": last_at_most, "max": max, "max_at_most": max_at_most})
            }));
            set("order", json!(measured.order));
            set("drift", Value::Object(drift_json(&measured.drift, hamiltonian)));
            let trends = measured.drift.iter().zip(&measured.trend);
            set(
                "trend",
                trends
                    .map(|(drift, trend)| (gain_name(&drift.name, drift.kind), trend_json(trend)))
                    .collect(),
            );
            let mut cost: Map<String, Value> = counts(&measured.cost)
                .into_iter()
                .map(|(name, count)| (name.to_string(), json!(count)))
                .collect();
            cost.insert("budget".to_string(), json!(budget_of(&measured.cost)));
            cost.insert("wall_seconds".to_string(), json!(measured.wall_seconds));
            set("cost", Value::Object(cost));
        }
        Err(Failed { kind, message, t }) => {
            set("failure", json!({"kind": kind, "message": message, "t": t}))
        }
    }
    Value::Object(all)
}

fn trend_json(trend: &Option<Trend>) -> Value {
    trend.map_or(
        Value::Null,
        |t| json!({"slope": t.slope, "growth": t.growth, "oscillation": t.oscillation, "secular": t.secular}),
    )
}

/// The error if it is known, otherwise its upper bound.
fn split(size: Size) -> (Option<f64>, Option<f64>) {
    match size {
        Size::Known(size) => (Some(size), None),
        Size::AtMost(size) => (None, Some(size)),
    }
}

fn csv_row(row: &Row, columns: usize, invariants: &[(&str, InvariantKind)]) -> Vec<String> {
    fn cell<T: ToString>(value: Option<T>) -> String {
        value.map(|v| v.to_string()).unwrap_or_default()
    }
    let number = |value: Option<f64>| value.map(|v| format!("{v:e}")).unwrap_or_default();
    let (rtol, atol) = row.tolerance.unzip();
    let mut cells =
        vec![row.method.to_string(), cell(row.step), number(rtol), number(atol), cell(row.budget)];
    cells.extend([cell(row.penalty), cell(row.penalty.map(|_| row.extrapolated))]);
    match &row.outcome {
        Ok(m) => {
            cells.push(m.steps.to_string());
            cells.push(cell(m.errors.map(|e| e.t)));
            for size in [m.errors.map(|e| e.last), m.errors.map(|e| e.max)] {
                let (known, at_most) = size.map(split).unwrap_or_default();
                cells.extend([number(known), number(at_most)]);
            }
            cells.push(cell(m.order));
            cells.push(budget_of(&m.cost).to_string());
            cells.extend(counts(&m.cost).map(|(_, count)| count.to_string()));
            cells.push(m.wall_seconds.to_string());
            for &invariant in invariants {
                let (drift, trend) = m.of(invariant).unzip();
                let trend = trend.flatten();
                cells.extend([drift.map(|d| d.last), drift.map(|d| d.max)].map(number));
                cells.extend(
                    [trend.map(|t| t.slope), trend.map(|t| t.growth), trend.map(|t| t.oscillation)]
                        .map(number),
                );
                cells.push(cell(trend.map(|t| t.secular)));
            }
            cells.resize(columns, String::new());
        }
        Err(failed) => {
            cells.resize(columns - 1, String::new());
            cells.push(failed.message.clone());
        }
    }
    cells
}

/// A line of CSV; cells are quoted if necessary.
fn line(cells: Vec<String>) -> String {
    let quote = |cell: String| match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    };
    cells.into_iter().map(quote).collect::<Vec<_>>().join(",") + "\n"
}
