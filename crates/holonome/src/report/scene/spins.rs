//! Spins: vectors of a field that keep their lengths wherever they point, at the sites of a lattice.

use holonome_model::elaborate::model::{Dynamics, Model, Variable};
use holonome_model::elaborate::shape::Shape;

/// Largest part of its rate of change that a vector which turns has along itself, by rounding.
const ALONG: f64 = 1e-12;

/// Distance of neighbouring sites, in lengths of the longest vector.
const SPACING: f64 = 1.15;

/// Largest number of components of a state that is looked at.
const LARGEST: usize = 20_000;

/// True for a family of vectors in space that keep their lengths at generic states.
pub(super) fn are_spins(model: &Model, variable: &Variable) -> bool {
    let Dynamics::Field(field) = &model.dynamics else { return false };
    let family = &variable.family;
    let is_family = matches!(family.indices.len(), 1 | 2) && family.members() > 1;
    if family.shape != Shape::Vector(3) || !is_family || model.dimension() > LARGEST {
        return false;
    }
    let mut x = model.initial.clone();
    for (k, x) in x.iter_mut().enumerate() {
        *x += 0.3 * (1.0 + x.abs()) * (0.7 + 1.9 * k as f64).sin();
    }
    let rate = field.evaluate(model.t0, &x, &model.parameter_values);
    let place = variable.first..variable.first + family.len();
    let (mut along, mut size) = (0.0f64, 0.0f64);
    for (v, rate) in x[place.clone()].chunks(3).zip(rate[place].chunks(3)) {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        along = along.max(dot(v, rate).abs());
        size = size.max((dot(v, v) * dot(rate, rate)).sqrt());
    }
    size > 0.0 && along <= ALONG * size
}

/// Sites of the members: in a row, or of two indices in a plane.
pub(super) fn sites(model: &Model, variable: &Variable) -> Vec<[f64; 3]> {
    let family = &variable.family;
    let start = &model.initial[variable.first..variable.first + family.len()];
    let lengths = start.chunks(3).map(|v| v.iter().map(|x| x * x).sum::<f64>().sqrt());
    let spacing = SPACING * lengths.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let columns = match family.bounds[..] {
        [_, (low, high)] => (high - low + 1) as usize,
        _ => family.members(),
    };
    let at = |k: usize| [(k % columns) as f64 * spacing, (k / columns) as f64 * spacing, 0.0];
    (0..family.members()).map(at).collect()
}
