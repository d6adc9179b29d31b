//! Motions: points, sticks between them, and rigid bodies, at many times.

/// Points, sticks and bodies over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Motion {
    /// Whose motion it is.
    pub name: String,
    /// The times of the frames, ascending.
    pub times: Vec<f64>,
    /// 2 in the plane, whose vertical is y, or 3 in space, whose vertical is z.
    pub dimension: usize,
    /// Points that move.
    pub moving: usize,
    /// Their positions, frame after frame, three numbers each; NaN where there is none.
    pub positions: Vec<f64>,
    /// Points that stay where they are; they follow the others in the count.
    pub fixed: Vec<[f64; 3]>,
    /// Ends of each stick.
    pub sticks: Vec<[u32; 2]>,
    /// Whether neighbours without sticks are joined by a line, as the masses of a string.
    pub string: bool,
    /// What kind of point each moving one is, by which it is coloured; none, or as many.
    pub kinds: Vec<u8>,
    /// Rigid bodies, at the origin.
    pub bodies: usize,
    /// Their rotations from the body's frame to space, frame after frame, nine numbers each by rows.
    pub rotations: Vec<f64>,
    /// What the picture is of, for who cannot see it.
    pub note: String,
}
