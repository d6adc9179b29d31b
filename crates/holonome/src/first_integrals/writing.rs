//! Found combinations as formulas that people read.

use super::candidates::Candidate;
use super::coefficients::{Coefficient, Vocabulary, decimal, rational};
use super::search::{MORE_POINTS, NEGLIGIBLE, Reason, Search};
use super::{FirstIntegral, Holds};
use holonome_integrate::vector::max_or_nan;
use holonome_model::elaborate::model::Model;

/// Points at which a found integral is tested, other ones than those at which it was found.
pub(super) const TESTED: usize = 32;

/// Part of its terms below which the rate of an integral counts as 0 at the tested points.
const CONSTANT: f64 = 1e-10;

/// Relative changes of the parameters, the next one where the model has no values after one.
const CHANGES: [f64; 2] = [0.2, 0.01];

/// Largest number of parameters by which a formula is multiplied to be shorter.
const MOST_FACTORS: usize = 12;

impl Search<'_> {
    /// Integral with its formula, if it passes its test.
    pub fn integral(
        &self,
        degree: usize,
        candidates: &[Candidate],
        vector: &[f64],
    ) -> Option<FirstIntegral> {
        let (mut terms, mut coefficients) = (Vec::new(), Vec::new());
        for (candidate, &c) in candidates.iter().zip(vector).filter(|(_, c)| **c != 0.0) {
            terms.push(candidate.clone());
            coefficients.push(c);
        }
        // Among its own terms alone the coefficients have all their digits.
        let samples = self.samples(&self.problem.model, &terms, terms.len() + MORE_POINTS, 0x0dd5);
        if let Ok([exact]) = self.null_vectors(&terms, &samples).as_deref()
            && exact.iter().all(|c| *c != 0.0)
        {
            coefficients.clone_from(exact);
        }
        let (coefficients, holds) = self.written(&terms, &coefficients);
        let samples = self.samples(&self.problem.model, &terms, TESTED, 0xa3b1);
        let residual = samples.iter().map(|s| {
            let terms = s.rates.iter().zip(&s.sizes).zip(&coefficients);
            let (rate, size) = terms.fold((0.0, 0.0), |(rate, size), ((r, s), c)| {
                (rate + r * c.value, size + s * c.value.abs())
            });
            if rate == 0.0 { 0.0 } else { f64::abs(rate) / size }
        });
        let residual = residual.fold(0.0, max_or_nan);
        if samples.is_empty() || residual.is_nan() || residual > CONSTANT {
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
                    terms = terms
                        .into_iter()
                        .zip(parts)
                        .filter(|(_, is_part)| !is_part)
                        .map(|(term, _)| term)
                        .collect();
                    terms.push(sum);
                    at = 0;
                }
                None => at += 1,
            }
        }
        terms
    }

    /// Sum over all members that begins with a term, and which terms are its parts; `None` if the
    /// terms of some members are missing, or their coefficients are not those of one formula.
    fn sum_from(
        &self,
        terms: &[(Candidate, Coefficient)],
        at: usize,
    ) -> Option<(Vec<bool>, (Candidate, Coefficient))> {
        let sum_with = |term: &Candidate| self.factors.sum_with(&self.problem.model, term);
        let (first, of_first) = &terms[at];
        let (sum, own) = sum_with(first)?;
        let indices: Vec<&str> = sum.indices();
        // Parameters of a member carry all its indices, or one of them.
        let general =
            |c: &Coefficient, values: &[String], which: Option<usize>| -> [Vec<String>; 2] {
                let (from, to) = match which {
                    Some(k) => (format!("[{}]", values[k]), format!("[{}]", indices[k])),
                    None => (format!("[{}]", values.join(",")), format!("[{}]", indices.join(","))),
                };
                [&c.above, &c.below]
                    .map(|list| list.iter().map(|text| text.replace(&from, &to)).collect())
            };
        std::iter::once(None).chain((0..indices.len()).map(Some)).find_map(|which| {
            let written = general(of_first, &own, which);
            let is_part = |(term, c): &(Candidate, Coefficient)| {
                let values = sum_with(term).filter(|(of, _)| *of == sum).map(|(_, values)| values);
                values.is_some_and(|values| {
                    general(c, &values, which) == written && c.is_negative == of_first.is_negative
                })
            };
            let parts: Vec<bool> = terms.iter().map(is_part).collect();
            if parts.iter().filter(|is_part| **is_part).count() < sum.members() {
                return None;
            }
            let [above, below] = written;
            Some((parts, (sum.clone(), Coefficient { above, below, ..of_first.clone() })))
        })
    }

    /// Text of a sum of terms, in the order that a reader expects: single products, then sums range
    /// by range; the first term is positive.
    fn formula(&self, mut terms: Vec<(Candidate, Coefficient)>) -> String {
        terms.sort_by(|(a, _), (b, _)| a.cmp(b));
        let turned = terms.first().is_some_and(|(_, c)| c.is_negative);
        let (mut formula, mut begins, mut range) = (String::new(), true, "");
        for (term, Coefficient { is_negative, above, below, .. }, [over, under]) in
            &self.with_dots(&terms)
        {
            if term.range != range {
                let closing = if range.is_empty() { "" } else { ")" };
                let between = if formula.is_empty() { "" } else { " + " };
                range = &term.range;
                formula.push_str(&format!("{closing}{between}sum({range} : "));
                begins = true;
            }
            formula.push_str(match (std::mem::take(&mut begins), *is_negative != turned) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            });
            let (above, below) = ([&above[..], over].concat(), [&below[..], under].concat());
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

    /// Terms with the texts of their factors above and below a fraction line. The products of all
    /// components of two vectors with one coefficient are an inner product, in place of the first
    /// of them.
    fn with_dots<'t>(
        &self,
        terms: &'t [(Candidate, Coefficient)],
    ) -> Vec<(&'t Candidate, &'t Coefficient, [Vec<String>; 2])> {
        let vectors: Vec<_> =
            terms.iter().map(|(term, _)| self.factors.vectors(&self.problem.model, term)).collect();
        let mut is_written = vec![false; terms.len()];
        let mut texts = Vec::new();
        for (at, (term, coefficient)) in terms.iter().enumerate() {
            if is_written[at] {
                continue;
            }
            let mut text = self.factors.texts(term);
            if let Some((names, 0, width)) = &vectors[at] {
                let part = |k: usize| {
                    let is_part = |&other: &usize| {
                        let same = terms[other].0.range == term.range
                            && terms[other].1.is_alike(coefficient);
                        same && vectors[other]
                            .as_ref()
                            .is_some_and(|(others, number, _)| others == names && *number == k)
                    };
                    (0..terms.len()).find(is_part)
                };
                if let Some(parts) = (0..*width)
                    .map(part)
                    .collect::<Option<Vec<_>>>()
                    .filter(|parts| parts.len() > 1)
                {
                    parts.into_iter().for_each(|part| is_written[part] = true);
                    text = [vec![format!("dot({}, {})", names[0], names[1])], Vec::new()];
                }
            }
            texts.push((term, coefficient, text));
        }
        texts
    }

    /// Coefficients as people write them, by functions of the parameters if they are recognised,
    /// and the values of the parameters that they serve.
    fn written(&self, terms: &[Candidate], coefficients: &[f64]) -> (Vec<Coefficient>, Holds) {
        let model: &Model = &self.problem.model;
        // A parameter that is 0 stays so at first: it leaves out terms, which the formula then does
        // not have.
        let (other, found) = self.changed(terms, false);
        let names = self.factors.names.parameters.iter();
        let parameters: Vec<(&str, f64, f64)> = names
            .zip(other.parameter_values.iter().zip(&model.parameter_values))
            .map(|(name, (&other, &own))| (name.as_str(), other, own))
            .collect();
        // Any coefficient may be 1: the shortest text wins.
        let shortest = |list: &[f64],
                        factors: &[f64],
                        write: &dyn Fn(f64) -> Option<Coefficient>| {
            let by = |unit: f64| list.iter().map(|c| write(c / unit)).collect::<Option<Vec<_>>>();
            let units = list
                .iter()
                .filter(|c| **c != 0.0)
                .flat_map(|c| factors.iter().map(move |factor| c / factor));
            units
                .filter_map(by)
                .min_by_key(|written| written.iter().map(Coefficient::len).sum::<usize>())
        };
        let numbers = || {
            shortest(coefficients, &[1.0], &rational)
                .or_else(|| {
                    shortest(coefficients, &[1.0], &|c| {
                        Some(rational(c).unwrap_or_else(|| decimal(c)))
                    })
                })
                .expect("a decimal number can always be written")
        };
        let found = match found.as_deref() {
            Ok([found]) => found,
            // On a constraint set an integral has many forms, and another one may hold.
            Ok([]) if self.field.constraints > 0 => return (numbers(), Holds::Unknown),
            Ok([]) => return (numbers(), Holds::ForTheseValues),
            Ok(_) => return (numbers(), Holds::OfThisForm),
            Err(_) => return (numbers(), Holds::Unknown),
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
            written
                .iter()
                .zip(coefficients)
                .all(|(w, c)| (w.value - c * factor).abs() <= NEGLIGIBLE * w.value.abs())
        };
        let Some(written) = recognised.filter(is_same) else {
            return (numbers(), Holds::OfThisForm);
        };
        if !model.parameter_values.contains(&0.0) {
            return (written, Holds::Always);
        }
        match self.changed(terms, true).1 {
            Ok(found) if found.is_empty() => (written, Holds::ForTheseValues),
            Ok(_) => (written, Holds::Always),
            Err(_) => (written, Holds::Unknown),
        }
    }

    /// The model with other values of its parameters, those that are 0 included or not, and the
    /// integrals among these terms that it has.
    fn changed(
        &self,
        terms: &[Candidate],
        with_zeros: bool,
    ) -> (Model, Result<Vec<Vec<f64>>, Reason>) {
        let model: &Model = &self.problem.model;
        let (mut other, mut found) = (model.clone(), Err(Reason::FewPoints));
        for part in CHANGES {
            for (k, value) in other.parameter_values.iter_mut().enumerate() {
                // Ratios and products of the values are no simple numbers.
                let change = part * (0.1 + ((k as f64 + 1.0) * 0.618_033_988_749_895).fract());
                let own = model.parameter_values[k];
                *value = match own {
                    0.0 if with_zeros => change,
                    own => own * (1.0 + change),
                };
            }
            let samples = self.samples(&other, terms, terms.len() + MORE_POINTS, 0x5eed);
            found = self.null_vectors(terms, &samples);
            if found.is_ok() {
                break;
            }
        }
        (other, found)
    }
}
