//! Formulas of a model, ready to be instantiated in a step.

use super::fibre::{Fibre, Gradients};
use super::flows::Flows;
use super::kepler::Kepler;
use super::poisson::PoissonFunctions;
use super::rigid_body::RigidBody;
use super::symbols::ParameterPlaces;
use crate::kernels::Formula;
use crate::policy::FEWEST_SWEPT;
use holonome_model::elaborate::model::Model;
use holonome_model::graph::calculus::Gradient;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::treatment::mechanics::{Mechanics, Restriction};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// Formulas of a model that a step may ask for.
pub struct Functions {
    /// Length of the state.
    pub dimension: usize,
    /// Length n of q.
    pub degrees: usize,
    /// ẋ, and the sizes of its terms if it is a general field for fixed-point iteration.
    pub field: Formula,
    pub term_sizes: Option<Formula>,
    /// H_q less the forces beside H, unless these act apart, and H_p.
    pub slope: Formula,
    pub h_p: Formula,
    /// Rate of friction that is one for all momenta, and forces that act apart.
    pub friction: Option<Formula>,
    pub force: Option<Formula>,
    /// Rate of the work of the forces, if the model keeps account of it.
    pub power: Option<Formula>,
    /// g, and Σ |∂g/∂x_i| max |x_j| of each constraint.
    pub constraints: Formula,
    pub constraint_sizes: Formula,
    /// The hidden constraints, and their scales; see `constraint_sizes`.
    pub hidden: Formula,
    pub hidden_sizes: Formula,
    /// Forces −Gᵀλ − Aᵀμ of multipliers that follow the state.
    pub reaction: Formula,
    /// X_g of every constraint, and the motion of a point along it.
    pub gradients: Gradients,
    pub fibre: Fibre,
    /// Exact flows of two parts of H, for methods that need them.
    pub flows: Option<Flows>,
    /// Motions of Kepler and their coupling, for methods that need them.
    pub kepler: Option<Kepler>,
    /// Rigid body that the model is, for methods that need one.
    pub body: Option<RigidBody>,
    /// Formulas of a Poisson system, for methods that need one.
    pub poisson: Option<PoissonFunctions>,
    /// Places of the method's parameters.
    pub parameters: ParameterPlaces,
    /// H of a Hamiltonian model.
    pub energy: Option<Formula>,
    /// True if the energy is constant along the motion.
    pub autonomous: bool,
    /// Derivatives of V in H = ½ pᵀM⁻¹p + V, for methods that need them.
    pub curvature: Option<Curvature>,
    /// Derivatives for the extension of the field off the constraint set, made on first use, and
    /// the mechanics that they are made from.
    extension: OnceLock<Extension>,
    mechanics: Mechanics,
}

/// Derivatives of constraints g and of hidden constraints h.
pub struct Extension {
    /// X_{a·h} for multipliers a that follow the state.
    pub hidden_field: Formula,
    /// Rates of g and h for an ẋ that follows the state.
    pub constraint_rates: Formula,
    pub hidden_rates: Formula,
}

impl Extension {
    fn new(mechanics: &Mechanics) -> Extension {
        let (mut g, dimension, n) = (mechanics.graph.clone(), mechanics.phase(), mechanics.degrees);
        let mut field = vec![g.zero(); dimension];
        for (k, hidden) in mechanics.hidden.iter().enumerate() {
            let a = g.state(dimension + k);
            for &(i, d) in &hidden.gradient {
                let (i, amount) = (i as usize, g.mul(a, d));
                match i.checked_sub(n) {
                    Some(q) => field[q] = g.add(field[q], amount),
                    None => field[n + i] = g.sub(field[n + i], amount),
                }
            }
        }
        let mut rates = |list: &[Restriction]| {
            let nodes: Vec<Node> = list.iter().map(|restriction| restriction.node).collect();
            let along = g.tangent(&nodes, |g, input| match input {
                Input::State(i) => Some(g.state(dimension + i as usize)),
                _ => None,
            });
            let sum = |(&node, along)| {
                let explicit = g.time_derivative(node);
                g.add(along, explicit)
            };
            let nodes: Vec<Node> = nodes.iter().zip(along).map(sum).collect();
            Formula::unfused(&g, &nodes)
        };
        let (constraint_rates, hidden_rates) =
            (rates(&mechanics.constraints), rates(&mechanics.hidden));
        Extension { hidden_field: Formula::unfused(&g, &field), constraint_rates, hidden_rates }
    }
}

/// Higher derivatives of V along a direction v, which follows the state among their inputs.
pub struct Curvature {
    /// V_qq v
    pub second: Formula,
    /// v·V_qqq·v
    pub third: Formula,
    /// V_qq v for the stiff part of V, if one is known.
    pub stiff: Option<Formula>,
}

impl Curvature {
    /// Derivatives for `mechanics`.
    pub fn new(mechanics: &Mechanics) -> Curvature {
        let (mut g, dimension, n) = (mechanics.graph.clone(), mechanics.phase(), mechanics.degrees);
        let mut along = |gradient: &[Node]| {
            g.tangent(gradient, |g, input| match input {
                Input::State(i) if (i as usize) < n => Some(g.state(dimension + i as usize)),
                _ => None,
            })
        };
        let second = along(&mechanics.gradient[..n]);
        let third = along(&second);
        let stiff = mechanics.stiff.as_ref().map(|gradient| along(gradient));
        let of = |nodes: &[Node]| Formula::unfused(&g, nodes);
        Curvature { second: of(&second), third: of(&third), stiff: stiff.map(|nodes| of(&nodes)) }
    }
}

impl Functions {
    /// Formulas of `mechanics`.
    pub fn new(mechanics: &Mechanics, model: &Model) -> Functions {
        let n = mechanics.degrees;
        let of = |roots: &[Node]| Formula::unfused(&mechanics.graph, roots);
        let values = |list: &[Restriction]| {
            of(&list.iter().map(|restriction| restriction.node).collect::<Vec<_>>())
        };
        Functions {
            dimension: mechanics.dimension,
            degrees: n,
            field: of(&mechanics.field),
            term_sizes: (n == 0 && mechanics.dimension >= FEWEST_SWEPT)
                .then(|| term_sizes(&mechanics.graph, &mechanics.field)),
            slope: slope(mechanics),
            h_p: of(&mechanics.gradient[n..]),
            friction: mechanics.forces.friction.map(|rate| of(&[rate])),
            force: None,
            power: mechanics.power.map(|power| of(&[power])),
            constraints: values(&mechanics.constraints),
            constraint_sizes: sizes(mechanics, &mechanics.constraints),
            hidden: values(&mechanics.hidden),
            hidden_sizes: sizes(mechanics, &mechanics.hidden),
            reaction: reaction(mechanics),
            gradients: Gradients::new(mechanics),
            fibre: Fibre::new(mechanics, model),
            flows: None,
            kepler: None,
            body: None,
            poisson: None,
            parameters: ParameterPlaces::of(model),
            energy: mechanics.hamiltonian.map(|h| of(&[h])),
            autonomous: model.conserves_energy(),
            curvature: None,
            extension: OnceLock::new(),
            mechanics: mechanics.clone(),
        }
    }

    /// Lets forces that depend on momenta act by themselves, beside a step that cannot take them.
    pub fn set_forces_apart(&mut self) {
        let Mechanics { graph, gradient, forces, degrees, .. } = &self.mechanics;
        if forces.drags {
            self.slope = Formula::unfused(graph, &gradient[..*degrees]);
            self.force = Some(Formula::unfused(graph, &forces.rest));
        }
    }

    /// Derivatives for the extension of the field off the constraint set.
    pub fn extension(&self) -> &Extension {
        self.extension.get_or_init(|| Extension::new(&self.mechanics))
    }
}

/// H_q − R with the forces R that are no uniform friction.
fn slope(mechanics: &Mechanics) -> Formula {
    let (mut g, n) = (mechanics.graph.clone(), mechanics.degrees);
    let mut slope = mechanics.gradient[..n].to_vec();
    for (slope, &force) in slope.iter_mut().zip(&mechanics.forces.rest) {
        *slope = g.sub(*slope, force);
    }
    Formula::unfused(&g, &slope)
}

/// Forces −Gᵀλ − Aᵀμ of constraints on positions and of rolling ones, for multipliers that follow the
/// state. Constraints on momenta have none.
fn reaction(mechanics: &Mechanics) -> Formula {
    let (mut g, n) = (mechanics.graph.clone(), mechanics.degrees);
    let mut force = vec![g.zero(); n];
    let entries = |gradient: &Gradient| gradient.iter().map(|&(i, d)| (i as usize, d)).collect();
    let of_positions = mechanics.constraints.iter().map(|g| entries(&g.gradient));
    let of_rolling = mechanics.rolling.iter().map(|row| row.iter().copied().enumerate().collect());
    let rows: Vec<Vec<(usize, Node)>> = of_positions.chain(of_rolling).collect();
    for (k, row) in rows.into_iter().enumerate() {
        let multiplier = g.state(mechanics.phase() + k);
        for (i, d) in row.into_iter().filter(|&(i, _)| i < n) {
            let amount = g.mul(multiplier, d);
            force[i] = g.sub(force[i], amount);
        }
    }
    Formula::unfused(&g, &force)
}

/// Sizes of the terms of formulas: their values with all sums, of whatever is multiplied, replaced
/// by sums of absolute values.
fn term_sizes(graph: &Graph, roots: &[Node]) -> Formula {
    let mut g = graph.clone();
    let mut sizes: FxHashMap<Node, Node> = FxHashMap::default();
    for node in graph.reachable(roots) {
        let size = match graph.expression(node) {
            Expression::Unary(Unary::Neg, a) => sizes[&a],
            Expression::Binary(Binary::Add | Binary::Sub, a, b) => g.add(sizes[&a], sizes[&b]),
            Expression::Binary(Binary::Mul, a, b) => g.mul(sizes[&a], sizes[&b]),
            Expression::Binary(Binary::Div, a, b) => {
                let divisor = g.unary(Unary::Abs, b);
                g.div(sizes[&a], divisor)
            }
            _ => g.unary(Unary::Abs, node),
        };
        sizes.insert(node, size);
    }
    let sizes: Vec<Node> = roots.iter().map(|root| sizes[root]).collect();
    Formula::unfused(&g, &sizes)
}

/// Scales Σ |∂g/∂x_i| max |x_j| of restrictions; the maximum is over the positions if x_i is one,
/// else over the momenta.
fn sizes(mechanics: &Mechanics, list: &[Restriction]) -> Formula {
    let mut g = mechanics.graph.clone();
    let zero = g.zero();
    let mut largest = |range: std::ops::Range<usize>| {
        range.fold(zero, |largest, i| {
            let x = g.state(i);
            g.largest(x, largest)
        })
    };
    let n = mechanics.degrees;
    let largest = [largest(0..n), largest(n..2 * n)];
    let mut roots = Vec::with_capacity(list.len());
    for restriction in list {
        let mut size = zero;
        for (part, &largest) in largest.iter().enumerate() {
            let of_part =
                restriction.gradient.iter().filter(|&&(i, _)| usize::from(i as usize >= n) == part);
            let terms: Vec<Node> = of_part.map(|&(_, d)| g.unary(Unary::Abs, d)).collect();
            let sum = g.sum(terms);
            let product = g.mul(sum, largest);
            size = g.add(size, product);
        }
        roots.push(size);
    }
    Formula::unfused(&g, &roots)
}
