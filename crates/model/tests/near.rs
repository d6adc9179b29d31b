//! Tests of sums over near pairs: lists give the results of all pairs, whatever positions they were
//! made for.

mod support;

use holonome_model::elaborate::model::{Dynamics, Model};
use holonome_model::functional::Functional;
use holonome_model::graph::interpret::Interpreter;
use holonome_model::rows::{RowKernel, RowProgram};

/// Condition of sums for which lists are made.
const LISTED: &str = "norm(d(i, j)) < rc";

/// Models of one sum: with lists; with all pairs, because its condition is written otherwise; and
/// with lists of its own once more. `PAIRS` stands for the condition.
fn both(text: &str) -> [Model; 3] {
    [LISTED, "norm(d(i, j)) - rc < 0", LISTED].map(|condition| {
        let (model, findings) = support::check(&text.replace("PAIRS", condition));
        model.unwrap_or_else(|| panic!("{text}: {findings:#?}"))
    })
}

fn dynamics(model: &Model) -> &Functional {
    let (Dynamics::Hamiltonian(f, _) | Dynamics::Field(f)) = &model.dynamics;
    f
}

fn is_listed(functional: &Functional) -> bool {
    functional.terms.iter().any(|term| term.pairs.is_some())
}

fn field(model: &Model) -> RowProgram {
    let pieces = match &model.dynamics {
        Dynamics::Hamiltonian(h, _) => RowProgram::hamiltonian_field(h, model.degrees()),
        Dynamics::Field(f) => RowProgram::values(f, &|output| Some(output as u32)),
    };
    RowProgram::new(model.dimension(), model.dimension(), pieces)
}

/// A fluid; `BOX` is the argument of `nearest`, or `d` is a plain difference.
const FLUID: &str = "size n = 352
parameter rc = 1.9
parameter sigma[i in 1..n] = 1 + 0.1*cos(i)
let spread(i, a) = 6.5*(0.5 + 0.5*sin(a*i^2))
coordinate r[i in 1..n] : R^3 = (spread(i, 1.3), spread(i, 2.7), spread(i, 3.1))
momentum p of r
let fade(u) = (rc^2 - dot(u, u))^3
let d(i, j) = DISTANCE
hamiltonian sum(i in 1..n : dot(p[i], p[i])/2) - sum(RANGES : sigma[i]*sigma[j]^2*fade(d(i, j)))
observe near[i in 1..n] = sum(j in 1..n if j != i and PAIRS : 1)
";

fn fluid(distance: &str, ranges: &str) -> [Model; 3] {
    both(&FLUID.replace("DISTANCE", distance).replace("RANGES", ranges))
}

const HALF: &str = "i in 1..n, j in i+1..n if PAIRS";
const PERIODIC: &str = "nearest(r[i] - r[j], 6.5)";

fn assert_alike(got: &[f64], expected: &[f64], what: &str) {
    // Some tens of terms each, with sizes up to the largest sum.
    let size = expected.iter().fold(0.0f64, |size, x| size.max(x.abs()));
    assert!(size > 0.0, "{what}: nothing to compare");
    for (k, (a, b)) in got.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-13 * size, "{what}: {a} instead of {b} at {k}");
    }
}

/// Compares lists with all pairs at some states, to which the first model moves.
fn assert_same([listed, all, fresh]: &[Model; 3], what: &str) {
    assert!(is_listed(dynamics(listed)) && !is_listed(dynamics(all)), "{what}");
    let parameters = &listed.parameter_values;
    let [of_lists, of_rows] = [listed, all].map(|model| {
        let program = field(model);
        RowKernel::new(&program, parameters, &Interpreter, 8)
    });
    let n = listed.dimension();
    let mut work = vec![0.0; of_lists.work_len().max(of_rows.work_len())];
    let mut x = listed.initial.clone();
    let (mut got, mut again, mut expected) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    for step in 0..6 {
        of_lists.run(0.0, &x, &mut got, &mut work);
        of_rows.run(0.0, &x, &mut expected, &mut work);
        assert_alike(&got, &expected, what);
        // A list made here gives the same bits as one made on the way.
        let fresh = RowKernel::new(&field(fresh), parameters, &Interpreter, 8);
        fresh.run(0.0, &x, &mut again, &mut work);
        assert_eq!(got, again, "{what}");
        for (k, x) in x.iter_mut().enumerate() {
            *x += 0.03 * f64::from(step) * (k as f64).cos();
        }
    }
    for (listed, all) in listed.observables.iter().zip(&all.observables) {
        let value =
            |functional| RowProgram::functional(functional, &Interpreter, 0.0, &x, parameters);
        assert!(is_listed(&listed.functional), "{what}");
        assert_eq!(value(&listed.functional), value(&all.functional), "{what}");
        assert_eq!(
            value(&listed.functional),
            listed.functional.evaluate(0.0, &x, parameters),
            "{what}"
        );
    }
    if listed.is_hamiltonian() {
        let energy = |model: &Model| {
            RowProgram::functional(dynamics(model), &Interpreter, 0.0, &x, parameters)
        };
        assert_alike(&energy(listed), &energy(all), what);
    }
}

#[test]
fn boxes_of_every_kind() {
    for distance in [
        "r[i] - r[j]",
        PERIODIC,
        "nearest(r[i] - r[j], (6.5, 4.2, 9))",
        "nearest(r[j] - r[i], (11, 11, 11))",
        "(r[i].x - r[j].x, r[i].y - r[j].y)",
        "nearest((r[i].x - r[j].x, r[i].z - r[j].z, r[i].y - r[j].y), (6, 7, 8))",
    ] {
        assert_same(&fluid(distance, HALF), distance);
    }
}

#[test]
fn pairs_of_every_kind() {
    for ranges in [
        HALF,
        "i in 1..n, j in 1..n if i != j and PAIRS",
        "i in 1..n, j in i+3..n if PAIRS",
        "i in 5..n-8, j in i+1..n if j != i + 2 and PAIRS",
        // Two kinds of unlike numbers, one of them counted from the end.
        "i in 1..120, j in 121..n+0*n if PAIRS",
        "i in 10..n, j in 1..i-1 if PAIRS",
        "i in 1..n, j in i+1..n if j > i + 4 and PAIRS and not (j == i + 7)",
    ] {
        let models = fluid(PERIODIC, ranges);
        if ranges.contains("120") {
            // Too few for lists.
            assert!(!is_listed(dynamics(&models[0])));
            continue;
        }
        assert_same(&models, ranges);
    }
    let wide = "i in 1..200, j in 1..n if PAIRS";
    let text = FLUID.replace("DISTANCE", "nearest(s[i] - r[j], 6.5)").replace("RANGES", wide);
    let text = text.replace(
        "momentum p of r",
        "momentum p of r\ncoordinate s[i in 1..200] : R^3 = (spread(i, 4.3), 2*i, -i)\nmomentum q of s",
    );
    let text =
        text.replace("observe near[i in 1..n] = sum(j in 1..n if j != i and PAIRS : 1)\n", "");
    assert_same(&both(&text), "two families");
}

#[test]
fn vector_fields_over_pairs() {
    let text = "size n = 360
parameter rc = 0.35
state x[i in 1..n] : R^2 = (sin(i^2), cos(3*i^2))
let d(i, j) = nearest(x[i] - x[j], 2)
x[i]' = x[i]/7 - sum(j in 1..n if i != j and PAIRS : (rc - norm(d(i, j)))^3*d(i, j))/3
";
    assert_same(&both(text), "field");
}

#[test]
fn where_most_are_near_there_are_no_lists() {
    for (distance, rc, listed) in [
        (PERIODIC, 1.9, true),
        (PERIODIC, 3.2, false),
        // It is not known how far bodies spread.
        ("r[i] - r[j]", 3.2, true),
        ("nearest((r[i].x - r[j].x, r[i].y - r[j].y), (9, 8))", 3.5, false),
        ("nearest((r[i].x - r[j].x, r[i].y - r[j].y), (9, 90))", 3.5, true),
    ] {
        let text = FLUID.replace("DISTANCE", distance).replace("RANGES", HALF);
        let [model, ..] = both(&text.replace("rc = 1.9", &format!("rc = {rc}")));
        assert_eq!(is_listed(dynamics(&model)), listed, "{distance} < {rc}");
    }
}

#[test]
fn what_is_no_list_is_rows() {
    for (text, why) in [
        (FLUID.replace("sigma[i]*sigma[j]^2", "cos(i*j)"), "a number of both indices"),
        (FLUID.replace("sigma[i]*sigma[j]^2", "dot(p[i], p[j])"), "momenta"),
        (FLUID.replace("DISTANCE", "r[i] - 2*r[j] + r[1]"), "no distance of two"),
    ] {
        let text =
            text.replace("DISTANCE", PERIODIC).replace("RANGES", HALF).replace("PAIRS", LISTED);
        let (model, findings) = support::check(&text);
        let model = model.unwrap_or_else(|| panic!("{why}: {findings:#?}"));
        assert!(!is_listed(dynamics(&model)), "{why}");
    }
}

#[test]
fn places_that_are_no_numbers_end_nothing() {
    let [model, ..] = fluid(PERIODIC, HALF);
    let program = field(&model);
    let mut x = model.initial.clone();
    for bad in [f64::NAN, f64::INFINITY, 1e300, -1e300] {
        x[7] = bad;
        let value = program.evaluate(0.0, &x, &model.parameter_values);
        assert_eq!(value.len(), x.len());
    }
}
