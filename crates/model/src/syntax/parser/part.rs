//! Parser of the parts of statements.

use super::super::ast::{BinaryOperator, Expr, ExprKind, Name, Statement};
use super::super::diagnostic::{Diagnostic, shorten};
use super::super::statements::StatementKind;
use super::super::token::TokenKind;
use super::super::words::{FUNCTIONS, reserved};
use super::expression::Owner;
use super::{Parsed, Parser, ReportedMistake};

/// Options whose values are no expressions: a name with signs of its own, `corrected:rk4`, or a
/// word.
const TEXTS: [&str; 2] = ["method", "singular"];

/// Help for malformed units.
const UNITS: &str = "name the units of length, mass and time, such as `unit m, kg, s`; those of other quantities follow";

impl Parser<'_> {
    /// Reads the name that the statement declares.
    pub(super) fn name_declared(&mut self) -> Parsed<Name> {
        let (span, kind, next) = (self.span(), self.kind(), self.kind_after(1));
        // `integral dot(q, p)` and `constraint q.x = 0` begin with the expression at once.
        let nameless = match kind {
            TokenKind::Name => {
                matches!(next, TokenKind::Dot | TokenKind::Prime)
                    || next.is_infix() && next != TokenKind::EqualEqual
                    || next == TokenKind::OpenRound && FUNCTIONS.contains(&self.word())
            }
            TokenKind::Unknown => return self.unexpected("a name"),
            TokenKind::Number(_)
                if next == TokenKind::Name && declares_after(self.kind_after(2)) =>
            {
                let (number, text) = (shorten(self.word()), shorten(self.text_after(1)));
                let span = span.to(self.tokens[self.position + 1].span);
                let message = format!("the name '{number}{text}' begins with a digit");
                let help = format!("write {text}{number} or {text}_{number}");
                return self.fail(Diagnostic::error(message, span, "not a name").help(help));
            }
            _ => !(kind.is_word() && declares_after(next)),
        };
        if nameless {
            let message = format!("'{}' lacks a name", self.row.word);
            return self.fail(self.malformed(message, "expected a name"));
        }
        let name = self.take_name();
        // No formula names events and forces, so that nothing is mistaken for the function: `impact
        // floor : …`.
        let is_unnamed = matches!(
            self.row.kind,
            StatementKind::Event | StatementKind::Impact | StatementKind::Force
        );
        if !(is_unnamed && FUNCTIONS.contains(&name.text.as_str())) {
            self.check_reserved(&name);
            if reserved(&name.text).is_some() && self.kind() == TokenKind::Name {
                return Err(ReportedMistake); // `state let R : …`: the reserved word is one too many, not a name
            }
        }
        self.declared = Some(name.clone());
        Ok(name)
    }

    /// Reads `(x, y)` after the name of a `let`, if it comes next.
    pub(super) fn parameters(&mut self, statement: &mut Statement) -> Parsed<()> {
        if self.kind() != TokenKind::OpenRound {
            return Ok(());
        }
        let start = self.open_bracket();
        if self.kind() != TokenKind::CloseRound {
            statement.parameters.push(self.index()?);
            while self.eat(TokenKind::Comma).is_some() {
                statement.parameters.push(self.index()?);
            }
        }
        let span = start.to(self.close_bracket("',' or ')'")?);
        let text = shorten(&statement.name.text);
        if statement.parameters.is_empty() {
            let message = format!("the function '{text}' has no parameters");
            let help = format!("write let {text} = EXPR and use it as {text}");
            self.report(Diagnostic::error(message, span, "empty").help(help));
        } else if !statement.family.ranges.is_empty() {
            let message = "a definition has either indices or parameters";
            let help = format!("make the index a parameter: let {text}(i, …) = EXPR");
            let finding = Diagnostic::error(message, span, "indices stand before this");
            return self.fail(finding.help(help));
        }
        Ok(())
    }

    /// Reads `of COORDINATE`, or another word and a coordinate.
    pub(super) fn reference(&mut self, of: &str, statement: &mut Statement) -> Parsed<()> {
        let (word, name) = (self.row.word, shorten(&statement.name.text));
        if self.word() != of {
            if self.kind() == TokenKind::Unknown || self.unclosed_bracket().is_some() {
                return self.unexpected(&format!("'{of}'"));
            }
            let message = format!("the {word} '{name}' does not say its coordinate");
            let label = format!("expected '{of}' and a coordinate");
            let finding = Diagnostic::error(message, self.span(), label);
            return self.fail(finding.help(format!("write {word} {name} {of} COORDINATE = EXPR")));
        }
        self.advance();
        if self.kind() != TokenKind::Name {
            return self.unexpected("the name of a coordinate");
        }
        statement.reference = self.take_name();
        if self.row.has_indexed_coordinate() {
            return Ok(());
        }
        if self.kind() == TokenKind::OpenSquare {
            let start = self.span();
            let named = self.indices("its coordinate")?;
            let span = start.to(self.previous().map_or(start, |token| token.span));
            let indices: Vec<_> = named.iter().map(|index| index.text.as_str()).collect();
            let indices = shorten(&indices.join(", "));
            let coordinate = shorten(&statement.reference.text);
            let message = format!("no index stands after '{of}'");
            let label = format!("belongs to the name before '{of}'");
            let help = format!("write {word} {name}[{indices}] {of} {coordinate}");
            self.report(Diagnostic::error(message, span, label).help(help));
        }
        self.refuse_shape("it is its coordinate's")
    }

    /// Reads `on COORDINATE` after the name of a force.
    pub(super) fn acted_on(&mut self, name: &Name) -> Parsed<Expr> {
        if self.word() != "on" {
            if self.kind() == TokenKind::Unknown || self.unclosed_bracket().is_some() {
                return self.unexpected("'on'");
            }
            let (word, name) = (self.row.word, shorten(&name.text));
            let message = format!("the {word} '{name}' does not say what it acts on");
            let finding = Diagnostic::error(message, self.span(), "expected 'on' and a coordinate");
            return self.fail(finding.help(format!("write {word} {name} on COORDINATE = EXPR")));
        }
        self.advance();
        if self.kind() != TokenKind::Name {
            return self.unexpected("a coordinate");
        }
        self.place()
    }

    /// Reads `(x, y[i])`, the states that a Poisson matrix moves.
    pub(super) fn moving(&mut self, statement: &mut Statement) -> Parsed<()> {
        statement.name.text = "J".to_string();
        if self.kind() != TokenKind::OpenRound {
            if self.kind() == TokenKind::Unknown || self.unclosed_bracket().is_some() {
                return self.unexpected("'('");
            }
            let message = "the states of a Poisson matrix stand in brackets".to_string();
            return self.fail(self.malformed(message, "expected '('"));
        }
        self.open_bracket();
        loop {
            if self.kind() != TokenKind::Name {
                return self.unexpected("a state");
            }
            let state = self.place()?;
            statement.values.push(state);
            if self.eat(TokenKind::Comma).is_none() {
                break;
            }
        }
        self.close_bracket("',' or ')'")?;
        Ok(())
    }

    /// Reads the prime of `NAME' = EXPR`.
    pub(super) fn prime_of_state(&mut self, state: &Name) -> Parsed<()> {
        let prime = self.advance();
        if self.kind() != TokenKind::Prime {
            return Ok(());
        }
        let (span, text) = (prime.to(self.span()), shorten(&state.text));
        let message = format!("'{text}' has two primes");
        let help = format!("declare its velocity as a state of its own: {text}' = v, v' = EXPR");
        self.fail(Diagnostic::error(message, span, "a second derivative").help(help))
    }

    /// Reads `= EXPR`.
    pub(super) fn value(&mut self) -> Parsed<Expr> {
        self.equals()?;
        self.present_expression()
    }

    /// Reads an expression, or refuses a statement that ends where it should begin.
    pub(super) fn present_expression(&mut self) -> Parsed<Expr> {
        match self.kind() {
            TokenKind::End => self.nothing_follows(),
            _ => self.expression(),
        }
    }

    /// Reads `=`.
    pub(super) fn equals(&mut self) -> Parsed<()> {
        let (span, found) = (self.span(), self.found());
        match self.kind() {
            TokenKind::Equals => {}
            TokenKind::EqualEqual => {
                let message = "'==' compares; it does not define";
                self.report(Diagnostic::error(message, span, "expected '='").help("write '='"));
            }
            TokenKind::Colon => {
                self.refuse_shape("it is its value's")?;
                return match self.kind() {
                    TokenKind::Colon => self.unexpected("'='"),
                    _ => self.equals(),
                };
            }
            TokenKind::Comma => {
                let finding = Diagnostic::error("unexpected ','", span, "expected '='");
                return self.fail(finding.help("one statement a line, one name a statement"));
            }
            TokenKind::End => {
                let message = "'=' and a value are missing".to_string();
                return self.fail(self.malformed(message, "expected '='"));
            }
            kind if kind.begins_operand() && self.unclosed_bracket().is_none() => {
                let message = format!("'=' is missing before {found}");
                return self.fail(self.malformed(message, "expected '=' before this"));
            }
            _ => return self.unexpected("'='"),
        }
        self.advance();
        Ok(())
    }

    /// Reads an expression that needs no name and no '='.
    pub(super) fn nameless_expression(&mut self) -> Parsed<Expr> {
        let assigns = |kind| matches!(kind, TokenKind::Equals | TokenKind::Colon);
        let named = self.kind() == TokenKind::Name && assigns(self.kind_after(1));
        if named || assigns(self.kind()) {
            let start = self.advance();
            let span = if named { start.to(self.advance()) } else { start };
            let message = "the Hamiltonian takes no name and no '='";
            let help = format!("write {}; options and results call it 'H'", self.row.form);
            self.report(Diagnostic::error(message, span, "not needed").help(help));
        }
        self.present_expression()
    }

    /// Reads `: EXPR = EXPR`, both sides of an equation.
    pub(super) fn equation(&mut self, name: &Name) -> Parsed<[Expr; 2]> {
        self.in_bound = self.row.goes_on_behind_equation();
        let sides = self.both_sides(name);
        self.in_bound = false;
        sides
    }

    fn both_sides(&mut self, name: &Name) -> Parsed<[Expr; 2]> {
        if self.eat(TokenKind::Colon).is_none() && self.is_colon_forgotten(name)? {
            let left = self.expression()?;
            // Mistakes that follow from the missing ':' are not reported: `constraint rod = a - b`
            // is a - b = 0.
            let right = match self.eat(TokenKind::Equals) {
                Some(_) => self.expression()?,
                None => Expr { kind: ExprKind::Number(0.0), span: left.span },
            };
            return Ok([left, right]);
        }
        let left = self.present_expression()?;
        if self.kind() == TokenKind::End {
            return self.sides(left);
        }
        if self.eat(TokenKind::Equals).is_none() {
            return self.unexpected("'='");
        }
        Ok([left, self.present_expression()?])
    }

    /// Reports the missing ':' of an equation, if all else is there. Returns true, and steps over
    /// the '=', if one stands in place of the ':'.
    fn is_colon_forgotten(&mut self, name: &Name) -> Parsed<bool> {
        let readable = self.unclosed_bracket().is_none() && self.kind() != TokenKind::Unknown;
        // `constraint rod = a - b` and `constraint rod dot(q, q) = 1` lack nothing but the colon.
        let equals = self.kind() == TokenKind::Equals;
        let goes_on = equals || self.kind().begins_operand() || self.kind() == TokenKind::Minus;
        if !readable || !goes_on {
            return self.unexpected("':'");
        }
        if self.is_beside_report() {
            return Err(ReportedMistake);
        }
        let (word, text) = (self.row.word, shorten(&name.text));
        let message = format!("a ':' is missing after the {word}'s name '{text}'");
        let finding = Diagnostic::error(message, self.span(), "expected ':'");
        self.report(finding.help(format!("write {word} {text} : EXPR = EXPR")));
        if equals {
            self.advance();
        }
        Ok(equals)
    }

    /// Sides of an equation without `=`: `a == b` is read as the equation, `a <= b` and `a - b` are
    /// refused.
    fn sides(&mut self, expr: Expr) -> Parsed<[Expr; 2]> {
        let (text, span, word) = (self.shown(&expr), expr.span, self.row.word);
        let a = if word.starts_with(['e', 'i']) { "an" } else { "a" };
        match expr.kind {
            ExprKind::Binary(BinaryOperator::Equal, at, left, right) => {
                let message = format!("{a} {word} is an equation, not a comparison");
                self.report(Diagnostic::error(message, at, "expected '='").help("write '='"));
                Ok([*left, *right])
            }
            ExprKind::Binary(operator, at, ..) if operator.is_comparison() => {
                let message = format!("{a} {word} is an equation, not an inequality");
                let help = match self.row.goes_on_behind_equation() {
                    true => "it is where a function crosses zero: write EXPR = 0".to_string(),
                    false => format!(
                        "{word}s hold with '=' only; a penalty in the Hamiltonian can keep a system on one side"
                    ),
                };
                self.fail(Diagnostic::error(message, at, "expected '='").help(help))
            }
            _ => {
                let message = format!("the {word} lacks its '='");
                let finding = Diagnostic::error(message, span, "expected '=' after this");
                self.fail(finding.help(format!("write {text} = 0")))
            }
        }
    }

    /// Reads `STATISTIC(ranges : EXPR, EXPR, …)`.
    pub(super) fn statistic(&mut self, statement: &mut Statement) -> Parsed<()> {
        if self.kind() == TokenKind::End {
            return self.nothing_follows();
        }
        if self.kind() != TokenKind::Name || self.kind_after(1) != TokenKind::OpenRound {
            let (span, label) = (self.span(), "expected mean(, histogram(, …");
            let message = "a measure says what is averaged, and how";
            let help = format!("write measure {} = mean(EXPR)", shorten(&statement.name.text));
            return self.fail(Diagnostic::error(message, span, label).help(help));
        }
        statement.reference = self.take_name();
        self.open_bracket();
        if self.kind() != TokenKind::CloseRound {
            if self.at_index_set() {
                statement.family = self.ranges(Owner::Sum)?.0;
                self.sum_separator()?;
            }
            statement.values.push(self.expression()?);
            while self.eat(TokenKind::Comma).is_some() {
                statement.values.push(self.expression()?);
            }
        }
        self.close_bracket("',' or ')'")?;
        Ok(())
    }

    /// Reads clauses, each once at most: one of the `words` and an expression.
    pub(super) fn clauses(
        &mut self,
        words: &'static [&'static str],
        statement: &mut Statement,
    ) -> Parsed<()> {
        while let Some(word) = words.iter().find(|word| **word == self.word())
            && statement.clause(word).is_none()
        {
            self.advance();
            // A name after a number may be the next of these words.
            self.in_bound = true;
            let value = self.expression();
            self.in_bound = false;
            statement.clauses.push((word, value?));
        }
        Ok(())
    }

    /// Reads what an event does, behind a colon.
    pub(super) fn action(&mut self, statement: &mut Statement) -> Parsed<()> {
        if self.eat(TokenKind::Colon).is_none() {
            return Ok(());
        }
        if self.kind() == TokenKind::End {
            return self.nothing_follows();
        }
        if ["stop", "record"].contains(&self.word()) && self.kind_after(1) == TokenKind::End {
            statement.words.push(self.take_name());
            return Ok(());
        }
        loop {
            if self.kind() != TokenKind::Name {
                return self.unexpected("'stop', 'record' or a variable");
            }
            let place = self.place()?;
            let is_arrow =
                self.kind() == TokenKind::Minus && self.kind_after(1) == TokenKind::Greater;
            if !is_arrow {
                let message = format!("an event sets '{}' by an arrow", self.shown(&place));
                let finding = Diagnostic::error(message, self.span(), "expected '->'");
                let help = format!(
                    "write event NAME : EXPR = 0 : {} -> EXPR; or `stop`, or `record`",
                    self.shown(&place)
                );
                return self.fail(finding.help(help));
            }
            self.advance();
            self.advance();
            let value = self.present_expression()?;
            statement.values.extend([place, value]);
            if self.eat(TokenKind::Comma).is_none() {
                return Ok(());
            }
        }
    }

    /// Reads the path of a file, between double quotes.
    pub(super) fn path(&mut self, owner: &str) -> Parsed<Name> {
        let span = self.span();
        match self.kind() {
            TokenKind::Text => {}
            TokenKind::End => return self.nothing_follows(),
            TokenKind::Unknown => return Err(ReportedMistake),
            _ => {
                let span = span.to(self.tokens[self.tokens.len() - 1].span);
                let path = shorten(self.text(span).trim_matches(['\'', '‘', '’']));
                let message = format!("the path of {owner} stands between double quotes");
                let finding = Diagnostic::error(message, span, "expected \"…\"");
                return self.fail(finding.help(format!("write \"{path}\"")));
            }
        }
        self.advance();
        let text = self.text(span).trim_matches(['"', '“', '”', '„', '«', '»']).to_string();
        Ok(Name { text, span })
    }

    /// Reads `OPTION = EXPR`. A method's name or a word is no expression: it is the rest of the line.
    pub(super) fn setting(&mut self, statement: &mut Statement) -> Parsed<()> {
        if self.kind() != TokenKind::Name || self.kind_after(1) != TokenKind::Equals {
            let message = format!("'{}' gives an option its value", self.row.word);
            return self.fail(self.malformed(message, "expected OPTION = VALUE"));
        }
        statement.name = self.take_name();
        self.equals()?;
        if !TEXTS.contains(&statement.name.text.as_str()) {
            statement.values.push(self.present_expression()?);
            return Ok(());
        }
        if self.kind() == TokenKind::End {
            return self.nothing_follows();
        }
        let mut span = self.span();
        while self.kind() != TokenKind::End {
            span = span.to(self.advance());
        }
        let text = self.text(span).trim_matches('"').to_string();
        statement.reference = Name { text, span };
        Ok(())
    }

    /// Reads `LENGTH, MASS, TIME`. These are labels, so that any words serve, `min` and `in` too.
    pub(super) fn units(&mut self) -> Parsed<Vec<Name>> {
        let mut words = Vec::new();
        loop {
            if !self.kind().is_word() {
                let message = format!("a unit is a word, and here is {}", self.found());
                let finding = Diagnostic::error(message, self.span(), "expected a word");
                return self.fail(finding.help(UNITS));
            }
            words.push(self.take_name());
            if self.eat(TokenKind::Comma).is_none() {
                break;
            }
        }
        if self.kind() != TokenKind::End {
            let message = format!("a unit is one word, and {} follows", self.found());
            return self.fail(Diagnostic::error(message, self.span(), "not read").help(UNITS));
        }
        if words.len() != 3 {
            let (count, few) = (words.len(), words.len() < 3);
            let message = match few {
                true => format!("{count} of three units: those of length, mass and time"),
                false => format!("{count} units in place of three, of length, mass and time"),
            };
            let span = words[0].span.to(words[count - 1].span);
            return self.fail(Diagnostic::error(message, span, "three words").help(UNITS));
        }
        Ok(words)
    }

    /// Refuses a statement that ends where its expression should begin.
    fn nothing_follows<T>(&mut self) -> Parsed<T> {
        let before = self.previous().map_or("", |token| self.text(token.span));
        let message = format!("nothing follows '{before}'");
        self.fail(self.malformed(message, "expected an expression"))
    }

    /// Finding at the next token for a statement that is not of its form.
    pub(super) fn malformed(&self, message: String, label: &str) -> Diagnostic {
        Diagnostic::error(message, self.span(), label).help(format!("write {}", self.row.form))
    }
}

/// True if a name that is being declared may be followed by this token.
fn declares_after(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Equals | TokenKind::Colon | TokenKind::Of | TokenKind::OpenSquare)
}
