//! Packing: operations of one evaluation that are alike become one operation on the lanes of a
//! vector (superword parallelism: S. Larsen, S. Amarasinghe, PLDI 2000), such as the forces between
//! the bodies of a system and the motions of its planets.
//!
//! What is alike and does not wait for each other is [grouped](alike) from the inputs to the
//! results. Packs are then formed from the results back to the inputs, with every value in the lane
//! in which a pack wants it; what is wanted otherwise takes a [shuffle](Three::Shuffle). An
//! operation that is like no other is carried out in all lanes, so that it need not be spread.
//!
//! Every operation of the tape is carried out on the same numbers, so the bits are the same.

mod alike;
mod writer;

use alike::{Alike, STATE};
use holonome_model::graph::primitive::{One, Three, Two};
use holonome_model::graph::tape::{Instruction, Register, Tape};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Lanes of a pack. Eight would be shuffled across more registers, and are divided and have roots
/// taken in four parts: the steps of nine bodies and of eight planets take 1.2 to 1.5 times as long.
pub(crate) const LANES: usize = 4;
/// Operations below which a tape is not worth a look: the steps of a pendulum.
const FEWEST: usize = 100;
/// Operations up to which several orders of the results are tried.
const LONGEST_TRIED: usize = 4000;
/// Part of the estimated time of the operations one by one that packs may take.
const WORTHWHILE: f64 = 0.9;
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
    let alike = Alike::new(tape)?;
    let alone = time(tape, 1);
    let packed = |stride| {
        let packed = writer::written(Packs::new(tape, &alike, stride));
        (time(&packed.tape, LANES), packed)
    };
    // What is alike of several bodies is as far apart as a body has components.
    let mut best = packed(3);
    if tape.operations() <= LONGEST_TRIED && best.0 < alone {
        let others = [2, 1].map(packed);
        best = others.into_iter().fold(best, |a, b| if b.0 < a.0 { b } else { a });
    }
    let (together, packed) = best;
    (together < WORTHWHILE * alone).then_some(packed)
}

/// True if a tape is a map of which packs can be formed. A loop that ends by itself may do so after a
/// few turns, for which it is not worthwhile to put its numbers into lanes.
pub(crate) fn suits(tape: &Tape) -> bool {
    tape.operations() >= FEWEST
        && tape.outputs.len() == tape.states
        && tape.goes_on.is_none()
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
            Instruction::Three(Three::Shuffle, ..) => (1.0, 3.0),
            // Through memory.
            Instruction::One(One::Spread(_), _) => (0.3, 10.0),
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
    tape: &'a Tape,
    alike: &'a Alike,
    /// Registers in the lanes of each pack.
    packs: Vec<Lanes>,
    /// Place of every register that is needed.
    places: Vec<Option<Place>>,
    /// States that change, in the lanes of those of the packed tape, and the registers of their
    /// values at the end of a turn.
    states: Vec<(Lanes, Lanes)>,
}

impl<'a> Packs<'a> {
    /// Packs, with results that are `stride` apart side by side.
    fn new(tape: &'a Tape, alike: &'a Alike, stride: usize) -> Packs<'a> {
        let mut places = vec![None; tape.instructions.len()];
        places[..tape.prologue].fill(Some(Place::Bound));
        let mut packs = Packs { tape, alike, packs: Vec::new(), places, states: Vec::new() };
        let mut wanted: Vec<Vec<Lanes>> = vec![Vec::new(); alike.members.len()];
        let mut results: BTreeMap<(u32, usize), Vec<Register>> = BTreeMap::new();
        for (k, &output) in tape.outputs.iter().enumerate() {
            results.entry((alike.of[output as usize], k % stride)).or_default().push(output);
        }
        for ((group, _), registers) in results {
            wanted[group as usize].extend(registers.chunks(LANES).map(in_lanes));
        }
        // What reads a group has a larger number.
        for group in (STATE as usize + 1..alike.members.len()).rev() {
            let first = packs.packs.len();
            packs.form(&alike.members[group], std::mem::take(&mut wanted[group]));
            for pack in first..packs.packs.len() {
                for arguments in packs.arguments(pack) {
                    let mut groups: Vec<u32> =
                        some(&arguments).map(|(_, a)| alike.of[a as usize]).collect();
                    groups.sort_unstable();
                    groups.dedup();
                    for group in groups {
                        let within = |a: Register| a != NONE && alike.of[a as usize] == group;
                        wanted[group as usize]
                            .push(arguments.map(|a| if within(a) { a } else { NONE }));
                    }
                }
            }
        }
        packs.place_states();
        packs
    }

    /// Arguments of the members of a pack, lane by lane.
    fn arguments(&self, pack: usize) -> impl Iterator<Item = Lanes> {
        let lanes = self.packs[pack];
        let of = |r: Register, j: usize| match r {
            NONE => NONE,
            r => self.alike.arguments[r as usize][j],
        };
        let arguments: [Lanes; 3] = std::array::from_fn(|j| lanes.map(|r| of(r, j)));
        arguments.into_iter().filter(|arguments| *arguments != [NONE; LANES])
    }

    /// Form packs of all members of a group, of which lanes are wanted.
    fn form(&mut self, members: &[Register], mut wanted: Vec<Lanes>) {
        if let &[only] = members {
            self.places[only as usize] = Some(Place::Everywhere(self.packs.len() as u32));
            self.packs.push([only; LANES]);
            return;
        }
        // Where almost all of a pack is wanted, it is formed like that.
        wanted.sort_by_key(|lanes| Reverse(some(lanes).count()));
        let enough = members.len().min(LANES);
        let enough = if members.len() > LANES { enough - 1 } else { enough };
        for lanes in &wanted {
            let mut sorted = *lanes;
            sorted.sort_unstable();
            let twice = sorted.windows(2).any(|pair| pair[0] == pair[1] && pair[0] != NONE);
            let is_new = some(lanes).all(|(_, r)| self.places[r as usize].is_none());
            if some(lanes).count() >= enough && !twice && is_new {
                self.put(*lanes);
            }
        }
        // The others where they are wanted first, as far as there is room.
        let order = wanted.iter().flat_map(some).chain(members.iter().map(|&r| (0, r)));
        let mut open: Vec<Lanes> = Vec::new();
        for (lane, register) in order {
            let place = &mut self.places[register as usize];
            if place.is_some() {
                continue;
            }
            // Until its pack is complete.
            *place = Some(Place::Bound);
            if open.last().is_none_or(|pack| !pack.contains(&NONE)) {
                open.push([NONE; LANES]);
            }
            let pack = open.last_mut().expect("one is open");
            let mut free = (lane..LANES).chain(0..lane).filter(|&lane| pack[lane] == NONE);
            let free = free.next().expect("it has room");
            pack[free] = register;
        }
        open.into_iter().for_each(|lanes| self.put(lanes));
    }

    fn put(&mut self, lanes: Lanes) {
        for (lane, register) in some(&lanes) {
            self.places[register as usize] = Some(Place::Pack(self.packs.len() as u32, lane as u8));
        }
        self.packs.push(lanes);
    }

    /// Put the states where their values at the end of a turn are found.
    fn place_states(&mut self) {
        let mut of_pack: BTreeMap<u32, usize> = BTreeMap::new();
        let mut elsewhere = Vec::new();
        for (k, &output) in self.tape.outputs.iter().enumerate() {
            if self.tape.instructions[output as usize] == Instruction::State(k as u32) {
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
                (held[lane], values[lane]) = (k as u32, self.tape.outputs[k]);
                self.place_state(k, Place::State(self.states.len() as u32, Some(lane as u8)));
            }
            self.states.push((held, values));
        }
        // Every instruction that reads a state.
        for (i, instruction) in self.tape.instructions.iter().enumerate() {
            if let Instruction::State(k) = *instruction {
                self.places[i] = self.alike.state(k).and_then(|r| self.places[r as usize]);
            }
        }
    }

    fn place_state(&mut self, k: usize, place: Place) {
        if let Some(register) = self.alike.state(k as u32) {
            self.places[register as usize] = Some(place);
        }
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
