//! Visible parts of a model: points, rods between them, rigid bodies with their joints.

mod arms;
mod drawn;
mod film;
mod joints;
mod lattices;
mod rods;
mod rotation;
mod spins;
mod springs;

use crate::kernels::StateVectors;
use crate::problem::Problem;
use arms::arms;
pub(super) use film::{motion, motions};
use holonome_figures::Body;
use holonome_model::elaborate::expression::{FOLLOWING, MOMENTUM};
use holonome_model::elaborate::model::{Model, Quantity, Role, Variable};
use holonome_model::elaborate::shape::Shape;
use joints::{Joint, joints};
use lattices::Lattice;
use rods::{Rod, Rods};
use rotation::Attitude;
use springs::Springs;

/// Maximum number of points of a picture.
const POINTS: usize = 20_000;

/// Maximum number of kinds of points that colours distinguish.
const KINDS: usize = 8;

/// Half the sides of a box that stands for a body of size 1.
const BOX: [f64; 3] = [0.62, 0.42, 0.8];

/// Distance between bodies without places of their own.
const APART: f64 = 2.8;

/// Place of the numbers of a point: an array, and the first of `count` numbers in its rows.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    array: String,
    first: usize,
    count: usize,
}

/// Position of a point.
#[derive(Clone, Debug, PartialEq)]
enum Position {
    /// Numbers in a row.
    Numbers(Place),
    /// Numbers of several arrays, one for each axis.
    Apart(Vec<Place>),
    /// A place that does not move.
    Fixed([f64; 3]),
    /// A point of a body, which moves with it.
    Of(usize, [f64; 3]),
}

/// A rigid body with its attitude.
#[derive(Clone, Debug, PartialEq)]
struct Rotated {
    place: Place,
    attitude: Attitude,
    body: Body,
}

/// Picture of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scene {
    dimension: usize,
    /// Points that move; those that are drawn as balls stand first.
    points: Vec<Position>,
    balls: usize,
    /// True for masses along a string: displacements, drawn beside each other.
    string: bool,
    /// For heights over a grid, the number of its columns.
    grid: Option<usize>,
    fixed: Vec<[f64; 3]>,
    sticks: Vec<[u32; 2]>,
    springs: Vec<[u32; 2]>,
    kinds: Vec<u8>,
    bodies: Vec<Rotated>,
    /// Spins, and their sites.
    spins: Vec<(Place, [f64; 3])>,
    /// Name of the view, where a model has several.
    view: String,
    note: String,
}

impl Scene {
    /// Pictures of a model: of a lattice one for each of its fields; none without positions.
    pub fn all(problem: &Problem) -> Vec<Scene> {
        match Scene::of(problem) {
            Some(scene) => vec![scene],
            None => lattices::lattices(&problem.model).into_iter().map(Scene::of_lattice).collect(),
        }
    }

    /// Picture of a model that is no lattice; `None` if it has no positions.
    pub fn of(problem: &Problem) -> Option<Scene> {
        let model = &problem.model;
        let positions: Vec<&Variable> =
            model.phase_variables().filter(|v| !matches!(v.role, Role::Momentum(_))).collect();
        let turning: Vec<(&Variable, Attitude)> =
            positions.iter().filter_map(|v| Some((*v, attitude(model, v)?))).collect();
        let is_turning =
            |v: &&&Variable| turning.iter().any(|(other, _)| std::ptr::eq(*other, **v));
        let in_space = |v: &&&Variable| matches!(v.family.shape, Shape::Vector(2 | 3));
        let vectors = positions.iter().filter(|v| !is_turning(v)).filter(in_space).copied();
        // Of a field's states only the first can be assumed to be positions, and none is beside
        // attitudes.
        let vectors: Vec<&Variable> = match (model.is_hamiltonian(), turning.is_empty()) {
            (true, _) => vectors.collect(),
            (false, true) => vectors.take(1).collect(),
            (false, false) => Vec::new(),
        };
        let mut scene = Scene::default();
        if !turning.is_empty() {
            let free = scene.take_bodies(model, &turning, &vectors);
            return scene.fits().then(|| scene.with_points(model, &free));
        }
        if let Some(spins) = positions.iter().find(|v| spins::are_spins(model, v)) {
            scene.take_spins(model, spins);
            return Some(scene);
        }
        let is_place = |v: &&Variable| !model.is_hamiltonian() || is_place(model, v);
        let seen: Vec<&Quantity> = model.observables.iter().filter(|q| is_seen(q)).collect();
        let (places, others): (Vec<&Variable>, Vec<&Variable>) =
            vectors.into_iter().partition(is_place);
        match (&places[..], &seen[..]) {
            ([_, ..], _) => scene.take_vectors(model, &places),
            ([], [_, ..]) => scene.take_observables(model, &seen),
            ([], []) if !others.is_empty() => {
                scene.take_vectors(model, &others);
                scene.note = format!("A point of the configuration space ({}).", names(&others));
            }
            ([], []) => return scene.take_scalars(model, &positions).then_some(scene),
        }
        scene.fits().then_some(scene)
    }

    /// Arrays and first components of the points that move and are drawn as balls.
    pub fn paths(&self) -> Vec<(String, usize)> {
        let path = |position: &Position| match position {
            Position::Numbers(place) if place.count > 1 => Some((place.array.clone(), place.first)),
            _ => None,
        };
        self.points[..self.balls].iter().filter_map(path).collect()
    }

    fn fits(&self) -> bool {
        self.points.len() + self.bodies.len() <= POINTS
    }

    /// Takes bodies at their places; returns the vectors that are none of these.
    fn take_bodies<'m>(
        &mut self,
        model: &Model,
        turning: &[(&'m Variable, Attitude)],
        vectors: &[&'m Variable],
    ) -> Vec<&'m Variable> {
        let mut free = vectors.to_vec();
        let (mut centres, mut notes) = (Vec::new(), Vec::new());
        for &(variable, attitude) in turning {
            let same = |v: &&Variable| {
                v.family.bounds == variable.family.bounds && v.family.shape == Shape::Vector(3)
            };
            let centre = free.iter().position(same).map(|k| free.remove(k));
            let width = variable.family.shape.len();
            for member in 0..variable.family.members() {
                let place = place(variable, member * width, width);
                let mut body = Body { half: BOX, ..Body::default() };
                match centre {
                    Some(centre) => {
                        body.at = Some(self.points.len() as u32);
                        self.points.push(Position::Numbers(self::place(centre, 3 * member, 3)));
                    }
                    None => body.place[0] = APART * self.bodies.len() as f64,
                }
                self.bodies.push(Rotated { place, attitude, body });
                centres
                    .push((variable.first + member * width, centre.map(|c| c.first + 3 * member)));
            }
            notes.push(match centre {
                Some(centre) => format!("{} at {}", variable.family.name, centre.family.name),
                None => variable.family.name.clone(),
            });
        }
        let joints = joints(model, &centres);
        self.size_bodies(model, &centres, &joints);
        for Joint { body, at } in &joints {
            if let Some(centre) = self.bodies[*body].body.at {
                self.sticks.push([centre, self.points.len() as u32]);
                self.points.push(Position::Of(*body, *at));
            }
        }
        self.dimension = 3;
        let what = if notes.len() == 1 { "attitude" } else { "attitudes" };
        self.note = format!("Boxes with the axes of the bodies: the {what} {}", notes.join(", "));
        let count = self.sticks.len();
        self.note.push_str(&match count {
            0 => ".".to_string(),
            1 => ", with one joint.".to_string(),
            _ => format!(", with {count} ends at joints."),
        });
        free
    }

    /// Sizes of bodies at places: they reach to their joints, or a part of the way to each other.
    fn size_bodies(&mut self, model: &Model, centres: &[(usize, Option<usize>)], joints: &[Joint]) {
        let at = |first: usize| &model.initial[first..first + 3];
        let places: Vec<&[f64]> = centres.iter().filter_map(|(_, first)| first.map(at)).collect();
        let spread = |axis: usize| {
            let all = places.iter().map(|x| x[axis]);
            all.clone().fold(f64::NEG_INFINITY, f64::max) - all.fold(f64::INFINITY, f64::min)
        };
        let extent = (0..3).map(spread).fold(0.0, f64::max);
        let size = if extent > 0.0 { extent / 4.0 / places.len() as f64 } else { 0.5 };
        for (k, rotated) in self.bodies.iter_mut().enumerate() {
            if rotated.body.at.is_none() {
                continue;
            }
            let reach = |axis: usize| {
                let own = joints.iter().filter(|joint| joint.body == k);
                own.map(|joint| joint.at[axis].abs()).fold(0.0, f64::max)
            };
            let reaches: [f64; 3] = std::array::from_fn(reach);
            let longest = reaches.iter().copied().fold(0.0, f64::max);
            rotated.body.half = match longest > 0.0 {
                true => reaches.map(|reach| (0.85 * reach).max(0.2 * longest)),
                false => BOX.map(|side| side * size),
            };
        }
    }

    /// The scene with further vectors as points.
    fn with_points(mut self, model: &Model, vectors: &[&Variable]) -> Scene {
        if vectors.is_empty() {
            return self;
        }
        let mut points = Scene::default();
        points.take_vectors(model, vectors);
        // Balls stand first.
        let by = points.points.len() as u32;
        let moved = |at: u32| at + by;
        for rotated in &mut self.bodies {
            rotated.body.at = rotated.body.at.map(moved);
        }
        let own = self.sticks.into_iter().map(|stick| stick.map(moved));
        let fixed = by + self.points.len() as u32;
        let others = points
            .sticks
            .into_iter()
            .map(|stick| stick.map(|end| if end >= by { end - by + fixed } else { end }));
        self.sticks = others.chain(own).collect();
        let shifted = |end: u32| if end >= by { end - by + fixed } else { end };
        self.springs = points.springs.iter().map(|spring| spring.map(shifted)).collect();
        self.points = points.points.into_iter().chain(self.points).collect();
        (self.balls, self.fixed) = (points.balls, points.fixed);
        self.note = format!("{} {}", self.note, points.note);
        self
    }

    fn take_vectors(&mut self, model: &Model, vectors: &[&Variable]) {
        let mut point_of = vec![None; model.dimension()];
        for variable in vectors {
            let count = variable.family.shape.len();
            self.dimension = self.dimension.max(count);
            for member in 0..variable.family.members() {
                let first = variable.first + member * count;
                point_of[first..first + count].fill(Some(self.points.len() as u32));
                self.points.push(Position::Numbers(place(variable, member * count, count)));
            }
        }
        self.balls = self.points.len();
        let rods = Rods::new(model, &point_of);
        for constraint in model.imposed_constraints() {
            for (output, rod) in rods.of(constraint).into_iter().enumerate() {
                debug_assert!(output < constraint.members);
                match rod {
                    Some(Rod::Between(a, b)) => self.sticks.push([a, b]),
                    Some(Rod::To(a, centre)) => {
                        let at = self.fixed_at(centre);
                        self.sticks.push([a, at]);
                    }
                    None => {}
                }
            }
        }
        self.take_springs(model, vectors);
        self.kinds = kinds(model, vectors);
        self.note =
            format!("{} ({}){}.", counted(self.points.len(), "point"), names(vectors), self.rods());
    }

    fn take_springs(&mut self, model: &Model, vectors: &[&Variable]) {
        let points = vectors.iter().flat_map(|variable| {
            let count = variable.family.shape.len();
            (0..variable.family.members()).map(move |k| (variable.first + k * count, count))
        });
        let points: Vec<(usize, usize)> = points.collect();
        let springs = Springs::new(model, &points).map(|springs| springs.all());
        for (a, b) in springs.into_iter().flatten() {
            let end = match b {
                Some(b) => b as u32,
                None => self.fixed_at([0.0; 3]),
            };
            self.springs.push([a as u32, end]);
        }
    }

    /// Number of a fixed point among the points.
    fn fixed_at(&mut self, place: [f64; 3]) -> u32 {
        let known = self.fixed.iter().position(|known| *known == place);
        let at = known.unwrap_or_else(|| {
            self.fixed.push(place);
            self.fixed.len() - 1
        });
        (self.points.len() + at) as u32
    }

    /// Observables that are points, with what keeps their distances.
    fn take_observables(&mut self, model: &Model, seen: &[&Quantity]) {
        for observable in seen {
            let count = observable.shape.len();
            let place = |k: usize| {
                let array = observable.name.clone();
                Position::Numbers(Place { array, first: k * count, count })
            };
            self.points.extend((0..observable.members).map(place));
            self.dimension = self.dimension.max(count);
        }
        self.balls = self.points.len();
        for (a, b) in arms(model, seen) {
            let end = match b {
                Some(b) => b as u32,
                None => self.fixed_at([0.0; 3]),
            };
            self.sticks.push([a as u32, end]);
        }
        let names: Vec<&str> = seen.iter().map(|observable| observable.name.as_str()).collect();
        let what = if names.len() == 1 { "observable" } else { "observables" };
        self.note = format!("The {what} {}{}.", names.join(", "), self.rods());
    }

    /// Words on the rods and springs.
    fn rods(&self) -> String {
        let all = [(self.sticks.len(), "rod"), (self.springs.len(), "spring")];
        let said = all.into_iter().filter(|(count, _)| *count > 0);
        said.map(|(count, what)| format!(", {}", counted(count, what))).collect()
    }

    /// Take one, two or three scalars as a point of the configuration space.
    fn take_scalars(&mut self, model: &Model, positions: &[&Variable]) -> bool {
        let scalars: Vec<&Variable> =
            positions.iter().filter(|v| v.family.shape == Shape::Scalar).copied().collect();
        let all: usize = scalars.iter().map(|v| v.family.members()).sum();
        let names: Vec<String> = scalars
            .iter()
            .flat_map(|v| (0..v.family.members().min(3)).map(|k| v.family.member_name(k)))
            .collect();
        match (all, &scalars[..]) {
            (1, [only]) if let Some(momentum) = momentum(model, only) => {
                self.points = vec![Position::Apart(vec![place(only, 0, 1), place(momentum, 0, 1)])];
                self.dimension = 2;
                let names = [names[0].clone(), momentum.family.member_name(0)].join(", ");
                self.note = format!("A point of the phase plane ({names}).");
            }
            (1..=3, _) => {
                let places = scalars.iter();
                let places = places.flat_map(|v| (0..v.family.members()).map(|k| place(v, k, 1)));
                self.points = vec![Position::Apart(places.collect())];
                self.dimension = all.max(2);
                let space = if model.is_hamiltonian() { "configuration" } else { "state" };
                self.note = format!("A point of the {space} space ({}).", names.join(", "));
            }
            _ => return false,
        }
        self.balls = self.points.len();
        true
    }
}

impl Scene {
    /// Takes vectors as arrows at the sites of their lattice.
    fn take_spins(&mut self, model: &Model, family: &Variable) {
        let sites = spins::sites(model, family).into_iter().enumerate();
        self.spins = sites.map(|(k, site)| (place(family, 3 * k, 3), site)).collect();
        self.dimension = 3;
        let name = &family.family.name;
        self.note = format!(
            "{} vectors {name}, each at its site; the colour is that of its third component.",
            self.spins.len()
        );
    }

    /// Picture of a field: heights along a row, or a net over a grid.
    fn of_lattice(lattice: Lattice) -> Scene {
        let Lattice { name, sites, columns } = lattice;
        let height = |first: usize| Place { array: name.clone(), first, count: 1 };
        let points: Vec<Position> = (0..sites).map(|k| Position::Numbers(height(k))).collect();
        let view = name.clone();
        let Some(columns) = columns else {
            let note = format!("{name} as heights along the row of its {sites} members.");
            return Scene {
                dimension: 2,
                balls: sites,
                points,
                string: true,
                note,
                view,
                ..Scene::default()
            };
        };
        let rows = sites / columns;
        let at = |i: usize, j: usize| (i * columns + j) as u32;
        let along = (0..rows).flat_map(|i| (1..columns).map(move |j| [at(i, j - 1), at(i, j)]));
        let across = (1..rows).flat_map(|i| (0..columns).map(move |j| [at(i - 1, j), at(i, j)]));
        Scene {
            dimension: 3,
            points,
            grid: Some(columns),
            sticks: along.chain(across).collect(),
            note: format!("{name} as heights over its grid of {rows} by {columns}."),
            view,
            ..Scene::default()
        }
    }
}

fn counted(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

/// Momentum of a coordinate.
fn momentum<'m>(model: &'m Model, of: &Variable) -> Option<&'m Variable> {
    let number = model.variables.iter().position(|variable| std::ptr::eq(variable, of))?;
    model.variables.iter().find(|variable| variable.role == Role::Momentum(number))
}

fn names(variables: &[&Variable]) -> String {
    let names: Vec<&str> = variables.iter().map(|v| v.family.name.as_str()).collect();
    names.join(", ")
}

fn place(variable: &Variable, first: usize, count: usize) -> Place {
    Place { array: variable.family.name.clone(), first, count }
}

/// True for an observable that may be a place: a vector in the plane or in space that positions
/// determine.
fn is_seen(observable: &Quantity) -> bool {
    let moves = MOMENTUM | FOLLOWING;
    matches!(observable.shape, Shape::Vector(2 | 3)) && observable.depends & moves == 0
}

/// True if the kinetic energy of a vector of positions is that of a place: |p|²/2m, whatever the
/// positions are. Angles have another one.
fn is_place(model: &Model, variable: &Variable) -> bool {
    let (n, count) = (model.degrees(), variable.family.shape.len());
    let Some(h) = model.own_hamiltonian().filter(|_| !variable.family.is_empty()) else {
        return false;
    };
    let first = n + variable.first;
    // H_pp at p = 0 by differences, at the start and elsewhere.
    let curvature = |moved: f64| -> Vec<f64> {
        let mut x = model.initial.clone();
        for (k, q) in x[variable.first..variable.first + count].iter_mut().enumerate() {
            *q += moved * (1.0 + q.abs()) * (1.0 + k as f64);
        }
        x[first..first + count].fill(0.0);
        let size = model.initial[first..first + count].iter().fold(1.0f64, |a, p| a.max(p.abs()));
        let step = 1e-2 * size;
        let mut at = |a: usize, b: usize, [by_a, by_b]: [f64; 2]| {
            x[first + a] += by_a * step;
            x[first + b] += by_b * step;
            let value = h.evaluate(model.t0, &x, &model.parameter_values)[0];
            x[first..first + count].fill(0.0);
            value
        };
        let mut all = Vec::with_capacity(count * count);
        for a in 0..count {
            for b in 0..count {
                let [both, none] = [at(a, b, [1.0, 1.0]), at(a, b, [-1.0, -1.0])];
                let [one, other] = [at(a, b, [1.0, -1.0]), at(a, b, [-1.0, 1.0])];
                all.push((both + none - one - other) / (4.0 * step * step));
            }
        }
        all
    };
    let [here, there] = [curvature(0.0), curvature(0.3)];
    let inverse = here[0];
    // Differences of energies lose some digits.
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-4 * inverse.abs();
    let entry = |k: usize| if k.is_multiple_of(count + 1) { inverse } else { 0.0 };
    inverse > 0.0 && (0..count * count).all(|k| near(here[k], entry(k)) && near(there[k], entry(k)))
}

/// Tolerance of a start's deviation from a rotation.
const NEAR: f64 = 1e-6;

/// Attitude given by a variable: a matrix that starts as a rotation, or four numbers that start as
/// a unit quaternion. `None` for other variables.
fn attitude(model: &Model, variable: &Variable) -> Option<Attitude> {
    let family = &variable.family;
    let start =
        |k: usize| &model.initial[variable.first + k * family.shape.len()..][..family.shape.len()];
    let all = |fits: &dyn Fn(&[f64]) -> bool| {
        !family.is_empty() && (0..family.members()).all(|k| fits(start(k)))
    };
    let is_rotation = |r: &[f64]| {
        let product = |i: usize, j: usize| (0..3).map(|k| r[3 * k + i] * r[3 * k + j]).sum::<f64>();
        (0..9).all(|k| (product(k / 3, k % 3) - f64::from(k / 3 == k % 3)).abs() < NEAR)
    };
    match family.shape {
        Shape::Matrix(3, 3) if all(&is_rotation) => Some(Attitude::Matrix),
        Shape::Vector(4) if all(&|q| (q.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < NEAR) => {
            Some(Attitude::Quaternion)
        }
        _ => None,
    }
}

/// Kinds of points, the heaviest first; empty if their masses are all equal, or of more kinds than
/// there are colours.
fn kinds(model: &Model, vectors: &[&Variable]) -> Vec<u8> {
    let inverse = StateVectors::of(model).inverse_masses(model);
    let mut of_points = Vec::new();
    let mut vector = 0;
    for variable in &model.variables {
        let members = variable.family.members();
        if vectors.iter().any(|v| v.family.name == variable.family.name) {
            of_points.extend(inverse.get(vector..vector + members).unwrap_or(&[]));
        }
        vector += members;
    }
    let same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    let mut known: Vec<f64> = Vec::new();
    for &one in &of_points {
        if !known.iter().any(|&other| same(one, other)) {
            known.push(one);
        }
        if known.len() > KINDS {
            return Vec::new();
        }
    }
    known.sort_by(f64::total_cmp);
    if known.len() < 2 || of_points.len() <= KINDS {
        return Vec::new();
    }
    let kind = |&one: &f64| known.iter().position(|&other| same(one, other)).unwrap_or(0) as u8;
    of_points.iter().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::rotation::rotation;
    use super::*;

    fn scene(text: &str) -> Scene {
        Scene::all(&text.parse().unwrap()).remove(0)
    }

    #[test]
    fn rods_are_found_however_they_are_written() {
        let found = scene(
            "size n = 3
             coordinate r[i in 1..n] : R^2 = (i, 0)
             momentum p of r
             hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)
             constraint nail : (r[1].x - 0.25)^2 + r[1].y^2 = 0.5625
             constraint link : norm(r[2] - r[1]) = 1
             constraint last : 3*(dot(r[3], r[3]) - 2*dot(r[3], r[2]) + dot(r[2], r[2])) = 3",
        );
        assert_eq!(found.dimension, 2);
        assert_eq!(found.fixed, [[0.25, 0.0, 0.0]]);
        assert_eq!(found.sticks, [[0, 3], [0, 1], [1, 2]]);
    }

    #[test]
    fn other_constraints_are_no_rods() {
        let found = scene(
            "coordinate q : R^3 = (1, 0, 0)
             coordinate r : R^3 = (0, 1, 0)
             momentum p of q
             momentum s of r
             hamiltonian dot(p, p)/2 + dot(s, s)/2 + q.z
             constraint wall : q.x + q.y = 1
             constraint ellipsoid : r.x^2 + 2*r.y^2 + r.z^2 = 2
             constraint right : dot(q, r) = 0",
        );
        assert_eq!((found.points.len(), found.sticks.len(), found.dimension), (2, 0, 3));
    }

    #[test]
    fn bodies_are_rotations() {
        let body =
            "state R : R^(3,3) = identity(3)\nstate w : R^3 = (1, 1, 1)\nR' = R*hat(w)\nw' = -w";
        let found = scene(body);
        assert_eq!((found.points.len(), found.bodies.len()), (0, 1), "a rate is no place");
        let scaled = scene(&body.replace("identity(3)", "2*identity(3)"));
        assert_eq!(
            (scaled.points.len(), scaled.bodies.len()),
            (1, 0),
            "a matrix that is no rotation"
        );
        // A quarter turn about z.
        let half = 0.5f64.sqrt();
        let turned = rotation(Attitude::Quaternion, &[half, 0.0, 0.0, half]);
        let wanted = [0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        assert!(turned.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-15), "{turned:?}");
    }

    #[test]
    fn bodies_are_at_their_places_and_joined() {
        let found = scene(
            "size n = 2
             parameter up = (0, 0, 0.5)
             coordinate x[i in 1..n] : R^3 = (0, 0, -0.5 - (i - 1))
             coordinate R[i in 1..n] : R^(3,3) = identity(3)
             momentum p of x
             momentum P of R
             hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + trace(P[i]*transpose(P[i]))/2 + x[i].z)
             constraint rot[i in 1..n] : transpose(R[i])*R[i] = identity(3)
             constraint ball : x[1] + R[1]*up = (0, 0, 0)
             constraint hinge : 2*(x[2] + R[2]*up) = 2*(x[1] - R[1]*up)",
        );
        assert_eq!((found.balls, found.points.len(), found.bodies.len()), (0, 5, 2));
        let ends: Vec<&Position> = found.points[2..].iter().collect();
        let at = |body, z| Position::Of(body, [0.0, 0.0, z]);
        assert_eq!(ends, [&at(0, 0.5), &at(0, -0.5), &at(1, 0.5)]);
        assert_eq!(found.sticks, [[0, 2], [0, 3], [1, 4]]);
        assert!(found.note.contains("the attitude R at x"), "{}", found.note);
        // A top without a place stands at the origin.
        let top = scene("state R : R^(3,3) = identity(3)\nR' = R*hat((0, 0, 1))");
        assert_eq!((top.points.len(), top.bodies[0].body.at), (0, None));
    }

    #[test]
    fn angles_are_no_places_and_observables_have_arms() {
        let arm = "coordinate q : R^2 = (0.3, -0.2)
             momentum p of q
             let M = matrix((5/3 + cos(q[2]), 1/3 + cos(q[2])/2), (1/3 + cos(q[2])/2, 1/3))
             hamiltonian dot(p, inverse(M)*p)/2 - 1.5*cos(q[1]) - cos(q[1] + q[2])/2
             observe speed = (p[1], p[2])
             observe elbow = (sin(q[1]), -cos(q[1]))
             observe hand = (sin(q[1]) + sin(q[1] + q[2]), -cos(q[1]) - cos(q[1] + q[2]))";
        let found = scene(arm);
        assert_eq!(found.points.len(), 2, "a velocity is no place");
        assert_eq!(found.fixed, [[0.0; 3]]);
        assert_eq!(found.sticks, [[0, 2], [1, 0]]);
        assert!(found.note.contains("elbow, hand, 2 rods"), "{}", found.note);
        let alone: String =
            arm.lines().filter(|line| !line.contains("observe")).collect::<Vec<_>>().join("\n");
        assert!(scene(&alone).note.contains("configuration space"));
        // Places are, whatever else is observed.
        let kepler = scene(
            "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/6 - 1/norm(q)\nobserve half = q/2",
        );
        assert!(kepler.note.starts_with("1 point (q)"), "{}", kepler.note);
    }

    #[test]
    fn molecules_have_kinds_by_their_masses() {
        let found = scene(
            "size N = 4
             parameter m[s in 1..3] = (1, 16, 1)[s]
             coordinate x[a in 1..N, s in 1..3] : R^3 = (3*a + if(s == 2, 0, if(s == 1, 1, -0.2)), if(s == 3, 0.9, 0), 0)
             momentum p of x
             hamiltonian sum(a in 1..N, s in 1..3 : dot(p[a,s], p[a,s])/(2*m[s]))
             constraint bond[a in 1..N] : dot(x[a,1] - x[a,2], x[a,1] - x[a,2]) = 1",
        );
        assert_eq!(found.kinds[..3], [1, 0, 1], "the heavy ones first");
        assert_eq!(found.sticks, [[0, 1], [3, 4], [6, 7], [9, 10]]);
    }

    #[test]
    fn vectors_that_keep_their_lengths_are_spins() {
        let chain = "state S[i in 1..4] : R^3 = (2*sin(i), 0, 2*cos(i))
             S[i]' = cross(S[i], S[if(i == 4, 1, i + 1)] + (0, 0, 1))";
        let found = scene(chain);
        assert_eq!((found.spins.len(), found.points.len(), found.dimension), (4, 0, 3));
        assert!((found.spins[3].1[0] - 3.0 * 2.3).abs() < 1e-12, "{:?}", found.spins);
        let grid = scene(
            &chain
                .replace("[i in 1..4]", "[i in 1..2, j in 1..3]")
                .replace("S[i]' =", "S[i,j]' =")
                .replace("S[i]", "S[i,j]")
                .replace("S[if(i == 4, 1, i + 1)]", "S[3 - i,j]"),
        );
        assert_eq!(grid.spins[4].1.map(|x| (10.0 * x).round()), [23.0, 23.0, 0.0]);
        // Damped ones shrink, and velocities are no positions.
        assert!(scene(&chain.replace("cross(S[i],", "-0.1*S[i] + cross(S[i],")).spins.is_empty());
        let bodies = "state r[i in 1..2] : R^3 = (i, 0, 0)\nstate v[i in 1..2] : R^3 = (0, i, 0)\nr[i]' = v[i]\nv[i]' = -r[i]";
        assert_eq!(scene(bodies).points.len(), 2);
    }

    #[test]
    fn a_lattice_has_a_view_of_each_field_observables_first() {
        let text = "coordinate u[i in 1..9] = i
             momentum v of u = -i
             coordinate mean = 1
             momentum w of mean
             hamiltonian sum(i in 1..9 : u[i]^2 + v[i]^2) + w^2
             observe density[i in 1..9] = u[i]^2 + v[i]^2
             observe part[i in 2..4] = u[i]
             observe pairs[i in 1..9, j in i..9] = u[i]*v[j]";
        let all = Scene::all(&text.parse().unwrap());
        let views: Vec<&str> = all.iter().map(|scene| &scene.view[..]).collect();
        assert_eq!(views, ["density", "u", "v"], "no short ones, and none that are no box");
        assert!(all.iter().all(|scene| scene.string && scene.points.len() == 9));
    }

    #[test]
    fn numbers_over_a_grid_are_a_net() {
        let net = scene(
            "coordinate u[i in 1..3, j in 1..4] = i*j\nmomentum p of u\nhamiltonian sum(i in 1..3, j in 1..4 : p[i,j]^2)/2",
        );
        assert_eq!((net.points.len(), net.balls, net.grid, net.dimension), (12, 0, Some(4), 3));
        // Three rows of three links, and two rows of four across them.
        assert_eq!(net.sticks.len(), 17);
        assert!(net.sticks.contains(&[0, 1]) && net.sticks.contains(&[4, 8]));
    }

    #[test]
    fn scalars_are_a_point_or_a_string() {
        let two = scene(
            "coordinate a = 1\ncoordinate b = 2\nmomentum p of a\nmomentum q of b\nhamiltonian (p^2 + q^2)/2",
        );
        assert!(
            matches!(&two.points[..], [Position::Apart(places)] if places.len() == 2)
                && !two.string
        );
        let many = scene(
            "coordinate q[i in 1..9] = i\nmomentum p of q\nhamiltonian sum(i in 1..9 : p[i]^2)/2",
        );
        assert!(many.string && many.points.len() == 9);
        let one = scene("coordinate a = 1\nmomentum p of a\nhamiltonian p^2/2");
        assert!(one.note.contains("the phase plane (a, p)"), "{}", one.note);
        assert!(scene("state x = 1\nx' = -x").note.contains("the state space (x)"));
    }

    #[test]
    fn springs_are_found_from_the_energy() {
        let of = |potential: &str| {
            scene(&format!(
                "coordinate r[i in 1..3] : R^2 = (i, 0.3*i^2)
                 momentum p of r
                 hamiltonian sum(i in 1..3 : dot(p[i], p[i])/2 + 9.81*r[i].y) + {potential}"
            ))
        };
        let chain = of("sum(i in 1..2 : 40*(norm(r[i+1] - r[i]) - 0.4)^2/2)");
        assert_eq!(chain.springs, [[1, 0], [2, 1]]);
        assert!(chain.note.contains("3 points (r), 2 springs"), "{}", chain.note);
        assert_eq!(of("(r[1] - r[3]).x^2 + (r[1] - r[3]).y^2").springs, [[2, 0]]);
        // Other pairs do not have the energy of a spring, nor has a trap.
        for potential in [
            "sum(i in 1..3, j in i+1..3 : 1/norm(r[i] - r[j]))",
            "-sum(i in 1..3, j in i+1..3 : 1/norm(r[i] - r[j]))",
            "sum(i in 1..2 : 1/norm(r[i] - r[i+1])^12 - 1/norm(r[i] - r[i+1])^6)",
            "sum(i in 1..3 : dot(r[i], r[i])/2)",
        ] {
            assert!(of(potential).springs.is_empty(), "{potential}");
        }
        let hung = of("20*(norm(r[2]) - 1)^2");
        assert_eq!((hung.springs, hung.fixed), (vec![[1, 3]], vec![[0.0; 3]]));
        let space = scene(
            "coordinate q : R^3 = (0, 0.01, -1)
             momentum p of q
             hamiltonian dot(p, p)/2 + 1e8*(norm(q) - 0.9)^2 + q.z",
        );
        assert_eq!(space.springs, [[0, 1]]);
    }
}
