//! Mechanical systems as the numeric half knows them: a vector field, its known invariants, and
//! their Jacobian.
//!
//! Nothing here knows text, symbols or files. Compiled models, interpreted models and plain Rust
//! closures ([`FnSystem`]) all look alike from this side.

mod closures;

use crate::events::Events;
pub use crate::scales::{Role, VectorFamily, Vectors};
pub use closures::FnSystem;
use holonome_arithmetic::{Real, products};
pub use holonome_linear::member_rows::MemberRows;

use holonome_linear::halves::by_halves;
use holonome_linear::pattern::{Pattern, Row};

use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// A vector field with its known invariants. Everything is a slice; scratch comes from the caller.
///
/// `work` is at least [`System::work_len`] long and holds nothing on entry. The functions take
/// `&self`, so that one system serves any number of threads. A value that is undefined is returned
/// as NaN, never as a panic.
pub trait System: Sync {
    /// Length n of the state.
    fn dim(&self) -> usize;

    /// Length of the scratch that any of the functions below may use.
    fn work_len(&self) -> usize {
        0
    }

    /// The vector field X(t, x).
    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]);

    /// Compute the motion's own field, without the terms of a treatment, for testing claims about
    /// the motion; false if the system does not know it.
    fn motion(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) -> bool {
        self.field(t, x, dx, work);
        true
    }

    /// Vectors that make up the state; [`Vectors::components`] if nothing is known of them.
    fn vectors(&self) -> &Vectors;

    /// Name of a vector.
    fn vector_name(&self, vector: usize) -> String {
        format!("component {} of the state", self.vectors().components_of(vector).start + 1)
    }

    /// Mass of every vector of positions and momenta at (t, x), 0 if unknown.
    fn masses(&self, _t: f64, _x: &[f64], masses: &mut [f64], _work: &mut [f64]) {
        masses.fill(0.0);
    }

    /// Static description of the invariants F. By default there are none, and F and DF are never
    /// evaluated.
    fn invariants(&self) -> &Invariants {
        static NONE: LazyLock<Invariants> = LazyLock::new(Invariants::none);
        &NONE
    }

    /// Events along the motion; `None` if there are none.
    fn events(&self) -> Option<&dyn Events> {
        None
    }

    /// F(t, x), of length m.
    fn invariant_values(&self, _t: f64, _x: &[f64], f: &mut [f64], _work: &mut [f64]) {
        assert!(f.is_empty(), "a system with invariants evaluates them");
    }

    /// F(t, x) and the deviation of every group from `target`, for monitoring a run.
    fn monitor(
        &self,
        t: f64,
        target: &[f64],
        x: &[f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
    ) {
        self.invariant_values(t, x, values, work);
        self.invariants().deviations(values, target, deviations);
    }

    /// Treat `x`, a state in or after a step at t, by the treatment of the run's method, with the
    /// targets F₀ and the `carried` scales of the vectors, and then [`System::monitor`] it, if this
    /// system does that by itself, faster than [`Correction`] and [`Projection`] do from F and DF;
    /// the definitions are the same. `None` if it does not, and `x` is as it was.
    ///
    /// [`Correction`]: crate::treatment::correction::Correction
    /// [`Projection`]: crate::treatment::projection::Projection
    fn mend(
        &self,
        _place: Place,
        (_t, _target, _carried): (f64, &[f64], &[f64]),
        _x: &mut [f64],
        _values: &mut [f64],
        _deviations: &mut [f64],
        _work: &mut [f64],
    ) -> Option<Mended> {
        None
    }

    /// Compute the nonzeros of DF(t, x), in the order of the pattern in [`Invariants`].
    fn invariant_jacobian(&self, _t: f64, _x: &[f64], values: &mut [f64], _work: &mut [f64]) {
        assert!(values.is_empty(), "a system with invariants evaluates their Jacobian");
    }

    /// Places of the nonzeros of the field's Jacobian ∂X/∂x; `None` if it is not known. Methods that
    /// need it then take difference quotients for all of its entries.
    fn field_pattern(&self) -> Option<&Pattern> {
        None
    }

    /// Compute these nonzeros at (t, x), row by row.
    fn field_jacobian(&self, _t: f64, _x: &[f64], values: &mut [f64], _work: &mut [f64]) {
        assert!(values.is_empty(), "a system that knows the places of its Jacobian evaluates it");
    }

    /// Compute the derivative of the field along `v`: DX(t, x)·v. By default it is a central
    /// difference, good to about 1e-10 relative, enough for the rates that it serves; it allocates
    /// its scratch.
    fn field_derivative(&self, t: f64, x: &[f64], v: &[f64], out: &mut [f64], work: &mut [f64]) {
        let size = |u: &[f64]| u.iter().map(|u| u * u).sum::<f64>().sqrt();
        let length = size(v);
        if length == 0.0 {
            out.fill(0.0);
            return;
        }
        // ε^(1/3) balances the quotient's truncation error δ² against its round-off ε/δ.
        let delta = f64::EPSILON.cbrt() * (1.0 + size(x)) / length;
        let along = |delta: f64| x.iter().zip(v).map(|(x, v)| x + delta * v).collect::<Vec<_>>();
        let mut behind = vec![0.0; x.len()];
        self.field(t, &along(-delta), &mut behind, work);
        self.field(t, &along(delta), out, work);
        for (out, behind) in out.iter_mut().zip(&behind) {
            *out = (*out - behind) / (2.0 * delta);
        }
    }
}

/// Place of a state that is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the end of a step, from where the motion goes on: a correction moves it no further than
    /// an error of the step may have.
    End,
    /// Within a step, for a sample. An interpolant may be far less accurate than the step, and the
    /// motion does not go on from here, so a correction brings the state to the level set as far as
    /// it has to go.
    Within,
}

/// Result of a system's own treatment of a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mended {
    /// A correction.
    Corrected {
        /// Square of the innovation.
        innovation: f64,
    },
    /// A projection.
    Projected {
        /// Number of iterations.
        iterations: u64,
        /// Square of the distance by which it moved the state.
        moved: f64,
    },
}

/// Static description of the invariants F: their number, the sparsity of DF, and the meaning of the
/// rows to the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Invariants {
    /// Number m of rows of F.
    pub count: usize,
    /// Places of the nonzeros of DF, by its m rows. Shared, as it may be long if there are many
    /// rows.
    pub pattern: Arc<Pattern>,
    /// The first `constraints` rows are constraints and hidden constraints, whose target is 0.
    /// The other rows are H and integrals, whose target is their value at the reference state.
    pub constraints: usize,
    /// Names of the rows; every row belongs to at least one group.
    pub groups: Vec<Group>,
}

/// Some rows of F that the user knows by one name: a constraint, an energy, a vector or matrix
/// integral, or a family of these.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The user's name.
    pub name: String,
    /// Kind of the quantity.
    pub kind: GroupKind,
    /// Rows of each member of the family (a single quantity is one member), with their weights. The
    /// weight counts how many entries of the user's quantity a row stands for: 2 for the upper half
    /// of a symmetric matrix.
    pub members: MemberRows,
    /// True if the group is monitored but not corrected.
    pub monitored_only: bool,
    /// Rows of the members, if these are scalars of weight one in consecutive rows.
    scalars: Option<std::ops::Range<usize>>,
}

/// The kind of an invariant quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupKind {
    /// An imposed constraint g = 0.
    Constraint,
    /// The consequence of a constraint for the momenta.
    Hidden,
    /// The Hamiltonian.
    Hamiltonian,
    /// An inherited first integral.
    Integral,
}

impl Group {
    /// A single quantity on consecutive rows, each of weight one.
    pub fn rows(name: &str, kind: GroupKind, rows: std::ops::Range<u32>) -> Group {
        Group::family(name, kind, [rows.map(|row| (row, 1.0))])
    }

    /// A family of quantities: the rows and weights of each member.
    pub fn family<M: IntoIterator<Item = (u32, f64)>>(
        name: &str,
        kind: GroupKind,
        members: impl IntoIterator<Item = M>,
    ) -> Group {
        let in_usize = |member: M| member.into_iter().map(|(row, weight)| (row as usize, weight));
        Group::of(name, kind, members.into_iter().map(in_usize).collect())
    }

    /// A family of quantities on the rows `members`.
    pub fn of(name: &str, kind: GroupKind, members: MemberRows) -> Group {
        let scalars = members.in_line();
        Group { name: name.into(), kind, members, monitored_only: false, scalars }
    }

    /// Let the group be monitored but not corrected.
    pub fn monitored_only(mut self) -> Group {
        self.monitored_only = true;
        self
    }

    /// Deviation of F from its target: the largest over the members of √(Σ w ΔF²), which for one
    /// scalar of weight one is |ΔF|. A NaN in any row makes it NaN.
    pub fn drift(&self, f: &[f64], target: &[f64]) -> f64 {
        if let Some(rows) = &self.scalars {
            return farthest(&f[rows.clone()], &target[rows.clone()]);
        }
        self.largest_member(|row| f[row] - target[row]).unwrap_or(0.0)
    }

    /// Largest √(Σ w v²) of a member whose rows have the values v, NaN if any is; `None` if there
    /// are no rows.
    pub fn largest_member<R: Real>(&self, value: impl Fn(usize) -> R) -> Option<R> {
        let sizes = self.members.iter().filter_map(|member| match member.single() {
            // One scalar needs no square root, and its square could underflow.
            Some((row, 1.0)) => Some(value(row).abs()),
            Some((row, weight)) => Some(value(row).abs() * weight.sqrt()),
            // A member whose equations follow from others has no rows.
            None => {
                let rows =
                    member.into_iter().map(|(row, weight)| (value(row) * weight, value(row)));
                products(rows).map(|square| square.sqrt())
            }
        });
        sizes.reduce(R::largest)
    }
}

/// max |a_i − b_i|, NaN if any is: several maxima side by side, as each waits for the one before.
fn farthest(a: &[f64], b: &[f64]) -> f64 {
    let (mut largest, mut odd) = ([0.0; 8], [0.0; 8]);
    let mut take = |k: usize, a: f64, b: f64| {
        let distance = (a - b).abs();
        largest[k] = if distance > largest[k] { distance } else { largest[k] };
        odd[k] += 0.0 * distance;
    };
    let ((whole_a, rest_a), (whole_b, rest_b)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in whole_a.iter().zip(whole_b) {
        (0..8).for_each(|k| take(k, a[k], b[k]));
    }
    for (k, (a, b)) in rest_a.iter().zip(rest_b).enumerate() {
        take(k, *a, *b);
    }
    // The comparisons lose NaN; 0·∞ is NaN, too.
    let lost =
        by_halves(odd, |a, b| a + b) != 0.0 && a.iter().zip(b).any(|(a, b)| (a - b).is_nan());
    if lost { f64::NAN } else { by_halves(largest, |a, b| if b > a { b } else { a }) }
}

/// True if all of these are finite: 0·x is 0 for those, and NaN for all else.
pub fn all_finite(numbers: &[f64]) -> bool {
    // Several sums side by side, as a single one would wait for itself.
    let mut sums = [0.0; 8];
    let (whole, rest) = numbers.as_chunks::<8>();
    for chunk in whole {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += 0.0 * x;
        }
    }
    rest.iter().map(|x| 0.0 * x).sum::<f64>() + by_halves(sums, |a, b| a + b) == 0.0
}

/// Rows of F that are the rates of others: hidden constraints.
#[derive(Clone, Debug, Default)]
pub struct ConstraintRates {
    /// Rows that are the rates of as many others in line, with the first of those; ascending.
    stretches: Vec<(Range<usize>, usize)>,
}

impl ConstraintRates {
    /// Row of which a row is the rate.
    pub fn constraint(&self, row: usize) -> Option<usize> {
        let place = self.stretches.partition_point(|(rates, _)| rates.end <= row);
        let (rates, first) = self.stretches.get(place)?;
        row.checked_sub(rates.start).map(|k| first + k)
    }

    /// Append a row that is the rate of another.
    fn push(&mut self, rate: usize, of: usize) {
        match self.stretches.last_mut() {
            Some((rates, first)) if rates.end == rate && *first + rates.len() == of => {
                rates.end += 1;
            }
            _ => self.stretches.push((rate..rate + 1, of)),
        }
    }
}

impl Invariants {
    /// Description without invariants.
    pub fn none() -> Invariants {
        Invariants::default()
    }

    /// Add the columns of the entries of the next row of DF.
    pub fn push_row(&mut self, columns: impl IntoIterator<Item = u32>) {
        Arc::make_mut(&mut self.pattern).push(columns);
    }

    /// `count` invariants of a state of length `dim` whose rows of DF are full.
    pub fn dense(dim: usize, count: usize, constraints: usize, groups: Vec<Group>) -> Invariants {
        Invariants { count, pattern: Arc::new(Pattern::dense(count, dim)), constraints, groups }
    }

    /// Compute the deviation of every group from its target.
    pub fn deviations(&self, f: &[f64], target: &[f64], out: &mut [f64]) {
        for (group, out) in self.groups.iter().zip(out) {
            *out = group.drift(f, target);
        }
    }

    /// Number of stored entries of DF.
    pub fn nonzeros(&self) -> usize {
        self.pattern.nonzeros()
    }

    /// Row `row` of DF.
    pub fn row(&self, row: usize) -> Row<'_> {
        self.pattern.row(row)
    }

    /// Rows that are rates: those of hidden constraints, of the rows of the last group before with
    /// the same name, member by member.
    pub fn constraint_rates(&self) -> ConstraintRates {
        let mut found = ConstraintRates::default();
        for (k, group) in self.groups.iter().enumerate() {
            let before = self.groups[..k].iter().rfind(|before| before.name == group.name);
            let Some(before) = before.filter(|_| group.kind == GroupKind::Hidden) else { continue };
            for (rates, members) in group.members.iter().zip(before.members.iter()) {
                let pairs = rates.into_iter().zip(members);
                pairs.for_each(|((rate, _), (row, _))| found.push(rate, row));
            }
        }
        found.stretches.sort_unstable_by_key(|(rates, _)| rates.start);
        found
    }

    /// For each row, true if it is corrected: it belongs to a group that is not only monitored, and
    /// DF is not empty there.
    pub fn corrected_rows(&self) -> Vec<bool> {
        let mut corrected = vec![false; self.count];
        for group in self.groups.iter().filter(|group| !group.monitored_only) {
            let held = |row: usize| self.row(row).count() > 0;
            group.members.rows().for_each(|(row, _)| corrected[row] = held(row));
        }
        corrected
    }

    /// Name of the first group that holds `row`.
    pub fn row_name(&self, row: usize) -> &str {
        let holds = |group: &&Group| group.members.rows().any(|(r, _)| r == row);
        self.groups.iter().find(holds).map_or("", |group| &group.name)
    }

    /// Inconsistency in this description of a system of dimension `dim`, if there is one.
    pub fn inconsistency(&self, dim: usize) -> Option<&'static str> {
        if self.pattern.count() != self.count {
            return Some("the pattern of DF must have `count` rows");
        }
        if self.pattern.rows().flat_map(|row| row.columns()).any(|column| column as usize >= dim) {
            return Some("a column lies outside the state");
        }
        if self.constraints > self.count {
            return Some("there are more constraints than rows");
        }
        if self
            .groups
            .iter()
            .flat_map(|group| group.members.rows())
            .any(|(row, _)| row >= self.count)
        {
            return Some("a group names a row that does not exist");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_the_largest_member_and_keeps_nan() {
        let group = Group::family(
            "rods",
            GroupKind::Constraint,
            vec![vec![(0, 1.0), (1, 2.0)], vec![(2, 1.0)]],
        );
        // Members: √(3² + 2·2²) = √17 and 4; exact squares, so only the root rounds.
        assert_eq!(group.drift(&[3.0, 2.0, -4.0], &[0.0; 3]), 17f64.sqrt());
        assert_eq!(group.drift(&[3.0, 2.0, -5.0], &[0.0; 3]), 5.0);
        for nan_at in 0..3 {
            let mut f = [3.0, 2.0, -4.0];
            f[nan_at] = f64::NAN;
            assert!(group.drift(&f, &[0.0; 3]).is_nan());
        }
        // A family of scalars in line, of any length, from any row on.
        for count in 1..20 {
            let members = (3..3 + count).map(|row| [(row as u32, 1.0)]);
            let family = Group::family("links", GroupKind::Constraint, members);
            assert_eq!(family.scalars, Some(3..3 + count));
            for worst in 0..count {
                let mut f = vec![0.5; 30];
                f[3 + worst] = -4.0;
                assert_eq!(family.drift(&f, &[1.0; 30]), 5.0);
                f[3 + worst] = f64::NAN;
                assert!(family.drift(&f, &[1.0; 30]).is_nan());
            }
        }
    }

    #[test]
    fn inconsistent_descriptions_are_named() {
        let good = Invariants::dense(3, 2, 1, vec![Group::rows("I", GroupKind::Integral, 0..2)]);
        assert_eq!(good.inconsistency(3), None);
        assert!(good.inconsistency(2).unwrap().contains("column"));
        assert!(Invariants { constraints: 3, ..good.clone() }.inconsistency(3).is_some());
        assert!(Invariants { count: 1, ..good.clone() }.inconsistency(3).is_some());
        let stray = vec![Group::rows("I", GroupKind::Integral, 0..3)];
        assert!(Invariants { groups: stray, ..good }.inconsistency(3).is_some());
        assert_eq!(Invariants::none().inconsistency(0), None);
    }
}
