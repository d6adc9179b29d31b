//! The coupled velocities of one form, eliminated.

use super::blocks::Form;
use super::elimination::{Eliminated, Elimination, Entry, SINGULAR, units};
use super::terms::VelocityTerm;
use super::{Lagrangian, Legendre};
use crate::functional::{Source, Stretches, Template, Term};
use crate::graph::interpret::Interpreter;
use crate::graph::{Expression, Graph, Input, Node};
use crate::points::Points;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use std::collections::BTreeMap;

/// Number of random points at which a rank is found again.
const POINTS: usize = 4;

/// Sum of the terms of a form, as a polynomial in the velocities.
struct Sum {
    graph: Graph,
    spans: Vec<Span>,
    /// Value where the velocities are 0.
    rest: Node,
    /// Momenta less the linear coefficients.
    z: Vec<Node>,
    /// Entries of M, each pair of equal ones once.
    masses: BTreeMap<(usize, usize), Node>,
}

impl Sum {
    fn new(form: &Form, terms: &[VelocityTerm], of: &Lagrangian) -> Result<Sum, Diagnostic> {
        let mut graph = Graph::new();
        let (mut spans, mut rest) = (Vec::new(), graph.zero());
        let momentum = |&k: &u32| graph.input(Input::Slot(k));
        let mut z: Vec<Node> = form.velocities.iter().map(momentum).collect();
        let mut masses: BTreeMap<(usize, usize), Node> = BTreeMap::new();
        let mut numbers = vec![usize::MAX; form.sources.len()];
        for (number, &slot) in form.velocities.iter().enumerate() {
            numbers[slot as usize] = number;
        }
        for (term, slots) in &form.rows {
            let (term, velocity) = (&terms[*term], |k: u32| numbers[slots[k as usize] as usize]);
            let g = &mut graph;
            let [own, linear, entries] = term.copy_to((g, &mut spans), slots, of.span);
            rest = g.add(rest, own[0]);
            for (&(slot, _), a) in term.linear.iter().zip(linear) {
                let z = &mut z[velocity(slot)];
                *z = g.sub(*z, a);
            }
            for (&(a, b, _), mass) in term.masses.iter().zip(entries) {
                let (i, j) = (velocity(a), velocity(b));
                // Two slots of a row that read one velocity: the entry and its twin are one.
                let mass = if a != b && i == j { g.add(mass, mass) } else { mass };
                let zero = g.zero();
                let entry = masses.entry((i.max(j), i.min(j))).or_insert(zero);
                *entry = g.add(*entry, mass);
            }
            if g.len() > of.largest {
                return Err(too_large(of, form));
            }
        }
        masses.retain(|_, &mut mass| !graph.is_zero(mass));
        Ok(Sum { graph, spans, rest, z, masses })
    }

    /// True for the nodes that move along the motion.
    fn moves(&self, sources: &[Source]) -> Vec<bool> {
        let mut moves: Vec<bool> = Vec::with_capacity(self.graph.len());
        for node in (0..self.graph.len() as u32).map(Node) {
            moves.push(match self.graph.expression(node) {
                Expression::Input(Input::Slot(k)) => sources[k as usize] == Source::State,
                Expression::Input(_) => true,
                operation => operation.arguments().any(|a| moves[a.index()]),
            });
        }
        moves
    }
}

/// Mass matrix of a form, eliminated with the pivots that one of its blocks has at the start.
pub(super) struct System {
    graph: Graph,
    spans: Vec<Span>,
    rest: Node,
    masses: Vec<((usize, usize), Node)>,
    eliminated: Eliminated,
}

impl System {
    /// The elimination for block `first` of a form.
    ///
    /// # Errors
    /// If it takes too many nodes.
    pub(super) fn new(
        of: &Lagrangian,
        terms: &[VelocityTerm],
        form: &Form,
        first: usize,
    ) -> Result<System, Diagnostic> {
        let sum = Sum::new(form, terms, of)?;
        let moves = sum.moves(&form.sources);
        let Sum { mut graph, spans, rest, z, masses } = sum;
        let masses: Vec<_> = masses.into_iter().collect();
        let nodes: Vec<Node> = masses.iter().map(|&(_, node)| node).collect();
        let values = Values::new(&graph, &nodes, form, of).at(first, of.initial, 0.0);
        let entry = |(&((i, j), node), value): (&((usize, usize), Node), f64)| {
            (i, j, Entry { node, value, moves: moves[node.index()] })
        };
        let entries: Vec<_> = masses.iter().zip(values).map(entry).collect();
        let eliminated = Elimination::new(&mut graph, z, &entries).run(of.largest);
        let eliminated = eliminated.ok_or_else(|| too_large(of, form))?;
        Ok(System { graph, spans, rest, masses, eliminated })
    }

    /// Those blocks among `pending` that have the same pivots at the start, and the others.
    pub(super) fn alike(
        &self,
        of: &Lagrangian,
        form: &Form,
        pending: Vec<usize>,
    ) -> (Vec<usize>, Vec<usize>) {
        let own = pending[0];
        let nodes = self.eliminated.pivots.iter().map(|(node, _)| *node);
        let mut values = Values::new(&self.graph, &self.tested(nodes), form, of);
        let regular = |&block: &usize| {
            let values = values.at(block, of.initial, 0.0);
            let (units, pivots) = self.units(form, &values);
            let size = |(_, of): &(Node, Vec<usize>)| of.iter().map(|&k| units[k]).product::<f64>();
            let mut tested = self.eliminated.pivots.iter().zip(pivots);
            block == own || tested.all(|(pivot, value)| value.abs() > SINGULAR * size(pivot))
        };
        pending.into_iter().partition(regular)
    }

    /// Refuses blocks whose velocities without a pivot have masses elsewhere.
    ///
    /// # Errors
    /// If there is such a block.
    pub(super) fn demand_constant_rank(
        &self,
        of: &Lagrangian,
        form: &Form,
        blocks: &[usize],
    ) -> Result<(), Diagnostic> {
        let left = &self.eliminated.left;
        if left.is_empty() {
            return Ok(());
        }
        let nodes = self.tested(left.iter().map(|&(node, _)| node));
        let mut values = Values::new(&self.graph, &nodes, form, of);
        let (mut points, positions) = (Points::new(0x1e9e), &of.initial[..of.degrees]);
        let most = positions.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        let unit = if most > 0.0 { most } else { 1.0 };
        for _ in 0..POINTS {
            let mut moved = |x: &f64| x + (x.abs() + unit) * points.draw() / 3.0;
            let x: Vec<f64> = of.initial.iter().map(&mut moved).collect();
            let t = points.draw();
            for &block in blocks {
                let values = values.at(block, &x, t);
                let (units, rest) = self.units(form, &values);
                let vanishes = |(&(_, [i, j]), value): (&(Node, [usize; 2]), &f64)| {
                    // Not a number: outside the domain of L, which says nothing.
                    value.is_nan() || value.abs() <= SINGULAR * units[i] * units[j]
                };
                if !left.iter().zip(rest).all(vanishes) {
                    let message = "the mass matrix of the Lagrangian is singular at the start only";
                    return Err(Diagnostic::error(message, of.span, "of higher rank elsewhere")
                        .help("begin elsewhere, or use coordinates that are regular there"));
                }
            }
        }
        Ok(())
    }

    /// The masses, then other nodes.
    fn tested(&self, nodes: impl Iterator<Item = Node>) -> Vec<Node> {
        self.masses.iter().map(|&(_, node)| node).chain(nodes).collect()
    }

    /// Units of the velocities, from the values of the masses, and the values behind these.
    fn units<'v>(&self, form: &Form, values: &'v [f64]) -> (Vec<f64>, &'v [f64]) {
        let (masses, rest) = values.split_at(self.masses.len());
        let entry = |(&((i, j), _), &value): (&((usize, usize), Node), &f64)| (i, j, value);
        let entries: Vec<_> = self.masses.iter().zip(masses).map(entry).collect();
        (units(form.velocities.len(), &entries), rest)
    }

    /// Adds H and the primary constraints of some blocks.
    pub(super) fn add_to(
        mut self,
        to: &mut Legendre,
        form: &Form,
        blocks: &[usize],
        degrees: usize,
    ) {
        let hamiltonian = self.graph.sub(self.eliminated.kinetic, self.rest);
        let table = table(form, blocks);
        let term = |graph: &Graph, root, table| Term {
            graph: graph.clone(),
            roots: vec![root],
            slots: form.sources.clone(),
            table,
            numbers: form.numbers.clone(),
            pairs: None,
            spans: self.spans.clone().into(),
        };
        for &k in &self.eliminated.without {
            let slot = form.velocities[k] as usize;
            for &block in blocks {
                to.constrained[form.blocks[block][slot] as usize - degrees] = true;
            }
            let table = table.clone().with_last_of(slot, degrees as u32);
            to.primary.terms.push(term(&self.graph, self.eliminated.z[k], table));
        }
        to.hamiltonian.terms.push(term(&self.graph, hamiltonian, table));
    }
}

/// Table with a row for each of some blocks, and the output 0.
fn table(form: &Form, blocks: &[usize]) -> Stretches {
    let mut table = Stretches::new(form.sources.len() + 1);
    let mut row = Vec::with_capacity(form.sources.len() + 1);
    for &block in blocks {
        row.clear();
        row.extend_from_slice(&form.blocks[block]);
        row.push(0);
        table.push(&row);
    }
    table
}

/// Values of nodes for the blocks of a form.
struct Values<'a> {
    template: Template,
    term: Term,
    parameters: &'a [f64],
    work: Vec<f64>,
}

impl<'a> Values<'a> {
    fn new(graph: &Graph, nodes: &[Node], form: &Form, of: &Lagrangian<'a>) -> Values<'a> {
        let template = Template::new(graph, nodes, form.sources.len(), &Interpreter);
        let all: Vec<usize> = (0..form.blocks.len()).collect();
        let term = Term {
            graph: Graph::new(),
            roots: Vec::new(),
            slots: form.sources.clone(),
            table: table(form, &all),
            numbers: form.numbers.clone(),
            pairs: None,
            spans: Vec::new().into(),
        };
        Values { work: vec![0.0; template.work_len()], template, term, parameters: of.parameters }
    }

    /// Values for a block at (t, x).
    fn at(&mut self, block: usize, x: &[f64], t: f64) -> Vec<f64> {
        let row = self.term.row(block);
        self.template.row(&self.term, row, t, x, self.parameters, &mut self.work).to_vec()
    }
}

fn too_large(of: &Lagrangian, form: &Form) -> Diagnostic {
    let message = format!(
        "this Lagrangian couples {} velocities, and to solve for them takes more than {} operations",
        form.velocities.len(),
        of.largest
    );
    Diagnostic::error(message, of.span, "too large")
        .help("in Cartesian coordinates with constraints the mass matrix has no such couplings")
}
