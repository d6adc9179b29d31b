//! Columns and their derivatives as row programs: members whose formulas have one form become the rows of a template.

use super::expansion::{Builder, Expansion, Forms, Graphs, Leaf, mixed};
use super::{Column, Columns};
use crate::functional::Source;
use crate::graph::Node;
use crate::rows::{Piece, Rows};
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// Members with formulas of one form: runs of members in a row, of which only the first is kept, with the steps by which
/// the others move on.
#[derive(Default)]
struct Group {
    runs: Vec<Run>,
    /// What they read, run after run.
    leaves: Vec<Leaf>,
    /// What their formulas are, run after run.
    results: Vec<Outcome>,
    /// Number of members.
    count: usize,
}

/// The members from `member` on, which are rows of the group from `row` on.
#[derive(Clone, Copy)]
struct Run {
    row: u32,
    member: u32,
}

/// A result of a member: of which column, with respect to which stored number, and by how much that moves on.
#[derive(Clone, Copy)]
struct Outcome {
    column: u32,
    unknown: u32,
    step: u32,
}

/// What is computed of a member.
#[derive(Clone, Copy)]
enum What<'a> {
    /// The values of some columns, by their definitions.
    Values(&'a [Column]),
    /// The derivatives of some columns with respect to stored inputs.
    Derivatives(&'a [Column], &'a [Column]),
}

impl What<'_> {
    fn unknowns(&self) -> &[Column] {
        match self {
            What::Values(_) => &[],
            What::Derivatives(_, unknowns) => unknowns,
        }
    }

    /// The formulas of a member; `results` takes what they are.
    fn of<B: Builder>(&self, expansion: &mut Expansion<B>, member: u32, results: &mut Vec<Outcome>) -> Vec<B::Formula> {
        let mut formulas = Vec::new();
        match *self {
            What::Values(columns) => {
                for (k, &column) in columns.iter().enumerate() {
                    results.push(Outcome { column: k as u32, unknown: 0, step: 0 });
                    formulas.push(expansion.defined(column, member));
                }
            }
            What::Derivatives(columns, _) => {
                for (k, &column) in columns.iter().enumerate() {
                    for d in expansion.derivatives(column, member) {
                        results.push(Outcome { column: k as u32, unknown: d.unknown, step: d.step });
                        formulas.push(d.formula);
                    }
                }
            }
        }
        formulas
    }
}

/// Row programs for members 0 to `length` of some columns, which are computed by their definitions; `place` says where
/// member i of output k goes.
pub fn pieces(columns: &Columns, outputs: &[Column], length: u32, place: &dyn Fn(usize, u32) -> u32) -> Vec<Piece> {
    let what = What::Values(outputs);
    let groups = groups(columns, what, length);
    groups.iter().filter_map(|group| group.piece(columns, what, &|k, member, _| place(k, member))).collect()
}

/// The derivatives of members of some columns with respect to stored inputs.
pub struct Jacobian<'a> {
    columns: &'a Columns,
    what: What<'a>,
    groups: Vec<Group>,
}

impl<'a> Jacobian<'a> {
    /// Those of members 0 to `length` of `outputs` with respect to the `unknowns`.
    pub fn new(columns: &'a Columns, outputs: &'a [Column], unknowns: &'a [Column], length: u32) -> Jacobian<'a> {
        let what = What::Derivatives(outputs, unknowns);
        Jacobian { columns, what, groups: groups(columns, what, length) }
    }

    /// Which there are: output, member, the place of what it is differentiated with respect to.
    pub fn entries(&self) -> impl Iterator<Item = (usize, u32, u32)> {
        self.groups.iter().flat_map(|group| {
            let results = group.results.len() / group.runs.len();
            group.rows().flat_map(move |(run, offset, member)| {
                let of_run = &group.results[run * results..][..results];
                of_run.iter().map(move |r| (r.column as usize, member, r.unknown + offset * r.step))
            })
        })
    }

    /// Row programs for them; `place` says where each goes.
    pub fn pieces(&self, place: &dyn Fn(usize, u32, u32) -> u32) -> Vec<Piece> {
        self.groups.iter().filter_map(|group| group.piece(self.columns, self.what, place)).collect()
    }
}

fn groups(columns: &Columns, what: What, length: u32) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: FxHashMap<u64, usize> = FxHashMap::default();
    let mut expansion = Expansion::new(columns, what.unknowns(), Forms);
    let mut results = Vec::new();
    let mut member = 0;
    while member < length {
        expansion.clear();
        results.clear();
        let forms = what.of(&mut expansion, member, &mut results);
        let run = expansion.alike(results.iter().map(|r: &Outcome| (r.unknown, r.step))).min(length - member);
        let sources = expansion.leaves.iter().fold(0, |hash, leaf| mixed(hash, leaf.source as u64));
        let columns_of = results.iter().fold(sources, |hash, result| mixed(hash, u64::from(result.column)));
        let form = forms.into_iter().fold(columns_of, mixed);
        let group = *known.entry(form).or_insert_with(|| {
            groups.push(Group::default());
            groups.len() - 1
        });
        let group = &mut groups[group];
        group.runs.push(Run { row: group.count as u32, member });
        group.leaves.extend(&expansion.leaves);
        group.results.extend(&results);
        group.count += run as usize;
        member += run;
    }
    groups
}

impl Group {
    /// For every row its run, its number there, and its member.
    fn rows(&self) -> impl Iterator<Item = (usize, u32, u32)> {
        self.runs.iter().enumerate().flat_map(move |(k, run)| {
            let end = self.runs.get(k + 1).map_or(self.count as u32, |next| next.row);
            (0..end - run.row).map(move |offset| (k, offset, run.member + offset))
        })
    }

    /// Number of rows of each run.
    fn lengths(&self) -> impl Iterator<Item = u32> {
        let ends = self.runs.iter().skip(1).map(|run| run.row).chain([self.count as u32]);
        self.runs.iter().zip(ends).map(|(run, end)| end - run.row)
    }

    fn piece(&self, columns: &Columns, what: What, place: &dyn Fn(usize, u32, u32) -> u32) -> Option<Piece> {
        let mut expansion = Expansion::new(columns, what.unknowns(), Graphs::default());
        let roots: Vec<Node> = what.of(&mut expansion, self.runs[0].member, &mut Vec::new());
        let slots: Vec<Source> = expansion.leaves.iter().map(|leaf| leaf.source).collect();
        debug_assert_eq!(slots.len() * self.runs.len(), self.leaves.len());
        let rows = GroupRows { group: self, slots: &slots, near: Cell::new(0) };
        let count = roots.len();
        let target = |row: usize, k: usize| {
            let (run, offset) = rows.run(row);
            let result = &self.results[run * count + k];
            place(result.column as usize, self.runs[run].member + offset, result.unknown + offset * result.step)
        };
        Piece::new(&rows, &expansion.builder.graph, roots, &target, None)
    }
}

/// The members of a group as rows.
struct GroupRows<'a> {
    group: &'a Group,
    slots: &'a [Source],
    /// The run of the row that was last looked at: the next is in it, or not far.
    near: Cell<usize>,
}

impl GroupRows<'_> {
    /// The run that a row is in, and its number there.
    fn run(&self, row: usize) -> (usize, u32) {
        let (runs, row) = (&self.group.runs, row as u32);
        let mut k = self.near.get();
        if row < runs[k].row || runs.get(k + 2).is_some_and(|run| run.row <= row) {
            k = runs.partition_point(|run| run.row <= row) - 1;
        } else if runs.get(k + 1).is_some_and(|run| run.row <= row) {
            k += 1;
        }
        self.near.set(k);
        (k, row - runs[k].row)
    }

    fn leaf(&self, row: usize, slot: usize) -> &Leaf {
        let (run, _) = self.run(row);
        &self.group.leaves[run * self.slots.len() + slot]
    }
}

impl Rows for GroupRows<'_> {
    fn count(&self) -> usize {
        self.group.count
    }

    fn slots(&self) -> &[Source] {
        self.slots
    }

    fn entries(&self, slot: usize, first: usize, entries: &mut [u32]) {
        if self.slots[slot] == Source::Number {
            let before = self.slots[..slot].iter().filter(|&&source| source == Source::Number).count();
            let start = (before * self.group.count + first) as u32;
            entries.iter_mut().zip(start..).for_each(|(entry, place)| *entry = place);
            return;
        }
        let (mut row, mut rest) = (first, entries);
        while !rest.is_empty() {
            let (run, offset) = self.run(row);
            let leaf = &self.group.leaves[run * self.slots.len() + slot];
            let end = self.group.runs.get(run + 1).map_or(self.group.count, |next| next.row as usize);
            let (these, behind) = rest.split_at_mut(rest.len().min(end - row));
            for (entry, offset) in these.iter_mut().zip(offset..) {
                *entry = leaf.entry.wrapping_add(offset.wrapping_mul(leaf.step));
            }
            (row, rest) = (row + these.len(), behind);
        }
    }

    fn number(&self, slot: usize) -> f64 {
        self.group.leaves[slot].number
    }

    fn is_same(&self, slot: usize) -> bool {
        let first = &self.group.leaves[slot];
        let leaves = self.group.leaves.iter().skip(slot).step_by(self.slots.len());
        let mut runs = leaves.zip(self.group.lengths());
        runs.all(|(leaf, rows)| match self.slots[slot] {
            Source::Number => leaf.number.to_bits() == first.number.to_bits(),
            _ => leaf.entry == first.entry && (rows == 1 || leaf.step == 0),
        })
    }

    fn numbers(&self) -> Vec<f64> {
        let slots = (0..self.slots.len()).filter(|&slot| self.slots[slot] == Source::Number);
        let of = |slot: usize| (0..self.group.count).map(move |row| self.leaf(row, slot).number);
        slots.flat_map(of).collect()
    }
}
