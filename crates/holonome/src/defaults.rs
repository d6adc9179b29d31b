//! Options that a model suggests by its `run` statements, where nobody chose them.

use crate::error::Error;
use crate::options::{RunOptions, Settings, StepSize};
use holonome_integrate::method::Method;
use holonome_model::consistency::SPAN;
use holonome_model::elaborate::model::{DefaultValue, Model, RunDefault};
use holonome_model::functional::Source;
use holonome_model::syntax::diagnostic::Diagnostic;
use holonome_words::option;

/// An option that a model may suggest.
struct Suggested {
    name: &'static str,
    put: Put,
}

/// Way in which the value of an option is put among the others.
enum Put {
    /// The method's name.
    Method,
    /// The start of the run, which is an option of the model.
    Start,
    /// Any finite number.
    Number(fn(&mut RunOptions, f64)),
    /// A number above 0.
    Positive(fn(&mut RunOptions, f64)),
    /// A word, or the message about one that the option does not have.
    Word(fn(&mut RunOptions, &str) -> Result<(), String>),
    /// An integer that is at least this one.
    Count(u64, fn(&mut RunOptions, u64)),
}

/// The options that a model may suggest.
const SUGGESTED: [Suggested; 13] = [
    Suggested { name: "method", put: Put::Method },
    Suggested { name: "step", put: Put::Positive(|run, h| run.step = StepSize::Fixed(h)) },
    Suggested { name: "rtol", put: Put::Positive(|run, rtol| put_tolerance(run, rtol, true)) },
    Suggested { name: "atol", put: Put::Positive(|run, atol| put_tolerance(run, atol, false)) },
    Suggested { name: "max_step", put: Put::Positive(|run, h| run.max_step = Some(h)) },
    Suggested { name: "max_steps", put: Put::Count(1, |run, count| run.max_steps = Some(count)) },
    Suggested { name: "singular", put: Put::Word(put_singular) },
    Suggested { name: "from", put: Put::Start },
    Suggested { name: "until", put: Put::Number(|run, t| run.until = t) },
    Suggested { name: "every", put: Put::Positive(|run, dt| run.every = Some(dt)) },
    Suggested { name: "samples", put: Put::Count(2, |run, count| run.samples = Some(count)) },
    Suggested { name: "friction", put: Put::Positive(|run, rate| run.friction = Some(rate)) },
    Suggested {
        name: "inverse_temperature",
        put: Put::Positive(|run, beta| run.inverse_temperature = Some(beta)),
    },
];

/// Options of which only one can be given, each group by the names of its sides.
const EXCLUSIVE: [(&str, &str); 5] =
    [("step", "rtol"), ("step", "atol"), ("every", "samples"), ("every", "at"), ("samples", "at")];

fn exclude(a: &str, b: &str) -> bool {
    EXCLUSIVE.contains(&(a, b)) || EXCLUSIVE.contains(&(b, a))
}

fn put_singular(run: &mut RunOptions, word: &str) -> Result<(), String> {
    run.singular = word.parse()?;
    Ok(())
}

fn put_tolerance(run: &mut RunOptions, tolerance: f64, relative: bool) {
    // Equal steps that somebody chose have no tolerance.
    if let StepSize::Adaptive { rtol, atol } = &mut run.step {
        *(if relative { rtol } else { atol }) = tolerance;
    }
}

/// Names of the options that a model decides, if the options `given` are chosen.
pub fn left_to_model(given: &[&str]) -> Vec<&'static str> {
    let decides = |given: &&str, name: &str| **given == *name || exclude(given, name);
    let names = SUGGESTED.iter().map(|suggested| suggested.name);
    names.filter(|name| !given.iter().any(|given| decides(given, name))).collect()
}

/// Findings on the options that a model suggests: unknown names and values out of their ranges.
pub(crate) fn examined(model: &Model) -> Vec<Diagnostic> {
    let known = |name: &str| SUGGESTED.iter().find(|suggested| suggested.name == name);
    let mut findings = Vec::new();
    for (number, default) in model.run.iter().enumerate() {
        let RunDefault { name, .. } = default;
        findings.extend(match known(&name.text) {
            Some(suggested) => misfit(&suggested.put, default),
            None => {
                let message = format!("a model suggests no option '{}'", name.text);
                let names = || SUGGESTED.iter().map(|suggested| suggested.name);
                let all = || format!("it may suggest {}", names().collect::<Vec<_>>().join(", "));
                let finding = Diagnostic::error(message, name.span, "unknown");
                Some(finding.suggest(&name.text, names(), all))
            }
        });
        let excluded = |other: &&RunDefault| exclude(&other.name.text, &name.text);
        if let Some(first) = model.run[..number].iter().find(excluded) {
            let message = format!("'{}' and '{}' exclude each other", first.name.text, name.text);
            let finding = Diagnostic::error(message, name.span, "second of them");
            findings.push(finding.related(first.name.span, "first of them"));
        }
    }
    findings
}

/// Finding on a value that its option cannot have.
fn misfit(put: &Put, RunDefault { name, value }: &RunDefault) -> Option<Diagnostic> {
    let (number, span) = match (value, put) {
        (DefaultValue::Text(text), Put::Word(put)) => {
            let reason = put(&mut RunOptions::default(), &text.text).err()?;
            return Some(Diagnostic::error(reason, text.span, "no such word"));
        }
        (DefaultValue::Text(text), _) => {
            let reason = Method::named(&text.text).err()?;
            return Some(Diagnostic::error(reason.to_string(), text.span, "no method"));
        }
        (DefaultValue::Number(number, span, _), _) => (*number, *span),
    };
    let range = match *put {
        Put::Method | Put::Start | Put::Number(_) | Put::Word(_) if number.is_finite() => {
            return None;
        }
        Put::Method | Put::Start | Put::Number(_) | Put::Word(_) => "finite".to_string(),
        Put::Positive(_) if number > 0.0 && number.is_finite() => return None,
        Put::Positive(_) => "positive and finite".to_string(),
        Put::Count(least, _) if counted(number).is_some_and(|n| n >= least) => return None,
        Put::Count(least, _) => format!("an integer, at least {least}"),
    };
    let message = format!("the option '{}' must be {range}, but it is {number}", name.text);
    Some(Diagnostic::error(message, span, "out of its range"))
}

/// The integer that a number is.
fn counted(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..9.0e15).contains(&number)).then_some(number as u64)
}

/// Start and end of a run, which may be before its start: as the settings say, or else the model.
pub(crate) fn span(model: &Model, settings: &Settings) -> (f64, f64) {
    let suggested = |name: &str| match &model.run.iter().find(|run| run.name.text == name)?.value {
        DefaultValue::Number(number, ..) => Some(*number),
        DefaultValue::Text(_) => None,
    };
    let (from, until) = settings.span.unwrap_or_default();
    let from = from.or_else(|| suggested("from")).unwrap_or(SPAN.0);
    (from, until.or_else(|| suggested("until")).unwrap_or(SPAN.1))
}

impl RunOptions {
    /// These options with those of the model that nobody chose; see [`RunOptions::open`].
    ///
    /// # Errors
    /// If there is no such method.
    pub fn completed(mut self, model: &Model) -> Result<RunOptions, Error> {
        let open = std::mem::take(&mut self.open);
        // A run whose outputs are listed ends at the last of them.
        let until_is_open = open.contains(&"until")
            && !model.run.iter().any(|default| default.name.text == "until");
        for Suggested { name, put } in SUGGESTED.iter().filter(|s| open.contains(&s.name)) {
            let Some(RunDefault { value, .. }) = model.run.iter().find(|d| d.name.text == *name)
            else {
                continue;
            };
            match (put, value) {
                (Put::Method, DefaultValue::Text(text)) => self.method = text.text.parse()?,
                (Put::Word(put), DefaultValue::Text(text)) => {
                    put(&mut self, &text.text).map_err(Error::option)?
                }
                (Put::Number(put) | Put::Positive(put), DefaultValue::Number(number, ..)) => {
                    put(&mut self, *number)
                }
                (Put::Count(_, put), DefaultValue::Number(number, ..)) => {
                    put(&mut self, counted(*number).unwrap_or(0))
                }
                _ => {}
            }
        }
        if let (true, Some(&last)) = (until_is_open, self.at.as_ref().and_then(|at| at.last())) {
            self.until = last;
        }
        Ok(self)
    }

    /// Refuses options of the model that are not the same in all trajectories: those that use a
    /// parameter value of which `varies` is true.
    pub(crate) fn refuse_varied(
        &self,
        model: &Model,
        varies: impl Fn(usize) -> bool,
    ) -> Result<(), Error> {
        let changes = |source, slot: u32| source == Source::Parameter && varies(slot as usize);
        let is_varied = |default: &&RunDefault| match &default.value {
            DefaultValue::Number(_, _, formula) => formula.reads_marked(changes).contains(&true),
            DefaultValue::Text(_) => false,
        };
        let open = |name: &str| name == "from" || self.open.contains(&name);
        let mut taken = model.run.iter().filter(|default| open(&default.name.text));
        match taken.find(is_varied) {
            Some(RunDefault { name, .. }) => Err(Error::option(format!(
                "run {0}: the model's value is that of all trajectories, and {vary} changes it; give {1}",
                name.text,
                holonome_words::spelt(&name.text),
                vary = option("vary"),
            ))),
            None => Ok(()),
        }
    }
}
