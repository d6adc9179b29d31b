//! Hierarchy of the bodies that attract each other: pairs of bodies, of pairs, and of fixed centres.
//!
//! Of all parts, the two join first that turn about each other the fastest, as seen from the start:
//! a moon joins its planet, and then both the star with the planets within. The hierarchy decides
//! how small the coupling is, and nothing else.

use super::attractions::{Attractions, Place};
use holonome_model::elaborate::model::Model;

/// A body, a fixed centre, or a pair.
pub struct Cluster {
    /// Number of its coordinates.
    pub dimension: usize,
    /// Components of the body that stands for it; none if it is fixed.
    pub components: Vec<usize>,
    /// True for a fixed centre and all pairs with it.
    pub is_fixed: bool,
    /// Number of the fixed centre.
    pub centre: Option<usize>,
    /// Bodies and centres in it.
    pub places: Vec<Place>,
}

/// Two clusters, of which the second moves.
pub struct Pair {
    /// The heavier one first.
    pub parts: [usize; 2],
    /// Number of the cluster that they make.
    pub whole: usize,
    /// Attractions between them.
    pub attractions: Vec<usize>,
    /// True if neither is a pair, or the first one is a fixed centre with other pairs.
    pub is_of_leaves: bool,
    /// Its orbit at the start.
    pub orbit: Orbit,
}

/// Orbit at the start.
#[derive(Clone, Copy, Debug)]
pub struct Orbit {
    /// Semi-major axis, negative if it is not bound.
    pub semi_major_axis: f64,
    pub eccentricity: f64,
    /// Period; `None` if it is not bound.
    pub period: Option<f64>,
    /// κ
    pub strength: f64,
}

/// The hierarchy.
pub struct Hierarchy {
    /// Fixed centres, bodies, and then the pairs in their order.
    pub clusters: Vec<Cluster>,
    pub pairs: Vec<Pair>,
    /// Clusters that are in no pair and move.
    pub free: Vec<usize>,
    /// Places of the fixed centres at the start.
    pub centres: Vec<Vec<f64>>,
}

/// Numbers of a cluster at the start.
struct Start {
    /// 1/M, 0 if it is fixed.
    inverse_mass: f64,
    place: Vec<f64>,
    velocity: Vec<f64>,
}

impl Hierarchy {
    /// Hierarchy of the bodies of `found`, from 1/m of all coordinates and κ of all attractions.
    pub fn new(found: &Attractions, masses: &[f64], strengths: &[f64], model: &Model) -> Hierarchy {
        let (x, n) = (&model.initial, masses.len());
        let (mut clusters, mut starts) = (Vec::new(), Vec::new());
        for (k, centre) in found.centres.iter().enumerate() {
            let dimension = centre.values.len();
            clusters.push(Cluster {
                dimension,
                components: Vec::new(),
                is_fixed: true,
                centre: Some(k),
                places: vec![Place::Centre(k)],
            });
            let (place, velocity) = (centre.values.clone(), vec![0.0; dimension]);
            starts.push(Start { inverse_mass: 0.0, place, velocity });
        }
        for (k, body) in found.bodies.iter().enumerate() {
            clusters.push(Cluster {
                dimension: body.len(),
                components: body.clone(),
                is_fixed: false,
                centre: None,
                places: vec![Place::Body(k)],
            });
            let inverse_mass = masses[body[0]];
            let place = body.iter().map(|&i| x[i]).collect();
            let velocity = body.iter().map(|&i| inverse_mass * x[n + i]).collect();
            starts.push(Start { inverse_mass, place, velocity });
        }
        let leaves = clusters.len();
        let (mut pairs, mut open): (Vec<Pair>, Vec<usize>) = (Vec::new(), (0..leaves).collect());
        while let Some((parts, attractions, orbit)) =
            tightest(found, strengths, (&clusters, &starts), &open)
        {
            let [first, second] = parts;
            let is_of_leaves = second < leaves && (first < leaves || clusters[first].is_fixed);
            let whole = clusters.len();
            let places = parts.iter().flat_map(|&part| clusters[part].places.clone()).collect();
            clusters.push(Cluster {
                dimension: clusters[first].dimension,
                components: clusters[first].components.clone(),
                is_fixed: clusters[first].is_fixed,
                centre: clusters[first].centre,
                places,
            });
            let start = joined(&starts[first], &starts[second]);
            starts.push(start);
            pairs.push(Pair { parts, whole, attractions, is_of_leaves, orbit });
            open.retain(|part| !parts.contains(part));
            open.push(whole);
        }
        let free = open.into_iter().filter(|&k| !clusters[k].is_fixed).collect();
        let centres = found.centres.iter().map(|centre| centre.values.clone()).collect();
        Hierarchy { clusters, pairs, free, centres }
    }

    /// Components of the bodies in a cluster.
    pub fn bodies(&self, cluster: usize) -> Vec<&[usize]> {
        let of = |place: &Place| {
            let leaf = self.clusters.iter().find(|known| known.places[..] == [*place]);
            leaf.filter(|leaf| !leaf.is_fixed).map(|leaf| &leaf.components[..])
        };
        self.clusters[cluster].places.iter().filter_map(of).collect()
    }
}

/// Numbers of two clusters together.
fn joined(first: &Start, second: &Start) -> Start {
    if first.inverse_mass == 0.0 {
        return Start {
            inverse_mass: 0.0,
            place: first.place.clone(),
            velocity: first.velocity.clone(),
        };
    }
    let (m, n) = (1.0 / first.inverse_mass, 1.0 / second.inverse_mass);
    let mean = |a: &[f64], b: &[f64]| -> Vec<f64> {
        a.iter().zip(b).map(|(a, b)| a + n / (m + n) * (b - a)).collect()
    };
    Start {
        inverse_mass: 1.0 / (m + n),
        place: mean(&first.place, &second.place),
        velocity: mean(&first.velocity, &second.velocity),
    }
}

/// The two open clusters that turn about each other the fastest, bound ones before others; `None` if
/// no two attract each other.
fn tightest(
    found: &Attractions,
    strengths: &[f64],
    (clusters, starts): (&[Cluster], &[Start]),
    open: &[usize],
) -> Option<([usize; 2], Vec<usize>, Orbit)> {
    let (mut best, mut highest) = (None, (false, 0.0));
    for (k, &a) in open.iter().enumerate() {
        for &b in &open[k + 1..] {
            if clusters[a].is_fixed && clusters[b].is_fixed {
                continue;
            }
            let within = |cluster: usize, place: &Place| clusters[cluster].places.contains(place);
            let attractions: Vec<usize> = (0..found.list.len())
                .filter(|&k| {
                    let [r, s] = &found.list[k].between;
                    within(a, r) && within(b, s) || within(b, r) && within(a, s)
                })
                .collect();
            let strength: f64 = attractions.iter().map(|&k| strengths[k]).sum();
            if strength.is_nan() || strength <= 0.0 {
                continue;
            }
            // The lighter one turns about the heavier one.
            let parts =
                if starts[a].inverse_mass <= starts[b].inverse_mass { [a, b] } else { [b, a] };
            let [first, second] = parts.map(|part| &starts[part]);
            let Some((orbit, rate)) = orbit(first, second, strength) else { continue };
            let rank = (orbit.period.is_some(), rate);
            if rank > highest {
                (best, highest) = (Some((parts, attractions, orbit)), rank);
            }
        }
    }
    best
}

/// Orbit of the second cluster about the first one, and the square of its angular frequency: that of
/// a circle through the place if it is not bound. `None` if they meet.
fn orbit(first: &Start, second: &Start, strength: f64) -> Option<(Orbit, f64)> {
    let k = strength * (first.inverse_mass + second.inverse_mass);
    let difference =
        |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| b - a).collect() };
    let (q, v) =
        (difference(&first.place, &second.place), difference(&first.velocity, &second.velocity));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (r, square) = (dot(&q, &q).sqrt(), dot(&v, &v));
    let semi_major_axis = 1.0 / (2.0 / r - square / k);
    let along = dot(&q, &v);
    // |v × L/k − q/r|² in any number of dimensions.
    let angular = (r * r * square - along * along).max(0.0);
    let eccentricity = (1.0 - angular / (k * semi_major_axis)).max(0.0).sqrt();
    let bound = semi_major_axis.is_finite() && semi_major_axis > 0.0;
    let size = if bound { semi_major_axis } else { r };
    let rate = k / (size * size * size);
    let period = bound.then(|| std::f64::consts::TAU / rate.sqrt());
    (rate.is_finite() && rate > 0.0)
        .then_some((Orbit { semi_major_axis, eccentricity, period, strength }, rate))
}
