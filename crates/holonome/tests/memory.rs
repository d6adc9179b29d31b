//! Results in memory: the numbers of a stored run, bit for bit, for runs and ensembles alike.

mod common;

use common::*;
use holonome::{
    Arrays, Control, Error, Problem, Resumed, RunOptions, Simulation, Solution, SweepOptions,
    open_run, prepare, prepare_sweep,
};
use serde_json::json;
use std::path::Path;

/// Check that all arrays are the same, bit for bit.
fn same(a: &Arrays, b: &Arrays) {
    let bits = |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(a.names().collect::<Vec<_>>(), b.names().collect::<Vec<_>>());
    assert_eq!((bits(a.times()), a.trajectories()), (bits(b.times()), b.trajectories()));
    for name in a.names() {
        let (a, b) = (&a[name], &b[name]);
        assert_eq!(
            (a.shape(), a.dimensions(), a.description()),
            (b.shape(), b.dimensions(), b.description()),
            "{name}"
        );
        assert_eq!(bits(a.values()), bits(b.values()), "{name}");
        assert_eq!(a.values().len(), a.shape().iter().product::<usize>(), "{name}");
    }
}

fn stored(options: &RunOptions, out: &Path) -> RunOptions {
    RunOptions { out: Some(out.to_path_buf()), ..options.clone() }
}

#[test]
fn a_run_in_memory_has_the_numbers_of_one_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        // One that chooses its samples at the end; one that monitors drifts; one that records every
        // step; one with multipliers; a templated model.
        ("spherical-pendulum", "--method corrected:dop853 --until 5"),
        ("kepler", "--method dop853 --until 20 --samples 37"),
        ("spherical-pendulum", "--method corrected:rk4 --step 0.01 --until 3 --samples 301"),
        ("spherical-pendulum", "--method rattle --step 0.01 --until 3 --samples 61"),
        ("chain", "--method rattle --step 0.001 --until 0.05 --samples 6"),
    ];
    for (k, (name, text)) in cases.into_iter().enumerate() {
        let (problem, options) = (model(name, &[]), options(text));
        let mut simulation = prepare(problem.clone(), options.clone()).unwrap();
        let solution = simulation.solve().unwrap();
        let out = folder.path().join(k.to_string());
        let summary = prepare(problem, stored(&options, &out))
            .unwrap()
            .run(&mut |_| Control::Continue)
            .unwrap();
        same(&solution.arrays, &Arrays::open(&out).unwrap());
        let later = folder.path().join(format!("{k}-later"));
        simulation.store(&solution, &later).unwrap();
        let [run, later] = [out, later].map(|path| open_run(path).unwrap());
        same(&Arrays::open(run.path()).unwrap(), &Arrays::open(later.path()).unwrap());
        assert_eq!(run.attributes().get("options"), later.attributes().get("options"));
        assert!(matches!(Simulation::resume(later.path()).unwrap(), Resumed::Finished { .. }));
        assert_eq!(solution.summary.out, None);
        let told = |summary: &holonome::Summary| {
            let mut all = json!(summary);
            all["cost"]["wall_seconds"] = 0.into();
            all.as_object_mut().unwrap().remove("out");
            all
        };
        assert_eq!(told(&solution.summary), told(&summary), "{name} {text}");
        // Every call begins at the start.
        same(&simulation.solve().unwrap().arrays, &solution.arrays);
    }
}

#[test]
fn arrays_have_the_shapes_of_the_model() {
    let set = [("n", "5")];
    let Solution { arrays, .. } = prepare(
        model("chain", &set),
        options("--method rattle --step 0.01 --until 0.1 --samples 6"),
    )
    .unwrap()
    .solve()
    .unwrap();
    let q = &arrays["r"];
    assert_eq!((q.shape()[0], arrays.times().len()), (6, 6));
    assert!(
        q.shape()[1..].contains(&5) && q.dimensions()[0] == "time",
        "{:?} {:?}",
        q.shape(),
        q.dimensions()
    );
    assert_eq!(
        (q.rows().len(), q.row(5), q.last().len()),
        (6, q.last(), q.shape()[1..].iter().product())
    );
    assert!(arrays.get("x").is_none());
}

#[test]
fn an_ensemble_in_memory_has_the_numbers_of_one_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    for (k, (text, shard)) in [
        ("--method corrected:rk4 --step 0.01 --until 1 --samples 11", None),
        ("--method corrected:dop853 --until 2", Some((2, 3))),
        ("--method rattle --step 0.01 --until 0.5", None),
    ]
    .into_iter()
    .enumerate()
    {
        let problem = model("spherical-pendulum", &[]);
        let sweep = SweepOptions {
            trajectories: 40,
            vary: vec![("g".into(), "9+i/N".into())],
            shard,
            ..SweepOptions::default()
        };
        let mut ensemble = prepare_sweep(&problem, options(text), sweep.clone()).unwrap();
        let solution = ensemble.solve().unwrap();
        let out = folder.path().join(k.to_string());
        prepare_sweep(&problem, stored(&options(text), &out), sweep)
            .unwrap()
            .run(&mut |_| Control::Continue)
            .unwrap();
        same(&solution.arrays, &Arrays::open(&out).unwrap());
        let count = if shard.is_some() { 13 } else { 40 };
        assert_eq!(
            (solution["g"].shape(), solution.summary.trajectories),
            (&[count as usize][..], count)
        );
        same(&ensemble.solve().unwrap().arrays, &solution.arrays);
    }
}

#[test]
fn a_failed_run_gives_what_it_had() {
    let wall = "coordinate q : R = 0\nmomentum p of q = 1\nhamiltonian p^2/2 + sqrt(1.5 - q)";
    let problem =
        holonome::Problem::from_text("fall", wall, &Default::default(), &Default::default())
            .unwrap();
    let mut fall =
        prepare(problem, options("--method rk4 --step 0.01 --until 5 --samples 501")).unwrap();
    let error = fall.solve().unwrap_err();
    let Error::Failed { kept: Some(kept), samples, out: None, .. } = &error else {
        panic!("{error}")
    };
    assert!(
        *samples > 50 && kept.times().len() == *samples && kept["q"].shape() == [*samples],
        "{samples} {error}"
    );
    let summary = fall.failed().unwrap();
    let drift = summary.drift.iter().find(|drift| drift.name == "H").unwrap();
    assert!(summary.interrupted && summary.t < 1.5 && drift.max > 0.0 && fall.failed().is_none());
}

#[test]
fn a_stopped_run_gives_what_it_had() {
    let text = "--method corrected:rk4 --step 0.001 --until 1000 --samples 100001";
    let mut simulation = prepare(model("spherical-pendulum", &[]), options(text)).unwrap();
    let solution = simulation.solve_while(&mut |_| Control::Stop).unwrap();
    let t = solution.summary.t;
    assert!(solution.summary.interrupted && t < 1000.0);
    let kept = solution.times();
    assert!(
        !kept.is_empty() && *kept.last().unwrap() <= t && kept.len() == solution["q"].shape()[0]
    );
}

#[test]
fn what_memory_does_not_hold_is_refused_with_a_remedy() {
    // 10⁶ samples of a chain of 30 000 links: some terabytes.
    let text = "--method rattle --step 1e-6 --until 1 --samples 1000001";
    let problem = model("chain", &[("n", "30000")]);
    let error = prepare(problem, options(text)).unwrap().solve().unwrap_err().to_string();
    assert!(
        error.contains("TB of memory") && error.contains("folder") && error.contains("record"),
        "{error}"
    );
}

#[test]
fn a_run_that_began_in_a_folder_goes_on_there() {
    let folder = tempfile::tempdir().unwrap();
    let options = stored(
        &options("--method corrected:rk4 --step 0.01 --until 1"),
        &folder.path().join("run"),
    );
    let mut simulation = prepare(model("spherical-pendulum", &[]), options).unwrap();
    simulation.run(&mut |_| Control::Continue).unwrap();
    let error = simulation.solve().unwrap_err().to_string();
    assert!(error.contains("in a folder"), "{error}");
}

#[test]
fn a_stopped_run_goes_on_in_its_folder_and_a_finished_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let of_options = || options("--method corrected:rk4 --step 0.001 --until 300 --samples 3001");
    let mut simulation =
        prepare(model("spherical-pendulum", &[]), stored(&of_options(), &path)).unwrap();
    let mut stops = 0;
    while simulation.run(&mut |_| Control::Stop).unwrap().interrupted {
        stops += 1;
    }
    assert!(stops > 0);
    let whole = prepare(model("spherical-pendulum", &[]), of_options()).unwrap().solve().unwrap();
    same(&whole.arrays, &Arrays::open(&path).unwrap());
    let error = simulation.run(&mut |_| Control::Continue).unwrap_err().to_string();
    assert!(
        error.contains("this run has finished in") && error.contains("prepare the problem anew"),
        "{error}"
    );
    same(&whole.arrays, &Arrays::open(&path).unwrap());
}

#[test]
fn a_failed_run_is_resumed_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let wall = "coordinate q : R = 0\nmomentum p of q = 1\nhamiltonian p^2/2 + sqrt(1.5 - q)";
    let options =
        stored(&options("--method rk4 --step 0.01 --until 5"), &folder.path().join("run"));
    let mut simulation = prepare(wall.parse().unwrap(), options).unwrap();
    simulation.run(&mut |_| Control::Continue).unwrap_err();
    let error = simulation.run(&mut |_| Control::Continue).unwrap_err().to_string();
    assert!(error.contains("this run has failed in") && error.contains("resume"), "{error}");
}

/// What a `main` that returns the error prints, and what tests print of results.
#[test]
fn errors_and_arrays_show_what_a_reader_needs() {
    let error = "coordinate q : R = 1\nmomentum p of q = 0\nhamiltonian p^2 + r + s\n"
        .parse::<Problem>()
        .err()
        .expect("two mistakes");
    let lines: Vec<String> = error.to_string().lines().map(str::to_string).collect();
    assert_eq!(lines.len(), 2, "{error}");
    for (line, name) in lines.iter().zip(["'r'", "'s'"]) {
        assert!(
            line.starts_with("model.holo:3:") && line.contains(name) && line.contains("; "),
            "{line}"
        );
    }
    let shown = format!("{error:?}");
    assert!(
        shown.contains("hamiltonian p^2 + r + s")
            && shown.contains("help")
            && !shown.contains("Diagnostic"),
        "{shown}"
    );

    let options = options("--method rk4 --step 0.01 --until 1 --samples 101");
    let solution = prepare(model("spherical-pendulum", &[]), options).unwrap().solve().unwrap();
    let shown = format!("{:?}", solution.arrays);
    assert!(
        shown.starts_with("101 rows of [q (time, ")
            && shown.contains("[101, 3]")
            && shown.len() < 1000,
        "{shown}"
    );
}

#[test]
fn members_and_components_are_recorded_by_name() {
    let text = "--method rattle --step 0.001 --until 0.05 --samples 6";
    let all = prepare(model("chain", &[]), options(text)).unwrap().solve().unwrap();
    let names = ["r[2]", "r[3].y", "lambda.link[2]", "p", "p[1].x"].map(String::from);
    let only = RunOptions { record: Some(names.to_vec()), ..options(text) };
    let some = prepare(model("chain", &[]), only).unwrap().solve().unwrap();
    assert_eq!(some.arrays.names().count(), names.len());
    let width = all["r"].row(0).len() / all["r"].shape()[1];
    for row in 0..all.times().len() {
        let (r, part) = (all["r"].row(row), some["r[2]"].row(row));
        assert_eq!(part, &r[width..2 * width]);
        assert_eq!(some["r[3].y"].row(row), &r[2 * width + 1..2 * width + 2]);
        assert_eq!(some["p[1].x"].row(row), &all["p"].row(row)[..1]);
        assert_eq!(some["lambda.link[2]"].row(row), &all["lambda.link"].row(row)[..1]);
    }
    let other = RunOptions { record: Some(vec!["r[99]".to_string()]), ..options(text) };
    let error = prepare(model("chain", &[]), other).err().unwrap().to_string();
    assert!(error.contains("'r[99]'"), "{error}");
}
