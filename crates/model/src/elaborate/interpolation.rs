//! Interpolation of tables: polynomials between knots.

/// Conditions at the ends of a cubic spline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The second derivative is 0.
    Natural,
    /// The derivative is 0.
    Clamped,
    /// The last value is the first, and all derivatives go on.
    Periodic,
    /// The third derivative goes on at the second and the last but one knot.
    NotAKnot,
}

/// A way to interpolate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// A cubic spline, twice continuously differentiable.
    Spline(Ends),
    /// Straight lines.
    Linear,
    /// The value of the last knot.
    Hold,
}

impl Interpolation {
    /// Degree of the polynomials.
    pub fn degree(self) -> usize {
        match self {
            Interpolation::Spline(_) => 3,
            Interpolation::Linear => 1,
            Interpolation::Hold => 0,
        }
    }

    /// True if values repeat beyond the ends; others stay constant there.
    pub fn is_periodic(self) -> bool {
        self == Interpolation::Spline(Ends::Periodic)
    }

    /// Coefficients of the polynomials in x − xᵢ, from the constant one, between the knots `x` of the
    /// values `y`, which are two or more; x increases.
    pub fn polynomials(self, x: &[f64], y: &[f64]) -> Vec<[f64; 4]> {
        let gaps: Vec<f64> = x.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let secants: Vec<f64> =
            y.windows(2).zip(&gaps).map(|(pair, gap)| (pair[1] - pair[0]) / gap).collect();
        let slopes = match self {
            Interpolation::Spline(ends) => slopes(ends, &gaps, &secants),
            _ => vec![0.0; x.len()],
        };
        let polynomial = |i: usize| {
            let (gap, secant, value) = (gaps[i], secants[i], y[i]);
            let [a, b] = [slopes[i], slopes[i + 1]];
            match self {
                Interpolation::Hold => [value, 0.0, 0.0, 0.0],
                Interpolation::Linear => [value, secant, 0.0, 0.0],
                Interpolation::Spline(_) => [
                    value,
                    a,
                    (3.0 * secant - 2.0 * a - b) / gap,
                    (a + b - 2.0 * secant) / gap / gap,
                ],
            }
        };
        (0..gaps.len()).map(polynomial).collect()
    }
}

/// Derivatives of a cubic spline at its knots: those for which its second derivative is continuous.
fn slopes(ends: Ends, gaps: &[f64], secants: &[f64]) -> Vec<f64> {
    let last = gaps.len();
    let few = matches!((ends, last), (Ends::NotAKnot, 1 | 2) | (Ends::Periodic, 1));
    if few {
        return slopes_of_few(ends, gaps, secants);
    }
    if ends == Ends::Periodic {
        return periodic_slopes(gaps, secants);
    }
    let mut rows = vec![Row::default(); last + 1];
    for i in 1..last {
        rows[i] = Row::between((gaps[i - 1], secants[i - 1]), (gaps[i], secants[i]));
    }
    let end = |(gap, secant): (f64, f64), (next, other): (f64, f64)| match ends {
        Ends::Natural | Ends::Periodic => (2.0, 1.0, 3.0 * secant),
        Ends::Clamped => (1.0, 0.0, 0.0),
        Ends::NotAKnot => {
            let both = gap + next;
            let right = ((gap + 2.0 * both) * next * secant + gap * gap * other) / both;
            (next, both, right)
        }
    };
    let of = |i: usize| (gaps[i], secants[i]);
    let (diagonal, above, right) = end(of(0), of(1.min(last - 1)));
    rows[0] = Row { below: 0.0, diagonal, above, right };
    let (diagonal, below, right) = end(of(last - 1), of(last.saturating_sub(2)));
    rows[last] = Row { below, diagonal, above: 0.0, right };
    solved(rows)
}

/// Derivatives where there are too few knots for the condition at the ends: of the polynomial
/// through all of them.
fn slopes_of_few(ends: Ends, gaps: &[f64], secants: &[f64]) -> Vec<f64> {
    match (ends, gaps, secants) {
        (Ends::NotAKnot, [a, b], [u, v]) => {
            // Divided difference: the second coefficient of the parabola.
            let bend = (v - u) / (a + b);
            vec![u - bend * a, u + bend * a, v + bend * b]
        }
        (Ends::NotAKnot, ..) => vec![secants[0]; 2],
        _ => vec![0.0; gaps.len() + 1],
    }
}

/// Derivatives of a periodic spline, from those of two systems without its corners (Sherman and
/// Morrison).
fn periodic_slopes(gaps: &[f64], secants: &[f64]) -> Vec<f64> {
    let count = gaps.len();
    let of = |i: usize| (gaps[i % count], secants[i % count]);
    let mut rows: Vec<Row> = (0..count).map(|i| Row::between(of(i + count - 1), of(i))).collect();
    if count == 2 {
        // Both neighbours of a knot are the other one.
        let [a, b] = [rows[0], rows[1]];
        let (up, down) = (a.below + a.above, b.below + b.above);
        let determinant = a.diagonal * b.diagonal - up * down;
        let first = (a.right * b.diagonal - up * b.right) / determinant;
        let second = (a.diagonal * b.right - down * a.right) / determinant;
        return vec![first, second, first];
    }
    let (corner, other) = (rows[0].below, rows[count - 1].above);
    let gamma = -rows[0].diagonal;
    rows[0].diagonal -= gamma;
    rows[count - 1].diagonal -= other * corner / gamma;
    let mut of_corners = rows.clone();
    of_corners.iter_mut().for_each(|row| row.right = 0.0);
    (of_corners[0].right, of_corners[count - 1].right) = (gamma, other);
    let (y, z) = (solved(rows), solved(of_corners));
    let ratio = corner / gamma;
    let factor = (y[0] + ratio * y[count - 1]) / (1.0 + z[0] + ratio * z[count - 1]);
    let mut slopes: Vec<f64> = y.iter().zip(&z).map(|(y, z)| y - factor * z).collect();
    slopes.push(slopes[0]);
    slopes
}

/// Row of a tridiagonal system.
#[derive(Clone, Copy, Default)]
struct Row {
    below: f64,
    diagonal: f64,
    above: f64,
    right: f64,
}

impl Row {
    /// Continuity of the second derivative at a knot between two gaps, each with its secant.
    fn between((before, left): (f64, f64), (after, right): (f64, f64)) -> Row {
        Row {
            below: after,
            diagonal: 2.0 * (before + after),
            above: before,
            right: 3.0 * (after * left + before * right),
        }
    }
}

/// Solution of a tridiagonal system. Its pivots are positive for splines.
fn solved(mut rows: Vec<Row>) -> Vec<f64> {
    for i in 1..rows.len() {
        let factor = rows[i].below / rows[i - 1].diagonal;
        rows[i].diagonal -= factor * rows[i - 1].above;
        rows[i].right -= factor * rows[i - 1].right;
    }
    let mut solution = vec![0.0; rows.len()];
    for i in (0..rows.len()).rev() {
        let next = solution.get(i + 1).copied().unwrap_or(0.0);
        solution[i] = (rows[i].right - rows[i].above * next) / rows[i].diagonal;
    }
    solution
}
