//! Coefficients of collocation for stiff fields, in the basis of their eigenvectors (HW IV.8).

/// Collocation with a node at the end of the step, in the basis in which its stages are one real
/// and one complex system.
#[derive(Clone, Debug, PartialEq)]
pub struct StiffCollocation {
    /// Order of convergence.
    pub order: u32,
    /// The nodes c, ascending; the last one is 1.
    pub nodes: [f64; 3],
    /// Coefficients A, whose last row are the weights.
    pub a: [[f64; 3]; 3],
    /// Real eigenvalue of A⁻¹.
    pub real: f64,
    /// Real and imaginary part of its complex eigenvalue.
    pub complex: [f64; 2],
    /// T with Z = T W: its columns are the real eigenvector of A⁻¹ and the parts of a complex one.
    pub from_basis: [[f64; 3]; 3],
    /// T⁻¹.
    pub to_basis: [[f64; 3]; 3],
    /// Weights of the stages Z in the error estimate (γ/h − J)⁻¹ (X(t, x) + Σ e_i Z_i/h).
    pub error: [f64; 3],
    /// Order of the estimate.
    pub estimate: u32,
}

impl StiffCollocation {
    /// Radau IIA of order 5 (HW IV.5, table 5.6; IV.8 (8.4), (8.19)).
    pub(super) fn radau_iia() -> StiffCollocation {
        let root = 6f64.sqrt();
        let (cube, both) = (9f64.cbrt(), 3f64.sqrt());
        // The eigenvalues of A are the inverses of these.
        let inverse = (6.0 + cube * (cube - 1.0)) / 30.0;
        let [re, im] = [(12.0 - cube * (cube - 1.0)) / 60.0, cube * (cube + 1.0) * both / 60.0];
        let square = re * re + im * im;
        StiffCollocation {
            order: 5,
            nodes: [(4.0 - root) / 10.0, (4.0 + root) / 10.0, 1.0],
            a: [
                [
                    (88.0 - 7.0 * root) / 360.0,
                    (296.0 - 169.0 * root) / 1800.0,
                    (-2.0 + 3.0 * root) / 225.0,
                ],
                [
                    (296.0 + 169.0 * root) / 1800.0,
                    (88.0 + 7.0 * root) / 360.0,
                    (-2.0 - 3.0 * root) / 225.0,
                ],
                [(16.0 - root) / 36.0, (16.0 + root) / 36.0, 1.0 / 9.0],
            ],
            real: 1.0 / inverse,
            complex: [re / square, im / square],
            from_basis: [
                [9.123_239_487_089_294e-2, -0.141_255_295_020_954_2, -3.002_919_410_514_742e-2],
                [0.241_717_932_707_107, 0.204_129_352_293_799_93, 0.382_942_112_757_262],
                [0.966_048_182_615_093, 1.0, 0.0],
            ],
            to_basis: [
                [4.325_579_890_063_155, 0.339_199_251_815_809_87, 0.541_770_539_935_874_9],
                [-4.178_718_591_551_905, -0.327_682_820_761_062_37, 0.476_623_554_500_550_44],
                [-0.502_872_634_945_786_9, 2.571_926_949_855_605, -0.596_039_204_828_224_9],
            ],
            error: [-(13.0 + 7.0 * root) / 3.0, (-13.0 + 7.0 * root) / 3.0, -1.0 / 3.0],
            estimate: 3,
        }
    }

    /// Values at θ of the Lagrange polynomials of the nodes 0 and c that belong to the nodes c: the
    /// state at θ is x + Σ L_i(θ) Z_i, within the step and beyond it.
    pub fn polynomials(&self, theta: f64) -> [f64; 3] {
        std::array::from_fn(|i| {
            let own = self.nodes[i];
            let others = (0..3).filter(|&k| k != i).map(|k| self.nodes[k]);
            others.fold(theta / own, |product, c| product * ((theta - c) / (own - c)))
        })
    }
}

/// Product of a matrix of coefficients with a component of three vectors.
pub fn product(matrix: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row[2].mul_add(v[2], row[1].mul_add(v[1], row[0] * v[0])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trees::{HIGHEST_ORDER, StageWeights};
    use std::sync::LazyLock;

    static METHOD: LazyLock<StiffCollocation> = LazyLock::new(StiffCollocation::radau_iia);

    #[test]
    fn the_order_follows_from_the_coefficients() {
        let a: Vec<Vec<f64>> = METHOD.a.iter().map(|row| row.to_vec()).collect();
        let weights = StageWeights::new(&a, HIGHEST_ORDER);
        let miss =
            weights.first_miss(&a[2], &a[2], &|tree| 1.0 / tree.gamma).expect("a finite order");
        assert_eq!(miss.order - 1, METHOD.order);
    }

    /// A T = T Λ⁻¹ with Λ of one real and one complex eigenvalue, and T⁻¹ T = 1.
    #[test]
    fn the_basis_diagonalises_the_coefficients() {
        let StiffCollocation { a, real, complex: [re, im], from_basis, to_basis, .. } = &*METHOD;
        let column = |k: usize| from_basis.map(|row| row[k]);
        for k in 0..3 {
            // Numbers up to 5, rounded some ten times.
            let tolerance = 50.0 * f64::EPSILON;
            let unit = product(to_basis, column(k));
            for i in 0..3 {
                let expected = f64::from(u8::from(i == k));
                assert!((unit[i] - expected).abs() < tolerance, "{unit:?}");
            }
            // A⁻¹ v = γ v; A⁻¹ (u, w) = (α u − β w, β u + α w).
            let scaled = match k {
                0 => column(0).map(|v| real * v),
                1 => std::array::from_fn(|i| re * column(1)[i] + im * column(2)[i]),
                _ => std::array::from_fn(|i| re * column(2)[i] - im * column(1)[i]),
            };
            let back = product(a, scaled);
            for i in 0..3 {
                assert!((back[i] - column(k)[i]).abs() < tolerance, "{k}: {back:?}");
            }
        }
    }

    #[test]
    fn polynomials_are_one_at_their_nodes_and_exact() {
        for (k, &c) in METHOD.nodes.iter().enumerate() {
            for (i, value) in METHOD.polynomials(c).into_iter().enumerate() {
                assert!((value - f64::from(u8::from(i == k))).abs() < 4.0 * f64::EPSILON);
            }
        }
        // θ − 2θ² + 3θ³, beyond the step; weights up to 60.
        let cubic = |t: f64| t * (1.0 + t * (3.0 * t - 2.0));
        for theta in [0.3, 1.7] {
            let parts = METHOD.polynomials(theta).into_iter().zip(METHOD.nodes);
            let sum: f64 = parts.map(|(l, c)| l * cubic(c)).sum();
            assert!((sum - cubic(theta)).abs() < 500.0 * f64::EPSILON, "{theta}: {sum}");
        }
    }
}
