//! Runs that reach a state in which the constraints do not determine their forces: the report says
//! so, and does not blame the held invariants.

mod common;

use common::{options, run};
use holonome::{Error, Problem, Settings};
use std::collections::BTreeMap;

/// A double pendulum whose lower bob has a negative mass: with the rods at a right angle, G M⁻¹Gᵀ
/// is singular.
const PENDULUM: &str = "\
parameter m = (1, -1)
coordinate q[i in 1..2] : R^2 = (sin(1.2) + (i-1)*0.8*sin(0.4), -cos(1.2) - (i-1)*0.8*cos(0.4))
momentum p of q
hamiltonian sum(i in 1..2 : dot(p[i], p[i])/(2*m[i]) + m[i]*9.81*q[i].y)
constraint a : dot(q[1], q[1]) = 1
constraint b : dot(q[2] - q[1], q[2] - q[1]) = 0.64
";

#[test]
fn dependent_constraints_are_named() {
    let problem =
        Problem::from_text("pendulum", PENDULUM, &BTreeMap::new(), &Settings::default()).unwrap();
    let Err(error) = run(problem, options("--until 2 --method corrected:dopri5 --rtol 1e-7"))
    else {
        panic!("it goes on through a singular configuration")
    };
    let Error::Failed { failure, .. } = &error else { panic!("{error}") };
    // Either steps become too short there, or claims are tested first.
    assert!(["dependent-constraints", "step-collapsed"].contains(&failure.kind()), "{error}");
    assert!(error.to_string().contains(" b ") || error.to_string().contains(" of b "), "{error}");
}

/// A four-bar linkage. With a ground of 0.22 it can be laid flat, as 0.1 + 0.22 = 0.12 + 0.2 (crank
/// and ground, rocker and rod); its crank reaches the flat position after half a turn less 2. With
/// a longer ground it cannot.
fn linkage(ground: f64) -> String {
    format!(
        "\
parameter g = {ground}
coordinate a : R^2 = (0.1*cos(2), 0.1*sin(2))
coordinate b : R^2 = (0.158, 0.103)
momentum p of a = (-0.1*sin(2), 0.1*cos(2))
momentum r of b = (-0.0902, -0.0544)
hamiltonian dot(p, p)/2 + dot(r, r)/2
constraint crank : dot(a, a) = 0.01
constraint rod : dot(b - a, b - a) = 0.04
constraint rocker : dot(b - (g, 0), b - (g, 0)) = 0.0144
"
    )
}

#[test]
fn a_configuration_that_a_step_goes_through_is_seen() {
    let settings = Settings { project_initial: true, ..Settings::default() };
    for (ground, expected) in [(0.22, true), (0.26, false)] {
        for method in [
            "corrected:rk4 --step 0.01",
            "plain:rk4 --step 0.05",
            "corrected:dop853 --rtol 1e-5",
            "corrected:tsit5 --rtol 1e-7",
            "feedback:rk4 --step 0.01",
            "rattle --step 0.01",
        ] {
            let problem =
                Problem::from_text("linkage", &linkage(ground), &BTreeMap::new(), &settings)
                    .unwrap();
            let continued = format!("--until 3 --singular continue --method {method}");
            let run = run(problem, options(&continued)).unwrap_or_else(|e| panic!("{e}"));
            let said = run
                .summary
                .warnings
                .iter()
                .find(|warning| warning.contains("constraints are dependent at t = "));
            assert_eq!(said.is_some(), expected, "{method}, {ground}: {:?}", run.summary.warnings);
            let Some(said) = said else { continue };
            // The crank turns at a rate near 1, which the projection of the start changes by a few
            // hundredths.
            let t: f64 =
                said.split("t = ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
            assert!((t - (std::f64::consts::PI - 2.0)).abs() < 0.05, "{method}: {said}");
        }
    }
}

/// Warnings and the state at the end, or the error.
fn end(text: &str, arguments: &str) -> Result<(Vec<String>, Vec<f64>), Error> {
    let problem =
        Problem::from_text("model", text, &BTreeMap::new(), &Settings::default()).unwrap();
    run(problem, options(arguments)).map(|run| (run.summary.warnings.clone(), run.state()))
}

/// A figure eight, whose constraint has no gradient where it crosses itself, at about t = 1.311 for
/// the speed 1, which is a quarter of its length 5.244; and a cross, which the motion runs through
/// at t = 1.
#[test]
fn a_gradient_that_vanishes_is_seen() {
    let eight = "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2\n\
        constraint c : (q.x^2 + q.y^2)^2 = q.x^2 - q.y^2";
    let cross = "coordinate q : R^2 = (1, 0)\nmomentum p of q = (-1, 0)\nhamiltonian dot(p, p)/2\n\
        constraint c : q.x*q.y = 0";
    let methods =
        ["corrected:dop853", "projection:tsit5", "corrected:rk4 --step 0.01", "rattle --step 0.01"];
    for (text, time) in [(eight, 5.244_115_108_584_24 / 4.0), (cross, 1.0)] {
        for method in methods {
            let continued = format!("--until 2 --singular continue --method {method}");
            let said = match end(text, &continued) {
                Ok((warnings, _)) => warnings.join("; "),
                Err(error) => error.to_string(),
            };
            if said.contains("the constraints became degenerate") {
                continue; // a step of `rattle` that ends there says so itself
            }
            assert!(
                said.contains("the gradient of c") && said.contains("vanishes at t = "),
                "{method}: {said}"
            );
            let t: f64 = said
                .split("at t = ")
                .nth(1)
                .unwrap()
                .split([',', ':'])
                .next()
                .unwrap()
                .parse()
                .unwrap();
            assert!((t - time).abs() < 1e-3, "{method}: {said}");
        }
    }
}

/// A gradient that varies by five orders along a regular curve, y = exp(10 x).
#[test]
fn a_gradient_that_varies_is_no_reason_for_alarm() {
    let text = "coordinate q : R^2 = (-1, exp(-10))\nmomentum p of q = (1, 10*exp(-10))\n\
        hamiltonian dot(p, p)/2\nconstraint c : exp(10*q.x) = q.y";
    for method in ["corrected:dop853", "corrected:rk4 --step 0.005", "rattle --step 0.005"] {
        for turn in ["1", "-1"] {
            let text = text.replace("(1, 10*exp(-10))", &format!("({turn}, {turn}*10*exp(-10))"));
            let (warnings, _) = end(&text, &format!("--until 2 --method {method}"))
                .unwrap_or_else(|e| panic!("{e}"));
            assert!(warnings.is_empty(), "{method}: {warnings:?}");
        }
    }
}

/// A geodesic of the hyperboloid in Minkowski's space, q = (sinh t, 0, cosh t).
#[test]
fn indefinite_masses_are_regular_where_nothing_is_lost() {
    let text = "coordinate q : R^3 = (0, 0, 1)\nmomentum p of q = (1, 0, 0)\n\
        hamiltonian (p.x^2 + p.y^2 - p.z^2)/2\nconstraint c : q.x^2 + q.y^2 - q.z^2 = -1";
    for (t, method) in
        [(0.1f64, "corrected:dop853"), (8.0, "corrected:dop853"), (8.0, "rattle --step 0.01")]
    {
        let (warnings, x) =
            end(text, &format!("--until {t} --method {method}")).unwrap_or_else(|e| panic!("{e}"));
        assert!(warnings.is_empty(), "{t} {method}: {warnings:?}");
        // The default tolerance; RATTLE's error is t h² at most.
        assert!(
            (x[0] / t.sinh() - 1.0).abs() < if method == "corrected:dop853" { 1e-8 } else { 1e-3 },
            "{method} {x:?}"
        );
    }
    // From t = 18 on the terms of the constraint are 1e16 times its value: nothing is known of its
    // force.
    for method in ["corrected:dop853", "corrected:rk4 --step 0.01"] {
        let Err(error) = end(text, &format!("--until 25 --method {method}")) else {
            panic!("{method} goes on")
        };
        assert!(error.to_string().contains("do not determine their forces"), "{method}: {error}");
    }
}

/// Rows that are nearly parallel in the kinetic metric alone, because a rod is light.
#[test]
fn light_rods_are_no_reason_for_alarm() {
    let text = "parameter mr = 1e-8\ncoordinate c : R^2 = (1, 0)\ncoordinate th = 0\ncoordinate b : R^2 = (2, 0)\n\
        momentum pc of c\nmomentum pth of th\nmomentum pb of b\n\
        hamiltonian dot(pc, pc)/(2*mr) + pth^2/(2*mr/3) + dot(pb, pb)/2 + 9.81*(mr*c.y + b.y)\n\
        constraint pivot : c - (cos(th), sin(th)) = (0, 0)\nconstraint tip : c + (cos(th), sin(th)) = b";
    for method in ["corrected:dop853", "rattle --step 0.001"] {
        let (warnings, x) =
            end(text, &format!("--until 1 --method {method}")).unwrap_or_else(|e| panic!("{e}"));
        let alarm = warnings.iter().find(|warning| warning.contains("dependent"));
        assert!(alarm.is_none(), "{method}: {alarm:?}");
        assert!(((x[3] * x[3] + x[4] * x[4]).sqrt() - 2.0).abs() < 1e-8, "{x:?}");
    }
}

/// A parallelogram, which its motion lays flat at t = π/2 and every π from there on; with another
/// ground it comes near and turns around.
fn parallelogram(ground: f64) -> Problem {
    let text = format!(
        "parameter g = {ground}\ncoordinate a : R^2 = (0, 1)\ncoordinate b : R^2 = (g, 1)\n\
         momentum p of a = (1, 0)\nmomentum r of b = (1, 0)\n\
         hamiltonian dot(p, p)/2 + dot(r, r)/2\nconstraint crank : dot(a, a) = 1\n\
         constraint rocker : dot(b - (g, 0), b - (g, 0)) = 1\n\
         constraint coupler : dot(b - a, b - a) = 4\n"
    );
    let settings = Settings { project_initial: true, ..Settings::default() };
    Problem::from_text("parallelogram", &text, &BTreeMap::new(), &settings).unwrap()
}

const METHODS: [&str; 6] = [
    "corrected:dop853",
    "corrected:tsit5",
    "projection:rk4 --step 0.05",
    "rattle --step 0.01",
    "rattle --step 0.1",
    "shake --step 0.01",
];

/// A run ends at a singular configuration, unless it is asked to go on: then it keeps its branch,
/// b = a + (2, 0), and says how often it went through.
#[test]
fn a_run_stops_at_a_singular_configuration_or_keeps_its_branch() {
    for method in METHODS {
        let of = |singular: &str| format!("--until 8 --method {method}{singular}");
        let Err(Error::Failed { failure, .. }) = run(parallelogram(2.0), options(&of(""))) else {
            panic!("{method} goes on")
        };
        assert_eq!(failure.kind(), "singular-configuration", "{method}: {failure}");
        let t = failure.t().unwrap();
        assert!((t - std::f64::consts::FRAC_PI_2).abs() < 3e-3, "{method}: {failure}");
        assert!(failure.to_string().contains("coupler says what others say"), "{failure}");
        let run = run(parallelogram(2.0), options(&of(" --singular continue")))
            .unwrap_or_else(|e| panic!("{method}: {e}"));
        let [a, b] = [&run.state()[..2], &run.state()[2..4]];
        let near = 1e-9;
        assert!((b[0] - a[0] - 2.0).abs() < near && (b[1] - a[1]).abs() < near, "{method}");
        let said = run.summary.warnings.join("; ");
        assert!(said.contains("along the branch of its momentum"), "{method}: {said}");
        let adaptive = method.starts_with("corrected");
        assert!(said.contains("configuration 3 times") || adaptive, "{method}: {said}");
    }
}

/// A linkage that turns around before it is flat is no singular one, as near as it comes; nor is one
/// that is flat where the run ends.
#[test]
fn what_misses_a_singular_configuration_is_not_stopped() {
    for ground in [2.0 + 1e-7, 2.0 + 1e-5, 2.001, 2.1] {
        for method in ["corrected:dop853", "corrected:dop853 --rtol 1e-6", "corrected:tsit5"] {
            let run = run(parallelogram(ground), options(&format!("--until 8 --method {method}")));
            let run = run.unwrap_or_else(|e| panic!("{ground}, {method}: {e}"));
            let said = run.summary.warnings.join("; ");
            assert!(!said.contains("singular configuration"), "{ground}, {method}: {said}");
        }
    }
    // Steps that are far longer than the distance do not know the way, and are no passage.
    if let Err(error) =
        run(parallelogram(2.0 + 1e-6), options("--until 3 --method rattle --step 0.1"))
    {
        assert!(!error.to_string().contains("singular configuration"), "{error}");
    }
    let flat = "--until 1.5707963267948966 --step 0.031415926535897934 --method corrected:rk4";
    run(parallelogram(2.0), options(flat)).unwrap_or_else(|e| panic!("{e}"));
}
