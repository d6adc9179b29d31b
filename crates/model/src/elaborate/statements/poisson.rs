//! Poisson systems: the states that a matrix of brackets moves, its shape, and what it must be.

use super::CheckedFormulas;
use super::forces::places;
use super::layout::ModelLayout;
use super::quantities::FormulaLowering;
use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::expression::{self, Ex, Kind, Storage};
use crate::elaborate::lower::{MOST_ROWS, Purpose};
use crate::elaborate::model::{Component, Family, Quantity};
use crate::elaborate::names::{Scope, Symbol};
use crate::elaborate::shape::Shape;
use crate::elaborate::{Elaborator, VariableRole};
use crate::functional::Functional;
use crate::poisson::{Asymmetry, Block, Casimir, Poisson};
use crate::syntax::ast::{self, ExprKind, Statement};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::syntax::statements::StatementKind;
use rustc_hash::FxHashSet;

/// Number of random points at which J is tested for antisymmetry, beside the start.
const POINTS: usize = 3;

/// A `poisson` statement that has been checked but not lowered.
pub(super) struct CheckedBlock {
    set: IndexSet,
    moving: Vec<Moving>,
    matrix: Ex,
    size: usize,
    span: Span,
}

/// Rows of a matrix of brackets.
enum Moving {
    /// All members of this variable.
    All(usize),
    /// A state, a member of a family or a component.
    One(Ex),
}

impl Elaborator<'_> {
    /// Place of the first `poisson` statement, if there is one.
    pub(super) fn poisson(&self) -> Option<Span> {
        let of = self.statements.iter().find(|s| s.kind == StatementKind::Poisson);
        of.map(|statement| statement.span)
    }

    /// True if momenta belong to the coordinates, and the equations of motion are Hamilton's.
    pub(super) fn is_canonical(&self) -> bool {
        self.hamiltonian.is_some() && self.poisson().is_none()
    }

    /// The matrices of brackets.
    pub(super) fn blocks(&mut self) -> Vec<CheckedBlock> {
        let mut blocks = Vec::new();
        let mut moved = FxHashSet::default();
        let mut all_read = true;
        for statement in self.statements.iter().filter(|s| s.kind == StatementKind::Poisson) {
            match self.block(statement, &mut moved) {
                Some(block) => blocks.push(block),
                None => all_read = false,
            }
        }
        let Some(span) = self.poisson().filter(|_| all_read && self.complete) else {
            return blocks;
        };
        for number in 0..self.variables.len() {
            let entry = &self.variables[number];
            if entry.role == VariableRole::State && !moved.contains(&number) {
                let name = &entry.name;
                let message = format!("state '{name}' is in no Poisson matrix");
                let help = format!("add it to the states of a matrix, or `poisson ({name}) = 0`");
                let finding = Diagnostic::error(message, entry.span, "how does it move?");
                self.report(finding.help(help).related(span, "the others move by this"));
            }
        }
        blocks
    }

    fn block(
        &mut self,
        statement: &Statement,
        moved: &mut FxHashSet<usize>,
    ) -> Option<CheckedBlock> {
        let (matrix, states) = statement.values.split_last()?;
        let inputs = expression::FORMULA & !expression::TIME;
        self.scope = Scope::new(inputs, "a Poisson matrix");
        let set = self.bind_indices_of(states)?;
        let (mut moving, mut size) = (Vec::new(), 0);
        for state in states {
            let (of, own, count) = self.moving(state)?;
            moved.insert(own);
            moving.push(of);
            size += count;
        }
        let checked = self.value(matrix)?;
        let is_zero = checked.value() == Some(0.0);
        if checked.shape != Shape::Matrix(size, size) && !is_zero {
            let own = checked.shape;
            let message = match size {
                1 => "a single state has no bracket with itself: its Poisson matrix is 0".into(),
                _ => format!(
                    "the Poisson matrix has the shape {own}, and these states are {size} numbers"
                ),
            };
            let finding = Diagnostic::error(message, matrix.span, format!("the shape is {own}"));
            let whole = Shape::Matrix(size, size);
            let finding = finding.help(format!("a matrix in {whole} is wanted"));
            return self.refuse(finding.related(states[0].span, format!("{size} numbers")));
        }
        let span = matrix.span;
        Some(CheckedBlock { set, moving, matrix: checked, size, span })
    }

    /// Casimirs that the file does not state. Those that hold for some values of the parameters only
    /// are none where parameters differ between trajectories.
    pub(super) fn casimirs(
        &self,
        poisson: &Poisson,
        (x, parameters): (&[f64], &[f64]),
        stated: &[Quantity],
    ) -> Vec<Casimir> {
        let is_parameter = |s: usize| self.statement(s).kind == StatementKind::Parameter;
        let mut differ = self.varied.iter().copied().chain(self.given.iter().map(|g| g.statement));
        let differ = differ.any(is_parameter);
        let known: Vec<&Functional> = stated.iter().map(|integral| &integral.functional).collect();
        let mut found = poisson.casimirs(x, parameters, &known);
        found.retain(|casimir| casimir.for_all_parameters || !differ);
        found
    }

    /// Binds the names of indices behind families: each stands for all values that the family has
    /// there, `s[i]`.
    fn bind_indices_of(&mut self, states: &[ast::Expr]) -> Option<IndexSet> {
        let mut set = IndexSet::default();
        for state in states {
            let Some((name, indices)) = indexed(state) else { continue };
            let Some(Symbol::Variable(number)) = self.symbols.get(name).map(|d| d.symbol) else {
                continue;
            };
            let family: Family = self.variables[number].family.clone()?;
            for (k, index) in indices.iter().enumerate().take(family.indices.len()) {
                let ExprKind::Name(name) = &index.kind else { continue };
                let known = self.scope.find(name).is_some() || self.symbols.contains_key(name);
                if known {
                    continue;
                }
                let bounds = Family { bounds: vec![family.bounds[k]], ..family.clone() };
                let bound = self.bind_members(std::slice::from_ref(name), &bounds, index.span);
                set.ranges.extend(bound.ranges);
            }
        }
        Some(set)
    }

    /// What an entry of the list of states stands for, its variable, and its count of numbers.
    fn moving(&mut self, state: &ast::Expr) -> Option<(Moving, usize, usize)> {
        if let ExprKind::Name(name) = &state.kind
            && let Some(Symbol::Variable(number)) = self.symbols.get(name).map(|d| d.symbol)
            && self.variables[number].role == VariableRole::State
        {
            let count = self.variables[number].family.as_ref()?.len();
            return Some((Moving::All(number), number, count));
        }
        let checked = self.value(state)?;
        match state_of(&checked) {
            Some(number) => Some((Moving::One(checked.clone()), number, checked.shape.len())),
            None => {
                let finding = Diagnostic::error(
                    "a Poisson matrix moves states",
                    state.span,
                    "this is no state",
                );
                let help = "declare it: `state x : R^3 = …`, and write `poisson (x) = …`, or `poisson (s[i]) = …` for all members of a family";
                self.refuse(finding.help(help))
            }
        }
    }
}

/// Name and indices of the family that a state is a member of, or a component of a member.
fn indexed(state: &ast::Expr) -> Option<(&str, &[ast::Expr])> {
    match &state.kind {
        ExprKind::Member(of, _) => indexed(of),
        ExprKind::Index(of, indices) => match &of.kind {
            ExprKind::Name(name) => Some((name, indices)),
            _ => indexed(of),
        },
        _ => None,
    }
}

/// Variable of a state, of a member of a family of them, or of a component of one.
fn state_of(e: &Ex) -> Option<usize> {
    match &e.kind {
        Kind::Member(Storage::Variable(number, expression::STATE), _) => Some(*number),
        Kind::Component(of, _) => state_of(of),
        _ => None,
    }
}

/// The Poisson system of a file with `poisson` statements; `None` if a formula cannot be lowered or
/// is no matrix of brackets.
pub(super) fn poisson(
    layout: &ModelLayout,
    formulas: &CheckedFormulas,
    (x, parameters): (&[f64], &[f64]),
    lowering: &mut FormulaLowering,
) -> Option<Poisson> {
    let h = formulas.hamiltonian.as_ref()?;
    let hamiltonian = lowering.lower_single(Purpose::Motion, h)?;
    let blocks: Vec<Option<Block>> =
        formulas.blocks.iter().map(|block| lower(block, layout, lowering)).collect();
    let blocks: Vec<Block> = blocks.into_iter().collect::<Option<_>>()?;
    let poisson = Poisson { hamiltonian, span: h.span, blocks };
    let mut states = Poisson::states_around(x, POINTS);
    states.insert(0, x.to_vec());
    for x in &states {
        if let Some(found) = poisson.asymmetry(x, parameters) {
            lowering.findings.push(not_antisymmetric(&poisson, &found, layout));
            return None;
        }
    }
    Some(poisson)
}

fn lower(
    block: &CheckedBlock,
    layout: &ModelLayout,
    lowering: &mut FormulaLowering,
) -> Option<Block> {
    let matrix = lowering.lower_fixed(Purpose::Other, &block.set, &block.matrix)?;
    let members = matrix.count;
    let mut columns: Vec<Vec<u32>> = Vec::new();
    for moving in &block.moving {
        match moving {
            Moving::All(number) => {
                let (first, len) = (layout.place[*number].1, layout.families[*number].len());
                let all: Vec<u32> = (first as u32..).take(len).collect();
                columns.push(all.iter().copied().cycle().take(len * members).collect());
            }
            Moving::One(e) => {
                let lowered = lowering.lower_fixed(Purpose::Other, &block.set, e)?;
                columns.push(places(&lowered.functional));
            }
        }
    }
    let mut of_members = Vec::with_capacity(members * block.size);
    for member in 0..members {
        for column in &columns {
            let width = column.len() / members;
            of_members.extend_from_slice(&column[member * width..][..width]);
        }
        let own = &of_members[member * block.size..];
        let distinct: FxHashSet<u32> = own.iter().copied().collect();
        if distinct.len() < own.len() {
            let finding = Diagnostic::error(
                "a state stands twice among those of a Poisson matrix",
                block.span,
                "which row is its own?",
            );
            lowering.findings.push(finding.help("name every state once: `poisson (x, y) = …`"));
            return None;
        }
    }
    let mut matrix = matrix.functional;
    matrix.outputs = members * block.size.pow(2);
    if block.matrix.value() == Some(0.0) {
        matrix.terms.clear();
    }
    Some(Block { span: block.span, matrix, size: block.size, places: of_members })
}

/// Name of a component of the state, `s[3].x`.
fn name_of(place: u32, layout: &ModelLayout) -> String {
    let place = place as usize;
    let of = layout.families.iter().zip(&layout.place);
    let mut all = of.map(|(family, (_, first))| (family, *first));
    all.find(|(family, first)| (*first..first + family.len()).contains(&place))
        .map_or_else(String::new, |(family, first)| family.component_name(place - first))
}

fn not_antisymmetric(poisson: &Poisson, found: &Asymmetry, layout: &ModelLayout) -> Diagnostic {
    let [a, b] = found.places.map(|place| name_of(place, layout));
    let ([row, column], [one, other]) = (found.entry, found.values);
    let (message, label) = match row == column {
        true => (
            format!("the Poisson matrix is not antisymmetric: {{{a}, {a}}} is not 0"),
            format!("entry [{row},{row}] is {one}"),
        ),
        false => (
            format!("the Poisson matrix is not antisymmetric: {{{a}, {b}}} is not −{{{b}, {a}}}"),
            format!("entry [{row},{column}] is {one}, and [{column},{row}] is {other}"),
        ),
    };
    let span = poisson.blocks[found.block].span;
    Diagnostic::error(message, span, label)
        .help("brackets change their sign with the order: J[b,a] = −J[a,b], and J[a,a] = 0")
}

/// Rate of the states, J ∇H, over the layout of a model.
pub(super) fn field(
    poisson: &Poisson,
    layout: &ModelLayout,
    lowering: &mut FormulaLowering,
) -> Option<Functional> {
    match poisson.field(layout.dimension, MOST_ROWS) {
        Ok(field) => Some(field),
        Err(_) => {
            let message = format!(
                "the field J ∇H has more than {MOST_ROWS} rows: every term of H has one for each state that it moves"
            );
            let finding = Diagnostic::error(message, poisson.span, "too many terms");
            lowering.findings.push(finding.help("make the model smaller"));
            None
        }
    }
}

/// Quantities that Casimirs are, named so that no name of the file is taken.
pub(super) fn quantities(
    casimirs: &[Casimir],
    layout: &ModelLayout,
    poisson: &Poisson,
    is_taken: &dyn Fn(&str) -> bool,
) -> Vec<Quantity> {
    let span = poisson.blocks.first().map_or(poisson.span, |block| block.span);
    let base = ["casimir", "casimir_J", "casimir_of_J"].into_iter().find(|base| {
        !is_taken(base) && (1..=casimirs.len()).all(|k| !is_taken(&format!("{base}{k}")))
    });
    let base = base.unwrap_or("casimir of J");
    let quantity = |(k, casimir): (usize, &Casimir)| {
        let (indices, member_indices) = indices(casimir, layout);
        Quantity {
            name: if casimirs.len() == 1 { base.to_string() } else { format!("{base}{}", k + 1) },
            span,
            functional: casimir.functional(span),
            shape: Shape::Scalar,
            indices,
            member_indices,
            members: casimir.parts.len(),
            components: vec![Component { offset: 0, multiplicity: 1.0 }],
            depends: expression::STATE,
        }
    };
    casimirs.iter().enumerate().map(quantity).collect()
}

/// Names and values of the indices of a Casimir's members: those of the family whose members its
/// parts are, or a count.
fn indices(casimir: &Casimir, layout: &ModelLayout) -> (Vec<String>, Vec<i32>) {
    if casimir.parts.len() == 1 {
        return (Vec::new(), Vec::new());
    }
    let first = casimir.parts[0][0] as usize;
    let of = layout.families.iter().zip(&layout.place);
    let mut all = of.map(|(family, (_, from))| (family, *from));
    let family = all.find(|(family, from)| (*from..from + family.len()).contains(&first));
    let counted = || (vec!["k".to_string()], (1..=casimir.parts.len() as i32).collect());
    let Some((family, from)) = family.filter(|(family, _)| !family.indices.is_empty()) else {
        return counted();
    };
    let width = family.shape.len();
    let mut values = Vec::new();
    for part in &casimir.parts {
        let place = part[0] as usize;
        if !(from..from + family.len()).contains(&place) {
            return counted();
        }
        values.extend(family.member_indices((place - from) / width));
    }
    (family.indices.clone(), values)
}
