//! Labels of quantities in a model's units: those that are certain, and no others.

mod support;

use holonome_model::elaborate::model::{Model, Quantity};
use holonome_model::units::Labels;

/// A pendulum whose l and m have no known units, with other variables and quantities.
fn pendulum(rest: &str) -> Model {
    let text = "unit m, kg, s\nparameter l = 1\nparameter k = 2\n\
        coordinate q : R^3 = (1, 0, 0)\nmomentum p of q = (0, 1, 0)\n\
        coordinate u = 0.5\nmomentum pu of u\n\
        coordinate phi : R^2 = (0.5, 0.1)\nmomentum pphi of phi\n\
        hamiltonian dot(p, p)/2 + pu^2/2 + dot(pphi, pphi)/2 + k*q.z - cos(phi.x - phi.y)\n\
        constraint rod : dot(q, q) = l^2\nconstraint plane : q.z = 0\n";
    support::model(&format!("{text}{rest}"))
}

/// Label of the observable with this formula.
fn label(formula: &str) -> Option<String> {
    let model = pendulum(&format!("observe X = {formula}\n"));
    Labels::new(&model).unwrap().quantity(&model.observables[0])
}

#[test]
fn variables_and_energies_have_units_where_these_are_certain() {
    let model = pendulum("");
    let labels = Labels::new(&model).unwrap();
    let of: Vec<Option<String>> = model.variables.iter().map(|v| labels.variable(v)).collect();
    let known = |text: &str| Some(text.to_string());
    // A number and a vector of angles have none, nor have their momenta.
    assert_eq!(of, [known("m"), None, None, known("kg m/s"), None, None]);
    assert_eq!(labels.time(), "s");
    assert_eq!(labels.energy(), known("kg m^2/s^2"));
    let constraint =
        |name: &str| -> &Quantity { model.constraints.iter().find(|c| c.name == name).unwrap() };
    assert_eq!(labels.multiplier(constraint("rod")), known("kg/s^2"));
    assert_eq!(labels.multiplier(constraint("plane")), known("kg m/s^2"));
    assert_eq!(labels.residual(constraint("rod"), 1), known("m^2/s"));
    assert!(Labels::new(&support::model("state x = 1\nx' = -x\n")).is_none());
}

#[test]
fn formulas_of_positions_velocities_and_momenta_have_labels() {
    for (formula, expected) in [
        ("q.z + l", "m"),
        ("norm(q)", "m"),
        ("(q.x - q.y)/3", "m"),
        ("q'", "m/s"),
        ("norm(q'')", "m/s^2"),
        ("q.x/t", "m/s"),
        ("p.x + p.y", "kg m/s"),
        ("cross(q, p)", "kg m^2/s"),
        ("dot(p, q')/2", "kg m^2/s^2"),
        ("reaction(rod)", "kg m/s^2"),
        ("max(q.x, abs(q.y))", "m"),
    ] {
        assert_eq!(label(formula).as_deref(), Some(expected), "{formula}");
    }
}

#[test]
fn no_formula_has_a_label_that_may_be_wrong() {
    for formula in [
        "k*q.z",
        "9.81*q.z",
        "dot(q, q)",
        "dot(p, p)/2",
        "-1/norm(q)",
        "q.x + p.x",
        "atan2(q.y, q.x)",
        "sin(q.x/norm(q))",
        "phi",
        "u",
        "l",
        "1 + 2",
    ] {
        assert_eq!(label(formula), None, "{formula}");
    }
}

/// A bracket of states leaves open what H is.
#[test]
fn states_have_no_units() {
    let model = support::model(
        "unit m, kg, s\nstate x : R^2 = (1, 0)\nhamiltonian dot(x, x)/2\n\
         poisson (x) = matrix((0, 1), (-1, 0))\n",
    );
    let labels = Labels::new(&model).unwrap();
    assert_eq!((labels.variable(&model.variables[0]), labels.energy()), (None, None));
}

/// All members of a family that a template reads are of one kind.
#[test]
fn families_of_any_size_have_labels() {
    let model = support::model(
        "unit nm, u, ps\nsize n = 3000\nparameter m[i in 1..n] = 1 + i\n\
         coordinate r[i in 1..n] : R^2 = (i, 0)\nmomentum p[i] of r\n\
         hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i]))\n\
         constraint rod[i in 1..n-1] : norm(r[i+1] - r[i]) = 1\n\
         integral P = sum(i in 1..n : p[i])\nobserve c = sum(i in 1..n : r[i])/n\n\
         observe mc = sum(i in 1..n : m[i]*r[i])\n",
    );
    let labels = Labels::new(&model).unwrap();
    let all = model.integrals.iter().chain(&model.observables);
    let all: Vec<Option<String>> = all.map(|q| labels.quantity(q)).collect();
    assert_eq!(all, [Some("u nm/ps".to_string()), Some("nm".to_string()), None]);
    assert_eq!(labels.multiplier(&model.constraints[0]).as_deref(), Some("u nm/ps^2"));
}
