//! Statements: declarations, then values, then formulas.

use super::expression::{self, Depends, Draw, Ex, Expression, Kind, Ranges};
use super::lower::{self, Context, Lowered, MOST_NUMBERS, MOST_ROWS};
use super::model::{self, Component, Dynamics, Family, Model, Parameter, Quantity, Role, Table, Variable};
use super::names::{Declared, Scope, Symbol};
use super::shape::Shape;
use super::terms::DEEPEST;
use super::velocity::{self, Velocity};
use super::{Checked, Elaborator, ParameterEntry, TableEntry, VariableEntry, VariableRole, kind_name};
use crate::functional::Functional;
use crate::start::{Start, Target};
use crate::syntax::ast::{self, ShapeExpr, StatementKind};
use crate::syntax::diagnostic::{Diagnostic, Severity, did_you_mean};
use crate::syntax::span::Span;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// What an observable is called in messages.
const OBSERVABLE: &str = "an observable";
/// Largest dimension in `R^k`.
const LARGEST_DIMENSION: i64 = 1024;
/// The names of a trajectory's number and of how many there are, in `--vary`.
const TRAJECTORY: &str = "i";
const TRAJECTORIES: &str = "N";
/// Most indices of a family.
const MOST_INDICES: usize = 3;

/// Puts the values of `--set` and `--vary` in place of those in the file; returns the statements that vary.
pub(super) fn replace(
    file: &mut ast::File,
    set: &[(ast::Name, ast::Expr)],
    vary: &[(ast::Name, ast::Expr)],
) -> (FxHashSet<usize>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    for (target, new) in set {
        if put(file, target, new).is_empty() {
            diagnostics.push(no_such_value(file, target, "set", "parameter, size or initial value", |_| true));
        }
    }
    let mut varied = FxHashSet::default();
    for (k, (target, new)) in vary.iter().enumerate() {
        let name = &target.text;
        if let Some((first, _)) = vary[..k].iter().find(|(other, _)| other.text == *name) {
            let message = format!("'{name}' is given by --vary twice");
            diagnostics.push(Diagnostic::error(message, target.span, "second time").related(first.span, "first time"));
        } else if let Some((set, _)) = set.iter().find(|(other, _)| other.text == *name) {
            let message = format!("'{name}' is given both by --set and by --vary");
            let diagnostic = Diagnostic::error(message, target.span, "varied here").related(set.span, "set here");
            diagnostics.push(diagnostic.help("leave one of them out"));
        } else if let Some(size) = file.statements.iter().find_map(|s| match &s.kind {
            StatementKind::Size { name: size, .. } if size.text == *name => Some(size.span),
            _ => None,
        }) {
            let message = format!("cannot vary '{name}': it is a size, and all trajectories are of one structure");
            let diagnostic = Diagnostic::error(message, target.span, "a size").related(size, "declared here");
            diagnostics.push(diagnostic.help(format!("sweep once for each of its values, with --set {name}=…")));
        } else {
            let statements = put(file, target, new);
            if statements.is_empty() {
                let variable = |kind: &StatementKind| !matches!(kind, StatementKind::Size { .. });
                diagnostics.push(no_such_value(file, target, "vary", "parameter or initial value", variable));
            }
            varied.extend(statements);
        }
    }
    (varied, diagnostics)
}

/// Puts `new` in place of the value that `target` names; returns the statements that hold it.
fn put(file: &mut ast::File, target: &ast::Name, new: &ast::Expr) -> Vec<usize> {
    let mut found = Vec::new();
    for (number, statement) in file.statements.iter_mut().enumerate() {
        use StatementKind::*;
        match &mut statement.kind {
            Parameter { name, value, .. } | Size { name, value } if name.text == target.text => *value = new.clone(),
            Coordinate { name, value, .. }
            | Momentum { name, value, .. }
            | Velocity { name, value, .. }
            | State { name, value, .. }
                if name.text == target.text =>
            {
                *value = Some(new.clone());
            }
            _ => continue,
        }
        found.push(number);
    }
    found
}

/// `target` names nothing that can be set or varied (`verb`).
fn no_such_value(
    file: &ast::File,
    target: &ast::Name,
    verb: &str,
    what: &str,
    can: impl Fn(&StatementKind) -> bool,
) -> Diagnostic {
    use StatementKind::*;
    let has_value = |kind: &StatementKind| {
        matches!(
            kind,
            Parameter { .. } | Size { .. } | Coordinate { .. } | Momentum { .. } | Velocity { .. } | State { .. }
        )
    };
    let kinds = file.statements.iter().map(|s| &s.kind).filter(|kind| has_value(kind) && can(kind));
    let names: Vec<&str> = kinds.filter_map(kind_name).map(|n| n.text.as_str()).collect();
    let message = format!("cannot {verb} '{}': no {what} has this name", target.text);
    let diagnostic = Diagnostic::error(message, target.span, "unknown");
    match did_you_mean(&target.text, names.iter().copied()) {
        Some(meant) => diagnostic.help(format!("did you mean '{meant}'?")),
        None if verb == "set" => diagnostic.help(format!("these can be set: {}", names.join(", "))),
        None => diagnostic.help(format!("these can be varied: {}", names.join(", "))),
    }
}

impl Elaborator<'_> {
    /// The model, where nothing stands against it.
    pub(super) fn model(&mut self, draw: &mut dyn FnMut(Draw) -> f64) -> Option<Model> {
        self.declare();
        self.read_tables();
        for statement in 0..self.file.statements.len() {
            if let StatementKind::Size { .. } = self.file.statements[statement].kind {
                self.size(statement);
            }
        }
        self.parameter_families();
        self.variable_families();
        self.variables_known = true;
        let initial = self.initial_expressions();
        let hamiltonian = self.hamiltonian.and_then(|s| self.hamiltonian_expression(s));
        let field = self.derivatives();
        let mut constraints = Vec::new();
        let mut integrals = Vec::new();
        let mut observables = Vec::new();
        for statement in 0..self.file.statements.len() {
            match &self.file.statements[statement].kind {
                StatementKind::Constraint { name, .. } => constraints.extend(self.constraint(statement, name.span)),
                StatementKind::Integral { name, family, value } => {
                    integrals.extend(self.quantity(name, family, value, "an integral"))
                }
                StatementKind::Observe { name, family, value } => {
                    observables.extend(self.quantity(name, family, value, OBSERVABLE))
                }
                // Read even where it is not used, so that its mistakes are found.
                StatementKind::Let { name, family, parameters, value }
                    if parameters.is_empty() && self.declares(name) =>
                {
                    self.unused_let(statement, family, value);
                }
                _ => {}
            }
        }
        self.completeness();
        let stiff = self.stiff.take().and_then(|name| self.stiff_term(&name, hamiltonian.as_ref()));
        if !self.complete || self.diagnostics.iter().any(|d| d.severity == Severity::Error) {
            return None;
        }
        self.lower_all(initial, hamiltonian, stiff, field, constraints, integrals, observables, draw)
    }

    fn declare(&mut self) {
        for (number, statement) in self.file.statements.iter().enumerate() {
            use StatementKind::*;
            let Some(name) = kind_name(&statement.kind) else {
                match self.hamiltonian {
                    None => self.hamiltonian = Some(number),
                    Some(first) => {
                        let (_, place) = self.statement_name(first);
                        let (_, second) = self.statement_name(number);
                        self.report(
                            Diagnostic::error("a second hamiltonian", second, "there can be only one")
                                .help("add the terms in one expression")
                                .related(place, "the first is here"),
                        );
                    }
                }
                continue;
            };
            let symbol = match &statement.kind {
                Derivative { .. } => continue,
                Parameter { .. } => {
                    self.parameters.push(ParameterEntry {
                        statement: number,
                        family: None,
                        value: None,
                        ranges: Ranges::default(),
                    });
                    Symbol::Parameter(self.parameters.len() - 1)
                }
                Size { .. } => Symbol::Size(number),
                Coordinate { .. } => self.new_variable(number, name, VariableRole::Coordinate, expression::POSITION),
                Momentum { .. } => self.new_variable(
                    number,
                    name,
                    VariableRole::Momentum { of: usize::MAX, velocity: false },
                    expression::MOMENTUM,
                ),
                Velocity { of, .. } => {
                    let momentum = ast::Name { text: format!("p_{}", of.text), span: name.span };
                    let symbol = self.new_variable(
                        number,
                        &momentum,
                        VariableRole::Momentum { of: usize::MAX, velocity: true },
                        expression::MOMENTUM,
                    );
                    self.declare_name(&momentum, symbol);
                    Symbol::Velocity
                }
                State { .. } => self.new_variable(number, name, VariableRole::State, expression::STATE),
                Constraint { .. } => Symbol::Constraint(number),
                Integral { .. } | Let { .. } | Observe { .. } => Symbol::Definition(number),
                Table { .. } => {
                    let table = super::model::Table { name: name.text.clone(), columns: Vec::new(), rows: 0 };
                    self.tables.push(TableEntry { table, failed: true });
                    Symbol::Table(self.tables.len() - 1)
                }
                Hamiltonian { .. } => unreachable!("has no name"),
            };
            if name.text == "H" && matches!(statement.kind, Constraint { .. } | Integral { .. }) {
                self.report(
                    Diagnostic::error("'H' names the Hamiltonian in options and results", name.span, "taken")
                        .help("choose another name"),
                );
            }
            self.declare_name(name, symbol);
            if let Let { parameters, .. } = &statement.kind {
                for (k, parameter) in parameters.iter().enumerate() {
                    if let Some(first) = parameters[..k].iter().find(|p| p.text == parameter.text) {
                        let message = format!("'{}' is twice among the parameters of '{}'", parameter.text, name.text);
                        self.report(
                            Diagnostic::error(message, parameter.span, "second time").related(first.span, "first time"),
                        );
                    }
                }
            }
        }
    }

    fn new_variable(&mut self, statement: usize, name: &ast::Name, role: VariableRole, depends: Depends) -> Symbol {
        self.variables.push(VariableEntry {
            statement,
            name: name.text.clone(),
            span: name.span,
            role,
            depends,
            family: None,
        });
        Symbol::Variable(self.variables.len() - 1)
    }

    fn declare_name(&mut self, name: &ast::Name, symbol: Symbol) {
        if let Some(first) = self.symbols.get(&name.text) {
            let first = first.span;
            self.report(
                Diagnostic::error(format!("'{}' is declared twice", name.text), name.span, "second declaration")
                    .help("every name is declared once")
                    .related(first, "first declared here"),
            );
        } else {
            self.symbols.insert(name.text.clone(), Declared { symbol, span: name.span });
        }
    }

    fn read_tables(&mut self) {
        let mut number = 0;
        for statement in &self.file.statements {
            let StatementKind::Table { name, path } = &statement.kind else { continue };
            match (self.read_table)(&path.text).and_then(|text| parse_table(&text)) {
                Ok((columns, rows)) => self.tables[number] = TableEntry { table: Table { name: name.text.clone(), columns, rows }, failed: false },
                Err(reason) => self.report(Diagnostic::error(format!("table '{}' cannot be read from {}: {reason}", name.text, path.text), path.span, "this file").help("a table is a text file of numbers separated by commas, its path relative to the model file; its first line names the columns")),
            }
            number += 1;
        }
    }

    /// The value of a size.
    pub(super) fn size(&mut self, statement: usize) -> Option<i64> {
        if let Some(&known) = self.sizes.get(&statement) {
            return known;
        }
        let StatementKind::Size { name, value } = &self.file.statements[statement].kind else {
            unreachable!("asked for sizes only")
        };
        if self.sizes_entered.contains(&statement) {
            let start = self.sizes_entered.iter().position(|&s| s == statement).unwrap_or(0);
            let mut circle: Vec<(String, Span)> =
                self.sizes_entered[start..].iter().map(|&s| self.statement_name(s)).collect();
            let first = (0..circle.len()).min_by_key(|&k| circle[k].1.start).unwrap_or(0);
            circle.rotate_left(first);
            self.report(super::terms::recursion(&circle, name.span));
            self.sizes.insert(statement, None);
            return None;
        }
        self.sizes_entered.push(statement);
        let mut scope = Scope::new(0, "a size");
        let before = self.diagnostics.len();
        let checked = self.value(value, &mut scope);
        self.sizes_entered.pop();
        let result = checked.and_then(|e| match e.value() {
            Some(v) if v.fract() == 0.0 && v.abs() <= lower::LARGEST_INDEX => Some(v as i64),
            Some(v) => {
                self.report(Diagnostic::error(
                    format!("size '{}' must be an integer, and this is {v}", name.text),
                    value.span,
                    "not an integer",
                ));
                None
            }
            None => {
                if self.diagnostics.len() == before {
                    self.report(
                        Diagnostic::error(
                            format!("size '{}' must be an integer constant", name.text),
                            value.span,
                            "not a constant",
                        )
                        .help("a size is made of numbers and other sizes"),
                    );
                }
                None
            }
        });
        self.sizes.insert(statement, result);
        result
    }

    /// The box of a variable's or parameter's family.
    fn family(&mut self, name: &ast::Name, ranges: &ast::Ranges, shape: Option<Shape>) -> Option<(Family, Ranges)> {
        let mut scope = Scope::new(0, "a range");
        let checked = self.ranges(ranges, &mut scope);
        if let Some(filter) = &ranges.filter {
            self.report(
                Diagnostic::error("the family of a variable or parameter has no condition", filter.span, "not here")
                    .help("leave rows out in the sums that use it"),
            );
            return None;
        }
        if ranges.ranges.len() > MOST_INDICES {
            self.report(Diagnostic::error(
                format!("'{}' has {} indices, and three are the most", name.text, ranges.ranges.len()),
                name.span,
                "too many indices",
            ));
            return None;
        }
        let checked = checked?;
        let mut bounds = Vec::new();
        for (range, written) in checked.ranges.iter().zip(&ranges.ranges) {
            let (Some(low), Some(high)) = (range.low.value(), range.high.value()) else {
                self.report(
                    Diagnostic::error(
                        format!("the range of '{}' depends on another index", written.name.text),
                        range.span,
                        "not constant",
                    )
                    .help("variables and parameters are boxes; constraints and lets may have dependent ranges"),
                );
                return None;
            };
            bounds.push((low as i64, high as i64));
        }
        let rows: f64 = bounds.iter().map(|&(low, high)| (high - low + 1).max(0) as f64).product();
        if rows > MOST_ROWS as f64 {
            self.report(Diagnostic::error(
                format!("'{}' has {rows} members, and the limit is {MOST_ROWS}", name.text),
                name.span,
                "too many",
            ));
            return None;
        }
        let indices = ranges.ranges.iter().map(|r| r.name.text.clone()).collect();
        Some((Family { name: name.text.clone(), span: name.span, indices, bounds, shape: shape? }, checked))
    }

    fn shape(&mut self, shape: &ShapeExpr) -> Option<Shape> {
        match shape {
            ShapeExpr::Scalar => Some(Shape::Scalar),
            ShapeExpr::Vector(k) => self.dimension(k).map(Shape::Vector),
            ShapeExpr::Matrix(k, l) => {
                let (k, l) = (self.dimension(k), self.dimension(l));
                Some(Shape::Matrix(k?, l?))
            }
        }
    }

    fn dimension(&mut self, e: &ast::Expr) -> Option<usize> {
        let mut scope = Scope::new(0, "a shape");
        let checked = self.index_value(e, &mut scope)?;
        match checked.value() {
            Some(v) if v >= 1.0 && v <= LARGEST_DIMENSION as f64 => Some(v as usize),
            Some(v) => {
                self.report(Diagnostic::error(
                    format!("a dimension of {v}"),
                    e.span,
                    format!("dimensions are integers from 1 to {LARGEST_DIMENSION}"),
                ));
                None
            }
            None => None,
        }
    }

    fn parameter_families(&mut self) {
        for number in 0..self.parameters.len() {
            let StatementKind::Parameter { name, family, .. } =
                &self.file.statements[self.parameters[number].statement].kind
            else {
                unreachable!()
            };
            // The shape is that of the value, read below; scalars meanwhile.
            if let Some((family, ranges)) = self.family(name, family, Some(Shape::Scalar)) {
                self.parameters[number].family = Some(family);
                self.parameters[number].ranges = ranges;
            }
        }
        self.parameters_known = true;
        // A parameter's shape follows from its value, which may use other parameters: in order of need.
        let mut state = vec![0u8; self.parameters.len()];
        for number in 0..self.parameters.len() {
            self.parameter_value(number, &mut state, 0);
        }
    }

    /// Reads parameter `number` after those that it uses.
    fn parameter_value(&mut self, number: usize, state: &mut Vec<u8>, depth: usize) {
        const READING: u8 = 1;
        const READ: u8 = 2;
        if state[number] == READ {
            return;
        }
        let StatementKind::Parameter { name, family, value } =
            &self.file.statements[self.parameters[number].statement].kind
        else {
            unreachable!()
        };
        if state[number] == READING {
            self.report(Diagnostic::error(
                format!("parameter '{}' is defined by itself (recursive)", name.text),
                name.span,
                "recursive",
            ));
            self.parameters[number].family = None;
            state[number] = READ;
            return;
        }
        if depth > DEEPEST {
            self.report(Diagnostic::error(
                format!("parameter '{}' stands at the end of more than {DEEPEST} that use each other", name.text),
                name.span,
                "too deep",
            ));
            self.parameters[number].family = None;
            state[number] = READ;
            return;
        }
        state[number] = READING;
        let mut used = Vec::new();
        names_in(value, &mut used);
        let statement = self.parameters[number].statement;
        if self.varied.contains(&statement) {
            used.retain(|name| name != TRAJECTORY && name != TRAJECTORIES);
        }
        for used in used {
            match self.symbols.get(&used).map(|d| d.symbol) {
                Some(Symbol::Parameter(other)) => self.parameter_value(other, state, depth + 1),
                Some(Symbol::Definition(definition)) => {
                    // A let of parameters: what it uses comes first too.
                    let mut inner = Vec::new();
                    self.names_behind(definition, &mut inner);
                    for name in inner {
                        if let Some(Symbol::Parameter(other)) = self.symbols.get(&name).map(|d| d.symbol) {
                            self.parameter_value(other, state, depth + 1);
                        }
                    }
                }
                _ => {}
            }
        }
        if state[number] == READ {
            return; // found to be recursive on the way
        }
        state[number] = READ;
        self.parameter_order.push(number);
        let ranges = self.parameters[number].ranges.clone();
        let mut scope = Scope::new(expression::PARAMETER | expression::INDEX | expression::TABLE, "a parameter");
        bind(&mut scope, family, &ranges);
        self.let_vary(statement, &mut scope);
        let checked = self.value(value, &mut scope);
        match checked {
            Some(e) => {
                if let Some(family) = &mut self.parameters[number].family {
                    family.shape = e.shape;
                }
                self.parameters[number].value = Some(e);
            }
            None => self.parameters[number].family = None,
        }
    }

    /// The names that a definition and those behind it use.
    fn names_behind(&self, definition: usize, names: &mut Vec<String>) {
        let mut seen = rustc_hash::FxHashSet::from_iter([definition]);
        let mut stack = vec![definition];
        while let Some(definition) = stack.pop() {
            let (StatementKind::Let { value, .. }
            | StatementKind::Integral { value, .. }
            | StatementKind::Observe { value, .. }) = &self.file.statements[definition].kind
            else {
                continue;
            };
            let mut used = Vec::new();
            names_in(value, &mut used);
            for name in &used {
                if let Some(Symbol::Definition(other)) = self.symbols.get(name).map(|d| d.symbol)
                    && seen.insert(other)
                {
                    stack.push(other);
                }
            }
            names.extend(used);
        }
    }

    fn variable_families(&mut self) {
        // Positions and states first: momenta take their families.
        for number in 0..self.variables.len() {
            let (StatementKind::Coordinate { name, family, shape, .. }
            | StatementKind::State { name, family, shape, .. }) =
                &self.file.statements[self.variables[number].statement].kind
            else {
                continue;
            };
            let shape = self.shape(shape);
            let family = self.family(name, family, shape).map(|(f, _)| f);
            self.variables[number].family = family;
        }
        let mut taken: Vec<(usize, Span)> = Vec::new();
        for number in 0..self.variables.len() {
            let VariableRole::Momentum { velocity, .. } = self.variables[number].role else { continue };
            let (StatementKind::Momentum { name, indices, of, .. } | StatementKind::Velocity { name, indices, of, .. }) =
                &self.file.statements[self.variables[number].statement].kind
            else {
                unreachable!()
            };
            // Not by the symbol table: a coordinate that repeats another name is still a coordinate.
            let target = self.variables.iter().position(|v| v.name == of.text && v.role == VariableRole::Coordinate);
            let Some(target) = target else {
                if !self.poisoned.contains(&of.text) {
                    let coordinates: Vec<&str> = self
                        .variables
                        .iter()
                        .filter(|v| v.role == VariableRole::Coordinate)
                        .map(|v| v.name.as_str())
                        .collect();
                    let diagnostic =
                        Diagnostic::error(format!("'{}' is not a coordinate", of.text), of.span, "unknown coordinate");
                    let diagnostic = match did_you_mean(&of.text, coordinates.iter().copied()) {
                        Some(meant) => diagnostic.help(format!("did you mean '{meant}'?")),
                        None if coordinates.is_empty() => {
                            diagnostic.help(format!("declare it: `coordinate {} : R^3 = …`", of.text))
                        }
                        None => diagnostic.help(format!("the coordinates are {}", coordinates.join(", "))),
                    };
                    self.report(diagnostic);
                }
                continue;
            };
            if let Some((_, first)) = taken.iter().find(|(t, _)| *t == target) {
                self.report(
                    Diagnostic::error(
                        format!("coordinate '{}' has two momenta", of.text),
                        name.span,
                        "second momentum",
                    )
                    .related(*first, "the first is here"),
                );
                continue;
            }
            taken.push((target, name.span));
            self.variables[number].role = VariableRole::Momentum { of: target, velocity };
            let Some(family) = self.variables[target].family.clone() else { continue };
            if !indices.is_empty() && indices.len() != family.indices.len() {
                self.report(
                    Diagnostic::error(
                        format!(
                            "'{}' has {} indices, and '{}' has {}",
                            name.text,
                            indices.len(),
                            of.text,
                            family.indices.len()
                        ),
                        name.span,
                        "the families differ",
                    )
                    .related(family.span, "the coordinate"),
                );
                continue;
            }
            let names = if indices.is_empty() {
                family.indices.clone()
            } else {
                indices.iter().map(|i| i.text.clone()).collect()
            };
            self.variables[number].family =
                Some(Family { name: self.variables[number].name.clone(), span: name.span, indices: names, ..family });
        }
    }

    /// Lets a value that varies draw, and use `i` and `N`, which hide all other names.
    fn let_vary(&self, statement: usize, scope: &mut Scope) {
        if !self.varied.contains(&statement) {
            return;
        }
        scope.allowed |= expression::DRAW;
        let none = Span::default();
        scope.locals.push((TRAJECTORY.to_string(), Expression::new(Kind::Trajectory, Shape::Scalar, none)));
        scope.locals.push((TRAJECTORIES.to_string(), Expression::number(self.trajectories as f64, none)));
    }

    /// The initial value of every variable: its ranges and expression.
    fn initial_expressions(&mut self) -> Vec<Option<(Ranges, Ex)>> {
        let mut all = Vec::new();
        for number in 0..self.variables.len() {
            use StatementKind::*;
            let statement = &self.file.statements[self.variables[number].statement];
            let (value, written) = match &statement.kind {
                Coordinate { value, family, .. } | State { value, family, .. } => (value, Some(family)),
                Momentum { value, .. } | Velocity { value, .. } => (value, None),
                _ => unreachable!("only these declare variables"),
            };
            let Some(family) = self.variables[number].family.clone() else {
                // Its own mistakes are found all the same.
                if let (Some(value), true) = (value, written.is_none_or(|f| f.ranges.is_empty())) {
                    let mut scope = Scope::new(
                        expression::PARAMETER | expression::DRAW | expression::TABLE | expression::INDEX,
                        "initial values",
                    );
                    self.let_vary(self.variables[number].statement, &mut scope);
                    if self.variables[number].role == VariableRole::Coordinate
                        || self.variables[number].role == VariableRole::State
                    {
                        self.value(value, &mut scope);
                    }
                }
                all.push(None);
                continue;
            };
            let name = self.variables[number].name.clone();
            let Some(value) = value else {
                if matches!(self.variables[number].role, VariableRole::Momentum { .. }) {
                    all.push(Some((Ranges::default(), Expression::number(0.0, statement.span))));
                } else {
                    let usage = match family.shape {
                        Shape::Scalar => format!("{name} = 0"),
                        shape => format!("{name} : {shape} = …"),
                    };
                    self.report(
                        Diagnostic::error(
                            format!("'{name}' has no initial value"),
                            self.variables[number].span,
                            "= EXPR is missing",
                        )
                        .help(format!("write `{} {usage}`", self.variables[number].what())),
                    );
                    all.push(None);
                }
                continue;
            };
            let mut scope = Scope::new(
                expression::PARAMETER | expression::DRAW | expression::TABLE | expression::INDEX,
                "initial values",
            );
            let mut ranges = Ranges::default();
            for (index, &(low, high)) in family.indices.iter().zip(&family.bounds) {
                let variable = self.index_names.len() as u32;
                self.index_names.push(index.clone());
                let bound = |v: i64| Expression::number(v as f64, family.span);
                ranges.ranges.push(expression::Range {
                    index: variable,
                    low: bound(low),
                    high: bound(high),
                    span: family.span,
                });
                scope.locals.push((index.clone(), Expression::new(Kind::Index(variable), Shape::Scalar, family.span)));
            }
            self.let_vary(self.variables[number].statement, &mut scope);
            let checked = self.value(value, &mut scope);
            all.push(checked.and_then(|e| {
                if e.shape != family.shape {
                    self.report(
                        Diagnostic::error(
                            format!(
                                "the initial value of '{name}' has the shape {}, and '{name}' is in {}",
                                e.shape, family.shape
                            ),
                            value.span,
                            format!("this has the shape {}", e.shape),
                        )
                        .related(family.span, format!("declared in {}", family.shape)),
                    );
                    return None;
                }
                Some((ranges, e))
            }));
        }
        all
    }

    fn hamiltonian_expression(&mut self, statement: usize) -> Option<Ex> {
        let StatementKind::Hamiltonian { value, .. } = &self.file.statements[statement].kind else { unreachable!() };
        let mut scope = Scope::new(
            expression::DYNAMIC | expression::PARAMETER | expression::INDEX | expression::TABLE,
            "the Hamiltonian",
        );
        self.entered.push(statement);
        let e = self.value(value, &mut scope);
        self.entered.pop();
        self.defined.insert(statement, e.clone());
        let e = e?;
        if e.shape != Shape::Scalar {
            self.report(Diagnostic::error(
                "the Hamiltonian must be a scalar",
                value.span,
                format!("this has the shape {}", e.shape),
            ));
            return None;
        }
        Some(e)
    }

    /// The definition that `--stiff` names: a term of the Hamiltonian that depends on positions and time only.
    fn stiff_term(&mut self, name: &ast::Name, hamiltonian: Option<&Ex>) -> Option<Ex> {
        let mut terms = Vec::new();
        if let Some(h) = hamiltonian {
            terms_of(h, &mut terms);
        }
        let is_let = |&(_, statement): &(usize, &ast::Statement)| matches!(statement.kind, StatementKind::Let { .. });
        let lets: Vec<usize> =
            self.file.statements.iter().enumerate().filter(is_let).map(|(number, _)| number).collect();
        let known = |statement: &usize| self.defined.get(statement).cloned().flatten();
        let suits = |e: &Ex| e.depends & expression::MOMENTUM == 0 && terms.iter().any(|term| Arc::ptr_eq(term, e));
        let named = |statement: &usize| self.statement_name(*statement).0;
        if let Some(e) = lets.iter().find(|s| named(s) == name.text).and_then(known).filter(suits) {
            return Some(e);
        }
        let able: Vec<String> = lets.iter().filter(|s| known(s).is_some_and(|e| suits(&e))).map(named).collect();
        let message = format!("'{}' is no term of the potential energy", name.text);
        let help = match able.is_empty() {
            true => {
                "give the stiff term a name, `let NAME = EXPR`, and write that in the Hamiltonian in its place".into()
            }
            false => format!("these are: {}", able.join(", ")),
        };
        let label = "a `let` that the Hamiltonian adds is wanted";
        self.report(Diagnostic::error(message, name.span, label).help(help));
        None
    }

    /// The right-hand sides of a state model: variable, ranges, expression.
    fn derivatives(&mut self) -> Vec<(usize, Ranges, Ex)> {
        let mut all: Vec<(usize, Ranges, Ex)> = Vec::new();
        let mut seen: Vec<(usize, Span)> = Vec::new();
        for statement in &self.file.statements {
            let StatementKind::Derivative { name, indices, value } = &statement.kind else { continue };
            let variable = self.symbols.get(&name.text).and_then(|d| match d.symbol {
                Symbol::Variable(v) if self.variables[v].role == VariableRole::State => Some(v),
                _ => None,
            });
            let Some(variable) = variable else {
                if !self.poisoned.contains(&name.text) {
                    let states: Vec<&str> = self
                        .variables
                        .iter()
                        .filter(|v| v.role == VariableRole::State)
                        .map(|v| v.name.as_str())
                        .collect();
                    let diagnostic = Diagnostic::error(
                        format!("'{}' is not a state, so {}' cannot be given", name.text, name.text),
                        name.span,
                        "not a state",
                    );
                    let diagnostic = match did_you_mean(&name.text, states.iter().copied()) {
                        Some(meant) => diagnostic.help(format!("did you mean '{meant}'?")),
                        None if self.symbols.contains_key(&name.text) && self.hamiltonian.is_some() => diagnostic.help("a model has either a hamiltonian, from which the equations of motion follow, or states with their derivatives"),
                        None => diagnostic.help(format!("declare it: `state {} : R^3 = …`", name.text)),
                    };
                    self.report(diagnostic);
                }
                continue;
            };
            if let Some((_, first)) = seen.iter().find(|(v, _)| *v == variable) {
                self.report(
                    Diagnostic::error(format!("{}' is given twice", name.text), name.span, "second time")
                        .related(*first, "first here"),
                );
                continue;
            }
            seen.push((variable, name.span));
            let Some(family) = self.variables[variable].family.clone() else { continue };
            if indices.len() != family.indices.len() {
                let usage = if family.indices.is_empty() {
                    format!("{}' = …", name.text)
                } else {
                    format!("{}[{}]' = …", name.text, family.indices.join(", "))
                };
                let message = format!(
                    "'{}' has {} {}, not {}",
                    name.text,
                    family.indices.len(),
                    if family.indices.len() == 1 { "index" } else { "indices" },
                    indices.len()
                );
                self.report(
                    Diagnostic::error(message, name.span, "the family has another number of indices")
                        .help(format!("write {usage}"))
                        .related(family.span, "declared here"),
                );
                continue;
            }
            let names: Vec<String> = indices.iter().map(|i| i.text.clone()).collect();
            let mut scope = Scope::new(
                expression::DYNAMIC | expression::PARAMETER | expression::INDEX | expression::TABLE,
                "a derivative",
            );
            let mut ranges = Ranges::default();
            for (index, &(low, high)) in names.iter().zip(&family.bounds) {
                let number = self.index_names.len() as u32;
                self.index_names.push(index.clone());
                let bound = |v: i64| Expression::number(v as f64, name.span);
                ranges.ranges.push(expression::Range {
                    index: number,
                    low: bound(low),
                    high: bound(high),
                    span: name.span,
                });
                scope.locals.push((index.clone(), Expression::new(Kind::Index(number), Shape::Scalar, name.span)));
            }
            let Some(e) = self.value(value, &mut scope) else { continue };
            if e.shape != family.shape {
                self.report(
                    Diagnostic::error(
                        format!("{}' has the shape {}, and '{}' is in {}", name.text, e.shape, name.text, family.shape),
                        value.span,
                        format!("this has the shape {}", e.shape),
                    )
                    .related(family.span, format!("declared in {}", family.shape)),
                );
                continue;
            }
            all.push((variable, ranges, e));
        }
        for number in 0..self.variables.len() {
            let variable = &self.variables[number];
            if variable.role == VariableRole::State && !seen.iter().any(|(v, _)| *v == number) && self.complete {
                let name = variable.name.clone();
                self.report(
                    Diagnostic::error(format!("state '{name}' has no derivative"), variable.span, "how does it move?")
                        .help(format!("add `{name}' = …`")),
                );
            }
        }
        all
    }

    /// A constraint, read where it stands or where its multiplier is used first.
    pub(super) fn constraint(&mut self, statement: usize, used: Span) -> Option<Checked> {
        if let Some(known) = self.constraints.get(&statement) {
            return known.clone();
        }
        self.enter(statement, used)?;
        let checked = self.read_constraint(statement);
        self.leave();
        self.constraints.insert(statement, checked.clone());
        checked
    }

    fn read_constraint(&mut self, statement: usize) -> Option<Checked> {
        let StatementKind::Constraint { name, family, left, right } = &self.file.statements[statement].kind else {
            unreachable!("asked for constraints only")
        };
        let mut scope = Scope::new(
            expression::DYNAMIC | expression::PARAMETER | expression::INDEX | expression::TABLE,
            "a constraint",
        );
        let ranges = self.ranges(family, &mut scope);
        let (l, r) = (self.value(left, &mut scope), self.value(right, &mut scope));
        let (ranges, l, r) = (ranges?, l?, r?);
        if l.shape != r.shape {
            // A vector or matrix equal to 0 means every component.
            if r.value() != Some(0.0) {
                self.report(
                    Diagnostic::error(
                        format!("the sides of constraint '{}' have the shapes {} and {}", name.text, l.shape, r.shape),
                        name.span,
                        "the sides differ",
                    )
                    .related(left.span, format!("{}", l.shape))
                    .related(right.span, format!("{}", r.shape)),
                );
                return None;
            }
        }
        if (l.depends | r.depends) & (expression::POSITION | expression::MOMENTUM | expression::STATE) == 0 {
            self.report(Diagnostic::error(
                format!("constraint '{}' holds no variable", name.text),
                left.span.to(right.span),
                "nothing here moves",
            ));
            return None;
        }
        let shape = l.shape;
        let span = left.span.to(right.span);
        let value = if r.value() == Some(0.0) {
            l
        } else {
            Expression::new(Kind::Add(vec![(false, l), (true, r)]), shape, span)
        };
        Some(Checked { name: name.clone(), ranges, value })
    }

    fn quantity(
        &mut self,
        name: &ast::Name,
        family: &ast::Ranges,
        value: &ast::Expr,
        place: &'static str,
    ) -> Option<Checked> {
        let mut scope =
            Scope::new(expression::DYNAMIC | expression::PARAMETER | expression::INDEX | expression::TABLE, place);
        if place == OBSERVABLE {
            scope.allowed |= expression::MULTIPLIER;
        }
        let ranges = self.ranges(family, &mut scope);
        let statement = match self.symbols.get(&name.text)?.symbol {
            Symbol::Definition(s) => s,
            _ => return None, // a duplicate, reported
        };
        if self.statement_name(statement).1 != name.span {
            return None;
        }
        if family.ranges.is_empty()
            && let Some(known) = self.defined.get(&statement)
        {
            return known.clone().map(|value| Checked { name: name.clone(), ranges: Ranges::default(), value });
        }
        self.entered.push(statement);
        let value = self.value(value, &mut scope);
        self.entered.pop();
        if family.ranges.is_empty() {
            self.defined.insert(statement, value.clone());
        }
        let value = value?;
        let excess = value.depends & expression::DRAW;
        if excess != 0 {
            return None;
        }
        Some(Checked { name: name.clone(), ranges: ranges?, value })
    }

    /// Whether this is the place that counts for a name, not a second declaration.
    fn declares(&self, name: &ast::Name) -> bool {
        self.symbols.get(&name.text).is_some_and(|d| d.span == name.span)
    }

    fn unused_let(&mut self, statement: usize, family: &ast::Ranges, value: &ast::Expr) {
        let everything = expression::DYNAMIC
            | expression::MULTIPLIER
            | expression::PARAMETER
            | expression::INDEX
            | expression::TABLE
            | expression::DRAW;
        let mut scope = Scope::new(everything, "a let");
        if family.ranges.is_empty() {
            if !self.defined.contains_key(&statement) {
                self.entered.push(statement);
                let e = self.value(value, &mut scope);
                self.entered.pop();
                self.defined.insert(statement, e);
            }
            return;
        }
        if !self.applied.keys().any(|(s, _)| *s == statement) {
            self.ranges(family, &mut scope);
            self.entered.push(statement);
            self.value(value, &mut scope);
            self.entered.pop();
        }
    }

    /// What a whole file must have.
    fn completeness(&mut self) {
        if !self.complete {
            return; // what is missing may stand in a statement that could not be read
        }
        let place = self.file.statements.first().map_or(Span::default(), |s| s.span);
        let coordinate = self.variables.iter().position(|v| v.role == VariableRole::Coordinate);
        let state = self.variables.iter().position(|v| v.role == VariableRole::State);
        if let (Some(state), Some(h)) = (state, self.hamiltonian) {
            let (_, h) = self.statement_name(h);
            let (s, first) = (
                self.variables[state].span,
                if h.start < self.variables[state].span.start { h } else { self.variables[state].span },
            );
            let second = if first == h { s } else { h };
            self.report(
                Diagnostic::error("a file holds either a hamiltonian or states, not both", second, "does not go with")
                    .related(first, "this"),
            );
            return;
        }
        if let (Some(state), Some(coordinate)) = (state, coordinate) {
            let (s, c) = (self.variables[state].span, self.variables[coordinate].span);
            let (first, second) = if s.start < c.start { (s, c) } else { (c, s) };
            self.report(
                Diagnostic::error(
                    "a file holds either coordinates with a hamiltonian or states, not both",
                    second,
                    "does not go with",
                )
                .related(first, "this"),
            );
            return;
        }
        if coordinate.is_none() && state.is_none() {
            self.report(
                Diagnostic::error(
                    "a model needs coordinates (with a hamiltonian) or states (with their derivatives)",
                    place,
                    "no variables in this file",
                )
                .help("for example `coordinate q : R^3 = (0, 0, 1)`, `momentum p of q`, `hamiltonian dot(p, p)/2`"),
            );
            return;
        }
        if let Some(coordinate) = coordinate
            && self.hamiltonian.is_none()
        {
            self.report(
                Diagnostic::error(
                    "there is no hamiltonian",
                    self.variables[coordinate].span,
                    "how do the coordinates move?",
                )
                .help("add `hamiltonian EXPR`, or declare `state`s with their derivatives"),
            );
        }
        for number in 0..self.variables.len() {
            if self.variables[number].role == VariableRole::Coordinate {
                let has =
                    self.variables.iter().any(|v| matches!(v.role, VariableRole::Momentum { of, .. } if of == number));
                if !has {
                    let name = self.variables[number].name.clone();
                    self.report(
                        Diagnostic::error(
                            format!("coordinate '{name}' has no momentum"),
                            self.variables[number].span,
                            "no conjugate momentum",
                        )
                        .help(format!("add `momentum p of {name}`; without a value it starts at 0")),
                    );
                }
            }
        }
    }

    #[allow(clippy::too_many_arguments)] // one call, each argument a part of the file
    fn lower_all(
        &mut self,
        initial: Vec<Option<(Ranges, Ex)>>,
        hamiltonian: Option<Ex>,
        stiff: Option<Ex>,
        field: Vec<(usize, Ranges, Ex)>,
        constraints: Vec<Checked>,
        integrals: Vec<Checked>,
        observables: Vec<Checked>,
        draw: &mut dyn FnMut(Draw) -> f64,
    ) -> Option<Model> {
        // Parameters, in the file's order.
        let mut parameters = Vec::new();
        let mut first = 0;
        for entry in &self.parameters {
            let family = entry.family.clone()?;
            let (len, span) = (family.len(), family.span);
            parameters.push(Parameter { family, first });
            first += len;
            if first > MOST_NUMBERS {
                self.report(lower::too_many_numbers(first, span));
                return None;
            }
        }
        // Variables: positions, then momenta in the order of their coordinates; or states.
        let mut order: Vec<usize> = (0..self.variables.len())
            .filter(|&v| !matches!(self.variables[v].role, VariableRole::Momentum { .. }))
            .collect();
        for k in 0..order.len() {
            let momentum = (0..self.variables.len())
                .find(|&m| matches!(self.variables[m].role, VariableRole::Momentum { of, .. } if of == order[k]));
            order.extend(momentum);
        }
        let mut place = vec![(0, 0); self.variables.len()]; // (number in the model, first component)
        let mut dimension = 0;
        for (number, &v) in order.iter().enumerate() {
            place[v] = (number, dimension);
            let family = self.variables[v].family.as_ref()?;
            dimension += family.len();
            if dimension > MOST_NUMBERS {
                self.report(lower::too_many_numbers(dimension, family.span));
                return None;
            }
        }
        if dimension == 0 {
            let span = self.variables[order[0]].span;
            self.report(Diagnostic::error("the model has no variables: every family is empty", span, "an empty range"));
            return None;
        }
        let tables: Vec<Table> = self.tables.iter().map(|t| t.table.clone()).collect();
        let families: Vec<Family> = self.variables.iter().map(|v| v.family.clone()).collect::<Option<_>>()?;
        let context = Context {
            variables: families.iter().zip(&place).map(|(f, &(_, first))| (f, first)).collect(),
            parameters: parameters.iter().map(|p| (&p.family, p.first)).collect(),
            multipliers: Vec::new(),
            tables: &tables,
            index_names: &self.index_names,
        };
        let mut diagnostics = Vec::new();
        // What the first trajectory brings along: its number, and its draws as they come.
        let mut start = Start::default();
        let mut inputs = vec![0.0];
        let mut lowered = |ranges: &Ranges, e: &Ex, draws: &mut Vec<Draw>| -> Option<Lowered> {
            match lower::lower(&context, ranges, e, draws) {
                Ok(l) => Some(l),
                Err(d) => {
                    diagnostics.push(d);
                    None
                }
            }
        };

        // Parameter values, each after those that it uses.
        let mut values = vec![0.0; first];
        for &next in &self.parameter_order {
            let entry = &self.parameters[next];
            let Some(value) = entry.value.as_ref() else { continue };
            let Some(l) = lowered(&entry.ranges, value, &mut start.draws) else { continue };
            inputs.extend(start.draws[inputs.len() - 1..].iter().map(|&which| draw(which)));
            let Parameter { family, first: place } = &parameters[next];
            if family.is_empty() {
                continue;
            }
            let numbers = l.functional.evaluate(0.0, &inputs, &values);
            values[*place..place + numbers.len()].copy_from_slice(&numbers);
            if let Some(bad) = numbers.iter().find(|v| !v.is_finite()) {
                let message = format!("parameter '{}' is {bad}", family.name);
                self.diagnostics.push(Diagnostic::error(message, value.span, "not a finite number"));
            }
            start.keep(Target::Parameter, family, *place, first, l.functional);
        }

        let mut state = vec![0.0; dimension];
        for (v, value) in initial.iter().enumerate() {
            let (ranges, e) = value.as_ref()?;
            let family = &families[v];
            let place = place[v].1;
            let numbers = match e.value() {
                Some(number) if !family.is_empty() => vec![number; family.len()],
                _ => {
                    let Some(l) = lowered(ranges, e, &mut start.draws) else { continue };
                    inputs.extend(start.draws[inputs.len() - 1..].iter().map(|&which| draw(which)));
                    if family.is_empty() {
                        continue;
                    }
                    let numbers = l.functional.evaluate(0.0, &inputs, &values);
                    start.keep(Target::Initial, family, place, dimension, l.functional);
                    numbers
                }
            };
            if let Some(bad) = numbers.iter().find(|v| !v.is_finite()) {
                self.diagnostics.push(Diagnostic::error(
                    format!("the initial value of '{}' is {bad}", family.name),
                    e.span,
                    "not a finite number",
                ));
            }
            state[place..place + numbers.len()].copy_from_slice(&numbers);
        }

        let none = &mut Vec::new(); // only starts draw
        let explicit_time = hamiltonian.as_ref().is_some_and(|h| h.depends & expression::TIME != 0);
        let dynamics = match hamiltonian {
            Some(h) => lowered(&Ranges::default(), &h, none).map(|l| Dynamics::Hamiltonian(l.functional, h.span)),
            None => {
                let mut whole = Functional { outputs: dimension, terms: Vec::new() };
                for (v, ranges, e) in &field {
                    if let Some(l) = lowered(ranges, e, none) {
                        for mut term in l.functional.terms {
                            term.first_output.iter_mut().for_each(|o| *o += place[*v].1 as u32);
                            whole.terms.push(term);
                        }
                    }
                }
                Some(Dynamics::Field(whole))
            }
        };
        let stiff = stiff.and_then(|e| lowered(&Ranges::default(), &e, none)).map(|l| l.functional);
        let mut quantities = |list: &[Checked]| -> Vec<Option<Quantity>> {
            list.iter().map(|c| lowered(&c.ranges, &c.value, none).map(|l| quantity(c, l, &context))).collect()
        };
        let (constraints, integrals) = (quantities(&constraints), quantities(&integrals));
        let constraints: Option<Vec<Quantity>> = constraints.into_iter().collect();
        // Observables may use the multipliers of the constraints, whose members are known now.
        let multipliers = model::multipliers(constraints.as_deref().unwrap_or(&[]), dimension);
        let context = Context { multipliers, ..context };
        let mut known = Vec::new();
        for c in &observables {
            if constraints.is_none() && c.value.depends & expression::MULTIPLIER != 0 {
                continue; // a constraint is in error
            }
            match lower::lower(&context, &c.ranges, &c.value, &mut Vec::new()) {
                Ok(l) => known.push(quantity(c, l, &context)),
                Err(d) => diagnostics.push(d),
            }
        }
        if known.len() < observables.len() {
            self.diagnostics.extend(diagnostics);
            return None;
        }
        self.diagnostics.extend(diagnostics);
        let observables = known;

        let mut model = Model {
            t0: 0.0,
            variables: order
                .iter()
                .map(|&v| {
                    let entry = &self.variables[v];
                    let role = match entry.role {
                        VariableRole::Coordinate => Role::Coordinate,
                        VariableRole::State => Role::State,
                        VariableRole::Momentum { of, .. } => Role::Momentum(place[of].0),
                    };
                    let initial_span = initial[v].as_ref().map_or(entry.span, |(_, e)| e.span);
                    let rate_span = field.iter().find(|(of, ..)| *of == v).map_or(entry.span, |(_, _, e)| e.span);
                    Variable { family: families[v].clone(), role, first: place[v].1, initial_span, rate_span }
                })
                .collect(),
            parameters,
            parameter_values: values,
            initial: state,
            start,
            dynamics: dynamics?,
            stiff,
            constraints: constraints?,
            integrals: integrals.into_iter().collect::<Option<_>>()?,
            observables,
            sizes: self.sizes.iter().filter_map(|(&s, &v)| v.map(|v| (self.statement_name(s).0, v))).collect(),
            explicit_time,
            penalty: None,
        };
        model.sizes.sort();
        let moving = order.iter().filter(|&&v| {
            matches!(self.variables[v].role, VariableRole::Momentum { velocity: true, .. }) && !families[v].is_empty()
        });
        let velocity = |&v: &usize| {
            let (family, first) = (&families[v], place[v].1);
            Velocity {
                name: family.name.clone(),
                first,
                value: model.initial[first..first + family.len()].to_vec(),
                span: self.file.statements[self.variables[v].statement].span,
            }
        };
        let velocities: Vec<Velocity> = moving.map(velocity).collect();
        if let Err(d) = velocity::start_moving(&mut model, &velocities) {
            self.diagnostics.push(d);
        }
        model.start.keep_velocities(velocities, dimension);
        Some(model)
    }
}

/// The terms of a sum of sums that are added, the sums themselves among them.
fn terms_of(e: &Ex, out: &mut Vec<Ex>) {
    out.push(e.clone());
    if let Kind::Add(terms) = &e.kind {
        terms.iter().filter(|(subtracted, _)| !subtracted).for_each(|(_, term)| terms_of(term, out));
    }
}

/// A lowered formula as a quantity of the model.
fn quantity(checked: &Checked, lowered: Lowered, context: &Context) -> Quantity {
    let shape = checked.value.shape;
    Quantity {
        name: checked.name.text.clone(),
        span: checked.name.span,
        components: components(shape, &lowered),
        functional: lowered.functional,
        shape,
        indices: checked.ranges.ranges.iter().map(|r| context.index_names[r.index as usize].clone()).collect(),
        member_indices: lowered.members,
        members: lowered.count,
        depends: checked.value.depends,
    }
}

/// The independent components: a symmetric matrix counts each pair of equal entries once.
fn components(shape: Shape, lowered: &Lowered) -> Vec<Component> {
    let all = (0..shape.len()).map(|offset| Component { offset, multiplicity: 1.0 }).collect();
    let (Shape::Matrix(k, l), Some((graph, roots))) = (shape, &lowered.symmetric_hint) else { return all };
    let symmetric = k == l && (0..k).all(|i| (0..i).all(|j| roots[i * k + j] == roots[j * k + i]));
    let keep = |offset: usize| {
        let (i, j) = (offset / l, offset % l);
        match (symmetric, i.cmp(&j)) {
            _ if graph.is_zero(roots[offset]) => None,
            (false, _) | (true, std::cmp::Ordering::Equal) => Some(1.0),
            (true, std::cmp::Ordering::Less) => Some(2.0),
            (true, std::cmp::Ordering::Greater) => None,
        }
    };
    (0..shape.len()).filter_map(|offset| keep(offset).map(|multiplicity| Component { offset, multiplicity })).collect()
}

/// Puts a family's indices into a scope.
fn bind(scope: &mut Scope, written: &ast::Ranges, ranges: &Ranges) {
    for (name, range) in written.ranges.iter().zip(&ranges.ranges) {
        scope
            .locals
            .push((name.name.text.clone(), Expression::new(Kind::Index(range.index), Shape::Scalar, range.span)));
    }
}

/// The names in an expression as written.
fn names_in(e: &ast::Expr, out: &mut Vec<String>) {
    use ast::ExprKind::*;
    match &e.kind {
        Number(_) => {}
        Name(name) => out.push(name.clone()),
        Member(base, _) => names_in(base, out),
        Index(base, list) => {
            names_in(base, out);
            list.iter().for_each(|x| names_in(x, out));
        }
        Call(function, list) => {
            out.push(function.text.clone());
            list.iter().for_each(|x| names_in(x, out));
        }
        Unary(_, a) => names_in(a, out),
        Binary(_, _, a, b) => {
            names_in(a, out);
            names_in(b, out);
        }
        Vector(list) => list.iter().for_each(|x| names_in(x, out)),
        Sum(ranges, body) => {
            for range in &ranges.ranges {
                names_in(&range.low, out);
                names_in(&range.high, out);
            }
            ranges.filter.iter().for_each(|f| names_in(f, out));
            names_in(body, out);
        }
    }
}

/// Column names and values of a table, and its number of rows.
type Columns = (Vec<(String, Vec<f64>)>, usize);

fn parse_table(text: &str) -> Result<Columns, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((_, header)) = lines.next() else { return Err("it is empty".to_string()) };
    let mut columns: Vec<(String, Vec<f64>)> =
        header.split(',').map(|name| (name.trim().trim_matches('"').to_string(), Vec::new())).collect();
    if let Some(twice) = (1..columns.len()).find(|&k| columns[..k].iter().any(|(name, _)| *name == columns[k].0)) {
        return Err(format!("it has two columns '{}'", columns[twice].0));
    }
    let mut rows = 0;
    for (number, line) in lines {
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() != columns.len() {
            return Err(format!(
                "line {} has {} fields, and the header has {}",
                number + 1,
                fields.len(),
                columns.len()
            ));
        }
        for (field, (name, values)) in fields.iter().zip(&mut columns) {
            let value: f64 = field
                .trim()
                .parse()
                .map_err(|_| format!("line {}, column '{name}': '{}' is not a number", number + 1, field.trim()))?;
            if !value.is_finite() {
                return Err(format!("line {}, column '{name}': {value} is not finite", number + 1));
            }
            values.push(value);
        }
        rows += 1;
    }
    Ok((columns, rows))
}
