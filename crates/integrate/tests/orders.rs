//! Measured orders of every scheme, plain and treated, at fixed steps and of dense output.

mod common;

use common::{PENDULUM_START, distance, driven, finish, method, pendulum};
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

fn end(name: &str, system: &dyn System, x0: &[f64], h: f64) -> Vec<f64> {
    finish(&Plan::fixed(method(name), 0.0, T, h).unwrap(), system, x0).0.x
}

const T: f64 = 2.0;

/// Errors at T against a reference run, over steps at which they are above round-off.
fn measured(name: &str, order: u32, system: &dyn System, x0: &[f64], reference: &[f64]) -> f64 {
    // Steps T/n with four or five n, growing by √2 from a start at which the expansion in h has set in.
    let first = if order >= 8 {
        8.0
    } else if order >= 5 {
        20.0
    } else {
        60.0
    };
    let points: Vec<(f64, f64)> = (0..5)
        .map(|k| (first * 2f64.powf(0.5 * f64::from(k))).round())
        .map(|n| (T / n, distance(&end(name, system, x0, T / n), reference)))
        // Round-off: 100 steps of ε on a state of length 2, amplified a few times.
        .filter(|&(_, error)| error > 1e-13)
        .collect();
    assert!(points.len() >= 4, "{name}: too few errors above round-off: {points:?}");
    slope(&points)
}

#[test]
fn every_scheme_has_its_order() {
    let (system, x0) = (driven(), [1.2, 0.5]);
    // dop853 at h = 1/200: its error at h = 1/4 is below 1e-6, so here it is below 1e-6·(1/50)⁸, round-off.
    let reference = end("dop853", &system, &x0, 1.0 / 200.0);
    for scheme in SCHEMES.iter().filter(|scheme| scheme.runge_kutta().is_some()) {
        let slope = measured(scheme.name, scheme.order, &system, &x0, &reference);
        println!("{:>8} {slope:.2}", scheme.name);
        // The usual margin: half an order would be a different method.
        assert!((slope - f64::from(scheme.order)).abs() < 0.35, "{}: {slope}", scheme.name);
    }
}

#[test]
fn treatments_keep_the_order() {
    let (system, x0) = (pendulum(), PENDULUM_START);
    let reference = end("dop853", &system, &x0, 1.0 / 200.0);
    for treatment in ["corrected", "projection", "symmetric-projection"] {
        for scheme in SCHEMES.iter().filter(|scheme| scheme.runge_kutta().is_some()) {
            let name = format!("{treatment}:{}", scheme.name);
            let slope = measured(&name, scheme.order, &system, &x0, &reference);
            println!("{name:>28} {slope:.2}");
            // An order too many does no harm: the treatment removes four of six components of the error.
            let order = f64::from(scheme.order);
            assert!(slope > order - 0.35 && slope < order + 1.5, "{name}: {slope}");
        }
    }
}

#[test]
fn dense_output_has_its_order() {
    let (system, x0) = (driven(), [1.2, 0.5]);
    for scheme in SCHEMES.iter().filter(|scheme| scheme.adaptive) {
        let dense = scheme.tableau().dense.as_ref().unwrap();
        let mut points = Vec::new();
        for k in 0..4 {
            // One step of length h, held there by the first and the longest step, at a tolerance that accepts it; the
            // samples lie inside it. Its local error is O(h^{q+1}) for dense output of order q.
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
        // Tsitouras chose his dense output for a small leading term, and at these steps the next one outweighs it.
        let order = f64::from(dense.order);
        assert!(slope > order - 0.35 && slope < order + 1.35, "{}: {slope} {points:?}", scheme.name);
    }
}
