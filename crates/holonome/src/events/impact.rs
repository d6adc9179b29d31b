//! Impacts: momenta that turn the rate of a function around, and keep the constraints.
//!
//! With the normal n = g_q, the constraints' G and M⁻¹ = H_pp, p⁺ = p⁻ − ν P n, where P n = n − Gᵀμ is
//! the part of n with G M⁻¹P n = 0, and n·v⁺ + g_t = −e (n·v⁻ + g_t). The rows A of rolling constraints
//! A v + b = 0 stand beside those of G. Coulomb's friction acts at the point of contact:
//! the normal on each vector is c_i n̂ with the unit normal n̂, the contact moves with Σ c_i v_i, and
//! what is tangential of that loses at most the friction times the normal impulse.
//!
//! The rows w of these equations, with M⁻¹w, are formulas of an unrolled model. In a templated one the
//! function of an impact stands beside the constraints: w is its gradient, and M⁻¹w that of its rate,
//! as of a hidden constraint, by the momenta.

use super::Source;
use crate::error::Error;
use crate::kernels::{Bound, Parametric, Quantities, StateVectors, compile_rows};
use crate::problem::Problem;
use holonome_integrate::system::Vectors;
use holonome_linear::gram::{self, DEPENDENT, Gram};
use holonome_linear::pattern::Pattern;
use holonome_model::elaborate::model::{Model, Quantity};
use holonome_model::functional::Functional;
use holonome_model::graph::{Input, Node};
use holonome_model::rows::RowProgram;
use holonome_model::syntax::diagnostic::Diagnostic;
use holonome_model::templated::{Differentiated, RowMechanics};
use holonome_model::treatment::Field;
use std::ops::Range;
use std::sync::Arc;

/// Row w of an impact's equations, and M⁻¹w: places of the nonzeros, by component, and of their
/// values among the outputs.
#[derive(Clone, Debug, Default)]
struct Row {
    w: Vec<(u32, u32)>,
    weighted: Vec<(u32, u32)>,
}

/// Kernel with the number of its outputs.
type Sized = (Box<dyn Quantities>, usize);

/// Rows of a model's impacts, compiled.
struct Rows {
    /// Kernels of the entries, whose outputs follow each other.
    kernels: Vec<Sized>,
    /// Rows of the constraints on positions, and of rolling ones.
    constraints: Vec<Row>,
    normals: Vec<Row>,
    velocities: Box<dyn Quantities>,
}

/// The impacts of a model.
#[derive(Clone)]
pub(super) struct Impacts {
    /// Rate, restitution and friction of each impact; then the entries of the rows.
    kernels: Vec<Sized>,
    velocities: Box<dyn Quantities>,
    constraints: Arc<Vec<Row>>,
    normals: Arc<Vec<Row>>,
    degrees: usize,
    vectors: Arc<Vec<Range<usize>>>,
}

impl Rows {
    /// Rows of an unrolled model, as formulas; places of entries are counted from `first`.
    fn unrolled(
        model: &Model,
        field: &Field,
        normals: &[Node],
        first: usize,
        source: &mut Source,
    ) -> Rows {
        let n = model.degrees();
        let of_rolling: Vec<&Functional> =
            model.rollings.iter().map(|rolling| &rolling.functional).collect();
        let of_rolling = of_rolling.into_iter().flat_map(|of| source.rolling_rows(of));
        let of_rolling: Vec<Vec<(u32, Node)>> = of_rolling.collect();
        let is_row = |gradient: &&Vec<(u32, Node)>| {
            !gradient.is_empty() && gradient.iter().all(|&(i, _)| (i as usize) < n)
        };
        let rows = field.jacobian[..field.constraints].iter().filter(is_row).cloned();
        let rows = rows.chain(of_rolling);
        let mut nodes: Vec<Node> = Vec::new();
        let mut written = |source: &mut Source, gradient: &[(u32, Node)]| {
            let along = source.graph.tangent(&field.velocities, |_, input| match input {
                Input::State(k) if k as usize >= n => gradient
                    .iter()
                    .find(|&&(i, _)| i as usize + n == k as usize)
                    .map(|&(_, node)| node),
                _ => None,
            });
            let mut place = |(i, node): (u32, Node)| {
                nodes.push(node);
                (i, (first + nodes.len()) as u32 - 1)
            };
            let w = gradient.iter().map(|&entry| place(entry)).collect();
            let weighted = along.into_iter().enumerate();
            let weighted = weighted.filter(|&(_, node)| !source.graph.is_zero(node));
            let weighted: Vec<(u32, Node)> = weighted.map(|(i, node)| (i as u32, node)).collect();
            Row { w, weighted: weighted.into_iter().map(place).collect() }
        };
        let constraints: Vec<Row> = rows.map(|row| written(source, &row)).collect();
        let normal = |&normal: &Node| {
            let mut gradient = source.graph.gradient(normal);
            gradient.retain(|&(i, _)| (i as usize) < n);
            written(source, &gradient)
        };
        let normals = normals.iter().map(normal).collect();
        let own = Field { graph: source.graph.clone(), ..field.clone() };
        let compiled = |nodes: &[Node]| Box::new(Bound::of(&own, nodes, &model.parameter_values));
        Rows {
            kernels: vec![(compiled(&nodes), nodes.len())],
            constraints,
            normals,
            velocities: compiled(&field.velocities),
        }
    }

    /// Rows of a templated model, those of the Jacobians of its constraints and impacts and of their
    /// rates; places of entries are counted from `first`. `None` if these are not on positions.
    fn templated(model: &Model, first: usize) -> Option<Rows> {
        let (n, count) = (model.degrees(), model.constraints.iter().map(Quantity::scalars).sum());
        let impacts = model.events.iter().filter(|event| event.action.is_impact());
        let impacts = impacts.map(|event| event.quantity.clone());
        let constraints = model.constraints.iter().cloned().chain(impacts).collect();
        let beside = Model { constraints, redundancy: None, ..model.clone() };
        let gradients = Differentiated::constraints(&beside);
        let rates = Differentiated::hidden_constraints(&beside, RowMechanics::new(&beside)?);
        let (hamiltonian, _) = model.hamiltonian()?;
        let velocities = RowProgram::momentum_slopes(hamiltonian, n);
        let velocities = RowProgram::values(&velocities, &|output| Some(output as u32));
        let velocities = RowProgram::new(model.dimension(), n, velocities);
        let compiled = |program| {
            Box::new(compile_rows(program, &model.parameter_values)) as Box<dyn Quantities>
        };
        let entries = |pattern: &Pattern, row: usize, first: usize, columns: Range<usize>| {
            let all = pattern.row(row).entries();
            let own = all.filter(move |(_, column)| columns.contains(column));
            own.map(|(place, column)| ((column % n) as u32, (first + place) as u32)).collect()
        };
        let second = first + gradients.pattern.nonzeros();
        let row = |row: usize| Row {
            w: entries(&gradients.pattern, row, first, 0..n),
            weighted: entries(&rates.pattern, row, second, n..2 * n),
        };
        let mut constraints: Vec<Row> = (0..gradients.pattern.count()).map(row).collect();
        let normals = constraints.split_off(count);
        let kernels =
            [&gradients, &rates].map(|of| (compiled(&of.jacobian), of.pattern.nonzeros()));
        Some(Rows {
            kernels: kernels.into(),
            constraints,
            normals,
            velocities: compiled(&velocities),
        })
    }
}

impl Impacts {
    /// Compile impacts along these `normals`, functions of the positions, with their restitution
    /// and friction.
    ///
    /// # Errors
    /// If the model constrains momenta, or friction has no plane to act in.
    pub fn new(
        problem: &Problem,
        field: Option<&Field>,
        vectors: &StateVectors,
        (normals, coefficients): (&[Node], &[(Node, Option<Node>)]),
        source: &mut Source,
    ) -> Result<Impacts, Error> {
        let model = &problem.model;
        let impact = model.events.iter().find(|event| event.action.is_impact());
        let span = impact.map(|event| event.quantity.span);
        let refuse = |message: &str, label: &str, help: &str| {
            let diagnostic = Diagnostic::error(message, span.unwrap_or_default(), label).help(help);
            let text = Box::new(problem.source.clone());
            Error::Model { text, diagnostics: vec![diagnostic] }
        };
        let first = 3 * normals.len();
        let rows = match field {
            _ if model.has_constraints_on_momenta() => None,
            Some(field) => Some(Rows::unrolled(model, field, normals, first, source)),
            None => Rows::templated(model, first),
        };
        let Some(Rows { mut kernels, constraints, normals: rows, velocities }) = rows else {
            return Err(refuse(
                "an impact beside constraints on momenta is not determined by its restitution",
                "not only positions are constrained",
                "write its reset: event NAME : EXPR = 0 : p -> EXPR",
            ));
        };
        let ranges = position_vectors(&vectors.vectors, model.degrees());
        for (row, (_, friction)) in rows.iter().zip(coefficients) {
            let mut lengths: Vec<usize> = touched(row, &ranges).map(|k| ranges[k].len()).collect();
            lengths.dedup();
            if friction.is_some() && !matches!(lengths[..], [length] if length > 1) {
                return Err(refuse(
                    "friction acts in the plane of contact of a point, and the impact has none",
                    "no vector in the plane or in space",
                    "write the point as one vector, coordinate r : R^3; between bodies as EXPR of their points",
                ));
            }
        }
        let mut nodes: Vec<Node> = Vec::new();
        for (&normal, &(restitution, friction)) in normals.iter().zip(coefficients) {
            let none = source.graph.constant(f64::NAN);
            nodes.extend([source.rate(normal), restitution, friction.unwrap_or(none)]);
        }
        kernels.insert(0, (source.compile(model, &nodes), nodes.len()));
        Ok(Impacts {
            kernels,
            velocities,
            constraints: Arc::new(constraints),
            normals: Arc::new(rows),
            degrees: model.degrees(),
            vectors: Arc::new(ranges),
        })
    }

    pub fn rebind(&mut self, parameters: &[f64]) {
        self.kernels.iter_mut().for_each(|(kernel, _)| kernel.rebind(parameters));
        self.velocities.rebind(parameters);
    }

    /// Number of outputs of the kernels.
    fn outputs(&self) -> usize {
        self.kernels.iter().map(|(_, outputs)| outputs).sum()
    }

    pub fn work_len(&self) -> usize {
        let all = self.kernels.iter().map(|(kernel, _)| kernel);
        let longest = all.chain([&self.velocities]).map(|kernel| kernel.work_len()).max();
        self.outputs() + 3 * self.degrees + longest.unwrap_or(0)
    }

    /// Set the momenta in `x` to those after impact `number`; NaN if it is not determined.
    pub fn act(&self, number: usize, t: f64, x: &mut [f64], work: &mut [f64]) {
        let n = self.degrees;
        let (values, work) = work.split_at_mut(self.outputs());
        let mut rest = &mut *values;
        for (kernel, outputs) in &self.kernels {
            let (own, others) = rest.split_at_mut(*outputs);
            kernel.run(t, x, own, work);
            rest = others;
        }
        let (along, work) = work.split_at_mut(n);
        let rows = self.constraints.iter().chain([&self.normals[number]]);
        let [rate, restitution, friction] = [0, 1, 2].map(|k| values[3 * number + k]);
        let Some(system) = System::new(rows, values, along) else {
            return x[n..2 * n].fill(f64::NAN);
        };
        let still = vec![0.0; self.constraints.len()];
        let normal = system.kick(&mut x[n..2 * n], &still, (1.0 + restitution) * rate).abs();
        if friction.is_nan() {
            return;
        }
        let (before, after) = work.split_at_mut(n);
        let (after, work) = after.split_at_mut(n);
        self.velocities.run(t, x, before, work);
        let Some(kick) = self.friction(number, values, before, friction * normal) else { return };
        let stop = |x: &mut [f64], part: f64| {
            for (p, kick) in x[n..2 * n].iter_mut().zip(&kick.along) {
                *p -= part * kick;
            }
        };
        // M⁻¹ does not depend on p, so that a trial shows how much of the velocity an impulse takes.
        stop(x, 1.0);
        self.velocities.run(t, x, after, work);
        let taken: f64 = (0..n).map(|i| kick.along[i] * (before[i] - after[i])).sum();
        let part = (kick.speed / taken).min(kick.most);
        stop(x, part - 1.0);
        self.velocities.run(t, x, after, work);
        // The rates of the rows stay.
        after.iter_mut().zip(before).for_each(|(after, before)| *after -= *before);
        let off: Vec<f64> = system.rows.iter().map(|row| product(row, after)).collect();
        let (off_normal, off) = off.split_last().expect("the normal is a row");
        system.kick(&mut x[n..2 * n], off, *off_normal);
    }

    /// The direction in which friction acts at impact `number` with these velocities after it, if
    /// something slides there.
    fn friction(&self, number: usize, values: &[f64], v: &[f64], most: f64) -> Option<Kick> {
        let row = &self.normals[number];
        let mut normal = vec![0.0; self.degrees];
        row.w.iter().for_each(|&(i, at)| normal[i as usize] = values[at as usize]);
        let parts: Vec<&Range<usize>> =
            touched(row, &self.vectors).map(|k| &self.vectors[k]).collect();
        let size = |range: &Range<usize>| normal[range.clone()].iter().map(|c| c * c).sum::<f64>();
        let largest = parts.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
        let length = size(largest).sqrt();
        let unit: Vec<f64> = normal[(*largest).clone()].iter().map(|c| c / length).collect();
        let dot = |a: &[f64]| a.iter().zip(&unit).map(|(a, b)| a * b).sum::<f64>();
        let shares: Vec<f64> = parts.iter().map(|range| dot(&normal[(*range).clone()])).collect();
        let mut sliding = vec![0.0; unit.len()];
        for (range, share) in parts.iter().zip(&shares) {
            let of = &v[(*range).clone()];
            let along = dot(of);
            for (k, sliding) in sliding.iter_mut().enumerate() {
                *sliding += share * (of[k] - along * unit[k]);
            }
        }
        let speed = sliding.iter().map(|v| v * v).sum::<f64>().sqrt();
        if speed.is_nan() || speed == 0.0 {
            return None;
        }
        let mut along = vec![0.0; self.degrees];
        for (range, share) in parts.iter().zip(&shares) {
            for (p, sliding) in along[(*range).clone()].iter_mut().zip(&sliding) {
                *p = share * sliding / speed;
            }
        }
        Some(Kick { along, speed, most })
    }
}

/// Impulse by friction: its direction, the speed with which the contact slides along it, and its
/// largest size.
struct Kick {
    along: Vec<f64>,
    speed: f64,
    most: f64,
}

/// Vectors of positions.
fn position_vectors(vectors: &Vectors, degrees: usize) -> Vec<Range<usize>> {
    let all = (0..vectors.count()).map(|k| vectors.components_of(k));
    all.take_while(|range| range.end <= degrees).collect()
}

/// Numbers of the vectors that a row has entries in.
fn touched<'a>(row: &'a Row, vectors: &'a [Range<usize>]) -> impl Iterator<Item = usize> + 'a {
    let has = |range: &Range<usize>| row.w.iter().any(|&(i, _)| range.contains(&(i as usize)));
    vectors.iter().enumerate().filter(move |(_, range)| has(range)).map(|(k, _)| k)
}

/// Product of a sparse row with an array.
fn product(row: &[(u32, f64)], with: &[f64]) -> f64 {
    row.iter().map(|&(i, entry)| entry * with[i as usize]).sum()
}

/// Take the combination of some rows with these coefficients from `p`.
fn take(p: &mut [f64], rows: &[gram::Row], coefficients: &[f64]) {
    for (row, s) in rows.iter().zip(coefficients) {
        row.iter().for_each(|&(i, entry)| p[i as usize] -= s * entry);
    }
}

/// Equations for impulses along the rows of the constraints and along one normal, the last row.
struct System<'a> {
    rows: Vec<gram::Row>,
    weighted: Vec<gram::Row>,
    /// Factors of G M⁻¹Gᵀ.
    gram: Gram,
    /// P n, along which an impulse keeps the constraints, and n·M⁻¹P n.
    along: &'a [f64],
    square: f64,
}

impl<'a> System<'a> {
    /// Equations for these rows, of which the last is the normal; `along` holds P n. `None` if the
    /// constraints hold the normal, or something is undefined.
    fn new<'r>(
        rows: impl Iterator<Item = &'r Row> + Clone,
        values: &[f64],
        along: &'a mut [f64],
    ) -> Option<System<'a>> {
        let written = |places: &[(u32, u32)]| -> gram::Row {
            places.iter().map(|&(i, at)| (i, values[at as usize])).collect()
        };
        let weighted: Vec<gram::Row> = rows.clone().map(|row| written(&row.weighted)).collect();
        let rows: Vec<gram::Row> = rows.map(|row| written(&row.w)).collect();
        let count = rows.len() - 1;
        let gram = Gram::of_products(&rows[..count], &weighted[..count]);
        along.fill(0.0);
        take(along, &rows[count..], &[-1.0]);
        let whole = product(&weighted[count], along);
        // The second time restores the digits that the square of the condition number takes.
        for _ in 0..2 {
            let off: Vec<f64> = weighted[..count].iter().map(|row| product(row, along)).collect();
            take(along, &rows, &gram.solve(&off));
        }
        let square = product(&weighted[count], along);
        let all = rows.iter().chain(&weighted).flatten();
        let is_defined = all.map(|(_, entry)| entry).all(|entry| entry.is_finite());
        (is_defined && square > DEPENDENT * whole).then_some(System {
            rows,
            weighted,
            gram,
            along,
            square,
        })
    }

    /// Take from the momenta the impulses that take these rates from the constraints and from the
    /// normal; returns the impulse along P n.
    fn kick(&self, p: &mut [f64], rates: &[f64], normal: f64) -> f64 {
        let count = rates.len();
        let impulses = self.gram.solve(rates);
        take(p, &self.rows[..count], &impulses);
        let of_normal = |(row, s): (&gram::Row, &f64)| s * gram::dot(row, &self.weighted[count]);
        let taken: f64 = self.rows[..count].iter().zip(&impulses).map(of_normal).sum();
        let impulse = (normal - taken) / self.square;
        p.iter_mut().zip(self.along).for_each(|(p, along)| *p -= impulse * along);
        impulse
    }
}

#[cfg(test)]
mod tests;
