//! Tests that nothing breaks the parser: not rubbish, not depth, not length.

use super::{CHAIN, PENDULUM, RIGID_BODY};
use crate::syntax::{MAX_DIAGNOSTICS, MAX_HEIGHT, MAX_NESTING, parse, print, read};
use proptest::prelude::*;

/// Reads, dumps and drops a text; checks the properties that hold for every text.
fn survive(source: &str) {
    let reading = read(source);
    assert!(reading.diagnostics.len() <= MAX_DIAGNOSTICS);
    assert!(
        reading.diagnostics.is_sorted_by_key(|finding| finding.span.start),
        "not in source order"
    );
    for finding in &reading.diagnostics {
        for span in finding.related.iter().map(|(span, _)| span).chain([&finding.span]) {
            assert!(span.start <= span.end && source.get(span.range()).is_some(), "{finding:?}");
        }
        // Only something missing at the end of a line may have an empty span.
        let rest = &source[finding.span.end as usize..];
        let line = rest.split(['\n', '\r', '#', ';']).next().unwrap_or_default().trim();
        let comment = line.is_empty() || line.starts_with(['%', '/']);
        assert!(
            finding.span.start < finding.span.end || comment,
            "empty span: {finding:?} before {line:?}"
        );
        assert!(!finding.message.is_empty() && !finding.label.is_empty());
        assert!(
            finding.message.chars().count() < 200 && !finding.message.contains('\n'),
            "{}",
            finding.message
        );
    }
    print::dump(&reading.file);
}

/// Words and symbols that reach deep into the parser.
#[rustfmt::skip]
const PIECES: [&str; 64] = [
    "parameter", "size", "coordinate", "momentum", "velocity", "hamiltonian", "constraint", "integral", "state", "let",
    "observe", "table", "a", "b", "n", "R", "t", "pi", "sum", "if", "sin", "in", "of", "and", "or", "not", "1", "2.5",
    ".5", "5.", "(", ")", "[", "]", "{", "}", "|", "||", "+", "-", "*", "/", "^", "**", "=", "==", "<", "!", ":", ",", ".",
    "..", "'", "\"", ";", "\n", "\n", "\n", " ", "#", "²", "−", "é", "$",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(source in "\\PC*") {
        survive(&source);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_sequence_of_tokens(pieces in prop::collection::vec((0..PIECES.len(), any::<bool>()), 0..60)) {
        let source: String = pieces.iter().map(|&(i, space)| format!("{}{}", PIECES[i], if space { " " } else { "" })).collect();
        survive(&source);
    }

    #[test]
    fn mutated_models(which in 0..3_usize, edits in prop::collection::vec((any::<prop::sample::Index>(), 0..PIECES.len(), 0..4_usize), 1..6)) {
        let mut text: Vec<char> = [PENDULUM, CHAIN, RIGID_BODY][which].chars().collect();
        for (place, piece, removed) in edits {
            let start = place.index(text.len());
            let end = (start + removed).min(text.len());
            text.splice(start..end, PIECES[piece].chars());
        }
        survive(&text.into_iter().collect::<String>());
    }

    #[test]
    fn truncated_models(which in 0..3_usize, place in any::<prop::sample::Index>()) {
        let text = [PENDULUM, CHAIN, RIGID_BODY][which];
        survive(&text.chars().take(place.index(text.len())).collect::<String>());
    }
}

#[test]
fn one_character_too_few_is_one_mistake_at_most() {
    // Leaving out any one character of a model makes at most one mistake per statement, and no
    // statement but that one (or the one that is joined to it) is lost.
    for text in [PENDULUM, CHAIN, RIGID_BODY] {
        let statements = parse(text).0.statements.len();
        for (i, c) in text.char_indices() {
            let mut broken = text.to_string();
            broken.remove(i);
            survive(&broken);
            let (file, diagnostics) = parse(&broken);
            // Prose without its '#', and two statements on one line, hold several.
            let allowed = if c == '#' || c == '\n' { 3 } else { 1 };
            assert!(diagnostics.len() <= allowed, "without {c:?} at {i}: {diagnostics:#?}");
            assert!(file.statements.len() + 2 >= statements, "without {c:?} at {i}");
        }
    }
}

#[test]
fn nesting_is_limited() {
    let deep = |depth: usize| {
        [
            format!("hamiltonian {}x{}", "(".repeat(depth), ")".repeat(depth)),
            format!("hamiltonian {}x{}", "f(".repeat(depth), ")".repeat(depth)),
            format!("hamiltonian {}x", "-".repeat(depth)),
            format!("hamiltonian {}x", "not ".repeat(depth)),
            format!("hamiltonian {}x", "x^".repeat(depth)),
            format!("hamiltonian {}x{}", "q[".repeat(depth), "]".repeat(depth)),
            format!("hamiltonian {}x{}", "sum(i in 1..2 : ".repeat(depth), ")".repeat(depth)),
            format!("hamiltonian {}x{}", "(1 + 2*(".repeat(depth / 2), "))".repeat(depth / 2)),
        ]
    };
    for source in deep(MAX_NESTING) {
        survive(&source);
        assert_eq!(parse(&source).1, [], "{source}");
    }
    for source in deep(2 * MAX_NESTING) {
        survive(&source);
        let diagnostics = parse(&source).1;
        assert_eq!(diagnostics.len(), 1, "{source}");
        assert!(
            diagnostics[0].message.contains("nested more than 256 deep"),
            "{}",
            diagnostics[0].message
        );
    }
    // The most stack per level: every binding power waits for its right operand.
    let level = "1 or 1 and 1 < 1 + 1*(";
    survive(&format!("hamiltonian {}x{}", level.repeat(MAX_NESTING), ")".repeat(MAX_NESTING)));
    survive(&format!("hamiltonian {}", "sum(i in sum(i in 1..2 : 1)..".repeat(300)));
}

#[test]
fn height_is_limited() {
    let long = |operators: usize| {
        [
            format!("hamiltonian a{}", " + a".repeat(operators)),
            format!("hamiltonian a{}", " and a".repeat(operators)),
            format!("hamiltonian a{}", "[1]".repeat(operators)),
            format!("hamiltonian a{}", ".x".repeat(operators)),
        ]
    };
    for source in long(MAX_HEIGHT - 1) {
        survive(&source);
        assert_eq!(parse(&source).1, []);
    }
    for source in long(1_000_000 / 4) {
        let diagnostics = parse(&source).1;
        assert_eq!(diagnostics.len(), 1);
        assert!(
            diagnostics[0].message.contains("more than 2000 operators"),
            "{}",
            diagnostics[0].message
        );
    }
    // Chains inside brackets inside chains: no path through the tree may be longer than the limit,
    // either.
    let chain = format!("({}", "a + ".repeat(1_000));
    survive(&format!("hamiltonian {}a{}", chain.repeat(200), ")".repeat(200)));
    let left = format!("{})", " + a".repeat(500));
    let source = format!("hamiltonian {}a{}", "(".repeat(200), left.repeat(200));
    survive(&source);
    assert_eq!(parse(&source).1.len(), 1);
    // Wide is not high.
    assert_eq!(parse(&format!("hamiltonian f({}1)", "-1/2, ".repeat(100_000))).1, []);
}

#[test]
fn findings_are_capped() {
    let (_, diagnostics) = parse(&"foo x = 1\n".repeat(MAX_DIAGNOSTICS));
    assert_eq!(diagnostics.len(), MAX_DIAGNOSTICS);
    assert!(diagnostics[MAX_DIAGNOSTICS - 1].message.starts_with("unknown statement"));
    let (_, diagnostics) = parse(&"foo x = 1 $\n".repeat(MAX_DIAGNOSTICS));
    assert_eq!(diagnostics.len(), MAX_DIAGNOSTICS);
    assert_eq!(
        diagnostics[MAX_DIAGNOSTICS - 1].message,
        "more than 100 mistakes; the rest is not shown"
    );
}
