//! Projection of initial states onto the constraint set.

use crate::elaborate::model::Model;
use crate::graph::Node;
use crate::graph::calculus::Gradient;
use crate::scales::Scales;
use crate::treatment::structure::{self, ConstraintKind, Formulas};
use crate::treatment::unrolled::unroll;
use holonome_linear::gram::{Row, dot};

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
    if model.constraints.is_empty() {
        return Ok(ProjectedStart { initial: model.initial.clone(), position: 0.0, momentum: 0.0 });
    }
    Projection::new(model)?.project(&model.parameter_values, &model.initial)
}

/// Projection of states onto the constraint set by least changes: of positions in the kinetic
/// metric of the start, then of momenta in its inverse; for other constraints in units of the
/// state's own size.
pub struct Projection {
    degrees: usize,
    /// Time of the start.
    t0: f64,
    scales: Scales,
    constraints: Formulas,
    /// Numbers in the state of the rows of H_pp, and these rows; empty if the metric is not the
    /// kinetic one.
    metric: (Vec<u32>, Formulas),
    hidden: Option<Formulas>,
    /// Constraints and hidden constraints, if they are solved for together.
    both: Option<Formulas>,
}

impl Projection {
    /// The projection of `model`.
    ///
    /// # Errors
    /// A message, if the model is too large or its constraints have no structure.
    pub fn new(model: &Model) -> Result<Projection, String> {
        let mut unrolled = unroll(model).map_err(|e| e.to_string())?;
        let n = model.degrees();
        let scalars: Vec<_> = unrolled.constraints.iter().flatten().cloned().collect();
        let structure = structure::structure(model, &mut unrolled).map_err(|e| e.to_string())?;
        let holonomic = structure.kind == ConstraintKind::Holonomic;
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
            Formulas::new(
                &unrolled.graph,
                nodes,
                gradients,
                model.dimension(),
                model.parameter_values.len(),
            )
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
            constraints: formulas(&nodes, &gradients),
            metric: (metric.iter().map(|&(i, _)| i).collect(), mass),
            hidden: (!hidden.is_empty() && holonomic).then(|| formulas(&hidden, &hidden_gradients)),
            both: (!hidden.is_empty() && !holonomic).then(|| {
                formulas(&[nodes, hidden].concat(), &[gradients, hidden_gradients].concat())
            }),
        })
    }

    /// Moves the state `start` onto the constraint set at these parameters.
    ///
    /// # Errors
    /// A message, if Newton's iteration does not converge.
    pub fn project(&self, parameters: &[f64], start: &[f64]) -> Result<ProjectedStart, String> {
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
                    .map(|&(j, v)| {
                        v * row.iter().find(|&&(c, _)| c == j - n as u32).map_or(0.0, |&(_, d)| d)
                    })
                    .sum();
                if sum != 0.0 {
                    dense.insert(i - n as u32, sum);
                }
            }
            dense.into_iter().collect()
        };
        let units = self.scales.units(start);
        let least = |row: &Row| {
            row.iter().map(|&(i, d)| (i, d * units[i as usize] * units[i as usize])).collect()
        };
        let direction = |row: &Row| if momenta.is_empty() { least(row) } else { raise(row) };
        let bound = self.constraints.bind(parameters);
        least_change((&self.constraints, &bound, self.t0), &direction, &units, &mut x)?;
        if let Some(hidden) = &self.hidden {
            // δp = Gᵀμ: the hidden constraint's gradient is G M⁻¹ over the momenta, and M lowers it
            // to G.
            let over_momenta =
                |r: &Row| -> Row { r.iter().map(|&(i, v)| (i + n as u32, v)).collect() };
            let directions: Vec<Row> =
                self.constraints.at(&bound, self.t0, &x).1.iter().map(over_momenta).collect();
            let bound = hidden.bind(parameters);
            for _ in 0..3 {
                let (f, rows) = hidden.at(&bound, self.t0, &x);
                newton_step(&rows, &directions, &f, &mut x).ok_or(REDUNDANT)?;
            }
        }
        if let Some(both) = &self.both {
            least_change((both, &both.bind(parameters), self.t0), &least, &units, &mut x)?;
        }
        let distance = |range: std::ops::Range<usize>| {
            range.map(|i| (x[i] - start[i]).powi(2)).sum::<f64>().sqrt()
        };
        let split = if n == 0 { x.len() } else { n };
        let (position, momentum) = (distance(0..split), distance(split..x.len()));
        Ok(ProjectedStart { initial: x, position, momentum })
    }
}

/// Moves x to where all formulas vanish by the least change in the metric W⁻¹, where `raise` is W.
///
/// Newton's iteration along W Gᵀ arrives at a point of the set, but not at the nearest one where
/// the set is curved: there x − x₀ = W π with π = Gᵀμ for some μ. The part of π that no μ explains
/// is the slope of the distance along the set, of which steps of Barzilai and Borwein (IMA J.
/// Numer. Anal. 8 (1988) 141), each followed by Newton's iteration, find the zero.
fn least_change(
    (formulas, bound, t): (&Formulas, &[f64], f64),
    raise: &dyn Fn(&Row) -> Row,
    units: &[f64],
    x: &mut [f64],
) -> Result<(), String> {
    const MOST_STEPS: usize = 200;
    let n = x.len();
    // π of the change so far.
    let mut pi = vec![0.0; n];
    newton(formulas, (bound, t), raise, units, x, &mut pi)?;
    let mut last: Option<(Vec<f64>, Vec<f64>, Vec<f64>)> = None;
    let mut nearest = (f64::INFINITY, x.to_vec());
    for _ in 0..MOST_STEPS {
        let (slope, downhill) = {
            let rows = formulas.at(bound, t, x).1;
            let directions: Vec<Row> = rows.iter().map(raise).collect();
            let along: Vec<f64> = directions.iter().map(|d| product(d, &pi)).collect();
            let mut slope = pi.clone();
            for (row, y) in rows.iter().zip(solve(&rows, &directions, &along).ok_or(REDUNDANT)?) {
                row.iter().for_each(|&(i, d)| slope[i as usize] -= y * d);
            }
            let downhill = dense(&raise(&sparse(&slope)), n);
            (slope, downhill)
        };
        let worst = downhill
            .iter()
            .zip(units)
            .zip(x.iter())
            .map(|((d, unit), x)| d.abs() / unit.max(x.abs()));
        let worst = worst.fold(0.0, f64::max);
        if worst < nearest.0 {
            nearest = (worst, x.to_vec());
        }
        // Rounding of π, which is a sum over all iterations.
        if worst <= 16.0 * f64::EPSILON || worst.is_nan() {
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
        if newton(formulas, (bound, t), raise, units, x, &mut pi).is_err() {
            break;
        }
    }
    x.copy_from_slice(&nearest.1);
    Ok(())
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

/// Moves x along `raise` of each formula's gradient until all formulas vanish, and adds the
/// multiples of the gradients to `pi`.
fn newton(
    formulas: &Formulas,
    (bound, t): (&[f64], f64),
    raise: &dyn Fn(&Row) -> Row,
    units: &[f64],
    x: &mut [f64],
    pi: &mut [f64],
) -> Result<(), String> {
    for _ in 0..100 {
        let (f, rows) = formulas.at(bound, t, x);
        let directions: Vec<Row> = rows.iter().map(raise).collect();
        let (y, step) = newton_step(&rows, &directions, &f, x).ok_or(REDUNDANT)?;
        for (row, y) in rows.iter().zip(&y) {
            row.iter().for_each(|&(i, d)| pi[i as usize] -= y * d);
        }
        if step.iter().any(|&(_, v)| !v.is_finite()) {
            break;
        }
        if step.iter().all(|&(i, v)| v.abs() <= 4.0 * f64::EPSILON * units[i].max(x[i].abs())) {
            return Ok(());
        }
    }
    // Newton's iteration stalls at rounding; any larger residual is a failure.
    let (f, rows) = formulas.at(bound, t, x);
    let size = |row: &Row| {
        row.iter().map(|&(i, d)| d.abs() * units[i as usize].max(x[i as usize].abs())).sum::<f64>()
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

/// Changes of single components.
type Changes = Vec<(usize, f64)>;

/// Subtracts Σ yⱼ directionⱼ from x, with Σ_j (rowᵢ · directionⱼ) yⱼ = fᵢ; returns y and the
/// changes, component by component.
fn newton_step(
    rows: &[Row],
    directions: &[Row],
    f: &[f64],
    x: &mut [f64],
) -> Option<(Vec<f64>, Changes)> {
    let y = solve(rows, directions, f)?;
    let mut step: std::collections::BTreeMap<usize, f64> = Default::default();
    for (d, y) in directions.iter().zip(&y) {
        for &(i, v) in d {
            *step.entry(i as usize).or_default() += y * v;
        }
    }
    step.iter().for_each(|(&i, v)| x[i] -= v);
    Some((y, step.into_iter().collect()))
}

/// y with Σ_j (rowᵢ · directionⱼ) yⱼ = fᵢ, by elimination with partial pivoting after scaling of
/// rows and columns.
fn solve(rows: &[Row], directions: &[Row], f: &[f64]) -> Option<Vec<f64>> {
    // Largest pivot, of a matrix with a unit diagonal, that is rounding.
    const SINGULAR: f64 = 1e-13;
    let m = f.len();
    // The terms, not their sum: with an indefinite metric these may cancel where the matrix is
    // regular.
    let inverse_root = |i: usize| {
        let absolute = |row: &Row| -> Row { row.iter().map(|&(c, d)| (c, d.abs())).collect() };
        let own = dot(&absolute(&rows[i]), &absolute(&directions[i]));
        (own > 0.0 && own.is_finite()).then(|| 1.0 / own.sqrt())
    };
    let scale: Vec<f64> = (0..m).map(inverse_root).collect::<Option<_>>()?;
    let entry = |i: usize, j: usize| dot(&rows[i], &directions[j]) * scale[i] * scale[j];
    let mut a: Vec<Vec<f64>> =
        (0..m).map(|i| (0..m).map(|j| entry(i, j)).chain([f[i] * scale[i]]).collect()).collect();
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
