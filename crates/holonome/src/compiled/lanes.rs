//! A method's step compiled for several trajectories side by side.

use super::formula::Formula;
use super::map::{CompiledStep, repeated_tape};
use super::step::Ingredients;
use super::{Watching, watching_tape};
use crate::backend::compile;
use holonome_integrate::ensemble::LaneSteps;
use holonome_integrate::method::Treatment;
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::tableau::Tableau;
use holonome_model::graph::aligned::Aligned;
use holonome_model::graph::interpret::Kernel;
use holonome_model::treatment::Field;

/// The kernels of an ensemble's steps.
pub struct CompiledLanes {
    tableau: &'static Tableau,
    lanes: usize,
    dimension: usize,
    rows: usize,
    groups: usize,
    corrects: bool,
    watching: Watching,
    field: Box<dyn Kernel>,
    watch: Box<dyn Kernel>,
    correct: Option<Box<dyn Kernel>>,
    advance: Advance,
    /// What a step's kernel knows besides the parameters: h and t₀, or the tolerances.
    more: [f64; 2],
}

enum Advance {
    /// Equal steps in a loop; the length of what they map to itself.
    Repeated(Box<dyn Kernel>, usize),
    Attempt(Box<dyn Kernel>),
}

/// What the lanes know of their trajectories.
pub struct LaneBound {
    field: Aligned,
    watch: Aligned,
    correct: Aligned,
    advance: Aligned,
    /// F₀ of every row.
    targets: Vec<f64>,
}

impl CompiledLanes {
    /// Compiles the step of `plan` for this many lanes, over a field as in [`CompiledStep::new`]. None where the step is
    /// not compiled as a whole, or the method's treatment is not one of formulas.
    pub fn new(plan: &Plan, field: &Field, targets: usize, parameters: usize, lanes: usize) -> Option<CompiledLanes> {
        let formula = Formula::new(&field.graph, &field.field);
        let corrects = CompiledStep::suits(plan, field, &formula)?;
        match plan.method.treatment {
            Treatment::Plain | Treatment::Feedback => {}
            Treatment::Corrected if corrects => {}
            _ => return None,
        }
        let tableau = plan.method.scheme.tableau();
        let ingredients = Ingredients { tableau, dimension: field.dimension, parameters, field: &formula };
        let (advance, more) = match &plan.stepping {
            Stepping::Fixed(fixed) => {
                let tape = repeated_tape(&ingredients, field, targets, corrects);
                (Advance::Repeated(compile(&tape, lanes), tape.states), [fixed.h, plan.t0])
            }
            Stepping::Adaptive(adaptive) => {
                let tape = ingredients.attempt(false);
                (Advance::Attempt(compile(&tape, lanes)), [adaptive.rtol, adaptive.atol])
            }
        };
        let alone = formula.tape(field.dimension, field.parameters);
        Some(CompiledLanes {
            tableau,
            lanes,
            dimension: field.dimension,
            rows: field.invariants.len(),
            groups: field.groups.len(),
            corrects,
            watching: Watching::of(field),
            field: compile(&alone, lanes),
            watch: compile(&watching_tape(field, false), lanes),
            correct: corrects.then(|| compile(&watching_tape(field, true), lanes)),
            advance,
            more,
        })
    }

    fn advancing(&self) -> &dyn Kernel {
        match &self.advance {
            Advance::Repeated(kernel, _) | Advance::Attempt(kernel) => kernel.as_ref(),
        }
    }

    /// Lanes that all have these parameters.
    pub fn bind(&self, parameters: &[f64]) -> LaneBound {
        let all = [parameters, &self.more].concat();
        LaneBound {
            field: self.field.bind(parameters),
            watch: self.watch.bind(parameters),
            correct: self.correct.as_ref().map_or(Aligned::default(), |kernel| kernel.bind(parameters)),
            advance: self.advancing().bind(&all),
            targets: vec![0.0; self.rows * self.lanes],
        }
    }

    /// Gives one lane its trajectory's parameters and targets.
    pub fn rebind(&self, bound: &mut LaneBound, lane: usize, parameters: &[f64], targets: &[f64]) {
        let all = [parameters, &self.more].concat();
        self.field.rebind(&mut bound.field, lane, parameters);
        self.watch.rebind(&mut bound.watch, lane, parameters);
        if let Some(correct) = &self.correct {
            correct.rebind(&mut bound.correct, lane, parameters);
        }
        self.advancing().rebind(&mut bound.advance, lane, &all);
        for (row, &target) in targets.iter().enumerate() {
            bound.targets[row * self.lanes + lane] = target;
        }
    }

    /// Runs a kernel of (x, F₀) whose outputs are `skipped` variables, then F and the deviations.
    fn run_watching<'w>(
        &self,
        (kernel, bound): (&dyn Kernel, &[f64]),
        skipped: usize,
        (t, x, targets): (&[f64], &[f64], &[f64]),
        deviations: &mut [f64],
        work: &'w mut [f64],
    ) -> &'w [f64] {
        let (x_len, values) = (x.len(), targets.len());
        let (inputs, work) = work.split_at_mut(x_len + values);
        inputs[..x_len].copy_from_slice(x);
        inputs[x_len..].copy_from_slice(targets);
        let skipped = skipped * self.lanes;
        let (outputs, work) = work.split_at_mut(skipped + values + deviations.len());
        kernel.run(bound, t, inputs, outputs, work);
        deviations.copy_from_slice(&outputs[skipped + values..]);
        self.watching.finish(deviations, self.lanes);
        &outputs[..skipped]
    }
}

impl LaneSteps for CompiledLanes {
    type Bound = LaneBound;

    fn tableau(&self) -> &'static Tableau {
        self.tableau
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn dim(&self) -> usize {
        self.dimension
    }

    fn groups(&self) -> usize {
        self.groups
    }

    fn work_len(&self) -> usize {
        let kernels = [Some(&self.field), Some(&self.watch), self.correct.as_ref()];
        let inside = kernels.into_iter().flatten().map(|kernel| kernel.work_len()).max().unwrap_or(0);
        let state = match &self.advance {
            Advance::Repeated(_, len) => *len,
            Advance::Attempt(_) => 4 * self.dimension + 2,
        };
        let arrays = (2 * (self.dimension + self.rows) + self.groups).max(state);
        inside.max(self.advancing().work_len()) + arrays * self.lanes
    }

    fn corrects(&self) -> bool {
        self.corrects
    }

    fn fields(&self, bound: &LaneBound, t: &[f64], x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.field.run(&bound.field, t, x, dx, work);
    }

    fn steps(&self, bound: &LaneBound, first: u64, count: u64, x: &mut [f64], largest: &mut [f64], work: &mut [f64]) {
        let Advance::Repeated(kernel, len) = &self.advance else { unreachable!("an ensemble with equal steps") };
        let (state, work) = work.split_at_mut(len * self.lanes);
        let (x_len, watched) = (x.len(), largest.len());
        state[..x_len].copy_from_slice(x);
        state[x_len..x_len + watched].fill(0.0);
        state[x_len + watched..].fill(first as f64);
        kernel.iterate(&bound.advance, state, count, work);
        x.copy_from_slice(&state[..x_len]);
        largest.copy_from_slice(&state[x_len..x_len + watched]);
        self.watching.finish(largest, self.lanes);
    }

    fn attempt(
        &self,
        bound: &LaneBound,
        t: &[f64],
        h: &[f64],
        x: &[f64],
        first: &mut [f64],
        x1: &mut [f64],
        error: &mut [f64],
        work: &mut [f64],
    ) {
        let Advance::Attempt(kernel) = &self.advance else { unreachable!("an adaptive ensemble") };
        let known_first = self.tableau.first_same_as_last;
        let len = x.len();
        let (inputs, work) = work.split_at_mut(len + self.lanes + if known_first { len } else { 0 });
        inputs[..len].copy_from_slice(x);
        inputs[len..len + self.lanes].copy_from_slice(h);
        let (outputs, work) = work.split_at_mut(len + self.lanes + if known_first { len } else { 0 });
        if known_first {
            inputs[len + self.lanes..].copy_from_slice(first);
        }
        kernel.run(&bound.advance, t, inputs, outputs, work);
        x1.copy_from_slice(&outputs[..len]);
        error.copy_from_slice(&outputs[len..len + self.lanes]);
        if known_first {
            first.copy_from_slice(&outputs[len + self.lanes..]);
        }
    }

    fn watch(&self, bound: &LaneBound, t: &[f64], x: &[f64], deviations: &mut [f64], work: &mut [f64]) {
        let kernel = (self.watch.as_ref(), &bound.watch[..]);
        self.run_watching(kernel, 0, (t, x, &bound.targets), deviations, work);
    }

    fn settle(&self, bound: &LaneBound, t1: &[f64], x1: &mut [f64], deviations: &mut [f64], work: &mut [f64]) {
        match &self.correct {
            None => self.watch(bound, t1, x1, deviations, work),
            Some(correct) => {
                let kernel = (correct.as_ref(), &bound.correct[..]);
                let corrected = self.run_watching(kernel, self.dimension, (t1, x1, &bound.targets), deviations, work);
                x1.copy_from_slice(corrected);
            }
        }
    }
}
