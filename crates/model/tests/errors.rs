//! Tests every malformed model of `suite/errors` against the expectations in its first lines
//! (format: see the README there): the expected findings are reported, and no other error.

use holonome_model::consistency;
use holonome_model::elaborate::{Environment, elaborate};
use holonome_model::syntax::diagnostic::{Diagnostic, Severity};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../suite/errors");

/// One `#!` line.
struct Expected {
    severity: Severity,
    /// `None` for any line.
    line: Option<usize>,
    fragments: Vec<String>,
}

fn expectations(text: &str) -> Vec<Expected> {
    let lines = text.lines().filter_map(|l| l.strip_prefix("#! "));
    lines
        .map(|l| {
            let (severity, rest) = l.split_once(' ').expect("#! error LINE: …");
            let (line, fragments) = rest.split_once(':').expect("a colon after the line");
            Expected {
                severity: if severity == "error" { Severity::Error } else { Severity::Warning },
                line: (line != "*").then(|| line.parse().expect("a line number")),
                fragments: fragments.split('…').map(|f| f.trim().to_string()).collect(),
            }
        })
        .collect()
}

/// Findings of `holonome check`, in its words.
fn findings(text: &str) -> Vec<Diagnostic> {
    holonome_words::spell_options(holonome_words::Spelling::Flags);
    let reading = holonome_model::syntax::read(text);
    let mut environment = Environment {
        read_table: &|path| {
            std::fs::read_to_string(format!("{FOLDER}/{path}")).map_err(|e| e.to_string())
        },
        draw: &mut |_| 0.5,
        replacements: Vec::new(),
        variations: Default::default(),
        stiff: None,
    };
    let (model, found) = elaborate(&reading, &mut environment);
    let mut all = reading.diagnostics.clone();
    all.extend(found);
    if let Some(model) = model.filter(|_| all.iter().all(|d| d.severity != Severity::Error)) {
        let examined = consistency::examine(&model);
        all.extend(examined.diagnostics);
        all.extend(examined.off_set);
        all.extend(examined.singular);
        all.extend(examined.unverified);
    } else {
        assert!(all.iter().any(|d| d.severity == Severity::Error), "neither a model nor an error");
    }
    all
}

/// Message, labels and help: the texts that may contain the fragments.
fn words(d: &Diagnostic) -> String {
    let related = d.related.iter().map(|(_, label)| label.as_str());
    [d.message.as_str(), d.label.as_str(), d.help.as_deref().unwrap_or("")]
        .into_iter()
        .chain(related)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn every_mistake_is_reported_once_and_where_it_stands() {
    let mut paths: Vec<_> = std::fs::read_dir(FOLDER)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "holo"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 249, "{} files", paths.len());
    let mut failures = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Bytes that are not text are found by the reader of the file, before this half gets it.
        let Ok(text) = String::from_utf8(std::fs::read(&path).unwrap()) else {
            assert!(name == "lexical-bytes.holo", "{name} is not UTF-8");
            continue;
        };
        let expected = expectations(&text);
        assert!(!expected.is_empty(), "{name} expects nothing");
        let found = findings(&text);
        let line = |d: &Diagnostic| text[..d.span.start as usize].matches('\n').count() + 1;
        let matches = |e: &Expected, d: &Diagnostic| {
            e.severity == d.severity && e.line.is_none_or(|l| l == line(d))
        };
        let complete = |e: &Expected, d: &Diagnostic| {
            matches(e, d) && e.fragments.iter().all(|f| words(d).contains(f.as_str()))
        };
        for e in expected.iter().filter(|e| !found.iter().any(|d| complete(e, d))) {
            failures.push(format!(
                "{name}: no {:?} at {:?} with {:?}",
                e.severity, e.line, e.fragments
            ));
        }
        for d in found
            .iter()
            .filter(|d| d.severity == Severity::Error && !expected.iter().any(|e| matches(e, d)))
        {
            failures.push(format!("{name}: not expected at line {}: {}", line(d), d.message));
        }
        if expected.iter().all(|e| e.severity == Severity::Warning)
            && found.iter().any(|d| d.severity == Severity::Error)
        {
            failures.push(format!("{name}: only warnings are expected"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn all_independent_mistakes_are_reported_at_once() {
    // One mistake for each stage after the parser, in source order.
    let text = "parameter m = 1\ncoordinate q : R^2 = (1, 0, 0)\nmomentum p of q\nlet a = unknwn\nhamiltonian dot(p, p)/2 + qq\nconstraint rod : dot(q, q) = m + q\n";
    let found = findings(text);
    let lines: Vec<usize> =
        found.iter().map(|d| text[..d.span.start as usize].matches('\n').count() + 1).collect();
    assert_eq!(lines, [2, 4, 5, 6], "{found:#?}");
}

#[test]
fn what_the_elaborator_reports_is_capped() {
    let text: String = (0..300)
        .map(|k| format!("let a{k} = unknown_{k}\n"))
        .chain(["coordinate q = 0\nmomentum p of q\nhamiltonian p^2\n".to_string()])
        .collect();
    let found = findings(&text);
    assert_eq!(found.len(), holonome_model::syntax::MAX_DIAGNOSTICS);
    assert!(
        found.last().unwrap().message.starts_with("more than 100 mistakes"),
        "{:?}",
        found.last()
    );
}
