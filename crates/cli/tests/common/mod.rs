//! The built binary in a folder of its own.

#![allow(dead_code, reason = "each test binary uses its part")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder with the models of the repository in `models/`, removed at the end.
pub struct Folder(PathBuf);

/// Output and exit status of a command.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    pub fn new(output: Output) -> Answer {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        let answer = Answer {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        };
        assert!(!answer.stderr.contains("panicked"), "a panic reached the user: {answer:?}");
        answer
    }

    /// Text that a terminal shows, results after the rest.
    pub fn shown(&self) -> String {
        format!("{}{}", self.stderr, self.stdout)
    }

    /// The only JSON object on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.matches('\n').count(), 1, "one line on stdout: {self:?}");
        assert!(self.stdout.starts_with('{') && self.stdout.ends_with("}\n"), "{self:?}");
        serde_json::from_str(&self.stdout).expect("stdout is one JSON object")
    }

    #[track_caller]
    pub fn ok(self) -> Answer {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Refused input: exit 2, a message with all of `fragments`, nothing on stdout.
    #[track_caller]
    pub fn refused(self, fragments: &[&str]) -> Answer {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert!(self.stderr.lines().any(|line| line.starts_with("error")), "{self:?}");
        for fragment in fragments {
            assert!(self.stderr.contains(fragment), "no {fragment:?} in {}", self.stderr);
        }
        assert_eq!(self.stdout, "");
        self
    }
}

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("holonome-cli-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("models")).unwrap();
        for entry in fs::read_dir(repository().join("models")).unwrap() {
            let from = entry.unwrap().path();
            fs::copy(&from, path.join("models").join(from.file_name().unwrap())).unwrap();
        }
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Folder {
        fs::write(self.path(name), bytes).unwrap();
        self
    }

    /// The binary in this folder; `arguments` are separated by spaces.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holonome"));
        command.args(arguments.split_whitespace()).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &str) -> Answer {
        Answer::new(self.command(arguments).output().unwrap())
    }

    /// The pendulum of the examples, with `options`.
    pub fn pendulum(&self, options: &str) -> Answer {
        self.run(&format!("run models/spherical-pendulum.holo {options}"))
    }

    /// The JSON summary of a run that succeeds.
    #[track_caller]
    pub fn summary(&self, arguments: &str) -> Value {
        self.run(&format!("{arguments} --json --quiet")).ok().json()
    }

    /// A run's samples: the columns' names, and the rows.
    #[track_caller]
    pub fn samples(&self, run: &str) -> (Vec<String>, Vec<Vec<f64>>) {
        let text = self.run(&format!("export {run} --csv -")).ok().stdout;
        let mut lines = text.lines();
        let names = lines.next().unwrap().split(',').map(String::from).collect();
        (
            names,
            lines.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect(),
        )
    }

    /// The times of a run's samples.
    #[track_caller]
    pub fn times(&self, run: &str) -> Vec<f64> {
        self.samples(run).1.iter().map(|row| row[0]).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Keys of an object, in their order.
#[track_caller]
pub fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap_or_else(|| panic!("{value} is no object"))
        .keys()
        .map(String::as_str)
        .collect()
}

/// A number inside a JSON value.
#[track_caller]
pub fn number(value: &Value, path: &str) -> f64 {
    value
        .pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no number {path} in {value}"))
}
