//! Arrays of several states side by side, in the lanes of a vector processor: ordered by number, then
//! by lane.

/// Copy lane `lane` of `all` into `one`.
#[inline]
pub fn gather(all: &[f64], lanes: usize, lane: usize, one: &mut [f64]) {
    for (k, one) in one.iter_mut().enumerate() {
        *one = all[k * lanes + lane];
    }
}

/// Copy `one` into lane `lane` of `all`.
#[inline]
pub fn scatter(one: &[f64], lanes: usize, lane: usize, all: &mut [f64]) {
    for (k, one) in one.iter().enumerate() {
        all[k * lanes + lane] = *one;
    }
}

/// Copy `one` into every lane of `all`.
#[inline]
pub fn spread(one: &[f64], lanes: usize, all: &mut [f64]) {
    for (all, one) in all.chunks_exact_mut(lanes).zip(one) {
        all.fill(*one);
    }
}
