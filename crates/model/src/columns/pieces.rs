//! Columns and their derivatives as row programs: members whose formulas have one form become the rows of a template.

use super::expansion::{Builder, Expansion, Forms, Graphs, Leaf, mixed};
use super::{Column, Columns};
use crate::functional::{Source, Term};
use crate::graph::Node;
use crate::rows::Piece;
use rustc_hash::FxHashMap;

/// Members with formulas of one form.
struct Group {
    members: Vec<u32>,
    /// What they read, member after member.
    leaves: Vec<Leaf>,
    /// What their formulas are, member after member: column k, or the derivative of column k with respect to a stored
    /// number.
    results: Vec<(u32, u32)>,
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
            let width = group.results.len() / group.members.len();
            let all = group.results.iter().enumerate();
            all.map(move |(at, &(k, unknown))| (k as usize, group.members[at / width.max(1)], unknown))
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
            groups.push(Group { members: Vec::new(), leaves: Vec::new(), results: Vec::new() });
            groups.len() - 1
        });
        let group = &mut groups[group];
        for k in 0..run {
            group.members.push(member + k);
            group.leaves.extend(
                expansion
                    .leaves
                    .iter()
                    .map(|leaf| Leaf { entry: leaf.entry.wrapping_add(k.wrapping_mul(leaf.step)), ..*leaf }),
            );
            group.results.extend(results.iter().map(|r| (r.column, r.unknown + k * r.step)));
        }
        member += run;
    }
    groups
}

impl Group {
    fn piece(&self, columns: &Columns, what: What, place: &dyn Fn(usize, u32, u32) -> u32) -> Option<Piece> {
        let mut expansion = Expansion::new(columns, what.unknowns(), Graphs::default());
        let roots: Vec<Node> = what.of(&mut expansion, self.members[0], &mut Vec::new());
        let (graph, width) = (expansion.builder.graph, expansion.leaves.len());
        let slots = expansion.leaves.iter().map(|leaf| leaf.source).collect();
        let mut numbers = Vec::new();
        let mut entry = |leaf: &Leaf| match leaf.source {
            Source::Number => {
                numbers.push(leaf.number);
                numbers.len() as u32 - 1
            }
            _ => leaf.entry,
        };
        let table = self.leaves.iter().map(&mut entry).collect();
        let first_output = vec![0; self.members.len()];
        let term = Term { graph, slots, table, first_output, numbers, roots: roots.clone() };
        debug_assert_eq!(width * self.members.len(), self.leaves.len());
        let rows: Vec<u32> = (0..self.members.len() as u32).collect();
        let count = roots.len();
        Piece::new(&term, &rows, &term.graph, roots, &|row, k| {
            let (column, unknown) = self.results[row * count + k];
            place(column as usize, self.members[row], unknown)
        })
    }
}
