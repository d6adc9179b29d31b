//! Motions of Kepler as a user reads them.

use super::super::functions::Functions;
use super::super::nodes::Nodes;
use super::super::recorder::{FsalMode, Given, record};
use super::attractions::Place;
use super::hierarchy::{Cluster, Orbit};
use super::{Kepler, Pair};
use holonome_integrate::phase_space::PhaseSpace;
use holonome_model::derived::Derived;
use holonome_model::elaborate::model::Model;
use holonome_model::treatment::mechanics::Mechanics;
use holonome_model::treatment::structure::evaluate;
use serde::Serialize;
use std::sync::Arc;

/// A motion of Kepler at the start of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrbitRow {
    /// What moves.
    pub of: String,
    /// What it moves about.
    pub about: String,
    /// Its semi-major axis, negative if it is not bound.
    pub semi_major_axis: f64,
    /// Its eccentricity.
    pub eccentricity: f64,
    /// Its period; `None` if it is not bound.
    pub period: Option<f64>,
    /// Force of the coupling as a part of that of the motion.
    pub coupling: f64,
}

/// Motions of Kepler of a model, in the order of its hierarchy; empty if it has none.
pub fn orbits(model: &Derived) -> Vec<OrbitRow> {
    let Ok(mechanics) = model.mechanics() else { return Vec::new() };
    if mechanics.degrees == 0 || !mechanics.constraints.is_empty() || !mechanics.rolling.is_empty()
    {
        return Vec::new();
    }
    Kepler::new(mechanics, model).map_or(Vec::new(), |kepler| rows(kepler, mechanics, model))
}

fn rows(kepler: Kepler, mechanics: &Mechanics, model: &Model) -> Vec<OrbitRow> {
    let n = mechanics.degrees;
    let mut functions = Functions::new(mechanics, model);
    functions.kepler = Some(kepler);
    let functions = Arc::new(functions);
    // Jacobi coordinates and the forces of the coupling, in place of a step.
    let given = Given { follows: false, fsal: FsalMode::Compute, guesses: false };
    let trace = record(Nodes::new(&functions), given, |space: &mut dyn PhaseSpace, t, _, x| {
        let y = space.split(x);
        let force = space.kick(t, &y);
        [&y[..n], &force].concat()
    });
    let nodes: Vec<_> = trace.result.iter().map(|&(node, _)| node).collect();
    let inputs = [&model.initial[..2 * n], &[model.t0, 0.0]].concat();
    let values = evaluate(&trace.symbols.graph, &nodes, model.t0, &inputs, &model.parameter_values);
    let Some(kepler) = &functions.kepler else { return Vec::new() };
    let names = model.component_names();
    let name = |part: usize| name(kepler, &names, part);
    let row = |pair: &Pair| {
        let at = &kepler.hierarchy.clusters[pair.parts[1]].components;
        let size = |shift: usize| at.iter().map(|&i| values[shift + i].powi(2)).sum::<f64>().sqrt();
        let Orbit { semi_major_axis, eccentricity, period, .. } = pair.orbit;
        OrbitRow {
            of: name(pair.parts[1]),
            about: name(pair.parts[0]),
            semi_major_axis,
            eccentricity,
            period,
            coupling: size(n) * size(0).powi(2) / pair.orbit.strength,
        }
    };
    kepler.hierarchy.pairs.iter().map(row).collect()
}

/// Number of bodies that a name lists.
const LISTED: usize = 4;

fn name(kepler: &Kepler, names: &[String], part: usize) -> String {
    let clusters = &kepler.hierarchy.clusters;
    let Cluster { centre, places, .. } = &clusters[part];
    if let Some(centre) = *centre {
        let place = &kepler.hierarchy.centres[centre];
        return match place.iter().all(|&c| c == 0.0) {
            true => "the origin".to_string(),
            false => {
                let place: Vec<String> = place.iter().map(f64::to_string).collect();
                format!("({})", place.join(", "))
            }
        };
    }
    let bodies = kepler.hierarchy.bodies(part);
    let named: Vec<String> = bodies.iter().map(|body| name_of_body(names, body)).collect();
    debug_assert!(places.iter().all(|place| matches!(place, Place::Body(_))));
    match &named[..] {
        [one] => one.clone(),
        [few @ .., last] if named.len() <= LISTED => format!("{} and {last}", few.join(", ")),
        many => format!("{} and {} others", many[0], many.len() - 1),
    }
}

/// q[2] for q[2].x, q[2].y, q[2].z; (x, y) for others.
fn name_of_body(names: &[String], body: &[usize]) -> String {
    let names: Vec<&str> = body.iter().map(|&i| names[i].as_str()).collect();
    let stems: Vec<Option<&str>> =
        names.iter().map(|name| name.rsplit_once('.').map(|(stem, _)| stem)).collect();
    match stems[0] {
        Some(stem) if stems.iter().all(|other| *other == Some(stem)) => stem.to_string(),
        _ => format!("({})", names.join(", ")),
    }
}
