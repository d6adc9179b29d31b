//! Measures along a run: the numbers of stored samples, with the same bits for interrupted runs and
//! for any computation of an ensemble, and the temperature and distribution of a heat bath.

mod common;

use common::*;
use holonome::{
    Control, Measure, Resumed, RunOptions, Settings, Simulation, Sweep, SweepOptions, Table,
    analyse, prepare, sweep::merge,
};
use std::path::{Path, PathBuf};

const MODEL: &str = "parameter m = 2\nsize n = 3\ncoordinate r[i in 1..n] : R^2 = (i, 0)\nmomentum p of r\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m) + dot(r[i], r[i])/2) + \
    sum(i in 1..n, j in i+1..n : exp(-dot(r[i] - r[j], r[i] - r[j])))\n\
    integral J = sum(i in 1..n : r[i].x*p[i].y - r[i].y*p[i].x)\n\
    observe square = dot(r[1], r[1])\n\
    measure mean_square = mean(dot(r[1], r[1])) every 0.5\n\
    measure shape = histogram(i in 1..n : r[i].x, -3, 3, 12) every 0.5\n\
    measure apart = rdf(i in 1..n : r[i], 6, 12) every 0.5 from 2\n\
    measure far = msd(i in 1..n : r[i]) every 0.5\n\
    measure memory = autocorrelation(r[1]) every 0.5\n\
    measure kT = temperature() every 0.5\n";

const HEAT: &str =
    "--method stormer-verlet-b --step 0.1 --thermostat gla --friction 1 --inverse-temperature 2";

fn model(folder: &Path) -> PathBuf {
    let path = folder.join("model.holo");
    std::fs::write(&path, MODEL).unwrap();
    path
}

fn simulation(folder: &Path, name: &str, text: &str) -> Simulation {
    let problem = holonome::Problem::load(model(folder), &Settings::default()).unwrap();
    prepare(problem, RunOptions { out: Some(folder.join(name)), ..options(text) }).unwrap()
}

fn go_on(_: &holonome::Progress) -> Control {
    Control::Continue
}

/// Numbers of tables as bits, for exact comparison.
fn bits(tables: &[Table]) -> Vec<Vec<Vec<u64>>> {
    let row = |row: &Vec<f64>| row.iter().map(|number| number.to_bits()).collect();
    tables.iter().map(|table| table.rows.iter().map(row).collect()).collect()
}

#[test]
fn measures_are_what_stored_samples_come_to() {
    let folder = tempfile::tempdir().unwrap();
    for (method, name) in [(HEAT.to_string(), "fixed"), ("--rtol 1e-6".to_string(), "adaptive")] {
        let whole = simulation(folder.path(), name, &format!("{method} --until 200 --every 0.5"));
        let tables = { whole }.run(&mut go_on).unwrap().measures;
        let measures =
            ["mean(square)", "histogram(r[*].x, -3, 3, 12)", "msd(r)", "autocorrelation(r[1])"];
        let measures: Vec<Measure> = measures.iter().map(|text| text.parse().unwrap()).collect();
        let stored = analyse(folder.path().join(name), &measures, None).unwrap().tables;
        // The same formula may be compiled with other roundings beside other formulas; here it is
        // not.
        let own: Vec<Table> = [0, 1, 3, 4].iter().map(|&k: &usize| tables[k].clone()).collect();
        assert_eq!(bits(&own[1..]), bits(&stored[1..]), "{name}");
        assert!((own[0].rows[0][0] - stored[0].rows[0][0]).abs() < 1e-13);
        let apart =
            analyse(folder.path().join(name), &["rdf(r, 6, 12)".parse().unwrap()], Some(2.0))
                .unwrap();
        assert_eq!(bits(&tables[2..3]), bits(&apart.tables), "{name}");
        // Equal without samples of their own.
        let few = simulation(
            folder.path(),
            &format!("{name}-few"),
            &format!("{method} --until 200 --samples 2"),
        );
        let few = { few }.run(&mut go_on).unwrap().measures;
        assert_eq!(bits(&few), bits(&tables), "{name}");
        let shown = analyse(folder.path().join(format!("{name}-few")), &[], None).unwrap().tables;
        assert_eq!(bits(&shown), bits(&few));
        assert_eq!(
            shown.iter().map(|table| table.samples).collect::<Vec<_>>(),
            [401, 401, 397, 401, 401, 401]
        );
    }
}

#[test]
fn a_heat_bath_has_its_temperature() {
    let folder = tempfile::tempdir().unwrap();
    let tables = simulation(folder.path(), "bath", &format!("{HEAT} --until 4000 --samples 2"))
        .run(&mut go_on)
        .unwrap()
        .measures;
    let (kt, error) = (tables[5].rows[0][0], tables[5].rows[0][1]);
    assert!((kt - 0.5).abs() < 5.0 * error && error < 0.02, "{kt} ± {error}");
}

#[test]
fn interrupted_and_longer_runs_measure_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let text = |until: f64| format!("{HEAT} --until {until} --samples 3");
    let whole = simulation(folder.path(), "whole", &text(9000.0)).run(&mut go_on).unwrap();
    let stopped =
        simulation(folder.path(), "stopped", &text(9000.0)).run(&mut |_| Control::Stop).unwrap();
    assert!(stopped.interrupted && stopped.steps > 0);
    assert!(stopped.measures[0].samples < whole.measures[0].samples);
    let mut rest = None;
    let mut parts = 1;
    while let Resumed::Continues(mut part) =
        Simulation::resume(folder.path().join("stopped")).unwrap()
    {
        rest = Some(
            part.run(&mut |_| if parts < 3 { Control::Stop } else { Control::Continue }).unwrap(),
        );
        parts += 1;
    }
    assert_eq!(bits(&rest.unwrap().measures), bits(&whole.measures), "in {parts} parts");
    simulation(folder.path(), "short", &text(500.0)).run(&mut go_on).unwrap();
    let longer =
        Simulation::extend(folder.path().join("short"), 9000.0).unwrap().run(&mut go_on).unwrap();
    assert_eq!(bits(&longer.measures), bits(&whole.measures));
}

#[test]
fn ensembles_average_over_trajectories() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let run = |name: &str, shard, text: &str| {
        let run = RunOptions { out: Some(folder.path().join(name)), ..options(text) };
        let sweep = SweepOptions {
            trajectories: 21,
            vary: vec![("m".to_string(), "1 + i/N".to_string())],
            shard,
            ..SweepOptions::default()
        };
        Sweep::load(&model, &Settings::default(), run, sweep)
            .unwrap()
            .run(&mut |_| Control::Continue)
            .unwrap()
    };
    let text = format!("{HEAT} --until 50");
    let whole = run("whole", None, &text);
    // Mean between trajectories of one temperature.
    let (kt, error) = (whole.measures[5].rows[0][0], whole.measures[5].rows[0][1]);
    assert!((kt - 0.5).abs() < 5.0 * error && (0.005..0.05).contains(&error), "{kt} ± {error}");
    run("a", Some((1, 2)), &text);
    run("b", Some((2, 2)), &text);
    let merged =
        merge(folder.path().join("merged"), &[folder.path().join("a"), folder.path().join("b")])
            .unwrap();
    assert_eq!(bits(&merged.measures), bits(&whole.measures));
    // Stored samples make no difference, nor do lanes: trajectory 0 is a run of its own.
    let sampled = run("sampled", None, &format!("{text} --every 5"));
    assert_eq!(bits(&sampled.measures), bits(&whole.measures));
    let arrays = holonome::Arrays::open(folder.path().join("whole")).unwrap();
    let problem = holonome::Problem::load(
        &model,
        &Settings { set: vec![("m".to_string(), "1".to_string())], ..Settings::default() },
    );
    let alone =
        prepare(problem.unwrap(), options(&text)).unwrap().solve().unwrap().summary.measures;
    assert_eq!(arrays["kT"].row(0)[0].to_bits(), alone[5].rows[0][0].to_bits());
    assert_eq!(arrays["kT_error"].row(0)[0].to_bits(), alone[5].rows[0][1].to_bits());
    assert_eq!(arrays["shape"].shape(), [21, 12]);
    let adaptive = run("adaptive", None, "--until 5 --rtol 1e-6");
    assert_eq!(adaptive.measures[0].samples, 11);
}

#[test]
fn what_cannot_be_measured_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &str, run: &str| {
        let path = folder.path().join("refused.holo");
        std::fs::write(&path, format!("{MODEL}{text}\n")).unwrap();
        let problem = holonome::Problem::load(&path, &Settings::default()).unwrap();
        prepare(problem, options(run)).map(drop).unwrap_err().to_string()
    };
    let late = refused("measure late = mean(r[1].x) from 100", &format!("{HEAT} --until 50"));
    assert!(
        late.contains("measure 'late'") && late.contains("t = 100") && late.contains("t = 50"),
        "{late}"
    );
    let off = refused("measure off = mean(r[1].x) every 0.25", &format!("{HEAT} --until 50"));
    assert!(off.contains("measure 'off'") && off.contains("0.25"), "{off}");
    let path = folder.path().join("varied.holo");
    std::fs::write(&path, format!("{MODEL}measure varied = mean(r[1].x) from 2*m\n")).unwrap();
    let sweep = SweepOptions {
        trajectories: 2,
        vary: vec![("m".to_string(), "1 + i".to_string())],
        ..SweepOptions::default()
    };
    let varied =
        Sweep::load(&path, &Settings::default(), options(&format!("{HEAT} --until 50")), sweep);
    let varied = varied.map(drop).unwrap_err().to_string();
    assert!(varied.contains("measure 'varied'") && varied.contains("vary"), "{varied}");
}
