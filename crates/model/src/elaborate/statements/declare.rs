//! Declarations: every name once, and the statements that a whole file must have.

use crate::elaborate::expression;
use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::names::{self, Declaration, Symbol};
use crate::elaborate::{Elaborator, ParameterEntry, TableEntry, VariableEntry, VariableRole};
use crate::syntax::ast::{self, Statement};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::syntax::statements::{Meaning, StatementKind};

impl Elaborator<'_> {
    pub(super) fn declare(&mut self) {
        for (number, statement) in self.statements.iter().enumerate() {
            match statement.kind {
                StatementKind::Include => {
                    let ast::Name { text, span } = &statement.reference;
                    let message = format!("'{text}' is not included here");
                    self.report(Diagnostic::error(message, *span, "no files are read"));
                }
                StatementKind::Hamiltonian | StatementKind::Lagrangian => {
                    self.declare_hamiltonian(number)
                }
                _ => self.declare_statement(number, statement),
            }
        }
    }

    fn declare_hamiltonian(&mut self, number: usize) {
        let Some(first) = self.hamiltonian else {
            self.hamiltonian = Some(number);
            return;
        };
        let [one, other] = [first, number].map(|number| self.statement(number));
        let word = other.kind.row().word;
        let (message, help) = match one.kind == other.kind {
            true => (format!("a second {word}"), "add the terms in one expression"),
            false => (
                format!("a {word} beside a {}", one.kind.row().word),
                "a model has one of them: the Hamiltonian follows from a Lagrangian",
            ),
        };
        let finding = Diagnostic::error(message, other.name.span, "there can be only one");
        self.report(finding.help(help).related(one.name.span, "the first is here"));
    }

    /// Declares the name of a statement, if it has one.
    fn declare_statement(&mut self, number: usize, statement: &Statement) {
        let (kind, name) = (statement.kind, &statement.name);
        let symbol = match kind.row().meaning {
            Meaning::Nothing => return,
            Meaning::Size => Symbol::Size(number),
            Meaning::Parameter => {
                let ranges = IndexSet::default();
                let entry = ParameterEntry { statement: number, family: None, value: None, ranges };
                self.parameters.push(entry);
                Symbol::Parameter(self.parameters.len() - 1)
            }
            Meaning::Variable => self.new_variable(number, name, kind),
            Meaning::Definition => Symbol::Definition(number),
            Meaning::Table => {
                self.tables.push(TableEntry::failed(&name.text));
                Symbol::Table(self.tables.len() - 1)
            }
            Meaning::Label(..) => Symbol::Label(number),
        };
        if kind == StatementKind::Velocity {
            let text = names::momentum_of(&statement.reference.text);
            let momentum = ast::Name { text, span: name.span };
            let symbol = self.new_variable(number, &momentum, kind);
            self.declare_name(&momentum, symbol);
        }
        if name.text == "H" && matches!(kind, StatementKind::Constraint | StatementKind::Integral) {
            let message = "'H' names the Hamiltonian in options and results";
            let finding = Diagnostic::error(message, name.span, "taken");
            self.report(finding.help("choose another name"));
        }
        self.declare_name(name, symbol);
        for (k, parameter) in statement.parameters.iter().enumerate() {
            let earlier = &statement.parameters[..k];
            if let Some(first) = earlier.iter().find(|p| p.text == parameter.text) {
                let message = format!(
                    "'{}' is twice among the parameters of '{}'",
                    parameter.text, name.text
                );
                let finding = Diagnostic::error(message, parameter.span, "second time");
                self.report(finding.related(first.span, "first time"));
            }
        }
    }

    fn new_variable(&mut self, statement: usize, name: &ast::Name, kind: StatementKind) -> Symbol {
        let (role, depends) = match kind {
            StatementKind::Coordinate => (VariableRole::Coordinate, expression::POSITION),
            StatementKind::State => (VariableRole::State, expression::STATE),
            _ => {
                let velocity = kind == StatementKind::Velocity;
                (VariableRole::Momentum { of: usize::MAX, velocity }, expression::MOMENTUM)
            }
        };
        let (name, span) = (name.text.clone(), name.span);
        self.variables.push(VariableEntry { statement, name, span, role, depends, family: None });
        Symbol::Variable(self.variables.len() - 1)
    }

    fn declare_name(&mut self, name: &ast::Name, symbol: Symbol) {
        let Some(&Declaration { span: first, .. }) = self.symbols.get(&name.text) else {
            self.symbols.insert(name.text.clone(), Declaration { symbol, span: name.span });
            return;
        };
        let message = format!("'{}' is declared twice", name.text);
        let finding = Diagnostic::error(message, name.span, "second declaration")
            .help("every name is declared once")
            .related(first, "first declared here");
        self.report(finding);
    }

    /// True if this is the declaration of the name that counts, not a second one.
    pub(super) fn declares(&self, name: &ast::Name) -> bool {
        self.symbols.get(&name.text).is_some_and(|d| d.span == name.span)
    }

    /// Reports statements that a whole file must have and that are missing.
    pub(super) fn completeness(&mut self) {
        if !self.complete {
            return; // a missing statement may be one that could not be read
        }
        let first = |role| self.variables.iter().find(|v| v.role == role).map(|v| v.span);
        let (coordinate, state) = (first(VariableRole::Coordinate), first(VariableRole::State));
        let hamiltonian = self.hamiltonian.map(|number| self.statement(number).name.span);
        let poisson = self.poisson();
        match (coordinate, state, hamiltonian) {
            (None, Some(_), Some(hamiltonian)) if poisson.is_some() => {
                if self.lagrangian().is_some() {
                    let message = "a Lagrangian beside a Poisson matrix";
                    let finding = Diagnostic::error(message, hamiltonian, "no momenta follow");
                    self.report(finding.help("write `hamiltonian EXPR`: x' = J ∇H"));
                }
            }
            (None, Some(state), None) if let Some(poisson) = poisson => {
                let message = "there is no hamiltonian";
                let finding = Diagnostic::error(message, poisson, "J, and no H in x' = J ∇H");
                self.report(finding.help("add `hamiltonian EXPR`").related(state, "moved by it"));
            }
            (_, Some(state), Some(hamiltonian)) => {
                self.exclude("a hamiltonian or states", state, hamiltonian)
            }
            (Some(coordinate), Some(state), None) => {
                self.exclude("coordinates with a hamiltonian or states", state, coordinate)
            }
            (None, None, _) => {
                let place = self.statements.first().map_or(Span::default(), |s| s.span);
                let message = "a model needs coordinates (with a hamiltonian) or states (with their derivatives)";
                let help = "for example `coordinate q : R^3 = (0, 0, 1)`, `momentum p of q`, `hamiltonian dot(p, p)/2`";
                let finding = Diagnostic::error(message, place, "no variables in this file");
                self.report(finding.help(help));
            }
            (Some(coordinate), None, None) => {
                let message = "there is no hamiltonian";
                let finding =
                    Diagnostic::error(message, coordinate, "how do the coordinates move?");
                let help = "add `hamiltonian EXPR` or `lagrangian EXPR`, or declare `state`s with their derivatives";
                self.report(finding.help(help));
                self.every_coordinate_has_a_momentum();
            }
            (Some(_), None, Some(_)) => self.every_coordinate_has_a_momentum(),
            (None, Some(_), None) => {}
        }
    }

    /// Reports two kinds of statements that do not go together, at the later one.
    fn exclude(&mut self, kinds: &str, a: Span, b: Span) {
        let (first, second) = if a.start < b.start { (a, b) } else { (b, a) };
        let message = format!("a file holds either {kinds}, not both");
        let finding = Diagnostic::error(message, second, "does not go with");
        let help =
            "states with a hamiltonian need the matrix J of x' = J ∇H: `poisson (x) = MATRIX`";
        self.report(finding.help(help).related(first, "this"));
    }

    fn every_coordinate_has_a_momentum(&mut self) {
        for number in 0..self.variables.len() {
            let VariableEntry { role, name, span, .. } = &self.variables[number];
            let is_conjugate = |v: &VariableEntry| matches!(v.role, VariableRole::Momentum { of, .. } if of == number);
            if *role != VariableRole::Coordinate || self.variables.iter().any(is_conjugate) {
                continue;
            }
            let message = format!("coordinate '{name}' has no momentum");
            let help = format!("add `momentum p of {name}`; without a value it starts at 0");
            self.report(Diagnostic::error(message, *span, "no conjugate momentum").help(help));
        }
    }
}
