//! Output to the user: results on stdout, progress on stderr, warnings on both if stdout is for a
//! program.

use crate::arguments::{Colour, OutputArguments};
use crate::table::small;
use holonome::report::figures::text::visible_lines;
use holonome::{Diagnostic, Error, Problem, Source, Summary};
use serde::Serialize;
use serde_json::Value;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock};

static COLOUR: OnceLock<Colour> = OnceLock::new();

/// Every warning of this process, for its JSON object.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Set the choice of `--color`, once.
pub fn choose_colour(colour: Colour) {
    let _ = COLOUR.set(colour);
}

/// True if messages on stderr are coloured.
pub fn coloured() -> bool {
    match COLOUR.get().copied().unwrap_or_default() {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            !no_color && moves_the_cursor()
        }
    }
}

/// True if stderr is a terminal on which a progress bar can be redrawn.
pub fn moves_the_cursor() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn warnings() -> MutexGuard<'static, Vec<String>> {
    WARNINGS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Warn on stderr, and in the JSON object. A warning is given once.
pub fn warn(text: &str, output: OutputArguments) {
    if keep_warning(text) && !output.quiet {
        say!("warning: {text}\n");
    }
}

/// Warn of a file to write whose name ends like those of another one of the `formats`.
pub fn warn_of_ending<'f>(
    path: &Path,
    format: &str,
    formats: impl IntoIterator<Item = &'f str>,
    output: OutputArguments,
) {
    let ending =
        path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    if ending != format && formats.into_iter().any(|other| other == ending) {
        let name = path.display();
        warn(
            &format!(
                "{name} is written as {format}, whatever its name: --{ending} {name} writes {ending}"
            ),
            output,
        );
    }
}

/// Record a warning for the JSON object; true if it is new.
pub fn keep_warning(text: &str) -> bool {
    let mut all = warnings();
    let new = !all.iter().any(|known| known == text);
    if new {
        all.push(text.to_string());
    }
    new
}

/// Print findings that [`Source::render`] has rendered, on stderr: their only control characters
/// are their colours.
pub fn say_rendered(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Report progress on stderr.
pub fn note(text: &str, output: OutputArguments) {
    if !output.quiet {
        say!("{text}");
    }
}

/// Show a result to people: on stdout, or on stderr if stdout is for a program.
pub fn show_result(text: &str, output: OutputArguments) {
    match (output.quiet, output.json) {
        (true, _) => {}
        (false, true) => say!("{text}"),
        (false, false) => print_text(text),
    }
}

/// Print one JSON object on stdout. Its `warnings` are its own, and those that were given before
/// it.
pub fn print_json(value: &impl Serialize) {
    let mut value = json_of(value);
    if let Some(object) = value.as_object_mut() {
        let own = object.get("warnings").and_then(Value::as_array).into_iter().flatten();
        let own: Vec<String> = own.filter_map(|text| text.as_str().map(String::from)).collect();
        object.insert("warnings".to_string(), json_of(&all_warnings(&own)));
    }
    print_by(|out| write_json(out, &value));
}

/// Print the JSON object of a run, like [`print_json`]. Its state may have millions of numbers, so
/// it is written piece by piece.
pub fn print_json_of_run(mut summary: Summary) {
    summary.warnings = all_warnings(&summary.warnings);
    print_by(|out| write_json(out, &summary));
}

/// Every warning of this process, `own` ones of a result among them.
fn all_warnings(own: &[String]) -> Vec<String> {
    for text in own {
        keep_warning(text);
    }
    warnings().clone()
}

fn write_json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// A result as JSON.
pub fn json_of(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("results have names as keys")
}

/// Print text that is the command's result, on stdout. Nothing in it acts on a terminal.
pub fn print_text(text: &str) {
    print_raw(&visible_lines(text));
}

fn print_raw(text: &str) {
    print_by(|out| out.write_all(text.as_bytes()));
}

/// Print what `write` writes, on stdout.
fn print_by(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    const BUFFER: usize = 1 << 16;
    let mut out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        // Whoever closed the pipe has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say!("error: cannot write to stdout: {error}\n");
            std::process::exit(1);
        }
        _ => {}
    }
}

/// Show the warnings of a problem.
pub fn show_warnings(problem: &Problem, output: OutputArguments) {
    Warnings::of(problem).show(None, output);
}

/// Warnings of a problem, to be shown when it is known whether an error says the same.
pub struct Warnings {
    source: Source,
    findings: Vec<Diagnostic>,
    moved: Option<String>,
    far: Option<String>,
}

impl Warnings {
    /// Warnings of `problem`.
    pub fn of(problem: &Problem) -> Warnings {
        let moved = problem.projected.as_ref().map(|moved| {
            format!(
                "the initial state was moved onto the constraint set: positions by {}, momenta by {}\n",
                small(moved.position),
                small(moved.momentum)
            )
        });
        let (source, findings) = (problem.source.clone(), problem.warnings());
        Warnings { source, findings, moved, far: problem.far.clone() }
    }

    /// Show the warnings that `error` does not contain.
    pub fn show(mut self, error: Option<&Error>, output: OutputArguments) {
        if let Some(Error::Model { diagnostics, .. }) = error {
            self.findings
                .retain(|finding| diagnostics.iter().all(|error| error.message != finding.message));
        }
        for finding in &self.findings {
            keep_warning(&self.source.line(finding));
        }
        if !output.quiet {
            say_rendered(&self.source.render(&self.findings, coloured()));
        }
        if let Some(moved) = &self.moved {
            note(moved, output);
        }
        if let Some(far) = &self.far {
            warn(far, output);
        }
    }
}
