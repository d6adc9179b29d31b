//! Generalised forces: what each acts on, and its formula.

use super::quantities::FormulaLowering;
use super::{CheckedForce, CheckedFormulas};
use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind, Storage};
use crate::elaborate::lower::Purpose;
use crate::elaborate::model::{Component, ENERGY_BALANCE, Force, Quantity};
use crate::elaborate::names::{FamilyMember, Scope, Symbol};
use crate::elaborate::shape::Shape;
use crate::elaborate::{CheckedFormula, Elaborator};
use crate::functional::{Functional, Stretches, Term};
use crate::graph::{Expression, Input};
use crate::syntax::ast::{self, ExprKind, Statement};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

impl Elaborator<'_> {
    /// A force, with the coordinate that it acts on.
    pub(super) fn force(&mut self, number: usize) -> Option<CheckedForce> {
        let Statement { name, family, values, .. } = self.statement(number);
        let [on, value] = &values[..] else { return None };
        if let Some(poisson) = self.poisson() {
            let message = format!("force '{}' beside a Poisson matrix", name.text);
            let finding = Diagnostic::error(message, name.span, "the motion is x' = J ∇H alone");
            let help = "write the field itself, `x' = EXPR` for every state, without the Hamiltonian and the Poisson matrix";
            return self.refuse(finding.help(help).related(poisson, "the matrix J"));
        }
        let inputs = expression::FORMULA | expression::VELOCITY;
        self.scope = Scope::new(inputs, "a force");
        let set = self.index_set(family);
        let (set, on) = self.acted_on(on, set?)?;
        let checked = self.value_of(number, value)?;
        let is_zero = checked.value() == Some(0.0);
        if checked.shape != on.shape && !is_zero {
            let message = format!(
                "force '{}' has the shape {}, and it acts on something in {}",
                name.text, checked.shape, on.shape
            );
            let label = format!("this has the shape {}", checked.shape);
            let finding = Diagnostic::error(message, value.span, label);
            return self.refuse(finding.related(on.span, on.shape.to_string()));
        }
        let value = match is_zero {
            true => CheckedExpression::zero(on.shape, value.span),
            false => checked,
        };
        Some(CheckedForce { quantity: CheckedFormula { name: name.clone(), set, value }, on })
    }

    /// Coordinate that a force acts on. A family without its indices stands for all its members: the
    /// force is then one for each, and families over the same ranges stand for its member.
    fn acted_on(&mut self, on: &ast::Expr, mut set: IndexSet) -> Option<(IndexSet, Ex)> {
        let checked = match self.whole_family(on) {
            Some((number, span)) => {
                let family = self.variables[number].family.clone()?;
                if !set.ranges.is_empty() {
                    let names = family.indices.join(", ");
                    let message = format!("the force has indices, and '{}' has none", family.name);
                    let finding = Diagnostic::error(message, span, "which member?");
                    return self.refuse(finding.help(format!("write {}[{names}]", family.name)));
                }
                let depth = self.scope.locals.len();
                set = self.bind_members(&family.indices, &family, span);
                let bound = self.scope.locals.split_off(depth);
                let indices: Vec<Ex> = bound.into_iter().map(|(_, index)| index).collect();
                let bounds = family.bounds.clone();
                self.scope.member = Some(FamilyMember { bounds, indices: indices.clone() });
                let storage = Storage::Variable(number, expression::POSITION);
                CheckedExpression::new(Kind::Member(storage, indices), family.shape, span)
            }
            None => self.value(on)?,
        };
        if !is_coordinate(&checked) {
            let finding = Diagnostic::error("a force acts on a coordinate", on.span, "is none");
            let help =
                "write force NAME on q = EXPR, on q.x, or force NAME[i in 1..n] on q[i] = EXPR";
            return self.refuse(finding.help(help));
        }
        Some((set, checked))
    }

    /// The coordinate that a name without indices stands for, if it is a family.
    fn whole_family(&self, on: &ast::Expr) -> Option<(usize, Span)> {
        let ExprKind::Name(name) = &on.kind else { return None };
        let Symbol::Variable(number) = self.symbols.get(name)?.symbol else { return None };
        let entry = &self.variables[number];
        let is_family = entry.family.as_ref().is_some_and(|family| !family.indices.is_empty());
        (is_family && entry.depends == expression::POSITION).then_some((number, on.span))
    }
}

/// True for a coordinate, a member of a family of them, or a component of one.
fn is_coordinate(e: &Ex) -> bool {
    match &e.kind {
        Kind::Member(Storage::Variable(_, own), _) => *own == expression::POSITION,
        Kind::Component(of, _) => is_coordinate(of),
        _ => false,
    }
}

/// The forces of a model with `degrees` positions; `None` if one cannot be lowered.
pub(super) fn forces(
    formulas: &CheckedFormulas,
    degrees: usize,
    lowering: &mut FormulaLowering,
) -> Option<Vec<Force>> {
    let mut lower = |force: &CheckedForce| -> Option<Force> {
        let CheckedFormula { name, set, value } = &force.quantity;
        let quantity = lowering.lower_fixed(Purpose::Motion, set, value)?.functional;
        let on = lowering.lower_fixed(Purpose::Other, set, &force.on)?.functional;
        Some(Force {
            name: name.text.clone(),
            span: name.span,
            functional: acting(&quantity, &places(&on), degrees),
            depends: value.depends,
        })
    };
    let all: Vec<Option<Force>> = formulas.forces.iter().map(&mut lower).collect();
    all.into_iter().collect()
}

/// State component that each output of a functional of bare components is.
pub(super) fn places(of: &Functional) -> Vec<u32> {
    let mut places = vec![0; of.outputs];
    for term in &of.terms {
        for row in term.table.each() {
            for (root, output) in term.roots.iter().zip(row.last() as usize..) {
                if let Expression::Input(Input::Slot(slot)) = term.graph.expression(*root) {
                    places[output] = row.at(slot as usize);
                }
            }
        }
    }
    places
}

/// The functional with each output at its place among `degrees` positions.
fn acting(functional: &Functional, places: &[u32], degrees: usize) -> Functional {
    let moved = |term: &Term| {
        let mut table = Stretches::new(term.table.width());
        for row in term.table.each() {
            let output = places[row.last() as usize];
            let count = term.slots.len();
            table.push(&row.iter().take(count).chain([output]).collect::<Vec<u32>>());
        }
        Term { table, ..term.clone() }
    };
    Functional { outputs: degrees, terms: functional.terms.iter().map(moved).collect() }
}

/// The integral that a model with forces has: H less the work of the forces since the start, which
/// stands at `work` in the state.
pub(super) fn energy_balance(hamiltonian: &Functional, work: usize, span: Span) -> Quantity {
    let mut less = Functional::components(work..work + 1, span);
    for term in &mut less.terms {
        term.roots = term.roots.iter().map(|&root| term.graph.neg(root)).collect();
        term.spans = vec![span; term.graph.len()].into();
    }
    let mut functional = hamiltonian.clone();
    functional.terms.append(&mut less.terms);
    balance(functional, span)
}

/// The integral by which the energy of a model on which forces act is balanced.
pub(super) fn balance(functional: Functional, span: Span) -> Quantity {
    Quantity {
        name: ENERGY_BALANCE.to_string(),
        span,
        functional,
        shape: Shape::Scalar,
        indices: Vec::new(),
        member_indices: Vec::new(),
        members: 1,
        components: vec![Component { offset: 0, multiplicity: 1.0 }],
        depends: expression::POSITION | expression::MOMENTUM,
    }
}
