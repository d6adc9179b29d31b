//! Figures and tables of a study: what of which runs is drawn over what, or stands beside which printed number.

use super::{Quantity, Study};
use serde::Deserialize;

/// A figure of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Which one it is: "Fig. 6".
    pub place: String,
    /// What it shows.
    pub title: String,
    /// The runs that its panels draw, or the families of runs.
    #[serde(default)]
    pub runs: Vec<String>,
    /// The panels, side by side.
    pub panels: Vec<Panel>,
    /// What differs from the printed one.
    #[serde(default)]
    pub note: String,
}

/// A panel of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Panel {
    /// A point for each run, a line for each family, on logarithmic axes.
    Points(Points),
    /// Columns of every run.
    Columns(Columns),
}

/// Two numbers of every run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Points {
    /// Along the horizontal axis.
    pub x: Quantity,
    /// Along the vertical axis.
    pub y: Quantity,
    /// The runs, if not those of the figure.
    #[serde(default)]
    pub runs: Vec<String>,
}

/// Columns over another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// Along the horizontal axis; the time if it is left out.
    #[serde(default)]
    pub x: Option<String>,
    /// Along the vertical axis.
    pub y: Vec<String>,
    /// The run from whose columns they differ, where the differences are drawn.
    #[serde(default)]
    pub from: Option<String>,
    /// Whether sizes are drawn, on a logarithmic axis, as those of drifts always are.
    #[serde(default)]
    pub log: bool,
    /// The runs, if not those of the figure.
    #[serde(default)]
    pub runs: Vec<String>,
}

/// Times that a paper prints.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Where.
    pub place: String,
    /// Of what.
    pub title: String,
    /// The runs, of which the first is what the others are compared with.
    pub runs: Vec<String>,
    /// Seconds that the paper prints, run by run.
    pub printed: Vec<f64>,
}

impl Timing {
    /// What stands against it, if something does.
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
    /// The runs that a panel draws.
    pub fn runs_of<'f>(&'f self, panel: &'f Panel) -> &'f [String] {
        let (Panel::Points(Points { runs, .. }) | Panel::Columns(Columns { runs, .. })) = panel;
        if runs.is_empty() { &self.runs } else { runs }
    }

    /// What stands against it, if something does.
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
                            [&points.x, &points.y].iter().try_for_each(|of| of.of_run(member).check(study))?;
                        }
                    }
                    Panel::Columns(_) if members.len() > 1 => {
                        return Err(format!("'{run}' is a family, of which only points are drawn"));
                    }
                    Panel::Columns(columns) => {
                        if let Some(from) = columns.from.as_ref().filter(|from| !study.runs.contains_key(*from)) {
                            return Err(format!("there is no run '{from}'"));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
