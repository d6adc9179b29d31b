//! Integrability of rolling constraints: whether they could be constraints on positions.
//!
//! A rolling constraint is the form ω = A dq + b dt on positions and time. By the theorem of
//! Frobenius some forms are integrable, beside the forms dg of the constraints on positions, if each
//! dω vanishes on the directions that all of them leave. That is tested with numbers at points of
//! the set, so that it is decided up to rounding.

use super::Field;
use super::structure::{Formulas, points_of_run};
use crate::elaborate::model::{Model, Quantity};
use crate::functional::Functional;
use crate::graph::calculus::Gradient;
use crate::graph::{Graph, Input, Node};
use crate::scales::Scales;
use holonome_linear::gram::Row;
use holonome_linear::null_space::null_space;

/// Largest number of positions, and of scalar constraints, for which this is tested.
const LARGEST: usize = 200;

/// Part of its terms below which a sum counts as 0: far above the rounding of bases of directions,
/// whose pivots are not small where constraints are independent.
const ROUNDING: f64 = 1e-9;

/// Part of a row below which another counts as dependent on it.
const DEPENDENT: f64 = 1e-10;

/// Integrability of a model's rolling constraints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integrability {
    /// For each rolling constraint, whether it is integrable by itself.
    pub alone: Vec<bool>,
    /// True if all of them are, together.
    pub together: bool,
}

/// Forms of one constraint, and of which dω is 0 if it is one on positions.
struct Forms {
    /// Places of its scalars among the rows.
    rows: std::ops::Range<usize>,
    rolls: bool,
}

/// Values of all forms at one point, over positions and then the time, in the units of the start.
struct Sampled {
    rows: Vec<Vec<f64>>,
    /// For each row the derivatives of its entries, with their two places: ∂_j ω_k.
    slopes: Vec<Vec<(usize, usize, f64)>>,
}

/// Integrability of the rolling constraints of `model`, whose `field` has all constraints; `None` if
/// there are none or too many, or if it has no value.
pub fn integrability(model: &Model, field: &Field) -> Option<Integrability> {
    let scalars: usize = model.constraints.iter().map(Quantity::scalars).sum();
    if model.rollings.is_empty() || model.degrees() > LARGEST || scalars > LARGEST {
        return None;
    }
    let mut g = Graph::new();
    let (mut forms, mut entries) = (Vec::new(), Vec::new());
    for (k, constraint) in model.constraints.iter().enumerate() {
        let rolling = model.rollings.iter().find(|rolling| rolling.constraint == k);
        let functional = rolling.map_or(&constraint.functional, |rolling| &rolling.functional);
        let first = entries.len();
        for node in scalars_of(&mut g, constraint, functional) {
            entries.push(form(&mut g, model, node, rolling.is_some()));
        }
        forms.push(Forms { rows: first..entries.len(), rolls: rolling.is_some() });
    }
    let span = (model.t0, model.t0 + 1.0);
    let mut points = points_of_run(model, field, (span, 1.0), 3, 0xf0b);
    points.push((model.t0, model.initial.clone()));
    let sampled = sample(&mut g, model, &entries, &points)?;
    let held = |form: &Forms| !form.rolls;
    let alone = forms.iter().filter(|form| form.rolls).map(|of| {
        let with = |form: &Forms| held(form) || form.rows == of.rows;
        sampled.iter().all(|at| at.is_integrable(&forms, with))
    });
    let alone = alone.collect();
    let together = sampled.iter().all(|at| at.is_integrable(&forms, |_| true));
    Some(Integrability { alone, together })
}

/// Scalars of a constraint, as its own formulas or as those of a rolling one.
fn scalars_of(g: &mut Graph, constraint: &Quantity, functional: &Functional) -> Vec<Node> {
    let (outputs, width) = (functional.unroll(g), constraint.shape.len());
    let of_member = |member: usize| {
        constraint.components.iter().map(move |component| member * width + component.offset)
    };
    (0..constraint.members).flat_map(of_member).map(|output| outputs[output]).collect()
}

/// Entries over positions and time of the form of a scalar: A and b of a rolling one, dg of another.
fn form(g: &mut Graph, model: &Model, node: Node, rolls: bool) -> Vec<(usize, Node)> {
    let (n, first) = (model.degrees(), model.following().velocities);
    let from = if rolls { first } else { 0 };
    let mut entries: Vec<(usize, Node)> = Vec::new();
    for (i, d) in g.gradient(node) {
        if let Some(k) = (i as usize).checked_sub(from).filter(|&k| k < n) {
            entries.push((k, d));
        }
    }
    let of_time = if rolls {
        let still = (0..n).map(|k| (g.state(first + k), g.zero())).collect();
        g.substituted(&[node], &still)[0]
    } else {
        g.time_derivative(node)
    };
    entries.push((n, of_time));
    entries
}

/// All forms and their derivatives at these points; `None` if something is not finite.
fn sample(
    g: &mut Graph,
    model: &Model,
    forms: &[Vec<(usize, Node)>],
    points: &[(f64, Vec<f64>)],
) -> Option<Vec<Sampled>> {
    let n = model.degrees();
    let (mut nodes, mut gradients) = (Vec::new(), Vec::new());
    for &(_, node) in forms.iter().flatten() {
        let moves = |input: Input| matches!(input, Input::State(k) if (k as usize) < n);
        let of_positions =
            g.adjoint(node, moves).into_iter().filter_map(|(input, d)| match input {
                Input::State(k) => Some((k, d)),
                _ => None,
            });
        let mut gradient: Gradient = of_positions.collect();
        gradient.push((n as u32, g.time_derivative(node)));
        nodes.push(node);
        gradients.push(gradient);
    }
    let rows: Vec<&Gradient> = gradients.iter().collect();
    let (states, parameters) = (model.following().velocities + n, model.parameter_values.len());
    let formulas = Formulas::new(g, &nodes, &rows, states, parameters);
    let bound = formulas.bind(&model.parameter_values);
    let scales = Scales::new(model);
    let mut sampled = Vec::new();
    for (t, x) in points {
        let mut extended = x.clone();
        extended.resize(states, 0.0);
        let mut units = scales.units(x);
        units.truncate(n);
        units.push(1.0);
        let at = Sampled::new(forms, formulas.at(&bound, *t, &extended), &units);
        let finite = at.rows.iter().flatten().all(|v| v.is_finite())
            && at.slopes.iter().flatten().all(|(.., d)| d.is_finite());
        sampled.push(Some(at).filter(|_| finite)?);
    }
    Some(sampled)
}

impl Sampled {
    fn new(
        forms: &[Vec<(usize, Node)>],
        (values, gradients): (Vec<f64>, Vec<Row>),
        units: &[f64],
    ) -> Sampled {
        let (mut values, mut gradients) = (values.into_iter(), gradients.into_iter());
        let (mut rows, mut slopes) = (Vec::new(), Vec::new());
        for form in forms {
            let mut row = vec![0.0; units.len()];
            let mut slope = Vec::new();
            for ((&(k, _), value), gradient) in form.iter().zip(&mut values).zip(&mut gradients) {
                row[k] += value * units[k];
                let of = |(j, d): (u32, f64)| (j as usize, k, d * units[j as usize] * units[k]);
                slope.extend(gradient.into_iter().map(of));
            }
            // A form may have any factor.
            let largest = row.iter().fold(0.0f64, |largest, v| largest.max(v.abs()));
            if largest > 0.0 {
                row.iter_mut().for_each(|v| *v /= largest);
                slope.iter_mut().for_each(|(.., d)| *d /= largest);
            }
            rows.push(row);
            slopes.push(slope);
        }
        Sampled { rows, slopes }
    }

    /// True if dω = 0 on the directions that the forms `with` leave, for each rolling one of them.
    fn is_integrable(&self, forms: &[Forms], with: impl Fn(&Forms) -> bool) -> bool {
        let chosen = || forms.iter().filter(|form| with(form));
        let rows = chosen().flat_map(|form| self.rows[form.rows.clone()].iter().cloned());
        let (basis, _) = null_space(rows.collect(), DEPENDENT);
        let slopes =
            chosen().filter(|form| form.rolls).flat_map(|form| &self.slopes[form.rows.clone()]);
        slopes.into_iter().all(|slope| {
            let largest = |u: &[f64]| u.iter().fold(0.0f64, |largest, u| largest.max(u.abs()));
            let size: f64 = slope.iter().map(|(.., d)| d.abs()).sum();
            let closed = |u: &[f64], v: &[f64]| {
                let terms = slope.iter().map(|&(j, k, d)| d * (u[j] * v[k] - u[k] * v[j]));
                terms.sum::<f64>().abs() <= ROUNDING * size * largest(u) * largest(v)
            };
            (0..basis.len()).all(|i| (0..i).all(|j| closed(&basis[i], &basis[j])))
        })
    }
}
