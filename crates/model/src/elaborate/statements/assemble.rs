//! Assembly of the model from checked formulas: places in the state, parameter and initial values,
//! lowered formulas.

use super::symmetry::is_symmetric;
use super::{CheckedMeasure, Formulas, cutoff};
use crate::elaborate::expression::{self, CheckedRanges, Draw, Ex};
use crate::elaborate::lower::{self, Context, Lowered, LoweredCutoff, MOST_NUMBERS, Purpose};
use crate::elaborate::model::{
    self, Component, Dynamics, Family, Measured, Model, Parameter, Quantity, Role, Table, Variable,
};
use crate::elaborate::shape::Shape;
use crate::elaborate::start::{Start, Target};
use crate::elaborate::statistic::{FORMS, Statistic};
use crate::elaborate::velocity::{self, Velocity};
use crate::elaborate::{Checked, Elaborator, VariableRole};
use crate::functional::{Functional, Term};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

/// Places of all parameters and variables.
struct Places {
    /// Parameters in the file's order.
    parameters: Vec<Parameter>,
    /// Number of parameter values.
    values: usize,
    /// Families of the variables, in the file's order.
    families: Vec<Family>,
    /// Variables in the model's order: positions, then momenta in the order of their coordinates;
    /// or states.
    order: Vec<usize>,
    /// Number in the model and first component, for each variable of the file.
    place: Vec<(usize, usize)>,
    dimension: usize,
}

/// Lowers the formulas of one model and collects the findings.
struct Lowering<'a> {
    context: Context<'a>,
    findings: Vec<Diagnostic>,
    /// Terms that compare distances.
    cutoffs: Vec<LoweredCutoff>,
}

impl Lowering<'_> {
    /// Lowers a formula. Its draws are added to `draws`.
    fn lower(
        &mut self,
        purpose: Purpose,
        ranges: &CheckedRanges,
        e: &Ex,
        draws: &mut Vec<Draw>,
    ) -> Option<Lowered> {
        let lowered = lower::lower(&self.context, purpose, ranges, e, draws);
        let mut lowered = lowered.map_err(|finding| self.findings.push(finding)).ok()?;
        self.cutoffs.append(&mut lowered.cutoffs);
        Some(lowered)
    }

    /// Lowers a formula that draws nothing: only starts do.
    fn lower_fixed(&mut self, purpose: Purpose, ranges: &CheckedRanges, e: &Ex) -> Option<Lowered> {
        self.lower(purpose, ranges, e, &mut Vec::new())
    }

    /// Lowers every formula of `list`; `None` if one cannot be lowered.
    fn quantities<'c>(
        &mut self,
        purpose: Purpose,
        list: impl Iterator<Item = &'c Checked>,
    ) -> Option<Vec<Quantity>> {
        let lowered: Vec<Option<Quantity>> = list
            .map(|c| {
                self.lower_fixed(purpose, &c.ranges, &c.value)
                    .map(|lowered| quantity(c, lowered, &self.context))
            })
            .collect();
        lowered.into_iter().collect()
    }

    /// Lowers a measure, whose numbers are constants.
    fn measure(&mut self, measure: &CheckedMeasure, parameters: &[f64]) -> Option<Measured> {
        let CheckedMeasure { quantity: checked, statistic: word, numbers, every, from } = measure;
        let lowered = self.lower_fixed(Purpose::Motion, &checked.ranges, &checked.value)?;
        let mut given = Vec::new();
        let mut constant = |e: &Ex| -> Option<f64> {
            let functional =
                self.lower_fixed(Purpose::Other, &CheckedRanges::default(), e)?.functional;
            let number = functional.evaluate(0.0, &[], parameters)[0];
            given.push(functional);
            Some(number)
        };
        let numbers = numbers.iter().map(&mut constant).collect::<Option<Vec<f64>>>()?;
        let mut time = |e: &Option<Ex>| e.as_ref().map(&mut constant);
        let (every, from) = (time(every), time(from));
        let mut refuse = |message: String, span: Span, label: &str, help: &str| {
            self.findings.push(Diagnostic::error(message, span, label).help(help));
            None
        };
        let late = |time: &Option<Ex>| time.as_ref().map_or(word.span, |e| e.span);
        if let Some(Some(time)) =
            every.filter(|time| time.is_none_or(|time| !(time > 0.0 && time.is_finite())))
        {
            let message = format!("the time between two samples is {time}");
            return refuse(
                message,
                late(&measure.every),
                "not positive",
                "write every 0.1, for instance",
            );
        }
        if let Some(Some(time)) = from.filter(|time| time.is_none_or(|time| !time.is_finite())) {
            return refuse(
                format!("a measure begins at {time}"),
                late(&measure.from),
                "not a time",
                "write from 100",
            );
        }
        let statistic = match Statistic::new(&word.text, &numbers) {
            Ok(statistic) => statistic,
            Err(reason) => {
                return refuse(reason, word.span, "these numbers", &format!("write {FORMS}"));
            }
        };
        let quantity = quantity(checked, lowered, &self.context);
        if quantity.functional.outputs == 0 {
            let message =
                format!("measure '{}' is of nothing: its ranges are empty", quantity.name);
            return refuse(message, quantity.span, "no member", "check the ranges");
        }
        if matches!(statistic, Statistic::Distances { .. }) && quantity.members < 2 {
            let help = "write rdf(a in 1..N : r[a], b, bins)";
            let message = "distances are between members of a family".to_string();
            return refuse(message, word.span, "one member", help);
        }
        Some(Measured { quantity, statistic, every: every.flatten(), from: from.flatten(), given })
    }
}

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
        lowering: &mut Lowering,
        ranges: &CheckedRanges,
        e: &Ex,
    ) -> Option<Lowered> {
        let lowered = lowering.lower(Purpose::Other, ranges, e, &mut self.start.draws)?;
        let new = &self.start.draws[self.inputs.len() - 1..];
        self.inputs.extend(new.iter().map(|&which| (self.draw)(which)));
        Some(lowered)
    }

    /// Reports the first of `numbers` that is not finite, as a value of `what`.
    fn demand_finite(&mut self, numbers: &[f64], what: &str, span: Span) {
        if let Some(bad) = numbers.iter().find(|v| !v.is_finite()) {
            self.findings.push(Diagnostic::error(
                format!("{what} is {bad}"),
                span,
                "not a finite number",
            ));
        }
    }
}

impl Elaborator<'_> {
    /// The model of a file without mistakes. `draw` gives the random numbers of the first
    /// trajectory.
    pub(super) fn assemble(
        &mut self,
        formulas: &Formulas,
        draw: &mut dyn FnMut(Draw) -> f64,
    ) -> Option<Model> {
        let places = self.places()?;
        let tables: Vec<Table> = self.tables.iter().map(|t| t.table.clone()).collect();
        let mut lowering = Lowering {
            context: self.context(&places, &tables),
            findings: Vec::new(),
            cutoffs: Vec::new(),
        };
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
        initial_values(&places, &formulas.initial, &mut lowering, &mut first)?;
        let dynamics = dynamics(&places, formulas, &mut lowering);
        let fixed = |lowering: &mut Lowering, e: &Ex| {
            lowering.lower_fixed(Purpose::Motion, &CheckedRanges::default(), e)
        };
        let stiff =
            formulas.stiff.as_ref().and_then(|e| fixed(&mut lowering, e)).map(|l| l.functional);
        let constraints = lowering.quantities(Purpose::Other, formulas.constraints.iter());
        let integrals = lowering.quantities(Purpose::Integral, formulas.integrals.iter());
        // Observables may use the multipliers of the constraints, whose members are known now.
        let multipliers =
            model::multipliers(constraints.as_deref().unwrap_or(&[]), places.dimension);
        let moving = lowering.cutoffs.len();
        let mut lowering =
            Lowering { context: Context { multipliers, ..lowering.context }, ..lowering };
        let known =
            |c: &&Checked| constraints.is_some() || c.value.depends & expression::MULTIPLIER == 0;
        let observables =
            lowering.quantities(Purpose::Motion, formulas.observables.iter().filter(known));
        let measures: Vec<Option<Measured>> = formulas
            .measures
            .iter()
            .map(|measure| lowering.measure(measure, &first.values))
            .collect();
        let Lowering { mut findings, cutoffs, .. } = lowering;
        for (number, LoweredCutoff { cutoff, span, of_pairs }) in cutoffs.iter().enumerate() {
            // Quantities that are only recorded move nothing.
            let moves = number < moving && *of_pairs;
            let judged = cutoff::judged(cutoff, *span, moves, &first.state, &first.values);
            let Some((formula, finding)) = judged else { continue };
            first.start.keep_cutoff(formula);
            // Terms of one sum have one finding.
            findings.extend(finding.filter(|finding| !findings.contains(finding)));
        }
        self.diagnostics.append(&mut first.findings);
        self.diagnostics.extend(findings);
        let mut model = Model {
            t0: 0.0,
            variables: self.model_variables(&places, formulas),
            parameter_values: first.values,
            initial: first.state,
            start: first.start,
            dynamics: dynamics?,
            stiff,
            constraints: constraints?,
            integrals: integrals?,
            observables: observables?,
            measures: measures.into_iter().collect::<Option<_>>()?,
            sizes: self
                .sizes
                .iter()
                .filter_map(|(&s, &v)| v.map(|v| (self.statement_name(s).0, v)))
                .collect(),
            explicit_time: formulas
                .hamiltonian
                .as_ref()
                .is_some_and(|h| h.depends & expression::TIME != 0),
            penalty: None,
            heat_bath: None,
            parameters: places.parameters,
        };
        model.sizes.sort();
        let velocities = self.velocities(&places.order, &model);
        if let Err(d) = velocity::start_moving(&mut model, &velocities) {
            self.diagnostics.push(d);
        }
        model.start.keep_velocities(velocities, places.dimension);
        Some(model)
    }

    fn places(&mut self) -> Option<Places> {
        let mut parameters = Vec::new();
        let mut values = 0;
        for entry in &self.parameters {
            let family = entry.family.clone()?;
            let (len, span) = (family.len(), family.span);
            parameters.push(Parameter { family, first: values });
            values += len;
            if values > MOST_NUMBERS {
                return self.refuse(lower::too_many_numbers(values, span));
            }
        }
        let order = self.model_order();
        let mut place = vec![(0, 0); self.variables.len()];
        let mut dimension = 0;
        for (number, &v) in order.iter().enumerate() {
            place[v] = (number, dimension);
            let family = self.variables[v].family.as_ref()?;
            dimension += family.len();
            if dimension > MOST_NUMBERS {
                return self.refuse(lower::too_many_numbers(dimension, family.span));
            }
        }
        if dimension == 0 {
            let span = self.variables[order[0]].span;
            return self.refuse(Diagnostic::error(
                "the model has no variables: every family is empty",
                span,
                "an empty range",
            ));
        }
        let families = self.variables.iter().map(|v| v.family.clone()).collect::<Option<_>>()?;
        Some(Places { parameters, values, families, order, place, dimension })
    }

    /// Variables in the order of the model.
    fn model_order(&self) -> Vec<usize> {
        let all = 0..self.variables.len();
        let is_momentum =
            |v: &usize| matches!(self.variables[*v].role, VariableRole::Momentum { .. });
        let mut order: Vec<usize> = all.clone().filter(|v| !is_momentum(v)).collect();
        for k in 0..order.len() {
            let is_conjugate = |m: &usize| matches!(self.variables[*m].role, VariableRole::Momentum { of, .. } if of == order[k]);
            let momentum = all.clone().find(is_conjugate);
            order.extend(momentum);
        }
        order
    }

    fn context<'c>(&'c self, places: &'c Places, tables: &'c [Table]) -> Context<'c> {
        Context {
            variables: places
                .families
                .iter()
                .zip(&places.place)
                .map(|(f, &(_, first))| (f, first))
                .collect(),
            parameters: places.parameters.iter().map(|p| (&p.family, p.first)).collect(),
            multipliers: Vec::new(),
            parameter_values: Vec::new(),
            tables,
            index_names: &self.index_names,
        }
    }

    /// Evaluates the parameters, each after those that it uses.
    fn parameter_values(&self, places: &Places, lowering: &mut Lowering, first: &mut FirstStart) {
        for &next in &self.parameter_order {
            let entry = &self.parameters[next];
            let Some(value) = entry.value.as_ref() else { continue };
            let Some(l) = first.lower(lowering, &entry.ranges, value) else { continue };
            let Parameter { family, first: place } = &places.parameters[next];
            if family.is_empty() {
                continue;
            }
            let numbers = l.functional.evaluate(0.0, &first.inputs, &first.values);
            first.values[*place..place + numbers.len()].copy_from_slice(&numbers);
            first.demand_finite(&numbers, &format!("parameter '{}'", family.name), value.span);
            first.start.keep(Target::Parameter, family, *place, places.values, l.functional);
        }
    }

    fn model_variables(&self, places: &Places, formulas: &Formulas) -> Vec<Variable> {
        let variable = |&v: &usize| {
            let entry = &self.variables[v];
            let role = match entry.role {
                VariableRole::Coordinate => Role::Coordinate,
                VariableRole::State => Role::State,
                VariableRole::Momentum { of, .. } => Role::Momentum(places.place[of].0),
            };
            let initial_span = formulas.initial[v].as_ref().map_or(entry.span, |(_, e)| e.span);
            let rate_span = formulas
                .derivatives
                .iter()
                .find(|(of, ..)| *of == v)
                .map_or(entry.span, |(_, _, e)| e.span);
            Variable {
                family: places.families[v].clone(),
                role,
                first: places.place[v].1,
                initial_span,
                rate_span,
            }
        };
        places.order.iter().map(variable).collect()
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
            span: self.file.statements[self.variables[v].statement].span,
        };
        moving.map(velocity).collect()
    }
}

/// Evaluates the initial values; `None` if a variable has none.
fn initial_values(
    places: &Places,
    formulas: &[Option<(CheckedRanges, Ex)>],
    lowering: &mut Lowering,
    first: &mut FirstStart,
) -> Option<()> {
    for (v, formula) in formulas.iter().enumerate() {
        let (ranges, e) = formula.as_ref()?;
        let family = &places.families[v];
        let place = places.place[v].1;
        let numbers = match e.value() {
            Some(number) if !family.is_empty() => vec![number; family.len()],
            _ => {
                let Some(l) = first.lower(lowering, ranges, e) else { continue };
                if family.is_empty() {
                    continue;
                }
                let numbers = l.functional.evaluate(0.0, &first.inputs, &first.values);
                first.start.keep(Target::Initial, family, place, places.dimension, l.functional);
                numbers
            }
        };
        first.demand_finite(&numbers, &format!("the initial value of '{}'", family.name), e.span);
        first.state[place..place + numbers.len()].copy_from_slice(&numbers);
    }
    Some(())
}

/// The Hamiltonian, or the derivatives of all states as one functional.
fn dynamics(places: &Places, formulas: &Formulas, lowering: &mut Lowering) -> Option<Dynamics> {
    if let Some(h) = &formulas.hamiltonian {
        let lowered = lowering.lower_fixed(Purpose::Motion, &CheckedRanges::default(), h)?;
        return Some(Dynamics::Hamiltonian(lowered.functional, h.span));
    }
    let mut whole = Functional { outputs: places.dimension, terms: Vec::new() };
    for (v, ranges, e) in &formulas.derivatives {
        let Some(lowered) = lowering.lower_fixed(Purpose::Motion, ranges, e) else { continue };
        let moved = |term: Term| term.with_outputs_moved(places.place[*v].1 as u32);
        whole.terms.extend(lowered.functional.terms.into_iter().map(moved));
    }
    Some(Dynamics::Field(whole))
}

/// A lowered formula as a quantity of the model.
fn quantity(checked: &Checked, lowered: Lowered, context: &Context) -> Quantity {
    let shape = checked.value.shape;
    Quantity {
        name: checked.name.text.clone(),
        span: checked.name.span,
        components: components(shape, &lowered.functional, context),
        functional: lowered.functional,
        shape,
        indices: checked
            .ranges
            .ranges
            .iter()
            .map(|r| context.index_names[r.index as usize].clone())
            .collect(),
        member_indices: lowered.members,
        members: lowered.count,
        depends: checked.value.depends,
    }
}

/// Independent components: a symmetric matrix has one for each pair of equal entries.
fn components(shape: Shape, functional: &Functional, context: &Context) -> Vec<Component> {
    let all = (0..shape.len()).map(|offset| Component { offset, multiplicity: 1.0 }).collect();
    let Shape::Matrix(k, l) = shape else { return all };
    if functional.terms.is_empty() {
        return all;
    }
    let dimension =
        context.variables.iter().map(|(family, first)| first + family.len()).max().unwrap_or(0);
    let symmetric = k == l && is_symmetric(functional, k, dimension, &context.parameter_values);
    let is_zero = |offset: usize| {
        functional
            .terms
            .iter()
            .all(|t| t.roots.len() == shape.len() && t.graph.is_zero(t.roots[offset]))
    };
    let keep = |offset: usize| {
        let (i, j) = (offset / l, offset % l);
        match (symmetric, i.cmp(&j)) {
            _ if is_zero(offset) => None,
            (false, _) | (true, std::cmp::Ordering::Equal) => Some(1.0),
            (true, std::cmp::Ordering::Less) => Some(2.0),
            (true, std::cmp::Ordering::Greater) => None,
        }
    };
    (0..shape.len())
        .filter_map(|offset| keep(offset).map(|multiplicity| Component { offset, multiplicity }))
        .collect()
}
