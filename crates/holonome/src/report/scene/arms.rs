//! Arms between observables that are points: distances that stay.

use holonome_model::elaborate::model::{Model, Quantity};

/// Largest number of points among which arms are searched.
const MOST: usize = 60;

/// Configurations in which distances are compared.
const CONFIGURATIONS: usize = 4;

/// Pairs of points of these observables, counted over all, that keep their distance however the
/// system moves; `None` stands for the origin.
pub(super) fn arms(model: &Model, seen: &[&Quantity]) -> Vec<(usize, Option<usize>)> {
    let configuration = |k: usize| -> Vec<[f64; 3]> {
        let mut x = model.initial.clone();
        let n = if model.is_hamiltonian() { model.degrees() } else { model.phase_dimension() };
        for (i, q) in x[..n].iter_mut().enumerate() {
            // The start, then generic ones.
            *q += k as f64 * 0.37 * (1.0 + q.abs()) * (1.3 * i as f64 + 2.1 * k as f64).sin();
        }
        let mut points = Vec::new();
        for observable in seen {
            let values = observable.functional.evaluate(model.t0, &x, &model.parameter_values);
            points.extend(values.chunks(observable.shape.len()).map(|value| {
                let mut at = [0.0; 3];
                at[..value.len()].copy_from_slice(value);
                at
            }));
        }
        points
    };
    let all: Vec<Vec<[f64; 3]>> = (0..CONFIGURATIONS).map(configuration).collect();
    let count = all[0].len();
    if count > MOST {
        return Vec::new();
    }
    let distance = |points: &[[f64; 3]], a: usize, b: Option<usize>| {
        let origin = [0.0; 3];
        let (a, b) = (&points[a], b.map_or(&origin, |b| &points[b]));
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    };
    let keeps = |a: usize, b: Option<usize>| {
        let first = distance(&all[0], a, b);
        let same = |points: &Vec<[f64; 3]>| (distance(points, a, b) - first).abs() <= 1e-9 * first;
        // Points that never move keep all distances.
        let moves = |k: usize| all[1..].iter().any(|points| points[k] != all[0][k]);
        first > 0.0 && (moves(a) || b.is_some_and(moves)) && all[1..].iter().all(same)
    };
    let pairs = (0..count).flat_map(|a| {
        let others = (0..a).map(Some).chain([None]);
        others.map(move |b| (a, b))
    });
    pairs.filter(|&(a, b)| keeps(a, b)).collect()
}
