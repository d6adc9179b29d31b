//! Rigid molecules: sums over pairs of their sites, held by constraints.

mod common;

use common::{load, model, options, repository};
use holonome::{Problem, RunOptions, Settings, StepSize, prepare};
use std::collections::BTreeMap;
use toml::Table;

/// Tolerance of the positions and momenta. Positions are within 20 Å and have a round-off of 4e-15,
/// momenta within 3; forces between close sites, up to 10 eV/Å, lose two digits, over some tens of
/// steps.
const TOLERANCE: f64 = 1e-12;

#[test]
fn steps_of_the_independent_program() {
    let text = std::fs::read_to_string(repository().join("suite/structure/water.toml")).unwrap();
    let table: Table = text.parse().unwrap();
    for row in table["water"].as_array().unwrap() {
        let (n, count) = (row["n"].as_integer().unwrap(), row["count"].as_integer().unwrap());
        let problem = model("water", &[("N", &n.to_string())]);
        let start = problem.model.initial.clone();
        let h = row["h"].as_float().unwrap();
        let step = StepSize::Fixed(h);
        let options = RunOptions {
            method: "rattle".parse().unwrap(),
            step,
            until: 1.0,
            ..RunOptions::default()
        };
        let simulation = prepare(problem, options).unwrap();
        let own = simulation.steps((0.0, h), count as u64, &start).unwrap();
        let numbers =
            |name: &str| row[name].as_array().unwrap().iter().map(|x| x.as_float().unwrap());
        let expected: Vec<f64> = numbers("x").chain(numbers("p")).collect();
        assert_eq!(own.len(), expected.len());
        let gap = own.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        println!("{n} molecules: {gap:.1e}");
        assert!(gap < TOLERANCE, "{n} molecules: {gap:e}");
    }
}

/// Different forms of the same sums: one over all four indices, others nested, every pair twice;
/// and sites as components of a vector.
#[test]
fn sums_over_sites_may_be_written_in_any_way() {
    let text = std::fs::read_to_string(repository().join("models/water.holo")).unwrap();
    let nested = "sum(s in 1..3, u in 1..3 : K*Q[s]*Q[u]/distance(a, s, b, u)))";
    let oxygens = "sum(a in 1..N, b in a+1..N : oxygens(distance(a, 2, b, 2)) +";
    assert!(text.contains(nested) && text.contains(oxygens));
    let apart =
        text.replace(oxygens, "sum(a in 1..N, b in a+1..N : oxygens(distance(a, 2, b, 2))) +");
    let written = [
        text.clone(),
        apart.replace(nested, "sum(a in 1..N, b in a+1..N, s in 1..3, u in 1..3 : K*Q[s]*Q[u]/distance(a, s, b, u))"),
        apart.replace(
            nested,
            "sum(a in 1..N, b in 1..N, s in 1..3, u in 1..3 if a != b : K*Q[s]*Q[u]/distance(a, s, b, u))/2",
        ),
        apart.replace(
            nested,
            "sum(a in 1..N, s in 1..3 : Q[s]*sum(b in a+1..N, u in 1..3 : K*Q[u]/distance(a, s, b, u)))",
        ),
    ];
    let state = |text: &str| {
        let path = repository().join("models");
        let tables = ["water-7.csv", "water-100.csv"];
        let tables = tables
            .map(|name| (name.to_string(), std::fs::read_to_string(path.join(name)).unwrap()));
        let settings =
            Settings { set: vec![("N".to_string(), "20".to_string())], ..Settings::default() };
        let problem =
            Problem::from_text("water", text, &BTreeMap::from(tables), &settings).unwrap();
        common::run(problem, options("--method rattle --step 0.05 --until 1")).unwrap().state()
    };
    let first = state(&written[0]);
    for text in &written[1..] {
        let gap = first.iter().zip(state(text)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(gap < TOLERANCE, "{gap:e}");
    }
}

/// Rods and hidden constraints hold to round-off, energy and momenta within the error of a
/// second-order method.
#[test]
fn molecules_stay_rigid() {
    for n in ["3", "7", "40"] {
        let path = repository().join("models/water.holo");
        let problem = load(&path, &[("N", n)]).unwrap();
        let finished =
            common::run(problem, options("--method rattle --step 0.05 --until 25")).unwrap();
        for drift in &finished.summary.drift {
            let limit = if drift.name == "H" { 5e-3 } else { 1e-11 };
            assert!(drift.max < limit, "{n} molecules: {} {:e}", drift.name, drift.max);
        }
        assert!(finished.summary.drift.len() > 8, "every invariant is monitored");
    }
}

/// Forces at the end of a step begin the next (FSAL): one evaluation per substep, and one for the
/// start, also for forces that depend on time, for which steps with −h return to the start.
#[test]
fn forces_are_evaluated_once_a_step() {
    let evaluations = |method: &str, n: &str, steps: &str| {
        let problem = model("water", &[("N", n)]);
        let finished = common::run(
            problem,
            options(&format!("--method {method} --step 0.05 --until {steps}")),
        )
        .unwrap();
        finished.summary.cost.gradient
    };
    assert_eq!(evaluations("rattle", "20", "2"), 41);
    assert_eq!(evaluations("suzuki4(rattle)", "20", "0.5"), 51);
    const DRIVEN: &str = "size n = 60\ncoordinate q[i in 1..n] : R^2 = (cos(2.4*i), sin(2.4*i))*sqrt(i)\n\
        momentum p[i] of q = (0.2*sin(i), 0.1*cos(3*i))\n\
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/2) + \
        (1 + 0.5*cos(3*t))*sum(i in 1..n, j in i+1..n : 1/sqrt(dot(q[i] - q[j], q[i] - q[j]) + 0.1))\n";
    let problem =
        || Problem::from_text("driven", DRIVEN, &BTreeMap::new(), &Settings::default()).unwrap();
    for method in ["stormer-verlet-a", "yoshida4(stormer-verlet-a)"] {
        let (h, steps, start) = (0.02, 50, problem().model.initial.clone());
        let step = StepSize::Fixed(h);
        let set = RunOptions {
            method: method.parse().unwrap(),
            step,
            until: 1.0,
            ..RunOptions::default()
        };
        let simulation = prepare(problem(), set).unwrap();
        let there = simulation.steps((0.0, h), steps, &start).unwrap();
        let back = simulation.steps((h * steps as f64, -h), steps, &there).unwrap();
        let gap = start.iter().zip(&back).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(gap < 1e-12, "{method}: {gap:e}");
        let whole = common::run(
            problem(),
            options(&format!("--method {method} --step {h} --until 1 --samples 6")),
        )
        .unwrap();
        assert_eq!(whole.state(), there, "{method}");
    }
}
