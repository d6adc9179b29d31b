//! Runs that are killed, stopped, out of space, or that diverge: their data can be read, and
//! resumed to the same bytes.

mod common;

use common::{Answer, Folder, keys, number};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Runs, with the number of their samples. Whole runs take machine code, killed ones are
/// interpreted: so both are tested to give the same bits.
const RUNS: [(&str, &str, usize); 7] = [
    (
        "plain-fixed",
        "models/spherical-pendulum.holo --method plain:rk4 --step 1e-3 --until 20 --samples 2001",
        2001,
    ),
    (
        "feedback-fixed",
        "models/kepler.holo --method feedback:euler --step 1e-3 --until 10 --samples 501 --gain L=4,A=2",
        501,
    ),
    ("corrected-adaptive", "models/spherical-pendulum.holo --until 600 --samples 3001", 3001),
    (
        "feedback-adaptive",
        "models/rigid-body.holo --method feedback:tsit5 --until 25 --samples 501",
        501,
    ),
    (
        "projection-fixed",
        "models/double-pendulum.holo --method projection:rk4 --step 0.01 --until 60 --samples 2001",
        2001,
    ),
    (
        "equations-fixed",
        "models/double-pendulum.holo --method suzuki4(rattle) --step 0.01 --until 60 --samples 2001",
        2001,
    ),
    (
        "penalised-fixed",
        "models/double-pendulum.holo --method stormer-verlet-a --step 0.005 --penalty auto --until 60 --samples 401",
        401,
    ),
];

/// Contents of all chunks of a run, by file.
fn chunks(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for array in
        fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        for chunk in fs::read_dir(&array).unwrap().map(|entry| entry.unwrap().path()) {
            let name = chunk.strip_prefix(run).unwrap().display().to_string();
            if name.contains("/c.") || name.contains("/c/") {
                all.insert(name, fs::read(&chunk).unwrap());
            }
        }
    }
    all
}

#[track_caller]
fn same_chunks(a: &Path, b: &Path) {
    let (a, b) = (chunks(a), chunks(b));
    assert!(a.len() > 3, "{:?}", a.keys());
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    let different: Vec<_> =
        a.iter().filter(|(name, bytes)| b[*name] != **bytes).map(|(name, _)| name).collect();
    assert!(different.is_empty(), "{different:?}");
}

/// A summary without everything that may differ between two equal runs.
fn comparable(mut summary: Value) -> Value {
    let object = summary.as_object_mut().unwrap();
    object.remove("out");
    object["cost"].as_object_mut().unwrap().remove("wall_seconds");
    summary
}

/// Process that waits at a point of its own (`crates/holonome/src/hold.rs`), so that it is killed
/// there however fast or busy the machine is.
struct Held(Child);

impl Held {
    /// Start a command and wait until it is at the point.
    #[track_caller]
    fn new(folder: &Folder, arguments: &str, point: &str) -> Held {
        let here = folder.path("held");
        let _ = fs::remove_file(&here);
        let mut child = folder
            .command(arguments)
            .env("HOLONOME_BACKEND", "interpreter")
            .env("HOLONOME_HOLD", format!("{point} {}", here.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while !here.exists() {
            if child.try_wait().unwrap().is_some() {
                panic!(
                    "`{arguments}` ended before `{point}`: {:?}",
                    Answer::new(child.wait_with_output().unwrap())
                );
            }
            sleep(Duration::from_millis(1));
        }
        Held(child)
    }

    /// Kill it with SIGKILL, of which a process has no notice.
    fn kill(mut self) {
        self.0.kill().unwrap();
        assert_eq!(self.0.wait().unwrap().code(), None, "killed, not ended");
    }

    /// Interrupt it as Ctrl-C does.
    fn interrupt(self) -> Answer {
        assert!(
            Command::new("kill")
                .args(["-INT", &self.0.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        Answer::new(self.0.wait_with_output().unwrap())
    }
}

fn killed_and_resumed(name: &str) {
    let folder = Folder::new();
    let &(_, run, samples) = RUNS.iter().find(|run| run.0 == name).unwrap();
    let whole = folder.summary(&format!("run {run} --out whole"));
    let (_, all) = folder.samples("whole");
    assert_eq!(all.len(), samples);
    let killed = folder.path("killed");
    // Just created; after a checkpoint; with samples that no checkpoint knows; in the middle of the
    // second, of the fourth and of the sixth write of a resumed run, the first being that of its
    // status.
    let (quarter, half) = (samples / 4, samples / 2);
    let points = [
        "created 0".to_string(),
        format!("checkpoint {quarter}"),
        format!("samples {half}"),
        format!("checkpoint {half}"),
        "write 2".to_string(),
        "write 4".to_string(),
        "write 6".to_string(),
    ];
    let least = [0, quarter, quarter, half, half, half, half];
    for (point, least) in points.iter().zip(least) {
        let command = if killed.exists() {
            "resume killed --json".to_string()
        } else {
            format!("run {run} --out killed")
        };
        Held::new(&folder, &command, point).kill();
        // The data can be read, and are the beginning of the whole.
        let (names, rows) = folder.samples("killed");
        assert!(names.len() > 5);
        assert!((least..samples).contains(&rows.len()), "{name}, {point}: {} rows", rows.len());
        assert!(rows.iter().zip(&all).all(|(a, b)| a == b), "{name}, {point}");
    }
    let end = folder.run("resume killed --json").ok();
    same_chunks(&folder.path("whole"), &killed);
    assert_eq!(comparable(end.json()), comparable(whole), "{name}");
    // The writes that were cut off have left nothing.
    let leftovers =
        Command::new("find").arg(&killed).args(["-name", ".tmp*"]).output().unwrap().stdout;
    assert!(leftovers.is_empty(), "{}", String::from_utf8_lossy(&leftovers));
}

#[test]
fn killed_plain_fixed() {
    killed_and_resumed("plain-fixed");
}

#[test]
fn killed_feedback_fixed() {
    killed_and_resumed("feedback-fixed");
}

#[test]
fn killed_corrected_adaptive() {
    killed_and_resumed("corrected-adaptive");
}

#[test]
fn killed_feedback_adaptive() {
    killed_and_resumed("feedback-adaptive");
}

#[test]
fn killed_projection_fixed() {
    killed_and_resumed("projection-fixed");
}

#[test]
fn killed_equations_fixed() {
    killed_and_resumed("equations-fixed");
}

#[test]
fn killed_penalised_fixed() {
    killed_and_resumed("penalised-fixed");
}

#[test]
fn an_interrupt_stops_at_a_step_and_says_how_to_go_on() {
    let folder = Folder::new();
    for (name, run, samples) in [RUNS[2], RUNS[0]] {
        let whole = folder.summary(&format!("run {run} --out {name}"));
        let out = format!("stopped-{name}");
        let held = Held::new(
            &folder,
            &format!("run {run} --json --out {out}"),
            &format!("samples {}", samples / 3),
        );
        let stopped = held.interrupt();
        assert_eq!(stopped.code, Some(130), "{stopped:?}");
        assert!(stopped.stderr.contains(&format!("holonome resume {out}")), "{stopped:?}");
        let summary = stopped.json();
        assert_eq!(summary["interrupted"], true);
        assert!(number(&summary, "/t") < number(&whole, "/t"));
        // All samples up to there are stored.
        let times = folder.times(&out);
        let spacing = number(&whole, "/t") / (samples - 1) as f64;
        let last = *times.last().unwrap();
        assert!(times.len() >= samples / 3, "{}", times.len());
        assert!(
            last <= number(&summary, "/t") && last > number(&summary, "/t") - 1.001 * spacing,
            "{last} {summary}"
        );
        let resumed = folder.run(&format!("resume {out} --json")).ok();
        assert!(resumed.stderr.contains("goes on at t = "), "{resumed:?}");
        assert_eq!(comparable(resumed.json()), comparable(whole));
        same_chunks(&folder.path(name), &folder.path(&out));
    }
}

#[test]
fn two_processes_do_not_write_to_one_run() {
    let folder = Folder::new();
    let held = Held::new(&folder, &format!("run {} --out busy", RUNS[0].1), "created 0");
    let second = folder.run("resume busy --json");
    assert_eq!((second.code, second.json()["error"]["kind"].as_str()), (Some(2), Some("in-use")));
    folder.run(&format!("run {} --out busy", RUNS[0].1)).refused(&["busy"]);
    held.kill();
}

#[test]
fn a_killed_ensemble_goes_on() {
    let folder = Folder::new();
    let sweep = "models/spherical-pendulum.holo --trajectories 2000 --vary g=1+i/N --until 1 --method rk4 --step 0.1";
    let whole = folder.summary(&format!("sweep {sweep} --out whole"));
    for (point, command) in [
        ("created 0", format!("sweep {sweep} --out killed")),
        ("checkpoint 1", "resume killed".to_string()),
        ("samples 1000", "resume killed".to_string()),
        ("write 3", "resume killed".to_string()),
    ] {
        Held::new(&folder, &command, point).kill();
        folder.samples("killed");
    }
    assert_eq!(comparable(folder.summary("resume killed")), comparable(whole));
    same_chunks(&folder.path("whole"), &folder.path("killed"));
}

#[test]
fn a_full_disk_ends_the_run_and_keeps_what_was_stored() {
    let folder = Folder::new();
    // `ulimit -f` in units of 1024 bytes: the chunks of the time (40 kB) fit, those of q (120 kB)
    // do not when full.
    let limited = |limit: u32, arguments: &str| {
        let mut bash = Command::new("bash");
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" {arguments}");
        bash.arg("-c")
            .arg(script)
            .arg(env!("CARGO_BIN_EXE_holonome"))
            .current_dir(folder.path("."));
        Answer::new(bash.output().unwrap())
    };
    let run = "run models/spherical-pendulum.holo --method plain:rk4 --step 1e-3 --until 2000 --samples 5001";
    let full = limited(64, &format!("{run} --json --out full"));
    assert_eq!(full.code, Some(1), "{full:?}");
    let error = full.json()["error"].clone();
    assert_eq!(
        (error["kind"].as_str(), error["out"].as_str()),
        (Some("disk-full"), Some("full")),
        "{error}"
    );
    assert!(full.stderr.contains("space"), "{full:?}");
    // The part that fitted is readable, and the run can go on when there is space.
    let (_, rows) = folder.samples("full");
    let summary = folder.run("resume full --json").ok().json();
    let whole = folder.summary(&format!("{run} --out whole"));
    assert_eq!(comparable(summary), comparable(whole));
    same_chunks(&folder.path("whole"), &folder.path("full"));
    let (_, all) = folder.samples("whole");
    assert!(rows.iter().zip(&all).all(|(a, b)| a == b));
    // Full from the start: no folder, and not a mistake of the user's.
    let start = limited(0, &format!("{run} --json --out start"));
    assert!(start.code == Some(1) && start.json()["error"]["kind"] == "disk-full", "{start:?}");
    assert!(!folder.path("start").exists());
    // Full before the first sample: the folder is a run without rows, and the message says so.
    let early = limited(16, &format!("{} --json --out early", run.replace("5001", "1001")));
    assert_eq!(
        (early.code, early.json()["error"]["kind"].as_str()),
        (Some(1), Some("disk-full")),
        "{early:?}"
    );
    assert!(early.stderr.contains("no sample is stored in early"), "{early:?}");
    assert!(!early.stderr.contains("look at it"), "{early:?}");
    let export = folder.run("export early --csv -").ok();
    assert!(
        export.stdout.lines().count() == 1 && export.stderr.contains("early has no samples"),
        "{export:?}"
    );
    folder.run("resume early").ok();
    assert_eq!(folder.samples("early").1.len(), 1001);
    let export = folder.run("export whole --csv /dev/full --json");
    assert!(export.code == Some(1) && export.json()["error"]["kind"] == "disk-full", "{export:?}");
}

#[test]
fn a_blow_up_ends_the_run_and_keeps_the_trajectory() {
    let folder = Folder::new();
    // x = 1/(1 − t).
    folder.write("blow-up.holo", "state x = 1\nx' = x^2\n");
    let failed = |arguments: &str| {
        let answer = folder.run(&format!("run {arguments} --json"));
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert!(answer.stderr.contains("holonome report"), "{answer:?}");
        answer.json()["error"].clone()
    };
    let error = failed("blow-up.holo --method plain:dopri5 --until 2 --samples 201 --out adaptive");
    assert_eq!(keys(&error)[..3], ["kind", "message", "t"], "{error}");
    assert!(["step-collapsed", "non-finite"].contains(&error["kind"].as_str().unwrap()), "{error}");
    assert!((number(&error, "/t") - 1.0).abs() < 1e-4, "{error}");
    let (_, rows) = folder.samples("adaptive");
    assert!((99..=101).contains(&rows.len()), "all samples before t = 1: {}", rows.len());
    for row in rows.iter().take(99) {
        assert!((row[1] * (1.0 - row[0]) - 1.0).abs() < 1e-4, "{row:?}");
    }
    let error = failed("blow-up.holo --method plain:euler --step 0.1 --until 10 --out fixed");
    assert_eq!(
        (error["kind"].as_str(), error["out"].as_str()),
        (Some("non-finite"), Some("fixed")),
        "{error}"
    );
    let times = folder.times("fixed");
    // The field at the last good state is not finite: that state is stored.
    assert!(
        times.len() > 10 && *times.last().unwrap() <= number(&error, "/t"),
        "{times:?} {error}"
    );
    assert!(error.get("constraint").is_none(), "the field is no constraint: {error}");
    let text = folder.run("export fixed --csv -").ok().stdout;
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    // Resumed, it fails again in the same way.
    let again = folder.run("resume fixed --json");
    assert_eq!((again.code, &again.json()["error"]["t"]), (Some(1), &error["t"]));
    assert_eq!(folder.times("fixed"), times);
    // A projection that cannot be done names its constraint.
    for treatment in ["projection", "symmetric-projection"] {
        let run = format!(
            "models/spherical-pendulum.holo --method {treatment}:euler --step 5 --out {treatment}"
        );
        let error = failed(&run);
        if error["kind"] == "projection-not-converged" {
            for key in ["t", "constraint", "iterations", "residual", "out"] {
                assert!(keys(&error).contains(&key), "{key}: {error}");
            }
        }
        assert_eq!(folder.times(treatment)[0], 0.0);
    }
}

#[test]
fn a_collapsed_step_names_what_needs_it() {
    let folder = Folder::new();
    folder.write(
        "blow-up.holo",
        "state calm : R = 1\nstate r[i in 1..3] : R^2 = (0.1*i, 0.05)\ncalm' = -calm\nr[i]' = (r[i].x^2, -r[i].y)\n",
    );
    let failed = |arguments: &str| {
        let answer = folder.run(&format!("run {arguments} --json"));
        assert_eq!(answer.code, Some(1), "{answer:?}");
        answer.json()["error"].clone()
    };
    // r[3].x = 1/(10/3 − t) is the first to be infinite.
    for method in ["plain:dopri5", "corrected:dop853", "corrected:taylor"] {
        let error = failed(&format!("blow-up.holo --method {method} --until 10"));
        assert_eq!(error["kind"], "step-collapsed", "{error}");
        assert!(
            error["message"].as_str().unwrap().contains("the error of r[3] is the largest"),
            "{error}"
        );
        assert!(
            (number(&error, "/t") - 10.0 / 3.0).abs() < 1e-6 && error.get("constraint").is_none(),
            "{error}"
        );
    }
    // A parallel crank mechanism, whose three rods lie on one line when the cranks have turned down
    // to it.
    folder.write(
        "flat.holo",
        "coordinate a : R^2 = (0.6, 0.8)\ncoordinate b : R^2 = (2.6, 0.8)\nmomentum p of a = (0.8, -0.6)\n\
         momentum s of b = (0.8, -0.6)\nhamiltonian dot(p, p)/2 + dot(s, s)/2\nconstraint first : dot(a, a) = 1\n\
         constraint middle : dot(b - a, b - a) = 4\nconstraint last : dot(b - (2, 0), b - (2, 0)) = 1\n",
    );
    // Rounding decides whether a step comes near enough to collapse; in either case the constraint
    // is named.
    let answer = folder.run("run flat.holo --method plain:dopri5 --rtol 1e-12 --until 10 --json");
    let said = match answer.code {
        Some(1) => answer.json()["error"]["message"].to_string(),
        _ => answer.json()["warnings"].to_string(),
    };
    let named = |name: &str| {
        said.contains(&format!("{name} says almost what"))
            || said.contains(&format!("{name} says what"))
    };
    assert!(["first", "middle", "last"].into_iter().any(named), "{answer:?}");
}

#[test]
fn damaged_data_are_refused_by_name() {
    let folder = Folder::new();
    let run = "models/kepler.holo --method rk4 --step 0.01 --until 1";
    folder.summary(&format!("run {run} --out whole"));
    Held::new(&folder, &format!("run {run} --out killed"), "checkpoint 50").kill();
    for shard in ["1/2", "2/2"] {
        let out = &shard[..1];
        folder.summary(&format!(
            "sweep {run} --trajectories 4 --vary v=(0,1+i/100,0) --shard {shard} --out part-{out}"
        ));
    }
    let damaged = |file: &str, commands: &[&str]| {
        let good = fs::read(folder.path(file)).unwrap();
        let mut bad = good.clone();
        bad[good.len() / 2] ^= 4;
        folder.write(file, bad);
        for command in commands {
            folder.run(command).refused(&[file, "is damaged", "checksum", "put back a copy"]);
            let answer = folder.run(&format!("{command} --json"));
            assert!(!folder.path("all").exists(), "half an ensemble is left");
            assert_eq!(
                (answer.code, &answer.json()["error"]["kind"]),
                (Some(2), &"damaged".into()),
                "{answer:?}"
            );
        }
        folder.write(file, good);
    };
    damaged("whole/x/c.0.0", &["export whole --csv out.csv"]);
    assert!(!folder.path("out.csv").exists());
    damaged("whole/time/c.0", &["export whole --csv out.csv"]);
    damaged("whole/status.json", &["export whole --csv out.csv", "resume whole"]);
    damaged("killed/v/c.0.0", &["resume killed", "export killed --csv out.csv"]);
    damaged("killed/checkpoint.bin", &["resume killed", "export killed --csv out.csv"]);
    damaged("part-2/x/c.0.0.0", &["merge all part-1 part-2"]);
    damaged("part-1/.holonome/sums/0", &["merge all part-1 part-2"]);
    folder.summary("merge all part-1 part-2");
}

#[test]
fn an_export_that_is_killed_leaves_nothing() {
    let folder = Folder::new();
    folder.summary("run models/kepler.holo --until 1 --out run");
    for old in [None, Some("old")] {
        if let Some(old) = old {
            folder.write("out.csv", old);
        }
        let before = names(&folder.path("."));
        Held::new(&folder, "export run --csv out.csv", "write 1").kill();
        let held = "held".to_string();
        assert_eq!(
            names(&folder.path(".")).into_iter().filter(|name| *name != held).collect::<Vec<_>>(),
            before
        );
        assert_eq!(fs::read_to_string(folder.path("out.csv")).ok().as_deref(), old);
        fs::remove_file(folder.path("held")).unwrap();
    }
    folder.run("export run --csv out.csv").ok();
    assert!(fs::read_to_string(folder.path("out.csv")).unwrap().starts_with("t,x.x,"));
    assert_eq!(names(&folder.path(".")), ["models", "out.csv", "run"]);
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_export_stays_out_of_runs_and_needs_a_reader() {
    let folder = Folder::new();
    folder.summary("run models/kepler.holo --until 1 --out run");
    folder.summary("run models/kepler.holo --until 1 --out other");
    std::os::unix::fs::symlink("run/x/c.0.0", folder.path("link.csv")).unwrap();
    let before = chunks(&folder.path("run"));
    for file in [
        "run/x/c.0.0",
        "run/x.csv",
        "run/x/new",
        "other/x.csv",
        "link.csv",
        "run/../run/status.json",
    ] {
        folder.run(&format!("export run --csv {file}")).refused(&[
            file,
            "lies in the stored run",
            "elsewhere",
        ]);
        assert!(!file.ends_with("x.csv") || !folder.path(file).exists());
    }
    assert_eq!(chunks(&folder.path("run")), before);
    folder.run("export run --csv out.csv").ok();
    // A folder beside the runs is not inside of them.
    fs::create_dir(folder.path("runs")).unwrap();
    folder.run("export run --csv runs/out.csv").ok();
    let mut closed = Command::new("bash");
    let script = "exec \"$0\" export run --csv - >&-";
    closed.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_holonome")).current_dir(folder.path("."));
    let closed = Answer::new(closed.output().unwrap());
    assert!(
        closed.code == Some(1) && closed.stderr.contains("standard output is closed"),
        "{closed:?}"
    );
    let mut discarded = folder.command("export run --csv -");
    let discarded = discarded.stdout(Stdio::null()).status().unwrap();
    assert!(discarded.success(), "/dev/null is asked for");
}

#[test]
fn names_that_differ_by_case_have_their_own_arrays() {
    let folder = Folder::new();
    folder.write(
        "case.holo",
        "state R : R = 1\nstate r : R = 2\nR' = -r\nr' = R\nintegral J = R^2 + r^2\nobserve j = R\n",
    );
    folder.summary("run case.holo --until 1 --out run");
    let stored = names(&folder.path("run"));
    assert!(
        ["R", "r", "J", "j"].iter().all(|name| stored.contains(&name.to_string())),
        "{stored:?}"
    );
    let (columns, rows) = folder.samples("run");
    assert_eq!(columns[..5], ["t", "R", "r", "J", "j"]);
    assert_eq!(rows[0][..5], [0.0, 1.0, 2.0, 5.0, 1.0]);
}

#[test]
fn files_without_an_end_are_refused() {
    let folder = Folder::new();
    folder.write("table.holo", "table d = \"data.csv\"\nstate x = d.a[1]\nx' = -x\n");
    std::os::unix::fs::symlink("/dev/zero", folder.path("data.csv")).unwrap();
    let huge = fs::File::create(folder.path("huge.holo")).unwrap();
    huge.set_len(1 << 40).unwrap();
    for model in ["/dev/zero", "huge.holo", "table.holo"] {
        for command in ["check", "run"] {
            folder.run(&format!("{command} {model}")).refused(&["64 MiB"]);
        }
    }
    // A pipe is as good as a file.
    let model = fs::File::open(folder.path("models/kepler.holo")).unwrap();
    let output = folder.command("check /dev/stdin").stdin(model).output().unwrap();
    Answer::new(output).ok();
}

/// The hidden folder in which a killed process was building its run goes with the next run there,
/// whatever its name; that of a process that lives stays.
#[test]
fn folders_of_killed_processes_are_removed() {
    let folder = Folder::new();
    fs::create_dir(folder.path("runs")).unwrap();
    let hidden = || {
        let names =
            fs::read_dir(folder.path("runs")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().contains(".tmp-")).count()
    };
    fs::create_dir(folder.path("runs/.other.tmp-1-0")).unwrap();
    let run = "run models/kepler.holo --until 1 --out runs/";
    let next = |name: &str| folder.summary(&format!("{run}{name}"));
    let living = Held::new(&folder, &format!("{run}living"), "write 4");
    Held::new(&folder, &format!("{run}killed"), "write 4").kill();
    assert_eq!(hidden(), 3);
    next("a");
    assert_eq!(hidden(), 2, "one that lives, and one of others");
    living.kill();
    next("b");
    assert_eq!(hidden(), 1, "one of others");
}
