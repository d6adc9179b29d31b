//! Calls of built-in functions.

use super::interpolate::INTERPOLATIONS;
use super::lists::LIST;
use crate::elaborate::Elaborator;
use crate::elaborate::expression::{self, CheckedExpression, Draw, Ex, Kind};
use crate::elaborate::functions::{FUNCTIONS, Function};
use crate::elaborate::names::{self, Symbol};
use crate::elaborate::shape::Shape;
use crate::graph::Graph;
use crate::syntax::ast;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::syntax::words;
use holonome_words::option;

/// Largest dimension of `identity`.
const LARGEST_IDENTITY: f64 = 64.0;

impl Elaborator<'_> {
    pub(super) fn call(
        &mut self,
        function: &ast::Name,
        arguments: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        let name = function.text.as_str();
        // What shows a reaction is called by that name.
        if name == names::REACTION && !self.is_definition_with_parameters(name) {
            return self.reaction(arguments, span);
        }
        if let Some(declared) = self.symbols.get(name).copied()
            && self.scope.find(name).is_none()
            // An impact `floor` hides no function.
            && !(matches!(declared.symbol, Symbol::Label(_)) && words::FUNCTIONS.contains(&name))
        {
            if let Symbol::Definition(number) = declared.symbol
                && self.is_definition_with_parameters(name)
            {
                return self.apply(number, arguments, span);
            }
            let message = format!("'{name}' is not a function");
            let finding = Diagnostic::error(message, function.span, "called here")
                .help("for a product write *; a function is defined by `let f(x) = …`");
            return self.refuse(finding.related(declared.span, "declared here"));
        }
        match (name, arguments) {
            ("if", [c, a, b]) => self.choice([c, a, b], span),
            ("if", _) => self.wrong_count(name, "if(condition, a, b)", arguments.len(), span),
            ("normal", []) => self.draw(name, Draw::Normal, span),
            ("uniform", []) => self.draw(name, Draw::Uniform, span),
            ("normal" | "uniform", _) => {
                self.wrong_count(name, &format!("{name}()"), arguments.len(), span)
            }
            ("identity", [n]) => match self.index_value(n)?.value() {
                Some(v) if (1.0..=LARGEST_IDENTITY).contains(&v) => {
                    let shape = Shape::Matrix(v as usize, v as usize);
                    Some(CheckedExpression::new(Kind::Identity, shape, span))
                }
                _ => {
                    let message = format!(
                        "the dimension of identity must be a constant from 1 to {LARGEST_IDENTITY}"
                    );
                    self.refuse(Diagnostic::error(message, n.span, "not such a constant"))
                }
            },
            ("identity", _) => self.wrong_count(name, "identity(n)", arguments.len(), span),
            ("matrix", rows) => self.matrix(rows, span),
            ("rows", [table]) => self.rows(table, span),
            ("rows", _) => self.wrong_count(name, "rows(TABLE)", arguments.len(), span),
            (LIST, _) => {
                let message = format!("{LIST}(…) stands alone, as the value of a family");
                let finding = Diagnostic::error(message, span, "not here");
                self.refuse(finding.help("write `parameter m[i in 1..3] = list(1, 2, 3)`"))
            }
            _ => match INTERPOLATIONS.iter().find(|(known, _)| *known == name) {
                Some(row) => self.interpolation(*row, arguments, span),
                None => self.built_in(function, arguments, span),
            },
        }
    }

    /// True for a function that the file defines.
    fn is_definition_with_parameters(&self, name: &str) -> bool {
        self.symbols.get(name).is_some_and(|declared| match declared.symbol {
            Symbol::Definition(number) => !self.statement(number).parameters.is_empty(),
            _ => false,
        })
    }

    /// `rows(TABLE)`: the number of rows of a table.
    fn rows(&mut self, table: &ast::Expr, span: Span) -> Option<Ex> {
        let symbol = match &table.kind {
            ast::ExprKind::Name(name) => self.symbols.get(name).map(|declared| declared.symbol),
            _ => None,
        };
        let Some(Symbol::Table(number)) = symbol else {
            let message = "rows(…) counts the rows of a table";
            let finding = Diagnostic::error(message, table.span, "not a table");
            return self.refuse(finding.help("declare it: `table NAME = \"file.csv\"`"));
        };
        let table = &self.tables[number];
        (!table.failed).then(|| CheckedExpression::number(table.rows as f64, span))
    }

    /// `if(condition, a, b)`
    fn choice(&mut self, [c, a, b]: [&ast::Expr; 3], span: Span) -> Option<Ex> {
        let (c, a, b) = (self.condition(c, "'if'"), self.value(a), self.value(b));
        let (c, a, b) = (c?, a?, b?);
        let (shape, other) = (a.shape, b.shape);
        if shape != other {
            let message = format!("the branches of if have the shapes {shape} and {other}");
            let finding = Diagnostic::error(message, span, "the shapes differ");
            let finding = finding.related(a.span, shape.to_string());
            return self.refuse(finding.related(b.span, other.to_string()));
        }
        Some(CheckedExpression::new(Kind::Select(c, a, b), shape, span))
    }

    /// `normal()`, `uniform()`
    fn draw(&mut self, name: &str, draw: Draw, span: Span) -> Option<Ex> {
        if self.scope.allowed & expression::DRAW != 0 {
            return Some(CheckedExpression::new(Kind::Draw(draw), Shape::Scalar, span));
        }
        let vary = option("vary");
        let message = format!("{name}() stands only in initial values and in {vary}");
        let finding = Diagnostic::error(message, span, format!("not in {}", self.scope.place));
        self.refuse(finding.help("a random number is drawn once, before the run starts"))
    }

    /// `matrix(a, b, …)` of rows.
    fn matrix(&mut self, rows: &[ast::Expr], span: Span) -> Option<Ex> {
        let rows = self.values(rows, "this place")?;
        let Some(Shape::Vector(columns)) = rows.first().map(|r| r.shape) else {
            let message = "matrix(…) takes the rows, each a vector";
            let finding = Diagnostic::error(message, span, "rows are vectors");
            return self.refuse(finding.help("write matrix((1, 0), (0, 1))"));
        };
        if let Some(odd) = rows.iter().find(|r| r.shape != Shape::Vector(columns)) {
            let shape = odd.shape;
            let message = format!("the rows of a matrix have the shapes R^{columns} and {shape}");
            return self.refuse(Diagnostic::error(message, odd.span, "a row of another length"));
        }
        let shape = Shape::Matrix(rows.len(), columns);
        Some(CheckedExpression::new(Kind::Stack(rows), shape, span))
    }

    fn built_in(
        &mut self,
        function: &ast::Name,
        arguments: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        let name = function.text.as_str();
        if let Some(op) = names::unary_function(name) {
            let [a] = arguments else {
                return self.wrong_count(name, &format!("{name}(x)"), arguments.len(), span);
            };
            let a = self.scalar(a, &format!("the argument of {name}"))?;
            return Some(match a.value() {
                Some(v) => CheckedExpression::number(op.evaluate(v), span),
                None => CheckedExpression::new(Kind::Unary(op, a), Shape::Scalar, span),
            });
        }
        if let Some(op) = names::binary_function(name) {
            let [a, b] = arguments else {
                return self.wrong_count(name, &format!("{name}(a, b)"), arguments.len(), span);
            };
            let what = format!("an argument of {name}");
            let (a, b) = (self.scalar(a, &what), self.scalar(b, &what));
            let (a, b) = (a?, b?);
            return Some(match (a.value(), b.value()) {
                (Some(u), Some(v)) => CheckedExpression::number(op.evaluate(u, v), span),
                _ => CheckedExpression::new(Kind::Binary(op, a, b), Shape::Scalar, span),
            });
        }
        let Some(row) = FUNCTIONS.iter().find(|r| r.name == name) else {
            return self.unknown_function(function);
        };
        let values = self.values(arguments, name)?;
        let shapes: Vec<Shape> = values.iter().map(|v| v.shape).collect();
        // The usage line shows how many arguments there are; diag takes any number.
        let call = row.usage.split_inclusive(')').next().unwrap_or(row.usage);
        if !call.contains('…') && call.matches(',').count() + 1 != shapes.len() {
            return self.wrong_count(name, call, shapes.len(), span);
        }
        let Some(shape) = (row.shape)(&shapes) else {
            let given: Vec<String> = shapes.iter().map(Shape::to_string).collect();
            let message = match given.is_empty() {
                true => format!("{name} without arguments"),
                false => format!("{name} does not take {}", given.join(" and ")),
            };
            let finding = Diagnostic::error(message, span, "the arguments do not fit");
            return self.refuse(finding.help(format!("{}: {}", row.usage, row.doc)));
        };
        self.demand_order(row.function, &values)?;
        let known: Option<Vec<f64>> = values.iter().map(|v| v.value()).collect();
        if let (Shape::Scalar, Some(known)) = (shape, known) {
            let mut g = Graph::new();
            let arguments: Vec<_> = known.iter().map(|&v| vec![g.constant(v)]).collect();
            let value = (row.lower)(&mut g, &shapes, &arguments)[0];
            let value = g.value(value).expect("an operation on numbers is a number");
            return Some(CheckedExpression::number(value, span));
        }
        Some(CheckedExpression::new(Kind::Function(row.function, values), shape, span))
    }

    /// Refuses an order that is no whole number, and a parameter of a special function that moves.
    fn demand_order(&mut self, function: Function, values: &[Ex]) -> Option<()> {
        const LARGEST: f64 = 100.0;
        let (name, order) = (function.row().name, values.first()?);
        match function {
            Function::BesselJ | Function::Polygamma => {
                let fits = |n: f64| n.fract() == 0.0 && (0.0..=LARGEST).contains(&n);
                if !order.value().is_some_and(fits) {
                    let message =
                        format!("the order of {name} is a whole number from 0 to {LARGEST}");
                    let finding = Diagnostic::error(message, order.span, "not such a constant");
                    return self.refuse(finding.help(function.row().usage));
                }
            }
            Function::GammaP if order.depends & expression::DYNAMIC != 0 => {
                let message = format!("the first argument of {name} moves");
                let finding = Diagnostic::error(message, order.span, "has no derivative here");
                return self
                    .refuse(finding.help("only the second argument may depend on the motion"));
            }
            _ => {}
        }
        Some(())
    }

    fn unknown_function(&mut self, function: &ast::Name) -> Option<Ex> {
        let name = function.text.as_str();
        if self.poisoned.contains(name) {
            return None;
        }
        let message = format!("unknown function '{name}'");
        let finding = Diagnostic::error(message, function.span, "not a function");
        let elsewhere = names::ELSEWHERE.iter().find(|(theirs, _)| *theirs == name);
        let known = names::function_names().into_iter();
        let finding = match elsewhere {
            Some((_, ours)) => finding.help(format!("did you mean '{ours}'?")),
            None => {
                finding.suggest(name, known.chain(self.symbols.keys().map(String::as_str)), || {
                    format!("define it with `let {name}(x) = …`")
                })
            }
        };
        self.refuse(finding)
    }

    pub(super) fn wrong_count(
        &mut self,
        name: &str,
        usage: &str,
        given: usize,
        span: Span,
    ) -> Option<Ex> {
        let needed = if usage.ends_with("()") { 0 } else { usage.matches(',').count() + 1 };
        let arguments = if needed == 1 { "argument" } else { "arguments" };
        let message = format!("{name} takes {needed} {arguments}, not {given}");
        let finding = Diagnostic::error(message, span, "wrong number of arguments");
        self.refuse(finding.help(format!("write {usage}")))
    }
}
