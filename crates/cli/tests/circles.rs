//! The graph of files of each crate: no file uses one that uses it, directly or through others. A
//! module and the files of its folder count as one here: they are read together.

mod common;

use common::repository;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const CRATES: [&str; 9] =
    ["arithmetic", "words", "linear", "model", "integrate", "jit", "figures", "holonome", "cli"];

/// Path of a module below its crate.
type Module = Vec<String>;

/// Path that a file mentions, from `crate`, `self`, `super` or a module of its own on.
struct Mention {
    path: Vec<String>,
    /// True in `pub use`, which makes a name known and uses nothing.
    is_re_export: bool,
}

/// Text of a file without comments, strings and tests.
fn code_of(text: &str) -> String {
    let mut end = text.len();
    for (at, _) in text.match_indices("#[cfg(") {
        let line = text[at..].lines().take(2).collect::<Vec<_>>();
        if line[0].contains("test") && line.get(1).is_some_and(|next| next.contains("mod tests {"))
        {
            end = end.min(at);
        }
    }
    let mut code = String::new();
    for line in text[..end].lines() {
        let line = line.split("//").next().unwrap();
        // What stands between two quotes is no code.
        code.extend(line.split('"').step_by(2));
        code.push('\n');
    }
    code
}

/// Modules of a crate with the code of their files.
fn modules(source: &Path) -> BTreeMap<Module, String> {
    fn read(folder: &Path, module: &[String], modules: &mut BTreeMap<Module, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_string();
            if name == "tests" {
                continue;
            }
            let inner = [module, std::slice::from_ref(&name)].concat();
            if path.is_dir() {
                read(&path, &inner, modules);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let is_root = ["mod", "lib", "main"].contains(&&name[..]);
                let module = if is_root { module.to_vec() } else { inner };
                modules.insert(module, code_of(&fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut found = BTreeMap::new();
    read(source, &[], &mut found);
    found
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Ends of the paths that continue at the start of `text`, `::a::{b, c::d}`.
fn ends(text: &str) -> (Vec<Vec<String>>, &str) {
    let Some(mut rest) = text.trim_start().strip_prefix("::").map(str::trim_start) else {
        return (vec![Vec::new()], text);
    };
    if let Some(list) = rest.strip_prefix('{') {
        let mut all = Vec::new();
        rest = list;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            let len = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            if len == 0 {
                return (all, rest.get(1..).unwrap_or(""));
            }
            let (inner, behind) = ends(&rest[len..]);
            all.extend(
                inner.into_iter().map(|end| [&[rest[..len].to_string()], &end[..]].concat()),
            );
            rest = behind
                .strip_prefix(" as ")
                .map_or(behind, |name| name.trim_start_matches(is_of_name));
        }
    }
    let len = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
    if len == 0 {
        return (vec![Vec::new()], rest);
    }
    let (inner, behind) = ends(&rest[len..]);
    (inner.into_iter().map(|end| [&[rest[..len].to_string()], &end[..]].concat()).collect(), behind)
}

/// Paths of a file.
fn mentions(code: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("::") {
        let before = code[..at].trim_end();
        let start = before.rfind(|c| !is_of_name(c)).map_or(0, |k| k + 1);
        let (head, first) = before.split_at(start);
        if first.is_empty() || head.trim_end().ends_with("::") {
            continue;
        }
        let statement = head.rsplit([';', '}']).next().unwrap();
        let is_re_export = head.trim_end().ends_with("use") && statement.contains("pub");
        for end in ends(&code[at..]).0 {
            found.push(Mention { path: [&[first.to_string()], &end[..]].concat(), is_re_export });
        }
    }
    found
}

/// Files of a crate: what each mentions, and which names it re-exports from where.
struct Files {
    mentions: BTreeMap<Module, Vec<Mention>>,
    re_exports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

impl Files {
    fn of(source: &Path) -> Files {
        let mentions: BTreeMap<Module, Vec<Mention>> =
            modules(source).into_iter().map(|(module, code)| (module, mentions(&code))).collect();
        let of_module = |all: &Vec<Mention>| {
            let exported = all.iter().filter(|mention| mention.is_re_export);
            exported.map(|m| (m.path.last().unwrap().clone(), m.path.clone())).collect()
        };
        let re_exports = mentions.iter().map(|(m, all)| (m.clone(), of_module(all))).collect();
        Files { mentions, re_exports }
    }

    /// Module in which the item of this path, as `from` writes it, is defined.
    fn definition(&self, from: &[String], path: &[String], depth: usize) -> Option<Module> {
        let below =
            |module: &[String], name: &String| [module, std::slice::from_ref(name)].concat();
        let parent = |module: &[String]| module.split_last().map(|(_, rest)| rest.to_vec());
        let mut names = path[1..].iter().peekable();
        let mut module = match &path[0][..] {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => parent(from)?,
            _ => Some(below(from, &path[0])).filter(|m| self.mentions.contains_key(m))?,
        };
        while names.next_if(|name| *name == "super").is_some() {
            module = parent(&module)?;
        }
        while let Some(name) = names.next() {
            let inner = below(&module, name);
            if self.mentions.contains_key(&inner) {
                module = inner;
                continue;
            }
            let exported = self.re_exports.get(&module).and_then(|names| names.get(name));
            if let Some(exported) = exported.filter(|_| depth < 8) {
                let rest: Vec<String> = exported.iter().chain(names).cloned().collect();
                return self.definition(&module, &rest, depth + 1).or(Some(module));
            }
            break;
        }
        Some(module).filter(|module| self.mentions.contains_key(module))
    }

    /// Files that each file uses, without those above and below it.
    fn uses(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let of_file = |(from, all): (&'_ Module, &Vec<Mention>)| {
            let used = all.iter().filter(|mention| !mention.is_re_export);
            let used = used.filter_map(|mention| self.definition(from, &mention.path, 0));
            used.filter(|to| !to.starts_with(from) && !from.starts_with(to)).collect()
        };
        self.mentions.iter().map(|(from, all)| (from, of_file((from, all)))).collect()
    }
}

/// Files that `from` uses, itself or through others.
fn reached(from: &Module, uses: &BTreeMap<&Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(next) = open.pop() {
        open.extend(uses[&next].iter().filter(|module| found.insert((*module).clone())).cloned());
    }
    found
}

#[test]
fn no_file_uses_one_that_uses_it() {
    let mut circles = BTreeSet::new();
    for name in CRATES {
        let files = Files::of(&repository().join(format!("crates/{name}/src")));
        let uses = files.uses();
        assert!(uses.values().any(|used| !used.is_empty()) || uses.len() < 5, "nothing in {name}");
        let mut seen = BTreeSet::new();
        for &from in uses.keys() {
            let back = |to: &Module| reached(to, &uses).contains(from);
            let circle: Vec<Module> =
                reached(from, &uses).into_iter().filter(|to| back(to)).collect();
            if let Some(first) =
                circle.first().filter(|_| seen.is_disjoint(&circle.iter().cloned().collect()))
            {
                let files: Vec<String> = circle.iter().map(|file| file.join("::")).collect();
                println!("{name}: {}", files.join(", "));
                circles.insert(format!("{name} {}", first.join("::")));
                seen.extend(circle);
            }
        }
    }
    assert!(circles.is_empty(), "circles of files, each by its first one: {circles:?}");
}

#[test]
fn paths_are_read_from_trees_and_re_exports_are_told_apart() {
    let code = code_of(
        "pub use a::B;\nuse super::{c::{D, E as F}, g};\nlet x = crate::h::i(\"j::k\"); // l::m\n",
    );
    let found: Vec<(String, bool)> =
        mentions(&code).iter().map(|m| (m.path.join("::"), m.is_re_export)).collect();
    let expected = [
        ("a::B", true),
        ("super::c::D", false),
        ("super::c::E", false),
        ("super::g", false),
        ("c::D", false),
        ("c::E", false),
        ("crate::h::i", false),
    ];
    assert_eq!(found, expected.map(|(path, exported)| (path.to_string(), exported)));
}
