//! Step of a [`StiffCollocation`] method, whose stages are found by a simplified Newton iteration:
//! with the Jacobian of the field at the start of the step, in the basis in which the linear systems
//! fall apart (HW IV.8). The Jacobian and its factors are made anew for every attempt: formulas make
//! it as cheap as an evaluation or two, and nothing but the last polynomial is carried to the next
//! step.

mod jacobian;

use crate::controller::{StepControl, Yardstick};
use crate::cost::Cost;
use crate::plan::{Plan, Stepping};
use crate::scales::Vectors;
use crate::scheme::map::{Allowance, Estimate, Facts, NoStep, StepFrom, StepMap, Workspace};
use crate::scheme::stiff_collocation::{StiffCollocation, product};
use crate::system::System;
use crate::vector::irregular;
use holonome_arithmetic::{Real, square};
use holonome_linear::resolvent::{Factors, Resolvent};
use jacobian::FieldJacobian;

/// Largest number of iterations of an attempt: a shorter step is better than more of them.
const MOST_ITERATIONS: u32 = 7;

/// Largest number of iterations of an equal step, which has to be made as it is.
const MOST_OF_EQUAL: u32 = 50;

/// Number of iterations from which on those of an equal step have to contract.
const SETTLED: u32 = 5;

/// Contraction from which on an iteration is taken to lead nowhere.
const SLOWEST: f64 = 0.99;

/// Part of the tolerance that iterations may leave; less at tight tolerances.
const PART: f64 = 0.03;

/// Change of an equal step's stages, relative to the scales, below which one that does not shrink
/// any more is due to rounding.
const ROUNDING: f64 = 1e-12;

/// Largest ratio of a step to the one before from which its iteration starts.
const LONGEST_LEAP: f64 = 16.0;

/// Ratio of what rounding makes of an error estimate to the rounding of the field that it filters: the
/// estimate has weights up to 10, and an iteration rounds several times.
const ROUNDINGS: f64 = 64.0;

/// Name of the equations of a failed iteration.
const STAGES: &str = "a stage of the step";

/// Vectors that an attempt keeps: the field at its start, its estimate, the squares of the scales.
const FIELD: usize = 0;
const ERROR: usize = 1;
const SCALES: usize = 2;

/// Step over a system. Its memory is `Memory`.
pub struct StiffMap<'a> {
    method: &'static StiffCollocation,
    system: &'a dyn System,
    jacobian: FieldJacobian<'a>,
    resolvent: Resolvent,
    facts: Facts,
    /// Estimate that is accepted; `None` for equal steps.
    tolerance: Option<f64>,
}

/// Numbers that a step carries to the next one.
struct Memory<'m> {
    /// Stages Z, one after the other.
    z: &'m mut [f64],
    /// Length of the step, 0 if there was none.
    length: &'m mut f64,
    /// Sum of the changes to come, in units of the last one.
    rest: &'m mut f64,
}

impl<'m> Memory<'m> {
    fn of(memory: &'m mut [f64]) -> Memory<'m> {
        let (z, numbers) = memory.split_at_mut(memory.len() - 2);
        let [length, rest] = numbers else { unreachable!("two numbers") };
        Memory { z, length, rest }
    }
}

/// Scratch of a step.
struct Scratch<'w> {
    jacobian: &'w mut [f64],
    real: Factors<'w, f64>,
    complex: Factors<'w, [f64; 2]>,
    /// Stages Z and W, and the field at them.
    z: &'w mut [f64],
    w: &'w mut [f64],
    fields: &'w mut [f64],
    /// Right-hand sides, and room to solve for them.
    right: &'w mut [f64],
    rights: &'w mut [[f64; 2]],
    ordered: &'w mut [f64],
    both_ordered: &'w mut [[f64; 2]],
    /// Scales of the components.
    spread: &'w mut [f64],
    /// Rounding of the state at the end of the step.
    rounding: &'w mut [f64],
    point: &'w mut [f64],
    rest: &'w mut [f64],
}

/// State of an iteration that has not converged.
struct Unsolved {
    iterations: u32,
    change: f64,
}

impl<'a> StiffMap<'a> {
    /// Step of `plan`'s method.
    pub fn new(
        method: &'static StiffCollocation,
        plan: &Plan,
        system: &'a dyn System,
    ) -> StiffMap<'a> {
        let jacobian = FieldJacobian::new(system);
        let control = StepControl::of_lower_order(method.order, method.estimate);
        StiffMap {
            method,
            system,
            resolvent: Resolvent::new(jacobian.pattern()),
            jacobian,
            facts: Facts {
                control: Some(control),
                equal_steps: Estimate::Known,
                errors: ERROR..ERROR + 1,
                end_field: None,
                ends_with_field: false,
            },
            tolerance: match &plan.stepping {
                Stepping::Adaptive(adaptive) => Some(control.tolerance(adaptive.rtol)),
                Stepping::Fixed(_) => None,
            },
        }
    }

    fn vectors(&self) -> &Vectors {
        self.system.vectors()
    }

    fn split<'w>(&self, work: &'w mut [f64]) -> Scratch<'w> {
        let (n, count) = (self.system.dim(), self.resolvent.factor_count());
        let mut rest = work;
        let mut take = |len: usize| {
            let (taken, behind) = std::mem::take(&mut rest).split_at_mut(len);
            rest = behind;
            taken
        };
        let jacobian = take(self.jacobian.pattern().nonzeros());
        let real = Factors { entries: take(count), exchanges: take(n) };
        let complex = Factors { entries: take(2 * count).as_chunks_mut().0, exchanges: take(n) };
        let (z, w, fields) = (take(3 * n), take(3 * n), take(3 * n));
        let (right, rights) = (take(n), take(2 * n).as_chunks_mut().0);
        let (ordered, both_ordered) = (take(n), take(2 * n).as_chunks_mut().0);
        let (spread, rounding, point) = (take(n), take(n), take(n));
        Scratch {
            jacobian,
            real,
            complex,
            z,
            w,
            fields,
            right,
            rights,
            ordered,
            both_ordered,
            spread,
            rounding,
            point,
            rest,
        }
    }

    /// Make the step: x₁, and the estimate of its error without its factor h. `kept` holds the field
    /// at its start and the squares of the vectors' scales.
    fn solve(
        &self,
        step: StepFrom,
        x1: &mut [f64],
        (kept, memory): (&mut [Vec<f64>], &mut [f64]),
        work: &mut [f64],
        cost: &mut Cost,
    ) -> Result<(), Unsolved> {
        let at = &mut self.split(work);
        let memory = &mut Memory::of(memory);
        if !self.factor(step, kept, at, cost) {
            return Err(Unsolved { iterations: 0, change: f64::NAN });
        }
        self.find_rounding(step.x, &mut kept[SCALES], at);
        let follows = *memory.length != 0.0 && step.h <= LONGEST_LEAP * *memory.length;
        let mut found = Err(Unsolved { iterations: 0, change: f64::NAN });
        // An equal step cannot be made shorter, and may converge from the straight start.
        for guesses in [true, false] {
            if guesses && !follows || !guesses && follows && self.tolerance.is_some() {
                continue;
            }
            self.start(step.h, memory, guesses, at);
            found = self.iterate(step, &mut kept[SCALES], memory, at, cost);
            if found.is_ok() {
                break;
            }
        }
        found?;
        self.estimate_error(step, kept, at, cost);
        let n = x1.len();
        for (x1, (x, z)) in x1.iter_mut().zip(step.x.iter().zip(&at.z[2 * n..])) {
            *x1 = x + z;
        }
        memory.z.copy_from_slice(at.z);
        *memory.length = step.h;
        Ok(())
    }

    /// Factor both linear systems; false if one is singular.
    fn factor(
        &self,
        StepFrom { t, h, x }: StepFrom,
        kept: &[Vec<f64>],
        at: &mut Scratch,
        cost: &mut Cost,
    ) -> bool {
        let scales = &kept[SCALES][..self.vectors().count()];
        cost.field += self.jacobian.compute((t, h, x), &kept[FIELD], scales, at.jacobian, at.rest);
        cost.hessian += 1;
        self.vectors().spread_roots(scales, at.spread);
        let [re, im] = self.method.complex;
        let (resolvent, point) = (&self.resolvent, &mut *at.point);
        resolvent.factor(self.method.real / h, at.jacobian, at.spread, &mut at.real, point)
            && resolvent.factor([re / h, im / h], at.jacobian, at.spread, &mut at.complex, point)
    }

    /// Find what the rounding of the field makes of the state, ε |J| |x| filtered as an error is, and
    /// raise the scales so that it counts for no error: forces that cancel at rest are rounding, and no
    /// shorter step is better.
    fn find_rounding(&self, x: &[f64], scales: &mut [f64], at: &mut Scratch) {
        for (i, row) in self.jacobian.pattern().rows().enumerate() {
            let terms: f64 = row.entries().map(|(p, j)| (at.jacobian[p] * x[j]).abs()).sum();
            at.rounding[i] = ROUNDINGS * f64::EPSILON * terms * irregular(i);
        }
        self.resolvent.solve(&at.real, at.rounding, at.ordered);
        let Some(tolerance) = self.tolerance else { return };
        for vector in 0..self.vectors().count() {
            let of = self.vectors().components_of(vector);
            let rounding = square(&at.rounding[of]) / (tolerance * tolerance);
            scales[vector] = scales[vector].max(rounding);
        }
    }

    /// Set the stages to the start of the iteration: the last polynomial, beyond its step, or 0.
    fn start(&self, h: f64, memory: &Memory, guesses: bool, at: &mut Scratch) {
        if !guesses {
            at.z.fill(0.0);
            at.w.fill(0.0);
            return;
        }
        let n = self.system.dim();
        let ratio = h / *memory.length;
        let weights = self.method.nodes.map(|c| {
            let [first, second, last] = self.method.polynomials(c.mul_add(ratio, 1.0));
            [first, second, last - 1.0]
        });
        for i in 0..n {
            let z = product(&weights, [0, 1, 2].map(|k| memory.z[k * n + i]));
            let w = product(&self.method.to_basis, z);
            for k in 0..3 {
                (at.z[k * n + i], at.w[k * n + i]) = (z[k], w[k]);
            }
        }
    }

    /// Iterate until the stages are found. `scales` of vectors that have none are raised to what
    /// moves in the step.
    fn iterate(
        &self,
        step: StepFrom,
        scales: &mut [f64],
        memory: &mut Memory,
        at: &mut Scratch,
        cost: &mut Cost,
    ) -> Result<(), Unsolved> {
        let adaptive = self.tolerance.is_some();
        let most = if adaptive { MOST_ITERATIONS } else { MOST_OF_EQUAL };
        let tolerance = self.tolerance.unwrap_or(1.0);
        let enough = (10.0 * f64::EPSILON / tolerance).max(PART.min(tolerance.sqrt()));
        // With nothing known before, the first change is not enough unless it is tiny.
        let mut rest = memory.rest.max(f64::EPSILON).rough_power(0.8);
        if *memory.length == 0.0 {
            rest = 1.0;
        }
        let (mut before, mut contraction) = (f64::INFINITY, f64::NAN);
        for iterations in 1..=most {
            let change = self.sweep(step, scales, at, cost) / tolerance;
            let lost = Unsolved { iterations, change };
            if !change.is_finite() {
                return Err(lost);
            }
            if iterations > 1 {
                let theta = change / before;
                contraction = if iterations == 2 { theta } else { (theta * contraction).sqrt() };
                rest = if contraction < 1.0 {
                    contraction / (1.0 - contraction)
                } else {
                    f64::INFINITY
                };
            }
            if adaptive {
                if rest * change <= enough || change == 0.0 {
                    *memory.rest = rest;
                    return Ok(());
                }
                let left = (iterations..most).fold(rest * change, |left, _| left * contraction);
                if contraction >= SLOWEST || iterations > 1 && left > enough {
                    return Err(lost);
                }
            } else {
                let rounds = change <= ROUNDING || is_rounding(step.x, at);
                if change <= f64::EPSILON || rounds && change >= before {
                    return Ok(());
                }
                if iterations > SETTLED && contraction >= SLOWEST {
                    return Err(lost);
                }
            }
            before = change;
        }
        Err(Unsolved { iterations: most, change: before })
    }

    /// Solve once for a change of W. Returns its size relative to the scales.
    fn sweep(&self, step: StepFrom, scales: &mut [f64], at: &mut Scratch, cost: &mut Cost) -> f64 {
        let (StepFrom { t, h, x }, n) = (step, step.x.len());
        for (k, c) in self.method.nodes.into_iter().enumerate() {
            let stage = k * n..(k + 1) * n;
            for (point, (x, z)) in at.point.iter_mut().zip(x.iter().zip(&at.z[stage.clone()])) {
                *point = x + z;
            }
            self.system.field(c.mul_add(h, t), at.point, &mut at.fields[stage], at.rest);
        }
        let (real, [re, im]) = (self.method.real / h, self.method.complex.map(|part| part / h));
        for i in 0..n {
            let [first, second, third] =
                product(&self.method.to_basis, [0, 1, 2].map(|k| at.fields[k * n + i]));
            let [u, v, w] = [0, 1, 2].map(|k| at.w[k * n + i]);
            at.right[i] = first - real * u;
            at.rights[i] = [second - (re * v - im * w), third - (im * v + re * w)];
        }
        self.resolvent.solve(&at.real, at.right, at.ordered);
        self.resolvent.solve(&at.complex, at.rights, at.both_ordered);
        cost.field += 3;
        cost.linear_solves += 2;
        for i in 0..n {
            let change = [at.right[i], at.rights[i][0], at.rights[i][1]];
            for k in 0..3 {
                at.w[k * n + i] += change[k];
            }
            let z = product(&self.method.from_basis, [0, 1, 2].map(|k| at.w[k * n + i]));
            (0..3).for_each(|k| at.z[k * n + i] = z[k]);
        }
        self.change(x, scales, at)
    }

    /// Mean size of the last change relative to the scales of the vectors, in the norm in which errors
    /// are measured.
    fn change(&self, x: &[f64], scales: &mut [f64], at: &Scratch) -> f64 {
        let (vectors, n) = (self.vectors(), x.len());
        let mut sum = 0.0;
        for (vector, scale) in scales[..vectors.count()].iter_mut().enumerate() {
            let of = vectors.components_of(vector);
            let end: f64 = of.clone().map(|i| (x[i] + at.z[2 * n + i]).powi(2)).sum();
            *scale = scale.max(end);
            let complex: f64 = at.rights[of.clone()].as_flattened().iter().map(|v| v * v).sum();
            let change = square(&at.right[of]) + complex;
            if change != 0.0 {
                sum += change / scale.max(f64::MIN_POSITIVE);
            }
        }
        (sum / (3 * vectors.count()).max(1) as f64).sqrt()
    }

    /// Estimate the error of the step (HW IV.8 (8.19)), and again where it is too large: the second
    /// estimate vanishes for components that decay at once (8.20).
    fn estimate_error(
        &self,
        step: StepFrom,
        kept: &mut [Vec<f64>],
        at: &mut Scratch,
        cost: &mut Cost,
    ) {
        let (StepFrom { t, h, x }, n) = (step, step.x.len());
        for i in 0..n {
            let [a, b, c] = self.method.error;
            let [u, v, w] = [0, 1, 2].map(|k| at.z[k * n + i]);
            // The part that does not change, in place of the last iteration's fields.
            at.fields[i] = (a * u + b * v + c * w) / h;
            at.right[i] = kept[FIELD][i] + at.fields[i];
        }
        self.resolvent.solve(&at.real, at.right, at.ordered);
        cost.linear_solves += 1;
        let (vectors, scales) = (self.vectors(), &kept[SCALES]);
        let of = |vector: usize| {
            let error = square(&at.right[vectors.components_of(vector)]);
            if error == 0.0 { 0.0 } else { error / scales[vector].max(f64::MIN_POSITIVE) }
        };
        let sum: f64 = (0..vectors.count()).map(of).sum();
        let error = (sum / vectors.count().max(1) as f64).sqrt();
        if self.tolerance.is_some_and(|tolerance| error > tolerance) {
            for (point, (x, e)) in at.point.iter_mut().zip(x.iter().zip(&*at.right)) {
                *point = x + e;
            }
            self.system.field(t, at.point, at.right, at.rest);
            at.right.iter_mut().zip(&at.fields[..n]).for_each(|(right, part)| *right += part);
            self.resolvent.solve(&at.real, at.right, at.ordered);
            cost.field += 1;
            cost.linear_solves += 1;
        }
        let vectors = self.vectors();
        for vector in 0..vectors.count() {
            let of = vectors.components_of(vector);
            let [error, rounding] =
                [&at.right[of.clone()], &at.rounding[of.clone()]].map(|v| square(v).sqrt());
            // NaN is kept.
            let counted = if error <= rounding { 0.0 } else { (error - rounding) / error };
            for i in of {
                kept[ERROR][i] = counted * at.right[i] / h;
            }
        }
    }
}

/// True if the last change of the stages is a few roundings of the state: at rest, where forces
/// cancel, components that are all rounding have no scale.
fn is_rounding(x: &[f64], at: &Scratch) -> bool {
    let largest = |v: &[f64]| v.iter().fold(0.0, |largest: f64, v| largest.max(v.abs()));
    let change = largest(at.right).max(largest(at.rights.as_flattened()));
    change <= 4.0 * f64::EPSILON * largest(x)
}

impl StepMap for StiffMap<'_> {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn stability(&self) -> Option<f64> {
        Some(f64::INFINITY)
    }

    fn vectors(&self) -> usize {
        3
    }

    fn work_len(&self) -> usize {
        let (n, count) = (self.system.dim(), self.resolvent.factor_count());
        self.jacobian.pattern().nonzeros() + 3 * count + 20 * n + self.jacobian.work_len()
    }

    fn memory_len(&self) -> usize {
        3 * self.system.dim() + 2
    }

    /// Note the scales with which the attempt's iteration is measured.
    fn length(&self, step: StepFrom, yardstick: Yardstick, workspace: &mut Workspace) -> f64 {
        let vectors = self.vectors();
        let (scales, h) = (&mut workspace.kept[SCALES], step.h);
        let scales = &mut scales[..vectors.count()];
        vectors.squares(step.x, scales);
        let (norms, floors) = yardstick.norms.split_at(vectors.count());
        let first_momentum = vectors.count() - floors.len();
        for (vector, (scale, &norm)) in scales.iter_mut().zip(norms).enumerate() {
            *scale = scale.max(norm);
            if vector >= first_momentum {
                *scale = scale.max(floors[vector - first_momentum] / (h * h));
            }
        }
        h
    }

    fn fixed_step(
        &self,
        step: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<(), NoStep> {
        let Workspace { kept, memory, cost, work } = workspace;
        // What moves in a step has the size of its motion, if it has no other.
        let vectors = self.vectors();
        for vector in 0..vectors.count() {
            let of = vectors.components_of(vector);
            let moved = step.h * step.h * square(&kept[FIELD][of.clone()]);
            kept[SCALES][vector] = square(&step.x[of]).max(moved);
        }
        self.solve(step, x1, (kept, memory), work, cost).map_err(
            |Unsolved { iterations, change }| NoStep::NotSolved {
                iterations,
                residual: change,
                equation: STAGES.to_string(),
            },
        )
    }

    fn estimate(&self, kept: &mut [Vec<f64>], out: &mut [f64]) {
        out.copy_from_slice(&kept[ERROR]);
    }

    fn attempt(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Allowance {
        let Workspace { kept, memory, cost, work } = workspace;
        if self.solve(step, x1, (kept, memory), work, cost).is_err() {
            x1.copy_from_slice(step.x);
            kept[ERROR].fill(f64::INFINITY);
        }
        Allowance::NONE
    }

    fn interpolate(&self, step: StepFrom, theta: f64, out: &mut [f64], workspace: &mut Workspace) {
        let (weights, n) = (self.method.polynomials(theta), step.x.len());
        let z = Memory::of(workspace.memory).z;
        for (i, out) in out.iter_mut().enumerate() {
            *out = (0..3).fold(step.x[i], |sum, k| weights[k].mul_add(z[k * n + i], sum));
        }
    }
}
