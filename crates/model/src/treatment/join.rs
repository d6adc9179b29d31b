//! Joins of the rows of several templates into rows of one: formulas of formulas (a square, a
//! product) made of functionals without unrolling these.

use crate::functional::{Source, Stretches, Term};
use crate::graph::{Graph, Input, Node};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A row of one of the joined terms: (term, row).
pub type Part = (u32, u32);

/// Joined rows, collected by their parts: rows with parts of the same terms and the same shape
/// share a template.
pub struct Join<'a> {
    terms: Vec<&'a Term>,
    /// Group of each list of the parts' terms and each shape.
    known: FxHashMap<(Vec<u32>, Vec<u32>), usize>,
    groups: Vec<Group>,
}

struct Group {
    terms: Vec<u32>,
    shape: Vec<u32>,
    /// Row numbers of the parts; shape (rows, parts).
    rows: Vec<u32>,
    first_output: Vec<u32>,
}

/// Parts of one group in the graph of its template.
pub struct Instances {
    /// Components of each part.
    pub roots: Vec<Vec<Node>>,
    /// Slots of each part.
    pub slots: Vec<std::ops::Range<u32>>,
    /// Other numbers that distinguish the group's rows from those of other groups.
    pub shape: Vec<u32>,
}

impl<'a> Join<'a> {
    /// A join without rows, for rows of these terms.
    pub fn new(terms: Vec<&'a Term>) -> Join<'a> {
        Join { terms, known: FxHashMap::default(), groups: Vec::new() }
    }

    /// Adds a row made of `parts`, whose first component goes to output `first_output`. Rows with
    /// parts of the same terms and the same `shape` share a template.
    pub fn push(&mut self, parts: &[Part], shape: &[u32], first_output: u32) {
        let key = (parts.iter().map(|&(term, _)| term).collect::<Vec<_>>(), shape.to_vec());
        let group = match self.known.get(&key) {
            Some(&group) => group,
            None => {
                let (terms, shape) = key.clone();
                self.groups.push(Group {
                    terms,
                    shape,
                    rows: Vec::new(),
                    first_output: Vec::new(),
                });
                self.known.insert(key, self.groups.len() - 1);
                self.groups.len() - 1
            }
        };
        let group = &mut self.groups[group];
        group.rows.extend(parts.iter().map(|&(_, row)| row));
        group.first_output.push(first_output);
    }

    /// Size of the largest template, in nodes of its parts.
    pub fn largest(&self) -> usize {
        let size = |group: &Group| {
            group.terms.iter().map(|&term| self.terms[term as usize].graph.len()).sum()
        };
        self.groups.iter().map(size).max().unwrap_or(0)
    }

    /// The joined terms, with the groups in the order of their first rows. `make` gives the
    /// components of a template. All templates read `parameter`, if it is given; `make` gets the
    /// node of its slot.
    pub fn terms(
        self,
        parameter: Option<u32>,
        mut make: impl FnMut(&mut Graph, &Instances, Option<Node>) -> Vec<Node>,
    ) -> Vec<Term> {
        self.groups
            .iter()
            .map(|group| {
                let parts: Vec<&Term> =
                    group.terms.iter().map(|&term| self.terms[term as usize]).collect();
                let mut graph = Graph::new();
                let instances = Instances::new(&mut graph, &parts, &group.shape);
                let mut slots: Vec<Source> =
                    parts.iter().flat_map(|part| part.slots.iter().copied()).collect();
                let last = parameter.map(|_| {
                    slots.push(Source::Parameter);
                    graph.input(Input::Slot(slots.len() as u32 - 1))
                });
                let roots = make(&mut graph, &instances, last);
                let (table, numbers) = table(&parts, group, parameter);
                Term { graph, roots, slots, table, numbers, pairs: None, spans: Arc::default() }
            })
            .collect()
    }
}

impl Instances {
    fn new(graph: &mut Graph, parts: &[&Term], shape: &[u32]) -> Instances {
        let mut instances =
            Instances { roots: Vec::new(), slots: Vec::new(), shape: shape.to_vec() };
        let mut first = 0;
        for part in parts {
            instances.roots.push(graph.instantiate(
                &part.graph,
                &part.roots,
                |g, input| match input {
                    Input::Slot(k) => g.input(Input::Slot(first + k)),
                    other => g.input(other),
                },
            ));
            let end = first + part.slots.len() as u32;
            instances.slots.push(first..end);
            first = end;
        }
        instances
    }
}

/// Row table of a group, and its numbers: those of each part one after the other.
fn table(parts: &[&Term], group: &Group, parameter: Option<u32>) -> (Stretches, Vec<f64>) {
    let mut numbers = Vec::new();
    let mut bases = Vec::new();
    for part in parts {
        bases.push(numbers.len() as u32);
        numbers.extend_from_slice(&part.numbers);
    }
    let slots: usize = parts.iter().map(|part| part.slots.len()).sum();
    let (mut table, mut row) =
        (Stretches::new(slots + usize::from(parameter.is_some()) + 1), Vec::new());
    for (rows, &first_output) in group.rows.chunks(parts.len()).zip(&group.first_output) {
        row.clear();
        for ((part, &own), base) in parts.iter().zip(rows).zip(&bases) {
            let entries = part.slots.iter().zip(part.row(own as usize).iter());
            row.extend(entries.map(
                |(source, entry)| if *source == Source::Number { entry + base } else { entry },
            ));
        }
        row.extend(parameter);
        row.push(first_output);
        table.push(&row);
    }
    (table, numbers)
}
