//! Large models, which are templated: properties of small ones hold for them, too.

mod common;

use common::{Finished, options};
use holonome::check::Report;
use holonome::{Gains, Problem, Settings};
use serde_json::json;
use std::collections::BTreeMap;

/// A ring of unequal masses whose momentum is an integral.
const RING: &str = "size n = 20000\nparameter m[i in 1..n] = 1 + 0.5*sin(i)\ncoordinate q[i in 1..n] = 0.3*sin(i)\n\
    momentum p of q = 0.2*cos(2*i)\nlet next(i) = if(i == n, q[1], q[i + 1])\n\
    hamiltonian sum(i in 1..n : p[i]^2/(2*m[i])) + sum(i in 1..n : 1 - cos(next(i) - q[i]))\n\
    integral P = sum(i in 1..n : p[i])\nobserve work = sum(i in 1..n : q[i]*p[i])\n";

fn load(text: &str) -> Problem {
    Problem::from_text("large", text, &BTreeMap::new(), &Settings::default())
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_treatment_runs_on_templated_models() {
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
    // Feedback holds H at the balance of the growth by Euler's steps and the rate; P was kept
    // without it.
    let grown = drift(&run("--method plain:euler --step 0.01"));
    let feedback = run("--method feedback:euler --step 0.01");
    assert!(feedback.summary.gain.as_ref().is_some_and(|gain| gain.starts_with("auto: kappa=")));
    let held = drift(&feedback);
    assert!(held[0] < 0.25 * grown[0] && held[1] < 1e-6, "{held:?} {grown:?}");
    // Quantities of templated recordings agree with the states.
    let (q, p) = (plain.array("q"), plain.array("p"));
    for (k, (work, total)) in plain.array("work").iter().zip(plain.array("P")).enumerate() {
        let [expected, momentum] =
            [q[k].iter().zip(&p[k]).map(|(q, p)| q * p).sum::<f64>(), p[k].iter().sum()];
        assert!(
            (work[0] - expected).abs() < round_off && (total[0] - momentum).abs() < round_off,
            "{k}"
        );
    }
}

#[test]
fn feedback_of_a_large_model_has_gains_of_its_own() {
    let problem = load(&RING.replace("20000", "100000"));
    let report = json!(Report::new(&problem));
    assert_eq!(report["rows"]["rows"], 200_000, "{report}");
    assert_eq!(report["invariants"], serde_json::json!(["H", "P"]));
    assert_eq!(report["degrees_of_freedom"], 100_000);
    let gains = "--method feedback:rk4 --step 0.01 --until 0.02 --samples 2";
    assert_eq!(common::run(problem.clone(), options(gains)).unwrap().summary.steps, 2);
    let named = format!("{gains} --gain H=1e-6,P=1e-6");
    assert_eq!(common::run(problem.clone(), options(&named)).unwrap().summary.steps, 2);
    // h |DH|² is some thousand.
    let Err(refused) = common::run(problem.clone(), options(&format!("{gains} --gain 1"))) else {
        panic!("unstable")
    };
    assert!(refused.to_string().contains("gains are too large"), "{refused}");
    let Err(refused) = common::run(problem.clone(), options(&format!("{gains} --gain Q=1"))) else {
        panic!("no Q")
    };
    assert!(refused.to_string().contains("'Q'"), "{refused}");
    // A matrix of gains is a formula.
    let mut matrix = options(gains);
    matrix.gain = Some(Gains::Matrix(vec![1e-6, 0.0, 0.0, 1e-6]));
    let Err(refused) = common::run(problem, matrix) else { panic!("refused") };
    let message = refused.to_string();
    assert!(
        ["corrected:rk4", "gain = auto", "unrolled"].iter().all(|part| message.contains(part)),
        "{message}"
    );
}

/// Chains off their rods are pulled back by gains like one of them, which is unrolled.
#[test]
fn gains_of_large_models_pull_like_those_of_one() {
    let run = |m: usize| {
        let text = format!(
            "size n = 5\nsize m = {m}\ncoordinate r[k in 1..m, i in 1..n] : R^2 = (1.01*i, -2*i)\n\
             momentum p[k, i] of r = (0.3, 0)\n\
             hamiltonian sum(k in 1..m, i in 1..n : dot(p[k, i], p[k, i])/2 + r[k, i].y)\n\
             constraint anchor[k in 1..m] : dot(r[k, 1], r[k, 1]) = 5\n\
             constraint link[k in 1..m, i in 2..n] : dot(r[k, i] - r[k, i-1], r[k, i] - r[k, i-1]) = 5\n"
        );
        let settings = Settings { start_off_set: true, ..Settings::default() };
        let problem = Problem::from_text("off", &text, &BTreeMap::new(), &settings).unwrap();
        assert_eq!(problem.examined.rows.is_some(), m > 1);
        let gains = "--gain anchor=0.5,link=0.5,anchor.hidden=1,link.hidden=1";
        let text = format!("--method feedback:rk4 --step 0.01 --until 1 --samples 2 {gains}");
        common::run(problem, options(&text)).unwrap()
    };
    let one = run(1);
    let link = one.summary.drift.iter().find(|drift| drift.name == "link").unwrap();
    assert!(link.last < 0.5 * link.max, "{:e} {:e}", link.last, link.max);
    for m in [100, 1000] {
        let many = run(m);
        for name in ["r", "p"] {
            let (expected, found) =
                (one.array(name).pop().unwrap(), many.array(name).pop().unwrap());
            let distances = found.chunks(10).map(|chain| common::distance(chain, &expected));
            let largest = distances.fold(0.0, f64::max);
            // Some hundred roundings of positions of up to 10, which stiff forces of rods hold.
            assert!(largest < 1e-12, "{m} {name} {largest:e}");
        }
    }
}

/// A templated chain: fixed and adaptive steps pull a start off its rods back; from a start on them
/// a scheme has its order.
#[test]
fn feedback_of_a_large_chain_pulls_and_keeps_the_order() {
    let chain = |x: &str| {
        let set =
            vec![("n".to_string(), "200".to_string()), ("r".to_string(), format!("({x}*i, -2*i)"))];
        let settings = Settings { set, start_off_set: true, ..Settings::default() };
        let problem =
            Problem::load(common::repository().join("models/chain.holo"), &settings).unwrap();
        assert!(problem.examined.rows.is_some() && problem.examined.field.is_none());
        problem
    };
    let run = |x: &str, text: &str| {
        let text = format!("{text} --until 0.5 --samples 2 --gain auto --reference r=(i,-2*i)");
        common::run(chain(x), options(&text)).unwrap()
    };
    for method in ["--method feedback:dop853 --rtol 1e-9", "--method feedback:rk4 --step 0.005"] {
        let finished = run("1.0001", method);
        // The hidden constraints hold at the start and throughout.
        let off: Vec<_> = finished.summary.drift.iter().filter(|drift| drift.max > 1e-6).collect();
        assert!(off.len() >= 2);
        for drift in off {
            assert!(
                drift.last < 0.5 * drift.max,
                "{} {:e} {:e}",
                drift.name,
                drift.last,
                drift.max
            );
        }
    }
    let exact = run("1", "--method feedback:dop853 --rtol 1e-12").state();
    let steps = [0.02, 0.01, 0.005, 0.0025];
    let errors = steps.map(|h| {
        common::distance(&run("1", &format!("--method feedback:rk4 --step {h}")).state(), &exact)
    });
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        assert!((3.5..5.0).contains(&order), "{errors:?}");
    }
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
    let finished = common::run(
        problem,
        options("--method corrected:euler --step 0.01 --until 0.03 --samples 2"),
    )
    .unwrap();
    assert_eq!(finished.summary.steps, 3);
    assert!(finished.summary.drift[0].max < 1e-17, "{:e}", finished.summary.drift[0].max);
    // Two kilobytes a mass, other tests of this file included.
    if let Ok(status) = std::fs::read_to_string("/proc/self/status")
        && let Some(line) = status.lines().find(|line| line.starts_with("VmHWM"))
    {
        let kilobytes: usize =
            line.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
        assert!(kilobytes < 2_000_000, "{line}");
    }
}

#[test]
fn a_large_chain_moves_as_a_program_of_its_own_says() {
    // benches/limits/limit_chain.c, whose y points down: limit_chain 5000 0.002 100 down. It stops
    // its iterations at residuals of 8e-11, which may move the last mass by that much in each of
    // 100 steps.
    let problem = common::model("chain", &[("n", "5000")]);
    assert!(problem.examined.rows.is_some() && problem.examined.field.is_none());
    let finished =
        common::run(problem, options("--method rattle --step 0.002 --until 0.2 --samples 2"))
            .unwrap();
    let tip = finished.array("tip").pop().unwrap();
    assert!(common::distance(&tip, &[4999.99199881308, -10000.0039976262]) < 1e-8, "{tip:?}");
    // H starts at -25005000, whose round-off is 4e-9; |r|² is up to 1.25e8, and a link is a
    // difference of positions.
    for drift in &finished.summary.drift {
        let largest = match drift.name.as_str() {
            "H" => 1e-4,
            name if name.ends_with("link") || name.ends_with("anchor") => 1e-10,
            other => panic!("{other}"),
        };
        assert!(drift.max < largest, "{} {:e}", drift.name, drift.max);
    }
}

#[test]
fn a_large_models_failures_name_the_member() {
    let chain = std::fs::read_to_string(common::repository().join("models/chain.holo")).unwrap();
    let chain = chain.replace("size n = 10\n", "size n = 5000\n");
    // Far along the chain the coordinates are large, and a miss by 0.21 is still a miss.
    let stretched = chain.replace("(i, -2*i)", "(i + if(i == 37, 0.1, 0), -2*i)");
    let hidden = chain.replace("momentum   p of r", "momentum p[i] of r = (if(i == 37, 1, 0), 0)");
    for (text, what) in
        [(&stretched, "constraint 'link[37]'"), (&hidden, "hidden constraint of 'link[37]'")]
    {
        let refused = Problem::from_text("large", text, &BTreeMap::new(), &Settings::default());
        let message = refused.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(message.contains(what), "{message}");
    }
    // The part below link 36 starts across it, and is further away after a step than the length of
    // link 37.
    let fast =
        chain.replace("momentum   p of r", "momentum p[i] of r = if(i >= 37, (1000, 500), (0, 0))");
    let Err(failed) =
        common::run(load(&fast), options("--method rattle --step 0.01 --until 0.1 --samples 2"))
    else {
        panic!("the step is too long")
    };
    assert!(failed.to_string().contains("link[37]"), "{failed}");
}

#[test]
fn multipliers_of_many_chains_are_those_of_one() {
    let run = |problem: Problem| {
        common::run(problem, options("--method rattle --step 0.01 --until 0.1 --samples 3"))
            .unwrap()
    };
    let one = run(common::model("chain", &[]));
    let many = load(
        "size n = 10\nsize m = 500\nparameter g = 1\nparameter L = sqrt(5)\n\
        coordinate r[k in 1..m, i in 1..n] : R^2 = (i, -2*i)\nmomentum p of r\n\
        hamiltonian sum(k in 1..m, i in 1..n : dot(p[k, i], p[k, i])/2 + g*r[k, i].y)\n\
        constraint anchor[k in 1..m] : dot(r[k, 1], r[k, 1]) = L^2\n\
        constraint link[k in 1..m, i in 2..n] : dot(r[k, i] - r[k, i-1], r[k, i] - r[k, i-1]) = L^2\n",
    );
    assert!(many.examined.rows.is_some() && many.examined.field.is_none());
    let many = run(many);
    for (name, members) in [("lambda.anchor", 1), ("lambda.link", 9), ("r", 20), ("p", 20)] {
        let (expected, found) = (one.array(name), many.array(name));
        assert_eq!(expected.len(), found.len());
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!((expected.len(), found.len()), (members, 500 * members), "{name}");
            // A multiplier is a residual over h² and the constraint's stiffness 4 L²: one rounding
            // of |r|² = 500, 1.1e-13, makes 5.5e-11, and g is a sum of a few terms.
            let largest = found
                .chunks(members)
                .map(|chain| common::distance(chain, expected))
                .fold(0.0, f64::max);
            assert!(largest < 3e-10, "{name} {largest:e}");
        }
    }
}

/// Chains of ten links whose anchors are driven.
fn driven_chains(m: usize) -> Problem {
    load(&format!(
        "size n = 10\nsize m = {m}\ncoordinate r[k in 1..m, i in 1..n] : R^2 = (i, -2*i)\n\
         momentum p[k, i] of r = (0.3, 0)\n\
         hamiltonian sum(k in 1..m, i in 1..n : dot(p[k, i], p[k, i])/2 + (1 + 0.1*sin(t))*r[k, i].y)\n\
         constraint anchor[k in 1..m] : dot(r[k, 1] - (0.3*sin(t), 0), r[k, 1] - (0.3*sin(t), 0)) = 5\n\
         constraint link[k in 1..m, i in 2..n] : dot(r[k, i] - r[k, i-1], r[k, i] - r[k, i-1]) = 5\n"
    ))
}

/// Driven chains just above the size that is unrolled, and ten times as many, move like one, by
/// every method that follows the field.
#[test]
fn driven_constraints_of_large_models_are_followed() {
    for method in [
        "corrected:dop853 --rtol 1e-8",
        "plain:dop853 --rtol 1e-8",
        "projection:rk4 --step 0.02",
        "plain:rk4 --step 0.02",
        "feedback:rk4 --step 0.01",
        "rattle --step 0.02",
    ] {
        let run = |m: usize| {
            let problem = driven_chains(m);
            assert_eq!(problem.examined.rows.is_some(), m > 1, "{m}");
            let text = format!("--method {method} --until 1 --samples 2");
            common::run(problem, options(&text)).unwrap_or_else(|e| panic!("{method} {m}: {e}"))
        };
        let one = run(1);
        for m in [40, 400] {
            let many = run(m);
            assert_eq!(many.summary.steps, one.summary.steps, "{method} {m}");
            for name in ["r", "p"] {
                let expected = one.array(name).pop().unwrap();
                let found = many.array(name).pop().unwrap();
                let largest = found
                    .chunks(expected.len())
                    .map(|chain| common::distance(chain, &expected))
                    .fold(0.0, f64::max);
                // A multiplier is one rounding of |r|² = 500, 1.1e-13, over the stiffness of its
                // rod, and acts for a unit of time; iterations end at some 1e-13.
                assert!(largest < 2e-12, "{method} {m} {name} {largest:e}");
            }
        }
    }
}

/// A long chain with a driven end keeps its constraints, and moves by an explicit method as by
/// RATTLE with short steps.
#[test]
fn a_long_driven_chain_is_followed() {
    for n in [300, 3000] {
        let problem = || {
            load(&format!(
                "size n = {n}\ncoordinate r[i in 1..n] : R^2 = (i, -2*i)\nmomentum p[i] of r = (0.3, 0)\n\
                 hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)\n\
                 constraint anchor : dot(r[1] - (0.3*sin(t), 0), r[1] - (0.3*sin(t), 0)) = 5\n\
                 constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 5\n"
            ))
        };
        assert!(problem().examined.rows.is_some());
        let run = |method: &str| {
            common::run(problem(), options(&format!("--method {method} --until 0.1 --samples 2")))
                .unwrap()
        };
        let explicit = run("corrected:dop853 --rtol 1e-9");
        for drift in &explicit.summary.drift {
            // Roundings of squares of positions up to 2 n, which the corrections hold.
            assert!(drift.max < 1e-10, "{n} {} {:e}", drift.name, drift.max);
        }
        let steps = ["0.002", "0.001"].map(|h| run(&format!("rattle --step {h}")).state());
        let errors = steps.map(|state| common::distance(&state, &explicit.state()));
        // Second order; the explicit method is more accurate by far.
        assert!((3.9..4.1).contains(&(errors[0] / errors[1])), "{n} {errors:?}");
    }
}

#[test]
fn advice_for_a_large_model_names_a_method_for_long_runs() {
    for (name, size, method) in
        [("chain", "5000", "suzuki4(rattle)"), ("fpu", "20000", "suzuki4(stormer-verlet-a)")]
    {
        let report = json!(Report::new(&common::model(name, &[("n", size)])));
        assert!(report["advice"].to_string().contains(method), "{report}");
        let feedback = report["methods"]
            .as_array()
            .unwrap()
            .iter()
            .find(|m| m["name"] == "feedback:BASE")
            .unwrap();
        assert_eq!(feedback["applies"], true, "{feedback}");
    }
}

/// Rods under tension T bear transverse waves, the fastest with the frequency 2√(T/ml): RATTLE,
/// explicit in the forces, follows it while h < √(ml/T). A ring that turns at the rate ω has T/l =
/// ω²/(2 sin(π/n))².
#[test]
fn the_tension_of_rods_limits_the_step_of_rattle() {
    let (n, turn) = (2000.0, 0.5);
    let limit = 2.0 * (std::f64::consts::PI / n).sin() / turn;
    let run = |part: f64| {
        let h = part * limit;
        let ring = common::model("ring", &[("n", "2000"), ("bend", "0")]);
        common::run(
            ring,
            options(&format!("--method rattle --step {h} --until {} --samples 2", 100.0 * h)),
        )
    };
    // The wave grows from rounding by a factor u with u + 1/u = 4·1.03² − 2 in each step, u = 1.63:
    // 1e21 in all.
    assert!(run(0.99).is_ok());
    let Err(lost) = run(1.03) else { panic!("it runs") };
    assert!(lost.to_string().contains("has no solution near it"), "{lost}");
}

/// Masses as numbers of a row and as parameters of a family are equal, wherever along the chain
/// they change.
#[test]
fn masses_may_be_written_as_numbers_or_as_parameters() {
    let run = |m: &str, term: &str, method: &str| {
        let text = format!(
            "size n = 203\n{m}\ncoordinate r[i in 1..n] : R^2 = (i, 0)\nmomentum p of r\n\
             hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*{term}) + {term}*r[i].y)\n\
             constraint anchor : dot(r[1], r[1]) = 1\n\
             constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 1"
        );
        let problem =
            Problem::from_text("chain", &text, &Default::default(), &Settings::default()).unwrap();
        let options = options(&format!("--method {method} --step 0.01 --until 0.2 --samples 2"));
        common::run(problem, options).unwrap().array("r").pop().unwrap()
    };
    for method in ["rattle", "dop853"] {
        let numbers = run("let m(i) = 1 + if(i > 100, 3, 0)", "m(i)", method);
        let parameters = run("parameter m[i in 1..n] = 1 + if(i > 100, 3, 0)", "m[i]", method);
        for (a, b) in numbers.iter().zip(&parameters) {
            // Forces of a chain of 203 bodies of weight 4 are below 10³; twenty steps round them
            // and their effects.
            assert!((a - b).abs() < 1e3 * 20.0 * f64::EPSILON, "{method}: {a} {b}");
        }
    }
}

#[test]
fn sums_within_sums_of_any_length_are_added_up() {
    // Rows around a block and around the number that runs in one loop.
    for (a, b) in [(8, 8), (5, 13), (64, 64), (64, 65), (128, 64), (3, 2731), (95, 97)] {
        let total = (1..=a).map(|i| (1..=b).map(|j| i + j).sum::<i32>()).sum::<i32>();
        let start = "coordinate q = 1\nmomentum p of q = 0.5\n";
        let sum =
            |of: &str| format!("sum(i in 1..{a} : {of}*sum(j in 1..{b} : (i + j)*q))/{total}");
        let texts = [
            format!("{start}hamiltonian p^2/2 + {}/2\n", sum("q")),
            format!(
                "{start}hamiltonian p^2/2 + sum(i in 1..{a}, j in 1..{b} : (i + j)*q^2)/{}\n",
                2 * total
            ),
            format!(
                "{start}hamiltonian p^2/2 + q^2/2\nintegral E = (p^2 + {})/2\nobserve o = {}\n",
                sum("q"),
                sum("q")
            ),
            format!("state q = 1\nstate p = 0.5\nq' = p\np' = -{}\n", sum("1")),
        ];
        // An oscillator of the frequency 1.
        let (sine, cosine) = 0.5f64.sin_cos();
        for (text, method) in texts
            .iter()
            .flat_map(|text| ["dop853", "gauss16", "gauss4 --step 0.005"].map(|m| (text, m)))
        {
            let options = options(&format!("--until 0.5 --samples 2 --method {method}"));
            let state = common::run(load(text), options).unwrap().state();
            for (found, exact) in state.iter().zip([cosine + 0.5 * sine, 0.5 * cosine - sine]) {
                // The tolerance is 1e-9, and gauss4 errs by h⁴/720 over half a unit of time.
                assert!((found - exact).abs() < 4e-9, "{found} {exact} by {method}: {text}");
            }
        }
    }
}

#[test]
fn what_has_no_field_says_where() {
    let text = "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2 + q.y\n\
        constraint a : dot(q, q) = 1\nconstraint b : q.x = 1\n";
    let problem = load(text);
    for shown in [holonome::dump::graph(&problem), holonome::dump::tape(&problem)] {
        let Err(holonome::Error::Model { diagnostics, .. }) = shown else { panic!("{shown:?}") };
        assert!(diagnostics[0].message.contains("'b' is singular"), "{diagnostics:?}");
    }
}
