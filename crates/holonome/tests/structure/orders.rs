//! Measured orders of every scheme and every composition, and the page that lists them.

use crate::cases::{Case, PLANETS, difference};
use crate::common::{options, repository, run};
use crate::methods::{bases, cases_of, compositions, few_cases_of};
use holonome::method::{Alias, COMPOSITIONS, Method, Needs, SCHEMES};
use std::collections::BTreeMap;
use std::fs;

/// Time over which errors are measured: steps of order 16 with errors above round-off are as long
/// as the motion's own time.
fn span(method: &Method) -> f64 {
    if method.order() < 16 { 2.0 } else { 20.0 }
}

/// State at `end` by another method: DOP853 on the Dirac extension at a tolerance at round-off.
fn reference(case: &Case, end: f64) -> Vec<f64> {
    let options = options(&format!(
        "--method plain:dop853 --rtol 1e-14 --atol 1e-15 --until {end} --samples 2"
    ));
    run(case.problem(), options).unwrap().state()
}

/// Least-squares slope of ln(error) over ln(h).
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().map(|(h, e)| (h.ln(), e.ln())).unzip();
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let covariance: f64 = x.iter().zip(&y).map(|(x, y)| (x - mx) * (y - my)).sum();
    covariance / x.iter().map(|x| (x - mx) * (x - mx)).sum::<f64>()
}

/// Round-off of some hundred steps that each round a state of length 1 or so, amplified a few
/// times, and the reference's own error.
const ROUND_OFF: f64 = 1e-12;

/// Measured order over the five or so shortest steps T/n whose errors are above round-off, with n
/// growing by √2 or less from a step longer than sensible; `None` if there are fewer than four.
fn measured(method: &Method, case: &Case, reference: &[f64]) -> Option<f64> {
    let simulation = case.with(&method.to_string());
    let start = case.start();
    // SHAKE's result lies somewhere on its fibre: a step of RATTLE, which does not depend on the
    // place, takes it to the set.
    let closing = (method.scheme.name == "shake")
        .then(|| case.with(&method.to_string().replace("shake", "rattle")));
    let t = span(method);
    let end = |n: u64| {
        let h = t / n as f64;
        let Some(rattle) = &closing else { return simulation.steps((0.0, h), n, &start) };
        let x = simulation.steps((0.0, h), n - 1, &start)?;
        rattle.steps(((n - 1) as f64 * h, h), 1, &x)
    };
    let mut points = Vec::new();
    // Errors of high orders fall so fast from step to step that more and closer steps are used.
    let (coarsest, finer, count) = match method.order() {
        ..10 => (4.0, 0.5, 5),
        10..16 => (2.0, 0.25, 9),
        _ if method.scheme.needs_formulas() => (16.0, 0.2, 8),
        _ => (16.0, 0.2, 5),
    };
    for k in 0..(7.0 / finer) as i32 {
        let n = (coarsest * 2f64.powf(finer * f64::from(k))).round() as u64;
        match end(n).map(|end| difference(&end, reference)) {
            Ok(error) if error > ROUND_OFF => points.push((t / n as f64, error)),
            Ok(_) => break,
            // A long step may have no solution, a short one must have one.
            Err(error) => assert!(
                finer * f64::from(k) < 3.0,
                "{method} on {}, {n} steps: {error}",
                case.name()
            ),
        }
    }
    let last = points.split_off(points.len().saturating_sub(count));
    (last.len() >= 4).then(|| slope(&last))
}

/// Measured orders of methods, one for each model that shows it.
type Measured = Vec<(Method, Vec<f64>)>;

/// Measure and check the orders. An additional order does no harm: in some models errors of some
/// kind do not show. A lost order is an error. A margin of a third suffices if errors span six
/// decades; those of order 8 fall to round-off before the expansion in h has quite set in, and as
/// the orders of symmetric methods are even, they would lose two at once.
fn check(methods: Vec<Method>, cases: impl Fn(&Method) -> Vec<&'static Case>) -> Measured {
    let (mut references, mut wrong) = (BTreeMap::new(), Vec::new());
    let mut all = Vec::new();
    for method in methods {
        let order = f64::from(method.order());
        let margin = match method.order() {
            // A weak coupling shows the next power of h as well.
            8.. if matches!(method.scheme.needs, Needs::KeplerFlows(_)) => 1.2,
            ..8 => 0.35,
            8..10 => 0.7,
            10..16 => 1.2,
            _ => 1.7,
        };
        let (mut slopes, mut tried) = (Vec::new(), Vec::new());
        for case in cases(&method) {
            let reference = references
                .entry((case.name(), method.order() < 16))
                .or_insert_with(|| reference(case, span(&method)));
            let slope = measured(&method, case, reference);
            tried.push(format!("{} {slope:.2?}", case.name()));
            slopes.extend(slope);
        }
        println!("{method}: {}", tried.join(", "));
        // At least one model shows the order itself.
        let sharp = slopes.iter().any(|slope| (slope - order).abs() < margin);
        if !sharp || slopes.iter().any(|slope| *slope <= order - margin) {
            wrong.push(format!("{method} has another order: {}", tried.join(", ")));
        }
        all.push((method, slopes));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    all
}

/// Cells of a table: the smallest and the largest measured order, and the number of measurements.
fn range(measured: &Measured, of: impl Fn(&Method) -> bool) -> String {
    let slopes = measured.iter().filter(|(method, _)| of(method)).flat_map(|(_, slopes)| slopes);
    let mut slopes: Vec<f64> = slopes.copied().collect();
    slopes.sort_by(f64::total_cmp);
    let [least, largest] =
        [slopes.first(), slopes.last()].map(|slope| format!("{:.1}", slope.unwrap()));
    let range = if least == largest { least } else { format!("{least} to {largest}") };
    format!("{range} | {}", slopes.len())
}

/// The page `docs/orders.md`.
fn page(schemes: &Measured, composed: &Measured) -> String {
    let mut page = String::from(PAGE);
    for scheme in SCHEMES {
        let order = scheme.facts().order;
        let range = range(schemes, |method| *method == Method::plain(scheme));
        let steps = if scheme.adaptive() { "adaptive" } else { "fixed" };
        // Only schemes that follow any field carry a feedback term.
        let written = |interval: f64| match interval.is_finite() {
            true => format!("{interval:.2}"),
            false => "∞".to_string(),
        };
        let interval = scheme.real_stability_interval().map(written);
        let (name, interval) = (scheme.name, interval.unwrap_or("–".to_string()));
        let use_of = scheme.description;
        page += &format!("| `{name}` | {order} | {range} | {steps} | {interval} | {use_of} |\n");
    }
    page += COMPOSED;
    for composition in COMPOSITIONS {
        let range = range(composed, |method| method.composition == Some(composition));
        let (name, order) = (composition.name, composition.order);
        page += &format!("| `{name}` | {order} | {range} | {} |\n", composition.description);
    }
    page += ELSEWHERE;
    for Alias { method, names } in Alias::all() {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        page += &format!("| `{method}` | {} |\n", names.join(", "));
    }
    page
}

const PAGE: &str = "\
# Schemes, and their orders

This page is written by a test from the registry and from runs, and compared with them:
`HOLONOME_BLESS=1 cargo test -p holonome --test structure orders`.

A scheme of order p has errors in proportion to hᵖ. The order follows from the coefficients, for schemes
that have some, and is stated with the others. The measured one is the slope of the error at the end of a
run over the step h, both in logarithms; the table has the smallest and the largest over the test models
that suit the scheme, whose number follows. Some models show an order more, because they have no error of
some kind, and where steps are long the next terms show as well. `g-baoab` is measured without friction.

Adaptive schemes have an error estimate, by which they choose their steps; the others need `--step`. The
number r is the scheme's real stability limit, or the limit of convergence of its iteration; it matters for
[feedback](methods.md#treatments). `holonome methods NAME` prints the equations and the source of a scheme.

## Bases

| base | order | measured | models | step | r | use |
| --- | --- | --- | --- | --- | --- | --- |
";

const COMPOSED: &str = "
## Compositions

Each composition is measured with every symmetric base of order 2, `rattle` with each map that it takes.

| composition | order | measured | runs | use |
| --- | --- | --- | --- | --- |
";

const ELSEWHERE: &str = "
## Other names

Methods may be called by the names that they have elsewhere. Letter case, hyphens and underscores do not
matter, and a run prints the name used here. A method that only has relatives here, as `LSODA` or `IAS15`,
is refused with their names.

| here | elsewhere |
| --- | --- |
";

#[test]
fn every_method_has_its_order() {
    let plain = SCHEMES.iter().map(|scheme| Method::plain(scheme));
    let around_a_map = bases().into_iter().filter(|method| method.unconstrained.is_some());
    let schemes = check(plain.chain(around_a_map).collect(), few_cases_of);
    // Models of every kind. A uniform field tests nothing: every base map solves it exactly.
    let few = [
        "kepler",
        PLANETS,
        "sprung-masses",
        "forced-pendulum",
        "forced-metric",
        "double-pendulum-angles",
        "metric-pendulum",
        "two-spheres",
        "driven-pendulum",
        "hopf-pair",
        "knife-edge",
        "edge-on-a-sphere",
    ];
    let of = |method: &Method| {
        let mut cases = cases_of(method);
        let is_body = matches!(method.scheme.needs, Needs::Body | Needs::FreeBody);
        cases.retain(|case| few.contains(&case.name()) || is_body || case.is_poisson());
        cases
    };
    let page = page(&schemes, &check(compositions(), of));
    let path = repository().join("docs/orders.md");
    if std::env::var_os("HOLONOME_BLESS").is_some() {
        fs::write(path, page).unwrap();
    } else {
        assert!(fs::read_to_string(path).unwrap() == page, "docs/orders.md is to be:\n{page}");
    }
}
