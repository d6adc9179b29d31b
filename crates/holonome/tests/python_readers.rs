//! Test that zarr-python (3 or later) and xarray open a run as a labelled data set: just created,
//! under way, and finished.
//!
//! The test needs a Python with both packages, named by the environment variable `HOLONOME_PYTHON`:
//!
//! ```text
//! python3 -m venv .venv && .venv/bin/pip install zarr xarray
//! HOLONOME_PYTHON=$PWD/.venv/bin/python cargo test -p holonome --test python_readers
//! ```
//!
//! Without the variable the test is SKIPPED and says so; continuous integration sets it, and then a
//! missing package is a failure.

use holonome::store::{ArrayLayout, Dimension, Label, Layout, Role, Status, Store};
use serde_json::{Map, Value, json};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

const SAMPLES: usize = 7;

#[test]
fn zarr_python_and_xarray_read_a_run() {
    let Some(python) = env::var_os("HOLONOME_PYTHON") else {
        eprintln!(
            "SKIPPED: set HOLONOME_PYTHON to a Python that has zarr and xarray (see the head of this file)"
        );
        return;
    };
    let folder = env::temp_dir().join(format!("holonome-python-readers-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let run = folder.join("run");
    let layout = layout();
    let check = |samples: usize, stage: &str| {
        let expected = folder.join("expected.json");
        fs::write(&expected, expected_contents(&layout, samples).to_string()).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python_readers.py");
        let output = Command::new(&python).arg(script).args([&run, &expected]).output();
        let output = output
            .unwrap_or_else(|error| panic!("HOLONOME_PYTHON ({}): {error}", python.display()));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stage}:\n{text}");
    };

    let mut store = Store::create(&run, &layout).unwrap();
    check(0, "just created");
    for sample in 0..SAMPLES {
        let rows: Vec<Vec<f64>> =
            (0..layout.arrays.len()).map(|array| row(&layout, array, sample)).collect();
        store.append(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
        if sample == 2 {
            store.checkpoint(&json!({"t": 0.5})).unwrap();
            // Files that a kill in the middle of a write leaves.
            fs::write(run.join("q/.tmp-c.0.0"), "torn").unwrap();
            fs::write(run.join(".tmp-checkpoint.bin"), "torn").unwrap();
            check(3, "under way");
        }
    }
    store.finish(Status::Finished, json!({"wall_seconds": 0.01})).unwrap();
    check(SAMPLES, "finished");
    fs::remove_dir_all(&folder).unwrap();
}

/// Layout with all kinds of arrays: scalar, vector, matrix, families with one and two indices, with
/// dependent ranges and without members, chunks of one row; and names that clash with dimensions or
/// are not ASCII.
fn layout() -> Layout {
    let mut layout =
        Layout { times: (0..SAMPLES).map(|k| 0.25 * k as f64).collect(), ..Layout::default() };
    let vector = layout.dimension(Dimension::component(3));
    let (row, column) =
        (layout.dimension(Dimension::row(3)), layout.dimension(Dimension::column(3)));
    let i = layout.dimension(Dimension::index("i", 2..=4));
    let other_i = layout.dimension(Dimension::index("i", 1..=2));
    let many = layout.dimension(Dimension::index("many", 1..=40_000));
    let none = layout.dimension(Dimension::index("none", []));
    let label =
        |name: &str, values: [i64; 3]| Label { name: name.to_string(), values: values.to_vec() };
    let members = layout
        .dimension(Dimension::members("rod", vec![label("i", [1, 1, 2]), label("j", [2, 3, 3])]));
    let mut add = |name: &str, dimensions: &[&String]| {
        let dimensions = dimensions.iter().map(|name| name.to_string()).collect();
        let description = format!("the variable {name}");
        layout.arrays.push(ArrayLayout {
            name: name.to_string(),
            dimensions,
            description,
            ..ArrayLayout::default()
        });
    };
    add("time", &[]);
    add("q", &[&vector]);
    add("R", &[&row, &column]);
    add("r", &[&i, &vector]);
    add("x", &[&i, &other_i]);
    add("rod", &[&members]);
    add("link", &[&none, &vector]);
    add("θ", &[]);
    add("large", &[&many]);
    layout.attributes.insert("model".to_string(), "coordinate θ\n".into());
    layout.attributes.insert("step".to_string(), 0.1.into());
    layout
}

fn row(layout: &Layout, array: usize, sample: usize) -> Vec<f64> {
    let length: usize = shape(layout, array).iter().product();
    // A negative zero shows that readers get the bytes and not just the number.
    let number = |place: usize| match (sample, place) {
        (0, 0) => -0.0,
        _ => 0.1 + sample as f64 + 1e3 * array as f64 + 1e-6 * place as f64,
    };
    (0..length).map(number).collect()
}

fn shape(layout: &Layout, array: usize) -> Vec<usize> {
    let length =
        |name: &String| layout.dimensions.iter().find(|known| known.name == *name).unwrap().len();
    layout.arrays[array].dimensions.iter().map(length).collect()
}

/// Contents that Python must find. The variables `time` and `rod` keep their names, so those
/// dimensions get an underscore.
fn expected_contents(layout: &Layout, samples: usize) -> Value {
    let stored = |name: &str| {
        if matches!(name, "time" | "rod") { format!("{name}_") } else { name.to_string() }
    };
    let mut variables = Map::new();
    for (k, array) in layout.arrays.iter().enumerate() {
        let dimensions: Vec<String> = [&"time".to_string()]
            .into_iter()
            .chain(&array.dimensions)
            .map(|name| stored(name))
            .collect();
        let shape: Vec<usize> = [SAMPLES].into_iter().chain(shape(layout, k)).collect();
        let values: Vec<f64> = (0..samples).flat_map(|sample| row(layout, k, sample)).collect();
        let variable = json!({"dimensions": dimensions, "shape": shape, "values": values, "description": array.description});
        variables.insert(array.name.clone(), variable);
    }
    let mut coordinates = Map::new();
    coordinates.insert(
        stored("time"),
        json!({"type": "float64", "dimension": stored("time"), "values": layout.times}),
    );
    for dimension in &layout.dimensions {
        for label in &dimension.labels {
            let own = dimension.labels.len() == 1;
            let name = if own {
                stored(&dimension.name)
            } else {
                format!("{}_{}", dimension.name, label.name)
            };
            let coordinate = match (dimension.role, dimension.len()) {
                (Role::Component, 3) => json!({"type": "text", "values": ["x", "y", "z"]}),
                _ => json!({"type": "int64", "values": label.values}),
            };
            let mut coordinate = coordinate;
            coordinate["dimension"] = json!(stored(&dimension.name));
            coordinates.insert(name, coordinate);
        }
    }
    let mut attributes = layout.attributes.clone();
    let sum = |value: &Value| format!("{:08x}", crc32c::crc32c(value.to_string().as_bytes()));
    let sums: Map<String, Value> =
        attributes.iter().map(|(key, value)| (key.clone(), json!(sum(value)))).collect();
    attributes.insert("holonome_format".to_string(), 3.into());
    attributes.insert("holonome_checksums".to_string(), sums.into());
    json!({"variables": variables, "coordinates": coordinates, "attributes": attributes})
}
