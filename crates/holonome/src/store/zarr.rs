//! Zarr v3 metadata of a schema, and their parser.
//!
//! Zarr core specification 3.0 (<https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html>):
//! regular grid and the codecs `bytes` and `crc32c`, so that a chunk is its numbers in row-major
//! order followed by a checksum, and any language can read it. (The letters of components use
//! Zarr's extension `string`, with the codec `vlen-utf8`.) The `default` chunk keys use the
//! separator `.`: with `/`, each chunk of a family would need folders of its own. Consolidated
//! metadata are zarr-python's convention; xarray looks for them first and then reads a single file.

use super::checksum;
use super::error::StoreError;
use super::layout::Role;
use super::names;
use super::schema::{Axis, Grid, Schema, Series, Trajectories};
use holonome_figures::text::{acts, visible};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Number of this format, in the group's attributes under [`FORMAT_KEY`].
const FORMAT: u64 = 2;
const FORMAT_KEY: &str = "holonome_format";
/// Key of the checksums of the group's attributes, by name: a run is resumed from these attributes.
const CHECKSUMS_KEY: &str = "holonome_checksums";
/// Key among these of the checksum of the run's own metadata of its arrays.
const ARRAYS_KEY: &str = "(arrays)";
/// Attributes that a run is read and resumed from, which need their checksums. Others may be added
/// by other programs.
const OWN: [&str; 9] = [
    "holonome",
    "model",
    "source",
    "tables",
    "settings",
    "options",
    "method",
    "parameters",
    "sweep",
];
const ROLE_KEY: &str = "holonome_role";
const MODEL_NAME_KEY: &str = "model_name";
const DESCRIPTION_KEY: &str = "long_name";
const INDEX_KEY: &str = "index_name";
/// Number of an ensemble's first trajectory.
const FIRST_KEY: &str = "first";
/// CF convention, which xarray follows: names of the coordinates that are not dimensions.
const COORDINATES_KEY: &str = "coordinates";

/// Role of an array in the data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ArrayRole {
    Time,
    Trajectory,
    Variable,
    Label,
    #[serde(untagged)]
    Axis(Role),
}

/// An array of the group: its name and its metadata document.
pub(super) type Document = (String, Value);

/// Documents of all arrays (time, variables, coordinates) in the order of the group.
pub(super) fn array_documents(schema: &Schema) -> Vec<Document> {
    let mut documents = vec![series_document(schema, &schema.time, ArrayRole::Time)];
    documents.extend(schema.trajectories.iter().map(trajectory_document));
    documents.extend(
        schema.arrays.iter().map(|series| series_document(schema, series, ArrayRole::Variable)),
    );
    documents.extend(schema.axes.iter().flat_map(axis_documents));
    documents
}

/// Document of the group with all others inside.
pub(super) fn group_document(schema: &Schema, arrays: &[Document]) -> Value {
    let mut attributes = schema.attributes.clone();
    let mut checksums: Map<String, Value> = schema
        .attributes
        .iter()
        .map(|(key, value)| (key.clone(), json!(checksum::of_text(&value.to_string()))))
        .collect();
    checksums.insert(ARRAYS_KEY.to_string(), checksum_of(arrays));
    attributes.insert(FORMAT_KEY.to_string(), json!(FORMAT));
    attributes.insert(CHECKSUMS_KEY.to_string(), Value::Object(checksums));
    let mut document = json!({
        "zarr_format": 3,
        "node_type": "group",
        "attributes": null,
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": null},
    });
    // Values within `json!` are serialised into a copy.
    document["attributes"] = attributes.into();
    document["consolidated_metadata"]["metadata"] = Map::from_iter(arrays.iter().cloned()).into();
    document
}

/// Checksum of a run's own metadata of its arrays. Other programs may add metadata.
fn checksum_of(arrays: &[Document]) -> Value {
    let known = |(name, document): &Document| {
        let attributes = [ROLE_KEY, MODEL_NAME_KEY, DESCRIPTION_KEY, INDEX_KEY, FIRST_KEY];
        let attributes = attributes.map(|key| document["attributes"][key].clone());
        json!([
            name,
            document["shape"],
            document["chunk_grid"],
            document["dimension_names"],
            attributes
        ])
    };
    json!(checksum::of_text(&Value::Array(arrays.iter().map(known).collect()).to_string()))
}

fn series_document(schema: &Schema, series: &Series, role: ArrayRole) -> Document {
    let mut attributes = series.attributes.clone();
    attributes.insert(ROLE_KEY.to_string(), json!(role));
    attributes.insert(DESCRIPTION_KEY.to_string(), json!(series.description));
    if series.name != series.stored {
        attributes.insert(MODEL_NAME_KEY.to_string(), json!(series.name));
    }
    let axes: Vec<&Axis> = series.axes.iter().map(|&axis| &schema.axes[axis]).collect();
    let labels: Vec<&str> =
        axes.iter().flat_map(|axis| axis.extra_labels()).map(|(_, array)| array.as_str()).collect();
    if !labels.is_empty() {
        attributes.insert(COORDINATES_KEY.to_string(), json!(labels.join(" ")));
    }
    let mut dimensions = Vec::new();
    let of_an_ensemble = schema.trajectories.as_ref().filter(|_| role == ArrayRole::Variable);
    dimensions.extend(of_an_ensemble.map(|trajectories| trajectories.stored.as_str()));
    if series.timed || of_an_ensemble.is_none() {
        dimensions.push(schema.time.stored.as_str());
    }
    dimensions.extend(axes.iter().map(|axis| axis.stored.as_str()));
    let document = array_document("float64", json!("NaN"), &series.grid, &dimensions, attributes);
    (series.stored.clone(), document)
}

fn trajectory_document(trajectories: &Trajectories) -> Document {
    let attributes = Map::from_iter([
        (ROLE_KEY.to_string(), json!(ArrayRole::Trajectory)),
        (DESCRIPTION_KEY.to_string(), json!("number of the trajectory")),
        (FIRST_KEY.to_string(), json!(trajectories.first)),
    ]);
    let grid = Grid::new(trajectories.count, Vec::new());
    let document = array_document("int64", json!(0), &grid, &[&trajectories.stored], attributes);
    (trajectories.stored.clone(), document)
}

fn axis_documents(axis: &Axis) -> Vec<Document> {
    let grid = Grid::new(axis.length, Vec::new());
    let document = |(index, array): &(String, String)| {
        let role =
            if *array == axis.stored { ArrayRole::Axis(axis.role) } else { ArrayRole::Label };
        let attributes = Map::from_iter([
            (ROLE_KEY.to_string(), json!(role)),
            (INDEX_KEY.to_string(), json!(index)),
        ]);
        let (kind, fill) =
            if axis.letters().is_some() { ("string", json!("")) } else { ("int64", json!(0)) };
        (array.clone(), array_document(kind, fill, &grid, &[&axis.stored], attributes))
    };
    axis.labels.iter().map(document).collect()
}

fn array_document(
    kind: &str,
    fill: Value,
    grid: &Grid,
    dimensions: &[&str],
    attributes: Map<String, Value>,
) -> Value {
    let shape: Vec<usize> = [grid.rows].iter().chain(&grid.lengths).copied().collect();
    // A chunk has at least one place in each direction, even where the array has none.
    let chunk: Vec<usize> =
        [grid.chunk_rows].iter().chain(&grid.lengths).map(|&length| length.max(1)).collect();
    let codec = match kind {
        "string" => json!({"name": "vlen-utf8"}),
        _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
    };
    let mut document = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": kind,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": fill,
        "codecs": [codec, {"name": "crc32c"}],
        "attributes": null,
        "dimension_names": dimensions,
    });
    document["attributes"] = attributes.into();
    document
}

impl Axis {
    /// Labels other than the dimension's own coordinate.
    fn extra_labels(&self) -> impl Iterator<Item = &(String, String)> {
        self.labels.iter().filter(|(_, array)| *array != self.stored)
    }
}

#[derive(Deserialize)]
struct GroupDocument {
    attributes: Map<String, Value>,
    consolidated_metadata: Consolidated,
}

#[derive(Deserialize)]
struct Consolidated {
    metadata: Map<String, Value>,
}

/// The part of an array's document that differs between arrays.
#[derive(Deserialize)]
struct ArrayDocument {
    shape: Vec<usize>,
    attributes: Map<String, Value>,
    dimension_names: Vec<String>,
}

/// Read the schema back from the group's document in `path`.
pub(super) fn schema_from_group(path: &Path, document: &[u8]) -> Result<Schema, StoreError> {
    let not_a_run = |reason| StoreError::NotARun { path: path.to_path_buf(), reason };
    let (schema, mut checksums) = parse(document).map_err(not_a_run)?;
    let damaged = |reason: String| Err(StoreError::damaged(&path.join("zarr.json"), reason));
    match checksums.shift_remove(ARRAYS_KEY) {
        Some(expected) if expected == checksum_of(&array_documents(&schema)) => {}
        Some(_) => {
            return damaged(
                "the names or shapes of its arrays are not what was written".to_string(),
            );
        }
        None => {
            return damaged(
                "the checksum of the names and shapes of its arrays is missing".to_string(),
            );
        }
    }
    if let Some(key) = OWN
        .iter()
        .find(|key| schema.attributes.contains_key(**key) && !checksums.contains_key(**key))
    {
        return damaged(format!("the checksum of the attribute '{key}' is missing"));
    }
    for (key, expected) in &checksums {
        let found =
            schema.attributes.get(key).map(|value| json!(checksum::of_text(&value.to_string())));
        if found.as_ref() != Some(expected) {
            return damaged(format!("the attribute '{key}' is not what was written"));
        }
    }
    Ok(schema)
}

/// The schema, and the checksums of its attributes.
fn parse(document: &[u8]) -> Result<(Schema, Map<String, Value>), String> {
    let mut group: GroupDocument =
        serde_json::from_slice(document).map_err(|error| format!("zarr.json: {error}"))?;
    match group.attributes.shift_remove(FORMAT_KEY) {
        Some(format) if format == json!(FORMAT) => {}
        Some(format) => {
            return Err(format!(
                "it has format {format}, this program reads format {FORMAT}: run its model again, or read its arrays with any reader of Zarr"
            ));
        }
        None => return Err(format!("zarr.json lacks {FORMAT_KEY}, so another program wrote it")),
    }
    let checksums = match group.attributes.shift_remove(CHECKSUMS_KEY) {
        Some(Value::Object(checksums)) => checksums,
        _ => return Err(format!("zarr.json lacks {CHECKSUMS_KEY}")),
    };
    let mut time = None;
    let mut trajectories = None;
    let mut variables = Vec::new();
    let mut axes: Vec<Axis> = Vec::new();
    for (stored, document) in group.consolidated_metadata.metadata {
        if !names::can_be_stored(&stored) {
            return Err(format!("an array cannot be called '{}'", visible(&stored)));
        }
        let mut array: ArrayDocument = serde_json::from_value(document)
            .map_err(|error| format!("metadata of {stored}: {error}"))?;
        if array.shape.is_empty() || array.shape.len() != array.dimension_names.len() {
            return Err(format!("metadata of {stored}: shape and dimension_names differ"));
        }
        let role = array
            .attributes
            .shift_remove(ROLE_KEY)
            .and_then(|role| serde_json::from_value(role).ok());
        match role {
            Some(ArrayRole::Time) => time = Some((stored, array)),
            Some(ArrayRole::Trajectory) => {
                let first =
                    array.attributes.get(FIRST_KEY).and_then(Value::as_u64).unwrap_or_default();
                trajectories = Some(Trajectories { stored, first, count: array.shape[0] });
            }
            Some(ArrayRole::Variable) => variables.push((stored, array)),
            Some(ArrayRole::Axis(role)) => read_label(&mut axes, stored, array, role),
            // Only members of a family need several labels.
            Some(ArrayRole::Label) => read_label(&mut axes, stored, array, Role::Index),
            None => return Err(format!("metadata of {stored} lack a known {ROLE_KEY}")),
        }
    }
    let (stored, array) = time.ok_or("it has no array of times")?;
    let time = Series { name: "t".to_string(), ..read_series(&axes, None, stored, array)? };
    let (rows, of) = match &trajectories {
        Some(trajectories) => (trajectories.count, "trajectories"),
        None => (time.grid.rows, "times"),
    };
    let mut arrays = Vec::with_capacity(variables.len());
    for (stored, array) in variables {
        let of_an_ensemble = trajectories.as_ref().map(|_| time.stored.as_str());
        let series = read_series(&axes, of_an_ensemble, stored, array)?;
        if series.grid.rows != rows {
            return Err(format!("{} has {} rows for {rows} {of}", series.stored, series.grid.rows));
        }
        arrays.push(series);
    }
    Ok((Schema { attributes: group.attributes, time, trajectories, arrays, axes }, checksums))
}

/// Add a coordinate array to the axis that it labels, which may be new.
fn read_label(axes: &mut Vec<Axis>, stored: String, mut array: ArrayDocument, role: Role) {
    let dimension = array.dimension_names.swap_remove(0);
    let index = take_text(&mut array.attributes, INDEX_KEY).unwrap_or_default();
    match axes.iter_mut().find(|axis| axis.stored == dimension) {
        Some(axis) => axis.labels.push((index, stored)),
        None => axes.push(Axis {
            stored: dimension,
            role,
            length: array.shape[0],
            labels: vec![(index, stored)],
        }),
    }
}

/// Series of an array; `time` is the name of the dimension that may come second, in an ensemble.
fn read_series(
    axes: &[Axis],
    time: Option<&str>,
    stored: String,
    mut array: ArrayDocument,
) -> Result<Series, String> {
    let timed = time.is_none() || array.dimension_names.get(1).map(String::as_str) == time;
    let leading = if time.is_some() && timed { 2 } else { 1 };
    let place = |dimension: &String| axes.iter().position(|axis| axis.stored == *dimension);
    let places: Option<Vec<usize>> = array.dimension_names[leading..].iter().map(place).collect();
    let places = places.ok_or_else(|| format!("{stored} has a dimension without coordinates"))?;
    let numbers = array
        .shape
        .iter()
        .try_fold(size_of::<f64>(), |product, &length| product.checked_mul(length));
    if numbers.is_none() {
        return Err(format!("{stored} is larger than this computer can address"));
    }
    array.attributes.shift_remove(COORDINATES_KEY);
    let name = take_text(&mut array.attributes, MODEL_NAME_KEY).unwrap_or_else(|| stored.clone());
    if name.contains(acts) {
        return Err(format!("the quantity in {stored} cannot be called '{}'", visible(&name)));
    }
    Ok(Series {
        name,
        stored,
        description: take_text(&mut array.attributes, DESCRIPTION_KEY).unwrap_or_default(),
        attributes: array.attributes,
        timed,
        axes: places,
        grid: Grid::new(array.shape[0], array.shape[1..].to_vec()),
    })
}

fn take_text(attributes: &mut Map<String, Value>, key: &str) -> Option<String> {
    match attributes.shift_remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::every_kind;

    #[test]
    fn metadata_read_back_are_the_schema() {
        let schema = Schema::new(&every_kind(5)).unwrap();
        let document = group_document(&schema, &array_documents(&schema));
        let back = schema_from_group(Path::new("run"), document.to_string().as_bytes()).unwrap();
        assert_eq!(format!("{back:#?}"), format!("{schema:#?}"));
    }

    #[test]
    fn damaged_metadata_are_refused() {
        let schema = Schema::new(&every_kind(5)).unwrap();
        let good = group_document(&schema, &array_documents(&schema)).to_string();
        for (from, to) in [
            ("\"holonome_format\":2", "\"holonome_format\":3"),
            ("\"holonome_format\":2", "\"other\":2"),
            ("\"holonome_checksums\"", "\"checksums\""),
            ("\"holonome_role\":\"time\"", "\"holonome_role\":\"clock\""),
            ("\"shape\":[5,3]", "\"shape\":[6,3]"),
            ("\"shape\":[5,3]", "\"shape\":[5]"),
            ("\"shape\":[5,3]", "\"shape\":[5,9223372036854775807]"),
            (
                "\"dimension_names\":[\"time_\",\"component_3\"]",
                "\"dimension_names\":[\"time_\",\"nowhere\"]",
            ),
        ] {
            assert!(good.contains(from), "{from} in {good}");
            let bad = good.replacen(from, to, 1);
            let result = schema_from_group(Path::new("run"), bad.as_bytes());
            assert!(
                matches!(result, Err(StoreError::NotARun { .. })),
                "{from} -> {to}: {result:?}"
            );
        }
        let other = schema_from_group(
            Path::new("run"),
            good.replacen("coordinate q", "coordinate Q", 1).as_bytes(),
        );
        assert!(
            matches!(&other, Err(error @ StoreError::Damaged { .. }) if error.to_string().contains("'model'"))
        );
        // Another program may rewrite the document, and add attributes.
        let added = good.replacen("{\"model\":", "{\"note\": 1.5, \"model\": ", 1);
        assert!(schema_from_group(Path::new("run"), added.as_bytes()).is_ok());
        for length in 0..good.len() - 1 {
            if good.is_char_boundary(length) {
                assert!(schema_from_group(Path::new("run"), &good.as_bytes()[..length]).is_err());
            }
        }
    }
}
