//! Commands `sweep` and `merge`.

use crate::arguments::{MergeArguments, OutputArguments, SweepArguments, WorkerArguments};
use crate::closing::{cost_line, drift_table, stored_in};
use crate::exit::ExitCode;
use crate::interrupt::{INTERRUPTED, stop_flag};
use crate::measures::lines;
use crate::methods::note_other_names;
use crate::output::{moves_the_cursor, note, print_json, show_result, show_warnings, warn};
use crate::progress::Bar;
use crate::table::{count, exact, number};
use holonome::report::figures::text::shell_word;
use holonome::summary::time_with_unit;
use holonome::sweep::{EndingEvent, FailedTrajectory};
use holonome::{Control, Error, Resumed, Sweep, SweepProgress, SweepSummary, open_run};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub fn sweep(arguments: SweepArguments) -> Result<ExitCode, Error> {
    let (trajectory, output) = (&arguments.trajectory, arguments.output);
    let settings = trajectory.settings()?;
    let (mut options, ensemble) = (trajectory.options()?, arguments.sweep()?);
    if let (Some(option), None) = (arguments.worker.given(), &options.out) {
        return Err(Error::option(format!(
            "{option}: name the folder of the ensemble by --out, which all workers share"
        )));
    }
    options.method = trajectory.method()?;
    note_other_names(&trajectory.method, output);
    let mut sweep = Sweep::load(&trajectory.model.model, &settings, options, ensemble)?;
    sweep.simulation.warnings.extend(trajectory.unused());
    show_warnings(&sweep.simulation.problem, output);
    sweep.warnings().iter().for_each(|warning| warn(warning, output));
    let path = sweep.open()?.to_path_buf();
    let opened = match sweep.finished()? {
        Some(finished) => finished,
        None => Resumed::Continues(Box::new(sweep)),
    };
    resume(opened, &path, &arguments.worker, output)
}

/// Begin or go on with an ensemble, or report that it is finished.
pub fn resume(
    opened: Resumed<Sweep>,
    path: &Path,
    worker: &WorkerArguments,
    output: OutputArguments,
) -> Result<ExitCode, Error> {
    match opened {
        Resumed::Continues(sweep) => {
            let done = sweep.progress()?.done;
            if done > 0 {
                let (path, done) = (path.display(), count(done));
                note(&format!("{path} goes on after {done} trajectories\n"), output);
            }
            start(*sweep, worker, output)
        }
        Resumed::Finished { summary, json } => {
            let done = count(summary.trajectories);
            let text = format!(
                "{} is finished ({done} trajectories): there is nothing to resume\n",
                path.display()
            );
            note(&text, output);
            if output.json {
                print_json(&json);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

pub fn merge(arguments: MergeArguments) -> Result<ExitCode, Error> {
    let summary = holonome::sweep::merge(&arguments.out, &arguments.parts)?;
    let output = arguments.output;
    let done = count(summary.trajectories);
    let text = format!(
        "{done} trajectories of {} parts in {}\n",
        arguments.parts.len(),
        arguments.out.display()
    );
    note(&text, output);
    summary.warnings.iter().for_each(|warning| warn(warning, output));
    if output.json {
        print_json(&summary);
    }
    Ok(ExitCode::from(u8::from(summary.failed > 0)))
}

fn start(
    mut sweep: Sweep,
    worker: &WorkerArguments,
    output: OutputArguments,
) -> Result<ExitCode, Error> {
    sweep.warnings().iter().for_each(|warning| warn(warning, output));
    let share = worker.share()?;
    if worker.die_with_parent {
        end_with_parent();
    }
    let stop = stop_flag();
    let mut bar = Bar::new(!output.quiet && moves_the_cursor());
    show_progress(&mut bar, &sweep.progress()?);
    let mut watch = |progress: &SweepProgress| {
        show_progress(&mut bar, progress);
        if stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    };
    let mut result = sweep.run_share(&share, &mut watch);
    if let (true, Ok(summary)) = (worker.wait, &mut result)
        && summary.missing > 0
        && !summary.interrupted
    {
        match sweep.wait(&mut watch) {
            Ok(Some(all)) => *summary = all,
            Ok(None) => summary.interrupted = true,
            Err(error) => result = Err(error),
        }
    }
    bar.clear();
    let summary = result?;
    show_result(&describe(&summary), output);
    summary.warnings.iter().for_each(|warning| warn(warning, output));
    if let (true, Some(out)) = (summary.interrupted, &summary.out) {
        note(
            &format!("  go on:  holonome resume {}\n", shell_word(&out.display().to_string())),
            output,
        );
    }
    if output.json {
        print_json(&summary);
    }
    Ok(ExitCode::from(if summary.interrupted { INTERRUPTED } else { u8::from(summary.failed > 0) }))
}

fn show_progress(bar: &mut Bar, progress: &SweepProgress) {
    bar.show(progress.done as f64 / progress.of as f64, progress.done, |left, rate| {
        let failed = if progress.failed > 0 {
            format!(", {} failed", count(progress.failed))
        } else {
            String::new()
        };
        let (done, of) = (count(progress.done), count(progress.of));
        format!("{done} of {of} trajectories{failed}  {left} left  {rate}/s")
    });
}

/// Time between two looks whether the parent process still runs.
const PARENT: Duration = Duration::from_millis(250);

/// End this process when the one that started it ends. Nothing has to be done before: what is
/// stored is complete at any time.
#[cfg(unix)]
fn end_with_parent() {
    let parent = std::os::unix::process::parent_id();
    std::thread::spawn(move || {
        while std::os::unix::process::parent_id() == parent {
            std::thread::sleep(PARENT);
        }
        std::process::exit(i32::from(INTERRUPTED));
    });
}

#[cfg(not(unix))]
fn end_with_parent() {}

/// Closing table.
fn describe(summary: &SweepSummary) -> String {
    let (model, done, t) = (&summary.model, count(summary.trajectories), exact(summary.t));
    let t = time_with_unit(&t, &summary.units);
    let mut out = match summary.interrupted {
        true => format!("{model}: stopped after {done} trajectories\n"),
        false => {
            let steps = count(summary.steps);
            format!(
                "{model} by {}: {done} trajectories to t = {t}, {steps} steps\n",
                summary.method
            )
        }
    };
    if summary.missing > 0 && !summary.interrupted {
        out.push_str(&format!("  {} are left to other workers\n", count(summary.missing)));
    }
    for EndingEvent { event, trajectories, first, last } in &summary.ended {
        let (ended, [first, last]) = (count(*trajectories), [first, last].map(|&t| number(t)));
        out.push_str(&format!(
            "  {ended} of {done} ended at event {event}, from t = {first} to t = {last}\n"
        ));
    }
    let reached = summary.reached();
    if summary.failed > 0 {
        let failed = count(summary.failed);
        out.push_str(&format!(
            "  {} of {done} reached t = {t}, {failed} failed:\n",
            count(reached)
        ));
        for FailedTrajectory { trajectory, message } in &summary.failures {
            out.push_str(&format!("    trajectory {trajectory}: {message}\n"));
        }
        if summary.failed > summary.failures.len() as u64 {
            out.push_str("    …\n");
        }
    }
    out.push_str(&match &summary.drift {
        None => "  no drifts: they are those of trajectories that reach the end\n".to_string(),
        Some(drift) => drift_table(drift, summary.heated, &summary.units),
    });
    out.push_str(&lines(&summary.measures));
    out.push_str(&cost_line(&summary.cost));
    let stored = summary.out.as_deref().and_then(|out| open_run(out).ok());
    let renamed = stored.map(|run| run.renamed()).unwrap_or_default();
    out.push_str(&stored_in(summary.out.as_deref(), &renamed));
    out
}
