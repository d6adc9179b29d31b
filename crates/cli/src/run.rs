//! `run`, `resume` and `export`.

use crate::arguments::{ExportArguments, OutputArguments, ResumeArguments, RunArguments};
use crate::progress::Bar;
use crate::table::{columns, count, small};
use crate::{INTERRUPTED, print_json};
use holonome::model::treatment::InvariantKind;
use holonome::simulation::open_run;
use holonome::store::{StoreError, csv};
use holonome::summary::{Cost, Drift};
use holonome::{Control, Error, Penalised, Problem, Progress, Simulation, Summary, Sweep};
use std::io::{ErrorKind, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub fn run(arguments: RunArguments) -> Result<ExitCode, Error> {
    let output = arguments.output;
    let options = arguments.options()?;
    let settings = arguments.integration.settings(&arguments.model)?;
    let problem = Problem::load(&arguments.model.model, &settings)?;
    show_warnings(&problem, output);
    let simulation = Simulation::new(problem, options)?;
    start(simulation, output)
}

pub fn resume(arguments: ResumeArguments) -> Result<ExitCode, Error> {
    if let Some(until) = arguments.until {
        let simulation = Simulation::extend(&arguments.run, until)?;
        if !arguments.output.quiet {
            say!("{} goes on from t = {} to t = {until}\n", arguments.run.display(), simulation.time());
        }
        return start(simulation, arguments.output);
    }
    if let Some(sweep) = Sweep::resume(&arguments.run)? {
        return crate::sweep::resume(sweep, &arguments.run, arguments.output);
    }
    match Simulation::resume(&arguments.run)? {
        Ok(simulation) => {
            if !arguments.output.quiet {
                say!("{} goes on at t = {}\n", arguments.run.display(), simulation.time());
            }
            start(simulation, arguments.output)
        }
        Err(summary) => {
            if !arguments.output.quiet {
                let (t, steps) = (&summary["t"], summary["steps"].as_u64().unwrap_or_default());
                say!(
                    "{} is finished (t = {t} after {} steps): there is nothing to resume\n",
                    arguments.run.display(),
                    count(steps)
                );
            }
            if arguments.output.json {
                print_json(&summary);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Whether standard output was closed when the program began. Its runtime has then opened `/dev/null` there, for reading
/// as well, which no redirection does.
fn stdout_is_closed() -> bool {
    let null = std::fs::read_link("/proc/self/fd/1").is_ok_and(|path| path == Path::new("/dev/null"));
    let flags = std::fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default();
    let flags = flags.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    const READ_AND_WRITE: u32 = 2;
    null && flags.is_some_and(|flags| flags & 3 == READ_AND_WRITE)
}

pub fn export(arguments: ExportArguments) -> Result<ExitCode, Error> {
    let run = open_run(&arguments.run)?;
    if run.samples() == 0 && !arguments.output.quiet {
        let run = arguments.run.display();
        say!(
            "warning: {run} has no samples: it stopped before any was stored, and `holonome resume {run}` goes on with it\n"
        );
    }
    if arguments.csv.as_os_str() == "-" {
        if arguments.output.json {
            return Err(Error::option(
                "--csv - and --json both want stdout: name a file for the CSV, or leave --json out",
            ));
        }
        if stdout_is_closed() {
            say!("error: standard output is closed: redirect it, or name a file after --csv\n");
            return Ok(ExitCode::FAILURE);
        }
        return match csv::write(&run, std::io::stdout().lock()) {
            // Whoever closed the pipe has read enough.
            Err(StoreError::Write { source, .. }) if source.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            written => written.map(|()| ExitCode::SUCCESS).map_err(Error::store),
        };
    }
    csv::export(&run, &arguments.csv).map_err(Error::store)?;
    if !arguments.output.quiet {
        say!("{} samples of {} in {}\n", count(run.samples() as u64), arguments.run.display(), arguments.csv.display());
    }
    if arguments.output.json {
        print_json(
            &serde_json::json!({"run": arguments.run.display().to_string(), "csv": arguments.csv.display().to_string(), "samples": run.samples()}),
        );
    }
    Ok(ExitCode::SUCCESS)
}

pub fn show_warnings(problem: &Problem, output: OutputArguments) {
    if output.quiet {
        return;
    }
    say!("{}", problem.source.render(&problem.warnings(), std::io::stderr().is_terminal()));
    if let Some(moved) = &problem.projected {
        say!(
            "the initial state was moved onto the constraint set: positions by {}, momenta by {}\n",
            small(moved.position),
            small(moved.momentum)
        );
    }
}

fn start(mut simulation: Simulation, output: OutputArguments) -> Result<ExitCode, Error> {
    simulation.warn_of_size();
    if !output.quiet {
        for warning in &simulation.warnings {
            say!("warning: {warning}\n");
        }
        if let Some(gain) = simulation.gain().filter(|g| g.starts_with("auto")) {
            say!("gain {gain}\n");
        }
        if let Some(penalty) = simulation.penalty() {
            say!("{}", describe_penalty(penalty));
        }
    }
    let stop = stop_flag();
    let mut bar = Bar::new(!output.quiet && std::io::stderr().is_terminal());
    let result = simulation.run(&mut |progress| {
        show_progress(&mut bar, progress);
        if stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    });
    bar.clear();
    let summary = result?;
    if !output.quiet {
        say!("{}", describe(&summary));
        for warning in &summary.warnings {
            say!("warning: {warning}\n");
        }
    }
    if output.json {
        print_json(&summary.to_json());
    }
    Ok(if summary.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// What a penalised run is made with.
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
    bar.show(progress.t / progress.until, progress.steps, |left, rate| {
        let drift = progress.drift.as_ref().map_or(String::new(), |(name, d)| format!("  drift {name} {}", small(*d)));
        format!("t = {:.2}  {left} left{drift}  {rate} steps/s", progress.t)
    });
}

/// What Ctrl-C sets.
pub fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    // A second handler cannot be set, and none is: a command calls this once.
    let _ = ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed));
    stop
}

/// The closing table.
fn describe(summary: &Summary) -> String {
    let mut out = if summary.interrupted {
        format!(
            "{} by {}: stopped at t = {} after {} steps\n",
            summary.model,
            summary.method,
            summary.t,
            count(summary.steps)
        )
    } else {
        format!("{} by {}: t = {} after {} steps\n", summary.model, summary.method, summary.t, count(summary.steps))
    };
    out.push_str(&drift_table(&summary.drift));
    out.push_str(&cost_line(&summary.cost, summary.wall_seconds));
    if let Some((max, mean)) = summary.stability {
        out.push_str(&format!(
            "  gain {}: h*lambda_max/r is {mean:.3} in the mean, {max:.3} at most\n",
            summary.gain.as_deref().unwrap_or_default()
        ));
    }
    out.push_str(&format!("  stored in {}\n", summary.out.display()));
    out.push_str(&next(summary, &summary.out));
    out
}

/// Energies first, the rest as in the model.
pub fn energies_first(kind: InvariantKind) -> usize {
    match kind {
        InvariantKind::Hamiltonian => 0,
        InvariantKind::Penalised => 1,
        InvariantKind::ModifiedEnergy => 2,
        _ => 3,
    }
}

/// The drift of every invariant, a line each.
pub fn drift_table(drift: &[Drift]) -> String {
    if drift.is_empty() {
        return "  no invariants are known of this model; state some with `integral`\n".to_string();
    }
    let mut rows =
        vec![vec!["".to_string(), "initial".to_string(), "final drift".to_string(), "largest drift".to_string()]];
    let mut drift: Vec<_> = drift.iter().collect();
    drift.sort_by_key(|d| energies_first(d.kind));
    for d in drift {
        let label = match d.kind {
            InvariantKind::Constraint => format!("constraint {}", d.name),
            InvariantKind::Hidden => format!("hidden constraint {}", d.name),
            InvariantKind::Hamiltonian => "Hamiltonian H".to_string(),
            InvariantKind::Penalised => "H with the penalty".to_string(),
            InvariantKind::ModifiedEnergy => "modified energy".to_string(),
            InvariantKind::Integral => format!("integral {}", d.name),
        };
        let initial = match &d.initial {
            serde_json::Value::Null => String::new(),
            value => shorten(value),
        };
        rows.push(vec![label, initial, small(d.last), small(d.max)]);
    }
    columns(&rows)
}

/// What a run or an ensemble has cost.
pub fn cost_line(cost: &Cost, wall_seconds: f64) -> String {
    let mut parts = Vec::new();
    // Methods that keep the structure evaluate forces, others the field.
    if cost.field > 0 || cost.gradient == 0 {
        parts.push(format!("{} field evaluations", count(cost.field)));
    }
    for (what, n) in [
        ("force evaluations", cost.gradient),
        ("Hessians", cost.hessian),
        ("rejected steps", cost.rejected),
        ("linear solves", cost.linear_solves),
        ("Newton iterations", cost.newton_iterations),
    ] {
        if n > 0 {
            parts.push(format!("{} {what}", count(n)));
        }
    }
    format!("  cost: {}, {wall_seconds:.3} s\n", parts.join(", "))
}

fn next(summary: &Summary, path: &Path) -> String {
    if summary.interrupted {
        format!("  go on:  holonome resume {}\n", path.display())
    } else {
        format!("  next:   holonome export {} --csv {}.csv\n", path.display(), summary.model)
    }
}

/// A value for a table cell: numbers to six digits.
fn shorten(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(list) => format!("({})", list.iter().map(shorten).collect::<Vec<_>>().join(", ")),
        other => other.as_f64().map_or_else(
            || other.to_string(),
            |v| {
                let text = format!("{v:.6}");
                text.trim_end_matches('0').trim_end_matches('.').to_string()
            },
        ),
    }
}
