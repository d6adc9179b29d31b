//! A comparison as CSV.

use super::{Comparison, Row};
use crate::summary::RunCost;
use holonome_model::treatment::InvariantKind;
use holonome_model::treatment::feedback::gain_name;

impl Comparison {
    /// A header, and a line per run. One of `error` and `error_at_most` is empty; likewise for the
    /// largest error.
    pub fn to_csv(&self) -> String {
        const OF_ROW: &str = "method step rtol atol given_budget omega extrapolated steps error_time \
            error error_at_most largest_error largest_error_at_most order budget";
        const OF_INVARIANT: [&str; 6] =
            ["final_drift", "largest_drift", "slope", "growth", "oscillation", "secular"];
        let invariants = self.invariants();
        let mut header: Vec<String> = OF_ROW.split_whitespace().map(String::from).collect();
        header.extend(RunCost::default().counts().map(|(name, ..)| name.to_string()));
        header.push("wall_seconds".to_string());
        for &(name, kind) in &invariants {
            let name = gain_name(name, kind);
            header.extend(OF_INVARIANT.map(|what| format!("{what} {name}")));
        }
        header.push("failure".to_string());
        let columns = header.len();
        let rows = self.rows.iter().map(|row| line(csv_row(row, columns, &invariants)));
        std::iter::once(line(header)).chain(rows).collect()
    }
}

fn csv_row(row: &Row, columns: usize, invariants: &[(&str, InvariantKind)]) -> Vec<String> {
    fn cell<T: ToString>(value: Option<T>) -> String {
        value.map(|v| v.to_string()).unwrap_or_default()
    }
    let number = |value: Option<f64>| value.map(|v| format!("{v:e}")).unwrap_or_default();
    let mut cells = vec![row.method.clone(), cell(row.step), number(row.rtol), number(row.atol)];
    let (omega, extrapolated) = row.penalty.map(|p| (p.omega, p.extrapolated)).unzip();
    cells.extend([cell(row.budget), cell(omega), cell(extrapolated)]);
    match &row.outcome {
        Ok(m) => {
            cells.push(m.steps.to_string());
            cells.push(cell(m.errors.map(|e| e.t)));
            let errors =
                m.errors.map_or([None; 4], |e| [e.last, e.last_at_most, e.max, e.max_at_most]);
            cells.extend(errors.map(number));
            cells.push(cell(m.order));
            cells.push(m.cost.in_gradients().to_string());
            cells.extend(m.cost.counts().map(|(.., count)| count.to_string()));
            cells.push(m.cost.wall_seconds.to_string());
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
