//! Springs between points, and from the origin to a point, found from the energy.
//!
//! A spring is recognised by its effect: along the line between its ends the energy is a parabola of
//! their distance. Charges and molecules attract and repel each other otherwise.

use holonome_model::elaborate::model::Model;
use holonome_model::functional::Functional;

/// Largest number of points among which springs are searched.
const MOST: usize = 40;

/// Displacements along the line between two points, in parts of their distance.
const STEPS: [f64; 2] = [0.2, 0.5];

/// Relative deviation from a parabola that is rounding.
const NEAR: f64 = 1e-7;

/// Points of a model by the first component of each and the number of its components.
pub(super) struct Springs<'m> {
    model: &'m Model,
    energy: &'m Functional,
    points: &'m [(usize, usize)],
}

impl<'m> Springs<'m> {
    /// Springs among points; `None` if the model has no energy, or too many points.
    pub fn new(model: &'m Model, points: &'m [(usize, usize)]) -> Option<Springs<'m>> {
        let energy = model.own_hamiltonian().filter(|_| points.len() <= MOST)?;
        Some(Springs { model, energy, points })
    }

    /// Pairs of points with springs between them, and points with one from the origin.
    pub fn all(&self) -> Vec<(usize, Option<usize>)> {
        let mut found = Vec::new();
        for a in 0..self.points.len() {
            found.extend((0..a).filter(|&b| self.joins(a, b)).map(|b| (a, Some(b))));
        }
        for a in 0..self.points.len() {
            let is_free = !found.iter().any(|&(c, d)| c == a || d == Some(a));
            if is_free && self.holds(a) {
                found.push((a, None));
            }
        }
        found
    }

    fn at(&self, a: usize) -> &[f64] {
        let (first, count) = self.points[a];
        &self.model.initial[first..first + count]
    }

    /// Energy with these points moved by vectors.
    fn moved(&self, moves: &[(usize, &[f64])]) -> f64 {
        let mut x = self.model.initial.clone();
        for (a, by) in moves {
            let (first, count) = self.points[*a];
            x[first..first + count].iter_mut().zip(*by).for_each(|(x, by)| *x += by);
        }
        self.energy.evaluate(self.model.t0, &x, &self.model.parameter_values)[0]
    }

    /// True if the energy of two points is a parabola of their distance. With V of the distance d, the
    /// mixed difference by moves of v along the line is 2 V(d) − V(d − v) − V(d + v) = −k v².
    fn joins(&self, a: usize, b: usize) -> bool {
        if self.points[a].1 != self.points[b].1 {
            return false;
        }
        let line: Vec<f64> = self.at(a).iter().zip(self.at(b)).map(|(x, y)| y - x).collect();
        let here = self.moved(&[]);
        let strength = STEPS.map(|step| {
            let v: Vec<f64> = line.iter().map(|x| step * x).collect();
            let both = self.moved(&[(a, &v), (b, &v)]);
            let [one, other] = [self.moved(&[(a, &v)]), self.moved(&[(b, &v)])];
            ((one + other - both - here) / (step * step), one.abs() + other.abs() + here.abs())
        });
        is_parabola(strength)
    }

    /// True if the energy of a point is k (|q| − l)²/2 with a length l, besides what is linear: along
    /// the radius d its second differences are k, across it those of k h² − 2 k l (√(d² + h²) − d).
    fn holds(&self, a: usize) -> bool {
        let q = self.at(a).to_vec();
        let radius = q.iter().map(|x| x * x).sum::<f64>().sqrt();
        if radius == 0.0 || q.len() < 2 {
            return false;
        }
        let second = |direction: &[f64], step: f64| {
            let [there, back] = [step, -step].map(|step| {
                let v: Vec<f64> = direction.iter().map(|x| step * x).collect();
                self.moved(&[(a, &v)])
            });
            let here = self.moved(&[]);
            (there + back - 2.0 * here, there.abs() + back.abs() + here.abs())
        };
        let along = STEPS.map(|step| {
            let (difference, size) = second(&q, step);
            (difference / (step * step), size)
        });
        if !is_parabola(along) {
            return false;
        }
        // A vector across, as long as the radius.
        let (i, j) =
            if q.len() == 2 || q[0].abs() + q[1].abs() > 0.1 * radius { (0, 1) } else { (1, 2) };
        let mut across = vec![0.0; q.len()];
        (across[i], across[j]) = (-q[j], q[i]);
        let size = across.iter().map(|x| x * x).sum::<f64>().sqrt() / radius;
        let k = along[0].0;
        // Length of the spring in that of the radius, from each of two steps.
        let lengths = STEPS.map(|step| {
            let h = step * size;
            let longer = (1.0 + h * h).sqrt() - 1.0;
            (k * h * h - second(&across, step).0) / (2.0 * k * longer)
        });
        lengths[0] > 1e-3 && (lengths[0] - lengths[1]).abs() <= 1e-5 * lengths[0]
    }
}

/// True if strengths at two steps are one, positive and no rounding of the numbers from which they
/// come.
fn is_parabola([(one, size), (other, _)]: [(f64, f64); 2]) -> bool {
    let rounding = 1e-9 * size;
    one > rounding && (one - other).abs() <= NEAR * one + rounding
}
