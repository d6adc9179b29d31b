//! Constraints and hidden constraints of a model, compiled for evaluation in many states.

use super::shown;
use crate::elaborate::model::Model;
use crate::functional::{Source, Template, Term, work_len};
use crate::graph::aligned::Aligned;
use crate::graph::interpret::{Backend, Kernel};
use crate::graph::tape::Tape;
use crate::graph::{Graph, Input, Node};
use crate::rows::{BLOCK, RowKernel};
use crate::scales::{Scales, with_sizes};
use crate::templated::RowField;
use crate::treatment::structure::{ConstraintKind, Structure};
use crate::treatment::{Field, InvariantGroup, InvariantKind, hidden_name};
use holonome_linear::member_rows::Member;
use holonome_linear::pattern::Pattern;
use std::fmt::{self, Display};
use std::sync::Arc;

/// Fraction of the constraint's terms below which a residual is rounding in the numbers that a user
/// types.
const TYPED: f64 = 1e-9;

/// A constraint that a state does not meet.
#[derive(Clone, Debug)]
pub struct Miss {
    /// Number of the constraint.
    pub constraint: usize,
    /// Name of the member that misses most.
    pub member: String,
    /// Its residual.
    pub residual: Residual,
    /// State components that it reads.
    pub reads: Vec<u32>,
}

/// Residual of a missed constraint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Residual {
    /// A scalar equation: left side minus right side.
    Difference(f64),
    /// A vector or matrix equation: the norm of left side minus right side.
    Norm(f64),
    /// A hidden constraint: its order, its formula in words, and its value.
    Hidden(u32, &'static str, f64),
}

impl Residual {
    /// Its value.
    pub fn value(self) -> f64 {
        match self {
            Residual::Difference(value) | Residual::Norm(value) | Residual::Hidden(_, _, value) => {
                value
            }
        }
    }

    /// True if it is not a finite number.
    pub(super) fn is_undefined(self) -> bool {
        !self.value().is_finite()
    }
}

impl Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.member;
        match self.residual {
            Residual::Difference(v) => {
                write!(f, "constraint '{name}': left side minus right side is {}", shown(v))
            }
            Residual::Norm(v) => write!(f, "constraint '{name}': its residual is {}", shown(v)),
            Residual::Hidden(1, formula, v) => {
                write!(f, "the hidden constraint of '{name}': {formula}, is {}", shown(v))
            }
            Residual::Hidden(order, _, v) => {
                let [own, of] = [order, order - 1].map(|order| hidden_name(name, order));
                write!(f, "the hidden constraint '{own}': the rate of '{of}', is {}", shown(v))
            }
        }
    }
}

/// Constraints of a model, compiled for evaluation in many states.
pub struct Constraints {
    lanes: usize,
    /// Numbers and templates of the constraints that are evaluated; a template gives each value
    /// with the scale of its terms.
    list: Vec<(usize, Vec<Template>)>,
    scales: Scales,
    work: usize,
}

impl Constraints {
    /// All constraints of `model`, with the scales of its states.
    pub fn new(model: &Model, scales: &Scales, backend: &dyn Backend) -> Constraints {
        let all = (0..model.imposed_constraints().len()).collect();
        Constraints::of(model, scales, all, (backend, 1))
    }

    /// These constraints of `model` for so many states side by side.
    pub fn in_lanes(&self, model: &Model, backend: &dyn Backend, lanes: usize) -> Constraints {
        let list = self.list.iter().map(|(constraint, _)| *constraint).collect();
        Constraints::of(model, &self.scales, list, (backend, lanes))
    }

    /// The constraints that may be met in one trajectory of an ensemble and not in another.
    pub fn that_vary(model: &Model, scales: &Scales, backend: &dyn Backend) -> Constraints {
        let start = &model.start;
        let differs = |source, entry: u32| match source {
            Source::State => start.state.get(entry as usize) == Some(&true),
            Source::Parameter => start.parameters.get(entry as usize) == Some(&true),
            Source::Number => false,
        };
        let varies = |k: &usize| {
            model.imposed_constraints()[*k].functional.reads_marked(differs).contains(&true)
        };
        Constraints::of(
            model,
            scales,
            (0..model.imposed_constraints().len()).filter(varies).collect(),
            (backend, 1),
        )
    }

    fn of(
        model: &Model,
        scales: &Scales,
        list: Vec<usize>,
        (backend, lanes): (&dyn Backend, usize),
    ) -> Constraints {
        let template = |term: &Term| {
            let (graph, roots) = with_sizes(term);
            Template::in_lanes(&graph, &roots, 2 * term.slots.len(), (backend, lanes))
        };
        let terms = |k: usize| &model.imposed_constraints()[k].functional.terms;
        let list: Vec<(usize, Vec<Template>)> =
            list.into_iter().map(|k| (k, terms(k).iter().map(template).collect())).collect();
        let outputs = |k: usize| model.imposed_constraints()[k].functional.outputs;
        let work = list
            .iter()
            .map(|(k, templates)| 2 * outputs(*k) * lanes + work_len(templates))
            .max()
            .unwrap_or(0);
        let work = work + model.dimension() * lanes;
        Constraints { lanes, list, scales: scales.clone(), work }
    }

    /// Scratch needed by [`Constraints::misses`], in numbers.
    pub fn work_len(&self) -> usize {
        self.work
    }

    /// Calls `found` with every constraint that x does not meet in a lane, or that is not a number
    /// there. An entry is met if it is small relative to the terms that cancel in it. Nothing is
    /// allocated if all are met.
    pub fn misses(
        &self,
        model: &Model,
        parameters: &[f64],
        x: &[f64],
        work: &mut [f64],
        found: &mut dyn FnMut(Miss),
    ) {
        let lanes = self.lanes;
        let (scale, work) = work.split_at_mut(x.len());
        self.scales.put(x, lanes, scale);
        for (constraint, templates) in &self.list {
            let quantity = &model.imposed_constraints()[*constraint];
            let functional = &quantity.functional;
            let (values, work) = work.split_at_mut(functional.outputs * lanes);
            let (sizes, work) = work.split_at_mut(functional.outputs * lanes);
            values.fill(0.0);
            sizes.fill(0.0);
            for (term, template) in functional.terms.iter().zip(templates) {
                for row in term.table.each() {
                    let both =
                        template.row_beside(term, row, model.t0, (x, scale), parameters, work);
                    let (value, size) = both.split_at(term.roots.len() * lanes);
                    let first = term.outputs(row).start * lanes;
                    values[first..].iter_mut().zip(value).for_each(|(sum, v)| *sum += v);
                    sizes[first..].iter_mut().zip(size).for_each(|(sum, v)| *sum += v);
                }
            }
            if !values.iter().zip(&*sizes).any(|(&value, &size)| is_missed(value, size)) {
                continue;
            }
            let width = quantity.shape.len();
            let entries = |member: usize| member * width..(member + 1) * width;
            for lane in 0..lanes {
                let value = |k: usize| values[k * lanes + lane];
                let missed = |member: &usize| {
                    entries(*member).any(|k| is_missed(value(k), sizes[k * lanes + lane]))
                };
                let residual =
                    |member| entries(member).map(|k| value(k) * value(k)).sum::<f64>().sqrt();
                // The total order puts NaN last.
                let missed = (0..quantity.members).filter(missed);
                let worst = missed.max_by(|&a, &b| residual(a).total_cmp(&residual(b)));
                let Some(worst) = worst else { continue };
                let output = entries(worst)
                    .max_by(|&a, &b| value(a).abs().total_cmp(&value(b).abs()))
                    .unwrap_or(worst * width);
                found(Miss {
                    constraint: *constraint,
                    member: quantity.member_name(worst),
                    residual: match width {
                        1 => Residual::Difference(value(worst)),
                        _ => Residual::Norm(residual(worst)),
                    },
                    reads: functional.reads(output),
                });
            }
        }
    }
}

/// True if a value exceeds the rounding of typed numbers, relative to the size of the terms that
/// should cancel.
pub(super) fn is_missed(value: f64, size: f64) -> bool {
    // A size that is NaN excuses nothing.
    value != 0.0 && (value.abs() > TYPED * size || value.is_nan() || size.is_nan())
}

/// Formula, in words, of the hidden constraint of a constraint on positions.
pub(super) const VELOCITY_ALONG: &str = "the velocity along the constraint's normal, G H_p + g_t";

/// Hidden constraints of a model, compiled for evaluation in many states.
pub struct HiddenConstraints {
    /// Constraints that have hidden ones, with the order of these and the rows of their members.
    list: Vec<(usize, u32, Vec<Vec<usize>>)>,
    scales: Scales,
    /// State components that each row reads.
    columns: Vec<Vec<u32>>,
    /// Formula of the hidden constraints, in words.
    formula: &'static str,
    /// Kernel over (x, the parameters that vary): the values of the rows, then their gradients.
    kernel: Box<dyn Kernel>,
    bound: Aligned,
    tape: Arc<Tape>,
    varying: Vec<usize>,
}

impl HiddenConstraints {
    /// The hidden constraints of `model`, with its scales, field and structure.
    pub fn new(
        model: &Model,
        scales: &Scales,
        (field, structure): (&Field, &Structure),
        backend: &dyn Backend,
    ) -> HiddenConstraints {
        let first = field.constraints - structure.hidden.len();
        let of_group = |group: &InvariantGroup| {
            let InvariantKind::Hidden(order) = group.kind else { return None };
            let constraint =
                model.imposed_constraints().iter().position(|q| q.name == group.name)?;
            let rows = |member: Member| member.into_iter().map(|(row, _)| row - first).collect();
            Some((constraint, order, group.members.iter().map(rows).collect()))
        };
        let n = model.dimension();
        let varying: Vec<usize> =
            (0..model.start.parameters.len()).filter(|&k| model.start.parameters[k]).collect();
        let entries =
            structure.hidden.iter().flat_map(|h| h.gradient.iter().map(|&(_, node)| node));
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
        let kernel = backend.compile_any(&tape, 1);
        HiddenConstraints {
            list: field.groups.iter().filter_map(of_group).collect(),
            scales: scales.clone(),
            columns: structure
                .hidden
                .iter()
                .map(|h| h.gradient.iter().map(|&(i, _)| i).collect())
                .collect(),
            formula: match (structure.kind, structure.hidden.iter().any(|h| h.tangency)) {
                (ConstraintKind::Holonomic | ConstraintKind::Nonholonomic, false) => VELOCITY_ALONG,
                (ConstraintKind::Holonomic, true) => {
                    "the momentum along the constraint's normal, G p"
                }
                _ => "{g, H}",
            },
            bound: kernel.bind(&model.parameter_values),
            kernel,
            tape: Arc::new(tape),
            varying,
        }
    }

    /// These constraints of `model` for so many states side by side.
    pub fn in_lanes(
        &self,
        model: &Model,
        backend: &dyn Backend,
        lanes: usize,
    ) -> HiddenConstraints {
        let kernel = backend.compile_any(&self.tape, lanes);
        HiddenConstraints {
            list: self.list.clone(),
            scales: self.scales.clone(),
            columns: self.columns.clone(),
            formula: self.formula,
            bound: kernel.bind(&model.parameter_values),
            kernel,
            tape: Arc::clone(&self.tape),
            varying: self.varying.clone(),
        }
    }

    /// Scratch needed by [`HiddenConstraints::misses`], in numbers, for states of `model`.
    pub fn work_len(&self, model: &Model) -> usize {
        let numbers = 2 * model.dimension() + self.varying.len() + self.kernel.outputs() + 1;
        numbers * self.kernel.lanes() + self.kernel.work_len()
    }

    /// Calls `found` with every hidden constraint that x does not meet in a lane, or that is not a
    /// number there. Nothing is allocated if all are met.
    pub fn misses(
        &self,
        model: &Model,
        parameters: &[f64],
        x: &[f64],
        work: &mut [f64],
        found: &mut dyn FnMut(Miss),
    ) {
        let lanes = self.kernel.lanes();
        let (scale, work) = work.split_at_mut(x.len());
        self.scales.put(x, lanes, scale);
        let (times, work) = work.split_at_mut(lanes);
        times.fill(model.t0);
        let (inputs, work) = work.split_at_mut(x.len() + self.varying.len() * lanes);
        inputs[..x.len()].copy_from_slice(x);
        for (input, &k) in inputs[x.len()..].chunks_exact_mut(lanes).zip(&self.varying) {
            input.copy_from_slice(&parameters[k * lanes..][..lanes]);
        }
        let (out, work) = work.split_at_mut(self.kernel.outputs() * lanes);
        self.kernel.run(&self.bound, times, inputs, out, work);
        let (values, mut entries) = out.split_at_mut(self.columns.len() * lanes);
        // A row that is small relative to Σ |∂h/∂x_i| times the size of x_i, the terms that should
        // cancel, counts as 0.
        let mut met = true;
        for (values, columns) in values.chunks_exact_mut(lanes).zip(&self.columns) {
            let (row, rest) = entries.split_at_mut(columns.len() * lanes);
            entries = rest;
            for (lane, value) in values.iter_mut().enumerate() {
                let of_lane = row.iter().skip(lane).step_by(lanes).zip(columns);
                let size: f64 =
                    of_lane.map(|(d, &i)| d.abs() * scale[i as usize * lanes + lane]).sum();
                match is_missed(*value, size) {
                    true => met = false,
                    false => *value = 0.0,
                }
            }
        }
        if met {
            return;
        }
        for lane in 0..lanes {
            self.report(model, |row| values[row * lanes + lane], found);
        }
    }

    /// Calls `found` with every hidden constraint that has a row whose value is not 0.
    fn report(&self, model: &Model, value: impl Fn(usize) -> f64, found: &mut dyn FnMut(Miss)) {
        for (constraint, order, members) in &self.list {
            let rows = || {
                members
                    .iter()
                    .enumerate()
                    .flat_map(|(m, rows)| rows.iter().map(move |&row| (m, row)))
            };
            // The first of the largest; the total order puts NaN last.
            let worst = rows().rev().max_by(|a, b| value(a.1).abs().total_cmp(&value(b.1).abs()));
            let Some((member, row)) = worst.filter(|&(_, row)| value(row) != 0.0) else {
                continue;
            };
            found(Miss {
                constraint: *constraint,
                member: model.imposed_constraints()[*constraint].member_name(member),
                residual: Residual::Hidden(*order, self.formula, value(row)),
                reads: self.columns[row].clone(),
            });
        }
    }
}

/// Hidden constraints of a model that is run over rows, compiled for evaluation in many states.
pub struct RowHiddenConstraints {
    scales: Scales,
    /// F and the nonzeros of DF.
    values: RowKernel,
    jacobian: RowKernel,
    pattern: Arc<Pattern>,
    groups: Vec<InvariantGroup>,
    /// True if parameters differ between the states.
    rebinds: bool,
}

impl RowHiddenConstraints {
    /// The hidden constraints of `model`, with its scales and its field over rows.
    pub fn new(
        model: &Model,
        scales: &Scales,
        field: &RowField,
        backend: &dyn Backend,
    ) -> RowHiddenConstraints {
        let kernel = |program| RowKernel::new(program, &model.parameter_values, backend, BLOCK);
        RowHiddenConstraints {
            scales: scales.clone(),
            values: kernel(&field.invariants),
            jacobian: kernel(&field.jacobian),
            pattern: Arc::clone(&field.pattern),
            groups: field.groups.clone(),
            rebinds: model.start.parameters.contains(&true),
        }
    }

    /// Calls `found` with every hidden constraint that x does not meet.
    pub fn misses(
        &self,
        model: &Model,
        parameters: &[f64],
        x: &[f64],
        found: &mut dyn FnMut(Miss),
    ) {
        let evaluated = |kernel: &RowKernel, count: usize| {
            let mut out = vec![0.0; count];
            let mut work = vec![0.0; kernel.work_len()];
            if self.rebinds {
                let mut own = kernel.clone();
                own.rebind(parameters);
                own.run(model.t0, x, &mut out, &mut work);
            } else {
                kernel.run(model.t0, x, &mut out, &mut work);
            }
            out
        };
        let values = evaluated(&self.values, self.pattern.count());
        let entries = evaluated(&self.jacobian, self.pattern.nonzeros());
        let scale = self.scales.sizes(x);
        row_hidden_misses(model, (&self.groups, &self.pattern), &scale, (&values, &entries), found);
    }
}

/// Calls `found` with every hidden constraint that is not met where components of the state have
/// the sizes `scale`, F the `values` and DF these entries.
pub(super) fn row_hidden_misses(
    model: &Model,
    (groups, pattern): (&[InvariantGroup], &Pattern),
    scale: &[f64],
    (values, entries): (&[f64], &[f64]),
    found: &mut dyn FnMut(Miss),
) {
    for group in groups.iter().filter(|g| matches!(g.kind, InvariantKind::Hidden(_))) {
        let Some(constraint) =
            model.imposed_constraints().iter().position(|q| q.name == group.name)
        else {
            continue;
        };
        let missed = |row_number: usize| {
            let row = || pattern.row(row_number).values(entries);
            let size = || row().map(|(i, d)| d.abs() * scale[i as usize]).sum::<f64>();
            values[row_number] != 0.0 && is_missed(values[row_number], size())
        };
        let members = group.members.iter().enumerate();
        let rows = members
            .flat_map(|(number, member)| member.into_iter().map(move |(row, _)| (number, row)));
        // The first of the largest; the total order puts NaN last.
        let missed = rows.filter(|&(_, row_number)| missed(row_number));
        let size = |row_number: usize| values[row_number].abs();
        let worst =
            missed.reduce(|a, b| if size(b.1).total_cmp(&size(a.1)).is_gt() { b } else { a });
        let Some((member, row_number)) = worst else { continue };
        let member = model.imposed_constraints()[constraint].member_name(member);
        let residual = Residual::Hidden(1, VELOCITY_ALONG, values[row_number]);
        let reads = pattern.row(row_number).columns().collect();
        found(Miss { constraint, member, residual, reads });
    }
}
