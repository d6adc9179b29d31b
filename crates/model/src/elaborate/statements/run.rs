//! `run` statements: options of runs that a model suggests. Which options there are is known to
//! whoever runs it.

use super::CheckedDefault;
use super::quantities::FormulaLowering;
use crate::elaborate::Elaborator;
use crate::elaborate::expression;
use crate::elaborate::lower::Purpose;
use crate::elaborate::model::{DefaultValue, RunDefault};
use crate::elaborate::names::Scope;
use crate::syntax::ast::Statement;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::statements::StatementKind;

impl Elaborator<'_> {
    /// Option and value of statement `number`, a `run` statement.
    pub(super) fn run_default(&mut self, number: usize) -> Option<CheckedDefault> {
        let Statement { name, reference, values, .. } = self.statement(number);
        let same =
            |other: &&Statement| other.kind == StatementKind::Run && other.name.text == name.text;
        if let Some(first) = self.statements[..number].iter().find(same) {
            let message = format!("the option '{}' is given twice", name.text);
            let finding = Diagnostic::error(message, name.span, "second time");
            return self.refuse(finding.related(first.name.span, "first time"));
        }
        let constants = expression::PARAMETER | expression::TABLE;
        self.scope = Scope::new(constants, "the options of a run");
        let value = match values.first() {
            Some(value) => Some(self.scalar(value, "an option")?),
            None => None,
        };
        Some(CheckedDefault { name: name.clone(), value, text: reference.clone() })
    }
}

impl FormulaLowering<'_> {
    /// Evaluates the value of an option, a constant.
    pub(super) fn run_default(
        &mut self,
        checked: &CheckedDefault,
        parameters: &[f64],
    ) -> Option<RunDefault> {
        let CheckedDefault { name, value, text } = checked;
        let value = match value {
            None => DefaultValue::Text(text.clone()),
            Some(e) => {
                let formula = self.lower_single(Purpose::Other, e)?;
                let number = formula.evaluate(0.0, &[], parameters)[0];
                DefaultValue::Number(number, e.span, formula)
            }
        };
        Some(RunDefault { name: name.clone(), value })
    }
}
