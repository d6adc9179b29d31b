//! Splitting of a Poisson system x' = J(x) ∇H into parts of H whose flows are known
//! exactly,
//!
//! φ_1(h/2) φ_2(h/2) … φ_k(h) … φ_2(h/2) φ_1(h/2).
//!
//! Every flow is a Poisson map, and so is the step: it keeps all Casimirs, of any
//! form, and leaves the energy with an error that stays bounded. The parts are
//! found in the formulas of the model. A part whose variables commute moves the
//! others along lines, exponentials and circles: rotations of a rigid body, kicks
//! of a top, growth of a species. Two spins that are coupled by a function of s·r
//! turn about the sum of their momenta, also with the weights of vortices on a
//! sphere, and two vortices in the plane about their centre.

use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{Part, PhaseSpace, Value};

pub(super) static SCHEME: Scheme = Scheme {
    name: "poisson-splitting",
    other_names: &[],
    needs: Needs::PoissonFlows,
    description: "exact flows of parts of H: keeps all Casimirs, for long runs",
    citation: "McLachlan, Phys. Rev. Lett. 71 (1993) 3043; Hairer, Lubich, Wanner, GNI, VII.4.2; Frank, Huang, Leimkuhler, J. Comput. Phys. 133 (1997) 160",
    file: include_str!("poisson_splitting.rs"),
    step: Step::Map(
        step,
        SchemeFacts { order: 2, symmetric: true, symplectic: true, explicit: true },
    ),
};

fn step(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (half, middle, t1) = (space.scaled(0.5, h), space.time(t, 0.5, h), space.sum(t, h));
    let (parts, mut x) = (space.parts(), x.to_vec());
    let Some(last) = parts.checked_sub(1) else { return x };
    for part in 0..last {
        x = space.flow(Part::Numbered(part), t, half, &x);
    }
    x = space.flow(Part::Numbered(last), middle, h, &x);
    for part in (0..last).rev() {
        x = space.flow(Part::Numbered(part), t1, half, &x);
    }
    x
}
