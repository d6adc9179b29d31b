//! Poisson systems: states against independent programs, what the methods keep, exact flows, and what
//! is refused.

mod common;

use common::{Finished, load, options, repository, run};
use holonome::{Problem, Settings};
use serde::Deserialize;
use std::fs;

fn finished(problem: Problem, with: &str) -> Finished {
    run(problem, options(with)).unwrap_or_else(|error| panic!("{with}: {error}"))
}

fn problem(text: &str) -> Problem {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str, with: &str) -> String {
    match run(problem(text), options(with)) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{with}: it ran"),
    }
}

fn gap(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Largest drifts of H and of the Casimirs, as parts of their sizes.
fn drifts(of: &Finished) -> (f64, f64) {
    let of_name = |name: &str| {
        let all = of.summary.drift.iter().filter(|drift| drift.name.starts_with(name));
        all.map(|drift| drift.relative.map_or(f64::NAN, |relative| relative.max))
            .fold(0.0, f64::max)
    };
    (of_name("H"), of_name("casimir"))
}

#[derive(Deserialize)]
struct References {
    case: Vec<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    model: String,
    until: f64,
    state: Vec<f64>,
}

fn references() -> Vec<Reference> {
    let text = fs::read_to_string(repository().join("suite/poisson.toml")).unwrap();
    toml::from_str::<References>(&text).unwrap().case
}

/// The models of `suite/poisson.toml` by default methods and by each way of taking equal steps. Errors
/// at a tolerance of 1e-13 are some hundred times as large; those of order 2 in h = 0.001 are some
/// h², and of order 8 at h = 0.02 below 1e-10.
#[test]
fn states_are_those_of_independent_programs() {
    let cases = references();
    assert_eq!(cases.len(), 7);
    for Reference { model, until, state } in cases {
        for (with, tolerance) in [
            ("--rtol 1e-13", 2e-11),
            ("--method plain:dop853 --rtol 1e-13", 2e-11),
            ("--method gauss8 --step 0.02", 2e-9),
            ("--method poisson-splitting --step 0.001", 2e-5),
            ("--method discrete-gradient --step 0.001", 2e-5),
            ("--method kahan-li8(poisson-splitting) --step 0.02", 1e-8),
        ] {
            let problem = load(&repository().join("suite").join(&model), &[]).unwrap();
            let end = finished(problem, &format!("--until {until} {with}")).state();
            let error = gap(&end, &state);
            println!("{model} {with}: {error:.1e}");
            assert!(error < tolerance, "{model} {with}: {error:e}");
        }
    }
}

/// What each method keeps over 20 000 steps: rounding grows like a random walk of some 1e-16.
#[test]
fn methods_keep_what_they_should() {
    const ROUNDED: f64 = 1e-13;
    for name in ["three-species", "sphere-vortices", "spin-ring", "flaschka"] {
        let path = repository().join(format!("suite/structure/{name}.holo"));
        let by = |method: &str| {
            let problem = load(&path, &[]).unwrap();
            drifts(&finished(problem, &format!("--method {method} --step 0.05 --until 1000")))
        };
        let (energy, casimirs) = by("poisson-splitting");
        println!("{name}: splitting {energy:.1e} {casimirs:.1e}");
        assert!(casimirs < ROUNDED && energy < 2e-3, "{name}: {energy:e} {casimirs:e}");
        let (energy, casimirs) = by("discrete-gradient");
        println!("{name}: discrete gradient {energy:.1e} {casimirs:.1e}");
        assert!(energy < ROUNDED, "{name}: {energy:e}");
        // Linear Casimirs, and here quadratic ones of single members, but no logarithms.
        assert!((casimirs < ROUNDED) == (name != "three-species"), "{name}: {casimirs:e}");
        let (_, casimirs) = by("gauss4");
        assert!((casimirs < ROUNDED) == (name != "three-species"), "{name}: {casimirs:e}");
        let (energy, casimirs) = by("corrected:rk4");
        // One linear step towards the targets leaves the square of the error that it corrects.
        assert!(energy < 1e-12 && casimirs < 1e-12, "{name}: {energy:e} {casimirs:e}");
    }
}

const PAIR: &str = "parameter k = (1.5, -0.7)\nstate s[i in 1..2] : R^3 = list((0.3, -0.5, 0.8), (0.9, 0.1, 0.4))\n\
    poisson (s[i]) = k[i]*hat(s[i])\nhamiltonian exp(0.8*dot(s[1], s[2]))\n";
const DIPOLE: &str = "parameter c = (1.5, -1.5)\nstate r[i in 1..2] : R^2 = list((0, 0.5), (0, -0.5))\n\
    poisson (r[i]) = matrix((0, 1), (-1, 0))/c[i]\nhamiltonian -c[1]*c[2]*log(norm(r[1] - r[2]))/(2*pi)\n";

/// A single part is a flow: exact in steps of any length.
#[test]
fn flows_of_single_parts_are_exact() {
    let growth = "state x : R^2 = (0.7, 1.2)\npoisson (x) = x.x*x.y*matrix((0, 1), (-1, 0))\nhamiltonian log(x.x) + x.x\n";
    for text in [PAIR, growth, &DIPOLE.replace("-1.5)", "0.4)")] {
        let exact = finished(problem(text), "--until 3 --rtol 1e-13").state();
        let by_flow = "--method poisson-splitting --step 1.5 --until 3";
        let error = gap(&finished(problem(text), by_flow).state(), &exact);
        assert!(error < 1e-11, "{text}: {error:e}");
    }
    // Two opposite vortices at the distance 1 move across their line with the speed c/2π.
    for method in
        ["poisson-splitting --step 2", "discrete-gradient --step 0.5", "gauss8 --step 0.5"]
    {
        let end = finished(problem(DIPOLE), &format!("--method {method} --until 4")).state();
        let moved = 4.0 * 1.5 / std::f64::consts::TAU;
        let moved = moved.copysign(end[0]);
        assert!(gap(&end, &[moved, 0.5, moved, -0.5]) < 1e-12, "{method}: {end:?}");
    }
}

/// Spins that are coupled by s·r alone keep their sum in every part.
#[test]
fn splittings_keep_the_sum_of_spins() {
    let text = "size n = 6\nstate s[i in 1..n] : R^3 = (cos(i), sin(i)*cos(2*i), sin(i)*sin(2*i))\n\
        poisson (s[i]) = hat(s[i])\n\
        hamiltonian -sum(i in 1..n-1 : dot(s[i], s[i+1])) - 0.3*sum(i in 1..n-2 : dot(s[i], s[i+2])^2)\n\
        integral all = sum(i in 1..n : s[i])\n";
    let finished = finished(problem(text), "--method poisson-splitting --step 0.1 --until 200");
    let all = finished.summary.drift.iter().find(|drift| drift.name == "all").unwrap();
    assert!(all.max < 1e-13, "{:e}", all.max);
}

#[test]
fn what_has_no_known_flow_is_refused_by_name() {
    let text =
        "state m : R^3 = (0.8, 0.3, -0.5)\npoisson (m) = hat(m)\nhamiltonian m.x*m.y + m.z^2/2\n";
    let message = refusal(text, "--method poisson-splitting --step 0.1 --until 1");
    assert!(
        message.contains("m.x, m.y is not known") && message.contains("use discrete-gradient"),
        "{message}"
    );
    let (energy, _) =
        drifts(&finished(problem(text), "--method discrete-gradient --step 0.1 --until 50"));
    assert!(energy < 1e-14, "{energy:e}");
    let pendulum = "coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 - cos(q)\n";
    for method in ["poisson-splitting", "discrete-gradient"] {
        let message = refusal(pendulum, &format!("--method {method} --step 0.1 --until 1"));
        assert!(message.contains("poisson (x) = J") && message.contains("gauss4"), "{message}");
    }
}

/// Brackets that break Jacobi's identity are refused unless that is allowed; then H is kept.
#[test]
fn brackets_that_are_none_are_refused() {
    let text = "state x : R^3 = (1, 0.6, 1.5)\npoisson (x) = hat((x.y, x.z^2, x.x))\nhamiltonian dot(x, x)/2\n";
    let message = refusal(text, "--until 1");
    assert!(message.contains("Jacobi's identity"), "{message}");
    let settings = Settings { allow_unverified: true, ..Settings::default() };
    let allowed = Problem::from_text("x", text, &Default::default(), &settings).unwrap();
    assert!(drifts(&finished(allowed, "--until 1")).0 < 1e-14);
}

/// A large chain runs by the default method, which holds H and every length, and by others; in a
/// sparse matrix of lengths bordered by one row of H.
#[test]
fn large_chains_keep_every_length() {
    let text = "size n = 20000\nstate s[i in 1..n] : R^3 = (cos(i), sin(i)*cos(2*i), sin(i)*sin(2*i))\n\
        poisson (s[i]) = hat(s[i])\n\
        hamiltonian -sum(i in 1..n-1 : dot(s[i], s[i+1])) - 0.2*sum(i in 1..n : s[i].z^2)\n";
    for with in ["", "--method corrected:rk4 --step 0.05", "--method gauss8 --step 0.05"] {
        let finished = finished(problem(text), &format!("{with} --until 0.5 --samples 2"));
        let (energy, casimirs) = drifts(&finished);
        println!("{with}: {energy:.1e} {casimirs:.1e}");
        assert!(energy < 1e-12 && casimirs < 1e-14, "{with}: {energy:e} {casimirs:e}");
    }
    // The first spins of a long chain move like those of a short one for a while: by t = 0.5 the ends
    // twenty sites away have an influence of 0.5^20/20! at most.
    let small =
        finished(problem(&text.replace("20000", "40")), "--until 0.5 --rtol 1e-12 --samples 2");
    let large = finished(problem(text), "--until 0.5 --rtol 1e-12 --samples 2");
    assert!(gap(&small.state()[..60], &large.state()[..60]) < 1e-10);
}

/// Backwards the motion is that with −J: there and back is the start.
#[test]
fn backwards_and_back() {
    for method in
        ["", "--method poisson-splitting --step 0.01", "--method discrete-gradient --step 0.01"]
    {
        let path = repository().join("suite/structure/top-by-brackets.holo");
        let back = finished(load(&path, &[]).unwrap(), &format!("{method} --until -2")).state();
        let list = |v: &[f64]| format!("({:?}, {:?}, {:?})", v[0], v[1], v[2]);
        let (m, g) = (list(&back[..3]), list(&back[3..]));
        // The field swings with the time, which begins at −2 then.
        let text = fs::read_to_string(&path)
            .unwrap()
            .replace("(0.6, 0.3, 1.5)", &m)
            .replace("(0.6, 0, -0.8)", &g)
            .replace("sin(2*t)", "sin(2*(t - 2))");
        let end = finished(problem(&text), &format!("{method} --until 2")).state();
        let error = gap(&end, &[0.6, 0.3, 1.5, 0.6, 0.0, -0.8]);
        assert!(error < 1e-9, "{method}: {error:e}");
    }
}
