//! The work–precision diagram, as SVG.

use super::errors::Size;
use super::{COUNTED, Comparison, Measured, budget_of};
use holonome_model::treatment::InvariantKind;
use holonome_model::treatment::feedback::gain_name;
use std::fmt::Write;
use std::ops::RangeInclusive;

const HEIGHT: f64 = 500.0;
/// Left and right edges of the panels: over the work, and over the time. The legend stands beside the second.
const PANELS: [(f64, f64); 2] = [(84.0, 500.0), (528.0, 944.0)];
const LEFT: f64 = PANELS[0].0;
const RIGHT: f64 = PANELS[1].1;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 76.0;

/// Colours that colour-blind readers can tell apart (Okabe, Ito 2008), without the yellow, which is too pale for lines.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// Markers differ too, so that nothing depends on colour alone.
const MARKERS: [Marker; 5] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Down];

const FLOOR_LABEL: &str = "error of the reference";

/// Labels of an axis at most, before only every second, third, … power of ten has one.
const MOST_LABELS: i32 = 9;

#[derive(Clone, Copy)]
enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Down,
}

/// A method's points: work and seconds, and what is drawn over them.
struct Series {
    name: String,
    points: Vec<([f64; 2], Size)>,
}

impl Comparison {
    /// Error over work and over time, or the largest drift of the energy where no error is known; none where there is neither.
    pub fn to_svg(&self) -> Option<String> {
        let error = |m: &Measured| Some(m.errors?.last);
        let (label, mut series) = (self.error_label(), self.series(&error));
        if series.is_empty() {
            let invariants = self.invariants();
            let energy = invariants.iter().position(|(_, kind)| *kind == InvariantKind::Hamiltonian).unwrap_or(0);
            let &energy = invariants.get(energy)?;
            let name = gain_name(energy.0, energy.1);
            series = self.series(&|m: &Measured| m.of(energy).map(|(d, _)| Size::Known(d.max)));
            return draw(&self.title(), &format!("largest drift of {name}"), &series, None);
        }
        draw(&self.title(), &label, &series, Some(self.reference.error))
    }

    fn title(&self) -> String {
        format!("{}, T = {}", self.model, rounded(self.t))
    }

    fn error_label(&self) -> String {
        let hamiltonian = if self.hamiltonian { "error in (q, p)" } else { "error in the state" };
        match self.reference.good_until {
            Some(t) if t < self.t => format!("{hamiltonian} at t = {}", rounded(t)),
            _ => format!("{hamiltonian} at T"),
        }
    }

    fn series(&self, value: &dyn Fn(&Measured) -> Option<Size>) -> Vec<Series> {
        let mut all: Vec<Series> = Vec::new();
        for row in &self.rows {
            let Ok(measured) = &row.outcome else { continue };
            let Some(value) = value(measured).filter(|v| v.number() > 0.0 && v.number().is_finite()) else { continue };
            let point = ([budget_of(&measured.cost) as f64, measured.wall_seconds.max(1e-9)], value);
            let name = row.label();
            match all.iter_mut().find(|s| s.name == name) {
                Some(series) => series.points.push(point),
                None => all.push(Series { name, points: vec![point] }),
            }
        }
        all
    }
}

/// To six digits.
fn rounded(t: f64) -> f64 {
    format!("{t:.5e}").parse().unwrap_or(t)
}

/// A logarithmic axis: powers of ten from first to last, on pixels.
struct Axis {
    from: f64,
    to: f64,
    pixels: (f64, f64),
}

impl Axis {
    /// Around all values, with some room, and a decade at least.
    fn around(values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Axis {
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(a, b), v| (v.log10().min(a), v.log10().max(b)));
        let room = (0.05 * (high - low)).max(0.15).max((1.0 - (high - low)) / 2.0);
        Axis { from: low - room, to: high + room, pixels }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.log10() - self.from) / (self.to - self.from);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    fn decades(&self) -> RangeInclusive<i32> {
        self.from.ceil() as i32..=self.to.floor() as i32
    }

    /// Values with labels.
    fn labels(&self) -> Vec<f64> {
        let decades = self.decades();
        let count = decades.end() - decades.start() + 1;
        if count < 3 {
            // Powers of ten alone would leave the reader without a scale.
            let all = (decades.start() - 1..=*decades.end()).flat_map(|d| [1.0, 2.0, 5.0].map(|m| m * ten(d)));
            return all.filter(|v| (self.from..=self.to).contains(&v.log10())).collect();
        }
        let stride = (count + MOST_LABELS - 1) / MOST_LABELS;
        decades.filter(|d| d.rem_euclid(stride) == 0).map(ten).collect()
    }

    /// Values with a short tick and no label.
    fn ticks(&self) -> Vec<f64> {
        let decades = self.decades();
        let many = decades.end() - decades.start() > 6;
        let all = (decades.start() - 1..=*decades.end()).flat_map(|d| (1..=9).map(move |m| f64::from(m) * ten(d)));
        all.filter(|v| (self.from..=self.to).contains(&v.log10()))
            .filter(|v| !many || (v.log10() - v.log10().round()).abs() < 1e-9)
            .collect()
    }
}

fn ten(power: i32) -> f64 {
    10f64.powi(power)
}

/// 10 with its exponent raised, 2·10 with its exponent raised, or the number itself where that is short.
fn power_label(value: f64) -> String {
    let power = (value.log10() + 1e-9).floor() as i32;
    let factor = (value / ten(power)).round();
    let raised = format!("10<tspan dy=\"-6\" font-size=\"10\">{}</tspan>", power.to_string().replace('-', "\u{2212}"));
    if factor == 1.0 { raised } else { format!("{factor}·{raised}") }
}

fn draw(title: &str, label: &str, series: &[Series], floor: Option<f64>) -> Option<String> {
    let points = || series.iter().flat_map(|s| &s.points);
    points().next()?;
    let x = [0, 1].map(|panel| Axis::around(points().map(|p| p.0[panel]), PANELS[panel]));
    let y = Axis::around(points().map(|p| p.1.number()), (HEIGHT - BOTTOM, TOP));
    // A letter is up to 0.6 em wide in most fonts.
    let letters = series.iter().map(|s| s.name.chars().count()).max().unwrap_or(0).max(FLOOR_LABEL.len());
    let width = (RIGHT + 50.0 + 0.6 * 13.0 * letters as f64 + 10.0).round();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{HEIGHT}\" viewBox=\"0 0 {width} {HEIGHT}\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"13\" fill=\"#222222\">\n\
         <title>{0}</title>\n<rect width=\"{width}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"30\" font-size=\"16\" font-weight=\"bold\">{0}</text>\n",
        escape(title)
    );
    for (x, panel) in x.iter().zip(PANELS) {
        grid(&mut svg, x, &y, panel);
    }
    let floor = floor.filter(|f| *f > 0.0 && f.log10() > y.from);
    if let Some(floor) = floor {
        let (at, bottom) = (y.at(floor), HEIGHT - BOTTOM);
        for (left, right) in PANELS {
            let (width, height) = (right - left, bottom - at);
            _ = writeln!(
                svg,
                "<rect x=\"{left}\" y=\"{at:.1}\" width=\"{width}\" height=\"{height:.1}\" fill=\"#000000\" fill-opacity=\"0.09\"/>"
            );
        }
    }
    axes(&mut svg, label);
    for (k, one) in series.iter().enumerate() {
        for (panel, x) in x.iter().enumerate() {
            curve(&mut svg, k, one, panel, x, &y);
        }
    }
    legend(&mut svg, series, floor.is_some());
    svg.push_str("</svg>\n");
    Some(svg)
}

fn grid(svg: &mut String, x: &Axis, y: &Axis, (left, right): (f64, f64)) {
    let bottom = HEIGHT - BOTTOM;
    for v in x.labels() {
        let (at, label) = (x.at(v), power_label(v));
        _ = writeln!(svg, "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#e3e3e3\"/>");
        _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>", bottom + 22.0);
    }
    for v in y.labels() {
        let (at, label) = (y.at(v), power_label(v));
        _ = writeln!(svg, "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#e3e3e3\"/>");
        if left == LEFT {
            _ = writeln!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", left - 9.0, at + 5.0);
        }
    }
    for at in x.ticks().into_iter().map(|v| x.at(v)) {
        _ = writeln!(svg, "<path d=\"M{at:.1} {bottom}v-4\" stroke=\"#666666\"/>");
    }
    for at in y.ticks().into_iter().map(|v| y.at(v)) {
        _ = writeln!(svg, "<path d=\"M{left} {at:.1}h4\" stroke=\"#666666\"/>");
    }
}

fn axes(svg: &mut String, label: &str) {
    let height = HEIGHT - BOTTOM - TOP;
    // How work is counted is said below its axis.
    let (counted, more) = COUNTED.split_once(", ").unwrap_or((COUNTED, ""));
    let names = [[format!("work: {counted},"), more.to_string()], ["time in seconds".to_string(), String::new()]];
    for ((left, right), lines) in PANELS.into_iter().zip(names) {
        let (width, middle) = (right - left, (left + right) / 2.0);
        _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{TOP}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#666666\"/>"
        );
        for (line, below) in lines.iter().zip([24.0, 8.0]).filter(|(line, _)| !line.is_empty()) {
            let at = HEIGHT - below;
            _ = writeln!(svg, "<text x=\"{middle}\" y=\"{at}\" text-anchor=\"middle\">{line}</text>");
        }
    }
    _ = writeln!(
        svg,
        "<text transform=\"translate(24 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        TOP + height / 2.0,
        escape(label)
    );
}

fn colour(k: usize) -> &'static str {
    COLOURS[k % COLOURS.len()]
}

/// Solid for as many curves as there are colours, dashed beyond.
fn dashes(k: usize) -> &'static str {
    ["", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\""][(k / COLOURS.len()).min(2)]
}

fn curve(svg: &mut String, k: usize, series: &Series, panel: usize, x: &Axis, y: &Axis) {
    let at: Vec<(f64, f64)> = series.points.iter().map(|p| (x.at(p.0[panel]), y.at(p.1.number()))).collect();
    if at.len() > 1 {
        let path: Vec<String> = at.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let (path, colour, dashes) = (path.join("L"), colour(k), dashes(k));
        _ = writeln!(svg, "<path d=\"M{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dashes}/>");
    }
    for (&(x, y), (_, size)) in at.iter().zip(&series.points) {
        marker(svg, k, x, y, size.known().is_some());
    }
}

/// A filled marker; an open one is an upper bound.
fn marker(svg: &mut String, k: usize, x: f64, y: f64, filled: bool) {
    let path = match MARKERS[k % MARKERS.len()] {
        Marker::Circle => "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
        Marker::Square => "m-4 -4h8v8h-8z",
        Marker::Triangle => "m0 -5.2l4.8 8.6h-9.6z",
        Marker::Diamond => "m0 -5.6l5 5.6l-5 5.6l-5 -5.6z",
        Marker::Down => "m0 5.2l4.8 -8.6h-9.6z",
    };
    let (colour, fill) = (colour(k), if filled { colour(k) } else { "#ffffff" });
    _ = writeln!(svg, "<path d=\"M{x:.1} {y:.1}{path}\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.6\"/>");
}

fn legend(svg: &mut String, series: &[Series], floor: bool) {
    let x = RIGHT + 16.0;
    let mut y = TOP + 12.0;
    for (k, one) in series.iter().enumerate() {
        let (colour, dashes) = (colour(k), dashes(k));
        _ = writeln!(svg, "<path d=\"M{x} {y}h26\" stroke=\"{colour}\" stroke-width=\"1.8\"{dashes}/>");
        marker(svg, k, x + 13.0, y, true);
        _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", x + 34.0, y + 4.5, escape(&one.name));
        y += 22.0;
    }
    if floor {
        y += 8.0;
        _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"26\" height=\"14\" fill=\"#000000\" fill-opacity=\"0.09\"/>",
            y - 7.0
        );
        _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{FLOOR_LABEL}</text>", x + 34.0, y + 4.5);
    }
    if series.iter().flat_map(|s| &s.points).any(|(_, size)| size.known().is_none()) {
        y += 22.0;
        _ = writeln!(
            svg,
            "<circle cx=\"{}\" cy=\"{y}\" r=\"4.5\" fill=\"#ffffff\" stroke=\"#222222\" stroke-width=\"1.6\"/>",
            x + 13.0
        );
        _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">at most</text>", x + 34.0, y + 4.5);
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
