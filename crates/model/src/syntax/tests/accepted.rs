//! Tests of each form of the language, read and dumped. The dump shows how operators were grouped.

use crate::syntax::ast::{ExprKind, Statement};
use crate::syntax::print::dump;
use crate::syntax::{parse, read};

/// Dump of a text without mistakes.
fn dumped(source: &str) -> String {
    let (file, diagnostics) = parse(source);
    assert_eq!(diagnostics, [], "{source}");
    dump(&file)
}

/// Dump of one expression.
fn expression(source: &str) -> String {
    let text = dumped(&format!("hamiltonian {source}"));
    text.strip_prefix("hamiltonian\n  ").expect("a hamiltonian").trim_end().to_string()
}

#[test]
fn expressions() {
    for (source, tree) in [
        // precedence, from the document
        ("-x^2", "(- (^ x 2))"),
        ("2^-1", "(^ 2 (- 1))"),
        ("2^3^2", "(^ 2 (^ 3 2))"),
        ("2^-x*y", "(* (^ 2 (- x)) y)"),
        ("-a*b", "(* (- a) b)"),
        ("a*-b", "(* a (- b))"),
        ("a - b - c", "(- (- a b) c)"),
        ("a/b/c*d", "(* (/ (/ a b) c) d)"),
        ("a + b*c^d", "(+ a (* b (^ c d)))"),
        ("--a", "(- (- a))"),
        ("a or b and not c < d + 1", "(or a (and b (not (< c (+ d 1)))))"),
        ("not a and b", "(and (not a) b)"),
        ("not not a == b", "(not (not (== a b)))"),
        ("(a < b) == (c >= d)", "(== (< a b) (>= c d))"),
        ("a != b or a <= b or a > b", "(or (or (!= a b) (<= a b)) (> a b))"),
        // operands
        ("(a)", "a"),
        ("((a + b))*c", "(* (+ a b) c)"),
        ("(1, 2, -3)", "(vector 1 2 (- 3))"),
        ("(1, (2, 3))", "(vector 1 (vector 2 3))"),
        ("1e-3 + 2.5e6 + 0.5", "(+ (+ 0.001 2500000) 0.5)"),
        ("normal() + atan2(y, x)", "(+ (normal) (atan2 y x))"),
        ("if(a < b and c, x, y)", "(if (and (< a b) c) x y)"),
        // postfix
        ("q.x", "(.x q)"),
        ("r[i].y + R[i][1,2]", "(+ (.y (index r i)) (index (index R i) 1 2))"),
        ("(0.4, -0.8, 0.4)[s]", "(index (vector 0.4 (- 0.8) 0.4) s)"),
        ("data.size[i] + data.if[i]", "(+ (index (.size data) i) (index (.if data) i))"),
        ("-q.x^2", "(- (^ (.x q) 2))"),
        ("f(x)[3*(a-1)+s]", "(index (f x) (+ (* 3 (- a 1)) s))"),
        // sums
        ("sum(i in 1..n : q[i])", "(sum [i in 1..n] (index q i))"),
        ("sum(i in 1..n, j in i+1..n : a)", "(sum [i in 1..n, j in (+ i 1)..n] a)"),
        (
            "sum(i in 1..n, j in 1..n if i != j : a + b)",
            "(sum [i in 1..n, j in 1..n if (!= i j)] (+ a b))",
        ),
        (
            "sum(i in 1..2*n if (i < 3) : if(i == 1, a, b))",
            "(sum [i in 1..(* 2 n) if (< i 3)] (if (== i 1) a b))",
        ),
        ("sum(t in 1..3 : t)", "(sum [t in 1..3] t)"),
        (
            "sum(i in 1..max(n, 2) : sum(j in 1..i : 1))",
            "(sum [i in 1..(max n 2)] (sum [j in 1..i] 1))",
        ),
        ("2*sum(i in if(a, 1, 2)..n : 1)/3", "(/ (* 2 (sum [i in (if a 1 2)..n] 1)) 3)"),
    ] {
        assert_eq!(expression(source), tree, "{source}");
    }
}

#[test]
fn statements() {
    for (source, tree) in [
        ("parameter m = 1", "parameter m\n  = 1\n"),
        (
            "parameter c[s in 1..3] = (a, b, c)[s]",
            "parameter c[s in 1..3]\n  = (index (vector a b c) s)\n",
        ),
        ("size n = 10", "size n\n  = 10\n"),
        ("coordinate q", "coordinate q : R\n"),
        ("coordinate q = 1", "coordinate q : R\n  = 1\n"),
        ("coordinate q : R^k = a", "coordinate q : R^k\n  = a\n"),
        ("coordinate q : R^(3)", "coordinate q : R^3\n"),
        ("coordinate Q : R^(3, k)", "coordinate Q : R^(3,k)\n"),
        (
            "coordinate x[a in 1..N, s in 1..3] = 0",
            "coordinate x[a in 1..N, s in 1..3] : R\n  = 0\n",
        ),
        ("momentum p of q", "momentum p of q\n"),
        ("momentum p[a,s] of x = a", "momentum p[a, s] of x\n  = a\n"),
        ("velocity v of q = 1", "velocity v of q\n  = 1\n"),
        ("hamiltonian (a)", "hamiltonian\n  a\n"),
        ("constraint c : a = b", "constraint c :\n  a\n  = b\n"),
        (
            "constraint c[i in 1..4, j in i+1..4] : a = b",
            "constraint c[i in 1..4, j in (+ i 1)..4] :\n  a\n  = b\n",
        ),
        ("integral J = a", "integral J\n  = a\n"),
        ("integral J[i in 1..n if i != 2] = a", "integral J[i in 1..n if (!= i 2)]\n  = a\n"),
        ("state R : R^(3,3) = identity(3)", "state R : R^(3,3)\n  = (identity 3)\n"),
        ("state x[i in 1..n] = i", "state x[i in 1..n] : R\n  = i\n"),
        ("R' = R*hat(w)", "R'\n  = (* R (hat w))\n"),
        ("x[i]' = x[i]", "x[i]'\n  = (index x i)\n"),
        ("x[i, j]' = 1", "x[i, j]'\n  = 1\n"),
        ("let e = a", "let e\n  = a\n"),
        ("let e[i in 1..n] = a", "let e[i in 1..n]\n  = a\n"),
        ("let f(x, t) = x*t", "let f(x, t)\n  = (* x t)\n"),
        ("observe e = a", "observe e\n  = a\n"),
        ("table d = \"a b.csv\"", "table d = \"a b.csv\"\n"),
        ("parameter I = diag(3, 2, 1)", "parameter I\n  = (diag 3 2 1)\n"),
        ("parameter Größe_1 = 1", "parameter Größe_1\n  = 1\n"),
    ] {
        assert_eq!(dumped(source), tree, "{source}");
    }
}

#[test]
fn lines_go_on_after_operators_and_in_brackets() {
    let tree = dumped("parameter a = 1");
    for source in [
        "\u{feff}parameter a =\n 1",
        "parameter a = 1\r\n",
        "\n\n\tparameter\ta\t=\t1 # a comment # with ' ( and so on",
        "parameter a = (\n\n1\n)\n",
        "# nothing\nparameter a = # here\n# and there\n1",
    ] {
        assert_eq!(dumped(source), tree, "{source}");
    }
    assert_eq!(
        dumped("hamiltonian a +\n b *\n c or\n not\n d"),
        dumped("hamiltonian a + b*c or not d")
    );
    assert_eq!(dumped("constraint c :\n a =\n b"), dumped("constraint c : a = b"));
    assert_eq!(dumped(""), "");
    assert_eq!(dumped("# only a comment"), "");
}

#[test]
fn spans_cover_what_they_say() {
    let source = "parameter a = 1\n  let f(x) = (x + 2)*q.x # c\ntable d = \"e\"\n";
    let (file, diagnostics) = parse(source);
    assert_eq!(diagnostics, []);
    let text = |span: crate::syntax::span::Span| &source[span.range()];
    assert_eq!(text(file.statements[0].span), "parameter a = 1");
    assert_eq!(text(file.statements[1].span), "let f(x) = (x + 2)*q.x");
    let Statement { name, parameters, values, .. } = &file.statements[1];
    let value = &values[0];
    assert_eq!(
        (text(name.span), text(parameters[0].span), text(value.span)),
        ("f", "x", "(x + 2)*q.x")
    );
    let ExprKind::Binary(_, operator, left, right) = &value.kind else { panic!("a product") };
    assert_eq!((text(*operator), text(left.span), text(right.span)), ("*", "(x + 2)", "q.x"));
    let path = &file.statements[2].reference;
    assert_eq!((path.text.as_str(), text(path.span)), ("e", "\"e\""));
}

#[test]
fn the_examples_of_the_language_guide() {
    for (source, statements) in [(super::PENDULUM, 8), (super::CHAIN, 8), (super::RIGID_BODY, 8)] {
        let (file, diagnostics) = parse(source);
        assert_eq!(diagnostics, []);
        assert_eq!(file.statements.len(), statements, "{source}");
    }
    let pendulum = dumped(super::PENDULUM);
    assert!(
        pendulum.contains("hamiltonian\n  (+ (/ (dot p p) (* 2 m)) (* (* m g) (.z q)))\n"),
        "{pendulum}"
    );
}

#[test]
fn long_expressions_are_broken() {
    let terms: Vec<_> = (0..30).map(|i| format!("dot(r[{i}], r[{i}])")).collect();
    let text = dumped(&format!("hamiltonian max({})", terms.join(", ")));
    assert_eq!(text.lines().count(), 32, "{text}");
    assert!(text.lines().all(|line| line.len() <= 102), "{text}");
    assert_eq!(text.lines().nth(2), Some("    (dot (index r 0) (index r 0))"));
}

#[test]
fn names_of_unreadable_statements_are_known() {
    let reading = read("parameter m = \nlet k = (1\nlet l = 1\nx = 3\nfoo y = 2\nx' = 2 +\n");
    let names: Vec<_> = reading.unread.iter().map(|name| name.text.as_str()).collect();
    assert_eq!(names, ["m", "k", "x", "y"]);
}
