//! Kernels with their parameters.

use super::formula::Formula;
use crate::backend::{backend, compile, compile_first_lane, compile_seldom};
use holonome_model::graph::Node;
use holonome_model::graph::aligned::Aligned;
use holonome_model::graph::interpret::Kernel;
use holonome_model::graph::tape::Tape;
use holonome_model::rows::{BLOCK, RowKernel, RowProgram};
use holonome_model::treatment::Field;
use std::ops::Range;
use std::sync::Arc;

/// Part of a program whose kernels have parameters. Copies share their code.
pub trait Parametric {
    /// Set other parameters in all kernels.
    fn rebind(&mut self, parameters: &[f64]);

    /// Copy with other parameters.
    fn rebound(&self, parameters: &[f64]) -> Self
    where
        Self: Clone,
    {
        let mut copy = self.clone();
        copy.rebind(parameters);
        copy
    }
}

impl<T: Parametric + ?Sized> Parametric for Box<T> {
    fn rebind(&mut self, parameters: &[f64]) {
        (**self).rebind(parameters);
    }
}

impl<T: Parametric> Parametric for Option<T> {
    fn rebind(&mut self, parameters: &[f64]) {
        self.iter_mut().for_each(|part| part.rebind(parameters));
    }
}

impl Parametric for RowKernel {
    fn rebind(&mut self, parameters: &[f64]) {
        RowKernel::rebind(self, parameters);
    }
}

/// Copying behind a box.
pub trait BoxedClone {
    /// Copy in a box.
    fn boxed(&self) -> Box<dyn Quantities>;
}

impl<T: Quantities + Clone + 'static> BoxedClone for T {
    fn boxed(&self) -> Box<dyn Quantities> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Quantities> {
    fn clone(&self) -> Box<dyn Quantities> {
        (**self).boxed()
    }
}

/// Outputs as functions of (t, x), with bound parameters. Parameters after those that they read are
/// ignored.
pub trait Quantities: Parametric + BoxedClone + Send + Sync {
    /// Evaluate at (t, x).
    fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]);

    /// Evaluate at t = 0 within one array: the outputs are the range `out`, and the state is all
    /// before it.
    fn run_within(&self, numbers: &mut [f64], out: Range<usize>, work: &mut [f64]) {
        let (x, behind) = numbers.split_at_mut(out.start);
        self.run(0.0, x, &mut behind[..out.len()], work);
    }

    /// Length of the scratch.
    fn work_len(&self) -> usize;

    /// True if threads share some of the sums.
    fn is_divided(&self) -> bool {
        false
    }

    /// These outputs in so many lanes, bit for bit; `None` if they are not unrolled.
    fn in_lanes(&self, _lanes: usize) -> Option<WideBound> {
        None
    }
}

/// Kernel of one lane with its parameters.
#[derive(Clone)]
pub struct Bound {
    kernel: WideBound,
    /// Tape and parameters, from which kernels in lanes are compiled.
    origin: Box<(Arc<Tape>, Vec<f64>)>,
}

impl Bound {
    /// Compile a tape for these parameters.
    pub fn new(tape: &Tape, parameters: &[f64]) -> Bound {
        let origin = Box::new((Arc::new(tape.clone()), parameters.to_vec()));
        Bound { kernel: WideBound::new(tape, 1, parameters), origin }
    }

    /// `nodes` of a field, which is seldom evaluated, as they are written: optimising and compiling
    /// them takes as long as thousands of evaluations.
    pub fn seldom(field: &Field, nodes: &[Node], parameters: &[f64]) -> Bound {
        let tape = Tape::new(&field.graph, nodes, field.dimension, field.parameters);
        let kernel = WideBound::seldom(&tape, parameters);
        Bound { kernel, origin: Box::new((Arc::new(tape), parameters.to_vec())) }
    }

    /// Compile `nodes` of a field.
    pub fn of(field: &Field, nodes: &[Node], parameters: &[f64]) -> Bound {
        Bound::new(
            &Formula::new(&field.graph, nodes).tape(field.dimension, field.parameters),
            parameters,
        )
    }

    /// True if the outputs depend on the time.
    pub fn reads_time(&self) -> bool {
        self.origin.0.reads_time()
    }

    /// Apply the map x ↦ outputs `count` times.
    pub fn iterate(&self, x: &mut [f64], count: u64, work: &mut [f64]) {
        self.kernel.iterate(x, count, work);
    }

    /// Apply the map to the first of `states`, then to its result, and so on; each result follows
    /// the one before.
    pub fn iterate_keeping(&self, states: &mut [f64], work: &mut [f64]) {
        self.kernel.iterate_keeping(states, work);
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.kernel.outputs()
    }

    /// Estimate of the cycles of one evaluation in a loop.
    pub fn cycles(&self) -> f64 {
        holonome_jit::cycles(&self.origin.0, 1)
    }
}

impl Parametric for Bound {
    fn rebind(&mut self, parameters: &[f64]) {
        self.kernel.rebind(0, parameters);
        self.origin.1.clear();
        self.origin.1.extend_from_slice(parameters);
    }
}

impl Quantities for Bound {
    fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.kernel.run(&[t], x, out, work);
    }

    fn work_len(&self) -> usize {
        self.kernel.work_len()
    }

    fn in_lanes(&self, lanes: usize) -> Option<WideBound> {
        let (tape, parameters) = &*self.origin;
        Some(WideBound::new(tape, lanes, parameters))
    }
}

/// Kernel in several lanes with their parameters.
#[derive(Clone)]
pub struct WideBound {
    kernel: Arc<dyn Kernel>,
    values: Aligned,
}

impl WideBound {
    /// Compile a tape for so many lanes, which all have these parameters.
    pub fn new(tape: &Tape, lanes: usize, parameters: &[f64]) -> WideBound {
        let kernel = compile(tape, lanes);
        let values = kernel.bind(parameters);
        WideBound { kernel: kernel.into(), values }
    }

    /// Kernel of a tape in one lane that is seldom run.
    fn seldom(tape: &Tape, parameters: &[f64]) -> WideBound {
        let kernel = compile_seldom(tape);
        let values = kernel.bind(parameters);
        WideBound { kernel: kernel.into(), values }
    }

    /// Compile a tape for the first lane of arrays of so many lanes.
    pub fn in_first_lane(tape: &Tape, lanes: usize, parameters: &[f64]) -> WideBound {
        let kernel = compile_first_lane(tape, lanes);
        let values = kernel.bind(parameters);
        WideBound { kernel: kernel.into(), values }
    }

    /// Evaluate at (t, x) in every lane.
    pub fn run(&self, t: &[f64], x: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.kernel.run(&self.values, t, x, out, work);
    }

    /// Length of the scratch.
    pub fn work_len(&self) -> usize {
        self.kernel.work_len()
    }

    /// Number of outputs per lane.
    pub fn outputs(&self) -> usize {
        self.kernel.outputs()
    }

    /// This kernel with other parameters in every lane.
    pub fn rebound(&self, parameters: &[f64]) -> WideBound {
        WideBound { kernel: Arc::clone(&self.kernel), values: self.kernel.bind(parameters) }
    }

    /// The parameters, and what follows from them.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Set the parameters of one lane.
    pub fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        self.kernel.rebind(&mut self.values, lane, parameters);
    }

    /// Apply the map x ↦ outputs `count` times in every lane.
    pub fn iterate(&self, x: &mut [f64], count: u64, work: &mut [f64]) {
        self.kernel.iterate(&self.values, x, count, work);
    }

    /// Apply the map to the first of `states`, then to its result, and so on; each result follows
    /// the one before.
    pub fn iterate_keeping(&self, states: &mut [f64], work: &mut [f64]) {
        self.kernel.iterate_keeping(&self.values, states, work);
    }
}

/// Program compiled for these parameters by the backend of this process.
pub fn compile_rows(program: &RowProgram, parameters: &[f64]) -> RowKernel {
    compile_parts(vec![program.clone()], parameters)
}

/// Kernel of programs that run one after the other within one array.
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
}
