//! Kernels that are interpreted at first, and compiled once they have been evaluated often.
//!
//! A short run evaluates most of its formulas a few times only, and to compile them takes longer
//! than to interpret them. All backends give the same bits, so nothing but the time depends on
//! when a kernel is compiled.

use crate::packed;
use holonome_model::graph::aligned::{Aligned, LINE_NUMBERS};
use holonome_model::graph::interpret::{
    Backend, Cycle, CycleMap, DiagonalLoop, DiagonalPlaces, Kernel, Program, Refused, RowLoop,
    RowPlaces, SegmentLoop, SegmentPlaces,
};
use holonome_model::graph::tape::Tape;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Evaluations after which a kernel is compiled. To compile an operation takes some 4500 instructions,
/// to interpret it some 35: so a kernel costs at most twice what it would have cost had the number of
/// its evaluations been known.
const INTERPRETED: u64 = 128;

/// Backend that interprets a tape of one lane until it has been evaluated often, and then compiles
/// it by another backend. Kernels in lanes and loops over rows are compiled at once: they are made
/// for many evaluations.
pub struct Gradual {
    compiler: Arc<dyn Backend>,
    /// Evaluations of a kernel by the interpreter, at most.
    interpreted: u64,
}

impl Gradual {
    /// Backend that compiles by `compiler`.
    pub fn new(compiler: Box<dyn Backend>) -> Gradual {
        Gradual::after(INTERPRETED, compiler)
    }

    /// Backend that compiles by `compiler` once a kernel has been evaluated so often.
    pub fn after(interpreted: u64, compiler: Box<dyn Backend>) -> Gradual {
        Gradual { compiler: compiler.into(), interpreted }
    }
}

impl Backend for Gradual {
    fn compile(&self, tape: &Tape, lanes: usize) -> Result<Box<dyn Kernel>, Refused> {
        if lanes > 1 {
            return self.compiler.compile(tape, lanes);
        }
        Ok(Box::new(GradualKernel {
            program: Program::new(tape, lanes),
            tape: tape.clone(),
            compiler: Arc::clone(&self.compiler),
            interpreted: self.interpreted,
            evaluations: AtomicU64::new(0),
            compiled: OnceLock::new(),
        }))
    }

    fn compile_first_lane(&self, tape: &Tape, lanes: usize) -> Result<Box<dyn Kernel>, Refused> {
        self.compiler.compile_first_lane(tape, lanes)
    }

    fn compile_cycle(&self, maps: &[CycleMap]) -> Result<Box<dyn Cycle>, Refused> {
        self.compiler.compile_cycle(maps)
    }

    fn compile_rows(&self, loops: &[(Tape, RowPlaces)]) -> Result<Box<dyn RowLoop>, Refused> {
        self.compiler.compile_rows(loops)
    }

    fn compile_segments(
        &self,
        tape: &Tape,
        places: &SegmentPlaces,
    ) -> Result<Box<dyn SegmentLoop>, Refused> {
        self.compiler.compile_segments(tape, places)
    }

    fn compile_diagonals(
        &self,
        tape: &Tape,
        places: &DiagonalPlaces,
    ) -> Result<Box<dyn DiagonalLoop>, Refused> {
        self.compiler.compile_diagonals(tape, places)
    }
}

/// Kernel of one lane.
struct GradualKernel {
    program: Program,
    tape: Tape,
    compiler: Arc<dyn Backend>,
    /// Evaluations by the interpreter, at most and so far.
    interpreted: u64,
    evaluations: AtomicU64,
    /// Compiled kernel; `None` if the compiler refuses the tape.
    compiled: OnceLock<Option<Box<dyn Kernel>>>,
}

impl GradualKernel {
    /// Kernel for `count` evaluations, which is the compiled one if as many were made before that
    /// these would be too many to interpret.
    fn kernel(&self, count: u64) -> &dyn Kernel {
        if self.compiled.get().is_none() {
            let before = self.evaluations.fetch_add(count, Relaxed);
            if before.saturating_add(count) <= self.interpreted {
                return &self.program;
            }
        }
        self.compiled()
    }

    fn compiled(&self) -> &dyn Kernel {
        let compile = || {
            let kernel = self.compiler.compile(&self.tape, 1).ok();
            kernel.inspect(|kernel| assert!(kernel.work_len() <= self.work_len()))
        };
        self.compiled.get_or_init(compile).as_deref().unwrap_or(&self.program)
    }
}

impl Kernel for GradualKernel {
    fn lanes(&self) -> usize {
        1
    }

    /// Scratch for either kernel. That of machine code holds the states or the outputs, and at most
    /// every value: one for each instruction, for each repair and output one more, and a mask; or
    /// what it needs in packs.
    fn work_len(&self) -> usize {
        let Tape { states, outputs, instructions, .. } = &self.tape;
        let values = 2 * instructions.len() + outputs.len() + 1;
        let alone =
            (*states).max(outputs.len()) + (values + LINE_NUMBERS).max(self.program.work_len());
        alone.max(packed::most_work(&self.tape))
    }

    fn outputs(&self) -> usize {
        self.program.outputs()
    }

    fn bind(&self, parameters: &[f64]) -> Aligned {
        self.program.bind(parameters)
    }

    fn rebind(&self, bound: &mut [f64], lane: usize, parameters: &[f64]) {
        self.program.rebind(bound, lane, parameters);
    }

    fn run(&self, bound: &[f64], t: &[f64], x: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.kernel(1).run(bound, t, x, out, work);
    }

    fn iterate(&self, bound: &[f64], x: &mut [f64], count: u64, work: &mut [f64]) {
        if self.tape.goes_on.is_none() || self.compiled.get().is_some() {
            return self.kernel(count).iterate(bound, x, count, work);
        }
        // The condition of the loop may end it after a few turns.
        let before = self.evaluations.load(Relaxed);
        let few = count.min(self.interpreted.saturating_sub(before));
        let done = self.program.iterate_while(bound, x, few, work);
        self.evaluations.fetch_add(done.unwrap_or(few), Relaxed);
        if done.is_none() && count > few {
            self.compiled().iterate(bound, x, count - few, work);
        }
    }

    fn iterate_keeping(&self, bound: &[f64], states: &mut [f64], work: &mut [f64]) {
        let count = (states.len() / self.tape.states.max(1)).saturating_sub(1);
        self.kernel(count as u64).iterate_keeping(bound, states, work);
    }
}
