//! Tests of models over rows: derivatives against finite differences, entries of tables, the choice
//! of models run so.

mod support;

use holonome_model::derived::Derived;
use holonome_model::elaborate::model::{Dynamics, Model};
use holonome_model::policy::{LARGEST_UNROLLED_FIELD, Way, unrolls};
use holonome_model::rows::BLOCK;
use holonome_model::treatment::structure::ambient_points;

/// A lattice with an H that reads everything a row may read, and with claims that are not
/// integrals.
fn lattice(n: usize) -> String {
    format!(
        "size n = {n}\nparameter m[i in 1..n] = 1 + 0.3*sin(i)\nparameter k = 0.7\n\
         coordinate q[i in 1..n] : R^2 = (sin(i), cos(2*i))\nmomentum p of q = (0.2*cos(i), 0.1)\n\
         let d(i, j) = q[i] - q[j]\n\
         hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i]) + i*q[i].x*p[i].y/n) + \
         sum(i in 1..n-1 : if(d(i + 1, i).x > 0, k*norm(d(i + 1, i))^3, sin(d(i + 1, i).y)))\n\
         integral P = sum(i in 1..n : p[i])\n\
         integral S[j in 2..4] = sum(i in 1..j : q[i].x*q[i+1].x*p[j].y)\n"
    )
}

fn hamiltonian(model: &Model, x: &[f64]) -> f64 {
    let Dynamics::Hamiltonian(h, _) = &model.dynamics else { panic!("a Hamiltonian model") };
    h.evaluate(0.0, x, &model.parameter_values)[0]
}

/// ∂f/∂x_i by a central difference.
fn difference(x: &[f64], i: usize, f: impl Fn(&[f64]) -> f64) -> f64 {
    let step = 1e-5;
    let at = |d: f64| {
        let mut x = x.to_vec();
        x[i] += d;
        f(&x)
    };
    (at(step) - at(-step)) / (2.0 * step)
}

#[test]
fn derivatives_are_those_of_finite_differences() {
    // Full blocks, a shorter last one, and a single one.
    for n in [6, BLOCK, BLOCK + 1, 2 * BLOCK + 13] {
        let model = support::model(&lattice(n));
        let field = Derived::new(model.clone()).row_field();
        let degrees = model.degrees();
        let x = &ambient_points(&model, 1, 0xd1ff)[0];
        let at = |program: &holonome_model::rows::RowProgram, x: &[f64]| {
            program.evaluate(0.0, x, &model.parameter_values)
        };
        let dx = at(&field.field, x);
        for i in (0..2 * degrees).step_by(1 + degrees / 20) {
            let expected = difference(x, i, |x| hamiltonian(&model, x));
            let found = if i < degrees { -dx[degrees + i] } else { dx[i - degrees] };
            assert!(
                (found - expected).abs() < 1e-7 * (1.0 + expected.abs()),
                "{n}, {i}: {found} {expected}"
            );
        }
        let entries = at(&field.jacobian, x);
        assert_eq!(field.count(), 1 + 2 + 3);
        for row in 0..field.count() {
            let range = field.pattern.row(row).range();
            let columns: Vec<u32> = field.pattern.row(row).columns().collect();
            assert!(columns.windows(2).all(|pair| pair[0] < pair[1]));
            for i in (0..2 * degrees).step_by(1 + degrees / 20) {
                let expected = difference(x, i, |x| at(&field.invariants, x)[row]);
                let found =
                    columns.binary_search(&(i as u32)).map_or(0.0, |k| entries[range.start + k]);
                assert!(
                    (found - expected).abs() < 1e-7 * (1.0 + expected.abs()),
                    "{row}, {i}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn families_are_read_backwards_and_in_steps() {
    // Slots that run against the rows, that skip, that follow an unordered table, and all of these
    // at once.
    let n = 3 * BLOCK;
    let text = format!(
        "size n = {n}\ncoordinate q[i in 1..n] = cos(i)\nmomentum p of q = sin(i)\n\
         hamiltonian sum(i in 1..n : p[i]*q[n + 1 - i]^2) + sum(i in 1..n/2 : q[2*i]*p[2*i]^2) + \
         sum(i in 1..n, j in 1..n if i*j == 96 or i*i + j == 130 : q[i]*q[j]) + sum(i in 1..n : q[1]*p[2]*q[i])\n"
    );
    let model = support::model(&text);
    let field = Derived::new(model.clone()).row_field();
    let x = &model.initial;
    let dx = field.field.evaluate(0.0, x, &model.parameter_values);
    for i in 0..2 * n {
        let expected = difference(x, i, |x| hamiltonian(&model, x));
        let found = if i < n { -dx[n + i] } else { dx[i - n] };
        assert!(
            (found - expected).abs() < 1e-7 * (1.0 + expected.abs()),
            "{i}: {found} {expected}"
        );
    }
}

/// Test that what is only observed, here a sum over a million pairs, decides nothing.
#[test]
fn what_is_observed_does_not_count() {
    let chain = "size n = 1400\ncoordinate q[i in 1..n] : R = i\nmomentum p of q = 0\nhamiltonian sum(i in 1..n : \
                 p[i]^2/2) + sum(i in 2..n : (q[i] - q[i-1])^2/2)\n";
    let pairs = "observe near = sum(i in 1..n, j in i+1..n : exp(-(q[i] - q[j])^2))\n";
    let [alone, observed] =
        [chain.to_string(), format!("{chain}{pairs}")].map(|text| support::model(&text));
    assert_eq!(alone.unrolled_size(), observed.unrolled_size());
    assert_eq!(Way::of_field(&alone), Way::of_field(&observed));
    let quantity = &observed.observables[0].functional;
    assert!(
        unrolls(&observed, &[observed.moved_by()])
            && !unrolls(&observed, &[observed.moved_by(), quantity])
    );
}

#[test]
fn only_large_models_are_templated() {
    let suits = |text: &str| {
        let model = support::model(text);
        (model.unrolled_size(), Way::of_field(&model).templated)
    };
    let chain = support::file("models/fpu.holo");
    for (n, expected) in [(10, false), (500, false), (1000, true), (100_000, true)] {
        let (size, templated) = suits(&chain.replace("size n = 32", &format!("size n = {n}")));
        assert_eq!((templated, size > LARGEST_UNROLLED_FIELD), (expected, expected), "{n}: {size}");
    }
    // A sum over pairs is templated sooner; a sum over something that all share, such as a sun, is
    // not.
    let bodies = "size n = 30\ncoordinate q[i in 1..n] : R^3 = (i, cos(i), sin(i))\nmomentum p of q\nlet d(a, b) = \
                  dot(q[a] - q[b], q[a] - q[b])\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/2) - sum(PAIRS)\n";
    let pairs = bodies.replace("PAIRS", "i in 1..n, j in i+1..n : 1/sqrt(d(i, j))");
    for (n, expected) in [(6, false), (16, false), (40, true)] {
        let (size, templated) = suits(&pairs.replace("size n = 30", &format!("size n = {n}")));
        assert_eq!((templated, size > 10_000), (expected, expected), "{n}: {size}");
        assert!(size < LARGEST_UNROLLED_FIELD);
    }
    let sun = bodies
        .replace("PAIRS", "j in 2..n : 1/sqrt(d(1, j))")
        .replace("size n = 30", "size n = 600");
    let (size, templated) = suits(&sun);
    assert!(size > 10_000 && !templated, "{size}");
    let constrained = support::file("models/chain.holo").replace("size n = 10", "size n = 100000");
    assert!(suits(&constrained).1);
    // Models with constraints on momenta have to be unrolled.
    assert!(!suits(&constrained.replace("r[1], r[1]) = L^2", "r[1], p[1]) = 0")).1);
}
