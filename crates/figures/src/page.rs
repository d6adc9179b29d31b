//! Pages: panels in one HTML file that needs no network.

#[cfg(feature = "figures")]
mod blob;
#[cfg(feature = "figures")]
mod html;

use crate::chart::Chart;
use crate::motion::Motion;
use serde::Serialize;
use std::collections::BTreeMap;

/// A page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Page {
    /// Title.
    pub title: String,
    /// Facts below the title: short texts with their names.
    pub facts: Vec<(String, String)>,
    /// Warnings, which have to be read first.
    pub warnings: Vec<String>,
    /// Sections, in order.
    #[serde(skip)]
    pub sections: Vec<Section>,
    /// Seconds after which the page is read again, while its content grows.
    pub reload: Option<u32>,
    /// Name of the program that made it.
    pub made_by: String,
}

/// Panels with a title.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Section {
    /// Title; empty if none is needed.
    pub title: String,
    /// Page to which the title leads, if any.
    pub link: Option<String>,
    /// True if only the title is shown at first.
    pub folded: bool,
    /// Panels, side by side where there is room.
    #[serde(skip)]
    pub panels: Vec<Panel>,
}

/// Part of a page.
#[derive(Clone, Debug)]
pub enum Panel {
    /// One of several charts by its name, as the drifts, absolute or relative.
    Charts(Vec<(String, Chart)>),
    /// Columns, any of which may be drawn over any other.
    Explorer {
        /// Title.
        title: String,
        /// The columns of each run.
        runs: Vec<Samples>,
        /// Choices of axes, the first of which is shown.
        presets: Vec<Preset>,
    },
    /// A motion to be played, in one of several views by their names.
    Motion(Vec<Motion>),
    /// A table.
    Table(Table),
    /// A text, word for word.
    Text {
        /// Title.
        title: String,
        /// The text.
        text: String,
    },
}

/// Columns of numbers, of one run or of an ensemble.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Samples {
    /// Name of the run or the ensemble.
    pub name: String,
    /// Columns with their names, all of one length; the first is the time, or counts the rows.
    #[serde(skip)]
    pub columns: Vec<(String, Vec<f64>)>,
    /// Labels of the units of columns, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, String>,
    /// Number of rows before the extremes of stretches were taken.
    pub of: usize,
    /// True if the first column is the time.
    pub motion: bool,
    /// True if rows that are neighbours are joined by lines.
    pub joined: bool,
    /// Remark on the rows.
    pub note: String,
}

impl Samples {
    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|(own, _)| own == name).map(|(_, column)| &column[..])
    }
}

/// Axes of an explorer, as a choice with a name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Preset {
    /// Name of the choice.
    pub name: String,
    /// Horizontal column.
    pub x: String,
    /// Vertical column.
    pub y: String,
    /// Column and value: the points of a section are where the column passes the value upwards.
    pub section: Option<(String, f64)>,
}

/// Table of cells, whose first row and first column are headings.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// Title.
    pub title: String,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
    /// Further remarks.
    pub note: String,
    /// True if the cells are sentences, which are broken, and not numbers.
    pub words: bool,
}

#[cfg(feature = "figures")]
pub(crate) use html::stage;

impl Page {
    /// The page as the text of an HTML file.
    ///
    /// # Errors
    /// If this build draws no pages.
    pub fn to_html(&self) -> Result<String, String> {
        #[cfg(feature = "figures")]
        return Ok(html::html(self));
        #[cfg(not(feature = "figures"))]
        Err("this build draws no pages: it was compiled without the feature `figures`".into())
    }
}
