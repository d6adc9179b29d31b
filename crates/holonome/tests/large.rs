//! Large models, which are run row by row: what holds for small ones holds for them.

mod common;

use common::{Finished, options};
use holonome::report::Report;
use holonome::{Problem, Settings};
use std::collections::BTreeMap;

/// A ring of unequal masses whose momentum is an integral.
const RING: &str = "size n = 20000\nparameter m[i in 1..n] = 1 + 0.5*sin(i)\ncoordinate q[i in 1..n] = 0.3*sin(i)\n\
    momentum p of q = 0.2*cos(2*i)\nlet next(i) = if(i == n, q[1], q[i + 1])\n\
    hamiltonian sum(i in 1..n : p[i]^2/(2*m[i])) + sum(i in 1..n : 1 - cos(next(i) - q[i]))\n\
    integral P = sum(i in 1..n : p[i])\nobserve work = sum(i in 1..n : q[i]*p[i])\n";

fn load(text: &str) -> Problem {
    Problem::from_text("large", text, &BTreeMap::new(), &Settings::default()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_treatment_but_feedback_runs_by_rows() {
    let run = |text: &str| {
        let problem = load(RING);
        assert!(problem.examined.rows.is_some() && problem.examined.field.is_none());
        assert_eq!(problem.warnings().len(), 0);
        common::run(problem, options(&format!("{text} --until 4 --samples 3"))).unwrap()
    };
    let drift = |finished: &Finished| -> Vec<f64> {
        let list = &finished.summary.drift;
        assert_eq!(list.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["H", "P"]);
        list.iter().map(|d| d.max).collect()
    };
    // H is about a thousand, so this is its round-off.
    let round_off = 1e-10;
    let plain = run("--method plain:heun --step 0.1");
    let [energy, momentum] = drift(&plain)[..] else { panic!("two invariants") };
    assert!(energy > 0.1, "{energy:e}");
    assert!(momentum < round_off, "a Runge-Kutta scheme keeps linear invariants: {momentum:e}");
    let corrected = drift(&run("--method corrected:heun --step 0.1"));
    // The correction of H spills over to P in proportion to its regularisation, 1e-8.
    assert!(corrected[0] < 1e-4 * energy && corrected[1] < 1e-8, "{corrected:?} {energy:e}");
    let projection = run("--method projection:dopri5");
    assert!(drift(&projection).iter().all(|&d| d < round_off), "{:?}", drift(&projection));
    let symmetric = drift(&run("--method symmetric-projection:heun --step 0.1"));
    assert!(symmetric.iter().all(|&d| d < round_off), "{symmetric:?}");
    // What is recorded by rows is what the states say.
    let (q, p) = (plain.array("q"), plain.array("p"));
    for (k, (work, total)) in plain.array("work").iter().zip(plain.array("P")).enumerate() {
        let [expected, momentum] = [q[k].iter().zip(&p[k]).map(|(q, p)| q * p).sum::<f64>(), p[k].iter().sum()];
        assert!((work[0] - expected).abs() < round_off && (total[0] - momentum).abs() < round_off, "{k}");
    }
}

#[test]
fn feedback_of_a_large_model_names_a_remedy() {
    // 10⁵ masses are too many for formulas of the feedback term.
    let problem = load(&RING.replace("20000", "100000"));
    let report = Report::new(&problem).to_json();
    assert_eq!(report["rows"]["rows"], 200_000, "{report}");
    assert_eq!(report["invariants"], serde_json::json!(["H", "P"]));
    assert_eq!(report["degrees_of_freedom"], 100_000);
    let Err(refused) = common::run(problem, options("--method feedback:rk4 --step 0.01 --until 1")) else {
        panic!("refused")
    };
    let message = refused.to_string();
    assert!(message.contains("corrected:rk4") && message.contains("out"), "{message}");
    // Those of fewer operations are written out for it.
    let small = load(&RING.replace("20000", "12000"));
    assert!(small.examined.rows.is_some());
    let gains = "--method feedback:rk4 --step 0.01 --until 0.02 --samples 2 --gain H=1e-6,P=1e-6";
    assert_eq!(common::run(small, options(gains)).unwrap().summary.steps, 2);
}

#[test]
fn an_integral_that_is_none_is_named() {
    let problem = load(&RING.replace("observe work", "integral work"));
    assert!(problem.examined.rows.is_some());
    assert_eq!(problem.examined.varying, ["work"]);
}

#[test]
fn a_million_masses_take_memory_in_proportion() {
    let problem = common::model("fpu", &[("n", "1000000")]);
    assert_eq!(problem.model.dimension(), 2_000_000);
    let finished =
        common::run(problem, options("--method corrected:euler --step 0.01 --until 0.03 --samples 2")).unwrap();
    assert_eq!(finished.summary.steps, 3);
    assert!(finished.summary.drift[0].max < 1e-17, "{:e}", finished.summary.drift[0].max);
    // Two kilobytes a mass, other tests of this file included.
    if let Ok(status) = std::fs::read_to_string("/proc/self/status")
        && let Some(line) = status.lines().find(|line| line.starts_with("VmHWM"))
    {
        let kilobytes: usize = line.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
        assert!(kilobytes < 2_000_000, "{line}");
    }
}
