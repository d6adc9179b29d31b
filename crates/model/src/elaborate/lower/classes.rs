//! Classes of rows: rows that decide alike share a template.

use super::row_indices::RowIndices;
use super::summands::{Summand, Wrapper};
use super::template::{Class, TemplateLowering};
use super::{Context, LARGEST_TEMPLATES, MOST_NUMBERS, MOST_ROWS, too_many_numbers};
use crate::elaborate::expression::{Draw, Ex};
use crate::functional::Term;
use crate::graph::Node;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use rustc_hash::FxHashMap;

/// A node of the decision tree: rows that decide alike end at the same class.
#[derive(Default)]
struct Choice {
    /// Decision taken here, if any.
    question: Option<Node>,
    /// Next node, by the bits of the answer.
    answers: FxHashMap<u64, usize>,
    class: Option<usize>,
}

/// The template of a row.
pub(super) struct RowTemplate {
    pub(super) class: Class,
    /// Decisions that led to it.
    pub(super) decisions: Vec<(Node, f64)>,
    /// Components of other formulas in its graph.
    pub(super) others: Vec<Vec<Node>>,
}

pub(super) struct ClassBuilder<'a> {
    /// The model around the formula.
    pub(super) context: &'a Context<'a>,
    /// The summand.
    pub(super) piece: &'a Summand,
    components: usize,
    classes: Vec<Class>,
    /// Nodes of the decision tree; the root is first.
    choices: Vec<Choice>,
    rows: usize,
    /// Entries of the row that is added.
    row: Vec<u32>,
    /// Number of entries of all row tables.
    entries: usize,
    /// Number of nodes of all templates.
    written: usize,
    draws: &'a mut Vec<Draw>,
}

impl<'a> ClassBuilder<'a> {
    /// Templates of `piece`, a summand of a formula of `components` components; its draws are added
    /// to `draws`.
    pub(super) fn new(
        context: &'a Context<'a>,
        piece: &'a Summand,
        components: usize,
        draws: &'a mut Vec<Draw>,
    ) -> ClassBuilder<'a> {
        ClassBuilder {
            context,
            piece,
            components,
            classes: Vec::new(),
            choices: vec![Choice::default()],
            rows: 0,
            row: Vec::new(),
            entries: 0,
            written: 0,
            draws,
        }
    }

    /// Place of the summand in the file.
    pub(super) fn span(&self) -> Span {
        self.piece.body.span
    }

    /// The templates with their rows.
    pub(super) fn into_terms(self) -> impl Iterator<Item = Term> {
        self.classes.into_iter().map(|c| c.term)
    }

    /// Adds one row.
    pub(super) fn row(
        &mut self,
        names: &mut RowIndices,
        row: &[f64],
        member: usize,
    ) -> Result<(), Diagnostic> {
        self.rows += 1;
        if self.rows > MOST_ROWS {
            let message = format!("this needs more than {MOST_ROWS} rows");
            return Err(Diagnostic::error(message, self.span(), "too many rows")
                .help(format!("a family or sum may have at most {MOST_ROWS} rows")));
        }
        let (first, class) = (self.first_output(member), self.class(names, row)?);
        let class = &mut self.classes[class];
        self.entries += class.slots.len();
        if self.entries > MOST_NUMBERS {
            return Err(too_many_numbers(self.entries, self.piece.body.span));
        }
        self.row.clear();
        class.entries(self.context, names, row, self.draws, &mut self.row)?;
        self.row.push(first);
        class.term.table.push(&self.row);
        Ok(())
    }

    /// Adds `count` rows at once, one for each value of the innermost index from that of `row` on.
    /// The first row belongs to `member`, each further one to the member `members` after the one
    /// before. Adds none and returns false if the entries do not advance by equal steps or if a row
    /// is invalid: the rows then have to be added one by one.
    pub(super) fn rows(
        &mut self,
        names: &mut RowIndices,
        row: &mut [f64],
        count: usize,
        (member, members): (usize, usize),
    ) -> Result<bool, Diagnostic> {
        let class = self.class(names, row)?;
        let new_entries = count * self.classes[class].slots.len();
        if self.rows + count > MOST_ROWS
            || self.entries + new_entries > MOST_NUMBERS
            || !self.is_even(names, class, row)
        {
            return Ok(false);
        }
        let (last, low) = (row.len() - 1, row[row.len() - 1]);
        // If both ends are valid, so is everything between them.
        let mut entries = |offset: usize| -> Option<Vec<u32>> {
            row[last] = low + offset as f64;
            let mut entries = Vec::new();
            let class = &mut self.classes[class];
            class.entries(self.context, names, row, self.draws, &mut entries).ok()?;
            let output = (member + offset * members) * self.components + self.piece.offset;
            entries.push(output as u32);
            Some(entries)
        };
        let ends = entries(count - 1).and_then(|_| Some((entries(1)?, entries(0)?)));
        row[last] = low;
        let Some((second, first)) = ends else { return Ok(false) };
        let step: Vec<u32> =
            second.iter().zip(&first).map(|(second, first)| second.wrapping_sub(*first)).collect();
        self.classes[class].term.table.push_rows(first, &step, count);
        self.rows += count;
        self.entries += new_entries;
        Ok(true)
    }

    /// True if the rows that follow along the innermost index have this row's class, and entries
    /// that advance by equal steps.
    fn is_even(&self, names: &mut RowIndices, class: usize, row: &[f64]) -> bool {
        let mut at = 0;
        while let Some(question) = self.choices[at].question {
            let answer = names.evaluate_node(question, row).to_bits();
            match self.choices[at].answers.get(&answer) {
                Some(&next) if names.is_still(question) => at = next,
                _ => return false,
            }
        }
        let Class { guards, slots, .. } = &self.classes[class];
        guards.iter().all(|guard| names.is_convex(guard))
            && slots.iter().all(|(slot, _)| slot.is_even(names))
    }

    /// The class of a row; a new one if no row has decided alike.
    fn class(&mut self, names: &mut RowIndices, row: &[f64]) -> Result<usize, Diagnostic> {
        let mut at = 0;
        while let Some(question) = self.choices[at].question {
            let answer = names.evaluate_node(question, row).to_bits();
            match self.choices[at].answers.get(&answer) {
                Some(&next) => at = next,
                None => break,
            }
        }
        if let Some(class) = self.choices[at].class {
            return Ok(class);
        }
        let RowTemplate { class, decisions, .. } = self.template(names, row, &[])?;
        self.written += class.term.graph.len();
        if self.written > LARGEST_TEMPLATES {
            let message = format!(
                "the rows of this formula differ so much that they take more than {LARGEST_TEMPLATES} operations"
            );
            return Err(Diagnostic::error(message, self.span(), "too large")
                .help("a sum inside a nonlinear function is expanded for each of its lengths"));
        }
        // All rows that have answered alike so far get the same questions in the same order.
        let mut at = 0;
        for (question, answer) in decisions {
            self.choices[at].question = Some(question);
            let new = self.choices.len();
            let next = *self.choices[at].answers.entry(answer.to_bits()).or_insert(new);
            if next == new {
                self.choices.push(Choice::default());
            }
            at = next;
        }
        self.choices[at].class = Some(self.classes.len());
        self.classes.push(class);
        Ok(self.classes.len() - 1)
    }

    /// The template of a row, with the components of the formulas `others` in the same graph.
    pub(super) fn template(
        &self,
        names: &mut RowIndices,
        row: &[f64],
        others: &[&Ex],
    ) -> Result<RowTemplate, Diagnostic> {
        let mut lowering = TemplateLowering::new(names, row);
        let mut roots = lowering.lower(&self.piece.body)?;
        for wrapper in self.piece.wrappers.iter().rev() {
            roots = match wrapper {
                Wrapper::Negate => roots.iter().map(|&r| lowering.graph.neg(r)).collect(),
                Wrapper::Scale(c) => {
                    let c = lowering.lower(c)?[0];
                    roots.iter().map(|&r| lowering.graph.mul(c, r)).collect()
                }
                Wrapper::Divide(c) => {
                    let c = lowering.lower(c)?[0];
                    roots.iter().map(|&r| lowering.graph.div(r, c)).collect()
                }
            };
        }
        let others = others.iter().map(|e| lowering.lower(e)).collect::<Result<_, _>>()?;
        let (class, decisions) = lowering.into_class(roots, self.span());
        Ok(RowTemplate { class, decisions, others })
    }

    /// Number of the output that the first component of a member is added to.
    pub(super) fn first_output(&self, member: usize) -> u32 {
        (member * self.components + self.piece.offset) as u32
    }
}
