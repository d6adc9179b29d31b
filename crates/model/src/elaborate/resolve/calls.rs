//! Calls of built-in functions.

use crate::elaborate::Elaborator;
use crate::elaborate::expression::{self, CheckedExpression, Draw, Ex, Kind};
use crate::elaborate::linear_algebra::FUNCTIONS;
use crate::elaborate::names::{self, Scope, Symbol};
use crate::elaborate::shape::Shape;
use crate::syntax::ast::{self, StatementKind};
use crate::syntax::diagnostic::{Diagnostic, did_you_mean};
use crate::syntax::span::Span;
use holonome_words::option;

impl Elaborator<'_> {
    pub(super) fn call(
        &mut self,
        function: &ast::Name,
        arguments: &[ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        let name = function.text.as_str();
        if let Some(declared) = self.symbols.get(name).copied()
            && scope.find(name).is_none()
        {
            if let Symbol::Definition(statement) = declared.symbol
                && let StatementKind::Let { parameters, .. } = &self.file.statements[statement].kind
                && !parameters.is_empty()
            {
                return self.apply(statement, parameters, arguments, span, scope);
            }
            return self.refuse(
                Diagnostic::error(
                    format!("'{name}' is not a function"),
                    function.span,
                    "called here",
                )
                .help("for a product write *; a function is defined by `let f(x) = …`")
                .related(declared.span, "declared here"),
            );
        }
        match name {
            "if" => {
                let [c, a, b] = arguments else {
                    return self.wrong_count(name, "if(condition, a, b)", arguments.len(), span);
                };
                let (c, a, b) =
                    (self.condition(c, scope, "'if'"), self.value(a, scope), self.value(b, scope));
                let (c, a, b) = (c?, a?, b?);
                if a.shape != b.shape {
                    return self.refuse(
                        Diagnostic::error(
                            format!(
                                "the branches of if have the shapes {} and {}",
                                a.shape, b.shape
                            ),
                            span,
                            "the shapes differ",
                        )
                        .related(a.span, format!("{}", a.shape))
                        .related(b.span, format!("{}", b.shape)),
                    );
                }
                let shape = a.shape;
                Some(CheckedExpression::new(Kind::Select(c, a, b), shape, span))
            }
            "normal" | "uniform" => {
                if !arguments.is_empty() {
                    return self.wrong_count(name, &format!("{name}()"), arguments.len(), span);
                }
                if scope.allowed & expression::DRAW == 0 {
                    return self.refuse(
                        Diagnostic::error(
                            format!(
                                "{name}() stands only in initial values and in {vary}",
                                vary = option("vary")
                            ),
                            span,
                            format!("not in {}", scope.place),
                        )
                        .help("a random number is drawn once, before the run starts"),
                    );
                }
                let draw = if name == "normal" { Draw::Normal } else { Draw::Uniform };
                Some(CheckedExpression::new(Kind::Draw(draw), Shape::Scalar, span))
            }
            "identity" => {
                let [n] = arguments else {
                    return self.wrong_count(name, "identity(n)", arguments.len(), span);
                };
                let e = self.index_value(n, scope)?;
                match e.value() {
                    Some(v) if (1.0..=64.0).contains(&v) => Some(CheckedExpression::new(
                        Kind::Identity,
                        Shape::Matrix(v as usize, v as usize),
                        span,
                    )),
                    _ => self.refuse(Diagnostic::error(
                        "the dimension of identity must be a constant from 1 to 64",
                        n.span,
                        "not such a constant",
                    )),
                }
            }
            "matrix" => {
                let rows: Vec<Option<Ex>> =
                    arguments.iter().map(|a| self.value(a, scope)).collect();
                let rows: Vec<Ex> = rows.into_iter().collect::<Option<_>>()?;
                let Some(Shape::Vector(columns)) = rows.first().map(|r| r.shape) else {
                    return self.refuse(
                        Diagnostic::error(
                            "matrix(…) takes the rows, each a vector",
                            span,
                            "rows are vectors",
                        )
                        .help("write matrix((1, 0), (0, 1))"),
                    );
                };
                if let Some(odd) = rows.iter().find(|r| r.shape != Shape::Vector(columns)) {
                    return self.refuse(Diagnostic::error(
                        format!(
                            "the rows of a matrix have the shapes R^{columns} and {}",
                            odd.shape
                        ),
                        odd.span,
                        "a row of another length",
                    ));
                }
                let shape = Shape::Matrix(rows.len(), columns);
                Some(CheckedExpression::new(Kind::Stack(rows), shape, span))
            }
            _ => self.built_in(function, arguments, span, scope),
        }
    }

    fn built_in(
        &mut self,
        function: &ast::Name,
        arguments: &[ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        let name = function.text.as_str();
        if let Some(op) = names::unary_function(name) {
            let [a] = arguments else {
                return self.wrong_count(name, &format!("{name}(x)"), arguments.len(), span);
            };
            let a = self.scalar(a, scope, &format!("the argument of {name}"))?;
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
            let (a, b) = (self.scalar(a, scope, &what), self.scalar(b, scope, &what));
            let (a, b) = (a?, b?);
            return Some(match (a.value(), b.value()) {
                (Some(u), Some(v)) => CheckedExpression::number(op.evaluate(u, v), span),
                _ => CheckedExpression::new(Kind::Binary(op, a, b), Shape::Scalar, span),
            });
        }
        let Some(row) = FUNCTIONS.iter().find(|r| r.name == name) else {
            if self.poisoned.contains(name) {
                return None;
            }
            let known = names::function_names();
            if let Some((_, ours)) = names::ELSEWHERE.iter().find(|(theirs, _)| *theirs == name) {
                return self.refuse(
                    Diagnostic::error(
                        format!("unknown function '{name}'"),
                        function.span,
                        "not a function",
                    )
                    .help(format!("did you mean '{ours}'?")),
                );
            }
            let own = self.symbols.keys().map(String::as_str);
            let diagnostic = Diagnostic::error(
                format!("unknown function '{name}'"),
                function.span,
                "not a function",
            );
            let diagnostic = match did_you_mean(name, known.into_iter().chain(own)) {
                Some(meant) => diagnostic.help(format!("did you mean '{meant}'?")),
                None => diagnostic.help(format!("define it with `let {name}(x) = …`")),
            };
            return self.refuse(diagnostic);
        };
        let values: Vec<Option<Ex>> =
            arguments.iter().map(|a| self.value_for(a, scope, name)).collect();
        let values: Vec<Ex> = values.into_iter().collect::<Option<_>>()?;
        let shapes: Vec<Shape> = values.iter().map(|v| v.shape).collect();
        // The usage line shows how many arguments there are; diag takes any number.
        let call = row.usage.split_inclusive(')').next().unwrap_or(row.usage);
        if !call.contains('…') && call.matches(',').count() + 1 != shapes.len() {
            return self.wrong_count(name, call, shapes.len(), span);
        }
        let Some(shape) = (row.shape)(&shapes) else {
            let given: Vec<String> = shapes.iter().map(Shape::to_string).collect();
            let message = if given.is_empty() {
                format!("{name} without arguments")
            } else {
                format!("{name} does not take {}", given.join(" and "))
            };
            return self.refuse(
                Diagnostic::error(message, span, "the arguments do not fit")
                    .help(format!("{}: {}", row.usage, row.doc)),
            );
        };
        Some(CheckedExpression::new(Kind::Linear(row.function, values), shape, span))
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
        self.refuse(
            Diagnostic::error(
                format!("{name} takes {needed} {arguments}, not {given}"),
                span,
                "wrong number of arguments",
            )
            .help(format!("write {usage}")),
        )
    }
}
