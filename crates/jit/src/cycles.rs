//! Estimate of the time of a tape in compiled code, by which methods are compared: the operations
//! begin on a few units, as on processors of recent years. [`pack`](crate::pack) compares a tape with
//! its packs by less, as almost all of their difference is in the shuffles.

use crate::pack::{LANES, pack};
use holonome_model::graph::primitive::{One, Three, Two};
use holonome_model::graph::tape::{Instruction, Tape};

/// Operations whose code fills the first-level instruction cache. Those of a longer loop have to be
/// fetched in every turn.
const CACHED: usize = 4000;
/// Cycles in which an operation is fetched then: steps of `taylor` with 4600 to 9500 operations take
/// 0.76 to 0.89 an operation.
const FETCHED: f64 = 0.8;

/// Estimate of the cycles that a turn of a loop over a tape takes in so many lanes, on a processor of
/// recent years; in one lane in packs, if these are faster. It depends on the tape alone, not on the
/// machine.
pub fn cycles(tape: &Tape, lanes: usize) -> f64 {
    let packed = if lanes == 1 { pack(tape) } else { None };
    packed.map_or_else(|| time(tape, lanes), |packed| time(&packed.tape, LANES))
}

/// Operations that a processor looks ahead.
const WINDOW: usize = 256;
/// Operations that begin in one cycle.
const AT_ONCE: u8 = 2;

/// Units that begin an operation in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// One of several that compute.
    Any,
    /// All of them, for a move between lanes.
    All,
    /// The one that divides and takes roots.
    Divider,
}

/// Unit of an operation, the cycles for which it keeps it busy, and those after which its result is
/// known. Roots and quotients are computed two numbers at a time.
fn duration(instruction: Instruction, lanes: usize) -> Option<(Unit, u64, u64)> {
    let parts = lanes.div_ceil(2) as u64;
    Some(match instruction {
        Instruction::One(One::Sqrt, _) => (Unit::Divider, 5 * parts, 18 + 2 * parts),
        Instruction::Two(Two::Div, ..) => (Unit::Divider, 4 * parts, 13 + 2 * parts),
        Instruction::Three(Three::Shuffle, ..) | Instruction::One(One::Spread(_), _) => {
            (Unit::All, 1, 3)
        }
        Instruction::Two(
            Two::Add | Two::Sub | Two::Mul | Two::Less | Two::LessEqual | Two::Equal,
            ..,
        )
        | Instruction::Three(Three::Fma | Three::Fms | Three::Fnma, ..)
        | Instruction::Repair(..) => (Unit::Any, 1, 4),
        Instruction::One(..) | Instruction::Two(..) | Instruction::Three(..) => (Unit::Any, 1, 1),
        Instruction::Constant(_)
        | Instruction::State(_)
        | Instruction::Parameter(_)
        | Instruction::Time => return None,
    })
}

/// Operations that begin in every cycle, and if the divider is busy.
#[derive(Default)]
struct Busy(Vec<(u8, bool)>);

impl Busy {
    /// Begin an operation in the first cycle from `ready` on in which there is room.
    fn begin(&mut self, unit: Unit, busy: u64, ready: u64) -> u64 {
        let (mut start, length) = (ready as usize, busy as usize);
        loop {
            if self.0.len() < start + length {
                self.0.resize(start + length, (0, false));
            }
            let cycles = &mut self.0[start..start + length];
            let count = match unit {
                Unit::Divider => match cycles.iter().rposition(|&(_, divides)| divides) {
                    Some(last) => {
                        start += last + 1;
                        continue;
                    }
                    None => {
                        cycles.iter_mut().for_each(|(_, divides)| *divides = true);
                        return start as u64;
                    }
                },
                Unit::Any => 1,
                Unit::All => AT_ONCE,
            };
            if cycles[0].0 + count <= AT_ONCE {
                cycles[0].0 += count;
                return start as u64;
            }
            start += 1;
        }
    }
}

/// Estimate of the cycles that a turn takes, if operations begin as soon as their arguments are known
/// and a unit is free, but none before that [`WINDOW`] places before it has ended.
fn time(tape: &Tape, lanes: usize) -> f64 {
    let mut known = vec![0; tape.instructions.len()];
    let mut busy = Busy::default();
    let mut ends: Vec<u64> = Vec::new();
    // The second turn begins with the states that the first one has computed.
    let mut turns = [0; 2];
    for turn in &mut turns {
        let states: Vec<u64> = tape.outputs.iter().map(|&r| known[r as usize]).collect();
        for (i, &instruction) in tape.instructions.iter().enumerate().skip(tape.prologue) {
            if let Instruction::State(k) = instruction {
                known[i] = states.get(k as usize).copied().unwrap_or(0);
            }
            let Some((unit, length, latency)) = duration(instruction, lanes) else { continue };
            let oldest = ends.len().checked_sub(WINDOW).map_or(0, |k| ends[k]);
            let ready = instruction.arguments().map(|a| known[a as usize]).fold(oldest, u64::max);
            known[i] = busy.begin(unit, length, ready) + latency;
            ends.push(known[i].max(ends.last().copied().unwrap_or(0)));
        }
        *turn = ends.last().copied().unwrap_or(0);
    }
    let count = tape.operations();
    let fetched = if count > CACHED { FETCHED * count as f64 } else { 0.0 };
    f64::max((turns[1] - turns[0]) as f64, fetched)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holonome_model::graph::{Graph, Node};

    /// Cycles of `count` operations on each of two states, all of which wait for each other or for
    /// the states alone.
    fn of(count: usize, waits: bool, operation: fn(&mut Graph, Node, Node) -> Node) -> f64 {
        let mut g = Graph::new();
        let [x, y] = [0, 1].map(|k| g.state(k));
        let mut results = vec![x];
        for k in 0..count {
            let from = if waits { results[k] } else { x };
            let number = g.constant(1.5 + k as f64);
            let by = if waits { y } else { number };
            results.push(operation(&mut g, from, by));
        }
        let outputs = if waits { vec![results[count]] } else { results[1..].to_vec() };
        cycles(&Tape::new(&g, &outputs, count.max(2), 0), 1)
    }

    #[test]
    fn operations_wait_for_their_arguments_or_for_a_unit() {
        // The latency of a sum is 4, of a quotient 15.
        assert_eq!(of(50, true, |g, a, b| g.add(a, b)), 200.0);
        assert_eq!(of(50, true, |g, a, b| g.div(a, b)), 750.0);
        // Two sums begin in a cycle, a quotient in four.
        assert_eq!(of(50, false, |g, a, b| g.add(a, b)), 25.0);
        assert_eq!(of(50, false, |g, a, b| g.div(b, a)), 200.0);
    }
}
