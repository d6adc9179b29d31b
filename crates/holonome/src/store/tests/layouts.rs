//! Storing and reading back, and the paths of runs.

use super::*;
use std::thread;

#[test]
fn what_is_written_is_read() {
    let scratch = Scratch::new();
    let path = scratch.join("run");
    for layout in [every_kind(7), every_kind(1), several_chunks(8)] {
        let _ = fs::remove_dir_all(&path);
        let mut store = Store::create(&path, &layout).unwrap();
        append_all(&mut store, &layout);
        store.finish(Status::Finished, 3).unwrap();

        let run = StoredRun::open(&path).unwrap();
        assert_eq!((run.status(), run.summary()), (Status::Finished, &3.into()));
        assert_eq!(run.attributes(), &layout.attributes);
        assert_eq!(run.times().unwrap(), layout.times);
        for (k, array) in layout.arrays.iter().enumerate() {
            let expected: Vec<f64> = (0..layout.times.len())
                .flat_map(|number| sample(&layout, number).remove(k))
                .collect();
            assert_eq!(run.read(&array.name).unwrap(), expected, "{}", array.name);
            let last = layout.times.len() - 1;
            assert_eq!(run.rows(&array.name).unwrap().row(last).unwrap(), sample(&layout, last)[k]);
        }
    }
}

#[test]
fn every_bit_of_a_number_is_kept() {
    let scratch = Scratch::new();
    let path = scratch.join("run");
    let numbers = [-0.0, f64::NAN, f64::INFINITY, 5e-324, f64::MAX, 0.1 + 0.2];
    let layout = Layout {
        times: vec![0.0; numbers.len()],
        arrays: vec![array("a", &[])],
        ..Layout::default()
    };
    let mut store = Store::create(&path, &layout).unwrap();
    for number in numbers {
        store.append(&[&[number]]).unwrap();
    }
    store.finish(Status::Finished, ()).unwrap();
    let read = StoredRun::open(&path).unwrap().read("a").unwrap();
    assert_eq!(read.map_bits(), numbers.to_vec().map_bits());
}

#[test]
fn one_nan_is_stored_for_all() {
    let scratch = Scratch::new();
    let path = scratch.join("run");
    // Rows of a chunk, and large ones.
    for length in [1, 70_000] {
        let _ = fs::remove_dir_all(&path);
        let mut layout = Layout { times: vec![0.0; 2], ..Layout::default() };
        let dimension = layout.dimension(Dimension::component(length));
        layout.arrays.push(array("a", &[&dimension]));
        let mut store = Store::create(&path, &layout).unwrap();
        for number in [-f64::NAN, f64::from_bits(f64::NAN.to_bits() | 5)] {
            store.append(&[&vec![number; length]]).unwrap();
        }
        store.finish(Status::Finished, ()).unwrap();
        let read = StoredRun::open(&path).unwrap().read("a").unwrap();
        assert_eq!(read.map_bits(), vec![f64::NAN; 2 * length].map_bits());
    }
}

trait Bits {
    fn map_bits(&self) -> Vec<u64>;
}

impl Bits for Vec<f64> {
    fn map_bits(&self) -> Vec<u64> {
        self.iter().map(|number| number.to_bits()).collect()
    }
}

#[test]
fn names_and_dimensions_come_back() {
    let scratch = Scratch::new();
    let layout = every_kind(3);
    Store::create(&scratch.join("run"), &layout).unwrap();
    let run = StoredRun::open(scratch.join("run")).unwrap();
    let arrays = run.arrays();
    let names: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
    assert_eq!(names, ["time", "q", "R", "r", "x", "rod", "link", "__θ/2"]);
    assert_eq!(arrays[4].dimensions, ["i", "i_2"]);
    assert_eq!(arrays[5].dimensions, ["rod_"], "the variable keeps its name");
    assert_eq!(arrays[1].description, "about q");
    assert_eq!(run.dimension("i").unwrap(), Dimension::index("i", 2..=4));
    assert_eq!(run.dimension("rod_").unwrap().labels[1].values, [2, 3, 3]);
    assert!(run.dimension("none").unwrap().is_empty());
    for folder in ["time", "time_", "rod", "rod_rod_i", "v__θ_2"] {
        let expected = folder != "rod_rod_i";
        assert_eq!(
            scratch.join("run").join(folder).join("zarr.json").exists(),
            expected,
            "{folder}"
        );
    }
    assert!(scratch.join("run").join("rod_i").exists());
}

#[test]
fn layouts_that_do_not_fit_are_refused() {
    let scratch = Scratch::new();
    let twice = Layout { arrays: vec![array("a", &[]), array("a", &[])], ..Layout::default() };
    let unknown = Layout { arrays: vec![array("a", &["b"])], ..Layout::default() };
    let square = Layout {
        arrays: vec![array("a", &["row_2", "row_2"])],
        dimensions: vec![Dimension::row(2)],
        ..Layout::default()
    };
    let bare =
        Layout { dimensions: vec![Dimension::members("d", Vec::new())], ..Layout::default() };
    for layout in [twice, unknown, square, bare] {
        let result = Store::create(&scratch.join("run"), &layout);
        assert!(matches!(result, Err(StoreError::Mismatch { .. })), "{result:?}");
        assert!(!scratch.join("run").exists());
    }
    let layout = every_kind(1);
    let mut store = Store::create(&scratch.join("run"), &layout).unwrap();
    assert!(matches!(store.append(&[&[1.0]]), Err(StoreError::Mismatch { .. })));
    append(&mut store, &layout, 0).unwrap();
    assert!(matches!(append(&mut store, &layout, 0), Err(StoreError::Mismatch { .. })));
    assert_eq!(store.samples(), 1);
}

#[test]
fn a_run_needs_a_new_or_an_empty_folder() {
    let scratch = Scratch::new();
    let layout = every_kind(2);
    let (deep, empty, full) = (scratch.join("a/b/c"), scratch.join("empty"), scratch.join("full"));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&full).unwrap();
    fs::write(full.join("notes.txt"), "mine").unwrap();
    Store::create(&deep, &layout).unwrap();
    Store::create(&empty, &layout).unwrap();
    assert_eq!(files_of(&deep), files_of(&empty));
    for path in [&full, &deep] {
        let before = files_of(path);
        assert!(matches!(Store::create(path, &layout), Err(StoreError::NotEmpty { .. })));
        assert_eq!(files_of(path), before);
    }
    let names = |path: PathBuf| fs::read_dir(path).unwrap().count();
    assert_eq!(
        (names(scratch.join("")), names(scratch.join("a/b"))),
        (3, 1),
        "nothing else is left"
    );
}

#[test]
fn numbered_runs_take_the_smallest_free_number() {
    let scratch = Scratch::new();
    let (layout, runs) = (every_kind(2), scratch.join("runs"));
    // Eight at once get the eight smallest free numbers; the two taken are skipped, whether folder
    // or file.
    fs::create_dir_all(runs.join("top-2")).unwrap();
    fs::write(runs.join("top-4"), "").unwrap();
    let mut made: Vec<PathBuf> = thread::scope(|scope| {
        let create = || Store::create_numbered(&runs, "top", &layout).unwrap().path().to_path_buf();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    made.sort();
    let mut expected = [1, 3, 5, 6, 7, 8, 9, 10].map(|k| runs.join(format!("top-{k}")));
    expected.sort();
    assert_eq!(made, expected);
    assert_eq!(fs::read_dir(&runs).unwrap().count(), 10, "no hidden folder is left");
    made.iter().for_each(|path| drop(StoredRun::open(path).unwrap()));
}
