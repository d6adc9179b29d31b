//! Search for first integrals that a model does not state.
//!
//! A linear combination Σ c_k f_k of given functions is a first integral if its rate Σ c_k ∇f_k·X
//! vanishes. The rates at more random points of the constraint set than there are functions form a
//! matrix, and the integrals are its null space. What the constraints make dependent is left out
//! before, and products of invariants that are known already afterwards. Coefficients that depend
//! on parameters are recognised by a second search over the functions of one integral, with other
//! values of the parameters.

mod candidates;
mod coefficients;
mod formula;
mod search;
mod writing;

use crate::error::Error;
use crate::problem::Problem;
use candidates::Factors;
use holonome_model::elaborate::model::Model;
use holonome_model::treatment::feedback::gain_name;
use holonome_words::option;
use search::Search;
use serde::Serialize;
use writing::TESTED;

/// Largest degree, and number of candidates up to which the degree is chosen.
const LARGEST_CHOSEN: usize = 6;
const MOST_CHOSEN: usize = 600;

/// Largest number of candidates: elimination takes the third power of it, here ten seconds.
const MOST_CANDIDATES: usize = 2000;

/// Most integrals that a text lists.
const MOST_LISTED: usize = 24;

/// Result of a search.
#[derive(Clone, Debug, Serialize)]
pub struct FirstIntegrals {
    /// The model's name.
    pub model: String,
    /// Invariants that the model has without a search.
    pub known: Vec<String>,
    /// Largest number of factors of a candidate.
    pub degree: usize,
    /// Number of candidates.
    pub candidates: usize,
    /// Integrals, the simplest first.
    pub integrals: Vec<FirstIntegral>,
    /// Remarks on what was not searched.
    pub notes: Vec<String>,
    /// Restriction of the products of two factors, for readers.
    #[serde(skip)]
    summed: &'static str,
    /// Statement of the first integral in the language.
    #[serde(skip)]
    statement: Option<String>,
}

/// A first integral that was found.
#[derive(Clone, Debug, Serialize)]
pub struct FirstIntegral {
    /// Formula in the language.
    pub formula: String,
    /// Largest number of factors of its terms.
    pub degree: usize,
    /// Largest rate over the sum of the absolute values of its terms, at other points than those of
    /// the search.
    pub residual: f64,
    /// Values of the model's parameters for which it is one.
    pub holds: Holds,
}

/// Values of the parameters for which a formula is a first integral.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Holds {
    /// All: they are named in it.
    #[serde(rename = "for all parameters")]
    Always,
    /// Those of the model. With others there is one of the same form with other numbers.
    #[serde(rename = "with other numbers for other parameters")]
    OfThisForm,
    /// Those of the model, and not all others.
    #[serde(rename = "not for all parameters")]
    ForTheseValues,
    /// Not known: with others the model has no values.
    #[serde(rename = "unknown")]
    Unknown,
}

impl FirstIntegrals {
    /// Search for first integrals of a problem among the combinations of products of up to `degree`
    /// factors; by default as many as are searched in about a second.
    ///
    /// # Errors
    /// If the model is not unrolled, or there are too many products.
    pub fn search(problem: &Problem, degree: Option<usize>) -> Result<FirstIntegrals, Error> {
        let model: &Model = &problem.model;
        let (Some((field, _)), Ok(written)) = (&problem.examined.field, problem.model.written())
        else {
            return Err(refusal(problem));
        };
        let unrolled = &written.unrolled;
        let moved_by: Vec<_> =
            unrolled.hamiltonian.iter().chain(&unrolled.field).copied().collect();
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
        // Too many for products of two: those of one member, summed, have the integrals of many
        // bodies among them.
        let sums = if degree == 1 { factors.sums(model) } else { Vec::new() };
        let degree = if sums.is_empty() { degree } else { 2 };
        let summed =
            if sums.is_empty() { "" } else { ", two only of one member and in sums over all" };
        candidates.extend(sums);
        if factors.left_out {
            notes.push(
                "the functions in its formulas are too many to be factors: products of components alone are searched"
                    .to_string(),
            );
        }
        let search = Search { problem, field, factors, candidates };
        let (mut integrals, ended) = search.integrals(degree);
        let found = integrals.len();
        let statement = tested(problem, &mut integrals);
        if integrals.len() < found {
            notes.push(format!(
                "{} more combinations seemed constant at the points of the search, and do not pass as claims of the model",
                found - integrals.len()
            ));
        }
        if let Some((searched, reason)) = ended {
            notes.push(match searched {
                0 => format!("nothing was searched: {reason}"),
                1 => format!("products were not searched: {reason}"),
                n => format!("products of more than {n} factors were not searched: {reason}"),
            });
        }
        let degree = ended.map_or(degree, |(searched, _)| searched);
        let count = search.candidates.iter().filter(|c| c.degree() <= degree).count();
        let known = field
            .groups
            .iter()
            .filter(|g| !g.members.rows().any(|(row, _)| row < field.constraints));
        let known = known.map(|g| gain_name(&g.name, g.kind)).collect();
        Ok(FirstIntegrals {
            model: problem.name.clone(),
            known,
            degree,
            candidates: count,
            summed,
            integrals,
            statement,
            notes,
        })
    }

    /// The integrals as lines of text, and how to state one.
    pub fn to_text(&self) -> String {
        let known = match self.known.is_empty() {
            true => String::new(),
            false => format!(" beside {}", self.known.join(", ")),
        };
        let among = match self.degree {
            0 => String::new(),
            1 => format!(", among {} functions", self.candidates),
            degree => format!(
                ", among {} products of up to {degree} factors{}",
                self.candidates, self.summed
            ),
        };
        let found = match self.integrals.len() {
            0 => "no first integral".to_string(),
            1 => "1 first integral".to_string(),
            n => format!("{n} first integrals"),
        };
        let mut text = format!("{}: {found}{known}{among}\n", self.model);
        for integral in self.integrals.iter().take(MOST_LISTED) {
            let only = match integral.holds {
                Holds::Always | Holds::Unknown => "",
                Holds::OfThisForm => "   (the numbers depend on the parameters)",
                Holds::ForTheseValues => "   (not for all values of the parameters)",
            };
            text.push_str(&format!("  {}{only}\n", integral.formula));
        }
        if let Some(more) = self.integrals.len().checked_sub(MOST_LISTED + 1) {
            text.push_str(&format!("  … and {} more\n", more + 1));
        }
        if let Some(statement) = &self.statement {
            let residual =
                self.integrals.iter().map(|integral| integral.residual).fold(0.0, f64::max);
            text.push_str(&format!(
                "  tested at {TESTED} other random points: rates below {:.0e} of their terms\n  to have one monitored and held, state it in the model:\n    {statement}\n",
                residual.max(f64::EPSILON)
            ));
        }
        for note in &self.notes {
            text.push_str(&format!("  {note}\n"));
        }
        text
    }
}

/// Leave out the integrals that do not pass as claims of the model, and return a statement of the
/// first of the others.
fn tested(problem: &Problem, integrals: &mut Vec<FirstIntegral>) -> Option<String> {
    let text = problem.source.text();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_free = |name: &String| !text.split(|c| !is_part(c)).any(|word| word == name);
    // A name that nothing in the model has: there are finitely many in a text.
    let name = ["I", "J", "K"]
        .map(String::from)
        .into_iter()
        .chain((1..).map(|k| format!("I_{k}")))
        .find(is_free)?;
    integrals.retain(|integral| {
        let stated = format!("{text}\nintegral {name} = {}", integral.formula);
        let stated = Problem::from_text(&problem.name, &stated, &problem.tables, &problem.settings);
        stated.is_ok_and(|stated| !stated.examined.varying.contains(&name))
    });
    integrals.first().map(|first| format!("integral {name} = {}", first.formula))
}

/// Reason why a problem has no unrolled field.
fn refusal(problem: &Problem) -> Error {
    let smaller =
        format!("search a smaller model of the same form: {} replaces sizes", option("set"));
    match &problem.examined.too_large {
        Some(too_large) => Error::option(format!("{too_large}; {smaller}")),
        None if problem.examined.rows.is_some() => Error::option(format!(
            "the model is too large for a search of its first integrals; {smaller}"
        )),
        None => Error::option("the model has no field: its constraints are singular"),
    }
}
