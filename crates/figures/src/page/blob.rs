//! Arrays of a page, compressed, as text. Neighbours in an array are alike, so the differences of
//! their bits are stored, first the lowest byte of each, then the next: half of what the numbers
//! themselves take, compressed.

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;
use std::collections::HashMap;
use std::io::Write;

/// Number of steps into which a range of places is divided, in 16 bits; one more value is left for
/// NaN and infinities.
const STEPS: f64 = 65_534.0;
const NO_PLACE: u16 = 65_535;

/// Range of places along an axis, in parts of their distance from the origin, below which they are
/// stored as seen from one of them.
const FAR: f64 = 1e-2;

/// Least and largest of the finite numbers.
fn ends(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = numbers.filter(|x| x.is_finite());
    finite.fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)))
}

/// Arrays so far.
#[derive(Default)]
pub struct Blob {
    bytes: Vec<u8>,
    /// First byte of each array, by its bytes: curves share their abscissae.
    starts: HashMap<Vec<u8>, usize>,
}

/// Reference of a page to an array: the kind of its numbers, its first byte, and their count.
#[derive(Debug, PartialEq, Serialize)]
pub struct Stored(&'static str, usize, usize);

/// Reference to an array of places, with the least one, the step between two, the number of columns,
/// as places are stored column by column, and what is to be added along each axis.
#[derive(Debug, PartialEq, Serialize)]
pub struct StoredPlaces(&'static str, usize, usize, f64, f64, usize, [f64; 3]);

impl Blob {
    /// Store numbers by the lowest `N` bytes of their bits.
    fn put<const N: usize>(
        &mut self,
        kind: &'static str,
        numbers: impl Iterator<Item = u64>,
    ) -> Stored {
        let mut before = 0;
        let difference = |bits: u64| bits.wrapping_sub(std::mem::replace(&mut before, bits));
        let differences: Vec<_> = numbers.map(difference).map(u64::to_le_bytes).collect();
        let planes = (0..N).flat_map(|k| differences.iter().map(move |bytes| bytes[k])).collect();
        let bytes = &mut self.bytes;
        let start = self.starts.entry(planes).or_insert_with_key(|planes| {
            bytes.extend(planes);
            bytes.len() - planes.len()
        });
        Stored(kind, *start, differences.len())
    }

    /// Store numbers of 64 bits.
    pub fn exact(&mut self, numbers: &[f64]) -> Stored {
        self.put::<8>("f8", numbers.iter().map(|x| x.to_bits()))
    }

    /// Store the numbers of a curve: with 32 bits if their rounding is at most a 100 000th of their
    /// range, which no screen shows, otherwise with 64, as for an energy that varies by rounding.
    pub fn drawn(&mut self, numbers: &[f64]) -> Stored {
        let finite = || numbers.iter().copied().filter(|x| x.is_finite());
        let (low, high) = finite().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
        let representable = |x: f64| {
            x == 0.0 || (f64::from(f32::MIN_POSITIVE)..f64::from(f32::MAX)).contains(&x.abs())
        };
        let rounding = f64::from(f32::EPSILON) * high.abs().max(low.abs());
        match rounding <= 1e-5 * (high - low) && finite().all(representable) {
            true => self.rounded(numbers),
            false => self.exact(numbers),
        }
    }

    /// Store numbers of 32 bits. Those that are too large or too small for these stay at the end of
    /// their range, and away from 0.
    pub fn rounded(&mut self, numbers: &[f64]) -> Stored {
        let fits = |x: f64| {
            let size = x.abs();
            let size = if size > 0.0 && size.is_finite() {
                size.clamp(f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX))
            } else {
                size
            };
            u64::from((size.copysign(x) as f32).to_bits())
        };
        self.put::<4>("f4", numbers.iter().map(|&x| fits(x)))
    }

    /// Store rows of `columns` numbers each as steps of a 65534th of their range: enough for
    /// pictures. Each column is the path of one coordinate.
    pub fn places(&mut self, numbers: &[f64], columns: usize) -> StoredPlaces {
        let columns = columns.max(1);
        let far = [0, 1, 2].map(|axis| {
            let own = numbers.iter().enumerate().filter(|(k, _)| k % columns % 3 == axis);
            let (low, high) = ends(own.map(|(_, x)| *x));
            // What moves little far from the origin would stand still in steps of its distance.
            if low <= high && high - low < FAR * low.abs() { low } else { 0.0 }
        });
        let near = |(k, x): (usize, &f64)| x - far[k % columns % 3];
        let (low, high) = ends(numbers.iter().enumerate().map(near));
        let (low, step) = if low <= high {
            (low, ((high - low) / STEPS).max(f64::MIN_POSITIVE))
        } else {
            (0.0, 1.0)
        };
        let place =
            |x: f64| if x.is_finite() { ((x - low) / step).round() as u16 } else { NO_PLACE };
        let by_columns = (0..columns)
            .flat_map(|column| numbers.iter().enumerate().skip(column).step_by(columns));
        let Stored(kind, start, count) =
            self.put::<2>("u2", by_columns.map(|entry| u64::from(place(near(entry)))));
        StoredPlaces(kind, start, count, low, step, columns, far)
    }

    /// All arrays, compressed.
    pub fn packed(&self) -> String {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder
            .write_all(&self.bytes)
            .and_then(|()| encoder.finish())
            .map(|bytes| STANDARD.encode(bytes))
            .expect("memory takes it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    fn unpacked(blob: &Blob) -> Vec<u8> {
        let mut bytes = Vec::new();
        GzDecoder::new(&*STANDARD.decode(blob.packed()).unwrap()).read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// The bits of the numbers of an array, as a page puts them together.
    fn bits(blob: &Blob, Stored(kind, start, count): Stored) -> Vec<u64> {
        let bytes = unpacked(blob);
        let width = kind[1..].parse::<usize>().unwrap();
        let mut before = 0u64;
        let number = |k: usize| {
            let mut own = [0; 8];
            (0..width).for_each(|plane| own[plane] = bytes[start + plane * count + k]);
            before = before.wrapping_add(u64::from_le_bytes(own));
            before & (u64::MAX >> (64 - 8 * width))
        };
        (0..count).map(number).collect()
    }

    #[test]
    fn arrays_come_back() {
        let mut blob = Blob::default();
        let rounded = blob.rounded(&[1.5, -1e300, 1e-300, f64::NAN, 0.0]);
        let exact = blob.exact(&[0.1, -2.0]);
        // The same numbers are stored once.
        assert_eq!(blob.exact(&[0.1, -2.0]), exact);
        assert_eq!(blob.exact(&[]).2, 0);
        assert_eq!((&rounded, &exact), (&Stored("f4", 0, 5), &Stored("f8", 20, 2)));
        let f4: Vec<f32> =
            bits(&blob, rounded).iter().map(|&bits| f32::from_bits(bits as u32)).collect();
        assert_eq!(f4[..3], [1.5, -f32::MAX, f32::MIN_POSITIVE]);
        assert!(f4[3].is_nan() && f4[4] == 0.0);
        let f8: Vec<f64> = bits(&blob, exact).into_iter().map(f64::from_bits).collect();
        assert_eq!(f8, [0.1, -2.0]);
    }

    #[test]
    fn curves_have_the_bits_that_are_seen() {
        let mut blob = Blob::default();
        assert_eq!(blob.drawn(&[0.0, 1e-17, 3.0, f64::NAN]).0, "f4");
        // A range of a tenth of the numbers, and of a thousandth: 6e-8 of these is 6e-5 of it.
        assert_eq!((blob.drawn(&[1.0, 1.1]).0, blob.drawn(&[1.0, 1.001]).0), ("f4", "f8"));
        assert_eq!((blob.drawn(&[0.0, 1e-300]).0, blob.drawn(&[0.0, 1e300]).0), ("f8", "f8"));
        assert_eq!(blob.drawn(&[]).2, 0);
    }

    #[test]
    fn places_are_near_and_gaps_stay() {
        let mut blob = Blob::default();
        // Three rows of two columns.
        let numbers = [-3.0, f64::NAN, 1e-5, 7.0, 2.0, -1.0];
        let StoredPlaces(kind, start, count, low, step, columns, far) = blob.places(&numbers, 2);
        assert_eq!((count, columns, far), (6, 2, [0.0; 3]));
        let by_columns = [-3.0, 1e-5, 2.0, f64::NAN, 7.0, -1.0];
        for (k, x) in bits(&blob, Stored(kind, start, count)).into_iter().zip(by_columns) {
            match x.is_finite() {
                true => assert!((low + step * k as f64 - x).abs() <= step, "{x}"),
                false => assert_eq!(k, u64::from(NO_PLACE)),
            }
        }
        // A motion at rest has no range.
        let rest = blob.places(&[2.0, 2.0], 1);
        assert_eq!(rest.3 + rest.6[0], 2.0);
        // A point that moves by a thousandth at a million along x, and by as much about 0 along y.
        let away = [1e6, 0.0, 0.0, 1e6 + 1e-3, 1e-3, 0.0];
        let StoredPlaces(_, _, _, low, step, _, far) = blob.places(&away, 3);
        assert_eq!((low, far), (0.0, [1e6, 0.0, 0.0]));
        assert!(step < 1.001e-3 / STEPS, "{step}");
    }

    #[test]
    fn smooth_paths_take_little() {
        let mut blob = Blob::default();
        let path = |phase: f64| (0..1000).map(move |k| (f64::from(k) / 100.0 + phase).sin());
        let rows: Vec<f64> =
            path(0.0).zip(path(1.0)).zip(path(2.0)).flat_map(|((a, b), c)| [a, b, c]).collect();
        blob.places(&rows, 3);
        // 2 bytes each; neighbours differ by 330 steps at most, and their differences by 4.
        let size = blob.packed().len();
        assert!(size < 3 * rows.len() / 2, "{size} bytes for {} places", rows.len());
    }
}
