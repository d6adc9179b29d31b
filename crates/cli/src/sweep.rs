//! `sweep` and `merge`.

use crate::arguments::{MergeArguments, OutputArguments, SweepArguments};
use crate::progress::Bar;
use crate::run::{cost_line, drift_table, show_warnings, stop_flag};
use crate::table::count;
use crate::{INTERRUPTED, print_json};
use holonome::{Control, Error, Settings, Sweep, SweepProgress, SweepSummary};
use serde_json::Value;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

pub fn sweep(arguments: SweepArguments) -> Result<ExitCode, Error> {
    let run = &arguments.run;
    let settings =
        Settings { start_off_set: run.reference.is_some(), stiff: run.stiff.clone(), ..run.model.settings()? };
    let sweep = Sweep::load(&run.model.model, &settings, run.options()?, arguments.sweep()?)?;
    show_warnings(&sweep.simulation.problem, run.output);
    start(sweep, run.output)
}

/// Goes on with an ensemble, or says that it is finished.
pub fn resume(opened: Result<Sweep, Value>, path: &Path, output: OutputArguments) -> Result<ExitCode, Error> {
    match opened {
        Ok(sweep) => {
            if !output.quiet {
                say!("{} goes on after {} trajectories\n", path.display(), count(sweep.progress().done));
            }
            start(sweep, output)
        }
        Err(summary) => {
            if !output.quiet {
                let done = summary["trajectories"].as_u64().unwrap_or_default();
                say!("{} is finished ({} trajectories): there is nothing to resume\n", path.display(), count(done));
            }
            if output.json {
                print_json(&summary);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

pub fn merge(arguments: MergeArguments) -> Result<ExitCode, Error> {
    let summary = holonome::sweep::merge(&arguments.out, &arguments.parts)?;
    if !arguments.output.quiet {
        let done = summary["trajectories"].as_u64().unwrap_or_default();
        say!("{} trajectories of {} parts in {}\n", count(done), arguments.parts.len(), arguments.out.display());
    }
    if arguments.output.json {
        print_json(&summary);
    }
    Ok(ExitCode::SUCCESS)
}

fn start(mut sweep: Sweep, output: OutputArguments) -> Result<ExitCode, Error> {
    if !output.quiet {
        for warning in sweep.warnings() {
            say!("warning: {warning}\n");
        }
    }
    let stop = stop_flag();
    let mut bar = Bar::new(!output.quiet && std::io::stderr().is_terminal());
    show_progress(&mut bar, &sweep.progress());
    let result = sweep.run(&mut |progress| {
        show_progress(&mut bar, progress);
        if stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    });
    bar.clear();
    let summary = result?;
    if !output.quiet {
        say!("{}", describe(&summary));
    }
    if output.json {
        print_json(&summary.to_json());
    }
    Ok(if summary.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn show_progress(bar: &mut Bar, progress: &SweepProgress) {
    bar.show(progress.done as f64 / progress.of as f64, progress.done, |left, rate| {
        let failed = if progress.failed > 0 { format!(", {} failed", count(progress.failed)) } else { String::new() };
        let (done, of) = (count(progress.done), count(progress.of));
        format!("{done} of {of} trajectories{failed}  {left} left  {rate}/s")
    });
}

/// The closing table.
fn describe(summary: &SweepSummary) -> String {
    let how = if summary.interrupted { "stopped after" } else { "by" };
    let mut out = match summary.interrupted {
        true => format!("{}: {how} {} trajectories\n", summary.model, count(summary.trajectories)),
        false => format!(
            "{} {how} {}: {} trajectories to t = {}, {} steps\n",
            summary.model,
            summary.method,
            count(summary.trajectories),
            summary.t,
            count(summary.steps)
        ),
    };
    out.push_str(&drift_table(&summary.drift));
    out.push_str(&cost_line(&summary.cost, summary.wall_seconds));
    if summary.failed > 0 {
        out.push_str(&format!("warning: {} trajectories ended early:\n", count(summary.failed)));
        for (number, reason) in &summary.failures {
            out.push_str(&format!("  trajectory {number}: {reason}\n"));
        }
    }
    out.push_str(&format!("  stored in {}\n", summary.out.display()));
    if summary.interrupted {
        out.push_str(&format!("  go on:  holonome resume {}\n", summary.out.display()));
    }
    out
}
