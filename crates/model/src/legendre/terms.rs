//! A term of a Lagrangian as a polynomial in the velocities that it reads.

use crate::functional::{Functional, Source, Stretches, Term};
use crate::graph::op::{Binary, Unary};
use crate::graph::{Expression, Graph, Input, Node};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use rustc_hash::FxHashMap;

/// Derivatives of a term by the velocities that it reads.
pub(super) struct VelocityTerm {
    /// The term, with a row for each pair if it is a sum over near pairs.
    pub(super) term: Term,
    /// The term's graph with the derivatives.
    pub(super) graph: Graph,
    /// Slots that read velocities.
    pub(super) velocities: Vec<u32>,
    /// Value where all velocities are 0.
    pub(super) rest: Node,
    /// Derivatives by the velocities where these are 0.
    pub(super) linear: Vec<(u32, Node)>,
    /// Second derivatives, each pair of slots once.
    pub(super) masses: Vec<(u32, u32, Node)>,
    /// Derivatives by the velocities.
    slopes: Vec<(u32, Node)>,
}

impl VelocityTerm {
    /// The derivatives of `term`; `None` if it reads no velocity, that is no component of the state
    /// from `degrees` on.
    ///
    /// # Errors
    /// If the term is not a polynomial of degree 2 in the velocities, at the part that is not.
    pub(super) fn new(term: &Term, degrees: usize) -> Result<Option<VelocityTerm>, Diagnostic> {
        let first = term.table.each().next();
        let reads_velocity = |k: &u32| {
            let entry = first.map_or(0, |row| row.at(*k as usize) as usize);
            term.slots[*k as usize] == Source::State && entry >= degrees
        };
        let velocities: Vec<u32> = (0..term.slots.len() as u32).filter(reads_velocity).collect();
        if velocities.is_empty() {
            return Ok(None);
        }
        let is_velocity = |input| matches!(input, Input::Slot(k) if velocities.contains(&k));
        let slot = |input| match input {
            Input::Slot(k) => k,
            _ => unreachable!("only slots are velocities"),
        };
        let mut g = term.graph.clone();
        let slopes: Vec<(u32, Node)> = g
            .adjoint(term.roots[0], is_velocity)
            .into_iter()
            .map(|(input, slope)| (slot(input), slope))
            .collect();
        let mut masses = Vec::new();
        for &(a, slope) in &slopes {
            let row = g.adjoint(slope, is_velocity);
            masses.extend(row.into_iter().map(|(b, mass)| (a, slot(b), mass)));
        }
        masses.retain(|&(a, b, _)| b <= a);
        let nodes: Vec<Node> = masses.iter().map(|&(.., mass)| mass).collect();
        let reads = |node: Node| matches!(g.expression(node), Expression::Input(input) if is_velocity(input));
        if g.reachable(&nodes).into_iter().any(reads) {
            return Err(not_quadratic(term, &is_velocity));
        }
        let zero = g.zero();
        let still: FxHashMap<Node, Node> =
            velocities.iter().map(|&k| (g.input(Input::Slot(k)), zero)).collect();
        let roots: Vec<Node> =
            term.roots.iter().copied().chain(slopes.iter().map(|&(_, slope)| slope)).collect();
        let at_rest = g.substituted(&roots, &still);
        let linear = slopes.iter().zip(&at_rest[1..]).map(|(&(k, _), &node)| (k, node)).collect();
        let (term, rest) = (of_rows(term), at_rest[0]);
        Ok(Some(VelocityTerm { term, graph: g, velocities, rest, linear, masses, slopes }))
    }

    /// Adds the momenta ∂L/∂q' to a functional with an output for every position.
    pub(super) fn add_momenta(&self, to: &mut Functional, degrees: usize) {
        to.terms.extend(self.slopes.iter().map(|&(slot, slope)| Term {
            graph: self.graph.clone(),
            roots: vec![slope],
            table: self.term.table.clone().with_last_of(slot as usize, degrees as u32),
            ..self.term.clone()
        }));
    }

    /// Copies the parts of the polynomial into another graph, with these slots in place of its own:
    /// the value at rest, the linear coefficients, the masses. The places in the text of new nodes
    /// are added to `spans`, `whole` for those that are derived.
    pub(super) fn copy_to(
        &self,
        (g, spans): (&mut Graph, &mut Vec<Span>),
        slots: &[u32],
        whole: Span,
    ) -> [Vec<Node>; 3] {
        let linear = self.linear.iter().map(|&(_, a)| a);
        let masses = self.masses.iter().map(|&(.., mass)| mass);
        let roots: Vec<Node> = std::iter::once(self.rest).chain(linear).chain(masses).collect();
        let plan = self.graph.reachable(&roots);
        let mut bind = |g: &mut Graph, input| match input {
            Input::Slot(k) => g.input(Input::Slot(slots[k as usize])),
            other => g.input(other),
        };
        let images = g.instantiate_plan(&self.graph, &plan, &plan, &mut bind);
        for (node, image) in plan.iter().zip(&images) {
            if image.index() >= spans.len() {
                let span = self.term.spans.get(node.index()).copied().unwrap_or(whole);
                spans.resize(image.index() + 1, span);
            }
        }
        let image = |root: &Node| images[plan.binary_search(root).expect("a root is in its plan")];
        let mut images: Vec<Node> = roots.iter().map(image).collect();
        let masses = images.split_off(1 + self.linear.len());
        let linear = images.split_off(1);
        [images, linear, masses]
    }
}

/// The term with a row for each of its pairs, if it is a sum over near pairs.
fn of_rows(term: &Term) -> Term {
    if term.pairs.is_none() {
        return term.clone();
    }
    let mut table = Stretches::new(term.table.width());
    term.each_row(&mut |row| table.push(&row.iter().collect::<Vec<u32>>()));
    Term { table, pairs: None, ..term.clone() }
}

/// Finding for a term that is not quadratic in the velocities, at its first operation that is not.
fn not_quadratic(term: &Term, is_velocity: &dyn Fn(Input) -> bool) -> Diagnostic {
    let mut degrees: FxHashMap<Node, Option<u32>> = FxHashMap::default();
    let mut place = None;
    for node in term.graph.reachable(&term.roots) {
        let degree = degree(&term.graph, node, &degrees, is_velocity);
        if degree.is_none_or(|degree| degree > 2) {
            place = term.spans.get(node.index()).copied();
            break;
        }
        degrees.insert(node, degree);
    }
    let span = place.or(term.spans.last().copied()).unwrap_or_default();
    let message = "the Lagrangian is not quadratic in the velocities";
    Diagnostic::error(message, span, "no polynomial of degree 2 in q'").help(
        "its terms are M(q, t) q'·q'/2, a(q, t)·q' and V(q, t): the momenta are then linear in q'",
    )
}

/// Degree of a node in the velocities; `None` if it is not a polynomial.
fn degree(
    g: &Graph,
    node: Node,
    known: &FxHashMap<Node, Option<u32>>,
    is_velocity: &dyn Fn(Input) -> bool,
) -> Option<u32> {
    let of = |a: Node| known[&a];
    match g.expression(node) {
        Expression::Input(input) => Some(u32::from(is_velocity(input))),
        Expression::Binary(Binary::Add | Binary::Sub, a, b) => Some(of(a)?.max(of(b)?)),
        Expression::Binary(Binary::Mul, a, b) => Some(of(a)? + of(b)?),
        Expression::Binary(Binary::Div, a, b) if of(b) == Some(0) => of(a),
        Expression::Unary(Unary::Neg, a) => of(a),
        Expression::Select(c, a, b) if of(c) == Some(0) => Some(of(a)?.max(of(b)?)),
        other => other.arguments().all(|a| of(a) == Some(0)).then_some(0),
    }
}
