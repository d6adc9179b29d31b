//! Columns that are accumulated over the rows of templates, such as the forces of a sum over pairs.

use super::function::Contribution;
use super::{Call, Column, Columns, Definition, Function, Stored};
use crate::functional::{Pairs, Side, Source, Stretches};
use crate::graph::{Expression, Graph, Input, Node};
use crate::rows::{Near, Piece, RowTable};
use rustc_hash::FxHashMap;

/// Row programs that accumulate the columns `outputs` of one call, stored one after the other in
/// the order of the call's outputs, and the place of each of them. All that the call reads is
/// stored.
pub fn accumulated(columns: &Columns, outputs: &[Column]) -> (Vec<Piece>, Vec<Stored>) {
    let mut places = vec![Stored { first: 0, stride: 1 }; outputs.len()];
    let called = outputs.first().map(|&column| columns.definition(column));
    let Some(Definition::Call { call, .. }) = called else { return (Vec::new(), places) };
    let mut order: Vec<usize> = (0..outputs.len()).collect();
    order.sort_unstable_by_key(|&k| match columns.definition(outputs[k]) {
        Definition::Call { first, .. } => first,
        _ => unreachable!("they are outputs of a call"),
    });
    let mut end = 0;
    for k in order {
        let length = columns.length(outputs[k]);
        places[k] = Stored { first: end, stride: u32::from(length > 1) };
        end += length;
    }
    let call = &columns.calls[call as usize];
    let function = &columns.functions[call.function];
    let mut parts: Vec<Vec<Target>> = (0..function.parts()).map(|_| Vec::new()).collect();
    for (&column, at) in outputs.iter().zip(&places) {
        let Some(members) = &columns.facts(column).members else { continue };
        for share in members.shares() {
            let (place, step) = (at.first + share.member * at.stride, share.step as u32);
            let step = if share.rows > 1 { step.wrapping_mul(at.stride) } else { 0 };
            let contribution = share.contribution;
            parts[contribution.part as usize].push(Target {
                contribution,
                rows: share.rows,
                place,
                step,
            });
        }
    }
    let parts = (0..).zip(parts);
    let pieces = parts
        .flat_map(|(part, targets)| CallPart { columns, call, function, part }.pieces(targets))
        .collect();
    (pieces, places)
}

/// Output to which a formula adds in consecutive rows.
#[derive(Clone, Copy)]
struct Target {
    /// Contribution of the first row.
    contribution: Contribution,
    rows: u32,
    place: u32,
    /// Step of the place from row to row.
    step: u32,
}

impl Target {
    fn end(&self) -> u32 {
        self.contribution.row + self.rows
    }
}

/// Rows in which the same formulas are wanted.
struct Group {
    formulas: Vec<u32>,
    /// True for each slot that the formulas read. The places of other slots are unknown.
    reads: Vec<bool>,
    /// Places that the slots read, and to which the formulas add.
    rows: Stretches,
}

/// A part of a function whose inputs are the arguments of a call.
struct CallPart<'a> {
    columns: &'a Columns,
    call: &'a Call,
    function: &'a Function,
    part: u32,
}

impl CallPart<'_> {
    /// Pieces of the part, one per group of rows in which the same formulas are wanted.
    fn pieces(&self, targets: Vec<Target>) -> Vec<Piece> {
        let (function, part) = (self.function, self.part);
        // The time is stored, like all that varies.
        let slots = [function.slots(part), &[Source::State]].concat();
        let clock = slots.len() as u32 - 1;
        let piece = |Group { formulas, rows, .. }: Group| {
            let nodes: Vec<Node> =
                formulas.iter().map(|&k| function.formula(part, k).node).collect();
            let mut graph = Graph::new();
            let pairs = function.pairs(part);
            let roots: Vec<Node> =
                nodes.into_iter().chain(pairs.iter().flat_map(|pairs| pairs.nodes())).collect();
            let mut nodes =
                graph.instantiate(function.graph(part), &roots, |g, input| match input {
                    Input::Time => g.input(Input::Slot(clock)),
                    other => g.input(other),
                });
            let of_pairs = nodes.split_off(formulas.len());
            let near = pairs.map(|pairs| Near {
                pairs: Pairs {
                    sides: [&pairs.sides[..], &[Side::Both]].concat(),
                    ..pairs.with_nodes(&of_pairs)
                },
                outputs: formulas.iter().map(|&k| function.side(part, k)).collect(),
            });
            let table = RowTable { slots: &slots, rows, numbers: function.numbers(part) };
            Piece::new(&table, &graph, nodes, near)
        };
        self.groups(targets, &slots).into_iter().filter_map(piece).collect()
    }

    fn groups(&self, mut targets: Vec<Target>, slots: &[Source]) -> Vec<Group> {
        let of = |target: &Target| (target.contribution.stretch, target.contribution.row);
        targets.sort_unstable_by_key(|target| (of(target), target.contribution.formula));
        let (mut groups, mut known): (Vec<Group>, FxHashMap<Vec<u32>, usize>) =
            (Vec::new(), FxHashMap::default());
        for stretch in targets.chunk_by(|a, b| a.contribution.stretch == b.contribution.stretch) {
            // The wanted formulas change only at rows at which a target starts or ends.
            let mut ends: Vec<u32> =
                stretch.iter().flat_map(|t| [t.contribution.row, t.end()]).collect();
            ends.sort_unstable();
            ends.dedup();
            let (mut wanted, mut next): (Vec<Target>, _) = (Vec::new(), stretch.iter().peekable());
            for rows in ends.windows(2) {
                wanted.retain(|target| target.end() > rows[0]);
                while let Some(&target) = next.next_if(|target| target.contribution.row == rows[0])
                {
                    wanted.push(target);
                }
                wanted.sort_unstable_by_key(|target| target.contribution.formula);
                let formulas: Vec<u32> =
                    wanted.iter().map(|target| target.contribution.formula).collect();
                let Some(target) = wanted.first() else { continue };
                let group = known.get(&formulas).copied().unwrap_or_else(|| {
                    known.insert(formulas.clone(), groups.len());
                    let (reads, width) = (self.reads(&formulas), slots.len() + formulas.len());
                    groups.push(Group { formulas, reads, rows: Stretches::new(width) });
                    groups.len() - 1
                });
                let row = Contribution { row: rows[0], ..target.contribution };
                self.put((row, rows[1] - rows[0]), slots, &wanted, &mut groups[group]);
            }
        }
        groups
    }

    /// Flags of the slots that some formulas read; the last one is the time.
    fn reads(&self, formulas: &[u32]) -> Vec<bool> {
        let (function, count) = (self.function, self.function.slots(self.part).len());
        let mut reads = vec![false; count + 1];
        for formula in formulas.iter().map(|&k| function.formula(self.part, k)) {
            formula.slots.iter().for_each(|&slot| reads[slot as usize] = true);
            reads[count] |= formula.reads_time;
        }
        let of_pairs = function.pairs(self.part).map_or(Vec::new(), Pairs::nodes);
        for node in function.graph(self.part).reachable(&of_pairs) {
            match function.graph(self.part).expression(node) {
                Expression::Input(Input::Slot(slot)) => reads[slot as usize] = true,
                Expression::Input(Input::Time) => reads[count] = true,
                _ => {}
            }
        }
        reads
    }

    /// Append `count` rows from `first` on to the group of the formulas `wanted`.
    fn put(
        &self,
        (first, count): (Contribution, u32),
        slots: &[Source],
        wanted: &[Target],
        group: &mut Group,
    ) {
        let Group { reads, rows, .. } = group;
        let step =
            |slot: usize| if reads[slot] { self.step(first, slot, slots, count) } else { Some(0) };
        let steps: Option<Vec<u32>> = (0..slots.len()).map(step).collect();
        let place = |target: &Target, row: u32| {
            target
                .place
                .wrapping_add((first.row + row - target.contribution.row).wrapping_mul(target.step))
        };
        let entries = |row: u32| -> Vec<u32> {
            let entry = |slot: usize| {
                if reads[slot] { self.entry(first.moved(row), slot, slots) } else { 0 }
            };
            (0..slots.len())
                .map(entry)
                .chain(wanted.iter().map(|target| place(target, row)))
                .collect()
        };
        match steps {
            Some(steps) if count > 1 => {
                let steps = steps.into_iter().chain(wanted.iter().map(|target| target.step));
                rows.push_stretch(entries(0), steps, count as usize);
            }
            _ => (0..count).for_each(|row| rows.push(&entries(row))),
        }
    }

    fn place(&self, column: Column, member: u32) -> u32 {
        let at = self.columns.stored(column).expect("what is read by rows is stored");
        at.first + member * at.stride
    }

    /// Place that a slot reads in a row.
    fn entry(&self, row: Contribution, slot: usize, slots: &[Source]) -> u32 {
        if slot + 1 == slots.len() {
            return self.place(self.call.time, 0);
        }
        match slots[slot] {
            Source::State => {
                let (column, member) = self.call.argument(self.function.entry(row, slot as u32));
                self.place(column, member)
            }
            Source::Number | Source::Parameter => self.function.entry(row, slot as u32),
        }
    }

    /// Step of that place over `count` consecutive rows; `None` if it is uneven.
    fn step(&self, row: Contribution, slot: usize, slots: &[Source], count: u32) -> Option<u32> {
        if slot + 1 == slots.len() || count == 1 {
            return Some(0);
        }
        let step = self.function.step(row, slot as u32);
        if slots[slot] != Source::State {
            return Some(step);
        }
        let even = self.call.reads_one(self.function.entry(row, slot as u32), step, count);
        even.then(|| {
            self.entry(row.moved(1), slot, slots).wrapping_sub(self.entry(row, slot, slots))
        })
    }
}
