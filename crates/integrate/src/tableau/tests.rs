//! Tests of the tableaus: their checks, their structure, their stability intervals.

use super::*;
use crate::method::SCHEMES;

/// bs3, whose fractions are short enough to break by hand.
const A: &[&[f64]] = &[&[], &[1.0 / 2.0], &[0.0, 3.0 / 4.0], &[2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0]];
const B: &[f64] = &[2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0];
const E: &[f64] = &[-5.0 / 72.0, 1.0 / 12.0, 1.0 / 9.0, -1.0 / 8.0];

fn definition() -> Definition {
    Definition { order: 3, a: A, b: B, error: &[(E, 2)], lagged: None, dense: None }
}

fn part(result: Result<Tableau, TableauError>) -> &'static str {
    match result {
        Err(TableauError::OrderCondition { part, .. } | TableauError::Shape { part, .. }) => part,
        Err(TableauError::OrderTooHigh { .. }) => "too high",
        Err(TableauError::OrderTooLow { .. }) => "too low",
        Err(TableauError::NoEndpoint) => "no endpoint",
        Err(TableauError::NoEstimate) => "no estimate",
        Ok(_) => "fine",
    }
}

#[test]
fn all_coefficients_pass() {
    for scheme in SCHEMES.iter().filter(|scheme| scheme.runge_kutta().is_some()) {
        let tableau = scheme.tableau();
        // Coefficients of up to 43 are rounded before they are summed: 43·ε/2 each, at most twelve
        // of them.
        assert!(
            tableau.c.iter().all(|c| (0.0..1.0 + 6e-14).contains(c)),
            "{}: {:?}",
            scheme.name,
            tableau.c
        );
    }
}

#[test]
fn wrong_digits_are_refused() {
    assert_eq!(part(Tableau::new(&definition())), "fine");
    // One digit in the fourteenth place is a thousand times round-off.
    const WRONG_A: &[&[f64]] =
        &[&[], &[1.0 / 2.0], &[0.0, 3.0 / 4.0 + 1e-13], &[2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0]];
    assert_eq!(part(Tableau::new(&Definition { a: WRONG_A, ..definition() })), "b");
    const WRONG_B: &[f64] = &[2.0 / 9.0 + 1e-13, 1.0 / 3.0 - 1e-13, 4.0 / 9.0];
    assert_eq!(part(Tableau::new(&Definition { b: WRONG_B, ..definition() })), "b");
    const WRONG_E: &[f64] = &[5.0 / 72.0, 1.0 / 12.0, 1.0 / 9.0, -1.0 / 8.0];
    assert_eq!(part(Tableau::new(&Definition { error: &[(WRONG_E, 2)], ..definition() })), "error");
    const WRONG_D: &[f64] = &[1e-12];
    let dense = DenseDefinition { order: 3, extra_a: &[], d: &[WRONG_D] };
    assert_eq!(
        part(Tableau::new(&Definition { dense: Some(dense), ..definition() })),
        "dense output"
    );
    assert_eq!(part(Tableau::new(&Definition { order: 4, ..definition() })), "b");
    assert_eq!(part(Tableau::new(&Definition { order: 9, ..definition() })), "too high");
    assert_eq!(part(Tableau::new(&Definition { order: 2, ..definition() })), "too low");
    assert_eq!(part(Tableau::new(&Definition { error: &[(E, 1)], ..definition() })), "too low");
    let dense = DenseDefinition { order: 2, extra_a: &[], d: &[] };
    assert_eq!(part(Tableau::new(&Definition { dense: Some(dense), ..definition() })), "too low");
    assert_eq!(part(Tableau::new(&Definition { a: &[&[1.0]], ..definition() })), "a");
    let dense = DenseDefinition { order: 2, extra_a: &[], d: &[] };
    let open = Definition {
        order: 2,
        a: &[&[], &[1.0]],
        b: &[0.5, 0.5],
        error: &[],
        lagged: Some((&[0.5, 0.0, -0.5], 1)),
        dense: Some(dense),
    };
    assert_eq!(part(Tableau::new(&open)), "no endpoint");
    assert_eq!(
        part(Tableau::new(&Definition { error: &[], lagged: None, ..definition() })),
        "no estimate"
    );
}

#[test]
fn structure_is_derived() {
    let facts = |name: &str| {
        let tableau = crate::method::Scheme::named(name).unwrap().tableau();
        (tableau.stages_of_step, tableau.stages, tableau.a.len(), tableau.first_same_as_last)
    };
    assert_eq!(facts("euler"), (1, 1, 1, false));
    assert_eq!(facts("midpoint"), (2, 2, 2, false));
    assert_eq!(facts("rk4"), (4, 4, 4, false));
    assert_eq!(facts("bs3"), (3, 4, 4, true));
    assert_eq!(facts("dopri5"), (6, 7, 7, true));
    assert_eq!(facts("tsit5"), (6, 7, 7, true));
    assert_eq!(facts("dop853"), (12, 12, 16, false));
}

#[test]
fn stability_intervals_are_those_of_the_literature() {
    let interval = |name: &str| {
        crate::method::Scheme::named(name).unwrap().tableau().real_stability_interval()
    };
    // |1 − x| ≤ 1 and 1 − x + x²/2 ≤ 1 at 2 exactly; the test |R| ≤ 1 + 1e-12 moves the end by at most 1e-12.
    for name in ["euler", "midpoint", "heun"] {
        assert!((interval(name) - 2.0).abs() < 1e-11, "{name} {}", interval(name));
    }
    // R of orders 3 and 4 with 3 and 4 stages is the truncated exponential: real roots of 1 − x +
    // x²/2 − x³/6 = −1 and of 1 − x + x²/2 − x³/6 + x⁴/24 = 1, from their closed forms (Cardano).
    assert!((interval("bs3") - 2.512_745_326_618_329).abs() < 1e-11, "{}", interval("bs3"));
    assert!((interval("rk4") - 2.785_293_563_405_282).abs() < 1e-11, "{}", interval("rk4"));
    // HW IV.2 prints 3.31 and 6.39, rounded.
    assert!((interval("dopri5") - 3.31).abs() < 0.005, "{}", interval("dopri5"));
    assert!((interval("dop853") - 6.39).abs() < 0.005, "{}", interval("dop853"));
    assert!((interval("tsit5") - 3.5).abs() < 0.1, "{}", interval("tsit5"));
}

#[test]
fn dense_output_joins_smoothly() {
    for scheme in SCHEMES.iter().filter(|scheme| scheme.runge_kutta().is_some()) {
        let tableau = scheme.tableau();
        let Some(dense) = &tableau.dense else { continue };
        let at = |theta: f64| {
            let mut weights = vec![0.0; dense.stages];
            dense.weights(theta, &mut weights);
            weights
        };
        for lanes in [1, 3, 8] {
            let theta: Vec<f64> = (0..lanes).map(|k| (k as f64 + 0.3) / lanes as f64).collect();
            let mut all = vec![f64::NAN; dense.stages * lanes];
            dense.weights_in_lanes(&theta, lanes, &mut all);
            for (k, theta) in theta.into_iter().enumerate() {
                let of_lane: Vec<f64> = all.iter().skip(k).step_by(lanes).copied().collect();
                assert_eq!(of_lane, at(theta), "{} in {lanes} lanes", scheme.name);
            }
        }
        assert!(at(0.0).iter().all(|w| *w == 0.0));
        assert_eq!(at(1.0), padded(&tableau.b, dense.stages));
        // Slopes by central differences: at 0 only the first stage counts, at 1 only the one at the
        // end. b(θ) is a polynomial with coefficients below 1e4, so the error is δ²·1e4·56 plus
        // ε·1e4/δ: 1e-4 at δ = 1e-5.
        let delta = 1e-5;
        for (theta, stage) in [(0.0, 0), (1.0, dense.endpoint)] {
            let (up, down) = (at(theta + delta), at(theta - delta));
            for i in 0..dense.stages {
                let slope = (up[i] - down[i]) / (2.0 * delta);
                assert!(
                    (slope - f64::from(i == stage)).abs() < 1e-4,
                    "{} {theta} {i} {slope}",
                    scheme.name
                );
            }
        }
    }
}
