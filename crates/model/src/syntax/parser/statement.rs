//! Parser of statements: one function for each form.

use super::super::ast::{
    BinaryOperator, Expr, ExprKind, Name, Ranges, ShapeExpr, Statement, StatementKind,
};
use super::super::diagnostic::{Diagnostic, did_you_mean, shorten};
use super::super::span::Span;
use super::super::token::TokenKind;
use super::super::words::{FUNCTIONS, form, reserved, statement_meant_by, statement_words};
use super::range::Owner;
use super::{Parsed, Parser, Reported};

impl Parser<'_> {
    /// Reads a statement, up to the end of its lines.
    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        let start = self.span();
        let word = self.statement_word()?;
        let kind = match word {
            "parameter" => self.parameter()?,
            "size" => self.size()?,
            "coordinate" => self.coordinate()?,
            "momentum" => self.momentum()?,
            "velocity" => self.velocity()?,
            "hamiltonian" => self.hamiltonian(start)?,
            "constraint" => self.constraint()?,
            "integral" => self.integral()?,
            "state" => self.state()?,
            "let" => self.definition()?,
            "observe" => self.observe()?,
            "measure" => self.measure()?,
            "table" => self.table()?,
            "include" => StatementKind::Include { path: self.path("include")? },
            _ => self.derivative()?,
        };
        let end = self.previous().map_or(start, |token| token.span);
        self.end_of_statement(word)?;
        Ok(Statement { kind, span: start.to(end) })
    }

    // ---- the forms ----

    fn parameter(&mut self) -> Parsed<StatementKind> {
        let name = self.declare("parameter")?;
        let family = self.family(&name.text)?;
        let value = self.value("parameter")?;
        Ok(StatementKind::Parameter { name, family, value })
    }

    fn size(&mut self) -> Parsed<StatementKind> {
        let name = self.declare("size")?;
        let value = self.value("size")?;
        Ok(StatementKind::Size { name, value })
    }

    fn coordinate(&mut self) -> Parsed<StatementKind> {
        let name = self.declare("coordinate")?;
        let family = self.family(&name.text)?;
        let shape = self.shape("coordinate")?;
        let value = self.initial_value("coordinate")?;
        Ok(StatementKind::Coordinate { name, family, shape, value })
    }

    fn state(&mut self) -> Parsed<StatementKind> {
        let name = self.declare("state")?;
        let family = self.family(&name.text)?;
        let shape = self.shape("state")?;
        let value = self.initial_value("state")?;
        Ok(StatementKind::State { name, family, shape, value })
    }

    fn momentum(&mut self) -> Parsed<StatementKind> {
        let (name, indices, of) = self.conjugate("momentum")?;
        let value = self.initial_value("momentum")?;
        Ok(StatementKind::Momentum { name, indices, of, value })
    }

    fn velocity(&mut self) -> Parsed<StatementKind> {
        let (name, indices, of) = self.conjugate("velocity")?;
        let value = self.initial_value("velocity")?;
        Ok(StatementKind::Velocity { name, indices, of, value })
    }

    /// Reads `NAME[indices] of COORDINATE`.
    fn conjugate(&mut self, word: &str) -> Parsed<(Name, Vec<Name>, Name)> {
        let name = self.declare(word)?;
        let indices = self.indices("its coordinate")?;
        if self.eat(TokenKind::Of).is_none() {
            if self.kind() == TokenKind::Unknown || self.unclosed_bracket().is_some() {
                return self.unexpected("'of'");
            }
            let (span, text) = (self.span(), shorten(&name.text));
            return self.fail(|| {
                let message = format!("the {word} '{text}' does not say its coordinate");
                Diagnostic::error(message, span, "expected 'of' and a coordinate")
                    .help(format!("write {word} {text} of COORDINATE = EXPR"))
            });
        }
        if self.kind() != TokenKind::Name {
            return self.unexpected("the name of a coordinate");
        }
        let of = self.take_name();
        if self.kind() == TokenKind::OpenSquare {
            let start = self.span();
            let named = self.indices("its coordinate")?;
            let span = start.to(self.previous().map_or(start, |token| token.span));
            let indices: Vec<_> = named.iter().map(|index| index.text.as_str()).collect();
            let remedy = format!(
                "write {word} {}[{}] of {}",
                shorten(&name.text),
                shorten(&indices.join(", ")),
                shorten(&of.text)
            );
            self.report(|| {
                Diagnostic::error(
                    "no index stands after 'of'",
                    span,
                    "belongs to the name before 'of'",
                )
                .help(remedy)
            });
        }
        self.refuse_shape(word, "it is its coordinate's")?;
        Ok((name, indices, of))
    }

    fn hamiltonian(&mut self, keyword: Span) -> Parsed<StatementKind> {
        let named = self.kind() == TokenKind::Name
            && matches!(self.kind_after(1), TokenKind::Equals | TokenKind::Colon);
        if named || matches!(self.kind(), TokenKind::Equals | TokenKind::Colon) {
            let start = self.advance();
            let span = if named { start.to(self.advance()) } else { start };
            self.report(|| {
                Diagnostic::error("the Hamiltonian takes no name and no '='", span, "not needed")
                    .help("write hamiltonian EXPR; options and results call it 'H'")
            });
        }
        if self.kind() == TokenKind::End {
            return self.nothing_after("hamiltonian");
        }
        let value = self.expression()?;
        Ok(StatementKind::Hamiltonian { keyword, value })
    }

    fn constraint(&mut self) -> Parsed<StatementKind> {
        let name = self.declare("constraint")?;
        let family = self.family(&name.text)?;
        if self.eat(TokenKind::Colon).is_none() {
            let (span, text) = (self.span(), shorten(&name.text));
            let readable = self.unclosed_bracket().is_none() && self.kind() != TokenKind::Unknown;
            // `constraint rod = a - b` and `constraint rod dot(q, q) = 1` lack nothing but the
            // colon.
            let equals = self.kind() == TokenKind::Equals;
            if !readable
                || !(equals || self.kind().begins_operand() || self.kind() == TokenKind::Minus)
            {
                return self.unexpected("':'");
            }
            if self.is_beside_report() {
                return Err(Reported);
            }
            self.report(|| {
                Diagnostic::error(
                    format!("a ':' is missing after the constraint's name '{text}'"),
                    span,
                    "expected ':'",
                )
                .help(format!("write constraint {text} : EXPR = EXPR"))
            });
            if equals {
                self.advance();
                let left = self.expression()?;
                // Mistakes that follow from the missing ':' are not reported: `constraint rod = a -
                // b` is a - b = 0.
                let right = match self.eat(TokenKind::Equals) {
                    Some(_) => self.expression()?,
                    None => Expr { kind: ExprKind::Number(0.0), span: left.span },
                };
                return Ok(StatementKind::Constraint { name, family, left, right });
            }
        }
        if self.kind() == TokenKind::End {
            return self.nothing_after("constraint");
        }
        let left = self.expression()?;
        if self.kind() == TokenKind::End {
            let (left, right) = self.equation(left)?;
            return Ok(StatementKind::Constraint { name, family, left, right });
        }
        if self.eat(TokenKind::Equals).is_none() {
            return self.unexpected("'='");
        }
        if self.kind() == TokenKind::End {
            return self.nothing_after("constraint");
        }
        let right = self.expression()?;
        Ok(StatementKind::Constraint { name, family, left, right })
    }

    /// Reads a constraint without `=`: `a == b` is read as the equation, `a <= b` and `a - b` are
    /// refused.
    fn equation(&mut self, expr: Expr) -> Parsed<(Expr, Expr)> {
        let text = self.shown(&expr);
        let span = expr.span;
        match expr.kind {
            ExprKind::Binary(BinaryOperator::Equal, at, left, right) => {
                self.report(|| {
                    Diagnostic::error("a constraint is an equation, not a comparison", at, "expected '='")
                        .help("write '='")
                });
                Ok((*left, *right))
            }
            ExprKind::Binary(operator, at, ..) if is_comparison(operator) => self.fail(|| {
                Diagnostic::error("a constraint is an equation, not an inequality", at, "expected '='")
                    .help("constraints hold with '=' only; a penalty in the Hamiltonian can keep a system on one side")
            }),
            _ => self.fail(|| {
                Diagnostic::error("the constraint lacks its '='", span, "expected '=' after this")
                    .help(format!("write {text} = 0"))
            }),
        }
    }

    fn integral(&mut self) -> Parsed<StatementKind> {
        let name = self.declare("integral")?;
        let family = self.family(&name.text)?;
        let value = self.value("integral")?;
        Ok(StatementKind::Integral { name, family, value })
    }

    fn observe(&mut self) -> Parsed<StatementKind> {
        let name = self.declare("observe")?;
        let family = self.family(&name.text)?;
        let value = self.value("observe")?;
        Ok(StatementKind::Observe { name, family, value })
    }

    /// Reads `measure NAME = STATISTIC(ranges : EXPR, EXPR, …) every EXPR from EXPR`.
    fn measure(&mut self) -> Parsed<StatementKind> {
        let name = self.declare("measure")?;
        self.equals("measure")?;
        if self.kind() == TokenKind::End {
            return self.nothing_after("measure");
        }
        if self.kind() != TokenKind::Name || self.kind_after(1) != TokenKind::OpenRound {
            let (span, text) = (self.span(), shorten(&name.text));
            return self.fail(|| {
                Diagnostic::error(
                    "a measure says what is averaged, and how",
                    span,
                    "expected mean(, histogram(, …",
                )
                .help(format!("write measure {text} = mean(EXPR)"))
            });
        }
        let statistic = self.take_name();
        self.open_bracket();
        let (mut over, mut values) = (Ranges::default(), Vec::new());
        if self.kind() != TokenKind::CloseRound {
            if self.at_range() || self.at_several_indices() {
                over = self.ranges(Owner::Sum)?.0;
                self.sum_separator()?;
            }
            values.push(self.expression()?);
            while self.eat(TokenKind::Comma).is_some() {
                values.push(self.expression()?);
            }
        }
        self.close_bracket("',' or ')'")?;
        let (mut every, mut from) = (None, None);
        // These are keywords here only: elsewhere they are names like any other.
        loop {
            let said = match self.word() {
                "every" if every.is_none() => &mut every,
                "from" if from.is_none() => &mut from,
                _ => break,
            };
            self.advance();
            // A name after a number may be the other of these words.
            self.in_bound = true;
            let time = self.expression();
            self.in_bound = false;
            *said = Some(time?);
        }
        Ok(StatementKind::Measure { name, statistic, over, values, every, from })
    }

    /// Reads `let NAME = EXPR`, `let NAME[ranges] = EXPR`, `let NAME(parameters) = EXPR`.
    fn definition(&mut self) -> Parsed<StatementKind> {
        let name = self.declare("let")?;
        let family = self.family(&name.text)?;
        let mut parameters = Vec::new();
        if self.kind() == TokenKind::OpenRound {
            let start = self.open_bracket();
            if self.kind() != TokenKind::CloseRound {
                parameters.push(self.index()?);
                while self.eat(TokenKind::Comma).is_some() {
                    parameters.push(self.index()?);
                }
            }
            let span = start.to(self.close_bracket("',' or ')'")?);
            let text = shorten(&name.text);
            if parameters.is_empty() {
                self.report(|| {
                    Diagnostic::error(
                        format!("the function '{text}' has no parameters"),
                        span,
                        "empty",
                    )
                    .help(format!("write let {text} = EXPR and use it as {text}"))
                });
            } else if !family.ranges.is_empty() {
                return self.fail(|| {
                    Diagnostic::error(
                        "a definition has either indices or parameters",
                        span,
                        "indices stand before this",
                    )
                    .help(format!("make the index a parameter: let {text}(i, …) = EXPR"))
                });
            }
        }
        let value = self.value("let")?;
        Ok(StatementKind::Let { name, family, parameters, value })
    }

    fn table(&mut self) -> Parsed<StatementKind> {
        let name = self.declare("table")?;
        self.equals("table")?;
        Ok(StatementKind::Table { name, path: self.path("table")? })
    }

    /// Reads the path of a file, between double quotes.
    fn path(&mut self, word: &str) -> Parsed<Name> {
        let span = self.span();
        if self.kind() == TokenKind::End {
            return self.nothing_after(word);
        }
        if self.kind() != TokenKind::Text {
            if self.kind() == TokenKind::Unknown {
                return Err(Reported);
            }
            let end = self.tokens[self.tokens.len() - 1].span;
            let path = self.text(span.to(end)).trim_matches(['\'', '‘', '’']);
            let help = format!("write \"{}\"", shorten(path));
            return self.fail(|| {
                let what = if word == "table" { "a table" } else { "an included file" };
                let message = format!("the path of {what} stands between double quotes");
                Diagnostic::error(message, span.to(end), "expected \"…\"").help(help)
            });
        }
        self.advance();
        let text = self.text(span).trim_matches(['"', '“', '”', '„', '«', '»']).to_string();
        Ok(Name { text, span })
    }

    /// Reads `NAME' = EXPR`, `NAME[indices]' = EXPR`.
    fn derivative(&mut self) -> Parsed<StatementKind> {
        let name = self.take_name();
        let indices = self.indices("the state")?;
        let prime = self.advance();
        if self.kind() == TokenKind::Prime {
            let (span, text) = (prime.to(self.span()), shorten(&name.text));
            return self.fail(|| {
                Diagnostic::error(format!("'{text}' has two primes"), span, "a second derivative")
                    .help(format!(
                        "declare its velocity as a state of its own: {text}' = v, v' = EXPR"
                    ))
            });
        }
        let value = self.value("")?;
        Ok(StatementKind::Derivative { name, indices, value })
    }

    // ---- parts of statements ----

    /// Reads the name that the statement declares.
    fn declare(&mut self, word: &str) -> Parsed<Name> {
        let (span, kind, next) = (self.span(), self.kind(), self.kind_after(1));
        let declares = declares_after(next);
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
                let (number, rest) = (shorten(self.word()), self.tokens[self.position + 1].span);
                let text = shorten(self.text(rest));
                return self.fail(|| {
                    Diagnostic::error(
                        format!("the name '{number}{text}' begins with a digit"),
                        span.to(rest),
                        "not a name",
                    )
                    .help(format!("write {text}{number} or {text}_{number}"))
                });
            }
            _ => !(kind.is_word() && declares),
        };
        if nameless {
            let form = form(word);
            return self.fail(|| {
                let message = format!("'{word}' lacks a name");
                Diagnostic::error(message, span, "expected a name").help(format!("write {form}"))
            });
        }
        let name = self.take_name();
        self.check_reserved(&name);
        if reserved(&name.text).is_some() && self.kind() == TokenKind::Name {
            return Err(Reported); // `state let R : …`: the reserved word is one too many, not a name
        }
        self.declared = Some(name.clone());
        Ok(name)
    }

    /// Reads `= EXPR`.
    fn value(&mut self, word: &str) -> Parsed<Expr> {
        self.equals(word)?;
        if self.kind() == TokenKind::End {
            return self.nothing_after(word);
        }
        self.expression()
    }

    /// Reads `= EXPR`, or nothing.
    fn initial_value(&mut self, word: &str) -> Parsed<Option<Expr>> {
        match self.kind() {
            TokenKind::End => Ok(None),
            _ => Ok(Some(self.value(word)?)),
        }
    }

    fn equals(&mut self, word: &str) -> Parsed<()> {
        let (span, found) = (self.span(), self.found());
        match self.kind() {
            TokenKind::Equals => {}
            TokenKind::EqualEqual => self.report(|| {
                Diagnostic::error("'==' compares; it does not define", span, "expected '='")
                    .help("write '='")
            }),
            TokenKind::Colon => {
                self.refuse_shape(word, "it is its value's")?;
                return if self.kind() == TokenKind::Colon {
                    self.unexpected("'='")
                } else {
                    self.equals(word)
                };
            }
            TokenKind::Comma => {
                return self.fail(|| {
                    Diagnostic::error("unexpected ','", span, "expected '='")
                        .help("one statement a line, one name a statement")
                });
            }
            TokenKind::End => {
                let form = form(word);
                return self.fail(|| {
                    Diagnostic::error("'=' and a value are missing", span, "expected '='")
                        .help(format!("write {form}"))
                });
            }
            kind if kind.begins_operand() && self.unclosed_bracket().is_none() => {
                let form = form(word);
                return self.fail(|| {
                    Diagnostic::error(
                        format!("'=' is missing before {found}"),
                        span,
                        "expected '=' before this",
                    )
                    .help(format!("write {form}"))
                });
            }
            _ => return self.unexpected("'='"),
        }
        self.advance();
        Ok(())
    }

    /// Refuses a statement that ends where its expression should begin.
    fn nothing_after<T>(&mut self, word: &str) -> Parsed<T> {
        let (span, form) = (self.span(), form(word));
        let before = self.previous().map_or("", |token| self.text(token.span));
        self.fail(|| {
            Diagnostic::error(format!("nothing follows '{before}'"), span, "expected an expression")
                .help(format!("write {form}"))
        })
    }

    /// Refuses `: SHAPE` if the shape follows from something else.
    fn refuse_shape(&mut self, word: &str, why: &str) -> Parsed<()> {
        let Some(start) = self.eat(TokenKind::Colon) else { return Ok(()) };
        if self.word() != "R" {
            let found = self.found();
            let span = self.span();
            return self.fail(|| {
                Diagnostic::error(
                    format!("expected '=', found ':' before {found}"),
                    start.to(span),
                    "expected '='",
                )
                .help(format!("write {}", form(word)))
            });
        }
        self.shape_after_colon(word)?;
        let span = start.to(self.previous().map_or(start, |token| token.span));
        self.report(|| {
            Diagnostic::error(
                format!("no shape is declared for '{word}': {why}"),
                span,
                "not needed",
            )
            .help(format!("write {}", form(word)))
        });
        Ok(())
    }

    // ---- shapes ----

    /// Reads `: SHAPE`, or nothing for a scalar.
    fn shape(&mut self, word: &str) -> Parsed<ShapeExpr> {
        let span = self.span();
        if self.eat(TokenKind::Colon).is_some() {
            return self.shape_after_colon(word);
        }
        let said_in = self.kind() == TokenKind::In;
        let at_shape =
            if said_in { self.kind_after(1) == TokenKind::Name } else { self.word() == "R" };
        if !at_shape {
            return Ok(ShapeExpr::Scalar);
        }
        if said_in {
            self.advance();
        }
        // The lexer has reported a '∈', and beside a reserved name anything may be wrong.
        if !self.is_beside_report() {
            self.report(|| {
                Diagnostic::error("a ':' is missing before the shape", span, "expected ':'")
                    .help(format!("write {}", form(word)))
            });
        }
        self.shape_after_colon(word)
    }

    fn shape_after_colon(&mut self, word: &str) -> Parsed<ShapeExpr> {
        let (span, text) = (self.span(), self.word());
        if self.kind() != TokenKind::Name {
            return self.unexpected("a shape: R, R^k or R^(k,l)");
        }
        if text == "ℝ" {
            self.report(|| {
                Diagnostic::error("'ℝ' is written as a plain R", span, "not read").help("write R")
            });
        } else if text != "R" {
            let dimension = text
                .strip_prefix(['R', 'ℝ'])
                .filter(|rest| rest.chars().all(|c| c.is_ascii_digit()));
            let help = match dimension {
                Some(dimension) => format!("write R^{}", shorten(dimension)),
                None => {
                    "shapes are R (a number), R^k (a vector) and R^(k,l) (a matrix)".to_string()
                }
            };
            return self.fail(|| {
                Diagnostic::error(
                    format!("unknown shape '{}'", shorten(text)),
                    span,
                    "expected R, R^k or R^(k,l)",
                )
                .help(help)
            });
        }
        self.advance();
        let shape = if self.eat(TokenKind::Caret).is_some() {
            self.dimensions()?
        } else {
            ShapeExpr::Scalar
        };
        if !matches!(
            self.kind(),
            TokenKind::End | TokenKind::Equals | TokenKind::EqualEqual | TokenKind::Unknown
        ) {
            let (span, found) = (self.span(), self.found());
            let help = match self.kind() {
                TokenKind::OpenRound | TokenKind::Minus => format!("write {}", form(word)),
                _ => "shapes are R (a number), R^k (a vector) and R^(k,l) (a matrix)".to_string(),
            };
            return self.fail(|| {
                Diagnostic::error(
                    format!("expected '=' after the shape, found {found}"),
                    span,
                    "expected '='",
                )
                .help(help)
            });
        }
        Ok(shape)
    }

    /// Reads `k` or `(k, l)`.
    fn dimensions(&mut self) -> Parsed<ShapeExpr> {
        if self.kind() != TokenKind::OpenRound {
            return Ok(ShapeExpr::Vector(self.dimension()?));
        }
        self.open_bracket();
        let rows = self.dimension()?;
        let columns = match self.eat(TokenKind::Comma) {
            Some(_) => Some(self.dimension()?),
            None => None,
        };
        if self.kind() == TokenKind::Comma && self.unclosed_bracket().is_none() {
            let span = self.span();
            return self.fail(|| {
                Diagnostic::error("a shape has at most two dimensions", span, "a third one follows")
                    .help("use a family for more: coordinate NAME[i in 1..n] : R^(k,l) = EXPR")
            });
        }
        self.close_bracket(if columns.is_none() { "',' or ')'" } else { "')'" })?;
        Ok(match columns {
            Some(columns) => ShapeExpr::Matrix(rows, columns),
            None => ShapeExpr::Vector(rows),
        })
    }

    /// Reads a number or the name of a size; no arithmetic.
    fn dimension(&mut self) -> Parsed<Expr> {
        let span = self.span();
        let kind = match self.kind() {
            TokenKind::Number(value) => ExprKind::Number(value),
            TokenKind::Name => ExprKind::Name(self.word().to_string()),
            TokenKind::OpenCurly | TokenKind::OpenSquare | TokenKind::Minus => {
                return self.no_dimension(span);
            }
            _ => return self.unexpected("a dimension: a number or the name of a size"),
        };
        self.advance();
        if self.kind().is_infix()
            || matches!(kind, ExprKind::Number(_)) && self.kind() == TokenKind::Name
        {
            let span = span.to(self.span());
            return self.no_dimension(span);
        }
        Ok(Expr { kind, span })
    }

    fn no_dimension<T>(&mut self, span: Span) -> Parsed<T> {
        self.fail(|| {
            Diagnostic::error(
                "a dimension is a number or the name of a size",
                span,
                "not a plain dimension",
            )
            .help("write R^k or R^(k,l); declare other dimensions first: size m = n + 1")
        })
    }

    // ---- the word at the beginning, and the end ----

    /// Steps over the word that begins the statement and returns it; "" (and no step) for `NAME' =
    /// EXPR`. A word that is nearly a statement word, or one of another language, is reported and
    /// read as the statement word.
    fn statement_word(&mut self) -> Parsed<&'static str> {
        let (span, word) = (self.span(), self.word());
        if self.kind() != TokenKind::Name {
            return self.no_statement();
        }
        if let Some(known) = statement_words().into_iter().find(|known| *known == word) {
            self.advance();
            return Ok(known);
        }
        match self.kind_after(1) {
            TokenKind::Prime => return Ok(""),
            TokenKind::OpenSquare if self.is_indexed_derivative() => return Ok(""),
            _ => {}
        }
        let meant = statement_meant_by(word).or_else(|| did_you_mean(word, statement_words())).or(
            match word {
                "lagrangian" | "Lagrangian" => Some("hamiltonian"),
                _ => None,
            },
        );
        let next = self.kind_after(1);
        let assigns = next == TokenKind::Equals || next == TokenKind::Colon;
        let meant = meant.filter(|meant| {
            next == TokenKind::Name
                || *meant == "hamiltonian" && (assigns || next == TokenKind::OpenRound)
        });
        let Some(meant) = meant else { return self.no_statement() };
        self.report(|| {
            let finding =
                Diagnostic::error(format!("unknown statement '{}'", shorten(word)), span, "does not begin a statement");
            finding.help(match assigns {
                true => "did you mean 'hamiltonian'? It takes no name and no '=': hamiltonian EXPR".to_string(),
                false if word.eq_ignore_ascii_case("lagrangian") => {
                    "write the energy T + V, not T - V: hamiltonian EXPR; a 'velocity' in place of a 'momentum' keeps velocities"
                        .to_string()
                }
                false => format!("did you mean '{meant}'?"),
            })
        });
        // `hamiltoniansum(i in …` and `hamil(…` are too far from a statement to look for other
        // mistakes.
        if next == TokenKind::OpenRound && !meant.eq_ignore_ascii_case(word) {
            return Err(Reported);
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
        let (span, found, kind, next) =
            (self.span(), self.found(), self.kind(), self.kind_after(1));
        let name = shorten(self.word());
        if kind == TokenKind::Unknown {
            return self.unexpected("a statement");
        }
        let finding = Diagnostic::error(
            format!("no statement begins with {found}"),
            span,
            "expected a statement",
        );
        let finding = match kind {
            TokenKind::Name if next == TokenKind::Equals => {
                self.declared = Some(Name { text: self.word().to_string(), span });
                Diagnostic::error(
                    format!("'{name} = …' is not a statement"),
                    span,
                    "expected a statement word before it",
                )
                .help(format!("write parameter {name} = …, let {name} = … or {name}' = …"))
            }
            TokenKind::Name if next == TokenKind::OpenSquare => finding.help(format!(
                "write {name}[i]' = … for a differential equation, let {name}[i in 1..n] = … for a definition"
            )),
            TokenKind::Name if next == TokenKind::Dot && self.kind_after(3) == TokenKind::Prime => {
                Diagnostic::error("a component has no differential equation of its own", span, "expected a whole state")
                    .help(format!("give the whole vector: {name}' = (…)"))
            }
            TokenKind::Name if next == TokenKind::Slash && self.text_after(2) == "dt" && name.starts_with('d') => {
                let state = &name[1..];
                finding.help(format!("write {state}' = EXPR for the rate of change of a state"))
            }
            TokenKind::Name if next == TokenKind::OpenRound || next == TokenKind::Dot || next.is_infix() => {
                finding.help("an expression needs a statement: hamiltonian EXPR, observe NAME = EXPR, let NAME = EXPR")
            }
            TokenKind::Name => {
                if next == TokenKind::Name {
                    let declared = self.tokens[self.position + 1].span;
                    self.declared = Some(Name { text: self.text(declared).to_string(), span: declared });
                }
                Diagnostic::error(format!("unknown statement {found}"), span, "does not begin a statement")
                    .help(format!("statements begin with {}", statement_words().join(", ")))
            }
            kind if kind.is_closer() => self.stray_bracket(),
            kind if kind.continues_line() => finding
                .help(format!("a line goes on when it ends in an operator: move {found} to the end of the line above")),
            _ => finding.help(format!("statements begin with {}", statement_words().join(", "))),
        };
        self.fail(|| finding)
    }

    /// Reports anything that follows a statement; the statement itself has been read.
    fn end_of_statement(&mut self, word: &str) -> Parsed<()> {
        let (span, found, kind) = (self.span(), self.found(), self.kind());
        let finding =
            Diagnostic::error(format!("unexpected {found}"), span, "expected the end of the line");
        let finding = match kind {
            TokenKind::End => return Ok(()),
            TokenKind::Name if self.at_statement() => {
                finding.help(format!("one statement a line: begin a new line before {found}"))
            }
            TokenKind::Equals if word == "hamiltonian" => {
                finding.help("the Hamiltonian has no name and no '=': hamiltonian EXPR")
            }
            TokenKind::Equals if word == "constraint" => {
                finding.help("a constraint has one '='; write another constraint")
            }
            TokenKind::Equals => finding.help("write '==' to compare"),
            TokenKind::Comma if self.kind_after(1) == TokenKind::End => {
                finding.help("remove the ','")
            }
            TokenKind::Comma => finding.help(
                "a vector needs brackets, (a, b); a decimal point is '.'; one statement a line",
            ),
            _ => return self.unexpected("the end of the line"),
        };
        if !self.is_beside_report() {
            self.report(|| finding);
        }
        Ok(())
    }
}

/// True if a name that is being declared may be followed by this token.
fn declares_after(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Equals | TokenKind::Colon | TokenKind::Of | TokenKind::OpenSquare)
}

fn is_comparison(operator: BinaryOperator) -> bool {
    use BinaryOperator::*;
    matches!(operator, Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual)
}
