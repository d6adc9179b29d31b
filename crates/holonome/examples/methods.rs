//! Comparison of methods on one system: errors against a converged reference, drifts, orders.
//!
//! ```sh
//! cargo run --release -p holonome --example methods
//! ```

use holonome::compare::{CompareOptions, compare};
use holonome::{Control, Problem, RunOptions};
use std::error::Error;

const KEPLER: &str = "
    coordinate q : R^2 = (0.5, 0)
    momentum   p of q  = (0, 1.7320508075688772)
    hamiltonian dot(p, p)/2 - 1/norm(q)
    integral L = q.x*p.y - q.y*p.x
";

/// Compare five methods, print the table, and check an order.
pub fn main() -> Result<(), Box<dyn Error>> {
    let problem: Problem = KEPLER.parse()?;
    let names = ["euler", "rk4", "corrected:rk4", "stormer-verlet-a", "yoshida4(stormer-verlet-a)"];
    let options = CompareOptions {
        methods: names.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
        steps: vec![0.01, 0.005],
        run: RunOptions { until: 20.0, samples: Some(201), ..RunOptions::default() },
        ..CompareOptions::default()
    };
    let comparison =
        compare(&problem, &options, &|_| Control::Continue)?.ok_or("nothing stopped it")?;

    println!(
        "{:28} {:>6} {:>9} {:>6} {:>9} {:>7}",
        "method", "step", "error", "order", "H drift", "fields"
    );
    for row in &comparison.rows {
        let measured = row.outcome.as_ref().map_err(|failed| failed.message.clone())?;
        let error = measured.errors.as_ref().ok_or("there is no reference")?.at_end().number();
        let (step, drift) = (row.step.unwrap_or_default(), measured.drift[0].max);
        let order = measured.order.map_or(String::new(), |order| format!("{order:.2}"));
        println!(
            "{:28} {step:6} {error:9.1e} {order:>6} {drift:9.1e} {:7}",
            row.label(),
            measured.cost.field
        );
    }

    let order = |name: &str| {
        comparison
            .rows
            .iter()
            .filter(|row| row.method == name)
            .find_map(|row| row.outcome.as_ref().ok()?.order)
    };
    let fourth = order("yoshida4(stormer-verlet-a)").ok_or("two steps give an order")?;
    assert!((fourth - 4.0).abs() < 0.3, "{fourth}");
    Ok(())
}
