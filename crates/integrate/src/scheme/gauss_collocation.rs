//! Gauss collocation for problems that are not stiff, at high accuracy: `gauss8` in
//! four stages and `gauss16` in eight. The equations of a step,
//!
//! x₁ = x + h Σ b_i F_i,   F_i = X(t + c_i h, x + h Σ_j a_ij F_j),
//!
//! are solved by fixed-point iteration, which converges while h times the field's
//! rate of change is at most about 1.2. At equal steps the methods are symmetric
//! and symplectic. For stiff problems `gauss2`, `gauss4` and `gauss6` solve such
//! equations by Newton's method.
//!
//! The last Legendre coefficients of the field along a step are the error estimate
//! of adaptive steps.
//!
//! That the stages are evaluated side by side, in the lanes of a vector, which
//! makes the method of eight stages as fast as explicit ones, is due to Antoñana,
//! Makazaga, Murua: SIMD-vectorized implicit symplectic integrators can outperform
//! explicit symplectic ones, arXiv:2511.03655 (2025), with IRKGaussLegendre.jl.
//!
//! In equal steps a rounded coefficient has the same error in every step, so that
//! the method conserves nothing and the energy drifts. Equal steps therefore sum
//! the increments k_j = h b_j F_j, x + Σ μ_ij k_j for a stage, with coefficients
//! that are symplectic in machine numbers: μ_ij + μ_ji = 1 exactly.

use std::sync::LazyLock;

use super::collocation::Collocation;
use super::{Needs, Scheme, Step};

pub(super) static GAUSS8: Scheme = Scheme {
    name: "gauss8",
    other_names: &[],
    needs: Needs::Canonical,
    description: "Gauss collocation in four stages by fixed-point iteration: where nothing is stiff",
    citation: "Butcher, Math. Comp. 18 (1964) 50; Hairer, Lubich, Wanner, GNI, II.1.3, VIII.6.1",
    file: include_str!("gauss_collocation.rs"),
    step: Step::Collocation(&EIGHTH),
};

pub(crate) static GAUSS16: Scheme = Scheme {
    name: "gauss16",
    other_names: &[],
    needs: Needs::Canonical,
    description: "Gauss collocation in eight stages, which stand in the lanes of one vector: long steps, high accuracy",
    citation: "Butcher, Math. Comp. 18 (1964) 50; Antoñana, Makazaga, Murua, arXiv:2511.03655 (2025); Hairer, Lubich, Wanner, GNI, II.1.3, VIII.6.1",
    file: include_str!("gauss_collocation.rs"),
    step: Step::Collocation(&SIXTEENTH),
};

static EIGHTH: LazyLock<Collocation> = LazyLock::new(|| Collocation::gauss(4));
static SIXTEENTH: LazyLock<Collocation> = LazyLock::new(|| Collocation::gauss(8));
