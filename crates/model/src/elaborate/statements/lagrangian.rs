//! A `lagrangian` in place of a Hamiltonian: the velocities that start it, the momenta and H that
//! follow from it, and primary constraints where its mass matrix is singular.

use super::CheckedFormulas;
use super::layout::ModelLayout;
use super::quantities::FormulaLowering;
use crate::elaborate::expression::{self, CheckedExpression, Depends, Ex, Kind, Storage};
use crate::elaborate::functions::Function;
use crate::elaborate::lower::{LARGEST_TEMPLATE, Purpose};
use crate::elaborate::model::{Component, Dynamics, Family, Following, Quantity, component_suffix};
use crate::elaborate::names::velocity_of;
use crate::elaborate::shape::Shape;
use crate::elaborate::{CheckedFormula, Elaborator, VariableRole};
use crate::functional::{Functional, Stretches, Term};
use crate::graph::op::Binary;
use crate::legendre::{Lagrangian, Legendre};
use crate::massless::TestBodies;
use crate::syntax::ast::{File, Name, Statement};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::syntax::statements::StatementKind;

/// Adds the initial velocity 0 of each coordinate of a file with a Lagrangian that has none. No name
/// in a file has a prime.
pub(in crate::elaborate) fn add_velocities(file: &mut File) {
    if !file.statements.iter().any(|s| s.kind == StatementKind::Lagrangian) {
        return;
    }
    let begins =
        |s: &&Statement| matches!(s.kind, StatementKind::Velocity | StatementKind::Momentum);
    let begun: Vec<String> =
        file.statements.iter().filter(begins).map(|s| s.reference.text.clone()).collect();
    let coordinates = file.statements.iter().filter(|s| s.kind == StatementKind::Coordinate);
    let at_rest = coordinates.filter(|s| !begun.contains(&s.name.text)).map(|s| {
        let name = Name { text: velocity_of(&s.name.text), span: s.name.span };
        let reference = s.name.clone();
        Statement { name, reference, ..Statement::new(StatementKind::Velocity, s.name.span) }
    });
    let at_rest: Vec<Statement> = at_rest.collect();
    file.statements.extend(at_rest);
}

/// Statement of the initial velocity of the coordinate whose [`velocity_of`] is `name`, if there is
/// one. A state at which a run begins gives it under that name.
pub(in crate::elaborate) fn velocity_named(file: &File, name: &str) -> Option<usize> {
    let of =
        |s: &Statement| s.kind == StatementKind::Velocity && velocity_of(&s.reference.text) == name;
    file.statements.iter().position(of)
}

impl Elaborator<'_> {
    /// Statement of the Lagrangian, if the motion follows from one.
    pub(super) fn lagrangian(&self) -> Option<usize> {
        self.hamiltonian.filter(|&s| self.statement(s).kind == StatementKind::Lagrangian)
    }

    /// Reports momenta beside a Lagrangian, which makes them.
    pub(super) fn no_momenta_beside_a_lagrangian(&mut self) {
        let Some(lagrangian) = self.lagrangian() else { return };
        let place = self.statement(lagrangian).name.span;
        for statement in self.statements.iter().filter(|s| s.kind == StatementKind::Momentum) {
            let Name { text, span } = &statement.name;
            let of = &statement.reference.text;
            let message = format!("momentum '{text}' beside a Lagrangian");
            let help = format!(
                "leave it out: the momentum is p_{of}, and `velocity v of {of} = …` gives the start"
            );
            let finding = Diagnostic::error(message, *span, "the Lagrangian gives the momenta");
            self.report(finding.help(help).related(place, "this"));
        }
    }

    /// `H` of a model with a Lagrangian: p·q' − L.
    pub(in crate::elaborate) fn energy(&mut self, lagrangian: usize, span: Span) -> Option<Ex> {
        let scope = self.definition_scope(lagrangian);
        let l = self.within(scope, |this| this.known_value(lagrangian, span))?;
        let mut terms = Vec::new();
        for number in 0..self.variables.len() {
            let VariableRole::Momentum { of, .. } = self.variables[number].role else { continue };
            let family = self.variables[number].family.clone()?;
            let depth = self.scope.locals.len();
            let set = self.bind_members(&family.indices, &family, span);
            self.scope.locals.truncate(depth);
            let member = |storage| {
                CheckedExpression::new(Kind::Member(storage, set.members()), family.shape, span)
            };
            let p = member(Storage::Variable(number, expression::MOMENTUM));
            let velocity = member(Storage::Velocity(of));
            let product = match family.shape {
                Shape::Scalar => Kind::Binary(Binary::Mul, p, velocity),
                _ => Kind::Function(Function::Dot, vec![p, velocity]),
            };
            let mut term = CheckedExpression::new(product, Shape::Scalar, span);
            if !set.ranges.is_empty() {
                term = CheckedExpression::new(Kind::Sum(set, term), Shape::Scalar, span);
            }
            terms.push((false, term));
        }
        terms.push((true, l));
        let e = CheckedExpression::new(Kind::Add(terms), Shape::Scalar, span);
        self.check_use(&e, "H", span)?;
        Some(e)
    }

    /// The primary constraints of a Lagrangian, which nothing must contradict.
    pub(super) fn primary_constraints(
        &self,
        legendre: &Legendre,
        formulas: &CheckedFormulas,
        places: &ModelLayout,
        lowering: &mut FormulaLowering,
    ) -> Vec<Quantity> {
        let momenta = places
            .order
            .iter()
            .filter(|&&v| matches!(self.variables[v].role, VariableRole::Momentum { .. }));
        let momenta = momenta.map(|&v| (&places.families[v], places.place[v].1));
        let explicit = formulas.hamiltonian.as_ref().map_or(0, |l| l.depends);
        let primary = primary_constraints(legendre, explicit, momenta, places.degrees);
        lowering.findings.extend(demand_no_velocities(formulas, &primary).err());
        primary
    }
}

/// The motion by a Lagrangian, and all else that follows from it; without H, which is a part of the
/// motion.
pub(super) fn dynamics(
    (l, formulas): (&Ex, &CheckedFormulas),
    places: &ModelLayout,
    numbers: (&[f64], &[f64]),
    lowering: &mut FormulaLowering,
) -> (Option<Dynamics>, Option<Legendre>) {
    let legendre = legendre((l, formulas), places, numbers, lowering);
    let Some(mut legendre) = legendre else { return (None, None) };
    let hamiltonian = std::mem::take(&mut legendre.hamiltonian);
    (Some(Dynamics::Hamiltonian(hamiltonian, l.span)), Some(legendre))
}

/// The Legendre transform of a Lagrangian; `None` if there is none.
fn legendre(
    (l, formulas): (&Ex, &CheckedFormulas),
    places: &ModelLayout,
    (initial, parameters): (&[f64], &[f64]),
    lowering: &mut FormulaLowering,
) -> Option<Legendre> {
    // The velocities stand in the places of the momenta.
    lowering.context.following =
        Following { velocities: places.degrees, ..lowering.context.following };
    let functional = lowering.lower_single(Purpose::Motion, l)?;
    // H divides by the masses of test bodies, whatever they are.
    let mut parameters = parameters.to_vec();
    let name = |place| places.parameter_name(place);
    let constraints = match parameters.contains(&0.0) {
        true => lowering.without_findings(|lowering| {
            lowering.quantities(Purpose::Other, formulas.constraints.iter()).unwrap_or_default()
        }),
        false => Vec::new(),
    };
    let constraints: Vec<_> = constraints.iter().map(|constraint| &constraint.functional).collect();
    let numbers = (&parameters[..], &name as &dyn Fn(usize) -> String);
    let found = TestBodies::of_lagrangian((&functional, &constraints), places.degrees, numbers);
    if let Some(bodies) = found {
        bodies.masses().for_each(|place| parameters[place] = 1.0);
    }
    let lagrangian = Lagrangian {
        functional: &functional,
        span: l.span,
        degrees: places.degrees,
        initial,
        parameters: &parameters,
        largest: LARGEST_TEMPLATE,
    };
    lagrangian.transform().map_err(|finding| lowering.findings.push(finding)).ok()
}

/// The primary constraints: for each component of a momentum one family, of the members that have
/// no mass there. `momenta` gives their families and first places in the state.
fn primary_constraints<'f>(
    legendre: &Legendre,
    of_lagrangian: Depends,
    momenta: impl Iterator<Item = (&'f Family, usize)>,
    degrees: usize,
) -> Vec<Quantity> {
    let mut quantities = Vec::new();
    for (family, first) in momenta {
        let width = family.shape.len();
        for offset in 0..width {
            let place = |member: usize| first - degrees + member * width + offset;
            let is_constrained = |&member: &usize| legendre.constrained[place(member)];
            let members: Vec<usize> = (0..family.members()).filter(is_constrained).collect();
            if members.is_empty() {
                continue;
            }
            let outputs: Vec<usize> = members.iter().map(|&member| place(member)).collect();
            quantities.push(Quantity {
                name: family.name.clone() + &component_suffix(family.shape, offset),
                span: family.span,
                functional: selected(&legendre.primary, &outputs),
                shape: Shape::Scalar,
                indices: family.indices.clone(),
                member_indices: members.iter().flat_map(|&m| family.member_indices(m)).collect(),
                members: members.len(),
                components: vec![Component { offset: 0, multiplicity: 1.0 }],
                depends: of_lagrangian & !expression::VELOCITY | expression::MOMENTUM,
            });
        }
    }
    quantities
}

/// Some outputs of a functional of single outputs, increasing, in their order.
fn selected(functional: &Functional, outputs: &[usize]) -> Functional {
    let select = |term: &Term| {
        let mut table = Stretches::new(term.table.width());
        for row in term.table.each() {
            if let Ok(output) = outputs.binary_search(&(row.last() as usize)) {
                let entries = row.iter().take(term.slots.len()).chain([output as u32]);
                table.push(&entries.collect::<Vec<u32>>());
            }
        }
        Term { table, ..term.clone() }
    };
    let terms = functional.terms.iter().map(select).filter(|term| term.rows() > 0);
    Functional { outputs: outputs.len(), terms: terms.collect() }
}

/// Refuses what primary constraints leave no meaning: velocities that no momentum determines.
///
/// # Errors
/// The first force or rolling constraint that reads them.
fn demand_no_velocities(
    formulas: &CheckedFormulas,
    primary: &[Quantity],
) -> Result<(), Diagnostic> {
    let Some(first) = primary.first() else { return Ok(()) };
    let of_forces = formulas.forces.iter().map(|force| &force.quantity);
    let moves = first.depends & expression::TIME != 0;
    let reads = |f: &&CheckedFormula| f.value.depends & expression::VELOCITY != 0 || moves;
    match of_forces.chain(&formulas.rollings).find(reads) {
        None => Ok(()),
        Some(formula) => {
            let name = &formula.name;
            let message = format!(
                "'{}' does not go with a Lagrangian whose mass matrix is singular, as of {}",
                name.text, first.name
            );
            let label = if moves { "the Lagrangian moves with time" } else { "reads a velocity" };
            Err(Diagnostic::error(message, name.span, label)
                .help("give every coordinate a mass, however small, or write a force of q and p"))
        }
    }
}
