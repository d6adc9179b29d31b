//! The command line: flags to library calls, results to a terminal or to JSON. It decides nothing.

/// Print text for the reader of the terminal, on stderr. Unlike `eprint!` it ignores a closed pipe,
/// and nothing in the text acts on the terminal.
macro_rules! say {
    ($($argument:tt)*) => {{
        use std::io::Write;
        let text = format!($($argument)*);
        let _ = std::io::stderr().write_all(holonome::report::figures::text::visible_lines(&text).as_bytes());
    }};
}

mod analyse;
mod animate;
mod arguments;
mod check;
mod closing;
mod compare;
mod completions;
mod exit;
mod integrals;
mod interrupt;
mod measures;
mod methods;
mod mistakes;
mod output;
mod progress;
mod report;
mod reproduce;
mod run;
mod show;
mod status;
mod sweep;
mod table;

use crate::exit::ExitCode;
use arguments::{Cli, Colour, Command};
use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches};
use holonome::report::figures::text::{shell_word, visible};
use holonome::{Error, ErrorFacts, ErrorReport};
use output::{coloured, print_json, say_rendered};
use std::ffi::OsString;

/// Run the command that these words are, the name of the program first, and return its exit status.
/// A process runs one: it sets how the process spells options, treats signals and reports panics.
pub fn run_command(words: Vec<OsString>) -> u8 {
    interrupt::outlive_file_limit();
    holonome::return_freed_arrays();
    holonome::spell_options(holonome::Spelling::Flags);
    let json = words.iter().any(|word| word == "--json");
    report_panics(json);
    report_exhausted_memory(json);
    let code = match parse(&words) {
        Ok(cli) => {
            let result = cli.command.start_threads().and_then(|()| execute(cli.command, &words));
            result.unwrap_or_else(|error| fail(&error, json))
        }
        Err(error) => usage(&error, json),
    };
    code.number()
}

/// Execute a command, which these words are.
fn execute(command: Command, words: &[OsString]) -> Result<ExitCode, Error> {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Compare(arguments) => compare::compare(arguments, words),
        Command::Sweep(arguments) => sweep::sweep(arguments),
        Command::Merge(arguments) => sweep::merge(arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Command::Resume(arguments) => run::resume(arguments),
        Command::Status(arguments) => status::status(arguments),
        Command::Check(arguments) => check::check(arguments),
        Command::Integrals(arguments) => integrals::integrals(arguments),
        Command::Methods(arguments) => methods::methods(arguments),
        Command::Show(arguments) => show::show(arguments),
        Command::Export(arguments) => run::export(arguments),
        Command::Animate(arguments) => animate::animate(&arguments),
        Command::Analyse(arguments) => analyse::analyse(arguments),
        Command::Report(arguments) => report::report(arguments),
        Command::Plot(arguments) => report::plot(arguments),
        Command::Completions(arguments) => completions::completions(arguments),
    }
}

/// Read the command line. The choice of `--color` holds for errors in it, too.
fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let said = |(k, word): (usize, &OsString)| {
        let word = word.to_str()?;
        let value = match word {
            "--color" => words.get(k + 1)?.to_str()?,
            word => word.strip_prefix("--color=")?,
        };
        <Colour as clap::ValueEnum>::from_str(value, false).ok()
    };
    let choice = match words.iter().enumerate().find_map(said).unwrap_or_default() {
        Colour::Auto => ColorChoice::Auto,
        Colour::Always => ColorChoice::Always,
        Colour::Never => ColorChoice::Never,
    };
    let read = |words: &[OsString]| {
        let matches =
            Cli::command().color(choice).try_get_matches_from(words).map_err(|mut error| {
                mistakes::advise(&mut error, words);
                error
            })?;
        Cli::from_arg_matches(&matches)
    };
    let cli = read(words).map_err(|error| {
        // The message repeats words: it is made again with words that are fit to be shown.
        let shown: Vec<OsString> =
            words.iter().map(|word| visible(&word.to_string_lossy()).into_owned().into()).collect();
        if shown == words { error } else { read(&shown).err().unwrap_or(error) }
    })?;
    output::choose_colour(cli.color);
    Ok(cli)
}

/// Error that is not one of the library.
fn error_report(kind: &str, message: String) -> ErrorReport {
    ErrorReport { error: ErrorFacts::new(kind, message) }
}

/// Report a mistake of the program itself as such, and to the caller as an error like any other.
fn report_panics(json: bool) {
    std::panic::set_hook(Box::new(move |panic| {
        say!(
            "internal error: {panic}\n  this is a mistake in holonome, not in your model: please report it together with the model\n"
        );
        if json {
            print_json(&error_report("internal", panic.to_string()));
        }
        std::process::exit(1);
    }));
}

/// Report that the system gives no more memory as an error like any other.
fn report_exhausted_memory(json: bool) {
    let message = "the system gives no more memory: make the model smaller with --set, or store fewer states with --samples and less of each with --record";
    let report = output::json_of(&error_report("memory", message.to_string()));
    let stdout = if json { format!("{report}\n") } else { String::new() };
    holonome::report_exhausted_memory(format!("error: {message}\n"), stdout);
}

/// Print help, version, or the error of a command line that clap cannot read.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    let harmless = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if json && !harmless {
        // The error is before the first empty line, in one line or as a short list; tips are below
        // it.
        let text = error.to_string();
        let lines = || text.lines().map(str::trim);
        let what: Vec<&str> = lines().take_while(|line| !line.is_empty()).collect();
        let tips =
            lines().filter_map(|line| line.strip_prefix("tip: ")).map(|tip| format!("; {tip}"));
        let message = what.join(" ") + &tips.collect::<String>();
        let message = message.trim_start_matches("error: ").to_string();
        print_json(&error_report("usage", message));
    }
    // A closed pipe is not an error.
    let _ = error.print();
    ExitCode::from(if harmless { 0 } else { 2 })
}

/// Report an error to the user, and to programs as JSON.
fn fail(error: &Error, json: bool) -> ExitCode {
    match error {
        Error::Model { text, diagnostics } => say_rendered(&text.render(diagnostics, coloured())),
        other => say!("error: {other}\n"),
    }
    if let Error::Failed { out: Some(path), samples: 1.., .. } = error {
        say!("  look at it:  holonome report {} --open\n", shell_word(&path.display().to_string()));
    }
    if json {
        print_json(&error.report());
    }
    ExitCode::from(error.exit_code())
}
