//! Values set after the preparation, and flows: the numbers of runs that are prepared for them.

use holonome::{
    Control, Error, Flow, Gains, Problem, Resumed, RunOptions, Settings, Simulation, Solution,
    StepSize, prepare, prepare_settable,
};

/// A pendulum whose start follows from its length.
const PENDULUM: &str = "
    parameter l = 1
    parameter m = 1
    coordinate q : R^2 = (0, -l)
    momentum   p of q  = (m, 0)
    hamiltonian dot(p, p)/(2*m) + m*q.y
    constraint  rod : dot(q, q) = l^2
    observe     speed = norm(p)/m
";

/// A separable oscillator with a claimed integral that holds for all its parameters.
const ISOTROPIC: &str = "
    parameter k = 1
    coordinate q : R^2 = (1, 0)
    momentum   p of q  = (0, 0.5)
    hamiltonian dot(p, p)/2 + k*dot(q, q)/2 + dot(q, q)^2/10
    integral    L = q.x*p.y - q.y*p.x
";

/// A kick whose time is a parameter: steps have to meet it.
const KICKED: &str = "
    parameter at = 30
    coordinate q : R = 1
    momentum   p of q = 0
    hamiltonian (p^2 + q^2)/2 + q*exp(-((t - at)/0.01)^2)*50
";

/// A chain that is not unrolled.
const CHAIN: &str = "
    size n = 200
    parameter g = 1
    coordinate q[i in 1..n] : R^2 = (0.2*i, 0.4*i)
    momentum   p[i] of q  = (0, 0)
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + g*q[i].y)
    constraint  first : dot(q[1], q[1]) = 0.2
    constraint  link[i in 2..n] : dot(q[i] - q[i-1], q[i] - q[i-1]) = 0.2
";

fn run_options(method: &str, step: Option<f64>, until: f64) -> RunOptions {
    let (method, step) = (method.parse().unwrap(), StepSize::from(step));
    RunOptions { method, step, until, samples: Some(6), ..RunOptions::default() }
}

fn given(text: &str, values: &[(&str, &[f64])]) -> Problem {
    let given = values.iter().map(|(name, numbers)| (name.to_string(), numbers.to_vec())).collect();
    let settings = Settings { given, ..Settings::default() };
    Problem::from_text("model", text, &Default::default(), &settings).unwrap()
}

/// Demand that two solutions are the same, up to `apart`.
#[track_caller]
fn same(a: &Solution, b: &Solution, apart: f64) {
    assert!(a.arrays.names().eq(b.arrays.names()));
    for name in a.arrays.names() {
        let (one, other) = (&a[name], &b[name]);
        assert_eq!(one.shape(), other.shape(), "{name}");
        for (x, y) in one.values().iter().zip(other.values()) {
            let equal = (x - y).abs() <= apart || x.to_bits() == y.to_bits();
            assert!(equal, "{}: {x:e} and {y:e}", one.name());
        }
    }
    assert!((a.summary.t, a.summary.steps) == (b.summary.t, b.summary.steps) || apart > 0.0);
    for (one, other) in a.summary.drift.iter().zip(b.summary.drift.iter()) {
        assert!((one.max - other.max).abs() <= apart, "{}", one.name);
    }
}

#[test]
fn a_run_with_set_values_is_that_of_a_simulation_prepared_for_them() {
    // Iterations that find multipliers or stages end within 1e-13 of the terms, and the loop of a
    // prepared simulation iterates as often as its first values need.
    for (text, names, method, step, apart) in [
        (PENDULUM, &["l", "p.x"][..], "corrected:dop853", None, 0.0),
        (PENDULUM, &["l", "m"], "plain:rk4", Some(0.01), 0.0),
        (PENDULUM, &["l", "m"], "corrected:rk4", Some(0.01), 0.0),
        (PENDULUM, &["l", "m"], "projection:dopri5", None, 0.0),
        (PENDULUM, &["m"], "symmetric-projection:heun", Some(0.01), 0.0),
        (PENDULUM, &["l", "m"], "corrected:gauss16", None, 0.0),
        (PENDULUM, &["l", "m"], "corrected:taylor", None, 0.0),
        (PENDULUM, &["l", "p.x"], "rattle", Some(0.01), 1e-11),
        (ISOTROPIC, &["k", "q"], "feedback:rk4", Some(0.01), 0.0),
        (ISOTROPIC, &["k", "q"], "stormer-verlet-a", Some(0.01), 0.0),
        (ISOTROPIC, &["k", "q"], "gauss4", Some(0.05), 1e-11),
        (ISOTROPIC, &["k", "p.y"], "gauss16", Some(0.1), 0.0),
        (ISOTROPIC, &["k", "p.y"], "taylor", Some(0.1), 0.0),
        (KICKED, &["at"], "dop853", None, 0.0),
        (CHAIN, &["g"], "rattle", Some(0.01), 1e-9),
        (CHAIN, &["g"], "corrected:dop853", None, 0.0),
    ] {
        let gain = method.starts_with("feedback").then_some(Gains::Uniform(20.0));
        let until = if text == CHAIN { 0.5 } else { 40.0 };
        let run = RunOptions { gain, ..run_options(method, step, until) };
        let mut simulation = prepare_settable(&text.parse().unwrap(), run.clone(), names).unwrap();
        // In turn, there and back again: nothing stays of the values before.
        for scale in [1.25, 0.8, 1.25] {
            let numbers = |name: &&str| match *name {
                "q" => vec![scale, 0.1 * scale],
                "at" => vec![20.0 * scale],
                _ => vec![scale],
            };
            let values: Vec<Vec<f64>> = names.iter().map(numbers).collect();
            let values: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
            simulation.set(&values).unwrap();
            let pairs: Vec<_> = names.iter().copied().zip(values).collect();
            let fresh = prepare(given(text, &pairs), run.clone()).unwrap().solve().unwrap();
            same(&simulation.solve().unwrap(), &fresh, apart);
        }
    }
}

#[test]
fn what_was_found_for_the_first_values_does_not_make_others_wrong() {
    // The kick is late: a run that does not know when it comes steps over it.
    let options = run_options("dop853", None, 40.0);
    let mut simulation = prepare_settable(&KICKED.parse().unwrap(), options, &["at"]).unwrap();
    simulation.set(&[&[10.0]]).unwrap();
    let early = simulation.solve().unwrap();
    // ∫ 50 exp(−(s/0.01)²) ds = 50·0.01·√π, which moves p at t = 10; the motion goes on as it was.
    // The width of the kick moves it by its square: 1e-4 of 0.9.
    let kick = 0.5 * std::f64::consts::PI.sqrt();
    let expected = 40f64.cos() - kick * 30f64.sin();
    assert!((early["q"].last()[0] - expected).abs() < 1e-4, "{}", early["q"].last()[0]);
}

#[test]
fn given_values_survive_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    // Numbers that no decimal of few digits has.
    let values: &[(&str, &[f64])] = &[("l", &[0.1 + 0.2]), ("p", &[1.0 / 3.0, 0.0])];
    let options =
        || RunOptions { out: Some(path.clone()), ..run_options("corrected:dop853", None, 9.0) };
    let whole = prepare(given(PENDULUM, values), options()).unwrap().solve().unwrap();
    prepare(given(PENDULUM, values), options()).unwrap().run(&mut |_| Control::Stop).unwrap();
    match Simulation::resume(&path).unwrap() {
        Resumed::Continues(mut rest) => {
            rest.run(&mut |_| Control::Continue).unwrap();
        }
        Resumed::Finished { .. } => {}
    }
    let stored = holonome::Arrays::open(&path).unwrap();
    assert_eq!(stored["q"].values(), whole["q"].values());
    assert_eq!(whole["q"].values()[..2], [0.0, -(0.1 + 0.2)]);
}

#[test]
fn a_flow_is_the_end_of_a_run() {
    for (text, method, step, names) in [
        (PENDULUM, "corrected:dop853", None, &["q", "p"]),
        (PENDULUM, "plain:rk4", Some(0.01), &["q", "p"]),
        (PENDULUM, "corrected:rk4", Some(0.01), &["q", "p"]),
        (PENDULUM, "projection:heun", Some(0.01), &["q", "p"]),
        (PENDULUM, "symmetric-projection:rk4", Some(0.05), &["q", "p"]),
        (PENDULUM, "rattle", Some(0.01), &["q", "p"]),
        (PENDULUM, "corrected:gauss16", None, &["q", "p"]),
        (PENDULUM, "feedback:tsit5", None, &["q", "p"]),
        (ISOTROPIC, "feedback:rk4", Some(0.01), &["q", "p"]),
        (ISOTROPIC, "feedback:gauss8", Some(0.01), &["q", "p"]),
        (ISOTROPIC, "stormer-verlet-a", Some(0.01), &["q", "p"]),
        (ISOTROPIC, "yoshida4(stormer-verlet-a)", Some(0.02), &["q", "p"]),
        (ISOTROPIC, "gauss4", Some(0.05), &["q", "p"]),
        (ISOTROPIC, "gauss16", Some(0.1), &["q", "p"]),
        (ISOTROPIC, "taylor", Some(0.1), &["q", "p"]),
        (ISOTROPIC, "taylor", None, &["q", "p"]),
        (ISOTROPIC, "plain:dop853", None, &["q", "p"]),
        (CHAIN, "rattle", Some(0.01), &["q", "p"]),
        (CHAIN, "corrected:dop853", None, &["q", "p"]),
        // A shorter last step.
        (ISOTROPIC, "plain:rk4", Some(0.3), &["q", "p"]),
    ] {
        let gain = method.starts_with("feedback").then_some(Gains::Uniform(20.0));
        let run = RunOptions { gain, ..run_options(method, step, 2.0) };
        let problem: Problem = text.parse().unwrap();
        let Ok(mut flow) = Flow::new(&problem, run.clone()) else {
            panic!("{method}: {}", Flow::new(&problem, run.clone()).err().unwrap());
        };
        // The problem's own start, and another one before, of which nothing may stay.
        let start = problem.model.initial.clone();
        let mut other = start.clone();
        let n = start.len();
        other[n / 2..].iter_mut().for_each(|p| *p *= 1.5);
        let states: Vec<f64> = [other, start].concat();
        let mut moved = states.clone();
        flow.apply(&mut moved).unwrap();
        let end = prepare(problem, run).unwrap().solve().unwrap();
        let end: Vec<f64> = names.iter().flat_map(|name| end[*name].last().to_vec()).collect();
        assert_eq!(moved[n..], end, "{method}");
        // Many states, which threads share.
        let copies = if text == CHAIN { 40 } else { 100 };
        let mut many = states.repeat(copies);
        flow.apply(&mut many).unwrap();
        assert!(many == moved.repeat(copies), "{method}");
    }
}

#[test]
fn flows_and_settings_refuse_what_they_do_not_have() {
    let pendulum: Problem = PENDULUM.parse().unwrap();
    let run = || run_options("corrected:dop853", None, 1.0);
    let of = |error: Error| error.to_string();
    let flow = |options: RunOptions| of(Flow::new(&pendulum, options).err().unwrap());
    assert!(flow(RunOptions { reference: Some("q=(0,1)".into()), ..run() }).contains("reference"));
    let heated = RunOptions {
        friction: Some(1.0),
        inverse_temperature: Some(1.0),
        thermostat: Some(holonome::Thermostat::Gla),
        ..run_options("rattle", Some(0.01), 1.0)
    };
    assert!(flow(heated).contains("thermostat"));
    let mut flow = Flow::new(&pendulum, run()).unwrap();
    let applied = |flow: &mut Flow, states: &[f64]| {
        let mut moved = states.to_vec();
        of(flow.apply(&mut moved).unwrap_err())
    };
    assert!(applied(&mut flow, &[0.0, -1.0, 1.0]).contains("4 numbers, and 3"));
    let off = applied(&mut flow, &[0.0, -1.0, 1.0, 0.0, 0.0, -1.1, 1.0, 0.0]);
    assert!(off.contains("state 1") && off.contains("rod"), "{off}");
    let nan = applied(&mut flow, &[0.0, f64::NAN, 1.0, 0.0]);
    assert!(nan.contains("q.y is NaN"), "{nan}");
    flow.apply(&mut []).unwrap();

    let settable = |names: &[&str]| prepare_settable(&pendulum, run(), names);
    assert!(settable(&["nothing"]).is_err());
    let mut simulation = settable(&["l", "q"]).unwrap();
    let set =
        |simulation: &mut Simulation, values: &[&[f64]]| of(simulation.set(values).unwrap_err());
    assert!(set(&mut simulation, &[&[1.0]]).contains("2 values can be set, and 1"));
    let few = set(&mut simulation, &[&[1.0], &[0.0]]);
    assert!(few.contains("'q' has 2 numbers, and 1"), "{few}");
    let off = set(&mut simulation, &[&[2.0], &[0.0, -1.0]]);
    assert!(off.contains("the initial state does not meet") && off.contains("rod"), "{off}");
    let nan = set(&mut simulation, &[&[f64::NAN], &[0.0, -1.0]]);
    assert!(nan.contains("'l' is NaN"), "{nan}");
    // What was refused has changed nothing.
    let fresh = prepare(pendulum.clone(), run()).unwrap().solve().unwrap();
    same(&simulation.solve().unwrap(), &fresh, 0.0);
    // A reference that needs what was set is refused before anything is set.
    let off = RunOptions { reference: Some("q=(0,-1)".into()), ..run() };
    let mut aimed = prepare_settable(&pendulum, off, &["l"]).unwrap();
    let before = aimed.solve().unwrap();
    assert!(set(&mut aimed, &[&[2.0]]).contains("rod"));
    same(&aimed.solve().unwrap(), &before, 0.0);
    let stored = simulation.run(&mut |_| Control::Continue).unwrap_err().to_string();
    assert!(stored.contains("runs in memory"), "{stored}");
    let plain = of(prepare(pendulum, run()).unwrap().set(&[]).unwrap_err());
    assert!(plain.contains("prepare_settable"), "{plain}");
}

#[test]
fn a_run_begins_at_the_last_state_of_another() {
    // Forces, whose work is counted anew; a Lagrangian, which takes velocities; a coordinate without
    // an initial velocity; a mass matrix that varies.
    let texts = [
        "coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + q^2/2\nforce drag on q = -0.1*q' + 0.2*cos(t)",
        "coordinate r = 1\ncoordinate phi = 0\nvelocity turn of phi = 1.5\n\
         lagrangian r'^2 + r^2*phi'^2 - r^2 + 0.1*r^2*phi'\nforce drag on r = -0.2*r'",
        "size n = 2\ncoordinate r[i in 1..n] : R^2 = (i, 0)\nvelocity v of r = (0, 0.5*i)\n\
         lagrangian sum(i in 1..n : i*dot(r[i]', r[i]')/2 - dot(r[i], r[i]))\n\
         constraint rod : dot(r[1] - r[2], r[1] - r[2]) = 1\nforce drag on r[2].x = -0.1*r[2].x'",
        "coordinate x : R^2 = (1, 0.2)\nlagrangian (x.x + 0.05*x.x^2)*x.y' - dot(x, x)/2 - 0.1*x.x^3",
    ];
    let folder = tempfile::tempdir().unwrap();
    for (number, text) in texts.iter().enumerate() {
        let load = |settings: &Settings| {
            Problem::from_text("model", text, &Default::default(), settings).unwrap()
        };
        let finished = |settings: &Settings, until: f64, name: &str| {
            let out = folder.path().join(format!("{name}-{number}"));
            let step = StepSize::Adaptive { rtol: 1e-12, atol: 0.0 };
            let with = run_options("corrected:dop853", None, until);
            let with = RunOptions { step, out: Some(out.clone()), ..with };
            let summary = prepare(load(settings), with).unwrap().run(&mut |_| Control::Continue);
            (summary.unwrap().state.numbers().to_vec(), out)
        };
        let (whole, _) = finished(&Settings::default(), 2.0, "whole");
        let (_, out) = finished(&Settings::default(), 1.0, "half");
        let span = Some((Some(1.0), Some(2.0)));
        let mut settings = Settings { span, ..Settings::default() };
        settings.start_at(&out).unwrap();
        let (rest, _) = finished(&settings, 2.0, "rest");
        // Not the work, which is counted anew.
        let numbers = 2 * load(&Settings::default()).model.degrees();
        for (whole, rest) in whole[..numbers].iter().zip(rest) {
            assert!((whole - rest).abs() < 1e-9, "{text}: {whole} {rest}");
        }
    }
}
