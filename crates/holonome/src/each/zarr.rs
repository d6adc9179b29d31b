//! Arrays of Zarr, of version 3 and 2, as numpy users store them: floats or integers in the order
//! of C, in regular chunks, plain or compressed by Zstandard or gzip.

use super::Rows;
use crate::regular;
use serde::Deserialize;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// True if `path` is the folder of an array, or of a group.
pub(super) fn is_there(path: &Path) -> bool {
    ["zarr.json", ".zarray", ".zgroup"].iter().any(|name| path.join(name).exists())
}

/// Numbers of the array in a folder, whose first dimension is that of the trajectories.
///
/// # Errors
/// If the array is not one of those above, or a chunk of it cannot be read.
pub(super) fn read(path: &Path) -> Result<Rows, String> {
    let array = Array::open(path)?;
    let rows = *array.shape.first().ok_or("it is a single number: give one for each trajectory")?;
    let count = array.shape.iter().try_fold(1usize, |all, &length| all.checked_mul(length));
    let mut numbers = Vec::new();
    let count = count.filter(|&count| numbers.try_reserve_exact(count).is_ok());
    numbers.resize(count.ok_or("it does not fit into memory")?, array.fill);
    let counts: Vec<usize> = array
        .shape
        .iter()
        .zip(&array.chunk)
        .map(|(length, chunk)| length.div_ceil(*chunk))
        .collect();
    let mut place = vec![0; counts.len()];
    let mut more = !numbers.is_empty();
    while more {
        if let Some(chunk) = array.chunk_at(path, &place)? {
            array.copy(&chunk, &place, &mut numbers);
        }
        more = advance(&mut place, &counts);
    }
    Ok(Rows { numbers: numbers.into(), rows })
}

/// Go to the next place in row-major order; false behind the last one.
fn advance(place: &mut [usize], counts: &[usize]) -> bool {
    for (own, count) in place.iter_mut().zip(counts).rev() {
        *own += 1;
        if *own < *count {
            return true;
        }
        *own = 0;
    }
    false
}

/// What the metadata say.
struct Array {
    shape: Vec<usize>,
    chunk: Vec<usize>,
    number: Number,
    little: bool,
    /// Value of chunks that are not stored.
    fill: f64,
    /// Codecs from the numbers to the file.
    codecs: Vec<Codec>,
    /// What precedes the key of a chunk, and what separates its numbers.
    key: (&'static str, char),
}

#[derive(Clone, Copy)]
enum Number {
    Double,
    Single,
    Long,
    Int,
}

#[derive(Clone, Copy, PartialEq)]
enum Codec {
    Checksum,
    Zstandard,
    Gzip,
    Zlib,
}

#[derive(Deserialize)]
struct Version3 {
    node_type: String,
    shape: Option<Vec<usize>>,
    data_type: Option<Value>,
    chunk_grid: Option<Named>,
    chunk_key_encoding: Option<Named>,
    #[serde(default)]
    fill_value: Value,
    #[serde(default)]
    codecs: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    #[serde(default)]
    configuration: Value,
}

#[derive(Deserialize)]
struct Version2 {
    shape: Vec<usize>,
    chunks: Vec<usize>,
    dtype: Value,
    compressor: Option<Value>,
    filters: Option<Vec<Value>>,
    order: String,
    #[serde(default)]
    fill_value: Value,
    dimension_separator: Option<char>,
}

impl Array {
    fn open(path: &Path) -> Result<Array, String> {
        let text = |name: &str| regular::read(&path.join(name));
        let parsed = |error: serde_json::Error| format!("its metadata: {error}");
        let array = match (text("zarr.json"), text(".zarray")) {
            (Ok(text), _) => Array::of_3(serde_json::from_slice(&text).map_err(parsed)?)?,
            (_, Ok(text)) => Array::of_2(serde_json::from_slice(&text).map_err(parsed)?)?,
            _ => return Err("it is a group: name one of its arrays behind a colon".to_string()),
        };
        let chunk = array.chunk.iter().try_fold(1usize, |all, &length| all.checked_mul(length));
        match array.shape.len() == array.chunk.len() && chunk.is_some_and(|count| count > 0) {
            true => Ok(array),
            false => Err("the lengths of its chunks are not those of an array".to_string()),
        }
    }

    fn of_3(document: Version3) -> Result<Array, String> {
        if document.node_type != "array" {
            return Err("it is a group: name one of its arrays behind a colon".to_string());
        }
        let missing = |what: &str| format!("its metadata lack {what}");
        let shape = document.shape.ok_or_else(|| missing("shape"))?;
        let grid = document.chunk_grid.ok_or_else(|| missing("chunk_grid"))?;
        if grid.name != "regular" {
            return Err(format!("its chunks are {}, and only regular ones are read", grid.name));
        }
        let chunk = serde_json::from_value(grid.configuration["chunk_shape"].clone())
            .map_err(|_| missing("chunk_shape"))?;
        let data_type = document.data_type.unwrap_or_default();
        let number = match data_type.as_str() {
            Some("float64") => Number::Double,
            Some("float32") => Number::Single,
            Some("int64") => Number::Long,
            Some("int32") => Number::Int,
            _ => return Err(other_type(&data_type)),
        };
        let keys = document.chunk_key_encoding;
        let separator = |default: char| {
            let given = keys.as_ref().and_then(|keys| keys.configuration["separator"].as_str());
            given.and_then(|text| text.chars().next()).unwrap_or(default)
        };
        let key = match keys.as_ref().map(|keys| keys.name.as_str()) {
            Some("v2") => ("", separator('.')),
            _ => ("c", separator('/')),
        };
        let (mut little, mut codecs) = (true, Vec::new());
        for codec in &document.codecs {
            match codec.name.as_str() {
                "bytes" => little = codec.configuration["endian"] != "big",
                "crc32c" => codecs.push(Codec::Checksum),
                "zstd" => codecs.push(Codec::Zstandard),
                "gzip" => codecs.push(Codec::Gzip),
                other => return Err(other_codec(other)),
            }
        }
        let fill = number_of(&document.fill_value);
        Ok(Array { shape, chunk, number, little, fill, codecs, key })
    }

    fn of_2(document: Version2) -> Result<Array, String> {
        let (little, number) = match document.dtype.as_str().unwrap_or_default().split_at_checked(1)
        {
            Some((order, kind)) if order == "<" || order == ">" => {
                let number = match kind {
                    "f8" => Number::Double,
                    "f4" => Number::Single,
                    "i8" => Number::Long,
                    "i4" => Number::Int,
                    _ => return Err(other_type(&document.dtype)),
                };
                (order == "<", number)
            }
            _ => return Err(other_type(&document.dtype)),
        };
        if document.order != "C" {
            return Err("it is not in the order of C: store numpy.ascontiguousarray(…)".to_string());
        }
        if let Some(filter) = document.filters.iter().flatten().next() {
            return Err(other_codec(filter["id"].as_str().unwrap_or("a filter")));
        }
        let codecs = match document.compressor.as_ref().and_then(|codec| codec["id"].as_str()) {
            None => Vec::new(),
            Some("zstd") => vec![Codec::Zstandard],
            Some("gzip") => vec![Codec::Gzip],
            Some("zlib") => vec![Codec::Zlib],
            Some(other) => return Err(other_codec(other)),
        };
        let key = ("", document.dimension_separator.unwrap_or('.'));
        let (shape, chunk, fill) =
            (document.shape, document.chunks, number_of(&document.fill_value));
        Ok(Array { shape, chunk, number, little, fill, codecs, key })
    }

    /// Numbers of the chunk at a place; `None` if it is not stored, and is full of the fill value.
    fn chunk_at(&self, path: &Path, place: &[usize]) -> Result<Option<Vec<f64>>, String> {
        let (prefix, separator) = self.key;
        let mut key = prefix.to_string();
        for number in place {
            if !key.is_empty() {
                key.push(separator);
            }
            key.push_str(&number.to_string());
        }
        let mut bytes = match regular::read(&path.join(&key)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("chunk {key}: {error}")),
        };
        for codec in self.codecs.iter().rev() {
            bytes = codec.decoded(bytes).map_err(|reason| format!("chunk {key}: {reason}"))?;
        }
        let numbers = self.numbers(&bytes);
        match numbers.len() == self.chunk.iter().product::<usize>() {
            true => Ok(Some(numbers)),
            false => Err(format!("chunk {key}: it has {} numbers", numbers.len())),
        }
    }

    fn numbers(&self, bytes: &[u8]) -> Vec<f64> {
        fn each<const N: usize>(bytes: &[u8], little: bool, to: fn([u8; N]) -> f64) -> Vec<f64> {
            let mut chunks = bytes.as_chunks::<N>().0.to_vec();
            if !little {
                chunks.iter_mut().for_each(|chunk| chunk.reverse());
            }
            chunks.into_iter().map(to).collect()
        }
        match self.number {
            Number::Double => each(bytes, self.little, f64::from_le_bytes),
            Number::Single => each(bytes, self.little, |b| f32::from_le_bytes(b).into()),
            Number::Long => each(bytes, self.little, |b| i64::from_le_bytes(b) as f64),
            Number::Int => each(bytes, self.little, |b| i32::from_le_bytes(b).into()),
        }
    }

    /// Copy what lies within the array, row by row of the last dimension.
    fn copy(&self, chunk: &[f64], place: &[usize], numbers: &mut [f64]) {
        let dimensions = self.shape.len();
        let first: Vec<usize> =
            place.iter().zip(&self.chunk).map(|(at, length)| at * length).collect();
        let inside: Vec<usize> =
            (0..dimensions).map(|d| self.chunk[d].min(self.shape[d] - first[d])).collect();
        let (run, mut at) = (inside[dimensions - 1], vec![0; dimensions - 1]);
        loop {
            let offset = |lengths: &[usize], start: &dyn Fn(usize) -> usize| {
                (0..dimensions).fold(0, |offset, d| {
                    offset * lengths[d] + start(d) + at.get(d).copied().unwrap_or(0)
                })
            };
            let (from, to) = (offset(&self.chunk, &|_| 0), offset(&self.shape, &|d| first[d]));
            numbers[to..to + run].copy_from_slice(&chunk[from..from + run]);
            if !advance(&mut at, &inside[..dimensions - 1]) {
                return;
            }
        }
    }
}

impl Codec {
    fn decoded(self, mut bytes: Vec<u8>) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let read = match self {
            Codec::Checksum => {
                let length = bytes.len().checked_sub(4).ok_or("it is cut off")?;
                let sum = bytes.split_off(length);
                return match crc32c::crc32c(&bytes).to_le_bytes()[..] == sum[..] {
                    true => Ok(bytes),
                    false => Err("its checksum is another".to_string()),
                };
            }
            Codec::Zstandard => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(&bytes[..]);
                decoder.map_err(|error| error.to_string())?.read_to_end(&mut out)
            }
            Codec::Gzip => flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut out),
            Codec::Zlib => flate2::read::ZlibDecoder::new(&bytes[..]).read_to_end(&mut out),
        };
        read.map(|_| out).map_err(|error| error.to_string())
    }
}

fn number_of(value: &Value) -> f64 {
    let text = || value.as_str().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
    value.as_f64().unwrap_or_else(text)
}

fn other_type(kind: &Value) -> String {
    format!("it holds {kind}: store floats, as array.astype(float)")
}

fn other_codec(name: &str) -> String {
    format!(
        "it is stored with {name}, and only Zstandard and gzip are read: store it without compressors, as an array of .npy, or as CSV"
    )
}
