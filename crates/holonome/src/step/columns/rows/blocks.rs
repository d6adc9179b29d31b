//! Blocks of many steps of a large model: the state stays in columns from step to step, and
//! monitored quantities are computed there. The steps are those that are made one by one.

use super::Templated;
use crate::kernels::{Parametric, compile_rows};
use crate::step::program::{LoweredProgram, Start};
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::plan::Plan;
use holonome_integrate::scheme::map::{Blocks, Carry, StepFrom, StepMap};
use holonome_integrate::state::Cost;
use holonome_integrate::system::Invariants;
use holonome_integrate::vector::max_or_nan;
use holonome_model::rows::{RowKernel, RowProgram};
use std::ops::Range;
use std::sync::Arc;

/// Most registers of all steps of a block together, for a fraction of a second.
const MOST_REGISTERS: usize = 1 << 26;

/// Steps of a block for the largest models.
const FEWEST_STEPS: u64 = 4;

/// Data that a block of steps takes besides its program.
#[derive(Clone)]
pub struct BlockData {
    /// F over columns, without the carried sums of H, which are added to the rows `sums`; its
    /// groups, and the targets F₀.
    values: RowKernel,
    sums: Arc<[u32]>,
    invariants: Arc<Invariants>,
    target: Vec<f64>,
    /// Start time of the run, and length of its steps.
    t0: f64,
    h: f64,
    /// Copies of registers between two substeps: each range, and the place where it goes.
    moves: Arc<[(Range<usize>, usize)]>,
}

impl BlockData {
    fn target(invariants: &Invariants, start: &Start) -> Vec<f64> {
        // The zeros of the constraints are never written, and so take no memory.
        let mut target = vec![0.0; invariants.constraints + start.targets.len()];
        target[invariants.constraints..].copy_from_slice(start.targets);
        target
    }

    /// Set another start.
    fn rebind(&mut self, start: &Start) {
        self.values.rebind(start.parameters);
        self.target = BlockData::target(&self.invariants, start);
    }

    /// Length of the scratch.
    pub fn work_len(&self, program: &LoweredProgram<Templated>) -> usize {
        program.registers.max(program.loaded() + self.invariants.count)
            + self.invariants.groups.len()
            + program.monitored_count()
            + self.values.work_len().max(program.substep_work_len())
    }
}

impl LoweredProgram<Templated> {
    /// Let a run of `plan` make its steps in blocks; `values` computes F.
    pub fn repeat(
        &mut self,
        (values, invariants): (impl FnOnce() -> RowProgram, &Arc<Invariants>),
        plan: &Plan,
        start: &Start,
    ) {
        self.repeated = None;
        let (Some(h), Some(layout)) = (plan.fixed_step(), &self.layout) else { return };
        // Steps of another length compute reused values anew, from the state in its own order.
        let is_broken = self.fsal.as_ref().is_some_and(|fsal| fsal.is_broken_by(&self.substeps));
        if plan.method.treatment != MethodTreatment::Plain || is_broken {
            return;
        }
        let Some(moves) = in_order(self.moves()) else { return };
        let mut values = values().over_columns(layout);
        let mut sums = Arc::default();
        if !self.sums.is_empty() {
            debug_assert_eq!(values.apart.len(), self.sums.len(), "both are those of the model");
            sums = Arc::clone(&values.apart);
            values = values.without_apart();
        }
        let values = compile_rows(&values, start.parameters);
        let target = BlockData::target(invariants, start);
        let invariants = Arc::clone(invariants);
        self.repeated = Some(BlockData {
            values,
            sums,
            invariants,
            target,
            t0: plan.t0,
            h,
            moves: moves.into(),
        });
    }

    /// Prepare this program for a run from another start.
    pub fn rebind_for(&mut self, start: &Start) {
        self.rebind(start.parameters);
        self.repeated.iter_mut().for_each(|block| block.rebind(start));
    }

    /// Number of registers that are known before a step.
    fn loaded(&self) -> usize {
        self.dimension + 2 + self.carried_len()
    }

    /// Compute the deviations of the state. F takes the place of registers that the step will
    /// compute.
    fn find_deviations(
        &self,
        t: f64,
        registers: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
    ) {
        let Some(BlockData { values: kernel, sums, invariants, target, .. }) = &self.repeated
        else {
            return;
        };
        let (known, values) = registers.split_at_mut(self.loaded());
        let values = &mut values[..invariants.count];
        kernel.run(t, known, values, work);
        let carried = &known[self.dimension + 2..];
        sums.iter()
            .zip(&carried[self.sums.clone()])
            .for_each(|(&row, sum)| values[row as usize] += sum);
        let (groups, own) = deviations.split_at_mut(invariants.groups.len());
        invariants.deviations(values, target, groups);
        self.deviations(carried, own);
    }

    /// Make a step from the registers at their start, and put its result there; true if it has one.
    fn go_on(
        &self,
        block: &BlockData,
        t: f64,
        registers: &mut [f64],
        scale: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> bool {
        let mut made = 0.0f64;
        for gamma in &self.substeps {
            registers[self.dimension] = made.mul_add(block.h, t);
            registers[self.dimension + 1] = gamma * block.h;
            if self.substep(registers, scale, cost, work, &mut []).is_err() {
                return false;
            }
            for (from, to) in &*block.moves {
                registers.copy_within(from.clone(), *to);
            }
            made += gamma;
        }
        true
    }

    /// Copy the state out of the registers, and the carried numbers.
    fn take_out(&self, registers: &[f64], x: &mut [f64], memory: &mut [f64]) {
        self.scatter(&registers[..self.dimension], x);
        let carried = self.carried_len();
        memory[..carried].copy_from_slice(&registers[self.dimension + 2..][..carried]);
    }

    /// Registers of a substep's results, and the places where the next substep reads them.
    fn moves(&self) -> Vec<(Range<usize>, usize)> {
        let mut at = self.dimension + 2;
        let carried = self.carried.iter().map(|range| {
            at += range.len();
            (range.clone(), at - range.len())
        });
        let mut moves = vec![(self.result.clone(), 0)];
        moves.extend(carried);
        moves.retain(|(from, to)| from.start != *to);
        moves
    }
}

/// Copies in an order in which none overwrites what another one reads later; `None` if there is no
/// such order.
fn in_order(mut moves: Vec<(Range<usize>, usize)>) -> Option<Vec<(Range<usize>, usize)>> {
    let mut ordered = Vec::new();
    while !moves.is_empty() {
        let free = (0..moves.len()).find(|&k| {
            let (from, to) = &moves[k];
            let over = *to..to + from.len();
            let reads = |other: &Range<usize>| other.start < over.end && over.start < other.end;
            !(0..moves.len()).any(|other| other != k && reads(&moves[other].0))
        })?;
        ordered.push(moves.swap_remove(free));
    }
    Some(ordered)
}

impl Blocks for LoweredProgram<Templated> {
    fn steps(
        &self,
        first: u64,
        count: u64,
        x: &mut [f64],
        carry: Carry,
        largest: &mut [f64],
        work: &mut [f64],
    ) -> bool {
        let Some(block) = &self.repeated else { return false };
        let Carry { memory, mut outputs, cost, .. } = carry;
        let length = self.substeps[0] * block.h;
        if self.fsal.as_ref().is_some_and(|fsal| !fsal.serves(memory.last().copied(), length)) {
            return false;
        }
        let registers = self.registers.max(self.loaded() + block.invariants.count);
        let (registers, work) = work.split_at_mut(registers);
        let (deviations, work) = work.split_at_mut(largest.len());
        self.load(
            StepFrom { t: block.t0, h: block.h, x },
            &memory[..self.carried_len()],
            registers,
        );
        largest.fill(0.0);
        let (mut spent, mut known) = (Cost::default(), 0);
        for step in first..=first + count {
            if outputs.after.get(known) == Some(&step) {
                self.take_out(registers, x, memory);
                outputs.keep(step, x, memory);
                known += 1;
            }
            if step < first + count {
                let t = (step as f64).mul_add(block.h, block.t0);
                self.find_deviations(t, registers, deviations, work);
                for (largest, &deviation) in largest.iter_mut().zip(&*deviations) {
                    *largest = max_or_nan(*largest, deviation);
                }
                let scale = &mut memory[self.carried_len()..];
                if !self.go_on(block, t, registers, scale, &mut spent, work) {
                    return false;
                }
            }
        }
        self.take_out(registers, x, memory);
        cost.add(&spent);
        true
    }

    fn longest(&self) -> u64 {
        ((MOST_REGISTERS / self.registers) as u64).max(FEWEST_STEPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_overwrite_nothing_that_is_read_later() {
        // The copy to 0 overwrites what that to 4 reads, and the copy to 4 what that to 7 reads.
        let moves = vec![(10..12, 0), (0..2, 4), (4..6, 7)];
        let mut numbers: Vec<usize> = (0..12).collect();
        for (from, to) in in_order(moves.clone()).unwrap() {
            numbers.copy_within(from, to);
        }
        for (from, to) in moves {
            assert_eq!(numbers[to..to + from.len()], from.collect::<Vec<_>>());
        }
        assert_eq!(in_order(vec![(0..2, 1), (1..3, 0)]), None);
    }
}
