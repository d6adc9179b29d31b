//! Mechanics of a model for structure-preserving methods: H with its derivatives, the constraints
//! and their fibres.

use super::dirac::{account_for_work, unconstrained_field};
use super::structure::{ConstraintKind, Irregular, Structure};
use super::unrolled::{TooLarge, Unrolled};
use crate::elaborate::model::Model;
use crate::graph::calculus::Gradient;
use crate::graph::{Expression, Graph, Input, Node};
use rustc_hash::FxHashMap;

/// Mechanics of a model as formulas of (t, x).
#[derive(Clone, Debug)]
pub struct Mechanics {
    /// Graph of the nodes.
    pub graph: Graph,
    /// Length of the state.
    pub dimension: usize,
    /// Length n of q and of p; 0 for a state model, which has neither.
    pub degrees: usize,
    /// ẋ without constraints: (H_p, −H_q + Q) and the rate of the work, or the model's own field.
    pub field: Vec<Node>,
    /// H; `None` for a state model.
    pub hamiltonian: Option<Node>,
    /// H_q and H_p; empty for a state model.
    pub gradient: Vec<Node>,
    /// Forces that act beside H.
    pub forces: Forces,
    /// Rate of the work of the forces for velocities that follow (q, p), if the model keeps account
    /// of it.
    pub power: Option<Node>,
    /// V_q of the part of H that is called stiff, if any.
    pub stiff: Option<Vec<Node>>,
    /// Kind of the constraints.
    pub kind: ConstraintKind,
    /// Scalar constraints, without those of rolling.
    pub constraints: Vec<Restriction>,
    /// Hidden constraints: of a coisotropic kind one for each constraint, none of a second-class one.
    /// Behind them stand the rolling constraints, as functions of positions and momenta.
    pub hidden: Vec<Restriction>,
    /// Matrix A of the rolling constraints, by rows over the positions.
    pub rolling: Vec<Vec<Node>>,
    /// First constraint along whose normal H does not depend on the momentum: no multiplier acts on
    /// it.
    pub degenerate: Option<String>,
}

/// Forces Q that act beside H.
#[derive(Clone, Debug, Default)]
pub struct Forces {
    /// γ, if Q = −γ p + R with one γ for all momenta that depends on parameters alone.
    pub friction: Option<Node>,
    /// R, or Q if there is no γ; empty if there are no forces.
    pub rest: Vec<Node>,
    /// True if R depends on momenta.
    pub drags: bool,
}

impl Forces {
    /// The forces `force`, which are empty if there are none. Friction is told from others if its
    /// flow `keeps` the hidden constraints.
    fn new(g: &mut Graph, force: &[Node], keeps: bool) -> Forces {
        let n = force.len();
        let friction = (n > 0 && keeps).then(|| uniform_friction(g, force)).flatten();
        let mut rest = force.to_vec();
        if friction.is_some() {
            for (k, force) in rest.iter_mut().enumerate() {
                // Q is affine in its own momentum: R is its value where that is 0.
                let p = g.state(n + k);
                let still = [(p, g.zero())].into_iter().collect();
                *force = g.substituted(&[*force], &still)[0];
            }
        }
        let momentum =
            |input| matches!(input, Input::State(i) if (n..2 * n).contains(&(i as usize)));
        let drags = g.reachable(&rest).into_iter().any(|node| match g.expression(node) {
            Expression::Input(input) => momentum(input),
            _ => false,
        });
        Forces { friction, rest, drags }
    }
}

/// True if the hidden constraints are linear in the momenta and have no other part: they hold for
/// momenta that are scaled.
fn keeps_hidden(g: &mut Graph, hidden: &[Restriction], degrees: usize) -> bool {
    let rest: FxHashMap<Node, Node> =
        (degrees..2 * degrees).map(|k| (g.state(k), g.zero())).collect();
    let momentum = |input| matches!(input, Input::State(i) if i as usize >= degrees);
    hidden.iter().all(|hidden| {
        let at_rest = g.substituted(&[hidden.node], &rest)[0];
        let slopes: Vec<Node> = hidden.gradient.iter().filter(|(i, _)| *i as usize >= degrees).map(|&(_, d)| d).collect();
        let moves = |node: &Node| matches!(g.expression(*node), Expression::Input(input) if momentum(input));
        g.is_zero(at_rest) && !g.reachable(&slopes).iter().any(moves)
    })
}

/// γ of forces −γ p + R; `None` if there is no such γ.
fn uniform_friction(g: &mut Graph, force: &[Node]) -> Option<Node> {
    let n = force.len();
    let mut rate = None;
    for (k, &force) in force.iter().enumerate() {
        let gradient = g.gradient(force);
        let mut of_momenta = gradient.iter().filter(|(i, _)| *i as usize >= n);
        let (Some(&(i, d)), None) = (of_momenta.next(), of_momenta.next()) else { return None };
        let own = g.neg(d);
        if i as usize != n + k || rate.is_some_and(|rate| rate != own) {
            return None;
        }
        rate = Some(own);
    }
    rate.filter(|&rate| depends_on_parameters_alone(g, rate))
}

fn depends_on_parameters_alone(g: &Graph, node: Node) -> bool {
    let moves = |node: &Node| {
        matches!(g.expression(*node), Expression::Input(Input::State(_) | Input::Time))
    };
    !g.reachable(&[node]).iter().any(moves)
}

/// A scalar constraint, or a hidden one.
#[derive(Clone, Debug)]
pub struct Restriction {
    /// Name of the constraint, in a family with its indices: `link[3]`, `link[3].hidden`.
    pub name: String,
    /// Formula that must vanish.
    pub node: Node,
    /// Gradient of the formula.
    pub gradient: Gradient,
}

/// Reason why a model has no mechanics.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoMechanics {
    /// The model is too large to be unrolled.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The constraints determine no motion.
    #[error(transparent)]
    Irregular(#[from] Irregular),
}

impl Mechanics {
    /// Length of the part of the state that moves: (q, p), or all of it.
    pub fn phase(&self) -> usize {
        if self.degrees > 0 { 2 * self.degrees } else { self.dimension }
    }

    /// The mechanics of `model` with its unrolled form and its structure.
    pub fn new(model: &Model, mut unrolled: Unrolled, structure: Structure) -> Mechanics {
        let hamiltonian = model.is_hamiltonian();
        let degrees = if hamiltonian { model.degrees() } else { 0 };
        let g = &mut unrolled.graph;
        let full = |g: &mut Graph, sparse: &Gradient| {
            let mut gradient = vec![g.zero(); 2 * degrees];
            sparse.iter().for_each(|&(i, d)| gradient[i as usize] = d);
            gradient
        };
        let gradient = match hamiltonian {
            true => full(g, &unrolled.hamiltonian_gradient),
            false => Vec::new(),
        };
        let stiff = model.stiff.as_ref().map(|stiff| {
            let node = stiff.unroll(g)[0];
            let sparse = g.gradient(node);
            full(g, &sparse)[..degrees].to_vec()
        });
        let (constraints, hidden) = restrictions(model, &unrolled, &structure);
        let tangent = structure.hidden.iter().find(|hidden| hidden.tangency);
        let degenerate = tangent.map(|hidden| constraints[hidden.of].name.clone());
        let g = &mut unrolled.graph;
        let keeps = keeps_hidden(g, &hidden, degrees);
        let forces = Forces::new(g, &unrolled.force, keeps);
        let mut field = match hamiltonian {
            true => unconstrained_field(model, &mut unrolled),
            false => unrolled.field.clone(),
        };
        account_for_work(model, &mut unrolled, &mut field);
        let following: Vec<Node> =
            (0..degrees).map(|k| unrolled.graph.state(2 * degrees + k)).collect();
        let power = model.work().map(|_| unrolled.power(&following));
        let (dimension, kind) = (model.dimension(), structure.kind);
        let hamiltonian = unrolled.hamiltonian;
        Mechanics {
            graph: unrolled.graph,
            dimension,
            degrees,
            field,
            hamiltonian,
            gradient,
            forces,
            power,
            stiff,
            kind,
            constraints,
            hidden,
            rolling: unrolled.rolling.into_iter().flatten().collect(),
            degenerate,
        }
    }
}

/// Scalar constraints without those of rolling; their hidden ones, and behind these the rolling
/// constraints.
fn restrictions(
    model: &Model,
    unrolled: &Unrolled,
    structure: &Structure,
) -> (Vec<Restriction>, Vec<Restriction>) {
    let all = model.constraints.iter().zip(&unrolled.constraints);
    let scalars = all.flat_map(|(quantity, scalars)| {
        scalars.iter().map(|scalar| Restriction {
            name: quantity.member_name(scalar.member),
            node: scalar.node,
            gradient: scalar.gradient.clone(),
        })
    });
    let mut constraints: Vec<Restriction> = scalars.collect();
    let of_rolling = unrolled.rolling.iter().map(Vec::len).sum::<usize>();
    let rolling = constraints.split_off(constraints.len() - of_rolling);
    let hidden = structure.hidden.iter().map(|hidden| Restriction {
        name: format!("{}.hidden", constraints[hidden.of].name),
        node: hidden.node,
        gradient: hidden.gradient.clone(),
    });
    let hidden = hidden.chain(rolling).collect();
    (constraints, hidden)
}
