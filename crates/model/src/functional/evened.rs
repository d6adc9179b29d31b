//! A functional of whose rows only those are kept from which the others follow: what is derived of a chain of a million
//! links is derived of two of them.

use super::{Functional, Source, Term};

/// A functional by stretches: rows whose entries move on by equal steps from one row to the next. Of each stretch the
/// first two rows are kept, a single one twice.
#[derive(Clone, Debug, Default)]
pub struct Evened {
    /// The rows that are kept.
    pub kept: Functional,
    /// For each term the number of rows of each of its stretches.
    pub lengths: Vec<Vec<u32>>,
}

impl Evened {
    /// The stretches of a functional.
    pub fn new(functional: &Functional) -> Evened {
        let (mut kept, mut lengths) = (Functional { outputs: functional.outputs, terms: Vec::new() }, Vec::new());
        for term in &functional.terms {
            let stretches = stretches(term);
            let rows = || {
                let mut first = 0;
                stretches.iter().flat_map(move |&length| {
                    let rows = [first, first + usize::from(length > 1)];
                    first += length as usize;
                    rows
                })
            };
            let mut few = Term {
                graph: term.graph.clone(),
                roots: term.roots.clone(),
                slots: term.slots.clone(),
                table: Vec::new(),
                first_output: rows().map(|row| term.first_output[row]).collect(),
                numbers: Vec::new(),
                pairs: term.pairs.clone(),
            };
            for row in rows() {
                for (&entry, source) in term.row(row).iter().zip(&term.slots) {
                    if *source == Source::Number {
                        few.table.push(few.numbers.len() as u32);
                        few.numbers.push(term.numbers[entry as usize]);
                    } else {
                        few.table.push(entry);
                    }
                }
            }
            kept.terms.push(few);
            lengths.push(stretches);
        }
        Evened { kept, lengths }
    }

    /// The same stretches of a functional that was made of the rows that are kept.
    pub fn with(&self, kept: Functional) -> Evened {
        debug_assert!(kept.terms.iter().zip(&self.lengths).all(|(term, lengths)| term.rows() == 2 * lengths.len()));
        Evened { kept, lengths: self.lengths.clone() }
    }
}

/// Lengths of the longest stretches of a term, each from where the one before has ended.
fn stretches(term: &Term) -> Vec<u32> {
    let mut lengths = Vec::new();
    let (mut first, rows) = (0, term.rows());
    while first < rows {
        let mut length = 1;
        if first + 1 < rows && follows(term, first) {
            length = 2;
            while first + length < rows && goes_on(term, first + length) {
                length += 1;
            }
        }
        lengths.push(length as u32);
        first += length;
    }
    lengths
}

/// Whether the numbers in the row after `row` are those in it: they are part of the formula.
fn follows(term: &Term, row: usize) -> bool {
    let both = term.row(row).iter().zip(term.row(row + 1)).zip(&term.slots);
    let number = |entry: u32| term.numbers[entry as usize].to_bits();
    both.into_iter().all(|((&a, &b), source)| *source != Source::Number || number(a) == number(b))
}

/// Whether `row` differs from the one before by the step that this one differs by from its own.
fn goes_on(term: &Term, row: usize) -> bool {
    let even = |a: u32, b: u32, c: u32| c.wrapping_sub(b) == b.wrapping_sub(a);
    let output = &term.first_output[row - 2..=row];
    let [before, last, next] = [row - 2, row - 1, row].map(|row| term.row(row));
    let number = |entry: u32| term.numbers[entry as usize].to_bits();
    even(output[0], output[1], output[2])
        && term.slots.iter().enumerate().all(|(k, source)| match source {
            Source::Number => number(last[k]) == number(next[k]),
            _ => even(before[k], last[k], next[k]),
        })
}
