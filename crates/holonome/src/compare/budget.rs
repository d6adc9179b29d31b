//! Steps and tolerances that spend a given budget (Chang, Perlmutter, Vankerschaver 2022, Fig. 6, right).

use super::trial::Monitor;
use super::{Failed, budget_of};
use crate::error::Error;
use crate::options::RunOptions;
use crate::problem::Problem;
use crate::simulation::Simulation;
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::state::StepState;
use std::convert::Infallible;

/// A method whose steps cost different amounts is asked again for the steps that this gave, so often at most.
const ROUNDS: u32 = 4;

/// Steps from which their price is taken.
const PILOT_STEPS: u64 = 64;

/// Tolerances that are tried, as powers of ten, and halvings of this range: to 0.3 % of a decade.
const TOLERANCES: (f64, f64) = (-15.0, -1.0);
const HALVINGS: u32 = 12;

/// The run with the shortest step h, T/h being an integer, that the budget pays for.
pub(super) fn step(
    problem: &Problem,
    options: RunOptions,
    budget: u64,
    monitor: &Monitor<'_>,
) -> Result<Result<Simulation, Failed>, Error> {
    // No step costs less than a gradient.
    let mut steps = budget;
    for round in 1.. {
        let options = RunOptions { step: Some(options.until / steps as f64), ..options.clone() };
        let simulation = Simulation::new(problem.clone(), options)?;
        let Some((start, each)) = price(&simulation, monitor) else { return Ok(Ok(simulation)) };
        let affordable = (budget as f64 - start) / each;
        if affordable < 1.0 {
            return Ok(Err(unaffordable(budget, "a single step", (start + each) as u64)));
        }
        if affordable as u64 == steps || round == ROUNDS {
            return Ok(Ok(simulation));
        }
        steps = affordable as u64;
    }
    unreachable!("the rounds are counted")
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
        let options = RunOptions { rtol: tolerance, atol: tolerance, ..options.clone() };
        let simulation = Simulation::new(problem.clone(), options)?;
        let spent = spent(&simulation, budget, monitor);
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

/// Costs at the first and the last look at a run that ends early.
struct Pilot<'a> {
    first: Option<(u64, u64)>,
    last: (u64, u64),
    most_steps: u64,
    most_spent: u64,
    monitor: &'a Monitor<'a>,
}

impl Observer for Pilot<'_> {
    type Error = Infallible;

    fn sample(&mut self, _index: usize, _t: f64, _x: &[f64]) -> Result<(), Infallible> {
        Ok(())
    }

    fn step(&mut self, state: &StepState) -> Result<Control, Infallible> {
        self.last = (state.step, budget_of(&state.cost));
        self.first.get_or_insert(self.last);
        let enough = self.last.0 >= self.most_steps && self.first != Some(self.last);
        let enough = enough || self.last.1 > self.most_spent;
        Ok(if enough { Control::Stop } else { self.monitor.look() })
    }
}

fn pilot<'a>(simulation: &Simulation, most_steps: u64, most_spent: u64, monitor: &'a Monitor<'a>) -> Pilot<'a> {
    let ends = simulation.plan.clone().with_samples(2).expect("two samples suit every plan");
    let mut pilot = Pilot { first: None, last: (0, 0), most_steps, most_spent, monitor };
    // A failure will show in the run itself.
    drop(simulation.run_unstored(&ends, &mut simulation.state().clone(), &mut pilot));
    pilot
}

/// What a fixed-step run costs before its first step, and for each step; none where it makes none.
fn price(simulation: &Simulation, monitor: &Monitor<'_>) -> Option<(f64, f64)> {
    let pilot = pilot(simulation, PILOT_STEPS, u64::MAX, monitor);
    let ((n1, c1), (n2, c2)) = (pilot.first?, pilot.last);
    let each = if n2 > n1 { (c2 - c1) as f64 / (n2 - n1) as f64 } else { c1 as f64 / n1 as f64 };
    Some(((c1 as f64 - each * n1 as f64).max(0.0), each))
}

/// What an adaptive run spends, counted to a little beyond the budget.
fn spent(simulation: &Simulation, budget: u64, monitor: &Monitor<'_>) -> u64 {
    pilot(simulation, u64::MAX, budget, monitor).last.1
}
