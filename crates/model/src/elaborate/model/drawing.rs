//! Pictures that a model declares: forms whose places are formulas.

use super::Quantity;
use crate::syntax::span::Span;

/// What an argument of a form is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A point of the plane or of space.
    Point,
    /// One point or more, or the points of a range.
    Points,
    /// The points of two parameters.
    Surface,
    /// A vector, of as many components as the points.
    Vector,
    /// A length.
    Length,
    /// A rotation matrix, a unit quaternion with the scalar part first, or in the plane an angle.
    Attitude,
    /// Whole lengths of the sides, as many as a point has components.
    Sides,
}

macro_rules! forms {
    ($( $form:ident $name:literal $usage:literal, [$($argument:ident),*]; )+) => {
        /// Forms that can be drawn, and what a camera does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Form { $( #[doc = concat!("`", $usage, "`")] $form, )+ }

        /// The table of forms.
        pub const FORMS: &[FormRow] = &[$( FormRow {
            form: Form::$form, name: $name, usage: $usage, arguments: &[$(Argument::$argument),*],
        } ),+];
    };
}

/// A form with its name, its usage and what its arguments are.
#[derive(Debug)]
pub struct FormRow {
    /// The form.
    pub form: Form,
    /// Its name.
    pub name: &'static str,
    /// How it is written.
    pub usage: &'static str,
    /// What its arguments are.
    pub arguments: &'static [Argument],
}

forms! {
    Line "line" "line(a, b)", [Point, Point];
    Polyline "polyline" "polyline(a, b, c) or polyline(i in 1..n : EXPR)", [Points];
    Sphere "sphere" "sphere(x, radius)", [Point, Length];
    Box "box" "box(R, x, (a, b, c))", [Attitude, Point, Sides];
    Cylinder "cylinder" "cylinder(a, b, radius)", [Point, Point, Length];
    Arrow "arrow" "arrow(x, v)", [Point, Vector];
    Surface "surface" "surface(u in 0..1, v in 0..2*pi : EXPR)", [Surface];
    Trail "trail" "trail(x)", [Point];
    Follow "follow" "camera follow x", [Point];
    Frame "frame" "camera frame(R)", [Attitude];
}

impl Form {
    /// The form with a name.
    pub fn named(name: &str) -> Option<Form> {
        FORMS.iter().find(|row| row.name == name).map(|row| row.form)
    }

    /// Its row of the table.
    pub fn row(self) -> &'static FormRow {
        &FORMS[self as usize]
    }

    /// True if it moves the camera, and draws nothing.
    pub fn is_camera(self) -> bool {
        matches!(self, Form::Follow | Form::Frame)
    }
}

/// Colour of what is drawn.
#[derive(Clone, Debug)]
pub enum Colour {
    /// A name of CSS, or `#rrggbb`.
    Named(String),
    /// A number for each member, which a scale of colours shows.
    Of(Quantity),
}

/// A form for every member of a family.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The form.
    pub form: Form,
    /// Span of its name.
    pub span: Span,
    /// Its arguments. Those with ranges of their own have several points for each member, which follow
    /// each other.
    pub arguments: Vec<Quantity>,
    /// Number of points that the first argument has for each member.
    pub points: Vec<usize>,
    /// Colour; the page chooses one if it is absent.
    pub colour: Option<Colour>,
    /// A label for each member; empty if there are none.
    pub labels: Vec<String>,
}

impl Drawing {
    /// Number of members.
    pub fn members(&self) -> usize {
        self.points.len()
    }

    /// All its formulas: the arguments, then the number of a colour.
    pub fn quantities(&self) -> impl Iterator<Item = &Quantity> {
        let colour = match &self.colour {
            Some(Colour::Of(quantity)) => Some(quantity),
            _ => None,
        };
        self.arguments.iter().chain(colour)
    }

    /// All its formulas: the arguments, then the number of a colour.
    pub fn quantities_mut(&mut self) -> impl Iterator<Item = &mut Quantity> {
        let colour = match &mut self.colour {
            Some(Colour::Of(quantity)) => Some(quantity),
            _ => None,
        };
        self.arguments.iter_mut().chain(colour)
    }
}
