//! Resolution of names in expressions: what each stands for, and whether it may be used there.

use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind, Storage};
use crate::elaborate::model::Family;
use crate::elaborate::names::{self, Declaration, Symbol};
use crate::elaborate::shape::Shape;
use crate::elaborate::{Elaborator, VariableEntry};
use crate::syntax::ast::{self, Statement};
use crate::syntax::diagnostic::{Diagnostic, did_you_mean};
use crate::syntax::span::Span;
use crate::syntax::statements::{Meaning, StatementKind};

impl Elaborator<'_> {
    /// A name with the indices that follow it directly.
    pub(in crate::elaborate) fn name(
        &mut self,
        name: &str,
        indices: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        let e = match (self.scope.find(name).cloned(), name) {
            (Some(local), _) => match local.kind {
                // The same value with the span of its use.
                Kind::Index(_) | Kind::Number(_) | Kind::Trajectory => {
                    let kind = match local.kind {
                        Kind::Index(i) => Kind::Index(i),
                        Kind::Number(v) => Kind::Number(v),
                        _ => Kind::Trajectory,
                    };
                    CheckedExpression::new(kind, Shape::Scalar, span)
                }
                _ => local,
            },
            (None, "pi") => CheckedExpression::number(std::f64::consts::PI, span),
            (None, "t") => {
                self.allow(expression::TIME, "the time t", span)?;
                CheckedExpression::new(Kind::Time, Shape::Scalar, span)
            }
            (None, _) => return self.declared(name, indices, span),
        };
        self.component(e, indices, span)
    }

    /// A name that a statement declares, with the indices that follow it.
    fn declared(&mut self, name: &str, indices: &[ast::Expr], span: Span) -> Option<Ex> {
        let Some(declared) = self.symbols.get(name).copied() else {
            let number = self.hamiltonian.filter(|_| name == "H");
            let Some(number) = number else { return self.unknown_name(name, span) };
            let e = match self.statement(number).kind {
                StatementKind::Lagrangian => self.energy(number, span)?,
                _ => self.known_value(number, span)?,
            };
            return self.component(e, indices, span);
        };
        match declared.symbol {
            Symbol::Size(number) => {
                let e = CheckedExpression::number(self.size(number)? as f64, span);
                self.component(e, indices, span)
            }
            Symbol::Parameter(number) => {
                let place = self.scope.place;
                let is_allowed = self.scope.allowed & expression::PARAMETER != 0;
                if !is_allowed && ["a range", "a size"].contains(&place) {
                    let message = format!("the parameter '{name}' cannot be used in {place}");
                    return self.refuse_parameter_as_size(number, message, span);
                }
                let what = format!("the parameter '{name}'");
                self.allow(expression::PARAMETER, &what, span)?;
                let family = self.parameters[number].family.clone();
                if family.is_none() && !self.parameters_known {
                    self.premature |= expression::PARAMETER;
                }
                self.member_of(Storage::Parameter(number), &family?, indices, span)
            }
            Symbol::Variable(number) if self.scope.place == names::INITIAL => {
                self.initial_member(number, indices, span)
            }
            Symbol::Variable(number) => {
                let VariableEntry { depends, .. } = self.variables[number];
                let what = format!("the {} '{name}'", self.variables[number].what());
                self.allow(depends, &what, span)?;
                let family = self.variables[number].family.clone();
                if family.is_none() && !self.variables_known {
                    self.premature |= depends;
                }
                self.member_of(Storage::Variable(number, depends), &family?, indices, span)
            }
            Symbol::Definition(number) => self.definition(number, indices, span),
            Symbol::Table(number) => {
                let table = &self.tables[number];
                let help = match table.columns.first() {
                    Some((first, _)) => {
                        format!("write {name}.{first}[i]; its columns are {}", table.names())
                    }
                    None => format!("write {name}.column[i]"),
                };
                let message = format!("'{name}' is a table");
                let finding = Diagnostic::error(message, span, "a column and a row are needed");
                self.refuse(finding.help(help))
            }
            Symbol::Label(number) => self.refuse(self.label_as_value(number, declared, span)),
        }
    }

    /// A member of a stored family, or a component of it, by the indices that follow its name.
    fn member_of(
        &mut self,
        storage: Storage,
        family: &Family,
        indices: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        let (own, rest) = self.family_indices(family, indices, span)?;
        let e = CheckedExpression::new(Kind::Member(storage, own), family.shape, span);
        self.component(e, rest, span)
    }

    /// Finding for a name that stands for no value, used as one.
    fn label_as_value(&self, number: usize, declared: Declaration, span: Span) -> Diagnostic {
        let Statement { kind, name, reference, .. } = self.statement(number);
        let Meaning::Label(what, label) = kind.row().meaning else {
            unreachable!("only labels have this symbol")
        };
        let finding = Diagnostic::error(format!("'{}' is {what}", name.text), span, label)
            .related(declared.span, "declared here");
        match kind {
            StatementKind::Velocity => finding.help(format!(
                "the conjugate momentum is called {}",
                names::momentum_of(&reference.text)
            )),
            _ => finding,
        }
    }

    fn unknown_name(&mut self, name: &str, span: Span) -> Option<Ex> {
        if self.poisoned.contains(name) || self.is_full() {
            return None; // declared in an unread statement: that is the error
        }
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
        let locals = self.scope.locals.iter().map(|(n, _)| n);
        let candidates = self.symbols.keys().chain(locals).map(String::as_str).chain(["pi", "t"]);
        let meant = split.or_else(|| did_you_mean(name, candidates).map(str::to_string));
        let help = if let Some(meant) = meant {
            format!("did you mean '{meant}'?")
        } else if name == names::LAMBDA {
            "the multiplier of constraint NAME is lambda.NAME".to_string()
        } else if names::function_names().contains(&name) {
            format!("'{name}' is a function: call it with parentheses")
        } else {
            format!(
                "declare it: `parameter {name} = …`, `coordinate {name} : R^3 = …` or `let {name} = …`"
            )
        };
        let message = format!("unknown name '{name}'");
        self.refuse(Diagnostic::error(message, span, "not declared").help(help))
    }

    pub(super) fn allow(
        &mut self,
        what: expression::Depends,
        name: &str,
        span: Span,
    ) -> Option<()> {
        if what & !self.scope.allowed == 0 {
            return Some(());
        }
        let place = self.scope.place;
        let (label, help) = match what & !self.scope.allowed {
            excess if excess & expression::MULTIPLIER != 0 => (
                "not known here",
                "a method finds the multipliers on its way: only observables may use them",
            ),
            expression::VELOCITY | expression::ACCELERATION => {
                ("not a function of the state here", why_no_velocity(place))
            }
            _ => (
                "not a constant here",
                match place {
                    "the Lagrangian" => {
                        "a Lagrangian is a function of positions and velocities: write q'"
                    }
                    "a rolling constraint" => "a rolling constraint is one on velocities: write q'",
                    "a Poisson matrix" => "J is a function of the state; H may depend on the time",
                    "a size" => "a size is made of numbers and other sizes",
                    "a range" => "a range is made of numbers and sizes",
                    "a parameter" => "a parameter is made of numbers, sizes and other parameters",
                    _ => "only numbers, sizes and parameters are known before the run starts",
                },
            ),
        };
        let message = format!("{name} cannot be used in {place}");
        self.refuse(Diagnostic::error(message, span, label).help(help))
    }

    /// Refuses a parameter in a range or an index, and says how it is declared to be used there.
    pub(super) fn refuse_parameter_as_size<T>(
        &mut self,
        number: usize,
        message: String,
        span: Span,
    ) -> Option<T> {
        let Statement { name, family, values, .. } =
            self.statement(self.parameters[number].statement);
        let help = match values[0].kind {
            ast::ExprKind::Number(v) if family.ranges.is_empty() && v.fract() == 0.0 => {
                format!("declare it as `size {} = {v}`", name.text)
            }
            _ => "a constant that indices and ranges may use is declared with `size`".to_string(),
        };
        let finding = Diagnostic::error(message, span, "a parameter may be any real number");
        self.refuse(finding.help(help).related(name.span, "declared here"))
    }
}

/// Reason why velocities and accelerations have no place there, and the remedy.
fn why_no_velocity(place: &str) -> &'static str {
    match place {
        "the Hamiltonian" => {
            "a Hamiltonian is a function of positions and momenta: write the momentum"
        }
        "the Lagrangian" => "a Lagrangian is a function of positions, velocities and the time",
        "a constraint" => {
            "a constraint is one on positions and momenta; one on velocities is `rolling NAME : EXPR = EXPR`"
        }
        "an integral" => {
            "a first integral is a function of positions and momenta: write the momentum, or `observe`"
        }
        _ => "forces, observables, measures and the `let`s that these use take velocities",
    }
}
