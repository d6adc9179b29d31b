//! Assembly of the model from checked formulas: places in the state, parameter and initial values,
//! lowered formulas.

use super::forces::{energy_balance, forces};
use super::layout::ModelLayout;
use super::quantities::FormulaLowering;
use super::rolling::rollings;
use super::{CheckedFormulas, StateDerivative, cutoff, lagrangian, massless, poisson};
use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::expression::{self, Draw, Ex};
use crate::elaborate::lower::{Context, LoweredCutoff, LoweredFormula, Purpose};
use crate::elaborate::model::start::{Moving, Start, StartTarget, Velocity};
use crate::elaborate::model::{
    self, Dynamics, Family, Following, Knots, Measured, Model, Parameter, Quantity, Role, Rolling,
    Table, Variable,
};
use crate::elaborate::shape::Shape;
use crate::elaborate::statements::replace::Given;
use crate::elaborate::velocity;
use crate::elaborate::{CheckedFormula, Elaborator, GivenValue, VariableRole};
use crate::functional::{Functional, Term};
use crate::poisson::Poisson;
use crate::syntax::ast::Name;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::syntax::statements::StatementKind;
use std::ops::Range;
use std::sync::Arc;

/// Start of the first trajectory while it is put together.
struct FirstStart<'a> {
    start: Start,
    /// Inputs of the formulas: the trajectory's number and its draws.
    inputs: Vec<f64>,
    draw: &'a mut dyn FnMut(Draw) -> f64,
    /// Parameter values; those of parameters that have not been evaluated are 0.
    values: Vec<f64>,
    /// The initial state.
    state: Vec<f64>,
    /// Values that are not finite.
    findings: Vec<Diagnostic>,
}

impl FirstStart<'_> {
    /// Lowers the formula of a start and draws its random numbers.
    fn lower(
        &mut self,
        lowering: &mut FormulaLowering,
        set: &IndexSet,
        e: &Ex,
    ) -> Option<LoweredFormula> {
        let lowered = lowering.lower(Purpose::Other, set, e, &mut self.start.draws)?;
        let new = &self.start.draws[self.inputs.len() - 1..];
        self.inputs.extend(new.iter().map(|&which| (self.draw)(which)));
        Some(lowered)
    }

    /// Puts the numbers of those values that are `given` to a family, whose first component is
    /// `place`, in the place of its own.
    fn give<'g>(
        &mut self,
        given: impl Iterator<Item = &'g Given<'g>>,
        target: StartTarget,
        family: &Family,
        place: usize,
    ) {
        let mut taken: Vec<(Range<usize>, Span)> = Vec::new();
        for &Given { selection, value: GivenValue { name, first, varies, .. }, number, .. } in given
        {
            let selected = match selected(family, selection, (name, first.as_deref())) {
                Ok(selected) => selected,
                Err(finding) => {
                    self.findings.push(finding);
                    continue;
                }
            };
            let overlaps =
                |other: &Range<usize>| other.start < selected.end && selected.start < other.end;
            if let Some((_, before)) = taken.iter().find(|(other, _)| overlaps(other)) {
                let message = format!("numbers of '{}' are given twice", family.name);
                let finding = Diagnostic::error(message, name.span, "second time");
                self.findings.push(finding.related(*before, "first time"));
                continue;
            }
            taken.push((selected.clone(), name.span));
            let all = match target {
                StartTarget::Parameter => &mut self.values,
                StartTarget::Initial => &mut self.state,
            };
            let (len, range) = (all.len(), place + selected.start..place + selected.end);
            if let Some(first) = first {
                all[range.clone()].copy_from_slice(first);
                self.demand_finite(first, &format!("'{}'", name.text), name.span);
            }
            self.start.keep_given(target, (&name.text, number, *varies), range, len);
        }
    }

    /// Reports the first of `numbers` that is not finite, as a value of `what`.
    fn demand_finite(&mut self, numbers: &[f64], what: &str, span: Span) {
        if let Some(bad) = numbers.iter().find(|v| !v.is_finite()) {
            let message = format!("{what} is {bad}");
            self.findings.push(Diagnostic::error(message, span, "not a finite number"));
        }
    }

    /// Judges the terms that compare distances; the first `moving` of them move the state. The
    /// formulas of their cut-offs are kept.
    fn judge_cutoffs(
        &mut self,
        cutoffs: &[LoweredCutoff],
        moving: usize,
        findings: &mut Vec<Diagnostic>,
    ) {
        for (number, LoweredCutoff { cutoff, span, of_pairs }) in cutoffs.iter().enumerate() {
            // Quantities that are only recorded move nothing.
            let moves = number < moving && *of_pairs;
            let judged = cutoff::judged(cutoff, *span, moves, &self.state, &self.values);
            let Some((formula, finding)) = judged else { continue };
            self.start.keep_cutoff(formula);
            // Terms of one sum have one finding.
            findings.extend(finding.filter(|finding| !findings.contains(finding)));
        }
    }
}

/// Components of a family that `selection` selects; `first` are their numbers, if given.
///
/// # Errors
/// If there are none such, or they are not as many.
fn selected(
    family: &Family,
    selection: &str,
    (name, first): (&Name, Option<&[f64]>),
) -> Result<Range<usize>, Diagnostic> {
    let selected = family.selection(selection, name.span)?;
    match first {
        Some(first) if first.len() != selected.len() => {
            let (want, have) = (selected.len(), first.len());
            let message = format!("'{}' has {want} numbers, and {have} are given", name.text);
            let label = format!("{want} for each trajectory");
            Err(Diagnostic::error(message, name.span, label))
        }
        _ => Ok(selected),
    }
}

impl Elaborator<'_> {
    /// The model of a file without mistakes. `draw` gives the random numbers of the first
    /// trajectory.
    pub(super) fn assemble(
        &mut self,
        formulas: &CheckedFormulas,
        draw: &mut dyn FnMut(Draw) -> f64,
    ) -> Option<Model> {
        let places = self.places(formulas)?;
        let tables: Vec<Table> = self.tables.iter().map(|t| t.table.clone()).collect();
        let context = self.context(&places, &tables);
        let mut lowering = FormulaLowering { context, findings: Vec::new(), cutoffs: Vec::new() };
        let mut first = FirstStart {
            start: Start::default(),
            inputs: vec![0.0],
            draw,
            values: vec![0.0; places.values],
            state: vec![0.0; places.dimension],
            findings: Vec::new(),
        };
        self.parameter_values(&places, &mut lowering, &mut first);
        lowering.context.parameter_values.clone_from(&first.values);
        self.initial_values(&places, &formulas.initial, &mut lowering, &mut first)?;
        let numbers = (&first.state[..], &first.values[..]);
        let poisson = match formulas.blocks.is_empty() {
            true => None,
            false => Some(poisson::poisson(&places, formulas, numbers, &mut lowering)),
        };
        let (mut dynamics, mut legendre) = match (&formulas.hamiltonian, self.lagrangian()) {
            (Some(l), Some(_)) => {
                lagrangian::dynamics((l, formulas), &places, numbers, &mut lowering)
            }
            _ => (dynamics(&places, formulas, poisson.as_ref(), &mut lowering), None),
        };
        let massless = dynamics.as_mut().and_then(|dynamics| {
            let numbers = (numbers.1, &first.start.parameters[..]);
            let found = massless::Found::new(dynamics, legendre.as_mut(), &places, numbers);
            found.map_err(|finding| lowering.findings.push(finding)).ok().flatten()
        });
        let stiff = formulas.stiff.as_ref().and_then(|e| lowering.lower_single(Purpose::Motion, e));
        let Conditions { mut constraints, rollings, mut integrals } =
            conditions(&places, formulas, dynamics.as_ref(), &mut lowering);
        if let (Some(Some(poisson)), Some(integrals)) = (&poisson, &mut integrals) {
            let found = self.casimirs(poisson, numbers, integrals);
            integrals.extend(poisson::quantities(&found, &places, poisson, &|name| {
                self.symbols.contains_key(name)
            }));
        }
        if let (Some(legendre), Some(all)) = (&legendre, &mut constraints) {
            all.extend(self.primary_constraints(legendre, formulas, &places, &mut lowering));
        }
        // What follows the state has its place behind the multipliers, which are counted now.
        let known_constraints = constraints.as_deref().unwrap_or(&[]);
        let multipliers = model::multipliers(known_constraints, places.dimension);
        let following = Following::new(known_constraints, places.dimension, places.degrees);
        let mut lowering = FormulaLowering {
            context: Context { multipliers, following, ..lowering.context },
            ..lowering
        };
        let forces = forces(formulas, places.degrees, &mut lowering);
        let moving = lowering.cutoffs.len();
        let known = |c: &&CheckedFormula| {
            constraints.is_some() || c.value.depends & expression::MULTIPLIER == 0
        };
        let observables =
            lowering.quantities(Purpose::Motion, formulas.observables.iter().filter(known));
        let measures = formulas.measures.iter();
        let measures: Vec<Option<Measured>> =
            measures.map(|measure| lowering.measure(measure, &first.values)).collect();
        let events = formulas.events.iter();
        let events: Vec<Option<_>> = events.map(|e| lowering.event(e, &first.values)).collect();
        let drawings = formulas.drawings.iter();
        let drawings: Vec<Option<_>> = drawings.map(|d| lowering.drawing(d)).collect();
        let run = formulas.run.iter();
        let run: Vec<Option<_>> = run.map(|d| lowering.run_default(d, &first.values)).collect();
        let FormulaLowering { mut findings, cutoffs, .. } = lowering;
        first.judge_cutoffs(&cutoffs, moving, &mut findings);
        self.diagnostics.append(&mut first.findings);
        self.diagnostics.extend(findings);
        let moves = |h: &Ex| h.depends & expression::TIME != 0;
        let mut model = Model {
            t0: 0.0,
            reversed: false,
            variables: self.model_variables(&places, formulas),
            parameter_values: first.values,
            initial: first.state,
            start: first.start,
            dynamics: dynamics?,
            poisson: poisson.flatten().map(Arc::new),
            forces: forces?,
            stiff,
            constraints: constraints?,
            rollings: rollings?,
            integrals: integrals?,
            observables: observables?,
            measures: measures.into_iter().collect::<Option<_>>()?,
            events: events.into_iter().collect::<Option<_>>()?,
            drawings: drawings.into_iter().collect::<Option<_>>()?,
            run: run.into_iter().collect::<Option<_>>()?,
            units: formulas.units.clone().map(Arc::new),
            knots: self.known_knots(),
            sizes: self.known_sizes(),
            explicit_time: formulas.hamiltonian.as_ref().is_some_and(moves),
            penalty: None,
            heat_bath: None,
            redundancy: None,
            lagrangian: None,
            massless: None,
            parameters: places.parameters,
        };
        if let Some(found) = massless {
            found.settle(&mut model).map_err(|finding| self.diagnostics.push(finding)).ok()?;
        }
        let velocities = self.velocities(&places.order, &model);
        model.lagrangian = legendre.map(|legendre| {
            let velocities = model.initial[places.degrees..2 * places.degrees].to_vec();
            Arc::new(Moving { momenta: legendre.momenta, velocities })
        });
        if let Err(d) = velocity::start_moving(&mut model, &velocities) {
            self.diagnostics.push(d);
        }
        model.start.keep_velocities(velocities, places.dimension);
        Some(model)
    }

    /// Knots of interpolations over the time, each once.
    fn known_knots(&self) -> Vec<Knots> {
        let mut known: Vec<Knots> = Vec::new();
        for knots in &self.knots {
            if !known.contains(knots) {
                known.push(knots.clone());
            }
        }
        known
    }

    /// Names and values of the sizes, in the order of their names.
    fn known_sizes(&self) -> Vec<(String, i64)> {
        let known = self.sizes.iter().filter_map(|(&number, &value)| {
            Some((self.statement(number).name.text.clone(), value?))
        });
        let mut sizes: Vec<_> = known.collect();
        sizes.sort();
        sizes
    }

    fn context<'c>(&'c self, places: &'c ModelLayout, tables: &'c [Table]) -> Context<'c> {
        Context {
            variables: places
                .families
                .iter()
                .zip(&places.place)
                .map(|(f, &(_, first))| (f, first))
                .collect(),
            parameters: places.parameters.iter().map(|p| (&p.family, p.first)).collect(),
            multipliers: Vec::new(),
            following: Following::default(),
            parameter_values: Vec::new(),
            tables,
            index_names: &self.index_names,
        }
    }

    /// Evaluates the parameters, each after those that it uses.
    fn parameter_values(
        &self,
        places: &ModelLayout,
        lowering: &mut FormulaLowering,
        first: &mut FirstStart,
    ) {
        for &next in &self.parameter_order {
            let entry = &self.parameters[next];
            let Some(value) = entry.value.as_ref() else { continue };
            let Some(l) = first.lower(lowering, &entry.ranges, value) else { continue };
            let Parameter { family, first: place } = &places.parameters[next];
            if !family.is_empty() {
                let numbers = l.functional.evaluate(0.0, &first.inputs, &first.values);
                first.values[*place..place + numbers.len()].copy_from_slice(&numbers);
                first.demand_finite(&numbers, &format!("parameter '{}'", family.name), value.span);
                let (target, len) = (StartTarget::Parameter, places.values);
                first.start.keep(target, family, *place, len, l.functional);
            }
            first.give(self.given_to(entry.statement), StartTarget::Parameter, family, *place);
        }
    }

    /// Values of a statement that are given as numbers.
    fn given_to(&self, statement: usize) -> impl Iterator<Item = &Given<'_>> {
        self.given.iter().filter(move |given| given.statement == statement)
    }

    /// Evaluates the initial values; `None` if a variable has none.
    fn initial_values(
        &self,
        places: &ModelLayout,
        formulas: &[Option<(IndexSet, Ex)>],
        lowering: &mut FormulaLowering,
        first: &mut FirstStart,
    ) -> Option<()> {
        for (v, formula) in formulas.iter().enumerate() {
            let (ranges, e) = formula.as_ref()?;
            let (family, place) = (&places.families[v], places.place[v].1);
            let numbers = match e.value() {
                Some(number) if !family.is_empty() => vec![number; family.len()],
                _ => {
                    let Some(l) = first.lower(lowering, ranges, e) else { continue };
                    if family.is_empty() {
                        continue;
                    }
                    let numbers = l.functional.evaluate(0.0, &first.inputs, &first.values);
                    let (target, len) = (StartTarget::Initial, places.dimension);
                    first.start.keep(target, family, place, len, l.functional);
                    numbers
                }
            };
            let what = format!("the initial value of '{}'", family.name);
            first.demand_finite(&numbers, &what, e.span);
            first.state[place..place + numbers.len()].copy_from_slice(&numbers);
            let given = self.given_to(self.variables[v].statement);
            first.give(given, StartTarget::Initial, family, place);
        }
        Some(())
    }

    fn model_variables(&self, places: &ModelLayout, formulas: &CheckedFormulas) -> Vec<Variable> {
        let variable = |&v: &usize| {
            let entry = &self.variables[v];
            let role = match entry.role {
                VariableRole::Coordinate => Role::Coordinate,
                VariableRole::State => Role::State,
                VariableRole::Momentum { of, .. } => Role::Momentum(places.place[of].0),
            };
            let initial_span = formulas.initial[v].as_ref().map_or(entry.span, |(_, e)| e.span);
            let derivative = formulas.derivatives.iter().find(|derivative| derivative.state == v);
            let rate_span = derivative.map_or(entry.span, |derivative| derivative.value.span);
            Variable {
                family: places.families[v].clone(),
                role,
                first: places.place[v].1,
                initial_span,
                rate_span,
            }
        };
        let mut variables: Vec<Variable> = places.order.iter().map(variable).collect();
        variables.extend(places.work.map(|first| self.work(first)));
        variables
    }

    /// The variable for the work of the forces, at its place. No name in a file has spaces.
    fn work(&self, first: usize) -> Variable {
        let span = self.statements.iter().find(|s| s.kind == StatementKind::Force);
        let span = span.map_or(Span::default(), |statement| statement.span);
        let family = Family {
            name: "work of the forces".to_string(),
            span,
            indices: Vec::new(),
            bounds: Vec::new(),
            shape: Shape::Scalar,
        };
        Variable { family, role: Role::Work, first, initial_span: span, rate_span: span }
    }

    /// Initial velocities. `order` gives the file's numbers of the model's variables.
    fn velocities(&self, order: &[usize], model: &Model) -> Vec<Velocity> {
        let moving = order.iter().zip(&model.variables).filter(|(v, variable)| {
            matches!(self.variables[**v].role, VariableRole::Momentum { velocity: true, .. })
                && !variable.family.is_empty()
        });
        let velocity = |(&v, Variable { family, first, .. }): (&usize, &Variable)| Velocity {
            name: family.name.clone(),
            first: *first,
            value: model.initial[*first..first + family.len()].to_vec(),
            span: self.statements[self.variables[v].statement].span,
        };
        moving.map(velocity).collect()
    }
}

/// What a motion meets and keeps, as far as it can be lowered.
struct Conditions {
    /// Constraints, the rolling ones behind the others.
    constraints: Option<Vec<Quantity>>,
    rollings: Option<Vec<Rolling>>,
    /// Integrals, with the balance of the energy where forces act.
    integrals: Option<Vec<Quantity>>,
}

fn conditions(
    places: &ModelLayout,
    formulas: &CheckedFormulas,
    dynamics: Option<&Dynamics>,
    lowering: &mut FormulaLowering,
) -> Conditions {
    let mut constraints = lowering.quantities(Purpose::Other, formulas.constraints.iter());
    let sizes = (places.dimension, places.degrees);
    let stated = constraints.as_deref().unwrap_or(&[]);
    let rolled = rollings(formulas, (dynamics, stated), sizes, lowering);
    let rollings = rolled.and_then(|(quantities, rollings)| {
        constraints.as_mut()?.extend(quantities);
        Some(rollings)
    });
    let mut integrals = lowering.quantities(Purpose::Integral, formulas.integrals.iter());
    let works = rollings.iter().flatten().any(|rolling| !rolling.is_homogeneous);
    if let (Some(list), Some(work), Some(Dynamics::Hamiltonian(h, span)), false) =
        (&mut integrals, places.work, dynamics, works)
    {
        list.push(energy_balance(h, work, *span));
    }
    Conditions { constraints, rollings, integrals }
}

/// The Hamiltonian, or the derivatives of all states as one functional.
fn dynamics(
    places: &ModelLayout,
    formulas: &CheckedFormulas,
    poisson: Option<&Option<Poisson>>,
    lowering: &mut FormulaLowering,
) -> Option<Dynamics> {
    if let Some(poisson) = poisson {
        return Some(Dynamics::Field(poisson::field(poisson.as_ref()?, places, lowering)?));
    }
    if let Some(h) = &formulas.hamiltonian {
        return Some(Dynamics::Hamiltonian(lowering.lower_single(Purpose::Motion, h)?, h.span));
    }
    let mut whole = Functional { outputs: places.dimension, terms: Vec::new() };
    for StateDerivative { state, set, value } in &formulas.derivatives {
        let Some(lowered) = lowering.lower_fixed(Purpose::Motion, set, value) else { continue };
        let moved = |term: Term| term.with_outputs_moved(places.place[*state].1 as u32);
        whole.terms.extend(lowered.functional.terms.into_iter().map(moved));
    }
    Some(Dynamics::Field(whole))
}
