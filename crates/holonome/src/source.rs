//! Source texts and the display of findings about them.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use holonome_figures::text::{acts, visible, visible_lines};
use holonome_model::syntax::diagnostic::{Diagnostic, Severity};
use holonome_model::syntax::span::Span;
use serde::Serialize;

/// A model file, the files that it includes, and the texts of `--set` and `--vary` that replace
/// parts of it. They are laid out one after the other, so that a span identifies its text.
#[derive(Clone, Debug, Default)]
pub struct Source {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug)]
struct Segment {
    name: String,
    start: usize,
    text: String,
}

impl Source {
    /// A model file.
    pub fn new(name: &str, text: &str) -> Source {
        Source {
            segments: vec![Segment { name: name.to_string(), start: 0, text: text.to_string() }],
        }
    }

    /// The model file's text.
    pub fn text(&self) -> &str {
        &self.segments[0].text
    }

    /// The model file's name.
    pub fn name(&self) -> &str {
        &self.segments[0].name
    }

    /// Add a text; returns the span offset at which it begins.
    pub(crate) fn append(&mut self, name: &str, text: &str, prefix: usize) -> usize {
        let last = self.segments.last().expect("a source has a file");
        let start = last.start + last.text.len() + 1 + prefix;
        self.segments.push(Segment { name: name.to_string(), start, text: text.to_string() });
        start
    }

    /// Rename the file, and the last `count` of the texts that [`Source::append`] added.
    pub(crate) fn rename(&mut self, file: &str, appended: &str, count: usize) {
        let first = self.segments.len().saturating_sub(count).max(1);
        for (k, segment) in self.segments.iter_mut().enumerate() {
            if k == 0 || k >= first {
                segment.name = if k == 0 { file } else { appended }.to_string();
            }
        }
    }

    fn segment(&self, span: Span) -> &Segment {
        self.segments
            .iter()
            .rev()
            .find(|s| s.start <= span.start as usize)
            .unwrap_or(&self.segments[0])
    }

    /// File, line and column (both from 1, columns in characters) of a span.
    pub fn place(&self, span: Span) -> (&str, usize, usize) {
        let segment = self.segment(span);
        let at =
            (span.start as usize - segment.start.min(span.start as usize)).min(segment.text.len());
        let before = &segment.text.as_bytes()[..at];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |p| p + 1);
        (&segment.name, line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
    }

    /// A finding in one line: its place, the mistake, the remedy.
    pub fn line(&self, diagnostic: &Diagnostic) -> String {
        let (file, line, column) = self.place(diagnostic.span);
        let help = diagnostic.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        format!("{file}:{line}:{column}: {}{help}", diagnostic.message)
    }

    /// Findings as text with source excerpts. Nothing in it acts on a terminal but the colours.
    pub fn render(&self, diagnostics: &[Diagnostic], colour: bool) -> String {
        if diagnostics.is_empty() {
            return String::new();
        }
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let shown = Source { segments: self.segments.iter().map(Segment::shown).collect() };
        let diagnostics: Vec<Diagnostic> = diagnostics.iter().map(shown_finding).collect();
        shown.render_shown(&diagnostics, &renderer)
    }

    fn render_shown(&self, diagnostics: &[Diagnostic], renderer: &Renderer) -> String {
        let mut out = String::new();
        for diagnostic in diagnostics {
            let level =
                if diagnostic.severity == Severity::Error { Level::ERROR } else { Level::WARNING };
            let main = self.segment(diagnostic.span);
            let mut groups = Vec::new();
            let mut snippet = Snippet::source(main.text.as_str())
                .line_start(1)
                .path(main.name.as_str())
                .annotation(
                    AnnotationKind::Primary
                        .span(local(main, diagnostic.span))
                        .label(diagnostic.label.as_str()),
                );
            let mut elsewhere = Vec::new();
            for (span, label) in &diagnostic.related {
                let segment = self.segment(*span);
                if segment.start == main.start {
                    snippet = snippet.annotation(
                        AnnotationKind::Context.span(local(segment, *span)).label(label.as_str()),
                    );
                } else {
                    elsewhere.push(
                        Snippet::source(segment.text.as_str())
                            .line_start(1)
                            .path(segment.name.as_str())
                            .annotation(
                                AnnotationKind::Context
                                    .span(local(segment, *span))
                                    .label(label.as_str()),
                            ),
                    );
                }
            }
            let mut group: Group =
                level.primary_title(diagnostic.message.as_str()).element(snippet);
            for snippet in elsewhere {
                group = group.element(snippet);
            }
            if let Some(help) = &diagnostic.help {
                group = group.element(Level::HELP.message(help.as_str()));
            }
            groups.push(group);
            out.push_str(&renderer.render(&groups));
            out.push_str("\n\n");
        }
        out
    }

    /// Findings with their places in the text, for programs.
    pub fn findings(&self, diagnostics: &[Diagnostic]) -> Vec<Finding> {
        let related = |(span, label): &(Span, String)| self.labelled(*span, label.clone());
        let finding = |d: &Diagnostic| {
            let Labelled { file, line, column, label } = self.labelled(d.span, d.label.clone());
            let severity = if d.severity == Severity::Error { "error" } else { "warning" };
            let (message, help) = (d.message.clone(), d.help.clone());
            let related = d.related.iter().map(related).collect();
            Finding { severity, message, file, line, column, label, help, related }
        };
        diagnostics.iter().map(finding).collect()
    }

    fn labelled(&self, span: Span, label: String) -> Labelled {
        let (file, line, column) = self.place(span);
        Labelled { file: file.to_string(), line, column, label }
    }
}

/// A finding about a model, with its place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// The mistake.
    pub message: String,
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Note on the place.
    pub label: String,
    /// Remedy.
    pub help: Option<String>,
    /// Other places that belong to it.
    pub related: Vec<Labelled>,
}

/// A place in a text, with a note on it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Labelled {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The note.
    pub label: String,
}

impl Segment {
    /// The segment with characters that act on a terminal replaced by others of their length: all
    /// places stay.
    fn shown(&self) -> Segment {
        let replaced = |c: char| match c.len_utf8() {
            // The renderer has pictures of these, and the mark with which a file may begin cannot
            // be seen.
            _ if c == '\u{feff}' => c,
            1 => c,
            2 => '¿',
            _ => '\u{fffd}',
        };
        let text = match self.text.contains(acts) {
            true => self.text.chars().map(|c| if acts(c) { replaced(c) } else { c }).collect(),
            false => self.text.clone(),
        };
        Segment { name: visible(&self.name).into_owned(), start: self.start, text }
    }
}

/// A finding whose texts are fit to be shown.
fn shown_finding(finding: &Diagnostic) -> Diagnostic {
    let shown = |text: &String| visible_lines(text).into_owned();
    Diagnostic {
        message: shown(&finding.message),
        label: shown(&finding.label),
        related: finding.related.iter().map(|(span, label)| (*span, shown(label))).collect(),
        help: finding.help.as_ref().map(shown),
        ..finding.clone()
    }
}

/// A span within its segment, on character boundaries, never beyond the text.
fn local(segment: &Segment, span: Span) -> std::ops::Range<usize> {
    let clamp = |at: usize| {
        let mut at = at.saturating_sub(segment.start).min(segment.text.len());
        while !segment.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (clamp(span.start as usize), clamp(span.end as usize));
    start..end.max(start)
}
