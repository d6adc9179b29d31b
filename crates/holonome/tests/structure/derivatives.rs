//! Derivatives of flows: those of the computed maps, and with their structure.

use crate::cases::{CASES, Case, PLANETS, brackets, case, difference};
use crate::maps::{Chart, jacobian, omega, poisson_defect};
use crate::methods::{bases, compositions, few_cases_of};
use holonome::method::{Method, SCHEMES};
use holonome::{Flow, Gains, Metric, RunOptions, StepSize};

/// Metric of a projection that depends on nothing.
fn metric_of(method: &Method) -> Metric {
    if method.to_string().contains("projection:") { Metric::Euclidean } else { Metric::Auto }
}

/// Flow of a case over two steps of the length h.
fn flow(case: &Case, method: &str, h: f64) -> Flow {
    let method: Method = method.parse().unwrap();
    let feeds_back = method.to_string().starts_with("feedback");
    let options = RunOptions {
        method,
        step: StepSize::Fixed(h),
        until: 2.0 * h,
        gain: feeds_back.then_some(Gains::Uniform(0.5)),
        metric: metric_of(&method),
        ..RunOptions::default()
    };
    Flow::new(&case.problem(), options)
        .unwrap_or_else(|error| panic!("{method}, {}: {error}", case.name()))
}

/// Images of the tangent vectors of the case's set at its start: by the derivative, and largest
/// distance from differences of the flow.
fn images(case: &Case, flow: &mut Flow) -> (Vec<Vec<f64>>, f64) {
    let chart = Chart::at_start(case);
    let origin = vec![0.0; chart.basis.len()];
    let by_differences = jacobian(
        |u| {
            let mut x = chart.at(u);
            flow.apply(&mut x).unwrap();
            x
        },
        &origin,
    );
    let (mut x, mut tangents) = (chart.at(&origin), chart.basis.concat());
    flow.apply_with_tangents(&mut x, &mut tangents).unwrap();
    let images: Vec<Vec<f64>> = tangents.chunks(x.len()).map(<[f64]>::to_vec).collect();
    let apart =
        images.iter().zip(&by_differences).map(|(a, b)| difference(a, b)).fold(0.0, f64::max);
    (images, apart)
}

/// Error of the differences: see `jacobian`. Equations that are solved to a few roundings of their
/// terms make the round-off of the map larger than that of its results.
const DIFFERENCES: f64 = 2e-11;

/// Error of the differences of a case: the lightest planet has a twentieth of the mass of the others'
/// bodies, so that its velocity rounds by twenty times as much.
fn differences(case: &Case) -> f64 {
    if case.name() == PLANETS { 20.0 * DIFFERENCES } else { DIFFERENCES }
}

/// Methods whose formulas are those of other tests with a treatment around them.
const TREATED: [&str; 9] = [
    "plain:rk4",
    "feedback:rk4",
    "feedback:dopri5",
    "projection:heun",
    "projection:taylor",
    "projection:gauss2",
    "symmetric-projection:heun",
    "symmetric-projection:gauss4",
    "symmetric-projection:implicit-midpoint",
];

#[test]
fn a_derivative_is_that_of_the_computed_map() {
    let of_fields = SCHEMES.iter().filter(|scheme| scheme.follows_fields());
    let of_fields = of_fields.map(|scheme| scheme.name.parse().unwrap());
    // Its steps carry multipliers; `nonholonomic.rs` tests that this is said.
    let derivable = |method: &Method| method.scheme.name != "gni";
    let methods: Vec<Method> =
        bases().into_iter().chain(compositions()).chain(of_fields).filter(derivable).collect();
    let untreated = methods
        .iter()
        .flat_map(|method| few_cases_of(method).into_iter().zip([method].into_iter().cycle()));
    let mut pairs: Vec<(&Case, String)> =
        untreated.map(|(case, method)| (case, method.to_string())).collect();
    pairs.extend(CASES.iter().flat_map(|case| TREATED.map(|method| (case, method.to_string()))));
    let mut wrong = Vec::new();
    for (case, method) in pairs {
        let (_, apart) = images(case, &mut flow(case, &method, case.h));
        println!("{method} on {}: {apart:.1e}", case.name());
        if apart.is_nan() || apart > differences(case) {
            wrong.push(format!("{method} on {}: {apart:.1e}", case.name()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Change of a metric's direction per unit of the state: lengths of these models are about 1, and a
/// metric changes on those on which the errors of a step change.
const MOST_BY_METRIC: f64 = 50.0;

/// The metric of a correction is frozen in its derivative, which then errs by what the metric's
/// change moves: no more than the correction itself.
#[test]
fn a_corrected_derivative_errs_by_the_correction_at_most() {
    for name in ["rk4", "heun", "dopri5", "gauss8"] {
        for case in CASES {
            let (_, apart) = images(case, &mut flow(case, &format!("corrected:{name}"), case.h));
            let chart = Chart::at_start(case);
            let start = chart.at(&vec![0.0; chart.basis.len()]);
            let [corrected, plain] = ["corrected", "plain"].map(|treatment| {
                let mut x = start.clone();
                flow(case, &format!("{treatment}:{name}"), case.h).apply(&mut x).unwrap();
                x
            });
            let moved = difference(&corrected, &plain);
            let most = MOST_BY_METRIC * moved + differences(case);
            assert!(apart < most, "{name} on {}: {apart:.1e} of {moved:.1e}", case.name());
        }
    }
}

/// Images of tangent vectors and the vectors themselves keep the symplectic form to the rounding of
/// a few products and of the linear systems of a step: no differences are involved.
#[test]
fn derivatives_of_symplectic_methods_are_symplectic() {
    let mut worst = (0.0, String::new());
    for method in bases().into_iter().chain(compositions()).filter(Method::symplectic) {
        for case in few_cases_of(&method) {
            let chart = Chart::at_start(case);
            let (mut x, mut tangents) =
                (chart.at(&vec![0.0; chart.basis.len()]), chart.basis.concat());
            let mut flow = flow(case, &method.to_string(), case.h);
            flow.apply_with_tangents(&mut x, &mut tangents).unwrap();
            let images: Vec<&[f64]> = tangents.chunks(x.len()).collect();
            let mut note = |defect: f64| {
                if defect > worst.0 || defect.is_nan() {
                    worst = (defect, format!("{method} on {}", case.name()));
                }
            };
            if let Some(before) = brackets(case.name(), &chart.at(&vec![0.0; chart.basis.len()])) {
                let images: Vec<Vec<f64>> = images.iter().map(|image| image.to_vec()).collect();
                let after = brackets(case.name(), &x).unwrap();
                note(poisson_defect(&images, &before, &after));
                continue;
            }
            for i in 0..images.len() {
                for j in 0..i {
                    let (after, before) =
                        (omega(images[i], images[j]), omega(&chart.basis[i], &chart.basis[j]));
                    note((after - before).abs());
                }
            }
        }
    }
    println!("worst: {worst:?}");
    assert!(worst.0 < 1e-12, "{worst:?}");
}

#[test]
fn energy_and_constraints_follow_their_tangents() {
    // D(x₁) M v = D(x₀) v, for constraints 0: they and H are held to rounding where the correction
    // is small.
    for (name, method) in [
        ("spherical-pendulum", "corrected:dop853"),
        ("kepler", "corrected:dop853"),
        ("double-pendulum", "projection:rk4"),
        ("spherical-pendulum", "symmetric-projection:rk4"),
    ] {
        let case = case(name);
        let chart = Chart::at_start(case);
        let x0 = chart.at(&vec![0.0; chart.basis.len()]);
        let (mut x1, mut tangents) = (x0.clone(), chart.basis.concat());
        flow(case, method, case.h).apply_with_tangents(&mut x1, &mut tangents).unwrap();
        let rows = |x: &[f64]| {
            let held = |x: &[f64]| [(case.restrictions)(0.0, x), vec![(case.energy)(x)]].concat();
            jacobian(held, x)
        };
        let along = |columns: &[Vec<f64>], v: &[f64]| -> Vec<f64> {
            let row = |k: usize| columns.iter().zip(v).map(|(column, v)| column[k] * v).sum();
            (0..columns[0].len()).map(row).collect()
        };
        let (before, after) = (rows(&x0), rows(&x1));
        for (v0, v1) in chart.basis.iter().zip(tangents.chunks(x1.len())) {
            let gap = difference(&along(&before, v0), &along(&after, v1));
            println!("{method} on {name}: {gap:.1e}");
            assert!(gap < DIFFERENCES, "{method} on {name}: {gap:.1e}");
        }
    }
}

/// With ρ: p → −p, a step from ρx₁ leads back to ρx₀, so M(ρx₁) ρ M(x₀) = ρ.
#[test]
fn derivatives_of_symmetric_methods_return() {
    for (name, method) in [
        ("henon-heiles", "stormer-verlet-a"),
        ("kepler", "gauss8"),
        ("double-pendulum-angles", "gauss4"),
        ("spherical-pendulum", "rattle"),
        ("double-pendulum", "yoshida4(rattle)"),
        ("two-spheres", "symmetric-projection:gauss4"),
    ] {
        let case = case(name);
        let chart = Chart::at_start(case);
        let n = chart.basis[0].len();
        let (mut x, mut tangents) = (chart.at(&vec![0.0; chart.basis.len()]), chart.basis.concat());
        let reversed = |vectors: &mut [f64]| {
            vectors.chunks_mut(n / 2).skip(1).step_by(2).flatten().for_each(|p| *p = -*p);
        };
        let mut flow = flow(case, method, case.h);
        for _ in 0..2 {
            flow.apply_with_tangents(&mut x, &mut tangents).unwrap();
            reversed(&mut x);
            reversed(&mut tangents);
        }
        let gap = difference(&tangents, &chart.basis.concat());
        println!("{method} on {name}: {gap:.1e}");
        assert!(gap < 1e-12, "{method} on {name}: {gap:.1e}");
    }
}
