//! Motions: points, sticks between them, and rigid bodies, at many times.

use serde::Serialize;

/// Points, sticks and bodies over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Motion {
    /// Name of the moving system.
    pub name: String,
    /// Description of the picture, for readers who cannot see it.
    pub note: String,
    /// 2 in the plane, whose vertical is y, or 3 in space, whose vertical is z.
    pub dimension: usize,
    /// Number of points that move.
    pub moving: usize,
    /// Points that do not move; they are numbered after the others.
    pub fixed: Vec<[f64; 3]>,
    /// Ends of each stick.
    pub sticks: Vec<[u32; 2]>,
    /// True if neighbours without sticks are joined by a line, as the masses of a string.
    pub string: bool,
    /// Kind of each moving point, which determines its colour; empty, or one per point.
    pub kinds: Vec<u8>,
    /// Number of rigid bodies, at the origin.
    pub bodies: usize,
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
