//! Published experiments as data: runs as one would type them, what is measured of them, and what the paper claims.
//!
//! A study is a text in TOML. Its claims say what was found when the engine was built; [`Study::judge`] says whether runs
//! made now agree with that.

mod measure;

pub use measure::{Measure, Quantity, What, short};

use crate::arrays::Arrays;
use crate::error::Error;
use crate::store::{Status, StoredRun};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// An experiment: its runs, and the claims about them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// What it is about.
    pub title: String,
    /// The paper, with the places in it.
    pub paper: String,
    /// The runs by name.
    #[serde(rename = "run", default)]
    pub runs: BTreeMap<String, Planned>,
    /// States that are known from elsewhere, by name: the numbers of each variable.
    #[serde(rename = "state", default)]
    pub states: BTreeMap<String, BTreeMap<String, Vec<f64>>>,
    /// What the paper says.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
}

/// A run of a study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// The model and the options behind `holonome run`, parted by blanks.
    pub command: String,
    /// Whether it takes too long for every day.
    #[serde(default)]
    pub long: bool,
}

/// A claim of a paper, and how it fares.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// What is claimed.
    pub says: String,
    /// Where.
    pub place: String,
    /// How it fares.
    pub verdict: Verdict,
    /// What has to be corrected, or why it does not hold.
    #[serde(default)]
    pub because: Option<String>,
    /// What the verdict rests on.
    pub measures: Vec<Measure>,
}

/// How a claim fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it is printed.
    Holds,
    /// With a correction.
    HoldsAsCorrected,
    /// Not at all.
    DoesNotHold,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::HoldsAsCorrected => "holds as corrected",
            Verdict::DoesNotHold => "does not hold",
        }
    }
}

/// A run of a study that was made.
pub enum Made {
    /// It is stored, whether it reached its end or not.
    Stored {
        /// Its attributes and how it ended.
        run: Box<StoredRun>,
        /// What it recorded.
        arrays: Arrays,
    },
    /// It did not begin.
    Refused(String),
}

impl Made {
    /// Opens a run in its folder.
    ///
    /// # Errors
    /// When the folder is no run, or is damaged.
    pub fn open(path: &Path) -> Result<Made, Error> {
        let run = Box::new(StoredRun::open(path).map_err(Error::store)?);
        let arrays = Arrays::open(path).map_err(Error::store)?;
        Ok(Made::Stored { run, arrays })
    }

    /// Whether it reached its end.
    fn finished(&self) -> bool {
        matches!(self, Made::Stored { run, .. } if run.status() == Status::Finished)
    }
}

/// A claim with what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// What is claimed, and where.
    pub says: String,
    /// Where.
    pub place: String,
    /// How it fared when it was recorded.
    pub verdict: Verdict,
    /// What has to be corrected, or why it does not hold.
    pub because: Option<String>,
    /// Whether all that was measured agrees with that; nothing where runs are missing.
    pub agrees: Option<bool>,
    /// What was measured, in the order of the study.
    pub measured: Vec<Measured>,
}

/// Something measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// In words: "error of rk4".
    pub name: String,
    /// The number, if it could be measured.
    pub value: Option<f64>,
    /// What it has to be, in words.
    pub wanted: String,
    /// Whether it is that.
    pub agrees: bool,
    /// Why it could not be measured.
    pub failed: Option<String>,
}

impl Study {
    /// Reads a study.
    ///
    /// # Errors
    /// When the text is no study, or names a run or a state that it does not have.
    pub fn parse(name: &str, text: &str) -> Result<Study, Error> {
        let wrong = |message: String| Error::option(format!("study {name}: {message}"));
        let study: Study = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        for claim in &study.claims {
            for measure in &claim.measures {
                measure.check(&study).map_err(|message| wrong(format!("claim '{}': {message}", claim.says)))?;
            }
        }
        Ok(study)
    }

    /// The claims with what the runs that were made say of them.
    pub fn judge(&self, made: &BTreeMap<String, Made>) -> Vec<Judged> {
        self.claims.iter().map(|claim| self.judge_claim(claim, made)).collect()
    }

    fn judge_claim(&self, claim: &Claim, made: &BTreeMap<String, Made>) -> Judged {
        let all_made = claim.measures.iter().all(|measure| measure.runs(self).all(|run| made.contains_key(run)));
        let measured: Vec<Measured> = match all_made {
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

/// The summary of a stored run, by a path of keys.
fn look_up<'v>(summary: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(summary, |value, key| value.get(key))
}
