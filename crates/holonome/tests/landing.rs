//! Landing on switching surfaces: fields that are smooth on both sides of a surface are followed as
//! accurately as smooth ones, whatever jumps there.

mod common;

use common::{Finished, distance, options, run};
use holonome::{
    Control, Problem, Resumed, RunOptions, Simulation, SweepOptions, prepare, prepare_sweep,
};
use std::f64::consts::PI;

/// Adaptive methods of each kind.
const METHODS: [&str; 5] =
    ["corrected:dop853", "plain:dopri5", "corrected:gauss16", "projection:tsit5", "radau5"];

fn finished(text: &str, with: &str) -> Finished {
    run(text.parse().unwrap(), options(with)).unwrap_or_else(|error| panic!("{with}: {error}"))
}

/// A constant force towards 0, which jumps there.
const BANG: &str = "coordinate q = 1\nmomentum p of q = 0\nhamiltonian p^2/2 + abs(q)";

/// Its motion: four parabolas of the duration √2.
fn bang(t: f64) -> [f64; 2] {
    let quarter = 2f64.sqrt();
    let phase = t.rem_euclid(4.0 * quarter);
    let fall = |s: f64| [1.0 - s * s / 2.0, -s];
    match phase {
        s if s < quarter => fall(s),
        s if s < 3.0 * quarter => fall(s - 2.0 * quarter).map(|x| -x),
        s => fall(s - 4.0 * quarter),
    }
}

#[test]
fn a_force_that_jumps_is_followed_by_parabolas() {
    for method in METHODS {
        let run =
            finished(BANG, &format!("--method {method} --rtol 1e-10 --until 100 --samples 9"));
        for (t, q) in run.times().into_iter().zip(run.array("q")) {
            // Every method is exact for parabolas. A landing is off the surface by the rounding of
            // t, 2e-14, and changes H by twice that: 36 of them by 1e-12 at most, which is 1e-10 of
            // phase after a time of 100.
            assert!((q[0] - bang(t)[0]).abs() < 3e-10, "{method}: {} at {t}", q[0]);
        }
        // Between two landings there is nothing to resolve.
        let cost = &run.summary.cost;
        assert!(cost.rejected <= 4, "{method}: {} rejected steps", cost.rejected);
        let with = format!("--method {method} --rtol 1e-10 --until 100 --samples 9");
        let across = RunOptions { landing: false, ..options(&with) };
        let across = common::run(BANG.parse().unwrap(), across).unwrap().summary.steps;
        assert!(across > 4 * run.summary.steps, "{method}: {} steps", run.summary.steps);
    }
}

/// Springs beyond two walls: the force has kinks.
#[test]
fn kinks_are_as_smooth_formulas() {
    let text = "coordinate q = 1\nmomentum p of q = -1\n\
                hamiltonian p^2/2 + 1e4/2*(min(q, 0)^2 + max(q - 2, 0)^2)\n";
    // A flight of 1, half a period of a spring, a flight of 2, another spring, and so on.
    let contact = PI / 1e2;
    let until = 10.0 * (4.0 + 2.0 * contact) + 1.0 + contact + 0.5;
    for (method, tolerance) in
        [("plain:dop853", 1e-9), ("corrected:gauss16", 1e-9), ("radau5", 1e-6)]
    {
        let with = format!("--method {method} --rtol 1e-12 --until {until} --samples 2");
        // The error of the springs, some 200 steps at the tolerance each, by the flights behind
        // them; radau5 loses three digits of its tolerance on a period.
        let off = distance(&finished(text, &with).state(), &[0.5, 1.0]);
        assert!(off < tolerance, "{method}: {off:e}");
    }
}

#[test]
fn surfaces_that_move_and_depend_on_velocities_are_met() {
    // A belt under a block that slips one way and the other: dry friction without sticking, as the
    // force of the spring is always larger. Each half swing is a cosine about q = ∓f.
    let text = "parameter f = 0.3\ncoordinate q = 5\nmomentum p of q\n\
                hamiltonian p^2/2 + q^2/2\nforce dry on q = -f*sign(q')";
    let until = 2.5 * PI;
    // 5, −4.4, 3.8 are the turns; then a quarter swing about 0.3 from there.
    let expected = [0.3, -3.5];
    for method in METHODS {
        let with = format!("--method {method} --rtol 1e-11 --until {until} --samples 2");
        let run = finished(text, &with);
        assert!(run.summary.warnings.is_empty(), "{method}: {:?}", run.summary.warnings);
        let off = distance(&run.state()[..2], &expected);
        // Two turns, at each of which the phase of a step's error counts, 1e-11 a step.
        assert!(off < 1e-8, "{method}: {off:e}");
    }
    // A step of a moving threshold in time and space at once: q reaches t/2.
    let text = "state q = -1\nq' = if(q < t/2, 2, 1)";
    let with = "--rtol 1e-10 --until 4 --samples 2";
    // q = −1 + 2t meets t/2 at t = 2/3.
    let off = (finished(text, with).state()[0] - (1.0 / 3.0 + 4.0 - 2.0 / 3.0)).abs();
    assert!(off < 1e-13, "{off:e}");
}

#[test]
fn a_motion_that_slides_goes_on_with_a_warning() {
    let text = "coordinate q = 1\nmomentum p of q = 1\nhamiltonian p^2/2 + q^2/2\n\
                force dry on q = -2*sign(q')";
    let run = finished(text, "--rtol 1e-6 --until 1.2 --samples 2");
    let warnings = run.summary.warnings.join("\n");
    assert!(warnings.contains("slides along a surface"), "{warnings}");
    // It stops at the turn of a swing about −2, with 3² + 1² = (q + 2)². To and fro it creeps by the
    // error that a step may make, 107 640 times 1e-6 of the least q' there: 1.1e-4 were found.
    let off = (run.state()[0] - (10f64.sqrt() - 2.0)).abs();
    assert!(off < 1e-3, "{off:e}");
}

#[test]
fn stopped_runs_and_ensembles_are_those_of_one_run() {
    // Long enough to be stopped: a run is asked every 20 milliseconds.
    let with = RunOptions {
        max_step: Some(1e-4),
        samples: Some(60_001),
        ..options("--rtol 1e-9 --until 6")
    };
    let whole = run(BANG.parse().unwrap(), with.clone()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = Some(folder.path().join("run"));
    let part = RunOptions { out, ..with };
    let mut stopped = prepare(BANG.parse::<Problem>().unwrap(), part).unwrap();
    assert!(stopped.run(&mut |_| Control::Stop).unwrap().interrupted);
    drop(stopped);
    let Resumed::Continues(mut rest) = Simulation::resume(folder.path().join("run")).unwrap()
    else {
        panic!("it has ended")
    };
    let summary = rest.run(&mut |_| Control::Continue).unwrap();
    assert_eq!(summary.state.numbers(), whole.state());
    assert_eq!(summary.steps, whole.summary.steps);
    // Trajectories of an ensemble land as well.
    let problem: Problem = BANG.parse().unwrap();
    let vary = vec![("q".to_string(), "1 + i".to_string())];
    let of = SweepOptions { trajectories: 3, vary, ..SweepOptions::default() };
    let few = || RunOptions { samples: Some(2), ..options("--rtol 1e-9 --until 6") };
    let all = prepare_sweep(&problem, few(), of).unwrap().solve().unwrap();
    let q = all.arrays["q"].values();
    for k in 0..3 {
        let text = BANG.replace("q = 1", &format!("q = {}", 1 + k));
        let alone = run(text.parse().unwrap(), few()).unwrap();
        assert_eq!(q[2 * k + 1], alone.state()[0], "trajectory {k}");
    }
}

#[test]
fn a_motion_that_slides_for_ever_says_so() {
    let text = "coordinate x = 0\nmomentum p of x = 2\nhamiltonian p^2/2\nforce dry on x = -2.943*sign(x')";
    for method in ["corrected:dop853", "plain:dop853"] {
        let with = options(&format!("--method {method} --until 5 --samples 2"));
        let error = run(text.parse().unwrap(), with).err().expect("it cannot end").to_string();
        assert!(error.contains("slides along a surface"), "{method}: {error}");
    }
}
