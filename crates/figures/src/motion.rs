//! Motions: points, sticks between them, and rigid bodies, at many times.

use serde::Serialize;

/// Points, sticks and bodies over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Motion {
    /// Name of the moving system.
    pub name: String,
    /// Name of the view, where a motion has several.
    pub view: String,
    /// Description of the picture, for readers who cannot see it.
    pub note: String,
    /// 2 in the plane, whose vertical is y, or 3 in space, whose vertical is z.
    pub dimension: usize,
    /// Number of points that move.
    pub moving: usize,
    /// Number of those that are drawn as balls, the first ones; the others are places of bodies and
    /// ends of sticks.
    pub balls: usize,
    /// Points that do not move; they are numbered after the others.
    pub fixed: Vec<[f64; 3]>,
    /// Ends of each stick.
    pub sticks: Vec<[u32; 2]>,
    /// Ends of each spring.
    pub springs: Vec<[u32; 2]>,
    /// True if neighbours without sticks are joined by a line, as the masses of a string.
    pub string: bool,
    /// Kind of each moving point, which determines its colour; empty, or one per point.
    pub kinds: Vec<u8>,
    /// Rigid bodies.
    pub bodies: Vec<Body>,
    /// What the model draws.
    #[serde(skip)]
    pub drawn: Vec<Drawn>,
    /// Seconds in a unit of time, if these are known.
    pub seconds: Option<f64>,
    /// True if frames are unrelated states of a motion, between which nothing is drawn.
    pub stroboscopic: bool,
    /// Times of the frames, ascending.
    #[serde(skip)]
    pub times: Vec<f64>,
    /// Positions of the moving points, frame after frame, three numbers each; NaN if there is none.
    #[serde(skip)]
    pub positions: Vec<f64>,
    /// Rotations from the bodies' frames to space, frame after frame, nine numbers each by rows.
    #[serde(skip)]
    pub rotations: Vec<f64>,
}

/// A rigid body, drawn as a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Body {
    /// The point at which its centre is, if it moves.
    pub at: Option<u32>,
    /// The place of its centre if it does not.
    pub place: [f64; 3],
    /// Half its sides.
    pub half: [f64; 3],
}

/// Forms that a model draws, one for each member of a family.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Drawn {
    /// Name of the form: line, polyline, sphere, box, cylinder, arrow, surface or trail.
    pub form: &'static str,
    /// Number of points of each member: of a surface a square of them.
    pub points: Vec<u32>,
    /// Colour as CSS names it; `None` if the page chooses.
    pub colour: Option<String>,
    /// A label for each member; empty if there are none.
    pub labels: Vec<String>,
    /// Numbers of the form's arguments, member after member.
    #[serde(skip)]
    pub arguments: Vec<DrawnNumbers>,
    /// Numbers that a scale of colours shows, one for each member, if there are any.
    #[serde(skip)]
    pub shades: Option<DrawnNumbers>,
}

/// Numbers in every frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrawnNumbers {
    /// Number of them in a frame.
    pub width: usize,
    /// The numbers, frame after frame.
    pub values: Vec<f64>,
}

impl DrawnNumbers {
    /// Keeps one frame if all are alike.
    pub fn settle(&mut self) {
        let Some((first, rest)) = self.values.split_at_checked(self.width) else { return };
        let alike =
            |frame: &[f64]| frame.iter().zip(first).all(|(a, b)| a.to_bits() == b.to_bits());
        if self.width > 0 && rest.chunks(self.width).all(alike) {
            self.values.truncate(self.width);
        }
    }
}
