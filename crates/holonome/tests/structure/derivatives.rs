//! Derivatives of flows: those of the computed maps, and with their structure.

use crate::cases::{Case, case, difference};
use crate::maps::{Chart, jacobian};
use crate::methods::{bases, cases_of, compositions, few_cases_of};
use holonome::method::{Method, Needs, SCHEMES};
use holonome::{Flow, Gains, RunOptions, StepSize};

/// Flow of a case over two steps of the length h.
fn flow(case: &Case, method: &str, h: f64) -> Flow {
    let method: Method = method.parse().unwrap();
    let feeds_back = method.to_string().starts_with("feedback");
    let options = RunOptions {
        method,
        step: StepSize::Fixed(h),
        until: 2.0 * h,
        gain: feeds_back.then_some(Gains::Uniform(2.0)),
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

#[test]
fn a_derivative_is_that_of_the_computed_map() {
    let mut wrong = Vec::new();
    let of_fields = SCHEMES.iter().filter(|scheme| scheme.follows_fields());
    let of_fields = of_fields.map(|scheme| scheme.name.parse().unwrap());
    for method in bases().into_iter().chain(compositions()).chain(of_fields) {
        for case in few_cases_of(&method) {
            let (_, apart) = images(case, &mut flow(case, &method.to_string(), case.h));
            println!("{method} on {}: {apart:.1e}", case.name());
            if apart.is_nan() || apart > DIFFERENCES {
                wrong.push(format!("{method} on {}: {apart:.1e}", case.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
