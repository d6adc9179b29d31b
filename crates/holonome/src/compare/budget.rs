//! Steps and tolerances that spend a given budget (Chang, Perlmutter, Vankerschaver 2022, Fig. 6, right).

use super::trial::Monitor;
use super::{Failed, budget_of};
use crate::error::Error;
use crate::options::{RunOptions, StepSize};
use crate::problem::Problem;
use crate::simulation::{Simulation, prepare};
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::run::Outcome;
use holonome_integrate::state::StepState;
use std::convert::Infallible;

/// Runs that are tried for a step. One that costs the same at every step needs three, and Newton iterations a few more.
const ROUNDS: u32 = 12;

/// Tolerances that are tried, as powers of ten, and halvings of this range: to 0.3 % of a decade.
const TOLERANCES: (f64, f64) = (-15.0, -1.0);
const HALVINGS: u32 = 12;

/// The run with the shortest step h, T/h being an integer, that the budget pays for. What a step costs may depend on it,
/// because of Newton iterations: of the runs that are tried the best one is taken.
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
        let options = RunOptions { step: StepSize::Fixed(options.until / steps as f64), ..options.clone() };
        let simulation = prepare(problem.clone(), options)?;
        let Spent { steps: made, spent, complete } = spent(&simulation, 2 * budget, monitor);
        if made == 0 {
            // It fails at once, and will say why.
            return Ok(Ok(simulation));
        }
        price = spent.div_ceil(made);
        let affordable = (budget as f64 * made as f64 / spent.max(1) as f64) as u64;
        if spent <= budget {
            // A run that fails is cheap; it counts where there is no other, to say why there is none.
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

/// The run with the tightest tolerance, relative and absolute, that the budget pays for.
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
    let message = format!("a budget of {budget} does not pay for {what}, which takes at least {price}: give more");
    Failed { kind: "budget", message, t: None }
}

/// Steps and costs of a run, which ends where it has cost more than it may.
struct Pilot<'a> {
    steps: u64,
    spent: u64,
    most: u64,
    monitor: &'a Monitor<'a>,
}

impl Observer for Pilot<'_> {
    type Error = Infallible;

    fn step(&mut self, state: &StepState) -> Result<Control, Infallible> {
        (self.steps, self.spent) = (state.step, budget_of(&state.cost));
        Ok(if self.spent > self.most { Control::Stop } else { self.monitor.look() })
    }
}

/// What became of a trial.
struct Spent {
    steps: u64,
    spent: u64,
    /// Whether it came to its end.
    complete: bool,
}

/// Runs until it ends or has spent more than `most`.
fn spent(simulation: &Simulation, most: u64, monitor: &Monitor<'_>) -> Spent {
    let ends = simulation.plan.clone().with_samples(2).expect("two samples suit every plan");
    let mut pilot = Pilot { steps: 0, spent: 0, most, monitor };
    // A failure will show in the run itself.
    let outcome = simulation.run_unstored(&ends, &mut simulation.state().clone(), &mut pilot);
    Spent { steps: pilot.steps, spent: pilot.spent, complete: matches!(outcome, Ok(Outcome::Finished)) }
}
