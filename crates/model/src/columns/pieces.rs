//! Columns and their derivatives as row programs: members whose formulas have one form become the rows of a template.

use super::expansion::{Expansion, Forms, Graphs, Leaf, mixed};
use super::{Column, Columns};
use crate::functional::{Source, Term};
use crate::graph::Node;
use crate::rows::Piece;
use rustc_hash::FxHashMap;

/// Where a result goes: of member i of output k.
pub type Place<'a> = &'a dyn Fn(usize, u32) -> u32;

/// Members with formulas of one form.
struct Group {
    members: Vec<u32>,
    /// What they read, member after member.
    leaves: Vec<Leaf>,
    /// Where their results go, member after member.
    targets: Vec<u32>,
}

/// A member's formulas: their forms, and where each goes.
trait Formulas {
    /// The formulas of a member; `targets` takes where they go.
    fn of<B: super::expansion::Builder>(
        &self,
        expansion: &mut Expansion<B>,
        member: u32,
        targets: &mut Vec<u32>,
    ) -> Vec<B::Formula>;
}

/// The values of some columns.
struct Values<'a> {
    columns: &'a [Column],
    place: Place<'a>,
}

impl Formulas for Values<'_> {
    fn of<B: super::expansion::Builder>(
        &self,
        expansion: &mut Expansion<B>,
        member: u32,
        targets: &mut Vec<u32>,
    ) -> Vec<B::Formula> {
        targets.extend((0..self.columns.len()).map(|k| (self.place)(k, member)));
        self.columns.iter().map(|&column| expansion.defined(column, member)).collect()
    }
}

/// The derivatives of some columns with respect to the unknowns.
struct Entries<'a> {
    columns: &'a [Column],
    /// Where the derivative of member i of column k with respect to a stored number goes.
    place: &'a dyn Fn(usize, u32, u32) -> u32,
}

impl Formulas for Entries<'_> {
    fn of<B: super::expansion::Builder>(
        &self,
        expansion: &mut Expansion<B>,
        member: u32,
        targets: &mut Vec<u32>,
    ) -> Vec<B::Formula> {
        let mut formulas = Vec::new();
        for (k, &column) in self.columns.iter().enumerate() {
            for (unknown, formula) in expansion.derivatives(column, member) {
                targets.push((self.place)(k, member, unknown));
                formulas.push(formula);
            }
        }
        formulas
    }
}

/// Row programs for members 0 to `length` of some columns, which are computed by their definitions.
pub fn pieces(columns: &Columns, outputs: &[Column], length: u32, place: Place) -> Vec<Piece> {
    collect(columns, &[], length, &Values { columns: outputs, place })
}

impl Columns {
    /// Row programs for the derivatives of members 0 to `length` of some columns with respect to the `unknowns`, inputs
    /// that are stored; `place` says where that of member i of output k with respect to a stored number goes.
    pub fn jacobian(
        &self,
        outputs: &[Column],
        unknowns: &[Column],
        length: u32,
        place: &dyn Fn(usize, u32, u32) -> u32,
    ) -> Vec<Piece> {
        collect(self, unknowns, length, &Entries { columns: outputs, place })
    }
}

/// Which derivatives there are: member, stored number, in the order of the members; of column k.
pub fn jacobian_entries(columns: &Columns, output: Column, unknowns: &[Column], length: u32) -> Vec<(u32, u32)> {
    let mut expansion = Expansion::new(columns, unknowns, Forms);
    let mut entries = Vec::new();
    for member in 0..length {
        expansion.clear();
        entries.extend(expansion.derivatives(output, member).into_iter().map(|(unknown, _)| (member, unknown)));
    }
    entries
}

fn collect(columns: &Columns, unknowns: &[Column], length: u32, formulas: &impl Formulas) -> Vec<Piece> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: FxHashMap<u64, usize> = FxHashMap::default();
    let mut expansion = Expansion::new(columns, unknowns, Forms);
    let mut targets = Vec::new();
    for member in 0..length {
        expansion.clear();
        targets.clear();
        let forms = formulas.of(&mut expansion, member, &mut targets);
        let sources = expansion.leaves.iter().fold(0, |hash, leaf| mixed(hash, leaf.source as u64));
        let form = forms.into_iter().fold(sources, mixed);
        let group = *known.entry(form).or_insert_with(|| {
            groups.push(Group { members: Vec::new(), leaves: Vec::new(), targets: Vec::new() });
            groups.len() - 1
        });
        let group = &mut groups[group];
        group.members.push(member);
        group.leaves.extend_from_slice(&expansion.leaves);
        group.targets.extend_from_slice(&targets);
    }
    let mut pieces = Vec::new();
    for group in &groups {
        pieces.extend(group.piece(columns, unknowns, formulas));
    }
    pieces
}

impl Group {
    fn piece(&self, columns: &Columns, unknowns: &[Column], formulas: &impl Formulas) -> Option<Piece> {
        let mut expansion = Expansion::new(columns, unknowns, Graphs::default());
        let roots: Vec<Node> = formulas.of(&mut expansion, self.members[0], &mut Vec::new());
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
        let term = Term {
            graph,
            slots,
            table: self.leaves.iter().map(&mut entry).collect(),
            first_output: vec![0; self.members.len()],
            numbers,
            roots: roots.clone(),
        };
        debug_assert_eq!(width * self.members.len(), self.leaves.len());
        let rows: Vec<u32> = (0..self.members.len() as u32).collect();
        let count = roots.len();
        Piece::new(&term, &rows, &term.graph, roots, &|row, k| self.targets[row * count + k])
    }
}
