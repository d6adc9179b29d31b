//! A row program that runs: gather, compute, add.

use super::{BLOCK, Piece, Places, RowProgram};
use crate::functional::Source;
use crate::graph::aligned::{Aligned, first_aligned};
use crate::graph::interpret::{Backend, Interpreter, Kernel, RowLoop, RowPlaces};
use std::sync::Arc;

/// A cache line: where the arrays of a block start.
const LINE: usize = 8;

/// Numbers in the arrays of a block at most: what stays in the nearest cache.
const MOST_NUMBERS: usize = 4096;

/// Lanes are not reduced below this to fit there.
const FEWEST_LANES: usize = 16;

/// A compiled [`RowProgram`] with its parameters; scratch comes from the caller.
pub struct RowKernel {
    program: RowProgram,
    code: Arc<[Code]>,
    parameters: Vec<f64>,
    /// What each kernel computes from the parameters once.
    bound: Vec<Aligned>,
    /// Whether all pieces write their outputs in place, and whether that is every output.
    in_place: bool,
    complete: bool,
}

/// How a piece is run.
enum Code {
    /// Over numbers that are gathered.
    Gathered(Box<dyn Kernel>),
    /// Over rows where they stand.
    Rows(Box<dyn RowLoop>),
}

impl RowKernel {
    /// Compiles a program by `backend` for `lanes` rows side by side, a power of two up to [`BLOCK`] (other numbers are
    /// rounded down); what the backend refuses is interpreted.
    pub fn new(program: &RowProgram, parameters: &[f64], backend: &dyn Backend, lanes: usize) -> RowKernel {
        let code = |piece: &Piece| {
            if program.single
                && let Some(line) = &piece.line
            {
                let moving = line.slots.iter().filter(|(_, moves)| *moves).map(|&(first, _)| first).collect();
                let places = RowPlaces { states: moving, outputs: line.outputs.clone() };
                if let Ok(rows) = backend.compile_rows(&piece.line_tape(line, parameters.len()), &places) {
                    return Code::Rows(rows);
                }
            }
            let (tape, lanes) = (piece.tape(parameters.len()), suitable_lanes(piece, lanes));
            let kernel = backend.compile(&tape, lanes);
            Code::Gathered(
                kernel.or_else(|_| Interpreter.compile(&tape, lanes)).expect("the interpreter never refuses"),
            )
        };
        RowKernel::bind(program.clone(), program.pieces.iter().map(code).collect(), parameters)
    }

    fn bind(program: RowProgram, code: Arc<[Code]>, parameters: &[f64]) -> RowKernel {
        let bound = code.iter().map(|code| match code {
            Code::Gathered(kernel) => kernel.bind(parameters),
            // Bound anew in every run: with the parameters stands what is the same for all rows.
            Code::Rows(_) => Aligned::zeros(0),
        });
        let bound = bound.collect();
        let in_place = code.iter().all(|code| matches!(code, Code::Rows(_)));
        let written: usize = program.pieces.iter().map(|piece| piece.rows * piece.outputs.len()).sum();
        let complete = in_place && written == program.outputs;
        RowKernel { program, code, parameters: parameters.to_vec(), bound, in_place, complete }
    }

    /// The same kernel with other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> RowKernel {
        RowKernel::bind(self.program.clone(), Arc::clone(&self.code), parameters)
    }

    /// Gives this one other parameters.
    pub fn rebind(&mut self, parameters: &[f64]) {
        *self = self.rebound(parameters);
    }

    /// Scratch needed by [`RowKernel::run`], in numbers.
    pub fn work_len(&self) -> usize {
        let both = self.program.pieces.iter().zip(self.code.iter());
        let of_piece = both.map(|(piece, code)| match code {
            Code::Gathered(kernel) => {
                let [slots, results] = lengths(piece, kernel.lanes());
                LINE + BLOCK + slots + results + kernel.work_len()
            }
            Code::Rows(rows) => {
                let known = self.parameters.len() + piece.slots.len();
                known + LINE + rows.bound_len() + rows.prologue_len().max(rows.work_len())
            }
        });
        of_piece.max().unwrap_or(0)
    }

    /// Evaluates the outputs at (t, x).
    pub fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        if self.in_place && !self.complete {
            out.fill(0.0);
        }
        self.overwrite(t, x, out, work);
    }

    /// The same, but outputs that no row adds to may be left as they are.
    pub fn overwrite(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        if !self.in_place {
            out.fill(0.0);
        }
        for ((piece, code), bound) in self.program.pieces.iter().zip(self.code.iter()).zip(&self.bound) {
            match code {
                Code::Gathered(kernel) => self.add(piece, &**kernel, bound, (t, x), out, work),
                Code::Rows(rows) => self.run_in_place(piece, &**rows, x, out, work),
            }
        }
    }

    /// Computes the rows of a piece where they stand.
    fn run_in_place(&self, piece: &Piece, rows: &dyn RowLoop, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        let line = piece.line.as_ref().expect("it was compiled for one");
        let still = line.slots.iter().filter(|(_, moves)| !moves);
        let (known, work) = work.split_at_mut(self.parameters.len() + still.clone().count());
        known[..self.parameters.len()].copy_from_slice(&self.parameters);
        for (known, &(place, _)) in known[self.parameters.len()..].iter_mut().zip(still) {
            *known = x[place as usize];
        }
        let start = first_aligned(work);
        let (bound, work) = work[start..].split_at_mut(rows.bound_len());
        rows.rebind(bound, known, work);
        rows.run(piece.rows, bound, x, out, work);
    }

    /// Adds what the rows of one piece contribute.
    fn add(
        &self,
        piece: &Piece,
        kernel: &dyn Kernel,
        bound: &[f64],
        (t, x): (f64, &[f64]),
        out: &mut [f64],
        work: &mut [f64],
    ) {
        let (lanes, count) = (kernel.lanes(), piece.outputs.len());
        let [slots, results] = lengths(piece, lanes);
        let start = first_aligned(work);
        let (times, work) = work[start..].split_at_mut(BLOCK);
        times.fill(t);
        let (slots, work) = work.split_at_mut(slots);
        let (results, work) = work.split_at_mut(results);
        for (places, &rows) in piece.places.chunks(piece.slots.len() + count).zip(&piece.blocks) {
            let rows = rows as usize;
            let (from, to) = places.split_at(piece.slots.len());
            for first in (0..rows).step_by(lanes) {
                let real = lanes.min(rows - first);
                for ((slot, from), (_, source)) in slots.chunks_exact_mut(lanes).zip(from).zip(&piece.slots) {
                    let array = match source {
                        Source::State => x,
                        Source::Parameter => &self.parameters,
                        Source::Number => &piece.numbers,
                    };
                    from.gather(&piece.listed, array, first, &mut slot[..real]);
                    // A copy of a real row: nobody reads its value, and it makes no trouble of its own.
                    let copy = slot[real - 1];
                    slot[real..].fill(copy);
                }
                let results = &mut results[first * count..][..lanes * count];
                kernel.run(bound, &times[..lanes], slots, results, work);
            }
            for (k, to) in to.iter().enumerate() {
                let part = |first: usize| (first, &results[first * count + k * lanes..][..lanes.min(rows - first)]);
                to.add(&piece.listed, (0..rows).step_by(lanes).map(part), out);
            }
        }
    }
}

/// Lengths of the arrays of a block: slots of one run of the kernel, results of all.
fn lengths(piece: &Piece, lanes: usize) -> [usize; 2] {
    [piece.slots.len() * lanes, piece.outputs.len() * piece.rows.next_multiple_of(lanes).min(BLOCK)]
}

/// How many rows of a piece are computed side by side: no more than there are, and their numbers stay in the cache.
fn suitable_lanes(piece: &Piece, lanes: usize) -> usize {
    let most = lanes.clamp(1, BLOCK);
    let mut lanes = (1 << most.ilog2()).min(piece.rows.next_power_of_two());
    while lanes > FEWEST_LANES && lanes * (piece.slots.len() + piece.outputs.len()) > MOST_NUMBERS {
        lanes /= 2;
    }
    lanes
}

/// Where row `offset` stands.
fn place(first: u32, step: i32, offset: usize) -> usize {
    (i64::from(first) + i64::from(step) * offset as i64) as usize
}

impl Places {
    /// Reads the entries of rows `offset` and following of the block.
    fn gather(self, listed: &[u32], from: &[f64], offset: usize, to: &mut [f64]) {
        match self {
            Places::Even { first, step: 1 } => {
                let first = first as usize + offset;
                to.copy_from_slice(&from[first..first + to.len()]);
            }
            Places::Even { first, step } => {
                let first = place(first, step, offset);
                match usize::try_from(step) {
                    Ok(0) => to.fill(from[first]),
                    Ok(step) => {
                        for (to, from) in to.iter_mut().zip(from[first..].iter().step_by(step)) {
                            *to = *from;
                        }
                    }
                    Err(_) => {
                        let back = step.unsigned_abs() as usize;
                        for (to, from) in to.iter_mut().zip(from[..=first].iter().rev().step_by(back)) {
                            *to = *from;
                        }
                    }
                }
            }
            Places::Listed(start) => {
                let listed = &listed[start + offset..start + offset + to.len()];
                for (to, &at) in to.iter_mut().zip(listed) {
                    *to = from[at as usize];
                }
            }
        }
    }

    /// Adds one output of the rows of a block, which come in parts with the number of their first row.
    fn add<'a>(self, listed: &[u32], parts: impl Iterator<Item = (usize, &'a [f64])>, out: &mut [f64]) {
        match self {
            Places::Even { first, step: 0 } => {
                // Eight sums side by side: shorter chains of additions and less round-off. A part of fewer rows
                // starts at its own place among the eight, so the order is that of the rows.
                let mut sums = [0.0; 8];
                for (offset, values) in parts {
                    for values in values.chunks(8) {
                        for (sum, value) in sums[offset % 8..].iter_mut().zip(values) {
                            *sum += value;
                        }
                    }
                }
                let [a, b, c, d, e, f, g, h] = sums;
                out[first as usize] += ((a + e) + (c + g)) + ((b + f) + (d + h));
            }
            Places::Even { first, step: 1 } => {
                for (offset, values) in parts {
                    let first = first as usize + offset;
                    for (out, value) in out[first..first + values.len()].iter_mut().zip(values) {
                        *out += value;
                    }
                }
            }
            Places::Even { first, step } => {
                for (offset, values) in parts {
                    let first = place(first, step, offset);
                    match usize::try_from(step) {
                        Ok(step) => {
                            for (value, out) in values.iter().zip(out[first..].iter_mut().step_by(step)) {
                                *out += value;
                            }
                        }
                        Err(_) => {
                            let back = step.unsigned_abs() as usize;
                            for (value, out) in values.iter().zip(out[..=first].iter_mut().rev().step_by(back)) {
                                *out += value;
                            }
                        }
                    }
                }
            }
            Places::Listed(start) => {
                for (offset, values) in parts {
                    for (value, &at) in values.iter().zip(&listed[start + offset..]) {
                        out[at as usize] += value;
                    }
                }
            }
        }
    }
}

impl RowProgram {
    /// The outputs at (t, x), interpreted: for looking at a model.
    pub fn evaluate(&self, t: f64, x: &[f64], parameters: &[f64]) -> Vec<f64> {
        let kernel = RowKernel::new(self, parameters, &Interpreter, 1);
        let mut out = vec![0.0; self.outputs];
        kernel.run(t, x, &mut out, &mut vec![0.0; kernel.work_len()]);
        out
    }
}
