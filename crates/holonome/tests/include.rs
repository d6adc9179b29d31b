//! Tests of `include "file.holo"`: files beside the model, and those of the library.

mod common;

use common::repository;
use holonome::{Error, Problem, Settings};
use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::fs;
use std::path::Path;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn load(folder: &Path) -> Result<Problem, Error> {
    Problem::load(folder.join("model.holo"), &Settings::default())
}

/// Findings of a refused model, one per line.
fn refused(files: &[(&str, &str)]) -> String {
    let folder = folder(files);
    match load(folder.path()) {
        Err(Error::Model { text, diagnostics }) => {
            let lines: Vec<String> = diagnostics.iter().map(|finding| text.line(finding)).collect();
            lines.join("\n").replace(&format!("{}/", folder.path().display()), "")
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is refused"),
    }
}

/// Values of the observables at the start.
fn observed(text: &str) -> BTreeMap<String, Vec<f64>> {
    let problem =
        Problem::from_text("model", text, &BTreeMap::new(), &Settings::default()).unwrap();
    let model = &problem.model;
    let value = |quantity: &holonome_model::elaborate::model::Quantity| {
        quantity.functional.evaluate(model.t0, &model.initial, &model.parameter_values)
    };
    model.observables.iter().map(|quantity| (quantity.name.clone(), value(quantity))).collect()
}

const MOTION: &str =
    "coordinate q : R^3 = (1, 2, 2)\nmomentum p of q\nhamiltonian dot(p, p)/2 + V(q)\n";

#[test]
fn files_stand_where_they_are_included() {
    let folder = folder(&[
        (
            "model.holo",
            &format!("include \"parts/well.holo\"\ninclude \"parts/numbers.holo\"\n{MOTION}"),
        ),
        (
            "parts/well.holo",
            "# k is a number\ninclude \"numbers.holo\"\nlet V(x) = k*dot(x, x)/2\n",
        ),
        ("parts/numbers.holo", "parameter k = data.k[1]\ntable data = \"k.csv\"\n"),
        ("parts/k.csv", "k\n3\n"),
    ]);
    let problem = load(folder.path()).unwrap();
    let energy = |problem: &Problem| match &problem.model.dynamics {
        holonome_model::elaborate::model::Dynamics::Hamiltonian(h, _) => {
            h.evaluate(0.0, &problem.model.initial, &problem.model.parameter_values)[0]
        }
        holonome_model::elaborate::model::Dynamics::Field(_) => {
            unreachable!("it has a Hamiltonian")
        }
    };
    assert_eq!(energy(&problem), 13.5);
    let set = Settings { set: vec![("k".to_string(), "1".to_string())], ..Settings::default() };
    assert_eq!(energy(&Problem::load(folder.path().join("model.holo"), &set).unwrap()), 4.5);
    // The stored texts give the same model without any of the files.
    let again =
        Problem::from_text("model", problem.source.text(), &problem.tables, &Settings::default())
            .unwrap();
    assert_eq!(energy(&again), 13.5);
}

#[test]
fn findings_stand_in_the_file_that_they_are_about() {
    let model = format!("include \"well.holo\"\n{MOTION}");
    let wrong = refused(&[
        ("model.holo", &model),
        ("well.holo", "\nlet V(x) = kk*dot(x, x)\nparameter k = 1\n"),
    ]);
    assert!(wrong.starts_with("well.holo:2:12: unknown name 'kk'"), "{wrong}");
    let unread =
        refused(&[("model.holo", &model), ("well.holo", "parameter = 1\nlet V(x) = dot(x, x)\n")]);
    assert!(unread.starts_with("well.holo:1:11:"), "{unread}");
    let open = refused(&[("model.holo", &model), ("well.holo", "let V(x) = (x.x")]);
    assert!(open.starts_with("well.holo:1:"), "{open}");
    let twice =
        refused(&[("model.holo", &model), ("well.holo", "let V(x) = x.x\nparameter p = 1\n")]);
    assert!(twice.contains("'p'"), "{twice}");
}

#[test]
fn files_that_cannot_be_included() {
    let model = format!("include \"well.holo\"\n{MOTION}");
    let missing = refused(&[("model.holo", &model)]);
    assert!(missing.starts_with("model.holo:1:9: 'well.holo' cannot be included: "), "{missing}");
    assert!(missing.contains("molecules.holo") && !missing.contains('\n'), "{missing}");
    let itself = refused(&[("model.holo", "include \"./model.holo\"\n")]);
    assert!(itself.contains("model.holo includes model.holo"), "{itself}");
    let parts = [
        ("model.holo", &*model),
        ("well.holo", "include \"deep/a.holo\"\n"),
        ("deep/a.holo", "include \"../well.holo\"\n"),
    ];
    let circle = refused(&parts);
    assert!(
        circle.starts_with("deep/a.holo:1:9: ")
            && circle.contains("well.holo includes deep/a.holo includes well.holo"),
        "{circle}"
    );
    for (text, part) in [
        ("include\n", "include"),
        ("include well.holo\n", "double quotes"),
        ("import \"well.holo\"\n", "include"),
    ] {
        let found = refused(&[("model.holo", text), ("well.holo", "")]);
        assert!(found.contains(part), "{found}");
    }
}

/// A file of this name beside the model takes precedence over the library's.
#[test]
fn the_library_gives_way_to_a_file() {
    let files = [
        ("model.holo", "include \"molecules.holo\"\n"),
        ("molecules.holo", "coordinate q\nmomentum p of q\n"),
    ];
    assert!(refused(&files).contains("molecules.holo:1"));
}

/// Comparison with numbers worked out by hand.
#[test]
fn interactions_of_molecules() {
    let values = observed(
        "include \"molecules.holo\"\ncoordinate q : R^3 = (0, 0, 2)\nmomentum p of q\nhamiltonian dot(p, p)/2\n\
         observe least = lennard_jones((0, 2^(1/6)*1.5, 0), 0.3, 1.5)\nobserve contact = lennard_jones(q, 0.3, 2)\n\
         observe charges = coulomb(q, -3)\nobserve spring = harmonic_bond(q, 10, 1.5)\n\
         observe morse = morse_bond(q, 5, 2, 2)\nobserve broken = morse_bond(100*q, 5, 2, 2)\n\
         observe angle = bond_angle((1, 0, 0), (-1, 1, 0))\nobserve bend = harmonic_angle((1, 0, 0), (0, 3, 0), 2, pi/3)\n\
         observe cis = torsion_angle((0, 1, 0), (1, 0, 0), (0, -2, 0))\n\
         observe trans = torsion_angle((0, 1, 0), (1, 0, 0), (0, 2, 0))\n\
         observe gauche = torsion_angle((0, -1, 0), (1, 0, 0), (0, 1/2, sqrt(3)/2))\n\
         observe twist = cosine_torsion((0, 1, 0), (1, 0, 0), (0, 2, 0), 4, 1, 0)\n\
         observe fading = (switched(q, 3, 4), switched(q, 1, 3), switched(q, 1, 2), switched(q, 1, 1.5))\n",
    );
    let expected = [
        ("least", -0.3),
        ("contact", 0.0),
        ("charges", -1.5),
        ("spring", 1.25),
        ("morse", 0.0),
        ("broken", 5.0),
        ("angle", 0.75 * PI),
        ("bend", (PI / 6.0).powi(2)),
        ("cis", 0.0),
        ("trans", PI),
        ("gauche", PI / 3.0),
        ("twist", 0.0),
    ];
    for (name, value) in expected {
        let found = values[name][0];
        let gap = (found - value).abs();
        // The sign of a torsion of half a turn is rounding.
        assert!(gap < 1e-14 || (gap - 2.0 * PI).abs() < 1e-14, "{name}: {found} {value}");
    }
    assert_eq!(values["fading"], [1.0, 0.5, 0.0, 0.0]);
}

/// The model that uses them keeps its invariants.
#[test]
fn alkanes_of_any_length() {
    for n in ["2", "5", "10"] {
        let problem = common::load(&repository().join("models/alkane.holo"), &[("n", n)]).unwrap();
        let finished = common::run(
            problem,
            common::options("--method stormer-verlet-a --step 0.005 --until 20"),
        )
        .unwrap();
        for drift in &finished.summary.drift {
            let limit = if drift.name == "H" { 0.05 } else { 1e-10 };
            assert!(drift.max < limit, "{n} atoms: {} {:e}", drift.name, drift.max);
        }
    }
}
