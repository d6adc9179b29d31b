//! Bodies without mass: the limit of the motion where some masses vanish.
//!
//! With m = ε for these masses and p = ε w for the momenta over them, H = H₀ + ε H₁ + O(ε²). The
//! bodies with mass move by H₀. Those without mass, *test bodies*, move by H₁(q, w, t) in the field
//! of the others: w is their velocity and stands in the place of their momentum. H is the sum of H₀
//! and of those terms of H₁ that read nothing of the others; what the other terms do to a test body
//! is a force, so that it does not act back.
//!
//! Formulas keep their meaning: a momentum over the mass is the velocity, and an energy or a sum of
//! momenta takes nothing from a test body.

mod expansion;

use crate::functional::{Entries, Functional, Source, Stretches, Term};
use crate::graph::op::{Binary, Unary};
use crate::graph::{Expression, Graph, Input, Node};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use expansion::{Scaled, Series, expand};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Help where a body cannot be without mass.
const REMEDY: &str = "give it a mass that is small beside the others";

/// The bodies without mass.
#[derive(Clone, Debug)]
pub struct TestBodies {
    /// Number of positions.
    degrees: usize,
    /// Places of the masses among the parameters.
    masses: FxHashSet<u32>,
    /// Name of the first of them.
    name: String,
    /// True for the positions that are theirs.
    positions: Vec<bool>,
}

/// Motion of all bodies.
pub struct Motion {
    /// H, in which a test body has the mass 1.
    pub hamiltonian: Functional,
    /// What the other bodies do to test bodies, if anything.
    pub field: Option<Functional>,
    /// Energy of the bodies with mass.
    pub energy: Functional,
}

/// Rows of a term of which the same slots and outputs belong to test bodies.
struct Rows {
    slots: Vec<Option<Scaled>>,
    /// For each root, the class of its output.
    classes: Vec<bool>,
    table: Stretches,
}

/// Map of a root in some rows, whose output has a class, in its graph.
type MapRoot<'a> = dyn FnMut(&mut Graph, Node, &Rows, bool) -> Result<Node, Diagnostic> + 'a;

impl Rows {
    /// True if no slot belongs to test bodies.
    fn is_plain(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }
}

/// Series of a root, with momenta scaled or as they are.
fn series(g: &mut Graph, root: Node, rows: &Rows, with_momenta: bool) -> Option<Series> {
    let scaled = |input| match input {
        Input::Slot(k) => {
            rows.slots[k as usize].filter(|&scaled| with_momenta || scaled == Scaled::Small)
        }
        _ => None,
    };
    expand(g, root, scaled)
}

impl TestBodies {
    /// The bodies whose momenta H divides by a parameter that is 0; `None` if there are none.
    /// `name` tells the name of a parameter value.
    pub fn find(
        h: &Functional,
        degrees: usize,
        (values, name): (&[f64], &dyn Fn(usize) -> String),
    ) -> Option<TestBodies> {
        let over = |term: &Term, mass| {
            let (graph, series) = by_slot(term, mass);
            match series.and_then(|series| series.leading()) {
                Some((first, node)) if first < 0 => slots(&graph, node, term, Source::State),
                _ => Vec::new(),
            }
        };
        TestBodies::new(degrees, &moved_by_nothing(h, degrees, values, over), name)
    }

    /// The bodies of a Lagrangian that stand only in terms that vanish with a parameter that is 0,
    /// and that no constraint ties to others: these determine where a link without mass is. `None`
    /// if there are none. Velocities stand in the places of the momenta.
    pub fn of_lagrangian(
        (l, constraints): (&Functional, &[&Functional]),
        degrees: usize,
        (values, name): (&[f64], &dyn Fn(usize) -> String),
    ) -> Option<TestBodies> {
        let vanishing = |term: &Term, mass| {
            let (mut graph, series) = by_slot(term, mass);
            let Some(own) = series.and_then(|series| series.coefficient(&mut graph, 0)) else {
                return Vec::new();
            };
            let left = slots(&graph, own, term, Source::State);
            let mut all = slots(&graph, term.roots[0], term, Source::State);
            all.retain(|slot| !left.contains(slot));
            all
        };
        let mut moved = moved_by_nothing(l, degrees, values, vanishing);
        loop {
            let found = TestBodies::new(degrees, &moved, name)?;
            let mut held = found.held(l);
            for constraint in constraints {
                let ties = found.ties(constraint);
                let tied = (0..ties.len()).filter(|&output| ties[output]);
                let read = tied.flat_map(|output| constraint.reads(output));
                let own = read.filter(|&component| found.owns(component));
                held.extend(own.map(|component| component as usize % degrees));
            }
            if held.is_empty() {
                return Some(found);
            }
            moved.retain(|_, positions| positions.is_disjoint(&held));
        }
    }

    fn new(
        degrees: usize,
        moved: &BTreeMap<u32, BTreeSet<usize>>,
        name: &dyn Fn(usize) -> String,
    ) -> Option<TestBodies> {
        let name = name(*moved.keys().next()? as usize);
        let mut positions = vec![false; degrees];
        moved.values().flatten().for_each(|&position| positions[position] = true);
        Some(TestBodies { degrees, masses: moved.keys().copied().collect(), name, positions })
    }

    /// Positions of test bodies on which a Lagrangian depends without their masses.
    fn held(&self, l: &Functional) -> BTreeSet<usize> {
        let mut held = BTreeSet::new();
        for term in &l.terms {
            for rows in self.rows(term, &|_| false) {
                let mut graph = term.graph.clone();
                let series = series(&mut graph, term.roots[0], &rows, false);
                let own = series.and_then(|series| series.coefficient(&mut graph, 0));
                let read = slots(&graph, own.unwrap_or(term.roots[0]), term, Source::State);
                for row in rows.table.each() {
                    let entries = read.iter().map(|&k| row.at(k)).filter(|&c| self.owns(c));
                    held.extend(entries.map(|component| component as usize % self.degrees));
                }
            }
        }
        held
    }

    /// Places of the masses among the parameters.
    pub fn masses(&self) -> impl Iterator<Item = usize> {
        self.masses.iter().map(|&place| place as usize)
    }

    /// Name of the first mass.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True for the positions of test bodies.
    pub fn positions(&self) -> &[bool] {
        &self.positions
    }

    fn is_momentum(&self, component: u32) -> bool {
        (self.degrees..2 * self.degrees).contains(&(component as usize))
    }

    /// True for a component of the state that is a position or the momentum of a test body.
    pub fn owns(&self, component: u32) -> bool {
        let component = component as usize;
        component < 2 * self.degrees && self.positions[component % self.degrees]
    }

    /// The motion by H.
    ///
    /// # Errors
    /// If a term acts on a test body with a force that does not vanish with its mass, or couples
    /// its momentum to other bodies.
    pub fn motion(&self, h: &Functional, span: Span) -> Result<Motion, Diagnostic> {
        let single = || Functional { outputs: 1, terms: Vec::new() };
        let (mut hamiltonian, mut energy) = (single(), single());
        let mut field = Functional { outputs: self.degrees, terms: Vec::new() };
        for term in &h.terms {
            let root = term.roots[0];
            let place = term.spans.get(root.index()).copied().unwrap_or(span);
            if term.pairs.is_some() && self.concern(term) {
                let message = format!(
                    "a sum over near pairs does not take bodies without mass, as {} is 0",
                    self.name
                );
                return Err(Diagnostic::error(message, place, "reads them").help(REMEDY));
            }
            for rows in self.rows(term, &|_| false) {
                let mut graph = term.graph.clone();
                let series = series(&mut graph, root, &rows, true);
                let series = series.filter(Series::is_bounded);
                let strong = || self.too_strong("this", place);
                let series = series.ok_or_else(strong)?;
                let own = series.coefficient(&mut graph, 0).ok_or_else(strong)?;
                let small = series.coefficient(&mut graph, 1).ok_or_else(strong)?;
                let part = |graph: &Graph, root: Node, table: Stretches| Term {
                    graph: graph.clone(),
                    roots: vec![root],
                    table,
                    ..term.clone()
                };
                if !graph.is_zero(own) {
                    if rows.table.each().any(|row| self.reads_own(&graph, own, term, row)) {
                        return Err(strong());
                    }
                    let part = part(&graph, own, rows.table.clone());
                    energy.terms.push(part.clone());
                    hamiltonian.terms.push(part);
                }
                for small in addends(&mut graph, small) {
                    let (alone, beside) = self.divided(&graph, small, term, &rows.table);
                    if alone.rows() > 0 {
                        hamiltonian.terms.push(part(&graph, small, alone));
                    }
                    if beside.rows() > 0 {
                        let pulls = self.pulls(part(&graph, small, beside));
                        field.terms.extend(pulls.ok_or_else(|| self.coupled(place))?);
                    }
                }
            }
        }
        let field = (!field.terms.is_empty()).then_some(field);
        Ok(Motion { hamiltonian, field, energy })
    }

    /// A force in the limit: on a test body, what acts on it in relation to its mass.
    ///
    /// # Errors
    /// If that is infinite.
    pub fn force(&self, force: &Functional, what: (&str, Span)) -> Result<Functional, Diagnostic> {
        self.related(force, true, what)
    }

    /// The momenta of a Lagrangian, with velocities in their places; of test bodies they are these.
    ///
    /// # Errors
    /// As [`TestBodies::motion`].
    pub fn momenta(&self, momenta: &Functional, span: Span) -> Result<Functional, Diagnostic> {
        self.related(momenta, false, ("this", span))
    }

    /// Outputs for all positions, those of test bodies in relation to their masses.
    fn related(
        &self,
        functional: &Functional,
        with_momenta: bool,
        (what, span): (&str, Span),
    ) -> Result<Functional, Diagnostic> {
        let acts = |output: usize| self.positions[output];
        self.mapped(functional, &acts, &mut |g, root, rows, acts| {
            let order = i32::from(acts);
            let series = series(g, root, rows, with_momenta).filter(|s| s.begins_at(order));
            series
                .and_then(|series| series.coefficient(g, order))
                .ok_or_else(|| self.too_strong(what, span))
        })
    }

    /// A formula in the limit. Where it reads momenta of other bodies too, those of test bodies
    /// carry nothing; elsewhere they are velocities, unless the formula divides by their mass.
    pub fn quantity(&self, functional: &Functional) -> Functional {
        let is_others = |source, component| {
            source == Source::State && self.is_momentum(component) && !self.owns(component)
        };
        let carried = functional.reads_marked(is_others);
        let limit =
            self.mapped(functional, &|output| carried[output], &mut |g, root, rows, carried| {
                let mut of = |with_momenta| {
                    let series = series(g, root, rows, with_momenta).filter(Series::is_bounded);
                    series.and_then(|series| series.coefficient(g, 0))
                };
                let limit = if carried { of(true) } else { of(false).or_else(|| of(true)) };
                // What has no limit is found where the start is checked.
                Ok(limit.unwrap_or(root))
            });
        limit.unwrap_or_else(|_: Diagnostic| functional.clone())
    }

    /// True for each output that reads test bodies and others.
    fn ties(&self, functional: &Functional) -> Vec<bool> {
        let own =
            functional.reads_marked(|source, entry| source == Source::State && self.owns(entry));
        let others = functional.reads_marked(|source, entry| {
            let moves = (entry as usize) < 2 * self.degrees;
            source == Source::State && moves && !self.owns(entry)
        });
        own.iter().zip(&others).map(|(&own, &others)| own && others).collect()
    }

    /// Refuses a condition that ties test bodies to others.
    ///
    /// # Errors
    /// If an output of `functional` reads both.
    pub fn demand_apart(
        &self,
        functional: &Functional,
        (what, span): (&str, Span),
    ) -> Result<(), Diagnostic> {
        if self.ties(functional).contains(&true) {
            let message =
                format!("{what} ties a body without mass to others, as {} is 0", self.name);
            return Err(Diagnostic::error(message, span, "moves both").help(
                "write a Lagrangian, in which constraints determine links without mass, or give it a mass that is small beside the others",
            ));
        }
        Ok(())
    }

    /// The functional with each root that concerns test bodies mapped. `class` tells outputs apart.
    fn mapped(
        &self,
        functional: &Functional,
        class: &dyn Fn(usize) -> bool,
        map: &mut MapRoot,
    ) -> Result<Functional, Diagnostic> {
        let mut terms = Vec::with_capacity(functional.terms.len());
        for term in &functional.terms {
            for rows in self.rows(term, class) {
                let mut graph = term.graph.clone();
                let mut roots = term.roots.clone();
                for (root, &class) in roots.iter_mut().zip(&rows.classes) {
                    if class || !rows.is_plain() {
                        *root = map(&mut graph, *root, &rows, class)?;
                    }
                }
                terms.push(Term { graph, roots, table: rows.table, ..term.clone() });
            }
        }
        Ok(Functional { outputs: functional.outputs, terms })
    }

    /// The rows of a term, divided.
    fn rows(&self, term: &Term, class: &dyn Fn(usize) -> bool) -> Vec<Rows> {
        let mut divided: BTreeMap<(Vec<Option<Scaled>>, Vec<bool>), Stretches> = BTreeMap::new();
        let of_slot = |source: &Source, entry: u32| match source {
            Source::Parameter if self.masses.contains(&entry) => Some(Scaled::Small),
            Source::State if self.is_momentum(entry) && self.owns(entry) => Some(Scaled::Multiple),
            _ => None,
        };
        if term.pairs.is_some() {
            let (slots, classes) = (vec![None; term.slots.len()], vec![false; term.roots.len()]);
            return vec![Rows { slots, classes, table: term.table.clone() }];
        }
        for row in term.table.each() {
            let slots = term.slots.iter().zip(row.iter()).map(|(s, entry)| of_slot(s, entry));
            let first = row.last() as usize;
            let classes = (first..first + term.roots.len()).map(class);
            let table = divided.entry((slots.collect(), classes.collect()));
            let table = table.or_insert_with(|| Stretches::new(term.table.width()));
            table.push(&row.iter().collect::<Vec<u32>>());
        }
        let rows = |((slots, classes), table)| Rows { slots, classes, table };
        divided.into_iter().map(rows).collect()
    }

    /// True if a row of a term reads a test body or its mass.
    fn concern(&self, term: &Term) -> bool {
        let concerns = |(source, entry): (&Source, u32)| match source {
            Source::Parameter => self.masses.contains(&entry),
            Source::State => self.owns(entry),
            Source::Number => false,
        };
        term.table.each().any(|row| term.slots.iter().zip(row.iter()).any(concerns))
    }

    /// True if a node reads a test body in a row.
    fn reads_own(&self, graph: &Graph, node: Node, term: &Term, row: Entries) -> bool {
        slots(graph, node, term, Source::State).iter().any(|&k| self.owns(row.at(k)))
    }

    /// Rows in which a node reads test bodies alone, and the others.
    fn divided(
        &self,
        graph: &Graph,
        node: Node,
        term: &Term,
        table: &Stretches,
    ) -> (Stretches, Stretches) {
        let read = slots(graph, node, term, Source::State);
        let [mut alone, mut beside] = [0; 2].map(|_| Stretches::new(table.width()));
        for row in table.each() {
            let is_alone = read.iter().all(|&k| self.owns(row.at(k)));
            let rows = if is_alone { &mut alone } else { &mut beside };
            rows.push(&row.iter().collect::<Vec<u32>>());
        }
        (alone, beside)
    }

    /// Forces −∂f/∂q on test bodies, f the term; `None` if it reads momenta.
    fn pulls(&self, mut term: Term) -> Option<Vec<Term>> {
        let read = slots(&term.graph, term.roots[0], &term, Source::State);
        // Slots of neighbouring components, such as those of a vector, make one term.
        let mut runs: BTreeMap<Vec<usize>, Stretches> = BTreeMap::new();
        for row in term.table.each() {
            if read.iter().any(|&k| self.is_momentum(row.at(k))) {
                return None;
            }
            let mut own: Vec<usize> =
                read.iter().copied().filter(|&k| self.owns(row.at(k))).collect();
            own.sort_unstable_by_key(|&k| row.at(k));
            for run in own.chunk_by(|&a, &b| row.at(a) + 1 == row.at(b)) {
                let table = runs.entry(run.to_vec());
                let table = table.or_insert_with(|| Stretches::new(term.table.width()));
                let entries = row.iter().take(term.slots.len()).chain([row.at(run[0])]);
                table.push(&entries.collect::<Vec<u32>>());
            }
        }
        let root = term.roots[0];
        let gradient = term.graph.adjoint(root, |input| matches!(input, Input::Slot(_)));
        let mut negated = |slot: usize| {
            let of = |&(input, d): &(Input, Node)| (input == Input::Slot(slot as u32)).then_some(d);
            match gradient.iter().find_map(of) {
                Some(d) => term.graph.neg(d),
                None => term.graph.zero(),
            }
        };
        let with_roots: Vec<(Vec<Node>, Stretches)> = runs
            .into_iter()
            .map(|(run, table)| (run.into_iter().map(&mut negated).collect(), table))
            .collect();
        let pull = |(roots, table)| Term { roots, table, ..term.clone() };
        Some(with_roots.into_iter().map(pull).collect())
    }

    fn too_strong(&self, what: &str, span: Span) -> Diagnostic {
        let message = format!(
            "{what} acts on a body without mass with a force that does not vanish with its mass, as {} is 0",
            self.name
        );
        Diagnostic::error(message, span, "the acceleration would be infinite").help(REMEDY)
    }

    fn coupled(&self, span: Span) -> Diagnostic {
        let message = format!(
            "this couples the momentum of a body without mass to other bodies, as {} is 0",
            self.name
        );
        Diagnostic::error(message, span, "no body by itself").help(REMEDY)
    }
}

/// The nodes whose sum a node is.
fn addends(graph: &mut Graph, node: Node) -> Vec<Node> {
    let (mut found, mut pending) = (Vec::new(), vec![(node, false)]);
    while let Some((node, negative)) = pending.pop() {
        match graph.expression(node) {
            Expression::Binary(Binary::Add, a, b) => {
                pending.extend([(b, negative), (a, negative)]);
            }
            Expression::Binary(Binary::Sub, a, b) => {
                pending.extend([(b, !negative), (a, negative)]);
            }
            Expression::Unary(Unary::Neg, a) => pending.push((a, !negative)),
            _ if graph.is_zero(node) => {}
            _ => found.push(if negative { graph.neg(node) } else { node }),
        }
    }
    found
}

/// Slots of one kind that a node reads.
fn slots(graph: &Graph, node: Node, term: &Term, kind: Source) -> Vec<usize> {
    let slot = |node: Node| match graph.expression(node) {
        Expression::Input(Input::Slot(k)) if term.slots[k as usize] == kind => Some(k as usize),
        _ => None,
    };
    graph.reachable(&[node]).into_iter().filter_map(slot).collect()
}

/// Series of a term in one of its slots.
fn by_slot(term: &Term, slot: usize) -> (Graph, Option<Series>) {
    let mut graph = term.graph.clone();
    let small = |input| (input == Input::Slot(slot as u32)).then_some(Scaled::Small);
    let series = expand(&mut graph, term.roots[0], small);
    (graph, series)
}

/// For each parameter that is 0, the positions with a momentum in a slot that `of_slot` tells for
/// the parameter's slot in a term.
fn moved_by_nothing(
    functional: &Functional,
    degrees: usize,
    values: &[f64],
    of_slot: impl Fn(&Term, usize) -> Vec<usize>,
) -> BTreeMap<u32, BTreeSet<usize>> {
    let mut moved: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    if !values.contains(&0.0) {
        return moved;
    }
    for term in functional.terms.iter().filter(|term| term.pairs.is_none()) {
        let mut known: Vec<Option<Vec<usize>>> = vec![None; term.slots.len()];
        let masses = (0..term.slots.len()).filter(|&k| term.slots[k] == Source::Parameter);
        for mass in masses {
            for row in term.table.each().filter(|row| values[row.at(mass) as usize] == 0.0) {
                let slots = known[mass].get_or_insert_with(|| of_slot(term, mass));
                let components = slots.iter().map(|&k| row.at(k) as usize);
                let momenta = components.filter(|c| (degrees..2 * degrees).contains(c));
                let positions: Vec<usize> = momenta.map(|component| component - degrees).collect();
                if !positions.is_empty() {
                    moved.entry(row.at(mass)).or_default().extend(positions);
                }
            }
        }
    }
    moved
}
