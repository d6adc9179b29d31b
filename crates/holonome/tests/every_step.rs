//! Blocks of steps keep the samples on their way: stored samples depend neither on their number nor
//! on the ends of blocks.

mod common;

use common::{Finished, model, options, run};
use holonome::{RunOptions, StepSize};

const STEP: f64 = 0.01;

fn sampled(name: &str, method: &str, steps_between: u64) -> Finished {
    let (step, every) = (StepSize::Fixed(STEP), Some(steps_between as f64 * STEP));
    run(
        model(name, &[]),
        RunOptions { step, every, until: 30.0, ..options(&format!("--method {method}")) },
    )
    .unwrap()
}

#[test]
fn samples_are_the_same_however_many_there_are() {
    // No spacing here is a multiple of the length of a block, of a batch or of its lanes.
    let cases = [
        (
            "spherical-pendulum",
            "rattle",
            &["q", "p", "H", "azimuth", "lambda.rod", "residual.rod", "drift.J"][..],
        ),
        ("spherical-pendulum", "shake", &["q", "lambda.rod"]),
        ("spherical-pendulum", "suzuki4(rattle)", &["q", "lambda.rod"]),
        ("double-pendulum", "rattle", &["H"]),
        (
            "spherical-pendulum",
            "corrected:rk4",
            &["q", "p", "H", "azimuth", "residual.rod.hidden", "drift.H"],
        ),
        (
            "spherical-pendulum",
            "projection:rk4",
            &["q", "p", "H", "residual.rod.hidden", "drift.H"],
        ),
        ("spherical-pendulum", "projection:euler", &["q", "H"]),
        (
            "spherical-pendulum",
            "corrected:gauss16",
            &["q", "p", "H", "residual.rod.hidden", "drift.H"],
        ),
        (
            "spherical-pendulum",
            "corrected:taylor",
            &["q", "p", "H", "residual.rod.hidden", "drift.H"],
        ),
        ("kepler", "stormer-verlet-a", &["x", "H", "distance", "drift.H"]),
    ];
    for (name, method, arrays) in cases {
        let every = sampled(name, method, 1);
        for between in [3, 75] {
            let some = sampled(name, method, between);
            assert_eq!(some.state(), every.state(), "{method}");
            for &array in arrays {
                let (all, some) = (every.array(array), some.array(array));
                assert_eq!(some.len(), 3000 / between as usize + 1);
                for (k, row) in some.iter().enumerate() {
                    // The last multipliers have no step after them, and the first none before.
                    let bits = |row: &[f64]| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    assert_eq!(
                        bits(row),
                        bits(&all[k * between as usize]),
                        "{method}: {array} at sample {k}"
                    );
                }
            }
        }
    }
}

#[test]
fn drifts_do_not_depend_on_the_samples() {
    for method in [
        "rattle",
        "corrected:rk4",
        "projection:rk4",
        "projection:euler",
        "gauss8",
        "corrected:gauss16",
        "taylor",
        "corrected:taylor",
    ] {
        let (every, few) =
            (sampled("spherical-pendulum", method, 1), sampled("spherical-pendulum", method, 3000));
        for (every, few) in every.summary.drift.iter().zip(&few.summary.drift) {
            assert_eq!(every.last.to_bits(), few.last.to_bits(), "{method}: {}", every.name);
            assert_eq!(every.max.to_bits(), few.max.to_bits(), "{method}: {}", every.name);
        }
        assert_eq!(every.summary.cost.counts(), few.summary.cost.counts(), "{method}");
    }
}
