//! Formulas of a Poisson system that steps ask for, and the parts of its H whose flows are known.

mod exact;
pub mod parts;

use crate::kernels::Formula;
use holonome_model::elaborate::model::Model;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::poisson::Poisson;
use parts::ExactParts;
use rustc_hash::FxHashMap;

/// Formulas of a Poisson system.
pub struct PoissonFunctions {
    /// ∇H.
    pub gradient: Formula,
    /// J v for a covector v that follows the state.
    pub brackets: Formula,
    /// Degree of H as a polynomial in the state; `None` if it is none.
    pub degree: Option<u32>,
    /// Parts of H with known flows, for methods that need them.
    pub parts: Option<ExactParts>,
}

impl PoissonFunctions {
    /// Formulas of `model`; `None` if it is no Poisson system.
    pub fn new(model: &Model) -> Option<PoissonFunctions> {
        let poisson = model.poisson.as_ref()?;
        let (mut g, dimension) = (Graph::new(), model.dimension());
        let h = poisson.hamiltonian.unroll(&mut g)[0];
        let mut gradient = vec![g.zero(); dimension];
        g.gradient(h).into_iter().for_each(|(i, d)| gradient[i as usize] = d);
        let along: Vec<(u32, Node)> =
            (0..dimension).map(|k| (k as u32, g.state(dimension + k))).collect();
        let brackets = poisson.unroll(&mut g, dimension, &along);
        Some(PoissonFunctions {
            gradient: Formula::unfused(&g, &gradient),
            brackets: Formula::unfused(&g, &brackets),
            degree: degree(&g, h),
            parts: None,
        })
    }
}

/// Entries of J as nodes of a graph, by row and column; those that are 0 are left out.
fn entries(poisson: &Poisson, g: &mut Graph) -> FxHashMap<(u32, u32), Node> {
    let mut entries: FxHashMap<(u32, u32), Node> = FxHashMap::default();
    for block in &poisson.blocks {
        for (output, entry) in block.matrix.unroll(g).into_iter().enumerate() {
            let [row, column] = block.places_of_entry(output);
            let zero = g.zero();
            let sum = entries.entry((row, column)).or_insert(zero);
            *sum = g.add(*sum, entry);
        }
    }
    entries.retain(|_, entry| !g.is_zero(*entry));
    entries
}

/// Degree of a node as a polynomial in the state.
fn degree(g: &Graph, root: Node) -> Option<u32> {
    let mut known: FxHashMap<Node, Option<u32>> = FxHashMap::default();
    for node in g.reachable(&[root]) {
        let of = |a: Node| known[&a];
        let degree = match g.expression(node) {
            Expression::Input(input) => Some(u32::from(matches!(input, Input::State(_)))),
            Expression::Binary(Binary::Add | Binary::Sub, a, b) => {
                of(a).zip(of(b)).map(|(a, b)| a.max(b))
            }
            Expression::Binary(Binary::Mul, a, b) => {
                of(a).zip(of(b)).and_then(|(a, b)| a.checked_add(b))
            }
            Expression::Binary(Binary::Div, a, b) if of(b) == Some(0) => of(a),
            Expression::Binary(Binary::Pow, a, b) => match (of(a), g.value(b)) {
                (Some(0), _) if of(b) == Some(0) => Some(0),
                (Some(a), Some(b)) if b.fract() == 0.0 && (0.0..=64.0).contains(&b) => {
                    a.checked_mul(b as u32)
                }
                _ => None,
            },
            Expression::Unary(Unary::Neg, a) => of(a),
            other => other.arguments().all(|a| of(a) == Some(0)).then_some(0),
        };
        known.insert(node, degree);
    }
    known[&root]
}
