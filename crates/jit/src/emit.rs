//! Emitter of machine code for a list of steps: chooses instructions and their operands.
//!
//! The resulting function is `(x, t, bound, out, scratch, count) -> flag` in the System V
//! convention. It uses vector registers and argument registers only, so there is nothing to save.
//! Pointers come with a bias ([`Assembler::bias`]).

use crate::encode::{
    Assembler, Code, Direction, Form, General, Label, Memory, Operand, Predicate, Signs, Vector,
};
use crate::isa::{Isa, Width};
use crate::registers::Registers;
use crate::steps::{Action, Carried, Home, NEVER, Step, Steps, Value};
use holonome_model::graph::interpret::{
    DiagonalPlace, DiagonalPlaces, RowPlace, RowPlaces, SEGMENT_LANES, SegmentPlace, SegmentPlaces,
    filling_rows, last_rows,
};
use holonome_model::graph::primitive::{One, Three, Two};
use holonome_model::graph::tape::Tape;

/// Distance in steps of the next read within which a value is worth loading into a register, if one
/// is free.
const NEAR: u32 = 12;
/// Registers that such early loads leave free.
const SPARE: u32 = 2;
/// Operations of a tape above which one vector is enough to keep the processor busy.
const LONGEST_PAIR: usize = 1000;
/// Approximate bytes of code per step.
const BYTES_PER_STEP: usize = 10;

/// Code and the scratch that it needs.
#[derive(Debug)]
pub(crate) struct Emitted {
    pub bytes: Vec<u8>,
    /// Vectors of scratch for spilled values.
    pub spills: usize,
}

/// Layout of the arrays and the vectors that compute on them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub isa: Isa,
    pub width: Width,
    /// Number of vectors computed side by side.
    pub vectors: usize,
    /// Lanes that are computed, a multiple of all vectors'; bound values and the scratch have so
    /// many.
    pub computed: usize,
    /// Lanes of states and outputs: all are computed, or only the first one.
    pub lanes: usize,
}

impl Shape {
    /// Shape for `tape`.
    pub(crate) fn new(isa: Isa, lanes: usize, tape: &Tape) -> Shape {
        let width = isa.width(lanes);
        let pairs = lanes.is_multiple_of(2 * width.numbers()) && tape.operations() <= LONGEST_PAIR;
        let vectors =
            if tape.mixes_lanes() { lanes / width.numbers() } else { 1 + usize::from(pairs) };
        Shape { isa, width, vectors, computed: lanes, lanes }
    }

    /// Shape for the first lane of arrays of so many lanes.
    pub(crate) fn of_first_lane(isa: Isa, lanes: usize) -> Shape {
        Shape { isa, width: Width::One, vectors: 1, computed: 1, lanes }
    }

    /// Shape for [`SEGMENT_LANES`] rows side by side, whatever the tape.
    pub(crate) fn of_segments(isa: Isa) -> Shape {
        let width = isa.width(SEGMENT_LANES);
        let vectors = SEGMENT_LANES / width.numbers();
        Shape { isa, width, vectors, computed: SEGMENT_LANES, lanes: SEGMENT_LANES }
    }

    /// Number of vectors computed side by side, and lanes of each.
    pub(crate) fn side_by_side(self) -> (u32, u32) {
        (self.vectors as u32, self.width.numbers() as u32)
    }

    /// Number of lanes computed side by side.
    pub(crate) fn together(self) -> usize {
        self.width.numbers() * self.vectors
    }

    /// Bytes by which every pointer passed to the code is ahead of its array.
    pub(crate) fn bias(self) -> i32 {
        Assembler::bias(self.isa, self.width)
    }

    /// True if arrays of this many variables can be addressed.
    pub(crate) fn reaches(self, variables: usize) -> bool {
        variables.checked_mul(8 * self.lanes).is_some_and(|bytes| bytes < i32::MAX as usize / 2)
    }
}

/// Code that runs the steps once. With `states`, the tape maps that many states to themselves and
/// raises no flags; the code then runs `count` > 0 times, from each state to the one that follows
/// in memory.
pub(crate) fn run(steps: &Steps, shape: Shape, states: Option<usize>) -> Emitted {
    let mut e = Emitter::new(steps, shape, false);
    let head = states.map(|_| e.assembler.label());
    e.steps(&steps.list);
    if let (Some(head), Some(states)) = (head, states) {
        let bytes = i32::try_from(8 * states * shape.lanes).expect("states are within reach");
        [General::Rdi, General::Rcx]
            .into_iter()
            .for_each(|pointer| e.assembler.advance(pointer, bytes));
        e.assembler.count_down(General::R9, head);
    }
    let flags = steps
        .flags
        .iter()
        .map(|&flag| e.in_register(flag, NEVER, steps.list.len() as u32))
        .collect();
    e.leave(flags)
}

/// Code that runs the steps in a loop, `count` > 0 times.
pub(crate) fn iterate(steps: &Steps, shape: Shape) -> Emitted {
    let mut e = Emitter::new(steps, shape, true);
    let flags = e.turns(steps, true);
    e.leave(flags)
}

/// A map of a [`cycle`].
pub(crate) struct OfCycle {
    pub steps: Steps,
    pub shape: Shape,
    /// Place of its bound values.
    pub bound: usize,
    /// Largest number of turns.
    pub turns: u32,
}

/// Code that runs maps of one array one after the other, each in a loop, and all of them again
/// while the last one goes on, a number of times that takes the place of the time in other code. No
/// pointer has a bias; no map raises flags.
pub(crate) fn cycle(maps: &[OfCycle]) -> Emitted {
    let mut made: Option<(Assembler, Label)> = None;
    let mut spills = 0;
    for (number, of) in maps.iter().enumerate() {
        let OfCycle { steps, shape, bound, turns } = of;
        let mut e = Emitter::new(steps, *shape, true);
        let head = match made.take() {
            None => e.assembler.label(),
            Some((mut assembler, head)) => {
                assembler.change_width(shape.width);
                e.assembler = assembler;
                head
            }
        };
        let shift = |e: &mut Emitter, sign: i32| {
            let bytes =
                i32::try_from(8 * bound).expect("bound values are within reach") + shape.bias();
            [General::Rdi, General::Rcx, General::R8]
                .into_iter()
                .for_each(|p| e.assembler.advance(p, sign * shape.bias()));
            e.assembler.advance(General::Rdx, sign * bytes);
        };
        let is_last = number + 1 == maps.len();
        shift(&mut e, 1);
        if !is_last {
            e.assembler.set(General::R9, *turns);
        }
        let flags = e.turns(steps, !is_last);
        debug_assert!(flags.is_empty(), "no map raises flags");
        shift(&mut e, -1);
        spills = spills.max(e.spills as usize * shape.width.numbers());
        if is_last {
            e.assembler.count_down_unless_flagged(General::Rsi, head);
            let Emitted { bytes, .. } = e.leave(Vec::new());
            return Emitted { bytes, spills };
        }
        made = Some((e.assembler, head));
    }
    unreachable!("a cycle has maps")
}

/// A loop of [`rows`].
pub(crate) struct OfRows<'a> {
    pub steps: Steps,
    /// Shape of at most as many lanes side by side as there are rows.
    pub shape: Shape,
    pub places: &'a RowPlaces,
    /// Place of its bound values, a vector for each.
    pub bound: usize,
}

/// Code that runs loops over rows, one after the other: state k and output k of row r are at
/// `places.states[k] + r` and `places.outputs[k] + r`. No pointer has a bias. The table takes the
/// place of the time in other code, and a pointer to the values that are the same for all rows that
/// of the count.
pub(crate) fn rows(loops: &[OfRows]) -> Emitted {
    let mut all = Emitted { bytes: Vec::new(), spills: 0 };
    for (number, of) in loops.iter().enumerate() {
        let OfRows { steps, shape, places, bound } = of;
        let mut e = Emitter::new(steps, *shape, false);
        e.places = Places::Rows((*places).clone(), *bound);
        for (k, first) in places.still() {
            let from = Memory { base: General::R9, displacement: 8 * first as i32 };
            match shape.width {
                Width::One => e.assembler.load(0, from),
                _ => e.assembler.spread(0, from),
            }
            let place = e.address(Home::State((k * shape.vectors) as u32));
            e.assembler.store(place, 0);
        }
        let (rows, together) = (places.rows, shape.together());
        let (whole, rest) = (rows / together, rows % together);
        let advance = |e: &mut Emitter, rows: i64| {
            let bytes = i32::try_from(8 * rows).expect("arrays are within reach");
            for pointer in [General::Rdi, General::Rsi, General::Rcx] {
                e.assembler.advance(pointer, bytes);
            }
        };
        // The last rows first, with some before them that are computed twice: nothing reads what a
        // loop writes.
        if rest > 0 {
            advance(&mut e, (rows - together) as i64);
            e.assembler.set(General::R10, 2);
        }
        let first = if rest > 0 { 1 } else { whole };
        if rows > together {
            e.assembler.set(General::R11, first as u32);
        }
        let head = e.assembler.label();
        e.steps(&steps.list);
        if rows > together {
            advance(&mut e, together as i64);
            e.assembler.count_down(General::R11, head);
            advance(&mut e, -(rows as i64));
        }
        if rest > 0 {
            e.assembler.set(General::R11, whole as u32);
            e.assembler.count_down(General::R10, head);
            advance(&mut e, rest as i64);
        }
        // Decoders work best if the next loop is aligned.
        let is_last = number + 1 == loops.len();
        if !is_last {
            e.assembler.label();
        }
        let Emitted { bytes, spills } = if is_last { e.leave(Vec::new()) } else { e.finish() };
        all.bytes.extend(bytes);
        all.spills = all.spills.max((places.still().count() + spills) * shape.width.numbers());
    }
    all
}

/// Code for a loop over the rows of a segment, [`SEGMENT_LANES`] side by side, `count` > 0 times.
/// Pointers are as for [`rows`]. The scratch holds, [`SEGMENT_LANES`] numbers each: still values,
/// each given in its first number; the sums of the outputs, set to 0 here; the outputs of the last
/// rows; and spilled values. Outputs are added in place; those of the `last` rows, which may be
/// fewer, are put into the scratch.
pub(crate) fn segments(steps: &Steps, shape: Shape, places: &SegmentPlaces, last: bool) -> Emitted {
    debug_assert_eq!((shape.together(), shape.lanes), (SEGMENT_LANES, SEGMENT_LANES));
    let mut e = Emitter::new(steps, shape, false);
    e.places = Places::Segments(places.clone(), last);
    let scratch = |e: &Emitter, number: usize| Memory {
        base: General::R8,
        displacement: 8 * number as i32 - e.shape.bias(),
    };
    let vectors = (0..SEGMENT_LANES).step_by(shape.width.numbers());
    // Stored as vectors: reading a vector that was stored in parts would wait.
    let stays = stays(places);
    for k in 0..stays {
        e.assembler.spread(0, scratch(&e, k * SEGMENT_LANES));
        vectors
            .clone()
            .for_each(|lane| e.assembler.store(scratch(&e, k * SEGMENT_LANES + lane), 0));
    }
    if !last {
        e.assembler.zero(0);
        for k in (0..places.outputs.len()).filter(|&k| places.outputs[k].is_none()) {
            vectors.clone().for_each(|lane| {
                e.assembler.store(scratch(&e, (stays + k) * SEGMENT_LANES + lane), 0)
            });
        }
    }
    let head = e.assembler.label();
    e.steps(&steps.list);
    for pointer in [General::Rdi, General::Rsi, General::Rcx] {
        e.assembler.advance(pointer, 8 * shape.together() as i32);
    }
    e.assembler.count_down(General::R9, head);
    e.leave(Vec::new())
}

/// Numbers of scratch before the spilled values of a loop over segments.
pub(crate) fn segment_scratch(places: &SegmentPlaces) -> usize {
    SEGMENT_LANES * (stays(places) + 2 * places.outputs.len())
}

/// Number of still values of a segment.
pub(crate) fn stays(places: &SegmentPlaces) -> usize {
    let stays =
        |place: &SegmentPlace| if let SegmentPlace::Still(k) = *place { k as usize + 1 } else { 0 };
    places.states.iter().map(stays).max().unwrap_or(0)
}

/// Code for all diagonals of a sum over pairs, [`SEGMENT_LANES`] rows side by side. The pointers
/// are those to the states, the table, the bound values, the outputs and the scratch, as for
/// [`segments`]; places that move on with every diagonal have pointers of their own. Bound value
/// number `behind` is the first of the masks by number of rows, which the rest of
/// [`last_of_diagonals`] follows. The scratch holds, [`SEGMENT_LANES`] numbers each: what is kept
/// of the loops; still values; what the last rows read and add; and spilled values.
pub(crate) fn diagonals(
    steps: [&Steps; 2],
    shape: Shape,
    places: &DiagonalPlaces,
    behind: usize,
) -> Emitted {
    debug_assert_eq!((shape.together(), shape.lanes), (SEGMENT_LANES, SEGMENT_LANES));
    let scratch = |number: usize| Memory {
        base: General::R8,
        displacement: 8 * number as i32 - shape.bias(),
    };
    let mut e = Emitter::new(steps[0], shape, false);
    for (pointer, number) in
        [(General::Rdi, OF_STATES), (General::Rsi, OF_TABLE), (General::Rcx, OF_OUTPUTS)]
    {
        e.assembler.store_whole(scratch(number), pointer);
    }
    let still = places
        .states
        .iter()
        .filter_map(|place| if let DiagonalPlace::Still(at) = place { Some(at) } else { None });
    for (k, &at) in still.enumerate() {
        e.assembler.spread(0, Memory { base: General::Rdi, displacement: 8 * at as i32 });
        for lane in (0..SEGMENT_LANES).step_by(shape.width.numbers()) {
            e.assembler.store(scratch((1 + k) * SEGMENT_LANES + lane), 0);
        }
    }
    let mut spills = 0;
    if filling_rows(places.rows).next().is_some() {
        e = e.filling_rows(steps[0], places, scratch);
        spills = e.spills;
    }
    if !last_rows(places.rows).is_empty() {
        e = Emitter { assembler: e.assembler, ..Emitter::new(steps[1], shape, false) };
        e = e.last_rows(steps[1], places, behind, scratch);
    }
    let emitted = e.leave(Vec::new());
    Emitted { spills: emitted.spills.max(spills as usize), ..emitted }
}

/// Numbers at the start of the scratch of a loop over diagonals: the pointers to the states, the
/// table and the outputs; the offset of the diagonal in bytes; the rows left in it, or the vectors
/// of last rows left; and the pointer to the numbers that describe the latter.
const OF_STATES: usize = 0;
const OF_TABLE: usize = 1;
const OF_OUTPUTS: usize = 2;
const FURTHER_ON: usize = 3;
const LEFT: usize = 4;
const LAST: usize = 5;

/// Numbers of scratch for a state or an output of last rows: the rows of a second diagonal follow
/// those of the first.
const OF_LAST: usize = 2 * SEGMENT_LANES;

/// Numbers that describe a vector of last rows. In this order: the offsets in bytes of the rows of
/// each diagonal, for places that stay and for places that move on with the diagonal; the offsets
/// of their masks; and [`BESIDE`].
const NUMBERS_OF_LAST: usize = 8;
const BEHIND: [[usize; 2]; 2] = [[0, 1], [2, 3]];
const MASKS: [usize; 2] = [4, 5];
/// Offset in bytes of the rows of the second diagonal from those of the first one within a vector.
const BESIDE: usize = 6;

/// Masks of 0 to [`SEGMENT_LANES`] rows, then the numbers that describe all vectors of last rows,
/// as bits of integers.
pub(crate) fn last_of_diagonals(places: &DiagonalPlaces) -> Vec<f64> {
    let mut numbers = vec![0.0; (SEGMENT_LANES + 1) * SEGMENT_LANES];
    for (rows, mask) in numbers.chunks_exact_mut(SEGMENT_LANES).enumerate() {
        mask[..rows].fill(f64::from_bits(u64::MAX));
    }
    for rows in last_rows(places.rows) {
        let mut of = [0; NUMBERS_OF_LAST];
        for (k, rows) in rows.into_iter().enumerate() {
            of[BEHIND[k][0]] = rows.first;
            of[BEHIND[k][1]] = rows.first + rows.diagonal;
            of[MASKS[k]] = rows.count * SEGMENT_LANES;
        }
        of[BESIDE] = rows[0].count;
        numbers.extend(of.map(|number| f64::from_bits(8 * number as u64)));
    }
    numbers
}

/// Numbers of scratch before the spilled values of a loop over diagonals.
pub(crate) fn diagonal_scratch(places: &DiagonalPlaces) -> usize {
    last_scratch(places) + OF_LAST * (places.states.len() + places.outputs.len())
}

/// Numbers of scratch before the last rows.
fn last_scratch(places: &DiagonalPlaces) -> usize {
    let still = places.states.iter().filter(|place| matches!(place, DiagonalPlace::Still(_)));
    SEGMENT_LANES * (1 + still.count())
}

impl Emitter {
    /// Emit the loop over rows that fill vectors: all diagonals that have that many.
    fn filling_rows(
        mut self,
        steps: &Steps,
        places: &DiagonalPlaces,
        scratch: impl Fn(usize) -> Memory,
    ) -> Emitter {
        let a = &mut self.assembler;
        a.set(General::R9, 0);
        a.store_whole(scratch(FURTHER_ON), General::R9);
        a.set(General::R9, places.rows as u32);
        a.store_whole(scratch(LEFT), General::R9);
        self.places = Places::Diagonals(places.clone(), Loop::Filling);
        let diagonal = self.assembler.label();
        let a = &mut self.assembler;
        let both = [
            (General::Rdi, General::R10, OF_STATES),
            (General::Rsi, General::R11, OF_TABLE),
            (General::Rcx, General::Rax, OF_OUTPUTS),
        ];
        a.load_whole(General::R9, scratch(FURTHER_ON));
        for (here, further_on, number) in both {
            a.load_whole(here, scratch(number));
            a.load_whole(further_on, scratch(number));
            a.add_whole(further_on, General::R9);
        }
        a.load_whole(General::R9, scratch(LEFT));
        a.shift_whole(Direction::Right, General::R9, SEGMENT_LANES.ilog2() as u8);
        let head = a.label();
        self.steps(&steps.list);
        let a = &mut self.assembler;
        for pointer in both.into_iter().flat_map(|(here, further_on, _)| [here, further_on]) {
            a.advance(pointer, 8 * SEGMENT_LANES as i32);
        }
        a.count_down(General::R9, head);
        a.add_to(scratch(FURTHER_ON), 8);
        a.add_to(scratch(LEFT), -1);
        a.load_whole(General::R9, scratch(LEFT));
        a.shift_whole(Direction::Right, General::R9, SEGMENT_LANES.ilog2() as u8);
        a.go_back_unless_zero(diagonal);
        self
    }

    /// Emit the loop over the last rows: those of two diagonals are read side by side, and added
    /// one after the other.
    fn last_rows(
        mut self,
        steps: &Steps,
        places: &DiagonalPlaces,
        behind: usize,
        scratch: impl Fn(usize) -> Memory,
    ) -> Emitter {
        let masks = 8 * behind as i32 - self.shape.bias();
        let last = LastRows { places, masks, bias: self.shape.bias(), scratch: &scratch };
        let a = &mut self.assembler;
        a.store_whole(scratch(LAST), General::Rdx);
        a.set(General::R9, last_rows(places.rows).len() as u32);
        a.store_whole(scratch(LEFT), General::R9);
        self.places = Places::Diagonals(places.clone(), Loop::Last);
        let head = self.assembler.label();
        let lanes: Vec<usize> = (0..SEGMENT_LANES).step_by(self.shape.width.numbers()).collect();
        last.gather(&mut self.assembler, &lanes);
        self.steps(&steps.list);
        let a = &mut self.assembler;
        last.add(a, &lanes);
        a.advance(General::R9, 8 * NUMBERS_OF_LAST as i32);
        a.store_whole(scratch(LAST), General::R9);
        a.add_to(scratch(LEFT), -1);
        a.go_back_unless_zero(head);
        self
    }
}

/// Loop over diagonals.
#[derive(Clone, Copy, PartialEq)]
enum Loop {
    /// Over rows that fill vectors, in place.
    Filling,
    /// Over the last rows, in the scratch.
    Last,
}

/// Places of states and outputs.
enum Places {
    /// In arrays of lanes.
    Lanes,
    /// In rows, with the place of the bound values.
    Rows(RowPlaces, usize),
    /// In segments; true if the outputs go into the scratch, as for the last rows.
    Segments(SegmentPlaces, bool),
    Diagonals(DiagonalPlaces, Loop),
}

/// Place of an argument of the current step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    In(Vector),
    At(Memory),
    /// One number, for all lanes.
    Number(Memory),
}

impl Place {
    fn operand(self) -> Operand {
        match self {
            Place::In(r) => Operand::Register(r),
            Place::At(m) => Operand::Memory(m),
            Place::Number(m) => Operand::Number(m),
        }
    }

    fn in_memory(self) -> bool {
        !matches!(self, Place::In(_))
    }

    fn register(self) -> Vector {
        match self {
            Place::In(r) => r,
            Place::At(_) | Place::Number(_) => {
                unreachable!("an argument that has to be in a register is")
            }
        }
    }
}

struct Emitter {
    assembler: Assembler,
    shape: Shape,
    registers: Registers,
    homes: Vec<Home>,
    /// Wanted register at the end of a turn, by value.
    wanted: Vec<Vector>,
    free_spills: Vec<u32>,
    spills: u32,
    in_place: bool,
    places: Places,
}

/// No wanted register, in [`Emitter::wanted`].
const ANYWHERE: Vector = u8::MAX;

/// An array, the number in it, and true if its pointer comes with a bias.
type Address = (General, usize, bool);

impl Emitter {
    fn new(steps: &Steps, shape: Shape, in_place: bool) -> Emitter {
        let values = steps.homes.len();
        Emitter {
            assembler: Assembler::new(
                shape.isa,
                shape.width,
                steps.list.len() * BYTES_PER_STEP + 64,
            ),
            shape,
            registers: Registers::new(shape.isa.registers(), values),
            homes: steps.homes.clone(),
            wanted: vec![ANYWHERE; values],
            free_spills: Vec::new(),
            spills: 0,
            in_place,
            places: Places::Lanes,
        }
    }

    /// Return from the function with a flag: true if any bit of the registers `flags` is unset.
    /// Other values are lost.
    fn leave(mut self, flags: Vec<Vector>) -> Emitted {
        match flags[..] {
            [] => self.assembler.clear_flag(),
            [first, ref others @ ..] => {
                for &other in others {
                    self.assembler.two(Code::AND, first, first, Operand::Register(other));
                }
                self.assembler.flag_unless_ones(first, (first + 1) % 16);
            }
        }
        self.assembler.leave();
        self.finish()
    }

    /// Run steps in place: in a loop, the number of times in r9, or once. Afterwards rax is not 0
    /// if their tape does not go on. The result is the registers of flags.
    fn turns(&mut self, steps: &Steps, in_loop: bool) -> Vec<Vector> {
        for (r, carried) in steps.carried.iter().enumerate() {
            let r = r as Vector;
            match carried.state {
                Some(k) => self.assembler.load(r, self.address(Home::State(k))),
                None => self.assembler.ones(r),
            }
            if carried.first != NEVER {
                self.registers.put(r, carried.entry, carried.first);
            }
        }
        self.registers.reserve((1 << steps.carried.len()) - 1);
        for (r, carried) in steps.carried.iter().enumerate() {
            self.wanted[carried.exit as usize] = r as Vector;
        }
        let head = self.assembler.label();
        self.steps(&steps.list);
        if let Some(goes_on) = steps.goes_on {
            let end = steps.list.len() as u32;
            let mask = self.in_register(goes_on, NEVER, end);
            let spare = self.vacate(end);
            self.assembler.flag_unless_ones(mask, spare);
            self.registers.unpin();
        }
        self.move_back(&steps.carried);
        match steps.goes_on {
            _ if !in_loop => {}
            Some(_) => self.assembler.count_down_unless_flagged(General::R9, head),
            None => self.assembler.count_down(General::R9, head),
        }
        let mut flags = Vec::new();
        for (r, carried) in steps.carried.iter().enumerate() {
            match carried.state {
                Some(k) => self.assembler.store(self.address(Home::State(k)), r as Vector),
                None => flags.push(r as Vector),
            }
        }
        flags
    }

    fn finish(self) -> Emitted {
        Emitted { bytes: self.assembler.finish(), spills: self.spills as usize }
    }

    fn address(&self, home: Home) -> Memory {
        let (vectors, width) = (self.shape.vectors, self.shape.width.numbers());
        let (base, number, biased) = match home {
            Home::State(k) => self.of_state(k),
            Home::Time(k) => self.in_lanes(General::Rsi, k, self.shape.computed),
            Home::Bound(k) => match &self.places {
                Places::Rows(_, bound) => {
                    (General::Rdx, bound + k as usize / vectors * width, false)
                }
                _ => self.in_lanes(General::Rdx, k, self.shape.computed),
            },
            Home::Output(k) if self.in_place => self.in_lanes(General::Rdi, k, self.shape.lanes),
            Home::Output(k) => self.of_output(k),
            Home::Spilled(k) => {
                let (before, biased) = match &self.places {
                    Places::Lanes => (0, true),
                    Places::Rows(rows, _) => (rows.still().count() * width, false),
                    Places::Segments(segments, _) => (segment_scratch(segments), true),
                    Places::Diagonals(diagonals, _) => (diagonal_scratch(diagonals), true),
                };
                (General::R8, before + k as usize * width, biased)
            }
            Home::Nowhere => unreachable!("a value that is needed is somewhere"),
        };
        let bias = if biased { self.shape.bias() as i64 } else { 0 };
        let bytes = 8 * number as i64 - bias;
        Memory { base, displacement: i32::try_from(bytes).expect("arrays are within reach") }
    }

    /// Variable of a vector, and the first lane of the vector.
    fn split(&self, index: u32) -> (usize, usize) {
        let (index, vectors) = (index as usize, self.shape.vectors);
        (index / vectors, index % vectors * self.shape.width.numbers())
    }

    /// A vector of an array in which variables are `stride` numbers apart.
    fn in_lanes(&self, base: General, k: u32, stride: usize) -> Address {
        let (variable, vector) = self.split(k);
        (base, variable * stride + vector, true)
    }

    fn of_state(&self, k: u32) -> Address {
        let (width, lanes) = (self.shape.width.numbers(), self.shape.computed);
        let (variable, vector) = self.split(k);
        match &self.places {
            Places::Lanes => self.in_lanes(General::Rdi, k, self.shape.lanes),
            Places::Rows(rows, _) => match rows.states[variable] {
                RowPlace::State(first) => (General::Rdi, first as usize + vector, false),
                RowPlace::Table(first) => (General::Rsi, first as usize + vector, false),
                // At the start of the scratch, one vector each.
                RowPlace::Still(_) => {
                    let before = rows.still().take_while(|&(other, _)| other < variable).count();
                    (General::R8, before * width, false)
                }
            },
            Places::Segments(segments, _) => match segments.states[variable] {
                SegmentPlace::State(first) => (General::Rdi, first as usize + vector, false),
                SegmentPlace::Table(first) => (General::Rsi, first as usize + vector, false),
                // In lanes, at the start of the scratch.
                SegmentPlace::Still(still) => (General::R8, still as usize * lanes + vector, true),
            },
            Places::Diagonals(diagonals, which) => match diagonals.states[variable] {
                DiagonalPlace::State(..) | DiagonalPlace::Table(..) if *which == Loop::Last => {
                    (General::R8, last_scratch(diagonals) + variable * OF_LAST + vector, true)
                }
                DiagonalPlace::State(first, moves) => {
                    let base = if moves { General::R10 } else { General::Rdi };
                    (base, first as usize + vector, false)
                }
                DiagonalPlace::Table(first, moves) => {
                    let base = if moves { General::R11 } else { General::Rsi };
                    (base, first as usize + vector, false)
                }
                DiagonalPlace::Still(_) => {
                    let is_still =
                        |place: &&DiagonalPlace| matches!(place, DiagonalPlace::Still(_));
                    let before = diagonals.states[..variable].iter().filter(is_still).count();
                    (General::R8, (1 + before) * lanes + vector, true)
                }
            },
        }
    }

    fn of_output(&self, k: u32) -> Address {
        let lanes = self.shape.computed;
        let (variable, vector) = self.split(k);
        match &self.places {
            Places::Lanes => self.in_lanes(General::Rcx, k, self.shape.lanes),
            Places::Rows(rows, _) => {
                (General::Rcx, rows.outputs[variable] as usize + vector, false)
            }
            Places::Segments(segments, last) => match segments.outputs[variable] {
                Some(first) if !last => (General::Rcx, first as usize + vector, false),
                _ => {
                    let behind = stays(segments) + if *last { segments.outputs.len() } else { 0 };
                    (General::R8, (behind + variable) * lanes + vector, true)
                }
            },
            Places::Diagonals(diagonals, Loop::Filling) => {
                let base = if diagonals.outputs[variable] { General::Rax } else { General::Rcx };
                (base, variable * diagonals.stride + vector, false)
            }
            Places::Diagonals(diagonals, Loop::Last) => {
                let before = diagonals.states.len() + variable;
                (General::R8, last_scratch(diagonals) + before * OF_LAST + vector, true)
            }
        }
    }

    fn steps(&mut self, list: &[Step]) {
        for (p, step) in list.iter().enumerate() {
            let now = p as u32;
            match step.action {
                Action::Store(k) => self.store(step, k, now),
                Action::Copy => {
                    // A state, read from memory into a register of its own.
                    let r = self.vacate(now);
                    match self.registers.place(step.arguments[0]) {
                        Some(from) => self.assembler.copy(r, from),
                        None => self
                            .assembler
                            .load(r, self.address(self.homes[step.arguments[0] as usize])),
                    }
                    self.registers.put(r, step.result, step.first);
                    if let Some(from) = self.registers.place(step.arguments[0]) {
                        self.registers.read_next(from, step.next[0]);
                    }
                    self.forget(step);
                }
                Action::One(One::Spread(lane)) => self.spread(step, lane, now),
                Action::Three(op @ (Three::Fma | Three::Fms | Three::Fnma)) => {
                    self.fused(step, op, now)
                }
                Action::Three(Three::Select) if self.shape.isa == Isa::Avx512 => {
                    self.ternary(step, now)
                }
                Action::Three(Three::Shuffle) if step.arguments[0] != step.arguments[1] => {
                    self.shuffle(step, now)
                }
                _ => self.plain(step, now),
            }
            self.registers.unpin();
        }
    }

    // Registers and memory.

    /// Allocate scratch for a value.
    fn spill(&mut self) -> Home {
        Home::Spilled(self.free_spills.pop().unwrap_or_else(|| {
            self.spills += 1;
            self.spills - 1
        }))
    }

    /// Return a free register, spilling another value if necessary.
    fn vacate(&mut self, now: u32) -> Vector {
        self.registers.vacant().unwrap_or_else(|| {
            let homes = &self.homes;
            let victim = self.registers.victim(now, |v| homes[v as usize] != Home::Nowhere);
            let value = self.registers.take(victim) as usize;
            if self.homes[value] == Home::Nowhere {
                self.homes[value] = self.spill();
                self.assembler.store(self.address(self.homes[value]), victim);
            }
            victim
        })
    }

    /// Register for a result: the one in which it is wanted at the end, if that is free.
    fn destination(&mut self, value: Value, now: u32) -> Vector {
        let wanted = self.wanted[value as usize];
        if wanted != ANYWHERE && self.registers.is_free(wanted) { wanted } else { self.vacate(now) }
    }

    /// Bring a value into a register and pin it; `next` is its next use after the current step.
    fn in_register(&mut self, value: Value, next: u32, now: u32) -> Vector {
        let r = self.registers.place(value).unwrap_or_else(|| {
            let r = self.vacate(now);
            self.assembler.load(r, self.address(self.homes[value as usize]));
            self.registers.put(r, value, next);
            r
        });
        self.registers.read_next(r, next);
        self.registers.pin(r);
        r
    }

    /// Bring the arguments to where the step can use them: all in registers, but for one that may
    /// stay in memory if it is among `foldable` (by position, the best first).
    fn gather(&mut self, step: &Step, foldable: &[usize], now: u32) -> [Place; 3] {
        let arguments = step.arguments();
        // Arguments in registers first, so that loading the others does not evict them.
        for (j, &a) in arguments.iter().enumerate() {
            if let Some(r) = self.registers.place(a) {
                self.registers.read_next(r, step.next[j]);
                self.registers.pin(r);
            }
        }
        if let Some((j, lane)) = step.lane {
            let number = self.lane_of(arguments[j as usize], step.next[j as usize], lane, now);
            let mut places = [number; 3];
            for (k, &a) in arguments.iter().enumerate().filter(|&(k, _)| k != j as usize) {
                places[k] = Place::In(self.in_register(a, step.next[k], now));
            }
            return places;
        }
        let outside = |e: &Emitter, a: Value| e.registers.place(a).is_none();
        let fold = foldable
            .iter()
            .rev()
            .copied()
            .filter(|&j| {
                outside(self, arguments[j])
                    && arguments.iter().filter(|&&a| a == arguments[j]).count() == 1
            })
            // The argument that is read again last; of equals the last here, which is the best.
            .max_by_key(|&j| step.next[j])
            // A value that is soon read again is better loaded once for all uses, unless registers
            // are scarce.
            .filter(|&j| {
                let soon = step.next[j] != NEVER && step.next[j] - now <= NEAR;
                !(soon && self.registers.vacancies() > SPARE)
            });
        let mut places = [Place::In(0); 3];
        for (j, &a) in arguments.iter().enumerate() {
            places[j] = if fold == Some(j) {
                Place::At(self.address(self.homes[a as usize]))
            } else {
                Place::In(self.in_register(a, step.next[j], now))
            };
        }
        places
    }

    /// Free the registers of arguments that are not read again. Their spilled copies stay until the
    /// step is emitted ([`Emitter::forget`]): making room for its result may store into a free
    /// slot.
    fn release(&mut self, step: &Step) {
        for (j, &a) in step.arguments().iter().enumerate() {
            if step.next[j] == NEVER
                && let Some(r) = self.registers.place(a)
            {
                self.registers.take(r);
            }
        }
    }

    /// Free registers and spilled copies of arguments that are not read again, once the step is
    /// emitted.
    fn forget(&mut self, step: &Step) {
        self.release(step);
        for (j, &a) in step.arguments().iter().enumerate() {
            if step.next[j] == NEVER
                && let Home::Spilled(slot) = self.homes[a as usize]
            {
                self.free_spills.push(slot);
                self.homes[a as usize] = Home::Nowhere;
            }
        }
    }

    // Steps.

    fn store(&mut self, step: &Step, k: u32, now: u32) {
        let value = step.arguments[0];
        let r = self.in_register(value, step.next[0], now);
        let place = self.address(Home::Output(k));
        if let Places::Segments(_, false) | Places::Diagonals(_, Loop::Filling) = self.places {
            let sum = self.vacate(now);
            self.assembler.two(Code::ADD, sum, r, Operand::Memory(place));
            self.assembler.store(place, sum);
            self.forget(step);
            return;
        }
        self.assembler.store(place, r);
        if self.homes[value as usize] == Home::Nowhere {
            self.homes[value as usize] = Home::Output(k);
        }
        self.forget(step);
    }

    /// A number of a vector, read next by step `next`: from memory, which costs no more than moving
    /// it in registers.
    fn lane_of(&mut self, value: Value, next: u32, lane: u8, now: u32) -> Place {
        if self.homes[value as usize] == Home::Nowhere {
            let r = self.in_register(value, next, now);
            self.homes[value as usize] = self.spill();
            self.assembler.store(self.address(self.homes[value as usize]), r);
        } else if let Some(r) = self.registers.place(value) {
            self.registers.read_next(r, next);
        }
        let Memory { base, displacement } = self.address(self.homes[value as usize]);
        Place::Number(Memory { base, displacement: displacement + 8 * i32::from(lane) })
    }

    /// Spread one number of a vector over all lanes.
    fn spread(&mut self, step: &Step, lane: u8, now: u32) {
        let value = step.arguments[0];
        if self.shape.width == Width::Four
            && let Some(r) = self.registers.place(value)
        {
            self.registers.read_next(r, step.next[0]);
            self.registers.pin(r);
            self.release(step);
            let d = self.destination(step.result, now);
            self.assembler.spread_lane(d, r, lane);
            self.forget(step);
            self.registers.put(d, step.result, step.first);
            self.drop_if_dead(d, step);
            return;
        }
        let Place::Number(number) = self.lane_of(step.arguments[0], step.next[0], lane, now) else {
            unreachable!("it is in memory")
        };
        self.release(step);
        let d = self.destination(step.result, now);
        match self.shape.width {
            Width::One => self.assembler.load(d, number),
            _ => self.assembler.spread(d, number),
        }
        self.forget(step);
        self.registers.put(d, step.result, step.first);
        self.drop_if_dead(d, step);
    }

    /// Emit a step whose result may go to any register.
    fn plain(&mut self, step: &Step, now: u32) {
        let bits = self.assembler.bits_fold_memory();
        let evex = self.shape.isa == Isa::Avx512;
        let one = self.shape.width == Width::One;
        let foldable: &[usize] = match step.action {
            Action::One(One::Sqrt) if one => &[],
            Action::One(One::Sqrt) => &[0],
            Action::One(_) if evex => &[0],
            Action::One(_) => &[],
            Action::Two(Two::Add | Two::Mul | Two::Less | Two::LessEqual | Two::Equal) => &[1, 0],
            Action::Two(Two::Sub | Two::Div) => &[1],
            Action::Two(Two::LargerInteger) if !evex => &[],
            Action::Two(Two::SubInteger) if bits => &[1],
            Action::Two(_) if bits => &[1, 0],
            // Of one value.
            Action::Three(Three::Shuffle) => &[],
            Action::Three(_) if bits => &[1],
            _ => &[],
        };
        let places = self.gather(step, foldable, now);
        // Two instructions: the result must not overwrite an argument of the second.
        let apart = step.action == Action::Two(Two::LargerInteger) && !evex;
        if !apart {
            self.release(step);
        }
        let d = self.destination(step.result, now);
        match step.action {
            Action::One(op) => {
                let a = places[0].operand();
                match op {
                    One::Sqrt => self.assembler.sqrt(d, a),
                    One::Spread(_) => unreachable!("handled elsewhere"),
                    One::ShiftLeft(count) => self.assembler.shift(Direction::Left, d, a, count),
                    One::ShiftRight(count) => self.assembler.shift(Direction::Right, d, a, count),
                }
            }
            Action::Two(op) => self.two(op, d, places[0], places[1], evex),
            Action::Three(Three::Shuffle) => {
                self.assembler.permute(d, places[2].register(), places[0].operand());
            }
            Action::Three(_) => {
                self.assembler.blend(
                    d,
                    places[0].register(),
                    places[1].operand(),
                    places[2].register(),
                );
            }
            Action::Copy | Action::Store(_) => unreachable!("handled elsewhere"),
        }
        self.forget(step);
        self.registers.put(d, step.result, step.first);
        self.drop_if_dead(d, step);
    }

    fn two(&mut self, op: Two, d: Vector, a: Place, b: Place, evex: bool) {
        // An argument in memory has to be the second.
        let exchanged = a.in_memory();
        let (first, second) =
            if exchanged { (b.register(), a.operand()) } else { (a.register(), b.operand()) };
        let compare = |e: &mut Emitter, p: Predicate| {
            e.assembler.compare(if exchanged { p.mirrored() } else { p }, d, first, second);
        };
        let code = match op {
            Two::Add => Code::ADD,
            Two::Sub => Code::SUB,
            Two::Mul => Code::MUL,
            Two::Div => Code::DIV,
            Two::And => Code::AND,
            Two::Or => Code::OR,
            Two::Xor => Code::XOR,
            Two::AddInteger => Code::ADD_INTEGER,
            Two::SubInteger => Code::SUB_INTEGER,
            Two::Less => return compare(self, Predicate::Less),
            Two::LessEqual => return compare(self, Predicate::LessEqual),
            Two::Equal => return compare(self, Predicate::Equal),
            Two::LargerInteger if evex => Code::LARGER_INTEGER,
            Two::LargerInteger => {
                self.assembler.two(Code::GREATER_INTEGER, d, first, second);
                return self.assembler.blend(d, d, Operand::Register(first), b.register());
            }
        };
        self.assembler.two(code, d, first, second);
    }

    /// Position of the argument whose register the result takes: one that dies, preferably where
    /// the result is wanted. `None` if all are still needed.
    fn overwritten(&self, step: &Step, places: &[Place; 3], order: [usize; 3]) -> Option<usize> {
        let dying = |j: &usize| step.next[*j] == NEVER && matches!(places[*j], Place::In(_));
        let wanted = self.wanted[step.result as usize];
        let fits = |j: &usize| places[*j] == Place::In(wanted);
        order.into_iter().filter(dying).find(fits).or_else(|| order.into_iter().find(dying))
    }

    /// Position and register of the argument that the result overwrites, by order of preference.
    fn overwrite(
        &mut self,
        step: &Step,
        places: &mut [Place; 3],
        order: [usize; 3],
        now: u32,
    ) -> (usize, u8) {
        let (j, d) = match self.overwritten(step, places, order) {
            Some(j) => (j, places[j].register()),
            None => {
                // All are still needed: a copy is overwritten, preferably of one that has to be
                // loaded anyway.
                let j = (0..3).find(|&j| matches!(places[j], Place::At(_))).unwrap_or(2);
                let d = self.destination(step.result, now);
                match places[j] {
                    Place::At(m) => self.assembler.load(d, m),
                    Place::In(r) => self.assembler.copy(d, r),
                    Place::Number(_) => unreachable!("it is not overwritten"),
                }
                (j, d)
            }
        };
        places[j] = Place::In(d);
        (j, d)
    }

    /// Emit a b ± c: the result takes the place of one argument.
    fn fused(&mut self, step: &Step, op: Three, now: u32) {
        let signs = match op {
            Three::Fma => Signs::Plus,
            Three::Fms => Signs::Minus,
            _ => Signs::Negated,
        };
        let mut places = self.gather(step, &[2, 1, 0], now);
        // The sum first: it was computed last, and in the chains of a step it is the one that dies.
        let (j, d) = self.overwrite(step, &mut places, [2, 0, 1], now);
        let [a, b, c] = places;
        let in_memory = Place::in_memory;
        match j {
            2 => {
                let (second, third) = if in_memory(a) { (b, a) } else { (a, b) };
                self.assembler.fused(Form::F231, signs, d, second.register(), third.operand());
            }
            _ => {
                let other = if j == 0 { b } else { a };
                if in_memory(other) {
                    self.assembler.fused(Form::F132, signs, d, c.register(), other.operand());
                } else {
                    self.assembler.fused(Form::F213, signs, d, other.register(), c.operand());
                }
            }
        }
        self.forget(step);
        self.registers.put(d, step.result, step.first);
        self.drop_if_dead(d, step);
    }

    /// Emit a shuffle of two values, which overwrites the places or the first value.
    fn shuffle(&mut self, step: &Step, now: u32) {
        let places = self.gather(step, &[2, 1], now);
        let dies = |j: usize| step.next[j] == NEVER;
        let d = match places {
            [Place::In(a), b, Place::In(places)] if dies(0) => {
                self.assembler.shuffle_over_first(a, places, b.operand());
                a
            }
            [Place::In(a), b, places] => {
                let d = match places {
                    Place::In(r) if dies(2) => r,
                    _ => self.destination(step.result, now),
                };
                match places {
                    Place::At(m) => self.assembler.load(d, m),
                    Place::In(r) if r != d => self.assembler.copy(d, r),
                    _ => {}
                }
                self.assembler.shuffle_over_places(d, a, b.operand());
                d
            }
            _ => unreachable!("the first value is in a register"),
        };
        self.forget(step);
        self.registers.put(d, step.result, step.first);
        self.drop_if_dead(d, step);
    }

    /// Emit a selection in EVEX form: a function of three bits that overwrites one argument.
    fn ternary(&mut self, step: &Step, now: u32) {
        let mut places = self.gather(step, &[2, 1, 0], now);
        let (j, d) = self.overwrite(step, &mut places, [2, 1, 0], now);
        // The other two in an order that leaves memory last.
        let (mut second, mut third) = ((j + 1) % 3, (j + 2) % 3);
        if matches!(places[second], Place::At(_)) {
            (second, third) = (third, second);
        }
        let mut table = 0;
        for index in 0..8u8 {
            let mut bit = [0; 3];
            (bit[j], bit[second], bit[third]) = (index >> 2 & 1, index >> 1 & 1, index & 1);
            let [mask, b, c] = bit;
            table |= (if mask == 1 { b } else { c }) << index;
        }
        self.assembler.ternary(table, d, places[second].register(), places[third].operand());
        self.forget(step);
        self.registers.put(d, step.result, step.first);
        self.drop_if_dead(d, step);
    }

    /// Free the register of a result that nothing reads (the analysis leaves such results only for
    /// the flag).
    fn drop_if_dead(&mut self, register: Vector, step: &Step) {
        if step.first == NEVER {
            self.registers.take(register);
        }
    }

    /// Bring carried values back to the registers in which a turn begins: a parallel move.
    fn move_back(&mut self, carried: &[Carried]) {
        let mut source: Vec<Place> = carried
            .iter()
            .map(|c| match self.registers.place(c.exit) {
                Some(r) => Place::In(r),
                None => Place::At(self.address(self.homes[c.exit as usize])),
            })
            .collect();
        // Number of pending reads of each register as a source.
        let mut readers = [0u32; 32];
        let mut pending: Vec<usize> = Vec::new();
        for (r, place) in source.iter().enumerate() {
            match *place {
                Place::In(from) if from as usize == r => {}
                Place::In(from) => {
                    readers[from as usize] += 1;
                    pending.push(r);
                }
                Place::At(_) | Place::Number(_) => pending.push(r),
            }
        }
        // A register that is its own source is not overwritten: it is the destination of no other.
        while !pending.is_empty() {
            let before = pending.len();
            pending.retain(|&r| {
                if readers[r] > 0 {
                    return true;
                }
                match source[r] {
                    Place::In(from) => {
                        self.assembler.copy(r as Vector, from);
                        readers[from as usize] -= 1;
                    }
                    Place::At(m) => self.assembler.load(r as Vector, m),
                    Place::Number(_) => unreachable!("what is carried is whole"),
                }
                false
            });
            if pending.len() == before {
                // Only cycles are left: one value moves to a register outside of them.
                let r = pending[0] as Vector;
                let aside = (carried.len()..self.shape.isa.registers())
                    .find(|&s| readers[s] == 0)
                    .expect("fewer values are carried than there are registers")
                    as Vector;
                self.assembler.copy(aside, r);
                for place in source.iter_mut().filter(|p| **p == Place::In(r)) {
                    *place = Place::In(aside);
                }
                readers[aside as usize] = std::mem::take(&mut readers[r as usize]);
            }
        }
    }
}

/// Last rows of diagonals: two of them side by side in one vector, in the scratch.
struct LastRows<'a> {
    places: &'a DiagonalPlaces,
    /// Displacement of the masks behind the pointer of bound numbers.
    masks: i32,
    bias: i32,
    scratch: &'a dyn Fn(usize) -> Memory,
}

impl LastRows<'_> {
    /// Number of the entry of a last row to which R9 points.
    fn of_last(&self, number: usize) -> Memory {
        let first = self.masks + 8 * ((SEGMENT_LANES + 1) * SEGMENT_LANES) as i32;
        Memory { base: General::R9, displacement: first + 8 * number as i32 }
    }

    /// Place of a variable in the scratch.
    fn room(&self, base: General, number: usize) -> Memory {
        let before = last_scratch(self.places) + number * OF_LAST;
        Memory { base, displacement: 8 * before as i32 - self.bias }
    }

    /// Load what the rows read into the scratch.
    fn gather(&self, a: &mut Assembler, lanes: &[usize]) {
        const BESIDE_FIRST: General = General::Rcx;
        a.load_whole(General::R9, (self.scratch)(LAST));
        for k in 0..2 {
            let pointers = [[General::Rdi, General::Rsi], [General::R10, General::R11]];
            for (of_side, pointers) in BEHIND[k].into_iter().zip(pointers) {
                a.load_whole(General::Rax, self.of_last(of_side));
                for (pointer, number) in pointers.into_iter().zip([OF_STATES, OF_TABLE]) {
                    a.load_whole(pointer, (self.scratch)(number));
                    a.add_whole(pointer, General::Rax);
                }
            }
            let mut to = General::R8;
            if k == 1 {
                a.load_whole(BESIDE_FIRST, self.of_last(BESIDE));
                a.add_whole(BESIDE_FIRST, General::R8);
                to = BESIDE_FIRST;
            }
            for (number, place) in self.places.states.iter().enumerate() {
                let from = match *place {
                    DiagonalPlace::State(first, moves) => (pointers[usize::from(moves)][0], first),
                    DiagonalPlace::Table(first, moves) => (pointers[usize::from(moves)][1], first),
                    DiagonalPlace::Still(_) => continue,
                };
                let from = Memory { base: from.0, displacement: 8 * from.1 as i32 };
                for &lane in lanes {
                    a.load(0, on(from, lane));
                    a.store(on(self.room(to, number), lane), 0);
                }
            }
        }
    }

    /// Add the results in the scratch to the outputs, those of rows under their masks.
    fn add(&self, a: &mut Assembler, lanes: &[usize]) {
        let places = self.places;
        for k in 0..2 {
            let pointers = [General::Rcx, General::Rax];
            for (of_side, pointer) in BEHIND[k].into_iter().zip(pointers) {
                a.load_whole(pointer, (self.scratch)(OF_OUTPUTS));
                a.load_whole(General::Rdi, self.of_last(of_side));
                a.add_whole(pointer, General::Rdi);
            }
            a.load_whole(General::Rsi, self.of_last(MASKS[k]));
            a.add_whole(General::Rsi, General::Rdx);
            let mut from = General::R8;
            if k == 1 {
                a.load_whole(General::R10, self.of_last(BESIDE));
                a.add_whole(General::R10, General::R8);
                from = General::R10;
            }
            for (number, &moves) in places.outputs.iter().enumerate() {
                let first = 8 * (number * places.stride) as i32;
                let to = Memory { base: pointers[usize::from(moves)], displacement: first };
                for &lane in lanes {
                    let mask = Memory { base: General::Rsi, displacement: self.masks };
                    a.load(0, on(self.room(from, places.states.len() + number), lane));
                    a.two(Code::AND, 0, 0, Operand::Memory(on(mask, lane)));
                    a.two(Code::ADD, 0, 0, Operand::Memory(on(to, lane)));
                    a.store(on(to, lane), 0);
                }
            }
        }
    }
}

/// The vector so many lanes further on.
fn on(memory: Memory, lane: usize) -> Memory {
    Memory { displacement: memory.displacement + 8 * lane as i32, ..memory }
}
