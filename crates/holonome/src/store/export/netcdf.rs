//! NetCDF: the arrays of a run with their dimensions, coordinates and attributes, in the classic
//! format (<https://docs.unidata.ucar.edu/nug/current/file_format_specifications.html>).
//!
//! A file is CDF-2 (offsets of 64 bits), which every reader knows; if an array has 4 GiB or more, or
//! a label does not fit into 32 bits, it is CDF-5. All numbers have the highest byte first. Lengths
//! and places are known beforehand, so the file is written in one go.
//!
//! In this format a dimension of length 0 is one that may still grow, and it comes first. So time is
//! one in a run without samples, and families without members are left out.

use super::{Fail, Format, Stream};
use crate::store::error::StoreError;
use crate::store::reader::StoredRun;
use crate::store::schema::Series;
use crate::store::zarr;
use serde_json::{Map, Value};
use std::io::Write;

/// NetCDF.
pub const FORMAT: Format = Format { name: "netcdf", about: "NetCDF", write };

/// Tags of the header's lists.
const DIMENSIONS: u32 = 10;
const VARIABLES: u32 = 11;
const ATTRIBUTES: u32 = 12;

/// Length of a variable, and of a dimension, from which on a file is CDF-5.
const LARGE_VARIABLE: u64 = (1 << 32) - 4;
const LARGE_DIMENSION: u64 = (1 << 31) - 4;

/// Types of numbers.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Char = 2,
    Int = 4,
    Double = 6,
    Int64 = 10,
}

impl Kind {
    fn bytes(self) -> u64 {
        match self {
            Kind::Char => 1,
            Kind::Int => 4,
            Kind::Double | Kind::Int64 => 8,
        }
    }
}

/// Source of a variable's values.
enum Content<'r> {
    /// Rows of an array.
    Rows(&'r Series),
    /// Values along a dimension.
    Numbers(Vec<f64>),
    /// Integers that label a dimension.
    Integers(Vec<i64>),
    /// Letters that label components, as characters along one more dimension.
    Letters(&'static [&'static str]),
}

struct Variable<'r> {
    name: &'r str,
    /// Places of its dimensions.
    dimensions: Vec<usize>,
    attributes: Map<String, Value>,
    content: Content<'r>,
}

impl Variable<'_> {
    fn kind(&self) -> Kind {
        let fits = |value: &i64| i32::try_from(*value).is_ok();
        match &self.content {
            Content::Rows(_) | Content::Numbers(_) => Kind::Double,
            Content::Integers(values) if values.iter().all(fits) => Kind::Int,
            Content::Integers(_) => Kind::Int64,
            Content::Letters(_) => Kind::Char,
        }
    }
}

struct Contents<'r> {
    /// Names and lengths.
    dimensions: Vec<(String, u64)>,
    variables: Vec<Variable<'r>>,
}

fn write(run: &StoredRun, output: &mut Stream, fail: Fail) -> Result<(), StoreError> {
    let Contents { dimensions, variables } = contents(run)?;
    // A variable's bytes, without what fills up its last word; those of one record, if it has any.
    let bytes = |variable: &Variable| {
        let lengths = variable.dimensions.iter().map(|&place| dimensions[place].1);
        let grows = lengths.clone().next() == Some(0);
        lengths.skip(usize::from(grows)).product::<u64>() * variable.kind().bytes()
    };
    let is_large = dimensions.iter().any(|(_, length)| *length >= LARGE_DIMENSION)
        || variables
            .iter()
            .any(|variable| variable.kind() == Kind::Int64 || bytes(variable) >= LARGE_VARIABLE);
    let header = |begin: u64| {
        let mut header = Header { bytes: Vec::new(), is_large };
        header.bytes.extend_from_slice(if is_large { b"CDF\x05" } else { b"CDF\x02" });
        // No records.
        header.length(0);
        header.list(DIMENSIONS, dimensions.len());
        for (name, length) in &dimensions {
            header.text(name);
            header.length(*length);
        }
        header.attributes(&zarr::stored_attributes(run.schema()));
        header.list(VARIABLES, variables.len());
        // Variables that grow lie behind all others.
        let grows = |variable: &Variable| {
            variable.dimensions.first().is_some_and(|&first| dimensions[first].1 == 0)
        };
        let sizes = |variable: &Variable| padded(bytes(variable));
        let fixed = variables.iter().filter(|variable| !grows(variable));
        let mut next = [begin, begin + fixed.map(sizes).sum::<u64>()];
        for variable in &variables {
            header.text(variable.name);
            header.length(variable.dimensions.len() as u64);
            variable.dimensions.iter().for_each(|&place| header.length(place as u64));
            header.attributes(&variable.attributes);
            header.word(variable.kind() as u32);
            header.length(sizes(variable));
            let place = &mut next[usize::from(grows(variable))];
            header.bytes.extend(place.to_be_bytes());
            *place += sizes(variable);
        }
        header.bytes
    };
    // Its length does not depend on the places in it.
    let first = header(0).len() as u64;
    output.write_all(&header(first)).map_err(fail)?;
    for variable in &variables {
        let put = |output: &mut Stream, bytes: &[u8]| output.write_all(bytes).map_err(fail);
        match &variable.content {
            Content::Rows(series) => {
                let mut rows = run.row_reader(series);
                for row in 0..run.rows_of(series) {
                    for number in rows.row(row)? {
                        put(output, &number.to_be_bytes())?;
                    }
                }
                // A grid has a place for every trajectory.
                let written = (run.rows_of(series) * series.grid.row()) as u64;
                let all = variable.dimensions.iter().map(|&place| dimensions[place].1);
                for _ in written..all.product() {
                    put(output, &f64::NAN.to_be_bytes())?;
                }
            }
            Content::Numbers(numbers) => {
                for number in numbers {
                    put(output, &number.to_be_bytes())?;
                }
            }
            Content::Integers(values) => {
                let is_short = variable.kind() == Kind::Int;
                for &value in values {
                    match is_short {
                        true => put(output, &(value as i32).to_be_bytes())?,
                        false => put(output, &value.to_be_bytes())?,
                    }
                }
            }
            Content::Letters(letters) => put(output, letters.concat().as_bytes())?,
        }
        // Numbers of eight bytes need no filling.
        let bytes = bytes(variable);
        put(output, &[0; 4][..(padded(bytes) - bytes) as usize])?;
    }
    Ok(())
}

fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(4)
}

/// Dimensions and variables of a run.
fn contents(run: &StoredRun) -> Result<Contents<'_>, StoreError> {
    let schema = run.schema();
    let mut dimensions = Vec::new();
    let mut add = |name: &str, length: usize| {
        dimensions.push((name.to_string(), length as u64));
        dimensions.len() - 1
    };
    // Trajectories are one dimension, or a grid; an ensemble of which no arrays are stored has none.
    let trajectories = schema.trajectories.as_ref().filter(|_| !schema.arrays.is_empty());
    let outer: Vec<usize> = match trajectories {
        None => Vec::new(),
        Some(all) if all.grid.is_empty() => vec![add(&all.stored, run.samples())],
        Some(all) => all.grid.iter().map(|axis| add(&axis.stored, axis.length)).collect(),
    };
    let time = add(&schema.time.stored, run.rows_of(&schema.time));
    let axes: Vec<Option<usize>> = (schema.axes.iter())
        .map(|axis| (axis.length > 0).then(|| add(&axis.stored, axis.length)))
        .collect();
    // One more dimension of the letters' characters, which no array has.
    let has_letters = schema.axes.iter().any(|axis| axis.letters().is_some());
    let mut name = "string1".to_string();
    while dimensions.iter().any(|(other, _)| *other == name) {
        name.push('_');
    }
    let character = has_letters.then(|| {
        dimensions.push((name, 1));
        dimensions.len() - 1
    });

    let described = |pairs: &[(&str, &str)]| -> Map<String, Value> {
        let pairs = pairs.iter().filter(|(_, text)| !text.is_empty());
        pairs.map(|(key, text)| (key.to_string(), Value::from(*text))).collect()
    };
    let mut variables = vec![Variable {
        name: &schema.time.stored,
        dimensions: vec![time],
        attributes: described(&[
            ("long_name", &schema.time.description),
            (
                "model_name",
                if schema.time.stored == schema.time.name { "" } else { &schema.time.name },
            ),
        ]),
        content: Content::Rows(&schema.time),
    }];
    if let Some(all) = trajectories {
        for (axis, &place) in all.grid.iter().zip(&outer) {
            variables.push(Variable {
                name: &axis.stored,
                dimensions: vec![place],
                attributes: described(&[
                    ("long_name", &axis.series().description),
                    ("model_name", if axis.name == axis.stored { "" } else { &axis.name }),
                ]),
                content: Content::Numbers(run.values_along(axis)?),
            });
        }
        if all.grid.is_empty() {
            let numbers = (0..run.samples() as u64).map(|k| (all.first + k) as i64);
            variables.push(Variable {
                name: &all.stored,
                dimensions: outer.clone(),
                attributes: described(&[("long_name", "number of the trajectory")]),
                content: Content::Integers(numbers.collect()),
            });
        }
    }
    for series in &schema.arrays {
        let places: Option<Vec<usize>> = series.axes.iter().map(|&axis| axes[axis]).collect();
        let Some(places) = places else { continue };
        let of_time = (series.timed || trajectories.is_none()).then_some(time);
        let beside = series.axes.iter().flat_map(|&axis| schema.axes[axis].extra_labels());
        let beside: Vec<&str> = beside.map(|(_, array)| array.as_str()).collect();
        let mut attributes = described(&[
            ("long_name", &series.description),
            ("model_name", if series.name == series.stored { "" } else { &series.name }),
            ("coordinates", &beside.join(" ")),
        ]);
        attributes.extend(series.attributes.clone());
        variables.push(Variable {
            name: &series.stored,
            dimensions: outer.iter().copied().chain(of_time).chain(places).collect(),
            attributes,
            content: Content::Rows(series),
        });
    }
    for (axis, place) in schema.axes.iter().zip(&axes) {
        let Some(place) = *place else { continue };
        let dimension = run.read_axis(axis)?;
        for ((index, array), label) in axis.labels.iter().zip(dimension.labels) {
            let mut attributes = described(&[("long_name", &axis.description(index))]);
            let (characters, content) = match axis.letters() {
                Some(letters) => {
                    attributes.insert("_Encoding".to_string(), "utf-8".into());
                    (character, Content::Letters(letters))
                }
                None => (None, Content::Integers(label.values)),
            };
            let dimensions = [place].into_iter().chain(characters).collect();
            variables.push(Variable { name: array, dimensions, attributes, content });
        }
    }
    Ok(Contents { dimensions, variables })
}

/// Header of a file.
struct Header {
    bytes: Vec<u8>,
    /// True if lengths have 64 bits.
    is_large: bool,
}

impl Header {
    fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_be_bytes());
    }

    fn length(&mut self, length: u64) {
        match self.is_large {
            true => self.bytes.extend(length.to_be_bytes()),
            false => self.word(length as u32),
        }
    }

    /// Begin a list; one without elements has no tag.
    fn list(&mut self, tag: u32, length: usize) {
        self.word(if length == 0 { 0 } else { tag });
        self.length(length as u64);
    }

    fn text(&mut self, text: &str) {
        self.length(text.len() as u64);
        self.fill(text.as_bytes());
    }

    /// Bytes, up to a full word.
    fn fill(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(padded(self.bytes.len() as u64) as usize, 0);
    }

    fn attributes(&mut self, attributes: &Map<String, Value>) {
        self.list(ATTRIBUTES, attributes.len());
        for (name, value) in attributes {
            self.text(name);
            self.value(value);
        }
    }

    /// Type and value of an attribute: a text, or numbers. A list of texts has a line for each.
    fn value(&mut self, value: &Value) {
        let list = match value {
            Value::Array(list) => &list[..],
            single => std::slice::from_ref(single),
        };
        let fits = |value: &Value| value.as_i64().and_then(|value| i32::try_from(value).ok());
        let words: Option<Vec<i32>> = list.iter().map(fits).collect();
        let numbers: Option<Vec<f64>> = list.iter().map(Value::as_f64).collect();
        let (kind, length, bytes) = match (words, numbers) {
            (Some(words), _) => {
                let bytes = words.iter().flat_map(|word| word.to_be_bytes()).collect();
                (Kind::Int, words.len(), bytes)
            }
            (_, Some(numbers)) => {
                let bytes = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
                (Kind::Double, numbers.len(), bytes)
            }
            _ => {
                let line = |value: &Value| {
                    value.as_str().map_or_else(|| value.to_string(), str::to_string)
                };
                let text = list.iter().map(line).collect::<Vec<_>>().join("\n");
                (Kind::Char, text.len(), text.into_bytes())
            }
        };
        self.word(kind as u32);
        self.length(length as u64);
        self.fill(&bytes);
    }
}
