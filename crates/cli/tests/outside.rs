//! What comes from outside is not trusted: names that act on a terminal, pipes in the place of
//! files, limits of the system, stores that lead elsewhere.

#![cfg(unix)]

mod common;

use common::{Answer, Folder, number};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Colours, the C1 form of an escape, and a mark that turns the direction of writing.
const NAME: &str = "a\u{1b}[31m\u{9b}2J\u{202e}b";
const SHOWN: &str = "a\\u{1b}[31m\\u{9b}2J\\u{202e}b";
/// As a shell reads it.
const WORD: &str = "$'a\\x1b[31m\\xc2\\x9b2J\\xe2\\x80\\xaeb";

/// Check that nothing in an answer acts on a terminal.
#[track_caller]
fn harmless(answer: Answer) -> Answer {
    let acts = |c: char| {
        c.is_control() && c != '\n' && c != '\t' || ('\u{202a}'..='\u{202e}').contains(&c)
    };
    assert!(!answer.stdout.contains(acts) && !answer.stderr.contains(acts), "{answer:?}");
    answer
}

#[test]
fn names_that_act_on_a_terminal_are_shown_escaped() {
    let folder = Folder::new();
    fs::copy(folder.path("models/kepler.holo"), folder.path(&format!("{NAME}.holo"))).unwrap();
    let run = |arguments: &str| harmless(folder.run(arguments));
    let answer = run(&format!("run {NAME}.holo --until 3 --every 0.1 --report")).ok();
    assert!(answer.stdout.contains(&format!("{SHOWN} by corrected:dop853")), "{answer:?}");
    assert!(
        answer.stderr.contains(&format!("holonome export {WORD}"))
            || answer.stderr.contains("$'runs/a\\x1b[31m")
    );
    let stored = format!("runs/{NAME}-1");
    for command in ["resume", "analyse", "report"] {
        run(&format!("{command} {stored}")).ok();
    }
    run(&format!("plot {stored} {stored} --svg {NAME}.svg")).ok();
    let answer = run(&format!("resume {stored} --until 4")).ok();
    assert!(answer.stderr.contains(&format!("runs/{SHOWN}-1 goes on")), "{answer:?}");
    assert!(
        run(&format!("export {stored} --csv {NAME}.csv"))
            .ok()
            .stderr
            .contains(&format!("{SHOWN}.csv"))
    );
    run(&format!("check {NAME}.holo")).ok();
    run(&format!("sweep {NAME}.holo --trajectories 2 --until 1 --out s{NAME}")).ok();
    run(&format!("compare {NAME}.holo --method rk4 --step 0.1,0.05 --until 1")).ok();
    harmless(folder.run(&format!("run {NAME}.holo --set mu={NAME}"))).refused(&["--set:1:5"]);
    // Errors: of files, of options, of the command line, of models.
    for arguments in [
        format!("run no{NAME}.holo"),
        format!("export no{NAME} --csv -"),
        format!("run {NAME}.holo --method {NAME}"),
        format!("run {NAME}.holo --set {NAME}=1"),
        format!("run {NAME}.holo --record {NAME}"),
        format!("run {NAME}.holo --until {NAME}"),
        format!("run {NAME}.holo --{NAME}"),
        NAME.to_string(),
        format!("reproduce {NAME}"),
        format!("analyse {stored} --measure {NAME}"),
        format!("plot {stored} --y {NAME} --svg x.svg"),
    ] {
        let answer = run(&arguments);
        assert!(
            answer.code == Some(2) && answer.stderr.contains("\\u{1b}[31m"),
            "{arguments:?}: {answer:?}"
        );
    }
    folder.write(
        "model.holo",
        "coordinate q = 1 # \u{1b}[31m\u{9b}\u{202e}\u{200f}\u{61c}\ntable A = \"\u{1b}[31m\u{9b}\u{202e}\"\n\u{9b}\n",
    );
    let answer = harmless(folder.run("check model.holo"));
    assert!(
        answer.code == Some(2) && answer.stderr.contains("unexpected character U+009B"),
        "{answer:?}"
    );
}

#[test]
fn figures_of_such_names_are_files_that_can_be_read() {
    let folder = Folder::new();
    for name in [NAME, "b\u{1}\u{7f}"] {
        folder.run(&format!("run models/kepler.holo --until 3 --every 0.1 --out {name}")).ok();
    }
    folder.run(&format!("plot {NAME} b\u{1}\u{7f} --svg a.svg --pdf a.pdf --png a.png")).ok();
    let svg = fs::read_to_string(folder.path("a.svg")).unwrap();
    assert!(svg.contains(SHOWN) && !svg.contains(|c: char| c.is_control() && c != '\n'), "{svg}");
    assert!(fs::read(folder.path("a.pdf")).unwrap().starts_with(b"%PDF"));
    assert!(fs::read(folder.path("a.png")).unwrap().starts_with(b"\x89PNG"));
}

/// Answer of a command that must not wait for anything.
#[track_caller]
fn at_once(folder: &Folder, arguments: &str) -> Answer {
    let mut child =
        folder.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("`{arguments}` waits");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Answer::new(child.wait_with_output().unwrap())
}

#[track_caller]
fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

const BALL: &str = "coordinate q = 0\nmomentum p of q = 1\nhamiltonian p^2/2\n";

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_at_once() {
    let folder = Folder::new();
    for name in ["pipe.holo", "pipe.csv"] {
        pipe(&folder.path(name));
    }
    folder
        .write("including.holo", "include \"pipe.holo\"\n")
        .write("reading.holo", "table A = \"pipe.csv\"\n");
    folder.write("device.holo", format!("table A = \"/dev/zero\"\n{BALL}"));
    for (model, says) in [
        ("pipe.holo", "it is a pipe, not a file"),
        ("models", "it is a folder; name one of its models"),
        ("/dev/zero", "it is a device, not a file"),
        ("including.holo", "it is a pipe, not a file"),
        ("reading.holo", "it is a pipe, not a file"),
        ("device.holo", "it is a device, not a file"),
    ] {
        for command in ["check", "run"] {
            at_once(&folder, &format!("{command} {model}")).refused(&[says]);
        }
    }
    // In a stored run.
    folder.summary("run models/spherical-pendulum.holo --until 2 --every 0.1 --out run");
    for file in
        ["zarr.json", "status.json", "checkpoint.bin", "q/c.0.0", "time/c.0", "component_3/c.0"]
    {
        let (path, aside) = (folder.path("run").join(file), folder.path("aside"));
        fs::rename(&path, &aside).unwrap();
        pipe(&path);
        for command in
            ["resume run --until 3", "report run", "export run --csv out.csv", "analyse run"]
        {
            let answer = at_once(&folder, command);
            assert!(
                answer.code == Some(0) || answer.stderr.contains(file),
                "{file}: {command}: {answer:?}"
            );
        }
        fs::rename(&aside, &path).unwrap();
    }
    pipe(&folder.path("run/run.lock"));
    at_once(&folder, "resume run --until 9").refused(&["run.lock is damaged", "it is not a file"]);
    // What a process was given stays readable: standard input, and the `<(command)` of a shell.
    for device in ["/dev/stdin", "/dev/fd/0"] {
        let mut child = folder
            .command(&format!("check {device}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(BALL.as_bytes()).unwrap();
        Answer::new(child.wait_with_output().unwrap()).ok();
    }
}

/// A limit on the sizes of files is a full disk, and no signal ends the process.
#[test]
fn a_largest_file_size_is_an_error() {
    let folder = Folder::new();
    // In kilobytes: less than the samples take, and less than a page, whose scripts alone are more.
    for (limit, options) in [
        (128, "--every 0.01 --until 100 --out run"),
        (72, "--samples 2 --until 1 --report --out page"),
    ] {
        let program = env!("CARGO_BIN_EXE_holonome");
        let run =
            format!("ulimit -f {limit}; exec {program} run models/kepler.holo {options} --json");
        let mut command = Command::new("bash");
        command.args(["-c", &run]).current_dir(folder.path("."));
        let answer = Answer::new(command.output().unwrap());
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert!(answer.stderr.contains("no space left to write"), "{answer:?}");
        assert_eq!(answer.json()["error"]["kind"], "disk-full", "{answer:?}");
    }
    // What was stored is kept, and goes on where there is room.
    folder.summary("resume run");
    assert_eq!(folder.times("run").last(), Some(&100.0));
}

/// Every reader of a store.
const READERS: [&str; 7] = [
    "resume crafted",
    "resume crafted --until 3",
    "report crafted",
    "plot crafted --svg x.svg",
    "export crafted --csv -",
    "analyse crafted --measure mean(H)",
    "merge merged crafted",
];

/// Copy a folder with its links.
fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

#[test]
fn a_crafted_store_leads_nowhere_else() {
    let folder = Folder::new();
    // Interrupted, so that `resume` would write.
    let stopped =
        folder.run("run models/kepler.holo --until 2 --every 0.1 --max-steps 3 --out run");
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    let text = fs::read_to_string(folder.path("run/zarr.json")).unwrap();
    let good: Value = serde_json::from_str(&text).unwrap();
    fs::create_dir(folder.path("victim")).unwrap();
    folder.write("victim/c.0.0", "mine").write("victim/c.1.0", "mine");
    let renamed = |name: &str| {
        let mut group = good.clone();
        let arrays = group["consolidated_metadata"]["metadata"].as_object_mut().unwrap();
        let array = arrays.shift_remove("H").unwrap();
        arrays.insert(name.to_string(), array);
        group
    };
    let without = |group: &Value, which: &dyn Fn(&str) -> bool| {
        let mut group = group.clone();
        let stored = &mut group["attributes"]["holonome_checksums"];
        let mut checksums: Map<String, Value> =
            serde_json::from_str(stored.as_str().unwrap()).unwrap();
        checksums.retain(|key, _| !which(key));
        *stored = json!(checksums).to_string().into();
        group
    };
    let mut crafted: Vec<Value> = Vec::new();
    for name in [
        "../victim",
        "/tmp/victim",
        "a/../../victim",
        "..",
        ".hidden",
        "H\u{0}",
        "H\u{1b}[31m",
        "zarr.json",
        "",
    ] {
        crafted.push(without(&renamed(name), &|_| true));
        crafted.push(without(&renamed(name), &|key| key == "(arrays)"));
        crafted.push(renamed(name));
    }
    let checksums = good["attributes"]["holonome_checksums"].as_str().unwrap();
    let mut checksums: Map<String, Value> = serde_json::from_str(checksums).unwrap();
    // What the attributes tell of the end is for readers: the program has it elsewhere.
    checksums.retain(|key, _| {
        !["status", "t"].contains(&&**key)
            && !key.starts_with("drift.")
            && !key.starts_with("cost.")
    });
    assert!(checksums.len() > 7, "{checksums:?}");
    crafted.extend(checksums.keys().map(|key| without(&good, &|other| other == key)));
    crafted.push(without(&good, &|_| true));
    for group in crafted {
        let _ = fs::remove_dir_all(folder.path("crafted"));
        copy(&folder.path("run"), &folder.path("crafted"));
        folder.write("crafted/zarr.json", group.to_string());
        for reader in READERS {
            let answer = harmless(folder.run(reader));
            assert_eq!(answer.code, Some(2), "{reader}: {answer:?}");
        }
        assert_eq!(fs::read_dir(folder.path("victim")).unwrap().count(), 2);
    }
    // Links inside a store: to a folder in the place of an array, and to files in the place of
    // temporary ones.
    folder.write("mine.txt", "mine");
    for (link, target) in [
        ("H", "../victim"),
        (".tmp-status.json", "../mine.txt"),
        (".tmp-checkpoint.bin", "../mine.txt"),
        ("H/.tmp-c.0", "../../mine.txt"),
        (".tmp-report.html", "../mine.txt"),
        ("report.html", "../mine.txt"),
        ("run.lock", "../created.txt"),
    ] {
        for reader in READERS {
            let _ = fs::remove_dir_all(folder.path("crafted"));
            copy(&folder.path("run"), &folder.path("crafted"));
            let path = folder.path("crafted").join(link);
            if path.is_dir() {
                fs::remove_dir_all(&path).unwrap()
            } else {
                drop(fs::remove_file(&path))
            }
            symlink(target, &path).unwrap();
            folder.run(reader);
            assert_eq!(
                fs::read_to_string(folder.path("mine.txt")).unwrap(),
                "mine",
                "{link}: {reader}"
            );
            for name in ["victim/c.0.0", "victim/c.1.0"] {
                assert_eq!(
                    fs::read_to_string(folder.path(name)).unwrap(),
                    "mine",
                    "{link}: {reader}"
                );
            }
            assert_eq!(fs::read_dir(folder.path("victim")).unwrap().count(), 2, "{link}: {reader}");
            assert!(!folder.path("created.txt").exists(), "{link}: {reader}");
        }
    }
}

/// Files that include each other in a long row, each of many times, or of a size that is no
/// model's.
#[test]
fn includes_end_in_time_or_are_refused() {
    let folder = Folder::new();
    let count = 900;
    let name = |k: usize| format!("part-{k}.holo");
    for k in 0..count {
        // The next one, and one further on, which is there already: paths to the last are beyond
        // counting.
        let text = format!(
            "parameter a{k} = {k}\ninclude \"{}\"\ninclude \"{}\"\n",
            name(k + 1),
            name((k + 2).min(count))
        );
        folder.write(&name(k), text);
    }
    folder.write(&name(count), BALL);
    at_once(&folder, "check part-0.holo").ok();
    for k in 0..1100 {
        folder.write(&format!("deep-{k}.holo"), format!("include \"deep-{}.holo\"\n", k + 1));
    }
    at_once(&folder, "check deep-0.holo")
        .refused(&["more than 1000 files include each other", "deep-1000.holo"]);
    let large = format!("{}\n", "#".repeat(40 << 20));
    folder.write("one.holo", &large).write("two.holo", &large);
    folder.write("both.holo", format!("include \"one.holo\"\ninclude \"two.holo\"\n{BALL}"));
    at_once(&folder, "check both.holo").refused(&["larger than 64 MiB", "both.holo:2"]);
}

/// Columns by the ten thousands take no longer each than a few.
#[test]
fn wide_tables_are_read_in_time() {
    let folder = Folder::new();
    let count = 60_000;
    let names: Vec<String> = (0..count).map(|k| format!("column{k}")).collect();
    let numbers: Vec<String> = (0..count).map(|k| k.to_string()).collect();
    folder.write("wide.csv", format!("{}\n{}\n", names.join(","), numbers.join(",")));
    let uses: Vec<String> =
        (0..2000).map(|k| format!("parameter a{k} = A.column{}[1]\n", 29 * k)).collect();
    folder.write(
        "wide.holo",
        format!("table A = \"wide.csv\"\n{}{BALL}observe last = a1999\n", uses.concat()),
    );
    let answer = folder.summary("run wide.holo --until 1 --samples 2 --out run");
    assert_eq!(number(&answer, "/t"), 1.0);
    let (columns, rows) = folder.samples("run");
    let last = columns.iter().position(|column| column == "last").unwrap();
    assert_eq!(rows[0][last], 29.0 * 1999.0);
    folder.write("twice.csv", format!("{},column7\n{},0\n", names.join(","), numbers.join(",")));
    folder.write("twice.holo", format!("table A = \"twice.csv\"\n{BALL}"));
    folder.run("check twice.holo").refused(&["two columns 'column7'"]);
    folder.write("wrong.holo", format!("table A = \"wide.csv\"\n{BALL}parameter a = A.other[1]\n"));
    let answer = folder.run("check wrong.holo").refused(&["no column 'other'", "and 59980 more"]);
    assert!(answer.stderr.len() < 2000, "{}", answer.stderr.len());
}

#[test]
fn a_model_comes_through_a_pipe() {
    let folder = Folder::new();
    let of = |arguments: &str, text: &str| {
        let mut command = folder.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Answer::new(child.wait_with_output().unwrap())
    };
    folder.write("k.csv", "k\n4\n");
    let text = "table tab = \"k.csv\"\ncoordinate q : R = 1\nmomentum p of q = 0\n\
                hamiltonian (p^2 + tab.k[1]*q^2)/2";
    let answer = of("run - --until 1 --out piped --json", text).ok();
    assert_eq!(answer.json()["model"], "model");
    // The run has its model, so that it is continued without the pipe.
    folder.run("resume piped --until 2").ok();
    assert_eq!(folder.times("piped").last(), Some(&2.0));
    for command in ["check -", "compare - --method rk4 --step 0.1 --until 1", "integrals -"] {
        of(command, text).ok();
    }
    of("run -", "coordinate q : R = 1\nx").refused(&["standard input:2:1", "unknown statement"]);
    of("run -", "").refused(&["standard input:1:1", "coordinates"]);
}
