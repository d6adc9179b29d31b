//! Methods for rolling constraints against their sources; runs that are stopped, in ensembles, in
//! other units, and refusals. Maps, orders and values are in `structure`.

mod common;

use common::{Finished, load, options, repository, run};
use holonome::{Control, Flow, Problem, Resumed, RunOptions, Simulation, prepare};

const METHODS: [&str; 3] = ["nonholonomic-leapfrog", "gni", "dla"];

fn problem(text: &str) -> Problem {
    text.parse().unwrap()
}

/// A knife edge in a well that a pendulum drives round and round; the pendulum is lopsided by `e`.
fn driven_edge(e: f64) -> String {
    format!(
        "coordinate r : R^2 = (1, 0)
        coordinate a = 0.3
        velocity v of r = (0.4*(1 + sin(a)/2), -0.4)
        velocity w of a = 1.5
        hamiltonian (dot(p_r, p_r) + p_a^2)/2 + dot(r, r)/2 + 0.5*cos(a) + {e}*sin(2*a)
        rolling edge : r'.x + (sin(a)/2 + 1)*r'.y = 0"
    )
    .replace("(0.4*(1 + sin(a)/2), -0.4)", "(0.4*(1 + sin(0.3)/2), -0.4)")
}

/// q₊ − 2q + q₋ = h²(−M⁻¹V_q − M⁻¹Aᵀμ) and A(q)(q₊ − q₋) = 0 at the positions of a run, which are the
/// method's definition and the same forwards and backwards; the momenta are M (q₊ − q₋)/2h.
#[test]
fn gni_is_its_recursion() {
    let path = repository().join("suite/structure/knife-edge.holo");
    let h = 0.125;
    let text = format!("--method gni --step {h} --until 12.5 --every {h}");
    let finished = run(load(&path, &[]).unwrap(), options(&text)).unwrap();
    let [r, a, p] = ["r", "a", "p_r"].map(|name| finished.array(name));
    assert_eq!(r.len(), 101);
    for k in 1..100 {
        let second = |i: usize| (r[k + 1][i] - 2.0 * r[k][i] + r[k - 1][i]) / (h * h);
        let first = |i: usize| (r[k + 1][i] - r[k - 1][i]) / (2.0 * h);
        let (sin, cos) = a[k][0].sin_cos();
        // Roundings of positions of size 1, over h² and h.
        let along = [0, 1].map(|i| 2.0 * second(i) + 2.0 * r[k][i]);
        assert!((cos * along[0] + sin * along[1]).abs() < 2e-13, "{k}: {along:?}");
        assert!((sin * first(0) - cos * first(1)).abs() < 2e-14, "{k}");
        let turned = 0.5 * (a[k + 1][0] - 2.0 * a[k][0] + a[k - 1][0]) / (h * h);
        assert!((turned + 0.6 * sin).abs() < 2e-13, "{k}: {turned}");
        for (i, p) in p[k].iter().enumerate() {
            assert!((2.0 * first(i) - p).abs() < 2e-14, "{k}");
        }
    }
}

/// Largest deviation of H in each quarter of a run.
fn quarters(finished: &Finished) -> [f64; 4] {
    let energies = finished.array("H").concat();
    let off = |list: &[f64]| list.iter().fold(0.0f64, |off, e| off.max((e - energies[0]).abs()));
    let part = energies.len() / 4;
    [0, 1, 2, 3].map(|k| off(&energies[k * part..(k + 1) * part]))
}

/// Energies on a driver that turns around, after Modin and Verdier (Numer. Math. 145 (2020) 405):
/// those of the leapfrog and of DLA grow in proportion to the time, and that of GNI does not, whose
/// extremes come again within a per cent.
#[test]
fn energies_on_a_lopsided_driver() {
    for method in METHODS {
        let text = format!("--method {method} --step 0.2 --until 4000 --every 0.8");
        let [first, second, third, last] =
            quarters(&run(problem(&driven_edge(0.2)), options(&text)).unwrap());
        println!("{method}: {first:.3e} {second:.3e} {third:.3e} {last:.3e}");
        match method {
            "gni" => assert!(last < 1.02 * first && first < 0.05, "{first} {last}"),
            _ => assert!(last > 2.5 * first && second > 1.5 * first, "{method}: {first} {last}"),
        }
    }
}

/// −Aᵀμ of the coin that rolls on a circle, in closed form at every sample.
#[test]
fn multipliers_are_those_of_the_motion() {
    let text = "
        parameter R = 0.5
        coordinate r : R^2 = (0, 0)
        coordinate angle = 0
        coordinate heading = 0
        velocity v of r = (1.5, 0)
        velocity spin of angle = 3
        velocity turn of heading = 0.7
        hamiltonian dot(p_r, p_r)/4 + p_angle^2/0.6 + p_heading^2/0.2
        rolling along : r'.x = R*cos(heading)*angle'
        rolling across : r'.y = R*sin(heading)*angle'
        observe forces = (lambda.along, lambda.across)";
    for method in METHODS {
        let text_of_run = format!("--method {method} --step 0.001 --until 2 --every 0.5");
        let finished = run(problem(text), options(&text_of_run)).unwrap();
        for (t, forces) in finished.times().into_iter().zip(finished.array("forces")) {
            let expected = [2.1 * (0.7 * t).sin(), -2.1 * (0.7 * t).cos()];
            for (found, expected) in forces.iter().zip(expected) {
                // An error of order h² of the state, with factors of size 1.
                assert!((found - expected).abs() < 2e-6, "{method} {t}: {forces:?}");
            }
        }
    }
}

fn bits(list: &[f64]) -> Vec<u64> {
    list.iter().map(|x| x.to_bits()).collect()
}

/// Masses, lengths and times in other powers of two change nothing.
#[test]
fn units_change_no_bit() {
    let text = |m: f64, l: f64, s: f64| {
        let (energy, rate) = (m * l * l / (s * s), 1.0 / s);
        format!(
            "parameter m = {m}
            parameter l = {l}
            parameter E = {energy}
            coordinate r : R^3 = (0.6*l, 0, -0.8*l)
            coordinate b = 0.3*l
            velocity v of r = (0.4*l*{rate}, 0.7*l*{rate}, 0.3*l*{rate})
            velocity w of b = 0.9*l*{rate}
            hamiltonian dot(p_r, p_r)/(2*m) + p_b^2/(2*m) + E*r.z/l - E*cos(b/l)
            constraint sphere : dot(r, r) = l^2
            rolling blade : r'.x = cos(b/l)*r'.y + (0.4 - 0.7*cos(0.3))*l*{rate}"
        )
    };
    for method in METHODS {
        let end = |m: f64, l: f64, s: f64| {
            let text_of_run =
                format!("--method {method} --step {} --until {}", 0.0625 * s, 4.0 * s);
            run(problem(&text(m, l, s)), options(&text_of_run)).unwrap().array("r").concat()
        };
        let (plain, other) = (end(1.0, 1.0, 1.0), end(1024.0, 0.125, 32.0));
        let scaled: Vec<f64> = other.iter().map(|x| x * 8.0).collect();
        assert_eq!(bits(&plain), bits(&scaled), "{method}");
    }
}

/// A run that is stopped and resumed has the bits of a run at once: the multipliers that `gni`
/// carries are stored.
#[test]
fn runs_are_resumed() {
    let path = repository().join("suite/structure/edge-on-a-sphere.holo");
    for method in METHODS {
        // Long enough to be stopped, with so many samples: a run is asked every 20 milliseconds.
        let options =
            options(&format!("--method {method} --step 0.00002 --until 6 --samples 300001"));
        let problem = || load(&path, &[]).unwrap();
        let whole = run(problem(), options.clone()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let out = Some(folder.path().join("run"));
        let mut stopped = prepare(problem(), RunOptions { out, ..options }).unwrap();
        assert!(stopped.run(&mut |_| Control::Stop).unwrap().interrupted, "{method}");
        drop(stopped);
        let Resumed::Continues(mut rest) = Simulation::resume(folder.path().join("run")).unwrap()
        else {
            panic!("{method}: it has ended")
        };
        let summary = rest.run(&mut |_| Control::Continue).unwrap();
        assert_eq!(bits(summary.state.numbers()), bits(&whole.state()), "{method}");
    }
}

/// Masses 1e8 apart: the heavy one is not moved by the light one beyond the ratio of both, and the
/// constraint holds at round-off.
#[test]
fn masses_far_apart() {
    let text = "
        coordinate x : R^2 = (1, 0)
        coordinate y : R^2 = (0, 1)
        coordinate a = 0.2
        velocity v of x = (0.5, 0.1)
        velocity u of y = (0.5, 0.1)
        velocity w of a = 1
        hamiltonian dot(p_x, p_x)/2e-4 + dot(p_y, p_y)/2e4 + p_a^2/2 + 1e-4*dot(x, x)/2 + 1e4*dot(y, y)/2
        rolling c : cos(a)*(x'.x - y'.x) + sin(a)*(x'.y - y'.y) = 0";
    for method in METHODS {
        let finished =
            run(problem(text), options(&format!("--method {method} --step 0.01 --until 20")))
                .unwrap();
        let y = finished.array("y").pop().unwrap();
        let expected = [0.5 * 20f64.sin(), 20f64.cos() + 0.1 * 20f64.sin()];
        for (found, expected) in y.iter().zip(expected) {
            // h²/24 of the phase, t = 20.
            assert!((found - expected).abs() < 3e-4, "{method}: {y:?}");
        }
        let of = |name: &str| finished.summary.drift.iter().find(|d| d.name == name).unwrap().max;
        assert!(of("c") < 1e-13, "{method}: {:e}", of("c"));
    }
}

/// Refusals name the method, the reason and what to use.
#[test]
fn what_does_not_suit() {
    let refused = |text: &str, method: &str| {
        let options = options(&format!("--step 0.1 --until 1 --method {method}"));
        prepare(problem(text), options).err().expect("refused").to_string()
    };
    let edge = driven_edge(0.0);
    let pendulum = "coordinate q : R^2 = (0, -1)\nmomentum p of q = (1, 0)\n\
        hamiltonian dot(p, p)/2 + q.y\nconstraint rod : dot(q, q) = 1";
    for method in METHODS {
        for (text, remedy) in [
            ("state x = 1\nx' = -x", "it needs a Hamiltonian"),
            (
                "coordinate q = 1\nmomentum p of q = 1\nhamiltonian p^2/2",
                "has none; use stormer-verlet-a or gauss4",
            ),
            (pendulum, "it is for rolling constraints, and the model has none; use rattle"),
        ] {
            let message = refused(text, method);
            assert!(message.contains(method) && message.contains(remedy), "{message}");
        }
    }
    for method in ["rattle", "stormer-verlet-a", "strang", "zhang-skeel", "cayley-symmetric"] {
        let message = refused(&edge, method);
        assert!(message.contains("nonholonomic-leapfrog, gni or corrected:dop853"), "{message}");
    }
    let error = "suzuki4(gni)".parse::<holonome::method::Method>().unwrap_err().to_string();
    assert!(error.contains("gni is not symmetric"), "{error}");
    let options = options("--step 0.1 --until 1 --method gni");
    let mut flow = Flow::new(&problem(&edge), options).unwrap();
    let error = flow.apply_with_tangents(&mut [0.0; 6], &mut [0.0; 6]).unwrap_err().to_string();
    assert!(error.contains("use nonholonomic-leapfrog or dla"), "{error}");
}
