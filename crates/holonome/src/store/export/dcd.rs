//! DCD as written by CHARMM and NAMD: Fortran records of little-endian numbers, positions in single
//! precision.

use super::atoms::{Atoms, SPACE, single};
use super::{Fail, Format, Stream};
use crate::store::error::StoreError;
use crate::store::reader::StoredRun;
use std::io::{self, Write};

/// DCD.
pub const FORMAT: Format = Format { name: "dcd", about: "DCD", write };

/// Version of CHARMM that the header claims, which decides how it is read.
const VERSION: i32 = 24;

/// Unit of time of the format, in picoseconds: a time of 1 reads back as 1 ps, as with XTC.
const TIME: f64 = 0.048_888_21;

/// Largest number of steps between two frames: some fraction with a denominator up to it is within
/// 2^-23 of any number (Dirichlet), which is the precision of the format.
const MOST_BETWEEN: i32 = 1 << 23;

/// Length of a line of the title.
const TITLE: usize = 80;

fn write(run: &StoredRun, output: &mut Stream, fail: Fail) -> Result<(), StoreError> {
    let atoms = Atoms::of(run, fail)?;
    let count = |number: usize| {
        let reason = || {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{number} is more than a DCD file counts"),
            )
        };
        i32::try_from(number).map_err(|_| fail(reason()))
    };
    let (frames, points) = (count(atoms.frames)?, count(atoms.names.len())?);
    let refused = |reason: String| fail(io::Error::new(io::ErrorKind::InvalidData, reason));
    let steps = Steps::new(&atoms, frames).ok_or_else(|| {
        refused(format!(
            "DCD has no room for frames from t = {:?} on at intervals of {:?}",
            atoms.start, atoms.spacing
        ))
    })?;
    let mut header = b"CORD".to_vec();
    // Frames, first step, steps between frames, all steps; further back the length of a step.
    let mut numbers = [0i32; 20];
    numbers[..4].copy_from_slice(&[frames, steps.first, steps.between, frames * steps.between]);
    numbers[9] = steps.length.to_bits() as i32;
    numbers[19] = VERSION;
    header.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    let mut title = 1i32.to_le_bytes().to_vec();
    title.extend(format!("{:<TITLE$}", "holonome").into_bytes());
    for content in [header, title, points.to_le_bytes().to_vec()] {
        record(output, &content).map_err(fail)?;
    }
    let mut column = Vec::with_capacity(4 * atoms.names.len());
    atoms.each(&mut |frame| {
        for c in 0..SPACE {
            column.clear();
            for (number, point) in frame.points.iter().enumerate() {
                let rounded = single(point[c]).ok_or_else(|| {
                    refused(format!("DCD has no room for a frame: {}", atoms.place(number, &frame)))
                })?;
                column.extend(rounded.to_le_bytes());
            }
            record(output, &column).map_err(fail)?;
        }
        Ok(())
    })
}

/// The steps in which the format counts time: frame k is at step first + k·between.
struct Steps {
    first: i32,
    between: i32,
    length: f32,
}

impl Steps {
    /// Steps for these frames; `None` if the format cannot count them.
    fn new(atoms: &Atoms, frames: i32) -> Option<Steps> {
        // A single frame may have any spacing.
        let spacing = if atoms.spacing == 0.0 { atoms.start.abs() } else { atoms.spacing };
        let start = if spacing == 0.0 { 0.0 } else { atoms.start / spacing };
        // The start falls on a step: as few steps as give it in single precision, in which the
        // format has their length.
        let error = |between: &i32| {
            let steps = start * f64::from(*between);
            (steps - steps.round()).abs() / f64::from(*between)
        };
        let largest = MOST_BETWEEN.min(i32::MAX / frames.max(1)).max(1);
        let enough = f64::from(f32::EPSILON) * start.abs().max(1.0);
        let between = (1..=largest)
            .find(|between| error(between) <= enough)
            .or_else(|| (1..=largest).min_by(|a, b| error(a).total_cmp(&error(b))))?;
        let first = (start * f64::from(between)).round();
        let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&first);
        let length = single(spacing / f64::from(between) / TIME)?;
        (fits && (length != 0.0 || spacing == 0.0)).then_some(Steps {
            first: first as i32,
            between,
            length,
        })
    }
}

/// Write a record, with its length on either side.
fn record(output: &mut Stream, content: &[u8]) -> io::Result<()> {
    let too_long = |_| {
        io::Error::new(io::ErrorKind::InvalidInput, "a frame is longer than a DCD record may be")
    };
    let length = i32::try_from(content.len()).map_err(too_long)?.to_le_bytes();
    output.write_all(&length)?;
    output.write_all(content)?;
    output.write_all(&length)
}
