//! Drawing of charts as figures for a paper.

use super::{Figure, Format};
use crate::chart::{Axis, Chart, Curve, Map, Style};
use crate::text::visible;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{ColorMap, Heatmap, LinePlot, ScatterPlot};
use kuva::render::annotations::ReferenceLine;
use kuva::render::figure::{Figure as Panels, FigureLegendPosition};
use kuva::render::layout::{Layout, TickAlign, TickFormat};
use kuva::render::plots::Plot;
#[cfg(feature = "png")]
use kuva::render::render::Primitive;
use std::sync::Arc;

/// Colours that colour-blind readers can tell apart (Okabe, Ito 2008), without the yellow, which is
/// too pale for lines.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// Markers and dashes, which differ as well, so that curves can be told apart in a grey print.
const MARKERS: [MarkerShape; 5] = [
    MarkerShape::Circle,
    MarkerShape::Square,
    MarkerShape::Triangle,
    MarkerShape::Diamond,
    MarkerShape::TriangleDown,
];
const DASHES: [Option<&str>; 4] = [None, Some("7 3"), Some("2 2"), Some("8 3 2 3")];

/// Size of a panel, in the units of the file.
const PANEL: (f64, f64) = (440.0, 340.0);

/// Largest number of panels of a figure that has one row.
const MOST_IN_ROW: usize = 3;

/// Largest number of ticks of a logarithmic axis.
const TICKS: f64 = 9.0;

/// Pixels of a PNG for each unit: 300 dots per inch at a panel's width in print.
#[cfg(feature = "png")]
const SCALE: f32 = 3.0;

/// Figure as a file.
///
/// # Errors
/// If the drawing library reports one.
///
/// # Panics
/// If this build does not draw the format.
pub fn draw(figure: &Figure, format: Format) -> Result<Vec<u8>, String> {
    let charts: Vec<Chart> = figure.panels.iter().map(written).collect();
    let mut entries: Vec<LegendEntry> = Vec::new();
    for curve in charts.iter().flat_map(|chart| &chart.curves) {
        if curve.style != Style::Faint
            && !curve.name.is_empty()
            && entries.iter().all(|e| e.label != curve.name)
        {
            entries.push(entry(curve));
        }
    }
    let (width, height) = figure.size.unwrap_or(PANEL);
    let (plots, layouts): (Vec<Vec<Plot>>, Vec<Layout>) = charts.iter().map(drawn).unzip();
    let count = charts.len();
    let columns = if count > MOST_IN_ROW { (count as f64).sqrt().ceil() as usize } else { count };
    let mut panels = Panels::new(count.div_ceil(columns.max(1)), columns)
        .with_structure((0..count).map(|k| vec![k]).collect())
        .with_plots(plots)
        .with_layouts(layouts)
        .with_cell_size(width, height);
    if !figure.title.is_empty() {
        panels = panels.with_title(visible(&figure.title).into_owned());
    }
    if entries.len() > 1 {
        panels = panels
            .with_shared_legend_entries(entries)
            .with_shared_legend_position(FigureLegendPosition::RightMiddle);
    }
    let scene = panels.render();
    match format {
        Format::Svg => Ok(kuva::backend::svg::SvgBackend::new().render_scene(&scene).into_bytes()),
        #[cfg(feature = "pdf")]
        Format::Pdf => kuva::PdfBackend::new().render_scene(&scene),
        #[cfg(feature = "png")]
        Format::Png => {
            let mut scene = scene;
            scene.elements = scene.elements.into_iter().flat_map(without_dashes).collect();
            kuva::PngBackend::new().with_scale(SCALE).render_scene(&scene)
        }
        #[cfg(not(all(feature = "pdf", feature = "png")))]
        format => unreachable!("{format:?} is not drawn"),
    }
}

/// The chart with texts that every format can hold: SVG allows no control characters, and no font
/// of a PDF has them.
fn written(chart: &Chart) -> Chart {
    let mut chart = chart.clone();
    let names = chart.curves.iter_mut().map(|curve| &mut curve.name);
    let names = names.chain(chart.levels.iter_mut().map(|level| &mut level.name));
    for text in names.chain([&mut chart.x.label, &mut chart.y.label]) {
        *text = visible(text).into_owned();
    }
    chart
}

/// A dashed line as lines, one for each dash: kuva's pixels begin the dashes anew at every point,
/// and do not scale them.
#[cfg(feature = "png")]
fn without_dashes(element: Primitive) -> Vec<Primitive> {
    let (points, stroke, stroke_width, dashes) = match element {
        Primitive::PolyLine { points, stroke, stroke_width, stroke_dasharray: Some(dashes) } => {
            (points, stroke, stroke_width, dashes)
        }
        Primitive::Line {
            x1,
            y1,
            x2,
            y2,
            stroke,
            stroke_width,
            stroke_dasharray: Some(dashes),
        } => (vec![(x1, y1), (x2, y2)], stroke, stroke_width, dashes),
        other => return vec![other],
    };
    let lengths: Vec<f64> =
        dashes.split([' ', ',']).filter_map(|length| length.parse().ok()).collect();
    let line = |points| Primitive::PolyLine {
        points,
        stroke: stroke.clone(),
        stroke_width,
        stroke_dasharray: None,
    };
    if lengths.is_empty() || !lengths.iter().all(|length| *length > 0.0) {
        return vec![line(points)];
    }
    let mut dash = points[..1].to_vec();
    let (mut all, mut k, mut left) = (Vec::new(), 0, lengths[0]);
    for side in points.windows(2) {
        let (mut from, to) = (side[0], side[1]);
        loop {
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            if length <= left {
                left -= length;
                dash.push(to);
                break;
            }
            let share = left / length;
            from = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
            dash.push(from);
            let ended = std::mem::replace(&mut dash, vec![from]);
            // Dashes and gaps alternate.
            if k % 2 == 0 {
                all.push(line(ended));
            }
            k += 1;
            left = lengths[k % lengths.len()];
        }
    }
    if k % 2 == 0 {
        all.push(line(dash));
    }
    all
}

fn entry(curve: &Curve) -> LegendEntry {
    let shape = match curve.style {
        Style::Marked | Style::Points => LegendShape::Marker(MARKERS[curve.colour % MARKERS.len()]),
        _ => LegendShape::Line,
    };
    let dasharray = match shape {
        LegendShape::Line => DASHES[curve.colour % DASHES.len()].map(str::to_string),
        _ => None,
    };
    LegendEntry {
        label: curve.name.clone(),
        color: COLOURS[curve.colour % COLOURS.len()].to_string(),
        shape,
        dasharray,
    }
}

/// Plots of a chart, and their axes.
fn drawn(chart: &Chart) -> (Vec<Plot>, Layout) {
    let curves = chart.curves.iter().flat_map(|curve| plots_of(chart, curve));
    let plots: Vec<Plot> = chart.map.iter().map(heat).chain(curves).collect();
    let layout = layout_of(chart, &plots);
    (plots, layout)
}

/// The colours of a map: one hue where all numbers have one sign, two about 0.
fn heat(map: &Map) -> Plot {
    let [low, high] = map.range();
    let both = low < 0.0 && high > 0.0;
    let ends = |of: &[f64]| {
        let half = (of[of.len() - 1] - of[0]) / (of.len() - 1).max(1) as f64 / 2.0;
        (of[0] - half, of[of.len() - 1] + half)
    };
    // kuva's first row is the upper one, and its colours span the numbers.
    let mut rows: Vec<Vec<f64>> = map.values.chunks(map.x.len()).map(<[f64]>::to_vec).collect();
    rows.reverse();
    let from_blue = ColorMap::Custom(Arc::new(|share| ColorMap::RedBlue.map(1.0 - share)));
    let (left, right) = ends(&map.x);
    let (bottom, top) = ends(&map.y);
    Heatmap::new()
        .with_data(rows)
        .with_color_map(if both { from_blue } else { ColorMap::Viridis })
        .with_x_range(left, right)
        .with_y_range(bottom, top)
        .with_cell_size(1.0)
        .with_legend(visible(&map.name).into_owned())
        .into()
}

/// Plots of a curve, one over the other.
fn plots_of(chart: &Chart, curve: &Curve) -> Vec<Plot> {
    let at = |(x, y): (f64, f64)| {
        [(&chart.x, x), (&chart.y, y)].map(|(a, v)| if a.log { v.log10() } else { v })
    };
    let points: Vec<(f64, f64)> = chart.shown(curve).map(at).map(|[x, y]| (x, y)).collect();
    if points.is_empty() {
        return Vec::new();
    }
    let colour = COLOURS[curve.colour % COLOURS.len()];
    let line = |width: f64| {
        LinePlot::new().with_data(points.clone()).with_color(colour).with_stroke_width(width)
    };
    let dots = |size: f64, points: Vec<(f64, f64)>| {
        let marker = MARKERS[curve.colour % MARKERS.len()];
        ScatterPlot::new().with_data(points).with_color(colour).with_size(size).with_marker(marker)
    };
    match curve.style {
        Style::Faint => vec![line(0.3).into()],
        Style::Line | Style::Bars => {
            let mut line = line(1.4);
            if let Some(dash) = DASHES[curve.colour % DASHES.len()] {
                line = line.with_line_style(kuva::plot::line::LineStyle::Custom(dash.to_string()));
            }
            vec![line.into()]
        }
        Style::Points => vec![dots(1.6, points.clone()).into()],
        Style::Marked => {
            let all = curve.x.iter().zip(&curve.y).map(|(x, y)| (*x, *y)).zip(&curve.bounds);
            let bounds = all.filter(|&((x, y), bound)| *bound && chart.fits(x, y));
            let open = bounds.map(|(point, _)| at(point)).map(|[x, y]| (x, y)).collect::<Vec<_>>();
            let mut plots = vec![line(1.2).into(), dots(4.0, points.clone()).into()];
            if !open.is_empty() {
                // kuva makes only some of its markers transparent.
                plots.push(dots(2.4, open).with_color("#ffffff").into());
            }
            plots
        }
    }
}

/// Axes, labels and reference lines of a chart with these plots.
fn layout_of(chart: &Chart, plots: &[Plot]) -> Layout {
    let bounds = chart.curves.iter().any(|curve| curve.bounds.contains(&true));
    let y_label =
        if bounds { format!("{} (open: at most)", chart.y.label) } else { chart.y.label.clone() };
    let mut layout = Layout::auto_from_plots(plots)
        .with_x_label(&chart.x.label)
        .with_y_label(y_label)
        .with_show_grid(false)
        .with_box_axes()
        .with_tick_align(TickAlign::Inside);
    if let Some(map) = &chart.map {
        // What the colours are.
        layout = layout.with_title(visible(&map.name).into_owned());
    }
    if let Some((low, high, step)) = decades(chart, &chart.x, |point| point.0) {
        layout = layout
            .with_x_axis_min(low)
            .with_x_axis_max(high)
            .with_x_tick_step(step)
            .with_x_tick_format(powers());
    }
    if let Some((low, high, step)) = decades(chart, &chart.y, |point| point.1) {
        layout = layout
            .with_y_axis_min(low)
            .with_y_axis_max(high)
            .with_y_tick_step(step)
            .with_y_tick_format(powers());
    }
    if chart.x.time {
        // From the start, also if nothing has drifted by then.
        let times = || {
            let curves = chart.curves.iter().flat_map(|curve| &curve.x);
            let times = chart.map.iter().flat_map(|map| &map.x).chain(curves);
            times.copied().filter(|t| t.is_finite())
        };
        layout = layout
            .with_x_axis_min(times().fold(f64::MAX, f64::min))
            .with_x_axis_max(times().fold(f64::MIN, f64::max));
    }
    let ends = |axis: &Axis, [a, b]: [f64; 2]| {
        if axis.log { [a.log10(), b.log10()] } else { [a, b] }
    };
    if let Some([low, high]) = chart.x.range.map(|range| ends(&chart.x, range)) {
        layout = layout.with_x_axis_min(low).with_x_axis_max(high);
    }
    if let Some([low, high]) = chart.y.range.map(|range| ends(&chart.y, range)) {
        layout = layout.with_y_axis_min(low).with_y_axis_max(high);
    }
    if chart.equal {
        layout = layout.with_equal_aspect();
    }
    for level in &chart.levels {
        let y = if chart.y.log { level.y.log10() } else { level.y };
        let line = ReferenceLine::horizontal(y)
            .with_color("#777777")
            .with_stroke_width(0.8)
            .with_dasharray("3 3");
        layout = layout.with_reference_line(if level.name.is_empty() {
            line
        } else {
            line.with_label(&level.name)
        });
    }
    layout
}

/// Ends of a logarithmic axis and the distance of its ticks, in powers of ten; `None` for a linear
/// axis. The logarithms are taken here, as kuva's own logarithmic axes end at 10⁻¹⁰.
fn decades(chart: &Chart, axis: &Axis, of: impl Fn((f64, f64)) -> f64) -> Option<(f64, f64, f64)> {
    if !axis.log {
        return None;
    }
    let points = chart.curves.iter().flat_map(|curve| chart.shown(curve)).map(of);
    let levels = chart.levels.iter().map(|level| level.y).filter(|y| axis == &chart.y && *y > 0.0);
    let all = points.chain(levels).map(f64::log10);
    let (low, high) = all.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
    // Whole decades, as the numbers at the ticks are powers of ten.
    let (low, high) = ((low - 0.05).floor(), (high + 0.05).ceil());
    let step = ((high - low) / TICKS).ceil().max(1.0);
    let low = step * (low / step).floor();
    Some((low, low + step * ((high - low) / step).ceil(), step))
}

/// Exponents as powers of ten.
fn powers() -> TickFormat {
    TickFormat::Custom(Arc::new(|exponent| raised(exponent.round() as i32)))
}

fn raised(exponent: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        c => {
            ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][c.to_digit(10).unwrap_or(0) as usize]
        }
    };
    format!("10{}", exponent.to_string().chars().map(digit).collect::<String>())
}

#[cfg(all(test, feature = "pdf", feature = "png"))]
mod tests {
    use super::*;
    use crate::chart::Level;

    #[test]
    fn what_is_far_below_one_is_drawn() {
        let curve = Curve {
            name: "H".into(),
            x: vec![0.0, 1.0, 2.0],
            y: vec![0.0, 2e-16, 8e-14],
            ..Curve::default()
        };
        let other = Curve { name: "J".into(), colour: 1, ..curve.clone() };
        let chart = Chart {
            x: Axis::time(),
            y: Axis::log("drift"),
            curves: vec![curve, other],
            ..Chart::default()
        };
        assert_eq!(decades(&chart, &chart.y, |point| point.1), Some((-16.0, -13.0, 1.0)));
        let figure = Figure { panels: vec![chart], ..Figure::default() };
        let svg = String::from_utf8(figure.to_file(Format::Svg).unwrap()).unwrap();
        for text in ["10⁻¹⁶", "10⁻¹³", ">H<", ">J<", ">0<", ">2<", "stroke-dasharray"] {
            assert!(svg.contains(text), "no {text} in {svg}");
        }
        assert!(figure.to_file(Format::Pdf).unwrap().starts_with(b"%PDF"));
        assert!(figure.to_file(Format::Png).unwrap().starts_with(b"\x89PNG"));
    }

    #[test]
    fn names_with_control_characters_are_drawn_in_every_format() {
        let name = "a\u{1b}[31m\u{9b}\u{202e}\n\0<b>&\u{ffff}";
        let curve =
            Curve { name: name.into(), x: vec![0.0, 1.0], y: vec![1.0, 2.0], ..Curve::default() };
        let other = Curve { name: "b".into(), colour: 1, ..curve.clone() };
        let level = Level { name: name.into(), y: 1.5, colour: None };
        let (x, y) = (Axis::linear(name), Axis::log(name));
        let chart =
            Chart { x, y, curves: vec![curve, other], levels: vec![level], ..Chart::default() };
        let figure = Figure { panels: vec![chart], ..Figure::default() };
        let svg = String::from_utf8(figure.to_file(Format::Svg).unwrap()).unwrap();
        // XML 1.0, production 2: tab, line feed and carriage return are the only control
        // characters.
        assert!(svg.chars().all(|c| (' '..'\u{fffe}').contains(&c) || c == '\n'), "{svg:?}");
        assert!(
            svg.matches("a\\u{1b}[31m\\u{9b}\\u{202e}\\u{a}\\u{0}&lt;b&gt;&amp;\\u{ffff}").count()
                >= 4,
            "{svg}"
        );
        assert!(figure.to_file(Format::Pdf).unwrap().starts_with(b"%PDF"));
        assert!(figure.to_file(Format::Png).unwrap().starts_with(b"\x89PNG"));
    }

    #[test]
    fn dashes_go_on_over_the_points_of_a_line() {
        let points = (0..=100).map(|k| (f64::from(k), 0.0)).collect();
        let stroke_dasharray = Some("7 3".to_string());
        let dashed = Primitive::PolyLine {
            points,
            stroke: "#000000".into(),
            stroke_width: 1.0,
            stroke_dasharray,
        };
        let dashes = without_dashes(dashed);
        assert_eq!(dashes.len(), 10);
        let Primitive::PolyLine { points, stroke_dasharray: None, .. } = &dashes[3] else {
            panic!("{dashes:?}")
        };
        let (first, last) = (points[0], points[points.len() - 1]);
        assert!((first.0 - 30.0).abs() < 1e-9 && (last.0 - 37.0).abs() < 1e-9, "{points:?}");
    }

    #[test]
    fn bounds_are_open_with_every_marker() {
        for colour in 0..MARKERS.len() {
            let (x, y) = (vec![1.0, 10.0, 100.0], vec![1e-3, 1e-6, 1e-9]);
            let bounds = vec![false, false, true];
            let curve = Curve { name: "a".into(), colour, x, y, style: Style::Marked, bounds };
            let chart = Chart {
                x: Axis::log("x"),
                y: Axis::log("error"),
                curves: vec![curve],
                ..Chart::default()
            };
            let svg = String::from_utf8(
                Figure { panels: vec![chart], ..Figure::default() }.to_file(Format::Svg).unwrap(),
            )
            .unwrap();
            assert_eq!(svg.matches("fill=\"#ffffff\"").count(), 1, "{svg}");
            assert_eq!(svg.matches(&format!("fill=\"{}\"", COLOURS[colour])).count(), 3, "{svg}");
        }
    }

    #[test]
    fn ticks_are_at_both_ends_of_a_long_axis() {
        let curve = Curve { x: vec![1.0, 2.0], y: vec![2e-15, 0.5], ..Curve::default() };
        let chart = Chart { y: Axis::log("drift"), curves: vec![curve], ..Chart::default() };
        assert_eq!(decades(&chart, &chart.y, |point| point.1), Some((-16.0, 0.0, 2.0)));
    }
}
