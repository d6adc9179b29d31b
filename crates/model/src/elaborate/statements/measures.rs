//! Measures: a statistic, the quantity that it is taken of, and constant numbers.

use super::CheckedMeasure;
use crate::elaborate::expression::{self, CheckedExpression, Ex};
use crate::elaborate::names::Scope;
use crate::elaborate::statistic::{FORMS, STATISTICS};
use crate::elaborate::{CheckedFormula, Elaborator};
use crate::syntax::ast::{Expr, Name, Statement};
use crate::syntax::diagnostic::{Diagnostic, shorten};

impl Elaborator<'_> {
    pub(super) fn measure(&mut self, number: usize) -> Option<CheckedMeasure> {
        let statement = self.statement(number);
        let Statement { name, reference: statistic, .. } = statement;
        let (value, numbers) = self.measured(statement)?;
        self.scope = Scope::new(expression::FORMULA | expression::FOLLOWING, "a measure");
        let set = self.index_set(&statement.family);
        let value = match value {
            Some(value) => self.value_of(number, value),
            None => Some(CheckedExpression::number(0.0, statistic.span)),
        };
        let constants = expression::PARAMETER | expression::TABLE;
        self.scope = Scope::new(constants, "the numbers of a measure");
        let mut constant = |e: &Expr, what: &str| self.scalar(e, what);
        let numbers: Vec<Option<Ex>> =
            numbers.iter().map(|e| constant(e, "a number of a measure")).collect();
        let mut time = |word: &str| match statement.clause(word) {
            Some(e) => constant(e, "a time").map(Some),
            None => Some(None),
        };
        let (every, from) = (time("every"), time("from"));
        let quantity = CheckedFormula { name: name.clone(), set: set?, value: value? };
        let numbers = numbers.into_iter().collect::<Option<_>>()?;
        let statistic = statistic.clone();
        Some(CheckedMeasure { quantity, statistic, numbers, every: every?, from: from? })
    }

    /// Expressions between the brackets of a statistic: the quantity, unless the statistic takes
    /// none, and the numbers.
    fn measured<'s>(&mut self, statement: &'s Statement) -> Option<(Option<&'s Expr>, &'s [Expr])> {
        let Name { text: word, span } = &statement.reference;
        let forms = || format!("write {FORMS}");
        match (statement.values.split_first(), word == "temperature") {
            _ if !STATISTICS.contains(&word.as_str()) => {
                let message = format!("unknown statistic '{}'", shorten(word));
                let finding = Diagnostic::error(message, *span, "not known");
                self.refuse(finding.suggest(word, STATISTICS, forms))
            }
            (Some((value, numbers)), false) => Some((Some(value), numbers)),
            (None, false) => {
                let message = format!("'{word}' is of an expression");
                let finding = Diagnostic::error(message, *span, "nothing is measured");
                self.refuse(finding.help(forms()))
            }
            (None, true) if self.is_canonical() => Some((None, &[])),
            (_, true) => {
                let (reason, help) = match self.is_canonical() {
                    true => ("the temperature is that of all momenta", "write temperature()"),
                    false => {
                        ("the temperature is that of momenta", "average an expression: mean(EXPR)")
                    }
                };
                let finding = Diagnostic::error(reason, *span, "not known here");
                self.refuse(finding.help(help))
            }
        }
    }
}
