//! Test that a step allocates nothing: ten times the steps make no more allocations. A program of
//! its own without a test harness, because the counter sees the whole process.

mod common;

use common::*;
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::Gain;
use holonome_integrate::plan::Plan;
use holonome_integrate::run::run;
use holonome_integrate::state::StepState;
use holonome_integrate::system::System;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

/// Observer that reads everything and keeps nothing.
struct Glance(f64);

impl Observer for Glance {
    type Error = std::convert::Infallible;

    fn sample(&mut self, _index: usize, t: f64, x: &[f64]) -> Result<(), Self::Error> {
        self.0 += t + x[0];
        Ok(())
    }

    fn step(&mut self, state: &StepState) -> Result<Control, Self::Error> {
        self.0 += state.x[0];
        Ok(Control::Continue)
    }
}

fn allocations(plan: &Plan, system: &dyn System, x0: &[f64]) -> (usize, u64) {
    let mut state = StepState::new(plan, system, x0, None);
    let region = Region::new(ALLOCATOR);
    run(plan, system, &mut state, &mut Glance(0.0)).unwrap();
    let change = region.change();
    (change.allocations + change.reallocations, state.step)
}

fn main() {
    for treatment in ["plain", "corrected", "projection", "symmetric-projection"] {
        for scheme in ["rk4", "dopri5", "dop853"] {
            let name = format!("{treatment}:{scheme}");
            let plan = |t_end: f64| {
                let mut plan =
                    Plan::fixed(method(&name), 0.0, t_end, 0.01).unwrap().with_samples(50).unwrap();
                plan.gain = Some(Gain::Diagonal(PENDULUM_GAINS.to_vec()));
                plan
            };
            let (system, x0) = (pendulum(), PENDULUM_START);
            let warm_up = allocations(&plan(1.0), &system, &x0); // builds the scheme's tableau
            assert!(warm_up.0 > 0, "the counter counts");
            let (few, many) =
                (allocations(&plan(1.0), &system, &x0), allocations(&plan(10.0), &system, &x0));
            assert_eq!((few.0, many.1), (many.0, 10 * few.1), "{name}, fixed");
            if scheme == "rk4" || treatment == "symmetric-projection" {
                continue;
            }
            let plan = |t_end: f64| {
                Plan::adaptive(method(&name), 0.0, t_end, 1e-7, 1e-7)
                    .unwrap()
                    .with_samples(100)
                    .unwrap()
            };
            let (few, many) =
                (allocations(&plan(2.0), &system, &x0), allocations(&plan(20.0), &system, &x0));
            assert!(many.1 > 5 * few.1);
            assert_eq!(few.0, many.0, "{name}, adaptive");
        }
    }
    println!("a step allocates nothing ... ok");
}
