//! Cost of a sum of products that is computed with fused multiply-adds.

use super::monomial::{FactorCounts, ONE};
use super::system::{Atom, Place, System, UniformTerm};
use super::uniform::Coefficient;

/// Operations that a quotient counts as: processors take several times as long for it.
pub const QUOTIENT: usize = 4;
const MORE: i32 = QUOTIENT as i32 - 1;

/// Part of one term in the cost of a sum.
#[derive(Clone, Copy, Default)]
pub struct Weight {
    /// Products and quotients, each quotient as [`QUOTIENT`] products.
    pub products: i32,
    /// True if the last of them can be fused into a sum.
    pub fuses: bool,
    /// True if it can come first in a sum without a negation.
    pub leads: bool,
}

/// Sum of the weights of a sum's terms.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    terms: i32,
    products: i32,
    fusing: i32,
    leading: i32,
}

impl Cost {
    /// Add a term, or remove it (`sign` −1).
    pub fn add(&mut self, w: Weight, sign: i32) {
        self.terms += sign;
        self.products += sign * w.products;
        self.fusing += sign * i32::from(w.fuses);
        self.leading += sign * i32::from(w.leads);
    }

    /// Number of operations: each addition fuses one product, and a sum needs a negation if no term
    /// can come first.
    pub fn operations(&self) -> i32 {
        let negation = i32::from(self.terms > 0 && self.leading == 0);
        self.products + (self.terms - 1 - self.fusing).max(0) + negation
    }
}

/// Weight of coefficient · (powers) · (`extra` more atoms).
pub fn weight(
    coefficient: Coefficient,
    FactorCounts { above, below }: FactorCounts,
    extra: i32,
) -> Weight {
    let above = above + extra;
    let unit = coefficient.is_unit();
    let leads = !unit || !coefficient.is_negative();
    if above == 0 {
        // A uniform number, or one divided by something: its sign costs nothing.
        return Weight { products: below + MORE * i32::from(below > 0), fuses: false, leads: true };
    }
    let products = above + below - 1 + i32::from(!unit) + MORE * i32::from(below > 0);
    // A product can be fused, a quotient cannot.
    Weight { products, fuses: above + i32::from(!unit) > 1, leads }
}

impl System {
    /// Weight of a term.
    pub fn weight(&self, term: UniformTerm) -> Weight {
        weight(term.coefficient, self.monomials.factors(term.monomial), 0)
    }

    /// Cost of a sum.
    pub fn cost(&self, terms: &[UniformTerm]) -> Cost {
        let mut cost = Cost::default();
        terms.iter().for_each(|&t| cost.add(self.weight(t), 1));
        cost
    }

    /// Operations of the sums in `places`.
    pub fn operations(&self, places: &[Place]) -> usize {
        places.iter().map(|&p| self.cost(&self.sums[p as usize]).operations() as usize).sum()
    }

    /// True if multiplying `terms` by `by` one by one is as accurate as multiplying their sum.
    /// Differences of inputs are exact if they cancel, and differences of their multiples are not;
    /// sums of products are rounded anyway.
    pub fn distributes(&self, by: Coefficient, terms: &[UniformTerm]) -> bool {
        by.is_exact() || !terms.iter().any(|&t| t.monomial != ONE && self.is_exact(t, SUMS_OF_SUMS))
    }

    /// True if a term is an input, or a sum of inputs, times a power of two.
    fn is_exact(&self, term: UniformTerm, depth: usize) -> bool {
        let Some(atom) = self.monomials.atom(term.monomial).filter(|_| term.coefficient.is_exact())
        else {
            return false;
        };
        match self.atoms[atom as usize] {
            Atom::Input(_) => true,
            Atom::Function(..) => false,
            Atom::Sum(place) => {
                let mut inner = self.sums[place as usize].iter();
                depth > 0 && inner.all(|&t| t.monomial == ONE || self.is_exact(t, depth - 1))
            }
        }
    }
}

/// Depth of nested sums that are searched.
const SUMS_OF_SUMS: usize = 3;
