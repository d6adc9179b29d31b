//! Measures of a run: the outputs at which they sample, and the averages that they accumulate.

use super::{members, own_dimensions, quantities};
use crate::error::Error;
use crate::footprint::Footprint;
use crate::kernels::Quantities;
use crate::measure::{self, Applied, Table, is_from, shown};
use crate::options::RunOptions;
use crate::store::{Dimension, Group};
use holonome_integrate::averages::{Averages, Mean};
use holonome_integrate::plan::{Plan, Stepping};
use holonome_model::elaborate::expression::MOMENTUM;
use holonome_model::elaborate::model::{Measured, Model};
use holonome_model::elaborate::shape::Shape;
use holonome_model::elaborate::statistic::Statistic;
use holonome_model::functional::Functional;
use holonome_model::rows::RowProgram;
use holonome_model::treatment::Field;
use holonome_words::option;
use std::borrow::Cow;

/// Maximum number of samples of a measure without a spacing of its own.
const MOST_BY_DEFAULT: u64 = 10_000;

/// Numbers in memory for each sample of a measure: its time in the measure's own list, in the plan
/// with all outputs and twice while that is made, its place among the outputs, and the time once
/// more in a run in memory.
pub(crate) const NUMBERS_OF_A_SAMPLE: usize = 6;

/// Measures of a run, and the outputs at which they sample.
pub(crate) struct Measuring {
    pub outputs: Outputs,
    pub measures: Vec<RunMeasure>,
    /// Kernel of the measured quantities.
    pub kernel: Box<dyn Quantities>,
    pub numbers: usize,
}

/// Outputs of a run, for samples and for measures.
#[derive(Clone)]
pub(crate) struct Outputs {
    /// The run's plan with all outputs.
    pub plan: Plan,
    /// Outputs that are samples.
    stored: Vec<usize>,
    /// Outputs at which each measure samples.
    measured: Vec<Vec<usize>>,
}

/// A measure of a run.
pub(crate) struct RunMeasure {
    pub name: String,
    pub written: String,
    pub applied: Applied,
    /// Dimensions of its results, if these are numbers of the quantity.
    dimensions: Vec<Dimension>,
    /// Place among the numbers of the kernel.
    first: usize,
    len: usize,
    /// Divisor of its numbers.
    divisor: f64,
}

/// Scratch of an accumulating caller.
#[derive(Default)]
pub(crate) struct MeasuringScratch {
    values: Vec<f64>,
    work: Vec<f64>,
    numbers: Vec<f64>,
}

impl Measuring {
    /// Measures of a model in a run with this plan; `None` if there are none. See
    /// [`RecordedArrays::new`](super::RecordedArrays::new).
    ///
    /// # Errors
    /// If a measure has no sample, or its samples do not fall on steps.
    pub fn new(
        model: &Model,
        field: Option<&Field>,
        multiplier_count: usize,
        plan: &Plan,
        options: &RunOptions,
    ) -> Result<Option<Measuring>, Error> {
        if model.measures.is_empty() {
            return Ok(None);
        }
        let refused = |measure: &Measured, reason: String| {
            Error::option(format!("measure '{}': {reason}", measure.quantity.name))
        };
        let of_one = |measure: &Measured| {
            looks(measure, plan, options).map_err(|reason| refused(measure, reason))
        };
        let looks = model.measures.iter().map(of_one).collect::<Result<Vec<Plan>, Error>>()?;
        let sampled: Vec<(usize, (f64, f64))> = looks
            .iter()
            .map(|look| {
                (
                    look.sample_count(),
                    [0, look.sample_count() - 1].map(|k| look.clock(look.sample_time(k))).into(),
                )
            })
            .collect();
        let outputs = Outputs::new(plan, looks);
        let mut functionals: Vec<Cow<Functional>> = Vec::new();
        let (mut measures, mut numbers) = (Vec::new(), 0);
        for (measure, &(samples, span)) in model.measures.iter().zip(&sampled) {
            let (name, statistic) = (measure.quantity.name.clone(), measure.statistic);
            let mut divisor = 1.0;
            functionals.push(match statistic {
                Statistic::Temperature => {
                    let (work, degrees) =
                        kinetic(model).map_err(|reason| refused(measure, reason))?;
                    divisor = degrees as f64;
                    Cow::Owned(work)
                }
                _ => Cow::Borrowed(&measure.quantity.functional),
            });
            let len = functionals.last().map_or(0, |functional| functional.outputs);
            let applied = Applied {
                statistic,
                width: measure.quantity.shape.len(),
                labels: labels(measure),
                samples,
                span,
            };
            let of = if statistic == Statistic::Temperature { "" } else { &name };
            let dimensions = match statistic {
                Statistic::Mean => {
                    own_dimensions(&members(&name, &measure.quantity), measure.quantity.shape)
                }
                _ => Vec::new(),
            };
            measures.push(RunMeasure {
                dimensions,
                written: statistic.of(of),
                name,
                applied,
                first: numbers,
                len,
                divisor,
            });
            numbers += len;
        }
        let functionals: Vec<&Functional> =
            functionals.iter().map(|functional| &**functional).collect();
        let kernel = quantities(model, field, multiplier_count, &functionals, numbers);
        Ok(Some(Measuring { outputs, measures, kernel, numbers }))
    }

    /// Accumulate an output: its state, with as many multipliers as the kernel reads. `kernel` is
    /// this one's, possibly with other parameters.
    pub fn take(
        &self,
        kernel: &dyn Quantities,
        (output, t, x): (usize, f64, &[f64]),
        averages: &mut Vec<Averages>,
        scratch: &mut MeasuringScratch,
    ) {
        if !self.outputs.is_measured(output) {
            return;
        }
        let mut values = std::mem::take(&mut scratch.values);
        values.resize(self.numbers, 0.0);
        scratch.work.resize(kernel.work_len(), 0.0);
        kernel.run(t, x, &mut values, &mut scratch.work);
        self.accumulate(output, &mut values, averages, scratch);
        scratch.values = values;
    }

    /// Accumulate the kernel's numbers at an output.
    pub fn accumulate(
        &self,
        output: usize,
        values: &mut [f64],
        averages: &mut Vec<Averages>,
        MeasuringScratch { numbers, .. }: &mut MeasuringScratch,
    ) {
        averages.resize_with(self.measures.len(), Averages::default);
        for ((measure, averages), outputs) in
            self.measures.iter().zip(averages).zip(&self.outputs.measured)
        {
            if outputs.binary_search(&output).is_err() {
                continue;
            }
            let values = &mut values[measure.first..measure.first + measure.len];
            if measure.divisor != 1.0 {
                values.iter_mut().for_each(|value| *value /= measure.divisor);
            }
            measure.applied.push(values, averages, numbers);
        }
    }

    /// Tables of a run with these averages.
    pub fn tables(&self, averages: &[Averages]) -> Vec<Table> {
        let table = |(measure, averages): (&RunMeasure, &Averages)| {
            let taken = averages.blocks.count() as usize;
            measure.table(taken, &measure.applied.means(&[averages]))
        };
        self.measures.iter().zip(averages).map(table).collect()
    }
}

impl RunMeasure {
    /// Table of these means, over `taken` samples.
    pub fn table(&self, taken: usize, means: &[Mean]) -> Table {
        let mut applied = self.applied.clone();
        if taken > 0 && taken < applied.samples {
            // The run was stopped early.
            applied.span.1 = applied.span.0 + (taken - 1) as f64 * self.applied.spacing();
            applied.samples = taken;
        }
        applied.table((Some(self.name.clone()), self.written.clone()), means)
    }

    /// Dimensions of its results in a row of an ensemble.
    pub fn dimensions(&self) -> Vec<Dimension> {
        match self.applied.results() {
            _ if !self.dimensions.is_empty() => self.dimensions.clone(),
            0 | 1 => Vec::new(),
            results => {
                vec![Dimension::index(&format!("{}_number", self.name), 1..=results as i64)]
            }
        }
    }

    /// Its table as a group of a store; `None` if it has no results.
    pub fn group(&self, table: &Table) -> Option<Group> {
        measure::group(table, &self.dimensions)
    }
}

/// Plan whose samples are those of a measure.
fn looks(measure: &Measured, plan: &Plan, options: &RunOptions) -> Result<Plan, String> {
    let spacing = match (measure.every, &plan.stepping) {
        (Some(every), _) => every,
        (None, stepping) => {
            // As often as before the run was extended.
            let span = options.sampled_until.map_or(plan.t_end(), |t| plan.clock(t)) - plan.t0;
            match stepping {
                Stepping::Fixed(fixed) => {
                    fixed.h * (span / fixed.h / MOST_BY_DEFAULT as f64).ceil().max(1.0)
                }
                Stepping::Adaptive(_) => span / MOST_BY_DEFAULT as f64,
            }
        }
    };
    let bytes = plan.span() / spacing * (NUMBERS_OF_A_SAMPLE * size_of::<f64>()) as f64;
    if bytes.is_finite() {
        Footprint::of_lists(bytes).map_err(|needed| {
            format!("its samples, one every {spacing}, need {needed}; take them less often, with `every` in the model")
        })?;
    }
    let mut looks =
        plan.clone().with_spacing(spacing).map_err(|error| format!("every {spacing}: {error}"))?;
    let from = measure.from.map_or(f64::NEG_INFINITY, |t| plan.clock(t));
    let first = (0..looks.sample_count())
        .take_while(|&k| !is_from(looks.sample_time(k), from, spacing))
        .count();
    match &mut looks.stepping {
        Stepping::Fixed(fixed) => drop(fixed.samples.drain(..first)),
        Stepping::Adaptive(adaptive) => drop(adaptive.samples.drain(..first)),
    }
    match looks.sample_count() {
        0 => Err(format!(
            "it begins at t = {}, after the run's end at t = {}; take a later {}, or another time with {}",
            plan.clock(from),
            plan.clock(plan.t_end()),
            option("until"),
            option("set")
        )),
        _ => Ok(looks),
    }
}

impl Outputs {
    /// Outputs of a plan, which are samples, and of measures.
    fn new(plan: &Plan, looks: Vec<Plan>) -> Outputs {
        let mut whole = plan.clone();
        let mut places = match &mut whole.stepping {
            Stepping::Fixed(whole) => {
                let samples = |plan: Plan| match plan.stepping {
                    Stepping::Fixed(fixed) => fixed.samples,
                    Stepping::Adaptive(_) => Vec::new(),
                };
                let lists: Vec<Vec<u64>> =
                    std::iter::once(plan.clone()).chain(looks).map(samples).collect();
                whole.samples = lists.concat();
                whole.samples.sort_unstable();
                places_in(&mut whole.samples, &lists)
            }
            Stepping::Adaptive(whole) => {
                let samples = |plan: Plan| match plan.stepping {
                    Stepping::Adaptive(adaptive) => adaptive.samples,
                    Stepping::Fixed(_) => Vec::new(),
                };
                let lists: Vec<Vec<f64>> =
                    std::iter::once(plan.clone()).chain(looks).map(samples).collect();
                whole.samples = lists.concat();
                whole.samples.sort_unstable_by(f64::total_cmp);
                places_in(&mut whole.samples, &lists)
            }
        };
        let measured = places.split_off(1);
        Outputs { plan: whole, stored: places.remove(0), measured }
    }

    /// Number of the sample at an output, if it is one.
    pub fn sample(&self, output: usize) -> Option<usize> {
        self.stored.binary_search(&output).ok()
    }

    /// Number of samples before an output.
    pub fn samples_before(&self, output: usize) -> usize {
        self.stored.partition_point(|&stored| stored < output)
    }

    /// True if a measure samples at an output.
    pub fn is_measured(&self, output: usize) -> bool {
        self.measured.iter().any(|outputs| outputs.binary_search(&output).is_ok())
    }
}

/// Remove duplicates from an ascending list; returns the places of `lists` in it.
fn places_in<T: PartialEq>(whole: &mut Vec<T>, lists: &[Vec<T>]) -> Vec<Vec<usize>> {
    whole.dedup();
    lists.iter().map(|list| places_of(whole, list)).collect()
}

/// Places of a part of an ascending list.
fn places_of<T: PartialEq>(whole: &[T], part: &[T]) -> Vec<usize> {
    let mut part = part.iter().peekable();
    (0..whole.len()).filter(|&k| part.next_if(|next| **next == whole[k]).is_some()).collect()
}

/// p·∂H/∂p of a model, and the number of degrees of freedom that share it.
fn kinetic(model: &Model) -> Result<(Functional, usize), String> {
    if let Some(constraint) =
        model.constraints.iter().find(|constraint| constraint.depends & MOMENTUM != 0)
    {
        return Err(format!(
            "constraint '{}' holds momenta, whose temperature is not defined",
            constraint.name
        ));
    }
    let Some(hamiltonian) = model.own_hamiltonian() else {
        return Err("there are no momenta".to_string());
    };
    let imposed: usize = model.constraints.iter().map(|c| c.members * c.components.len()).sum();
    match model.degrees().checked_sub(imposed) {
        None | Some(0) => Err("the constraints leave nothing free to move".to_string()),
        Some(degrees) => Ok((RowProgram::momentum_work(hamiltonian, model.degrees()), degrees)),
    }
}

/// Names of the numbers of a measure.
fn labels(measure: &Measured) -> Vec<String> {
    let quantity = &measure.quantity;
    let (k, width) = (quantity.indices.len(), quantity.shape.len());
    let of_member = |member: usize| -> Vec<i64> {
        quantity.member_indices[member * k..(member + 1) * k]
            .iter()
            .map(|&index| i64::from(index))
            .collect()
    };
    let of_component = |component: usize| -> Vec<i64> {
        match quantity.shape {
            Shape::Vector(_) => vec![component as i64 + 1],
            Shape::Matrix(_, columns) => {
                vec![(component / columns) as i64 + 1, (component % columns) as i64 + 1]
            }
            Shape::Scalar | Shape::Condition => Vec::new(),
        }
    };
    let name = |member: usize, component: usize| {
        shown(&quantity.name, &of_member(member), &of_component(component))
    };
    (0..quantity.members)
        .flat_map(|member| (0..width).map(move |component| (member, component)))
        .map(|(m, c)| name(m, c))
        .collect()
}
