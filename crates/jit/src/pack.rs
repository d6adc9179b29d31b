//! Packing: operations of one evaluation that are alike become one operation on the lanes of a
//! vector (superword parallelism: S. Larsen, S. Amarasinghe, PLDI 2000), such as the forces between
//! the bodies of a system and the motions of its planets.
//!
//! Packs are [formed](forming) from the results back to the inputs, with every value in the lane in
//! which a pack wants it; what is wanted otherwise takes a [shuffle](Three::Shuffle). An operation
//! that is like no other is carried out in all lanes.
//!
//! Every operation of the tape is carried out on the same numbers, so the bits are the same.

mod body;
mod forming;
mod writer;

use body::{Arguments, Body};
use forming::Forming;
use holonome_model::graph::primitive::{One, Three, Two};
use holonome_model::graph::tape::{Instruction, Register, Tape};
use std::collections::BTreeMap;

/// Lanes of a pack. Eight would be shuffled across more registers, and are divided and have roots
/// taken in four parts: the steps of nine bodies and of eight planets take 1.2 to 1.5 times as long.
pub(crate) const LANES: usize = 4;
/// Operations below which a tape is not worth a look: the steps of a pendulum.
const FEWEST: usize = 100;
/// Part of the estimated time of the operations one by one that packs may take.
const WORTHWHILE: f64 = 0.9;
/// Packs for each operation above which too few are alike: what they win is then lost in shuffles.
const FEW: f64 = 0.55;
/// Operations behind a result by which it is compared with others.
const DEEP: usize = 4;
/// No value.
const NONE: u32 = u32::MAX;

/// Values in the lanes of a vector, or [`NONE`].
type Lanes = [u32; LANES];

/// A map of states to themselves in packs.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The tape, whose lanes are computed together. It has nothing but parameters in its prologue.
    pub tape: Tape,
    /// State of the map in each lane of a state of the tape, or `u32::MAX`.
    pub states: Vec<[u32; LANES]>,
    /// What is in each lane of a parameter of the tape.
    pub parameters: Vec<[Fixed; LANES]>,
}

/// A number that stays the same in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fixed {
    /// That in a register of the prologue.
    Bound(Register),
    /// Bits.
    Bits(u64),
}

/// A map in packs; `None` if that would not save time.
pub(crate) fn pack(tape: &Tape) -> Option<Packed> {
    if !suits(tape) {
        return None;
    }
    let body = Body::new(tape);
    if body.fewest_packs() as f64 > FEW * body.operations.len() as f64 {
        return None;
    }
    let alone = time(tape, 1);
    let packed = |stride| {
        let packed = writer::written(Forming::packs(&body, &results(&body, stride)));
        (time(&packed.tape, LANES), packed)
    };
    // What is alike of several bodies is as far apart as a body has components, or stands together.
    let mut best = packed(3);
    if best.0 < alone {
        let other = packed(1);
        best = if other.0 < best.0 { other } else { best };
    }
    let (together, packed) = best;
    (together < WORTHWHILE * alone).then_some(packed)
}

/// Results that may be side by side: alike, and `stride` apart.
fn results(body: &Body, stride: usize) -> Vec<Lanes> {
    let mut alike: BTreeMap<(u64, usize), Vec<Register>> = BTreeMap::new();
    for (k, &output) in body.tape.outputs.iter().enumerate() {
        if body.is_operation(output) {
            let results = alike.entry((body.deep_shape(output, DEEP), k % stride)).or_default();
            if !results.contains(&output) {
                results.push(output);
            }
        }
    }
    alike.values().flat_map(|results| results.chunks(LANES)).map(in_lanes).collect()
}

/// True if a tape is a map of which packs can be formed.
pub(crate) fn suits(tape: &Tape) -> bool {
    tape.operations() >= FEWEST
        && tape.outputs.len() <= tape.states
        && !tape.mixes_lanes()
        && !tape.reads_time()
}

/// Estimate of the cycles that a turn takes: of the operations, of which two start in each, or of
/// the longest chain.
fn time(tape: &Tape, lanes: usize) -> f64 {
    let (mut work, mut longest) = (0.0, 0.0f64);
    let mut known = vec![0.0f64; tape.instructions.len()];
    // Roots and quotients are computed two numbers at a time.
    let parts = if lanes == 1 { 1.0 } else { 2.0 };
    for (i, instruction) in tape.instructions.iter().enumerate().skip(tape.prologue) {
        let (cycles, latency) = match instruction {
            Instruction::One(One::Sqrt, _) => (4.5 * parts, 19.0 + 4.0 * parts),
            Instruction::Two(Two::Div, ..) => (4.0 * parts, 14.0 + 3.0 * parts),
            Instruction::Three(Three::Shuffle, ..) | Instruction::One(One::Spread(_), _) => {
                (1.0, 3.0)
            }
            Instruction::Two(
                Two::Add | Two::Sub | Two::Mul | Two::Less | Two::LessEqual | Two::Equal,
                ..,
            ) => (0.5, 4.0),
            Instruction::Three(Three::Fma | Three::Fms | Three::Fnma, ..) => (0.5, 4.0),
            Instruction::One(..) | Instruction::Two(..) | Instruction::Three(..) => (0.5, 1.0),
            _ => (0.0, 0.0),
        };
        let start = instruction.arguments().map(|a| known[a as usize]).fold(0.0, f64::max);
        work += cycles;
        known[i] = start + latency;
        longest = longest.max(known[i]);
    }
    f64::max(work, longest)
}

/// Place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A lane of a pack.
    Pack(u32, u8),
    /// Every lane of a pack.
    Everywhere(u32),
    /// A lane of a state of the packed tape, or every lane.
    State(u32, Option<u8>),
    /// A state that stays as it is.
    Still(u32),
    /// A bound value.
    Bound,
}

/// Packs of a tape, and where everything is.
struct Packs<'a> {
    body: &'a Body<'a>,
    /// Arguments of every operation, in an order that is the same for all lanes of a pack.
    arguments: Vec<Arguments>,
    /// Registers in the lanes of each pack; one in all lanes is computed in all of them.
    packs: Vec<Lanes>,
    /// Place of every register that is needed.
    places: Vec<Option<Place>>,
    /// States that change, in the lanes of those of the packed tape, and the registers of their
    /// values at the end of a turn.
    states: Vec<(Lanes, Lanes)>,
}

impl<'a> Packs<'a> {
    fn new(body: &'a Body<'a>, arguments: Vec<Arguments>, packs: Vec<Lanes>) -> Packs<'a> {
        let mut places = vec![None; body.tape.instructions.len()];
        places[..body.tape.prologue].fill(Some(Place::Bound));
        for (number, lanes) in packs.iter().enumerate() {
            if lanes[1..].iter().all(|r| *r == lanes[0]) {
                places[lanes[0] as usize] = Some(Place::Everywhere(number as u32));
                continue;
            }
            for (lane, register) in some(lanes) {
                places[register as usize] = Some(Place::Pack(number as u32, lane as u8));
            }
        }
        let mut packs = Packs { body, arguments, packs, places, states: Vec::new() };
        packs.place_states();
        packs
    }

    /// Arguments of the members of a pack, lane by lane.
    fn arguments(&self, pack: usize) -> impl Iterator<Item = Lanes> {
        let lanes = self.packs[pack];
        let of = |r: Register, j: usize| match r {
            NONE => NONE,
            r => self.arguments[r as usize][j],
        };
        let arguments: [Lanes; 4] = std::array::from_fn(|j| lanes.map(|r| of(r, j)));
        arguments.into_iter().filter(|arguments| *arguments != [NONE; LANES])
    }

    /// Put the states where their values at the end of a turn are found.
    fn place_states(&mut self) {
        let mut of_pack: BTreeMap<u32, usize> = BTreeMap::new();
        let mut elsewhere = Vec::new();
        for (k, &output) in self.body.tape.outputs.iter().enumerate() {
            if self.body.tape.instructions[output as usize] == Instruction::State(k as u32) {
                self.place_state(k, Place::Still(k as u32));
                continue;
            }
            match self.places[output as usize] {
                Some(Place::Pack(pack, lane)) => {
                    let state = *of_pack.entry(pack).or_insert_with(|| {
                        self.states.push(([NONE; LANES], [NONE; LANES]));
                        self.states.len() - 1
                    });
                    let (states, values) = &mut self.states[state];
                    if states[usize::from(lane)] != NONE {
                        elsewhere.push(k);
                        continue;
                    }
                    (states[usize::from(lane)], values[usize::from(lane)]) = (k as u32, output);
                    self.place_state(k, Place::State(state as u32, Some(lane)));
                }
                Some(Place::Everywhere(_)) => {
                    self.place_state(k, Place::State(self.states.len() as u32, None));
                    self.states.push(([k as u32; LANES], [output; LANES]));
                }
                _ => elsewhere.push(k),
            }
        }
        for states in elsewhere.chunks(LANES) {
            let (mut held, mut values) = ([NONE; LANES], [NONE; LANES]);
            for (lane, &k) in states.iter().enumerate() {
                (held[lane], values[lane]) = (k as u32, self.body.tape.outputs[k]);
                self.place_state(k, Place::State(self.states.len() as u32, Some(lane as u8)));
            }
            self.states.push((held, values));
        }
        for k in self.body.tape.outputs.len()..self.body.tape.states {
            self.place_state(k, Place::Still(k as u32));
        }
        // Every instruction that reads a state.
        for (i, instruction) in self.body.tape.instructions.iter().enumerate() {
            if let Instruction::State(k) = *instruction {
                self.places[i] = self.state(k as usize).and_then(|r| self.places[r as usize]);
            }
        }
    }

    fn place_state(&mut self, k: usize, place: Place) {
        if let Some(register) = self.state(k) {
            self.places[register as usize] = Some(place);
        }
    }

    /// The register that stands for all that read a state, if any does.
    fn state(&self, k: usize) -> Option<Register> {
        Some(self.body.states[k]).filter(|&register| register != NONE)
    }
}

/// What there is in lanes.
fn some(lanes: &Lanes) -> impl Iterator<Item = (usize, u32)> {
    lanes.iter().copied().enumerate().filter(|&(_, number)| number != NONE)
}

fn in_lanes(registers: &[Register]) -> Lanes {
    let mut lanes = [NONE; LANES];
    lanes[..registers.len()].copy_from_slice(registers);
    lanes
}
