//! Impacts: momenta that turn the rate of a function around, and keep the constraints.
//!
//! With the normal n = g_q, the constraints' G and M⁻¹ = H_pp, p⁺ = p⁻ − Gᵀμ − nν, where
//! G M⁻¹p⁺ = 0 and n·v⁺ + g_t = −e (n·v⁻ + g_t). The rows A of rolling constraints A v + b = 0 stand
//! beside those of G. Coulomb's friction acts at the point of contact:
//! the normal on each vector is c_i n̂ with the unit normal n̂, the contact moves with Σ c_i v_i, and
//! what is tangential of that loses at most the friction times the normal impulse.

use super::Source;
use crate::error::Error;
use crate::kernels::{Bound, Parametric, Quantities, StateVectors};
use crate::problem::Problem;
use holonome_integrate::system::Vectors;
use holonome_linear::dense::PivotedCholesky;
use holonome_model::elaborate::model::EventAction;
use holonome_model::functional::Functional;
use holonome_model::graph::{Input, Node};
use holonome_model::syntax::diagnostic::Diagnostic;
use holonome_model::treatment::Field;
use std::ops::Range;
use std::sync::Arc;

/// Pivot of rows of unit length below which they depend on each other.
const DEPENDENT: f64 = 1e-12;

/// Row w of an impact's equations, and M⁻¹w: places of the nonzeros, by component, and of their
/// values among the outputs.
#[derive(Clone, Debug, Default)]
struct Row {
    w: Vec<(u32, u32)>,
    weighted: Vec<(u32, u32)>,
}

/// The impacts of a model.
#[derive(Clone)]
pub(super) struct Impacts {
    /// For each impact its rate, restitution and friction; then the entries of the rows.
    kernel: Bound,
    outputs: usize,
    velocities: Bound,
    /// Rows of the constraints on positions, and of rolling ones.
    constraints: Arc<Vec<Row>>,
    normals: Arc<Vec<Row>>,
    degrees: usize,
    vectors: Arc<Vec<Range<usize>>>,
}

impl Impacts {
    /// Compile impacts along these `normals`, functions of the positions, with their restitution
    /// and friction.
    ///
    /// # Errors
    /// If the model is too large to be unrolled, or constrains momenta, or friction has no plane to act
    /// in.
    pub fn new(
        problem: &Problem,
        field: Option<&Field>,
        vectors: &StateVectors,
        (normals, coefficients): (&[Node], &[(Node, Option<Node>)]),
        source: &mut Source,
    ) -> Result<Impacts, Error> {
        let model = &problem.model;
        let is_impact = |action: &EventAction| matches!(action, EventAction::Impact { .. });
        let span =
            model.events.iter().find(|event| is_impact(&event.action)).map(|e| e.quantity.span);
        let refuse = |message: &str, label: &str, help: &str| {
            let diagnostic = Diagnostic::error(message, span.unwrap_or_default(), label).help(help);
            let text = Box::new(problem.source.clone());
            Error::Model { text, diagnostics: vec![diagnostic] }
        };
        let Some(field) = field else {
            return Err(refuse(
                "an impact solves for its impulses with the whole mass matrix, and the model is too large to be unrolled",
                "too large",
                "write its reset: event NAME : EXPR = 0 : p[i] -> EXPR",
            ));
        };
        if model.has_constraints_on_momenta() {
            return Err(refuse(
                "an impact beside constraints on momenta is not determined by its restitution",
                "not only positions are constrained",
                "write its reset: event NAME : EXPR = 0 : p -> EXPR",
            ));
        }
        let n = model.degrees();
        let positions = |gradient: Vec<(u32, Node)>| -> Vec<(u32, Node)> {
            gradient.into_iter().filter(|&(i, _)| (i as usize) < n).collect()
        };
        let is_row = |gradient: &&Vec<(u32, Node)>| {
            !gradient.is_empty() && gradient.iter().all(|&(i, _)| (i as usize) < n)
        };
        let of_rolling: Vec<&Functional> =
            model.rollings.iter().map(|rolling| &rolling.functional).collect();
        let of_rolling = of_rolling.into_iter().flat_map(|of| source.rolling_rows(of));
        let of_rolling: Vec<Vec<(u32, Node)>> = of_rolling.collect();
        let rows = field.jacobian[..field.constraints].iter().filter(is_row).cloned();
        let rows = rows.chain(of_rolling);
        let mut nodes: Vec<Node> = Vec::new();
        for (&normal, &(restitution, friction)) in normals.iter().zip(coefficients) {
            let none = source.graph.constant(f64::NAN);
            nodes.extend([source.rate(normal), restitution, friction.unwrap_or(none)]);
        }
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
                (i, nodes.len() as u32 - 1)
            };
            let w = gradient.iter().map(|&entry| place(entry)).collect();
            let weighted = along.into_iter().enumerate();
            let weighted = weighted.filter(|&(_, node)| !source.graph.is_zero(node));
            let weighted: Vec<(u32, Node)> = weighted.map(|(i, node)| (i as u32, node)).collect();
            Row { w, weighted: weighted.into_iter().map(place).collect() }
        };
        let constraints: Vec<Row> = rows.map(|row| written(source, &row)).collect();
        let normals: Vec<Row> = normals
            .iter()
            .map(|&normal| {
                let gradient = positions(source.graph.gradient(normal));
                written(source, &gradient)
            })
            .collect();
        let ranges = position_vectors(&vectors.vectors, n);
        for (row, (_, friction)) in normals.iter().zip(coefficients) {
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
        let parameters = &model.parameter_values;
        let own = Field { graph: source.graph.clone(), ..field.clone() };
        Ok(Impacts {
            outputs: nodes.len(),
            kernel: Bound::of(&own, &nodes, parameters),
            velocities: Bound::of(&own, &field.velocities, parameters),
            constraints: Arc::new(constraints),
            normals: Arc::new(normals),
            degrees: n,
            vectors: Arc::new(ranges),
        })
    }

    pub fn rebind(&mut self, parameters: &[f64]) {
        self.kernel.rebind(parameters);
        self.velocities.rebind(parameters);
    }

    pub fn work_len(&self) -> usize {
        let kernels = self.kernel.work_len().max(self.velocities.work_len());
        self.outputs + 2 * self.degrees + kernels
    }

    /// Set the momenta in `x` to those after impact `number`; NaN if it is not determined.
    pub fn act(&self, number: usize, t: f64, x: &mut [f64], work: &mut [f64]) {
        let n = self.degrees;
        let (values, work) = work.split_at_mut(self.outputs);
        self.kernel.run(t, x, values, work);
        let rows: Vec<&Row> = self.constraints.iter().chain([&self.normals[number]]).collect();
        let [rate, restitution, friction] = [0, 1, 2].map(|k| values[3 * number + k]);
        let system = System::new(&rows, values, n);
        let mut wanted = vec![0.0; rows.len()];
        wanted[rows.len() - 1] = (1.0 + restitution) * rate;
        let Some(impulses) = system.solve(&wanted) else {
            return x[n..2 * n].fill(f64::NAN);
        };
        system.kick(&mut x[n..2 * n], &impulses);
        if friction.is_nan() {
            return;
        }
        let (before, after) = work.split_at_mut(n);
        let (after, work) = after.split_at_mut(n);
        self.velocities.run(t, x, before, work);
        let normal = impulses[rows.len() - 1].abs();
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
        let off: Vec<f64> = rows
            .iter()
            .map(|row| {
                let moved = |&(i, at): &(u32, u32)| {
                    values[at as usize] * (after[i as usize] - before[i as usize])
                };
                row.w.iter().map(moved).sum()
            })
            .collect();
        if let Some(impulses) = system.solve(&off) {
            system.kick(&mut x[n..2 * n], &impulses);
        }
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

/// The linear equations W M⁻¹Wᵀ s = r for impulses along some rows, scaled to a unit diagonal.
struct System<'a> {
    rows: &'a [&'a Row],
    values: &'a [f64],
    scales: Vec<f64>,
    factors: PivotedCholesky,
}

impl<'a> System<'a> {
    fn new(rows: &'a [&'a Row], values: &'a [f64], degrees: usize) -> System<'a> {
        let m = rows.len();
        let mut matrix = vec![0.0; m * m];
        let mut weighted = vec![0.0; degrees];
        for (b, row) in rows.iter().enumerate() {
            weighted.fill(0.0);
            row.weighted.iter().for_each(|&(i, at)| weighted[i as usize] = values[at as usize]);
            for (a, row) in rows.iter().enumerate() {
                let term = |&(i, at): &(u32, u32)| values[at as usize] * weighted[i as usize];
                matrix[a * m + b] = row.w.iter().map(term).sum();
            }
        }
        let scales: Vec<f64> = (0..m).map(|k| matrix[k * m + k].sqrt()).collect();
        for a in 0..m {
            for b in 0..m {
                matrix[a * m + b] /= scales[a] * scales[b];
            }
        }
        let mut factors = PivotedCholesky::new(m);
        factors.factor(&matrix, DEPENDENT);
        System { rows, values, scales, factors }
    }

    /// Impulses; `None` if the last row depends on the others, or something is undefined.
    fn solve(&self, wanted: &[f64]) -> Option<Vec<f64>> {
        if self.factors.left_out().contains(&(self.rows.len() - 1)) {
            return None;
        }
        let mut s: Vec<f64> = wanted.iter().zip(&self.scales).map(|(r, scale)| r / scale).collect();
        self.factors.clone().solve(&mut s);
        s.iter_mut().zip(&self.scales).for_each(|(s, scale)| *s /= scale);
        s.iter().all(|s| s.is_finite()).then_some(s)
    }

    /// Take the impulses from the momenta: p − Wᵀs.
    fn kick(&self, p: &mut [f64], impulses: &[f64]) {
        for (row, s) in self.rows.iter().zip(impulses) {
            for &(i, at) in &row.w {
                p[i as usize] -= self.values[at as usize] * s;
            }
        }
    }
}
