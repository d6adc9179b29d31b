//! Damaged stored runs: reading, resuming and exporting give an error that names the file and the
//! remedy, or the stored numbers; never a panic, never other numbers.

use holonome::store::FORMATS;
use holonome::{
    Arrays, Control, Problem, Resumed, RunOptions, Simulation, StepSize, open_run, prepare,
};
use std::fmt::Display;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

const ROD: &str = "coordinate q : R^3 = (0, 1, 0)\nmomentum p of q = (1, 0, -1)\n\
    hamiltonian dot(p, p)/2 + q.z\nconstraint rod : dot(q, q) = 1\nobserve height = q.z\n";

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, target).unwrap();
    }
}

fn told(error: impl Display) -> String {
    error.to_string()
}

/// Results of every reader of a finished run: its numbers, and those of the extended run.
fn read_by_all(run: &Path) -> Result<[Arrays; 2], String> {
    FORMATS[0].write(&open_run(run).map_err(told)?, std::io::sink()).map_err(told)?;
    let before = Arrays::open(run).map_err(told)?;
    assert!(
        matches!(Simulation::resume(run).map_err(told)?, Resumed::Finished { .. }),
        "the run was finished"
    );
    Simulation::extend(run, 4.4).map_err(told)?.run(&mut |_| Control::Continue).map_err(told)?;
    Ok([before, Arrays::open(run).map_err(told)?])
}

/// Numbers that look arbitrary and are the same in every run.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    }
}

#[test]
fn damaged_runs_give_errors_or_what_was_stored() {
    let scratch = tempfile::tempdir().unwrap();
    let good = scratch.path().join("good");
    let problem: Problem = ROD.parse().unwrap();
    let options = RunOptions {
        method: "rattle".parse().unwrap(),
        step: StepSize::Fixed(0.01),
        until: 4.0,
        every: Some(0.2),
        out: Some(good.clone()),
        ..RunOptions::default()
    };
    prepare(problem, options).unwrap().run(&mut |_| Control::Continue).unwrap();
    let whole = {
        let run = scratch.path().join("whole");
        copy(&good, &run);
        read_by_all(&run).unwrap()
    };
    let mut pick = numbers();
    let (mut refused, mut unharmed, mut cases) = (0, 0, 0);
    for file in files(&good).iter().filter(|file| !file.ends_with("run.lock")) {
        let content = fs::read(file).unwrap();
        let name = file.strip_prefix(&good).unwrap();
        // `None`: the file is removed.
        let mut damages: Vec<Option<Vec<u8>>> =
            vec![None, Some(Vec::new()), Some([&content[..], b"x"].concat())];
        damages.extend((0..3).map(|_| Some(content[..pick(content.len())].to_vec())));
        let flips = if content.len() > 4000 { 40 } else { 8 };
        damages.extend((0..flips).map(|_| {
            let mut bad = content.clone();
            bad[pick(content.len())] ^= 1 << pick(8);
            Some(bad)
        }));
        for damage in damages {
            cases += 1;
            let run = scratch.path().join("damaged");
            let _ = fs::remove_dir_all(&run);
            copy(&good, &run);
            match &damage {
                Some(bad) => fs::write(run.join(name), bad).unwrap(),
                None => fs::remove_file(run.join(name)).unwrap(),
            }
            let shown =
                format!("{} with {:?} bytes", name.display(), damage.as_ref().map(Vec::len));
            match catch_unwind(|| read_by_all(&run)).unwrap_or_else(|_| panic!("{shown}: a panic"))
            {
                Ok(read) => {
                    unharmed += 1;
                    assert!(read == whole, "{shown}: other numbers");
                }
                Err(error) => {
                    refused += 1;
                    let folder = run.to_str().unwrap();
                    assert!(error.contains(folder), "{shown}: {error}");
                    let remedy = [
                        "name the folder",
                        "; put back",
                        "make the run again",
                        "run the model again",
                    ];
                    assert!(remedy.iter().any(|remedy| error.contains(remedy)), "{shown}: {error}");
                    if !name.ends_with("zarr.json") {
                        assert!(error.contains(name.to_str().unwrap()), "{shown}: {error}");
                    }
                }
            }
        }
    }
    assert!(refused > cases / 2, "{refused} of {cases} refused, {unharmed} without consequence");
}
