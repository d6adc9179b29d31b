//! Backend that compiles tapes to machine code.

use crate::diagonals::CompiledDiagonals;
use crate::emit::{self, Emitted, OfCycle, OfRows, Shape};
use crate::isa::Isa;
use crate::kernel::{Compiled, LINE, LONGEST_LOOP, Parts};
use crate::memory::Executable;
use crate::packed::{FEWEST, PackedLoop};
use crate::steps::Analysis;
use holonome_model::graph::aligned::{Aligned, first_aligned};
use holonome_model::graph::interpret::{
    Backend, Cycle, CycleMap, DiagonalLoop, DiagonalPlaces, Kernel, Prologue, Reach, Refused,
    RowArrays, RowLoop, RowPlaces, SEGMENT_LANES, Segment, SegmentLoop, SegmentPlace,
    SegmentPlaces, sum_of_lanes,
};
use holonome_model::graph::tape::Tape;

/// Compiler of tapes to the instructions of this processor.
///
/// Every number of lanes is supported: a multiple of a vector's width by vectors, others one by
/// one. The processor is assumed to round to nearest and to keep subnormal numbers, as everywhere
/// in Rust.
#[derive(Clone, Debug)]
pub struct MachineCode {
    isa: Isa,
    refusal: Option<Refused>,
    /// Turns from which on loops are packed.
    packs_after: u64,
}

/// Sign bit of a number.
const SIGN: u64 = 1 << 63;

impl MachineCode {
    /// Compiler for the best instruction set of this processor.
    ///
    /// # Errors
    /// If machine code cannot be made or run, with the reason.
    pub fn detect() -> Result<MachineCode, Refused> {
        let isa = Isa::detect().map_err(|reason| Refused { reason })?;
        MachineCode::new(isa)
    }

    /// Compiler for this instruction set.
    ///
    /// # Errors
    /// See [`MachineCode::detect`].
    pub fn new(isa: Isa) -> Result<MachineCode, Refused> {
        let refused = |reason| Refused { reason };
        if let Some(reason) = isa.missing() {
            return Err(refused(reason));
        }
        // Just a return: finds out now if the system allows machine code at all.
        Executable::new(&[0xc3]).map_err(refused)?;
        Ok(MachineCode { isa, refusal: None, packs_after: 0 })
    }

    /// Compiler that refuses every tape with `reason`, as on a system that forbids machine code.
    pub fn refusing(reason: &str) -> MachineCode {
        let refusal = Some(Refused { reason: reason.to_string() });
        MachineCode { isa: Isa::Avx2, refusal, packs_after: 0 }
    }

    /// This compiler, but loops are packed once they have made many turns, not when they are
    /// compiled.
    pub fn packing_later(self) -> MachineCode {
        MachineCode { packs_after: FEWEST, ..self }
    }

    /// Instruction set of the code.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Number of lanes for which ensembles run best.
    pub fn preferred_lanes(&self) -> usize {
        // Two vectors: the operations of one fill the time in which those of the other wait for
        // each other.
        2 * self.isa.widest()
    }
}

impl Backend for MachineCode {
    fn compile(&self, tape: &Tape, lanes: usize) -> Result<Box<dyn Kernel>, Refused> {
        match &self.refusal {
            Some(refused) => Err(refused.clone()),
            None => {
                let compiled = Compiled::new(tape, Shape::new(self.isa, lanes, tape))?;
                Ok(match lanes == 1 && PackedLoop::suits(tape, self.isa) {
                    true => Box::new(PackedLoop::new(tape, compiled, self.isa, self.packs_after)),
                    false => Box::new(compiled),
                })
            }
        }
    }

    fn compile_first_lane(&self, tape: &Tape, lanes: usize) -> Result<Box<dyn Kernel>, Refused> {
        match &self.refusal {
            Some(refused) => Err(refused.clone()),
            None => {
                assert!(!tape.mixes_lanes(), "one lane has no others");
                Ok(Box::new(Compiled::new(tape, Shape::of_first_lane(self.isa, lanes))?))
            }
        }
    }

    fn compile_cycle(&self, maps: &[CycleMap]) -> Result<Box<dyn Cycle>, Refused> {
        match &self.refusal {
            Some(refused) => Err(refused.clone()),
            None => Ok(Box::new(CompiledCycle::new(maps, self.isa)?)),
        }
    }

    fn compile_rows(&self, loops: &[(Tape, RowPlaces)]) -> Result<Box<dyn RowLoop>, Refused> {
        match &self.refusal {
            Some(refused) => Err(refused.clone()),
            None => Ok(Box::new(CompiledRows::new(loops, self.isa, self.preferred_lanes())?)),
        }
    }

    fn compile_segments(
        &self,
        tape: &Tape,
        places: &SegmentPlaces,
    ) -> Result<Box<dyn SegmentLoop>, Refused> {
        match &self.refusal {
            Some(refused) => Err(refused.clone()),
            None => Ok(Box::new(CompiledSegments::new(tape, places, self.isa)?)),
        }
    }

    fn compile_diagonals(
        &self,
        tape: &Tape,
        places: &DiagonalPlaces,
    ) -> Result<Box<dyn DiagonalLoop>, Refused> {
        match &self.refusal {
            Some(refused) => Err(refused.clone()),
            None => Ok(Box::new(CompiledDiagonals::new(tape, places, self.isa)?)),
        }
    }
}

/// Emitted code of a tape, for tests that read or simulate it.
#[derive(Debug)]
#[doc(hidden)]
pub struct Assembled {
    /// Code that evaluates once, or in a chain from each state to the next.
    pub run: Vec<u8>,
    /// True if `run` is such a chain.
    pub chains: bool,
    /// Code that evaluates in a loop, if the tape is a map of its states to themselves.
    pub iterate: Option<Vec<u8>>,
    /// Lanes that one call computes.
    pub together: usize,
    /// Numbers of scratch that each needs.
    pub spills: [usize; 2],
    /// Bytes by which pointers are ahead of the arrays.
    pub bias: i32,
}

/// Assemble the code that [`MachineCode`] makes of a tape, on any processor.
///
/// # Errors
/// If the tape's arrays are too large to be addressed.
#[doc(hidden)]
pub fn assemble(tape: &Tape, isa: Isa, lanes: usize) -> Result<Assembled, Refused> {
    let parts = Parts::new(tape, Shape::new(isa, lanes, tape))?;
    Ok(Assembled {
        together: parts.shape.together(),
        spills: [parts.run.spills, parts.iterate.as_ref().map_or(0, |i| i.spills)]
            .map(|s| s * parts.shape.width.numbers()),
        bias: parts.shape.bias(),
        run: parts.run.bytes,
        chains: parts.chains,
        iterate: parts.iterate.map(|i| i.bytes),
    })
}

/// Tapes as machine code that runs as a cycle.
struct CompiledCycle {
    /// Place and length of the bound values of each map.
    bound: Vec<(usize, usize)>,
    bound_len: usize,
    /// Numbers of the array.
    reach: usize,
    memory: Executable,
    scratch: usize,
}

impl CompiledCycle {
    fn new(maps: &[CycleMap], isa: Isa) -> Result<CompiledCycle, Refused> {
        let refused = |reason: &str| Refused { reason: reason.to_string() };
        let (mut bound, mut bound_len, mut reach, mut emitted) = (Vec::new(), 0, 0, Vec::new());
        assert!(
            maps.last().is_some_and(|last| last.tape.goes_on.is_some()),
            "the last map says if it goes on"
        );
        for map in maps {
            let CycleMap { tape, lanes, first_alone, turns } = map;
            assert!(
                tape.outputs.len() <= tape.states && !tape.reads_time(),
                "a map of an array to itself"
            );
            assert!(*turns > 0, "a map is applied");
            let shape = if *first_alone {
                Shape::of_first_lane(isa, *lanes)
            } else {
                Shape::new(isa, *lanes, tape)
            };
            let prologue = Prologue::new(tape);
            let longest = tape.states.max(prologue.bound().len()).max(tape.instructions.len());
            if shape.together() != shape.computed
                || !shape.reaches(longest)
                || tape.operations() > LONGEST_LOOP
            {
                return Err(refused("the formulas are too long for one loop"));
            }
            let analysis = Analysis::new(tape, &prologue, shape.side_by_side());
            if analysis.repairs() {
                return Err(refused("some functions may have to be computed again"));
            }
            reach = reach.max(tape.states * lanes);
            let values = prologue.bound().len() * shape.computed;
            let steps = analysis.iterate(isa.registers() / 2);
            emitted.push(OfCycle { steps, shape, bound: bound_len, turns: *turns });
            bound.push((bound_len, values));
            // Each on a cache line.
            bound_len += values.next_multiple_of(LINE);
        }
        if bound_len.max(reach) >= i32::MAX as usize / 16 {
            return Err(refused("the formulas are too long for machine code"));
        }
        let Emitted { bytes, spills } = emit::cycle(&emitted);
        let memory = Executable::new(&bytes).map_err(|reason| Refused { reason })?;
        Ok(CompiledCycle { bound, bound_len, reach, memory, scratch: spills })
    }
}

impl Cycle for CompiledCycle {
    fn work_len(&self) -> usize {
        self.scratch + LINE
    }

    fn bind(&self, values: &[&[f64]]) -> Aligned {
        let mut all = Aligned::zeros(self.bound_len);
        assert_eq!(values.len(), self.bound.len(), "every map has bound values");
        for (&(first, len), values) in self.bound.iter().zip(values) {
            all[first..first + len].copy_from_slice(&values[..len]);
        }
        all
    }

    fn run(&self, bound: &[f64], x: &mut [f64], count: u64, work: &mut [f64]) {
        assert!(bound.len() >= self.bound_len, "bound values are missing");
        assert!(x.len() >= self.reach, "the array is too short");
        assert!(work.len() >= self.work_len(), "the scratch is too short");
        if count == 0 {
            return;
        }
        let aligned = first_aligned(work);
        let scratch = work[aligned..].as_mut_ptr();
        let place = x.as_mut_ptr();
        let inputs =
            [place.cast_const(), std::ptr::without_provenance(count as usize), bound.as_ptr()];
        // SAFETY: the code is what the emitter made for these tapes, and its entry is at the start.
        // It takes the count in place of the time, which no map reads. It reads and writes elements
        // of x, of which there are enough for the states of every map, reads the bound values,
        // which stand where they were put, and spills to the scratch.
        unsafe { self.memory.call(0, inputs, [place, scratch], 0) };
    }
}

/// Tapes as machine code that runs over rows.
struct CompiledRows {
    /// Prologue of each loop, place of its values, and numbers in a vector of the loop.
    prologues: Vec<(Prologue, usize, usize)>,
    bound_len: usize,
    reach: Reach,
    memory: Executable,
    scratch: usize,
}

impl CompiledRows {
    fn new(loops: &[(Tape, RowPlaces)], isa: Isa, lanes: usize) -> Result<CompiledRows, Refused> {
        let refused = |reason: &str| Refused { reason: reason.to_string() };
        let (mut prologues, mut bound_len, mut reach, mut emitted) =
            (Vec::new(), 0, Reach::default(), Vec::new());
        for (tape, places) in loops {
            assert_eq!(tape.states, places.states.len(), "every state has a place");
            assert_eq!(tape.outputs.len(), places.outputs.len(), "every output has a place");
            assert!(places.rows > 0, "a loop has rows");
            reach = reach.or(places.reach());
            // At most as wide as there are rows.
            let shape = Shape::new(isa, lanes.min(1 << places.rows.ilog2()), tape);
            let shape = Shape { computed: shape.together(), lanes: shape.together(), ..shape };
            let prologue = Prologue::new(tape);
            if !shape.reaches(tape.instructions.len()) || reach.largest() >= i32::MAX as usize / 8 {
                return Err(refused("the formulas are too long for machine code"));
            }
            let analysis = Analysis::of_rows(tape, &prologue, shape.side_by_side())?;
            emitted.push(OfRows { steps: analysis.run(), shape, places, bound: bound_len });
            let (first, numbers) = (bound_len, shape.width.numbers());
            // Each on a cache line.
            bound_len += (prologue.bound().len() * numbers).next_multiple_of(LINE);
            prologues.push((prologue, first, numbers));
        }
        if bound_len >= i32::MAX as usize / 8 {
            return Err(refused("the formulas are too long for machine code"));
        }
        let emitted = emit::rows(&emitted);
        let memory = Executable::new(&emitted.bytes).map_err(|reason| Refused { reason })?;
        Ok(CompiledRows { prologues, bound_len, reach, memory, scratch: emitted.spills })
    }
}

impl RowLoop for CompiledRows {
    fn work_len(&self) -> usize {
        self.scratch + LINE
    }

    fn bind(&self, parameters: &[f64]) -> Aligned {
        let mut bound = Aligned::zeros(self.bound_len);
        for (prologue, first, numbers) in &self.prologues {
            let values = &prologue.bind(parameters, *numbers)[..prologue.bound().len() * numbers];
            bound[*first..][..values.len()].copy_from_slice(values);
        }
        bound
    }

    fn run(&self, first: usize, bound: &[f64], table: &[f64], arrays: RowArrays, work: &mut [f64]) {
        let (x, out, lengths) = match arrays {
            RowArrays::Apart(x, out) => (x.as_ptr(), out.as_mut_ptr(), [x.len(), out.len()]),
            RowArrays::Within(all, outputs) => {
                let (length, start) = (all.len(), all.as_mut_ptr());
                (
                    start.cast_const(),
                    start.wrapping_add(outputs),
                    [length, length.saturating_sub(outputs)],
                )
            }
        };
        assert!(bound.len() >= self.bound_len, "bound values are missing");
        let Reach { table: of_table, outputs, .. } = self.reach;
        assert!(self.reach.within_states(first, lengths[0]), "the state is too short");
        assert!(of_table == 0 || table.len() >= first + of_table, "the table is too short");
        assert!(lengths[1] >= outputs, "no room for the outputs");
        assert!(work.len() >= self.work_len(), "the scratch is too short");
        let aligned = first_aligned(work);
        let scratch = work[aligned..].as_mut_ptr();
        let inputs = [x.wrapping_add(first), table.as_ptr().wrapping_add(first), bound.as_ptr()];
        // SAFETY: the code is what the emitter made for these tapes and places, and its entry is at
        // the start. For every row of a loop it reads elements `place + first + row` of the states
        // and the table, and elements `place` of still values, and writes elements `place + row` of
        // the outputs. These exist by the lengths checked above, within one array that nobody else
        // reads or in several. Bound values and scratch for still values and all spills exist too.
        unsafe { self.memory.call(0, inputs, [out, scratch], x as u64) };
    }
}

/// A tape as machine code that runs over segments of rows.
struct CompiledSegments {
    prologue: Prologue,
    /// Number of still values, and places of the outputs.
    stays: usize,
    outputs: Vec<Option<u32>>,
    /// Numbers of scratch before spilled values.
    scratch: usize,
    /// The last places in the states, the table and the outputs, which the first rows follow.
    last: [Option<u32>; 3],
    /// Code for whole vectors of rows, and for the last rows.
    memory: [Executable; 2],
    shape: Shape,
    spills: usize,
}

impl CompiledSegments {
    fn new(tape: &Tape, places: &SegmentPlaces, isa: Isa) -> Result<CompiledSegments, Refused> {
        let refused = |reason: &str| Refused { reason: reason.to_string() };
        assert_eq!(tape.states, places.states.len(), "every state has a place");
        assert_eq!(tape.outputs.len(), places.outputs.len(), "every output has a place");
        let shape = Shape::of_segments(isa);
        let of = |pick: fn(SegmentPlace) -> Option<u32>| {
            places.states.iter().filter_map(|&place| pick(place)).max()
        };
        let state =
            of(|place| if let SegmentPlace::State(first) = place { Some(first) } else { None });
        let table =
            of(|place| if let SegmentPlace::Table(first) = place { Some(first) } else { None });
        let last = [state, table, places.outputs.iter().flatten().copied().max()];
        let farthest = last.iter().flatten().max().map_or(0, |&last| last as usize) + SEGMENT_LANES;
        let prologue = Prologue::new(tape);
        let scratch = emit::segment_scratch(places) / SEGMENT_LANES;
        let longest = tape.instructions.len().max(prologue.bound().len()) + scratch;
        if !shape.reaches(longest) || farthest >= i32::MAX as usize / 8 {
            return Err(refused("the formulas are too long for machine code"));
        }
        let analysis = Analysis::of_rows(tape, &prologue, shape.side_by_side())?;
        let mut spills = 0;
        let mut code = |last: bool| {
            let emitted = emit::segments(&analysis.run(), shape, places, last);
            spills = spills.max(emitted.spills * shape.width.numbers());
            Executable::new(&emitted.bytes).map_err(|reason| Refused { reason })
        };
        let memory = [code(false)?, code(true)?];
        Ok(CompiledSegments {
            prologue,
            stays: emit::stays(places),
            outputs: places.outputs.clone(),
            scratch: emit::segment_scratch(places),
            last,
            memory,
            shape,
            spills,
        })
    }
}

impl SegmentLoop for CompiledSegments {
    fn work_len(&self) -> usize {
        self.scratch + self.spills + LINE
    }

    fn bind(&self, parameters: &[f64]) -> Aligned {
        self.prologue.bind(parameters, SEGMENT_LANES)
    }

    fn run(
        &self,
        rows: usize,
        bound: &[f64],
        Segment { x, table, still }: Segment,
        out: &mut [f64],
        sums: &mut [f64],
        work: &mut [f64],
    ) {
        let read = rows.next_multiple_of(SEGMENT_LANES);
        let [of_x, of_table, _] = self.last.map(|last| last.map_or(0, |last| last as usize + read));
        let of_out = self.last[2].map_or(0, |last| last as usize + rows);
        let (stays, outputs) = (self.stays, self.outputs.len());
        assert!(
            bound.len() >= self.prologue.bound().len() * SEGMENT_LANES,
            "bound values are missing"
        );
        assert!(x.len() >= of_x, "the state is too short");
        assert!(table.len() >= of_table, "the table is too short");
        assert!(out.len() >= of_out, "no room for the outputs");
        assert!(
            still.len() >= stays && sums.len() >= outputs,
            "what stays, or room for sums, is missing"
        );
        assert!(work.len() >= self.work_len(), "the scratch is too short");
        let first = first_aligned(work);
        let scratch = &mut work[first..];
        let (all, _) = scratch.as_chunks_mut::<SEGMENT_LANES>();
        for (lanes, value) in all.iter_mut().zip(&still[..stays]) {
            lanes[0] = *value;
        }
        let whole = rows / SEGMENT_LANES;
        if whole == 0 {
            all[stays..stays + outputs].fill([0.0; SEGMENT_LANES]);
        }
        let rest = rows - whole * SEGMENT_LANES;
        let bias = self.shape.bias() as usize;
        for (which, first, count) in [(0, 0, whole), (1, rows - rest, usize::from(rest > 0))] {
            if count == 0 {
                continue;
            }
            let [x, table] = [x, table].map(|array| array.as_ptr().wrapping_add(first));
            let inputs = [x, table, bound.as_ptr().wrapping_byte_add(bias)];
            let outputs = [
                out.as_mut_ptr().wrapping_add(first),
                scratch.as_mut_ptr().wrapping_byte_add(bias),
            ];
            // SAFETY: the code is what the emitter made for this tape and these places, and its
            // entry is at the start. It reads elements `place + first` to `place + first + count *
            // SEGMENT_LANES` of x and the table for every place, which exist by the lengths checked
            // above. The code for whole vectors reads and writes as many elements of `out`, all
            // within `rows`; that for the last rows none. Bound values for all lanes and scratch
            // for still values, sums, results and spills exist too.
            unsafe { self.memory[which].call(0, inputs, outputs, count as u64) };
        }
        let (all, _) = scratch.as_chunks_mut::<SEGMENT_LANES>();
        let (summed, last) = all[stays..stays + 2 * outputs].split_at(outputs);
        let is_row: [u64; SEGMENT_LANES] =
            std::array::from_fn(|lane| if lane < rest { u64::MAX } else { 0 });
        for (k, (lanes, last)) in summed.iter().zip(last).enumerate() {
            match self.outputs[k] {
                Some(first) => {
                    let out = &mut out[first as usize + rows - rest..][..rest];
                    out.iter_mut().zip(last).for_each(|(out, value)| *out += *value);
                }
                None => {
                    // The sum of −0 and any number is that number. All lanes are changed together:
                    // the code has stored them in vectors, and reading a vector of which single
                    // numbers were changed would wait.
                    let of_row = |lane: usize| {
                        f64::from_bits(last[lane].to_bits() & is_row[lane] | SIGN & !is_row[lane])
                    };
                    sums[k] = sum_of_lanes(std::array::from_fn(|lane| lanes[lane] + of_row(lane)));
                }
            }
        }
    }
}
