//! Test that a trajectory's start allocates nothing, with its time, and that the parts of a run are
//! allocated once. A program of its own without a test harness, because the counter covers the
//! whole process.

use holonome::{Problem, RunOptions, Settings, SweepOptions, prepare};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

/// Families, sums, velocities, hidden constraints, parameters that follow others.
const FAMILY: &str = "\
size n = 5
parameter a = 1
parameter m[k in 1..n] = 1 + a*k + exp(-a)
coordinate r[k in 1..n] : R^2 = (sin(a*k), cos(a*k))
velocity v of r = (a*cos(a*k), -a*sin(a*k))
hamiltonian sum(k in 1..n : dot(p_r[k], p_r[k])/(2*m[k]))
constraint c[k in 1..n] : dot(r[k], r[k]) = 1
";

/// Names and their values.
type Vary = &'static [(&'static str, &'static str)];

/// Preparing a run compiles only what its method calls: the allocations of formulas are
/// proportional to their length, about as many for every processor.
fn a_method_compiles_what_it_calls() {
    const METHOD: &str = "rattle";
    /// Measured: 6690; the field of a Runge–Kutta method would add its formulas.
    const MOST: usize = 7400;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/double-pendulum.holo");
    let count = || {
        let problem = Problem::load(&file, &Settings::default()).unwrap();
        let options = RunOptions {
            method: METHOD.parse().unwrap(),
            step: Some(1e-3).into(),
            ..RunOptions::default()
        };
        let region = Region::new(ALLOCATOR);
        let simulation = prepare(problem, options).unwrap();
        let allocations = region.change().allocations;
        drop(simulation);
        allocations
    };
    count(); // Allocated once per process.
    let allocations = count();
    assert!(allocations <= MOST, "{METHOD}: {allocations} allocations, at most {MOST}");
    println!("a method compiles what it calls ({METHOD}: {allocations} allocations) ... ok");
}

/// The folder of a run consists of documents that are put together once.
fn a_folder_takes_few_allocations() {
    /// Measured: 2747; with documents serialised into the documents that hold them, 3744.
    const MOST: usize = 3000;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/double-pendulum.holo");
    let folder = tempfile::tempdir().unwrap();
    let out = Some(folder.path().join("run"));
    let problem = Problem::load(&file, &Settings::default()).unwrap();
    let mut simulation = prepare(problem, RunOptions { out, ..RunOptions::default() }).unwrap();
    let region = Region::new(ALLOCATOR);
    simulation.open().unwrap();
    let allocations = region.change().allocations;
    assert!(allocations <= MOST, "{allocations} allocations, at most {MOST}");
    println!("a folder takes few allocations ({allocations}) ... ok");
}

/// The bytes that a large model allocates grow with its rows, by a bounded number for each. Freed
/// bytes count as well, since the system clears each of their pages first.
fn a_link_takes_few_bytes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/chain.holo");
    let of = |links: usize| {
        let settings =
            Settings { set: vec![("n".to_string(), links.to_string())], ..Settings::default() };
        let options = RunOptions {
            method: "rattle".parse().unwrap(),
            step: Some(1e-3).into(),
            ..RunOptions::default()
        };
        let mut region = Region::new(ALLOCATOR);
        let problem = Problem::load(&file, &settings).unwrap();
        let checked = region.change_and_reset().bytes_allocated;
        let mut simulation =
            prepare(problem, RunOptions { until: 2e-3, samples: Some(2), ..options }).unwrap();
        let prepared = region.change_and_reset().bytes_allocated;
        let solution = simulation.solve().unwrap();
        let run = region.change().bytes_allocated;
        drop(solution);
        [checked, prepared, run]
    };
    let (few, many) = (of(10_000), of(30_000));
    // Measured: 1377 (240 of them to tell redundant constraints), 607 and 1298; a second pattern of
    // DF beside the first, or a Jacobian beside the scratch of a step, takes a hundred each.
    for (k, (part, most)) in
        [("checked", 1400), ("prepared", 630), ("run", 1340)].into_iter().enumerate()
    {
        let bytes = (many[k] - few[k]) / 20_000;
        assert!(bytes <= most, "{part}: {bytes} bytes for each link, at most {most}");
        println!("a link takes few bytes (to be {part}: {bytes}) ... ok");
    }
}

fn main() {
    a_method_compiles_what_it_calls();
    a_folder_takes_few_allocations();
    a_link_takes_few_bytes();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let pendulum = std::fs::read_to_string(folder.join("spherical-pendulum.holo")).unwrap();
    let cases: [(&str, &str, Vary); 3] = [
        ("spherical pendulum", &pendulum, &[("q", "(0,1,0)"), ("p", "(0.1*normal(),0,-1)")]),
        (
            "its rod varies too",
            &pendulum,
            &[("l", "1+uniform()"), ("q", "(0,l,0)"), ("p", "(0.1*normal(),0,-1)")],
        ),
        ("family of five", FAMILY, &[("a", "1 + uniform()")]),
    ];
    for (name, text, vary) in cases {
        let vary: Vec<_> =
            vary.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let (problem, starts) = Problem::from_text_varied(
            "model",
            text,
            &BTreeMap::new(),
            &Settings::default(),
            &SweepOptions { trajectories: 200_000, vary, ..SweepOptions::default() },
        )
        .unwrap();
        let (mut parameters, mut x) =
            (problem.model.parameter_values.clone(), problem.model.initial.clone());
        let mut work = starts.work();
        let count = if cfg!(debug_assertions) { 1000 } else { starts.trajectories() };
        // The first ones are interpreted, and then compiled.
        for i in 0..256 {
            starts.at(i, &mut parameters, &mut x, &mut work).unwrap();
        }
        let (region, begin) = (Region::new(ALLOCATOR), Instant::now());
        for i in 0..count {
            starts.at(i, &mut parameters, &mut x, &mut work).unwrap();
        }
        let nanoseconds = begin.elapsed().as_secs_f64() / count as f64 * 1e9;
        let change = region.change();
        assert_eq!(change.allocations + change.reallocations, 0, "{name}");
        println!("a start allocates nothing ({name}, {nanoseconds:.0} ns) ... ok");
    }
}
