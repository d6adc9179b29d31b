//! Multipliers of all entries of the constraints as formulas, from those of the equations that are
//! imposed. Of redundant constraints they are those of least norm: of all λ with the same Gᵀλ, that
//! without a part in the null space of Gᵀ.

use super::unrolled::Unrolled;
use crate::elaborate::model::{Component, Model, Redundancy};
use crate::graph::calculus::Gradient;
use crate::graph::linear::{Factors, Matrix};
use crate::graph::{Graph, Node};

/// Multipliers of all entries of constraints as stated; empty if there are no `multipliers`.
pub(super) fn of_entries(
    model: &Model,
    unrolled: &mut Unrolled,
    multipliers: &[Node],
) -> Vec<Node> {
    if multipliers.is_empty() {
        return Vec::new();
    }
    let of_equations = match &model.redundancy {
        Some(redundancy) => least_norm((model, redundancy), unrolled, multipliers),
        None => multipliers.to_vec(),
    };
    let g = &mut unrolled.graph;
    let (mut all, mut first) = (Vec::new(), 0);
    for constraint in model.imposed_constraints() {
        let shares = constraint.shares();
        for _ in 0..constraint.members {
            for share in &shares {
                all.push(match share {
                    Some((scalar, part)) => {
                        let part = g.constant(*part);
                        g.mul(part, of_equations[first + scalar])
                    }
                    None => g.zero(),
                });
            }
            first += constraint.components.len();
        }
    }
    all
}

/// A scalar equation: its number among all that are stated, its gradient, and the root of the number
/// of entries that it stands for, as the squares of the multipliers of all entries add up.
struct Equation {
    number: usize,
    gradient: Gradient,
    root: f64,
}

/// Multipliers of least norm of all equations as stated, from those of the imposed ones.
fn least_norm(
    model: (&Model, &Redundancy),
    unrolled: &mut Unrolled,
    multipliers: &[Node],
) -> Vec<Node> {
    let (kept, implied) = equations(model, unrolled);
    let g = &mut unrolled.graph;
    let mut gram = Matrix::zeros(g, kept.len());
    for i in 0..kept.len() {
        for j in 0..=i {
            let entry = product(g, &kept[i], &kept[j]);
            gram.set(i, j, entry);
            gram.set(j, i, entry);
        }
    }
    let factors = Factors::symmetric(g, &gram);
    // The gradient of an implied equation is the sum of these shares of the others.
    let mut shares: Vec<Vec<Node>> = Vec::with_capacity(implied.len());
    for equation in &implied {
        let right: Vec<Node> = kept.iter().map(|other| product(g, other, equation)).collect();
        shares.push(factors.solve(g, &right));
    }
    let own: Vec<Node> =
        kept.iter().zip(multipliers).map(|(k, &u)| scaled(g, u, 1.0 / k.root)).collect();
    let mut normal = Matrix::zeros(g, implied.len());
    for i in 0..implied.len() {
        for j in 0..=i {
            let mut entry = g.dot(&shares[i], &shares[j]);
            if i == j {
                let one = g.constant(1.0);
                entry = g.add(entry, one);
            }
            normal.set(i, j, entry);
            normal.set(j, i, entry);
        }
    }
    let right: Vec<Node> = shares.iter().map(|shares| g.dot(shares, &own)).collect();
    let of_implied = Factors::symmetric(g, &normal).solve(g, &right);
    let mut all = vec![g.zero(); kept.len() + implied.len()];
    for (k, (equation, own)) in kept.iter().zip(own).enumerate() {
        let of_equation: Vec<Node> = shares.iter().map(|shares| shares[k]).collect();
        let taken = g.dot(&of_equation, &of_implied);
        let rest = g.sub(own, taken);
        all[equation.number] = scaled(g, rest, equation.root);
    }
    for (equation, own) in implied.iter().zip(of_implied) {
        all[equation.number] = scaled(g, own, equation.root);
    }
    all
}

/// The equations that are imposed, and those that follow from them.
fn equations(
    (model, redundancy): (&Model, &Redundancy),
    unrolled: &mut Unrolled,
) -> (Vec<Equation>, Vec<Equation>) {
    let mut firsts = Vec::new();
    let mut next = 0;
    for quantity in &redundancy.stated {
        firsts.push(next);
        next += quantity.scalars();
    }
    let number = |stated: usize, member: usize, component: &Component| {
        let components = &redundancy.stated[stated].components;
        let place = components.iter().position(|c| c.offset == component.offset);
        firsts[stated] + member * components.len() + place.expect("it is one of these")
    };
    let (mut kept, mut implied) = (Vec::new(), Vec::new());
    let parts = redundancy.parts.iter().zip(&model.constraints).zip(&unrolled.constraints);
    for (((stated, members), part), scalars) in parts {
        for (scalar, component) in scalars.iter().zip(part.components.iter().cycle()) {
            kept.push(Equation {
                number: number(*stated, members[scalar.member] as usize, component),
                gradient: scalar.gradient.clone(),
                root: scalar.multiplicity.sqrt(),
            });
        }
    }
    let g = &mut unrolled.graph;
    for (stated, (quantity, left_out)) in
        redundancy.stated.iter().zip(&redundancy.implied).enumerate()
    {
        if left_out.is_empty() {
            continue;
        }
        let outputs = quantity.functional.unroll(g);
        for (member, component) in left_out {
            let node = outputs[member * quantity.shape.len() + component.offset];
            implied.push(Equation {
                number: number(stated, *member, component),
                gradient: g.gradient(node),
                root: component.multiplicity.sqrt(),
            });
        }
    }
    (kept, implied)
}

/// Product of the gradients of two equations.
fn product(g: &mut Graph, a: &Equation, b: &Equation) -> Node {
    let mut sum = g.zero();
    for &(column, entry) in &a.gradient {
        if let Ok(at) = b.gradient.binary_search_by_key(&column, |&(other, _)| other) {
            let term = g.mul(entry, b.gradient[at].1);
            sum = g.add(sum, term);
        }
    }
    scaled(g, sum, a.root * b.root)
}

fn scaled(g: &mut Graph, node: Node, factor: f64) -> Node {
    let factor = g.constant(factor);
    g.mul(factor, node)
}
