//! What both fuzzers run: `fuzz_targets/model_text.rs` (coverage-guided) and
//! `crates/model/tests/fuzz.rs` (part of the tests).

use holonome_model::consistency;
use holonome_model::elaborate::model::{Dynamics, Model};
use holonome_model::elaborate::{Environment, elaborate};
use holonome_model::policy::DEEP_STACK;
use holonome_model::syntax;
use holonome_model::syntax::diagnostic::{Diagnostic, Severity};

/// Models are examined up to this many operations when unrolled, and this many scalar constraints:
/// what examining costs grows with the square of the constraints and would hide what the fuzzer
/// looks for.
const EXAMINED_OPERATIONS: usize = 5_000;
/// See [`EXAMINED_OPERATIONS`].
const EXAMINED_CONSTRAINTS: usize = 24;

/// What became of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The parser found mistakes.
    Unreadable,
    /// The elaborator did.
    Refused,
    /// A model that its numbers speak against.
    Unsound,
    /// A model too large to be examined here.
    Large,
    /// A model that could run.
    Sound,
}

/// Reads `text` as `holonome check` does, on a thread with a deep stack.
///
/// # Panics
/// When the engine panics, or when it returns neither a model nor an error.
pub fn read(text: &str) -> Outcome {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(DEEP_STACK)
            .spawn_scoped(scope, || read_here(text));
        thread.expect("a thread").join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn read_here(text: &str) -> Outcome {
    let reading = syntax::read(text);
    let mut draws = 0;
    let mut environment = Environment {
        read_table: &|path| match path {
            "data.csv" => Ok("x,y\n1,2\n3,4\n5,6\n".to_string()),
            _ => Err("no such file".to_string()),
        },
        draw: &mut |_| {
            draws += 1;
            f64::from(draws).sin()
        },
        replacements: Vec::new(),
        variations: Default::default(),
        stiff: None,
    };
    let (model, found) = elaborate(&reading, &mut environment);
    let mut all = reading.diagnostics.clone();
    all.extend(found);
    check(text, &all);
    let errors = all.iter().any(|d| d.severity == Severity::Error);
    let Some(model) = model else {
        assert!(errors, "neither a model nor an error");
        return if reading.diagnostics.is_empty() { Outcome::Refused } else { Outcome::Unreadable };
    };
    if errors {
        return Outcome::Unreadable;
    }
    examine(text, &model)
}

fn examine(text: &str, model: &Model) -> Outcome {
    let constraints: usize = model.constraints.iter().map(|c| c.members * c.components.len()).sum();
    if model.unrolled_size() > EXAMINED_OPERATIONS || constraints > EXAMINED_CONSTRAINTS {
        let (Dynamics::Hamiltonian(f, _) | Dynamics::Field(f)) = &model.dynamics;
        f.evaluate(0.0, &model.initial, &model.parameter_values);
        return Outcome::Large;
    }
    let examined = consistency::examine(model);
    check(text, &examined.diagnostics);
    check(text, &examined.off_set);
    check(text, &examined.singular);
    check(text, &examined.off_set);
    match consistency::project_initial(model) {
        Ok(moved) => assert_eq!(moved.initial.len(), model.dimension()),
        Err(reason) => assert!(!reason.is_empty()),
    }
    if examined.is_sound() && examined.off_set.is_empty() {
        Outcome::Sound
    } else {
        Outcome::Unsound
    }
}

/// What must hold of every finding: it can be shown, and it says something.
fn check(text: &str, findings: &[Diagnostic]) {
    for finding in findings {
        for span in finding.related.iter().map(|(span, _)| span).chain([&finding.span]) {
            assert!(span.start <= span.end && text.get(span.range()).is_some(), "{finding:?}");
        }
        assert!(!finding.message.is_empty() && !finding.label.is_empty(), "{finding:?}");
        assert!(!finding.message.contains('\n'), "{finding:?}");
    }
}
