//! The command line: flags to library calls, results to a terminal or to JSON. It decides nothing.

/// Text for the reader of the terminal, on stderr. Unlike `eprint!` it does not mind a closed pipe.
macro_rules! say {
    ($($argument:tt)*) => {{
        use std::io::Write;
        let _ = write!(std::io::stderr(), $($argument)*);
    }};
}

mod arguments;
mod check;
mod compare;
mod methods;
mod progress;
mod run;
mod show;
mod sweep;
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
    report_panics(json);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error, json),
    };
    let result = match cli.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Compare(arguments) => compare::compare(arguments),
        Command::Sweep(arguments) => sweep::sweep(arguments),
        Command::Merge(arguments) => sweep::merge(arguments),
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

/// A mistake of the program itself is said as such, and is an error like any other for who called it.
fn report_panics(json: bool) {
    std::panic::set_hook(Box::new(move |panic| {
        say!(
            "internal error: {panic}\n  this is a mistake in holonome, not in your model: please report it together with the model\n"
        );
        if json {
            print_json(&json!({"error": {"kind": "internal", "message": panic.to_string()}}));
        }
        std::process::exit(1);
    }));
}

/// Help, version, or a command line that clap cannot read.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    let harmless = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if json && !harmless {
        // What is wrong stands before the first empty line, in one line or as a short list.
        let text = error.to_string();
        let what: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let message = what.join(" ");
        print_json(&json!({"error": {"kind": "usage", "message": message.trim_start_matches("error: ")}}));
    }
    // A closed pipe is nobody's mistake.
    let _ = error.print();
    ExitCode::from(if harmless { 0 } else { 2 })
}

/// Tells the user what went wrong; programs get the same as JSON.
fn fail(error: &Error, json: bool) -> ExitCode {
    match error {
        Error::Model { text, diagnostics } => say!("{}", text.render(diagnostics, std::io::stderr().is_terminal())),
        other => say!("error: {other}\n"),
    }
    if let Error::Failed { out: Some(path), samples: 1.., .. } = error {
        say!("  look at it:  holonome export {} --csv FILE\n", path.display());
    }
    if json {
        print_json(&error.to_json());
    }
    ExitCode::from(error.exit_code())
}

/// One JSON object on stdout.
fn print_json(value: &Value) {
    print_text(&format!("{value}\n"));
}

/// Text that is the command's result, on stdout.
fn print_text(text: &str) {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever closed the pipe has read enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            say!("error: cannot write to stdout: {error}\n");
            std::process::exit(1);
        }
        _ => {}
    }
}
