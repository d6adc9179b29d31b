//! Choice of the first step, from scales of the motion alone: no unit enters.

use crate::scales::Vectors;

/// Part of |x|/|ẋ| after which the second derivative is taken from a difference of fields.
const PROBE: f64 = 1e-3;

/// Part of the whole span that the first step may take.
const SHARE: f64 = 1e-2;

/// A length in time.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The length.
    pub length: f64,
    /// True if the length is a part of the whole span.
    pub by_span: bool,
}

/// Length after which the field is evaluated again to find ẍ; `norms` are S² of the vectors.
pub fn probe(x: &[f64], field: &[f64], norms: &[f64], vectors: &Vectors, span: f64) -> Choice {
    let times = (0..vectors.sized()).filter_map(|vector| {
        let at = vectors.components_of(vector);
        let (size, speed) = (length(&x[at.clone()]).max(norms[vector].sqrt()), length(&field[at]));
        (size > 0.0 && speed > 0.0).then(|| size / speed)
    });
    let shortest = times.fold(SHARE * span, f64::min);
    Choice { length: PROBE * shortest, by_span: shortest == SHARE * span }
}

/// The first step of a method of order p: the least over the vectors of 0.1 max(|x|/|ẋ|, |ẋ|/|ẍ|)
/// and of 0.3 √(|x|/|ẍ|), at most a hundredth of the span, times 2 rtol^(1/(p+1)). `change` is the
/// field after the probe less the field.
pub fn first_step(
    probe: f64,
    (x, field, change): (&[f64], &[f64], &[f64]),
    (norms, vectors): (&[f64], &Vectors),
    (order, rtol, span): (u32, f64, f64),
) -> Choice {
    let mut shortest = SHARE * span;
    for vector in 0..vectors.sized() {
        let at = vectors.components_of(vector);
        let size = length(&x[at.clone()]).max(norms[vector].sqrt());
        let (speed, acceleration) = (length(&field[at.clone()]), length(&change[at]) / probe);
        // A vector without a size, or one that does not move, has no time of its own.
        let by_speed = if speed > 0.0 { size / speed } else { f64::INFINITY };
        let by_change = if acceleration > 0.0 { speed / acceleration } else { f64::INFINITY };
        let slow = by_speed.max(by_change);
        if slow > 0.0 {
            shortest = shortest.min(0.1 * slow);
        }
        if size > 0.0 && acceleration > 0.0 {
            shortest = shortest.min(0.3 * (size / acceleration).sqrt());
        }
    }
    let step = 2.0 * rtol.powf(1.0 / f64::from(order + 1)) * shortest;
    let by_span = shortest == SHARE * span || step > SHARE * span;
    match step > 0.0 {
        true => Choice { length: step.min(SHARE * span), by_span },
        // An infinite speed gives 0; the controller then finds its way from the span.
        false => Choice { length: SHARE * span * rtol, by_span: true },
    }
}

fn length(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First step for x'' = −ω²x from x = a, times ω, in the given units of length and time.
    fn oscillator(a: f64, omega: f64) -> f64 {
        let vectors = Vectors::components(2);
        let (x, span) = ([a, 0.0], 100.0 / omega);
        let field = |x: &[f64]| [x[1], -omega * omega * x[0]];
        let at = field(&x);
        let norms = [a * a, 0.0];
        let h0 = probe(&x, &at, &norms, &vectors, span).length;
        let moved = [x[0] + h0 * at[0], x[1] + h0 * at[1]];
        let there = field(&moved);
        let change = [there[0] - at[0], there[1] - at[1]];
        omega * first_step(h0, (&x, &at, &change), (&norms, &vectors), (4, 1e-5, span)).length
    }

    #[test]
    fn units_change_nothing() {
        let step = oscillator(1.0, 1.0);
        // 0.3·√(x/ẍ) = 0.3, times 2·10⁻¹; the difference of fields is exact but for rounding.
        assert!((step / 0.06 - 1.0).abs() < 1e-9, "{step}");
        for (a, omega) in
            [(2f64.powi(-40), 1.0), (1.0, 2f64.powi(50)), (2f64.powi(33), 2f64.powi(-20))]
        {
            assert_eq!(oscillator(a, omega), step);
        }
    }

    #[test]
    fn a_state_at_rest_takes_a_part_of_the_span() {
        let vectors = Vectors::components(1);
        let zero = [0.0];
        let h0 = probe(&zero, &zero, &zero, &vectors, 10.0).length;
        let step = first_step(h0, (&zero, &zero, &zero), (&zero, &vectors), (7, 1e-8, 10.0)).length;
        assert!((step / (0.1 * 0.2) - 1.0).abs() < 4.0 * f64::EPSILON, "{step}");
    }
}
