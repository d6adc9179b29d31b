//! Measured orders of schemes for fields with their treatments, at fixed steps, and of dense output.

mod common;

use common::{PENDULUM_START, distance, driven, finish, max_drift, method, pendulum};
use holonome_integrate::method::SCHEMES;
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::system::System;

/// Least-squares slope of ln(error) over ln(h).
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().map(|(h, e)| (h.ln(), e.ln())).unzip();
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let covariance: f64 = x.iter().zip(&y).map(|(x, y)| (x - mx) * (y - my)).sum();
    covariance / x.iter().map(|x| (x - mx) * (x - mx)).sum::<f64>()
}

fn end(name: &str, system: &dyn System, x0: &[f64], t: f64, h: f64) -> Vec<f64> {
    finish(&Plan::fixed(method(name), 0.0, t, h).unwrap(), system, x0).0.x
}

/// Measured order of a scheme: the slope of errors at the end of a run, over steps at which they
/// are above round-off. The run has the length 2 for most, and 20 for order 16, whose steps are
/// long; `coarsest` is then the least number of steps.
fn measured(name: &str, order: u32, system: &dyn System, x0: &[f64], coarsest: f64) -> f64 {
    let t = if order >= 16 { 20.0 } else { 2.0 };
    // dop853 at h = 1/200: its error at h = 1/4 is below 1e-6, so here it is below 1e-6·(1/50)⁸,
    // round-off.
    let reference = end("dop853", system, x0, t, 1.0 / 200.0);
    // Steps t/n with four or five n, growing by √2 from a start at which the expansion in h has set
    // in, or one by one.
    let first = match order {
        16.. => coarsest,
        8.. if name.contains("gauss") => 3.0,
        8.. => 8.0,
        5.. => 20.0,
        _ => 60.0,
    };
    let number = |k: i32| {
        if order >= 16 {
            first + f64::from(k)
        } else {
            (first * 2f64.powf(0.5 * f64::from(k))).round()
        }
    };
    let points: Vec<(f64, f64)> = (0..5)
        .map(number)
        .map(|n| (t / n, distance(&end(name, system, x0, t, t / n), &reference)))
        // Round-off: 100 steps of ε on a state of length 2, amplified a few times.
        .filter(|&(_, error)| error > 1e-13)
        .collect();
    assert!(points.len() >= 4, "{name}: too few errors above round-off: {points:?}");
    println!("{points:?}");
    slope(&points)
}

#[test]
fn treatments_keep_the_order() {
    let (system, x0) = (pendulum(), PENDULUM_START);
    for treatment in ["corrected", "projection", "symmetric-projection"] {
        for scheme in
            SCHEMES.iter().filter(|scheme| scheme.follows_fields() && !scheme.needs_formulas())
        {
            let name = format!("{treatment}:{}", scheme.name);
            let plan = Plan::fixed(method(&name), 0.0, 20.0, 0.05).unwrap();
            let drift = max_drift(&finish(&plan, &system, &x0).0);
            // Corrections that move the parts which err most leave squares of a step's error. The
            // steps of Euler's method err by some hundredths; those of the other schemes by their
            // squares and less.
            let bound = if scheme.facts().order == 1 { 1e-3 } else { 1e-7 };
            println!("{name:>28} drift {drift:.1e}");
            assert!(drift < bound, "{name}: {drift:e}");
            let slope = measured(&name, scheme.facts().order, &system, &x0, 22.0);
            println!("{name:>28} {slope:.2}");
            // An order too many does no harm: the treatment removes four of six components of the
            // error.
            let order = f64::from(scheme.facts().order);
            let margin = if scheme.facts().order >= 16 { 1.5 } else { 0.35 };
            assert!(slope > order - margin && slope < order + 1.5, "{name}: {slope}");
        }
    }
}

#[test]
fn dense_output_has_its_order() {
    let (system, x0) = (driven(), [1.2, 0.5]);
    for scheme in
        SCHEMES.iter().filter(|scheme| scheme.adaptive() && scheme.runge_kutta().is_some())
    {
        let dense = scheme.tableau().dense.as_ref().unwrap();
        let mut points = Vec::new();
        for k in 0..4 {
            // One step of length h, held there by the first and the longest step, at a tolerance
            // that accepts it; the samples lie inside it. Its local error is O(h^{q+1}) for dense
            // output of order q.
            let h = (if dense.order > 4 { 0.4 } else { 0.3 }) * 0.75f64.powi(k);
            let mut plan = Plan::adaptive(method(scheme.name), 0.0, 2.0 * h, 1e3, 1e3).unwrap();
            let times = [0.3 * h, 0.55 * h, 0.9 * h];
            let Stepping::Adaptive(adaptive) = &mut plan.stepping else { unreachable!() };
            (adaptive.first_step, adaptive.longest_step) = (Some(h), h);
            adaptive.samples = times.to_vec();
            let (state, recorder) = finish(&plan, &system, &x0);
            assert_eq!((state.step, recorder.t.len()), (2, 3));
            let error = times.iter().zip(&recorder.x).map(|(&t, x)| {
                let fine = Plan::fixed(method("dop853"), 0.0, t, t / 20.0).unwrap();
                distance(&finish(&fine, &system, &x0).0.x, x)
            });
            points.push((h, error.fold(0.0, f64::max)));
        }
        let slope = slope(&points) - 1.0;
        println!("{:>8} {slope:.2} {points:?}", scheme.name);
        // Tsitouras chose his dense output for a small leading term, and at these steps the next
        // one outweighs it.
        let order = f64::from(dense.order);
        assert!(
            slope > order - 0.35 && slope < order + 1.35,
            "{}: {slope} {points:?}",
            scheme.name
        );
    }
}

/// A collocation polynomial is of half the order within a step; samples there are nevertheless as
/// good as its end.
#[test]
fn states_within_a_long_step_are_as_good_as_its_end() {
    let (system, x0) = (driven(), [1.2, 0.5]);
    for (scheme, rtol) in [("gauss8", 1e-9), ("gauss16", 1e-12)] {
        let plan = Plan::adaptive(method(scheme), 0.0, 20.0, rtol, 0.0)
            .unwrap()
            .with_samples(101)
            .unwrap();
        let (state, recorder) = finish(&plan, &system, &x0);
        let fine = Plan::adaptive(method("dop853"), 0.0, 20.0, 1e-14, 0.0)
            .unwrap()
            .with_samples(101)
            .unwrap();
        let reference = finish(&fine, &system, &x0).1;
        let errors: Vec<f64> =
            recorder.x.iter().zip(&reference.x).map(|(x, exact)| distance(x, exact)).collect();
        // Samples lie within steps of gauss16; the error of an oscillation grows along the run.
        assert!(state.step < 150, "{scheme}: {} steps", state.step);
        let last = errors[95..].iter().fold(0.0, |last: f64, &error| last.max(error));
        println!(
            "{scheme}: {} steps, at the end {last:e}, largest {:e}",
            state.step,
            errors.iter().fold(0.0, |a: f64, &b| a.max(b))
        );
        assert!(
            errors.iter().all(|&error| error <= 10.0 * last.max(1e-13)),
            "{scheme}: {errors:?}"
        );
        assert!(last < 100.0 * rtol, "{scheme}: {last:e}");
    }
}
