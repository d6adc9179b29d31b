//! Figures and tables of a study: quantities of runs drawn over others, or beside printed numbers.

use super::{Quantity, Study};
use serde::Deserialize;

/// A figure of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Place in the paper: "Fig. 6".
    pub place: String,
    /// Title.
    pub title: String,
    /// Runs, or families of runs, that its panels draw.
    #[serde(default)]
    pub runs: Vec<String>,
    /// The panels, side by side.
    pub panels: Vec<Panel>,
    /// Differences from the printed figure.
    #[serde(default)]
    pub note: String,
}

/// A panel of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Panel {
    /// A point per run, a line per family, on logarithmic axes.
    Points(Points),
    /// Columns of every run.
    Columns(Columns),
}

/// Two quantities of every run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Points {
    /// Quantity along the horizontal axis.
    pub x: Quantity,
    /// Quantity along the vertical axis.
    pub y: Quantity,
    /// The runs, if not those of the figure.
    #[serde(default)]
    pub runs: Vec<String>,
}

/// Columns drawn over another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// Column along the horizontal axis; the time by default.
    #[serde(default)]
    pub x: Option<String>,
    /// Columns along the vertical axis.
    pub y: Vec<String>,
    /// Run whose columns are subtracted, if differences are drawn.
    #[serde(default)]
    pub from: Option<String>,
    /// True if absolute values are drawn on a logarithmic axis, as drifts always are.
    #[serde(default)]
    pub log: bool,
    /// The runs, if not those of the figure.
    #[serde(default)]
    pub runs: Vec<String>,
}

/// Times printed in a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Place in the paper.
    pub place: String,
    /// Title.
    pub title: String,
    /// The runs; the others are compared with the first.
    pub runs: Vec<String>,
    /// Seconds printed in the paper, run by run.
    pub printed: Vec<f64>,
}

impl Timing {
    /// Check the table against its study; an error names the mistake.
    pub(super) fn check(&self, study: &Study) -> Result<(), String> {
        match self.runs.iter().find(|run| !study.runs.contains_key(*run)) {
            Some(run) => Err(format!("there is no run '{run}'")),
            None if self.runs.is_empty() || self.runs.len() != self.printed.len() => {
                Err("it has `printed` seconds for each of its `runs`".to_string())
            }
            None => Ok(()),
        }
    }
}

impl Figure {
    /// Runs that a panel draws.
    pub fn runs_of<'f>(&'f self, panel: &'f Panel) -> &'f [String] {
        let (Panel::Points(Points { runs, .. }) | Panel::Columns(Columns { runs, .. })) = panel;
        if runs.is_empty() { &self.runs } else { runs }
    }

    /// Check the figure against its study; an error names the mistake.
    pub(super) fn check(&self, study: &Study) -> Result<(), String> {
        for panel in &self.panels {
            let runs = self.runs_of(panel);
            if runs.is_empty() {
                return Err("a panel has no runs".to_string());
            }
            for run in runs {
                let members = study.members(run);
                if members.is_empty() {
                    return Err(format!("there is no run '{run}'"));
                }
                match panel {
                    Panel::Points(points) => {
                        for member in members {
                            [&points.x, &points.y]
                                .iter()
                                .try_for_each(|of| of.of_run(member).check(study))?;
                        }
                    }
                    Panel::Columns(_) if members.len() > 1 => {
                        return Err(format!("'{run}' is a family, of which only points are drawn"));
                    }
                    Panel::Columns(columns) => {
                        if let Some(from) =
                            columns.from.as_ref().filter(|from| !study.runs.contains_key(*from))
                        {
                            return Err(format!("there is no run '{from}'"));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
