//! Pieces that are sums over pairs that are near each other.

use super::parts::{NEAR_OUTPUTS, Parts, near_parts};
use super::{Layout, Piece};
use crate::functional::{List, Pairs, Side, Source, Stretches};
use crate::graph::Node;
use crate::graph::aligned::{Aligned, first_aligned};
use crate::graph::interpret::{Backend, Interpreter, Kernel};

/// Pairs computed side by side.
const LANES: usize = 8;

/// Numbers in a cache line, on which arrays start.
const LINE: usize = 8;

/// Entries of the slots and the outputs of a piece, member by member.
#[derive(Clone, Debug)]
pub(super) struct NearRows {
    /// The pairs, with formulas in the graph of the piece.
    pub pairs: Pairs,
    slots: Vec<Entries>,
    outputs: Vec<Entries>,
}

#[derive(Clone, Debug)]
struct Entries {
    side: Side,
    /// One entry for each member.
    of: Vec<u32>,
}

impl NearRows {
    /// Entries of a piece: its slots and outputs are `columns` of the rows, with their sides; the
    /// first `slots` are slots.
    pub fn new(
        pairs: Pairs,
        rows: &Stretches,
        (columns, sides): (&[usize], &[Side]),
        slots: usize,
    ) -> NearRows {
        let entries = |(&column, &side): (&usize, &Side)| {
            let mut of = vec![0; rows.rows()];
            rows.column(column, 0, &mut of);
            Entries { side, of }
        };
        let mut all: Vec<Entries> = columns.iter().zip(sides).map(entries).collect();
        let outputs = all.split_off(slots);
        NearRows { pairs, slots: all, outputs }
    }

    /// Place of an output of the first member.
    pub fn place(&self, output: usize) -> u32 {
        self.outputs[output].of[0]
    }

    /// Entries with the outputs `kept`, whose places from `first` on become those from `to` on.
    pub fn sums(&self, kept: &[usize], first: u32, to: u32) -> NearRows {
        let moved = |&k: &usize| {
            let Entries { side, of } = &self.outputs[k];
            Entries { side: *side, of: of.iter().map(|place| place - first + to).collect() }
        };
        NearRows {
            pairs: self.pairs.clone(),
            slots: self.slots.clone(),
            outputs: kept.iter().map(moved).collect(),
        }
    }

    /// Visit all places to which pairs add, each at least twice, because many pairs add to it.
    pub fn each_written(&self, to: &mut impl FnMut(u32)) {
        self.outputs
            .iter()
            .flat_map(|entries| &entries.of)
            .for_each(|&at| [at; 2].into_iter().for_each(&mut *to));
    }

    /// Entries over a state in columns.
    pub fn in_columns(&self, sources: &[(u32, Source)], layout: &Layout) -> NearRows {
        let mut near = self.clone();
        for (entries, _) in
            near.slots.iter_mut().zip(sources).filter(|(_, (_, source))| *source == Source::State)
        {
            entries.of.iter_mut().for_each(|entry| *entry = layout.place(*entry));
        }
        near
    }
}

/// A compiled piece over near pairs.
pub(super) struct NearLoop {
    /// Outputs of a pair.
    pair: Box<dyn Kernel>,
    /// Positions of the first and the second member of the same number, the lengths and the reach.
    points: Box<dyn Kernel>,
    /// Start of the values that `points` computes once, after those of `pair`.
    split: usize,
    /// Parts, one for every list. With too many outputs the lists add to them one after the other.
    parts: Parts,
    is_divided: bool,
}

/// Arrays that pairs read.
pub(super) struct NearArrays<'a> {
    pub t: f64,
    pub x: &'a [f64],
    pub parameters: &'a [f64],
}

impl<'a> NearArrays<'a> {
    /// Array that slot k of a piece reads.
    fn of(&self, piece: &'a Piece, k: usize) -> &'a [f64] {
        match piece.slots[k].1 {
            Source::State => self.x,
            Source::Parameter => self.parameters,
            Source::Number => &piece.numbers,
        }
    }
}

impl NearLoop {
    /// Compile a piece by `backend`.
    pub fn new(
        piece: &Piece,
        near: &NearRows,
        parameters: usize,
        backend: &dyn Backend,
    ) -> NearLoop {
        let compile = |outputs: &[Node], all: &[Node]| {
            let tape = piece.tape_of(outputs, all, parameters);
            let kernel =
                backend.compile(&tape, LANES).or_else(|_| Interpreter.compile(&tape, LANES));
            kernel.expect("the interpreter never refuses")
        };
        let nodes = near.pairs.nodes();
        let (pair, points) =
            (compile(&piece.outputs, piece.all_outputs()), compile(&nodes, &nodes));
        // On a cache line of its own.
        let split = pair.bind(&vec![0.0; parameters]).len().next_multiple_of(LINE);
        let lanes = near.slots.len() + pair.outputs().max(points.outputs());
        let work =
            LINE + lanes * LANES + near.outputs.len() + pair.work_len().max(points.work_len());
        let members = near.pairs.which.members();
        let parts = Parts { count: near_parts(members), sums: piece.written(), work };
        let is_divided = parts.count > 1 && piece.whole_written() <= NEAR_OUTPUTS * members;
        NearLoop { pair, points, split, parts, is_divided }
    }

    /// True if threads share the sum.
    pub fn is_divided(&self) -> bool {
        self.is_divided
    }

    /// Scratch needed by [`NearLoop::run`], in numbers.
    pub fn work_len(&self) -> usize {
        if self.is_divided { self.parts.work_len() } else { self.parts.work }
    }

    /// Values that are computed from the parameters once.
    pub fn bind(&self, parameters: &[f64]) -> Aligned {
        let [pair, points] = [&self.pair, &self.points].map(|kernel| kernel.bind(parameters));
        let mut both = Aligned::zeros(self.split + points.len());
        both[..pair.len()].copy_from_slice(&pair);
        both[self.split..].copy_from_slice(&points);
        both
    }

    /// Add the contributions of all pairs.
    pub fn run(
        &self,
        piece: &Piece,
        near: &NearRows,
        bound: &[f64],
        arrays: &NearArrays<'_>,
        out: &mut [f64],
        work: &mut [f64],
    ) {
        let which = &near.pairs.which;
        let mut neighbours = which.take();
        neighbours.clear();
        self.each_point(piece, near, bound, arrays, work, &mut |first, values| {
            neighbours.put(&near.pairs, first, values, LANES);
        });
        let (cells, lists) = neighbours.update(near.pairs.dimensions(), self.parts.count);
        // The outputs that rows add to, in one array or in one of each part.
        let out = &mut out[self.parts.sums.clone()];
        let add = |list: &mut List, out: &mut [f64], work: &mut [f64]| {
            list.update(which, cells);
            self.add((piece, near), list, bound, arrays, out, work);
        };
        if self.is_divided {
            self.parts.run(lists, work, &add, |sums| {
                out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum)
            });
        } else {
            lists.iter_mut().for_each(|list| add(list, out, work));
        }
        which.give(neighbours);
    }

    /// Call `put` with the results of `points` for members that are computed side by side, with the
    /// first one's number.
    fn each_point(
        &self,
        piece: &Piece,
        near: &NearRows,
        bound: &[f64],
        arrays: &NearArrays<'_>,
        work: &mut [f64],
        put: &mut dyn FnMut(usize, &[f64]),
    ) {
        let start = first_aligned(work);
        let (x, work) = work[start..].split_at_mut(near.slots.len() * LANES);
        let (results, work) = work.split_at_mut(self.points.outputs() * LANES);
        let members = near.pairs.which.members();
        for first in (0..members).step_by(LANES) {
            for (k, (lanes, entries)) in x.chunks_exact_mut(LANES).zip(&near.slots).enumerate() {
                let array = arrays.of(piece, k);
                let member = |lane: usize| (first + lane).min(members - 1);
                lanes
                    .iter_mut()
                    .enumerate()
                    .for_each(|(lane, to)| *to = array[entries.of[member(lane)] as usize]);
            }
            self.points.run(&bound[self.split..], &[arrays.t; LANES], x, results, work);
            put(first, results);
        }
    }

    /// Add the contributions of the pairs of a list to the outputs that rows add to.
    fn add(
        &self,
        (piece, near): (&Piece, &NearRows),
        list: &List,
        bound: &[f64],
        arrays: &NearArrays<'_>,
        out: &mut [f64],
        work: &mut [f64],
    ) {
        let (start, origin) = (first_aligned(work), self.parts.sums.start);
        let (x, work) = work[start..].split_at_mut(near.slots.len() * LANES);
        let (results, work) = work.split_at_mut(self.pair.outputs() * LANES);
        let (own, work) = work.split_at_mut(near.outputs.len());
        for (first, partners) in list.each().filter(|(_, partners)| !partners.is_empty()) {
            for (k, (lanes, entries)) in x.chunks_exact_mut(LANES).zip(&near.slots).enumerate() {
                if entries.side != Side::Second {
                    lanes.fill(arrays.of(piece, k)[entries.of[first] as usize]);
                }
            }
            own.fill(0.0);
            for seconds in partners.chunks(LANES) {
                for (k, (lanes, entries)) in x.chunks_exact_mut(LANES).zip(&near.slots).enumerate()
                {
                    if entries.side == Side::Second {
                        let array = arrays.of(piece, k);
                        for (to, &second) in lanes.iter_mut().zip(seconds) {
                            *to = array[entries.of[second as usize] as usize];
                        }
                        // A copy of a real pair: its value is not used, and it causes no
                        // exceptional values of its own.
                        let copy = lanes[seconds.len() - 1];
                        lanes[seconds.len()..].fill(copy);
                    }
                }
                self.pair.run(bound, &[arrays.t; LANES], x, results, work);
                for ((own, values), entries) in
                    own.iter_mut().zip(results.chunks_exact(LANES)).zip(&near.outputs)
                {
                    if entries.side == Side::Second {
                        for (value, &second) in values.iter().zip(seconds) {
                            out[entries.of[second as usize] as usize - origin] += value;
                        }
                    } else {
                        values[..seconds.len()].iter().for_each(|value| *own += value);
                    }
                }
            }
            for (own, entries) in
                own.iter().zip(&near.outputs).filter(|(_, entries)| entries.side != Side::Second)
            {
                out[entries.of[first] as usize - origin] += own;
            }
        }
    }
}
