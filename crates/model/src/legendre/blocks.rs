//! Velocities that the terms of a Lagrangian couple, and coupled sets of the same form.

use super::terms::VelocityTerm;
use crate::functional::Source;
use rustc_hash::FxHashMap;

/// Coupled velocities of one form: the same terms in the same order, whose rows share slots in the
/// same way. Bodies that only differ in their numbers have one form.
pub(super) struct Form {
    /// Terms, each with the numbers of its slots among those of the form.
    pub(super) rows: Vec<(usize, Vec<u32>)>,
    /// Source of each slot.
    pub(super) sources: Vec<Source>,
    /// Slots that read velocities, in the order of the state.
    pub(super) velocities: Vec<u32>,
    /// Entries of the slots, for each block.
    pub(super) blocks: Vec<Vec<u32>>,
    /// Numbers that depend on the block.
    pub(super) numbers: Vec<f64>,
}

/// The forms of the blocks of `terms`, and the velocities that no term reads, as numbers of
/// positions.
pub(super) fn forms(terms: &[VelocityTerm], degrees: usize) -> (Vec<Form>, Vec<usize>) {
    let (mut forms, mut known): (Vec<Form>, FxHashMap<_, usize>) = Default::default();
    let (blocks, free) = blocks(terms, degrees);
    for block in blocks {
        let Wiring { rows, sources, entries, numbers } = Wiring::of(terms, &block);
        let number = *known.entry(rows).or_insert_with_key(|rows| {
            let is_velocity = |&k: &u32| {
                sources[k as usize] == Source::State && entries[k as usize] as usize >= degrees
            };
            let mut velocities: Vec<u32> = (0..sources.len() as u32).filter(is_velocity).collect();
            velocities.sort_unstable_by_key(|&k| entries[k as usize]);
            let (rows, blocks, numbers) = (rows.clone(), Vec::new(), Vec::new());
            forms.push(Form { rows, sources, velocities, blocks, numbers });
            forms.len() - 1
        });
        let form: &mut Form = &mut forms[number];
        let first = form.numbers.len() as u32;
        let entry = |(&entry, source): (&u32, &Source)| match source {
            Source::Number => first + entry,
            _ => entry,
        };
        form.blocks.push(entries.iter().zip(&form.sources).map(entry).collect());
        form.numbers.extend(numbers);
    }
    (forms, free)
}

/// Slots of a block: which rows read the same number.
struct Wiring {
    rows: Vec<(usize, Vec<u32>)>,
    sources: Vec<Source>,
    entries: Vec<u32>,
    numbers: Vec<f64>,
}

impl Wiring {
    fn of(terms: &[VelocityTerm], block: &[(usize, usize)]) -> Wiring {
        let mut wiring =
            Wiring { rows: Vec::new(), sources: vec![], entries: vec![], numbers: vec![] };
        let mut known: FxHashMap<(Source, usize, u32), u32> = FxHashMap::default();
        for &(number, row) in block {
            let term = &terms[number].term;
            let mut slots = Vec::with_capacity(term.slots.len());
            for (&source, entry) in term.slots.iter().zip(term.row(row).iter()) {
                let of_term = if source == Source::Number { number } else { 0 };
                let slot = *known.entry((source, of_term, entry)).or_insert_with(|| {
                    wiring.sources.push(source);
                    wiring.entries.push(match source {
                        Source::Number => {
                            wiring.numbers.push(term.numbers[entry as usize]);
                            wiring.numbers.len() as u32 - 1
                        }
                        _ => entry,
                    });
                    wiring.sources.len() as u32 - 1
                });
                slots.push(slot);
            }
            wiring.rows.push((number, slots));
        }
        wiring
    }
}

/// What is done with a row (term, row) and the positions whose velocities it reads.
type EachRow<'a> = dyn FnMut((usize, usize), &mut dyn Iterator<Item = usize>) + 'a;

/// Rows (term, row) by the velocities that they couple, and the velocities that none reads.
fn blocks(terms: &[VelocityTerm], degrees: usize) -> (Vec<Vec<(usize, usize)>>, Vec<usize>) {
    let mut parent: Vec<usize> = (0..degrees).collect();
    let mut is_read = vec![false; degrees];
    let each_row = |f: &mut EachRow| {
        for (number, VelocityTerm { term, velocities, .. }) in terms.iter().enumerate() {
            for (row, entries) in term.table.each().enumerate() {
                let position = |&k: &u32| entries.at(k as usize) as usize - degrees;
                f((number, row), &mut velocities.iter().map(position));
            }
        }
    };
    each_row(&mut |_, positions| {
        let mut first = None;
        for k in positions {
            is_read[k] = true;
            let root = find(&mut parent, k);
            let first = *first.get_or_insert(root);
            let other = find(&mut parent, first);
            parent[root.max(other)] = root.min(other);
        }
    });
    let mut numbers: FxHashMap<usize, usize> = FxHashMap::default();
    let mut blocks: Vec<Vec<(usize, usize)>> = Vec::new();
    for k in (0..degrees).filter(|&k| is_read[k]) {
        numbers.entry(find(&mut parent, k)).or_insert_with(|| {
            blocks.push(Vec::new());
            blocks.len() - 1
        });
    }
    each_row(&mut |row, positions| {
        if let Some(k) = positions.next() {
            blocks[numbers[&find(&mut parent, k)]].push(row);
        }
    });
    (blocks, (0..degrees).filter(|&k| !is_read[k]).collect())
}

/// The least member of the set of `i`.
fn find(parent: &mut [usize], mut i: usize) -> usize {
    while parent[i] != i {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    i
}
