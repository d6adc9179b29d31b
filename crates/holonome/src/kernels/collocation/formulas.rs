//! Stages of a collocation method as formulas: the start of the iteration, an iteration, and the
//! result of a step.
//!
//! In a run by itself the stages are the lanes of one vector. In an ensemble the trajectories are
//! the lanes, and the stages are numbers apart. Both give the same bits.

use crate::kernels::formula::Formula;
use crate::kernels::vectors::StateVectors;
use holonome_arithmetic::{Real, in_pairs, products, square};
use holonome_integrate::fixed_point::rules::{
    self, hidden, last_sizes, measured, missed, missed_at_ends, moves, summed,
};
use holonome_integrate::fixed_point::{Iterated, Stop};
use holonome_integrate::scales::Vectors;
use holonome_integrate::scheme::collocation::{Collocation, reach};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::value::{Recording, Truth, Value};
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
    fn stage<'r>(self, value: &[Value<'r>], j: usize) -> Value<'r> {
        if self.apart { value[j] } else { value[0].spread(j as u8) }
    }

    /// Number that is the same at all stages.
    fn single(self, r: &Recording, place: usize) -> Value<'_> {
        let number = r.state(place);
        if self.apart { number } else { number.spread(0) }
    }

    /// Numbers at these places, each the same at all stages.
    fn singles<'r>(self, r: &'r Recording, range: &Range<usize>) -> Vec<Value<'r>> {
        range.clone().map(|place| self.single(r, place)).collect()
    }

    /// Numbers at these places, each different from stage to stage.
    fn staged<'r>(self, r: &'r Recording, range: &Range<usize>) -> Staged<'r> {
        r.states(range.clone()).chunks_exact(self.width()).map(<[Value]>::to_vec).collect()
    }

    /// Row k of a table; in lanes row k is that of lane k, as parameters from number `first` on.
    fn row<'r>(
        self,
        r: &'r Recording,
        table: &[Vec<f64>],
        first: usize,
        k: usize,
    ) -> Vec<Value<'r>> {
        let column = |j: usize| match self.apart {
            true => r.constant(table[k][j]),
            false => r.parameter(first + j),
        };
        (0..self.collocation.stages).map(column).collect()
    }

    /// Node c_k; in lanes parameter number `first`.
    fn node(self, r: &Recording, first: usize, k: usize) -> Value<'_> {
        if self.apart { r.constant(self.collocation.nodes[k]) } else { r.parameter(first) }
    }

    /// Field at stage k, or increments; in lanes the weight is parameter number `first`.
    fn terms<'r>(
        self,
        r: &'r Recording,
        (field, t, h): (&Formula, Value<'r>, Value<'r>),
        (k, first): (usize, usize),
        states: &[Value<'r>],
    ) -> Vec<Value<'r>> {
        let field = field.recorded(r, t, states);
        if !self.of_increments {
            return field;
        }
        let weights = &self.collocation.weights;
        let weight = if self.apart { r.constant(weights[k]) } else { r.parameter(first) };
        let part = h * weight;
        field.into_iter().map(|field| part * field).collect()
    }

    /// y + the sum, times h if it is of the field.
    fn advance<'r>(self, h: Value<'r>, sum: Value<'r>, y: Value<'r>) -> Value<'r> {
        if self.of_increments { sum + y } else { h.mul_add(sum, y) }
    }

    /// Σ_j w_j f_j over stages j, in the order of the slices.
    fn sum<'r>(self, weights: &[Value<'r>], f: &[Value<'r>]) -> Value<'r> {
        let [even, odd] = [0, 1].map(|first| {
            let stages = (first..weights.len()).step_by(2);
            products(stages.map(|j| (weights[j], self.stage(f, j)))).expect("there are some stages")
        });
        even + odd
    }

    /// Values of all these numbers at stage k.
    fn of_stage<'r>(self, numbers: &[Vec<Value<'r>>], k: usize) -> Vec<Value<'r>> {
        numbers.iter().map(|number| number[k]).collect()
    }
}

/// Numbers that differ from stage to stage.
type Staged<'r> = Vec<Vec<Value<'r>>>;

/// Nodes at these places.
pub(super) fn states(g: &mut Graph, range: &Range<usize>) -> Vec<Node> {
    range.clone().map(|k| g.state(k)).collect()
}

/// Message for a state of length 0, of which there is no model.
const NO_VECTORS: &str = "a state has vectors";

/// Tape of the iteration's start: x + Σ W_k reach_k (see [`reach`]), the scales of the vectors, no
/// iterations. In lanes W and the rounding losses are first replaced by those that the step before
/// has left, if it has.
pub(super) fn start(of: StageNodes, at: &Places, vectors: &Vectors) -> Tape {
    Tape::recorded(at.count(), usize::from(!of.apart), |r| (started(r, of, at, vectors), None))
}

fn started<'r>(r: &'r Recording, of: StageNodes, at: &Places, vectors: &Vectors) -> Vec<Value<'r>> {
    let (s, one) = (of.collocation.stages, r.constant(1.0));
    let (x, mut w, mut lost) =
        (of.singles(r, &at.x), of.staged(r, &at.w), r.states(at.lost.clone()));
    if let Some(fresh) = at.fresh.clone().next() {
        let is_fresh = r.constant(0.0).less(of.single(r, fresh));
        let left = r.states(at.left.clone());
        for (number, left) in w.iter_mut().flatten().chain(&mut lost).zip(left) {
            *number = Value::select(is_fresh, left, *number);
        }
    }
    let [h, length] = [at.h, at.length].map(|k| of.single(r, k));
    // The length of the last step is known before that of the next.
    let ratio = h * (one / length);
    let [base, decayed] = [at.from, at.stop + 3].map(|k| r.state(k));
    let of_stage = |stage: usize| {
        let mut parts = Vec::with_capacity(s);
        reach(of.node(r, 0, stage), [base, ratio, length], |part| parts.push(part), s);
        parts
    };
    let reaches: Staged = (0..of.width()).map(of_stage).collect();
    let mut outputs = Vec::with_capacity(at.w.start);
    for (&x, w) in x.iter().zip(&w) {
        outputs.extend(reaches.iter().map(|reach| x + of.sum(reach, w)));
    }
    outputs.extend(r.states(at.field.clone()));
    outputs.extend(Iterated::NONE.numbers().map(|number| r.constant(number)));
    if of.apart {
        outputs.push(one);
    }

    let by_stage: Staged = (0..of.width()).map(|k| of.of_stage(&w, k)).collect();
    let ones = vec![one; s];
    let of_x = |vector: usize| square(&x[vectors.components_of(vector)]);
    let of_w = |vector: usize| {
        let at = vectors.components_of(vector);
        let squares: Vec<Value> = by_stage.iter().map(|w| square(&w[at.clone()])).collect();
        of.sum(&ones, &squares)
    };
    let [mut sizes, mut scales] = [&at.sizes, &at.scales].map(|at| r.states(at.clone()));
    rules::scales(vectors, (length * length, decayed), (of_x, of_w), &mut sizes, &mut scales);
    outputs.extend([scales, sizes].concat());
    if !of.apart {
        outputs.extend(w.into_iter().flatten().chain(lost));
    }
    outputs
}

/// Tape of an iteration, X = x + h A F(X). In lanes the parameters after those of the field are the
/// rows of A and A², the node and its weight; apart, nothing changes in a lane whose iteration has
/// ended.
pub(super) fn iteration(
    of: StageNodes,
    at: &Places,
    field: &Formula,
    vectors: &StateVectors,
    parameters: usize,
) -> Tape {
    let own = if of.apart { 0 } else { 2 * of.collocation.stages + 2 };
    Tape::recorded(at.count(), parameters + own, |r| {
        let (stages, fields) = (of.staged(r, &at.stages), of.staged(r, &at.field));
        let (next, slopes) = swept(r, of, at, (field, parameters), &stages);
        // The change, also of what follows from the rest: what a light body's momentum does shows
        // in its position.
        let scales = r.states(at.scales.clone());
        let change_at = |k: usize| {
            let changes: Vec<Value> =
                next.iter().zip(&stages).map(|(next, stage)| next[k] - stage[k]).collect();
            measured(&vectors.vectors, &scales, &changes).expect(NO_VECTORS).abs()
        };
        let changes: Vec<Value> = (0..of.width()).map(change_at).collect();
        let changes = (0..of.collocation.stages).map(|k| of.stage(&changes, k)).collect();
        let change = in_pairs(changes, Value::largest).expect("there are some stages");
        let before = Iterated::of(std::array::from_fn(|k| r.state(at.iterated + k)));
        let iterated = before.followed_by(change);
        let goes_on = iterated.goes_on(stop(r, at));
        let later = field.independent_roots();
        let kept = slopes.iter().zip(&fields).zip(&later);
        let kept = kept.map(|((slope, before), &later)| if later { before } else { slope });
        let kept: Vec<Value> = kept.flatten().copied().collect();
        let mut outputs = [&next.concat()[..], &kept, &iterated.numbers()].concat();
        if !of.apart {
            return (outputs, Some(goes_on));
        }
        let goes = r.constant(0.0).less(r.state(at.going.start));
        let before = [&stages.concat()[..], &fields.concat(), &before.numbers()].concat();
        for (after, before) in outputs.iter_mut().zip(before) {
            *after = Value::select(goes, *after, before);
        }
        outputs.push(number(r, goes & goes_on));
        (outputs, None)
    })
}

/// Stages after an iteration, and the field at those before. Components that depend on the others
/// alone take the others' new values. Where F is linear in these, they are x + h c F(x) + h² A²
/// F(F), which does not wait for the new values; not so in sums of increments, because the rounded
/// c and A² are not symplectic. The field of these components is of no use.
fn swept<'r>(
    r: &'r Recording,
    of: StageNodes,
    at: &Places,
    (field, parameters): (&Formula, usize),
    stages: &[Vec<Value<'r>>],
) -> (Staged<'r>, Staged<'r>) {
    let (n, s) = (stages.len(), of.collocation.stages);
    let (later, linear) = (field.independent_roots(), field.linear_roots());
    let (x, [h, t]) = (of.singles(r, &at.x), [at.h, at.t].map(|k| of.single(r, k)));
    let nodes: Vec<Value> = (0..of.width()).map(|k| of.node(r, parameters + 2 * s, k)).collect();
    let at_stages = |states: &dyn Fn(usize) -> Vec<Value<'r>>| -> Staged<'r> {
        let of_stage = |k: usize| {
            let time = nodes[k].mul_add(h, t);
            of.terms(r, (field, time, h), (k, parameters + 2 * s + 1), &states(k))
        };
        let fields: Staged = (0..of.width()).map(of_stage).collect();
        (0..n).map(|i| fields.iter().map(|field| field[i]).collect()).collect()
    };
    let (sums, double_sums) =
        (&of.collocation.sums(of.of_increments).stages, &of.collocation.double_sums);
    let advanced = |slopes: &[Value<'r>], x: Value<'r>| -> Vec<Value<'r>> {
        let sum = |k: usize| of.sum(&of.row(r, sums, parameters, k), slopes);
        (0..of.width()).map(|k| of.advance(h, sum(k), x)).collect()
    };
    let mut next = stages.to_vec();
    let slopes = at_stages(&|k| of.of_stage(stages, k));
    for i in (0..n).filter(|&i| !later[i]) {
        next[i] = advanced(&slopes[i], x[i]);
    }
    if later.contains(&true) {
        let of_next = at_stages(&|k| of.of_stage(&next, k));
        let of_x = at_stages(&|_| x.clone());
        let of_slopes = at_stages(&|k| of.of_stage(&slopes, k));
        let bent = |i: usize, k: usize| {
            let bent = of.sum(&of.row(r, double_sums, parameters + s, k), &of_slopes[i]);
            (h * h).mul_add(bent, (nodes[k] * h).mul_add(of_x[i][k], x[i]))
        };
        for i in (0..n).filter(|&i| later[i]) {
            next[i] = match linear[i] && !of.of_increments {
                true => (0..of.width()).map(|k| bent(i, k)).collect(),
                false => advanced(&of_next[i], x[i]),
            };
        }
    }
    (next, slopes)
}

/// Criteria at which the iteration ends.
fn stop<'r>(r: &'r Recording, at: &Places) -> Stop<Value<'r>> {
    let [enough, too_far, contraction, decayed] = [0, 1, 2, 3].map(|k| r.state(at.stop + k));
    Stop { enough, too_far, contraction, decayed }
}

/// 1 where a condition holds, else 0.
fn number<'r>(r: &'r Recording, condition: Truth<'r>) -> Value<'r> {
    Value::select(condition, r.constant(1.0), r.constant(0.0))
}

/// Polynomial of a step, and what follows from it.
struct Polynomial<'r> {
    w: Staged<'r>,
    x1: Vec<Value<'r>>,
    lost: Vec<Value<'r>>,
    /// Sizes of the last coefficients and of those before.
    last: Vec<Value<'r>>,
    before: Vec<Value<'r>>,
}

impl<'r> Polynomial<'r> {
    /// Polynomial of the stages.
    fn of(
        r: &'r Recording,
        of: StageNodes,
        at: &Places,
        (field, parameters): (&Formula, usize),
    ) -> Polynomial<'r> {
        let s = of.collocation.stages;
        let (x, [h, t]) = (of.singles(r, &at.x), [at.h, at.t].map(|k| of.single(r, k)));
        let (stages, lost) = (of.staged(r, &at.stages), r.states(at.lost.clone()));
        // The field of components that follow from the others was not kept.
        let found_at = |k: usize| {
            let time = of.node(r, parameters + s, k).mul_add(h, t);
            of.terms(r, (field, time, h), (k, parameters + s + 1), &of.of_stage(&stages, k))
        };
        let found: Staged = (0..of.width()).map(found_at).collect();
        let (mut slopes, later) = (of.staged(r, &at.field), field.independent_roots());
        for (i, slope) in slopes.iter_mut().enumerate().filter(|(i, _)| later[*i]) {
            *slope = found.iter().map(|found| found[i]).collect();
        }
        let table = &of.collocation.sums(of.of_increments).coefficients;
        let [mut w, mut numbers] = [const { Vec::new() }; 2];
        for (slope, (&x, lost)) in slopes.iter().zip(x.iter().zip(lost)) {
            let sum = |k: usize| of.sum(&of.row(r, table, parameters, k), slope);
            let sums: Vec<Value> = (0..of.width()).map(sum).collect();
            let own: Vec<Value> = match of.of_increments {
                true => sums.iter().map(|&sum| sum / h).collect(),
                false => sums.clone(),
            };
            let [last, before] = last_sizes(s, |k| of.stage(&own, k));
            let [x1, lost] = summed(x, of.advance(h, of.stage(&sums, 0), lost));
            numbers.push(vec![x1, lost, last, before]);
            w.push(own);
        }
        let [x1, lost, last, before] = [0, 1, 2, 3].map(|k| of.of_stage(&numbers, k));
        Polynomial { w, x1, lost, last, before }
    }

    /// What the polynomial misses at the ends of the step. In lanes one is at the start and the
    /// others at the end.
    fn missed(
        &self,
        r: &'r Recording,
        of: StageNodes,
        at: &Places,
        (field, parameters): (&Formula, usize),
    ) -> Vec<Value<'r>> {
        let s = of.collocation.stages;
        let (x, [h, t]) = (of.singles(r, &at.x), [at.h, at.t].map(|k| of.single(r, k)));
        let t1 = t + h;
        let ends = if of.apart {
            vec![(r.constant(-1.0), t, x), (r.constant(1.0), t1, self.x1.clone())]
        } else {
            let sign = r.parameter(parameters + s + 2);
            let is_start = sign.less(r.constant(0.0));
            let x = x.iter().zip(&self.x1).map(|(&x, &x1)| Value::select(is_start, x, x1));
            vec![(sign, Value::select(is_start, t, t1), x.collect())]
        };
        let found: Staged = ends.iter().map(|(_, t, x)| field.recorded(r, *t, x)).collect();
        let of_component = |(i, w): (usize, &Vec<Value<'r>>)| {
            let w: Vec<Value> = (0..s).map(|k| of.stage(w, k)).collect();
            let ends = ends.iter().zip(&found);
            let missed: Vec<Value> = ends
                .map(|((sign, ..), found)| missed(found[i], *sign, w.iter().copied()))
                .collect();
            missed_at_ends([0, 1].map(|end| of.stage(&missed, end)))
        };
        self.w.iter().enumerate().map(of_component).collect()
    }
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
    let own = if of.apart { 0 } else { of.collocation.stages + 3 };
    Tape::recorded(at.count(), parameters + own, |r| {
        let polynomial = Polynomial::of(r, of, at, (field, parameters));
        let zero = r.constant(0.0);
        let scales = r.states(at.scales.clone());
        let measured = |v: &[_]| measured(vectors, &scales, v).expect(NO_VECTORS);
        let (mut error, mut unexplained) = (polynomial.last.clone(), zero);
        let before = measured(&polynomial.before);
        if looks_at_ends {
            let missed = polynomial.missed(r, of, at, (field, parameters));
            unexplained = hidden([measured(&error), before, measured(&missed)]);
            error
                .iter_mut()
                .zip(&missed)
                .for_each(|(error, missed)| *error = error.largest(*missed));
        }
        let size = |i: usize| of.stage(&polynomial.w[i], 0).abs() + polynomial.last[i];
        let moved = scales.iter().enumerate();
        let moved = moved
            .map(|(vector, &scale)| moves(scale, vectors.components_of(vector).map(size)))
            .reduce(|a, b| a | b)
            .unwrap_or(zero.less(zero));
        let last = measured(&error);
        let Polynomial { w, x1, lost, .. } = polynomial;
        let iterated = Iterated::of(std::array::from_fn(|k| r.state(at.iterated + k)));
        let Iterated { change, first, count, .. } = iterated;
        if of.apart {
            let [too_far, h] = [at.stop + 1, at.h].map(|k| r.state(k));
            let numbers =
                vec![change, last, before, first, unexplained, too_far, h, number(r, moved)];
            return ([x1, error, numbers, w.concat(), lost].concat(), None);
        }
        let found = iterated.converged(stop(r, at));
        let (x, infinity) = (of.singles(r, &at.x), r.constant(f64::INFINITY));
        let x1 = x1.iter().zip(x).map(|(&x1, x)| Value::select(found, x1, x)).collect();
        let error = error.iter().map(|&error| Value::select(found, error, infinity)).collect();
        let [last, before, unexplained] =
            [last, before, unexplained].map(|measure| Value::select(found, measure, zero));
        let [iterations, steps] = [0, 1].map(|k| r.state(at.counts.start + k));
        let moved = r.value((found & moved).node());
        let counts = vec![moved, iterations + count, steps + number(r, found)];
        let numbers = vec![change, last, before, first, unexplained];
        let kept = r.states(at.scales.start..at.moved);
        ([x1, error, numbers, kept, counts, w.concat(), lost].concat(), None)
    })
}

/// Numbers of [`rules::Measures`] among those of a step.
pub(super) struct Measures;

impl Measures {
    /// Number of the measures.
    pub const COUNT: usize = 7;

    /// Places of the measures among the numbers of a step whose stages are lanes.
    pub fn places(at: &Places) -> [usize; Measures::COUNT] {
        let [change, last, before, first, hidden] = std::array::from_fn(|k| at.iterated + k);
        [change, last, before, first, hidden, at.stop + 1, at.h]
    }

    /// Measures at these places, in that order.
    pub fn at(r: &Recording, places: [usize; Measures::COUNT]) -> rules::Measures<Value<'_>> {
        let [change, last, before, first, hidden, too_far, h] = places.map(|place| r.state(place));
        rules::Measures { change, last, before, first, hidden, too_far, h }
    }
}

/// Tape of [`rules::Measures::squared_factor`], in place of the first of the measures. The parameter is the
/// largest estimate that the iteration's first change may cause.
pub(super) fn factor(collocation: &Collocation, vectors: &Vectors) -> Tape {
    Tape::recorded(Measures::COUNT, 1, |r| {
        let measures = Measures::at(r, std::array::from_fn(|k| k));
        (vec![measures.squared_factor(collocation, vectors.count(), r.parameter(0))], None)
    })
}
