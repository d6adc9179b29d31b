//! Commands `run`, `resume` and `export`.

use crate::arguments::{
    ExportArguments, Exported, OutputArguments, ResumeArguments, RunArguments, SummaryArguments,
    ThreadArguments,
};
use crate::closing::{cost_line, drift_table, stored_in};
use crate::exit::ExitCode;
use crate::interrupt::{INTERRUPTED, stop_flag};
use crate::measures::lines;
use crate::methods::note_other_names;
use crate::output::{
    Warnings, moves_the_cursor, note, print_json, print_json_of_run, show_result, warn,
    warn_of_ending,
};
use crate::progress::Bar;
use crate::report;
use crate::table::{columns, count, exact, number, small};
use holonome::orbit::{OrbitError, Second};
use holonome::report::figures::text::shell_word;
use holonome::store::{FORMATS, StoreError};
use holonome::summary::{Stability, time_with_unit, without_large_state};
use holonome::{
    Control, Error, EventTable, Longer, MethodTrial, Penalised, Problem, Progress, Resumed,
    RunOptions, Simulation, Summary, Sweep, open_run, prepare,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::Ordering;

pub fn run(arguments: RunArguments) -> Result<ExitCode, Error> {
    let (trajectory, output) = (&arguments.trajectory, arguments.output);
    let options = arguments.options()?;
    let settings = trajectory.settings()?;
    let problem = Problem::load(&trajectory.model.model, &settings)?;
    let warnings = Warnings::of(&problem);
    note_other_names(&trajectory.method, output);
    let prepared =
        trajectory.method().and_then(|method| prepare(problem, RunOptions { method, ..options }));
    warnings.show(prepared.as_ref().err(), output);
    let mut simulation = prepared?;
    simulation.warnings.extend(trajectory.unused());
    warn_of_threads(&trajectory.integration.threads, &simulation, output);
    let page = (arguments.report || arguments.open).then_some(arguments.open);
    start(simulation, page, (arguments.summary, output))
}

/// Warn of `--threads` without an effect: a trajectory is computed step by step, and only the sums
/// of a step may be long enough to be shared.
fn warn_of_threads(threads: &ThreadArguments, simulation: &Simulation, output: OutputArguments) {
    if threads.threads.is_some() && !simulation.is_divided() {
        warn("--threads has no effect: a single trajectory of this model takes one", output);
    }
}

pub fn resume(arguments: ResumeArguments) -> Result<ExitCode, Error> {
    let output = arguments.output;
    let longer = Longer { until: arguments.until, max_steps: arguments.max_steps };
    if longer != Longer::default() {
        if let Some(option) = arguments.worker.given() {
            return Err(Error::option(format!(
                "{option}: only an ensemble has several workers, and it is not extended"
            )));
        }
        let simulation = Simulation::prolong(&arguments.run, longer)?;
        warn_of_threads(&arguments.threads, &simulation, output);
        let (run, from) = (arguments.run.display(), exact(simulation.time()));
        let text = match longer.until {
            Some(until) => format!("{run} goes on from t = {from} to t = {}\n", exact(until)),
            None => format!("{run} goes on at t = {from}\n"),
        };
        note(&text, output);
        return start(simulation, None, (arguments.summary, output));
    }
    if let Some(sweep) = Sweep::resume(&arguments.run)? {
        return crate::sweep::resume(sweep, &arguments.run, &arguments.worker, output);
    }
    if let Some(option) = arguments.worker.given() {
        let run = arguments.run.display();
        return Err(Error::option(format!("{option}: {run} is a single run, not an ensemble")));
    }
    match Simulation::resume(&arguments.run)? {
        Resumed::Continues(simulation) => {
            warn_of_threads(&arguments.threads, &simulation, output);
            note(
                &format!(
                    "{} goes on at t = {}\n",
                    arguments.run.display(),
                    exact(simulation.time())
                ),
                output,
            );
            start(*simulation, None, (arguments.summary, output))
        }
        Resumed::Finished { summary, json } => {
            let text = format!(
                "{} is finished (t = {:?} after {} steps): there is nothing to resume\n",
                arguments.run.display(),
                summary.t.unwrap_or(f64::NAN),
                count(summary.steps.unwrap_or_default())
            );
            note(&text, output);
            print_summary(Shown::Stored(json), arguments.summary, output);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Summary of a run to be printed.
enum Shown {
    /// Summary of a run that has just ended.
    New(Box<Summary>),
    /// Stored summary, as JSON.
    Stored(Value),
}

/// Print the JSON object of a run, if it is wanted; a large state is left out of it unless that is
/// wanted, too.
fn print_summary(
    mut summary: Shown,
    SummaryArguments { state }: SummaryArguments,
    output: OutputArguments,
) {
    if !output.json {
        if state {
            warn("--state has no effect without --json", output);
        }
        return;
    }
    let left_out = match &mut summary {
        _ if state => None,
        Shown::New(summary) => summary.leave_out_large_state(),
        Shown::Stored(summary) => without_large_state(summary),
    };
    if let Some(size) = left_out {
        warn(
            &format!("the state is left out, as it has {} numbers: --state prints it", count(size)),
            output,
        );
    }
    match summary {
        Shown::New(summary) => print_json_of_run(*summary),
        Shown::Stored(summary) => print_json(&summary),
    }
}

/// True if standard output was closed when the program began. Its runtime has then opened
/// `/dev/null` there, for reading as well, which no redirection does.
fn stdout_is_closed() -> bool {
    let null =
        std::fs::read_link("/proc/self/fd/1").is_ok_and(|path| path == Path::new("/dev/null"));
    let flags = std::fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default();
    let flags = flags
        .lines()
        .find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    const READ_AND_WRITE: u32 = 2;
    null && flags.is_some_and(|flags| flags & 3 == READ_AND_WRITE)
}

/// Result of `export`: a run, and the file by the name of its format.
#[derive(Serialize)]
struct Export {
    run: String,
    #[serde(flatten)]
    file: BTreeMap<&'static str, String>,
    samples: usize,
}

pub fn export(arguments: ExportArguments) -> Result<ExitCode, Error> {
    let run = open_run(&arguments.run)?;
    if run.samples() == 0 && !arguments.output.quiet {
        let (run, word) =
            (arguments.run.display(), shell_word(&arguments.run.display().to_string()));
        say!(
            "warning: {run} has no samples: it stopped before any was stored, and `holonome resume {word}` goes on with it\n"
        );
    }
    let Exported { format, path } = &arguments.exported;
    let name = format.name;
    if path.as_os_str() == "-" {
        if arguments.output.json {
            return Err(Error::option(format!(
                "--{name} - and --json both want stdout: name a file after --{name}, or leave --json out"
            )));
        }
        if stdout_is_closed() {
            say!("error: standard output is closed: redirect it, or name a file after --{name}\n");
            return Ok(ExitCode::FAILURE);
        }
        return match format.write(&run, std::io::stdout()) {
            // Whoever closed the pipe has read enough.
            Err(StoreError::Write { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
                Ok(ExitCode::SUCCESS)
            }
            written => written.map(|()| ExitCode::SUCCESS).map_err(Error::store),
        };
    }
    warn_of_ending(path, name, FORMATS.iter().map(|format| format.name), arguments.output);
    format.export(&run, path).map_err(Error::store)?;
    let (samples, shown) = (run.states(), arguments.run.display());
    let of = match run.trajectories() {
        Some(_) => format!(" of {} trajectories", count(run.samples() as u64)),
        None => String::new(),
    };
    note(
        &format!("{} samples{of} of {shown} in {}\n", count(samples as u64), path.display()),
        arguments.output,
    );
    if arguments.output.json {
        let run = shown.to_string();
        let file = [(name, path.display().to_string())].into();
        print_json(&Export { run, file, samples });
    }
    Ok(ExitCode::SUCCESS)
}

/// Run the simulation. With `page` a page of the run is written, and opened if that is true.
fn start(
    mut simulation: Simulation,
    page: Option<bool>,
    (shown, output): (SummaryArguments, OutputArguments),
) -> Result<ExitCode, Error> {
    simulation.warn_of_size();
    simulation.all_warnings().iter().for_each(|warning| warn(warning, output));
    if let Some(gain) = simulation.gain().filter(|g| g.starts_with("auto")) {
        note(&format!("gain {gain}\n"), output);
    }
    if let Some(penalty) = simulation.penalty() {
        note(&describe_penalty(penalty), output);
    }
    let stop = stop_flag();
    let mut bar = Bar::new(!output.quiet && moves_the_cursor());
    let result = simulation.run(&mut |progress| {
        show_progress(&mut bar, progress);
        if stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    });
    bar.clear();
    let summary = result?;
    show_result(&describe(&summary), output);
    summary.warnings.iter().for_each(|warning| warn(warning, output));
    if let Some(out) = &summary.out {
        if let Some(open) = page {
            report::of_run(out, open, output)?;
        }
        note(&next(&summary, out, page.is_some()), output);
    }
    let interrupted = summary.interrupted;
    print_summary(Shown::New(Box::new(summary)), shown, output);
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Line on the penalty of a run.
pub fn describe_penalty(penalty: &Penalised) -> String {
    let moved = match &penalty.moved {
        Some(moved) => format!(
            "starts on the slow manifold, positions moved by {}, momenta by {}",
            small(moved.position),
            small(moved.momentum)
        ),
        None => "starts off the slow manifold".to_string(),
    };
    format!("penalty omega = {}; {moved}\n", penalty.text)
}

fn show_progress(bar: &mut Bar, progress: &Progress) {
    bar.show(
        (progress.t - progress.from) / (progress.until - progress.from),
        progress.steps,
        |left, rate| {
            let drift = progress
                .drift
                .as_ref()
                .map_or(String::new(), |(name, d)| format!("  drift {name} {}", small(*d)));
            format!("t = {:.2}  {left} left{drift}  {rate} steps/s", progress.t)
        },
    );
}

/// Closing table.
fn describe(summary: &Summary) -> String {
    let t = time_with_unit(&exact(summary.t), &summary.units);
    let steps = count(summary.steps);
    let mut out = if summary.interrupted {
        format!("{} by {}: stopped at t = {t} after {steps} steps\n", summary.model, summary.method)
    } else if let Some(event) = &summary.ended_by {
        let Summary { model, method, .. } = summary;
        format!("{model} by {method}: event {event} at t = {t} after {steps} steps\n")
    } else {
        format!("{} by {}: t = {t} after {steps} steps\n", summary.model, summary.method)
    };
    out.push_str(&summary.trial.as_ref().map_or(String::new(), trial_line));
    out.push_str(&drift_table(&summary.drift, summary.heated, &summary.units));
    out.push_str(&match &summary.error {
        Some(error) => error_table(error),
        None if summary.heated => String::new(),
        None => "  drift is not error: --error measures that, `holonome compare` finds chaos\n"
            .to_string(),
    });
    out.push_str(&event_table(&summary.events));
    out.push_str(&lines(&summary.measures));
    out.push_str(&cost_line(&summary.cost));
    if let Some(Stability { max, mean }) = summary.stability {
        out.push_str(&format!(
            "  gain {}: h*lambda_max/r is {mean:.3} in the mean, {max:.3} at most\n",
            summary.gain.as_deref().unwrap_or_default()
        ));
    }
    out.push_str(&stored_in(summary.out.as_deref(), &summary.renamed));
    out
}

/// Line on the trial that has chosen the method.
fn trial_line(trial: &MethodTrial) -> String {
    let others = trial.times.iter().filter(|(_, times)| **times != Some(1.0));
    let others = others.map(|(method, times)| {
        let times = times.map_or("several".to_string(), |times| format!("{times:.1}"));
        format!("{method} {times} times")
    });
    let others = others.collect::<Vec<_>>().join(", ");
    format!("  the fastest by trial; estimates for others: {others} as long (--method overrules)\n")
}

/// Table of the events, a line for each name; nothing without events.
fn event_table(events: &[EventTable]) -> String {
    if events.is_empty() {
        return String::new();
    }
    let mut rows = vec![["event", "count", "first", "last"].map(String::from).to_vec()];
    for EventTable { name, t, .. } in events {
        let time = |t: Option<&f64>| t.map_or("-".to_string(), |&t| number(t));
        rows.push(vec![name.clone(), t.len().to_string(), time(t.first()), time(t.last())]);
    }
    columns(&rows)
}

/// Table of the orbit's error, a line for each variable.
fn error_table(error: &OrbitError) -> String {
    let second = match error.second {
        Second::Step(h) => format!("h = {}, a third with 2/3 of it", exact(h)),
        Second::Tolerance(rtol) => format!("rtol {}", number(rtol)),
    };
    let mut rows = vec![["error", "at the end", "largest", "relative"].map(String::from).to_vec()];
    for (name, f) in &error.families {
        rows.push(vec![name.clone(), small(f.last), small(f.max), small(f.relative)]);
    }
    let mut out = format!("{}  by a second run with {second}\n", columns(&rows));
    if let Some(t) = error.separated {
        out.push_str(&format!(
            "  the two orbits separate at t = {}: beyond, this is one motion of many\n  (`holonome compare` tells how far any can be computed)\n",
            number(t)
        ));
    }
    out
}

/// Line with the command that most people want next: to look at the run, or to take its data
/// elsewhere.
fn next(summary: &Summary, path: &Path, has_page: bool) -> String {
    let run = shell_word(&path.display().to_string());
    match (summary.interrupted, has_page) {
        (true, _) => format!("  go on:  holonome resume {run}\n"),
        (false, false) => format!("  next:   holonome report {run} --open\n"),
        (false, true) => {
            format!(
                "  next:   holonome export {run} --csv {}\n",
                shell_word(&format!("{}.csv", summary.model))
            )
        }
    }
}
