//! Extended XYZ: per frame the number of points, a line of properties, and a line for each point.
//! The species is the name of the variable; numbers are the shortest decimals that read back as the
//! same bits.

use super::atoms::Atoms;
use super::{Fail, Format, Stream};
use crate::store::error::StoreError;
use crate::store::reader::StoredRun;
use std::io::Write;

/// Extended XYZ.
pub const FORMAT: Format = Format { name: "xyz", about: "extended XYZ", write };

fn write(run: &StoredRun, output: &mut Stream, fail: Fail) -> Result<(), StoreError> {
    let atoms = Atoms::of(run, fail)?;
    atoms.each(&mut |frame| {
        let mut put = || {
            writeln!(output, "{}", atoms.names.len())?;
            write!(output, "Properties=species:S:1:pos:R:3 Time={:?}", frame.t)?;
            if let Some(trajectory) = frame.trajectory {
                write!(output, " Trajectory={trajectory}")?;
            }
            writeln!(output)?;
            for ((name, _), [x, y, z]) in atoms.names.iter().zip(frame.points) {
                writeln!(output, "{name} {x:?} {y:?} {z:?}")?;
            }
            Ok(())
        };
        put().map_err(fail)
    })
}
