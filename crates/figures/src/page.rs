//! Pages: panels in one HTML file that needs no network.

mod blob;

use crate::chart::{Axis, Chart, Curve, Style};
use crate::motion::Motion;
use crate::text::visible;
use blob::Blob;
use serde_json::{Value, json};

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPTS: [&str; 4] = [
    include_str!("page/data.js"),
    include_str!("page/charts.js"),
    include_str!("page/motion.js"),
    include_str!("page/page.js"),
];
/// plotly.js, compressed by the build script.
const PLOTLY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plotly.js.gz"));

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Title.
    pub title: String,
    /// Facts below the title: short texts with their names.
    pub facts: Vec<(String, String)>,
    /// Warnings, which have to be read first.
    pub warnings: Vec<String>,
    /// Sections, in order.
    pub sections: Vec<Section>,
    /// Seconds after which the page is read again, while its content grows.
    pub reload: Option<u32>,
    /// Name of the program that made it.
    pub made_by: String,
}

/// Panels with a title.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Title; empty if none is needed.
    pub title: String,
    /// Page to which the title leads, if any.
    pub link: Option<String>,
    /// Panels, side by side where there is room.
    pub panels: Vec<Panel>,
}

/// Part of a page.
#[derive(Clone, Debug)]
pub enum Panel {
    /// One of several charts by its name, as the drifts, absolute or relative.
    Charts(Vec<(String, Chart)>),
    /// Columns, any of which may be drawn over any other.
    Explorer(Vec<Samples>, Vec<Preset>),
    /// A motion to be played.
    Motion(Motion),
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
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Name of the run or the ensemble.
    pub name: String,
    /// Columns with their names, all of one length; the first is the time, or counts the rows.
    pub columns: Vec<(String, Vec<f64>)>,
    /// Number of rows before the extremes of stretches were taken.
    pub of: usize,
    /// True if the first column is the time, and rows are joined by lines.
    pub motion: bool,
}

/// Axes of an explorer, as a choice with a name.
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug, Default)]
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

impl Page {
    /// The page as the text of an HTML file.
    pub fn to_html(&self) -> String {
        let mut blob = Blob::default();
        let sections: Vec<Value> =
            self.sections.iter().map(|section| section_json(section, &mut blob)).collect();
        let content = json!({
            "title": self.title, "facts": self.facts, "warnings": self.warnings, "sections": sections,
            "made_by": self.made_by, "reload": self.reload,
        });
        let reload = self
            .reload
            .map(|seconds| format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">"));
        let parts = [
            ("title", escape(&self.title)),
            ("reload", reload.unwrap_or_default()),
            ("style", STYLE.to_string()),
            ("content", in_script(&content.to_string())),
            ("numbers", blob.packed()),
            ("plotly", blob::text_of(PLOTLY)),
            ("script", SCRIPTS.join("\n")),
        ];
        // One pass, so that no part is searched for the places of the others.
        let mut html = String::with_capacity(
            parts.iter().map(|(_, text)| text.len()).sum::<usize>() + TEMPLATE.len(),
        );
        let mut rest = TEMPLATE;
        while let Some((before, after)) = rest.split_once("<!--[") {
            let (name, after) = after.split_once("]-->").expect("a place is closed");
            html.push_str(before);
            html.push_str(
                &parts.iter().find(|(part, _)| *part == name).expect("a part has its name").1,
            );
            rest = after;
        }
        html.push_str(rest);
        html
    }
}

fn section_json(section: &Section, blob: &mut Blob) -> Value {
    let panels: Vec<Value> = section.panels.iter().map(|panel| panel_json(panel, blob)).collect();
    json!({"title": section.title, "link": section.link, "panels": panels})
}

fn panel_json(panel: &Panel, blob: &mut Blob) -> Value {
    match panel {
        Panel::Charts(charts) => {
            let charts: Vec<Value> = charts
                .iter()
                .map(|(name, chart)| json!({"name": name, "chart": chart_json(chart, blob)}))
                .collect();
            json!({"kind": "charts", "charts": charts})
        }
        Panel::Explorer(samples, presets) => {
            let samples: Vec<Value> =
                samples.iter().map(|samples| samples_json(samples, blob)).collect();
            let presets: Vec<Value> = presets
                .iter()
                .map(|preset| json!({"name": preset.name, "x": preset.x, "y": preset.y, "section": preset.section}))
                .collect();
            json!({"kind": "explorer", "runs": samples, "presets": presets})
        }
        Panel::Motion(motion) => json!({
            "kind": "motion", "name": motion.name, "note": motion.note, "dimension": motion.dimension,
            "times": blob.exact(&motion.times), "moving": motion.moving, "positions": blob.places(&motion.positions),
            "fixed": motion.fixed, "sticks": motion.sticks, "string": motion.string, "kinds": motion.kinds,
            "bodies": motion.bodies, "rotations": blob.places(&motion.rotations),
        }),
        Panel::Table(table) => {
            json!({"kind": "table", "title": table.title, "rows": table.rows, "note": table.note, "words": table.words})
        }
        Panel::Text { title, text } => json!({"kind": "text", "title": title, "text": text}),
    }
}

fn samples_json(samples: &Samples, blob: &mut Blob) -> Value {
    let columns: Vec<Value> = samples
        .columns
        .iter()
        .enumerate()
        // Neighbouring times may differ by less than the rounding of a 32-bit number.
        .map(|(k, (name, values))| {
            json!([name, if k == 0 { blob.exact(values) } else { blob.rounded(values) }])
        })
        .collect();
    json!({"name": samples.name, "columns": columns, "of": samples.of, "motion": samples.motion})
}

fn chart_json(chart: &Chart, blob: &mut Blob) -> Value {
    let axis = |axis: &Axis| json!({"label": axis.label, "log": axis.log, "time": axis.time});
    let style = |curve: &Curve| match curve.style {
        Style::Line => "line",
        Style::Faint => "faint",
        Style::Points => "points",
        Style::Marked => "marked",
        Style::Bars => "bars",
    };
    let curves: Vec<Value> = chart
        .curves
        .iter()
        .map(|curve| {
            json!({
                "name": curve.name, "colour": curve.colour, "style": style(curve), "bounds": curve.bounds,
                "x": blob.exact(&curve.x), "y": blob.exact(&curve.y),
            })
        })
        .collect();
    let levels: Vec<Value> = chart
        .levels
        .iter()
        .map(|level| json!({"name": level.name, "y": level.y, "colour": level.colour}))
        .collect();
    json!({
        "title": chart.title, "note": chart.note, "x": axis(&chart.x), "y": axis(&chart.y), "curves": curves,
        "levels": levels, "equal": chart.equal,
    })
}

/// Escape a text that stands in HTML, which allows no control characters.
fn escape(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Escape a text that stands in a script, which nothing in it may end.
fn in_script(text: &str) -> String {
    text.replace("</", "<\\/").replace("<!--", "<\\u0021--")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_the_script_or_takes_a_place() {
        let text = "</script><script>alert(1)</script><!--[numbers]--> & \"x\"".to_string();
        let page = Page {
            title: text.clone(),
            sections: vec![Section {
                title: text.clone(),
                link: None,
                panels: vec![Panel::Text { title: text.clone(), text: text.clone() }],
            }],
            ..Page::default()
        };
        let html = page.to_html();
        assert_eq!(html.matches("alert(1)</script>").count(), 0);
        let content =
            html.split_once("id=\"content\">").unwrap().1.split_once("</script>").unwrap().0;
        // The browser reads what was written.
        let read: Value = serde_json::from_str(&content.replace("<\\!--", "<!--")).unwrap();
        assert_eq!(read["sections"][0]["panels"][0]["text"], text);
        assert!(html.len() < 3_000_000, "an empty page has {} bytes", html.len());
    }
}
