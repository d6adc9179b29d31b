//! An ensemble: growth of a pendulum's period with its amplitude.
//!
//! ```sh
//! cargo run --release -p holonome --example sweep
//! ```

use holonome::{Problem, RunOptions, SweepOptions, prepare_sweep};
use std::error::Error;
use std::f64::consts::PI;

const PENDULUM: &str = "
    parameter amplitude = 1
    coordinate angle : R = amplitude
    momentum p of angle = 0
    hamiltonian p^2/2 - cos(angle)
";

/// Run ten amplitudes, print the periods, and check them.
pub fn main() -> Result<(), Box<dyn Error>> {
    let problem: Problem = PENDULUM.parse()?;
    let options = RunOptions { until: 5.0, samples: Some(5001), ..RunOptions::default() };
    let vary = vec![("amplitude".to_string(), "0.3*(i + 1)".to_string())];
    let sweep = SweepOptions { trajectories: 10, vary, ..SweepOptions::default() };
    let ensemble = prepare_sweep(&problem, options, sweep)?.solve()?;

    let times = ensemble.arrays.times();
    for (amplitude, angles) in ensemble["amplitude"].values().iter().zip(ensemble["angle"].rows()) {
        // The pendulum hangs straight down after a quarter of the period.
        let k = angles.iter().position(|angle| *angle < 0.0).ok_or("it swings too slowly")?;
        let part = angles[k - 1] / (angles[k - 1] - angles[k]);
        let period = 4.0 * (times[k - 1] + part * (times[k] - times[k - 1]));
        println!("{amplitude:4.1} rad {period:9.5} {}", "*".repeat((4.0 * period) as usize));
        assert!((period - exact(*amplitude)).abs() < 1e-5, "{period} at {amplitude}");
    }
    Ok(())
}

/// 2π over the arithmetic-geometric mean of 1 and cos(amplitude/2) (Gauss).
fn exact(amplitude: f64) -> f64 {
    let (mut a, mut b) = (1.0, (amplitude / 2.0).cos());
    while (a - b).abs() > 1e-15 {
        (a, b) = ((a + b) / 2.0, f64::sqrt(a * b));
    }
    2.0 * PI / a
}
