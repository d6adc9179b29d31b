//! Tests of Poisson systems: the field J ∇H by two derivations, term by term and from the gradient of
//! the unrolled H, and in closed form; Casimirs, ranks, Jacobi's identity.

mod support;

use holonome_model::consistency::examine;
use holonome_model::derived::Derived;
use holonome_model::elaborate::model::Model;
use holonome_model::poisson::Poisson;
use holonome_model::treatment::structure::{ambient_points, evaluate};

const SPINS: &str = "size n = 4\nparameter J = 1.3\nparameter D[i in 1..n] = 0.1*i\n\
    state s[i in 1..n] : R^3 = (cos(0.7*i), sin(0.7*i), 0.3*i)\n\
    poisson (s[i]) = hat(s[i])\n\
    hamiltonian -J*sum(i in 1..n-1 : dot(s[i], s[i+1])) - sum(i in 1..n : D[i]*s[i].z^2)\n";

const TODA: &str = "size n = 5\nstate a[i in 1..n-1] = 0.5\nstate b[i in 1..n] = 0.3*i - 0.1*i^2\n\
    poisson (a[i], b[i], b[i+1]) = matrix((0, -a[i], a[i]), (a[i], 0, 0), (-a[i], 0, 0))\n\
    hamiltonian sum(i in 1..n : b[i]^2) + 2*sum(i in 1..n-1 : a[i]^2)\n";

const SPHERE: &str = "size n = 4\nparameter c[i in 1..n] = list(1, -0.5, 2, 0.7)\n\
    state r[i in 1..n] : R^3 = (cos(1.3*i), sin(1.3*i)*cos(i), sin(1.3*i)*sin(i))\n\
    poisson (r[k]) = hat(r[k])/c[k]\n\
    hamiltonian -sum(i in 1..n, j in i+1..n : c[i]*c[j]*log(2 - 2*dot(r[i], r[j])))/(4*pi)\n";

const TOP: &str = "parameter I = (1, 1.2, 0.6)\nstate m : R^3 = (0.1, 0.2, 2)\n\
    state g : R^3 = (0.3, 0, -0.9)\n\
    poisson (m, g) = matrix((0, -m.z, m.y, 0, -g.z, g.y), (m.z, 0, -m.x, g.z, 0, -g.x), \
    (-m.y, m.x, 0, -g.y, g.x, 0), (0, -g.z, g.y, 0, 0, 0), (g.z, 0, -g.x, 0, 0, 0), \
    (-g.y, g.x, 0, 0, 0, 0))\n\
    hamiltonian m.x^2/(2*I[1]) + m.y^2/(2*I[2]) + m.z^2/(2*I[3]) + 0.7*g.z\n";

/// Lotka and Volterra's equations of three species, with brackets {x_i, x_j} = a_ij x_i x_j, written as
/// a sum of matrices.
const SPECIES: &str = "parameter a = 2\nstate x : R^3 = (1, 0.6, 1.5)\n\
    poisson (x) = x.x*x.y*hat((0, 0, -1)) + a*x.z*(x.x*hat((0, -1, 0)) + 1.5*x.y*hat((-1, 0, 0)))\n\
    hamiltonian x.x + x.y + x.z - log(x.x) - 0.5*log(x.y)\n";

/// A family as a whole, and components.
const PLANE: &str = "size n = 3\nparameter c[i in 1..n] = list(1, -0.5, 2)\n\
    state r[i in 1..n] : R^2 = (cos(2*i), sin(i))\nstate y[i in 1..2] = i\n\
    poisson (r[i].y, r[i].x) = matrix((0, -1), (1, 0))/c[i]\n\
    poisson (y) = matrix((0, 1), (-1, 0))\n\
    hamiltonian sum(i in 1..n, j in 1..n if i != j : c[i]*c[j]*log(norm(r[i] - r[j]))) + y[1]^2*y[2]\n";

/// x' of a model at x from its templates, and from the unrolled H.
fn fields(model: &Model, x: &[f64]) -> [Vec<f64>; 2] {
    let field = Derived::new(model.clone()).field().unwrap().0;
    let unrolled = evaluate(&field.graph, &field.field, 0.0, x, &model.parameter_values);
    [model.moved_by().evaluate(0.0, x, &model.parameter_values), unrolled]
}

fn assert_near(got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len());
    let size = expected.iter().fold(1.0f64, |size, v| size.max(v.abs()));
    for (a, b) in got.iter().zip(expected) {
        assert!((a - b).abs() <= tolerance * size, "{got:?} is not {expected:?}");
    }
}

fn cross(a: &[f64], b: &[f64]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Some hundred roundings: both evaluate the same products in another order.
#[test]
fn templates_have_the_field_of_the_whole() {
    for text in [SPINS, TODA, SPHERE, TOP, SPECIES, PLANE] {
        let model = support::model(text);
        for x in Poisson::states_around(&model.initial, 5) {
            let [rows, whole] = fields(&model, &x);
            assert!(whole.iter().any(|v| v.abs() > 1e-3), "nothing moves");
            assert_near(&rows, &whole, 1e-13);
        }
    }
}

#[test]
fn spins_precess() {
    let model = support::model(SPINS);
    for x in ambient_points(&model, 3, 5) {
        let [_, field] = fields(&model, &x);
        for i in 0..4 {
            let s = |i: usize| &x[3 * i..3 * i + 3];
            let mut slope = [0.0, 0.0, -0.2 * (i + 1) as f64 * s(i)[2]];
            for j in [i.wrapping_sub(1), i + 1].into_iter().filter(|&j| j < 4) {
                (0..3).for_each(|k| slope[k] -= 1.3 * s(j)[k]);
            }
            assert_near(&field[3 * i..3 * i + 3], &cross(s(i), &slope), 1e-13);
        }
    }
}

/// a_i' = a_i (b_{i+1} − b_i), b_i' = 2 (a_i² − a_{i−1}²), up to the sign and factor 2 of this H
/// (Flaschka 1974).
#[test]
fn toda_lattice_in_flaschkas_variables() {
    let model = support::model(TODA);
    let x = &Poisson::states_around(&model.initial, 1)[0];
    let ([_, field], (a, b)) = (fields(&model, x), x.split_at(4));
    let mut expected: Vec<f64> = (0..4).map(|i| 2.0 * a[i] * (b[i + 1] - b[i])).collect();
    let square = |i: usize| a.get(i).map_or(0.0, |a| 4.0 * a * a);
    expected.extend((0..5).map(|i| square(i) - square(i.wrapping_sub(1))));
    assert_near(&field, &expected, 1e-13);
}

/// A chain of any length has the templates of a short one.
#[test]
fn the_number_of_templates_is_that_of_a_short_chain() {
    let terms = |n: usize| {
        let model = support::model(&SPINS.replace("n = 4", &format!("n = {n}")));
        let terms = &model.moved_by().terms;
        let stretches: usize = terms.iter().map(|term| term.table.count()).sum();
        (terms.len(), stretches, model.integrals.len())
    };
    assert_eq!(terms(7), terms(20_000));
}

fn casimirs(text: &str) -> Vec<(String, Vec<f64>)> {
    let model = support::model(text);
    let found = model.integrals.iter().filter(|integral| integral.name.starts_with("casimir"));
    let values = |q: &holonome_model::elaborate::model::Quantity| {
        q.functional.evaluate(0.0, &model.initial, &model.parameter_values)
    };
    found.map(|q| (q.member_name(q.members - 1), values(q))).collect()
}

#[test]
fn casimirs_are_found() {
    let lengths = |i: i32| 1.0 + (0.3 * f64::from(i)).powi(2);
    let [(name, values)] = &casimirs(SPINS)[..] else { panic!("one family") };
    assert_eq!(name, "casimir[4]");
    assert_near(values, &[1, 2, 3, 4].map(lengths), 1e-14);
    let [(name, values)] = &casimirs(TODA)[..] else { panic!("one of the open lattice") };
    assert_eq!(name, "casimir");
    assert_near(values, &[0.3 * 15.0 - 0.1 * 55.0], 1e-14);
    let [(_, dot), (_, square)] = &casimirs(TOP)[..] else { panic!("two of a heavy top") };
    assert_near(&[dot[0], square[0]], &[0.03 - 1.8, 0.9], 1e-14);
    // Σ k_i log x_i with Σ_j a_ij k_j = 0: k = (3, 2, 1), up to a factor.
    let [(_, values)] = &casimirs(SPECIES)[..] else { panic!("one of three species") };
    let logarithm = 3.0 * 1.0f64.ln() + 2.0 * 0.6f64.ln() + 1.5f64.ln();
    let ratio = values[0] / logarithm;
    assert!([1.0, 1.0 / 2.0, 1.0 / 3.0].iter().any(|r| (ratio - r).abs() < 1e-12), "{ratio}");
    assert_eq!(casimirs(PLANE), []);
}

/// Units far apart hide nothing: neither those of two spins, nor those of the components of one.
#[test]
fn casimirs_in_other_units() {
    let model = support::model(
        "state m : R^3 = (0.8e-4, 0.3e-4, -5e3)\nstate v : R^3 = (8e7, 3e7, 5e7)\n\
         poisson (m) = hat(m)\npoisson (v) = hat(v)*1e-6\nhamiltonian m.x + v.z\n",
    );
    let [casimir] = &model.integrals[..] else { panic!("one family, of both") };
    let values = casimir.functional.evaluate(0.0, &model.initial, &model.parameter_values);
    assert_near(&[values[0] / 2.5e7, values[1] / 9.8e15], &[1.0, 1.0], 1e-14);
}

/// What a file states is not found again, nor a function of it.
#[test]
fn casimirs_that_a_file_states_are_not_found_again() {
    assert_eq!(casimirs(&format!("{SPINS}integral length[i in 1..n] = norm(s[i])\n")), []);
    assert_eq!(casimirs(&format!("{TOP}integral I1 = exp(dot(m, g))\n")).len(), 1);
    // One of all together is none of its parts.
    let all = format!("{SPINS}integral all = sum(i in 1..n : dot(s[i], s[i]))\n");
    assert_eq!(casimirs(&all).len(), 1);
    // Names of the file are not taken.
    let model = support::model(&format!("{SPINS}parameter casimir = 1\n"));
    assert_eq!(model.integrals[0].name, "casimir_J");
}

#[test]
fn ranks() {
    let expected = [(SPINS, 8), (TODA, 8), (SPHERE, 8), (TOP, 4), (SPECIES, 2), (PLANE, 8)];
    for (text, rank) in expected {
        let model = support::model(text);
        let x = &Poisson::states_around(&model.initial, 1)[0];
        let found = model.poisson.as_ref().unwrap().rank(x, &model.parameter_values).unwrap();
        assert_eq!((found.rank, found.dimension), (rank, model.dimension()));
    }
}

/// All brackets of the other tests obey Jacobi's identity, in units 1e8 apart, too.
#[test]
fn jacobis_identity() {
    for text in [SPINS, TODA, SPHERE, TOP, SPECIES, PLANE] {
        assert_eq!(examine(&support::model(text)).varying, [""; 0]);
    }
    // {m_x, m_y} = c m_z and so on, with any c, obey it; with a function of m_x in one place they do
    // not. Beside them stand brackets of quantities 1e8 times as large.
    let top = |z: &str| {
        format!(
            "state m : R^3 = (0.8, 0.3, -0.5)\nstate v : R^3 = (8e7, 3e7, 5e7)\n\
             poisson (m) = hat((m.x, m.y, {z}))\npoisson (v) = hat(v)\nhamiltonian dot(m, m)/2 + v.x\n"
        )
    };
    assert_eq!(examine(&support::model(&top("5*m.z"))).varying, [""; 0]);
    let broken = examine(&support::model(&top("m.z + m.x*m.z")));
    assert_eq!(broken.varying, ["Jacobi's identity"]);
    let message = &broken.unverified[0].message;
    assert!(message.contains("{m.x, {m.y, m.z}}"), "{message}");
}

/// The energy of a Hamiltonian that depends on the time is no integral, the Casimirs are.
#[test]
fn time_in_the_hamiltonian() {
    let model = support::model(&SPINS.replace("hamiltonian ", "hamiltonian t*s[1].x "));
    assert!(model.explicit_time && !model.conserves_energy());
    assert_eq!(examine(&model).varying, [""; 0]);
    assert_eq!(model.integrals[0].members, 4);
}
