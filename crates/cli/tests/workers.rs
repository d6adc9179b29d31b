//! Ensembles that several processes compute in one folder: whoever is killed, started again or
//! started twice, the result has the bits of a single process.

mod common;

use common::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const SWEEP: &str = "sweep models/spherical-pendulum.holo --over g=1..2,60 --over p.x=list(1,0.5,0.2) --until 1 --method rk4 --step 0.1";

/// Every file of the arrays and sums of an ensemble, by path; without temporary ones.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(path) = folders.pop() {
        for entry in std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap()) {
            let name = entry.file_name().into_string().unwrap();
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                // Who wrote last is in the status; the lock is empty.
                _ if name == "status.json" || name == "run.lock" => {}
                path => {
                    let mut bytes = std::fs::read(&path).unwrap();
                    if path == folder.join("zarr.json") {
                        bytes = without_seconds(&bytes);
                    }
                    found.insert(path.strip_prefix(folder).unwrap().to_path_buf(), bytes);
                }
            }
        }
    }
    assert!(found.len() > 100, "{}", found.len());
    found
}

/// The document of a group without the time that the ensemble took.
fn without_seconds(document: &[u8]) -> Vec<u8> {
    let mut document: serde_json::Value = serde_json::from_slice(document).unwrap();
    let attributes = document["attributes"].as_object_mut().unwrap();
    assert!(attributes.shift_remove("cost.seconds").is_some());
    attributes.shift_remove("holonome_checksums").unwrap();
    document.to_string().into_bytes()
}

fn same(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    for (name, bytes) in &one {
        assert!(other[name] == *bytes, "{} differs", name.display());
    }
}

fn started(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Number of blocks that are done.
fn done(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("done")).map_or(0, |entries| {
        entries.filter(|entry| entry.as_ref().unwrap().file_name() != "zarr.json").count()
    })
}

/// Start a worker that stops for good within the `write`-th file that it replaces, and kill it there.
fn kill_within(folder: &Folder, command: &str, write: usize) {
    let held = folder.path(&format!("held-{write}"));
    let mut worker = folder.command(command);
    worker.env("HOLONOME_HOLD", format!("write {write} {}", held.display()));
    let mut worker = started(worker);
    while !held.exists() && worker.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(2));
    }
    worker.kill().unwrap();
    worker.wait().unwrap();
    let _ = std::fs::remove_file(held);
}

#[test]
fn array_tasks_that_are_killed_and_queued_again_give_the_bits_of_one_process() {
    let folder = Folder::new();
    let whole = folder.summary(&format!("{SWEEP} --out whole"));
    let task = format!("{SWEEP} --out grid --worker env");
    let in_array = |number: u64, command: &str| {
        let mut worker = folder.command(command);
        worker.env("SLURM_ARRAY_TASK_ID", (number + 5).to_string());
        worker.env("SLURM_ARRAY_TASK_COUNT", "3").env("SLURM_ARRAY_TASK_MIN", "5");
        worker
    };
    // Tasks that begin together, one of which creates the folder; all are killed at some time.
    let mut workers: Vec<Child> = (0..3).map(|number| started(in_array(number, &task))).collect();
    while done(&folder.path("grid")) < 2 {
        sleep(Duration::from_millis(1));
    }
    for worker in &mut workers {
        let _ = worker.kill();
        worker.wait().unwrap();
    }
    // Every task is killed within the write of several files, and queued again.
    for write in [1, 7, 31] {
        kill_within(&folder, &format!("{SWEEP} --out grid --worker 2/3"), write);
    }
    let status = folder.run("status grid --json");
    let object = status.json();
    assert_eq!(status.code, Some(i32::from(object["complete"] != true)), "{status:?}");
    let workers: Vec<Child> = (0..3).map(|number| started(in_array(number, &task))).collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    same(&folder.path("whole"), &folder.path("grid"));
    let status = folder.run("status grid --json").ok().json();
    assert_eq!((status["done"].as_u64(), status["failed"].as_u64()), (Some(180), Some(0)));
    // The last of them has ended the ensemble.
    let again = folder.run(&format!("{SWEEP} --out grid --json")).ok();
    assert!(again.stderr.contains("is finished"), "{again:?}");
    for key in ["steps", "drift", "failed", "trajectories", "cost"] {
        let of = |summary: &serde_json::Value| {
            let mut value = summary[key].clone();
            value.as_object_mut().map(|entries| entries.remove("wall_seconds"));
            value
        };
        assert_eq!(of(&again.json()), of(&whole), "{key}");
    }
}

#[test]
fn workers_that_steal_take_over_from_a_killed_one() {
    let folder = Folder::new();
    folder.summary(&format!("{SWEEP} --out whole"));
    let steal = format!("{SWEEP} --out grid --steal");
    kill_within(&folder, &steal, 60);
    assert!(std::fs::read_dir(folder.path("grid/.holonome/claims")).unwrap().count() > 0);
    assert!(done(&folder.path("grid")) < 15);
    let mut workers: Vec<Child> = (0..2).map(|_| started(folder.command(&steal))).collect();
    for worker in &mut workers {
        assert!(worker.wait().unwrap().success());
    }
    same(&folder.path("whole"), &folder.path("grid"));
}

#[test]
fn shares_are_chosen_by_blocks_and_one_worker_waits_for_the_rest() {
    let folder = Folder::new();
    folder.summary(&format!("{SWEEP} --out whole"));
    let first = folder.run(&format!("{SWEEP} --out grid --blocks 0..3 --json")).ok();
    let (object, computed) = (first.json(), done(&folder.path("grid")));
    assert_eq!(computed, 4, "both ends are included");
    let counted = |key: &str| object[key].as_u64().unwrap();
    assert_eq!(counted("trajectories") + counted("missing"), 180);
    assert!(
        first.stdout.contains("left to other workers")
            || first.stderr.contains("left to other workers")
    );
    assert_eq!(folder.run("status grid").code, Some(1));
    let waiting = started(folder.command("resume grid --blocks 0..1 --wait --json"));
    folder.run("resume grid --worker 2/2").ok();
    folder.run("resume grid --worker 1/2").ok();
    assert!(waiting.wait_with_output().unwrap().status.success());
    folder.run("status grid --watch").ok();
    same(&folder.path("whole"), &folder.path("grid"));
    for (share, part) in [
        ("--blocks 99..100", "the last one is"),
        ("--blocks 3..1", "A up to B"),
        ("--worker 3/2", "k from 1 to n"),
        ("--worker env", "SLURM_ARRAY_TASK_ID"),
    ] {
        folder.run(&format!("{SWEEP} --out part {share}")).refused(&[part]);
    }
    folder.run(&format!("{SWEEP} --worker 1/2")).refused(&["--worker", "--out"]);
}

#[test]
fn another_ensemble_is_refused_with_the_first_difference() {
    let folder = Folder::new();
    let model = "parameter k = 1\nstate x = 1\nx' = -k*x\n";
    std::fs::write(folder.path("m.holo"), model).unwrap();
    let sweep = "sweep m.holo --trajectories 20 --vary k=1+i --until 1";
    folder.summary(&format!("{sweep} --out grid"));
    for (other, part) in [
        (sweep.replace("until 1", "until 2"), "--until is 1.0 there, and 2.0 here"),
        (sweep.replace("1+i", "2+i"), "--vary is k=1+i there, and k=2+i here"),
        (sweep.replace("20", "21"), "--trajectories is 20 there, and 21 here"),
        (format!("{sweep} --rtol 1e-6"), "--rtol is 1e-9 there, and 1e-6 here"),
        (format!("{sweep} --seed 7"), "--seed is 0 there, and 7 here"),
        (format!("{sweep} --record x"), "--record is not given there, and x here"),
    ] {
        folder.run(&format!("{other} --out grid")).refused(&["grid holds another ensemble", part]);
    }
    std::fs::write(folder.path("m.holo"), model.replace("-k*x", "-2*k*x")).unwrap();
    folder
        .run(&format!("{sweep} --out grid"))
        .refused(&["line 3 of the model is `x' = -k*x` there, and `x' = -2*k*x` here"]);
    folder.summary("run m.holo --until 1 --out run");
    folder.run(&format!("{sweep} --out run")).refused(&["run is a single run, not an ensemble"]);
    folder.run("status run").refused(&["run is a single run, not an ensemble"]);
    folder.run("resume run --worker 1/2").refused(&["--worker", "single run"]);
}

#[test]
fn measures_alone_are_stored_without_trajectories() {
    let folder = Folder::new();
    let model = "parameter k = 1\nstate x = 1\nx' = -k*x\nmeasure average = mean(x) every 0.1\n";
    std::fs::write(folder.path("m.holo"), model).unwrap();
    let sweep = "sweep m.holo --over k=0..2,300 --until 1";
    let all = folder.summary(&format!("{sweep} --out all"));
    let none = format!("{sweep} --record none");
    let alone = folder.summary(&format!("{none} --out one"));
    folder.run(&format!("{none} --out two --worker 1/2")).ok();
    let two = folder.summary(&format!("{none} --out two --worker 2/2"));
    assert_eq!(alone["measures"], all["measures"]);
    assert_eq!(alone["measures"], two["measures"], "whoever computed them");
    assert!(!alone["measures"].as_array().unwrap().is_empty());
    for array in ["x", "end", "failed", "trajectory"] {
        assert!(!folder.path("one").join(array).exists(), "{array}");
    }
    folder.run(&format!("{none} --shard 1/2 --out part")).refused(&["--record none", "--worker"]);
}
