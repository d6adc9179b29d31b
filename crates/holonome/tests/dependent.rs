//! A run that comes to where its constraints do not determine their forces says that, and does not blame what it holds.

mod common;

use common::{options, run};
use holonome::{Error, Problem, Settings};
use std::collections::BTreeMap;

/// A double pendulum whose lower bob has a negative mass: where the rods are at a right angle, G M⁻¹Gᵀ is singular.
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
    assert_eq!(failure.kind(), "dependent-constraints", "{error}");
    assert!(error.to_string().contains("where b says"), "{error}");
}
