//! Columns and their derivatives as row programs: members whose formulas have one form become the
//! rows of a template.

use super::expansion::{Expansion, Forms, FormulaBuilder, Graphs, Leaf};
use super::{Column, Columns};
use crate::functional::{Source, Stretches};
use crate::graph::Node;
use crate::rows::{Piece, RowTable};
use rustc_hash::FxHashMap;

/// Members with formulas of one form: runs of consecutive members, of which only the first is kept,
/// with the steps of the others.
#[derive(Default)]
struct Group {
    runs: Vec<Run>,
    /// Reads, run after run.
    leaves: Vec<Leaf>,
    /// Meaning of the formulas, run after run.
    results: Vec<Outcome>,
    /// Number of members.
    count: usize,
}

/// Run of members from `member` on, which are rows of the group from `row` on.
#[derive(Clone, Copy)]
struct Run {
    row: u32,
    member: u32,
}

/// Result of a member: its column, the stored number of a derivative, and the step of that from
/// member to member.
#[derive(Clone, Copy)]
struct Outcome {
    column: u32,
    unknown: u32,
    step: u32,
}

/// Quantities computed for a member.
#[derive(Clone, Copy)]
enum What<'a> {
    /// Values of some columns, by their definitions.
    Values(&'a [Column]),
    /// Partial derivatives of some columns with respect to the time, by the same definitions.
    TimeDerivatives(&'a [Column]),
    /// Derivatives of some columns with respect to stored inputs.
    Derivatives(&'a [Column], &'a [Column]),
}

impl What<'_> {
    fn unknowns(&self) -> &[Column] {
        match self {
            What::Values(_) | What::TimeDerivatives(_) => &[],
            What::Derivatives(_, unknowns) => unknowns,
        }
    }

    /// Formulas of a member; their meanings are appended to `results`.
    fn of<B: FormulaBuilder>(
        &self,
        expansion: &mut Expansion<B>,
        member: u32,
        results: &mut Vec<Outcome>,
    ) -> Vec<B::Formula> {
        let mut formulas = Vec::new();
        match *self {
            What::Values(columns) | What::TimeDerivatives(columns) => {
                for (k, &column) in columns.iter().enumerate() {
                    results.push(Outcome { column: k as u32, unknown: 0, step: 0 });
                    formulas.push(expansion.defined(column, member));
                }
            }
            What::Derivatives(columns, _) => {
                for (k, &column) in columns.iter().enumerate() {
                    for d in expansion.derivatives(column, member) {
                        results.push(Outcome {
                            column: k as u32,
                            unknown: d.unknown,
                            step: d.step,
                        });
                        formulas.push(d.formula);
                    }
                }
            }
        }
        formulas
    }
}

/// Row programs for members 0 to `length` of some columns, which are computed by their definitions.
/// `place` is the place of member i of output k.
pub fn pieces(
    columns: &Columns,
    outputs: &[Column],
    length: u32,
    place: &dyn Fn(usize, u32) -> u32,
) -> Vec<Piece> {
    member_by_member(columns, What::Values(outputs), length, place)
}

/// Row programs like [`pieces`] for the partial derivatives with respect to the time, at fixed
/// stored numbers.
pub fn time_derivatives(
    columns: &Columns,
    outputs: &[Column],
    length: u32,
    place: &dyn Fn(usize, u32) -> u32,
) -> Vec<Piece> {
    member_by_member(columns, What::TimeDerivatives(outputs), length, place)
}

fn member_by_member(
    columns: &Columns,
    what: What,
    length: u32,
    place: &dyn Fn(usize, u32) -> u32,
) -> Vec<Piece> {
    let groups = groups(columns, what, length);
    groups
        .iter()
        .filter_map(|group| group.piece(columns, what, &|k, member, _| place(k, member)))
        .collect()
}

/// Derivatives of members of some columns with respect to stored inputs.
pub struct Jacobian<'a> {
    columns: &'a Columns,
    what: What<'a>,
    groups: Vec<Group>,
}

impl<'a> Jacobian<'a> {
    /// Derivatives of members 0 to `length` of `outputs` with respect to the `unknowns`.
    pub fn new(
        columns: &'a Columns,
        outputs: &'a [Column],
        unknowns: &'a [Column],
        length: u32,
    ) -> Jacobian<'a> {
        let what = What::Derivatives(outputs, unknowns);
        Jacobian { columns, what, groups: groups(columns, what, length) }
    }

    /// Entries: output, member, and place of the number with respect to which it is differentiated.
    pub fn entries(&self) -> impl Iterator<Item = (usize, u32, u32)> {
        self.groups.iter().flat_map(|group| {
            let results = group.results.len() / group.runs.len();
            group.rows().flat_map(move |(run, offset, member)| {
                let of_run = &group.results[run * results..][..results];
                of_run.iter().map(move |r| (r.column as usize, member, r.unknown + offset * r.step))
            })
        })
    }

    /// Row programs for the derivatives; `place` is the place of each.
    pub fn pieces(&self, place: &dyn Fn(usize, u32, u32) -> u32) -> Vec<Piece> {
        self.groups.iter().filter_map(|group| group.piece(self.columns, self.what, place)).collect()
    }
}

fn groups(columns: &Columns, what: What, length: u32) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: FxHashMap<u64, usize> = FxHashMap::default();
    let mut expansion = Expansion::new(columns, what.unknowns(), Forms::default());
    let mut results = Vec::new();
    let mut member = 0;
    while member < length {
        expansion.clear();
        results.clear();
        let forms = what.of(&mut expansion, member, &mut results);
        let run = expansion
            .alike(results.iter().map(|r: &Outcome| (r.unknown, r.step)))
            .min(length - member);
        // Sources of the leaves, then the column and form of each result.
        let sources = expansion.leaves.iter().map(|leaf| leaf.source as u64);
        let columns = results.iter().zip(forms).flat_map(|(r, form)| [u64::from(r.column), form]);
        let form = [0].into_iter().chain(sources).chain([u64::MAX]).chain(columns);
        let form = expansion.builder.number(form);
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
    /// Run, number in the run, and member of every row.
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

    fn piece(
        &self,
        columns: &Columns,
        what: What,
        place: &dyn Fn(usize, u32, u32) -> u32,
    ) -> Option<Piece> {
        let mut expansion = Expansion::new(columns, what.unknowns(), Graphs::default());
        let mut roots: Vec<Node> = what.of(&mut expansion, self.runs[0].member, &mut Vec::new());
        if let What::TimeDerivatives(_) = what {
            let graph = &mut expansion.builder.graph;
            roots.iter_mut().for_each(|root| *root = graph.time_derivative(*root));
        }
        let slots: Vec<Source> = expansion.leaves.iter().map(|leaf| leaf.source).collect();
        let (rows, numbers) = self.rows_of(&slots, roots.len(), what, place);
        Piece::new(
            &RowTable { slots: &slots, rows, numbers: &numbers },
            &expansion.builder.graph,
            roots,
            None,
        )
    }

    /// Rows of a template with these slots and `outputs` outputs, with the numbers that they read.
    fn rows_of(
        &self,
        slots: &[Source],
        outputs: usize,
        what: What,
        place: &dyn Fn(usize, u32, u32) -> u32,
    ) -> (Stretches, Vec<f64>) {
        debug_assert_eq!(slots.len() * self.runs.len(), self.leaves.len());
        // Numbers slot by slot, one if they are equal in all rows: place of the first, and step.
        let mut numbers = Vec::new();
        let mut number = |slot: usize| {
            let of_runs =
                || self.leaves.iter().skip(slot).step_by(slots.len()).map(|leaf| leaf.number);
            let (first, mut all) = (numbers.len() as u32, of_runs());
            if all.next().is_none_or(|same| all.all(|number| number.to_bits() == same.to_bits())) {
                numbers.extend(of_runs().take(1));
                return (first, 0);
            }
            let of_rows = of_runs().zip(self.lengths());
            numbers.extend(
                of_rows.flat_map(|(number, rows)| std::iter::repeat_n(number, rows as usize)),
            );
            (first, 1)
        };
        let of_numbers: Vec<Option<(u32, u32)>> = (0..slots.len())
            .map(|slot| (slots[slot] == Source::Number).then(|| number(slot)))
            .collect();
        let mut rows = Stretches::new(slots.len() + outputs);
        for (k, (run, length)) in self.runs.iter().zip(self.lengths()).enumerate() {
            let leaves = self.leaves[k * slots.len()..][..slots.len()].iter().zip(&of_numbers);
            let entries = leaves.map(|(leaf, number)| match *number {
                Some((first, step)) => (first + run.row * step, step),
                None => (leaf.entry, leaf.step),
            });
            let results = &self.results[k * outputs..][..outputs];
            let target = |result: &Outcome, offset: u32| {
                place(
                    result.column as usize,
                    run.member + offset,
                    result.unknown + offset * result.step,
                )
            };
            // The places of values are even; those of derivatives need not be.
            if !matches!(what, What::Derivatives(..)) && length > 1 {
                let targets = results.iter().map(|result| {
                    let [first, second] = [0, 1].map(|offset| target(result, offset));
                    (first, second.wrapping_sub(first))
                });
                let (first, step): (Vec<u32>, Vec<u32>) = entries.chain(targets).unzip();
                rows.push_stretch(first, step, length as usize);
                continue;
            }
            let (first, step): (Vec<u32>, Vec<u32>) = entries.unzip();
            let mut row = first;
            for offset in 0..length {
                row.truncate(slots.len());
                row.extend(results.iter().map(|result| target(result, offset)));
                rows.push(&row);
                row.iter_mut()
                    .zip(&step)
                    .for_each(|(entry, step)| *entry = entry.wrapping_add(*step));
            }
        }
        (rows, numbers)
    }
}
