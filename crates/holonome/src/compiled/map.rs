//! A method's step compiled as a whole, as the loop over time calls it.

use super::formula::Formula;
use super::step::{Ingredients, Settling, correction};
use super::{Bound, Watching};
use holonome_integrate::controller::Tolerance;
use holonome_integrate::method::Treatment;
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::scheme::explicit_rk::Stages;
use holonome_integrate::scheme::map::{Attempt, Blocks, NoStep, Settled, StepMap, TableauMap};
use holonome_integrate::state::Cost;
use holonome_integrate::system::{System, all_finite};
use holonome_integrate::tableau::Tableau;
use holonome_model::graph::Graph;
use holonome_model::graph::tape::Tape;
use holonome_model::treatment::Field;
use holonome_model::treatment::correction::deviation;

/// A step is compiled as a whole up to this many operations in its stages: about what the first-level instruction cache
/// holds. Beyond, the stages are a loop around the compiled field.
const LONGEST_STEP: usize = 4000;

/// What of a method's step is compiled as a whole.
#[derive(Default)]
pub struct CompiledStep {
    repeated: Option<Repeated>,
    attempts: Option<Attempts>,
}

impl CompiledStep {
    /// Compiles the step of `plan` over `field`, whose `parameters` are the model's, then `targets` (F₀ of the rows that
    /// are no constraints), then those of its treatment.
    pub fn new(plan: &Plan, field: &Field, targets: usize, parameters: &[f64]) -> CompiledStep {
        let Some(tableau) = plan.method.scheme.runge_kutta() else { return CompiledStep::default() };
        let formula = Formula::new(&field.graph, &field.field);
        let Some(corrects) = CompiledStep::suits(plan, field, &formula) else { return CompiledStep::default() };
        let ingredients =
            Ingredients { tableau, dimension: field.dimension, parameters: parameters.len(), field: &formula };
        match &plan.stepping {
            Stepping::Fixed(fixed) => {
                let tape = repeated_tape(&ingredients, field, targets, corrects);
                let all = [parameters, &[fixed.h, plan.t0]].concat();
                let repeated = Repeated {
                    kernel: Bound::new(&tape, &all),
                    watching: Watching::of(field),
                    len: tape.states,
                    evaluations: tableau.stages_of_step as u64,
                    corrects,
                };
                CompiledStep { repeated: Some(repeated), attempts: None }
            }
            Stepping::Adaptive(adaptive) => {
                let settling = CompiledStep::settling(plan, field, targets, corrects);
                let attempts = Attempts::new(&ingredients, field, settling.as_ref(), parameters, adaptive.tolerance());
                CompiledStep { repeated: None, attempts: Some(attempts) }
            }
        }
    }

    /// Whether the step of `plan` is one of formulas, small enough to be compiled as a whole; whether it corrects, then.
    pub(super) fn suits(plan: &Plan, field: &Field, formula: &Formula) -> Option<bool> {
        let tableau = plan.method.scheme.tableau();
        if formula.operations() * tableau.stages > LONGEST_STEP {
            return None;
        }
        match plan.method.treatment {
            Treatment::Plain | Treatment::Feedback => Some(false),
            Treatment::Corrected if field.invariants.len() <= super::FEW_INVARIANTS => Some(true),
            // Attempts are the same whatever is done to their result.
            _ => matches!(plan.stepping, Stepping::Adaptive(_)).then_some(false),
        }
    }

    /// What ends an attempt of `plan`, where that is one of formulas.
    pub(super) fn settling(plan: &Plan, field: &Field, targets: usize, corrects: bool) -> Option<Settling> {
        let formulas = match plan.method.treatment {
            Treatment::Plain | Treatment::Feedback => true,
            Treatment::Corrected => corrects,
            Treatment::Projection | Treatment::SymmetricProjection => false,
        };
        let small = field.graph.reachable(&field.invariants).len() <= super::SMALL_SYSTEM;
        let constraints = field.constraints;
        (formulas && small).then(|| Settling::new(field, corrects, |g, row| g.parameter(targets + row - constraints)))
    }

    /// The same step with other parameters.
    pub fn rebound(&self, plan: &Plan, parameters: &[f64]) -> CompiledStep {
        let all = |more: [f64; 2]| [parameters, &more].concat();
        let repeated = match (&self.repeated, &plan.stepping) {
            (Some(repeated), Stepping::Fixed(fixed)) => Some(repeated.rebound(&all([fixed.h, plan.t0]))),
            _ => None,
        };
        let attempts = match (&self.attempts, &plan.stepping) {
            (Some(attempts), Stepping::Adaptive(adaptive)) => {
                Some(attempts.rebound(&all([adaptive.rtol, adaptive.atol])))
            }
            _ => None,
        };
        CompiledStep { repeated, attempts }
    }
}

/// Equal steps in a loop.
struct Repeated {
    kernel: Bound,
    watching: Watching,
    /// Length of (x, largest deviations, number of the step).
    len: usize,
    evaluations: u64,
    corrects: bool,
}

/// The tape of equal steps over a field whose targets F₀ are parameters from number `targets` on.
pub(super) fn repeated_tape(ingredients: &Ingredients, field: &Field, targets: usize, corrects: bool) -> Tape {
    let constraints = field.constraints;
    let target = |g: &mut Graph, row: usize| g.parameter(targets + row - constraints);
    let mut first = field.clone();
    let delta = deviation(&mut first, target);
    let (nodes, groups) = Watching::of(field).deviations(&mut first, &delta);
    let roots = [&first.field[..], &nodes].concat();
    let first = Formula::new(&first.graph, &roots);
    let correct = corrects.then(|| correction(field, target));
    ingredients.repeated(&first, &groups, correct.as_ref())
}

impl Repeated {
    fn rebound(&self, parameters: &[f64]) -> Repeated {
        let (kernel, watching) = (self.kernel.rebound(parameters), self.watching.clone());
        Repeated { kernel, watching, ..*self }
    }

    fn work_len(&self) -> usize {
        self.len + self.kernel.work_len()
    }
}

impl Blocks for Repeated {
    fn steps(
        &self,
        first: u64,
        count: u64,
        x: &mut [f64],
        _memory: &mut [f64],
        largest: &mut [f64],
        work: &mut [f64],
    ) -> bool {
        let (n, groups) = (x.len(), largest.len());
        let (state, work) = work.split_at_mut(self.len);
        state[..n].copy_from_slice(x);
        state[n..n + groups].fill(0.0);
        if let Some(number) = state.get_mut(n + groups) {
            *number = first as f64;
        }
        self.kernel.iterate(state, count, work);
        x.copy_from_slice(&state[..n]);
        largest.copy_from_slice(&state[n..n + groups]);
        self.watching.finish(largest, 1);
        true
    }

    fn count(&self, steps: u64, cost: &mut Cost) {
        cost.field += steps * self.evaluations;
        if self.corrects {
            cost.count_corrections(steps);
        }
    }
}

/// Attempted steps.
struct Attempts {
    /// With all stages, as dense output needs them.
    staged: Bound,
    /// With what follows an accepted one.
    settled: Option<Bound>,
    watching: Watching,
    inputs: usize,
    evaluations: u64,
}

impl Attempts {
    fn new(
        ingredients: &Ingredients,
        field: &Field,
        settling: Option<&Settling>,
        parameters: &[f64],
        tolerance: Tolerance,
    ) -> Attempts {
        let all = [parameters, &[tolerance.relative, tolerance.absolute]].concat();
        let tableau = ingredients.tableau;
        Attempts {
            staged: Bound::new(&ingredients.attempt(), &all),
            settled: settling.map(|settling| Bound::new(&ingredients.settled_attempt(settling), &all)),
            watching: Watching::of(field),
            inputs: ingredients.attempt_inputs(),
            evaluations: tableau.stages as u64 - u64::from(tableau.first_same_as_last),
        }
    }

    fn rebound(&self, parameters: &[f64]) -> Attempts {
        Attempts {
            staged: self.staged.rebound(parameters),
            settled: self.settled.as_ref().map(|settled| settled.rebound(parameters)),
            watching: self.watching.clone(),
            ..*self
        }
    }
}

/// The map of a compiled step; what it does not cover is done on slices.
pub struct CompiledMap<'a> {
    step: &'a CompiledStep,
    tableau: &'static Tableau,
    slices: TableauMap<'a>,
}

impl<'a> CompiledMap<'a> {
    /// The map of `step` over `system`.
    pub fn new(step: &'a CompiledStep, tableau: &'static Tableau, system: &'a dyn System) -> CompiledMap<'a> {
        CompiledMap { step, tableau, slices: TableauMap::new(tableau, system) }
    }
}

impl StepMap for CompiledMap<'_> {
    fn tableau(&self) -> Option<&'static Tableau> {
        Some(self.tableau)
    }

    fn work_len(&self) -> usize {
        let attempts = self.step.attempts.as_ref().map_or(0, |attempts| {
            let kernels = [Some(&attempts.staged), attempts.settled.as_ref()];
            let len = kernels.into_iter().flatten().map(|kernel| kernel.outputs() + kernel.work_len()).max();
            attempts.inputs + len.unwrap_or(0)
        });
        let repeated = self.step.repeated.as_ref().map_or(0, Repeated::work_len);
        self.slices.work_len().max(attempts).max(repeated)
    }

    fn takes_first_stage(&self) -> bool {
        self.step.attempts.is_none() || self.tableau.first_same_as_last
    }

    fn fixed_step(
        &self,
        t_and_h: (f64, f64),
        x: &Vec<f64>,
        stages: &mut Stages<Vec<f64>>,
        memory: &mut [f64],
        x1: &mut Vec<f64>,
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<(), NoStep> {
        self.slices.fixed_step(t_and_h, x, stages, memory, x1, cost, work)
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        self.step.repeated.as_ref().map(|repeated| repeated as &dyn Blocks)
    }

    fn attempt(
        &self,
        t: f64,
        h: f64,
        x: &Vec<f64>,
        tolerance: Tolerance,
        dense: bool,
        stages: &mut Stages<Vec<f64>>,
        x1: &mut Vec<f64>,
        work: &mut [f64],
    ) -> Attempt {
        let Some(attempts) = &self.step.attempts else {
            return self.slices.attempt(t, h, x, tolerance, dense, stages, x1, work);
        };
        let n = x.len();
        let (inputs, work) = work.split_at_mut(attempts.inputs);
        inputs[..n].copy_from_slice(x);
        // Nothing here depends on the end of the step.
        (inputs[n], inputs[n + 1]) = (h, t);
        if let Some(first) = inputs.get_mut(n + 2..).filter(|first| !first.is_empty()) {
            first.copy_from_slice(&stages.k[0]);
        }
        let (outputs, work) = work.split_at_mut(attempts.staged.outputs());
        attempts.staged.run(t, inputs, outputs, work);
        x1.copy_from_slice(&outputs[..n]);
        for (k, value) in stages.k.iter_mut().zip(outputs[n + 1..].chunks(n.max(1))) {
            k.copy_from_slice(value);
        }
        let finite = all_finite(x1);
        Attempt { error: if finite { outputs[n] } else { f64::NAN }, evaluations: attempts.evaluations }
    }

    fn settled_attempt(
        &self,
        (t, t1): (f64, f64),
        h: f64,
        x: &[f64],
        first: &[f64],
        settled: &mut Settled,
        work: &mut [f64],
    ) -> Option<Attempt> {
        let attempts = self.step.attempts.as_ref()?;
        let kernel = attempts.settled.as_ref()?;
        let n = x.len();
        let (inputs, work) = work.split_at_mut(attempts.inputs);
        inputs[..n].copy_from_slice(x);
        (inputs[n], inputs[n + 1]) = (h, t1);
        if self.tableau.first_same_as_last {
            inputs[n + 2..].copy_from_slice(first);
        }
        let (outputs, work) = work.split_at_mut(kernel.outputs());
        kernel.run(t, inputs, outputs, work);
        let (state, rest) = outputs.split_at(n);
        let (values, rest) = rest.split_at(settled.values.len());
        let (deviations, rest) = rest.split_at(settled.deviations.len());
        let (attempted, last) = rest.split_at(2);
        settled.x.copy_from_slice(state);
        settled.values.copy_from_slice(values);
        settled.deviations.copy_from_slice(deviations);
        attempts.watching.finish(settled.deviations, 1);
        if !last.is_empty() {
            settled.last_stage.copy_from_slice(last);
        }
        let error = if attempted[0].is_finite() { attempted[1] } else { f64::NAN };
        Some(Attempt { error, evaluations: attempts.evaluations })
    }

    fn dense_stages(&self, t: f64, h: f64, x: &Vec<f64>, stages: &mut Stages<Vec<f64>>, work: &mut [f64]) -> u64 {
        self.slices.dense_stages(t, h, x, stages, work)
    }
}
