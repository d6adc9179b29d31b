//! Legendre transformation: L(q, q', t) = ½ q'ᵀM q' + aᵀq' + L₀ with M(q, t), a(q, t) and L₀(q, t)
//! becomes H(q, p, t) = ½ (p − a)ᵀM⁻¹(p − a) − L₀.
//!
//! L stays a sum of term templates. Velocities that no term couples are eliminated apart, and those
//! of one form share a template: the bodies of a chain become one template with a row for each, as if
//! H had been written. Where M is singular, with constant rank, the momenta p − a of the velocities
//! without a pivot, less what the others determine, are primary constraints; H is then the extension
//! that does not depend on these momenta.

mod blocks;
mod elimination;
mod system;
mod terms;

use crate::functional::{Functional, Term};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use system::System;
use terms::VelocityTerm;

/// A Lagrangian, its velocities read in the places of the momenta.
pub struct Lagrangian<'a> {
    /// L.
    pub functional: &'a Functional,
    /// Span of L.
    pub span: Span,
    /// Number of positions.
    pub degrees: usize,
    /// The initial state; only its positions matter.
    pub initial: &'a [f64],
    /// Values of the parameters.
    pub parameters: &'a [f64],
    /// Largest number of nodes of a template.
    pub largest: usize,
}

/// What follows from a Lagrangian.
#[derive(Clone, Debug)]
pub struct Legendre {
    /// H.
    pub hamiltonian: Functional,
    /// The momenta ∂L/∂q', one for each position, with velocities in their places.
    pub momenta: Functional,
    /// Left sides of the primary constraints, each at the place of its momentum.
    pub primary: Functional,
    /// True for the momenta that have a primary constraint.
    pub constrained: Vec<bool>,
}

impl Lagrangian<'_> {
    /// The Legendre transform.
    ///
    /// # Errors
    /// If L is not quadratic in the velocities; if the rank of M is lower at the start than
    /// elsewhere; if M couples too many velocities.
    pub fn transform(&self) -> Result<Legendre, Diagnostic> {
        let degrees = self.degrees;
        let outputs = || Functional { outputs: degrees, terms: Vec::new() };
        let mut transform = Legendre {
            hamiltonian: Functional { outputs: 1, terms: Vec::new() },
            momenta: outputs(),
            primary: outputs(),
            constrained: vec![false; degrees],
        };
        let mut moving = Vec::new();
        for term in &self.functional.terms {
            match VelocityTerm::new(term, degrees)? {
                Some(term) => moving.push(term),
                None => transform.hamiltonian.terms.push(negated(term)),
            }
        }
        for term in &moving {
            term.add_momenta(&mut transform.momenta, degrees);
        }
        let (forms, free) = blocks::forms(&moving, degrees);
        for form in &forms {
            let mut pending: Vec<usize> = (0..form.blocks.len()).collect();
            while !pending.is_empty() {
                let system = System::new(self, &moving, form, pending[0])?;
                let (alike, others) = system.alike(self, form, pending);
                system.demand_constant_rank(self, form, &alike)?;
                system.add_to(&mut transform, form, &alike, degrees);
                pending = others;
            }
        }
        for k in free {
            transform.constrained[k] = true;
            let mut momentum = Functional::components(degrees + k..degrees + k + 1, self.span);
            for term in &mut momentum.terms {
                term.table = term.table.clone().with_last(k as u32);
            }
            transform.primary.terms.append(&mut momentum.terms);
        }
        Ok(transform)
    }
}

/// The opposite of a term.
fn negated(term: &Term) -> Term {
    let mut term = term.clone();
    term.roots = term.roots.iter().map(|&root| term.graph.neg(root)).collect();
    term
}
