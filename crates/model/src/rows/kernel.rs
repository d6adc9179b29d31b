//! Kernels that run row programs: gather, compute, add.

use super::near::{NearArrays, NearLoop};
use super::parts::{Parts, divided};
use super::segments::Segments;
use super::{BLOCK, Piece, Places, RowProgram};
use crate::functional::{Functional, Source};
use crate::graph::aligned::{Aligned, first_aligned};
use crate::graph::interpret::{
    Backend, DiagonalLoop, Interpreter, Kernel, RowArrays, RowLoop, RowPlaces, SEGMENT_LANES,
    Segment, SegmentLoop, sum_of_lanes,
};
use crate::graph::tape::Tape;
use crate::rows::layout::Layout;
use std::ops::Range;
use std::sync::Arc;

/// Numbers in a cache line, on which the arrays of a block start.
const LINE: usize = 8;

/// Limit on the numbers in the arrays of a block, so that they stay in the nearest cache.
const MOST_NUMBERS: usize = 4096;

/// Number of lanes below which they are not reduced to fit there.
const FEWEST_LANES: usize = 16;

/// Compiled [`RowProgram`]s with their parameters; scratch comes from the caller.
#[derive(Clone)]
pub struct RowKernel {
    made: Arc<CompiledPrograms>,
    /// Parameters, with room for the last vector of a loop.
    parameters: Vec<f64>,
    /// Values that each run computes from the parameters once.
    bound: Vec<Aligned>,
}

/// Everything that does not depend on the parameters.
struct CompiledPrograms {
    /// The programs. One of several reads all numbers before its outputs, including the outputs of
    /// others.
    parts: Vec<RowProgram>,
    runs: Vec<Run>,
    /// Outputs that are added to or that nothing writes, relative to the start of the first
    /// program's outputs.
    zeroed: Vec<Range<usize>>,
}

/// A piece, or the first of several, and the code that runs it.
struct Run {
    part: usize,
    piece: usize,
    /// Start of its program's outputs, relative to that of the first program's.
    at: usize,
    /// True if it reads numbers of its piece, in place of parameters, beside the state.
    reads_numbers: bool,
    code: Code,
    /// Parts that threads share, gathered or over segments: the blocks of each part.
    parts: Option<(Vec<Range<usize>>, Parts)>,
}

/// Code that runs a piece.
enum Code {
    /// Over numbers that are gathered.
    Gathered(Box<dyn Kernel>),
    /// Over rows in place, and into the outputs; together with pieces that follow.
    Rows(Box<dyn RowLoop>),
    /// Over rows in place, so many at once, into arrays that are added to the outputs.
    Added(Box<dyn RowLoop>, usize),
    /// Over the segments of a sum over pairs.
    Segments(Box<dyn SegmentLoop>, Segments),
    /// Over the diagonals of such a sum.
    Diagonals(Box<dyn DiagonalLoop>),
    /// Over the pairs that are near each other.
    Near(NearLoop),
}

impl RowKernel {
    /// Compile a program by `backend` for `lanes` rows side by side, a power of two up to [`BLOCK`]
    /// (other numbers are rounded down). Tapes that the backend refuses are interpreted.
    pub fn new(
        program: &RowProgram,
        parameters: &[f64],
        backend: &dyn Backend,
        lanes: usize,
    ) -> RowKernel {
        RowKernel::of_parts(vec![program.clone()], parameters, backend, lanes)
    }

    /// Compile several programs to be run one after the other by [`RowKernel::run_within`]: the
    /// state of each is all that precedes its outputs.
    pub fn of_parts(
        programs: Vec<RowProgram>,
        parameters: &[f64],
        backend: &dyn Backend,
        lanes: usize,
    ) -> RowKernel {
        let compiler =
            Compiler { programs: &programs, parameters: parameters.len(), backend, lanes };
        let (runs, first) = (compiler.runs(), compiler.first());
        // Nothing is zeroed if all pieces store their outputs in place, and every output is stored
        // or is a gap.
        let is_complete = |(part, program): &(usize, &RowProgram)| {
            let straight =
                runs.iter().all(|run| run.part != *part || matches!(run.code, Code::Rows(_)));
            let written: usize =
                program.pieces.iter().map(|piece| piece.rows * piece.outputs.len()).sum();
            straight && (program.gaps || written == program.all_outputs())
        };
        let added_to = programs.iter().enumerate().filter(|part| !is_complete(part));
        let outputs = |(_, program): (usize, &RowProgram)| {
            let at = program.states - first;
            at..at + program.all_outputs()
        };
        let zeroed = added_to.map(outputs).collect();
        RowKernel::bind(Arc::new(CompiledPrograms { parts: programs, runs, zeroed }), parameters)
    }

    fn bind(made: Arc<CompiledPrograms>, parameters: &[f64]) -> RowKernel {
        let bound = made.runs.iter().map(|run| match &run.code {
            Code::Gathered(kernel) => kernel.bind(parameters),
            Code::Segments(rows, _) => rows.bind(parameters),
            Code::Diagonals(rows) => rows.bind(parameters),
            Code::Near(near) => near.bind(parameters),
            Code::Rows(rows) | Code::Added(rows, _) => rows.bind(parameters),
        });
        let bound = bound.collect();
        let parameters = [parameters, &[0.0; SEGMENT_LANES]].concat();
        RowKernel { made, parameters, bound }
    }

    fn piece(&self, run: &Run) -> &Piece {
        &self.made.parts[run.part].pieces[run.piece]
    }

    /// Number of rows that are gathered, rather than read in place.
    #[doc(hidden)]
    pub fn gathered(&self) -> usize {
        let gathered = self.made.runs.iter().filter(|run| matches!(run.code, Code::Gathered(_)));
        gathered.map(|run| self.piece(run).rows).sum()
    }

    /// True if threads share some of its sums.
    pub fn is_divided(&self) -> bool {
        self.made.runs.iter().any(|run| match &run.code {
            Code::Near(near) => near.is_divided(),
            _ => run.parts.is_some(),
        })
    }

    /// Operations of one evaluation.
    pub fn operations(&self) -> usize {
        self.made.parts.iter().map(|program| program.operations(self.parameters.len())).sum()
    }

    /// Set other parameters.
    pub fn rebind(&mut self, parameters: &[f64]) {
        *self = RowKernel::bind(Arc::clone(&self.made), parameters);
    }

    /// Scratch needed by [`RowKernel::run`], in numbers.
    pub fn work_len(&self) -> usize {
        let arrays = |run: &Run| {
            self.piece(run).diagonals.as_ref().map_or(0, |diagonals| LINE + diagonals.len())
        };
        let of_run = self.made.runs.iter().map(|run| {
            arrays(run)
                + match (&run.code, &run.parts) {
                    (_, Some((_, parts))) => parts.work_len(),
                    (Code::Gathered(kernel), _) => self.piece(run).gathered_work(&**kernel),
                    (Code::Diagonals(rows), _) => rows.work_len(),
                    (Code::Rows(rows), _) => rows.work_len(),
                    (Code::Added(rows, together), _) => {
                        self.piece(run).outputs.len() * together + rows.work_len()
                    }
                    (Code::Near(near), _) => near.work_len(),
                    (Code::Segments(rows, segments), _) => {
                        segments.order.room() + segments.work_len(self.piece(run), &**rows)
                    }
                }
        });
        let with_apart = self.made.parts.first().filter(|program| !program.apart.is_empty());
        let outputs = with_apart.map_or(0, RowProgram::all_outputs);
        self.columns() + outputs + of_run.max().unwrap_or(0)
    }

    /// Split of the state into columns.
    fn layout(&self) -> Option<&Layout> {
        self.made.parts.first()?.layout.as_deref()
    }

    /// Length of the columns into which the state is split.
    fn columns(&self) -> usize {
        self.layout().map_or(0, |layout| layout.len() + SEGMENT_LANES)
    }

    /// Evaluate the outputs at (t, x).
    pub fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        let (columns, work) = work.split_at_mut(self.columns());
        let x = match self.layout() {
            Some(layout) => {
                layout.split(x, columns);
                &*columns
            }
            None => x,
        };
        let Some(program) = self.made.parts.first() else { return };
        if program.apart.is_empty() {
            return self.evaluate(t, RowArrays::Apart(x, out), work);
        }
        let (all, work) = work.split_at_mut(program.all_outputs());
        self.evaluate(t, RowArrays::Apart(x, all), work);
        let (own, sums) = all.split_at(program.outputs);
        out[..own.len()].copy_from_slice(own);
        program.apart.iter().zip(sums).for_each(|(&to, sum)| out[to as usize] += sum);
    }

    /// Evaluate outputs that follow the numbers from which they are computed in one array.
    pub fn run_within(&self, t: f64, all: &mut [f64], work: &mut [f64]) {
        let Some(first) = self.made.parts.first() else { return };
        self.evaluate(t, RowArrays::Within(all, first.states), work);
    }

    fn evaluate(&self, t: f64, mut arrays: RowArrays, work: &mut [f64]) {
        for outputs in &self.made.zeroed {
            arrays.at(outputs.start).1[..outputs.len()].fill(0.0);
        }
        for (run, bound) in self.made.runs.iter().zip(&self.bound) {
            let piece = || self.piece(run);
            match &run.code {
                Code::Rows(rows) => rows.run(0, bound, self.table(run), arrays.again(), work),
                Code::Gathered(kernel) => {
                    self.evaluate_gathered(run, (&**kernel, bound), t, arrays.at(run.at), work);
                }
                Code::Added(rows, together) => {
                    let (piece, (x, out)) = (piece(), arrays.at(run.at));
                    let (results, work) = work.split_at_mut(piece.outputs.len() * together);
                    for first in (0..piece.rows).step_by(*together) {
                        // The last ones together with some that are known.
                        let from = first.min(piece.rows - together);
                        rows.run(from, bound, self.table(run), RowArrays::Apart(x, results), work);
                        piece.add_results((results, from), *together, first, out);
                    }
                }
                Code::Near(near) => {
                    let (piece, (x, out)) = (piece(), arrays.at(run.at));
                    if let Some(rows) = &piece.near {
                        let arrays = NearArrays { t, x, parameters: &self.parameters };
                        near.run(piece, rows, bound, &arrays, out, work);
                    }
                }
                Code::Diagonals(rows) => {
                    let (x, out) = arrays.at(run.at);
                    if let Some(diagonals) = &piece().diagonals {
                        let numbers = &piece().numbers;
                        let table = if numbers.is_empty() { &self.parameters } else { numbers };
                        diagonals.with(out, work, |out, work| {
                            rows.run(bound, x, table, out, work);
                        });
                    }
                }
                Code::Segments(rows, segments) => {
                    let at = arrays.at(run.at);
                    self.evaluate_segments(run, (&**rows, segments), bound, at, work);
                }
            }
        }
    }

    /// Evaluate a run whose kernel reads gathered blocks of rows.
    fn evaluate_gathered(
        &self,
        run: &Run,
        (kernel, bound): (&dyn Kernel, &Aligned),
        t: f64,
        (x, out): (&[f64], &mut [f64]),
        work: &mut [f64],
    ) {
        let piece = self.piece(run);
        for &first in self.made.parts[run.part].straight(run.piece).into_iter().flatten() {
            // The sum of −0 and any number is that number: the bits are the same as
            // those that loops store.
            out[first as usize..][..piece.rows].fill(-0.0);
        }
        let add = |blocks: &Range<usize>, (out, first): (&mut [f64], usize), work: &mut [f64]| {
            self.add((piece, blocks.clone()), kernel, bound, (t, x), (out, first), work);
        };
        let all = 0..piece.blocks.len();
        match (&run.parts, &piece.diagonals) {
            (Some((blocks, parts)), _) => {
                let (first, written) = (parts.sums.start, &mut out[parts.sums.clone()]);
                let add_part = |blocks: &Range<usize>, sums: &mut [f64], work: &mut [f64]| {
                    add(blocks, (sums, first), work);
                };
                parts.run(blocks, work, &add_part, |sums| {
                    written.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
                });
            }
            (None, Some(diagonals)) => {
                diagonals.with(out, work, |out, work| add(&all, (out, 0), work))
            }
            (None, None) => add(&all, (out, 0), work),
        }
    }

    /// Evaluate a run over segments: the partners of one member in lanes.
    fn evaluate_segments(
        &self,
        run: &Run,
        (rows, segments): (&dyn SegmentLoop, &Segments),
        bound: &Aligned,
        (x, out): (&[f64], &mut [f64]),
        work: &mut [f64],
    ) {
        let piece = self.piece(run);
        let add = |which: &Range<usize>, out: &mut [f64], work: &mut [f64]| {
            self.add_segments((piece, which.clone()), (rows, segments), bound, x, out, work);
        };
        match &run.parts {
            Some((which, parts)) => {
                parts.run(which, work, &add, |sums| segments.order.add(sums, out))
            }
            None => {
                let (room, work) = work.split_at_mut(segments.order.room());
                segments.order.with(out, room, |out| add(&(0..piece.blocks.len()), out, work));
            }
        }
    }

    /// Table that the rows of a piece in a line read beside the state.
    fn table(&self, run: &Run) -> &[f64] {
        if run.reads_numbers { &self.piece(run).numbers } else { &self.parameters }
    }

    /// Add the contributions of some segments of a piece to outputs in their order.
    fn add_segments(
        &self,
        (piece, which): (&Piece, Range<usize>),
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
        let rows_of = piece.blocks.within(which.clone());
        for (([of_x, of_table, of_out], entries, summed), block) in
            segments.starts(which).zip(rows_of)
        {
            for ((still, &slot), &entry) in still.iter_mut().zip(&segments.still).zip(entries) {
                *still = array(piece.slots[slot].1)[entry as usize];
            }
            let segment = Segment { x: &x[of_x..], table: &table[of_table..], still };
            rows.run(block.rows as usize, bound, segment, &mut out[of_out..], sums, work);
            let outputs =
                segments.places.outputs.iter().zip(&*sums).filter(|(output, _)| output.is_none());
            for ((_, sum), &place) in outputs.zip(summed) {
                out[place as usize] += sum;
            }
        }
    }

    /// Add the contributions of the rows in some blocks of one piece to the outputs from number
    /// `origin` on.
    fn add(
        &self,
        (piece, blocks): (&Piece, Range<usize>),
        kernel: &dyn Kernel,
        bound: &[f64],
        (t, x): (f64, &[f64]),
        (out, origin): (&mut [f64], usize),
        work: &mut [f64],
    ) {
        let (lanes, count) = (kernel.lanes(), piece.outputs.len());
        let [slots, results] = lengths(piece, lanes);
        let start = first_aligned(work);
        let (times, work) = work[start..].split_at_mut(BLOCK);
        times.fill(t);
        let (slots, work) = work.split_at_mut(slots);
        let (results, work) = work.split_at_mut(results);
        for block in piece.blocks.within(blocks) {
            let rows = block.rows as usize;
            for first in (0..rows).step_by(lanes) {
                let real = lanes.min(rows - first);
                for ((slot, from), (_, source)) in
                    slots.chunks_exact_mut(lanes).zip(block.places()).zip(&piece.slots)
                {
                    let array = match source {
                        Source::State => x,
                        Source::Parameter => &self.parameters,
                        Source::Number => &piece.numbers,
                    };
                    from.gather(&piece.listed, array, first, &mut slot[..real]);
                    // A copy of a real row: its value is not used, and it causes no exceptional
                    // values of its own.
                    let copy = slot[real - 1];
                    slot[real..].fill(copy);
                }
                let results = &mut results[first * count..][..lanes * count];
                kernel.run(bound, &times[..lanes], slots, results, work);
            }
            for (k, to) in block.places().skip(piece.slots.len()).enumerate() {
                let part = |first: usize| {
                    (first, &results[first * count + k * lanes..][..lanes.min(rows - first)])
                };
                to.add(&piece.listed, (0..rows).step_by(lanes).map(part), (out, origin));
            }
        }
    }
}

/// Compiler of programs.
struct Compiler<'a> {
    programs: &'a [RowProgram],
    parameters: usize,
    backend: &'a dyn Backend,
    lanes: usize,
}

impl Compiler<'_> {
    fn runs(&self) -> Vec<Run> {
        let (mut runs, first) = (Vec::new(), self.first());
        // Consecutive loops that read one table are one function.
        let (mut pieces, mut loops, mut open) = (Vec::new(), Vec::new(), false);
        for (part, program) in self.programs.iter().enumerate() {
            // Single rows first: a vector that is read soon after a part of it was stored waits for
            // that.
            let mut order: Vec<usize> = (0..program.pieces.len()).collect();
            order.sort_by_key(|&which| {
                program.straight(which).is_none() || program.pieces[which].rows > 1
            });
            for which in order {
                let (piece, straight) = (&program.pieces[which], program.straight(which));
                let joins = straight.is_some()
                    && piece.line.as_ref().is_some_and(|line| line.table != Source::Number);
                if !(joins && open) {
                    self.compile(&pieces, &loops, &mut runs);
                    (pieces, loops) = (Vec::new(), Vec::new());
                }
                open = joins;
                let tape = piece.tape(self.parameters);
                let Some(line) = &piece.line else {
                    runs.push(self.apart((part, which), &tape));
                    continue;
                };
                let rows = if straight.is_some() {
                    piece.rows
                } else {
                    piece.rows.min(rows_together(piece))
                };
                let outputs = match straight {
                    Some(outputs) => outputs
                        .iter()
                        .map(|&place| place + (program.states - first) as u32)
                        .collect(),
                    None => (0..piece.outputs.len()).map(|k| (k * rows) as u32).collect(),
                };
                pieces.push((part, which));
                loops.push((tape, RowPlaces { states: line.slots.clone(), outputs, rows }));
            }
        }
        self.compile(&pieces, &loops, &mut runs);
        runs
    }

    /// Compile loops over rows, as far as the backend supports them.
    fn compile(&self, pieces: &[(usize, usize)], loops: &[(Tape, RowPlaces)], runs: &mut Vec<Run>) {
        let [(part, piece), ..] = *pieces else { return };
        match self.backend.compile_rows(loops) {
            Ok(rows) => {
                let is_straight = self.programs[part].straight(piece).is_some();
                let code =
                    if is_straight { Code::Rows(rows) } else { Code::Added(rows, loops[0].1.rows) };
                runs.push(self.run((part, piece), code));
            }
            Err(_) if pieces.len() == 1 => runs.push(self.apart((part, piece), &loops[0].0)),
            Err(_) => {
                let ((first, second), (of_first, of_second)) =
                    (pieces.split_at(pieces.len() / 2), loops.split_at(pieces.len() / 2));
                self.compile(first, of_first, runs);
                self.compile(second, of_second, runs);
            }
        }
    }

    /// Run of a piece by one thread.
    fn run(&self, (part, piece): (usize, usize), code: Code) -> Run {
        let at = self.programs[part].states - self.first();
        let line = self.programs[part].pieces[piece].line.as_ref();
        let reads_numbers = line.is_some_and(|line| line.table == Source::Number);
        Run { part, piece, at, reads_numbers, code, parts: None }
    }

    /// Start of the outputs of the first program.
    fn first(&self) -> usize {
        self.programs.first().map_or(0, |program| program.states)
    }

    /// Run of a piece that is not a loop over rows.
    fn apart(&self, (part, which): (usize, usize), tape: &Tape) -> Run {
        let program = &self.programs[part];
        let piece = &program.pieces[which];
        if let Some(near) = &piece.near {
            let code = Code::Near(NearLoop::new(piece, near, self.parameters, self.backend));
            return self.run((part, which), code);
        }
        // Columns have room for the last vector.
        let states = program.states + if program.layout.is_some() { SEGMENT_LANES } else { 0 };
        let lanes = suitable_lanes(piece, self.lanes);
        // Backends have loops of their own for lines.
        let parts = |sums: Range<usize>, work: usize| {
            let blocks =
                Some(&piece.blocks).filter(|_| piece.line.is_none() && piece.diagonals.is_none());
            let blocks = divided(
                blocks?,
                piece.whole_operations(tape, self.parameters),
                piece.whole_written(),
            )?;
            let parts = Parts { count: blocks.len(), sums, work };
            Some((blocks, parts))
        };
        if let Some(diagonals) = &piece.diagonals {
            if let Some(places) = diagonals.places(piece, states)
                && let Ok(rows) = self.backend.compile_diagonals(tape, &places)
            {
                return self.run((part, which), Code::Diagonals(rows));
            }
        } else if let Some(segments) = Segments::of(piece, states).filter(|_| piece.line.is_none())
            && let Ok(rows) = self.backend.compile_segments(tape, &segments.places)
        {
            let parts = parts(0..segments.order.len(), segments.work_len(piece, &*rows));
            return Run { parts, ..self.run((part, which), Code::Segments(rows, segments)) };
        }
        let kernel =
            self.backend.compile(tape, lanes).or_else(|_| Interpreter.compile(tape, lanes));
        let kernel = kernel.expect("the interpreter never refuses");
        let parts = parts(piece.written(), piece.gathered_work(&*kernel));
        Run { parts, ..self.run((part, which), Code::Gathered(kernel)) }
    }
}

/// Number of rows of a piece that run in one loop before they are added up: whole blocks whose
/// results stay in the cache.
fn rows_together(piece: &Piece) -> usize {
    BLOCK * (MOST_NUMBERS / (BLOCK * piece.outputs.len())).max(1)
}

impl Piece {
    /// Scratch needed to gather its rows and compute them by a kernel.
    fn gathered_work(&self, kernel: &dyn Kernel) -> usize {
        let [slots, results] = lengths(self, kernel.lanes());
        LINE + BLOCK + slots + results + kernel.work_len()
    }

    /// Add the results of the rows from `first` on, the start of a block of a piece whose rows are
    /// in a line, to the outputs. The results are those of `together` rows from row `from` on.
    fn add_results(
        &self,
        (results, from): (&[f64], usize),
        together: usize,
        first: usize,
        out: &mut [f64],
    ) {
        for first in (first..from + together).step_by(BLOCK) {
            let count = BLOCK.min(from + together - first);
            let block = self.blocks.get(first / BLOCK);
            for (to, results) in
                block.places().skip(self.slots.len()).zip(results.chunks_exact(together))
            {
                to.add(
                    &self.listed,
                    [(0, &results[first - from..][..count])].into_iter(),
                    (out, 0),
                );
            }
        }
    }
}

/// Lengths of the arrays of a block: slots of one run of the kernel, results of all.
fn lengths(piece: &Piece, lanes: usize) -> [usize; 2] {
    [piece.slots.len() * lanes, piece.outputs.len() * piece.longest().next_multiple_of(lanes)]
}

/// Number of rows of a piece computed side by side: at most as many as there are, and their numbers
/// stay in the cache.
fn suitable_lanes(piece: &Piece, lanes: usize) -> usize {
    let most = lanes.clamp(1, BLOCK);
    let mut lanes = (1 << most.ilog2()).min(piece.rows.next_power_of_two());
    while lanes > FEWEST_LANES && lanes * (piece.slots.len() + piece.outputs.len()) > MOST_NUMBERS {
        lanes /= 2;
    }
    lanes
}

/// Place of row `offset`.
fn place(first: u32, step: i32, offset: usize) -> usize {
    (i64::from(first) + i64::from(step) * offset as i64) as usize
}

impl Places {
    /// Gather the entries of the rows of the block from `offset` on.
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
                        for (to, from) in
                            to.iter_mut().zip(from[..=first].iter().rev().step_by(back))
                        {
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

    /// Add one output of the rows of a block to the outputs from number `origin` on; the rows come
    /// in parts with the number of their first one.
    fn add<'a>(
        self,
        listed: &[u32],
        parts: impl Iterator<Item = (usize, &'a [f64])>,
        (out, origin): (&mut [f64], usize),
    ) {
        let to = match self {
            Places::Even { first, step } => Places::Even { first: first - origin as u32, step },
            listed => listed,
        };
        match to {
            Places::Even { first, step: 0 } => {
                // Eight sums side by side: shorter chains of additions and less round-off. A part
                // of fewer rows starts at its own sum among the eight, so the order is that of the
                // rows.
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
                            for (value, out) in
                                values.iter().zip(out[first..].iter_mut().step_by(step))
                            {
                                *out += value;
                            }
                        }
                        Err(_) => {
                            let back = step.unsigned_abs() as usize;
                            for (value, out) in
                                values.iter().zip(out[..=first].iter_mut().rev().step_by(back))
                            {
                                *out += value;
                            }
                        }
                    }
                }
            }
            Places::Listed(start) => {
                for (offset, values) in parts {
                    for (value, &at) in values.iter().zip(&listed[start + offset..]) {
                        out[at as usize - origin] += value;
                    }
                }
            }
        }
    }
}

impl RowProgram {
    /// Outputs at (t, x), interpreted: for inspecting a model.
    pub fn evaluate(&self, t: f64, x: &[f64], parameters: &[f64]) -> Vec<f64> {
        self.evaluate_by(&Interpreter, t, x, parameters)
    }

    /// Outputs of a functional of the model. Sums over near pairs do not visit every pair.
    pub fn functional(
        functional: &Functional,
        backend: &dyn Backend,
        t: f64,
        x: &[f64],
        parameters: &[f64],
    ) -> Vec<f64> {
        if functional.terms.iter().all(|term| term.pairs.is_none()) {
            return functional.evaluate_by(backend, t, x, parameters);
        }
        let values = RowProgram::values(functional, &|output| Some(output as u32));
        RowProgram::new(x.len(), functional.outputs, values).evaluate_by(backend, t, x, parameters)
    }

    /// Outputs by another backend, with the same bits.
    pub fn evaluate_by(
        &self,
        backend: &dyn Backend,
        t: f64,
        x: &[f64],
        parameters: &[f64],
    ) -> Vec<f64> {
        let kernel = RowKernel::new(self, parameters, backend, BLOCK);
        let mut out = vec![0.0; self.outputs];
        kernel.run(t, x, &mut out, &mut vec![0.0; kernel.work_len()]);
        out
    }
}
