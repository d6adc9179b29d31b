//! Events: their times against closed forms and a series of 22 digits, by every kind of step; what
//! they do to the state; where there is none; a run that is stopped and goes on.

#![allow(clippy::excessive_precision, reason = "the references are as they were computed")]

mod common;

use common::{Finished, options, run};
use holonome::{
    Control, Error, EventTable, Flow, Problem, Resumed, RunOptions, Settings, Simulation, Summary,
    SweepOptions, prepare, prepare_sweep,
};
use std::collections::BTreeMap;

/// One method of each kind: adaptive, explicit, compiled collocation, series, splitting, implicit,
/// projected; with the error that its tolerance or step leaves over some periods.
const METHODS: [(&str, f64); 8] = [
    ("", 1e-7),
    ("--method plain:dop853 --rtol 1e-12", 1e-10),
    ("--method corrected:gauss16 --rtol 1e-12", 1e-10),
    ("--method corrected:taylor --rtol 1e-13", 1e-10),
    ("--method yoshida8(stormer-verlet-a) --step 0.02", 1e-8),
    ("--method gauss8 --step 0.1", 1e-8),
    ("--method projection:rk4 --step 0.01", 1e-6),
    ("--method radau5 --rtol 1e-10", 1e-6),
];

fn finished(text: &str, with: &str) -> Finished {
    run(text.parse().unwrap(), options(with)).unwrap_or_else(|error| panic!("{with}: {error}"))
}

fn stored(text: &str, with: RunOptions) -> Summary {
    let mut simulation = prepare(text.parse::<Problem>().unwrap(), with).unwrap();
    simulation.run(&mut |_| Control::Continue).unwrap()
}

fn failure(text: &str, with: &str) -> String {
    match run(text.parse().unwrap(), options(with)) {
        Err(Error::Failed { failure, .. }) => failure.to_string(),
        Err(error) => panic!("{with}: {error}"),
        Ok(_) => panic!("{with}: it did not fail"),
    }
}

fn table<'a>(of: &'a Finished, name: &str) -> &'a EventTable {
    of.summary.events.iter().find(|table| table.name == name).unwrap()
}

fn column(table: &EventTable, name: &str) -> Vec<f64> {
    table.columns.iter().find(|column| column.name == name).unwrap().values.clone()
}

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64, with: &str) {
    assert_eq!(found.len(), expected.len(), "{with}: {found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance, "{with}: {found} is not {expected}");
    }
}

#[test]
fn a_section_of_henon_and_heiles() {
    // Times, q2 and p2 where q1 rises through 0 (mpmath 1.3, `odefun` with tolerance 1e-22).
    const T: [f64; 4] =
        [6.44091489814449899, 12.8794361494018115, 19.4205434622945071, 25.8175890642585713];
    const Q2: [f64; 4] =
        [0.0142625488784569572, 0.0946421828857927859, 0.257651898444080661, 0.404230616528148576];
    let text = "
        coordinate q : R^2 = (0, 0.1)
        momentum p of q = (0.4, 0.1)
        hamiltonian dot(p, p)/2 + dot(q, q)/2 + q.x^2*q.y - q.y^3/3
        event section : q.x = 0 rising : record
        observe height = q.y";
    for (method, tolerance) in METHODS {
        let run = finished(text, &format!("--until 30 {method}"));
        let table = table(&run, "section");
        assert_near(&table.t, &T, tolerance, method);
        assert_near(&column(table, "height"), &Q2, tolerance, method);
        // Found to round-off, whatever the step's error: the function is 0 there.
        let q = column(table, "q");
        assert!(q.chunks(2).all(|q| q[0].abs() < 1e-14), "{method}: {q:?}");
    }
}

#[test]
fn a_bouncing_ball_meets_the_closed_form() {
    let text = "
        parameter g = 9.81
        parameter e = 0.9
        coordinate q : R^2 = (0, 1)
        momentum p of q = (1, 0)
        hamiltonian dot(p, p)/2 + g*q.y
        impact ground : q.y = 0 restitution e";
    let (g, e) = (9.81_f64, 0.9);
    let (mut t, mut v, mut times) = ((2.0 / g).sqrt(), (2.0 * g).sqrt(), Vec::new());
    while t < 5.0 {
        times.push(t);
        v *= e;
        t += 2.0 * v / g;
    }
    // The motion between impacts is a polynomial of degree 2, which all of these follow exactly; each
    // impact adds some roundings.
    for (method, _) in METHODS {
        let run = finished(text, &format!("--until 5 {method}"));
        assert_near(&table(&run, "ground").t, &times, 1e-13, method);
        // The target of H is taken anew at every impact.
        assert!(run.summary.drift.iter().all(|drift| drift.max < 1e-12), "{method}");
    }
}

#[test]
fn an_elastic_impact_on_the_constraint_set_turns_a_pendulum_around() {
    let text = "
        coordinate q : R^2 = (0, -1)
        momentum p of q = (1.7, 0)
        hamiltonian dot(p, p)/2 + 1.3*q.y
        constraint rod : dot(q, q) = 1
        impact wall : q.x = 0.6 restitution 1";
    for method in ["", "--method rattle --step 0.01", "--method corrected:gauss16"] {
        let first = finished(text, &format!("--until 2 {method}"));
        let hit = table(&first, "wall").t[0];
        // Reversed exactly, it is back at its start after the same time; RATTLE up to the part of a
        // step, as it is cut differently on the way back.
        let tolerance = if method.contains("rattle") { 1e-6 } else { 1e-8 };
        let back = finished(text, &format!("--until {} {method}", 2.0 * hit));
        assert_near(&back.state(), &[0.0, -1.0, -1.7, 0.0], tolerance, method);
        let constraints = back.summary.drift.iter().filter(|drift| drift.name == "rod");
        assert!(constraints.clone().all(|drift| drift.max < 1e-14), "{method}");
    }
}

#[test]
fn an_impact_where_components_are_rounding_is_on_the_set() {
    // The bob hits at its lowest point, along the rod's tangent, where a component of its momentum and
    // one of its position are rounding. A method that leaves the set on the way is not blamed for it.
    let text = "
        coordinate q : R^2 = (1, 0)
        momentum p of q = (0, -1)
        hamiltonian dot(p, p)/2
        constraint rod : dot(q, q) = 1
        impact wall : dot(q, q) - q.x = 1 restitution 0.5
        event ends : t = 2 : stop";
    for method in ["", "--method rattle --step 0.01", "--method plain:rk4 --step 0.1"] {
        let message = match run(text.parse().unwrap(), options(&format!("--until 9 {method}"))) {
            Ok(run) => run.summary.ended_by.clone().unwrap(),
            Err(error) => error.to_string(),
        };
        assert!(message.contains("ends"), "{method}: {message}");
    }
}

#[test]
fn friction_acts_in_the_plane_of_contact() {
    let ball = |friction: f64| {
        format!(
            "coordinate r : R^3 = (0, 0, 0.5)
             momentum p of r = (3, 4, -1)
             hamiltonian dot(p, p)/(2*2)
             impact ground : r.z = 0 restitution 0.5 friction {friction}"
        )
    };
    // The normal impulse is 1.5; sliding loses friction times that, but no more than there is.
    for (friction, part) in [(0.0, 1.0), (0.2, 1.0 - 0.3 / 5.0), (10.0, 0.0)] {
        let run = finished(&ball(friction), "--until 2");
        let p: Vec<f64> = run.state()[3..].to_vec();
        assert_near(&p, &[3.0 * part, 4.0 * part, 0.5], 1e-14, "");
    }
    // Between two bodies it keeps the sum of their momenta.
    let pair = "
        coordinate a : R^2 = (0, 0)
        coordinate b : R^2 = (3, 0.2)
        momentum pa of a = (1, 0.3)
        momentum pb of b = (-2, 0)
        hamiltonian dot(pa, pa)/2 + dot(pb, pb)/6
        impact disks : norm(a - b) = 1 restitution 0.8 friction 0.1
        integral P = pa + pb";
    let run = finished(pair, "--until 4");
    assert_eq!(table(&run, "disks").t.len(), 1);
    let x = run.state();
    assert_near(&[x[4] + x[6], x[5] + x[7]], &[-1.0, 0.3], 1e-14, "");
}

#[test]
fn events_at_one_time_act_in_the_order_of_the_file() {
    let corner = "
        coordinate q : R^2 = (-1, -1)
        momentum p of q = (1, 1)
        hamiltonian dot(p, p)/2
        impact right : q.x = 0 restitution 1
        impact top : q.y = 0 restitution 1";
    let duplicate = "
        coordinate q = -1
        momentum p of q = 1
        hamiltonian p^2/2
        impact first : q = 0 restitution 1
        impact second : q = 0 restitution 1";
    let cradle = "
        size n = 5
        coordinate x[i in 1..n] = if(i == 1, -1, i - 1)
        momentum p[i] of x = if(i == 1, 1, 0)
        hamiltonian sum(i in 1..n : p[i]^2)/2
        impact hit[i in 1..n-1] : x[i+1] - x[i] = 1 restitution 1";
    for method in ["", "--method stormer-verlet-a --step 0.05", "--method gauss4 --step 0.7"] {
        let run = finished(corner, &format!("--until 3 {method}"));
        assert_near(&run.state(), &[-2.0, -2.0, -1.0, -1.0], 1e-13, method);
        // The second finds it turned around, and leaves it.
        let run = finished(duplicate, &format!("--until 3 {method}"));
        assert_near(&run.state(), &[-2.0, -1.0], 1e-13, method);
        assert_eq!(table(&run, "second").t.len(), 0, "{method}");
        let run = finished(cradle, &format!("--until 3 {method}"));
        assert_near(&run.state()[5..], &[0.0, 0.0, 0.0, 0.0, 1.0], 1e-14, method);
        let members: Vec<i32> = table(&run, "hit").members.iter().map(|m| m[0]).collect();
        assert_eq!(members, [1, 2, 3, 4], "{method}");
    }
}

#[test]
fn a_start_at_zero_and_roots_of_even_order_are_none() {
    let text = "
        coordinate q = 1
        momentum p of q = 0
        hamiltonian p^2/2 + q^2/2
        event start : q = 1
        event touches : q = -1
        event twice : q = -0.9999
        event third : q = 0 every 3";
    let twice = [(-0.9999_f64).acos(), std::f64::consts::TAU - (-0.9999_f64).acos()];
    let adaptive = METHODS.into_iter().filter(|(method, _)| !method.contains("step"));
    for (method, _) in adaptive {
        let run = finished(text, &format!("--until 9 {method}"));
        assert!(table(&run, "start").t.is_empty(), "{method}");
        assert!(table(&run, "touches").t.is_empty(), "{method}");
        // Near its extremum the root moves by the root of an error.
        assert_near(&table(&run, "twice").t, &[twice[0], twice[1]], 1e-5, method);
        assert_eq!(table(&run, "third").number, [3], "{method}");
    }
}

#[test]
fn flows_and_their_derivatives_end_at_no_event() {
    let text = "
        coordinate q = 1
        momentum p of q = 0
        hamiltonian p^2/2 + q^2/2
        event turns : q = 0 falling : p -> -p";
    let options = options("--until 3 --method gauss4 --step 0.1");
    let mut flow = Flow::new(&text.parse().unwrap(), options.clone()).unwrap();
    let refused = flow.apply_with_derivative(&mut [1.0, 0.0]).err().unwrap().to_string();
    assert!(refused.contains("through no event"), "{refused}");
    let stops = text.replace("p -> -p", "stop");
    let mut flow = Flow::new(&stops.parse().unwrap(), options).unwrap();
    let refused = flow.apply(&mut [1.0, 0.0]).unwrap_err().to_string();
    assert!(refused.contains("an event stops it at t = 1.57"), "{refused}");
}

#[test]
fn rates_that_have_no_formula_are_done_without() {
    // Templated, where the rate of a momentum is known nowhere: each crossing counts once, also where
    // another event sets the state at its time.
    let text = "
        size n = 3000
        coordinate q[i in 1..n] = 1
        momentum p[i] of q = 0
        hamiltonian sum(i in 1..n : p[i]^2 + q[i]^2)/2
        event turns : p[1] = 0
        event zero : q[2] = 0
        event kick : q[3] = 0 falling : p[3] -> 1.5*p[3]";
    let run = finished(text, "--until 10 --method gauss8 --step 0.1");
    let pi = std::f64::consts::PI;
    assert_near(&table(&run, "turns").t, &[pi, 2.0 * pi, 3.0 * pi], 1e-9, "");
    assert_near(&table(&run, "zero").t, &[0.5 * pi, 1.5 * pi, 2.5 * pi], 1e-9, "");
    assert_near(&table(&run, "kick").t, &[0.5 * pi, 2.5 * pi], 1e-9, "");
}

#[test]
fn a_run_ends_at_an_event() {
    let text = "
        coordinate q = 1
        momentum p of q = 0
        hamiltonian p^2/2 + q^2/2
        event low : q = -0.5 falling : stop
        event zero : q = 0";
    for (method, tolerance) in METHODS {
        let run = finished(text, &format!("--until 30 {method}"));
        assert_eq!(run.summary.ended_by.as_deref(), Some("low"), "{method}");
        assert_near(&[run.summary.t], &[(-0.5_f64).acos()], tolerance, method);
        assert_near(&run.state()[..1], &[-0.5], 1e-14, method);
    }
    let ends = |name: &str, n: u64| RunOptions {
        until_event: Some((name.to_string(), n)),
        until: 30.0,
        ..RunOptions::default()
    };
    let free = text.replace(" : stop", "");
    let run = run(free.parse().unwrap(), ends("zero", 4)).unwrap();
    assert_near(&[run.summary.t], &[3.5 * std::f64::consts::PI], 1e-7, "");
    let unknown = prepare(free.parse::<Problem>().unwrap(), ends("one", 1)).err().unwrap();
    assert!(unknown.to_string().contains("'one', which the model does not have"), "{unknown}");
}

#[test]
fn impacts_that_accumulate_end_with_their_limit() {
    let text = "
        coordinate q = 1
        momentum p of q = 0
        hamiltonian p^2/2 + 9.81*q
        impact ground : q = 0 restitution 0.5";
    // t = √(2/g) (1 + 2 (e + e² + …)) = 3 √(2/g).
    let limit = 3.0 * (2.0_f64 / 9.81).sqrt();
    for (method, _) in METHODS {
        let message = failure(text, &format!("--until 5 {method}"));
        let found = message.split("limit at t = ").nth(1).unwrap().split(',').next().unwrap();
        assert_near(&[found.parse().unwrap()], &[limit], 1e-9, method);
    }
    let rests = failure(&text.replace("0.5", "0"), "--until 5");
    assert!(rests.contains("accumulates"), "{rests}");
}

#[test]
fn a_reset_sets_values_of_before_and_stays_on_the_set() {
    // Both are swapped, so each right side is that of before.
    let swap = "
        state x = 1
        state y = 3
        x' = 1
        y' = 0
        event swap : x = 2 rising : x -> y, y -> x";
    let run = finished(swap, "--until 2");
    assert_near(&run.state(), &[4.0, 2.0], 1e-13, "");
    let off = "
        coordinate q : R^2 = (1, 0)
        momentum p of q = (0, 1)
        hamiltonian dot(p, p)/2
        constraint rod : dot(q, q) = 1
        event away : q.x = 0 : q.x -> 0.1";
    let message = failure(off, "--until 5");
    assert!(message.contains("event 'away'") && message.contains("rod is 1.0e-2"), "{message}");
}

#[test]
fn a_stopped_run_goes_on_as_if_it_had_not_been_stopped() {
    let text = "
        coordinate q : R^2 = (0, 1)
        momentum p of q = (1, 0)
        hamiltonian dot(p, p)/2 + 9.81*q.y + q.x^2/2
        impact ground : q.y = 0 restitution 0.95
        event side : q.x = 0.3";
    // Long enough to be stopped, with so many samples: a run is asked every 20 milliseconds.
    for method in
        ["", "--method stormer-verlet-a --step 0.000002", "--method feedback:rk4 --step 0.00001"]
    {
        let options = options(&format!("--until 6 {method}"));
        let max_step = method.is_empty().then_some(1e-5);
        let options = RunOptions { max_step, samples: Some(60_001), ..options };
        let whole = run(text.parse().unwrap(), options.clone()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let out = Some(folder.path().join("run"));
        let mut stopped =
            prepare(text.parse::<Problem>().unwrap(), RunOptions { out, ..options }).unwrap();
        assert!(stopped.run(&mut |_| Control::Stop).unwrap().interrupted, "{method}");
        drop(stopped);
        let Resumed::Continues(mut rest) = Simulation::resume(folder.path().join("run")).unwrap()
        else {
            panic!("{method}: it has ended")
        };
        let summary = rest.run(&mut |_| Control::Continue).unwrap();
        assert_eq!(summary.state.numbers(), whole.state(), "{method}");
        assert_eq!(summary.events, whole.summary.events, "{method}");
    }
}

#[test]
fn an_extended_run_is_one_to_the_later_end() {
    let text = "
        coordinate q : R^2 = (0, 1)
        momentum p of q = (1, 0)
        hamiltonian dot(p, p)/2 + 9.81*q.y + q.x^2/2
        impact ground : q.y = 0 restitution 0.95
        event side : q.x = 0.3 every 2";
    // Ends before the first impact, within the step in which it is found, and in later ones.
    for method in ["", "--method corrected:gauss16", "--method stormer-verlet-a --step 0.0023"] {
        let whole = finished(text, &format!("--until 3 {method}"));
        for until in [0.1, 0.46, 1.7] {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("run");
            let options = options(&format!("--until {until} {method}"));
            let options = RunOptions { out: Some(out.clone()), ..options };
            stored(text, options);
            let summary =
                Simulation::extend(&out, 3.0).unwrap().run(&mut |_| Control::Continue).unwrap();
            assert_eq!(summary.state.numbers(), whole.state(), "{method}, {until}");
            assert_eq!(summary.events, whole.summary.events, "{method}, {until}");
        }
    }
}

#[test]
fn the_count_of_crossings_goes_on_from_another_run() {
    let text = "
        coordinate q = 0.1
        momentum p of q = 1
        hamiltonian p^2/2 + q^2/2
        event third : q = 0 every 3
        event zero : p = 0";
    // Zeros of q = 0.1 cos t + sin t at k π − a; the third is at 9.3, the sixth at 18.7.
    let a = 0.1f64.atan();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let first = RunOptions { out: Some(out.clone()), ..options("--until 11") };
    let pi = std::f64::consts::PI;
    assert_near(&stored(text, first).events[0].t, &[3.0 * pi - a], 1e-6, "first");
    let mut settings = Settings::default();
    settings.start_at(&out).unwrap();
    let start = |text: &str, until_event: Option<(String, u64)>| {
        let problem = Problem::from_text("model", text, &BTreeMap::new(), &settings).unwrap();
        run(problem, RunOptions { until_event, ..options("--until 20") }).unwrap()
    };
    let second = start(text, None);
    // Time begins anew: the model has none.
    let expected = [6.0, 9.0].map(|k| k * pi - a - 11.0);
    assert_near(&table(&second, "third").t, &expected, 1e-6, "second");
    assert_eq!(table(&second, "third").number, [6, 9]);
    assert!(!second.summary.warnings.iter().any(|warning| warning.contains("counted")));
    // Crossings that end a run are its own.
    let ended = start(text, Some(("zero".to_string(), 2))).summary.t;
    assert_near(&[ended], &[table(&second, "zero").t[1]], 1e-9, "ended");
    // An event that the first run did not have.
    let other = start(&text.replace("third", "fourth"), None);
    let said = |warning: &String| warning.contains("'fourth'") && warning.contains("counted");
    assert!(other.summary.warnings.iter().any(said), "{:?}", other.summary.warnings);
}

#[test]
fn an_ensemble_tells_which_events_ended_its_trajectories() {
    let text = "
        parameter a = 1
        coordinate q = 0
        momentum p of q = a
        hamiltonian p^2/2
        event far[i in 1..2] : q = i*sqrt(2) : stop
        event back : q = -1 : stop";
    let starts = [0.5, 1.0, 2.0, -2.0, 0.1, 0.0];
    for method in ["", "--method stormer-verlet-a --step 0.01"] {
        let sweep = SweepOptions {
            trajectories: starts.len() as u64,
            each: vec![("a".to_string(), starts.to_vec().into())],
            ..SweepOptions::default()
        };
        let with = options(&format!("--until 4 {method}"));
        let mut sweep = prepare_sweep(&text.parse().unwrap(), with, sweep).unwrap();
        let summary = sweep.solve().unwrap().summary;
        let [back, far] = &summary.ended[..] else { panic!("{:?}", summary.ended) };
        assert_eq!((&*back.event, back.trajectories), ("back", 1));
        assert_eq!((&*far.event, far.trajectories), ("far", 3));
        let root = 2f64.sqrt();
        let times = [back.first, back.last, far.first, far.last];
        assert_near(&times, &[0.5, 0.5, root / 2.0, 2.0 * root], 1e-9, method);
        assert_eq!(summary.reached(), 2);
    }
}

#[test]
fn trajectories_of_an_ensemble_are_those_of_runs_by_themselves() {
    // Lanes make the steps up to the first in which an event may lie. Some trajectories never reach
    // the stop, some start beyond it, and one starts at a zero.
    let text = "
        parameter a = 1
        coordinate r : R^2 = (sin(a), -cos(a))
        momentum p of r
        hamiltonian dot(p, p)/2 + 9.81*r.y + KINK
        constraint rod : dot(r, r) = 1
        event side : r.x = 0.1 rising
        event third : p.x = 0.3 every 3
        event left : r.x = -0.9 : stop";
    let starts = [0.05, 0.3, 0.6, 0.9, 1.0, 1.2, 1.5, 2.0, 2.5, -1.0, 0.1f64.asin()];
    // Lanes land on the switching surface of a kink, as runs do. The equations of an implicit step are
    // solved to 1e-13 of their terms, in either way.
    for (method, kink, apart) in [
        ("", "0", 0.0),
        ("", "2*max(r.x - 0.4, 0)", 0.0),
        ("--method plain:dop853", "2*max(r.x - 0.4, 0)", 0.0),
        ("--method corrected:gauss16", "0", 0.0),
        ("--method taylor", "0", 0.0),
        ("--method rattle --step 0.01", "0", 1e-10),
        ("--method rattle --step 0.01", "2*max(r.x - 0.4, 0)", 1e-10),
        ("--method corrected:rk4 --step 0.01", "0", 0.0),
        ("--method feedback:rk4 --step 0.01 --gain 0.5", "0", 0.0),
        ("--method gauss8 --step 0.02", "0", 1e-10),
    ] {
        let text = text.replace("KINK", kink);
        let with = RunOptions { samples: Some(7), ..options(&format!("--until 6 {method}")) };
        let sweep = SweepOptions {
            trajectories: starts.len() as u64,
            each: vec![("a".to_string(), starts.to_vec().into())],
            ..SweepOptions::default()
        };
        let problem: Problem = text.parse().unwrap();
        let all = prepare_sweep(&problem, with.clone(), sweep).unwrap().solve().unwrap().arrays;
        let mut stopped = 0;
        for (k, a) in starts.iter().enumerate() {
            let own = text.replace("a = 1", &format!("a = {a:?}"));
            let alone = run(own.parse().unwrap(), with.clone()).unwrap();
            let with = format!("{method}, V = {kink}, a = {a}");
            for name in ["r", "p"] {
                let (of_all, of_run) =
                    (&all[name].values()[14 * k..14 * (k + 1)], alone.array(name));
                let of_run: Vec<f64> = of_run.concat();
                assert_near(&of_all[..of_run.len()], &of_run, apart, &with);
                assert!(of_all[of_run.len()..].iter().all(|x| x.is_nan()), "{name}, {with}");
            }
            assert_eq!(all["steps"].values()[k], alone.summary.steps as f64, "{with}");
            assert_near(&all["end"].values()[k..=k], &[alone.summary.t], apart, &with);
            for EventTable { name, t, .. } in &alone.summary.events {
                let of = |ending: &str| all[&*format!("events.{name}.{ending}")].values()[k];
                assert_eq!(of("count"), t.len() as f64, "{name}, {with}");
                if let (Some(&first), Some(&last)) = (t.first(), t.last()) {
                    assert_near(&[of("first"), of("last")], &[first, last], apart, &with);
                }
            }
            stopped += table(&alone, "left").t.len();
        }
        assert!((3..starts.len()).contains(&stopped), "{method}: {stopped} of them end early");
    }
}

#[test]
fn impacts_in_models_that_are_templated() {
    // A chain of rods falls flat on the ground: every mass meets it at t = 1 with the velocity −1.
    let chain = "
        size n = 400
        coordinate r[i in 1..n] : R^2 = (i, 0.5)
        momentum p of r
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)
        constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 1
        impact ground[i in 1..n] : r[i].y = 0 restitution 0.5 friction 0.1";
    for method in ["", "--method rattle --step 0.01"] {
        let found = finished(chain, &format!("--until 1.5 {method}"));
        let state = found.state();
        for (i, (r, p)) in state[..800].chunks(2).zip(state[800..].chunks(2)).enumerate() {
            // Up to the rounding of a place of 400 links.
            assert_near(r, &[i as f64 + 1.0, 0.125], 1e-12, method);
            assert_near(p, &[0.0, 0.0], 1e-12, method);
        }
        assert_eq!(table(&found, "ground").t.len(), 400, "{method}");
        // One search for all: a search has some ten parts of a step, of a dozen evaluations.
        assert!(found.summary.cost.field < 400, "{method}: {:?}", found.summary.cost);
        for drift in &found.summary.drift {
            assert!(drift.max < 1e-10, "{method}: {drift:?}");
        }
    }
    // A field of 16 000 operations; resets and impacts do the same. The correction of an energy of 4000
    // bodies makes places uncertain by more than their own rounding.
    let string = "
        size n = 4000
        coordinate r[i in 1..n] : R^2 = (i, 0.5 + 0.1*sin(i))
        momentum p of r
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y) +
            sum(i in 2..n : dot(r[i] - r[i-1], r[i] - r[i-1])/2)\n";
    for method in ["", "--method plain:dop853"] {
        let by =
            |event: &str| finished(&format!("{string}{event}"), &format!("--until 1.5 {method}"));
        let impact = by("impact b[i in 1..9] : r[i].y = 0 restitution 0.5");
        let reset = by("event b[i in 1..9] : r[i].y = 0 : p[i].y -> -0.5*p[i].y");
        assert_eq!(table(&impact, "b").t.len(), 9, "{method}");
        assert_eq!(table(&reset, "b").t.len(), 9, "{method}");
        // Roundings of times, with the speeds of impacts.
        assert_near(&impact.state(), &reset.state(), 1e-10, "impact and reset");
    }
}

#[test]
fn points_in_a_box_meet_its_walls_one_after_the_other() {
    let text = "
        size n = 100
        coordinate r[i in 1..n] : R^2 = (0.5 + 0.4*sin(i), 0.5 + 0.4*cos(3*i))
        momentum p of r = (cos(5*i), sin(7*i))
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/2)
        impact left[i in 1..n] : r[i].x = 0 restitution 1
        impact right[i in 1..n] : 1 - r[i].x = 0 restitution 1
        impact low[i in 1..n] : r[i].y = 0 restitution 1
        impact high[i in 1..n] : 1 - r[i].y = 0 restitution 1";
    let found = finished(text, "--until 2");
    let (state, start) = (found.state(), text.parse::<Problem>().unwrap().model.initial.clone());
    let mut crossings = 0.0;
    let folded: Vec<f64> = (0..200)
        .map(|k| {
            let unfolded: f64 = start[k] + 2.0 * start[200 + k];
            crossings += unfolded.floor().abs();
            1.0 - (unfolded.rem_euclid(2.0) - 1.0).abs()
        })
        .collect();
    assert_near(&state[..200], &folded, 1e-12, "folded");
    let met: usize = found.summary.events.iter().map(|table| table.t.len()).sum();
    assert_eq!(met as f64, crossings);
    // Only what seems to come first is located: a search of some ten parts of a step, a dozen
    // evaluations each.
    let evaluations = found.summary.cost.field as usize;
    assert!(evaluations < 200 * met, "{evaluations} evaluations for {met} impacts");
}

#[test]
fn what_rolls_is_turned_around_along_its_track() {
    // A skate moves with v = u (cos a, sin a). A smooth wall at an angle to its track cannot turn the
    // blade: u becomes −u, and the turn of the blade stays.
    let text = "
        coordinate r : R^2 = (0, 0)
        coordinate a = 0.5
        momentum p of r = (6*cos(0.5), 6*sin(0.5))
        momentum l of a = 0.04
        hamiltonian dot(p, p)/6 + l^2/0.2
        rolling blade : sin(a)*r'.x = cos(a)*r'.y
        impact wall : 1 - r.x = 0 restitution 1";
    // 5 (sin(0.5 + 0.4 t) − sin 0.5) = 1.
    let hit = ((0.5f64.sin() + 0.2).asin() - 0.5) / 0.4;
    let at = |t: f64| (0.5 + 0.4 * t).sin_cos();
    let ((s0, c0), (s1, c1), (s2, c2)) = (at(0.0), at(hit), at(1.5));
    let expected = [5.0 * (2.0 * s1 - s0 - s2), 5.0 * (c0 + c2 - 2.0 * c1), 1.1];
    for (method, tolerance) in [
        ("--rtol 1e-12", 1e-10),
        ("--method plain:gauss16 --rtol 1e-12", 1e-10),
        ("--method nonholonomic-leapfrog --step 0.0005", 1e-6),
        ("--method dla --step 0.0005", 1e-6),
    ] {
        let found = finished(text, &format!("--until 1.5 --samples 2 {method}"));
        assert_near(&table(&found, "wall").t, &[hit], tolerance, method);
        assert_near(&found.state()[..3], &expected, tolerance, method);
    }
    let slow = text.replace("restitution 1", "restitution 0.5");
    let found = finished(&slow, "--rtol 1e-12 --until 1.5 --samples 2");
    // u becomes −u/2, and the energy of the turn stays.
    let [px, py] = [found.state()[3], found.state()[4]];
    assert_near(&[px.hypot(py)], &[3.0], 1e-10, "restitution 1/2");
    assert_near(&[found.state()[5]], &[0.04], 1e-12, "restitution 1/2");
}
