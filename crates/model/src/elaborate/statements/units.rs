//! The `unit` statement: words for the units of length, mass and time.

use crate::elaborate::Elaborator;
use crate::elaborate::model::Units;
use crate::syntax::ast::Statement;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::statements::StatementKind;

impl Elaborator<'_> {
    /// Words of statement `number`, a `unit` statement.
    pub(super) fn units(&mut self, number: usize) -> Option<Units> {
        let Statement { span, words, .. } = self.statement(number);
        let before = &self.statements[..number];
        if let Some(first) = before.iter().find(|other| other.kind == StatementKind::Unit) {
            let message = "the units are given twice";
            let finding = Diagnostic::error(message, *span, "second time");
            let help =
                "a model has one unit of length, of mass and of time, also with its included files";
            return self.refuse(finding.help(help).related(first.span, "first time"));
        }
        let [length, mass, time] = &words[..] else { return None };
        let pairs = [(length, mass), (length, time), (mass, time)];
        if let Some((first, second)) = pairs.into_iter().find(|(a, b)| a.text == b.text) {
            let message = format!("'{}' stands for two units", second.text);
            let finding = Diagnostic::error(message, second.span, "second time");
            let help = "the three words are units of length, mass and time: `unit m, kg, s`";
            return self.refuse(finding.help(help).related(first.span, "first time"));
        }
        let [length, mass, time] = [length, mass, time].map(|word| word.text.clone());
        Some(Units { length, mass, time })
    }
}
