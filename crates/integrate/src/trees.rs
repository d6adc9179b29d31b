//! Rooted trees and the order conditions of Runge–Kutta methods (HLW III.1; HNW II.2).
//!
//! A method has order p iff Σ_i b_i Φ_i(τ) = 1/γ(τ) for every rooted tree τ of at most p vertices,
//! where Φ_i(τ) = Π_k Σ_j a_ij Φ_j(τ_k) over the trees τ_k that remain when the root is cut off,
//! and γ(τ) = |τ| Π_k γ(τ_k).

use std::sync::LazyLock;

/// Highest order whose conditions are known here.
pub const HIGHEST_ORDER: u32 = 8;

/// A rooted tree.
#[derive(Debug)]
pub struct Tree {
    /// Number of vertices.
    pub order: u32,
    /// The density γ.
    pub gamma: f64,
    /// Indices of the trees hung on the root, ascending; the same tree may come several times.
    pub branches: Vec<usize>,
}

/// All rooted trees of up to [`HIGHEST_ORDER`] vertices, in order of their size: 1, 1, 2, 4, 9, 20,
/// 48, 115.
pub static TREES: LazyLock<Vec<Tree>> = LazyLock::new(|| {
    let mut trees: Vec<Tree> = Vec::new();
    for order in 1..=HIGHEST_ORDER {
        let mut forests = Vec::new();
        extend_forest(&trees, order - 1, 0, &mut Vec::new(), &mut forests);
        for branches in forests {
            let gamma = f64::from(order)
                * branches.iter().map(|&branch| trees[branch].gamma).product::<f64>();
            trees.push(Tree { order, gamma, branches });
        }
    }
    trees
});

/// Append to `found` every ascending list of trees, none before `first`, that has `vertices`
/// vertices in all.
fn extend_forest(
    trees: &[Tree],
    vertices: u32,
    first: usize,
    forest: &mut Vec<usize>,
    found: &mut Vec<Vec<usize>>,
) {
    if vertices == 0 {
        found.push(forest.clone());
        return;
    }
    for index in first..trees.len() {
        if trees[index].order <= vertices {
            forest.push(index);
            extend_forest(trees, vertices - trees[index].order, index, forest, found);
            forest.pop();
        }
    }
}

/// Φ_i(τ) of every tree τ up to `order` and every stage i, and the same sums over absolute values.
pub struct StageWeights {
    /// Φ_i, by tree and stage.
    value: Vec<Vec<f64>>,
    /// Φ_i with every coefficient replaced by its absolute value: the scale of round-off.
    magnitude: Vec<Vec<f64>>,
}

/// An order condition that is violated beyond round-off.
#[derive(Clone, Copy, Debug)]
pub struct Miss {
    /// Index of the tree.
    pub tree: usize,
    /// Number of vertices of the tree.
    pub order: u32,
    /// Ratio of the violation to the round-off bound.
    pub excess: f64,
}

impl StageWeights {
    /// Weights for the coefficients `a`, whose row i holds a_ij of the stages before i.
    pub fn new(a: &[Vec<f64>], order: u32) -> StageWeights {
        StageWeights { value: phi(a, order, |a| a), magnitude: phi(a, order, f64::abs) }
    }

    /// First condition Σ_i b_i Φ_i(τ) = `exact`(τ) that is violated, in the order of the trees'
    /// sizes: weights have the order below that of its tree.
    pub fn first_miss(
        &self,
        weights: &[f64],
        magnitudes: &[f64],
        exact: &dyn Fn(&Tree) -> f64,
    ) -> Option<Miss> {
        TREES.iter().enumerate().take(self.value.len()).find_map(|(tree, facts)| {
            let excess = self.excess(tree, weights, magnitudes, exact(facts));
            (excess > 1.0 || excess.is_nan()).then_some(Miss { tree, order: facts.order, excess })
        })
    }

    /// Distance of Σ_i b_i Φ_i(τ) from `exact`, in units of the round-off bound of that sum.
    ///
    /// Each term is a product of at most |τ| coefficients, each rounded once, and of |τ| sums of at
    /// most s terms; so the sum's error is at most (2|τ| + (|τ| + 1)s)·u times the sum of absolute
    /// values, with u = ε/2. A weight may itself be a sum of a dozen rounded terms, which
    /// `weight_magnitude` and the factor 2 allow for.
    fn excess(&self, tree: usize, weight: &[f64], weight_magnitude: &[f64], exact: f64) -> f64 {
        let stages = weight.len() as f64;
        let order = f64::from(TREES[tree].order);
        let sum = |w: &[f64], phi: &[f64]| w.iter().zip(phi).map(|(w, phi)| w * phi).sum::<f64>();
        let magnitude = sum(weight_magnitude, &self.magnitude[tree]) + exact.abs();
        let bound = 2.0 * (2.0 * order + (order + 1.0) * stages) * 0.5 * f64::EPSILON * magnitude;
        let residual = (sum(weight, &self.value[tree]) - exact).abs();
        if residual == 0.0 { 0.0 } else { residual / bound }
    }
}

fn phi(a: &[Vec<f64>], order: u32, map: impl Fn(f64) -> f64) -> Vec<Vec<f64>> {
    // Every tree is a branch of many others.
    let (mut phi, mut of_branch): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
    for tree in TREES.iter().take_while(|tree| tree.order <= order) {
        let stage = |i: usize| tree.branches.iter().map(|&k| of_branch[k][i]).product();
        let stages: Vec<f64> = (0..a.len()).map(stage).collect();
        let sum =
            |row: &Vec<f64>| row.iter().zip(&stages).map(|(a, phi)| map(*a) * phi).sum::<f64>();
        of_branch.push(if tree.order < order { a.iter().map(sum).collect() } else { Vec::new() });
        phi.push(stages);
    }
    phi
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_literature() {
        // HLW III.1, table 1.1 and HNW II.2, table 2.3.
        let expected = [1, 1, 2, 4, 9, 20, 48, 115];
        for (order, &count) in (1..).zip(&expected) {
            assert_eq!(TREES.iter().filter(|tree| tree.order == order).count(), count);
        }
    }

    #[test]
    fn densities_sum_to_one() {
        // Σ α(τ)/… has no short form, but bushy and tall trees have known densities: γ = p and γ =
        // p!.
        let bushy = TREES.iter().filter(|tree| tree.branches.iter().all(|&branch| branch == 0));
        for tree in bushy {
            assert_eq!(tree.gamma, f64::from(tree.order));
        }
        let largest = TREES.iter().map(|tree| tree.gamma).fold(0.0, f64::max);
        assert_eq!(largest, (1..=8).map(f64::from).product::<f64>());
    }
}
