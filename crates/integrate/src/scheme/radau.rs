//! The Radau IIA method of three stages and order 5, `radau5`, for stiff fields:
//! its step is limited by the accuracy of what moves, not by the stability of what
//! has decayed. It is L-stable: the fastest decays vanish within a step. The nodes
//! are
//!
//! (4 − √6)/10,   (4 + √6)/10,   1.
//!
//! The stages follow from a simplified Newton iteration with the exact Jacobian J
//! of the field, from its formulas. In the basis that diagonalises the
//! coefficients it takes one real and one complex system, s − J, in place of one
//! three times as large; these are factored once a step, in full or within a band.
//! The iteration starts from the polynomial of the step before.
//!
//! The error estimate of order 3 is filtered by (γ/h − J)⁻¹, so that stiff
//! components do not exaggerate it. Step lengths that decrease are extrapolated
//! (Gustafsson). The collocation polynomial gives states within a step to order 3.
//!
//! The method keeps no structure and damps what oscillates fast: use a symplectic
//! method for long runs of a Hamiltonian that is not stiff.

use super::stiff_collocation::StiffCollocation;
use super::{Needs, Scheme, Step};
use std::sync::LazyLock;

pub(super) static SCHEME: Scheme = Scheme {
    name: "radau5",
    other_names: &["radau", "radau-iia", "radau-iia5"],
    needs: Needs::Field,
    description: "Radau IIA of order 5: for stiff fields, whose fastest decays limit explicit methods",
    citation: "Hairer and Wanner, Solving ODEs II, IV.5, IV.8; Gustafsson, ACM TOMS 20 (1994) 496",
    file: include_str!("radau.rs"),
    step: Step::Stiff(&METHOD),
};

static METHOD: LazyLock<StiffCollocation> = LazyLock::new(StiffCollocation::radau_iia);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_follow_from_the_coefficients() {
        let facts = SCHEME.facts();
        assert!(!facts.symmetric && !facts.symplectic && !facts.explicit && facts.order == 5);
    }
}
