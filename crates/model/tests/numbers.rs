//! Tests of linear algebra on graphs (`graph::linear`) against a dense solve written here, and of
//! the test points.

use holonome_model::graph::linear::{Factors, Matrix};
use holonome_model::graph::{Graph, Node};
use holonome_model::points::Points;
use holonome_model::treatment::structure::evaluate;

/// Gaussian elimination with partial pivoting: the oracle.
fn solve(a: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let mut m: Vec<Vec<f64>> =
        a.iter().zip(b).map(|(r, &b)| r.iter().copied().chain([b]).collect()).collect();
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

#[test]
fn test_points_are_spread_out() {
    let mut points = Points::new(42);
    let list: Vec<f64> = (0..10_000).map(|_| points.draw()).collect();
    assert!(list.iter().all(|v| (-1.0..1.0).contains(v)));
    let (mean, square) =
        (list.iter().sum::<f64>() / 1e4, list.iter().map(|v| v * v).sum::<f64>() / 1e4);
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
            let factors = if symmetric {
                Factors::symmetric(&mut g, &m)
            } else {
                Factors::general(&mut g, &m)
            };
            let x = factors.solve(&mut g, &right);
            let y = factors.solve_transposed(&mut g, &right);
            let state: Vec<f64> = a.iter().flatten().chain(&b).copied().collect();
            let transposed: Vec<Vec<f64>> =
                (0..n).map(|i| (0..n).map(|j| a[j][i]).collect()).collect();
            for (got, exact) in [
                (evaluate(&g, &x, 0.0, &state, &[]), solve(&a, &b)),
                (evaluate(&g, &y, 0.0, &state, &[]), solve(&transposed, &b)),
            ] {
                for (u, v) in got.iter().zip(&exact) {
                    // Both lose at most n roundings times the condition.
                    assert!(
                        (u - v).abs() <= 10.0 * n as f64 * f64::EPSILON,
                        "{n}, {symmetric}: {got:?} {exact:?}"
                    );
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
    let (times, transposed, gram) =
        (m.times(&mut g, &x), m.transpose_times(&mut g, &x), m.gram(&mut g));
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
