//! Test that MDAnalysis reads the trajectories that `holonome export` writes, as extended XYZ, PDB,
//! DCD and XTC.
//!
//! The test needs a Python with the packages of `scripts/python-packages.txt`, named by the
//! environment variable `HOLONOME_PYTHON`. Without the variable it is SKIPPED and says so;
//! continuous integration sets it.

mod common;

use common::{Folder, repository};
use std::env;
use std::process::Command;

#[test]
fn an_independent_reader_reads_molecules() {
    let Some(python) = env::var_os("HOLONOME_PYTHON") else {
        eprintln!(
            "SKIPPED: set HOLONOME_PYTHON to a Python that has MDAnalysis (see the head of this file)"
        );
        return;
    };
    let folder = Folder::new();
    // Twelve atoms: an XTC file with fewer than ten is not compressed.
    folder.run("run models/water.holo --set N=4 --method rattle --step 0.02 --until 1 --samples 4 --out run").ok();
    for format in ["csv", "xyz", "pdb", "dcd", "xtc"] {
        folder.run(&format!("export run --{format} run.{format}")).ok();
    }
    let script = repository().join("crates/cli/tests/molecules.py");
    let output = Command::new(&python).arg(script).arg(folder.path("")).output();
    let output =
        output.unwrap_or_else(|error| panic!("HOLONOME_PYTHON ({}): {error}", python.display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = String::from_utf8_lossy(&output.stdout);
    assert_eq!(read.lines().count(), 4, "{read}");
}
