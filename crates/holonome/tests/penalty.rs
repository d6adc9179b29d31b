//! Penalised runs: independent values, the laws of their error, their starts, their multipliers,
//! refusals.

mod common;

use common::{Finished, distance, load, model, options, repository, run};
use holonome::model::treatment::InvariantKind;
use holonome::{
    Control, Error, PenaltyStrength, Problem, RunOptions, Settings, Sweep, SweepOptions, prepare,
};
use serde_json::json;
use std::collections::BTreeMap;
use toml::Table;

fn omega(options: RunOptions, omega: f64) -> RunOptions {
    RunOptions { penalty: Some(PenaltyStrength::Omega(omega)), ..options }
}

fn off(options: RunOptions) -> RunOptions {
    RunOptions { slow_manifold: Some(false), ..options }
}

fn suite() -> Table {
    std::fs::read_to_string(repository().join("suite/penalty.toml")).unwrap().parse().unwrap()
}

fn list(table: &Table, key: &str) -> Vec<f64> {
    table[key]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_float().or(v.as_integer().map(|i| i as f64)).unwrap())
        .collect()
}

/// Largest difference.
fn off_by(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn refusal(problem: Problem, options: RunOptions) -> String {
    match prepare(problem, options) {
        Ok(_) => panic!("it runs"),
        Err(error) => {
            assert_eq!(error.exit_code(), 2, "{error}");
            error.to_string()
        }
    }
}

/// Problem of a case at its initial state: the file's, or with given momenta.
fn problem(case: &Table) -> Problem {
    let path = repository().join("suite").join(case["model"].as_str().unwrap());
    let initial = list(case, "initial");
    let double = [("p1", &initial[4..6]), ("p2", &initial[6..8])];
    let set: Vec<(&str, String)> = match path.ends_with("double-pendulum.holo") {
        true => double.iter().map(|(name, v)| (*name, format!("({}, {})", v[0], v[1]))).collect(),
        false => Vec::new(),
    };
    let set: Vec<(&str, &str)> = set.iter().map(|(name, value)| (*name, value.as_str())).collect();
    load(&path, &set).unwrap()
}

#[test]
fn states_after_some_steps_are_those_of_an_independent_program() {
    for case in suite()["steps"].as_array().unwrap() {
        let case = case.as_table().unwrap();
        let (h, count) = (case["h"].as_float().unwrap(), case["count"].as_integer().unwrap());
        let text = format!(
            "--method stormer-verlet-a --step {h} --until {} --samples 2",
            h * count as f64
        );
        let with = || omega(options(&text), case["omega"].as_float().unwrap());
        let slow = run(problem(case), with()).unwrap();
        let plain = run(problem(case), off(with())).unwrap();
        assert_eq!(plain.summary.steps, count as u64);
        let first = |run: &Finished| -> Vec<f64> {
            run.summary.state.names().flat_map(|name| run.array(name).swap_remove(0)).collect()
        };
        let errors = [
            off_by(&first(&plain), &list(case, "initial")),
            off_by(&plain.state(), &list(case, "off")),
            off_by(&first(&slow), &list(case, "start")),
            off_by(&slow.state(), &list(case, "on")),
        ];
        println!("{}: {errors:?}", case["model"]);
        // The slope of λ at the start is a difference: accurate to 1e-8, divided by ω² ≥ 400.
        assert!(errors.iter().all(|error| *error < 1e-10), "{errors:?}");
    }
}

/// Positions and momenta at the end.
fn halves(run: &Finished) -> (Vec<f64>, Vec<f64>) {
    let mut q = run.state();
    let p = q.split_off(q.len() / 2);
    (q, p)
}

fn slopes(errors: &[f64]) -> Vec<f64> {
    errors.windows(2).map(|pair| (pair[0] / pair[1]).log2()).collect()
}

/// Accurate runs of the constrained model, and with each ω.
fn family(name: &str, until: f64, strengths: &[f64]) -> (Finished, Vec<Finished>) {
    let text =
        format!("--method corrected:dop853 --rtol 1e-13 --atol 1e-13 --until {until} --samples 2");
    let exact = run(model(name, &[]), options(&text)).unwrap();
    let text = text.replace("corrected:", "");
    let runs = strengths
        .iter()
        .map(|&w| run(model(name, &[]), omega(options(&text), w)).unwrap())
        .collect();
    (exact, runs)
}

#[test]
fn errors_shrink_like_the_square_and_extrapolated_ones_like_the_fourth_power() {
    for (name, until) in [("double-pendulum", 5.0), ("spherical-pendulum", 5.0), ("ring", 2.0)] {
        let (exact, runs) = family(name, until, &[20.0, 40.0, 80.0, 160.0]);
        let (q, p) = halves(&exact);
        let ends: Vec<_> = runs.iter().map(halves).collect();
        let errors: Vec<f64> = ends.iter().map(|(end, _)| distance(end, &q)).collect();
        let momenta: Vec<f64> = ends.iter().map(|(_, end)| distance(end, &p)).collect();
        let extrapolated: Vec<f64> = ends
            .windows(2)
            .map(|pair| {
                let end: Vec<f64> =
                    pair[0].0.iter().zip(&pair[1].0).map(|(a, b)| (4.0 * b - a) / 3.0).collect();
                distance(&end, &q)
            })
            .collect();
        println!("{name}: {errors:?} {:?}, momenta {:?}", slopes(&errors), slopes(&momenta));
        println!("  extrapolated {extrapolated:?} {:?}", slopes(&extrapolated));
        // The remaining next term is a quarter each time.
        let (laws, fourth) = (slopes(&errors), slopes(&extrapolated));
        assert!(
            (laws[2] - 2.0).abs() < 0.02 && (slopes(&momenta)[2] - 2.0).abs() < 0.05,
            "{name}: {laws:?}"
        );
        assert!(fourth.iter().all(|slope| (slope - 4.0).abs() < 0.35), "{name}: {fourth:?}");
    }
}

/// Tao, Owhadi 2016, sec. 4.1: steps of several periods of the springs.
#[test]
fn errors_of_the_double_pendulum() {
    let positions = |text: &str| -> Result<Vec<Vec<f64>>, Error> {
        let found = run(
            model("double-pendulum", &[]),
            options(&format!("{text} --until 50 --samples 501")),
        )?;
        Ok(found
            .array("r1")
            .into_iter()
            .zip(found.array("r2"))
            .map(|(a, b)| [a, b].concat())
            .collect())
    };
    let exact = positions("--method corrected:dop853 --rtol 1e-13 --atol 1e-13").unwrap();
    let error = |text: &str| {
        let own = positions(&format!("{text} --step 0.1")).unwrap();
        own.iter().zip(&exact).skip(100).map(|(a, b)| distance(a, b)).sum::<f64>() / 401.0
    };
    let rattle = error("--method rattle");
    let start_off =
        |method: &str| error(&format!("--method {method} --penalty 20 --slow-manifold off"));
    let (zhang_skeel, newmark) = (start_off("zhang-skeel"), start_off("newmark"));
    // From reference/constrained.py, whose benchmark errs by 1e-7.
    for (error, expected) in
        [(zhang_skeel, 8.06052e-2), (newmark, 8.91303e-2), (rattle, 1.887830e-2)]
    {
        assert!((error / expected - 1.0).abs() < 2e-5, "{error:e}, {expected:e}");
    }
    // On the slow manifold and off it: 7 to 13 % less, and RATTLE 3 to 5 times closer.
    for (zhang_skeel, newmark) in [
        (zhang_skeel, newmark),
        (error("--method zhang-skeel --penalty 20"), error("--method newmark --penalty 20")),
    ] {
        assert!((0.07..0.13).contains(&(1.0 - zhang_skeel / newmark)));
        assert!(rattle * 3.0 < zhang_skeel && newmark < rattle * 5.0);
    }
    let Err(lost) = positions("--method newmark-one-step --penalty 20 --step 0.1") else {
        panic!("it runs")
    };
    assert!(lost.to_string().contains("not finite any more"), "{lost}");
}

/// Tao, Owhadi 2016, sec. 4.2: distance between SHAKE and Zhang-Skeel, from
/// reference/constrained.py; RATTLE has SHAKE's positions.
#[test]
fn the_chain_of_ten_pendula() {
    let positions = |text: &str| -> Vec<f64> {
        let text = format!("--method {text} --step 0.05 --until 20 --samples 401");
        run(model("chain", &[]), options(&text)).unwrap().array("r").concat()
    };
    let (shake, penalised) =
        (positions("shake"), positions("zhang-skeel --penalty 20 --slow-manifold off"));
    for (k, expected) in [1.298631e-2, 1.690674e-2].into_iter().enumerate() {
        let along = |x: &[f64]| x.iter().skip(k).step_by(2).copied().collect::<Vec<f64>>();
        let gap = off_by(&along(&shake), &along(&penalised));
        // Rounding, amplified by 400 steps a thousand times at most.
        assert!((gap - expected).abs() < 1e-8, "{gap:e}");
    }
}

/// Tao, Owhadi 2016, sec. 4.5: a rotation matrix is one to 5e-2. The number is from the formulas
/// for 3×3 matrices, f = a − 2ω²b²h⁴(Raᵀa + aRᵀa + aaᵀR) with b = 2β, in 40 digits.
#[test]
fn a_penalised_rotation_matrix() {
    let drift = |until: f64| {
        let text = format!(
            "--method zhang-skeel --beta 0.2 --penalty 10 --slow-manifold off --step 0.1 --until {until}"
        );
        let found =
            run(model("magnetic-body", &[]), options(&format!("{text} --samples 2"))).unwrap();
        found.summary.drift.iter().find(|drift| drift.name == "orthogonal").unwrap().max
    };
    assert!((drift(10.0) - 0.052205017920037).abs() < 1e-12, "{}", drift(10.0));
    // Over a hundred times the length it grows by less than a fifth: a trend would make it a
    // hundred times as large.
    assert!(drift(1000.0) < 1.2 * drift(10.0));
}

#[test]
fn a_tolerance_finds_its_strength() {
    let text = "--method dop853 --rtol 1e-12 --atol 1e-12 --until 5 --samples 2";
    let (exact, _) = family("double-pendulum", 5.0, &[]);
    for tolerance in [1e-3, 1e-5] {
        let asked = RunOptions { penalty_tolerance: Some(tolerance), ..options(text) };
        let found = run(model("double-pendulum", &[]), asked).unwrap();
        let error = distance(&halves(&found).0, &halves(&exact).0);
        println!("{tolerance}: omega {:?}, error {error}", found.summary.penalty);
        // C is from ω₀ = 20 and 40, for which the next term is a few parts in a thousand.
        assert!((error / tolerance - 1.0).abs() < 0.02, "{error}");
    }
}

#[test]
fn the_default_strengths_are_those_of_the_step_and_the_motion() {
    let chosen = |name: &str, method: &str, h: f64| {
        let text = format!("--method {method} --step {h} --until 20 --samples 2");
        let asked = RunOptions { penalty: Some(PenaltyStrength::Auto), ..options(&text) };
        let simulation = prepare(model(name, &[]), asked).unwrap();
        assert!(simulation.warnings.is_empty(), "{:?}", simulation.warnings);
        simulation.penalty().unwrap().omega
    };
    // v = 1.198 along the constrained motion (scipy's DOP853 on the accelerations at a tolerance of
    // 1e-10).
    assert!((chosen("double-pendulum", "gauss4", 0.1) - 0.2 / (0.01 * 1.198)).abs() < 0.1);
    // 6/h is the frequency of the slowest spring, 2lω: here that of the rods of length 1, and √5.
    assert!((chosen("double-pendulum", "gauss4", 0.01) - 300.0).abs() < 1e-9);
    assert!((chosen("chain", "gauss4", 0.01) - 300.0 / 5f64.sqrt()).abs() < 1e-9);
    // |G|² of the double pendulum is at most 4 (1 + …): an explicit method stays below 2/(h |G|).
    assert!(chosen("double-pendulum", "stormer-verlet-a", 0.01) < 100.0);
}

#[test]
fn windowed_means_of_two_springs() {
    let springs = suite()["springs"].as_table().unwrap().clone();
    let until = 1.2;
    let text = format!("--method dop853 --rtol 1e-12 --atol 1e-12 --until {until} --samples 12001");
    let strength = 50.0;
    let off_manifold =
        run(model("two-springs", &[]), off(omega(options(&text), strength))).unwrap();
    let (t, q) = (off_manifold.times(), off_manifold.array("q1"));
    let window: Vec<f64> = t
        .iter()
        .zip(&q)
        .filter(|(t, _)| **t > 1.0 - 1e-9)
        .map(|(_, q)| strength * strength * q[0])
        .collect();
    let inner: f64 = window[1..window.len() - 1].iter().sum();
    let mean = (inner + 0.5 * (window[0] + window[window.len() - 1])) / (window.len() - 1) as f64;
    // The trapezoidal rule with steps of 1e-4: (ωΔt)²/12 of an oscillation of which the mean
    // retains a few per cent.
    assert!((mean - springs["mean"].as_float().unwrap()).abs() < 1e-6, "{mean}");
    assert!((mean - 0.45939).abs() < 1e-5);
    assert!((springs["exact"].as_float().unwrap() - 0.45284).abs() < 1e-5);
    // At a single time ω²g means nothing: it oscillates between 0 and twice the force.
    let largest = q.iter().map(|q| strength * strength * q[0]).fold(0.0, f64::max);
    assert!(largest > 1.5, "{largest}");
}

#[test]
fn multipliers_are_means_of_the_penalty() {
    let text = std::fs::read_to_string(repository().join("models/two-springs.holo")).unwrap();
    let text = format!("{text}\nobserve error = lambda.middle - cos(t)\n");
    let problem =
        || Problem::from_text("springs", &text, &BTreeMap::new(), &Settings::default()).unwrap();
    let mut errors = Vec::new();
    for strength in [50.0, 100.0, 200.0] {
        for method in ["dop853", "stormer-verlet-a --step 2e-3", "gauss4 --step 4e-3"] {
            let with =
                omega(options(&format!("--method {method} --until 3 --samples 31")), strength);
            let found = run(problem(), off(with)).unwrap();
            let error = found.array("error").iter().fold(0.0f64, |s, v| s.max(v[0].abs()));
            assert_eq!(found.array("lambda.middle").len(), 31);
            println!("{method}, omega {strength}: {error}");
            errors.push(error);
        }
    }
    // Off the slow manifold ω²g itself is wrong by 1. The window leaves 3/(4·5·…) of a per cent of
    // the fast part at any ω, and its bias is λ'' W²/50 with W = 8π/ω.
    assert!(errors.iter().all(|error| *error < 0.02), "{errors:?}");
    // On it only the bias remains.
    let slow = |strength: f64| {
        let with = omega(
            options("--method dop853 --rtol 1e-11 --atol 1e-11 --until 3 --samples 31"),
            strength,
        );
        run(problem(), with).unwrap().array("error").iter().fold(0.0f64, |s, v| s.max(v[0].abs()))
    };
    let errors = [50.0, 100.0, 200.0].map(slow);
    println!("{errors:?}");
    assert!(slopes(&errors).iter().all(|slope| (slope - 2.0).abs() < 0.1), "{errors:?}");
}

#[test]
fn multipliers_of_linearly_implicit_steps_are_those_of_rattle() {
    // The error of a window of the length W = 8π/(ω√(G M⁻¹Gᵀ)) is W²λ''/50. The chain's window,
    // with G M⁻¹Gᵀ from 20 on, is 0.1 long, and the forces change at frequencies up to 2: 1e-3. The
    // pendulum's, from 4 on, is 0.75 long, with frequencies of 2 at most: 5e-2; the steps' own
    // error is half of that, (2 · 0.1)²/2.
    let pendulum = (["r1", "r2"].as_slice(), ["lambda.upper", "lambda.lower"], vec![1.0, 2.0]);
    let chain = (["r"].as_slice(), ["lambda.anchor", "lambda.link"], vec![5.0; 10]);
    let cases = [
        ("double-pendulum", pendulum, 0.1, 16.7, 4.0, 0.07),
        ("chain", chain, 0.05, 57.0, 2.0, 1e-3),
    ];
    for (name, (places, multipliers, squares), h, strength, until, within) in cases {
        let text = format!("--until {until} --samples 5 --step");
        let exact =
            run(model(name, &[]), options(&format!("--method rattle {text} 0.001"))).unwrap();
        let of = |found: &Finished, names: &[&str], k: usize| -> Vec<f64> {
            names.iter().flat_map(|name| found.array(name)[k].clone()).collect()
        };
        // ω²g of rods from one mass to the next.
        let stretched = |q: Vec<f64>| -> Vec<f64> {
            let ends = [vec![0.0; 2], q].concat();
            let square =
                |i: usize| (ends[i] - ends[i + 2]).powi(2) + (ends[i + 1] - ends[i + 3]).powi(2);
            squares
                .iter()
                .enumerate()
                .map(|(k, l)| strength * strength * (square(2 * k) - l))
                .collect()
        };
        for method in ["zhang-skeel", "zhang-skeel-simplified", "pushforward-newmark", "newmark"] {
            let with = omega(options(&format!("--method {method} {text} {h}")), strength);
            let found = run(model(name, &[]), RunOptions { allow_unstable: true, ..with }).unwrap();
            let (mut off, mut in_q) = (0.0f64, f64::INFINITY);
            for k in 1..4 {
                let lambda = of(&exact, &multipliers, k);
                let size = lambda.iter().fold(0.0f64, |size, value| size.max(value.abs()));
                off = off.max(off_by(&of(&found, &multipliers, k), &lambda) / size);
                in_q = in_q.min(off_by(&stretched(of(&found, places, k)), &lambda) / size);
            }
            assert!(off < within, "{name}, {method}: {off}");
            // Newmark's own positions are those at which its forces are taken.
            assert!(
                method == "newmark" || in_q > 8.0 * off,
                "{name}, {method}: {off}, in q {in_q}"
            );
        }
    }
}

#[test]
fn multipliers_of_a_symmetric_matrix_are_those_of_rattle() {
    let path = repository().join("suite/models/matrix-rigid-body.holo");
    let text = "--step 0.002 --until 1 --samples 6";
    let rattle =
        run(load(&path, &[]).unwrap(), options(&format!("--method rattle {text}"))).unwrap();
    let with = omega(options(&format!("--method stormer-verlet-a {text}")), 100.0);
    let penalised = run(load(&path, &[]).unwrap(), with).unwrap();
    let (a, b) = (rattle.array("lambda.orthogonal"), penalised.array("lambda.orthogonal"));
    // Rattle's multipliers at the ends are of first order.
    for (a, b) in a.iter().zip(&b).skip(1).take(4) {
        assert!(off_by(a, b) < 2e-2, "{a:?} {b:?}");
        assert_eq!(b[1], b[3]);
    }
}

#[test]
fn redundant_constraints_are_no_obstacle() {
    let problem = || model("braced-square", &[]);
    // The centre falls on a parabola, the square turns by t: |p| of every corner is known.
    let until = 3.0;
    let exact = |t: f64| -> Vec<f64> {
        let corners = [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)];
        let centre = (0.5 + t, 0.5 + 2.0 * t - t * t / 2.0);
        let turn = |(x, y): (f64, f64)| {
            [centre.0 + x * t.cos() - y * t.sin(), centre.1 + x * t.sin() + y * t.cos()]
        };
        corners.into_iter().flat_map(turn).collect()
    };
    let error = |strength: f64| {
        let text = format!("--method dop853 --rtol 1e-12 --atol 1e-12 --until {until} --samples 2");
        let found = run(problem(), omega(options(&text), strength)).unwrap();
        assert!(found.summary.drift.iter().any(|d| d.name == "J" && d.max < 1e-10));
        distance(&halves(&found).0, &exact(until))
    };
    let errors = [25.0, 50.0, 100.0].map(error);
    println!("{errors:?}");
    assert!(slopes(&errors).iter().all(|slope| (slope - 2.0).abs() < 0.02), "{errors:?}");
}

#[test]
fn a_matrix_counts_all_of_its_entries() {
    let path = repository().join("suite/models/matrix-rigid-body.holo");
    let found = run(
        load(&path, &[]).unwrap(),
        off(omega(options("--method stormer-verlet-a --step 0.01 --until 1 --samples 5"), 10.0)),
    )
    .unwrap();
    let (q, own, all) = (found.array("Q"), found.array("H"), found.array("H_penalised"));
    let mut seen = 0.0f64;
    for ((q, own), all) in q.iter().zip(&own).zip(&all) {
        let entry = |i: usize, j: usize| {
            (0..3).map(|k| q[3 * k + i] * q[3 * k + j]).sum::<f64>() - f64::from(i == j)
        };
        let squares: f64 = (0..9).map(|k| entry(k / 3, k % 3).powi(2)).sum();
        seen = seen.max(squares);
        assert!((all[0] - own[0] - 50.0 * squares).abs() < 1e-12, "{squares}");
    }
    assert!(seen > 1e-6, "{seen}");
}

#[test]
fn drifts_are_those_of_the_model_and_of_the_penalised_hamiltonian() {
    let found = run(
        model("double-pendulum", &[]),
        omega(options("--method stormer-verlet-a --step 0.01 --until 2 --samples 5"), 20.0),
    )
    .unwrap();
    let json = json!(found.summary);
    let keys: Vec<&String> = json["drift"].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["hamiltonian", "penalised_hamiltonian", "constraints", "hidden", "integrals"]
    );
    assert_eq!(json["penalty"]["omega"], 20.0);
    assert_eq!(json["penalty"]["slow_manifold"], true);
    let drift = |key: &str| json["drift"][key]["max"].as_f64().unwrap();
    assert!(drift("penalised_hamiltonian") < 0.02 * drift("hamiltonian"));
    for drift in json["drift"]["constraints"].as_object().unwrap().values() {
        assert!(
            drift["max"].as_f64() > Some(1e-5) && drift["final"].as_f64() > Some(1e-5),
            "{drift}"
        );
    }
    let residual = json["drift"]["constraints"]["upper"]["final"].as_f64().unwrap();
    let r1 = found.array("r1").pop().unwrap();
    assert!((residual - (r1[0] * r1[0] + r1[1] * r1[1] - 1.0).abs()).abs() < 1e-15);
}

#[test]
fn a_correction_holds_what_the_penalised_motion_keeps() {
    let found = run(
        model("ring", &[]),
        omega(options("--method corrected:rk4 --step 0.005 --until 2 --samples 5"), 30.0),
    )
    .unwrap();
    for drift in &found.summary.drift {
        use holonome::model::treatment::InvariantKind::*;
        match drift.kind {
            Penalised | Integral => assert!(drift.max < 1e-12, "{}: {}", drift.name, drift.max),
            _ => assert!(drift.max > 1e-6, "{}: {}", drift.name, drift.max),
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_or_warned_of() {
    let double = || model("double-pendulum", &[]);
    let gauss = "--method gauss4 --step 0.1 --until 10";
    let both = RunOptions { penalty_tolerance: Some(1e-3), ..omega(options(gauss), 10.0) };
    assert!(refusal(double(), both).contains("exclude each other"));
    let auto = |text: &str| RunOptions { penalty: Some(PenaltyStrength::Auto), ..options(text) };
    assert!(refusal(double(), auto("--method dop853")).contains("add step"));
    for bad in [0.0, -1.0, f64::NAN, 1e-300, 1e300] {
        assert!(refusal(double(), omega(options(gauss), bad)).contains("positive and finite"));
    }
    for bad in [1e-20, 1e3, 1e300] {
        let asked =
            RunOptions { penalty_tolerance: Some(bad), ..options("--method dop853 --until 1") };
        assert!(refusal(double(), asked).contains("ask for an error from"));
    }
    // Springs so weak that the start moves to where the logarithm is not defined.
    let text = "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 3)\nhamiltonian dot(p, p)/2 - log(1.2 - q.x)/100\n\
                constraint rod : dot(q, q) = 1\n";
    let wall = Problem::from_text("wall", text, &BTreeMap::new(), &Settings::default()).unwrap();
    let weak = refusal(wall, omega(options("--method dop853"), 1.0));
    assert!(weak.contains("penalty 1: H is NaN") && weak.contains("larger omega"), "{weak}");
    let hopf = load(&repository().join("suite/models/hopf-oscillator.holo"), &[]).unwrap();
    assert!(refusal(hopf, omega(options(gauss), 10.0)).contains("holds momenta"));
    // ωh²v = 0.598.
    let stiff = refusal(double(), omega(options(gauss), 50.0));
    assert!(stiff.contains("omega h^2 v is 0.59") && stiff.contains("omega below 10.0"), "{stiff}");
    let allowed = RunOptions { allow_unstable: true, ..omega(options(gauss), 50.0) };
    assert!(prepare(double(), allowed).unwrap().warnings[0].contains("0.59"));

    let warnings =
        |problem: Problem, options: RunOptions| prepare(problem, options).unwrap().warnings;
    assert!(warnings(double(), omega(options(gauss), 12.0))[0].contains("stiff for this step"));
    assert!(warnings(double(), omega(options(gauss), 9.0)).is_empty());
    let says = |problem: Problem, options: RunOptions, words: &str| {
        let found = warnings(problem, options);
        assert!(found.iter().any(|w| w.contains("no effect") && w.contains(words)), "{found:?}");
    };
    says(
        double(),
        omega(options("--method rattle --step 0.1"), 9.0),
        "holds the constraints itself",
    );
    says(
        model("magnetic-body", &[]),
        omega(options("--method cayley-symmetric --step 0.1"), 9.0),
        "holds the constraints",
    );
    says(model("kepler", &[]), omega(options("--method dop853"), 9.0), "no constraints");
    says(model("rigid-body", &[]), omega(options("--method dop853"), 9.0), "vector field");
    says(double(), off(options("--method dop853")), "there is no penalty");
}

#[test]
fn a_trajectory_of_an_ensemble_is_a_run_of_its_own() {
    let path = repository().join("models/double-pendulum.holo");
    let with = || omega(options("--method stormer-verlet-a --step 0.01 --until 1"), 20.0);
    let vary = vec![
        ("g".to_string(), "1 + 0.5*i".to_string()),
        ("p2".to_string(), "(0.1*i, 0.1*i)".to_string()),
    ];
    let folder =
        std::env::temp_dir().join(format!("holonome-penalty-sweep-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let sweep = SweepOptions { trajectories: 3, vary, ..SweepOptions::default() };
    let with_folder = RunOptions { out: Some(folder.clone()), ..with() };
    let mut ensemble = Sweep::load(&path, &Settings::default(), with_folder, sweep).unwrap();
    ensemble.run(&mut |_| Control::Continue).unwrap();
    let stored = holonome::store::StoredRun::open(&folder).unwrap();
    let (r2, lambda) = (stored.read("r2").unwrap(), stored.read("lambda.lower").unwrap());
    for i in 0..3 {
        let p2 = format!("(0.1*{i}, 0.1*{i})");
        let alone = load(&path, &[("g", &format!("1 + 0.5*{i}")), ("p2", &p2)]).unwrap();
        let alone = run(alone, RunOptions { samples: Some(2), ..with() }).unwrap();
        let width = r2.len() / 3;
        let both = [(&r2, "r2", 0), (&lambda, "lambda.lower", 0)];
        for (all, name, _) in both {
            let width = if name == "r2" { width } else { all.len() / 3 };
            let own: Vec<f64> = alone.array(name).concat();
            assert!(off_by(&all[i * width..(i + 1) * width], &own) < 1e-11, "{name} of {i}");
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn a_large_model_runs_row_by_row() -> Result<(), Error> {
    // Separate rods, all alike: the force in one does not depend on their number.
    let pieces = |n: usize| {
        let text = format!(
            "size n = {n}\ncoordinate a[i in 1..n] : R^2 = (0, 0)\ncoordinate b[i in 1..n] : R^2 = (1, 0)\n\
             momentum p of a = (0, 1)\nmomentum s of b = (0, -1)\n\
             hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + dot(s[i], s[i])/4 + a[i].y + b[i].y)\n\
             constraint rod[i in 1..n] : dot(a[i] - b[i], a[i] - b[i]) = 1\n\
             observe pull = lambda.rod[n]\n"
        );
        Problem::from_text("rods", &text, &BTreeMap::new(), &Settings::default())
    };
    let with = || {
        omega(options("--method dop853 --rtol 1e-10 --atol 1e-10 --until 0.5 --samples 3"), 40.0)
    };
    let simulation = prepare(pieces(20_000)?, with())?;
    assert!(simulation.problem.examined.rows.is_some());
    let (few, many) = (run(pieces(1)?, with())?, run(pieces(20_000)?, with())?);
    let (a, b) = (few.array("b"), many.array("b"));
    for (a, b) in a.iter().zip(&b) {
        assert!(off_by(a, &b[b.len() - 2..]) < 1e-8, "{a:?}");
    }
    assert!(off_by(&few.array("pull").concat(), &many.array("pull").concat()) < 1e-6);
    // Steps with places of their force.
    let with = || omega(options("--method zhang-skeel --step 0.05 --until 0.5 --samples 3"), 40.0);
    let (few, many) = (run(pieces(1)?, with())?, run(pieces(20_000)?, with())?);
    // Differences in ω²g: some numbers of size 1 rounded in each of 10 steps.
    let (a, b) = (few.array("pull").concat(), many.array("pull").concat());
    assert!(off_by(&a, &b) < 1e-10, "{a:?} {b:?}");
    // The modified energy of 20 000 rods is 20 000 times that of one, except for the rounding of a
    // sum by halves.
    let energy = |found: &Finished| {
        let monitored = found
            .summary
            .drift
            .iter()
            .find(|drift| drift.kind == InvariantKind::ModifiedEnergy)
            .unwrap();
        (monitored.initial.as_ref().and_then(|initial| initial.number()).unwrap(), monitored.max)
    };
    let ((one, one_max), (all, all_max)) = (energy(&few), energy(&many));
    assert!(
        (all / 20_000.0 - one).abs() < 1e-13 && (all_max / 20_000.0 - one_max).abs() < 1e-13,
        "{one} {all}"
    );
    assert!(one_max > 1e-9, "{one_max}");
    Ok(())
}

/// The pilot run, which finds how fast rods turn, follows the constrained motion: springs of 3/h
/// would give way here.
#[test]
fn what_a_pilot_run_starts_from_is_not_the_runs() {
    let ring = model("ring", &[("n", "3000")]);
    assert!(ring.examined.rows.is_some());
    let with = |strength| RunOptions {
        allow_unstable: true,
        ..omega(options("--method velocity-verlet --step 2e-4 --until 2e-4"), strength)
    };
    let pilot = refusal(ring.clone(), with(3.0 / 2e-4));
    assert!(pilot.contains("give way"), "{pilot}");
    assert!(prepare(ring, with(1e9)).is_ok());
}

/// Two rods of unit length and √2 in units of mass 2⁻¹⁰, length 2⁻³ and time 2⁻²: the same bits. ω
/// is the root of an energy, so an odd power of two of the mass would round it otherwise.
#[test]
fn units_do_not_change_a_penalty() {
    let end = |m: f64, l: f64, time: f64, method: &str| {
        let text = format!(
            "parameter M = {m}\nparameter L = {l}\nparameter g = {}\n\
             coordinate q[i in 1..2] : R^2 = if(i == 1, (0, -L), (L, -2*L))\nmomentum p of q\n\
             hamiltonian sum(i in 1..2 : dot(p[i], p[i])/(2*M) + M*g*q[i].y)\n\
             constraint a : dot(q[1], q[1]) = L^2\nconstraint b : dot(q[2] - q[1], q[2] - q[1]) = 2*L^2",
            l / (time * time)
        );
        let problem =
            Problem::from_text("double", &text, &BTreeMap::new(), &Settings::default()).unwrap();
        let (until, step) = (time, 0.015625 * time);
        let asked = options(&format!("--until {until} --method {method} --step {step}"));
        let run =
            common::run(problem, RunOptions { penalty: Some(PenaltyStrength::Auto), ..asked })
                .unwrap();
        run.state()[..4].iter().map(|x| x / l).collect::<Vec<f64>>()
    };
    for method in ["gauss4", "stormer-verlet-a", "zhang-skeel"] {
        let plain = end(1.0, 1.0, 1.0, method);
        for (m, l, time) in
            [(1024.0, 1.0, 1.0), (1.0, 8.0, 1.0), (1.0, 1.0, 4.0), (1024.0, 8.0, 4.0)]
        {
            assert_eq!(plain, end(m, l, time, method), "{method} {m} {l} {time}");
        }
    }
}
