//! Kernels with their parameters.

use super::formula::Formula;
use crate::backend::{backend, compile};
use holonome_model::graph::Node;
use holonome_model::graph::aligned::Aligned;
use holonome_model::graph::interpret::Kernel;
use holonome_model::graph::tape::Tape;
use holonome_model::rows::{BLOCK, RowKernel, RowProgram};
use holonome_model::treatment::Field;
use std::ops::Range;
use std::sync::Arc;

/// Some numbers as functions of (t, x), with their parameters. Parameters behind those that they read are left alone.
pub trait Quantities: Send + Sync {
    /// Evaluates at (t, x).
    fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]);

    /// Evaluates, at no time, what stands at `out` among numbers; those before are the state.
    fn run_within(&self, numbers: &mut [f64], out: Range<usize>, work: &mut [f64]) {
        let (x, behind) = numbers.split_at_mut(out.start);
        self.run(0.0, x, &mut behind[..out.len()], work);
    }

    /// Scratch needed.
    fn work_len(&self) -> usize;

    /// Whether threads share some of their sums.
    fn is_divided(&self) -> bool {
        false
    }

    /// Gives these other parameters.
    fn rebind(&mut self, parameters: &[f64]);

    /// The same with other parameters.
    fn rebound(&self, parameters: &[f64]) -> Self
    where
        Self: Sized;

    /// [`Quantities::rebound`] of whatever these are.
    fn boxed(&self, parameters: &[f64]) -> Box<dyn Quantities>;

    /// The same in so many lanes, where they are written out. Bit for bit, they compute what one does.
    fn in_lanes(&self, _lanes: usize) -> Option<WideBound> {
        None
    }
}

/// A kernel of one lane with its parameters.
pub struct Bound {
    kernel: WideBound,
    /// What it was compiled from, for a kernel in lanes, and for which parameters.
    origin: Box<(Arc<Tape>, Vec<f64>)>,
}

impl Bound {
    /// Compiles a tape for these parameters.
    pub fn new(tape: &Tape, parameters: &[f64]) -> Bound {
        let origin = Box::new((Arc::new(tape.clone()), parameters.to_vec()));
        Bound { kernel: WideBound::new(tape, 1, parameters), origin }
    }

    /// Compiles `nodes` of a field.
    pub fn of(field: &Field, nodes: &[Node], parameters: &[f64]) -> Bound {
        Bound::new(&Formula::new(&field.graph, nodes).tape(field.dimension, field.parameters), parameters)
    }

    /// Whether it depends on the time.
    pub fn reads_time(&self) -> bool {
        self.origin.0.reads_time()
    }

    /// Applies the map x ↦ outputs `count` times.
    pub fn iterate(&self, x: &mut [f64], count: u64, work: &mut [f64]) {
        self.kernel.iterate(x, count, work);
    }

    /// Applies it to the first of `states`, and to what comes out of that, and so on: each behind the other.
    pub fn iterate_keeping(&self, states: &mut [f64], work: &mut [f64]) {
        self.kernel.iterate_keeping(states, work);
    }

    /// How many numbers it gives.
    pub fn outputs(&self) -> usize {
        self.kernel.outputs()
    }
}

impl Quantities for Bound {
    fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.kernel.run(&[t], x, out, work);
    }

    fn work_len(&self) -> usize {
        self.kernel.work_len()
    }

    fn rebind(&mut self, parameters: &[f64]) {
        self.kernel.rebind(0, parameters);
        let known = &mut self.origin.1;
        known.clear();
        known.extend_from_slice(parameters);
    }

    fn rebound(&self, parameters: &[f64]) -> Bound {
        let origin = Box::new((Arc::clone(&self.origin.0), parameters.to_vec()));
        Bound { kernel: self.kernel.rebound(parameters), origin }
    }

    fn boxed(&self, parameters: &[f64]) -> Box<dyn Quantities> {
        Box::new(self.rebound(parameters))
    }

    fn in_lanes(&self, lanes: usize) -> Option<WideBound> {
        let (tape, parameters) = &*self.origin;
        Some(WideBound::new(tape, lanes, parameters))
    }
}

/// A kernel in several lanes with their parameters.
#[derive(Clone)]
pub struct WideBound {
    kernel: Arc<dyn Kernel>,
    values: Aligned,
}

impl WideBound {
    /// Compiles a tape for so many lanes, which all have these parameters.
    pub fn new(tape: &Tape, lanes: usize, parameters: &[f64]) -> WideBound {
        let kernel = compile(tape, lanes);
        let values = kernel.bind(parameters);
        WideBound { kernel: kernel.into(), values }
    }

    /// Evaluates at (t, x) in every lane.
    pub fn run(&self, t: &[f64], x: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.kernel.run(&self.values, t, x, out, work);
    }

    /// Scratch needed.
    pub fn work_len(&self) -> usize {
        self.kernel.work_len()
    }

    /// How many numbers it gives in a lane.
    pub fn outputs(&self) -> usize {
        self.kernel.outputs()
    }

    /// The same with other parameters in every lane.
    pub fn rebound(&self, parameters: &[f64]) -> WideBound {
        WideBound { kernel: Arc::clone(&self.kernel), values: self.kernel.bind(parameters) }
    }

    /// Gives one lane other parameters.
    pub fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        self.kernel.rebind(&mut self.values, lane, parameters);
    }

    /// Applies the map x ↦ outputs `count` times in every lane.
    pub fn iterate(&self, x: &mut [f64], count: u64, work: &mut [f64]) {
        self.kernel.iterate(&self.values, x, count, work);
    }

    /// Applies it to the first of `states`, and to what comes out of that, and so on: each behind the other.
    pub fn iterate_keeping(&self, states: &mut [f64], work: &mut [f64]) {
        self.kernel.iterate_keeping(&self.values, states, work);
    }
}

/// A program compiled for these parameters by the backend of this process.
pub fn compile_rows(program: &RowProgram, parameters: &[f64]) -> RowKernel {
    compile_parts(vec![program.clone()], parameters)
}

/// Programs that are run one after the other within one array.
pub fn compile_parts(programs: Vec<RowProgram>, parameters: &[f64]) -> RowKernel {
    RowKernel::of_parts(programs, parameters, backend(), BLOCK)
}

impl Quantities for RowKernel {
    fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        RowKernel::run(self, t, x, out, work);
    }

    fn run_within(&self, numbers: &mut [f64], _: Range<usize>, work: &mut [f64]) {
        RowKernel::run_within(self, 0.0, numbers, work);
    }

    fn work_len(&self) -> usize {
        RowKernel::work_len(self)
    }

    fn is_divided(&self) -> bool {
        RowKernel::is_divided(self)
    }

    fn rebind(&mut self, parameters: &[f64]) {
        RowKernel::rebind(self, parameters);
    }

    fn rebound(&self, parameters: &[f64]) -> RowKernel {
        RowKernel::rebound(self, parameters)
    }

    fn boxed(&self, parameters: &[f64]) -> Box<dyn Quantities> {
        Box::new(self.rebound(parameters))
    }
}
