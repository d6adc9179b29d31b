//! A method's step compiled as a whole, as the loop over time calls it.

use super::formula::Formula;
use super::step::{Ingredients, Settling, correction};
use super::vectors::StateVectors;
use super::{Bound, Watching};
use holonome_integrate::controller::{Measured, Yardstick};
use holonome_integrate::method::Treatment;
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::scheme::explicit_rk::Stages;
use holonome_integrate::scheme::map::{Attempt, Blocks, Carry, NoStep, Settled, StepMap, TableauMap};
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
    pub fn new(plan: &Plan, field: &Field, vectors: &StateVectors, targets: usize, parameters: &[f64]) -> CompiledStep {
        let Some(tableau) = plan.method.scheme.runge_kutta() else { return CompiledStep::default() };
        let formula = Formula::new(&field.graph, &field.field);
        let Some(corrects) = CompiledStep::suits(plan, field, &formula) else { return CompiledStep::default() };
        let ingredients =
            Ingredients { tableau, dimension: field.dimension, parameters: parameters.len(), field: &formula, vectors };
        match &plan.stepping {
            Stepping::Fixed(fixed) => {
                let tape = repeated_tape(&ingredients, field, targets, corrects);
                let all = [parameters, &[fixed.h, plan.t0]].concat();
                let repeated = Repeated {
                    kernel: Bound::new(&tape, &all),
                    watching: Watching::of(field),
                    len: tape.states,
                    carried: if corrects { ingredients.carried_by_equal_steps() } else { 0 },
                    evaluations: tableau.stages_of_step as u64,
                    corrects,
                };
                CompiledStep { repeated: Some(repeated), attempts: None }
            }
            Stepping::Adaptive(adaptive) => {
                let settling = CompiledStep::settling(plan, field, vectors, targets, corrects);
                let attempts = Attempts::new(&ingredients, field, settling.as_ref(), parameters, adaptive.rtol);
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
        match effective_treatment(plan, field) {
            Treatment::Plain | Treatment::Feedback => Some(false),
            Treatment::Corrected if field.invariants.len() <= super::FEW_INVARIANTS => Some(true),
            // Attempts are the same whatever is done to their result.
            _ => matches!(plan.stepping, Stepping::Adaptive(_)).then_some(false),
        }
    }

    /// What ends an attempt of `plan`, where that is one of formulas.
    pub(super) fn settling(
        plan: &Plan,
        field: &Field,
        vectors: &StateVectors,
        targets: usize,
        corrects: bool,
    ) -> Option<Settling> {
        let formulas = match effective_treatment(plan, field) {
            Treatment::Plain | Treatment::Feedback => true,
            Treatment::Corrected => corrects,
            Treatment::Projection | Treatment::SymmetricProjection => false,
        };
        let small = field.graph.reachable(&field.invariants).len() <= super::SMALL_SYSTEM;
        let constraints = field.constraints;
        let correct = corrects.then_some((vectors, field.dimension));
        (formulas && small).then(|| Settling::new(field, correct, |g, row| g.parameter(targets + row - constraints)))
    }

    /// The same step with other parameters.
    pub fn rebound(&self, plan: &Plan, parameters: &[f64]) -> CompiledStep {
        let all = |more: &[f64]| [parameters, more].concat();
        let repeated = match (&self.repeated, &plan.stepping) {
            (Some(repeated), Stepping::Fixed(fixed)) => Some(repeated.rebound(&all(&[fixed.h, plan.t0]))),
            _ => None,
        };
        let attempts = match (&self.attempts, &plan.stepping) {
            (Some(attempts), Stepping::Adaptive(adaptive)) => Some(attempts.rebound(&all(&[adaptive.rtol]))),
            _ => None,
        };
        CompiledStep { repeated, attempts }
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
    let correct = corrects.then(|| correction(field, ingredients.vectors, field.dimension, target));
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
        carry: Carry,
        largest: &mut [f64],
        work: &mut [f64],
    ) -> bool {
        let (n, groups) = (x.len(), largest.len());
        let (state, work) = work.split_at_mut(self.len);
        state[..n].copy_from_slice(x);
        state[n..n + groups].fill(0.0);
        let carried = n + groups..n + groups + self.carried;
        state[carried.clone()].copy_from_slice(&carry.scales[..self.carried]);
        let mut rest = state[carried.end..].iter_mut();
        if self.corrects
            && let Some(innovation) = rest.next()
        {
            *innovation = 0.0;
        }
        if let Some(number) = rest.next() {
            *number = first as f64;
        }
        self.kernel.iterate(state, count, work);
        if self.corrects {
            *carry.innovation = state[carried.end];
            carry.scales.copy_from_slice(&state[carried]);
        }
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
    /// Where S² stands in what an attempt starts from, and the length of that.
    norms: usize,
    inputs: usize,
    evaluations: u64,
}

impl Attempts {
    fn new(
        ingredients: &Ingredients,
        field: &Field,
        settling: Option<&Settling>,
        parameters: &[f64],
        rtol: f64,
    ) -> Attempts {
        let all = [parameters, &[rtol]].concat();
        let tableau = ingredients.tableau;
        Attempts {
            staged: Bound::new(&ingredients.attempt(), &all),
            settled: settling.map(|settling| Bound::new(&ingredients.settled_attempt(settling), &all)),
            watching: Watching::of(field),
            norms: ingredients.norms_from(),
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
            attempts.inputs + 2 * (attempts.inputs - attempts.norms) + len.unwrap_or(0)
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
        yardstick: Yardstick,
        dense: bool,
        stages: &mut Stages<Vec<f64>>,
        x1: &mut Vec<f64>,
        measured: &mut Measured,
        work: &mut [f64],
    ) -> Attempt {
        let Some(attempts) = &self.step.attempts else {
            return self.slices.attempt(t, h, x, yardstick, dense, stages, x1, measured, work);
        };
        let (n, vectors) = (x.len(), yardstick.norms.len());
        let (inputs, work) = work.split_at_mut(attempts.inputs);
        inputs[..n].copy_from_slice(x);
        (inputs[n], inputs[n + 1]) = (h, t + h);
        if self.tableau.first_same_as_last {
            inputs[n + 2..attempts.norms].copy_from_slice(&stages.k[0]);
        }
        inputs[attempts.norms..].copy_from_slice(yardstick.norms);
        let (outputs, work) = work.split_at_mut(attempts.staged.outputs());
        attempts.staged.run(t, inputs, outputs, work);
        let (state, rest) = outputs.split_at(n);
        let (error, rest) = rest.split_at(1);
        let (sizes, rest) = rest.split_at(vectors);
        let (errors, rest) = rest.split_at(vectors);
        x1.copy_from_slice(state);
        measured.sizes.copy_from_slice(sizes);
        measured.errors.copy_from_slice(errors);
        for (k, value) in stages.k.iter_mut().zip(rest.chunks(n.max(1))) {
            k.copy_from_slice(value);
        }
        let finite = all_finite(x1);
        Attempt { error: if finite { error[0] } else { f64::NAN }, evaluations: attempts.evaluations }
    }

    fn settled_attempt(
        &self,
        (t, t1): (f64, f64),
        h: f64,
        x: &[f64],
        first: &[f64],
        norms: &[f64],
        settled: &mut Settled,
        work: &mut [f64],
    ) -> Option<Attempt> {
        let attempts = self.step.attempts.as_ref()?;
        let kernel = attempts.settled.as_ref()?;
        let n = x.len();
        let (inputs, work) = work.split_at_mut(attempts.inputs + settled.carried.len());
        inputs[..n].copy_from_slice(x);
        (inputs[n], inputs[n + 1]) = (h, t1);
        if self.tableau.first_same_as_last {
            inputs[n + 2..attempts.norms].copy_from_slice(first);
        }
        inputs[attempts.norms..attempts.inputs].copy_from_slice(norms);
        inputs[attempts.inputs..].copy_from_slice(settled.carried);
        let (outputs, work) = work.split_at_mut(kernel.outputs());
        kernel.run(t, inputs, outputs, work);
        let (state, rest) = outputs.split_at(n);
        let (values, rest) = rest.split_at(settled.values.len());
        let (deviations, rest) = rest.split_at(settled.deviations.len());
        let (attempted, rest) = rest.split_at(3);
        let (carried, last) = rest.split_at(settled.carried.len());
        settled.x.copy_from_slice(state);
        settled.values.copy_from_slice(values);
        settled.deviations.copy_from_slice(deviations);
        settled.carried.copy_from_slice(carried);
        attempts.watching.finish(settled.deviations, 1);
        if !last.is_empty() {
            settled.last_stage.copy_from_slice(last);
        }
        let [innovation, size, error] = [attempted[0], attempted[1], attempted[2]];
        settled.innovation = innovation;
        let error = if size.is_finite() { error } else { f64::NAN };
        Some(Attempt { error, evaluations: attempts.evaluations })
    }

    fn dense_stages(&self, t: f64, h: f64, x: &Vec<f64>, stages: &mut Stages<Vec<f64>>, work: &mut [f64]) -> u64 {
        self.slices.dense_stages(t, h, x, stages, work)
    }
}
