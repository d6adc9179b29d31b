//! Backends that turn a [`Tape`] into a [`Kernel`], and the scalar interpreter, the reference that
//! others must equal bit for bit.
//!
//! A kernel works on a fixed number of *lanes*, independent evaluations side by side. All its
//! arrays are ordered by variable, then by lane: number k of lane l is at `k * lanes + l`. With one
//! lane they are plain vectors.

use super::aligned::Aligned;
use super::elementary::Elementary;
use super::primitive::{One, TRUE, Three, Two, shuffle};
use super::tape::{Instruction, Register, Tape};
use holonome_linear::halves::by_halves;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Backend that runs tapes: the interpreter here, machine code elsewhere.
pub trait Backend: Send + Sync {
    /// Compile `tape` for this many lanes.
    ///
    /// # Errors
    /// If this machine or system cannot run the compiled code; the caller falls back to the
    /// [`Interpreter`], which never refuses.
    fn compile(&self, tape: &Tape, lanes: usize) -> Result<Box<dyn Kernel>, Refused>;

    /// Compile `tape` for the first lane of arrays of so many lanes; the bound values have one
    /// lane.
    ///
    /// # Errors
    /// See [`Backend::compile`].
    fn compile_first_lane(&self, tape: &Tape, lanes: usize) -> Result<Box<dyn Kernel>, Refused> {
        Ok(Box::new(FirstLane { kernel: self.compile(tape, 1)?, states: tape.states, lanes }))
    }

    /// Compile maps of one array that follow each other again and again.
    ///
    /// # Errors
    /// If the backend does not support this, at all or for one of these tapes; then the caller runs
    /// them one by one.
    fn compile_cycle(&self, _maps: &[CycleMap]) -> Result<Box<dyn Cycle>, Refused> {
        Err(Refused { reason: "this backend runs maps one by one".to_string() })
    }

    /// Compile tapes to be run over rows in place, one after the other, without gathering states
    /// first.
    ///
    /// # Errors
    /// If the backend does not support this, at all or for one of these tapes; then the caller
    /// gathers.
    fn compile_rows(&self, _loops: &[(Tape, RowPlaces)]) -> Result<Box<dyn RowLoop>, Refused> {
        Err(Refused { reason: "this backend gathers".to_string() })
    }

    /// Compile `tape` to be run over segments of rows.
    ///
    /// # Errors
    /// See [`Backend::compile_rows`].
    fn compile_segments(
        &self,
        _tape: &Tape,
        _places: &SegmentPlaces,
    ) -> Result<Box<dyn SegmentLoop>, Refused> {
        Err(Refused { reason: "this backend gathers".to_string() })
    }

    /// Compile `tape` to be run over diagonals of pairs.
    ///
    /// # Errors
    /// See [`Backend::compile_rows`].
    fn compile_diagonals(
        &self,
        _tape: &Tape,
        _places: &DiagonalPlaces,
    ) -> Result<Box<dyn DiagonalLoop>, Refused> {
        Err(Refused { reason: "this backend gathers".to_string() })
    }
}

/// Map of a cycle: a tape whose outputs take the place of its first states.
pub struct CycleMap<'a> {
    /// The tape; it does not read the time.
    pub tape: &'a Tape,
    /// Lanes of the array.
    pub lanes: usize,
    /// True if the first lane alone is computed; the bound values have one lane then.
    pub first_alone: bool,
    /// Largest number of times that it is applied in a turn of the cycle; fewer if the tape does
    /// not go on.
    pub turns: u32,
}

/// Maps of one array that are applied one after the other, and all of them again while the last one
/// goes on.
pub trait Cycle: Send + Sync {
    /// Length of the scratch.
    fn work_len(&self) -> usize;

    /// Bound values of all maps, from those that a [`Kernel`] of each has.
    fn bind(&self, values: &[&[f64]]) -> Aligned;

    /// Run the cycle, at most `count` times.
    fn run(&self, bound: &[f64], x: &mut [f64], count: u64, work: &mut [f64]);
}

/// Rows of a segment that are computed side by side. Row r adds to number r mod 8 of eight sums, in
/// every backend.
pub const SEGMENT_LANES: usize = 8;

/// Places at which the rows of a segment read and add. For one body of a sum over pairs the rows
/// are its partners. The places are relative to the start of the segment in the arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentPlaces {
    /// One place for every state.
    pub states: Vec<SegmentPlace>,
    /// Place at which the first row adds each output, later rows one further on each; `None` for a
    /// summed output.
    pub outputs: Vec<Option<u32>>,
}

/// Place at which the first row of a segment reads a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPlace {
    /// In the array of states; each later row reads one further on.
    State(u32),
    /// In the table; each later row reads one further on.
    Table(u32),
    /// The same number for all rows, given with the segment: its index in [`Segment::still`].
    Still(u32),
}

/// A tape compiled for loops over segments of rows.
pub trait SegmentLoop: Send + Sync {
    /// Scratch needed by [`SegmentLoop::run`], in numbers.
    fn work_len(&self) -> usize;

    /// Run the prologue for these parameters.
    fn bind(&self, parameters: &[f64]) -> Aligned;

    /// Add the contributions of `rows` rows of a segment to `out`, and put the sums over them into
    /// `sums`, which has a number for every output. Up to [`SEGMENT_LANES`] − 1 numbers after the
    /// last row's are read and ignored.
    fn run(
        &self,
        rows: usize,
        bound: &[f64],
        arrays: Segment,
        out: &mut [f64],
        sums: &mut [f64],
        work: &mut [f64],
    );
}

/// Inputs of the rows of a segment: the arrays from the segment's start on, and values that are the
/// same for all rows.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The states.
    pub x: &'a [f64],
    /// The table, an array that no run changes.
    pub table: &'a [f64],
    /// Values that are the same for all rows.
    pub still: &'a [f64],
}

/// Places at which the rows of diagonals read and add. Every diagonal has one row less than the one
/// before. Rows of [`filling_rows`] come first, then those of [`last_rows`].
#[derive(Clone, Debug, PartialEq)]
pub struct DiagonalPlaces {
    /// Rows of the first diagonal.
    pub rows: usize,
    /// One place for every state.
    pub states: Vec<DiagonalPlace>,
    /// True for each output that moves on from one diagonal to the next. Row r of diagonal d then
    /// adds output k to number `k * stride + r + d` of the outputs, otherwise to number `k * stride
    /// + r`.
    pub outputs: Vec<bool>,
    /// Distance between two outputs, a multiple of [`SEGMENT_LANES`].
    pub stride: usize,
}

/// Place at which the first row of the first diagonal reads a state; true if each later diagonal
/// reads one further on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagonalPlace {
    /// In the array of states; each later row reads one further on.
    State(u32, bool),
    /// In the table; each later row reads one further on.
    Table(u32, bool),
    /// In the array of states, the same for all rows.
    Still(u32),
}

impl DiagonalPlaces {
    /// Numbers of the states and of the table that are reached, including the unused ones of a last
    /// vector.
    pub fn reach(&self) -> [usize; 2] {
        let mut reach = [0; 2];
        for &place in &self.states {
            let (array, end) = match place {
                DiagonalPlace::State(first, _) => {
                    (0, first as usize + self.rows + SEGMENT_LANES - 1)
                }
                DiagonalPlace::Table(first, _) => {
                    (1, first as usize + self.rows + SEGMENT_LANES - 1)
                }
                DiagonalPlace::Still(place) => (0, place as usize + 1),
            };
            reach[array] = end.max(reach[array]);
        }
        reach
    }
}

/// Rows of a diagonal, counted from 0 like the diagonals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowsOfDiagonal {
    /// Number of the diagonal.
    pub diagonal: usize,
    /// First of the rows.
    pub first: usize,
    /// Number of rows.
    pub count: usize,
}

/// Rows of all diagonals that fill vectors. The first diagonal has `longest` rows and each later
/// one has one less.
pub fn filling_rows(longest: usize) -> impl Iterator<Item = RowsOfDiagonal> {
    let of = |(diagonal, rows): (usize, usize)| RowsOfDiagonal {
        diagonal,
        first: 0,
        count: rows - rows % SEGMENT_LANES,
    };
    (1..=longest).rev().enumerate().map(of).take_while(|rows| rows.count > 0)
}

/// The other rows of these diagonals, those of two diagonals in one vector if it has room.
pub fn last_rows(longest: usize) -> Vec<[RowsOfDiagonal; 2]> {
    let of = |(diagonal, rows): (usize, usize)| {
        let count = rows % SEGMENT_LANES;
        RowsOfDiagonal { diagonal, first: rows - count, count }
    };
    let mut rest: VecDeque<_> =
        (1..=longest).rev().enumerate().map(of).filter(|rows| rows.count > 0).collect();
    rest.make_contiguous().sort_by_key(|rows| Reverse(rows.count));
    let mut together = Vec::new();
    while let Some(most) = rest.pop_front() {
        let fits = rest.back().is_some_and(|fewest| most.count + fewest.count <= SEGMENT_LANES);
        together.push([
            most,
            if fits { rest.pop_back().unwrap_or_default() } else { RowsOfDiagonal::default() },
        ]);
    }
    together
}

/// A tape compiled for loops over diagonals of pairs.
pub trait DiagonalLoop: Send + Sync {
    /// Scratch needed by [`DiagonalLoop::run`], in numbers.
    fn work_len(&self) -> usize;

    /// Run the prologue for these parameters.
    fn bind(&self, parameters: &[f64]) -> Aligned;

    /// Add the contributions of all rows to the outputs. Up to [`SEGMENT_LANES`] − 1 numbers after
    /// those of the last row are read as well, and ignored.
    fn run(&self, bound: &[f64], x: &[f64], table: &[f64], out: &mut [f64], work: &mut [f64]);
}

/// Sum of eight sums that were computed side by side.
pub fn sum_of_lanes(sums: [f64; SEGMENT_LANES]) -> f64 {
    by_halves(sums, |a, b| a + b)
}

/// Places of the numbers of row r in arrays: state k at `states[k] + r`, output k at `outputs[k] +
/// r`.
#[derive(Clone, Debug, PartialEq)]
pub struct RowPlaces {
    /// One place for every state.
    pub states: Vec<RowPlace>,
    /// One place for every output.
    pub outputs: Vec<u32>,
    /// Number of rows.
    pub rows: usize,
}

impl RowPlaces {
    /// Numbers of the arrays that the rows reach from the first one on.
    pub fn reach(&self) -> Reach {
        let outputs =
            self.outputs.iter().map(|&first| first as usize + self.rows).max().unwrap_or(0);
        let mut reach = Reach { outputs, ..Reach::default() };
        for &place in &self.states {
            let (array, end) = match place {
                RowPlace::State(first) => (&mut reach.states, first as usize + self.rows),
                RowPlace::Table(first) => (&mut reach.table, first as usize + self.rows),
                RowPlace::Still(place) => (&mut reach.still, place as usize + 1),
            };
            *array = end.max(*array);
        }
        reach
    }

    /// States that are the same for all rows, each with its place.
    pub fn still(&self) -> impl Iterator<Item = (usize, u32)> {
        let still = |(k, &place): (usize, &RowPlace)| {
            if let RowPlace::Still(at) = place { Some((k, at)) } else { None }
        };
        self.states.iter().enumerate().filter_map(still)
    }
}

/// Numbers of the arrays that rows reach. A loop that begins at a later row reaches as much further
/// in the states and the table, but not in the states that are the same for all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// States that differ from row to row.
    pub states: usize,
    /// States that are the same for all rows.
    pub still: usize,
    /// Table.
    pub table: usize,
    /// Outputs.
    pub outputs: usize,
}

impl Reach {
    /// The larger of both reaches, array by array.
    pub fn or(self, other: Reach) -> Reach {
        Reach {
            states: self.states.max(other.states),
            still: self.still.max(other.still),
            table: self.table.max(other.table),
            outputs: self.outputs.max(other.outputs),
        }
    }

    /// The largest of all arrays.
    pub fn largest(self) -> usize {
        self.states.max(self.still).max(self.table).max(self.outputs)
    }

    /// True if states of this length hold what a loop from row `first` on reads.
    pub fn within_states(self, first: usize, length: usize) -> bool {
        (self.states == 0 || first + self.states <= length) && self.still <= length
    }
}

/// Place at which the first row reads a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPlace {
    /// In the array of states.
    State(u32),
    /// In the table, an array that no run changes.
    Table(u32),
    /// In the array of states, the same for all rows.
    Still(u32),
}

/// Arrays that loops over rows read and write.
#[derive(Debug)]
pub enum RowArrays<'a> {
    /// States and outputs in separate arrays.
    Apart(&'a [f64], &'a mut [f64]),
    /// Both in one array, the outputs from this place on: a loop may read outputs of the loops
    /// before it.
    Within(&'a mut [f64], usize),
}

impl RowArrays<'_> {
    /// Reborrow the arrays.
    pub fn again(&mut self) -> RowArrays<'_> {
        match self {
            RowArrays::Apart(x, out) => RowArrays::Apart(x, out),
            RowArrays::Within(all, outputs) => RowArrays::Within(all, *outputs),
        }
    }

    /// Numbers from which the outputs from number `at` on are computed, and these outputs.
    pub fn at(&mut self, at: usize) -> (&[f64], &mut [f64]) {
        match self {
            RowArrays::Apart(x, out) => (x, &mut out[at..]),
            RowArrays::Within(all, outputs) => {
                let (before, behind) = all.split_at_mut(*outputs + at);
                (before, behind)
            }
        }
    }
}

/// Tapes compiled for loops over rows.
pub trait RowLoop: Send + Sync {
    /// Scratch needed by [`RowLoop::run`], in numbers.
    fn work_len(&self) -> usize;

    /// Run the prologues for these parameters.
    fn bind(&self, parameters: &[f64]) -> Aligned;

    /// Evaluate the outputs of all rows. The first one reads row `first` of the arrays; still
    /// values do not depend on it.
    fn run(&self, first: usize, bound: &[f64], table: &[f64], arrays: RowArrays, work: &mut [f64]);
}

impl dyn Backend + '_ {
    /// Compile `tape` for this many lanes, or interpret it if this backend refuses.
    pub fn compile_any(&self, tape: &Tape, lanes: usize) -> Box<dyn Kernel> {
        let compiled = self.compile(tape, lanes);
        // A tape may be too long for machine code; the interpreter takes any length.
        compiled.unwrap_or_else(|_| Box::new(Program::new(tape, lanes)))
    }
}

/// Reason why a backend cannot be used here.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    /// One sentence for the user.
    pub reason: String,
}

/// A compiled tape: immutable and shared between threads; scratch comes from the caller.
pub trait Kernel: Send + Sync {
    /// Number of lanes of its arrays: evaluations side by side, or the first one alone (see
    /// [`Backend::compile_first_lane`]).
    fn lanes(&self) -> usize;

    /// Scratch needed by [`Kernel::run`] and [`Kernel::iterate`], in numbers.
    fn work_len(&self) -> usize;

    /// Number of outputs.
    fn outputs(&self) -> usize;

    /// Run the prologue for one set of parameters, common to all lanes; the result is an argument
    /// of every run.
    fn bind(&self, parameters: &[f64]) -> Aligned;

    /// Set parameters for one lane of `bound` alone.
    fn rebind(&self, bound: &mut [f64], lane: usize, parameters: &[f64]);

    /// Evaluate the outputs at (t, x).
    fn run(&self, bound: &[f64], t: &[f64], x: &[f64], out: &mut [f64], work: &mut [f64]);

    /// Evaluate `count` times, each time putting output k into x_k: a map of x to itself, iterated.
    /// There are at most as many outputs as states, and the tape does not read the time (a loop
    /// over time counts its steps in x). If the tape has a stop condition ([`Tape::goes_on`]),
    /// lanes that are computed together stop as soon as one of them does.
    fn iterate(&self, bound: &[f64], x: &mut [f64], count: u64, work: &mut [f64]);

    /// Iterate such a map and keep every state: the first of `states` is given, and those that
    /// follow are filled in. There are as many outputs as states; a stop condition is ignored.
    fn iterate_keeping(&self, bound: &[f64], states: &mut [f64], work: &mut [f64]) {
        keep_one_by_one(self, bound, states, work);
    }
}

/// Kernel of one lane for the first lane of wider arrays, by copies.
struct FirstLane {
    kernel: Box<dyn Kernel>,
    states: usize,
    lanes: usize,
}

impl FirstLane {
    /// Copy the first lane of the states into the scratch, which is split behind it.
    fn gathered<'w>(&self, x: &[f64], work: &'w mut [f64]) -> (&'w mut [f64], &'w mut [f64]) {
        let (states, work) = work.split_at_mut(self.states);
        states.iter_mut().zip(x.iter().step_by(self.lanes)).for_each(|(state, x)| *state = *x);
        (states, work)
    }

    fn scatter(&self, from: &[f64], to: &mut [f64]) {
        to.iter_mut().step_by(self.lanes).zip(from).for_each(|(to, from)| *to = *from);
    }
}

impl Kernel for FirstLane {
    fn lanes(&self) -> usize {
        self.lanes
    }

    fn work_len(&self) -> usize {
        self.states + self.outputs() + self.kernel.work_len()
    }

    fn outputs(&self) -> usize {
        self.kernel.outputs()
    }

    fn bind(&self, parameters: &[f64]) -> Aligned {
        self.kernel.bind(parameters)
    }

    fn rebind(&self, bound: &mut [f64], lane: usize, parameters: &[f64]) {
        self.kernel.rebind(bound, lane, parameters);
    }

    fn run(&self, bound: &[f64], t: &[f64], x: &[f64], out: &mut [f64], work: &mut [f64]) {
        let (states, work) = self.gathered(x, work);
        let (outputs, work) = work.split_at_mut(self.outputs());
        self.kernel.run(bound, t, states, outputs, work);
        self.scatter(outputs, out);
    }

    fn iterate(&self, bound: &[f64], x: &mut [f64], count: u64, work: &mut [f64]) {
        let (states, work) = self.gathered(x, work);
        self.kernel.iterate(bound, states, count, work);
        self.scatter(&states[..self.outputs()], x);
    }
}

/// [`Kernel::iterate_keeping`] by single evaluations.
pub fn keep_one_by_one<K: Kernel + ?Sized>(
    kernel: &K,
    bound: &[f64],
    states: &mut [f64],
    work: &mut [f64],
) {
    let len = kernel.outputs() * kernel.lanes();
    for at in (len..states.len()).step_by(len.max(1)) {
        let (before, behind) = states.split_at_mut(at);
        let x = &before[at - len..];
        // The time is not read, so any array of its length will do.
        kernel.run(bound, x, x, &mut behind[..len], work);
    }
}

/// Part of a tape that depends on parameters only, with the registers of it that the body needs.
#[derive(Clone, Debug)]
pub struct Prologue {
    instructions: Vec<Instruction>,
    bound: Vec<Register>,
    /// Instructions that read a parameter, with its number.
    parameters: Vec<(usize, usize)>,
    /// Instructions that depend on parameters, in their order.
    dependent: Vec<Dependent>,
}

/// Instruction of a prologue that depends on parameters.
#[derive(Clone, Copy, Debug)]
struct Dependent {
    instruction: usize,
    /// Bit for each of [`Prologue::parameters`] on which it depends; the last ones share one bit.
    on: u64,
    /// Place among the bound registers, if the body needs it.
    bound: Option<usize>,
}

impl Prologue {
    /// Prologue of `tape`.
    pub fn new(tape: &Tape) -> Prologue {
        let mut needed = vec![false; tape.prologue];
        let body = tape.instructions[tape.prologue..].iter().flat_map(|i| i.arguments());
        for register in body.chain(tape.outputs.iter().copied()).chain(tape.goes_on) {
            if let Some(needed) = needed.get_mut(register as usize) {
                *needed = true;
            }
        }
        let instructions = tape.instructions[..tape.prologue].to_vec();
        let bound: Vec<Register> =
            (0..tape.prologue as Register).filter(|&r| needed[r as usize]).collect();
        let (mut parameters, mut depends) = (Vec::new(), Vec::with_capacity(instructions.len()));
        for (i, instruction) in instructions.iter().enumerate() {
            depends.push(match instruction {
                Instruction::Parameter(k) => {
                    parameters.push((i, *k as usize));
                    1 << parameters.len().min(63)
                }
                other => {
                    other.arguments().fold(0, |all, argument| all | depends[argument as usize])
                }
            });
        }
        let dependent = depends.into_iter().enumerate().filter(|(_, on)| *on != 0);
        let dependent = dependent.map(|(instruction, on)| {
            let bound = bound.binary_search(&(instruction as Register)).ok();
            Dependent { instruction, on, bound }
        });
        let dependent = dependent.collect();
        Prologue { instructions, bound, parameters, dependent }
    }

    /// Registers whose values [`Prologue::bind`] returns, in order.
    pub fn bound(&self) -> &[Register] {
        &self.bound
    }

    /// Values of [`Prologue::bound`], the same in every lane. They are followed by those of all
    /// instructions, lane by lane, for [`Prologue::rebind`].
    pub fn bind(&self, parameters: &[f64], lanes: usize) -> Aligned {
        let mut result = Aligned::zeros((self.bound.len() + self.instructions.len()) * lanes);
        let values = self.values(parameters);
        let (bound, of_lanes) = result.split_at_mut(self.bound.len() * lanes);
        for (lanes, &register) in bound.chunks_mut(lanes.max(1)).zip(&self.bound) {
            lanes.fill(values[register as usize]);
        }
        for lane in of_lanes.chunks_exact_mut(values.len().max(1)) {
            lane.copy_from_slice(&values);
        }
        result
    }

    /// Update the values of [`Prologue::bound`] in one lane of a result of [`Prologue::bind`]. Only
    /// values that depend on changed parameters are computed: many of an ensemble's trajectories
    /// differ in their targets alone.
    pub fn rebind(&self, bound: &mut [f64], lanes: usize, lane: usize, parameters: &[f64]) {
        let (bound, values) = bound.split_at_mut(self.bound.len() * lanes);
        let values = &mut values[lane * self.instructions.len()..][..self.instructions.len()];
        let mut changed = 0;
        for (at, &(i, k)) in self.parameters.iter().enumerate() {
            if values[i].to_bits() != parameters[k].to_bits() {
                changed |= 1 << (at + 1).min(63);
            }
        }
        if changed == 0 {
            return;
        }
        for &Dependent { instruction, on, bound: place } in &self.dependent {
            if on & changed == 0 {
                continue;
            }
            let value = self.value(instruction, parameters, values);
            values[instruction] = value;
            if let Some(place) = place {
                bound[place * lanes + lane] = value;
            }
        }
    }

    fn values(&self, parameters: &[f64]) -> Vec<f64> {
        let mut values = vec![0.0; self.instructions.len()];
        for i in 0..values.len() {
            values[i] = self.value(i, parameters, &values);
        }
        values
    }

    /// Value of an instruction, given those of the instructions before.
    fn value(&self, i: usize, parameters: &[f64], values: &[f64]) -> f64 {
        match self.instructions[i] {
            Instruction::Constant(bits) => f64::from_bits(bits),
            Instruction::Parameter(k) => parameters[k as usize],
            instruction => {
                let (operation, arguments) =
                    Operation::of(instruction).expect("no state or time in a prologue");
                operation.evaluate(arguments.map(|r| values[r as usize]))
            }
        }
    }
}

/// The scalar interpreter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interpreter;

impl Interpreter {
    /// Compile `tape` for one lane.
    pub fn program(&self, tape: &Tape) -> Program {
        Program::new(tape, 1)
    }
}

impl Backend for Interpreter {
    fn compile(&self, tape: &Tape, lanes: usize) -> Result<Box<dyn Kernel>, Refused> {
        Ok(Box::new(Program::new(tape, lanes)))
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    One(One),
    Two(Two),
    Three(Three),
    Repair(Elementary),
}

impl Operation {
    #[inline(always)]
    fn evaluate(self, [a, b, c, d]: [f64; 4]) -> f64 {
        match self {
            Operation::Two(op) => op.evaluate(a, b),
            Operation::Three(op) => op.evaluate(a, b, c),
            Operation::One(op) => op.evaluate(a),
            Operation::Repair(function) => {
                if d.to_bits() == TRUE {
                    c
                } else {
                    function.exact(a, b)
                }
            }
        }
    }

    fn of(instruction: Instruction) -> Option<(Operation, [Register; 4])> {
        Some(match instruction {
            Instruction::Constant(_)
            | Instruction::State(_)
            | Instruction::Parameter(_)
            | Instruction::Time => {
                return None;
            }
            Instruction::One(op, a) => (Operation::One(op), [a; 4]),
            Instruction::Two(op, a, b) => (Operation::Two(op), [a, b, a, a]),
            Instruction::Three(op, a, b, c) => (Operation::Three(op), [a, b, c, a]),
            Instruction::Repair(function, list) => (Operation::Repair(function), list),
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Step {
    operation: Operation,
    destination: u32,
    arguments: [u32; 4],
}

/// A tape with its registers assigned to slots of the scratch: x, t, the bound values, then
/// temporaries that are reused as soon as their value is dead.
pub struct Program {
    prologue: Prologue,
    steps: Vec<Step>,
    outputs: Vec<u32>,
    goes_on: Option<u32>,
    states: usize,
    lanes: usize,
    slots: usize,
    /// Lanes that are evaluated together, slot by slot: one, or all if lanes are mixed.
    together: usize,
}

impl Program {
    /// Compile `tape` for this many lanes, which are evaluated one after the other.
    pub fn new(tape: &Tape, lanes: usize) -> Program {
        let code = &tape.instructions;
        let mut last_use = vec![0usize; code.len()];
        for (i, instruction) in code.iter().enumerate() {
            for a in instruction.arguments() {
                last_use[a as usize] = i;
            }
        }
        for &output in tape.outputs.iter().chain(&tape.goes_on) {
            last_use[output as usize] = usize::MAX;
        }

        let prologue = Prologue::new(tape);
        let mut slot = vec![u32::MAX; code.len()];
        for (k, &register) in prologue.bound().iter().enumerate() {
            slot[register as usize] = (tape.states + 1 + k) as u32;
        }
        let first_temporary = (tape.states + 1 + prologue.bound().len()) as u32;
        let mut top = first_temporary;
        let mut free: Vec<u32> = Vec::new();
        let mut steps = Vec::new();
        for i in tape.prologue..code.len() {
            match code[i] {
                Instruction::State(k) => slot[i] = k,
                Instruction::Time => slot[i] = tape.states as u32,
                instruction => {
                    let (operation, arguments) = Operation::of(instruction)
                        .expect("numbers and parameters are in the prologue");
                    let arguments = arguments.map(|a| slot[a as usize]);
                    // Arguments are read before the result is written, so it may take a dead
                    // argument's slot.
                    let dying = free.len();
                    for a in instruction.arguments() {
                        let s = slot[a as usize];
                        // An argument may occur twice in one instruction.
                        if last_use[a as usize] == i
                            && s >= first_temporary
                            && !free[dying..].contains(&s)
                        {
                            free.push(s);
                        }
                    }
                    slot[i] = free.pop().unwrap_or_else(|| {
                        top += 1;
                        top - 1
                    });
                    steps.push(Step { operation, destination: slot[i], arguments });
                }
            }
        }
        Program {
            prologue,
            steps,
            outputs: tape.outputs.iter().map(|&r| slot[r as usize]).collect(),
            goes_on: tape.goes_on.map(|r| slot[r as usize]),
            states: tape.states,
            lanes,
            slots: top as usize,
            together: if tape.mixes_lanes() { lanes } else { 1 },
        }
    }

    /// Evaluate with t and x already in the scratch; the outputs are then in their slots.
    fn evaluate(&self, work: &mut [f64]) {
        if self.together == 1 {
            for step in &self.steps {
                let arguments = step.arguments.map(|s| work[s as usize]);
                work[step.destination as usize] = step.operation.evaluate(arguments);
            }
            return;
        }
        for step in &self.steps {
            let at = |slot: u32, lane: usize| slot as usize * self.together + lane;
            if let Operation::One(One::Spread(lane)) = step.operation {
                let value = work[at(step.arguments[0], usize::from(lane))];
                work[at(step.destination, 0)..][..self.together].fill(value);
                continue;
            }
            if let Operation::Three(Three::Shuffle) = step.operation {
                let [a, b, places, _] = step.arguments.map(|s| at(s, 0)..at(s, self.together));
                let shuffled: Vec<f64> = work[places]
                    .iter()
                    .map(|&place| shuffle(&work[a.clone()], &work[b.clone()], place))
                    .collect();
                work[at(step.destination, 0)..][..self.together].copy_from_slice(&shuffled);
                continue;
            }
            for lane in 0..self.together {
                let arguments = step.arguments.map(|s| work[at(s, lane)]);
                work[at(step.destination, lane)] = step.operation.evaluate(arguments);
            }
        }
    }

    /// Load number k of `from` into slot `slot` + k, for the lanes from `first` on that are
    /// evaluated together.
    fn load(&self, from: &[f64], count: usize, first: usize, slot: usize, work: &mut [f64]) {
        for (k, into) in
            work[slot * self.together..].chunks_exact_mut(self.together).take(count).enumerate()
        {
            into.copy_from_slice(&from[k * self.lanes + first..][..self.together]);
        }
    }

    /// Copy these slots back into an array, the reverse of [`Program::load`].
    fn take(&self, slots: &[u32], into: &mut [f64], first: usize, work: &[f64]) {
        for (k, &slot) in slots.iter().enumerate() {
            into[k * self.lanes + first..][..self.together]
                .copy_from_slice(&work[slot as usize * self.together..][..self.together]);
        }
    }

    /// Iterate like [`Kernel::iterate`]. Returns the number of turns after which the stop condition
    /// ended the loop, the largest of all lanes; `None` if it ended none.
    pub fn iterate_while(
        &self,
        bound: &[f64],
        x: &mut [f64],
        count: u64,
        work: &mut [f64],
    ) -> Option<u64> {
        let together = self.together;
        let mut stopped = None;
        for first in (0..self.lanes).step_by(together) {
            self.load(x, self.states, first, 0, work);
            self.load(bound, self.prologue.bound().len(), first, self.states + 1, work);
            for turn in 1..=count {
                self.evaluate(work);
                // An output may be another state component, so all are read before any is written.
                let (slots, outputs) = work.split_at_mut(self.slots * together);
                for (out, &slot) in outputs.chunks_exact_mut(together).zip(&self.outputs) {
                    out.copy_from_slice(&slots[slot as usize * together..][..together]);
                }
                let stops = self.goes_on.is_some_and(|mask| {
                    slots[mask as usize * together..][..together]
                        .iter()
                        .any(|mask| mask.to_bits() != TRUE)
                });
                slots[..self.outputs.len() * together]
                    .copy_from_slice(&outputs[..self.outputs.len() * together]);
                if stops {
                    stopped = Some(stopped.map_or(turn, |most: u64| most.max(turn)));
                    break;
                }
            }
            for k in 0..self.outputs.len() {
                x[k * self.lanes + first..][..together]
                    .copy_from_slice(&work[k * together..][..together]);
            }
        }
        stopped
    }
}

impl Kernel for Program {
    fn lanes(&self) -> usize {
        self.lanes
    }

    fn work_len(&self) -> usize {
        (self.slots + self.outputs.len()) * self.together
    }

    fn outputs(&self) -> usize {
        self.outputs.len()
    }

    fn bind(&self, parameters: &[f64]) -> Aligned {
        self.prologue.bind(parameters, self.lanes)
    }

    fn rebind(&self, bound: &mut [f64], lane: usize, parameters: &[f64]) {
        self.prologue.rebind(bound, self.lanes, lane, parameters);
    }

    fn run(&self, bound: &[f64], t: &[f64], x: &[f64], out: &mut [f64], work: &mut [f64]) {
        for first in (0..self.lanes).step_by(self.together) {
            self.load(x, self.states, first, 0, work);
            self.load(t, 1, first, self.states, work);
            self.load(bound, self.prologue.bound().len(), first, self.states + 1, work);
            self.evaluate(work);
            self.take(&self.outputs, out, first, work);
        }
    }

    fn iterate(&self, bound: &[f64], x: &mut [f64], count: u64, work: &mut [f64]) {
        self.iterate_while(bound, x, count, work);
    }
}
