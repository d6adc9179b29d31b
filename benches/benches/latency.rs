//! How long it takes until a run begins: `cargo bench -p holonome-benches --bench latency` (criterion).

use criterion::{Criterion, criterion_group, criterion_main};
use holonome::{Problem, RunOptions, Settings, Simulation};
use std::hint::black_box;
use std::path::{Path, PathBuf};

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models").join(format!("{name}.holo"))
}

fn options(method: &str, step: Option<f64>) -> RunOptions {
    RunOptions { method: method.to_string(), step, ..RunOptions::default() }
}

/// A model's file to a checked problem, and a problem to machine code.
fn latency(criterion: &mut Criterion) {
    let settings = Settings::default();
    let load = || Problem::load(&model("spherical-pendulum"), &settings).expect("a model of the repository");
    criterion.bench_function("read and check the spherical pendulum", |bench| bench.iter(|| black_box(load())));
    for (method, step) in [("plain:rk4", Some(1e-3)), ("corrected:rk4", Some(1e-3)), ("corrected:dop853", None)] {
        criterion.bench_function(&format!("compile its step by {method}"), |bench| {
            bench.iter_batched(
                load,
                |problem| black_box(Simulation::new(problem, options(method, step)).expect("a method that suits it")),
                criterion::BatchSize::SmallInput,
            )
        });
    }
}

criterion_group!(benches, latency);
criterion_main!(benches);
