//! Search for first integrals that a model does not state.
//!
//! A linear combination Σ c_k f_k of given functions is a first integral if its rate Σ c_k ∇f_k·X vanishes. The rates
//! at more random points of the constraint set than there are functions form a matrix, and the integrals are its null
//! space. What the constraints make dependent is left out before, and products of invariants that are known already
//! afterwards. Coefficients that depend on parameters are recognised by a second search over the functions of one
//! integral, with other values of the parameters.

mod candidates;
mod coefficients;
mod formula;

use crate::error::Error;
use crate::problem::Problem;
use candidates::{Candidate, Factors, Sample};
use coefficients::{Coefficient, Vocabulary, decimal, rational};
use holonome_linear::null_space::{Span, independent, null_space, reduce};
use holonome_model::consistency::SPAN;
use holonome_model::elaborate::model::Model;
use holonome_model::treatment::Field;
use holonome_model::treatment::feedback::gain_name;
use holonome_words::option;
use serde_json::{Value, json};

/// Largest degree, and number of candidates up to which the degree is chosen.
const LARGEST_CHOSEN: usize = 6;
const MOST_CHOSEN: usize = 600;

/// Largest number of candidates: elimination takes the third power of it, here ten seconds.
const MOST_CANDIDATES: usize = 2000;

/// Points beyond the number of candidates.
const MORE_POINTS: usize = 40;

/// Points at which a found integral is tested, other ones than those at which it was found.
const TESTED: usize = 32;

/// How many times as far from the initial state as it is large the points are, the best first: far apart, functions
/// differ most; but where forces are those of a collision at most points, all else is rounding.
const SPREADS: [f64; 5] = [4.0, 1.0, 0.25, 1.0 / 16.0, 1.0 / 64.0];

/// The first of these for products of two factors, which differ enough near the initial state, where bodies have the
/// distances at which they act on each other.
const FIRST_OF_SQUARES: usize = 2;

/// Ratio of the quartiles of the points' weights up to which the points are alike.
const ALIKE: f64 = 1e3;

/// Part of the terms below which functions are dependent.
const DEPENDENT: f64 = 1e-9;

/// Part of the terms below which rates count as 0 in the elimination: some thousand roundings.
const VANISHES: f64 = 1e-12;

/// Smallest pivot of functions that are told apart: the coefficients of their integrals have seven digits.
const TOLD_APART: f64 = 1e-9;

/// Coefficients below this part of the largest are rounding.
const NEGLIGIBLE: f64 = 1e-7;

/// Part of its terms below which the rate of an integral counts as 0 at the tested points.
const CONSTANT: f64 = 1e-10;

/// Part of a function by which it may be off a combination of known ones: their coefficients have seven digits.
const KNOWN: f64 = 1e-6;

/// Largest number of products of known integrals in which a found one is looked for.
const MOST_PRODUCTS: usize = 300;

/// Largest number of parameters by which a formula is multiplied to be shorter.
const MOST_FACTORS: usize = 12;

/// Most integrals that a text lists.
const MOST_LISTED: usize = 24;

/// Result of a search.
pub struct FirstIntegrals {
    name: String,
    /// Invariants that the model has without a search.
    known: Vec<String>,
    /// Largest number of factors of a candidate.
    degree: usize,
    candidates: usize,
    /// How products of two factors are restricted, for readers.
    summed: &'static str,
    /// Integrals, the simplest first.
    pub integrals: Vec<FirstIntegral>,
    /// Remarks on what was not searched.
    pub notes: Vec<String>,
}

/// A first integral that was found.
pub struct FirstIntegral {
    /// Formula in the language.
    pub formula: String,
    /// Largest number of factors of its terms.
    pub degree: usize,
    /// Largest rate over the sum of the absolute values of its terms, at other points than those of the search.
    pub residual: f64,
    /// Values of the model's parameters for which it is one.
    pub holds: Holds,
}

/// Values of the parameters for which a formula is a first integral.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// All: they are named in it.
    Always,
    /// Those of the model. With others there is one of the same form with other numbers.
    OfThisForm,
    /// Those of the model, and not all others.
    ForTheseValues,
}

/// Search of one model.
struct Search<'a> {
    problem: &'a Problem,
    field: &'a Field,
    factors: Factors,
    candidates: Vec<Candidate>,
}

impl FirstIntegrals {
    /// Search for first integrals of a problem among the combinations of products of up to `degree` factors; by default
    /// as many as are searched in about a second.
    ///
    /// # Errors
    /// If the model is not unrolled, or there are too many products.
    pub fn search(problem: &Problem, degree: Option<usize>) -> Result<FirstIntegrals, Error> {
        let model: &Model = &problem.model;
        let (Some((field, _)), Ok(written)) = (&problem.examined.field, problem.model.written()) else {
            return Err(refusal(problem));
        };
        let unrolled = &written.unrolled;
        let moved_by: Vec<_> = unrolled.hamiltonian.iter().chain(&unrolled.field).copied().collect();
        let factors = Factors::new(model, field, unrolled.graph.clone(), &moved_by);
        let fits = |degree: &usize| factors.count(*degree) <= MOST_CHOSEN;
        let degree = degree.unwrap_or_else(|| (1..=LARGEST_CHOSEN).rev().find(fits).unwrap_or(1));
        let count = factors.count(degree);
        if count > MOST_CANDIDATES {
            return Err(Error::option(format!(
                "there are {count} products of up to {degree} factors, and a search takes up to {MOST_CANDIDATES}: lower {}, or make the model smaller with {}",
                option("degree"),
                option("set")
            )));
        }
        let mut candidates = factors.products(degree);
        debug_assert_eq!(candidates.len(), count);
        let mut notes = Vec::new();
        // Too many for products of two: those of one member, summed, have the integrals of many bodies among them.
        let sums = if degree == 1 { factors.sums(model) } else { Vec::new() };
        let degree = if sums.is_empty() { degree } else { 2 };
        let summed = if sums.is_empty() { "" } else { ", two only of one member and in sums over all" };
        candidates.extend(sums);
        if factors.left_out {
            notes.push(
                "the functions in its formulas are too many to be factors: products of components alone are searched"
                    .to_string(),
            );
        }
        let search = Search { problem, field, factors, candidates };
        let (integrals, ended) = search.integrals(degree);
        if let Some((searched, reason)) = ended {
            notes.push(match searched {
                0 => format!("nothing was searched: {reason}"),
                1 => format!("products were not searched: {reason}"),
                n => format!("products of more than {n} factors were not searched: {reason}"),
            });
        }
        let degree = ended.map_or(degree, |(searched, _)| searched);
        let count = search.candidates.iter().filter(|c| c.degree() <= degree).count();
        let known = field.groups.iter().filter(|g| !g.members.rows().any(|(row, _)| row < field.constraints));
        let known = known.map(|g| gain_name(&g.name, g.kind)).collect();
        Ok(FirstIntegrals { name: problem.name.clone(), known, degree, candidates: count, summed, integrals, notes })
    }

    /// The integrals as lines of text, and how to state one.
    pub fn to_text(&self) -> String {
        let known = match self.known.is_empty() {
            true => String::new(),
            false => format!(" beside {}", self.known.join(", ")),
        };
        let among = match self.degree {
            0 | 1 => format!("among {} functions", self.candidates),
            degree => format!("among {} products of up to {degree} factors{}", self.candidates, self.summed),
        };
        let found = match self.integrals.len() {
            0 => "no first integral".to_string(),
            1 => "1 first integral".to_string(),
            n => format!("{n} first integrals"),
        };
        let mut text = format!("{}: {found}{known}, {among}\n", self.name);
        for integral in self.integrals.iter().take(MOST_LISTED) {
            let only = match integral.holds {
                Holds::Always => "",
                Holds::OfThisForm => "   (the numbers depend on the parameters)",
                Holds::ForTheseValues => "   (for these values of the parameters only)",
            };
            text.push_str(&format!("  {}{only}\n", integral.formula));
        }
        if let Some(more) = self.integrals.len().checked_sub(MOST_LISTED + 1) {
            text.push_str(&format!("  … and {} more\n", more + 1));
        }
        if let Some(first) = self.integrals.first() {
            let residual = self.integrals.iter().map(|integral| integral.residual).fold(0.0, f64::max);
            text.push_str(&format!(
                "  tested at {TESTED} other random points: rates below {:.0e} of their terms\n  to have one monitored and held, state it in the model:\n    integral I = {}\n",
                residual.max(f64::EPSILON),
                first.formula
            ));
        }
        for note in &self.notes {
            text.push_str(&format!("  {note}\n"));
        }
        text
    }

    /// The same as an object.
    pub fn to_json(&self) -> Value {
        let integral = |i: &FirstIntegral| {
            json!({
                "formula": i.formula,
                "degree": i.degree,
                "residual": i.residual,
                "holds": match i.holds {
                    Holds::Always => "for all parameters",
                    Holds::OfThisForm => "with other numbers for other parameters",
                    Holds::ForTheseValues => "for these parameters",
                },
            })
        };
        json!({
            "model": self.name,
            "known": self.known,
            "degree": self.degree,
            "candidates": self.candidates,
            "integrals": self.integrals.iter().map(integral).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

/// Reason why a problem has no unrolled field.
fn refusal(problem: &Problem) -> Error {
    let smaller = format!("search a smaller model of the same form: {} replaces sizes", option("set"));
    match &problem.examined.too_large {
        Some(too_large) => Error::option(format!("{too_large}; {smaller}")),
        None if problem.examined.rows.is_some() => {
            Error::option(format!("the model is too large for a search of its first integrals; {smaller}"))
        }
        None => Error::option("the model has no field: its constraints are redundant"),
    }
}

impl Search<'_> {
    fn samples(&self, model: &Model, candidates: &[Candidate], count: usize, seed: u64) -> Vec<Sample> {
        let (from, until) = SPAN;
        let span = (model.t0 + from, model.t0 + until);
        // Some more, of which those next to singularities are left out.
        let drawn = count + count / 4;
        let draw = |spread: f64| self.factors.samples((model, self.field), candidates, (span, spread), (drawn, seed));
        let mut samples = Vec::new();
        let degree = candidates.iter().map(Candidate::degree).max().unwrap_or(1);
        let first = if degree > 2 { 0 } else { FIRST_OF_SQUARES };
        for &spread in &SPREADS[first..] {
            let all = draw(spread);
            let (_, weights) = balanced(&all.iter().map(|s| &s.sizes[..]).collect::<Vec<_>>());
            let mut weighted: Vec<(f64, Sample)> = weights.into_iter().zip(all).collect();
            weighted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
            weighted.truncate(count);
            let quartile = |k: usize| weighted.get(k * weighted.len() / 4).map_or(1.0, |(weight, _)| *weight);
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
    fn null_vectors(&self, candidates: &[Candidate], samples: &[Sample]) -> Result<Vec<Vec<f64>>, &'static str> {
        if samples.len() < candidates.len() + MORE_POINTS / 2 {
            return Err("the model has values at too few random points");
        }
        let (sizes, weights) = balanced(&samples.iter().map(|s| &s.sizes[..]).collect::<Vec<_>>());
        let row =
            |(s, weight): (&Sample, &f64)| s.rates.iter().zip(&sizes).map(|(v, size)| v / size * weight).collect();
        let (mut basis, smallest) = null_space(samples.iter().zip(&weights).map(row).collect(), VANISHES);
        if smallest < TOLD_APART {
            return Err("they are too much alike at random points to be told apart in double precision");
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

    /// New first integrals, those of each degree before higher ones, among fewer and better distinguished functions; and
    /// the degree up to which they were searched if that is lower, with the reason.
    fn integrals(&self, degree: usize) -> (Vec<FirstIntegral>, Option<(usize, &'static str)>) {
        let count = self.candidates.len() + MORE_POINTS;
        let samples = self.samples(&self.problem.model, &self.candidates, count, 0x1e57);
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
        let kept: Vec<usize> =
            independent(&values.collect::<Vec<_>>(), DEPENDENT).into_iter().filter_map(|k| k.checked_sub(1)).collect();
        let count = samples.first().map_or(0, |s| s.known.len());
        let known: Vec<Vec<f64>> = (0..count).map(|k| weighted(&|s| s.known[k])).collect();
        // Integrals in the space of candidates, by degree, and those that are no products of others before them.
        let mut space = Span::default();
        space.add(&weights, DEPENDENT);
        let mut generators: Vec<(usize, Vec<f64>)> = Vec::new();
        let mut is_placed = vec![false; known.len()];
        let mut found = Vec::new();
        for degree in 1..=degree {
            let kept: Vec<usize> = kept.iter().copied().filter(|&k| self.candidates[k].degree() <= degree).collect();
            let candidates: Vec<Candidate> = kept.iter().map(|&k| self.candidates[k].clone()).collect();
            let samples: Vec<Sample> = samples.iter().map(|s| s.of(&kept)).collect();
            let mut basis = match self.null_vectors(&candidates, &samples) {
                Ok(basis) => basis,
                Err(reason) => return (found, Some((degree - 1, reason))),
            };
            basis.sort_by_key(|vector| vector.iter().filter(|c| **c != 0.0).count());
            let values = |vector: &[f64]| -> Vec<f64> {
                let value = |s: &Sample| s.values.iter().zip(vector).map(|(f, c)| f * c).sum::<f64>();
                samples.iter().zip(&weights).map(|(s, weight)| weight * value(s)).collect()
            };
            let basis: Vec<(Vec<f64>, Vec<f64>)> = basis.into_iter().map(|vector| (values(&vector), vector)).collect();
            for (values, _) in &basis {
                space.add(values, DEPENDENT);
            }
            for (known, is_placed) in known.iter().zip(&mut is_placed).filter(|(_, is_placed)| !**is_placed) {
                if space.contains(known, KNOWN) {
                    *is_placed = true;
                    generators.push((degree, known.clone()));
                }
            }
            // Other known ones are no combinations of candidates, but products of them may be.
            let apart = || known.iter().zip(&is_placed).filter(|(_, is_placed)| !**is_placed);
            let all = |generators: &[(usize, Vec<f64>)]| {
                let apart = apart().map(|(known, _)| (1, known.clone()));
                products_of(&generators.iter().cloned().chain(apart).collect::<Vec<_>>(), degree, &weights)
            };
            let mut span = all(&generators);
            for (values, vector) in &basis {
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

    /// Integral with its formula, if it passes its test.
    fn integral(&self, degree: usize, candidates: &[Candidate], vector: &[f64]) -> Option<FirstIntegral> {
        let (mut terms, mut coefficients) = (Vec::new(), Vec::new());
        for (candidate, &c) in candidates.iter().zip(vector).filter(|(_, c)| **c != 0.0) {
            terms.push(candidate.clone());
            coefficients.push(c);
        }
        // Among its own terms alone the coefficients have all their digits.
        let samples = self.samples(&self.problem.model, &terms, terms.len() + MORE_POINTS, 0x0dd5);
        if let Ok([exact]) = self.null_vectors(&terms, &samples).as_deref() {
            coefficients.clone_from(exact);
        }
        let (coefficients, holds) = self.written(&terms, &coefficients);
        let samples = self.samples(&self.problem.model, &terms, TESTED, 0xa3b1);
        let residual = samples.iter().map(|s| {
            let terms = s.rates.iter().zip(&s.sizes).zip(&coefficients);
            let (rate, size) =
                terms.fold((0.0, 0.0), |(rate, size), ((r, s), c)| (rate + r * c.value, size + s * c.value.abs()));
            if rate == 0.0 { 0.0 } else { f64::abs(rate) / size }
        });
        let residual = residual.fold(0.0, f64::max);
        if residual.is_nan() || residual > CONSTANT || samples.is_empty() {
            return None;
        }
        let terms = terms.into_iter().zip(coefficients).collect();
        Some(FirstIntegral { formula: self.formula(self.summed(terms)), degree, residual, holds })
    }

    /// These terms, with a sum in place of all that differ in a member alone.
    fn summed(&self, mut terms: Vec<(Candidate, Coefficient)>) -> Vec<(Candidate, Coefficient)> {
        let mut at = 0;
        while at < terms.len() {
            match self.sum_from(&terms, at) {
                Some((parts, sum)) => {
                    terms =
                        terms.into_iter().zip(parts).filter(|(_, is_part)| !is_part).map(|(term, _)| term).collect();
                    terms.push(sum);
                    at = 0;
                }
                None => at += 1,
            }
        }
        terms
    }

    /// Sum over all members that begins with a term, and which terms are its parts; `None` if the terms of some members
    /// are missing, or their coefficients are not those of one formula.
    fn sum_from(&self, terms: &[(Candidate, Coefficient)], at: usize) -> Option<(Vec<bool>, (Candidate, Coefficient))> {
        let sum_with = |term: &Candidate| self.factors.sum_with(&self.problem.model, term);
        let (first, of_first) = &terms[at];
        let (sum, own) = sum_with(first)?;
        let indices: Vec<&str> = sum.indices();
        // Parameters of a member carry all its indices, or one of them.
        let general = |c: &Coefficient, values: &[String], which: Option<usize>| -> [Vec<String>; 2] {
            let (from, to) = match which {
                Some(k) => (format!("[{}]", values[k]), format!("[{}]", indices[k])),
                None => (format!("[{}]", values.join(",")), format!("[{}]", indices.join(","))),
            };
            [&c.above, &c.below].map(|list| list.iter().map(|text| text.replace(&from, &to)).collect())
        };
        std::iter::once(None).chain((0..indices.len()).map(Some)).find_map(|which| {
            let (written, sign) = (general(of_first, &own, which), of_first.value.signum());
            let is_part = |(term, c): &(Candidate, Coefficient)| {
                let values = sum_with(term).filter(|(of, _)| *of == sum).map(|(_, values)| values);
                values.is_some_and(|values| general(c, &values, which) == written && c.value.signum() == sign)
            };
            let parts: Vec<bool> = terms.iter().map(is_part).collect();
            if parts.iter().filter(|is_part| **is_part).count() < sum.members() {
                return None;
            }
            let [above, below] = written;
            Some((parts, (sum.clone(), Coefficient { value: sign, above, below })))
        })
    }

    /// Text of a sum of terms, in the order that a reader expects: single products, then sums range by range; the first
    /// term is positive.
    fn formula(&self, mut terms: Vec<(Candidate, Coefficient)>) -> String {
        terms.sort_by(|(a, _), (b, _)| a.cmp(b));
        let sign = terms.first().map_or(1.0, |(_, c)| c.value.signum());
        let (mut formula, mut begins, mut range) = (String::new(), true, "");
        for (term, Coefficient { value, above, below }) in &terms {
            if term.range != range {
                let closing = if range.is_empty() { "" } else { ")" };
                let between = if formula.is_empty() { "" } else { " + " };
                range = &term.range;
                formula.push_str(&format!("{closing}{between}sum({range} : "));
                begins = true;
            }
            formula.push_str(match (std::mem::take(&mut begins), *value * sign < 0.0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            });
            let [over, under] = self.factors.texts(term);
            let (above, below) = ([&above[..], &over].concat(), [&below[..], &under].concat());
            formula.push_str(&if above.is_empty() { "1".to_string() } else { above.join("*") });
            match &below[..] {
                [] => {}
                [one] => formula.push_str(&format!("/{one}")),
                several => formula.push_str(&format!("/({})", several.join("*"))),
            }
        }
        formula.push_str(if range.is_empty() { "" } else { ")" });
        formula
    }

    /// Coefficients as people write them, by functions of the parameters if they are recognised, and the values of the
    /// parameters that they serve.
    fn written(&self, terms: &[Candidate], coefficients: &[f64]) -> (Vec<Coefficient>, Holds) {
        let model: &Model = &self.problem.model;
        let mut other = model.clone();
        for (k, value) in other.parameter_values.iter_mut().enumerate() {
            // Other values, whose ratios and products are no simple numbers.
            *value *= 1.0 + 0.2 * ((k + 1) as f64 * 0.618_033_988_749_895).fract() + 0.017;
        }
        let samples = self.samples(&other, terms, terms.len() + MORE_POINTS, 0x5eed);
        let found = self.null_vectors(terms, &samples).unwrap_or_default();
        let names = self.factors.names.parameters.iter();
        let parameters: Vec<(&str, f64, f64)> = names
            .zip(other.parameter_values.iter().zip(&model.parameter_values))
            .map(|(name, (&other, &own))| (name.as_str(), other, own))
            .collect();
        // Any coefficient may be 1: the shortest text wins.
        let shortest = |list: &[f64], factors: &[f64], write: &dyn Fn(f64) -> Option<Coefficient>| {
            let by = |unit: f64| list.iter().map(|c| write(c / unit)).collect::<Option<Vec<_>>>();
            let units = list.iter().filter(|c| **c != 0.0).flat_map(|c| factors.iter().map(move |factor| c / factor));
            units.filter_map(by).min_by_key(|written| written.iter().map(Coefficient::len).sum::<usize>())
        };
        let numbers = || {
            shortest(coefficients, &[1.0], &rational)
                .or_else(|| shortest(coefficients, &[1.0], &|c| Some(rational(c).unwrap_or_else(|| decimal(c)))))
                .expect("a decimal number can always be written")
        };
        let [found] = &found[..] else {
            let holds = if found.is_empty() { Holds::ForTheseValues } else { Holds::OfThisForm };
            return (numbers(), holds);
        };
        // And any coefficient may be a parameter.
        let factors: Vec<f64> = std::iter::once(1.0)
            .chain(parameters.iter().map(|&(_, other, _)| other).filter(|v| *v != 0.0))
            .take(1 + MOST_FACTORS)
            .collect();
        let vocabulary = Vocabulary::new(&parameters);
        let recognised = shortest(found, &factors, &|c| vocabulary.write(c));
        // At the model's own values they are those that were found, up to a common factor.
        let is_same = |written: &Vec<Coefficient>| {
            let factor = written[0].value / coefficients[0];
            written.iter().zip(coefficients).all(|(w, c)| (w.value - c * factor).abs() <= NEGLIGIBLE * w.value.abs())
        };
        match recognised.filter(is_same) {
            Some(written) => (written, Holds::Always),
            None => (numbers(), Holds::OfThisForm),
        }
    }
}

/// Sizes of the columns of a matrix of sizes, and weights of its rows: with both taken out, no entry is above 1, and few
/// columns and rows are small.
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
    let weight = |row: &&[f64]| 1.0 / or_one(row.iter().zip(&sizes).map(|(v, size)| v / size).fold(0.0, f64::max));
    let weights = rows.iter().map(weight).collect();
    (sizes, weights)
}

/// Span of the products of generators, each given by its degree and values, with the constant: up to twice a degree, the
/// lowest degrees first. All values are multiplied by the points' weights.
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
                    let values = values.iter().zip(factor).zip(weights).map(|((a, b), weight)| a * b / weight);
                    of_degree[total + more].push((k, values.collect()));
                }
            }
        }
    }
    span
}
