//! Initial velocities: p(0) = M v(0) where the mass matrix is constant.

use super::model::{Dynamics, Model};
use crate::functional::Source;
use crate::graph::interpret::{Backend, Interpreter};
use crate::graph::tape::Tape;
use crate::graph::{Expression, Graph, Input};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use rustc_hash::FxHashMap;

/// Replaces the velocities that stand in place of `len` momenta from component `p` on by momenta: solves
/// H_pp p = v − H_p(q, 0) (by connected blocks of H_pp, each dense).
///
/// # Errors
/// When H_pp depends on the state or on time, or is singular.
pub(super) fn momentum_of_velocity(model: &mut Model, p: usize, len: usize, span: Span) -> Result<(), Diagnostic> {
    let Dynamics::Hamiltonian(h, _) = &model.dynamics else { return Ok(()) };
    let n = model.degrees();
    let mine = |i: u32| (p..p + len).contains(&(i as usize));
    let mut matrix: FxHashMap<(usize, usize), f64> = FxHashMap::default();
    let mut at_zero = vec![0.0; len];
    let mut start = model.initial.clone();
    start[n..].fill(0.0);
    for term in &h.terms {
        // Each template's gradient and Hessian with respect to its slots, once.
        let mut g: Graph = term.graph.clone();
        let is_slot = |k: u32| term.slots[k as usize] == Source::State;
        let gradient = g.adjoint(term.roots[0], |input| matches!(input, Input::Slot(k) if is_slot(k)));
        let mut roots = Vec::new();
        let mut places = Vec::new();
        for &(a, d) in &gradient {
            let Input::Slot(a) = a else { continue };
            roots.push(d);
            places.push((a, None));
            for (b, dd) in g.adjoint(d, |input| matches!(input, Input::Slot(k) if is_slot(k))) {
                let Input::Slot(b) = b else { continue };
                roots.push(dd);
                places.push((a, Some(b)));
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
        let mut flat = Graph::new();
        let outputs = flat.instantiate(&g, &roots, |f, input| match input {
            Input::Slot(k) => f.state(k as usize),
            other => f.input(other),
        });
        let kernel = Interpreter
            .compile(&Tape::new(&flat, &outputs, term.slots.len(), 0), 1)
            .expect("the interpreter never refuses");
        let bound = kernel.bind(&[]);
        let (mut work, mut out) = (vec![0.0; kernel.work_len()], vec![0.0; roots.len()]);
        let width = term.slots.len();
        for row in 0..term.rows() {
            let entries = &term.table[row * width..(row + 1) * width];
            let local: Vec<f64> = entries
                .iter()
                .zip(&term.slots)
                .map(|(&e, s)| match s {
                    Source::State => start[e as usize],
                    Source::Parameter => model.parameter_values[e as usize],
                    Source::Number => term.numbers[e as usize],
                })
                .collect();
            kernel.run(&bound, &[0.0], &local, &mut out, &mut work);
            for (k, &(a, b)) in places.iter().enumerate() {
                let a = entries[a as usize];
                if !mine(a) {
                    continue;
                }
                match b {
                    None => at_zero[a as usize - p] += out[k],
                    Some(b) => {
                        let b = entries[b as usize];
                        if (b as usize) < n {
                            continue; // how H_p changes with q does not matter here
                        }
                        if !constant[k] {
                            return Err(Diagnostic::error(
                                "an initial velocity needs a constant mass matrix",
                                span,
                                "the mass matrix of this Hamiltonian varies",
                            )
                            .help("give the initial momentum instead: `momentum p of q = …`"));
                        }
                        if !mine(b) {
                            return Err(Diagnostic::error(
                                "the mass matrix couples this velocity to another coordinate's momentum",
                                span,
                                "cannot be solved alone",
                            )
                            .help("give the initial momenta instead: `momentum p of q = …`"));
                        }
                        *matrix.entry((a as usize - p, b as usize - p)).or_insert(0.0) += out[k];
                    }
                }
            }
        }
    }
    let velocity = model.initial[p..p + len].to_vec();
    let right: Vec<f64> = velocity.iter().zip(&at_zero).map(|(v, z)| v - z).collect();
    match solve_blocks(&matrix, &right) {
        Ok(momentum) => {
            model.initial[p..p + len].copy_from_slice(&momentum);
            Ok(())
        }
        Err(reason) => {
            Err(Diagnostic::error("the kinetic energy does not determine a momentum from this velocity", span, reason)
                .help("give the initial momentum instead: `momentum p of q = …`"))
        }
    }
}

/// Momenta that the mass matrix may couple to each other, at most: each block is solved as a dense matrix.
const LARGEST_BLOCK: usize = 2_000;

/// Solves a sparse symmetric system by Gaussian elimination within each connected block; otherwise says what is
/// wrong with the matrix.
fn solve_blocks(matrix: &FxHashMap<(usize, usize), f64>, right: &[f64]) -> Result<Vec<f64>, String> {
    let n = right.len();
    let mut block: Vec<usize> = (0..n).collect();
    fn find(block: &mut [usize], mut i: usize) -> usize {
        while block[i] != i {
            block[i] = block[block[i]];
            i = block[i];
        }
        i
    }
    for &(i, j) in matrix.keys() {
        let (a, b) = (find(&mut block, i), find(&mut block, j));
        block[a.max(b)] = a.min(b);
    }
    let mut members: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for i in 0..n {
        let root = find(&mut block, i);
        members.entry(root).or_default().push(i);
    }
    let mut solution = vec![0.0; n];
    for list in members.values() {
        let m = list.len();
        if m > LARGEST_BLOCK {
            return Err(format!(
                "the mass matrix couples {m} of its components to each other, more than {LARGEST_BLOCK}"
            ));
        }
        let mut a: Vec<Vec<f64>> = list
            .iter()
            .map(|&i| list.iter().map(|&j| matrix.get(&(i, j)).copied().unwrap_or(0.0)).chain([right[i]]).collect())
            .collect();
        let scale = a.iter().flatten().fold(0.0f64, |s, v| s.max(v.abs()));
        for k in 0..m {
            let pivot = (k..m).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap_or(k);
            a.swap(k, pivot);
            // Singular to working precision: m roundings of the largest entry.
            if a[k][k].abs() <= scale * f64::EPSILON * m as f64 || a[k][k].is_nan() {
                return Err("the mass matrix is singular".to_string());
            }
            for i in k + 1..m {
                let factor = a[i][k] / a[k][k];
                for j in k..=m {
                    a[i][j] -= factor * a[k][j];
                }
            }
        }
        for k in (0..m).rev() {
            let rest: f64 = (k + 1..m).map(|j| a[k][j] * solution[list[j]]).sum();
            solution[list[k]] = (a[k][m] - rest) / a[k][k];
        }
    }
    Ok(solution)
}
