//! Derivatives of treated steps along tangent vectors.
//!
//! A treatment solves equations for μ, and its derivative solves their derivatives for δμ, with the
//! same matrices: implicit differentiation, whatever the iteration that has found μ. The targets F₀
//! are functions of the start as well, so each tangent vector v comes with δF₀. The metric W and
//! the round-off R are frozen: they are estimates, with memory, and their change moves a result by
//! less than its own error, times its relative distance from the treated one.

use crate::scales::Vectors;
use crate::scheme::map::NoStep;
use crate::vector::max_or_nan;
use holonome_arithmetic::square;

/// Tangent vectors, one after the other, each with its change of F₀.
pub struct Tangents<'a> {
    /// v, of length n each.
    pub vectors: &'a mut [f64],
    /// δF₀, of length m each.
    pub targets: &'a [f64],
}

impl Tangents<'_> {
    /// Pairs of v and δF₀, for states of length `n` and `m` rows of F.
    pub(super) fn each(
        &mut self,
        n: usize,
        m: usize,
    ) -> impl Iterator<Item = (&mut [f64], &[f64])> {
        let targets = self.targets;
        let targets = (0..).map(move |k| &targets[k * m..(k + 1) * m]);
        self.vectors.chunks_exact_mut(n).zip(targets)
    }
}

/// Second derivative of F: from (t, x, v) to the derivatives of the nonzeros of DF along v.
pub type SecondDerivative<'a> = &'a dyn Fn(f64, &[f64], &[f64], &mut [f64]);

/// Base map with its derivative: from x to x₁, with tangent vectors, one after the other, that
/// become those at x₁.
pub type BaseDerivative<'a> =
    &'a mut dyn FnMut(&[f64], &mut [f64], &mut [f64]) -> Result<(), NoStep>;

/// Reason why a treated step has no derivative.
#[derive(Clone, Debug, PartialEq)]
pub enum NoDerivative {
    /// The base map has no result.
    Base(NoStep),
    /// The treatment has none.
    Untreated,
    /// The iteration for δμ gets no nearer; its last change, relative to the tangent vector.
    Unconverged(f64),
}

/// Largest number of iterations for δμ.
const MOST_ITERATIONS: u32 = 60;

/// Square of the relative change below which an iteration that gets no nearer is at round-off.
const NEAR: f64 = 1e-18;

/// Ratio of the squares of two changes in a row above which an iteration gets no nearer.
const STAGNATION: f64 = 0.8;

/// Stopping test of an iteration for δμ.
pub(super) struct Convergence {
    /// Largest square of every vector of a tangent vector and of its changes; terms of one that is
    /// 0 cancel.
    sizes: Vec<f64>,
    last: f64,
    iterations: u32,
}

impl Convergence {
    /// Test for an iteration from the tangent vector `start`.
    pub(super) fn new(vectors: &Vectors, start: &[f64]) -> Convergence {
        let mut sizes = vec![0.0; vectors.count()];
        vectors.squares(start, &mut sizes);
        Convergence { sizes, last: f64::INFINITY, iterations: 0 }
    }

    /// True if the iteration has arrived after this change of the tangent vector `at`.
    pub(super) fn arrived(
        &mut self,
        vectors: &Vectors,
        change: &[f64],
        at: &[f64],
    ) -> Result<bool, NoDerivative> {
        for (vector, size) in self.sizes.iter_mut().enumerate() {
            let of = vectors.components_of(vector);
            *size = size.max(square(&change[of.clone()])).max(square(&at[of]));
        }
        vectors.raise_to_kind(&mut self.sizes);
        let moved =
            |(vector, size): (usize, &f64)| match square(&change[vectors.components_of(vector)]) {
                0.0 => 0.0,
                moved => moved / size,
            };
        let ratio = self.sizes.iter().enumerate().map(moved).fold(0.0, max_or_nan);
        if ratio <= f64::EPSILON * f64::EPSILON {
            return Ok(true);
        }
        // Two unknowns may converge in turns, so only an iteration that is near stagnates for good.
        if ratio <= NEAR && ratio > STAGNATION * self.last {
            return Ok(true);
        }
        if self.iterations == MOST_ITERATIONS || ratio.is_nan() {
            return Err(NoDerivative::Unconverged(ratio.sqrt()));
        }
        (self.last, self.iterations) = (ratio, self.iterations + 1);
        Ok(false)
    }
}
