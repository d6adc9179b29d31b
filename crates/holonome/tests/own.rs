//! Fields and steps of the user's own, run by the loop of models.

mod common;

use common::*;
use holonome::compare::{CompareOptions, compare};
use holonome::method::{
    Method, MethodError, MethodTreatment, Needs, Scheme, SchemeFacts, Step, register,
};
use holonome::phase_space::{PhaseSpace, Value};
use holonome::system::{FnSystem, GroupKind};
use holonome::{Arrays, Control, Error, Resumed, RunOptions, Simulation, integrate, prepare};
use serde_json::json;

/// A planar Kepler orbit with its energy and its angular momentum.
fn kepler() -> FnSystem<'static> {
    let radius = |x: &[f64]| x[0].hypot(x[1]);
    FnSystem::new(4, move |_t, x, dx| {
        let r3 = radius(x).powi(3);
        dx.copy_from_slice(&[x[2], x[3], -x[0] / r3, -x[1] / r3]);
    })
    .with_invariant(
        "H",
        GroupKind::Hamiltonian,
        move |_t, x| 0.5 * (x[2] * x[2] + x[3] * x[3]) - 1.0 / radius(x),
        move |_t, x, d| {
            let r3 = radius(x).powi(3);
            d.copy_from_slice(&[x[0] / r3, x[1] / r3, x[2], x[3]]);
        },
    )
    .with_invariant(
        "L",
        GroupKind::Integral,
        |_t, x| x[0] * x[3] - x[1] * x[2],
        |_t, x, d| d.copy_from_slice(&[x[3], -x[2], -x[1], x[0]]),
    )
}

const START: [f64; 4] = [0.4, 0.0, 0.0, 2.0];

#[test]
fn a_field_of_closures_is_held_like_a_model() {
    for method in [
        "corrected:dop853",
        "corrected:rk4 --step 0.01",
        "projection:tsit5",
        "symmetric-projection:rk4 --step 0.01",
    ] {
        let text = format!("--method {method} --until 20 --samples 101");
        let solution = integrate(&kepler(), (0.0, &START), &options(&text)).unwrap();
        let drift: Vec<_> =
            solution.summary.drift.iter().map(|d| (d.name.as_str(), d.max)).collect();
        assert!(
            drift.iter().all(|&(_, max)| max < 1e-10) && drift.len() == 2,
            "{method}: {drift:?}"
        );
        assert_eq!(
            (solution["x"].shape(), solution["drift.H"].shape()),
            (&[101, 4][..], &[101][..])
        );
        assert!(
            (solution["L"].row(50)[0] - 0.8).abs() < 1e-10 && solution.summary.warnings.is_empty()
        );
    }
}

/// The numbers of the model, to the tolerance: the motion has the period 2π.
#[test]
fn a_field_of_closures_moves_as_the_model_does() {
    let text = format!(
        "--method corrected:dop853 --rtol 1e-12 --until {} --samples 2",
        std::f64::consts::TAU
    );
    let solution = integrate(&kepler(), (0.0, &START), &options(&text)).unwrap();
    assert!(distance(solution["x"].last(), &START) < 1e-9, "{:?}", solution["x"].last());
    let plain = integrate(
        &kepler(),
        (3.0, &START),
        &options("--method rk4 --step 0.01 --until 4 --samples 3"),
    )
    .unwrap();
    assert_eq!(plain.times(), [3.0, 3.5, 4.0]);
}

#[test]
fn a_claim_that_is_not_true_is_left_out_with_a_warning() {
    let wrong = kepler().with_invariant(
        "Z",
        GroupKind::Integral,
        |_t, x| x[0],
        |_t, _x, d| d.copy_from_slice(&[1.0, 0.0, 0.0, 0.0]),
    );
    let solution =
        integrate(&wrong, (0.0, &START), &options("--method corrected:dop853 --until 5")).unwrap();
    let told = solution.summary.warnings.join("\n");
    assert!(told.contains("integral 'Z' is not constant along the motion"), "{told}");
    assert!(
        told.contains("correct the function, or leave it out") && !told.contains("observe"),
        "{told}"
    );
    assert!(
        solution.summary.drift.iter().filter(|d| d.name != "Z").all(|d| d.max < 1e-8),
        "{:?}",
        solution.summary.drift
    );
}

/// A wrong factor, a wrong sign and a missing component are mistakes; a kink and a steep power at
/// the start are none.
#[test]
fn a_gradient_that_contradicts_its_values_is_refused() {
    type Gradient = fn(&[f64], &mut [f64]);
    let energy = |x: &[f64]| 0.5 * (x[2] * x[2] + x[3] * x[3]) - 1.0 / x[0].hypot(x[1]);
    let wrong: [Gradient; 3] = [
        |x, d| d.copy_from_slice(&[2.0 * x[0] / x[0].hypot(x[1]).powi(3), 0.0, x[2], x[3]]),
        |x, d| d.copy_from_slice(&[-x[0] / x[0].hypot(x[1]).powi(3), 0.0, x[2], x[3]]),
        |x, d| d.copy_from_slice(&[x[0] / x[0].hypot(x[1]).powi(3), 0.0, 0.0, 0.0]),
    ];
    for gradient in wrong {
        let system = kepler().with_invariant(
            "E",
            GroupKind::Integral,
            move |_t, x| energy(x),
            move |_t, x, d| gradient(x, d),
        );
        let error = integrate(&system, (0.0, &START), &options("")).unwrap_err().to_string();
        assert!(
            error.contains("the gradient of 'E' contradicts its values at the start"),
            "{error}"
        );
    }
    let steep = FnSystem::new(2, |_t, _x, dx| dx.fill(0.0))
        .with_invariant(
            "kink",
            GroupKind::Integral,
            |_t, x| x[0].abs(),
            |_t, _x, d| d.copy_from_slice(&[1.0, 0.0]),
        )
        .with_invariant(
            "cube",
            GroupKind::Integral,
            |_t, x| x[1].powi(3),
            |_t, x, d| {
                d.copy_from_slice(&[0.0, 3.0 * x[1] * x[1]]);
            },
        );
    for start in [[1.0, 0.0], [1e-9, 1e6], [3.0, -2.0]] {
        integrate(&steep, (0.0, &start), &options("--until 1")).unwrap();
    }
}

#[test]
fn what_does_not_suit_a_field_is_refused_by_name() {
    let refused = |system: &FnSystem, start: &[f64], text: &str| -> String {
        integrate(system, (0.0, start), &options(text)).expect_err(text).to_string()
    };
    let rod = FnSystem::new(2, |_t, x, dx| dx.copy_from_slice(&[-x[1], x[0]])).with_invariant(
        "rod",
        GroupKind::Constraint,
        |_t, x| x[0] * x[0] + x[1] * x[1] - 1.0,
        |_t, x, d| d.copy_from_slice(&[2.0 * x[0], 2.0 * x[1]]),
    );
    for (said, words) in [
        (refused(&kepler(), &START[..3], ""), vec!["3 numbers", "4"]),
        (
            refused(&kepler(), &START, "--method rattle --step 0.1"),
            vec!["`rattle`", "write the model as text"],
        ),
        (
            refused(&kepler(), &START, "--method gauss4 --step 0.1"),
            vec!["`gauss4` is made from the formulas of a model"],
        ),
        (refused(&kepler(), &START, "--method feedback:rk4 --step 0.1"), vec!["corrected:rk4"]),
        (
            refused(&kepler(), &START, "--until -2"),
            vec!["until = -2 is not after the start at t = 0"],
        ),
        (refused(&rod, &[1.1, 0.0], "--method corrected:rk4 --step 0.1"), vec!["'rod'", "2.1e-1"]),
    ] {
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
    for (options, words) in [
        (
            RunOptions { out: Some("run".into()), ..RunOptions::default() },
            "out: a system of functions is run in memory",
        ),
        (
            RunOptions { interpolant: true, ..RunOptions::default() },
            "interpolant: a system of functions has its samples",
        ),
    ] {
        let error = integrate(&kepler(), (0.0, &START), &options).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let blows_up = FnSystem::new(1, |_t, x, dx| dx[0] = x[0] * x[0]);
    let error =
        integrate(&blows_up, (0.0, &[1.0]), &options("--method dop853 --until 2")).unwrap_err();
    let Error::Failed { failure, kept: Some(kept), .. } = &error else { panic!("{error}") };
    assert!(
        failure.t().is_some_and(|t| (t - 1.0).abs() < 0.01) && kept.times().len() > 100,
        "{error}"
    );
}

/// The Störmer–Verlet method as a user's own step.
fn leapfrog(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let n = space.degrees();
    let (half, minus_half) = (space.scaled(0.5, h), space.scaled(-0.5, h));
    let force = space.h_q(t, x);
    let p = space.moved(&x[n..], minus_half, &force);
    let v = space.h_p(t, &[&x[..n], &p[..]].concat());
    let q = space.moved(&x[..n], half, &v);
    let q = space.moved(&q, half, &v);
    let t1 = space.sum(t, h);
    let force = space.h_q(t1, &[&q[..], &p[..]].concat());
    let p = space.moved(&p, minus_half, &force);
    [q, p].concat()
}

/// The explicit midpoint rule as a user's own step.
fn midpoint(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let half = space.scaled(0.5, h);
    let v = space.field(t, x);
    let middle = space.moved(x, half, &v);
    let t_middle = space.time(t, 0.5, h);
    let v = space.field(t_middle, &middle);
    space.moved(x, h, &v)
}

fn too_short(_: &mut dyn PhaseSpace, _t: Value, _h: Value, x: &[Value]) -> Vec<Value> {
    x[1..].to_vec()
}

const PRESERVING: SchemeFacts =
    SchemeFacts { order: 2, symmetric: true, symplectic: true, explicit: true };
const PLAIN: SchemeFacts = SchemeFacts { symmetric: false, symplectic: false, ..PRESERVING };

const fn scheme(name: &'static str, step: Step) -> Scheme {
    Scheme {
        name,
        other_names: &[],
        needs: Needs::Hamiltonian,
        description: "kick, drift, kick",
        citation: "",
        file: "",
        step,
    }
}

static LEAPFROG: Scheme = scheme("leapfrog", Step::Map(leapfrog, PRESERVING));
static TOO_SHORT: Scheme = scheme("too-short", Step::Map(too_short, PRESERVING));
static UNSYMMETRIC: Scheme = scheme("unsymmetric", Step::Map(leapfrog, PLAIN));
static MIDPOINT: Scheme =
    Scheme { needs: Needs::Field, ..scheme("own-midpoint", Step::Map(midpoint, PLAIN)) };
static FORMULAS: Scheme = scheme("series", Step::Taylor(8));
static TAKEN: Scheme = scheme("rk4", Step::Map(leapfrog, PRESERVING));
static TREATMENT: Scheme = scheme("corrected", Step::Map(leapfrog, PRESERVING));
static BRACKETS: Scheme = scheme("mine(a)", Step::Map(leapfrog, PRESERVING));
static KEPT: Scheme = scheme("kept", Step::Map(leapfrog, PRESERVING));
static ALSO_KEPT: Scheme = scheme("kept", Step::Map(leapfrog, PRESERVING));

#[test]
fn a_step_of_ones_own_runs_like_a_built_in_one() {
    // An unrolled model, and a templated one.
    for (name, set, h) in [("henon-heiles", vec![], "0.1"), ("fpu", vec![], "0.01")] {
        let builtin =
            options(&format!("--method stormer-verlet-a --step {h} --until 20 --samples 11"));
        let own = RunOptions { method: Method::plain(&LEAPFROG), ..builtin.clone() };
        let problem = model(name, &set);
        let (own, builtin) = (
            prepare(problem.clone(), own).unwrap().solve().unwrap(),
            prepare(problem, builtin).unwrap().solve().unwrap(),
        );
        let (a, b) = (json!(own.summary), json!(builtin.summary));
        assert_eq!(a["method"], "leapfrog");
        assert!(distance(&numbers(&a["state"]), &numbers(&b["state"])) < 1e-9, "{name}");
        assert!(own.summary.drift[0].max < 1e-2 && own.summary.drift[0].max > 0.0);
    }
}

#[test]
fn a_step_of_ones_own_composes_and_is_corrected() {
    let yoshida: Method = "yoshida4(stormer-verlet-a)".parse().unwrap();
    let end = |method: Method, h: f64| -> Vec<f64> {
        let options = RunOptions {
            method,
            step: holonome::StepSize::Fixed(h),
            until: 2.0,
            ..RunOptions::default()
        };
        let solution = prepare(model("henon-heiles", &[]), options).unwrap().solve().unwrap();
        numbers(&json!(solution.summary)["state"])
    };
    let fourth = Method { composition: yoshida.composition, ..Method::plain(&LEAPFROG) };
    let exact = end("dop853".parse().unwrap(), 0.001);
    let order = |method: Method| {
        (distance(&end(method, 0.1), &exact) / distance(&end(method, 0.05), &exact)).log2()
    };
    assert!((order(Method::plain(&LEAPFROG)) - 2.0).abs() < 0.2);
    assert!((order(fourth) - 4.0).abs() < 0.3);
    let held = Method { treatment: MethodTreatment::Corrected, ..Method::plain(&UNSYMMETRIC) };
    let options = RunOptions { method: held, ..options("--step 0.1 --until 20") };
    let solution = prepare(model("henon-heiles", &[]), options).unwrap().solve().unwrap();
    assert!(solution.summary.drift[0].max < 1e-8, "{:?}", solution.summary.drift);
}

#[test]
fn methods_whose_parts_do_not_go_together_are_refused() {
    let composition = "yoshida4(stormer-verlet-a)".parse::<Method>().unwrap().composition;
    let feedback = MethodTreatment::Feedback;
    for (method, says) in [
        (Method::plain(&TAKEN), "the name `rk4` of this scheme is that of another one"),
        (Method::plain(&TREATMENT), "the name `corrected` of this scheme is that of another one"),
        (Method::plain(&BRACKETS), "a name has no blanks, colons, commas or brackets"),
        (Method::plain(&FORMULAS), "let `needs` be `Needs::Series`"),
        (Method { composition, ..Method::plain(&UNSYMMETRIC) }, "unsymmetric is not symmetric"),
        (
            Method { treatment: feedback, ..Method::plain(&LEAPFROG) },
            "the feedback term is for explicit Runge-Kutta",
        ),
        (
            Method { treatment: MethodTreatment::Corrected, ..Method::plain(&LEAPFROG) },
            "use leapfrog alone",
        ),
        (Method { unconstrained: Some(&LEAPFROG), ..Method::plain(&LEAPFROG) }, "takes no other"),
    ] {
        for text in ["--step 0.1 --until 1", "--until 1"] {
            let options = RunOptions { method, ..options(text) };
            let system = kepler();
            let compared = CompareOptions {
                methods: vec![method],
                steps: vec![0.1],
                ..CompareOptions::default()
            };
            let refusals = [
                prepare(model("henon-heiles", &[]), options.clone()).err().expect("it is refused"),
                integrate(&system, (0.0, &START), &options).unwrap_err(),
                compare(&model("henon-heiles", &[]), &compared, &|_| Control::Continue)
                    .expect_err("it is refused"),
            ];
            for error in refusals {
                assert!(
                    error.to_string().contains(says) && error.kind() == "method",
                    "{method}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_run_by_a_step_of_ones_own_is_resumed_once_its_scheme_is_registered() {
    let folder = tempfile::tempdir().unwrap();
    let composition = "yoshida4(stormer-verlet-a)".parse::<Method>().unwrap().composition;
    let method = Method { composition, ..Method::plain(&KEPT) };
    let options = |name: &str| RunOptions {
        method,
        out: Some(folder.path().join(name)),
        ..options("--step 0.001 --until 9000 --samples 11")
    };
    let simulation = |name: &str| prepare(model("henon-heiles", &[]), options(name)).unwrap();
    assert!(simulation("stopped").run(&mut |_| Control::Stop).unwrap().interrupted);
    let path = folder.path().join("stopped");
    let refused = Simulation::resume(&path).err().expect("the scheme is not known").to_string();
    for part in
        ["stopped was made by `yoshida4(kept)`", "there is no method `kept`", "method::register"]
    {
        assert!(refused.contains(part), "{refused}");
    }
    // A name that means another method to the parser is no exception.
    let own = RunOptions { method: Method::plain(&LEAPFROG), until: 1e7, ..options("own") };
    assert!(
        prepare(model("henon-heiles", &[]), own)
            .unwrap()
            .run(&mut |_| Control::Stop)
            .unwrap()
            .interrupted
    );
    let refused = Simulation::resume(folder.path().join("own"))
        .err()
        .expect("the scheme is not known")
        .to_string();
    assert!(
        refused.contains("was made by `leapfrog`, but there is no method `leapfrog`"),
        "{refused}"
    );
    let refused =
        Simulation::extend(&path, 10000.0).err().expect("the scheme is not known").to_string();
    assert!(refused.contains("method::register"), "{refused}");

    register(&KEPT).unwrap();
    register(&KEPT).unwrap();
    assert!(matches!(register(&ALSO_KEPT), Err(MethodError::NameTaken { name: "kept" })));
    assert!(matches!(register(&TAKEN), Err(MethodError::NameTaken { name: "rk4" })));
    let Resumed::Continues(mut resumed) = Simulation::resume(&path).unwrap() else {
        panic!("it is not finished")
    };
    assert!(!resumed.run(&mut |_| Control::Continue).unwrap().interrupted);
    simulation("whole").run(&mut |_| Control::Continue).unwrap();
    let q = |name: &str| Arrays::open(folder.path().join(name)).unwrap()["q"].values().to_vec();
    assert_eq!(q("stopped"), q("whole"));
    assert_eq!("yoshida4(kept)".parse(), Ok(method));
}

/// As built-in schemes that need a field alone: of a model with constraints, unrolled or large, it
/// is the Dirac extension.
#[test]
fn a_step_over_a_field_runs_on_constraints() {
    for (name, set, h) in
        [("spherical-pendulum", vec![], "0.01"), ("chain", vec![("n", "60")], "0.001")]
    {
        for treatment in ["", "corrected:", "projection:"] {
            let builtin = options(&format!(
                "--method {treatment}midpoint --step {h} --until 0.1 --samples 3"
            ));
            let own = RunOptions {
                method: Method { scheme: &MIDPOINT, ..builtin.method },
                ..builtin.clone()
            };
            let end = |options: RunOptions| {
                let solution = prepare(model(name, &set), options).unwrap().solve().unwrap();
                numbers(&json!(solution.summary)["state"])
            };
            let (own, builtin) = (end(own), end(builtin));
            assert!(
                distance(&own, &builtin) < 1e-6,
                "{treatment} {name}: {:e}",
                distance(&own, &builtin)
            );
        }
    }
}

#[test]
fn a_step_that_gives_no_state_is_refused() {
    for name in ["henon-heiles", "fpu"] {
        let options =
            RunOptions { method: Method::plain(&TOO_SHORT), ..options("--step 0.1 --until 1") };
        let Err(error) = prepare(model(name, &[]), options) else { panic!("{name} runs") };
        assert!(error.to_string().contains("its step gives"), "{error}");
    }
}
