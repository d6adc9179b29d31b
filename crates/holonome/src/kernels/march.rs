//! Attempted steps with their controller as a tape: the loop of `holonome_integrate::run` over
//! adaptive steps, traced.
//!
//! The numbers carried from one attempt to the next have the places of
//! `holonome_integrate::controller::slots`. Nothing branches: selections keep the numbers that an
//! attempt does not change, or must not change because it is not like the others.

use super::monitoring::Monitoring;
use super::taylor::{Expansion, Scales, Taylor};
use super::tracing::TracingSpace;
use super::vectors::StateVectors;
use super::whole_step::{Ingredients, Mend, Recorded, Settled, Settling, error_norm, taken};
use holonome_integrate::controller::StepControl;
use holonome_integrate::controller::pi::{Controller, LEAST_ERROR, LEAST_LAST_ERROR};
use holonome_integrate::controller::slots::{Slots, Status, Within};
use holonome_integrate::controller::trial::{MOST_REJECTIONS, SHORTEST_STEP_ULPS, SLIVER};
use holonome_integrate::plan::AdaptiveSteps;
use holonome_integrate::run::REJECTIONS_OF_NEW;
use holonome_integrate::scales::{FAMILY_FLOOR, MASS_FLOOR, Role, STEP_FLOOR, Vectors};
use holonome_integrate::scheme::explicit_rk::{ExplicitStages, dense_stages, stage_count};
use holonome_integrate::scheme::map::StepFrom;
use holonome_integrate::space::Space;
use holonome_integrate::state::Cost;
use holonome_integrate::tableau::Tableau;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Input, Node};

/// Number of parameters that a loop of attempts takes from the run.
pub const PARAMETERS: usize = 7;

/// Parameters of the run, which follow those of the model and of its treatment.
pub fn parameters(adaptive: &AdaptiveSteps, control: StepControl) -> [f64; PARAMETERS] {
    let AdaptiveSteps { t0, t_end, rtol, longest_step, shortest_step, .. } = *adaptive;
    let (span, absolute) = (adaptive.span(), adaptive.square_of_least_scale());
    [control.tolerance(rtol), span, longest_step, shortest_step, absolute, t0, t_end]
}

/// Data of a loop of attempts beside its kernels.
#[derive(Clone)]
pub struct Judging {
    pub slots: Slots,
    pub control: StepControl,
    pub monitoring: Monitoring,
    pub mend: Option<Mend>,
}

impl Judging {
    /// Count treatments; see [`holonome_integrate::scheme::map::Attempts::count_treatments`].
    pub fn count_treatments(&self, steps: u64, cost: &mut Cost) {
        if let Some(mend) = self.mend {
            mend.count(steps, cost);
        }
    }

    /// Finish the deviations; see [`holonome_integrate::scheme::map::Attempts::finish`].
    pub fn finish(&self, largest: &mut [f64]) {
        self.monitoring.finish(largest, 1);
    }
}

/// Result of an attempt, as nodes.
pub struct Attempted {
    /// x₁.
    pub x1: Vec<Node>,
    /// Estimates of its error, without their factor h.
    pub errors: Vec<Vec<Node>>,
    /// Field at x₁, if it is known and carried (FSAL).
    pub end_field: Vec<Node>,
    /// States within the step.
    pub interpolant: StepInterpolant,
    /// The factor and the square of a [`holonome_integrate::scheme::map::Allowance`].
    pub allowance: Option<(Node, Node)>,
}

/// Interpolant of an attempt, as nodes.
pub enum StepInterpolant {
    /// No interpolant in the loop.
    None,
    /// Dense output of a Runge–Kutta scheme from its stages and the vectors behind them.
    Stages(Vec<Vec<Node>>),
    /// Taylor coefficients, in powers of time over `length`.
    Series { coefficients: Vec<Vec<Node>>, length: Node },
}

/// Start of an attempt, as nodes.
pub struct Beginning<'a> {
    pub t: Node,
    /// Longest step that is wanted.
    pub h: Node,
    /// Scales and tolerance that the attempt is measured against.
    pub scales: Scales<'a>,
}

/// Attempt in the making.
pub struct Begun<'a> {
    /// Length of the step, which the end of the run may make longer or shorter.
    pub length: Node,
    /// The attempt itself.
    pub attempt: Box<Attempt<'a>>,
}

/// Function from the length of a step to the attempt.
type Attempt<'a> = dyn FnOnce(&mut Graph, Node) -> Attempted + 'a;

/// Attempt whose length and end are known.
struct Tried<'a> {
    trial: Trial,
    /// S² of the vectors and floors of momenta by which it is measured.
    norms: Vec<Node>,
    attempt: Box<Attempt<'a>>,
}

/// Length and end of an attempt, as [`trial`](holonome_integrate::controller::trial::trial) finds
/// them.
struct Trial {
    t1: Node,
    /// Time since the start at its end.
    end: Node,
    length: Node,
    /// True if it is the first attempt at its step.
    is_first: Node,
    /// True if it ends the run.
    is_last: Node,
    /// True if it may be made.
    may_be: Node,
}

/// Result of judging an attempt in a loop.
pub struct Judgement {
    /// Slots that change.
    pub after: Vec<Node>,
    /// True if the attempt is accepted.
    pub accepted: Node,
    /// True if another attempt follows.
    pub goes_on: Node,
}

impl Ingredients<'_> {
    /// Slots of the loop's state.
    pub fn slots(&self, settling: &Settling) -> Slots {
        let first = match self.scheme {
            Recorded::RungeKutta(tableau) => {
                tableau.first_same_as_last && settling.mend().is_none()
            }
            Recorded::Taylor(_) | Recorded::Iterated(_) => false,
        };
        Slots::new(first, self.kept.weights, &self.vectors.vectors, settling.groups())
    }

    /// Tape of one of many attempts: a map of the loop's state to itself. F₀ of the rows that are
    /// not constraints are parameters from number `targets` on.
    pub fn march(&self, settling: &Settling, targets: usize) -> Tape {
        let control =
            self.scheme.facts().control.expect("attempts are made by schemes with an estimate");
        let slots = &self.slots(settling);
        let attempts = AttemptLoop {
            slots,
            control,
            vectors: self.vectors,
            parameters: self.parameters,
            settling,
            targets,
        };
        let g = &mut Graph::new();
        let before: Vec<Node> = (0..slots.count()).map(|k| g.state(k)).collect();
        let judgement = attempts
            .judge(g, &before, None, |g, beginning| self.begin(g, slots, &before, beginning));
        Tape::of_loop(
            g,
            &judgement.after,
            judgement.goes_on,
            slots.count(),
            self.parameters + PARAMETERS,
        )
    }

    /// Begins an attempt of a loop from the slots `before`.
    fn begin<'a>(
        &'a self,
        g: &mut Graph,
        slots: &Slots,
        before: &[Node],
        Beginning { t, h, scales }: Beginning,
    ) -> Begun<'a> {
        let x = before[slots.x.clone()].to_vec();
        match self.scheme {
            Recorded::RungeKutta(tableau) => {
                let first = (!slots.first.is_empty()).then(|| before[slots.first.clone()].to_vec());
                let attempt = Box::new(move |g: &mut Graph, length| {
                    let (x1, mut kept) = self.traced(g, |space| {
                        self.attempted(tableau, space, StepFrom { t, h: length, x: &x }, first)
                    });
                    let stages = ExplicitStages::of(tableau, &mut kept);
                    let (errors, end_field) =
                        (stages.errors.to_vec(), stages.k[tableau.stages - 1].clone());
                    Attempted {
                        x1,
                        errors,
                        end_field,
                        interpolant: StepInterpolant::Stages(kept),
                        allowance: None,
                    }
                });
                Begun { length: h, attempt }
            }
            Recorded::Taylor(taylor) => {
                let coefficients = taylor.coefficients(g, (t, h), &x);
                let part = taylor.reach(g, h, &coefficients, &scales, &self.vectors.vectors);
                let attempt = Box::new(move |g: &mut Graph, length| {
                    let part = g.div(length, h);
                    let expansion = Expansion { t, length: h, coefficients: &coefficients };
                    let errors = vec![taylor.compared(g, &expansion, (part, length))];
                    let x1 = Taylor::value(g, &coefficients, part);
                    let interpolant = StepInterpolant::Series { coefficients, length: h };
                    Attempted { x1, errors, end_field: Vec::new(), interpolant, allowance: None }
                });
                Begun { length: g.mul(h, part), attempt }
            }
            Recorded::Iterated(_) => unreachable!("attempts that iterate have a loop of their own"),
        }
    }

    /// Record `steps` over this field in `g`.
    fn traced<T>(&self, g: &mut Graph, steps: impl FnOnce(&mut TracingSpace) -> T) -> T {
        let mut space = TracingSpace::new(self.field);
        std::mem::swap(&mut space.graph, g);
        let recorded = steps(&mut space);
        std::mem::swap(&mut space.graph, g);
        recorded
    }

    /// Tape of a sample within an accepted attempt of a loop, as `holonome_integrate::run` finds
    /// it: a map from the numbers of [`Within`], and the weights of dense output behind them, to
    /// the treated state, the largest deviation of every group there, and [`Settled::unsettled`].
    pub fn within(&self, settling: &Settling, targets: usize) -> Tape {
        let control =
            self.scheme.facts().control.expect("attempts are made by schemes with an estimate");
        let slots = &self.slots(settling);
        let attempts = AttemptLoop {
            slots,
            control,
            vectors: self.vectors,
            parameters: self.parameters,
            settling,
            targets,
        };
        let at = Within::of(slots);
        let g = &mut Graph::new();
        let all: Vec<Node> = (0..at.count() + self.dense_weights()).map(|k| g.state(k)).collect();
        let (before, x1, carry, elapsed) =
            (&all[..slots.count()], &all[at.x1.clone()], &all[at.carried.clone()], all[at.elapsed]);
        let tried =
            attempts.attempt(g, before, |g, beginning| self.begin(g, slots, before, beginning));
        let (t, h, x) = (before[slots.t], tried.trial.length, &before[slots.x.clone()]);
        let attempted = (tried.attempt)(g, h);
        let sample = match (attempted.interpolant, self.scheme) {
            (StepInterpolant::Stages(kept), Recorded::RungeKutta(tableau)) => self.dense_output(
                g,
                tableau,
                kept,
                (StepFrom { t, h, x }, tried.trial.t1, x1),
                &all[at.count()..],
            ),
            (StepInterpolant::Series { coefficients, length }, _) => {
                let passed = g.sub(elapsed, before[slots.elapsed]);
                let theta = g.div(passed, h);
                let passed = g.mul(theta, h);
                let part = g.div(passed, length);
                Taylor::value(g, &coefficients, part)
            }
            _ => unreachable!("attempts of these loops have an interpolant"),
        };
        let target = settling.targets(g, |g, row| g.parameter(targets + row));
        let time = time_of(g, self.parameters, elapsed);
        let Settled { x, largest, unsettled, .. } =
            settling.within(g, time, &[&sample[..], &target].concat(), &carry[settling.scales()]);
        let outputs = [x, largest, vec![unsettled]].concat();
        Tape::of_fused(g, &outputs, all.len(), self.parameters + PARAMETERS)
    }

    /// Tape that treats a state within an accepted attempt: a map from its time since the start,
    /// the state, and the scales that are carried after the attempt, to what
    /// [`Ingredients::within`] gives.
    pub fn settled(&self, settling: &Settling, targets: usize) -> Tape {
        let g = &mut Graph::new();
        let elapsed = g.input(Input::Time);
        let time = time_of(g, self.parameters, elapsed);
        let states = self.dimension + self.slots(settling).carried.len();
        let all: Vec<Node> = (0..states).map(|k| g.state(k)).collect();
        let (x, carry) = all.split_at(self.dimension);
        let target = settling.targets(g, |g, row| g.parameter(targets + row));
        let Settled { x, largest, unsettled, .. } =
            settling.within(g, time, &[x, &target].concat(), &carry[settling.scales()]);
        Tape::of_fused(
            g,
            &[x, largest, vec![unsettled]].concat(),
            states,
            self.parameters + PARAMETERS,
        )
    }

    /// Number of weights of dense output: one for each stage of a Runge–Kutta scheme.
    pub fn dense_weights(&self) -> usize {
        match self.scheme {
            Recorded::RungeKutta(tableau) => stage_count(tableau),
            Recorded::Taylor(_) | Recorded::Iterated(_) => 0,
        }
    }

    /// Dense output of a step with these stages that ends at t₁ in the treated x₁, by weights
    /// b_i(θ).
    fn dense_output(
        &self,
        g: &mut Graph,
        tableau: &'static Tableau,
        mut kept: Vec<Vec<Node>>,
        (from, t1, x1): (StepFrom<Node>, Node, &[Node]),
        weights: &[Node],
    ) -> Vec<Node> {
        let dense =
            tableau.dense.as_ref().expect("a scheme with an error estimate has dense output");
        self.traced(g, |space| {
            if !tableau.first_same_as_last {
                let mut end_field = x1.to_vec();
                space.field(&mut end_field, t1, x1);
                kept[dense.endpoint] = end_field;
            }
            dense_stages(tableau, dense, space, from, &mut ExplicitStages::of(tableau, &mut kept));
            let g = &mut space.graph;
            // Weights that vanish identically are left out, as in sums over slices.
            let counts: Vec<usize> = (0..weights.len()).filter(|&i| dense.uses(i)).collect();
            (0..from.x.len())
                .map(|component| {
                    let terms = counts.iter().map(|&i| (weights[i], kept[i][component]));
                    let sum = terms.fold(None, |sum, (weight, k)| {
                        Some(match sum {
                            None => g.mul(weight, k),
                            Some(sum) => g.fma(weight, k, sum),
                        })
                    });
                    let sum = sum.unwrap_or(from.x[component]);
                    g.fma(from.h, sum, from.x[component])
                })
                .collect()
        })
    }
}

/// Inputs of a loop of attempts, beside the attempt itself.
pub struct AttemptLoop<'a> {
    pub slots: &'a Slots,
    pub control: StepControl,
    /// Vectors of the state.
    pub vectors: &'a StateVectors,
    /// Number of parameters of the field and its treatment.
    pub parameters: usize,
    /// Formulas at the end of a step.
    pub settling: &'a Settling,
    /// Number of the first parameter of F₀ of the rows that are not constraints.
    pub targets: usize,
}

impl AttemptLoop<'_> {
    /// Attempt that begins with the slots `before`, with its length and end.
    fn attempt<'a>(
        &self,
        g: &mut Graph,
        before: &[Node],
        begin: impl FnOnce(&mut Graph, Beginning) -> Begun<'a>,
    ) -> Tried<'a> {
        let AttemptLoop { slots, vectors, .. } = *self;
        let longest = g.parameter(self.parameters + 2);
        let [t, h, rejections] = [slots.t, slots.h, slots.rejections].map(|k| before[k]);

        let (own, floors) = before[slots.norms.clone()].split_at(vectors.vectors.count());
        let norms = [&of_old(g, own, rejections)[..], floors].concat();
        let tolerance = self.tolerance(g);
        let h = least(g, h, longest);
        let Begun { length: h, attempt } =
            begin(g, Beginning { t, h, scales: Scales { norms: &norms, tolerance } });
        Tried { trial: self.trial(g, before, h), norms, attempt }
    }

    /// Length and end of an attempt with these slots that is to be `h` long.
    fn trial(&self, g: &mut Graph, before: &[Node], h: Node) -> Trial {
        let slots = self.slots;
        let [span, shortest] = [1, 3].map(|k| g.parameter(self.parameters + k));
        let [elapsed, rejections, zero] =
            [before[slots.elapsed], before[slots.rejections], g.zero()];
        let remaining = g.sub(span, elapsed);
        let with_sliver = times(g, SLIVER, h);
        let is_last = g.binary(Binary::LessEqual, remaining, with_sliver);
        let length = g.select(is_last, remaining, h);
        let sum = g.add(elapsed, h);
        let end = g.select(is_last, span, sum);
        let t1 = time_of(g, self.parameters, end);
        let shortest_here = times(g, SHORTEST_STEP_ULPS * f64::EPSILON, elapsed);
        let resolves = g.binary(Binary::Less, shortest_here, h);
        let not_short = g.binary(Binary::LessEqual, shortest, h);
        let resolves = g.binary(Binary::And, resolves, not_short);
        let is_first = g.binary(Binary::Equal, rejections, zero);
        let last_may_be_short = g.binary(Binary::And, is_last, is_first);
        let may_be = g.binary(Binary::Or, resolves, last_may_be_short);
        let most = g.constant(f64::from(MOST_REJECTIONS));
        let few = g.binary(Binary::Less, rejections, most);
        let before_pause = g.binary(Binary::Less, end, before[slots.pause]);
        let may_be = g.binary(Binary::And, may_be, few);
        let may_be = g.binary(Binary::And, may_be, before_pause);
        Trial { t1, end, length, is_first, is_last, may_be }
    }

    /// Largest estimate that is accepted, relative to the scales.
    pub fn tolerance(&self, g: &mut Graph) -> Node {
        g.parameter(self.parameters)
    }

    /// Length of the attempt that follows one judged so, which holds the loop where there may be
    /// none.
    pub fn next(&self, g: &mut Graph, judgement: &mut Judgement, before: &[Node]) -> Node {
        let slots = self.slots;
        let after = [&judgement.after, &before[judgement.after.len()..]].concat();
        let longest = g.parameter(self.parameters + 2);
        let wanted = least(g, after[slots.h], longest);
        let Trial { length, may_be, .. } = self.trial(g, &after, wanted);
        let (held, status) = (g.constant(Status::Held.number()), after[slots.status]);
        let stays = g.unary(Unary::Not, may_be);
        let going = g.constant(Status::Going.number());
        let going = g.binary(Binary::Equal, status, going);
        let holds = g.binary(Binary::And, going, stays);
        judgement.after[slots.status] = g.select(holds, held, status);
        judgement.goes_on = g.binary(Binary::And, going, may_be);
        length
    }

    /// Judge an attempt that begins with the slots `before`. The loop holds where it is not
    /// `like_others`.
    pub fn judge<'a>(
        &self,
        g: &mut Graph,
        before: &[Node],
        like_others: Option<Node>,
        begin: impl FnOnce(&mut Graph, Beginning) -> Begun<'a>,
    ) -> Judgement {
        let AttemptLoop { slots, settling, targets, .. } = *self;
        let vectors = &self.vectors.vectors;
        let controller = Controller::new(&self.control);
        let Tried {
            trial: Trial { t1, end, length, is_first, is_last, mut may_be },
            norms,
            attempt,
        } = self.attempt(g, before, begin);
        if let Some(like_others) = like_others {
            may_be = g.binary(Binary::And, may_be, like_others);
        }
        let (tolerance, absolute) = (self.tolerance(g), g.parameter(self.parameters + 4));
        let [t, last_error, rejections] =
            [slots.t, slots.last_error, slots.rejections].map(|k| before[k]);
        let (zero, one) = (g.zero(), g.one());

        let Attempted { x1, errors, end_field, allowance, .. } = attempt(g, length);
        let mut measured = error_norm(
            g,
            tolerance,
            length,
            &errors,
            &x1,
            (&norms, &before[slots.rounding.clone()]),
            vectors,
        );
        if let Some((factor, unsolved)) = allowance {
            measured.allow(g, factor, unsolved);
        }
        let carried = &before[slots.carried.clone()];
        let (sizes, weights) = carried.split_at(vectors.count());
        let carry = taken(g, sizes, weights, &measured);
        let target = settling.targets(g, |g, row| g.parameter(targets + row));
        let Settled { x: x1_settled, largest, unsettled, .. } =
            settling.at(g, t1, &[&x1[..], &target].concat(), &carry[settling.scales()]);

        // Its result: an error that is NaN where x₁ is not finite.
        let biggest = g.constant(f64::MAX);
        let finite = |g: &mut Graph, all: &mut dyn Iterator<Item = Node>| {
            let sizes = all.map(|x| g.unary(Unary::Abs, x)).collect();
            let largest = largest_of(g, sizes);
            g.binary(Binary::LessEqual, largest, biggest)
        };
        let sound = finite(g, &mut x1.iter().copied());
        let error = measured.error;
        let small = g.binary(Binary::LessEqual, error, one);
        let small = g.binary(Binary::And, sound, small);
        let large = g.binary(Binary::Less, one, error);
        let large = g.binary(Binary::And, sound, large);
        let is_number = g.binary(Binary::Or, small, large);
        let whole = finite(g, &mut x1_settled.iter().chain(&largest).copied());
        let status = before[slots.status];
        let going = g.binary(Binary::Equal, status, zero);
        let going = g.binary(Binary::And, going, may_be);
        let mut good = g.binary(Binary::And, small, whole);
        let projects = matches!(settling.mend(), Some(Mend::Projects { .. }));
        if projects {
            let settled = g.binary(Binary::LessEqual, unsettled, biggest);
            good = g.binary(Binary::And, good, settled);
        }
        let accepted = g.binary(Binary::And, going, good);
        let retried = g.binary(Binary::And, is_first, is_number);
        let not_first = g.unary(Unary::Not, is_first);
        let retried = g.binary(Binary::Or, retried, not_first);
        let not_small = g.unary(Unary::Not, small);
        let rejected = g.binary(Binary::And, not_small, retried);
        let rejected = g.binary(Binary::And, going, rejected);

        // The next step, as `Controller` chooses it.
        let error_kept = most_of(g, error, LEAST_ERROR);
        let (alpha, safety) = (g.constant(-controller.alpha), controller.safety);
        let part = g.rough_power(error_kept, alpha);
        let factor = times(g, safety, part);
        let mut grown = factor;
        if controller.beta != 0.0 {
            let beta = g.constant(controller.beta);
            let power = g.rough_power(last_error, beta);
            grown = g.mul(factor, power);
        }
        if controller.foresees {
            let wished = g.mul(length, part);
            let asked = g.mul(last_error, before[slots.h_accepted]);
            let (shorter, ratio) = (g.binary(Binary::Less, wished, asked), g.div(wished, asked));
            let foreseen = g.mul(factor, ratio);
            grown = g.select(shorter, foreseen, factor);
        }
        let (shrink, grow) = (g.constant(controller.shrink), g.constant(controller.grow));
        let ceiling = g.select(is_first, grow, one);
        let clamped = |g: &mut Graph, factor: Node, ceiling: Node| {
            let low = g.binary(Binary::Less, factor, shrink);
            let raised = g.select(low, shrink, factor);
            least(g, raised, ceiling)
        };
        let grown = if controller.finds_length { ceiling } else { clamped(g, grown, ceiling) };
        let shrunk = clamped(g, factor, one);
        let blindly = g.constant(controller.blind);
        let error_is_finite = g.binary(Binary::LessEqual, error, biggest);
        let error_is_finite = g.binary(Binary::And, error_is_finite, is_number);
        let shrunk = g.select(error_is_finite, shrunk, blindly);
        let factor = g.select(accepted, grown, shrunk);
        let next = g.mul(length, factor);
        let changed = g.binary(Binary::Or, accepted, rejected);
        let last = if controller.foresees {
            g.div(part, grown)
        } else {
            most_of(g, error, LEAST_LAST_ERROR)
        };

        let mut after = before.to_vec();
        for (slot, x1) in slots.x.clone().zip(x1_settled) {
            after[slot] = g.select(accepted, x1, before[slot]);
        }
        for (slot, &k) in slots.first.clone().zip(&end_field) {
            after[slot] = g.select(accepted, k, before[slot]);
        }
        for (slot, &carried) in slots.carried.clone().zip(&carry) {
            after[slot] = g.select(accepted, carried, before[slot]);
        }
        let norms = norms_of(
            g,
            &carry[..vectors.count()],
            &before[slots.masses.clone()],
            vectors,
            absolute,
        );
        for (slot, norm) in slots.norms.clone().zip(norms) {
            after[slot] = g.select(accepted, norm, before[slot]);
        }
        for (slot, deviation) in slots.largest.clone().zip(largest) {
            let largest = g.largest(deviation, before[slot]);
            after[slot] = g.select(accepted, largest, before[slot]);
        }
        if settling.mend().is_some() {
            let innovation = g.sqrt(unsettled);
            let larger = g.binary(Binary::Less, before[slots.innovation], innovation);
            let larger = g.binary(Binary::And, accepted, larger);
            after[slots.innovation] = g.select(larger, innovation, before[slots.innovation]);
            after[slots.innovation_at] = g.select(larger, t1, before[slots.innovation_at]);
        }
        after[slots.t] = g.select(accepted, t1, t);
        after[slots.elapsed] = g.select(accepted, end, before[slots.elapsed]);
        after[slots.h] = g.select(changed, next, before[slots.h]);
        after[slots.h_accepted] = g.select(accepted, next, before[slots.h_accepted]);
        after[slots.last_error] = g.select(accepted, last, last_error);
        let again = g.add(rejections, one);
        let again = g.select(rejected, again, rejections);
        after[slots.rejections] = g.select(accepted, zero, again);
        for (slot, counted) in [(slots.steps, accepted), (slots.rejected, rejected)] {
            let more = g.add(before[slot], one);
            after[slot] = g.select(counted, more, before[slot]);
        }

        // The status, the most particular one last.
        let number = |g: &mut Graph, status: Status| g.constant(status.number());
        let (broken, undefined) = (number(g, Status::Broken), number(g, Status::Undefined));
        let (held, arrived) = (number(g, Status::Held), number(g, Status::Arrived));
        let mut broken = broken;
        if projects {
            let unsettled = number(g, Status::Unsettled);
            broken = g.select(whole, unsettled, broken);
        }
        let ended = g.select(small, broken, undefined);
        let ended = g.select(may_be, ended, held);
        let at_end = g.select(is_last, arrived, zero);
        let now = g.select(accepted, at_end, ended);
        let now = g.select(rejected, zero, now);
        let started = g.binary(Binary::Equal, status, zero);
        let status = g.select(started, now, status);
        after[slots.status] = status;
        let idle = number(g, Status::Idle);
        let goes_on = g.binary(Binary::LessEqual, status, idle);
        after.truncate(slots.changed());
        Judgement { after, accepted, goes_on }
    }
}

/// Time that is `elapsed` after the start, as [`AdaptiveSteps::time`] has it; the parameters of the
/// run begin at number `first`.
fn time_of(g: &mut Graph, first: usize, elapsed: Node) -> Node {
    let [span, t0, t_end] = [1, 5, 6].map(|k| g.parameter(first + k));
    let ended = g.binary(Binary::LessEqual, span, elapsed);
    let sum = g.add(t0, elapsed);
    g.select(ended, t_end, sum)
}

/// Smaller of two numbers.
pub(super) fn least(g: &mut Graph, a: Node, b: Node) -> Node {
    let over = g.binary(Binary::Less, b, a);
    g.select(over, b, a)
}

/// Largest of numbers that are not negative, NaN if one is; in pairs of pairs, which wait for each
/// other least.
pub(super) fn largest_of(g: &mut Graph, mut all: Vec<Node>) -> Node {
    while all.len() > 1 {
        all = all.chunks(2).map(|pair| g.largest(pair[0], pair[pair.len() - 1])).collect();
    }
    all.first().copied().unwrap_or(g.zero())
}

/// Larger of a number `a` and `least`; `a` if it is NaN.
fn most_of(g: &mut Graph, a: Node, least: f64) -> Node {
    let least = g.constant(least);
    let under = g.binary(Binary::Less, a, least);
    g.select(under, least, a)
}

/// Larger of two numbers; `a` if `b` is NaN.
pub(super) fn larger(g: &mut Graph, a: Node, b: Node) -> Node {
    let over = g.binary(Binary::Less, a, b);
    g.select(over, b, a)
}

fn times(g: &mut Graph, factor: f64, a: Node) -> Node {
    let factor = g.constant(factor);
    g.mul(factor, a)
}

/// S² of the vectors; after some rejections, those that have always been 0 do not count.
fn of_old(g: &mut Graph, norms: &[Node], rejections: Node) -> Vec<Node> {
    let (most, zero, aside) =
        (g.constant(f64::from(REJECTIONS_OF_NEW)), g.zero(), g.constant(f64::MAX));
    let own = g.binary(Binary::Less, rejections, most);
    norms
        .iter()
        .map(|&norm| {
            let old = g.binary(Binary::Less, zero, norm);
            let counts = g.binary(Binary::Or, own, old);
            g.select(counts, norm, aside)
        })
        .collect()
}

/// S² and floors of momenta from σ², as `holonome_integrate::scales::Scales::renew_norms` finds
/// them; masses are 0 where there are none.
fn norms_of(
    g: &mut Graph,
    sizes: &[Node],
    masses: &[Node],
    vectors: &Vectors,
    absolute: Node,
) -> Vec<Node> {
    let (zero, biggest) = (g.zero(), g.constant(f64::MAX));
    let has: Vec<Node> = masses.iter().map(|&m| g.binary(Binary::Less, zero, m)).collect();
    let of_role = |role: Role| vectors.families().iter().filter(move |family| family.role == role);
    let single = |role: Role| of_role(role).map(|family| family.vectors.len()).sum::<usize>() <= 1;
    // I and K. For a single vector each is that vector's own, and its floor would be a part of
    // itself.
    let mut between = |role: Role, of: fn(&mut Graph, Node, Node) -> Node| {
        if single(role) {
            return zero;
        }
        of_role(role).flat_map(|family| family.vectors.clone()).fold(zero, |most, vector| {
            let own = of(g, masses[vector], sizes[vector]);
            let own = g.select(has[vector], own, zero);
            larger(g, most, own)
        })
    };
    let inertia = between(Role::Position, |g, m, size| g.mul(m, size));
    let energy = between(Role::Momentum, |g, m, size| g.div(size, m));
    let mut norms: Vec<Node> = sizes.iter().map(|&size| larger(g, size, absolute)).collect();
    for family in vectors.families() {
        let momenta = family.role == Role::Momentum;
        let mut within = zero;
        if family.vectors.len() > 1 {
            for vector in family.vectors.clone() {
                let mut own = sizes[vector];
                if momenta {
                    let square = g.mul(masses[vector], masses[vector]);
                    let by_mass = g.div(own, square);
                    own = g.select(has[vector], by_mass, own);
                }
                within = larger(g, within, own);
            }
            within = times(g, FAMILY_FLOOR, within);
        }
        for vector in family.vectors.clone() {
            let (m, has) = (masses[vector], has[vector]);
            let mut floor = within;
            if family.vectors.len() > 1 && momenta {
                let square = g.mul(m, m);
                let by_mass = g.mul(square, within);
                floor = g.select(has, by_mass, within);
            }
            let between = match family.role {
                Role::Position if !single(Role::Position) => {
                    let floor = times(g, MASS_FLOOR, inertia);
                    Some(g.div(floor, m))
                }
                Role::Momentum if !single(Role::Momentum) => {
                    let floor = times(g, MASS_FLOOR, energy);
                    Some(g.mul(floor, m))
                }
                _ => None,
            };
            if let Some(between) = between {
                let both = larger(g, floor, between);
                floor = g.select(has, both, floor);
            }
            // A floor that overflows does not count.
            let finite = g.binary(Binary::LessEqual, floor, biggest);
            let floor = g.select(finite, floor, zero);
            norms[vector] = larger(g, norms[vector], floor);
        }
    }
    let pairs = vectors.conjugates();
    for position in 0..pairs {
        let (m, has) = (masses[pairs + position], has[pairs + position]);
        let square = g.mul(m, m);
        let product = g.mul(square, norms[position]);
        let floor = times(g, STEP_FLOOR, product);
        let finite = g.binary(Binary::LessEqual, floor, biggest);
        let counts = g.binary(Binary::And, finite, has);
        norms.push(g.select(counts, floor, zero));
    }
    norms
}

#[cfg(test)]
mod tests {
    use crate::{Problem, RunOptions, Settings, Simulation, StepSize, prepare};
    use holonome_integrate::controller::pi::rough_power;
    use holonome_integrate::observer::Recorder;
    use holonome_integrate::run::run_map;
    use holonome_integrate::state::StepState;
    use holonome_model::graph::primitive::{self, Numbers};
    use std::collections::BTreeMap;

    /// Close encounters; bodies of unlike masses, one at rest; a rod; a driven state that is
    /// undefined beyond a wall.
    const MODELS: [&str; 4] = [
        "coordinate q : R^2 = (0.1, 0)\nmomentum p of q = (0, sqrt(19))\nhamiltonian dot(p, p)/2 - 1/norm(q)\n\
         integral L = q.x*p.y - q.y*p.x",
        "parameter m[i in 1..3] = (1, 1e-3, 1e-8)[i]\ncoordinate q[i in 1..3] : R^2 = (i, 0.1*i*(i - 1))\n\
         momentum p of q = (0, 0)\n\
         hamiltonian sum(i in 1..3 : dot(p[i], p[i])/(2*m[i])) + sum(i in 1..2 : 1e-3*m[i+1]*norm(q[i] - q[i+1])^4)",
        "coordinate q : R^3 = (0, 1, 0)\nmomentum p of q = (1, 0, -1)\nhamiltonian dot(p, p)/2 + q.z\n\
         constraint rod : dot(q, q) = 1\nintegral J = q.x*p.y - q.y*p.x",
        "state x : R = 1\nstate y : R = 0\nx' = -0.1/sqrt(x)\ny' = cos(t)",
    ];

    /// Stored state without what does not matter: a first stage that is not known, and the last
    /// state at which claims were checked, which is that of a single step after a large correction.
    fn facts(mut state: serde_json::Value) -> serde_json::Value {
        if let Some(entries) = state.as_object_mut() {
            entries.remove("tested");
            if entries.get("first_stage").is_some_and(|stage| stage["known"] == false) {
                entries.remove("first_stage");
            }
            if let Some(before_end) = entries.remove("before_end") {
                entries.insert("before_end".to_string(), facts(before_end));
            }
        }
        state
    }

    #[test]
    fn a_loop_is_its_attempts_one_by_one() {
        let mut rejected = 0;
        for (text, method, rtol) in MODELS.iter().enumerate().flat_map(|(k, text)| {
            let methods = [
                "plain:dop853",
                "corrected:dop853",
                "plain:dopri5",
                "corrected:tsit5",
                "corrected:bs3",
                "gauss16",
            ];
            let projected = [
                "projection:dop853",
                "projection:tsit5",
                "projection:bs3",
                "corrected:gauss8",
                "projection:gauss16",
            ];
            let series = ["taylor", "corrected:taylor", "projection:taylor"];
            methods
                .into_iter()
                .chain(projected)
                .chain(series)
                .map(|method| (*text, method, [1e-9, 1e-6, 1e-4, 1e-8][k]))
                .collect::<Vec<_>>()
        }) {
            let problem = Problem::from_text("model", text, &BTreeMap::new(), &Settings::default())
                .expect("a model");
            let folder = tempfile::tempdir().unwrap();
            let out = Some(folder.path().join("run"));
            let options = RunOptions {
                method: method.parse().unwrap(),
                step: StepSize::adaptive(rtol),
                until: 30.0,
                samples: Some(7),
                out,
                ..RunOptions::default()
            };
            let Ok(mut simulation) = prepare(problem, options) else {
                panic!("{method} suits\n{text}");
            };
            let run = |Simulation { plan, step, system, problem, .. }: &Simulation,
                       in_loops: bool| {
                let mut state = StepState::new(plan, &**system, &problem.model.initial, None);
                let map = step.map(plan, &**system).expect("the step is compiled");
                assert_eq!(map.attempts().is_some(), in_loops, "{method}: {text}");
                let end = run_map(plan, &**system, &*map, &mut state, &mut Recorder::default());
                (format!("{end:?}"), facts(serde_json::to_value(&state).unwrap()), state)
            };
            let looped = run(&simulation, true);
            simulation.step.leave_loops();
            let alone = run(&simulation, false);
            rejected += looped.2.cost.rejected;
            assert!(
                looped.2.step > 4,
                "{method}: {:?} after {} steps of\n{text}",
                looped.0,
                looped.2.step
            );
            assert_eq!(looped.0, alone.0, "{method}: {text}");
            assert!(looped.1 == alone.1, "{method}: {text}\n{}\n{}", looped.1, alone.1);
        }
        assert!(rejected > 100, "{rejected} rejections: nothing is tried");
    }

    #[test]
    fn a_rough_power_is_the_same_in_both_halves() {
        for k in -2000..2000 {
            let a = (0.01 * f64::from(k)).exp();
            for b in [-0.125, -0.17, 0.04, -1.0 / 3.0] {
                assert_eq!(
                    rough_power(a, b),
                    primitive::rough_power(&mut Numbers, a, b),
                    "{a}^{b}"
                );
            }
        }
    }
}
