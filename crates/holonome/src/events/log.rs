//! Tables of the events that a run has recorded.

use crate::recording::{Place, RecordedArray, RecordedArrays, own_dimensions};
use crate::store::{Dimension, Group, GroupArray};
use holonome_integrate::events::EventLog;
use holonome_model::elaborate::model::Model;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// Events of one name, in the order in which a run met them.
#[derive(Clone, Debug, PartialEq)]
pub struct EventTable {
    /// Name of the event.
    pub name: String,
    /// Times.
    pub t: Vec<f64>,
    /// Numbers of the crossings, from 1 on.
    pub number: Vec<u64>,
    /// Index values of the members, for a family.
    pub members: Vec<Vec<i32>>,
    /// Names of the family's indices.
    pub indices: Vec<String>,
    /// Variables and recorded quantities at the events.
    pub columns: Vec<EventColumn>,
}

/// A quantity at the events of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct EventColumn {
    /// Name.
    pub name: String,
    /// Description in one line.
    pub description: String,
    /// Its dimensions after that of the events.
    pub(crate) dimensions: Vec<Dimension>,
    /// Its numbers, those of one event after the other.
    pub values: Vec<f64>,
}

impl EventTable {
    /// Tables of the events of a model in `log`, one for each statement; `recorded` computes the
    /// quantities of each. Those that only samples have are left out: deviations from targets, and
    /// multipliers that steps find.
    pub(crate) fn all(model: &Model, log: &EventLog, recorded: &RecordedArrays) -> Vec<EventTable> {
        let is_known = |array: &&RecordedArray| match array.place {
            Place::State => array.first + array.len <= model.dimension(),
            Place::Kernel => true,
            Place::Deviations => false,
        };
        let arrays: Vec<&RecordedArray> = recorded.arrays.iter().filter(is_known).collect();
        let column = |array: &&RecordedArray| EventColumn {
            name: array.name.clone(),
            description: array.description.clone(),
            dimensions: own_dimensions(&array.family, array.shape),
            values: Vec::new(),
        };
        let mut tables: Vec<EventTable> = Vec::new();
        let mut places = Vec::new();
        for event in &model.events {
            let quantity = &event.quantity;
            places.extend((0..quantity.members).map(|member| (tables.len(), member)));
            tables.push(EventTable {
                name: quantity.name.clone(),
                t: Vec::new(),
                number: Vec::new(),
                members: Vec::new(),
                indices: quantity.indices.clone(),
                columns: arrays.iter().map(column).collect(),
            });
        }
        let mut values = vec![0.0; recorded.outputs];
        let mut work = vec![0.0; recorded.kernel.work_len()];
        let mut x = vec![f64::NAN; model.dimension() + recorded.multipliers];
        for event in log.iter() {
            let (table, member) = places[event.rule];
            let quantity = &model.events[table].quantity;
            let (table, k) = (&mut tables[table], quantity.indices.len());
            table.t.push(model.clock(event.t));
            table.number.push(event.number);
            if k > 0 {
                table.members.push(quantity.member_indices[member * k..(member + 1) * k].to_vec());
            }
            x[..event.x.len()].copy_from_slice(event.x);
            recorded.kernel.run(event.t, &x, &mut values, &mut work);
            for (array, column) in arrays.iter().zip(&mut table.columns) {
                let numbers = if array.place == Place::State { &x } else { &values };
                column.values.extend_from_slice(&numbers[array.first..array.first + array.len]);
            }
        }
        if recorded.multipliers > 0 {
            for table in &mut tables {
                let knows = |column: &EventColumn| !column.values.iter().all(|v| v.is_nan());
                table.columns.retain(knows);
            }
        }
        tables
    }

    /// Entry of an event in JSON, `{"t": …, "number": …, "member": …}`; the member of a family is its
    /// index, or a list of its indices.
    fn entry(&self, k: usize) -> Value {
        let mut entry = Map::new();
        entry.insert("t".to_string(), self.t[k].into());
        entry.insert("number".to_string(), self.number[k].into());
        if let Some(member) = self.members.get(k) {
            let member = match member[..] {
                [single] => single.into(),
                _ => member.clone().into(),
            };
            entry.insert("member".to_string(), member);
        }
        Value::Object(entry)
    }

    /// The group `events/NAME` of a store.
    pub(crate) fn group(&self) -> Group {
        let occurrence = ("event".to_string(), self.t.len());
        let along = [occurrence.clone()];
        let numbers = self.number.iter().map(|&n| n as f64).collect();
        let mut arrays = vec![
            GroupArray::new("t", "time", &along, self.t.clone(), false),
            GroupArray::new("number", "number of the crossing", &along, numbers, false),
        ];
        for (k, index) in self.indices.iter().enumerate() {
            let values = self.members.iter().map(|member| f64::from(member[k])).collect();
            let description = format!("index {index} of the member");
            arrays.push(GroupArray::new(
                &format!("member_{index}"),
                &description,
                &along,
                values,
                false,
            ));
        }
        let mut dimensions: Vec<Dimension> = Vec::new();
        for EventColumn { name, description, dimensions: own, values } in &self.columns {
            let inner = own.iter().map(|dimension| (dimension.name.clone(), dimension.len()));
            let shape: Vec<_> = std::iter::once(occurrence.clone()).chain(inner).collect();
            arrays.push(GroupArray::new(name, description, &shape, values.clone(), false));
            let is_new = |other: &&Dimension| dimensions.iter().all(|d| d.name != other.name);
            let new: Vec<Dimension> = own.iter().filter(is_new).cloned().collect();
            dimensions.extend(new);
        }
        Group {
            kind: "events",
            name: self.name.clone(),
            attributes: Map::new(),
            dimensions,
            arrays,
        }
    }
}

/// Serialize tables as entries by name: `{NAME: [{"t": …}, …]}`.
pub(crate) fn entries<S: Serializer>(
    tables: &[EventTable],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let entries = |table: &EventTable| (0..table.t.len()).map(|k| table.entry(k)).collect();
    let all = tables.iter().map(|table| (table.name.clone(), Value::Array(entries(table))));
    all.collect::<Map<String, Value>>().serialize(serializer)
}
