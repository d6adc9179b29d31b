//! Butcher tableaus as data, with checks of their order conditions.
//!
//! A scheme's file gives a, b, error weights and dense-output weights; everything else is derived
//! here: the nodes c, the number of stages, whether the scheme is FSAL (its last stage is the first
//! of the next step), the orders, the stability polynomial. The file also states the orders that its
//! source gives. Building a tableau compares them with those that follow from the coefficients, so
//! that a mistyped digit cannot integrate anything.

mod dense;

pub use dense::Dense;

use crate::trees::{HIGHEST_ORDER, Miss, StageWeights, Tree};

/// A scheme's coefficients as its file states them.
pub struct Definition {
    /// Order of b.
    pub order: u32,
    /// Rows of a, the first (empty) one included; row i holds the coefficients of stages 0..i.
    pub a: &'static [&'static [f64]],
    /// The weights; missing last ones are 0.
    pub b: &'static [f64],
    /// Weights e of the error estimates h·Σ e_i k_i, with the order of the method b − e: one for an
    /// embedded method, two for a pair that is combined as in DOP853 (HNW II.10).
    pub error: &'static [(&'static [f64], u32)],
    /// Weights of a rough error estimate, good enough to show which parts of a state err most:
    /// those of its stages and of the field at x₁, with the order of the method b − e. Required of
    /// a scheme without `error`: `corrected` takes its weights from an estimate.
    pub lagged: Option<(&'static [f64], u32)>,
    /// Dense output. Without it a scheme with `error` has the cubic with the field at both ends, of
    /// order 3 at most.
    pub dense: Option<DenseDefinition>,
}

/// Dense output as its file states it: cubic Hermite interpolation raised by the terms θ²ϑ²D₀,
/// θ³ϑ²D₁, θ³ϑ³D₂, …, ϑ = 1 − θ, each D_j being h·Σ d_ji k_i (HNW II.6, written as in Hairer's
/// codes).
pub struct DenseDefinition {
    /// Order at every θ.
    pub order: u32,
    /// Rows of a for stages that only dense output needs.
    pub extra_a: &'static [&'static [f64]],
    /// Rows d_j; empty for cubic Hermite itself.
    pub d: &'static [&'static [f64]],
}

/// Coefficients that passed their checks.
#[derive(Debug)]
pub struct Tableau {
    /// Order of convergence.
    pub order: u32,
    /// Row i: a_ij of the stages before i; the stages of dense output follow those of the step.
    pub a: Vec<Vec<f64>>,
    /// Nodes c_i = Σ_j a_ij.
    pub c: Vec<f64>,
    /// Weights of the step, one per stage of the step.
    pub b: Vec<f64>,
    /// Error estimates.
    pub error: Vec<ErrorWeights>,
    /// Error estimate of equal steps, if it takes the field at x₁, which they do not evaluate: it
    /// is known when the next step begins.
    pub lagged: Option<LaggedEstimate>,
    /// Dense output.
    pub dense: Option<Dense>,
    /// True if the last stage is the field at the new point: the first stage of the next step
    /// (FSAL).
    pub first_same_as_last: bool,
    /// Number of stages that x₁ needs.
    pub stages_of_step: usize,
    /// Number of stages that the error estimate needs; dense output may need more.
    pub stages: usize,
    real_interval: f64,
}

/// One error estimate h·Σ e_i k_i.
#[derive(Debug)]
pub struct ErrorWeights {
    /// e_i, one per stage of the step.
    pub weights: Vec<f64>,
    /// Order of the method b − e.
    pub order: u32,
}

/// The error estimate h·(Σ e_i k_i + e X(x₁)) of a step, known at the beginning of the next one.
#[derive(Debug)]
pub struct LaggedEstimate {
    /// e_i of the stages of the step.
    pub weights: Vec<f64>,
    /// e.
    pub next: f64,
}

/// Reason why coefficients were refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TableauError {
    /// A row is longer than an explicit method allows.
    #[error("row {row} of {part} has {len} entries")]
    Shape {
        /// Name of the table.
        part: &'static str,
        /// Number of the row.
        row: usize,
        /// Length of the row.
        len: usize,
    },
    /// An order condition is violated beyond round-off.
    #[error(
        "{part} misses the condition of tree {tree} (order {order}) by {excess:.1e} times round-off"
    )]
    OrderCondition {
        /// Name of the weights.
        part: &'static str,
        /// Index of the tree.
        tree: usize,
        /// Number of vertices of the tree.
        order: u32,
        /// Ratio of the violation to the round-off bound.
        excess: f64,
    },
    /// Weights satisfy more order conditions than their stated order takes.
    #[error("{part} has a higher order than {stated}")]
    OrderTooLow {
        /// Name of the weights.
        part: &'static str,
        /// Order that is stated.
        stated: u32,
    },
    /// Dense output lacks the stage at the end of the step.
    #[error("no stage is the field at the end of the step")]
    NoEndpoint,
    /// There is no estimate of a step's error, by which a correction weighs the parts of a state.
    #[error(
        "the definition has no error estimate: give `error` or `lagged`, such as \
         h/2 (k_1 - X(x_1)) of order 1, from which `corrected` takes its weights"
    )]
    NoEstimate,
    /// The stated order is beyond the trees known here.
    #[error("order {order} cannot be verified")]
    OrderTooHigh {
        /// Order that is stated.
        order: u32,
    },
}

/// Place between two numbers from which on a condition does not hold.
pub(crate) fn boundary(mut inside: f64, mut outside: f64, holds: impl Fn(f64) -> bool) -> f64 {
    while outside - inside > 4.0 * f64::EPSILON * outside {
        let middle = 0.5 * (inside + outside);
        if holds(middle) { inside = middle } else { outside = middle }
    }
    inside
}

impl Tableau {
    /// Number of stages that a step or its interpolant may touch.
    pub fn stage_count(&self) -> usize {
        self.a.len()
    }

    /// Derive what follows from the definition and verify the rest.
    pub fn new(definition: &Definition) -> Result<Tableau, TableauError> {
        let tableau = Tableau::derived(definition)?;
        tableau.check()?;
        Ok(tableau)
    }

    /// [`Tableau::new`] for a scheme of this crate, whose orders are constants of the program: tests
    /// verify them, and a release does not compute hundreds of order conditions in every process.
    pub(crate) fn tested(definition: &Definition) -> Result<Tableau, TableauError> {
        match cfg!(debug_assertions) {
            true => Tableau::new(definition),
            false => Tableau::derived(definition),
        }
    }

    fn derived(definition: &Definition) -> Result<Tableau, TableauError> {
        let order = definition.order;
        if definition.error.is_empty() && definition.lagged.is_none() {
            return Err(TableauError::NoEstimate);
        }
        let stages = definition.a.len();
        let adaptive = !definition.error.is_empty();
        let b = padded(definition.b, stages);
        let first_same_as_last =
            stages > 1 && b[stages - 1] == 0.0 && padded(definition.a[stages - 1], stages) == b;
        let field_at_end = [definition.b];
        let extra = match &definition.dense {
            Some(dense) => dense.extra_a,
            None if adaptive && !first_same_as_last => &field_at_end,
            None => &[],
        };
        let a = definition.a.iter().chain(extra).map(|row| row.to_vec()).collect::<Vec<_>>();
        for (row, entries) in a.iter().enumerate() {
            check_length("a", row, entries.len(), row)?;
        }
        check_length("b", 0, definition.b.len(), stages)?;
        let mut tableau = Tableau {
            order,
            c: a.iter().map(|row| exact_sum(row)).collect(),
            error: Vec::new(),
            lagged: None,
            dense: None,
            first_same_as_last,
            stages_of_step: 1 + b.iter().rposition(|&b| b != 0.0).unwrap_or(0),
            stages,
            a,
            b,
            real_interval: 0.0,
        };
        for (row, (weights, order)) in definition.error.iter().enumerate() {
            check_length("error", row, weights.len(), stages)?;
            tableau.error.push(ErrorWeights { weights: padded(weights, stages), order: *order });
        }
        let split = |weights: &[f64]| LaggedEstimate {
            weights: weights[..stages].to_vec(),
            next: weights[stages],
        };
        tableau.lagged = match (definition.lagged, tableau.error.first()) {
            (Some((weights, order)), _) => {
                check_length("the lagged estimate", 0, weights.len(), stages + 1)?;
                tableau.check_lagged(weights, order)?;
                Some(split(&padded(weights, stages + 1)))
            }
            // The last stage of such a scheme is the field at x₁.
            (None, Some(error)) if first_same_as_last => {
                let (next, weights) = error.weights.split_last().expect("one a stage");
                Some(LaggedEstimate { weights: weights.to_vec(), next: *next })
            }
            _ => None,
        };
        tableau.dense = match &definition.dense {
            Some(dense) => Some(Dense::new(&tableau, dense.order, dense.d)?),
            None if adaptive => Some(Dense::new(&tableau, order.min(3), &[])?),
            None => None,
        };
        tableau.real_interval = tableau.find_real_interval();
        Ok(tableau)
    }

    /// True if there is an error estimate.
    pub fn is_adaptive(&self) -> bool {
        !self.error.is_empty()
    }

    /// Coefficients 1, bᵀ1, bᵀA1, bᵀA²1, … of the stability polynomial R(z) (HNW II.4; HW IV.2).
    pub fn stability_polynomial(&self) -> Vec<f64> {
        let s = self.stages;
        let mut coefficients = vec![1.0];
        let mut power = vec![1.0; s];
        for _ in 0..self.stages_of_step {
            coefficients.push((0..s).map(|i| self.b[i] * power[i]).sum());
            power =
                (0..s).map(|i| self.a[i].iter().zip(&power).map(|(a, v)| a * v).sum()).collect();
        }
        coefficients
    }

    /// Length r of the real stability interval: the largest r with |R(−x)| ≤ 1 for all x in [0, r].
    pub fn real_stability_interval(&self) -> f64 {
        self.real_interval
    }

    fn find_real_interval(&self) -> f64 {
        let polynomial = self.stability_polynomial();
        // Round-off of R near the interval's end, where terms of size xᵏ/k! ≤ e⁷ ≈ 1e3 cancel.
        let stable =
            |x: f64| polynomial.iter().rev().fold(0.0, |sum, c| sum * -x + c).abs() <= 1.0 + 1e-12;
        let scan = 1e-3;
        let outside = (1..100_000).map(|i| f64::from(i) * scan).find(|&x| !stable(x));
        outside.map_or(0.0, |outside| boundary(outside - scan, outside, stable))
    }

    /// Verify the order of an estimate that takes the field at x₁ as one more stage.
    fn check_lagged(&self, weights: &[f64], order: u32) -> Result<(), TableauError> {
        let rows = [&self.a[..self.stages], std::slice::from_ref(&self.b)].concat();
        let weights = padded(weights, rows.len());
        let phi = StageWeights::new(&rows, HIGHEST_ORDER.min(order + 1));
        let miss = phi.first_miss(&weights, &magnitudes(&weights), &|_| 0.0);
        check_order("the lagged estimate", order, miss)
    }

    /// Verify that the stated orders are those of the coefficients.
    fn check(&self) -> Result<(), TableauError> {
        let of_errors = self.error.iter().map(|error| error.order);
        let all = of_errors.chain(self.dense.as_ref().map(|dense| dense.order));
        let highest = all.fold(self.order, u32::max);
        let phi = StageWeights::new(&self.a, HIGHEST_ORDER.min(highest + 1));
        let exact = |tree: &Tree| 1.0 / tree.gamma;
        check_order("b", self.order, phi.first_miss(&self.b, &magnitudes(&self.b), &exact))?;
        for error in &self.error {
            // e = b − b̂, and both satisfy the conditions of b̂'s order. It is a difference of
            // rounded numbers, so its rounding is as large as that of b if b is larger.
            let sizes = error.weights.iter().zip(&self.b).map(|(e, b)| e.abs().max(b.abs()));
            let sizes: Vec<f64> = sizes.collect();
            check_order("error", error.order, phi.first_miss(&error.weights, &sizes, &|_| 0.0))?;
        }
        let Some(dense) = &self.dense else { return Ok(()) };
        let miss_at = |theta: f64| {
            let (mut weights, mut sizes) = (vec![0.0; dense.stages], vec![0.0; dense.stages]);
            dense.weights(theta, &mut weights);
            dense.magnitudes(theta, &mut sizes);
            let exact = |tree: &Tree| theta.powi(tree.order as i32) / tree.gamma;
            phi.first_miss(&weights, &sizes, &exact)
        };
        // b_i(θ) has degree at most 8, so nine points decide it; 0, 1 and the slopes there hold by
        // construction.
        let misses = (0..=8).filter_map(|i| miss_at(f64::from(i) / 8.0));
        check_order("dense output", dense.order, misses.min_by_key(|miss| miss.tree))
    }
}

/// Verify that weights whose first violated condition is `miss` have the stated order, neither a
/// lower one nor, as far as the trees are known, a higher one.
fn check_order(part: &'static str, stated: u32, miss: Option<Miss>) -> Result<(), TableauError> {
    if stated > HIGHEST_ORDER {
        return Err(TableauError::OrderTooHigh { order: stated });
    }
    match miss {
        Some(Miss { tree, order, excess }) if order <= stated => {
            Err(TableauError::OrderCondition { part, tree, order, excess })
        }
        Some(Miss { order, .. }) if order == stated + 1 => Ok(()),
        None if stated == HIGHEST_ORDER => Ok(()),
        _ => Err(TableauError::OrderTooLow { part, stated }),
    }
}

fn magnitudes(weights: &[f64]) -> Vec<f64> {
    weights.iter().map(|w| w.abs()).collect()
}

fn padded(row: &[f64], len: usize) -> Vec<f64> {
    let mut row = row.to_vec();
    row.resize(len, 0.0);
    row
}

/// Sum, rounded once (nearly): c is derived from a, and c = 1 should come out as 1.
fn exact_sum(terms: &[f64]) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for &term in terms {
        // Knuth's two-sum.
        let next = sum + term;
        let part = next - sum;
        lost += (sum - (next - part)) + (term - part);
        sum = next;
    }
    sum + lost
}

fn check_length(
    part: &'static str,
    row: usize,
    len: usize,
    most: usize,
) -> Result<(), TableauError> {
    if len <= most { Ok(()) } else { Err(TableauError::Shape { part, row, len }) }
}

#[cfg(test)]
mod tests;
