//! Forces: every method against independent numbers, with its order; the balance of the energy; the
//! contraction of the symplectic form by friction; large models against closed forms.

#![allow(clippy::excessive_precision, reason = "the references are as they were computed")]

mod common;

use common::{options, run};
use holonome::{Flow, Problem, RunOptions, StepSize};

/// Damped pendulum, Duffing's oscillator and a damped double pendulum, whose mass matrix varies,
/// with their states at a time: by Taylor series with 25 digits (mpmath 1.3, `odefun`), the first in
/// its angle.
const PENDULUM: &str = "
    coordinate q : R^2 = (1, 0)
    momentum   p of q
    hamiltonian dot(p, p)/2 + 9.81*q.y
    force drag on q = -0.1*q'
    constraint rod : dot(q, q) = 1
    observe v = q'
    observe a = q''
    observe tension = 2*lambda.rod";
const AT_PENDULUM: (f64, [f64; 4]) = (
    10.0,
    [-0.785966309105969458, -0.618269327195146947, 0.226419503542122087, -0.287832654283426891],
);
const DUFFING: &str = "
    coordinate q = 1
    momentum p of q
    hamiltonian p^2/2 - q^2/2 + q^4/4
    force damping on q = -0.3*q'
    force drive on q = 0.5*cos(1.2*t)";
const AT_DUFFING: (f64, [f64; 2]) = (10.0, [0.143962528816592399, -0.0481634312445491936]);
const DOUBLE: &str = "
    coordinate a = 1
    coordinate b = 0.5
    momentum pa of a
    momentum pb of b
    let d = 2 - cos(a - b)^2
    hamiltonian (pa^2 + 2*pb^2 - 2*pa*pb*cos(a - b))/(2*d) - 9.81*(2*cos(a) + cos(b))
    force shoulder on a = -0.1*a'
    force elbow on b = -0.1*(b' - a')";
const AT_DOUBLE: (f64, [f64; 4]) =
    (5.0, [0.220657208743394804, 0.67128778859678104, 3.98860538106571789, 3.06227158592048588]);

fn problem(text: &str) -> Problem {
    text.parse().unwrap()
}

/// Largest error of a run's end.
fn error(text: &str, (until, expected): (f64, &[f64]), with: &str) -> f64 {
    let finished = run(problem(text), options(&format!("--until {until} {with}"))).unwrap();
    let errors = finished.state().into_iter().zip(expected).map(|(x, e)| (x - e).abs());
    errors.fold(0.0, f64::max)
}

#[test]
fn accurate_methods_meet_independent_numbers() {
    // Errors at these tolerances grow by a factor of some thousands of rtol over the run at most.
    let methods = [
        ("", 3e-8),
        ("--method corrected:dop853 --rtol 1e-12", 3e-10),
        ("--method corrected:taylor --rtol 1e-13", 3e-10),
        ("--method corrected:gauss16 --rtol 1e-13", 3e-10),
        ("--method corrected:tsit5 --rtol 1e-11", 3e-8),
        ("--method plain:dop853 --rtol 1e-12", 3e-10),
        ("--method feedback:dop853 --rtol 1e-12", 3e-10),
        ("--method corrected:gauss8 --step 0.01", 1e-11),
    ];
    for (method, tolerance) in methods {
        let found = [
            error(PENDULUM, (AT_PENDULUM.0, &AT_PENDULUM.1), method),
            error(DUFFING, (AT_DUFFING.0, &AT_DUFFING.1), method),
            error(DOUBLE, (AT_DOUBLE.0, &AT_DOUBLE.1), method),
        ];
        assert!(found.iter().all(|error| *error < tolerance), "{method}: {found:?}");
    }
}

/// Slopes of the errors between the first and the last of four steps, each half of the one before.
fn order(text: &str, at: (f64, &[f64]), method: &str, first: f64) -> f64 {
    let error =
        |k: i32| error(text, at, &format!("--method {method} --step {}", first / 2f64.powi(k)));
    (error(0) / error(3)).log2() / 3.0
}

#[test]
fn methods_keep_their_orders() {
    // Orders of methods that take velocities by themselves, apart from the step and as a field.
    let pendulum = [
        ("rattle", 2.0, 0.02),
        ("strang", 2.0, 0.02),
        ("rattle:gauss4", 2.0, 0.02),
        ("suzuki4(rattle)", 4.0, 0.02),
        ("symmetric-projection:rk4", 4.0, 0.01),
    ];
    let duffing = [
        ("symplectic-euler-a", 1.0, 0.002),
        ("stormer-verlet-a", 2.0, 0.02),
        ("stormer-verlet-b", 2.0, 0.02),
        ("implicit-midpoint", 2.0, 0.02),
        ("strang", 2.0, 0.02),
        ("strang-kdk", 2.0, 0.02),
        ("zhang-skeel", 2.0, 0.02),
        ("newmark", 2.0, 0.02),
        ("pushforward-newmark", 2.0, 0.02),
        ("suzuki4(stormer-verlet-a)", 4.0, 0.04),
        ("suzuki4(strang)", 4.0, 0.04),
        ("gauss4", 4.0, 0.04),
        ("rk4", 4.0, 0.02),
    ];
    let double = [
        ("stormer-verlet-a", 2.0, 0.01),
        ("stormer-verlet-b", 2.0, 0.01),
        ("suzuki4(stormer-verlet-b)", 4.0, 0.02),
    ];
    // Velocities that differ in their rates act apart from a step that takes none.
    let apart = DUFFING.replace("-0.3*q'", "-0.3*q' - 0*q'^3 - 0.0*abs(q)*q'");
    for (text, at, methods) in [
        (PENDULUM, (AT_PENDULUM.0, &AT_PENDULUM.1[..]), &pendulum[..]),
        (DUFFING, (AT_DUFFING.0, &AT_DUFFING.1[..]), &duffing[..]),
        (&apart, (AT_DUFFING.0, &AT_DUFFING.1[..]), &duffing[1..]),
        (DOUBLE, (AT_DOUBLE.0, &AT_DOUBLE.1[..]), &double[..]),
    ] {
        for &(method, expected, first) in methods {
            let found = order(text, at, method, first);
            assert!((found - expected).abs() < 0.3, "{method}: order {found} on {text}");
        }
    }
}

#[test]
fn the_energy_is_balanced() {
    // A correction leaves a few roundings of terms up to 30; a symplectic method of order 2 leaves
    // errors that fall with the square of the step.
    let largest = |text: &str, until: f64, with: &str| {
        let finished = run(problem(text), options(&format!("--until {until} {with}"))).unwrap();
        finished.summary.drift.iter().find(|d| d.name == "energy balance").unwrap().max
    };
    for (text, until) in [(PENDULUM, 10.0), (DUFFING, 10.0), (DOUBLE, 5.0)] {
        for with in
            ["", "--method corrected:rk4 --step 0.01", "--method corrected:gauss8 --step 0.02"]
        {
            let found = largest(text, until, with);
            assert!(found < 1e-13, "{with}: {found}");
        }
    }
    for (text, method) in [(PENDULUM, "rattle"), (DUFFING, "strang"), (DOUBLE, "stormer-verlet-a")]
    {
        let at = |h: f64| largest(text, 5.0, &format!("--method {method} --step {h}"));
        let order = (at(0.01) / at(0.0025)).log2() / 2.0;
        assert!((order - 2.0).abs() < 0.2, "{method}: {order}");
    }
}

/// MᵀJM = e^(−γT) J for the derivative M of the flow over T of coupled oscillators with friction −γp.
#[test]
fn friction_contracts_the_symplectic_form_at_its_rate() {
    let text = "
        coordinate q : R^2 = (1, 0.3)
        momentum p of q = (0, 0.5)
        parameter m = 2
        hamiltonian dot(p, p)/(2*m) + q.x^2/2 + q.x*q.y^3 + q.y^4
        force friction on q = -0.7*m*q'";
    let methods = ["stormer-verlet-a", "stormer-verlet-b", "strang", "yoshida4(stormer-verlet-a)"];
    for method in methods {
        let (method, step) = (method.parse().unwrap(), StepSize::Fixed(0.1));
        let given = RunOptions { method, step, until: 2.0, ..RunOptions::default() };
        let mut flow = Flow::new(&problem(text), given).unwrap();
        let n = flow.dim();
        let mut x = vec![1.0, 0.3, 0.0, 0.5];
        let m = flow.apply_with_derivative(&mut x).unwrap();
        let j = |a: usize, b: usize| match (a, b) {
            (0, 2) | (1, 3) => 1.0,
            (2, 0) | (3, 1) => -1.0,
            _ => 0.0,
        };
        let contracted = (-0.7f64 * 2.0).exp();
        for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
            let product = |i: usize| (0..4).map(|k| j(i, k) * m[k * n + b]).sum::<f64>();
            let sum: f64 = (0..4).map(|i| m[i * n + a] * product(i)).sum();
            // Twenty steps, whose matrices have entries up to 2.
            assert!((sum - contracted * j(a, b)).abs() < 1e-13, "{a} {b}: {sum}");
        }
    }
}

/// Third mode of a chain of equal masses between fixed ends, which friction damps: x_i = sin(k i)
/// e^(−γt/2) (cos ωt + γ/(2ω) sin ωt) with ω² = 4 sin²(k/2) − γ²/4.
#[test]
fn large_models_have_forces() {
    let text = |n: usize| {
        format!(
            "size n = {n}
            parameter c = 0.05
            coordinate x[i in 0..n+1] = sin(3*pi*i/(n+1))
            momentum p[i] of x
            hamiltonian sum(i in 0..n+1 : p[i]^2/2) + sum(i in 1..n+1 : (x[i] - x[i-1])^2/2)
            force left on x[0] = x[0] - x[1]
            force right on x[n+1] = x[n+1] - x[n]
            force friction[i in 0..n+1] on x[i] = -c*x[i]'*(1 + 0*x[i]^2)
            observe power[i in 1..n] = x[i]'^2"
        )
    };
    for n in [6, 400] {
        let (c, k, t) = (0.05, 3.0 * std::f64::consts::PI / (n + 1) as f64, 20.0);
        let omega = (4.0 * (k / 2.0).sin().powi(2) - c * c / 4.0).sqrt();
        let (sin, cos) = (omega * t).sin_cos();
        let amplitude = (-c * t / 2.0).exp() * (cos + c / (2.0 * omega) * sin);
        // Errors of the second order at h = 0.01 and ω < 2: ω³h²t/24 at most.
        for (with, tolerance) in [
            ("", 1e-8),
            ("--method gauss8 --step 0.1", 1e-12),
            ("--method stormer-verlet-a --step 0.01", 7e-4),
            ("--method suzuki4(stormer-verlet-a) --step 0.02", 1e-8),
            ("--method zhang-skeel --step 0.01", 7e-4),
        ] {
            let finished = run(problem(&text(n)), options(&format!("--until {t} {with}"))).unwrap();
            let x = finished.state();
            let error = (1..=n).map(|i| (x[i] - amplitude * (k * i as f64).sin()).abs());
            let error = error.fold(0.0, f64::max);
            assert!(error < tolerance, "{n} {with}: {error}");
        }
    }
}

#[test]
fn in_a_force_on_a_family_a_bare_name_is_the_member_acted_on() {
    // Small, and too large to be unrolled; with the rows' own indices, and with two of them.
    for (n, family, own) in
        [(3, "i in 1..n", "i"), (3000, "i in 1..n", "i"), (2, "i in 1..n, k in 0..3", "i, k")]
    {
        let of = |force: &str| {
            let text = format!(
                "size n = {n}\nparameter c = 0.1\nparameter m[{family}] = 1 + 0.5*cos(i)\n\
                 coordinate r[{family}] : R^2 = (sin(i), 0.1*i)\nmomentum p of r = (0.1, -0.2*sin(i))\n\
                 hamiltonian sum({family} : dot(p[{own}], p[{own}])/(2*m[{own}]) + r[{own}].y)\n{force}\n"
            );
            let with = options("--method corrected:dop853 --until 1");
            run(problem(&text), with).unwrap_or_else(|error| panic!("{force}: {error}")).state()
        };
        let bare = of("force f on r = -c*m*r' - 0.2*p + (0, r.x)");
        let indexed = of(&format!(
            "force f[{family}] on r[{own}] = -c*m[{own}]*r[{own}]' - 0.2*p[{own}] + (0, r[{own}].x)"
        ));
        assert_eq!(bare, indexed, "{n}, {family}");
    }
}

#[test]
fn velocities_accelerations_and_multipliers_are_recorded() {
    let finished = run(problem(PENDULUM), options("--until 3 --every 0.5 --rtol 1e-12")).unwrap();
    let of = |name: &str| finished.array(name);
    for k in 0..7 {
        let (q, p) = (&of("q")[k], &of("p")[k]);
        let speed = p[0] * p[0] + p[1] * p[1];
        // In polar coordinates: q'' = −|q'|² q + (tangential forces), and 2 λ is the tension.
        let tension = speed - 9.81 * q[1];
        let along = [-q[1], q[0]];
        let tangential = -9.81 * q[0] - 0.1 * (p[0] * along[0] + p[1] * along[1]);
        for i in 0..2 {
            assert_eq!(of("v")[k][i], p[i]);
            let expected = -speed * q[i] + tangential * along[i];
            assert!((of("a")[k][i] - expected).abs() < 1e-13, "{k}: {expected}");
        }
        assert!((of("tension")[k][0] - tension).abs() < 1e-13);
        assert!((2.0 * of("lambda.rod")[k][0] - tension).abs() < 1e-13);
    }
    let by_steps =
        run(problem(PENDULUM), options("--until 3 --every 0.5 --method rattle --step 0.001"));
    let by_steps = by_steps.unwrap();
    for (a, b) in by_steps.array("lambda.rod")[1..6].iter().zip(&of("lambda.rod")[1..6]) {
        assert!((a[0] - b[0]).abs() < 1e-4, "{a:?} {b:?}");
    }
}

#[test]
fn dry_friction_is_not_linear() {
    // −3 sign(x') slows 2 down to 1.1 in 0.3, over 0.465.
    for force in ["-3*sign(x')", "-3*if(x' > 0, 1, -1)", "3 - 6*round(0.5 + 0.2*x')"] {
        let text = format!(
            "coordinate x = 0\nmomentum p of x = 2\nhamiltonian p^2/2\nforce dry on x = {force}"
        );
        let force = text.clone();
        for method in
            ["stormer-verlet-a", "stormer-verlet-b", "implicit-midpoint", "velocity-verlet"]
        {
            let with = options(&format!("--method {method} --step 0.01 --until 0.3"));
            let found =
                run(problem(&text), with).unwrap_or_else(|error| panic!("{method}: {error}"));
            let state = found.state();
            let off = (state[0] - 0.465).abs().max((state[1] - 1.1).abs());
            assert!(off < 1e-13, "{method}, {force}: {state:?}");
        }
    }
    // Large models have it, too.
    let text = "size n = 60\ncoordinate x[i in 1..n] = i\nmomentum p of x = 2\n\
                hamiltonian sum(i in 1..n : p[i]^2/2)\nforce dry[i in 1..n] on x[i] = -3*sign(x[i]')";
    for method in ["stormer-verlet-a", "stormer-verlet-b"] {
        let with = options(&format!("--method {method} --step 0.01 --until 0.3"));
        let state = run(problem(text), with).unwrap().state();
        let off = (state[59] - 60.465).abs().max((state[119] - 1.1).abs());
        assert!(off < 1e-12, "{method}: {off:e}");
    }
}

#[test]
fn quadratic_drag_begins_at_rest() {
    // y' = −tanh(t) at g = c = 1.
    let text = "coordinate r : R^2 = (0, 0)\nmomentum p of r\nhamiltonian dot(p, p)/2 + r.y\n\
                force drag on r = -norm(r')*r'";
    for method in ["radau5", "corrected:radau5", "corrected:dop853"] {
        let with = options(&format!("--method {method} --rtol 1e-10 --until 2"));
        let state = run(problem(text), with).unwrap_or_else(|e| panic!("{method}: {e}")).state();
        let off = (state[1] + 2f64.cosh().ln()).abs().max((state[3] + 2f64.tanh()).abs());
        assert!(off < 1e-8, "{method}: {off:e}");
    }
}

#[test]
fn samples_of_collocation_are_as_good_as_its_steps() {
    // A decay that is so fast that iterations in a part of a step contract slowly:
    // y = (1 + 100 t) e^(−100 t).
    let text =
        "coordinate y = 1\nmomentum p of y\nhamiltonian p^2/2 + 1e4*y^2/2\nforce d on y = -200*y'";
    for method in ["corrected:gauss8", "plain:gauss8", "corrected:gauss16"] {
        let with = options(&format!("--method {method} --until 0.6 --samples 601"));
        let found = run(problem(text), with).unwrap();
        for (t, y) in found.times().iter().zip(found.array("y")) {
            let exact = (1.0 + 100.0 * t) * (-100.0 * t).exp();
            // A balance of energy that is off by 1e-10 of the first energy moves what has decayed.
            assert!((y[0] - exact).abs() < 1e-4, "{method}: {} {exact} at {t}", y[0]);
        }
    }
}

/// Two bodies and one without mass in their field, by Taylor series with 22 digits (mpmath 1.3,
/// `odefun`).
const TEST_BODY: &str = "
    parameter m[i in 1..3] = list(1, 0.1, 0)
    coordinate r[i in 1..3] : R^2 = list((0, 0), (1, 0), (0.5, 0.9))
    momentum p of r = list((0, -0.1), (0, 0.1), (-0.8, 0.4))
    hamiltonian sum(i in 1..3 : dot(p[i], p[i])/(2*m[i])) - sum(i in 1..3, j in i+1..3 : m[i]*m[j]/norm(r[i] - r[j]))
    integral P = sum(i in 1..3 : p[i])";
const AT_TEST_BODY: (f64, [f64; 12]) = (
    3.0,
    [
        0.193453271041096232,
        -0.0405058984900273845,
        -0.934532710410962323,
        0.405058984900273845,
        0.405894627650272901,
        -0.734417404180302102,
        0.0333987016079793468,
        0.0754607883540181349,
        -0.0333987016079793468,
        -0.0754607883540181349,
        1.33113040260299176,
        0.279844644374220041,
    ],
);

#[test]
fn bodies_without_mass_move_in_the_field_of_the_others() {
    let at = (AT_TEST_BODY.0, &AT_TEST_BODY.1[..]);
    for method in ["corrected:dop853", "plain:dop853", "gauss16", "taylor", "gauss8"] {
        let found = error(TEST_BODY, at, &format!("--method {method} --rtol 1e-13 --atol 1e-15"));
        // The test body passes the larger one at a distance of 0.4, where errors grow a hundredfold.
        assert!(found < 1e-10, "{method}: {found:e}");
    }
    // What is kept is the energy of the bodies with mass: a few roundings of 0.1 over many steps.
    let finished = run(problem(TEST_BODY), options("--until 100")).unwrap();
    for name in ["energy balance", "P"] {
        let drift = finished.summary.drift.iter().find(|drift| drift.name == name).unwrap().max;
        assert!(drift < 1e-14, "{name}: {drift:e}");
    }
    for (method, expected) in [("stormer-verlet-a", 2.0), ("suzuki4(strang)", 4.0)] {
        let found = order(TEST_BODY, at, method, 0.01);
        assert!((found - expected).abs() < 0.15, "{method}: {found}");
    }
}
