//! Tests of claimed invariants: their rates along the flow at random points and times.

use super::{Examined, shown};
use crate::elaborate::expression::TIME;
use crate::elaborate::model::{Model, Quantity};
use crate::graph::Node;
use crate::graph::calculus::Gradient;
use crate::graph::interpret::Backend;
use crate::points::Points;
use crate::rows::RowProgram;
use crate::scales::Scales;
use crate::syntax::diagnostic::Diagnostic;
use crate::templated::{RowField, RowMechanics};
use crate::treatment::structure::{self, Probe};
use crate::treatment::{Field, InvariantGroup, InvariantKind};
use holonome_linear::gram::{Gram, Row};
use holonome_words::option;

/// Fraction of the terms that should cancel in the rate of a claimed integral below which the rate
/// counts as 0.
const CONSTANT: f64 = 1e-8;

/// Rounding of a rate relative to the largest that its components could have: some ten thousand
/// roundings of a double.
const ROUNDED: f64 = 1e-11;

/// Least pivot of the constraints' gradients at a point where claims are tested.
const REGULAR: f64 = 1e-6;

/// Number of random points of the constraint set at which claims are tested.
const POINTS: usize = 8;

/// Finds the integrals (and the constraints of a state model) that the flow does not conserve.
pub(super) fn integrals_hold(model: &Model, field: &Field, span: (f64, f64), found: &mut Examined) {
    let claimed = |kind: InvariantKind| {
        kind == InvariantKind::Integral
            || kind == InvariantKind::Constraint && !model.is_hamiltonian()
    };
    // Quantities that a penalty monitors in place of the constraints are not claims.
    let claims = || field.groups.iter().filter(|g| claimed(g.kind) && !g.monitored_only);
    if claims().next().is_none() {
        return;
    }
    let scales = Scales::new(model);
    let units = scales.units(&model.initial);
    let set = structure::set_probe(model, field);
    // Where constraints are dependent the field has no forces for them, and Newton's iteration may
    // lead there.
    let is_regular = |t: f64, x: &[f64]| {
        let in_units = |row: Row| row.iter().map(|&(i, d)| (i, d * units[i as usize])).collect();
        let rows: Vec<Row> = set.at(t, x).1.into_iter().map(in_units).collect();
        Gram::new(&rows, 0.0).smallest_pivot() > REGULAR
    };
    let onto = |t: f64, x: &[f64]| match field.constraints {
        0 => Some(x.to_vec()),
        _ => structure::onto_set(&set, t, x, &units).filter(|x| is_regular(t, x)),
    };
    let (points, ambient) = sample_points(model, &scales, (span, POINTS), &onto);
    for group in claims() {
        let rows: Vec<usize> = group.members.rows().map(|(row, _)| row).collect();
        // X, the values, and ∂I/∂t beside DI.
        let mut graph = field.graph.clone();
        let values: Vec<Node> = rows.iter().map(|&r| field.invariants[r]).collect();
        let explicit: Vec<Node> = match quantity_of(model, group).depends & TIME {
            0 => vec![graph.zero(); rows.len()],
            _ => values.iter().map(|&v| graph.time_derivative(v)).collect(),
        };
        let nodes = [field.field.clone(), values, explicit].concat();
        let gradients: Vec<&Gradient> = rows.iter().map(|&r| &field.jacobian[r]).collect();
        let probe =
            Probe::new(&graph, &nodes, &gradients, field.dimension, &model.parameter_values);
        let rates = |(t, x): &Point| -> (f64, Vec<Rate>) {
            let (mut v, jacobian) = probe.at(*t, x);
            let mut values = v.split_off(field.dimension);
            let explicit = values.split_off(rows.len());
            let speeds = Speeds::new(model, &units, v);
            let row = |(k, row): (usize, &Row)| {
                Rate::new(values[k], explicit[k], row.iter().copied(), &speeds)
            };
            (*t, jacobian.iter().enumerate().map(row).collect())
        };
        let [points, ambient] =
            [&points, &ambient].map(|list| list.iter().map(rates).collect::<Vec<_>>());
        judge(model, group, &points, &ambient, found);
    }
}

/// [`integrals_hold`] for a model that is run over rows.
pub(super) fn rows_hold(
    (model, scales): (&Model, &Scales),
    field: &RowField,
    span: (f64, f64),
    backend: &dyn Backend,
    found: &mut Examined,
) {
    // Newton's method towards random points of the set needs a factorisation in each of its steps.
    const MOST_CONSTRAINTS: usize = 2_000;
    let parameters = &model.parameter_values;
    let explicit = field.explicit_rates(model, || RowMechanics::new(model));
    let units = scales.units(&model.initial);
    let row = |entries: &[f64], i: usize| -> Row { field.pattern.row(i).values(entries).collect() };
    let constraints = |t: f64, x: &[f64]| {
        let mut values = field.invariants.evaluate_by(backend, t, x, parameters);
        values.truncate(field.constraints);
        let entries = field.jacobian.evaluate_by(backend, t, x, parameters);
        (values, (0..field.constraints).map(|i| row(&entries, i)).collect::<Vec<Row>>())
    };
    let rates = |(t, x): &(f64, Vec<f64>)| -> Vec<Rate> {
        let at = |program: &RowProgram| program.evaluate_by(backend, *t, x, parameters);
        let (mut v, values, explicit, entries) =
            (at(&field.field), at(&field.invariants), at(&explicit), at(&field.jacobian));
        let half = field.constraints / 2;
        if half > 0 {
            let (g, h): (Vec<Row>, Vec<Row>) =
                (0..half).map(|i| (row(&entries, i), row(&entries, half + i))).unzip();
            add_constraint_forces(&g, &h, &explicit[half..2 * half], model.degrees(), &mut v);
        }
        let speeds = Speeds::new(model, &units, v);
        let rate =
            |i: usize| Rate::new(values[i], explicit[i], row(&entries, i).into_iter(), &speeds);
        (0..field.count()).map(rate).collect()
    };
    // Points near the start, from which Newton's method needs few steps.
    let nearer = |x: &[f64]| -> Vec<f64> {
        model.initial.iter().zip(x).map(|(a, b)| a + 0.1 * (b - a)).collect()
    };
    // The positions of the start with other momenta, which need a factorisation or two; where the
    // set moves, at the time of the start.
    let degrees = model.degrees();
    let tangent = |t: f64, x: &[f64]| -> Option<Vec<f64>> {
        let mut y = [&model.initial[..degrees], &x[degrees..]].concat();
        for _ in 0..2 {
            let (values, rows) = constraints(t, &y);
            let (g, h) = rows.split_at(field.constraints / 2);
            take_off_forces(g, h, &values[g.len()..], degrees, &mut y);
        }
        y.iter().all(|y| y.is_finite()).then_some(y)
    };
    let onto = |t: f64, x: &[f64]| match field.constraints {
        0 => Some(x.to_vec()),
        1..=MOST_CONSTRAINTS => structure::onto_zeros(&constraints, t, &nearer(x), &units),
        _ => tangent(t, x),
    };
    let count = if field.constraints == 0 { POINTS } else { 2 };
    let moves = model.constraints.iter().any(|c| c.depends & TIME != 0);
    let at_start = moves && field.constraints > MOST_CONSTRAINTS;
    let span = if at_start { (model.t0, model.t0) } else { span };
    let (points, ambient) = sample_points(model, scales, (span, count), &onto);
    let at = |list: &[(f64, Vec<f64>)]| -> Vec<(f64, Vec<Rate>)> {
        list.iter().map(|p| (p.0, rates(p))).collect()
    };
    // Off the set the constraint forces are not those of the Dirac extension.
    let (points, ambient) =
        (at(&points), if field.constraints == 0 { at(&ambient) } else { Vec::new() });
    for group in field.groups.iter().filter(|g| g.kind == InvariantKind::Integral) {
        let of_group = |all: &[(f64, Vec<Rate>)]| -> Vec<(f64, Vec<Rate>)> {
            let rows = |rates: &[Rate]| group.members.rows().map(|(row, _)| rates[row]).collect();
            all.iter().map(|(t, rates)| (*t, rows(rates))).collect()
        };
        judge(model, group, &of_group(&points), &of_group(&ambient), found);
    }
}

/// Adds −Gᵀλ to ṗ, where A λ = h' X_H + `explicit` with A = h_p Gᵀ and h_t = `explicit`: motion
/// from the set then stays in it.
fn add_constraint_forces(g: &[Row], h: &[Row], explicit: &[f64], degrees: usize, v: &mut [f64]) {
    let along = |row: &Row| row.iter().map(|&(i, d)| d * v[i as usize]).sum::<f64>();
    let right: Vec<f64> = h.iter().zip(explicit).map(|(row, rate)| along(row) + rate).collect();
    take_off_forces(g, h, &right, degrees, v);
}

/// Subtracts Gᵀλ with A λ = `right` from the momenta, or from their rates, in `v`.
fn take_off_forces(g: &[Row], h: &[Row], right: &[f64], degrees: usize, v: &mut [f64]) {
    let n = degrees as u32;
    let over_momenta = |row: &Row| -> Row { row.iter().map(|&(i, d)| (i + n, d)).collect() };
    let forces: Vec<Row> = g.iter().map(over_momenta).collect();
    let lambda = Gram::of_products(h, &forces).solve(right);
    for (row, lambda) in forces.iter().zip(lambda) {
        row.iter().for_each(|&(i, d)| v[i as usize] -= lambda * d);
    }
}

/// An invariant at a point: its value, its rate of change along the field, the scale of the terms
/// that should cancel in the rate, and the largest rate that is rounding.
#[derive(Clone, Copy)]
struct Rate {
    value: f64,
    rate: f64,
    size: f64,
    noise: f64,
}

impl Rate {
    /// The rate from ∂I/∂t, the entries of DI, and the field.
    fn new(
        value: f64,
        explicit: f64,
        gradient: impl Iterator<Item = (u32, f64)>,
        field: &Speeds,
    ) -> Rate {
        let (mut rate, mut size, mut wide) = (explicit, explicit.abs(), 0.0);
        for (i, d) in gradient {
            let along = d * field.v[i as usize];
            rate += along;
            size += along.abs();
            wide += d.abs() * field.wide[i as usize];
        }
        Rate { value, rate, size, noise: CONSTANT * size + ROUNDED * wide }
    }

    fn varies(&self) -> bool {
        self.rate.is_finite() && self.rate.abs() > self.noise
    }
}

/// The field at a point, and beside each component the size that it could have: as large as others
/// of its family, and as fast relative to its own size as the fastest family. Terms that cancel
/// inside the field leave a rounding of that.
struct Speeds {
    v: Vec<f64>,
    wide: Vec<f64>,
}

impl Speeds {
    fn new(model: &Model, units: &[f64], v: Vec<f64>) -> Speeds {
        let families = || model.variables.iter().map(|f| f.first..f.first + f.family.len());
        let largest = |v: &mut dyn Iterator<Item = f64>| v.fold(0.0f64, |s, v| s.max(v.abs()));
        let fastest = largest(&mut v.iter().zip(units).map(|(v, unit)| v / unit));
        let mut wide = vec![0.0; v.len()];
        for family in families() {
            let speed = largest(&mut v[family.clone()].iter().copied());
            let size = largest(&mut units[family.clone()].iter().copied());
            wide[family].fill(speed.max(fastest * size));
        }
        Speeds { v, wide }
    }
}

/// A time and a state.
type Point = (f64, Vec<f64>);

/// Moves a state onto the set of a time; `None` if that fails.
type Onto<'a> = &'a dyn Fn(f64, &[f64]) -> Option<Vec<f64>>;

/// Points at which claims are tested: points of the constraint set, the initial state first, and
/// points off it, each at a random time of the run. `onto` moves a point onto the set of its time.
fn sample_points(
    model: &Model,
    scales: &Scales,
    (span, count): ((f64, f64), usize),
    onto: Onto,
) -> (Vec<Point>, Vec<Point>) {
    let mut times = Points::new(0x71fe);
    let mut time = || span.0 + 0.5 * (1.0 + times.draw()) * (span.1 - span.0);
    let drawn = structure::points_around(scales, &model.initial, count, 0x1e57);
    let on_set =
        drawn.into_iter().map(|x| (time(), x)).filter_map(|(t, x)| Some((t, onto(t, &x)?)));
    let points = std::iter::once((model.t0, model.initial.clone())).chain(on_set).collect();
    let ambient = structure::points_around(scales, &model.initial, 4, 0xa3b1);
    (points, ambient.into_iter().map(|x| (time(), x)).collect())
}

fn quantity_of<'a>(model: &'a Model, group: &InvariantGroup) -> &'a Quantity {
    let list =
        if group.kind == InvariantKind::Integral { &model.integrals } else { &model.constraints };
    list.iter().find(|q| q.name == group.name).expect("a group has its quantity")
}

/// Decides from the rates of a group's rows, at points of the set and elsewhere, whether the flow
/// conserves it. Points at which the model has no value are ignored.
fn judge(
    model: &Model,
    group: &InvariantGroup,
    points: &[(f64, Vec<Rate>)],
    ambient: &[(f64, Vec<Rate>)],
    found: &mut Examined,
) {
    let all = points.iter().flat_map(|(t, rates)| rates.iter().map(move |rate| (*t, rate)));
    let worst =
        all.filter(|(_, r)| r.varies()).max_by(|a, b| a.1.rate.abs().total_cmp(&b.1.rate.abs()));
    // V = ½ Σ w (F − F₀)² may be constant although F is not: RᵀR = 1 of a rigid body off SO(3).
    let target = |k: usize| match group.kind {
        InvariantKind::Integral => points[0].1[k].value,
        _ => 0.0,
    };
    let potential_varies = |(_, rates): &(f64, Vec<Rate>)| {
        let (mut rate, mut noise) = (0.0, 0.0);
        for (k, (r, (_, weight))) in rates.iter().zip(group.members.rows()).enumerate() {
            let deviation = r.value - target(k);
            rate += weight * deviation * r.rate;
            noise += weight * deviation.abs() * r.noise;
        }
        rate.is_finite() && rate > noise
    };
    if let Some((t, rate)) = worst {
        let what = if group.kind == InvariantKind::Integral {
            ("integral", "is not a first integral")
        } else {
            ("constraint", "is not kept by the field")
        };
        let message = format!(
            "{} '{}' {}: at a random point and t = {} it changes at the rate {:.3e} ({:.1e} of the terms that should cancel in it)",
            what.0,
            group.name,
            what.1,
            shown(t),
            rate.rate.abs(),
            rate.rate.abs() / rate.size
        );
        let finding =
            Diagnostic::warning(message, quantity_of(model, group).span, "varies along the flow").help(format!(
                "correct the formula, or record it with `observe` instead; {allow_unverified} runs without holding it",
                allow_unverified = option("allow_unverified")
            ));
        found.varying.push(group.name.clone());
        found.unverified.push(finding);
    } else if ambient.iter().any(potential_varies) {
        found.weak_integrals.push(group.name.clone());
    }
}
