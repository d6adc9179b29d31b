//! Checks of cut-offs: however one is written, a box below twice its length is refused, and terms
//! that end abruptly are named; what only looks like one is not.

mod support;

/// Twelve particles in a box; `TERM` is that of a pair.
const GAS: &str = "size n = 12
parameter L = 4
parameter rc = 1.2
parameter eps = 1
let d(i, j) = nearest(r[i] - r[j], L)
let switched(u, near, far) = if(norm(u) < near, 1, if(norm(u) > far, 0,
    1 - fade((norm(u) - near)/(far - near))))
let fade(s) = s^3*(10 - 15*s + 6*s^2)
coordinate r[i in 1..n] : R^2 = (1.3*(i - 3*round(i/3 - 0.5)) + 0.01*i, 1.1*round(i/3 - 0.5))
momentum p of r = (0.3*cos(i), 0.3*sin(3*i))
hamiltonian sum(i in 1..n : dot(p[i], p[i])/2) + sum(i in 1..n, j in i+1..n FILTER : TERM)
";

/// Messages about the model with these lengths of box and cut-off.
fn findings(filter: &str, term: &str, length: f64) -> Vec<String> {
    let text = GAS
        .replace("FILTER", filter)
        .replace("TERM", term)
        .replace("L = 4", &format!("L = {length}"));
    support::check(&text).1.into_iter().map(|finding| finding.message).collect()
}

const SMOOTH: &str = "eps*(1 - dot(d(i, j), d(i, j))/rc^2)^4";

#[test]
fn every_form_of_a_cutoff_needs_its_box() {
    for (filter, term) in [
        ("if norm(d(i, j)) < rc", SMOOTH),
        ("if rc > norm(d(i, j))", SMOOTH),
        ("if dot(d(i, j), d(i, j)) < rc^2", SMOOTH),
        ("if dot(d(i, j), d(i, j))/rc^2 < 1", SMOOTH),
        ("if norm(d(i, j))^2 - rc^2 <= 0", SMOOTH),
        ("if d(i, j).x^2 + d(i, j).y^2 < rc^2", SMOOTH),
        ("", "eps*switched(d(i, j), 0.8*rc, rc)/(1 + dot(d(i, j), d(i, j)))"),
        ("", "switched(d(i, j), 0.8*rc, rc)*eps*((i + j)/dot(d(i, j), d(i, j)))^3"),
        ("", "eps*max(0, rc - norm(d(i, j)))^2.5"),
        ("", "eps*max(1 - norm(d(i, j))/rc, 0)^3"),
        ("", "eps*(min(norm(d(i, j)), rc) - rc)^3"),
        ("", "(if(dot(d(i, j), d(i, j)) < rc^2, 2*(rc - norm(d(i, j)))^3, 0) + 1)/2"),
        ("if i != 3", "if(not norm(d(i, j)) > rc, (rc - norm(d(i, j)))^4, 0)"),
    ] {
        let small = findings(filter, term, 2.3);
        assert_eq!(
            small,
            ["the cut-off 1.2 is more than half of the periodic box of length 2.3"],
            "{filter} : {term}"
        );
        assert_eq!(findings(filter, term, 2.4), [""; 0], "{filter} : {term}");
    }
    // One axis is too short, or only one is periodic.
    let axes = GAS
        .replace("L = 4", "L = (7, 2.3)")
        .replace("FILTER", "")
        .replace("TERM", "max(0, rc - norm(d(i, j)))^3");
    assert_eq!(support::check(&axes).1.len(), 1);
    let slab =
        axes.replace("nearest(r[i] - r[j], L)", "(r[i].x - r[j].x, nearest(r[i].y - r[j].y, L.y))");
    assert_eq!(support::check(&slab).1.len(), 1, "{:?}", support::check(&slab).1);
    assert!(support::check(&slab.replace("2.3", "2.4")).1.is_empty());
}

#[test]
fn every_form_of_an_abrupt_end_is_named() {
    for (filter, term, what) in [
        (
            "if dot(d(i, j), d(i, j)) < rc^2",
            "1/dot(d(i, j), d(i, j))",
            "the terms do not go to zero",
        ),
        ("if norm(d(i, j)) < rc", "1/dot(d(i, j), d(i, j))", "the terms do not go to zero"),
        (
            "",
            "eps*if(norm(d(i, j)) <= rc, 1/norm(d(i, j)) - 1/rc, 0)",
            "the forces do not go to zero",
        ),
        ("", "eps*max(0, rc - norm(d(i, j)))", "the forces do not go to zero"),
    ] {
        let found = findings(filter, term, 4.0);
        assert!(found.len() == 1 && found[0].starts_with(what), "{filter} : {term}: {found:?}");
    }
}

#[test]
fn what_does_not_end_is_not_judged() {
    for term in [
        // No cut-off at all, one of two branches that both go on, a core inside, a decay into
        // nothing.
        "1/norm(d(i, j))",
        "if(norm(d(i, j)) < 3*rc, 1/norm(d(i, j)), exp(-norm(d(i, j))))",
        "1/max(norm(d(i, j)), 2*rc)",
        "exp(-dot(d(i, j), d(i, j)))",
        "if(norm(d(i, j)) < 3, 0, 0*eps)",
    ] {
        assert_eq!(findings("", term, 2.3), [""; 0], "{term}");
    }
}
