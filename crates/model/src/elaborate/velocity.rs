//! Initial velocities: p(0) = M v(0), with the mass matrix M at the initial positions.

use super::model::start::Velocity;
use super::model::{Dynamics, Model};
use crate::functional::{Source, Template, Term, work_len};
use crate::graph::interpret::{Backend, Interpreter};
use crate::graph::{Expression, Graph, Input, Node};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use holonome_arithmetic::lanes::gather;
use rustc_hash::FxHashMap;

/// Largest number of momenta that the mass matrix may couple to each other: each block is solved as
/// a dense matrix.
const LARGEST_BLOCK: usize = 2_000;

/// Momenta of all velocities, as functions of these.
pub enum Momenta {
    /// Solved for, with a Hamiltonian.
    Solved(SolvedMomenta),
    /// ∂L/∂q', compiled, with a Lagrangian.
    Derived(Vec<Template>),
}

impl Momenta {
    /// Compiles the derivatives of H of `model` for these velocities, or the momenta of its
    /// Lagrangian, for so many states side by side.
    ///
    /// # Errors
    /// If H_pp depends on momenta or on time, or couples too many momenta to each other.
    pub fn new(
        model: &Model,
        velocities: &[Velocity],
        (backend, lanes): (&dyn Backend, usize),
    ) -> Result<Momenta, Diagnostic> {
        Ok(match &model.lagrangian {
            Some(moving) => Momenta::Derived(moving.momenta.templates_in_lanes(backend, lanes)),
            None => Momenta::Solved(SolvedMomenta::new(model, velocities, (backend, lanes))?),
        })
    }

    /// Scratch needed by [`Momenta::put`], in numbers, for states of this length in so many lanes.
    pub fn work_len(&self, dimension: usize, lanes: usize) -> usize {
        match self {
            Momenta::Solved(solved) => solved.work_len(dimension, lanes),
            Momenta::Derived(templates) => dimension * lanes + work_len(templates),
        }
    }

    /// Replaces the velocities that stand in place of momenta by these momenta, in every lane.
    ///
    /// # Errors
    /// A message, if H_pp is singular in one of them.
    pub fn put(
        &self,
        model: &Model,
        (parameters, lanes): (&[f64], usize),
        x: &mut [f64],
        work: &mut [f64],
    ) -> Result<(), &'static str> {
        match (self, &model.lagrangian) {
            (Momenta::Solved(solved), _) => solved.put(model, (parameters, lanes), x, work)?,
            (Momenta::Derived(_), None) => {}
            (Momenta::Derived(templates), Some(moving)) => {
                let n = moving.momenta.outputs * lanes;
                let (p, work) = work.split_at_mut(n);
                moving.momenta.run(templates, model.t0, x, parameters, p, work);
                x[n..2 * n].copy_from_slice(p);
            }
        }
        Ok(())
    }
}

impl Model {
    /// Begins at the time `t0`: the momenta of a Lagrangian follow from the velocities then.
    pub fn begin_at(&mut self, t0: f64) {
        self.t0 = t0;
        let Some(moving) = self.lagrangian.clone() else { return };
        let n = moving.momenta.outputs;
        self.initial[n..2 * n].copy_from_slice(&moving.velocities);
        let p = moving.momenta.evaluate(t0, &self.initial, &self.parameter_values);
        self.initial[n..2 * n].copy_from_slice(&p);
    }
}

/// Momenta that solve H_pp p = v − H_p, with H_p taken where these
/// momenta are 0 and the others have their values. Solved by connected blocks of H_pp, each dense.
pub struct SolvedMomenta {
    /// The components in the state, increasing.
    components: Vec<usize>,
    /// For each term of H its gradient and Hessian over the momenta, compiled.
    terms: Vec<CompiledTerm>,
    /// Number of structurally nonzero entries of H_pp.
    entries: usize,
    blocks: Vec<MassBlock>,
    /// Side of the largest block.
    largest: usize,
}

struct CompiledTerm {
    term: usize,
    template: Template,
    /// Entry of (H_p, H_pp) to which an output is added, for each row and each output, or
    /// [`NOWHERE`].
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

/// Help for velocities that determine no momenta.
const REMEDY: &str = "give the initial momentum instead: `momentum p of q = …`";

/// Numbers of the entries of H_pp by row and column, after those of H_p.
type EntryNumbers = FxHashMap<(u32, u32), u32>;

/// Gradient and Hessian of a template with respect to the slots that read the state.
struct TermDerivatives {
    graph: Graph,
    roots: Vec<Node>,
    /// For each root the slot or the two slots of the derivative.
    slots: Vec<(u32, Option<u32>)>,
    /// For each root the slots that it reads, if that matters: those of a second derivative.
    reads: Vec<Vec<Input>>,
}

impl TermDerivatives {
    fn of(term: &Term) -> TermDerivatives {
        let mut g: Graph = term.graph.clone();
        let is_state = |input| match input {
            Input::Slot(k) => term.slots[k as usize] == Source::State,
            _ => false,
        };
        let moves = |input: &Input| is_state(*input) || *input == Input::Time;
        let (mut roots, mut slots, mut reads) = (Vec::new(), Vec::new(), Vec::new());
        for (a, first) in g.adjoint(term.roots[0], is_state) {
            let Input::Slot(a) = a else { continue };
            roots.push(first);
            slots.push((a, None));
            reads.push(Vec::new());
            for (b, second) in g.adjoint(first, is_state) {
                let Input::Slot(b) = b else { continue };
                let input = |node| match g.expression(node) {
                    Expression::Input(input) => Some(input),
                    _ => None,
                };
                let inputs = g.reachable(&[second]).into_iter().filter_map(input);
                reads.push(inputs.filter(moves).collect());
                roots.push(second);
                slots.push((a, Some(b)));
            }
        }
        TermDerivatives { graph: g, roots, slots, reads }
    }

    /// For each row and each root its place among the entries of (H_p, H_pp); new entries of H_pp
    /// are added to `pattern`.
    ///
    /// # Errors
    /// A component of the state whose entries of H_pp vary with momenta or time.
    fn places(
        &self,
        term: &Term,
        degrees: usize,
        components: &[usize],
        pattern: &mut EntryNumbers,
    ) -> Result<Vec<u32>, usize> {
        let own = |i: u32| components.binary_search(&(i as usize)).ok().map(|k| k as u32);
        let mut places = Vec::with_capacity(term.rows() * self.roots.len());
        for row in term.table.each() {
            // Positions at the start are known, momenta are what is sought.
            let is_unknown = |input: &Input| match input {
                Input::Slot(k) => row.at(*k as usize) as usize >= degrees,
                _ => true,
            };
            for (&(a, b), reads) in self.slots.iter().zip(&self.reads) {
                let (a, b) = (row.at(a as usize), b.map(|b| row.at(b as usize)));
                places.push(match (own(a), b) {
                    (None, _) => NOWHERE,
                    (Some(own), None) => own,
                    // H_pq is not needed.
                    (_, Some(b)) if (b as usize) < degrees => NOWHERE,
                    (Some(_), Some(_)) if reads.iter().any(is_unknown) => return Err(a as usize),
                    (Some(row), Some(b)) => match own(b) {
                        // The terms of given momenta are in H_p.
                        None => NOWHERE,
                        Some(column) => {
                            let next = (components.len() + pattern.len()) as u32;
                            *pattern.entry((row, column)).or_insert(next)
                        }
                    },
                });
            }
        }
        Ok(places)
    }
}

/// Momenta that H_pp couples to each other.
#[derive(Default)]
struct MassBlock {
    members: Vec<usize>,
    /// (row, column, entry of H_pp)
    entries: Vec<(usize, usize, usize)>,
}

impl SolvedMomenta {
    /// Compiles the derivatives of H of `model` for these velocities.
    ///
    /// # Errors
    /// If H_pp depends on momenta or on time, or couples too many momenta to each other.
    fn new(
        model: &Model,
        velocities: &[Velocity],
        in_lanes: (&dyn Backend, usize),
    ) -> Result<SolvedMomenta, Diagnostic> {
        let mut components: Vec<usize> = velocities.iter().flat_map(Velocity::range).collect();
        components.sort_unstable();
        let span = |component: usize| {
            let of = velocities.iter().find(|v| v.range().contains(&component));
            of.map_or(Span::default(), |v| v.span)
        };
        let terms = match &model.dynamics {
            Dynamics::Hamiltonian(h, _) => h.terms.as_slice(),
            Dynamics::Field(_) => &[],
        };
        let mut pattern = FxHashMap::default();
        let mut compiled = Vec::new();
        for (number, term) in terms.iter().enumerate() {
            let formulas = TermDerivatives::of(term);
            let places = formulas.places(term, model.degrees(), &components, &mut pattern);
            let places = places.map_err(|component| {
                let message = "an initial velocity needs a mass matrix of positions only";
                let label = "that of this Hamiltonian varies with momenta or time";
                Diagnostic::error(message, span(component), label).help(REMEDY)
            })?;
            let TermDerivatives { graph, roots, .. } = formulas;
            let template = Template::in_lanes(&graph, &roots, term.slots.len(), in_lanes);
            compiled.push(CompiledTerm { term: number, template, places });
        }
        let blocks = blocks(components.len(), &pattern);
        let largest = blocks.iter().map(|b| b.members.len()).max().unwrap_or(0);
        if largest > LARGEST_BLOCK {
            let reason = format!(
                "the mass matrix couples {largest} of its components to each other, more than {LARGEST_BLOCK}"
            );
            return Err(undetermined(span(components[0]), &reason));
        }
        Ok(SolvedMomenta { components, terms: compiled, entries: pattern.len(), blocks, largest })
    }

    /// Scratch needed by [`SolvedMomenta::put`], in numbers, for states of this length in so many
    /// lanes.
    fn work_len(&self, dimension: usize, lanes: usize) -> usize {
        let template = self.terms.iter().map(|t| t.template.work_len()).max().unwrap_or(0);
        let len = self.components.len();
        let solving = 2 * len + self.entries + self.largest * (self.largest + 2);
        (dimension + len + self.entries) * lanes + solving.max(template)
    }

    /// Replaces the velocities that stand in place of momenta by these momenta.
    ///
    /// # Errors
    /// A message, if H_pp is singular.
    fn put(
        &self,
        model: &Model,
        (parameters, lanes): (&[f64], usize),
        x: &mut [f64],
        work: &mut [f64],
    ) -> Result<(), &'static str> {
        let Dynamics::Hamiltonian(h, _) = &model.dynamics else { return Ok(()) };
        let (at_zero, work) = work.split_at_mut(x.len());
        at_zero.copy_from_slice(x);
        self.components.iter().for_each(|&k| at_zero[k * lanes..][..lanes].fill(0.0));
        let len = self.components.len() + self.entries;
        let (sums, work) = work.split_at_mut(len * lanes);
        sums.fill(0.0);
        for derivatives in &self.terms {
            let term = &h.terms[derivatives.term];
            let mut places = derivatives.places.iter();
            for row in term.table.each() {
                let values = derivatives.template.row(term, row, 0.0, at_zero, parameters, work);
                for (value, &place) in values.chunks_exact(lanes).zip(&mut places) {
                    if place != NOWHERE {
                        let sum = &mut sums[place as usize * lanes..][..lanes];
                        sum.iter_mut().zip(value).for_each(|(sum, value)| *sum += value);
                    }
                }
            }
        }
        let (p, work) = work.split_at_mut(self.components.len());
        let (one, work) = work.split_at_mut(len);
        for lane in 0..lanes {
            gather(sums, lanes, lane, one);
            let (at_zero, matrix) = one.split_at(self.components.len());
            for ((p, &k), z) in p.iter_mut().zip(&self.components).zip(at_zero) {
                *p = x[k * lanes + lane] - z;
            }
            self.blocks.iter().try_for_each(|block| block.solve(matrix, p, work))?;
            self.components.iter().zip(&*p).for_each(|(&k, p)| x[k * lanes + lane] = *p);
        }
        Ok(())
    }
}

/// Puts the momenta of the initial velocities into the initial state.
///
/// # Errors
/// If the velocities do not determine them.
pub(super) fn start_moving(model: &mut Model, velocities: &[Velocity]) -> Result<(), Diagnostic> {
    let Some(first) = velocities.first() else { return Ok(()) };
    let momenta = Momenta::new(model, velocities, (&Interpreter, 1))?;
    let mut x = std::mem::take(&mut model.initial);
    let mut work = vec![0.0; momenta.work_len(x.len(), 1)];
    let result = momenta.put(model, (&model.parameter_values, 1), &mut x, &mut work);
    model.initial = x;
    result.map_err(|reason| undetermined(first.span, reason))
}

fn undetermined(span: Span, reason: &str) -> Diagnostic {
    let message = "the kinetic energy does not determine a momentum from this velocity";
    Diagnostic::error(message, span, reason).help(REMEDY)
}

/// Connected blocks of a symmetric matrix of side `n` with these entries.
fn blocks(n: usize, pattern: &EntryNumbers) -> Vec<MassBlock> {
    let mut parent: Vec<usize> = (0..n).collect();
    fn find(parent: &mut [usize], mut i: usize) -> usize {
        while parent[i] != i {
            parent[i] = parent[parent[i]];
            i = parent[i];
        }
        i
    }
    for &(i, j) in pattern.keys() {
        let (a, b) = (find(&mut parent, i as usize), find(&mut parent, j as usize));
        parent[a.max(b)] = a.min(b);
    }
    let mut blocks: Vec<MassBlock> = Vec::new();
    let mut place = vec![(0, 0); n]; // block, and position in it
    for i in 0..n {
        // The root of a block is its first member.
        let root = find(&mut parent, i);
        if root == i {
            blocks.push(MassBlock::default());
        }
        let block = if root == i { blocks.len() - 1 } else { place[root].0 };
        place[i] = (block, blocks[block].members.len());
        blocks[block].members.push(i);
    }
    for (&(i, j), &entry) in pattern {
        let ((block, row), (_, column)) = (place[i as usize], place[j as usize]);
        blocks[block].entries.push((row, column, entry as usize - n));
    }
    blocks
}

impl MassBlock {
    /// Solves for the members of `x` by Gaussian elimination with partial pivoting.
    fn solve(&self, matrix: &[f64], x: &mut [f64], work: &mut [f64]) -> Result<(), &'static str> {
        let m = self.members.len();
        let width = m + 1; // the right-hand side is the last column
        let (a, root) = work.split_at_mut(m * width);
        a.fill(0.0);
        for &(row, column, entry) in &self.entries {
            a[row * width + column] = matrix[entry];
        }
        for (row, &i) in self.members.iter().enumerate() {
            a[row * width + m] = x[i];
        }
        // Scale to a unit diagonal, so that light bodies may be coupled to heavy ones.
        for k in 0..m {
            let diagonal = a[k * width + k].abs();
            root[k] = if diagonal > 0.0 && diagonal.is_finite() { diagonal.sqrt() } else { 1.0 };
        }
        for i in 0..m {
            a[i * width..i * width + width].iter_mut().for_each(|v| *v /= root[i]);
            (0..m).for_each(|j| a[i * width + j] /= root[j]);
        }
        let scale = (0..m * width).filter(|k| k % width < m).fold(0.0f64, |s, k| s.max(a[k].abs()));
        for k in 0..m {
            let size = |i: usize| a[i * width + k].abs();
            let pivot = (k..m).max_by(|&i, &j| size(i).total_cmp(&size(j))).unwrap_or(k);
            if pivot != k {
                (0..width).for_each(|j| a.swap(k * width + j, pivot * width + j));
            }
            // Singular to working precision: m roundings of the largest entry.
            let diagonal = a[k * width + k];
            if diagonal.abs() <= scale * f64::EPSILON * m as f64 || diagonal.is_nan() {
                return Err("the mass matrix is singular");
            }
            for i in k + 1..m {
                let factor = a[i * width + k] / diagonal;
                for j in k..=m {
                    a[i * width + j] -= factor * a[k * width + j];
                }
            }
        }
        for k in (0..m).rev() {
            let rest: f64 = (k + 1..m).map(|j| a[k * width + j] * x[self.members[j]]).sum();
            x[self.members[k]] = (a[k * width + m] - rest) / a[k * width + k];
        }
        self.members.iter().zip(&*root).for_each(|(&i, root)| x[i] /= root);
        Ok(())
    }
}
