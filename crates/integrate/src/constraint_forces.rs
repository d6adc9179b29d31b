//! The Dirac extension of a large model, in numbers: the forces that keep holonomic constraints g and their hidden
//! constraints h first integrals, also away from the set where they vanish.
//!
//! X = X_H + Σ a_j X_{h_j} + Σ b_j X_{g_j} with Dg X + g_t = 0 and Dh X = 0. As {g_i, g_j} = 0, the first gives a and the
//! second b, both by the sparse matrix A_ij = Σ ∂h_i/∂p_c ∂g_j/∂q_c = G H_pp Gᵀ: Aᵀ a = −h, and A b = Dh (X_H + Σ a_j X_{h_j}).

use crate::system::Invariants;
use holonome_linear::unpivoted::Unpivoted;

/// The plan for one sparsity of DF.
#[derive(Clone, Debug)]
pub struct ConstraintForces {
    degrees: usize,
    /// Number of constraints; as many hidden ones follow them in F.
    count: usize,
    solver: Unpivoted,
    /// A is the sum of products of two entries of DF, at a place for A and one for Aᵀ.
    products: Vec<Product>,
}

#[derive(Clone, Copy, Debug)]
struct Product {
    factors: [u32; 2],
    place: u32,
    transposed: u32,
}

impl ConstraintForces {
    /// For invariants that begin with constraints on the first `degrees` components of the state, and their hidden
    /// constraints.
    pub fn new(invariants: &Invariants, degrees: usize) -> ConstraintForces {
        let count = invariants.constraints / 2;
        // Constraints by coordinate.
        let mut list: Vec<(u32, u32, u32)> = Vec::new();
        for j in 0..count {
            list.extend(invariants.row(j).map(|at| (invariants.column[at], j as u32, at as u32)));
        }
        list.sort_unstable();
        let mut products = Vec::new();
        for i in 0..count {
            for at in invariants.row(count + i) {
                let Some(c) = (invariants.column[at] as usize).checked_sub(degrees) else { continue };
                let first = list.partition_point(|&(column, ..)| (column as usize) < c);
                let same = list[first..].iter().take_while(|&&(column, ..)| column as usize == c);
                products.extend(same.map(|&(_, j, other)| (i as u32, j, [at as u32, other])));
            }
        }
        let entries: Vec<(u32, u32)> = products.iter().flat_map(|&(i, j, _)| [(i, j), (j, i)]).collect();
        let solver = Unpivoted::new(count, &entries);
        let product = |(i, j, factors): (u32, u32, [u32; 2])| Product {
            factors,
            place: solver.place(i, j),
            transposed: solver.place(j, i),
        };
        let products = products.into_iter().map(product).collect();
        ConstraintForces { degrees, count, solver, products }
    }

    /// Length of the scratch of [`ConstraintForces::add`].
    pub fn work_len(&self) -> usize {
        self.solver.values() + self.solver.work_len() + self.count
    }

    /// Adds the forces to X_H in `dx`; `values` are F, and `jacobian` the nonzeros of DF.
    pub fn add(&self, invariants: &Invariants, values: &[f64], jacobian: &[f64], dx: &mut [f64], work: &mut [f64]) {
        let (right, work) = work.split_at_mut(self.count);
        for (right, hidden) in right.iter_mut().zip(&values[self.count..2 * self.count]) {
            *right = -hidden;
        }
        self.solve(jacobian, |product| product.transposed, right, work);
        for (j, &a) in right.iter().enumerate() {
            self.move_along(invariants, self.count + j, jacobian, a, dx);
        }
        for (i, right) in right.iter_mut().enumerate() {
            let row = invariants.row(self.count + i);
            *right = row.map(|at| jacobian[at] * dx[invariants.column[at] as usize]).sum();
        }
        self.solve(jacobian, |product| product.place, right, work);
        for (j, &b) in right.iter().enumerate() {
            self.move_along(invariants, j, jacobian, b, dx);
        }
    }

    fn solve(&self, jacobian: &[f64], place: impl Fn(&Product) -> u32, right: &mut [f64], work: &mut [f64]) {
        let (values, work) = work.split_at_mut(self.solver.values());
        values.fill(0.0);
        for product in &self.products {
            let [a, b] = product.factors.map(|at| jacobian[at as usize]);
            values[place(product) as usize] += a * b;
        }
        self.solver.solve(values, right, work);
    }

    /// dx + c X_f for row f of F.
    fn move_along(&self, invariants: &Invariants, f: usize, jacobian: &[f64], c: f64, dx: &mut [f64]) {
        for at in invariants.row(f) {
            let column = invariants.column[at] as usize;
            match column.checked_sub(self.degrees) {
                Some(q) => dx[q] += c * jacobian[at],
                None => dx[column + self.degrees] -= c * jacobian[at],
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{Group, GroupKind};

    /// A pendulum on a rod of length 1 in the plane: g = |q|² − 1, h = 2 q·p, and off the set of both.
    #[test]
    fn both_constraints_stay_constant_everywhere() {
        let invariants = Invariants {
            count: 2,
            row_start: vec![0, 2, 6],
            column: vec![0, 1, 0, 1, 2, 3],
            constraints: 2,
            groups: vec![Group::rows("rod", GroupKind::Constraint, 0..2)],
        };
        let forces = ConstraintForces::new(&invariants, 2);
        let [q, p] = [[1.1, -0.3], [0.4, 0.7]];
        let values = [q[0] * q[0] + q[1] * q[1] - 1.0, 2.0 * (q[0] * p[0] + q[1] * p[1])];
        let jacobian = [2.0 * q[0], 2.0 * q[1], 2.0 * p[0], 2.0 * p[1], 2.0 * q[0], 2.0 * q[1]];
        // H = |p|²/2 + q_y
        let mut dx = [p[0], p[1], 0.0, -1.0];
        forces.add(&invariants, &values, &jacobian, &mut dx, &mut vec![f64::NAN; forces.work_len()]);
        let rate = |row: usize| -> f64 {
            invariants.row(row).map(|at| jacobian[at] * dx[invariants.column[at] as usize]).sum()
        };
        // Sums of four products of numbers below 3.
        assert!(rate(0).abs() < 1e-14 && rate(1).abs() < 1e-14, "{} {}", rate(0), rate(1));
        // dH = p·(dp) + dq_y: H is a first integral of the extension, too.
        assert!((p[0] * dx[2] + p[1] * dx[3] + dx[1]).abs() < 1e-14);
    }
}
