//! Test that a step of a compiled run allocates nothing: ten times the steps make no more
//! allocations. A program of its own without a test harness, because the counter covers the whole
//! process.
//!
//! Other allocations of a run (scratch, samples, its summary) depend on its plan and not on the
//! number of steps, so two runs are compared that differ only in their length. A recorder looks at
//! the clock after every 64th step or block of steps, and its further actions depend on the time:
//! the compared runs end before. A long run has a bound in its time.

mod common;

use common::{load, options, repository};
use holonome::model::graph::interpret::{Backend, Interpreter};
use holonome::model::rows::{BLOCK, RowKernel};
use holonome::{Control, Problem, RunOptions, Settings, Sweep, SweepOptions, prepare};
use holonome_jit::{BlockInterpreter, best};
use rayon::{ThreadPool, ThreadPoolBuilder};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

/// A few numbers in the state and many rows: templated, with the clock checked as rarely as for a
/// small model.
const WELLS: &str = "size n = 50000\ncoordinate q = 0.3\nmomentum p of q = 0.2\n\
    hamiltonian p^2/2 + sum(i in 1..n : sin(i)^2*cos(8*q*i/n))/n\n";

/// Rows that gather from all over a long state, with invariants of them.
const RING: &str = "size n = 20000\nparameter m[i in 1..n] = 1 + 0.5*sin(i)\ncoordinate q[i in 1..n] = 0.3*sin(i)\n\
    momentum p of q = 0.2*cos(2*i)\nlet next(i) = if(i == n, q[1], q[i + 1])\n\
    hamiltonian sum(i in 1..n : p[i]^2/(2*m[i])) + sum(i in 1..n : 1 - cos(next(i) - q[i]))\n\
    integral P = sum(i in 1..n : p[i])\n";

/// Sums long enough for threads to share them.
const BODIES: &str = "size n = 900\ncoordinate q[i in 1..n] : R^2 = (cos(2.4*i), sin(2.4*i))*sqrt(i/n)\n\
    momentum p[i] of q = (0, 0)\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/2) - \
    sum(i in 1..n, j in i+1..n : 1/sqrt(dot(q[i] - q[j], q[i] - q[j]) + 0.01))/n^2\n";

/// Counts of a run.
#[derive(Clone, Copy)]
struct Counts {
    allocations: usize,
    /// Reallocations of growing buffers.
    reallocations: usize,
    steps: u64,
    /// Number of progress reports, and the time in seconds.
    shown: usize,
    seconds: f64,
}

fn count(problem: Problem, options: RunOptions) -> Counts {
    let folder = tempfile::tempdir().unwrap();
    let options = RunOptions { out: Some(folder.path().join("run")), ..options };
    let mut simulation = prepare(problem, options).unwrap();
    simulation.open().unwrap();
    let mut shown = 0;
    let mut watch = |_: &holonome::Progress| {
        shown += 1;
        Control::Continue
    };
    let (region, begin) = (Region::new(ALLOCATOR), Instant::now());
    let summary = simulation.run(&mut watch);
    let (change, seconds) = (region.change(), begin.elapsed().as_secs_f64());
    let steps = summary.unwrap().steps;
    Counts {
        allocations: change.allocations,
        reallocations: change.reallocations,
        steps,
        shown,
        seconds,
    }
}

/// Number of steps or blocks of steps between two checks of the clock.
const LOOK: u64 = 64;
/// Steps of a block, if steps are compiled as a whole and nothing is sampled between them. (A
/// feedback term is.)
const LONGEST_BLOCK: u64 = 1024;

/// Texts at the end of a run (its summary), written into buffers that double; longer numbers may
/// take one more doubling of each, and one that is not 0 a buffer. The longer run has ten times as
/// many steps: more than this.
const TEXTS: usize = 4;

/// Compare runs to `until` and to ten times that. A recorder is called for every step, or for every
/// block of `block` steps.
fn compare(name: &str, problem: &dyn Fn() -> Problem, (text, until, block): (&str, f64, u64)) {
    // A sample on the way: for an adaptive run, by dense output.
    let run =
        |until: f64| count(problem(), RunOptions { until, samples: Some(3), ..options(text) });
    run(until); // Allocated once per process: the scheme's tableau.
    let (few, many) = (run(until), run(10.0 * until));
    assert!(few.allocations > 0, "the counter counts");
    // The first steps of an adaptive run are short ones.
    assert!(
        few.steps > 2 * block && many.steps > 4 * few.steps,
        "{name}, {text}: {} and {} steps",
        few.steps,
        many.steps
    );
    assert!(
        many.steps < LOOK * block && many.shown == 0,
        "{name}, {text}: {} steps, longer than is comparable",
        many.steps
    );
    for more in [
        many.allocations.saturating_sub(few.allocations),
        many.reallocations.saturating_sub(few.reallocations),
    ] {
        assert!(more <= TEXTS, "{name}, {text}: {more} more allocations in {} steps", many.steps);
    }
    println!("a step allocates nothing ({name}, {text}: {} steps) ... ok", many.steps);
}

/// Check a run that reports its progress every 20 ms at the soonest and stores a checkpoint every
/// second at the soonest.
fn long(problem: &dyn Fn() -> Problem, text: &str) {
    let short = count(problem(), RunOptions { until: 1.0, ..options(text) });
    let long = count(problem(), options(text));
    // A progress report names each of the four invariants, a hidden constraint in two pieces. A
    // checkpoint is the state as text, some hundred numbers.
    let most = 8 * long.shown + 1000 * long.seconds as usize + TEXTS;
    let all = |counts: Counts| counts.allocations + counts.reallocations;
    let more = all(long).saturating_sub(all(short));
    assert!(long.steps > 100_000, "{} steps", long.steps);
    assert!(
        more <= most,
        "{more} allocations more in {} steps, {} s; at most {most}",
        long.steps,
        long.seconds
    );
    println!("a long run allocates by the clock only ({more} in {} steps) ... ok", long.steps);
}

/// Compare an ensemble in lanes to `until` and to ten times that: the allocations of a trajectory
/// do not depend on its steps.
fn lanes(text: &str, until: f64) {
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let run = |until: f64| {
        let folder = tempfile::tempdir().unwrap();
        let options = RunOptions { out: Some(folder.path().join("sweep")), until, ..options(text) };
        let sweep = SweepOptions {
            trajectories: 40,
            vary: vec![("m".into(), "1+i/N".into())],
            ..SweepOptions::default()
        };
        let model = repository().join("models/spherical-pendulum.holo");
        let mut sweep = Sweep::load(&model, &Settings::default(), options, sweep).unwrap();
        sweep.open().unwrap();
        let (region, begin) = (Region::new(ALLOCATOR), Instant::now());
        let summary = pool.install(|| sweep.run(&mut |_| Control::Continue)).unwrap();
        (region.change(), begin.elapsed().as_secs_f64(), summary.steps)
    };
    run(until);
    let ((few, _, few_steps), (many, seconds, many_steps)) = (run(until), run(10.0 * until));
    assert!(
        many_steps > 5 * few_steps && many_steps > 2000,
        "{text}: {few_steps} and {many_steps} steps"
    );
    // Threads hand tasks to each other in blocks that are allocated now and then; a checkpoint as
    // in a single run. The terms of the invariants are measured after 1, 2, 4, … steps, four times
    // more in ten times the steps, with the parameters of each of 40 trajectories in turn.
    let most = 16 + 4 * 40 * 2 + 1000 * seconds as usize;
    let more =
        (many.allocations + many.reallocations).saturating_sub(few.allocations + few.reallocations);
    assert!(more <= most, "{text}: {more} allocations more in {many_steps} steps, at most {most}");
    println!("lanes allocate nothing in a step ({text}: {many_steps} steps) ... ok");
}

/// Check that rows allocate nothing, with any backend.
fn rows(pool: &ThreadPool, name: &str, text: &str) {
    let problem = Problem::from_text(name, text, &BTreeMap::new(), &Settings::default()).unwrap();
    let (model, field) = (&problem.model, problem.examined.rows.as_ref().expect("a large model"));
    let backends: [Box<dyn Backend>; 3] =
        [best(false).backend, Box::new(BlockInterpreter::detect()), Box::new(Interpreter)];
    for backend in &backends {
        for program in [&field.field, &field.invariants, &field.jacobian] {
            let kernel = RowKernel::new(program, &model.parameter_values, backend.as_ref(), BLOCK);
            let (mut out, mut work) = (vec![0.0; program.outputs], vec![0.0; kernel.work_len()]);
            let mut run = |times: u32| {
                (0..times)
                    .for_each(|k| kernel.run(f64::from(k), &model.initial, &mut out, &mut work));
            };
            let change = pool.install(|| {
                // Allocated once per thread.
                if kernel.is_divided() {
                    run(20);
                }
                let region = Region::new(ALLOCATOR);
                run(3);
                region.change()
            });
            assert_eq!(
                change.allocations + change.reallocations,
                0,
                "{name}, {} outputs",
                program.outputs
            );
        }
    }
    println!("rows allocate nothing ({name}) ... ok");
}

/// Run this program once more, with kernels that are compiled before they are first run: compiling
/// one in the middle of a run allocates, once. Returns if this is that program.
fn compile_at_once() {
    const BACKEND: &str = "HOLONOME_BACKEND";
    if std::env::var_os(BACKEND).is_none() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        let status = again.args(std::env::args_os().skip(1)).env(BACKEND, "machine").status();
        std::process::exit(status.unwrap().code().unwrap_or(1));
    }
}

fn main() {
    compile_at_once();
    let pendulum = || load(&repository().join("models/spherical-pendulum.holo"), &[]).unwrap();
    let wells =
        || Problem::from_text("wells", WELLS, &BTreeMap::new(), &Settings::default()).unwrap();
    assert!(wells().examined.rows.is_some());
    for case in [
        ("--method feedback:rk4 --gain 50 --step 0.001", 0.006, 1),
        // Half as many blocks as steps between two checks: some blocks are shorter, before samples,
        // measurements, the end.
        ("--method corrected:rk4 --step 0.001", 3.0, LONGEST_BLOCK),
        ("--method corrected:dop853 --rtol 1e-10 --atol 1e-10", 0.7, 1),
        ("--method corrected:dopri5 --rtol 1e-6 --atol 1e-6", 0.6, 1),
        ("--method corrected:taylor", 1.4, 1),
        ("--method taylor --step 0.01", 0.05, 1),
        ("--method feedback:tsit5 --gain 10 --rtol 1e-6 --atol 1e-6", 0.07, 1),
    ] {
        compare("pendulum", &pendulum, case);
    }
    long(
        &pendulum,
        "--method corrected:dop853 --rtol 1e-10 --atol 1e-10 --samples 3 --until 20000",
    );
    lanes("--method feedback:rk4 --gain 50 --step 0.001 --samples 2", 5.0);
    lanes("--method corrected:dop853 --samples 2", 2.0);
    lanes("--method corrected:dopri5 --samples 2", 2.0);
    for case in [
        ("--method plain:rk4 --step 0.001", 0.005, 1),
        ("--method corrected:rk4 --step 0.001", 0.005, 1),
        ("--method corrected:dopri5 --rtol 1e-6", 1.0, 1),
    ] {
        compare("rows", &wells, case);
    }
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    pool.install(|| {
        let bodies = || {
            Problem::from_text("bodies", BODIES, &BTreeMap::new(), &Settings::default()).unwrap()
        };
        assert!(
            prepare(bodies(), options("--method plain:rk4 --step 0.001")).unwrap().is_divided()
        );
        compare("bodies", &bodies, ("--method plain:rk4 --step 0.001", 0.005, 1));
    });
    rows(&pool, "wells", WELLS);
    rows(&pool, "ring", RING);
    rows(&pool, "bodies", BODIES);
}
