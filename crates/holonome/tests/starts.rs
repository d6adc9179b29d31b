//! Starts of the trajectories of an ensemble: the rules of `--vary`, one by one.

use holonome::{Error, Problem, Settings, StartError, Starts, SweepOptions};
use holonome_integrate::noise::Noise;
use std::collections::BTreeMap;

const PENDULUM: &str = "\
parameter m = 1
parameter g = 1
parameter l = 1
coordinate q : R^3 = (0, l, 0)
momentum   p of q  = (m, 0, -1)
hamiltonian dot(p, p)/(2*m) + m*g*q.z
constraint  rod : dot(q, q) = l^2
";

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn tables() -> BTreeMap<String, String> {
    BTreeMap::from([("data.csv".to_string(), "m,x\n1,0\n2,5\n3,7\n".to_string())])
}

/// An ensemble with other settings.
fn ensemble_with(
    text: &str,
    settings: Settings,
    vary: &[(&str, &str)],
    trajectories: u64,
) -> Result<(Problem, Starts), Error> {
    let vary = pairs(vary);
    let sweep = SweepOptions { trajectories, vary, ..SweepOptions::default() };
    Problem::from_text_varied("model", text, &tables(), &settings, &sweep)
}

#[track_caller]
fn ensemble(text: &str, vary: &[(&str, &str)], trajectories: u64) -> (Problem, Starts) {
    ensemble_with(text, Settings::default(), vary, trajectories)
        .unwrap_or_else(|e| panic!("{}", rendered(&e)))
}

fn set_with(text: &str, settings: Settings, set: &[(&str, &str)]) -> Problem {
    let settings = Settings { set: pairs(set), ..settings };
    Problem::from_text("model", text, &tables(), &settings)
        .unwrap_or_else(|e| panic!("{}", rendered(&e)))
}

fn set(text: &str, set: &[(&str, &str)]) -> Problem {
    set_with(text, Settings::default(), set)
}

/// Parameter values and initial state of one trajectory, for any previous content of the slices.
fn try_at(problem: &Problem, starts: &Starts, i: u64) -> Result<(Vec<f64>, Vec<f64>), StartError> {
    let mut parameters = vec![f64::NAN; problem.model.parameter_values.len()];
    let mut x = vec![f64::NAN; problem.model.dimension()];
    starts.at(i, &mut parameters, &mut x, &mut vec![f64::NAN; starts.work().len()])?;
    Ok((parameters, x))
}

#[track_caller]
fn at((problem, starts): &(Problem, Starts), i: u64) -> (Vec<f64>, Vec<f64>) {
    try_at(problem, starts, i).unwrap()
}

/// Check equality bit for bit.
#[track_caller]
fn assert_same(found: (Vec<f64>, Vec<f64>), expected: &Problem) {
    let bits = |list: &[f64]| list.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let model = &expected.model;
    assert_eq!(
        bits(&found.0),
        bits(&model.parameter_values),
        "{:?} and {:?}",
        found.0,
        model.parameter_values
    );
    assert_eq!(bits(&found.1), bits(&model.initial), "{:?} and {:?}", found.1, model.initial);
}

/// A number, written so that it reads back with the same bits.
fn written(value: f64) -> String {
    format!("{value:?}")
}

fn rendered(error: &Error) -> String {
    match error {
        Error::Model { text, diagnostics } => text.render(diagnostics, false),
        other => other.to_string(),
    }
}

/// Check the message and its place for an ensemble that is refused.
#[track_caller]
fn refused(text: &str, settings: Settings, vary: &[(&str, &str)], words: &[&str]) {
    let error =
        ensemble_with(text, settings, vary, 10).map(|_| ()).expect_err("it must be refused");
    assert_eq!(error.exit_code(), 2);
    let shown = rendered(&error);
    for word in words {
        assert!(shown.contains(word), "no '{word}' in\n{shown}");
    }
}

#[test]
fn without_vary_every_trajectory_starts_like_a_run() {
    let ensemble = ensemble(PENDULUM, &[], 3);
    for i in 0..3 {
        assert_same(at(&ensemble, i), &set(PENDULUM, &[]));
    }
    assert!((0..3).all(|k| !ensemble.1.varies_parameter(k)));
    assert!((0..6).all(|k| !ensemble.1.varies_state(k)));
}

#[test]
fn values_follow_the_trajectory_and_what_is_made_of_them_follows_them() {
    let vary = [("l", "1 + i/N"), ("m", "if(i < 2, 2, 3)")];
    let ensemble = ensemble(PENDULUM, &vary, 8);
    for i in 0..8u64 {
        let (l, m) = (1.0 + i as f64 / 8.0, if i < 2 { 2.0 } else { 3.0 });
        let found = at(&ensemble, i);
        assert_eq!(found.0, [m, 1.0, l]);
        assert_eq!(found.1, [0.0, l, 0.0, m, 0.0, -1.0]);
        assert_same(found, &set(PENDULUM, &[("l", &written(l)), ("m", &written(m))]));
    }
    assert_eq!([0, 1, 2].map(|k| ensemble.1.varies_parameter(k)), [true, false, true]);
    assert_eq!(
        [0, 1, 2, 3, 4, 5].map(|k| ensemble.1.varies_state(k)),
        [false, true, false, true, false, false]
    );
    assert_same(at(&ensemble, 0), &ensemble.0);
}

/// Parameters, definitions, families, tables, matrices and sums that all depend on `a`.
const CHAIN: &str = "\
table data = \"data.csv\"
size n = 3
parameter c = b + 0.3*a
parameter b = 1.1*twice
let twice = 2.2*a - 0.1
parameter a = 0.7
parameter w[k in 1..n] = data.m[k]*a + sin(k*b)
parameter J = diag(a, 2*b, c) + outer(v, v)/7
parameter v = (a, b, c)
let f(x) = exp(-x^2) + a
coordinate r[k in 1..n] : R^2 = (w[k]*f(0.3) + data.x[k], sum(j in 1..k : w[j]^0.7))
momentum   p[j] of r = (J[j, 1], norm(v)/3*j)
coordinate s = 0.25
momentum   ps of s = det(J)
hamiltonian sum(k in 1..n : dot(p[k], p[k])/2) + ps^2/2 + a*dot(r[1], r[2]) + s
";

#[test]
fn chains_of_dependence_give_the_bits_of_set() {
    let ensemble = ensemble(CHAIN, &[("a", "0.1 + 0.01*i + 0.37*uniform()")], 20);
    for i in 0..20 {
        let found = at(&ensemble, i);
        assert_same(found.clone(), &set(CHAIN, &[("a", &written(found.0[2]))]));
    }
    // Only s starts the same.
    assert_eq!((0..14).filter(|&k| !ensemble.1.varies_state(k)).collect::<Vec<_>>(), [6]);
}

#[test]
fn a_varied_value_may_name_other_parameters_definitions_and_tables() {
    let vary = [("b", "2.5*a + data.m[2]*i"), ("a", "twice0 + i"), ("s", "f(0.2)*a")];
    let text = format!("{CHAIN}let twice0 = 2*pi\n");
    let ensemble = ensemble(&text, &vary, 4);
    for i in 0..4 {
        let (parameters, x) = at(&ensemble, i);
        let (b, a) = (parameters[1], parameters[2]);
        // Two roundings at most: the kernels fuse products and sums.
        let near =
            |x: f64, y: f64| assert!((x - y).abs() <= 2.0 * f64::EPSILON * y.abs(), "{x} and {y}");
        near(a, std::f64::consts::TAU + i as f64);
        near(b, 2.5 * a + 2.0 * i as f64);
        let again = set(&text, &[("b", &written(b)), ("a", &written(a)), ("s", &written(x[6]))]);
        assert_same((parameters, x), &again);
    }
}

#[test]
fn families_keep_their_indices_and_the_trajectory_hides_names() {
    // k is the family's; N is not the size, and the sum's j is not hidden.
    let text = "size N = 3\nsize n = 3\nparameter i = 5\nparameter w[k in 1..N] = i*k\n\
                coordinate r[k in 1..n] : R^2 = (i, N)\nmomentum p of r\n\
                hamiltonian sum(k in 1..n : w[k]*dot(p[k], p[k]))\n";
    let ensemble =
        ensemble(text, &[("w", "k + 10*i + 100*N"), ("p", "(sum(i in 1..2 : i), k + i)")], 7);
    for i in 0..7u64 {
        let (parameters, x) = at(&ensemble, i);
        let w = |k: usize| (k as u64 + 10 * i + 700) as f64;
        assert_eq!(parameters, [5.0, w(1), w(2), w(3)]);
        // In the file both are the model's.
        assert_eq!(x[..6], [5.0, 3.0, 5.0, 3.0, 5.0, 3.0]);
        assert_eq!(x[6..], [1, 2, 3].map(|k: u64| [3.0, (k + i) as f64]).concat());
    }
}

#[test]
fn the_number_of_trajectories_is_a_number_that_indices_may_use() {
    let text = "parameter a = 1\nparameter N = 5\nstate x = 0\nx' = a\n";
    let sum = ensemble(text, &[("a", "sum(k in 1..N : k)"), ("N", "N - i")], 4);
    assert_eq!(at(&sum, 1).0, [1.0 + 2.0 + 3.0 + 4.0, 3.0]);
}

#[test]
fn vectors_and_matrices_vary_and_may_change_their_shape() {
    let text =
        "parameter I = diag(3, 2, 1)\nstate w : R^3 = (1, 1, 1)\nw' = inverse(I)*cross(I*w, w)\n";
    let vary =
        [("I", "diag(3 + i, 2, 1) + outer((0, 0, 1), (0, 0, i))"), ("w", "(1, 0, 0)*normal()")];
    let ensemble = ensemble(text, &vary, 5);
    let (parameters, x) = at(&ensemble, 4);
    assert_eq!(parameters, [7.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 5.0]);
    assert_eq!(x, [Noise::new(0, 4).normal(1, 0), 0.0, 0.0]);
    assert_eq!((0..9).filter(|&k| ensemble.1.varies_parameter(k)).collect::<Vec<_>>(), [0, 8]);

    let other = "parameter a = 1\nstate x = 0\nx' = dot(a, a)\n";
    refused(other, Settings::default(), &[], &["dot does not take R and R"]);
    let (problem, starts) =
        ensemble_with(other, Settings::default(), &[("a", "(i, 1)")], 4).unwrap();
    assert_eq!(try_at(&problem, &starts, 3).unwrap().0, [3.0, 1.0]);
}

#[test]
fn draws_are_counted_in_the_order_of_values_and_depend_on_nothing_else() {
    let text = "parameter a = 1\nparameter b = 2\ncoordinate q[k in 1..2] : R^2 = (normal(), uniform())\n\
                momentum p of q = (a, b)\nhamiltonian sum(k in 1..2 : dot(p[k], p[k])/2)\n";
    let settings = Settings { seed: 17, ..Settings::default() };
    let load = |vary: &[(&str, &str)], n| ensemble_with(text, settings.clone(), vary, n).unwrap();
    // Draws in the file are repeated in each trajectory; trajectory 0 is the start of a run.
    let plain = load(&[], 1 << 32);
    assert_same(at(&plain, 0), &set_with(text, settings.clone(), &[]));
    for i in [0, 1, 2, u32::MAX] {
        let noise = Noise::new(17, i);
        let expected =
            [noise.normal(1, 0), noise.uniform(2, 0), noise.normal(3, 0), noise.uniform(4, 0)];
        assert_eq!(at(&plain, i.into()).1[..4], expected);
    }
    // Parameters come first, and one draw of a parameter is the same at every use of it.
    let varied = load(&[("b", "uniform()"), ("p", "(b, a + normal())")], 9);
    for i in [0, 8] {
        let noise = Noise::new(17, i);
        let (parameters, x) = at(&varied, i.into());
        let b = noise.uniform(1, 0);
        assert_eq!(parameters, [1.0, b]);
        assert_eq!(
            x[..4],
            [noise.normal(2, 0), noise.uniform(3, 0), noise.normal(4, 0), noise.uniform(5, 0)]
        );
        assert_eq!(x[4..], [b, 1.0 + noise.normal(6, 0), b, 1.0 + noise.normal(7, 0)]);
    }
    // In trajectory 0 they are those of --set for an initial value.
    let draws = load(&[("p", "(0.1*normal(), 2)")], 2);
    assert_same(at(&draws, 0), &set_with(text, settings, &[("p", "(0.1*normal(), 2)")]));
}

const VELOCITY: &str = "\
parameter m = 2
parameter c = 0.5
coordinate q : R^2 = (1.2, 0.3)
velocity v of q = (0, 1)
coordinate s = 3
momentum ps of s
hamiltonian (p_q.x^2 + c*p_q.x*p_q.y + m*p_q.y^2)/(2*m) + q.x*p_q.y + ps^2/2
";

#[test]
fn velocities_become_momenta_anew() {
    // Through the mass matrix, the velocity, H_p(q, 0), and the mass matrix again.
    for vary in [("m", "1.3 + 0.17*i"), ("v", "(0.1*i, 0.7)"), ("q", "(0.3*i, 0)"), ("c", "0.01*i")]
    {
        let ensemble = ensemble(VELOCITY, &[vary], 6);
        for i in 1..6 {
            let found = at(&ensemble, i);
            let value = match vary.0 {
                "m" => written(found.0[0]),
                "c" => written(found.0[1]),
                "q" => format!("({:?}, {:?})", found.1[0], found.1[1]),
                _ => format!("({:?}, 0.7)", 0.1 * i as f64),
            };
            assert_ne!(found.1[3..5], ensemble.0.model.initial[3..5]);
            let ([m, c], [x, p, r]) = ([0, 1].map(|k| found.0[k]), [0, 3, 4].map(|k| found.1[k]));
            let v = if vary.0 == "v" { [0.1 * i as f64, 0.7] } else { [0.0, 1.0] };
            // H_p: a few roundings of numbers of about 1.
            assert!(((2.0 * p + c * r) / (2.0 * m) - v[0]).abs() < 1e-15, "{found:?}");
            assert!(((c * p + 2.0 * m * r) / (2.0 * m) + x - v[1]).abs() < 1e-15, "{found:?}");
            assert_same(found, &set(VELOCITY, &[(vary.0, &value)]));
        }
        assert_eq!([3, 4].map(|k| ensemble.1.varies_state(k)), [true, true]);
        assert!(!ensemble.1.varies_state(2) && !ensemble.1.varies_state(5));
    }
    let (problem, starts) = ensemble(VELOCITY, &[("c", "i"), ("m", "2")], 10);
    // H_pp = (1, c/2; c/2, m)/m is singular where c² = 4 m: never for whole c and m = 2. With m = 4
    // at c = 4.
    assert!((0..10).all(|i| try_at(&problem, &starts, i).is_ok()));
    let (problem, starts) = ensemble(VELOCITY, &[("c", "i"), ("m", "4")], 10);
    let error = try_at(&problem, &starts, 4).unwrap_err();
    assert_eq!(error.trajectory(), 4);
    let words = "trajectory 4: the initial velocity determines no momentum 'p_q': the mass matrix is singular";
    assert!(error.to_string().starts_with(words), "{error}");
}

#[test]
fn what_is_not_finite_is_named() {
    let (problem, starts) = ensemble(PENDULUM, &[("m", "1/(3 - i)")], 10);
    assert!(try_at(&problem, &starts, 2).is_ok());
    let error = try_at(&problem, &starts, 3).unwrap_err();
    assert_eq!(error.trajectory(), 3);
    assert!(
        error.to_string().starts_with("trajectory 3: parameter 'm' is inf: not a finite number"),
        "{error}"
    );
    let text = "state x = sqrt(a)\nparameter a = 1\nx' = 1\n";
    let (problem, starts) = ensemble(text, &[("a", "2 - i")], 10);
    let error = try_at(&problem, &starts, 3).unwrap_err().to_string();
    assert!(error.starts_with("trajectory 3: the initial value of 'x' is NaN"), "{error}");
    assert!(error.contains("vary"), "{error}");
}

#[test]
fn starts_off_the_constraint_set_are_refused_or_projected() {
    let off = |vary: &[(&str, &str)], i: u64, words: &[&str]| {
        let (problem, starts) = ensemble(PENDULUM, vary, 10);
        assert!(try_at(&problem, &starts, 0).is_ok());
        let error = try_at(&problem, &starts, i).unwrap_err();
        assert_eq!(error.trajectory(), i);
        let shown = error.to_string();
        for word in words.iter().chain(&["project_initial"]) {
            assert!(shown.contains(word), "no '{word}' in {shown}");
        }
    };
    let rod = "trajectory 2 does not meet constraint 'rod': left side minus right side is 0.44;";
    off(&[("q", "(0, 1 + 0.1*i, 0)")], 2, &[rod]);
    off(
        &[("p", "(1, 0.5*i, 0)")],
        1,
        &["trajectory 1 does not meet the hidden constraint of 'rod': the velocity", "is 1"],
    );
    // The constraint itself moves: only a parameter varies.
    let text = PENDULUM.replace("(0, l, 0)", "(0, 1, 0)");
    let (problem, starts) = ensemble(&text, &[("l", "1 + i")], 10);
    let error = try_at(&problem, &starts, 1).unwrap_err().to_string();
    assert!(error.contains("constraint 'rod': left side minus right side is -3"), "{error}");

    // As in a run with --reference as its target.
    let settings = Settings { start_off_set: true, ..Settings::default() };
    let (problem, starts) = ensemble_with(&text, settings, &[("l", "1 + i")], 10).unwrap();
    assert!(try_at(&problem, &starts, 1).is_ok());

    let settings = Settings { project_initial: true, ..Settings::default() };
    let vary = [("q", "(0.1*i, 1 + 0.1*i, 0.2)"), ("l", "1 + 0.05*i")];
    let ensemble = ensemble_with(PENDULUM, settings.clone(), &vary, 10).unwrap();
    assert_same(at(&ensemble, 0), &ensemble.0);
    for i in 0..10 {
        let (parameters, x) = at(&ensemble, i);
        // Newton's iteration converges to rounding.
        assert!(
            (x[..3].iter().map(|v| v * v).sum::<f64>() - parameters[2].powi(2)).abs()
                < 1e-15 * 10.0
        );
        let unprojected = [0.1 * i as f64, 1.0 + 0.1 * i as f64, 0.2].map(written).join(", ");
        let set = [("q", format!("({unprojected})")), ("l", written(parameters[2]))];
        let expected =
            set_with(PENDULUM, settings.clone(), &[(set[0].0, &set[0].1), (set[1].0, &set[1].1)]);
        // 1 + 0.1 i is one fused operation in a formula, and two in --set.
        for (a, b) in x.iter().zip(&expected.model.initial) {
            assert!((a - b).abs() < 1e-15, "{x:?} and {:?}", expected.model.initial);
        }
    }
    assert!((0..6).all(|k| ensemble.1.varies_state(k)));

    // If all start alike, all start like trajectory 0.
    let text = PENDULUM.replace("(0, l, 0)", "(0.2, 1.1, 0)");
    let same = ensemble_with(&text, settings.clone(), &[], 10).unwrap();
    assert_same(at(&same, 7), &set_with(&text, settings.clone(), &[]));

    let (problem, starts) =
        ensemble_with(PENDULUM, settings, &[("q", "(0, if(i == 3, 0, 1), 0)")], 10).unwrap();
    let error = try_at(&problem, &starts, 3).unwrap_err().to_string();
    assert!(
        error.starts_with("project_initial: trajectory 3: the constraints are redundant there"),
        "{error}"
    );
}

/// The starts of a chain of 300 masses, and of one of 3000, are moved onto its rods in every
/// trajectory: by as much as the rods are too long.
#[test]
fn starts_of_large_chains_are_projected() {
    for n in [300, 3000] {
        let text = format!(
            "size n = {n}\nparameter s = 1\ncoordinate r[i in 1..n] : R^2 = (s*i, -2*s*i)\nmomentum p of r\n\
             hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)\n\
             constraint anchor : dot(r[1], r[1]) = 5\n\
             constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 5\n"
        );
        let settings = Settings { project_initial: true, ..Settings::default() };
        let vary = [("s", "1 + 1e-4*i"), ("p", "(2*i, i)")];
        let ensemble = ensemble_with(&text, settings, &vary, 3).unwrap();
        assert!(ensemble.0.examined.rows.is_some());
        for trajectory in 0..3 {
            let (_, x) = at(&ensemble, trajectory);
            let (q, p) = x.split_at(2 * n);
            let mut before = [0.0; 4];
            for (q, p) in q.as_chunks::<2>().0.iter().zip(p.as_chunks::<2>().0) {
                let rod = [q[0] - before[0], q[1] - before[1]];
                // Ten roundings of squares of positions, which are up to 2 n large.
                let rounding = 10.0 * 2.0 * n as f64 * f64::EPSILON * 5.0;
                assert!((rod[0] * rod[0] + rod[1] * rod[1] - 5.0).abs() < rounding, "{q:?}");
                let along = rod[0] * (p[0] - before[2]) + rod[1] * (p[1] - before[3]);
                assert!(along.abs() < rounding, "{along:e}");
                before = [q[0], q[1], p[0], p[1]];
            }
            let turned = p[0].hypot(p[1]);
            assert_eq!(turned > 0.1, trajectory > 0, "{turned}");
        }
    }
}

/// A momentum along a rod is refused in small and large chains, with other parameters or without.
#[test]
fn momenta_along_a_link_are_refused() {
    for n in [3, 300] {
        let text = format!(
            "size n = {n}\nparameter g = 1\ncoordinate r[i in 1..n] : R^2 = (i, -2*i)\nmomentum p of r\n\
             hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + g*r[i].y)\n\
             constraint anchor : dot(r[1], r[1]) = 5\n\
             constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 5\n"
        );
        for more in [&[][..], &[("g", "1 + i")]] {
            // All masses move alike: along the rods, or across them.
            let along = ensemble(&text, &[&[("p", "(i, -2*i)")], more].concat(), 3);
            assert!(try_at(&along.0, &along.1, 0).is_ok(), "at rest");
            let error = try_at(&along.0, &along.1, 2).unwrap_err().to_string();
            assert!(error.contains("trajectory 2") && error.contains("anchor"), "{error}");
            let across = ensemble(&text, &[&[("p", "(2*i, i)")], more].concat(), 3);
            assert!(try_at(&across.0, &across.1, 2).is_ok(), "{n} links");
        }
    }
}

#[test]
fn families_of_constraints_name_the_member() {
    let text = "size n = 3\ncoordinate r[k in 1..n] : R^2 = (1, 0)\nmomentum p of r\n\
                hamiltonian sum(k in 1..n : dot(p[k], p[k])/2)\nconstraint c[k in 1..n] : dot(r[k], r[k]) = 1\n";
    let (problem, starts) =
        ensemble(text, &[("r", "(1 + if(k == 2, i, 0), 0)"), ("p", "(0, k*i)")], 4);
    let error = try_at(&problem, &starts, 1).unwrap_err().to_string();
    assert!(
        error.contains(
            "trajectory 1 does not meet constraint 'c[2]': left side minus right side is 3;"
        ),
        "{error}"
    );
    let (problem, starts) = ensemble(text, &[("p", "(if(k == 3, i, 0), 0)")], 4);
    let error = try_at(&problem, &starts, 2).unwrap_err().to_string();
    assert!(error.contains("the hidden constraint of 'c[3]'"), "{error}");
}

#[test]
fn hidden_constraints_see_the_parameters_of_their_trajectory() {
    let text = "parameter a = 1\nparameter b = 2\ncoordinate q : R^2 = (-a, 1)\nmomentum p of q = (-a, 1)\n\
                hamiltonian dot(p, p)/2 + b*q.x\nconstraint line : q.x + a*q.y = 0\n";
    let (problem, starts) = ensemble(text, &[("a", "1 + i"), ("b", "i^2")], 4);
    assert!((0..4).all(|i| try_at(&problem, &starts, i).is_ok()));
    let (problem, starts) = ensemble(text, &[("a", "1 + i"), ("p", "(-1, 1)")], 4);
    let error = try_at(&problem, &starts, 3).unwrap_err().to_string();
    assert!(
        error.contains("trajectory 3 does not meet the hidden constraint of 'line'"),
        "{error}"
    );
    assert!(error.contains("is 3;"), "{error}");
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let plain = Settings::default;
    refused(PENDULUM, plain(), &[("l", "1 + j")], &["unknown name 'j'", "--> vary:1:7", "l=1 + j"]);
    refused(PENDULUM, plain(), &[("l", "1 +")], &["--> vary:1:"]);
    let spring = "parameter stiffness = 1\nstate x = 0\nx' = stiffness\n";
    let words = ["cannot vary 'stifness'", "--> vary:1:1", "did you mean 'stiffness'?"];
    refused(spring, plain(), &[("stifness", "1")], &words);
    refused(
        PENDULUM,
        plain(),
        &[("speed", "1")],
        &["cannot vary 'speed'", "these can be varied: m, g, l, q, p"],
    );
    refused(
        PENDULUM,
        plain(),
        &[("q", "(i, 1)")],
        &["the initial value of 'q' has the shape R^2", "--> vary:1:3"],
    );
    refused(
        PENDULUM,
        plain(),
        &[("q", "(0, t, 0)")],
        &["the time t cannot be used in initial values"],
    );
    refused(PENDULUM, plain(), &[("l", "2*l")], &["parameter 'l' is defined by itself"]);
    refused(
        PENDULUM,
        plain(),
        &[("l", "q.x")],
        &["the coordinate 'q' cannot be used in a parameter", "--> vary:1:3"],
    );
    refused(
        PENDULUM,
        plain(),
        &[("l", "1"), ("l", "2")],
        &["'l' is given by vary twice", "--> vary:1:1", "first time"],
    );
    // The numbers of trajectory 0 are checked at once.
    refused(
        PENDULUM,
        plain(),
        &[("q", "(0, 2 + i, 0)")],
        &["the initial state does not meet constraint", "vary:1:3"],
    );
    refused(PENDULUM, plain(), &[("m", "1/i")], &["parameter 'm' is inf", "--> vary:1:3"]);

    let sized = "size n = 2\nparameter i = 1\nstate x[k in 1..n] = k\nx[k]' = i\n";
    let words = ["cannot vary 'n': it is a size", "--> vary:1:1", "set n=…", "declared here"];
    refused(sized, plain(), &[("n", "2")], &words);
    refused(sized, plain(), &[("m", "2")], &["these can be varied: i, x"]);
    let words = ["an index is made of", "--> vary:1:6", "this differs between trajectories"];
    refused(
        sized,
        plain(),
        &[("x", "(1, 2)[i]")],
        &["an index is made of", "this differs between trajectories"],
    );
    refused(sized, plain(), &[("x", "sum(j in 1..i : j)")], &[words[0], words[2]]);

    let both = Settings { set: pairs(&[("l", "2")]), ..plain() };
    let words = [
        "'l' is given both by set and by vary",
        "--> vary:1:1",
        "::: set:1:1",
        "leave one of them out",
    ];
    refused(PENDULUM, both, &[("l", "1 + i")], &words);
    // Elsewhere neither the trajectory nor draws are known.
    let set = |value| Settings { set: pairs(&[("l", value)]), ..plain() };
    refused(PENDULUM, set("i"), &[("m", "2 + i")], &["unknown name 'i'", "--> set:1:3"]);
    refused(
        PENDULUM,
        set("normal()"),
        &[],
        &["normal() stands only in initial values and in vary", "--> set:1:3"],
    );

    for (trajectories, words) in [(0, "at least one"), ((1 << 32) + 1, "4294967296")] {
        let error = ensemble_with(PENDULUM, plain(), &[], trajectories).map(|_| ()).unwrap_err();
        assert!(
            error.to_string().contains(words) && error.to_string().contains("trajectories"),
            "{error}"
        );
    }
}

#[test]
fn set_seed_and_vary_go_together() {
    let settings =
        Settings { set: pairs(&[("g", "3"), ("m", "2*l")]), seed: 4, ..Settings::default() };
    let ensemble = ensemble_with(PENDULUM, settings, &[("l", "1 + uniform()")], 3).unwrap();
    for i in 0..3 {
        let l = 1.0 + Noise::new(4, i).uniform(1, 0);
        assert_eq!(at(&ensemble, i.into()).0, [2.0 * l, 3.0, l]);
    }
}

#[test]
fn boxes_too_short_for_a_cut_off_are_refused_in_every_trajectory() {
    let text = "\
parameter L = 6
parameter rc = 2.5
coordinate r[i in 1..3] : R^3 = (1.2*i, 0.3*i, -i)
momentum   p of r
let apart(i, j) = nearest(r[i] - r[j], L)
hamiltonian sum(i in 1..3 : dot(p[i], p[i])/2) + sum(i in 1..3, j in i+1..3 if norm(apart(i, j)) < rc : \
    (norm(apart(i, j)) - rc)^2)
";
    let reason = |(problem, starts): &(Problem, Starts), i| {
        try_at(problem, starts, i).unwrap_err().to_string()
    };
    // The box's length, or one of its lengths, or the cut-off varies.
    for (vary, at) in [(("L", "6-i/2"), 2), (("rc", "2.5+i/4"), 2), (("L", "(6, 8-i, 7)"), 3)] {
        let ensemble = ensemble(text, &[vary], 10);
        at_all(&ensemble, 0..=at);
        let words = reason(&ensemble, at + 1);
        assert!(words.contains("is more than half of the periodic box of length"), "{words}");
        assert!(words.contains(&format!("trajectory {}", at + 1)), "{words}");
    }
    // Other variations do not concern the box, and a box exactly twice as long as the cut-off
    // suffices.
    at_all(&ensemble(text, &[("p", "(normal(), 0, 0)")], 10), 0..=9);
    at_all(&ensemble(text, &[("L", "6+i/7"), ("rc", "L/2")], 10), 0..=9);
}

#[track_caller]
fn at_all(ensemble: &(Problem, Starts), trajectories: std::ops::RangeInclusive<u64>) {
    for i in trajectories {
        at(ensemble, i);
    }
}
