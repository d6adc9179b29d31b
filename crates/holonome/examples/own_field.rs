//! A user's own field in Rust: hares and lynxes, whose births and deaths conserve a quantity V.
//!
//! ẋ = x (1 − y), ẏ = y (x − 1) keeps V = x − ln x + y − ln y (Volterra 1926). One Runge–Kutta
//! method runs plain, and with a correction that holds V.
//!
//! ```sh
//! cargo run --release -p holonome --example own_field
//! ```

use holonome::system::{FnSystem, GroupKind};
use holonome::{RunOptions, StepSize, integrate};
use std::error::Error;

/// Run both methods, print the populations, and check the drifts of V.
pub fn main() -> Result<(), Box<dyn Error>> {
    let field = FnSystem::new(2, |_t, x, dx| {
        dx[0] = x[0] * (1.0 - x[1]);
        dx[1] = x[1] * (x[0] - 1.0);
    })
    .with_invariant(
        "V",
        GroupKind::Integral,
        |_t, x| x.iter().map(|x| x - x.ln()).sum(),
        |_t, x, gradient| gradient.iter_mut().zip(x).for_each(|(d, x)| *d = 1.0 - 1.0 / x),
    );

    let mut drift = Vec::new();
    for method in ["rk4", "corrected:rk4"] {
        let options = RunOptions {
            method: method.parse()?,
            step: StepSize::Fixed(0.1),
            until: 200.0,
            samples: Some(2001),
            ..RunOptions::default()
        };
        let solution = integrate(&field, (0.0, &[2.0, 0.5]), &options)?;
        println!(
            "{method}: V drifts by {:.1e} in {} steps",
            solution.summary.drift[0].max, solution.summary.steps
        );
        drift.push(solution.summary.drift[0].max);

        // The two populations over one period and a half.
        for x in solution["x"].rows().step_by(4).take(24) {
            let (hares, lynxes) = ((16.0 * x[0]) as usize, (16.0 * x[1]) as usize);
            let mut line = vec![' '; 48];
            (line[hares.min(47)], line[lynxes.min(47)]) = ('h', 'l');
            println!("  {}", line.into_iter().collect::<String>());
        }
    }
    assert!(drift[0] > 1e-6 && drift[1] < 1e-10, "{drift:?}");
    Ok(())
}
