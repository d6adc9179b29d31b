//! Operations of a tape, and which of them are of one kind.

use super::{LANES, NONE};
use holonome_model::graph::primitive::Three;
use holonome_model::graph::tape::{Instruction, Register, Tape};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{BuildHasher, BuildHasherDefault, Hash};

/// Arguments of an operation, followed by [`NONE`].
pub(super) type Arguments = [Register; 4];

/// Operations that read a value, and those that read their results, and so on, by which it is
/// compared with others.
const READERS: usize = 5;
/// Kinds whose levels are found together.
const TOGETHER: usize = 32;

/// The operations that the results of a tape need.
pub(super) struct Body<'a> {
    pub tape: &'a Tape,
    /// Operations, in the order of the tape.
    pub operations: Vec<Register>,
    /// Arguments of every register. Those that may be exchanged are in an order that is the same
    /// for what is of one kind.
    pub arguments: Vec<Arguments>,
    /// First register for each state, or [`NONE`]; it stands for all.
    pub states: Vec<Register>,
    /// What every operation and its arguments are, as a number.
    pub shapes: Vec<u64>,
    /// Class of every operation: those of one class are alike in what they and their arguments are
    /// and in what reads them on the longest way to the results, and do not wait for each other.
    pub classes: Vec<u32>,
}

impl Body<'_> {
    pub(super) fn new(tape: &Tape) -> Body<'_> {
        let code = &tape.instructions;
        let mut needed = vec![false; code.len()];
        tape.outputs.iter().chain(&tape.goes_on).for_each(|&r| needed[r as usize] = true);
        for (i, instruction) in code.iter().enumerate().rev() {
            if needed[i] {
                instruction.arguments().for_each(|a| needed[a as usize] = true);
            }
        }
        let body: Vec<usize> = (tape.prologue..code.len()).filter(|&i| needed[i]).collect();
        let mut states = vec![NONE; tape.states];
        let mut arguments = vec![[NONE; 4]; code.len()];
        for &i in &body {
            if let Instruction::State(k) = code[i] {
                states[k as usize] = states[k as usize].min(i as Register);
            }
            for (place, a) in arguments[i].iter_mut().zip(code[i].arguments()) {
                *place = match code[a as usize] {
                    Instruction::State(k) => states[k as usize],
                    _ => a,
                };
            }
        }
        let operations: Vec<usize> =
            body.into_iter().filter(|&i| code[i].arguments().next().is_some()).collect();
        let (shapes, kinds) = kinds(tape, &operations, &mut arguments);
        let levels = levels(&operations, &kinds, &arguments);
        let mut classes = vec![NONE; code.len()];
        let mut number: FxHashMap<(Instruction, u64, u16), u32> = FxHashMap::default();
        for &i in &operations {
            let next = number.len() as u32;
            // Numbers of kinds are hashes, which two operations may share.
            let class = (code[i].map(|_| 0), kinds[i], levels[i]);
            classes[i] = *number.entry(class).or_insert(next);
        }
        let operations = operations.into_iter().map(|i| i as Register).collect();
        Body { tape, operations, arguments, states, shapes, classes }
    }

    /// True if a register is the result of an operation of the body.
    pub(super) fn is_operation(&self, register: Register) -> bool {
        self.classes[register as usize] != NONE
    }

    /// True if two registers are results of the same operation.
    pub(super) fn is_same(&self, a: Register, b: Register) -> bool {
        let [a, b] = [a, b].map(|r| self.tape.instructions[r as usize]);
        a.map(|_| 0) == b.map(|_| 0)
    }

    /// Number of packs if all of every class were in packs.
    pub(super) fn fewest_packs(&self) -> usize {
        let mut sizes: FxHashMap<u32, usize> = FxHashMap::default();
        for &r in &self.operations {
            *sizes.entry(self.classes[r as usize]).or_default() += 1;
        }
        sizes.into_values().map(|size| size.div_ceil(LANES)).sum()
    }

    /// What an operation and those before it are, as a number.
    pub(super) fn deep_shape(&self, register: Register, depth: usize) -> u64 {
        if depth == 0 || !self.is_operation(register) {
            return self.shapes[register as usize];
        }
        let arguments = read(&self.arguments[register as usize]);
        let mut of_arguments: Vec<u64> =
            arguments.map(|a| self.deep_shape(a as Register, depth - 1)).collect();
        if self.exchanges(register) {
            of_arguments[..2].sort_unstable();
        }
        hash((self.shapes[register as usize], of_arguments))
    }

    /// True if the first two arguments of an operation may be exchanged.
    pub(super) fn exchanges(&self, register: Register) -> bool {
        exchanges(self.tape.instructions[register as usize])
    }
}

/// Arguments of an operation.
pub(super) fn read(arguments: &Arguments) -> impl Iterator<Item = usize> {
    arguments.iter().take_while(|&&a| a != NONE).map(|&a| a as usize)
}

fn hash(value: impl Hash) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(value)
}

fn exchanges(instruction: Instruction) -> bool {
    match instruction {
        Instruction::Two(op, ..) => op.commutes(),
        Instruction::Three(op, ..) => matches!(op, Three::Fma | Three::Fms | Three::Fnma),
        _ => false,
    }
}

/// Two numbers for each operation, the same for those that are alike: of what they and their
/// arguments are, and with what reads them on the longest way to the results. Arguments that may be
/// exchanged are put in the order of their numbers.
fn kinds(tape: &Tape, operations: &[usize], arguments: &mut [Arguments]) -> (Vec<u64>, Vec<u64>) {
    let code = &tape.instructions;
    let operation = |i: usize| match code[i] {
        _ if i < tape.prologue => hash(0),
        Instruction::State(_) => hash(1),
        Instruction::One(op, _) => hash((2, op)),
        Instruction::Two(op, ..) => hash((3, op)),
        Instruction::Three(op, ..) => hash((4, op)),
        Instruction::Repair(function, _) => hash((5, function)),
        _ => hash(6),
    };
    // The reader with the longest way to the results, and the position at which it reads.
    let mut height = vec![0u32; code.len()];
    let mut reader = vec![(NONE, 0); code.len()];
    for &i in operations.iter().rev() {
        for (j, a) in read(&arguments[i]).enumerate() {
            if height[i] + 1 > height[a] {
                // Two arguments that may be exchanged are at one position.
                let j = if j == 1 && exchanges(code[i]) { 0 } else { j };
                (height[a], reader[a]) = (height[i] + 1, (i as u32, j));
            }
        }
    }
    let [mut shapes, mut kinds] = [vec![0; code.len()], vec![0; code.len()]];
    for i in (0..code.len()).filter(|&i| i < tape.prologue || height[i] > 0) {
        kinds[i] = operation(i);
    }
    for &i in operations {
        let mut of_arguments: Vec<u64> = read(&arguments[i]).map(operation).collect();
        if exchanges(code[i]) {
            of_arguments[..2].sort_unstable();
        }
        let mut readers = [(0, 0); READERS];
        let mut at = i;
        for place in &mut readers {
            let (next, j) = reader[at];
            if next == NONE {
                break;
            }
            at = next as usize;
            *place = (operation(at), j);
        }
        shapes[i] = hash((operation(i), of_arguments));
        kinds[i] = hash((shapes[i], readers));
    }
    for &i in operations.iter().filter(|&&i| exchanges(code[i])) {
        let [a, b, ..] = arguments[i];
        if kinds[a as usize] > kinds[b as usize] {
            arguments[i].swap(0, 1);
        }
    }
    (shapes, kinds)
}

/// How many operations of its own kind each one waits for, one after the other: those of one kind
/// and one level do not wait for each other.
fn levels(operations: &[usize], kinds: &[u64], arguments: &[Arguments]) -> Vec<u16> {
    let mut numbers: FxHashMap<u64, (usize, bool)> = FxHashMap::default();
    for &i in operations {
        let next = numbers.len();
        numbers.entry(kinds[i]).and_modify(|(_, again)| *again = true).or_insert((next, false));
    }
    let several = numbers.into_iter().filter(|&(_, (_, again))| again);
    let mut several: Vec<(usize, u64)> = several.map(|(kind, (k, _))| (k, kind)).collect();
    several.sort_unstable();
    // Number of the kind of each operation among those of which there are several.
    let mut number = vec![usize::MAX; kinds.len()];
    let places: FxHashMap<u64, usize> =
        several.iter().enumerate().map(|(place, &(_, kind))| (kind, place)).collect();
    for &i in operations {
        number[i] = places.get(&kinds[i]).copied().unwrap_or(usize::MAX);
    }
    let mut levels = vec![0; kinds.len()];
    let mut before = vec![[0u16; TOGETHER]; kinds.len()];
    for first in (0..several.len()).step_by(TOGETHER) {
        for &i in operations {
            let mut most = [0; TOGETHER];
            for a in read(&arguments[i]) {
                most.iter_mut().zip(&before[a]).for_each(|(most, &own)| *most = own.max(*most));
            }
            if let Some(own) = number[i].checked_sub(first).and_then(|k| most.get_mut(k)) {
                levels[i] = *own;
                *own += 1;
            }
            before[i] = most;
        }
    }
    levels
}
