//! Tests of formulas as terms with rows: their number does not grow with the model, the rows give
//! the same numbers as the unrolled formulas, and a million rows cost seconds.

mod support;

use holonome_model::elaborate::model::{Dynamics, Model, Quantity};
use holonome_model::functional::{Functional, Source};
use holonome_model::graph::Graph;
use holonome_model::treatment::structure::{ambient_points, evaluate};
use std::time::Instant;

fn dynamics(model: &Model) -> &Functional {
    let (Dynamics::Hamiltonian(f, _) | Dynamics::Field(f)) = &model.dynamics;
    f
}

fn terms_and_rows(f: &Functional) -> Vec<usize> {
    f.terms.iter().map(|t| t.rows()).collect()
}

/// H of a model of one family x[i in 1..4] at x = (1, 10, 100, 1000).
fn value(formula: &str) -> f64 {
    let text =
        format!("size n = 4\ncoordinate x[i in 1..n] = 10^(i - 1)\nmomentum p of x\n{formula}\n");
    let model = support::model(&text);
    dynamics(&model).evaluate(0.0, &model.initial, &model.parameter_values)[0]
}

#[test]
fn the_number_of_terms_is_independent_of_size() {
    let chain = support::file("models/chain.holo");
    for n in [2, 10, 1000] {
        let model = support::model(&chain.replace("size n = 10", &format!("size n = {n}")));
        // H is one sum: one term with a row for each mass.
        assert_eq!(terms_and_rows(dynamics(&model)), [n]);
        let nodes: Vec<usize> = model
            .constraints
            .iter()
            .flat_map(|c| c.functional.terms.iter().map(|t| t.graph.len()))
            .collect();
        assert_eq!(
            model.constraints.iter().map(|c| terms_and_rows(&c.functional)).collect::<Vec<_>>(),
            [vec![1], vec![n - 1]]
        );
        assert!(nodes.iter().all(|&n| n < 30), "{nodes:?}");
        assert_eq!(model.constraints[1].members, n - 1);
        assert_eq!(model.constraints[1].member_name(n - 2), format!("link[{n}]"));
    }
}

#[test]
fn slots_are_what_a_row_reads() {
    // Of r[i].y only the component that is used, once however often it is used.
    let model = support::model(
        "size n = 5\ncoordinate r[i in 1..n] : R^3 = (i, 0, 0)\nmomentum p of r\nparameter m[i in 1..n] = i\nhamiltonian sum(i in 1..n : m[i]*r[i].y*r[i].y + i*r[i].y)\n",
    );
    let term = &dynamics(&model).terms[0];
    assert_eq!(term.slots, [Source::Parameter, Source::State, Source::Number]);
    assert_eq!(term.rows(), 5);
    let reads: Vec<u32> = (0..5).map(|i| 3 * i + 1).collect();
    assert_eq!(dynamics(&model).reads(0), reads);
}

#[test]
fn rows_that_move_on_evenly_are_stretches() {
    let model = support::model(
        "size n = 40\ncoordinate r[i in 1..n] : R^3 = (i, 0, 0)\nmomentum p of r\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/2) + sum(i in 1..n, j in i+1..n : 1/norm(r[i] - r[j])) + sum(i in 1..n : (i - 20)^2*r[i].y + i/i*r[i].z)\n",
    );
    let terms = &dynamics(&model).terms;
    let counts: Vec<usize> = terms.iter().map(|term| term.table.count()).collect();
    // The partners of a body are one stretch.
    assert_eq!(counts, [1, 39, 1]);
    let evened = terms[2].evened();
    assert_eq!(
        (terms[2].rows(), evened.rows(), evened.table.count()),
        (40, 40, 40),
        "a number of its own in each row"
    );
    for (row, same) in terms[2].table.each().zip(evened.table.each()) {
        for (k, source) in evened.slots.iter().enumerate() {
            match source {
                Source::Number => {
                    assert_eq!(
                        terms[2].numbers[row.at(k) as usize],
                        evened.numbers[same.at(k) as usize]
                    );
                }
                _ => assert_eq!(row.at(k), same.at(k)),
            }
        }
    }
    assert_eq!(terms[1].evened().table, terms[1].table);
}

#[test]
fn ranges_are_run_through_at_once_only_where_rows_are_even() {
    let with = |formula: &str| {
        let text = format!(
            "size n = 9\nparameter m[i in 1..n] = i\ncoordinate r[i in 0..2*n+1] = i\nmomentum p of r\nhamiltonian sum(i in 1..n : {formula})\n"
        );
        let model = support::model(&text);
        let sum = dynamics(&model).evaluate(0.0, &model.initial, &model.parameter_values)[0];
        (
            sum,
            dynamics(&model)
                .terms
                .iter()
                .map(|term| (term.rows(), term.table.count()))
                .collect::<Vec<_>>(),
        )
    };
    let sums = |f: &dyn Fn(f64) -> f64| (1..=9).map(|i| f(f64::from(i))).sum::<f64>();
    assert_eq!(with("m[i]*r[2*i + 1]"), (sums(&|i| i * (2.0 * i + 1.0)), vec![(9, 1)]));
    assert_eq!(
        with("r[i*(10 - i) - 9]^2"),
        (sums(&|i| (i * (10.0 - i) - 9.0).powi(2)), vec![(9, 5)])
    );
    assert_eq!(with("if(i < 6, r[i], 3*r[19 - i])"), (15.0 + 3.0 * 46.0, vec![(5, 1), (4, 1)]));
    assert_eq!(with("i*r[i]"), (285.0, vec![(9, 1)]), "each with a number of its own");
    assert_eq!(with("sum(j in i+1..n : r[i]*r[j])"), (870.0, vec![(36, 8)]));
    // A family is run through like a sum, and a mistake in its middle is found.
    let model = support::model(
        "size n = 9\ncoordinate r[i in 1..n] = i\nmomentum p of r\nhamiltonian sum(i in 1..n : p[i]^2/2)\nobserve next[i in 1..n-1] = r[i+1] - r[i]\n",
    );
    let next = &model.observables[0];
    assert_eq!((next.members, next.functional.terms[0].table.count()), (8, 1));
    assert_eq!(next.functional.evaluate(0.0, &model.initial, &[]), [1.0; 8]);
    assert_eq!(next.member_name(7), "next[8]");
}

/// Every formula of a model, with its name.
fn formulas(model: &Model) -> Vec<(String, &Functional)> {
    let named = |q: &'_ Quantity| q.name.clone();
    let all = model.constraints.iter().chain(&model.integrals).chain(&model.observables);
    std::iter::once(("dynamics".to_string(), dynamics(model)))
        .chain(all.map(|q| (named(q), &q.functional)))
        .collect()
}

#[test]
fn rows_and_unrolled_formulas_agree_for_every_model() {
    let mut count = 0;
    for folder in ["models", "suite/models"] {
        for (name, text) in support::files(folder) {
            let (model, findings) = support::check_in(folder, &text);
            let model = model.unwrap_or_else(|| panic!("{name}: {findings:#?}"));
            count += 1;
            for (formula, f) in formulas(&model) {
                let mut g = Graph::new();
                let nodes = f.unroll(&mut g);
                for (k, mut x) in ambient_points(&model, 5, 0x7e57).into_iter().enumerate() {
                    let t = 0.3 * k as f64;
                    // Behind the state are velocities and what else observables may read.
                    x.extend(x.clone().iter().rev().cycle().take(3 * x.len()));
                    let by_rows = f.evaluate(t, &x, &model.parameter_values);
                    let at_once = evaluate(&g, &nodes, t, &x, &model.parameter_values);
                    assert_eq!(by_rows.len(), f.outputs);
                    // Scale of the terms that are added up: each row by itself.
                    let mut size = vec![1e-300; f.outputs];
                    for term in &f.terms {
                        for row in 0..term.rows() {
                            let one = Functional {
                                outputs: f.outputs,
                                terms: vec![support::only(term, row)],
                            };
                            for (s, v) in
                                size.iter_mut().zip(one.evaluate(t, &x, &model.parameter_values))
                            {
                                *s += v.abs();
                            }
                        }
                    }
                    for ((a, b), size) in by_rows.iter().zip(&at_once).zip(size) {
                        let both_undefined = a.is_nan() && b.is_nan();
                        // Products in sums are fused in one form and not in the other, and a row
                        // may cancel inside: a thousand roundings.
                        assert!(
                            both_undefined
                                || (a - b).abs() <= 1000.0 * f64::EPSILON * size.max(1.0),
                            "{name}, {formula}: {a} {b}"
                        );
                    }
                }
            }
        }
    }
    assert!(count >= 30, "{count} models");
}

#[test]
fn conditions_on_indices_are_decided_by_row() {
    // Ends and middle: three templates, no select in any of them.
    let text = "size n = 50\ncoordinate x[i in 1..n] = 1\nmomentum p of x\nhamiltonian sum(i in 1..n : if(i == 1, x[i]^2, if(i == n, x[i]^3, (x[i] - x[i-1])^2 + 1)))\n";
    let model = support::model(text);
    let mut rows = terms_and_rows(dynamics(&model));
    rows.sort_unstable();
    assert_eq!(rows, [1, 1, 48]);
    assert_eq!(dynamics(&model).evaluate(0.0, &model.initial, &[])[0], 50.0);
    for term in &dynamics(&model).terms {
        let select = term.graph.reachable(&term.roots).iter().any(|&n| {
            matches!(term.graph.expression(n), holonome_model::graph::Expression::Select(..))
        });
        assert!(!select);
    }
    // The branch that is not taken may read members that do not exist.
    assert_eq!(value("hamiltonian sum(i in 1..n : if(i > 1, x[i-1], 0))"), 111.0);
    // A condition on a row's numbers and the state is a select in one template.
    let model = support::model(&text.replace(
        "if(i == 1, x[i]^2, if(i == n, x[i]^3, (x[i] - x[i-1])^2 + 1))",
        "if(x[i] > i, 1, 0)",
    ));
    assert_eq!(terms_and_rows(dynamics(&model)), [50]);
}

#[test]
fn sums_of_every_kind() {
    for (formula, expected) in [
        ("sum(i in 1..n : x[i])", 1111.0),
        ("sum(i in 1..0 : x[i])", 0.0),
        ("sum(i in 9..2 : x[i])", 0.0),
        ("sum(i in 1..n, j in i+1..n : x[j] - x[i])", 9.0 + 99.0 + 999.0 + 90.0 + 990.0 + 900.0),
        ("sum(i in 1..n, j in 1..n if i != j : x[j])", 3.0 * 1111.0),
        // Σ over 1 ≤ j ≤ k ≤ i ≤ 4 of x[k]: k of them for each i from k to 4.
        (
            "sum(i in 1..n, j in 1..i, k in j..i : x[k])",
            4.0 + 2.0 * 3.0 * 10.0 + 3.0 * 2.0 * 100.0 + 4.0 * 1000.0,
        ),
        // In linear position, however wrapped.
        ("-(2*sum(i in 1..n : x[i]) - sum(i in 1..n : x[i])*3)/4", 1111.0 / 4.0),
        ("(sum(i in 1..n : (x[i], 1))).y", 4.0),
        ("sum(i in 1..n : sum(j in 1..i : x[j])*i)", 1.0 + 22.0 + 333.0 + 4444.0),
        // Inside a nonlinear function: unrolled, with a length that depends on the row.
        ("sum(i in 1..n : sqrt(sum(j in 1..i : x[j])^2))", 1.0 + 11.0 + 111.0 + 1111.0),
        (
            "sum(i in 1..n : sqrt(sum(j in 1..i if j != i : x[j]^2)))",
            1.0 + 101f64.sqrt() + 10101f64.sqrt(),
        ),
        (
            "sqrt(sum(i in 1..n, j in i..n if j == i + 1 : x[i]*x[j]))",
            (10.0f64 + 1000.0 + 100000.0).sqrt(),
        ),
        ("norm(sum(i in 1..n : (x[i], 0)))", 1111.0),
        // An index as a number.
        ("sum(i in 1..n : i^2)", 30.0),
        ("sum(i in 1..n : (3*(i - 1) + 1)/2)", (1.0 + 4.0 + 7.0 + 10.0) / 2.0),
        ("sum(i in 1..n : x[n + 1 - i]*i)", 1000.0 + 200.0 + 30.0 + 4.0),
        ("sum(i in 1..2 : x[2*i])", 1010.0),
        // A list picked from.
        ("sum(i in 1..n : (4, 3, 2, 1)[i]*x[i])", 4.0 + 30.0 + 200.0 + 1000.0),
        ("sum(i in 1..2 : x[(4, 1)[i]])", 1001.0),
        ("sum(i in 1..2, j in 1..(1, 3)[i] : x[j])", 1.0 + 111.0),
        ("sum(i in 1..n if (1, 0, 0, 1)[i] == 1 : x[i])", 1001.0),
        (
            "sum(i in 1..2, j in 1..2 : matrix((1, 2), (3, 4))[i,j]*x[i]*x[j])",
            1.0 + 20.0 + 30.0 + 400.0,
        ),
        ("sum(i in 1..2 : (x[1], x[2])[i])", 11.0),
        // Ranges that go below 1.
        ("sum(i in -2..0 : x[i + 3])", 111.0),
    ] {
        let got = value(&format!("hamiltonian {formula}"));
        // A dozen roundings.
        assert!(
            (got - expected).abs() <= 12.0 * f64::EPSILON * expected.abs(),
            "{formula}: {got} instead of {expected}"
        );
    }
}

#[test]
fn lets_with_indices() {
    for (statements, expected) in [
        (
            "let d(a, b) = x[b] - x[a]\nhamiltonian d(1, 2) + sum(i in 2..n : d(i - 1, i))",
            9.0 + 999.0,
        ),
        ("let c[i in 1..n] = 2*x[i]\nhamiltonian sum(i in 1..n : c[n + 1 - i])", 2222.0),
        ("let c[i in 1..n, j in i..n] = x[i] + x[j]\nhamiltonian c[1,4] + c[2,2]", 1021.0),
        ("let c[i in 1..n] = (x[i], i)\nhamiltonian sum(i in 1..n : c[i].y + c[i][1])", 1121.0),
        ("let w[i in 0..n] = if(i == 0, 7, i)\nhamiltonian sum(i in 0..n : w[i])", 17.0),
        (
            "let s(k) = sum(j in 1..k : x[j])\nhamiltonian sum(i in 1..n : s(i))",
            1.0 + 11.0 + 111.0 + 1111.0,
        ),
        ("let f(i, g) = g*x[i]\nhamiltonian sum(i in 1..2 : f(i + 1, f(i, 1)))", 10.0 + 1000.0),
        // A member that does not exist may stand in a branch that is not taken, of indices alone
        // too.
        (
            "let f[i in 1..n] = i\nhamiltonian sum(i in 1..n : x[i]*if(i > 1, f[i-1], 0))",
            10.0 + 200.0 + 3000.0,
        ),
        (
            "let f[i in 1..3, j in 1..i] = 10*i + j\nhamiltonian sum(i in 1..3, j in 1..i : f[i,j])",
            11.0 + 21.0 + 22.0 + 31.0 + 32.0 + 33.0,
        ),
        // Names hide: the index of the sum is not that of the definition.
        ("let f(i) = sum(j in 1..i : x[j])\nhamiltonian sum(j in 1..2 : f(j + 1))", 11.0 + 111.0),
        (
            "let f(j) = sum(k in 1..2 : sum(j in 1..k : x[j])) + x[j]\nhamiltonian sum(k in 3..4 : f(k))",
            2.0 * 12.0 + 1100.0,
        ),
        ("let odd[i in 1..n if i == 1 or i == 3] = x[i]\nhamiltonian odd[1] + odd[3]", 101.0),
    ] {
        assert_eq!(value(statements), expected, "{statements}");
    }
}

#[test]
fn families_with_three_indices() {
    // x[a,b,s] = 100a + 10b + s; every index picks its axis.
    let text = "size A = 2\nsize B = 3\ncoordinate x[a in 1..A, b in 0..B, s in 1..2] : R^2 = (100*a + 10*b + s, -1)\nmomentum p[k, l, m] of x = (m, 100*k + l)\nhamiltonian x[2,3,1].x\nconstraint g[a in 1..A, b in 1..B, s in 1..2 if a != b] : x[a,b,s] - x[a,b-1,s] = (10, 0)\nobserve last = p[2,3,2]\n";
    let model = support::model(text);
    assert_eq!(model.degrees(), 2 * 4 * 2 * 2);
    assert_eq!(dynamics(&model).evaluate(0.0, &model.initial, &[]), [231.0]);
    assert_eq!(model.observables[0].functional.evaluate(0.0, &model.initial, &[]), [2.0, 203.0]);
    let g = &model.constraints[0];
    assert_eq!(g.members, 2 * 3 * 2 - 2 * 2);
    assert_eq!(
        (g.member_name(0), g.member_name(7)),
        ("g[1,2,1]".to_string(), "g[2,3,2]".to_string())
    );
    assert!(g.functional.evaluate(0.0, &model.initial, &[]).iter().all(|&v| v == 0.0));
}

#[test]
fn families_of_constraints_with_dependent_ranges() {
    let text = "coordinate r[i in 1..4] : R^2 = (i, i^2)\nmomentum p of r\nhamiltonian 0*r[1].x\nconstraint rod[i in 1..4, j in i+1..4] : dot(r[i] - r[j], r[i] - r[j]) = (i - j)^2*(1 + (i + j)^2)\n";
    let model = support::model(text);
    let rod = &model.constraints[0];
    let names: Vec<String> = (0..rod.members).map(|m| rod.member_name(m)).collect();
    assert_eq!(names, ["rod[1,2]", "rod[1,3]", "rod[1,4]", "rod[2,3]", "rod[2,4]", "rod[3,4]"]);
    assert!(
        rod.functional.evaluate(0.0, &model.initial, &[]).iter().all(|v| v.abs() < 1e-12 * 300.0)
    );
}

#[test]
fn a_symmetric_matrix_equation_counts_once() {
    for (formula, components) in [
        (
            "transpose(Q)*Q = identity(3)",
            vec![(0, 1.0), (1, 2.0), (2, 2.0), (4, 1.0), (5, 2.0), (8, 1.0)],
        ),
        ("Q = identity(3)", (0..9).map(|k| (k, 1.0)).collect()),
        (
            "outer(v, v) = matrix((1, 0, 0), (0, 0, 0), (0, 0, 0))",
            vec![(0, 1.0), (1, 2.0), (2, 2.0), (4, 1.0), (5, 2.0), (8, 1.0)],
        ),
        (
            "2*transpose(Q)*Q = 2*identity(3)",
            vec![(0, 1.0), (1, 2.0), (2, 2.0), (4, 1.0), (5, 2.0), (8, 1.0)],
        ),
        (
            "k*Q*transpose(Q) - k*identity(3) = 0*identity(3)",
            vec![(0, 1.0), (1, 2.0), (2, 2.0), (4, 1.0), (5, 2.0), (8, 1.0)],
        ),
        (
            "sum(i in 1..2 : i*transpose(Q)*(Q/3)) = identity(3)",
            vec![(0, 1.0), (1, 2.0), (2, 2.0), (4, 1.0), (5, 2.0), (8, 1.0)],
        ),
        (
            "sum(i in 1..2 : Q) = 4*identity(3) - transpose(2*Q)",
            vec![(0, 1.0), (1, 2.0), (2, 2.0), (4, 1.0), (5, 2.0), (8, 1.0)],
        ),
        ("Q*J*transpose(Q) = J", vec![(0, 1.0), (1, 2.0), (2, 2.0), (4, 1.0), (5, 2.0), (8, 1.0)]),
        ("Q*outer(v, v) = outer(v, v)", (0..9).map(|k| (k, 1.0)).collect()),
        // An entry that is 0 on both sides is not an equation.
        (
            "hat(v) = hat((1, 0, 0))",
            vec![(1, 1.0), (2, 1.0), (3, 1.0), (5, 1.0), (6, 1.0), (7, 1.0)],
        ),
    ] {
        let model = support::model(&format!(
            "parameter k = 0.3\nparameter J = diag(3, 2, 1)\ncoordinate Q : R^(3,3) = identity(3)\nmomentum P of Q\ncoordinate v : R^3 = (1, 0, 0)\nmomentum u of v\nhamiltonian 0*v.x\nconstraint g : {formula}\n"
        ));
        let got: Vec<(usize, f64)> =
            model.constraints[0].components.iter().map(|c| (c.offset, c.multiplicity)).collect();
        assert_eq!(got, components, "{formula}");
    }
}

/// A chain of n masses, as text.
fn long_chain(n: usize) -> String {
    support::file("models/chain.holo").replace("size n = 10", &format!("size n = {n}"))
}

fn elaborate_and_evaluate(n: usize) -> (f64, f64, Model) {
    let text = long_chain(n);
    let start = Instant::now();
    let model = support::model(&text);
    let read = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let h = dynamics(&model).evaluate(0.0, &model.initial, &model.parameter_values)[0];
    let evaluated = start.elapsed().as_secs_f64();
    // H = Σ y = −n(n + 1), exact in doubles while it is below 2^53.
    assert_eq!(h, -((n * (n + 1)) as f64));
    let worst = model
        .constraints
        .iter()
        .flat_map(|c| c.functional.evaluate(0.0, &model.initial, &model.parameter_values))
        .fold(0.0f64, |s, v| s.max(v.abs()));
    // L² = sqrt(5)² is one rounding off 5.
    assert!(worst <= 2.0 * f64::EPSILON * 5.0, "{worst:e}");
    (read, evaluated, model)
}

#[test]
fn a_million_rows_are_not_unrolled() {
    let (read, evaluated, model) = elaborate_and_evaluate(1_000_000);
    println!("10^6 masses: read in {read:.1} s, H in {evaluated:.2} s");
    assert_eq!(terms_and_rows(dynamics(&model)), [1_000_000]);
    assert!(dynamics(&model).terms[0].graph.len() < 30);
    // Unrolled it would far exceed the limit, and nothing has tried to unroll it.
    assert!(model.unrolled_size() > 10_000_000);
}

/// Ten million rows, the stated size: `cargo test --release -p holonome-model --test templates --
/// --ignored --nocapture`.
#[test]
#[ignore = "takes a quarter of a minute and a gigabyte in release"]
fn ten_million_rows() {
    let (read, evaluated, _model) = elaborate_and_evaluate(10_000_000);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("").to_string();
    println!("10^7 masses: read in {read:.1} s, H in {evaluated:.2} s, {peak}");
}
