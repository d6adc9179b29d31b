//! XTC, the compressed format of GROMACS: positions in whole thousandths of its unit, packed into
//! as few bits as their range needs. Runs of neighbours, which would take fewer, are not searched
//! for.
//!
//! The format's unit is a nanometre, that of the others an ångström: a length of 1 is written as
//! 0.1, so that all of them read back alike.

use super::atoms::{Atoms, SPACE, single};
use super::{Fail, Format, Stream};
use crate::store::error::StoreError;
use crate::store::reader::StoredRun;
use std::io::{self, Write};

/// XTC.
pub const FORMAT: Format = Format { name: "xtc", about: "XTC", write };

const MAGIC: i32 = 1995;
const UNIT: f64 = 0.1;
const PRECISION: f32 = 1000.0;

/// Number of points up to which positions are not packed.
const FEW: usize = 9;

/// Index of the smallest range of neighbours that readers accept.
const SMALLEST_NEIGHBOURS: i32 = 9;

/// Range from which on components are packed one by one.
const WIDE: u64 = 0xff_ffff;

fn write(run: &StoredRun, output: &mut Stream, fail: Fail) -> Result<(), StoreError> {
    let atoms = Atoms::of(run, fail)?;
    let mut bytes = Vec::new();
    atoms.each(&mut |frame| {
        bytes.clear();
        let points = i32::try_from(frame.points.len())
            .map_err(|_| fail(too_large("it has too many points")))?;
        let t = single(frame.t)
            .ok_or_else(|| fail(too_large(&format!("its time is {:?}", frame.t))))?;
        put(&mut bytes, &[MAGIC, points, frame.number as i32, t.to_bits() as i32]);
        put(&mut bytes, &[0; SPACE * SPACE]);
        put(&mut bytes, &[points]);
        if frame.points.len() <= FEW {
            for (number, point) in frame.points.iter().enumerate() {
                for c in point {
                    let rounded = single(UNIT * c)
                        .ok_or_else(|| fail(too_large(&atoms.place(number, &frame))))?;
                    put(&mut bytes, &[rounded.to_bits() as i32]);
                }
            }
        } else {
            pack(frame.points, &|number| atoms.place(number, &frame), &mut bytes).map_err(fail)?;
        }
        output.write_all(&bytes).map_err(fail)
    })
}

fn too_large(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("XTC has no room for a frame: {what}"))
}

fn put(bytes: &mut Vec<u8>, numbers: &[i32]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
}

/// Write positions in whole units of their precision, relative to the smallest of each component.
/// `place` says where a point is.
fn pack(
    points: &[[f64; SPACE]],
    place: &dyn Fn(usize) -> String,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    let mut numbers = Vec::with_capacity(points.len());
    for (number, point) in points.iter().enumerate() {
        let rounded = point.map(|c| (c * UNIT * f64::from(PRECISION)).round());
        if !rounded.iter().all(|c| c.abs() < f64::from(i32::MAX - 1)) {
            return Err(too_large(&place(number)));
        }
        numbers.push(rounded.map(|c| c as i32));
    }
    let extreme = |pick: fn(i32, i32) -> i32| -> [i32; SPACE] {
        std::array::from_fn(|c| numbers.iter().map(|number| number[c]).reduce(pick).unwrap_or(0))
    };
    let (least, most) = (extreme(i32::min), extreme(i32::max));
    let ranges: [u64; SPACE] =
        std::array::from_fn(|c| (i64::from(most[c]) - i64::from(least[c]) + 1) as u64);
    put(bytes, &[PRECISION.to_bits() as i32]);
    put(bytes, &least);
    put(bytes, &most);
    put(bytes, &[SMALLEST_NEIGHBOURS]);
    let wide = ranges.iter().any(|&range| range > WIDE);
    let together = length(ranges.iter().map(|&range| u128::from(range)).product());
    let mut bits = Bits::default();
    for number in &numbers {
        let offset: [u64; SPACE] =
            std::array::from_fn(|c| (i64::from(number[c]) - i64::from(least[c])) as u64);
        if wide {
            (0..SPACE).for_each(|c| bits.push(offset[c], length(u128::from(ranges[c]))));
        } else {
            let [x, y, z] = offset.map(u128::from);
            let all = (x * u128::from(ranges[1]) + y) * u128::from(ranges[2]) + z;
            // The lowest byte first.
            for first in (0..together).step_by(8) {
                bits.push((all >> first) as u64 & 0xff, (together - first).min(8));
            }
        }
        // Without a run of neighbours.
        bits.push(0, 1);
    }
    let packed = bits.finish();
    let count = i32::try_from(packed.len()).map_err(|_| too_large("it has too many points"))?;
    put(bytes, &[count]);
    bytes.extend(&packed);
    // Numbers begin at multiples of four.
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    Ok(())
}

/// Number of bits of a number.
fn length(number: u128) -> u32 {
    u128::BITS - number.leading_zeros()
}

/// Sequence of bits, the highest of a number first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte yet, and their number.
    rest: u64,
    count: u32,
}

impl Bits {
    /// Add the lowest `count` bits of a number, at most 32.
    fn push(&mut self, number: u64, count: u32) {
        self.rest = self.rest << count | number;
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            self.bytes.push((self.rest >> self.count) as u8);
        }
        self.rest &= (1 << self.count) - 1;
    }

    fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.push(0, 8 - self.count);
        }
        self.bytes
    }
}
