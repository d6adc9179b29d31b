//! Motions of Kepler in H = Σ p²/2m + V(q, t), found in its formulas: V = −Σ κ/|r_i − r_j| − Σ κ/|r_i −
//! c| + …, whose bodies form a [hierarchy](hierarchy) of pairs.
//!
//! In the Jacobi coordinates of the hierarchy the kinetic energy is a sum again, and
//!
//! H = Σ_k (P_k²/2μ_k − κ_k/|Q_k|) + Σ P²/2M + (V(q, t) + Σ_k κ_k/|Q_k|),
//!
//! with the vectors Q_k from one part of a pair to the other and the centres of what attracts no
//! other. The last bracket is the coupling. Terms of V that are a motion of Kepler by themselves are
//! left out of it, so that they do not cancel in its formulas.
//!
//! In democratic coordinates a [group](hierarchy::Group) has more pairs than one. Then the μ_k are the
//! masses of the parts that move about its centre of the mass m, κ_k is that of the two alone, and
//! H has a recoil |Σ P_k|²/2m of each group beside.

mod attractions;
mod encounters;
mod hierarchy;
mod orbit;
mod report;

use super::flows::constant_masses;
use super::formula_space::FormulaSpace;
use super::summands::summands;
use crate::kernels::Formula;
use attractions::{Attractions, Centre, Place};
use encounters::{Encounter, encounters};
use hierarchy::{Cluster, Group, Hierarchy, Pair};
use holonome_integrate::method::KeplerCoordinates;
use holonome_integrate::phase_space::{PhaseSpace, Value};
use holonome_model::elaborate::model::Model;
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::treatment::mechanics::Mechanics;
use holonome_model::treatment::structure::{ambient_points, evaluate};
use orbit::Motion;
pub use report::{OrbitRow, orbits};
use std::sync::OnceLock;

/// Motions of Kepler, and what couples them.
pub struct Kepler {
    hierarchy: Hierarchy,
    /// Coordinates that belong to no body.
    others: Vec<usize>,
    /// For every pair the share of the second part in the mass of its group, 1/μ and κ; for every
    /// cluster that moves freely 1/M; 1/m of the other coordinates; the fixed centres; 1/m of the
    /// centres of groups that recoil; squares of radii of encounters.
    constants: Formula,
    /// Derivatives of V less the terms that are a motion of Kepler, less the forces beside H that do
    /// not act apart: the nodes, and their formula once a step asks for it.
    slopes: (Graph, Vec<Node>),
    coupling: OnceLock<Formula>,
    /// Pairs whose term is left out of V.
    exact: Vec<bool>,
    /// True for clusters on which no force acts from outside.
    isolated: Vec<bool>,
    /// Encounters of bodies that the coupling holds together.
    encounters: Vec<Encounter>,
    /// True if the recoil and the kick commute.
    pub commutes: bool,
}

/// Values of the constants.
struct Constants {
    /// Share of the second part of a pair in the mass of its group.
    share: Vec<Value>,
    inverse_mass: Vec<Value>,
    strength: Vec<Value>,
    /// 1/M of the clusters that move freely, and 1/m of the other coordinates.
    free: Vec<Value>,
    others: Vec<Value>,
    centres: Vec<Vec<Value>>,
    /// 1/m of the centres of groups that recoil.
    recoils: Vec<Value>,
    /// Squares of the radii of encounters over |Q|, one for every motion of each.
    radii: Vec<Value>,
}

impl Kepler {
    /// Motions of Kepler of `mechanics`.
    ///
    /// # Errors
    /// If H has another form, or nothing in it moves like that.
    pub fn new(
        mechanics: &Mechanics,
        model: &Model,
        coordinates: KeplerCoordinates,
    ) -> Result<Kepler, String> {
        let n = mechanics.degrees;
        let (mut g, masses) = constant_masses(mechanics, model).ok_or(
            "there are no motions of Kepler: the kinetic energy is no Σ p²/2m with constant masses",
        )?;
        let hamiltonian = mechanics.hamiltonian.ok_or("there is no Hamiltonian")?;
        let states = |g: &Graph, node: Node| -> Vec<usize> {
            let input = |node| match g.expression(node) {
                Expression::Input(Input::State(k)) => Some(k as usize),
                _ => None,
            };
            let mut states: Vec<usize> =
                g.reachable(&[node]).into_iter().filter_map(input).collect();
            states.sort_unstable();
            states
        };
        let terms = summands(&mut g, hamiltonian, |g, node| !states(g, node).is_empty());
        let potential: Vec<(Node, Vec<usize>)> = terms
            .into_iter()
            .map(|term| (term, states(&g, term)))
            .filter(|(_, reads)| reads.first().is_none_or(|&first| first < n))
            .collect();
        if let Some((_, reads)) = potential.iter().find(|(_, reads)| reads.iter().any(|&k| k >= n))
        {
            return Err(format!(
                "there are no motions of Kepler: H is no sum of T(p) and V(q), as a term has both {} and {}",
                model.component_names()[reads[0]],
                model.component_names()[reads[reads.len() - 1]]
            ));
        }
        let found = Attractions::new(&mut g, &potential, &masses, model);
        let at_start = |g: &Graph, nodes: &[Node]| {
            evaluate(g, nodes, model.t0, &model.initial, &model.parameter_values)
        };
        let hierarchy = Hierarchy::new(
            &found,
            (&at_start(&g, &masses), &at_start(&g, &found.strengths())),
            model,
            coordinates,
        );
        if hierarchy.pairs.is_empty() {
            return Err(
                "there are no motions of Kepler: no term of H is -k/|r - s| with a constant k > 0"
                    .into(),
            );
        }
        let exact: Vec<bool> = hierarchy.pairs.iter().map(|pair| is_exact(pair, &found)).collect();
        let left_out: Vec<usize> = hierarchy
            .pairs
            .iter()
            .zip(&exact)
            .filter(|&(_, &exact)| exact)
            .flat_map(|(pair, _)| pair.attractions.iter().map(|&k| found.list[k].term))
            .collect();
        let rest = (0..potential.len()).filter(|term| !left_out.contains(term));
        let rest = g.sum(rest.map(|term| potential[term].0).collect::<Vec<_>>());
        let mut coupling = vec![g.zero(); n];
        for (i, slope) in g.gradient(rest) {
            coupling[i as usize] = slope;
        }
        let forced = !mechanics.forces.drags && !mechanics.forces.rest.is_empty();
        let forces = Forces { graph: &g, slopes: &coupling, model };
        let isolated = match forced {
            true => vec![false; hierarchy.clusters.len()],
            false => forces.isolated(&hierarchy),
        };
        let recoils = hierarchy.groups.iter().any(|group| hierarchy.recoils(group));
        let commutes = !recoils || !forced && forces.commute(&hierarchy, &exact);
        if !mechanics.forces.drags {
            for (slope, &force) in coupling.iter_mut().zip(&mechanics.forces.rest) {
                *slope = g.sub(*slope, force);
            }
        }
        let others: Vec<usize> =
            (0..n).filter(|i| !found.bodies.iter().any(|body| body.contains(i))).collect();
        let (encounters, radii) = encounters(&mut g, &found, &hierarchy);
        let constants = [constants(&mut g, &found, &hierarchy, &masses, &others), radii].concat();
        Ok(Kepler {
            constants: Formula::unfused(&g, &constants),
            slopes: (g, coupling),
            coupling: OnceLock::new(),
            hierarchy,
            others,
            exact,
            isolated,
            encounters,
            commutes,
        })
    }

    /// State in the coordinates of the hierarchy, each in the place of the body that stands for the
    /// second part of its pair, or for a cluster that moves freely.
    pub fn split(&self, space: &mut dyn FormulaSpace, x: &[Value]) -> Vec<Value> {
        let (constants, n) = (self.constants(space, x), x.len() / 2);
        let mut y = x.to_vec();
        let mut places = self.places(&constants, x);
        for Group { centre, pairs, whole } in &self.hierarchy.groups {
            let plain = space as &mut dyn PhaseSpace;
            let first = places[*centre].clone();
            let mut middle = first.clone();
            for &k in pairs {
                let second = self.hierarchy.pairs[k].parts[1];
                let between = plain.difference(&places[second], &first);
                let at = &self.hierarchy.clusters[second].components;
                at.iter().zip(&between).for_each(|(&i, &q)| y[i] = q);
                if !self.hierarchy.clusters[*whole].is_fixed {
                    middle = plain.moved(&middle, constants.share[k], &between);
                }
            }
            places[*whole] = middle;
        }
        for &free in &self.hierarchy.free {
            let at = &self.hierarchy.clusters[free].components;
            at.iter().zip(&places[free]).for_each(|(&i, &q)| y[i] = q);
        }
        let p = self.gathered(space, &constants, &x[n..], false);
        y.splice(n.., p);
        y
    }

    /// State of the model from that in the coordinates of the hierarchy.
    pub fn joined(&self, space: &mut dyn FormulaSpace, y: &[Value]) -> Vec<Value> {
        let (constants, n) = (self.constants(space, y), y.len() / 2);
        let mut x = self.positions(space, &constants, y);
        // Momenta: P is that of the second part beyond its share in the whole.
        x.extend(&y[n..]);
        let clusters = &self.hierarchy.clusters;
        for Group { centre, pairs, .. } in self.hierarchy.groups.iter().rev() {
            let first = &clusters[*centre];
            if first.is_fixed {
                continue;
            }
            for (component, &i) in first.components.iter().enumerate() {
                let whole = x[n + i];
                for &k in pairs {
                    let j = n + self.components(k)[component];
                    let plain = space as &mut dyn PhaseSpace;
                    x[j] = plain.moved(&[x[j]], constants.share[k], &[whole])[0];
                    x[n + i] = plain.difference(&[x[n + i]], &[x[j]])[0];
                }
            }
        }
        x
    }

    /// Motions of Kepler for the time `tau`.
    pub fn flow(&self, space: &mut dyn FormulaSpace, tau: Value, y: &[Value]) -> Vec<Value> {
        let (constants, n) = (self.constants(space, y), y.len() / 2);
        let mut moved = y.to_vec();
        let motions: Vec<Motion> = (0..self.hierarchy.pairs.len())
            .map(|k| Motion {
                components: self.components(k),
                inverse_mass: constants.inverse_mass[k],
                strength: constants.strength[k],
            })
            .collect();
        orbit::orbits(space, tau, y, &motions, &mut moved);
        let free =
            self.hierarchy.free.iter().map(|&free| &self.hierarchy.clusters[free].components);
        let free = free.zip(&constants.free).flat_map(|(at, &w)| at.iter().map(move |&i| (i, w)));
        let others = self.others.iter().copied().zip(constants.others.iter().copied());
        for (i, inverse_mass) in free.chain(others) {
            let velocity = space.product(inverse_mass, y[n + i]);
            moved[i] = (space as &mut dyn PhaseSpace).moved(&[y[i]], tau, &[velocity])[0];
        }
        moved
    }

    /// Recoil of the centres for the time `tau`: P_k of a group shift its places alike.
    pub fn recoil(&self, space: &mut dyn FormulaSpace, tau: Value, y: &[Value]) -> Vec<Value> {
        let (constants, n) = (self.constants(space, y), y.len() / 2);
        let mut moved = y.to_vec();
        let groups = self.hierarchy.groups.iter().filter(|group| self.hierarchy.recoils(group));
        for (Group { centre, pairs, .. }, &inverse_mass) in groups.zip(&constants.recoils) {
            for component in 0..self.hierarchy.clusters[*centre].dimension {
                let places = pairs.iter().map(|&k| self.components(k)[component]);
                let momentum = places
                    .clone()
                    .map(|i| y[n + i])
                    .reduce(|sum, p| space.sum(sum, p))
                    .expect("a group that recoils has pairs");
                let velocity = space.product(inverse_mass, momentum);
                for i in places {
                    moved[i] = (space as &mut dyn PhaseSpace).moved(&[y[i]], tau, &[velocity])[0];
                }
            }
        }
        moved
    }

    /// Rates of the momenta by the coupling.
    pub fn kick(&self, space: &mut dyn FormulaSpace, t: Value, y: &[Value]) -> Vec<Value> {
        let (constants, n) = (self.constants(space, y), y.len() / 2);
        let x = [self.positions(space, &constants, y), y[n..].to_vec()].concat();
        let (graph, slopes) = &self.slopes;
        let coupling = self.coupling.get_or_init(|| Formula::unfused(graph, slopes));
        let slope = space.at(coupling, t, &x);
        let force: Vec<Value> = slope
            .into_iter()
            .map(|slope| (space as &mut dyn PhaseSpace).scaled(-1.0, slope))
            .collect();
        let mut force = self.gathered(space, &constants, &force, true);
        for k in (0..self.hierarchy.pairs.len()).filter(|&k| !self.exact[k]) {
            let at = self.components(k);
            let q: Vec<Value> = at.iter().map(|&i| y[i]).collect();
            let over_cube = orbit::over_cube(space, constants.strength[k], &q);
            for (&i, &q) in at.iter().zip(&q) {
                force[i] = (space as &mut dyn PhaseSpace).moved(&[force[i]], over_cube, &[q])[0];
            }
        }
        force
    }

    /// True if bodies may meet that the coupling holds together.
    pub fn may_meet(&self) -> bool {
        !self.encounters.is_empty()
    }

    /// Largest square of the radius of an encounter over the distance: at least 1 within one.
    pub fn nearness(&self, space: &mut dyn FormulaSpace, y: &[Value]) -> Value {
        let constants = self.constants(space, y);
        let x = self.positions(space, &constants, y);
        let place = |place: Place| match place {
            Place::Centre(centre) => constants.centres[centre].clone(),
            Place::Body(_) => self.leaf(place).components.iter().map(|&i| x[i]).collect(),
        };
        let squares: Vec<Value> = (0..self.hierarchy.pairs.len())
            .map(|k| {
                let q: Vec<Value> = self.components(k).iter().map(|&i| y[i]).collect();
                (space as &mut dyn PhaseSpace).dot(&q, &q)
            })
            .collect();
        let mut radii = constants.radii.iter();
        let mut ratios = Vec::with_capacity(self.encounters.len());
        for Encounter { between, motions } in &self.encounters {
            let [a, b] = between.map(place);
            let plain = space as &mut dyn PhaseSpace;
            let way = plain.difference(&a, &b);
            let distance = plain.dot(&way, &way);
            let radii: Vec<Value> = motions
                .iter()
                .zip(radii.by_ref())
                .map(|(&k, &radius)| plain.product(radius, squares[k]))
                .collect();
            let radius = largest(space, radii);
            ratios.push(space.quotient(radius, distance));
        }
        largest(space, ratios)
    }

    /// Cluster that is this place alone.
    fn leaf(&self, place: Place) -> &Cluster {
        let clusters = &self.hierarchy.clusters;
        let leaf = clusters.iter().find(|known| known.places[..] == [place]);
        leaf.expect("every place is a cluster")
    }

    /// Components in which the place of the second part of a pair stands.
    fn components(&self, pair: usize) -> &[usize] {
        &self.hierarchy.clusters[self.hierarchy.pairs[pair].parts[1]].components
    }

    /// Positions of the model from those in the coordinates of the hierarchy.
    fn positions(
        &self,
        space: &mut dyn FormulaSpace,
        constants: &Constants,
        y: &[Value],
    ) -> Vec<Value> {
        let n = y.len() / 2;
        let mut x = y[..n].to_vec();
        for Group { centre, pairs, .. } in self.hierarchy.groups.iter().rev() {
            let first = &self.hierarchy.clusters[*centre];
            let plain = space as &mut dyn PhaseSpace;
            for component in 0..first.dimension {
                let place = match first.centre {
                    Some(centre) => constants.centres[centre][component],
                    None => {
                        let i = first.components[component];
                        for &k in pairs {
                            let back =
                                plain.product(constants.share[k], x[self.components(k)[component]]);
                            x[i] = plain.difference(&[x[i]], &[back])[0];
                        }
                        x[i]
                    }
                };
                for &k in pairs {
                    let j = self.components(k)[component];
                    x[j] = plain.sum(place, x[j]);
                }
            }
        }
        x
    }

    /// Covectors in the coordinates of the hierarchy: momenta, or forces, whose sum over an isolated
    /// cluster is none.
    fn gathered(
        &self,
        space: &mut dyn FormulaSpace,
        constants: &Constants,
        covector: &[Value],
        forces: bool,
    ) -> Vec<Value> {
        let mut gathered = covector.to_vec();
        for Group { centre, pairs, whole } in &self.hierarchy.groups {
            let first = &self.hierarchy.clusters[*centre];
            if first.is_fixed {
                continue;
            }
            let is_isolated = forces && self.isolated[*whole];
            for (component, &i) in first.components.iter().enumerate() {
                let plain = space as &mut dyn PhaseSpace;
                if is_isolated {
                    gathered[i] = plain.constant(0.0);
                    continue;
                }
                for &k in pairs {
                    gathered[i] = plain.sum(gathered[i], gathered[self.components(k)[component]]);
                }
                for &k in pairs {
                    let j = self.components(k)[component];
                    let share = plain.product(constants.share[k], gathered[i]);
                    gathered[j] = plain.difference(&[gathered[j]], &[share])[0];
                }
            }
        }
        gathered
    }

    /// Places of the bodies and the fixed centres; none yet of what they make.
    fn places(&self, constants: &Constants, x: &[Value]) -> Vec<Vec<Value>> {
        let leaves = self.hierarchy.leaves();
        let place = |cluster: &Cluster| match cluster.centre {
            Some(centre) => constants.centres[centre].clone(),
            None => cluster.components.iter().map(|&i| x[i]).collect(),
        };
        let mut places: Vec<_> = self.hierarchy.clusters[..leaves].iter().map(place).collect();
        places.resize(self.hierarchy.clusters.len(), Vec::new());
        places
    }

    fn constants(&self, space: &mut dyn FormulaSpace, x: &[Value]) -> Constants {
        let t = space.constant(0.0);
        let mut values = space.at(&self.constants, t, x).into_iter();
        let pairs = self.hierarchy.pairs.len();
        let [mut share, mut inverse_mass, mut strength] =
            [(); 3].map(|()| Vec::with_capacity(pairs));
        for _ in 0..pairs {
            for list in [&mut share, &mut inverse_mass, &mut strength] {
                list.extend(values.next());
            }
        }
        let free = values.by_ref().take(self.hierarchy.free.len()).collect();
        let others = values.by_ref().take(self.others.len()).collect();
        // A cluster about a fixed centre is no other centre.
        let leaves = &self.hierarchy.clusters[..self.hierarchy.leaves()];
        let dimensions = leaves.iter().filter(|cluster| cluster.centre.is_some());
        let centres =
            dimensions.map(|cluster| values.by_ref().take(cluster.dimension).collect()).collect();
        let recoiling = self.hierarchy.groups.iter().filter(|group| self.hierarchy.recoils(group));
        let recoils = values.by_ref().take(recoiling.count()).collect();
        let radii = values.collect();
        Constants { share, inverse_mass, strength, free, others, centres, recoils, radii }
    }
}

/// Largest of values that are not negative, by halves: no value waits for all others.
fn largest(space: &mut dyn FormulaSpace, mut values: Vec<Value>) -> Value {
    while values.len() > 1 {
        let half = values.len().div_ceil(2);
        let rest = values.split_off(half);
        for (value, other) in values.iter_mut().zip(rest) {
            *value = space.larger(*value, other);
        }
    }
    values.pop().unwrap_or_else(|| space.constant(0.0))
}

/// True if the motion of Kepler of a pair is the only term between its parts, with the same formula:
/// that of two bodies, or of one and the origin.
fn is_exact(pair: &Pair, found: &Attractions) -> bool {
    let [only] = pair.attractions[..] else { return false };
    let at_origin = |place: &Place| match *place {
        Place::Body(_) => true,
        Place::Centre(centre) => found.centres[centre].values.iter().all(|&v| v == 0.0),
    };
    pair.is_of_leaves && found.list[only].between.iter().all(at_origin)
}

/// See [`Kepler::constants`].
fn constants(
    g: &mut Graph,
    found: &Attractions,
    hierarchy: &Hierarchy,
    masses: &[Node],
    others: &[usize],
) -> Vec<Node> {
    let one = g.one();
    // Masses of the clusters; a fixed centre has none.
    let mut mass: Vec<Option<Node>> = Vec::new();
    for cluster in &hierarchy.clusters[..hierarchy.leaves()] {
        mass.push((!cluster.is_fixed).then(|| g.div(one, masses[cluster.components[0]])));
    }
    mass.resize(hierarchy.clusters.len(), None);
    let (mut of_pairs, mut recoils) = (vec![[one; 3]; hierarchy.pairs.len()], Vec::new());
    for group in &hierarchy.groups {
        let second = |k: usize| hierarchy.pairs[k].parts[1];
        let of_second =
            |mass: &[Option<Node>], k| mass[second(k)].expect("the second part of a pair moves");
        let first = mass[group.centre];
        let of_first = first.map(|first| g.div(one, first));
        let whole = first.map(|first| {
            let seconds: Vec<Node> = group.pairs.iter().map(|&k| of_second(&mass, k)).collect();
            seconds.into_iter().fold(first, |sum, second| g.add(sum, second))
        });
        mass[group.whole] = whole;
        let recoils_here = hierarchy.recoils(group);
        for &k in &group.pairs {
            let attractions = &hierarchy.pairs[k].attractions;
            let strengths: Vec<Node> =
                attractions.iter().map(|&k| found.list[k].strength).collect();
            let second = of_second(&mass, k);
            let inverse = g.div(one, second);
            let inverse_mass = match of_first.filter(|_| !recoils_here) {
                Some(of_first) => g.add(of_first, inverse),
                None => inverse,
            };
            let share = whole.map_or(g.zero(), |whole| g.div(second, whole));
            of_pairs[k] = [share, inverse_mass, g.sum(strengths)];
        }
        recoils.extend(of_first.filter(|_| recoils_here));
    }
    let mut nodes = of_pairs.concat();
    for &free in &hierarchy.free {
        let mass = mass[free].expect("a cluster that moves has a mass");
        nodes.push(g.div(one, mass));
    }
    nodes.extend(others.iter().map(|&i| masses[i]));
    for Centre { place, .. } in &found.centres {
        nodes.extend(place);
    }
    nodes.extend(recoils);
    nodes
}

/// Part of the forces on the bodies of a cluster by which their sum may differ from 0 at random
/// points, where it vanishes in formulas.
const ROUNDED: f64 = 1e-12;

/// Forces of the coupling, without those beside H.
struct Forces<'a> {
    graph: &'a Graph,
    slopes: &'a [Node],
    model: &'a Model,
}

impl Forces<'_> {
    /// True if the forces on these bodies add up to none.
    fn cancel(&self, bodies: &[&[usize]]) -> bool {
        let values = &self.model.parameter_values;
        [0.0, 0.3, 1.7].into_iter().zip(ambient_points(self.model, 3, 0x1501)).all(|(t, x)| {
            let slopes = evaluate(self.graph, self.slopes, t, &x, values);
            (0..bodies.first().map_or(0, |body| body.len())).all(|component| {
                let slopes = bodies.iter().map(|body| slopes[body[component]]);
                let size: f64 = slopes.clone().map(f64::abs).sum();
                slopes.sum::<f64>().abs() <= ROUNDED * size
            })
        })
    }

    /// Clusters on which none acts from outside.
    fn isolated(&self, hierarchy: &Hierarchy) -> Vec<bool> {
        let is_isolated =
            |cluster| hierarchy.free.contains(&cluster) && self.cancel(&hierarchy.bodies(cluster));
        (0..hierarchy.clusters.len()).map(is_isolated).collect()
    }

    /// True if a shift of all places of a group changes none.
    fn commute(&self, hierarchy: &Hierarchy, exact: &[bool]) -> bool {
        hierarchy.groups.iter().filter(|group| hierarchy.recoils(group)).all(|group| {
            let seconds = group.pairs.iter().map(|&k| hierarchy.pairs[k].parts[1]);
            let moving: Vec<&[usize]> = seconds.flat_map(|part| hierarchy.bodies(part)).collect();
            group.pairs.iter().all(|&k| exact[k])
                && self.cancel(&moving)
                && self.cancel(&hierarchy.bodies(group.whole))
        })
    }
}
