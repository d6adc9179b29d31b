//! A method's step compiled as a whole, as the loop over time calls it.

use super::collocation::{CompiledJudge, CompiledStages};
use super::formula::Formula;
use super::step::{Ingredients, Mend, Mending, Recorded, Settling};
use super::taylor::{CompiledSeries, SeriesMap, Taylor};
use super::vectors::StateVectors;
use super::watching::{Watching, is_small};
use super::{Bound, Quantities, WrittenOut, march};
use crate::error::Error;
use crate::policy::LONGEST_STEP;
use holonome_integrate::controller::Control;
use holonome_integrate::controller::slots::Slots;
use holonome_integrate::fixed_point::{self, CollocationMap};
use holonome_integrate::method::Treatment;
use holonome_integrate::plan::{AdaptiveSteps, Plan, Stepping};
use holonome_integrate::scheme::map::{
    self, Blocks, Carry, Facts, KEPT_STATES, LoopPlaces, NoStep, StateLoop, StepFrom, StepMap, TableauMap, Workspace,
};
use holonome_integrate::state::Cost;
use holonome_integrate::system::System;
use holonome_integrate::tableau::Tableau;
use holonome_model::graph::Graph;
use holonome_model::graph::tape::Tape;
use holonome_model::treatment::Field;
use holonome_model::treatment::correction::deviation;
use std::ops::Range;

/// What of a method's step is compiled as a whole.
#[derive(Default)]
pub struct CompiledStep {
    /// Equal steps in a loop.
    repeated: Option<Repeated>,
    /// Attempts in a loop.
    march: Option<March>,
    /// A single attempt of a Runge–Kutta method.
    staged: Option<Staged>,
    /// A single step of a Taylor series.
    series: Option<CompiledSeries>,
    stages: Option<CompiledStages>,
    judge: Option<CompiledJudge>,
}

impl CompiledStep {
    /// The map of `plan`'s scheme over `system`; none where nothing of it is compiled that is not made of slices as well.
    pub fn map<'a>(&'a self, plan: &Plan, system: &'a dyn System) -> Option<Box<dyn StepMap + 'a>> {
        let scheme = plan.method.scheme;
        if let Some(tableau) = scheme.runge_kutta() {
            return Some(Box::new(CompiledMap::new(self, tableau, system)));
        }
        if let Some(series) = &self.series {
            return Some(Box::new(SeriesMap { step: self, series }));
        }
        let map = CollocationMap::new(scheme.collocation()?, plan, system, self.stages.as_ref()?);
        Some(Box::new(match &self.judge {
            Some(judge) => map.judged(plan, judge),
            None => map,
        }))
    }

    /// Compiles the step of `plan` over the `field` of `system`, whose `parameters` are the model's, then `targets` (F₀ of
    /// the rows that are no constraints), then those of its treatment.
    ///
    /// # Errors
    /// Where the method needs formulas that the field does not have.
    pub fn new(
        plan: &Plan,
        field: &Field,
        vectors: &StateVectors,
        system: &WrittenOut,
        targets: usize,
        parameters: &[f64],
    ) -> Result<CompiledStep, Error> {
        let formula = system.formula();
        if let Some(collocation) = plan.method.scheme.collocation() {
            if formula.operations() * collocation.stages > LONGEST_STEP {
                return Ok(CompiledStep::default());
            }
            let settling = CompiledStep::settling(plan, field, vectors, system.settling());
            let judge = match (&plan.stepping, settling, fixed_point::facts(collocation).control) {
                (Stepping::Adaptive(adaptive), Some(settling), Some(control)) => {
                    let of = (plan, adaptive);
                    Some(CompiledJudge::new(control, field, vectors, of, &settling, (targets, parameters)))
                }
                _ => None,
            };
            let stages = Some(CompiledStages::new(collocation, formula, &vectors.vector_of, parameters));
            return Ok(CompiledStep { stages, judge, ..CompiledStep::default() });
        }
        let mut step = CompiledStep::default();
        let taylor = CompiledStep::taylor(plan, field)?;
        let scheme = match (&taylor, plan.method.scheme.runge_kutta()) {
            (Some(taylor), _) => {
                step.series = Some(CompiledSeries::new(taylor, vectors, parameters));
                Recorded::Taylor(taylor)
            }
            (None, Some(tableau)) => Recorded::RungeKutta(tableau),
            _ => return Ok(step),
        };
        if !CompiledStep::suits(plan, field, formula) {
            return Ok(step);
        }
        let (dimension, mend) = (field.dimension, Mend::of(plan, field));
        let kept = Mend::kept(mend, plan);
        let ingredients =
            Ingredients { scheme, dimension, parameters: parameters.len(), field: formula, vectors, kept };
        match &plan.stepping {
            Stepping::Fixed(fixed) => {
                let tape = repeated_tape(&ingredients, field, targets, mend);
                let all = [parameters, &[fixed.h, plan.t0]].concat();
                step.repeated = Some(Repeated {
                    kernel: Bound::new(&tape, &all),
                    watching: Watching::of(field),
                    len: tape.states,
                    carried: kept.carried(&vectors.vectors),
                    evaluations: scheme.evaluations()[0],
                    mend,
                });
            }
            Stepping::Adaptive(adaptive) => {
                let settling = CompiledStep::settling(plan, field, vectors, system.settling());
                let of = (&ingredients, field);
                step.march = settling.map(|settling| March::new(of, (&settling, targets), parameters, adaptive));
                if let Recorded::RungeKutta(tableau) = scheme {
                    step.staged = Some(Staged::new(&ingredients, tableau, parameters));
                }
            }
        }
        Ok(step)
    }

    /// The series of `field`, if the method of `plan` is that.
    ///
    /// # Errors
    /// As [`Taylor::new`].
    pub(super) fn taylor(plan: &Plan, field: &Field) -> Result<Option<Taylor>, Error> {
        let wanted = plan.method.scheme.needs_formulas();
        wanted.then(|| Taylor::new(&plan.method, field)).transpose()
    }

    /// Whether the step of `plan` is one of formulas, small enough to be compiled as a whole.
    pub(super) fn suits(plan: &Plan, field: &Field, formula: &Formula) -> bool {
        let stages = plan.method.scheme.runge_kutta().map_or(0, |tableau| tableau.stages);
        let small = formula.operations() * stages <= LONGEST_STEP;
        // Attempts are the same whatever is done to their result.
        small && (matches!(plan.stepping, Stepping::Adaptive(_)) || CompiledStep::ends_in_formulas(plan, field))
    }

    /// Whether what is done to the results of steps is done by formulas, if anything is.
    pub(super) fn ends_in_formulas(plan: &Plan, field: &Field) -> bool {
        match effective_treatment(plan, field) {
            Treatment::Plain | Treatment::Feedback => true,
            _ => Mend::of(plan, field).is_some(),
        }
    }

    /// What ends an attempt of `plan`, where that is one of formulas.
    pub(super) fn settling(
        plan: &Plan,
        field: &Field,
        vectors: &StateVectors,
        known: Option<&Settling>,
    ) -> Option<Settling> {
        if !CompiledStep::ends_in_formulas(plan, field) || !is_small(field) {
            return None;
        }
        let mend = Mend::of(plan, field);
        Some(match known {
            Some(known) if known.mend() == mend => known.clone(),
            Some(known) if mend.is_none() => known.watching(),
            _ => Settling::new(field, mend.map(|mend| (mend, vectors))),
        })
    }

    /// The same step with other parameters.
    pub fn rebound(&self, plan: &Plan, parameters: &[f64]) -> CompiledStep {
        let all = |more: &[f64]| [parameters, more].concat();
        let repeated = match (&self.repeated, &plan.stepping) {
            (Some(repeated), Stepping::Fixed(fixed)) => Some(repeated.rebound(&all(&[fixed.h, plan.t0]))),
            _ => None,
        };
        let march = match (&self.march, &plan.stepping) {
            (Some(march), Stepping::Adaptive(adaptive)) => Some(march.rebound(parameters, adaptive)),
            _ => None,
        };
        let staged = self.staged.as_ref().map(|staged| staged.rebound(parameters));
        let series = self.series.as_ref().map(|series| series.rebound(parameters));
        let stages = self.stages.as_ref().map(|stages| stages.rebound(parameters));
        let judge = match (&self.judge, &plan.stepping) {
            (Some(judge), Stepping::Adaptive(adaptive)) => Some(judge.rebound(parameters, adaptive)),
            _ => None,
        };
        CompiledStep { repeated, march, staged, series, stages, judge }
    }

    /// What of it makes steps one by one, for a plan with others.
    pub fn by_itself(&self, parameters: &[f64]) -> CompiledStep {
        let series = self.series.as_ref().map(|series| series.rebound(parameters));
        CompiledStep { series, ..CompiledStep::default() }
    }

    /// Equal steps in a loop.
    pub(super) fn blocks(&self) -> Option<&dyn Blocks> {
        self.repeated.as_ref().map(|repeated| repeated as &dyn Blocks)
    }

    /// Attempts in a loop.
    pub(super) fn attempts(&self) -> Option<&dyn map::Attempts> {
        self.march.as_ref().map(|march| march as &dyn map::Attempts)
    }

    /// Scratch that the loops need.
    pub(super) fn loop_work_len(&self) -> usize {
        let march = self.march.as_ref().map_or(0, |march| march.kernel.work_len());
        self.repeated.as_ref().map_or(0, Repeated::work_len).max(march)
    }

    /// Makes attempts one by one.
    #[cfg(test)]
    pub(super) fn leave_loops(&mut self) {
        self.judge = None;
        self.march = None;
    }
}

/// The treatment of a method over `field`, which is none where there is nothing to correct.
pub(super) fn effective_treatment(plan: &Plan, field: &Field) -> Treatment {
    match plan.method.treatment {
        Treatment::Feedback => Treatment::Feedback,
        _ if field.groups.iter().all(|group| group.watched) => Treatment::Plain,
        treatment => treatment,
    }
}

/// Equal steps in a loop.
struct Repeated {
    kernel: Bound,
    watching: Watching,
    /// Length of (x, largest deviations, what is carried, number of the step).
    len: usize,
    /// How many numbers are carried of the scales of the vectors.
    carried: usize,
    evaluations: u64,
    mend: Option<Mend>,
}

/// The tape of equal steps over a field whose targets F₀ are parameters from number `targets` on.
pub(super) fn repeated_tape(ingredients: &Ingredients, field: &Field, targets: usize, mend: Option<Mend>) -> Tape {
    let constraints = field.constraints;
    let target = |g: &mut Graph, row: usize| g.parameter(targets + row - constraints);
    let mut first = field.clone();
    let delta = deviation(&mut first, target);
    let (nodes, groups) = Watching::of(field).deviations(&mut first, &delta);
    let roots = [&first.field[..], &nodes].concat();
    let first = Formula::new(&first.graph, &roots);
    let mending = mend.map(|mend| Mending::new(field, ingredients.vectors, mend, field.dimension, target));
    ingredients.repeated(&first, &groups, mending.as_ref())
}

impl Repeated {
    fn rebound(&self, parameters: &[f64]) -> Repeated {
        let (kernel, watching) = (self.kernel.rebound(parameters), self.watching.clone());
        Repeated { kernel, watching, ..*self }
    }

    fn work_len(&self) -> usize {
        (1 + KEPT_STATES) * self.len + self.kernel.work_len()
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
        let (n, groups) = (x.len(), largest.len());
        let (states, work) = work.split_at_mut((1 + KEPT_STATES) * self.len);
        let state = &mut states[..self.len];
        state[..n].copy_from_slice(x);
        state[n..n + groups].fill(0.0);
        let carried = n + groups..n + groups + self.carried;
        state[carried.clone()].copy_from_slice(&carry.scales[..self.carried]);
        let mut rest = state[carried.end..].iter_mut();
        if self.mend.is_some()
            && let Some(unsettled) = rest.next()
        {
            *unsettled = 0.0;
        }
        if let Some(number) = rest.next() {
            *number = first as f64;
        }
        let places = LoopPlaces { len: self.len, x: 0..n, carried: 0..0, start: 0..0 };
        let mut outputs = carry.outputs;
        outputs.along(first..first + count, (states, &places), &[], (self, work));
        let state = &mut states[..self.len];
        let unsettled = if self.mend.is_some() { state[carried.end] } else { 0.0 };
        carry.scales.copy_from_slice(&state[carried]);
        x.copy_from_slice(&state[..n]);
        largest.copy_from_slice(&state[n..n + groups]);
        self.watching.finish(largest, 1);
        match self.mend {
            Some(Mend::Projects { .. }) if unsettled != 0.0 => return false,
            Some(Mend::Projects { .. }) => {}
            _ => *carry.innovation = unsettled,
        }
        carry.cost.field += count * self.evaluations;
        if let Some(mend) = self.mend {
            mend.count(count, carry.cost);
        }
        true
    }
}

/// An attempted step of a Runge–Kutta method with all its stages, as dense output needs them.
struct Staged {
    kernel: Bound,
    /// Length of what it starts from.
    inputs: usize,
    evaluations: u64,
}

impl Staged {
    fn new(ingredients: &Ingredients, tableau: &'static Tableau, parameters: &[f64]) -> Staged {
        Staged {
            kernel: Bound::new(&ingredients.attempt(tableau), parameters),
            inputs: ingredients.attempt_inputs(tableau),
            evaluations: ingredients.scheme.evaluations()[1],
        }
    }

    fn rebound(&self, parameters: &[f64]) -> Staged {
        Staged { kernel: self.kernel.rebound(parameters), ..*self }
    }
}

/// Attempted steps in a loop, with what follows them.
struct March {
    kernel: Bound,
    slots: Slots,
    control: Control,
    watching: Watching,
    evaluations: u64,
    mend: Option<Mend>,
}

impl March {
    fn new(
        (ingredients, field): (&Ingredients, &Field),
        (settling, targets): (&Settling, usize),
        parameters: &[f64],
        adaptive: &AdaptiveSteps,
    ) -> March {
        let control = ingredients.scheme.facts().control.expect("attempts are made by schemes with an estimate");
        let all = [parameters, &march::parameters(adaptive, control)].concat();
        March {
            kernel: Bound::new(&ingredients.march(settling, targets), &all),
            slots: ingredients.slots(settling),
            control,
            watching: Watching::of(field),
            evaluations: ingredients.scheme.evaluations()[1],
            mend: settling.mend(),
        }
    }

    fn rebound(&self, parameters: &[f64], adaptive: &AdaptiveSteps) -> March {
        March {
            kernel: self.kernel.rebound(&[parameters, &march::parameters(adaptive, self.control)].concat()),
            slots: self.slots.clone(),
            watching: self.watching.clone(),
            ..*self
        }
    }
}

impl map::Attempts for March {
    fn slots(&self) -> &Slots {
        &self.slots
    }

    fn run(&self, count: u64, state: &mut [f64], workspace: &mut Workspace) {
        self.kernel.iterate(state, count, workspace.work);
    }

    fn evaluations(&self) -> u64 {
        self.evaluations
    }

    fn count_treatments(&self, steps: u64, cost: &mut Cost) {
        if let Some(mend) = self.mend {
            mend.count(steps, cost);
        }
    }

    fn finish(&self, largest: &mut [f64]) {
        self.watching.finish(largest, 1);
    }
}

/// The map of a compiled step; what it does not cover is done on slices.
struct CompiledMap<'a> {
    step: &'a CompiledStep,
    tableau: &'static Tableau,
    slices: TableauMap<'a>,
}

impl<'a> CompiledMap<'a> {
    /// The map of `step` over `system`.
    fn new(step: &'a CompiledStep, tableau: &'static Tableau, system: &'a dyn System) -> CompiledMap<'a> {
        CompiledMap { step, tableau, slices: TableauMap::new(tableau, system) }
    }
}

impl StepMap for CompiledMap<'_> {
    fn facts(&self) -> &Facts {
        self.slices.facts()
    }

    fn stability(&self) -> Option<f64> {
        self.slices.stability()
    }

    fn vectors(&self) -> usize {
        self.slices.vectors()
    }

    fn work_len(&self) -> usize {
        let of = |Staged { kernel, inputs, .. }: &Staged| inputs + kernel.outputs() + kernel.work_len();
        let staged = self.step.staged.as_ref().map_or(0, of);
        self.slices.work_len().max(staged).max(self.step.loop_work_len())
    }

    fn takes_first_stage(&self) -> bool {
        self.step.staged.is_none() || self.tableau.first_same_as_last
    }

    fn fixed_step(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Result<(), NoStep> {
        self.slices.fixed_step(step, x1, workspace)
    }

    fn estimate(&self, kept: &mut [Vec<f64>], out: &mut [f64]) {
        self.slices.estimate(kept, out);
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        self.step.blocks()
    }

    fn attempt(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) {
        let Some(staged) = &self.step.staged else { return self.slices.attempt(step, x1, workspace) };
        let (StepFrom { t, h, x }, Workspace { kept, cost, work, .. }) = (step, workspace);
        let n = x.len();
        let (inputs, work) = work.split_at_mut(staged.inputs);
        inputs[..n].copy_from_slice(x);
        inputs[n] = h;
        if self.tableau.first_same_as_last {
            inputs[n + 1..].copy_from_slice(&kept[0]);
        }
        let (outputs, work) = work.split_at_mut(staged.kernel.outputs());
        staged.kernel.run(t, inputs, outputs, work);
        let (state, rest) = outputs.split_at(n);
        x1.copy_from_slice(state);
        let errors = self.facts().errors.clone();
        for (place, value) in (0..self.tableau.stages).chain(errors).zip(rest.chunks(n.max(1))) {
            kept[place].copy_from_slice(value);
        }
        cost.field += staged.evaluations;
    }

    fn attempts(&self) -> Option<&dyn map::Attempts> {
        self.step.attempts()
    }

    fn prepare_interpolant(&self, step: StepFrom, workspace: &mut Workspace) {
        self.slices.prepare_interpolant(step, workspace);
    }

    fn interpolate(&self, step: StepFrom, theta: f64, out: &mut [f64], workspace: &mut Workspace) {
        self.slices.interpolate(step, theta, out, workspace);
    }
}
