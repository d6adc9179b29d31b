//! Groups of a run that has ended.

use super::*;
use serde_json::{Map, Value, json};

fn group(name: &str, dimension: Dimension, values: &[f64]) -> Group {
    let shape = [(dimension.name.clone(), dimension.len())];
    let value = GroupArray::new("value", "some numbers", &shape, values.to_vec(), false);
    let single = GroupArray::new("total", "a number", &[], vec![values.iter().sum()], false);
    let attributes = Map::from_iter([("samples".to_string(), json!(7))]);
    Group {
        kind: "measures",
        name: name.to_string(),
        attributes,
        dimensions: vec![dimension],
        arrays: vec![value, single],
    }
}

fn document(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path.join("zarr.json")).unwrap()).unwrap()
}

/// Names of what belongs to groups, as the run's document lists them.
fn listed(path: &Path) -> Vec<String> {
    let document = document(path);
    let metadata = document["consolidated_metadata"]["metadata"].as_object().unwrap();
    let inside = metadata
        .iter()
        .filter(|(name, document)| name.contains('/') || document["node_type"] == "group");
    inside.map(|(name, _)| name.clone()).collect()
}

fn dimensions(path: &Path, array: &str) -> Value {
    document(&path.join(array))["dimension_names"].clone()
}

#[test]
fn groups_come_with_the_end_and_go_with_a_continuation() {
    let scratch = Scratch::new();
    let path = scratch.join("run");
    let mut layout = every_kind(3);
    layout.arrays.push(array("measures", &[]));
    let mut store = Store::create(&path, &layout).unwrap();
    store.checkpoint(&0).unwrap();
    store.finish(Status::Interrupted, ()).unwrap();
    let groups = [
        // The places of the run's own dimension i, and others.
        group("same", Dimension::index("i", 2..=4), &[1.0, 2.0, 3.5]),
        group("other/i", Dimension::index("i", 1..=3), &[1.0, 2.0, f64::NAN]),
        group("letters", Dimension::component(3), &[4.0, 5.0, 6.0]),
        group("time", Dimension::index("time", 1..=1), &[0.5]),
    ];
    let ending = Map::from_iter([("t".to_string(), json!(0.25))]);
    store.publish(ending, &groups).unwrap();
    drop(store);
    let run = StoredRun::open(&path).unwrap();
    assert_eq!(run.arrays().len(), layout.arrays.len(), "groups are no arrays of the run");
    // The folder of a variable keeps its name.
    assert_eq!(document(&path.join("measures"))["node_type"], "array");
    assert_eq!(document(&path.join("measures_/same"))["attributes"], json!({"samples": 7}));
    for name in
        ["measures_", "measures_/other_i", "measures_/other_i/value", "measures_/time/total"]
    {
        assert!(listed(&path).contains(&name.to_string()), "{name}: {:?}", listed(&path));
    }
    assert_eq!(dimensions(&path, "measures_/same/value"), json!(["i"]));
    assert_eq!(dimensions(&path, "measures_/other_i/value"), json!(["i_3"]), "i_2 is another");
    assert!(path.join("measures_/other_i/i_3/c.0").exists());
    assert_eq!(dimensions(&path, "measures_/letters/value"), json!(["component_3"]));
    assert_eq!(dimensions(&path, "measures_/time/value"), json!(["time_2"]));
    assert_eq!(dimensions(&path, "measures_/same/total"), json!([]));
    let chunk = fs::read(path.join("measures_/same/value/c.0")).unwrap();
    let numbers: Vec<f64> =
        chunk[..24].as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect();
    assert_eq!(numbers, [1.0, 2.0, 3.5]);

    let ResumedStore::Continues { mut store, .. } = Store::resume(&path).unwrap() else {
        panic!("it was interrupted");
    };
    assert!(listed(&path).is_empty() && !path.join("measures_").exists());
    store.publish(Map::new(), &groups[..1]).unwrap();
    store.publish(Map::new(), &groups[2..]).unwrap();
    assert!(!path.join("measures_/same").exists() && path.join("measures_/letters").exists());
    store.publish(Map::new(), &[]).unwrap();
    assert!(listed(&path).is_empty());
    assert!(!path.join("measures_").exists(), "nothing is left of what is no longer listed");
    let names = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}
