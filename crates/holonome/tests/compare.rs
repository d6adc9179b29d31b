//! Comparisons: accuracy of the reference, orders and budgets of the methods, and reports of
//! limits.

mod common;

use common::{distance, model, repository};
use holonome::compare::{CompareOptions, Comparison, MeasuredRun, Row, Size, USEFUL, compare};
use holonome::model::treatment::InvariantKind;
use holonome::report::ComparisonFolder;
use holonome::{Control, PenaltyStrength, Problem, RunOptions, Settings};
use serde_json::json;
use std::collections::BTreeMap;

fn options(methods: &[&str], steps: &[f64], until: f64) -> CompareOptions {
    let methods = methods.iter().map(|name| name.parse().unwrap()).collect();
    let run = RunOptions { until, ..RunOptions::default() };
    CompareOptions { methods, steps: steps.to_vec(), run, ..CompareOptions::default() }
}

#[track_caller]
fn run(problem: &Problem, options: &CompareOptions) -> Comparison {
    compare(problem, options, &|_| Control::Continue).unwrap().expect("nobody stops it")
}

fn text_model(text: &str) -> Problem {
    Problem::from_text("inline", text, &BTreeMap::new(), &Settings::default()).unwrap()
}

#[track_caller]
fn measured(row: &Row) -> &MeasuredRun {
    row.outcome.as_ref().unwrap_or_else(|failed| panic!("{}: {}", row.method, failed.message))
}

/// One period of the planar pendulum from rest at the height of its pivot, 4 K(1/2).
const PERIOD: f64 = 7.416_298_709_205_487_5; // 7.41629870920548767, rounded

#[test]
fn the_reference_is_as_good_as_it_says() {
    // After a period the planar pendulum is back at its start. T is rounded by at most half an ulp
    // of 7.4, 4.4e-16, which moves the state by that times its velocity, which is 1 there.
    let planar =
        run(&model("planar-pendulum", &[]), &options(&["rk4"], &[PERIOD / 1000.0], PERIOD));
    let (reference, end) = (&planar.reference, planar.reference.at(PERIOD).unwrap());
    let claimed = reference.error.unwrap();
    let error = distance(end, &[1.0, 0.0, 0.0, 0.0]);
    assert!(error <= claimed + 4.4e-16, "{error:e}, claimed are {claimed:e}");
    assert!(claimed < 1e-12 && reference.good_until == Some(PERIOD));
    // The spherical pendulum, from an independent computation with 12 decimals: rounding is half a
    // unit in each of six components, 0.5e-12·√6 in all.
    let spherical = run(&model("spherical-pendulum", &[]), &options(&["rk4"], &[0.1], 100.0));
    let printed = [
        0.289982352306,
        0.546233983572,
        -0.785836287366,
        1.788679864730,
        -0.079185067542,
        0.605001356461,
    ];
    let error = distance(spherical.reference.at(100.0).unwrap(), &printed);
    let claimed = spherical.reference.error.unwrap();
    assert!(error <= claimed + 1.3e-12, "{error:e}, claimed are {claimed:e}");
    assert!(claimed < 1e-11, "{claimed:e}");
}

/// Methods that have multipliers, and the reference, which has none.
#[test]
fn observed_multipliers_are_no_obstacle() {
    let path = repository().join("models/double-pendulum.holo");
    let text = std::fs::read_to_string(path).unwrap() + "\nobserve tension = lambda.lower\n";
    let mut options = options(&["rattle", "shake", "zhang-skeel", "gauss4"], &[0.02], 1.0);
    options.run.penalty = Some(PenaltyStrength::Omega(20.0));
    let comparison = run(&text_model(&text), &options);
    assert!(comparison.rows.iter().all(|row| measured(row).errors.is_some()));
}

/// Redundant constraints have a reference. Penalised runs of singular ones can be compared, except
/// for their errors.
#[test]
fn singular_constraints_have_no_reference() {
    let mut options = options(&["rattle", "zhang-skeel"], &[0.02], 1.0);
    options.run.penalty = Some(PenaltyStrength::Omega(20.0));
    let comparison = run(&model("braced-square", &[]), &options);
    assert!(comparison.rows.iter().all(|row| measured(row).errors.is_some()));
    let singular = "coordinate q : R^2 = (1, 0)\nmomentum p of q\nhamiltonian dot(p, p)/2 + q.y/100\n\
        constraint a : dot(q, q) = 1\nconstraint b : q.x = 1\n";
    options.methods = ["zhang-skeel", "gauss4"].iter().map(|name| name.parse().unwrap()).collect();
    let comparison = run(&text_model(singular), &options);
    assert!(comparison.reference.good_until.is_none());
    assert!(comparison.reference.reason.as_ref().unwrap().contains("singular"));
    assert!(
        comparison
            .rows
            .iter()
            .all(|row| measured(row).errors.is_none() && measured(row).steps >= 50)
    );
}

/// A rotation matrix, held by its own methods and by a penalty.
#[test]
fn bodies_beside_their_penalty() {
    let mut options = options(&["cayley-symmetric", "zhang-skeel"], &[0.05], 1.0);
    options.run.penalty = Some(PenaltyStrength::Omega(10.0));
    let comparison = run(&model("magnetic-body", &[]), &options);
    assert_eq!(
        comparison.rows.iter().map(|row| row.penalty.map(|p| p.omega)).collect::<Vec<_>>(),
        [None, Some(10.0), Some(10.0)]
    );
    let drift = |k: usize| {
        let drifts = &measured(&comparison.rows[k]).drift;
        drifts.iter().find(|drift| drift.name == "orthogonal").unwrap().max
    };
    // Rounding; and springs of this ω, which yield by about v²/ω² = 1e-2.
    assert!(drift(0) < 1e-14 && drift(1) > 1e-3, "{:e} {:e}", drift(0), drift(1));
}

#[test]
fn orders_are_those_of_the_methods() {
    // The error is C hᵖ(1 + ch + …) and the order measured between h and h/2 is off by about ch/(2
    // ln 2). With motions on the scale of 1, c is a few units at most, and h is at most 1/256: less
    // than 0.02.
    let steps = [1.0 / 256.0, 1.0 / 512.0, 1.0 / 1024.0];
    let comparison =
        run(&model("spherical-pendulum", &[]), &options(&["euler", "heun", "rk4"], &steps, 1.0));
    for (rows, expected) in comparison.rows.chunks(3).zip([1.0, 2.0, 4.0]) {
        assert_eq!(measured(&rows[0]).order, None, "there is no row above it");
        for row in &rows[1..] {
            let order = measured(row).order.unwrap();
            assert!((order - expected).abs() < 0.02, "{} at {:?}: {order}", row.method, row.step);
        }
    }
}

#[test]
fn the_errors_of_the_literature() {
    // Chang, Perlmutter, Vankerschaver 2022, recomputed: 2.28 and 2.22e-3 are given to three
    // digits.
    let gain = Some("rod=50,rod.hidden=12.5,H=50,J=50".parse().unwrap());
    let mut options = options(&["euler", "feedback:euler"], &[1e-3], 100.0);
    options.run.gain = gain;
    let comparison = run(&model("spherical-pendulum", &[]), &options);
    for (row, expected) in comparison.rows.iter().zip([2.28, 2.22e-3]) {
        let error = measured(row).errors.unwrap().last.unwrap();
        assert!(
            (error / expected - 1.0).abs() < 0.003,
            "{}: {error:e}, expected {expected:e}",
            row.method
        );
    }
    // Euler's drift grows all the time; with feedback it stays.
    let [plain, feedback] = [0, 1].map(|k| {
        let m = measured(&comparison.rows[k]);
        let energy = m.drift.iter().position(|d| d.kind == InvariantKind::Hamiltonian).unwrap();
        (m.drift[energy].max, m.trend[energy].unwrap())
    });
    assert!(plain.1.secular && !feedback.1.secular, "{plain:?} {feedback:?}");
    // Growth and drift are the same there: the oscillation is the residue of the line.
    assert!((plain.1.growth.abs() - plain.0).abs() < 2.0 * plain.1.oscillation, "{plain:?}");
}

#[test]
fn what_the_reference_cannot_tell_is_a_bound() {
    let mut options = options(&["rk4", "corrected:dop853"], &[PERIOD / 50.0], PERIOD);
    options.rtol = vec![1e-4, 1e-14];
    let comparison = run(&model("planar-pendulum", &[]), &options);
    let own = comparison.reference.error.unwrap();
    let names: Vec<_> = comparison
        .rows
        .iter()
        .map(|row| (row.method.clone(), row.step, row.rtol.zip(row.atol)))
        .collect();
    let expected = [
        ("rk4", Some(PERIOD / 50.0), None),
        ("corrected:dop853", None, Some((1e-4, 0.0))),
        ("corrected:dop853", None, Some((1e-14, 0.0))),
    ];
    assert_eq!(
        names,
        expected.map(|(name, h, rtol)| (name.to_string(), h, rtol)),
        "steps for the one that needs them, tolerances for the other"
    );
    for row in &comparison.rows[..2] {
        let errors = measured(row).errors.unwrap();
        let Some(error) = errors.last else { panic!("{errors:?}") };
        assert!(
            error > 10.0 * own && errors.largest().number() >= error && errors.t == PERIOD,
            "{errors:?}"
        );
    }
    let tight = measured(&comparison.rows[2]).errors.unwrap();
    let Size::AtMost(bound) = tight.at_end() else {
        panic!("{tight:?}, the reference has {own:e}")
    };
    assert!((own..=11.0 * own).contains(&bound), "{bound:e} and {own:e}");
    assert_eq!(measured(&comparison.rows[2]).order, None);
}

#[test]
fn where_trajectories_separate_the_comparison_says_how_far_it_goes() {
    let lorenz = "state x = 1\nstate y = 1\nstate z = 20\nx' = 10*(y - x)\ny' = x*(28 - z) - y\nz' = x*y - 8/3*z\n";
    let problem = text_model(lorenz);
    let comparison = run(&problem, &options(&["rk4"], &[0.005], 100.0));
    let reference = &comparison.reference;
    // Errors of 1e-16…1e-13 of the size grow by e^{0.906 t} on average: they pass 1e-6 after
    // (14…23)/0.906 = 18…25 units of time. The growth is uneven, so twice that is allowed.
    let until = reference.good_until.unwrap();
    assert!((9.0..50.0).contains(&until), "{until}");
    // The state stays within 60 of the origin.
    assert!(reference.error.unwrap() <= USEFUL * 60.0 && reference.reason.is_some());
    assert!(reference.at(100.0).is_none());
    let row = measured(&comparison.rows[0]);
    // 1001 samples are 0.1 apart.
    assert!((row.errors.unwrap().t - until).abs() < 0.11, "{row:?}", row = row.errors);
    assert_eq!(row.steps, 20_000, "the run itself goes on");
}

#[test]
fn a_run_that_fails_is_a_row() {
    // x = 1/(1-t) ends at t = 1, and so do the reference and every run.
    let problem = text_model("state x = 1\nx' = x^2\n");
    let comparison = run(&problem, &options(&["rk4", "euler"], &[0.001], 2.0));
    assert!(
        comparison.reference.reason.is_some() && comparison.reference.good_until.unwrap() < 1.0
    );
    let failed = comparison.rows[0].outcome.as_ref().err().unwrap();
    assert_eq!(
        (failed.kind.as_str(), failed.t.is_some_and(|t| t > 1.0 && t < 1.1)),
        ("non-finite", true)
    );
    // A gain that is too large for one step does not stop the others.
    let mut options = options(&["feedback:euler", "rk4"], &[0.1, 1e-3], 1.0);
    options.run.gain = Some("50".parse().unwrap());
    let comparison = run(&model("spherical-pendulum", &[]), &options);
    let ended: Vec<bool> = comparison.rows.iter().map(|row| row.outcome.is_ok()).collect();
    assert_eq!(ended, [false, true, true, true]);
    assert_eq!(comparison.rows[0].outcome.as_ref().err().unwrap().kind, "gain");
}

fn last_error(row: &Row) -> f64 {
    match measured(row).errors.unwrap().at_end() {
        Size::Known(size) | Size::AtMost(size) => size,
    }
}

#[test]
fn a_claimed_integral_that_is_none_does_not_bend_the_reference() {
    let text =
        "coordinate x = 1\nmomentum y of x\nhamiltonian y^2/2 + x^2/2\nintegral bad = x + 0.1*y\n";
    let options = options(&["rk4", "corrected:rk4"], &[0.01], 10.0);
    let refused = compare(&text_model(text), &options, &|_| Control::Continue)
        .expect_err("a claim that is not true");
    assert_eq!(refused.exit_code(), 2);
    assert!(refused.to_string().contains("'bad' is not a first integral"), "{refused}");
    let settings = Settings { allow_unverified: true, ..Settings::default() };
    let problem = Problem::from_text("inline", text, &BTreeMap::new(), &settings).unwrap();
    let comparison = run(&problem, &options);
    // The false claim does not bend the corrected run either: its error is that of the scheme.
    let errors: Vec<f64> = comparison.rows.iter().map(last_error).collect();
    // h⁴ t /120 for rk4 and an oscillator.
    assert!(errors.iter().all(|e| *e < 2e-9), "{errors:?}");
    let held = |row: usize| {
        measured(&comparison.rows[row]).drift.iter().find(|d| d.name == "bad").map(|d| d.varying)
    };
    assert_eq!((held(0), held(1)), (Some(true), Some(true)));
    assert_eq!(
        [&comparison.reference.method, &comparison.reference.checked_by].map(|m| m.to_string()),
        ["dop853", "tsit5"]
    );
    let error = distance(comparison.reference.at(10.0).unwrap(), &[10f64.cos(), -10f64.sin()]);
    assert!(
        error <= comparison.reference.error.unwrap() + 1e-15,
        "{error:e}, claimed are {:e}",
        comparison.reference.error.unwrap()
    );
}

#[test]
fn budgets_are_spent_and_not_exceeded() {
    let (small, large) = (1000, 5000);
    let methods = ["heun", "rk4", "corrected:dop853"];
    let options = CompareOptions { budgets: vec![small, large], ..options(&methods, &[], PERIOD) };
    let comparison = run(&model("planar-pendulum", &[]), &options);
    // Price of a step: 2 and 4 fields of 4 gradients each.
    for (rows, price) in comparison.rows.chunks(2).zip([8, 16]) {
        for (row, budget) in rows.iter().zip([small, large]) {
            let m = measured(row);
            assert_eq!(
                (m.steps, m.cost.in_gradients()),
                (budget / price, budget / price * price),
                "{}",
                row.method
            );
            let steps = PERIOD / row.step.unwrap();
            assert!(
                (steps - m.steps as f64).abs() < 1e-9 * steps,
                "T/h is the number of steps: {steps}"
            );
        }
    }
    // An adaptive run takes whole steps of 12 fields and a solve, and the tolerance is found to 0.3
    // % of a decade: a few steps of 52 may be left over.
    for (row, budget) in comparison.rows[4..].iter().zip([small, large]) {
        let (m, tolerance) = (measured(row), row.rtol.zip(row.atol).unwrap());
        let spent = m.cost.in_gradients();
        assert!(spent <= budget && spent + 200 > budget, "{spent} of {budget} with {tolerance:?}");
        assert!(tolerance.1 == 0.0 && row.step.is_none() && row.budget == Some(budget));
    }
    // At equal budgets the higher order is better here, as in the paper.
    let error = |k: usize| measured(&comparison.rows[k]).errors.unwrap().at_end().number();
    assert!(error(5) < error(3) && error(3) < error(1));
    // Newton iterations depend on the step, so more than the price of a step may be left over, but
    // hardly a tenth.
    let options = CompareOptions {
        methods: vec!["suzuki4(rattle)".parse().unwrap()],
        budgets: vec![5000, 50_000],
        ..options
    };
    for row in run(&model("planar-pendulum", &[]), &options).rows {
        let (spent, budget) = (measured(&row).cost.in_gradients(), row.budget.unwrap());
        assert!(spent <= budget && spent > budget / 10 * 9, "{spent} of {budget}");
    }
    let options =
        CompareOptions { methods: methods.map(|name| name.parse().unwrap()).to_vec(), ..options };
    let poor = CompareOptions { budgets: vec![10], ..options };
    for row in run(&model("planar-pendulum", &[]), &poor).rows {
        assert_eq!(
            row.outcome.err().map(|failed| failed.kind),
            (row.method != "heun").then(|| "budget".to_string())
        );
    }
}

#[test]
fn costs_hold_no_samples_and_stopping_stops() {
    let problem = model("kepler", &[]);
    let mut options = options(&["dop853"], &[], 50.0);
    let mut cost = |samples| {
        options.run.samples = samples;
        measured(&run(&problem, &options).rows[0]).cost.counts()
    };
    assert_eq!(cost(None), cost(Some(2)), "interpolated samples do not count");
    // A run of so few steps may be finished before the first call of `watch`.
    options.run.until = 5000.0;
    assert!(compare(&problem, &options, &|_| Control::Stop).unwrap().is_none());
}

#[test]
fn what_is_done_is_kept_where_it_is_stopped() {
    let problem = model("kepler", &[]);
    // Ten thousand million steps would take minutes; both computations of the reference and the run
    // before it do not.
    let all = options(&["rk4", "plain:euler"], &[1e-2], 1.0);
    let slow = CompareOptions {
        steps: vec![1e-2, 1e-10],
        methods: vec!["rk4".parse().unwrap()],
        ..all.clone()
    };
    let watch = |progress: holonome::compare::CompareProgress| match progress.done {
        ..3 => Control::Continue,
        _ => Control::Stop,
    };
    let stopped = compare(&problem, &slow, &watch).unwrap().expect("a run is done");
    assert!(stopped.interrupted && stopped.rows.len() == 2);
    let failed = stopped.rows[1].outcome.as_ref().err().map(|failed| failed.kind.as_str());
    assert_eq!(failed, Some("interrupted"));
    let whole = run(&problem, &CompareOptions { steps: vec![1e-2], ..slow });
    let (kept, made) = (measured(&stopped.rows[0]), measured(&whole.rows[0]));
    assert_eq!(
        (kept.errors, kept.steps, kept.cost.wall_seconds > 0.0),
        (made.errors, made.steps, true)
    );
    assert!(
        stopped.warnings.iter().any(|warning| warning.contains("1 of 2 rows")),
        "{:?}",
        stopped.warnings
    );
    assert!(!whole.interrupted && whole.warnings.is_empty());
}

#[test]
fn json_csv_and_figure_have_every_row() {
    let mut options = options(&["rk4", "feedback:euler", "dop853"], &[0.1, 1e-3], 1.0);
    options.rtol = vec![1e-6];
    options.run.gain = Some("50".parse().unwrap());
    let mut comparison = run(&model("spherical-pendulum", &[]), &options);
    let out = std::env::temp_dir().join(format!("holonome-compare-{}", std::process::id()));
    let folder = ComparisonFolder::create(Some(&out), "pendulum").unwrap();
    folder.fill(&mut comparison).unwrap();
    assert!(ComparisonFolder::create(Some(&out), "pendulum").is_err(), "it is not empty");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&read("compare.json")).unwrap();
    assert_eq!(json, json!(comparison));
    let (csv, svg) = (read("compare.csv"), read("work-precision.svg"));
    std::fs::remove_dir_all(&out).unwrap();
    // A line per run, as long as the header; the message of the refused gain has a comma and is
    // quoted.
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines.len(), json["rows"].as_array().unwrap().len()), (6, 5));
    let columns = |line: &str| {
        line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>()
    };
    assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{csv}");
    assert!(lines[0].starts_with("method,step,rtol,atol,"), "{csv}");
    assert!(
        lines[3].starts_with("feedback:euler,0.1,")
            && lines[3].contains("\"the gains are too large"),
        "{csv}"
    );
    // A number reads back unchanged.
    let at = lines[0].split(',').position(|name| name == "error").unwrap();
    let error: f64 = lines[1].split(',').nth(at).unwrap().parse().unwrap();
    assert_eq!(Some(error), json["rows"][0]["error"]["final"].as_f64());
    // Four runs have a point over their work and one over their time, and each of three methods has
    // one in the legend.
    let markers = ["#0072b2", "#d55e00", "#009e73"]
        .map(|colour| svg.matches(&format!("fill=\"{colour}\"")).count());
    assert_eq!(markers, [2 * 2 + 1, 2 + 1, 2 + 1], "{svg}");
    for text in [
        ">error in (q, p) at T",
        ">error of the reference<",
        ">work in gradients<",
        ">time in seconds<",
        ">feedback:euler<",
    ] {
        assert!(svg.contains(text), "no {text} in {svg}");
    }
}

#[test]
fn a_model_without_invariants_has_errors_and_no_drifts() {
    let comparison =
        run(&text_model("state x = 1\nx' = -x\n"), &options(&["rk4", "euler"], &[0.1, 0.05], 1.0));
    assert_eq!(comparison.reference.method.to_string(), "dop853");
    for row in &comparison.rows {
        let m = measured(row);
        let (h, steps) = (row.step.unwrap(), m.steps as i32);
        // The methods applied to x' = -x in closed form: powers of their stability functions. Both
        // errors round by a few ulps of 1, against errors of 1e-8 and more.
        let factor = if row.method == "rk4" {
            1.0 - h + h * h / 2.0 - h.powi(3) / 6.0 + h.powi(4) / 24.0
        } else {
            1.0 - h
        };
        let expected = (factor.powi(steps) - (-1f64).exp()).abs();
        let error = m.errors.unwrap().last.unwrap();
        assert!((error - expected).abs() < 1e-14, "{}: {error:e} {expected:e}", row.method);
        assert!(m.drift.is_empty() && m.trend.is_empty());
    }
    assert!(comparison.warnings.is_empty());
}

#[test]
fn a_comparison_without_methods_names_the_field_that_lacks_them() {
    let refused =
        compare(&model("henon-heiles", &[]), &CompareOptions::default(), &|_| Control::Continue);
    let error = refused.expect_err("there is nothing to compare").to_string();
    assert!(error.contains("methods = rk4, corrected:rk4"), "{error}");
}
