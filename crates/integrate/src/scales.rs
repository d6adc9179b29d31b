//! Scales of a state: its division into vectors, how large each vector gets along a run, and how
//! far it may be off by a step's error estimate.
//!
//! A state mixes quantities of many sizes and units, and nothing absolute can be said of all of
//! them. Some scales of every vector take the place of an absolute one:
//!
//! - its running size σ, the largest length so far;
//! - the scale S ≥ σ of the error norm, with floors for vectors that rest while others of their
//!   kind move: position max(σ, 10⁻³ max σ of its family, 10⁻⁶ √(I/m)), I = max m σ² over all
//!   positions; momentum max(σ, 10⁻³ m max(σ/m) of its family, 10⁻⁶ √(K m)), K = max σ²/m over all
//!   momenta, and in a step of the length h at least 10⁻⁶ m S_q/h, where S_q is the scale of its
//!   position: an error below that part of the tolerance moves the position by as small a part of
//!   its own tolerance. A momentum without mass, which constraints may hold at 0, has
//!   the size that the motion of the others would give it: at least J/S_q, J = max σ_q σ_p (of those
//!   without mass too: a Lagrangian that is linear in the velocities has no others), and
//!   10⁻⁶ I/(h S_q). At rest, where forces cancel and all momenta are rounding, this floor alone is
//!   their scale. An oscillation of the frequency ω has the momentum m ω S_q, which is more than
//!   this from hω = 10⁻⁶ on;
//! - the rounding of the rate ẋ, as found by moving the state by some roundings of its vectors: an
//!   error of a step of the length h below h times that is no error, as no shorter step is better.
//!   The forces on a light body between heavy ones cancel, and their rounding is that of what the
//!   heavy ones need;
//! - the weight w of the correction, w² ← max(0.9 w², |e|² + (u σ)²), e the step's estimated error
//!   and u = 2⁻⁵³.
//!
//! All are kept as squares, and every operation on them commutes with a change of units by powers
//! of two.

use serde::{Deserialize, Serialize};
use std::ops::Range;

use crate::exact;
use holonome_arithmetic::{Real, square};
use holonome_linear::widest::widest;

/// Unit round-off u = 2⁻⁵³.
pub const UNIT_ROUND_OFF: f64 = f64::EPSILON / 2.0;

/// Part of w² that outlives a step: an estimate that vanishes at single points does not make a
/// vector immovable.
const WEIGHT_MEMORY: f64 = 0.9;

/// Square of the floor of S within a family.
pub const FAMILY_FLOOR: f64 = 1e-6;

/// Square of the floor of S between families, by mass.
const MASS_FLOOR: f64 = 1e-12;

/// Square of the floor of S for momenta, relative to the momentum that moves a position by its
/// scale in a step.
const STEP_FLOOR: f64 = 1e-12;

/// Square of the least size of a vector that is to be moved to a level set, relative to the largest
/// of its kind: so small that light bodies beside heavy ones stay where they are, and that a body
/// at rest can be moved.
const LEAST_OF_KIND: f64 = 1e-24;

/// Role of a family of vectors in a state x = (q, p).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Positions.
    Position,
    /// Momenta.
    Momentum,
    /// States of a vector field, which have no mass.
    Other,
    /// Numbers that are integrated beside the motion, behind all else: they have no size, so that
    /// no error norm counts them and no correction moves them.
    Beside,
}

/// Vectors of one kind: the members of one declared variable.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorFamily {
    /// Role of the vectors.
    pub role: Role,
    /// Numbers of the vectors in the state.
    pub vectors: Range<usize>,
}

/// Vectors that make up a state, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Vectors {
    /// First component of every vector, then the length of the state.
    start: Vec<u32>,
    families: Vec<VectorFamily>,
}

impl Default for Vectors {
    fn default() -> Vectors {
        Vectors { start: vec![0], families: Vec::new() }
    }
}

impl Vectors {
    /// Vectors of a state of length `dim` of which nothing is known: every component is a vector
    /// and a family of its own.
    pub fn components(dim: usize) -> Vectors {
        let mut vectors = Vectors::default();
        for _ in 0..dim {
            vectors.push(Role::Other, 1, 1);
        }
        vectors
    }

    /// Add a family of `count` vectors of `width` components each; nothing if there are none.
    pub fn push(&mut self, role: Role, count: usize, width: usize) {
        if count == 0 || width == 0 {
            return;
        }
        let (first, end) = (self.count(), self.dim() as u32);
        self.start.extend((1..=count).map(|k| end + (k * width) as u32));
        self.families.push(VectorFamily { role, vectors: first..first + count });
    }

    /// Vector to which a component of the state belongs.
    pub fn vector_of(&self, component: usize) -> usize {
        self.start.partition_point(|&start| start as usize <= component) - 1
    }

    /// Number of vectors.
    pub fn count(&self) -> usize {
        self.start.len() - 1
    }

    /// Number of vectors that have a size: those before any [`Role::Beside`].
    pub fn sized(&self) -> usize {
        self.count() - self.with(Role::Beside).count()
    }

    /// Number of momenta that follow as many positions; 0 if there are other vectors.
    pub fn conjugates(&self) -> usize {
        let [positions, momenta] =
            [Role::Position, Role::Momentum].map(|role| self.with(role).count());
        if positions == momenta && 2 * momenta == self.sized() { momenta } else { 0 }
    }

    /// Length of [`Scales::norms`].
    pub fn norms(&self) -> usize {
        self.count() + self.conjugates()
    }

    /// Length of the state.
    pub fn dim(&self) -> usize {
        self.start[self.count()] as usize
    }

    /// The families.
    pub fn families(&self) -> &[VectorFamily] {
        &self.families
    }

    /// The components of a vector.
    pub fn components_of(&self, vector: usize) -> Range<usize> {
        self.start[vector] as usize..self.start[vector + 1] as usize
    }

    /// Compute |x_b|² of every vector.
    pub fn squares<R: Real>(&self, x: &[R], out: &mut [R]) {
        widest(
            #[inline(always)]
            || {
                let (sized, others) = out.split_at_mut(self.sized());
                for (vector, out) in sized.iter_mut().enumerate() {
                    *out = square(&x[self.components_of(vector)]);
                }
                others.iter_mut().for_each(|out| *out = out.constant(0.0));
            },
        );
    }

    /// Set every component to the largest |v_j| of its kind: among positions, among momenta, or in
    /// its own vector.
    pub fn spread_largest(&self, v: &[f64], out: &mut [f64]) {
        for vector in 0..self.count() {
            let own = v[self.components_of(vector)].iter();
            out[vector] = own.fold(0.0, |largest, v| largest.max(v.abs()));
        }
        self.raise_to_kind(&mut out[..self.count()]);
        // From the last one on: no component of a vector comes before the vector's own number.
        for vector in (0..self.count()).rev() {
            let largest = out[vector];
            out[self.components_of(vector)].fill(largest);
        }
    }

    /// Vectors of a role.
    fn with(&self, role: Role) -> impl Iterator<Item = usize> {
        let families = self.families.iter().filter(move |family| family.role == role);
        families.flat_map(|family| family.vectors.clone())
    }

    /// Raise the sizes of positions to that of the largest one, and those of momenta.
    pub fn raise_to_kind<R: Real>(&self, sizes: &mut [R]) {
        for role in [Role::Position, Role::Momentum] {
            if let Some(most) = self.with(role).map(|vector| sizes[vector]).reduce(R::larger) {
                self.with(role).for_each(|vector| sizes[vector] = most);
            }
        }
    }

    /// Raise the squares of vectors that are far smaller than the largest of their kind, or 0, so
    /// that they can move at all: positions, momenta and others by themselves; where all of a kind
    /// are 0, to 1.
    pub fn raise_least(&self, squares: &mut [f64]) {
        for role in [Role::Position, Role::Momentum, Role::Other] {
            let largest = self.with(role).map(|vector| squares[vector]).fold(0.0, f64::max);
            let least = if largest > 0.0 { LEAST_OF_KIND * largest } else { 1.0 };
            self.with(role).for_each(|vector| squares[vector] = squares[vector].max(least));
        }
    }

    /// Set every component to the root of its vector's square.
    pub fn spread_roots(&self, squares: &[f64], out: &mut [f64]) {
        for (vector, square) in squares.iter().enumerate() {
            out[self.components_of(vector)].fill(square.sqrt());
        }
    }
}

/// Compute the pending part with which a lagging estimate begins. `next` is the weight of the field
/// at the end of a step, `first` the field at the start of the first one. The first step then takes
/// its error for 0. If it was made before, `after` is the field at its end and the pending part
/// there, and it takes its error for the one that was found.
pub fn first_pending(
    next: f64,
    first: &[f64],
    after: Option<(&[f64], &[f64])>,
    pending: &mut [f64],
) {
    for (i, pending) in pending.iter_mut().enumerate() {
        let without = -(next * first[i]);
        let with =
            after.map(|(field, sums)| (-next).mul_add(first[i], next.mul_add(field[i], sums[i])));
        *pending = with.filter(|with| with.is_finite()).unwrap_or(without);
    }
}

/// Compute the errors of the vectors of an equal step of the length `h` by an estimate that lags
/// behind: that of the step before, which was as long. `next` is the weight of the field at the end
/// of a step, `first` the first stage. The pending part becomes the estimate.
pub fn lagged_errors<R: Real>(
    (vectors, h): (&Vectors, R),
    next: f64,
    first: &[R],
    pending: &mut [R],
    errors: &mut [R],
) {
    for (pending, first) in pending.iter_mut().zip(first) {
        *pending = h.constant(next).mul_add(*first, *pending);
    }
    vectors.squares(pending, errors);
    let square_of_h = h * h;
    errors.iter_mut().for_each(|error| *error = *error * square_of_h);
}

/// Scales that a run keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// σ.
    pub sizes: bool,
    /// w, and the pending part of an estimate that lags behind.
    pub weights: bool,
    /// True if the estimate lacks the field at the end of the step.
    pub lagged: bool,
}

impl Kept {
    /// Number of values that are carried for the scales of `vectors`.
    pub fn carried(self, vectors: &Vectors) -> usize {
        let count = vectors.count();
        match self {
            Kept { lagged: true, .. } => 2 * count + vectors.dim(),
            Kept { weights: true, .. } => 2 * count,
            Kept { sizes: true, .. } => count,
            _ => 0,
        }
    }
}

/// Scales of a run's state, as they are carried from step to step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scales {
    /// m of every vector of positions and momenta, 0 if it has none; empty if no norm is taken.
    #[serde(with = "exact::list")]
    pub masses: Vec<f64>,
    /// S² of every vector, without the state at the end of a step and the step's own floor; then,
    /// for every momentum, that floor times h².
    #[serde(with = "exact::list")]
    pub norms: Vec<f64>,
    /// Time since the start of the run at which vectors that had always been 0 last began to move
    /// all at once, −∞ if none did.
    #[serde(default = "never", with = "exact::number")]
    pub begun: f64,
    /// Square of the rounding of every vector's rate.
    #[serde(default, with = "exact::list")]
    pub rounding: Vec<f64>,
    /// σ² of every vector, then w², then, for every component, the sum Σ w_j k_j of an estimate
    /// that lacks the field at the end of the step.
    #[serde(with = "exact::list")]
    pub carried: Vec<f64>,
}

impl Default for Scales {
    fn default() -> Scales {
        let [masses, norms, rounding, carried] = [(); 4].map(|()| Vec::new());
        Scales { masses, norms, begun: never(), rounding, carried }
    }
}

impl Scales {
    /// Scales of a run that starts at `x`. `masses` are those of the vectors.
    pub fn new(vectors: &Vectors, kept: Kept, masses: Vec<f64>, x: &[f64]) -> Scales {
        let mut scales = Scales { masses, ..Scales::default() };
        scales.restart(vectors, kept, x);
        scales
    }

    /// Set the scales to those of a run that starts at `x`, with the same masses, in the same memory.
    pub fn restart(&mut self, vectors: &Vectors, kept: Kept, x: &[f64]) {
        let Scales { masses: _, norms, begun, rounding, carried } = self;
        norms.clear();
        *begun = never();
        for (numbers, len) in [(rounding, vectors.count()), (&mut *carried, kept.carried(vectors))]
        {
            numbers.clear();
            numbers.resize(len, 0.0);
        }
        if kept.sizes {
            vectors.squares(x, &mut carried[..vectors.count()]);
        }
    }

    /// Set the uncertainty of the start to `distance`, relative to the size of every vector: it is
    /// off the level set.
    pub fn start_off(&mut self, count: usize, distance: f64) {
        let (sizes, rest) = self.carried.split_at_mut(count);
        for (weight, size) in rest.iter_mut().zip(sizes.iter()) {
            *weight = distance * distance * size;
        }
    }

    /// σ² of `count` vectors.
    pub fn sizes(&self, count: usize) -> &[f64] {
        &self.carried[..count]
    }

    /// w² of `count` vectors.
    pub fn weights(&self, count: usize) -> &[f64] {
        &self.carried[count..2 * count]
    }

    /// Pending part of the last step's estimate, which lacks the field at its end.
    pub fn pending(&mut self, count: usize) -> &mut [f64] {
        &mut self.carried[2 * count..]
    }

    /// Update the scales after a step to vectors of the squared lengths `sizes`, with the squared
    /// errors `errors`.
    pub fn advance(&mut self, sizes: &[f64], errors: &[f64]) {
        let (kept, rest) = self.carried.split_at_mut(sizes.len());
        widest(
            #[inline(always)]
            || advance(kept, rest, sizes, errors),
        );
    }

    /// Compute S² anew from σ²; `absolute` is the square of the smallest scale that the user wants.
    pub fn renew_norms(&mut self, vectors: &Vectors, absolute: f64) {
        let sizes = &self.carried[..vectors.count()];
        set_norms(vectors, sizes, &self.masses, absolute, &mut self.norms);
    }
}

/// Update σ² and the first of w² after a step to vectors of the squared lengths `sizes`, with the
/// squared errors `errors`: w² ← max(0.9 w², |e|² + (u σ)²).
#[inline(always)]
pub fn advance<R: Real>(kept: &mut [R], weights: &mut [R], sizes: &[R], errors: &[R]) {
    for (kept, size) in kept.iter_mut().zip(sizes) {
        *kept = size.largest(*kept);
    }
    for ((weight, error), size) in weights.iter_mut().zip(errors).zip(kept) {
        let fresh = error.constant(UNIT_ROUND_OFF * UNIT_ROUND_OFF).mul_add(*size, *error);
        *weight = fresh.largest(*weight * WEIGHT_MEMORY);
    }
}

/// Compute S² of the vectors and the floors of momenta times h², from σ²; masses are 0 where there
/// are none. See [`Scales::norms`].
pub fn set_norms<R: Real>(
    vectors: &Vectors,
    sizes: &[R],
    masses: &[R],
    absolute: R,
    norms: &mut Vec<R>,
) {
    let [zero, one] = [0.0, 1.0].map(|value| absolute.constant(value));
    let mass = |vector: usize| masses.get(vector).copied().unwrap_or(zero);
    let has_mass = |vector: usize| zero.less(mass(vector));
    // A floor that overflows does not count.
    let counted = |floor: R| R::select(floor.finite(), floor, zero);
    // I and K of the head of this file. That of a single family of one vector would be the
    // vector's own, and its floor a part of itself.
    let between = |role: Role, of: &dyn Fn(R, R) -> R| {
        (vectors.with(role).count() > 1).then(|| {
            vectors.with(role).fold(zero, |most, vector| {
                let own = of(mass(vector), sizes[vector]);
                most.larger(R::select(has_mass(vector), own, zero))
            })
        })
    };
    let inertia = between(Role::Position, &|m, size| m * size);
    let energy = between(Role::Momentum, &|m, size| size / m);
    norms.clear();
    norms.extend(sizes.iter().map(|size| size.larger(absolute)));
    for family in vectors.families() {
        let (momenta, alone) = (family.role == Role::Momentum, family.vectors.len() == 1);
        // Square of a momentum's mass, which is 1 where there is none.
        let unit = |vector: usize| R::select(has_mass(vector), mass(vector) * mass(vector), one);
        let own =
            |vector: usize| if momenta { sizes[vector] / unit(vector) } else { sizes[vector] };
        let most = || family.vectors.clone().map(own).fold(zero, R::larger);
        let within = if alone { zero } else { most() * FAMILY_FLOOR };
        for vector in family.vectors.clone() {
            let floor = if momenta && !alone { unit(vector) * within } else { within };
            let between = match family.role {
                Role::Position => inertia.map(|inertia| inertia * MASS_FLOOR / mass(vector)),
                Role::Momentum => energy.map(|energy| energy * MASS_FLOOR * mass(vector)),
                Role::Other | Role::Beside => None,
            };
            let floor = between
                .map_or(floor, |between| R::select(has_mass(vector), floor.larger(between), floor));
            norms[vector] = norms[vector].larger(counted(floor));
        }
    }
    let pairs = vectors.conjugates();
    // Square of the largest action.
    let actions = (0..pairs).map(|position| sizes[position] * sizes[pairs + position]);
    let action = actions.reduce(R::larger).unwrap_or(zero);
    for position in 0..pairs {
        let momentum = pairs + position;
        let floor = counted(action / norms[position]);
        let floor = R::select(has_mass(momentum), zero, floor);
        norms[momentum] = norms[momentum].larger(floor);
        let m = mass(momentum);
        // m S_q, of a momentum without mass I/S_q.
        let moving = inertia.unwrap_or(zero);
        let moving = moving * moving / norms[position];
        let moving = R::select(has_mass(momentum), m * m * norms[position], moving);
        norms.push(counted(moving * STEP_FLOOR));
    }
}

/// S² of a vector that has been other than 0; of any other, a scale that no error reaches.
pub fn old_norm<R: Real>(norm: R) -> R {
    R::select(norm.constant(0.0).less(norm), norm, norm.constant(f64::MAX))
}

fn never() -> f64 {
    f64::NEG_INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two bodies in the plane, a heavy one that rests and a light one.
    fn bodies() -> Vectors {
        let mut vectors = Vectors::default();
        vectors.push(Role::Position, 2, 2);
        vectors.push(Role::Momentum, 2, 2);
        vectors
    }

    fn scales(x: &[f64], masses: [f64; 2]) -> Scales {
        let kept = Kept { sizes: true, weights: true, lagged: false };
        let mut scales = Scales::new(&bodies(), kept, [masses, masses].concat(), x);
        scales.renew_norms(&bodies(), 0.0);
        scales
    }

    #[test]
    fn vectors_tile_the_state() {
        let vectors = bodies();
        assert_eq!((vectors.count(), vectors.dim()), (4, 8));
        assert_eq!((vectors.components_of(2), vectors.components_of(3)), (4..6, 6..8));
        let mut squares = [0.0; 4];
        vectors.squares(&[3.0, 4.0, 0.0, 0.0, 1.0, 0.0, 0.0, 2.0], &mut squares);
        assert_eq!(squares, [25.0, 0.0, 1.0, 4.0]);
        assert_eq!(Vectors::components(3).families().len(), 3);
    }

    #[test]
    fn resting_vectors_have_the_scale_of_their_family_and_mass() {
        // Positions 0 and 5, momenta 0 and 2 of masses 100 and 1.
        let at = scales(&[0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 2.0], [100.0, 1.0]);
        // 10⁻⁶·25 exceeds 10⁻¹²·25/100; the resting momentum has 10⁻⁶·(100·2)²; one rounding or two
        // each.
        let expected = [25e-6, 25.0, 0.04, 4.0];
        for (found, expected) in at.norms.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 4.0 * f64::EPSILON, "{found} {expected}");
        }
    }

    #[test]
    fn a_momentum_without_mass_has_the_floors_of_an_action() {
        // Actions 5·0 and 2·3, and I = 2².
        let at = scales(&[3.0, 4.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0], [0.0, 1.0]);
        let expected = [(2, 36.0 / 25.0), (3, 9.0), (4, 16e-12 / 25.0)];
        for (k, expected) in expected {
            assert!((at.norms[k] / expected - 1.0).abs() < 4.0 * f64::EPSILON, "{}", at.norms[k]);
        }
    }

    #[test]
    fn powers_of_two_change_no_bit() {
        let x = [0.1, 0.7, 3.0, 4.0, 0.3, 0.0, 0.0, 0.9];
        let (length, mass, time) = (2f64.powi(-31), 2f64.powi(17), 2f64.powi(9));
        let momentum = mass * length / time;
        let scaled: Vec<f64> =
            x.iter().enumerate().map(|(i, x)| x * if i < 4 { length } else { momentum }).collect();
        let (plain, other) = (scales(&x, [3.0, 0.7]), scales(&scaled, [3.0 * mass, 0.7 * mass]));
        for vector in 0..4 {
            let unit = if vector < 2 { length } else { momentum };
            assert_eq!(plain.norms[vector] * unit * unit, other.norms[vector]);
        }
    }

    #[test]
    fn a_momentum_has_a_floor_in_a_step() {
        let at = scales(&[3.0, 4.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0], [10.0, 1.0]);
        // 10⁻¹² (m S_q)².
        for (found, expected) in at.norms[4..].iter().zip([2.5e-9, 4e-12]) {
            assert!((found / expected - 1.0).abs() < 4.0 * f64::EPSILON, "{found} {expected}");
        }
        assert_eq!((bodies().conjugates(), Vectors::components(2).conjugates()), (2, 0));
    }

    #[test]
    fn weights_remember_and_have_a_floor() {
        let mut at = scales(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [1.0; 2]);
        at.advance(&[1.0, 4.0, 1.0, 1.0], &[1e-20, 0.0, f64::NAN, 0.0]);
        assert_eq!(at.sizes(4), [1.0, 4.0, 1.0, 1.0]);
        let floor = UNIT_ROUND_OFF * UNIT_ROUND_OFF;
        assert_eq!(&at.weights(4)[..2], [floor + 1e-20, 4.0 * floor]);
        assert!(at.weights(4)[2].is_nan(), "a weight without a number must be seen");
        at.advance(&[1.0; 4], &[0.0; 4]);
        assert_eq!(at.weights(4)[0], WEIGHT_MEMORY * (floor + 1e-20));
    }
}
