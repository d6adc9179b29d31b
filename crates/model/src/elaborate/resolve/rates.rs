//! Velocities `q'` and accelerations `q''` of coordinates.

use crate::elaborate::Elaborator;
use crate::elaborate::expression::{self, CheckedExpression, Depends, Ex, Kind, Storage};
use crate::syntax::ast;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

impl Elaborator<'_> {
    /// The velocity or acceleration of a coordinate, or of a component of one.
    pub(super) fn rate(&mut self, of: &ast::Expr, primes: usize, span: Span) -> Option<Ex> {
        let (what, storage): (Depends, fn(usize) -> Storage) = match primes {
            1 => (expression::VELOCITY, Storage::Velocity),
            2 => (expression::ACCELERATION, Storage::Acceleration),
            _ => {
                let message = format!("there is no rate of change of order {primes}");
                let finding = Diagnostic::error(message, span, "too many primes");
                return self.refuse(finding.help("q' is a velocity, q'' an acceleration"));
            }
        };
        let outer = self.scope.allowed;
        self.scope.allowed |= expression::POSITION | expression::MOMENTUM | expression::STATE;
        let premature = self.premature;
        let e = self.value(of);
        self.scope.allowed = outer;
        if self.premature != premature {
            self.premature = premature | what;
        }
        let e = e?;
        let Some(rate) = rate_of(&e, storage, span) else {
            return self.refuse(no_rate(&e, of.span));
        };
        let name = if primes == 1 { "a velocity" } else { "an acceleration" };
        self.allow(what, name, span)?;
        Some(rate)
    }
}

/// The rate of change of a coordinate or of a component of one; `None` for anything else.
fn rate_of(e: &Ex, storage: fn(usize) -> Storage, span: Span) -> Option<Ex> {
    let kind = match &e.kind {
        Kind::Member(Storage::Variable(number, expression::POSITION), indices) => {
            Kind::Member(storage(*number), indices.clone())
        }
        Kind::Component(of, indices) => {
            Kind::Component(rate_of(of, storage, span)?, indices.clone())
        }
        _ => return None,
    };
    Some(CheckedExpression::new(kind, e.shape, span))
}

/// Finding for a prime after something that is no coordinate.
fn no_rate(e: &Ex, span: Span) -> Diagnostic {
    let help = match e.kind {
        Kind::Member(Storage::Variable(_, expression::MOMENTUM), _) => {
            "the rate of a momentum is the force; a coordinate has a velocity, q'"
        }
        Kind::Member(Storage::Variable(_, expression::STATE), _) => {
            "the rate of a state is the right side of its own statement: give that a name by `let`"
        }
        _ => "a prime follows a coordinate, q' or r[i]'; a transpose is transpose(…)",
    };
    Diagnostic::error("only a coordinate has a velocity", span, "no coordinate").help(help)
}
