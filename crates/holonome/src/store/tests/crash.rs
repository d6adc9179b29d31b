//! Interrupted runs, and their completion by `resume`.

use super::*;
use serde_json::json;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

#[test]
fn resumed_runs_have_the_bytes_of_uninterrupted_ones() {
    let scratch = Scratch::new();
    let layout = several_chunks(7);
    let expected = uninterrupted(&scratch.join("whole"), &layout);
    let path = scratch.join("cut");
    for cut in 0..=7 {
        for checkpoint in 0..=cut {
            let mut store = Store::create(&path, &layout).unwrap();
            for number in 0..cut {
                if number == checkpoint {
                    store.checkpoint(&json!({"t": number})).unwrap();
                }
                append(&mut store, &layout, number).unwrap();
            }
            // Dropped as by a kill, in the middle of every kind of write.
            drop(store);
            for torn in [".tmp-checkpoint.bin", "one/.tmp-c.0.0", "all/.tmp-c.5"] {
                fs::write(path.join(torn), "torn").unwrap();
            }
            let (mut store, state) = resume(&path);
            let reached = if checkpoint < cut { checkpoint } else { 0 };
            assert_eq!(store.samples(), reached);
            assert_eq!(state, (checkpoint < cut).then(|| json!({"t": checkpoint})));
            append_all(&mut store, &layout);
            store.finish(Status::Finished, "done").unwrap();
            drop(store);
            assert_eq!(files_of(&path), expected, "cut at {cut}, checkpoint at {checkpoint}");
            fs::remove_dir_all(&path).unwrap();
        }
    }
}

#[test]
fn a_resumed_run_forgets_what_lay_beyond_the_checkpoint() {
    let scratch = Scratch::new();
    let (path, layout) = (scratch.join("run"), several_chunks(7));
    let mut store = Store::create(&path, &layout).unwrap();
    append(&mut store, &layout, 0).unwrap();
    store.checkpoint(&json!(1)).unwrap();
    append_all(&mut store, &layout);
    store.finish(Status::Failed, json!("diverged")).unwrap();
    drop(store);
    let run = StoredRun::open(&path).unwrap();
    assert_eq!(
        (run.status(), run.samples(), run.summary()),
        (Status::Failed, 7, &json!("diverged"))
    );

    let (mut store, _) = resume(&path);
    store.finish(Status::Interrupted, json!(null)).unwrap();
    assert_eq!(StoredRun::open(&path).unwrap().samples(), 1);
    let names: Vec<String> = files_of(&path)
        .into_keys()
        .filter(|name| {
            name.contains("/c.") && !name.starts_with("component") && !name.starts_with("time")
        })
        .collect();
    assert_eq!(names, ["all/c.0", "one/c.0.0", "three/c.0.0", "two/c.0.0"]);
    let numbers: Vec<f64> = fs::read(path.join("all/c.0"))
        .unwrap()
        .as_chunks()
        .0
        .iter()
        .map(|&bytes| f64::from_le_bytes(bytes))
        .collect();
    assert!(
        numbers[0].is_finite() && numbers[1..].iter().all(|number| number.is_nan()),
        "{numbers:?}"
    );
}

#[test]
fn a_finished_run_is_not_touched() {
    let scratch = Scratch::new();
    let (path, layout) = (scratch.join("run"), every_kind(4));
    let before = uninterrupted(&path, &layout);
    match Store::resume(&path).unwrap() {
        ResumedStore::Finished { summary } => assert_eq!(summary, "done"),
        ResumedStore::Continues { .. } => panic!("it is finished"),
    }
    assert_eq!(files_of(&path), before);
}

#[test]
fn a_run_has_one_writer() {
    let scratch = Scratch::new();
    let (path, layout) = (scratch.join("run"), every_kind(4));
    let store = Store::create(&path, &layout).unwrap();
    assert!(matches!(Store::resume(&path), Err(StoreError::InUse { .. })));
    StoredRun::open(&path).unwrap();
    drop(store);
    let (_store, _) = resume(&path);
    assert!(matches!(Store::resume(&path), Err(StoreError::InUse { .. })));
}

/// Kill a writer in the middle of each of its writes, from the first of the skeleton to the last:
/// the run is readable each time, and in the end has the right bytes.
#[test]
fn killed_writers_leave_readable_runs() {
    let scratch = Scratch::new();
    let layout = several_chunks(CHILD_SAMPLES);
    let expected = uninterrupted(&scratch.join("whole"), &layout);
    let (path, here) = (scratch.join("run"), scratch.join("held"));
    let (mut unmade, mut resumed) = (0, 0);
    for write in 1.. {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "store::tests::crash::child_writes"])
            .env("HOLONOME_TEST_RUN", &path)
            .env("HOLONOME_HOLD", format!("write {write} {}", here.display()))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut ended = false;
        while !here.exists() && !ended {
            ended = child.try_wait().unwrap().is_some();
            thread::sleep(Duration::from_micros(200));
        }
        let held = here.exists();
        if held {
            child.kill().unwrap();
            fs::remove_file(&here).unwrap();
        }
        child.wait().unwrap();
        if !held {
            // It made all its writes.
            assert_eq!(files_of(&path), expected);
            break;
        }
        if path.exists() {
            let run = StoredRun::open(&path).unwrap();
            for (k, array) in layout.arrays.iter().enumerate() {
                let stored: Vec<f64> = (0..run.samples())
                    .flat_map(|number| sample(&layout, number).remove(k))
                    .collect();
                assert_eq!(run.read(&array.name).unwrap(), stored);
            }
            assert_eq!(run.status(), Status::Running, "the last write is what calls it finished");
            resumed += 1;
            let (mut store, state) = resume(&path);
            assert_eq!(state.unwrap_or(json!(0)), store.samples());
            append_all(&mut store, &layout);
            store.finish(Status::Finished, "done").unwrap();
            drop(store);
            assert_eq!(files_of(&path), expected, "killed in write {write}");
            fs::remove_dir_all(&path).unwrap();
        } else {
            unmade += 1;
        }
    }
    // The documents and labels of four arrays, three dimensions and the times; then the chunks of
    // seven samples, of which `one` alone has seven, and two checkpoints.
    assert!(
        unmade >= 10 && resumed >= 20,
        "{unmade} kills before the run was there, {resumed} after"
    );
}

const CHILD_SAMPLES: usize = 7;

#[test]
#[ignore = "the child of killed_writers_leave_readable_runs"]
fn child_writes() {
    let Some(path) = std::env::var_os("HOLONOME_TEST_RUN") else { return };
    let layout = several_chunks(CHILD_SAMPLES);
    let mut store = Store::create(Path::new(&path), &layout).unwrap();
    for number in 0..CHILD_SAMPLES {
        append(&mut store, &layout, number).unwrap();
        if number % 3 == 0 {
            store.checkpoint(&json!(number + 1)).unwrap();
        }
    }
    store.finish(Status::Finished, "done").unwrap();
}
