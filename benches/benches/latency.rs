//! Time until a run begins: `cargo bench -p holonome-benches --bench latency` (criterion). The
//! command line is timed as a process, if `cargo build --release -p holonome-cli` has built it.
//!
//! Targets for the spherical pendulum: a step is machine code 2 ms after its problem is checked, a
//! process that runs to t = 1 ends within 30 ms. The time of compiling includes everything that a
//! run evaluates: its samples and its invariants too, and the correction twice, within the step and
//! alone.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use holonome::model::graph::fuse::fuse;
use holonome::model::graph::optimise::optimise;
use holonome::model::graph::tape::Tape;
use holonome::model::treatment::Field;
use holonome::model::treatment::feedback::gauss_newton;
use holonome::{Problem, RunOptions, Settings, prepare};
use std::ffi::OsStr;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models").join(format!("{name}.holo"))
}

fn load() -> Problem {
    Problem::load(model("spherical-pendulum"), &Settings::default())
        .expect("a model of the repository")
}

fn options(method: &str, step: Option<f64>) -> RunOptions {
    RunOptions {
        method: method.parse().expect("a method"),
        step: step.into(),
        ..RunOptions::default()
    }
}

/// Time from a model's file to a checked problem, and from a problem to machine code: the step, and
/// all else that a run evaluates.
fn latency(criterion: &mut Criterion) {
    criterion.bench_function("read and check the spherical pendulum", |bench| {
        bench.iter(|| black_box(load()))
    });
    for (method, step) in
        [("plain:rk4", Some(1e-3)), ("corrected:rk4", Some(1e-3)), ("corrected:dop853", None)]
    {
        criterion.bench_function(&format!("compile a run of it by {method}"), |bench| {
            bench.iter_batched(
                load,
                |problem| {
                    black_box(
                        prepare(problem, options(method, step)).expect("a method that suits it"),
                    )
                },
                BatchSize::SmallInput,
            )
        });
    }
}

/// Stages of compiling a formula, for the field and for the longest of the formulas.
fn stages(criterion: &mut Criterion) {
    let problem = load();
    let (field, _) = problem.examined.field.as_ref().expect("a small model is unrolled");
    let vector_of: Vec<usize> = (0..field.dimension).collect();
    let (held, _) = gauss_newton(field, &vector_of);
    for (name, Field { graph, field: roots, dimension, parameters, .. }) in
        [("field", &**field), ("field with feedback", &held)]
    {
        let mut group = criterion.benchmark_group(format!("the pendulum's {name}"));
        group.bench_function("optimise", |bench| bench.iter(|| black_box(optimise(graph, roots))));
        let (graph, roots) = optimise(graph, roots);
        group.bench_function("fuse", |bench| bench.iter(|| black_box(fuse(&graph, &roots))));
        let (graph, roots) = fuse(&graph, &roots);
        let lay_out = || Tape::of_fused(&graph, &roots, *dimension, *parameters);
        group.bench_function("lay out", |bench| bench.iter(|| black_box(lay_out())));
        let (tape, best) = (lay_out(), holonome_jit::best(false));
        group.bench_function("emit", |bench| {
            bench.iter(|| black_box(best.backend.compile(&tape, 1).map(drop)))
        });
    }
}

/// Time of the command line from its start to its end.
fn process(criterion: &mut Criterion) {
    // Beside the folder of this program.
    let this = std::env::current_exe().unwrap_or_default();
    let program = this
        .ancestors()
        .nth(2)
        .unwrap_or(&this)
        .join(format!("holonome{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        eprintln!("{} is not built: the command line is not timed", program.display());
        return;
    }
    let run = |arguments: &[&OsStr]| {
        let status = Command::new(&program)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.expect("a program that was built runs").success());
    };
    criterion
        .bench_function("holonome --version", |bench| bench.iter(|| run(&["--version".as_ref()])));
    criterion.bench_function("holonome run spherical-pendulum.holo --until 1", |bench| {
        let folder = tempfile::tempdir().expect("a folder for runs");
        let (file, mut number) = (model("spherical-pendulum"), 0);
        bench.iter(|| {
            number += 1;
            let out = folder.path().join(number.to_string());
            run(&[
                "run".as_ref(),
                file.as_ref(),
                "--until".as_ref(),
                "1".as_ref(),
                "--out".as_ref(),
                out.as_ref(),
            ]);
        });
    });
}

criterion_group!(benches, latency, stages, process);
criterion_main!(benches);
