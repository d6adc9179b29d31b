//! The walls between the crates, and the map that describes them (ARCHITECTURE.md).

mod common;

use common::repository;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates that read or write a file format, whole or by prefix.
const FORMATS: [&str; 14] = [
    "arrow",
    "bincode",
    "ciborium",
    "csv",
    "hdf5",
    "json",
    "netcdf",
    "npy",
    "parquet",
    "ron",
    "serde_json",
    "serde_yaml",
    "toml",
    "zarr",
];

/// Crates that talk to a terminal.
const TERMINAL: [&str; 4] = ["anyhow", "clap", "ctrlc", "indicatif"];

/// Packages of the workspace, by cargo.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Dependencies of a package when it is built, without those of tests.
fn dependencies(packages: &[Value], name: &str) -> Vec<String> {
    let package =
        packages.iter().find(|p| p["name"] == name).unwrap_or_else(|| panic!("no package {name}"));
    let list = package["dependencies"].as_array().unwrap();
    list.iter()
        .filter(|d| d["kind"] != "dev")
        .map(|d| d["name"].as_str().unwrap().to_string())
        .collect()
}

fn is_format(name: &str) -> bool {
    FORMATS.iter().any(|format| {
        name == *format || name.starts_with(&format!("{format}-")) || name.starts_with("zarr")
    })
}

/// All Rust files below a folder of the repository.
fn sources(folder: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push(path);
            }
        }
    }
    let mut out = Vec::new();
    walk(&repository().join(folder), &mut out);
    assert!(!out.is_empty(), "no sources in {folder}");
    out
}

/// Lines of code that contain one of `words`, with their places; comments do not count.
fn lines_with(folder: &str, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in sources(folder) {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if words.iter().any(|word| code.contains(word)) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    found
}

/// Leaves that both halves know.
const LINEAR: &str = "holonome-linear";
const WORDS: &str = "holonome-words";
const ARITHMETIC: &str = "holonome-arithmetic";

#[test]
fn linear_algebra_knows_numbers_only() {
    // The crate that chooses the instructions of a processor.
    assert_eq!(dependencies(&packages(), LINEAR), ["pulp"]);
}

#[test]
fn the_names_of_options_and_arithmetic_know_nothing() {
    assert!(dependencies(&packages(), WORDS).is_empty());
    assert!(dependencies(&packages(), ARITHMETIC).is_empty());
}

/// String literals of a file with their lines, without comments and tests.
fn literals(text: &str) -> Vec<(usize, String)> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let (mut found, mut rest, mut line) = (Vec::new(), text.chars().peekable(), 1);
    while let Some(c) = rest.next() {
        match c {
            '\n' => line += 1,
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|c| *c != '\n').is_some() {},
            // A quote as a character does not begin a string.
            '\'' if rest.next_if_eq(&'"').is_some() => {}
            '"' => {
                let (start, mut literal) = (line, String::new());
                while let Some(c) = rest.next().filter(|c| *c != '"') {
                    line += usize::from(c == '\n');
                    literal.push(c);
                    if c == '\\' {
                        literal.extend(rest.next());
                    }
                }
                found.push((start, literal));
            }
            _ => {}
        }
    }
    found
}

/// True if a text names an option as a command line spells it.
fn names_a_flag(text: &str) -> bool {
    text.match_indices("--").any(|(at, _)| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '-')
            && text[at + 2..].starts_with(|c: char| c.is_ascii_lowercase())
    })
}

#[test]
fn a_literal_with_a_flag_is_found() {
    let text = "let a = '\"'; // \"--step\"\nf(\"a \\\" --until\", \"x--y\", \"---\");\n#[cfg(test)]\nmod tests {\"--out\"}";
    let flags: Vec<_> = literals(text).into_iter().filter(|(_, text)| names_a_flag(text)).collect();
    assert_eq!(flags, [(2, "a \\\" --until".to_string())]);
}

#[test]
fn the_library_names_options_and_no_flags() {
    for folder in ["model", "integrate", "linear", "jit", "figures", "holonome"] {
        for path in sources(&format!("crates/{folder}/src")) {
            if path
                .components()
                .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
            {
                continue;
            }
            let flags: Vec<_> = literals(&fs::read_to_string(&path).unwrap())
                .into_iter()
                .filter(|(_, text)| names_a_flag(text))
                .collect();
            assert!(
                flags.is_empty(),
                "{}: name options by `option(…)`: {flags:#?}",
                path.display()
            );
        }
    }
}

#[test]
fn the_two_halves_know_neither_each_other_nor_file_formats() {
    let packages = packages();
    for half in ["holonome-model", "holonome-integrate"] {
        for name in dependencies(&packages, half)
            .into_iter()
            .filter(|name| ![LINEAR, WORDS, ARITHMETIC].contains(&&name[..]))
        {
            assert!(!name.starts_with("holonome"), "{half} depends on {name}");
            assert!(!is_format(&name), "{half} depends on the file format {name}");
            assert!(
                !TERMINAL.contains(&name.as_str()),
                "{half} depends on {name}, which is for programs"
            );
        }
    }
    // The numeric half derives `Serialize` for the state that a run continues from; the symbolic
    // half stores nothing.
    assert!(!dependencies(&packages, "holonome-model").contains(&"serde".to_string()));
}

#[test]
fn the_two_halves_read_no_files() {
    for folder in ["crates/linear/src", "crates/model/src", "crates/integrate/src"] {
        let found = lines_with(folder, &["std::fs", "fs::read", "File::open", "File::create"]);
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn the_library_talks_to_no_terminal() {
    for name in dependencies(&packages(), "holonome") {
        assert!(
            !TERMINAL.contains(&name.as_str()),
            "holonome depends on {name}, which is for programs"
        );
    }
    let found = lines_with("crates/holonome/src", &["println!", "print!(", "process::exit"]);
    let found: Vec<_> = found.into_iter().filter(|line| !line.contains("/tests/")).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_command_line_knows_only_the_library() {
    let own: Vec<String> = dependencies(&packages(), "holonome-cli")
        .into_iter()
        .filter(|name| name.starts_with("holonome"))
        .collect();
    assert_eq!(own, ["holonome"]);
}

#[test]
fn figures_know_no_runs() {
    let own: Vec<String> = dependencies(&packages(), "holonome-figures")
        .into_iter()
        .filter(|name| name.starts_with("holonome"))
        .collect();
    assert!(own.is_empty(), "{own:?}");
}

/// The only crate with unsafe code: it runs the machine code that it makes.
const UNSAFE: &str = "holonome-jit";

#[test]
fn unsafe_code_is_forbidden_everywhere_but_in_one_crate() {
    let read = |path: &str| fs::read_to_string(repository().join(path)).unwrap();
    assert!(read("Cargo.toml").contains("unsafe_code = \"forbid\""));
    let openings: Vec<String> =
        ["{", "fn", "impl", "trait", "extern"].map(|next| format!("{} {next}", "unsafe")).to_vec();
    let openings: Vec<&str> = openings.iter().map(String::as_str).collect();
    for package in packages() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let text = fs::read_to_string(manifest).unwrap();
        if package["name"] == UNSAFE {
            assert!(
                text.contains("undocumented_unsafe_blocks = \"deny\""),
                "reasons are demanded where it is allowed"
            );
            continue;
        }
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{} sets its own lints",
            package["name"]
        );
        let folder = manifest.parent().unwrap().strip_prefix(repository()).unwrap();
        let found = lines_with(folder.to_str().unwrap(), &openings);
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn machine_code_knows_only_tapes() {
    assert_eq!(dependencies(&packages(), UNSAFE), ["holonome-model", "rustc-hash", "libc"]);
}

#[test]
fn the_map_names_what_exists() {
    let map = fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let paths: Vec<&str> = map
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|quoted| {
            quoted.starts_with("crates/")
                || quoted.starts_with("docs/")
                || quoted.starts_with("scripts/")
        })
        .collect();
    assert!(paths.len() > 30, "only {} paths found", paths.len());
    for path in paths.into_iter().chain(["models", "suite", "fuzz", "docs"]) {
        assert!(
            repository().join(path).exists(),
            "ARCHITECTURE.md names {path}, which does not exist"
        );
    }
    for package in packages() {
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        let folder = folder.strip_prefix(repository()).unwrap().display().to_string();
        assert!(map.contains(&format!("`{folder}`")), "ARCHITECTURE.md does not describe {folder}");
    }
}
