//! What has to be caught before a run starts: numbers that do not exist, a start off the constraint set,
//! redundant constraints, integrals that are not.

use crate::elaborate::expression::{MULTIPLIER, TIME};
use crate::elaborate::model::{Dynamics, Model, Quantity};
use crate::functional::{Source, Template, Term, work_len};
use crate::graph::aligned::Aligned;
use crate::graph::calculus::Gradient;
use crate::graph::interpret::{Backend, Interpreter, Kernel};
use crate::graph::tape::Tape;
use crate::graph::{Graph, Input, Node};
use crate::points::Points;
use crate::rows::{self, RowField};
use crate::scales::{Scales, in_units, with_sizes};
use crate::syntax::diagnostic::{Diagnostic, Severity};
use crate::syntax::span::Span;
use crate::treatment::structure::{self, Formulas, Irregular, Kind, Probe, Structure, evaluate, evaluate_rows};
use crate::treatment::unrolled::{LARGEST_UNROLLED, TooLarge, unroll};
use crate::treatment::{Field, InvariantGroup, InvariantKind, dirac, watch_only};
use holonome_linear::gram::{Gram, Row, dot};
use std::fmt::{self, Display};

/// A residual below this fraction of the constraint's terms is rounding in the numbers a user types.
const TYPED: f64 = 1e-9;

/// A claimed integral whose rate of change is below this fraction of the terms that should cancel in it is one.
const CONSTANT: f64 = 1e-8;

/// Rounding of a rate beside the largest that its components could have: some ten thousand roundings of a double.
const ROUNDED: f64 = 1e-11;

/// A model looked at with its numbers.
#[derive(Clone, Debug)]
pub struct Examined {
    /// Findings: errors, and warnings about observables.
    pub diagnostics: Vec<Diagnostic>,
    /// Redundant constraints: an error for methods that solve for multipliers, a warning otherwise.
    pub redundant: Vec<Diagnostic>,
    /// The field with its invariants, where there is one and it is written out.
    pub field: Option<(Field, Structure)>,
    /// The same row by row, where the model is so large that it is run like that.
    pub rows: Option<RowField>,
    /// Why there is no field, where the model is too large to be written out.
    pub too_large: Option<TooLarge>,
    /// The initial state does not meet a constraint or a hidden constraint: an error unless a run starts off the
    /// set on purpose.
    pub off_set: Vec<Diagnostic>,
    /// Claimed invariants that vary along the flow: integrals, and constraints of a field that leaves them.
    pub varying: Vec<String>,
    /// The findings that say so.
    pub unverified: Vec<Diagnostic>,
    /// Invariants that are constant on the constraint set only, and whose V grows somewhere off it.
    pub weak_integrals: Vec<String>,
}

impl Examined {
    /// Whether nothing stands against a run.
    pub fn is_sound(&self) -> bool {
        self.diagnostics.iter().all(|d| d.severity != Severity::Error)
    }

    /// Takes these claims, which have turned out to be none, out of what is held.
    pub fn leave_out(&mut self, names: &[String]) {
        for name in names {
            if !self.varying.contains(name) {
                self.varying.push(name.clone());
            }
        }
        self.leave_out_unverified();
    }

    /// Takes the claims that are none out of what is held: they are watched only.
    pub fn leave_out_unverified(&mut self) {
        if let Some((field, _)) = &mut self.field {
            field.watch_only(&self.varying);
        }
        if let Some(field) = &mut self.rows {
            watch_only(&mut field.groups, &self.varying, &mut |_| {});
        }
    }
}

/// Times in which claims are tested where no run is known: those of a run by default.
pub const SPAN: (f64, f64) = (0.0, 100.0);

/// [`examine_during`] for a run over [`SPAN`].
pub fn examine(model: &Model) -> Examined {
    examine_during(model, SPAN)
}

/// Examines `model` at its initial state, and its claims at random points of the constraint set and random times of a run
/// from `span.0` to `span.1`.
pub fn examine_during(model: &Model, span: (f64, f64)) -> Examined {
    let mut found = Examined {
        diagnostics: Vec::new(),
        redundant: Vec::new(),
        field: None,
        rows: None,
        too_large: None,
        off_set: Vec::new(),
        varying: Vec::new(),
        unverified: Vec::new(),
        weak_integrals: Vec::new(),
    };
    finite_values(model, &mut found.diagnostics);
    let undefined = !found.is_sound();
    let off = constraints_met(model, &mut found.off_set);
    if undefined {
        return found; // derivatives of what does not exist say nothing
    }
    if rows::suits(model, LARGEST_UNROLLED) {
        examine_rows(model, &off, span, &mut found);
        return found;
    }
    let unrolled = match unroll(model) {
        Ok(unrolled) => unrolled,
        Err(too_large) => {
            found.too_large = Some(too_large);
            return found;
        }
    };
    let gradients: Vec<Gradient> = unrolled.constraints.iter().flatten().map(|s| s.gradient.clone()).collect();
    let rows = evaluate_rows(
        &unrolled.graph,
        &gradients.iter().collect::<Vec<_>>(),
        model.t0,
        &model.initial,
        &model.parameter_values,
    );
    if model.is_hamiltonian() {
        redundancy(model, &rows, off.is_empty(), &mut found.redundant);
    }
    let extended = match dirac::extend(model, unrolled) {
        Ok(extended) => extended,
        Err(reason) => {
            // Redundant constraints make the brackets singular: one mistake, one finding.
            if found.redundant.is_empty() && off.is_empty() {
                found.diagnostics.push(irregular(model, &reason));
            }
            return found;
        }
    };
    hidden_met(model, &extended.0, &extended.1, &off, &mut found.off_set);
    if found.is_sound() {
        let field = &extended.0;
        let values = evaluate(&field.graph, &field.field, model.t0, &model.initial, &model.parameter_values);
        field_is_finite(model, &values, &mut found.diagnostics);
    }
    if found.is_sound() && found.redundant.is_empty() && found.off_set.is_empty() {
        integrals_hold(model, &extended.0, span, &mut found);
    }
    found.field = Some(extended);
    found
}

/// Examines a model that is run row by row.
fn examine_rows(model: &Model, off: &[String], span: (f64, f64), found: &mut Examined) {
    let field = RowField::new(model);
    let at = |program: &rows::RowProgram| program.evaluate(model.t0, &model.initial, &model.parameter_values);
    field_is_finite(model, &at(&field.field), &mut found.diagnostics);
    if !model.constraints.is_empty() {
        let entries = at(&field.jacobian);
        let row = |i: usize| -> Row {
            let range = field.row_start[i]..field.row_start[i + 1];
            field.column[range.clone()].iter().copied().zip(entries[range].iter().copied()).collect()
        };
        let gradients: Vec<Row> = (0..field.constraints / 2).map(row).collect();
        redundancy(model, &gradients, off.is_empty(), &mut found.redundant);
        row_hidden_met(model, &field, &at(&field.invariants), &row, off, &mut found.off_set);
    }
    if found.is_sound() && found.redundant.is_empty() && found.off_set.is_empty() && !model.integrals.is_empty() {
        rows_hold(model, &field, span, found);
    }
    found.rows = Some(field);
}

/// [`integrals_hold`] for a model that is run row by row.
fn rows_hold(model: &Model, field: &RowField, span: (f64, f64), found: &mut Examined) {
    // Newton's method towards random points of the set takes a factorisation in each of its steps.
    const MOST_CONSTRAINTS: usize = 2_000;
    // Hidden constraints that move have rates which rows do not know.
    if let Some(moving) = model.constraints.iter().find(|c| c.depends & TIME != 0) {
        let names: Vec<String> = model.integrals.iter().map(|integral| format!("'{}'", integral.name)).collect();
        let message = format!(
            "no test of integrals: whether {} are constant is not known before a run, as constraint '{}' moves and the model is too large to be written out",
            names.join(", "),
            moving.name
        );
        let label = "not tested";
        found.diagnostics.push(
            Diagnostic::warning(message, model.integrals[0].span, label)
                .help("check a smaller model of the same form first: --set replaces sizes"),
        );
        return;
    }
    let parameters = &model.parameter_values;
    let explicit = field.explicit_rates(model);
    let scales = Scales::new(model);
    let units = scales.units(&model.initial);
    let row = |entries: &[f64], i: usize| -> Row {
        let range = field.row_start[i]..field.row_start[i + 1];
        field.column[range.clone()].iter().copied().zip(entries[range].iter().copied()).collect()
    };
    let constraints = |t: f64, x: &[f64]| {
        let mut values = field.invariants.evaluate(t, x, parameters);
        values.truncate(field.constraints);
        let entries = field.jacobian.evaluate(t, x, parameters);
        (values, (0..field.constraints).map(|i| row(&entries, i)).collect::<Vec<Row>>())
    };
    let rates = |(t, x): &(f64, Vec<f64>)| -> Vec<Rate> {
        let at = |program: &rows::RowProgram| program.evaluate(*t, x, parameters);
        let (mut v, values, explicit, entries) =
            (at(&field.field), at(&field.invariants), at(&explicit), at(&field.jacobian));
        let half = field.constraints / 2;
        if half > 0 {
            let (g, h): (Vec<Row>, Vec<Row>) = (0..half).map(|i| (row(&entries, i), row(&entries, half + i))).unzip();
            add_constraint_forces(&g, &h, model.degrees(), &mut v);
        }
        let speeds = Speeds::new(model, &units, v);
        let rate = |i: usize| Rate::new(values[i], explicit[i], row(&entries, i).into_iter(), &speeds);
        (0..field.count()).map(rate).collect()
    };
    // Near the start, from where Newton's method takes a few steps.
    let nearer = |x: &[f64]| -> Vec<f64> { model.initial.iter().zip(x).map(|(a, b)| a + 0.1 * (b - a)).collect() };
    // The positions of the start with other momenta, which takes a factorisation or two.
    let degrees = model.degrees();
    let tangent = |t: f64, x: &[f64]| -> Option<Vec<f64>> {
        let mut y = [&model.initial[..degrees], &x[degrees..]].concat();
        for _ in 0..2 {
            let (values, rows) = constraints(t, &y);
            let (g, h) = rows.split_at(field.constraints / 2);
            take_off_forces(g, h, &values[g.len()..], degrees, &mut y);
        }
        y.iter().all(|y| y.is_finite()).then_some(y)
    };
    let onto = |t: f64, x: &[f64]| match field.constraints {
        0 => Some(x.to_vec()),
        1..=MOST_CONSTRAINTS => structure::onto_zeros(&constraints, t, &nearer(x), &units),
        _ => tangent(t, x),
    };
    let count = if field.constraints == 0 { POINTS } else { 2 };
    let (points, ambient) = looked_at(model, &scales, (span, count), &onto);
    let at = |list: &[(f64, Vec<f64>)]| -> Vec<(f64, Vec<Rate>)> { list.iter().map(|p| (p.0, rates(p))).collect() };
    // The forces off the set are not those of the Dirac extension.
    let (points, ambient) = (at(&points), if field.constraints == 0 { at(&ambient) } else { Vec::new() });
    for group in field.groups.iter().filter(|g| g.kind == InvariantKind::Integral) {
        let of_group = |all: &[(f64, Vec<Rate>)]| -> Vec<(f64, Vec<Rate>)> {
            let rows = |rates: &[Rate]| group.members.iter().flatten().map(|&(row, _)| rates[row]).collect();
            all.iter().map(|(t, rates)| (*t, rows(rates))).collect()
        };
        judge(model, group, &of_group(&points), &of_group(&ambient), found);
    }
}

/// Adds −Gᵀλ to ṗ, where A λ = h' X_H with A = h_p Gᵀ: on the set the motion stays in it.
fn add_constraint_forces(g: &[Row], h: &[Row], degrees: usize, v: &mut [f64]) {
    let right: Vec<f64> = h.iter().map(|row| row.iter().map(|&(i, d)| d * v[i as usize]).sum()).collect();
    take_off_forces(g, h, &right, degrees, v);
}

/// Takes Gᵀλ with A λ = `right` off the momenta, or their rates, in `v`.
fn take_off_forces(g: &[Row], h: &[Row], right: &[f64], degrees: usize, v: &mut [f64]) {
    let n = degrees as u32;
    let over_momenta = |row: &Row| -> Row { row.iter().map(|&(i, d)| (i + n, d)).collect() };
    let forces: Vec<Row> = g.iter().map(over_momenta).collect();
    let lambda = Gram::of_products(h, &forces).solve(right);
    for (row, lambda) in forces.iter().zip(lambda) {
        row.iter().for_each(|&(i, d)| v[i as usize] -= lambda * d);
    }
}

/// [`hidden_met`] for a model that is run row by row: `values` are F at the initial state, `row` gives rows of DF.
fn row_hidden_met(
    model: &Model,
    field: &RowField,
    values: &[f64],
    row: &dyn Fn(usize) -> Row,
    off: &[String],
    out: &mut Vec<Diagnostic>,
) {
    let scale = Scales::new(model).sizes(&model.initial);
    for group in field.groups.iter().filter(|g| g.kind == InvariantKind::Hidden) {
        let Some(constraint) = model.constraints.iter().position(|q| q.name == group.name) else { continue };
        let missed = |row_number: usize| {
            let size = || row(row_number).iter().map(|&(i, d)| d.abs() * scale[i as usize]).sum::<f64>();
            values[row_number] != 0.0 && is_missed(values[row_number], size())
        };
        let rows = || group.members.iter().enumerate().flat_map(|(m, list)| list.iter().map(move |&(r, _)| (m, r)));
        // The first of the largest; the total order puts what is no number last.
        let missed = rows().rev().filter(|&(_, row_number)| missed(row_number));
        let worst = missed.max_by(|a, b| values[a.1].abs().total_cmp(&values[b.1].abs()));
        let Some((member, row_number)) = worst else { continue };
        let member = model.constraints[constraint].member_name(member);
        let residual = Residual::Hidden(VELOCITY_ALONG, values[row_number]);
        let reads = row(row_number).iter().map(|&(i, _)| i).collect();
        out.extend(hidden_missed(model, &Miss { constraint, member, residual, reads }, off));
    }
}

/// A number for a message: seven digits, in the form a person would write.
fn shown(value: f64) -> String {
    if (1e-3..1e6).contains(&value.abs()) { format!("{}", (value * 1e7).round() / 1e7) } else { format!("{value:.6e}") }
}

fn finite_values(model: &Model, out: &mut Vec<Diagnostic>) {
    if let Dynamics::Hamiltonian(h, span) = &model.dynamics {
        let value = h.evaluate(model.t0, &model.initial, &model.parameter_values)[0];
        if !value.is_finite() {
            out.push(
                Diagnostic::error(
                    format!("H is {value} at the initial state: not a finite number"),
                    *span,
                    "cannot be evaluated there",
                )
                .help("look for a division by zero, or a root or logarithm of a negative number"),
            );
        }
    }
    let lists =
        [(&model.constraints, "constraint"), (&model.integrals, "integral"), (&model.observables, "observable")];
    for (list, what) in lists {
        // Multipliers are known where a method has found them.
        for quantity in list.iter().filter(|quantity| quantity.depends & MULTIPLIER == 0) {
            let values = quantity.functional.evaluate(model.t0, &model.initial, &model.parameter_values);
            if let Some(at) = values.iter().position(|v| !v.is_finite()) {
                let name = quantity.member_name(at / quantity.shape.len());
                let message = format!("{what} '{name}' is {} at the initial state: not a finite number", values[at]);
                // An observable is only recorded: a gap in it stops nobody.
                let diagnostic = if what == "observable" {
                    Diagnostic::warning(message, quantity.span, "recorded as NaN there")
                } else {
                    Diagnostic::error(message, quantity.span, "cannot be evaluated there")
                };
                out.push(related_initial(model, quantity, at, diagnostic));
            }
        }
    }
}

/// Adds the places of the initial values that an output reads.
fn related_initial(model: &Model, quantity: &Quantity, output: usize, diagnostic: Diagnostic) -> Diagnostic {
    places(model, &quantity.functional.reads(output), diagnostic)
}

fn places(model: &Model, components: &[u32], mut diagnostic: Diagnostic) -> Diagnostic {
    for variable in &model.variables {
        let range = variable.first..variable.first + variable.family.len();
        if components.iter().any(|&c| range.contains(&(c as usize)))
            && !diagnostic.related.iter().any(|(s, _)| *s == variable.initial_span)
        {
            diagnostic =
                diagnostic.related(variable.initial_span, format!("the initial value of '{}'", variable.family.name));
        }
    }
    diagnostic
}

/// Reports every constraint that the initial state does not meet; returns their names.
fn constraints_met(model: &Model, out: &mut Vec<Diagnostic>) -> Vec<String> {
    let check = Constraints::new(model, &Interpreter);
    let mut off = Vec::new();
    check.misses(model, &model.parameter_values, &model.initial, &mut vec![0.0; check.work_len()], &mut |miss| {
        if miss.residual.is_undefined() {
            return; // reported already
        }
        let quantity = &model.constraints[miss.constraint];
        off.push(quantity.name.clone());
        let diagnostic =
            Diagnostic::error(format!("the initial state does not meet {miss}"), quantity.span, "not met at the start")
                .help("correct the initial values, or let --project-initial move them onto the constraint set");
        out.push(places(model, &miss.reads, diagnostic));
    });
    off
}

fn hidden_met(model: &Model, field: &Field, structure: &Structure, off: &[String], out: &mut Vec<Diagnostic>) {
    let check = HiddenConstraints::new(model, field, structure, &Interpreter);
    let mut work = vec![0.0; check.work_len(model)];
    let mut found = |miss: Miss| out.extend(hidden_missed(model, &miss, off));
    check.misses(model, &model.parameter_values, &model.initial, &mut work, &mut found);
}

fn hidden_missed(model: &Model, miss: &Miss, off: &[String]) -> Option<Diagnostic> {
    let quantity = &model.constraints[miss.constraint];
    if miss.residual.is_undefined() || off.contains(&quantity.name) {
        return None;
    }
    let diagnostic = Diagnostic::error(
        format!("the initial state does not meet {miss}"),
        quantity.span,
        "its time derivative must vanish too",
    )
    .help("correct the initial momenta, or let --project-initial move them onto the constraint set");
    Some(places(model, &miss.reads, diagnostic))
}

/// A constraint that a state does not meet.
#[derive(Clone, Debug)]
pub struct Miss {
    /// Its number.
    pub constraint: usize,
    /// The name of the member that misses most.
    pub member: String,
    /// By how much.
    pub residual: Residual,
    /// The state components that it reads.
    pub reads: Vec<u32>,
}

/// By how much a constraint is missed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Residual {
    /// A scalar equation: left side minus right side.
    Difference(f64),
    /// A vector or matrix equation: the norm of that.
    Norm(f64),
    /// A hidden constraint, what it is, and its value.
    Hidden(&'static str, f64),
}

impl Residual {
    /// Its value.
    pub fn value(self) -> f64 {
        match self {
            Residual::Difference(value) | Residual::Norm(value) | Residual::Hidden(_, value) => value,
        }
    }

    fn is_undefined(self) -> bool {
        !self.value().is_finite()
    }
}

impl Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.member;
        match self.residual {
            Residual::Difference(v) => write!(f, "constraint '{name}': left side minus right side is {}", shown(v)),
            Residual::Norm(v) => write!(f, "constraint '{name}': its residual is {}", shown(v)),
            Residual::Hidden(formula, v) => {
                write!(f, "the hidden constraint of '{name}': {formula}, is {}", shown(v))
            }
        }
    }
}

/// The constraints of a model, compiled to be looked at in many states.
pub struct Constraints {
    /// Number and templates of those that are looked at; beside every value the size of its terms.
    list: Vec<(usize, Vec<Template>)>,
    scales: Scales,
    work: usize,
}

impl Constraints {
    /// All constraints of `model`.
    pub fn new(model: &Model, backend: &dyn Backend) -> Constraints {
        Constraints::of(model, (0..model.constraints.len()).collect(), backend)
    }

    /// Those that may be met in one trajectory of an ensemble and not in another.
    pub fn that_vary(model: &Model, backend: &dyn Backend) -> Constraints {
        let start = &model.start;
        let differs = |source, entry: u32| match source {
            Source::State => start.state.get(entry as usize) == Some(&true),
            Source::Parameter => start.parameters.get(entry as usize) == Some(&true),
            Source::Number => false,
        };
        let varies = |k: &usize| model.constraints[*k].functional.reads_marked(differs).contains(&true);
        Constraints::of(model, (0..model.constraints.len()).filter(varies).collect(), backend)
    }

    fn of(model: &Model, list: Vec<usize>, backend: &dyn Backend) -> Constraints {
        let template = |term: &Term| {
            let (graph, roots) = with_sizes(term);
            Template::new(&graph, &roots, 2 * term.slots.len(), backend)
        };
        let terms = |k: usize| &model.constraints[k].functional.terms;
        let list: Vec<(usize, Vec<Template>)> =
            list.into_iter().map(|k| (k, terms(k).iter().map(template).collect())).collect();
        let outputs = |k: usize| model.constraints[k].functional.outputs;
        let work = list.iter().map(|(k, templates)| 2 * outputs(*k) + work_len(templates)).max().unwrap_or(0);
        Constraints { list, scales: Scales::new(model), work: work + model.dimension() }
    }

    /// Scratch needed by [`Constraints::misses`], in numbers.
    pub fn work_len(&self) -> usize {
        self.work
    }

    /// Gives every constraint that x does not meet, or that is not a number there: an entry is met if it is small beside
    /// what cancels in it. Nothing is allocated where all are met.
    pub fn misses(&self, model: &Model, parameters: &[f64], x: &[f64], work: &mut [f64], found: &mut dyn FnMut(Miss)) {
        let (scale, work) = work.split_at_mut(x.len());
        self.scales.put(x, scale);
        for (constraint, templates) in &self.list {
            let quantity = &model.constraints[*constraint];
            let functional = &quantity.functional;
            let (values, work) = work.split_at_mut(functional.outputs);
            let (sizes, work) = work.split_at_mut(functional.outputs);
            values.fill(0.0);
            sizes.fill(0.0);
            for (term, template) in functional.terms.iter().zip(templates) {
                for (row, &first) in term.first_output.iter().enumerate() {
                    let both = template.row_beside(term, row, model.t0, (x, scale), parameters, work);
                    let (value, size) = both.split_at(term.roots.len());
                    let outputs = first as usize..first as usize + value.len();
                    values[outputs.clone()].iter_mut().zip(value).for_each(|(sum, v)| *sum += v);
                    sizes[outputs].iter_mut().zip(size).for_each(|(sum, v)| *sum += v);
                }
            }
            let width = quantity.shape.len();
            let entries = |member: usize| member * width..(member + 1) * width;
            let missed = |member: &usize| entries(*member).any(|k| is_missed(values[k], sizes[k]));
            let residual = |member: usize| values[entries(member)].iter().map(|v| v * v).sum::<f64>().sqrt();
            // The total order puts what is no number last.
            let missed = (0..quantity.members).filter(missed);
            let Some(worst) = missed.max_by(|&a, &b| residual(a).total_cmp(&residual(b))) else { continue };
            let output =
                entries(worst).max_by(|&a, &b| values[a].abs().total_cmp(&values[b].abs())).unwrap_or(worst * width);
            found(Miss {
                constraint: *constraint,
                member: quantity.member_name(worst),
                residual: match &values[entries(worst)] {
                    [difference] => Residual::Difference(*difference),
                    _ => Residual::Norm(residual(worst)),
                },
                reads: functional.reads(output),
            });
        }
    }
}

/// Whether a value is more than rounding in the numbers a user types, beside the size of the terms that should cancel.
fn is_missed(value: f64, size: f64) -> bool {
    // A size that is no number excuses nothing.
    value != 0.0 && (value.abs() > TYPED * size || value.is_nan() || size.is_nan())
}

const VELOCITY_ALONG: &str = "the velocity along the constraint's normal, G H_p + g_t";

/// The hidden constraints of a model, compiled to be looked at in many states.
pub struct HiddenConstraints {
    /// For each constraint that has one the rows of its members.
    list: Vec<(usize, Vec<Vec<usize>>)>,
    scales: Scales,
    /// The state components that each row reads.
    columns: Vec<Vec<u32>>,
    /// What they are.
    formula: &'static str,
    /// Of (x, the parameters that vary): the rows' values, then their gradients.
    kernel: Box<dyn Kernel>,
    bound: Aligned,
    varying: Vec<usize>,
}

impl HiddenConstraints {
    /// The hidden constraints of `model`, whose field and structure these are.
    pub fn new(model: &Model, field: &Field, structure: &Structure, backend: &dyn Backend) -> HiddenConstraints {
        let first = field.constraints / 2;
        let of_group = |group: &InvariantGroup| {
            let constraint = model.constraints.iter().position(|q| q.name == group.name)?;
            let rows = |member: &Vec<(usize, f64)>| member.iter().map(|&(row, _)| row - first).collect();
            Some((constraint, group.members.iter().map(rows).collect()))
        };
        let n = model.dimension();
        let varying: Vec<usize> = (0..model.start.parameters.len()).filter(|&k| model.start.parameters[k]).collect();
        let entries = structure.hidden.iter().flat_map(|h| h.gradient.iter().map(|&(_, node)| node));
        let nodes: Vec<Node> = structure.hidden.iter().map(|h| h.node).chain(entries).collect();
        let mut graph = Graph::new();
        let nodes = graph.instantiate(&field.graph, &nodes, |g, input| match input {
            Input::Parameter(k) => match varying.binary_search(&(k as usize)) {
                Ok(at) => g.state(n + at),
                Err(_) => g.input(input),
            },
            other => g.input(other),
        });
        let tape = Tape::new(&graph, &nodes, n + varying.len(), model.parameter_values.len());
        let kernel = backend.compile(&tape, 1).unwrap_or_else(|_| Box::new(Interpreter.program(&tape)));
        HiddenConstraints {
            list: field.groups.iter().filter(|g| g.kind == InvariantKind::Hidden).filter_map(of_group).collect(),
            scales: Scales::new(model),
            columns: structure.hidden.iter().map(|h| h.gradient.iter().map(|&(i, _)| i).collect()).collect(),
            formula: match (structure.kind, structure.hidden.iter().any(|h| h.tangency)) {
                (Kind::Holonomic, false) => VELOCITY_ALONG,
                (Kind::Holonomic, true) => "the momentum along the constraint's normal, G p",
                _ => "{g, H}",
            },
            bound: kernel.bind(&model.parameter_values),
            kernel,
            varying,
        }
    }

    /// Scratch needed by [`HiddenConstraints::misses`], in numbers, for states of `model`.
    pub fn work_len(&self, model: &Model) -> usize {
        2 * model.dimension() + self.varying.len() + self.kernel.outputs() + self.kernel.work_len()
    }

    /// Gives every hidden constraint that x does not meet, or that is not a number there. Nothing is allocated where
    /// all are met.
    pub fn misses(&self, model: &Model, parameters: &[f64], x: &[f64], work: &mut [f64], found: &mut dyn FnMut(Miss)) {
        let (scale, work) = work.split_at_mut(x.len());
        self.scales.put(x, scale);
        let (inputs, work) = work.split_at_mut(x.len() + self.varying.len());
        inputs[..x.len()].copy_from_slice(x);
        for (input, &k) in inputs[x.len()..].iter_mut().zip(&self.varying) {
            *input = parameters[k];
        }
        let (out, work) = work.split_at_mut(self.kernel.outputs());
        self.kernel.run(&self.bound, &[model.t0], inputs, out, work);
        let (values, mut entries) = out.split_at_mut(self.columns.len());
        // A row that is small beside Σ |∂h/∂x_i| times the size of x_i, the terms that should cancel, counts as 0.
        for (value, columns) in values.iter_mut().zip(&self.columns) {
            let (row, rest) = entries.split_at_mut(columns.len());
            entries = rest;
            let size: f64 = row.iter().zip(columns).map(|(d, &i)| d.abs() * scale[i as usize]).sum();
            if !is_missed(*value, size) {
                *value = 0.0;
            }
        }
        for (constraint, members) in &self.list {
            let rows = || members.iter().enumerate().flat_map(|(m, rows)| rows.iter().map(move |&row| (m, row)));
            // The first of the largest; the total order puts what is no number last.
            let worst = rows().rev().max_by(|a, b| values[a.1].abs().total_cmp(&values[b.1].abs()));
            let Some((member, row)) = worst.filter(|&(_, row)| values[row] != 0.0) else { continue };
            found(Miss {
                constraint: *constraint,
                member: model.constraints[*constraint].member_name(member),
                residual: Residual::Hidden(self.formula, values[row]),
                reads: self.columns[row].clone(),
            });
        }
    }
}

fn field_is_finite(model: &Model, values: &[f64], out: &mut Vec<Diagnostic>) {
    if let Some(at) = values.iter().position(|v| !v.is_finite()) {
        let variable = model
            .variables
            .iter()
            .find(|v| (v.first..v.first + v.family.len()).contains(&at))
            .expect("every component belongs to a variable");
        let message = format!(
            "the rate of change of '{}' is {} at the initial state: not a finite number",
            variable.family.name, values[at]
        );
        out.push(
            Diagnostic::error(message, variable.rate_span, "cannot start moving")
                .help("look for a division by zero, or a root or logarithm that cannot be differentiated there"),
        );
    }
}

/// Constraints whose gradients depend on those of the others.
fn redundancy(model: &Model, rows: &[Row], on_set: bool, out: &mut Vec<Diagnostic>) {
    if !on_set {
        return; // ranks mean little off the set
    }
    let owner: Vec<(usize, usize)> = model
        .constraints
        .iter()
        .enumerate()
        .flat_map(|(k, q)| (0..q.members).flat_map(move |m| std::iter::repeat_n((k, m), q.components.len())))
        .collect();
    let rows = in_units(rows, &Scales::new(model).units(&model.initial));
    // In their own order, the constraints of a tree fill the factor.
    if Gram::new(&rows, 0.0).dependent().is_empty() {
        return;
    }
    let gram = Gram::in_order(&rows);
    let mut named = Vec::new();
    for row in gram.dependent() {
        let (k, member) = owner[row];
        if named.contains(&k) {
            continue;
        }
        named.push(k);
        let quantity = &model.constraints[k];
        let name = quantity.member_name(member);
        let mut others: Vec<String> = Vec::new();
        for (other, _) in gram.combination(row) {
            let (k, member) = owner[other];
            let other = model.constraints[k].member_name(member);
            if other != name && !others.contains(&other) {
                others.push(other);
            }
        }
        let message = if others.is_empty() {
            format!("the gradient of constraint '{name}' vanishes on the constraint set (degenerate)")
        } else {
            format!(
                "constraint '{name}' is redundant: its gradient at the initial state is a combination of those of {}",
                others.join(", ")
            )
        };
        let mut diagnostic = Diagnostic::warning(message, quantity.span, "determines no multiplier of its own").help(
            "leave it out or write it another way; methods that solve for multipliers cannot treat it, penalties can",
        );
        for other in others {
            let base = other.split('[').next().unwrap_or(&other);
            if let Some(q) = model.constraints.iter().find(|q| q.name == base && q.name != quantity.name)
                && !diagnostic.related.iter().any(|(s, _)| *s == q.span)
            {
                diagnostic = diagnostic.related(q.span, "already says this");
            }
        }
        out.push(diagnostic);
    }
}

fn irregular(model: &Model, reason: &Irregular) -> Diagnostic {
    let span = model.constraints.first().map_or(Span::default(), |c| c.span);
    let (label, help) = match reason {
        Irregular::Mixed { .. } => (
            "first- and second-class constraints are mixed",
            "split the model: state the second-class pairs by themselves, or the coisotropic constraints by themselves",
        ),
        Irregular::Singular { .. } => (
            "no Dirac bracket",
            "a constraint that is linear in the momenta may need its partner, for example q.z = 0 beside p.z = 0",
        ),
    };
    let diagnostic = Diagnostic::error(reason.to_string(), span, label).help(help);
    model.constraints.iter().skip(1).fold(diagnostic, |d, c| d.related(c.span, "with this"))
}

/// An invariant at a point: its value, its rate of change along the field, the size of the terms that should cancel in
/// the rate, and the rate that is rounding.
#[derive(Clone, Copy)]
struct Rate {
    value: f64,
    rate: f64,
    size: f64,
    noise: f64,
}

impl Rate {
    /// From ∂I/∂t, the entries of DI, and the field.
    fn new(value: f64, explicit: f64, gradient: impl Iterator<Item = (u32, f64)>, field: &Speeds) -> Rate {
        let (mut rate, mut size, mut wide) = (explicit, explicit.abs(), 0.0);
        for (i, d) in gradient {
            let along = d * field.v[i as usize];
            rate += along;
            size += along.abs();
            wide += d.abs() * field.wide[i as usize];
        }
        Rate { value, rate, size, noise: CONSTANT * size + ROUNDED * wide }
    }

    fn varies(&self) -> bool {
        self.rate.is_finite() && self.rate.abs() > self.noise
    }
}

/// The field at a point, and beside each component what it could be: as large as others of its family, and as fast beside
/// its own size as the fastest family is. Terms that cancel inside the field leave a rounding of that.
struct Speeds {
    v: Vec<f64>,
    wide: Vec<f64>,
}

impl Speeds {
    fn new(model: &Model, units: &[f64], v: Vec<f64>) -> Speeds {
        let families = || model.variables.iter().map(|f| f.first..f.first + f.family.len());
        let largest = |v: &mut dyn Iterator<Item = f64>| v.fold(0.0f64, |s, v| s.max(v.abs()));
        let fastest = largest(&mut v.iter().zip(units).map(|(v, unit)| v / unit));
        let mut wide = vec![0.0; v.len()];
        for family in families() {
            let speed = largest(&mut v[family.clone()].iter().copied());
            let size = largest(&mut units[family.clone()].iter().copied());
            wide[family].fill(speed.max(fastest * size));
        }
        Speeds { v, wide }
    }
}

/// Random points of the constraint set at which claims are tested.
const POINTS: usize = 8;

/// A time and a state.
type Point = (f64, Vec<f64>);

/// Moves a state onto the set of a time, if that is found.
type Onto<'a> = &'a dyn Fn(f64, &[f64]) -> Option<Vec<f64>>;

/// Where claims are tested: points of the constraint set, the initial state first, and points off it, each at a random
/// time of the run. `onto` moves a point onto the set of its time.
fn looked_at(
    model: &Model,
    scales: &Scales,
    (span, count): ((f64, f64), usize),
    onto: Onto,
) -> (Vec<Point>, Vec<Point>) {
    let mut times = Points::new(0x71fe);
    let mut time = || span.0 + 0.5 * (1.0 + times.draw()) * (span.1 - span.0);
    let drawn = structure::points_around(scales, &model.initial, count, 0x1e57);
    let on_set = drawn.into_iter().map(|x| (time(), x)).filter_map(|(t, x)| Some((t, onto(t, &x)?)));
    let points = std::iter::once((span.0, model.initial.clone())).chain(on_set).collect();
    let ambient = structure::points_around(scales, &model.initial, 4, 0xa3b1);
    (points, ambient.into_iter().map(|x| (time(), x)).collect())
}

/// Finds the integrals (and the constraints of a state model) that the flow does not keep.
fn integrals_hold(model: &Model, field: &Field, span: (f64, f64), found: &mut Examined) {
    let claimed = |kind: InvariantKind| {
        kind == InvariantKind::Integral || kind == InvariantKind::Constraint && !model.is_hamiltonian()
    };
    // What a penalty watches in the place of the constraints is no claim.
    let claims = || field.groups.iter().filter(|g| claimed(g.kind) && !g.watched);
    if claims().next().is_none() {
        return;
    }
    let scales = Scales::new(model);
    let units = scales.units(&model.initial);
    let set = structure::set_probe(model, field);
    let onto = |t: f64, x: &[f64]| match field.constraints {
        0 => Some(x.to_vec()),
        _ => structure::onto_set(&set, t, x, &units),
    };
    let (points, ambient) = looked_at(model, &scales, (span, POINTS), &onto);
    for group in claims() {
        let rows: Vec<usize> = group.members.iter().flatten().map(|&(row, _)| row).collect();
        // X, the values and ∂I/∂t beside DI.
        let mut graph = field.graph.clone();
        let values: Vec<Node> = rows.iter().map(|&r| field.invariants[r]).collect();
        let explicit: Vec<Node> = match quantity_of(model, group).depends & TIME {
            0 => vec![graph.zero(); rows.len()],
            _ => values.iter().map(|&v| graph.time_derivative(v)).collect(),
        };
        let nodes = [field.field.clone(), values, explicit].concat();
        let gradients: Vec<&Gradient> = rows.iter().map(|&r| &field.jacobian[r]).collect();
        let probe = Probe::new(&graph, &nodes, &gradients, field.dimension, &model.parameter_values);
        let rates = |(t, x): &Point| -> (f64, Vec<Rate>) {
            let (mut v, jacobian) = probe.at(*t, x);
            let mut values = v.split_off(field.dimension);
            let explicit = values.split_off(rows.len());
            let speeds = Speeds::new(model, &units, v);
            let row = |(k, row): (usize, &Row)| Rate::new(values[k], explicit[k], row.iter().copied(), &speeds);
            (*t, jacobian.iter().enumerate().map(row).collect())
        };
        let [points, ambient] = [&points, &ambient].map(|list| list.iter().map(rates).collect::<Vec<_>>());
        judge(model, group, &points, &ambient, found);
    }
}

fn quantity_of<'a>(model: &'a Model, group: &InvariantGroup) -> &'a Quantity {
    let list = if group.kind == InvariantKind::Integral { &model.integrals } else { &model.constraints };
    list.iter().find(|q| q.name == group.name).expect("a group has its quantity")
}

/// Says of a group, from the rates of its rows at points of the set and elsewhere, whether the flow keeps it. Points
/// where the model has no value say nothing.
fn judge(
    model: &Model,
    group: &InvariantGroup,
    points: &[(f64, Vec<Rate>)],
    ambient: &[(f64, Vec<Rate>)],
    found: &mut Examined,
) {
    let all = points.iter().flat_map(|(t, rates)| rates.iter().map(move |rate| (*t, rate)));
    let worst = all.filter(|(_, r)| r.varies()).max_by(|a, b| a.1.rate.abs().total_cmp(&b.1.rate.abs()));
    // V = ½ Σ w (F − F₀)² may be constant although F is not: RᵀR = 1 of a rigid body off SO(3).
    let target = |k: usize| match group.kind {
        InvariantKind::Integral => points[0].1[k].value,
        _ => 0.0,
    };
    let potential_varies = |(_, rates): &(f64, Vec<Rate>)| {
        let (mut rate, mut noise) = (0.0, 0.0);
        for (k, (r, (_, weight))) in rates.iter().zip(group.members.iter().flatten()).enumerate() {
            let deviation = r.value - target(k);
            rate += weight * deviation * r.rate;
            noise += weight * deviation.abs() * r.noise;
        }
        rate.is_finite() && rate > noise
    };
    if let Some((t, rate)) = worst {
        let what = if group.kind == InvariantKind::Integral {
            ("integral", "is not a first integral")
        } else {
            ("constraint", "is not kept by the field")
        };
        let message = format!(
            "{} '{}' {}: at a random point and t = {} it changes at the rate {:.3e} ({:.1e} of the terms that should cancel in it)",
            what.0,
            group.name,
            what.1,
            shown(t),
            rate.rate.abs(),
            rate.rate.abs() / rate.size
        );
        let finding = Diagnostic::warning(message, quantity_of(model, group).span, "varies along the flow").help(
            "correct the formula, or record it with `observe` instead; --allow-unverified runs without holding it",
        );
        found.varying.push(group.name.clone());
        found.unverified.push(finding);
    } else if ambient.iter().any(potential_varies) {
        found.weak_integrals.push(group.name.clone());
    }
}

/// An initial state moved onto the constraint set.
#[derive(Clone, Debug)]
pub struct Projected {
    /// The state.
    pub initial: Vec<f64>,
    /// How far the positions moved, as a Euclidean distance.
    pub position: f64,
    /// How far the momenta moved.
    pub momentum: f64,
}

/// [`Projection::project`] for the initial state of `model`.
///
/// # Errors
/// In words, when there is no projection or Newton's iteration does not get there.
pub fn project_initial(model: &Model) -> Result<Projected, String> {
    if model.constraints.is_empty() {
        return Ok(Projected { initial: model.initial.clone(), position: 0.0, momentum: 0.0 });
    }
    Projection::new(model)?.project(&model.parameter_values, &model.initial)
}

/// How states are moved onto the constraint set: positions along M⁻¹Gᵀ and then momenta along Gᵀ, the least changes
/// in the kinetic metric; other constraints by the least change in units of the state's own size.
pub struct Projection {
    degrees: usize,
    /// The time of the start.
    t0: f64,
    scales: Scales,
    constraints: Formulas,
    /// The rows of H_pp and their numbers in the state; none where the metric is not the kinetic one.
    metric: (Vec<u32>, Formulas),
    hidden: Option<Formulas>,
    /// Constraints and hidden constraints, where they are solved for together.
    both: Option<Formulas>,
}

impl Projection {
    /// The projection of `model`.
    ///
    /// # Errors
    /// In words, when the model is too large or its constraints have no structure.
    pub fn new(model: &Model) -> Result<Projection, String> {
        let mut unrolled = unroll(model).map_err(|e| e.to_string())?;
        let n = model.degrees();
        let scalars: Vec<_> = unrolled.constraints.iter().flatten().cloned().collect();
        let structure = structure::structure(model, &mut unrolled).map_err(|e| e.to_string())?;
        let holonomic = structure.kind == Kind::Holonomic;
        // H_pp by rows over the momenta.
        let mut metric: Vec<(u32, Gradient)> = Vec::new();
        if holonomic && structure.hidden.iter().all(|h| !h.tangency) {
            for (i, d) in unrolled.hamiltonian_gradient.clone() {
                if i as usize >= n {
                    metric.push((i, unrolled.graph.gradient(d)));
                }
            }
        }
        let formulas = |nodes: &[Node], gradients: &[&Gradient]| {
            Formulas::new(&unrolled.graph, nodes, gradients, model.dimension(), model.parameter_values.len())
        };
        let nodes: Vec<Node> = scalars.iter().map(|s| s.node).collect();
        let gradients: Vec<&Gradient> = scalars.iter().map(|s| &s.gradient).collect();
        let hidden: Vec<Node> = structure.hidden.iter().map(|h| h.node).collect();
        let hidden_gradients: Vec<&Gradient> = structure.hidden.iter().map(|h| &h.gradient).collect();
        let mass = formulas(&[], &metric.iter().map(|(_, row)| row).collect::<Vec<_>>());
        Ok(Projection {
            degrees: n,
            t0: model.t0,
            scales: Scales::new(model),
            constraints: formulas(&nodes, &gradients),
            metric: (metric.iter().map(|&(i, _)| i).collect(), mass),
            hidden: (!hidden.is_empty() && holonomic).then(|| formulas(&hidden, &hidden_gradients)),
            both: (!hidden.is_empty() && !holonomic)
                .then(|| formulas(&[nodes, hidden].concat(), &[gradients, hidden_gradients].concat())),
        })
    }

    /// Moves the state `start` onto the constraint set at these parameters.
    ///
    /// # Errors
    /// In words, when Newton's iteration does not get there.
    pub fn project(&self, parameters: &[f64], start: &[f64]) -> Result<Projected, String> {
        let n = self.degrees;
        let mut x = start.to_vec();
        let (momenta, mass) = &self.metric;
        let inverse_mass = mass.at(&mass.bind(parameters), self.t0, &x).1;
        // M⁻¹ g for a row g over the positions.
        let raise = |row: &Row| -> Row {
            let mut dense: std::collections::BTreeMap<u32, f64> = Default::default();
            for (i, h) in momenta.iter().zip(&inverse_mass) {
                let sum: f64 = h
                    .iter()
                    .filter(|(j, _)| *j as usize >= n)
                    .map(|&(j, v)| v * row.iter().find(|&&(c, _)| c == j - n as u32).map_or(0.0, |&(_, d)| d))
                    .sum();
                if sum != 0.0 {
                    dense.insert(i - n as u32, sum);
                }
            }
            dense.into_iter().collect()
        };
        let units = self.scales.units(start);
        let least = |row: &Row| row.iter().map(|&(i, d)| (i, d * units[i as usize] * units[i as usize])).collect();
        let direction = |row: &Row| if momenta.is_empty() { least(row) } else { raise(row) };
        let bound = self.constraints.bind(parameters);
        newton(&self.constraints, (&bound, self.t0), &direction, &units, &mut x)?;
        if let Some(hidden) = &self.hidden {
            // δp = Gᵀμ: the hidden constraint's gradient is G M⁻¹ over the momenta, and M lowers it to G.
            let over_momenta = |r: &Row| -> Row { r.iter().map(|&(i, v)| (i + n as u32, v)).collect() };
            let directions: Vec<Row> = self.constraints.at(&bound, self.t0, &x).1.iter().map(over_momenta).collect();
            let bound = hidden.bind(parameters);
            for _ in 0..3 {
                let (f, rows) = hidden.at(&bound, self.t0, &x);
                newton_step(&rows, &directions, &f, &mut x).ok_or(REDUNDANT)?;
            }
        }
        if let Some(both) = &self.both {
            newton(both, (&both.bind(parameters), self.t0), &least, &units, &mut x)?;
        }
        let distance = |range: std::ops::Range<usize>| range.map(|i| (x[i] - start[i]).powi(2)).sum::<f64>().sqrt();
        let split = if n == 0 { x.len() } else { n };
        let (position, momentum) = (distance(0..split), distance(split..x.len()));
        Ok(Projected { initial: x, position, momentum })
    }
}

const REDUNDANT: &str = "the constraints are redundant there";

/// Moves x along `direction` of each formula's gradient to where all of them vanish.
fn newton(
    formulas: &Formulas,
    (bound, t): (&[f64], f64),
    direction: &dyn Fn(&Row) -> Row,
    units: &[f64],
    x: &mut [f64],
) -> Result<(), String> {
    for _ in 0..100 {
        let (f, rows) = formulas.at(bound, t, x);
        let directions: Vec<Row> = rows.iter().map(direction).collect();
        let step = newton_step(&rows, &directions, &f, x).ok_or(REDUNDANT)?;
        if step.iter().any(|&(_, v)| !v.is_finite()) {
            break;
        }
        if step.iter().all(|&(i, v)| v.abs() <= 4.0 * f64::EPSILON * units[i].max(x[i].abs())) {
            return Ok(());
        }
    }
    // Newton stalls at rounding; anything more is a failure.
    let (f, rows) = formulas.at(bound, t, x);
    let size = |row: &Row| row.iter().map(|&(i, d)| d.abs() * units[i as usize].max(x[i as usize].abs())).sum::<f64>();
    let relative = f.iter().zip(&rows).map(|(f, row)| if *f == 0.0 { 0.0 } else { f.abs() / size(row) });
    match relative.reduce(|a, b| if a.is_nan() || a > b { a } else { b }) {
        Some(worst) if worst > 1e-13 || worst.is_nan() => Err(format!(
            "Newton's iteration stopped where a constraint is off by {worst:.3e} of the terms that should cancel in it"
        )),
        _ => Ok(()),
    }
}

/// Takes Σ yⱼ directionⱼ from x, with Σ_j (rowᵢ · directionⱼ) yⱼ = fᵢ; returns the changes, component by component.
fn newton_step(rows: &[Row], directions: &[Row], f: &[f64], x: &mut [f64]) -> Option<Vec<(usize, f64)>> {
    let y = solve(rows, directions, f)?;
    let mut step: std::collections::BTreeMap<usize, f64> = Default::default();
    for (d, y) in directions.iter().zip(&y) {
        for &(i, v) in d {
            *step.entry(i as usize).or_default() += y * v;
        }
    }
    step.iter().for_each(|(&i, v)| x[i] -= v);
    Some(step.into_iter().collect())
}

/// y with Σ_j (rowᵢ · directionⱼ) yⱼ = fᵢ, by elimination with partial pivoting after rows and columns are scaled.
fn solve(rows: &[Row], directions: &[Row], f: &[f64]) -> Option<Vec<f64>> {
    // Pivots of a matrix with a unit diagonal that are rounding.
    const SINGULAR: f64 = 1e-13;
    let m = f.len();
    let inverse_root = |i: usize| {
        let own = dot(&rows[i], &directions[i]).abs();
        (own > 0.0 && own.is_finite()).then(|| 1.0 / own.sqrt())
    };
    let scale: Vec<f64> = (0..m).map(inverse_root).collect::<Option<_>>()?;
    let entry = |i: usize, j: usize| dot(&rows[i], &directions[j]) * scale[i] * scale[j];
    let mut a: Vec<Vec<f64>> = (0..m).map(|i| (0..m).map(|j| entry(i, j)).chain([f[i] * scale[i]]).collect()).collect();
    for k in 0..m {
        let pivot = (k..m).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs()))?;
        a.swap(k, pivot);
        if a[k][k].abs() <= SINGULAR || a[k][k].is_nan() {
            return None;
        }
        for i in k + 1..m {
            let factor = a[i][k] / a[k][k];
            if factor != 0.0 {
                for j in k..=m {
                    a[i][j] -= factor * a[k][j];
                }
            }
        }
    }
    let mut y = vec![0.0; m];
    for k in (0..m).rev() {
        let rest: f64 = (k + 1..m).map(|j| a[k][j] * y[j]).sum();
        y[k] = (a[k][m] - rest) / a[k][k];
    }
    Some(y.iter().zip(&scale).map(|(y, s)| y * s).collect())
}
