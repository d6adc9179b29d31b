//! Ensembles: a trajectory equals a run of its own, bit for bit, for any lanes, threads and parts;
//! an interrupted ensemble is resumed; a failed trajectory affects no other.

mod common;

use common::*;
use holonome::store::{Status, StoredRun};
use holonome::{
    Arrays, Control, Error, Resumed, RunOptions, Settings, StepSize, Sweep, SweepOptions, prepare,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PENDULUM: &str = "models/spherical-pendulum.holo";

fn options(method: &str, step: Option<f64>, until: f64, out: &Path) -> RunOptions {
    RunOptions {
        method: method.parse().unwrap(),
        step: step.into(),
        until,
        out: Some(out.to_path_buf()),
        ..RunOptions::default()
    }
}

fn sweep(
    model: &str,
    run: RunOptions,
    trajectories: u64,
    vary: &[(&str, &str)],
    shard: Option<(u64, u64)>,
) -> Sweep {
    let vary = vary.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let options = SweepOptions { trajectories, vary, shard, ..SweepOptions::default() };
    Sweep::load(repository().join(model), &Settings::default(), run, options).unwrap()
}

fn go_on(_: &holonome::SweepProgress) -> Control {
    Control::Continue
}

/// Every chunk of every array, by path.
fn chunks(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for array in fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir() && !path.ends_with(".holonome"))
    {
        for file in fs::read_dir(&array).unwrap().map(|entry| entry.unwrap().path()) {
            found
                .insert(file.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&file).unwrap());
        }
    }
    assert!(found.len() > 10);
    found
}

#[test]
fn a_trajectory_is_what_a_run_gives() {
    let folder = tempfile::tempdir().unwrap();
    // In lanes: with equal steps, with adaptive ones (with and without FSAL, with one sample or
    // several within a step), with projections that converge within the iterations of the loop and
    // with others. One by one: because of a projection around the step, of a shorter last step.
    for (k, (method, step, samples)) in [
        ("plain:rk4", Some(0.01), 5),
        ("feedback:heun", Some(0.01), 2),
        ("corrected:rk4", Some(0.01), 3),
        ("plain:dop853", None, 2),
        ("feedback:tsit5", None, 2),
        ("corrected:bs3", None, 2),
        ("projection:rk4", Some(0.05), 2),
        ("projection:rk4", Some(0.5), 2),
        ("projection:euler", Some(0.02), 3),
        ("projection:dop853", None, 2),
        ("projection:tsit5", None, 2),
        ("symmetric-projection:rk4", Some(0.05), 2),
        ("taylor", Some(0.25), 2),
        ("corrected:taylor", Some(0.25), 2),
        ("corrected:taylor", None, 2),
        ("projection:taylor", None, 2),
        ("corrected:dop853", None, 9),
        ("plain:dop853", None, 61),
        ("feedback:tsit5", None, 5),
        ("corrected:bs3", None, 4),
        ("projection:dop853", None, 33),
        ("projection:tsit5", None, 9),
        ("corrected:dopri5", None, 200),
        ("taylor", None, 5),
        ("corrected:taylor", None, 40),
        ("projection:taylor", None, 9),
        ("plain:rk4", Some(0.3), 2),
    ]
    .into_iter()
    .enumerate()
    {
        let out = folder.path().join(format!("sweep-{k}"));
        let run = RunOptions { samples: Some(samples), ..options(method, step, 2.0, &out) };
        let mut ensemble =
            sweep(PENDULUM, run.clone(), 11, &[("m", "1+0.1*i"), ("g", "1+0.01*i*i")], None);
        let summary = ensemble.run(&mut go_on).unwrap();
        assert_eq!((summary.trajectories, summary.failed), (11, 0));
        let stored = StoredRun::open(&out).unwrap();
        assert_eq!(stored.status(), Status::Finished);
        let [q, p, steps, cost, drift, g] =
            ["q", "p", "steps", "field_evaluations", "drift_H", "g"]
                .map(|array| stored.read(array).unwrap());
        for i in [0usize, 4, 10] {
            let set =
                vec![("m".into(), format!("1+0.1*{i}")), ("g".into(), format!("1+0.01*{i}*{i}"))];
            let settings = Settings { set, ..Settings::default() };
            let problem = holonome::Problem::load(repository().join(PENDULUM), &settings).unwrap();
            assert_eq!(g[i], problem.model.parameter_values[1]);
            let single =
                RunOptions { out: Some(folder.path().join(format!("run-{k}-{i}"))), ..run.clone() };
            // The rate of a feedback term is that of trajectory 0, so it is given here.
            if method.starts_with("feedback") && i > 0 {
                continue;
            }
            let mut simulation = prepare(problem, single.clone()).unwrap();
            let alone = simulation.run(&mut |_| Control::Continue).unwrap();
            let stored = StoredRun::open(single.out.as_ref().unwrap()).unwrap();
            let rows = samples as usize * 3;
            assert_eq!(q[i * rows..(i + 1) * rows], stored.read("q").unwrap(), "{method} {i}");
            assert_eq!(p[i * rows..(i + 1) * rows], stored.read("p").unwrap(), "{method} {i}");
            assert_eq!(
                (steps[i], cost[i]),
                (alone.steps as f64, alone.cost.field as f64),
                "{method} {i}"
            );
            let of_h = alone.drift.iter().find(|d| d.name == "H").unwrap();
            assert_eq!(drift[i], of_h.max, "{method} {i}");
        }
    }
}

/// The weights of a Gauss–Newton form are those of every trajectory's own start: in lanes, and one
/// by one with dense output. A term that needs a solve runs one by one, and its first trajectory is
/// a single run.
#[test]
fn feedback_has_the_weights_of_each_start() {
    let folder = tempfile::tempdir().unwrap();
    let vary = [("m", "1+0.1*i"), ("p", "(1+i, 0, -1)")];
    let ends = ["2", "9"].map(|samples| {
        let out = folder.path().join(samples);
        let samples: u64 = samples.parse().unwrap();
        let run =
            RunOptions { samples: Some(samples), ..options("feedback:tsit5", None, 2.0, &out) };
        sweep(PENDULUM, run, 5, &vary, None).run(&mut go_on).unwrap();
        let rows = StoredRun::open(&out).unwrap().read("q").unwrap();
        rows.chunks(3 * samples as usize)
            .map(|row| row[row.len() - 3..].to_vec())
            .collect::<Vec<_>>()
    });
    assert_eq!(ends[0].len(), 5);
    assert_eq!(ends[0], ends[1]);
    let out = folder.path().join("chain");
    let run = RunOptions { samples: Some(2), ..options("feedback:rk4", Some(0.01), 0.2, &out) };
    let settings = Settings { set: vec![("n".into(), "30".into())], ..Settings::default() };
    let (path, vary) =
        (repository().join("models/chain.holo"), vec![("g".to_string(), "1+0.1*i".to_string())]);
    let all = SweepOptions { trajectories: 3, vary, ..SweepOptions::default() };
    let mut ensemble = Sweep::load(&path, &settings, run.clone(), all).unwrap();
    assert_eq!(ensemble.run(&mut go_on).unwrap().failed, 0);
    let single = RunOptions { out: Some(folder.path().join("single")), ..run };
    let problem = holonome::Problem::load(&path, &settings).unwrap();
    prepare(problem, single.clone()).unwrap().run(&mut |_| Control::Continue).unwrap();
    let [many, one] = [&out, single.out.as_ref().unwrap()]
        .map(|path| StoredRun::open(path).unwrap().read("r").unwrap());
    assert_eq!(many[..one.len()], one);
}

#[test]
fn threads_and_parts_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (k, (method, step)) in
        [("corrected:dop853", None), ("feedback:euler", Some(0.01)), ("rattle", Some(0.01))]
            .into_iter()
            .enumerate()
    {
        let compute = |name: &str, threads: usize, shard: Option<(u64, u64)>| {
            let out = folder.path().join(format!("{name}-{k}"));
            let vary = [("q", "(0, 1, 0)"), ("p", "(cos(i/N), 0, normal())")];
            let mut ensemble = sweep(PENDULUM, options(method, step, 1.0, &out), 700, &vary, shard);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| ensemble.run(&mut go_on)).unwrap();
            out
        };
        let whole = chunks(&compute("one", 1, None));
        assert_eq!(whole, chunks(&compute("three", 3, None)), "{method}");
        let parts: Vec<PathBuf> =
            [2, 3, 1].map(|part| compute(&format!("part-{part}"), 2, Some((part, 3)))).to_vec();
        let merged = folder.path().join(format!("merged-{k}"));
        let summary = holonome::sweep::merge(&merged, &parts).unwrap();
        assert_eq!(whole, chunks(&merged), "{method}");
        assert_eq!(summary.trajectories, 700);
        let direct = StoredRun::open(folder.path().join(format!("one-{k}"))).unwrap();
        for key in ["steps", "drift", "failed", "method", "t"] {
            assert_eq!(json!(summary)[key], direct.summary()[key], "{key}");
        }
    }
}

#[test]
fn a_stopped_ensemble_goes_on_in_its_folder_and_a_finished_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        let run = options("plain:rk4", Some(0.01), 0.5, &folder.path().join(name));
        sweep(PENDULUM, run, 3000, &[("p", "(normal(), 0, uniform())")], None)
    };
    make("whole").run(&mut go_on).unwrap();
    let mut parts = make("parts");
    while parts.run(&mut |_| Control::Stop).unwrap().interrupted {}
    assert_eq!(chunks(&folder.path().join("whole")), chunks(&folder.path().join("parts")));
    let error = parts.run(&mut go_on).unwrap_err().to_string();
    assert!(error.contains("this ensemble has finished in") && error.contains("parts"), "{error}");
}

#[test]
fn what_is_stopped_goes_on() {
    for method in ["plain:rk4", "rattle"] {
        stopped_goes_on(method);
    }
}

fn stopped_goes_on(method: &str) {
    let folder = tempfile::tempdir().unwrap();
    let make = |out: &Path| {
        let vary = [("p", "(normal(), 0, uniform())")];
        sweep(PENDULUM, options(method, Some(0.01), 0.5, out), 3000, &vary, None)
    };
    let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
    make(&whole).run(&mut go_on).unwrap();
    let summary = make(&stopped).run(&mut |_| Control::Stop).unwrap();
    assert!(summary.interrupted && summary.trajectories < 3000, "{}", summary.trajectories);
    assert_eq!(StoredRun::open(&stopped).unwrap().status(), Status::Interrupted);
    let Some(Resumed::Continues(mut resumed)) = Sweep::resume(&stopped).unwrap() else {
        panic!("it is not finished")
    };
    let summary = resumed.run(&mut go_on).unwrap();
    assert_eq!((summary.trajectories, summary.interrupted), (3000, false));
    assert_eq!(chunks(&whole), chunks(&stopped));
    let (one, other) = (StoredRun::open(&whole).unwrap(), StoredRun::open(&stopped).unwrap());
    for key in ["steps", "drift", "failed"] {
        assert_eq!(one.summary()[key], other.summary()[key], "{key}");
    }
    assert!(
        matches!(Sweep::resume(&stopped).unwrap(), Some(Resumed::Finished { .. })),
        "a finished ensemble gives its summary"
    );
}

#[test]
fn one_failure_spoils_no_other() {
    // ẋ = x² from x₀ = 1/(i + 1) is infinite at t = i + 1: the first trajectories do not reach t =
    // 3.5.
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("blow-up.holo");
    fs::write(&model, "state x = 1\nx' = x^2\n").unwrap();
    for (k, (method, step)) in
        [("plain:rk4", Some(0.01)), ("plain:dop853", None)].into_iter().enumerate()
    {
        let out = folder.path().join(format!("out-{k}"));
        let vary = vec![("x".to_string(), "1/(i+1)".to_string())];
        let sweep = SweepOptions { trajectories: 20, vary, ..SweepOptions::default() };
        let run = options(method, step, 3.5, &out);
        let mut ensemble = Sweep::load(&model, &Settings::default(), run, sweep).unwrap();
        let summary = ensemble.run(&mut go_on).unwrap();
        assert_eq!(summary.failed, 3, "{method}: {:?}", summary.failures);
        let numbers: Vec<u64> = summary.failures.iter().map(|failed| failed.trajectory).collect();
        assert_eq!(numbers, [0, 1, 2]);
        let stored = StoredRun::open(&out).unwrap();
        let [x, failed, end] = ["x", "failed", "end"].map(|array| stored.read(array).unwrap());
        for i in 0..20 {
            let at_end = x[2 * i + 1];
            if i < 3 {
                assert!(failed[i] == 1.0 && at_end.is_nan(), "{method} {i}");
                // It stops where the solution ends; equal steps overshoot into an explosion of a
                // few steps.
                assert!((end[i] - (i + 1) as f64).abs() < 0.05, "{method} {i}: {}", end[i]);
            } else {
                let exact = 1.0 / ((i + 1) as f64 - 3.5);
                // RK4's error next to the singularity at distance 0.5: h⁴ times derivatives of
                // order (1/0.5)⁵·5!.
                let tolerance = if step.is_some() { 1e-8 * 3840.0 } else { 1e-7 };
                assert!(
                    failed[i] == 0.0 && (at_end - exact).abs() < tolerance * exact,
                    "{method} {i}"
                );
            }
        }
    }
}

#[test]
fn bad_ensembles_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let load = |trajectories: u64, shard| {
        let run = options("plain:rk4", Some(0.1), 1.0, &folder.path().join("never"));
        let sweep = SweepOptions { trajectories, shard, ..SweepOptions::default() };
        Sweep::load(repository().join(PENDULUM), &Settings::default(), run, sweep)
            .err()
            .unwrap()
            .to_string()
    };
    assert!(load(0, None).contains("at least 1"));
    assert!(load(5, Some((0, 4))).contains("from 1 to K"));
    assert!(load(5, Some((5, 4))).contains("from 1 to K"));
    let make = |name: &str, until: f64, shard| {
        let out = folder.path().join(name);
        let mut part = sweep(
            PENDULUM,
            options("plain:rk4", Some(0.1), until, &out),
            10,
            &[("m", "1+i")],
            shard,
        );
        part.run(&mut go_on).unwrap();
        out
    };
    let (first, third) = (make("first", 1.0, Some((1, 3))), make("third", 1.0, Some((3, 3))));
    let other = make("other", 2.0, Some((2, 3)));
    let merge = |parts: &[&PathBuf]| -> Error {
        let parts: Vec<PathBuf> = parts.iter().map(|&part| part.clone()).collect();
        holonome::sweep::merge(folder.path().join("merged"), &parts).err().unwrap()
    };
    assert!(merge(&[&first, &third]).to_string().contains("trajectories 3 to 5 are missing"));
    assert!(merge(&[&first]).to_string().contains("trajectories 3 to 9 are missing"));
    assert!(merge(&[&first, &first]).to_string().contains("there twice"));
    assert!(merge(&[&first, &other, &third]).to_string().contains("different ensembles"));
    assert!(!folder.path().join("merged").exists());
    assert!(!folder.path().join("never").exists());
}

#[test]
fn the_error_of_an_adaptive_ensemble_is_about_the_tolerance() {
    let folder = tempfile::tempdir().unwrap();
    let trajectories = 256;
    let ends = |method: &str, tolerance: f64| -> Vec<Vec<f64>> {
        let out = folder.path().join(format!("{method}-{tolerance:e}").replace(':', "-"));
        let run = RunOptions {
            step: StepSize::Adaptive { rtol: tolerance, atol: tolerance },
            ..options(method, None, 10.0, &out)
        };
        sweep(PENDULUM, run, trajectories, &[("p", "(1+1e-3*i/N, 0, -1)")], None)
            .run(&mut go_on)
            .unwrap();
        let stored = StoredRun::open(&out).unwrap();
        let [q, p] = ["q", "p"].map(|array| stored.read(array).unwrap());
        // The second of two samples.
        let end = |array: &[f64], i: usize| array[6 * i + 3..6 * i + 6].to_vec();
        (0..trajectories as usize).map(|i| [end(&q, i), end(&p, i)].concat()).collect()
    };
    let reference = ends("corrected:dop853", 1e-13);
    let median = |ends: &[Vec<f64>]| -> f64 {
        let error = |(a, b): (&Vec<f64>, &Vec<f64>)| {
            a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        let mut errors: Vec<f64> = ends.iter().zip(&reference).map(error).collect();
        errors.sort_by(f64::total_cmp);
        errors[errors.len() / 2]
    };
    // Nor does the correction distort the reference.
    assert!(median(&ends("plain:dop853", 1e-14)) < 1e-12);
    // The tolerance bounds the error of a step relative to the norms of its vectors; the errors of
    // some seventy steps add up, less the part that the integrals hold: 2.9e-11 of 1e-10. A much
    // smaller error would be wasted steps.
    for tolerance in [1e-10, 1e-8] {
        let error = median(&ends("corrected:dop853", tolerance));
        assert!(error <= tolerance && error > 0.05 * tolerance, "{error:e} at {tolerance:e}");
    }
}

#[test]
fn a_grid_has_the_dimensions_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let grid = |name: &str, shard| {
        let run = options("plain:rk4", Some(0.01), 0.5, &folder.path().join(name));
        let over: Vec<(String, std::sync::Arc<[f64]>)> =
            vec![("g".into(), [1.0, 2.0, 3.0].into()), ("p.x".into(), [1.0, 0.5].into())];
        let options = SweepOptions { over, shard, ..SweepOptions::default() };
        Sweep::load(repository().join(PENDULUM), &Settings::default(), run, options).unwrap()
    };
    let memory = grid("none", None).solve().unwrap().arrays;
    grid("store", None).run(&mut go_on).unwrap();
    let stored = Arrays::open(folder.path().join("store")).unwrap();
    assert!(memory == stored);
    assert_eq!(memory["p"].dimensions(), ["g", "p.x", "time", "component_3"]);
    assert_eq!((memory["p"].shape(), memory["steps"].shape()), (&[3, 2, 2, 3][..], &[3, 2][..]));
    assert_eq!(memory.coordinates()[0].1[..], [1.0, 2.0, 3.0]);
    assert!(memory.get("g").is_none(), "it is a dimension");
    // The last name runs fastest, and each combination is a run of its own.
    let starts: Vec<f64> = memory["p"].rows().map(|row| row[0]).collect();
    assert_eq!(starts, [1.0, 0.5, 1.0, 0.5, 1.0, 0.5]);
    let set =
        vec![("g".to_string(), "2".to_string()), ("p".to_string(), "(0.5, 0, -1)".to_string())];
    let settings = Settings { set, ..Settings::default() };
    let problem = holonome::Problem::load(repository().join(PENDULUM), &settings).unwrap();
    let run =
        RunOptions { samples: Some(2), ..options("plain:rk4", Some(0.01), 0.5, "x".as_ref()) };
    let alone = prepare(problem, run).unwrap().solve().unwrap();
    assert_eq!(memory["q"].row(3), alone["q"].values());
    // Parts are by trajectories, and are joined to the grid.
    let parts = [1, 2].map(|k| {
        grid(&format!("part-{k}"), Some((k, 2))).run(&mut go_on).unwrap();
        folder.path().join(format!("part-{k}"))
    });
    assert_eq!(StoredRun::open(&parts[1]).unwrap().read("g").unwrap(), [2.0, 3.0, 3.0]);
    holonome::sweep::merge(folder.path().join("merged"), &parts).unwrap();
    assert!(Arrays::open(folder.path().join("merged")).unwrap() == stored);
}

#[test]
fn a_worker_opens_a_folder_by_its_path_and_keeps_what_it_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        let run = options("corrected:dop853", None, 0.5, &folder.path().join(name));
        sweep(PENDULUM, run, 1000, &[("p", "(normal(), 0, uniform())")], None)
    };
    make("whole").run(&mut go_on).unwrap();
    let path = make("shared").open().unwrap().to_path_buf();
    let worker = Sweep::open_store(&path).unwrap();
    let blocks = worker.blocks().unwrap();
    assert_eq!((blocks.count(), blocks.len()), (16, 64));
    // In any order, also twice.
    for block in (0..blocks.count()).rev().chain([3, 3]) {
        assert!(worker.finish().unwrap().is_none() || block == 3);
        worker.compute_blocks([block], &mut go_on).unwrap();
    }
    assert!(
        worker.compute_blocks([16], &mut go_on).unwrap_err().to_string().contains("no block 16")
    );
    let status = holonome::sweep::status(&path).unwrap();
    assert!(status.complete && status.done == 1000 && status.running.is_empty(), "{status:?}");
    assert_eq!(worker.finish().unwrap().unwrap().trajectories, 1000);
    assert_eq!(chunks(&path), chunks(&folder.path().join("whole")));
}

/// Trajectories that go through a singular configuration end there, in lanes as alone, and have no
/// samples behind it; the others reach the end.
#[test]
fn trajectories_stop_at_singular_configurations() {
    // The flat configuration comes at t = (π/2)/p; where p = 0.1 it is beyond the end.
    let text = "parameter v = 1\ncoordinate a : R^2 = (0, 1)\ncoordinate b : R^2 = (2, 1)\n\
         momentum p of a = (v, 0)\nmomentum r of b = (v, 0)\n\
         hamiltonian dot(p, p)/2 + dot(r, r)/2\nconstraint crank : dot(a, a) = 1\n\
         constraint rocker : dot(b - (2, 0), b - (2, 0)) = 1\n\
         constraint coupler : dot(b - a, b - a) = 4\n";
    let problem = || {
        holonome::Problem::from_text("flat", text, &BTreeMap::new(), &Settings::default()).unwrap()
    };
    let vary = vec![("v".to_string(), "if(mod(i, 2) == 0, 1, 0.1)".to_string())];
    let run_options = |singular, (method, step): (&str, Option<f64>)| RunOptions {
        method: method.parse().unwrap(),
        step: step.into(),
        until: 3.0,
        samples: Some(31),
        singular,
        ..RunOptions::default()
    };
    let methods = [
        ("corrected:rk4", Some(0.01)),
        ("rattle", Some(0.01)),
        ("corrected:dop853", None),
        ("projection:tsit5", None),
    ];
    let cases = [
        (16, holonome::Singular::Stop),
        (2, holonome::Singular::Stop),
        (16, holonome::Singular::Continue),
    ];
    for (method, (trajectories, singular)) in
        methods.into_iter().flat_map(|method| cases.map(|case| (method, case)))
    {
        let sweep = SweepOptions { trajectories, vary: vary.clone(), ..SweepOptions::default() };
        let mut sweep =
            holonome::prepare_sweep(&problem(), run_options(singular, method), sweep).unwrap();
        let solution = sweep.solve().unwrap();
        let stops = singular == holonome::Singular::Stop;
        let failed = if stops { trajectories / 2 } else { 0 };
        assert_eq!(solution.summary.failed, failed, "{method:?}, {trajectories}, {singular:?}");
        let a = &solution.arrays["a"];
        for number in 0..trajectories as usize {
            let row = a.row(number);
            let last = row.iter().rposition(|x| !x.is_nan()).unwrap() / 2;
            // Adaptive steps have samples up to their ends.
            let expected = match stops && number % 2 == 0 {
                true if method.1.is_some() => 15..16,
                true => 15..25,
                false => 30..31,
            };
            assert!(expected.contains(&last), "{method:?}, {singular:?}: {number}, {last}");
        }
        for failure in &solution.summary.failures {
            assert!(failure.message.contains("singular configuration at t = 1.57"), "{failure:?}");
        }
    }
}
