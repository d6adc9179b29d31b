//! Tests that a trajectory in lanes is bit for bit the same as alone, by every method.

use super::batch::{BatchResult, compute};
use super::blocks::BlockRows;
use super::blocks::{TASK_STEPS, TASK_TRAJECTORIES, task_length};
use super::lanes::SweepLanes;
use super::*;
use crate::options::{StepSize, Thermostat};
use crate::problem::Problem;
use holonome_integrate::method::{Method, Needs, SCHEMES};

/// A quartic potential: the number of Newton iterations differs between trajectories.
const OSCILLATOR: &str = "parameter m = 1\ncoordinate q : R^2 = (1, 0.5)\nmomentum p of q = (0, 1)\n\
    hamiltonian dot(p, p)/(2*m) + dot(q, q)/2 + dot(q, q)^2/4";

/// A force that depends on time, and a constraint.
const DRIVEN: &str = "parameter m = 1\nparameter a = 0.3\ncoordinate q : R^3 = (0, 1, 0)\n\
    momentum p of q = (1, 0, -1)\nhamiltonian dot(p, p)/(2*m) + m*q.z + a*sin(t)*q.x\nconstraint rod : dot(q, q) = 1";

/// Four masses on a string: enough constraints for their independence to be followed.
const STRING: &str = "coordinate q[i in 1..4] : R^2 = (i, 0)\nmomentum p[i] of q = (0, 0.1*i)\n\
    hamiltonian sum(i in 1..4: dot(p[i], p[i])/2 + q[i].y)\n\
    constraint first : dot(q[1], q[1]) = 1\n\
    constraint rod[i in 2..4] : dot(q[i] - q[i-1], q[i] - q[i-1]) = 1";

/// A force that is quadratic in the velocity: the momentum of a half step is a solution.
const DRAGGED: &str = "parameter m = 1\ncoordinate q : R^2 = (0.6, -0.8)\nmomentum p of q\n\
    hamiltonian dot(p, p)/(2*m) + m*q.y\nconstraint rod : dot(q, q) = 1\n\
    force drag on q = -0.3*norm(q')*q'";

/// A section, and a stop that some trajectories reach.
const WATCHED: &str = "parameter m = 1\ncoordinate q : R^2 = (0.6, -0.8)\nmomentum p of q\n\
    hamiltonian dot(p, p)/(2*m) + q.y\nconstraint rod : dot(q, q) = 1\n\
    event side : q.x = 0.2\nevent far : q.x = -0.55 : stop";

const TRAJECTORIES: u64 = 37;

struct Case<'a> {
    text: &'a str,
    vary: &'a [(&'a str, &'a str)],
    penalty: Option<&'a str>,
    step: StepSize,
    /// Friction of a heat bath, if any.
    friction: Option<f64>,
}

fn sweep(case: &Case, method: &str, samples: u64, until: f64) -> Result<Sweep, Error> {
    let settings = Settings { project_initial: case.text == STRING, ..Settings::default() };
    let vary: Vec<_> =
        case.vary.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let all = SweepOptions { trajectories: TRAJECTORIES, vary, ..SweepOptions::default() };
    let (problem, starts) =
        Problem::from_text_varied("model", case.text, &BTreeMap::new(), &settings, &all)?;
    let penalty = case.penalty.map(|penalty| penalty.parse().expect("a penalty"));
    let (method, samples, step) = (method.parse()?, Some(samples), case.step);
    let (friction, inverse_temperature) = (case.friction, case.friction.map(|_| 2.0));
    let own: Method = method;
    let thermostat =
        friction.filter(|_| own.scheme.needs != Needs::HeatBath).map(|_| Thermostat::Gla);
    let heat = RunOptions { thermostat, friction, inverse_temperature, ..RunOptions::default() };
    let options = RunOptions { method, step, until, samples, penalty, ..heat };
    Sweep::new(problem, starts, options, all)
}

/// Trajectories with their rows, whatever stood there before.
fn computed(
    sweep: &Sweep,
    lanes: Option<&SweepLanes>,
    range: Range<u64>,
) -> (BatchResult, BlockRows) {
    let count = (range.end - range.start) as usize;
    let mut rows: BlockRows =
        sweep.widths().into_iter().map(|width| vec![7.0; width * count]).collect();
    let parts = rows.iter_mut().map(Vec::as_mut_slice).collect();
    (compute(sweep, lanes, range, parts).unwrap(), rows)
}

fn bits(rows: &BlockRows, of: Range<usize>, all: usize) -> Vec<Vec<u64>> {
    let part = |rows: &Vec<f64>| {
        let width = rows.len() / all;
        rows[of.start * width..of.end * width].iter().map(|number| number.to_bits()).collect()
    };
    rows.iter().map(part).collect()
}

/// Compare lanes with trajectories that run alone; true if there are lanes.
fn agree(sweep: &Sweep, what: &str) -> bool {
    let all = TRAJECTORIES as usize;
    let (alone, rows_alone) = computed(sweep, None, 0..TRAJECTORIES);
    let mut found = false;
    for count in [1, 4, 16] {
        let Some(lanes) = SweepLanes::new(sweep, count) else { continue };
        found = true;
        let (together, rows) = computed(sweep, Some(&lanes), 0..TRAJECTORIES);
        for (k, (one, other)) in
            bits(&rows_alone, 0..all, all).iter().zip(bits(&rows, 0..all, all)).enumerate()
        {
            let width = one.len() / all;
            let differing =
                one.iter().zip(&other).position(|(a, b)| a != b).map(|at| at / width.max(1));
            assert_eq!(differing, None, "{what}: array {k} in {count} lanes");
        }
        assert_eq!(alone.failures, together.failures, "{what}");
        assert_eq!((alone.steps, &alone.cost), (together.steps, &together.cost), "{what}");
        // Other neighbours, and fewer trajectories than lanes.
        for part in [0..1, 5..8, 30..37] {
            let (_, few) = computed(sweep, Some(&lanes), part.start as u64..part.end as u64);
            assert_eq!(
                bits(&few, 0..part.len(), part.len()),
                bits(&rows_alone, part.clone(), all),
                "{what}: {part:?}"
            );
        }
    }
    found
}

fn agrees(case: &Case, methods: &[&str]) {
    for method in methods {
        for samples in [2, 6] {
            let until = if let StepSize::Fixed(h) = case.step { 100.0 * h } else { 10.0 };
            let sweep =
                sweep(case, method, samples, until).unwrap_or_else(|error| panic!("{error}"));
            assert!(agree(&sweep, method), "{method} has no lanes");
        }
    }
}

#[test]
fn every_method_in_lanes_is_what_it_is_alone() {
    let oscillator = Case {
        text: OSCILLATOR,
        vary: &[("m", "1 + i"), ("q", "(1 + i/N, 0.5)")],
        penalty: None,
        step: StepSize::Fixed(0.1),
        friction: None,
    };
    let mut with_lanes = 0;
    for scheme in SCHEMES {
        match sweep(&oscillator, scheme.name, 3, 5.0) {
            Ok(sweep) => with_lanes += usize::from(agree(&sweep, scheme.name)),
            Err(error) => {
                let why = if scheme.needs == Needs::HeatBath { "needs friction" } else { "suit" };
                assert!(error.to_string().contains(why), "{}: {error}", scheme.name);
            }
        }
    }
    assert!(with_lanes >= 20, "{with_lanes} methods have lanes");
    agrees(&oscillator, &["suzuki4(stormer-verlet-a)", "yoshida6(strang)"]);
}

#[test]
fn constraints_and_penalties_in_lanes() {
    let driven = Case {
        text: DRIVEN,
        vary: &[("m", "1 + i"), ("a", "0.1*i")],
        penalty: None,
        step: StepSize::Fixed(0.05),
        friction: None,
    };
    agrees(&driven, &["rattle", "shake", "suzuki4(rattle)", "plain:rk4"]);
    agrees(&Case { vary: &[("p", "(1 + i/N, 0, -1)")], ..driven }, &["rattle"]);
    agrees(
        &Case {
            text: STRING,
            vary: &[("p", "(0, 0.1 + 0.02*i)")],
            penalty: None,
            step: StepSize::Fixed(0.02),
            friction: None,
        },
        &["rattle"],
    );
    let vary = [("m", "1 + 0.1*i")];
    let penalised = Case {
        text: DRIVEN,
        vary: &vary,
        penalty: Some("50"),
        step: StepSize::Fixed(0.01),
        friction: None,
    };
    agrees(&penalised, &["zhang-skeel", "newmark", "stormer-verlet-a"]);
}

#[test]
fn forces_that_are_implicit_are_solved_in_lanes() {
    let vary = &[("m", "1 + i/N")];
    let step = StepSize::Fixed(0.01);
    agrees(
        &Case { text: DRAGGED, vary, penalty: None, step, friction: None },
        &["rattle", "shake"],
    );
}

#[test]
fn events_in_lanes() {
    // The start is further from the stop than some trajectories swing, by the energy that they have.
    let vary = &[("m", "1 + i/N"), ("p", "(0.4, 0.3)*(i/N - 0.5)")];
    for (step, methods) in [
        (
            StepSize::Adaptive { rtol: 1e-9, atol: 0.0 },
            &["corrected:dop853", "gauss16", "taylor"][..],
        ),
        (StepSize::Fixed(0.05), &["rattle", "corrected:rk4", "corrected:gauss8", "projection:rk4"]),
    ] {
        agrees(&Case { text: WATCHED, vary, penalty: None, step, friction: None }, methods);
    }
}

#[test]
fn noise_in_lanes() {
    let case = Case {
        text: OSCILLATOR,
        vary: &[],
        penalty: None,
        step: StepSize::Fixed(0.1),
        friction: Some(0.7),
    };
    agrees(
        &case,
        &["stormer-verlet-b", "zhang-skeel", "gauss4", "suzuki4(stormer-verlet-a)", "g-baoab"],
    );
    agrees(&Case { vary: &[("m", "1 + i")], ..case }, &["stormer-verlet-b"]);
    let constrained = Case {
        text: DRIVEN,
        vary: &[],
        penalty: None,
        step: StepSize::Fixed(0.05),
        friction: Some(0.7),
    };
    agrees(&constrained, &["rattle", "shake", "g-baoab", "yoshida4(rattle)"]);
    agrees(
        &Case { penalty: Some("20"), step: StepSize::Fixed(0.01), ..constrained },
        &["zhang-skeel"],
    );
    let rolling = Case {
        text: include_str!("../../../../suite/structure/knife-edge.holo"),
        vary: &[("m", "1 + 0.1*i")],
        friction: None,
        ..constrained
    };
    agrees(&rolling, &["nonholonomic-leapfrog", "gni", "dla", "suzuki4(nonholonomic-leapfrog)"]);
    // Every trajectory has its own noise.
    let made = sweep(&constrained, "rattle", 2, 5.0).unwrap();
    let (_, rows) = computed(&made, None, 0..TRAJECTORIES);
    let ends: std::collections::BTreeSet<u64> =
        bits(&rows, 0..TRAJECTORIES as usize, TRAJECTORIES as usize)[0]
            .chunks(6)
            .map(|samples| samples[3])
            .collect();
    assert_eq!(ends.len(), TRAJECTORIES as usize);
}

/// A sun with five planets, and a force that depends on time: with all sweeps unrolled a step would
/// be too long for a loop.
const PLANETS: &str = "parameter G = 1\nparameter m[i in 1..6] = if(i == 1, 1, 10^(-i - 2))\n\
    coordinate q[i in 1..6] : R^3 = (i - 1)*(cos(2.4*i), sin(2.4*i), 0.1)\n\
    momentum p[i] of q = if(i == 1, 0, m[i]/sqrt(max(i - 1, 1)))*(-sin(2.4*i), cos(2.4*i), 0)\n\
    hamiltonian sum(i in 1..6: dot(p[i], p[i])/(2*m[i]) + 1e-3*m[i]*sin(t)*q[i].x) - \
        G*sum(i in 2..6, j in 1..i-1: m[i]*m[j]/norm(q[i] - q[j]))";

#[test]
fn long_sweeps_in_lanes() {
    let case = Case {
        text: PLANETS,
        vary: &[("G", "1 + 0.005*i")],
        penalty: None,
        step: StepSize::Fixed(0.05),
        friction: None,
    };
    agrees(&case, &["gauss4", "gauss6", "suzuki4(implicit-midpoint)"]);
    // One trajectory needs more sweeps than others.
    agrees(&Case { vary: &[("G", "if(i == 7, 4, 1)")], ..case }, &["gauss6"]);
}

/// Collocation, with a trajectory in every lane: iterations of many lengths, rejections, lanes that
/// leave the others.
#[test]
fn collocation_in_lanes() {
    let vary = [("m", "1 + i"), ("a", "0.1*i")];
    let fixed = Case {
        text: DRIVEN,
        vary: &vary,
        penalty: None,
        step: StepSize::Fixed(0.1),
        friction: None,
    };
    agrees(&fixed, &["gauss8", "corrected:gauss16", "projection:gauss16", "feedback:gauss8"]);
    let adaptive = Case { step: StepSize::adaptive(1e-9), ..fixed };
    let oscillator =
        Case { text: OSCILLATOR, vary: &[("m", "10^(i/6)"), ("q", "(1 + i/N, 0.5)")], ..adaptive };
    for (case, method) in [
        (&adaptive, "corrected:gauss16"),
        (&adaptive, "projection:gauss8"),
        (&oscillator, "gauss16"),
        (&oscillator, "gauss8"),
        (&oscillator, "corrected:gauss16"),
    ] {
        let made = sweep(case, method, 2, 20.0).unwrap_or_else(|error| panic!("{error}"));
        assert!(agree(&made, method), "{method} has no lanes");
    }
    // One member begins to move that nothing was known of, and steps too long for the iteration.
    let rests = "parameter k = 1\ncoordinate q[i in 1..2] : R = (1, 0)[i]\nmomentum p of q\n\
        hamiltonian sum(i in 1..2 : p[i]^2/2 + k*q[i]^2/2) - q[2]*max(0, t - 1.03)^3";
    let begins = Case { text: rests, vary: &[("k", "1 + i*i")], ..fixed };
    agrees(&Case { step: StepSize::Fixed(0.05), ..begins }, &["gauss16"]);
    let made =
        sweep(&Case { step: StepSize::adaptive(1e-9), ..begins }, "gauss16", 2, 5.0).unwrap();
    assert!(agree(&made, "what begins to move"));
}

/// Equal steps of which the last one is shorter have no lanes, and the ensemble says so.
#[test]
fn a_shorter_last_step_is_warned_of() {
    let step = StepSize::Fixed(0.3);
    let case =
        Case { text: OSCILLATOR, vary: &[("m", "1 + i")], penalty: None, step, friction: None };
    let says = |until: f64| {
        let made = sweep(&case, "rk4", 2, until).unwrap_or_else(|error| panic!("{error}"));
        made.warnings().iter().any(|warning| warning.contains("run one by one"))
    };
    assert!(says(2.0) && !says(2.1));
}

/// Samples within adaptive steps, few and many to a step, where trajectories end at different times
/// and fail.
#[test]
fn samples_within_adaptive_steps_in_lanes() {
    let step = StepSize::adaptive(1e-8);
    let vary = [("m", "1 + i"), ("a", "0.1*i")];
    let driven = Case { text: DRIVEN, vary: &vary, penalty: None, step, friction: None };
    agrees(&driven, &["corrected:dop853", "plain:tsit5", "projection:bs3", "corrected:taylor"]);
    agrees(&driven, &["corrected:gauss16", "gauss8", "projection:gauss16"]);
    let oscillator =
        Case { text: OSCILLATOR, vary: &[("m", "10^(i/6)"), ("q", "(1 + i/N, 0.5)")], ..driven };
    for samples in [3, 17, 400] {
        let made = sweep(&oscillator, "corrected:dop853", samples, 20.0)
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(agree(&made, "samples"), "there are no lanes");
    }
    let wall = "parameter a = 1\nstate x : R = 1\nstate y : R = 0\nx' = -a/sqrt(x)\ny' = cos(t)";
    let ends = Case { text: wall, vary: &[("a", "0.01*i")], penalty: None, step, friction: None };
    let failing = sweep(&ends, "plain:dop853", 50, 5.0).unwrap_or_else(|error| panic!("{error}"));
    assert!(agree(&failing, "a wall"));
    let (alone, _) = computed(&failing, None, 0..TRAJECTORIES);
    assert!(!alone.failures.is_empty() && alone.failures.len() < 30, "{:?}", alone.failures);
}

/// Some trajectories, between those from which the number of iterations is found, are far wilder
/// than these and need more.
#[test]
fn lanes_that_need_more_iterations_join_again() {
    let vary = [("q", "(if(i == 7, 6, if(i == 8, 10, 1 + i/N)), 0.5)")];
    let case = Case {
        text: OSCILLATOR,
        vary: &vary,
        penalty: None,
        step: StepSize::Fixed(0.1),
        friction: None,
    };
    agrees(&case, &["gauss4", "implicit-midpoint"]);
}

#[test]
fn trajectories_that_fail_in_lanes_are_told_of() {
    // A pendulum that moves further in a step than the length of its rod.
    let case = Case {
        text: DRIVEN,
        vary: &[("p", "(1 + 0.5*i, 0, -1)")],
        penalty: None,
        step: StepSize::Fixed(0.1),
        friction: None,
    };
    let failing = sweep(&case, "rattle", 3, 5.0).unwrap_or_else(|error| panic!("{error}"));
    assert!(agree(&failing, "rattle"));
    let (alone, _) = computed(&failing, None, 0..TRAJECTORIES);
    assert!(!alone.failures.is_empty() && alone.failures.len() < 30, "{:?}", alone.failures);
}

/// Rods of a chain of n masses, longer than one that a run by itself unrolls, and an observable over
/// all pairs, which is templated.
const CHAIN: &str = "size n = 60\nparameter g = 1\ncoordinate r[i in 1..n] : R^2 = (i, -2*i)\nmomentum p of r\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + g*r[i].y)\n\
    constraint anchor : dot(r[1], r[1]) = 5\n\
    constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 5\n\
    observe spread = sum(i in 1..n, j in 1..n : dot(r[i] - r[j], r[i] - r[j]))";

fn chain<'a>(text: &'a str) -> Case<'a> {
    let step = StepSize::Fixed(0.01);
    Case { text, vary: &[("g", "1 + i/10")], penalty: None, step, friction: None }
}

#[test]
fn models_that_are_templated_alone_run_in_lanes() {
    let sweep = sweep(&chain(CHAIN), "rattle", 3, 0.4).unwrap_or_else(|error| panic!("{error}"));
    let Simulation { options, problem, recorded, .. } = &sweep.simulation;
    assert!(crate::step::unrolls_for_lanes(&options.method, &problem.model), "n is too small");
    assert!(recorded.kernel.in_lanes(4).is_none(), "the observable is unrolled");
    assert!(agree(&sweep, "rattle"), "a chain has no lanes");
}

#[test]
fn steps_that_are_too_long_for_runs_by_themselves_run_in_lanes() {
    let text = "size n = 150\nparameter a = 0.3\ncoordinate q[i in 1..n] : R = a*sin(pi*i/(n + 1))\n\
        momentum p of q = 0\nlet site(i) = if(i < 1 or i > n, 0, q[i])\n\
        hamiltonian sum(i in 1..n : p[i]^2/2) + sum(i in 0..n : (site(i + 1) - site(i))^2/2 + (site(i + 1) - site(i))^4/4)";
    for (method, step) in [
        ("plain:dop853", StepSize::Fixed(0.1)),
        ("plain:dop853", StepSize::adaptive(1e-8)),
        ("corrected:dop853", StepSize::adaptive(1e-8)),
    ] {
        let vary: &[(&str, &str)] = &[("a", "0.3 + i/10")];
        let case = Case { text, vary, penalty: None, step, friction: None };
        let sweep = sweep(&case, method, 5, 4.0).unwrap_or_else(|error| panic!("{error}"));
        assert!(sweep.simulation.trajectory.step.is_nothing(), "{method}: n is too small");
        assert!(agree(&sweep, method), "{method} has no lanes");
    }
}

#[test]
fn steps_that_are_too_long_for_lanes_are_templated() {
    // A net of 9 by 9 knots: its elimination fills in. And a chain whose last step is shorter.
    let net = "size n = 9\nparameter g = 1\ncoordinate r[i in 1..n, j in 1..n] : R^3 = (i, 0, -j)\n\
        momentum p of r = (0, 0, 0)\n\
        hamiltonian sum(i in 1..n, j in 1..n : dot(p[i, j], p[i, j])/2 + g*r[i, j].z)\n\
        constraint top[i in 1..n] : dot(r[i, 1] - (i, 0, 0), r[i, 1] - (i, 0, 0)) = 1\n\
        constraint down[i in 1..n, j in 2..n] : dot(r[i, j] - r[i, j-1], r[i, j] - r[i, j-1]) = 1\n\
        constraint side[i in 2..n, j in 1..n] : dot(r[i, j] - r[i-1, j], r[i, j] - r[i-1, j]) = 1";
    for (text, until) in [(net, 0.02), (CHAIN, 0.025)] {
        let sweep =
            sweep(&chain(text), "rattle", 2, until).unwrap_or_else(|error| panic!("{error}"));
        let Simulation { options, problem, trajectory, .. } = &sweep.simulation;
        assert!(crate::step::unrolls_for_lanes(&options.method, &problem.model), "{text}");
        let program = trajectory.program.as_ref();
        assert!(program.is_some_and(Program::is_templated), "{text}");
        assert!(!agree(&sweep, "rattle"), "{text}");
    }
}

#[test]
fn few_trajectories_are_shared_among_threads() {
    // 32 tasks, of one trajectory by itself or of a vector of 16 of them.
    let of = |count, least, row| task_length((count, 32), least, (TASK_STEPS, row));
    assert_eq!(of(100, 1, 10), 4);
    assert_eq!(of(100, 16, 10), 16);
    // Many of them make long tasks, those of few steps longer ones, large ones short tasks.
    assert_eq!(of(1 << 20, 16, 10), TASK_TRAJECTORIES);
    assert_eq!(task_length((1 << 20, 32), 16, (8, 10)), TASK_STEPS / 8);
    assert_eq!(of(1 << 20, 16, TASK_NUMBERS), 16);
    assert_eq!(of(1, 1, TASK_NUMBERS * 2), 1);
}
