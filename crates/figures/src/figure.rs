//! Charts as figures for a paper.

#[cfg(feature = "figures")]
mod drawing;

use crate::chart::Chart;

/// The file formats of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Vector graphics for pages.
    Svg,
    /// Vector graphics for papers.
    Pdf,
    /// Pixels.
    Png,
}

/// Charts beside each other, with one legend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// The charts.
    pub panels: Vec<Chart>,
    /// Title above all of them; empty if there is none.
    pub title: String,
    /// Width and height of a panel in points; `None` for the usual ones.
    pub size: Option<(f64, f64)>,
}

impl Figure {
    /// The figure as a file.
    ///
    /// # Errors
    /// If the drawing library reports one, or this build does not draw the format.
    pub fn to_file(&self, format: Format) -> Result<Vec<u8>, String> {
        if !format.is_drawn() {
            return Err(format.missing());
        }
        #[cfg(feature = "figures")]
        return drawing::draw(self, format);
        #[cfg(not(feature = "figures"))]
        unreachable!("no format is drawn")
    }
}

impl Format {
    /// True if this build draws the format.
    pub const fn is_drawn(self) -> bool {
        match self {
            Format::Svg => cfg!(feature = "figures"),
            Format::Pdf => cfg!(feature = "pdf"),
            Format::Png => cfg!(feature = "png"),
        }
    }

    /// Message of a build that does not draw this format.
    fn missing(self) -> String {
        let (name, feature) = match self {
            Format::Svg => ("SVG", "figures"),
            Format::Pdf => ("PDF", "pdf"),
            Format::Png => ("PNG", "png"),
        };
        format!("this build draws no {name}: compile it with the feature `{feature}`, or draw SVG")
    }
}
