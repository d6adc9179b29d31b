//! Groups that a run has when it has ended, `KIND/NAME` such as `measures/angle`: small arrays, each of
//! one chunk, with dimensions and coordinates of their own.
//!
//! They are built in a hidden folder that is then renamed, before the document of the run lists them.
//! A run that goes on has none: its document forgets them first, and their folders are removed next.

use super::chunks;
use super::create;
use super::error::StoreError;
use super::files;
use super::layout::Dimension;
use super::names::ClaimedNames;
use super::reader::StoredRun;
use super::schema::{Axis, Grid, Schema};
use super::zarr::{self, Document};
use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::path::Path;

/// A group of a run's end, `KIND/NAME`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    /// Name of the group that holds all of its kind, such as `measures`.
    pub kind: &'static str,
    /// Name in the model.
    pub name: String,
    /// Attributes: texts and numbers.
    pub attributes: Map<String, Value>,
    /// Dimensions whose places have labels: indices and components.
    pub dimensions: Vec<Dimension>,
    /// The arrays.
    pub arrays: Vec<GroupArray>,
}

/// An array of a [`Group`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GroupArray {
    /// Name.
    pub name: String,
    /// Description in one line.
    pub description: String,
    /// Names and lengths of its dimensions, outermost first; none for a single number.
    pub shape: Vec<(String, usize)>,
    /// Its numbers, the last dimension running fastest.
    pub values: Vec<f64>,
    /// True for a coordinate of its dimensions, such as the edges of bins.
    pub is_coordinate: bool,
}

/// Write the groups of an ended run, in place of earlier ones. Returns their documents by path.
pub(super) fn write(
    path: &Path,
    schema: &Schema,
    groups: &[Group],
) -> Result<Vec<(String, Value)>, StoreError> {
    let case_matters = || files::tells_case_apart(path);
    let mut names = ClaimedNames::new(&case_matters);
    schema.stored_names().for_each(|name| drop(names.claim(name)));
    let mut documents = Vec::new();
    for of_kind in groups.chunk_by(|a, b| a.kind == b.kind) {
        let name = names.claim(of_kind[0].kind);
        let (target, hidden) = (path.join(&name), create::hidden_folder(&path.join(&name))?);
        let put = || {
            let documents = fill(&hidden, (path, schema), of_kind)?;
            remove(&target)?;
            match fs::rename(&hidden, &target) {
                // Another worker has written the same.
                Err(_) if target.join("zarr.json").exists() => drop(fs::remove_dir_all(&hidden)),
                renamed => renamed.map_err(|error| StoreError::write(&target, error))?,
            }
            Ok(documents)
        };
        let written = put().inspect_err(|_| drop(fs::remove_dir_all(&hidden)))?;
        documents.extend(written.into_iter().map(|(below, document)| match below {
            Some(below) => (format!("{name}/{below}"), document),
            None => (name.clone(), document),
        }));
    }
    Ok(documents)
}

/// Remove the folders of groups that had documents `before` and have none `now`.
pub(super) fn forget(
    path: &Path,
    before: &[(String, Value)],
    now: &[(String, Value)],
) -> Result<(), StoreError> {
    let outer = before.iter().map(|(name, _)| name).filter(|name| !name.contains('/'));
    let gone = outer.filter(|name| !now.iter().any(|(other, _)| other == *name));
    gone.into_iter().try_for_each(|name| remove(&path.join(name)))
}

fn remove(folder: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::write(folder, error))
        }
        _ => Ok(()),
    }
}

/// Documents by their paths below a group; its own has none.
type Below = Vec<(Option<String>, Value)>;

/// Fill a folder with the groups of one kind.
fn fill(
    folder: &Path,
    (path, schema): (&Path, &Schema),
    groups: &[Group],
) -> Result<Below, StoreError> {
    let document = zarr::group_of(&Map::new());
    create::write_document(folder, &document)?;
    let mut documents = vec![(None, document)];
    let case_matters = || files::tells_case_apart(path);
    let mut names = ClaimedNames::new(&case_matters);
    for group in groups {
        let own = names.claim(&group.name);
        let group = aligned((path, schema), group)?;
        for (below, document) in fill_group(&folder.join(&own), &group)? {
            let name = below.map_or_else(|| own.clone(), |array| format!("{own}/{array}"));
            documents.push((Some(name), document));
        }
    }
    Ok(documents)
}

/// Write one group into a new folder.
fn fill_group(folder: &Path, group: &Group) -> Result<Below, StoreError> {
    let document = zarr::group_of(&group.attributes);
    create_folder(folder)?;
    create::write_document(folder, &document)?;
    let mut documents = vec![(None, document)];
    let mut add = |(name, document): Document| {
        create::write_document(&folder.join(&name), &document)?;
        let document = serde_json::to_value(document).expect("metadata are JSON");
        documents.push((Some(name), document));
        Ok(())
    };
    let mut names = ClaimedNames::new(&|| true);
    group.arrays.iter().for_each(|array| drop(names.claim(&array.name)));
    let axes =
        group.dimensions.iter().map(|dimension| dimension.axis(&mut |name| names.claim(name)));
    let axes: Vec<Axis> = axes.collect();
    for array in &group.arrays {
        create_folder(&folder.join(&array.name))?;
        chunks::write_numbers(&folder.join(&array.name), array.shape.len(), &array.values)?;
        let along = |name: &str| array.shape.iter().any(|(own, _)| own == name);
        let is_beside = |other: &&GroupArray| {
            other.is_coordinate && !along(&other.name) && other.shape.iter().all(|(d, _)| along(d))
        };
        let others = group.arrays.iter().filter(is_beside).map(|other| other.name.as_str());
        let labels = axes.iter().filter(|axis| along(&axis.stored)).flat_map(Axis::extra_labels);
        let beside: Vec<&str> = match array.is_coordinate {
            true => Vec::new(),
            false => others.chain(labels.map(|(_, array)| array.as_str())).collect(),
        };
        let names = (&*array.name, &*array.description);
        add(zarr::group_array(names, &array.shape, &beside.join(" ")))?;
    }
    for (axis, dimension) in axes.iter().zip(&group.dimensions) {
        for (_, array) in &axis.labels {
            create_folder(&folder.join(array))?;
        }
        create::write_labels(folder, axis, dimension)?;
        zarr::axis_documents(axis).into_iter().try_for_each(&mut add)?;
    }
    Ok(documents)
}

fn create_folder(folder: &Path) -> Result<(), StoreError> {
    fs::create_dir(folder).map_err(|error| StoreError::write(folder, error))
}

/// The group with other names for those of its dimensions that the run has with other places: a
/// group inherits the coordinates of the run.
fn aligned((path, schema): (&Path, &Schema), group: &Group) -> Result<Group, StoreError> {
    let mut group = group.clone();
    let shapes = group.arrays.iter().flat_map(|array| &array.shape);
    let mut names: Vec<String> = shapes.map(|(name, _)| name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    for name in &names {
        let own = group.dimensions.iter().find(|dimension| dimension.name == *name);
        let of_run = schema.axes.iter().find(|axis| axis.stored == *name);
        let shared = match (own, of_run) {
            (Some(dimension), Some(axis)) => is_same(path, axis, dimension)?,
            _ => !schema.stored_names().any(|other| other == name),
        };
        if !shared {
            let is_taken = |new: &String| {
                names.contains(new) || schema.stored_names().any(|other| other == new)
            };
            let mut candidates = (2..).map(|k| format!("{name}_{k}"));
            let new = candidates.find(|new| !is_taken(new)).expect("one of all is free");
            group.rename(name, &new);
        }
    }
    Ok(group)
}

/// True if a dimension of a run has these places.
fn is_same(path: &Path, axis: &Axis, dimension: &Dimension) -> Result<bool, StoreError> {
    let ([(_, array)], [label]) = (&axis.labels[..], &dimension.labels[..]) else {
        return Ok(false);
    };
    if (axis.role, axis.length) != (dimension.role, dimension.len()) {
        return Ok(false);
    }
    let chunk_rows = Grid::new(axis.length, Vec::new()).chunk_rows;
    Ok(axis.letters().is_some()
        || chunks::read_integers(&path.join(array), axis.length, chunk_rows)? == label.values)
}

impl StoredRun {
    /// Names in the store of the groups of a kind, such as `events`.
    pub(crate) fn groups(&self, kind: &str) -> Vec<String> {
        let below = self.schema().groups.iter().filter_map(|(path, _)| {
            path.strip_prefix(kind)?.strip_prefix('/').filter(|name| !name.contains('/'))
        });
        below.map(str::to_string).collect()
    }

    /// Numbers of an array of the group `KIND/NAME`; `None` if it has no such array.
    ///
    /// # Errors
    /// If its file is damaged.
    pub(crate) fn of_group(
        &self,
        (kind, name): (&str, &str),
        array: &str,
    ) -> Result<Option<Vec<f64>>, StoreError> {
        let wanted = format!("{kind}/{name}/{array}");
        let Some((path, document)) = self.schema().groups.iter().find(|(path, _)| *path == wanted)
        else {
            return Ok(None);
        };
        let dimensions = document["shape"].as_array().map_or(0, Vec::len);
        chunks::read_numbers(&self.path().join(path), dimensions).map(Some)
    }
}

impl Group {
    /// Rename a dimension, with the coordinate of its name.
    fn rename(&mut self, name: &str, new: &str) {
        for array in &mut self.arrays {
            let own = array.shape.iter_mut().map(|(own, _)| own);
            let coordinate = array.is_coordinate.then_some(&mut array.name);
            own.chain(coordinate).filter(|own| *own == name).for_each(|own| *own = new.to_string());
        }
        for dimension in self.dimensions.iter_mut().filter(|dimension| dimension.name == name) {
            dimension.rename(new.to_string());
        }
    }
}

impl GroupArray {
    /// Array of these numbers.
    pub fn new(
        name: &str,
        description: &str,
        shape: &[(String, usize)],
        values: Vec<f64>,
        is_coordinate: bool,
    ) -> GroupArray {
        let (name, description) = (name.to_string(), description.to_string());
        GroupArray { name, description, shape: shape.to_vec(), values, is_coordinate }
    }
}
