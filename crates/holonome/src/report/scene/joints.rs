//! Joints of rigid bodies, found from constraints.
//!
//! A constraint on vectors that is s(x + R u) in a body with the position x and the attitude R holds
//! the point u of the body, whatever else it reads: another body, a fixed place.

use holonome_model::elaborate::expression::{MOMENTUM, TIME};
use holonome_model::elaborate::model::{Model, Quantity};
use holonome_model::elaborate::shape::Shape;
use holonome_model::functional::Source;
use std::collections::BTreeSet;

/// Largest number of bodies among which joints are searched.
const MOST: usize = 400;

/// A point of a body that is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Joint {
    /// Number of the body.
    pub body: usize,
    /// Place in the frame of the body.
    pub at: [f64; 3],
}

/// Joints of bodies with these first components of their attitude, by rows, and of their position.
pub(super) fn joints(model: &Model, bodies: &[(usize, Option<usize>)]) -> Vec<Joint> {
    if bodies.len() > MOST {
        return Vec::new();
    }
    let mut found: Vec<Joint> = Vec::new();
    for constraint in model.imposed_constraints() {
        if constraint.shape != Shape::Vector(3) || constraint.depends & (MOMENTUM | TIME) != 0 {
            continue;
        }
        for (member, read) in components_read(constraint).iter().enumerate() {
            for (body, &(attitude, position)) in bodies.iter().enumerate() {
                let Some(position) = position.filter(|first| read.contains(&(*first as u32)))
                else {
                    continue;
                };
                if let Some(at) = held(model, constraint, member, (attitude, position)) {
                    let joint = Joint { body, at };
                    if !found.contains(&joint) {
                        found.push(joint);
                    }
                }
            }
        }
    }
    found
}

/// Components of the state that each member reads.
fn components_read(constraint: &Quantity) -> Vec<BTreeSet<u32>> {
    let mut read = vec![BTreeSet::new(); constraint.members];
    for term in &constraint.functional.terms {
        for row in term.table.each() {
            let member = row.last() as usize / 3;
            let slots = term.slots.iter().zip(row.iter());
            read[member]
                .extend(slots.filter(|(s, _)| **s == Source::State).map(|(_, entry)| entry));
        }
    }
    read
}

/// The point u of a body of which a member of a constraint is s(x + R u), plus what does not depend
/// on the body; `None` if it is not.
fn held(
    model: &Model,
    constraint: &Quantity,
    member: usize,
    (attitude, position): (usize, usize),
) -> Option<[f64; 3]> {
    let value = |x: &[f64]| -> [f64; 3] {
        let all = constraint.functional.evaluate(model.t0, x, &model.parameter_values);
        std::array::from_fn(|k| all[3 * member + k])
    };
    let start = value(&model.initial);
    let along = |component: usize, by: f64| -> [f64; 3] {
        let mut x = model.initial.clone();
        x[component] += by;
        let moved = value(&x);
        std::array::from_fn(|k| (moved[k] - start[k]) / by)
    };
    // Derivatives that do not depend on the step are those of a function that is affine.
    let slope = |component: usize| -> Option<[f64; 3]> {
        let [one, other] = [along(component, 1.0), along(component, -0.5)];
        let near = |k: usize| (one[k] - other[k]).abs() <= 1e-9 * (1.0 + one[k].abs());
        (0..3).all(near).then_some(one)
    };
    let of_place: Vec<[f64; 3]> = (0..3).map(|k| slope(position + k)).collect::<Option<_>>()?;
    let scale = of_place[0][0];
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * scale.abs();
    let is_place =
        (0..9).all(|k| near(of_place[k / 3][k % 3], if k % 4 == 0 { scale } else { 0.0 }));
    if scale == 0.0 || !is_place {
        return None;
    }
    let mut at = [0.0; 3];
    for (j, at) in at.iter_mut().enumerate() {
        // The slope by R[k, j] is s u[j] along axis k.
        let slopes: Vec<[f64; 3]> =
            (0..3).map(|k| slope(attitude + 3 * k + j)).collect::<Option<_>>()?;
        let own = slopes[0][0];
        let fits = (0..9).all(|k| {
            let expected = if k % 4 == 0 { own } else { 0.0 };
            (slopes[k / 3][k % 3] - expected).abs() <= 1e-9 * (scale.abs() + own.abs())
        });
        if !fits {
            return None;
        }
        *at = own / scale;
    }
    at.iter().any(|u| *u != 0.0).then_some(at)
}
