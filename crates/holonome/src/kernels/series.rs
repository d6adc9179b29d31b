//! Steps of a Taylor series, compiled: one by itself, and equal steps or attempts in loops.

use super::bound::{Bound, Parametric, Quantities};
use super::loops::{March, Repeated};
use super::recurrence::CompiledRecurrence;
use super::taylor::{Expansion, Scales, Taylor, length_of_expansion};
use super::vectors::StateVectors;
use holonome_integrate::controller::Yardstick;
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::scheme::map::{
    Allowance, Attempts, Blocks, Facts, NoStep, StepFrom, StepMap, Workspace,
};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Input, Node};

/// Steps of a Taylor series: one by itself, and equal steps or attempts in a loop.
#[derive(Clone)]
pub struct Developed {
    pub(super) series: CompiledSeries,
    pub(super) repeated: Option<Repeated>,
    pub(super) march: Option<March>,
}

/// Step in two kernels: the coefficients, with the length over which they are good; and the state
/// after a part of it.
#[derive(Clone)]
pub struct CompiledSeries {
    facts: Facts,
    dimension: usize,
    norms: usize,
    /// Evaluations of the field that a step counts as.
    evaluations: u64,
    /// The coefficients of order 1 and more, order by order, if their formulas are too long.
    recurrence: Option<CompiledRecurrence>,
    /// From x, a length, the scales and the tolerance to these coefficients, and the length over
    /// which they are good; with a recurrence, from the coefficients to the latter alone, which
    /// follow x.
    expand: Bound,
    /// From t, x, these coefficients, their length and that of the step to x₁ and the estimate of
    /// its error.
    value: Bound,
}

impl CompiledSeries {
    /// Kernels for steps of `plan` and states of these vectors.
    pub fn new(
        taylor: &Taylor,
        plan: &Plan,
        vectors: &StateVectors,
        parameters: &[f64],
    ) -> CompiledSeries {
        let (n, order, norms) =
            (vectors.vectors.dim(), taylor.order as usize, vectors.vectors.norms());
        let states = |g: &mut Graph, from: usize, count: usize| {
            (from..from + count).map(|k| g.state(k)).collect()
        };
        let recurrence = taylor.is_long().then(|| {
            let recurrence = taylor.recurrence(parameters.len());
            CompiledRecurrence::new(recurrence, n, order, parameters)
        });
        let g = &mut Graph::new();
        let own = if recurrence.is_some() { (order + 1) * n } else { n };
        let (x, scales): (Vec<Node>, Vec<Node>) = (states(g, 0, n), states(g, own + 1, norms));
        let (t, length, tolerance) = (g.input(Input::Time), g.state(own), g.state(own + 1 + norms));
        let c = match recurrence {
            Some(_) => (0..=order).map(|k| states(g, k * n, n)).collect(),
            None => taylor.coefficients(g, (t, length), &x),
        };
        let part =
            taylor.reach(g, length, &c, &Scales { norms: &scales, tolerance }, &vectors.vectors);
        let reached = g.mul(length, part);
        let found = if recurrence.is_some() { Vec::new() } else { c[1..].concat() };
        let outputs = [found, vec![reached]].concat();
        let expand = Tape::of_fused(g, &outputs, own + 2 + norms, parameters.len());
        let g = &mut Graph::new();
        let c: Vec<Vec<Node>> = (0..=order).map(|k| states(g, k * n, n)).collect();
        let (length, h) = (g.state((order + 1) * n), g.state((order + 1) * n + 1));
        // An equal step is as long as its coefficients.
        let part = match plan.stepping {
            Stepping::Fixed(_) => g.div(h, length),
            Stepping::Adaptive(_) => Taylor::part(g, h, length),
        };
        let expansion = Expansion { t: g.input(Input::Time), length, coefficients: &c };
        let x1 = Taylor::value(g, &c, part);
        let error = match plan.stepping {
            Stepping::Fixed(_) => taylor.estimate(g, &c, (part, h)),
            Stepping::Adaptive(_) => taylor.compared(g, &expansion, (part, h)),
        };
        let value = Tape::of_fused(g, &[x1, error].concat(), (order + 1) * n + 2, parameters.len());
        let [expand, value] = [expand, value].map(|tape| Bound::new(&tape, parameters));
        let [of_step, of_attempt] = taylor.evaluations();
        let evaluations = if plan.fixed_step().is_some() { of_step } else { of_attempt };
        let (facts, dimension) = (taylor.facts(), n);
        CompiledSeries { facts, dimension, norms, evaluations, recurrence, expand, value }
    }

    /// Number of inputs of the first kernel before the length.
    fn own_inputs(&self) -> usize {
        match self.recurrence {
            Some(_) => (self.order() + 1) * self.dimension,
            None => self.dimension,
        }
    }

    fn order(&self) -> usize {
        self.facts.errors.start
    }
}

impl Parametric for CompiledSeries {
    fn rebind(&mut self, parameters: &[f64]) {
        self.recurrence.rebind(parameters);
        self.expand.rebind(parameters);
        self.value.rebind(parameters);
    }
}

/// Map of a series step.
pub struct SeriesMap<'a> {
    pub step: &'a Developed,
}

impl SeriesMap<'_> {
    /// Keep the coefficients, and after the error their length. Return the length over which they
    /// are good.
    fn expand(
        &self,
        StepFrom { t, h, x }: StepFrom,
        yardstick: Option<Yardstick>,
        workspace: &mut Workspace,
    ) -> f64 {
        let CompiledSeries { norms, expand, facts, recurrence, .. } = &self.step.series;
        let (n, own) = (x.len(), self.step.series.own_inputs());
        let (inputs, rest) = workspace.work.split_at_mut(own + 2 + norms);
        let (outputs, work) = rest.split_at_mut(expand.outputs());
        inputs[..n].copy_from_slice(x);
        inputs[n..].fill(0.0);
        let length = match yardstick {
            Some(_) => length_of_expansion(self.step.series.order() as u32, h),
            None => h,
        };
        inputs[own] = length;
        if let Some(yardstick) = yardstick {
            inputs[own + 1..own + 1 + norms].copy_from_slice(yardstick.norms);
            inputs[own + 1 + norms] = yardstick.rtol;
        }
        if let Some(recurrence) = recurrence {
            recurrence.run((t, length), x, &mut inputs[n..own], work);
        }
        expand.run(t, inputs, outputs, work);
        let coefficients = if recurrence.is_some() { &inputs[n..own] } else { &*outputs };
        for (kept, coefficients) in workspace.kept.iter_mut().zip(coefficients.chunks_exact(n)) {
            kept.copy_from_slice(coefficients);
        }
        workspace.kept[facts.errors.end][0] = length;
        outputs[outputs.len() - 1]
    }

    /// State a time h later, by the kept coefficients, followed by the estimate of its error; both
    /// in the scratch `work`.
    fn value<'w>(
        &self,
        StepFrom { t, h, x }: StepFrom,
        kept: &[Vec<f64>],
        work: &'w mut [f64],
    ) -> &'w [f64] {
        let CompiledSeries { value, facts, .. } = &self.step.series;
        let (n, order) = (x.len(), self.step.series.order());
        let (inputs, rest) = work.split_at_mut((order + 1) * n + 2);
        let (outputs, work) = rest.split_at_mut(value.outputs());
        inputs[..n].copy_from_slice(x);
        for (input, coefficients) in inputs[n..].chunks_exact_mut(n).zip(&kept[..order]) {
            input.copy_from_slice(coefficients);
        }
        inputs[(order + 1) * n..].copy_from_slice(&[kept[facts.errors.end][0], h]);
        value.run(t, inputs, outputs, work);
        outputs
    }
}

impl StepMap for SeriesMap<'_> {
    fn facts(&self) -> &Facts {
        &self.step.series.facts
    }

    fn vectors(&self) -> usize {
        self.step.series.facts.errors.end + 1
    }

    fn work_len(&self) -> usize {
        let series = &self.step.series;
        let CompiledSeries { dimension: n, norms, expand, value, recurrence, .. } = series;
        let of = |kernel: &Bound, inputs: usize, more: usize| {
            inputs + kernel.outputs() + kernel.work_len().max(more)
        };
        let more = recurrence.as_ref().map_or(0, CompiledRecurrence::work_len);
        let alone = of(expand, series.own_inputs() + 2 + norms, more);
        let alone = alone.max(of(value, (series.order() + 1) * n + 2, 0));
        let march = self.step.march.as_ref().map_or(0, |march| march.kernel.work_len());
        alone.max(march).max(self.step.repeated.as_ref().map_or(0, Repeated::work_len))
    }

    fn takes_first_stage(&self) -> bool {
        false
    }

    fn stands_alone(&self) -> bool {
        false
    }

    fn fixed_step(
        &self,
        step: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<(), NoStep> {
        self.expand(step, None, workspace);
        self.attempt(step, x1, workspace);
        Ok(())
    }

    fn estimate(&self, kept: &mut [Vec<f64>], out: &mut [f64]) {
        out.copy_from_slice(&kept[self.step.series.order()]);
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        self.step.repeated.as_ref().map(|repeated| repeated as &dyn Blocks)
    }

    fn length(&self, step: StepFrom, yardstick: Yardstick, workspace: &mut Workspace) -> f64 {
        self.expand(step, Some(yardstick), workspace)
    }

    fn attempt(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Allowance {
        let (after, error) =
            self.value(step, workspace.kept, workspace.work).split_at(step.x.len());
        x1.copy_from_slice(after);
        workspace.kept[self.step.series.order()].copy_from_slice(error);
        workspace.cost.field += self.step.series.evaluations;
        Allowance::NONE
    }

    fn attempts(&self) -> Option<&dyn Attempts> {
        self.step.march.as_ref().map(|march| march as &dyn Attempts)
    }

    fn interpolate(&self, step: StepFrom, theta: f64, out: &mut [f64], workspace: &mut Workspace) {
        let part = StepFrom { h: theta * step.h, ..step };
        let after = self.value(part, workspace.kept, workspace.work);
        out.copy_from_slice(&after[..step.x.len()]);
    }
}
