//! The graph of modules of each crate: a module must not use one that uses it.

mod common;

use common::repository;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const CRATES: [&str; 7] = ["linear", "model", "integrate", "jit", "figures", "holonome", "cli"];

/// Modules that each module of a crate uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Top-level modules of a crate with their files, tests left out.
fn modules(source: &Path) -> BTreeMap<String, Vec<String>> {
    fn read(path: &Path, texts: &mut Vec<String>) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name == "tests" {
            return;
        }
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| read(&entry.unwrap().path(), texts));
        } else if path.extension().is_some_and(|e| e == "rs") {
            texts.push(fs::read_to_string(path).unwrap());
        }
    }
    let mut modules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if !["lib", "main"].contains(&name) {
            read(&path, modules.entry(name.to_string()).or_default());
        }
    }
    modules
}

/// First names of the paths below `crate::` in a file's code.
fn names_used(text: &str) -> BTreeSet<String> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n");
    let identifier = |rest: &str| -> String {
        rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(identifier(rest));
            continue;
        };
        // `use crate::{a::{b, c}, d}`: the names at the first level.
        let (mut depth, mut starts) = (0, true);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => starts = true,
                c if starts && !c.is_whitespace() => {
                    names.insert(identifier(&list[at..]));
                    starts = false;
                }
                _ => {}
            }
        }
    }
    names
}

fn uses(source: &Path) -> Uses {
    let modules = modules(source);
    let of_module = |(name, texts): (&String, &Vec<String>)| {
        let mut used: BTreeSet<String> = texts.iter().flat_map(|text| names_used(text)).collect();
        used.retain(|other| other != name && modules.contains_key(other));
        (name.clone(), used)
    };
    modules.iter().map(of_module).collect()
}

/// Modules that `from` uses, itself or through others.
fn reached(uses: &Uses, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut stack = vec![from.to_string()];
    while let Some(module) = stack.pop() {
        stack.extend(uses[&module].iter().filter(|next| reached.insert((*next).clone())).cloned());
    }
    reached
}

#[test]
fn paths_of_a_file_are_found() {
    let text = "use crate::a::b;\nuse crate::{c::{d, e}, f};\n// crate::g\nlet x = crate::h::i();\n#[cfg(test)]\nmod tests {\nuse crate::k;}";
    assert_eq!(names_used(text).into_iter().collect::<Vec<_>>(), ["a", "c", "f", "h"]);
}

#[test]
fn modules_use_each_other_in_one_direction() {
    for name in CRATES {
        let uses = uses(&repository().join("crates").join(name).join("src"));
        assert!(uses.len() > 3, "crates/{name}: only {} modules found", uses.len());
        for module in uses.keys() {
            let through: Vec<&String> =
                uses[module].iter().filter(|used| reached(&uses, used).contains(module)).collect();
            assert!(
                through.is_empty(),
                "crates/{name}: '{module}' stands in a circle of uses through {through:?}"
            );
        }
    }
}
