//! Equal steps and attempts in loops of machine code, for steps that are one tape.

use super::bound::{Bound, Parametric, Quantities};
use super::formula::Formula;
use super::march::{self, Judging};
use super::mending::Mend;
use super::monitoring::Monitoring;
use super::settling::Settling;
use super::watching::Watching;
use super::whole_step::Ingredients;
use holonome_integrate::controller::slots::Slots;
use holonome_integrate::plan::{AdaptiveSteps, FixedSteps, Plan};
use holonome_integrate::scheme::map::{
    self, Blocks, Carry, KEPT_STATES, LoopPlaces, StateLoop, Workspace,
};
use holonome_integrate::state::Cost;
use holonome_integrate::tableau::Tableau;
use holonome_model::graph::Graph;
use holonome_model::graph::tape::Tape;
use holonome_model::treatment::Field;
use holonome_model::treatment::correction::deviation;
use std::ops::Range;

/// Equal steps in a loop.
#[derive(Clone)]
pub struct Repeated {
    pub(super) kernel: Bound,
    pub(super) monitoring: Monitoring,
    /// Length of (x, largest deviations, sides of events, carried numbers, number of the step).
    pub(super) len: usize,
    /// Number of sides of events.
    pub(super) sides: usize,
    /// Length of the carried scales of the vectors.
    pub(super) carried: usize,
    pub(super) evaluations: u64,
    pub(super) mend: Option<Mend>,
}

/// Tape of equal steps over a field, and of the mending of their results if `settling` has one. The
/// targets F₀ are parameters from number `targets` on.
pub(super) fn repeated_tape(
    ingredients: &Ingredients,
    field: &Field,
    targets: usize,
    settling: Option<&Settling>,
) -> Tape {
    let target = |g: &mut Graph, row: usize| g.parameter(targets + row - field.constraints);
    let mut first = field.clone();
    let delta = deviation(&mut first, target);
    let (nodes, groups) = Monitoring::of(field).deviations(&mut first, &delta);
    let roots = [&first.field[..], &nodes].concat();
    let first = Formula::new(&first.graph, &roots);
    let watching = Watching::new(field);
    ingredients.repeated(&first, (&groups, field.groups.len()), &watching, (settling, targets))
}

impl Repeated {
    /// Loop of equal steps of `plan`, with the targets F₀ in parameters from number `targets` on.
    pub fn new(
        (ingredients, field): (&Ingredients, &Field),
        (settling, targets): (Option<&Settling>, usize),
        (plan, fixed): (&Plan, &FixedSteps),
        parameters: &[f64],
    ) -> Repeated {
        let tape = repeated_tape(ingredients, field, targets, settling);
        Repeated {
            kernel: Bound::new(&tape, &[parameters, &[fixed.h, plan.t0]].concat()),
            monitoring: Monitoring::of(field),
            len: tape.outputs.len(),
            sides: field.watched.len(),
            carried: ingredients.kept.carried(&ingredients.vectors.vectors),
            evaluations: ingredients.scheme.evaluations()[0],
            mend: Mend::of(plan, field),
        }
    }

    /// Length of the state of the loop.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn kernel(&self) -> &Bound {
        &self.kernel
    }

    pub(super) fn kernel_mut(&mut self) -> &mut Bound {
        &mut self.kernel
    }

    pub(super) fn work_len(&self) -> usize {
        (1 + KEPT_STATES) * self.len + self.kernel.work_len()
    }

    /// Places of the sides of events and of the carried scales in the state of the loop.
    fn places(&self, dimension: usize, groups: usize) -> (Range<usize>, Range<usize>) {
        let sides = dimension + groups..dimension + groups + self.sides;
        let carried = sides.end..sides.end + self.carried;
        (sides, carried)
    }

    /// Set the state of the loop before step `first`, with `groups` groups of invariants.
    pub(super) fn enter(
        &self,
        x: &[f64],
        (scales, groups, known): (&[f64], usize, &[f64]),
        first: u64,
        state: &mut [f64],
    ) {
        let (n, (sides, carried)) = (x.len(), self.places(x.len(), groups));
        state[..n].copy_from_slice(x);
        state[n..sides.end].fill(0.0);
        state[sides.start..sides.start + known.len()].copy_from_slice(known);
        state[carried.clone()].copy_from_slice(&scales[..self.carried]);
        let mut rest = state[carried.end..self.len].iter_mut();
        if self.mend.is_some()
            && let Some(unsettled) = rest.next()
        {
            *unsettled = 0.0;
        }
        if let Some(number) = rest.next() {
            *number = first as f64;
        }
    }

    /// Copy the results of `count` steps from the state; true if they are good.
    pub(super) fn leave(
        &self,
        state: &[f64],
        count: u64,
        x: &mut [f64],
        (scales, innovation, cost): (&mut [f64], &mut f64, &mut Cost),
        (largest, kept): (&mut [f64], &mut [f64]),
    ) -> bool {
        let (n, groups) = (x.len(), largest.len());
        let (sides, carried) = self.places(n, groups);
        kept.copy_from_slice(&state[sides.start..sides.start + kept.len()]);
        let unsettled = if self.mend.is_some() { state[carried.end] } else { 0.0 };
        scales.copy_from_slice(&state[carried]);
        x.copy_from_slice(&state[..n]);
        largest.copy_from_slice(&state[n..n + groups]);
        self.monitoring.finish(largest, 1);
        match self.mend {
            Some(Mend::Projects { .. }) if !unsettled.is_finite() => return false,
            _ => *innovation = unsettled,
        }
        cost.field += count * self.evaluations;
        if let Some(mend) = self.mend {
            mend.count(count, cost);
        }
        true
    }
}

impl StateLoop for Repeated {
    fn run(&self, state: &mut [f64], steps: Range<u64>, work: &mut [f64]) {
        self.kernel.iterate(state, steps.end - steps.start, work);
    }

    fn run_keeping(&self, states: &mut [f64], _first: u64, work: &mut [f64]) {
        self.kernel.iterate_keeping(states, work);
    }
}

impl Blocks for Repeated {
    fn steps(
        &self,
        first: u64,
        count: u64,
        x: &mut [f64],
        carry: Carry,
        largest: &mut [f64],
        work: &mut [f64],
    ) -> bool {
        let (states, work) = work.split_at_mut((1 + KEPT_STATES) * self.len);
        let begun = (&*carry.scales, largest.len(), &*carry.sides);
        self.enter(x, begun, first, &mut states[..self.len]);
        let places = LoopPlaces { len: self.len, x: 0..x.len(), carried: 0..0, start: 0..0 };
        let Carry { scales, innovation, sides, cost, mut outputs, .. } = carry;
        outputs.along(first..first + count, (states, &places), &[], (self, work));
        let found = (largest, sides);
        self.leave(&states[..self.len], count, x, (scales, innovation, cost), found)
    }

    fn watched(&self) -> usize {
        self.sides
    }
}

/// Attempted steps.
#[derive(Clone)]
pub struct Attempts {
    /// Kernel of one attempt, with all stages, as dense output needs them.
    pub(super) staged: Bound,
    /// Loop of many attempts, with the judgement of each.
    pub(super) march: Option<March>,
    /// Length of the inputs of an attempt.
    pub(super) inputs: usize,
    pub(super) evaluations: u64,
}

impl Attempts {
    pub fn new(
        ingredients: &Ingredients,
        tableau: &'static Tableau,
        march: Option<March>,
        parameters: &[f64],
    ) -> Attempts {
        Attempts {
            staged: Bound::new(&ingredients.attempt(tableau), parameters),
            march,
            inputs: ingredients.attempt_inputs(tableau),
            evaluations: ingredients.scheme.evaluations()[1],
        }
    }
}

/// Attempted steps in a loop.
#[derive(Clone)]
pub struct March {
    pub(super) kernel: Bound,
    pub(super) judging: Judging,
    pub(super) evaluations: u64,
}

impl March {
    pub fn new(
        (ingredients, field): (&Ingredients, &Field),
        (settling, targets): (&Settling, usize),
        parameters: &[f64],
        adaptive: &AdaptiveSteps,
    ) -> March {
        let control = ingredients
            .scheme
            .facts()
            .control
            .expect("attempts are made by schemes with an estimate");
        let slots = ingredients.slots(settling);
        let all = [parameters, &march::parameters(adaptive, control)].concat();
        March {
            kernel: Bound::new(&ingredients.march(settling, targets), &all),
            judging: Judging {
                slots,
                control,
                monitoring: Monitoring::of(field),
                mend: settling.mend(),
            },
            evaluations: ingredients.scheme.evaluations()[1],
        }
    }
}

/// Set other parameters of the field and of the run.
pub fn rebind_march(march: &mut Option<March>, parameters: &[f64], adaptive: &AdaptiveSteps) {
    if let Some(March { kernel, judging, .. }) = march {
        kernel.rebind(&[parameters, &march::parameters(adaptive, judging.control)].concat());
    }
}

impl map::Attempts for March {
    fn slots(&self) -> &Slots {
        &self.judging.slots
    }

    fn work_len(&self) -> usize {
        self.kernel.work_len()
    }

    fn run(&self, count: u64, state: &mut [f64], workspace: &mut Workspace) {
        self.kernel.iterate(state, count, workspace.work);
    }

    fn evaluations(&self) -> u64 {
        self.evaluations
    }

    fn count_treatments(&self, steps: u64, cost: &mut Cost) {
        self.judging.count_treatments(steps, cost);
    }

    fn finish(&self, largest: &mut [f64]) {
        self.judging.finish(largest);
    }
}
