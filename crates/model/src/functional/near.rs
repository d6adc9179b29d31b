//! Sums over near pairs: the pairs of a term, and lists of the pairs that may be near.
//!
//! A term over pairs keeps a row for each *member*, not for each pair: row m has the entries of the
//! first body number m and of the second body number m, and a pair (i, j) reads the first from row
//! i and the second from row j. So the memory of a model is in proportion to its bodies.
//!
//! Near pairs are found by cells, with a margin, and a list serves until some body has moved by
//! half of the margin. It does not matter which pairs beyond the reach are in a list: they
//! contribute zeros, and sums are added in the order of the members' numbers. So no bit depends on
//! when a list was made, and no list has to be stored.

use crate::graph::aligned::Aligned;
use crate::graph::interpret::{Interpreter, Kernel, Program};
use crate::graph::tape::Tape;
use crate::graph::{Graph, Node};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Margin as a part of the reach. A wider one makes lists longer, a narrower one makes them more
/// often.
const MARGIN: f64 = 0.12;

/// Relative bound for rounding errors in distances.
const ROUNDED: f64 = 1e-9;

/// Largest number of cells per body, reached if bodies are far apart.
const CELLS: usize = 4;

/// Member of a pair that a number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first member.
    First,
    /// The second member.
    Second,
    /// Neither member: the number is the same for all pairs.
    Both,
}

/// Pairs of a term, with formulas in its graph.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// Member of a pair that the entries of each slot belong to.
    pub sides: Vec<Side>,
    /// Components of the first member's position, and of the second's.
    pub points: [Vec<Node>; 2],
    /// Lengths of the periodic box along these components; empty without a box.
    pub lengths: Vec<Node>,
    /// Distance from which on there are no terms.
    pub reach: Node,
    /// Pairs of members that the sum goes over, near or not.
    pub which: Arc<Which>,
}

impl Pairs {
    /// All formulas: positions, lengths, reach.
    pub fn nodes(&self) -> Vec<Node> {
        let [first, second] = &self.points;
        first.iter().chain(second).chain(&self.lengths).copied().chain([self.reach]).collect()
    }

    /// The pairs with `nodes`, formulas of another graph, in place of theirs.
    pub fn with_nodes(&self, nodes: &[Node]) -> Pairs {
        let (first, rest) = nodes.split_at(self.dimensions());
        let (second, rest) = rest.split_at(self.dimensions());
        let (lengths, reach) = rest.split_at(self.lengths.len());
        Pairs {
            points: [first.to_vec(), second.to_vec()],
            lengths: lengths.to_vec(),
            reach: reach[0],
            ..self.clone()
        }
    }

    /// Number of components of a position.
    pub fn dimensions(&self) -> usize {
        self.points[0].len()
    }
}

/// Pairs of members that a sum goes over, near or not.
pub struct Which {
    /// Range of second members for each first one: the first of them, and one past the last.
    partners: Vec<[u32; 2]>,
    /// Number of second members.
    seconds: usize,
    /// Values of the two indices at member 0 of each side.
    first_indices: [f64; 2],
    /// Condition on the indices; pairs for which it is false are left out.
    filter: Option<Filter>,
    /// Lists that are not in use.
    neighbours: Mutex<Vec<Neighbours>>,
}

struct Filter {
    program: Program,
    bound: Aligned,
}

impl fmt::Debug for Which {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Which")
            .field("firsts", &self.partners.len())
            .field("seconds", &self.seconds)
            .finish()
    }
}

impl Which {
    /// Pairs of members; `filter` is a condition on the two indices, which it reads as states.
    pub fn new(
        partners: Vec<[u32; 2]>,
        seconds: usize,
        first_indices: [f64; 2],
        filter: Option<(&Graph, Node)>,
    ) -> Which {
        let filter = filter.map(|(graph, node)| {
            let program = Interpreter.program(&Tape::new(graph, &[node], 2, 0));
            Filter { bound: program.bind(&[]), program }
        });
        Which { partners, seconds, first_indices, filter, neighbours: Mutex::default() }
    }

    /// Numbers of first and of second members.
    pub fn counts(&self) -> [usize; 2] {
        [self.partners.len(), self.seconds]
    }

    /// Number of rows of a term over these pairs.
    pub fn members(&self) -> usize {
        self.partners.len().max(self.seconds)
    }

    /// Number of pairs, including those that the filter leaves out.
    pub fn pairs(&self) -> usize {
        self.partners.iter().map(|[low, high]| (high - low) as usize).sum()
    }

    /// Calls `f` for every pair, near or not.
    pub fn each(&self, f: &mut dyn FnMut(usize, usize)) {
        let mut work = self.filter_work();
        for (i, &[low, high]) in self.partners.iter().enumerate() {
            for j in low as usize..high as usize {
                if self.admits(i, j, &mut work) {
                    f(i, j);
                }
            }
        }
    }

    fn filter_work(&self) -> Vec<f64> {
        vec![0.0; self.filter.as_ref().map_or(0, |filter| filter.program.work_len())]
    }

    fn admits(&self, i: usize, j: usize, work: &mut [f64]) -> bool {
        let Some(Filter { program, bound }) = &self.filter else { return true };
        let [first, second] = self.first_indices;
        let mut admitted = [0.0];
        program.run(bound, &[0.0], &[first + i as f64, second + j as f64], &mut admitted, work);
        admitted[0] != 0.0
    }

    /// Takes lists, possibly made for other positions.
    pub fn take(&self) -> Neighbours {
        // The stored lists are whole, even if a thread has panicked.
        self.neighbours.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Gives lists back.
    pub fn give(&self, neighbours: Neighbours) {
        self.neighbours.lock().unwrap_or_else(PoisonError::into_inner).push(neighbours);
    }
}

/// Positions of members, with lists of the pairs that may be near.
#[derive(Debug, Default)]
pub struct Neighbours {
    /// Current positions of first and of second members: component after component of each.
    pub now: [Vec<f64>; 2],
    /// Lengths of the box along each component; empty without a box.
    pub lengths: Vec<f64>,
    /// Distance from which on there are no terms.
    pub reach: f64,
    cells: Cells,
    lists: Vec<List>,
}

/// Positions for which lists are made, with the second members sorted into cells.
#[derive(Debug, Default)]
pub struct Cells {
    at: [Vec<f64>; 2],
    lengths: Vec<f64>,
    reach: f64,
    /// Bound for the distance of partners in lists: the reach with its margin.
    far: f64,
    dimensions: usize,
    axes: [Axis; 3],
    /// Second members of cell c are `seconds[starts[c]..starts[c + 1]]`, increasing.
    starts: Vec<u32>,
    seconds: Vec<u32>,
}

/// Pairs of some first members.
#[derive(Debug, Default)]
pub struct List {
    /// Number of the first of these members, and the step to the next.
    first: usize,
    step: usize,
    /// True if it was made for the current cells.
    is_made: bool,
    /// Partners of the k-th of these members are `partners[starts[k]..starts[k + 1]]`, increasing.
    starts: Vec<usize>,
    partners: Vec<u32>,
}

impl Neighbours {
    /// Removes the positions of the members.
    pub fn clear(&mut self) {
        self.now.iter_mut().for_each(Vec::clear);
    }

    /// Appends the values of [`Pairs::nodes`] for `lanes` members from `first` on, side by side;
    /// those past the last member are ignored.
    pub fn put(&mut self, pairs: &Pairs, first: usize, values: &[f64], lanes: usize) {
        let dimensions = pairs.dimensions();
        let (points, rest) = values.split_at(2 * dimensions * lanes);
        for ((now, count), points) in self
            .now
            .iter_mut()
            .zip(pairs.which.counts())
            .zip(points.chunks_exact(dimensions * lanes))
        {
            for lane in 0..lanes.min(count.saturating_sub(first)) {
                now.extend(points[lane..].iter().step_by(lanes));
            }
        }
        self.lengths.clear();
        self.lengths.extend(rest[..pairs.lengths.len() * lanes].iter().step_by(lanes));
        self.reach = rest[pairs.lengths.len() * lanes];
    }

    /// Returns the cells and `count` lists, each to be made by [`List::update`]: list k holds the
    /// partners of first member k and of every `count`-th after it. The same members need the same
    /// `count` always.
    pub fn update(&mut self, dimensions: usize, count: usize) -> (&Cells, &mut [List]) {
        let cells = &mut self.cells;
        let margin = MARGIN * self.reach * (1.0 - ROUNDED);
        let is_near = |now: &[f64], made: &[f64]| {
            let square: f64 = now.iter().zip(made).map(|(a, b)| (a - b) * (a - b)).sum();
            4.0 * square <= margin * margin
        };
        let serves = (0..2).all(|side| {
            let (now, made) = (&self.now[side], &cells.at[side]);
            now.len() == made.len()
                && now
                    .chunks_exact(dimensions)
                    .zip(made.chunks_exact(dimensions))
                    .all(|(a, b)| is_near(a, b))
        });
        if !(serves && cells.reach == self.reach && cells.lengths == self.lengths) {
            for (at, now) in cells.at.iter_mut().zip(&self.now) {
                at.clone_from(now);
            }
            cells.lengths.clone_from(&self.lengths);
            cells.reach = self.reach;
            cells.dimensions = dimensions;
            cells.sort();
            self.lists.resize_with(count, List::default);
            for (first, list) in self.lists.iter_mut().enumerate() {
                (list.first, list.step, list.is_made) = (first, count, false);
            }
        }
        (cells, &mut self.lists)
    }
}

impl Cells {
    /// Sorts the second members into their cells.
    fn sort(&mut self) {
        let Cells { at: [_, at], dimensions, .. } = self;
        let (dimensions, seconds) = (*dimensions, at.len() / *dimensions);
        self.far = self.reach * (1.0 + MARGIN);
        let most = ((CELLS * seconds) as f64).powf(1.0 / dimensions as f64) as i64 + 1;
        for (k, axis) in self.axes.iter_mut().enumerate().take(dimensions) {
            let along = at[k..].iter().step_by(dimensions).copied();
            *axis =
                Axis::new(along, self.lengths.get(k).copied(), self.far * (1.0 + ROUNDED), most);
        }
        let axes = &self.axes[..dimensions];
        let place = |at: &[f64]| {
            axes.iter().zip(at).fold(0, |place, (axis, &x)| {
                place * axis.count + axis.cell(x).clamp(0, axis.count - 1)
            })
        };
        let count: i64 = axes.iter().map(|axis| axis.count).product();
        self.starts.clear();
        self.starts.resize(count as usize + 2, 0);
        for at in at.chunks_exact(dimensions) {
            self.starts[place(at) as usize + 2] += 1;
        }
        (2..self.starts.len()).for_each(|cell| self.starts[cell] += self.starts[cell - 1]);
        self.seconds.clear();
        self.seconds.resize(seconds, 0);
        for (j, at) in (0..).zip(at.chunks_exact(dimensions)) {
            let next = &mut self.starts[place(at) as usize + 1];
            self.seconds[*next as usize] = j;
            *next += 1;
        }
    }
}

impl List {
    /// Makes the list if it was made for other cells.
    pub fn update(&mut self, which: &Which, cells: &Cells) {
        if std::mem::replace(&mut self.is_made, true) {
            return;
        }
        let &Cells {
            at: [ref firsts, ref seconds], ref lengths, far, dimensions, ref axes, ..
        } = cells;
        let mut work = which.filter_work();
        self.starts.clear();
        self.starts.push(0);
        self.partners.clear();
        for i in (self.first..which.counts()[0]).step_by(self.step) {
            let at = &firsts[i * dimensions..][..dimensions];
            let [low, high] = which.partners[i];
            let begin = self.partners.len();
            each_around(&axes[..dimensions], at, &mut |cell| {
                for &j in
                    &cells.seconds[cells.starts[cell] as usize..cells.starts[cell + 1] as usize]
                {
                    if (low..high).contains(&j) {
                        let other = &seconds[j as usize * dimensions..][..dimensions];
                        if square(at, other, lengths) < far * far
                            && which.admits(i, j as usize, &mut work)
                        {
                            self.partners.push(j);
                        }
                    }
                }
            });
            self.partners[begin..].sort_unstable();
            self.starts.push(self.partners.len());
        }
    }

    /// First members, each with the second members that may be near it, increasing.
    pub fn each(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let firsts = (self.first..).step_by(self.step);
        firsts
            .zip(self.starts.windows(2))
            .map(|(first, ends)| (first, &self.partners[ends[0]..ends[1]]))
    }
}

/// Square of the distance, in a periodic box to the nearest image.
fn square(a: &[f64], b: &[f64], lengths: &[f64]) -> f64 {
    /// Adding this rounds to an integer.
    const INTEGERS: f64 = 1.5 * (1u64 << 52) as f64;
    let mut sum = 0.0;
    for (k, (a, b)) in a.iter().zip(b).enumerate() {
        let mut d = a - b;
        if let Some(length) = lengths.get(k) {
            d -= length * ((d / length + INTEGERS) - INTEGERS);
        }
        sum += d * d;
    }
    sum
}

/// Cells along a component.
#[derive(Clone, Copy, Debug, Default)]
struct Axis {
    low: f64,
    /// Number of cells per unit of length.
    scale: f64,
    count: i64,
    is_periodic: bool,
}

impl Axis {
    /// Cells at least `width` wide, over the range of some numbers or around a periodic box.
    fn new(along: impl Iterator<Item = f64>, length: Option<f64>, width: f64, most: i64) -> Axis {
        let (low, extent) = match length {
            Some(length) => (0.0, length),
            None => {
                let (low, high) = along
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                        (low.min(x), high.max(x))
                    });
                (low, high - low)
            }
        };
        let is_periodic = length.is_some();
        let count = ((extent / width) as i64).clamp(1, most);
        // Of fewer cells around a box some would be neighbours from both sides.
        let count = if is_periodic && count < 3 { 1 } else { count };
        Axis { low, scale: count as f64 / extent, count, is_periodic }
    }

    /// Cell of a coordinate; outside of `0..count` if the coordinate is beyond the others.
    fn cell(&self, x: f64) -> i64 {
        if self.count == 1 {
            return 0;
        }
        let cell = ((x - self.low) * self.scale).floor();
        if self.is_periodic { (cell as i64).rem_euclid(self.count) } else { cell as i64 }
    }
}

/// Calls `f` for the cell at a position and for those around it.
fn each_around(axes: &[Axis], at: &[f64], f: &mut dyn FnMut(usize)) {
    fn descend(axes: &[Axis], at: &[f64], place: i64, f: &mut dyn FnMut(usize)) {
        let ([axis, axes @ ..], [x, at @ ..]) = (axes, at) else { return f(place as usize) };
        if axis.count == 1 {
            return descend(axes, at, place, f);
        }
        let cell = axis.cell(*x);
        for near in cell.saturating_sub(1)..=cell.saturating_add(1) {
            let near = if axis.is_periodic { near.rem_euclid(axis.count) } else { near };
            if (0..axis.count).contains(&near) {
                descend(axes, at, place * axis.count + near, f);
            }
        }
    }
    descend(axes, at, 0, f);
}
