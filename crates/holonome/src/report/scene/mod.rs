//! Visible parts of a model: points, rods between them, rigid bodies.
//!
//! Rods are recognised by the effect of a constraint, not by its form. A scalar constraint on two
//! points is one on their distance if a common rotation and shift of all points leaves it
//! unchanged. A constraint s(|x − c|² − l²) on a single point holds it at a distance from c.

use crate::error::Error;
use crate::kernels::StateVectors;
use crate::problem::Problem;
use crate::store::{RowReader, StoredRun};
use holonome_figures::Motion;
use holonome_model::elaborate::expression::{MOMENTUM, TIME};
use holonome_model::elaborate::model::{Model, Quantity, Role, Variable};
use holonome_model::elaborate::shape::Shape;
use holonome_model::functional::Source;

/// Maximum number of points of a picture.
const POINTS: usize = 20_000;

/// Maximum number of frames: across the width of the page more cannot be distinguished.
const FRAMES: usize = 3000;

/// Maximum number of kinds of points that colours distinguish.
const KINDS: usize = 8;

/// Place of the numbers of a point: an array, and the first of `count` numbers in its rows.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    array: String,
    first: usize,
    count: usize,
}

/// Form of a rotation in the numbers of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attitude {
    Matrix,
    Quaternion,
}

/// Picture of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scene {
    dimension: usize,
    points: Vec<Place>,
    /// True for masses along a string: displacements, drawn beside each other.
    string: bool,
    fixed: Vec<[f64; 3]>,
    sticks: Vec<[u32; 2]>,
    kinds: Vec<u8>,
    bodies: Vec<(Place, Attitude)>,
    note: String,
}

impl Scene {
    /// Picture of a model; `None` if it has no positions.
    pub fn of(problem: &Problem) -> Option<Scene> {
        let model = &problem.model;
        let positions = || model.phase_variables().filter(|v| !matches!(v.role, Role::Momentum(_)));
        let mut scene = Scene::default();
        for variable in positions() {
            if let Some(attitude) = attitude(model, variable) {
                let shape = variable.family.shape.len();
                let places = (0..variable.family.members())
                    .map(|k| (place(variable, k * shape, shape), attitude));
                scene.bodies.extend(places);
            }
        }
        let names: Vec<&str> = positions().map(|v| v.family.name.as_str()).collect();
        if !scene.bodies.is_empty() {
            scene.dimension = 3;
            scene.note = format!("The attitude {}: a box with the axes of the body.", names[0]);
            return Some(scene);
        }
        // Of a field's states only the first can be assumed to be positions.
        let in_space = |v: &&Variable| matches!(v.family.shape, Shape::Vector(2 | 3));
        let states = positions().filter(|v| v.role == Role::State).find(in_space);
        let vectors: Vec<&Variable> = match states {
            Some(state) => vec![state],
            None => positions().filter(in_space).collect(),
        };
        if !vectors.is_empty() {
            if vectors.iter().map(|v| v.family.members()).sum::<usize>() > POINTS {
                return None;
            }
            scene.take_vectors(model, &vectors);
            return Some(scene);
        }
        for observable in
            model.observables.iter().filter(|q| matches!(q.shape, Shape::Vector(2 | 3)))
        {
            let count = observable.shape.len();
            let place =
                |k: usize| Place { array: observable.name.clone(), first: k * count, count };
            scene.points.extend((0..observable.members).map(place));
            scene.dimension = scene.dimension.max(count);
            scene.note = format!("The observable {}.", observable.name);
        }
        if !scene.points.is_empty() {
            return (scene.points.len() <= POINTS).then_some(scene);
        }
        scene.take_scalars(&positions().collect::<Vec<_>>()).then_some(scene)
    }

    fn take_vectors(&mut self, model: &Model, vectors: &[&Variable]) {
        let mut point_of = vec![None; model.dimension()];
        for variable in vectors {
            let count = variable.family.shape.len();
            self.dimension = self.dimension.max(count);
            for member in 0..variable.family.members() {
                let first = variable.first + member * count;
                point_of[first..first + count].fill(Some(self.points.len() as u32));
                self.points.push(place(variable, member * count, count));
            }
        }
        let rods = Rods::new(model, &point_of);
        for constraint in model.imposed_constraints() {
            for (output, rod) in rods.of(constraint).into_iter().enumerate() {
                debug_assert!(output < constraint.members);
                match rod {
                    Some(Rod::Between(a, b)) => self.sticks.push([a, b]),
                    Some(Rod::To(a, centre)) => {
                        let at =
                            self.fixed.iter().position(|known| *known == centre).unwrap_or_else(
                                || {
                                    self.fixed.push(centre);
                                    self.fixed.len() - 1
                                },
                            );
                        self.sticks.push([a, (self.points.len() + at) as u32]);
                    }
                    None => {}
                }
            }
        }
        self.kinds = kinds(model, vectors);
        let what = |n: usize, one: &str| match n {
            1 => format!("1 {one}"),
            n => format!("{n} {one}s"),
        };
        let names: Vec<&str> = vectors.iter().map(|v| v.family.name.as_str()).collect();
        let sticks = if self.sticks.is_empty() {
            String::new()
        } else {
            format!(", {}", what(self.sticks.len(), "rod"))
        };
        self.note = format!("{} ({}){sticks}.", what(self.points.len(), "point"), names.join(", "));
    }

    /// Take one, two or three scalars as a point of the configuration space; more of one family as
    /// a string.
    fn take_scalars(&mut self, positions: &[&Variable]) -> bool {
        let scalars: Vec<&Variable> =
            positions.iter().filter(|v| v.family.shape == Shape::Scalar).copied().collect();
        let all: usize = scalars.iter().map(|v| v.family.members()).sum();
        let names: Vec<String> = scalars
            .iter()
            .flat_map(|v| (0..v.family.members().min(3)).map(|k| v.family.member_name(k)))
            .collect();
        match (all, &scalars[..]) {
            (1..=3, _) => {
                // The numbers of one point lie in several arrays: each has a place of its own.
                self.points = scalars
                    .iter()
                    .flat_map(|v| (0..v.family.members()).map(|k| place(v, k, 1)))
                    .collect();
                self.dimension = all.max(2);
                self.note = format!("A point of the configuration space ({}).", names.join(", "));
                true
            }
            (4..=POINTS, [family]) => {
                self.points = (0..all).map(|k| place(family, k, 1)).collect();
                (self.dimension, self.string) = (2, true);
                self.note = format!(
                    "{} as heights along the row of its {all} members.",
                    family.family.name
                );
                true
            }
            _ => false,
        }
    }

    /// True if the points are the components of a single one.
    fn is_one_point(&self) -> bool {
        !self.string && !self.points.is_empty() && self.points.iter().all(|place| place.count == 1)
    }

    /// Motion stored by a run, with about `numbers` numbers; `None` if it was not recorded.
    pub fn motion(
        &self,
        run: &StoredRun,
        times: &[f64],
        numbers: usize,
    ) -> Result<Option<Motion>, Error> {
        let moving = if self.is_one_point() { 1 } else { self.points.len() };
        let width = 3 * moving + 9 * self.bodies.len();
        let samples = run.samples();
        let frames = (numbers / width.max(1)).clamp(2, FRAMES).min(samples);
        let recorded = run.arrays();
        let there = |place: &Place| recorded.iter().any(|array| array.name == place.array);
        if samples < 2
            || !self.points.iter().chain(self.bodies.iter().map(|(place, _)| place)).all(there)
        {
            return Ok(None);
        }
        let mut arrays: Vec<(String, RowReader)> = Vec::new();
        let mut index = |place: &Place| -> Result<usize, Error> {
            if let Some(k) = arrays.iter().position(|(array, _)| *array == place.array) {
                return Ok(k);
            }
            arrays.push((place.array.clone(), run.rows(&place.array).map_err(Error::store)?));
            Ok(arrays.len() - 1)
        };
        let of_points = self.points.iter().map(&mut index).collect::<Result<Vec<_>, _>>()?;
        let of_bodies =
            self.bodies.iter().map(|(place, _)| index(place)).collect::<Result<Vec<_>, _>>()?;
        let mut motion = Motion {
            dimension: self.dimension,
            moving,
            fixed: self.fixed.clone(),
            sticks: self.sticks.clone(),
            string: self.string,
            kinds: self.kinds.clone(),
            bodies: self.bodies.len(),
            note: self.note.clone(),
            ..Motion::default()
        };
        for frame in 0..frames {
            let sample = frame * (samples - 1) / (frames - 1).max(1);
            motion.times.push(times[sample]);
            let mut rows = Vec::with_capacity(arrays.len());
            for (_, reader) in &mut arrays {
                rows.push(reader.row(sample).map_err(Error::store)?.to_vec());
            }
            let numbers = |(place, &array): (&Place, &usize)| {
                rows[array][place.first..place.first + place.count].to_vec()
            };
            let points = self.points.iter().zip(&of_points).map(numbers);
            motion.positions.extend(self.positions(points));
            for ((place, attitude), array) in self.bodies.iter().zip(&of_bodies) {
                motion.rotations.extend(rotation(*attitude, &numbers((place, array))));
            }
        }
        if self.string {
            stretch(&mut motion);
        }
        let step = match (samples - 1).div_ceil((frames - 1).max(1)) {
            spacing @ 2.. => format!("Every {spacing}th sample"),
            _ => "Every sample".to_string(),
        };
        motion
            .note
            .push_str(&format!(" {step} is shown; between them the picture is interpolated."));
        Ok(Some(motion))
    }

    /// Positions of the moving points of a frame, three numbers each, from the numbers of the
    /// places of the scene.
    fn positions(&self, points: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
        let padded = |numbers: &[f64]| {
            let mut at = [0.0; 3];
            at[..numbers.len()].copy_from_slice(numbers);
            at
        };
        if self.is_one_point() {
            return padded(&points.flatten().collect::<Vec<_>>()).to_vec();
        }
        let position = |(k, numbers): (usize, Vec<f64>)| match self.string {
            true => [k as f64, numbers[0], 0.0],
            false => padded(&numbers),
        };
        points.enumerate().flat_map(position).collect()
    }
}

/// Scale the heights of a string to a third of its length.
fn stretch(motion: &mut Motion) {
    let heights = || motion.positions.iter().skip(1).step_by(3).filter(|y| y.is_finite());
    let largest = heights().fold(0.0f64, |a, y| a.max(y.abs()));
    if largest > 0.0 {
        let scale = motion.moving as f64 / 6.0 / largest;
        motion.positions.iter_mut().skip(1).step_by(3).for_each(|y| *y *= scale);
        motion.note.push_str(" Heights are enlarged.");
    }
}

fn place(variable: &Variable, first: usize, count: usize) -> Place {
    Place { array: variable.family.name.clone(), first, count }
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

/// A rotation by rows. The first number of a quaternion is the scalar part.
fn rotation(attitude: Attitude, numbers: &[f64]) -> [f64; 9] {
    match attitude {
        Attitude::Matrix => std::array::from_fn(|k| numbers[k]),
        Attitude::Quaternion => {
            let size = numbers.iter().map(|x| x * x).sum::<f64>().sqrt();
            let [w, x, y, z] = std::array::from_fn(|k| numbers[k] / size);
            [
                1.0 - 2.0 * (y * y + z * z),
                2.0 * (x * y - w * z),
                2.0 * (x * z + w * y),
                2.0 * (x * y + w * z),
                1.0 - 2.0 * (x * x + z * z),
                2.0 * (y * z - w * x),
                2.0 * (x * z - w * y),
                2.0 * (y * z + w * x),
                1.0 - 2.0 * (x * x + y * y),
            ]
        }
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

/// A constraint on a distance.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rod {
    Between(u32, u32),
    To(u32, [f64; 3]),
}

/// Points of a model's state, by which rods are distinguished from other constraints.
struct Rods<'m> {
    model: &'m Model,
    /// Point of each component of the state; `None` for other components.
    point_of: &'m [Option<u32>],
    /// First component of each point, and number of its components.
    points: Vec<(usize, usize)>,
    size: f64,
}

impl<'m> Rods<'m> {
    fn new(model: &'m Model, point_of: &'m [Option<u32>]) -> Rods<'m> {
        let mut points: Vec<(usize, usize)> = Vec::new();
        for (component, point) in point_of.iter().enumerate() {
            match point {
                Some(point) if *point as usize == points.len() => points.push((component, 1)),
                Some(point) => points[*point as usize].1 += 1,
                None => {}
            }
        }
        let at = |&(first, count): &(usize, usize)| &model.initial[first..first + count];
        let size = points.iter().flat_map(at).fold(0.0f64, |a, x| a.max(x.abs()));
        Rods { model, point_of, points, size: if size > 0.0 { size } else { 1.0 } }
    }

    /// The start, with all points moved to generic positions.
    fn scattered(&self, seed: f64) -> Vec<f64> {
        let mut x = self.model.initial.clone();
        for (k, &(first, count)) in self.points.iter().enumerate() {
            for c in 0..count {
                x[first + c] += 0.3 * self.size * (seed + 1.7 * k as f64 + 2.9 * c as f64).sin();
            }
        }
        x
    }

    /// All points moved alike: rotated about the origin, then shifted.
    fn moved(&self, x: &[f64], shift: f64) -> Vec<f64> {
        let mut y = x.to_vec();
        let (s, c) = 0.7f64.sin_cos();
        for &(first, count) in &self.points {
            let p = &mut y[first..first + count];
            (p[0], p[1]) = (c * p[0] - s * p[1], s * p[0] + c * p[1]);
            if count == 3 {
                (p[1], p[2]) = (c * p[1] - s * p[2], s * p[1] + c * p[2]);
            }
            p.iter_mut()
                .enumerate()
                .for_each(|(k, x)| *x += shift * self.size * (0.6 + 0.3 * k as f64));
        }
        y
    }

    fn values(&self, constraint: &Quantity, x: &[f64]) -> Vec<f64> {
        constraint.functional.evaluate(self.model.t0, x, &self.model.parameter_values)
    }

    /// Rod of each member of a constraint; `None` if it is not one.
    fn of(&self, constraint: &Quantity) -> Vec<Option<Rod>> {
        if constraint.shape.len() != 1 || constraint.depends & (MOMENTUM | TIME) != 0 {
            return vec![None; constraint.members];
        }
        let read = self.points_read(constraint);
        let x = self.scattered(0.4);
        let value = self.values(constraint, &x);
        let carried = self.values(constraint, &self.moved(&x, 1.0));
        let centres = Centres::new(self, constraint, &x, &value);
        // Squares of lengths cancel to rounding.
        let equal =
            |a: f64, b: f64, size: f64| (a - b).abs() <= 1e-9 * (a.abs().max(b.abs()).max(size));
        let rod = |output: usize| match read[output].as_deref()? {
            [a, b] => equal(value[output], carried[output], 0.0).then_some(Rod::Between(*a, *b)),
            [a] => Some(Rod::To(*a, centres.of(self, *a, output)?)),
            _ => None,
        };
        (0..constraint.members).map(rod).collect()
    }

    /// Points that each member reads; `None` if it reads something else.
    fn points_read(&self, constraint: &Quantity) -> Vec<Option<Vec<u32>>> {
        let mut read: Vec<Option<Vec<u32>>> = vec![Some(Vec::new()); constraint.functional.outputs];
        for term in &constraint.functional.terms {
            for row in term.table.each() {
                let all = &mut read[row.last() as usize];
                for (_, entry) in
                    term.slots.iter().zip(row.iter()).filter(|(slot, _)| **slot == Source::State)
                {
                    match (&mut *all, self.point_of[entry as usize]) {
                        (Some(points), Some(point)) if !points.contains(&point) => {
                            points.push(point)
                        }
                        (Some(_), Some(_)) | (None, _) => {}
                        (Some(_), None) => *all = None,
                    }
                }
            }
        }
        read.iter_mut().flatten().for_each(|points| points.sort_unstable());
        read
    }
}

/// Values of a constraint at points moved along each axis, and at others, which distinguish s(|x −
/// c|² − l²) from other functions.
struct Centres {
    x: Vec<f64>,
    step: f64,
    value: Vec<f64>,
    /// Values before and behind, along each axis.
    beside: Vec<[Vec<f64>; 2]>,
    other: (Vec<f64>, Vec<f64>),
}

impl Centres {
    fn new(rods: &Rods, constraint: &Quantity, x: &[f64], value: &[f64]) -> Centres {
        let step = 0.25 * rods.size;
        let dimension = rods.points.iter().map(|&(_, count)| count).max().unwrap_or(0);
        let along = |axis: usize, by: f64| {
            let mut y = x.to_vec();
            rods.points
                .iter()
                .filter(|&&(_, count)| axis < count)
                .for_each(|&(first, _)| y[first + axis] += by);
            rods.values(constraint, &y)
        };
        let beside = (0..dimension).map(|axis| [along(axis, -step), along(axis, step)]).collect();
        let y = rods.scattered(2.2);
        let there = rods.values(constraint, &y);
        Centres { x: x.to_vec(), step, value: value.to_vec(), beside, other: (y, there) }
    }

    /// Centre about which a member holds a point; `None` if it does not.
    fn of(&self, rods: &Rods, point: u32, output: usize) -> Option<[f64; 3]> {
        let (first, count) = rods.points[point as usize];
        let f = self.value[output];
        let [mut strength, mut centre] = [[0.0; 3]; 2];
        for axis in 0..count {
            let [before, behind] = [0, 1].map(|side| self.beside[axis][side][output]);
            strength[axis] = (behind + before - 2.0 * f) / (2.0 * self.step * self.step);
            centre[axis] =
                self.x[first + axis] - (behind - before) / (4.0 * strength[axis] * self.step);
            // A coordinate at the level of rounding is 0.
            if centre[axis].abs() < 1e-9 * rods.size {
                centre[axis] = 0.0;
            }
        }
        let s = strength[0];
        let square = |x: &[f64]| {
            (0..count).map(|axis| (x[first + axis] - centre[axis]).powi(2)).sum::<f64>()
        };
        let here = square(&self.x);
        let there = f + s * (square(&self.other.0) - here);
        let near = |a: f64, b: f64, size: f64| (a - b).abs() <= 1e-7 * size;
        let fits = s != 0.0
            && strength[..count].iter().all(|&other| near(s, other, s.abs()))
            && near(there, self.other.1[output], s.abs() * (here + rods.size * rods.size));
        fits.then(|| centre.map(|x| if x.is_finite() { rounded(x) } else { 0.0 }))
    }
}

/// Rounded to nine digits, so that equal centres are equal.
fn rounded(x: f64) -> f64 {
    format!("{x:.8e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(text: &str) -> Scene {
        Scene::of(&text.parse().unwrap()).unwrap()
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
    fn scalars_are_a_point_or_a_string() {
        let two = scene(
            "coordinate a = 1\ncoordinate b = 2\nmomentum p of a\nmomentum q of b\nhamiltonian (p^2 + q^2)/2",
        );
        assert!(two.is_one_point() && two.points.len() == 2 && !two.string);
        let many = scene(
            "coordinate q[i in 1..9] = i\nmomentum p of q\nhamiltonian sum(i in 1..9 : p[i]^2)/2",
        );
        assert!(many.string && many.points.len() == 9);
    }
}
