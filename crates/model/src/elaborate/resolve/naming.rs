//! Resolution of names in expressions: what each stands for, and whether it may be used there.

use crate::elaborate::Elaborator;
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind};
use crate::elaborate::names::{self, Scope, Symbol};
use crate::elaborate::shape::Shape;
use crate::syntax::ast::{self, StatementKind};
use crate::syntax::diagnostic::{Diagnostic, did_you_mean};
use crate::syntax::span::Span;

impl Elaborator<'_> {
    /// A name with the indices that follow it directly.
    pub(in crate::elaborate) fn name(
        &mut self,
        name: &str,
        indices: &[ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        if let Some(local) = scope.find(name) {
            let mut local = local.clone();
            // The same value with the span of its use.
            let same = match local.kind {
                Kind::Index(i) => Some(Kind::Index(i)),
                Kind::Number(v) => Some(Kind::Number(v)),
                Kind::Trajectory => Some(Kind::Trajectory),
                _ => None,
            };
            if let Some(kind) = same {
                local = CheckedExpression::new(kind, Shape::Scalar, span);
            }
            return self.component(local, indices, span, scope);
        }
        match name {
            "pi" => {
                return self.component(
                    CheckedExpression::number(std::f64::consts::PI, span),
                    indices,
                    span,
                    scope,
                );
            }
            "t" => {
                self.allow(expression::TIME, "the time t", span, scope)?;
                return self.component(
                    CheckedExpression::new(Kind::Time, Shape::Scalar, span),
                    indices,
                    span,
                    scope,
                );
            }
            _ => {}
        }
        let Some(declared) = self.symbols.get(name).copied() else {
            if name == "H" && self.hamiltonian.is_some() {
                return self.hamiltonian_value(span, scope);
            }
            self.unknown_name(name, span, scope);
            return None;
        };
        match declared.symbol {
            Symbol::Size(statement) => {
                let value = self.size(statement)?;
                self.component(CheckedExpression::number(value as f64, span), indices, span, scope)
            }
            Symbol::Parameter(number) => {
                if scope.allowed & expression::PARAMETER == 0
                    && ["a range", "a size"].contains(&scope.place)
                {
                    let message =
                        format!("the parameter '{name}' cannot be used in {}", scope.place);
                    return self.refuse_parameter_as_size(number, message, span);
                }
                self.allow(expression::PARAMETER, &format!("the parameter '{name}'"), span, scope)?;
                if self.parameters[number].family.is_none() && !self.parameters_known {
                    self.premature |= expression::PARAMETER;
                }
                let family = self.parameters[number].family.clone()?;
                let (own, rest) = self.family_indices(&family, indices, span, scope)?;
                let e = CheckedExpression::new(Kind::Parameter(number, own), family.shape, span);
                self.component(e, rest, span, scope)
            }
            Symbol::Variable(number) => {
                let own = self.variables[number].depends;
                self.allow(
                    own,
                    &format!("the {} '{name}'", self.variables[number].what()),
                    span,
                    scope,
                )?;
                if self.variables[number].family.is_none() && !self.variables_known {
                    self.premature |= own;
                }
                let family = self.variables[number].family.clone()?;
                let (indices, rest) = self.family_indices(&family, indices, span, scope)?;
                let e = CheckedExpression::variable(number, indices, own, family.shape, span);
                self.component(e, rest, span, scope)
            }
            Symbol::Definition(statement) => self.definition(statement, name, indices, span, scope),
            Symbol::Table(number) => {
                let entry = &self.tables[number];
                let help = match entry.columns.first() {
                    Some((first, _)) => {
                        format!("write {name}.{first}[i]; its columns are {}", entry.names())
                    }
                    None => format!("write {name}.column[i]"),
                };
                self.refuse(
                    Diagnostic::error(
                        format!("'{name}' is a table"),
                        span,
                        "a column and a row are needed",
                    )
                    .help(help),
                )
            }
            Symbol::Velocity => {
                let momentum = self.file.statements.iter().find_map(|s| match &s.kind {
                    StatementKind::Velocity { name: label, of, .. } if label.text == name => {
                        Some(format!("p_{}", of.text))
                    }
                    _ => None,
                });
                self.refuse(
                    Diagnostic::error(
                        format!("'{name}' is only the label of an initial velocity"),
                        span,
                        "not a variable",
                    )
                    .help(format!(
                        "the conjugate momentum is called {}",
                        momentum.as_deref().unwrap_or("p_ and the coordinate's name")
                    ))
                    .related(declared.span, "declared here"),
                )
            }
            Symbol::Measure => self.refuse(
                Diagnostic::error(
                    format!("'{name}' is a measure, known when the run is over"),
                    span,
                    "not a value along the motion",
                )
                .related(declared.span, "declared here"),
            ),
            Symbol::Constraint(_) => self.refuse(
                Diagnostic::error(
                    format!("'{name}' is a constraint, not a value"),
                    span,
                    "not a value",
                )
                .related(declared.span, "declared here"),
            ),
        }
    }

    fn unknown_name(&mut self, name: &str, span: Span, scope: &Scope) {
        if self.poisoned.contains(name) || self.is_full() {
            return; // declared in an unread statement: that is the error
        }
        let mut diagnostic =
            Diagnostic::error(format!("unknown name '{name}'"), span, "not declared");
        // px, q1: a component written in one word.
        let split = name.char_indices().next_back().and_then(|(at, last)| {
            let base = name[..at].trim_end_matches('_');
            let component = match last {
                'x' | '1' => "x",
                'y' | '2' => "y",
                'z' | '3' => "z",
                _ => return None,
            };
            let known =
                matches!(self.symbols.get(base).map(|d| d.symbol), Some(Symbol::Variable(_)));
            known.then(|| format!("{base}.{component}"))
        });
        let candidates = self
            .symbols
            .keys()
            .map(String::as_str)
            .chain(scope.locals.iter().map(|(n, _)| n.as_str()))
            .chain(["pi", "t"]);
        if let Some(meant) = split.or_else(|| did_you_mean(name, candidates).map(str::to_string)) {
            diagnostic = diagnostic.help(format!("did you mean '{meant}'?"));
        } else if name == names::LAMBDA {
            diagnostic = diagnostic.help("the multiplier of constraint NAME is lambda.NAME");
        } else if names::function_names().contains(&name) {
            diagnostic =
                diagnostic.help(format!("'{name}' is a function: call it with parentheses"));
        } else {
            diagnostic = diagnostic
                .help(format!("declare it: `parameter {name} = …`, `coordinate {name} : R^3 = …` or `let {name} = …`"));
        }
        self.report(diagnostic);
    }

    pub(super) fn allow(
        &mut self,
        what: expression::Depends,
        name: &str,
        span: Span,
        scope: &Scope,
    ) -> Option<()> {
        if what & !scope.allowed == 0 {
            return Some(());
        }
        let message = format!("{} cannot be used in {}", name, scope.place);
        if what & !scope.allowed == expression::MULTIPLIER {
            return self.refuse(
                Diagnostic::error(message, span, "not known here").help(
                    "a method finds the multipliers on its way: only observables may use them",
                ),
            );
        }
        self.refuse(Diagnostic::error(message, span, "not a constant here").help(
            match scope.place {
                "a size" => "a size is made of numbers and other sizes",
                "a range" => "a range is made of numbers and sizes",
                "a parameter" => "a parameter is made of numbers, sizes and other parameters",
                _ => "only numbers, sizes and parameters are known before the run starts",
            },
        ))
    }

    /// Refuses a parameter in a range or an index, and says how it is declared to be used there.
    pub(super) fn refuse_parameter_as_size<T>(
        &mut self,
        number: usize,
        message: String,
        span: Span,
    ) -> Option<T> {
        let statement = &self.file.statements[self.parameters[number].statement];
        let StatementKind::Parameter { name, family, value } = &statement.kind else {
            unreachable!("a parameter")
        };
        let help = match value.kind {
            ast::ExprKind::Number(v) if family.ranges.is_empty() && v.fract() == 0.0 => {
                format!("declare it as `size {} = {v}`", name.text)
            }
            _ => "a constant that indices and ranges may use is declared with `size`".to_string(),
        };
        let declared = name.span;
        self.refuse(
            Diagnostic::error(message, span, "a parameter may be any real number")
                .help(help)
                .related(declared, "declared here"),
        )
    }
}
