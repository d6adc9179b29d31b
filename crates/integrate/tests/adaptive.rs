//! Adaptive runs: accuracy against tolerance, exact evaluation counts, outputs that do not disturb
//! the steps, steps that have no tableau.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use common::*;
use holonome_integrate::controller::StepControl;
use holonome_integrate::method::SCHEMES;
use holonome_integrate::observer::Recorder;
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::run::{Outcome, run_map};
use holonome_integrate::scales::Role;
use holonome_integrate::scheme::map::{
    Allowance, Estimate, Facts, NoStep, StepFrom, StepMap, Workspace,
};
use holonome_integrate::state::StepState;
use holonome_integrate::system::{FnSystem, Invariants, System, Vectors};

const DRIVEN_START: [f64; 2] = [1.2, 0.5];

#[test]
fn the_error_follows_the_tolerance() {
    let system = driven();
    let reference =
        finish(&Plan::fixed(method("dop853"), 0.0, 5.0, 0.01).unwrap(), &system, &DRIVEN_START).0.x;
    for scheme in SCHEMES.iter().filter(|scheme| scheme.adaptive() && !scheme.needs_formulas()) {
        let mut points = Vec::new();
        for rtol in [1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9] {
            let plan = Plan::adaptive(method(scheme.name), 0.0, 5.0, rtol, rtol).unwrap();
            let (state, _) = finish(&plan, &system, &DRIVEN_START);
            let error = distance(&state.x, &reference);
            points.push((rtol, error, state.cost.field));
            assert_eq!(state.t, 5.0, "the last step lands on the end");
            // Each of some tens of steps errs by the tolerance at most, and the oscillator
            // amplifies by about e over T = 5 (scipy's RK23, RK45 and DOP853 err by 2 to 20
            // tolerances here).
            assert!(error < 50.0 * rtol, "{} at {rtol}: {error}", scheme.name);
        }
        let decades = (points[0].1 / points[5].1).log10();
        println!("{} {decades:.2} {points:?}", scheme.name);
        // Per step the error is proportional to the tolerance; over five decades that leaves a
        // factor of ten for luck.
        assert!((3.5..6.5).contains(&decades), "{}: {decades}", scheme.name);
    }
}

/// The pendulum, with the calls of the field counted, but for those that judge claims about the
/// motion: these are monitoring and no cost.
struct Counted {
    system: FnSystem<'static>,
    calls: AtomicU64,
}

impl System for Counted {
    fn dim(&self) -> usize {
        self.system.dim()
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.system.field(t, x, dx, work);
    }

    fn motion(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) -> bool {
        self.system.motion(t, x, dx, work)
    }

    fn vectors(&self) -> &Vectors {
        self.system.vectors()
    }

    fn invariants(&self) -> &Invariants {
        self.system.invariants()
    }

    fn invariant_values(&self, t: f64, x: &[f64], f: &mut [f64], work: &mut [f64]) {
        self.system.invariant_values(t, x, f, work);
    }

    fn invariant_jacobian(&self, t: f64, x: &[f64], values: &mut [f64], work: &mut [f64]) {
        self.system.invariant_jacobian(t, x, values, work);
    }
}

fn run_counted(plan: &Plan) -> StepState {
    let counted = Counted { system: pendulum(), calls: AtomicU64::new(0) };
    let (state, _) = finish(plan, &counted, &PENDULUM_START);
    assert_eq!(
        state.cost.field,
        counted.calls.into_inner(),
        "{}: the count is what was called",
        plan.method
    );
    state
}

#[test]
fn fixed_steps_evaluate_no_stage_for_nothing() {
    for (scheme, per_step) in [
        ("euler", 1),
        ("midpoint", 2),
        ("heun", 2),
        ("rk4", 4),
        ("bs3", 3),
        ("dopri5", 6),
        ("tsit5", 6),
        ("dop853", 12),
    ] {
        for treatment in ["plain", "corrected", "projection"] {
            let plan =
                Plan::fixed(method(&format!("{treatment}:{scheme}")), 0.0, 1.0, 0.01).unwrap();
            let state = run_counted(&plan);
            // If the metric of the step's error is used and the estimate lags behind, the first
            // step is made twice and the field taken at its end. The field at its start is known
            // then.
            let weighs = treatment != "plain";
            let rehearsal = if weighs && scheme != "dop853" { per_step } else { 0 };
            assert_eq!(
                (state.step, state.cost.field),
                (100, 100 * per_step + rehearsal),
                "{treatment}:{scheme}"
            );
        }
    }
}

#[test]
fn adaptive_steps_reuse_what_they_can() {
    for scheme in ["bs3", "dopri5", "tsit5", "dop853"] {
        for treatment in ["plain", "corrected", "projection"] {
            // A first step that is far too long makes some rejections certain.
            let mut plan =
                Plan::adaptive(method(&format!("{treatment}:{scheme}")), 0.0, 10.0, 1e-7, 1e-7)
                    .unwrap();
            let Stepping::Adaptive(adaptive) = &mut plan.stepping else { unreachable!() };
            adaptive.first_step = Some(5.0);
            let state = run_counted(&plan);
            let (steps, rejected) = (state.step, state.cost.rejected);
            assert!(rejected > 0);
            let tableau = plan.method.scheme.tableau();
            // Every attempt evaluates the stages after the first; the first is evaluated once per
            // accepted step unless the step before left it behind, which an untreated FSAL pair
            // does.
            let attempts = (steps + rejected) * (tableau.stages as u64 - 1);
            let firsts = if tableau.first_same_as_last && treatment == "plain" { 1 } else { steps };
            assert_eq!(state.cost.field, attempts + firsts, "{treatment}:{scheme}");
            // The choice of the first step costs one evaluation more.
            let Stepping::Adaptive(adaptive) = &mut plan.stepping else { unreachable!() };
            adaptive.first_step = None;
            let state = run_counted(&plan);
            let (steps, rejected) = (state.step, state.cost.rejected);
            let attempts = (steps + rejected) * (tableau.stages as u64 - 1);
            let firsts = if tableau.first_same_as_last && treatment == "plain" { 1 } else { steps };
            assert_eq!(state.cost.field, attempts + firsts + 1, "{treatment}:{scheme}");
        }
    }
}

#[test]
fn dense_output_costs_three_stages_where_it_is_used() {
    for treatment in ["plain", "corrected"] {
        let bare =
            Plan::adaptive(method(&format!("{treatment}:dop853")), 0.0, 10.0, 1e-7, 1e-7).unwrap();
        let without = run_counted(&bare);
        // A single output within the second step or so: three stages; the field at its end serves
        // the next step.
        let mut one = bare.clone();
        let Stepping::Adaptive(adaptive) = &mut one.stepping else { unreachable!() };
        adaptive.samples = vec![0.5];
        assert_eq!(run_counted(&one).cost.field, without.cost.field + 3);
        // Two outputs in one step cost no more than one.
        let mut two = bare.clone();
        let Stepping::Adaptive(adaptive) = &mut two.stepping else { unreachable!() };
        adaptive.samples = vec![0.5, 0.5 + 1e-6];
        assert_eq!(run_counted(&two).cost.field, without.cost.field + 3);
        // In the last step the field at its end serves nothing else.
        let mut last = bare.clone();
        let Stepping::Adaptive(adaptive) = &mut last.stepping else { unreachable!() };
        adaptive.samples = vec![10.0 - 1e-6];
        assert_eq!(run_counted(&last).cost.field, without.cost.field + 4);
    }
    for scheme in ["bs3", "dopri5", "tsit5"] {
        let bare = Plan::adaptive(method(scheme), 0.0, 10.0, 1e-7, 1e-7).unwrap();
        let many = bare.clone().with_samples(1001).unwrap();
        assert_eq!(run_counted(&many).cost.field, run_counted(&bare).cost.field, "{scheme}");
    }
}

#[test]
fn outputs_do_not_disturb_the_steps() {
    for scheme in SCHEMES.iter().filter(|scheme| scheme.adaptive() && !scheme.needs_formulas()) {
        for treatment in ["plain", "corrected", "projection"] {
            let few = Plan::adaptive(
                method(&format!("{treatment}:{}", scheme.name)),
                0.0,
                10.0,
                1e-6,
                1e-6,
            )
            .unwrap();
            let many = few.clone().with_samples(777).unwrap();
            let system = pendulum();
            let (few, _) = finish(&few, &system, &PENDULUM_START);
            let (many, recorder) = finish(&many, &system, &PENDULUM_START);
            assert_eq!(
                (few.x, few.step),
                (many.x.clone(), many.step),
                "{treatment}:{}",
                scheme.name
            );
            assert_eq!((recorder.t.len(), recorder.t[776], &recorder.x[776]), (777, 10.0, &many.x));
            assert_eq!(recorder.x[0], PENDULUM_START);
            assert!(recorder.t.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}

#[test]
fn steps_stay_within_their_limits() {
    let mut plan = Plan::adaptive(method("dop853"), 0.0, 10.0, 1e-6, 1e-6).unwrap();
    let Stepping::Adaptive(adaptive) = &mut plan.stepping else { unreachable!() };
    adaptive.longest_step = 0.01;
    let (state, _) = finish(&plan, &driven(), &DRIVEN_START);
    // The last step may be 1 % longer rather than leave a sliver.
    assert!(state.step == 1000 || state.step == 1001, "{}", state.step);
}

#[test]
fn a_shorter_last_step_lands_on_the_end() {
    let (system, exact) = (driven(), Plan::fixed(method("dop853"), 0.0, 1.0, 0.01).unwrap());
    let plan = Plan::fixed(method("dop853"), 0.0, 1.0, 0.03).unwrap().with_samples(100).unwrap();
    let (state, recorder) = finish(&plan, &system, &DRIVEN_START);
    assert_eq!((state.t, state.step, recorder.t.len()), (1.0, 34, 35));
    // An 8th order method at h = 0.03 is at round-off: 34 steps of ε.
    assert!(distance(&state.x, &finish(&exact, &system, &DRIVEN_START).0.x) < 2e-14);
}

/// Taylor's method of order 8 for the logistic equation x' = x (1 − x), with the last term but one
/// as the estimate of the error and its polynomial as the interpolant: a map that has neither
/// stages nor a tableau.
struct Taylor;

const TERMS: usize = 8;
const TAYLOR: Facts = Facts {
    control: Some(StepControl::of_error(TERMS as u32, TERMS as u32 - 1)),
    equal_steps: Estimate::None,
    errors: 1..2,
    end_field: None,
    ends_with_field: false,
};

impl StepMap for Taylor {
    fn facts(&self) -> &Facts {
        &TAYLOR
    }

    fn vectors(&self) -> usize {
        // The field, the estimate, and the coefficients.
        2 + TERMS + 1
    }

    fn work_len(&self) -> usize {
        0
    }

    fn takes_first_stage(&self) -> bool {
        false
    }

    fn fixed_step(
        &self,
        step: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<(), NoStep> {
        self.attempt(step, x1, workspace);
        Ok(())
    }

    fn attempt(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Allowance {
        let (begin, c) = workspace.kept.split_at_mut(2);
        c[0].copy_from_slice(step.x);
        for k in 0..TERMS {
            // (k + 1) c_{k+1} = c_k − Σ c_j c_{k−j}
            let square: f64 = (0..=k).map(|j| c[j][0] * c[k - j][0]).sum();
            c[k + 1][0] = (c[k][0] - square) / (k + 1) as f64;
        }
        // Without its factor h, as all estimates are.
        begin[1][0] = c[TERMS][0] * step.h.powi(TERMS as i32 - 1);
        workspace.cost.field += 1;
        self.interpolate(step, 1.0, x1, workspace);
        Allowance::NONE
    }

    fn interpolate(&self, step: StepFrom, theta: f64, out: &mut [f64], workspace: &mut Workspace) {
        let terms = workspace.kept[2..].iter().rev();
        out[0] = terms.fold(0.0, |sum, c| sum * (theta * step.h) + c[0]);
    }
}

#[test]
fn a_step_needs_no_tableau() {
    let system = FnSystem::new(1, |_t, x: &[f64], dx: &mut [f64]| dx[0] = x[0] * (1.0 - x[0]));
    let exact = |t: f64| 1.0 / (1.0 + 9.0 * (-t).exp());
    let run = |plan: &Plan| {
        let (mut state, mut recorder) =
            (StepState::new(plan, &system, &[0.1], None), Recorder::default());
        assert_eq!(
            run_map(plan, &system, &Taylor, &mut state, &mut recorder).unwrap(),
            Outcome::Finished
        );
        (state, recorder)
    };
    // The method of the plan says only that steps may be adapted.
    let mut errors = Vec::new();
    for rtol in [1e-6, 1e-8, 1e-10, 1e-12] {
        let plan = Plan::adaptive(method("dop853"), 0.0, 8.0, rtol, 0.0)
            .unwrap()
            .with_samples(101)
            .unwrap();
        let (state, samples) = run(&plan);
        assert_eq!(samples.t.len(), 101);
        let largest = samples
            .t
            .iter()
            .zip(&samples.x)
            .map(|(&t, x)| (x[0] - exact(t)).abs())
            .fold(0.0, f64::max);
        // The estimate is of the order below, so that a step errs by less than the tolerance;
        // errors shrink towards 1.
        assert!(largest < 10.0 * rtol, "{largest:e} at {rtol:e} in {} steps", state.step);
        errors.push(largest);
    }
    assert!(errors[3] < 1e-4 * errors[0], "{errors:?}");
    // Equal steps have order 8: halved, they err less by 2⁸.
    let end =
        |h: f64| (run(&Plan::fixed(method("rk4"), 0.0, 8.0, h).unwrap()).0.x[0] - exact(8.0)).abs();
    let lengths = [1.0, 0.5, 0.25, 0.125];
    let orders: Vec<f64> = lengths.windows(2).map(|h| (end(h[0]) / end(h[1])).log2()).collect();
    assert!(orders.iter().all(|order| (7.2..9.2).contains(order)), "{orders:?}");
}

/// A part of the state that has decayed below all numbers is small and has no scale of its own: the
/// stages of an implicit step are found all the same.
#[test]
fn what_has_decayed_holds_up_no_iteration() {
    let system = FnSystem::new(2, |_, x: &[f64], dx: &mut [f64]| {
        dx.copy_from_slice(&[-1000.0 * x[0], x[0] - x[1]]);
    });
    for scheme in ["gauss8", "gauss16"] {
        for plan in [
            Plan::adaptive(method(scheme), 0.0, 3.0, 1e-9, 0.0).unwrap(),
            Plan::fixed(method(scheme), 0.0, 3.0, 1e-3).unwrap(),
        ] {
            let (state, _) = finish(&plan, &system, &[1.0, 1.0]);
            // e⁻¹⁰⁰⁰ᵗ is 0 in doubles long before; y = (1 + 1/999) e⁻ᵗ then.
            let exact = (1.0 + 1.0 / 999.0) * (-3f64).exp();
            assert!(
                state.x[0].abs() < 1e-9 && (state.x[1] - exact).abs() < 1e-9,
                "{scheme}: {:?} {exact}",
                state.x
            );
        }
    }
}

/// A planet that moves evenly, and a moon that it attracts, of masses 1 and [`Moon::MASS`]: two
/// positions, then two momenta.
struct Moon(FnSystem<'static>);

impl Moon {
    const MASS: f64 = 5e-5;
    const DISTANCE: f64 = 2.8e-3;
    const SPEED: f64 = 0.01;

    fn new() -> Moon {
        let mut vectors = Vectors::default();
        vectors.push(Role::Position, 2, 2);
        vectors.push(Role::Momentum, 2, 2);
        let system = FnSystem::new(8, |_, x: &[f64], dx: &mut [f64]| {
            let d = [x[2] - x[0], x[3] - x[1]];
            let square = d[0] * d[0] + d[1] * d[1];
            let strength = Moon::MASS * Moon::SPEED * Moon::SPEED * Moon::DISTANCE;
            let pull = strength / (square * square.sqrt());
            let v = [x[6], x[7]].map(|p| p / Moon::MASS);
            dx.copy_from_slice(&[x[4], x[5], v[0], v[1], 0.0, 0.0, -pull * d[0], -pull * d[1]]);
        });
        Moon(system.with_vectors(vectors))
    }
}

impl System for Moon {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.0.field(t, x, dx, work);
    }

    fn vectors(&self) -> &Vectors {
        self.0.vectors()
    }

    fn masses(&self, _t: f64, _x: &[f64], masses: &mut [f64], _work: &mut [f64]) {
        masses.copy_from_slice(&[1.0, Moon::MASS, 1.0, Moon::MASS]);
    }

    fn invariants(&self) -> &Invariants {
        self.0.invariants()
    }
}

/// A light moon near a planet that is far from the origin: its force is of a difference of
/// positions, in which the rest of an iteration and roundings are two thousand times as large as in
/// them. Such errors, which shorter steps do not reduce as an order does, shorten none.
#[test]
fn errors_of_cancelling_positions_shorten_no_steps() {
    let (system, time) = (Moon::new(), 200.0);
    let (mass, distance, speed) = (Moon::MASS, Moon::DISTANCE, Moon::SPEED);
    let moving = [5e-3, -6e-3, mass * 5e-3, mass * (speed - 6e-3)];
    let start = [&[-4.0, 3.0, -4.0 + distance, 3.0], &moving[..]].concat();
    let steps = |rtol: f64| {
        let plan = Plan::adaptive(method("gauss16"), 0.0, time, rtol, 0.0).unwrap();
        let (state, _) = finish(&plan, &system, &start);
        let end = [state.x[2] - state.x[0], state.x[3] - state.x[1]];
        let angle = speed / distance * time;
        let exact = [distance * angle.cos(), distance * angle.sin()];
        (state.step, self::distance(&end, &exact) / distance)
    };
    let found = [1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 3e-13].map(|rtol| (rtol, steps(rtol)));
    let least = found.iter().map(|(_, (steps, _))| *steps).min().unwrap();
    for (rtol, (steps, error)) in found {
        assert!(steps <= 3 * least, "{rtol}: {steps} steps, {least} at another tolerance");
        // The tolerance is relative to positions, 2000 times the distance, and errors grow over a
        // hundred turns.
        assert!(error < 1e5 * rtol, "{rtol}: {error}");
    }
}
