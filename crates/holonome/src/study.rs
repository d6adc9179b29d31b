//! Published experiments as data: runs as typed commands, quantities measured of them, and claims
//! of the paper.
//!
//! A study is a text in TOML. Its claims record the findings at the time when the engine was built;
//! [`Study::judge`] tells whether runs made now agree with them.

mod figure;
mod measure;

pub use figure::{Columns, Figure, Panel, Points, Timing};
pub use measure::{ExpectedMeasure, Quantity, What, short};

use crate::arrays::Arrays;
use crate::error::Error;
use crate::store::{Status, StoredRun};
use crate::summary::StoredSummary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// An experiment: its runs, and the claims about them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Title.
    pub title: String,
    /// The paper, with the places in it.
    pub paper: String,
    /// The runs by name.
    #[serde(rename = "run", default)]
    pub runs: BTreeMap<String, Planned>,
    /// States known from other sources, by name: the numbers of each variable.
    #[serde(rename = "state", default)]
    pub states: BTreeMap<String, BTreeMap<String, Vec<f64>>>,
    /// Claims of the paper.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
    /// Figures of the paper, drawn anew.
    #[serde(rename = "figure", default)]
    pub figures: Vec<Figure>,
    /// Times in the paper, beside our own.
    #[serde(rename = "timing", default)]
    pub timings: Vec<Timing>,
    /// Members of the runs with several values, by their common name.
    #[serde(skip)]
    families: BTreeMap<String, Vec<String>>,
}

/// A run of a study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// Model and options after `holonome run`, separated by blanks.
    pub command: String,
    /// True if the run takes too long for every day.
    #[serde(default)]
    pub long: bool,
    /// True if the study's page leaves it out: the run serves a number or a figure.
    #[serde(default)]
    pub aside: bool,
    /// Values for the `{}` of the command: one run per value, called `NAME-1`, `NAME-2`; `NAME`
    /// stands for all of them.
    #[serde(default)]
    pub each: Vec<String>,
}

/// A claim of a paper, and its verdict.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Statement of the claim.
    pub says: String,
    /// Place in the paper.
    pub place: String,
    /// Verdict on the claim.
    pub verdict: Verdict,
    /// Correction, or reason why the claim does not hold.
    #[serde(default)]
    pub because: Option<String>,
    /// Measures on which the verdict is based.
    pub measures: Vec<ExpectedMeasure>,
}

/// Verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A claim that holds as printed.
    Holds,
    /// A claim that holds with a correction.
    HoldsAsCorrected,
    /// A claim that does not hold.
    DoesNotHold,
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::HoldsAsCorrected => "holds as corrected",
            Verdict::DoesNotHold => "does not hold",
        }
    }
}

/// A run of a study that was made.
pub enum StudyRun {
    /// A stored run, whether it reached its end or not.
    Stored {
        /// Attributes and status of the run.
        run: Box<StoredRun>,
        /// Recorded arrays.
        arrays: Arrays,
        /// Its results.
        summary: Box<StoredSummary>,
    },
    /// A run that did not begin, with the reason.
    Refused(String),
}

impl StudyRun {
    /// Open a run in its folder.
    ///
    /// # Errors
    /// If the folder is not a run, or is damaged.
    pub fn open(path: &Path) -> Result<StudyRun, Error> {
        let run = Box::new(StoredRun::open(path).map_err(Error::store)?);
        let arrays = Arrays::open(path).map_err(Error::store)?;
        let summary = Box::new(StoredSummary::from(run.summary()));
        Ok(StudyRun::Stored { run, arrays, summary })
    }

    /// True if the run began.
    pub fn is_stored(&self) -> bool {
        matches!(self, StudyRun::Stored { .. })
    }

    /// True if the run reached its end.
    fn finished(&self) -> bool {
        matches!(self, StudyRun::Stored { run, .. } if run.status() == Status::Finished)
    }
}

/// A claim with the measured values.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// Statement of the claim.
    pub says: String,
    /// Place in the paper.
    pub place: String,
    /// Recorded verdict.
    pub verdict: Verdict,
    /// Correction, or reason why the claim does not hold.
    pub because: Option<String>,
    /// True if all measured values agree with the verdict; `None` if runs are missing.
    pub agrees: Option<bool>,
    /// Measured values, in the order of the study.
    pub measured: Vec<MeasuredValue>,
}

/// A measured value.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredValue {
    /// Name in words: "error of rk4".
    pub name: String,
    /// The value; `None` if it could not be measured.
    pub value: Option<f64>,
    /// Expected value, in words.
    pub wanted: String,
    /// True if the value is as expected.
    pub agrees: bool,
    /// Reason why it could not be measured.
    pub failed: Option<String>,
}

impl Study {
    /// Read a study.
    ///
    /// # Errors
    /// If the text is not a study, or names a run or a state that does not exist.
    pub fn parse(name: &str, text: &str) -> Result<Study, Error> {
        let wrong = |message: String| Error::option(format!("study {name}: {message}"));
        let mut study: Study = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        study.expand();
        let checks =
            study.figures.iter().map(|figure| ("figure", &figure.place, figure.check(&study)));
        let timings =
            study.timings.iter().map(|timing| ("timing", &timing.place, timing.check(&study)));
        for (what, place, check) in checks.chain(timings) {
            check.map_err(|message| wrong(format!("{what} '{place}': {message}")))?;
        }
        for claim in &study.claims {
            for measure in &claim.measures {
                measure
                    .check(&study)
                    .map_err(|message| wrong(format!("claim '{}': {message}", claim.says)))?;
            }
        }
        Ok(study)
    }

    /// Replace every family by its members.
    fn expand(&mut self) {
        for (name, planned) in std::mem::take(&mut self.runs) {
            if planned.each.is_empty() {
                self.runs.insert(name, planned);
                continue;
            }
            let members: Vec<String> =
                (1..=planned.each.len()).map(|k| format!("{name}-{k}")).collect();
            for (member, value) in members.iter().zip(&planned.each) {
                let command = planned.command.replace("{}", value);
                self.runs.insert(
                    member.clone(),
                    Planned { command, each: Vec::new(), ..planned.clone() },
                );
            }
            self.families.insert(name, members);
        }
    }

    /// Names of the runs with this name: one run, or the members of a family; empty if there is
    /// neither.
    pub fn members<'s>(&'s self, name: &'s String) -> &'s [String] {
        match self.runs.contains_key(name) {
            true => std::slice::from_ref(name),
            false => self.families.get(name).map_or(&[], Vec::as_slice),
        }
    }

    /// Verdicts on the claims by the runs that were made.
    pub fn judge(&self, made: &BTreeMap<String, StudyRun>) -> Vec<Judged> {
        self.claims.iter().map(|claim| self.judge_claim(claim, made)).collect()
    }

    fn judge_claim(&self, claim: &Claim, made: &BTreeMap<String, StudyRun>) -> Judged {
        let all_made = claim
            .measures
            .iter()
            .all(|measure| measure.runs(self).all(|run| made.contains_key(run)));
        let measured: Vec<MeasuredValue> = match all_made {
            true => claim.measures.iter().map(|measure| measure.take(self, made)).collect(),
            false => Vec::new(),
        };
        Judged {
            says: claim.says.clone(),
            place: claim.place.clone(),
            verdict: claim.verdict,
            because: claim.because.clone(),
            agrees: all_made.then(|| measured.iter().all(|measured| measured.agrees)),
            measured,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Problem, RunOptions, Settings, StepSize, prepare};

    const STUDY: &str = r#"
        title = "An oscillator"
        paper = "none"
        run.coarse.command = "oscillator.holo"
        run.fine.command = "oscillator.holo"
        run.damped.command = "oscillator.holo"
        run.refused.command = "oscillator.holo"
        run.later.command = "oscillator.holo"
        run.steps = { command = "oscillator.holo --step {}", each = ["0.1", "0.05"] }
        state.exact = { q = [0.5403023058681398], p = [-0.8414709848078965] }

        [[claim]]
        says = "it is of second order"
        place = "here"
        verdict = "holds"
        measures = [
          { measure = { what = "order", runs = ["coarse", "fine"], from = "exact" }, is = 2.0, within = 0.01 },
          { measure = { what = "error", run = "coarse", from = "exact" }, over = { what = "error", run = "fine", from = "exact" }, is = 4.0, within = 0.01 },
          { measure = { what = "growth", of = ["drift.H"], run = "damped" }, above = 1.5 },
          { measure = { what = "drift", of = ["H"], run = "fine" }, below = 1e-4 },
          { measure = { what = "last", of = ["q"], run = "fine" }, is = 0.5403023, within = 1e-4 },
          { measure = { what = "passage", of = ["drift.H"], level = 1.6e-3, run = "damped" }, above = 0.3, below = 0.4 },
          { measure = { what = "reached", run = "refused" }, below = 0.1 },
        ]

        [[claim]]
        says = "it is exact"
        place = "here"
        verdict = "holds"
        measures = [{ measure = { what = "error", run = "fine", from = "exact" }, below = 1e-12 }]

        [[claim]]
        says = "what was refused is right"
        place = "here"
        verdict = "holds"
        measures = [{ measure = { what = "error", run = "refused", from = "exact" }, below = 1.0 }]

        [[claim]]
        says = "what was not run"
        place = "here"
        verdict = "holds"
        measures = [{ measure = { what = "error", run = "fine", from = "later" }, below = 1.0 }]

        [[figure]]
        place = "Fig. 1"
        title = "errors and an orbit"
        runs = ["fine", "damped", "later"]
        panels = [
          { x = { what = "work" }, y = { what = "error", from = "exact" }, runs = ["steps"] },
          { x = "q", y = ["p"] },
          { y = ["q"] },
        ]

        [[timing]]
        place = "Table 1"
        title = "an oscillator"
        runs = ["fine"]
        printed = [2.0]
    "#;

    fn made(folder: &Path, method: &str, step: f64) -> StudyRun {
        let text = "coordinate q : R = 1\nmomentum p of q = 0\nhamiltonian (p^2 + q^2)/2";
        let problem =
            Problem::from_text("oscillator", text, &Default::default(), &Settings::default())
                .unwrap();
        let options = RunOptions {
            method: method.parse().unwrap(),
            step: StepSize::Fixed(step),
            until: 1.0,
            out: Some(folder.to_path_buf()),
            ..RunOptions::default()
        };
        prepare(problem, options).unwrap().run(&mut |_| crate::Control::Continue).unwrap();
        StudyRun::open(folder).unwrap()
    }

    #[test]
    fn claims_are_judged_by_what_was_measured() {
        let study = Study::parse("oscillator", STUDY).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let runs = [
            ("coarse", made(&at("coarse"), "stormer-verlet-a", 0.02)),
            ("fine", made(&at("fine"), "stormer-verlet-a", 0.01)),
            ("damped", made(&at("damped"), "euler", 0.01)),
            ("refused", StudyRun::Refused("no such method".to_string())),
        ];
        let runs = runs.into_iter().map(|(name, made)| (name.to_string(), made)).collect();
        let judged = study.judge(&runs);
        let agree: Vec<Option<bool>> = judged.iter().map(|claim| claim.agrees).collect();
        assert_eq!(agree, [Some(true), Some(false), Some(false), None], "{judged:#?}");
        let refused = judged[2].measured[0].failed.as_deref();
        assert_eq!(refused, Some("refused was refused: no such method"));
        assert_eq!(judged[1].measured[0].name, "error by fine");
    }

    #[test]
    fn a_study_that_cannot_be_measured_is_no_study() {
        let change = |from: &str, to: &str| {
            assert!(STUDY.contains(from));
            Study::parse("oscillator", &STUDY.replacen(from, to, 1)).unwrap_err().to_string()
        };
        for (from, to, said) in [
            ("run = \"refused\" }, below", "run = \"gone\" }, below", "there is no run 'gone'"),
            ("from = \"later\"", "from = \"never\"", "there is no run or state 'never'"),
            ("below = 1e-12", "beneath = 1e-12", "unknown field `beneath`"),
            ("is = 2.0, within = 0.01", "is = 2.0", "say what it `is` and `within`"),
            ("of = [\"q\"], ", "", "'last' is measured `of` one name"),
            (
                "runs = [\"coarse\", \"fine\"]",
                "run = \"fine\"",
                "'order' is measured of `runs`, two or more",
            ),
            (
                "runs = [\"steps\"]",
                "runs = [\"paces\"]",
                "figure 'Fig. 1': there is no run 'paces'",
            ),
            (
                "x = { what = \"work\" }",
                "x = { what = \"drift\" }",
                "figure 'Fig. 1': 'largest drift' is measured `of` one",
            ),
            (
                "y = [\"q\"] }",
                "y = [\"q\"], from = \"gone\" }",
                "figure 'Fig. 1': there is no run 'gone'",
            ),
            (
                "y = [\"q\"] }",
                "y = [\"q\"], runs = [\"steps\"] }",
                "'steps' is a family, of which only points are drawn",
            ),
            (
                "printed = [2.0]",
                "printed = [2.0, 1.0]",
                "timing 'Table 1': it has `printed` seconds for each",
            ),
        ] {
            let message = change(from, to);
            assert!(
                message.starts_with("study oscillator: ") && message.contains(said),
                "{message}"
            );
        }
    }

    #[test]
    fn numbers_are_short() {
        let all = [0.0, 2.0, 0.539, -0.8, 1.06e-6, 1e-14, 194.382, 12345.0, 0.001];
        let texts = ["0", "2", "0.539", "-0.8", "1.06e-6", "1e-14", "194.38", "1.23e4", "0.001"];
        assert_eq!(all.map(short), texts);
    }
}
