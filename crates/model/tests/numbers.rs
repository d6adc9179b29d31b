//! The small linear algebra of this half, numeric (`numeric`) and symbolic (`graph::linear`), against dense
//! solves written here.

use holonome_model::graph::linear::{Factors, Matrix};
use holonome_model::graph::{Graph, Node};
use holonome_model::numeric::{self, Gram, Points, Row};
use holonome_model::treatment::structure::evaluate;

/// Gaussian elimination with partial pivoting: the oracle.
fn solve(a: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let mut m: Vec<Vec<f64>> = a.iter().zip(b).map(|(r, &b)| r.iter().copied().chain([b]).collect()).collect();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| m[i][k].abs().total_cmp(&m[j][k].abs())).unwrap();
        m.swap(k, pivot);
        for i in k + 1..n {
            let f = m[i][k] / m[k][k];
            for j in k..=n {
                m[i][j] -= f * m[k][j];
            }
        }
    }
    let mut x = vec![0.0; n];
    for k in (0..n).rev() {
        x[k] = (m[k][n] - (k + 1..n).map(|j| m[k][j] * x[j]).sum::<f64>()) / m[k][k];
    }
    x
}

/// Sparse rows over `columns` columns, each entry there with probability `density`.
fn random_rows(rows: usize, columns: usize, density: f64, points: &mut Points) -> Vec<Row> {
    (0..rows)
        .map(|i| {
            let mut row: Row = Vec::new();
            for j in 0..columns {
                let v = points.draw();
                // At least one entry of its own, so that rows are independent more often than not.
                if j == i || (points.draw() + 1.0) / 2.0 < density {
                    row.push((j as u32, if j == i { 2.0 + v } else { v }));
                }
            }
            row
        })
        .collect()
}

fn dense(row: &Row, columns: usize) -> Vec<f64> {
    let mut d = vec![0.0; columns];
    row.iter().for_each(|&(j, v)| d[j as usize] = v);
    d
}

#[test]
fn sparse_products() {
    assert_eq!(numeric::dot(&[(0, 1.0), (3, 2.0), (7, 3.0)], &[(1, 5.0), (3, 4.0), (7, -1.0), (9, 1.0)]), 5.0);
    assert_eq!(numeric::dot(&[], &[(1, 5.0)]), 0.0);
}

#[test]
fn gram_systems_are_solved() {
    let mut points = Points::new(1);
    for (rows, density) in [(1, 0.5), (3, 1.0), (8, 0.1), (20, 0.05), (20, 0.5), (60, 0.02)] {
        let list = random_rows(rows, rows + 5, density, &mut points);
        let right: Vec<f64> = (0..rows).map(|_| points.draw()).collect();
        let matrix: Vec<Vec<f64>> = list.iter().map(|a| list.iter().map(|b| numeric::dot(a, b)).collect()).collect();
        let exact = solve(&matrix, &right);
        let largest = exact.iter().fold(0.0f64, |s, v| s.max(v.abs()));
        let in_order = Gram::in_order(&list);
        assert!(in_order.dependent().is_empty());
        let gram = Gram::new(&list, 0.0);
        assert!(gram.dependent().is_empty());
        let got = gram.solve(&right);
        // Rows are diagonally heavy: the condition stays below 1e5, and n² roundings of it below 1e-9 for most n.
        for ((a, b), c) in got.iter().zip(&exact).zip(in_order.solve(&right)) {
            assert!((a - b).abs() <= 1e-8 * largest && (c - b).abs() <= 1e-8 * largest, "{rows}: {a} {b} {c}");
        }
        // The residual does not feel the condition: y reproduces the right side to n roundings of its terms.
        for (row, r) in matrix.iter().zip(&right) {
            let (sum, size) = row.iter().zip(&got).fold((0.0, 0.0), |(s, z), (a, y)| (s + a * y, z + (a * y).abs()));
            assert!((sum - r).abs() <= 20.0 * rows as f64 * f64::EPSILON * (size + 1.0), "{rows}: {sum} {r}");
        }
    }
}

#[test]
fn dependent_rows_are_found_with_their_combination() {
    let mut points = Points::new(2);
    let mut list = random_rows(6, 9, 0.4, &mut points);
    // Row 6 = 2·row 1 − row 4; row 7 is independent; row 8 = row 7 again; row 9 is 0.
    let combine = |a: &Row, x: f64, b: &Row, y: f64| -> Row {
        let (a, b) = (dense(a, 9), dense(b, 9));
        (0..9).map(|j| (j as u32, x * a[j] + y * b[j])).filter(|e| e.1 != 0.0).collect()
    };
    list.push(combine(&list[1], 2.0, &list[4], -1.0));
    list.push(vec![(7, 1.0), (8, -2.0)]);
    list.push(vec![(7, 3.0), (8, -6.0)]);
    list.push(vec![]);
    let gram = Gram::in_order(&list);
    assert_eq!(gram.dependent(), [6, 8, 9]);
    assert_eq!(Gram::new(&list, 0.0).dependent().len(), 3);
    let norm = |k: usize| numeric::dot(&list[k], &list[k]).sqrt();
    let expected = [(1, 2.0 * norm(1) / norm(6)), (4, -norm(4) / norm(6))];
    let got = gram.combination(6);
    assert_eq!(got.iter().map(|c| c.0).collect::<Vec<_>>(), [1, 4]);
    for ((_, a), (_, b)) in got.iter().zip(expected) {
        // The pivots' conditions are moderate (above 1e-3): a few digits are lost.
        assert!((a - b).abs() < 1e-10, "{got:?} {expected:?}");
    }
    let twice = gram.combination(8);
    assert!(twice.len() == 1 && twice[0].0 == 7 && (twice[0].1 - 1.0).abs() < 1e-12, "{twice:?}");
    assert!(gram.combination(9).is_empty());
    // Dependent rows are asked for nothing.
    let y = gram.solve(&[1.0; 10]);
    assert_eq!([y[6], y[8], y[9]], [0.0; 3]);
    // Dependent is what is closer than an angle of 1e-6 to the span of the rows before.
    for (angle, found) in [(1e-5f64, vec![]), (1e-7, vec![1])] {
        let pair = Gram::in_order(&[vec![(0, 1.0)], vec![(0, 5.0 * angle.cos()), (1, 5.0 * angle.sin())]]);
        assert_eq!(pair.dependent(), found, "{angle}");
    }
}

#[test]
fn a_shift_is_added_to_unit_rows() {
    // Rows (3, 0) and (0, 4) are (1, 0) and (0, 1) when scaled: y = right/(1 + shift)/norm².
    let gram = Gram::new(&[vec![(0, 3.0)], vec![(1, 4.0)]], 0.25);
    let y = gram.solve(&[9.0, 16.0]);
    assert!((y[0] - 0.8).abs() < 4.0 * f64::EPSILON && (y[1] - 0.8).abs() < 4.0 * f64::EPSILON, "{y:?}");
}

#[test]
fn ranks_and_definiteness() {
    for (matrix, rows, columns, rank) in [
        (vec![1.0, 2.0, 2.0, 4.0], 2, 2, 1),
        (vec![1.0, 2.0, 2.0, 4.1], 2, 2, 2),
        (vec![0.0, 1.0, -1.0, 0.0], 2, 2, 2),
        (vec![0.0; 6], 2, 3, 0),
        (vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 3, 3, 2),
        (vec![1.0, 2.0, 3.0, 2.0, 4.0, 7.0], 2, 3, 2),
        (vec![1.0, 2.0, 2.0, 4.0, 3.0, 7.0], 3, 2, 2),
        (vec![1e-14, 0.0, 0.0, 1.0], 2, 2, 1),
        (vec![f64::NAN, 0.0, 0.0, 1.0], 2, 2, 0),
        // An antisymmetric 4 × 4 of rank 2: u ∧ v.
        (vec![0.0, 1.0, 2.0, 3.0, -1.0, 0.0, 1.0, 2.0, -2.0, -1.0, 0.0, 1.0, -3.0, -2.0, -1.0, 0.0], 4, 4, 2),
    ] {
        let got = numeric::rank(&matrix, rows, columns, 1e-10);
        assert!(got == rank || matrix[0].is_nan() && got <= 1, "{matrix:?}: {got} instead of {rank}");
    }
    for (matrix, n, expected) in [
        (vec![2.0, 1.0, 1.0, 2.0], 2, true),
        (vec![1.0, 2.0, 2.0, 1.0], 2, false),
        (vec![1.0, 1.0, 1.0, 1.0], 2, false),
        (vec![-1.0], 1, false),
        (vec![0.0], 1, false),
        (vec![f64::NAN], 1, false),
        (vec![1e-8, 0.0, 0.0, 1e8], 2, true),
        (vec![4.0, 2.0, 0.0, 2.0, 3.0, 1.0, 0.0, 1.0, 1.0], 3, true),
    ] {
        assert_eq!(numeric::positive_definite(&matrix, n), expected, "{matrix:?}");
    }
}

#[test]
fn test_points_are_spread_out() {
    let mut points = Points::new(42);
    let list: Vec<f64> = (0..10_000).map(|_| points.draw()).collect();
    assert!(list.iter().all(|v| (-1.0..1.0).contains(v)));
    let (mean, square) = (list.iter().sum::<f64>() / 1e4, list.iter().map(|v| v * v).sum::<f64>() / 1e4);
    // Five standard deviations of the means of 10⁴ uniform numbers and of their squares.
    assert!(
        mean.abs() < 5.0 * (1.0 / 3.0f64 / 1e4).sqrt()
            && (square - 1.0 / 3.0).abs() < 5.0 * (4.0 / 45.0f64 / 1e4).sqrt(),
        "{mean} {square}"
    );
    assert_ne!(Points::new(1).draw(), Points::new(2).draw());
}

/// A matrix as nodes that read the state, with zeros left out.
fn nodes(g: &mut Graph, a: &[Vec<f64>]) -> Matrix {
    let n = a.len();
    let mut m = Matrix::zeros(g, n);
    for i in 0..n {
        for j in 0..n {
            if a[i][j] != 0.0 {
                let node = g.state(i * n + j);
                m.set(i, j, node);
            }
        }
    }
    m
}

#[test]
fn symbolic_factors_solve_both_ways() {
    let mut points = Points::new(3);
    for n in [1, 2, 3, 5, 8] {
        for (symmetric, density) in [(true, 1.0), (true, 0.3), (false, 1.0), (false, 0.3)] {
            let mut a = vec![vec![0.0; n]; n];
            for i in 0..n {
                for j in 0..n {
                    let there = (points.draw() + 1.0) / 2.0 < density;
                    // Diagonally dominant: no pivoting is needed, the condition is below 10.
                    a[i][j] = if i == j {
                        2.0 * n as f64 + points.draw()
                    } else if there {
                        points.draw()
                    } else {
                        0.0
                    };
                }
            }
            if symmetric {
                for i in 0..n {
                    for j in 0..i {
                        a[j][i] = a[i][j];
                    }
                }
            }
            let b: Vec<f64> = (0..n).map(|_| points.draw()).collect();
            let mut g = Graph::new();
            let mut m = nodes(&mut g, &a);
            if symmetric {
                // Only the lower triangle may be read.
                let poison = g.constant(f64::NAN);
                for i in 0..n {
                    for j in i + 1..n {
                        m.set(i, j, poison);
                    }
                }
            }
            let right: Vec<Node> = (0..n).map(|i| g.state(n * n + i)).collect();
            let factors = if symmetric { Factors::symmetric(&mut g, &m) } else { Factors::general(&mut g, &m) };
            let x = factors.solve(&mut g, &right);
            let y = factors.solve_transposed(&mut g, &right);
            let state: Vec<f64> = a.iter().flatten().chain(&b).copied().collect();
            let transposed: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| a[j][i]).collect()).collect();
            for (got, exact) in [
                (evaluate(&g, &x, 0.0, &state, &[]), solve(&a, &b)),
                (evaluate(&g, &y, 0.0, &state, &[]), solve(&transposed, &b)),
            ] {
                for (u, v) in got.iter().zip(&exact) {
                    // Both lose at most n roundings times the condition.
                    assert!((u - v).abs() <= 10.0 * n as f64 * f64::EPSILON, "{n}, {symmetric}: {got:?} {exact:?}");
                }
            }
        }
    }
}

#[test]
fn a_tridiagonal_system_unrolls_to_linear_length() {
    let size = |n: usize| {
        let mut g = Graph::new();
        let mut m = Matrix::zeros(&mut g, n);
        for i in 0..n {
            for j in i.saturating_sub(1)..(i + 2).min(n) {
                let node = g.state(3 * i + j + 1 - i);
                m.set(i, j, node);
            }
        }
        let right: Vec<Node> = (0..n).map(|i| g.state(3 * n + i)).collect();
        let x = Factors::general(&mut g, &m).solve(&mut g, &right);
        g.reachable(&x).len()
    };
    let (small, large) = (size(20), size(80));
    assert!(large < 5 * small, "{small} {large}");
}

#[test]
fn matrices_of_nodes() {
    let a = vec![vec![1.0, 2.0, 0.0], vec![-3.0, 0.5, 4.0], vec![0.0, 1.0, -1.0]];
    let v = [2.0, -1.0, 3.0];
    let mut g = Graph::new();
    let m = nodes(&mut g, &a);
    let x: Vec<Node> = (0..3).map(|i| g.state(9 + i)).collect();
    let (times, transposed, gram) = (m.times(&mut g, &x), m.transpose_times(&mut g, &x), m.gram(&mut g));
    let state: Vec<f64> = a.iter().flatten().chain(&v).copied().collect();
    // Small numbers: every result is exact.
    assert_eq!(evaluate(&g, &times, 0.0, &state, &[]), [0.0, 5.5, -4.0]);
    assert_eq!(evaluate(&g, &transposed, 0.0, &state, &[]), [5.0, 6.5, -7.0]);
    for i in 0..3 {
        for j in 0..3 {
            let exact: f64 = (0..3).map(|k| a[k][i] * a[k][j]).sum();
            assert_eq!(evaluate(&g, &[gram.get(i, j)], 0.0, &state, &[]), [exact]);
        }
    }
}
