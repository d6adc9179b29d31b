//! Long sums are shared by threads, and no bit depends on their number: in runs, in ensembles, in
//! resumed runs.

mod common;

use common::{model, options};
use holonome::model::graph::interpret::{Backend, Interpreter};
use holonome::model::rows::{BLOCK, RowKernel};
use holonome::{
    Control, InvariantKind, Problem, Resumed, RunOptions, Settings, Simulation, SweepOptions,
    prepare, prepare_sweep,
};
use holonome_jit::{BlockInterpreter, best};
use std::collections::BTreeMap;

/// All pairs attract each other.
const BODIES: &str = "size n = 900\nparameter m[i in 1..n] = (1 + 0.5*sin(3*i))/n\nparameter soft = 0.01\n\
    coordinate q[i in 1..n] : R^3 = (cos(2.4*i)*sqrt(i/n), sin(2.4*i)*sqrt(i/n), 0.3*sin(7*i))\n\
    momentum p[i] of q = m[i]*(-0.5*sin(2.4*i), 0.5*cos(2.4*i), 0)\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i])) -\n\
    sum(i in 1..n, j in i+1..n : m[i]*m[j]/sqrt(dot(q[i] - q[j], q[i] - q[j]) + soft))\n";

fn bodies() -> Problem {
    Problem::from_text("bodies", BODIES, &BTreeMap::new(), &Settings::default()).unwrap()
}

/// Pairs found by lists, each of which serves for some of the steps.
fn argon() -> Problem {
    model("argon", &[("N", "1200")])
}

fn water() -> Problem {
    model("water", &[("N", "170")])
}

/// Result of `work` with one thread, checked to be the same with two and three.
fn with_any_threads(what: &str, work: impl Fn() -> Vec<f64> + Sync) -> Vec<f64> {
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(&work)
    };
    let one = with(1);
    for threads in [2, 3] {
        assert!(bits(&with(threads)) == bits(&one), "{what} with {threads} threads");
    }
    one
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// Start of a problem, moved slightly so that nothing cancels by symmetry.
fn moved(problem: &Problem) -> Vec<f64> {
    problem.model.initial.iter().enumerate().map(|(k, x)| x + 1e-3 * (k as f64).sin()).collect()
}

/// Every backend, with any number of threads, gives the same.
#[test]
fn sums() {
    let backends: [Box<dyn Backend>; 3] =
        [best(false).backend, Box::new(BlockInterpreter::detect()), Box::new(Interpreter)];
    for problem in [bodies(), argon(), water()] {
        let (model, rows) =
            (&problem.model, problem.examined.rows.as_ref().expect("a large model"));
        let x = moved(&problem);
        let [field, invariants] = [&rows.field, &rows.invariants];
        for program in [
            field,
            invariants,
            &field.in_columns(&rows.layout),
            &invariants.in_columns(&rows.layout),
        ] {
            let of = |backend: &dyn Backend| {
                let kernel = RowKernel::new(program, &model.parameter_values, backend, BLOCK);
                assert!(kernel.is_divided(), "{}", problem.name);
                with_any_threads(&problem.name, || {
                    let (mut out, mut work) =
                        (vec![0.0; program.outputs], vec![f64::NAN; kernel.work_len()]);
                    kernel.run(0.0, &x, &mut out, &mut work);
                    out
                })
            };
            let [machine, block, interpreter] = backends.each_ref().map(|backend| of(&**backend));
            assert!(bits(&machine) == bits(&interpreter), "{}: machine code", problem.name);
            assert!(bits(&block) == bits(&interpreter), "{}: blocks", problem.name);
        }
    }
}

fn run_options(method: &str, step: &str, until: &str) -> RunOptions {
    options(&format!("--method {method} --step {step} --until {until} --samples 2"))
}

fn state(summary: &holonome::Summary) -> Vec<f64> {
    summary.state.numbers().to_vec()
}

#[test]
fn runs() {
    for (problem, method, step, until) in [
        (bodies(), "stormer-verlet-a", "0.001", "0.005"),
        (bodies(), "plain:rk4", "0.001", "0.002"),
        (argon(), "stormer-verlet-a", "0.02", "0.2"),
        (water(), "rattle", "0.05", "0.2"),
    ] {
        with_any_threads(&format!("{} by {method}", problem.name), || {
            let mut simulation =
                prepare(problem.clone(), run_options(method, step, until)).unwrap();
            assert!(simulation.is_divided());
            let summary = simulation.solve().unwrap().summary;
            let drift = summary.drift.iter().flat_map(|drift| [drift.last, drift.max]);
            state(&summary).into_iter().chain(drift).collect()
        });
    }
}

/// The monitored energy of a run equals that of its samples: one is computed with the forces, the
/// other without them.
#[test]
fn samples() {
    for (problem, method, step, until) in [
        (bodies(), "stormer-verlet-a", "0.001", "0.01"),
        (argon(), "yoshida4(stormer-verlet-a)", "0.02", "0.2"),
        (water(), "rattle", "0.05", "0.5"),
    ] {
        let options = RunOptions { samples: Some(11), ..run_options(method, step, until) };
        let finished = prepare(problem, options).unwrap().solve().unwrap();
        let energy = finished
            .summary
            .drift
            .iter()
            .find(|drift| drift.kind == InvariantKind::Hamiltonian)
            .unwrap();
        let samples = finished.arrays.get("drift.H").unwrap();
        let largest = samples.values().iter().copied().fold(0.0, f64::max);
        assert!(
            energy.max > 0.0 && bits(&[energy.max]) == bits(&[largest]),
            "{method}: {} {largest}",
            energy.max
        );
    }
}

#[test]
fn runs_that_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let options = run_options("stormer-verlet-a", "0.001", "0.006");
    let whole = state(&prepare(bodies(), options.clone()).unwrap().solve().unwrap().summary);
    let pool =
        |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let until = RunOptions { out: Some(folder.path().join("run")), until: 0.003, ..options };
    pool(2).install(|| prepare(bodies(), until).unwrap().run(&mut |_| Control::Continue)).unwrap();
    let mut rest = Simulation::extend(folder.path().join("run"), 0.006).unwrap();
    let summary = pool(3).install(|| rest.run(&mut |_| Control::Continue)).unwrap();
    assert!(bits(&state(&summary)) == bits(&whole));
    assert!(matches!(
        Simulation::resume(folder.path().join("run")).unwrap(),
        Resumed::Finished { .. }
    ));
}

#[test]
fn ensembles() {
    let ensemble = with_any_threads("an ensemble", || {
        let sweep = SweepOptions {
            trajectories: 3,
            vary: vec![("soft".into(), "0.01 + 0.01*i".into())],
            ..SweepOptions::default()
        };
        let options = run_options("stormer-verlet-a", "0.001", "0.003");
        let mut sweep = prepare_sweep(&bodies(), options, sweep).unwrap();
        sweep.solve().unwrap().arrays.get("p").unwrap().values().to_vec()
    });
    let set = vec![("soft".to_string(), "0.02".to_string())];
    let problem = Problem::from_text(
        "bodies",
        BODIES,
        &BTreeMap::new(),
        &Settings { set, ..Settings::default() },
    )
    .unwrap();
    let mut run = prepare(problem, run_options("stormer-verlet-a", "0.001", "0.003")).unwrap();
    let alone = run.solve().unwrap();
    let alone = alone.arrays.get("p").unwrap().values();
    let third = ensemble.len() / 3;
    assert!(bits(&ensemble[third..2 * third]) == bits(alone));
}
