//! Tests of the language, case by case: a text and its numbers. Texts that are not models are in
//! `suite/errors`.

mod support;

use holonome_model::elaborate::expression::Draw;
use holonome_model::elaborate::model::{Dynamics, Model};
use holonome_model::elaborate::{Environment, elaborate, names};
use holonome_model::syntax::ast::Name;
use holonome_model::syntax::span::Span;
use std::f64::consts::PI;

/// The value of an expression at q = (3, 4), v = (1, 2, 2), s = 2, t = 0.5.
fn value(expression: &str) -> Vec<f64> {
    let text = format!(
        "coordinate q : R^2 = (3, 4)\nmomentum p of q = (-1, 0.5)\ncoordinate v : R^3 = (1, 2, 2)\nmomentum w of v\ncoordinate s = 2\nmomentum ps of s\n\
         coordinate A : R^(2,2) = matrix((1, 2), (3, 4))\nmomentum PA of A\nparameter c = (10, 20, 30)\nsize n = 3\nhamiltonian 0*s\nobserve o = {expression}\n"
    );
    let (model, findings) = support::check(&text);
    let model = model.unwrap_or_else(|| panic!("{expression}: {findings:#?}"));
    model.observables[0].functional.evaluate(0.5, &model.initial, &model.parameter_values)
}

/// Compares up to four roundings of the larger number: one for each operation of the longest cases,
/// which are small integers otherwise.
fn assert_near(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}: {got:?}");
    for (a, b) in got.iter().zip(expected) {
        assert!(
            (a - b).abs() <= 4.0 * f64::EPSILON * b.abs(),
            "{what}: {got:?} instead of {expected:?}"
        );
    }
}

fn check(cases: &[(&str, &[f64])]) {
    for (expression, expected) in cases {
        assert_near(&value(expression), expected, expression);
    }
}

#[test]
fn numbers_and_precedence() {
    check(&[
        ("1", &[1.0]),
        ("0.5", &[0.5]),
        ("1e-3", &[1e-3]),
        ("2.5e6", &[2.5e6]),
        ("1/400", &[0.0025]),
        ("pi", &[PI]),
        ("t", &[0.5]),
        // Unary minus is looser than powers and tighter than products.
        ("-s^2", &[-4.0]),
        ("(-s)^2", &[4.0]),
        ("2^-1", &[0.5]),
        ("2^3^2", &[512.0]),
        ("(2^3)^2", &[64.0]),
        ("s^-s", &[0.25]),
        ("-2*-s", &[4.0]),
        ("1 - 2 - 3", &[-4.0]),
        ("1 - (2 - 3)", &[2.0]),
        ("2/4/2", &[0.25]),
        ("2/4*2", &[1.0]),
        ("2 + 3*s^2", &[14.0]),
        ("--s", &[2.0]),
        ("1 +\n  s", &[3.0]),
        ("(1 + # a comment\n s)", &[3.0]),
        ("dot(q,\n q)", &[25.0]),
        // Conditions: or, and, not, comparisons.
        ("if(1 < 2 and 2 < 1 or 1 == 1, 1, 0)", &[1.0]),
        ("if(1 < 2 and (2 < 1 or 1 == 1), 1, 0)", &[1.0]),
        ("if(1 == 1 or 1 == 1 and 1 == 2, 1, 0)", &[1.0]),
        ("if(not 1 == 2 and 1 == 1, 1, 0)", &[1.0]),
        ("if(not (1 == 2 or 1 == 1), 1, 0)", &[0.0]),
        ("if(s + 1 < s*2, 1, 0)", &[1.0]),
        (
            "if(s != 2, 1, 0) + if(s >= 2, 10, 0) + if(s > 2, 100, 0) + if(s <= 2, 1000, 0)",
            &[1010.0],
        ),
    ]);
}

#[test]
fn shapes_and_components() {
    check(&[
        ("q", &[3.0, 4.0]),
        ("(q)", &[3.0, 4.0]),
        ("(s)", &[2.0]),
        ("(q.x, s, q.y)", &[3.0, 2.0, 4.0]),
        ("q[2]", &[4.0]),
        ("v.z - v[1]", &[1.0]),
        ("(5, 6, 7)[2]", &[6.0]),
        ("(q + q).y", &[8.0]),
        ("c[3]", &[30.0]),
        ("c[n - 1]", &[20.0]),
        ("A", &[1.0, 2.0, 3.0, 4.0]),
        ("A[2,1]", &[3.0]),
        ("A[1,n - 1]", &[2.0]),
        ("matrix(q, (5, 6))", &[3.0, 4.0, 5.0, 6.0]),
        ("matrix((1, 2, 3), (4, 5, 6))[2,3]", &[6.0]),
        ("(A*q)[2]", &[25.0]),
        ("2*q", &[6.0, 8.0]),
        ("q*2", &[6.0, 8.0]),
        ("q/2", &[1.5, 2.0]),
        ("-q", &[-3.0, -4.0]),
        ("q + (1, 1) - q/2", &[2.5, 3.0]),
        ("s*A", &[2.0, 4.0, 6.0, 8.0]),
        ("A/2 - A", &[-0.5, -1.0, -1.5, -2.0]),
        ("A*q", &[11.0, 25.0]),
        ("A*A", &[7.0, 10.0, 15.0, 22.0]),
        ("matrix((1, 2, 3), (4, 5, 6))*v", &[11.0, 26.0]),
        ("if(s > 1, q, (0, 0))", &[3.0, 4.0]),
        ("if(s < 1, A, identity(2))", &[1.0, 0.0, 0.0, 1.0]),
    ]);
}

/// Cases of every function that a user can call; a function of the engine that is missing here
/// fails `no_function_is_left_out`.
const FUNCTIONS: &[(&str, &[f64])] = &[
    ("sqrt(q.x^2 + q.y^2)", &[5.0]),
    ("sin(s)", &[0.909_297_426_825_681_7]),
    ("cos(s)", &[-0.416_146_836_547_142_4]),
    ("tan(s)", &[-2.185_039_863_261_519]),
    ("asin(1/s)", &[PI / 6.0]),
    ("acos(1/s)", &[PI / 3.0]),
    ("atan(s)", &[1.107_148_717_794_090_4]),
    ("atan2(1, -1)", &[0.75 * PI]),
    ("atan2(-s, s)", &[-PI / 4.0]),
    ("sinh(s)", &[3.626_860_407_847_019]),
    ("cosh(s)", &[3.762_195_691_083_631_4]),
    ("tanh(s)", &[0.964_027_580_075_816_9]),
    ("exp(s)", &[7.389_056_098_930_65]),
    ("log(s)", &[std::f64::consts::LN_2]),
    ("abs(-s) + abs(s)", &[4.0]),
    ("round(s/4) + 10*round(1.5) + 100*round(-s) + 1000*round(-2.6)", &[-3180.0]),
    ("floor(s) + 10*floor(2.5) + 100*floor(-s/4) + 1000*floor(-2.6)", &[-3078.0]),
    ("ceil(s) + 10*ceil(2.5) + 100*ceil(-s/4) + 1000*ceil(-2.6)", &[-1968.0]),
    ("floor(1.5*s) + 10*ceil(-0.5*s) + 100*floor(0.25*s) + 1000*ceil(0.25*s)", &[993.0]),
    ("mod(7, 3) + 10*mod(-7, 3) + 100*mod(3.5*s, -3) + 1000*mod(s, 2)", &[1.0 + 20.0 - 200.0]),
    ("mod(2*pi*s, 2*pi) + mod(-1e-20*s, 3)", &[3.0]),
    ("sign(s) + 10*sign(-s) + 100*sign(s - 2)", &[-9.0]),
    ("clamp(s, 0, 1) + 10*clamp(s, 3, 4) + 100*clamp(s, 1, 3)", &[231.0]),
    ("hypot(q.x, q.y)", &[5.0]),
    ("log10(500*s)", &[3.0]),
    ("log10(s)", &[std::f64::consts::LOG10_2]),
    ("log1p(s) + log1p(1e-20*s)", &[1.098_612_288_668_109_8]),
    ("expm1(s) + expm1(1e-20*s)", &[6.389_056_098_930_65]),
    ("erf(s)", &[0.995_322_265_018_952_7]),
    ("nearest(5.5*s, 4) + 10*nearest(-s, 4)", &[-21.0]),
    ("nearest(v + (9, 0, 6), 3)", &[1.0, -1.0, -1.0]),
    ("nearest(v, (1.5, 2, 3))", &[-0.5, 0.0, -1.0]),
    ("min(s, 3) + 10*min(3, s)", &[22.0]),
    ("max(s, 3) + 10*max(3, s)", &[33.0]),
    ("pow(s, 10)", &[1024.0]),
    ("pow(s, 0.5)", &[std::f64::consts::SQRT_2]),
    ("gamma(s + 3)", &[24.0]),
    ("lgamma(s)", &[0.0]),
    ("digamma(s - 1)", &[-0.5772156649015329]),
    ("polygamma(1, s - 1)", &[PI * PI / 6.0]),
    ("gammainc(1, s)", &[0.8646647167633873]),
    ("besselj(1, 0*s) + besselj(0, 0)", &[1.0]),
    ("ellipk(s - 2) + ellipe(1)", &[PI / 2.0 + 1.0]),
    ("dot(q, (1, 10))", &[43.0]),
    ("dot(A, A)", &[30.0]),
    ("cross(v, (1, 0, 0))", &[0.0, 2.0, -2.0]),
    ("norm(v)", &[3.0]),
    ("norm(2*matrix((1, 2), (2, 0)))", &[6.0]),
    ("outer(q, v)", &[3.0, 6.0, 6.0, 4.0, 8.0, 8.0]),
    ("hat(v)*(1, 0, 0)", &[0.0, 2.0, -2.0]),
    ("hat(v)", &[0.0, -2.0, 2.0, 2.0, 0.0, -1.0, -2.0, 1.0, 0.0]),
    ("transpose(matrix((1, 2, 3), (4, 5, 6)))", &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
    ("trace(A)", &[5.0]),
    ("det(A)", &[-2.0]),
    ("det(matrix((2, 0, 1), (1, 3, 0), (0, 1, 4)))", &[25.0]),
    ("inverse(A)", &[-2.0, 1.0, 1.5, -0.5]),
    ("inverse(diag(1, 2, 4, 8, 16, 32))[6,6]", &[1.0 / 32.0]),
    ("identity(n)[3,3] + identity(2)[1,2]", &[1.0]),
    ("diag(1, s)", &[1.0, 0.0, 0.0, 2.0]),
    ("diag(q)", &[3.0, 0.0, 0.0, 4.0]),
    ("diag(s)", &[2.0]),
    ("matrix(q, q)", &[3.0, 4.0, 3.0, 4.0]),
    ("if(s == 2, 7, 8)", &[7.0]),
    ("sum(i in 1..n : c[i])", &[60.0]),
];

#[test]
fn every_function() {
    check(FUNCTIONS);
}

#[test]
fn members_are_listed() {
    let text = "
        parameter m[i in 0..2] = list(1, 2*k, 4 + 1)
        parameter k = 5
        parameter u[i in 1..1] = list((1, 2))
        coordinate q[i in 1..3] : R^2 = list((0, m[1]), (k, 2), u[1])
        momentum p of q = list((0, 1), (i, 1), (3, 0))
        hamiltonian sum(i in 1..3 : dot(p[i], p[i])/2)";
    let (model, findings) = support::check(text);
    let model = model.unwrap_or_else(|| panic!("{findings:#?}"));
    let state = [0.0, 10.0, 5.0, 2.0, 1.0, 2.0, 0.0, 1.0, 2.0, 1.0, 3.0, 0.0];
    assert_eq!(model.initial, state);
    assert_eq!(model.parameter_values[..3], [1.0, 10.0, 5.0]);
    // A long list, whose entries are an expression each.
    let many: Vec<String> = (0..5000).map(|k| k.to_string()).collect();
    let text = format!(
        "coordinate q[i in 1..5000] : R = list({})\nmomentum p of q = 0\nhamiltonian p[1]^2/2",
        many.join(", ")
    );
    let (model, findings) = support::check(&text);
    let model = model.unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!(model.initial[..5000], (0..5000).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn no_function_is_left_out() {
    for name in names::function_names() {
        // Draws are allowed in initial values only, and interpolations take tables; both have tests
        // of their own.
        let tested = ["normal", "uniform", "spline", "linear", "hold"].contains(&name)
            || FUNCTIONS.iter().any(|(e, _)| e.contains(&format!("{name}(")));
        assert!(tested, "{name}");
    }
}

#[test]
fn inverses_of_any_size_are_inverses() {
    // A matrix with all entries different, up to the largest that is accepted.
    for n in 1..=6usize {
        let rows: Vec<String> = (1..=n)
            .map(|i| {
                format!(
                    "({})",
                    (1..=n)
                        .map(|j| format!(
                            "{}",
                            ((7 * i * j + 3 * i + j) % 11) as f64 + if i == j { 20.0 } else { 0.0 }
                        ))
                        .collect::<Vec<_>>()
                        .join(", ")
                )
            })
            .collect();
        let m =
            if n == 1 { "diag(28)".to_string() } else { format!("matrix({})", rows.join(", ")) };
        let product = value(&format!("{m}*inverse({m})"));
        for (k, v) in product.iter().enumerate() {
            let expected = if k / n == k % n { 1.0 } else { 0.0 };
            // Diagonally dominant: condition below 20; cofactors take about 2^n roundings.
            assert!((v - expected).abs() < 64.0 * 20.0 * f64::EPSILON, "{n}: {product:?}");
        }
    }
}

/// Parameters, sizes and the initial state.
fn model(text: &str) -> Model {
    support::model(text)
}

fn hamiltonian(model: &Model) -> f64 {
    let Dynamics::Hamiltonian(f, _) = &model.dynamics else { panic!("no hamiltonian") };
    f.evaluate(0.0, &model.initial, &model.parameter_values)[0]
}

const REST: &str = "coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2\n";

#[test]
fn parameters_in_any_order_and_of_any_shape() {
    let m = model(&format!(
        "parameter b = 2*a\nparameter a = n + 1\nsize n = m*2\nsize m = 3\nparameter c[s in 1..3] = (0.4, -0.8, 0.4)[s]*a\nparameter I = diag(3, 2, 1)\nparameter w = I*(1, 1, k)\nlet k = b + 1\n{REST}"
    ));
    let expected = [
        14.0,
        7.0,
        0.4 * 7.0,
        -0.8 * 7.0,
        0.4 * 7.0,
        3.0,
        0.0,
        0.0,
        0.0,
        2.0,
        0.0,
        0.0,
        0.0,
        1.0,
        3.0,
        2.0,
        15.0,
    ];
    assert_near(&m.parameter_values, &expected, "parameters");
    assert_eq!(m.sizes, [("m".to_string(), 3), ("n".to_string(), 6)]);
    // A parameter called R: shapes and values have separate names.
    let m = model(
        "parameter R = 2\nparameter k = 5\ncoordinate q : R^2 = (R, k)\nmomentum p of q\nhamiltonian R*q.x\n",
    );
    assert_eq!(hamiltonian(&m), 4.0);
    // A size as a dimension.
    let m = model(
        "size k = 2\nsize l = k + 1\ncoordinate q : R^k = (1, 2)\nmomentum p of q\ncoordinate B : R^(k,l) = matrix((1, 2, 3), (4, 5, 6))\nmomentum PB of B\nhamiltonian q.y + B[2,3]\n",
    );
    assert_eq!(hamiltonian(&m), 8.0);
}

#[test]
fn replacements() {
    let text = "size n = 2\nparameter a = 1\nparameter b = 10*a\ncoordinate x[i in 1..n] : R^2 = (i, a)\nmomentum p of x\nhamiltonian b*sum(i in 1..n : x[i].x) + p[1].y\n";
    for (set, expected) in [
        (vec![], 30.0),
        (vec![("a", "2")], 60.0),
        (vec![("n", "4")], 100.0),
        (vec![("b", "a + n")], 9.0),
        (vec![("x", "(i^2, 0)")], 50.0),
        (vec![("p", "(0, 5*i)")], 35.0),
        (vec![("a", "2"), ("n", "3"), ("b", "7")], 42.0),
    ] {
        let (m, findings) = support::check_with(text, &|_| Err(String::new()), &set);
        assert_eq!(hamiltonian(&m.unwrap_or_else(|| panic!("{findings:?}"))), expected, "{set:?}");
    }
    let (m, findings) = support::check_with(text, &|_| Err(String::new()), &[("aa", "2")]);
    assert!(
        m.is_none()
            && findings[0].help.as_deref().is_some_and(|h| h == "these can be set: n, a, b, x, p"),
        "{findings:?}"
    );
}

#[test]
fn names_hide_names() {
    check(&[
        // Indices and the parameters of lets hide outer names, t and functions included.
        ("sum(s in 1..3 : s) + s", &[8.0]),
        ("sum(t in 1..3 : t) + t", &[6.5]),
        ("sum(q in 1..2 : q*q)", &[5.0]),
        ("sum(i in 1..2, j in 1..i : sum(i in 5..5 : i) + j)", &[5.0 * 3.0 + 1.0 + 1.0 + 2.0]),
        ("sum(i in 1..3 : sum(i in i..3 : i))", &[6.0 + 5.0 + 3.0]),
    ]);
    let with = |lets: &str, e: &str| {
        let m = model(&format!("{lets}\ncoordinate q = 3\nmomentum p of q = 5\nhamiltonian {e}\n"));
        hamiltonian(&m)
    };
    assert_eq!(with("let f(q) = q^2", "f(2) + q"), 7.0);
    assert_eq!(with("let f(t) = 2*t", "f(q)"), 6.0);
    assert_eq!(with("let f(p, q) = p - q", "f(q, p)"), -2.0);
    assert_eq!(with("let f(a) = a + q\nlet g(q) = f(10*q)", "g(1)"), 13.0);
    assert_eq!(with("let H2 = H - q", "p"), 5.0);
    assert_eq!(with("let f(a) = sum(i in 1..2 : a*i)", "sum(i in 1..2 : f(i))"), 9.0);
    // An argument may be a vector or a matrix, and a let may return one.
    assert_eq!(
        with("let f(a, b) = a*b\nlet m = diag(1, 2)", "f(m, (q, p)).y + f(2, (1, 1)).x"),
        12.0
    );
}

#[test]
fn momenta_and_velocities() {
    let m = model(
        "size n = 3\ncoordinate x[a in 1..n, s in 1..2] = 10*a + s\nmomentum p[k, l] of x = k - l\ncoordinate r[i in 1..2] : R^2 = (i, 0)\nmomentum u of r = (0, i)\ncoordinate y = 7\nmomentum py of y\nhamiltonian 0*y\n",
    );
    let q = [11.0, 12.0, 21.0, 22.0, 31.0, 32.0, 1.0, 0.0, 2.0, 0.0, 7.0];
    let p = [0.0, -1.0, 1.0, 0.0, 2.0, 1.0, 0.0, 1.0, 0.0, 2.0, 0.0];
    assert_eq!(m.initial, [q, p].concat());
    // p = M v, by masses that come from a parameter, with a vector potential, and coupled.
    let m = model(
        "parameter m = 3\ncoordinate q : R^2 = (1, 2)\nvelocity v of q = (5, -1)\nhamiltonian dot(p_q, p_q)/(2*m) + q.x\n",
    );
    assert_near(&m.initial, &[1.0, 2.0, 15.0, -3.0], "masses");
    let m = model(
        "coordinate q : R^2 = (1, 2)\nvelocity v of q = (5, -1)\nlet A = (-q.y, q.x)\nhamiltonian dot(p_q - A, p_q - A)/2\n",
    );
    assert_near(&m.initial, &[1.0, 2.0, 3.0, 0.0], "p = v + A");
    let m = model(
        "parameter M = matrix((2, 1, 0), (1, 3, 1), (0, 1, 4))\ncoordinate q : R^3 = (0, 0, 0)\nvelocity v of q = (1, 2, -1)\nhamiltonian dot(p_q, inverse(M)*p_q)/2\n",
    );
    // Cofactors and a 3 × 3 elimination of a matrix of condition 3.
    for (a, b) in m.initial[3..].iter().zip([4.0, 6.0, -2.0]) {
        assert!((a - b).abs() < 1e-14 * 6.0, "{:?}", m.initial);
    }
    let m = model(
        "size n = 3\nparameter m[i in 1..n] = i\ncoordinate r[i in 1..n] : R^2 = (i, 0)\nvelocity v[k] of r = (k, 1)\nhamiltonian sum(i in 1..n : dot(p_r[i], p_r[i])/(2*m[i]))\n",
    );
    assert_near(&m.initial[6..], &[1.0, 1.0, 4.0, 2.0, 9.0, 3.0], "a family");
    // Springs between neighbours in the mass matrix: one connected block.
    let m = model(
        "size n = 40\ncoordinate x[i in 1..n] = 0\nvelocity v[i] of x = i\nhamiltonian sum(i in 1..n : p_x[i]^2) + sum(i in 2..n : p_x[i]*p_x[i-1])/2\n",
    );
    let p = &m.initial[40..];
    for i in 0..40 {
        let left = if i > 0 { p[i - 1] } else { 0.0 };
        let right = if i < 39 { p[i + 1] } else { 0.0 };
        let v = 2.0 * p[i] + (left + right) / 2.0;
        // Diagonally dominant, condition 3: a few roundings of 40.
        assert!((v - (i + 1) as f64).abs() < 1e-13, "{v}");
    }
}

#[test]
fn draws_are_independent() {
    let text = "coordinate a = normal()\nmomentum pa of a = uniform()\ncoordinate x[i in 1..3] : R^2 = (normal(), normal())\nmomentum p of x = (uniform(), i)\nlet d = normal()\ncoordinate b : R^2 = (d, d)\nmomentum pb of b\nhamiltonian 0*a\n";
    let reading = holonome_model::syntax::read(text);
    let (mut normal, mut uniform) = (0, 0);
    let mut environment = Environment {
        read_table: &|_| Err(String::new()),
        draw: &mut |which| match which {
            Draw::Normal => {
                normal += 1;
                f64::from(normal)
            }
            Draw::Uniform => {
                uniform += 1;
                -f64::from(uniform)
            }
        },
        replacements: Vec::new(),
        variations: Default::default(),
        stiff: None,
    };
    let (m, findings) = elaborate(&reading, &mut environment);
    let m = m.unwrap_or_else(|| panic!("{findings:?}"));
    let mut drawn: Vec<f64> = m.initial.clone();
    drawn.retain(|v| v.fract() == 0.0 && *v != 0.0);
    let x = &m.initial[1..7];
    // Every member and component has its own draw; a `let` that is used twice in one value is one
    // draw.
    let mut sorted = x.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    assert_eq!(sorted.len(), 6, "{:?}", m.initial);
    assert_eq!(m.initial[7], m.initial[8], "{:?}", m.initial);
    assert_eq!(normal, 1 + 6 + 1);
    assert_eq!(uniform, 1 + 3);
}

#[test]
fn tables() {
    let read = |path: &str| {
        if path == "data/bodies.csv" {
            Ok("mass, \"x\",vx\n1,2,3\n\n4,5,-6e-1\n".to_string())
        } else {
            Err("no".to_string())
        }
    };
    let text = "table body = \"data/bodies.csv\"\nsize n = 2\nparameter m[i in 1..n] = body.mass[i]\ncoordinate x[i in 1..n] = body.x[i]\nmomentum p[i] of x = body.mass[i]*body.vx[n + 1 - i]\nhamiltonian sum(i in 1..n : body.mass[i]*x[i]) + body.vx[2]\n";
    let (m, findings) = support::check_with(text, &read, &[]);
    let m = m.unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!(m.parameter_values, [1.0, 4.0]);
    assert_eq!(m.initial, [2.0, 5.0, -0.6, 12.0]);
    assert_eq!(hamiltonian(&m), 2.0 + 20.0 - 0.6);
}

#[test]
fn state_models() {
    let m = model(
        "size n = 3\nstate x[i in 1..n] : R^2 = (i, -i)\nstate R : R^(2,2) = identity(2)\nstate s = 4\nx[k]' = (x[k].y, k*x[k].x + t)\nR' = R*matrix((0, -1), (1, 0))\ns' = -s + sum(i in 1..n : x[i].x)\nconstraint c : transpose(R)*R = identity(2)\nintegral e = s^2\n",
    );
    let Dynamics::Field(f) = &m.dynamics else { panic!("a field") };
    let rate = f.evaluate(0.5, &m.initial, &m.parameter_values);
    assert_eq!(rate, [-1.0, 1.5, -2.0, 4.5, -3.0, 9.5, 0.0, -1.0, 1.0, 0.0, 2.0]);
    assert_eq!((m.degrees(), m.dimension()), (0, 11));
    assert_eq!(m.constraints[0].functional.evaluate(0.0, &m.initial, &[]), [0.0; 4]);
}

#[test]
fn constraints_integrals_and_observables() {
    let m = model(
        "parameter l = 2\ncoordinate q : R^2 = (0, -2)\nmomentum p of q = (3, 0)\nhamiltonian dot(p, p)/2 + q.y\nconstraint rod : dot(q, q) = l^2 + 1\nconstraint pivot : q = (0.1*t, 0)\nconstraint nothing : q.x = 0\nintegral J = q.x*p.y - q.y*p.x\nintegral P = p\nobserve energy = H\nobserve twice = 2*energy + J\nobserve both[i in 1..2] = q[i]*i\n",
    );
    let at =
        |k: usize, t: f64| m.constraints[k].functional.evaluate(t, &m.initial, &m.parameter_values);
    // Left side minus right side.
    assert_eq!(at(0, 0.0), [-1.0]);
    assert_eq!(at(1, 2.0), [-0.2, -2.0]);
    assert_eq!(at(2, 0.0), [0.0]);
    let observed: Vec<Vec<f64>> = m
        .observables
        .iter()
        .map(|o| o.functional.evaluate(0.0, &m.initial, &m.parameter_values))
        .collect();
    assert_eq!(observed, [vec![2.5], vec![11.0], vec![0.0, -4.0]]);
    assert_eq!(m.observables[2].member_name(1), "both[2]");
    let integrals: Vec<Vec<f64>> = m
        .integrals
        .iter()
        .map(|o| o.functional.evaluate(0.0, &m.initial, &m.parameter_values))
        .collect();
    assert_eq!(integrals, [vec![6.0], vec![3.0, 0.0]]);
    assert!(!m.explicit_time);
    assert!(
        model("coordinate q = 0\nmomentum p of q\nlet f = sin(t)\nhamiltonian p^2/2 + q*f\n")
            .explicit_time
    );
}

#[test]
fn order_does_not_matter() {
    // The statements of the spherical pendulum backwards give the same model.
    let text = support::file("models/spherical-pendulum.holo");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.reverse();
    let (a, b) = (model(&text), model(&(lines.join("\n") + "\n")));
    assert_eq!(a.initial, b.initial);
    assert_eq!(hamiltonian(&a), hamiltonian(&b));
    assert_eq!(a.constraints.len(), b.constraints.len());
}

#[test]
fn names_may_be_of_any_script() {
    let m = model(
        "parameter ω = 2\nparameter 質量 = 3\nparameter m_1 = 1\ncoordinate θ = 0.5\nmomentum p_θ of θ = 1\nhamiltonian p_θ^2/(2*質量*m_1) + 質量*ω^2*θ^2/2\nintegral größe = p_θ\n",
    );
    assert_near(&[hamiltonian(&m)], &[1.0 / 6.0 + 1.5], "unicode");
    // Case matters; a name may begin with a reserved word.
    let m = model(
        "parameter a = 1\nparameter A = 2\nparameter sin_1 = 3\nparameter ifx = 4\ncoordinate q = 0\nmomentum p of q\nhamiltonian a + 10*A + 100*sin_1 + 1000*ifx\n",
    );
    assert_eq!(hamiltonian(&m), 4321.0);
}

#[test]
fn the_stiff_term_is_a_let_that_the_hamiltonian_adds() {
    let text = "parameter k = 5\ncoordinate q : R^2 = (2, 3)\nmomentum p of q\nlet T = dot(p, p)/2\n\
                let spring = k*q.x^2/2\nlet soft = q.y\nlet V = spring + soft\nlet half = q.y^2\nlet less = q.x\n\
                let unused = q.x\nlet member[i in 1..2] = q[i]\nlet f(x) = x\nhamiltonian T + V + half/2 - less + f(1)\n";
    let reading = holonome_model::syntax::read(text);
    let stiff = |name: &str| {
        let mut environment = Environment {
            read_table: &|_| Err(String::new()),
            draw: &mut |_| 0.0,
            replacements: Vec::new(),
            variations: Default::default(),
            stiff: Some(Name { text: name.into(), span: Span::default() }),
        };
        let (model, findings) = elaborate(&reading, &mut environment);
        match model {
            Some(m) => Ok(m.stiff.unwrap().evaluate(0.0, &m.initial, &m.parameter_values)[0]),
            None => Err(format!("{findings:?}")),
        }
    };
    assert_eq!((stiff("spring"), stiff("V"), stiff("soft")), (Ok(10.0), Ok(13.0), Ok(3.0)));
    // With a factor or a minus it is not a term, and a potential energy has no momenta.
    for name in ["T", "half", "less", "unused", "member", "f", "q", "k", "nothing"] {
        let said = stiff(name).unwrap_err();
        assert!(
            said.contains(&format!("'{name}' is no term"))
                && said.contains("these are: spring, soft, V"),
            "{said}"
        );
    }
}

#[test]
fn an_empty_family_of_vectors_may_stand_anywhere() {
    // Last among the parameters, the coordinates, the momenta; with drawn values, and velocities.
    let empty = "coordinate q[i in 1..n] : R^3 = (1, 2, normal())\nmomentum s of q = (i, 0, 0)\n";
    let moving = "coordinate q[i in 1..n] : R^3 = (1, 2, i)\nvelocity v of q = (1, normal(), 0)\n";
    let body = "coordinate x = 1\nmomentum p of x = 2\n";
    let rest = "parameter c[i in 1..n] = (1, 2, 3)\nhamiltonian p^2/2 + x^2/2\nintegral I[i in 1..n] = c[i]\nobserve o[i in 1..n] = 2*c[i]\n";
    for text in [
        format!("{body}{empty}{rest}"),
        format!("{empty}{body}{rest}"),
        format!("{body}{moving}{rest}"),
    ] {
        let model = support::model(&format!("size n = 0\n{text}"));
        assert_eq!(model.initial, [1.0, 2.0], "{text}");
        let examined = holonome_model::consistency::examine(&model);
        assert!(examined.is_sound() && examined.field.is_some(), "{examined:?}");
    }
    let model = support::model(
        "size n = 0\nstate x = 1\nstate q[i in 1..n] : R^3 = (1, 2, 3)\nx' = -x\nq[i]' = -q[i]\n",
    );
    assert_eq!(model.initial, [1.0]);
}

#[test]
fn velocities_are_solved_for_together() {
    // H_p is the given velocity, however the momenta are coupled, and given momenta stay.
    let h = "hamiltonian (2*P^2 + m*S^2/2 + P*S/3) + (P + S)*dot(u, R)*k + dot(R, R) + x\n";
    let text = |a: &str, b: &str, h: &str| {
        format!(
            "parameter m = 1\nparameter k = 0.25\nparameter u = (1, 2)\ncoordinate x = 1\ncoordinate y = 2\ncoordinate z : R^2 = (3, 4)\n{a}\n{b}\nvelocity w of z = (0.5, -1)\n{h}"
        )
    };
    for (a, b, names) in [
        ("velocity a of x = 0.75", "velocity b of y = -2", ["p_x", "p_y"]),
        ("velocity a of x = 0.75", "momentum s of y = 0.125", ["p_x", "s"]),
        ("momentum p of x = -0.5", "momentum s of y = 0.125", ["p", "s"]),
    ] {
        for m in ["1", "1e27"] {
            let h = h.replace('P', names[0]).replace('S', names[1]).replace('R', "p_z");
            let text = text(a, b, &h).replace("m = 1", &format!("m = {m}"));
            let model = support::model(&text);
            let unrolled = holonome_model::treatment::unrolled::unroll(&model).unwrap();
            let gradient: Vec<_> = unrolled.hamiltonian_gradient.iter().map(|&(_, d)| d).collect();
            let columns: Vec<u32> = unrolled.hamiltonian_gradient.iter().map(|&(i, _)| i).collect();
            let values = holonome_model::treatment::structure::evaluate(
                &unrolled.graph,
                &gradient,
                0.0,
                &model.initial,
                &model.parameter_values,
            );
            let velocity = |i: u32| values[columns.binary_search(&i).unwrap()];
            let given = |name: &str| -> Option<f64> {
                let line = text.lines().find(|l| l.starts_with(name))?;
                line.rsplit("= ").next()?.parse().ok()
            };
            // Some roundings, which the condition of the matrix, up to 30, amplifies.
            let near = |a: f64, b: f64| {
                assert!((a - b).abs() < 1e-13 * (1.0 + b.abs()), "{text}: {a} {b}")
            };
            for (i, name, momentum) in
                [(4, "velocity a", "momentum p"), (5, "velocity b", "momentum s")]
            {
                match given(name) {
                    Some(v) => near(velocity(i), v),
                    None => assert_eq!(model.initial[i as usize], given(momentum).unwrap()),
                }
            }
            near(velocity(6), 0.5);
            near(velocity(7), -1.0);
        }
    }
    // A mass matrix that is singular is so in any units.
    let singular = text(
        "velocity a of x = 1",
        "velocity b of y = 1",
        "hamiltonian (p_x + p_y)^2*m + dot(p_z, p_z)\n",
    );
    for m in ["1", "1e-27", "1e27"] {
        let (model, found) = support::check(&singular.replace("m = 1", &format!("m = {m}")));
        assert!(model.is_none() && found[0].label.contains("singular"), "{found:?}");
    }
}

/// The double pendulum in angles: p = M(q) v with M₁₁ = 2, M₁₂ = cos(a − b), M₂₂ = 1.
#[test]
fn velocities_take_a_mass_matrix_of_positions() {
    let text = "coordinate a = 0.5\nvelocity u of a = 2\ncoordinate b = -0.25\nvelocity v of b = 3\n\
        hamiltonian (p_a^2 - 2*cos(a - b)*p_a*p_b + 2*p_b^2)/(2*(2 - cos(a - b)^2)) - 2*cos(a) - cos(b)\n";
    let model = support::model(text);
    let c = 0.75f64.cos();
    assert_near(&model.initial[2..], &[4.0 + 3.0 * c, 2.0 * c + 3.0], text);
    for varying in ["p_a^4", "p_a^2*(2 + sin(t))", "p_a^2*p_b^2"] {
        let (model, findings) =
            support::check(&text.replace(" - cos(b)\n", &format!(" + {varying}\n")));
        assert!(model.is_none(), "{varying}");
        assert!(findings[0].message.contains("a mass matrix of positions only"), "{findings:?}");
    }
}

/// Initial values in terms of others, in any order: members, components, whole vectors, lists, and
/// what `--set` and `--vary` change.
#[test]
fn initial_values_use_other_initial_values() {
    let text = "size n = 3\ncoordinate b = a[2].x + 1\nmomentum w of b = -2*s.y\n\
        coordinate a[i in 1..n] : R^2 = (i, -i)\nmomentum p[k] of a = 10*a[k] - q[k]*(1, 0)\n\
        coordinate q[i in 1..n] = list(4, 5, b)\nmomentum z of q\n\
        coordinate s : R^2 = a[1] + a[n]\nmomentum y of s = z[2]*s\nhamiltonian 0*b\n";
    let start = |set: &[(&str, &str)]| {
        let (model, findings) = support::check_with(text, &|_| Err(String::new()), set);
        let model = model.unwrap_or_else(|| panic!("{findings:#?}"));
        let value = |name: &str| {
            let variable = model.variables.iter().find(|v| v.family.name == name).unwrap();
            model.initial[variable.first..variable.first + variable.family.len()].to_vec()
        };
        ["b", "w", "a", "p", "q", "s", "y"].map(value)
    };
    let expected: [&[f64]; 7] = [
        &[3.0],
        &[8.0],
        &[1.0, -1.0, 2.0, -2.0, 3.0, -3.0],
        &[6.0, -10.0, 15.0, -20.0, 27.0, -30.0],
        &[4.0, 5.0, 3.0],
        &[4.0, -4.0],
        &[0.0, -0.0],
    ];
    for (got, expected) in start(&[]).iter().zip(expected) {
        assert_near(got, expected, text);
    }
    let set = start(&[("a", "(0, i)"), ("z", "i")]);
    assert_near(&set[0], &[1.0], "b");
    assert_near(&set[6], &[0.0, 8.0], "y");
}

#[test]
fn initial_values_that_are_not_known_are_refused() {
    for (values, message) in [
        (
            "coordinate a = b\ncoordinate b = 2*a",
            "'a' is defined in a circle (recursive): a uses b uses a",
        ),
        ("coordinate a = a\ncoordinate b = 1", "'a' is defined by itself"),
        ("coordinate a = normal()\ncoordinate b = a", "the initial value of 'a' is not known here"),
        ("coordinate a = q_of\ncoordinate b = 1", "unknown name 'q_of'"),
    ] {
        let text = format!("{values}\nmomentum p of a\nmomentum r of b\nhamiltonian 0*a\n");
        let (model, findings) = support::check(&text);
        assert!(model.is_none(), "{text}");
        assert!(findings.iter().any(|found| found.message.contains(message)), "{findings:#?}");
        assert_eq!(findings.len(), 1, "{findings:#?}");
    }
    let text = "coordinate a = 1\nvelocity v of a = 1\ncoordinate b = p_a\nmomentum r of b\n\
        hamiltonian p_a^2\n";
    let (_, findings) = support::check(text);
    assert_eq!(findings[0].label, "it follows from a velocity", "{findings:#?}");
}

#[test]
fn events_and_forces_may_be_called_like_functions() {
    let model = model(
        "coordinate q : R^2 = (0.5, 2)\nmomentum p of q\nhamiltonian dot(p, p)/2 + floor(q.y)\n\
         impact floor : q.y = 0 restitution 1\nforce norm on q = -norm(q')*q'\nevent abs : abs(q.x) - 1 = 0",
    );
    assert_eq!(hamiltonian(&model), 2.0, "the function stays");
    assert_eq!((model.events.len(), &model.forces[0].name[..]), (2, "norm"));
}
