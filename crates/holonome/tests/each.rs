//! Values that are given as numbers for each trajectory: what `--set` gives in a run of its own,
//! bit for bit, for every kind of value and for small and large models.

use holonome::store::StoredRun;
use holonome::sweep::merge;
use holonome::{
    Arrays, Control, Error, Problem, Resumed, RunOptions, Settings, StepSize, Sweep, SweepOptions,
    prepare, prepare_sweep,
};
use std::fs;
use std::sync::Arc;

/// A parameter with a value that follows from another; a family; an initial momentum as a velocity.
const SPRINGS: &str = "
    size n = 3
    parameter k = 1
    parameter k2 = 2*k
    parameter m[i in 1..n] = 1 + 0.1*i
    coordinate q[i in 1..n] : R^2 = (0.5*i + 0.01*k2, 0)
    velocity v[i] of q = (0, 0.1*i)
    hamiltonian sum(i in 1..n : dot(p_q[i], p_q[i])/(2*m[i]) + k*dot(q[i], q[i])/2 + k2*q[i].x^4/40)
";

/// A chain of links whose number decides whether it is unrolled.
fn chain(links: usize) -> String {
    format!(
        "size n = {links}
         parameter g = 1
         coordinate q[i in 1..n] : R^2 = (i, 0)
         momentum p[i] of q = (0, 0)
         hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + g*q[i].y)
         constraint first : dot(q[1], q[1]) = 1
         constraint link[i in 2..n] : dot(q[i] - q[i-1], q[i] - q[i-1]) = 1
"
    )
}

fn each(values: &[(&str, &[f64])]) -> Vec<(String, Arc<[f64]>)> {
    values.iter().map(|(name, numbers)| (name.to_string(), Arc::from(*numbers))).collect()
}

fn run_options(method: &str, step: Option<f64>) -> RunOptions {
    let (method, step) = (method.parse().unwrap(), StepSize::from(step));
    RunOptions { method, step, until: 2.0, samples: Some(5), ..RunOptions::default() }
}

fn sweep_of(text: &str, run: RunOptions, each: Vec<(String, Arc<[f64]>)>) -> Result<Sweep, Error> {
    let trajectories = 3;
    let sweep = SweepOptions { trajectories, each, ..SweepOptions::default() };
    prepare_sweep(&text.parse()?, run, sweep)
}

fn with(text: &str, set: &[(&str, &str)]) -> Problem {
    let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let settings = Settings { set, ..Settings::default() };
    Problem::from_text("model", text, &Default::default(), &settings).unwrap()
}

/// Demand that every array of trajectory `k` equals that of a run of `problem`, up to `apart`.
#[track_caller]
fn same(
    (ensemble, k): (&Arrays, usize),
    (problem, run): (Problem, RunOptions),
    names: &[&str],
    apart: f64,
) {
    let alone = prepare(problem, run).unwrap().solve().unwrap();
    for name in names {
        let (all, own) = (&ensemble[name], alone[name].values());
        let width = own.len();
        for (number, own) in all.values()[k * width..][..width].iter().zip(own) {
            assert!((number - own).abs() <= apart, "{name} of trajectory {k}: {number} and {own}");
        }
    }
}

#[test]
fn given_numbers_are_those_that_set_gives() {
    // Iterations of `gauss4` end within 1e-13 of the terms, in either way.
    for (method, step, apart) in [
        ("corrected:dop853", None, 0.0),
        ("rk4", Some(0.01), 0.0),
        ("gauss4", Some(0.02), 1e-11),
        ("taylor", None, 0.0),
    ] {
        let values = each(&[
            ("k", &[1.5, 0.25, 3.0]),
            // A member, a component, and an initial velocity.
            ("m[2]", &[5.0, 6.0, 7.0]),
            ("q[3].y", &[0.1, 0.2, 0.3]),
            ("v[1]", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ]);
        let run = run_options(method, step);
        let solution = sweep_of(SPRINGS, run.clone(), values).unwrap().solve().unwrap();
        let rows =
            [("1.5", "5", "0.1", (1, 2)), ("0.25", "6", "0.2", (3, 4)), ("3", "7", "0.3", (5, 6))];
        for (k, (stiffness, mass, y, (vx, vy))) in rows.into_iter().enumerate() {
            let text = SPRINGS
                .replace("= 1 + 0.1*i", &format!("= if(i == 2, {mass}, 1 + 0.1*i)"))
                .replace("0.01*k2, 0)", &format!("0.01*k2, if(i == 3, {y}, 0))"))
                .replace("(0, 0.1*i)", &format!("(if(i == 1, {vx}, 0), if(i == 1, {vy}, 0.1*i))"));
            let problem = with(&text, &[("k", stiffness)]);
            same((&solution.arrays, k), (problem, run.clone()), &["q", "p_q", "H"], apart);
        }
        assert_eq!(solution["k"].values(), [1.5, 0.25, 3.0]);
        assert_eq!(solution["k2"].values(), [3.0, 0.5, 6.0], "what follows from a given value");
    }
}

#[test]
fn small_and_large_models_take_them() {
    // The loop of an ensemble iterates for multipliers as often as all its trajectories need, and
    // that of a run as often as it needs: they differ by the residual, 1e-13 of the terms, which
    // 400 steps of a hanging chain carry on but do not multiply.
    for (links, method, step, apart) in [
        (2, "rattle", Some(0.01), 1e-10),
        (2, "corrected:dop853", None, 0.0),
        (300, "rattle", Some(0.005), 1e-10),
    ] {
        let run = run_options(method, step);
        let text = chain(links);
        // A start on the constraint set: a straight chain, in three directions.
        let angles: [f64; 3] = [-1.5, -1.3, -1.7];
        let place: Vec<f64> = (angles.iter())
            .flat_map(|angle| {
                (1..=links).flat_map(move |i| [angle.cos() * i as f64, angle.sin() * i as f64])
            })
            .collect();
        let values = each(&[("q", &place), ("g", &[1.0, 2.0, 3.0])]);
        let solution = sweep_of(&text, run.clone(), values).unwrap().solve().unwrap();
        for (k, angle) in angles.iter().enumerate() {
            let (cos, sin) = (format!("{:?}", angle.cos()), format!("{:?}", angle.sin()));
            let turned = text.replace("= (i, 0)", &format!("= ({cos}*i, {sin}*i)"));
            let problem = with(&turned, &[("g", &format!("{}", k + 1))]);
            same((&solution.arrays, k), (problem, run.clone()), &["q", "p"], apart);
        }
    }
}

#[test]
fn an_ensemble_of_given_values_is_resumed_and_merged() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let values = each(&[("k", &[1.0, 2.0, 3.0]), ("q[1].x", &[0.5, 0.6, 0.7])]);
    let problem: Problem = SPRINGS.parse().unwrap();
    let options = |name: &str, shard| {
        let run = RunOptions { out: Some(path(name)), ..run_options("corrected:dop853", None) };
        (
            run,
            SweepOptions {
                trajectories: 3,
                each: values.clone(),
                shard,
                ..SweepOptions::default()
            },
        )
    };
    let prepared = |name: &str, shard| {
        let (run, sweep) = options(name, shard);
        prepare_sweep(&problem, run, sweep).unwrap()
    };
    prepared("whole", None).run(&mut |_| Control::Continue).unwrap();
    let stopped = prepared("stopped", None).run(&mut |_| Control::Stop).unwrap();
    assert!(stopped.interrupted || stopped.trajectories == 3);
    match Sweep::resume(path("stopped")).unwrap().unwrap() {
        Resumed::Continues(mut rest) => {
            rest.run(&mut |_| Control::Continue).unwrap();
        }
        Resumed::Finished { .. } => {}
    }
    for k in 1..=3 {
        prepared(&format!("part-{k}"), Some((k, 3))).run(&mut |_| Control::Continue).unwrap();
    }
    let parts: Vec<_> = (1..=3).map(|k| path(&format!("part-{k}"))).collect();
    merge(path("merged"), &parts).unwrap();
    let read = |name: &str| {
        let run = StoredRun::open(path(name)).unwrap();
        ["q", "p_q", "k", "steps"].map(|array| run.read(array).unwrap())
    };
    let whole = read("whole");
    assert_eq!(whole[2], [1.0, 2.0, 3.0]);
    assert_eq!([read("stopped"), read("merged")], [whole.clone(), whole]);

    // Parts of an ensemble with other numbers do not belong to it.
    let (run, sweep) = options("other", Some((3, 3)));
    let other = each(&[("k", &[1.0, 2.0, 4.0]), ("q[1].x", &[0.5, 0.6, 0.7])]);
    let sweep = SweepOptions { each: other, ..sweep };
    prepare_sweep(&problem, run, sweep).unwrap().run(&mut |_| Control::Continue).unwrap();
    let mixed = [path("part-1"), path("part-2"), path("other")];
    let error = merge(path("mixed"), &mixed).unwrap_err().to_string();
    assert!(error.contains("different ensembles"), "{error}");

    // Damage is found where the numbers are read.
    let file = path("part-1").join(".holonome/values.bin");
    let mut bytes = fs::read(&file).unwrap();
    assert_eq!(bytes.len(), 6 * 8 + 4);
    bytes[3] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let error = merge(path("damaged"), &parts).unwrap_err().to_string();
    assert!(error.contains("values.bin") && error.contains("checksum"), "{error}");
}

#[test]
fn what_cannot_be_given_is_named() {
    let run = || run_options("corrected:dop853", None);
    let refused = |values: &[(&str, &[f64])]| match sweep_of(SPRINGS, run(), each(values)) {
        Err(Error::Model { diagnostics, .. }) => {
            diagnostics.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; ")
        }
        Err(error) => error.to_string(),
        Ok(_) => panic!("{values:?} is taken"),
    };
    let rows: [f64; 3] = [1.0, 2.0, 3.0];
    for (values, part) in [
        (&[("kk", &rows[..])][..], "cannot give 'kk': no parameter or initial value has this name"),
        (&[("n", &rows[..])], "cannot vary 'n': it is a size"),
        (&[("q[4]", &rows[..])], "'q' has no member or component '[4]'"),
        (&[("q[1].z", &rows[..])], "'q' has no member or component '[1].z'"),
        (&[("q", &rows[..])], "'q' has 6 numbers, and 1 are given"),
        (&[("k", &rows[..2])], "2 numbers are not the same number for each of 3 trajectories"),
        (&[("k", &rows[..0])], "'k' has 1 numbers, and 0 are given"),
        (&[("m[2]", &rows[..]), ("m[2]", &rows[..])], "numbers of 'm' are given twice"),
        (&[("k", &[f64::NAN, 1.0, 1.0])], "'k' is NaN"),
    ] {
        let message = refused(values);
        assert!(message.contains(part), "{values:?}: {message}");
    }
    // A later trajectory fails where it starts.
    let mut ensemble = sweep_of(SPRINGS, run(), each(&[("k", &[1.0, f64::NAN, 1.0])])).unwrap();
    let error = ensemble.solve().unwrap_err().to_string();
    assert!(error.contains("trajectory 1: parameter 'k' is NaN"), "{error}");
    // A start off the constraint set is refused as any other.
    let off = each(&[("q[1].x", &[1.0, 1.5, 1.0])]);
    let mut ensemble = sweep_of(&chain(2), run(), off).unwrap();
    let error = ensemble.solve().unwrap_err().to_string();
    assert!(error.contains("trajectory 1 does not meet"), "{error}");
}
