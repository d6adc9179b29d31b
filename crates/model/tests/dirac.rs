//! The Dirac extension: the printed field, and first integrals in the whole ambient space.

mod support;

use holonome_model::elaborate::model::Model;
use holonome_model::numeric::dot;
use holonome_model::treatment::structure::{ambient_points, evaluate, evaluate_rows};
use holonome_model::treatment::{Field, dirac, unrolled::unroll};

fn extend(model: &Model) -> Field {
    dirac::extend(model, unroll(model).unwrap()).unwrap().0
}

#[test]
fn spherical_pendulum_is_the_printed_field() {
    let model = support::model(&support::file("models/spherical-pendulum.holo"));
    let field = extend(&model);
    for x in ambient_points(&model, 20, 7) {
        let got = evaluate(&field.graph, &field.field, 0.0, &x, &model.parameter_values);
        let (q, p) = x.split_at(3);
        // Chang, Perlmutter, Vankerschaver 2022, section 2.3, with m = g = 1.
        let f1: f64 = q.iter().map(|v| v * v).sum();
        let f2: f64 = q.iter().zip(p).map(|(a, b)| a * b).sum();
        let pp: f64 = p.iter().map(|v| v * v).sum();
        for i in 0..3 {
            let gravity = if i == 2 { 1.0 } else { 0.0 };
            let dq = p[i] - f2 / f1 * q[i];
            let dp = -gravity + f2 / f1 * p[i] + (-pp + q[2]) / f1 * q[i];
            let size = 1.0 + pp / f1 + f2.abs() / f1;
            // Forty roundings of the largest term.
            assert!((got[i] - dq).abs() < 1e-14 * size && (got[3 + i] - dp).abs() < 1e-14 * size, "{x:?}: {got:?}");
        }
    }
}

/// DF·X against |DF| |X|.
fn largest_relative_rate(model: &Model, rows: std::ops::Range<usize>, t: f64) -> f64 {
    let field = extend(model);
    let mut worst = 0.0f64;
    for x in ambient_points(model, 10, 11) {
        let v = evaluate(&field.graph, &field.field, t, &x, &model.parameter_values);
        let rates: Vec<_> = field.jacobian[rows.clone()].iter().collect();
        for row in evaluate_rows(&field.graph, &rates, t, &x, &model.parameter_values) {
            let dense: Vec<(u32, f64)> = v.iter().enumerate().map(|(i, &v)| (i as u32, v)).collect();
            // |DF| |X|: the rounding errors of X are relative to its largest terms, not to each component.
            let size = (dot(&row, &row) * dot(&dense, &dense)).sqrt();
            worst = worst.max(dot(&row, &dense).abs() / size);
        }
    }
    worst
}

#[test]
fn constraints_and_energy_are_first_integrals_off_the_set() {
    let models = [
        support::file("models/spherical-pendulum.holo"),
        support::file("models/planar-pendulum.holo"),
        support::file("models/double-pendulum.holo"),
        support::file("models/chain.holo"),
        // A bead on a torus.
        "coordinate q : R^3 = (1.5, 0, 0)\nmomentum p of q = (0, 0.5, 0.7)\nhamiltonian dot(p, p)/2 + q.z\nconstraint torus : (sqrt(q.x^2 + q.y^2) - 1)^2 + q.z^2 = 0.25\n".to_string(),
        // A free rigid body in unit quaternions: the kinetic energy does not feel the constraint's normal.
        "coordinate q : R^4 = (1, 0, 0, 0)\nmomentum p of q = (0, 1, 0.5, -0.3)\nlet Q = matrix((-q[2], q[1], q[4], -q[3]), (-q[3], -q[4], q[1], q[2]), (-q[4], q[3], -q[2], q[1]))\nlet w = Q*p\nhamiltonian (w.x^2/3 + w.y^2/2 + w.z^2)/8\nconstraint unit : dot(q, q) = 1\n".to_string(),
        // A second-class pair: no hidden constraints.
        "coordinate q : R^3 = (1, 0, 0)\nmomentum p of q = (0, 1, 0)\nhamiltonian dot(p, p)/2 + dot(q, q)/2 + q.x*q.z\nconstraint height : q.z = 0\nconstraint rise : p.z = 0\n".to_string(),
        // A coisotropic constraint.
        "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 0)\nhamiltonian dot(p, p)/2\nconstraint sphere : dot(q, q) + dot(p, p) = 1\n".to_string(),
        // A slider-crank: three constraints in four coordinates.
        "coordinate a : R^2 = (0, 1)\ncoordinate b : R^2 = (sqrt(3), 0)\nmomentum u of a\nmomentum v of b\nhamiltonian dot(u, u)/2 + dot(v, v)/4 + a.y\nconstraint crank : dot(a, a) = 1\nconstraint rod : dot(b - a, b - a) = 4\nconstraint slider : b.y = 0\n".to_string(),
    ];
    for text in models {
        let model = support::model(&text);
        let field = extend(&model);
        // Constraints, hidden constraints and H; integrals may hold on the set only. The bound is a hundred
        // roundings, times the condition of the brackets at a random point.
        let rows = 0..field.constraints + 1;
        let worst = largest_relative_rate(&model, rows, 0.0);
        assert!(worst < 1e-11, "{worst:e} for\n{text}");
    }
}

#[test]
fn a_driven_pivot_keeps_its_constraints_off_the_set() {
    let text = "coordinate q : R^2 = (0, -1)\nmomentum p of q = (0.3, 0)\nhamiltonian dot(p, p)/2 + q.y\nlet a = q - (0.1*sin(3*t), 0)\nconstraint rod : dot(a, a) = 1\n";
    let model = support::model(text);
    let field = extend(&model);
    assert_eq!(field.groups.len(), 2, "H is no invariant of a driven system");
    let mut graph = field.graph.clone();
    for x in ambient_points(&model, 10, 3) {
        let t = 0.7;
        let v = evaluate(&graph, &field.field, t, &x, &model.parameter_values);
        for (row, &f) in field.jacobian.iter().zip(&field.invariants) {
            let explicit = graph.time_derivative(f);
            let explicit = evaluate(&graph, &[explicit], t, &x, &model.parameter_values)[0];
            let row = &evaluate_rows(&graph, &[row], t, &x, &model.parameter_values)[0];
            let rate = explicit + row.iter().map(|&(i, d)| d * v[i as usize]).sum::<f64>();
            assert!(rate.abs() < 1e-12, "{rate:e}");
        }
    }
}
