//! The command line: flags to library calls, results to a terminal or to JSON. It decides nothing.

mod arguments;
mod check;
mod methods;
mod run;
mod show;
mod table;

use arguments::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use holonome::Error;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Stopped by Ctrl-C.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let json = std::env::args_os().any(|a| a == "--json");
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error, json),
    };
    let result = match cli.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Resume(arguments) => run::resume(arguments),
        Command::Check(arguments) => check::check(arguments),
        Command::Methods(arguments) => methods::methods(arguments),
        Command::Show(arguments) => show::show(arguments),
        Command::Export(arguments) => run::export(arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => fail(&error, json),
    }
}

/// Help, version, or a command line that clap cannot read.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    let harmless = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if json && !harmless {
        let message = error.to_string();
        let first = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
        print_json(&json!({"error": {"kind": "usage", "message": first}}));
    }
    // A closed pipe is nobody's mistake.
    let _ = error.print();
    ExitCode::from(if harmless { 0 } else { 2 })
}

/// Tells the user what went wrong; programs get the same as JSON.
fn fail(error: &Error, json: bool) -> ExitCode {
    match error {
        Error::Model { text, diagnostics } => eprint!("{}", text.render(diagnostics, std::io::stderr().is_terminal())),
        other => eprintln!("error: {other}"),
    }
    if let Error::Failed { out: Some(path), .. } = error {
        eprintln!("  look at it:  holonome export {} --csv FILE", path.display());
    }
    if json {
        print_json(&error.to_json());
    }
    ExitCode::from(error.exit_code())
}

/// One JSON object on stdout.
fn print_json(value: &Value) {
    let mut out = std::io::stdout().lock();
    // Whoever closed the pipe has read enough.
    let _ = writeln!(out, "{value}").and_then(|()| out.flush());
}

/// Text that is the command's result, on stdout.
fn print_text(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
