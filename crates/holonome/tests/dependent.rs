//! Runs that reach a state in which the constraints do not determine their forces: the report says so, and does not
//! blame the held invariants.

mod common;

use common::{options, run};
use holonome::{Error, Problem, Settings};
use std::collections::BTreeMap;

/// A double pendulum whose lower bob has a negative mass: with the rods at a right angle, G M⁻¹Gᵀ is singular.
const PENDULUM: &str = "\
parameter m = (1, -1)
coordinate q[i in 1..2] : R^2 = (sin(1.2) + (i-1)*0.8*sin(0.4), -cos(1.2) - (i-1)*0.8*cos(0.4))
momentum p of q
hamiltonian sum(i in 1..2 : dot(p[i], p[i])/(2*m[i]) + m[i]*9.81*q[i].y)
constraint a : dot(q[1], q[1]) = 1
constraint b : dot(q[2] - q[1], q[2] - q[1]) = 0.64
";

#[test]
fn dependent_constraints_are_named() {
    let problem = Problem::from_text("pendulum", PENDULUM, &BTreeMap::new(), &Settings::default()).unwrap();
    let Err(error) = run(problem, options("--until 2 --method corrected:dopri5 --rtol 1e-7")) else {
        panic!("it goes on through a singular configuration")
    };
    let Error::Failed { failure, .. } = &error else { panic!("{error}") };
    // Either steps become too short there, or claims are tested first.
    assert!(["dependent-constraints", "step-collapsed"].contains(&failure.kind()), "{error}");
    assert!(error.to_string().contains(" b says "), "{error}");
}

/// A four-bar linkage. With a ground of 0.22 it can be laid flat, as 0.1 + 0.22 = 0.12 + 0.2 (crank and ground, rocker
/// and rod); its crank reaches the flat position after half a turn less 2. With a longer ground it cannot.
fn linkage(ground: f64) -> String {
    format!(
        "\
parameter g = {ground}
coordinate a : R^2 = (0.1*cos(2), 0.1*sin(2))
coordinate b : R^2 = (0.158, 0.103)
momentum p of a = (-0.1*sin(2), 0.1*cos(2))
momentum r of b = (-0.0902, -0.0544)
hamiltonian dot(p, p)/2 + dot(r, r)/2
constraint crank : dot(a, a) = 0.01
constraint rod : dot(b - a, b - a) = 0.04
constraint rocker : dot(b - (g, 0), b - (g, 0)) = 0.0144
"
    )
}

#[test]
fn a_configuration_that_a_step_goes_through_is_seen() {
    let settings = Settings { project_initial: true, ..Settings::default() };
    for (ground, expected) in [(0.22, true), (0.26, false)] {
        for method in [
            "corrected:rk4 --step 0.01",
            "plain:rk4 --step 0.05",
            "corrected:dop853 --rtol 1e-5",
            "corrected:tsit5 --rtol 1e-7",
            "feedback:rk4 --step 0.01",
            "rattle --step 0.01",
        ] {
            let problem = Problem::from_text("linkage", &linkage(ground), &BTreeMap::new(), &settings).unwrap();
            let run = run(problem, options(&format!("--until 3 --method {method}"))).unwrap_or_else(|e| panic!("{e}"));
            let said =
                run.summary.warnings.iter().find(|warning| warning.contains("constraints are dependent at t = "));
            assert_eq!(said.is_some(), expected, "{method}, {ground}: {:?}", run.summary.warnings);
            let Some(said) = said else { continue };
            // The crank turns at a rate near 1, which the projection of the start changes by a few hundredths.
            let t: f64 = said.split("t = ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
            assert!((t - (std::f64::consts::PI - 2.0)).abs() < 0.05, "{method}: {said}");
        }
    }
}
