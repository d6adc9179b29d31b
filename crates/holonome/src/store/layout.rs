//! Layout of a run's store, fixed before the run starts.

use serde::Serialize;
use serde_json::{Map, Value};
use std::ops::Range;
use std::sync::Arc;

/// Arrays of a run, their dimensions and the sample times.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// Times of all samples, first and last included.
    pub times: Vec<f64>,
    /// Label of their unit, if it is known.
    pub time_unit: Option<String>,
    /// Numbers of the trajectories of an ensemble: a row of an array then belongs to a trajectory,
    /// at all times. `None` for a single trajectory: a row is then a sample.
    pub trajectories: Option<Range<u64>>,
    /// Grid whose combinations are the trajectories, the last dimension running fastest: names and
    /// values of its dimensions, which arrays have in place of that of the trajectories. Empty if
    /// they are no grid.
    pub grid: Vec<(String, Arc<[f64]>)>,
    /// The arrays, in the order in which [`Store::append`](super::Store::append) takes their rows.
    pub arrays: Vec<ArrayLayout>,
    /// Dimensions that the arrays name; see [`Layout::dimension`].
    pub dimensions: Vec<Dimension>,
    /// Attributes of the whole data set: the model's source, the method, the options.
    pub attributes: Map<String, Value>,
    /// Numbers beside the arrays, which the attributes describe.
    pub values: Vec<Arc<[f64]>>,
}

/// One array: a row for each sample, or for each trajectory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArrayLayout {
    /// Name of the variable in the model.
    pub name: String,
    /// Dimensions besides trajectory and time, outermost first; empty for a scalar.
    pub dimensions: Vec<String>,
    /// True for an array of an ensemble with one value per trajectory instead of one for every
    /// time.
    pub once: bool,
    /// Description in one line, for readers and plots; stored as `long_name`.
    pub description: String,
    /// Further attributes, such as the variable's role in the model.
    pub attributes: Map<String, Value>,
}

/// A dimension with the integers that label its places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    /// Name.
    pub name: String,
    /// Kind of its places; decides how `export` writes a component's name.
    pub role: Role,
    /// The labels, all of the same length. One label of the dimension's own name becomes its
    /// coordinate; several (the members of a family with dependent ranges) become coordinates
    /// `DIMENSION_LABEL` along it.
    pub labels: Vec<Label>,
}

/// Integers along a dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Name of the index in the model.
    pub name: String,
    /// One value per place.
    pub values: Vec<i64>,
}

/// Kind of a dimension's places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Members of a family.
    Index,
    /// Components of a vector.
    Component,
    /// Rows of a matrix.
    Row,
    /// Columns of a matrix.
    Column,
}

impl Layout {
    /// Set the attributes of the data set to the fields of a value, in their order; those of other
    /// names stay.
    ///
    /// # Panics
    /// If the value is not a structure.
    pub fn describe(&mut self, value: &impl Serialize) {
        match serde_json::to_value(value) {
            Ok(Value::Object(fields)) => self.attributes.extend(fields),
            other => panic!("attributes are those of a structure: {other:?}"),
        }
    }

    /// Add a dimension unless it exists already; returns the name to use in
    /// [`ArrayLayout::dimensions`]: if two families give the name `i` to different ranges, the
    /// second is called `i_2`.
    pub fn dimension(&mut self, mut dimension: Dimension) -> String {
        let wanted = dimension.name.clone();
        for attempt in 2.. {
            match self.dimensions.iter().find(|known| known.name == dimension.name) {
                None => {
                    self.dimensions.push(dimension.clone());
                    break;
                }
                Some(known) if *known == dimension => break,
                Some(_) => dimension.rename(format!("{wanted}_{attempt}")),
            }
        }
        dimension.name
    }
}

/// Attribute of an array for the label of its unit. Readers that follow the CF conventions would
/// make lengths of time of a type of their own from numbers in `days`; those in `day` stay numbers.
pub(crate) fn units_attribute(unit: &str) -> (String, Value) {
    const LENGTHS_OF_TIME: [&str; 7] =
        ["days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"];
    let singular = unit.strip_suffix('s').filter(|_| LENGTHS_OF_TIME.contains(&unit));
    (UNITS.to_string(), singular.unwrap_or(unit).into())
}

/// Label of a unit among the attributes of an array.
pub(super) fn unit_among(attributes: &Map<String, Value>) -> Option<&str> {
    attributes.get(UNITS)?.as_str()
}

/// Attribute of the CF conventions.
const UNITS: &str = "units";

impl ArrayLayout {
    /// Label of its unit, if that is known.
    pub fn unit(&self) -> Option<&str> {
        unit_among(&self.attributes)
    }

    /// True if this is its role in the model: `coordinate`, `observable`.
    pub fn has_role(&self, role: &str) -> bool {
        self.attributes.get("role").is_some_and(|own| own == role)
    }
}

impl Dimension {
    /// Components 1…k of a vector: `component_k`.
    pub fn component(k: usize) -> Dimension {
        Dimension::counted(format!("component_{k}"), Role::Component, k)
    }

    /// Rows 1…k of a matrix: `row_k`.
    pub fn row(k: usize) -> Dimension {
        Dimension::counted(format!("row_{k}"), Role::Row, k)
    }

    /// Columns 1…l of a matrix: `column_l`.
    pub fn column(l: usize) -> Dimension {
        Dimension::counted(format!("column_{l}"), Role::Column, l)
    }

    /// One index of a family.
    pub fn index(name: &str, values: impl IntoIterator<Item = i64>) -> Dimension {
        let label = Label { name: name.to_string(), values: values.into_iter().collect() };
        Dimension { name: name.to_string(), role: Role::Index, labels: vec![label] }
    }

    /// Members of a family whose ranges depend on each other, as in `rod[i in 1..4, j in i+1..4]`:
    /// one place per member, one label per index.
    pub fn members(name: &str, labels: Vec<Label>) -> Dimension {
        Dimension { name: name.to_string(), role: Role::Index, labels }
    }

    /// Number of places.
    pub fn len(&self) -> usize {
        self.labels.first().map_or(0, |label| label.values.len())
    }

    /// True if it has no places: a family may have an empty range.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn counted(name: String, role: Role, length: usize) -> Dimension {
        let label = Label { name: name.clone(), values: (1..=length as i64).collect() };
        Dimension { name, role, labels: vec![label] }
    }

    /// Rename the dimension, and with it a label that shares its name.
    pub(super) fn rename(&mut self, name: String) {
        if let [label] = self.labels.as_mut_slice()
            && label.name == self.name
        {
            label.name.clone_from(&name);
        }
        self.name = name;
    }
}
