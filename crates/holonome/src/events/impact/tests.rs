//! Impacts of templated models are those of unrolled ones.

use super::super::{Doings, Source};
use super::Impacts;
use crate::kernels::StateVectors;
use crate::{Problem, Settings};
use holonome_model::treatment::Field;
use std::collections::BTreeMap;

/// Free points, a hanging chain with friction, a moving wall, masses that depend on positions, and a
/// redundant frame.
const MODELS: [(&str, &str); 4] = [
    (
        "points, 1e8 apart in mass",
        "size n = 3
        parameter m[i in 1..n] = list(1, 1e-8, 20)
        coordinate r[i in 1..n] : R^2 = (0.3*i, 0.2*i^2)
        momentum p of r = (m[i]*sin(i), -m[i]*cos(i))
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i]))
        impact wall[i in 1..n] : r[i].x + 0.1*sin(t) = 0 restitution 0.3 + 0.1*i friction 0.2
        impact disks[i in 1..n, j in i+1..n] : norm(r[i] - r[j]) = 0.1 restitution 1 friction 0.1",
    ),
    (
        "chain",
        "size n = 5
        coordinate r[i in 1..n] : R^2 = (0.6*i, -0.8*i)
        momentum p of r = (0.8*i, 0.6*i)
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*i) + r[i].y)
        constraint anchor : dot(r[1], r[1]) = 1
        constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 1
        impact floor_[i in 1..n] : r[i].y + 4 = 0 restitution 0.5 friction 0.3
        impact tip : r[n].x - 0.5*r[1].y = 1 restitution 0.5",
    ),
    (
        "masses that depend on positions",
        "size n = 3
        coordinate q[i in 1..n] = 0.4*i
        momentum p of q = cos(i)
        hamiltonian sum(i in 1..n : (1 + q[i]^2)*p[i]^2/2) + 0.1*sum(i in 1..n-1 : p[i]*p[i+1])
        constraint sum_ : sum(i in 1..n : q[i]) + 0.2*t = 2.4
        impact stop_[i in 1..n] : q[i] - 0.1*q[1]^2 = 0 restitution 0.7",
    ),
    (
        "redundant frame",
        "size n = 4
        coordinate r[i in 1..n] : R^2 = list((0, 0), (1, 0), (1, 1), (0, 1))
        momentum p of r = list((0.5, 0.1), (0.5, 1.1), (-0.5, 1.1), (-0.5, 0.1))
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/2)
        constraint rod[i in 1..n, j in i+1..n] : dot(r[i] - r[j], r[i] - r[j]) = if(j == i + 2, 2, 1)
        impact ground[i in 1..n] : r[i].y + 0.3*r[i].x = 0 restitution 0.5 friction 0.2",
    ),
];

fn compiled(problem: &Problem, field: Option<&Field>) -> Impacts {
    let model = &problem.model;
    let mut source = Source::new(model, field);
    let functions = source.functions(model);
    let Doings { normals, coefficients, .. } = Doings::of(model, &functions, &mut source);
    let vectors = StateVectors::of(model);
    Impacts::new(problem, field, &vectors, (&normals, &coefficients), &mut source)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn after(impacts: &Impacts, number: usize, t: f64, x: &[f64]) -> Vec<f64> {
    let mut x = x.to_vec();
    impacts.act(number, t, &mut x, &mut vec![f64::NAN; impacts.work_len()]);
    x
}

#[test]
fn impacts_of_rows_are_those_of_formulas() {
    for (name, text) in MODELS {
        let settings = Settings { project_initial: true, ..Settings::default() };
        let problem = Problem::from_text(name, text, &BTreeMap::new(), &settings)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let model = &problem.model;
        let (field, _) = model.field().unwrap_or_else(|_| panic!("{name} has no field"));
        let [unrolled, templated] = [Some(&field), None].map(|field| compiled(&problem, field));
        for number in 0..unrolled.normals.len() {
            // Off the constraints, too: those are linear in what the impulses are.
            for (t, moved) in [(0.0, 0.0), (0.7, 0.1)] {
                let x = model.initial.iter().zip(1..);
                let x: Vec<f64> = x.map(|(x, k)| x * (1.0 + moved * f64::from(k).sin())).collect();
                let [one, other] = [&unrolled, &templated].map(|of| after(of, number, t, &x));
                let n = model.degrees();
                assert_ne!(one[n..2 * n], x[n..2 * n], "{name}: impact {number} does nothing");
                let size = |i: usize| x[i].abs().max(one[i].abs());
                let largest = (n..2 * n).map(size).fold(0.0, f64::max);
                for i in 0..x.len() {
                    // Some hundred roundings, times the condition of the constraints, below 100.
                    let off = (one[i] - other[i]).abs();
                    assert!(
                        off <= 1e4 * f64::EPSILON * largest,
                        "{name}, impact {number}: {off:e}"
                    );
                }
            }
        }
    }
}
