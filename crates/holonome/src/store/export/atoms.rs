//! Atoms of a run for molecular formats: points that move in space. Every member of a coordinate of
//! up to three components is one.

use super::Fail;
use crate::store::error::StoreError;
use crate::store::layout::Dimension;
use crate::store::reader::StoredRun;
use crate::store::schema::Series;
use std::io;

/// Components of a point.
pub const SPACE: usize = 3;

/// Points of a run.
pub struct Atoms<'a> {
    run: &'a StoredRun,
    coordinates: Vec<(&'a Series, usize)>,
    /// Variable of each point, and its number within the variable.
    pub names: Vec<(String, usize)>,
    /// Number of frames: samples, for an ensemble those of all trajectories.
    pub frames: usize,
    /// Time of the first frame.
    pub start: f64,
    /// Time between two frames.
    pub spacing: f64,
}

/// Points at one time.
pub struct Frame<'f> {
    /// Number of the frame.
    pub number: usize,
    pub trajectory: Option<u64>,
    pub t: f64,
    pub points: &'f [[f64; SPACE]],
}

/// A number in single precision; `None` if it is too large for that.
pub fn single(number: f64) -> Option<f32> {
    let rounded = number as f32;
    (rounded.is_finite() || !number.is_finite()).then_some(rounded)
}

impl<'a> Atoms<'a> {
    /// Points of a run.
    ///
    /// # Errors
    /// If nothing in the run moves in space.
    pub fn of(run: &'a StoredRun, fail: Fail) -> Result<Atoms<'a>, StoreError> {
        let (mut coordinates, mut names) = (Vec::new(), Vec::new());
        let schema = run.schema();
        for series in schema
            .arrays
            .iter()
            .filter(|series| series.attributes.get("role") == Some(&"coordinate".into()))
        {
            let axes = series.axes.iter().map(|&axis| run.read_axis(&schema.axes[axis]));
            let axes = axes.collect::<Result<Vec<Dimension>, _>>()?;
            let is_member = |axis: &&Dimension| axis.role == crate::store::layout::Role::Index;
            let members: usize = axes.iter().filter(is_member).map(Dimension::len).product();
            let width: usize =
                axes.iter().filter(|axis| !is_member(axis)).map(Dimension::len).product();
            if (1..=SPACE).contains(&width) {
                coordinates.push((series, width));
                names.extend((1..=members).map(|member| (series.name.clone(), member)));
            }
        }
        if names.is_empty() {
            let reason = "the run has no coordinates of up to three components, which would be points in space";
            return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, reason)));
        }
        let times = run.times()?;
        let spacing = if times.len() > 1 { times[1] - times[0] } else { 0.0 };
        let start = times.first().copied().unwrap_or(0.0);
        Ok(Atoms { run, coordinates, names, frames: run.states(), start, spacing })
    }

    /// Place of a point, for an error about it.
    pub fn place(&self, number: usize, frame: &Frame) -> String {
        let (name, member) = &self.names[number];
        let of = frame
            .trajectory
            .map_or(String::new(), |trajectory| format!(" of trajectory {trajectory}"));
        format!(
            "atom {} ({name}, {member}){of} is at {:?} at t = {:?}",
            number + 1,
            frame.points[number],
            frame.t
        )
    }

    /// Pass every frame to `show`, in order.
    ///
    /// # Errors
    /// If a row cannot be read, or from `show`.
    pub fn each(
        &self,
        show: &mut dyn FnMut(Frame) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (times, first) = (self.run.times()?, self.run.trajectories().map(|range| range.start));
        let mut readers: Vec<_> = self
            .coordinates
            .iter()
            .map(|&(series, width)| (self.run.row_reader(series), width))
            .collect();
        let mut points = vec![[0.0; SPACE]; self.names.len()];
        let in_row = if first.is_some() { times.len() } else { 1 };
        for row in 0..self.run.samples() {
            for sample in 0..in_row {
                let mut next = points.iter_mut();
                for (reader, width) in &mut readers {
                    let numbers = reader.row(row)?;
                    let own = numbers.len() / in_row;
                    for member in numbers[sample * own..(sample + 1) * own].chunks(*width) {
                        if let Some(point) = next.next() {
                            point[..member.len()].copy_from_slice(member);
                        }
                    }
                }
                let t = times[if first.is_some() { sample } else { row }];
                let trajectory = first.map(|first| first + row as u64);
                show(Frame { number: row * in_row + sample, trajectory, t, points: &points })?;
            }
        }
        Ok(())
    }
}
