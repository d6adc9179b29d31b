//! The methods of Zhang and Skeel and of Newmark: identities between them, invariants, and steps
//! for which they are stable (Tao, Owhadi 2016, theorems 1.2, 2.4, 2.5).

use crate::cases::{below, difference};
use crate::common::{self, load, load_with, options, repository, run};
use crate::maps::{DEFECT, jacobian, omega};
use holonome::{Problem, Resumed, RunOptions, Settings, Simulation, StepSize, prepare};
use std::collections::BTreeMap;

const BETA: f64 = 0.4;

fn written(text: &str) -> Problem {
    Problem::from_text("written", text, &BTreeMap::new(), &Settings::default()).unwrap()
}

fn simulation(problem: Problem, method: &str, beta: f64) -> Simulation {
    let options = RunOptions {
        method: method.parse().unwrap(),
        step: StepSize::Fixed(0.5),
        until: 1.0,
        beta: Some(beta),
        ..RunOptions::default()
    };
    prepare(problem, options).unwrap()
}

/// A planar model with a full mass matrix, and this model with V_eff in place of V; H_q and H_qq
/// typed by hand.
fn with_effective_potential(h: f64) -> (Problem, Problem) {
    let head = "coordinate q : R^2 = (0.2, -0.1)\nmomentum p of q = (0.15, 0.2)\nlet M = matrix((2, 0.5), (0.5, 1))\n\
                let V = dot(q, q)/2 + q.x^2*q.y - q.y^3/3 + q.x^4\n\
                let g = (q.x + 2*q.x*q.y + 4*q.x^3, q.y + q.x^2 - q.y^2)\n\
                let A = matrix((1 + 2*q.y + 12*q.x^2, 2*q.x), (2*q.x, 1 - 2*q.y))\n";
    let kinetic = "hamiltonian dot(p, inverse(M)*p)/2";
    let plain = written(&format!("{head}{kinetic} + V\n"));
    let effective =
        format!("{head}let b = {BETA}*{h}^2\n{kinetic} + V - b*dot(g, inverse(M + b*A)*g)/2\n");
    (plain, written(&effective))
}

#[test]
fn zhang_skeel_is_velocity_verlet_in_the_effective_potential() {
    for h in [0.05, 0.3] {
        let (plain, effective) = with_effective_potential(h);
        let start = plain.model.initial.clone();
        let own =
            simulation(plain.clone(), "zhang-skeel", BETA).steps((0.0, h), 50, &start).unwrap();
        let other = simulation(effective.clone(), "velocity-verlet", BETA)
            .steps((0.0, h), 50, &start)
            .unwrap();
        // 50 steps of some roundings each, which a regular motion adds up.
        assert!(difference(&own, &other) < 1e-13, "{h}: {own:?} {other:?}");
        // The third derivatives matter: without them the map is another one.
        let simplified = simulation(plain.clone(), "zhang-skeel-simplified", BETA)
            .steps((0.0, h), 50, &start)
            .unwrap();
        assert!(
            difference(&simplified, &other) > 1e-11,
            "{h}: {:e}",
            difference(&simplified, &other)
        );
        // So its modified energy is the Hamiltonian of the other, and the drifts agree, within a
        // loop of machine code and without.
        let text = format!("--step {h} --until {} --beta {BETA} --samples 2", 3000.0 * h);
        let drift = |problem: Problem, method: &str, name: &str| {
            let finished = run(problem, options(&format!("--method {method} {text}"))).unwrap();
            finished.summary.drift.iter().find(|drift| drift.name == name).unwrap().clone()
        };
        let (modified, energy) = (
            drift(plain, "zhang-skeel", "modified_energy"),
            drift(effective, "velocity-verlet", "H"),
        );
        let initial = |drift: &holonome::summary::Drift| {
            drift.initial.as_ref().and_then(|initial| initial.number()).unwrap()
        };
        assert!((initial(&modified) - initial(&energy)).abs() < 1e-15);
        // Energies of size 1 at states that differ by the roundings of 3000 steps.
        assert!(
            (modified.max - energy.max).abs() < 1e-11
                && (modified.last - energy.last).abs() < 1e-11
        );
        assert!(energy.max > 1e-5, "{energy:?}");
    }
}

/// max |ω(f'u, f'v) − ω(u, v)| over unit vectors of a map at x.
fn defect(step: impl Fn(&[f64]) -> Vec<f64>, x: &[f64]) -> f64 {
    let columns = jacobian(step, x);
    let n = x.len() / 2;
    let mut defect = 0.0f64;
    for i in 0..columns.len() {
        for j in 0..i {
            let exact = if i == j + n { -1.0 } else { 0.0 };
            defect = defect.max((omega(&columns[i], &columns[j]) - exact).abs());
        }
    }
    defect
}

/// A step on the Hénon–Heiles model typed independently, with `sign` times the term of third
/// derivatives.
fn typed_step(sign: f64, h: f64, x: &[f64]) -> Vec<f64> {
    let f = |q: [f64; 2]| {
        let ([x, y], b) = (q, BETA * h * h);
        let g = [x + 2.0 * x * y, y + x * x - y * y];
        let m =
            [[1.0 + b * (1.0 + 2.0 * y), b * 2.0 * x], [b * 2.0 * x, 1.0 + b * (1.0 - 2.0 * y)]];
        let det = m[0][0] * m[1][1] - m[0][1] * m[1][0];
        let a =
            [-(m[1][1] * g[0] - m[0][1] * g[1]) / det, -(m[0][0] * g[1] - m[1][0] * g[0]) / det];
        let bend = [4.0 * a[0] * a[1], 2.0 * a[0] * a[0] - 2.0 * a[1] * a[1]];
        [a[0] - sign * b * b / 2.0 * bend[0], a[1] - sign * b * b / 2.0 * bend[1]]
    };
    let f0 = f([x[0], x[1]]);
    let half = [x[2] + h / 2.0 * f0[0], x[3] + h / 2.0 * f0[1]];
    let q = [x[0] + h * half[0], x[1] + h * half[1]];
    let f1 = f(q);
    vec![q[0], q[1], half[0] + h / 2.0 * f1[0], half[1] + h / 2.0 * f1[1]]
}

#[test]
fn the_simplified_method_is_symplectic_up_to_order_five() {
    let problem = common::model("henon-heiles", &[]);
    let (x, simplified) =
        ([0.5, 0.1, 0.2, -0.1], simulation(problem, "zhang-skeel-simplified", BETA));
    let defects: Vec<f64> = [0.4, 0.2, 0.1]
        .iter()
        .map(|&h| defect(|x| simplified.steps((0.0, h), 1, x).unwrap(), &x))
        .collect();
    let slopes: Vec<f64> = defects.windows(2).map(|pair| (pair[0] / pair[1]).log2()).collect();
    assert!(slopes.iter().all(|slope| (slope - 5.0).abs() < 0.35), "{defects:?} {slopes:?}");
    // The cause is the term of third derivatives with its own sign.
    let typed = |sign: f64| defect(|x| typed_step(sign, 0.2, x), &x);
    assert!(below(typed(1.0), DEFECT), "{:e}", typed(1.0));
    assert!((typed(0.0) / defects[1] - 1.0).abs() < 1e-6, "{:e} {:e}", typed(0.0), defects[1]);
    assert!(typed(-1.0) > 1.5 * defects[1], "{:e}", typed(-1.0));
}

#[test]
fn the_simplified_method_is_symplectic_where_eigenvectors_are_constant() {
    let pendulum = load(&repository().join("suite/structure/plane-pendulum.holo"), &[]).unwrap();
    // V_qq of f(x + y) + g(x − y) has the eigenvectors (1, 1) and (1, −1) everywhere.
    let separated = written(
        "coordinate q : R^2 = (0.3, 0.5)\nmomentum p of q = (0.2, 0.1)\n\
         hamiltonian dot(p, p)/2 + exp(q.x + q.y) + cos(q.x - q.y)\n",
    );
    for problem in [pendulum, separated] {
        let x = problem.model.initial.clone();
        let simplified = simulation(problem, "zhang-skeel-simplified", BETA);
        let found = defect(|x| simplified.steps((0.0, 0.3), 1, x).unwrap(), &x);
        assert!(below(found, DEFECT), "{found:e}");
    }
}

/// Largest drift of an integral over a run.
fn drift(problem: Problem, method: &str, name: &str) -> f64 {
    let text = format!("--method {method} --step 0.15 --until 150 --beta {BETA} --samples 2");
    let finished = run(problem, options(&text)).unwrap();
    finished.summary.drift.iter().find(|drift| drift.name == name).unwrap().max
}

#[test]
fn momentum_maps_are_conserved() {
    let ring = || load(&repository().join("suite/models/spring-ring.holo"), &[]).unwrap();
    // 1000 steps round momenta and moments of size 1 to 10 a few times: 1e-15 √1000, times a few.
    let round_off = 1e-12;
    for method in ["zhang-skeel", "pushforward-newmark", "yoshida4(zhang-skeel)"] {
        for integral in ["P", "J"] {
            let found = drift(ring(), method, integral);
            assert!(found < round_off, "{method} {integral}: {found:e}");
        }
    }
    let (linear, angular) = (
        drift(ring(), "zhang-skeel-simplified", "P"),
        drift(ring(), "zhang-skeel-simplified", "J"),
    );
    assert!(linear < round_off && angular > 1e-5, "{linear:e} {angular:e}");
}

#[test]
fn newmark_is_symplectic_in_the_variables_of_its_pushforward() {
    let (plain, _) = with_effective_potential(0.3);
    let (h, x) = (0.3, plain.model.initial.clone());
    let (newmark, forward) = (
        simulation(plain.clone(), "newmark", BETA),
        simulation(plain, "pushforward-newmark", BETA),
    );
    // (q, p) ↦ (q + βh² M⁻¹V_q(q), p), with M⁻¹ = (1, −½; −½, 2)/1.75.
    let eta = |x: &[f64]| {
        let (u, v) = (x[0], x[1]);
        let g = [u + 2.0 * u * v + 4.0 * u.powi(3), v + u * u - v * v];
        let b = BETA * h * h / 1.75;
        vec![u + b * (g[0] - 0.5 * g[1]), v + b * (2.0 * g[1] - 0.5 * g[0]), x[2], x[3]]
    };
    let (there, other) = (
        eta(&newmark.steps((0.0, h), 20, &x).unwrap()),
        forward.steps((0.0, h), 20, &eta(&x)).unwrap(),
    );
    assert!(difference(&there, &other) < 1e-13, "{there:?} {other:?}");
    // By itself it is not symplectic: the form that it keeps differs by O(h²).
    let found = defect(|x| newmark.steps((0.0, h), 1, x).unwrap(), &x);
    assert!(found > 1e-4, "{found:e}");
}

/// Bounds of an amplitude: an unstable one grows by a factor in each step; a stable one is bounded
/// by the condition of an eigenbasis, which is (hω)² at most.
const STABLE: f64 = 1e4;
const UNSTABLE: f64 = 1e8;

/// |x| after 2000 steps of a unit oscillator.
fn amplitude(method: &str, beta: f64, h: f64) -> f64 {
    let text = "coordinate q : R = 1\nmomentum p of q = 0.5\nlet spring = q^2/2\nhamiltonian p^2/2 + spring\n";
    let settings = Settings { stiff: Some("spring".into()), ..Settings::default() };
    let problem = Problem::from_text("oscillator", text, &BTreeMap::new(), &settings).unwrap();
    let steps = simulation(problem, method, beta).steps((0.0, h), 2000, &[1.0, 0.5]);
    steps.map_or(f64::INFINITY, |x| x[0].hypot(x[1]))
}

#[test]
fn linear_stability_has_the_stated_limits() {
    let all = [
        "zhang-skeel",
        "zhang-skeel-simplified",
        "zhang-skeel-stiff",
        "newmark",
        "newmark-one-step",
        "pushforward-newmark",
    ];
    for method in all {
        for h in [0.1, 3.0, 100.0] {
            assert!(
                amplitude(method, 0.25, h) < STABLE && amplitude(method, 0.4, h) < STABLE,
                "{method} {h}"
            );
        }
        // Stable while x/(1 + βx) < 4, x = (hω)²: for β = 0.2 up to hω = √20.
        assert!(
            amplitude(method, 0.2, 100.0) > UNSTABLE && amplitude(method, 0.2, 4.6) > UNSTABLE,
            "{method}"
        );
        assert!(amplitude(method, 0.2, 4.4) < STABLE, "{method}");
    }
    assert!(
        amplitude("velocity-verlet", 0.4, 1.9) < STABLE
            && amplitude("velocity-verlet", 0.4, 2.1) > UNSTABLE
    );
    // A composition of Yoshida's keeps the stability, one of Suzuki's does not.
    for h in [1.0, 10.0, 100.0] {
        assert!(amplitude("yoshida4(zhang-skeel)", 0.4, h) < STABLE, "{h}");
    }
    let suzuki = |h: f64| amplitude("suzuki4(zhang-skeel)", 0.4, h);
    assert!(suzuki(3.0) < STABLE && suzuki(3.2) > UNSTABLE, "{:e} {:e}", suzuki(3.0), suzuki(3.2));
}

/// One force, one matrix and one solve per step, and those at the start: FSAL. No Newton iteration.
#[test]
fn a_step_takes_one_solve() {
    for (method, per_step) in
        [("zhang-skeel", 1), ("zhang-skeel-simplified", 1), ("yoshida4(zhang-skeel)", 6)]
    {
        let text = format!("--method {method} --step 0.1 --until 500 --samples 2");
        let finished = run(common::model("henon-heiles", &[]), options(&text)).unwrap();
        let cost = &finished.summary.cost;
        let expected = 5000 * per_step + u64::from(per_step == 1);
        assert_eq!(
            (cost.gradient, cost.hessian, cost.linear_solves, cost.newton_iterations),
            (expected, expected, expected, 0)
        );
    }
}

/// With steps longer than the periods of stiff springs, the whole iteration keeps the energies of a
/// nonlinear chain in bounds, and so does the linear solve of a symplectic method; one iteration of
/// Newmark's loses them.
#[test]
fn one_newton_iteration_is_not_enough() {
    let chain =
        || load_with(&repository().join("models/fpu-stiff.holo"), &[], Some("stiff")).unwrap();
    let start = chain().model.initial.clone();
    let end = |method: &str| simulation(chain(), method, BETA).steps((0.0, 0.1), 10_000, &start);
    for method in ["newmark", "pushforward-newmark", "zhang-skeel", "zhang-skeel-stiff"] {
        let x = end(method).unwrap();
        // H = 2 keeps momenta below 2, and positions in a quartic well; errors of these steps are a
        // few times as large.
        assert!(x.iter().all(|x| x.abs() < 10.0), "{method}: {x:?}");
    }
    assert!(end("newmark-one-step").map_or(true, |x| x.iter().any(|x| x.abs() > 1e3)));
}

/// FSAL data are for a step of the same length: a shorter last step computes them anew.
#[test]
fn a_shorter_last_step_takes_nothing_over() {
    let problem = || common::model("henon-heiles", &[]);
    let start = problem().model.initial.clone();
    for method in ["zhang-skeel", "zhang-skeel-simplified", "pushforward-newmark", "newmark"] {
        let text = format!("--method {method} --step 0.25 --until 5.125 --beta {BETA} --samples 2");
        let finished = run(problem(), options(&text)).unwrap();
        let steps = simulation(problem(), method, BETA);
        let x = steps.steps((0.0, 0.25), 20, &start).unwrap();
        let x = steps.steps((5.0, 0.125), 1, &x).unwrap();
        // The same formulas, except for the order of some roundings.
        assert!(
            difference(&finished.state(), &x) < 1e-14,
            "{method}: {:?} {x:?}",
            finished.state()
        );
    }
}

/// A stopped run is resumed with the same bits, its β and its stiff term: FSAL data are stored.
#[test]
fn resumed_runs_are_the_same() {
    use holonome::Control;
    let folder = tempfile::tempdir().unwrap();
    let path = repository().join("models/fpu-stiff.holo");
    for method in ["zhang-skeel-stiff", "zhang-skeel", "newmark"] {
        let make = |name: &str| {
            let out = Some(folder.path().join(format!("{method}-{name}")));
            let text =
                format!("--method {method} --step 0.001 --until 2000 --beta 0.3 --samples 5001");
            let problem = load_with(&path, &[], Some("stiff")).unwrap();
            prepare(problem, RunOptions { out, ..options(&text) }).unwrap()
        };
        let whole = make("whole").run(&mut |_| Control::Continue).unwrap();
        assert!(make("stopped").run(&mut |_| Control::Stop).unwrap().interrupted);
        let stopped = folder.path().join(format!("{method}-stopped"));
        let Resumed::Continues(mut rest) = Simulation::resume(&stopped).unwrap() else {
            panic!("it was stopped")
        };
        let rest = rest.run(&mut |_| Control::Continue).unwrap();
        assert_eq!(
            (whole.state, whole.steps, whole.cost.counts()),
            (rest.state, rest.steps, rest.cost.counts()),
            "{method}"
        );
        let drifts = |list: &[holonome::summary::Drift]| {
            list.iter().map(|d| (d.last, d.max)).collect::<Vec<_>>()
        };
        assert_eq!(drifts(&whole.drift), drifts(&rest.drift), "{method}");
    }
}

/// Trajectories of an ensemble are runs of their own, also in their modified energy.
#[test]
fn trajectories_of_an_ensemble_are_runs_of_their_own() {
    use holonome::{Control, Sweep, SweepOptions, store::StoredRun};
    let folder = tempfile::tempdir().unwrap();
    let path = repository().join("models/fpu-stiff.holo");
    let text = "--method zhang-skeel --step 0.05 --until 2 --beta 0.3 --samples 2";
    let out = folder.path().join("sweep");
    let vary = vec![("omega".to_string(), "50 + 10*i".to_string())];
    let all = SweepOptions { trajectories: 3, vary, ..SweepOptions::default() };
    let run_options = RunOptions { out: Some(out.clone()), ..options(text) };
    let mut sweep = Sweep::load(&path, &Settings::default(), run_options, all).unwrap();
    sweep.run(&mut |_| Control::Continue).unwrap();
    let drifts = StoredRun::open(&out).unwrap().read("drift_modified_energy").unwrap();
    for (i, found) in drifts.into_iter().enumerate() {
        let single =
            run(load(&path, &[("omega", &format!("{}", 50 + 10 * i))]).unwrap(), options(text))
                .unwrap();
        let expected =
            single.summary.drift.iter().find(|drift| drift.name == "modified_energy").unwrap().max;
        // Roundings of an energy of size 2 in 40 steps, amplified by its stiff part.
        assert!((found - expected).abs() < 1e-12 && expected > 1e-3, "{i}: {found} {expected}");
    }
}
