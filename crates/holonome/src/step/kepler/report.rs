//! Motions of Kepler as a user reads them.

use super::attractions::Place;
use super::hierarchy::{Cluster, Hierarchy, Orbit};
use super::{Kepler, Pair};
use holonome_integrate::method::KeplerCoordinates;
use holonome_model::derived::Derived;
use holonome_model::elaborate::model::Model;
use holonome_model::treatment::structure::evaluate;
use serde::Serialize;

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
    /// Acceleration by the coupling as a part of that of the motion.
    pub coupling: f64,
}

/// Motions of Kepler of a model, in the order of its hierarchy; empty if it has none.
pub fn orbits(model: &Derived) -> Vec<OrbitRow> {
    let Ok(mechanics) = model.mechanics() else { return Vec::new() };
    if mechanics.degrees == 0 || !mechanics.constraints.is_empty() || !mechanics.rolling.is_empty()
    {
        return Vec::new();
    }
    Kepler::new(mechanics, model, KeplerCoordinates::Jacobi)
        .map_or(Vec::new(), |kepler| rows(&kepler, model))
}

fn rows(kepler: &Kepler, model: &Model) -> Vec<OrbitRow> {
    let (graph, slopes) = &kepler.slopes;
    let slopes = evaluate(graph, slopes, model.t0, &model.initial, &model.parameter_values);
    let names = model.component_names();
    let name = |part: usize| name(kepler, &names, part);
    let Hierarchy { clusters, pairs, starts, .. } = &kepler.hierarchy;
    // Acceleration of a cluster by the coupling.
    let acceleration = |part: usize, component: usize| -> f64 {
        let bodies = kepler.hierarchy.bodies(part);
        let force: f64 = bodies.iter().map(|body| -slopes[body[component]]).sum();
        starts[part].inverse_mass * force
    };
    let row = |(pair, &exact): (&Pair, &bool)| {
        let [first, second] = pair.parts;
        let Orbit { semi_major_axis, eccentricity, period, strength } = pair.orbit;
        let k = strength * (starts[first].inverse_mass + starts[second].inverse_mass);
        let q: Vec<f64> =
            starts[first].place.iter().zip(&starts[second].place).map(|(a, b)| b - a).collect();
        let r = q.iter().map(|q| q * q).sum::<f64>().sqrt();
        let beside: f64 = (0..clusters[first].dimension)
            .map(|component| {
                let moved = acceleration(second, component) - acceleration(first, component);
                // The motion of Kepler is in the coupling if its term was not left out.
                moved + if exact { 0.0 } else { k * q[component] / r.powi(3) }
            })
            .map(|a| a * a)
            .sum();
        OrbitRow {
            of: name(second),
            about: name(first),
            semi_major_axis,
            eccentricity,
            period,
            coupling: beside.sqrt() * r * r / k,
        }
    };
    pairs.iter().zip(&kepler.exact).map(row).collect()
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
