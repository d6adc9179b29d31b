//! Page as the text of an HTML file.

use super::blob::{Blob, Stored, StoredPlaces};
use super::{Page, Panel, Preset, Samples, Section, Table};
use crate::chart::{Chart, Curve, Map};
use crate::motion::{Drawn, DrawnNumbers, Motion};
use crate::text::visible;
use serde::Serialize;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const FORMS: &str = include_str!("forms.js");
const MOTION: &str = include_str!("motion.js");
const SCRIPTS: [&str; 11] = [
    include_str!("data.js"),
    include_str!("charts/numbers.js"),
    include_str!("charts/axes.js"),
    include_str!("charts/curves.js"),
    include_str!("charts/map.js"),
    include_str!("charts/frame.js"),
    include_str!("charts/gestures.js"),
    include_str!("charts/view.js"),
    FORMS,
    MOTION,
    include_str!("page.js"),
];

/// Page as the text of an HTML file.
pub fn html(page: &Page) -> String {
    let mut blob = Blob::default();
    let sections = page.sections.iter().map(|section| blob.section(section)).collect();
    let content = serde_json::to_string(&Content { page, sections }).expect("a page is JSON");
    let reload =
        page.reload.map(|seconds| format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">"));
    let parts = [
        ("title", escape(&page.title)),
        ("reload", reload.unwrap_or_default()),
        ("style", STYLE.to_string()),
        ("content", in_script(&content)),
        ("numbers", blob.packed()),
        ("script", SCRIPTS.join("\n")),
    ];
    filled(TEMPLATE, &parts)
}

/// Page that draws the frames of a film of a motion, as `film` says, and sends them to where it came
/// from.
pub fn stage(motion: &Motion, film: &impl Serialize) -> String {
    let mut blob = Blob::default();
    let motion = blob.motion(motion);
    let content = serde_json::to_string(&Stage { motion, film }).expect("a film is JSON");
    let scripts = [SCRIPTS[0], FORMS, MOTION, include_str!("film.js")];
    let parts = [
        ("style", STYLE.to_string()),
        ("content", in_script(&content)),
        ("numbers", blob.packed()),
        ("script", scripts.join("\n")),
    ];
    filled(include_str!("film.html"), &parts)
}

/// A motion, and how it is filmed.
#[derive(Serialize)]
struct Stage<'p, F> {
    motion: ShownMotion<'p>,
    film: &'p F,
}

/// A template with its places filled in one pass, so that no part is searched for the places of the
/// others.
fn filled(template: &str, parts: &[(&str, String)]) -> String {
    let size: usize = parts.iter().map(|(_, text)| text.len()).sum();
    let mut html = String::with_capacity(size + template.len());
    let mut rest = template;
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

/// Content of a page as its script reads it, with the arrays in a blob.
#[derive(Serialize)]
struct Content<'p> {
    #[serde(flatten)]
    page: &'p Page,
    sections: Vec<ShownSection<'p>>,
}

#[derive(Serialize)]
struct ShownSection<'p> {
    #[serde(flatten)]
    section: &'p Section,
    panels: Vec<ShownPanel<'p>>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum ShownPanel<'p> {
    Charts { charts: Vec<NamedChart<'p>> },
    Explorer { title: &'p str, runs: Vec<ShownSamples<'p>>, presets: &'p [Preset] },
    Motion { motions: Vec<ShownMotion<'p>> },
    Table(&'p Table),
    Text { title: &'p str, text: &'p str },
}

#[derive(Serialize)]
struct NamedChart<'p> {
    name: &'p str,
    chart: ShownChart<'p>,
}

#[derive(Serialize)]
struct ShownChart<'p> {
    #[serde(flatten)]
    chart: &'p Chart,
    curves: Vec<ShownCurve<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<ShownMap<'p>>,
}

#[derive(Serialize)]
struct ShownMap<'p> {
    #[serde(flatten)]
    map: &'p Map,
    range: [f64; 2],
    x: Stored,
    y: Stored,
    values: Stored,
}

#[derive(Serialize)]
struct ShownCurve<'p> {
    #[serde(flatten)]
    curve: &'p Curve,
    x: Stored,
    y: Stored,
}

#[derive(Serialize)]
struct ShownSamples<'p> {
    #[serde(flatten)]
    samples: &'p Samples,
    columns: Vec<(&'p str, Stored)>,
}

#[derive(Serialize)]
struct ShownMotion<'p> {
    #[serde(flatten)]
    motion: &'p Motion,
    times: Stored,
    positions: StoredPlaces,
    rotations: StoredPlaces,
    drawn: Vec<ShownForm<'p>>,
}

#[derive(Serialize)]
struct ShownForm<'p> {
    #[serde(flatten)]
    drawn: &'p Drawn,
    arguments: Vec<ShownNumbers>,
    shades: Option<ShownNumbers>,
}

/// Numbers of a frame, or of every frame.
#[derive(Serialize)]
struct ShownNumbers {
    width: usize,
    values: StoredPlaces,
}

impl Blob {
    fn section<'p>(&mut self, section: &'p Section) -> ShownSection<'p> {
        let panels = section.panels.iter().map(|panel| self.panel(panel)).collect();
        ShownSection { section, panels }
    }

    fn panel<'p>(&mut self, panel: &'p Panel) -> ShownPanel<'p> {
        match panel {
            Panel::Charts(charts) => ShownPanel::Charts {
                charts: charts.iter().map(|(name, chart)| self.chart(name, chart)).collect(),
            },
            Panel::Explorer { title, runs, presets } => {
                let runs = runs.iter().map(|samples| self.samples(samples)).collect();
                ShownPanel::Explorer { title, runs, presets }
            }
            Panel::Motion(motions) => ShownPanel::Motion {
                motions: motions.iter().map(|motion| self.motion(motion)).collect(),
            },
            Panel::Table(table) => ShownPanel::Table(table),
            Panel::Text { title, text } => ShownPanel::Text { title, text },
        }
    }

    fn motion<'p>(&mut self, motion: &'p Motion) -> ShownMotion<'p> {
        let frames = motion.times.len().max(1);
        ShownMotion {
            motion,
            times: self.exact(&motion.times),
            positions: self.places(&motion.positions, motion.positions.len() / frames),
            rotations: self.places(&motion.rotations, motion.rotations.len() / frames),
            drawn: motion.drawn.iter().map(|drawn| self.form(drawn)).collect(),
        }
    }

    fn form<'p>(&mut self, drawn: &'p Drawn) -> ShownForm<'p> {
        let mut shown = |numbers: &DrawnNumbers| ShownNumbers {
            width: numbers.width,
            values: self.places(&numbers.values, numbers.width),
        };
        let arguments = drawn.arguments.iter().map(&mut shown).collect();
        ShownForm { drawn, arguments, shades: drawn.shades.as_ref().map(shown) }
    }

    fn samples<'p>(&mut self, samples: &'p Samples) -> ShownSamples<'p> {
        // Neighbouring times may differ by less than the rounding of a 32-bit number.
        let column = |(k, (name, values)): (usize, &'p (String, Vec<f64>))| {
            (name.as_str(), if k == 0 { self.exact(values) } else { self.rounded(values) })
        };
        let columns = samples.columns.iter().enumerate().map(column).collect();
        ShownSamples { samples, columns }
    }

    fn chart<'p>(&mut self, name: &'p str, chart: &'p Chart) -> NamedChart<'p> {
        let curve = |curve: &'p Curve| {
            let (x, y) = (self.exact(&curve.x), self.drawn(&curve.y));
            ShownCurve { curve, x, y }
        };
        let curves = chart.curves.iter().map(curve).collect();
        let map = chart.map.as_ref().map(|map| ShownMap {
            map,
            range: map.range(),
            x: self.exact(&map.x),
            y: self.exact(&map.y),
            values: self.rounded(&map.values),
        });
        NamedChart { name, chart: ShownChart { chart, curves, map } }
    }
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
                panels: vec![Panel::Text { title: text.clone(), text: text.clone() }],
                ..Section::default()
            }],
            ..Page::default()
        };
        let html = html(&page);
        assert_eq!(html.matches("alert(1)</script>").count(), 0);
        let content =
            html.split_once("id=\"content\">").unwrap().1.split_once("</script>").unwrap().0;
        // The browser reads what was written.
        let read: serde_json::Value =
            serde_json::from_str(&content.replace("<\\!--", "<!--")).unwrap();
        assert_eq!(read["sections"][0]["panels"][0]["text"], text);
        assert!(html.len() < 150_000, "an empty page has {} bytes", html.len());
    }
}
