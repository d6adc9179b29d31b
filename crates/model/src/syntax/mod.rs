//! Reader of models: text to syntax tree. [`parse`] does not stop at the first mistake: it returns
//! a tree of all that could be read, and every finding about the rest.
//!
//! Three stages, each one function, each linear in the length of the text:
//!
//! ```text
//! lexer::lex       text       -> tokens       (repairs '**', '−', 'x²' and the like, and says so)
//! layout::split    tokens     -> statements   (which lines go on, where a statement ends)
//! parser::parse    statements -> syntax tree  (one statement at a time, so one mistake stays one)
//! ```
//!
//! [`print::dump`] shows the tree. Names are not looked up here; that is the elaborator's work.

pub mod ast;
pub mod diagnostic;
mod findings;
mod layout;
mod lexer;
mod lookalike;
mod parser;
pub mod print;
pub mod span;
pub mod statements;
#[cfg(test)]
mod tests;
mod token;
pub mod words;

use ast::{File, Name};
use diagnostic::Diagnostic;
use findings::Findings;
pub use findings::capped;
use span::Span;

/// Largest nesting of brackets, prefix operators and powers.
pub const MAX_NESTING: usize = 256;

/// Largest height of one expression's tree. The tree of `a + a + … + a` is as high as it has
/// operators, and recursion over the tree, dropping included, needs a stack frame for each of them.
pub const MAX_HEIGHT: usize = 2_000;

/// Largest number of findings that are reported of one file.
pub const MAX_DIAGNOSTICS: usize = 100;

/// Result of [`read`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Statements that could be read.
    pub file: File,
    /// Findings about the others, in source order; at most [`MAX_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
    /// Names that unreadable statements declare. They are not in the tree, but must not be called
    /// unknown where they are used: that would report one mistake twice.
    pub unread: Vec<Name>,
}

/// Reads a model; returns the statements that could be read, and the findings about the others in
/// source order.
pub fn parse(source: &str) -> (File, Vec<Diagnostic>) {
    let reading = read(source);
    (reading.file, reading.diagnostics)
}

/// [`parse`], with the names of the statements that could not be read.
pub fn read(source: &str) -> Reading {
    read_from(source, 0)
}

/// [`read`] the last of several texts in `source`, which begins at byte `start`: its places are
/// those in the whole.
pub fn read_from(source: &str, start: usize) -> Reading {
    if u32::try_from(source.len()).is_err() {
        let (message, label) = ("the model is larger than 4 GiB", "places are counted in 32 bits");
        let finding = Diagnostic::error(message, Span::default(), label);
        let diagnostics = vec![finding.help("keep large data in a file and read it with 'table'")];
        return Reading { diagnostics, ..Reading::default() };
    }
    let mut findings = Findings::default();
    let tokens = lexer::lex(source, start, &mut findings);
    let statements = layout::split(source, &tokens, &mut findings);
    let (file, unread) = parser::parse(source, &tokens, &statements, &mut findings);
    Reading { file, diagnostics: findings.in_source_order(), unread }
}
