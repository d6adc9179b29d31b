//! Elaboration of a syntax tree into a checked model: declarations first, then expressions, then
//! term templates, then the numbers that are known before a run (sizes, parameters, initial
//! values).

pub mod expression;
pub mod functions;
pub mod interpolation;
pub mod lower;
pub mod model;
pub mod names;
pub mod reach;
mod resolve;
pub mod shape;
pub mod start;
mod statements;
pub mod statistic;
pub mod velocity;

use crate::syntax::ast;
use crate::syntax::diagnostic::{Diagnostic, Severity};
use crate::syntax::span::Span;
use crate::syntax::{MAX_DIAGNOSTICS, Reading, capped};
use expression::index_set::{IndexSet, IndexVariable};
use expression::{CheckedExpression, Depends, Draw, Ex, Kind};
use model::{Family, Knots, Model, Table};
use names::{Declaration, Scope};
use rustc_hash::{FxHashMap, FxHashSet};
use shape::Shape;
use statements::replace::{Given, PartialValue, Replaced};
use std::collections::BTreeMap;

/// Text of a table's file by its path, or the reason why it cannot be read.
pub type TableReader<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// Inputs of elaboration from outside: this half of the engine reads no files and draws no numbers.
pub struct Environment<'a> {
    /// Reads the text of a table's file, or says why it cannot be read.
    pub read_table: &'a TableReader<'a>,
    /// Draws the random numbers of the first trajectory, one after the other.
    pub draw: &'a mut dyn FnMut(Draw) -> f64,
    /// Values that replace those in the file (`--set`).
    pub replacements: Vec<(ast::Name, ast::Expr)>,
    /// Values that differ between trajectories (`--vary`).
    pub variations: Variations,
    /// The term of the Hamiltonian that is stiff, a `let` (`--stiff`).
    pub stiff: Option<ast::Name>,
}

/// Differences between the trajectories of an ensemble, besides the draws in the file.
#[derive(Clone, Debug, Default)]
pub struct Variations {
    /// Number of trajectories: `N`.
    pub trajectories: u64,
    /// Values that replace those in the file; they may draw, and use `i` and `N`.
    pub values: Vec<(ast::Name, ast::Expr)>,
    /// Values that are given as numbers.
    pub given: Vec<GivenValue>,
}

/// A value that is given as numbers for each trajectory: of a parameter or a variable, of one of
/// its members (`r[2]`), or of one of its components (`r[2].x`).
#[derive(Clone, Debug)]
pub struct GivenValue {
    /// What is given.
    pub name: ast::Name,
    /// Option that gives it.
    pub by: &'static str,
    /// The numbers of the first trajectory; those in the file if absent.
    pub first: Option<Vec<f64>>,
    /// False if all trajectories have these numbers.
    pub varies: bool,
}

/// Checks a parsed file. The model is `Some` only if no diagnostic is an error. The parser's own
/// diagnostics are not repeated, and a name that an unread statement may declare is not reported as
/// missing.
pub fn elaborate(
    reading: &Reading,
    environment: &mut Environment,
) -> (Option<Model>, Vec<Diagnostic>) {
    let mut file = reading.file.clone();
    let variations = &environment.variations;
    let Replaced { varied, given, parts, mut diagnostics } =
        statements::replace::replace(&mut file, &environment.replacements, variations);
    statements::lagrangian::add_velocities(&mut file);
    let mut elaborator = Elaborator {
        statements: &file.statements,
        read_table: Some(environment.read_table),
        varied,
        given,
        parts,
        trajectories: variations.trajectories,
        stiff: environment.stiff.clone(),
        poisoned: reading.unread.iter().map(|n| n.text.clone()).collect(),
        complete: reading.diagnostics.iter().all(|d| d.severity != Severity::Error),
        ..Elaborator::default()
    };
    let model = elaborator.model(environment.draw);
    diagnostics.append(&mut elaborator.diagnostics);
    // What the parser has refused is refused once.
    let refused = |d: &Diagnostic| {
        reading
            .diagnostics
            .iter()
            .any(|known| known.severity == Severity::Error && known.span == d.span)
    };
    diagnostics.retain(|d| !refused(d));
    diagnostics.sort_by_key(|d| (d.span.start, d.span.end));
    diagnostics.dedup();
    let diagnostics = capped(diagnostics);
    let good = diagnostics.iter().all(|d| d.severity != Severity::Error);
    (model.filter(|_| good), diagnostics)
}

/// A parameter while the file is read.
struct ParameterEntry {
    statement: usize,
    /// `None` if its ranges or value are in error.
    family: Option<Family>,
    value: Option<Ex>,
    ranges: IndexSet,
}

/// Role of a variable while the file is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VariableRole {
    Coordinate,
    Momentum { of: usize, velocity: bool },
    State,
}

struct VariableEntry {
    statement: usize,
    name: String,
    span: Span,
    role: VariableRole,
    depends: Depends,
    /// `None` if its ranges or shape are in error.
    family: Option<Family>,
}

impl VariableEntry {
    fn what(&self) -> &'static str {
        match self.role {
            VariableRole::Coordinate => "coordinate",
            VariableRole::Momentum { .. } => "momentum",
            VariableRole::State => "state",
        }
    }
}

struct TableEntry {
    table: Table,
    /// Places of its columns.
    places: FxHashMap<String, usize>,
    failed: bool,
}

impl TableEntry {
    fn new(table: Table) -> TableEntry {
        let places = table
            .columns
            .iter()
            .enumerate()
            .map(|(place, (name, _))| (name.clone(), place))
            .collect();
        TableEntry { table, places, failed: false }
    }

    /// Entry of a table that could not be read.
    fn failed(name: &str) -> TableEntry {
        let table = Table { name: name.to_string(), columns: Vec::new(), rows: 0, rows_are: "" };
        TableEntry { failed: true, ..TableEntry::new(table) }
    }

    /// The names of its columns in a sentence, of many the first ones.
    fn names(&self) -> String {
        const MOST: usize = 20;
        let names: Vec<&str> =
            self.table.columns.iter().take(MOST).map(|(name, _)| name.as_str()).collect();
        let more = self.table.columns.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", names.join(", "))
    }
}

impl std::ops::Deref for TableEntry {
    type Target = Table;
    fn deref(&self) -> &Table {
        &self.table
    }
}

/// A formula that has been checked but not lowered.
#[derive(Clone)]
struct CheckedFormula {
    name: ast::Name,
    set: IndexSet,
    value: Ex,
}

/// A definition's statement and the addresses of its arguments.
type Application = (usize, Vec<usize>);

#[derive(Default)]
struct Elaborator<'a> {
    /// Statements of the file.
    statements: &'a [ast::Statement],
    /// Scope of the expression that is read.
    scope: Scope,
    /// Reader of the texts of tables; without it there are none.
    read_table: Option<&'a TableReader<'a>>,
    /// Statements whose values differ between trajectories.
    varied: FxHashSet<usize>,
    /// Values that are given as numbers.
    given: Vec<Given<'a>>,
    /// Members and components that are set.
    parts: Vec<PartialValue>,
    trajectories: u64,
    stiff: Option<ast::Name>,
    /// Names in unread statements.
    poisoned: FxHashSet<String>,
    /// True if every statement could be read.
    complete: bool,
    diagnostics: Vec<Diagnostic>,
    symbols: BTreeMap<String, Declaration>,
    sizes: FxHashMap<usize, Option<i64>>,
    parameters: Vec<ParameterEntry>,
    /// True once the families of the parameters have been read.
    parameters_known: bool,
    /// True once the families of the variables have been read.
    variables_known: bool,
    /// Inputs that a definition has used before they were known.
    premature: Depends,
    /// Parameters in order of evaluation: each after those that it uses.
    parameter_order: Vec<usize>,
    variables: Vec<VariableEntry>,
    tables: Vec<TableEntry>,
    /// Knots of interpolations over time.
    knots: Vec<Knots>,
    /// Statement of the Hamiltonian, or of the Lagrangian from which it follows.
    hamiltonian: Option<usize>,
    index_names: Vec<String>,
    /// Constraints, read once.
    constraints: FxHashMap<usize, Option<CheckedFormula>>,
    /// Definitions without arguments, read once.
    defined: FxHashMap<usize, Option<Ex>>,
    /// Definitions with arguments, keyed by the arguments' addresses; the arguments are kept alive
    /// with them.
    applied: FxHashMap<Application, (Option<Ex>, Vec<Ex>)>,
    entered: Vec<usize>,
    /// Reported cycles of definitions, by the span of their first definition.
    recursive: FxHashSet<Span>,
    reported_once: FxHashSet<&'static str>,
    depth: usize,
    count: usize,
}

impl<'a> Elaborator<'a> {
    /// Keeps a diagnostic, up to one more than are shown, so that the overflow can be reported.
    fn report(&mut self, diagnostic: Diagnostic) {
        if !self.is_full() {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reports the diagnostic and returns `None`.
    fn refuse<T>(&mut self, diagnostic: Diagnostic) -> Option<T> {
        self.report(diagnostic);
        None
    }

    fn is_full(&self) -> bool {
        self.diagnostics.len() > MAX_DIAGNOSTICS
    }

    /// Statement `number` of the file.
    fn statement(&self, number: usize) -> &'a ast::Statement {
        &self.statements[number]
    }

    /// Runs `read` in a scope of its own.
    fn within<T>(&mut self, scope: Scope, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.scope, scope);
        let result = read(self);
        self.scope = outer;
        result
    }

    /// Binds a new index under `name`.
    fn bind_index(&mut self, name: &str, span: Span) -> IndexVariable {
        let index = self.index_names.len() as IndexVariable;
        self.index_names.push(name.to_string());
        let value = CheckedExpression::new(Kind::Index(index), Shape::Scalar, span);
        self.scope.locals.push((name.to_string(), value));
        index
    }
}
