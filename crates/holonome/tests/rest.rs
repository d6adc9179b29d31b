//! Systems in equilibrium stay there. Only the rounding of forces that cancel moves them, and no
//! scale of that motion tells anything about the positions.

mod common;

use common::{options, run};
use holonome::{Problem, Settings};
use std::collections::BTreeMap;

/// A rod, a triangle of rods and a chain, hanging along a direction in which no force is a round
/// number.
const HANGING: [(&str, &str); 6] = [
    (
        "a rod",
        "parameter g = (0.6, -0.8)*9.81\ncoordinate q : R^2 = 0.7*(0.6, -0.8)\nmomentum p of q\n\
         hamiltonian dot(p, p)/2 - dot(g, q)\nconstraint rod : dot(q, q) = 0.49\n",
    ),
    (
        "a rod in a field that depends on time",
        "parameter g = (0.6, -0.8)*9.81\nparameter a = 0\ncoordinate q : R^2 = 0.7*(0.6, -0.8)\nmomentum p of q\n\
         hamiltonian dot(p, p)/2 - dot(g, q) - a*cos(t)*q.x\nconstraint rod : dot(q, q) = 0.49\n",
    ),
    (
        "a triangle",
        "coordinate q[i in 1..2] : R^2 = (if(i == 1, -0.3, 0.3), -0.4)\nmomentum p of q\n\
         hamiltonian sum(i in 1..2 : dot(p[i], p[i])/2 + 9.81*q[i].y)\n\
         constraint arm[i in 1..2] : dot(q[i], q[i]) = 0.25\n\
         constraint base : dot(q[1] - q[2], q[1] - q[2]) = 0.36\n",
    ),
    (
        "a templated chain",
        "size n = 200\nparameter g = (0.6, -0.8)*9.81\ncoordinate q[i in 1..n] : R^2 = 0.7*i*(0.6, -0.8)\n\
         momentum p of q\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/2 - dot(g, q[i]))\n\
         constraint anchor : dot(q[1], q[1]) = 0.49\n\
         constraint link[i in 2..n] : dot(q[i] - q[i-1], q[i] - q[i-1]) = 0.49\n",
    ),
    // Along an axis most momenta stay 0, and some are reached only by the rounding of forces far
    // away.
    ("a templated chain along an axis", ALONG_AN_AXIS),
    ("unlike masses along an axis", UNLIKE_MASSES),
];

const ALONG_AN_AXIS: &str = "size n = 65\ncoordinate q[i in 1..n] : R^2 = (0, -i)\nmomentum p of q\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + 9.81*q[i].y)\nconstraint top : dot(q[1], q[1]) = 1\n\
    constraint link[i in 2..n] : dot(q[i] - q[i-1], q[i] - q[i-1]) = 1\n";

const UNLIKE_MASSES: &str = "size n = 80\nparameter m[i in 1..n] = if(i == 40, 1e4, 1e-4)\n\
    coordinate q[i in 1..n] : R^2 = (0, -i)\nmomentum p of q\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i]) + m[i]*9.81*q[i].y)\nconstraint top : dot(q[1], q[1]) = 1\n\
    constraint link[i in 2..n] : dot(q[i] - q[i-1], q[i] - q[i-1]) = 1\n";

/// Methods with their maximum number of steps. Adaptive ones take steps as long as the motion
/// around the equilibrium allows: √(l/g) is a quarter of a second, and the free end of the chain is
/// ten times as fast as the rod.
const METHODS: [(&str, u64); 9] = [
    ("corrected:dop853 --rtol 1e-9", 60),
    ("plain:dop853 --rtol 1e-9", 60),
    ("projection:dop853 --rtol 1e-9", 60),
    ("corrected:taylor", 60),
    ("corrected:dopri5", 150),
    ("corrected:rk4 --step 0.01", 100),
    ("corrected:dopri5 --step 0.002", 500),
    ("projection:rk4 --step 0.01", 100),
    ("symmetric-projection:rk4 --step 0.01", 100),
];

#[test]
fn what_hangs_at_rest_stays() {
    for (name, text) in HANGING {
        for (method, most_steps) in METHODS {
            let problem =
                Problem::from_text("hanging", text, &BTreeMap::new(), &Settings::default())
                    .unwrap();
            // Chains are too long for Taylor series.
            if problem.model.dimension() > 20 && method.contains("taylor") {
                continue;
            }
            let start = problem.model.initial.clone();
            let options = options(&format!("--until 1 --method {method}"));
            let finished =
                run(problem, options).unwrap_or_else(|error| panic!("{name}, {method}: {error}"));
            let largest = start.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
            for (k, (end, start)) in finished.state().iter().zip(&start).enumerate() {
                let moved = (end - start).abs() / largest;
                assert!(moved < 1e-9, "{name}, {method}: component {k} goes from {start} to {end}");
            }
            let steps = finished.summary.steps;
            assert!(steps <= most_steps, "{name}, {method}: {steps} steps");
        }
    }
}

#[test]
fn what_rests_in_any_position_is_no_false_claim() {
    // A central force keeps a rod at rest in any direction: there is no motion nearby with which to
    // compare its rounding.
    let text = "coordinate q : R^3 = (0.1, 0.2, -sqrt(0.95))\nmomentum p of q\n\
                hamiltonian dot(p, p)/2 + 9.81*dot(q, q)/2\nconstraint rod : dot(q, q) = 1\n";
    for method in ["corrected:dop853", "projection:dop853", "corrected:dopri5"] {
        for until in [20.0, 2000.0] {
            let problem =
                Problem::from_text("anywhere", text, &BTreeMap::new(), &Settings::default())
                    .unwrap();
            let options = options(&format!("--until {until} --method {method}"));
            run(problem, options).unwrap_or_else(|error| panic!("{method} until {until}: {error}"));
        }
    }
}

/// Rods floating in empty space at rest have no energy, and rounding gives one of 10⁻⁵⁹: no reason
/// for a warning.
#[test]
fn what_has_no_energy_at_rest_drifts_by_rounding_only() {
    let text = "coordinate q[i in 1..3] : R^3 = 0.9572*(cos(1.8*i), sin(2.4*i), cos(1.1*i))\nmomentum p of q\n\
        hamiltonian sum(i in 1..3 : dot(p[i], p[i])/(2*i))\n\
        let apart(i, j) = dot(q[i] - q[j], q[i] - q[j])\n\
        parameter first = 0.9572^2*((cos(1.8) - cos(3.6))^2 + (sin(2.4) - sin(4.8))^2 + (cos(1.1) - cos(2.2))^2)\n\
        constraint rod : apart(1, 2) = first\n\
        integral P = sum(i in 1..3 : p[i])\nintegral L = sum(i in 1..3 : cross(q[i], p[i]))\n";
    let problem =
        Problem::from_text("model", text, &BTreeMap::new(), &Settings::default()).unwrap();
    let finished =
        run(problem, options("--method rattle --step 0.05 --until 10 --samples 2")).unwrap();
    assert!(
        finished.summary.drift.iter().any(|drift| drift.max > 0.0),
        "nothing has moved: {:?}",
        finished.summary.drift
    );
    assert_eq!(finished.summary.warnings, [""; 0]);
}

/// A force that sets in all at once moves what has no scale yet: the relative error of a step that
/// passes that time is the same however short it is.
#[test]
fn what_rests_is_pushed_by_a_force_that_sets_in_at_once() {
    let oscillator = "coordinate q : R^2 = (0, 0)\nmomentum p of q\n\
                      hamiltonian dot(p, p)/2 + dot(q, q)/2 - if(t > 1, 1, 0)*q.x\n";
    let relay = "state x = 0\nstate y = 0\nx' = if(t < 0.5, 1, -2)\ny' = if(x > 0.3, 1, 0)\n";
    for (text, place, exact) in [
        ("state x = 0\nx' = if(t > 1, 1, 0)\n", 0, 2.0),
        (oscillator, 0, 1.0 - 2f64.cos()),
        // x is above 0.3 from t = 0.3 to t = 0.6.
        (relay, 1, 0.3),
    ] {
        for method in ["dop853", "tsit5", "dopri5"] {
            let problem =
                Problem::from_text("rest", text, &BTreeMap::new(), &Settings::default()).unwrap();
            let finished =
                run(problem, options(&format!("--method {method} --rtol 1e-9 --until 3"))).unwrap();
            let error = (finished.state()[place] - exact).abs();
            // Two or three times are passed within the tolerance of what moves already, or of what
            // decides when it moves: x turns in a step whose error is some 20 tolerances.
            assert!(error < 3e-8, "{method}: {error:e} in\n{text}");
        }
    }
}

/// Charges on a sphere, with friction (the Fekete problem of the test set for initial value
/// problems).
const CHARGES: &str = "size n = 20\nparameter a[i in 1..n] = 2.4*i\nparameter b[i in 1..n] = asin(1 - (2*i - 1)/n)\n\
    state p[i in 1..n] : R^3 = (cos(a[i])*cos(b[i]), sin(a[i])*cos(b[i]), sin(b[i]))\n\
    state q[i in 1..n] : R^3 = (0, 0, 0)\nlet lam(i) = -dot(q[i], q[i])/2 - (n - 1)/4\np[i]' = q[i]\n\
    q[i]' = -q[i]/2 + 2*lam(i)*p[i] + \
    sum(j in 1..n if j != i : (p[i] - p[j])/dot(p[i] - p[j], p[i] - p[j]))\n";

#[test]
fn stages_of_a_large_field_are_found_without_its_matrix() {
    let end = |text: &str| {
        let problem =
            Problem::from_text("charges", CHARGES, &BTreeMap::new(), &Settings::default()).unwrap();
        run(problem, options(text)).unwrap()
    };
    let exact = end("--until 100 --method dop853 --rtol 1e-11").state();
    for method in ["gauss4", "gauss6"] {
        let finished = end(&format!("--until 100 --method {method} --step 0.1"));
        // Newton's method took one to three iterations in each of a thousand steps. Where the
        // charges rest, the forces on them are rounding, a part of their terms.
        let iterations = finished.summary.cost.newton_iterations;
        assert!(iterations < 100, "{method}: {iterations}");
        // The slowest motion, friction against the charges' weakest repulsion, takes a few units of
        // time: an error of a step at the start, h⁴/720 of a force of 10, decays or turns all
        // charges together.
        let far = common::distance(&finished.state(), &exact);
        assert!(far < 1e-4, "{method}: {far:e}");
    }
}

/// A snakeboard whose axles and rotor are driven from rest.
const SNAKEBOARD: &str = "\
    coordinate x = 0\ncoordinate y = 0\ncoordinate th = 0\ncoordinate psi = 0\ncoordinate phi = 0\n\
    lagrangian (x'^2 + y'^2)/2 + 0.01*th'^2 + 0.025*(th' + psi')^2 + 0.01*(th'^2 + phi'^2)\n\
    rolling front : -sin(th + phi)*x' + cos(th + phi)*y' + 0.25*cos(phi)*th' = 0\n\
    rolling back : -sin(th - phi)*x' + cos(th - phi)*y' - 0.25*cos(phi)*th' = 0\n\
    force rotor on psi = 0.05*sin(2*t)\nforce axle on phi = 0.02*cos(2*t) - 0.05*phi\n";

#[test]
fn projections_by_the_same_multipliers_begin_at_rest() {
    // Without potential H has no gradient at rest; and a point that is pinned at 0 has no size.
    let pinned = "\
        coordinate r[i in 1..2] : R^2 = (0, 1 - i)\nmomentum p of r\n\
        hamiltonian sum(i in 1..2 : dot(p[i], p[i])/2 + 9.81*r[i].y) - 3*r[2].x\n\
        constraint pin : r[1] = (0, 0)\nconstraint rod : dot(r[2] - r[1], r[2] - r[1]) = 1\n";
    for text in [SNAKEBOARD, pinned] {
        let problem =
            Problem::from_text("rest", text, &BTreeMap::new(), &Settings::default()).unwrap();
        let with = options("--method symmetric-projection:midpoint --step 0.001 --until 0.2");
        let found = run(problem, with).unwrap_or_else(|error| panic!("{error}"));
        for row in &found.summary.drift {
            assert!(row.max < 1e-13, "{}: {:e}", row.name, row.max);
        }
    }
}

#[test]
fn collocation_starts_where_nothing_moves_yet() {
    // x, y and th begin like high powers of the time, and the forces of constraint cancel in them.
    // By the equations with multipliers, SymPy, and SciPy's DOP853 at 3e-14.
    let expected = [-3.77282209e-01, 3.19154477e-03, -6.29378927e-01, 3.26538421, 5.24921372e-01];
    for method in ["corrected:gauss16", "corrected:gauss8", "plain:gauss8", "corrected:dop853"] {
        let problem =
            Problem::from_text("rest", SNAKEBOARD, &BTreeMap::new(), &Settings::default()).unwrap();
        let with = options(&format!("--method {method} --until 5 --max-steps 3000"));
        let found = run(problem, with).unwrap_or_else(|error| panic!("{method}: {error}"));
        for (x, expected) in found.state().iter().zip(expected) {
            assert!((x - expected).abs() < 1e-8, "{method}: {x} {expected}");
        }
    }
}
