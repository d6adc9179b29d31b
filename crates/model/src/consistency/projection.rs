//! Projection of initial states onto the constraint set.

use super::ranks::redundancy;
use crate::derived::Derived;
use crate::elaborate::model::{Dynamics, Model};
use crate::graph::Node;
use crate::graph::calculus::Gradient;
use crate::graph::interpret::{Backend, Interpreter};
use crate::policy::Way;
use crate::rows::{BLOCK, RowKernel, RowProgram};
use crate::scales::Scales;
use crate::templated::{Differentiated, RowMechanics};
use crate::treatment::classes::structure;
use crate::treatment::structure::{ConstraintKind, Formulas, Values, onto_zeros};
use crate::treatment::unrolled::unroll;
use holonome_linear::gram::Row;
use holonome_linear::pattern::Pattern;
use holonome_linear::products::Products;
use std::collections::BTreeSet;

const REDUNDANT: &str = "the constraints are redundant there";

/// An initial state moved onto the constraint set.
#[derive(Clone, Debug)]
pub struct ProjectedStart {
    /// The state.
    pub initial: Vec<f64>,
    /// Euclidean distance by which the positions have moved.
    pub position: f64,
    /// Euclidean distance by which the momenta have moved.
    pub momentum: f64,
}

/// [`Projection::project`] for the initial state of `model`.
///
/// # Errors
/// A message, if there is no projection or Newton's iteration does not converge.
pub fn project_initial(model: &Model) -> Result<ProjectedStart, String> {
    project_initial_by(&Interpreter, model)
}

/// [`project_initial`] with a backend, which runs the rows of a large model.
///
/// # Errors
/// A message, if there is no projection or Newton's iteration does not converge.
pub fn project_initial_by(backend: &dyn Backend, model: &Model) -> Result<ProjectedStart, String> {
    if model.constraints.is_empty() {
        return Ok(ProjectedStart { initial: model.initial.clone(), position: 0.0, momentum: 0.0 });
    }
    let projection = Projection::new(backend, model)?;
    let moved = projection.project(&model.parameter_values, &model.initial);
    moved.or_else(|reason| {
        let independent = projection.independent(model).ok_or(reason)?;
        Projection::new(backend, &independent)?.project(&model.parameter_values, &model.initial)
    })
}

/// Projection of states onto the constraint set by least changes: of positions in the kinetic
/// metric of the start, then of momenta in its inverse; for other constraints in units of the
/// state's own size, where positions without mass, such as multipliers, move in place of others.
pub struct Projection {
    degrees: usize,
    /// Time of the start.
    t0: f64,
    scales: Scales,
    /// Positions without mass, such as multipliers, beside others with mass.
    massless: Vec<u32>,
    constraints: Functions,
    /// Numbers in the state of the rows of H_pp, and these rows; empty if the metric is not the
    /// kinetic one.
    metric: (Vec<u32>, Functions),
    hidden: Option<Functions>,
    /// Constraints and hidden constraints, if they are solved for together.
    both: Option<Functions>,
    systems: Products,
    /// Number of iterations without progress, near rounding, after which one ends.
    patience: usize,
}

/// Ratio of the unit of a position without mass to its size: others do not move in its place by more
/// than the rounding of the square.
const OF_MASSLESS: f64 = 1e8;

/// Functions of the state with the rows of their Jacobian.
enum Functions {
    Unrolled(Formulas),
    Templated(Box<RowFunctions>),
}

/// [`Functions`] over the rows of templates.
struct RowFunctions {
    values: RowKernel,
    jacobian: RowKernel,
    pattern: Pattern,
}

/// [`Functions`] at a time and with parameters, as a function of the state.
type FunctionsOfState<'a> = Box<dyn Fn(&[f64]) -> Values + 'a>;

impl RowFunctions {
    fn new(functions: Differentiated, parameters: &[f64], backend: &dyn Backend) -> RowFunctions {
        let kernel = |program| RowKernel::new(program, parameters, backend, BLOCK);
        RowFunctions {
            values: kernel(&functions.values),
            jacobian: kernel(&functions.jacobian),
            pattern: functions.pattern,
        }
    }
}

impl Functions {
    fn at(&self, t: f64, parameters: &[f64]) -> FunctionsOfState<'_> {
        match self {
            Functions::Unrolled(formulas) => {
                let bound = formulas.bind(parameters);
                Box::new(move |x| formulas.at(&bound, t, x))
            }
            Functions::Templated(functions) => {
                let RowFunctions { values, jacobian, pattern } = &**functions;
                let [mut values, mut jacobian] = [values, jacobian].map(RowKernel::clone);
                values.rebind(parameters);
                jacobian.rebind(parameters);
                let evaluated = move |kernel: &RowKernel, count: usize, x: &[f64]| {
                    let mut out = vec![0.0; count];
                    kernel.run(t, x, &mut out, &mut vec![0.0; kernel.work_len()]);
                    out
                };
                Box::new(move |x| {
                    let entries = evaluated(&jacobian, pattern.nonzeros(), x);
                    let rows = pattern.rows().map(|row| row.values(&entries).collect()).collect();
                    (evaluated(&values, pattern.count(), x), rows)
                })
            }
        }
    }
}

impl Projection {
    /// The projection of `model`; a large one is templated, and `backend` compiles its rows.
    ///
    /// # Errors
    /// A message, if the model is too large or its constraints have no structure.
    pub fn new(backend: &dyn Backend, model: &Model) -> Result<Projection, String> {
        let templated = Way::of_field(model).templated;
        match templated.then(|| RowMechanics::new(model)).flatten() {
            Some(mechanics) => Ok(Projection::templated(backend, model, mechanics)),
            None => Projection::unrolled(model),
        }
    }

    /// The projection of a model with constraints on positions, over rows.
    fn templated(backend: &dyn Backend, model: &Model, mechanics: RowMechanics) -> Projection {
        /// Iterations that do not halve the smallest step so far are noise when they are this many.
        const PATIENCE: usize = 6;
        let (n, dimension) = (model.degrees(), model.dimension());
        let slopes = match &model.dynamics {
            Dynamics::Hamiltonian(h, _) => RowProgram::momentum_slopes(h, n),
            Dynamics::Field(_) => unreachable!("these are the mechanics of a Hamiltonian"),
        };
        let constraints = Differentiated::constraints(model);
        let hidden = Differentiated::hidden_constraints(model, mechanics);
        let metric = Differentiated::of(dimension, vec![(&slopes, (0..n).collect())]);
        let momenta: Vec<u32> = (n as u32..2 * n as u32).collect();
        // Rows without numbers, for the pattern of the systems.
        let marks = |pattern: &Pattern| -> Vec<Row> {
            pattern.rows().map(|row| row.columns().map(|column| (column, 1.0)).collect()).collect()
        };
        let (rows, curvature) = (marks(&constraints.pattern), marks(&metric.pattern));
        let metric_of = Metric::new(n, &momenta, &curvature);
        let directions: Vec<Row> = rows.iter().map(|row| metric_of.raise(row)).collect();
        let functions = |functions: Differentiated| {
            let parameters = &model.parameter_values;
            Functions::Templated(Box::new(RowFunctions::new(functions, parameters, backend)))
        };
        Projection {
            degrees: n,
            t0: model.t0,
            scales: Scales::by(backend, model),
            massless: Vec::new(),
            systems: Products::sparse(&rows, &directions),
            constraints: functions(constraints),
            metric: (momenta, functions(metric)),
            hidden: Some(functions(hidden)),
            both: None,
            patience: PATIENCE,
        }
    }

    /// The projection of a model of any kind, from its unrolled formulas.
    ///
    /// # Errors
    /// A message, if the model is too large or its constraints have no structure.
    pub fn unrolled(model: &Model) -> Result<Projection, String> {
        let mut unrolled = unroll(model).map_err(|e| e.to_string())?;
        let n = model.degrees();
        let scalars: Vec<_> = unrolled.constraints.iter().flatten().cloned().collect();
        let structure = structure(model, &mut unrolled).map_err(|e| e.to_string())?;
        let holonomic = structure.kind == ConstraintKind::Holonomic;
        // H_pp by rows over the momenta.
        let mut metric: Vec<(u32, Gradient)> = Vec::new();
        for (i, d) in unrolled.hamiltonian_gradient.clone() {
            if i as usize >= n {
                metric.push((i, unrolled.graph.gradient(d)));
            }
        }
        let heavy: BTreeSet<u32> = metric
            .iter()
            .flat_map(|(_, row)| row)
            .map(|&(i, _)| i)
            .filter(|&i| i as usize >= n)
            .collect();
        let massless =
            (0..n as u32).filter(|i| !heavy.is_empty() && !heavy.contains(&(i + n as u32)));
        let massless = massless.collect();
        if !holonomic || structure.hidden.iter().any(|h| h.tangency) {
            metric.clear();
        }
        let formulas = |nodes: &[Node], gradients: &[&Gradient]| {
            let parameters = model.parameter_values.len();
            let dimension = model.dimension();
            let formulas = Formulas::new(&unrolled.graph, nodes, gradients, dimension, parameters);
            Functions::Unrolled(formulas)
        };
        let nodes: Vec<Node> = scalars.iter().map(|s| s.node).collect();
        let gradients: Vec<&Gradient> = scalars.iter().map(|s| &s.gradient).collect();
        let hidden: Vec<Node> = structure.hidden.iter().map(|h| h.node).collect();
        let hidden_gradients: Vec<&Gradient> =
            structure.hidden.iter().map(|h| &h.gradient).collect();
        let mass = formulas(&[], &metric.iter().map(|(_, row)| row).collect::<Vec<_>>());
        Ok(Projection {
            degrees: n,
            t0: model.t0,
            scales: Scales::new(model),
            massless,
            constraints: formulas(&nodes, &gradients),
            metric: (metric.iter().map(|&(i, _)| i).collect(), mass),
            hidden: (!hidden.is_empty() && holonomic).then(|| formulas(&hidden, &hidden_gradients)),
            both: (!hidden.is_empty() && !holonomic).then(|| {
                formulas(&[nodes, hidden].concat(), &[gradients, hidden_gradients].concat())
            }),
            systems: Products::full(),
            patience: usize::MAX,
        })
    }

    /// The model without the equations that follow from the others, if there are such near its
    /// initial state.
    fn independent(&self, model: &Model) -> Option<Model> {
        let constraints = self.constraints.at(self.t0, &model.parameter_values);
        let functions = |_: f64, x: &[f64]| constraints(x);
        let units = self.scales.units(&model.initial);
        let initial = onto_zeros(&functions, self.t0, &model.initial, &units)?;
        let there = Model { initial, ..model.clone() };
        let (dependence, _) = redundancy(&there, &self.scales, &functions);
        let determined =
            || !model.rollings.is_empty() && Derived::new(model.clone()).field().is_ok();
        let redundant = dependence.is_redundant() && !determined();
        redundant.then(|| model.without_implied(&dependence.implied))
    }

    /// Moves the state `start` onto the constraint set at these parameters.
    ///
    /// # Errors
    /// A message, if Newton's iteration does not converge.
    pub fn project(&self, parameters: &[f64], start: &[f64]) -> Result<ProjectedStart, String> {
        let n = self.degrees;
        let mut x = start.to_vec();
        let (momenta, curvature) = &self.metric;
        let metric = Metric::new(n, momenta, &curvature.at(self.t0, parameters)(&x).1);
        let units = self.scales.units(start);
        let mut cheap = units.clone();
        for &i in &self.massless {
            cheap[i as usize] *= OF_MASSLESS;
        }
        let by = |units: &[f64], row: &Row| {
            let square = |i: u32| units[i as usize] * units[i as usize];
            row.iter().map(|&(i, d)| (i, d * square(i))).collect()
        };
        let least = |row: &Row| by(&units, row);
        let by_massless = |row: &Row| by(&cheap, row);
        let direction = |row: &Row| if momenta.is_empty() { least(row) } else { metric.raise(row) };
        let constraints = self.constraints.at(self.t0, parameters);
        let (systems, patience) = (&self.systems, self.patience);
        let functions = &constraints;
        let set = ConstraintSet { functions, raise: &direction, systems, units: &units, patience };
        set.least_change(&mut x)?;
        if let Some(hidden) = &self.hidden {
            // δp = Gᵀμ: the hidden constraint's gradient is G M⁻¹ over the momenta, and M lowers it
            // to G.
            let over_momenta =
                |r: &Row| -> Row { r.iter().map(|&(i, v)| (i + n as u32, v)).collect() };
            let directions: Vec<Row> = constraints(&x).1.iter().map(over_momenta).collect();
            let hidden = hidden.at(self.t0, parameters);
            for _ in 0..3 {
                let (f, rows) = hidden(&x);
                newton_step(systems, (&rows, &directions, &f), &mut x).ok_or(REDUNDANT)?;
            }
        }
        if let Some(both) = &self.both {
            let both = both.at(self.t0, parameters);
            let set = ConstraintSet { functions: &both, raise: &least, ..set };
            let mut moved = x.clone();
            let alone = ConstraintSet { raise: &by_massless, ..set };
            let by_massless = !self.massless.is_empty()
                && alone.newton(&mut moved, &mut vec![0.0; start.len()]).is_ok();
            match by_massless {
                true => x = moved,
                false => set.least_change(&mut x)?,
            }
        }
        let distance = |range: std::ops::Range<usize>| {
            range.map(|i| (x[i] - start[i]).powi(2)).sum::<f64>().sqrt()
        };
        let split = if n == 0 { x.len() } else { n };
        let (position, momentum) = (distance(0..split), distance(split..x.len()));
        Ok(ProjectedStart { initial: x, position, momentum })
    }
}

/// H_pp, by columns.
struct Metric {
    degrees: usize,
    /// For each momentum, the positions whose rows of H_pp hold it, with the entries.
    columns: Vec<Row>,
}

impl Metric {
    /// The metric whose rows over the state, `curvature`, belong to `momenta`.
    fn new(degrees: usize, momenta: &[u32], curvature: &[Row]) -> Metric {
        let mut columns = vec![Row::new(); degrees];
        for (&i, row) in momenta.iter().zip(curvature) {
            for &(j, v) in row.iter().filter(|(j, _)| *j as usize >= degrees) {
                columns[j as usize - degrees].push((i - degrees as u32, v));
            }
        }
        Metric { degrees, columns }
    }

    /// M⁻¹ g for a row g over the positions.
    fn raise(&self, row: &Row) -> Row {
        let mut terms: Row = Row::new();
        for &(j, d) in row.iter().filter(|(j, _)| (*j as usize) < self.degrees) {
            terms.extend(self.columns[j as usize].iter().map(|&(i, v)| (i, v * d)));
        }
        terms.sort_by_key(|&(i, _)| i);
        let sum = |terms: &[(u32, f64)]| (terms[0].0, terms.iter().map(|(_, term)| term).sum());
        let mut raised: Row = terms.chunk_by(|a, b| a.0 == b.0).map(sum).collect();
        raised.retain(|&(_, sum)| sum != 0.0);
        raised
    }
}

/// Set of states at which functions vanish, with the metric in which changes are least: `raise` is
/// its inverse W.
#[derive(Clone, Copy)]
struct ConstraintSet<'a> {
    functions: &'a dyn Fn(&[f64]) -> Values,
    raise: &'a dyn Fn(&Row) -> Row,
    systems: &'a Products,
    units: &'a [f64],
    patience: usize,
}

/// Number of iterations in a row that brought no progress.
struct Stall {
    least: f64,
    count: usize,
}

impl Stall {
    /// Size of changes, relative to the numbers, below which they may be rounding.
    const SMALL: f64 = 1e-9;

    fn new() -> Stall {
        Stall { least: f64::INFINITY, count: 0 }
    }

    /// Counts an iteration whose measure of progress is `size`; true after `patience` of them
    /// without progress.
    fn is_final(&mut self, size: f64, patience: usize) -> bool {
        let halved = size <= 0.5 * self.least || size > Stall::SMALL;
        self.count = if halved { 0 } else { self.count + 1 };
        self.least = self.least.min(size);
        self.count >= patience
    }
}

impl ConstraintSet<'_> {
    /// Moves x to where all functions vanish by the least change in the metric W⁻¹.
    ///
    /// Newton's iteration along W Gᵀ arrives at a point of the set, but not at the nearest one where
    /// the set is curved: there x − x₀ = W π with π = Gᵀμ for some μ. The part of π that no μ explains
    /// is the slope of the distance along the set, of which steps of Barzilai and Borwein (IMA J.
    /// Numer. Anal. 8 (1988) 141), each followed by Newton's iteration, find the zero.
    fn least_change(&self, x: &mut [f64]) -> Result<(), String> {
        const MOST_STEPS: usize = 200;
        let n = x.len();
        // π of the change so far.
        let mut pi = vec![0.0; n];
        self.newton(x, &mut pi)?;
        let mut stall = Stall::new();
        let mut last: Option<(Vec<f64>, Vec<f64>, Vec<f64>)> = None;
        let mut nearest = (f64::INFINITY, x.to_vec());
        for _ in 0..MOST_STEPS {
            let (slope, downhill) = {
                let rows = (self.functions)(x).1;
                let directions: Vec<Row> = rows.iter().map(self.raise).collect();
                let along: Vec<f64> = directions.iter().map(|d| product(d, &pi)).collect();
                let mut slope = pi.clone();
                let y = self.systems.solve(&rows, &directions, &along).ok_or(REDUNDANT)?;
                for (row, y) in rows.iter().zip(y) {
                    row.iter().for_each(|&(i, d)| slope[i as usize] -= y * d);
                }
                let downhill = dense(&(self.raise)(&sparse(&slope)), n);
                (slope, downhill)
            };
            let worst = downhill
                .iter()
                .zip(self.units)
                .zip(x.iter())
                .map(|((d, unit), x)| d.abs() / unit.max(x.abs()));
            let worst = worst.fold(0.0, f64::max);
            if worst < nearest.0 {
                nearest = (worst, x.to_vec());
            }
            // Rounding of π, which is a sum over all iterations.
            if worst <= 16.0 * f64::EPSILON
                || worst.is_nan()
                || stall.is_final(worst, self.patience)
            {
                break;
            }
            let length = match &last {
                None => 1.0,
                Some((pi_before, slope_before, downhill_before)) => {
                    let moved: Vec<f64> = pi.iter().zip(pi_before).map(|(a, b)| a - b).collect();
                    let risen: f64 = moved
                        .iter()
                        .zip(downhill.iter().zip(downhill_before))
                        .map(|(m, (a, b))| m * (a - b))
                        .sum();
                    let curved: f64 = slope
                        .iter()
                        .zip(slope_before)
                        .zip(downhill.iter().zip(downhill_before))
                        .map(|((a, b), (c, d))| (a - b) * (c - d))
                        .sum();
                    if risen > 0.0 && curved > 0.0 { risen / curved } else { 1.0 }
                }
            };
            for (i, x) in x.iter_mut().enumerate() {
                *x -= length * downhill[i];
            }
            let before = pi.clone();
            pi.iter_mut().zip(&slope).for_each(|(pi, slope)| *pi -= length * slope);
            last = Some((before, slope, downhill));
            if self.newton(x, &mut pi).is_err() {
                break;
            }
        }
        x.copy_from_slice(&nearest.1);
        Ok(())
    }

    /// Moves x along W of each function's gradient until all functions vanish, and adds the
    /// multiples of the gradients to `pi`.
    fn newton(&self, x: &mut [f64], pi: &mut [f64]) -> Result<(), String> {
        let (units, mut stall) = (self.units, Stall::new());
        for _ in 0..100 {
            let (f, rows) = (self.functions)(x);
            let directions: Vec<Row> = rows.iter().map(self.raise).collect();
            let (y, step) =
                newton_step(self.systems, (&rows, &directions, &f), x).ok_or(REDUNDANT)?;
            for (row, y) in rows.iter().zip(&y) {
                row.iter().for_each(|&(i, d)| pi[i as usize] -= y * d);
            }
            if step.iter().any(|v| !v.is_finite()) {
                break;
            }
            let sizes =
                || step.iter().zip(units.iter().zip(x.iter()).map(|(unit, x)| unit.max(x.abs())));
            if sizes().all(|(v, size)| v.abs() <= 4.0 * f64::EPSILON * size) {
                return Ok(());
            }
            let worst = sizes().map(|(v, size)| v.abs() / size).fold(0.0, f64::max);
            if stall.is_final(worst, self.patience) {
                break;
            }
        }
        // Newton's iteration stalls at rounding; any larger residual is a failure.
        let (f, rows) = (self.functions)(x);
        let size = |row: &Row| {
            row.iter()
                .map(|&(i, d)| d.abs() * units[i as usize].max(x[i as usize].abs()))
                .sum::<f64>()
        };
        let relative =
            f.iter().zip(&rows).map(|(f, row)| if *f == 0.0 { 0.0 } else { f.abs() / size(row) });
        match relative.reduce(|a, b| if a.is_nan() || a > b { a } else { b }) {
            Some(worst) if worst > 1e-13 || worst.is_nan() => Err(format!(
                "Newton's iteration stopped where a constraint is off by {worst:.3e} of the terms that should cancel in it"
            )),
            _ => Ok(()),
        }
    }
}

/// Product of a sparse row with a vector.
fn product(row: &Row, v: &[f64]) -> f64 {
    row.iter().map(|&(i, d)| d * v[i as usize]).sum()
}

fn sparse(v: &[f64]) -> Row {
    (0..).zip(v).filter(|(_, v)| **v != 0.0).map(|(i, &v)| (i, v)).collect()
}

fn dense(row: &Row, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; n];
    row.iter().for_each(|&(i, d)| out[i as usize] = d);
    out
}

/// Subtracts Σ yⱼ directionⱼ from x, with Σ_j (rowᵢ · directionⱼ) yⱼ = fᵢ; returns y and the
/// changes of all components.
fn newton_step(
    systems: &Products,
    (rows, directions, f): (&[Row], &[Row], &[f64]),
    x: &mut [f64],
) -> Option<(Vec<f64>, Vec<f64>)> {
    let y = systems.solve(rows, directions, f)?;
    let mut step = vec![0.0; x.len()];
    for (d, y) in directions.iter().zip(&y) {
        d.iter().for_each(|&(i, v)| step[i as usize] += y * v);
    }
    x.iter_mut().zip(&step).for_each(|(x, step)| *x -= step);
    Some((y, step))
}
