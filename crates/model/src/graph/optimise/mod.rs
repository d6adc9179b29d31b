//! Optimiser: finds an equivalent graph (in real arithmetic) that takes fewer operations.
//!
//! A field that brackets have made repeats what a person would write once. Here the graph is
//! decomposed into sums of products over *atoms* (inputs, functions, sums) with *uniform*
//! coefficients (numbers that depend on parameters and constants only, and are computed once for a
//! run), and composed anew:
//!
//! 1. `normal`: like terms are added up, so terms that cancel are gone and sums in proportion are
//!    one atom. Products of sums are never expanded: (a − b)(a + b) keeps its accuracy, a² − b²
//!    loses it.
//! 2. `extract`: common factors, common parts of sums and of products, by the greedy algorithm of
//!    Rajski and Vasudevamurthi for logic (1992) that Hosangadi, Fallah and Kastner (2006) applied
//!    to polynomials.
//! 3. `place`: coefficients are moved to where they cost nothing, small sums into larger ones,
//!    reciprocals are shared.
//! 4. `emit`: the graph is written so that sums and products become fused multiply-adds.
//!
//! All of them count operations after [fusing](super::fuse), a quotient as several, and make a
//! change only if that number falls. The whole result too is accepted only then, and only if it has
//! no more operations than the original graph. Every order is that of the graph's nodes, so the
//! same graph always gives the same result. Passes are linear but for logarithms, and the search
//! for common factors stops after an effort proportional to the graph.
//!
//! Nothing is divided by a parameter by which the model does not divide it, for a gain may be 0. A
//! function that is NaN outside its domain keeps that even if it cancels: the result is made NaN
//! where the function is. Infinities and NaN from divisions are otherwise not distinguished from
//! other values that real arithmetic does not know.
//!
//! References: J. Rajski, J. Vasudevamurthi, "The testability-preserving concurrent decomposition
//! and factorization of Boolean expressions", IEEE Trans. CAD 11 (1992); A. Hosangadi, F. Fallah,
//! R. Kastner, "Optimizing polynomial expressions by algebraic factorization and common
//! subexpression elimination", IEEE Trans. CAD 25 (2006).

mod cost;
mod emit;
mod extract;
mod monomial;
mod normal;
mod place;
mod system;
mod uniform;

use super::fuse::count;
use super::{Graph, Node};
use cost::QUOTIENT;
use extract::DivisorKind;
use normal::Products;
use system::System;

/// Number of operations up to which both kinds of [`Products`] are tried.
const TRIED_TWICE: usize = 20_000;

/// Number of operations up to which common factors are searched for: the search keeps every pair of
/// terms in memory.
const MOST_SEARCHED: usize = 300_000;

/// Find a graph that computes the same as `outputs` in real arithmetic with fewer [operations], or
/// with as many and fewer quotients among them. Returns the same graph if none is found.
pub fn optimise(graph: &Graph, outputs: &[Node]) -> (Graph, Vec<Node>) {
    let (before, quotients) = count(graph, outputs);
    // A normal form longer than this has lost more than the search can recover.
    let longest = 2 * (before + (QUOTIENT - 1) * quotients);
    let mut best: Option<Candidate> = None;
    // Products that several formulas share show more common factors if they are expanded in each.
    // Kept whole, they cannot be split.
    for products in [Products::Expanded, Products::Shared] {
        let (system, differ) = normal::read(graph, outputs, products);
        if let Some(candidate) = rewrite(graph, system, before <= MOST_SEARCHED, longest) {
            let cheaper = best.as_ref().is_none_or(|b| candidate.cost < b.cost);
            if cheaper
                && is_shorter(count(&candidate.graph, &candidate.outputs), (before, quotients))
            {
                best = Some(candidate);
            }
        }
        if !differ || before > TRIED_TWICE {
            break;
        }
    }
    best.map_or_else(|| (graph.clone(), outputs.to_vec()), |b| (b.graph, b.outputs))
}

/// True if a number of operations and of quotients among them is better than another.
fn is_shorter(
    (operations, quotients): (usize, usize),
    (before, quotients_before): (usize, usize),
) -> bool {
    let more = QUOTIENT - 1;
    operations <= before && operations + more * quotients < before + more * quotients_before
}

struct Candidate {
    graph: Graph,
    outputs: Vec<Node>,
    /// Operations, each quotient counted as several.
    cost: usize,
}

fn rewrite(graph: &Graph, mut system: System, search: bool, longest: usize) -> Option<Candidate> {
    let mut places = system.needed()?;
    if system.operations(&places) > longest {
        return None;
    }
    let sums: Pass = |system, places| extract::extract(system, places, DivisorKind::Sums);
    let products: Pass = |system, places| extract::extract(system, places, DivisorKind::Products);
    let search = |pass: Pass| if search { vec![pass] } else { Vec::new() };
    let tidy: [Pass; 4] = [place::resolve, place::inline, place::rescale, place::share_reciprocals];
    let passes = [
        vec![place::rescale as Pass],
        search(sums),
        tidy.to_vec(),
        search(products),
        tidy.to_vec(),
    ];
    for pass in passes.concat() {
        if pass(&mut system, &places) {
            places = system.needed()?;
        }
    }
    system.keep_domains(&places);
    places = system.needed()?;
    let (graph, outputs) = emit::emit(&system, graph, &places);
    Some(Candidate { graph, outputs, cost: system.operations(&places) })
}

/// Pass that rewrites the sums in some places, which are in the order of [`System::needed`]. Returns
/// true if others may be needed now, or in another order.
type Pass = fn(&mut System, &[system::Place]) -> bool;

/// Number of operations that `outputs` take at every evaluation once multiply-adds are fused: those
/// that depend on the state or the time.
pub fn operations(graph: &Graph, outputs: &[Node]) -> usize {
    count(graph, outputs).0
}
