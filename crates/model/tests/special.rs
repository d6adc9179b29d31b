//! Tests of special functions: against arbitrary precision (`suite/reference/special.py`), with their
//! derivatives; tapes compute the same bits; their words in the language.

mod support;

use holonome_model::graph::elementary::{Elementary, Special};
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::structure::evaluate;
use support::{check, model};

/// A value of the table.
struct Row {
    function: Special,
    order: f64,
    x: f64,
    value: f64,
}

fn table() -> Vec<Row> {
    let text = support::file("suite/reference/special.csv");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |k: usize| cells[k].parse::<f64>().unwrap();
        let function = match cells[0] {
            "besselj" => Special::BesselJ,
            "ellipk" => Special::EllipticK,
            "ellipe" => Special::EllipticE,
            "gamma" => Special::Gamma,
            "lgamma" => Special::LogGamma,
            "polygamma" => Special::Polygamma,
            "gammainc" => Special::GammaP,
            other => panic!("{other}"),
        };
        Row { function, order: number(1), x: number(2), value: number(3) }
    };
    text.lines().skip(1).map(row).collect()
}

fn node(g: &mut Graph, function: Special, order: f64, x: Node) -> Node {
    let order = g.constant(order);
    match function {
        Special::BesselJ => g.binary(Binary::BesselJ, order, x),
        Special::EllipticK => g.binary(Binary::EllipticK, order, x),
        Special::EllipticE => g.binary(Binary::EllipticE, order, x),
        Special::Gamma => g.unary(Unary::Gamma, x),
        Special::LogGamma => g.unary(Unary::LogGamma, x),
        Special::Polygamma => g.binary(Binary::Polygamma, order, x),
        Special::GammaP => g.binary(Binary::GammaP, order, x),
    }
}

/// Size of the terms of which a value consists: next to its zeros it is smaller.
fn size(row: &Row) -> f64 {
    match row.function {
        Special::BesselJ => (1.0 + row.x.abs()).sqrt().recip().max(row.value.abs()),
        Special::LogGamma | Special::Polygamma => 1.0f64.max(row.value.abs()),
        // The exponent's rounding grows by the exponent.
        Special::GammaP => row.value.abs() * (1.0 + (row.order * row.x.ln()).abs()),
        _ => row.value.abs(),
    }
}

#[test]
fn values_meet_arbitrary_precision() {
    let rows = table();
    assert!(rows.len() > 200);
    for function in Special::ALL {
        let own = rows.iter().filter(|row| row.function == function);
        let error = |row: &Row| {
            let found = function.evaluate(row.order, row.x);
            match row.value == 0.0 {
                true => found.abs(),
                false => (found - row.value).abs() / size(row),
            }
        };
        let worst = own.max_by(|a, b| error(a).total_cmp(&error(b))).unwrap();
        let (found, of) = (error(worst), (worst.order, worst.x));
        // Some roundings.
        assert!(found < 2e-15, "{function:?}: {found:e} at {of:?}");
    }
}

#[test]
fn derivatives_are_members_of_the_families() {
    let rows = table();
    for row in &rows {
        let mut g = Graph::new();
        let x = g.state(0);
        let y = node(&mut g, row.function, row.order, x);
        let slope = g.gradient(y)[0].1;
        let expected = match row.function {
            Special::EllipticK | Special::EllipticE | Special::Polygamma => {
                let next = rows.iter().find(|other| {
                    other.function == row.function
                        && (other.order, other.x) == (row.order + 1.0, row.x)
                });
                let Some(next) = next else { continue };
                (next.value, size(next))
            }
            Special::BesselJ if row.order > 0.0 => {
                let of = |order: f64| {
                    let fits = |other: &&Row| {
                        other.function == row.function && (other.order, other.x) == (order, row.x)
                    };
                    rows.iter().find(fits).map(|row| row.value)
                };
                let [Some(below), Some(above)] = [of(row.order - 1.0), of(row.order + 1.0)] else {
                    continue;
                };
                ((below - above) / 2.0, size(row))
            }
            // Differences of fourth order, away from the ends of the domain.
            _ if row.x.abs() > 0.1 && row.order < 10.0 => {
                let h = 1e-3;
                let at = |k: f64| row.function.evaluate(row.order, row.x + k * h);
                let slope = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * h);
                // Rounding over the step, and a fifth derivative of up to 1e4 of the size.
                (slope, 2e7 * size(row))
            }
            _ => continue,
        };
        let found = evaluate(&g, &[slope], 0.0, &[row.x], &[])[0];
        let near = (found - expected.0).abs() <= 3e-15 * expected.1;
        assert!(near, "{:?} {} at {}: {found} {}", row.function, row.order, row.x, expected.0);
    }
}

#[test]
fn tapes_call_the_same_functions() {
    for row in table() {
        let mut g = Graph::new();
        let x = g.state(0);
        let y = node(&mut g, row.function, row.order, x);
        let found = evaluate(&g, &[y], 0.0, &[row.x], &[])[0];
        let called = row.function.evaluate(row.order, row.x);
        let folded = Elementary::Special(row.function).evaluate(row.order, row.x);
        assert_eq!(
            [found.to_bits(), folded.to_bits()],
            [called.to_bits(); 2],
            "{:?}",
            row.function
        );
    }
    let outside = [
        Special::EllipticK.evaluate(0.0, 1.5),
        Special::EllipticE.evaluate(0.0, 2.0),
        Special::Polygamma.evaluate(1.0, -3.0),
        Special::GammaP.evaluate(-1.0, 1.0),
        Special::GammaP.evaluate(1.0, -1.0),
    ];
    assert!(outside.iter().all(|value| value.is_nan()), "{outside:?}");
    assert_eq!(Special::EllipticE.evaluate(0.0, 1.0), 1.0);
    assert_eq!(Special::EllipticK.evaluate(0.0, 1.0), f64::INFINITY);
}

#[test]
fn their_words_are_free() {
    let head = "coordinate q = 0.3\nmomentum p of q\n";
    let text = format!(
        "{head}hamiltonian p^2/2 - besselj(0, q) + gammainc(2.5, q^2) + lgamma(2 + q)\n\
         observe period = 4*ellipk(sin(q)^2) + ellipe(0.5) + digamma(1 + q) + polygamma(2, 3) + gamma(4)\n"
    );
    let all = model(&text);
    let observed = all.observables[0].functional.evaluate(0.0, &all.initial, &[])[0];
    // By mpmath 1.3.
    assert!((observed - 13.4548826252638).abs() < 1e-12, "{observed}");
    // A name of the user's goes first.
    model(&format!("{head}parameter gamma = 0.1\nhamiltonian p^2/2 + gamma*q^2\n"));
    let (_, findings) =
        check(&format!("{head}parameter gamma = 0.1\nhamiltonian p^2/2 + gamma(q)\n"));
    assert!(findings[0].message.contains("'gamma' is not a function"), "{findings:?}");
}
