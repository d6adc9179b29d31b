//! Equal steps from one state to another in loops, with nothing around them: no samples, no checks
//! of claims, nothing that outlives them but the state. The bits are those of a run.

use super::LONGEST_BLOCK;
use crate::cost::Cost;
use crate::plan::{Plan, Stepping};
use crate::scheme::map::{Carry, Outputs, StepFrom, StepMap, Workspace};
use crate::scheme::repairs::{BlockRepairs, StepLoop};
use crate::system::{System, all_finite};
use crate::treatment::Treatment;

/// Scratch of flows, which stays from one to the next.
#[derive(Debug, Default)]
pub struct FlowScratch {
    x: Vec<f64>,
    kept: Vec<Vec<f64>>,
    memory: Vec<f64>,
    largest: Vec<f64>,
    work: Vec<f64>,
    repairs: BlockRepairs,
}

/// True if [`flow`] makes the steps of `plan`: equal ones whose results are not treated, by a map
/// with loops.
pub fn flows(plan: &Plan, system: &dyn System, map: &dyn StepMap) -> bool {
    let equal = matches!(&plan.stepping, Stepping::Fixed(fixed) if fixed.shorter_last.is_none());
    equal && map.blocks().is_some() && !Treatment::kept(plan, system).sizes
}

/// Make the steps of `plan` from `x`. False if one of them has no result, which a run of its own
/// explains; `x` then stays.
///
/// # Panics
/// If such steps are not [made here](flows).
pub fn flow(
    plan: &Plan,
    system: &dyn System,
    map: &dyn StepMap,
    x: &mut [f64],
    scratch: &mut FlowScratch,
) -> bool {
    let fixed = plan.stepping.fixed().expect("flows have equal steps");
    let blocks = map.blocks().expect("flows are made in loops");
    let (h, t0) = (fixed.h, plan.t0);
    let FlowScratch { x: state, kept, memory, largest, work, repairs } = scratch;
    state.clear();
    state.extend_from_slice(x);
    memory.clear();
    memory.resize(map.memory_len(), 0.0);
    largest.resize(system.invariants().groups.len() + map.monitored_count(), 0.0);
    work.resize(map.work_len().max(work.len()), 0.0);
    let cost = &mut Cost::default();
    let workspace = &mut Workspace { kept: &mut [], memory, cost, work };
    if fixed.steps > 0 && map.begin(StepFrom { t: t0, h, x: state }, workspace).is_err() {
        return false;
    }
    let looped = StepLoop { map, blocks, h, t0 };
    let mut step = 0;
    while step < fixed.steps {
        // A first step may have nothing from which a loop can start.
        let longest = if blocks.follows(memory) { blocks.longest().min(LONGEST_BLOCK) } else { 0 };
        let count = longest.min(fixed.steps - step);
        if count == 0 && map.takes_first_stage() {
            return false;
        }
        if count == 0 {
            kept.resize_with(map.vectors(), Vec::new);
            kept.iter_mut().for_each(|vector| vector.resize(x.len(), 0.0));
            let (before, workspace) = (state.clone(), &mut Workspace { kept, memory, cost, work });
            let from = StepFrom { t: fixed.time(t0, step), h, x: &before };
            if map.fixed_step(from, state, workspace).is_err() {
                return false;
            }
            step += 1;
        } else {
            let (innovation, outputs) = (&mut 0.0, Outputs::default());
            let sides = &mut [];
            let carry = Carry { memory, scales: &mut [], innovation, sides, cost, outputs };
            let (steps, rest) = (step..step + count, (&mut work[..], false));
            if repairs.steps(looped, steps, (state, None), carry, largest, rest).is_err() {
                return false;
            }
            step += count;
        }
        if !all_finite(state) {
            return false;
        }
    }
    x.copy_from_slice(state);
    true
}
