//! Columns that are made by adding up the rows of templates: the forces of a sum over pairs.

use super::{Call, Column, Columns, Definition, Function};
use crate::functional::{Source, Term};
use crate::graph::{Graph, Input, Node};
use crate::rows::{Piece, Rows};
use rustc_hash::FxHashMap;

/// No output.
const NONE: u32 = u32::MAX;

/// Row programs that add up some columns, which are outputs of one call; `place` says where member i of output k goes. What
/// the call reads is stored.
pub fn accumulated(columns: &Columns, outputs: &[Column], place: &dyn Fn(usize, u32) -> u32) -> Vec<Piece> {
    let Some((call, _)) = outputs.first().and_then(|&column| called(columns, column)) else { return Vec::new() };
    let call = &columns.calls[call as usize];
    let function = &columns.functions[call.function];
    let mut targets: Vec<Targets> = (0..function.parts()).map(|part| Targets::new(function, part as u32)).collect();
    for (k, &column) in outputs.iter().enumerate() {
        let Some((_, (first, stride))) = called(columns, column) else { continue };
        for member in 0..columns.length(column) {
            for c in function.contributions(first + member * stride) {
                targets[c.part as usize].put(c.row, c.formula, place(k, member));
            }
        }
    }
    let parts = targets.iter().enumerate();
    parts.flat_map(|(part, targets)| targets.pieces(columns, call, function, part as u32)).collect()
}

/// The call of a column, with its first output and the distance of the next.
fn called(columns: &Columns, column: Column) -> Option<(u32, (u32, u32))> {
    match columns.definition(column) {
        Definition::Call { call, first, stride } => Some((call, (first, stride))),
        _ => None,
    }
}

/// Where the rows of a part add to.
struct Targets {
    /// Number of formulas.
    width: usize,
    /// rows × formulas.
    places: Vec<u32>,
}

impl Targets {
    fn new(function: &Function, part: u32) -> Targets {
        let width = function.values_of(part);
        Targets { width, places: vec![NONE; width * function.term(part).rows()] }
    }

    fn put(&mut self, row: u32, formula: u32, place: u32) {
        self.places[row as usize * self.width + formula as usize] = place;
    }

    /// The pieces of a part: one for the rows in which the same formulas are wanted.
    fn pieces(&self, columns: &Columns, call: &Call, function: &Function, part: u32) -> Vec<Piece> {
        let term = function.term(part);
        let mut groups: Vec<(Vec<bool>, Vec<u32>)> = Vec::new();
        let mut known: FxHashMap<Vec<bool>, usize> = FxHashMap::default();
        let mut key = Vec::new();
        for (row, places) in self.places.chunks_exact(self.width.max(1)).enumerate() {
            key.clear();
            key.extend(places.iter().map(|&place| place != NONE));
            let group = match known.get(&key) {
                Some(&group) => group,
                None if key.contains(&true) => {
                    known.insert(key.clone(), groups.len());
                    groups.push((key.clone(), Vec::new()));
                    groups.len() - 1
                }
                None => continue,
            };
            groups[group].1.push(row as u32);
        }
        let piece = |(wanted, rows): &(Vec<bool>, Vec<u32>)| {
            let formulas: Vec<usize> = (0..self.width).filter(|&k| wanted[k]).collect();
            let nodes: Vec<Node> = formulas.iter().map(|&k| function.formula(part, k as u32).node).collect();
            // The time is stored, like all that varies.
            let clock = term.slots.len() as u32;
            let mut graph = Graph::new();
            let nodes = graph.instantiate(function.graph(part), &nodes, |g, input| match input {
                Input::Time => g.input(Input::Slot(clock)),
                other => g.input(other),
            });
            let mut slots = term.slots.clone();
            slots.push(Source::State);
            let rows = CallRows { columns, call, term, rows, slots };
            let target = |row: usize, k: usize| self.places[rows.rows[row] as usize * self.width + formulas[k]];
            Piece::new(&rows, &graph, nodes, &target)
        };
        groups.iter().filter_map(piece).collect()
    }
}

/// Some rows of a term whose inputs are the arguments of a call.
struct CallRows<'a> {
    columns: &'a Columns,
    call: &'a Call,
    term: &'a Term,
    rows: &'a [u32],
    /// Those of the term, and the time.
    slots: Vec<Source>,
}

impl CallRows<'_> {
    fn place(&self, column: Column, member: u32) -> u32 {
        let at = self.columns.stored(column).expect("what is read by rows is stored");
        at.first + member * at.stride
    }
}

impl Rows for CallRows<'_> {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn slots(&self) -> &[Source] {
        &self.slots
    }

    fn entry(&self, row: usize, slot: usize) -> u32 {
        let Some(&source) = self.term.slots.get(slot) else { return self.place(self.call.time, 0) };
        let entry = self.term.row(self.rows[row] as usize)[slot];
        if source != Source::State {
            return entry;
        }
        let (column, member) = self.call.argument(entry);
        self.place(column, member)
    }

    fn number(&self, row: usize, slot: usize) -> f64 {
        self.term.numbers[self.entry(row, slot) as usize]
    }

    fn numbers(&self) -> Vec<f64> {
        self.term.numbers.clone()
    }
}
