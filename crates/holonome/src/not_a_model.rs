//! Reasons why a path is not that of a model file, with the file that was probably meant.

use holonome_model::syntax::diagnostic::did_you_mean;
use std::io;
use std::path::{Path, PathBuf};

/// Ending of a model file.
const ENDING: &str = ".holo";

/// Endings of files that a `table` reads.
const DATA: [&str; 8] = ["csv", "tsv", "dat", "xyz", "extxyz", "pdb", "ent", "gro"];

/// Largest number of models that a message names.
const NAMED: usize = 5;

/// Error of a file of data given as a model, known by its ending.
pub(crate) fn refuse_data(path: &Path) -> io::Result<()> {
    let ending =
        path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    let data = DATA.contains(&ending.as_str()) && path.is_file();
    let reason = || {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!(
            "it is a file of data, not a model; a model beside it reads it by `table NAME = \"{name}\"`"
        )
    };
    if data { Err(io::Error::new(io::ErrorKind::InvalidInput, reason())) } else { Ok(()) }
}

/// Error of a model file that cannot be read, with what is there in its place.
pub(crate) fn explained(path: &Path, error: io::Error) -> io::Error {
    let reason = if path.is_dir() {
        match &models(path)[..] {
            _ if path.join("zarr.json").exists() => {
                "it is the folder of a run, not a model file; `holonome report` shows it, `holonome resume` goes on \
                 with it"
                    .to_string()
            }
            [] => "it is a folder, not a model file".to_string(),
            there => format!("it is a folder; name one of its models: {}", list(there)),
        }
    } else if error.kind() == io::ErrorKind::NotFound {
        match (meant(path), &models(folder(path))[..]) {
            (Some(meant), _) => format!("there is no such file; did you mean {}?", meant.display()),
            (None, []) => return error,
            (None, there) => {
                format!("there is no such file; the models beside it are {}", list(there))
            }
        }
    } else {
        return error;
    };
    io::Error::new(error.kind(), reason)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Names of the model files in a folder, in their order; none if it cannot be read.
fn models(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(ENDING));
    names.sort();
    names
}

fn list(names: &[String]) -> String {
    let more = if names.len() > NAMED { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(NAMED)].join(", "))
}

/// Model file that is there and has nearly this path: with its ending, in the folder `models`, or
/// with a few other letters.
fn meant(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(ENDING).unwrap_or(name);
    [folder(path).to_path_buf(), folder(path).join("models")].into_iter().find_map(|folder| {
        let there = models(&folder);
        let stems = || there.iter().filter_map(|known| known.strip_suffix(ENDING));
        let found = stems().find(|known| *known == stem).or_else(|| did_you_mean(stem, stems()))?;
        Some(folder.strip_prefix(".").unwrap_or(&folder).join(format!("{found}{ENDING}")))
    })
}
