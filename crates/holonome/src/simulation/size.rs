//! Disk and memory needed by a run.

use super::Simulation;
use crate::footprint::Footprint;
use crate::recording::{NUMBERS_OF_A_SAMPLE, RecordedArray};
use crate::store::CHUNK_NUMBERS_MAX;
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::system::System;
use holonome_integrate::terms::terms_work_len;
use holonome_linear::resolvent::Resolvent;
use holonome_model::elaborate::model::Model;

/// Vectors of a step for a stiff field: stages, fields, right-hand sides, and those that it carries.
const STIFF_VECTORS: usize = 28;

impl Simulation {
    /// Add the warnings about its size for a run that will be stored.
    pub fn warn_of_size(&mut self) {
        let out = self.options.out.clone().unwrap_or_else(|| "runs".into());
        self.warnings.extend(self.footprint().warnings(&out));
    }

    /// Disk and memory needed by the run: the samples, the vectors of a step, and the buffers of
    /// samples until they are stored.
    pub fn footprint(&self) -> Footprint {
        let samples = self.plan.sample_count() as f64;
        let row: usize = self.recorded.arrays.iter().map(|array| array.len).sum();
        let number = size_of::<f64>() as f64;
        let scheme = self.plan.method.scheme;
        let stages = match (scheme.runge_kutta(), scheme.collocation()) {
            (Some(tableau), _) => tableau.stages,
            // And the field at each stage.
            (_, Some(collocation)) => 3 * collocation.stages,
            _ => scheme.stiff().map_or(0, |_| STIFF_VECTORS),
        };
        // Factors of a real and a complex system, and the Jacobian.
        let pattern = self.trajectory.system.field_pattern();
        let factors = pattern
            .map_or(0, |pattern| pattern.nonzeros() + 3 * Resolvent::new(pattern).factor_count());
        // Vectors of a step beside its stages, of the state that resumes it, of the state before
        // the end: a dozen and three times half a dozen. A program has its vectors among its
        // scratch, so that they are few besides: the start, the state before and after a step.
        let (own, of_values, carried, scratch) = match &self.trajectory.program {
            Some(program) => (5, 3, 2 * program.map().memory_len(), program.map().work_len()),
            None => (stages + 30, 10, 0, self.trajectory.system.work_len() + factors),
        };
        // Normal equations take some seven numbers for a nonzero of DF.
        let corrects = self.plan.method.treatment != MethodTreatment::Plain
            && self.trajectory.program.is_none();
        let equations =
            if corrects { 7 * self.trajectory.system.invariants().nonzeros() } else { 0 };
        let work = scratch.max(terms_work_len(&*self.trajectory.system));
        let vectors = own * self.trajectory.state.x.len()
            + carried
            + of_values * self.trajectory.state.values.len()
            + work
            + equations;
        const LARGE: usize = CHUNK_NUMBERS_MAX / 2;
        // A chunk has a megabyte of an array, or all of it, or is a row, which goes straight to its
        // file; times are listed by the plan and the store.
        let chunk = |array: &RecordedArray| match array.len {
            0..=LARGE => CHUNK_NUMBERS_MAX.min(array.len.saturating_mul(self.plan.sample_count())),
            _ => 0,
        };
        let chunks = self.recorded.arrays.iter().map(chunk).sum::<usize>();
        let measured =
            self.measuring.as_ref().map_or(0, |measuring| measuring.outputs.plan.sample_count());
        let listed = 3.0 * samples + (NUMBERS_OF_A_SAMPLE * measured) as f64;
        // What reads the model is gone when the run begins.
        let memory = (vectors + chunks).max(read_numbers(&self.problem.model)) as f64 + listed;
        Footprint { disk: number * (row + 1) as f64 * samples, memory: number * memory }
    }
}

/// Numbers in memory of a model that is read and has its derivatives: per number of the state, and
/// per stretch of rows of a template. Measured with chains of 1e6 links or springs, accurate to a
/// quarter; their run takes more.
fn read_numbers(model: &Model) -> usize {
    const OF_THE_STATE: usize = 10;
    const OF_A_STRETCH: usize = 8;
    let quantities = model.constraints.iter().chain(&model.integrals).chain(model.observed());
    let functionals = quantities.map(|quantity| &quantity.functional).chain([model.moved_by()]);
    let stretches: usize =
        functionals.flat_map(|functional| &functional.terms).map(|term| term.table.count()).sum();
    OF_THE_STATE * model.dimension() + OF_A_STRETCH * stretches
}
