//! A model with its numbers, checked and ready to be compiled for a method.

use crate::backend::backend;
use crate::defaults;
use crate::ensemble::{Ensemble, draw};
use crate::error::Error;
use crate::includes::expanded;
use crate::not_a_model::{explained, refuse_data};
use crate::options::Settings;
use crate::regular;
use crate::source::Source;
use holonome_integrate::noise::Noise;
use holonome_model::consistency::{self, Examined, ProjectedStart};
use holonome_model::derived::Derived;
use holonome_model::elaborate::expression::{Draw, MOMENTUM};
use holonome_model::elaborate::model::{Model, Quantity, Role};
use holonome_model::elaborate::{Environment, GivenValue, Variations, elaborate};
use holonome_model::policy::DEEP_STACK;
use holonome_model::syntax::diagnostic::{Diagnostic, Severity};
use holonome_model::syntax::span::Span;
use holonome_model::syntax::statements::StatementKind;
use holonome_model::syntax::{self, ast};
use holonome_words::{OptionName, option};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A checked model.
#[derive(Clone)]
pub struct Problem {
    /// The model file's name without its ending.
    pub name: String,
    /// Text of the model.
    pub source: Source,
    /// Texts of its tables and of the files that it includes, by path.
    pub tables: BTreeMap<String, String>,
    /// Options of the model.
    pub settings: Settings,
    /// Earliest and latest time of a run, between which claims are tested.
    pub span: (f64, f64),
    /// The model, with the quantities that methods derive from it.
    pub model: Derived,
    /// Results of the model's examination.
    pub examined: Examined,
    /// Move of the start by `--project-initial`, if any.
    pub projected: Option<ProjectedStart>,
    /// Warning about that move, if it is far.
    pub far: Option<String>,
}

/// Syntax tree of a readable file: for `holonome show syntax`.
pub struct Parsed {
    /// The text.
    pub source: Source,
    /// The tree.
    pub file: ast::File,
    /// Findings on the rest of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Name of the standard input among model files.
const STANDARD_INPUT: &str = "-";

/// Read a model file, which must be UTF-8; `-` is the standard input.
///
/// # Errors
/// If it cannot be read, is too large, or is not UTF-8 (with the place).
pub fn read_file(path: impl AsRef<Path>) -> Result<Source, Error> {
    let path = path.as_ref();
    let is_stream = path == Path::new(STANDARD_INPUT);
    let read = match is_stream {
        true => regular::content(io::stdin().lock()),
        false => refuse_data(path)
            .and_then(|()| open_model(path).map_err(|error| explained(path, error)))
            .and_then(regular::content),
    };
    let bytes = read.map_err(|source| Error::Read { path: path.to_path_buf(), source })?;
    let name = if is_stream { "standard input".to_string() } else { path.display().to_string() };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(&name, &text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            // Replacement characters do not shift the text before the first bad byte.
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let diagnostic = Diagnostic::error(
                "this byte is not text (UTF-8)",
                Span::new(at, at + '\u{fffd}'.len_utf8()),
                format!("byte 0x{:02x}", bytes[at]),
            )
            .help("save the file as UTF-8");
            Err(Error::Model {
                text: Box::new(Source::new(&name, &text)),
                diagnostics: vec![diagnostic],
            })
        }
    }
}

/// Open a model: a regular file, or something that the caller has opened for this process, such as
/// `/dev/stdin` or the `/dev/fd/63` of a shell's `<(command)`.
fn open_model(path: &Path) -> io::Result<File> {
    let given = ["/dev/stdin", "/dev/fd", "/proc/self/fd"].iter().any(|own| path.starts_with(own));
    if given { File::open(path) } else { regular::open(path) }
}

/// Read a file's syntax only.
///
/// # Errors
/// If the file cannot be read.
pub fn parse_file(path: impl AsRef<Path>) -> Result<Parsed, Error> {
    let path = path.as_ref();
    let source = read_file(path)?;
    with_deep_stack(move || {
        let (file, diagnostics) = syntax::parse(source.text());
        Parsed { source, file, diagnostics }
    })
}

/// Name of the model in a file: its own name without the ending, and without what hides a folder or
/// reads as an option.
fn name_of(path: &Path) -> String {
    // A file called `.holo` is all ending, which the standard library takes for its name.
    let stem = path.file_stem().filter(|stem| *stem != ".holo").map(|stem| stem.to_string_lossy());
    let name = stem.as_deref().unwrap_or_default();
    let name = name.trim_start_matches(|c: char| ".-".contains(c) || c.is_whitespace()).trim_end();
    if name.is_empty() { "model".to_string() } else { name.to_string() }
}

impl Problem {
    /// Read and check a model file.
    ///
    /// # Errors
    /// All mistakes in the model, at once.
    pub fn load(path: impl AsRef<Path>, settings: &Settings) -> Result<Problem, Error> {
        let path = path.as_ref();
        Ok(Problem::read(path, settings, &Ensemble::ONE)?.0)
    }

    /// Check a model given by its text; `tables` are the texts of its data files and included
    /// files, by path.
    ///
    /// # Errors
    /// All mistakes in the model, at once.
    pub fn from_text(
        name: &str,
        text: &str,
        tables: &BTreeMap<String, String>,
        settings: &Settings,
    ) -> Result<Problem, Error> {
        Ok(Problem::read_text(name, text, tables, settings, &Ensemble::ONE)?.0)
    }

    pub(crate) fn read(
        path: &Path,
        settings: &Settings,
        ensemble: &Ensemble,
    ) -> Result<Checked, Error> {
        let source = read_file(path)?;
        let name = name_of(path);
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let given: Vec<String> = settings.set.iter().map(|(_, value)| value.clone()).collect();
        let read_table = move |table: &str| {
            // A file that an option names is relative to the current folder.
            let is_given = given.iter().any(|path| path == table);
            let path = if is_given { PathBuf::from(table) } else { folder.join(table) };
            let text = |bytes| {
                String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
            };
            regular::open(&path)
                .and_then(regular::content)
                .and_then(text)
                .map_err(|e| format!("{}: {e}", path.display()))
        };
        Problem::check(name, source, settings, ensemble, &read_table)
    }

    pub(crate) fn read_text(
        name: &str,
        text: &str,
        tables: &BTreeMap<String, String>,
        settings: &Settings,
        ensemble: &Ensemble,
    ) -> Result<Checked, Error> {
        let read_table = |table: &str| {
            tables.get(table).cloned().ok_or_else(|| "it is not among the given tables".to_string())
        };
        let source = Source::new(&format!("{name}.holo"), text);
        Problem::check(name.to_string(), source, settings, ensemble, &read_table)
    }

    fn check(
        name: String,
        source: Source,
        settings: &Settings,
        ensemble: &Ensemble,
        read_table: &(dyn Fn(&str) -> Result<String, String> + Sync),
    ) -> Result<Checked, Error> {
        let settings = settings.clone();
        with_deep_stack(move || Problem::check_here(name, source, settings, ensemble, read_table))?
    }

    fn check_here(
        name: String,
        mut source: Source,
        mut settings: Settings,
        ensemble: &Ensemble,
        read_table: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Checked, Error> {
        let reading = syntax::read(source.text());
        let (mut reading, included) = match expanded(&mut source, reading, read_table) {
            Ok(expanded) => expanded,
            Err(diagnostics) => return Err(Error::Model { text: Box::new(source), diagnostics }),
        };
        let files = replaced_files(&mut source, &mut reading.file, &settings);
        let tables = RefCell::new(included);
        let keep = |path: &str| {
            let text = read_table(path)?;
            tables.borrow_mut().insert(path.to_string(), text.clone());
            Ok(text)
        };
        let mut diagnostics = reading.diagnostics.clone();
        let mut replaced =
            |option: OptionName, list: &[(String, String)]| -> Vec<(ast::Name, ast::Expr)> {
                let value = |(target, text): &(String, String)| {
                    replacement(&mut source, option, target, text, &mut diagnostics)
                };
                let is_value = |(name, _): &&(String, String)| !files.contains(name);
                list.iter().filter(is_value).filter_map(value).collect()
            };
        let replacements = replaced(option("set"), &settings.set);
        let variations = Variations {
            trajectories: ensemble.trajectories,
            values: replaced(option("vary"), ensemble.vary),
            given: given_values(&mut source, &settings, ensemble),
        };
        let mut count = 0;
        let mut draw = |which: Draw| {
            count += 1;
            let mut drawn = [0.0];
            draw(|_| Noise::new(settings.seed, 0), (count, which), &mut drawn);
            drawn[0]
        };
        let stiff = settings.stiff.as_ref().map(|name| named(&mut source, option("stiff"), name));
        let mut environment =
            Environment { read_table: &keep, draw: &mut draw, replacements, variations, stiff };
        let (model, mut found) = elaborate(&reading, &mut environment);
        diagnostics.append(&mut found);
        let is_error = |d: &Diagnostic| d.severity == Severity::Error;
        let Some(mut model) = model.filter(|_| !diagnostics.iter().any(is_error)) else {
            diagnostics.sort_by_key(|d| d.span.start);
            return Err(Error::Model { text: Box::new(source), diagnostics });
        };
        let mut unfit = defaults::examined(&model);
        if !unfit.is_empty() {
            diagnostics.append(&mut unfit);
            diagnostics.sort_by_key(|d| d.span.start);
            return Err(Error::Model { text: Box::new(source), diagnostics });
        }
        let span = defaults::span(&model, &settings);
        settings.span = settings.span.map(|_| (Some(span.0), Some(span.1)));
        model.begin_at(span.0);
        let span = (span.0.min(span.1), span.0.max(span.1));
        let start = model.initial.clone();
        let projected = projected_start(&mut model, &settings)?;
        let far = projected.as_ref().and_then(|moved| far_move(&model, &start, &moved.initial));
        let model = Derived::new(model);
        let mut examined = match examined(&model, &settings, span, diagnostics) {
            Ok(examined) => examined,
            Err(diagnostics) => return Err(Error::Model { text: Box::new(source), diagnostics }),
        };
        let model = examined.independent.take().unwrap_or(model);
        let tables = tables.into_inner();
        Ok(Checked(
            Problem { name, source, tables, settings, span, model, examined, projected, far },
            start,
        ))
    }

    /// Error for what needs multipliers, if constraints are singular: the first one that is.
    pub(crate) fn singularity(&self) -> Option<Error> {
        let first = self.examined.singular.first()?;
        let first = Diagnostic { severity: Severity::Error, ..first.clone() };
        Some(Error::Model { text: Box::new(self.source.clone()), diagnostics: vec![first] })
    }

    /// Warnings about the model.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        // A run that is refused for unverified claims reports them itself.
        let refuses = self.settings.span.is_some() && !self.settings.allow_unverified;
        let unverified = self.examined.unverified.iter().filter(|_| !refuses);
        let mut all: Vec<Diagnostic> = self
            .examined
            .diagnostics
            .iter()
            .chain(&self.examined.singular)
            .chain(unverified)
            .cloned()
            .collect();
        all.sort_by_key(|d| d.span.start);
        all
    }

    /// The warnings in a line each, and the one about a far move by `--project-initial`.
    pub fn warning_lines(&self) -> Vec<String> {
        self.warnings()
            .iter()
            .map(|finding| self.source.line(finding))
            .chain(self.far.clone())
            .collect()
    }
}

/// Move the start of a model onto its constraint set, if the settings ask for it.
fn projected_start(
    model: &mut Model,
    settings: &Settings,
) -> Result<Option<ProjectedStart>, Error> {
    if !settings.project_initial {
        return Ok(None);
    }
    let moved = consistency::project_initial_by(backend(), model)
        .map_err(|reason| Error::option(format!("{}: {reason}", option("project_initial"))))?;
    model.initial.clone_from(&moved.initial);
    Ok(Some(moved))
}

/// Examination of a model, with the findings of its text before its own.
///
/// # Errors
/// All findings, if one is an error.
fn examined(
    model: &Derived,
    settings: &Settings,
    span: (f64, f64),
    diagnostics: Vec<Diagnostic>,
) -> Result<Examined, Vec<Diagnostic>> {
    let mut examined = consistency::examine_by(backend(), model, span);
    if settings.allow_unverified {
        examined.leave_out_unverified();
    }
    examined.diagnostics.splice(0..0, diagnostics);
    examined.diagnostics.extend(not_rolling(model));
    let off_set =
        std::mem::take(&mut examined.off_set).into_iter().map(|d| match settings.start_off_set {
            true => Diagnostic { severity: Severity::Warning, ..d }.help(format!(
                "the run starts off the set, as {reference} allows",
                reference = option("reference")
            )),
            false => Diagnostic { severity: Severity::Error, ..d },
        });
    examined.diagnostics.extend(off_set);
    examined.diagnostics.sort_by_key(|d| d.span.start);
    match examined.is_sound() {
        true => Ok(examined),
        false => Err(examined.diagnostics.into_iter().chain(examined.singular).collect()),
    }
}

/// Model from its text alone, without tables, named `model`.
impl FromStr for Problem {
    type Err = Error;

    fn from_str(text: &str) -> Result<Problem, Error> {
        Problem::from_text("model", text, &BTreeMap::new(), &Settings::default())
    }
}

/// Warning about the meaning of constraints on momenta: the same equation is often written for a
/// rolling body, which moves differently.
fn not_rolling(model: &Model) -> Option<Diagnostic> {
    // Those of a Lagrangian without some of the velocities stand for coordinates; nobody wrote them.
    let is_primary = |c: &&Quantity| model.variables.iter().any(|v| v.family.span == c.span);
    let constraint = model
        .constraints
        .iter()
        .find(|c| c.depends & MOMENTUM != 0 && !is_primary(c))
        .filter(|_| model.is_hamiltonian() && model.rollings.is_empty())?;
    let message = format!(
        "constraint '{}' holds momenta: it is taken as a constraint on phase space (Dirac, vakonomic), not as rolling",
        constraint.name
    );
    let label = "not nonholonomic: no Lagrange-d'Alembert forces";
    let help = "for rolling, state it on velocities: `rolling NAME : EXPR = EXPR`";
    Some(Diagnostic::warning(message, constraint.span, label).help(help))
}

/// Fraction of its size beyond which a moved start may be in another assembly mode than was meant.
const FAR: f64 = 0.1;

/// Warning about positions that `--project-initial` moves far, from `start` to `moved`.
fn far_move(model: &Model, start: &[f64], moved: &[f64]) -> Option<String> {
    let (name, way, size) = farthest_move(model, start, moved)?;
    Some(format!(
        "{project_initial} moved '{name}' by {way:.2e}, of a size of {size:.2e}: {}",
        "the mechanism may be assembled in another way than was meant; look at its first sample, or start nearer to the constraint set",
        project_initial = option("project_initial")
    ))
}

/// The variable with the farthest move relative to its size, with its move and its size; `None` if
/// none is moved far.
pub(crate) fn farthest_move<'m>(
    model: &'m Model,
    before: &[f64],
    after: &[f64],
) -> Option<(&'m str, f64, f64)> {
    let largest =
        |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |a: f64, b| a.max(b.abs()));
    let positions = model.phase_variables().filter(|v| !matches!(v.role, Role::Momentum(_)));
    let moves = positions.filter_map(|v| {
        let range = v.first..v.first + v.family.len();
        let (from, to) = (&before[range.clone()], &after[range]);
        let way = largest(&mut from.iter().zip(to).map(|(a, b)| a - b));
        let size = largest(&mut from.iter().chain(to).copied());
        (way > FAR * size).then_some((v.family.name.as_str(), way, size))
    });
    moves.max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)))
}

/// A checked model, and its initial state before `--project-initial` moved it.
pub(crate) struct Checked(pub Problem, pub Vec<f64>);

/// Parsed value of one `--set` or `--vary`. The text is read as a `let` after the end of the file,
/// so that its mistakes are shown like all others.
fn replacement(
    source: &mut Source,
    option: OptionName,
    target: &str,
    text: &str,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(ast::Name, ast::Expr)> {
    const KEYWORD: &str = "let ";
    // An invalid name still has to be parsed as a name: it is checked against the model's names
    // later.
    let shown = format!("{target}={text}");
    let start = source.append(&option.to_string(), &shown, KEYWORD.len());
    let value_start = start + target.len() + 1;
    let padded = format!(
        "{}{KEYWORD}v={}",
        " ".repeat(value_start - KEYWORD.len() - 2),
        text.replace(['\n', '\r'], " ")
    );
    let reading = syntax::read(&padded);
    diagnostics.extend(reading.diagnostics);
    let value = reading.file.statements.into_iter().next()?.values.pop()?;
    let span = Span::new(start, start + target.len());
    Some((ast::Name { text: target.to_string(), span }, value))
}

/// Replace the files of tables that are set; returns the names of these tables.
fn replaced_files(source: &mut Source, file: &mut ast::File, settings: &Settings) -> Vec<String> {
    let mut replaced = Vec::new();
    for (name, path) in &settings.set {
        let is_table =
            |s: &&mut ast::Statement| s.kind == StatementKind::Table && s.name.text == *name;
        if let Some(statement) = file.statements.iter_mut().find(is_table) {
            let start = source.append(&option("set").to_string(), &format!("{name}={path}"), 0);
            let start = start + name.len() + 1;
            let span = Span::new(start, start + path.len());
            statement.reference = ast::Name { text: path.clone(), span };
            replaced.push(name.clone());
        }
    }
    replaced
}

/// Values that are given as numbers: those of the settings, then those that differ between
/// trajectories.
fn given_values(source: &mut Source, settings: &Settings, ensemble: &Ensemble) -> Vec<GivenValue> {
    let of_start = settings.start.as_ref().map_or(0, |start| start.values);
    let fixed = settings.given.iter().enumerate().map(|(number, (name, numbers))| {
        let (place, by) = if number < of_start { ("start", "start") } else { ("given", "each") };
        let name = named(source, option(place), name);
        GivenValue { name, by, first: Some(numbers.clone()), varies: false }
    });
    let mut values: Vec<GivenValue> = fixed.collect();
    values.extend(ensemble.first().map(|(name, by, first)| {
        let name = named(source, option(by), name);
        GivenValue { name, by, first, varies: true }
    }));
    values
}

/// A name given by an option, placed after the end of the file.
fn named(source: &mut Source, option: OptionName, name: &str) -> ast::Name {
    let start = source.append(&option.to_string(), name, 0);
    ast::Name { text: name.to_string(), span: Span::new(start, start + name.len()) }
}

/// Run `work` on a thread with a stack for the deepest model that the limits allow.
fn with_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, work);
        match thread {
            Ok(handle) => {
                Ok(handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            }
            Err(error) => Err(Error::option(format!("no memory to read the model: {error}"))),
        }
    })
}
