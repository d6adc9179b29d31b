//! Systems in equilibrium stay there. All that moves in them is the rounding of forces that cancel, and no scale of that
//! motion says anything about the positions.

mod common;

use common::{options, run};
use holonome::{Problem, Settings};
use std::collections::BTreeMap;

/// A rod, a triangle of rods and a chain, hanging along a direction in which no force is a round number.
const HANGING: [(&str, &str); 4] = [
    (
        "a rod",
        "parameter g = (0.6, -0.8)*9.81\ncoordinate q : R^2 = 0.7*(0.6, -0.8)\nmomentum p of q\n\
         hamiltonian dot(p, p)/2 - dot(g, q)\nconstraint rod : dot(q, q) = 0.49\n",
    ),
    (
        "a rod in a field that depends on time",
        "parameter g = (0.6, -0.8)*9.81\nparameter a = 0\ncoordinate q : R^2 = 0.7*(0.6, -0.8)\nmomentum p of q\n\
         hamiltonian dot(p, p)/2 - dot(g, q) - a*cos(t)*q.x\nconstraint rod : dot(q, q) = 0.49\n",
    ),
    (
        "a triangle",
        "coordinate q[i in 1..2] : R^2 = (if(i == 1, -0.3, 0.3), -0.4)\nmomentum p of q\n\
         hamiltonian sum(i in 1..2 : dot(p[i], p[i])/2 + 9.81*q[i].y)\n\
         constraint arm[i in 1..2] : dot(q[i], q[i]) = 0.25\n\
         constraint base : dot(q[1] - q[2], q[1] - q[2]) = 0.36\n",
    ),
    (
        "a chain by rows",
        "size n = 200\nparameter g = (0.6, -0.8)*9.81\ncoordinate q[i in 1..n] : R^2 = 0.7*i*(0.6, -0.8)\n\
         momentum p of q\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/2 - dot(g, q[i]))\n\
         constraint anchor : dot(q[1], q[1]) = 0.49\n\
         constraint link[i in 2..n] : dot(q[i] - q[i-1], q[i] - q[i-1]) = 0.49\n",
    ),
];

#[test]
fn what_hangs_at_rest_stays() {
    for (name, text) in HANGING {
        for method in ["corrected:dop853 --rtol 1e-9", "corrected:rk4 --step 0.01", "corrected:dopri5 --step 0.002"] {
            // Chains of many rods take short steps at rest.
            let until = if name.contains("rows") && method.contains("dop853") { 1e-4 } else { 1.0 };
            let problem = Problem::from_text("hanging", text, &BTreeMap::new(), &Settings::default()).unwrap();
            let start = problem.model.initial.clone();
            let options = options(&format!("--until {until} --method {method}"));
            let finished = run(problem, options).unwrap_or_else(|error| panic!("{name}, {method}: {error}"));
            let largest = start.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
            for (k, (end, start)) in finished.state().iter().zip(&start).enumerate() {
                let moved = (end - start).abs() / largest;
                assert!(moved < 1e-9, "{name}, {method}: component {k} goes from {start} to {end}");
            }
        }
    }
}
