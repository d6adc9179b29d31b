//! Taylor series of the solution in powers of the time, to order 16. The
//! coefficients follow from the formulas of the field, operation by operation, so
//! that these have to be smooth along the motion: `abs`, `min`, `max` and `if` of
//! something that changes are refused.
//!
//! An adaptive step finds its own length from the last four terms, and the slope of
//! the series is compared with the field at the end of the step.
//! States within a step are those of the series, at the full order.

use super::{Needs, Scheme, Step};

pub(super) static SCHEME: Scheme = Scheme {
    name: "taylor",
    other_names: &[],
    needs: Needs::Series,
    description: "Taylor series from the formulas of a smooth field: long steps, high accuracy, ensembles",
    citation: "Jorba, Zou, Experimental Mathematics 14 (2005) 99; Hairer, Norsett, Wanner, Solving ODEs I, I.8",
    file: include_str!("taylor.rs"),
    step: Step::Taylor(16),
};
