//! Tests of mistakes and their findings: one for each.

use crate::syntax::diagnostic::Severity;
use crate::syntax::{parse, read};

/// A text with one mistake, the line of the finding, the text it points at, and parts of message
/// and help.
type Mistake = (&'static str, usize, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const MISTAKES: &[Mistake] = &[
    // numbers
    ("parameter m = .5", 1, ".5", "'.5' lacks a digit", "write 0.5"),
    ("parameter m = 5.", 1, "5.", "'5.' lacks a digit", "write 5.0"),
    ("parameter m = 5.e3", 1, "5.e3", "'5.e3' lacks a digit", "write 5.0e3"),
    ("parameter m = 1e999", 1, "1e999", "too large", "1.8e308"),
    ("parameter m = 1e-999", 1, "1e-999", "becomes 0", "4.9e-324"),
    ("parameter m = 1.2.3", 1, "1.2.3", "'1.2.3' is not a number", "0.5"),
    ("hamiltonian sum(i in 1.n : i)", 1, "1.n", "'1.n' is not a number", "write 1..n for a range"),
    ("parameter m = 1_000", 1, "1_000", "'1_000' is not a number", "1e-3"),
    ("parameter m = 9,81", 1, ",", "unexpected ','", "decimal point"),
    ("hamiltonian q.1", 1, "1", "'.1' is not a component", "write [1]"),
    // characters of papers and word processors
    ("hamiltonian a − b", 1, "−", "'−'", "write '-'"),
    ("hamiltonian a·b", 1, "·", "'·'", "write '*'"),
    ("hamiltonian a²", 1, "²", "'²' is not read as an exponent", "write ^2"),
    ("hamiltonian a⁻¹", 1, "⁻¹", "exponent", "write ^-1"),
    ("hamiltonian if(a ≤ b, 1, 2)", 1, "≤", "'≤'", "write '<='"),
    ("hamiltonian if(a ≠ b, 1, 2)", 1, "≠", "'≠'", "write '!='"),
    ("table d = “a.csv”", 1, "“a.csv”", "typographic quotes", "write \"a.csv\""),
    ("w’ = 1", 1, "’", "'’'", "write '''"),
    ("hamiltonian √(a)", 1, "√", "unexpected character '√'", "sqrt"),
    ("hamiltonian sum(i ∈ 1..n : i)", 1, "∈", "'∈'", "write 'in'"),
    ("coordinate q ∈ R^3", 1, "∈", "'∈'", "in"),
    ("coordinate q : ℝ^3", 1, "ℝ", "plain R", "write R"),
    ("hamiltonian a\u{200b} + b", 1, "\u{200b}", "U+200B", "invisible"),
    ("hamiltonian a \u{0} b", 1, "\u{0}", "U+0000", "names are made of"),
    ("hamiltonian a $ b", 1, "$", "unexpected character '$'", "names are made of"),
    ("hamiltonian a ? b : c", 1, "?", "'?'", "if(condition, a, b)"),
    // operators and comments of other languages
    ("hamiltonian a**2", 1, "**", "'**'", "write '^'"),
    ("hamiltonian if(a && b, 1, 2)", 1, "&&", "'&&'", "write 'and'"),
    ("hamiltonian if(a || b, 1, 2)", 1, "||", "'||'", "write 'or'"),
    ("hamiltonian if(!a, 1, 2)", 1, "!", "'!'", "write 'not'"),
    ("hamiltonian a!", 1, "!", "factorial", "product"),
    ("hamiltonian +a", 1, "+", "prefix '+'", "leave it out"),
    ("hamiltonian a .* b", 1, ".*", "'.*'", "write '*'"),
    ("hamiltonian if(a = b, 1, 2)", 1, "=", "'=' does not compare", "write '=='"),
    ("hamiltonian sum(i in 1..n if i = 2 : 1)", 1, "=", "'=' does not compare", "write '=='"),
    ("hamiltonian a < b < c", 1, "<", "cannot be chained", "write a < b and b < …"),
    ("hamiltonian a + not b", 1, "not", "'not' binds more loosely", "write (not …)"),

    ("hamiltonian 2 q", 1, "q", "missing operator between '2' and 'q'", "write 2*q"),
    ("hamiltonian 2q + 1", 1, "q", "missing operator", "write 2*q"),
    ("parameter m = 2 kg", 1, "kg", "missing operator between '2' and 'kg'", "numbers have no units: write 2,"),
    ("parameter g = 9.81 m/s^2", 1, "m", "missing operator", "or write 9.81*m"),
    ("parameter a = 90deg", 1, "deg", "missing operator", "radians: write 90*pi/180"),
    ("hamiltonian 2(a + b)", 1, "(", "missing operator", "write 2*(…)"),
    ("hamiltonian m g", 1, "g", "missing operator between 'm' and 'g'", "write m*g"),
    ("hamiltonian (a)(b)", 1, "(", "missing operator", "write '*' between"),
    ("hamiltonian dot(a b)", 1, "b", "missing operator", "a*b"),
    ("hamiltonian (1 2 3)", 1, "2", "missing operator", "','"),
    ("hamiltonian |q|^2", 1, "|q|", "bars", "write norm(q)"),
    ("hamiltonian a + ||q - r||", 1, "||q - r||", "bars", "write norm(q - r)"),
    ("hamiltonian a | b", 1, "|", "unexpected '|'", "or"),
    ("hamiltonian dot([1, 2, 3], q)", 1, "[1, 2, 3]", "round brackets", "write (1, 2, 3)"),
    ("parameter A = [[1, 0], [0, 1]]", 1, "[[1, 0], [0, 1]]", "round brackets", "write matrix((1, 0), (0, 1))"),
    ("parameter A = [1, 0; 0, 1]", 1, ";", "';'", "matrix((a, b), (c, d))"),
    ("hamiltonian q^{2}", 1, "{2}", "round brackets", "write (2)"),
    ("hamiltonian sin q", 1, "sin", "'sin' needs brackets", "write sin(q)"),
    ("hamiltonian 2*sin", 1, "sin", "'sin' is a function", "write sin(…)"),
    ("hamiltonian a // b", 1, "//", "'//' is not read as a comment", "'#'"),
    ("// a model", 1, "//", "'//' is not read as a comment", "'#'"),
    ("/* two\nlines */ parameter m = 1", 1, "/*", "'/*' is not read as a comment", "'#'"),
    ("% a model", 1, "%", "'%'", "'#'"),
    ("parameter m = 1;", 1, ";", "';'", "remove"),
    ("hamiltonian \"a\"", 1, "\"a\"", "unexpected text", "table NAME"),
    // brackets
    ("hamiltonian (a + b", 1, "(", "'(' is not closed", "add ')'"),
    ("hamiltonian dot(q, q = 2", 1, "(", "'(' is not closed", "add ')'"),
    ("constraint c : dot(q, q = l^2", 1, "(", "'(' is not closed", "add ')'"),
    ("hamiltonian norm(r[1) + 2", 1, "[", "'[' is not closed", "add ']'"),
    ("hamiltonian sum(i in 1..n : a", 1, "(", "'(' is not closed", "add ')'"),
    ("coordinate r[i in 1..n : R = 0", 1, "[", "'[' is not closed", "add ']'"),
    ("hamiltonian (a + 2 b", 1, "(", "'(' is not closed", "add ')'"),
    ("let a = (1,\nlet b = 2", 1, "(", "'(' is not closed", "add ')'"),
    ("let a = f(1, (2\nw' = 2", 1, "(", "'(' is not closed", "add ')'"),
    ("hamiltonian a + b)", 1, ")", "')' closes nothing", "remove"),
    ("hamiltonian (a + b]", 1, "(", "'(' is not closed", "add ')'"),
    ("]", 1, "]", "']' closes nothing", "remove"),
    ("hamiltonian f(a,)", 1, ")", "expected an expression, found ')'", "remove the ','"),
    ("hamiltonian ()", 1, "()", "empty", "write"),
    ("hamiltonian q[]", 1, "[]", "the index is missing", "[1]"),
    // sums and ranges
    ("hamiltonian sum(i = 1..n, q[i])", 1, "=", "'in'", "write sum(i in 1..n : …)"),
    ("hamiltonian sum(i = 1..n : q[i])", 1, "=", "'in'", "write sum(i in 1..n : …)"),
    ("hamiltonian sum(i in 1..n, q[i])", 1, ",", "':'", "write sum(i in 1..n : …)"),
    ("hamiltonian sum(i in 1..n q[i])", 1, "q", "':' is missing before 'q'", "write sum(i in 1..n : …)"),
    ("hamiltonian sum i in 1..n : q[i]", 1, "sum", "'sum' needs brackets", "write sum(i in 1..n : …)"),
    ("hamiltonian sum(q)", 1, "sum(", "begins with its index", "write sum(i in 1..n : …)"),
    ("hamiltonian sum(q[i] for i in 1..n)", 1, "sum(", "begins with its index", "write sum(i in 1..n : …)"),
    ("hamiltonian sum(i in n : q[i])", 1, "n", "two ends", "write i in 1..n"),
    ("hamiltonian sum(i, j in 1..n : q[i])", 1, "i", "'i' lacks its range", "i in 1..n, j in 1..n"),
    ("hamiltonian sum(sin in 1..n : 1)", 1, "sin", "'sin' is reserved: it is a built-in function", "another name"),
    ("hamiltonian sum(i in 1...n : i)", 1, "...", "'...'", "write '..'"),
    ("hamiltonian r[1..3]", 1, "..", "found '..'", "sums and families"),
    ("coordinate r[n] : R^2 = 0", 1, "[n", "lacks an index", "write r[i in 1..n]"),
    ("coordinate r[1..n] : R^2 = 0", 1, "[1", "lacks an index", "write r[i in 1..n]"),
    ("coordinate r[i in 1:n] : R^2 = 0", 1, "1", "two ends", "1..n"),
    ("hamiltonian if a then b", 1, "if", "'if' is a function", "if(condition, a, b)"),
    // statements
    ("param m = 1", 1, "param", "unknown statement 'param'", "did you mean 'parameter'?"),
    ("coord q : R^3 = 0", 1, "coord", "unknown statement 'coord'", "did you mean 'coordinate'?"),
    ("paramter m = 1", 1, "paramter", "unknown statement 'paramter'", "did you mean 'parameter'?"),
    ("Let m = 1", 1, "Let", "unknown statement 'Let'", "did you mean 'let'?"),
    ("Hamiltonian dot(p, p)/2", 1, "Hamiltonian", "unknown statement 'Hamiltonian'", "did you mean 'hamiltonian'?"),
    ("Hamiltonian = dot(p, p)/2", 1, "Hamiltonian", "unknown statement 'Hamiltonian'", "did you mean 'hamiltonian'?"),
    ("H = dot(p, p)/2", 1, "H", "unknown statement 'H'", "did you mean 'hamiltonian'?"),
    ("hamiltonian H = dot(p, p)/2", 1, "H =", "takes no name", "write hamiltonian EXPR"),
    ("hamiltonian : dot(p, p)/2", 1, ":", "takes no name", "write hamiltonian EXPR"),
    ("quaternion q = 1", 1, "quaternion", "unknown statement 'quaternion'", "statements begin with parameter, size"),
    ("m = 1", 1, "m", "'m = …' is not a statement", "write parameter m = …"),
    ("Lagrangian dot(q', q')/2", 1, "Lagrangian", "unknown statement 'Lagrangian'", "did you mean 'lagrangian'?"),
    ("dq/dt = p", 1, "dq", "no statement begins with 'dq'", "write q' = EXPR"),
    ("x[i] = 1", 1, "x", "no statement begins with 'x'", "x[i]' = …"),
    ("q.x' = 1", 1, "q", "a component has no differential equation", "q' = (…)"),
    ("x'' = 1", 1, "''", "two primes", "x' = v"),
    ("x[1]' = 1", 1, "1", "not a number", "whole family"),
    ("dot(p, p)/2", 1, "dot", "no statement begins with 'dot'", "hamiltonian EXPR"),
    ("hamiltonian a\n  + b", 2, "+", "no statement begins with '+'", "move '+' to the end of the line above"),
    ("parameter m = 1 parameter g = 2", 1, "parameter", "unexpected 'parameter'", "begin a new line"),
    ("parameter = 1", 1, "=", "'parameter' lacks a name", "parameter NAME = EXPR"),
    ("constraint : a = b", 1, ":", "'constraint' lacks a name", "constraint NAME : EXPR = EXPR"),
    ("constraint dot(q, q) = 1", 1, "dot", "'constraint' lacks a name", "constraint NAME : EXPR = EXPR"),
    ("integral q.x*p.y", 1, "q", "'integral' lacks a name", "integral NAME = EXPR"),
    ("momentum of q", 1, "of", "'momentum' lacks a name", "momentum NAME of COORDINATE"),
    ("let", 1, "", "'let' lacks a name", "let NAME = EXPR"),
    ("parameter 2m = 1", 1, "2m", "'2m' begins with a digit", "m_2"),
    ("parameter m", 1, "", "'=' and a value are missing", "parameter NAME = EXPR"),
    ("parameter m =", 1, "", "nothing follows '='", "parameter NAME = EXPR"),
    ("parameter m =\nparameter g = 1", 1, "", "nothing follows '='", "parameter NAME = EXPR"),
    ("parameter m 1", 1, "1", "'=' is missing before '1'", "parameter NAME = EXPR"),
    ("parameter m == 1", 1, "==", "'==' compares", "write '='"),
    ("parameter m := 1", 1, ":=", "':='", "write '='"),
    ("parameter m : R^3 = (1, 2, 3)", 1, ": R^3", "no shape is declared for 'parameter'", "parameter NAME = EXPR"),
    ("parameter a, b = 1", 1, ",", "unexpected ','", "one name a statement"),
    ("parameter a = 1,", 1, ",", "unexpected ','", "remove the ','"),
    ("parameter a = b = c", 1, "=", "unexpected '='", "write '=='"),
    ("parameter a = 2 *", 1, "", "expected an expression, found the end of the line", ""),
    ("parameter a = 2 * / 3", 1, "/", "expected an expression, found '/'", ""),
    ("size n[i in 1..2] = 1", 1, "[", "expected '=', found '['", ""),
    ("hamiltonian", 1, "", "nothing follows 'hamiltonian'", "write hamiltonian EXPR"),
    ("hamiltonian\n  dot(p, p)/2", 1, "", "nothing follows 'hamiltonian'", "write hamiltonian EXPR"),
    ("constraint c dot(q, q) = 1", 1, "dot", "':' is missing after the constraint's name 'c'", "constraint c : EXPR"),
    ("constraint c = dot(q, q) - 1", 1, "=", "':' is missing", "constraint c : EXPR"),
    ("constraint c = dot(q, q) = 1", 1, "=", "':' is missing", "constraint c : EXPR"),
    ("constraint c : dot(q, q) == 1", 1, "==", "not a comparison", "write '='"),
    ("constraint c : dot(q, q) - 1", 1, "dot(q, q) - 1", "lacks its '='", "write dot(q, q) - 1 = 0"),
    ("constraint c : q.x >= 1", 1, ">=", "not an inequality", "'='"),
    ("constraint c : a = b = d", 1, "=", "unexpected '='", "one '='"),
    ("constraint c : a =", 1, "", "nothing follows '='", "constraint NAME"),
    ("momentum p = (1, 0, 0)", 1, "=", "'p' does not say its coordinate", "momentum p of COORDINATE"),
    ("momentum p of r[i] = i", 1, "[i]", "no index stands after 'of'", "write momentum p[i] of r"),
    ("momentum p[i in 1..n] of r = i", 1, "in 1..n", "known from its coordinate", "write [i]"),
    ("momentum p of q : R^3 = 0", 1, ": R^3", "no shape is declared for 'momentum'", "momentum NAME of"),
    ("let f() = 1", 1, "()", "no parameters", "let f = EXPR"),
    ("let f(x, y = 1", 1, "(", "'(' is not closed", "add ')'"),
    ("let f(sin) = 1", 1, "sin", "'sin' is reserved", "another name"),
    ("let f[i in 1..2](x) = 1", 1, "(x)", "either indices or parameters", "let f(i, …)"),
    ("table d = data.csv", 1, "data.csv", "double quotes", "write \"data.csv\""),
    ("table d = 'data.csv'", 1, "'data.csv'", "double quotes", "write \"data.csv\""),
    ("table d = \"data.csv", 1, "\"data.csv", "not closed", "'\"'"),
    // shapes
    ("coordinate q R^3 = 0", 1, "R", "':' is missing before the shape", "coordinate NAME : SHAPE"),
    ("coordinate q : R3 = 0", 1, "R3", "unknown shape 'R3'", "write R^3"),
    ("coordinate q : real = 0", 1, "real", "unknown shape 'real'", "R^k (a vector)"),
    ("coordinate q : R^(n+1) = 0", 1, "n+", "a dimension is a number or the name of a size", "size m = n + 1"),
    ("coordinate q : R^2n = 0", 1, "2n", "a dimension is", "R^(k,l)"),
    ("coordinate q : R^3x3 = 0", 1, "3x3", "a dimension is", "R^(k,l)"),
    ("coordinate q : R^(2,2,2) = 0", 1, ",", "at most two dimensions", "family"),
    ("coordinate q : R^3 (0, 1, 0)", 1, "(", "expected '=' after the shape", "coordinate NAME : SHAPE = EXPR"),
    ("coordinate q : = 0", 1, "=", "expected a shape", ""),
    ("coordinate q : R^", 1, "", "expected a dimension", ""),
    // reserved names
    ("parameter size = 1\nhamiltonian 2*size", 1, "size", "'size' is reserved: it is a word that begins a statement", "another name"),
    ("parameter t = 1", 1, "t", "'t' is reserved: it is time", "another name"),
    ("parameter pi = 3", 1, "pi", "'pi' is reserved: it is the number", "another name"),
    ("parameter in = 3", 1, "in", "'in' is reserved", "another name"),
    ("observe norm = norm(q)", 1, "norm", "'norm' is reserved: it is a built-in function", "another name"),
    ("coordinate of : R = 0", 1, "of", "'of' is reserved", "another name"),
    ("hamiltonian 2*size", 1, "size", "'size' is reserved: it begins a statement", "another name"),
];

#[test]
fn every_mistake_is_one_finding() {
    for &(source, line, culprit, message, help) in MISTAKES {
        // The statements around the mistake are not touched by it.
        let around = format!("let before_it = 1\n{source}\nlet after_it = 2\n");
        let (file, diagnostics) = parse(&around);
        assert_eq!(diagnostics.len(), 1, "{source}\n{diagnostics:#?}");
        let finding = &diagnostics[0];
        let place = finding.span.start as usize;
        assert_eq!(around[..place].matches('\n').count(), line, "{source}\n{finding:#?}");
        assert_eq!(&around[finding.span.range()], culprit, "{source}\n{finding:#?}");
        assert!(finding.message.contains(message), "{source}\n{finding:#?}");
        assert!(
            finding.help.as_deref().unwrap_or_default().contains(help),
            "{source}\n{finding:#?}"
        );
        let names = crate::syntax::print::dump(&file);
        assert!(
            names.starts_with("let before_it") && names.ends_with("let after_it\n  = 2\n"),
            "{source}\n{names}"
        );
    }
}

#[test]
fn an_unclosed_bracket_says_where_it_should_have_been_closed() {
    let source = "constraint c : dot(q, q = l^2";
    let (_, diagnostics) = parse(source);
    let (span, label) = &diagnostics[0].related[0];
    assert_eq!((&source[span.range()], label.as_str()), ("=", "expected ')' before '='"));
    let (_, diagnostics) = parse("let a = (1,\n2\nlet b = 1");
    let (span, label) = &diagnostics[0].related[0];
    assert_eq!(
        (span.start, span.end, label.as_str()),
        (13, 13, "expected ')' before the end of the line")
    );
}

#[test]
fn independent_mistakes_are_all_reported_in_order() {
    let source = "\
param m = 1.0
parm g = .81
coordinate r[1..n] : R = 0
hamiltonian H = sum(i = 1..n, |p[i]|^2/(2 m)) + m*g*r[1][3]
constraint c = norm(r[1])^2 - 1
integral J = r[1]*p[2] - r[2]*p[1
state x = (0.6, 0, §) // initial
parameter t = 3; parameter k = t
x = 5
let a = 2 b + 3 c' + d**2
integral K = J +
";
    let (_, diagnostics) = parse(source);
    let found: Vec<_> = diagnostics
        .iter()
        .map(|d| {
            (source[..d.span.start as usize].matches('\n').count() + 1, &source[d.span.range()])
        })
        .collect();
    assert_eq!(
        found,
        [
            (1, "param"),
            (2, "parm"),
            (2, ".81"),
            (3, "[1"),
            (4, "H ="),
            (4, "="),
            (4, "|p[i]|"),
            (5, "="),
            (6, "["),
            (7, "§"),
            (7, "//"),
            (8, "t"),
            (8, ";"),
            (9, "x"),
            (10, "b"),
            (10, "c"),
            (10, "**"),
            (11, ""),
        ]
    );
}

#[test]
fn a_misdeclared_name_is_reported_once() {
    let reading = read("hamiltonian 2*min*q\nparameter min = 1\nlet f(state) = state\n");
    let messages: Vec<_> =
        reading.diagnostics.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "'min' is reserved: it is a built-in function",
            "'state' is reserved: it is a word that begins a statement"
        ]
    );
    assert_eq!(reading.file.statements.len(), 3);
}

#[test]
fn a_wrong_guess_is_not_reported_twice() {
    // Reading over the first mistake leads to a second one right beside it, which is not reported.
    for (source, culprit) in [
        ("parameter l ² = 1", "²"),
        ("parameter g == = 1", "=="),
        ("coordinate − q : R = 1", "−"),
        ("hamiltonian (a, b −)", "−"),
        ("hamiltonian a || *b", "||"),
        ("hamiltonian l .5", ".5"),
        ("hamiltonian dot $ (p, p)", "$"),
        ("hamiltonian dot(p, \" p)", "\" p)"),
        ("hamiltonian (5 sum)", "sum"),
        ("state let R : R^3 = 1", "let"),
        ("integral let J = q", "let"),
        ("constraint sum rod : a = b", "sum"),
        ("constraint rod let : a = b", "let"),
        ("parameter m ; = 1", ";"),
        ("integral J = a ; b", ";"),
    ] {
        let (_, diagnostics) = parse(source);
        assert_eq!(diagnostics.len(), 1, "{source}\n{diagnostics:#?}");
        assert_eq!(&source[diagnostics[0].span.range()], culprit, "{diagnostics:#?}");
    }
}

#[test]
fn only_underflow_is_a_warning() {
    for &(source, ..) in MISTAKES {
        let warns = parse(source).1[0].severity == Severity::Warning;
        assert_eq!(warns, source.contains("1e-999"), "{source}");
    }
}
