//! `compare`: several methods on one system.

use crate::arguments::CompareArguments;
use crate::closing::energies_first;
use crate::exit::ExitCode;
use crate::interrupt::{INTERRUPTED, stop_flag};
use crate::methods::note_other_names;
use crate::output::{note, print_json, show_result, show_warnings, warn};
use crate::progress::counting;
use crate::table::{columns, count, exact, number, small};
use holonome::compare::{
    COUNTED, Failed, MeasuredRun, Row, RowPenalty, Size, Trend, compare as run_all,
};
use holonome::model::treatment::InvariantKind;
use holonome::model::treatment::feedback::gain_name;
use holonome::report::ComparisonFolder;
use holonome::summary::RunCost;
use holonome::{Comparison, Control, Error, Problem};
use serde::Serialize;
use std::ffi::OsString;
use std::sync::atomic::Ordering;

/// Largest number of invariants in one table: more would not fit a terminal.
const INVARIANTS_ABREAST: usize = 4;

/// Result of a comparison that was stopped before any run was done.
#[derive(Serialize)]
struct Stopped<'a> {
    model: &'a str,
    interrupted: bool,
}

pub fn compare(arguments: CompareArguments, words: &[OsString]) -> Result<ExitCode, Error> {
    let output = arguments.output;
    let mut options = arguments.options()?;
    let settings = arguments.integration.settings(&arguments.model)?;
    let problem = Problem::load(&arguments.model.model, &settings)?;
    show_warnings(&problem, output);
    options.methods = arguments.methods()?;
    note_other_names(&arguments.methods, output);
    let folder = ComparisonFolder::create(arguments.out.as_deref(), &problem.name)?;
    let stop = stop_flag();
    let bar = counting(0, "", output);
    let compared = run_all(&problem, &options, &|progress| {
        if let Some(bar) = &bar {
            bar.set_length(progress.of as u64);
            bar.set_position(progress.done as u64);
        }
        if stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let Some(mut comparison) = compared? else {
        note("stopped before any run was done: nothing is stored\n", output);
        if output.json {
            print_json(&Stopped { model: &problem.name, interrupted: true });
        }
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let given = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    comparison.command = std::iter::once("holonome".to_string()).chain(given).collect();
    let path = folder.path().to_path_buf();
    folder.fill(&mut comparison)?;
    comparison.warnings.iter().for_each(|warning| warn(warning, output));
    show_result(&format!("{}  stored in {}\n", describe(&comparison), path.display()), output);
    if output.json {
        print_json(&comparison);
    }
    let none = comparison.rows.iter().all(|row| row.outcome.is_err());
    Ok(ExitCode::from(if comparison.interrupted { INTERRUPTED } else { u8::from(none) }))
}

/// Tables of a comparison.
fn describe(comparison: &Comparison) -> String {
    let mut out = format!("{} to t = {}\n", comparison.model, exact(comparison.t));
    out.push_str(&reference(comparison));
    out.push_str(&columns(&errors(comparison)));
    for row in &comparison.rows {
        if let Err(failed) = &row.outcome {
            let how = how_it_ended(failed);
            out.push_str(&format!(
                "  {how}: {} at {}: {}\n",
                row.label(),
                steps(row),
                failed.message
            ));
        }
    }
    out.push_str(&format!("  work: {COUNTED}\n"));
    out.push_str(&drifts(comparison));
    out
}

/// Word for a run that has no result.
fn how_it_ended(failed: &Failed) -> &'static str {
    if failed.kind == "interrupted" { "stopped" } else { "failed" }
}

/// Lines on the reference of the errors.
fn reference(comparison: &Comparison) -> String {
    let r = &comparison.reference;
    let names = format!(
        "{} at {:.0e}, checked by {} at {:.0e}",
        r.method, r.rtol, r.checked_by, r.checked_at
    );
    let why = r.reason.as_deref().unwrap_or_default();
    match r.good_until {
        Some(t) if t == comparison.t => {
            format!("  reference: {names}: they agree to {}\n", small(r.error.unwrap_or(f64::NAN)))
        }
        Some(t) => format!(
            "  reference: {names}: they agree to {}, but only until t = {}:\n    {why}\n  errors are those up to there; drifts and costs are of the whole run\n",
            small(r.error.unwrap_or(f64::NAN)),
            short(t)
        ),
        None => format!(
            "  reference: {names}: of no use\n    {why}\n  so no errors are known, only drifts\n"
        ),
    }
}

/// A method's fixed step or its tolerance.
fn steps(row: &Row) -> String {
    let steps = match (row.step, row.rtol, row.budget) {
        (Some(h), ..) => format!("h = {}", short(h)),
        (None, Some(rtol), _) => format!("tol {}", short(rtol)),
        (None, None, Some(budget)) => format!("budget {}", count(budget)),
        (None, None, None) => String::new(),
    };
    match row.penalty {
        Some(RowPenalty { omega, extrapolated: true }) => {
            format!("{steps}, omega {} and {}", short(omega), short(2.0 * omega))
        }
        Some(RowPenalty { omega, .. }) => format!("{steps}, omega {}", short(omega)),
        None => steps,
    }
}

/// Round to two digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}

/// Text of a number as it was written, if that is short.
fn short(value: f64) -> String {
    let exact =
        if (1e-3..1e4).contains(&value) { format!("{value}") } else { format!("{value:e}") };
    if exact.len() <= 7 { exact } else { format!("{value:.3e}") }
}

fn errors(comparison: &Comparison) -> Vec<Vec<String>> {
    let known = comparison.reference.good_until.is_some();
    type Count = fn(&RunCost) -> u64;
    let counts: [(&str, Count); 3] =
        [("field", |c| c.field), ("gradient", |c| c.gradient), ("Newton", |c| c.newton_iterations)];
    let used = |of: Count| comparison.rows.iter().flat_map(|r| &r.outcome).any(|m| of(&m.cost) > 0);
    let optional: Vec<_> = counts.into_iter().filter(|(_, of)| used(*of)).collect();
    let header = |list: &[&str]| list.iter().map(|s| s.to_string()).collect::<Vec<_>>();
    let mut head = header(&["", "", "steps"]);
    if known {
        let end = if comparison.reference.good_until == Some(comparison.t) {
            "error at T"
        } else {
            "last error"
        };
        head.extend(header(&[end, "largest", "order"]));
    }
    head.extend(optional.iter().map(|(name, _)| name.to_string()));
    head.extend(header(&["work", "time"]));
    let mut rows = vec![head];
    for row in &comparison.rows {
        let mut cells = vec![row.label(), steps(row)];
        match &row.outcome {
            Err(failed) => cells.push(how_it_ended(failed).to_string()),
            Ok(m) => {
                cells.push(count(m.steps));
                if known {
                    cells.extend(error_cells(m));
                }
                cells.extend(optional.iter().map(|(_, of)| count(of(&m.cost))));
                cells.extend([
                    count(m.cost.in_gradients()),
                    format!("{:.1e} s", m.cost.wall_seconds),
                ]);
            }
        }
        rows.push(cells);
    }
    rows
}

fn error_cells(measured: &MeasuredRun) -> [String; 3] {
    let size = |size: Size| match size {
        Size::Known(size) => small(size),
        Size::AtMost(size) => format!("<= {}", small(size)),
    };
    let order = measured.order.map(|p| format!("{p:.2}")).unwrap_or_default();
    match measured.errors {
        Some(errors) => [size(errors.at_end()), size(errors.largest()), order],
        None => Default::default(),
    }
}

/// Tables of the largest drift of every invariant, and of its growth if that is secular.
fn drifts(comparison: &Comparison) -> String {
    let measured = comparison.rows.iter().filter_map(|row| Some((row, row.outcome.as_ref().ok()?)));
    // An extrapolated row has no drift of its own.
    let runs: Vec<_> = measured.filter(|(row, _)| !row.is_extrapolated()).collect();
    let mut out = String::new();
    let mut secular = false;
    // H first, the rest as in the model.
    let mut order = comparison.invariants();
    order.sort_by_key(|&(_, kind)| energies_first(kind));
    for part in order.chunks(INVARIANTS_ABREAST) {
        let name = |&(name, kind): &(&str, InvariantKind)| gain_name(name, kind);
        let head = ["largest drift".to_string(), String::new()].into_iter();
        let mut rows = vec![head.chain(part.iter().map(name)).collect::<Vec<_>>()];
        for (row, measured) in &runs {
            let cells = part.iter().map(|&invariant| {
                let Some((drift, trend)) = measured.of(invariant) else { return String::new() };
                let growing = trend.filter(|t: &Trend| t.secular);
                secular |= growing.is_some();
                growing.map_or(small(drift.max), |t| {
                    format!("{} ({:+.1e} t)", small(drift.max), t.slope)
                })
            });
            rows.push([row.method.clone(), steps(row)].into_iter().chain(cells).collect());
        }
        // Scale of the drifts: nearly the same for all runs.
        let terms = part.iter().map(|&invariant| {
            let of = |measured: &MeasuredRun| {
                let (drift, _) = measured.of(invariant)?;
                Some(drift.max / drift.relative.filter(|relative| relative.max > 0.0)?.max)
            };
            let largest =
                runs.iter().filter_map(|(_, measured)| of(measured)).max_by(f64::total_cmp);
            largest.map_or(String::new(), |terms| number(rounded(terms)))
        });
        rows.push(
            ["terms that cancel".to_string(), String::new()].into_iter().chain(terms).collect(),
        );
        out.push_str(&columns(&rows));
    }
    if secular {
        out.push_str("  (s t): it grows all the time, by s per unit of time; the others oscillate or wander\n");
    }
    out
}
