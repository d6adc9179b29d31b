//! Lagrange multipliers of `shake` and `rattle`: λ of ṗ = −H_q − Gᵀλ against closed forms, in runs,
//! ensembles, exports.

mod common;

use common::*;
use holonome::store::{FORMATS, StoredRun};
use holonome::{
    Control, Error, Problem, Resumed, RunOptions, Settings, Simulation, StepSize, Sweep,
    SweepOptions, prepare,
};
use std::collections::BTreeMap;
use std::path::Path;

const METHODS: [&str; 5] =
    ["rattle", "shake", "rattle:gauss4", "yoshida4(rattle)", "suzuki4(rattle:gauss2)"];

/// g̈ = 0 gives |p|²/m² + q·(−V_q − 2λq)/m = 0.
const PENDULUM: &str =
    "observe exact = (dot(p, p)/m - m*g*q.z)/(2*l^2)\nobserve error = lambda.rod - exact";

fn problem(text: &str) -> Result<Problem, Error> {
    Problem::from_text("model", text, &BTreeMap::new(), &Settings::default())
}

/// A model of the repository with additional lines.
fn extended(path: &str, lines: &str) -> Problem {
    let text = std::fs::read_to_string(repository().join(path)).unwrap();
    problem(&format!("{text}\n{lines}\n")).unwrap()
}

fn solve(problem: Problem, method: &str, h: f64, until: f64) -> Finished {
    let text = format!("--method {method} --step {h} --until {until} --samples 11");
    run(problem, options(&text)).unwrap()
}

fn largest<'a>(rows: impl IntoIterator<Item = &'a Vec<f64>>) -> f64 {
    rows.into_iter().flatten().fold(0.0, |largest, v| f64::max(largest, v.abs()))
}

/// Observed orders of `error` at the start, within the run, and at its end, each from the last two
/// of four steps.
fn orders(problem: &dyn Fn() -> Problem, method: &str, until: f64) -> [f64; 3] {
    let mut errors: Vec<[f64; 3]> = Vec::new();
    for k in 0..4 {
        let rows = solve(problem(), method, 0.02 / f64::from(1 << k), until).array("error");
        let within = &rows[1..rows.len() - 1];
        errors.push([largest(&rows[..1]), largest(within), largest(&rows[rows.len() - 1..])]);
    }
    let order = |place: usize| {
        let slopes: Vec<f64> =
            errors.windows(2).map(|pair| (pair[0][place] / pair[1][place]).log2()).collect();
        println!(
            "{method}: {:?}, orders {slopes:?}",
            errors.iter().map(|e| e[place]).collect::<Vec<_>>()
        );
        slopes[2]
    };
    [0, 1, 2].map(order)
}

fn near(order: f64, expected: f64) -> bool {
    (order - expected).abs() < 0.1
}

#[test]
fn the_mean_is_of_second_order_and_one_side_of_first() {
    for method in METHODS {
        let [start, within, end] =
            orders(&|| extended("models/spherical-pendulum.holo", PENDULUM), method, 1.0);
        assert!((0.8..1.3).contains(&start), "{method}: order {start} at the start");
        assert!(near(within, 2.0), "{method}: order {within}");
        // SHAKE slides for a whole step at the end, too; this slide is not taken.
        let expected = if method == "shake" { 1.9..2.1 } else { 0.8..1.3 };
        assert!(expected.contains(&end), "{method}: order {end} at the end");
    }
}

#[test]
fn two_springs_in_closed_form() {
    // ṗ₁ = (q₂ − q₁) − λ vanishes on q₁ = 0, and q₂ = cos t.
    let model = "coordinate q : R^2 = (0, 1)\nmomentum p of q\nhamiltonian dot(p, p)/2 + (q.y - q.x)^2/2\n\
                 constraint g : q.x = 0\nobserve error = lambda.g - cos(t)\n";
    for method in METHODS {
        let mut errors = Vec::new();
        for k in 0..4 {
            let rows = solve(problem(model).unwrap(), method, 0.02 / f64::from(1 << k), 1.0)
                .array("error");
            errors.push(largest(&rows[1..10]));
        }
        let order = (errors[2] / errors[3]).log2();
        println!("{method}: {errors:?}, order {order}");
        // With a flat constraint either side of rattle is exact in the state, whose order a
        // composition raises.
        assert!(order > 1.9, "{method}: {errors:?}");
        assert!(errors[3] < 1e-6, "{method}: {errors:?}");
    }
}

#[test]
fn constraints_on_phase_space() {
    // ẋ = X_H + λ X_g with X_g = 2(p, −q), from the time derivative of p·(q + γ) = 0.
    let lines = "observe exact = -(dot(p, p) + dot(q + gamma, gamma))/(2*(dot(p, p) - dot(q, q + gamma)))\n\
                 observe error = lambda.sphere - exact";
    for method in ["rattle", "rattle:gauss4"] {
        let [start, within, end] =
            orders(&|| extended("suite/models/hopf-pendulum.holo", lines), method, 1.0);
        assert!(
            start > 0.9 && near(within, 2.0) && end > 0.9,
            "{method}: orders {start}, {within}, {end}"
        );
    }
}

#[test]
fn a_symmetric_matrix_equation_has_a_symmetric_multiplier() {
    // Ṗ = −2QΛ with ΛJ + JΛ = PᵀP.
    let lines = "let L = lambda.orthogonal\nobserve error = L*J + J*L - transpose(P)*P\n\
                 observe parts = (L[1,2] - lambda.orthogonal[2,1], L[3,3] - lambda.orthogonal[3,3])";
    let model = || extended("suite/models/matrix-rigid-body.holo", lines);
    let [start, within, end] = orders(&model, "rattle", 1.0);
    assert!(start > 0.9 && near(within, 2.0) && end > 0.9, "orders {start}, {within}, {end}");
    let finished = solve(model(), "rattle", 0.01, 0.1);
    assert_eq!(largest(&finished.array("parts")), 0.0);
    assert_eq!(finished.array("lambda.orthogonal")[3].len(), 9);
}

#[test]
fn shake_and_rattle_find_the_same() {
    // The slide of a step of SHAKE is the one at the end of a step of RATTLE and the one at the
    // start of the next. 0.3 does not divide 1: the last step is shorter.
    for (base, h) in [("", 0.05), (":gauss4", 0.3), (":stormer-verlet-b", 0.1)] {
        let [rattle, shake] = ["rattle", "shake"].map(|method| {
            let text = format!("--method {method}{base} --step {h} --until 1");
            run(extended("suite/models/double-spherical-pendulum.holo", ""), options(&text))
                .unwrap()
        });
        let names: Vec<String> =
            names(&rattle.folder).into_iter().filter(|name| name.starts_with("lambda.")).collect();
        assert!(!names.is_empty());
        for name in names {
            let (rattle, shake) = (rattle.array(&name), shake.array(&name));
            for (step, (a, b)) in rattle.iter().zip(&shake).enumerate().take(rattle.len() - 1) {
                assert!(distance(a, b) < 1e-9, "{name}{base}, step {step}: {a:?}, {b:?}");
            }
        }
    }
}

/// FSAL steps have no forces at their start. The multipliers of molecules, which hold the forces
/// between these, continue smoothly from there, by the square of the step.
#[test]
fn the_first_ones_know_the_forces() {
    for (method, n) in
        [("rattle", "7"), ("shake", "7"), ("rattle", "12"), ("yoshida4(rattle)", "12")]
    {
        let text = format!("--method {method} --step 0.01 --until 0.05 --samples 6");
        let finished = run(model("water", &[("N", n)]), options(&text)).unwrap();
        let rows = finished.array("lambda.first");
        let bends = |k: usize| (0..rows[k].len()).map(move |i| (k, i));
        for (k, i) in bends(0).chain(bends(1)).chain(bends(2)) {
            let second_difference = rows[k][i] - 2.0 * rows[k + 1][i] + rows[k + 2][i];
            assert!(
                second_difference.abs() < 0.01 * largest(&rows),
                "{method}, {n}: {second_difference:e} at {k}, {i}"
            );
        }
    }
}

#[test]
fn members_and_components_have_names() {
    let model = "size n = 4\ncoordinate r[i in 1..n] : R^2 = (i, -2*i)\nmomentum p of r\n\
        coordinate s : R^2 = (3, 4)\nmomentum u of s\n\
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y) + dot(u, u)/2 + 5*s.x - 7*s.y\n\
        constraint anchor : dot(r[1], r[1]) = 5\n\
        constraint link[i in 1..n, j in i+1..n if j == i + 1] : dot(r[j] - r[i], r[j] - r[i]) = 5\n\
        constraint pin : s = (3, 4)\n\
        let tension(i) = 2*lambda.link[i, i + 1]*sqrt(5)\n\
        observe tension_of[i in 1..n-1] = tension(i)\n\
        observe all = lambda.anchor + sum(i in 1..n-1 : lambda.link[i, i + 1]*cos(lambda.anchor))\n\
        observe held = (lambda.pin.x, lambda.pin[2])\n";
    let finished = solve(problem(model).unwrap(), "rattle", 0.05, 0.5);
    let [tension, all, held, anchor, link, pin] =
        ["tension_of", "all", "held", "lambda.anchor", "lambda.link", "lambda.pin"]
            .map(|name| finished.array(name));
    for k in 0..11 {
        let of_links: Vec<f64> = link[k].iter().map(|l| 2.0 * l * 5f64.sqrt()).collect();
        assert!(distance(&tension[k], &of_links) < 1e-14);
        let sum = anchor[k][0] + link[k].iter().sum::<f64>() * anchor[k][0].cos();
        assert!((all[k][0] - sum).abs() < 1e-14);
        assert_eq!(held[k], pin[k]);
        assert!(
            distance(&pin[k], &[-5.0, 7.0]) < 1e-12,
            "the force that holds it is −V_q: {:?}",
            pin[k]
        );
    }
    // The uppermost rod carries four masses, the next three.
    assert!(
        anchor[0][0] > link[0][0]
            && link[0][0] > link[0][1]
            && link[0][1] > link[0][2]
            && link[0][2] > 0.0
    );
    let mut text = Vec::new();
    FORMATS[0].write(&StoredRun::open(&finished.folder).unwrap(), &mut text).unwrap();
    let header = String::from_utf8(text).unwrap();
    let header = header.lines().next().unwrap();
    let columns = "lambda.anchor,\"lambda.link[1,2]\",\"lambda.link[2,3]\",\"lambda.link[3,4]\",lambda.pin.x,lambda.pin.y";
    assert!(header.contains(columns), "{header}");
}

#[test]
fn a_name_of_the_file_hides_them() {
    let pendulum = "coordinate q : R^2 = (1, 0)\nmomentum p of q\nconstraint x : dot(q, q) = 1\n";
    let model = format!(
        "{pendulum}parameter lambda = (2, 3)\nhamiltonian dot(p, p)/2 + lambda.x*q.y\nobserve a = lambda.x\n"
    );
    let finished = solve(problem(&model).unwrap(), "rattle", 0.1, 1.0);
    assert_eq!(finished.array("a")[0], [2.0]);
    assert_ne!(finished.array("lambda.x")[5], [2.0]);
    let model = format!(
        "{pendulum}hamiltonian dot(p, p)/2 + q.y\nobserve a = sum(lambda in 1..3 : lambda)\n"
    );
    assert_eq!(solve(problem(&model).unwrap(), "corrected:rk4", 0.1, 1.0).array("a")[0], [6.0]);
}

#[test]
fn methods_without_multipliers_say_which_have_them() {
    // A model that is too large for a field in closed form, which has them for all other methods.
    let problem = || problem(&format!("{ROPE}observe tension = 2*lambda.link[2]")).unwrap();
    for method in ["corrected:dop853", "rk4", "projection:dopri5"] {
        let given = options(&format!("--method {method}"));
        let error = prepare(problem(), RunOptions { step: StepSize::Fixed(0.1), ..given });
        let Err(Error::Model { diagnostics, .. }) = error else {
            panic!("{method} has no multipliers")
        };
        let [diagnostic] = &diagnostics[..] else { panic!("{diagnostics:?}") };
        assert!(
            diagnostic.message.contains("'tension'") && diagnostic.message.contains(method),
            "{diagnostic:?}"
        );
        let help = diagnostic.help.as_deref().unwrap();
        assert!(help.contains("shake") && help.contains("rattle"), "{help}");
    }
    let given = options("--method rattle");
    assert!(prepare(problem(), RunOptions { step: StepSize::Fixed(0.001), ..given }).is_ok());
}

/// A rope that hangs at rest.
const ROPE: &str = "
    size n = 2000
    coordinate r[i in 1..n] : R^2 = (0, -i)
    momentum p[i] of r
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)
    constraint anchor : dot(r[1], r[1]) = 1
    constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 1
";

fn names(folder: &Path) -> Vec<String> {
    StoredRun::open(folder).unwrap().arrays().into_iter().map(|array| array.name).collect()
}

/// Bytes of all arrays of a run.
fn bytes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let run = StoredRun::open(folder).unwrap();
    let array = |name: String| {
        let numbers = run.read(&name).unwrap();
        (name, numbers.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect())
    };
    names(folder).into_iter().map(array).collect()
}

#[test]
fn a_stopped_run_goes_on_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    for method in ["rattle", "shake", "yoshida4(rattle)"] {
        let simulation = |name: &str| {
            let text = format!("--method {method} --step 0.001 --until 2000 --samples 5001");
            let out = Some(folder.path().join(format!("{method}-{name}")));
            let problem = extended("models/spherical-pendulum.holo", PENDULUM);
            prepare(problem, RunOptions { out, ..options(&text) }).unwrap()
        };
        simulation("whole").run(&mut |_| Control::Continue).unwrap();
        let stopped = simulation("stopped").run(&mut |_| Control::Stop).unwrap();
        assert!(stopped.interrupted && stopped.steps > 0);
        let (whole, stopped) = (
            folder.path().join(format!("{method}-whole")),
            folder.path().join(format!("{method}-stopped")),
        );
        let mut parts = 1;
        loop {
            let Resumed::Continues(mut rest) = Simulation::resume(&stopped).unwrap() else { break };
            rest.run(&mut |_| if parts < 3 { Control::Stop } else { Control::Continue }).unwrap();
            parts += 1;
        }
        assert!(bytes(&whole) == bytes(&stopped), "{method}, in {parts} parts");
    }
}

#[test]
fn trajectories_of_an_ensemble_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let run = |out: &str| RunOptions {
        out: Some(folder.path().join(out)),
        ..options("--method rattle --step 0.01 --until 1 --samples 5")
    };
    let path = folder.path().join("pendulum.holo");
    let text =
        std::fs::read_to_string(repository().join("models/spherical-pendulum.holo")).unwrap();
    std::fs::write(&path, format!("{text}\n{PENDULUM}\n")).unwrap();
    let ensemble = SweepOptions {
        trajectories: 3,
        vary: vec![("m".into(), "1+0.1*i".into())],
        ..SweepOptions::default()
    };
    let mut sweep = Sweep::load(&path, &Settings::default(), run("sweep"), ensemble).unwrap();
    sweep.run(&mut |_| Control::Continue).unwrap();
    let all = StoredRun::open(folder.path().join("sweep")).unwrap();
    for i in 0..3 {
        let mut alone = prepare(
            load(&path, &[("m", &format!("1+0.1*{i}"))]).unwrap(),
            run(&format!("run-{i}")),
        )
        .unwrap();
        alone.run(&mut |_| Control::Continue).unwrap();
        let alone = StoredRun::open(folder.path().join(format!("run-{i}"))).unwrap();
        for name in ["lambda.rod", "error"] {
            let (of_all, alone) = (all.read(name).unwrap(), alone.read(name).unwrap());
            assert!(
                distance(&of_all[5 * i..5 * i + 5], &alone) < 1e-10,
                "{name} of {i}: {of_all:?}, {alone:?}"
            );
        }
    }
}

/// M q̈ less the applied forces is the sum of all reactions: at the accuracy of the field by the
/// default method, and of multipliers by RATTLE.
#[test]
fn reactions_are_what_newtons_law_leaves() {
    let chain = "size n = 4\nparameter m[i in 1..n] = list(1, 1e-3, 2, 5)\n\
        coordinate r[i in 1..n] : R^2 = (i, 0)\nmomentum p of r\n\
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i]) + m[i]*r[i].y)\n\
        constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 1\n\
        constraint pin : dot(r[1], r[1]) = 1\n\
        observe first = reaction(pin) - reaction(pin, r[1])\n\
        observe off[i in 1..n] = m[i]*r[i]'' + (0, m[i]) - if(i == 1, reaction(pin), reaction(link[i]))\
         - if(i < n, reaction(link[i+1], r[i]), (0, 0))\n\
        observe pair[i in 3..n] = reaction(link[i]) + reaction(link[i], r[i-1])\n\
        observe x = reaction(link[2], r[2].x) - reaction(link[2]).x";
    let disk = "parameter m = 2\ncoordinate r : R^2 = (0, 0)\ncoordinate heading = 0.3\nmomentum p of r\n\
        velocity turn of heading = 1.3\n\
        hamiltonian dot(p, p)/(2*m) + p_heading^2/2 - 3*r.x\n\
        rolling blade : sin(heading)*r'.x - cos(heading)*r'.y = 0\n\
        observe off = m*r'' - (3, 0) - reaction(blade)";
    // Both rods of a beam on three supports carry it: one that is redundant shares the load.
    let beam = "coordinate q : R^3 = (0, 0, 0)\nmomentum p of q\n\
        hamiltonian dot(p, p)/2 + q.y + q.x^2/2 - q.x\n\
        constraint a : q.y = 0\nconstraint b : 2*q.y + q.z = 0\nconstraint c : q.z = 0\n\
        observe off = q'' + (q.x - 1, 1, 0) - reaction(a) - reaction(b) - reaction(c)";
    for (text, names) in
        [(chain, &["first", "off", "pair", "x"][..]), (disk, &["off"]), (beam, &["off"])]
    {
        for method in ["corrected:dop853", "plain:gauss8", "corrected:taylor"] {
            let with = format!("--method {method} --rtol 1e-9 --until 1 --samples 5");
            let run = run(problem(text).unwrap(), options(&with)).unwrap();
            for name in names {
                // Terms of size 10, and a mass 5000 times lighter than its neighbour.
                let off = largest(&run.array(name));
                assert!(off < 1e-11, "{method}: {name} is {off:e} of\n{text}");
            }
        }
    }
    // At both ends of a run RATTLE has multipliers of order 1.
    let off = |h: f64| {
        let rows = solve(problem(chain).unwrap(), "rattle", h, 0.2).array("off");
        largest(&rows[1..rows.len() - 1])
    };
    let order = (off(0.002) / off(0.001)).log2();
    assert!((order - 2.0).abs() < 0.3, "reactions of rattle have the order {order}");
}
