//! Rows of several templates joined to rows of one: how a formula of formulas (a square, a product) is made of
//! functionals without writing them out.

use crate::functional::{Source, Stretches, Term};
use crate::graph::{Graph, Input, Node};
use rustc_hash::FxHashMap;

/// A row of one of the terms that are joined: (term, row).
pub type Part = (u32, u32);

/// Joined rows, collected by what they are made of: those that are alike share a template.
pub struct Join<'a> {
    terms: Vec<&'a Term>,
    /// The terms of the parts, and what else distinguishes rows.
    known: FxHashMap<(Vec<u32>, Vec<u32>), usize>,
    groups: Vec<Group>,
}

struct Group {
    terms: Vec<u32>,
    shape: Vec<u32>,
    /// rows × parts.
    rows: Vec<u32>,
    first_output: Vec<u32>,
}

/// The parts of one group in the graph of its template.
pub struct Instances {
    /// The components of each part.
    pub roots: Vec<Vec<Node>>,
    /// The slots of each part.
    pub slots: Vec<std::ops::Range<u32>>,
    /// What else distinguishes its rows.
    pub shape: Vec<u32>,
}

impl<'a> Join<'a> {
    /// Rows of these terms are to be joined.
    pub fn new(terms: Vec<&'a Term>) -> Join<'a> {
        Join { terms, known: FxHashMap::default(), groups: Vec::new() }
    }

    /// Adds a row made of `parts`, whose first component goes to output `first_output`. Rows with the same terms and
    /// the same `shape` share a template.
    pub fn push(&mut self, parts: &[Part], shape: &[u32], first_output: u32) {
        let key = (parts.iter().map(|&(term, _)| term).collect::<Vec<_>>(), shape.to_vec());
        let group = match self.known.get(&key) {
            Some(&group) => group,
            None => {
                let (terms, shape) = key.clone();
                self.groups.push(Group { terms, shape, rows: Vec::new(), first_output: Vec::new() });
                self.known.insert(key, self.groups.len() - 1);
                self.groups.len() - 1
            }
        };
        let group = &mut self.groups[group];
        group.rows.extend(parts.iter().map(|&(_, row)| row));
        group.first_output.push(first_output);
    }

    /// The size of the largest template, in nodes of its parts.
    pub fn largest(&self) -> usize {
        let size = |group: &Group| group.terms.iter().map(|&term| self.terms[term as usize].graph.len()).sum();
        self.groups.iter().map(size).max().unwrap_or(0)
    }

    /// The joined terms, the groups in the order of their first rows. `make` gives the components of a template;
    /// `parameter` is one that they all read, in the slot that `make` is told of.
    pub fn terms(
        self,
        parameter: Option<u32>,
        mut make: impl FnMut(&mut Graph, &Instances, Option<Node>) -> Vec<Node>,
    ) -> Vec<Term> {
        self.groups
            .iter()
            .map(|group| {
                let parts: Vec<&Term> = group.terms.iter().map(|&term| self.terms[term as usize]).collect();
                let mut graph = Graph::new();
                let instances = Instances::new(&mut graph, &parts, &group.shape);
                let mut slots: Vec<Source> = parts.iter().flat_map(|part| part.slots.iter().copied()).collect();
                let last = parameter.map(|_| {
                    slots.push(Source::Parameter);
                    graph.input(Input::Slot(slots.len() as u32 - 1))
                });
                let roots = make(&mut graph, &instances, last);
                let (table, numbers) = table(&parts, group, parameter);
                Term { graph, roots, slots, table, numbers, pairs: None }
            })
            .collect()
    }
}

impl Instances {
    fn new(graph: &mut Graph, parts: &[&Term], shape: &[u32]) -> Instances {
        let mut instances = Instances { roots: Vec::new(), slots: Vec::new(), shape: shape.to_vec() };
        let mut first = 0;
        for part in parts {
            instances.roots.push(graph.instantiate(&part.graph, &part.roots, |g, input| match input {
                Input::Slot(k) => g.input(Input::Slot(first + k)),
                other => g.input(other),
            }));
            let end = first + part.slots.len() as u32;
            instances.slots.push(first..end);
            first = end;
        }
        instances
    }
}

/// The row table of a group, and its numbers: those of each part one after the other.
fn table(parts: &[&Term], group: &Group, parameter: Option<u32>) -> (Stretches, Vec<f64>) {
    let mut numbers = Vec::new();
    let mut bases = Vec::new();
    for part in parts {
        bases.push(numbers.len() as u32);
        numbers.extend_from_slice(&part.numbers);
    }
    let slots: usize = parts.iter().map(|part| part.slots.len()).sum();
    let (mut table, mut row) = (Stretches::new(slots + usize::from(parameter.is_some()) + 1), Vec::new());
    for (rows, &first_output) in group.rows.chunks(parts.len()).zip(&group.first_output) {
        row.clear();
        for ((part, &own), base) in parts.iter().zip(rows).zip(&bases) {
            let entries = part.slots.iter().zip(part.row(own as usize).iter());
            row.extend(entries.map(|(source, entry)| if *source == Source::Number { entry + base } else { entry }));
        }
        row.extend(parameter);
        row.push(first_output);
        table.push(&row);
    }
    (table, numbers)
}
