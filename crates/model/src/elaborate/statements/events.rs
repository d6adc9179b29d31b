//! Events and impacts: a function whose zeros count, and what happens there.

use super::forces::places;
use super::quantities::FormulaLowering;
use super::{CheckedAction, CheckedEvent};
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind, Storage};
use crate::elaborate::lower::Purpose;
use crate::elaborate::model::{Event, EventAction, Reset};
use crate::elaborate::names::Scope;
use crate::elaborate::shape::Shape;
use crate::elaborate::{CheckedFormula, Elaborator};
use crate::syntax::ast::{Expr, Statement};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::statements::StatementKind;

impl Elaborator<'_> {
    /// An event or an impact.
    pub(super) fn event(&mut self, number: usize) -> Option<CheckedEvent> {
        let statement = self.statement(number);
        let Statement { name, family, values, .. } = statement;
        if !self.declares(name) {
            return None; // a duplicate, reported
        }
        let [left, right, resets @ ..] = &values[..] else { return None };
        let is_impact = statement.kind == StatementKind::Impact;
        let what = if is_impact { "an impact" } else { "an event" };
        self.scope = match is_impact {
            true => Scope::new(expression::FORMULA & !expression::MOMENTUM, what),
            false => Scope::new(expression::FORMULA | expression::FOLLOWING, what),
        };
        let set = self.index_set(family)?;
        let side = format!("the function of {what}");
        let (l, r) = (self.scalar(left, &side)?, self.scalar(right, &side)?);
        let span = left.span.to(right.span);
        let moves = expression::DYNAMIC | expression::FOLLOWING;
        if (l.depends | r.depends) & moves == 0 {
            let message =
                format!("{} '{}' holds no variable", statement.kind.row().word, name.text);
            return self.refuse(Diagnostic::error(message, span, "nothing here moves"));
        }
        let value = match r.value() == Some(0.0) {
            true => l,
            false => {
                let terms = Kind::Add(vec![(false, l), (true, r)]);
                CheckedExpression::new(terms, Shape::Scalar, span)
            }
        };
        let action = match is_impact {
            true => self.impact(statement)?,
            false => self.event_action(statement, resets)?,
        };
        let every = statement.clause("every").map(|every| self.constant_of_event(every));
        let every = match every {
            Some(every) => Some(every?),
            None => None,
        };
        let direction = i8::from(statement.says("rising")) - i8::from(statement.says("falling"));
        let quantity = CheckedFormula { name: name.clone(), set, value };
        Some(CheckedEvent { quantity, direction, every, action })
    }

    fn constant_of_event(&mut self, e: &Expr) -> Option<Ex> {
        let scope = Scope::new(expression::PARAMETER | expression::TABLE, "the K of every K");
        self.within(scope, |this| this.scalar(e, "the number of crossings"))
    }

    fn event_action(&mut self, statement: &Statement, resets: &[Expr]) -> Option<CheckedAction> {
        if resets.is_empty() {
            return Some(match statement.says("stop") {
                true => CheckedAction::Stop,
                false => CheckedAction::Record,
            });
        }
        let mut checked = Vec::new();
        for pair in resets.chunks_exact(2) {
            let (place, value) = (self.value(&pair[0])?, self.value(&pair[1])?);
            if !is_variable(&place) {
                let message = "an event sets a variable, one of its members or a component";
                let finding = Diagnostic::error(message, pair[0].span, "is none");
                return self.refuse(finding.help("write event NAME : EXPR = 0 : p.z -> -p.z"));
            }
            let is_zero = value.value() == Some(0.0);
            if value.shape != place.shape && !is_zero {
                let message = format!(
                    "'{}' sets something in {} to a value in {}",
                    statement.name.text, place.shape, value.shape
                );
                let label = format!("this has the shape {}", value.shape);
                let finding = Diagnostic::error(message, pair[1].span, label);
                return self.refuse(finding.related(pair[0].span, place.shape.to_string()));
            }
            let value = match is_zero {
                true => CheckedExpression::zero(place.shape, pair[1].span),
                false => value,
            };
            checked.push((place, value));
        }
        Some(CheckedAction::Reset(checked))
    }

    fn impact(&mut self, statement: &Statement) -> Option<CheckedAction> {
        let name = &statement.name;
        if !self.is_canonical() {
            let message =
                format!("impact '{}' turns momenta around, and there are none", name.text);
            let finding = Diagnostic::error(message, name.span, "a `state` model");
            return self.refuse(finding.help("write event NAME : EXPR = 0 : v -> EXPR"));
        }
        let Some(restitution) = statement.clause("restitution") else {
            let message = format!("impact '{}' has no coefficient of restitution", name.text);
            let finding = Diagnostic::error(message, name.span, "how much of it bounces?");
            let help = format!("write impact {} : EXPR = 0 restitution 0.9", name.text);
            return self.refuse(finding.help(help));
        };
        let scope = Scope { allowed: expression::FORMULA, ..self.scope.clone() };
        self.within(scope, |this| {
            let restitution = this.scalar(restitution, "a coefficient of restitution")?;
            let friction = match statement.clause("friction") {
                Some(friction) => Some(this.scalar(friction, "a coefficient of friction")?),
                None => None,
            };
            Some(CheckedAction::Impact { restitution, friction })
        })
    }
}

impl FormulaLowering<'_> {
    /// Lowers an event, with the values of the parameters.
    pub(super) fn event(&mut self, event: &CheckedEvent, parameters: &[f64]) -> Option<Event> {
        let CheckedEvent { quantity: checked, direction, every, action } = event;
        let quantity = self.quantity(Purpose::Motion, checked)?;
        let set = &checked.set;
        let every = match every {
            None => 1,
            Some(e) => {
                let every = self.lower_single(Purpose::Other, e)?.evaluate(0.0, &[], parameters)[0];
                if !(1.0..=1e15).contains(&every) || every.fract() != 0.0 {
                    let message = format!("an event acts at every {every}th crossing");
                    let finding = Diagnostic::error(message, e.span, "not 1, 2, 3, …");
                    self.findings.push(finding);
                    return None;
                }
                every as u64
            }
        };
        let action = match action {
            CheckedAction::Record => EventAction::Record,
            CheckedAction::Stop => EventAction::Stop,
            CheckedAction::Reset(list) => {
                let mut resets = Vec::new();
                for (place, value) in list {
                    let values = self.lower_fixed(Purpose::Motion, set, value)?.functional;
                    let place = self.lower_fixed(Purpose::Other, set, place)?.functional;
                    resets.push(Reset { values, places: places(&place) });
                }
                EventAction::Reset(resets)
            }
            CheckedAction::Impact { restitution, friction } => EventAction::Impact {
                restitution: self.lower_fixed(Purpose::Motion, set, restitution)?.functional,
                friction: match friction {
                    Some(friction) => {
                        Some(self.lower_fixed(Purpose::Motion, set, friction)?.functional)
                    }
                    None => None,
                },
            },
        };
        Some(Event { quantity, direction: *direction, every, action })
    }
}

/// True for a variable, a member of a family of them, or a component of one.
fn is_variable(e: &Ex) -> bool {
    match &e.kind {
        Kind::Member(Storage::Variable(..), _) => true,
        Kind::Component(of, _) => is_variable(of),
        _ => false,
    }
}
