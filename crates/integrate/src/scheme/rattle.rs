//! SHAKE and RATTLE for constraints g(q, p) = 0 whose brackets {g_i, g_j} vanish on
//! the constraint set, as those of all g(q) do: slide, map, slide.
//!
//! The fibre of a point is the orbit of the flows of X_{g_i}; for g(q) it is p −
//! Gᵀλ. With an unconstrained symplectic map Ψ_h, slide x along its fibre so that
//! Ψ_h lands on g = 0: that is SHAKE. RATTLE slides along the fibre at the end,
//! too, until the hidden constraints X_{g_i}(H) = 0 hold. Both are symplectic on
//! the constraint set, where it is the hidden one for RATTLE, and do not change
//! when the start moves along its fibre. Ψ_h is `stormer-verlet-a` unless another
//! base is named, as in `rattle:gauss4`.
//!
//! The multipliers are forces: they act for half a step at either end of a step of
//! RATTLE, and for a whole step at the start of one of SHAKE, where those at the
//! end belong to the next.

use super::{Needs, Scheme, SchemeFacts, Step, StepFn};
use crate::phase_space::{Equation, Equations, Guess, Monitored, PhaseSpace, Value};

pub(super) static SHAKE: Scheme = Scheme {
    name: "shake",
    other_names: &[],
    needs: Needs::Coisotropic,
    description: "lands on the constraints by sliding along the fibres before an unconstrained map",
    citation: "Ryckaert, Ciccotti, Berendsen, J. Comput. Phys. 23 (1977) 327; McLachlan, Modin, Verdier, Wilkins, Found. Comput. Math. 14 (2014) 339",
    file: include_str!("rattle.rs"),
    step: Step::Sliding(
        shake,
        SchemeFacts { order: 2, symmetric: false, symplectic: true, explicit: false },
    ),
};

/// Row of the registry.
pub static RATTLE: Scheme = Scheme {
    name: "rattle",
    other_names: &[],
    needs: Needs::Coisotropic,
    description: "SHAKE that slides again at the end, onto the hidden constraints: for long runs with constraints",
    citation: "Andersen, J. Comput. Phys. 52 (1983) 24; Hairer, Lubich, Wanner, GNI, VII.1 (1.26); McLachlan, Modin, Verdier, Wilkins, Found. Comput. Math. 14 (2014) 339",
    file: include_str!("rattle.rs"),
    step: Step::Sliding(
        rattle,
        SchemeFacts { order: 2, symmetric: true, symplectic: true, explicit: false },
    ),
};

/// SHAKE with the unconstrained map `base`.
fn shake(space: &mut dyn PhaseSpace, base: StepFn, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (lambda, x1) = land(space, base, t, h, h, x);
    space.record_multipliers(&lambda, &[]);
    x1
}

/// RATTLE with the unconstrained map `base`.
pub fn rattle(
    space: &mut dyn PhaseSpace,
    base: StepFn,
    t: Value,
    h: Value,
    x: &[Value],
) -> Vec<Value> {
    let half = space.scaled(0.5, h);
    let (lambda, x1) = land(space, base, t, h, half, x);
    let t1 = space.sum(t, h);
    let (mu, settled) = settle(space, t1, half, &x1, Monitored::Always);
    space.record_multipliers(&lambda, &mu);
    settled
}

/// Multipliers μ with which slide(μ·`time`) brings x onto the hidden constraints, and the state
/// there.
pub(super) fn settle(
    space: &mut dyn PhaseSpace,
    t: Value,
    time: Value,
    x: &[Value],
    monitored: Monitored,
) -> (Vec<Value>, Vec<Value>) {
    let size = space.constraint_sizes(t, x, true);
    let rows: Vec<Equation> = (0..size.len()).map(Equation::Hidden).collect();
    let equations = Equations {
        rows: &rows,
        size: &size,
        sweep_size: &[],
        guess: Guess::Last,
        monitored,
        monotone: None,
    };
    let mut settled = Vec::new();
    let mu = space.solve(&equations, &mut |space, mu| {
        let impulse = space.multiplied(time, mu);
        settled = space.slide(t, x, &impulse);
        space.hidden_constraints(t, &settled)
    });
    (mu, settled)
}

/// Multipliers λ with which Ψ_h(slide(λ·`time`)) lands on g = 0, and the state there.
fn land(
    space: &mut dyn PhaseSpace,
    base: StepFn,
    t: Value,
    h: Value,
    time: Value,
    x: &[Value],
) -> (Vec<Value>, Vec<Value>) {
    let size = space.constraint_sizes(t, x, false);
    let rows: Vec<Equation> = (0..size.len()).map(Equation::Constraint).collect();
    let equations = Equations {
        rows: &rows,
        size: &size,
        sweep_size: &[],
        guess: Guess::Last,
        monitored: Monitored::OnCurves,
        monotone: None,
    };
    let t1 = space.sum(t, h);
    let mut landed = Vec::new();
    let lambda = space.solve(&equations, &mut |space, lambda| {
        let impulse = space.multiplied(time, lambda);
        let slid = space.slide(t, x, &impulse);
        landed = base(space, t, h, &slid);
        space.constraints(t1, &landed)
    });
    (lambda, landed)
}
