//! Measured orders of every method and every composition.

use crate::cases::{Case, difference};
use crate::common::{options, run};
use crate::methods::{bases, cases_of, compositions, few_cases_of};
use holonome::method::{Method, Needs};
use std::collections::BTreeMap;

/// Time over which errors are measured: steps of order 16 with errors above round-off are as long
/// as the motion's own time.
fn span(method: &Method) -> f64 {
    if method.order() < 16 { 2.0 } else { 20.0 }
}

/// State at `end` by another method: DOP853 on the Dirac extension at a tolerance at round-off.
fn reference(case: &Case, end: f64) -> Vec<f64> {
    let options = options(&format!(
        "--method plain:dop853 --rtol 1e-14 --atol 1e-15 --until {end} --samples 2"
    ));
    run(case.problem(), options).unwrap().state()
}

/// Least-squares slope of ln(error) over ln(h).
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().map(|(h, e)| (h.ln(), e.ln())).unzip();
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let covariance: f64 = x.iter().zip(&y).map(|(x, y)| (x - mx) * (y - my)).sum();
    covariance / x.iter().map(|x| (x - mx) * (x - mx)).sum::<f64>()
}

/// Round-off of some hundred steps that each round a state of length 1 or so, amplified a few
/// times, and the reference's own error.
const ROUND_OFF: f64 = 1e-12;

/// Measured order over the five or so shortest steps T/n whose errors are above round-off, with n
/// growing by √2 or less from a step longer than sensible; `None` if there are fewer than four.
fn measured(method: &Method, case: &Case, reference: &[f64]) -> Option<f64> {
    let simulation = case.with(&method.to_string());
    let start = case.start();
    // SHAKE's result lies somewhere on its fibre: a step of RATTLE, which does not depend on the
    // place, takes it to the set.
    let closing = (method.scheme.name == "shake")
        .then(|| case.with(&method.to_string().replace("shake", "rattle")));
    let t = span(method);
    let end = |n: u64| {
        let h = t / n as f64;
        let Some(rattle) = &closing else { return simulation.steps((0.0, h), n, &start) };
        let x = simulation.steps((0.0, h), n - 1, &start)?;
        rattle.steps(((n - 1) as f64 * h, h), 1, &x)
    };
    let mut points = Vec::new();
    // Errors of order 10 fall so fast from step to step that more and closer steps are used.
    let (coarsest, finer, count) = match method.order() {
        ..10 => (4.0, 0.5, 5),
        10..16 => (2.0, 0.25, 9),
        _ => (16.0, 0.2, 5),
    };
    for k in 0..(7.0 / finer) as i32 {
        let n = (coarsest * 2f64.powf(finer * f64::from(k))).round() as u64;
        match end(n).map(|end| difference(&end, reference)) {
            Ok(error) if error > ROUND_OFF => points.push((t / n as f64, error)),
            Ok(_) => break,
            // A long step may have no solution, a short one must have one.
            Err(error) => assert!(
                finer * f64::from(k) < 3.0,
                "{method} on {}, {n} steps: {error}",
                case.name()
            ),
        }
    }
    let last = points.split_off(points.len().saturating_sub(count));
    (last.len() >= 4).then(|| slope(&last))
}

/// Check the measured orders. An additional order does no harm: in some models errors of some kind
/// do not show. A lost order is an error. A margin of a third suffices if errors span six decades;
/// those of order 8 fall to round-off before the expansion in h has quite set in, and as the orders
/// of symmetric methods are even, they would lose two at once.
fn check(methods: &[Method], cases: impl Fn(&Method) -> Vec<&'static Case>) {
    let (mut references, mut wrong) = (BTreeMap::new(), Vec::new());
    for method in methods {
        let order = f64::from(method.order());
        let margin = match method.order() {
            ..8 => 0.35,
            8..10 => 0.7,
            10..16 => 1.2,
            _ => 1.7,
        };
        let (mut sharp, mut tried) = (0, Vec::new());
        for case in cases(method) {
            let reference = references
                .entry((case.name(), method.order() < 16))
                .or_insert_with(|| reference(case, span(method)));
            let slope = measured(method, case, reference);
            tried.push(format!("{} {slope:.2?}", case.name()));
            match slope {
                Some(slope) if slope < order - margin => {
                    wrong.push(format!("{method} on {}: {slope:.2}", case.name()))
                }
                Some(slope) if slope < order + margin => sharp += 1,
                _ => {}
            }
        }
        println!("{method}: {}", tried.join(", "));
        // At least one model shows the order itself.
        if sharp == 0 {
            wrong.push(format!("{method} has another order: {}", tried.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_method_has_its_order() {
    check(&bases(), few_cases_of);
}

#[test]
fn every_composition_has_its_order() {
    // Models of every kind. A uniform field tests nothing: every base map solves it exactly.
    let few = [
        "kepler",
        "sprung-masses",
        "forced-pendulum",
        "forced-metric",
        "double-pendulum-angles",
        "metric-pendulum",
        "two-spheres",
        "driven-pendulum",
        "hopf-pair",
    ];
    let of = |method: &Method| {
        let mut cases = cases_of(method);
        let is_body = matches!(method.scheme.needs, Needs::Body | Needs::FreeBody);
        cases.retain(|case| few.contains(&case.name()) || is_body);
        cases
    };
    check(&compositions(), of);
}
