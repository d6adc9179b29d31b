//! Columns that are made by adding up the rows of templates: the forces of a sum over pairs.

use super::function::Contribution;
use super::{Call, Column, Columns, Definition, Function};
use crate::functional::{Pairs, Side, Source};
use crate::graph::{Graph, Input, Node};
use crate::rows::{Near, Piece, Rows};
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
    let parts = targets.iter().enumerate();
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

    /// What is wanted in the order of the rows, and of the formulas of each.
    fn by_rows(&self) -> Vec<(Contribution, u32)> {
        // Every row of every stretch up to the last one that is wanted has a place to count in.
        let mut ends: Vec<usize> = Vec::new();
        for (contribution, _) in &self.list {
            let (stretch, row) = (contribution.stretch as usize, contribution.row as usize);
            ends.resize(ends.len().max(stretch + 1), 0);
            ends[stretch] = ends[stretch].max(row + 1);
        }
        let first: Vec<usize> = ends.iter().scan(0, |sum, end| Some(std::mem::replace(sum, *sum + end))).collect();
        let at = |contribution: &Contribution| first[contribution.stretch as usize] + contribution.row as usize;
        let mut next = vec![0; ends.iter().sum::<usize>() + 1];
        self.list.iter().for_each(|(contribution, _)| next[at(contribution) + 1] += 1);
        (1..next.len()).for_each(|row| next[row] += next[row - 1]);
        let Some(&any) = self.list.first() else { return Vec::new() };
        let mut sorted = vec![any; self.list.len()];
        for wanted in &self.list {
            let place = &mut next[at(&wanted.0)];
            sorted[*place] = *wanted;
            *place += 1;
        }
        sorted.chunk_by_mut(of_one_row).for_each(|row| row.sort_unstable());
        sorted
    }

    fn groups(&self) -> Vec<Group> {
        let list = self.by_rows();
        let (mut groups, mut known): (Vec<Group>, FxHashMap<Vec<bool>, usize>) = (Vec::new(), FxHashMap::default());
        let mut key = Vec::new();
        for row in list.chunk_by(of_one_row) {
            key.clear();
            key.resize(self.width, false);
            row.iter().for_each(|(contribution, _)| key[contribution.formula as usize] = true);
            let group = known.get(&key).copied().unwrap_or_else(|| {
                known.insert(key.clone(), groups.len());
                groups.push(Group { wanted: key.clone(), rows: Vec::new(), places: Vec::new() });
                groups.len() - 1
            });
            groups[group].rows.push(row[0].0);
            groups[group].places.extend(row.iter().map(|&(_, place)| place));
        }
        groups
    }

    /// The pieces of a part: one for the rows in which the same formulas are wanted.
    fn pieces(&self, columns: &Columns, call: &Call, function: &Function, part: u32) -> Vec<Piece> {
        let (groups, width) = (self.groups(), self.width);
        let piece = |group: &Group| {
            let formulas: Vec<usize> = (0..width).filter(|&k| group.wanted[k]).collect();
            let nodes: Vec<Node> = formulas.iter().map(|&k| function.formula(part, k as u32).node).collect();
            // The time is stored, like all that varies.
            let own = function.slots(part);
            let clock = own.len() as u32;
            let mut graph = Graph::new();
            let pairs = function.pairs(part);
            let roots: Vec<Node> = nodes.into_iter().chain(pairs.iter().flat_map(|pairs| pairs.nodes())).collect();
            let mut nodes = graph.instantiate(function.graph(part), &roots, |g, input| match input {
                Input::Time => g.input(Input::Slot(clock)),
                other => g.input(other),
            });
            let slots = [own, &[Source::State]].concat();
            let of_pairs = nodes.split_off(formulas.len());
            let near = pairs.map(|pairs| Near {
                pairs: Pairs { sides: [&pairs.sides[..], &[Side::Both]].concat(), ..pairs.with_nodes(&of_pairs) },
                outputs: formulas.iter().map(|&k| function.side(part, k as u32)).collect(),
            });
            let rows = CallRows { columns, call, function, rows: &group.rows, slots };
            let target = |row: usize, k: usize| group.places[row * formulas.len() + k];
            Piece::new(&rows, &graph, nodes, &target, near)
        };
        groups.iter().filter_map(piece).collect()
    }
}

/// Whether two wanted outputs are of the same row.
fn of_one_row((a, _): &(Contribution, u32), (b, _): &(Contribution, u32)) -> bool {
    (a.stretch, a.row) == (b.stretch, b.row)
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

    fn entry(&self, row: Contribution, slot: usize) -> u32 {
        if slot + 1 == self.slots.len() {
            return self.place(self.call.time, 0);
        }
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

    /// By how much the entry moves on in each of `count` rows behind each other, where it moves evenly.
    fn step(&self, row: Contribution, slot: usize, count: u32) -> Option<u32> {
        if slot + 1 == self.slots.len() || self.slots[slot] == Source::Number || count == 1 {
            return Some(0);
        }
        let step = self.function.step(row, slot as u32);
        if self.slots[slot] == Source::Parameter {
            return Some(step);
        }
        let even = self.call.reads_one(self.function.entry(row, slot as u32), step, count);
        even.then(|| self.entry(row.moved(1), slot).wrapping_sub(self.entry(row, slot)))
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
        let mut rest = entries;
        for rows in self.rows[first..first + rest.len()].chunk_by(|a, b| a.moved(1) == *b) {
            let (these, behind) = rest.split_at_mut(rows.len());
            match self.step(rows[0], slot, rows.len() as u32) {
                Some(step) => {
                    let first = self.entry(rows[0], slot);
                    let places = (0..).map(|k: u32| first.wrapping_add(k.wrapping_mul(step)));
                    these.iter_mut().zip(places).for_each(|(entry, place)| *entry = place);
                }
                None => these.iter_mut().zip(rows).for_each(|(entry, &row)| *entry = self.entry(row, slot)),
            }
            rest = behind;
        }
    }

    fn number(&self, slot: usize) -> f64 {
        self.function.number(self.rows[0], slot as u32)
    }

    fn is_same(&self, slot: usize) -> bool {
        let number = |row: Contribution| self.function.number(row, slot as u32).to_bits();
        let first = self.rows[0];
        self.rows.chunk_by(|a, b| a.moved(1) == *b).all(|rows| match self.slots[slot] {
            Source::Number => number(rows[0]) == number(first),
            _ => {
                let stays = self.step(rows[0], slot, rows.len() as u32) == Some(0);
                stays && self.entry(rows[0], slot) == self.entry(first, slot)
            }
        })
    }

    fn numbers(&self) -> Vec<f64> {
        let part = self.rows.first().map_or(0, |row| row.part);
        self.function.numbers(part).to_vec()
    }
}
