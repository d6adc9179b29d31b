//! Coefficients of Gauss collocation with any number of stages (HLW II.1.3, VIII.6.1).
//!
//! Everything is written with the Legendre polynomials P_k on the step: the field along it is Σ W_k
//! P_k(2θ − 1), with W = L F of its values F at the nodes. Its integral from an end of the step
//! gives the stages, Z = h A F, the start of the iteration in the next step, and the state anywhere
//! in between; x₁ = x + h W₀, and the last coefficients show how well the polynomial fits.

use holonome_arithmetic::Real;

/// Largest |h λ| for which the iteration is taken to converge well.
pub const CONVERGES_TO: f64 = 1.2;

/// A collocation method.
#[derive(Clone, Debug, PartialEq)]
pub struct Collocation {
    /// Number s of stages.
    pub stages: usize,
    /// Order of convergence.
    pub order: u32,
    /// The nodes c in (0, 1), ascending.
    pub nodes: Vec<f64>,
    /// Weights b.
    pub weights: Vec<f64>,
    /// A².
    pub double_sums: Vec<Vec<f64>>,
    /// A and L, of the field: Z_i = h Σ a_ij F_j, W_k = Σ L_kj F_j.
    pub of_field: Sums,
    /// μ = A/b and L/b, of the increments k_j = h b_j F_j: Z_i = Σ μ_ij k_j, h W_k = Σ (L_kj/b_j)
    /// k_j.
    ///
    /// The method is symplectic if μ_ij + μ_ji = 1, whatever the weights are. This holds exactly,
    /// in machine numbers (Antoñana, Makazaga, Murua, Numer. Algorithms 76 (2017) 861).
    pub of_increments: Sums,
}

/// Sums over the stages of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// Rows of the stages.
    pub stages: Vec<Vec<f64>>,
    /// Rows of the coefficients W.
    pub coefficients: Vec<Vec<f64>>,
}

/// An end of the step from which the integral of its polynomial is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Start of the step: for a state within it.
    Start,
    /// End of the step: for the guess of the next step.
    End,
}

impl Collocation {
    /// Method of so many stages, computed in twice the precision: an error of a coefficient is the
    /// same in every step, and adds up.
    pub(super) fn gauss(stages: usize) -> Collocation {
        let s = stages as f64;
        let node = |i: usize| {
            let mut x = Double(
                -(std::f64::consts::PI * (4.0 * i as f64 + 3.0) / (4.0 * s + 2.0)).cos(),
                0.0,
            );
            for _ in 0..6 {
                let (value, slope) = value_and_slope(stages, x);
                x = x + Double(-value.0 / slope.0, 0.0) + Double(-value.1 / slope.0, 0.0);
            }
            x
        };
        let x: Vec<Double> = (0..stages).map(node).collect();
        let one = Double(1.0, 0.0);
        // b = 1/((1 − x²) P'²) on the step.
        let b = |x: Double| {
            let (_, slope) = value_and_slope(stages, x);
            one / ((one + -(x * x)) * slope * slope)
        };
        let polynomials: Vec<Vec<Double>> = x.iter().map(|&x| legendre(stages, x)).collect();
        let weights: Vec<Double> = x.iter().map(|&x| b(x)).collect();
        let coefficient =
            |k: usize, j: usize| weights[j] * polynomials[j][k] * Double(2.0 * k as f64 + 1.0, 0.0);
        let half = Double(0.5, 0.0);
        let integral = |k: usize, i: usize| match k {
            0 => (x[i] + one) * half,
            k => {
                (polynomials[i][k + 1] + -polynomials[i][k - 1])
                    / Double(2.0 * (2.0 * k as f64 + 1.0), 0.0)
            }
        };
        let sum = |i: usize, j: usize| {
            (0..stages).fold(Double(0.0, 0.0), |sum, k| sum + integral(k, i) * coefficient(k, j))
        };
        let double_sum = |i: usize, j: usize| {
            (0..stages).fold(Double(0.0, 0.0), |all, k| all + sum(i, k) * sum(k, j))
        };
        // Below the diagonal they are at least a half, so that the difference from 1 is exact.
        let below = |i: usize, j: usize| (sum(i, j) / weights[j]).rounded();
        let share = |i: usize, j: usize| if i >= j { below(i, j) } else { 1.0 - below(j, i) };
        let table = |number: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
            (0..stages).map(|i| (0..stages).map(|j| number(i, j)).collect()).collect()
        };
        let nodes: Vec<f64> = x.iter().map(|&x| ((x + one) * half).rounded()).collect();
        let weights: Vec<f64> = weights.iter().map(|b| b.rounded()).collect();
        Collocation {
            stages,
            order: order_of_quadrature(&nodes, &weights),
            nodes,
            weights,
            double_sums: table(&|i, j| double_sum(i, j).rounded()),
            of_field: Sums {
                stages: table(&|i, j| sum(i, j).rounded()),
                coefficients: table(&|k, j| coefficient(k, j).rounded()),
            },
            of_increments: Sums {
                stages: table(&share),
                coefficients: table(&|k, j| {
                    (polynomials[j][k] * Double(2.0 * k as f64 + 1.0, 0.0)).rounded()
                }),
            },
        }
    }

    /// Sums of increments, or of the field.
    pub fn sums(&self, of_increments: bool) -> &Sums {
        if of_increments { &self.of_increments } else { &self.of_field }
    }
}

/// Order of a quadrature, which integrates the powers below it up to round-off; that of a collocation
/// method is the same (HLW II.1, theorem 1.5).
fn order_of_quadrature(nodes: &[f64], weights: &[f64]) -> u32 {
    let integral = |power: u32| -> f64 {
        weights.iter().zip(nodes).map(|(b, c)| b * c.powi(power as i32)).sum()
    };
    let round_off = nodes.len() as f64 * f64::EPSILON;
    let misses = |&power: &u32| (integral(power) - 1.0 / f64::from(power + 1)).abs() > round_off;
    (0..).find(misses).expect("a quadrature is exact up to some degree")
}

/// Integrals of the Legendre polynomials of a step of this `length` from its start, where `base` is
/// −1, or from its end, where it is 1, over `ratio` times the part of the length up to a node.
#[inline(always)]
pub fn reach<R: Real>(
    node: R,
    [base, ratio, length]: [R; 3],
    mut put: impl FnMut(R),
    count: usize,
) {
    put(length * (ratio * node));
    let x = (ratio * 2.0).mul_add(node, base);
    let (mut before, mut now) = (x.constant(1.0), x);
    for k in 1..count {
        let k = k as f64;
        let next = (x * ((2.0 * k + 1.0) / (k + 1.0))).mul_add(now, before * (-k / (k + 1.0)));
        put((length * (1.0 / (4.0 * k + 2.0))) * (next - before));
        (before, now) = (now, next);
    }
}

/// P_0 … P_{n+1} at x.
fn legendre(n: usize, x: Double) -> Vec<Double> {
    let mut values = vec![Double(1.0, 0.0), x];
    for k in 1..=n {
        let (now, before) = (values[k], values[k - 1]);
        let k = k as f64;
        values.push(
            (Double(2.0 * k + 1.0, 0.0) * x * now + -(Double(k, 0.0) * before))
                / Double(k + 1.0, 0.0),
        );
    }
    values
}

/// P_n and its derivative at x, by n (x P_n − P_{n−1})/(x² − 1).
fn value_and_slope(n: usize, x: Double) -> (Double, Double) {
    let values = legendre(n, x);
    let slope =
        (x * values[n] + -values[n - 1]) * Double(n as f64, 0.0) / (x * x + Double(-1.0, 0.0));
    (values[n], slope)
}

/// A number as the sum of two (Dekker, Numer. Math. 18 (1971) 224), good to about 30 digits.
#[derive(Clone, Copy, Debug)]
struct Double(f64, f64);

impl Double {
    fn rounded(self) -> f64 {
        self.0 + self.1
    }

    fn of_sum(a: f64, b: f64) -> Double {
        let sum = a + b;
        let part = sum - a;
        Double(sum, (a - (sum - part)) + (b - part))
    }
}

impl std::ops::Add for Double {
    type Output = Double;

    fn add(self, other: Double) -> Double {
        let sum = Double::of_sum(self.0, other.0);
        Double::of_sum(sum.0, sum.1 + (self.1 + other.1))
    }
}

impl std::ops::Neg for Double {
    type Output = Double;

    fn neg(self) -> Double {
        Double(-self.0, -self.1)
    }
}

impl std::ops::Mul for Double {
    type Output = Double;

    fn mul(self, other: Double) -> Double {
        let product = self.0 * other.0;
        let rest = self.0.mul_add(other.0, -product);
        Double::of_sum(product, rest + (self.0 * other.1 + self.1 * other.0))
    }
}

impl std::ops::Div for Double {
    type Output = Double;

    fn div(self, other: Double) -> Double {
        let first = self.0 / other.0;
        let rest = self + -(Double(first, 0.0) * other);
        let second = rest.0 / other.0;
        let rest = rest + -(Double(second, 0.0) * other);
        Double::of_sum(first, second) + Double(rest.0 / other.0, 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_are_those_of_gauss() {
        for method in [1, 2, 3, 4, 6, 8].map(Collocation::gauss) {
            let (s, c, b) = (method.stages, &method.nodes, &method.weights);
            assert_eq!(*b, method.of_field.coefficients[0]);
            let scaled = |row: &Vec<f64>| {
                row.iter().zip(b).map(|(share, b)| share * b).collect::<Vec<f64>>()
            };
            let of_increments: Vec<Vec<f64>> =
                method.of_increments.stages.iter().map(scaled).collect();
            // Each number is rounded once or twice; a sum of s of them below 1 is good to s
            // roundings.
            let tolerance = s as f64 * f64::EPSILON;
            for power in 0..2 * s {
                // B(2s): quadrature; C(s): collocation (HLW II.1 (1.11)).
                let of = |weights: &[f64]| -> f64 {
                    weights.iter().zip(c).map(|(w, c)| w * c.powi(power as i32)).sum()
                };
                assert!(
                    (of(b) - 1.0 / (power + 1) as f64).abs() < tolerance,
                    "B({power}) of {s} stages"
                );
                for sums in [&method.of_field.stages, &of_increments] {
                    for (sums, c) in sums.iter().zip(c).filter(|_| power < s) {
                        let exact = c.powi(power as i32 + 1) / (power + 1) as f64;
                        assert!((of(sums) - exact).abs() < tolerance, "C({power}) of {s} stages");
                    }
                }
                // ∫₀ᶜ ∫₀ʸ of a polynomial whose integral still is one of degree s − 1.
                for (sums, c) in method.double_sums.iter().zip(c).filter(|_| power + 1 < s) {
                    let exact = c.powi(power as i32 + 2) / ((power + 1) * (power + 2)) as f64;
                    assert!(
                        (of(sums) - exact).abs() < tolerance,
                        "C({power}) twice, of {s} stages"
                    );
                }
            }
            let (sums, shares) = (&method.of_field.stages, &method.of_increments.stages);
            for i in 0..s {
                // Every number is rounded once: equal ones have equal bits.
                assert_eq!(b[i], b[s - 1 - i], "weight {i} of {s}");
                for j in 0..s {
                    // Symplectic (HLW VI.4 (4.3)) and symmetric.
                    let m = b[i] * sums[i][j] + b[j] * sums[j][i] - b[i] * b[j];
                    assert!(m.abs() < f64::EPSILON, "{m:e}");
                    let mirrored = sums[s - 1 - i][s - 1 - j] + sums[i][j] - b[j];
                    assert!(mirrored.abs() < 2.0 * f64::EPSILON, "{mirrored:e}");
                    // Exactly: both differences are machine numbers.
                    assert_eq!(
                        (1.0 - shares[i][j], 1.0 - shares[j][i]),
                        (shares[j][i], shares[i][j])
                    );
                    assert_eq!(shares[s - 1 - i][s - 1 - j], shares[j][i]);
                    // L = (L/b) b, of numbers up to 2s.
                    let missed = method.of_increments.coefficients[i][j] * b[j]
                        - method.of_field.coefficients[i][j];
                    assert!(missed.abs() < tolerance, "{missed:e}");
                }
            }
        }
        // Abramowitz and Stegun, table 25.4: the outermost node and weight on [-1, 1].
        let (x, w) = (0.960_289_856_497_536_2, 0.101_228_536_290_376_26);
        assert!((2.0 * Collocation::gauss(8).nodes[7] - 1.0 - x).abs() <= f64::EPSILON);
        assert!((2.0 * Collocation::gauss(8).weights[7] - w).abs() <= f64::EPSILON / 8.0);
    }

    /// The integrals of a polynomial of degree s − 1 on one step are exact wherever the next step
    /// is.
    #[test]
    fn what_a_step_reaches_is_the_integral_of_its_polynomial() {
        let method = Collocation::gauss(8);
        let s = method.stages;
        let f = |t: f64| 1.0 - 3.0 * t + t.powi(4) - 0.2 * t.powi(7);
        let integral = |t: f64| t - 1.5 * t * t + t.powi(5) / 5.0 - 0.025 * t.powi(8);
        let values: Vec<f64> = method.nodes.iter().map(|&c| f(c)).collect();
        let w: Vec<f64> = method
            .of_field
            .coefficients
            .iter()
            .map(|row| row.iter().zip(&values).map(|(l, f)| l * f).sum())
            .collect();
        for (base, start) in [(-1.0, 0.0), (1.0, 1.0)] {
            for ratio in [1.0, 0.3, 2.0] {
                for c in &method.nodes {
                    let mut parts = Vec::new();
                    reach(*c, [base, ratio, 1.0], |part| parts.push(part), s);
                    let found: f64 = w.iter().zip(&parts).map(|(w, part)| w * part).sum();
                    let exact = integral(start + ratio * c) - integral(start);
                    // A coefficient is a sum of s values below 4, weighted by 1 in all or less, and
                    // rounded s times.
                    let reached: f64 = parts.iter().map(|part| part.abs()).sum();
                    let tolerance = 4.0 * s as f64 * f64::EPSILON * reached;
                    assert!((found - exact).abs() < tolerance, "{found} {exact}");
                }
            }
        }
    }
}
