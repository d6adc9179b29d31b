//! Initial velocities: p(0) = M v(0) where the mass matrix is constant.

use super::model::{Dynamics, Model};
use crate::functional::{Source, Template};
use crate::graph::interpret::{Backend, Interpreter};
use crate::graph::{Expression, Graph, Input};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use rustc_hash::FxHashMap;

/// Momenta that the mass matrix may couple to each other, at most: each block is solved as a dense matrix.
const LARGEST_BLOCK: usize = 2_000;

/// A coordinate whose initial velocity is given in place of its momentum.
#[derive(Clone, Debug)]
pub struct Velocity {
    /// The momentum's name.
    pub name: String,
    /// First component of the momentum in the state.
    pub first: usize,
    /// The velocity at the start of the first trajectory.
    pub value: Vec<f64>,
    /// Where it is declared.
    pub span: Span,
}

/// The momenta of one velocity, as functions of it: H_pp p = v − H_p(q, 0), by connected blocks of H_pp, each
/// dense.
pub struct Momenta {
    /// Number of positions in the state.
    degrees: usize,
    /// First component in the state, and their number.
    first: usize,
    len: usize,
    /// For each term of H its gradient and Hessian over the momenta, compiled.
    terms: Vec<Derivatives>,
    /// Number of entries of H_pp that are not 0 by structure.
    entries: usize,
    blocks: Vec<Block>,
    /// Side of the largest block.
    largest: usize,
}

struct Derivatives {
    term: usize,
    template: Template,
    /// For each row and each output the entry of (H_p, H_pp) that it is added to, or [`NOWHERE`].
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

/// Momenta that H_pp couples to each other.
#[derive(Default)]
struct Block {
    members: Vec<usize>,
    /// (row, column, entry of H_pp)
    entries: Vec<(usize, usize, usize)>,
}

impl Momenta {
    /// Looks at H of `model` for a velocity of `len` components.
    ///
    /// # Errors
    /// When H_pp depends on the state or on time, or couples these momenta to others.
    pub fn new(model: &Model, velocity: &Velocity, backend: &dyn Backend) -> Result<Momenta, Diagnostic> {
        let (first, len, span) = (velocity.first, velocity.value.len(), velocity.span);
        let n = model.degrees();
        let terms = match &model.dynamics {
            Dynamics::Hamiltonian(h, _) => h.terms.as_slice(),
            Dynamics::Field(_) => &[],
        };
        let mine = |i: u32| (first..first + len).contains(&(i as usize));
        let mut pattern: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut compiled = Vec::new();
        for (number, term) in terms.iter().enumerate() {
            // Each template's gradient and Hessian with respect to its slots, once.
            let mut g: Graph = term.graph.clone();
            let is_slot = |k: u32| term.slots[k as usize] == Source::State;
            let gradient = g.adjoint(term.roots[0], |input| matches!(input, Input::Slot(k) if is_slot(k)));
            let mut roots = Vec::new();
            let mut derivatives = Vec::new();
            for &(a, d) in &gradient {
                let Input::Slot(a) = a else { continue };
                roots.push(d);
                derivatives.push((a, None));
                for (b, dd) in g.adjoint(d, |input| matches!(input, Input::Slot(k) if is_slot(k))) {
                    let Input::Slot(b) = b else { continue };
                    roots.push(dd);
                    derivatives.push((a, Some(b)));
                }
            }
            let constant: Vec<bool> = roots
                .iter()
                .map(|&r| {
                    !g.reachable(&[r]).iter().any(|&x| {
                        matches!(g.expression(x), Expression::Input(Input::Time))
                            || matches!(g.expression(x), Expression::Input(Input::Slot(k)) if is_slot(k))
                    })
                })
                .collect();
            let mut places = Vec::with_capacity(term.rows() * roots.len());
            for row in 0..term.rows() {
                let entries = term.row(row);
                for (k, &(a, b)) in derivatives.iter().enumerate() {
                    let a = entries[a as usize];
                    let b = b.map(|b| entries[b as usize]);
                    places.push(match b {
                        _ if !mine(a) => NOWHERE,
                        None => a - first as u32,
                        // How H_p changes with q does not matter here.
                        Some(b) if (b as usize) < n => NOWHERE,
                        Some(_) if !constant[k] => {
                            return Err(Diagnostic::error(
                                "an initial velocity needs a constant mass matrix",
                                span,
                                "the mass matrix of this Hamiltonian varies",
                            )
                            .help("give the initial momentum instead: `momentum p of q = …`"));
                        }
                        Some(b) if !mine(b) => {
                            return Err(Diagnostic::error(
                                "the mass matrix couples this velocity to another coordinate's momentum",
                                span,
                                "cannot be solved alone",
                            )
                            .help("give the initial momenta instead: `momentum p of q = …`"));
                        }
                        Some(b) => {
                            let next = (len + pattern.len()) as u32;
                            *pattern.entry((a - first as u32, b - first as u32)).or_insert(next)
                        }
                    });
                }
            }
            let template = Template::new(&g, &roots, term.slots.len(), backend);
            compiled.push(Derivatives { term: number, template, places });
        }
        let blocks = blocks(len, &pattern);
        let largest = blocks.iter().map(|b| b.members.len()).max().unwrap_or(0);
        if largest > LARGEST_BLOCK {
            let reason =
                format!("the mass matrix couples {largest} of its components to each other, more than {LARGEST_BLOCK}");
            return Err(undetermined(span, &reason));
        }
        Ok(Momenta { degrees: n, first, len, terms: compiled, entries: pattern.len(), blocks, largest })
    }

    /// Scratch needed by [`Momenta::put`], in numbers, for a state of this length.
    pub fn work_len(&self, dimension: usize) -> usize {
        let template = self.terms.iter().map(|t| t.template.work_len()).max().unwrap_or(0);
        dimension + self.len + self.entries + (self.largest * (self.largest + 1)).max(template)
    }

    /// Replaces the velocities that stand in place of momenta by momenta.
    ///
    /// # Errors
    /// In words, when H_pp is singular.
    pub fn put(&self, model: &Model, parameters: &[f64], x: &mut [f64], work: &mut [f64]) -> Result<(), &'static str> {
        let Dynamics::Hamiltonian(h, _) = &model.dynamics else { return Ok(()) };
        let (at_zero, work) = work.split_at_mut(x.len());
        at_zero.copy_from_slice(x);
        at_zero[self.degrees..].fill(0.0);
        let (sums, work) = work.split_at_mut(self.len + self.entries);
        sums.fill(0.0);
        for derivatives in &self.terms {
            let term = &h.terms[derivatives.term];
            let mut places = derivatives.places.iter();
            for row in 0..term.rows() {
                let values = derivatives.template.row(term, row, 0.0, at_zero, parameters, work);
                for (value, &place) in values.iter().zip(&mut places) {
                    if place != NOWHERE {
                        sums[place as usize] += value;
                    }
                }
            }
        }
        let (at_zero, matrix) = sums.split_at(self.len);
        let p = &mut x[self.first..self.first + self.len];
        for (p, z) in p.iter_mut().zip(at_zero) {
            *p -= z;
        }
        self.blocks.iter().try_for_each(|block| block.solve(matrix, p, work))
    }
}

/// Puts the momenta of an initial velocity into the initial state.
///
/// # Errors
/// When the velocity does not determine them.
pub(super) fn start_moving(model: &mut Model, velocity: &Velocity) -> Result<(), Diagnostic> {
    let momenta = Momenta::new(model, velocity, &Interpreter)?;
    let mut x = std::mem::take(&mut model.initial);
    let mut work = vec![0.0; momenta.work_len(x.len())];
    let result = momenta.put(model, &model.parameter_values, &mut x, &mut work);
    model.initial = x;
    result.map_err(|reason| undetermined(velocity.span, reason))
}

fn undetermined(span: Span, reason: &str) -> Diagnostic {
    Diagnostic::error("the kinetic energy does not determine a momentum from this velocity", span, reason)
        .help("give the initial momentum instead: `momentum p of q = …`")
}

/// The connected blocks of a symmetric matrix of side `n` with these entries.
fn blocks(n: usize, pattern: &FxHashMap<(u32, u32), u32>) -> Vec<Block> {
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
    let mut blocks: Vec<Block> = Vec::new();
    let mut place = vec![(0, 0); n]; // block, and where in it
    for i in 0..n {
        // The root of a block is its first member.
        let root = find(&mut parent, i);
        if root == i {
            blocks.push(Block::default());
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

impl Block {
    /// Solves for the members of `x` by Gaussian elimination with partial pivoting.
    fn solve(&self, matrix: &[f64], x: &mut [f64], work: &mut [f64]) -> Result<(), &'static str> {
        let m = self.members.len();
        let width = m + 1; // the right-hand side is the last column
        let a = &mut work[..m * width];
        a.fill(0.0);
        for &(row, column, entry) in &self.entries {
            a[row * width + column] = matrix[entry];
        }
        for (row, &i) in self.members.iter().enumerate() {
            a[row * width + m] = x[i];
        }
        let scale = a.iter().fold(0.0f64, |s, v| s.max(v.abs()));
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
        Ok(())
    }
}
