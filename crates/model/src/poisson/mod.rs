//! Poisson systems: x' = J(x) ∇H(x, t) with an antisymmetric matrix J of brackets J_ab = {x_a, x_b}
//! that obey Jacobi's identity (Hairer, Lubich, Wanner, GNI, VII.2).
//!
//! J is a sum of *blocks*: a small matrix over the components of some states, one for each member of
//! a family. As everything, H and the blocks are term templates, and so is the field that follows
//! from them.

mod casimirs;
mod field;
mod structure;

pub use casimirs::{Casimir, Factor, Terms};
pub use field::TooManyRows;
pub use structure::{Asymmetry, JacobiFailure, Rank};

use crate::functional::Functional;
use crate::graph::calculus::Gradient;
use crate::graph::{Graph, Node};
use crate::points::Points;
use crate::syntax::span::Span;
use structure::units;

/// A Hamiltonian and the matrix of brackets.
#[derive(Clone, Debug)]
pub struct Poisson {
    /// H.
    pub hamiltonian: Functional,
    /// Span of H.
    pub span: Span,
    /// Blocks of J, which add up.
    pub blocks: Vec<Block>,
}

/// A matrix over some components of the state, one for each member of a family.
#[derive(Clone, Debug)]
pub struct Block {
    /// Span of its formula.
    pub span: Span,
    /// The matrices, row by row, of all members one after the other.
    pub matrix: Functional,
    /// Rows of a matrix.
    pub size: usize,
    /// Components of the state that the rows belong to, of all members one after the other.
    pub places: Vec<u32>,
}

impl Block {
    /// Number of members.
    pub fn members(&self) -> usize {
        self.places.len() / self.size
    }

    /// Components of the state that the rows of a member's matrix belong to.
    pub fn places_of(&self, member: usize) -> &[u32] {
        &self.places[member * self.size..][..self.size]
    }

    /// Components of the state that an output of the matrices is the bracket of.
    pub fn places_of_entry(&self, output: usize) -> [u32; 2] {
        let (member, row, column) = self.entry(output);
        let places = self.places_of(member);
        [places[row], places[column]]
    }

    /// Member, row and column of an output of the matrices.
    fn entry(&self, output: usize) -> (usize, usize, usize) {
        let (member, entry) = (output / self.size.pow(2), output % self.size.pow(2));
        (member, entry / self.size, entry % self.size)
    }
}

impl Poisson {
    /// Random states around one, as far from it as it is large, in which no component changes its
    /// sign.
    pub fn states_around(x: &[f64], count: usize) -> Vec<Vec<f64>> {
        let (units, mut points) = (units(x), Points::new(0x905f));
        let mut moved = |(&x, &unit): (&f64, &f64)| {
            let part = points.draw();
            if x.abs() < unit { unit * part } else { x * (1.0 + 0.6 * part) }
        };
        (0..count).map(|_| x.iter().zip(&units).map(&mut moved).collect()).collect()
    }

    /// J ∇H as nodes of a graph, for the gradient of H.
    pub fn unroll(&self, g: &mut Graph, dimension: usize, gradient: &Gradient) -> Vec<Node> {
        let zero = g.zero();
        let mut slopes = vec![zero; dimension];
        for &(component, slope) in gradient {
            slopes[component as usize] = slope;
        }
        let mut field = vec![zero; dimension];
        for block in &self.blocks {
            for (output, entry) in block.matrix.unroll(g).into_iter().enumerate() {
                let (member, row, column) = block.entry(output);
                let places = block.places_of(member);
                let product = g.mul(entry, slopes[places[column] as usize]);
                let rate = &mut field[places[row] as usize];
                *rate = g.add(*rate, product);
            }
        }
        field
    }
}
