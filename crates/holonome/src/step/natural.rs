//! Check for natural Hamiltonians: H = ½ pᵀM⁻¹p + V(q, t) with a constant, positive definite M.

use crate::policy::LARGEST_FULL_MASS;
use holonome_linear::rank::positive_definite;
use holonome_model::elaborate::model::Model;
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::treatment::mechanics::Mechanics;
use holonome_model::treatment::structure::evaluate;

/// Check that H is natural.
///
/// # Errors
/// If H is not natural; says why, and which methods to use.
pub fn check(mechanics: &Mechanics, model: &Model) -> Result<(), String> {
    what_is_not(mechanics, model).map_or(Ok(()), |reason| Err(not(reason, model)))
}

/// Message that the H of a model is not natural, for this reason.
pub fn not(reason: String, model: &Model) -> String {
    let remedy = match model.constraints.is_empty() {
        true => "stormer-verlet-a, implicit-midpoint or gauss4",
        false => "rattle",
    };
    format!(
        "it is for H = p·M⁻¹p/2 + V(q) with a constant mass matrix M, and {reason}; use {remedy}"
    )
}

/// True if the mass matrix of a natural H is diagonal: no velocity reads a momentum other than its
/// own.
pub fn diagonal_mass(mechanics: &Mechanics) -> bool {
    let (n, g) = (mechanics.degrees, &mechanics.graph);
    mechanics.gradient[n..].iter().enumerate().all(|(i, &velocity)| {
        let other =
            |node| matches!(g.expression(node), Expression::Input(Input::State(k)) if k as usize >= n && k as usize != n + i);
        !g.reachable(&[velocity]).into_iter().any(other)
    })
}

fn what_is_not(mechanics: &Mechanics, model: &Model) -> Option<String> {
    let (n, mut g) = (mechanics.degrees, mechanics.graph.clone());
    let (h_q, h_p) = mechanics.gradient.split_at(n);
    let reads = |g: &Graph, roots: &[Node], wanted: &dyn Fn(Input) -> bool| {
        let reads = |node| matches!(g.expression(node), Expression::Input(input) if wanted(input));
        g.reachable(roots).into_iter().any(reads)
    };
    let momentum = |input: Input| matches!(input, Input::State(i) if i as usize >= n);
    let moves = |input: Input| matches!(input, Input::State(_) | Input::Time);
    if reads(&g, h_q, &momentum) || reads(&g, h_p, &|input| moves(input) && !momentum(input)) {
        return Some("its kinetic energy varies with position or time".into());
    }
    let rows: Vec<_> = h_p.iter().map(|&d| g.gradient(d)).collect();
    let entries: Vec<Node> = rows.iter().flatten().map(|&(_, entry)| entry).collect();
    if reads(&g, &entries, &moves) {
        return Some("its kinetic energy is not quadratic in the momenta".into());
    }
    let at = |nodes: &[Node]| evaluate(&g, nodes, 0.0, &vec![0.0; 2 * n], &model.parameter_values);
    if let Some(i) = at(h_p).iter().position(|&velocity| velocity != 0.0) {
        return Some(format!("{} moves where all momenta are 0", model.component_names()[i]));
    }
    let mut values = at(&entries).into_iter();
    let mut diagonal = vec![0.0; n];
    let mut full = vec![0.0; if n <= LARGEST_FULL_MASS { n * n } else { 0 }];
    for (i, row) in rows.iter().enumerate() {
        for (&(column, _), value) in row.iter().zip(&mut values) {
            let j = column as usize - n;
            if i == j {
                diagonal[i] = value;
            }
            if let Some(entry) = full.get_mut(i * n + j) {
                *entry = value;
            }
        }
    }
    if let Some(i) = diagonal.iter().position(|&d| d <= 0.0 || d.is_nan()) {
        return Some(format!("{} has no positive mass", model.component_names()[i]));
    }
    (!full.is_empty() && !positive_definite(&full, n))
        .then(|| "its mass matrix is not positive definite".into())
}
