//! Columns that are made by adding up the rows of templates: the forces of a sum over pairs.

use super::function::Contribution;
use super::{Call, Column, Columns, Definition, Function};
use crate::functional::Source;
use crate::graph::{Graph, Input, Node};
use crate::rows::{Piece, Rows};
use rustc_hash::FxHashMap;

/// Row programs that add up some columns, which are outputs of one call; `place` says where member i of output k goes. What
/// the call reads is stored.
pub fn accumulated(columns: &Columns, outputs: &[Column], place: &dyn Fn(usize, u32) -> u32) -> Vec<Piece> {
    let called = outputs.first().map(|&column| columns.definition(column));
    let Some(Definition::Call { call, .. }) = called else { return Vec::new() };
    let call = &columns.calls[call as usize];
    let function = &columns.functions[call.function];
    let mut targets: Vec<Targets> = (0..function.parts()).map(|part| Targets::new(function, part as u32)).collect();
    for (k, &column) in outputs.iter().enumerate() {
        let Some(members) = &columns.facts(column).members else { continue };
        for member in 0..columns.length(column) {
            for contribution in members.contributions(member) {
                targets[contribution.part as usize].put(contribution, place(k, member));
            }
        }
    }
    let parts = targets.iter_mut().enumerate();
    parts.flat_map(|(part, targets)| targets.pieces(columns, call, function, part as u32)).collect()
}

/// Where the rows of a part add to.
struct Targets {
    /// Number of formulas.
    width: usize,
    /// What is wanted of which row, and its place.
    list: Vec<(Contribution, u32)>,
}

/// Rows of which the same formulas are wanted.
struct Group {
    wanted: Vec<bool>,
    /// The first formula of each row.
    rows: Vec<Contribution>,
    /// rows × wanted formulas.
    places: Vec<u32>,
}

impl Targets {
    fn new(function: &Function, part: u32) -> Targets {
        Targets { width: function.values_of(part), list: Vec::new() }
    }

    fn put(&mut self, contribution: Contribution, place: u32) {
        self.list.push((contribution, place));
    }

    fn groups(&mut self) -> Vec<Group> {
        // In the order of the rows, and of the formulas of each.
        self.list.sort_unstable();
        let (mut groups, mut known): (Vec<Group>, FxHashMap<Vec<bool>, usize>) = (Vec::new(), FxHashMap::default());
        let mut key = Vec::new();
        for row in self.list.chunk_by(|(a, _), (b, _)| (a.stretch, a.row) == (b.stretch, b.row)) {
            key.clear();
            key.resize(self.width, false);
            row.iter().for_each(|(contribution, _)| key[contribution.formula as usize] = true);
            let group = *known.entry(key.clone()).or_insert_with(|| {
                groups.push(Group { wanted: key.clone(), rows: Vec::new(), places: Vec::new() });
                groups.len() - 1
            });
            groups[group].rows.push(row[0].0);
            groups[group].places.extend(row.iter().map(|&(_, place)| place));
        }
        groups
    }

    /// The pieces of a part: one for the rows in which the same formulas are wanted.
    fn pieces(&mut self, columns: &Columns, call: &Call, function: &Function, part: u32) -> Vec<Piece> {
        let (groups, width) = (self.groups(), self.width);
        let piece = |group: &Group| {
            let formulas: Vec<usize> = (0..width).filter(|&k| group.wanted[k]).collect();
            let nodes: Vec<Node> = formulas.iter().map(|&k| function.formula(part, k as u32).node).collect();
            // The time is stored, like all that varies.
            let own = function.slots(part);
            let clock = own.len() as u32;
            let mut graph = Graph::new();
            let nodes = graph.instantiate(function.graph(part), &nodes, |g, input| match input {
                Input::Time => g.input(Input::Slot(clock)),
                other => g.input(other),
            });
            let slots = [own, &[Source::State]].concat();
            let rows = CallRows { columns, call, function, rows: &group.rows, slots };
            let target = |row: usize, k: usize| group.places[row * formulas.len() + k];
            Piece::new(&rows, &graph, nodes, &target)
        };
        groups.iter().filter_map(piece).collect()
    }
}

/// Some rows of a part whose inputs are the arguments of a call.
struct CallRows<'a> {
    columns: &'a Columns,
    call: &'a Call,
    function: &'a Function,
    rows: &'a [Contribution],
    /// Those of the part, and the time.
    slots: Vec<Source>,
}

impl CallRows<'_> {
    fn place(&self, column: Column, member: u32) -> u32 {
        let at = self.columns.stored(column).expect("what is read by rows is stored");
        at.first + member * at.stride
    }

    fn entry(&self, row: usize, slot: usize) -> u32 {
        if slot + 1 == self.slots.len() {
            return self.place(self.call.time, 0);
        }
        let row = self.rows[row];
        match self.slots[slot] {
            Source::State => {
                let (column, member) = self.call.argument(self.function.entry(row, slot as u32));
                self.place(column, member)
            }
            // The same in all rows of a stretch.
            Source::Number => self.function.entry(Contribution { row: 0, ..row }, slot as u32),
            Source::Parameter => self.function.entry(row, slot as u32),
        }
    }
}

impl Rows for CallRows<'_> {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn slots(&self) -> &[Source] {
        &self.slots
    }

    fn entries(&self, slot: usize, first: usize, entries: &mut [u32]) {
        entries.iter_mut().zip(first..).for_each(|(entry, row)| *entry = self.entry(row, slot));
    }

    fn number(&self, slot: usize) -> f64 {
        self.function.number(self.rows[0], slot as u32)
    }

    fn is_same(&self, slot: usize) -> bool {
        let number = |row: usize| self.function.number(self.rows[row], slot as u32).to_bits();
        (1..self.rows.len()).all(|row| match self.slots[slot] {
            Source::Number => number(row) == number(0),
            _ => self.entry(row, slot) == self.entry(0, slot),
        })
    }

    fn numbers(&self) -> Vec<f64> {
        let part = self.rows.first().map_or(0, |row| row.part);
        self.function.numbers(part).to_vec()
    }
}
