//! Tests of H + ½ω²|g|² and of the rates G H_p + g_t as templates, against their definitions; both
//! forms of the field.

mod support;

use holonome_model::derived::Derived;
use holonome_model::elaborate::expression::TIME;
use holonome_model::elaborate::model::{Dynamics, Model};
use holonome_model::functional::Functional;
use holonome_model::treatment::InvariantKind;
use holonome_model::treatment::penalty::{NotPenalised, penalise};
use holonome_model::treatment::structure::{ambient_points, evaluate};

const OMEGA: f64 = 7.0;

/// Model in which a constraint is a sum over rows, has components of different forms, reads
/// parameters by row and depends on the time, momenta are coupled, and a force reads velocities.
const AWKWARD: &str = "size n = 5\nparameter L[i in 1..n] = 1 + 0.1*i\nparameter k = 0.3\n\
    coordinate q[i in 1..n] : R^2 = (i, sin(i))\nmomentum p of q = (0.2*cos(i), 0.1)\n\
    let total = sum(i in 1..n : p[i])\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])*(i + q[i].x^2)/2) + k*dot(total, total) + sum(i in 2..n : p[i].x*p[i-1].y)\n\
    constraint link[i in 2..n] : dot(q[i] - q[i-1], q[i] - q[i-1]) = L[i]^2 + sin(t)/i\n\
    constraint centre : sum(i in 1..n : i*q[i]) = (2, t)\n\
    constraint mixed[j in 1..2] : (sum(i in j..n if i != 3 : q[i].x^2), q[j].y*q[j+1].x) = (4, k*j)\n\
    constraint square : outer(q[1], q[1]) = identity(2)\n\
    force drag on q = -k*norm(q')*q'\n";

/// The Hamiltonian models with constraints on positions, and [`AWKWARD`].
fn models() -> Vec<(String, Model)> {
    let files = [support::files("models"), support::files("suite/models")].concat();
    let texts = files
        .into_iter()
        .filter(|(_, text)| text.contains("constraint") && !text.contains("table "));
    let all = texts.chain([("awkward".to_string(), AWKWARD.to_string())]);
    let models = all.map(|(name, text)| (name, support::model(&text)));
    let kept: Vec<_> = models.filter(|(_, model)| penalise(model, OMEGA).is_ok()).collect();
    assert!(kept.len() > 12, "{}", kept.len());
    kept
}

fn hamiltonian(model: &Model) -> &Functional {
    let Dynamics::Hamiltonian(h, _) = &model.dynamics else { panic!("a Hamiltonian model") };
    h
}

/// H_p by central differences.
fn velocity(model: &Model, t: f64, x: &[f64]) -> Vec<f64> {
    let n = model.degrees();
    let at = |i: usize, d: f64| {
        let mut x = x.to_vec();
        x[i] += d;
        hamiltonian(model).evaluate(t, &x, &model.parameter_values)[0]
    };
    let step = 1e-5;
    (n..2 * n).map(|i| (at(i, step) - at(i, -step)) / (2.0 * step)).collect()
}

#[test]
fn the_penalty_sums_the_squares_of_all_entries_and_rates_are_derivatives_along_the_motion() {
    for (name, model) in models() {
        let penalised = penalise(&model, OMEGA).unwrap();
        let penalty = penalised.penalty.as_ref().unwrap();
        assert_eq!(penalised.parameter_values[penalty.omega], OMEGA);
        assert!(penalised.constraints.is_empty());
        for x in ambient_points(&model, 3, 0x9e4a) {
            let t = 0.3;
            let value =
                |functional: &Functional| functional.evaluate(t, &x, &penalised.parameter_values);
            let squares: f64 =
                model.constraints.iter().flat_map(|c| value(&c.functional)).map(|g| g * g).sum();
            let expected = value(hamiltonian(&model))[0] + 0.5 * OMEGA * OMEGA * squares;
            let found = value(hamiltonian(&penalised))[0];
            assert!(
                (found - expected).abs() <= 1e-12 * (1.0 + expected.abs()),
                "{name}: {found} {expected}"
            );
            assert!(
                (value(penalised.stiff.as_ref().expect("the penalty"))[0]
                    - (expected - value(&penalty.hamiltonian)[0]))
                    .abs()
                    <= 1e-9 * expected.abs().max(1.0)
            );

            let v = velocity(&model, t, &x);
            let step = 1e-5;
            let along = |d: f64, c: &Functional| {
                let moved: Vec<f64> = x
                    .iter()
                    .enumerate()
                    .map(|(i, x)| x + v.get(i).map_or(0.0, |v| d * v))
                    .collect();
                c.evaluate(t + d, &moved, &model.parameter_values)
            };
            for (constraint, hidden) in model.constraints.iter().zip(&penalty.hidden) {
                let (ahead, behind) =
                    (along(step, &constraint.functional), along(-step, &constraint.functional));
                let rates = value(&hidden.functional);
                assert_eq!(rates.len(), ahead.len());
                for ((rate, a), b) in rates.iter().zip(&ahead).zip(&behind) {
                    let expected = (a - b) / (2.0 * step);
                    let size = 1.0 + expected.abs() + a.abs();
                    assert!(
                        (rate - expected).abs() < 1e-6 * size,
                        "{name}, {}: {rate} {expected}",
                        constraint.name
                    );
                }
            }
        }
    }
}

#[test]
fn both_forms_monitor_the_same_and_hold_what_is_left() {
    for (name, model) in models() {
        let penalised = penalise(&model, OMEGA).unwrap();
        let (field, _) = Derived::new(penalised.clone()).field().unwrap();
        let rows = Derived::new(penalised.clone()).row_field();
        assert_eq!(
            (field.constraints, field.groups.len()),
            (rows.constraints, rows.groups.len()),
            "{name}"
        );
        let count = field.invariants.len();
        assert_eq!(count, rows.count(), "{name}");
        for (a, b) in field.groups.iter().zip(&rows.groups) {
            assert_eq!(
                (&a.name, a.kind, a.monitored_only, &a.members),
                (&b.name, b.kind, b.monitored_only, &b.members),
                "{name}"
            );
            let own = matches!(
                a.kind,
                InvariantKind::Constraint | InvariantKind::Hidden(_) | InvariantKind::Hamiltonian
            );
            assert_eq!(a.monitored_only, own, "{name}: {}", a.name);
            for (row, _) in a.members.rows() {
                assert_eq!(field.jacobian[row].is_empty(), own, "{name}: {}", a.name);
                assert_eq!(rows.pattern.row(row).range().is_empty(), own, "{name}: {}", a.name);
            }
        }
        // With forces neither energy is constant, nor if H or a constraint depends on time.
        let timed = model.explicit_time || model.constraints.iter().any(|c| c.depends & TIME != 0);
        let varies = timed || !model.forces.is_empty();
        for kind in [InvariantKind::Hamiltonian, InvariantKind::Penalised] {
            assert_eq!(
                field.groups.iter().any(|group| group.kind == kind),
                !varies,
                "{name}: {kind:?}"
            );
        }
        let scalars: usize = model.constraints.iter().map(|c| c.members * c.components.len()).sum();
        assert_eq!(field.constraints, 2 * scalars, "{name}");
        for x in ambient_points(&model, 2, 0x70c5) {
            let nodes = [field.field.clone(), field.invariants.clone()].concat();
            let unrolled = evaluate(&field.graph, &nodes, 0.3, &x, &penalised.parameter_values);
            let at = |program: &holonome_model::rows::RowProgram| {
                program.evaluate(0.3, &x, &penalised.parameter_values)
            };
            let templated = [at(&rows.field), at(&rows.invariants)].concat();
            let size = unrolled.iter().fold(1.0f64, |s, v| s.max(v.abs()));
            for (k, (a, b)) in unrolled.iter().zip(&templated).enumerate() {
                // Roundings of the largest number.
                assert!((a - b).abs() <= 1e-13 * size, "{name}, {k}: {a} {b}");
            }
        }
    }
}

#[test]
fn a_large_model_stays_a_few_templates() {
    let chain = support::file("models/chain.holo");
    let with = |n: usize| {
        let set = [("n", n.to_string())];
        let set: Vec<(&str, &str)> =
            set.iter().map(|(name, value)| (*name, value.as_str())).collect();
        support::check_with(&chain, &|_| unreachable!("no tables"), &set).0.unwrap()
    };
    let size = |n: usize| {
        let penalised = penalise(&with(n), OMEGA).unwrap();
        let terms = |functional: &Functional| functional.terms.len();
        let hidden: usize =
            penalised.penalty.as_ref().unwrap().hidden.iter().map(|q| terms(&q.functional)).sum();
        (penalised.template_size(), terms(hamiltonian(&penalised)), hidden)
    };
    assert_eq!(size(10), size(20_000));
}

#[test]
fn what_a_potential_cannot_hold_is_refused() {
    let refusal = |text: &str| penalise(&support::model(text), OMEGA).unwrap_err();
    assert_eq!(refusal(&support::file("models/kepler.holo")), NotPenalised::Free);
    assert_eq!(refusal(&support::file("models/rigid-body.holo")), NotPenalised::Field);
    let hopf = refusal(&support::file("suite/models/hopf-oscillator.holo"));
    assert!(matches!(hopf, NotPenalised::PhaseSpace { .. }), "{hopf}");
    assert!(hopf.to_string().contains("holds momenta"), "{hopf}");
}
