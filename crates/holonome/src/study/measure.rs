//! Quantities measured of the runs of a study.

use super::{MeasuredValue, Study, StudyRun};
use crate::arrays::{Array, Arrays};
use crate::summary::{Drift, StoredSummary};
use holonome_model::treatment::InvariantKind;
use holonome_model::treatment::feedback::gain_name;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A quantity and its expected value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedMeasure {
    /// The measured quantity.
    pub measure: Quantity,
    /// Divisor, if any.
    #[serde(default)]
    pub over: Option<Quantity>,
    /// Expected value.
    #[serde(default)]
    pub is: Option<f64>,
    /// Relative tolerance of the expected value.
    #[serde(default)]
    pub within: Option<f64>,
    /// Upper bound, exclusive.
    #[serde(default)]
    pub below: Option<f64>,
    /// Lower bound, exclusive.
    #[serde(default)]
    pub above: Option<f64>,
    /// Number that the paper prints or draws, if it differs.
    #[serde(default)]
    pub printed: Option<f64>,
}

/// A number derived from runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// Kind of the quantity.
    pub what: What,
    /// Run of which it is measured.
    #[serde(default)]
    pub run: Option<String>,
    /// Runs of which it is measured together.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Run or state with which it is compared.
    #[serde(default)]
    pub from: Option<String>,
    /// Names of the variables or of the array.
    #[serde(default)]
    pub of: Vec<String>,
    /// Component of the array, from 1.
    #[serde(default)]
    pub component: Option<usize>,
    /// True if a drift is relative to the terms that cancel in it.
    #[serde(default)]
    pub relative: bool,
    /// Level that an array has to exceed.
    #[serde(default)]
    pub level: Option<f64>,
}

/// Kind of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Distance of the last state from another, in the named variables or in all.
    Error,
    /// Largest distance of an array from another run's, sample by sample.
    Distance,
    /// Largest deviation of an invariant (`H`, `rod`, `rod.hidden`, an integral).
    Drift,
    /// Last number of an array.
    Last,
    /// Largest number of an array.
    Largest,
    /// Least number of an array.
    Least,
    /// Mean of an array.
    Mean,
    /// Time of the first sample at which an array is above a level.
    Passage,
    /// Slope of the error over the step for several runs, both in logarithms.
    Order,
    /// Largest absolute value of an array in the second half of a run relative to that in the
    /// first: 1 without a secular trend, 2 for a linear one.
    Growth,
    /// Fraction of its time that a run reached; 0 if it was refused.
    Reached,
    /// A number among the options of the run: its `step`, its `penalty.omega`.
    Option,
    /// Number of evaluations of the field or of the force.
    Work,
    /// Cost in gradients, counted as in comparisons.
    Budget,
    /// Number of linear systems solved.
    Solves,
    /// Seconds of the loop.
    Seconds,
}

impl What {
    fn words(self) -> &'static str {
        match self {
            What::Error => "error",
            What::Distance => "largest distance",
            What::Drift => "largest drift",
            What::Last => "last",
            What::Largest => "largest",
            What::Least => "least",
            What::Mean => "mean",
            What::Passage => "first passage",
            What::Order => "order",
            What::Growth => "growth",
            What::Reached => "part of the time reached",
            What::Option => "option",
            What::Work => "evaluations",
            What::Budget => "work in gradients",
            What::Solves => "linear solves",
            What::Seconds => "seconds",
        }
    }
}

impl Quantity {
    /// Quantity of this kind, without a run.
    pub(crate) fn new(what: What) -> Quantity {
        let (run, from, component, level) = (None, None, None, None);
        Quantity {
            what,
            run,
            runs: Vec::new(),
            from,
            of: Vec::new(),
            component,
            relative: false,
            level,
        }
    }

    /// Copy for a run.
    pub(crate) fn of_run(&self, run: &str) -> Quantity {
        Quantity { run: Some(run.to_string()), ..self.clone() }
    }

    /// Names of the runs and families of which it is measured.
    fn named(&self) -> impl Iterator<Item = &String> {
        self.run.iter().chain(&self.runs)
    }

    /// Names of the runs of which it is measured.
    fn members<'q>(&'q self, study: &'q Study) -> impl Iterator<Item = &'q String> {
        self.named().flat_map(|name| study.members(name))
    }

    /// Label of the quantity, without the runs.
    pub(crate) fn label(&self) -> String {
        match (self.what, &self.of[..]) {
            (What::Option, [name]) => name.clone(),
            _ => self.words(),
        }
    }

    fn words(&self) -> String {
        let of =
            if self.of.is_empty() { String::new() } else { format!(" of {}", self.of.join(", ")) };
        let component = self.component.map(|k| format!("[{k}]")).unwrap_or_default();
        let relative = if self.relative { "relative " } else { "" };
        format!("{relative}{}{of}{component}", self.what.words())
    }

    fn describe(&self) -> String {
        let runs: Vec<&str> = self.named().map(String::as_str).collect();
        format!("{} by {}", self.words(), runs.join(", "))
    }

    /// Check the quantity against its study; an error names the mistake.
    pub(super) fn check(&self, study: &Study) -> Result<(), String> {
        if let Some(run) = self.named().find(|run| study.members(run).is_empty()) {
            return Err(format!("there is no run '{run}'"));
        }
        if let Some(from) = &self.from
            && !study.runs.contains_key(from)
            && !study.states.contains_key(from)
        {
            return Err(format!("there is no run or state '{from}'"));
        }
        let several = self.what == What::Order;
        if several != self.run.is_none() || several != (self.members(study).count() > 1) {
            let wanted = if several { "`runs`, two or more" } else { "one `run`" };
            return Err(format!("'{}' is measured of {wanted}", self.what.words()));
        }
        let compares = matches!(self.what, What::Error | What::Distance | What::Order);
        if compares != self.from.is_some() {
            return Err(format!(
                "'{}' takes {} `from`",
                self.what.words(),
                if compares { "a" } else { "no" }
            ));
        }
        if (self.what == What::Passage) != self.level.is_some() {
            return Err(
                "a 'first passage' is that of a `level`, and nothing else has one".to_string()
            );
        }
        let unnamed = [
            What::Error,
            What::Order,
            What::Reached,
            What::Work,
            What::Budget,
            What::Solves,
            What::Seconds,
        ];
        let named = !unnamed.contains(&self.what);
        if named && self.of.len() != 1 {
            return Err(format!("'{}' is measured `of` one name", self.what.words()));
        }
        Ok(())
    }

    /// Value of the quantity.
    ///
    /// # Errors
    /// If it cannot be measured, with the reason.
    pub(crate) fn value(
        &self,
        study: &Study,
        made: &BTreeMap<String, StudyRun>,
    ) -> Result<f64, String> {
        if self.what == What::Order {
            return self.order(study, made);
        }
        let name = self.run.as_ref().ok_or("it names no run")?;
        let run = &made[name];
        match self.what {
            What::Reached => return Ok(reached(run)),
            What::Error => return self.error(name, study, made),
            _ => {}
        }
        let (run, arrays, summary) = match run {
            StudyRun::Refused(message) => return Err(format!("{name} was refused: {message}")),
            StudyRun::Stored { .. } if !run.finished() => {
                return Err(format!("{name} did not reach its end"));
            }
            StudyRun::Stored { run, arrays, summary } => (run, arrays, summary),
        };
        let cost =
            || summary.cost.as_ref().ok_or_else(|| format!("the summary of {name} has no cost"));
        match self.what {
            What::Drift => self.drift(name, summary),
            What::Option => option_of(run.attributes(), &self.of[0])
                .ok_or_else(|| format!("{name} has no number as its option '{}'", self.of[0])),
            What::Work => cost().map(|cost| (cost.field + cost.gradient) as f64),
            What::Budget => cost().map(|cost| cost.in_gradients() as f64),
            What::Solves => cost().map(|cost| cost.linear_solves as f64),
            What::Seconds => cost().map(|cost| cost.wall_seconds),
            What::Distance => self.distance(name, arrays, made),
            _ => self.of_series(name, arrays),
        }
    }

    /// Largest deviation of an invariant.
    fn drift(&self, name: &str, summary: &StoredSummary) -> Result<f64, String> {
        let of = self.of[0].as_str();
        let drifts = summary.drift.as_ref().ok_or("there are no drifts")?;
        let is_named = |drift: &&Drift| match drift.kind {
            InvariantKind::Penalised => of == "penalised_hamiltonian",
            kind => gain_name(&drift.name, kind) == of,
        };
        let found = drifts.iter().find(is_named);
        let found = found.ok_or_else(|| format!("{name} has no drift of '{of}'"))?;
        let max = if self.relative { found.relative.map(|r| r.max) } else { Some(found.max) };
        max.filter(|max| !max.is_nan()).ok_or_else(|| format!("the drift of '{of}' is no number"))
    }

    /// Largest distance of an array from that of another run.
    fn distance(
        &self,
        name: &str,
        arrays: &Arrays,
        made: &BTreeMap<String, StudyRun>,
    ) -> Result<f64, String> {
        let from = self.from.as_ref().ok_or("it is compared with nothing")?;
        let Some(StudyRun::Stored { arrays: others, .. }) = made.get(from) else {
            return Err(format!("{from} was not run"));
        };
        let other = self.series(from, others)?;
        let own = self.series(name, arrays)?;
        if arrays.times() != others.times() {
            return Err(format!("{name} and {from} have samples at other times"));
        }
        Ok(own.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max))
    }

    /// Quantity of the samples of one array.
    fn of_series(&self, name: &str, arrays: &Arrays) -> Result<f64, String> {
        let series = self.series(name, arrays)?;
        let largest = |part: &[f64]| part.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        match self.what {
            What::Last => series.last().copied().ok_or_else(|| "there are no samples".to_string()),
            What::Largest => Ok(series.into_iter().fold(f64::NEG_INFINITY, f64::max)),
            What::Least => Ok(series.into_iter().fold(f64::INFINITY, f64::min)),
            What::Mean => Ok(series.iter().sum::<f64>() / series.len() as f64),
            What::Growth => {
                let (first, second) = series.split_at(series.len() / 2);
                Ok(largest(second) / largest(first))
            }
            _ => {
                let level = self.level.unwrap_or(f64::INFINITY);
                let first = series.into_iter().position(|value| value > level);
                let time = first.and_then(|sample| arrays.times().get(sample)).copied();
                time.ok_or_else(|| format!("'{}' of {name} does not pass {level}", self.of[0]))
            }
        }
    }

    /// The chosen component of the array of the run `name` at every sample.
    fn series(&self, name: &str, arrays: &Arrays) -> Result<Vec<f64>, String> {
        let of = &self.of[0];
        let array = arrays.get(of).ok_or_else(|| format!("{name} recorded no '{of}'"))?;
        self.component_of(array)
    }

    /// The chosen component at every sample.
    fn component_of(&self, array: &Array) -> Result<Vec<f64>, String> {
        let width = array.row(0).len();
        let component = match self.component {
            None if width == 1 => 0,
            None => return Err(format!("'{}' has {width} components: name one", array.name())),
            Some(k) if (1..=width).contains(&k) => k - 1,
            Some(k) => return Err(format!("'{}' has no component {k}", array.name())),
        };
        Ok(array.rows().map(|row| row[component]).collect())
    }

    /// Distance of the last state of a run from the state with which it is compared.
    fn error(
        &self,
        run: &str,
        study: &Study,
        made: &BTreeMap<String, StudyRun>,
    ) -> Result<f64, String> {
        let from = self.from.as_ref().ok_or("it is compared with nothing")?;
        let own = last_state(made, run)?;
        let other = match study.states.get(from) {
            Some(state) => state.clone(),
            None => last_state(made, from)?,
        };
        let names: Vec<&String> =
            if self.of.is_empty() { other.keys().collect() } else { self.of.iter().collect() };
        let mut sum = 0.0;
        for name in names {
            let both = own.get(name).zip(other.get(name)).filter(|(a, b)| a.len() == b.len());
            let (a, b) = both.ok_or_else(|| format!("'{name}' does not stand in both states"))?;
            sum += a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        }
        Ok(sum.sqrt())
    }

    /// Slope of a straight line through the logarithms of steps and errors.
    fn order(&self, study: &Study, made: &BTreeMap<String, StudyRun>) -> Result<f64, String> {
        let mut points = Vec::new();
        for run in self.members(study) {
            let StudyRun::Stored { run: stored, .. } = &made[run] else {
                return Err(format!("{run} was refused"));
            };
            let step = option_of(stored.attributes(), "step")
                .ok_or_else(|| format!("{run} has no fixed step"))?;
            points.push((step.ln(), self.error(run, study, made)?.ln()));
        }
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let both: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
        Ok(both / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>())
    }
}

impl ExpectedMeasure {
    /// Names of the runs that it needs.
    pub(super) fn runs<'m>(&'m self, study: &'m Study) -> impl Iterator<Item = &'m String> {
        let quantities = std::iter::once(&self.measure).chain(&self.over);
        quantities
            .flat_map(|quantity| quantity.members(study).chain(&quantity.from))
            .filter(|name| study.runs.contains_key(*name))
    }

    /// Check the measure against its study; an error names the mistake.
    pub(super) fn check(&self, study: &Study) -> Result<(), String> {
        self.measure.check(study)?;
        self.over.iter().try_for_each(|over| over.check(study))?;
        match (self.is, self.within, self.below.or(self.above)) {
            (Some(_), Some(within), None) if within > 0.0 => Ok(()),
            (None, None, Some(_)) => Ok(()),
            _ => Err(
                "say what it `is` and `within` which part of it, or what it is `below` or `above`"
                    .to_string(),
            ),
        }
    }

    /// Measure the quantity and compare it with the expected value.
    pub(super) fn take(&self, study: &Study, made: &BTreeMap<String, StudyRun>) -> MeasuredValue {
        let value = self.measure.value(study, made).and_then(|value| match &self.over {
            None => Ok(value),
            Some(over) => over.value(study, made).map(|by| value / by),
        });
        let mut name = self.measure.describe();
        if let Some(over) = &self.over {
            name.push_str(&format!(" over {}", over.describe()));
        }
        let agrees = value.as_ref().is_ok_and(|&value| {
            let near = match (self.is, self.within) {
                (Some(is), Some(within)) => (value - is).abs() <= within * is.abs(),
                _ => true,
            };
            near && self.below.is_none_or(|most| value < most)
                && self.above.is_none_or(|least| value > least)
        });
        let (value, failed) = match value {
            Ok(value) => (Some(value), None),
            Err(message) => (None, Some(message)),
        };
        MeasuredValue { name, value, wanted: self.wanted(), agrees, failed }
    }

    fn wanted(&self) -> String {
        let mut wanted = Vec::new();
        if let (Some(is), Some(within)) = (self.is, self.within) {
            wanted.push(match within {
                0.001.. => format!("{} ± {} %", short(is), short(100.0 * within)),
                _ => format!("{} ± {}", short(is), short(within * is.abs())),
            });
        }
        wanted.extend(self.above.map(|least| format!("above {}", short(least))));
        wanted.extend(self.below.map(|most| format!("below {}", short(most))));
        wanted.extend(self.printed.map(|printed| format!("printed {}", short(printed))));
        wanted.join(", ")
    }
}

/// A number in a readable form: three digits, with an exponent if there would be many zeros.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e4).contains(&size) {
        let text = format!("{value:.2e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        return format!("{digits}e{exponent}");
    }
    let places = if size >= 1.0 || size == 0.0 { 2 } else { 2 - size.log10().floor() as i32 };
    let text = format!("{value:.*}", usize::try_from(places).unwrap_or(2));
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A numeric option of a run: `step`, `penalty.omega`.
fn option_of(attributes: &serde_json::Map<String, Value>, name: &str) -> Option<f64> {
    name.split('.').try_fold(attributes.get("options")?, |value, key| value.get(key))?.as_f64()
}

/// Last state of a run, by variables.
fn last_state(
    made: &BTreeMap<String, StudyRun>,
    name: &str,
) -> Result<BTreeMap<String, Vec<f64>>, String> {
    let summary = match made.get(name) {
        Some(made @ StudyRun::Stored { summary, .. }) if made.finished() => summary,
        Some(StudyRun::Stored { .. }) => return Err(format!("{name} did not reach its end")),
        Some(StudyRun::Refused(message)) => return Err(format!("{name} was refused: {message}")),
        None => return Err(format!("{name} was not run")),
    };
    let state = summary.state.iter();
    Ok(state.map(|(name, array)| (name.clone(), array.numbers.clone())).collect())
}

/// Fraction of its time that a run reached.
fn reached(made: &StudyRun) -> f64 {
    match made {
        StudyRun::Refused(_) => 0.0,
        _ if made.finished() => 1.0,
        StudyRun::Stored { run, arrays, .. } => {
            let until = option_of(run.attributes(), "until").unwrap_or(f64::INFINITY);
            arrays.times().last().copied().unwrap_or(0.0) / until
        }
    }
}
