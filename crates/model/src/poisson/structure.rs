//! Antisymmetry, Jacobi's identity and rank of a matrix of brackets, at points.

use super::{Block, Poisson};
use crate::functional::{Functional, Source, Template};
use crate::graph::Input;
use crate::graph::interpret::Interpreter;
use crate::points::Points;
use holonome_linear::null_space::null_space;

/// Part of the entries of a matrix, or of the terms of a sum, by which what should cancel may differ
/// from 0: far more than rounding, and far less than what different functions differ by at random
/// points.
pub(super) const ROUNDED: f64 = 1e-9;

/// Part of the largest component of a state below which a component vanishes: some roundings.
const VANISHING: f64 = 16.0 * f64::EPSILON;

/// Largest number of components that are connected by brackets whose rank is found.
const LARGEST_RANKED: usize = 400;

/// Two entries of a matrix that are not opposite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asymmetry {
    /// Number of the block.
    pub block: usize,
    /// Components of the state, or one of them twice.
    pub places: [u32; 2],
    /// Row and column in the matrix, from 1.
    pub entry: [usize; 2],
    /// The two entries.
    pub values: [f64; 2],
}

/// Three components for which Jacobi's identity fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JacobiFailure {
    /// Components of the state.
    pub places: [u32; 3],
    /// The cyclic sum {x_a, {x_b, x_c}} + …
    pub sum: f64,
    /// Sum of the absolute values of its terms.
    pub size: f64,
}

/// Rank of J at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The rank.
    pub rank: usize,
    /// Length of the state.
    pub dimension: usize,
}

/// Entries of J and their derivatives at a point.
pub(super) struct Entries {
    /// Row, column and value.
    pub(super) values: Vec<(u32, u32, f64)>,
    /// Row, column, component of the state and derivative.
    slopes: Vec<(u32, u32, u32, f64)>,
}

impl Entries {
    /// Entries of J, without derivatives.
    pub(super) fn values(blocks: &[Block], x: &[f64], parameters: &[f64]) -> Entries {
        let mut values = Vec::new();
        for block in blocks {
            let of_block = block.matrix.evaluate(0.0, x, parameters);
            for (output, value) in of_block.into_iter().enumerate().filter(|(_, v)| *v != 0.0) {
                let [row, column] = block.places_of_entry(output);
                values.push((row, column, value));
            }
        }
        Entries { values, slopes: Vec::new() }
    }

    fn differentiated(blocks: &[Block], x: &[f64], parameters: &[f64]) -> Entries {
        let mut entries = Entries::values(blocks, x, parameters);
        for block in blocks {
            for (output, by, slope) in slopes(&block.matrix, x, parameters) {
                let [row, column] = block.places_of_entry(output);
                entries.slopes.push((row, column, by, slope));
            }
        }
        entries
    }

    /// For each component a, Σ_bc J(a, b, c) β_b γ_c with J(a, b, c) the cyclic sum {x_a, {x_b, x_c}}
    /// + …, and the sum of the absolute values of its terms.
    fn jacobiator(&self, beta: &[f64], gamma: &[f64]) -> Vec<(f64, f64)> {
        let n = beta.len();
        // Σ_j β_j J_jl and Σ_k γ_k J_kl, and Σ_jk ∂_l J_jk β_j γ_k, each with its size.
        let mut along = vec![[(0.0, 0.0); 3]; n];
        let add = |sum: &mut (f64, f64), term: f64, size: f64| {
            sum.0 += term;
            sum.1 += size;
        };
        for &(row, column, value) in &self.values {
            let (row, column) = (row as usize, column as usize);
            for (k, of) in [beta[row], gamma[row]].into_iter().enumerate() {
                add(&mut along[column][k], of * value, (of * value).abs());
            }
        }
        for &(row, column, by, slope) in &self.slopes {
            let term = slope * beta[row as usize] * gamma[column as usize];
            add(&mut along[by as usize][2], term, term.abs());
        }
        let mut sums = vec![(0.0, 0.0); n];
        for &(row, column, value) in &self.values {
            let (term, size) = along[column as usize][2];
            add(&mut sums[row as usize], value * term, value.abs() * size);
        }
        for &(row, column, by, slope) in &self.slopes {
            let [of_beta, of_gamma, _] = along[by as usize];
            let (factor, (term, size)) = (slope * gamma[row as usize], of_beta);
            add(&mut sums[column as usize], factor * term, factor.abs() * size);
            let (factor, (term, size)) = (slope * beta[column as usize], of_gamma);
            add(&mut sums[row as usize], factor * term, factor.abs() * size);
        }
        sums
    }
}

/// Derivatives of a functional by the state at a point: output, component of the state, value.
pub(super) fn slopes(
    functional: &Functional,
    x: &[f64],
    parameters: &[f64],
) -> Vec<(usize, u32, f64)> {
    let mut all = Vec::new();
    for term in &functional.terms {
        let (mut graph, mut nodes, mut of) = (term.graph.clone(), Vec::new(), Vec::new());
        let moves =
            |input| matches!(input, Input::Slot(k) if term.slots[k as usize] == Source::State);
        for (root, &node) in term.roots.iter().enumerate() {
            for (input, slope) in graph.adjoint(node, moves) {
                let Input::Slot(slot) = input else { continue };
                of.push((root, slot as usize));
                nodes.push(slope);
            }
        }
        let template = Template::new(&graph, &nodes, term.slots.len(), &Interpreter);
        let mut work = vec![0.0; template.work_len()];
        term.each_row(&mut |row| {
            let values = template.row(term, row, 0.0, x, parameters, &mut work);
            let slope = |(&(root, slot), &value): (&(usize, usize), &f64)| {
                (row.last() as usize + root, row.at(slot), value)
            };
            all.extend(of.iter().zip(values).map(slope));
        });
    }
    all
}

impl Poisson {
    /// Entries of J at a state that are not opposite.
    pub fn asymmetry(&self, x: &[f64], parameters: &[f64]) -> Option<Asymmetry> {
        for (number, block) in self.blocks.iter().enumerate() {
            let values = block.matrix.evaluate(0.0, x, parameters);
            for (member, matrix) in values.chunks_exact(block.size.pow(2)).enumerate() {
                let most = matrix.iter().fold(0.0f64, |most, entry| most.max(entry.abs()));
                for (a, b) in (0..block.size).flat_map(|a| (0..=a).map(move |b| (b, a))) {
                    let values = [matrix[a + block.size * b], matrix[b + block.size * a]];
                    if (values[0] + values[1]).abs() > ROUNDED * most {
                        let places = block.places_of(member);
                        return Some(Asymmetry {
                            block: number,
                            places: [places[b], places[a]],
                            entry: [b + 1, a + 1],
                            values,
                        });
                    }
                }
            }
        }
        None
    }

    /// Components for which Jacobi's identity fails at a state. Where J has no value nothing fails.
    ///
    /// The cyclic sum is contracted with random vectors, which takes a time in proportion to the
    /// entries of J and their derivatives; only where it does not vanish are its components found.
    pub fn jacobi_failure(&self, x: &[f64], parameters: &[f64]) -> Option<JacobiFailure> {
        let entries = Entries::differentiated(&self.blocks, x, parameters);
        let mut points = Points::new(0x1acb);
        // In the units of the components, so that none hides the others.
        let units = units(x);
        let mut random = || -> Vec<f64> {
            units.iter().map(|unit| (1.5 + 0.5 * points.draw()) / unit).collect()
        };
        let (beta, gamma) = (random(), random());
        let worst = |sums: &[(f64, f64)]| {
            let fails = |&(_, (sum, size)): &(usize, (f64, f64))| sum.abs() > ROUNDED * size;
            let all = sums.iter().copied().enumerate().filter(fails);
            all.max_by(|a, b| a.1.0.abs().total_cmp(&b.1.0.abs()))
        };
        let (first, _) = worst(&entries.jacobiator(&beta, &gamma))?;
        let unit = |k: usize| {
            let mut unit = vec![0.0; x.len()];
            unit[k] = 1.0;
            unit
        };
        let (second, _) = worst(&entries.jacobiator(&unit(first), &gamma))?;
        let (third, (sum, size)) = worst(&entries.jacobiator(&unit(first), &unit(second)))?;
        let mut places = [first, second, third].map(|k| k as u32);
        places.sort_unstable();
        Some(JacobiFailure { places, sum: sum.abs(), size })
    }

    /// Components of the state that brackets connect, as lists of their places. Components that no
    /// bracket moves are alone.
    pub fn connected(&self, dimension: usize) -> Vec<Vec<u32>> {
        let mut parent: Vec<u32> = (0..dimension as u32).collect();
        fn root(parent: &mut [u32], mut k: u32) -> u32 {
            while parent[k as usize] != k {
                parent[k as usize] = parent[parent[k as usize] as usize];
                k = parent[k as usize];
            }
            k
        }
        for block in &self.blocks {
            for member in 0..block.members() {
                let places = block.places_of(member);
                for pair in places.windows(2) {
                    let [a, b] = [pair[0], pair[1]].map(|k| root(&mut parent, k));
                    parent[a.max(b) as usize] = a.min(b);
                }
            }
        }
        let mut of_root = vec![Vec::new(); dimension];
        for k in 0..dimension as u32 {
            of_root[root(&mut parent, k) as usize].push(k);
        }
        of_root.retain(|places| !places.is_empty());
        of_root
    }

    /// Rank of J at a state; `None` if brackets connect too many components, or J has no value.
    pub fn rank(&self, x: &[f64], parameters: &[f64]) -> Option<Rank> {
        let parts = self.connected(x.len());
        if parts.iter().any(|places| places.len() > LARGEST_RANKED) {
            return None;
        }
        let entries = Entries::values(&self.blocks, x, parameters);
        if entries.values.iter().any(|(.., value)| !value.is_finite()) {
            return None;
        }
        let mut of_place = vec![(0, 0); x.len()];
        for (part, places) in parts.iter().enumerate() {
            for (k, &place) in places.iter().enumerate() {
                of_place[place as usize] = (part, k);
            }
        }
        let square = |places: &Vec<u32>| vec![vec![0.0; places.len()]; places.len()];
        let mut matrices: Vec<Vec<Vec<f64>>> = parts.iter().map(square).collect();
        let units = units(x);
        for (row, column, value) in entries.values {
            let value = value / (units[row as usize] * units[column as usize]);
            let ((part, row), (_, column)) = (of_place[row as usize], of_place[column as usize]);
            matrices[part][row][column] += value;
        }
        let of_part = |mut rows: Vec<Vec<f64>>| {
            let (count, most) = (rows.len(), largest(&rows));
            if most == 0.0 {
                return 0;
            }
            rows.iter_mut().flatten().for_each(|entry| *entry /= most);
            count - null_space(rows, ROUNDED).0.len()
        };
        let rank = matrices.into_iter().map(of_part).sum();
        Some(Rank { rank, dimension: x.len() })
    }
}

/// Units of the components of a state: their sizes. What vanishes up to rounding is as large as the
/// largest.
pub(super) fn units(x: &[f64]) -> Vec<f64> {
    let most = x.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    let unit = |x: &f64| if x.abs() > VANISHING * most { x.abs() } else { most };
    if most > 0.0 { x.iter().map(unit).collect() } else { vec![1.0; x.len()] }
}

fn largest(rows: &[Vec<f64>]) -> f64 {
    rows.iter().flatten().fold(0.0f64, |most, entry| most.max(entry.abs()))
}
