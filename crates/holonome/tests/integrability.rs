//! What `check` says of rolling constraints: whether they could be constraints on positions.

use holonome::Problem;
use holonome::check::Report;

/// For each rolling constraint whether it is integrable by itself, and whether a note says that all
/// are together.
fn found(text: &str) -> (Vec<bool>, bool) {
    let problem: Problem = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let report = Report::new(&problem);
    let integrable = report.constraints.iter().filter_map(|row| row.integrable).collect();
    (integrable, report.notes.iter().any(|note| note.contains("integrable together")))
}

/// A model of three positions, at (1, 0.5, 0.3) and at rest, of these masses.
fn at_rest(m: f64, lines: &str) -> String {
    format!(
        "coordinate r : R^3 = (1, 0.5, 0.3)\nmomentum p of r = (0, 0, 0)\n\
         hamiltonian (p.x^2 + p.y^2/{m} + p.z^2*{m})/2\n{lines}\n"
    )
}

/// Answers that are known from Frobenius' theorem: dω ∧ ω = 0 for one form.
#[test]
fn one_constraint() {
    for (form, integrable) in [
        // Exact, and closed with an integrating factor.
        ("r'.x = 2*r'.y", true),
        ("r.y*r'.x + r.x*r'.y = 0", true),
        ("exp(r.z)*(r.x*r'.x + r.y*r'.y) = 0", true),
        ("1e-7*r.y*r'.x = 1e-7*r.x*r'.y", true),
        // Any form in two positions is integrable, with a third it is not.
        ("sin(r.x*r.y)*r'.x + cos(r.x)*r'.y = 0", true),
        ("sin(r.z)*r'.x = cos(r.z)*r'.y", false),
        // The contact form, also a weak one.
        ("r'.x = r.y*r'.z", false),
        ("r'.x = 1e-6*r.y*r'.z", false),
        // The time is one dimension more.
        ("r'.x = cos(t) - 1", true),
        ("r'.x = sin(t)*r'.y", false),
        ("r'.x + 0*t = r.y*r'.y", true),
    ] {
        for m in [1.0, 1e8] {
            let line = format!("rolling c : {form}");
            assert_eq!(found(&at_rest(m, &line)), (vec![integrable], false), "{form}");
        }
    }
}

/// A constraint on positions leaves two directions, on which any form without time is integrable; a
/// disk that rolls straight ahead does what each of its constraints alone does not say.
#[test]
fn beside_others() {
    let contact = "rolling c : r'.x = r.y*r'.z";
    let on_a_sphere = format!("constraint s : dot(r, r) = 1.34\n{contact}");
    assert_eq!(found(&at_rest(1.0, &on_a_sphere)), (vec![true], false));
    let moving = "constraint s : dot(r, r) = 1.34\nrolling c : r'.x = r.y*r'.z + sin(t)*r.y";
    assert_eq!(found(&at_rest(1.0, moving)), (vec![false], false));
    let disk = |last: &str| {
        format!(
            "coordinate r : R^2 = (0, 0)\ncoordinate a = 0\ncoordinate b = 0.3\n\
             velocity v of r = (cos(0.3), sin(0.3))\nvelocity w of a = 1\nvelocity u of b = 0\n\
             hamiltonian (dot(p_r, p_r) + p_a^2 + p_b^2)/2\n\
             rolling along : r'.x = cos(b)*a'\nrolling across : r'.y = sin(b)*a'\n{last}\n"
        )
    };
    assert_eq!(found(&disk("")), (vec![false, false], false));
    assert_eq!(found(&disk("rolling straight : b' = 0")), (vec![false, false, true], true));
    let contact = format!("{contact}\nrolling d : r'.y = 0");
    assert_eq!(found(&at_rest(1.0, &contact)), (vec![false, true], true));
    // The components of one statement are taken together.
    let text = "coordinate r : R^2 = (1, 0.5)\ncoordinate s : R^2 = (1, 0)\nmomentum p of r\n\
        momentum q of s\nhamiltonian (dot(p, p) + dot(q, q))/2\n";
    assert_eq!(found(&format!("{text}rolling c : r' = s.x*s'")), (vec![false], false));
    assert_eq!(found(&format!("{text}rolling c : r' = 2*s'")), (vec![true], false));
}
