//! Units change nothing: a model whose units of length, mass and time are other powers of two takes
//! the same steps, and has the rescaled trajectory bit for bit. Every operation of a step commutes
//! with such a change, so any absolute number in the code shows here.

mod common;

use common::run;
use holonome::{Problem, RunOptions, Settings, StepSize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Units of length, mass and time.
#[derive(Clone, Copy)]
struct Units {
    length: f64,
    mass: f64,
    time: f64,
}

const SI: Units = Units { length: 1.0, mass: 1.0, time: 1.0 };

/// Units so different that squares of momenta and energies span 180 binary orders of magnitude.
fn others() -> [Units; 3] {
    let of = |length: i32, mass: i32, time: i32| Units {
        length: 2f64.powi(length),
        mass: 2f64.powi(mass),
        time: 2f64.powi(time),
    };
    [of(-33, -80, -44), of(38, 70, 20), of(0, 27, -11)]
}

/// Models in which `{L}`, `{M}` and `{T}` are the units. They appear in parameters and initial
/// values only: a constant of a formula is part of it, and 1 is left out while 2 is not.
const MODELS: [(&str, &str); 5] = [
    (
        "spherical pendulum",
        "parameter m = 1.3*{M}\nparameter g = 9.81*{L}/{T}^2\nparameter l = 0.8*{L}\n\
         coordinate q : R^3 = (0, 0.8, 0)*{L}\nmomentum p of q = (0.7, 0, -0.4)*{M}*{L}/{T}\n\
         hamiltonian dot(p, p)/(2*m) + m*g*q.z\nconstraint rod : dot(q, q) = l^2\nintegral J = q.x*p.y - q.y*p.x\n",
    ),
    (
        "light body beside heavy ones",
        "parameter m[i in 1..3] = {M}*(1, 0.5, 1e-6)[i]\nparameter G = 1.1*{L}^3/({M}*{T}^2)\n\
         coordinate q[i in 1..3] : R^3 = {L}*if(i == 1, (0.4, 0, 0), if(i == 2, (-0.6, 0, 0.1), (5, 1, 0)))\n\
         momentum p[i] of q = m[i]*{L}/{T}*if(i == 1, (0, 0.4, 0), if(i == 2, (0, -0.8, 0), (0.1, 0.5, 0)))\n\
         hamiltonian sum(i in 1..3 : dot(p[i], p[i])/(2*m[i])) - sum(i in 2..3, j in 1..i-1 : G*m[i]*m[j]/norm(q[i] - q[j]))\n\
         integral P = sum(i in 1..3 : p[i])\nintegral L = sum(i in 1..3 : cross(q[i], p[i]))\n",
    ),
    (
        "double pendulum from rest",
        "parameter g = 9.81*{L}/{T}^2\nparameter m = {M}\nparameter l = {L}\n\
         coordinate a : R^2 = (1, 0)*{L}\ncoordinate b : R^2 = (1, 0.5)*{L}\nmomentum pa of a\nmomentum pb of b\n\
         hamiltonian (dot(pa, pa)/2 + dot(pb, pb)/0.6)/m + g*m*(a.y + 0.3*b.y)\n\
         constraint upper : dot(a, a) = l^2\nconstraint lower : dot(b - a, b - a) = 0.25*l^2\n",
    ),
    (
        "free rigid body as states",
        "parameter I = {M}*{L}^2*diag(3, 2, 1)\nstate R : R^(3,3) = identity(3)\nstate w : R^3 = (1, 1, 1)/{T}\n\
         R' = R*hat(w)\nw' = inverse(I)*cross(I*w, w)\n\
         constraint orthogonal : transpose(R)*R = identity(3)\nintegral E = dot(w, I*w)/2\nintegral Pi = R*I*w\n",
    ),
    (
        "templated chain",
        "size n = 60\nparameter k = 2.5*{M}*{L}/{T}^2\nparameter m = {M}\nparameter l = {L}\n\
         coordinate r[i in 1..n] : R^2 = {L}*(0.6*i, 0.8*i)\nmomentum p of r\n\
         hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m) + k*r[i].y)\n\
         constraint anchor : dot(r[1], r[1]) = l^2\n\
         constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = l^2\n",
    ),
];

/// Methods of every family, with steps in the unit of time.
const METHODS: [(&str, Option<f64>); 16] = [
    ("corrected:dop853", None),
    ("corrected:tsit5", None),
    ("plain:dopri5", None),
    ("projection:dop853", None),
    ("corrected:rk4", Some(0.0078125)),
    ("corrected:dop853", Some(0.015625)),
    ("corrected:euler", Some(0.0009765625)),
    ("projection:rk4", Some(0.0078125)),
    ("corrected:radau5", None),
    ("radau5", Some(0.015625)),
    ("feedback:dop853", None),
    ("feedback:rk4", Some(0.0078125)),
    ("rattle", Some(0.0078125)),
    ("shake", Some(0.0078125)),
    ("gauss4", Some(0.015625)),
    ("implicit-midpoint", Some(0.015625)),
];

fn with_numbers(text: &str, units: Units) -> String {
    text.replace("{L}", &format!("{:?}", units.length))
        .replace("{M}", &format!("{:?}", units.mass))
        .replace("{T}", &format!("{:?}", units.time))
}

/// A start off the level set of a model: initial values, and the target state.
type Off = (&'static [(&'static str, &'static str)], &'static str);

fn in_units(text: &str, units: Units, off: Option<Off>) -> Problem {
    let text = with_numbers(text, units);
    let set = off.map_or(&[][..], |(set, _)| set);
    let set =
        set.iter().map(|(name, value)| (name.to_string(), with_numbers(value, units))).collect();
    let settings = Settings { set, start_off_set: off.is_some(), ..Settings::default() };
    Problem::from_text("units", &text, &BTreeMap::new(), &settings)
        .expect("the model is sound in any units")
}

fn numbers(value: &Value, out: &mut Vec<f64>) {
    match value {
        Value::Array(list) => list.iter().for_each(|v| numbers(v, out)),
        Value::Object(map) => map.values().for_each(|v| numbers(v, out)),
        other => out.extend(other.as_f64()),
    }
}

/// Number of steps, and every component of the final state; or the reason why the method does not
/// suit the model.
fn end(
    text: &str,
    units: Units,
    method: &str,
    step: Option<f64>,
) -> Result<(u64, Vec<f64>), String> {
    end_of(text, units, method, step, None)
}

fn end_of(
    text: &str,
    units: Units,
    method: &str,
    step: Option<f64>,
    off: Option<Off>,
) -> Result<(u64, Vec<f64>), String> {
    let options = RunOptions {
        method: method.parse().unwrap(),
        step: step.map_or(StepSize::adaptive(1e-7), |h| StepSize::Fixed(h * units.time)),
        until: 2.0 * units.time,
        samples: Some(2),
        reference: off.map(|(_, reference)| with_numbers(reference, units)),
        ..RunOptions::default()
    };
    let finished = run(in_units(text, units, off), options).map_err(|error| error.to_string())?;
    let mut state = Vec::new();
    numbers(&json!(finished.summary)["state"], &mut state);
    Ok((finished.summary.steps, state))
}

#[test]
fn powers_of_two_change_no_bit() {
    for (name, text) in MODELS {
        for (method, step) in METHODS {
            let Ok((steps, state)) = end(text, SI, method, step) else {
                assert!(
                    end(text, others()[0], method, step).is_err(),
                    "{name}, {method}: suits the model in some units only"
                );
                continue;
            };
            for units in others() {
                let (others, rescaled) =
                    end(text, units, method, step).expect("it suits the model");
                assert_eq!(steps, others, "{name}, {method}: steps");
                check_bits(&format!("{name}, {method}"), &state, &rescaled);
            }
        }
    }
}

/// Check that every component has changed by a power of two.
fn check_bits(what: &str, state: &[f64], rescaled: &[f64]) {
    for (k, (a, b)) in state.iter().zip(rescaled).enumerate() {
        let exact = if *a == 0.0 { *b == 0.0 } else { (b / a).to_bits() & ((1 << 52) - 1) == 0 };
        assert!(exact, "{what}: component {k} is {a:e} and {b:e}");
    }
}

/// Feedback moves a state far off the level set, so a metric that mixed units would show in the
/// first digits.
#[test]
fn feedback_off_the_set_changes_no_bit() {
    let starts: [(&str, Off); 4] = [
        ("spherical pendulum", (&[("q", "(0.01, 0.83, 0.02)*{L}")], "q=(0, 0.8, 0)*{L}")),
        ("double pendulum from rest", (&[("a", "(1.02, 0.03)*{L}")], "a=(1, 0)*{L}")),
        ("free rigid body as states", (&[("w", "(1.1, 0.9, 1)/{T}")], "w=(1, 1, 1)/{T}")),
        (
            "templated chain",
            (
                &[("l", "1.001*{L}"), ("r", "1.001*{L}*(0.6*i, 0.8*i)")],
                "r=1.001*{L}*(0.8*i, 0.6*i)",
            ),
        ),
    ];
    for (name, off) in starts {
        let (_, text) = MODELS.into_iter().find(|(model, _)| *model == name).expect("one of them");
        for (method, step) in [("feedback:dop853", None), ("feedback:rk4", Some(0.0078125))] {
            let (steps, state) = end_of(text, SI, method, step, Some(off)).unwrap();
            let (_, held) = end_of(text, SI, "plain:dop853", None, Some((off.0, off.1))).unwrap();
            assert!(common::distance(&state, &held) > 1e-4, "{name}, {method}: nothing pulls");
            for units in others() {
                let (others, rescaled) = end_of(text, units, method, step, Some(off)).unwrap();
                assert_eq!(steps, others, "{name}, {method}: steps");
                check_bits(&format!("{name}, {method}"), &state, &rescaled);
            }
        }
    }
}

#[test]
fn other_factors_change_the_trajectory_by_rounding() {
    // Units such as 1e-9 round every constant once more, by 1e-16 of its size. Adaptive steps of
    // 1e-7 pass this on as their errors, a few hundred steps as a hundred times it, pendula over
    // two seconds as ten times that, and a chain of sixty as a hundred thousand times.
    let units = Units { length: 1e-9, mass: 1e-25, time: 1e-12 };
    for (name, text) in MODELS {
        let (steps, state) = end(text, SI, "corrected:dop853", None).unwrap();
        let (others, rescaled) = end(text, units, "corrected:dop853", None).unwrap();
        assert_eq!(steps, others, "{name}");
        let momentum = units.mass * units.length / units.time;
        let largest = state.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        for (a, b) in state.iter().zip(&rescaled).filter(|(a, _)| a.abs() > 1e-3 * largest) {
            let candidates = [1.0, units.length, momentum, 1.0 / units.time];
            let off = candidates
                .iter()
                .map(|unit| (b / (a * unit) - 1.0).abs())
                .fold(f64::INFINITY, f64::min);
            let bound = if name.ends_with("chain") { 1e-9 } else { 1e-11 };
            assert!(off < bound, "{name}: {a:e} and {b:e}");
        }
    }
}
