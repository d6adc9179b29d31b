//! Encounters of bodies that only the coupling holds together: where they come near to each other
//! it is not small.
//!
//! A body that moves along Q by −κ/|Q|, and is attracted by another one with κ', meets it within
//! the radius R = |Q| (κ'/3κ)^⅓: with κ = G m M and κ' = G m m' the radius of Hill of m'. Steps are
//! to see the other one from some of these on, but from |Q|/2 at most: what is as heavy as a centre
//! is no planet.

use super::attractions::{Attractions, Place};
use super::hierarchy::{Cluster, Hierarchy};
use holonome_model::graph::op::Binary;
use holonome_model::graph::{Graph, Node};

/// Number of these radii from which on there is an encounter (as Lu, Hernandez, Rein 2024).
pub const RADII: f64 = 4.0;

/// Largest part of |Q| from which on there is one.
pub const LARGEST: f64 = 0.5;

/// Two bodies, or a fixed centre and a body, that may meet.
pub struct Encounter {
    pub between: [Place; 2],
    /// Motions of Kepler that the encounter disturbs.
    pub motions: Vec<usize>,
}

/// Encounters of a hierarchy, and the squares of their radii over |Q|, a function of parameters for
/// every motion of each.
pub fn encounters(
    g: &mut Graph,
    found: &Attractions,
    hierarchy: &Hierarchy,
) -> (Vec<Encounter>, Vec<Node>) {
    let (mut encounters, mut radii) = (Vec::new(), Vec::new());
    let strengths: Vec<Node> = hierarchy
        .pairs
        .iter()
        .map(|pair| {
            let strengths = pair.attractions.iter().map(|&k| found.list[k].strength);
            g.sum(strengths.collect::<Vec<_>>())
        })
        .collect();
    for attraction in &found.list {
        let [a, b] = attraction.between;
        let sides = [(a, b), (b, a)];
        if sides.iter().any(|&(centre, body)| is_motion(hierarchy, centre, body)) {
            continue;
        }
        let motions: Vec<usize> =
            sides.iter().filter_map(|&(body, other)| motion(hierarchy, body, other)).collect();
        if motions.is_empty() {
            continue;
        }
        radii.extend(motions.iter().map(|&k| square(g, attraction.strength, strengths[k])));
        encounters.push(Encounter { between: attraction.between, motions });
    }
    (encounters, radii)
}

/// Square of the radius over |Q|, for κ' and κ; 0 if they repel each other.
fn square(g: &mut Graph, other: Node, own: Node) -> Node {
    let [zero, three, power, radii, largest] =
        [0.0, 3.0, 2.0 / 3.0, RADII * RADII, LARGEST * LARGEST].map(|number| g.constant(number));
    let own = g.mul(three, own);
    let ratio = g.div(other, own);
    let attracts = g.binary(Binary::Less, zero, ratio);
    let ratio = g.select(attracts, ratio, zero);
    let power = g.pow(ratio, power);
    let square = g.mul(radii, power);
    let less = g.binary(Binary::Less, square, largest);
    g.select(less, square, largest)
}

/// True if the place of a body from another place is the Q of a motion.
fn is_motion(hierarchy: &Hierarchy, centre: Place, body: Place) -> bool {
    let is = |cluster: &Cluster, place: Place| match place {
        Place::Centre(centre) => cluster.centre == Some(centre),
        Place::Body(_) => cluster.places[..] == [place],
    };
    hierarchy.groups.iter().any(|group| {
        is(&hierarchy.clusters[group.centre], centre)
            && group
                .pairs
                .iter()
                .any(|&k| is(&hierarchy.clusters[hierarchy.pairs[k].parts[1]], body))
    })
}

/// Motion in which a body turns about what holds the other one, or about something else: that of the
/// largest part of the hierarchy that it stands for and that has the other one not in it.
fn motion(hierarchy: &Hierarchy, body: Place, other: Place) -> Option<usize> {
    let Place::Body(_) = body else { return None };
    let mut cluster = hierarchy.clusters.iter().position(|known| known.places[..] == [body])?;
    loop {
        let moves = |&k: &usize| hierarchy.pairs[k].parts[1] == cluster;
        let of_groups = hierarchy.groups.iter().flat_map(|group| group.pairs.iter().copied());
        if let Some(pair) = of_groups.into_iter().find(moves) {
            return Some(pair);
        }
        let group = hierarchy.groups.iter().find(|group| group.centre == cluster)?;
        if hierarchy.clusters[group.whole].places.contains(&other) {
            return None;
        }
        cluster = group.whole;
    }
}
