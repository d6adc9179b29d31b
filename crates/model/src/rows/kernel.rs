//! A row program that runs: gather, compute, add.

use super::segments::Segments;
use super::{BLOCK, Piece, Places, RowProgram};
use crate::functional::Source;
use crate::graph::aligned::{Aligned, first_aligned};
use crate::graph::interpret::{
    Backend, Interpreter, Kernel, RowLoop, RowPlaces, SEGMENT_LANES, Segment, SegmentLoop, sum_of_lanes,
};
use std::ops::Range;
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
    /// With room behind them for the last vector of a loop.
    parameters: Vec<f64>,
    /// What each kernel computes from the parameters once; where it reads components of the state that are the same for
    /// all rows, the parameters, and room for those.
    bound: Vec<Aligned>,
    /// Whether all pieces write their outputs where they belong, and whether that is every output.
    straight: bool,
    complete: bool,
}

/// How a piece is run.
enum Code {
    /// Over numbers that are gathered.
    Gathered(Box<dyn Kernel>),
    /// Over rows where they stand, and into the outputs.
    Rows(Box<dyn RowLoop>),
    /// Over rows where they stand, so many at once, into arrays that are added to the outputs.
    Added(Box<dyn RowLoop>, usize),
    /// Over the segments of a sum over pairs.
    Segments(Box<dyn SegmentLoop>, Segments),
}

impl RowKernel {
    /// Compiles a program by `backend` for `lanes` rows side by side, a power of two up to [`BLOCK`] (other numbers are
    /// rounded down); what the backend refuses is interpreted.
    pub fn new(program: &RowProgram, parameters: &[f64], backend: &dyn Backend, lanes: usize) -> RowKernel {
        let code = |(which, piece): (usize, &Piece)| {
            if let Some(line) = &piece.line {
                let straight = program.straight(which);
                let together = rows_together(piece);
                let apart = || (0..piece.outputs.len()).map(|k| (k * most_together(together)) as u32).collect();
                let outputs = straight.cloned().unwrap_or_else(apart);
                let rows = if straight.is_some() { piece.rows } else { piece.rows.min(BLOCK) };
                let places = RowPlaces { states: line.moving.clone(), outputs, rows };
                match backend.compile_rows(&line.tape(piece), &places) {
                    Ok(rows) if straight.is_some() => return Code::Rows(rows),
                    Ok(rows) => return Code::Added(rows, together),
                    Err(_) => {}
                }
            }
            // Columns have room for the last vector.
            let states = program.states + if program.layout.is_some() { SEGMENT_LANES } else { 0 };
            let (tape, lanes) = (piece.tape(parameters.len()), suitable_lanes(piece, lanes));
            if let Some(segments) = Segments::of(piece, states).filter(|_| piece.line.is_none())
                && let Ok(rows) = backend.compile_segments(&tape, &segments.places)
            {
                return Code::Segments(rows, segments);
            }
            let kernel = backend.compile(&tape, lanes);
            Code::Gathered(
                kernel.or_else(|_| Interpreter.compile(&tape, lanes)).expect("the interpreter never refuses"),
            )
        };
        let code = program.pieces.iter().enumerate().map(code).collect();
        RowKernel::bind(program.clone(), code, parameters)
    }

    fn bind(program: RowProgram, code: Arc<[Code]>, parameters: &[f64]) -> RowKernel {
        let bound = program.pieces.iter().zip(code.iter()).map(|(piece, code)| match code {
            Code::Gathered(kernel) => kernel.bind(parameters),
            Code::Segments(rows, _) => rows.bind(parameters),
            Code::Rows(rows) | Code::Added(rows, _) => {
                let line = piece.line.as_ref().expect("it was compiled for one");
                let mut known: Vec<f64> = line.parameters.iter().map(|&p| parameters[p as usize]).collect();
                match line.still[..] {
                    [] => rows.bind(&known),
                    // Bound anew in every run: behind the parameters stands what is the same for all rows.
                    _ => {
                        known.resize(known.len() + line.still.len(), 0.0);
                        let mut values = Aligned::zeros(known.len());
                        values.copy_from_slice(&known);
                        values
                    }
                }
            }
        });
        let bound = bound.collect();
        let straight = code.iter().all(|code| matches!(code, Code::Rows(_)));
        let written: usize = program.pieces.iter().map(|piece| piece.rows * piece.outputs.len()).sum();
        let complete = straight && written == program.outputs;
        let parameters = [parameters, &[0.0; SEGMENT_LANES]].concat();
        RowKernel { program, code, parameters, bound, straight, complete }
    }

    /// How many rows are gathered, rather than read where they stand.
    #[doc(hidden)]
    pub fn gathered(&self) -> usize {
        let both = self.program.pieces.iter().zip(self.code.iter());
        both.filter(|(_, code)| matches!(code, Code::Gathered(_))).map(|(piece, _)| piece.rows).sum()
    }

    /// Operations of one evaluation.
    pub fn operations(&self) -> usize {
        self.program.operations(self.parameters.len())
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
            Code::Rows(rows) => loop_len(piece, &**rows),
            Code::Added(rows, together) => piece.outputs.len() * most_together(*together) + loop_len(piece, &**rows),
            Code::Segments(rows, segments) => {
                segments.still.len() + piece.outputs.len() + segments.order.len() + rows.work_len()
            }
        });
        self.columns() + of_piece.max().unwrap_or(0)
    }

    /// Length of the columns into which the state is split.
    fn columns(&self) -> usize {
        self.program.layout.as_ref().map_or(0, |layout| layout.len() + SEGMENT_LANES)
    }

    /// Evaluates the outputs at (t, x).
    pub fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        if self.straight && !self.complete {
            out.fill(0.0);
        }
        self.overwrite(t, x, out, work);
    }

    /// The same, but outputs that no row adds to may be left as they are.
    pub fn overwrite(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        if !self.straight {
            out.fill(0.0);
        }
        let (columns, work) = work.split_at_mut(self.columns());
        let x = match &self.program.layout {
            Some(layout) => {
                layout.split(x, columns);
                &*columns
            }
            None => x,
        };
        let all = self.program.pieces.iter().zip(self.code.iter()).zip(&self.bound);
        for (which, ((piece, code), bound)) in all.enumerate() {
            match code {
                Code::Gathered(kernel) => {
                    for &first in self.program.straight(which).into_iter().flatten() {
                        // Adding to this gives the bits of what is added, as loops put them there.
                        out[first as usize..][..piece.rows].fill(-0.0);
                    }
                    self.add(piece, &**kernel, bound, (t, x), out, work);
                }
                Code::Rows(rows) => {
                    self.looped(piece, &**rows, bound, x, work, |bound, arrays, work| {
                        rows.run(piece.rows, bound, arrays, out, work);
                    });
                }
                Code::Added(rows, together) => {
                    let (results, work) = work.split_at_mut(piece.outputs.len() * most_together(*together));
                    self.looped(piece, &**rows, bound, x, work, |bound, arrays, work| {
                        let mut first = 0;
                        while first < piece.rows {
                            // Rows of less than a block join those before them, so that no loop is too short for vectors.
                            let rest = piece.rows - first;
                            let count = if rest < *together + BLOCK { rest } else { *together };
                            let arrays = arrays.map(|array| array.get(first..).unwrap_or(&[]));
                            rows.run(count, bound, arrays, results, work);
                            piece.add_results(results, most_together(*together), first..first + count, out);
                            first += count;
                        }
                    });
                }
                Code::Segments(rows, segments) => {
                    self.add_segments(piece, (&**rows, segments), bound, x, out, work);
                }
            }
        }
    }

    /// Calls `run` with what the rows of a piece in a line are computed from: bound values, the state and the table.
    fn looped(
        &self,
        piece: &Piece,
        rows: &dyn RowLoop,
        bound: &[f64],
        x: &[f64],
        work: &mut [f64],
        mut run: impl FnMut(&[f64], [&[f64]; 2], &mut [f64]),
    ) {
        let line = piece.line.as_ref().expect("it was compiled for one");
        let arrays = [x, if line.table == Source::Number { &piece.numbers } else { &self.parameters }];
        if line.still.is_empty() {
            return run(bound, arrays, work);
        }
        let (known, work) = work.split_at_mut(bound.len());
        known.copy_from_slice(bound);
        for (known, &place) in known[line.parameters.len()..].iter_mut().zip(&line.still) {
            *known = x[place as usize];
        }
        let start = first_aligned(work);
        let (bound, work) = work[start..].split_at_mut(rows.bound_len());
        rows.rebind(bound, known, work);
        run(bound, arrays, work);
    }

    /// Adds what the segments of a piece contribute.
    fn add_segments(
        &self,
        piece: &Piece,
        (rows, segments): (&dyn SegmentLoop, &Segments),
        bound: &[f64],
        x: &[f64],
        out: &mut [f64],
        work: &mut [f64],
    ) {
        let array = |source: Source| match source {
            Source::State => x,
            Source::Parameter => &self.parameters,
            Source::Number => &piece.numbers,
        };
        let table = array(segments.table);
        let (still, work) = work.split_at_mut(segments.still.len());
        let (sums, work) = work.split_at_mut(piece.outputs.len());
        let (room, work) = work.split_at_mut(segments.order.len());
        segments.order.with(out, room, |out| {
            for (([of_x, of_table, of_out], entries, summed), &count) in segments.starts().zip(&piece.blocks) {
                for ((still, &slot), &entry) in still.iter_mut().zip(&segments.still).zip(entries) {
                    *still = array(piece.slots[slot].1)[entry as usize];
                }
                let segment = Segment { x: &x[of_x..], table: &table[of_table..], still };
                rows.run(count as usize, bound, segment, &mut out[of_out..], sums, work);
                let outputs = segments.places.outputs.iter().zip(&*sums).filter(|(output, _)| output.is_none());
                for ((_, sum), &place) in outputs.zip(summed) {
                    out[place as usize] += sum;
                }
            }
        });
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

/// Scratch of a loop over the rows of a piece.
fn loop_len(piece: &Piece, rows: &dyn RowLoop) -> usize {
    let line = piece.line.as_ref().expect("it was compiled for one");
    let known = line.parameters.len() + line.still.len();
    known + LINE + rows.bound_len() + rows.prologue_len().max(rows.work_len())
}

/// How many rows of a piece run in one loop before they are added up: whole blocks whose results stay in the cache.
fn rows_together(piece: &Piece) -> usize {
    BLOCK * (MOST_NUMBERS / (BLOCK * piece.outputs.len())).max(1)
}

/// How many they are at most, with the rows of a last block that is not whole.
fn most_together(together: usize) -> usize {
    together + BLOCK
}

impl Piece {
    /// Adds the results of these rows, whole blocks of a piece whose rows stand in a line, to the outputs.
    fn add_results(&self, results: &[f64], together: usize, rows: Range<usize>, out: &mut [f64]) {
        let width = self.slots.len() + self.outputs.len();
        for first in rows.clone().step_by(BLOCK) {
            let count = BLOCK.min(rows.end - first);
            let places = &self.places[first / BLOCK * width..][self.slots.len()..width];
            for (to, results) in places.iter().zip(results.chunks_exact(together)) {
                to.add(&self.listed, [(0, &results[first - rows.start..][..count])].into_iter(), out);
            }
        }
    }
}

/// Lengths of the arrays of a block: slots of one run of the kernel, results of all.
fn lengths(piece: &Piece, lanes: usize) -> [usize; 2] {
    [piece.slots.len() * lanes, piece.outputs.len() * piece.longest().next_multiple_of(lanes)]
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
                out[first as usize] += sum_of_lanes(sums);
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
        self.evaluate_by(&Interpreter, t, x, parameters)
    }

    /// The same with another backend, which gives the same bits.
    pub fn evaluate_by(&self, backend: &dyn Backend, t: f64, x: &[f64], parameters: &[f64]) -> Vec<f64> {
        let kernel = RowKernel::new(self, parameters, backend, BLOCK);
        let mut out = vec![0.0; self.outputs];
        kernel.run(t, x, &mut out, &mut vec![0.0; kernel.work_len()]);
        out
    }
}
