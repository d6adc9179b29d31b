//! The search for first integrals: known ones are found again, hold as the model's own, and nothing
//! else is found.

mod common;

use common::{Folder, keys};
use serde_json::Value;

/// Systems with all the integrals that are sums of the products of their degree, and are no
/// products of others; once there are as many as the state has components, the search ends.
/// Sources: Kepler's problem (Goldstein, Poole, Safko 2002, 3.9); Toda's lattice of three masses
/// (Henon 1974); the Henon-Heiles system with a quartic integral (Grammaticos, Dorizzi, Padjen
/// 1982); rational Calogero-Moser masses (Moser 1975), with more integrals than degrees of freedom
/// (Wojciechowski 1983); Lotka and Volterra's equations. The others are linear or have symmetries
/// of the plane.
const SYSTEMS: [(&str, &str, &[&str]); 15] = [
    (
        "kepler",
        "parameter m = 2.5\nparameter k = 7\ncoordinate q : R^3 = (1, 0, 0.1)\nmomentum p of q = (0, 3, 0.2)
         hamiltonian dot(p, p)/(2*m) - k/norm(q)",
        &[
            "q.x*p.y - q.y*p.x",
            "q.x*p.z - q.z*p.x",
            "q.y*p.z - q.z*p.y",
            "q.x*p.x*p.y - q.y*p.x^2 - q.y*p.z^2 + m*k*q.y/norm(q) + q.z*p.y*p.z",
            "q.x*p.x*p.z + q.y*p.y*p.z - q.z*p.x^2 - q.z*p.y^2 + m*k*q.z/norm(q)",
            "q.x*p.y^2 + q.x*p.z^2 - m*k*q.x/norm(q) - q.y*p.x*p.y - q.z*p.x*p.z",
        ],
    ),
    (
        // The same in SI units: the numbers of the earth.
        "earth",
        "parameter G = 6.674e-11\nparameter M = 1.989e30\nparameter m = 5.972e24
         coordinate q : R^2 = (1.496e11, 0)\nmomentum p of q = (0, 1.78e29)
         hamiltonian dot(p, p)/(2*m) - G*M*m/norm(q)",
        &[
            "q.x*p.y - q.y*p.x",
            "q.x*p.x*p.y - q.y*p.x^2 + G*M*m^2*q.y/norm(q)",
            "q.x*p.y^2 - G*M*m^2*q.x/norm(q) - q.y*p.x*p.y",
        ],
    ),
    (
        "toda",
        "coordinate q[i in 1..3] = 0.2*i^2 - 0.5*i\nmomentum p of q = 0.3*i - 0.5
         hamiltonian sum(i in 1..3 : p[i]^2/2) + exp(q[1] - q[2]) + exp(q[2] - q[3]) + exp(q[3] - q[1])",
        &[
            "sum(i in 1..3 : p[i])",
            "sum(i in 1..3 : q[i] - p[i]*t)",
            "p[1]*p[2]*p[3] - p[1]*exp(q[2] - q[3]) - p[2]*exp(q[3] - q[1]) - p[3]*exp(q[1] - q[2])",
        ],
    ),
    (
        "masses",
        // Masses 1e8 apart.
        "parameter m[i in 1..3] = 10^(4*(i - 2))\ncoordinate q[i in 1..3] : R^2 = (cos(2*i), sin(2*i))
         momentum p of q = m[i]*(0.1*i, 0.2)
         hamiltonian sum(i in 1..3 : dot(p[i], p[i])/(2*m[i])) -
             sum(i in 2..3, j in 1..i-1 : m[i]*m[j]/norm(q[i] - q[j]))",
        &[
            "sum(i in 1..3 : p[i].x)",
            "sum(i in 1..3 : p[i].y)",
            "sum(i in 1..3 : m[i]*q[i].x - p[i].x*t)",
            "sum(i in 1..3 : m[i]*q[i].y - p[i].y*t)",
            "sum(i in 1..3 : q[i].x*p[i].y - q[i].y*p[i].x)",
        ],
    ),
    (
        "many",
        // Products of all pairs of components are too many: sums over the members are tried.
        "size n = 12\nparameter m[i in 1..n] = 1 + i/10
         coordinate q[i in 1..n] : R^2 = (i*cos(2*i), i*sin(2*i))\nmomentum p of q = (0.1*i, 0.2)
         hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i])) -
             sum(i in 2..n, j in 1..i-1 : m[i]*m[j]/norm(q[i] - q[j]))",
        &[
            "sum(i in 1..12 : p[i].x)",
            "sum(i in 1..12 : p[i].y)",
            "sum(i in 1..12 : q[i].x*p[i].y - q[i].y*p[i].x)",
            "sum(i in 1..12 : m[i]*q[i].x - p[i].x*t)",
            "sum(i in 1..12 : m[i]*q[i].y - p[i].y*t)",
        ],
    ),
    (
        // The impulse and the squares of the centre of vorticity are one space: the impulse is a
        // sum over the vortices.
        "vortices",
        "size n = 4\nparameter Gamma[i in 1..n] = (1, 1.5, -0.5, 2)[i]
         state r[i in 1..n] : R^2 = ((1, 0, -1.1, 0.2)[i], (0, 1.2, 0.3, -0.9)[i])\nlet d(i, j) = r[i] - r[j]
         r[i]' = sum(j in 1..n if j != i : Gamma[j]/(2*pi)/dot(d(i,j), d(i,j))*(-d(i,j).y, d(i,j).x))",
        &[
            "sum(i in 1..4 : Gamma[i]*r[i].x)",
            "sum(i in 1..4 : Gamma[i]*r[i].y)",
            "sum(i in 1..4 : Gamma[i]*dot(r[i], r[i]))",
        ],
    ),
    (
        "driven",
        "parameter w = 2\ncoordinate q = 0.3\nmomentum p of q = 1\nhamiltonian p^2/2 + q*cos(w*t)",
        &["w*p + sin(w*t)", "w*q - w*p*t - t*sin(w*t) - cos(w*t)/w"],
    ),
    (
        "predators",
        "parameter a = 1.1\nparameter b = 0.4\nparameter c = 0.3\nstate x = 1\nx' = a*x - b*x*y
         state y = 2\ny' = c*x*y - 0.5*y",
        &["c*x + b*y - log(x)/2 - a*log(y)"],
    ),
    (
        // At rest at the origin.
        "rest",
        "coordinate q : R^2 = (0, 0)\nmomentum p of q = (0, 0)\nhamiltonian dot(p, p)/2 + dot(q, q)/2",
        &["q.x^2 + p.x^2", "q.x*q.y + p.x*p.y", "q.x*p.y - q.y*p.x"],
    ),
    (
        "rod",
        "coordinate q : R^3 = (0, 1, 0)\nmomentum p of q = (1, 0, -1)\nhamiltonian dot(p, p)/2 + q.z
         constraint rod : dot(q, q) = 1",
        &["q.x*p.y - q.y*p.x"],
    ),
    (
        "calogero",
        "coordinate q[i in 1..2] = 1.5*i\nmomentum p of q = 0.4 - 0.3*i\nparameter g = 0.3
         hamiltonian (p[1]^2 + p[2]^2)/2 + g/(q[1] - q[2])^2",
        &[
            "p[1] + p[2]",
            "q[1] + q[2] - p[1]*t - p[2]*t",
            "q[1]*p[1]*p[2] - q[1]*p[2]^2 - 2*g*q[1]/(q[1] - q[2])^2 - q[2]*p[1]^2 + q[2]*p[1]*p[2] - 2*g*q[2]/(q[1] - q[2])^2",
        ],
    ),
    (
        // A parameter that is negative itself.
        "falling",
        "parameter g = -9.81\ncoordinate q : R^2 = (0, 1)\nmomentum p of q = (0.3, 0.2)
         hamiltonian dot(p, p)/2 - g*q.y",
        &["p.x", "p.y - g*t", "q.x - p.x*t"],
    ),
    (
        // An index with the name of a parameter, which formulas need.
        "hidden",
        "parameter m = 2.5\ncoordinate q[m in 1..3] = 0.3*m^2\nmomentum p of q = 0.2*m
         hamiltonian sum(i in 1..3 : p[i]^2/(2*m)) + exp(q[1] - q[2]) + exp(q[2] - q[3])",
        &[
            "sum(i in 1..3 : p[i])",
            "sum(i in 1..3 : m*q[i] - p[i]*t)",
            "p[1]*p[2]*p[3]/m - p[1]*exp(q[2] - q[3]) - p[3]*exp(q[1] - q[2])",
        ],
    ),
    (
        // A slow motion in SI units, of which a run of 100 s sees nothing.
        "galaxy",
        "parameter w = 1e-15\ncoordinate q : R^2 = (2.5e20, 0)\nmomentum p of q = (1e4, 2.2e5)
         hamiltonian dot(p, p)/2 + w^2*dot(q, q)/2",
        &["w^2*q.x^2 + p.x^2", "w^2*q.x*q.y + p.x*p.y", "q.x*p.y - q.y*p.x"],
    ),
    (
        // Chaotic: none but H.
        "chaos",
        "coordinate q : R^2 = (0.1, 0.3)\nmomentum p of q = (0.1, 0.2)
         hamiltonian (dot(p, p) + dot(q, q))/2 + q.x^2*q.y - q.y^3/3",
        &[],
    ),
];

/// Formulas that a search of a model finds.
fn found(folder: &Folder, arguments: &str) -> Vec<(String, Value)> {
    let answer = folder.run(&format!("integrals {arguments} --json")).ok().json();
    let list = answer["integrals"].as_array().unwrap();
    list.iter()
        .map(|integral| (integral["formula"].as_str().unwrap().to_string(), integral.clone()))
        .collect()
}

#[test]
fn known_integrals_are_found_and_hold_as_the_models_own() {
    let folder = Folder::new();
    for (name, text, expected) in SYSTEMS {
        folder.write(&format!("{name}.holo"), text);
        let integrals = found(&folder, &format!("{name}.holo"));
        let formulas: Vec<&str> = integrals.iter().map(|(formula, _)| formula.as_str()).collect();
        assert_eq!(formulas, expected, "{name}");
        for (formula, integral) in &integrals {
            assert_eq!(integral["holds"], "for all parameters", "{name}: {formula}");
        }
        // Each passes the test of a claim, and is not found again.
        let claims = formulas
            .iter()
            .enumerate()
            .map(|(k, formula)| format!("\nintegral found_{k} = {formula}"));
        folder.write("stated.holo", format!("{text}{}", claims.collect::<String>()));
        let checked = folder.run("check stated.holo --json").ok().json();
        assert_eq!(checked["warnings"].as_array().unwrap().len(), 0, "{name}: {checked}");
        assert!(found(&folder, "stated.holo").is_empty(), "{name}");
    }
}

#[test]
fn parameters_in_a_formula_hold_for_their_other_values() {
    let folder = Folder::new();
    let (_, text, _) = SYSTEMS[0];
    let integrals = found(folder.write("kepler.holo", text), "kepler.holo");
    let claims = integrals
        .iter()
        .enumerate()
        .map(|(k, (formula, _))| format!("\nintegral found_{k} = {formula}"));
    folder.write("stated.holo", format!("{text}{}", claims.collect::<String>()));
    folder.run("run stated.holo --until 1 --set m=0.7 --set k=3.3 --samples 2").ok();
}

#[test]
fn an_integral_of_special_parameters_says_so() {
    let folder = Folder::new();
    folder.write(
        "special.holo",
        "parameter A = 1\nparameter B = 16\nparameter e = 16
         coordinate q : R^2 = (0.1, 0.3)\nmomentum p of q = (0.1, 0.2)
         hamiltonian dot(p, p)/2 + (A*q.x^2 + B*q.y^2)/2 + q.x^2*q.y + e*q.y^3/3",
    );
    let integrals = found(&folder, "special.holo");
    assert_eq!(integrals.len(), 1, "{integrals:?}");
    assert_eq!(
        (&integrals[0].1["holds"], &integrals[0].1["degree"]),
        (&"not for all parameters".into(), &6.into())
    );
    assert!(found(&folder, "special.holo --set e=15.9").is_empty());
    assert!(found(&folder, "special.holo --degree 5").is_empty(), "it has terms of degree 6");
    let told = folder.run("integrals special.holo").ok().stdout;
    assert!(
        told.contains("1 first integral beside H, among 215 products of up to 6 factors"),
        "{told}"
    );
    assert!(told.contains("(not for all values of the parameters)"), "{told}");
    // A parameter that is 0 leaves out what would break them.
    folder.write(
        "zero.holo",
        "parameter e = 0\ncoordinate q : R^2 = (0.1, 0.3)\nmomentum p of q = (0.1, 0.2)
         hamiltonian (dot(p, p) + dot(q, q))/2 + e*(q.x^2*q.y - q.y^3/3)",
    );
    let integrals = found(&folder, "zero.holo");
    assert!(
        integrals.len() == 3
            && integrals.iter().all(|(_, i)| i["holds"] == "not for all parameters")
    );
}

#[test]
fn a_search_that_does_not_begin_or_ends_early_says_so() {
    let folder = Folder::new();
    // H, L and A have seven components, the state six.
    let told = folder.run("integrals models/kepler.holo").ok().stdout;
    assert!(told.contains("nothing was searched: as many integrals are known"), "{told}");
    folder.write("predators.holo", SYSTEMS[7].1);
    let told = folder.run("integrals predators.holo").ok().stdout;
    assert!(told.contains("factors were not searched: they are too much alike"), "{told}");
}

#[test]
fn a_search_that_is_too_large_is_refused_by_name() {
    let folder = Folder::new();
    folder.write("ring.holo", SYSTEMS[4].1);
    folder.run("integrals ring.holo --degree 4").refused(&[
        "products of up to 4 factors",
        "--degree",
        "--set",
    ]);
    folder.run("integrals ring.holo --degree 0").refused(&["--degree"]);
    let chain = "size n = 400\ncoordinate r[i in 1..n] : R^2 = (i, 0)\nmomentum p of r\n
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)\nconstraint a : dot(r[1], r[1]) = 1
        constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 1";
    folder.write("chain.holo", chain);
    folder.run("integrals chain.holo").refused(&["too large", "--set"]);
    let answer = folder.run("integrals chain.holo --set n=3 --json").ok().json();
    assert_eq!(
        keys(&answer),
        ["model", "known", "degree", "candidates", "integrals", "notes", "warnings"],
        "keys of the object: {answer}"
    );
}
