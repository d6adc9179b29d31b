//! Tests of the normal equations: dense and bordered systems, dependent rows, stacked Jacobians.

use super::*;
use crate::system::{Group, GroupKind};
use proptest::prelude::*;

/// A chain of `c` constraints on 2(c + 1) coordinates, each over four of them, and `b` full rows.
fn bordered(c: usize, b: usize) -> (Invariants, usize) {
    let n = 2 * (c + 1) + b;
    let mut invariants = Invariants { count: c + b, constraints: c, ..Invariants::none() };
    for row in 0..c {
        invariants.push_row((2 * row..2 * row + 4).map(|column| column as u32));
    }
    for _ in 0..b {
        invariants.push_row(0..n as u32);
    }
    invariants.groups = vec![Group::rows("all", GroupKind::Constraint, 0..(c + b) as u32)];
    (invariants, n)
}

/// Random numbers in (−1, 1).
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let noise = crate::noise::Noise::new(seed, 0);
    (0..count as u64).map(|i| 2.0 * noise.uniform(i, 0) - 1.0).collect()
}

/// DF·v.
fn apply(invariants: &Invariants, jacobian: &[f64], v: &[f64]) -> Vec<f64> {
    let entry =
        |row| invariants.row(row).entries().map(|(p, column)| jacobian[p] * v[column]).sum();
    (0..invariants.count).map(entry).collect()
}

/// DF·DF⁺·r − r, the part of a residual that is left.
fn left_over(
    invariants: &Invariants,
    n: usize,
    jacobian: &[f64],
    r: &[f64],
    how: Regularisation,
) -> Vec<f64> {
    let mut equations = NormalEquations::new(invariants, n, how);
    equations.factor(jacobian);
    let mut mu = r.to_vec();
    equations.solve(&mut mu);
    let mut x = vec![0.0; n];
    equations.subtract_transpose(jacobian, &mu, &mut x);
    apply(invariants, jacobian, &x).iter().zip(r).map(|(f, r)| f + r).collect()
}

fn largest(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |max, v| crate::vector::max_or_nan(max, v.abs()))
}

#[test]
fn dense_and_bordered_paths_remove_the_residual() {
    for (c, b) in [(3, 2), (0, 5), (80, 0), (80, 3), (300, 7)] {
        let (invariants, n) = bordered(c, b);
        let jacobian = numbers(invariants.nonzeros(), 3);
        let r = numbers(c + b, 4);
        // Without a shift to round-off: σmin² of these random rows is above 1e-4, so 1e-16/1e-4
        // with room for sums of 300 terms. With it, up to ε/(σ² + ε) = 1e-4 of the residual is
        // left.
        let rest = left_over(&invariants, n, &jacobian, &r, Regularisation::LeastNorm);
        assert!(largest(&rest) < 1e-10, "{c} {b} {}", largest(&rest));
        let rest = left_over(&invariants, n, &jacobian, &r, Regularisation::Shift(1e-8));
        assert!(largest(&rest) < 1e-4, "{c} {b} {}", largest(&rest));
    }
}

#[test]
fn large_constraint_blocks_are_not_shifted() {
    // The long modes of a chain: σmin² of 2000 difference rows x_{i+1} − x_i, scaled to unit
    // length, is 1 − cos(π/2001) = 1.2e-6. A shift of 1e-4 (exaggerated, to be seen) would leave
    // nearly all of that mode; the block is factored without, so nothing is left beyond round-off
    // 1e-16/1.2e-6.
    let c = 2000;
    let mut invariants = Invariants { count: c, constraints: c, ..Invariants::none() };
    for row in 0..c as u32 {
        invariants.push_row([row, row + 1]);
    }
    invariants.groups = vec![Group::rows("rods", GroupKind::Constraint, 0..c as u32)];
    let jacobian: Vec<f64> = (0..2 * c).map(|p| if p % 2 == 0 { -1.0 } else { 1.0 }).collect();
    let r: Vec<f64> =
        (0..c).map(|i| ((i as f64 + 0.5) / c as f64 * std::f64::consts::PI).sin()).collect();
    let rest = left_over(&invariants, c + 1, &jacobian, &r, Regularisation::Shift(1e-4));
    assert!(largest(&rest) < 1e-8, "{}", largest(&rest));
}

/// Lengths of `c` spins of three components, then `b` full rows, no constraints.
fn spins(c: usize, b: usize) -> (Invariants, usize) {
    let n = 3 * c;
    let mut invariants = Invariants { count: c + b, constraints: 0, ..Invariants::none() };
    for row in 0..c as u32 {
        invariants.push_row(3 * row..3 * row + 3);
    }
    for _ in 0..b {
        invariants.push_row(0..n as u32);
    }
    invariants.groups = vec![Group::rows("all", GroupKind::Integral, 0..(c + b) as u32)];
    (invariants, n)
}

#[test]
fn many_integrals_of_single_members_take_no_dense_matrix() {
    for (c, b) in [(80, 0), (80, 2), (50, 2)] {
        let (invariants, n) = spins(c, b);
        let jacobian = numbers(invariants.nonzeros(), 3);
        let r = numbers(c + b, 4);
        let equations = NormalEquations::new(&invariants, n, Regularisation::LeastNorm);
        assert_eq!(equations.first, if c > SMALL { c } else { 0 });
        // As for bordered constraints above; the lengths of rows of three numbers are above 0.01.
        let rest = left_over(&invariants, n, &jacobian, &r, Regularisation::LeastNorm);
        assert!(largest(&rest) < 1e-10, "{c} {b} {}", largest(&rest));
        let rest = left_over(&invariants, n, &jacobian, &r, Regularisation::Shift(1e-8));
        assert!(largest(&rest) < 1e-4, "{c} {b} {}", largest(&rest));
    }
    // Without full rows the matrix of unit rows is the identity, up to the shift: the innovation is
    // the mean square of r over the rows' lengths, and a limit scales all multipliers alike.
    let (invariants, n) = spins(100, 0);
    let (jacobian, r) = (numbers(300, 5), numbers(100, 6));
    let mut equations = NormalEquations::new(&invariants, n, Regularisation::Shift(1e-8));
    equations.factor(&jacobian);
    let square: f64 = (0..100).map(|i| (r[i] / equations.gradient(&jacobian, i)).powi(2)).sum();
    let [mut free, mut limited] = [r.clone(), r.clone()];
    let [constraints, found] = equations.solve_limited(&mut free, f64::INFINITY);
    assert_eq!(constraints, 0.0);
    assert!((found / (square / 100.0) - 1.0).abs() < 1e-7, "{found} {square}");
    equations.solve_limited(&mut limited, 0.5 * found.sqrt());
    for (limited, free) in limited.iter().zip(&free) {
        assert!((limited - 0.5 * free).abs() < 1e-12 * free.abs(), "{limited} {free}");
    }
}

/// The innovation does not depend on which rows are sparse: with 64 lengths all rows are dense, and
/// with one more, of a row that takes no part, the first ones are sparse.
#[test]
fn the_innovation_is_that_of_the_dense_matrix() {
    let innovation = |c: usize| {
        let (invariants, n) = spins(c, 2);
        let mut jacobian = numbers(3 * 64, 5);
        jacobian.resize(3 * c, 0.0);
        for k in 0..2 {
            jacobian.extend(numbers(3 * 64, 7 + k));
            jacobian.resize(3 * c + (k as usize + 1) * n, 0.0);
        }
        let mut r = numbers(64, 6);
        r.resize(c, 0.0);
        r.extend([0.3, -0.2]);
        let mut equations = NormalEquations::new(&invariants, n, Regularisation::Shift(1e-8));
        // A row that vanishes counts among all rows unless it is not active.
        (64..c).for_each(|row| equations.set_active(&[row], false));
        equations.factor(&jacobian);
        let found = equations.solve_limited(&mut r, 0.1);
        r.drain(64..c);
        (equations.first, found, r)
    };
    let ((dense, one, a), (sparse, other, b)) = (innovation(64), innovation(65));
    assert_eq!((dense, sparse), (0, 65));
    assert!((one[1] / other[1] - 1.0).abs() < 1e-10, "{one:?} {other:?}");
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() < 1e-10 * (1.0 + a.abs()), "{a} {b}");
    }
}

#[test]
fn vanishing_redundant_and_monitored_rows_do_no_harm() {
    for (c, b) in [(4, 2), (80, 3)] {
        for how in [Regularisation::Shift(1e-8), Regularisation::LeastNorm] {
            let (mut invariants, n) = bordered(c, b);
            let mut jacobian = numbers(invariants.nonzeros(), 5);
            let mut r = numbers(c + b, 6);
            // A constraint and a bordering row without gradient, with residuals that could do
            // damage.
            jacobian[invariants.row(1).range()].fill(0.0);
            jacobian[invariants.row(c).range()].fill(0.0);
            (r[1], r[c]) = (1e300, f64::NAN);
            // The last row is monitored only.
            let last = (c + b - 1) as u32;
            invariants.groups = vec![
                Group::rows("corrected", GroupKind::Integral, 0..last),
                Group::rows("monitored", GroupKind::Integral, last..last + 1).monitored_only(),
            ];
            let rest = left_over(&invariants, n, &jacobian, &r, how);
            for i in (0..c + b - 1).filter(|&i| i != 1 && i != c) {
                assert!(rest[i].abs() < 1e-4, "{c} {b} {how:?} row {i}: {}", rest[i]);
            }
            assert!(rest[c + b - 1].abs() > 1e-3, "a monitored row must be left alone");
        }
    }
}

proptest! {
    #[test]
    fn dependent_rows_give_the_least_norm(a in prop::collection::vec(-1.0..1.0f64, 12), w in prop::collection::vec(-1.0..1.0f64, 6)) {
        // Rows 0 and 1 are independent (almost surely), row 2 is their sum: rank 2. A consistent
        // residual r = DF·w must be removed by a move in the row space, which is the least one.
        let jacobian: Vec<f64> = (0..18).map(|p| if p < 12 { a[p] } else { a[p - 12] + a[p - 6] }).collect();
        let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
        let dot: f64 = (0..6).map(|k| a[k] * a[k + 6]).sum();
        prop_assume!(norm(&a[..6]) * norm(&a[6..]) - dot * dot > 1e-2 && norm(&jacobian[12..]) > 1e-2);
        let group = vec![Group::rows("I", GroupKind::Integral, 0..3)];
        let invariants = Invariants::dense(6, 3, 0, group);
        let mut equations = NormalEquations::new(&invariants, 6, Regularisation::LeastNorm);
        equations.factor(&jacobian);
        let mut mu = apply(&invariants, &jacobian, &w);
        equations.solve(&mut mu);
        let mut x = vec![0.0; 6];
        equations.subtract_transpose(&jacobian, &mu, &mut x);
        // Consistent: DF(w + x) = 0, up to round-off over the assumed sin² ≥ 1e-2/36 of the rows'
        // angle.
        let rest = apply(&invariants, &jacobian, &w.iter().zip(&x).map(|(w, x)| w + x).collect::<Vec<_>>());
        prop_assert!(largest(&rest) < 1e-10);
        // Least: no longer than w, of which −x is the orthogonal projection.
        prop_assert!(norm(&x) <= norm(&w) * (1.0 + 1e-9));
    }
}

#[test]
fn stacked_equations_add_two_matrices() {
    for (c, b) in [(3, 2), (80, 3)] {
        let (invariants, n) = bordered(c, b);
        let [left, right] = [5, 6].map(|seed| numbers(invariants.nonzeros(), seed));
        let mut equations = NormalEquations::stacked(&invariants, n, Regularisation::LeastNorm);
        let mut both = vec![0.0; 2 * left.len()];
        stack(&invariants, &left, &right, &mut both);
        equations.factor(&both);
        let r = numbers(c + b, 7);
        let mut mu = r.clone();
        equations.solve(&mut mu);
        // (D₀D₀ᵀ + D₁D₁ᵀ) μ, whose condition is no worse than that of one matrix alone (see above).
        let mut sum = r.clone();
        for jacobian in [&left, &right] {
            let mut x = vec![0.0; n];
            equations_of(&invariants, n).add_transpose(jacobian, &mu, &mut x);
            equations_of(&invariants, n).subtract_product(jacobian, &x, &mut sum);
        }
        assert!(largest(&sum) < 1e-10, "{c} {b} {}", largest(&sum));
    }
}

fn equations_of(invariants: &Invariants, n: usize) -> NormalEquations {
    NormalEquations::new(invariants, n, Regularisation::LeastNorm)
}

#[test]
fn stacked_equations_leave_out_the_rows_that_the_first_left_out() {
    // The third row is the sum of the others at the start, and independent of them at the end.
    let invariants = Invariants::dense(3, 3, 0, vec![Group::rows("I", GroupKind::Integral, 0..3)]);
    let (left, right) = (
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0],
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.1],
    );
    let mut alone = equations_of(&invariants, 3);
    alone.factor(&left);
    let mut equations = NormalEquations::stacked(&invariants, 3, Regularisation::LeastNorm);
    equations.keep_rows_of(&alone);
    let mut both = [0.0; 18];
    stack(&invariants, &left, &right, &mut both);
    equations.factor(&both);
    let mut mu = [1.0, 2.0, 3.0];
    equations.solve(&mut mu);
    assert_eq!(mu.iter().filter(|mu| **mu == 0.0).count(), 1, "{mu:?}");
}

#[test]
fn lengths_do_not_under_or_overflow() {
    // Each of the three operations and the two literals rounds once.
    assert!((length(&[3e-200, 4e-200]) / 5e-200 - 1.0).abs() < 5.0 * f64::EPSILON);
    assert!((length(&[3e200, 4e200]) / 5e200 - 1.0).abs() < 5.0 * f64::EPSILON);
    assert_eq!(length(&[3.0, 4.0]), 5.0);
    assert_eq!(length(&[0.0, 0.0]), 0.0);
    assert!(length(&[f64::NAN, 0.0]).is_nan());
}
