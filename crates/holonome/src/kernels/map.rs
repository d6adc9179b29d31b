//! Step of a method compiled as a whole, as the loop over time calls it.

use super::collocation::{CollocationLoop, CollocationSteps, CompiledStages};
use super::formula::Formula;
use super::loops::{Attempts, March, Repeated, rebind_march};
use super::march::{AttemptLoop, Judging};
use super::mending::{Mend, effective_treatment};
use super::monitoring::{Monitoring, is_small};
use super::series::{CompiledSeries, Developed, SeriesMap};
use super::settling::Settling;
use super::taylor::Taylor;
use super::vectors::StateVectors;
use super::whole_step::{Ingredients, Recorded};
use super::{Parametric, Quantities, UnrolledParts};
use crate::error::Error;
use crate::policy::LONGEST_COLLOCATION;
use holonome_integrate::controller::slots::Slots;
use holonome_integrate::fixed_point::{self, CollocationMap};
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::plan::{FixedSteps, Plan, Stepping};
use holonome_integrate::scheme::collocation::Collocation;
use holonome_integrate::scheme::map::{
    self, Allowance, Blocks, Facts, NoStep, StepFrom, StepMap, Workspace,
};
use holonome_integrate::scheme::slices::TableauMap;
use holonome_integrate::state::Cost;
use holonome_integrate::system::System;
use holonome_integrate::tableau::Tableau;
use holonome_model::treatment::Field;
use std::sync::Arc;

/// Part of a method's step that is compiled as a whole.
#[derive(Clone, Default)]
pub enum CompiledStep {
    /// Nothing.
    #[default]
    Nothing,
    /// Equal steps of a Runge–Kutta method.
    Repeated(Repeated),
    /// Attempts of a Runge–Kutta method.
    Attempted(Box<Attempts>),
    /// Steps of a collocation method.
    Collocated(Box<Collocated>),
    /// Steps of a Taylor series.
    Developed(Box<Developed>),
}

/// Steps of a collocation method: the stages of one, and equal steps or attempts in a loop.
#[derive(Clone)]
pub struct Collocated {
    stages: CompiledStages,
    repeated: Option<CollocationSteps>,
    march: Option<CollocationLoop>,
}

/// Inputs from which the step of `plan` over the `field` of `system` is compiled.
#[derive(Clone, Copy)]
pub struct StepSource<'a> {
    pub plan: &'a Plan,
    pub field: &'a Field,
    /// Vectors of the state.
    pub vectors: &'a Arc<StateVectors>,
    pub system: &'a UnrolledParts,
    /// Number of the first of the parameters that are targets: F₀ of the rows that are not
    /// constraints.
    pub targets: usize,
    /// Number of parameters: those of the model, then the targets, then those of the treatment.
    pub parameters: usize,
    /// Largest number of operations in the stages of a Runge–Kutta step that is compiled as a whole.
    pub longest: usize,
}

impl<'a> StepSource<'a> {
    pub(super) fn ingredients(&self, scheme: Recorded<'a>) -> Ingredients<'a> {
        Ingredients {
            scheme,
            dimension: self.field.dimension,
            parameters: self.parameters,
            field: self.system.formula(),
            vectors: self.vectors,
            kept: Mend::kept(Mend::of(self.plan, self.field), self.plan),
        }
    }

    pub(super) fn settling(&self) -> Option<Settling> {
        CompiledStep::settling(self.plan, self.field, self.vectors, self.system.settling())
    }

    /// Equal steps in a loop, if the plan has equal steps.
    fn repeated(&self, ingredients: &Ingredients, parameters: &[f64]) -> Option<Repeated> {
        let StepSource { plan, field, targets, .. } = *self;
        let fixed = plan.stepping.fixed()?;
        let settling = self.settling();
        let settling = (settling.as_ref(), targets);
        Some(Repeated::new((ingredients, field), settling, (plan, fixed), parameters))
    }

    /// Attempts in a loop, if the plan has adaptive steps that end in formulas.
    fn march(&self, ingredients: &Ingredients, parameters: &[f64]) -> Option<March> {
        let adaptive = self.plan.stepping.adaptive()?;
        let settling = (&self.settling()?, self.targets);
        Some(March::new((ingredients, self.field), settling, parameters, adaptive))
    }

    /// Steps of a collocation method; nothing if the field is too long.
    fn collocated(&self, collocation: &'static Collocation, parameters: &[f64]) -> CompiledStep {
        let StepSource { plan, field, vectors, system, .. } = *self;
        let formula = system.formula();
        if formula.operations() > LONGEST_COLLOCATION {
            return CompiledStep::Nothing;
        }
        let stages = CompiledStages::new(collocation, plan, formula, vectors, parameters);
        let fixed = plan.stepping.fixed().filter(|_| CompiledStep::ends_in_formulas(plan, field));
        let repeated = fixed.and_then(|fixed| {
            let settle =
                self.repeated(&self.ingredients(Recorded::Iterated(collocation)), parameters)?;
            Some(CollocationSteps::new(&stages, settle, plan, fixed))
        });
        let march = self.collocation_loop(&stages, collocation, parameters);
        CompiledStep::Collocated(Box::new(Collocated { stages, repeated, march }))
    }

    /// Attempts of a collocation method in a loop, if the plan has adaptive steps that end in
    /// formulas.
    fn collocation_loop(
        &self,
        stages: &CompiledStages,
        collocation: &Collocation,
        parameters: &[f64],
    ) -> Option<CollocationLoop> {
        let StepSource { plan, field, vectors, targets, .. } = *self;
        let (adaptive, settling) = (plan.stepping.adaptive()?, &self.settling()?);
        let (control, mend) = (fixed_point::facts(collocation).control?, settling.mend());
        let weights = Mend::kept(mend, plan).weights;
        let groups = (settling.groups(), settling.watching.count());
        let slots = Slots::new((false, weights), &vectors.vectors, groups);
        let judging = Judging { slots, control, monitoring: Monitoring::of(field), mend };
        let (slots, known) = (&judging.slots, parameters.len());
        let of = AttemptLoop { slots, control, vectors, parameters: known, settling, targets };
        Some(CollocationLoop::new(stages, &of, &judging, (plan, adaptive), parameters))
    }
}

impl CompiledStep {
    /// Map of `plan`'s scheme over `system`; `None` for a collocation method whose stages are not
    /// compiled.
    pub fn map<'a>(&'a self, plan: &Plan, system: &'a dyn System) -> Option<Box<dyn StepMap + 'a>> {
        let scheme = plan.method.scheme;
        if let Some(tableau) = scheme.runge_kutta() {
            return Some(Box::new(CompiledMap::new(self, tableau, system)));
        }
        if let CompiledStep::Developed(step) = self {
            return Some(Box::new(SeriesMap { step }));
        }
        let CompiledStep::Collocated(collocated) = self else { return None };
        let Collocated { stages, repeated, march } = &**collocated;
        let mut map = CollocationMap::new(scheme.collocation()?, plan, system, stages);
        if let Some(attempts) = march {
            map = map.with_attempts(attempts);
        }
        if let Some(steps) = repeated {
            map = map.with_blocks(steps, steps.work_len());
        }
        Some(Box::new(map))
    }

    /// Compile the step of a plan for these parameters.
    ///
    /// # Errors
    /// If the method needs formulas that the field does not have.
    pub fn new(of: &StepSource, parameters: &[f64]) -> Result<CompiledStep, Error> {
        let StepSource { plan, field, vectors, system, .. } = *of;
        let scheme = plan.method.scheme;
        if let Some(collocation) = scheme.collocation() {
            return Ok(of.collocated(collocation, parameters));
        }
        let suits = CompiledStep::suits(plan, field, system.formula(), of.longest);
        if let Some(taylor) = CompiledStep::taylor(plan, field)? {
            let ingredients = of.ingredients(Recorded::Taylor(&taylor));
            let suits = suits && !taylor.is_long();
            let series = CompiledSeries::new(&taylor, plan, vectors, parameters);
            let repeated = suits.then(|| of.repeated(&ingredients, parameters)).flatten();
            let march = suits.then(|| of.march(&ingredients, parameters)).flatten();
            let developed = Developed { series, repeated, march };
            return Ok(CompiledStep::Developed(Box::new(developed)));
        }
        let Some(tableau) = scheme.runge_kutta().filter(|_| suits) else {
            return Ok(CompiledStep::Nothing);
        };
        let ingredients = of.ingredients(Recorded::RungeKutta(tableau));
        Ok(match of.repeated(&ingredients, parameters) {
            Some(repeated) => CompiledStep::Repeated(repeated),
            None => {
                let march = of.march(&ingredients, parameters);
                let attempts = Attempts::new(&ingredients, tableau, march, parameters);
                CompiledStep::Attempted(Box::new(attempts))
            }
        })
    }

    /// Series of `field`, if the method of `plan` is a Taylor series.
    ///
    /// # Errors
    /// Those of [`Taylor::new`].
    pub(super) fn taylor(plan: &Plan, field: &Field) -> Result<Option<Taylor>, Error> {
        let wanted = plan.method.scheme.needs_formulas();
        wanted.then(|| Taylor::new(&plan.method, field)).transpose()
    }

    /// True if the step of `plan` consists of formulas, and is small enough to be compiled as a
    /// whole: its stages take at most `longest` operations.
    pub(super) fn suits(plan: &Plan, field: &Field, formula: &Formula, longest: usize) -> bool {
        let stages = plan.method.scheme.runge_kutta().map_or(0, |tableau| tableau.stages);
        let small = formula.operations() * stages <= longest;
        // Attempts do not depend on the treatment of their results.
        small
            && (matches!(plan.stepping, Stepping::Adaptive(_))
                || CompiledStep::ends_in_formulas(plan, field))
    }

    /// True if the results of steps are treated by formulas, or not at all.
    pub(super) fn ends_in_formulas(plan: &Plan, field: &Field) -> bool {
        match effective_treatment(plan, field) {
            MethodTreatment::Plain | MethodTreatment::Feedback => true,
            _ => Mend::of(plan, field).is_some(),
        }
    }

    /// Formulas that end an attempt of `plan`; `None` if the end is not one of formulas, or the
    /// field is too large.
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
            Some(known) if mend.is_none() => known.monitoring(),
            _ => Settling::new(field, mend.map(|mend| (mend, vectors))),
        })
    }

    /// Estimate of the cycles of so many attempts, accepted and rejected, with this cost; `None` if
    /// they are not made in a loop of compiled code.
    pub fn cycles(&self, attempts: u64, cost: &Cost) -> Option<f64> {
        let of_march =
            |march: &Option<March>| Some(attempts as f64 * march.as_ref()?.kernel.cycles());
        match self {
            CompiledStep::Attempted(steps) => of_march(&steps.march),
            CompiledStep::Developed(steps) => of_march(&steps.march),
            CompiledStep::Collocated(steps) => Some(steps.march.as_ref()?.cycles(attempts, cost)),
            CompiledStep::Nothing | CompiledStep::Repeated(_) => None,
        }
    }

    /// Set other parameters, for runs of `plan`.
    pub fn rebind(&mut self, plan: &Plan, parameters: &[f64]) {
        let equal = |fixed: &FixedSteps| [parameters, &[fixed.h, plan.t0]].concat();
        match (&mut *self, &plan.stepping) {
            (CompiledStep::Repeated(repeated), Stepping::Fixed(fixed)) => {
                repeated.kernel.rebind(&equal(fixed));
            }
            (CompiledStep::Attempted(attempts), Stepping::Adaptive(adaptive)) => {
                attempts.staged.rebind(parameters);
                rebind_march(&mut attempts.march, parameters, adaptive);
            }
            (CompiledStep::Collocated(collocated), stepping) => {
                let Collocated { stages, repeated, march } = &mut **collocated;
                stages.rebind(parameters);
                match (stepping, repeated, march) {
                    (Stepping::Fixed(fixed), Some(steps), _) => {
                        steps.rebind(stages, &equal(fixed), (plan.t0, fixed.h));
                    }
                    (Stepping::Adaptive(adaptive), _, Some(march)) => {
                        march.rebind(stages, parameters, adaptive);
                    }
                    _ => {}
                }
            }
            (CompiledStep::Developed(developed), stepping) => {
                let Developed { series, repeated, march } = &mut **developed;
                series.rebind(parameters);
                match stepping {
                    Stepping::Fixed(fixed) => repeated
                        .iter_mut()
                        .for_each(|repeated| repeated.kernel.rebind(&equal(fixed))),
                    Stepping::Adaptive(adaptive) => rebind_march(march, parameters, adaptive),
                }
            }
            _ => *self = CompiledStep::Nothing,
        }
    }

    /// True if nothing is compiled.
    pub fn is_nothing(&self) -> bool {
        matches!(self, CompiledStep::Nothing)
    }

    /// Part of the step that makes single steps, for a plan with other steps.
    pub fn by_itself(&self, parameters: &[f64]) -> CompiledStep {
        match self {
            CompiledStep::Developed(step) => {
                let series = step.series.rebound(parameters);
                CompiledStep::Developed(Box::new(Developed { series, repeated: None, march: None }))
            }
            _ => CompiledStep::Nothing,
        }
    }

    /// Remove the loops of attempts and of equal collocation steps, so that these are made one by
    /// one.
    #[cfg(test)]
    pub(super) fn leave_loops(&mut self) {
        match self {
            CompiledStep::Attempted(attempts) => attempts.march = None,
            CompiledStep::Collocated(steps) => (steps.repeated, steps.march) = (None, None),
            CompiledStep::Developed(step) => step.march = None,
            _ => {}
        }
    }
}

/// Map of a compiled step; steps that are not compiled are made on slices.
struct CompiledMap<'a> {
    step: &'a CompiledStep,
    tableau: &'static Tableau,
    slices: TableauMap<'a>,
}

impl<'a> CompiledMap<'a> {
    /// Map of `step` over `system`.
    fn new(
        step: &'a CompiledStep,
        tableau: &'static Tableau,
        system: &'a dyn System,
    ) -> CompiledMap<'a> {
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
        let own = match self.step {
            CompiledStep::Attempted(attempts) => {
                let one = attempts.inputs + attempts.staged.outputs() + attempts.staged.work_len();
                attempts.march.as_ref().map_or(0, |march| march.kernel.work_len()).max(one)
            }
            CompiledStep::Repeated(repeated) => repeated.work_len(),
            _ => 0,
        };
        self.slices.work_len().max(own)
    }

    fn takes_first_stage(&self) -> bool {
        !matches!(self.step, CompiledStep::Attempted(_)) || self.tableau.first_same_as_last
    }

    fn fixed_step(
        &self,
        step: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<(), NoStep> {
        self.slices.fixed_step(step, x1, workspace)
    }

    fn estimate(&self, kept: &mut [Vec<f64>], out: &mut [f64]) {
        self.slices.estimate(kept, out);
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        match self.step {
            CompiledStep::Repeated(repeated) => Some(repeated),
            _ => None,
        }
    }

    fn attempt(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Allowance {
        let CompiledStep::Attempted(attempts) = self.step else {
            return self.slices.attempt(step, x1, workspace);
        };
        let (StepFrom { t, h, x }, Workspace { kept, cost, work, .. }) = (step, workspace);
        let n = x.len();
        let (inputs, work) = work.split_at_mut(attempts.inputs);
        inputs[..n].copy_from_slice(x);
        inputs[n] = h;
        if self.tableau.first_same_as_last {
            inputs[n + 1..].copy_from_slice(&kept[0]);
        }
        let (outputs, work) = work.split_at_mut(attempts.staged.outputs());
        attempts.staged.run(t, inputs, outputs, work);
        let (state, rest) = outputs.split_at(n);
        x1.copy_from_slice(state);
        let errors = self.facts().errors.clone();
        for (place, value) in (0..self.tableau.stages).chain(errors).zip(rest.chunks(n.max(1))) {
            kept[place].copy_from_slice(value);
        }
        cost.field += attempts.evaluations;
        Allowance::NONE
    }

    fn attempts(&self) -> Option<&dyn map::Attempts> {
        match self.step {
            CompiledStep::Attempted(attempts) => {
                attempts.march.as_ref().map(|march| march as &dyn map::Attempts)
            }
            _ => None,
        }
    }

    fn prepare_interpolant(&self, step: StepFrom, workspace: &mut Workspace) {
        self.slices.prepare_interpolant(step, workspace);
    }

    fn interpolate(&self, step: StepFrom, theta: f64, out: &mut [f64], workspace: &mut Workspace) {
        self.slices.interpolate(step, theta, out, workspace);
    }
}
