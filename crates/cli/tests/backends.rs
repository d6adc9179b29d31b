//! Equality of all backends: each model of the repository, by methods that use all parts of a step,
//! gives the same bits by machine code, by the block interpreter, by the interpreter, and if it is
//! interpreted first and compiled later, alone and in lanes.

mod common;

use common::{Answer, Folder, repository};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const BACKENDS: [&str; 4] = ["machine", "block", "interpreter", "gradual"];

/// Equal steps with and without a correction, and feedback; attempts with two error estimates, with
/// one and a known first stage; projections, whose steps are not compiled as a whole; methods that
/// solve equations, where they suit.
const METHODS: [&str; 13] = [
    "--method plain:rk4 --step 0.01",
    "--method corrected:heun --step 0.01",
    "--method feedback:euler --step 0.001",
    "--method corrected:dop853",
    "--method plain:dopri5 --rtol 1e-6",
    "--method corrected:taylor",
    "--method projection:midpoint --step 0.01",
    "--method symmetric-projection:rk4 --step 0.01",
    "--method symmetric-projection:implicit-midpoint --step 0.02",
    "--method suzuki4(rattle) --step 0.02",
    "--method shake:gauss4 --step 0.02",
    "--method stormer-verlet-b --step 0.02",
    "--method gauss6 --step 0.02",
];

fn models() -> Vec<PathBuf> {
    let mut all = Vec::new();
    for folder in ["models", "suite/models"] {
        let files =
            fs::read_dir(repository().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        all.extend(files.filter(|path| path.extension().is_some_and(|e| e == "holo")));
    }
    all.sort();
    assert!(all.len() > 25);
    all
}

/// Output of a command, without everything that may differ from run to run; the error if the
/// command fails.
fn said(folder: &Folder, backend: &str, arguments: &str) -> Value {
    let mut command = folder.command(&format!("{arguments} --json --quiet"));
    let mut said = Answer::new(command.env("HOLONOME_BACKEND", backend).output().unwrap()).json();
    if let Some(object) = said.as_object_mut() {
        object.remove("out");
        if let Some(cost) = object.get_mut("cost").and_then(Value::as_object_mut) {
            cost.remove("wall_seconds");
        }
        if let Some(error) = object.get_mut("error").and_then(Value::as_object_mut) {
            error.remove("out");
            // The message names the folder.
            error.remove("message");
        }
    }
    said
}

fn same_everywhere(first: usize) {
    let folder = Folder::new();
    let mut finished = 0;
    // Every fourth model, so that the tests share the work.
    for model in models().iter().skip(first).step_by(4) {
        // One leg of six has the same formulas.
        let is_large = model.ends_with("strandbeest.holo");
        let smaller = if is_large { "--set cranks=1 --set sides=1" } else { "" };
        for method in METHODS {
            let run = format!("run {} {smaller} {method} --until 0.3 --samples 7", model.display());
            let [machine, others @ ..] = BACKENDS.map(|backend| said(&folder, backend, &run));
            for other in others {
                assert_eq!(machine, other, "{run}");
            }
            finished += usize::from(machine.get("state").is_some());
        }
        let sweep = format!("sweep {} {smaller} --trajectories 11 --until 0.3", model.display());
        let [machine, others @ ..] = BACKENDS.map(|backend| said(&folder, backend, &sweep));
        for other in others {
            assert_eq!(machine, other, "{sweep}");
        }
    }
    assert!(finished > 30, "{finished}");
}

#[test]
fn the_same_bits_1() {
    same_everywhere(0);
}

#[test]
fn the_same_bits_2() {
    same_everywhere(1);
}

#[test]
fn the_same_bits_3() {
    same_everywhere(2);
}

#[test]
fn the_same_bits_4() {
    same_everywhere(3);
}
