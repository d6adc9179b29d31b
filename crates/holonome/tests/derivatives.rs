//! Derivatives of flows as a user has them: their shapes, what they refuse, models of any size. The
//! structure tests compare them with differences for every method.

use holonome::{Flow, Metric, Problem, RunOptions, StepSize};

const PENDULUM: &str = "
    coordinate q : R^3 = (0, 1, 0)
    momentum   p of q  = (1, 0, -1)
    hamiltonian dot(p, p)/2 + q.z
    constraint  rod : dot(q, q) = 1
";

fn flow(text: &str, method: &str, step: Option<f64>, until: f64) -> Flow {
    let (method, step) = (method.parse().unwrap(), StepSize::from(step));
    let problem: Problem = text.parse().unwrap();
    let metric = Metric::Euclidean;
    Flow::new(&problem, RunOptions { method, step, until, metric, ..RunOptions::default() })
        .unwrap()
}

/// States of the pendulum, each on its set.
fn pendulums(count: usize) -> Vec<f64> {
    let state = |k: usize| {
        let (sin, cos) = (0.1 * k as f64).sin_cos();
        [sin, cos, 0.0, cos, -sin, 0.3 * (k as f64).sin()]
    };
    (0..count).flat_map(state).collect()
}

#[test]
fn matrices_are_tangents_of_units_and_do_not_depend_on_company() {
    for method in ["rattle", "corrected:rk4", "feedback:rk4"] {
        let mut flow = flow(PENDULUM, method, Some(0.05), 0.5);
        let (count, n) = (150, flow.dim());
        let mut states = pendulums(count);
        let (starts, mut flown) = (states.clone(), states.clone());
        flow.apply(&mut flown).unwrap();
        let matrices = flow.apply_with_derivative(&mut states).unwrap();
        assert_eq!((matrices.len(), &states), (count * n * n, &flown));
        for k in [0, 1, 77, 149] {
            let mut alone = starts[k * n..(k + 1) * n].to_vec();
            let mut direction = vec![0.5, -1.0, 2.0, 0.0, 1.0, 3.0];
            let along = direction.clone();
            flow.apply_with_tangents(&mut alone, &mut direction).unwrap();
            assert_eq!(alone, flown[k * n..(k + 1) * n]);
            let matrix = &matrices[k * n * n..(k + 1) * n * n];
            for (row, image) in matrix.chunks(n).zip(&direction) {
                let sum: f64 = row.iter().zip(&along).map(|(m, v)| m * v).sum();
                assert!((sum - image).abs() < 1e-13, "{method}: {sum} {image}");
            }
        }
    }
}

/// The last step is shorter, and a flow over a time is that over its parts.
#[test]
fn derivatives_obey_the_chain_rule() {
    for method in ["rattle", "corrected:dop853", "symmetric-projection:rk4"] {
        let [mut whole, mut half] =
            [1.0, 0.5].map(|until| flow(PENDULUM, method, Some(0.1), until));
        let (mut x, mut v) = (pendulums(1), vec![1.0, 0.0, 0.0, 0.0, -1.0, 0.5]);
        let (mut y, mut w) = (x.clone(), v.clone());
        whole.apply_with_tangents(&mut x, &mut v).unwrap();
        half.apply_with_tangents(&mut y, &mut w).unwrap();
        half.apply_with_tangents(&mut y, &mut w).unwrap();
        // Steps hold what the start of their own flow has, which differs by rounding.
        for (a, b) in x.iter().chain(&v).zip(y.iter().chain(&w)) {
            assert!((a - b).abs() < 1e-12, "{method}: {a} {b}");
        }
    }
    let free = "coordinate q : R = 1\nmomentum p of q = 0\nhamiltonian (p^2 + q^2)/2";
    let mut flow = flow(free, "gauss16", Some(0.4), 1.0);
    let matrix = flow.apply_with_derivative(&mut [0.3, 0.7]).unwrap();
    let (sin, cos) = 1f64.sin_cos();
    for (found, exact) in matrix.iter().zip([cos, sin, -sin, cos]) {
        assert!((found - exact).abs() < 1e-14, "{found} {exact}");
    }
}

#[test]
fn what_has_no_derivative_is_refused_by_name() {
    let refused = |flow: &mut Flow, states: &mut [f64], tangents: &mut [f64]| {
        flow.apply_with_tangents(states, tangents).unwrap_err().to_string()
    };
    let mut adaptive = flow(PENDULUM, "corrected:dop853", None, 1.0);
    let message = refused(&mut adaptive, &mut pendulums(1), &mut [0.0; 6]);
    assert!(message.contains("equal steps") && message.ends_with("give step"), "{message}");
    let mut equal = flow(PENDULUM, "rattle", Some(0.1), 1.0);
    for (states, tangents) in [(6, 7), (12, 6), (12, 18), (0, 6)] {
        let message = refused(&mut equal, &mut pendulums(2)[..states], &mut vec![0.0; tangents]);
        assert!(message.contains("tangent vectors of 6 numbers"), "{message}");
    }
    assert!(refused(&mut equal, &mut [0.0; 5], &mut []).contains("a state has 6 numbers"));
    assert!(refused(&mut equal, &mut [0.0; 6], &mut [0.0; 6]).contains("rod"));
    // A kink that is met: the derivative of the root there is infinite.
    let mut root = flow("state x = 0\nx' = 1 + sqrt(x)", "euler", Some(0.1), 0.2);
    let message = refused(&mut root, &mut [0.0], &mut [1.0]);
    assert!(message.contains("derivative") && message.contains("not finite"), "{message}");
    // Nothing has nothing.
    assert!(equal.apply_with_derivative(&mut []).unwrap().is_empty());
    equal.apply_with_tangents(&mut pendulums(2), &mut []).unwrap();
}

/// A chain whose links make an angle with the vertical, at rest.
fn chain(links: usize, angle: f64) -> Vec<f64> {
    let (sin, cos) = angle.sin_cos();
    let q = (1..=links).flat_map(|i| [0.2 * i as f64 * sin, 0.2 * i as f64 * cos]);
    q.chain(std::iter::repeat_n(0.0, 2 * links)).collect()
}

/// Steps of large models are templated, and their derivatives unrolled. The motion along the angle
/// is smooth: a central difference over 2δ errs by δ² and the rounding over δ.
#[test]
fn large_models_have_derivatives() {
    const LINKS: usize = 100;
    let text = format!(
        "size n = {LINKS}
         coordinate q[i in 1..n] : R^2 = (0, 0.2*i)
         momentum   p[i] of q  = (0, 0)
         hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + q[i].y)
         constraint  first : dot(q[1], q[1]) = 0.04
         constraint  link[i in 2..n] : dot(q[i] - q[i-1], q[i] - q[i-1]) = 0.04"
    );
    for method in ["rattle", "corrected:rk4", "projection:heun"] {
        let mut flow = flow(&text, method, Some(0.01), 0.02);
        let (angle, delta) = (1.0, 1e-4);
        let at = |angle: f64| chain(LINKS, angle);
        let rate = at(angle + std::f64::consts::FRAC_PI_2);
        let [mut after, mut before] = [delta, -delta].map(|delta| at(angle + delta));
        flow.apply(&mut after).unwrap();
        flow.apply(&mut before).unwrap();
        let (mut x, mut tangent) = (at(angle), rate);
        flow.apply_with_tangents(&mut x, &mut tangent).unwrap();
        let mut worst = 0.0f64;
        for (found, (a, b)) in tangent.iter().zip(after.iter().zip(&before)) {
            worst = worst.max((found - (a - b) / (2.0 * delta)).abs());
        }
        println!("{method}: {worst:.1e}");
        // The metric of a correction is frozen, which leaves what its change would move.
        let most = if method == "corrected:rk4" { 1e-5 } else { 1e-7 };
        assert!(worst < most, "{method}: {worst:.1e}");
    }
}
