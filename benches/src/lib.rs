//! Common parts of the benches: hand-written C kernels (`limits`), compiled here if there is a C
//! compiler, and ratios measured in one run.
//!
//! Machines are shared and noisy, so nothing here is an absolute time: both sides run in turns,
//! many times, and the ratio is that of the shortest times.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of hand-written kernels.
pub struct Limit {
    program: PathBuf,
    _folder: tempfile::TempDir,
}

impl Limit {
    /// Compile `limits/NAME.c` for this processor, with the flags of a person who wants it fast.
    /// `None` if there is no C compiler, with the reason on stderr.
    pub fn compile(name: &str) -> Option<Limit> {
        Limit::compile_with(name, &[])
    }

    /// [`Limit::compile`] with more flags.
    pub fn compile_with(name: &str, flags: &[&str]) -> Option<Limit> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("limits").join(format!("{name}.c"));
        let folder = tempfile::tempdir().ok()?;
        let program = folder.path().join(name);
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
        let compiled = Command::new(&compiler)
            .args(["-O3", "-march=native", "-mprefer-vector-width=512", "-w"])
            .args(flags)
            .arg("-o")
            .arg(&program)
            .arg(&source)
            .arg("-lm")
            .status();
        match compiled {
            Ok(status) if status.success() => Some(Limit { program, _folder: folder }),
            Ok(status) => {
                eprintln!("{compiler} could not compile {} ({status})", source.display());
                None
            }
            Err(error) => {
                eprintln!("no C compiler ({compiler}: {error}): there is nothing to compare with");
                None
            }
        }
    }

    /// Run a program that takes these arguments and prints how long a step took: seconds per step.
    ///
    /// # Panics
    /// If it does not print that.
    pub fn seconds_per_step(&self, arguments: &[&str]) -> f64 {
        let output = Command::new(&self.program)
            .args(arguments)
            .output()
            .expect("a program that was just compiled runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let word = text.split_whitespace().find_map(|word| word.strip_prefix("us/step="));
        1e-6 * word.and_then(|word| word.parse::<f64>().ok()).expect("microseconds per step")
    }

    /// Run a kernel for `count` steps of length `h`: seconds per step.
    ///
    /// # Panics
    /// If the program does not print how long it took.
    pub fn seconds(&self, kernel: &str, h: f64, count: u64) -> f64 {
        let output = Command::new(&self.program)
            .args([kernel, &h.to_string(), &count.to_string()])
            .output()
            .expect("a program that was just compiled runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let seconds: f64 =
            text.split_whitespace().next().and_then(|word| word.parse().ok()).expect("seconds");
        seconds / count as f64
    }
}

/// Shortest of `rounds` times of each side, taken in turns.
pub fn in_turns(
    rounds: usize,
    mut one: impl FnMut() -> f64,
    mut other: impl FnMut() -> f64,
) -> (f64, f64) {
    let mut shortest = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        shortest = (shortest.0.min(one()), shortest.1.min(other()));
    }
    shortest
}
