//! Knots of tables over time: break points, which steps do not pass.
//!
//! A step ends just before a knot, and a short one crosses it, so that no stage of a step sees the
//! other side. Equal steps have to meet the knots.

use crate::error::Error;
use holonome_integrate::plan::{Moment, Plan, Stepping};
use holonome_model::elaborate::model::{Knots, Model};
use holonome_model::functional::Functional;
use holonome_model::graph::op::Binary;
use holonome_model::graph::{Expression, Input};
use holonome_words::option;

/// Half of the length of the step that crosses a knot, in roundings of the time.
const ROUNDINGS: f64 = 16.0;

/// Largest number of knots in a run: each takes two steps.
const MOST: f64 = 1e7;

/// Knots in the formulas that move a model.
fn moving(model: &Model) -> impl Iterator<Item = &Knots> {
    model.knots.iter().filter(|knots| {
        let constraints = model.constraints.iter().map(|constraint| &constraint.functional);
        let forces = model.forces.iter().map(|force| &force.functional);
        let mut formulas = std::iter::once(model.moved_by()).chain(constraints).chain(forces);
        formulas.any(|formula| reads(formula, knots))
    })
}

/// True if a formula compares the time with one of the knots.
fn reads(formula: &Functional, knots: &Knots) -> bool {
    formula.terms.iter().any(|term| {
        let graph = &term.graph;
        let is_timed = |node| {
            let inputs = graph.reachable(&[node]).into_iter().map(|node| graph.expression(node));
            inputs.into_iter().any(|input| input == Expression::Input(Input::Time))
        };
        let is_knot = |node| {
            graph.value(node).is_some_and(|c| knots.times.iter().any(|k| k.abs() == c.abs()))
        };
        graph.reachable(&term.roots).into_iter().any(|node| match graph.expression(node) {
            Expression::Binary(Binary::Less, a, b) => {
                is_knot(a) && is_timed(b) || is_knot(b) && is_timed(a)
            }
            _ => false,
        })
    })
}

/// Times of knots within a run and at its end, by the clock of the run, in order. Values belong to
/// the time after a knot, so backwards a knot at the start is one, too.
fn times(model: &Model, knots: &Knots, (from, until): (f64, f64)) -> Vec<f64> {
    let [early, late] = {
        let [a, b] = [from, until].map(|t| model.clock(t));
        [a.min(b), a.max(b)]
    };
    let mut times = match knots.period {
        None => knots.times.clone(),
        Some(period) => {
            let first = knots.times[0];
            let turns = |t: f64| ((t - first) / period).floor();
            let (low, high) = (turns(early), turns(late));
            if (high - low) * knots.times.len() as f64 > MOST {
                return Vec::new();
            }
            let turn = |k: i64| knots.times[1..].iter().map(move |t| t + k as f64 * period);
            (low as i64 - 1..=high as i64).flat_map(turn).collect()
        }
    };
    times.retain(|t| (*t > early || model.reversed && *t == early) && *t <= late);
    times.iter_mut().for_each(|t| *t = model.clock(*t));
    times.sort_by(f64::total_cmp);
    times
}

/// Moments at the knots of a model in a run with these ends.
pub(crate) fn moments(model: &Model, ends: (f64, f64)) -> Vec<Moment> {
    let half = ROUNDINGS * f64::EPSILON * ends.0.abs().max(ends.1.abs());
    let mut times: Vec<f64> = moving(model).flat_map(|knots| times(model, knots, ends)).collect();
    times.sort_by(f64::total_cmp);
    times.dedup_by(|b, a| *b - *a <= 4.0 * half);
    let moment =
        |t: f64| Moment { from: t - half, until: t + half, longest: 2.0 * half, is_point: true };
    times.into_iter().map(moment).collect()
}

/// Refuse equal steps that miss a knot, and warn of what a run does at knots and beyond them.
pub(crate) fn heed(plan: &Plan, model: &Model, warnings: &mut Vec<String>) -> Result<(), Error> {
    let ends = (plan.t0, plan.t_end());
    let [early, late] = {
        let [a, b] = [ends.0, ends.1].map(|t| plan.clock(t));
        [a.min(b), a.max(b)]
    };
    for knots in moving(model) {
        let Knots { table, times: own, period, jumps } = knots;
        let (first, last) = (own[0], own[own.len() - 1]);
        if period.is_none() && (early < first || late > last) {
            warnings.push(format!(
                "table '{table}' is from t = {first} to {last}, and the run from t = {early} to {late}: its values stay constant beyond the ends"
            ));
        }
        let Stepping::Fixed(fixed) = &plan.stepping else { continue };
        let missed = |t: &f64| *t > ends.0 && *t < ends.1 && !fixed.meets(plan.t0, *t);
        if let Some(t) = times(model, knots, ends).into_iter().find(missed) {
            return Err(Error::option(format!(
                "{} misses the knot of table '{table}' at t = {}: take a step that divides the time between the start and each knot, or adaptive steps",
                option("step").with(fixed.h),
                plan.clock(t)
            )));
        }
        if *jumps {
            warnings.push(format!(
                "the values of table '{table}' jump, and equal steps may see those of the other side at their ends, an error of order h; adaptive steps see one side"
            ));
        }
    }
    Ok(())
}
