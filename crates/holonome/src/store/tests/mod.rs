//! Tests of the modules together, on real files.

mod claims;
mod crash;
mod exports;
mod failures;
mod groups;
mod layouts;
mod molecules;

use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder for one test, removed at its end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("holonome-store-{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Layout with every kind of array: scalar, vector, matrix, families with one and two indices, with
/// dependent ranges and without members, and names that clash with dimensions or are not fit for a
/// path.
pub(crate) fn every_kind(samples: usize) -> Layout {
    let mut layout =
        Layout { times: (0..samples).map(|k| 0.25 * k as f64).collect(), ..Layout::default() };
    let vector = layout.dimension(Dimension::component(3));
    let (row, column) =
        (layout.dimension(Dimension::row(3)), layout.dimension(Dimension::column(3)));
    let i = layout.dimension(Dimension::index("i", 2..=4));
    let other_i = layout.dimension(Dimension::index("i", 1..=2));
    let none = layout.dimension(Dimension::index("none", []));
    let labels = [("i", vec![1, 1, 2]), ("j", vec![2, 3, 3])];
    let labels = labels.map(|(name, values)| Label { name: name.to_string(), values });
    let member = layout.dimension(Dimension::members("rod", labels.to_vec()));
    layout.arrays = vec![
        array("time", &[]),
        array("q", &[&vector]),
        array("R", &[&row, &column]),
        array("r", &[&i, &vector]),
        array("x", &[&i, &other_i]),
        array("rod", &[&member]),
        array("link", &[&none, &vector]),
        array("__θ/2", &[]),
    ];
    layout.attributes.insert("model".to_string(), "coordinate q : R^3\n".into());
    layout
}

pub(crate) fn array(name: &str, dimensions: &[&str]) -> ArrayLayout {
    ArrayLayout {
        name: name.to_string(),
        dimensions: dimensions.iter().map(|name| name.to_string()).collect(),
        description: format!("about {name}"),
        ..ArrayLayout::default()
    }
}

/// Arrays whose chunks have 1, 2, 3 and all rows (a chunk has at most 131072 numbers), so that a
/// run of a few samples meets every border.
fn several_chunks(samples: usize) -> Layout {
    let mut layout =
        Layout { times: (0..samples).map(|k| k as f64).collect(), ..Layout::default() };
    for (name, length) in [("one", 80_000), ("two", 60_000), ("three", 40_000)] {
        let dimension = layout.dimension(Dimension::component(length));
        layout.arrays.push(array(name, &[&dimension]));
    }
    layout.arrays.push(array("all", &[]));
    layout
}

fn lengths(layout: &Layout) -> Vec<usize> {
    let length =
        |name: &String| layout.dimensions.iter().find(|known| known.name == *name).unwrap().len();
    layout.arrays.iter().map(|array| array.dimensions.iter().map(length).product()).collect()
}

/// Numbers of one sample: different in each place, and not integers.
fn sample(layout: &Layout, sample: usize) -> Vec<Vec<f64>> {
    let number =
        |array: usize, place: usize| 0.1 + sample as f64 + 1e3 * array as f64 + 1e-6 * place as f64;
    lengths(layout)
        .iter()
        .enumerate()
        .map(|(k, &length)| (0..length).map(|place| number(k, place)).collect())
        .collect()
}

fn append(store: &mut Store, layout: &Layout, number: usize) -> Result<(), StoreError> {
    let rows = sample(layout, number);
    store.append(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn append_all(store: &mut Store, layout: &Layout) {
    for number in store.samples()..layout.times.len() {
        append(store, layout, number).unwrap();
    }
}

/// Files of the whole run, written in one go.
fn uninterrupted(path: &Path, layout: &Layout) -> BTreeMap<String, Vec<u8>> {
    let mut store = Store::create(path, layout).unwrap();
    append_all(&mut store, layout);
    store.finish(Status::Finished, "done").unwrap();
    files_of(path)
}

/// Every file of a run by its relative path, without `checkpoint.bin`, which only resumed runs
/// have.
fn files_of(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(run).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        if path.is_dir() {
            files.extend(
                files_of(&path).into_iter().map(|(file, bytes)| (format!("{name}/{file}"), bytes)),
            );
        } else if name != "checkpoint.bin" {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

fn resume(path: &Path) -> (Store, Option<serde_json::Value>) {
    match Store::resume(path).unwrap() {
        ResumedStore::Continues { store, state } => {
            (*store, state.map(|state| state.state().unwrap()))
        }
        ResumedStore::Finished { .. } => panic!("the run is finished"),
    }
}
