//! Collects the findings of one reading and keeps their number bounded.

use super::MAX_DIAGNOSTICS;
use super::diagnostic::{Diagnostic, Severity};
use super::span::Span;

/// The findings of all stages so far.
///
/// Each stage goes through the text from the left, so the first hundred findings of the file are among
/// the first hundred of each stage; whatever a stage finds beyond that need not be kept.
#[derive(Default)]
pub(super) struct Findings {
    list: Vec<Diagnostic>,
    of_this_stage: usize,
}

impl Findings {
    /// Adds a finding. It is built only when it is wanted: a megabyte of rubbish must stay cheap.
    pub(super) fn add(&mut self, finding: impl FnOnce() -> Diagnostic) {
        if !self.is_full() {
            self.list.push(finding());
            self.of_this_stage += 1;
        }
    }

    /// True when this stage has found more than will be shown.
    pub(super) fn is_full(&self) -> bool {
        self.of_this_stage > MAX_DIAGNOSTICS
    }

    /// Whether one of the findings is about this place.
    pub(super) fn point_at(&self, span: Span) -> bool {
        self.list.iter().any(|finding| finding.span == span)
    }

    /// From now on the findings are those of the next stage.
    pub(super) fn next_stage(&mut self) {
        self.of_this_stage = 0;
    }

    /// All findings as the user shall see them.
    pub(super) fn in_source_order(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|finding| finding.span.start);
        if self.list.len() > MAX_DIAGNOSTICS {
            let first_hidden = self.list[MAX_DIAGNOSTICS - 1].span;
            // The last one shown must be an error if an error is hidden, or the model would seem fine.
            let hidden_error = self.list[MAX_DIAGNOSTICS - 1..].iter().any(|d| d.severity == Severity::Error);
            self.list.truncate(MAX_DIAGNOSTICS - 1);
            let severity = if hidden_error { Severity::Error } else { Severity::Warning };
            let message = format!("more than {MAX_DIAGNOSTICS} mistakes; the rest is not shown");
            let last =
                Diagnostic::error(message, first_hidden, "the next one").help("correct the first ones and try again");
            self.list.push(Diagnostic { severity, ..last });
        }
        self.list
    }
}
