//! Rods between points, found from constraints.
//!
//! A rod is recognised by the effect of a constraint, not by its form. A scalar constraint on two
//! points is one on their distance if a common rotation and shift of all points leaves it
//! unchanged. A constraint s(|x − c|² − l²) on a single point holds it at a distance from c.

use holonome_model::elaborate::expression::{MOMENTUM, TIME};
use holonome_model::elaborate::model::{Model, Quantity};
use holonome_model::functional::Source;

/// A constraint on a distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rod {
    Between(u32, u32),
    To(u32, [f64; 3]),
}

/// Points of a model's state, by which rods are distinguished from other constraints.
pub(super) struct Rods<'m> {
    model: &'m Model,
    /// Point of each component of the state; `None` for other components.
    point_of: &'m [Option<u32>],
    /// First component of each point, and number of its components.
    points: Vec<(usize, usize)>,
    size: f64,
}

impl<'m> Rods<'m> {
    pub fn new(model: &'m Model, point_of: &'m [Option<u32>]) -> Rods<'m> {
        let mut points: Vec<(usize, usize)> = Vec::new();
        for (component, point) in point_of.iter().enumerate() {
            match point {
                Some(point) if *point as usize == points.len() => points.push((component, 1)),
                Some(point) => points[*point as usize].1 += 1,
                None => {}
            }
        }
        let at = |&(first, count): &(usize, usize)| &model.initial[first..first + count];
        let size = points.iter().flat_map(at).fold(0.0f64, |a, x| a.max(x.abs()));
        Rods { model, point_of, points, size: if size > 0.0 { size } else { 1.0 } }
    }

    /// The start, with all points moved to generic positions.
    pub fn scattered(&self, seed: f64) -> Vec<f64> {
        let mut x = self.model.initial.clone();
        for (k, &(first, count)) in self.points.iter().enumerate() {
            for c in 0..count {
                x[first + c] += 0.3 * self.size * (seed + 1.7 * k as f64 + 2.9 * c as f64).sin();
            }
        }
        x
    }

    /// All points moved alike: rotated about the origin, then shifted.
    fn moved(&self, x: &[f64], shift: f64) -> Vec<f64> {
        let mut y = x.to_vec();
        let (s, c) = 0.7f64.sin_cos();
        for &(first, count) in &self.points {
            let p = &mut y[first..first + count];
            (p[0], p[1]) = (c * p[0] - s * p[1], s * p[0] + c * p[1]);
            if count == 3 {
                (p[1], p[2]) = (c * p[1] - s * p[2], s * p[1] + c * p[2]);
            }
            p.iter_mut()
                .enumerate()
                .for_each(|(k, x)| *x += shift * self.size * (0.6 + 0.3 * k as f64));
        }
        y
    }

    fn values(&self, constraint: &Quantity, x: &[f64]) -> Vec<f64> {
        constraint.functional.evaluate(self.model.t0, x, &self.model.parameter_values)
    }

    /// Rod of each member of a constraint; `None` if it is not one.
    pub fn of(&self, constraint: &Quantity) -> Vec<Option<Rod>> {
        if constraint.shape.len() != 1 || constraint.depends & (MOMENTUM | TIME) != 0 {
            return vec![None; constraint.members];
        }
        let read = self.points_read(constraint);
        let x = self.scattered(0.4);
        let value = self.values(constraint, &x);
        let carried = self.values(constraint, &self.moved(&x, 1.0));
        let centres = Centres::new(self, constraint, &x, &value);
        // Squares of lengths cancel to rounding.
        let equal =
            |a: f64, b: f64, size: f64| (a - b).abs() <= 1e-9 * (a.abs().max(b.abs()).max(size));
        let rod = |output: usize| match read[output].as_deref()? {
            [a, b] => equal(value[output], carried[output], 0.0).then_some(Rod::Between(*a, *b)),
            [a] => Some(Rod::To(*a, centres.of(self, *a, output)?)),
            _ => None,
        };
        (0..constraint.members).map(rod).collect()
    }

    /// Points that each member reads; `None` if it reads something else.
    fn points_read(&self, constraint: &Quantity) -> Vec<Option<Vec<u32>>> {
        let mut read: Vec<Option<Vec<u32>>> = vec![Some(Vec::new()); constraint.functional.outputs];
        for term in &constraint.functional.terms {
            for row in term.table.each() {
                let all = &mut read[row.last() as usize];
                for (_, entry) in
                    term.slots.iter().zip(row.iter()).filter(|(slot, _)| **slot == Source::State)
                {
                    match (&mut *all, self.point_of[entry as usize]) {
                        (Some(points), Some(point)) if !points.contains(&point) => {
                            points.push(point)
                        }
                        (Some(_), Some(_)) | (None, _) => {}
                        (Some(_), None) => *all = None,
                    }
                }
            }
        }
        read.iter_mut().flatten().for_each(|points| points.sort_unstable());
        read
    }
}

/// Values of a constraint at points moved along each axis, and at others, which distinguish s(|x −
/// c|² − l²) from other functions.
struct Centres {
    x: Vec<f64>,
    step: f64,
    value: Vec<f64>,
    /// Values before and behind, along each axis.
    beside: Vec<[Vec<f64>; 2]>,
    other: (Vec<f64>, Vec<f64>),
}

impl Centres {
    fn new(rods: &Rods, constraint: &Quantity, x: &[f64], value: &[f64]) -> Centres {
        let step = 0.25 * rods.size;
        let dimension = rods.points.iter().map(|&(_, count)| count).max().unwrap_or(0);
        let along = |axis: usize, by: f64| {
            let mut y = x.to_vec();
            rods.points
                .iter()
                .filter(|&&(_, count)| axis < count)
                .for_each(|&(first, _)| y[first + axis] += by);
            rods.values(constraint, &y)
        };
        let beside = (0..dimension).map(|axis| [along(axis, -step), along(axis, step)]).collect();
        let y = rods.scattered(2.2);
        let there = rods.values(constraint, &y);
        Centres { x: x.to_vec(), step, value: value.to_vec(), beside, other: (y, there) }
    }

    /// Centre about which a member holds a point; `None` if it does not.
    fn of(&self, rods: &Rods, point: u32, output: usize) -> Option<[f64; 3]> {
        let (first, count) = rods.points[point as usize];
        let f = self.value[output];
        let [mut strength, mut centre] = [[0.0; 3]; 2];
        for axis in 0..count {
            let [before, behind] = [0, 1].map(|side| self.beside[axis][side][output]);
            strength[axis] = (behind + before - 2.0 * f) / (2.0 * self.step * self.step);
            centre[axis] =
                self.x[first + axis] - (behind - before) / (4.0 * strength[axis] * self.step);
            // A coordinate at the level of rounding is 0.
            if centre[axis].abs() < 1e-9 * rods.size {
                centre[axis] = 0.0;
            }
        }
        let s = strength[0];
        let square = |x: &[f64]| {
            (0..count).map(|axis| (x[first + axis] - centre[axis]).powi(2)).sum::<f64>()
        };
        let here = square(&self.x);
        let there = f + s * (square(&self.other.0) - here);
        let near = |a: f64, b: f64, size: f64| (a - b).abs() <= 1e-7 * size;
        let fits = s != 0.0
            && strength[..count].iter().all(|&other| near(s, other, s.abs()))
            && near(there, self.other.1[output], s.abs() * (here + rods.size * rods.size));
        fits.then(|| centre.map(|x| if x.is_finite() { rounded(x) } else { 0.0 }))
    }
}

/// Rounded to nine digits, so that equal centres are equal.
fn rounded(x: f64) -> f64 {
    format!("{x:.8e}").parse().unwrap_or(x)
}
