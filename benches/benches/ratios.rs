//! Whole runs against hand-written C in the same minute: `cargo bench --bench ratios`.
//!
//! ```text
//! cargo bench -p holonome-benches --bench ratios             the table of docs/speed.md
//! cargo bench -p holonome-benches --bench ratios -- euler    one row, by a part of its name
//! ```

use holonome::{Control, Problem, RunOptions, Settings, StepSize, Sweep, SweepOptions, prepare};
use holonome_benches::{Limit, in_turns};
use rayon::ThreadPoolBuilder;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Number of turns of each side.
const ROUNDS: usize = 15;

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models").join(format!("{name}.holo"))
}

/// Summary of a run as `run --json` prints it; the run is stored like any other.
fn run(name: &str, settings: &Settings, options: &RunOptions) -> serde_json::Value {
    run_problem(Problem::load(model(name), settings).expect("a model of the repository"), options)
}

fn run_problem(problem: Problem, options: &RunOptions) -> serde_json::Value {
    let folder = tempfile::tempdir().expect("a folder for a run");
    let options = RunOptions { out: Some(folder.path().join("run")), ..options.clone() };
    let mut simulation = prepare(problem, options).expect("a method that suits it");
    serde_json::json!(simulation.run(&mut |_| Control::Continue).expect("it runs"))
}

fn wall(summary: &serde_json::Value) -> f64 {
    summary["cost"]["wall_seconds"].as_f64().expect("it was timed")
}

fn fixed(method: &str, h: f64, until: f64) -> RunOptions {
    RunOptions {
        method: method.parse().unwrap(),
        step: StepSize::Fixed(h),
        until,
        samples: Some(2),
        gain: Some(holonome::Gains::Uniform(50.0)),
        ..RunOptions::default()
    }
}

fn adaptive(method: &str, tolerance: f64, until: f64) -> RunOptions {
    let gain = method.starts_with("feedback").then_some(holonome::Gains::Uniform(10.0));
    RunOptions {
        method: method.parse().expect("a method"),
        step: StepSize::Adaptive { rtol: tolerance, atol: tolerance },
        until,
        samples: Some(2),
        gain,
        ..RunOptions::default()
    }
}

/// One row of the table: name, target and measurement of the ratio.
struct Row {
    name: &'static str,
    target: f64,
    measure: fn(&Limit) -> f64,
}

/// Time per step of a run of the double pendulum over that of C's RATTLE with these arguments.
fn double_pendulum(method: &str, arguments: &[&str]) -> f64 {
    let Some(limit) = Limit::compile("limit_double") else { return f64::NAN };
    let (h, steps) = (0.01, 100_000);
    let options = fixed(method, h, h * steps as f64);
    let (c, ours) = in_turns(
        ROUNDS,
        || limit.seconds_per_step(arguments),
        || wall(&run("double-pendulum", &Settings::default(), &options)) / steps as f64,
    );
    ours / c
}

/// Time per step of RATTLE on a hanging chain of so many links, whose constraints and energy are
/// monitored after every step, over that of C, which does not count its monitoring.
fn chain(links: u64, h: f64) -> f64 {
    let Some(limit) = Limit::compile("limit_chain") else { return f64::NAN };
    // For a large chain, too, so many that storing its start and its end does not count.
    let (steps, settings) = ((2_000_000 / links).max(200), of_links(links));
    let arguments = [links.to_string(), h.to_string(), steps.to_string(), "down".to_string()];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let options = fixed("rattle", h, h * steps as f64);
    let (c, ours) = in_turns(
        5,
        || limit.seconds_per_step(&arguments),
        || wall(&run("chain", &settings, &options)) / steps as f64,
    );
    ours / c
}

fn of_links(links: u64) -> Settings {
    Settings { set: vec![("n".to_string(), links.to_string())], ..Settings::default() }
}

/// Time per step of a method on the same chain with a penalty, over that of RATTLE.
fn penalised_chain(method: &str, links: u64, h: f64) -> f64 {
    let (steps, settings) = (500_000 / links, of_links(links));
    let rattle = fixed("rattle", h, h * steps as f64);
    let penalty = Some("50".parse().expect("a penalty"));
    let penalised = RunOptions { penalty, ..fixed(method, h, h * steps as f64) };
    let (rattle, ours) = in_turns(
        5,
        || wall(&run("chain", &settings, &rattle)),
        || wall(&run("chain", &settings, &penalised)),
    );
    ours / rattle
}

/// Time per evaluation of the field by a Gauss method on the outer planets, over a step of
/// Störmer–Verlet.
fn planets(method: &str) -> f64 {
    let (name, h, steps) = ("../suite/models/outer-planets", 100.0, 50_000);
    let settings = Settings::default();
    let run = |method: &str| run(name, &settings, &fixed(method, h, h * f64::from(steps)));
    let evaluations =
        |summary: &serde_json::Value| summary["cost"]["field"].as_f64().expect("it is counted");
    let (verlet, ours) = in_turns(
        5,
        || wall(&run("stormer-verlet-a")) / f64::from(steps),
        || {
            let summary = run(method);
            wall(&summary) / evaluations(&summary)
        },
    );
    ours / verlet
}

/// Bodies that attract each other softly; the start of `limits/nbody.c`.
const BODIES: &str = "\
size n = 100
parameter m[i in 1..n] = (1 + 0.5*sin(3*i))/n
coordinate q[i in 1..n] : R^3 = (cos(2.4*i)*sqrt(i/n), sin(2.4*i)*sqrt(i/n), 0.3*sin(7*i))
momentum   p[i] of q = m[i]*(-0.5*sin(2.4*i), 0.5*cos(2.4*i), 0)
hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i])) - \
    sum(i in 1..n, j in i+1..n : m[i]*m[j]/sqrt(dot(q[i] - q[j], q[i] - q[j]) + 0.01))
";

fn run_bodies(n: u64, options: &RunOptions) -> serde_json::Value {
    let problem = Problem::from_text("bodies", BODIES, &BTreeMap::new(), &of_links(n))
        .expect("a sound model");
    run_problem(problem, options)
}

/// Number of steps that take some hundredths of a second.
fn steps_of_bodies(n: u64, evaluations: u64) -> u64 {
    (20_000_000 / (n * n * evaluations)).max(10)
}

/// Time per step of so many bodies over that of vectorised C with fixed steps, the energy monitored
/// by both.
fn bodies(n: u64, method: &str, kernel: &str, evaluations: u64) -> f64 {
    let Some(limit) = Limit::compile_with("nbody", &["-ffast-math"]) else { return f64::NAN };
    let (h, steps) = (1e-4, steps_of_bodies(n, evaluations));
    let arguments = [kernel.to_string(), n.to_string(), h.to_string(), steps.to_string()];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let options = fixed(method, h, h * steps as f64);
    let (c, ours) = in_turns(
        5,
        || limit.seconds_per_step(&arguments),
        || wall(&run_bodies(n, &options)) / steps as f64,
    );
    ours / c
}

/// Time per step of RATTLE on so many water molecules, whose constraints, energy and momenta are
/// monitored after every step, over that of C from the same start, which does not count its
/// monitoring.
fn water(n: u64) -> f64 {
    let Some(limit) = Limit::compile_with("limit_water", &["-ffast-math"]) else { return f64::NAN };
    let (h, steps) = (0.05, (2_000_000 / (n * n)).clamp(100, 20_000));
    let settings = Settings { set: vec![("N".to_string(), n.to_string())], ..Settings::default() };
    let problem = Problem::load(model("water"), &settings).expect("a model of the repository");
    let folder = tempfile::tempdir().expect("a folder for a start");
    let start = folder.path().join("start.txt");
    std::fs::write(&start, in_nanometres(&problem.model.initial)).expect("a start");
    // In picoseconds.
    let arguments =
        [start.display().to_string(), (h * UNIT_OF_TIME).to_string(), steps.to_string()];
    let arguments: Vec<&str> =
        arguments.iter().map(String::as_str).chain(["0", "0", "1"]).collect();
    let options = fixed("rattle", h, h * steps as f64);
    let (c, ours) = in_turns(
        5,
        || limit.seconds_per_step(&arguments),
        || wall(&run("water", &settings, &options)) / steps as f64,
    );
    ours / c
}

/// Drift of the energy of 7 rigid waters over a nanosecond by RATTLE, the slope of a fitted line
/// times the run's length, over the standard deviation of the energy.
fn energy_drift() -> f64 {
    let h = 0.05;
    let steps = (1000.0 / (h * UNIT_OF_TIME)).round();
    let settings =
        Settings { set: vec![("N".to_string(), "7".to_string())], ..Settings::default() };
    let problem = Problem::load(model("water"), &settings).expect("a model of the repository");
    let record = Some(vec!["H".to_string()]);
    let options = RunOptions { record, samples: Some(20_001), ..fixed("rattle", h, h * steps) };
    let solution =
        prepare(problem, options).expect("a method that suits it").solve().expect("it runs");
    let energy = solution.arrays.get("H").expect("it is recorded").values();
    let (t, n) = (solution.times(), energy.len() as f64);
    let mean = |of: &[f64]| of.iter().sum::<f64>() / n;
    let (t_mean, mean) = (mean(t), mean(energy));
    let moment = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        t.iter().zip(energy).map(|(t, energy)| of(t - t_mean, energy - mean)).sum::<f64>()
    };
    let slope = moment(&|t, energy| t * energy) / moment(&|t, _| t * t);
    (slope * h * steps).abs() / (moment(&|_, energy| energy * energy) / n).sqrt()
}

/// Time of so many steps of a model of this size with two threads over that with one.
fn threads((name, size, n): (&str, &str, u64), method: &str, h: f64, steps: f64) -> f64 {
    let settings = Settings { set: vec![(size.to_string(), n.to_string())], ..Settings::default() };
    let problem = Problem::load(model(name), &settings).expect("a model of the repository");
    let mut simulation =
        prepare(problem, fixed(method, h, h * steps)).expect("a method that suits it");
    let pools =
        [1, 2].map(|count| ThreadPoolBuilder::new().num_threads(count).build().expect("threads"));
    let mut least = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (pool, least) in pools.iter().zip(&mut least) {
            let solution = pool.install(|| simulation.solve()).expect("it runs");
            *least = solution.summary.cost.wall_seconds.min(*least);
        }
    }
    least[1] / least[0]
}

/// Picoseconds in the unit of time of `water.holo`, √(amu Å²/eV).
const UNIT_OF_TIME: f64 = 0.010_180_506;

/// A state of `water.holo` as `limit_water.c` reads it: nm and nm/ps, the oxygen of each molecule
/// first.
fn in_nanometres(state: &[f64]) -> String {
    let (x, p) = state.split_at(state.len() / 2);
    let sites = |of: &[f64], scale: &dyn Fn(usize) -> f64| -> String {
        let molecule = |nine: &[f64]| {
            [1, 0, 2].map(|s| [0, 1, 2].map(|c| nine[3 * s + c] * scale(s))).concat()
        };
        let numbers =
            of.chunks_exact(9).flat_map(molecule).map(|number| format!("{number:.17e}\n"));
        numbers.collect()
    };
    let velocity = |s: usize| 0.1 / UNIT_OF_TIME / [1.008, 15.9994, 1.008][s];
    format!("{}\n{}{}", x.len() / 9, sites(x, &|_| 0.1), sites(p, &velocity))
}

/// Time per step and pair of so many bodies over that of 600.
fn flatness(n: u64, method: &str, evaluations: u64) -> f64 {
    let of = |n: u64| {
        let (h, steps) = (1e-4, steps_of_bodies(n, evaluations));
        let options = fixed(method, h, h * steps as f64);
        move || wall(&run_bodies(n, &options)) / (steps * n * (n - 1)) as f64
    };
    let (many, few) = in_turns(3, of(600), of(n));
    few / many
}

const PENDULUM: &str = "spherical-pendulum";

/// Time per step of a fixed-step run over that of a kernel.
fn per_step(limit: &Limit, kernel: &str, method: &str) -> f64 {
    let (h, steps) = (1e-3, 200_000);
    let options = fixed(method, h, h * steps as f64);
    let (c, ours) = in_turns(
        ROUNDS,
        || limit.seconds(kernel, h, steps),
        || wall(&run(PENDULUM, &Settings::default(), &options)) / steps as f64,
    );
    ours / c
}

/// The spherical pendulum's Dirac extension written out by hand as a plain vector field, of which
/// no invariants are known. It takes as many operations as the field that is derived from the
/// model.
const UNMONITORED: &str = "\
parameter m = 1
parameter g = 1
state q : R^3 = (0, 1, 0)
state p : R^3 = (1, 0, -1)
let s = dot(q, p)/dot(q, q)
q' = (p - s*q)/m
p' = s/m*p + (m*g*q.z - dot(p, p)/m)/dot(q, q)*q - (0, 0, m*g)
";

/// Time of a fixed-step run whose four invariants are monitored after every step, over that of the
/// same field and method with nothing to monitor.
fn monitoring(method: &str) -> f64 {
    let options = RunOptions { gain: None, ..fixed(method, 1e-3, 200.0) };
    let settings = Settings::default();
    let unmonitored = || {
        Problem::from_text("unmonitored", UNMONITORED, &BTreeMap::new(), &settings)
            .expect("a sound model")
    };
    let (plain, monitored) = in_turns(
        ROUNDS,
        || wall(&run_problem(unmonitored(), &options)),
        || wall(&run(PENDULUM, &settings, &options)),
    );
    monitored / plain
}

/// Time per evaluation of the field of an adaptive run, over that of the RK4 kernel.
fn per_evaluation(limit: &Limit, method: &str) -> f64 {
    let options = adaptive(method, 1e-10, 2000.0);
    let (c, ours) = in_turns(
        ROUNDS,
        || limit.seconds("rk4", 1e-3, 200_000) / 4.0,
        || {
            let summary = run(PENDULUM, &Settings::default(), &options);
            wall(&summary) / summary["cost"]["field"].as_u64().expect("it is counted") as f64
        },
    );
    ours / c
}

/// Seconds of an ensemble of pendula in one thread.
fn ensemble(options: &RunOptions, trajectories: u64, vary: &[(&str, &str)]) -> f64 {
    ensemble_of(PENDULUM, options, trajectories, vary)
}

/// Seconds of an ensemble in one thread.
fn ensemble_of(name: &str, options: &RunOptions, trajectories: u64, vary: &[(&str, &str)]) -> f64 {
    let folder = tempfile::tempdir().expect("a folder for an ensemble");
    let options = RunOptions { out: Some(folder.path().join("sweep")), ..options.clone() };
    let vary = vary.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let sweep = SweepOptions { trajectories, vary, ..SweepOptions::default() };
    let mut sweep =
        Sweep::load(model(name), &Settings::default(), options, sweep).expect("an ensemble");
    let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| sweep.run(&mut |_| Control::Continue)).expect("it runs").cost.wall_seconds
}

/// Time per step of a trajectory of an ensemble, in one thread, over that of a run by itself.
fn lanes_over_run(name: &str, method: &str, penalty: Option<&str>) -> f64 {
    let (h, steps, trajectories, long) = (0.01, 1000, 1024, 200_000);
    let penalty = penalty.map(|penalty| penalty.parse().expect("a penalty"));
    let of = |steps: u64| RunOptions { penalty, gain: None, ..fixed(method, h, h * steps as f64) };
    let (alone, together) = in_turns(
        5,
        || wall(&run(name, &Settings::default(), &of(long))) / long as f64,
        || ensemble_of(name, &of(steps), trajectories, &[]) / (steps * trajectories) as f64,
    );
    together / alone
}

/// Time of an ensemble with a history of 11 samples over that of one with the ends only.
fn history(method: &str) -> f64 {
    history_of(&fixed(method, 0.01, 10.0))
}

fn history_of(of: &RunOptions) -> f64 {
    let options = |samples: u64| RunOptions { samples: Some(samples), ..of.clone() };
    let vary = [("p", "(1+1e-3*i/N, 0, -1)")];
    let (ends, all) =
        in_turns(5, || ensemble(&options(2), 1024, &vary), || ensemble(&options(11), 1024, &vary));
    all / ends
}

const ROWS: &[Row] = &[
    Row {
        name: "euler, monitored, over C that does not monitor",
        target: 1.15,
        measure: |c| per_step(c, "euler", "feedback:euler"),
    },
    Row {
        name: "euler, monitored, over C that monitors",
        target: 0.9,
        measure: |c| per_step(c, "euler-diag", "feedback:euler"),
    },
    Row {
        name: "rk4, monitored, over C that does not monitor",
        target: 1.05,
        measure: |c| per_step(c, "rk4", "feedback:rk4"),
    },
    Row {
        name: "rk4, monitored, over C that monitors",
        target: 1.0,
        measure: |c| per_step(c, "rk4-diag", "feedback:rk4"),
    },
    Row {
        name: "euler, monitored, over a model with nothing to monitor",
        target: 1.2,
        measure: |_| monitoring("plain:euler"),
    },
    Row {
        name: "rk4, monitored, over a model with nothing to monitor",
        target: 1.1,
        measure: |_| monitoring("plain:rk4"),
    },
    Row {
        name: "rattle on the spherical pendulum, monitored, over closed-form C that monitors",
        target: 3.0,
        measure: |c| per_step(c, "rattle-diag", "rattle"),
    },
    Row {
        name: "rattle on the double pendulum, monitored, over C that monitors",
        target: 3.0,
        measure: |_| double_pendulum("rattle", &["0.01", "1000"]),
    },
    Row {
        name: "suzuki4(rattle) on the double pendulum, monitored, over C that monitors",
        target: 3.0,
        measure: |_| double_pendulum("suzuki4(rattle)", &["0.01", "1000", "4"]),
    },
    Row {
        name: "rattle on a chain of 10 links, monitored, over C whose monitoring does not count",
        target: 2.0,
        measure: |_| chain(10, 0.01),
    },
    Row {
        name: "rattle on a chain of 30 links, monitored, over C whose monitoring does not count",
        target: 1.6,
        measure: |_| chain(30, 0.001),
    },
    Row {
        name: "rattle on a chain of 100 links, monitored, over C whose monitoring does not count",
        target: 1.6,
        measure: |_| chain(100, 0.001),
    },
    Row {
        name: "rattle on a chain of 1000 links, monitored, over C whose monitoring does not count",
        target: 1.5,
        measure: |_| chain(1000, 0.01),
    },
    Row {
        name: "rattle on a chain of 100000 links, monitored, over C whose monitoring does not count",
        target: 1.5,
        measure: |_| chain(100_000, 0.001),
    },
    Row {
        name: "zhang-skeel on a penalised chain of 10 links, over rattle",
        target: f64::INFINITY,
        measure: |_| penalised_chain("zhang-skeel", 10, 0.002),
    },
    Row {
        name: "zhang-skeel on a penalised chain of 1000 links, over rattle",
        target: f64::INFINITY,
        measure: |_| penalised_chain("zhang-skeel", 1000, 0.002),
    },
    Row {
        name: "gauss4 on a penalised chain of 20 links, over rattle",
        target: 8.0,
        measure: |_| penalised_chain("gauss4", 20, 0.01),
    },
    Row {
        name: "gauss6 on the outer planets, an evaluation of the field, over a step of stormer-verlet-a",
        target: 1.5,
        measure: |_| planets("gauss6"),
    },
    Row {
        name: "stormer-verlet-a on 100 bodies, monitored, over vectorised C that monitors",
        target: 2.0,
        measure: |_| bodies(100, "stormer-verlet-a", "verlet", 1),
    },
    Row {
        name: "plain:dop853 on 100 bodies, monitored, over vectorised C that monitors",
        target: 2.0,
        measure: |_| bodies(100, "plain:dop853", "dop853", 12),
    },
    Row {
        name: "stormer-verlet-a on 300 bodies, monitored, over vectorised C that monitors",
        target: 2.0,
        measure: |_| bodies(300, "stormer-verlet-a", "verlet", 1),
    },
    Row {
        name: "plain:dop853 on 300 bodies, monitored, over vectorised C that monitors",
        target: 2.0,
        measure: |_| bodies(300, "plain:dop853", "dop853", 12),
    },
    Row {
        name: "stormer-verlet-a on 600 bodies, monitored, over vectorised C that monitors",
        target: 2.0,
        measure: |_| bodies(600, "stormer-verlet-a", "verlet", 1),
    },
    Row {
        name: "plain:dop853 on 600 bodies, monitored, over vectorised C that monitors",
        target: 2.0,
        measure: |_| bodies(600, "plain:dop853", "dop853", 12),
    },
    Row {
        name: "rattle on 7 water molecules, monitored, over vectorised C whose monitoring does not count",
        target: 2.5,
        measure: |_| water(7),
    },
    Row {
        name: "rattle on 100 water molecules, monitored, over vectorised C whose monitoring does not count",
        target: 2.0,
        measure: |_| water(100),
    },
    Row {
        name: "rattle on 1000 water molecules, monitored, over vectorised C whose monitoring does not count",
        target: 2.0,
        measure: |_| water(1000),
    },
    Row {
        name: "energy drift of 7 waters by rattle over a nanosecond, over its standard deviation",
        // Five times the deviation of a slope that is fitted to 1000 independent values.
        target: 0.55,
        measure: |_| energy_drift(),
    },
    Row {
        name: "1000 water molecules by rattle, two threads over one",
        target: 0.59,
        measure: |_| threads(("water", "N", 1000), "rattle", 0.05, 10.0),
    },
    Row {
        name: "4000 argon atoms by stormer-verlet-a, two threads over one",
        target: 0.67,
        measure: |_| threads(("argon", "N", 4000), "stormer-verlet-a", 0.005, 20.0),
    },
    Row {
        name: "stormer-verlet-a, a pair of 8 bodies over one of 600",
        target: 1.5,
        measure: |_| flatness(8, "stormer-verlet-a", 1),
    },
    Row {
        name: "stormer-verlet-a, a pair of 30 bodies over one of 600",
        target: 1.5,
        measure: |_| flatness(30, "stormer-verlet-a", 1),
    },
    Row {
        name: "stormer-verlet-a, a pair of 100 bodies over one of 600",
        target: 1.5,
        measure: |_| flatness(100, "stormer-verlet-a", 1),
    },
    Row {
        name: "plain:dop853, a pair of 8 bodies over one of 600",
        target: 1.5,
        measure: |_| flatness(8, "plain:dop853", 12),
    },
    Row {
        name: "plain:dop853, a pair of 30 bodies over one of 600",
        target: 1.5,
        measure: |_| flatness(30, "plain:dop853", 12),
    },
    Row {
        name: "plain:dop853, a pair of 100 bodies over one of 600",
        target: 1.5,
        measure: |_| flatness(100, "plain:dop853", 12),
    },
    Row {
        name: "plain:dop853 at 1e-10, per evaluation, over C's rk4",
        target: 1.3,
        measure: |c| per_evaluation(c, "plain:dop853"),
    },
    Row {
        name: "feedback:dop853 at 1e-10, per evaluation, over C's rk4",
        target: 1.3,
        measure: |c| per_evaluation(c, "feedback:dop853"),
    },
    Row {
        name: "corrected:dop853 at 1e-10, per evaluation, over C's rk4",
        target: 1.82,
        measure: |c| per_evaluation(c, "corrected:dop853"),
    },
    Row {
        name: "planar pendulum to T = 1e4, every drift below 1e-9, over 1.3 million steps of C's euler",
        target: 1.0,
        measure: |c| {
            let options = adaptive("corrected:dop853", 1e-7, 1e4);
            let drift = run("planar-pendulum", &Settings::default(), &options)["drift"]["hamiltonian"]["max"].as_f64();
            assert!(drift.is_some_and(|drift| drift < 1e-9), "{drift:?}");
            let (limit, ours) = in_turns(
                ROUNDS,
                || 1.3e6 * c.seconds("euler", 1e-3, 1_300_000),
                || wall(&run("planar-pendulum", &Settings::default(), &options)),
            );
            ours / limit
        },
    },
    Row {
        name: "4096 pendula, rk4, per core, over hand-vectorised C",
        target: 1.2,
        measure: |c| {
            let steps = 1000;
            let options = fixed("feedback:rk4", 1e-3, 1e-3 * steps as f64);
            let (limit, ours) = in_turns(
                ROUNDS,
                || {
                    c.seconds("ensemble-vec", 1e-3, steps).min(c.seconds(
                        "ensemble-soa",
                        1e-3,
                        steps,
                    )) * steps as f64
                },
                || ensemble(&options, 4096, &[("p", "(1+1e-3*i/N, 0, -1)")]),
            );
            ours / limit
        },
    },
    Row {
        name: "1024 pendula by rattle, per step, over one",
        target: 0.3,
        measure: |_| lanes_over_run(PENDULUM, "rattle", None),
    },
    Row {
        name: "1024 Henon-Heiles systems by stormer-verlet-a, per step, over one",
        target: 0.3,
        measure: |_| lanes_over_run("henon-heiles", "stormer-verlet-a", None),
    },
    Row {
        name: "1024 double pendula by rattle, per step, over one",
        target: 0.3,
        measure: |_| lanes_over_run("double-pendulum", "rattle", None),
    },
    Row {
        name: "1024 double pendula by suzuki4(rattle), per step, over one",
        target: 0.3,
        measure: |_| lanes_over_run("double-pendulum", "suzuki4(rattle)", None),
    },
    Row {
        name: "1024 Kepler orbits by gauss4, per step, over one",
        target: 0.3,
        measure: |_| lanes_over_run("kepler", "gauss4", None),
    },
    Row {
        name: "1024 penalised pendula by zhang-skeel, per step, over one",
        target: 0.3,
        measure: |_| lanes_over_run(PENDULUM, "zhang-skeel", Some("50")),
    },
    Row {
        name: "1024 pendula by rattle with 11 samples, over 2",
        target: 1.3,
        measure: |_| history("rattle"),
    },
    Row {
        name: "1024 pendula by plain:rk4 with 11 samples, over 2",
        target: 1.3,
        measure: |_| history("plain:rk4"),
    },
    Row {
        name: "1024 pendula by corrected:dop853 at 1e-9 with 11 samples, over 2",
        target: 1.3,
        measure: |_| history_of(&adaptive("corrected:dop853", 1e-9, 20.0)),
    },
    Row {
        // At this tolerance the median of the errors is below 1e-10.
        name: "4096 adaptive pendula to T = 10 at 7e-11, per core, over C's rk4 with h = 1e-3 (at most 0.1)",
        target: 0.1,
        measure: |c| {
            let options = adaptive("corrected:dop853", 7e-11, 10.0);
            let (limit, ours) = in_turns(
                5,
                || {
                    10_000.0
                        * c.seconds("ensemble-vec", 1e-3, 500).min(c.seconds(
                            "ensemble-soa",
                            1e-3,
                            500,
                        ))
                },
                || ensemble(&options, 4096, &[("p", "(1+1e-3*i/N, 0, -1)")]),
            );
            ours / limit
        },
    },
];

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let Some(limit) = Limit::compile("drive_pendulum") else { return };
    // As many threads as the C has.
    holonome::set_threads(1).expect("no threads yet");
    println!("ratio  target");
    for row in ROWS
        .iter()
        .filter(|row| wanted.is_empty() || wanted.iter().any(|part| row.name.contains(part)))
    {
        println!("{:5.2}  {:5.2}   {}", (row.measure)(&limit), row.target, row.name);
    }
}
