//! Sums over pairs as machine code that runs over all diagonals in one call.

use crate::emit::{self, Shape};
use crate::isa::Isa;
use crate::memory::Executable;
use crate::steps::Analysis;
use holonome_model::graph::aligned::{Aligned, LINE_NUMBERS, first_aligned};
use holonome_model::graph::interpret::{
    DiagonalLoop, DiagonalPlaces, Prologue, Refused, SEGMENT_LANES,
};
use holonome_model::graph::tape::Tape;

/// A tape as machine code that runs over diagonals of pairs.
pub(crate) struct CompiledDiagonals {
    prologue: Prologue,
    /// Numbers that follow the bound values: those that describe the last rows.
    last: Vec<f64>,
    /// Numbers read of the states and of the table, and numbers written of the outputs.
    reach: [usize; 2],
    outputs: usize,
    scratch: usize,
    shape: Shape,
    memory: Executable,
}

impl CompiledDiagonals {
    pub(crate) fn new(
        tape: &Tape,
        places: &DiagonalPlaces,
        isa: Isa,
    ) -> Result<CompiledDiagonals, Refused> {
        let refused = |reason: &str| Refused { reason: reason.to_string() };
        assert_eq!(tape.states, places.states.len(), "every state has a place");
        assert_eq!(tape.outputs.len(), places.outputs.len(), "every output has a place");
        assert!(
            places.rows > 0 && places.stride >= places.rows + SEGMENT_LANES - 1,
            "rows have room"
        );
        let shape = Shape::of_segments(isa);
        let prologue = Prologue::new(tape);
        let (reach, outputs) = (places.reach(), places.outputs.len() * places.stride);
        let before = emit::diagonal_scratch(places);
        let last = emit::last_of_diagonals(places);
        let longest = tape.instructions.len().max(prologue.bound().len())
            + (before + last.len()) / SEGMENT_LANES;
        let farthest = reach.into_iter().max().unwrap_or(0).max(outputs);
        if !shape.reaches(longest) || farthest >= i32::MAX as usize / 8 {
            return Err(refused("the formulas are too long for machine code"));
        }
        let analysis = Analysis::of_rows(tape, &prologue, shape.side_by_side())?;
        let behind = prologue.bound().len() * SEGMENT_LANES;
        let emitted = emit::diagonals([&analysis.run(), &analysis.run()], shape, places, behind);
        let memory = Executable::new(&emitted.bytes).map_err(|reason| Refused { reason })?;
        let scratch = before + emitted.spills * shape.width.numbers();
        Ok(CompiledDiagonals { prologue, last, reach, outputs, scratch, shape, memory })
    }
}

impl DiagonalLoop for CompiledDiagonals {
    fn work_len(&self) -> usize {
        self.scratch + LINE_NUMBERS
    }

    fn bind(&self, parameters: &[f64]) -> Aligned {
        let values = self.prologue.bind(parameters, SEGMENT_LANES);
        let first = self.prologue.bound().len() * SEGMENT_LANES;
        let mut bound = Aligned::zeros(first + self.last.len());
        bound[..first].copy_from_slice(&values[..first]);
        bound[first..].copy_from_slice(&self.last);
        bound
    }

    fn run(&self, bound: &[f64], x: &[f64], table: &[f64], out: &mut [f64], work: &mut [f64]) {
        let [of_x, of_table] = self.reach;
        let bound_len = self.prologue.bound().len() * SEGMENT_LANES + self.last.len();
        assert!(bound.len() >= bound_len, "bound values are missing");
        assert!(x.len() >= of_x, "the state is too short");
        assert!(table.len() >= of_table, "the table is too short");
        assert!(out.len() >= self.outputs, "no room for the outputs");
        assert!(work.len() >= self.work_len(), "the scratch is too short");
        let aligned = first_aligned(work);
        let bias = self.shape.bias() as usize;
        let inputs = [x.as_ptr(), table.as_ptr(), bound.as_ptr().wrapping_byte_add(bias)];
        let scratch = work[aligned..].as_mut_ptr().wrapping_byte_add(bias);
        // SAFETY: the code is what the emitter made for this tape and these places, and its entry
        // is at the start. A vector of rows from r on, of diagonal d, reads from `place + r` or
        // `place + r + d` on, at most seven numbers after the last row's, and writes as many of
        // each output from `r` or `r + d` on: these exist by the lengths checked above. Bound
        // values, masks, and scratch for what is kept of the loop, for still values and for all
        // spills exist too.
        unsafe { self.memory.call(0, inputs, [out.as_mut_ptr(), scratch], 0) };
    }
}
