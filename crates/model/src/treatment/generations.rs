//! Dirac's algorithm: hidden constraints of hidden constraints, until the multipliers of all stated
//! constraints are determined (Dirac, *Lectures on quantum mechanics*, 1964; Henneaux, Teitelboim,
//! *Quantization of gauge systems*, 1992, chapter 1).
//!
//! With Φ all constraints so far and φ the stated ones, the motion X_H + Σ u_a X_{φ_a} keeps Φ if
//! D u = −{Φ, H} with D_Aa = {Φ_A, φ_a}. Pivots of D, chosen at the start, determine as many u_a. Each
//! row A without a pivot gives a new constraint,
//!
//! χ = {Φ_A, H} − D_As D_ss⁻¹ {Φ_s, H},
//!
//! over the pivots s, and all begins anew with Φ ∪ χ. Brackets that vanish on the set of Φ are left
//! out of χ, which they do not change there.

mod gauge;

use super::brackets::{ROUNDING, brackets, rate};
use super::dirac::{solved, unconstrained_field};
use super::structure::{
    ConstraintKind, Hidden, Irregular, Probe, Structure, onto_set, points_around,
};
use super::unrolled::{Scalar, Unrolled};
use crate::elaborate::model::{Model, component_suffix};
use crate::graph::Node;
use crate::graph::calculus::Gradient;
use crate::graph::linear::Matrix;
use crate::scales::{Scales, in_units};
use holonome_linear::gram::{Gram, Row};
use holonome_linear::rank;

/// Largest number of stated scalar constraints: the work grows as its cube.
const MOST: usize = 400;

/// Number of random points of the set at which formulas are examined, beside the start.
const POINTS: usize = 4;

/// Part of its terms up to which a function vanishes at a point of the set.
const VANISHING: f64 = 1e-9;

/// Length of a gradient on a set, as a part of that beside it, below which it vanishes on the set.
const VANISHED: f64 = 1e-4;

/// Structure of the constraints `stated`.
///
/// # Errors
/// If they determine no motion.
pub(super) fn structure(
    model: &Model,
    unrolled: &mut Unrolled,
    stated: &[Scalar],
) -> Result<Structure, Irregular> {
    if stated.len() > MOST {
        return Err(Irregular::TooMany { count: stated.len(), limit: MOST });
    }
    let mut generations = Generations::new(model, unrolled, stated);
    generations.require_independent()?;
    let mut frontier: Vec<usize> = (0..stated.len()).collect();
    loop {
        let set = generations.set();
        generations.choose_pivots(&frontier, &set);
        let rest: Vec<usize> =
            frontier.iter().copied().filter(|&row| !generations.has_pivot(row)).collect();
        let mut fresh = generations.next(&rest, &set)?;
        if fresh.is_empty() {
            let free = generations.undetermined();
            if free.is_empty() {
                return generations.finish(&set);
            }
            fresh = generations.tangencies(&free, &set)?;
        }
        let first = generations.all.len();
        generations.all.extend(fresh);
        frontier = (first..generations.all.len()).collect();
    }
}

/// Points of the set of all constraints so far, the one nearest to the start first, with the
/// gradients of the constraints there and D, 0 where it is rounding.
struct Points {
    states: Vec<Vec<f64>>,
    gradients: Vec<Vec<Row>>,
    brackets: Vec<Vec<f64>>,
}

struct Generations<'a> {
    model: &'a Model,
    unrolled: &'a mut Unrolled,
    scales: Scales,
    units: Vec<f64>,
    /// Field without constraint forces.
    free: Vec<Node>,
    /// Number of stated constraints.
    stated: usize,
    /// All constraints, the stated ones, of order 0, first.
    all: Vec<Hidden>,
    /// Rows of `all` and multipliers that they determine.
    pivots: Vec<(usize, usize)>,
    /// Numbers of constraints and pivots after each generation.
    ranks: Vec<(usize, usize)>,
    /// State of the set that is nearest to the start.
    start: Vec<f64>,
}

impl<'a> Generations<'a> {
    fn new(model: &'a Model, unrolled: &'a mut Unrolled, stated: &[Scalar]) -> Generations<'a> {
        let scales = Scales::new(model);
        let of = |(of, s): (usize, &Scalar)| Hidden {
            of,
            order: 0,
            node: s.node,
            gradient: s.gradient.clone(),
            tangency: false,
        };
        Generations {
            units: scales.units(&model.initial),
            scales,
            free: unconstrained_field(model, unrolled),
            model,
            unrolled,
            stated: stated.len(),
            all: stated.iter().enumerate().map(of).collect(),
            pivots: Vec::new(),
            ranks: Vec::new(),
            start: model.initial.clone(),
        }
    }

    /// Check that gradients of stated constraints do not depend on each other at the start, where
    /// brackets would tell nothing.
    fn require_independent(&self) -> Result<(), Irregular> {
        let rows = self.probe(&[], &self.all).at(self.model.t0, &self.start).1;
        let dependent = Gram::in_order(&in_units(&rows, &self.units)).dependent().len();
        let size = self.stated;
        match dependent {
            0 => Ok(()),
            _ => Err(Irregular::Singular {
                rank: size - dependent,
                size,
                hint: "; gradients of the constraints depend on each other there",
            }),
        }
    }

    /// Compiled nodes, and gradients of these constraints.
    fn probe(&self, nodes: &[Node], of: &[Hidden]) -> Probe {
        let gradients: Vec<&Gradient> = of.iter().map(|link| &link.gradient).collect();
        let parameters = &self.model.parameter_values;
        Probe::new(&self.unrolled.graph, nodes, &gradients, self.model.dimension(), parameters)
    }

    /// Points of the set where `all` vanish, near its state nearest to the start; `None` if there
    /// is none.
    fn states(&self, all: &[Hidden]) -> Option<Vec<Vec<f64>>> {
        let nodes: Vec<Node> = all.iter().map(|link| link.node).collect();
        let (probe, t) = (self.probe(&nodes, all), self.model.t0);
        let start = onto_set(&probe, t, &self.start, &self.units)?;
        let others = points_around(&self.scales, &start, POINTS, 0xd12a);
        let others = others.iter().filter_map(|x| onto_set(&probe, t, x, &self.units));
        let others: Vec<Vec<f64>> = others.collect();
        Some(std::iter::once(start).chain(others).collect())
    }

    /// Points of the set of all constraints so far.
    fn set(&mut self) -> Points {
        let states = self.states(&self.all).unwrap_or_else(|| vec![self.start.clone()]);
        self.start.clone_from(&states[0]);
        let probe = self.probe(&[], &self.all);
        let gradients: Vec<Vec<Row>> =
            states.iter().map(|x| probe.at(self.model.t0, x).1).collect();
        let (n, stated) = (self.model.degrees(), self.stated);
        let table = |rows: &Vec<Row>| brackets(rows, &rows[..stated], n, ROUNDING);
        let brackets = gradients.iter().map(table).collect();
        Points { states, gradients, brackets }
    }

    fn has_pivot(&self, row: usize) -> bool {
        self.pivots.iter().any(|&(pivot, _)| pivot == row)
    }

    /// Choose pivots among the rows `frontier` of D at the start, after those known.
    fn choose_pivots(&mut self, frontier: &[usize], set: &Points) {
        let known = self.pivots.iter().map(|&(row, _)| row);
        let rows: Vec<usize> = known.chain(frontier.iter().copied()).collect();
        let m = self.stated;
        let table: Vec<f64> =
            rows.iter().flat_map(|&row| &set.brackets[0][row * m..][..m]).copied().collect();
        let given: Vec<(usize, usize)> =
            self.pivots.iter().enumerate().map(|(k, &(_, column))| (k, column)).collect();
        let scaled = rank::equilibrated(&table, rows.len(), m);
        let found = rank::pivots(&scaled, rows.len(), m, &given, ROUNDING);
        self.pivots = found.into_iter().map(|(k, column)| (rows[k], column)).collect();
        self.ranks.push((self.all.len(), self.pivots.len()));
    }

    /// D_Aa, or 0 if it vanishes on the set.
    fn bracket(&mut self, row: usize, column: usize, set: &Points) -> Node {
        let at = row * self.stated + column;
        let g = &mut self.unrolled.graph;
        match set.brackets.iter().all(|table| table[at] == 0.0) {
            true => g.zero(),
            false => {
                let (row, column) = (&self.all[row].gradient, &self.all[column].gradient);
                g.poisson(row, column, self.model.degrees())
            }
        }
    }

    /// w with D_ss w = right, over the pivots.
    fn over_pivots(&mut self, right: &[Node], set: &Points) -> Vec<Node> {
        let pivots = self.pivots.clone();
        let mut d = Matrix::zeros(&mut self.unrolled.graph, pivots.len());
        for (i, &(row, _)) in pivots.iter().enumerate() {
            for (j, &(_, column)) in pivots.iter().enumerate() {
                d.set(i, j, self.bracket(row, column, set));
            }
        }
        solved(&mut self.unrolled.graph, &d, right)
    }

    /// Rate of a constraint without constraint forces.
    fn rate(&mut self, row: usize) -> Node {
        let n = self.model.degrees();
        rate(self.unrolled, self.all[row].node, &self.all[row].gradient, n)
    }

    /// New constraints from the rows `rest`, which have no pivots.
    fn next(&mut self, rest: &[usize], set: &Points) -> Result<Vec<Hidden>, Irregular> {
        let pivots = self.pivots.clone();
        let right: Vec<Node> = pivots.iter().map(|&(row, _)| self.rate(row)).collect();
        let w = self.over_pivots(&right, set);
        let mut candidates = Vec::with_capacity(rest.len());
        for &row in rest {
            let mut node = self.rate(row);
            for (&(_, column), &w) in pivots.iter().zip(&w) {
                let d = self.bracket(row, column, set);
                let g = &mut self.unrolled.graph;
                let product = g.mul(d, w);
                node = g.sub(node, product);
            }
            let gradient = self.unrolled.graph.gradient(node);
            let Hidden { of, order, .. } = self.all[row];
            candidates.push(Hidden { of, order: order + 1, node, gradient, tangency: false });
        }
        let vanishes = self.vanishing(rest, &candidates, &w, set);
        let mut vanishes = vanishes.into_iter();
        candidates.retain(|_| !vanishes.next().expect("one for each"));
        self.fresh(candidates, set)
    }

    /// For each candidate, the rate of its row, true if it vanishes at the points of the set, up to
    /// the rounding of its terms.
    fn vanishing(
        &self,
        rest: &[usize],
        candidates: &[Hidden],
        w: &[Node],
        set: &Points,
    ) -> Vec<bool> {
        let values = candidates.iter().map(|candidate| candidate.node);
        let nodes: Vec<Node> =
            values.chain(self.free.iter().copied()).chain(w.iter().copied()).collect();
        let probe = self.probe(&nodes, &[]);
        let mut vanishes = vec![true; candidates.len()];
        for (point, x) in set.states.iter().enumerate() {
            let (values, _) = probe.at(self.model.t0, x);
            let (values, others) = values.split_at(candidates.len());
            let (free, w) = others.split_at(self.free.len());
            for (k, (value, &row)) in values.iter().zip(rest).enumerate() {
                let gradient = set.gradients[point][row].iter();
                let own: f64 = gradient.map(|&(i, d)| (d * free[i as usize]).abs()).sum();
                let of_pivot = |(&(_, column), w): (&(usize, usize), &f64)| {
                    (set.brackets[point][row * self.stated + column] * w).abs()
                };
                let taken: f64 = self.pivots.iter().zip(w).map(of_pivot).sum();
                vanishes[k] &= value.abs() <= VANISHING * (own + taken) || value.is_nan();
            }
        }
        vanishes
    }

    /// Those of the candidates, none of which vanishes on the set, that do not follow from the
    /// others.
    fn fresh(&self, candidates: Vec<Hidden>, set: &Points) -> Result<Vec<Hidden>, Irregular> {
        let probe = self.probe(&[], &candidates);
        let beside: Vec<Vec<Row>> =
            set.states.iter().map(|x| probe.at(self.model.t0, x).1).collect();
        let mut depends = vec![true; candidates.len()];
        for (known, own) in set.gradients.iter().zip(&beside) {
            let rows: Vec<Row> = known.iter().chain(own).cloned().collect();
            let found = Gram::in_order(&in_units(&rows, &self.units)).dependent();
            let at_point = |k: usize| found.contains(&(known.len() + k));
            depends.iter_mut().enumerate().for_each(|(k, depends)| *depends &= at_point(k));
        }
        let (others, fresh): (Vec<_>, Vec<_>) =
            candidates.into_iter().zip(depends).partition(|(_, depends)| *depends);
        let [others, fresh] =
            [others, fresh].map(|list| list.into_iter().map(|(link, _)| link).collect::<Vec<_>>());
        let all = [&self.all[..], &fresh].concat();
        let defect = "has no zeros near the initial state";
        let states = match fresh.first() {
            Some(first) => self.states(&all).ok_or_else(|| self.degenerate(first, defect))?,
            None => set.states.clone(),
        };
        self.require_implied(&others, &states)?;
        let rows = self.probe(&[], &all).at(self.model.t0, &states[0]).1;
        let before = beside.iter().map(|rows| self.lengths(rows)).reduce(|mut most, lengths| {
            most.iter_mut().zip(lengths).for_each(|(most, length)| *most = most.max(length));
            most
        });
        let dependent = Gram::in_order(&in_units(&rows, &self.units)).dependent();
        let defect = "has no gradient of its own where they hold";
        let lengths = self.lengths(&rows);
        for (k, link) in fresh.iter().enumerate() {
            let at = self.all.len() + k;
            let shrunk = before.as_ref().is_some_and(|before| lengths[at] <= VANISHED * before[k]);
            if shrunk || dependent.contains(&at) {
                return Err(self.degenerate(link, defect));
            }
        }
        Ok(fresh)
    }

    fn lengths(&self, rows: &[Row]) -> Vec<f64> {
        let length = |row: &Row| row.iter().map(|&(_, d)| d * d).sum::<f64>().sqrt();
        in_units(rows, &self.units).iter().map(length).collect()
    }

    /// Check that functions of the others vanish where these do.
    fn require_implied(&self, functions: &[Hidden], states: &[Vec<f64>]) -> Result<(), Irregular> {
        let nodes: Vec<Node> = functions.iter().map(|link| link.node).collect();
        let probe = self.probe(&nodes, functions);
        let points: Vec<_> = states.iter().map(|x| (x, probe.at(self.model.t0, x))).collect();
        for (k, link) in functions.iter().enumerate() {
            let misses = |(x, (values, rows)): &(&Vec<f64>, (Vec<f64>, Vec<Row>))| {
                let size = |&(i, d): &(u32, f64)| {
                    (d * self.units[i as usize].max(x[i as usize].abs())).abs()
                };
                values[k].abs() > VANISHING * rows[k].iter().map(size).sum::<f64>()
            };
            if points.iter().all(misses) {
                let value = points[0].1.0[k];
                let (name, chain) = (self.name(link), self.chain(link));
                return Err(Irregular::Inconsistent { name, value, chain });
            }
        }
        Ok(())
    }

    /// Structure, once all multipliers are determined.
    ///
    /// # Errors
    /// If brackets that vanish at the start do not do so elsewhere.
    fn finish(self, set: &Points) -> Result<Structure, Irregular> {
        let m = self.stated;
        for table in &set.brackets[1..] {
            for &(rows, here) in &self.ranks {
                let scaled = rank::equilibrated(&table[..rows * m], rows, m);
                let elsewhere = rank::rank(&scaled, rows, m, ROUNDING);
                if elsewhere > here {
                    return Err(Irregular::Exceptional { here, elsewhere });
                }
            }
        }
        let mut order: Vec<usize> = (m..self.all.len()).collect();
        order.sort_by_key(|&k| (self.all[k].order, self.all[k].of));
        let mut place: Vec<usize> = (0..self.all.len()).collect();
        order.iter().enumerate().for_each(|(k, &old)| place[old] = m + k);
        let pivots = self.pivots.iter().map(|&(row, column)| (place[row], column)).collect();
        let hidden = order.iter().map(|&k| self.all[k].clone()).collect();
        Ok(Structure { kind: ConstraintKind::Mixed, hidden, pivots })
    }

    /// Name of a constraint: `rod`, `rod.hidden`, `rod.hidden2`.
    fn name(&self, link: &Hidden) -> String {
        self.named(link.of, link.order)
    }

    fn named(&self, of: usize, order: u32) -> String {
        let scalars = self.model.constraints.iter().flat_map(|quantity| {
            let of_member = move |member: usize| {
                quantity.components.iter().map(move |c| (quantity, member, c.offset))
            };
            (0..quantity.members).flat_map(of_member)
        });
        let (quantity, member, offset) =
            scalars.into_iter().nth(of).expect("a constraint of the model");
        let name = quantity.member_name(member) + &component_suffix(quantity.shape, offset);
        super::hidden_name(&name, order)
    }

    /// Names of the constraints that lead to a hidden one.
    fn chain(&self, link: &Hidden) -> String {
        (0..link.order).map(|order| self.named(link.of, order)).collect::<Vec<_>>().join(", ")
    }

    fn degenerate(&self, link: &Hidden, defect: &'static str) -> Irregular {
        Irregular::Degenerate { name: self.name(link), chain: self.chain(link), defect }
    }
}
