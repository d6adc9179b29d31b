//! The abstract vector space over which a step is written once.
//!
//! A step knows two things only: weighted sums of vectors, in a fixed order and with fused
//! multiply-adds, and named functions of the model. On [`SliceSpace`] these act on `f64` slices; a
//! tracing space records them instead, which gives the same step as one straight-line program. A
//! step may therefore never depend on the value of a number: the same operations happen whatever
//! the values are. Coefficients of the method are numbers in every space, and terms whose
//! coefficient is zero are left out in every space, so both give the same bits where the field
//! does.

use crate::system::System;
use crate::vector::{add_scaled, combine, combine_scaled};

/// Vectors of numbers, and the operations of a step on them.
pub trait Space {
    /// A number: t, h, or a component of a vector.
    type Scalar: Copy;

    /// t + c·h, as fma(c, h, t).
    fn time(&mut self, t: Self::Scalar, c: f64, h: Self::Scalar) -> Self::Scalar;

    /// out = Σ w_i k_i, as fma(w₂, k₂, w₁·k₁) and so on in ascending order, zero weights left out;
    /// nothing but zero weights gives 0.
    fn weighted_sum(&mut self, out: &mut [Self::Scalar], weights: &[f64], k: &[Vec<Self::Scalar>]);

    /// out = x + h·Σ w_i k_i with one rounding at the size of x. With w₁ the first weight that is
    /// not zero it is fma(h·w₁, s, x), where s = fma(w₃/w₁, k₃, fma(w₂/w₁, k₂, k₁)) and so on in
    /// ascending order: a sum of s terms takes s operations. Nothing but zero weights gives x.
    fn displaced(
        &mut self,
        out: &mut [Self::Scalar],
        x: &[Self::Scalar],
        h: Self::Scalar,
        weights: &[f64],
        k: &[Vec<Self::Scalar>],
    );

    /// out = out + h·weight·k, as fma(h·weight, k, out).
    fn add_scaled(
        &mut self,
        out: &mut [Self::Scalar],
        h: Self::Scalar,
        weight: f64,
        k: &[Self::Scalar],
    );

    /// out = x + h·Σ w_i k_i for a point at which the field is evaluated, with the last term added
    /// last: with w_s the last weight that is not zero it is fma(h·w_s, k_s, y), where y is
    /// [`Space::displaced`] by the terms before it. One operation follows k_s instead of two, and a
    /// step is a chain of such points. The second rounding at the size of x is multiplied by h
    /// before it reaches the step's result.
    fn stage_point(
        &mut self,
        out: &mut [Self::Scalar],
        x: &[Self::Scalar],
        h: Self::Scalar,
        weights: &[f64],
        k: &[Vec<Self::Scalar>],
    ) {
        let last = weights.iter().rposition(|weight| *weight != 0.0).unwrap_or(0);
        self.displaced(out, x, h, &weights[..last], k);
        if let Some(&weight) = weights.get(last) {
            self.add_scaled(out, h, weight, &k[last]);
        }
    }

    /// out = X(t, x), the model's vector field.
    fn field(&mut self, out: &mut [Self::Scalar], t: Self::Scalar, x: &[Self::Scalar]);
}

/// The space of `f64` slices over a system: every operation is carried out at once.
pub struct SliceSpace<'a> {
    system: &'a dyn System,
    work: &'a mut [f64],
    evaluations: u64,
}

impl<'a> SliceSpace<'a> {
    /// Space over `system`, with scratch of [`System::work_len`].
    pub fn new(system: &'a dyn System, work: &'a mut [f64]) -> SliceSpace<'a> {
        SliceSpace { system, work, evaluations: 0 }
    }

    /// Number of evaluations of the field so far.
    pub fn evaluations(&self) -> u64 {
        self.evaluations
    }
}

impl Space for SliceSpace<'_> {
    type Scalar = f64;

    fn time(&mut self, t: f64, c: f64, h: f64) -> f64 {
        c.mul_add(h, t)
    }

    fn weighted_sum(&mut self, out: &mut [f64], weights: &[f64], k: &[Vec<f64>]) {
        combine(out, weights, k);
    }

    fn displaced(&mut self, out: &mut [f64], x: &[f64], h: f64, weights: &[f64], k: &[Vec<f64>]) {
        let Some(&first) = weights.iter().find(|weight| **weight != 0.0) else {
            out.copy_from_slice(x);
            return;
        };
        combine_scaled(out, x, h * first, first, weights, k);
    }

    fn add_scaled(&mut self, out: &mut [f64], h: f64, weight: f64, k: &[f64]) {
        add_scaled(out, h * weight, k);
    }

    fn field(&mut self, out: &mut [f64], t: f64, x: &[f64]) {
        self.evaluations += 1;
        self.system.field(t, x, out, self.work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::FnSystem;
    use crate::vector::BLOCK;

    #[test]
    fn sums_have_the_promised_order_and_rounding() {
        let system = FnSystem::new(0, |_, _, _| ());
        let mut space = SliceSpace::new(&system, &mut []);
        // More than one block, and numbers whose sum depends on the order.
        let n = BLOCK + 3;
        let noise = crate::noise::Noise::new(1, 0);
        let vector =
            |variable: u32| (0..n as u64).map(|i| noise.normal(i, variable)).collect::<Vec<_>>();
        let (x, k, h) = (vector(9), [vector(0), vector(1), vector(2), vector(3)], 0.1);
        let weights = [0.3, 0.0, -1.7, 0.9];
        let (mut sum, mut moved) = (vec![f64::NAN; n], vec![f64::NAN; n]);
        space.weighted_sum(&mut sum, &weights, &k);
        space.displaced(&mut moved, &x, h, &weights, &k);
        for i in 0..n {
            let expected = 0.9f64.mul_add(k[3][i], (-1.7f64).mul_add(k[2][i], 0.3 * k[0][i]));
            let scaled = (0.9f64 / 0.3).mul_add(k[3][i], (-1.7f64 / 0.3).mul_add(k[2][i], k[0][i]));
            assert_eq!((sum[i], moved[i]), (expected, (h * 0.3).mul_add(scaled, x[i])));
        }
        space.stage_point(&mut moved, &x, h, &[0.3, -1.7, 0.0, 0.9, 0.0], &k);
        for i in 0..n {
            let before = (h * 0.3).mul_add((-1.7f64 / 0.3).mul_add(k[1][i], k[0][i]), x[i]);
            assert_eq!(moved[i], (h * 0.9).mul_add(k[3][i], before));
        }
        space.stage_point(&mut moved, &x, h, &[0.3], &k);
        assert!((0..n).all(|i| moved[i] == (h * 0.3).mul_add(k[0][i], x[i])));
        space.stage_point(&mut moved, &x, h, &[], &k);
        assert_eq!(moved, x);
        space.displaced(&mut moved, &x, h, &[0.0; 4], &k);
        assert_eq!(moved, x);
        space.weighted_sum(&mut sum, &[], &k);
        assert!(sum.iter().all(|sum| *sum == 0.0));
        // A zero weight leaves its term out, whatever it is.
        space.weighted_sum(&mut sum, &[0.0, 1.0], &[vec![f64::NAN; n], x.clone()]);
        assert_eq!(sum, x);
    }
}
