//! First run, in memory: a spherical pendulum with its rod as a constraint.
//!
//! ```sh
//! cargo run --release -p holonome --example first_run
//! ```

use holonome::{Problem, RunOptions, prepare};
use std::error::Error;

const PENDULUM: &str = "
    coordinate q : R^3 = (0, 1, 0)
    momentum   p of q  = (1, 0, -1)
    hamiltonian dot(p, p)/2 + q.z
    constraint  rod : dot(q, q) = 1
    integral    J = q.x*p.y - q.y*p.x
";

/// Run the pendulum, print its positions, and check that energy, rod and integral are kept.
pub fn main() -> Result<(), Box<dyn Error>> {
    let problem: Problem = PENDULUM.parse()?;
    let options = RunOptions { until: 100.0, samples: Some(11), ..RunOptions::default() };
    let solution = prepare(problem, options)?.solve()?;

    println!("{:>6} {:>9} {:>9} {:>9} {:>10} {:>10}", "t", "x", "y", "z", "H drift", "rod off");
    let (drift, residual) = (&solution["drift.H"], &solution["residual.rod"]);
    for (row, (t, q)) in solution.times().iter().zip(solution["q"].rows()).enumerate() {
        let (drift, residual) = (drift.row(row)[0], residual.row(row)[0]);
        println!("{t:6.1} {:9.5} {:9.5} {:9.5} {drift:10.1e} {residual:10.1e}", q[0], q[1], q[2]);
    }
    println!(
        "{} steps, {} evaluations of the field",
        solution.summary.steps, solution.summary.cost.field
    );

    for kept in &solution.summary.drift {
        assert!(kept.max < 1e-13, "{} drifts by {:e}", kept.name, kept.max);
    }
    Ok(())
}
