//! Zarr v3 metadata of a schema, and their parser.
//!
//! Zarr core specification 3.0 (<https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html>):
//! regular grid and the codecs `bytes` and `crc32c`, so that a chunk is its numbers in row-major
//! order followed by a checksum, and any language can read it. (The letters of components use
//! Zarr's extension `string`, with the codec `vlen-utf8`.) The `default` chunk keys use the
//! separator `.`: with `/`, each chunk of a family would need folders of its own. Consolidated
//! metadata are zarr-python's convention; xarray looks for them first and then reads a single file.

use super::blocks::Blocks;
use super::checksum;
use super::error::StoreError;
use super::layout::Role;
use super::names;
use super::schema::{Axis, Grid, GridAxis, Schema, Series, Trajectories};
use holonome_figures::text::{acts, visible};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// Number of this format.
const FORMAT: u64 = 3;
/// Number of the format of ensembles in blocks.
const BLOCKS_FORMAT: u64 = 4;
/// Number of the format before, in which attributes are structures: it is read as well.
const FORMAT_OF_STRUCTURES: u64 = 2;
/// Key among the checksums of the checksum of the run's own metadata of its arrays.
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
/// Attributes that are structures: they are stored as JSON in a text, because other formats take
/// texts and numbers only.
const STRUCTURES: [&str; 5] = ["tables", "settings", "options", "parameters", "sweep"];
/// Attributes that tell of a run's end, and what precedes the names of others.
const ENDING: [&str; 3] = ["status", "t", "warnings"];
const ENDING_GROUPS: [&str; 3] = ["drift.", "error.", "cost."];

/// Role of an array in the data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ArrayRole {
    Time,
    Trajectory,
    Grid,
    Done,
    Variable,
    Label,
    #[serde(untagged)]
    Axis(Role),
}

/// An array of the group: its name and its metadata document.
pub(super) type Document = (String, ArrayDocument);

/// Metadata of an array.
#[derive(Serialize)]
pub(super) struct ArrayDocument {
    zarr_format: u8,
    node_type: &'static str,
    shape: Vec<usize>,
    data_type: &'static str,
    chunk_grid: Extension,
    chunk_key_encoding: Extension,
    fill_value: FillValue,
    codecs: Vec<Extension>,
    attributes: ArrayAttributes,
    dimension_names: Vec<String>,
}

/// Zarr's extension points: a name with a configuration.
#[derive(Serialize)]
struct Extension {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<Configuration>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Configuration {
    ChunkShape(Vec<usize>),
    Separator(&'static str),
    Endian(&'static str),
}

#[derive(Serialize)]
#[serde(untagged)]
enum FillValue {
    Text(&'static str),
    Integer(i64),
}

/// Attributes of an array: its own ones, and those from which the schema is read back.
#[derive(Default, Serialize, Deserialize)]
struct ArrayAttributes {
    #[serde(flatten)]
    own: Map<String, Value>,
    #[serde(rename = "holonome_role", skip_serializing_if = "Option::is_none")]
    role: Option<ArrayRole>,
    #[serde(rename = "long_name", skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<String>,
    /// CF convention, which xarray follows: names of the coordinates that are not dimensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    coordinates: Option<String>,
    /// Number of an ensemble's first trajectory.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    #[serde(rename = "index_name", skip_serializing_if = "Option::is_none")]
    index: Option<String>,
}

/// Metadata of the group, with those of all arrays.
#[derive(Serialize)]
pub(super) struct GroupDocument<'a> {
    zarr_format: u8,
    node_type: &'static str,
    attributes: GroupAttributes,
    consolidated_metadata: Consolidated<IndexMap<&'a str, Member<'a>>>,
}

/// Metadata of an array of the run, or of what belongs to a group in it.
#[derive(Serialize)]
#[serde(untagged)]
enum Member<'a> {
    Array(&'a ArrayDocument),
    OfGroup(&'a Value),
}

/// Attributes of the group: those of the schema, and what guards them.
#[derive(Serialize, Deserialize)]
struct GroupAttributes {
    #[serde(flatten)]
    own: Map<String, Value>,
    #[serde(rename = "holonome_format")]
    format: Option<Value>,
    /// Number of trajectories in a full block of an ensemble.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    /// Lengths of a block in the dimensions of the trajectories.
    #[serde(skip_serializing_if = "Option::is_none")]
    block_shape: Option<Vec<u64>>,
    /// Number of the first trajectory and of all, of an ensemble that stores nothing of each.
    #[serde(rename = "trajectories", skip_serializing_if = "Option::is_none")]
    unstored: Option<(u64, usize)>,
    /// Checksums of the attributes by name, as JSON in a text: a run is resumed from these.
    #[serde(rename = "holonome_checksums")]
    checksums: Option<Value>,
}

/// Structure as JSON in a text.
fn text_of(structure: &impl Serialize) -> Value {
    serde_json::to_string(structure).expect("attributes are JSON").into()
}

/// Structure from JSON in a text; before format 3 it was not in a text.
fn structure_of(value: Value) -> Result<Value, serde_json::Error> {
    match value {
        Value::String(text) => serde_json::from_str(&text),
        structure => Ok(structure),
    }
}

/// True if an attribute of this name tells of a run's end.
fn is_of_ending(key: &str) -> bool {
    ENDING.contains(&key) || ENDING_GROUPS.iter().any(|group| key.starts_with(group))
}

#[derive(Serialize)]
struct Consolidated<M> {
    kind: &'static str,
    must_understand: bool,
    metadata: M,
}

/// Documents of all arrays (time, variables, coordinates) in the order of the group.
pub(super) fn array_documents(schema: &Schema) -> Vec<Document> {
    let mut documents = vec![series_document(schema, &schema.time, ArrayRole::Time)];
    documents.extend(schema.trajectories.iter().flat_map(|all| outer_documents(schema, all)));
    documents.extend(
        schema.arrays.iter().map(|series| series_document(schema, series, ArrayRole::Variable)),
    );
    documents.extend(schema.axes.iter().flat_map(axis_documents));
    documents
}

/// Document of the group with all others inside.
pub(super) fn group_document<'a>(schema: &'a Schema, arrays: &'a [Document]) -> GroupDocument<'a> {
    let attributes = schema.attributes.iter().chain(&schema.ending);
    let of_attributes = attributes.map(|(key, value)| (key.clone(), checksum_of_value(value)));
    let of_arrays = (ARRAYS_KEY.to_string(), checksum_of(arrays));
    let checksums: IndexMap<String, String> = of_attributes.chain([of_arrays]).collect();
    let of_groups = schema.groups.iter();
    let of_groups = of_groups.map(|(path, document)| (path.as_str(), Member::OfGroup(document)));
    let own = arrays.iter().map(|(name, document)| (name.as_str(), Member::Array(document)));
    let metadata = own.chain(of_groups).collect();
    let blocks = schema.blocks();
    let format = if blocks.is_some() { BLOCKS_FORMAT } else { FORMAT };
    GroupDocument {
        zarr_format: 3,
        node_type: "group",
        attributes: GroupAttributes {
            own: stored_attributes(schema),
            format: Some(format.into()),
            block: blocks.map(Blocks::len),
            block_shape: blocks.map(Blocks::chunk),
            unstored: schema
                .trajectories
                .as_ref()
                .filter(|_| schema.arrays.is_empty())
                .map(|all| (all.first, all.count)),
            checksums: Some(text_of(&checksums)),
        },
        consolidated_metadata: Consolidated { kind: "inline", must_understand: false, metadata },
    }
}

/// Attributes of the data set as they are stored: texts and numbers.
pub(super) fn stored_attributes(schema: &Schema) -> Map<String, Value> {
    let stored = |(key, value): (&String, &Value)| {
        let value = if STRUCTURES.contains(&key.as_str()) { text_of(value) } else { value.clone() };
        (key.clone(), value)
    };
    schema.attributes.iter().chain(&schema.ending).map(stored).collect()
}

/// Document of a group with these attributes.
pub(super) fn group_of(attributes: &Map<String, Value>) -> Value {
    serde_json::json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes })
}

/// Document of an array of a group, with the names of its coordinates that are not dimensions.
pub(super) fn group_array(
    (name, description): (&str, &str),
    shape: &[(String, usize)],
    coordinates: &str,
) -> Document {
    let attributes = ArrayAttributes {
        description: Some(description.to_string()),
        coordinates: (!coordinates.is_empty()).then(|| coordinates.to_string()),
        ..ArrayAttributes::default()
    };
    let (names, shape): (Vec<&str>, Vec<usize>) =
        shape.iter().map(|(name, length)| (name.as_str(), *length)).unzip();
    let document = ArrayDocument::of(NUMBERS, (shape.clone(), shape), &names, attributes);
    (name.to_string(), document)
}

fn checksum_of_value(value: &Value) -> String {
    checksum::of_text(&value.to_string())
}

/// Checksum of a run's own metadata of its arrays. Other programs may add metadata.
fn checksum_of(arrays: &[Document]) -> String {
    let known = arrays.iter().map(
        |(name, ArrayDocument { shape, chunk_grid, attributes, dimension_names, .. })| {
            let ArrayAttributes { role, model_name, description, index, first, .. } = attributes;
            // That of a coordinate follows from the rest, and was not stored before.
            let is_coordinate = matches!(role, Some(ArrayRole::Axis(_) | ArrayRole::Label));
            let description = description.as_ref().filter(|_| !is_coordinate);
            (
                name,
                shape,
                chunk_grid,
                dimension_names,
                (role, model_name, description, index, first),
            )
        },
    );
    let known = serde_json::to_string(&known.collect::<Vec<_>>());
    checksum::of_text(&known.expect("names and numbers are JSON"))
}

fn series_document(schema: &Schema, series: &Series, role: ArrayRole) -> Document {
    let axes: Vec<&Axis> = series.axes.iter().map(|&axis| &schema.axes[axis]).collect();
    let labels: Vec<&str> =
        axes.iter().flat_map(|axis| axis.extra_labels()).map(|(_, array)| array.as_str()).collect();
    let attributes = ArrayAttributes {
        own: series.attributes.clone(),
        role: Some(role),
        description: Some(series.description.clone()),
        model_name: (series.name != series.stored).then(|| series.name.clone()),
        coordinates: (!labels.is_empty()).then(|| labels.join(" ")),
        ..ArrayAttributes::default()
    };
    let mut dimensions = Vec::new();
    let of_an_ensemble = schema.trajectories.as_ref().filter(|_| role == ArrayRole::Variable);
    dimensions.extend(of_an_ensemble.iter().flat_map(|all| all.dimensions()));
    if role == ArrayRole::Grid {
        dimensions.push(series.stored.as_str());
    } else if series.timed || of_an_ensemble.is_none() {
        dimensions.push(schema.time.stored.as_str());
    }
    dimensions.extend(axes.iter().map(|axis| axis.stored.as_str()));
    let document = ArrayDocument::new(NUMBERS, &series.grid, &dimensions, attributes);
    (series.stored.clone(), document)
}

/// Documents of the dimensions of the trajectories, and of the array that tells which of their
/// blocks are done.
fn outer_documents(schema: &Schema, trajectories: &Trajectories) -> Vec<Document> {
    let mut documents = match &trajectories.grid[..] {
        // Readers would build an index of them.
        [] if schema.arrays.is_empty() => Vec::new(),
        [] => vec![trajectory_document(trajectories)],
        grid => grid
            .iter()
            .map(|axis| series_document(schema, &axis.series(), ArrayRole::Grid))
            .collect(),
    };
    if let Some(blocks) = &trajectories.blocks {
        let attributes = ArrayAttributes {
            role: Some(ArrayRole::Done),
            description: Some("1 for each block of trajectories that is done".to_string()),
            ..ArrayAttributes::default()
        };
        let grid = Grid { chunk_rows: 1, ..Grid::new(blocks.count() as usize, Vec::new()) };
        let document = ArrayDocument::new(BYTES, &grid, &["block"], attributes);
        documents.push((trajectories.done.clone(), document));
    }
    documents
}

fn trajectory_document(trajectories: &Trajectories) -> Document {
    let attributes = ArrayAttributes {
        role: Some(ArrayRole::Trajectory),
        description: Some("number of the trajectory".to_string()),
        first: Some(trajectories.first),
        ..ArrayAttributes::default()
    };
    let grid = match &trajectories.blocks {
        Some(blocks) => Grid::in_blocks(blocks, Vec::new()),
        None => Grid::new(trajectories.count, Vec::new()),
    };
    let document = ArrayDocument::new(INTEGERS, &grid, &[&trajectories.stored], attributes);
    (trajectories.stored.clone(), document)
}

pub(super) fn axis_documents(axis: &Axis) -> Vec<Document> {
    let grid = Grid::new(axis.length, Vec::new());
    let document = |(index, array): &(String, String)| {
        let role =
            if *array == axis.stored { ArrayRole::Axis(axis.role) } else { ArrayRole::Label };
        let attributes = ArrayAttributes {
            role: Some(role),
            description: Some(axis.description(index)),
            index: Some(index.clone()),
            ..ArrayAttributes::default()
        };
        let form = if axis.letters().is_some() { TEXTS } else { INTEGERS };
        (array.clone(), ArrayDocument::new(form, &grid, &[&axis.stored], attributes))
    };
    axis.labels.iter().map(document).collect()
}

/// Form of an array's entries: data type, fill value, codec.
type Form = (&'static str, FillValue, Extension);
const NUMBERS: Form = ("float64", FillValue::Text("NaN"), Extension::BYTES);
const INTEGERS: Form = ("int64", FillValue::Integer(0), Extension::BYTES);
/// Single bytes, which need neither an order nor a checksum.
const BYTES: Form =
    ("uint8", FillValue::Integer(0), Extension { name: "bytes", configuration: None });
const TEXTS: Form =
    ("string", FillValue::Text(""), Extension { name: "vlen-utf8", configuration: None });

impl Extension {
    const BYTES: Extension =
        Extension { name: "bytes", configuration: Some(Configuration::Endian("little")) };
}

impl ArrayDocument {
    fn new(
        form: Form,
        grid: &Grid,
        dimensions: &[&str],
        attributes: ArrayAttributes,
    ) -> ArrayDocument {
        let (mut shape, mut chunk) = grid.outer();
        shape.extend(&grid.lengths);
        chunk.extend(&grid.lengths);
        ArrayDocument::of(form, (shape, chunk), dimensions, attributes)
    }

    /// Array of this shape, in chunks of this one.
    fn of(
        (data_type, fill_value, codec): Form,
        (shape, chunk): (Vec<usize>, Vec<usize>),
        dimensions: &[&str],
        attributes: ArrayAttributes,
    ) -> ArrayDocument {
        // A chunk has at least one place in each direction, even where the array has none.
        let chunk = chunk.iter().map(|&length| length.max(1)).collect();
        let sum =
            (data_type != "uint8").then_some(Extension { name: "crc32c", configuration: None });
        let extension = |name, of| Extension { name, configuration: Some(of) };
        ArrayDocument {
            zarr_format: 3,
            node_type: "array",
            shape,
            data_type,
            chunk_grid: extension("regular", Configuration::ChunkShape(chunk)),
            chunk_key_encoding: extension("default", Configuration::Separator(".")),
            fill_value,
            codecs: std::iter::once(codec).chain(sum).collect(),
            attributes,
            dimension_names: dimensions.iter().map(|name| name.to_string()).collect(),
        }
    }
}

impl Axis {
    /// Description of a label, by the name of its index.
    pub(super) fn description(&self, index: &str) -> String {
        match self.role {
            Role::Index => format!("index {index}"),
            Role::Component => "component".to_string(),
            Role::Row => "row".to_string(),
            Role::Column => "column".to_string(),
        }
    }

    /// Labels other than the dimension's own coordinate.
    pub(super) fn extra_labels(&self) -> impl Iterator<Item = &(String, String)> {
        self.labels.iter().filter(|(_, array)| *array != self.stored)
    }
}

/// The part of the group's document that is read. Other programs may have added to it.
#[derive(Deserialize)]
struct StoredGroup {
    attributes: GroupAttributes,
    consolidated_metadata: StoredMetadata,
}

#[derive(Deserialize)]
struct StoredMetadata {
    metadata: Map<String, Value>,
}

/// The part of an array's document that differs between arrays.
#[derive(Deserialize)]
struct StoredArray {
    shape: Vec<usize>,
    attributes: ArrayAttributes,
    dimension_names: Vec<String>,
}

/// Read the schema back from the group's document in `path`.
pub(super) fn schema_from_group(path: &Path, document: &[u8]) -> Result<Schema, StoreError> {
    let not_a_run = |reason| StoreError::NotARun { path: path.to_path_buf(), reason };
    let (schema, mut checksums) = parse(document).map_err(not_a_run)?;
    let damaged = |reason: String| Err(StoreError::damaged(&path.join("zarr.json"), reason));
    let of_arrays = "the names and shapes of its arrays";
    match checksums.shift_remove(ARRAYS_KEY) {
        Some(expected) if expected == checksum_of(&array_documents(&schema)) => {}
        Some(_) => {
            return damaged(
                "the names or shapes of its arrays are not what was written".to_string(),
            );
        }
        None => return damaged(format!("the checksum of {of_arrays} is missing")),
    }
    let stored = |key: &str| schema.attributes.get(key).or_else(|| schema.ending.get(key));
    let is_open = |key: &&str| stored(key).is_some() && !checksums.contains_key(*key);
    if let Some(key) = OWN.into_iter().find(is_open) {
        return damaged(format!("the checksum of the attribute '{key}' is missing"));
    }
    for (key, expected) in &checksums {
        if stored(key).map(checksum_of_value).as_ref() != Some(expected) {
            return damaged(format!("the attribute '{key}' is not what was written"));
        }
    }
    Ok(schema)
}

/// The schema, and the checksums of its attributes.
fn parse(document: &[u8]) -> Result<(Schema, IndexMap<String, String>), String> {
    let group: StoredGroup =
        serde_json::from_slice(document).map_err(|error| format!("zarr.json: {error}"))?;
    let GroupAttributes { own: attributes, format, block_shape, unstored, checksums, .. } =
        group.attributes;
    match format {
        Some(format) if block_shape.is_some() && format == BLOCKS_FORMAT => {}
        Some(format)
            if block_shape.is_none() && (format == FORMAT || format == FORMAT_OF_STRUCTURES) => {}
        Some(format) => {
            return Err(format!(
                "it has format {format}, this program reads formats up to {BLOCKS_FORMAT}: run its model again, or read its arrays with any reader of Zarr"
            ));
        }
        None => {
            return Err("zarr.json lacks holonome_format, so another program wrote it".to_string());
        }
    }
    let checksums = checksums.ok_or("zarr.json lacks holonome_checksums")?;
    let checksums: IndexMap<String, String> = structure_of(checksums)
        .and_then(serde_json::from_value)
        .map_err(|error| format!("holonome_checksums: {error}"))?;
    let (ending, mut attributes): (Map<String, Value>, Map<String, Value>) =
        attributes.into_iter().partition(|(key, _)| is_of_ending(key));
    for key in STRUCTURES {
        if let Some(value) = attributes.get_mut(key) {
            *value = structure_of(value.take()).map_err(|error| format!("{key}: {error}"))?;
        }
    }
    let mut time = None;
    let mut trajectories = None;
    let (mut grid, mut done) = (Vec::new(), String::new());
    let mut variables = Vec::new();
    let mut axes: Vec<Axis> = Vec::new();
    let mut groups = Vec::new();
    for (stored, document) in group.consolidated_metadata.metadata {
        let is_of_group = stored.contains('/') || document["node_type"] == "group";
        if is_of_group && stored.split('/').all(names::can_be_stored) {
            groups.push((stored, document));
            continue;
        }
        if !names::can_be_stored(&stored) {
            return Err(format!("an array cannot be called '{}'", visible(&stored)));
        }
        let array: StoredArray = serde_json::from_value(document)
            .map_err(|error| format!("metadata of {stored}: {error}"))?;
        if array.shape.is_empty() || array.shape.len() != array.dimension_names.len() {
            return Err(format!("metadata of {stored}: shape and dimension_names differ"));
        }
        match array.attributes.role {
            Some(ArrayRole::Time) => time = Some((stored, array)),
            Some(ArrayRole::Trajectory) => {
                let first = array.attributes.first.unwrap_or_default();
                trajectories = Some((stored, first, array.shape[0]));
            }
            Some(ArrayRole::Grid) => grid.push(GridAxis {
                name: array.attributes.model_name.unwrap_or_else(|| stored.clone()),
                stored,
                length: array.shape[0],
            }),
            Some(ArrayRole::Done) => done = stored,
            Some(ArrayRole::Variable) => variables.push((stored, array)),
            Some(ArrayRole::Axis(role)) => read_label(&mut axes, stored, array, role),
            // Only members of a family need several labels.
            Some(ArrayRole::Label) => read_label(&mut axes, stored, array, Role::Index),
            None => return Err(format!("metadata of {stored} lack a holonome_role")),
        }
    }
    let (stored, array) = time.ok_or("it has no array of times")?;
    let time = Series { name: "t".to_string(), ..read_series(&axes, None, stored, array)? };
    let unstored = unstored.map(|(first, count)| ("trajectory".to_string(), first, count));
    let trajectories = trajectories_of(trajectories.or(unstored), grid, block_shape, done)?;
    let (rows, of) = match &trajectories {
        Some(trajectories) => (trajectories.count, "trajectories"),
        None => (time.grid.rows, "times"),
    };
    let mut arrays = Vec::with_capacity(variables.len());
    for (stored, array) in variables {
        let of_an_ensemble = trajectories.as_ref().map(|all| (time.stored.as_str(), all));
        let series = read_series(&axes, of_an_ensemble, stored, array)?;
        if series.grid.rows != rows {
            return Err(format!("{} has {} rows for {rows} {of}", series.stored, series.grid.rows));
        }
        arrays.push(series);
    }
    Ok((Schema { attributes, ending, groups, time, trajectories, arrays, axes }, checksums))
}

/// Add a coordinate array to the axis that it labels, which may be new.
fn read_label(axes: &mut Vec<Axis>, stored: String, mut array: StoredArray, role: Role) {
    let dimension = array.dimension_names.swap_remove(0);
    let index = array.attributes.index.unwrap_or_default();
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

/// Trajectories of an ensemble: their own dimension, or those of a grid.
fn trajectories_of(
    own: Option<(String, u64, usize)>,
    grid: Vec<GridAxis>,
    block_shape: Option<Vec<u64>>,
    done: String,
) -> Result<Option<Trajectories>, String> {
    let (stored, first, count) = match own {
        Some(own) if grid.is_empty() => own,
        None if grid.is_empty() => return Ok(None),
        _ => {
            let count = grid.iter().try_fold(1usize, |all, axis| all.checked_mul(axis.length));
            let count = count.ok_or("its grid is larger than this computer can address")?;
            ("trajectory".to_string(), 0, count)
        }
    };
    let shape = match &grid[..] {
        [] => vec![count as u64],
        grid => grid.iter().map(|axis| axis.length as u64).collect(),
    };
    let blocks = match block_shape {
        None => None,
        Some(chunk) => Some(
            Blocks::of_chunks(&shape, &chunk)
                .ok_or("the attribute 'block_shape' is not that of its arrays")?,
        ),
    };
    Ok(Some(Trajectories { stored, first, count, grid, blocks, done }))
}

/// Series of an array; in an ensemble given with the name of the dimension of the time, which may
/// follow those of the trajectories.
fn read_series(
    axes: &[Axis],
    ensemble: Option<(&str, &Trajectories)>,
    stored: String,
    array: StoredArray,
) -> Result<Series, String> {
    let outer = ensemble.map_or(1, |(_, all)| all.dimensions().len());
    let second = array.dimension_names.get(outer).map(String::as_str);
    let timed = ensemble.is_none_or(|(time, _)| second == Some(time));
    let leading = outer + usize::from(ensemble.is_some() && timed);
    if array.shape.len() < leading {
        return Err(format!("metadata of {stored}: it lacks the dimensions of the trajectories"));
    }
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
    let ArrayAttributes { own: attributes, model_name, description, .. } = array.attributes;
    let name = model_name.unwrap_or_else(|| stored.clone());
    if name.contains(acts) {
        return Err(format!("the quantity in {stored} cannot be called '{}'", visible(&name)));
    }
    Ok(Series {
        name,
        stored,
        description: description.unwrap_or_default(),
        attributes,
        timed,
        axes: places,
        grid: match ensemble.and_then(|(_, all)| all.blocks.as_ref()) {
            Some(blocks) => Grid::in_blocks(blocks, array.shape[outer..].to_vec()),
            None => Grid::new(array.shape[0], array.shape[outer..].to_vec()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::every_kind;
    use serde_json::json;

    #[test]
    fn metadata_read_back_are_the_schema() {
        let schema = Schema::new(&every_kind(5), &|| true).unwrap();
        let arrays = array_documents(&schema);
        let document = json!(group_document(&schema, &arrays)).to_string();
        let back = schema_from_group(Path::new("run"), document.as_bytes()).unwrap();
        assert_eq!(format!("{back:#?}"), format!("{schema:#?}"));
    }

    #[test]
    fn damaged_metadata_are_refused() {
        let schema = Schema::new(&every_kind(5), &|| true).unwrap();
        let arrays = array_documents(&schema);
        let good = json!(group_document(&schema, &arrays)).to_string();
        for (from, to) in [
            ("\"holonome_format\":3", "\"holonome_format\":5"),
            ("\"holonome_format\":3", "\"other\":3"),
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
