//! Contents of a run's folder: its arrays, and the attributes from which it is resumed.

use super::Simulation;
use crate::options::{RunOptions, Settings};
use crate::recording::VariableLayout;
use crate::serial::NumberArray;
use crate::store::Layout;
use holonome_integrate::plan::Plan;
use holonome_model::elaborate::model::{Family, Parameter};
use indexmap::IndexMap;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of values of a parameter that are repeated in a run's attributes; longer ones are
/// in the model's text only.
const LONGEST_PARAMETER: usize = 1000;

impl Simulation {
    /// Values of the parameters that `which` selects, by name, without long families.
    pub(crate) fn parameters(&self, which: impl Fn(&Parameter) -> bool) -> Parameters {
        let model = &self.problem.model;
        let short = |parameter: &&Parameter| {
            parameter.family.len() <= LONGEST_PARAMETER && which(parameter)
        };
        let entry = |parameter: &Parameter| {
            let Family { name, bounds, shape, .. } = parameter.family.clone();
            let layout = VariableLayout { name, first: parameter.first, bounds, shape };
            (layout.name.clone(), layout.of(&model.parameter_values))
        };
        model.parameters.iter().filter(short).map(entry).collect()
    }

    /// Layout of the run's arrays, without attributes.
    pub(crate) fn arrays_layout(&self) -> Layout {
        self.arrays_at(&self.plan)
    }

    /// Layout of the run's arrays at the samples of `plan`.
    fn arrays_at(&self, plan: &Plan) -> Layout {
        let time = |i| plan.clock(plan.sample_time(i));
        let times = (0..plan.sample_count()).map(time).collect();
        let mut layout = Layout { times, ..Layout::default() };
        self.recorded.add_to(&mut layout);
        layout
    }

    /// Layout of the run's arrays, with the attributes from which the run is made again.
    pub(crate) fn layout(&self) -> Layout {
        self.layout_of(&self.options, &self.plan)
    }

    /// [`Simulation::layout`] of a run with these options, whose plan is `plan`.
    pub(super) fn layout_of(&self, options: &RunOptions, plan: &Plan) -> Layout {
        let mut layout = self.arrays_at(plan);
        layout.describe(&RunAttributes {
            holonome: env!("CARGO_PKG_VERSION"),
            model: &self.problem.name,
            source: self.problem.source.text(),
            tables: &self.problem.tables,
            settings: &self.problem.settings,
            options,
            method: plan.method.to_string(),
            parameters: self.parameters(|_| true),
        });
        layout
    }
}

/// Values of parameters by name.
pub(crate) type Parameters = IndexMap<String, NumberArray>;

/// Attributes of a run's folder. A run is made again from these, its parameters are for readers.
#[derive(Serialize)]
struct RunAttributes<'a> {
    holonome: &'static str,
    model: &'a str,
    source: &'a str,
    tables: &'a BTreeMap<String, String>,
    settings: &'a Settings,
    options: &'a RunOptions,
    method: String,
    parameters: Parameters,
}
