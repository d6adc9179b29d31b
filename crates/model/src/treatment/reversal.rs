//! Reversal of time: a run backwards in time is a run forwards of the reversed model.
//!
//! With the time s = −t and the momenta P = −p, H̃(q, P, s) = H(q, −P, −s) has the motion of H
//! backwards: dq/ds = −H_p = H̃_P, dP/ds = p' = −H_q = −H̃_q. The kinetic energy, constraints on
//! positions, their multipliers and accelerations stay as they are, and forces Q(q, q', p, t) become
//! Q(q, −q', −P, −s). So every method that takes the model takes the reversed one, and a step of it
//! is the step −h of the model. For a vector field the reversed one is −X(x, −s).

use crate::elaborate::model::{
    Drawing, Dynamics, Event, Force, Massless, Measured, Model, Quantity, Redundancy, Rolling,
};
use crate::functional::{Functional, Source, Stretches, Term};
use crate::graph::{Graph, Input, Node};
use crate::poisson::{Block, Poisson};
use crate::syntax::span::Span;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The model backwards in time. The formulas of its [`Start`](crate::elaborate::model::start::Start)
/// stay those of the model; [`Model::turn`] turns their states.
pub fn reversed(model: &Model) -> Model {
    let velocities = model.following().velocities;
    let odd = [model.momenta(), velocities..velocities + model.degrees()];
    let turned = |functional: &Functional| turned(functional, &odd, false);
    let quantity = |quantity: &Quantity| Quantity {
        functional: turned(&quantity.functional),
        ..quantity.clone()
    };
    let quantities = |list: &[Quantity]| list.iter().map(quantity).collect();
    let force = |force: &Force| Force { functional: turned(&force.functional), ..force.clone() };
    // Negated, A stays as it is, and so do its multipliers.
    let rolling = |rolling: &Rolling| Rolling {
        functional: self::turned(&rolling.functional, &odd, true),
        ..rolling.clone()
    };
    let redundancy = |of: &Arc<Redundancy>| {
        Arc::new(Redundancy { stated: quantities(&of.stated), ..Redundancy::clone(of) })
    };
    let measure =
        |measure: &Measured| Measured { quantity: quantity(&measure.quantity), ..measure.clone() };
    // What rises along the motion falls along the reversed one. Those that set the state are refused.
    let event = |event: &Event| Event {
        quantity: quantity(&event.quantity),
        direction: -event.direction,
        ..event.clone()
    };
    let drawing = |drawing: &Drawing| {
        let mut drawing = drawing.clone();
        drawing.quantities_mut().for_each(|of| *of = quantity(of));
        drawing
    };
    let massless = |of: &Arc<Massless>| {
        Arc::new(Massless { energy: of.energy.as_ref().map(turned), ..Massless::clone(of) })
    };
    let mut reversed = Model {
        reversed: true,
        t0: 0.0 - model.t0,
        dynamics: match &model.dynamics {
            Dynamics::Hamiltonian(h, span) => Dynamics::Hamiltonian(turned(h), *span),
            Dynamics::Field(field) => Dynamics::Field(self::turned(field, &odd, true)),
        },
        poisson: model.poisson.as_ref().map(|poisson| Arc::new(reversed_poisson(poisson))),
        forces: model.forces.iter().map(force).collect(),
        redundancy: model.redundancy.as_ref().map(redundancy),
        massless: model.massless.as_ref().map(massless),
        stiff: model.stiff.as_ref().map(turned),
        constraints: quantities(&model.constraints),
        rollings: model.rollings.iter().map(rolling).collect(),
        integrals: quantities(&model.integrals),
        observables: quantities(&model.observables),
        measures: model.measures.iter().map(measure).collect(),
        events: model.events.iter().map(event).collect(),
        drawings: model.drawings.iter().map(drawing).collect(),
        ..model.clone()
    };
    model.turn_momenta(&mut reversed.initial, 1);
    reversed
}

impl Model {
    /// Places of the momenta in the state; empty for a vector field.
    fn momenta(&self) -> Range<usize> {
        self.degrees()..2 * self.degrees()
    }

    /// Changes the sign of the momenta in the states of so many lanes.
    pub fn turn_momenta(&self, x: &mut [f64], lanes: usize) {
        let momenta = self.momenta();
        // 0 stays 0, without a sign.
        x[momenta.start * lanes..momenta.end * lanes].iter_mut().for_each(|p| *p = 0.0 - *p);
    }

    /// Turns a state of the model as it was written into one of the model as it is run, or back:
    /// the momenta change their sign if time is reversed.
    pub fn turn(&self, x: &mut [f64]) {
        if self.reversed {
            self.turn_momenta(x, 1);
        }
    }

    /// Turns a time of the model as it was written into one of the model as it is run, or back.
    pub fn clock(&self, t: f64) -> f64 {
        if self.reversed { 0.0 - t } else { t }
    }

    /// The momenta of a reversed model as they were written, as functions of the state.
    pub fn written_momentum(&self, place: Range<usize>) -> Functional {
        let mut momenta = Functional::components(place, Span::default());
        for term in &mut momenta.terms {
            term.roots = term.roots.iter().map(|&root| term.graph.neg(root)).collect();
        }
        momenta
    }
}

/// A Poisson system backwards in time: H(x, −s) with the matrix −J.
fn reversed_poisson(poisson: &Poisson) -> Poisson {
    let block = |block: &Block| Block { matrix: turned(&block.matrix, &[], true), ..block.clone() };
    Poisson {
        hamiltonian: turned(&poisson.hamiltonian, &[], false),
        blocks: poisson.blocks.iter().map(block).collect(),
        ..poisson.clone()
    }
}

/// A formula with the opposite time and opposite inputs at the `odd` places, negated if `negated`.
fn turned(functional: &Functional, odd: &[Range<usize>], negated: bool) -> Functional {
    let terms = functional.terms.iter().flat_map(|term| turned_term(term, odd, negated));
    Functional { outputs: functional.outputs, terms: terms.collect() }
}

/// The terms of a turned term: rows with other slots that read opposite inputs have a formula of
/// their own.
fn turned_term(term: &Term, odd: &[Range<usize>], negated: bool) -> Vec<Term> {
    let is_odd = |k: usize, entry: u32| {
        let is_in = |range: &Range<usize>| range.contains(&(entry as usize));
        term.slots[k] == Source::State && odd.iter().any(is_in)
    };
    let mut kinds: BTreeMap<Vec<bool>, Stretches> = BTreeMap::new();
    for stretch in term.table.iter() {
        let row = stretch.row(0);
        let kind = (0..term.slots.len()).map(|k| is_odd(k, row.at(k))).collect();
        let table = kinds.entry(kind).or_insert_with(|| Stretches::new(term.table.width()));
        let (entries, step): (Vec<u32>, Vec<u32>) = (row.iter().collect(), stretch.step.to_vec());
        table.push_stretch(entries, step, stretch.rows);
    }
    let of_kind = |(kind, table): (Vec<bool>, Stretches)| {
        let mut graph = term.graph.clone();
        let roots = turned_roots(&mut graph, &term.roots, &kind, negated);
        Term { graph, roots, table, ..term.clone() }
    };
    kinds.into_iter().map(of_kind).collect()
}

fn turned_roots(graph: &mut Graph, roots: &[Node], kind: &[bool], negated: bool) -> Vec<Node> {
    let slots = (0..kind.len()).filter(|&k| kind[k]).map(|k| Input::Slot(k as u32));
    let mut replaced = FxHashMap::default();
    for input in slots.chain([Input::Time]) {
        let node = graph.input(input);
        let turned = graph.neg(node);
        replaced.insert(node, turned);
    }
    let mut turned = graph.substituted(roots, &replaced);
    if negated {
        turned.iter_mut().for_each(|root| *root = graph.neg(*root));
    }
    turned
}
