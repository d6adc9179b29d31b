//! Feedback (Chang, Jimenez, Perlmutter 2016; Chang, Perlmutter, Vankerschaver 2022, (6)): a field
//! becomes
//!
//! ẋ = X − L ∇V,   V = W(ΔF),   ΔF = F(x) − F₀,
//!
//! whose level set F = F₀ attracts. In the papers W = ½ ΔFᵀ K ΔF and L = 1; the Gauss–Newton form
//! takes L ∇V = κ DF⁺ ΔF, DF⁺ = W DFᵀ(DF W DFᵀ)⁻¹, so that ΔF decays at the rate κ whatever the
//! invariants' scales. There W holds the squared scale of every vector of the state, so that a
//! change of units changes nothing. It is the papers' field in the variables W^(-1/2) x.

use super::correction::{deviation, pseudo_inverse_times};
use super::{Field, InvariantKind};
use crate::graph::{Graph, Input, Node};

/// Builder of an expression from nodes: a user's W(ΔF) or L(x).
pub type GraphFormula<'a, T> = &'a dyn Fn(&mut Graph, &[Node]) -> T;

/// The potential W.
pub enum Potential<'a> {
    /// ½ Σ k_c |ΔF_c|² with one gain for each group of invariants.
    Gains,
    /// ½ ΔFᵀ K ΔF with a full matrix K over the rows of F.
    Matrix,
    /// The user's W ≥ 0, which vanishes only at 0; its argument is ΔF.
    Function(GraphFormula<'a, Node>),
}

/// The transport L.
pub enum Transport<'a> {
    /// 1, as in the papers' experiments.
    Identity,
    /// A matrix expression (row-major, n × n) with positive definite symmetric part; its argument
    /// is x.
    Matrix(GraphFormula<'a, Vec<Node>>),
}

/// Places of the inputs of a feedback field among the parameters of its tapes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// Place of F₀ of the rows of F that are not constraints (whose target is 0), in order.
    pub targets: usize,
    /// Place of the gains by group, of the entries of K by rows, or of κ and the weights W of the
    /// state's vectors.
    pub gains: usize,
    /// Number of gains, entries, or κ and weights.
    pub gain_count: usize,
}

impl Inputs {
    /// Place of F₀ of a row that is not a constraint.
    pub fn target_of(&self, row: usize, field: &Field) -> usize {
        self.targets + row - field.constraints
    }
}

/// The feedback field of the papers.
pub fn literal(field: &Field, potential: &Potential, transport: &Transport) -> (Field, Inputs) {
    let mut result = field.clone();
    let mut inputs = targets(field);
    let delta = deviation(&mut result, |g, row| g.parameter(inputs.target_of(row, field)));
    let m = delta.len();
    let g = &mut result.graph;
    // ∇W(ΔF), one component for each row of F.
    let slope: Vec<Node> = match potential {
        Potential::Gains => {
            inputs.gain_count = field.groups.len();
            let mut slope = vec![g.zero(); m];
            for (k, group) in field.groups.iter().enumerate() {
                let gain = g.parameter(inputs.gains + k);
                for (row, multiplicity) in group.members.rows() {
                    let weight = g.constant(multiplicity);
                    let weighted = g.mul(gain, weight);
                    slope[row] = g.mul(weighted, delta[row]);
                }
            }
            slope
        }
        Potential::Matrix => {
            inputs.gain_count = m * m;
            (0..m)
                .map(|i| {
                    let row: Vec<Node> =
                        (0..m).map(|j| g.parameter(inputs.gains + i * m + j)).collect();
                    g.dot(&row, &delta)
                })
                .collect()
        }
        Potential::Function(w) => {
            // W as a template over ΔF, differentiated there and instantiated here.
            let mut template = Graph::new();
            let slots: Vec<Node> = (0..m).map(|k| template.input(Input::Slot(k as u32))).collect();
            let w = w(&mut template, &slots);
            let gradient = template.adjoint(w, |input| matches!(input, Input::Slot(_)));
            let mut slope = vec![g.zero(); m];
            for (input, d) in gradient {
                let Input::Slot(k) = input else { continue };
                slope[k as usize] = g.instantiate(&template, &[d], |g, input| match input {
                    Input::Slot(k) => delta[k as usize],
                    other => g.input(other),
                })[0];
            }
            slope
        }
    };
    let mut push = vec![g.zero(); field.dimension];
    for (row, &s) in field.jacobian.iter().zip(&slope) {
        for &(i, d) in row {
            let product = g.mul(s, d);
            push[i as usize] = g.add(push[i as usize], product);
        }
    }
    if let Transport::Matrix(l) = transport {
        let n = field.dimension;
        let x: Vec<Node> = (0..n).map(|i| g.state(i)).collect();
        let l = l(g, &x);
        push = (0..n).map(|i| g.dot(&l[i * n..(i + 1) * n], &push)).collect();
    }
    subtract(&mut result, &push);
    result.parameters = inputs.gains + inputs.gain_count;
    (result, inputs)
}

/// The Gauss–Newton form: ẋ = X − κ DF⁺ ΔF. `vector_of` gives the vector that each component of the
/// state belongs to.
pub fn gauss_newton(field: &Field, vector_of: &[usize]) -> (Field, Inputs) {
    let mut result = field.clone();
    let mut inputs = targets(field);
    let vectors = vector_of.iter().max().map_or(0, |&last| last + 1);
    inputs.gain_count = 1 + vectors;
    let delta = deviation(&mut result, |g, row| g.parameter(inputs.target_of(row, field)));
    let g = &mut result.graph;
    let kappa = g.parameter(inputs.gains);
    let weights: Vec<Node> = (1..=vectors).map(|k| g.parameter(inputs.gains + k)).collect();
    // Faster than the product with the result, which all else waits for.
    let delta: Vec<Node> = delta.into_iter().map(|delta| g.mul(kappa, delta)).collect();
    let push = pseudo_inverse_times(g, &field.jacobian, (vector_of, &weights), &delta);
    subtract(&mut result, &push);
    result.parameters = inputs.gains + inputs.gain_count;
    (result, inputs)
}

fn targets(field: &Field) -> Inputs {
    let targets = field.parameters;
    Inputs { targets, gains: targets + field.invariants.len() - field.constraints, gain_count: 0 }
}

fn subtract(field: &mut Field, push: &[Node]) {
    for (x, &p) in field.field.iter_mut().zip(push) {
        *x = field.graph.sub(*x, p);
    }
}

/// Label of a group among gains: `rod`, `rod.hidden`, `H`, `J`.
pub fn gain_name(name: &str, kind: InvariantKind) -> String {
    match kind {
        InvariantKind::Hidden(order) => super::hidden_name(name, order),
        _ => name.to_string(),
    }
}
