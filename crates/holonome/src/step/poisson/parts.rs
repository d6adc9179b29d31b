//! Parts of the Hamiltonian of a Poisson system whose flows are known, found in the formulas.
//!
//! H is a sum of terms. Those whose variables commute are frozen along their own flow, so that the
//! others move by x_b' = Σ_a J_ba ∂H/∂x_a with constant ∂H/∂x_a: along a line, by an exponential, or
//! two of them on a circle. Terms of two members that do not commute are known for spins, whose J is
//! a multiple of hat(s), and for points in the plane with constant brackets.

use super::super::formula_space::FormulaSpace;
use super::super::summands::summands;
use super::entries;
use super::exact::{ExactPart, Move};
use crate::kernels::Formula;
use holonome_integrate::phase_space::Value;
use holonome_model::elaborate::model::Model;
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::poisson::Poisson;
use holonome_model::treatment::structure::{ambient_points, evaluate};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Part of its terms by which what should vanish may differ from 0 at random points.
const ROUNDED: f64 = 1e-11;

/// Number of parts with which a term is tried to be joined.
const MOST_TRIED: usize = 40;

/// Parts of H, in the order in which they act.
pub struct ExactParts {
    parts: Vec<ExactPart>,
}

impl ExactParts {
    /// Parts of the H of `model`.
    ///
    /// # Errors
    /// Names variables of a term whose flow is not known.
    pub fn new(model: &Model, poisson: &Poisson) -> Result<ExactParts, String> {
        let mut search = Search::new(model, poisson);
        let terms = search.terms(poisson).into_iter();
        let mut terms: Vec<(BTreeSet<u32>, Node)> =
            terms.map(|term| (search.moving_variables(term), term)).collect();
        // In an order that does not depend on how H is written: that of the model backwards in time
        // is the same.
        terms.sort_by(|a, b| a.0.cmp(&b.0));
        let (mut commuting, mut pairs): (Vec<Commuting>, BTreeMap<_, Vec<Node>>) =
            Default::default();
        for (reads, term) in terms {
            let members: BTreeSet<usize> =
                reads.iter().map(|&k| search.part_of[k as usize]).collect();
            if members.len() == 2 {
                pairs.entry(members).or_default().push(term);
            } else if !reads.is_empty() {
                search.join(&mut commuting, term, reads)?;
            }
        }
        let mut of_pairs = Vec::new();
        for (members, terms) in pairs {
            match search.pair(&members, &terms) {
                Some(part) => of_pairs.push(part),
                None => {
                    for term in terms {
                        let reads = search.moving_variables(term);
                        search.join(&mut commuting, term, reads)?;
                    }
                }
            }
        }
        let mut parts: Vec<ExactPart> = Vec::new();
        for Commuting { moves, .. } in commuting {
            let (moves, nodes): (Vec<Move>, Vec<Node>) = moves.into_iter().unzip();
            parts.push(ExactPart::Moves { moves, coefficients: search.formula(&nodes) });
        }
        parts.extend(of_pairs);
        Ok(ExactParts { parts })
    }

    /// Number of parts.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// State moved along the flow of a part for the time `tau`.
    pub fn flow(
        &self,
        space: &mut dyn FormulaSpace,
        part: usize,
        (t, tau): (Value, Value),
        x: &[Value],
    ) -> Vec<Value> {
        self.parts[part].flow(space, (t, tau), x)
    }
}

/// Terms whose variables commute.
struct Commuting {
    reads: BTreeSet<u32>,
    /// Derivatives of their sum.
    gradient: FxHashMap<u32, Node>,
    moves: Vec<(Move, Node)>,
}

/// Search of the parts of a model.
struct Search<'a> {
    model: &'a Model,
    g: Graph,
    /// Entries of J by row and column.
    entries: FxHashMap<(u32, u32), Node>,
    /// Rows of the entries of each column.
    rows: Vec<Vec<u32>>,
    /// Components that brackets connect, and the number of the list that each is in.
    connected: Vec<Vec<u32>>,
    part_of: Vec<usize>,
    /// Random states.
    states: Vec<Vec<f64>>,
}

impl Search<'_> {
    fn new<'a>(model: &'a Model, poisson: &Poisson) -> Search<'a> {
        let mut g = Graph::new();
        let entries = entries(poisson, &mut g);
        let mut rows = vec![Vec::new(); model.dimension()];
        for &(row, column) in entries.keys() {
            rows[column as usize].push(row);
        }
        rows.iter_mut().for_each(|rows| rows.sort_unstable());
        let connected = poisson.connected(model.dimension());
        let mut part_of = vec![0; model.dimension()];
        for (number, places) in connected.iter().enumerate() {
            places.iter().for_each(|&place| part_of[place as usize] = number);
        }
        let states = ambient_points(model, 3, 0x9a27);
        Search { model, g, entries, rows, connected, part_of, states }
    }

    fn formula(&self, nodes: &[Node]) -> Formula {
        Formula::unfused(&self.g, nodes)
    }

    /// Terms of H: the summands of its templates' rows.
    fn terms(&mut self, poisson: &Poisson) -> Vec<Node> {
        let h = poisson.hamiltonian.unroll(&mut self.g)[0];
        let mut g = std::mem::take(&mut self.g);
        let terms =
            summands(&mut g, h, |g, node| !moving_variables(g, &self.rows, node).is_empty());
        self.g = g;
        terms
    }

    /// Variables in a node whose brackets do not all vanish.
    fn moving_variables(&self, node: Node) -> BTreeSet<u32> {
        moving_variables(&self.g, &self.rows, node)
    }

    fn commute(&self, variables: &BTreeSet<u32>) -> bool {
        let moved = |k: &u32| self.rows[*k as usize].iter();
        variables.iter().flat_map(moved).all(|row| !variables.contains(row))
    }

    /// Adds a term to those with which it commutes and has a known flow, or to a part of its own.
    fn join(
        &mut self,
        all: &mut Vec<Commuting>,
        term: Node,
        reads: BTreeSet<u32>,
    ) -> Result<(), String> {
        if !self.commute(&reads) {
            return Err(self.unknown(
                &reads,
                "these do not commute, nor are they a function of s·r of two spins, or of |r − s| of two points in the plane",
            ));
        }
        let slopes = self.g.gradient(term);
        let tried = all.len().saturating_sub(MOST_TRIED);
        for part in all[tried..].iter_mut() {
            let union: BTreeSet<u32> = part.reads.union(&reads).copied().collect();
            if !self.commute(&union) {
                continue;
            }
            let mut gradient = part.gradient.clone();
            self.add_slopes(&mut gradient, &slopes);
            if let Some(moves) = self.moves_of(&union, &gradient) {
                *part = Commuting { reads: union, gradient, moves };
                return Ok(());
            }
        }
        let mut gradient = FxHashMap::default();
        self.add_slopes(&mut gradient, &slopes);
        let Some(moves) = self.moves_of(&reads, &gradient) else {
            return Err(self.unknown(
                &reads,
                "they move the others neither along lines, nor by exponentials, nor on circles",
            ));
        };
        all.push(Commuting { reads, gradient, moves });
        Ok(())
    }

    fn add_slopes(&mut self, gradient: &mut FxHashMap<u32, Node>, slopes: &[(u32, Node)]) {
        for &(k, slope) in slopes {
            let zero = self.g.zero();
            let sum = gradient.entry(k).or_insert(zero);
            *sum = self.g.add(*sum, slope);
        }
    }

    fn unknown(&self, variables: &BTreeSet<u32>, why: &str) -> String {
        const MOST: usize = 6;
        let names = self.model.component_names();
        let shown: Vec<&str> =
            variables.iter().take(MOST).map(|&k| names[k as usize].as_str()).collect();
        let more = if variables.len() > MOST { ", …" } else { "" };
        format!("the flow of the terms of H in {}{more} is not known: {why}", shown.join(", "))
    }

    /// Motion of all other variables by the slopes of variables that commute; `None` if it is not
    /// known.
    fn moves_of(
        &mut self,
        variables: &BTreeSet<u32>,
        gradient: &FxHashMap<u32, Node>,
    ) -> Option<Vec<(Move, Node)>> {
        let mut rates: BTreeMap<u32, Node> = BTreeMap::new();
        for &a in variables {
            let Some(&slope) = gradient.get(&a) else { continue };
            for &b in &self.rows[a as usize] {
                let product = self.g.mul(self.entries[&(b, a)], slope);
                let zero = self.g.zero();
                let rate = rates.entry(b).or_insert(zero);
                *rate = self.g.add(*rate, product);
            }
        }
        let moved: FxHashSet<u32> = rates.keys().copied().collect();
        let (mut moves, mut done) = (Vec::new(), FxHashSet::default());
        for (&b, &rate) in &rates {
            if self.g.is_zero(rate) || !done.insert(b) {
                continue;
            }
            moves.push(match self.slope_of_rate(rate, &moved)? {
                None => (Move::Line(b as usize), rate),
                Some((c, slope)) if c == b => (Move::Growth(b as usize), slope),
                Some((c, slope)) => {
                    let (back, other) = self.slope_of_rate(*rates.get(&c)?, &moved)??;
                    let sum = self.g.add(slope, other);
                    if back != b || !done.insert(c) || !self.vanishes(sum, &[slope, other]) {
                        return None;
                    }
                    (Move::Turn(b as usize, c as usize), slope)
                }
            });
        }
        Some(moves)
    }

    /// The one variable among the `moved` ones that a rate depends on, w x with a w that does not
    /// move; inside is `None` if there is none. `None` if the rate has another form.
    fn slope_of_rate(&mut self, rate: Node, moved: &FxHashSet<u32>) -> Option<Option<(u32, Node)>> {
        let slopes =
            self.g.adjoint(rate, |input| matches!(input, Input::State(k) if moved.contains(&k)));
        match slopes[..] {
            [] => Some(None),
            [(Input::State(k), slope)] => {
                let still = self.moving_variables(slope).iter().all(|k| !moved.contains(k));
                let x = self.g.state(k as usize);
                let linear = self.g.mul(slope, x);
                let rest = self.g.sub(rate, linear);
                (still && self.vanishes(rest, &[rate, linear])).then_some(Some((k, slope)))
            }
            _ => None,
        }
    }

    /// True if a node vanishes at random states, up to the rounding of what it is the difference of.
    fn vanishes(&self, node: Node, of: &[Node]) -> bool {
        let nodes = [&[node], of].concat();
        [0.0, 0.3, 1.7].iter().zip(&self.states).all(|(&t, x)| {
            let values = evaluate(&self.g, &nodes, t, x, &self.model.parameter_values);
            let size: f64 = values[1..].iter().map(|v| v.abs()).sum();
            values[0].abs() <= ROUNDED * size
        })
    }

    /// Part of terms whose variables belong to two members, if its flow is known.
    fn pair(&mut self, members: &BTreeSet<usize>, terms: &[Node]) -> Option<ExactPart> {
        let &[first, second] = &members.iter().copied().collect::<Vec<_>>()[..] else {
            return None;
        };
        let sum = self.g.sum(terms.iter().copied());
        let places = [first, second].map(|k| self.connected[k].clone());
        let gradient: FxHashMap<u32, Node> = self.g.gradient(sum).into_iter().collect();
        match [places[0].len(), places[1].len()] {
            [3, 3] => self.spins(&places, &gradient),
            [2, 2] => self.points(&places, &gradient),
            _ => None,
        }
    }

    /// Constant k with J = k hat(s) for the three components of a spin.
    fn spin(&mut self, s: &[u32]) -> Option<Node> {
        let zero = self.g.zero();
        let entry = |search: &Self, i: usize, j: usize| {
            search.entries.get(&(s[i], s[j])).copied().unwrap_or(zero)
        };
        let of_z = entry(self, 1, 0);
        let slopes = self.g.gradient(of_z);
        let &[(_, k)] = &slopes[..] else { return None };
        if !self.moving_variables(k).is_empty() {
            return None;
        }
        for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
            let x = if i == j { zero } else { self.g.state(s[3 - i - j] as usize) };
            let product = self.g.mul(k, x);
            let expected = if (i + 1) % 3 == j { self.g.neg(product) } else { product };
            let own = entry(self, i, j);
            let difference = self.g.sub(own, expected);
            if !self.vanishes(difference, &[own, expected]) {
                return None;
            }
        }
        Some(k)
    }

    /// Two spins whose term is a function of s·r.
    fn spins(
        &mut self,
        places: &[Vec<u32>; 2],
        gradient: &FxHashMap<u32, Node>,
    ) -> Option<ExactPart> {
        let factors = [self.spin(&places[0])?, self.spin(&places[1])?];
        let of = |search: &mut Self, k: usize| -> Vec<Node> {
            places[k].iter().map(|&place| search.g.state(place as usize)).collect()
        };
        let (s, r) = (of(self, 0), of(self, 1));
        let slopes = [0, 1].map(|k| slopes_at(&mut self.g, gradient, &places[k]));
        let c = self.ratio(&slopes[0], &r);
        self.are_multiples(c, &slopes[0], &r)?;
        self.are_multiples(c, &slopes[1], &s)?;
        let coefficients = self.formula(&[c, factors[0], factors[1]]);
        let members = [0, 1].map(|k| std::array::from_fn(|i| places[k][i] as usize));
        Some(ExactPart::Spins { members, coefficients })
    }

    /// Two points in the plane whose term is a function of |r − s|.
    fn points(
        &mut self,
        places: &[Vec<u32>; 2],
        gradient: &FxHashMap<u32, Node>,
    ) -> Option<ExactPart> {
        let mut brackets = Vec::new();
        for of in places {
            let bracket = *self.entries.get(&(of[0], of[1]))?;
            let reads = self.g.reachable(&[bracket]).into_iter();
            let mut states = reads.map(|node| self.g.expression(node));
            if states.any(|e| matches!(e, Expression::Input(Input::State(_)))) {
                return None;
            }
            brackets.push(bracket);
        }
        let difference = |search: &mut Self, i: usize| {
            let [a, b] = [0, 1].map(|k| search.g.state(places[k][i] as usize));
            search.g.sub(a, b)
        };
        let d = [difference(self, 0), difference(self, 1)];
        let slopes = [0, 1].map(|k| slopes_at(&mut self.g, gradient, &places[k]));
        let back = [self.g.neg(d[0]), self.g.neg(d[1])];
        let c = self.ratio(&slopes[0], &d);
        self.are_multiples(c, &slopes[0], &d)?;
        self.are_multiples(c, &slopes[1], &back)?;
        let coefficients = self.formula(&[c, brackets[0], brackets[1]]);
        let members = [0, 1].map(|k| std::array::from_fn(|i| places[k][i] as usize));
        Some(ExactPart::Points { members, coefficients })
    }

    /// c with a = c b, if there is one.
    fn ratio(&mut self, a: &[Node], b: &[Node]) -> Node {
        let (along, square) = (self.g.dot(a, b), self.g.dot(b, b));
        self.g.div(along, square)
    }

    fn are_multiples(&mut self, c: Node, a: &[Node], b: &[Node]) -> Option<()> {
        for (&a, &b) in a.iter().zip(b) {
            let product = self.g.mul(c, b);
            let difference = self.g.sub(a, product);
            if !self.vanishes(difference, &[a, product]) {
                return None;
            }
        }
        Some(())
    }
}

fn slopes_at(g: &mut Graph, gradient: &FxHashMap<u32, Node>, places: &[u32]) -> Vec<Node> {
    let zero = g.zero();
    places.iter().map(|place| gradient.get(place).copied().unwrap_or(zero)).collect()
}

/// See [`Search::moving_variables`].
fn moving_variables(g: &Graph, rows: &[Vec<u32>], node: Node) -> BTreeSet<u32> {
    let state = |node: Node| match g.expression(node) {
        Expression::Input(Input::State(k)) if !rows[k as usize].is_empty() => Some(k),
        _ => None,
    };
    g.reachable(&[node]).into_iter().filter_map(state).collect()
}
