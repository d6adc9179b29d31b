//! Stages of a collocation method as formulas: the start of the iteration, an iteration, and the
//! result of a step.
//!
//! In a run by itself the stages are the lanes of one vector. In an ensemble the trajectories are
//! the lanes, and the stages are numbers apart. Both give the same bits.

use crate::kernels::formula::Formula;
use crate::kernels::march::{larger, largest_of, least};
use crate::kernels::vectors::StateVectors;
use crate::kernels::whole_step::squares;
use holonome_integrate::fixed_point::{
    Iterated, ROUNDING, SETTLED, UNEXPLAINED, before_last, of_error,
};
use holonome_integrate::scales::{FAMILY_FLOOR, Vectors};
use holonome_integrate::scheme::collocation::Collocation;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Node};
use std::ops::Range;

/// Places of a step's numbers. A kernel changes the numbers up to some place.
#[derive(Clone)]
pub(super) struct Places {
    /// Stages; after the step x₁ is at the first of them.
    pub stages: Range<usize>,
    /// Field at the stages, or increments, without the components that follow from the others;
    /// after the step the estimate of its error is at the first of them.
    pub field: Range<usize>,
    /// Numbers of [`Iterated`]: the change, the two before, the first one, their count. After the
    /// step [`Measures`] take the places of the two before and of the count.
    pub iterated: usize,
    /// Not 0 in lanes whose iteration goes on; empty if the stages are lanes.
    pub going: Range<usize>,
    /// 1/S² of every vector.
    pub scales: Range<usize>,
    /// Numbers of [`Memory`]: largest squares, coefficients W, rounding losses, length.
    ///
    /// [`Memory`]: holonome_integrate::fixed_point::Memory
    pub sizes: Range<usize>,
    pub w: Range<usize>,
    pub lost: Range<usize>,
    /// Not 0 after a step that has moved a vector without a scale.
    pub moved: usize,
    /// Iterations and steps whose iteration has converged, which every finished attempt counts;
    /// then W and rounding losses that it leaves. Only if the stages are lanes: apart they are
    /// results.
    pub counts: Range<usize>,
    pub left: Range<usize>,
    pub length: usize,
    /// End of the step of the polynomial, as its argument; then the numbers of [`Stop`].
    ///
    /// [`Stop`]: holonome_integrate::fixed_point::Stop
    pub from: usize,
    pub stop: usize,
    /// Start t and length h of the step. If the stages are lanes, these, x and `fresh` are in the
    /// first one only; so is the length of the step before in a loop of attempts.
    pub t: usize,
    pub h: usize,
    pub x: Range<usize>,
    /// Not 0 if the step goes on from what the one before has left, which has not replaced W yet;
    /// only in lanes.
    pub fresh: Range<usize>,
}

impl Places {
    pub fn new(stages: StageNodes, vectors: &Vectors) -> Places {
        let (n, count, width) = (vectors.dim(), vectors.count(), stages.width());
        let of_lanes = |len: usize| if stages.apart { 0 } else { len };
        let mut end = 0;
        let mut take = |len: usize| {
            end += len;
            end - len..end
        };
        Places {
            stages: take(n * width),
            field: take(n * width),
            iterated: take(5).start,
            going: take(usize::from(stages.apart)),
            scales: take(count),
            sizes: take(count),
            w: take(n * width),
            lost: take(n),
            moved: take(1).start,
            counts: take(of_lanes(2)),
            left: take(of_lanes(n * (width + 1))),
            length: take(1).start,
            from: take(1).start,
            stop: take(4).start,
            t: take(1).start,
            h: take(1).start,
            x: take(n),
            fresh: take(of_lanes(1)),
        }
    }

    /// Number of the places.
    pub fn count(&self) -> usize {
        self.fresh.end
    }
}

/// Numbers of a step as nodes. A number that differs from stage to stage is one node whose lanes
/// are the stages, or a node for each stage.
#[derive(Clone, Copy)]
pub(super) struct StageNodes {
    pub collocation: &'static Collocation,
    /// True if there is a node for each stage.
    pub apart: bool,
    /// True if sums are of increments; see [`Collocation::of_increments`].
    pub of_increments: bool,
}

impl StageNodes {
    /// Number of nodes of a number that differs from stage to stage.
    pub fn width(self) -> usize {
        if self.apart { self.collocation.stages } else { 1 }
    }

    /// Value at stage j, in all lanes if the stages are lanes.
    fn stage(self, g: &mut Graph, value: &[Node], j: usize) -> Node {
        if self.apart { value[j] } else { g.spread(value[0], j as u8) }
    }

    /// Number that is the same at all stages.
    fn single(self, g: &mut Graph, place: usize) -> Node {
        let number = g.state(place);
        if self.apart { number } else { g.spread(number, 0) }
    }

    /// Numbers at these places, each the same at all stages.
    fn singles(self, g: &mut Graph, range: &Range<usize>) -> Vec<Node> {
        range.clone().map(|place| self.single(g, place)).collect()
    }

    /// Numbers at these places, each different from stage to stage.
    fn staged(self, g: &mut Graph, range: &Range<usize>) -> Vec<Vec<Node>> {
        let all: Vec<Node> = states(g, range);
        all.chunks_exact(self.width()).map(<[Node]>::to_vec).collect()
    }

    /// Row k of a table; in lanes row k is that of lane k, as parameters from number `first` on.
    fn row(self, g: &mut Graph, table: &[Vec<f64>], first: usize, k: usize) -> Vec<Node> {
        let column = |g: &mut Graph, j: usize| match self.apart {
            true => g.constant(table[k][j]),
            false => g.parameter(first + j),
        };
        (0..self.collocation.stages).map(|j| column(g, j)).collect()
    }

    /// Node c_k; in lanes parameter number `first`.
    fn node(self, g: &mut Graph, first: usize, k: usize) -> Node {
        if self.apart { g.constant(self.collocation.nodes[k]) } else { g.parameter(first) }
    }

    /// Parts h b of a step; in lanes from parameter number `first`.
    fn parts(self, g: &mut Graph, h: Node, first: usize) -> Vec<Node> {
        let part = |k: usize| {
            let weight = if self.apart {
                g.constant(self.collocation.weights[k])
            } else {
                g.parameter(first)
            };
            g.mul(h, weight)
        };
        (0..self.width()).map(part).collect()
    }

    /// Terms of the sums at stage k: the field, or increments. `parts` are h b.
    fn terms(self, g: &mut Graph, parts: &[Node], k: usize, field: Vec<Node>) -> Vec<Node> {
        if self.of_increments {
            field.into_iter().map(|field| g.mul(parts[k], field)).collect()
        } else {
            field
        }
    }

    /// y + the sum, times h if it is of the field.
    fn advance(self, g: &mut Graph, h: Node, sum: Node, y: Node) -> Node {
        if self.of_increments { g.add(sum, y) } else { g.fma(h, sum, y) }
    }

    /// Σ_j w_j f_j over stages j, in the order of the slices.
    fn sum(self, g: &mut Graph, weights: &[Node], f: &[Node]) -> Node {
        let mut sums = [g.zero(); 2];
        for (j, &weight) in weights.iter().enumerate() {
            let f = self.stage(g, f, j);
            sums[j % 2] = if j < 2 { g.mul(weight, f) } else { g.fma(weight, f, sums[j % 2]) };
        }
        g.add(sums[0], sums[1])
    }

    /// Nodes of stage k of all these numbers.
    fn of_stage(self, numbers: &[Vec<Node>], k: usize) -> Vec<Node> {
        numbers.iter().map(|number| number[k]).collect()
    }
}

/// Nodes at these places.
pub(super) fn states(g: &mut Graph, range: &Range<usize>) -> Vec<Node> {
    range.clone().map(|k| g.state(k)).collect()
}

/// Tape of the iteration's start: x + Σ W_k reach_k (see [`Collocation::reach`]), the scales of the
/// vectors, no iterations. In lanes W and the rounding losses are first replaced by those that the
/// step before has left, if it has.
pub(super) fn start(of: StageNodes, at: &Places, vectors: &Vectors) -> Tape {
    let (g, s) = (&mut Graph::new(), of.collocation.stages);
    let (x, mut w, mut lost) = (of.singles(g, &at.x), of.staged(g, &at.w), states(g, &at.lost));
    if let Some(fresh) = at.fresh.clone().next() {
        let (fresh, none) = (of.single(g, fresh), g.zero());
        let is_fresh = g.binary(Binary::Less, none, fresh);
        let left = states(g, &at.left);
        for (number, left) in w.iter_mut().flatten().chain(&mut lost).zip(left) {
            *number = g.select(is_fresh, left, *number);
        }
    }
    let [h, length] = [at.h, at.length].map(|k| of.single(g, k));
    let [base, decayed] = [at.from, at.stop + 3].map(|k| g.state(k));
    let (ratio, two) = (g.div(h, length), g.constant(2.0));
    let reaches: Vec<Vec<Node>> = (0..of.width())
        .map(|stage| {
            let node = of.node(g, 0, stage);
            let mut reach = Vec::with_capacity(s);
            let part = g.mul(ratio, node);
            reach.push(g.mul(length, part));
            let twice = g.mul(two, ratio);
            let argument = g.fma(twice, node, base);
            let (mut before, mut now) = (g.one(), argument);
            for k in 1..s {
                let k = k as f64;
                let [up, down, part] =
                    [(2.0 * k + 1.0) / (k + 1.0), -k / (k + 1.0), 1.0 / (4.0 * k + 2.0)]
                        .map(|number| g.constant(number));
                let (above, below) = (g.mul(up, argument), g.mul(down, before));
                let next = g.fma(above, now, below);
                let difference = g.sub(next, before);
                let part = g.mul(part, length);
                reach.push(g.mul(part, difference));
                (before, now) = (now, next);
            }
            reach
        })
        .collect();
    let mut outputs = Vec::with_capacity(at.w.start);
    for (&x, w) in x.iter().zip(&w) {
        for reach in &reaches {
            let moved = of.sum(g, reach, w);
            outputs.push(g.add(x, moved));
        }
    }
    outputs.extend(states(g, &at.field));
    let Iterated { count, change, before: [last, older], first } = Iterated::NONE;
    outputs.extend([change, last, older, first, f64::from(count)].map(|number| g.constant(number)));
    if of.apart {
        outputs.push(g.one());
    }

    let square_of_length = g.mul(length, length);
    let of_x = squares(g, &x, vectors);
    let by_stage: Vec<Vec<Node>> =
        (0..of.width()).map(|k| squares(g, &of.of_stage(&w, k), vectors)).collect();
    let ones = vec![g.one(); s];
    let (mut sizes, mut scales) = (Vec::new(), Vec::new());
    for (vector, &of_x) in of_x.iter().enumerate() {
        let of_w: Vec<Node> = by_stage.iter().map(|squares| squares[vector]).collect();
        let (size, moves) = (g.state(at.sizes.start + vector), of.sum(g, &ones, &of_w));
        let size = larger(g, size, of_x);
        let scale = g.fma(square_of_length, moves, of_x);
        let least = g.mul(decayed, size);
        sizes.push(size);
        scales.push(larger(g, scale, least));
    }
    let (floor, smallest) = (g.constant(FAMILY_FLOOR), g.constant(f64::MIN_POSITIVE));
    for family in vectors.families() {
        let scales = &mut scales[family.vectors.clone()];
        let most =
            scales.iter().copied().reduce(|a, b| larger(g, a, b)).expect("a family has members");
        let floor = g.mul(floor, most);
        for scale in scales {
            let square = if family.vectors.len() > 1 { larger(g, *scale, floor) } else { *scale };
            let (one, none) = (g.one(), g.zero());
            let inverse = g.div(one, square);
            let counts = g.binary(Binary::LessEqual, smallest, square);
            *scale = g.select(counts, inverse, none);
        }
    }
    outputs.extend([scales, sizes].concat());
    if !of.apart {
        outputs.extend(w.into_iter().flatten().chain(lost));
    }
    Tape::of_fused(g, &outputs, at.count(), usize::from(!of.apart))
}

/// Tape of an iteration, X = x + h A F(X). Components that depend on the others alone take the
/// others' new values. Where F is linear in these, they are x + h c F(x) + h² A² F(F), which does
/// not wait for the new values; not so in sums of increments, because the rounded c and A² are not
/// symplectic. The field of these components is not kept. In lanes the parameters after those of
/// the field are the rows of A and A², the node and its weight; apart, nothing changes in a lane
/// whose iteration has ended.
pub(super) fn iteration(
    of: StageNodes,
    at: &Places,
    field: &Formula,
    vectors: &StateVectors,
    parameters: usize,
) -> Tape {
    let (n, s) = (vectors.vectors.dim(), of.collocation.stages);
    let (later, linear) = (field.independent_roots(), field.linear_roots());
    let g = &mut Graph::new();
    let (stages, x, scales) =
        (of.staged(g, &at.stages), of.singles(g, &at.x), states(g, &at.scales));
    let numbers = states(g, &(at.iterated..at.iterated + 5));
    let [last, older, first, count] = [0, 1, 3, 4].map(|k| numbers[k]);
    let [h, t] = [at.h, at.t].map(|k| of.single(g, k));
    let stop = [0, 1, 2].map(|k| g.state(at.stop + k));
    let square = g.mul(h, h);
    let nodes: Vec<Node> = (0..of.width()).map(|k| of.node(g, parameters + 2 * s, k)).collect();
    let times: Vec<Node> = nodes.iter().map(|&node| g.fma(node, h, t)).collect();
    let parts = of.parts(g, h, parameters + 2 * s + 1);
    let at_stages = |g: &mut Graph, states: &dyn Fn(usize) -> Vec<Node>| {
        let of_stage = |k: usize| {
            let field = field.at(g, times[k], &states(k));
            of.terms(g, &parts, k, field)
        };
        let fields: Vec<Vec<Node>> = (0..of.width()).map(of_stage).collect();
        (0..n).map(|i| fields.iter().map(|field| field[i]).collect()).collect::<Vec<Vec<Node>>>()
    };
    let (sums, double_sums) =
        (&of.collocation.sums(of.of_increments).stages, &of.collocation.double_sums);
    let mut next = stages.clone();
    let slopes = at_stages(g, &|k| of.of_stage(&stages, k));
    for i in (0..n).filter(|&i| !later[i]) {
        for k in 0..of.width() {
            let weights = of.row(g, sums, parameters, k);
            let sum = of.sum(g, &weights, &slopes[i]);
            next[i][k] = of.advance(g, h, sum, x[i]);
        }
    }
    if later.contains(&true) {
        let of_next = at_stages(g, &|k| of.of_stage(&next, k));
        let of_x = at_stages(g, &|_| x.clone());
        let of_slopes = at_stages(g, &|k| of.of_stage(&slopes, k));
        for i in (0..n).filter(|&i| later[i]) {
            for k in 0..of.width() {
                next[i][k] = if linear[i] && !of.of_increments {
                    let part = g.mul(nodes[k], h);
                    let weights = of.row(g, double_sums, parameters + s, k);
                    let (straight, bent) =
                        (g.fma(part, of_x[i][k], x[i]), of.sum(g, &weights, &of_slopes[i]));
                    g.fma(square, bent, straight)
                } else {
                    let weights = of.row(g, sums, parameters, k);
                    let sum = of.sum(g, &weights, &of_next[i]);
                    of.advance(g, h, sum, x[i])
                };
            }
        }
    }

    // The change, also of what follows from the rest: what a light body's momentum does shows in
    // its position.
    let moved: Vec<Node> = (0..of.width())
        .map(|k| {
            let changes: Vec<Node> = (0..n).map(|i| g.sub(next[i][k], stages[i][k])).collect();
            let mut moved = g.zero();
            for (&square, &scale) in squares(g, &changes, &vectors.vectors).iter().zip(&scales) {
                moved = g.fma(scale, square, moved);
            }
            g.unary(Unary::Abs, moved)
        })
        .collect();
    let changes = (0..s).map(|k| of.stage(g, &moved, k)).collect();
    let change = largest_of(g, changes);
    let (one, none) = (g.one(), g.zero());
    let is_first = g.binary(Binary::Equal, count, none);
    let first = g.select(is_first, change, first);
    let count = g.add(count, one);
    let before = g.largest(last, older);
    let goes_on = goes_on(g, (count, change, before, first), stop);
    let fields = of.staged(g, &at.field);
    let kept = slopes.iter().zip(&fields).zip(&later);
    let kept: Vec<Node> = kept
        .flat_map(|((slope, before), &later)| if later { before } else { slope })
        .copied()
        .collect();
    let outputs = [&next.concat()[..], &kept, &[change, last, older, first, count]].concat();
    if !of.apart {
        return Tape::of_loop(g, &outputs, goes_on, at.count(), parameters + 2 * s + 2);
    }
    let going = g.state(at.going.start);
    let goes = g.binary(Binary::Less, none, going);
    let before = [stages.concat(), fields.concat(), numbers].concat();
    let mut outputs: Vec<Node> = outputs
        .iter()
        .zip(&before)
        .map(|(&after, &before)| g.select(goes, after, before))
        .collect();
    let goes_on = g.binary(Binary::And, goes, goes_on);
    outputs.push(g.select(goes_on, one, none));
    Tape::of_fused(g, &outputs, at.count(), parameters)
}

/// [`Iterated::goes_on`] as a formula, without the limit on iterations, which the loop counts.
/// Changes not made yet are infinite, so that no test of contraction fails by them; a first change
/// that is too far ends the iteration.
fn goes_on(
    g: &mut Graph,
    (count, change, before, first): (Node, Node, Node, Node),
    [enough, too_far, contraction]: [Node; 3],
) -> Node {
    let (settled, rounding) = (g.constant(f64::from(SETTLED)), g.constant(ROUNDING));
    let part = g.mul(contraction, before);
    let more = g.binary(Binary::Less, enough, change);
    let far = g.binary(Binary::Less, too_far, first);
    let rounds = g.binary(Binary::LessEqual, change, rounding);
    let stays = g.binary(Binary::LessEqual, before, change);
    let stays = g.binary(Binary::And, rounds, stays);
    let (slow, late) =
        (g.binary(Binary::Less, part, change), g.binary(Binary::LessEqual, settled, count));
    let does_not = g.unary(Unary::Not, rounds);
    let grows = [slow, late].into_iter().fold(does_not, |all, one| g.binary(Binary::And, all, one));
    [far, stays, grows].into_iter().fold(more, |goes_on, ends| {
        let not = g.unary(Unary::Not, ends);
        g.binary(Binary::And, goes_on, not)
    })
}

/// Numbers that differ from one end of a step to the other, or from lane to lane.
struct End {
    /// −1 at the start of the step, 1 at its end.
    sign: Node,
    t: Node,
    x: Vec<Node>,
}

/// Tape of the results of the stages, as in [`Stages::finish`], with [`Measures`] in place of what
/// follows from them. In lanes the parameters after those of the field are the row of W, the node
/// and its weight, and the end of the step at which the lane evaluates the field; the outputs take
/// the places of what they replace, and where the iteration has not converged, x₁ is x and the
/// estimate infinite. Apart they are x₁, the estimate, the measures, whether a vector without a
/// scale has moved, W, and what rounding has lost.
///
/// [`Stages::finish`]: holonome_integrate::fixed_point::Stages::finish
pub(super) fn finish(
    of: StageNodes,
    at: &Places,
    field: &Formula,
    vectors: &Vectors,
    (parameters, looks_at_ends): (usize, bool),
) -> Tape {
    let (g, s) = (&mut Graph::new(), of.collocation.stages);
    let (x, [h, t]) = (of.singles(g, &at.x), [at.h, at.t].map(|k| of.single(g, k)));
    let (stages, lost, scales) =
        (of.staged(g, &at.stages), states(g, &at.lost), states(g, &at.scales));
    let parts = of.parts(g, h, parameters + s + 1);
    // The field of components that follow from the others was not kept.
    let found: Vec<Vec<Node>> = (0..of.width())
        .map(|k| {
            let node = of.node(g, parameters + s, k);
            let time = g.fma(node, h, t);
            let field = field.at(g, time, &of.of_stage(&stages, k));
            of.terms(g, &parts, k, field)
        })
        .collect();
    let (mut slopes, later) = (of.staged(g, &at.field), field.independent_roots());
    for (i, slope) in slopes.iter_mut().enumerate().filter(|(i, _)| later[*i]) {
        *slope = found.iter().map(|found| found[i]).collect();
    }
    let (zero, one) = (g.zero(), g.one());
    let (mut all_w, mut all_x1, mut all_lost) = (Vec::new(), Vec::new(), Vec::new());
    let (mut error, mut earlier, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for ((slope, &x), &lost) in slopes.iter().zip(&x).zip(&lost) {
        let sums: Vec<Node> = (0..of.width())
            .map(|k| {
                let weights =
                    of.row(g, &of.collocation.sums(of.of_increments).coefficients, parameters, k);
                of.sum(g, &weights, slope)
            })
            .collect();
        let w: Vec<Node> = match of.of_increments {
            true => sums.iter().map(|&sum| g.div(sum, h)).collect(),
            false => sums.clone(),
        };
        // The last two coefficients: one alone vanishes by accident.
        let [last, before] = [s - 2..s, before_last(s)].map(|range| {
            let sizes = range.map(|k| {
                let w = of.stage(g, &w, k);
                g.unary(Unary::Abs, w)
            });
            sizes
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .reduce(|a, b| g.add(a, b))
                .expect("there are some")
        });
        error.push(last);
        earlier.push(before);
        // By compensated summation (HLW VIII.5).
        let (sum, mean) = (of.stage(g, &sums, 0), of.stage(g, &w, 0));
        let increment = of.advance(g, h, sum, lost);
        let x1 = g.add(x, increment);
        let moved = g.sub(x1, x);
        all_x1.push(x1);
        all_lost.push(g.sub(increment, moved));
        let mean = g.unary(Unary::Abs, mean);
        sizes.push(g.add(mean, error[error.len() - 1]));
        all_w.push(w);
    }
    // No node is at an end: what is before the first one and behind the last one shows there alone.
    let infinity = g.constant(f64::INFINITY);
    let t1 = g.add(t, h);
    let ends = if of.apart {
        let minus = g.constant(-1.0);
        vec![End { sign: minus, t, x: x.clone() }, End { sign: one, t: t1, x: all_x1.clone() }]
    } else {
        // One lane is at the start, the others are at the end.
        let sign = g.parameter(parameters + s + 2);
        let is_start = g.binary(Binary::Less, sign, zero);
        let x = x.iter().zip(&all_x1).map(|(&x, &x1)| g.select(is_start, x, x1)).collect();
        vec![End { sign, t: g.select(is_start, t, t1), x }]
    };
    let found: Vec<Vec<Node>> = match looks_at_ends {
        true => ends.iter().map(|end| field.at(g, end.t, &end.x)).collect(),
        false => Vec::new(),
    };
    let seen = error.clone();
    let mut unseen = Vec::new();
    for (i, error) in error.iter_mut().enumerate().filter(|_| looks_at_ends) {
        let parts: Vec<Node> = (0..s).map(|k| of.stage(g, &all_w[i], k)).collect();
        let missed: Vec<Node> = ends
            .iter()
            .zip(&found)
            .map(|(end, found)| {
                let polynomial = parts
                    .iter()
                    .copied()
                    .rev()
                    .reduce(|sum, w| g.fma(end.sign, sum, w))
                    .unwrap_or(zero);
                let missed = g.sub(found[i], polynomial);
                g.unary(Unary::Abs, missed)
            })
            .collect();
        let [start, end] = [0, 1].map(|end| of.stage(g, &missed, end));
        // Where the field is undefined, no error is small enough.
        let missed = larger(g, end, start);
        let is_number = g.binary(Binary::LessEqual, missed, infinity);
        let missed = g.select(is_number, missed, infinity);
        unseen.push(missed);
        *error = larger(g, *error, missed);
    }
    let measured = |g: &mut Graph, of: &[Node]| {
        let squares = squares(g, of, vectors);
        scales.iter().zip(&squares).fold(zero, |sum, (&scale, &square)| g.fma(scale, square, sum))
    };
    let [last, before] = [&error, &earlier].map(|of| measured(g, of));
    // What is missed at the ends beyond what the coefficients that are left out explain.
    let mut hidden = zero;
    if looks_at_ends {
        let [seen, unseen] = [&seen, &unseen].map(|of| measured(g, of));
        let unexplained = g.constant(UNEXPLAINED);
        let (seen, decreased) = (g.mul(seen, seen), g.mul(unseen, before));
        let most = g.mul(unexplained, seen);
        let is_more = g.binary(Binary::Less, most, decreased);
        hidden = g.select(is_more, unseen, zero);
    }
    // True if a vector without a scale has moved.
    let mut any_moved = zero;
    for (vector, &scale) in scales.iter().enumerate() {
        let all = vectors
            .components_of(vector)
            .map(|i| sizes[i])
            .reduce(|a, b| g.add(a, b))
            .unwrap_or(zero);
        let (without, moves) =
            (g.binary(Binary::Equal, scale, zero), g.binary(Binary::Less, zero, all));
        let moved = g.binary(Binary::And, without, moves);
        any_moved = if vector == 0 { moved } else { g.binary(Binary::Or, any_moved, moved) };
    }
    let [change, first, too_far] = [at.iterated, at.iterated + 3, at.stop + 1].map(|k| g.state(k));
    if of.apart {
        let measures = [change, last, before, first, hidden, too_far, h].to_vec();
        let moved = g.select(any_moved, one, zero);
        let outputs = [all_x1, error, measures, vec![moved], all_w.concat(), all_lost].concat();
        return Tape::of_fused(g, &outputs, at.count(), parameters);
    }
    // As `Iterated::converged`.
    let [enough, rounding] = [g.state(at.stop), g.constant(ROUNDING)];
    let enough = larger(g, rounding, enough);
    let found = g.binary(Binary::LessEqual, change, enough);
    for (x1, &x) in all_x1.iter_mut().zip(&x) {
        *x1 = g.select(found, *x1, x);
    }
    error.iter_mut().for_each(|error| *error = g.select(found, *error, infinity));
    let [last, before, hidden] =
        [last, before, hidden].map(|measure| g.select(found, measure, zero));
    let moved = g.binary(Binary::And, found, any_moved);
    let [iterations, steps, count] =
        [at.counts.start, at.counts.start + 1, at.iterated + 4].map(|k| g.state(k));
    let (counted, iterations) = (g.select(found, one, zero), g.add(iterations, count));
    let counts = vec![moved, iterations, g.add(steps, counted)];
    let kept = states(g, &(at.scales.start..at.moved));
    let measures = vec![change, last, before, first, hidden];
    let outputs = [all_x1, error, measures, kept, counts, all_w.concat(), all_lost].concat();
    Tape::of_fused(g, &outputs, at.count(), parameters + s + 3)
}

/// Numbers of a finished step from which its allowance follows; see
/// [`Allowance`](holonome_integrate::scheme::map::Allowance).
pub(super) struct Measures {
    /// Last change of the iteration.
    pub change: Node,
    /// Squares of the last coefficients and of those before, relative to the scales.
    last: Node,
    before: Node,
    /// First change of the iteration.
    first: Node,
    /// Square of what the polynomial misses at the ends without a sign of it in its coefficients,
    /// or 0.
    hidden: Node,
    /// First change that is too far.
    too_far: Node,
    h: Node,
}

impl Measures {
    /// Number of the measures.
    pub const COUNT: usize = 7;

    /// Places of the measures among the numbers of a step whose stages are lanes.
    pub fn places(at: &Places) -> [usize; Measures::COUNT] {
        let of_iteration = at.iterated;
        [
            of_iteration,
            of_iteration + 1,
            of_iteration + 2,
            of_iteration + 3,
            of_iteration + 4,
            at.stop + 1,
            at.h,
        ]
    }

    /// Measures at these places, in that order.
    pub fn at(g: &mut Graph, places: [usize; Measures::COUNT]) -> Measures {
        let [change, last, before, first, hidden, too_far, h] = places.map(|place| g.state(place));
        Measures { change, last, before, first, hidden, too_far, h }
    }

    /// Factor of the estimate in step-size control: with it the estimate is at least as large as
    /// the first change of the iteration demands, which alone causes `most` at most, and no smaller
    /// than what the ends show.
    pub fn factor(
        &self,
        g: &mut Graph,
        collocation: &Collocation,
        vectors: &Vectors,
        most: Node,
    ) -> Node {
        let (zero, one) = (g.zero(), g.one());
        let mean = g.constant(1.0 / vectors.count().max(1) as f64);
        let of_last = g.mul(mean, self.last);
        let root = g.sqrt(of_last);
        let norm = g.mul(self.h, root);
        // As large as it has to be for the first change of the iteration, but no larger than what
        // is accepted; and where coefficients hardly decrease, at a kink or at a wall, as large as
        // the last would be of those that do.
        let part = g.div(self.first, self.too_far);
        let part = least(g, part, one);
        let part = g.sqrt(part);
        let by_change = g.mul(most, part);
        let decrease = g.div(self.last, self.before);
        let (decrease, root) = (least(g, decrease, one), g.sqrt(norm));
        let by_decrease = g.mul(decrease, root);
        let wanted = larger(g, by_change, by_decrease);
        let (factor, power) = of_error(collocation);
        let (node, [tiny, biggest]) = (
            g.constant(collocation.nodes[0]),
            [f64::MIN_POSITIVE, f64::MAX].map(|x| g.constant(x)),
        );
        let reach = g.mul(self.h, node);
        let square = g.mul(reach, reach);
        let square = g.mul(square, mean);
        let left = g.mul(square, self.hidden);
        let left = least(g, left, biggest);
        let left = larger(g, left, tiny);
        let (exponent, factor) = (g.constant(0.5 * power), g.constant(factor));
        let left = g.rough_power(left, exponent);
        let left = g.mul(factor, left);
        let is_hidden = g.binary(Binary::Less, zero, self.hidden);
        let left = g.select(is_hidden, left, zero);
        let wanted = larger(g, wanted, left);
        let counts = g.binary(Binary::Less, zero, norm);
        let wants_more = g.binary(Binary::Less, norm, wanted);
        let counts = g.binary(Binary::And, counts, wants_more);
        let factor = g.div(wanted, norm);
        g.select(counts, factor, one)
    }
}

/// Tape of [`Measures::factor`], in place of the first of the measures. The parameter is the
/// largest estimate that the iteration's first change may cause.
pub(super) fn factor(collocation: &Collocation, vectors: &Vectors) -> Tape {
    let g = &mut Graph::new();
    let most = g.parameter(0);
    let measures = Measures::at(g, std::array::from_fn(|k| k));
    let factor = measures.factor(g, collocation, vectors, most);
    Tape::of_fused(g, &[factor], Measures::COUNT, 1)
}
