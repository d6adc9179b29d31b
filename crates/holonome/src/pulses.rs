//! Pulses in a model's explicit time: short times in which a formula changes and after which it is
//! what it was.
//!
//! No error estimate sees a pulse between the stages of a step, and a second run with other steps
//! that misses it, too, confirms the first. The formulas are known, however. Every part of them
//! that depends on the time is bounded over intervals, which are halved where it changes; the state
//! in it is that of the start. Times at which it changes, enclosed by longer ones at which it has
//! the same value, are pulses: adaptive steps do not pass over them. A jump alone is none: whatever
//! comes after it is seen. Neither is an oscillation, which is not constant in between.

mod intervals;

use crate::error::Error;
use crate::knots;
use holonome_integrate::plan::{Moment, Plan, Stepping};
use holonome_model::elaborate::model::Model;
use holonome_model::functional::{Source, Term};
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_words::option;
use intervals::{Interval, TimeFormula};
use rustc_hash::FxHashSet;

/// Part of all that a formula changes by below which it counts as constant.
const CONSTANT: f64 = 1e-6;

/// Length of a pulse, relative to the times around it at which nothing happens, from which on it is
/// none.
const SHORT: f64 = 0.25;

/// Length of a pulse, relative to the run, from which on steps see it.
const PART_OF_RUN: f64 = 0.1;

/// Number of steps in a pulse: a Gaussian is 7 of its widths long, so that the first one within it
/// meets a rise.
const STEPS: f64 = 8.0;

/// Largest number of evaluations over an interval for one formula: some hundredths of a second.
const BUDGET: usize = 200_000;

/// Largest number of rows of a term, and of formulas in all, whose times are searched.
const MOST_ROWS: usize = 64;

/// Part of a run below which times that remain unresolved are short pulses and no oscillation.
const RARE: f64 = 0.2;

/// Pulses of a run.
#[derive(Debug, Default)]
pub(crate) struct Pulses {
    /// The pulses, in the order of time and apart from each other.
    pub moments: Vec<Moment>,
    /// Length of pulses that are too many to be listed; 0 if there are none.
    pub unlisted: f64,
}

/// Pulses of a model with these parameter values, which starts at `x`, in its explicit time.
pub(crate) fn pulses(
    model: &Model,
    (parameters, x): (&[f64], &[f64]),
    (from, until): (f64, f64),
) -> Pulses {
    let mut found = Pulses::default();
    let constraints = model.constraints.iter().map(|c| (&c.functional, false));
    let forces = model.forces.iter().map(|force| (&force.functional, false));
    let moving = std::iter::once((model.moved_by(), model.is_hamiltonian()));
    for (functional, moved_by) in moving.chain(constraints).chain(forces) {
        for term in &functional.terms {
            for node in timed_parts(term, moved_by) {
                for formula in of_rows(term, node, (parameters, x)) {
                    search(&formula, (from, until), &mut found);
                }
            }
        }
    }
    let points = knots::moments(model, (from, until));
    // What a formula does at a knot is no pulse.
    let is_at = |pulse: &Moment, point: &Moment| {
        pulse.until - pulse.from <= 100.0 * point.longest
            && pulse.from <= point.until
            && point.from <= pulse.until
    };
    found.moments.retain(|pulse| !points.iter().any(|point| is_at(pulse, point)));
    found.moments.extend(points);
    found.moments = apart(found.moments);
    found
}

/// `plan` with steps that do not pass over the pulses of a model, and warnings about those that
/// they do pass over.
///
/// # Errors
/// If equal steps miss a knot of a table.
pub(crate) fn heed(plan: Plan, model: &Model, warnings: &mut Vec<String>) -> Result<Plan, Error> {
    knots::heed(&plan, model, warnings)?;
    let found = pulses(model, (&model.parameter_values, &model.initial), (plan.t0, plan.t_end()));
    let longest = match &plan.stepping {
        Stepping::Fixed(fixed) => fixed.h,
        Stepping::Adaptive(adaptive) => adaptive.longest_step,
    };
    let (remedy, passed) = match &plan.stepping {
        Stepping::Fixed(_) => {
            let is_passed = |moment: &&Moment| !moment.is_point && 2.0 * moment.longest < longest;
            (option("step"), found.moments.iter().find(is_passed))
        }
        Stepping::Adaptive(_) => (option("max_step"), None),
    };
    if let Some(&Moment { from, until, longest: short, .. }) = passed {
        let [from, until] = [from, until].map(|t| plan.clock(t));
        warnings.push(format!(
            "a formula has a pulse in time from t = {from} to {until}, and steps of {longest} may pass over it: \
             take {} or less, or a method with adaptive steps",
            option("step").with(format_args!("{short:.0e}"))
        ));
    }
    if found.unlisted > 0.0 && longest > found.unlisted {
        warnings.push(format!(
            "a formula has many short pulses in time, and steps may pass over them: take {} or less",
            remedy.with(format_args!("{:.0e}", found.unlisted))
        ));
    }
    Ok(plan.with_moments(found.moments))
}

/// Largest parts of a term's formulas of whose values over time pulses are to be sought. Sums and
/// products with the state are taken apart; what the time adds to a Hamiltonian (`adds_nothing`)
/// moves nothing.
fn timed_parts(term: &Term, adds_nothing: bool) -> Vec<Node> {
    let graph = &term.graph;
    let plan = graph.reachable(&term.roots);
    let place = |node: Node| plan.binary_search(&node).expect("the plan has what roots depend on");
    // For every node, whether it depends on the time, and whether on the state.
    let mut depends: Vec<[bool; 2]> = Vec::with_capacity(plan.len());
    for &node in &plan {
        depends.push(match graph.expression(node) {
            Expression::Input(Input::Time) => [true, false],
            Expression::Input(Input::Slot(k)) => [false, term.slots[k as usize] == Source::State],
            other => other.arguments().fold([false; 2], |all, a| {
                let of = depends[place(a)];
                [all[0] || of[0], all[1] || of[1]]
            }),
        });
    }
    let mut seen = FxHashSet::default();
    let mut parts = Vec::new();
    let mut stack: Vec<(Node, bool)> =
        term.roots.iter().map(|&root| (root, adds_nothing)).collect();
    while let Some((node, adds_nothing)) = stack.pop() {
        let [timed, moves] = depends[place(node)];
        if !timed || !seen.insert((node, adds_nothing)) {
            continue;
        }
        let expression = graph.expression(node);
        let is_sum = matches!(expression, Expression::Binary(Binary::Add | Binary::Sub, ..))
            || matches!(expression, Expression::Unary(Unary::Neg, _));
        let opens = match expression {
            Expression::Unary(Unary::Not, _) | Expression::Select(..) | Expression::Binary(..) => {
                moves && !matches!(expression, Expression::Binary(Binary::Pow | Binary::Atan2, ..))
            }
            _ => false,
        };
        match is_sum || opens {
            true => stack
                .extend(expression.arguments().map(|argument| (argument, is_sum && adds_nothing))),
            false if adds_nothing && !moves => {}
            false => parts.push(node),
        }
    }
    parts
}

/// Formulas of `node` in the rows of its term, each one once.
fn of_rows(term: &Term, node: Node, (parameters, x): (&[f64], &[f64])) -> Vec<TimeFormula> {
    let slots = slots_of(&term.graph, node);
    let mut seen = FxHashSet::default();
    let mut formulas = Vec::new();
    for row in term.table.each() {
        let value = |k: u32| {
            let entry = row.at(k as usize) as usize;
            match term.slots[k as usize] {
                Source::State => x[entry],
                Source::Parameter => parameters[entry],
                Source::Number => term.numbers[entry],
            }
        };
        if seen.insert(slots.iter().map(|&k| value(k).to_bits()).collect::<Vec<_>>()) {
            let input = |input: Input| if let Input::Slot(k) = input { value(k) } else { f64::NAN };
            formulas.push(TimeFormula::new(&term.graph, node, input));
        }
        if formulas.len() == MOST_ROWS {
            break;
        }
    }
    formulas
}

fn slots_of(graph: &Graph, node: Node) -> Vec<u32> {
    let inputs = graph.reachable(&[node]).into_iter().map(|node| graph.expression(node));
    inputs
        .filter_map(|e| if let Expression::Input(Input::Slot(k)) = e { Some(k) } else { None })
        .collect()
}

/// Stretch of time with the bounds of a formula there.
#[derive(Clone, Copy, Debug)]
struct Cell {
    from: f64,
    size: f64,
    bounds: Interval,
}

/// Find the pulses of a formula. Intervals are cells of a grid that no end of a run decides.
fn search(formula: &TimeFormula, (from, until): (f64, f64), found: &mut Pulses) {
    let (span, mut work) = (until - from, Vec::new());
    let mut cell = |at: f64, size: f64| Cell {
        from: at,
        size,
        bounds: formula.bounds(at, at + size, &mut work),
    };
    let root = span.log2().ceil().exp2();
    let first = (from / root).floor() * root;
    let is_in = |cell: &Cell| cell.from < until && cell.from + cell.size > from;
    // Below this a cell is a point in time.
    let least = 16.0 * f64::EPSILON * from.abs().max(until.abs());
    let (mut constant, mut changing): (Vec<Cell>, Vec<Cell>) = (Vec::new(), Vec::new());
    let mut open: Vec<Cell> =
        (0..2).map(|k| cell(first + f64::from(k) * root, root)).filter(is_in).collect();
    let mut spent = 0;
    while !open.is_empty() {
        let all = constant.iter().chain(&changing).chain(&open).map(|cell| cell.bounds);
        let finite = all.filter(|bounds| bounds.width().is_finite());
        let change = finite.reduce(Interval::hull).map_or(0.0, Interval::width);
        let mut next = Vec::new();
        for parent in std::mem::take(&mut open) {
            if parent.bounds.width() <= CONSTANT * change {
                constant.push(parent);
                continue;
            }
            let half = 0.5 * parent.size;
            if half < least {
                changing.push(parent);
                continue;
            }
            let halves = [cell(parent.from, half), cell(parent.from + half, half)];
            spent += 2;
            let [left, right] = halves.map(|half| half.bounds.width());
            let whole = parent.bounds.width();
            // What rises or falls in both halves has no pulse between.
            match whole.is_finite() && left.min(right) >= 0.2 * whole && left + right <= 1.5 * whole
            {
                true => changing.push(parent),
                false => next.extend(halves.iter().filter(|half| is_in(half))),
            }
        }
        open = next;
        if spent > BUDGET {
            let changes: f64 = open.iter().chain(&changing).map(|cell| cell.size).sum();
            if changes < RARE * span {
                let size = open.iter().map(|cell| cell.size).fold(0.0, f64::max);
                found.unlisted = if found.unlisted > 0.0 { found.unlisted.min(size) } else { size };
            }
            return;
        }
    }
    let all = constant.iter().chain(&changing).map(|cell| cell.bounds);
    let change = all
        .filter(|bounds| bounds.width().is_finite())
        .reduce(Interval::hull)
        .map_or(0.0, Interval::width);
    constant.sort_by(|a, b| a.from.total_cmp(&b.from));
    add_pulses(&constant, 10.0 * CONSTANT * change, (from, until), found);
}

/// Add the changes between constant times after which a formula is what it was before, up to
/// `nothing`.
fn add_pulses(constant: &[Cell], nothing: f64, (from, until): (f64, f64), found: &mut Pulses) {
    // Times without a change: start, end, and the values at both.
    let mut gaps: Vec<(f64, f64, f64, f64)> = Vec::new();
    for cell in constant {
        let (end, value) = (cell.from + cell.size, cell.bounds.middle());
        match gaps.last_mut().filter(|gap| gap.1 == cell.from) {
            Some(gap) => (gap.1, gap.3) = (end, value),
            None => gaps.push((cell.from, end, value, value)),
        }
    }
    let last = gaps.len().saturating_sub(1);
    let mut before = 0;
    while before < last {
        let (start, value) = (gaps[before].1, gaps[before].3);
        let same = |after: &usize| (gaps[*after].2 - value).abs() <= nothing;
        let Some(after) = (before + 1..=last).find(same) else {
            before += 1;
            continue;
        };
        let end = gaps[after].0;
        let length = |k: usize| match k {
            _ if k == 0 && gaps[k].0 <= from || k == last && gaps[k].1 >= until => f64::INFINITY,
            _ => gaps[k].1 - gaps[k].0,
        };
        let short = end - start <= SHORT * length(before).min(length(after));
        if short && end - start <= PART_OF_RUN * (until - from) && start < until && end > from {
            found.moments.push(Moment {
                from: start,
                until: end,
                longest: (end - start) / STEPS,
                is_point: false,
            });
        }
        before = if short { after } else { before + 1 };
    }
}

/// Moments in the order of time, those that meet made one.
fn apart(mut moments: Vec<Moment>) -> Vec<Moment> {
    moments.sort_by(|a, b| a.from.total_cmp(&b.from));
    let mut out: Vec<Moment> = Vec::new();
    for moment in moments {
        match out.last_mut().filter(|last| moment.from <= last.until) {
            Some(last) => {
                last.until = last.until.max(moment.until);
                last.longest = last.longest.min(moment.longest);
                last.is_point &= moment.is_point;
            }
            None => out.push(moment),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    /// Pulses of an oscillator with this force, which starts at q = 1, from t = 0 to 100.
    fn pulses_of(force: &str) -> Pulses {
        let text = format!(
            "coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + q^2/2 - q*({force}) + cos(t)\n"
        );
        let problem: Problem = text.parse().unwrap();
        let model = &problem.model;
        pulses(model, (&model.parameter_values, &model.initial), (0.0, 100.0))
    }

    #[test]
    fn pulses_are_found_wherever_they_are() {
        for (force, number, at, length) in [
            ("exp(-((t - 50)/0.01)^2)/0.01", 1, 50.0, 0.1),
            ("exp(-((t - 17.3)/1e-4)^2)/1e-4", 1, 17.3, 1e-3),
            ("1/cosh((t - 70)/1e-3)^2", 1, 70.0, 0.02),
            ("cos(t) + exp(-((t - 50)/0.01)^2)", 1, 50.0, 0.1),
            ("cos(50*t)*exp(-((t - 50)/0.05)^2)", 1, 50.0, 0.5),
            ("if(t > 50 and t < 50.01, 1, 0)", 1, 50.005, 0.02),
            ("if(t > 50 and t < 50.01, q, 0)", 1, 50.005, 0.02),
            ("if(t > 50, 1, 0)*if(t < 50.01, 1, 0)", 1, 50.005, 0.02),
            ("max(0, 1 - abs(t - 60)/0.01)", 1, 60.0, 0.04),
            ("exp(-((t - 30 - q)/0.01)^2)", 1, 31.0, 0.1),
            ("exp(-((t - 20)/0.01)^2) - exp(-((t - 40)/0.01)^2)", 2, 20.0, 0.1),
            // One at every whole number; those at both ends are seen from there.
            ("exp(-(sin(pi*t)/1e-3)^2)", 99, 1.0, 0.01),
        ] {
            let found = pulses_of(force);
            assert_eq!((found.moments.len(), found.unlisted), (number, 0.0), "{force}: {found:?}");
            let Moment { from, until, longest, .. } = found.moments[0];
            assert!(from <= at && at <= until && until - from < length, "{force}: {found:?}");
            assert!(longest <= 0.125 * (until - from) && longest > 0.0, "{force}: {found:?}");
        }
        // More than can be listed: they are told, and how short steps have to be.
        let many = pulses_of("exp(-(sin(300*t)/1e-3)^2)");
        assert!(many.moments.is_empty() && many.unlisted > 0.0, "{many:?}");
    }

    #[test]
    fn what_is_seen_is_no_pulse() {
        for force in [
            "1",
            "t",
            "t^2 - 100*t",
            "cos(t)",
            "cos(50*t)",
            "cos(5000*t)",
            "sin(t)^2",
            "cos(t^2)",
            "if(t > 30, 1, 0)",
            "max(t - 30, 0)",
            "tanh(1e4*(t - 30))",
            "if(sin(t) > 0, 1, -1)",
            "exp(-t)",
            "exp(-((t - 50)/20)^2)",
            "t*exp(-t/10)",
            "sqrt(t)",
            "1/(1 + t^2)",
            "cos(q - 3*t)",
        ] {
            let found = pulses_of(force);
            assert!(found.moments.is_empty() && found.unlisted == 0.0, "{force}: {found:?}");
        }
    }
}
