//! Steps and tolerances that spend a given budget (Chang, Perlmutter, Vankerschaver 2022, Fig. 6,
//! right).

use super::Failed;
use super::trial::Monitor;
use crate::error::Error;
use crate::options::{RunOptions, StepSize};
use crate::problem::Problem;
use crate::simulation::{Simulation, prepare};
use crate::summary::RunCost;
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::run::Outcome;
use holonome_integrate::state::StepState;
use std::convert::Infallible;

/// Maximum number of runs tried for a step. Three suffice if a step costs the same at every length;
/// Newton iterations need a few more.
const ROUNDS: u32 = 12;

/// Range of the tolerances tried, as powers of ten, and number of halvings of this range: to 0.3 %
/// of a decade.
const TOLERANCES: (f64, f64) = (-15.0, -1.0);
const HALVINGS: u32 = 12;

/// The run with the shortest step h that the budget pays for, T/h being an integer. Because of
/// Newton iterations the cost of a step may depend on h: the best of the runs tried is taken.
pub(super) fn step(
    problem: &Problem,
    options: RunOptions,
    budget: u64,
    monitor: &Monitor<'_>,
) -> Result<Result<Simulation, Failed>, Error> {
    // No step costs less than a gradient.
    let (mut untried, mut steps) = (1..budget + 1, budget);
    let (mut best, mut price) = (None, 0);
    for _ in 0..ROUNDS {
        let options =
            RunOptions { step: StepSize::Fixed(options.until / steps as f64), ..options.clone() };
        let simulation = prepare(problem.clone(), options)?;
        let Spent { steps: made, spent, complete } = spent(&simulation, 2 * budget, monitor);
        if made == 0 {
            // The run fails at once, and will report the reason.
            return Ok(Ok(simulation));
        }
        price = spent.div_ceil(made);
        let affordable = (budget as f64 * made as f64 / spent.max(1) as f64) as u64;
        if spent <= budget {
            // A run that fails is cheap; it is kept only if there is no other, for the reason of
            // its failure.
            if complete || best.is_none() {
                best = Some(simulation);
            }
            untried.start = steps + 1;
        } else {
            untried.end = steps;
        }
        if untried.is_empty() {
            break;
        }
        steps = affordable.clamp(untried.start, untried.end - 1);
    }
    Ok(best.ok_or_else(|| unaffordable(budget, "a single step", price)))
}

/// The run with the tightest relative tolerance that the budget pays for.
pub(super) fn tolerance(
    problem: &Problem,
    options: RunOptions,
    budget: u64,
    monitor: &Monitor<'_>,
) -> Result<Result<Simulation, Failed>, Error> {
    let attempt = |power: f64| -> Result<(Simulation, u64), Error> {
        let tolerance = 10f64.powf(power);
        let options = RunOptions { step: StepSize::adaptive(tolerance), ..options.clone() };
        let simulation = prepare(problem.clone(), options)?;
        let Spent { spent, .. } = spent(&simulation, budget, monitor);
        Ok((simulation, spent))
    };
    let (mut tight, mut loose) = TOLERANCES;
    let (simulation, spent) = attempt(tight)?;
    if spent <= budget {
        return Ok(Ok(simulation));
    }
    let (mut best, spent) = attempt(loose)?;
    if spent > budget {
        return Ok(Err(unaffordable(budget, "a run, not even with the tolerance 0.1", spent)));
    }
    for _ in 0..HALVINGS {
        let power = (tight + loose) / 2.0;
        let (simulation, spent) = attempt(power)?;
        if spent <= budget {
            (loose, best) = (power, simulation);
        } else {
            tight = power;
        }
    }
    Ok(Ok(best))
}

fn unaffordable(budget: u64, what: &str, price: u64) -> Failed {
    let message = format!(
        "a budget of {budget} does not pay for {what}, which takes at least {price}: give more"
    );
    Failed { kind: "budget".to_string(), message, t: None }
}

/// Steps and costs of a run, which ends once it has cost more than `most`.
struct Pilot<'a> {
    steps: u64,
    spent: u64,
    most: u64,
    monitor: &'a Monitor<'a>,
}

impl Observer for Pilot<'_> {
    type Error = Infallible;

    fn step(&mut self, state: &StepState) -> Result<Control, Infallible> {
        (self.steps, self.spent) = (state.step, RunCost::new(&state.cost, 0.0).in_gradients());
        Ok(if self.spent > self.most { Control::Stop } else { self.monitor.look() })
    }
}

/// Result of a pilot run.
struct Spent {
    steps: u64,
    spent: u64,
    /// True if it reached its end.
    complete: bool,
}

/// Run until the end, or until more than `most` is spent.
fn spent(simulation: &Simulation, most: u64, monitor: &Monitor<'_>) -> Spent {
    let ends = simulation.plan.clone().with_samples(2).expect("two samples suit every plan");
    let mut pilot = Pilot { steps: 0, spent: 0, most, monitor };
    // A failure will show in the run itself.
    let outcome = simulation.run_unstored(&ends, &mut simulation.state().clone(), &mut pilot);
    Spent {
        steps: pilot.steps,
        spent: pilot.spent,
        complete: matches!(outcome, Ok(Outcome::Finished | Outcome::Event)),
    }
}
