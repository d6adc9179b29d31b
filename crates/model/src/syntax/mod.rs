//! Text to syntax tree. [`parse`] never gives up at the first mistake: it returns a tree of all that
//! could be read and every finding about what could not.
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
#[cfg(test)]
mod tests;
mod token;
pub mod words;

use ast::{File, Name};
use diagnostic::Diagnostic;
use findings::Findings;
use span::Span;

/// How deep brackets, prefix operators and powers may be nested.
pub const MAX_NESTING: usize = 256;

/// How high the tree of one expression may be. `a + a + … + a` is a tree as high as it has operators,
/// and whoever walks or drops the tree recursively needs a stack frame for each of them.
pub const MAX_HEIGHT: usize = 2_000;

/// How many findings are reported of one file.
pub const MAX_DIAGNOSTICS: usize = 100;

/// What [`read`] made of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The statements that could be read.
    pub file: File,
    /// What is wrong with the others, in source order; at most [`MAX_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
    /// The names that unreadable statements declare. They are not in the tree, yet it would be wrong to
    /// call them unknown where they are used: that would report one mistake twice.
    pub unread: Vec<Name>,
}

/// Reads a model: the statements that could be read, and what is wrong with the others in source order.
pub fn parse(source: &str) -> (File, Vec<Diagnostic>) {
    let reading = read(source);
    (reading.file, reading.diagnostics)
}

/// Like [`parse`], with the names of the statements that could not be read.
pub fn read(source: &str) -> Reading {
    if u32::try_from(source.len()).is_err() {
        let finding =
            Diagnostic::error("the model is larger than 4 GiB", Span::new(0, 0), "places are counted in 32 bits");
        let diagnostics = vec![finding.help("keep large data in a file and read it with 'table'")];
        return Reading { diagnostics, ..Reading::default() };
    }
    let mut findings = Findings::default();
    let tokens = lexer::lex(source, &mut findings);
    let statements = layout::split(source, &tokens, &mut findings);
    let (file, unread) = parser::parse(source, &tokens, &statements, &mut findings);
    Reading { file, diagnostics: findings.in_source_order(), unread }
}
