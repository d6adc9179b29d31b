//! Multipliers that no rate determines: momenta that H does not feel, or a gauge freedom.

use super::{Generations, Points};
use crate::graph::Node;
use crate::graph::calculus::Gradient;
use crate::treatment::brackets::tangency;
use crate::treatment::structure::{Hidden, Irregular};

impl Generations<'_> {
    /// Multipliers that no pivot determines.
    pub(super) fn undetermined(&self) -> Vec<usize> {
        let is_free = |column: &usize| !self.pivots.iter().any(|(_, pivot)| pivot == column);
        (0..self.stated).filter(is_free).collect()
    }

    /// Momenta along the normals of constraints on positions whose multipliers are `free` because H
    /// does not feel these momenta.
    ///
    /// # Errors
    /// If one of the multipliers moves something else: it is arbitrary.
    pub(super) fn tangencies(
        &mut self,
        free: &[usize],
        set: &Points,
    ) -> Result<Vec<Hidden>, Irregular> {
        let n = self.model.degrees();
        let mut candidates = Vec::with_capacity(free.len());
        for &column in free {
            let combination = self.combination(column, set);
            let on_positions = |&(k, _): &(usize, Node)| {
                self.all[k].gradient.iter().all(|&(i, _)| (i as usize) < n)
            };
            if !combination.iter().all(on_positions) {
                return Err(self.gauge(&combination));
            }
            let mut gradient: Gradient = Vec::new();
            for (k, share) in &combination {
                for &(i, d) in &self.all[*k].gradient {
                    let g = &mut self.unrolled.graph;
                    let term = g.mul(*share, d);
                    match gradient.binary_search_by_key(&i, |&(j, _)| j) {
                        Ok(at) => gradient[at].1 = g.add(gradient[at].1, term),
                        Err(at) => gradient.insert(at, (i, term)),
                    }
                }
            }
            let order = self.all.iter().filter(|link| link.of == column).map(|link| link.order);
            let order = 1 + order.max().unwrap_or(0);
            candidates.push(Hidden { order, ..tangency(self.unrolled, column, &gradient) });
        }
        let combinations: Vec<_> = free.iter().map(|&k| self.combination(k, set)).collect();
        let fresh = self.fresh(candidates, set)?;
        let is_missing = |column: usize| !fresh.iter().any(|link| link.of == column);
        match free.iter().position(|&column| is_missing(column)) {
            Some(k) => Err(self.gauge(&combinations[k])),
            None => Ok(fresh),
        }
    }

    /// Combination of stated constraints with which all brackets of D vanish: shares of those whose
    /// multipliers are determined, beside 1 of `column`.
    fn combination(&mut self, column: usize, set: &Points) -> Vec<(usize, Node)> {
        let pivots = self.pivots.clone();
        let right: Vec<Node> =
            pivots.iter().map(|&(row, _)| self.bracket(row, column, set)).collect();
        let w = self.over_pivots(&right, set);
        let g = &mut self.unrolled.graph;
        let one = g.one();
        let mut shares = vec![(column, one)];
        for (&(_, other), w) in pivots.iter().zip(w) {
            if !g.is_zero(w) {
                shares.push((other, g.neg(w)));
            }
        }
        shares
    }

    /// Gauge freedom along a combination of constraints.
    fn gauge(&self, combination: &[(usize, Node)]) -> Irregular {
        /// Share, relative to the largest, below which a constraint or a component has no part.
        const NO_PART: f64 = 1e-7;
        let nodes: Vec<Node> = combination.iter().map(|&(_, share)| share).collect();
        let (shares, rows) =
            self.probe(&nodes, &self.all[..self.stated]).at(self.model.t0, &self.start);
        let most = shares.iter().fold(0.0f64, |most, share| most.max(share.abs()));
        let (n, mut moved) = (self.model.degrees(), vec![0.0; self.model.dimension()]);
        let mut terms = Vec::new();
        for (&(k, _), &share) in
            combination.iter().zip(&shares).filter(|(_, s)| s.abs() > NO_PART * most)
        {
            rows[k].iter().for_each(|&(i, d)| {
                let partner = if (i as usize) < n { i as usize + n } else { i as usize - n };
                moved[partner] += share * d;
            });
            let name = self.named(k, 0);
            terms.push(match share {
                1.0 => format!("'{name}'"),
                _ => format!("{} '{name}'", (share * 1e6).round() / 1e6),
            });
        }
        let relative: Vec<f64> =
            moved.iter().zip(&self.units).map(|(v, unit)| v.abs() / unit).collect();
        let fastest = relative.iter().fold(0.0f64, |most, &v| most.max(v));
        let names = self.model.component_names();
        let moves: Vec<String> = (names.into_iter().zip(relative))
            .filter(|(_, v)| *v > NO_PART * fastest)
            .map(|(name, _)| name)
            .collect();
        Irregular::Gauge { combination: terms.join(" + "), moves: moves.join(", ") }
    }
}
