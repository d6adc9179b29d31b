//! Symmetric matrix equations: those whose entries above and below the diagonal are equal at any
//! state, however the formula is written.

use crate::functional::{Functional, Source, Template, Term};
use crate::graph::interpret::Interpreter;
use crate::points::Points;

/// Number of random points at which entries are compared.
const COMPARED: usize = 4;

/// Part of entries by which their twins may differ: some hundred roundings, and far less than
/// entries that are different functions differ by at random points.
const ROUNDED: f64 = 1e-12;

/// Largest number of values of a formula that is evaluated as a whole.
const MOST_VALUES: usize = 100_000;

/// True if all members of a quantity of `order` by `order` matrices are symmetric for these
/// parameters.
pub(super) fn is_symmetric(
    functional: &Functional,
    order: usize,
    dimension: usize,
    parameters: &[f64],
) -> bool {
    let twins = || (0..order).flat_map(|i| (0..i).map(move |j| (i * order + j, j * order + i)));
    let is_whole = |term: &Term| term.roots.len() == order * order;
    let as_written =
        |term: &Term| is_whole(term) && twins().all(|(a, b)| term.roots[a] == term.roots[b]);
    let has_symmetric_rows = |term: &Term| {
        as_written(term) || is_whole(term) && are_equal(&points_of(term, parameters), twins())
    };
    if functional.terms.iter().all(has_symmetric_rows) {
        return true;
    }
    // Terms of single entries, or that are symmetric together only.
    if functional.outputs * COMPARED > MOST_VALUES {
        return false;
    }
    // Multipliers in an observable follow the state.
    let dimension = functional.terms.iter().map(states_read).fold(dimension, usize::max);
    let mut points = Points::new(0x5e77);
    let mut values: Vec<Vec<f64>> = Vec::new();
    for _ in 0..COMPARED {
        let x: Vec<f64> = (0..dimension).map(|_| drawn(&mut points)).collect();
        values.push(functional.evaluate(drawn(&mut points), &x, parameters));
    }
    let members = functional.outputs / (order * order);
    (0..members).all(|member| {
        let first = member * order * order;
        are_equal(&values, twins().map(|(a, b)| (first + a, first + b)))
    })
}

/// Length of the part of the state that the rows of a term read.
fn states_read(term: &Term) -> usize {
    let states = |k: &usize| term.slots[*k] == Source::State;
    let of = |row: usize| {
        (0..term.slots.len()).filter(states).map(move |k| term.row(row).at(k) as usize + 1)
    };
    (0..term.rows()).flat_map(of).max().unwrap_or(0)
}

/// A random number at which most functions have a value.
fn drawn(points: &mut Points) -> f64 {
    0.5 + 0.4 * points.draw()
}

/// Values of a template at random points, with the parameters and numbers of its first row.
fn points_of(term: &Term, parameters: &[f64]) -> Vec<Vec<f64>> {
    let Some(row) = (term.rows() > 0).then(|| term.row(0)) else { return Vec::new() };
    let template = Template::new(&term.graph, &term.roots, term.slots.len(), &Interpreter);
    let states = (0..term.slots.len())
        .filter(|&k| term.slots[k] == Source::State)
        .map(|k| row.at(k) as usize + 1);
    let (mut x, mut work) = (vec![0.0; states.max().unwrap_or(0)], vec![0.0; template.work_len()]);
    let mut points = Points::new(0x5e77);
    (0..COMPARED)
        .map(|_| {
            x.iter_mut().for_each(|x| *x = drawn(&mut points));
            template.row(term, row, drawn(&mut points), &x, parameters, &mut work).to_vec()
        })
        .collect()
}

/// True if the values of all these pairs are equal, each taken over all points together: one point
/// may cancel.
fn are_equal(points: &[Vec<f64>], mut pairs: impl Iterator<Item = (usize, usize)>) -> bool {
    let over = |f: &dyn Fn(&[f64]) -> f64| {
        points.iter().map(|values| f(values).powi(2)).sum::<f64>().sqrt()
    };
    !points.is_empty()
        && pairs.all(|(a, b)| {
            over(&|values| values[a] - values[b])
                <= ROUNDED * (over(&|values| values[a]) + over(&|values| values[b]))
        })
}
