//! Collection of the findings of one reading, bounded in number.

use super::MAX_DIAGNOSTICS;
use super::diagnostic::Diagnostic;
use super::span::Span;

/// Findings of all stages so far.
///
/// Each stage goes through the text from the left, so the first hundred findings of the file are
/// among the first hundred of each stage; a stage need not keep more.
#[derive(Default)]
pub(super) struct Findings {
    list: Vec<Diagnostic>,
    of_this_stage: usize,
}

impl Findings {
    /// Adds a finding. It is built only if it is kept: a megabyte of rubbish must stay cheap.
    pub(super) fn add(&mut self, finding: impl FnOnce() -> Diagnostic) {
        if !self.is_full() {
            self.list.push(finding());
            self.of_this_stage += 1;
        }
    }

    /// True if this stage has found more than will be shown.
    pub(super) fn is_full(&self) -> bool {
        self.of_this_stage > MAX_DIAGNOSTICS
    }

    /// True if one of the findings is about this place.
    pub(super) fn point_at(&self, span: Span) -> bool {
        self.list.iter().any(|finding| finding.span == span)
    }

    /// Begins the next stage, which counts its findings anew.
    pub(super) fn next_stage(&mut self) {
        self.of_this_stage = 0;
    }

    /// All findings in source order, capped.
    pub(super) fn in_source_order(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|finding| finding.span.start);
        capped(self.list)
    }
}

/// The first [`MAX_DIAGNOSTICS`] of some findings; the last of them says if there are more.
pub fn capped(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if findings.len() > MAX_DIAGNOSTICS {
        let hidden = findings.split_off(MAX_DIAGNOSTICS - 1);
        let message = format!("more than {MAX_DIAGNOSTICS} mistakes; the rest is not shown");
        let last = Diagnostic::error(message, hidden[0].span, "the next one")
            .help("correct the first ones and try again");
        // The last one shown must be an error if an error is hidden, or the model would seem fine.
        let severity = hidden.iter().map(|finding| finding.severity).max();
        findings.push(Diagnostic { severity: severity.unwrap_or(last.severity), ..last });
    }
    findings
}
