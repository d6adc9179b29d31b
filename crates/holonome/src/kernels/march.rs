//! AttemptResult steps with their controller as a tape: the loop of `holonome_integrate::run` over
//! adaptive steps, traced.
//!
//! The numbers carried from one attempt to the next have the places of
//! `holonome_integrate::controller::slots`. Nothing branches: selections keep the numbers that an
//! attempt does not change, or must not change because it is not like the others.

use super::mending::Mend;
use super::monitoring::Monitoring;
use super::settling::{Settled, Settling};
use super::taylor::{Expansion, Scales, Taylor, length_of_expansion};
use super::tracing::TracingSpace;
use super::vectors::StateVectors;
use super::whole_step::{Ingredients, Recorded};
use holonome_arithmetic::{Real, in_pairs, products};
use holonome_integrate::controller::pi::{Controller, JudgedAttempt};
use holonome_integrate::controller::slots::{Slots, Status, Within};
use holonome_integrate::controller::trial::{Trial, time, trial};
use holonome_integrate::controller::{Measured, StepControl, Yardstick, squared_error};
use holonome_integrate::plan::AdaptiveSteps;
use holonome_integrate::run::REJECTIONS_OF_NEW;
use holonome_integrate::scales::{advance, old_norm, set_norms};
use holonome_integrate::scheme::explicit_rk::{ExplicitStages, dense_stages};
use holonome_integrate::scheme::map::{Allowance, StepFrom};
use holonome_integrate::space::Space;
use holonome_integrate::state::Cost;
use holonome_integrate::tableau::{Dense, Tableau};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::value::{Recording, Truth, Value, nodes};
use holonome_model::graph::{Expression, Graph, Input, Node};

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
pub struct AttemptResult {
    /// x₁.
    pub x1: Vec<Node>,
    /// Estimates of its error, without their factor h.
    pub errors: Vec<Vec<Node>>,
    /// Field at x₁, if it is known and carried (FSAL).
    pub end_field: Vec<Node>,
    /// States within the step.
    pub interpolant: StepInterpolant,
    /// The numbers of a [`holonome_integrate::scheme::map::Allowance`].
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
pub struct AttemptInputs<'a> {
    pub t: Node,
    /// Longest step that is wanted.
    pub h: Node,
    /// Scales and tolerance that the attempt is measured against.
    pub scales: Scales<'a>,
}

/// Attempt in the making.
pub struct AttemptPlan<'a> {
    /// Length of the step, which the end of the run may make longer or shorter.
    pub length: Node,
    /// The attempt itself.
    pub attempt: Box<Attempt<'a>>,
}

/// Function from the length of a step to the attempt.
type Attempt<'a> = dyn FnOnce(&mut Graph, Node) -> AttemptResult + 'a;

/// Attempt whose length and end are known.
struct PreparedAttempt<'a, 'r> {
    trial: Trial<Value<'r>>,
    /// S² of the vectors and floors of momenta by which it is measured.
    norms: Vec<Value<'r>>,
    attempt: Box<Attempt<'a>>,
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
        let groups = (settling.groups(), settling.watching.count());
        Slots::new((first, self.kept.weights), &self.vectors.vectors, groups)
    }

    /// Tape of one of many attempts: a map of the loop's state to itself. F₀ of the rows that are
    /// not constraints are parameters from number `targets` on.
    pub fn march(&self, settling: &Settling, targets: usize) -> Tape {
        let slots = &self.slots(settling);
        let attempts = self.attempts(slots, settling, targets);
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

    /// Loop of attempts with these slots.
    fn attempts<'a>(
        &'a self,
        slots: &'a Slots,
        settling: &'a Settling,
        targets: usize,
    ) -> AttemptLoop<'a> {
        let control = self.scheme.facts().control;
        AttemptLoop {
            slots,
            control: control.expect("attempts are made by schemes with an estimate"),
            vectors: self.vectors,
            parameters: self.parameters,
            settling,
            targets,
        }
    }

    /// Begins an attempt of a loop from the slots `before`.
    fn begin<'a>(
        &'a self,
        g: &mut Graph,
        slots: &Slots,
        before: &[Node],
        AttemptInputs { t, h, scales }: AttemptInputs,
    ) -> AttemptPlan<'a> {
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
                    AttemptResult {
                        x1,
                        errors,
                        end_field,
                        interpolant: StepInterpolant::Stages(kept),
                        allowance: None,
                    }
                });
                AttemptPlan { length: h, attempt }
            }
            Recorded::Taylor(taylor) => {
                let length = g.record(|r| length_of_expansion(taylor.order, r.value(h)).node());
                let coefficients = taylor.coefficients(g, (t, length), &x);
                let part = taylor.reach(g, length, &coefficients, &scales, &self.vectors.vectors);
                let attempt = Box::new(move |g: &mut Graph, h| {
                    let part = Taylor::part(g, h, length);
                    let expansion = Expansion { t, length, coefficients: &coefficients };
                    let errors = vec![taylor.compared(g, &expansion, (part, h))];
                    let x1 = Taylor::value(g, &coefficients, part);
                    let interpolant = StepInterpolant::Series { coefficients, length };
                    AttemptResult {
                        x1,
                        errors,
                        end_field: Vec::new(),
                        interpolant,
                        allowance: None,
                    }
                });
                AttemptPlan { length: g.mul(length, part), attempt }
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

    /// Tapes of samples within an accepted attempt of a loop, as `holonome_integrate::run` finds
    /// them.
    pub fn within(&self, settling: &Settling, targets: usize) -> SampleTapes {
        let slots = &self.slots(settling);
        let at = Within::of(slots);
        let g = &mut Graph::new();
        let of_attempt = self.interpolant(g, (settling, targets), (slots, &at));
        let of_tape: Vec<Node> = of_attempt.nodes().collect();
        let inputs = self.parameters + PARAMETERS;
        let interpolant = Tape::of_fused(g, &of_tape, at.count(), inputs);
        let first = at.count() + self.dense_weights();
        let (attempt, g) = (&mut *g, &mut Graph::new());
        let all: Vec<Node> = (0..first).map(|k| g.state(k)).collect();
        let mut place = first..;
        // Constants stay what they are: a product with a number that is always 0 is left out.
        let known = of_attempt.map(|node| {
            let place = place.next().unwrap_or(first);
            match attempt.expression(node) {
                Expression::Constant(bits) => g.constant(f64::from_bits(bits)),
                _ => g.state(place),
            }
        });
        let (carry, elapsed) = (&all[at.carried.clone()], all[at.elapsed]);
        let passed = g.sub(elapsed, all[slots.elapsed]);
        let sample = match (known, self.scheme) {
            (
                Interpolant { h, by: StepInterpolant::Stages(kept) },
                Recorded::RungeKutta(tableau),
            ) => dense_output(g, tableau, &kept, (h, &all[slots.x.clone()]), &all[at.count()..]),
            (Interpolant { h, by: StepInterpolant::Series { coefficients, length } }, _) => {
                let theta = g.div(passed, h);
                let passed = g.mul(theta, h);
                let part = Taylor::part(g, passed, length);
                Taylor::value(g, &coefficients, part)
            }
            _ => unreachable!("attempts of these loops have an interpolant"),
        };
        let target = settling.targets(g, |g, row| g.parameter(targets + row));
        let time = time_after(g, self.parameters, elapsed);
        let Settled { x, largest, unsettled, .. } =
            settling.within(g, time, &[&sample[..], &target].concat(), &carry[settling.scales()]);
        let outputs = [x, largest, vec![unsettled]].concat();
        let sample = Tape::of_fused(g, &outputs, first + of_tape.len(), inputs);
        SampleTapes { interpolant, sample }
    }

    /// Interpolant of an accepted attempt, recorded over the numbers of [`Within`].
    fn interpolant(
        &self,
        g: &mut Graph,
        (settling, targets): (&Settling, usize),
        (slots, at): (&Slots, &Within),
    ) -> Interpolant {
        let attempts = self.attempts(slots, settling, targets);
        let all: Vec<Node> = (0..at.count()).map(|k| g.state(k)).collect();
        let (before, x1) = (&all[..slots.count()], &all[at.x1.clone()]);
        let (h, t1, attempt) = g.record(|r| {
            let slots = &r.values(before);
            let planned =
                attempts.plan(r, slots, |g, at| self.begin(g, attempts.slots, before, at));
            let Trial { length, end, .. } = planned.trial;
            (length.node(), attempts.time(r, end).node(), planned.attempt)
        });
        let (t, x) = (before[slots.t], &before[slots.x.clone()]);
        let by = match (attempt(g, h).interpolant, self.scheme) {
            (StepInterpolant::Stages(kept), Recorded::RungeKutta(tableau)) => {
                let kept = self.dense_stages(g, tableau, kept, (StepFrom { t, h, x }, t1, x1));
                StepInterpolant::Stages(kept)
            }
            (by, _) => by,
        };
        Interpolant { h, by }
    }

    /// Tape that treats a state within an accepted attempt: a map from its time since the start,
    /// the state, and the scales that are carried after the attempt, to what
    /// [`Ingredients::within`] gives.
    pub fn settled(&self, settling: &Settling, targets: usize) -> Tape {
        let g = &mut Graph::new();
        let elapsed = g.input(Input::Time);
        let time = time_after(g, self.parameters, elapsed);
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
            Recorded::RungeKutta(tableau) => tableau.stage_count(),
            Recorded::Taylor(_) | Recorded::Iterated(_) => 0,
        }
    }

    /// Stages that dense output uses, of a step with these stages that ends at t₁ in the treated x₁.
    fn dense_stages(
        &self,
        g: &mut Graph,
        tableau: &'static Tableau,
        mut kept: Vec<Vec<Node>>,
        (from, t1, x1): (StepFrom<Node>, Node, &[Node]),
    ) -> Vec<Vec<Node>> {
        let dense = dense_of(tableau);
        self.traced(g, |space| {
            if !tableau.first_same_as_last {
                let mut end_field = x1.to_vec();
                space.field(&mut end_field, t1, x1);
                kept[dense.endpoint] = end_field;
            }
            dense_stages(tableau, dense, space, from, &mut ExplicitStages::of(tableau, &mut kept));
        });
        // Other vectors stand behind the stages.
        let stages = kept.into_iter().take(tableau.stage_count()).enumerate();
        stages.filter(|(i, _)| dense.uses(*i)).map(|(_, stage)| stage).collect()
    }
}

/// Dense output of a scheme with an error estimate.
fn dense_of(tableau: &'static Tableau) -> &'static Dense {
    tableau.dense.as_ref().expect("a scheme with an error estimate has dense output")
}

/// Dense output of a step of the length h from x, by weights b_i(θ) of all stages; `kept` are those
/// whose weights do not vanish identically.
fn dense_output(
    g: &mut Graph,
    tableau: &'static Tableau,
    kept: &[Vec<Node>],
    (h, x): (Node, &[Node]),
    weights: &[Node],
) -> Vec<Node> {
    let dense = dense_of(tableau);
    // Weights that vanish identically are left out, as in sums over slices.
    let weights: Vec<Node> =
        (0..weights.len()).filter(|&i| dense.uses(i)).map(|i| weights[i]).collect();
    g.record(|r| {
        let component = |(component, &x): (usize, &Node)| {
            let terms = weights.iter().zip(kept).map(|(&weight, k)| (weight, k[component]));
            let sum = products(terms.map(|(weight, k)| (r.value(weight), r.value(k))));
            let sum = sum.expect("some weights do not vanish");
            r.value(h).mul_add(sum, r.value(x)).node()
        };
        x.iter().enumerate().map(component).collect()
    })
}

/// Tapes of samples within an accepted attempt.
pub struct SampleTapes {
    /// Map from the numbers of [`Within`] to those of the attempt's interpolant, of which the first is
    /// its length.
    pub interpolant: Tape,
    /// Map from the numbers of [`Within`], behind them the weights of dense output and the
    /// interpolant, to the treated state, the largest deviation of every group there, and
    /// [`Settled::unsettled`].
    pub sample: Tape,
}

/// Interpolant of an attempt of the length h.
struct Interpolant {
    h: Node,
    by: StepInterpolant,
}

impl Interpolant {
    /// Its numbers.
    fn nodes(&self) -> impl Iterator<Item = Node> {
        let (vectors, length): (&[Vec<Node>], _) = match &self.by {
            StepInterpolant::None => (&[], None),
            StepInterpolant::Stages(stages) => (stages, None),
            StepInterpolant::Series { coefficients, length } => (coefficients, Some(*length)),
        };
        [self.h].into_iter().chain(length).chain(vectors.iter().flatten().copied())
    }

    /// Interpolant with other nodes, in the order of [`Interpolant::nodes`].
    fn map(&self, mut f: impl FnMut(Node) -> Node) -> Interpolant {
        let h = f(self.h);
        let vectors = |f: &mut dyn FnMut(Node) -> Node, vectors: &[Vec<Node>]| {
            vectors.iter().map(|vector| vector.iter().map(|&node| f(node)).collect()).collect()
        };
        let by = match &self.by {
            StepInterpolant::None => StepInterpolant::None,
            StepInterpolant::Stages(stages) => StepInterpolant::Stages(vectors(&mut f, stages)),
            StepInterpolant::Series { coefficients, length } => {
                let length = f(*length);
                StepInterpolant::Series { coefficients: vectors(&mut f, coefficients), length }
            }
        };
        Interpolant { h, by }
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
    /// Parameter `number` of those that a loop takes from the run.
    fn parameter<'r>(&self, r: &'r Recording, number: usize) -> Value<'r> {
        r.parameter(self.parameters + number)
    }

    /// Largest estimate that is accepted, relative to the scales.
    pub fn tolerance(&self, g: &mut Graph) -> Node {
        g.parameter(self.parameters)
    }

    /// Time that is `elapsed` after the start.
    fn time<'r>(&self, r: &'r Recording, elapsed: Value<'r>) -> Value<'r> {
        time([1, 5, 6].map(|number| self.parameter(r, number)), elapsed)
    }

    /// Attempt that begins with the slots `before`.
    fn plan<'a, 'r>(
        &self,
        r: &'r Recording,
        before: &[Value<'r>],
        begin: impl FnOnce(&mut Graph, AttemptInputs) -> AttemptPlan<'a>,
    ) -> PreparedAttempt<'a, 'r> {
        let slots = self.slots;
        let (own, floors) = before[slots.norms.clone()].split_at(self.vectors.vectors.count());
        // After some rejections, vectors that have always been 0 do not count.
        let all_count = before[slots.rejections].less(r.constant(f64::from(REJECTIONS_OF_NEW)));
        let own = own.iter().map(|&norm| Value::select(all_count, norm, old_norm(norm)));
        let norms: Vec<Value> = own.chain(floors.iter().copied()).collect();
        let h = before[slots.h].smaller(self.parameter(r, 2));
        let (t, of_norms) = (before[slots.t].node(), &nodes(&norms)[..]);
        let AttemptPlan { length, attempt } = r.nodes(|g| {
            let scales = Scales { norms: of_norms, tolerance: self.tolerance(g) };
            begin(g, AttemptInputs { t, h: h.node(), scales })
        });
        PreparedAttempt { trial: self.trial(r, before, r.value(length)), norms, attempt }
    }

    /// Length and end of an attempt with these slots that is to be `h` long; it does not pass the
    /// pause.
    fn trial<'r>(&self, r: &'r Recording, before: &[Value<'r>], h: Value<'r>) -> Trial<Value<'r>> {
        let slots = self.slots;
        let limits = (self.parameter(r, 1), self.parameter(r, 3));
        let trial = trial(limits, before[slots.elapsed], h, before[slots.rejections]);
        Trial { resolves: trial.resolves & trial.end.less(before[slots.pause]), ..trial }
    }

    /// Length of the attempt that follows one judged so, which holds the loop where there may be
    /// none.
    pub fn next(&self, g: &mut Graph, judgement: &mut Judgement, before: &[Node]) -> Node {
        let slots = self.slots;
        let after = [&judgement.after, &before[judgement.after.len()..]].concat();
        g.record(|r| {
            let after = r.values(&after);
            let wanted = after[slots.h].smaller(self.parameter(r, 2));
            let Trial { length, resolves, .. } = self.trial(r, &after, wanted);
            let [going, held] = [Status::Going, Status::Held].map(|s| r.constant(s.number()));
            let (status, is_going) = (after[slots.status], after[slots.status].equals(going));
            let status = Value::select(is_going & !resolves, held, status);
            judgement.after[slots.status] = status.node();
            judgement.goes_on = (is_going & resolves).node();
            length.node()
        })
    }

    /// Judge an attempt that begins with the slots `before`. The loop holds where it is not
    /// `like_others`.
    pub fn judge<'a>(
        &self,
        g: &mut Graph,
        before: &[Node],
        like_others: Option<Node>,
        begin: impl FnOnce(&mut Graph, AttemptInputs) -> AttemptPlan<'a>,
    ) -> Judgement {
        let AttemptLoop { slots, settling, targets, .. } = *self;
        let count = self.vectors.vectors.count();
        g.record(|r| {
            let before = &r.values(before)[..];
            let PreparedAttempt { mut trial, norms, attempt } = self.plan(r, before, begin);
            if let Some(like_others) = like_others {
                trial.resolves = trial.resolves & r.truth(like_others);
            }
            let length = trial.length.node();
            let attempted = r.nodes(|g| attempt(g, length));
            let x1 = r.values(&attempted.x1);
            let (square, sizes, errors) = self.measure(r, before, &norms, &trial, &attempted);
            let (mut carry, weights) = {
                let (sizes, weights) = before[slots.carried.clone()].split_at(count);
                (sizes.to_vec(), &mut weights.to_vec())
            };
            advance(&mut carry, weights, &sizes, &errors);
            let renewed = self.renewed_norms(r, before, &carry);
            carry.append(weights);
            let t1 = self.time(r, trial.end);
            let scales = nodes(&carry[settling.scales()]);
            let settled = r.nodes(|g| {
                let target = settling.targets(g, |g, row| g.parameter(targets + row));
                settling.at(g, t1.node(), &[&attempted.x1[..], &target].concat(), &scales)
            });
            let sides = &before[slots.sides.clone()];
            let at_end = (t1.node(), &settled.x[..], length);
            let kept = r.nodes(|g| settling.watching.at(g, at_end, &nodes(sides)));
            for (side, kept) in sides.iter().zip(r.values(&kept)) {
                trial.resolves = trial.resolves & kept.equals(*side);
            }
            let verdict = self.verdict(r, before, (square, &x1), &trial, &settled);
            let end_field = r.values(&attempted.end_field);
            let result = [
                (slots.x.clone(), r.values(&settled.x)),
                (slots.first.clone(), end_field),
                (slots.carried.clone(), carry),
                (slots.norms.clone(), renewed),
            ];
            let mut after = before.to_vec();
            for (slot, value) in result.into_iter().flat_map(|(slots, all)| slots.zip(all)) {
                after[slot] = Value::select(verdict.accepted, value, before[slot]);
            }
            self.record_drift(r, &mut after, &settled, (verdict.accepted, t1));
            self.go_on(r, &mut after, &trial, t1, &verdict);
            after.truncate(slots.changed());
            let goes_on = after[slots.status].at_most(r.constant(Status::Idle.number())).node();
            Judgement { after: nodes(&after), accepted: verdict.accepted.node(), goes_on }
        })
    }

    /// S² and floors of momenta from σ² after an attempt.
    fn renewed_norms<'r>(
        &self,
        r: &'r Recording,
        before: &[Value<'r>],
        sizes: &[Value<'r>],
    ) -> Vec<Value<'r>> {
        let (vectors, masses) = (&self.vectors.vectors, &before[self.slots.masses.clone()]);
        let mut norms = Vec::new();
        set_norms(vectors, sizes, masses, self.parameter(r, 4), &mut norms);
        norms
    }

    /// Square of the error of an attempt in units of the tolerance, and the squared sizes and errors
    /// of its vectors.
    fn measure<'r>(
        &self,
        r: &'r Recording,
        before: &[Value<'r>],
        norms: &[Value<'r>],
        trial: &Trial<Value<'r>>,
        attempted: &AttemptResult,
    ) -> (Value<'r>, Vec<Value<'r>>, Vec<Value<'r>>) {
        let vectors = &self.vectors.vectors;
        let (mut sizes, mut squares) = (norms[..vectors.count()].to_vec(), Vec::new());
        squares.clone_from(&sizes);
        let measured = &mut Measured { sizes: &mut sizes, errors: &mut squares };
        let errors: Vec<Vec<Value>> = attempted.errors.iter().map(|e| r.values(e)).collect();
        let rounding = &before[self.slots.rounding.clone()];
        let yardstick = Yardstick { rtol: self.parameter(r, 0), vectors, norms, rounding };
        let x1 = r.values(&attempted.x1);
        let mut square = squared_error(trial.length, &errors, &x1, yardstick, measured);
        if let Some((factor, unsolved)) = attempted.allowance {
            let [squared_factor, unsolved] = [factor, unsolved].map(|node| r.value(node));
            let allowance = Allowance { squared_factor, unsolved };
            square = allowance.apply(square, measured);
        }
        (square, sizes, squares)
    }

    /// Verdict on an attempt to x₁ with the square of its error.
    fn verdict<'r>(
        &self,
        r: &'r Recording,
        before: &[Value<'r>],
        (square, x1): (Value<'r>, &[Value<'r>]),
        trial: &Trial<Value<'r>>,
        settled: &Settled,
    ) -> Verdict<'r> {
        let slots = self.slots;
        let [zero, one, nan] = [0.0, 1.0, f64::NAN].map(|number| r.constant(number));
        let square = Value::select(all_finite(x1), square, nan);
        let small = square.at_most(one);
        let whole = all_finite(&r.values(&[&settled.x[..], &settled.largest].concat()));
        let mut good = small & whole;
        if self.projects() {
            good = good & r.value(settled.unsettled).finite();
        }
        let going = before[slots.status].equals(zero) & trial.resolves;
        let is_first = before[slots.rejections].equals(zero);
        // An error that is not a number rejects any attempt but the first.
        let retried = one.less(square) | !is_first;
        let (accepted, rejected) = (going & good, going & !small & retried);
        Verdict { square, small, whole, is_first, accepted, rejected }
    }

    /// True if results are projected.
    fn projects(&self) -> bool {
        matches!(self.settling.mend(), Some(Mend::Projects { .. }))
    }

    /// Record the deviations and the innovation of an accepted attempt.
    fn record_drift<'r>(
        &self,
        r: &'r Recording,
        after: &mut [Value<'r>],
        settled: &Settled,
        (accepted, t1): (Truth<'r>, Value<'r>),
    ) {
        let slots = self.slots;
        for (slot, deviation) in slots.largest.clone().zip(r.values(&settled.largest)) {
            after[slot] = Value::select(accepted, deviation.largest(after[slot]), after[slot]);
        }
        if self.settling.mend().is_some() {
            let innovation = r.value(settled.unsettled).sqrt();
            let larger = accepted & after[slots.innovation].less(innovation);
            for (slot, value) in [(slots.innovation, innovation), (slots.innovation_at, t1)] {
                after[slot] = Value::select(larger, value, after[slot]);
            }
        }
    }

    /// Record the time, the controller's numbers, the counts and the status after an attempt.
    fn go_on<'r>(
        &self,
        r: &'r Recording,
        after: &mut [Value<'r>],
        trial: &Trial<Value<'r>>,
        t1: Value<'r>,
        verdict: &Verdict<'r>,
    ) {
        let slots = self.slots;
        let [zero, one] = [0.0, 1.0].map(|number| r.constant(number));
        let Verdict { square, small, whole, is_first, accepted, rejected } = *verdict;
        let memory = [after[slots.h_accepted], after[slots.last_error]];
        let judged = JudgedAttempt { length: trial.length, square, is_first, accepted };
        let [h, last_error] = Controller::new(&self.control).next(memory, judged);
        let again = after[slots.rejections] + one;
        for (slot, changes, value) in [
            (slots.t, accepted, t1),
            (slots.elapsed, accepted, trial.end),
            (slots.h, accepted | rejected, h),
            (slots.h_accepted, accepted, h),
            (slots.last_error, accepted, last_error),
            (slots.rejections, accepted | rejected, Value::select(accepted, zero, again)),
            (slots.steps, accepted, after[slots.steps] + one),
            (slots.rejected, rejected, after[slots.rejected] + one),
        ] {
            after[slot] = Value::select(changes, value, after[slot]);
        }
        // The most particular status last.
        let number = |status: Status| r.constant(status.number());
        let mut broken = number(Status::Broken);
        if self.projects() {
            broken = Value::select(whole, number(Status::Unsettled), broken);
        }
        let ended = Value::select(small, broken, number(Status::Undefined));
        let ended = Value::select(trial.resolves, ended, number(Status::Held));
        let at_end = Value::select(trial.is_last, number(Status::Arrived), zero);
        let now = Value::select(accepted, at_end, ended);
        let now = Value::select(rejected, zero, now);
        let status = after[slots.status];
        after[slots.status] = Value::select(status.equals(zero), now, status);
    }
}

/// Verdict on an attempt.
struct Verdict<'r> {
    /// Square of its error in units of the tolerance, NaN if x₁ is not finite.
    square: Value<'r>,
    /// True if the error is small enough.
    small: Truth<'r>,
    /// True if its treated result is finite.
    whole: Truth<'r>,
    /// True if it is the first attempt at its step.
    is_first: Truth<'r>,
    accepted: Truth<'r>,
    rejected: Truth<'r>,
}

/// Time that is `elapsed` after the start, if the parameters of the run begin at number `first`.
fn time_after(g: &mut Graph, first: usize, elapsed: Node) -> Node {
    g.record(|r| time([1, 5, 6].map(|k| r.parameter(first + k)), r.value(elapsed)).node())
}

/// True if no number is infinite or NaN; in pairs of pairs, which wait for each other least.
fn all_finite<'r>(all: &[Value<'r>]) -> Truth<'r> {
    let sizes = all.iter().map(|number| number.abs()).collect();
    in_pairs(sizes, Value::largest).expect("there are some").finite()
}

#[cfg(test)]
mod tests {
    use crate::simulation::Trajectory;
    use crate::{Problem, RunOptions, Settings, Simulation, StepSize, prepare};
    use holonome_integrate::observer::Recorder;
    use holonome_integrate::run::run_map;
    use holonome_integrate::state::StepState;
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
            let run = |Simulation { plan, trajectory, problem, .. }: &Simulation,
                       in_loops: bool| {
                let Trajectory { step, system, .. } = trajectory;
                let mut state = StepState::new(plan, &**system, &problem.model.initial, None);
                let map = step.map(plan, &**system).expect("the step is compiled");
                assert_eq!(map.attempts().is_some(), in_loops, "{method}: {text}");
                let end = run_map(plan, &**system, &*map, &mut state, &mut Recorder::default());
                (format!("{end:?}"), facts(serde_json::to_value(&state).unwrap()), state)
            };
            let looped = run(&simulation, true);
            simulation.trajectory.step.leave_loops();
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
}
