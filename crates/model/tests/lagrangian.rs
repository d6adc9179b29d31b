//! Tests of Lagrangians: fields against the equations of Euler and Lagrange in closed form, momenta,
//! templates of families, primary constraints.

mod support;

use holonome_model::derived::Derived;
use holonome_model::elaborate::model::Model;
use holonome_model::graph::Graph;
use holonome_model::graph::tape::Tape;
use holonome_model::treatment::structure::{ambient_points, evaluate};
use std::f64::consts::PI;

/// x' of a model at (t, x).
fn field(model: &Model, t: f64, x: &[f64]) -> Vec<f64> {
    let field = Derived::new(model.clone()).field().unwrap().0;
    evaluate(&field.graph, &field.field, t, x, &model.parameter_values)
}

/// H of a model at (t, x).
fn energy(model: &Model, t: f64, x: &[f64]) -> f64 {
    model.moved_by().evaluate(t, x, &model.parameter_values)[0]
}

fn assert_near(got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len());
    for (a, b) in got.iter().zip(expected) {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{got:?} is not {expected:?}");
    }
}

/// H and its field of two models at random points; a hundred roundings.
fn assert_same(a: &Model, b: &Model) {
    assert_near(&a.initial, &b.initial, 1e-14);
    for x in ambient_points(a, 5, 3) {
        assert_near(&[energy(a, 0.3, &x)], &[energy(b, 0.3, &x)], 1e-13);
        assert_near(&field(a, 0.3, &x), &field(b, 0.3, &x), 1e-13);
    }
}

/// Number of operations of H and its gradient.
fn operations(model: &Model) -> usize {
    let mut g = Graph::new();
    let h = model.moved_by().unroll(&mut g)[0];
    let gradient = g.gradient(h).into_iter().map(|(_, d)| d);
    let outputs: Vec<_> = std::iter::once(h).chain(gradient).collect();
    Tape::new(&g, &outputs, model.dimension(), model.parameter_values.len()).operations()
}

const DOUBLE: &str = "parameter m = 0.7\nparameter l = 1.3\ncoordinate a = 2\ncoordinate b = 1\n\
    velocity u of a = 0.3\nvelocity v of b = -0.5\n";

#[test]
fn hamiltonians_by_hand() {
    let double = (
        format!(
            "{DOUBLE}lagrangian (1 + m)*a'^2/2 + m*l^2*b'^2/2 + m*l*a'*b'*cos(a - b) + (1 + m)*cos(a) + m*l*cos(b)\n"
        ),
        format!(
            "{DOUBLE}hamiltonian (m*l^2*p_a^2 + (1 + m)*p_b^2 - 2*m*l*p_a*p_b*cos(a - b))/(2*m*l^2*(1 + m*sin(a - b)^2)) - (1 + m)*cos(a) - m*l*cos(b)\n"
        ),
    );
    let magnetic = "parameter m = 2\ncoordinate q : R^3 = (1, 0, 2)\nvelocity v of q = (0.2, 1, 0)\nlet A = (-0.5*q.y, 0.5*q.x, 0.1*q.x^2)\n";
    let magnetic = (
        format!("{magnetic}lagrangian m*dot(q', q')/2 + dot(A, q') - dot(q, q)\n"),
        format!("{magnetic}hamiltonian dot(p_q - A, p_q - A)/(2*m) + dot(q, q)\n"),
    );
    let bodies = "size n = 4\nparameter m[i in 1..n] = 1 + 0.1*i\ncoordinate r[i in 1..n] : R^2 = (i, 0.3*i^2)\nvelocity v of r = (0.1, i)\nlet V = sum(i in 1..n, j in i+1..n : -m[i]*m[j]/norm(r[i] - r[j]))\n";
    let bodies = (
        format!("{bodies}lagrangian sum(i in 1..n : m[i]*dot(r[i]', r[i]')/2) - V\n"),
        format!("{bodies}hamiltonian sum(i in 1..n : dot(p_r[i], p_r[i])/(2*m[i])) + V\n"),
    );
    let driven = "coordinate x = 0.4\nvelocity v of x = 1.5\nlet m = 2 + sin(t) + x^2\n";
    let driven = (
        format!("{driven}lagrangian m*x'^2/2 + cos(t)*x*x' - x^4\n"),
        // p = 2.16·1.5 + 0.4 at t = 0, where H_pp varies with time.
        driven.replace("velocity v of x = 1.5", "momentum p_x of x = 3.64")
            + "hamiltonian (p_x - cos(t)*x)^2/(2*m) + x^4\n",
    );
    let indefinite = (
        "coordinate a = 0.1\ncoordinate b = 1\nvelocity u of a = 1\nlagrangian (1 + b^2)*a'*b' - a*b\n".to_string(),
        "coordinate a = 0.1\nmomentum p_a of a\ncoordinate b = 1\nmomentum p_b of b = 2\nhamiltonian p_a*p_b/(1 + b^2) + a*b\n".to_string(),
    );
    let mut counts = Vec::new();
    for (lagrangian, hamiltonian) in [double, magnetic, bodies, driven, indefinite] {
        let [a, b] = [lagrangian, hamiltonian].map(|text| support::model(&text));
        assert_same(&a, &b);
        counts.push([operations(&a), operations(&b)]);
    }
    // Not longer than what one writes: up to four operations for ½(p − a)²/m as two factors.
    assert!(counts.iter().all(|[own, by_hand]| *own <= by_hand + 4), "{counts:?}");
}

#[test]
fn families_stay_templates() {
    let text = "size n = 200\nparameter m[i in 1..n] = 1 + 0.01*i\ncoordinate r[i in 1..n] : R^2 = (i, 0)\n\
        lagrangian sum(i in 1..n : m[i]*dot(r[i]', r[i]')/2) + sum(i in 1..n : r[i].x*r[i].y') - sum(i in 2..n : dot(r[i] - r[i-1], r[i] - r[i-1]))\n";
    let model = support::model(text);
    let terms = &model.moved_by().terms;
    let rows: Vec<[usize; 2]> = terms.iter().map(|t| [t.rows(), t.table.count()]).collect();
    assert_eq!(rows, [[199, 1], [200, 1]], "springs, and bodies with their magnetic terms");
    // A string of linear elements: M is tridiagonal, and its elimination no longer than the string.
    let text = "size n = 60\ncoordinate u[i in 1..n] = i\nvelocity v[i] of u = i\n\
        lagrangian sum(i in 2..n : u[i]'^2 + u[i]'*u[i-1]' + u[i-1]'^2)/6 - sum(i in 2..n : (u[i] - u[i-1])^2)/2\n";
    let model = support::model(text);
    let p = |i: usize| model.initial[60 + i];
    // (v_{i-1} + 4 v_i + v_{i+1})/6 inside.
    for i in 1..59 {
        assert!((p(i) - (i + 1) as f64).abs() < 1e-13 * 60.0);
    }
    let velocities = &field(&model, 0.0, &model.initial)[..60];
    let given: Vec<f64> = (1..=60).map(f64::from).collect();
    // Condition 6, a few roundings for each of 60.
    assert_near(velocities, &given, 1e-12);
    assert!(operations(&model) < 60 * 40, "{}", operations(&model));
}

#[test]
fn a_body_without_mass_beside_others() {
    let text = "size n = 3\nparameter m[i in 1..n] = list(1, 0, 2)\ncoordinate x[i in 1..n] = i\ncoordinate y[i in 1..n] = 0\n\
        lagrangian sum(i in 1..n : m[i]*(x[i]'^2 + y[i]'^2)/2 + x[i]*y[i]' - x[i]^2)\n";
    let model = support::model(text);
    let names: Vec<String> = model.constraints.iter().map(|c| c.member_name(0)).collect();
    assert_eq!(names, ["p_x[2]", "p_y[2]"]);
    // Body 2: y' = 2 x, x' = 0.
    let rates = field(&model, 0.0, &model.initial);
    assert_near(&[rates[1], rates[4]], &[0.0, 4.0], 1e-14);
}

#[test]
fn point_vortices() {
    let text = "size n = 4\nparameter c[i in 1..n] = list(1, 2, -0.5, 0.7)\n\
        coordinate r[i in 1..n] : R^2 = list((0, 0), (1, 0.2), (0.3, 1.1), (-0.8, 0.4))\n\
        lagrangian sum(i in 1..n : c[i]*r[i].x*r[i].y') + sum(i in 1..n, j in i+1..n : c[i]*c[j]*log(dot(r[i] - r[j], r[i] - r[j]))/(4*pi))\n";
    let model = support::model(text);
    assert_eq!(
        model.constraints.iter().map(|c| &c.name[..]).collect::<Vec<_>>(),
        ["p_r.x", "p_r.y"]
    );
    let c = [1.0, 2.0, -0.5, 0.7];
    let x = &model.initial;
    let rates = field(&model, 0.0, x);
    for i in 0..4 {
        let (mut vx, mut vy) = (0.0, 0.0);
        for j in (0..4).filter(|&j| j != i) {
            // c_i y_i' = −∂L/∂x_i, c_i x_i' = ∂L/∂y_i
            let (dx, dy) = (x[2 * i] - x[2 * j], x[2 * i + 1] - x[2 * j + 1]);
            let rate = c[j] / (2.0 * PI * (dx * dx + dy * dy));
            (vx, vy) = (vx + rate * dy, vy - rate * dx);
        }
        assert_near(&rates[2 * i..2 * i + 2], &[vx, vy], 1e-13);
    }
}

#[test]
fn first_order_systems() {
    // Lotka and Volterra: x' = x (y − a), y' = y (b − x).
    let text = "parameter a = 1\nparameter b = 2\ncoordinate x = 1.5\ncoordinate y = 0.5\n\
        lagrangian log(y)/x*x' - (x + y - a*log(y) - b*log(x))\n";
    let model = support::model(text);
    let rates = field(&model, 0.0, &model.initial);
    assert_near(&rates[..2], &[1.5 * -0.5, 0.5 * 0.5], 1e-13);
    // A guiding centre in the field B = 1 + x², along z with the speed u: ω(z') = dH.
    let text = "coordinate q : R^3 = (1, 0.2, 0.1)\ncoordinate u = 0.3\n\
        lagrangian (q.x + q.x^3/3)*q'.y + u*q'.z - u^2/2 - 0.1*(1 + q.x^2) - 0.1*q.z^2 - 0.2*q.y\n";
    let model = support::model(text);
    let rates = field(&model, 0.0, &model.initial);
    // B y' = H_x, B x' = −H_y, z' = u, u' = −H_z
    assert_near(&rates[..4], &[-0.2 / 2.0, 0.2 / 2.0, 0.3, -0.02], 1e-13);
    // A rank between: x has a mass, y and z are conjugate to each other.
    let text = "coordinate x = 1\ncoordinate y = 0.5\ncoordinate z = 0.2\nvelocity v of x = 0.3\n\
        lagrangian x'^2/2 + y*z' + 0.4*y*x' - (x^2 + y^2 + z^2)/2 - 0.1*x*y\n";
    let model = support::model(text);
    assert_near(&model.initial[3..], &[0.5, 0.0, 0.5], 1e-15);
    let rates = field(&model, 0.0, &model.initial);
    // y' = −z, z' = y + 0.1 x − 0.4 x', and p_x' = −x − 0.1 y with p_x = x' + 0.4 y.
    assert_near(&rates[..4], &[0.3, -0.2, 0.6 - 0.12, -1.05], 1e-13);
}
