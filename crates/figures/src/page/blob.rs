//! Arrays of a page: bytes one after the other, compressed, as text.

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;
use std::io::Write;

/// Number of steps into which a range of places is divided, in 16 bits; one more value is left for
/// NaN and infinities.
const STEPS: f64 = 65_534.0;
const NO_PLACE: u16 = 65_535;

/// Arrays so far.
#[derive(Default)]
pub struct Blob(Vec<u8>);

/// Reference of a page to an array: the kind of its numbers, its first byte, and their count.
#[derive(Debug, PartialEq, Serialize)]
pub struct Stored(&'static str, usize, usize);

/// Reference to an array of places, with the least one and the step between two.
#[derive(Debug, PartialEq, Serialize)]
pub struct StoredPlaces(&'static str, usize, usize, f64, f64);

impl Blob {
    fn put<const N: usize>(
        &mut self,
        kind: &'static str,
        numbers: impl Iterator<Item = [u8; N]>,
    ) -> Stored {
        // Typed arrays begin at multiples of their size.
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let start = self.0.len();
        self.0.extend(numbers.flatten());
        Stored(kind, start, (self.0.len() - start) / N)
    }

    /// Store numbers of 64 bits.
    pub fn exact(&mut self, numbers: &[f64]) -> Stored {
        self.put("f8", numbers.iter().map(|x| x.to_le_bytes()))
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
            (size.copysign(x) as f32).to_le_bytes()
        };
        self.put("f4", numbers.iter().map(|&x| fits(x)))
    }

    /// Store numbers as steps of a 65534th of their range: enough for pictures.
    pub fn places(&mut self, numbers: &[f64]) -> StoredPlaces {
        let finite = numbers.iter().copied().filter(|x| x.is_finite());
        let (low, high) = finite.fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
        let (low, step) = if low <= high {
            (low, ((high - low) / STEPS).max(f64::MIN_POSITIVE))
        } else {
            (0.0, 1.0)
        };
        let place =
            |x: f64| if x.is_finite() { ((x - low) / step).round() as u16 } else { NO_PLACE };
        let Stored(kind, start, count) =
            self.put("u2", numbers.iter().map(|&x| place(x).to_le_bytes()));
        StoredPlaces(kind, start, count, low, step)
    }

    /// All arrays, compressed.
    pub fn packed(&self) -> String {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder
            .write_all(&self.0)
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

    #[test]
    fn arrays_come_back() {
        let mut blob = Blob::default();
        let rounded = blob.rounded(&[1.5, -1e300, 1e-300, f64::NAN, 0.0]);
        let exact = blob.exact(&[0.1, -2.0]);
        assert_eq!((rounded, exact), (Stored("f4", 0, 5), Stored("f8", 24, 2)));
        let bytes = unpacked(&blob);
        let f4: Vec<f32> =
            bytes[..20].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(f4[..3], [1.5, -f32::MAX, f32::MIN_POSITIVE]);
        assert!(f4[3].is_nan() && f4[4] == 0.0);
        assert_eq!(f64::from_le_bytes(bytes[24..32].try_into().unwrap()), 0.1);
    }

    #[test]
    fn places_are_near_and_gaps_stay() {
        let mut blob = Blob::default();
        let numbers = [-3.0, f64::NAN, 1e-5, 7.0];
        let StoredPlaces(.., low, step) = blob.places(&numbers);
        for (bytes, x) in unpacked(&blob).chunks(2).zip(numbers) {
            let k = u16::from_le_bytes(bytes.try_into().unwrap());
            match x.is_finite() {
                true => assert!((low + step * f64::from(k) - x).abs() <= step, "{x}"),
                false => assert_eq!(k, NO_PLACE),
            }
        }
        // A motion at rest has no range.
        let rest = blob.places(&[2.0, 2.0]);
        assert_eq!(rest.3, 2.0);
    }
}
