//! The tape of packs.

use super::{Fixed, LANES, Lanes, NONE, Packed, Packs, Place, some};
use holonome_model::graph::primitive::{One, Three};
use holonome_model::graph::tape::{Instruction, Register, Tape};
use rustc_hash::FxHashMap;

/// Number that stands for the first parameter until the length of the prologue is known.
const PARAMETERS: Register = 1 << 31;

/// Writer of the tape.
struct Writer<'a> {
    packs: Packs<'a>,
    /// Instructions of the body. Parameters have numbers from [`PARAMETERS`] on.
    code: Vec<Instruction>,
    known: FxHashMap<Instruction, Register>,
    /// Parameters, and their numbers.
    fixed: Vec<[Fixed; LANES]>,
    parameters: FxHashMap<[Fixed; LANES], u32>,
    /// States of the map in the lanes of those of the tape, and the numbers of those that stay.
    held: Vec<Lanes>,
    still: FxHashMap<Lanes, u32>,
    /// Register of each pack, once it is written.
    registers: Vec<Option<Register>>,
    /// Vectors that were made of values of the map.
    vectors: FxHashMap<Lanes, Register>,
}

/// A vector that has some of the wanted numbers, and the lane in which each is.
struct Part {
    register: Register,
    from: Lanes,
}

/// Lanes that stay where they are.
fn in_place(lanes: &Lanes) -> Lanes {
    std::array::from_fn(|lane| if lanes[lane] == NONE { NONE } else { lane as u32 })
}

/// The tape of `packs`.
pub(super) fn written(packs: Packs) -> Packed {
    let changing = packs.states.clone();
    let mut writer = Writer {
        registers: vec![None; packs.packs.len()],
        packs,
        code: Vec::new(),
        known: FxHashMap::default(),
        fixed: Vec::new(),
        parameters: FxHashMap::default(),
        held: changing.iter().map(|&(states, _)| states).collect(),
        still: FxHashMap::default(),
        vectors: FxHashMap::default(),
    };
    let outputs = changing.iter().map(|&(_, values)| writer.vector(values)).collect();
    let goes_on = writer.packs.body.tape.goes_on.map(|mask| writer.vector([mask; LANES]));
    writer.finish(outputs, goes_on)
}

impl Writer<'_> {
    fn put(&mut self, instruction: Instruction) -> Register {
        *self.known.entry(instruction).or_insert_with(|| {
            self.code.push(instruction);
            self.code.len() as Register - 1
        })
    }

    fn parameter(&mut self, lanes: [Fixed; LANES]) -> Register {
        let next = self.fixed.len() as u32;
        let number = *self.parameters.entry(lanes).or_insert(next);
        if number == next {
            self.fixed.push(lanes);
        }
        PARAMETERS + number
    }

    /// The vector with these values of the map in its lanes; other lanes may hold anything.
    fn vector(&mut self, wanted: Lanes) -> Register {
        self.write(wanted);
        if let Some(&known) = self.vectors.get(&wanted) {
            return known;
        }
        let mut parts: Vec<Part> = Vec::new();
        let (mut bound, mut still) = ([NONE; LANES], [NONE; LANES]);
        for (lane, value) in some(&wanted) {
            let written = |pack: u32| self.registers[pack as usize].expect("it is written");
            let place = self.packs.places[value as usize].expect("what is needed has a place");
            let (register, from) = match place {
                Place::Bound => {
                    bound[lane] = value;
                    continue;
                }
                Place::Still(k) => {
                    still[lane] = k;
                    continue;
                }
                Place::Pack(pack, from) => (written(pack), usize::from(from)),
                Place::Everywhere(pack) => (written(pack), lane),
                Place::State(k, from) => {
                    (self.put(Instruction::State(k)), from.map_or(lane, usize::from))
                }
            };
            let known = parts.iter().position(|part| part.register == register);
            let part = known.unwrap_or_else(|| {
                parts.push(Part { register, from: [NONE; LANES] });
                parts.len() - 1
            });
            parts[part].from[lane] = from as u32;
        }
        if let Some((_, first)) = some(&bound).next() {
            let fixed = bound.map(|r| Fixed::Bound(if r == NONE { first } else { r }));
            parts.push(Part { register: self.parameter(fixed), from: in_place(&bound) });
        }
        if let Some((_, first)) = some(&still).next() {
            let held = still.map(|k| if k == NONE { first } else { k });
            let next = self.held.len() as u32;
            let number = *self.still.entry(held).or_insert(next);
            if number == next {
                self.held.push(held);
            }
            let register = self.put(Instruction::State(number));
            parts.push(Part { register, from: in_place(&still) });
        }
        let whole = self.joined(&parts);
        self.vectors.insert(wanted, whole);
        whole
    }

    /// One vector of all parts.
    fn joined(&mut self, parts: &[Part]) -> Register {
        let (first, rest) = parts.split_first().expect("a vector has a value");
        let mut have = first.from;
        let mut joined = first.register;
        if rest.is_empty() && have != in_place(&have) {
            let (_, lane) = some(&have).next().expect("a part has a value");
            if some(&have).all(|(_, other)| other == lane) {
                return self.put(Instruction::One(One::Spread(lane as u8), joined));
            }
            return self.shuffle([joined, joined], have);
        }
        for part in rest {
            let from = std::array::from_fn(|lane| match part.from[lane] {
                NONE => have[lane],
                from => LANES as u32 + from,
            });
            joined = self.shuffle([joined, part.register], from);
            have = in_place(&from);
        }
        joined
    }

    fn shuffle(&mut self, [a, b]: [Register; 2], from: Lanes) -> Register {
        let places = std::array::from_fn(|lane| {
            Fixed::Bits(if from[lane] == NONE { lane as u64 } else { u64::from(from[lane]) })
        });
        let places = self.parameter(places);
        self.put(Instruction::Three(Three::Shuffle, a, b, places))
    }

    /// Write the packs that have these values, after those that they read.
    fn write(&mut self, wanted: Lanes) {
        let mut waiting = self.missing(&wanted);
        while let Some(&pack) = waiting.last() {
            let arguments: Vec<Lanes> = self.packs.arguments(pack).collect();
            let before = waiting.len();
            if self.registers[pack].is_none() {
                waiting.extend(arguments.iter().rev().flat_map(|lanes| self.missing(lanes)));
            }
            if waiting.len() > before {
                continue;
            }
            waiting.pop();
            if self.registers[pack].is_none() {
                self.registers[pack] = Some(self.written(pack, &arguments));
            }
        }
    }

    /// Packs of these values that are not written yet.
    fn missing(&self, lanes: &Lanes) -> Vec<usize> {
        let pack = |(_, value): (usize, u32)| match self.packs.places[value as usize] {
            Some(Place::Pack(pack, _) | Place::Everywhere(pack)) => Some(pack as usize),
            _ => None,
        };
        some(lanes).filter_map(pack).filter(|&pack| self.registers[pack].is_none()).collect()
    }

    /// Write a pack that reads these values.
    fn written(&mut self, pack: usize, arguments: &[Lanes]) -> Register {
        let mut registers = [0; 4];
        let (_, member) = some(&self.packs.packs[pack]).next().expect("a pack has a member");
        let instruction = self.packs.body.tape.instructions[member as usize];
        for (register, &lanes) in registers.iter_mut().zip(arguments) {
            // Nothing is to be repaired in lanes that nothing needs.
            let (_, first) = some(&lanes).next().expect("a member has arguments");
            let filled = lanes.map(|r| if r == NONE { first } else { r });
            let repairs = matches!(instruction, Instruction::Repair(..));
            *register = self.vector(if repairs { filled } else { lanes });
        }
        let [a, b, c, d] = registers;
        self.put(match instruction {
            Instruction::One(op, _) => Instruction::One(op, a),
            Instruction::Two(op, ..) => Instruction::Two(op, a, b),
            Instruction::Three(op, ..) => Instruction::Three(op, a, b, c),
            Instruction::Repair(function, _) => Instruction::Repair(function, [a, b, c, d]),
            other => unreachable!("{other:?} computes nothing"),
        })
    }

    fn finish(self, outputs: Vec<Register>, goes_on: Option<Register>) -> Packed {
        let prologue = self.fixed.len() as Register;
        let number = |r: Register| if r >= PARAMETERS { r - PARAMETERS } else { r + prologue };
        let parameters = (0..prologue).map(Instruction::Parameter);
        let body = self.code.iter().map(|instruction| instruction.map(number));
        Packed {
            tape: Tape {
                instructions: parameters.chain(body).collect(),
                prologue: self.fixed.len(),
                outputs: outputs.into_iter().map(number).collect(),
                goes_on: goes_on.map(number),
                states: self.held.len(),
                parameters: self.fixed.len(),
            },
            states: self.held,
            parameters: self.fixed,
        }
    }
}
