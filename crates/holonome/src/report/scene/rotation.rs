//! Rotations as matrices by rows.

/// Form of a rotation in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attitude {
    Matrix,
    Quaternion,
}

/// A rotation by rows. The first number of a quaternion is the scalar part.
pub(super) fn rotation(attitude: Attitude, numbers: &[f64]) -> [f64; 9] {
    match attitude {
        Attitude::Matrix => std::array::from_fn(|k| numbers[k]),
        Attitude::Quaternion => {
            let size = numbers.iter().map(|x| x * x).sum::<f64>().sqrt();
            let [w, x, y, z] = std::array::from_fn(|k| numbers[k] / size);
            [
                1.0 - 2.0 * (y * y + z * z),
                2.0 * (x * y - w * z),
                2.0 * (x * z + w * y),
                2.0 * (x * y + w * z),
                1.0 - 2.0 * (x * x + z * z),
                2.0 * (y * z - w * x),
                2.0 * (x * z - w * y),
                2.0 * (y * z + w * x),
                1.0 - 2.0 * (x * x + y * y),
            ]
        }
    }
}

/// A matrix by rows with rows and columns exchanged.
pub(super) fn transposed(a: &[f64; 9]) -> [f64; 9] {
    std::array::from_fn(|k| a[3 * (k % 3) + k / 3])
}

/// The product of two matrices by rows.
pub(super) fn product(a: &[f64; 9], b: &[f64; 9]) -> [f64; 9] {
    std::array::from_fn(|k| (0..3).map(|j| a[3 * (k / 3) + j] * b[3 * j + k % 3]).sum())
}
