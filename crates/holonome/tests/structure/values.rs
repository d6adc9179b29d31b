//! Test of `suite/structure/steps.toml`: states after a few steps, computed by an independent
//! program.

use crate::cases::difference;
use crate::common::{load_with, repository};
use crate::methods::{bases, compositions};
use holonome::{PenaltyStrength, RunOptions, StepSize, prepare};
use std::collections::BTreeSet;
use toml::Table;

/// Tolerance of a step. The equations are solved to round-off of their terms, which are of size 1
/// to 3; the unknowns enter with factors of h and the inverse of matrices of size 1. One or two
/// steps, of up to 15 substeps, leave some ten roundings; more steps leave proportionally more.
const TOLERANCE: f64 = 2e-14;

#[test]
fn steps_of_the_independent_program() {
    let text = std::fs::read_to_string(repository().join("suite/structure/steps.toml")).unwrap();
    let table: Table = text.parse().unwrap();
    let (mut seen, mut worst) = (BTreeSet::new(), (0.0, String::new()));
    for row in table["steps"].as_array().unwrap() {
        let (path, name) = (row["model"].as_str().unwrap(), row["method"].as_str().unwrap());
        let stiff = row.get("stiff").and_then(|name| name.as_str());
        let problem = load_with(&repository().join("suite").join(path), &[], stiff).unwrap();
        let start = problem.model.initial.clone();
        let (h, count) = (row["h"].as_float().unwrap(), row["count"].as_integer().unwrap() as u64);
        let state: Vec<f64> =
            row["state"].as_array().unwrap().iter().map(|x| x.as_float().unwrap()).collect();
        let penalty =
            row.get("penalty").map(|omega| PenaltyStrength::Omega(omega.as_float().unwrap()));
        let slow_manifold = penalty.map(|_| false);
        let options = RunOptions {
            method: name.parse().unwrap(),
            step: StepSize::Fixed(h),
            until: 1.0,
            ..RunOptions::default()
        };
        let options = RunOptions { penalty, slow_manifold, ..options };
        let simulation =
            prepare(problem, options).unwrap_or_else(|error| panic!("{path} {name}: {error}"));
        let own = simulation.steps((0.0, h), count, &start).unwrap();
        let gap = difference(&own, &state);
        assert!(
            gap < TOLERANCE * (count as f64 / 2.0).max(1.0),
            "{path} {name}: {gap:e}\n{own:?}\n{state:?}"
        );
        if gap > worst.0 {
            worst = (gap, format!("{path} {name}"));
        }
        seen.insert(name.to_string());
    }
    println!("worst: {:.1e}, {}", worst.0, worst.1);
    // Every registered method has a row; every composition has rows over some bases.
    let missing: Vec<String> =
        bases().iter().map(ToString::to_string).filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "no independent values for {missing:?}");
    for composition in compositions().iter().filter_map(|method| method.composition) {
        let rows =
            seen.iter().filter(|name| name.starts_with(&format!("{}(", composition.name))).count();
        // Those of flows compose three splittings.
        let least = if composition.flows().is_some() { 3 } else { 5 };
        assert!(rows >= least, "no independent values for {}", composition.name);
    }
}
