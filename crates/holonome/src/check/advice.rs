//! Advice which method to take for a model.

use super::held::{HeldIntegrals, explicit};
use super::pace::Pace;
use crate::problem::Problem;
use crate::step::{self, OrbitRow};
use holonome_integrate::method::Scheme;
use holonome_model::consistency::Dependence;
use holonome_model::derived::Derived;
use holonome_model::elaborate::expression::MOMENTUM;
use holonome_model::elaborate::model::Quantity;
use holonome_model::treatment::penalty::penalise;
use holonome_words::option;

/// First word of advice.
pub(super) const ADVICE: &str = "advice:";

/// First words of the advice on penalties.
pub(super) fn penalty() -> String {
    format!("{} is for", option("penalty"))
}

/// Advice which method to take: a correction that holds all actions lets errors grow like T;
/// without one only a symplectic method does. Advised methods suit the model.
pub(super) fn advice(
    problem: &Problem,
    (survey, orbits): (&[(&'static Scheme, Option<String>)], &[OrbitRow]),
    held: Option<HeldIntegrals>,
    degrees: Option<usize>,
) -> Vec<String> {
    let model = &problem.model;
    let penalised = || {
        penalise(model, 1.0)
            .is_ok_and(|model| suited(&step::survey(&Derived::new(model)), "stormer-verlet-a"))
    };
    if !problem.examined.singular.is_empty() {
        return advice_on_dependence(&problem.examined.dependence);
    }
    if problem.examined.too_large.is_some() {
        return vec![format!(
            "advice: make the model smaller with {set}, or split it",
            set = option("set")
        )];
    }
    let mut advice = Vec::new();
    if !problem.examined.varying.is_empty() && !problem.settings.allow_unverified {
        advice.push(format!(
            "advice: correct or leave out {} first, or run with {allow_unverified}: what varies is not held",
            problem.examined.varying.join(", "),
            allow_unverified = option("allow_unverified")
        ));
    }
    advice.extend(advice_on_methods(problem, (survey, orbits), held, degrees));
    if problem.examined.rows.is_none() {
        let accurate = explicit(problem).0.replace("dop853", "gauss16");
        advice.push(format!(
            "        {accurate} for errors below about 1e-6, where nothing is stiff"
        ));
    }
    let penalty = format!("        {} stiff potentials, or a fixed cost per step", penalty());
    let holonomic = |q: &Quantity| q.depends & MOMENTUM == 0;
    if model.is_hamiltonian()
        && !model.constraints.is_empty()
        && model.constraints.iter().all(holonomic)
        && penalised()
    {
        advice.push(penalty);
    }
    advice
}

/// Advice for constraints that depend on each other at the start, and not wherever they hold.
fn advice_on_dependence(dependence: &Dependence) -> Vec<String> {
    vec![
        format!(
            "advice: write {} another way, or start elsewhere: the constraints are singular",
            dependence.singular.join(", ")
        ),
        "        with fewer constraints the model is another one, and a penalty converges slowly"
            .to_string(),
    ]
}

fn suited(survey: &[(&'static Scheme, Option<String>)], name: &str) -> bool {
    survey.iter().any(|(scheme, reason)| scheme.name == name && reason.is_none())
}

/// Largest part of the motions of Kepler that their coupling may be for a splitting to be advised.
const WEAK: f64 = 0.05;

/// Steps of saba1064 in the time in which the fastest orbit passes its pericentre, a turn if it is a
/// circle: the planets' orbits have errors of about 1e-8 in 500 years then.
const STEPS_PER_TURN: f64 = 8.0;

/// Step for a splitting into motions of Kepler, and the size of their coupling; `None` if it is not
/// weak, or an orbit is not bound.
fn weakly_coupled(orbits: &[OrbitRow]) -> Option<(f64, f64)> {
    let coupling = orbits.iter().map(|orbit| orbit.coupling).fold(0.0, f64::max);
    let turns =
        orbits.iter().map(|orbit| Some(orbit.period? * (1.0 - orbit.eccentricity).powf(1.5)));
    let fastest = turns.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)?;
    (coupling <= WEAK && fastest > 0.0).then_some((fastest / STEPS_PER_TURN, coupling))
}

/// Advice on the methods of a model that can be run; see [`advice`].
fn advice_on_methods(
    problem: &Problem,
    (survey, orbits): (&[(&'static Scheme, Option<String>)], &[OrbitRow]),
    held: Option<HeldIntegrals>,
    degrees: Option<usize>,
) -> Vec<String> {
    let hamiltonian = problem.model.is_hamiltonian();
    let symplectic = ["cayley-symmetric", "rattle", "stormer-verlet-a", "poisson-splitting"]
        .into_iter()
        .find(|name| suited(survey, name));
    let (name, kept) = explicit(problem);
    let count =
        |n: usize, what: &str, many: &str| format!("{n} {}", if n == 1 { what } else { many });
    let known = held.zip(degrees).map(|(held, degrees)| {
        let mut integrals =
            count(held.independent, "independent integral", "independent integrals");
        if held.brackets > 0 {
            integrals.push_str(&format!(" (their brackets have rank {})", held.brackets));
        }
        if hamiltonian {
            let freedom = count(degrees, "degree of freedom", "degrees of freedom");
            return (held.all_actions(degrees), format!("{integrals} of {freedom}"));
        }
        // On a curve all errors are errors in time. A rigid body's field preserves a volume, so its
        // motion is conditionally periodic on a surface, too (Jacobi's last multiplier).
        let left = degrees.saturating_sub(held.independent);
        let all = left <= 1 || left == 2 && symplectic.is_some();
        (all, format!("{integrals} on a manifold of dimension {degrees}"))
    });
    if let Some((true, integrals)) = &known
        && !kept.is_empty()
    {
        return vec![
            format!("advice: {name}, for short runs and for long ones"),
            format!("        it holds {integrals}: all actions, so that errors grow like T"),
        ];
    }
    if problem.model.has_passive_bodies() {
        return vec![
            format!("advice: {name}, for short runs and for long ones"),
            "        the energy of the bodies with mass is kept; in their field test bodies move"
                .to_string(),
        ];
    }
    if !problem.model.forces.is_empty() {
        return vec![
            format!("advice: {name}, for short runs and for long ones"),
            "        forces act: the energy is balanced with their work, and no other method keeps more".to_string(),
        ];
    }
    let pace = Pace::new(problem);
    let growth = "a correction's error grows like T², a symplectic method's like T";
    match symplectic {
        None if suited(survey, "gni") => vec![
            format!("advice: {name}, for short runs and for long ones"),
            format!(
                "        it holds {}; gni and nonholonomic-leapfrog are reversible, at a fixed cost per step",
                kept.join(", ")
            ),
        ],
        None if problem.model.poisson.is_some() && suited(survey, "discrete-gradient") => vec![
            format!("advice: discrete-gradient for long runs, {name} for short or very accurate ones"),
            "        it keeps the energy to round-off, gauss4 quadratic Casimirs; no splitting of H into parts with known flows is found".to_string(),
        ],
        None => vec![
            format!("advice: {name}: no method for long runs of Hamiltonian models suits this one"),
            match kept.is_empty() {
                true => "        state the integrals that you know: those that are corrected cannot drift".to_string(),
                false => format!("        it holds {}; state what other integrals you know", kept.join(", ")),
            },
        ],
        Some(_) if pace.is_some_and(|pace| pace.uneven().is_some()) => vec![
            format!("advice: {name}, for short runs and for long ones"),
            format!(
                "        the steps that the motion needs vary by a factor of {:.0e} along it: equal steps, which symplectic methods need, would all be the shortest",
                pace.and_then(Pace::uneven).unwrap_or(1.0)
            ),
        ],
        Some(_) if let Some((step, coupling)) = weakly_coupled(orbits) => vec![
            format!(
                "advice: saba1064(kepler-splitting) {step} for long runs, {name} for others",
                step = option("step").with(format_args!("{step:.0e}"))
            ),
            format!(
                "        the coupling of the motions of Kepler is {coupling:.0e} of them; where bodies come close to each other in a step, gauss16 makes it"
            ),
        ],
        Some(symplectic) => vec![
            format!(
                "advice: suzuki4({symplectic}){} for long runs, {name} for short or very accurate ones",
                pace.map_or(String::new(), |pace| format!(
                    " {}",
                    option("step").with(format_args!("{:.0e}", pace.equal_step()))
                ))
            ),
            // For many constraints the rank is not determined.
            match known {
                Some((_, integrals)) => format!("        {integrals} cannot hold all actions: {growth}"),
                None => format!("        unless it holds all actions, {growth}"),
            },
        ],
    }
}
