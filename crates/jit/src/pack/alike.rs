//! Groups of operations that are alike.

use super::{LANES, NONE};
use holonome_model::graph::primitive::Three;
use holonome_model::graph::tape::{Instruction, Register, Tape};
use rustc_hash::{FxHashMap, FxHasher};
use std::cmp::Reverse;
use std::hash::{BuildHasher, BuildHasherDefault, Hash};

/// Operations of a tape that are alike and do not wait for each other.
pub(super) struct Alike {
    /// Number of the group of every register that is needed. Groups of arguments have smaller
    /// numbers.
    pub of: Vec<u32>,
    /// Registers of each group, in the order of the tape.
    pub members: Vec<Vec<Register>>,
    /// Arguments of every register; those that may be exchanged are in an order that is the same
    /// for what is alike.
    pub arguments: Vec<[Register; 3]>,
    /// First register for each state, or [`NONE`].
    states: Vec<Register>,
}

/// Group of all bound values.
const BOUND: u32 = 0;
/// Group of all states.
pub(super) const STATE: u32 = 1;
/// Operations that read a value, and those that read their results, and so on, by which it is
/// compared with others.
const READERS: usize = 5;
/// Packs for each operation above which too few are alike: what they win is then lost in shuffles.
const FEW: f64 = 0.55;
/// Kinds whose levels are found together.
const TOGETHER: usize = 32;

impl Alike {
    /// Groups; `None` if there are too few that are alike, or if an operation may have to be repeated.
    pub(super) fn new(tape: &Tape) -> Option<Alike> {
        let code = &tape.instructions;
        let mut needed = vec![false; code.len()];
        tape.outputs.iter().for_each(|&r| needed[r as usize] = true);
        for (i, instruction) in code.iter().enumerate().rev() {
            if needed[i] {
                instruction.arguments().for_each(|a| needed[a as usize] = true);
            }
        }
        let body: Vec<usize> = (tape.prologue..code.len()).filter(|&i| needed[i]).collect();
        if body.iter().any(|&i| matches!(code[i], Instruction::Repair(..))) {
            return None;
        }
        // Several instructions may read one state; the first stands for all.
        let mut states = vec![NONE; tape.states];
        let mut arguments = vec![[NONE; 3]; code.len()];
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
        let kinds = kinds(tape, &operations, &mut arguments);
        let mut of_kind: FxHashMap<u64, usize> = FxHashMap::default();
        operations.iter().for_each(|&i| *of_kind.entry(kinds[i]).or_default() += 1);
        let few = |sizes: &mut dyn Iterator<Item = usize>| {
            let packs: usize = sizes.map(|size| size.div_ceil(LANES)).sum();
            packs as f64 <= FEW * operations.len() as f64
        };
        if !few(&mut of_kind.into_values()) {
            return None;
        }
        let levels = levels(&operations, &kinds, &arguments);
        let (of, members) = groups(tape, &operations, &arguments, |i| (kinds[i], levels[i]));
        // Numbers of kinds are hashes, which two operations may share.
        let operation = |r: Register| code[r as usize].map(|_| 0);
        let is_one = |group: &Vec<Register>| {
            group.windows(2).all(|pair| operation(pair[0]) == operation(pair[1]))
        };
        (members.iter().all(is_one) && few(&mut members.iter().map(Vec::len))).then_some(Alike {
            of,
            members,
            arguments,
            states,
        })
    }

    /// The register that stands for all that read a state, if any does.
    pub(super) fn state(&self, k: u32) -> Option<Register> {
        Some(self.states[k as usize]).filter(|&register| register != NONE)
    }
}

/// Arguments of an operation.
fn read(arguments: &[Register; 3]) -> impl Iterator<Item = usize> {
    arguments.iter().take_while(|&&a| a != NONE).map(|&a| a as usize)
}

fn hash(value: impl Hash) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(value)
}

/// A number for each operation, the same for those that are alike: what they and their arguments
/// are, and what reads them on the longest way to the results. Arguments that may be exchanged are
/// put in the order of their numbers.
fn kinds(tape: &Tape, operations: &[usize], arguments: &mut [[Register; 3]]) -> Vec<u64> {
    let code = &tape.instructions;
    let operation = |i: usize| match code[i] {
        _ if i < tape.prologue => hash(0),
        Instruction::State(_) => hash(1),
        Instruction::One(op, _) => hash((2, op)),
        Instruction::Two(op, ..) => hash((3, op)),
        Instruction::Three(op, ..) => hash((4, op)),
        _ => hash(5),
    };
    let exchanges = |i: usize| match code[i] {
        Instruction::Two(op, ..) => op.commutes(),
        Instruction::Three(op, ..) => matches!(op, Three::Fma | Three::Fms | Three::Fnma),
        _ => false,
    };
    // The reader with the longest way to the results, and the position at which it reads.
    let mut height = vec![0u32; code.len()];
    let mut reader = vec![(NONE, 0); code.len()];
    for &i in operations.iter().rev() {
        for (j, a) in read(&arguments[i]).enumerate() {
            if height[i] + 1 > height[a] {
                // Two arguments that may be exchanged are at one position.
                let j = if j == 1 && exchanges(i) { 0 } else { j };
                (height[a], reader[a]) = (height[i] + 1, (i as u32, j));
            }
        }
    }
    let mut kinds: Vec<u64> = vec![0; code.len()];
    for i in (0..code.len()).filter(|&i| i < tape.prologue || height[i] > 0) {
        kinds[i] = operation(i);
    }
    for &i in operations {
        let mut of_arguments: Vec<u64> = read(&arguments[i]).map(operation).collect();
        if exchanges(i) {
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
        kinds[i] = hash((operation(i), of_arguments, readers));
    }
    for &i in operations.iter().filter(|&&i| exchanges(i)) {
        let [a, b, _] = arguments[i];
        if kinds[a as usize] > kinds[b as usize] {
            arguments[i].swap(0, 1);
        }
    }
    kinds
}

/// How many operations of its own kind each one waits for, one after the other: those of one kind
/// and one level do not wait for each other.
fn levels(operations: &[usize], kinds: &[u64], arguments: &[[Register; 3]]) -> Vec<u16> {
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

/// Groups of operations with one key, as far as all of a group can follow all that they read: first
/// those that are complete, and otherwise as many of one as can follow.
fn groups(
    tape: &Tape,
    operations: &[usize],
    arguments: &[[Register; 3]],
    key: impl Fn(usize) -> (u64, u16),
) -> (Vec<u32>, Vec<Vec<Register>>) {
    let n = tape.instructions.len();
    let mut of = vec![NONE; n];
    of[..tape.prologue].fill(BOUND);
    for (i, instruction) in tape.instructions.iter().enumerate().skip(tape.prologue) {
        if matches!(instruction, Instruction::State(_)) {
            of[i] = STATE;
        }
    }
    let mut number: FxHashMap<(u64, u16), usize> = FxHashMap::default();
    // Members that can follow, and the number of those that cannot yet.
    let mut waiting: Vec<(Vec<Register>, usize)> = Vec::new();
    let (mut missing, mut readers, mut group) = (vec![0; n], vec![Vec::new(); n], vec![0; n]);
    for &i in operations {
        group[i] = *number.entry(key(i)).or_insert_with(|| {
            waiting.push((Vec::new(), 0));
            waiting.len() - 1
        });
        waiting[group[i]].1 += 1;
        for a in read(&arguments[i]).filter(|&a| of[a] == NONE) {
            missing[i] += 1;
            readers[a].push(i);
        }
    }
    let mut complete = Vec::new();
    let arrive =
        |i: usize, waiting: &mut Vec<(Vec<Register>, usize)>, complete: &mut Vec<usize>| {
            let (ready, left) = &mut waiting[group[i]];
            ready.push(i as Register);
            *left -= 1;
            if *left == 0 {
                complete.push(group[i]);
            }
        };
    for &i in operations.iter().filter(|&&i| missing[i] == 0) {
        arrive(i, &mut waiting, &mut complete);
    }
    let mut members = vec![Vec::new(); 2];
    loop {
        // The one that needs the fewest more, and of these the largest.
        let next = complete.pop().or_else(|| {
            let some = (0..waiting.len()).filter(|&g| !waiting[g].0.is_empty());
            some.min_by_key(|&g| (waiting[g].1, Reverse(waiting[g].0.len())))
        });
        let Some(next) = next else { break };
        let mut ready = std::mem::take(&mut waiting[next].0);
        ready.sort_unstable();
        for &r in &ready {
            of[r as usize] = members.len() as u32;
        }
        for &r in &ready {
            for &reader in &readers[r as usize] {
                missing[reader] -= 1;
                if missing[reader] == 0 {
                    arrive(reader, &mut waiting, &mut complete);
                }
            }
        }
        members.push(ready);
    }
    (of, members)
}
