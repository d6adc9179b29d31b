//! Tests of the Dirac extension: the printed field, and first integrals in the whole ambient space.

mod support;

use holonome_linear::gram::{Gram, Row, dot};
use holonome_model::consistency::{self, Projection};
use holonome_model::derived::Derived;
use holonome_model::elaborate::model::Model;
use holonome_model::graph::{Graph, Node};
use holonome_model::points::Points;
use holonome_model::policy::Way;
use holonome_model::treatment::Field;
use holonome_model::treatment::feedback::{self, Potential, Transport};
use holonome_model::treatment::structure::{ambient_points, evaluate, evaluate_rows};

fn extend(model: &Model) -> Field {
    Derived::new(model.clone()).field().unwrap().0
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
            assert!(
                (got[i] - dq).abs() < 1e-14 * size && (got[3 + i] - dp).abs() < 1e-14 * size,
                "{x:?}: {got:?}"
            );
        }
    }
}

/// Largest DF·X relative to |DF| |X|.
fn largest_relative_rate(model: &Model, rows: std::ops::Range<usize>, t: f64) -> f64 {
    let field = extend(model);
    let mut worst = 0.0f64;
    for x in ambient_points(model, 10, 11) {
        let v = evaluate(&field.graph, &field.field, t, &x, &model.parameter_values);
        let rates: Vec<_> = field.jacobian[rows.clone()].iter().collect();
        for row in evaluate_rows(&field.graph, &rates, t, &x, &model.parameter_values) {
            let dense: Vec<(u32, f64)> =
                v.iter().enumerate().map(|(i, &v)| (i as u32, v)).collect();
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
        // A free rigid body in unit quaternions: H does not depend on the momentum along the
        // constraint's normal.
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
        // Constraints, hidden constraints and H; integrals may hold on the set only. The bound is a
        // hundred roundings, times the condition of the brackets at a random point.
        let rows = 0..field.constraints + 1;
        let worst = largest_relative_rate(&model, rows, 0.0);
        assert!(worst < 1e-11, "{worst:e} for\n{text}");
    }
}

/// On the set g = h = 0 the underlying field is the extension; elsewhere it changes g by h and does
/// not change h.
#[test]
fn the_underlying_field_is_the_extension_on_the_set() {
    let mut seen = 0;
    for (text, t) in [
        (support::file("models/spherical-pendulum.holo"), 0.0),
        (support::file("models/double-pendulum.holo"), 0.0),
        ("parameter m[i in 1..2] = (1, 1e-8)[i]\ncoordinate q[i in 1..2] : R^2 = (1e3*i, 0)\nmomentum p of q = (0, 0.3*m[i])\nhamiltonian sum(i in 1..2 : dot(p[i], p[i])/(2*m[i]) + m[i]*q[i].y)\nconstraint first : dot(q[1], q[1]) = 1e6\nconstraint second : dot(q[2] - q[1], q[2] - q[1]) = 1e6\n".to_string(), 0.0),
        ("coordinate q : R^2 = (0, -1)\nmomentum p of q = (0.3, 0)\nhamiltonian dot(p, p)/2 + q.y\nlet a = q - (0.1*sin(3*t), 0)\nconstraint rod : dot(a, a) = 1\n".to_string(), 0.7),
    ] {
        let model = support::model(&text);
        let field = extend(&model);
        let near = field.from_the_set().expect("its constraints are on positions");
        let m = field.constraints / 2;
        let mut graph = field.graph.clone();
        let explicit: Vec<Node> = field.invariants.iter().map(|&f| graph.time_derivative(f)).collect();
        let start = model.initial.clone();
        for (k, x) in std::iter::once(start).chain(ambient_points(&model, 5, 31)).enumerate() {
            let at = |nodes: &[Node]| evaluate(&graph, nodes, t, &x, &model.parameter_values);
            let (extended, underlying, f) = (at(&field.field), at(&near.field), at(&field.invariants));
            if k == 0 && t == 0.0 {
                for (a, b) in extended.iter().zip(&underlying) {
                    // Some roundings of a solved system of two equations.
                    assert!((a - b).abs() <= 2e-14 * a.abs(), "{a} {b}\n{text}");
                }
                continue;
            }
            let rows = evaluate_rows(&graph, &field.jacobian.iter().collect::<Vec<_>>(), t, &x, &model.parameter_values);
            let explicit = at(&explicit);
            for row in 0..2 * m {
                let terms: Vec<f64> = rows[row].iter().map(|&(i, d)| d * underlying[i as usize]).collect();
                let size: f64 = terms.iter().map(|term| term.abs()).sum();
                let rate = explicit[row] + terms.iter().sum::<f64>();
                let expected = if row < m { f[m + row] } else { 0.0 };
                // A hundred roundings, times the condition of the system at a random point.
                assert!((rate - expected).abs() <= 1e-11 * size, "{rate:e} {expected:e}\n{text}");
                seen += usize::from(expected.abs() > 1e-3 * size);
            }
        }
    }
    assert!(seen >= 5, "h is {seen} times not small");
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

/// F, DF and X at a point of a field whose tape takes `parameters`.
fn look(field: &Field, x: &[f64], parameters: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>, Vec<f64>) {
    let f = evaluate(&field.graph, &field.invariants, 0.0, x, parameters);
    let rows =
        evaluate_rows(&field.graph, &field.jacobian.iter().collect::<Vec<_>>(), 0.0, x, parameters);
    let dense = |row: &Row| {
        let mut d = vec![0.0; x.len()];
        row.iter().for_each(|&(i, v)| d[i as usize] = v);
        d
    };
    (f, rows.iter().map(dense).collect(), evaluate(&field.graph, &field.field, 0.0, x, parameters))
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Models whose invariants are all first integrals in the whole space.
fn feedback_models() -> Vec<Model> {
    [
        "models/spherical-pendulum.holo",
        "models/planar-pendulum.holo",
        "models/double-pendulum.holo",
        "models/kepler.holo",
    ]
    .map(|f| support::model(&support::file(f)))
    .into()
}

/// ΔF at a point: constraints are compared with 0, the others with their value at the start.
fn deviation(field: &Field, f: &[f64], targets: &[f64]) -> Vec<f64> {
    f.iter()
        .enumerate()
        .map(|(k, v)| if k < field.constraints { *v } else { v - targets[k - field.constraints] })
        .collect()
}

/// Compares the feedback field with X − L∇V, L∇V from the definition, and V̇ with −∇V·L∇V.
fn check_feedback(
    model: &Model,
    potential: &Potential,
    transport: &Transport,
    gains: &[f64],
    slope: &dyn Fn(&Field, &[f64]) -> Vec<f64>,
    l: &dyn Fn(&[f64]) -> Vec<f64>,
) {
    let field = extend(model);
    let (controlled, inputs) = feedback::literal(&field, potential, transport);
    let (f0, ..) = look(&field, &model.initial, &model.parameter_values);
    let targets = &f0[field.constraints..];
    let parameters = [&model.parameter_values[..], targets, gains].concat();
    assert_eq!(
        (inputs.targets, inputs.gains, inputs.gain_count),
        (model.parameter_values.len(), model.parameter_values.len() + targets.len(), gains.len())
    );
    assert_eq!(controlled.parameters, parameters.len());
    let n = model.dimension();
    for x in ambient_points(model, 20, 21) {
        let (f, df, free) = look(&field, &x, &model.parameter_values);
        let (_, _, got) = look(&controlled, &x, &parameters);
        let delta = deviation(&field, &f, targets);
        let s = slope(&field, &delta);
        let gradient: Vec<f64> =
            (0..n).map(|i| df.iter().zip(&s).map(|(row, s)| s * row[i]).sum()).collect();
        let matrix = l(&x);
        let push: Vec<f64> =
            (0..n).map(|i| inner(&matrix[i * n..(i + 1) * n], &gradient)).collect();
        let size = |v: &[f64]| inner(v, v).sqrt();
        for i in 0..n {
            // A few dozen roundings of the largest terms.
            assert!(
                (got[i] - (free[i] - push[i])).abs() <= 1e-13 * (size(&free) + size(&push)),
                "{got:?} {free:?} {push:?}"
            );
        }
        // V̇ = ∇V·X − ∇V·L∇V, and X conserves every invariant of the whole space: V falls.
        let (rate, fall) = (inner(&gradient, &got), inner(&gradient, &push));
        assert!(fall > 0.0);
        let strong = inner(&gradient, &free).abs() <= 1e-11 * size(&gradient) * size(&free);
        assert!(
            strong && (rate + fall).abs() <= 1e-11 * size(&gradient) * (size(&free) + size(&push)),
            "{rate:e} {fall:e}"
        );
    }
}

#[test]
fn feedback_by_gains_lets_v_fall() {
    // Off the set the rigid body turns RᵀR: its entries vary and only their Frobenius norm stays,
    // which is V if every entry counts.
    let rigid_body = support::model(&support::file("models/rigid-body.holo"));
    for model in feedback_models().into_iter().chain([rigid_body]) {
        let field = extend(&model);
        let gains: Vec<f64> = (0..field.groups.len()).map(|k| 0.5 + 2.0 * k as f64).collect();
        let slope = |field: &Field, delta: &[f64]| {
            let mut s = vec![0.0; delta.len()];
            for (group, gain) in field.groups.iter().zip(&gains) {
                // Every entry of the user's quantity counts: the off-diagonal ones of a symmetric
                // matrix twice.
                for (row, multiplicity) in group.members.rows() {
                    s[row] = gain * multiplicity * delta[row];
                }
            }
            s
        };
        check_feedback(
            &model,
            &Potential::Gains,
            &Transport::Identity,
            &gains,
            &slope,
            &identity_of(model.dimension()),
        );
    }
}

fn identity_of(n: usize) -> impl Fn(&[f64]) -> Vec<f64> {
    move |_| (0..n * n).map(|k| if k / n == k % n { 1.0 } else { 0.0 }).collect()
}

#[test]
fn a_symmetric_constraint_counts_every_entry() {
    // Rigid body: V of the printed gains is k₀/4 ‖RᵀR − 1‖² over all nine entries.
    let model = support::model(&support::file("models/rigid-body.holo"));
    let field = extend(&model);
    let orthogonal = &field.groups[0];
    assert_eq!(
        orthogonal.members.rows().take(6).map(|c| c.1).collect::<Vec<_>>(),
        [1.0, 2.0, 2.0, 1.0, 2.0, 1.0]
    );
    assert_eq!(field.constraints, 6);
}

#[test]
fn feedback_by_a_matrix_of_gains() {
    for model in feedback_models() {
        let m = extend(&model).invariants.len();
        // A full symmetric positive definite K: 1 on the diagonal, small couplings off it.
        let k: Vec<f64> = (0..m * m)
            .map(|e| {
                if e / m == e % m {
                    1.0 + (e / m) as f64 / 4.0
                } else {
                    0.5 / m as f64 / (1.0 + (e / m).abs_diff(e % m) as f64)
                }
            })
            .collect();
        let matrix = k.clone();
        let slope = move |_: &Field, delta: &[f64]| {
            (0..m).map(|i| inner(&matrix[i * m..(i + 1) * m], delta)).collect()
        };
        check_feedback(
            &model,
            &Potential::Matrix,
            &Transport::Identity,
            &k,
            &slope,
            &identity_of(model.dimension()),
        );
    }
}

#[test]
fn feedback_by_the_users_potential_and_transport() {
    // W = Σ ΔF⁴ + ½ ΔF₀², and an L(x) that turns the gradient (not symmetric) and depends on the
    // state.
    let w = |g: &mut Graph, delta: &[Node]| {
        let mut sum = g.mul(delta[0], delta[0]);
        let half = g.constant(0.5);
        sum = g.mul(half, sum);
        for &d in delta {
            let square = g.mul(d, d);
            let fourth = g.mul(square, square);
            sum = g.add(sum, fourth);
        }
        sum
    };
    let slope = |_: &Field, delta: &[f64]| {
        delta
            .iter()
            .enumerate()
            .map(|(k, d)| 4.0 * d.powi(3) + if k == 0 { *d } else { 0.0 })
            .collect::<Vec<f64>>()
    };
    let l = |g: &mut Graph, x: &[Node]| {
        let n = x.len();
        let square = g.mul(x[0], x[0]);
        let two = g.constant(2.0);
        let diagonal = g.add(two, square);
        let zero = g.zero();
        let mut matrix = vec![zero; n * n];
        for i in 0..n {
            matrix[i * n + i] = diagonal;
            let next = (i + 1) % n;
            // Antisymmetric: it does not change ∇V·L∇V.
            matrix[i * n + next] = g.add(matrix[i * n + next], x[i]);
            matrix[next * n + i] = g.sub(matrix[next * n + i], x[i]);
        }
        matrix
    };
    let l_value = |x: &[f64]| {
        let n = x.len();
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            matrix[i * n + i] += 2.0 + x[0] * x[0];
            let next = (i + 1) % n;
            matrix[i * n + next] += x[i];
            matrix[next * n + i] -= x[i];
        }
        matrix
    };
    for model in feedback_models() {
        check_feedback(
            &model,
            &Potential::Function(&w),
            &Transport::Matrix(&l),
            &[],
            &slope,
            &l_value,
        );
    }
}

#[test]
fn gauss_newton_lets_every_invariant_decay_at_one_rate() {
    // A double pendulum in space (4 constraint rows, H, J in 12 dimensions) and the spherical
    // pendulum.
    for file in [
        "models/spherical-pendulum.holo",
        "suite/models/double-spherical-pendulum.holo",
        "models/double-pendulum.holo",
    ] {
        let model = support::model(&support::file(file));
        let field = extend(&model);
        // Each component is a vector of its own, with weights that are far from equal.
        let n = model.dimension();
        let weights: Vec<f64> = (0..n).map(|i| 10f64.powi((i * 7 % 5) as i32 - 2)).collect();
        let (controlled, inputs) = feedback::gauss_newton(&field, &(0..n).collect::<Vec<_>>());
        assert_eq!(inputs.gain_count, 1 + n);
        let (f0, ..) = look(&field, &model.initial, &model.parameter_values);
        let targets = &f0[field.constraints..];
        let kappa = 3.0;
        let parameters = [&model.parameter_values[..], targets, &[kappa], &weights].concat();
        let mut tried = 0;
        for x in ambient_points(&model, 20, 5) {
            let (f, df, free) = look(&field, &x, &model.parameter_values);
            let (_, _, got) = look(&controlled, &x, &parameters);
            let delta = deviation(&field, &f, targets);
            // DF in the variables in which the metric is Euclidean.
            let scaled: Vec<Vec<f64>> = df
                .iter()
                .map(|r| r.iter().zip(&weights).map(|(d, w)| d * w.sqrt()).collect())
                .collect();
            let norms: Vec<f64> = scaled.iter().map(|r| inner(r, r).sqrt()).collect();
            let rows: Vec<Row> = scaled
                .iter()
                .map(|r| r.iter().enumerate().map(|(i, &v)| (i as u32, v)).collect())
                .collect();
            let gram = Gram::new(&rows, 0.0);
            // S y = Δ̂ is solved as (S + ε) y = Δ̂: the error of S y is ε |y| for each unit row,
            // and y = S⁻¹ Δ̂ up to a factor near 1.
            let y: Vec<f64> = gram.solve(&delta).iter().zip(&norms).map(|(y, n)| y * n).collect();
            let allowed = 1.1 * holonome_linear::dense::REGULARISATION * inner(&y, &y).sqrt();
            let scaled: f64 = delta.iter().zip(&norms).map(|(d, n)| (d / n).powi(2)).sum();
            if allowed > 1e-4 * scaled.sqrt() {
                continue; // DF loses rank nearby, and the regularisation takes effect
            }
            tried += 1;
            for (k, row) in df.iter().enumerate() {
                let decay: f64 = (0..x.len()).map(|i| row[i] * (got[i] - free[i])).sum();
                let error = (decay + kappa * delta[k]).abs() / norms[k];
                // Plus some hundred roundings of the terms.
                assert!(
                    error <= kappa * allowed + 1e-12 * (1.0 + inner(&free, &free).sqrt()),
                    "{file}, row {k}: {decay} {}, {error:e} {allowed:e}",
                    -kappa * delta[k]
                );
            }
        }
        assert!(tried >= 5, "{file}: {tried}");
    }
}

#[test]
fn gauss_newton_survives_a_lost_rank() {
    // At rest at the bottom DH is parallel to the rod's gradient: DF has rank 2 of 3, and nothing
    // is infinite.
    let model = support::model(
        "coordinate q : R^2 = (0, -1)\nmomentum p of q\nhamiltonian dot(p, p)/2 + q.y\nconstraint rod : dot(q, q) = 1\n",
    );
    let field = extend(&model);
    let (controlled, _) = feedback::gauss_newton(&field, &[0, 0, 1, 1]);
    for x in [
        [0.0, -1.0, 0.0, 0.0],
        [0.0, -1.001, 0.0, 0.0],
        [1e-9, -1.0, 1e-9, 0.0],
        [0.0, 0.0, 0.0, 0.0],
    ] {
        // The field X itself needs q ≠ 0.
        let got = evaluate(&controlled.graph, &controlled.field, 0.0, &x, &[-1.0, 2.0, 1.0, 1.0]);
        assert!(
            x[1] == 0.0 || got.iter().all(|v| v.is_finite() && v.abs() < 1.0),
            "{x:?}: {got:?}"
        );
    }
}

#[test]
fn the_start_is_projected_with_the_least_kinetic_change() {
    // A bead with unequal masses along x and y on a circle, off in position and momentum.
    let model = |q: [f64; 2], p: [f64; 2]| {
        support::model(&format!(
            "coordinate q : R^2 = ({}, {})\nmomentum p of q = ({}, {})\nhamiltonian p.x^2/2 + p.y^2/8\nconstraint rod : dot(q, q) = 1\n",
            q[0], q[1], p[0], p[1]
        ))
    };
    for (q, p) in [
        ([0.602, -0.797], [0.7, 0.3]),
        ([1.001, 0.003], [0.2, -0.4]),
        ([-0.705, 0.711], [0.0, 1.0]),
    ] {
        let moved = consistency::project_initial(&model(q, p)).unwrap();
        let x = &moved.initial;
        // On the set: two roundings of 1 and of q·M⁻¹p.
        assert!((x[0] * x[0] + x[1] * x[1] - 1.0).abs() < 4.0 * f64::EPSILON, "{x:?}");
        assert!((x[0] * x[2] + x[1] * x[3] / 4.0).abs() < 4.0 * f64::EPSILON, "{x:?}");
        // Brute force: the momentum p = s (−q.y, q.x M…) tangent to the circle there that is
        // nearest in pᵀM⁻¹p.
        let tangent = [-x[1], 4.0 * x[0]];
        let metric = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1] / 4.0;
        let s = metric(p, tangent) / metric(tangent, tangent);
        for k in 0..2 {
            assert!((x[2 + k] - s * tangent[k]).abs() < 1e-14, "{x:?} {s}");
        }
        // Positions: at the nearest point of the circle in M, M (x − q) is a multiple of its normal
        // x. Both are near 1, and known to some roundings of the start.
        let turned = (x[0] - q[0]) * x[1] - 4.0 * (x[1] - q[1]) * x[0];
        assert!(turned.abs() < 32.0 * f64::EPSILON, "{x:?} {turned:e}");
        let distance = ((x[0] - q[0]).powi(2) + (x[1] - q[1]).powi(2)).sqrt();
        assert!((moved.position - distance).abs() < 1e-15, "{} {distance}", moved.position);
    }
    // A start on the set stays where it is; redundant constraints are refused in words.
    let still = consistency::project_initial(&model([0.6, -0.8], [0.8, 2.4])).unwrap();
    assert!(still.position < 1e-15 && still.momentum < 1e-15, "{still:?}");
    // Every model of the project can be moved off its set and brought back.
    for (name, text) in support::files("suite/models") {
        let Some(mut model) = support::check_in("suite/models", &text).0 else { panic!("{name}") };
        if !model.is_hamiltonian() || model.constraints.is_empty() {
            continue;
        }
        let mut points = Points::new(8);
        let size = model.initial.iter().map(|v| v * v).sum::<f64>().sqrt();
        model.initial.iter_mut().for_each(|x| *x += 1e-3 * size * points.draw() / 3.0);
        let moved = consistency::project_initial(&model).unwrap_or_else(|e| panic!("{name}: {e}"));
        model.initial = moved.initial;
        let off = consistency::examine(&model).off_set;
        assert!(off.is_empty(), "{name}: {off:?}");
        assert!(
            moved.position + moved.momentum < 0.05 * size,
            "{name}: {} {}",
            moved.position,
            moved.momentum
        );
    }
}

#[test]
fn the_start_is_projected_to_the_nearest_point_from_afar() {
    // Newton's iteration alone arrives 0.1 beside the nearest point of this ellipse; M = (1, 3).
    for q in [[2.7, 1.9], [-3.0, 0.4], [0.5, 0.3]] {
        let model = support::model(&format!(
            "coordinate q : R^2 = ({}, {})\nmomentum p of q = (0.3, 0.4)\nhamiltonian p.x^2/2 + p.y^2/6\nconstraint c : q.x^2/4 + q.y^2 = 1\n",
            q[0], q[1]
        ));
        let x = consistency::project_initial(&model).unwrap().initial;
        assert!((x[0] * x[0] / 4.0 + x[1] * x[1] - 1.0).abs() < 4.0 * f64::EPSILON, "{x:?}");
        // M (x − q) is a multiple of the gradient (x/2, 2y). Terms of up to 6 are known to some ten
        // roundings.
        let turned = (x[0] - q[0]) * 2.0 * x[1] - 3.0 * (x[1] - q[1]) * x[0] / 2.0;
        assert!(turned.abs() < 1e-13, "{x:?} {turned:e}");
        let kinetic = |a: f64| (2.0 * a.cos() - q[0]).powi(2) + 3.0 * (a.sin() - q[1]).powi(2);
        let best =
            (0..6000).map(|k| kinetic(f64::from(k) * 1.0472e-3)).fold(f64::INFINITY, f64::min);
        // The nearest of several stationary points: the grid misses it by its square, 3e-6 at most.
        assert!((x[0] - q[0]).powi(2) + 3.0 * (x[1] - q[1]).powi(2) < best + 1e-5, "{x:?}");
    }
}

/// Starts of a driven chain whose kinetic energy couples its masses, by amounts that vary.
fn coupled_chain(n: usize) -> Model {
    support::model(&format!(
        "size n = {n}\nparameter m[i in 1..n] = 1 + 0.5*sin(i)\n\
         coordinate r[i in 1..n] : R^2 = (i + 0.02*sin(3*i), -2*i + 0.02*cos(5*i))\n\
         momentum p[i] of r = (cos(i), sin(2*i))\n\
         hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i]) + r[i].y) + \
             sum(i in 2..n : 0.2*cos(r[i].x)*dot(p[i], p[i-1]))\n\
         constraint anchor : dot(r[1] - (0.3*sin(t), 0), r[1] - (0.3*sin(t), 0)) = 5\n\
         constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 5\n"
    ))
}

#[test]
fn templated_starts_are_projected_like_unrolled_ones() {
    for n in [3, 200] {
        let mut model = coupled_chain(n);
        let found = consistency::project_initial(&model).unwrap();
        let unrolled = Projection::unrolled(&model).unwrap();
        let expected = unrolled.project(&model.parameter_values, &model.initial).unwrap();
        assert_eq!(Way::of_field(&model).templated, n == 200);
        for (found, expected) in found.initial.iter().zip(&expected.initial) {
            // Some hundred roundings of the largest position, 2 n; small models are unrolled.
            let rounding = if n == 3 { 0.0 } else { 100.0 * 2.0 * n as f64 * f64::EPSILON };
            assert!((found - expected).abs() <= rounding, "{n}: {found} {expected}");
        }
        let moved = consistency::project_initial(&Model { t0: 1.0, ..model.clone() });
        // The anchor is at 0.3 sin 1 then, and moves on.
        assert!((moved.unwrap().position - found.position).abs() > 0.01);
        model.initial = found.initial;
        assert!(consistency::examine(&model).off_set.is_empty());
    }
}

#[test]
fn the_starts_of_many_chains_are_projected_like_that_of_one() {
    let chains = |m: usize| {
        support::model(&format!(
            "size n = 10\nsize m = {m}\n\
             coordinate r[k in 1..m, i in 1..n] : R^2 = (i + 0.1*sin(3*i), -2*i + 0.1*cos(5*i))\n\
             momentum p[k, i] of r = (cos(i), sin(2*i))\n\
             hamiltonian sum(k in 1..m, i in 1..n : dot(p[k, i], p[k, i])/(2 + i) + r[k, i].y)\n\
             constraint anchor[k in 1..m] : dot(r[k, 1], r[k, 1]) = 5\n\
             constraint link[k in 1..m, i in 2..n] : dot(r[k, i] - r[k, i-1], r[k, i] - r[k, i-1]) = 5\n"
        ))
    };
    let one = consistency::project_initial(&chains(1)).unwrap();
    for m in [40, 400] {
        let model = chains(m);
        assert!(Way::of_field(&model).templated);
        let all = consistency::project_initial(&model).unwrap();
        let (q, p) = all.initial.split_at(20 * m);
        let worst = |all: &[f64], one: &[f64]| {
            let differences = all.chunks(20).flat_map(|chain| chain.iter().zip(one));
            differences.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        // Ten roundings of the largest position, 20, and of momenta of sums of ten terms.
        assert!(worst(q, &one.initial[..20]) <= 200.0 * f64::EPSILON);
        assert!(worst(p, &one.initial[20..]) <= 200.0 * f64::EPSILON);
        assert!((all.position - one.position * (m as f64).sqrt()).abs() <= 1e-12 * all.position);
    }
}

/// Copies of a model share everything derived of one of them, also without its observables; dropped
/// parts are derived anew.
#[test]
fn what_is_derived_is_made_once() {
    let model = support::model(
        "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2 + q.y\n\
         constraint rod : dot(q, q) = 1\nobserve height = q.y\n",
    );
    let one = Derived::new(model);
    let (copy, bare) = (one.clone(), one.without_observables());
    let made = one.mechanics().unwrap();
    assert!(std::ptr::eq(made, copy.mechanics().unwrap()));
    assert!(std::ptr::eq(made, bare.mechanics().unwrap()));
    assert!(bare.observables.is_empty() && !one.observables.is_empty());
    let mut alone = one.clone();
    alone.forget();
    assert!(!std::ptr::eq(made, alone.mechanics().unwrap()));
    assert!(std::ptr::eq(made, one.mechanics().unwrap()));
    assert_eq!(made.constraints.len(), 1);
}
