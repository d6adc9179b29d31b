//! Command lines that cannot be read: the option that was probably meant.

use crate::arguments::Cli;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use holonome::store::FORMATS;
use std::ffi::OsString;

/// Options and the names that other programs have for them.
const OTHER_NAMES: [(&str, &[&str]); 15] = [
    ("--step", &["--dt", "--h", "--timestep", "--time-step", "--stepsize", "--step-size"]),
    (
        "--until",
        &[
            "--time",
            "--t",
            "--T",
            "--tend",
            "--t-end",
            "--tmax",
            "--t-max",
            "--end",
            "--duration",
            "--to",
            "-t",
        ],
    ),
    ("--from", &["--t0", "--start", "--tstart", "--t-start", "--begin"]),
    (
        "--rtol",
        &["--tol", "--tolerance", "--reltol", "--rel-tol", "--eps", "--accuracy", "--precision"],
    ),
    ("--atol", &["--abstol", "--abs-tol"]),
    ("--method", &["--integrator", "--solver", "--scheme", "--algorithm", "-m"]),
    ("--set", &["--param", "--params", "--parameter", "--define", "--with", "-p", "-D"]),
    ("--over", &["--scan", "--grid", "--product"]),
    ("--vary", &["--range", "--linspace"]),
    ("--trajectories", &["--runs", "--ensemble", "--count", "--members", "-n", "-N"]),
    (
        "--every",
        &["--dt-out", "--interval", "--stride", "--save-every", "--output-every", "--saveat"],
    ),
    ("--samples", &["--points", "--npoints", "--frames", "--outputs"]),
    ("--threads", &["--jobs", "--cores", "--cpus", "--nproc", "-j"]),
    ("--inverse-temperature", &["--temperature", "--temp", "--kT", "--beta-inverse"]),
    ("--out", &["--dir", "--folder", "--save", "-o"]),
];

/// Add to an error about an unknown argument the option that has this name here, or the format that
/// a file needs.
pub fn advise(error: &mut clap::Error, words: &[OsString]) {
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg).cloned() else {
        return;
    };
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let all = Cli::command();
    let Some(command) = words.iter().find_map(|word| all.find_subcommand(word)) else { return };
    let of = |command: &Command, option: &str| {
        command.get_arguments().any(|known| {
            known.get_long().is_some() && known.get_long() == option.strip_prefix("--")
        })
    };
    let has = |option: &str| of(command, option);
    // A tip how to pass an option as a file helps nobody.
    if unknown.starts_with('-') {
        error.remove(ContextKind::Suggested);
    }
    let named =
        OTHER_NAMES.iter().find(|(option, names)| has(option) && names.contains(&unknown.as_str()));
    if let Some((option, _)) = named {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(option.to_string()));
    } else if let Some((_, ending)) = unknown.rsplit_once('.')
        && let Some(flag) = FORMATS
            .iter()
            .map(|format| format.name)
            .chain(["svg", "png", "pdf"])
            .find(|f| *f == ending)
        && has(&format!("--{flag}"))
    {
        error
            .insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{flag} {unknown}")));
    } else if let Some(other) = all.get_subcommands().find(|other| of(other, &unknown)) {
        error.remove(ContextKind::SuggestedArg);
        let tip = format!("'{unknown}' is an option of `holonome {}`", other.get_name());
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}
