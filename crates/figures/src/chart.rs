//! Charts: curves over two axes.

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit if it has one.
    pub label: String,
    /// Whether its scale is logarithmic.
    pub log: bool,
    /// Whether it is the time of the page's motion, with which all such axes are linked.
    pub time: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Axis::default() }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), log: true, time: false }
    }

    /// The axis of time.
    pub fn time() -> Axis {
        Axis { label: "t".to_string(), log: false, time: true }
    }
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Bars, of a histogram whose bins these are the centres of.
    Bars,
}

/// Points in order. Those with a number that is not finite, or not positive on a logarithmic axis, are gaps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Which colour and marker it has. Curves that belong together share one.
    pub colour: usize,
    /// Abscissae.
    pub x: Vec<f64>,
    /// Ordinates, as many.
    pub y: Vec<f64>,
    /// Points that are bounds and no values, drawn open; none, or as many.
    pub bounds: Vec<bool>,
    /// How it is drawn.
    pub style: Style,
}

/// A horizontal line with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Its name.
    pub name: String,
    /// Its height.
    pub y: f64,
    /// Whose colour it has; grey if none.
    pub colour: Option<usize>,
}

/// Curves over two axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// What it shows, in a few words.
    pub title: String,
    /// The same in a sentence, for who cannot see it; with what is not to be missed.
    pub note: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Levels, such as the round-off floor.
    pub levels: Vec<Level>,
    /// Whether both axes have the same scale.
    pub equal: bool,
}

impl Chart {
    /// Whether anything can be seen.
    pub fn is_empty(&self) -> bool {
        self.curves.iter().all(|curve| self.shown(curve).next().is_none())
    }

    /// The points of a curve that its axes can show.
    pub fn shown<'c>(&'c self, curve: &'c Curve) -> impl Iterator<Item = (f64, f64)> + 'c {
        let points = curve.x.iter().copied().zip(curve.y.iter().copied());
        points.filter(move |&(x, y)| self.fits(x, y))
    }

    /// Whether the axes can show a point.
    pub fn fits(&self, x: f64, y: f64) -> bool {
        [(&self.x, x), (&self.y, y)].iter().all(|(axis, v)| v.is_finite() && !(axis.log && *v <= 0.0))
    }
}
