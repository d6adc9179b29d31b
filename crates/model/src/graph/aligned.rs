//! Arrays aligned for vector registers.

use std::ops::{Deref, DerefMut};

/// Numbers that start on a cache line, so that no vector register straddles two of them.
#[derive(Debug, Default)]
pub struct Aligned {
    data: Vec<f64>,
    first: usize,
    len: usize,
}

/// Bytes of a cache line, which is also the widest vector register.
const LINE: usize = 64;

/// Numbers in a cache line: [`first_aligned`] skips fewer.
pub const LINE_NUMBERS: usize = LINE / size_of::<f64>();

impl Aligned {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Aligned {
        let data = vec![0.0; len + LINE / size_of::<f64>()];
        let first = first_aligned(&data);
        Aligned { data, first, len }
    }
}

/// Index of the first number in `data` that starts a cache line.
///
/// # Panics
/// If `data` is shorter than a line and has no start of one.
#[inline]
pub fn first_aligned(data: &[f64]) -> usize {
    let first = data.as_ptr().align_offset(LINE);
    assert!(first <= data.len(), "too short to hold the start of a cache line");
    first
}

impl Clone for Aligned {
    // A copy has another address, so its lines start elsewhere.
    fn clone(&self) -> Aligned {
        let mut copy = Aligned::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl Deref for Aligned {
    type Target = [f64];

    #[inline]
    fn deref(&self) -> &[f64] {
        &self.data[self.first..self.first + self.len]
    }
}

impl DerefMut for Aligned {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.data[self.first..self.first + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_aligned_and_equal() {
        for len in [0, 1, 7, 8, 1000] {
            let mut a = Aligned::zeros(len);
            a.iter_mut().enumerate().for_each(|(i, a)| *a = i as f64);
            let b = a.clone();
            assert_eq!(*a, *b);
            for numbers in [&a, &b] {
                assert_eq!(numbers.len(), len);
                assert_eq!(numbers.as_ptr() as usize % LINE, 0);
            }
        }
    }
}
