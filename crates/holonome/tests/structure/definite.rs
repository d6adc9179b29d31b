//! The smallest eigenvalue of I + βh²M⁻¹V_qq, which the linearly implicit methods monitor along a
//! run: β = 0.4 here.

use crate::common::{model, run};
use holonome::{Error, PenaltyStrength, Problem, RunOptions, Settings, StepSize, prepare};
use serde_json::json;
use std::collections::BTreeMap;

/// Accuracy of the computed eigenvalue, relative to max(1, |λ|).
const FOUND: f64 = 1e-4;

const METHODS: [&str; 3] = ["zhang-skeel", "zhang-skeel-simplified", "zhang-skeel-stiff"];

fn problem(text: &str) -> Problem {
    let settings = Settings { stiff: Some("bend".into()), ..Settings::default() };
    Problem::from_text("bend", text, &BTreeMap::new(), &settings).unwrap()
}

fn options(method: &str, step: f64, until: f64) -> RunOptions {
    RunOptions {
        method: method.parse().unwrap(),
        step: StepSize::Fixed(step),
        until,
        samples: Some(2),
        ..RunOptions::default()
    }
}

/// Time at which the run of a problem ended because of its matrix, and the eigenvalue.
fn ended(problem: Problem, options: RunOptions) -> (f64, f64) {
    let error = match run(problem, options) {
        Ok(_) => panic!("it runs to its end"),
        Err(error) => error,
    };
    assert_eq!((error.kind(), error.exit_code()), ("indefinite-matrix", 1), "{error}");
    assert!(error.to_string().contains("a shorter step, a smaller penalty"), "{error}");
    let json = json!(error.report());
    let number = |key: &str| json["error"][key].as_f64().unwrap();
    (number("t"), number("eigenvalue"))
}

/// V = (q² − 1)²/4, V_qq = 3q² − 1.
fn double_well() -> Problem {
    problem(
        "coordinate q : R = 0.1\nmomentum p of q = 0\nlet bend = (q^2 - 1)^2/4\nhamiltonian p^2/2 + bend\n",
    )
}

#[test]
fn a_step_that_is_too_long_for_a_double_well_ends_the_run() {
    for method in METHODS {
        for step in [1.2, 1.5, 1.7, 3.0] {
            let (t, eigenvalue) = ended(double_well(), options(method, step, 30.0 * step));
            let expected = 1.0 - 0.4 * step * step * 0.97;
            assert_eq!(t, 0.0);
            assert!(
                (eigenvalue - expected).abs() <= FOUND * expected.abs().max(1.0),
                "{eigenvalue} {expected}"
            );
        }
    }
}

#[test]
fn a_small_eigenvalue_is_told_at_the_end() {
    for method in METHODS {
        for (step, count) in [(1.0, 100), (0.6, 200), (0.4, 200)] {
            let until = f64::from(count) * step;
            let told = run(double_well(), options(method, step, until))
                .unwrap()
                .summary
                .warnings
                .join("\n");
            // The same run in single steps, for its nearest approach to the top of the hill.
            let simulation = prepare(double_well(), options(method, step, until)).unwrap();
            let mut x = vec![0.1, 0.0];
            let mut nearest = f64::INFINITY;
            for _ in 0..count {
                x = simulation.steps((0.0, step), 1, &x).unwrap();
                nearest = nearest.min(x[0].abs());
            }
            let expected = 1.0 + 0.4 * step * step * (3.0 * nearest * nearest - 1.0);
            match expected < 0.9 {
                true => {
                    assert!(told.contains(&format!("V_qq was {expected:.2}")), "{expected}: {told}")
                }
                false => assert!(!told.contains("V_qq"), "{expected}: {told}"),
            }
        }
    }
}

#[test]
fn a_run_that_leaves_all_bounds_says_what_was_monitored() {
    // The steps are too long near the hill to keep the modified energy, until they reach |q| > 1.9:
    // there h²V_eff'' > 4, the limit of velocity Verlet.
    let error = run(double_well(), options("zhang-skeel", 1.1, 1100.0)).err().unwrap();
    assert_eq!((error.kind(), error.exit_code()), ("non-finite", 1), "{error}");
    let told = error.to_string();
    assert!(
        told.contains("modified energy")
            && told.contains("V_qq was 0.52")
            && told.contains("shorter step"),
        "{told}"
    );
    let json = json!(error.report());
    let number = |key: &str| json["error"][key].as_f64().unwrap();
    let (t, energy, eigenvalue) = (number("t"), number("modified_energy"), number("eigenvalue"));
    // The same run in single steps, up to the last but one.
    let simulation = prepare(double_well(), options("zhang-skeel", 1.1, 1100.0)).unwrap();
    let (mut x, mut least) = (vec![0.1f64, 0.0], f64::INFINITY);
    for _ in 0..(t / 1.1) as u64 - 2 {
        least = least.min(1.0 + 0.4 * 1.21 * (3.0 * x[0] * x[0] - 1.0));
        x = simulation.steps((0.0, 1.1), 1, &x).unwrap();
    }
    assert!((eigenvalue - least).abs() <= FOUND, "{eigenvalue} {least}");
    // The energy is at least ½p² + V_eff there, less 0.24 at the start; and V_eff > −0.1.
    assert!(energy > 0.5 * x[1] * x[1] - 1.0 && x[0].abs() > 1.9, "{energy} {x:?}");
    // The remedy.
    assert_eq!(run(double_well(), options("zhang-skeel", 0.55, 1100.0)).unwrap().summary.t, 1100.0);
}

#[test]
fn loops_of_machine_code_end_where_single_steps_do() {
    // V_qq = 1 − 3 exp(−((t − 5000)/10)²) in the first direction is below −1.25, so that 1 + 0.4
    // V_qq is below 0.5, from t = 5000 − 10 √(ln(4/3)) = 4994.64 on: the force at 4995 is the first
    // there, in the step from 4994.
    let bump = "exp(-((t - 5000)/10)^2)";
    for potential in [
        format!("(1 - 3*{bump})*q.x^2/2"),
        format!("(1 - 3*{bump})*q.x^2/2 + q.y^2/2 + 0.01*q.x*q.y + q.z^2"),
    ] {
        let text = format!(
            "coordinate q : R^3 = (0.1, 0, 0.1)\nmomentum p of q = (0, 0, 0)\nlet bend = {potential}\nhamiltonian dot(p, p)/2 + bend\n"
        );
        for method in METHODS {
            let (t, eigenvalue) = ended(problem(&text), options(method, 1.0, 6000.0));
            assert_eq!(t, 4994.0, "{method}, {potential}");
            let expected = 1.0 + 0.4 * (1.0 - 3.0 * (-0.25f64).exp());
            // The coupling shifts it by 0.004²/(1.4 − 0.465) = 2e-5 at most.
            assert!(
                (eigenvalue - expected).abs() < FOUND + 2e-5,
                "{method}: {eigenvalue} {expected}"
            );
        }
    }
}

#[test]
fn large_models_end_where_their_matrix_does() {
    // As above, at t = 200 and in one of 3000 directions, without and with couplings to others.
    for coupling in ["0", "0.005"] {
        let text = format!(
            "size n = 3000\ncoordinate q[i in 1..n] = 0.1\nmomentum p[i] of q = 0\n\
             let bend = sum(i in 1..n : if(i == 7, 1 - 3*exp(-((t - 200)/10)^2), 1)*q[i]^2/2) + sum(i in 2..n : {coupling}*q[i]*q[i-1])\n\
             hamiltonian sum(i in 1..n : p[i]^2/2) + bend\n"
        );
        for method in METHODS {
            let (t, eigenvalue) = ended(problem(&text), options(method, 1.0, 400.0));
            let expected = 1.0 + 0.4 * (1.0 - 3.0 * (-0.25f64).exp());
            assert_eq!(t, 194.0, "{method}, {coupling}");
            assert!(
                (eigenvalue - expected).abs() < 2.0 * FOUND,
                "{method}: {eigenvalue} {expected}"
            );
        }
    }
}

#[test]
fn masses_are_felt() {
    // I + βh²V_qq M⁻¹ with V_qq = diag(−k, 0): 1 and 1 − βh²k (M⁻¹)₁₁, independent of the rest of
    // M⁻¹.
    for (kinetic, inverse) in
        [("p.x^2 + p.y^2/2", 2.0), ("p.x^2 + p.x*p.y + p.y^2", 2.0), ("p.x^2/2 + p.y^2", 1.0)]
    {
        let text = format!(
            "coordinate q : R^2 = (0.1, 0)\nmomentum p of q = (0, 0)\nlet bend = -q.x^2/2\nhamiltonian {kinetic} + bend\n"
        );
        for method in METHODS {
            let (t, eigenvalue) = ended(problem(&text), options(method, 1.5, 15.0));
            let expected = 1.0 - 0.4 * 2.25 * inverse;
            assert_eq!(t, 0.0);
            assert!(
                (eigenvalue - expected).abs() <= FOUND,
                "{kinetic}, {method}: {eigenvalue} {expected}"
            );
        }
    }
}

/// Chains of masses on a hill that bends downwards more and more: eigenvalues below the limits are
/// found and told, an even number of them, too.
#[test]
fn large_models_are_monitored_like_small_ones() {
    let text = |n: usize, kinetic: &str, bend: &str| {
        format!(
            "size n = {n}\ncoordinate q[i in 1..n] = 0.01*sin(i)\nmomentum p[i] of q = 0\n\
             let bend = sum(i in 1..n : if(i <= 2, -({bend}), 1)*q[i]^2/2) + sum(i in 2..n : 0.01*(q[i] - q[i-1])^2)\n\
             hamiltonian sum(i in 1..n : {kinetic}) + bend\n"
        )
    };
    for method in METHODS {
        // 1 + 0.4 h² (0.01 − bend), coupled by 0.02 to the others, or a little less or more.
        for (kinetic, inverse) in [("p[i]^2/2", 1.0), ("p[i]^2", 2.0)] {
            let found = |n: usize, bend: f64| -> Result<Option<String>, String> {
                let text = text(n, kinetic, &bend.to_string());
                // Without the folder.
                let told = |e: Error| {
                    format!("{:.3}", json!(e.report())["error"]["eigenvalue"].as_f64().unwrap())
                };
                let ran = run(problem(&text), options(method, 1.0, 3.0)).map_err(told)?;
                let mut warnings = ran.summary.warnings.iter();
                Ok(warnings.find(|warning| warning.contains("V_qq was")).cloned())
            };
            for bend in [0.1, 0.5, 1.0, 1.5] {
                let bend = bend / inverse;
                let small = found(5, bend);
                for n in [3000, 30000] {
                    let large = found(n, bend);
                    // Members far from the hill matter by less than the accuracy.
                    assert_eq!(small, large, "{method} {bend} {n}");
                }
                assert_eq!(small.is_err(), bend * inverse > 1.4, "{small:?}");
                let told = small.is_ok_and(|told| told.is_some());
                assert_eq!(told, (0.4..1.4).contains(&(bend * inverse)));
            }
        }
    }
}

#[test]
fn the_braced_square_is_told_why_it_fails() {
    // Springs whose frequency is more than 6/h, twice as stiff as the default.
    let omega = PenaltyStrength::Omega(0.2 / (0.05 * 0.05 * 2f64.sqrt()));
    let penalised = RunOptions { penalty: Some(omega), ..options("zhang-skeel", 0.05, 10.0) };
    let (t, eigenvalue) = ended(model("braced-square", &[]), penalised.clone());
    // Before values become infinite, at t = 2.
    assert!(t < 2.0 && eigenvalue < 0.5, "{t} {eigenvalue}");
    // The remedy: a shorter step with the same penalty.
    let shorter = RunOptions { step: StepSize::Fixed(0.0125), penalty: Some(omega), ..penalised };
    let summary = run(model("braced-square", &[]), shorter)
        .map_err(|error: Error| error.to_string())
        .unwrap()
        .summary
        .clone();
    assert!(summary.drift.iter().all(|drift| drift.max < 0.1), "{:?}", summary.drift);
}
