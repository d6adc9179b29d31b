//! The feedback integrators of the papers: the discrete attractor, orders, and the effect of gains
//! (`docs/methods.md`).

mod common;

use common::{Finished, distance, model, options, run};
use holonome::summary::Stability;
use holonome::{Gains, Problem, RunOptions, Settings};
use std::collections::BTreeMap;

/// Four gains whose term is far from its stability limit at the steps below.
const GAINS: &str = "rod=4,rod.hidden=1,H=4,J=4";

fn pendulum(text: &str) -> Finished {
    run(model("spherical-pendulum", &[]), options(text)).unwrap()
}

/// |ΔF| of the spherical pendulum at each sample, from the stored states alone.
fn pendulum_deviations(finished: &Finished) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let deviation = |(q, p): (&Vec<f64>, &Vec<f64>)| {
        let (energy, momentum) = (0.5 * dot(p, p) + q[2], q[0] * p[1] - q[1] * p[0]);
        let parts = [dot(q, q) - 1.0, 2.0 * dot(q, p), energy - 1.0, momentum + 1.0];
        dot(&parts, &parts).sqrt()
    };
    finished.array("q").iter().zip(&finished.array("p")).map(deviation).collect()
}

/// |ΔF| of the rigid body.
fn body_deviations(finished: &Finished) -> Vec<f64> {
    let inertia = [3.0, 2.0, 1.0];
    let deviation = |(r, w): (&Vec<f64>, &Vec<f64>)| {
        let mut sum = 0.0;
        for i in 0..3 {
            for j in 0..3 {
                let product: f64 = (0..3).map(|k| r[3 * k + i] * r[3 * k + j]).sum();
                sum += (product - f64::from(i == j)).powi(2);
            }
            let momentum: f64 = (0..3).map(|k| r[3 * i + k] * inertia[k] * w[k]).sum();
            sum += (momentum - inertia[i]).powi(2);
        }
        let energy: f64 = (0..3).map(|k| 0.5 * inertia[k] * w[k] * w[k]).sum();
        (sum + (energy - 3.0).powi(2)).sqrt()
    };
    finished.array("R").iter().zip(&finished.array("w")).map(deviation).collect()
}

/// Level at which |ΔF| settles: its supremum over the second half. Before, it has to fall from its
/// initial value.
fn settled(deviations: &[f64]) -> f64 {
    let level = deviations[deviations.len() / 2..].iter().copied().fold(0.0, f64::max);
    assert!(
        deviations[0] > 10.0 * level,
        "it starts off the attractor: {:e} against {level:e}",
        deviations[0]
    );
    // Far above the attractor V decays from sample to sample: dV/dt = −|∇V|² outweighs the scheme's
    // error.
    let far = deviations.iter().take_while(|&&d| d > 10.0 * level).count();
    assert!(deviations[..far].windows(2).all(|pair| pair[1] < pair[0]), "{:?}", &deviations[..far]);
    assert!(far < deviations.len() / 2);
    level
}

/// Check that the slopes of log |ΔF| over log h are all near `order`.
fn check_slopes(what: &str, order: f64, steps: &[f64], levels: &[f64]) {
    let slope = |k: usize| (levels[k] / levels[k + 1]).ln() / (steps[k] / steps[k + 1]).ln();
    let slopes: Vec<f64> = (0..steps.len() - 1).map(slope).collect();
    println!("{what}: levels {levels:?}, slopes {slopes:.2?}");
    assert!(
        slopes.iter().all(|slope| (slope - order).abs() < 0.35),
        "{what}: {levels:?} {slopes:?}"
    );
}

#[test]
fn the_discrete_attractor_of_the_spherical_pendulum() {
    for (base, order, steps) in [
        ("euler", 1.0, [0.016, 0.008, 0.004, 0.002]),
        ("heun", 2.0, [0.032, 0.016, 0.008, 0.004]),
        ("rk4", 4.0, [0.04, 0.02, 0.01, 0.005]),
    ] {
        let level = |&h: &f64| {
            let start = model("spherical-pendulum", &[("p", "(1.1, 0, -1.05)")]);
            let text = format!(
                "--method feedback:{base} --step {h} --until 40 --samples 1001 --gain {GAINS} --reference q=(0,1,0),p=(1,0,-1)"
            );
            settled(&pendulum_deviations(&run(start, options(&text)).unwrap()))
        };
        check_slopes(base, order, &steps, &steps.iter().map(level).collect::<Vec<_>>());
    }
}

#[test]
fn the_discrete_attractor_of_the_rigid_body() {
    for (base, order, steps) in
        [("euler", 1.0, [0.008, 0.004, 0.002]), ("heun", 2.0, [0.005, 0.0025, 0.00125])]
    {
        let level = |&h: &f64| {
            let start = model("rigid-body", &[("w", "(1.3, 0.8, 1.25)")]);
            let text = format!(
                "--method feedback:{base} --step {h} --until 120 --samples 3001 --gain orthogonal=2,E=4,Pi=4 --reference w=(1,1,1)"
            );
            settled(&body_deviations(&run(start, options(&text)).unwrap()))
        };
        check_slopes(base, order, &steps, &steps.iter().map(level).collect::<Vec<_>>());
    }
}

#[test]
fn the_attractor_is_there_for_long() {
    // 100 times the decay time: plain Euler has left for good, feedback Euler is at the level of a
    // tenth of the time.
    let text =
        format!("--method feedback:euler --step 0.004 --until 400 --samples 4001 --gain {GAINS}");
    let deviations = pendulum_deviations(&pendulum(&text));
    let sup = |range: &[f64]| range.iter().copied().fold(0.0, f64::max);
    let (early, late) = (sup(&deviations[..401]), sup(&deviations[3600..]));
    assert!(late < 2.0 * early, "{early:e} {late:e}");
    let plain = sup(&pendulum_deviations(&pendulum(
        "--method plain:euler --step 0.004 --until 400 --samples 4001",
    ))[3600..]);
    assert!(plain > 30.0 * late, "{plain:e} {late:e}");
}

#[test]
fn gauss_newton_feedback_keeps_the_order() {
    let exact = pendulum("--method plain:dop853 --rtol 1e-13 --atol 1e-13 --until 10").state();
    for (base, order, steps) in [
        ("heun", 2.0, [0.02, 0.01, 0.005, 0.0025, 0.00125]),
        ("rk4", 4.0, [0.08, 0.04, 0.02, 0.01, 0.005]),
    ] {
        let errors: Vec<f64> = steps
            .iter()
            .map(|h| {
                distance(
                    &pendulum(&format!(
                        "--method feedback:{base} --step {h} --until 10 --gain auto"
                    ))
                    .state(),
                    &exact,
                )
            })
            .collect();
        check_slopes(&format!("Gauss-Newton {base}"), order, &steps, &errors);
    }
}

/// Off the level set every invariant approaches its target at the rate κ: as a formula (the
/// pendulum), by a linear solve beside the compiled field (a chain of 20), and beside rows.
#[test]
fn gauss_newton_deviations_decay_at_the_rate() {
    let chain = |n: &str| {
        let text = "size n = 20\ncoordinate r[i in 1..n] : R^2 = (i, -2*i)\nmomentum p of r\n\
            hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)\nconstraint anchor : dot(r[1], r[1]) = 5\n\
            constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 5\n";
        let set = [("n", n), ("r", "(1.003*i, -1.999*i)"), ("p", "(0.2, 0.1*sin(i))")];
        let set = set.map(|(name, value)| (name.to_string(), value.to_string())).to_vec();
        let settings = Settings { set, start_off_set: true, ..Settings::default() };
        let problem = Problem::from_text("chain", text, &BTreeMap::new(), &settings).unwrap();
        assert_eq!(problem.examined.rows.is_some(), n == "400");
        (problem, "r=(i,-2*i),p=(0.2,-0.1)*0")
    };
    let pendulum = {
        let set = vec![("q".to_string(), "(0, 1.01, 0.02)".to_string())];
        let settings = Settings { set, start_off_set: true, ..Settings::default() };
        let path = common::repository().join("models/spherical-pendulum.holo");
        (Problem::load(&path, &settings).unwrap(), "q=(0,1,0)")
    };
    for (problem, reference) in [pendulum, chain("20"), chain("400")] {
        let name = problem.name.clone();
        let text = format!(
            "--method feedback:dop853 --rtol 1e-10 --until 0.2 --samples 2 --reference {reference}"
        );
        let finished = run(problem, options(&text)).unwrap();
        let gain = finished.summary.gain.clone().unwrap();
        let rate: f64 = gain.strip_prefix("auto: kappa=").unwrap().parse().unwrap();
        assert!(rate > 0.1, "{name}: {gain}");
        assert!(finished.summary.drift.len() > 2);
        for drift in &finished.summary.drift {
            let decay = (-rate * 0.2).exp();
            // ε of the regularisation over the least pivot of a chain, and six digits of the
            // printed rate.
            let off = (drift.last / (decay * drift.max) - 1.0).abs();
            println!("{name} {} {:e} {:e} {off:e}", drift.name, drift.max, drift.last);
            assert!(
                drift.max > 1e-4 && off < 1e-3,
                "{name}, {}: {:e} {:e}, {off:e}",
                drift.name,
                drift.max,
                drift.last
            );
        }
    }
}

#[test]
fn gauss_newton_feedback_adapts() {
    let reference = [
        0.289982352306,
        0.546233983572,
        -0.785836287366,
        1.788679864730,
        -0.079185067542,
        0.605001356461,
    ];
    for (tolerance, allowed) in [(1e-9, 1e-5), (1e-12, 1e-8)] {
        let text = format!("--rtol {tolerance} --atol {tolerance} --until 100");
        let plain = pendulum(&format!("--method plain:dop853 {text}"));
        let auto = pendulum(&format!("--method feedback:dop853 --gain auto {text}"));
        assert!(distance(&auto.state(), &reference) < allowed, "{:?}", auto.state());
        // The rate is that of the field, so the steps keep their length: no collapse.
        assert!(
            auto.summary.steps < 2 * plain.summary.steps,
            "{} {}",
            auto.summary.steps,
            plain.summary.steps
        );
        let largest =
            |finished: &Finished| finished.summary.drift.iter().map(|d| d.max).fold(0.0, f64::max);
        assert!(largest(&auto) < largest(&plain), "{:e} {:e}", largest(&auto), largest(&plain));
        println!(
            "{tolerance:e}: error {:.2e} (plain {:.2e}), drift {:.2e} (plain {:.2e}), steps {} ({})",
            distance(&auto.state(), &reference),
            distance(&plain.state(), &reference),
            largest(&auto),
            largest(&plain),
            auto.summary.steps,
            plain.summary.steps
        );
    }
}

#[test]
fn large_gains_hurt_high_orders() {
    let reference = [
        0.289982352306,
        0.546233983572,
        -0.785836287366,
        1.788679864730,
        -0.079185067542,
        0.605001356461,
    ];
    let error = |text: &str| {
        distance(&pendulum(&format!("{text} --step 1e-3 --until 100")).state(), &reference)
    };
    let (none, fifty) = (
        error("--method plain:rk4"),
        error("--method feedback:rk4 --gain rod=50,rod.hidden=12.5,H=50,J=50"),
    );
    let ratio = fifty / none;
    println!("RK4: {none:.2e} without, {fifty:.3e} with gains of 50, {ratio:.0} times");
    assert!((100.0..400.0).contains(&ratio), "{fifty:e} {none:e}");
    // The Gauss–Newton form does not hurt, and Euler is useful only with these gains.
    assert!(error("--method feedback:rk4 --gain auto") < 10.0 * none);
    let euler = [
        error("--method plain:euler"),
        error("--method feedback:euler --gain rod=50,rod.hidden=12.5,H=50,J=50"),
    ];
    assert!(euler[0] > 500.0 * euler[1], "{euler:?}");
}

/// Means of h·λmax/r along the exact orbit, computed independently of the engine: 0.2656, and
/// beyond 1 on 6.7 % of the time.
#[test]
fn the_stability_report_of_the_perturbed_kepler_orbit() {
    let finished = run(
        model("perturbed-kepler", &[]),
        options("--method feedback:euler --step 0.03 --until 200 --gain L=3,H=2"),
    )
    .unwrap();
    let Stability { max, mean } = finished.summary.stability.unwrap();
    println!("perturbed Kepler: mean {mean:.4}, maximum {max:.3}");
    assert!((mean / 0.2656 - 1.0).abs() < 0.03, "{mean}");
    assert!(max > 1.0 && max < 2.5, "{max}");
}

#[test]
fn a_gain_matrix() {
    let matrix = |k: Vec<f64>| {
        let options = RunOptions {
            gain: Some(Gains::Matrix(k)),
            ..options("--method feedback:rk4 --step 0.005 --until 20 --samples 401")
        };
        run(
            model("spherical-pendulum", &[("p", "(1.1, 0, -1.05)")]),
            RunOptions { reference: Some("p=(1,0,-1)".into()), ..options },
        )
    };
    let diagonal = |k: [f64; 4]| {
        (0..16).map(|i| if i % 5 == 0 { k[i / 5] } else { 0.0 }).collect::<Vec<f64>>()
    };
    let by_matrix = matrix(diagonal([4.0, 1.0, 3.0, 2.0])).unwrap();
    let named = options(
        "--method feedback:rk4 --step 0.005 --until 20 --gain rod=4,rod.hidden=1,H=3,J=2 --reference p=(1,0,-1)",
    );
    let by_name = run(model("spherical-pendulum", &[("p", "(1.1, 0, -1.05)")]), named).unwrap();
    // The same sums in another order, over 4000 steps of a motion that is not chaotic.
    assert!(distance(&by_matrix.state(), &by_name.state()) < 1e-11);
    let [Stability { max, mean }, Stability { max: max_named, mean: mean_named }] =
        [&by_matrix, &by_name].map(|run| run.summary.stability.unwrap());
    assert!(
        (max / max_named - 1.0).abs() < 1e-6 && (mean / mean_named - 1.0).abs() < 1e-6,
        "{max} {max_named}"
    );
    // Coupled invariants: still V = ½ΔFᵀKΔF, and still an attractor.
    let coupled =
        [4.0, 0.0, 1.5, 0.0, 0.0, 1.0, 0.0, 0.3, 1.5, 0.0, 3.0, -0.5, 0.0, 0.3, -0.5, 2.0];
    let finished = matrix(coupled.to_vec()).unwrap();
    assert!(distance(&finished.state(), &by_name.state()) > 1e-6, "the coupling acts");
    let deviations = pendulum_deviations(&finished);
    assert!(deviations[400] < 1e-4 * deviations[0], "{:e} {:e}", deviations[0], deviations[400]);
    let error = matrix(vec![1.0; 9]).err().unwrap();
    assert!(error.exit_code() == 2 && error.to_string().contains("16"), "{error}");
}
