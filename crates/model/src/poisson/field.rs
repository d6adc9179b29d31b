//! J ∇H as term templates: each row of H with the rows of J whose columns it moves.

use super::{Block, Poisson};
use crate::functional::{Entries, Functional, Source, Stretches, Term};
use crate::graph::{Graph, Input, Node};
use rustc_hash::FxHashMap;

/// Reason why a field has no templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyRows;

/// A row of a block's term that has a component of the state as one of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Meeting {
    block: u32,
    term: u32,
    row: u32,
    column: u32,
}

/// Rows of the blocks by the components of the state that are their columns.
struct Columns {
    first: Vec<u32>,
    meetings: Vec<Meeting>,
}

impl Columns {
    fn new(blocks: &[Block], dimension: usize) -> Columns {
        let mut all: Vec<(u32, Meeting)> = Vec::new();
        for (number, block) in blocks.iter().enumerate() {
            for (term, of) in block.matrix.terms.iter().enumerate() {
                // Columns with entries, by the entry of the first root.
                let mut known: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
                for (row, entries) in of.table.each().enumerate() {
                    let output = entries.last() as usize;
                    let (member, ..) = block.entry(output);
                    let first = output % block.size.pow(2);
                    let columns = known.entry(first).or_insert_with(|| columns(block, of, first));
                    for &column in &*columns {
                        let place = block.places_of(member)[column];
                        let [block, term, row, column] =
                            [number, term, row, column].map(|n| n as u32);
                        all.push((place, Meeting { block, term, row, column }));
                    }
                }
            }
        }
        all.sort_unstable();
        let mut first = vec![0; dimension + 1];
        all.iter().for_each(|(place, _)| first[*place as usize + 1] += 1);
        (0..dimension).for_each(|place| first[place + 1] += first[place]);
        Columns { first, meetings: all.into_iter().map(|(_, meeting)| meeting).collect() }
    }

    fn of(&self, place: u32) -> &[Meeting] {
        let place = place as usize;
        &self.meetings[self.first[place] as usize..self.first[place + 1] as usize]
    }
}

/// Columns in which a term of a block has entries, if its first root is entry `first`.
fn columns(block: &Block, of: &Term, first: usize) -> Vec<usize> {
    let moving = (0..of.roots.len()).filter(|&root| !of.graph.is_zero(of.roots[root]));
    let mut columns: Vec<usize> = moving.map(|root| block.entry(first + root).2).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// What rows of the field have in common that share a template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Form {
    block: u32,
    term: u32,
    /// Slots of H's term and the columns that they are.
    columns: Vec<(u32, u32)>,
    /// For each slot of the block's term, the slot of H's term that reads the same.
    shared: Vec<Option<u32>>,
    /// Entry of the matrix that is the first output.
    entry: u32,
    /// Rows whose places follow those of the rows before them.
    follows: Vec<bool>,
}

/// Templates of one form: the outputs that follow each other are one term.
struct Formed {
    terms: Vec<Term>,
    /// Row of the matrix that is the first output of each term.
    firsts: Vec<usize>,
    /// Slots of the block's term that are not shared.
    own: Vec<usize>,
}

/// Slopes of a term of H.
struct Slopes<'a> {
    term: &'a Term,
    graph: Graph,
    slopes: Vec<(u32, Node)>,
}

impl<'a> Slopes<'a> {
    fn new(term: &'a Term) -> Slopes<'a> {
        let mut graph = term.graph.clone();
        let moves =
            |input| matches!(input, Input::Slot(k) if term.slots[k as usize] == Source::State);
        let slopes = graph.adjoint(term.roots[0], moves).into_iter().filter_map(
            |(input, slope)| match input {
                Input::Slot(k) => Some((k, slope)),
                _ => None,
            },
        );
        let slopes = slopes.collect();
        Slopes { term, graph, slopes }
    }

    /// The template of a form.
    fn formed(&self, blocks: &[Block], form: &Form) -> Formed {
        let block = &blocks[form.block as usize];
        let of = &block.matrix.terms[form.term as usize];
        let mut graph = self.graph.clone();
        let own: Vec<usize> =
            (0..of.slots.len()).filter(|&slot| form.shared[slot].is_none()).collect();
        let count = self.term.slots.len();
        let place = |slot: u32| match form.shared[slot as usize] {
            Some(shared) => shared,
            None => (count + own.partition_point(|&k| k < slot as usize)) as u32,
        };
        let bind = |g: &mut Graph, input: Input| match input {
            Input::Slot(slot) => g.input(Input::Slot(place(slot))),
            other => g.input(other),
        };
        let entries = graph.instantiate(&of.graph, &of.roots, bind);
        let first = form.entry as usize;
        let mut rates = vec![graph.zero(); block.size];
        for (root, &entry) in entries.iter().enumerate() {
            let (_, row, column) = block.entry(first + root);
            for &(slot, at) in &form.columns {
                let own = self.slopes.iter().filter(|(k, _)| *k == slot && at as usize == column);
                for &(_, slope) in own {
                    let product = graph.mul(entry, slope);
                    rates[row] = graph.add(rates[row], product);
                }
            }
        }
        let mut spans = self.term.spans.to_vec();
        spans.truncate(self.graph.len());
        let whole = spans.last().copied().unwrap_or(block.span);
        spans.resize(self.graph.len(), whole);
        spans.resize(graph.len(), block.span);
        let spans: std::sync::Arc<[_]> = spans.into();
        let slots: Vec<Source> =
            self.term.slots.iter().copied().chain(own.iter().map(|&k| of.slots[k])).collect();
        let numbers = [&self.term.numbers[..], &of.numbers].concat();
        let (mut terms, mut firsts, mut row) = (Vec::new(), Vec::new(), 0);
        while row < block.size {
            let end = (row + 1..block.size).find(|&k| !form.follows[k]).unwrap_or(block.size);
            let moves = |k: &usize| !graph.is_zero(rates[*k]);
            if let (Some(low), Some(high)) = ((row..end).find(moves), (row..end).rfind(moves)) {
                firsts.push(low);
                terms.push(Term {
                    graph: graph.clone(),
                    roots: rates[low..=high].to_vec(),
                    slots: slots.clone(),
                    table: Stretches::new(slots.len() + 1),
                    numbers: numbers.clone(),
                    pairs: None,
                    spans: spans.clone(),
                });
            }
            row = end;
        }
        Formed { terms, firsts, own }
    }
}

impl Poisson {
    /// J ∇H as a functional with an output for each of `dimension` components of the state.
    ///
    /// # Errors
    /// If it has more than `most` rows, or more than `most` nodes in its templates.
    pub fn field(&self, dimension: usize, most: usize) -> Result<Functional, TooManyRows> {
        let columns = Columns::new(&self.blocks, dimension);
        let mut field = Functional { outputs: dimension, terms: Vec::new() };
        let (mut count, mut nodes) = (0, 0);
        for term in &self.hamiltonian.terms {
            let slopes = Slopes::new(term);
            let mut forms: FxHashMap<Form, usize> = FxHashMap::default();
            let mut formed: Vec<Formed> = Vec::new();
            let mut met: Vec<(Meeting, u32)> = Vec::new();
            let mut line: Vec<u32> = Vec::new();
            let mut full = false;
            term.each_row(&mut |row| {
                if count > most || nodes > most {
                    full = true;
                    return;
                }
                met.clear();
                for &(slot, _) in &slopes.slopes {
                    let all = columns.of(row.at(slot as usize)).iter();
                    met.extend(all.map(|meeting| (*meeting, slot)));
                }
                met.sort_unstable();
                let same = |a: &(Meeting, u32), b: &(Meeting, u32)| {
                    (a.0.block, a.0.term, a.0.row) == (b.0.block, b.0.term, b.0.row)
                };
                for met in met.chunk_by(same) {
                    let form = self.form(term, row, met);
                    let of = met[0].0;
                    let entries = self.blocks[of.block as usize].matrix.terms[of.term as usize]
                        .row(of.row as usize);
                    let number = *forms.entry(form).or_insert_with_key(|form| {
                        formed.push(slopes.formed(&self.blocks, form));
                        nodes += formed.last().map_or(0, |formed| {
                            formed.terms.iter().map(|term| term.graph.len()).sum()
                        });
                        formed.len() - 1
                    });
                    let Formed { terms, firsts, own } = &mut formed[number];
                    let block = &self.blocks[of.block as usize];
                    let (member, ..) = block.entry(entries.last() as usize);
                    line.clear();
                    line.extend(row.iter().take(term.slots.len()));
                    let kinds = &block.matrix.terms[of.term as usize].slots;
                    line.extend(own.iter().map(|&slot| match kinds[slot] {
                        Source::Number => entries.at(slot) + term.numbers.len() as u32,
                        _ => entries.at(slot),
                    }));
                    for (term, &first) in terms.iter_mut().zip(&*firsts) {
                        line.push(block.places_of(member)[first]);
                        term.table.push(&line);
                        line.pop();
                        count += 1;
                    }
                }
            });
            if full {
                return Err(TooManyRows);
            }
            field.terms.extend(formed.into_iter().flat_map(|formed| formed.terms));
        }
        Ok(field)
    }

    /// Form of a row of H with a row of a block's term, some of whose columns it moves.
    fn form(&self, term: &Term, row: Entries, met: &[(Meeting, u32)]) -> Form {
        let Meeting { block, term: number, row: of, .. } = met[0].0;
        let of_block = &self.blocks[block as usize];
        let of_term = &of_block.matrix.terms[number as usize];
        let entries = of_term.row(of as usize);
        let shared = |(slot, source): (usize, &Source)| {
            let reads_it = |k: &usize| {
                *source != Source::Number
                    && term.slots[*k] == *source
                    && row.at(*k) == entries.at(slot)
            };
            (0..term.slots.len()).find(reads_it).map(|k| k as u32)
        };
        let output = entries.last() as usize;
        let (member, ..) = of_block.entry(output);
        let places = of_block.places_of(member);
        Form {
            block,
            term: number,
            columns: met.iter().map(|(meeting, slot)| (*slot, meeting.column)).collect(),
            shared: of_term.slots.iter().enumerate().map(shared).collect(),
            entry: (output % of_block.size.pow(2)) as u32,
            follows: (0..places.len()).map(|k| k > 0 && places[k] == places[k - 1] + 1).collect(),
        }
    }
}
