//! `feedback`: the field plus a term that attracts to the level set F = F₀ of the
//! invariants,
//!
//! ẋ = X − κ DF⁺ΔF,   DF⁺ = W DFᵀ(DF W DFᵀ + ε diag)⁻¹,   ΔF = F(x) − F₀,
//!
//! so that ΔF decays at the rate κ whatever the invariants' scales. W holds the
//! squared scale of every vector of the state at the start of the run. With gains K
//! the term is that of the papers, DFᵀ K ΔF.
//!
//! For models for which the formula of DF⁺ would be long it is one sparse solve.
//! Rows of DF are scaled to unit length in the metric W first. The matrix is then
//! symmetric, positive and has a unit diagonal, so it is eliminated without
//! pivoting; the dense rows of H and of the integrals come last.

use crate::scales::{Kept, Role, Scales};
use crate::system::{Invariants, System};
use crate::treatment::normal_equations::{SMALL, length};
use holonome_linear::dense::REGULARISATION;
use holonome_linear::unpivoted::Unpivoted;

/// Plan of the term for one sparsity pattern of DF.
#[derive(Clone, Debug)]
pub struct FeedbackTerm {
    /// True for rows that are held.
    held: Vec<bool>,
    /// Shift of the diagonal of every row.
    shift: Vec<f64>,
    solver: Unpivoted,
    /// Entries below the diagonal are sums of products of two entries of DF.
    products: Vec<Product>,
    diagonal: Vec<u32>,
    nonzeros: usize,
}

#[derive(Clone, Copy, Debug)]
struct Product {
    factors: [u32; 2],
    /// Slots of the entry and of its mirror image.
    places: [u32; 2],
}

/// The numbers of a feedback term that do not change along a run.
#[derive(Clone, Copy, Debug)]
pub struct FeedbackNumbers<'a> {
    /// F₀, of length m: 0 for constraints.
    pub targets: &'a [f64],
    /// κ.
    pub rate: f64,
    /// √W of every component of the state.
    pub roots: &'a [f64],
}

impl FeedbackTerm {
    /// Plan for these invariants.
    pub fn new(invariants: &Invariants) -> FeedbackTerm {
        let count = invariants.count;
        let mut by_column: Vec<(u32, u32, u32)> = Vec::with_capacity(invariants.nonzeros());
        for (row, of) in (0..).zip(invariants.pattern.rows()) {
            by_column.extend(of.entries().map(|(at, column)| (column as u32, row, at as u32)));
        }
        by_column.sort_unstable();
        let mut pairs = Vec::new();
        for column in by_column.chunk_by(|a, b| a.0 == b.0) {
            for (k, &(_, i, a)) in column.iter().enumerate() {
                pairs.extend(column[..k].iter().map(|&(_, j, b)| (i, j, [a, b])));
            }
        }
        pairs.sort_unstable();
        let mut entries: Vec<(u32, u32)> = pairs.iter().map(|&(i, j, _)| (i, j)).collect();
        entries.dedup();
        entries.extend_from_within(..);
        let half = entries.len() / 2;
        entries[half..].iter_mut().for_each(|(i, j)| std::mem::swap(i, j));
        entries.extend((0..count as u32).map(|i| (i, i)));
        let solver = Unpivoted::new(count, &entries);
        let product =
            |(i, j, factors)| Product { factors, places: [solver.place(i, j), solver.place(j, i)] };
        FeedbackTerm {
            held: invariants.corrected_rows(),
            shift: (0..count)
                .map(|i| {
                    if count <= SMALL || i >= invariants.constraints { REGULARISATION } else { 0.0 }
                })
                .collect(),
            products: pairs.into_iter().map(product).collect(),
            diagonal: (0..count as u32).map(|i| solver.place(i, i)).collect(),
            nonzeros: invariants.nonzeros(),
            solver,
        }
    }

    /// Length of the scratch of [`FeedbackTerm::subtract`].
    pub fn work_len(&self) -> usize {
        2 * self.held.len() + self.nonzeros + self.solver.values() + self.solver.work_len()
    }

    /// Subtract the term from the field in `dx`; `values` are F, and `jacobian` the nonzeros of DF.
    pub fn subtract(
        &self,
        invariants: &Invariants,
        (values, jacobian): (&[f64], &[f64]),
        numbers: FeedbackNumbers,
        dx: &mut [f64],
        work: &mut [f64],
    ) {
        let count = self.held.len();
        if count == 0 {
            return;
        }
        let (right, work) = work.split_at_mut(count);
        let (scale, work) = work.split_at_mut(count);
        let (unit, work) = work.split_at_mut(self.nonzeros);
        for (row, (of, scale)) in invariants.pattern.rows().zip(&mut *scale).enumerate() {
            for (at, column) in of.entries() {
                unit[at] = jacobian[at] * numbers.roots[column];
            }
            let norm = length(&unit[of.range()]);
            // A row of length 0 has no term. NaN stays.
            *scale = if self.held[row] && norm != 0.0 { 1.0 / norm } else { 0.0 };
            unit[of.range()]
                .iter_mut()
                .for_each(|entry| *entry = if *scale == 0.0 { 0.0 } else { *entry * *scale });
            right[row] =
                if *scale == 0.0 { 0.0 } else { (values[row] - numbers.targets[row]) * *scale };
        }
        let (matrix, work) = work.split_at_mut(self.solver.values());
        matrix.fill(0.0);
        for (&place, shift) in self.diagonal.iter().zip(&self.shift) {
            matrix[place as usize] = 1.0 + shift;
        }
        for product in &self.products {
            let [a, b] = product.factors.map(|at| unit[at as usize]);
            product.places.iter().for_each(|&place| matrix[place as usize] += a * b);
        }
        self.solver.solve(matrix, right, work);
        for (row, &mu) in invariants.pattern.rows().zip(&*right) {
            let push = numbers.rate * mu;
            for (at, column) in row.entries() {
                dx[column] -= push * (unit[at] * numbers.roots[column]);
            }
        }
    }
}

/// S² of the vectors at the start of a motion, by which rates and pulls are measured: those of the
/// error norm, and for a momentum at least what the force makes of it along the size of its
/// position, S_p² ≥ m |ṗ| S_q. So a body that starts at rest has a scale of momenta. 0 for a vector
/// without any scale.
pub fn start_scales(system: &dyn System, t: f64, x: &[f64]) -> Vec<f64> {
    let vectors = system.vectors();
    let count = vectors.count();
    let (mut masses, mut work) = (vec![0.0; count], vec![0.0; system.work_len()]);
    system.masses(t, x, &mut masses, &mut work);
    let kept = Kept { sizes: true, weights: false, lagged: false };
    let mut scales = Scales::new(vectors, kept, masses, x);
    scales.renew_norms(vectors, 0.0);
    // The floors of momenta follow them.
    scales.norms.truncate(vectors.count());
    let (mut squares, speeds) = (scales.norms, speeds(system, t, x));
    for family in vectors.families().iter().filter(|family| family.role == Role::Momentum) {
        for momentum in family.vectors.clone() {
            // Momenta are in the order of their positions.
            let Some(position) = momentum.checked_sub(count / 2) else { continue };
            let floor = scales.masses[momentum] * (speeds[momentum] * squares[position]).sqrt();
            if floor.is_finite() {
                squares[momentum] = squares[momentum].max(floor);
            }
        }
    }
    squares
}

/// Weights W of the Gauss–Newton form at the rate κ for a run that starts at `x`: [`start_scales`],
/// and for a vector without a scale the distance that it moves in the time 1/κ.
pub fn metric(system: &dyn System, t: f64, x: &[f64], rate: f64) -> Vec<f64> {
    let mut squares = start_scales(system, t, x);
    for (square, speed) in squares.iter_mut().zip(speeds(system, t, x)) {
        let moved = speed / (rate * rate);
        if *square == 0.0 && moved.is_finite() {
            *square = moved;
        }
    }
    squares
}

/// |ẋ_b|² of every vector, 0 where the field is not a number.
fn speeds(system: &dyn System, t: f64, x: &[f64]) -> Vec<f64> {
    let (mut dx, mut work) = (vec![0.0; x.len()], vec![0.0; system.work_len()]);
    system.motion(t, x, &mut dx, &mut work);
    let mut squares = vec![0.0; system.vectors().count()];
    system.vectors().squares(&dx, &mut squares);
    squares.iter_mut().filter(|square| square.is_nan()).for_each(|square| *square = 0.0);
    squares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use crate::scales::Vectors;
    use crate::system::{Group, GroupKind};

    /// Invariants with `constraints` rows over neighbouring components and two dense rows, and
    /// random numbers.
    fn case(constraints: usize) -> (Invariants, Vec<f64>, Vec<f64>, Vec<f64>) {
        let n = 2 * constraints + 4;
        let mut invariants =
            Invariants { count: constraints + 2, constraints, ..Invariants::none() };
        for row in 0..constraints {
            invariants.push_row((2 * row..2 * row + 4).map(|column| column as u32));
        }
        for _ in 0..2 {
            invariants.push_row(0..n as u32);
        }
        invariants.groups =
            vec![Group::rows("all", GroupKind::Integral, 0..constraints as u32 + 2)];
        let noise = Noise::new(9, constraints as u32);
        let numbers = |count: usize, which| {
            (0..count as u64).map(|i| noise.normal(i, which)).collect::<Vec<f64>>()
        };
        let roots = numbers(n, 2).into_iter().map(f64::exp).collect();
        let (jacobian, values) = (numbers(invariants.nonzeros(), 0), numbers(constraints + 2, 1));
        (invariants, jacobian, values, roots)
    }

    /// Pendulum of mass 2 and length 3 in a field of gravity 5, as it falls from rest beside a body
    /// at the origin.
    #[test]
    fn bodies_at_rest_have_the_scales_of_what_moves_them() {
        struct Falling(Vectors);
        impl System for Falling {
            fn dim(&self) -> usize {
                4
            }
            fn field(&self, _t: f64, x: &[f64], dx: &mut [f64], _work: &mut [f64]) {
                dx.copy_from_slice(&[x[2] / 2.0, x[3] / 2.0, -10.0 * (x[0] / 3.0), 0.25]);
            }
            fn vectors(&self) -> &Vectors {
                &self.0
            }
            fn masses(&self, _t: f64, _x: &[f64], masses: &mut [f64], _work: &mut [f64]) {
                masses.fill(2.0);
            }
            fn field_derivative(
                &self,
                _t: f64,
                _x: &[f64],
                _v: &[f64],
                _out: &mut [f64],
                _work: &mut [f64],
            ) {
            }
        }
        let mut vectors = Vectors::default();
        for role in [Role::Position, Role::Position, Role::Momentum, Role::Momentum] {
            vectors.push(role, 1, 1);
        }
        let system = Falling(vectors);
        let at_rest = start_scales(&system, 0.0, &[3.0, 0.0, 0.0, 0.0]);
        // S² = m |ṗ| S_q = 2·10·3; the other position has the floor by mass, 1e-12·9.
        assert_eq!((at_rest[0], at_rest[2]), (9.0, 60.0));
        assert!((at_rest[1] / 9e-12 - 1.0).abs() < 1e-14, "{at_rest:?}");
        // A momentum that is larger than what the force makes of it keeps its own size.
        assert_eq!(start_scales(&system, 0.0, &[3.0, 0.0, 100.0, 0.0])[2], 1e4);
        // Where nothing has a size, a moving vector has that of the distance it moves in the time
        // 1/κ.
        let nothing = [0.0; 4];
        assert_eq!(start_scales(&system, 0.0, &nothing), [0.0; 4]);
        assert_eq!(metric(&system, 0.0, &nothing, 0.5), [0.0, 0.0, 0.0, 0.25]);
        assert_eq!(metric(&system, 0.0, &nothing, 0.0), [0.0; 4]);
    }

    #[test]
    fn every_row_decays_at_the_rate() {
        for constraints in [3, 80] {
            let (invariants, jacobian, values, roots) = case(constraints);
            let term = FeedbackTerm::new(&invariants);
            let targets = vec![0.25; invariants.count];
            let numbers = FeedbackNumbers { targets: &targets, rate: 3.0, roots: &roots };
            let (mut dx, mut work) = (vec![0.0; roots.len()], vec![f64::NAN; term.work_len()]);
            term.subtract(&invariants, (&values, &jacobian), numbers, &mut dx, &mut work);
            for row in 0..invariants.count {
                let rate: f64 = invariants
                    .row(row)
                    .entries()
                    .map(|(at, column)| jacobian[at] * dx[column])
                    .sum();
                // ε over the least eigenvalue, which is above 1e-3 for these rows of unit length.
                let size: f64 = invariants
                    .row(row)
                    .entries()
                    .map(|(at, column)| (jacobian[at] * roots[column]).powi(2))
                    .sum::<f64>()
                    .sqrt();
                let off = (rate + 3.0 * (values[row] - 0.25)).abs() / size;
                assert!(off < 1e-4, "{constraints} row {row}: {off:e}");
            }
        }
    }

    #[test]
    fn powers_of_two_of_units_change_no_bit() {
        let (invariants, jacobian, values, roots) = case(80);
        let term = FeedbackTerm::new(&invariants);
        let targets = vec![0.0; invariants.count];
        let unit = |k: usize, seed: i32| 2f64.powi((k as i32 * seed) % 37 - 18);
        let find = |scaled: bool| {
            let of = |k: usize, seed| if scaled { unit(k, seed) } else { 1.0 };
            let (mut jacobian, mut values, mut roots) =
                (jacobian.clone(), values.clone(), roots.clone());
            for row in 0..invariants.count {
                values[row] *= of(row, 11);
                for (at, column) in invariants.row(row).entries() {
                    jacobian[at] *= of(row, 11) / of(column, 5);
                }
            }
            roots.iter_mut().enumerate().for_each(|(k, root)| *root *= of(k, 5));
            let numbers = FeedbackNumbers { targets: &targets, rate: 3.0, roots: &roots };
            let (mut dx, mut work) = (vec![0.0; roots.len()], vec![0.0; term.work_len()]);
            term.subtract(&invariants, (&values, &jacobian), numbers, &mut dx, &mut work);
            dx
        };
        for (k, (a, b)) in find(false).into_iter().zip(find(true)).enumerate() {
            assert_eq!(a * unit(k, 5), b, "component {k}");
        }
    }

    #[test]
    fn rows_without_a_gradient_or_out_of_what_is_held_do_nothing() {
        let (mut invariants, mut jacobian, mut values, roots) = case(80);
        jacobian[invariants.row(7).range()].fill(0.0);
        (values[7], values[81]) = (1e300, f64::NAN);
        invariants.groups = vec![
            Group::rows("held", GroupKind::Integral, 0..81),
            Group::rows("monitored", GroupKind::Integral, 81..82).monitored_only(),
        ];
        let term = FeedbackTerm::new(&invariants);
        let targets = vec![0.0; invariants.count];
        let numbers = FeedbackNumbers { targets: &targets, rate: 1.0, roots: &roots };
        let (mut dx, mut work) = (vec![0.0; roots.len()], vec![0.0; term.work_len()]);
        term.subtract(&invariants, (&values, &jacobian), numbers, &mut dx, &mut work);
        assert!(dx.iter().all(|dx| dx.is_finite() && dx.abs() < 1e6), "{dx:?}");
    }
}
