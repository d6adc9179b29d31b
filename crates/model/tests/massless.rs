//! Tests of bodies without mass: the motion is the limit of that of bodies whose mass vanishes,
//! unrolled and over rows; formulas in the limit; claims of models that are written for all bodies.

mod support;

use holonome_model::derived::Derived;
use holonome_model::elaborate::model::{ENERGY_BALANCE, Model};
use holonome_model::treatment::structure::{ambient_points, evaluate};
use support::model;

/// Small number in the place of the masses that are 0. Squares of it vanish beside 1, so that the
/// limit is met to rounding.
const SMALL: f64 = 1e-30;

fn field(model: &Model, x: &[f64]) -> Vec<f64> {
    let field = Derived::new(model.clone()).field().unwrap().0;
    evaluate(&field.graph, &field.field, 0.3, x, &model.parameter_values)
}

/// Two bodies that move, one of them slowly, and two without mass.
const BODIES: &str = "
    parameter m[i in 1..4] = list(1, EMPTY, 0.1, EMPTY)
    coordinate r[i in 1..4] : R^2 = list((0, 0), (0.5, 0.9), (1, 0), (-1, 0.4))
    velocity v of r = list((0, -0.1), (-0.8, 0.4), (0, 1), (0.3, 0.2))
    let T = sum(i in 1..4 : dot(p_r[i], p_r[i])/(2*m[i]))
    let U = sum(i in 1..4, j in i+1..4 : m[i]*m[j]/norm(r[i] - r[j]))
    ";

/// The fields of a model without mass and of that with small masses, where the momenta of bodies
/// without mass are velocities. `masses` gives the mass of each momentum, if it is small.
fn assert_is_limit(text: &str, small: &[usize]) {
    let limit = model(&text.replace("EMPTY", "0"));
    let near = model(&text.replace("EMPTY", &SMALL.to_string()));
    let massless = limit.massless.as_ref().expect("bodies without mass");
    let own: Vec<usize> = (0..limit.degrees()).filter(|&q| massless.positions[q]).collect();
    assert_eq!(own, small, "{text}");
    let n = limit.degrees();
    let scaled = |x: &[f64], factor: f64| {
        let mut x = x.to_vec();
        small.iter().for_each(|q| x[n + q] *= factor);
        x
    };
    for x in ambient_points(&limit, 4, 0xe117) {
        let got = field(&limit, &x);
        let expected = scaled(&field(&near, &scaled(&x, SMALL)), 1.0 / SMALL);
        for (got, expected) in got[..2 * n].iter().zip(&expected) {
            // Some tens of roundings.
            assert!((got - expected).abs() <= 1e-13 * (1.0 + expected.abs()), "{text}: {x:?}");
        }
    }
    // A start by velocities has them in the place of momenta.
    let start = scaled(&near.initial, 1.0 / SMALL);
    for (got, expected) in limit.initial[..2 * n].iter().zip(&start) {
        assert!((got - expected).abs() <= 1e-14 * (1.0 + expected.abs()), "{text}");
    }
}

#[test]
fn the_motion_is_the_limit_of_small_masses() {
    let with = |rest: &str| format!("{BODIES}{rest}\n");
    let small = [2, 3, 6, 7];
    assert_is_limit(&with("hamiltonian T - U"), &small);
    assert_is_limit(
        &with("lagrangian sum(i in 1..4 : m[i]*dot(r[i]', r[i]')/2) + U")
            .replace("let T", "# let T"),
        &small,
    );
    // Fields from outside, which move test bodies by a Hamiltonian; forces; a frame that turns.
    let outside = with(
        "hamiltonian T - U + sum(i in 1..4 : m[i]*(9.81*r[i].y + sin(r[i].x)*t) - 0.3*(r[i].x*p_r[i].y - r[i].y*p_r[i].x))
         force drag[i in 1..4] on r[i] = -0.2*m[i]*norm(r[i]')*r[i]'",
    );
    assert_is_limit(&outside, &small);
    // A field alone is no force.
    let alone = "parameter m = EMPTY\ncoordinate q : R^2 = (1, 0)\nvelocity v of q = (0, 1)\nhamiltonian dot(p_q, p_q)/(2*m) - m/norm(q)\n";
    assert_is_limit(alone, &[0, 1]);
    let alone = model(&alone.replace("EMPTY", "0"));
    assert!(alone.forces.is_empty() && alone.conserves_energy());
    // In one term, with a variable mass matrix, roots, powers and quotients of the mass.
    let polar = "
        parameter mass = EMPTY
        coordinate x : R^2 = (0.3, 0.2)
        momentum p of x = (0.1, 0)
        coordinate a = 1
        coordinate b = 0.4
        momentum p_a of a
        momentum p_b of b
        hamiltonian p_a^2/(2*mass) + p_b^2/(2*mass*(2 + cos(a))^2) + dot(p, p)/2 + mass*sin(a)*x.x/(1 + mass) + sqrt(mass^2)*cos(b - x.y) + log(1 + mass*x.x*b) + dot(x, x) + (1 + mass)^3*x.x*x.y/(2 - mass*a) - x.x*x.y/2
        ";
    assert_is_limit(polar, &[2, 3]);
}

#[test]
fn rows_have_the_same_limit() {
    let text = format!("{BODIES}hamiltonian T - U\n").replace("EMPTY", "0");
    let derived = Derived::new(model(&text));
    let rows = derived.row_field();
    for x in ambient_points(&derived, 4, 0xe118) {
        let unrolled = field(&derived, &x);
        let templated = rows.field.evaluate(0.3, &x, &derived.parameter_values);
        for (a, b) in unrolled.iter().zip(&templated) {
            assert!((a - b).abs() <= 1e-14 * (1.0 + a.abs()), "{unrolled:?} {templated:?}");
        }
    }
}

#[test]
fn formulas_keep_their_meaning() {
    let text = format!(
        "{BODIES}hamiltonian T - U
         integral P = sum(i in 1..4 : p_r[i])
         integral L = sum(i in 1..4 : r[i].x*p_r[i].y - r[i].y*p_r[i].x)
         observe speed[i in 1..4] = norm(p_r[i])/m[i]
         observe energy = T - U
         observe own = p_r[2]
         observe both = p_r[2] + p_r[3]
         "
    )
    .replace("EMPTY", "0");
    // Claims for all bodies are none that bodies without mass break.
    let model = model(&text);
    let x = &model.initial;
    let value = |name: &str| {
        let all = model.integrals.iter().chain(&model.observables);
        let quantity = all.clone().find(|quantity| quantity.name == name).unwrap();
        quantity.functional.evaluate(0.0, x, &model.parameter_values)
    };
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-15);
    assert!(near(&value("P"), &[0.0, 0.0]) && near(&value("L"), &[0.1]));
    let speeds = [0.1, 0.8f64.hypot(0.4), 1.0, 0.3f64.hypot(0.2)];
    assert!(near(&value("speed"), &speeds), "{:?}", value("speed"));
    let energy = 0.01 / 2.0 + 0.1 / 2.0 - 0.1;
    assert!(near(&value("energy"), &[energy]), "{:?}", value("energy"));
    assert!(near(&value(ENERGY_BALANCE), &[energy]));
    assert_eq!(value("own"), [-0.8, 0.4]);
    assert!(near(&value("both"), &[0.0, 0.1]), "{:?}", value("both"));
}

#[test]
fn constraints_determine_links_without_mass() {
    let text = "
        parameter m = 0
        coordinate a : R^2 = (0.6, -0.8)
        coordinate b : R^2 = (1.6, -0.8)
        lagrangian m*dot(a', a')/2 + dot(b', b')/2 - 9.81*(m*a.y + b.y)
        constraint one : dot(a, a) = 1
        constraint two : dot(b - a, b - a) = 1
        ";
    let link = model(text);
    assert!(link.massless.is_none());
    // As if the terms with the mass did not stand there.
    let without = text.replace("m*dot(a', a')/2 + ", "").replace("m*a.y + ", "");
    let without = model(&without.replace("parameter m = 0\n", ""));
    assert_eq!(link.constraints.len(), 4);
    assert_eq!(field(&link, &link.initial), field(&without, &without.initial));
    // The same body with no tie is a test body.
    let free = text.lines().filter(|line| !line.contains("two")).collect::<Vec<_>>().join("\n");
    assert_eq!(model(&free).massless.unwrap().positions, [true, true, false, false]);
}
