//! Hierarchy of the bodies that attract each other: pairs of bodies, of pairs, and of fixed centres.
//!
//! Of all parts, the two join first that turn about each other the fastest, as seen from the start:
//! a moon joins its planet, and then both the star with the planets within. The hierarchy decides
//! how small the coupling is, and nothing else.
//!
//! In democratic coordinates the parts that turn about one body, or about one pair, are a group: each
//! of them moves about the centre alone, not about what is within its orbit.

use super::attractions::{Attractions, Place};
use holonome_integrate::method::KeplerCoordinates;
use holonome_model::elaborate::model::Model;
use std::collections::BTreeMap;

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
    /// Attractions between them.
    pub attractions: Vec<usize>,
    /// True if neither is a pair, or the first one is a fixed centre with other pairs.
    pub is_of_leaves: bool,
    /// Its orbit at the start.
    pub orbit: Orbit,
}

/// A centre and the clusters that turn about it, in coordinates from it.
pub struct Group {
    pub centre: usize,
    /// Their pairs with the centre.
    pub pairs: Vec<usize>,
    /// Number of the cluster that all make.
    pub whole: usize,
}

impl Group {
    /// Group of one pair.
    fn alone(pair: usize, centre: usize, whole: usize) -> Group {
        Group { centre, pairs: vec![pair], whole }
    }
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
    /// Groups of the pairs, each after those that make its parts; of one pair in Jacobi coordinates.
    pub groups: Vec<Group>,
    /// Clusters that are in no pair and move.
    pub free: Vec<usize>,
    /// Places of the fixed centres at the start.
    pub centres: Vec<Vec<f64>>,
    /// Numbers of the clusters at the start.
    pub starts: Vec<Start>,
}

/// Numbers of a cluster at the start.
pub struct Start {
    /// 1/M, 0 if it is fixed.
    pub inverse_mass: f64,
    pub place: Vec<f64>,
    velocity: Vec<f64>,
}

impl Hierarchy {
    /// Hierarchy of the bodies of `found`, from 1/m of all coordinates and κ of all attractions.
    pub fn new(
        found: &Attractions,
        (masses, strengths): (&[f64], &[f64]),
        model: &Model,
        coordinates: KeplerCoordinates,
    ) -> Hierarchy {
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
        let mut links = Links::new(found, strengths, (&clusters, &starts));
        while let Some(([first, second], orbit)) = links.tightest() {
            let is_of_leaves = second < leaves && (first < leaves || clusters[first].is_fixed);
            let (parts, whole) = ([first, second], clusters.len());
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
            let attractions = links.join(parts, whole, strengths, (&clusters, &starts));
            pairs.push(Pair { parts, attractions, is_of_leaves, orbit });
            open.retain(|part| !parts.contains(part));
            open.push(whole);
        }
        let free = open.into_iter().filter(|&k| !clusters[k].is_fixed).collect();
        let centres = found.centres.iter().map(|centre| centre.values.clone()).collect();
        let (pairs, groups) = match coordinates {
            KeplerCoordinates::Jacobi => {
                let alone = |(k, pair): (usize, &Pair)| Group::alone(k, pair.parts[0], leaves + k);
                let groups = pairs.iter().enumerate().map(alone).collect();
                (pairs, groups)
            }
            KeplerCoordinates::Democratic => {
                about_centres(pairs, leaves, found, strengths, (&clusters, &starts))
            }
        };
        Hierarchy { clusters, pairs, groups, free, centres, starts }
    }

    /// Number of the clusters that are no pair; these are the first ones.
    pub fn leaves(&self) -> usize {
        self.clusters.len() - self.pairs.len()
    }

    /// True if the centre of a group moves by itself, not with the only part that turns about it.
    pub fn recoils(&self, group: &Group) -> bool {
        group.pairs.len() > 1 && !self.clusters[group.centre].is_fixed
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

/// The pairs, and what turns about one centre in a group: the second part of a pair about a whole
/// joins the group that this is, if its centre is heavier and attracts it.
fn about_centres(
    pairs: Vec<Pair>,
    leaves: usize,
    found: &Attractions,
    strengths: &[f64],
    (clusters, starts): (&[Cluster], &[Start]),
) -> (Vec<Pair>, Vec<Group>) {
    let (mut own, mut groups): (Vec<Pair>, Vec<Group>) = Default::default();
    for (k, pair) in pairs.into_iter().enumerate() {
        let ([first, second], whole) = (pair.parts, leaves + k);
        let group = groups.iter_mut().find(|group| group.whole == first);
        let about_centre = |group: &Group| {
            let parts = [group.centre, second];
            let [centre, moves] = parts.map(|part| &starts[part]);
            let heavier =
                !clusters[group.centre].is_fixed && centre.inverse_mass <= moves.inverse_mass;
            let between = |k: &usize| {
                let [a, b] = found.list[*k].between;
                let lie = |parts: [Place; 2]| {
                    clusters[group.centre].places.contains(&parts[0])
                        && clusters[second].places.contains(&parts[1])
                };
                lie([a, b]) || lie([b, a])
            };
            let attractions: Vec<usize> = (0..found.list.len()).filter(between).collect();
            let strength: f64 = attractions.iter().map(|&k| strengths[k]).sum();
            let orbit = (heavier && strength > 0.0).then(|| orbit(centre, moves, strength));
            let is_of_leaves = parts.iter().all(|&part| part < leaves);
            orbit.flatten().map(|(orbit, _)| Pair { parts, attractions, is_of_leaves, orbit })
        };
        match group.and_then(|group| Some((about_centre(group)?, group))) {
            Some((pair, group)) => {
                group.pairs.push(k);
                group.whole = whole;
                own.push(pair);
            }
            None => {
                groups.push(Group::alone(k, pair.parts[0], whole));
                own.push(pair);
            }
        }
    }
    groups.sort_by_key(|group| group.whole);
    (own, groups)
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

/// What is between two clusters.
struct Link {
    attractions: Vec<usize>,
    /// If they attract each other: the heavier one and the lighter one, and its orbit. Bound ones
    /// rank before others, and fast ones before slow ones.
    candidate: Option<((bool, f64), [usize; 2], Orbit)>,
}

impl Link {
    fn new(
        [a, b]: [usize; 2],
        attractions: Vec<usize>,
        strengths: &[f64],
        (clusters, starts): (&[Cluster], &[Start]),
    ) -> Link {
        let strength: f64 = attractions.iter().map(|&k| strengths[k]).sum();
        let parts = if starts[a].inverse_mass <= starts[b].inverse_mass { [a, b] } else { [b, a] };
        let [first, second] = parts.map(|part| &starts[part]);
        let moves = strength > 0.0 && !(clusters[a].is_fixed && clusters[b].is_fixed);
        let candidate = moves.then(|| orbit(first, second, strength)).flatten();
        let candidate =
            candidate.map(|(orbit, rate)| ((orbit.period.is_some(), rate), parts, orbit));
        Link { attractions, candidate }
    }
}

/// Links of the clusters that are in no pair, by their numbers in order.
struct Links(BTreeMap<[usize; 2], Link>);

impl Links {
    /// Links of the fixed centres, which come first, and the bodies.
    fn new(found: &Attractions, strengths: &[f64], at: (&[Cluster], &[Start])) -> Links {
        let number = |place: Place| match place {
            Place::Centre(centre) => centre,
            Place::Body(body) => found.centres.len() + body,
        };
        let mut between: BTreeMap<[usize; 2], Vec<usize>> = BTreeMap::new();
        for (k, attraction) in found.list.iter().enumerate() {
            let mut pair = attraction.between.map(number);
            pair.sort_unstable();
            between.entry(pair).or_default().push(k);
        }
        let link = |(pair, attractions)| (pair, Link::new(pair, attractions, strengths, at));
        Links(between.into_iter().map(link).collect())
    }

    /// The two clusters that turn about each other the fastest, and their orbit; `None` if no two
    /// attract each other.
    fn tightest(&self) -> Option<([usize; 2], Orbit)> {
        let (mut best, mut highest) = (None, (false, 0.0));
        for &(rank, parts, orbit) in self.0.values().filter_map(|link| link.candidate.as_ref()) {
            if rank > highest {
                (best, highest) = (Some((parts, orbit)), rank);
            }
        }
        best
    }

    /// Put the `whole` in the place of its parts; returns the attractions between these.
    fn join(
        &mut self,
        parts: [usize; 2],
        whole: usize,
        strengths: &[f64],
        at: (&[Cluster], &[Start]),
    ) -> Vec<usize> {
        let (mut within, mut others): (Vec<usize>, BTreeMap<usize, Vec<usize>>) =
            Default::default();
        let touched: Vec<[usize; 2]> =
            self.0.keys().filter(|pair| pair.iter().any(|k| parts.contains(k))).copied().collect();
        for pair in touched {
            let attractions = self.0.remove(&pair).map_or(Vec::new(), |link| link.attractions);
            match pair.iter().find(|k| !parts.contains(k)) {
                Some(&other) => others.entry(other).or_default().extend(attractions),
                None => within = attractions,
            }
        }
        for (other, attractions) in others {
            let pair = [other, whole];
            self.0.insert(pair, Link::new(pair, attractions, strengths, at));
        }
        within
    }
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
