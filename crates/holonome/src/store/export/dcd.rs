//! DCD as written by CHARMM and NAMD: Fortran records of little-endian numbers, positions in single precision.

use super::atoms::{Atoms, SPACE};
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

/// Length of a line of the title.
const TITLE: usize = 80;

fn write(run: &StoredRun, output: &mut Stream, fail: Fail) -> Result<(), StoreError> {
    let atoms = Atoms::of(run, fail)?;
    let count = |number: usize| {
        let reason = || io::Error::new(io::ErrorKind::InvalidInput, format!("{number} is more than a DCD file counts"));
        i32::try_from(number).map_err(|_| fail(reason()))
    };
    let (frames, points) = (count(atoms.frames)?, count(atoms.names.len())?);
    let mut header = b"CORD".to_vec();
    // Frames, first step, steps between frames, all steps; further back the length of a step.
    let mut numbers = [0i32; 20];
    numbers[..4].copy_from_slice(&[frames, 0, 1, frames]);
    numbers[9] = ((atoms.spacing / TIME) as f32).to_bits() as i32;
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
            column.extend(frame.points.iter().flat_map(|point| (point[c] as f32).to_le_bytes()));
            record(output, &column).map_err(fail)?;
        }
        Ok(())
    })
}

/// Write a record, with its length on either side.
fn record(output: &mut Stream, content: &[u8]) -> io::Result<()> {
    let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "a frame is longer than a DCD record may be");
    let length = i32::try_from(content.len()).map_err(too_long)?.to_le_bytes();
    output.write_all(&length)?;
    output.write_all(content)?;
    output.write_all(&length)
}
