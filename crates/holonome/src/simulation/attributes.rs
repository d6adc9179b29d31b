//! Contents of a run's folder: its arrays, and the attributes from which it is resumed.

use super::Simulation;
use crate::recording::VariableLayout;
use crate::store::Layout;
use holonome_model::elaborate::model::{Family, Parameter};
use serde_json::{Value, json};

/// Maximum number of values of a parameter that are repeated in a run's attributes; longer ones are
/// in the model's text only.
const LONGEST_PARAMETER: usize = 1000;

impl Simulation {
    /// Values of the parameters that `which` selects, by name, without long families.
    pub(crate) fn parameters(&self, which: impl Fn(&Parameter) -> bool) -> Value {
        let model = &self.problem.model;
        let short = |parameter: &&Parameter| {
            parameter.family.len() <= LONGEST_PARAMETER && which(parameter)
        };
        let entry = |parameter: &Parameter| {
            let Family { name, bounds, shape, .. } = parameter.family.clone();
            let layout = VariableLayout { name, first: parameter.first, bounds, shape };
            let values = &model.parameter_values[layout.first..layout.first + layout.len()];
            (layout.name.clone(), layout.nested(values))
        };
        Value::Object(model.parameters.iter().filter(short).map(entry).collect())
    }

    pub(crate) fn layout(&self) -> Layout {
        let mut layout = Layout {
            times: (0..self.plan.sample_count()).map(|i| self.plan.sample_time(i)).collect(),
            ..Layout::default()
        };
        self.recorded.add_to(&mut layout);
        let attributes = &mut layout.attributes;
        let mut set = |key: &str, value: Value| attributes.insert(key.to_string(), value);
        set("holonome", json!(env!("CARGO_PKG_VERSION")));
        set("model", json!(self.problem.name));
        set("source", json!(self.problem.source.text()));
        set("tables", json!(self.problem.tables));
        set("settings", json!(self.problem.settings));
        set("options", json!(self.options));
        set("method", json!(self.plan.method.to_string()));
        set("parameters", self.parameters(|_| true));
        layout
    }
}
