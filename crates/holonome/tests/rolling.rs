//! Rolling constraints against closed forms.

mod common;

use common::{load, options, repository, run};
use holonome::Problem;

fn problem(text: &str) -> Problem {
    text.parse().unwrap()
}

/// A coin that rolls upright, of mass m, radius R, moments I about its axis and J about the vertical:
/// both angles turn evenly, and its centre moves on a circle.
const COIN: &str = "
    parameter R = 0.5
    parameter m = 2
    parameter I = 0.3
    parameter J = 0.1
    coordinate r : R^2 = (0, 0)
    coordinate angle = 0
    coordinate heading = 0
    velocity v of r = (R*3, 0)
    velocity spin of angle = 3
    velocity turn of heading = 0.7
    hamiltonian dot(p_r, p_r)/(2*m) + p_angle^2/(2*I) + p_heading^2/(2*J)
    rolling along : r'.x = R*cos(heading)*angle'
    rolling across : r'.y = R*sin(heading)*angle'
    observe forces = (lambda.along, lambda.across)
    observe acceleration = r''";

#[test]
fn a_coin_rolls_on_a_circle() {
    for with in ["", "--method corrected:gauss8 --step 0.05", "--method corrected:rk4 --step 0.005"]
    {
        let finished =
            run(problem(COIN), options(&format!("--until 20 --every 4 {with}"))).unwrap();
        for (k, t) in finished.times().into_iter().enumerate() {
            let (radius, phase) = (0.5 * 3.0 / 0.7, 0.7 * t);
            let expected = [radius * phase.sin(), radius * (1.0 - phase.cos())];
            let found = &finished.array("r")[k];
            // −Aᵀμ = m r'', at right angles to the motion.
            let pull = 2.0 * 0.5 * 3.0 * 0.7;
            let force = [pull * phase.sin(), -pull * phase.cos()];
            for i in 0..2 {
                assert!((found[i] - expected[i]).abs() < 2e-8, "{with} {t}: {found:?}");
                let forces = &finished.array("forces")[k];
                assert!((forces[i] - force[i]).abs() < 2e-8, "{with} {t}: {forces:?}");
                let acceleration = &finished.array("acceleration")[k];
                assert!((acceleration[i] + force[i] / 2.0).abs() < 2e-8);
            }
        }
        // Held to some roundings of an energy of 4.
        let drifts = &finished.summary.drift;
        assert_eq!(drifts.iter().filter(|drift| drift.name == "H").count(), 1);
        assert!(drifts.iter().all(|drift| drift.max < 1e-13), "{with}: {drifts:?}");
    }
}

/// A blade on an inclined plane that turns evenly and starts at rest does not slide down: x =
/// g sin²(ωt)/(2ω²), y = g (ωt − ½ sin 2ωt)/(2ω²) (Neimark, Fufaev 1972, II.2). Friction at the same
/// rate in all directions, and the plane as a constraint on positions, go beside it.
#[test]
fn a_blade_does_not_slide_down() {
    let text = |more: &str| {
        format!(
            "coordinate r : R^3 = (0, 0, 0)
            coordinate a = 0
            momentum p of r
            velocity w of a = 1.3
            hamiltonian dot(p, p)/2 + p_a^2/2 - 2*r.x
            constraint plane : r.z = 0
            rolling blade : sin(a)*r'.x - cos(a)*r'.y = 0
            {more}"
        )
    };
    let expected = |t: f64| {
        let (w, g) = (1.3, 2.0);
        let phase: f64 = w * t;
        let scale = g / (2.0 * w * w);
        [scale * phase.sin().powi(2), scale * (phase - 0.5 * (2.0 * phase).sin())]
    };
    let finished = run(problem(&text("")), options("--until 10 --every 1 --rtol 1e-12")).unwrap();
    for (t, r) in finished.times().into_iter().zip(finished.array("r")) {
        for (found, expected) in r.iter().zip(expected(t)) {
            assert!((found - expected).abs() < 1e-10, "{t}: {r:?}");
        }
        assert!(r[2].abs() < 1e-15);
    }
    let damped = text("force drag on r = -0.2*r'");
    let finished = run(problem(&damped), options("--until 10 --rtol 1e-12")).unwrap();
    let balance = finished.summary.drift.iter().find(|drift| drift.name == "energy balance");
    assert!(balance.unwrap().max < 1e-13);
}

/// A ball on a turntable moves on circles with 2/7 of its rate: r'' = (2/7) Ω e × r'. Its energy is
/// not constant, as the table does work.
#[test]
fn a_ball_on_a_turntable_moves_on_circles() {
    let text = "
        parameter W = 1.5
        parameter a = 0.2
        parameter m = 3
        let I = 2*m*a^2/5
        coordinate x = 1
        coordinate y = 0
        coordinate s = 0
        coordinate u = 0
        velocity vx of x = 0.1
        velocity vy of y = 0.4
        velocity vs of s = (1.5 - 0.4)/0.2
        velocity vu of u = 0.1/0.2
        hamiltonian (p_x^2 + p_y^2)/(2*m) + (p_s^2 + p_u^2)/(2*I)
        rolling first : x' - a*u' = -W*y
        rolling second : y' + a*s' = W*x";
    let finished = run(problem(text), options("--until 12 --every 3 --rtol 1e-12")).unwrap();
    let rate = 2.0 / 7.0 * 1.5;
    for (k, t) in finished.times().into_iter().enumerate() {
        let (sin, cos) = (rate * t).sin_cos();
        let x = 1.0 + (0.1 * sin - 0.4 * (1.0 - cos)) / rate;
        let y = (0.4 * sin + 0.1 * (1.0 - cos)) / rate;
        assert!((finished.array("x")[k][0] - x).abs() < 1e-10, "{t}");
        assert!((finished.array("y")[k][0] - y).abs() < 1e-10, "{t}");
    }
    assert!(finished.summary.drift.iter().all(|drift| drift.name != "H"));
}

/// Constraints that say the same have the forces of one, with multipliers of least norm: those of
/// c = 0 and 2c = 0 add up to μ, and are μ/5 and 2μ/5.
#[test]
fn redundant_constraints_share_the_forces() {
    let twice = format!(
        "{COIN}
        rolling again : 2*r'.x = 2*R*cos(heading)*angle'
        rolling side : sin(heading)*r'.x = cos(heading)*r'.y
        observe more = (lambda.again, lambda.side)"
    );
    for with in [
        "--method corrected:dop853 --rtol 1e-11",
        "--method corrected:gauss8 --step 0.05",
        "--method nonholonomic-leapfrog --step 0.0005",
        "--method gni --step 0.0005",
        "--method dla --step 0.0005",
    ] {
        let samples = options(&format!("--until 3 --every 1 {with}"));
        let finished = run(problem(&twice), samples.clone()).unwrap();
        let single = run(problem(COIN), samples).unwrap();
        for (k, t) in finished.times().into_iter().enumerate() {
            let (sin, cos) = (0.7 * t).sin_cos();
            let [along, across] = finished.array("forces")[k][..] else { panic!() };
            let [again, side] = finished.array("more")[k][..] else { panic!() };
            // λ is orthogonal to the combinations 2c − d and sin c − cos e − s of the equations.
            let found = [along + 2.0 * again + sin * side, across - cos * side];
            let zeros = [2.0 * along - again, sin * along - cos * across - side];
            for (found, single) in found.iter().zip(&single.array("forces")[k]) {
                // The state errs by h², the multipliers of both runs alike.
                assert!((found - single).abs() < 1e-7, "{with} {t}: {found} {single}");
            }
            assert!(zeros.iter().all(|zero| zero.abs() < 1e-7), "{with} {t}: {zeros:?}");
        }
        let drifts = &finished.summary.drift;
        let held = |name: &str| drifts.iter().find(|d| d.name == name).unwrap().max < 1e-12;
        assert!(["along", "again", "side"].into_iter().all(held), "{with}: {drifts:?}");
    }
}

/// A rattleback against equations by hand without multipliers (`suite/reference/rattleback.py`): it
/// turns around, from −5 to 5. Errors grow a hundredfold on the way.
#[test]
fn a_rattleback_turns_around() {
    let path = repository().join("suite/models/rattleback.holo");
    let expected = [
        (1.0, [0.000_848_186_551_996, -0.003_752_816_317_800, -4.993_715_549_495_29], 1e-10),
        (5.0, [0.042_634_689_242_543, -0.029_593_350_766_966, 0.560_941_507_228_922], 1e-8),
        (10.0, [1.208_750_714e-7, 0.000_814_142_245_097, 5.000_026_547_179_76], 1e-8),
    ];
    let samples = options("--method corrected:dop853 --rtol 1e-12 --until 10 --every 1");
    let finished = run(load(&path, &[]).unwrap(), samples).unwrap();
    let (n, spin) = (finished.array("n"), finished.array("spin"));
    for (t, values, tolerance) in expected {
        let k = t as usize;
        let found = [n[k][0], n[k][1], spin[k][0]];
        for (found, expected) in found.iter().zip(values) {
            assert!((found - expected).abs() < tolerance, "{t}: {found} {expected}");
        }
    }
    // The forces of the contact do no work.
    let energy = finished.summary.drift.iter().find(|drift| drift.name == "H").unwrap();
    assert!(energy.max < 1e-14, "{energy:?}");
    // Methods of order 2, with constraints on positions beside.
    for method in ["nonholonomic-leapfrog", "gni", "dla"] {
        let error = |h: f64| {
            let samples = options(&format!("--method {method} --step {h} --until 1 --samples 2"));
            let finished = run(load(&path, &[]).unwrap(), samples).unwrap();
            (finished.array("spin")[1][0] - expected[0].1[2]).abs()
        };
        let (coarse, fine) = (error(5e-4), error(2.5e-4));
        let order = (coarse / fine).log2();
        assert!((order - 2.0).abs() < 0.1, "{method}: {coarse:e} {fine:e}");
    }
}

/// Chaplygin's sleigh in closed form: along the blade it moves at U tanh kt, and turns at Ω / cosh
/// kt, where m U² = (I + m a²) Ω² = 2H and k = m a U/(I + m a²).
#[test]
fn a_sleigh_ends_straight() {
    let (m, inertia, a) = (2.0, 0.5, 0.3);
    let text = format!(
        "coordinate c : R^2 = ({a}, 0)
        coordinate f = 0
        velocity v of c = (0, {a}*1.5)
        velocity w of f = 1.5
        hamiltonian dot(p_c, p_c)/(2*{m}) + p_f^2/(2*{inertia})
        rolling blade : cos(f)*c'.y - sin(f)*c'.x = {a}*f'
        observe along = cos(f)*c'.x + sin(f)*c'.y
        observe turn = f'"
    );
    let whole = inertia + m * a * a;
    let speed = 1.5 * f64::sqrt(whole / m);
    for (with, tolerance) in [
        ("", 1e-8),
        ("--method corrected:gauss8 --step 0.05", 1e-10),
        ("--method nonholonomic-leapfrog --step 0.001", 2e-6),
        ("--method gni --step 0.001", 2e-6),
        ("--method dla --step 0.001", 2e-6),
        ("--method suzuki4(dla) --step 0.02", 1e-7),
    ] {
        let finished =
            run(problem(&text), options(&format!("--until 6 --every 1 {with}"))).unwrap();
        for (k, t) in finished.times().into_iter().enumerate() {
            let phase = m * a * speed / whole * t;
            let off = [
                finished.array("along")[k][0] - speed * phase.tanh(),
                finished.array("turn")[k][0] - 1.5 / phase.cosh(),
            ];
            assert!(off.iter().all(|off| off.abs() < tolerance), "{with} {t}: {off:?}");
        }
    }
}

#[test]
fn claims_of_runs_backwards_are_tested_at_their_start() {
    // A blade that is steered: the start meets its constraint at t = 0 alone.
    let text = "coordinate x = 0\ncoordinate y = 0\nvelocity v of x = 1\nlagrangian (x'^2 + y'^2)/2\n\
                rolling blade : sin(0.4*t)*x' - cos(0.4*t)*y' = 0\nforce push on x = 0.3";
    let span = Some((Some(0.0), Some(-2.0)));
    let settings = holonome::Settings { span, ..Default::default() };
    let problem = Problem::from_text("blade", text, &Default::default(), &settings).unwrap();
    let found = run(problem, options("--rtol 1e-11 --until -2")).unwrap();
    // The speed grows by 0.3 cos(0.4 t) along the blade.
    let speed = 1.0 + 0.3 * (-0.8f64).sin() / 0.4;
    let state = found.state();
    let off = (state[2] - speed * 0.8f64.cos()).abs().max((state[3] + speed * 0.8f64.sin()).abs());
    assert!(off < 1e-9, "{state:?}");
}

#[test]
fn random_points_that_are_near_no_set_refute_no_claim() {
    // At phi = π/2 both wheels say the same, and Newton's iteration may settle off their set.
    let text = "parameter m = 1\nparameter l = 0.2\n\
        coordinate x = 0\ncoordinate y = 0\ncoordinate th = 0.7\ncoordinate psi = 0\ncoordinate phi = 0\n\
        velocity w of psi = 2\n\
        lagrangian m/2*(x'^2 + y'^2) + m*l^2/2*th'^2 + 0.008*psi'^2 + 0.016*psi'*th' + 0.0013*phi'^2\n\
        rolling a : -sin(th + phi)*x' + cos(th + phi)*y' - l*cos(phi)*th' = 0\n\
        rolling b : -sin(th - phi)*x' + cos(th - phi)*y' + l*cos(phi)*th' = 0\n\
        force rotor on psi = 0.1*sin(t)";
    let found = run(problem(text), options("--until 2")).unwrap_or_else(|error| panic!("{error}"));
    // Nothing steers: the rotor turns alone, psi'' = 0.1 sin(t)/0.016.
    let psi = 2.0 * 2.0 + 6.25 * (2.0 - 2f64.sin());
    let state = found.state();
    assert!((state[3] - psi).abs() < 1e-7 && state[0].abs() < 1e-12, "{state:?} {psi}");
}
