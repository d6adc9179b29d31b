//! The statements of the language, one row each: the word that begins it, its form, the parts that
//! the parser reads and the dump prints, and the meaning of the name that it declares.
//!
//! The elaborator reads what a statement says in `elaborate/statements`, by its [`StatementKind`].

/// A part of a statement, behind its word and the parts before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StatementPart {
    /// `NAME`, which the statement declares.
    Name,
    /// `NAME`, a state declared elsewhere.
    State,
    /// `[i in a..b if CONDITION]`, or nothing.
    Family,
    /// `[i, j]`, or nothing: names of indices, whose ranges are those of the thing named here.
    Indices(&'static str),
    /// `(x, y)`, or nothing: the parameters of a function.
    Parameters,
    /// `of COORDINATE`, with this word.
    Of(&'static str),
    /// `on COORDINATE`, on a member or on a component of one.
    On,
    /// `(x, y[i])`: states, and members of families of them.
    Moving,
    /// `: SHAPE`, or nothing.
    Shape,
    /// `'`
    Prime,
    /// `=`
    Equals,
    /// `= EXPR`
    Value,
    /// `= EXPR`, or nothing.
    InitialValue,
    /// `EXPR`, without a name before it.
    Expression,
    /// `: EXPR = EXPR`
    Equation,
    /// `STATISTIC(ranges : EXPR, EXPR, …)`
    Statistic,
    /// `WORD EXPR` for some of these words, in any order. They are names elsewhere.
    Clauses(&'static [&'static str]),
    /// One of these words, or nothing. They are names elsewhere.
    Word(&'static [&'static str]),
    /// `: stop`, `: record` or `: VAR -> EXPR, …`, or nothing.
    Action,
    /// `"file"`, the path of the thing named here.
    Path(&'static str),
    /// `OPTION = EXPR`, or `OPTION = TEXT` up to the end of the line.
    Setting,
    /// `LENGTH, MASS, TIME`: words for units.
    Units,
    /// `FORM(EXPR, …)`, `camera follow EXPR` or `camera frame(EXPR)`, then `colour "…"` and
    /// `label "…"`.
    Drawing,
}

/// Meaning of the name that a statement declares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// A constant integer.
    Size,
    /// A constant of any shape.
    Parameter,
    /// A part of the state.
    Variable,
    /// An expression.
    Definition,
    /// Columns of numbers.
    Table,
    /// Not a value: a description and a label for whoever uses it as one.
    Label(&'static str, &'static str),
    /// Nothing: the statement declares no name.
    Nothing,
}

/// A statement of the language.
#[derive(Debug)]
pub struct StatementRow {
    /// The statement.
    pub kind: StatementKind,
    /// Word that begins it; empty for `NAME' = EXPR`.
    pub word: &'static str,
    /// Form in the notation of the language guide.
    pub form: &'static str,
    /// Parts behind the word, in order.
    pub parts: &'static [StatementPart],
    /// Meaning of the name that it declares.
    pub meaning: Meaning,
    /// Words of other languages for it, in small letters.
    pub elsewhere: &'static [&'static str],
}

macro_rules! statements {
    ($( $kind:ident $word:literal $form:literal, [$($part:expr),*], $meaning:expr, [$($other:literal),*]; )+) => {
        /// Kinds of statements, in the order of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum StatementKind { $( #[doc = concat!("`", $form, "`")] $kind, )+ }

        /// The table.
        pub const STATEMENTS: &[StatementRow] = &[$( StatementRow {
            kind: StatementKind::$kind, word: $word, form: $form, parts: &[$($part),*], meaning: $meaning, elsewhere: &[$($other),*],
        } ),+];
    };
}

use Meaning::{Definition, Label, Nothing, Size, Table, Variable};
use StatementPart::*;

const CONSTRAINT: Meaning = Label("a constraint, not a value", "not a value");
const FORCE: Meaning = Label("a force, not a value", "not a value");
const MEASURE: Meaning =
    Label("a measure, known when the run is over", "not a value along the motion");
const EVENT: Meaning = Label("an event, not a value", "not a value");
const VELOCITY: Meaning = Label("only the label of an initial velocity", "not a variable");

statements! {
    Parameter "parameter" "parameter NAME = EXPR",
        [Name, Family, Value], Meaning::Parameter, ["param", "params", "par", "const", "constant"];
    Size "size" "size NAME = INTEGER",
        [Name, Value], Size, ["int", "integer", "dim", "dimension"];
    Coordinate "coordinate" "coordinate NAME : SHAPE = EXPR",
        [Name, Family, Shape, InitialValue], Variable, ["coord", "coords", "coordinates", "position", "var", "variable"];
    Momentum "momentum" "momentum NAME of COORDINATE = EXPR",
        [Name, Indices("its coordinate"), Of("of"), InitialValue], Variable, ["mom", "momenta"];
    Velocity "velocity" "velocity NAME of COORDINATE = EXPR",
        [Name, Indices("its coordinate"), Of("of"), InitialValue], VELOCITY, ["vel", "velocities"];
    Hamiltonian "hamiltonian" "hamiltonian EXPR",
        [Expression], Nothing, ["h", "ham", "energy"];
    Lagrangian "lagrangian" "lagrangian EXPR",
        [Expression], Nothing, ["lag", "lagrange"];
    Poisson "poisson" "poisson (STATE) = MATRIX",
        [Moving, Value], Nothing, ["bracket", "poisson_bracket", "poisson_matrix"];
    Force "force" "force NAME on COORDINATE = EXPR",
        [Name, Family, On, Value], FORCE, ["torque", "drag", "friction", "damper", "actuator"];
    Constraint "constraint" "constraint NAME : EXPR = EXPR",
        [Name, Family, Equation], CONSTRAINT, ["constrain", "constraints", "cons", "subject"];
    Rolling "rolling" "rolling NAME : EXPR = EXPR",
        [Name, Family, Equation], CONSTRAINT, ["nonholonomic", "rolls", "no_slip"];
    Event "event" "event NAME : EXPR = 0 rising every K : VAR -> EXPR",
        [Name, Family, Equation, Word(&["rising", "falling"]), Clauses(&["every"]), Action], EVENT, ["on_event", "trigger", "section", "poincare"];
    Impact "impact" "impact NAME : EXPR = 0 restitution EXPR friction EXPR",
        [Name, Family, Equation, Clauses(&["restitution", "friction"])], EVENT, ["collision", "bounce", "contact"];
    Integral "integral" "integral NAME = EXPR",
        [Name, Family, Value], Definition, ["invariant", "conserved", "conserve", "first_integral"];
    State "state" "state NAME : SHAPE = EXPR",
        [Name, Family, Shape, InitialValue], Variable, [];
    Let "let" "let NAME = EXPR",
        [Name, Family, Parameters, Value], Definition, ["def", "define", "fn", "func", "function", "where"];
    Observe "observe" "observe NAME = EXPR",
        [Name, Family, Value], Definition, ["output", "record", "monitor", "print"];
    Measure "measure" "measure NAME = mean(EXPR)",
        [Name, Equals, Statistic, Clauses(&["every", "from"])], MEASURE, ["average", "statistic", "accumulate"];
    Draw "draw" "draw FORM(EXPR, …) colour \"…\" label \"…\"",
        [Family, Drawing], Nothing, ["camera", "paint", "render", "picture", "animate"];
    Table "table" "table NAME = \"file.csv\"",
        [Name, Equals, Path("a table")], Table, ["data", "load", "read"];
    Include "include" "include \"file.holo\"",
        [Path("an included file")], Nothing, ["import", "use", "using", "require"];
    Run "run" "run OPTION = VALUE",
        [Setting], Nothing, ["option", "options", "simulate", "solve", "integrate"];
    Unit "unit" "unit LENGTH, MASS, TIME",
        [Units], Nothing, ["units"];
    Derivative "" "NAME' = EXPR",
        [State, Indices("the state"), Prime, Value], Nothing, [];
}

impl StatementKind {
    /// Row of the table.
    pub fn row(self) -> &'static StatementRow {
        &STATEMENTS[self as usize]
    }
}

impl StatementRow {
    /// Row of the statement that begins with `word`.
    pub fn of(word: &str) -> Option<&'static StatementRow> {
        STATEMENTS.iter().find(|row| row.word == word && !word.is_empty())
    }

    /// True if its word may be the name of a quantity as well, as `unit` of a constraint.
    pub(super) fn has_free_word(&self) -> bool {
        matches!(self.kind, StatementKind::Unit | StatementKind::Draw)
    }

    /// True if indices follow the coordinate, as they do not follow that of a momentum.
    pub(super) fn has_indexed_coordinate(&self) -> bool {
        self.parts.windows(2).any(|pair| matches!(pair, [Of(_), Indices(_)]))
    }

    /// True if a word may follow an equation, so that a name after a number is no factor of it.
    pub(super) fn goes_on_behind_equation(&self) -> bool {
        self.parts
            .windows(2)
            .any(|pair| pair[0] == Equation && matches!(pair[1], Word(_) | Clauses(_)))
    }

    /// True if an expression follows the word, and no name.
    pub(super) fn is_nameless(&self) -> bool {
        self.parts == [Expression]
    }
}
