//! Charts: curves over two axes.

use serde::Serialize;

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Axis {
    /// Quantity that is shown, with its unit if it has one.
    pub label: String,
    /// True if the scale is logarithmic.
    pub log: bool,
    /// True if the axis is the time of the page's motion; all such axes are linked.
    pub time: bool,
    /// Its ends, if they are given.
    #[serde(skip)]
    pub range: Option<[f64; 2]>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Axis::default() }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), log: true, ..Axis::default() }
    }

    /// The axis of time.
    pub fn time() -> Axis {
        Axis { label: "t".to_string(), time: true, ..Axis::default() }
    }
}

/// Style of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// A line.
    #[default]
    Line,
    /// A thin line behind the others.
    Faint,
    /// Points without a line.
    Points,
    /// Points with a line through them.
    Marked,
    /// Bars of a histogram; the abscissae are the centres of its bins.
    Bars,
}

/// Points in order. Those with a number that is not finite, or not positive on a logarithmic axis,
/// are gaps.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Number of its colour and marker. Curves that belong together share one.
    pub colour: usize,
    /// Style of the curve.
    pub style: Style,
    /// True for points that are bounds and not values, which are drawn open; empty, or one per
    /// point.
    pub bounds: Vec<bool>,
    /// Abscissae.
    #[serde(skip)]
    pub x: Vec<f64>,
    /// Ordinates; as many as abscissae.
    #[serde(skip)]
    pub y: Vec<f64>,
}

/// A horizontal line with a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Name.
    pub name: String,
    /// Height.
    pub y: f64,
    /// Number of its colour; `None` for grey.
    pub colour: Option<usize>,
}

/// Numbers over a grid, shown by colours.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Map {
    /// Name of the numbers.
    pub name: String,
    /// Abscissae of the columns.
    #[serde(skip)]
    pub x: Vec<f64>,
    /// Ordinates of the rows.
    #[serde(skip)]
    pub y: Vec<f64>,
    /// The numbers, row after row.
    #[serde(skip)]
    pub values: Vec<f64>,
}

impl Map {
    /// Ends of the colours: those of the numbers, about 0 if there are numbers of both signs.
    pub fn range(&self) -> [f64; 2] {
        let finite = || self.values.iter().copied().filter(|v| v.is_finite());
        let (low, high) = finite().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        match low < 0.0 && high > 0.0 {
            true => [-high.max(-low), high.max(-low)],
            false => [low, high],
        }
    }
}

/// Curves over two axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chart {
    /// Title, in a few words.
    pub title: String,
    /// Description in a sentence, for readers who cannot see the chart, with everything that must
    /// not be missed.
    pub note: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    #[serde(skip)]
    pub curves: Vec<Curve>,
    /// Colours below them, if any.
    #[serde(skip)]
    pub map: Option<Map>,
    /// Levels, such as the round-off floor.
    pub levels: Vec<Level>,
    /// True if both axes have the same scale.
    pub equal: bool,
}

impl Chart {
    /// True if nothing can be seen.
    pub fn is_empty(&self) -> bool {
        let is_seen = |map: &Map| map.values.iter().any(|v| v.is_finite());
        self.curves.iter().all(|curve| self.shown(curve).next().is_none())
            && !self.map.as_ref().is_some_and(is_seen)
    }

    /// The points of a curve that its axes can show.
    pub fn shown<'c>(&'c self, curve: &'c Curve) -> impl Iterator<Item = (f64, f64)> + 'c {
        let points = curve.x.iter().copied().zip(curve.y.iter().copied());
        points.filter(move |&(x, y)| self.fits(x, y))
    }

    /// True if the axes can show a point.
    pub fn fits(&self, x: f64, y: f64) -> bool {
        let within = |axis: &Axis, v: f64| axis.range.is_none_or(|[a, b]| (a..=b).contains(&v));
        [(&self.x, x), (&self.y, y)]
            .iter()
            .all(|(axis, v)| v.is_finite() && !(axis.log && *v <= 0.0) && within(axis, *v))
    }
}
