//! Slow manifold, on which a penalised run starts: there the penalised motion follows the
//! constrained one, without oscillations at the penalty's own frequencies.
//!
//! The start is first projected onto g = 0 and G M⁻¹p = 0. Let λ be the multipliers of the
//! constrained motion there, of least norm if constraints are redundant. Then q₀ moves along M⁻¹Gᵀ
//! to where ω²g = λ, and p₀ along Gᵀ to where the rate is right as well, ω²(G M⁻¹p) = λ̇. Both
//! moves are of order ω⁻². Without the second one the momenta, and with them g, would keep an
//! oscillation of amplitude λ̇/ω².

use crate::backend::backend;
use crate::kernels::Parametric;
use holonome_linear::pattern::Pattern;
use holonome_linear::sparse::SparseLdl;
use holonome_model::elaborate::model::Model;
use holonome_model::rows::{BLOCK, RowKernel, RowProgram};
use holonome_model::scales::Scales;
use holonome_model::templated::Differentiated;
use holonome_model::treatment::InvariantKind;
use holonome_model::treatment::penalty::{MonitoredQuantity, Penalty};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Distances by which a start was moved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// Euclidean distance of the positions.
    pub position: f64,
    /// Euclidean distance of the momenta.
    pub momentum: f64,
}

/// Constraints g of a penalised model, weighted so that ½ω²|g|² is the penalty, and their rates G
/// H_p + g_t, compiled for evaluation at single states.
#[derive(Clone)]
pub struct SlowManifold {
    degrees: usize,
    /// Time of the start.
    t0: f64,
    scales: Scales,
    omega: usize,
    /// √2 for a row that stands for two entries.
    weight: Vec<f64>,
    constraints: Rows,
    rates: Rows,
    /// ∂/∂t of the rates.
    rates_in_time: RowKernel,
    /// X_H of the model's own H.
    field: RowKernel,
    /// The entries (i, j ≤ i) of A = G M⁻¹Gᵀ.
    pattern: Vec<(u32, u32)>,
    ldl: SparseLdl,
}

/// Some functions with their Jacobian, compiled.
#[derive(Clone)]
struct Rows {
    values: RowKernel,
    jacobian: RowKernel,
    pattern: Arc<Pattern>,
}

impl Rows {
    fn new(derived: Differentiated, parameters: &[f64]) -> Rows {
        Rows {
            values: compile(&derived.values, parameters),
            jacobian: compile(&derived.jacobian, parameters),
            pattern: Arc::new(derived.pattern),
        }
    }

    /// Columns and entries of a row of the Jacobian.
    fn row<'a>(
        &'a self,
        entries: &'a [f64],
        row: usize,
    ) -> impl Iterator<Item = (usize, f64)> + 'a {
        self.pattern.row(row).values(entries).map(|(column, entry)| (column as usize, entry))
    }
}

fn compile(program: &RowProgram, parameters: &[f64]) -> RowKernel {
    RowKernel::new(program, parameters, backend(), BLOCK)
}

fn evaluate(kernel: &RowKernel, outputs: usize, t: f64, x: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; outputs];
    kernel.run(t, x, &mut out, &mut vec![0.0; kernel.work_len()]);
    out
}

/// The derivatives of g and of its rates at one state. Rows are weighted.
struct At {
    gradient: Vec<f64>,
    rate_gradient: Vec<f64>,
}

/// Maximum number of Newton iterations.
const ITERATIONS: usize = 50;

/// Largest change that counts as rounding.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// The Euclidean norm.
fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Largest component of a step, in units of the state's own size.
fn in_units(step: &[f64], units: &[f64]) -> f64 {
    step.iter().zip(units).fold(0.0f64, |s, (v, unit)| s.max((v / unit).abs()))
}

/// True if Newton's iteration ends with a step of this size after one of size `last`: at rounding,
/// which may exceed its smallest unit.
fn is_rounding(size: f64, last: f64) -> bool {
    size <= ROUNDING || (size <= 1e-12 && size >= last)
}

/// A time in which the state changes little along a field, for a difference; `None` at rest.
fn short_time(x: &[f64], field: &[f64]) -> Option<f64> {
    let speed = norm(field);
    (speed > 0.0).then(|| 1e-4 * norm(x) / speed)
}

/// Pivots up to this value, of a matrix with a unit diagonal, belong to redundant constraints.
const DEPENDENT: f64 = 1e-12;

impl Parametric for Rows {
    fn rebind(&mut self, parameters: &[f64]) {
        self.values.rebind(parameters);
        self.jacobian.rebind(parameters);
    }
}

impl Parametric for SlowManifold {
    fn rebind(&mut self, parameters: &[f64]) {
        self.constraints.rebind(parameters);
        self.rates.rebind(parameters);
        self.rates_in_time.rebind(parameters);
        self.field.rebind(parameters);
    }
}

impl SlowManifold {
    /// Slow manifold of a penalised model.
    pub fn new(model: &Model, penalty: &Penalty) -> SlowManifold {
        let (n, parameters) = (model.degrees(), &model.parameter_values);
        let of = |kind: InvariantKind| {
            penalty.monitored().filter(move |monitored| monitored.group.kind == kind)
        };
        let derived = |kind| {
            let list = of(kind)
                .map(|MonitoredQuantity { functional, kept, .. }| (functional, kept))
                .collect();
            Rows::new(Differentiated::of(model.dimension(), list), parameters)
        };
        let (constraints, rates) =
            (derived(InvariantKind::Constraint), derived(InvariantKind::Hidden(1)));
        let mut pieces = Vec::new();
        let mut first = 0;
        for MonitoredQuantity { functional, kept, .. } in of(InvariantKind::Hidden(1)) {
            let place =
                |output: usize| kept.binary_search(&output).ok().map(|k| (first + k) as u32);
            pieces.extend(RowProgram::time_derivatives(functional, &place));
            first += kept.len();
        }
        let in_time = RowProgram::new(model.dimension(), first, pieces);
        let field = RowProgram::hamiltonian_field(&penalty.hamiltonian, n);
        let field = RowProgram::new(model.dimension(), model.dimension(), field);
        let multiplicities = of(InvariantKind::Constraint)
            .flat_map(|monitored| monitored.group.members.rows().collect::<Vec<_>>());
        let pattern = pattern(&constraints, &rates, n);
        SlowManifold {
            degrees: n,
            t0: model.t0,
            scales: Scales::by(backend(), model),
            omega: penalty.omega,
            weight: multiplicities.map(|(_, multiplicity)| multiplicity.sqrt()).collect(),
            ldl: SparseLdl::new(constraints.pattern.count(), &pattern),
            constraints,
            rates,
            rates_in_time: compile(&in_time, parameters),
            field: compile(&field, parameters),
            pattern,
        }
    }

    /// Largest v of all constraints at (t, x), with v² = ½|q̇ᵀg''q̇|/m: for a rod the relative
    /// velocity of the points that it joins, over √m. The mass m is the largest |∇g|²/∇gᵀM⁻¹∇g of
    /// all constraints, for rods the harmonic mean of the masses that they join. So ωh²v does not
    /// depend on the unit of mass.
    pub fn speed(&self, t: f64, x: &[f64]) -> f64 {
        self.speed_along((t, x), &evaluate(&self.field, x.len(), t, x)[..self.degrees])
    }

    /// The larger [`SlowManifold::speed`] of the start and a time later, if the forces stay as they
    /// are at the start.
    pub fn speed_within(&mut self, time: f64, x: &[f64]) -> f64 {
        let lambda = self.multipliers(self.t0, x);
        let field = self.constrained_field(x, &lambda);
        let along = |dt: f64| {
            let there: Vec<f64> = x.iter().zip(&field).map(|(x, v)| x + dt * v).collect();
            evaluate(&self.field, x.len(), self.t0 + dt, &there)
        };
        let Some(dt) = short_time(x, &field) else { return 0.0 };
        let (ahead, behind) = (along(dt), along(-dt));
        let later = |i: usize| field[i] + time * (ahead[i] - behind[i]) / (2.0 * dt);
        let later: Vec<f64> = (0..self.degrees).map(later).collect();
        let start = (self.t0, x);
        self.speed_along(start, &field[..self.degrees]).max(self.speed_along(start, &later))
    }

    /// Largest v at (t, x) for these velocities, by a second difference, which is exact for
    /// quadratic constraints.
    fn speed_along(&self, (t, x): (f64, &[f64]), velocity: &[f64]) -> f64 {
        let speed = norm(velocity);
        if speed == 0.0 {
            return 0.0;
        }
        let dt = 1e-3 * norm(&x[..self.degrees]).max(f64::MIN_POSITIVE) / speed;
        let side = |dt: f64| {
            let mut there = x.to_vec();
            there.iter_mut().zip(velocity).for_each(|(x, v)| *x += dt * v);
            evaluate(&self.constraints.values, self.constraints.pattern.count(), t, &there)
        };
        let (behind, here, ahead) = (side(-dt), side(0.0), side(dt));
        let sides = behind.iter().zip(&here).zip(&ahead);
        let curvature =
            sides.map(|((behind, here), ahead)| (ahead - 2.0 * here + behind).abs() / (dt * dt));
        (0.5 * curvature.fold(0.0, f64::max) * self.inverse_mass(t, x)).sqrt()
    }

    /// Least ∇gᵀM⁻¹∇g/|∇g|² of all constraints, 0 if all gradients vanish.
    fn inverse_mass(&self, t: f64, x: &[f64]) -> f64 {
        let at = self.at(t, x);
        let mut velocity = vec![0.0; self.degrees];
        let of = |row: usize| {
            let moves =
                || self.rates.row(&at.rate_gradient, row).filter(|(c, _)| *c >= self.degrees);
            moves().for_each(|(c, v)| velocity[c - self.degrees] = v);
            let gradient = || self.constraints.row(&at.gradient, row);
            let own: f64 = gradient().map(|(c, d)| d * velocity[c]).sum();
            let square: f64 = gradient().map(|(_, d)| d * d).sum();
            moves().for_each(|(c, _)| velocity[c - self.degrees] = 0.0);
            own / square
        };
        // A gradient that vanishes says nothing of its mass.
        let least = (0..self.weight.len())
            .map(of)
            .filter(|inverse| *inverse > 0.0)
            .fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 0.0 }
    }

    /// Move a start onto the slow manifold for these parameters.
    ///
    /// # Errors
    /// If Newton's iteration does not converge, in words.
    pub fn put(&self, parameters: &[f64], x: &mut [f64]) -> Result<Moved, String> {
        self.rebound(parameters).move_onto(parameters[self.omega], x)
    }

    fn move_onto(mut self, omega: f64, x: &mut [f64]) -> Result<Moved, String> {
        let (start, m) = (x.to_vec(), self.weight.len());
        self.move_positions(x, &vec![0.0; m])?;
        self.move_momenta(x, &vec![0.0; m]);
        let lambda = self.multipliers(self.t0, x);
        let slope = self.slope(x, &lambda);
        let scaled = |list: &[f64]| list.iter().map(|v| v / (omega * omega)).collect::<Vec<f64>>();
        self.move_positions(x, &scaled(&lambda))?;
        self.move_momenta(x, &scaled(&slope));
        let distance = |range: std::ops::Range<usize>| {
            range.map(|i| (x[i] - start[i]).powi(2)).sum::<f64>().sqrt()
        };
        Ok(Moved { position: distance(0..self.degrees), momentum: distance(self.degrees..x.len()) })
    }

    /// Multipliers of the constrained motion at (t, x), λ of ṗ = −H_q − Gᵀλ: A λ = ∇h·X_H + h_t.
    pub fn multipliers(&mut self, t: f64, x: &[f64]) -> Vec<f64> {
        let (at, m) = (self.at(t, x), self.weight.len());
        let field = evaluate(&self.field, x.len(), t, x);
        let mut right = evaluate(&self.rates_in_time, m, t, x);
        for (i, (right, weight)) in right.iter_mut().zip(&self.weight).enumerate() {
            let row = self.rates.row(&at.rate_gradient, i);
            *right = *right * weight + row.map(|(c, d)| d * field[c]).sum::<f64>();
        }
        self.solve(&at, &right)
    }

    /// Diagonal of A = G M⁻¹Gᵀ and a bound of its largest eigenvalue, at the start.
    pub fn stiffness(&self, x: &[f64]) -> (Vec<f64>, f64) {
        let a = self.matrix(&self.at(self.t0, x));
        let mut diagonal = vec![0.0; self.weight.len()];
        let mut sums = vec![0.0; self.weight.len()];
        for (&(i, j), v) in self.pattern.iter().zip(&a) {
            sums[i as usize] += v.abs();
            match i == j {
                true => diagonal[i as usize] = *v,
                false => sums[j as usize] += v.abs(),
            }
        }
        (diagonal, sums.into_iter().fold(0.0, f64::max))
    }

    /// Field of the constrained motion at the time of the start: X_H with the forces −Gᵀλ.
    fn constrained_field(&self, x: &[f64], lambda: &[f64]) -> Vec<f64> {
        let gradient = self.entries(&self.constraints, self.t0, x);
        let mut field = evaluate(&self.field, x.len(), self.t0, x);
        for (i, lambda) in lambda.iter().enumerate() {
            for (c, d) in self.constraints.row(&gradient, i) {
                field[self.degrees + c] -= lambda * d;
            }
        }
        field
    }

    /// λ̇ along the constrained motion, by a central difference: its error is some 1e-8 of λ̇.
    fn slope(&mut self, x: &[f64], lambda: &[f64]) -> Vec<f64> {
        let field = self.constrained_field(x, lambda);
        let Some(dt) = short_time(x, &field) else { return vec![0.0; lambda.len()] };
        let mut side = |dt: f64| {
            let there: Vec<f64> = x.iter().zip(&field).map(|(x, v)| x + dt * v).collect();
            self.multipliers(self.t0 + dt, &there)
        };
        let (ahead, behind) = (side(dt), side(-dt));
        ahead.iter().zip(&behind).map(|(a, b)| (a - b) / (2.0 * dt)).collect()
    }

    /// Move q along M⁻¹Gᵀ to where g has the values `target`.
    fn move_positions(&mut self, x: &mut [f64], target: &[f64]) -> Result<(), String> {
        let scale = self.scales.units(x);
        let mut last = f64::INFINITY;
        for _ in 0..ITERATIONS {
            let g = self.values(&self.constraints, self.t0, x);
            let missing: Vec<f64> = g.iter().zip(target).map(|(g, target)| g - target).collect();
            let at = self.at(self.t0, x);
            let mu = self.solve(&at, &missing);
            let mut step = vec![0.0; self.degrees];
            for (i, mu) in mu.iter().enumerate() {
                for (c, d) in
                    self.rates.row(&at.rate_gradient, i).filter(|(c, _)| *c >= self.degrees)
                {
                    step[c - self.degrees] += mu * d;
                }
            }
            x.iter_mut().zip(&step).for_each(|(x, step)| *x -= step);
            // In units of the state's own size.
            let size = in_units(&step, &scale);
            if is_rounding(size, last) {
                return Ok(());
            }
            if !size.is_finite() {
                break;
            }
            last = size;
        }
        Err(format!(
            "Newton's iteration onto the slow manifold does not converge (its last step is {last:.1e} of the state's size): the constraints give way"
        ))
    }

    /// Move p along Gᵀ to where the rates G H_p + g_t have the values `target`.
    fn move_momenta(&mut self, x: &mut [f64], target: &[f64]) {
        let scale = self.scales.units(x);
        let mut last = f64::INFINITY;
        // Linear in p for a quadratic kinetic energy; further iterations reduce rounding.
        for _ in 0..4 {
            let rate = self.values(&self.rates, self.t0, x);
            let missing: Vec<f64> = rate.iter().zip(target).map(|(h, target)| h - target).collect();
            if missing.iter().all(|&missing| missing == 0.0) {
                return;
            }
            let at = self.at(self.t0, x);
            let mut step = vec![0.0; self.degrees];
            for (i, nu) in self.solve(&at, &missing).into_iter().enumerate() {
                for (c, d) in self.constraints.row(&at.gradient, i) {
                    step[c] += nu * d;
                }
            }
            x[self.degrees..].iter_mut().zip(&step).for_each(|(p, step)| *p -= step);
            let size = in_units(&step, &scale[self.degrees..]);
            if is_rounding(size, last) {
                return;
            }
            last = size;
        }
    }

    /// Values of these functions, weighted.
    fn values(&self, rows: &Rows, t: f64, x: &[f64]) -> Vec<f64> {
        let mut values = evaluate(&rows.values, self.weight.len(), t, x);
        values.iter_mut().zip(&self.weight).for_each(|(v, weight)| *v *= weight);
        values
    }

    /// Derivatives of these functions, weighted.
    fn entries(&self, rows: &Rows, t: f64, x: &[f64]) -> Vec<f64> {
        let mut entries = evaluate(&rows.jacobian, rows.pattern.nonzeros(), t, x);
        for (row, weight) in rows.pattern.rows().zip(&self.weight) {
            entries[row.range()].iter_mut().for_each(|v| *v *= weight);
        }
        entries
    }

    fn at(&self, t: f64, x: &[f64]) -> At {
        let [gradient, rate_gradient] =
            [&self.constraints, &self.rates].map(|rows| self.entries(rows, t, x));
        At { gradient, rate_gradient }
    }

    /// Entries of A: ∂(rate i)/∂p · G_j, which is G_i H_pp G_jᵀ.
    fn matrix(&self, at: &At) -> Vec<f64> {
        let mut velocity = vec![0.0; self.degrees];
        let mut entries = Vec::with_capacity(self.pattern.len());
        let mut spread = u32::MAX;
        for &(i, j) in &self.pattern {
            if i != spread {
                for (row, put) in [(spread, false), (i, true)] {
                    if row == u32::MAX {
                        continue;
                    }
                    let row = self.rates.row(&at.rate_gradient, row as usize);
                    for (c, v) in row.filter(|(c, _)| *c >= self.degrees) {
                        velocity[c - self.degrees] = if put { v } else { 0.0 };
                    }
                }
                spread = i;
            }
            entries.push(
                self.constraints.row(&at.gradient, j as usize).map(|(c, v)| v * velocity[c]).sum(),
            );
        }
        entries
    }

    /// y of least norm with A y = `right`.
    fn solve(&mut self, at: &At, right: &[f64]) -> Vec<f64> {
        let a = self.matrix(at);
        let mut scale = vec![0.0; right.len()];
        for (&(i, j), v) in self.pattern.iter().zip(&a) {
            if i == j && *v > 0.0 {
                scale[i as usize] = 1.0 / v.sqrt();
            }
        }
        let scaled = |(&(i, j), v): (&(u32, u32), &f64)| v * scale[i as usize] * scale[j as usize];
        let unit: Vec<f64> = self.pattern.iter().zip(&a).map(scaled).collect();
        if self.ldl.factor(&unit, DEPENDENT) > 0 {
            return self.solve_redundant(&a, right);
        }
        let mut y: Vec<f64> = right.iter().zip(&scale).map(|(b, s)| b * s).collect();
        self.ldl.solve(&mut y);
        y.iter().zip(&scale).map(|(y, s)| y * s).collect()
    }

    /// Solution for a singular A: y ← y + (A + εD)⁻¹(b − A y) stays in the range of A if D is the
    /// identity, so it tends to the solution of least norm; the part of an eigenvalue σ shrinks by
    /// ε/(ε + σ) each time.
    fn solve_redundant(&mut self, a: &[f64], right: &[f64]) -> Vec<f64> {
        const SHIFT: f64 = 1e-5;
        let largest = self
            .pattern
            .iter()
            .zip(a)
            .filter(|((i, j), _)| i == j)
            .fold(0.0, |s, (_, v)| f64::max(s, *v));
        if largest == 0.0 {
            return vec![0.0; right.len()];
        }
        let shifted =
            |(&(i, j), v): (&(u32, u32), &f64)| if i == j { v + SHIFT * largest } else { *v };
        let shifted: Vec<f64> = self.pattern.iter().zip(a).map(shifted).collect();
        self.ldl.factor(&shifted, 0.0);
        let mut y = vec![0.0; right.len()];
        for _ in 0..ITERATIONS {
            let mut change = right.to_vec();
            for (&(i, j), v) in self.pattern.iter().zip(a) {
                change[i as usize] -= v * y[j as usize];
                if i != j {
                    change[j as usize] -= v * y[i as usize];
                }
            }
            self.ldl.solve(&mut change);
            y.iter_mut().zip(&change).for_each(|(y, change)| *y += change);
            let size = |v: &[f64]| v.iter().fold(0.0f64, |s, v| s.max(v.abs()));
            if size(&change) <= ROUNDING * size(&y) {
                break;
            }
        }
        y
    }
}

/// Possible entries of A, row by row: pairs of constraints that share a coordinate, directly or
/// through the mass matrix.
fn pattern(constraints: &Rows, rates: &Rows, degrees: usize) -> Vec<(u32, u32)> {
    let mut holders: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for (i, row) in (0..).zip(constraints.pattern.rows()) {
        row.columns().for_each(|c| holders.entry(c).or_default().push(i));
    }
    let mut pattern = Vec::new();
    for (i, row) in (0..).zip(rates.pattern.rows()) {
        let velocities = row.columns().filter_map(|c| c.checked_sub(degrees as u32));
        let met = velocities.filter_map(|c| holders.get(&c)).flatten().copied();
        let mut row: Vec<u32> = met.filter(|&j| j < i).chain([i]).collect();
        row.sort_unstable();
        row.dedup();
        pattern.extend(row.into_iter().map(|j| (i, j)));
    }
    pattern
}
