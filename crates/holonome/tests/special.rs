//! Special functions in a motion: methods against independent numbers, a period, refusals.

#![allow(clippy::excessive_precision, reason = "the references are as they were computed")]

mod common;

use common::{options, run};
use holonome::Problem;

/// A body in the potential of a Bessel and an incomplete gamma function, and its state at t = 10 by
/// Taylor series with 22 digits (mpmath 1.3, `odefun`).
const BODY: &str = "
    coordinate q : R^2 = (1, 0)
    momentum p of q = (0, 0.5)
    hamiltonian dot(p, p)/2 - 3*besselj(0, norm(q)) + 0.1*gammainc(2.5, dot(q, q))
    integral L = q.x*p.y - q.y*p.x
    observe f = polygamma(1, 2 + q.x) + ellipk(q.y^2/4)";
const AT_TEN: [f64; 4] =
    [0.749433287863447644, -0.210233893550794624, 0.774912314640375235, 0.44978942407761755];

fn error(with: &str) -> f64 {
    let body: Problem = BODY.parse().unwrap();
    let finished = run(body, options(&format!("--until 10 {with}"))).unwrap();
    let errors = finished.state().into_iter().zip(AT_TEN).map(|(x, e)| (x - e).abs());
    errors.fold(0.0, f64::max)
}

#[test]
fn methods_meet_independent_numbers() {
    for method in ["", "--method gauss16", "--method plain:dop853"] {
        let found = error(&format!("--rtol 1e-13 --atol 1e-14 {method}"));
        // A few hundred roundings and tolerances of a motion of size 1.
        assert!(found < 1e-11, "{method}: {found:e}");
    }
    // Newton's iteration takes second derivatives.
    assert!(error("--method radau5 --rtol 1e-10 --atol 1e-12") < 1e-8);
    for (method, order) in [("stormer-verlet-a", 2.0), ("implicit-midpoint", 2.0), ("rk4", 4.0)] {
        let at = |step: f64| error(&format!("--method {method} --step {step}"));
        let slope = (at(0.04) / at(0.005)).log2() / 3.0;
        assert!((slope - order).abs() < 0.15, "{method}: {slope}");
    }
    // A pendulum is back after 4 K(sin²(a/2)).
    let pendulum: Problem = "
        coordinate q = 1.5
        momentum p of q
        hamiltonian p^2/2 - cos(q)
        observe period = 4*ellipk(sin(1.5/2)^2)
        event back : p = 0 rising : stop"
        .parse()
        .unwrap();
    let back =
        run(pendulum, options("--until 20 --rtol 1e-13 --atol 1e-14 --method gauss16")).unwrap();
    // Half of it later it rises through 0: 2 K by mpmath 1.3.
    assert!((back.summary.t - 3.65043247106613).abs() < 1e-9, "{}", back.summary.t);
    let body: Problem = BODY.parse().unwrap();
    let refused = run(body, options("--until 10 --method taylor")).err().unwrap().to_string();
    assert!(refused.contains("`besselj` has none"), "{refused}");
}
