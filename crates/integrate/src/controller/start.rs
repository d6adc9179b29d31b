//! Choice of the first step (HNW II.4, "Starting Step Size").

use super::{Tolerance, scaled_norm};

/// Step (c): a first guess h₀ such that an Euler step moves the state by about a hundredth of its scale.
pub fn first_guess(x: &[f64], field: &[f64], tolerance: Tolerance) -> f64 {
    let d0 = scaled_norm(x, x, x, tolerance);
    let d1 = scaled_norm(field, x, x, tolerance);
    if d0 < 1e-5 || d1 < 1e-5 || !(d0 / d1).is_normal() { 1e-6 } else { 0.01 * d0 / d1 }
}

/// Steps (e) and (f): the step for which a method of order p would make about a hundredth of the tolerance, from the
/// fields at x and after the Euler step h₀.
pub fn first_step(h0: f64, x: &[f64], field: &[f64], change: &[f64], order: u32, tolerance: Tolerance) -> f64 {
    let d1 = scaled_norm(field, x, x, tolerance);
    let d2 = scaled_norm(change, x, x, tolerance) / h0;
    let d = d1.max(d2);
    let h1 = if d <= 1e-15 { (h0 * 1e-3).max(1e-6) } else { (0.01 / d).powf(1.0 / f64::from(order + 1)) };
    // An infinite scale gives h1 = 0 or NaN; the controller then finds its way from h₀.
    if h1 > 0.0 { h1.min(100.0 * h0) } else { h0 }
}
