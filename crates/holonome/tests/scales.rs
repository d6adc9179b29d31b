//! Runs whose scales are far from 1, or unlike each other: late times, huge states, nearly massless
//! bodies, and what begins to move from rest.

mod common;

use common::{distance, options, run};
use holonome::{Problem, Settings};
use std::collections::BTreeMap;

fn problem(text: &str) -> Problem {
    Problem::from_text("model", text, &BTreeMap::new(), &Settings::default()).unwrap()
}

/// Problem whose time goes from `from` to `until`.
fn problem_in(text: &str, from: f64, until: f64) -> Problem {
    let settings = Settings { span: Some((Some(from), Some(until))), ..Settings::default() };
    Problem::from_text("model", text, &BTreeMap::new(), &settings).unwrap()
}

fn end(text: &str, line: &str) -> Vec<f64> {
    run(problem(text), options(line))
        .unwrap_or_else(|error| panic!("{line}: {error}\n{text}"))
        .state()
}

/// Andrews' squeezing mechanism (Hairer, Wanner 1996, VII.7, table 7.1 and (7.7)): seven bodies in
/// the plane, three loops, driven by a torque from rest.
const SQUEEZER: &str = "\
parameter m = (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498)
parameter I = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
parameter a = (-0.06934, -0.00227)
parameter b = (-0.03635, 0.03273)
parameter c = (0.014, 0.072)
parameter d = 0.028
parameter da = 0.0115
parameter e = 0.02
parameter ea = 0.01421
parameter rr = 0.007
parameter ra = 0.00092
parameter ss = 0.035
parameter sa = 0.01874
parameter sb = 0.01043
parameter sc = 0.018
parameter sd = 0.02
parameter ta = 0.02308
parameter tb = 0.00916
parameter u = 0.04
parameter ua = 0.01228
parameter ub = 0.00449
parameter zf = 0.02
parameter zt = 0.04
parameter fa = 0.01421
parameter torque = 0.033
parameter c0 = 4530
parameter l0 = 0.07785
coordinate q : R^7 = (-0.0617138900142764496358948458001, 0, 0.455279819163070380255912382449,
    0.222668390165885884674473185609, 0.487364979543842550225598953530, -0.222668390165885884674473185609,
    1.23054744454982119249735015568)
momentum p of q
let A12 = m[2]*(da^2 - da*rr*cos(q[2])) + I[2]
let A = matrix((m[1]*ra^2 + m[2]*(rr^2 - 2*da*rr*cos(q[2]) + da^2) + I[1] + I[2], A12), (A12, m[2]*da^2 + I[2]))
let k = e - ea
let B12 = m[4]*(k^2 + zt*k*sin(q[4])) + I[4]
let B = matrix((m[4]*k^2 + I[4], B12),
               (B12, m[4]*(zt^2 + 2*zt*k*sin(q[4]) + k^2) + m[5]*(ta^2 + tb^2) + I[4] + I[5]))
let f = zf - fa
let C12 = m[6]*(f^2 - u*f*sin(q[6])) + I[6]
let C = matrix((m[6]*f^2 + I[6], C12),
               (C12, m[6]*(f^2 - 2*u*f*sin(q[6]) + u^2) + m[7]*(ua^2 + ub^2) + I[6] + I[7]))
let x = b + (sd*cos(q[3]) + sc*sin(q[3]), sd*sin(q[3]) - sc*cos(q[3])) - c
let s = rr*(cos(q[1]), sin(q[1])) - d*(cos(q[1] + q[2]), sin(q[1] + q[2]))
let pA = (p[1], p[2])
let pB = (p[4], p[5])
let pC = (p[6], p[7])
let kinetic = dot(pA, inverse(A)*pA)/2 + dot(pB, inverse(B)*pB)/2 + dot(pC, inverse(C)*pC)/2
hamiltonian kinetic + p[3]^2/(2*(m[3]*(sa^2 + sb^2) + I[3])) + c0/2*(norm(x) - l0)^2 - torque*q[1]
constraint one   : s - ss*(sin(q[3]), -cos(q[3])) = b
constraint two   : s - e*(sin(q[4] + q[5]), -cos(q[4] + q[5])) - zt*(cos(q[5]), sin(q[5])) = a
constraint three : s - zf*(cos(q[6] + q[7]), sin(q[6] + q[7])) - u*(sin(q[7]), -cos(q[7])) = a
";

/// The angles at t = 0.03, as the collection of test problems of Bari (Mazzia, Magherini 2008) has
/// them.
const SQUEEZED: [f64; 7] = [
    15.81077119629904,
    -15.75637105984298,
    0.04082224013073101,
    -0.5347301163226948,
    0.5244099658805304,
    0.5347301163226948,
    1.048080741042263,
];

#[test]
fn a_mechanism_starts_from_rest() {
    for method in ["rattle", "shake"] {
        let [coarse, fine] = ["4e-5", "2e-5"].map(|h| {
            let end =
                end(SQUEEZER, &format!("--method {method} --step {h} --until 0.03 --samples 2"));
            distance(&end[..7], &SQUEEZED)
        });
        // Of order 2: a quarter, up to terms of order 4, which are a hundredth of these.
        assert!(fine < 3e-4 && (coarse / fine - 4.0).abs() < 0.1, "{method}: {coarse:e} {fine:e}");
    }
    for method in ["corrected:dop853", "corrected:gauss16", "corrected:radau5"] {
        let end = end(SQUEEZER, &format!("--method {method} --rtol 1e-9 --until 0.03 --samples 2"));
        // Errors of steps of 1e-9 grow a hundredfold on the way: the angle turns by 16.
        assert!(distance(&end[..7], &SQUEEZED) < 1e-6, "{method}: {end:?}");
    }
}

const KEPLER: &str = "coordinate q : R^2 = (0.4, 0)\nmomentum p of q = (0, 2)\n\
    hamiltonian dot(p, p)/2 - 1/norm(q)\nintegral L = q.x*p.y - q.y*p.x\n";

/// A run of a system that knows no time is the same at any time, however short it is beside that:
/// 2¹⁰ roundings of a Julian day and more.
#[test]
fn steps_are_counted_from_the_start() {
    let methods = [
        "corrected:dop853",
        "plain:tsit5",
        "gauss16",
        "radau5",
        "taylor",
        "projection:bs3",
        "corrected:rk4 --step 2e-9",
    ];
    for (from, span) in
        [(2460000.5, 2f64.powi(-21)), (-(2f64.powi(40)), 2f64.powi(-2)), (1.0, 2f64.powi(-42))]
    {
        for method in methods {
            // In units in which the run takes half a turn or so.
            let text = format!(
                "parameter u = {span:e}\ncoordinate q : R^2 = (0.4, 0)\nmomentum p of q = (0, 2)/u\n\
                hamiltonian dot(p, p)/2 - 1/(u*u*norm(q))\nintegral L = q.x*p.y - q.y*p.x\n"
            );
            let method = method.replace("2e-9", &format!("{:e}", span / 128.0));
            let until = from + span;
            let late = run(
                problem_in(&text, from, until),
                options(&format!("--method {method} --until {until:?}")),
            );
            let late = late.unwrap_or_else(|error| panic!("{method} from {from}: {error}"));
            let early =
                run(problem(&text), options(&format!("--method {method} --until {span:?}")))
                    .unwrap();
            assert_eq!(late.state(), early.state(), "{method} from {from}");
            let [a, b] = [&late, &early].map(|run| (run.array("q"), run.times()));
            // Equal sample times have equal states; those of the late run are rounded.
            let common = (0..a.1.len()).filter(|&k| a.1[k] - from == b.1[k]);
            assert!(
                common.clone().count() > 2 && common.clone().all(|k| a.0[k] == b.0[k]),
                "{method} from {from}"
            );
        }
    }
}

/// A force that depends on the time is that of its rounded time, which no step resolves better.
#[test]
fn a_late_force_is_followed() {
    // x'' = −x + sin t, with the phase of t as it is: x = (sin t − t cos t)/2 from 0 on, for the
    // time since then.
    let text = "parameter t0 = 2460000.5\ncoordinate x = 0\nmomentum p of x\n\
        hamiltonian p^2/2 + x^2/2 - x*sin(t - t0)\n";
    for method in ["dop853", "tsit5", "gauss16"] {
        let (from, until) = (2460000.5, 2460001.5);
        let line = format!("--method {method} --until {until:?} --rtol 1e-9");
        let x = run(problem_in(text, from, until), options(&line)).unwrap().state()[0];
        let exact = (1f64.sin() - 1f64.cos()) / 2.0;
        // Times are off by 2.3e-10, and the force by as much, relative to a force of 1 and x of
        // 0.15.
        assert!((x - exact).abs() < 1e-8, "{method}: {x} {exact}");
    }
}

/// Where H is a small difference of squares near the largest numbers, and where the unit of
/// everything is far from 1.
#[test]
fn squares_of_rows_do_not_overflow() {
    let text = "coordinate q = 0\nmomentum p of q = 1\nhamiltonian p^2/2 - q^2\n";
    // q = sinh(√2 t)/√2.
    let exact = (2f64.sqrt() * 200.0).exp() / 8f64.sqrt();
    for method in
        ["corrected:dop853", "projection:dop853", "corrected:gauss16", "corrected:rk4 --step 0.01"]
    {
        let q = end(text, &format!("--method {method} --until 200 --samples 2"))[0];
        // The relative error of a step of 1e-9, or of (√2 h)⁵/5!, in hundreds of time units.
        assert!((q / exact - 1.0).abs() < 1e-6, "{method}: {q:e} {exact:e}");
    }
    // H is of the order of 1e180, or 1e-200.
    for exponent in [90, -100] {
        let unit = 10f64.powi(exponent);
        let text = format!(
            "parameter u = {unit:e}\ncoordinate q : R^2 = u*(0.4, 0)\nmomentum p of q = u*(0, 2)\n\
             hamiltonian dot(p, p)/2 - u^3/norm(q)\nintegral L = q.x*p.y - q.y*p.x\n"
        );
        for method in [
            "corrected:dop853",
            "projection:tsit5",
            "corrected:taylor",
            "corrected:rk4 --step 0.001",
        ] {
            let line = format!("--method {method} --until 20 --samples 2");
            let finished = run(problem(&text), options(&line))
                .unwrap_or_else(|error| panic!("{method}: {error}"));
            let scaled: Vec<f64> = finished.state().into_iter().map(|x| x / unit).collect();
            // Powers of ten round: by 1e-16 in H, which three turns make ten times as large, and
            // each step's 1e-9.
            assert!(distance(&scaled, &end(KEPLER, &line)) < 1e-7, "{method} {unit:e}");
            let drift = finished
                .summary
                .drift
                .iter()
                .map(|drift| drift.max / (unit * unit))
                .fold(0.0, f64::max);
            // Some roundings of H's terms, which are about 5.
            assert!(drift < 1e-13, "{method} {unit:e}: {drift:e}");
        }
    }
}

/// A bob on a rod of nearly no mass is a pendulum, and the rod costs no more than the accuracy of
/// its velocity.
#[test]
fn a_nearly_massless_rod_is_no_burden() {
    let rod = |ratio: &str| {
        format!(
            "parameter l = 2\nparameter mr = {ratio}\ncoordinate c : R^2 = (l/2, 0)\ncoordinate th = 0\n\
             coordinate b : R^2 = (l, 0)\nmomentum pc of c\nmomentum pth of th\nmomentum pb of b\n\
             hamiltonian dot(pc, pc)/(2*mr) + pth^2/(2*mr*l^2/12) + dot(pb, pb)/2 + 9.81*(mr*c.y + b.y)\n\
             constraint pivot : c - (cos(th), sin(th))*l/2 = (0, 0)\n\
             constraint tip : c + (cos(th), sin(th))*l/2 = b\n"
        )
    };
    let bob = end(
        "coordinate th = 0\nmomentum p of th\nhamiltonian p^2/(2*4) + 9.81*2*sin(th)\n",
        "--until 1 --rtol 1e-12",
    );
    let exact = [2.0 * bob[0].cos(), 2.0 * bob[0].sin()];
    for (ratio, most_steps) in [("1e-9", 200), ("1e-12", 10_000)] {
        let finished = run(problem(&rod(ratio)), options("--until 1 --samples 2")).unwrap();
        let off = distance(&finished.state()[3..5], &exact);
        let steps = finished.summary.steps;
        // The velocity of the rod is known to a rounding of the forces at its ends over its mass,
        // 1e-16·10 h/m, and a part of that goes over to the bob where positions are good to 1e-9:
        // 1e-7 in all.
        assert!(off < 5e-7 && steps < most_steps, "{ratio}: {off:e} after {steps} steps");
    }
    // Two bodies that know nothing of each other are as accurate as each by itself, however light
    // one is.
    let apart = "parameter m = 1e-12\ncoordinate a = 0.3\nmomentum p of a = 0.7\ncoordinate b = 0.3\n\
        momentum u of b = 0.7*m\nhamiltonian p^2/2 - cos(a) + u^2/(2*m) - m*cos(b)\n";
    let found = end(apart, "--method dop853 --until 100 --samples 2");
    let (heavy, light) = ((found[0], found[2]), (found[1], found[3] / 1e-12));
    // The same oscillation twice, in one step control; 1e-12 rounds.
    assert!((heavy.0 - light.0).abs() < 1e-9 && (heavy.1 - light.1).abs() < 1e-9, "{found:?}");
}

/// A force that grows from 0 while everything is at rest is the rounding of t at first.
#[test]
fn what_rests_is_pushed_by_a_force_that_grows_from_nothing() {
    // x = (t − 30)³/6.
    let ramp = "coordinate q = 0\nmomentum p of q\nhamiltonian p^2/2 - q*max(t - 30, 0)\n";
    let field = "state x = 0\nstate v = 0\nx' = v\nv' = max(t - 30, 0)\n";
    let beside = "coordinate q[i in 1..2] = i - 1\nmomentum p of q\n\
        hamiltonian sum(i in 1..2 : p[i]^2/2) + q[2]^2/2 - q[1]*max(t - 30, 0)\n";
    for (text, rtol) in
        [(ramp, "1e-9"), (ramp, "1e-6"), (field, "1e-9"), (beside, "1e-9"), (ramp, "1e-12")]
    {
        for method in ["dop853", "tsit5", "bs3", "gauss16"] {
            if method == "bs3" && rtol == "1e-12" {
                continue;
            }
            let finished =
                run(problem(text), options(&format!("--method {method} --rtol {rtol} --until 40")))
                    .unwrap();
            let x = finished.state()[0];
            let exact = 1000.0 / 6.0;
            // A cubic, which the methods integrate without an error but for where it begins.
            let tolerance = 100.0 * rtol.parse::<f64>().unwrap();
            assert!((x / exact - 1.0).abs() < tolerance.max(1e-9), "{method} {rtol}: {x}\n{text}");
            assert!(
                finished.summary.steps < 20_000,
                "{method} {rtol}: {} steps",
                finished.summary.steps
            );
        }
    }
}
