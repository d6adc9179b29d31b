//! `resume --until`: a longer run out of a shorter one, with the bytes of a run that went there
//! from the start.

mod common;

use common::{Folder, number};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Contents of all chunks of a run.
fn chunks(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for array in
        fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        for chunk in fs::read_dir(&array).unwrap().map(|entry| entry.unwrap().path()) {
            let name = chunk.strip_prefix(run).unwrap().display().to_string();
            if name.contains("/c.") {
                all.insert(name, fs::read(&chunk).unwrap());
            }
        }
    }
    all
}

fn comparable(mut summary: Value) -> Value {
    let object = summary.as_object_mut().unwrap();
    object.remove("out");
    // The stability of a gain and the scale of a drift are measured as often in a longer run as in
    // a shorter one.
    object.remove("stability");
    without(&mut object["drift"], "relative");
    object["cost"].as_object_mut().unwrap().remove("wall_seconds");
    summary
}

/// Remove an entry, however deep.
fn without(value: &mut Value, key: &str) {
    if let Some(object) = value.as_object_mut() {
        object.remove(key);
        object.values_mut().for_each(|value| without(value, key));
    }
}

/// Fixed steps and adaptive ones, blocks of steps, equations, multipliers, treatments, a shorter
/// last step on the way (1.95 and 4.3 are not multiples of 0.01 but for one), large models.
const RUNS: [(&str, &str, f64, f64); 12] = [
    ("adaptive", "models/spherical-pendulum.holo --every 0.05", 3.0, 7.0),
    ("first-same", "models/kepler.holo --method plain:dopri5 --rtol 1e-6 --every 0.05", 3.0, 7.0),
    ("projected", "models/double-pendulum.holo --method projection:tsit5 --every 0.01", 1.95, 4.3),
    ("one-step", "models/spherical-pendulum.holo --every 0.001", 0.001, 0.5),
    ("fixed", "models/kepler.holo --method corrected:rk4 --step 0.01 --every 0.05", 3.0, 7.0),
    ("shorter", "models/kepler.holo --method rk4 --step 0.01 --every 0.05", 1.955, 4.3),
    (
        "feedback",
        "models/kepler.holo --method feedback:euler --step 1e-3 --every 0.01 --gain L=4,A=2",
        1.0,
        3.0,
    ),
    ("rattle", "models/double-pendulum.holo --method rattle --step 0.01 --every 0.02", 2.0, 5.0),
    (
        "composed",
        "models/double-pendulum.holo --method suzuki4(rattle) --step 0.01 --every 0.01",
        1.0,
        2.0,
    ),
    ("gauss", "models/henon-heiles.holo --method gauss4 --step 0.1 --every 0.1", 5.0, 12.0),
    (
        "penalised",
        "models/double-pendulum.holo --method stormer-verlet-a --step 0.005 --penalty 20 --every 0.01",
        1.0,
        2.5,
    ),
    ("large", "models/chain.holo --set n=300 --method rattle --step 0.01 --every 0.05", 0.5, 1.0),
];

#[test]
fn a_longer_run_has_the_bytes_of_one_from_the_start() {
    for (name, run, first, last) in RUNS {
        let folder = Folder::new();
        let whole = folder.summary(&format!("run {run} --until {last} --out whole"));
        folder.summary(&format!("run {run} --until {first} --out extended"));
        let middle = 0.5 * (first + last);
        // To an end that is not a multiple of anything, and from there on.
        folder.summary(&format!("resume extended --until {}", middle + 0.003_7));
        fs::write(folder.path("extended/notes.txt"), "mine").unwrap();
        let end = folder.summary(&format!("resume extended --until {last}"));
        let (a, b) = (chunks(&folder.path("whole")), chunks(&folder.path("extended")));
        assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{name}");
        let different: Vec<_> = a
            .iter()
            .filter(|(chunk, bytes)| b[*chunk] != **bytes)
            .map(|(chunk, _)| chunk)
            .collect();
        assert!(a.len() > 3 && different.is_empty(), "{name}: {different:?}");
        assert_eq!(comparable(end), comparable(whole), "{name}");
        assert_eq!(
            fs::read_to_string(folder.path("extended/notes.txt")).unwrap(),
            "mine",
            "{name}"
        );
        let left: Vec<_> = fs::read_dir(folder.path("."))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left.len(), 3, "{name}: {left:?}");
    }
}

/// If the number of samples was given, their spacing stays.
#[test]
fn samples_keep_their_distance() {
    let folder = Folder::new();
    for (name, run) in [
        ("adaptive", "models/kepler.holo"),
        ("fixed", "models/kepler.holo --method rk4 --step 0.01"),
    ] {
        folder.summary(&format!("run {run} --until 2 --samples 101 --out {name}"));
        folder.summary(&format!("resume {name} --until 4"));
        folder.summary(&format!("run {run} --until 4 --samples 201 --out {name}-whole"));
        // i/200 is half of i/100 to the bit.
        assert_eq!(
            chunks(&folder.path(name)),
            chunks(&folder.path(&format!("{name}-whole"))),
            "{name}"
        );
        folder.summary(&format!("resume {name} --until 5.01"));
        let times = folder.times(name);
        assert_eq!(
            (times.len(), times[100], times[250], times[251]),
            (252, 2.0, 5.0, 5.01),
            "{name}"
        );
    }
}

#[test]
fn what_cannot_be_extended_is_said() {
    let folder = Folder::new();
    folder.summary("run models/kepler.holo --until 2 --out run");
    folder.run("resume run --until 2").refused(&["--until must be later than t = 2", "run"]);
    folder.run("resume run --until 1").refused(&["--until"]);
    folder.run("resume run --until nan").refused(&["--until"]);
    assert!(folder.run("resume run").ok().stderr.contains("is finished"));
    folder.summary("sweep models/kepler.holo --trajectories 3 --until 1 --out sweep");
    folder.run("resume sweep --until 2").refused(&["sweep", "is an ensemble"]);
    // The gain would be another one: its pilot run ends with the run.
    folder.summary("run models/kepler.holo --method feedback:rk4 --step 0.01 --gain auto --until 0.05 --out gain");
    folder.run("resume gain --until 3").refused(&["gain cannot be extended", "--until 3"]);
    assert_eq!(folder.times("gain").last(), Some(&0.05), "it stays as it is");
    // A penalty, once chosen, stays.
    let penalised = "models/double-pendulum.holo --method stormer-verlet-a --step 0.002 --penalty-tolerance 1e-2";
    let omega = |summary: serde_json::Value| summary["penalty"]["omega"].as_f64();
    let chosen = omega(folder.summary(&format!("run {penalised} --until 0.05 --out penalty")));
    assert_eq!(omega(folder.summary("resume penalty --until 3")), chosen);
    // A model that fails after its first end fails there, and keeps its longer beginning.
    folder.write("blow-up.holo", "state x = 1\nx' = x^2\n");
    folder.summary("run blow-up.holo --until 0.5 --every 0.1 --out blow-up");
    let answer = folder.run("resume blow-up --until 2");
    assert_eq!(answer.code, Some(1), "{answer:?}");
    // x = 1/(1 − t): the step control decides how near to t = 1 the last step comes.
    assert!((10..=11).contains(&folder.times("blow-up").len()));
}

/// A run that was stopped goes on to a later end as well, also one that never had a checkpoint.
#[test]
fn a_stopped_run_is_extended() {
    let folder = Folder::new();
    let run = "models/spherical-pendulum.holo --every 0.01";
    folder.summary(&format!("run {run} --until 20 --out whole"));
    for point in ["created 0", "checkpoint 300", "samples 700"] {
        kill_at(&folder, &format!("run {run} --until 10 --out killed"), point);
        let summary = folder.summary("resume killed --until 20");
        assert_eq!(number(&summary, "/t"), 20.0);
        assert_eq!(chunks(&folder.path("killed")), chunks(&folder.path("whole")), "{point}");
        fs::remove_dir_all(folder.path("killed")).unwrap();
    }
}

/// Start a command and kill it at a point of its own.
fn kill_at(folder: &Folder, arguments: &str, point: &str) {
    let here = folder.path("held");
    let mut child = folder.command(arguments);
    let mut child =
        child.env("HOLONOME_HOLD", format!("{point} {}", here.display())).spawn().unwrap();
    while !here.exists() {
        assert!(child.try_wait().unwrap().is_none(), "`{arguments}` ended before `{point}`");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_file(&here).unwrap();
}

/// A longer run that is killed on its way goes on by the same command, and is said to end where it
/// ends.
#[test]
fn a_killed_longer_run_goes_on_by_the_same_command() {
    let folder = Folder::new();
    let run = "models/spherical-pendulum.holo --every 0.01";
    folder.summary(&format!("run {run} --until 20 --out whole"));
    let settings = |run: &str| -> Value {
        let group: Value =
            serde_json::from_str(&fs::read_to_string(folder.path(run).join("zarr.json")).unwrap())
                .unwrap();
        group["attributes"]["settings"].clone()
    };
    for limit in ["", " --max-steps 100000"] {
        folder.summary(&format!("run {run} --until 10 --out killed"));
        for point in ["checkpoint 1200", "samples 1500", "samples 1700"] {
            kill_at(&folder, &format!("resume killed --until 20{limit}"), point);
            assert_eq!(settings("killed"), settings("whole"), "{point}");
        }
        let summary = folder.summary(&format!("resume killed --until 20{limit}"));
        assert_eq!(number(&summary, "/t"), 20.0);
        assert_eq!(chunks(&folder.path("killed")), chunks(&folder.path("whole")));
        // It is at its end now.
        folder.run("resume killed --until 20").refused(&["--until must be later than t = 20"]);
        fs::remove_dir_all(folder.path("killed")).unwrap();
    }
}

/// An extension that is killed while it copies leaves the old run as it was, and the next one
/// cleans up.
#[test]
fn a_killed_extension_leaves_the_run() {
    let folder = Folder::new();
    folder.summary("run models/kepler.holo --until 2 --every 0.1 --out run");
    folder.summary("run models/kepler.holo --until 3 --every 0.1 --out whole");
    let before = chunks(&folder.path("run"));
    for write in [1, 5, 20] {
        kill_at(&folder, "resume run --until 3", &format!("write {write}"));
        assert_eq!(chunks(&folder.path("run")), before);
        assert_eq!(folder.times("run").len(), 21);
    }
    folder.summary("resume run --until 3");
    assert_eq!(chunks(&folder.path("run")), chunks(&folder.path("whole")));
    assert_eq!(fs::read_dir(folder.path(".")).unwrap().count(), 3, "models, run, whole");
}

/// An adaptive run of few steps has as many samples as one of many: they cost no steps. With equal
/// steps there are no more samples than these.
#[test]
fn adaptive_runs_have_a_thousand_gaps_between_samples() {
    let folder = Folder::new();
    for (name, run) in [
        ("few", "models/kepler.holo --until 8"),
        ("two", "models/spherical-pendulum.holo --method plain:tsit5 --until 1e-3"),
    ] {
        let steps = number(&folder.summary(&format!("run {run} --out {name}")), "/steps");
        assert!(steps < 200.0 && folder.times(name).len() == 1001, "{name}: {steps}");
        let whole = format!("{name}-whole");
        folder.summary(&format!("run {run} --samples 1001 --out {whole}"));
        assert!(chunks(&folder.path(name)) == chunks(&folder.path(&whole)), "{name}");
        let until = 1.37 * folder.times(name).last().unwrap();
        for out in [name, &whole] {
            folder.summary(&format!("resume {out} --until {until}"));
        }
        assert_eq!(folder.times(name).len(), 1371, "1.37 times 1000 gaps, and the start");
        assert!(chunks(&folder.path(name)) == chunks(&folder.path(&whole)), "{name}");
    }
    folder.summary("run models/kepler.holo --method rk4 --step 0.1 --until 8 --out equal");
    assert_eq!(folder.times("equal").len(), 81);
}

/// A run that was killed at any of its files goes on to the same bytes; also behind a link.
#[test]
fn a_run_killed_at_any_file_goes_on() {
    let folder = Folder::new();
    let run = "models/kepler.holo --rtol 1e-6 --until 8";
    let whole = folder.summary(&format!("run {run} --out whole"));
    let here = folder.path("held");
    // The run is killed at every file that it writes, until there are no more.
    let mut points =
        vec!["created 0".to_string(), "checkpoint 100".to_string(), "samples 500".to_string()];
    points.extend((1..400).map(|write| format!("write {write}")));
    let mut killed = 0;
    for point in points {
        let mut child = folder.command(&format!("run {run} --out killed"));
        let child = child.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child =
            child.env("HOLONOME_HOLD", format!("{point} {}", here.display())).spawn().unwrap();
        let ended = loop {
            if here.exists() {
                break false;
            }
            if child.try_wait().unwrap().is_some() {
                break true;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        };
        if ended {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(&here).unwrap();
        if folder.path("killed").exists() {
            let summary = folder.summary("resume killed");
            assert_eq!(comparable(summary), comparable(whole.clone()), "{point}");
            assert!(chunks(&folder.path("killed")) == chunks(&folder.path("whole")), "{point}");
            fs::remove_dir_all(folder.path("killed")).unwrap();
            killed += 1;
        }
        // A run that was killed before its folder existed has left a hidden folder.
        for entry in fs::read_dir(folder.path(".")).unwrap().map(|entry| entry.unwrap()) {
            if entry.file_name().to_string_lossy().starts_with(".killed.tmp-") {
                assert!(!folder.path("killed").exists());
                fs::remove_dir_all(entry.path()).unwrap();
            }
        }
        let left: Vec<_> = fs::read_dir(folder.path("."))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left.len(), 2, "{point}: {left:?}");
    }
    assert!((10..130).contains(&killed), "{killed}");
    fs::create_dir(folder.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", folder.path("link")).unwrap();
    folder.summary(&format!("run {run} --out link"));
    assert!(chunks(&folder.path("elsewhere")) == chunks(&folder.path("whole")));
    assert!(folder.path("link").is_symlink());
}

/// A run that its number of steps ended goes on with a larger one, as if it had been given that at
/// first.
#[test]
fn a_run_that_ended_at_its_limit_goes_on_with_a_larger_one() {
    let folder = Folder::new();
    // Adaptive steps one by one and in loops, and equal steps in blocks.
    for (name, options) in [
        ("pair", "--rtol 1e-9"),
        ("gauss", "--method gauss16"),
        ("rattle", "--method rattle --step 0.01"),
    ] {
        let run = format!("run models/spherical-pendulum.holo --until 100 {options}");
        let ended = folder.run(&format!("{run} --max-steps 33 --out {name}"));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        folder
            .run(&format!("resume {name} --max-steps 33"))
            .refused(&["33 steps", "--max-steps must be larger"]);
        // It ends once more, and then at its end.
        let again = folder.run(&format!("resume {name} --max-steps 47"));
        assert!(again.code == Some(1) && again.stderr.contains("after 47 steps"), "{again:?}");
        let summary = folder.summary(&format!("resume {name} --max-steps 20000"));
        let whole = folder.summary(&format!("{run} --max-steps 20000 --out {name}-whole"));
        assert_eq!(comparable(summary), comparable(whole), "{name}");
        assert!(
            chunks(&folder.path(name)) == chunks(&folder.path(&format!("{name}-whole"))),
            "{name}"
        );
        folder
            .run(&format!("resume {name} --max-steps 30000"))
            .refused(&["is finished", "--until"]);
    }
    // Both at once, from a run that never began.
    folder.run("run models/kepler.holo --every 0.5 --until 5 --max-steps 1 --out short");
    folder.summary("resume short --until 20 --max-steps 500");
    folder.summary("run models/kepler.holo --every 0.5 --until 20 --out long");
    assert!(chunks(&folder.path("short")) == chunks(&folder.path("long")));
    folder.summary("sweep models/kepler.holo --trajectories 2 --until 1 --out many");
    folder.run("resume many --max-steps 5").refused(&["is an ensemble", "a larger --max-steps"]);
}
