//! Motions of Kepler that are found in formulas, and models that have none.

use holonome::check::Report;
use holonome::store::StoredRun;
use holonome::{
    Control, Problem, Resumed, RunOptions, Settings, Simulation, StepSize, Summary, prepare,
};

fn problem(text: &str) -> Problem {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// What moves about what, in the order of the hierarchy.
fn pairs(text: &str) -> Vec<(String, String)> {
    let orbits = Report::new(&problem(text)).orbits;
    orbits.into_iter().map(|orbit| (orbit.of, orbit.about)).collect()
}

fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(of, about)| (of.to_string(), about.to_string())).collect()
}

/// A star, a planet and its moon; the forces between them are written in three ways.
const MOON: &str = "coordinate s : R^2 = (0, 0)\nmomentum ps of s = (0, 0)\n\
    coordinate m : R^2 = (1.01, 0)\nmomentum pm of m = 1e-6*(0, 1 + sqrt(0.1))\n\
    coordinate b : R^2 = (1, 0)\nmomentum pb of b = 1e-3*(0, 1)\n\
    hamiltonian dot(ps, ps)/2 + dot(pb, pb)/(2*1e-3) + dot(pm, pm)/(2*1e-6) - \
    1e-3/norm(b - s) - 1e-6*((m.x - s.x)^2 + (m.y - s.y)^2)^(-1/2) - 1e-9/sqrt(dot(m - b, m - b))";

#[test]
fn a_moon_joins_its_planet() {
    assert_eq!(pairs(MOON), named(&[("m", "b"), ("b and m", "s")]));
    let orbits = Report::new(&problem(MOON)).orbits;
    let period = orbits[0].period.unwrap();
    // At the distance 0.01 with the velocity √0.1, by the law of energy and Kepler's third law; the
    // difference of the places loses two digits.
    let k = 1e-3 + 1e-6;
    let a: f64 = 1.0 / (2.0 / 0.01 - 0.1 / k);
    let exact = std::f64::consts::TAU * (a.powi(3) / k).sqrt();
    assert!((period - exact).abs() < 1e-12 * exact, "{period} is not {exact}");
}

#[test]
fn a_fixed_centre_attracts_beside_other_coordinates() {
    let text = "coordinate x : R^3 = (3, 1, 0)\nmomentum p of x = (0, 1, 0)\n\
        coordinate a = 0\nmomentum l of a = 1\n\
        hamiltonian dot(p, p)/2 + l^2/2 - 2/norm(x - (2, 1, 0)) + 0.01*x.x*cos(a)";
    let found = pairs(text);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "x");
    // The centre is known up to the rounding of the points from which it is found.
    let centre = found[0].1.trim_matches(['(', ')']).split(", ");
    for (found, exact) in centre.map(|c| c.parse::<f64>().unwrap()).zip([2.0, 1.0, 0.0]) {
        assert!((found - exact).abs() < 1e-12, "{found} is not {exact}");
    }
}

#[test]
fn other_forces_are_no_motions_of_kepler() {
    let with = |potential: &str| {
        format!(
            "coordinate x : R^2 = (1, 0)\nmomentum p of x = (0, 1)\nhamiltonian dot(p, p)/2 + {potential}"
        )
    };
    for potential in [
        "1/norm(x)",
        "-1/norm(x)^2",
        "-1/sqrt(dot(x, x) + 0.01)",
        "-1/sqrt(x.x^2 + 2*x.y^2)",
        "-(1 + 0.1*cos(t))/norm(x)",
        "-1/norm(x - (3*cos(t), 0))",
    ] {
        assert_eq!(pairs(&with(potential)), [], "{potential}");
    }
    assert_eq!(pairs(&with("-1/norm(x)")), named(&[("x", "the origin")]));
}

#[test]
fn a_step_longer_than_a_period_is_refused_by_name() {
    let text = "coordinate x : R^2 = (1, 0)\nmomentum p of x = (0, 1)\nhamiltonian dot(p, p)/2 - 1/norm(x)";
    let end = |h: f64| {
        let options = RunOptions {
            method: "kepler-splitting".parse().unwrap(),
            step: StepSize::Fixed(h),
            until: 10.0 * h,
            ..RunOptions::default()
        };
        let start = [1.0, 0.0, 0.0, 1.0];
        prepare(problem(text), options).unwrap().steps((0.0, h), 1, &start)
    };
    // A circle of the period 2π, up to the rounding of a few operations.
    let x = end(6.0).unwrap();
    assert!((x[0] - 6f64.cos()).abs().max((x[1] - 6f64.sin()).abs()) < 1e-14, "{x:?}");
    let error = end(7.0).unwrap_err().to_string();
    assert!(error.contains("Kepler's equation for x.x"), "{error}");
    assert!(error.contains("shorter than a period"), "{error}");
}

/// Four satellites with periods of 42 to 397 steps: what a loop has to iterate is not seen in its
/// trial alone, and steps that it does not solve are made by themselves, at many times the cost.
#[test]
fn a_loop_solves_what_comes_after_its_trial() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/models/galilean.holo");
    let options = RunOptions {
        method: "saba1064(kepler-splitting)".parse().unwrap(),
        step: StepSize::Fixed(0.042),
        until: 0.042 * 5000.0,
        samples: Some(2),
        ..RunOptions::default()
    };
    let problem = Problem::load(path, &Settings::default()).unwrap();
    let summary = prepare(problem, options).unwrap().solve().unwrap().summary;
    let (steps, solves) = (summary.steps, summary.cost.linear_solves);
    assert_eq!((steps, solves % steps), (5000, 0), "{solves} solves");
}

/// Steps without a look at the invariants, and the same with a sample after each.
#[test]
fn steps_that_do_not_look_are_the_same() {
    for method in ["kepler-splitting", "wisdom5(kepler-splitting)"] {
        let run = |samples| {
            let options = RunOptions {
                method: method.parse().unwrap(),
                step: StepSize::Fixed(0.002),
                until: 2.0,
                samples,
                ..RunOptions::default()
            };
            prepare(problem(MOON), options).unwrap().solve().unwrap().summary
        };
        let (few, all) = (run(Some(2)), run(Some(1001)));
        assert_eq!((few.steps, all.steps), (1000, 1000));
        let end = |summary: &holonome::Summary| serde_json::to_value(&summary.state).unwrap();
        let numbers = |value: &serde_json::Value| -> Vec<f64> {
            let families = value.as_object().unwrap().values();
            families.flat_map(|v| v.as_array().unwrap()).map(|v| v.as_f64().unwrap()).collect()
        };
        // The moon turns ten times; its place rounds by 1e-16 of the distance of the
        // star in every step, and grows by the shear of the orbits.
        for (a, b) in numbers(&end(&few)).into_iter().zip(numbers(&end(&all))) {
            assert!((a - b).abs() < 1e-11, "{method}: {a} and {b}");
        }
    }
}

/// Numbers of the state at the end of a run from t = 0.
fn end(text: &str, method: &str, step: StepSize, until: f64) -> Vec<f64> {
    let options = RunOptions {
        method: method.parse().unwrap(),
        step,
        until,
        samples: Some(2),
        ..RunOptions::default()
    };
    numbers(&prepare(problem(text), options).unwrap().solve().unwrap().summary)
}

/// Numbers of the last state.
fn numbers(summary: &Summary) -> Vec<f64> {
    let state = serde_json::to_value(&summary.state).unwrap();
    let families = state.as_object().unwrap().values();
    families.flat_map(|v| v.as_array().unwrap()).map(|v| v.as_f64().unwrap()).collect()
}

/// State at an eccentric anomaly of the orbit with k = 1 and a semi-major axis of length 1, and the mean
/// anomaly there.
fn on_the_orbit(e: f64, anomaly: f64) -> ([f64; 4], f64) {
    let minor = (1.0 - e * e).abs().sqrt();
    let (sin, cos) = match e < 1.0 {
        true => anomaly.sin_cos(),
        false => (anomaly.sinh(), anomaly.cosh()),
    };
    let [x, r, mean] = match e < 1.0 {
        true => [cos - e, 1.0 - e * cos, anomaly - e * sin],
        false => [e - cos, e * cos - 1.0, e * sin - anomaly],
    };
    ([x, minor * sin, -sin / r, minor * cos / r], mean)
}

/// One step, of a small part of a period and of nearly a whole one, against the anomaly found by
/// halving. A rounding of the start near the pericentre changes the energy by 2/(1 − e) roundings, the
/// mean motion by 3/2 times that, and the state after τ ≤ 6 by 6 times that and the speed √(2/(1 − e)):
/// 6e-15 (1 − e)^−3/2 for each of eight numbers, those of the reference included.
#[test]
fn a_motion_of_kepler_is_exact() {
    for e in [0.0, 0.2, 0.9, 0.99, 1.5, 10.0] {
        for (anomaly, tau) in [(0.0, 0.01), (0.3, 0.5), (2.0, 1.5), (-1.0, 3.0), (-0.02, 6.0)] {
            let ([x, y, u, v], mean) = on_the_orbit(e, anomaly);
            let text = format!(
                "coordinate a : R^2 = ({x}, {y})\nmomentum b of a = ({u}, {v})\n\
                 hamiltonian dot(b, b)/2 - 1/norm(a)"
            );
            let (mut low, mut high) = (anomaly, anomaly + 10.0);
            for _ in 0..100 {
                let middle = 0.5 * (low + high);
                let before = on_the_orbit(e, middle).1 < mean + tau;
                *if before { &mut low } else { &mut high } = middle;
            }
            let (exact, _) = on_the_orbit(e, low);
            let found = end(&text, "kepler-splitting", StepSize::Fixed(tau), tau);
            let rounding = 5e-14 * (1.0 - e).abs().powf(-1.5).max(1.0);
            for (found, exact) in found.chunks(2).zip(exact.chunks(2)) {
                let error = (found[0] - exact[0]).hypot(found[1] - exact[1]);
                let size = exact[0].hypot(exact[1]);
                assert!(
                    error < rounding * size,
                    "{e}, {anomaly}, {tau}: {found:?} is not {exact:?}"
                );
            }
        }
    }
}

/// Largest error of a component as a part of itself, from 1e-6 on.
fn error(found: &[f64], exact: &[f64]) -> f64 {
    let error = |(a, b): (&f64, &f64)| (a - b).abs() / (1e-6 + b.abs());
    found.iter().zip(exact).map(error).fold(0.0, f64::max)
}

/// Two planets of one star, one with a moon, and dust between them; the star is declared last, and
/// all drift together.
const MANY: &str = "coordinate m : R^2 = (1.01, 0)\nmomentum pm of m = 1e-6*(0, 1 + sqrt(0.1))\n\
    coordinate b : R^2 = (1, 0)\nmomentum pb of b = 1e-3*(0, 1)\n\
    coordinate c : R^2 = (0, 2)\nmomentum pc of c = 1e-3*(-0.6, 0.1)\n\
    coordinate d : R^2 = (0, -1.5)\nmomentum pd of d = 1e-8*(0.8, 0)\n\
    coordinate s : R^2 = (0, 0)\nmomentum ps of s = (0.1, 0)\n\
    hamiltonian dot(ps, ps)/2 + dot(pb, pb)/(2*1e-3) + dot(pc, pc)/(2*1e-3) + dot(pm, pm)/(2*1e-6) + \
    dot(pd, pd)/(2*1e-8) - 1e-3/norm(b - s) - 1e-3/norm(c - s) - 1e-6/norm(m - s) - 1e-8/norm(d - s) - \
    1e-9/norm(m - b) - 1e-9/norm(m - c) - 1e-14/norm(m - d) - 1e-6/norm(b - c) - 1e-11/norm(b - d) - \
    1e-11/norm(c - d)";

/// Momenta of the size 1e-8 count as much as places.
#[test]
fn both_coordinates_lead_to_one_motion() {
    let exact = end(MANY, "gauss16", StepSize::adaptive(1e-13), 3.0);
    for method in ["saba1064(kepler-splitting)", "saba1064(democratic-kepler-splitting)"] {
        let found = end(MANY, method, StepSize::Fixed(0.01), 3.0);
        assert!(error(&found, &exact) < 1e-7, "{method}: {found:?} is not {exact:?}");
    }
}

/// Friction at one rate for all, drag that is no linear function of momenta, and friction that differs
/// from body to body: they act on the state that steps carry. The order is that of the splitting.
#[test]
fn forces_that_depend_on_momenta_act_on_what_is_carried() {
    let planets = "coordinate s : R^2 = (0, 0)\nmomentum ps of s = (0, 0)\n\
        coordinate a : R^2 = (1, 0)\nmomentum pa of a = 1e-3*(0, 1)\n\
        coordinate b : R^2 = (-2.4, 0)\nmomentum pb of b = 3e-4*(0, -0.6)\n\
        hamiltonian dot(ps, ps)/2 + dot(pa, pa)/(2*1e-3) + dot(pb, pb)/(2*3e-4) - \
        1e-3/norm(a - s) - 3e-4/norm(b - s) - 3e-7/norm(a - b)\n";
    for forces in [
        "force f on a = -0.02*pa\nforce g on b = -0.02*pb\nforce k on s = -0.02*ps",
        "force f on a = -20*norm(pa)*pa",
        "force f on a = -0.02*pa\nforce g on b = -0.05*pb",
    ] {
        let text = format!("{planets}{forces}");
        let exact = end(&text, "gauss16", StepSize::adaptive(1e-13), 10.0);
        let undamped = end(planets, "gauss16", StepSize::adaptive(1e-13), 10.0);
        assert!(error(&undamped, &exact) > 0.1, "{forces}: they make no difference");
        for method in [
            "kepler-splitting",
            "democratic-kepler-splitting",
            "saba2(kepler-splitting)",
            "wisdom5(kepler-splitting)",
            "wisdom5(democratic-kepler-splitting)",
        ] {
            let errors = [0.1, 0.05].map(|h| {
                let step = StepSize::Fixed(h);
                error(&end(&text, method, step, 10.0), &exact)
            });
            let ratio = errors[0] / errors[1];
            assert!(errors[1] < 0.02, "{method}, {forces}: {errors:?}");
            assert!((3.5..4.6).contains(&ratio), "{method}, {forces}: {errors:?}");
        }
    }
}

/// A star with two planets moves about a fixed centre: the recoil of the group counts its own mass.
/// Without it errors stay at 0.17. The order is that of the splitting.
#[test]
fn a_group_that_moves_about_a_centre_recoils() {
    let text = "coordinate s : R^2 = (10, 0)\nmomentum ps of s = (0, 0.3)\n\
        coordinate a : R^2 = (11, 0)\nmomentum pa of a = 1e-2*(0, 1.3)\n\
        coordinate b : R^2 = (12, 0)\nmomentum pb of b = 1e-2*(0, 1)\n\
        hamiltonian dot(ps, ps)/2 + dot(pa, pa)/(2*1e-2) + dot(pb, pb)/(2*1e-2) - 1/norm(s) - \
        1e-2/norm(a) - 1e-2/norm(b) - 1e-2/norm(a - s) - 1e-2/norm(b - s) - 1e-4/norm(a - b)";
    let exact = end(text, "gauss16", StepSize::adaptive(1e-13), 5.0);
    for method in ["kepler-splitting", "democratic-kepler-splitting"] {
        let errors =
            [0.05, 0.025].map(|h| error(&end(text, method, StepSize::Fixed(h), 5.0), &exact));
        let ratio = errors[0] / errors[1];
        assert!((3.5..4.6).contains(&ratio), "{method}: {errors:?}");
    }
}

/// Two planets of one star, whose orbits cross: for the phase −0.2 they pass each other at a third
/// of the radius of Hill, at t = 0.97, and go on in other orbits.
const CROSSING: &str = "parameter m = 1e-4\nparameter phase = -0.2\n\
    coordinate s : R^2 = (0, 0)\nmomentum ps of s = (0, -m - m*1.15*cos(phase))\n\
    coordinate a : R^2 = (1, 0)\nmomentum pa of a = m*(0, 1)\n\
    coordinate b : R^2 = 0.9*(cos(phase), sin(phase))\n\
    momentum pb of b = 1.15*m*(-sin(phase), cos(phase))\n\
    hamiltonian dot(ps, ps)/2 + dot(pa, pa)/(2*m) + dot(pb, pb)/(2*m) - m/norm(a - s) - \
    m/norm(b - s) - m^2/norm(a - b)";

fn crossing(method: &str, step: f64, until: f64) -> Summary {
    let options = RunOptions {
        method: method.parse().unwrap(),
        step: StepSize::Fixed(step),
        until,
        samples: Some(2),
        ..RunOptions::default()
    };
    prepare(problem(CROSSING), options).unwrap().solve().unwrap().summary
}

/// Without handing over, the energy errs by 1.8e-8 of itself with the last method, by 4e-5 with the
/// others, and the places by 2.5e-4 and 0.2. With it, what is left is the error of the splitting
/// outside of the encounter, where the coupling is 1e-4 of the motion: in the energy as that of an
/// orbit without an encounter.
#[test]
fn close_encounters_are_handed_over() {
    let exact = end(CROSSING, "gauss16", StepSize::adaptive(1e-13), 20.0);
    let methods = [
        ("kepler-splitting", 2e-7, 1e-4),
        ("democratic-kepler-splitting", 2e-7, 1e-4),
        ("wisdom5(kepler-splitting)", 4e-9, 1e-6),
        ("yoshida4(kepler-splitting)", 2e-9, 1e-6),
        ("saba1064(kepler-splitting)", 1e-14, 2e-12),
        ("saba1064(democratic-kepler-splitting)", 1e-14, 2e-12),
    ];
    for (method, of_energy, of_places) in methods {
        let summary = crossing(method, 0.05, 20.0);
        let drift = summary.drift.all[0].relative.unwrap().max;
        assert!(drift < of_energy, "{method}: the energy errs by {drift}");
        let found = numbers(&summary);
        let error = found.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error < of_places, "{method}: the places err by {error}");
        // The planets are within four radii of Hill for 1.2 of 20 units of time.
        let count = summary.cost.handed_over;
        assert!((24..40).contains(&count), "{method}: {count} steps are handed over");
    }
}

/// Steps that are decided by both of their ends lead back to the start, here through the encounter,
/// which multiplies errors by a hundred on each way.
#[test]
fn a_step_back_is_handed_over_alike() {
    for method in ["kepler-splitting", "saba1064(democratic-kepler-splitting)"] {
        let there = crossing(method, 0.05, 3.0);
        let state = numbers(&there);
        let [_, a, b] = [0, 1, 2].map(|k| [state[2 * k], state[2 * k + 1]]);
        assert!((a[0] - b[0]).hypot(a[1] - b[1]) > 0.3, "they have parted");
        // Turned round, as a problem of its own.
        let back: String = ["s", "a", "b"]
            .iter()
            .enumerate()
            .map(|(k, name)| {
                let [q, p] = [2 * k, 6 + 2 * k].map(|at| [state[at], state[at + 1]]);
                format!(
                    "coordinate {name} : R^2 = ({:e}, {:e})\nmomentum p{name} of {name} = ({:e}, {:e})\n",
                    q[0], q[1], -p[0], -p[1]
                )
            })
            .collect();
        let hamiltonian = CROSSING.lines().last().unwrap();
        let text = format!("parameter m = 1e-4\n{back}{hamiltonian}");
        let found = end(&text, method, StepSize::Fixed(0.05), 3.0);
        let begun = [0.0, 0.0, 1.0, 0.0, 0.9 * f64::cos(-0.2), 0.9 * f64::sin(-0.2)];
        for (a, b) in found.iter().zip(begun) {
            assert!((a - b).abs() < 1e-10, "{method}: {a} is not {b}");
        }
        assert!(there.cost.handed_over > 20);
    }
}

/// Orders of bodies in which nothing meets: planets, satellites, a planet of two stars.
#[test]
fn nothing_is_handed_over_without_an_encounter() {
    let models = [("solar-system", 10.0), ("galilean", 0.042), ("circumbinary", 0.05)];
    for (model, step) in models {
        for method in ["kepler-splitting", "saba1064(democratic-kepler-splitting)"] {
            let path = format!("{}/../../benches/models/{model}.holo", env!("CARGO_MANIFEST_DIR"));
            let options = RunOptions {
                method: method.parse().unwrap(),
                step: StepSize::Fixed(step),
                until: 5000.0 * step,
                samples: Some(2),
                ..RunOptions::default()
            };
            let problem = Problem::load(path, &Settings::default()).unwrap();
            let cost = prepare(problem, options).unwrap().solve().unwrap().summary.cost;
            assert_eq!(cost.handed_over, 0, "{model} by {method}");
        }
    }
    // A moon is nearer to its planet than the planet's own radius of Hill.
    let cost = {
        let options = RunOptions {
            method: "kepler-splitting".parse().unwrap(),
            step: StepSize::Fixed(0.002),
            until: 10.0,
            samples: Some(2),
            ..RunOptions::default()
        };
        prepare(problem(MOON), options).unwrap().solve().unwrap().summary.cost
    };
    assert_eq!(cost.handed_over, 0);
}

/// A body about one fixed centre comes near to a second one, which its motion does not have.
#[test]
fn a_second_fixed_centre_is_met() {
    let text = "coordinate x : R^2 = (1, 0)\nmomentum p of x = (0, 0.7)\n\
        hamiltonian dot(p, p)/2 - 1/norm(x) - 1e-3/norm(x - (-0.32, 0.02))";
    let exact = end(text, "gauss16", StepSize::adaptive(1e-13), 8.0);
    let found = end(text, "saba1064(kepler-splitting)", StepSize::Fixed(0.02), 8.0);
    // What meets the centre at a distance of 0.02 errs a hundred times as much behind it; steps that are
    // not handed over err by more than 2.
    assert!(error(&found, &exact) < 1e-7, "{found:?} is not {exact:?}");
}

/// Planets that run into each other: the error names the time and the method.
#[test]
fn a_collision_is_named() {
    let text = "coordinate s : R^2 = (0, 0)\nmomentum ps of s = (0, 0)\n\
        coordinate a : R^2 = (1, -0.05)\nmomentum pa of a = 1e-3*(0, 1)\n\
        coordinate b : R^2 = (1, 0.05)\nmomentum pb of b = 1e-3*(0, -1)\n\
        hamiltonian dot(ps, ps)/2 + dot(pa, pa)/(2*1e-3) + dot(pb, pb)/(2*1e-3) - 1e-3/norm(a - s) - \
        1e-3/norm(b - s) - 1e-6/norm(a - b)";
    let options = RunOptions {
        method: "kepler-splitting".parse().unwrap(),
        step: StepSize::Fixed(0.01),
        until: 1.0,
        ..RunOptions::default()
    };
    let error = prepare(problem(text), options).unwrap().solve().unwrap_err().to_string();
    assert!(error.contains("handed over to gauss16") && error.contains("t = 0.0"), "{error}");
}

/// Each of some trajectories in one run, and in a run that is stopped and resumed.
#[test]
fn encounters_have_the_same_bits_in_a_resumed_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crossing.holo");
    std::fs::write(&path, CROSSING).unwrap();
    for (k, method) in
        ["kepler-splitting", "saba1064(democratic-kepler-splitting)"].into_iter().enumerate()
    {
        let run = |out: &str| RunOptions {
            method: method.parse().unwrap(),
            step: StepSize::Fixed(0.02),
            until: 100.0,
            samples: Some(51),
            out: Some(folder.path().join(format!("{k}-{out}"))),
            ..RunOptions::default()
        };
        let open = |out: &str| StoredRun::open(folder.path().join(format!("{k}-{out}"))).unwrap();
        let phase = |i: usize| format!("-0.25+0.01*{i}");
        let mut handed_over = 0;
        for i in 0..11 {
            let mut settings = Settings::default();
            settings.set.push(("phase".into(), phase(i)));
            let simulation =
                |out: &str| prepare(Problem::load(&path, &settings).unwrap(), run(out)).unwrap();
            let (whole, parts) = (format!("whole-{i}"), format!("parts-{i}"));
            let summary = simulation(&whole).run(&mut |_| Control::Continue).unwrap();
            handed_over += summary.cost.handed_over;
            simulation(&parts).run(&mut |_| Control::Stop).unwrap();
            let stopped = folder.path().join(format!("{k}-{parts}"));
            while let Resumed::Continues(mut rest) = Simulation::resume(&stopped).unwrap() {
                rest.run(&mut |_| Control::Stop).unwrap();
            }
            let [whole, parts] = [whole, parts].map(|out| open(&out).read("a").unwrap());
            assert_eq!(whole, parts, "{method}, {i}");
        }
        assert!(handed_over > 500, "{handed_over}");
    }
}
