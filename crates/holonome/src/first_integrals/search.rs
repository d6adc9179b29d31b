//! Combinations of candidates whose rates vanish.

use super::FirstIntegral;
use super::candidates::{Candidate, Factors, Sample};
use crate::problem::Problem;
use holonome_linear::null_space::{Span, independent, null_space, reduce};
use holonome_model::consistency::SPAN;
use holonome_model::elaborate::model::Model;
use holonome_model::treatment::Field;
use std::fmt::{Display, Formatter};

/// Points beyond the number of candidates.
pub(super) const MORE_POINTS: usize = 40;

/// How many times as far from the initial state as it is large the points are, the best first: far
/// apart, functions differ most; but where forces are those of a collision at most points, all else
/// is rounding.
const SPREADS: [f64; 5] = [4.0, 1.0, 0.25, 1.0 / 16.0, 1.0 / 64.0];

/// The first of these for products of two factors, which differ enough near the initial state,
/// where bodies have the distances at which they act on each other.
const FIRST_OF_SQUARES: usize = 2;

/// Ratio of the quartiles of the points' weights up to which the points are alike.
const ALIKE: f64 = 1e3;

/// Part of the terms below which functions are dependent.
const DEPENDENT: f64 = 1e-9;

/// Part of the terms below which rates count as 0 in the elimination: rounding of a speed
/// that counts as slow.
const VANISHES: f64 = 2e-11;

/// Smallest pivot of functions that are told apart: the coefficients of their integrals have seven
/// digits.
const TOLD_APART: f64 = 1e-9;

/// Part of a function by which it may be off a combination of known ones: their coefficients have
/// seven digits.
const KNOWN: f64 = 1e-6;

/// Largest number of products of known integrals in which a found one is looked for.
const MOST_PRODUCTS: usize = 300;

/// Coefficients below this part of the largest are rounding.
pub(super) const NEGLIGIBLE: f64 = 1e-7;

/// Degree up to which was searched, and why not further.
pub(super) type Ended = (usize, Reason);

/// Reason why products of a degree were not searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    FewPoints,
    Alike,
    Enough,
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Reason::FewPoints => "the model has values at too few random points",
            Reason::Alike => {
                "they are too much alike at random points to be told apart in double precision"
            }
            Reason::Enough => "as many integrals are known as the state has components",
        })
    }
}

/// Search of one model.
pub(super) struct Search<'a> {
    pub problem: &'a Problem,
    pub field: &'a Field,
    pub factors: Factors,
    pub candidates: Vec<Candidate>,
}

impl Search<'_> {
    /// Candidates at up to `count` random points of a run, with the model's parameters.
    pub fn samples(
        &self,
        model: &Model,
        candidates: &[Candidate],
        count: usize,
        seed: u64,
    ) -> Vec<Sample> {
        let degree = candidates.iter().map(Candidate::degree).max().unwrap_or(1);
        let first = if degree > 2 { 0 } else { FIRST_OF_SQUARES };
        self.samples_near(model, candidates, count, seed, &SPREADS[first..])
    }

    /// [`Search::samples`] with the first of these spreads for which the points are alike.
    fn samples_near(
        &self,
        model: &Model,
        candidates: &[Candidate],
        count: usize,
        seed: u64,
        spreads: &[f64],
    ) -> Vec<Sample> {
        let (from, until) = SPAN;
        let span = (model.t0 + from, model.t0 + until);
        // Some more, of which those next to singularities are left out.
        let drawn = count + count / 4;
        let draw = |spread: f64| {
            self.factors.samples((model, self.field), candidates, (span, spread), (drawn, seed))
        };
        let mut samples = Vec::new();
        for &spread in spreads {
            let all = draw(spread);
            let (_, weights) = balanced(&all.iter().map(|s| &s.sizes[..]).collect::<Vec<_>>());
            let mut weighted: Vec<(f64, Sample)> = weights.into_iter().zip(all).collect();
            weighted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
            weighted.truncate(count);
            let quartile =
                |k: usize| weighted.get(k * weighted.len() / 4).map_or(1.0, |(weight, _)| *weight);
            let are_alike = quartile(1) <= ALIKE * quartile(3);
            samples = weighted.into_iter().map(|(_, sample)| sample).collect();
            if samples.len() == count && are_alike {
                break;
            }
        }
        samples
    }

    /// Null space of the rates of some candidates over `samples`, in reduced form.
    ///
    /// # Errors
    /// The reason why it is not known.
    pub fn null_vectors(
        &self,
        candidates: &[Candidate],
        samples: &[Sample],
    ) -> Result<Vec<Vec<f64>>, Reason> {
        if samples.len() < candidates.len() + MORE_POINTS / 2 {
            return Err(Reason::FewPoints);
        }
        let (sizes, weights) = balanced(&samples.iter().map(|s| &s.sizes[..]).collect::<Vec<_>>());
        let row = |(s, weight): (&Sample, &f64)| {
            s.rates.iter().zip(&sizes).map(|(v, size)| v / size * weight).collect()
        };
        let (mut basis, smallest) =
            null_space(samples.iter().zip(&weights).map(row).collect(), VANISHES);
        if smallest < TOLD_APART {
            return Err(Reason::Alike);
        }
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        let rank = |c: &Candidate| (c.degree(), self.factors.depends_on_time(c));
        order.sort_by_key(|&k| (std::cmp::Reverse(rank(&candidates[k])), k));
        reduce(&mut basis, &order, NEGLIGIBLE);
        for vector in &mut basis {
            vector.iter_mut().zip(&sizes).for_each(|(c, size)| *c /= size);
            // The first coefficient is a pivot, and as simple as a number can be.
            let first = order.iter().map(|&k| vector[k]).find(|c| *c != 0.0).unwrap_or(1.0);
            vector.iter_mut().for_each(|c| *c /= first);
        }
        Ok(basis)
    }

    /// [`Search::null_vectors`] of the candidates with these numbers, as vectors over all
    /// candidates.
    fn null_vectors_among(
        &self,
        candidates: &[Candidate],
        samples: &[Sample],
        among: &[usize],
    ) -> Result<Vec<Vec<f64>>, Reason> {
        let few: Vec<Candidate> = among.iter().map(|&k| candidates[k].clone()).collect();
        let samples: Vec<Sample> = samples.iter().map(|s| s.of(among)).collect();
        let whole = |vector: Vec<f64>| {
            let mut whole = vec![0.0; candidates.len()];
            among.iter().zip(vector).for_each(|(&k, c)| whole[k] = c);
            whole
        };
        Ok(self.null_vectors(&few, &samples)?.into_iter().map(whole).collect())
    }

    /// New first integrals, those of each degree before higher ones, among fewer and better
    /// distinguished functions; and the degree up to which they were searched if that is lower,
    /// with the reason.
    pub fn integrals(&self, degree: usize) -> (Vec<FirstIntegral>, Option<Ended>) {
        let mut best: Option<(Vec<FirstIntegral>, Option<Ended>)> = None;
        let first = if degree > 2 { 0 } else { FIRST_OF_SQUARES };
        for spreads in (first..SPREADS.len()).map(|first| &SPREADS[first..]) {
            let (found, ended) = self.integrals_near(degree, spreads);
            let searched = |ended: &Option<Ended>| ended.map_or(degree, |(searched, _)| searched);
            if best.as_ref().is_none_or(|(_, known)| searched(known) < searched(&ended)) {
                best = Some((found, ended));
            }
            if ended.is_none_or(|(_, reason)| reason == Reason::Enough) {
                break;
            }
        }
        best.unwrap_or_default()
    }

    fn integrals_near(
        &self,
        degree: usize,
        spreads: &[f64],
    ) -> (Vec<FirstIntegral>, Option<Ended>) {
        let count = self.candidates.len() + MORE_POINTS;
        let samples =
            self.samples_near(&self.problem.model, &self.candidates, count, 0x1e57, spreads);
        let (_, weights) = balanced(&samples.iter().map(|s| &s.extents[..]).collect::<Vec<_>>());
        let weighted = |value: &dyn Fn(&Sample) -> f64| -> Vec<f64> {
            samples.iter().zip(&weights).map(|(s, weight)| weight * value(s)).collect()
        };
        let column = |k: usize| {
            // What is rounding at every point is 0 on the constraint set.
            let vanishes = samples.iter().all(|s| s.values[k].abs() <= DEPENDENT * s.extents[k]);
            weighted(&|s| if vanishes { 0.0 } else { s.values[k] })
        };
        // The constant function comes before all others; components before products of them.
        let values = std::iter::once(weights.clone()).chain((0..self.candidates.len()).map(column));
        let kept: Vec<usize> = independent(&values.collect::<Vec<_>>(), DEPENDENT)
            .into_iter()
            .filter_map(|k| k.checked_sub(1))
            .collect();
        let count = samples.first().map_or(0, |s| s.known.len());
        let known: Vec<Vec<f64>> = (0..count).map(|k| weighted(&|s| s.known[k])).collect();
        // Integrals in the space of candidates, by degree, and those that are no products of others
        // before them.
        let mut space = Span::default();
        space.add(&weights, DEPENDENT);
        let mut generators: Vec<(usize, Vec<f64>)> = Vec::new();
        let mut is_placed = vec![false; known.len()];
        let mut found = Vec::new();
        for degree in 1..=degree {
            // No more than so many are independent. Of those that depend on others there may be any
            // number.
            if known.len() + found.len() >= self.field.dimension {
                return (found, Some((degree - 1, Reason::Enough)));
            }
            let kept: Vec<usize> =
                kept.iter().copied().filter(|&k| self.candidates[k].degree() <= degree).collect();
            let candidates: Vec<Candidate> =
                kept.iter().map(|&k| self.candidates[k].clone()).collect();
            let samples: Vec<Sample> = samples.iter().map(|s| s.of(&kept)).collect();
            let mut basis = match self.null_vectors(&candidates, &samples) {
                Ok(basis) => basis,
                Err(reason) => return (found, Some((degree - 1, reason))),
            };
            basis.sort_by_key(|vector| vector.iter().filter(|c| **c != 0.0).count());
            let values = |vector: &[f64]| -> Vec<f64> {
                let value =
                    |s: &Sample| s.values.iter().zip(vector).map(|(f, c)| f * c).sum::<f64>();
                samples.iter().zip(&weights).map(|(s, weight)| weight * value(s)).collect()
            };
            let basis: Vec<(Vec<f64>, Vec<f64>)> =
                basis.into_iter().map(|vector| (values(&vector), vector)).collect();
            for (values, _) in &basis {
                space.add(values, DEPENDENT);
            }
            for (known, is_placed) in
                known.iter().zip(&mut is_placed).filter(|(_, is_placed)| !**is_placed)
            {
                if space.contains(known, KNOWN) {
                    *is_placed = true;
                    generators.push((degree, known.clone()));
                }
            }
            // Other known ones are no combinations of candidates, but products of them may be.
            let apart = || known.iter().zip(&is_placed).filter(|(_, is_placed)| !**is_placed);
            let all = |generators: &[(usize, Vec<f64>)]| {
                let apart = apart().map(|(known, _)| (1, known.clone()));
                products_of(
                    &generators.iter().cloned().chain(apart).collect::<Vec<_>>(),
                    degree,
                    &weights,
                )
            };
            // Those of single members come first: the others may be sums of one of them and
            // products of known ones.
            let of_members: Vec<usize> = (0..candidates.len())
                .filter(|&k| self.factors.is_of_one_member(&self.problem.model, &candidates[k]))
                .collect();
            let mut own = match of_members.len() < candidates.len() {
                true => {
                    self.null_vectors_among(&candidates, &samples, &of_members).unwrap_or_default()
                }
                false => Vec::new(),
            };
            own.sort_by_key(|vector| vector.iter().filter(|c| **c != 0.0).count());
            let own: Vec<(Vec<f64>, Vec<f64>)> =
                own.into_iter().map(|vector| (values(&vector), vector)).collect();
            let mut span = all(&generators);
            for (values, vector) in own.iter().chain(&basis) {
                if span.contains(values, KNOWN) {
                    continue;
                }
                if let Some(integral) = self.integral(degree, &candidates, vector) {
                    found.push(integral);
                    generators.push((degree, values.clone()));
                    span = all(&generators);
                }
            }
        }
        (found, None)
    }
}

/// Sizes of the columns of a matrix of sizes, and weights of its rows: with both taken out, no
/// entry is above 1, and few columns and rows are small.
fn balanced(rows: &[&[f64]]) -> (Vec<f64>, Vec<f64>) {
    let columns = rows.first().map_or(0, |row| row.len());
    let or_one = |size: f64| if size > 0.0 && size.is_finite() { size } else { 1.0 };
    // The geometric mean: no single point decides, however near it is to a singularity.
    let size = |k: usize| {
        let logarithms = rows.iter().map(|row| row[k]).filter(|size| *size > 0.0).map(f64::ln);
        let (sum, count) = logarithms.fold((0.0, 0.0), |(sum, count), l| (sum + l, count + 1.0));
        if count > 0.0 { f64::exp(sum / count) } else { 1.0 }
    };
    let sizes: Vec<f64> = (0..columns).map(|k| or_one(size(k))).collect();
    let weight = |row: &&[f64]| {
        1.0 / or_one(row.iter().zip(&sizes).map(|(v, size)| v / size).fold(0.0, f64::max))
    };
    let weights = rows.iter().map(weight).collect();
    (sizes, weights)
}

/// Span of the products of generators, each given by its degree and values, with the constant: up
/// to twice a degree, the lowest degrees first. All values are multiplied by the points' weights.
fn products_of(generators: &[(usize, Vec<f64>)], degree: usize, weights: &[f64]) -> Span {
    let mut span = Span::default();
    let mut room = MOST_PRODUCTS.min(weights.len() - weights.len() / 4);
    // Products with the number of their last generator, by degree.
    let mut of_degree: Vec<Vec<(usize, Vec<f64>)>> = vec![Vec::new(); 2 * degree + 1];
    of_degree[0].push((0, weights.to_vec()));
    for total in 0..=2 * degree {
        for (last, values) in std::mem::take(&mut of_degree[total]) {
            if room == 0 && total > degree {
                return span;
            }
            room = room.saturating_sub(1);
            span.add(&values, DEPENDENT);
            for (k, (more, factor)) in generators.iter().enumerate().skip(last) {
                if *more > 0 && total + more <= 2 * degree {
                    let values = values
                        .iter()
                        .zip(factor)
                        .zip(weights)
                        .map(|((a, b), weight)| a * b / weight);
                    of_degree[total + more].push((k, values.collect()));
                }
            }
        }
    }
    span
}
