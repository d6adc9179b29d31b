//! Expressions: names resolved, shapes checked, every mistake reported where it stands.

use super::expression::{self, Draw, Ex, Expression, Kind, Range, Ranges};
use super::linear_algebra::FUNCTIONS;
use super::lower::{LARGEST_INDEX, LARGEST_TEMPLATE};
use super::names::{self, Scope, Symbol};
use super::shape::Shape;
use super::{Elaborator, VariableRole};
use crate::graph::op::{Binary, Unary};
use crate::syntax::MAX_DIAGNOSTICS;
use crate::syntax::ast::{self, BinaryOperator, ExprKind, StatementKind, UnaryOperator};
use crate::syntax::diagnostic::{Diagnostic, did_you_mean};
use crate::syntax::span::Span;

/// Nesting of checked expressions (with every `let` written out), at most.
pub const DEEPEST: usize = 1500;
/// Checked expressions of one model, at most.
pub const MOST_EXPRESSIONS: usize = 2_000_000;

impl Elaborator<'_> {
    /// Keeps a finding; beyond what is shown, one more to say so.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if !self.is_full() {
            self.diagnostics.push(diagnostic);
        }
    }

    fn is_full(&self) -> bool {
        self.diagnostics.len() > MAX_DIAGNOSTICS
    }

    /// Checks `e`; `None` where an error has been reported.
    pub(super) fn expression(&mut self, e: &ast::Expr, scope: &mut Scope) -> Option<Ex> {
        self.depth += 1;
        self.count += 1;
        let result = if self.depth > DEEPEST {
            self.once(
                "too deep",
                Diagnostic::error(
                    format!("this is nested more than {DEEPEST} deep, with every `let` written out"),
                    e.span,
                    "too deep",
                ),
            )
        } else if self.count > MOST_EXPRESSIONS {
            self.once(
                "too large",
                Diagnostic::error(
                    format!("the model has more than {MOST_EXPRESSIONS} expressions, with every `let` written out"),
                    e.span,
                    "too large",
                ),
            )
        } else {
            self.expression_kind(e, scope)
        };
        self.depth -= 1;
        let checked = result?;
        if checked.height as usize > DEEPEST {
            return self.once(
                "too deep",
                Diagnostic::error(
                    format!("this is nested more than {DEEPEST} deep, with every `let` written out"),
                    e.span,
                    "too deep",
                ),
            );
        }
        // What a product of matrices costs is known before it is written out.
        let operations = match &checked.kind {
            Kind::Product(a, b) => {
                a.shape.len().saturating_mul(checked.shape.len()) / a.shape.dimensions()[0].max(1) + b.shape.len()
            }
            _ => checked.shape.len(),
        };
        if operations > LARGEST_TEMPLATE {
            return self.once(
                "too wide",
                Diagnostic::error(
                    format!("this takes more than {LARGEST_TEMPLATE} operations, with every component written out"),
                    e.span,
                    "too large",
                ),
            );
        }
        Some(checked)
    }

    /// Reports a finding that would repeat itself only once.
    fn once(&mut self, key: &'static str, diagnostic: Diagnostic) -> Option<Ex> {
        if self.reported_once.insert(key) {
            self.report(diagnostic);
        }
        None
    }

    fn expression_kind(&mut self, e: &ast::Expr, scope: &mut Scope) -> Option<Ex> {
        let span = e.span;
        match &e.kind {
            ExprKind::Number(v) => Some(Expression::number(*v, span)),
            ExprKind::Name(name) => self.name(name, &[], span, scope),
            ExprKind::Member(base, member) => self.member(base, member, span, scope),
            ExprKind::Index(base, indices) => self.index(base, indices, span, scope),
            ExprKind::Call(function, arguments) => self.call(function, arguments, span, scope),
            ExprKind::Unary(UnaryOperator::Negate, a) => {
                let a = self.value(a, scope)?;
                if let Some(v) = a.value() {
                    return Some(Expression::number(-v, span));
                }
                let shape = a.shape;
                Some(Expression::new(Kind::Unary(Unary::Neg, a), shape, span))
            }
            ExprKind::Unary(UnaryOperator::Not, a) => {
                let a = self.condition(a, scope, "'not'")?;
                Some(Expression::new(Kind::Unary(Unary::Not, a), Shape::Condition, span))
            }
            ExprKind::Binary(operator, place, a, b) => self.operator(*operator, *place, a, b, span, scope),
            ExprKind::Vector(entries) => {
                let entries: Vec<Option<Ex>> =
                    entries.iter().map(|x| self.scalar(x, scope, "an entry of a vector")).collect();
                let entries: Vec<Ex> = entries.into_iter().collect::<Option<_>>()?;
                let shape = Shape::Vector(entries.len());
                Some(Expression::new(Kind::Stack(entries), shape, span))
            }
            ExprKind::Sum(ranges, body) => {
                let depth = scope.locals.len();
                let ranges = self.ranges(ranges, scope);
                let body = self.value(body, scope);
                scope.locals.truncate(depth);
                let (ranges, body) = (ranges?, body?);
                let shape = body.shape;
                Some(Expression::new(Kind::Sum(ranges, body), shape, span))
            }
        }
    }

    /// A number, vector or matrix; not a condition.
    pub(super) fn value(&mut self, e: &ast::Expr, scope: &mut Scope) -> Option<Ex> {
        self.value_for(e, scope, "this place")
    }

    /// [`Elaborator::value`], needed by `whom`.
    fn value_for(&mut self, e: &ast::Expr, scope: &mut Scope, whom: &str) -> Option<Ex> {
        let checked = self.expression(e, scope)?;
        if checked.shape == Shape::Condition {
            self.report(
                Diagnostic::error(
                    format!("{whom} needs a number, and this is a condition"),
                    e.span,
                    "this is true or false",
                )
                .help("write if(condition, a, b) to choose between two values"),
            );
            return None;
        }
        Some(checked)
    }

    fn scalar(&mut self, e: &ast::Expr, scope: &mut Scope, what: &str) -> Option<Ex> {
        let checked = self.value_for(e, scope, what)?;
        if checked.shape != Shape::Scalar {
            self.report(Diagnostic::error(
                format!("{what} must be a scalar"),
                e.span,
                format!("this has the shape {}", checked.shape),
            ));
            return None;
        }
        Some(checked)
    }

    /// True or false, needed by `whom`.
    fn condition(&mut self, e: &ast::Expr, scope: &mut Scope, whom: &str) -> Option<Ex> {
        let checked = self.expression(e, scope)?;
        if checked.shape != Shape::Condition {
            self.report(
                Diagnostic::error(
                    format!("{whom} needs a condition"),
                    e.span,
                    format!("this has the shape {}", checked.shape),
                )
                .help("compare with <, <=, >, >=, == or !="),
            );
            return None;
        }
        Some(checked)
    }

    /// An index: a whole number made of numbers, sizes and indices.
    pub(super) fn index_value(&mut self, e: &ast::Expr, scope: &mut Scope) -> Option<Ex> {
        let checked = self.scalar(e, scope, "an index")?;
        if !checked.is_index() {
            let (label, help) = match checked.depends & expression::DRAW {
                0 => (
                    "this is not known before the run",
                    "a constant that indices and ranges may use is declared with `size`",
                ),
                _ => (
                    "this differs between trajectories",
                    "all trajectories have the same indices; if(condition, a, b) may choose a value",
                ),
            };
            self.report(
                Diagnostic::error("an index is made of numbers, sizes and other indices", e.span, label).help(help),
            );
            return None;
        }
        if let Some(v) = checked.value()
            && (v.fract() != 0.0 || v.abs() > LARGEST_INDEX)
        {
            self.report(Diagnostic::error(
                format!("an index must be an integer, and this is {v}"),
                e.span,
                "not an integer",
            ));
            return None;
        }
        Some(checked)
    }

    /// Ranges; their indices are left in the scope.
    pub(super) fn ranges(&mut self, ranges: &ast::Ranges, scope: &mut Scope) -> Option<Ranges> {
        let mut checked = Ranges::default();
        let mut good = true;
        for range in &ranges.ranges {
            let low = self.index_value(&range.low, scope);
            let high = self.index_value(&range.high, scope);
            if checked_name(&checked, &range.name.text, &self.index_names) {
                self.report(Diagnostic::error(
                    format!("the index '{}' is used twice", range.name.text),
                    range.name.span,
                    "second time",
                ));
                good = false;
            }
            let index = self.index_names.len() as u32;
            self.index_names.push(range.name.text.clone());
            let span = range.name.span.to(range.high.span);
            scope
                .locals
                .push((range.name.text.clone(), Expression::new(Kind::Index(index), Shape::Scalar, range.name.span)));
            match (low, high) {
                (Some(low), Some(high)) => checked.ranges.push(Range { index, low, high, span }),
                _ => good = false,
            }
        }
        if let Some(filter) = &ranges.filter {
            match self.condition(filter, scope, "'if'") {
                Some(f) if f.is_index() => checked.filter = Some(f),
                Some(_) => {
                    self.report(
                        Diagnostic::error(
                            "the condition of a range may use indices, sizes and numbers only",
                            filter.span,
                            "this is not known before the run",
                        )
                        .help("inside the sum, if(condition, a, 0) may depend on anything"),
                    );
                    good = false;
                }
                None => good = false,
            }
        }
        good.then_some(checked)
    }

    /// A name with the indices that follow it directly.
    fn name(&mut self, name: &str, indices: &[ast::Expr], span: Span, scope: &mut Scope) -> Option<Ex> {
        if let Some(local) = scope.find(name) {
            let mut local = local.clone();
            // The same value with the place where it is used.
            let same = match local.kind {
                Kind::Index(i) => Some(Kind::Index(i)),
                Kind::Number(v) => Some(Kind::Number(v)),
                Kind::Trajectory => Some(Kind::Trajectory),
                _ => None,
            };
            if let Some(kind) = same {
                local = Expression::new(kind, Shape::Scalar, span);
            }
            return self.component(local, indices, span, scope);
        }
        match name {
            "pi" => return self.component(Expression::number(std::f64::consts::PI, span), indices, span, scope),
            "t" => {
                self.allow(expression::TIME, "the time t", span, scope)?;
                return self.component(Expression::new(Kind::Time, Shape::Scalar, span), indices, span, scope);
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
                self.component(Expression::number(value as f64, span), indices, span, scope)
            }
            Symbol::Parameter(number) => {
                self.allow(expression::PARAMETER, &format!("the parameter '{name}'"), span, scope)?;
                if self.parameters[number].family.is_none() && !self.parameters_known {
                    self.premature |= expression::PARAMETER;
                }
                let family = self.parameters[number].family.clone()?;
                let (own, rest) = self.family_indices(&family, indices, span, scope)?;
                let e = Expression::new(Kind::Parameter(number, own), family.shape, span);
                self.component(e, rest, span, scope)
            }
            Symbol::Variable(number) => {
                let own = self.variables[number].depends;
                self.allow(own, &format!("the {} '{name}'", self.variables[number].what()), span, scope)?;
                if self.variables[number].family.is_none() && !self.variables_known {
                    self.premature |= own;
                }
                let family = self.variables[number].family.clone()?;
                let (indices, rest) = self.family_indices(&family, indices, span, scope)?;
                let e = Expression::variable(number, indices, own, family.shape, span);
                self.component(e, rest, span, scope)
            }
            Symbol::Definition(statement) => self.definition(statement, name, indices, span, scope),
            Symbol::Table(number) => {
                let columns: Vec<&str> = self.tables[number].columns.iter().map(|(c, _)| c.as_str()).collect();
                let help = match columns.first() {
                    Some(c) => format!("write {name}.{c}[i]; its columns are {}", columns.join(", ")),
                    None => format!("write {name}.column[i]"),
                };
                self.report(
                    Diagnostic::error(format!("'{name}' is a table"), span, "a column and a row are needed").help(help),
                );
                None
            }
            Symbol::Velocity => {
                let momentum = self.file.statements.iter().find_map(|s| match &s.kind {
                    StatementKind::Velocity { name: label, of, .. } if label.text == name => {
                        Some(format!("p_{}", of.text))
                    }
                    _ => None,
                });
                self.report(
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
                );
                None
            }
            Symbol::Constraint(_) => {
                self.report(
                    Diagnostic::error(format!("'{name}' is a constraint, not a value"), span, "not a value")
                        .related(declared.span, "declared here"),
                );
                None
            }
        }
    }

    fn unknown_name(&mut self, name: &str, span: Span, scope: &Scope) {
        if self.poisoned.contains(name) || self.is_full() {
            return; // it stands in a statement that could not be read: that is the error
        }
        let mut diagnostic = Diagnostic::error(format!("unknown name '{name}'"), span, "not declared");
        // px, q1: a component written in one word.
        let split = name.char_indices().next_back().and_then(|(at, last)| {
            let base = name[..at].trim_end_matches('_');
            let component = match last {
                'x' | '1' => "x",
                'y' | '2' => "y",
                'z' | '3' => "z",
                _ => return None,
            };
            let known = matches!(self.symbols.get(base).map(|d| d.symbol), Some(Symbol::Variable(_)));
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
            diagnostic = diagnostic.help(format!("'{name}' is a function: call it with parentheses"));
        } else {
            diagnostic = diagnostic
                .help(format!("declare it: `parameter {name} = …`, `coordinate {name} : R^3 = …` or `let {name} = …`"));
        }
        self.report(diagnostic);
    }

    fn allow(&mut self, what: expression::Depends, name: &str, span: Span, scope: &Scope) -> Option<()> {
        if what & !scope.allowed == 0 {
            return Some(());
        }
        let message = format!("{} cannot be used in {}", name, scope.place);
        if what & !scope.allowed == expression::MULTIPLIER {
            self.report(
                Diagnostic::error(message, span, "not known here")
                    .help("a method finds the multipliers on its way: only observables may use them"),
            );
            return None;
        }
        self.report(Diagnostic::error(message, span, "not a constant here").help(match scope.place {
            "a size" => "a size is made of numbers and other sizes",
            "a parameter" => "a parameter is made of numbers, sizes and other parameters",
            _ => "only numbers, sizes and parameters are known before the run starts",
        }));
        None
    }

    /// The indices of a family's member, and the indices left for its components.
    fn family_indices<'e>(
        &mut self,
        family: &super::model::Family,
        indices: &'e [ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<(Vec<Ex>, &'e [ast::Expr])> {
        let need = family.indices.len();
        if indices.len() < need || (need > 0 && indices.len() != need) {
            let usage = format!("{}[{}]", family.name, family.indices.join(", "));
            let message = match (indices.len(), need) {
                (0, 1) => format!("'{}' is a family and needs its index", family.name),
                (0, _) => format!("'{}' is a family and needs its {need} indices", family.name),
                (given, _) => {
                    format!("'{}' has {need} {}, not {given}", family.name, if need == 1 { "index" } else { "indices" })
                }
            };
            let component = match indices.get(need).map(|e| &e.kind) {
                Some(ExprKind::Number(k)) => k.to_string(),
                _ => "k".to_string(),
            };
            self.report(
                Diagnostic::error(message, span, "which member?")
                    .help(format!("write {usage}; components come after: {usage}[{component}]"))
                    .related(family.span, "declared here"),
            );
            return None;
        }
        let mut checked = Vec::with_capacity(need);
        for (k, index) in indices[..need].iter().enumerate() {
            let e = self.index_value(index, scope)?;
            let (low, high) = family.bounds[k];
            if let Some(v) = e.value()
                && (v < low as f64 || v > high as f64)
            {
                let message = format!("index {v} of '{}' is outside {low}..{high}", family.name);
                self.report(
                    Diagnostic::error(message, index.span, "no such member").related(family.span, "declared here"),
                );
                return None;
            }
            checked.push(e);
        }
        Some((checked, &indices[need..]))
    }

    /// `e[k]`, `e[k,l]`, or `e` itself where no index follows.
    fn component(&mut self, e: Ex, indices: &[ast::Expr], span: Span, scope: &mut Scope) -> Option<Ex> {
        if indices.is_empty() {
            return Some(e);
        }
        let dimensions = e.shape.dimensions();
        if dimensions.len() != indices.len() {
            let label = format!("this has the shape {}", e.shape);
            let help = match e.shape {
                Shape::Vector(k) => format!("a vector takes one index from 1 to {k}"),
                Shape::Matrix(k, l) => format!("a matrix takes two indices, [1..{k}, 1..{l}]"),
                _ => "a scalar has no components".to_string(),
            };
            self.report(
                Diagnostic::error(
                    format!(
                        "{} cannot take {} {}",
                        e.shape,
                        indices.len(),
                        if indices.len() == 1 { "index" } else { "indices" }
                    ),
                    span,
                    label,
                )
                .help(help),
            );
            return None;
        }
        let mut checked = Vec::new();
        for (index, &size) in indices.iter().zip(&dimensions) {
            let i = self.index_value(index, scope)?;
            if let Some(v) = i.value()
                && (v < 1.0 || v > size as f64)
            {
                self.report(
                    Diagnostic::error(
                        format!("index {v} is outside 1..{size}"),
                        index.span,
                        format!("the shape is {}", e.shape),
                    )
                    .help("components count from 1"),
                );
                return None;
            }
            checked.push(i);
        }
        Some(Expression::new(Kind::Component(e, checked), Shape::Scalar, span))
    }

    fn index(&mut self, base: &ast::Expr, indices: &[ast::Expr], span: Span, scope: &mut Scope) -> Option<Ex> {
        match &base.kind {
            ExprKind::Name(name) => self.name(name, indices, span, scope),
            ExprKind::Member(base, name) if self.is_lambda(base, scope) => self.multiplier(name, indices, span, scope),
            ExprKind::Member(table, column) if self.table_of(table, scope).is_some() => {
                let number = self.table_of(table, scope).expect("just seen");
                let name = self.tables[number].name.clone();
                let names: Vec<String> = self.tables[number].columns.iter().map(|(c, _)| c.clone()).collect();
                let Some(at) = names.iter().position(|c| *c == column.text) else {
                    if self.tables[number].failed {
                        return None;
                    }
                    let mut diagnostic = Diagnostic::error(
                        format!("table '{name}' has no column '{}'", column.text),
                        column.span,
                        "no such column",
                    );
                    diagnostic = diagnostic.help(match did_you_mean(&column.text, names.iter().map(String::as_str)) {
                        Some(meant) => format!("did you mean '{meant}'? its columns are {}", names.join(", ")),
                        None => format!("its columns are {}", names.join(", ")),
                    });
                    self.report(diagnostic);
                    return None;
                };
                let [row] = indices else {
                    self.report(Diagnostic::error("a column of a table takes one index, its row", span, "which row?"));
                    return None;
                };
                let row = self.index_value(row, scope)?;
                let rows = self.tables[number].rows;
                if let Some(v) = row.value()
                    && (v < 1.0 || v > rows as f64)
                {
                    self.report(Diagnostic::error(
                        format!("row {v} of table '{name}' is outside 1..{rows}"),
                        row.span,
                        "no such row",
                    ));
                    return None;
                }
                Some(Expression::new(Kind::Table(number, at, row), Shape::Scalar, span))
            }
            _ => {
                let base = self.value(base, scope)?;
                self.component(base, indices, span, scope)
            }
        }
    }

    fn table_of(&self, e: &ast::Expr, scope: &Scope) -> Option<usize> {
        let ExprKind::Name(name) = &e.kind else { return None };
        if scope.find(name).is_some() {
            return None;
        }
        match self.symbols.get(name)?.symbol {
            Symbol::Table(number) => Some(number),
            _ => None,
        }
    }

    /// Whether `e` is the `lambda` of `lambda.NAME`: a name that the file declares hides it.
    fn is_lambda(&self, e: &ast::Expr, scope: &Scope) -> bool {
        let hidden = || {
            scope.find(names::LAMBDA).is_some()
                || self.symbols.contains_key(names::LAMBDA)
                || self.poisoned.contains(names::LAMBDA)
        };
        matches!(&e.kind, ExprKind::Name(name) if name == names::LAMBDA) && !hidden()
    }

    /// `lambda.NAME` with the indices that follow it.
    fn multiplier(
        &mut self,
        constraint: &ast::Name,
        indices: &[ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        let name = &constraint.text;
        self.allow(expression::MULTIPLIER, &format!("the multiplier 'lambda.{name}'"), span, scope)?;
        let Some(Symbol::Constraint(statement)) = self.symbols.get(name).map(|d| d.symbol) else {
            if !self.poisoned.contains(name) {
                self.no_constraint(constraint);
            }
            return None;
        };
        if self.variables.iter().any(|v| v.role == VariableRole::State) {
            self.report(
                Diagnostic::error("the constraints of a vector field have no multipliers", span, "no force acts here")
                    .help("lambda.NAME belongs to a constraint of a Hamiltonian model"),
            );
            return None;
        }
        if !self.variables_known {
            self.premature |= expression::MULTIPLIER;
            return None;
        }
        let checked = self.constraint(statement, span)?;
        let need = checked.ranges.ranges.len();
        if indices.len() < need {
            let list: Vec<&str> =
                checked.ranges.ranges.iter().map(|r| self.index_names[r.index as usize].as_str()).collect();
            let what = if need == 1 { "index".to_string() } else { format!("{need} indices") };
            let diagnostic =
                Diagnostic::error(format!("'{name}' is a family and needs its {what}"), span, "which member?")
                    .help(format!("write lambda.{name}[{}]", list.join(", ")))
                    .related(checked.name.span, "declared here");
            self.report(diagnostic);
            return None;
        }
        let (own, rest) = indices.split_at(need);
        let own = own.iter().map(|index| self.index_value(index, scope)).collect::<Option<Vec<Ex>>>()?;
        let is_constraint = |s: &&ast::Statement| matches!(s.kind, StatementKind::Constraint { .. });
        let number = self.file.statements[..statement].iter().filter(is_constraint).count();
        let e = Expression::new(Kind::Multiplier(number, own), checked.value.shape, span);
        self.component(e, rest, span, scope)
    }

    fn no_constraint(&mut self, name: &ast::Name) {
        let constraints = self.symbols.iter().filter(|(_, d)| matches!(d.symbol, Symbol::Constraint(_)));
        let known: Vec<&str> = constraints.map(|(name, _)| name.as_str()).collect();
        let help = match (did_you_mean(&name.text, known.iter().copied()), known.is_empty()) {
            (Some(meant), _) => format!("did you mean 'lambda.{meant}'?"),
            (None, true) => "the model has no constraints".to_string(),
            (None, false) => format!("its constraints are {}", known.join(", ")),
        };
        let message = format!("there is no constraint '{}'", name.text);
        self.report(Diagnostic::error(message, name.span, "no such constraint").help(help));
    }

    fn member(&mut self, base: &ast::Expr, member: &ast::Name, span: Span, scope: &mut Scope) -> Option<Ex> {
        if self.is_lambda(base, scope) {
            return self.multiplier(member, &[], span, scope);
        }
        if self.table_of(base, scope).is_some() {
            self.report(
                Diagnostic::error("a column of a table needs a row", span, "which row?")
                    .help(format!("write .{}[i]", member.text)),
            );
            return None;
        }
        let base = self.value(base, scope)?;
        let position = match member.text.as_str() {
            "x" => 1,
            "y" => 2,
            "z" => 3,
            other => {
                self.report(
                    Diagnostic::error(format!("there is no component '{other}'"), member.span, "unknown component")
                        .help("components are .x .y .z, or [k] counted from 1"),
                );
                return None;
            }
        };
        match base.shape {
            Shape::Vector(k) if position <= k => {
                let index = Expression::number(position as f64, member.span);
                Some(Expression::new(Kind::Component(base, vec![index]), Shape::Scalar, span))
            }
            Shape::Vector(k) => {
                self.report(Diagnostic::error(
                    format!("a vector in R^{k} has no component '{}'", member.text),
                    member.span,
                    format!("the shape is R^{k}"),
                ));
                None
            }
            shape => {
                self.report(Diagnostic::error(
                    format!("'.{}' needs a vector", member.text),
                    member.span,
                    format!("the shape is {shape}"),
                ));
                None
            }
        }
    }

    fn operator(
        &mut self,
        operator: BinaryOperator,
        place: Span,
        a: &ast::Expr,
        b: &ast::Expr,
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        use BinaryOperator::*;
        match operator {
            Add | Subtract => self.sum_chain(operator, place, a, b, span, scope),
            Multiply => {
                let (a, b) = (self.value(a, scope), self.value(b, scope));
                self.product(a?, b?, place, span)
            }
            Divide => {
                let (x, y) = (self.value(a, scope), self.value(b, scope));
                let (x, y) = (x?, y?);
                if y.shape != Shape::Scalar {
                    self.report(
                        Diagnostic::error(format!("cannot divide by {}", y.shape), b.span, "only scalars divide").help(
                            match y.shape {
                                Shape::Matrix(..) => "multiply with inverse(A)",
                                _ => "divide by its norm, or component by component",
                            },
                        ),
                    );
                    return None;
                }
                if y.value() == Some(0.0) {
                    self.report(Diagnostic::error("division by zero", b.span, "this is 0"));
                    return None;
                }
                if let (Some(u), Some(v)) = (x.value(), y.value()) {
                    return Some(Expression::number(u / v, span));
                }
                let shape = x.shape;
                Some(if shape == Shape::Scalar {
                    Expression::new(Kind::Binary(Binary::Div, x, y), shape, span)
                } else {
                    Expression::new(Kind::Divide(x, y), shape, span)
                })
            }
            Power => {
                let (x, y) = (self.value(a, scope), self.value(b, scope));
                let (x, y) = (x?, y?);
                for (side, e, what) in [(a, &x, "base"), (b, &y, "exponent")] {
                    if e.shape != Shape::Scalar {
                        self.report(
                            Diagnostic::error(
                                format!("the {what} of ^ must be a scalar"),
                                side.span,
                                format!("this has the shape {}", e.shape),
                            )
                            .help(if what == "base" {
                                "write dot(v, v) for the square of a vector"
                            } else {
                                "an exponent is one number"
                            }),
                        );
                        return None;
                    }
                }
                if let (Some(u), Some(v)) = (x.value(), y.value()) {
                    if u == 0.0 && v < 0.0 {
                        self.report(Diagnostic::error("division by zero", span, "0 to a negative power"));
                        return None;
                    }
                    return Some(Expression::number(u.powf(v), span));
                }
                Some(Expression::new(Kind::Binary(Binary::Pow, x, y), Shape::Scalar, span))
            }
            And | Or => {
                let op = if operator == And { Binary::And } else { Binary::Or };
                let whom = format!("'{}'", op.name());
                let (x, y) = (self.condition(a, scope, &whom), self.condition(b, scope, &whom));
                Some(Expression::new(Kind::Binary(op, x?, y?), Shape::Condition, span))
            }
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual => {
                let (x, y) = (self.value(a, scope), self.value(b, scope));
                let (x, y) = (x?, y?);
                if x.shape != Shape::Scalar || y.shape != Shape::Scalar {
                    self.report(Diagnostic::error(
                        format!("cannot compare {} with {}", x.shape, y.shape),
                        span,
                        "only scalars are compared",
                    ));
                    return None;
                }
                let (op, x, y) = match operator {
                    Less => (Binary::Less, x, y),
                    LessEqual => (Binary::LessEqual, x, y),
                    Greater => (Binary::Less, y, x),
                    GreaterEqual => (Binary::LessEqual, y, x),
                    _ => (Binary::Equal, x, y),
                };
                let e = Expression::new(Kind::Binary(op, x, y), Shape::Condition, span);
                Some(if operator == NotEqual {
                    Expression::new(Kind::Unary(Unary::Not, e), Shape::Condition, span)
                } else {
                    e
                })
            }
        }
    }

    /// `a + b − c + …` as one sum: the tree leans left, and a long one must not nest.
    fn sum_chain(
        &mut self,
        operator: BinaryOperator,
        place: Span,
        a: &ast::Expr,
        b: &ast::Expr,
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        let mut chain = vec![(operator, place, b)];
        let mut first = a;
        while let ExprKind::Binary(op @ (BinaryOperator::Add | BinaryOperator::Subtract), place, left, right) =
            &first.kind
        {
            chain.push((*op, *place, right));
            first = left;
        }
        let mut good = true;
        let mut terms: Vec<(bool, Ex)> = Vec::with_capacity(chain.len() + 1);
        let mut shape = None;
        match self.value(first, scope) {
            Some(e) => {
                shape = Some((e.shape, first.span));
                terms.push((false, e));
            }
            None => good = false,
        }
        for (op, place, term) in chain.into_iter().rev() {
            let Some(e) = self.value(term, scope) else {
                good = false;
                continue;
            };
            match shape {
                Some((shape, left)) if shape != e.shape => {
                    let (verb, word) = if op == BinaryOperator::Add { ("add", "and") } else { ("subtract", "and") };
                    self.report(
                        Diagnostic::error(
                            format!("cannot {verb} {shape} {word} {}", e.shape),
                            place,
                            "the shapes differ",
                        )
                        .related(left, format!("this has the shape {shape}"))
                        .related(term.span, format!("this has the shape {}", e.shape)),
                    );
                    good = false;
                }
                _ => shape = Some((e.shape, term.span)),
            }
            terms.push((op == BinaryOperator::Subtract, e));
        }
        if !good {
            return None;
        }
        let shape = terms[0].1.shape;
        if terms.iter().all(|(_, e)| e.value().is_some()) {
            let total = terms
                .iter()
                .fold(0.0, |s, (negative, e)| if *negative { s - e.value().unwrap() } else { s + e.value().unwrap() });
            return Some(Expression::number(total, span));
        }
        Some(Expression::new(Kind::Add(terms), shape, span))
    }

    fn product(&mut self, a: Ex, b: Ex, place: Span, span: Span) -> Option<Ex> {
        use Shape::*;
        let kind = match (a.shape, b.shape) {
            (Scalar, Scalar) => {
                if let (Some(u), Some(v)) = (a.value(), b.value()) {
                    return Some(Expression::number(u * v, span));
                }
                (Kind::Binary(Binary::Mul, a, b), Scalar)
            }
            (Scalar, shape) => (Kind::Scale(a, b), shape),
            (shape, Scalar) => (Kind::Scale(b, a), shape),
            (Matrix(k, l), Vector(m)) if l == m => (Kind::Product(a, b), Vector(k)),
            (Matrix(k, l), Matrix(m, n)) if l == m => (Kind::Product(a, b), Matrix(k, n)),
            (left, right) => {
                let help = match (left, right) {
                    (Vector(_), Vector(_)) => "write dot(a, b), cross(a, b) or outer(a, b)",
                    (Vector(_), Matrix(..)) => "a row vector times a matrix is transpose(A)*v",
                    _ => "the inner dimensions must agree",
                };
                self.report(
                    Diagnostic::error(format!("cannot multiply {left} by {right}"), place, "the shapes do not fit")
                        .help(help)
                        .related(a.span, format!("this has the shape {left}"))
                        .related(b.span, format!("this has the shape {right}")),
                );
                return None;
            }
        };
        Some(Expression::new(kind.0, kind.1, span))
    }

    fn call(&mut self, function: &ast::Name, arguments: &[ast::Expr], span: Span, scope: &mut Scope) -> Option<Ex> {
        let name = function.text.as_str();
        if let Some(declared) = self.symbols.get(name).copied()
            && scope.find(name).is_none()
        {
            if let Symbol::Definition(statement) = declared.symbol
                && let StatementKind::Let { parameters, .. } = &self.file.statements[statement].kind
                && !parameters.is_empty()
            {
                return self.apply(statement, parameters, arguments, span, scope);
            }
            self.report(
                Diagnostic::error(format!("'{name}' is not a function"), function.span, "called here")
                    .help("for a product write *; a function is defined by `let f(x) = …`")
                    .related(declared.span, "declared here"),
            );
            return None;
        }
        match name {
            "if" => {
                let [c, a, b] = arguments else {
                    return self.wrong_count(name, "if(condition, a, b)", arguments.len(), span);
                };
                let (c, a, b) = (self.condition(c, scope, "'if'"), self.value(a, scope), self.value(b, scope));
                let (c, a, b) = (c?, a?, b?);
                if a.shape != b.shape {
                    self.report(
                        Diagnostic::error(
                            format!("the branches of if have the shapes {} and {}", a.shape, b.shape),
                            span,
                            "the shapes differ",
                        )
                        .related(a.span, format!("{}", a.shape))
                        .related(b.span, format!("{}", b.shape)),
                    );
                    return None;
                }
                let shape = a.shape;
                Some(Expression::new(Kind::Select(c, a, b), shape, span))
            }
            "normal" | "uniform" => {
                if !arguments.is_empty() {
                    return self.wrong_count(name, &format!("{name}()"), arguments.len(), span);
                }
                if scope.allowed & expression::DRAW == 0 {
                    self.report(
                        Diagnostic::error(
                            format!("{name}() stands only in initial values and in --vary"),
                            span,
                            format!("not in {}", scope.place),
                        )
                        .help("a random number is drawn once, before the run starts"),
                    );
                    return None;
                }
                let draw = if name == "normal" { Draw::Normal } else { Draw::Uniform };
                Some(Expression::new(Kind::Draw(draw), Shape::Scalar, span))
            }
            "identity" => {
                let [n] = arguments else { return self.wrong_count(name, "identity(n)", arguments.len(), span) };
                let e = self.index_value(n, scope)?;
                match e.value() {
                    Some(v) if (1.0..=64.0).contains(&v) => {
                        Some(Expression::new(Kind::Identity, Shape::Matrix(v as usize, v as usize), span))
                    }
                    _ => {
                        self.report(Diagnostic::error(
                            "the dimension of identity must be a constant from 1 to 64",
                            n.span,
                            "not such a constant",
                        ));
                        None
                    }
                }
            }
            "matrix" => {
                let rows: Vec<Option<Ex>> = arguments.iter().map(|a| self.value(a, scope)).collect();
                let rows: Vec<Ex> = rows.into_iter().collect::<Option<_>>()?;
                let Some(Shape::Vector(columns)) = rows.first().map(|r| r.shape) else {
                    self.report(
                        Diagnostic::error("matrix(…) takes the rows, each a vector", span, "rows are vectors")
                            .help("write matrix((1, 0), (0, 1))"),
                    );
                    return None;
                };
                if let Some(odd) = rows.iter().find(|r| r.shape != Shape::Vector(columns)) {
                    self.report(Diagnostic::error(
                        format!("the rows of a matrix have the shapes R^{columns} and {}", odd.shape),
                        odd.span,
                        "a row of another length",
                    ));
                    return None;
                }
                let shape = Shape::Matrix(rows.len(), columns);
                Some(Expression::new(Kind::Stack(rows), shape, span))
            }
            _ => self.built_in(function, arguments, span, scope),
        }
    }

    fn built_in(&mut self, function: &ast::Name, arguments: &[ast::Expr], span: Span, scope: &mut Scope) -> Option<Ex> {
        let name = function.text.as_str();
        if let Some(op) = names::unary_function(name) {
            let [a] = arguments else { return self.wrong_count(name, &format!("{name}(x)"), arguments.len(), span) };
            let a = self.scalar(a, scope, &format!("the argument of {name}"))?;
            return Some(match a.value() {
                Some(v) => Expression::number(op.evaluate(v), span),
                None => Expression::new(Kind::Unary(op, a), Shape::Scalar, span),
            });
        }
        if let Some(op) = names::binary_function(name) {
            let [a, b] = arguments else {
                return self.wrong_count(name, &format!("{name}(a, b)"), arguments.len(), span);
            };
            let what = format!("an argument of {name}");
            let (a, b) = (self.scalar(a, scope, &what), self.scalar(b, scope, &what));
            let (a, b) = (a?, b?);
            return Some(match (a.value(), b.value()) {
                (Some(u), Some(v)) => Expression::number(op.evaluate(u, v), span),
                _ => Expression::new(Kind::Binary(op, a, b), Shape::Scalar, span),
            });
        }
        let Some(row) = FUNCTIONS.iter().find(|r| r.name == name) else {
            if self.poisoned.contains(name) {
                return None;
            }
            let known = names::function_names();
            if let Some((_, ours)) = names::ELSEWHERE.iter().find(|(theirs, _)| *theirs == name) {
                self.report(
                    Diagnostic::error(format!("unknown function '{name}'"), function.span, "not a function")
                        .help(format!("did you mean '{ours}'?")),
                );
                return None;
            }
            let own = self.symbols.keys().map(String::as_str);
            let diagnostic = Diagnostic::error(format!("unknown function '{name}'"), function.span, "not a function");
            let diagnostic = match did_you_mean(name, known.into_iter().chain(own)) {
                Some(meant) => diagnostic.help(format!("did you mean '{meant}'?")),
                None => diagnostic.help(format!("define it with `let {name}(x) = …`")),
            };
            self.report(diagnostic);
            return None;
        };
        let values: Vec<Option<Ex>> = arguments.iter().map(|a| self.value_for(a, scope, name)).collect();
        let values: Vec<Ex> = values.into_iter().collect::<Option<_>>()?;
        let shapes: Vec<Shape> = values.iter().map(|v| v.shape).collect();
        // The usage line shows how many arguments there are; diag takes any number.
        let call = row.usage.split_inclusive(')').next().unwrap_or(row.usage);
        if !call.contains('…') && call.matches(',').count() + 1 != shapes.len() {
            return self.wrong_count(name, call, shapes.len(), span);
        }
        let Some(shape) = (row.shape)(&shapes) else {
            let given: Vec<String> = shapes.iter().map(Shape::to_string).collect();
            let message = if given.is_empty() {
                format!("{name} without arguments")
            } else {
                format!("{name} does not take {}", given.join(" and "))
            };
            self.report(
                Diagnostic::error(message, span, "the arguments do not fit")
                    .help(format!("{}: {}", row.usage, row.doc)),
            );
            return None;
        };
        Some(Expression::new(Kind::Linear(row.function, values), shape, span))
    }

    fn wrong_count(&mut self, name: &str, usage: &str, given: usize, span: Span) -> Option<Ex> {
        let needed = if usage.ends_with("()") { 0 } else { usage.matches(',').count() + 1 };
        let arguments = if needed == 1 { "argument" } else { "arguments" };
        self.report(
            Diagnostic::error(
                format!("{name} takes {needed} {arguments}, not {given}"),
                span,
                "wrong number of arguments",
            )
            .help(format!("write {usage}")),
        );
        None
    }

    /// A `let` function with its arguments.
    fn apply(
        &mut self,
        statement: usize,
        parameters: &[ast::Name],
        arguments: &[ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        let StatementKind::Let { name, value, .. } = &self.file.statements[statement].kind else {
            unreachable!("only lets have parameters")
        };
        if parameters.len() != arguments.len() {
            let list: Vec<&str> = parameters.iter().map(|p| p.text.as_str()).collect();
            let usage = format!("{}({})", name.text, list.join(", "));
            return self.wrong_count(&name.text, &usage, arguments.len(), span);
        }
        let values: Vec<Option<Ex>> = arguments.iter().map(|a| self.value(a, scope)).collect();
        let values: Vec<Ex> = values.into_iter().collect::<Option<_>>()?;
        let key = (statement, values.iter().map(|v| std::sync::Arc::as_ptr(v) as usize).collect::<Vec<_>>());
        if let Some((known, _)) = self.applied.get(&key) {
            return known.clone();
        }
        self.enter(statement, span)?;
        let mut inner = Scope::new(
            expression::DYNAMIC
                | expression::MULTIPLIER
                | expression::PARAMETER
                | expression::INDEX
                | expression::TABLE
                | (scope.allowed & expression::DRAW),
            "a let",
        );
        inner.locals = parameters.iter().map(|p| p.text.clone()).zip(values.iter().cloned()).collect();
        let result = self.value(value, &mut inner);
        self.leave();
        self.check_premature(&name.text, span, scope)?;
        // Keep the arguments alive as long as their addresses are keys.
        self.applied.insert(key, (result.clone(), values));
        let result = result?;
        self.check_use(&result, &name.text, span, scope)?;
        Some(result)
    }

    /// A `let`, `integral` or `observe` without arguments, with its family's indices.
    fn definition(
        &mut self,
        statement: usize,
        name: &str,
        indices: &[ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        let (family, parameters, value): (&ast::Ranges, &[ast::Name], &ast::Expr) =
            match &self.file.statements[statement].kind {
                StatementKind::Let { family, parameters, value, .. } => (family, parameters, value),
                StatementKind::Integral { family, value, .. } | StatementKind::Observe { family, value, .. } => {
                    (family, &[], value)
                }
                _ => unreachable!("only these are definitions"),
            };
        if !parameters.is_empty() {
            let list: Vec<&str> = parameters.iter().map(|p| p.text.as_str()).collect();
            self.report(
                Diagnostic::error(format!("'{name}' is a function"), span, "without arguments")
                    .help(format!("write {name}({})", list.join(", "))),
            );
            return None;
        }
        let need = family.ranges.len();
        if indices.len() < need {
            let list: Vec<&str> = family.ranges.iter().map(|r| r.name.text.as_str()).collect();
            self.report(
                Diagnostic::error(
                    format!(
                        "'{name}' is a family and needs its {}",
                        if need == 1 { "index".to_string() } else { format!("{need} indices") }
                    ),
                    span,
                    "which member?",
                )
                .help(format!("write {name}[{}]", list.join(", "))),
            );
            return None;
        }
        if need == 0 {
            let known = match self.defined.get(&statement) {
                Some(known) => known.clone(),
                None => {
                    self.enter(statement, span)?;
                    // A let may stand for an initial value; an integral or observable is a quantity of every moment.
                    let draw = match &self.file.statements[statement].kind {
                        StatementKind::Let { .. } => expression::DRAW,
                        _ => 0,
                    };
                    let mut inner = self.definition_scope(statement, "a definition");
                    inner.allowed |= draw;
                    let result = self.value(value, &mut inner);
                    self.leave();
                    self.check_premature(name, span, scope)?;
                    self.defined.insert(statement, result.clone());
                    result
                }
            };
            let e = known?;
            self.check_use(&e, name, span, scope)?;
            return self.component(e, indices, span, scope);
        }
        let mut values = Vec::with_capacity(need);
        for index in &indices[..need] {
            values.push(self.index_value(index, scope)?);
        }
        let key = (statement, values.iter().map(|v| std::sync::Arc::as_ptr(v) as usize).collect::<Vec<_>>());
        let result = match self.applied.get(&key) {
            Some((known, _)) => known.clone(),
            None => {
                self.enter(statement, span)?;
                let mut inner = self.definition_scope(statement, "a let");
                // The ranges are read with the family's own indices, the body with the values asked for.
                let ranges = self.ranges(family, &mut inner);
                inner.locals = family.ranges.iter().map(|r| r.name.text.clone()).zip(values.iter().cloned()).collect();
                let body = self.value(value, &mut inner);
                self.leave();
                self.check_premature(name, span, scope)?;
                let result = match (ranges, body) {
                    (Some(ranges), Some(body)) => {
                        let shape = body.shape;
                        let checks = values.iter().cloned().zip(ranges.ranges).collect();
                        Some(Expression::new(Kind::Member(name.to_string(), checks, ranges.filter, body), shape, span))
                    }
                    _ => None,
                };
                self.applied.insert(key, (result.clone(), values));
                result
            }
        };
        let e = result?;
        self.check_use(&e, name, span, scope)?;
        self.component(e, &indices[need..], span, scope)
    }

    /// What a `let`, `integral` or `observe` may use. An integral is one along the exact motion, which has no multipliers
    /// at hand.
    fn definition_scope(&self, statement: usize, place: &'static str) -> Scope {
        let all = expression::DYNAMIC | expression::PARAMETER | expression::INDEX | expression::TABLE;
        match &self.file.statements[statement].kind {
            StatementKind::Integral { .. } => Scope::new(all, "an integral"),
            _ => Scope::new(all | expression::MULTIPLIER, place),
        }
    }

    fn hamiltonian_value(&mut self, span: Span, scope: &mut Scope) -> Option<Ex> {
        let statement = self.hamiltonian.expect("asked for only where there is one");
        let known = match self.defined.get(&statement) {
            Some(known) => known.clone(),
            None => {
                self.enter(statement, span)?;
                let StatementKind::Hamiltonian { value, .. } = &self.file.statements[statement].kind else {
                    unreachable!()
                };
                let mut inner = Scope::new(
                    expression::DYNAMIC | expression::PARAMETER | expression::INDEX | expression::TABLE,
                    "the Hamiltonian",
                );
                let result = self.value(value, &mut inner);
                self.leave();
                self.check_premature("H", span, scope)?;
                self.defined.insert(statement, result.clone());
                result
            }
        };
        let e = known?;
        self.check_use(&e, "H", span, scope)?;
        Some(e)
    }

    /// A definition that uses what is not read yet where sizes, ranges, shapes and parameters are.
    fn check_premature(&mut self, name: &str, span: Span, scope: &Scope) -> Option<()> {
        let needs = self.premature;
        if needs == 0 {
            return Some(());
        }
        if needs & !scope.allowed != 0 {
            self.premature = 0;
            let what = match needs {
                expression::PARAMETER => "a parameter",
                expression::MULTIPLIER => "a multiplier",
                _ => "the state or on time",
            };
            self.allow(needs, &format!("'{name}', which depends on {what},"), span, scope);
        }
        None
    }

    /// A definition that depends on more than may be used here.
    fn check_use(&mut self, e: &Ex, name: &str, span: Span, scope: &Scope) -> Option<()> {
        let excess = e.depends & !(scope.allowed | expression::INDEX);
        if excess == 0 {
            return Some(());
        }
        if excess & expression::DRAW != 0 {
            self.report(Diagnostic::error(
                format!(
                    "'{name}' draws a random number: normal() and uniform() stand only in initial values and in --vary"
                ),
                span,
                format!("not in {}", scope.place),
            ));
            return None;
        }
        let what = if excess == expression::MULTIPLIER { "a multiplier" } else { "the state or on time" };
        self.allow(excess, &format!("'{name}', which depends on {what},"), span, scope)
    }

    pub(super) fn enter(&mut self, statement: usize, span: Span) -> Option<()> {
        if let Some(start) = self.entered.iter().position(|&s| s == statement) {
            let mut circle: Vec<(String, Span)> =
                self.entered[start..].iter().map(|&s| self.statement_name(s)).collect();
            // Said once, at the first of them, whichever was asked for first.
            let first = (0..circle.len()).min_by_key(|&k| circle[k].1.start).unwrap_or(0);
            circle.rotate_left(first);
            if self.recursive.insert(circle[0].1) {
                self.report(recursion(&circle, span));
            }
            return None;
        }
        self.entered.push(statement);
        Some(())
    }

    pub(super) fn leave(&mut self) {
        self.entered.pop();
    }
}

/// A circle of definitions, reported at its first.
pub(super) fn recursion(circle: &[(String, Span)], used: Span) -> Diagnostic {
    let (name, place) = &circle[0];
    let chain: Vec<&str> = circle.iter().map(|(n, _)| n.as_str()).chain([name.as_str()]).collect();
    let message = match circle.len() {
        1 => format!("'{name}' is defined by itself (recursive)"),
        _ => format!("'{name}' is defined in a circle (recursive): {}", chain.join(" uses ")),
    };
    Diagnostic::error(message, *place, "defined here")
        .help("a definition may only use what does not depend on it")
        .related(used, "used here")
}

/// Whether the index name was already bound in the same brackets.
fn checked_name(ranges: &Ranges, name: &str, index_names: &[String]) -> bool {
    ranges.ranges.iter().any(|r| index_names[r.index as usize] == name)
}
