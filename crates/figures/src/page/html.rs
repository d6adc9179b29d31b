//! Page as the text of an HTML file.

use super::blob::{self, Blob};
use super::{Page, Panel, Samples, Section};
use crate::chart::{Axis, Chart, Curve, Style};
use crate::text::visible;
use serde_json::{Value, json};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPTS: [&str; 4] = [
    include_str!("data.js"),
    include_str!("charts.js"),
    include_str!("motion.js"),
    include_str!("page.js"),
];
/// plotly.js, compressed by the build script.
const PLOTLY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plotly.js.gz"));

/// Page as the text of an HTML file.
pub fn html(page: &Page) -> String {
    let mut blob = Blob::default();
    let sections: Vec<Value> =
        page.sections.iter().map(|section| section_json(section, &mut blob)).collect();
    let content = json!({
        "title": page.title, "facts": page.facts, "warnings": page.warnings, "sections": sections,
        "made_by": page.made_by, "reload": page.reload,
    });
    let reload =
        page.reload.map(|seconds| format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">"));
    let parts = [
        ("title", escape(&page.title)),
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
        let html = html(&page);
        assert_eq!(html.matches("alert(1)</script>").count(), 0);
        let content =
            html.split_once("id=\"content\">").unwrap().1.split_once("</script>").unwrap().0;
        // The browser reads what was written.
        let read: Value = serde_json::from_str(&content.replace("<\\!--", "<!--")).unwrap();
        assert_eq!(read["sections"][0]["panels"][0]["text"], text);
        assert!(html.len() < 3_000_000, "an empty page has {} bytes", html.len());
    }
}
