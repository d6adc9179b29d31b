//! Serialised forms of numbers, paths and names that several results share. JSON has no NaN and no
//! infinities: they are written as `null`, and `null` is read as NaN.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::PathBuf;

/// Numbers as nested arrays.
pub(crate) struct Nested<'a> {
    /// The numbers.
    pub numbers: &'a [f64],
    /// Length of each dimension.
    pub dimensions: &'a [usize],
}

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.dimensions {
            [] => self.numbers[0].serialize(serializer),
            [_] => self.numbers.serialize(serializer),
            [_, rest @ ..] => {
                let size: usize = rest.iter().product();
                let inner = self.numbers.chunks(size.max(1));
                serializer.collect_seq(inner.map(|numbers| Nested { numbers, dimensions: rest }))
            }
        }
    }
}

/// A number, or those of a family, a vector or a matrix. In JSON a number, or nested arrays.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Tree")]
pub struct NumberArray {
    /// The numbers, the last dimension fastest.
    pub numbers: Vec<f64>,
    /// Length of each dimension; empty for a single number.
    pub dimensions: Vec<usize>,
}

impl NumberArray {
    /// A single number.
    pub(crate) fn of(number: f64) -> NumberArray {
        NumberArray { numbers: vec![number], dimensions: Vec::new() }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        self.dimensions.is_empty().then(|| self.numbers[0])
    }

    /// Text for a cell of a table, as `(1, 2)`; a list of more than `most` entries is counted only.
    pub fn text(&self, most: usize, number: fn(f64) -> String) -> String {
        let (length, rest) = match &self.dimensions[..] {
            [] => return number(self.numbers[0]),
            [length, ..] if *length > most => return format!("{length} numbers"),
            [length, rest @ ..] => (*length, rest.to_vec()),
        };
        let size = self.numbers.len() / length.max(1);
        let inner = self.numbers.chunks(size.max(1)).map(|numbers| {
            NumberArray { numbers: numbers.to_vec(), dimensions: rest.clone() }.text(most, number)
        });
        format!("({})", inner.collect::<Vec<_>>().join(", "))
    }
}

impl Serialize for NumberArray {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Nested { numbers: &self.numbers, dimensions: &self.dimensions }.serialize(serializer)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Tree {
    Number(Option<f64>),
    List(Vec<Tree>),
}

impl From<Tree> for NumberArray {
    fn from(tree: Tree) -> NumberArray {
        let list = match tree {
            Tree::Number(number) => return NumberArray::of(number.unwrap_or(f64::NAN)),
            Tree::List(list) => list,
        };
        let length = list.len();
        let parts: Vec<NumberArray> = list.into_iter().map(NumberArray::from).collect();
        let mut dimensions = vec![length];
        dimensions.extend(parts.first().iter().flat_map(|part| &part.dimensions));
        NumberArray {
            numbers: parts.into_iter().flat_map(|part| part.numbers).collect(),
            dimensions,
        }
    }
}

/// A number, or NaN.
pub(crate) fn number_or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// A path as its text, which need not be UTF-8.
pub(crate) fn path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(to)
}
