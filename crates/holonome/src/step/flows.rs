//! Parts of H whose flows are known exactly, recognised from the model's formulas: H = T(p) + V(q,
//! t).
//!
//! Without constraints the motion is q + τ T_p, and the kick p − τ V_q. On a sphere |q|² = l² with
//! T = |p|²/2m the motion goes along great circles, and the kick stays in the tangent space (HLW
//! VII.4); on a product of spheres each moves by itself. With V = ½ Σ kᵢ qᵢ² + W, where W is
//! another polynomial, the motion includes the oscillators, and W kicks.

use super::formula_space::FormulaSpace;
use crate::kernels::Formula;
use holonome_integrate::phase_space::{Asked, PhaseSpace, Value};
use holonome_model::elaborate::model::Model;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::treatment::mechanics::{Mechanics, Restriction};
use holonome_model::treatment::structure::{ConstraintKind, ambient_points, evaluate};

/// Exact flows of a model's two parts.
pub struct Flows {
    /// Components of q on each sphere.
    spheres: Vec<Vec<usize>>,
    /// 1/m of every component, for spheres and oscillators; empty unless T = Σ p²/2m.
    inverse_masses: Formula,
    /// k of every component; `None` if there are no oscillators.
    stiffness: Option<Formula>,
}

impl Flows {
    /// Flows of `mechanics`.
    ///
    /// # Errors
    /// Names the flow that is not known, and says why.
    pub fn new(mechanics: &Mechanics, model: &Model) -> Result<Flows, String> {
        let n = mechanics.degrees;
        let mut g = mechanics.graph.clone();
        let reads = |g: &Graph, roots: &[Node], range: std::ops::Range<usize>| {
            g.reachable(roots).into_iter().any(|node| match g.expression(node) {
                Expression::Input(Input::State(i)) => range.contains(&(i as usize)),
                _ => false,
            })
        };
        let (h_q, h_p) = mechanics.gradient.split_at(n);
        if reads(&g, h_q, n..2 * n) || reads(&g, h_p, 0..n) {
            return Err("the flow of the motion is not known: H is no sum of T(p) and V(q)".into());
        }
        let masses = constant_masses(mechanics, model).map(|(with_masses, masses)| {
            g = with_masses;
            masses
        });
        let mut spheres = Vec::new();
        for constraint in &mechanics.constraints {
            spheres.push(sphere(&g, constraint, masses.as_deref(), mechanics, model)?);
        }
        let mut all: Vec<usize> = spheres.iter().flatten().copied().collect();
        all.sort_unstable();
        if let Some(pair) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            let names = model.component_names();
            return Err(format!(
                "the flow of the motion is not known: {} is on two spheres",
                names[pair[0]]
            ));
        }
        let stiffness = match &masses {
            Some(_) if spheres.is_empty() => oscillators(&mut g, h_q, n, model),
            _ => None,
        };
        let of = |nodes: &[Node]| Formula::unfused(&g, nodes);
        Ok(Flows {
            spheres,
            inverse_masses: of(masses.as_deref().unwrap_or(&[])),
            stiffness: stiffness.as_deref().map(of),
        })
    }

    /// Move x for time `tau` along the flow of the motion.
    pub fn motion(
        &self,
        space: &mut dyn FormulaSpace,
        t: Value,
        tau: Value,
        x: &[Value],
    ) -> Vec<Value> {
        let n = x.len() / 2;
        let velocity = space.ask(Asked::Velocity, t, x);
        let mut moved = (space as &mut dyn PhaseSpace).moved(&x[..n], tau, &velocity);
        moved.extend(&x[n..]);
        let inverse_masses = space.at(&self.inverse_masses, t, x);
        for sphere in &self.spheres {
            let inverse_mass = inverse_masses[sphere[0]];
            let (q2, p2) = (norm2(space, x, sphere, 0), norm2(space, x, sphere, n));
            // m ω = |p|/|q|.
            let ratio = space.quotient(p2, q2);
            let m_omega = root(space, ratio);
            let omega = space.product(m_omega, inverse_mass);
            let (sine_over, cosine) = oscillation(space, omega, tau);
            // q cos ωτ + p/m sin ωτ/ω, and p cos ωτ − m ω² q sin ωτ/ω.
            let forward = space.product(sine_over, inverse_mass);
            let m_omega2 = space.product(ratio, inverse_mass);
            let back = space.product(m_omega2, sine_over);
            rotate(space, x, &mut moved, sphere, n, (cosine, forward, back));
        }
        self.round(space, t, &mut moved);
        if let Some(stiffness) = &self.stiffness {
            let stiffness = space.at(stiffness, t, x);
            for i in 0..n {
                if space.is_zero(stiffness[i]) {
                    continue;
                }
                let omega2 = space.product(stiffness[i], inverse_masses[i]);
                let omega = root(space, omega2);
                let (sine_over, cosine) = oscillation(space, omega, tau);
                let forward = space.product(sine_over, inverse_masses[i]);
                let back = space.product(sine_over, stiffness[i]);
                rotate(space, x, &mut moved, &[i], n, (cosine, forward, back));
            }
        }
        moved
    }

    /// Remove the round-off of the rotations from the constraints, where it would grow steadily:
    /// cos² + sin² is not exactly 1.
    fn round(&self, space: &mut dyn FormulaSpace, t: Value, x: &mut [Value]) {
        let n = x.len() / 2;
        let residuals = space.ask(Asked::Constraints, t, x);
        let (zero, one) = (space.constant(0.0), space.constant(1.0));
        for (k, sphere) in self.spheres.iter().enumerate() {
            let mut lambda = vec![zero; self.spheres.len()];
            lambda[k] = one;
            // −g_q, and g_q·q.
            let normal = space.constraint_field(t, x, &lambda);
            let minus = sphere.iter().fold(zero, |sum, &i| {
                let product = space.product(normal[i + n], x[i]);
                space.sum(sum, product)
            });
            let share = space.quotient(residuals[k], minus);
            let factor = space.sum(one, share);
            for &i in sphere {
                x[i] = space.product(factor, x[i]);
            }
            let q2 = norm2(space, x, sphere, 0);
            let along = sphere.iter().fold(zero, |sum, &i| {
                let product = space.product(x[i], x[i + n]);
                space.sum(sum, product)
            });
            let share = space.quotient(along, q2);
            for &i in sphere {
                let normal = space.product(share, x[i]);
                x[i + n] = (space as &mut dyn PhaseSpace).difference(&[x[i + n]], &[normal])[0];
            }
        }
    }

    /// Rates of the momenta in a kick.
    pub fn kick(&self, space: &mut dyn FormulaSpace, t: Value, x: &[Value]) -> Vec<Value> {
        let n = x.len() / 2;
        let mut force = space.ask(Asked::Slope, t, x);
        if let Some(stiffness) = &self.stiffness {
            let stiffness = space.at(stiffness, t, x);
            for i in 0..n {
                let linear = space.product(stiffness[i], x[i]);
                force[i] = (space as &mut dyn PhaseSpace).difference(&[force[i]], &[linear])[0];
            }
        }
        for sphere in &self.spheres {
            // Normal part of the force: (q·V_q) q/|q|².
            let zero = space.constant(0.0);
            let along = sphere.iter().fold(zero, |sum, &i| {
                let product = space.product(x[i], force[i]);
                space.sum(sum, product)
            });
            let q2 = norm2(space, x, sphere, 0);
            let share = space.quotient(along, q2);
            for &i in sphere {
                let normal = space.product(share, x[i]);
                force[i] = (space as &mut dyn PhaseSpace).difference(&[force[i]], &[normal])[0];
            }
        }
        let minus = |slope| (space as &mut dyn PhaseSpace).scaled(-1.0, slope);
        force.into_iter().map(minus).collect()
    }
}

/// 1/m of every component, with the graph that they are in; `None` unless T = Σ p²/2m with constant
/// masses.
pub fn constant_masses(mechanics: &Mechanics, model: &Model) -> Option<(Graph, Vec<Node>)> {
    let (n, mut g) = (mechanics.degrees, mechanics.graph.clone());
    let velocities = &mechanics.gradient[n..];
    // No term b·p: motion without a momentum is not that of a mass.
    let at_rest = |point: &[f64]| [&point[..n], &vec![0.0; n]].concat();
    let rests = ambient_points(model, 3, 0x0a7e).into_iter().zip([0.0, 0.3, 1.7]).all(|(x, t)| {
        evaluate(&g, velocities, t, &at_rest(&x), &model.parameter_values).iter().all(|&v| v == 0.0)
    });
    let mut diagonal = Vec::with_capacity(n);
    for (i, &velocity) in velocities.iter().enumerate() {
        match g.gradient(velocity)[..] {
            [] => diagonal.push(g.zero()),
            [(j, entry)] if j as usize == n + i => diagonal.push(entry),
            _ => return None,
        }
    }
    let moves = |node| matches!(g.expression(node), Expression::Input(Input::State(_)));
    let constant = !g.reachable(&diagonal).into_iter().any(moves);
    (rests && constant).then_some((g, diagonal))
}

fn root(space: &mut dyn FormulaSpace, a: Value) -> Value {
    space.function(holonome_integrate::phase_space::Function::Root, a)
}

/// Σ x_i² over the components of a sphere; `shift` is added to the indices.
fn norm2(space: &mut dyn FormulaSpace, x: &[Value], sphere: &[usize], shift: usize) -> Value {
    let zero = space.constant(0.0);
    sphere.iter().fold(zero, |sum, &i| {
        let square = space.product(x[i + shift], x[i + shift]);
        space.sum(sum, square)
    })
}

/// sin ωτ/ω (τ if ω is 0) and cos ωτ.
fn oscillation(space: &mut dyn FormulaSpace, omega: Value, tau: Value) -> (Value, Value) {
    use holonome_integrate::phase_space::Function::{Cosine, Sine};
    let angle = space.product(omega, tau);
    let (sine, cosine) = (space.function(Sine, angle), space.function(Cosine, angle));
    let quotient = space.quotient(sine, omega);
    (space.unless_zero(omega, quotient, tau), cosine)
}

/// Put q c + p f and p c − q b in the place of some components.
fn rotate(
    space: &mut dyn FormulaSpace,
    x: &[Value],
    moved: &mut [Value],
    components: &[usize],
    n: usize,
    (cosine, forward, back): (Value, Value, Value),
) {
    let minus = (space as &mut dyn PhaseSpace).scaled(-1.0, back);
    for &i in components {
        for (place, own, other, factor) in
            [(i, x[i], x[i + n], forward), (i + n, x[i + n], x[i], minus)]
        {
            let (own, other) = (space.product(cosine, own), space.product(factor, other));
            moved[place] = space.sum(own, other);
        }
    }
}

/// Components of q that a constraint |q|² = l² holds on a sphere.
fn sphere(
    g: &Graph,
    constraint: &Restriction,
    masses: Option<&[Node]>,
    mechanics: &Mechanics,
    model: &Model,
) -> Result<Vec<usize>, String> {
    let unknown = |why: &str| {
        Err(format!("the flow of the motion is not known: constraint `{}` {why}", constraint.name))
    };
    if mechanics.kind != ConstraintKind::Holonomic {
        return unknown("is not one on positions");
    }
    let Some(masses) = masses else {
        return unknown("needs a kinetic energy Σ p²/2m with constant masses");
    };
    let moves = |node| matches!(g.expression(node), Expression::Input(Input::Time));
    if g.reachable(&[constraint.node]).into_iter().any(moves) {
        return unknown("moves with time");
    }
    let components: Vec<usize> = constraint.gradient.iter().map(|&(i, _)| i as usize).collect();
    let entries: Vec<Node> = constraint.gradient.iter().map(|&(_, d)| d).collect();
    let of_masses: Vec<Node> = components.iter().map(|&i| masses[i]).collect();
    let mut factor = None;
    for x in ambient_points(model, 3, 0x5f4e) {
        let values =
            evaluate(g, &[&entries[..], &of_masses].concat(), 0.3, &x, &model.parameter_values);
        let (gradient, inverse_masses) = values.split_at(entries.len());
        // g_q = c q with the same constant c everywhere, but for a few roundings.
        for (&d, &i) in gradient.iter().zip(&components) {
            let c: f64 = *factor.get_or_insert(d / x[i]);
            if (d - c * x[i]).abs() > 1e-12 * d.abs().max((c * x[i]).abs()) {
                return unknown("is not a sphere |q|² = l²");
            }
        }
        if inverse_masses
            .iter()
            .any(|m| (m - inverse_masses[0]).abs() > 1e-14 * inverse_masses[0].abs())
        {
            return unknown("holds coordinates of different masses on a sphere");
        }
    }
    Ok(components)
}

/// Stiffnesses k of V = ½ Σ k q² + W; `None` unless V is a polynomial without mixed quadratic terms
/// and some k are positive.
fn oscillators(g: &mut Graph, h_q: &[Node], n: usize, model: &Model) -> Option<Vec<Node>> {
    let polynomial = g.reachable(h_q).into_iter().all(|node| match g.expression(node) {
        Expression::Unary(Unary::Neg, _) => true,
        Expression::Binary(Binary::Add | Binary::Sub | Binary::Mul, ..) => true,
        Expression::Constant(_) | Expression::Input(Input::State(_) | Input::Parameter(_)) => true,
        // Parameters may appear in any expression.
        _ => g
            .reachable(&[node])
            .into_iter()
            .all(|n| !matches!(g.expression(n), Expression::Input(Input::State(_) | Input::Time))),
    });
    if !polynomial {
        return None;
    }
    let zero = g.zero();
    let origin = (0..2 * n).map(|i| (g.state(i), zero)).collect();
    let (mut places, mut entries) = (Vec::new(), Vec::new());
    for (i, &force) in h_q.iter().enumerate() {
        for (j, entry) in g.gradient(force) {
            places.push((i, j as usize));
            entries.push(entry);
        }
    }
    // All at once: each takes a time that grows with the model.
    let at_origin = g.substituted(&entries, &origin);
    let values = evaluate(g, &at_origin, 0.0, &vec![0.0; 2 * n], &model.parameter_values);
    let mut stiffness = vec![zero; n];
    let mut positive = false;
    for (((i, j), k), value) in places.into_iter().zip(at_origin).zip(values) {
        if j == i && value > 0.0 {
            stiffness[i] = k;
            positive = true;
        } else if value != 0.0 {
            return None;
        }
    }
    positive.then_some(stiffness)
}
