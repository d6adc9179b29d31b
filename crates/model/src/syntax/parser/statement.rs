//! Parser of statements: the word that begins one, the parts that its row names, and its end.

use super::super::ast::{Name, Statement};
use super::super::diagnostic::{Diagnostic, did_you_mean, shorten};
use super::super::statements::{STATEMENTS, StatementKind, StatementPart, StatementRow};
use super::super::token::TokenKind;
use super::super::words::statement_words;
use super::{Parsed, Parser, ReportedMistake};

impl Parser<'_> {
    /// Reads a statement, up to the end of its lines.
    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        let start = self.span();
        self.row = self.beginning()?;
        let mut statement = Statement::new(self.row.kind, start);
        for &part in self.row.parts {
            self.part(part, &mut statement)?;
        }
        statement.span = start.to(self.previous().map_or(start, |token| token.span));
        self.end()?;
        Ok(statement)
    }

    /// Reads a part of a statement.
    fn part(&mut self, part: StatementPart, statement: &mut Statement) -> Parsed<()> {
        match part {
            StatementPart::Name => statement.name = self.name_declared()?,
            StatementPart::State => statement.name = self.take_name(),
            StatementPart::Family => {
                // A statement that declares no name is called by its word.
                let nameless = self.row.parts[0] == StatementPart::Family;
                let name = if nameless { self.row.word } else { &statement.name.text };
                statement.family = self.family(name)?;
            }
            StatementPart::Indices(owner) => statement.indices = self.indices(owner)?,
            StatementPart::Parameters => self.parameters(statement)?,
            StatementPart::Of(word) => self.reference(word, statement)?,
            StatementPart::On => statement.values.push(self.acted_on(&statement.name)?),
            StatementPart::Moving => self.moving(statement)?,
            StatementPart::Shape => statement.shape = self.shape()?,
            StatementPart::Prime => self.prime_of_state(&statement.name)?,
            StatementPart::Equals => self.equals()?,
            StatementPart::InitialValue if self.kind() == TokenKind::End => {}
            StatementPart::Value | StatementPart::InitialValue => {
                statement.values.push(self.value()?)
            }
            StatementPart::Expression => statement.values.push(self.nameless_expression()?),
            StatementPart::Equation => statement.values.extend(self.equation(&statement.name)?),
            StatementPart::Statistic => self.statistic(statement)?,
            StatementPart::Clauses(words) => self.clauses(words, statement)?,
            StatementPart::Word(words) => {
                if words.contains(&self.word()) {
                    statement.words.push(self.take_name());
                }
            }
            StatementPart::Action => self.action(statement)?,
            StatementPart::Path(owner) => statement.reference = self.path(owner)?,
            StatementPart::Setting => self.setting(statement)?,
            StatementPart::Units => statement.words = self.units()?,
            StatementPart::Drawing => self.drawing(statement)?,
        }
        Ok(())
    }

    /// Steps over the word that begins the statement and returns its row; does not step for `NAME'
    /// = EXPR`. A word that is nearly a statement word, or one of another language, is reported and
    /// read as the statement word.
    fn beginning(&mut self) -> Parsed<&'static StatementRow> {
        let (span, word, next) = (self.span(), self.word(), self.kind_after(1));
        if self.kind() != TokenKind::Name {
            return self.no_statement();
        }
        let row = StatementRow::of(word);
        let may_be_state = row.is_none_or(StatementRow::has_free_word);
        let primed = next == TokenKind::Prime
            || next == TokenKind::OpenSquare && self.is_indexed_derivative();
        if may_be_state && primed {
            return Ok(StatementKind::Derivative.row());
        }
        if let Some(row) = row {
            self.advance();
            return Ok(row);
        }
        let assigns = matches!(next, TokenKind::Equals | TokenKind::Colon);
        let follows = |row: &&StatementRow| {
            let opens = assigns || next == TokenKind::OpenRound;
            next == TokenKind::Name || row.is_nameless() && opens
        };
        let small = word.to_lowercase();
        let elsewhere = STATEMENTS.iter().find(|row| row.elsewhere.contains(&small.as_str()));
        let meant =
            elsewhere.or_else(|| did_you_mean(word, statement_words()).and_then(StatementRow::of));
        let Some(meant) = meant.filter(follows) else { return self.no_statement() };
        let message = format!("unknown statement '{}'", shorten(word));
        let help = if assigns {
            format!("did you mean '{}'? It takes no name and no '=': {}", meant.word, meant.form)
        } else {
            format!("did you mean '{}'?", meant.word)
        };
        self.report(Diagnostic::error(message, span, "does not begin a statement").help(help));
        // `hamiltoniansum(i in …` and `hamil(…` are too far from a statement to look for other
        // mistakes.
        if next == TokenKind::OpenRound && !meant.word.eq_ignore_ascii_case(word) {
            return Err(ReportedMistake);
        }
        self.advance();
        if assigns {
            self.advance(); // `H = …`: the '=' is part of the same mistake
        }
        Ok(meant)
    }

    /// True if the bracket after the next token is closed before a prime.
    fn is_indexed_derivative(&self) -> bool {
        let mut inside = self.tokens[self.position + 1..]
            .iter()
            .skip_while(|token| token.kind != TokenKind::CloseSquare);
        inside.next().is_some() && inside.next().is_some_and(|token| token.kind == TokenKind::Prime)
    }

    /// Refuses a line that begins like no statement.
    fn no_statement<T>(&mut self) -> Parsed<T> {
        let (span, found, kind) = (self.span(), self.found(), self.kind());
        let finding = match kind {
            TokenKind::Unknown => return self.unexpected("a statement"),
            TokenKind::Name => self.formula_as_statement(),
            kind if kind.is_closer() => self.stray_bracket(),
            kind => {
                let message = format!("no statement begins with {found}");
                let finding = Diagnostic::error(message, span, "expected a statement");
                finding.help(match kind.continues_line() {
                    true => format!(
                        "a line goes on when it ends in an operator: move {found} to the end of the line above"
                    ),
                    false => words(),
                })
            }
        };
        self.fail(finding)
    }

    /// Finding for a line that begins with a name and is no statement.
    fn formula_as_statement(&mut self) -> Diagnostic {
        let (span, name, next) = (self.span(), shorten(self.word()), self.kind_after(1));
        let message = format!("no statement begins with '{name}'");
        let finding = Diagnostic::error(message, span, "expected a statement");
        match next {
            TokenKind::Equals => {
                self.declared = Some(self.name_at(0));
                let message = format!("'{name} = …' is not a statement");
                Diagnostic::error(message, span, "expected a statement word before it").help(
                    format!("write parameter {name} = …, let {name} = … or {name}' = …"),
                )
            }
            TokenKind::OpenSquare => finding.help(format!(
                "write {name}[i]' = … for a differential equation, let {name}[i in 1..n] = … for a definition"
            )),
            TokenKind::Dot if self.kind_after(3) == TokenKind::Prime => {
                let message = "a component has no differential equation of its own";
                Diagnostic::error(message, span, "expected a whole state")
                    .help(format!("give the whole vector: {name}' = (…)"))
            }
            TokenKind::Slash if self.text_after(2) == "dt" && name.starts_with('d') => finding
                .help(format!("write {}' = EXPR for the rate of change of a state", &name[1..])),
            _ if next == TokenKind::OpenRound || next == TokenKind::Dot || next.is_infix() => finding
                .help("an expression needs a statement: hamiltonian EXPR, observe NAME = EXPR, let NAME = EXPR"),
            _ => {
                if next == TokenKind::Name {
                    self.declared = Some(self.name_at(1));
                }
                let message = format!("unknown statement '{name}'");
                Diagnostic::error(message, span, "does not begin a statement").help(words())
            }
        }
    }

    /// The token that is `distance` behind the next one, as a name.
    fn name_at(&self, distance: usize) -> Name {
        let span = self.tokens[self.position + distance].span;
        Name { text: self.text(span).to_string(), span }
    }

    /// Reports anything that follows a statement; the statement itself has been read.
    fn end(&mut self) -> Parsed<()> {
        let (row, found) = (self.row, self.found());
        let help = match self.kind() {
            TokenKind::End => return Ok(()),
            TokenKind::Name if self.at_statement() => {
                format!("one statement a line: begin a new line before {found}")
            }
            TokenKind::Equals if row.is_nameless() => {
                format!("the Hamiltonian has no name and no '=': {}", row.form)
            }
            TokenKind::Equals if row.parts.contains(&StatementPart::Equation) => {
                format!("a {0} has one '='; write another {0}", row.word)
            }
            TokenKind::Equals => "write '==' to compare".to_string(),
            TokenKind::Comma if self.kind_after(1) == TokenKind::End => {
                "remove the ','".to_string()
            }
            TokenKind::Comma => {
                "a vector needs brackets, (a, b); a decimal point is '.'; one statement a line"
                    .to_string()
            }
            _ => return self.unexpected("the end of the line"),
        };
        if !self.is_beside_report() {
            let message = format!("unexpected {found}");
            let finding = Diagnostic::error(message, self.span(), "expected the end of the line");
            self.report(finding.help(help));
        }
        Ok(())
    }
}

/// Help for a line that begins with another word.
fn words() -> String {
    format!("statements begin with {}", statement_words().collect::<Vec<_>>().join(", "))
}
