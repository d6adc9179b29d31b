//! Results that look right and are not: invariants that are lost, pulses that steps pass over,
//! advice.

mod common;

use common::{Folder, number};
use serde_json::Value;

fn lost(summary: &Value) -> Vec<&str> {
    summary["lost"]
        .as_array()
        .map_or(Vec::new(), |lost| lost.iter().map(|name| name.as_str().unwrap()).collect())
}

#[test]
fn what_is_lost_is_told_in_any_coordinates() {
    let folder = Folder::new();
    // A geodesic of the half-plane: x = tanh t, y = 1/cosh t. Coordinates of very different sizes.
    let plane = "coordinate x = 0\ncoordinate y = 1\nmomentum px of x = 1\nmomentum py of y = 0\n";
    folder.write("plane.holo", format!("{plane}hamiltonian y^2*(px^2 + py^2)/2\n"));
    // The same in one vector.
    let vector =
        "coordinate q : R^2 = (0, 1)\nmomentum p of q = (1, 0)\nhamiltonian q.y^2*dot(p, p)/2\n";
    folder.write("vector.holo", vector);
    // An angle of many turns, whose torque is no energy.
    let rotor = "coordinate a = 1e4\nmomentum l of a = 3\nhamiltonian l^2/2 - 4*cos(a)\n";
    folder.write("rotor.holo", rotor);
    // A stiff spring: its terms are a thousand times all energy.
    let spring = "parameter k = 1e6\ncoordinate q : R^2 = (1.001, 0)\nmomentum p of q\n";
    folder.write("spring.holo", format!("{spring}hamiltonian dot(p, p)/2 + k*(norm(q) - 1)^2/2\n"));
    // Two bodies that know nothing of each other, the second far lighter.
    let light =
        "parameter m = 1e-9\ncoordinate a = 0.3\nmomentum p of a = 0.7\ncoordinate b = 0.05\n";
    let second = "momentum u of b = 0.1*m\nhamiltonian p^2/2 - cos(a) + u^2/(2*m) + 40*m*b^2\n";
    folder.write("light.holo", format!("{light}{second}integral E = u^2/(2*m) + 40*m*b^2\n"));
    for (model, run, names) in [
        ("plane", "--method euler --step 0.1 --until 50", &["H"][..]),
        ("plane", "--until 50", &[]),
        ("plane", "--method dop853 --until 50", &[]),
        ("plane", "--method gauss4 --step 0.1 --until 50", &[]),
        ("vector", "--method euler --step 0.1 --until 50", &["H"]),
        ("vector", "--until 50", &[]),
        ("rotor", "--method euler --step 0.1 --until 50", &["H"]),
        ("rotor", "--method rk4 --step 0.1 --until 50", &[]),
        ("spring", "--method euler --step 1e-4 --until 0.1", &["H"]),
        ("spring", "--method rk4 --step 1e-4 --until 0.1", &[]),
        ("light", "--method euler --step 0.01 --until 10", &["E"]),
        ("light", "--method rk4 --step 0.01 --until 10", &[]),
    ] {
        let summary = folder.summary(&format!("run {model}.holo {run}"));
        assert_eq!(lost(&summary), names, "{model} {run}: {summary}");
        let warned = summary["warnings"].to_string().contains(" drifts by ");
        assert_eq!(warned, !names.is_empty(), "{model} {run}: {summary}");
        // What is kept is kept relative to itself, not to a coordinate.
        if names.is_empty() && model == "plane" && run.starts_with("--until") {
            let relative = number(&summary, "/drift/hamiltonian/relative/max");
            assert!((1e-18..1e-14).contains(&relative), "{summary}");
        }
    }
    // Nine tenths of H = 1/2 are lost.
    let summary = folder.summary("run plane.holo --method euler --step 0.1 --until 50");
    assert!(number(&summary, "/drift/hamiltonian/relative/max") > 0.1, "{summary}");
    // A sweep tells the same, in lanes.
    for (run, names) in [("euler --step 0.1", &["H"][..]), ("rk4 --step 0.1", &[])] {
        let sweep = format!(
            "sweep plane.holo --method {run} --until 50 --trajectories 8 --vary px=0.9+0.02*i"
        );
        let summary = folder.summary(&sweep);
        assert_eq!(lost(&summary), names, "{summary}");
    }
}

#[test]
fn a_run_that_blows_up_is_not_measured_by_its_explosion() {
    let folder = Folder::new();
    let atwood = "coordinate r = 1\ncoordinate th = pi/2\nmomentum pr of r\nmomentum pth of th\n";
    folder.write(
        "atwood.holo",
        format!("{atwood}hamiltonian pr^2/8 + pth^2/(2*r^2) + 9.81*r*(3 - cos(th))\n"),
    );
    let summary = folder.summary("run atwood.holo --method dop853 --step 2 --until 20");
    assert!(number(&summary, "/drift/hamiltonian/relative/max") > 10.0, "{summary}");
    assert_eq!(lost(&summary), ["H"]);
    assert!(lost(&folder.summary("run atwood.holo --until 20")).is_empty());
    // A head-on collision ends in the pole; whoever jumps it has another energy.
    let masses = "coordinate a = 0\ncoordinate b = 1\nmomentum u of a\nmomentum v of b\n";
    folder.write("collision.holo", format!("{masses}hamiltonian u^2/2 + v^2/2 - 1/abs(a - b)\n"));
    for step in ["0.1", "0.03", "0.01", "0.003"] {
        let summary =
            folder.summary(&format!("run collision.holo --method rk4 --step {step} --until 5"));
        assert_eq!(lost(&summary), ["H"], "{step}: {summary}");
    }
}

/// x'' = −x + a pulse of the area √π at t = 50 and of the width w: for w → 0, x = x₀ cos t + √π
/// sin(t − 50) after it. A Gaussian's Fourier transform makes that exact: the factor is exp(−w²/4).
fn pulsed(x0: f64, w: f64, t: f64) -> f64 {
    x0 * t.cos() + std::f64::consts::PI.sqrt() * (-w * w / 4.0).exp() * (t - 50.0).sin()
}

#[test]
fn pulses_are_not_passed_over() {
    let folder = Folder::new();
    let pulse = "parameter w = 0.01\ncoordinate q = 0\nmomentum p of q = 0\n";
    folder.write(
        "pulse.holo",
        format!("{pulse}hamiltonian p^2/2 + q^2/2 - q*exp(-((t - 50)/w)^2)/w\n"),
    );
    for (q, w) in [(0.0, 1e-2), (1.0, 1e-2), (0.0, 1e-4), (1.0, 1e-6), (0.0, 0.5)] {
        for method in ["", "--method taylor", "--method tsit5", "--method gauss16"] {
            let run = format!("run pulse.holo --set w={w} --set q={q} {method} --until 100");
            let summary = folder.summary(&run);
            let (found, exact) = (number(&summary, "/state/q"), pulsed(q, w, 100.0));
            // At rtol 1e-9 the error of the default grows to some 1e-8.
            assert!((found - exact).abs() < 1e-5, "{run}: {found}, exactly {exact}");
            assert!(!summary["warnings"].to_string().contains("pulse"), "{summary}");
        }
    }
    // A second run does not confirm a wrong first one, and equal steps that are too long are warned
    // about.
    let summary = folder.summary("run pulse.holo --method rk4 --step 0.1 --until 100 --error");
    let off = (number(&summary, "/state/q") - pulsed(0.0, 0.01, 100.0)).abs();
    assert!(
        off > 0.1 && number(&summary, "/orbit_error/families/q/final") > 0.3 * off,
        "{summary}"
    );
    assert!(
        summary["warnings"].to_string().contains("has a pulse in time from t = 49.9"),
        "{summary}"
    );
    assert!(
        !folder.summary("run pulse.holo --method rk4 --step 0.002 --until 100")["warnings"]
            .to_string()
            .contains("pulse")
    );
    // Every trajectory of a sweep has its own pulse.
    let sweep = "sweep pulse.holo --trajectories 3 --vary w=0.01*(1+i) --until 100 --samples 2";
    let out = folder.summary(sweep)["out"].as_str().unwrap().to_string();
    assert!(folder.path(&out).exists());
}

#[test]
fn what_is_no_pulse_is_not_blamed() {
    let folder = Folder::new();
    for force in [
        "cos(50*t)",
        "if(t > 30, 1, 0)",
        "max(t - 30, 0)",
        "if(sin(t) > 0, 1, -1)",
        "tanh(100*(t - 30))",
    ] {
        folder.write(
            "forced.holo",
            format!("coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + q^2/2 - q*{force}\n"),
        );
        let free = folder.summary("run forced.holo --until 100 --error");
        assert!(!free["warnings"].to_string().contains("pulse"), "{force}: {free}");
        let fine = folder.summary("run forced.holo --until 100 --rtol 1e-12 --max-step 0.01");
        let off = (number(&free, "/state/q") - number(&fine, "/state/q")).abs();
        let size = number(&free, "/orbit_error/families/q/max")
            / number(&free, "/orbit_error/families/q/relative");
        // Steps that meet a jump err by their tolerance, 1e-9 of the motion, which errors of some
        // hundred steps add up to.
        assert!(off < 1e-6 * size, "{force}: {off}");
        let equal =
            folder.summary("run forced.holo --until 100 --method rk4 --step 0.1 --samples 2");
        assert!(!equal["warnings"].to_string().contains("pulse"), "{force}: {equal}");
    }
}

#[test]
fn advice_agrees_with_itself_and_runs() {
    let folder = Folder::new();
    let advice = |model: &str| {
        let all = folder.summary(&format!("check {model}"))["advice"].clone();
        all.as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    folder.write(
        "varying.holo",
        "coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + q^4\nintegral E = p^2/2 + q^2\n",
    );
    let lines = advice("varying.holo");
    assert!(lines[0].contains("leave out E"), "{lines:?}");
    assert!(
        !lines[1..].iter().any(|line| line.contains("2 independent") || line.contains("holds E")),
        "{lines:?}"
    );
    // Equal steps are no use for an orbit that nearly falls into the centre.
    let kepler = |e: f64| {
        let start = format!(
            "coordinate q : R^2 = ({}, 0)\nmomentum p of q = (0, sqrt((1 + {e})/(1 - {e})))\n",
            1.0 - e
        );
        format!("{start}hamiltonian dot(p, p)/2 - 1/norm(q) - 1e-9/norm(q - (3, 1))\n")
    };
    folder.write("eccentric.holo", kepler(0.99999));
    let lines = advice("eccentric.holo");
    assert!(lines[0].contains("corrected:dop853") && !lines[0].contains("suzuki4"), "{lines:?}");
    assert!(lines[1].contains("vary by a factor"), "{lines:?}");
    // The steps that are advised do.
    folder.write("round.holo", kepler(0.3));
    for model in [
        "round.holo",
        "models/double-pendulum.holo",
        "models/henon-heiles.holo",
        "models/heavy-top.holo",
    ] {
        let line = advice(model)[0].clone();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (method, step) = (words[1], words[3]);
        assert_eq!(words[2], "--step", "{model}: {line}");
        let summary =
            folder.summary(&format!("run {model} --method {method} --step {step} --until 20"));
        let relative = number(&summary, "/drift/hamiltonian/relative/max");
        assert!(relative < 1e-2 && lost(&summary).is_empty(), "{model}: {line}: {relative:e}");
    }
}
