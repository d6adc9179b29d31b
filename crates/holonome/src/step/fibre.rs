//! Motion along the fibres of coisotropic constraints: the flow of X_{λ·g} for time 1, X_g = (g_p,
//! −g_q).
//!
//! For g(q) it is a kick. For quadratic g it is exp(λB) with a constant matrix B, which is known in
//! closed form where B³ = cB, c ≤ 0: rotations and shears. Otherwise a Gauss method follows the
//! flow: λ is of the size of h, so that many stages make the error as small as rounding. The Gauss
//! method is symplectic, so the whole method stays symplectic however large the error is.

use super::formula_space::FormulaSpace;
use crate::kernels::Formula;
use holonome_integrate::phase_space::{Function, PhaseSpace, Value};
use holonome_integrate::scheme::gauss::follow;
use holonome_model::elaborate::model::Model;
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::treatment::mechanics::{Mechanics, Restriction};
use holonome_model::treatment::structure::{ConstraintKind, evaluate};
use rustc_hash::FxHashMap;

/// Motion of a point along its fibre.
pub enum Fibre {
    /// g(q): p − g_qᵀλ.
    Kick,
    /// Quadratic g with commuting fields: one linear flow after the other.
    Linear(Vec<Linear>),
    /// Any other g, by a Gauss method.
    Curved,
}

impl Fibre {
    /// Fibre of the constraints of `mechanics`.
    pub fn new(mechanics: &Mechanics, model: &Model) -> Fibre {
        if mechanics.kind != ConstraintKind::Coisotropic {
            return Fibre::Kick;
        }
        linear(mechanics, model).map_or(Fibre::Curved, Fibre::Linear)
    }

    /// Move x by λ.
    pub fn slide(
        &self,
        space: &mut dyn FormulaSpace,
        t: Value,
        x: &[Value],
        lambda: &[Value],
    ) -> Vec<Value> {
        let one = space.constant(1.0);
        match self {
            Fibre::Kick => {
                let field = space.constraint_field(t, x, lambda);
                (space as &mut dyn PhaseSpace).moved(x, one, &field)
            }
            Fibre::Linear(flows) => flows
                .iter()
                .zip(lambda)
                .fold(x.to_vec(), |x, (flow, &lambda)| flow.of(space, t, &x, lambda)),
            Fibre::Curved => {
                follow(space, one, x, &mut |space, _, y| space.constraint_field(t, y, lambda))
            }
        }
    }
}

/// Gradients of the constraints.
pub struct Gradients {
    degrees: usize,
    /// Components of the state that each gradient depends on.
    columns: Vec<Vec<u32>>,
    /// All entries, one gradient after the other.
    entries: Formula,
}

impl Gradients {
    /// Gradients of the constraints of `mechanics`.
    pub fn new(mechanics: &Mechanics) -> Gradients {
        let list = &mechanics.constraints;
        let nodes: Vec<Node> =
            list.iter().flat_map(|g| g.gradient.iter().map(|&(_, d)| d)).collect();
        Gradients {
            degrees: mechanics.degrees,
            columns: list.iter().map(|g| g.gradient.iter().map(|&(i, _)| i).collect()).collect(),
            entries: Formula::unfused(&mechanics.graph, &nodes),
        }
    }

    /// X_{λ·g} at x.
    pub fn field(
        &self,
        space: &mut dyn FormulaSpace,
        t: Value,
        x: &[Value],
        lambda: &[Value],
    ) -> Vec<Value> {
        let mut entries = space.at(&self.entries, t, x).into_iter();
        let mut field = vec![space.constant(0.0); x.len()];
        for (columns, &lambda) in self.columns.iter().zip(lambda) {
            let minus = space.function(Function::Negative, lambda);
            for (&i, entry) in columns.iter().zip(&mut entries) {
                let (place, factor) = conjugate(i as usize, self.degrees, lambda, minus);
                let term = space.product(factor, entry);
                field[place] = space.sum(field[place], term);
            }
        }
        field
    }
}

/// Place in X_g = (g_p, −g_q) of the derivative with respect to component `i`, and the one of two
/// factors that it gets.
fn conjugate<T>(i: usize, degrees: usize, positive: T, negative: T) -> (usize, T) {
    if i < degrees { (i + degrees, negative) } else { (i - degrees, positive) }
}

/// Flow exp(λB) = 1 + (sin λω)/ω B + (1 − cos λω)/ω² B² if B³ = −ω²B; 1 + λB if B² = 0.
pub struct Linear {
    b: Vec<(usize, usize)>,
    b2: Vec<(usize, usize)>,
    /// Entries of B, entries of B², and ω² unless that is 0.
    numbers: Formula,
    rotates: bool,
}

impl Linear {
    fn of(&self, space: &mut dyn FormulaSpace, t: Value, x: &[Value], lambda: Value) -> Vec<Value> {
        let numbers = space.at(&self.numbers, t, x);
        let (b, rest) = numbers.split_at(self.b.len());
        let (b2, omega2) = rest.split_at(self.b2.len());
        let (first, second) = if self.rotates {
            let omega = space.function(Function::Root, omega2[0]);
            let angle = space.product(lambda, omega);
            let (sine, cosine) =
                (space.function(Function::Sine, angle), space.function(Function::Cosine, angle));
            let minus = space.function(Function::Negative, cosine);
            let one = space.constant(1.0);
            let versine = space.sum(one, minus);
            (space.quotient(sine, omega), space.quotient(versine, omega2[0]))
        } else {
            (lambda, space.constant(0.0))
        };
        let mut moved = x.to_vec();
        for (places, entries, factor) in [(&self.b, b, first), (&self.b2, b2, second)] {
            for (&(i, j), &entry) in places.iter().zip(entries) {
                let weight = space.product(factor, entry);
                let term = space.product(weight, x[j]);
                moved[i] = space.sum(moved[i], term);
            }
        }
        moved
    }
}

type Matrix = FxHashMap<(usize, usize), Node>;

/// Linear flows of quadratic constraints that commute, if they are known in closed form for any
/// parameters.
fn linear(mechanics: &Mechanics, model: &Model) -> Option<Vec<Linear>> {
    let mut g = mechanics.graph.clone();
    let matrices: Option<Vec<Matrix>> = mechanics
        .constraints
        .iter()
        .map(|constraint| matrix(&mut g, constraint, mechanics, model))
        .collect();
    let matrices = matrices?;
    // Properties that hold for the model's parameters and for others near them hold for all.
    let perturbed = |k: usize| -> Vec<f64> {
        let change =
            |(i, value): (usize, &f64)| value * (1.0 + 0.1 * ((7 * i + 3 * k) as f64).sin());
        model.parameter_values.iter().enumerate().map(change).collect()
    };
    let parameters = [model.parameter_values.clone(), perturbed(1), perturbed(2)];
    // True if sums of products, with one entry of each of `factors`, vanish: they round a few times
    // per term, and have far fewer than a thousand terms.
    let vanishes = |g: &Graph, nodes: &[Node], factors: &[&Matrix]| {
        let zeros = vec![0.0; mechanics.dimension];
        parameters.iter().all(|p| {
            let largest = |nodes: &[Node]| {
                evaluate(g, nodes, 0.0, &zeros, p).iter().fold(0.0f64, |m, v| m.max(v.abs()))
            };
            let size = |matrix: &&Matrix| largest(&matrix.values().copied().collect::<Vec<_>>());
            largest(nodes) <= 1e-12 * factors.iter().map(size).product::<f64>()
        })
    };
    for a in 0..matrices.len() {
        for b in 0..a {
            let (ab, ba) = (
                product(&mut g, &matrices[a], &matrices[b]),
                product(&mut g, &matrices[b], &matrices[a]),
            );
            let difference = difference(&mut g, &ab, &ba);
            if !vanishes(&g, &difference, &[&matrices[a], &matrices[b]]) {
                return None;
            }
        }
    }
    let mut flows = Vec::new();
    for b in matrices {
        let b2 = product(&mut g, &b, &b);
        let shears = vanishes(&g, &b2.values().copied().collect::<Vec<_>>(), &[&b, &b]);
        let mut numbers: Vec<Node> = Vec::new();
        let sorted = |m: &Matrix| {
            let mut places: Vec<(usize, usize)> = m.keys().copied().collect();
            places.sort_unstable();
            places
        };
        let b_places = sorted(&b);
        numbers.extend(b_places.iter().map(|place| b[place]));
        let mut b2_places = Vec::new();
        if !shears {
            // c = (B³)_ij / B_ij at the largest entry.
            let b3 = product(&mut g, &b2, &b);
            let zeros = vec![0.0; mechanics.dimension];
            let values = evaluate(&g, &numbers, 0.0, &zeros, &model.parameter_values);
            let largest =
                (0..values.len()).max_by(|&i, &j| values[i].abs().total_cmp(&values[j].abs()))?;
            let place = b_places[largest];
            let c = g.div(*b3.get(&place)?, b[&place]);
            let scaled: Matrix =
                b.iter().map(|(&place, &entry)| (place, g.mul(c, entry))).collect();
            let rest = difference(&mut g, &b3, &scaled);
            let is_negative =
                parameters.iter().all(|p| evaluate(&g, &[c], 0.0, &zeros, p)[0] < 0.0);
            if !is_negative || !vanishes(&g, &rest, &[&b, &b, &b]) {
                return None;
            }
            b2_places = sorted(&b2);
            numbers.extend(b2_places.iter().map(|place| b2[place]));
            numbers.push(g.neg(c));
        }
        flows.push(Linear {
            b: b_places,
            b2: b2_places,
            numbers: Formula::unfused(&g, &numbers),
            rotates: !shears,
        });
    }
    Some(flows)
}

/// Matrix B of X_g = Bx; `None` if g is not a quadratic form.
fn matrix(
    g: &mut Graph,
    constraint: &Restriction,
    mechanics: &Mechanics,
    model: &Model,
) -> Option<Matrix> {
    let zeros = vec![0.0; mechanics.dimension];
    let mut b = Matrix::default();
    for &(i, d) in &constraint.gradient {
        if evaluate(g, &[d], 0.0, &zeros, &model.parameter_values)[0] != 0.0 {
            return None;
        }
        for (j, entry) in g.gradient(d) {
            let varies = g.reachable(&[entry]).into_iter().any(|node| {
                matches!(g.expression(node), Expression::Input(Input::State(_) | Input::Time))
            });
            if varies {
                return None;
            }
            let minus = g.neg(entry);
            let (row, entry) = conjugate(i as usize, mechanics.degrees, entry, minus);
            b.insert((row, j as usize), entry);
        }
    }
    Some(b)
}

fn product(g: &mut Graph, a: &Matrix, b: &Matrix) -> Matrix {
    let mut result = Matrix::default();
    let mut places: Vec<_> =
        a.iter().flat_map(|(&p, &x)| b.iter().map(move |(&q, &y)| (p, x, q, y))).collect();
    places.sort_unstable();
    for ((i, k), x, (l, j), y) in places {
        if k == l {
            let term = g.mul(x, y);
            let sum = match result.get(&(i, j)) {
                Some(&old) => g.add(old, term),
                None => term,
            };
            result.insert((i, j), sum);
        }
    }
    result
}

fn difference(g: &mut Graph, a: &Matrix, b: &Matrix) -> Vec<Node> {
    let zero = g.zero();
    let mut places: Vec<(usize, usize)> = a.keys().chain(b.keys()).copied().collect();
    places.sort_unstable();
    places.dedup();
    let at = |m: &Matrix, place| m.get(&place).copied().unwrap_or(zero);
    places.into_iter().map(|place| (at(a, place), at(b, place))).map(|(x, y)| g.sub(x, y)).collect()
}
