//! Tests of columns against functionals that are evaluated row by row.

use super::*;
use crate::functional::{Functional, Source, Stretches, Term};
use crate::graph::{Graph, Input};
use crate::rows::RowProgram;
use holonome_linear::unpivoted::Unpivoted;
use proptest::prelude::*;
use std::sync::Arc;

/// Sums of (a − b)² c over rows, each of which adds to output `outputs(row)`; `rows` are the places
/// of a, b and the parameter c.
fn functional(rows: &[[u32; 3]], outputs: impl Fn(u32) -> u32) -> Functional {
    let mut graph = Graph::new();
    let [a, b, c] = [0, 1, 2].map(|k| graph.input(Input::Slot(k)));
    let difference = graph.sub(a, b);
    let square = graph.mul(difference, difference);
    let root = graph.mul(square, c);
    let mut table = Stretches::new(4);
    (0..).zip(rows).for_each(|(row, &[a, b, c])| table.push(&[a, b, c, outputs(row)]));
    let count = table.each().map(|row| row.last() as usize + 1).max().unwrap_or(0);
    let term = Term {
        graph,
        roots: vec![root],
        slots: vec![Source::State, Source::State, Source::Parameter],
        table,
        numbers: Vec::new(),
        spans: Arc::default(),
        pairs: None,
    };
    Functional { outputs: count, terms: vec![term] }
}

/// For every i of a family (x_i − x_m)² for m in `fixed`, and (x_i − x_{n−1−i})²: places that move,
/// that stay, and that approach each other.
fn meeting(n: u32, fixed: &[u32]) -> Functional {
    let pairs = |i: u32| fixed.iter().map(move |&m| [i, m, 0]).chain([[i, n - 1 - i, 1]]);
    let rows: Vec<[u32; 3]> = (0..n).flat_map(pairs).collect();
    let width = fixed.len() as u32 + 1;
    functional(&rows, |row| row / width)
}

/// Outputs of a function of the state, and their derivatives, through columns.
fn through_columns(
    function: Function,
    n: usize,
    x: &[f64],
    parameters: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let outputs = function.outputs();
    let mut columns = Columns::new();
    let state = columns.input(n as u32);
    columns.store(state, Stored { first: 0, stride: 1 });
    let (time, number) = (columns.time(), columns.function(function));
    let arguments = [InputSegment { first: 0, columns: vec![state] }];
    let column = columns.call(number, time, &arguments, &[(0, 1, outputs as u32)])[0];
    let values = pieces(&columns, &[column], outputs as u32, &|_, member| member);
    let values = RowProgram::new(n, outputs, values).evaluate(0.0, x, parameters);
    let unknowns = [state];
    let jacobian =
        Jacobian::new(&columns, std::slice::from_ref(&column), &unknowns, outputs as u32);
    // Each entry once: programs that write in place do not accumulate.
    let mut entries: Vec<(usize, u32, u32)> = jacobian.entries().collect();
    entries.sort_unstable();
    assert!(entries.windows(2).all(|pair| pair[0] != pair[1]), "{entries:?}");
    let place = |_: usize, member: u32, unknown: u32| member * n as u32 + unknown;
    let entries =
        RowProgram::new(n, outputs * n, jacobian.pieces(&place)).evaluate(0.0, x, parameters);
    (values, entries)
}

proptest! {
    /// Tables that are even in stretches, with uneven places and numbers that several rows share.
    #[test]
    fn values_and_derivatives_are_those_of_the_rows(
        stretches in prop::collection::vec((0u32..12, 0u32..12, 0u32..4, 0u32..2, 0u32..2, 1u32..6), 1..7),
    ) {
        let n = 20usize;
        let mut rows = Vec::new();
        for (a, b, c, moves_a, moves_c, count) in stretches {
            rows.extend((0..count).map(|k| [a + k * moves_a, b + k, c + k * moves_c]));
        }
        let x: Vec<f64> = (0..n).map(|i| (1.3 * i as f64).sin()).collect();
        let parameters: Vec<f64> = (0..10).map(|i| 1.0 + 0.1 * f64::from(i)).collect();
        let each = functional(&rows, |row| row);
        let (values, derivatives) = through_columns(Function::value(&each.evened()), n, &x, &parameters);
        prop_assert_eq!(&values, &each.evaluate(0.0, &x, &parameters));
        let all = functional(&rows, |_| 0);
        let (gradient, hessian) = through_columns(Function::gradient(&all.evened(), n), n, &x, &parameters);
        // By hand: (a − b)² c.
        let (mut expected, mut rate, mut second) = (vec![0.0; n], vec![0.0; rows.len() * n], vec![0.0; n * n]);
        for (row, &[a, b, c]) in rows.iter().enumerate() {
            let (a, b, c) = (a as usize, b as usize, parameters[c as usize]);
            let d = 2.0 * (x[a] - x[b]) * c;
            for (i, sign) in [(a, 1.0), (b, -1.0)] {
                expected[i] += sign * d;
                rate[row * n + i] += sign * d;
                for (j, other) in [(a, 1.0), (b, -1.0)] {
                    second[i * n + j] += sign * other * 2.0 * c;
                }
            }
        }
        for (found, expected) in [(&derivatives, &rate), (&gradient, &expected), (&hessian, &second)] {
            for (found, expected) in found.iter().zip(expected) {
                // Sums of some tens of numbers below 10.
                prop_assert!((found - expected).abs() < 1e-13, "{} {}", found, expected);
            }
        }
    }
}

#[test]
fn numbers_that_meet_are_one() {
    let n = 20usize;
    let x: Vec<f64> = (0..n).map(|i| (1.3 * i as f64).sin()).collect();
    let parameters = [1.0, 2.0];
    for fixed in [&[7u32][..], &[0, 19], &[13, 14]] {
        let functional = meeting(n as u32, fixed);
        let expected = functional.evaluate(0.0, &x, &parameters);
        let (values, derivatives) =
            through_columns(Function::value(&functional.evened()), n, &x, &parameters);
        for i in 0..n {
            assert!((values[i] - expected[i]).abs() < 1e-14);
            let mut rate = vec![0.0; n];
            for (m, c) in fixed.iter().map(|&m| (m as usize, 1.0)).chain([(n - 1 - i, 2.0)]) {
                rate[i] += 2.0 * c * (x[i] - x[m]);
                rate[m] -= 2.0 * c * (x[i] - x[m]);
            }
            for (found, expected) in derivatives[i * n..(i + 1) * n].iter().zip(&rate) {
                assert!((found - expected).abs() < 1e-14, "{i}: {found} {expected}");
            }
        }
    }
}

#[test]
fn calls_are_told_apart_by_what_they_read() {
    let function = Function::gradient(&functional(&[[0, 1, 0], [1, 2, 0]], |_| 0).evened(), 6);
    let mut columns = Columns::new();
    let [q, p, other] = [(); 3].map(|()| columns.input(3));
    let (time, number) = (columns.time(), columns.function(function));
    let call = |columns: &mut Columns, p: Column| {
        let arguments = [
            InputSegment { first: 0, columns: vec![q] },
            InputSegment { first: 3, columns: vec![p] },
        ];
        columns.call(number, time, &arguments, &[(0, 1, 3), (3, 1, 3)])
    };
    let (first, second) = (call(&mut columns, p), call(&mut columns, other));
    assert_eq!(first, second, "nothing reads p");
    assert_eq!(columns.value(first[1]), Some(0.0), "no derivative with respect to p");
    assert!(columns.depends(first[0], &[q]) && !columns.depends(first[0], &[p]));
    // A quadratic function has a linear gradient; products of unknowns are not linear.
    assert!(columns.is_linear(first[0], &[q]));
    let product = columns.binary(crate::graph::op::Binary::Mul, first[0], q);
    assert!(!columns.is_linear(product, &[q]));
    let mut replaced = [(q, other)].into_iter().collect();
    let moved = columns.substituted(product, &mut replaced);
    assert!(columns.depends(moved, &[other]) && !columns.depends(moved, &[q]));
}

/// A u = b for nine matrices of one pattern, one of whose equations lacks its own unknown.
#[test]
fn alike_systems_are_rows() {
    let (n, count) = (4, 9usize);
    let entries = [(0, 0), (0, 3), (1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 0), (3, 2)];
    let order = Unpivoted::new(n, &entries).order();
    let read = entries.len() * count;
    let placed: Vec<_> = entries.into_iter().zip((0..).step_by(count)).collect();
    let right: Vec<u32> = (0..n).map(|row| (read + row * count) as u32).collect();
    let alike = Alike { count, entries: &placed, right: &right, order: &order };
    let program =
        RowProgram::new(read + n * count, 2 * n * count, alike.elimination().into_iter().collect());
    // Well conditioned: the diagonal is 3, of row 3 the product over row 0's.
    let value = |k: usize, m: usize| match entries[k] {
        (i, j) if i == j => 3.0,
        _ => 1.0 + 0.1 * ((k * 7 + m * 5) % 11) as f64,
    };
    let u = |row: usize, m: usize| ((3 * row + 2 * m) as f64).cos();
    let mut x: Vec<f64> = (0..read).map(|k| value(k / count, k % count)).collect();
    for row in 0..n {
        let b = |m: usize| {
            let of_row = (0..entries.len()).filter(|&k| entries[k].0 == row as u32);
            of_row.map(|k| value(k, m) * u(entries[k].1 as usize, m)).sum::<f64>()
        };
        x.extend((0..count).map(b));
    }
    let found = program.evaluate(0.0, &x, &[]);
    for (k, found) in found[..n * count].iter().enumerate() {
        // Pivots are between 0.2 and 3, and each number rounds a few times.
        assert!((found - u(k / count, k % count)).abs() < 1e-13, "{k}: {found}");
    }
    assert!(found[n * count..].iter().all(|inverse| inverse.is_finite() && *inverse != 0.0));
}
