//! Treatment of a step's result by formulas: one Gauss–Newton step towards F = F₀, or a projection,
//! in the metric of the step's error.

use super::formula::Formula;
use super::monitoring::is_small;
use super::vectors::StateVectors;
use crate::policy::LONGEST_MENDING;
use holonome_arithmetic::{Real, in_pairs};
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::plan::Plan;
use holonome_integrate::scales::{Kept, UNIT_ROUND_OFF, Vectors};
use holonome_integrate::state::Cost;
use holonome_integrate::treatment::correction::{
    CORRECTIONS_WITHIN, MOST_WIDENED, NEIGHBOURS_FLOOR, constraints_are_claims, largest_innovation,
};
use holonome_integrate::treatment::{kept, projects_by_error};
use holonome_linear::dense::{PIVOT_TOLERANCE, REGULARISATION};
use holonome_linear::ordering::{minimum_degree_after, neighbours};
use holonome_model::graph::linear::{Factors, Matrix};
use holonome_model::graph::value::{Recording, Truth, Value, nodes};
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::{Field, InvariantGroup, InvariantKind};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;

/// Treatment of a step's result by formulas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mend {
    /// Correction.
    Corrects,
    /// Projection, to a distance from the invariants that is near enough; in the metric of the
    /// step's error or in the Euclidean one.
    Projects { by_error: bool, tolerance: f64 },
}

/// Iterations of a projection. Each multiplies the remaining distance by the step's error: after
/// the third it is round-off if the step's error was below 1e-4. After steps with larger errors the
/// iteration goes on by itself. One iteration takes a tenth of the time of a step of the spherical
/// pendulum by `rk4`.
pub(super) const ITERATIONS: u64 = 3;

impl Mend {
    /// Treatment of results by `plan` over `field`; `None` if there is nothing to be done, or if it
    /// is not done by formulas.
    pub fn of(plan: &Plan, field: &Field) -> Option<Mend> {
        let mends = !field.invariants.is_empty()
            && is_small(field)
            && elimination(field).1 <= LONGEST_MENDING;
        match effective_treatment(plan, field) {
            MethodTreatment::Corrected if mends => Some(Mend::Corrects),
            MethodTreatment::Projection if mends => Some(Mend::Projects {
                by_error: projects_by_error(plan),
                tolerance: plan.projection_tolerance.unwrap_or(0.0),
            }),
            _ => None,
        }
    }

    /// Number of times that a state within a step is treated.
    pub fn passes_within(self) -> usize {
        match self {
            Mend::Corrects => CORRECTIONS_WITHIN,
            Mend::Projects { .. } => 1,
        }
    }

    /// Carried scales that the treatment takes, for `count` vectors.
    fn scales(self, count: usize) -> Range<usize> {
        match self {
            Mend::Corrects => count..2 * count,
            Mend::Projects { by_error: true, .. } => 0..2 * count,
            Mend::Projects { by_error: false, .. } => 0..count,
        }
    }

    /// Scales that a run of `plan` keeps if this is done to the results of its steps, or if nothing
    /// is.
    pub fn kept(mend: Option<Mend>, plan: &Plan) -> Kept {
        let weights =
            mend.is_some_and(|mend| !matches!(mend, Mend::Projects { by_error: false, .. }));
        kept(plan, mend.is_some(), weights)
    }

    /// Add the cost of `count` treatments.
    pub fn count(self, count: u64, cost: &mut Cost) {
        match self {
            Mend::Corrects => cost.count_corrections(count),
            Mend::Projects { .. } => cost.count_projections(count, ITERATIONS),
        }
    }
}

/// [`Mend`] as a formula of (x, targets, scales, the limit of a correction).
pub struct Mending {
    pub mend: Mend,
    pub formula: Formula,
    pub largest_innovation: f64,
    /// Carried scales that the formula takes.
    pub scales: Range<usize>,
}

/// Mended state.
pub struct Mended {
    /// x.
    pub x: Vec<Node>,
    /// For a correction the square of the innovation; for a projection that of the distance by
    /// which it moved x, infinite if it has not arrived.
    pub unsettled: Node,
}

impl Mending {
    /// Formula of `mend` over `field`. The targets F₀ and the scales are states after x.
    pub fn new(field: &Field, vectors: &StateVectors, mend: Mend) -> Mending {
        let (first, count) = (field.dimension + field.invariants.len(), vectors.vectors.count());
        let taken = mend.scales(count);
        let mut graph = field.graph.clone();
        let outputs = graph.record(|r| {
            let scales = r.states(first..first + taken.len());
            let limit = r.state(first + taken.len());
            let rows = Rows::of(r, field, &vectors.vectors);
            nodes(&match mend {
                Mend::Corrects => rows.corrected(&scales, limit),
                Mend::Projects { tolerance, .. } => {
                    rows.projected(scales.split_at(count), tolerance)
                }
            })
        });
        Mending {
            mend,
            formula: Formula::new(&graph, &outputs),
            largest_innovation: largest_innovation(count),
            scales: taken,
        }
    }

    /// Mended state at the end of a step, from t, x and the targets, with the scales that the
    /// formula takes.
    pub fn at_end(&self, g: &mut Graph, t: Node, inputs: &[Node], scales: &[Node]) -> Mended {
        let limit = g.constant(self.largest_innovation);
        self.at(g, t, inputs, (scales, limit))
    }

    /// Mended state with a limit of a correction.
    pub fn at(
        &self,
        g: &mut Graph,
        t: Node,
        inputs: &[Node],
        (scales, limit): (&[Node], Node),
    ) -> Mended {
        let mut x = self.formula.at(g, t, &[inputs, scales, &[limit]].concat());
        let unsettled = x.pop().expect("it follows the state");
        Mended { x, unsettled }
    }
}

/// Squares of rows between which nothing overflows, nor loses digits to underflow.
const SQUARES: [f64; 2] = [1e-250, 1e250];

/// Order in which the rows of D W Dᵀ are eliminated with little fill, the constraints before the
/// others, and the number of products that the elimination takes.
fn elimination(field: &Field) -> (Vec<usize>, usize) {
    let m = field.invariants.len();
    let mut by_component = vec![Vec::new(); field.dimension];
    for (row, gradient) in field.jacobian.iter().enumerate() {
        gradient.iter().for_each(|&(k, _)| by_component[k as usize].push(row as u32));
    }
    let pairs: Vec<(u32, u32)> = by_component
        .iter()
        .flat_map(|rows| rows.iter().flat_map(|&i| rows.iter().map(move |&j| (i, j))))
        .filter(|(i, j)| i < j)
        .collect();
    let is_late = |row: u32| row as usize >= field.constraints;
    let mut order = minimum_degree_after(&neighbours(m, &pairs), is_late);
    // Rows with many neighbours are the last of all, whatever they are.
    order.sort_by_key(|&row| is_late(row));
    let mut place = vec![0; m];
    order.iter().enumerate().for_each(|(at, &row)| place[row as usize] = at);
    let mut joined = vec![BTreeSet::new(); m];
    for (i, j) in pairs {
        let (i, j) = (place[i as usize], place[j as usize]);
        joined[i.min(j)].insert(i.max(j));
    }
    let mut products = 0;
    for at in 0..m {
        let later: Vec<usize> = std::mem::take(&mut joined[at]).into_iter().collect();
        products += later.len() * (later.len() + 1) / 2;
        if let Some((&next, rest)) = later.split_first() {
            // The others follow from the next row's, which has all of them.
            joined[next].extend(rest);
        }
    }
    (order.into_iter().map(|row| row as usize).collect(), products)
}

/// Sparse row: components of the state and their entries.
type Row<'r> = Vec<(usize, Value<'r>)>;

/// Rows of F at the state that is mended.
struct Rows<'a, 'r> {
    r: &'r Recording,
    field: &'a Field,
    vectors: &'a Vectors,
    vector_of: Vec<usize>,
    x: Vec<Value<'r>>,
    /// DF.
    gradients: Vec<Row<'r>>,
    /// Rows in the order of their elimination, in which μ and the factors are.
    order: Vec<usize>,
    /// F₀, of rows that are not constraints.
    targets: Vec<Option<Value<'r>>>,
    /// F − F₀, and 0 in rows without a gradient. These are monitored only: their residual says
    /// nothing about a step's error.
    residual: Vec<Value<'r>>,
}

impl<'a, 'r> Rows<'a, 'r> {
    fn of(r: &'r Recording, field: &'a Field, vectors: &'a Vectors) -> Rows<'a, 'r> {
        let (n, m) = (field.dimension, field.invariants.len());
        let target = |row: usize| (row >= field.constraints).then(|| r.state(n + row));
        let gradient = |row: &Vec<(u32, Node)>| -> Row<'r> {
            row.iter().map(|&(k, entry)| (k as usize, r.value(entry))).collect()
        };
        let mut rows = Rows {
            r,
            field,
            vectors,
            vector_of: (0..n).map(|component| vectors.vector_of(component)).collect(),
            x: Vec::new(),
            gradients: field.jacobian.iter().map(gradient).collect(),
            order: elimination(field).0,
            targets: (0..m).map(target).collect(),
            residual: Vec::new(),
        };
        rows.residual = rows.residual_of(&field.invariants);
        rows.x = r.states(0..n);
        rows
    }

    /// F − F₀ for these values of F.
    fn residual_of(&self, values: &[Node]) -> Vec<Value<'r>> {
        let of_row = |(row, &value): (usize, &Node)| match self.targets[row] {
            _ if self.gradients[row].is_empty() => self.r.constant(0.0),
            Some(target) => self.r.value(value) - target,
            None => self.r.value(value),
        };
        values.iter().enumerate().map(of_row).collect()
    }

    /// Number of rows among these that have a gradient.
    fn count(&self, rows: Range<usize>) -> usize {
        self.gradients[rows].iter().filter(|row| !row.is_empty()).count()
    }

    /// Σ |∂_jF_i x_j| + |F₀_i| for components of these sizes.
    fn size_of_terms(&self, row: usize, x: impl Fn(usize) -> Value<'r>) -> Value<'r> {
        let terms: Row = self.gradients[row].iter().map(|&(k, entry)| (k, entry * x(k))).collect();
        let terms = terms.into_iter().map(|(_, term)| term).chain(self.targets[row]);
        let sizes = terms.map(|term| term.abs()).collect();
        in_pairs(sizes, |a, b| a + b).unwrap_or(self.r.constant(0.0))
    }

    /// R of every row of F.
    fn noises(&self) -> Vec<Value<'r>> {
        let noise = |row: usize| {
            let noise = self.size_of_terms(row, |k| self.x[k]) * UNIT_ROUND_OFF;
            noise * noise
        };
        (0..self.gradients.len()).map(noise).collect()
    }

    /// W v for a row v; `weights` are the w² of the vectors.
    fn weigh(&self, row: &Row<'r>, weights: &[Value<'r>]) -> Row<'r> {
        row.iter().map(|&(k, entry)| (k, entry * weights[self.vector_of[k]])).collect()
    }

    fn dot(&self, a: &Row<'r>, b: &Row<'r>) -> Value<'r> {
        let place = |k: usize| b.binary_search_by_key(&k, |&(k, _)| k).ok();
        let products = a.iter().filter_map(|&(k, entry)| Some(entry * b[place(k)?].1));
        products.fold(self.r.constant(0.0), |sum, product| sum + product)
    }

    /// W Dᵀ by rows of D, and D W Dᵀ up to its diagonal.
    fn products(&self, weights: &[Value<'r>]) -> (Vec<Row<'r>>, Vec<Vec<Value<'r>>>) {
        let rows = self.gradients.iter();
        let weighted: Vec<Row> = rows.map(|row| self.weigh(row, weights)).collect();
        let of_row = |(i, row): (usize, &Row<'r>)| {
            weighted[..=i].iter().map(|other| self.dot(row, other)).collect()
        };
        let products = self.gradients.iter().enumerate().map(of_row).collect();
        (weighted, products)
    }

    /// Factors of a symmetric matrix that is given up to its diagonal.
    fn factors(&self, lower: &[Vec<Value<'r>>]) -> Factors {
        self.r.nodes(|g| {
            let mut matrix = Matrix::zeros(g, lower.len());
            for (i, &row) in self.order.iter().enumerate() {
                for (j, &other) in self.order[..=i].iter().enumerate() {
                    matrix.set(i, j, lower[row.max(other)][row.min(other)].node());
                }
            }
            Factors::semidefinite(g, &matrix, PIVOT_TOLERANCE)
        })
    }

    /// F − F₀ in the order of elimination.
    fn in_order(&self, residual: &[Value<'r>]) -> Vec<Value<'r>> {
        self.order.iter().map(|&row| residual[row]).collect()
    }

    fn solved(
        &self,
        solve: impl FnOnce(&mut Graph, &[Node]) -> Vec<Node>,
        b: &[Value<'r>],
    ) -> Vec<Value<'r>> {
        self.r.values(&self.r.nodes(|g| solve(g, &nodes(b))))
    }

    /// Sum over the components of a vector.
    fn sum_over(&self, vector: usize, term: impl Fn(usize) -> Value<'r>) -> Value<'r> {
        let components = self.vectors.components_of(vector);
        components.map(term).fold(self.r.constant(0.0), |sum, term| sum + term)
    }

    /// State and the square of its innovation, of H and the integrals or, if it is larger and
    /// counts, of the constraints: x − W DᵀM⁻¹ΔF with M = D W Dᵀ + R, where the contribution of H
    /// and the integrals beyond the constraints is limited, as in
    /// `holonome_integrate::treatment::correction`. `weights` are the w² of the vectors.
    ///
    /// The state is infinite where the square of a row overflows or underflows: it has to be found
    /// with scaled rows there.
    fn corrected(&self, weights: &[Value<'r>], limit: Value<'r>) -> Vec<Value<'r>> {
        let (r, constraints, m) = (self.r, self.field.constraints, self.residual.len());
        let noises = self.noises();
        let (weighted, mut matrix) = self.products(&self.widened(weights, &noises));
        let (zero, one) = (r.constant(0.0), r.constant(1.0));
        let mut in_range = r.truth(one.node());
        for (i, &noise) in noises.iter().enumerate() {
            let square = matrix[i][i] + noise;
            if !self.gradients[i].is_empty() {
                in_range = in_range & is_in_range(square, self.residual[i]);
            }
            let shift = if i >= constraints { REGULARISATION } else { 0.0 };
            matrix[i][i] = square * (1.0 + shift);
        }
        let factors = self.factors(&matrix);
        let residual = self.in_order(&self.residual);
        let forward = self.solved(|g, b| factors.forward(g, b), &residual);
        // ν² and the limit.
        let (mut divided, mut sums) = (Vec::with_capacity(m), [zero; 2]);
        for (i, (y, inverse)) in
            forward.into_iter().zip(r.values(factors.inverse_pivots())).enumerate()
        {
            let (quotient, sum) = (y * inverse, &mut sums[usize::from(i >= constraints)]);
            divided.push(quotient);
            *sum = *sum + y * quotient;
        }
        let mean = |rows: Range<usize>| 1.0 / self.count(rows).max(1) as f64;
        let innovation = sums[1] * mean(constraints..m);
        // The displacements by the constraints and by the others apart: the limit is waited for
        // only at the end.
        let backward = |b: &[Value<'r>]| self.solved(|g, b| factors.backward(g, b), b);
        let mut displaced = self.displacement(&weighted, &backward(&divided[..constraints]));
        if constraints < m {
            let (square_of_limit, part) = (limit * limit, limit / innovation.sqrt());
            let factor = Value::select(innovation.at_most(square_of_limit), one, part);
            divided[..constraints].fill(zero);
            let by_others = self.displacement(&weighted, &backward(&divided));
            displaced.iter_mut().zip(by_others).for_each(|(all, part)| *all = *all + factor * part);
        }
        let mut x: Vec<Value> = self.x.iter().zip(displaced).map(|(&x, d)| x - d).collect();
        if let Some(x) = x.first_mut() {
            *x = Value::select(in_range, *x, r.constant(f64::INFINITY));
        }
        x.push(match constraints_are_claims(self.vectors) && constraints > 0 {
            true => (sums[0] * mean(0..constraints)).largest(innovation),
            false => innovation,
        });
        x
    }

    /// W Dᵀμ for the first rows of D W to be eliminated, as many as μ has; the last row first, as
    /// `Factors::backward` finds them.
    fn displacement(&self, weighted: &[Row<'r>], mu: &[Value<'r>]) -> Vec<Value<'r>> {
        let mut sums = vec![self.r.constant(0.0); self.x.len()];
        for (&row, &mu) in self.order.iter().zip(mu).rev() {
            weighted[row].iter().for_each(|&(k, entry)| sums[k] = sums[k] + mu * entry);
        }
        sums
    }

    /// State, and the square of the distance by which it was moved, each vector relative to its
    /// size, or infinity if F = F₀ is not reached: by the iteration of
    /// `holonome_integrate::treatment::projection`, from σ² and w² of the vectors; without w², in
    /// the Euclidean metric. A `tolerance` is a distance from F = F₀.
    fn projected(
        &self,
        (sizes, weights): (&[Value<'r>], &[Value<'r>]),
        tolerance: f64,
    ) -> Vec<Value<'r>> {
        let (r, m) = (self.r, self.residual.len());
        let [zero, one, infinite] = [0.0, 1.0, f64::INFINITY].map(|number| r.constant(number));
        let weights = match weights.is_empty() {
            true => vec![one; sizes.len()],
            false => self.widened(weights, &self.noises()),
        };
        let squares = sizes
            .iter()
            .enumerate()
            .map(|(vector, &size)| self.sum_over(vector, |k| self.x[k] * self.x[k]).largest(size));
        let squares: Vec<Value> = squares.collect();
        let limits = self.limits(&squares, tolerance);
        let (weighted, matrix) = self.products(&weights);
        let factors = self.factors(&matrix);
        let (mut mu, mut x, mut residual) = (vec![zero; m], self.x.clone(), self.residual.clone());
        for _ in 0..ITERATIONS {
            let step = self.solved(|g, b| factors.solve(g, b), &self.in_order(&residual));
            mu.iter_mut().zip(step).for_each(|(mu, step)| *mu = *mu + step);
            x.clone_from(&self.x);
            for (&row, &mu) in self.order.iter().zip(&mu) {
                weighted[row].iter().for_each(|&(k, entry)| x[k] = x[k] - mu * entry);
            }
            let replaced: FxHashMap<Node, Node> =
                self.x.iter().zip(&x).map(|(before, x)| (before.node(), x.node())).collect();
            let values = r.nodes(|g| g.substituted(&self.field.invariants, &replaced));
            residual = self.residual_of(&values);
        }
        let held = (0..m).filter(|&row| !self.gradients[row].is_empty());
        let arrived = held
            .fold(r.truth(one.node()), |all, row| all & residual[row].abs().at_most(limits[row]));
        let moved = squares.iter().enumerate().fold(zero, |sum, (vector, &size)| {
            let square = self.sum_over(vector, |k| {
                let moved = x[k] - self.x[k];
                moved * moved
            });
            sum + Value::select(size.at_most(zero), zero, square / size)
        });
        x.push(Value::select(arrived, moved, infinite));
        x
    }

    /// Residuals at which rows have arrived, from the squares of the vectors' sizes.
    fn limits(&self, squares: &[Value<'r>], tolerance: f64) -> Vec<Value<'r>> {
        let [zero, one] = [0.0, 1.0].map(|number| self.r.constant(number));
        let sizes: Vec<Value> = squares.iter().map(|square| square.sqrt()).collect();
        let limit = |row: usize| {
            // Twice, for F and for its target.
            let size = self.size_of_terms(row, |k| sizes[self.vector_of[k]]);
            let limit = size * (2.0 * f64::EPSILON);
            if tolerance == 0.0 {
                return limit;
            }
            let square = self.dot(&self.gradients[row], &self.gradients[row]);
            let gradient = Value::select(square.at_most(zero), one, square.sqrt());
            limit.larger(gradient * tolerance)
        };
        (0..self.gradients.len()).map(limit).collect()
    }

    /// w² of the vectors, with those of momenta wide enough to explain the hidden constraints, as
    /// in `holonome_integrate::treatment::correction`.
    fn widened(&self, weights: &[Value<'r>], noises: &[Value<'r>]) -> Vec<Value<'r>> {
        let is_hidden = |group: &&InvariantGroup| matches!(group.kind, InvariantKind::Hidden(_));
        let groups = self.field.groups.iter().filter(is_hidden);
        let hidden: Vec<usize> =
            groups.flat_map(|group| group.members.rows().map(|(row, _)| row)).collect();
        let mut concerned = vec![false; weights.len()];
        for &(k, _) in hidden.iter().flat_map(|&row| &self.gradients[row]) {
            concerned[self.vector_of[k]] |= k >= self.x.len() / 2;
        }
        let mut floored = weights.to_vec();
        for family in self.vectors.families() {
            let members = || family.vectors.clone().filter(|&vector| concerned[vector]);
            let largest = members().map(|vector| weights[vector]).reduce(|a, b| b.largest(a));
            if let Some(largest) = largest.filter(|_| members().count() > 1) {
                let floor = largest * (NEIGHBOURS_FLOOR * NEIGHBOURS_FLOOR);
                members().for_each(|vector| floored[vector] = weights[vector].largest(floor));
            }
        }
        if hidden.is_empty() {
            return floored;
        }
        let limit = largest_innovation(self.vectors.count());
        let [limit, zero, one, most] =
            [limit * limit, 0.0, 1.0, MOST_WIDENED].map(|number| self.r.constant(number));
        let believed = |row: usize, weights: &[Value<'r>]| {
            let weighted = self.weigh(&self.gradients[row], weights);
            (self.dot(&self.gradients[row], &weighted) + noises[row]) * limit
        };
        // 0 if every residual is believed.
        let widest = hidden.iter().fold(zero, |widest, &row| {
            let square = self.residual[row] * self.residual[row];
            let [own, with_floor] = [weights, &floored].map(|weights| believed(row, weights));
            let factor = (square / with_floor).smaller(most).largest(one);
            Value::select(square.at_most(own), zero, factor).largest(widest)
        });
        let widens = one.at_most(widest);
        let wide = |(vector, &weight): (usize, &Value<'r>)| match concerned[vector] {
            true => Value::select(widens, floored[vector] * widest, weight),
            false => weight,
        };
        weights.iter().enumerate().map(wide).collect()
    }
}

/// Condition that the square of a row can be computed with, or that there is nothing to correct.
fn is_in_range<'r>(square: Value<'r>, residual: Value<'r>) -> Truth<'r> {
    let [least, most, zero] = [SQUARES[0], SQUARES[1], 0.0].map(|number| square.constant(number));
    (least.at_most(square) | residual.equals(zero)) & square.at_most(most)
}

/// Treatment of a method over `field`; plain if there is nothing to correct.
pub(super) fn effective_treatment(plan: &Plan, field: &Field) -> MethodTreatment {
    match plan.method.treatment {
        MethodTreatment::Feedback => MethodTreatment::Feedback,
        _ if field.groups.iter().all(|group| group.monitored_only) => MethodTreatment::Plain,
        treatment => treatment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::CompiledSystem;
    use crate::{Problem, Settings};
    use holonome_integrate::noise::Noise;
    use holonome_integrate::observer::Recorder;
    use holonome_integrate::run::run;
    use holonome_integrate::scales::Scales;
    use holonome_integrate::state::StepState;
    use holonome_integrate::system::{Place, System};
    use holonome_integrate::treatment::projection::Projection;
    use holonome_model::elaborate::model::Model;
    use std::sync::Arc;

    /// State on the way of a run, where nothing is at rest.
    fn moving(field: &Arc<Field>, vectors: &Arc<StateVectors>, model: &Model) -> Vec<f64> {
        let system = CompiledSystem::new(field, vectors, &model.parameter_values, true, None);
        let plan = Plan::adaptive(
            "corrected:dop853".parse().unwrap(),
            model.t0,
            model.t0 + 1.0,
            1e-10,
            0.0,
        )
        .unwrap();
        let mut state = StepState::new(&plan, &system, &model.initial, None);
        run(&plan, &system, &mut state, &mut Recorder::default()).unwrap();
        state.x
    }

    #[test]
    fn elimination_keeps_constraints_first_and_chains_short() {
        let eliminated = |name: &str, n: &str| {
            let set = vec![("n".to_string(), n.to_string())];
            let path = format!("{}/../../models/{name}.holo", env!("CARGO_MANIFEST_DIR"));
            let problem = Problem::load(path, &Settings { set, ..Settings::default() }).unwrap();
            let field = problem.model.field().unwrap().0;
            let (order, products) = elimination(&field);
            assert_eq!(order.len(), field.invariants.len());
            let others = order.iter().position(|&row| row >= field.constraints);
            assert_eq!(others, Some(field.constraints), "{order:?}");
            products
        };
        let [short, long] = ["20", "40"].map(|n| eliminated("chain", n));
        // A link adds the same number of products wherever it is, but at the ends.
        assert!(long < 2 * short + 40, "{short} and {long} products");
    }

    /// Test that, at these distances from the invariants, the formulas find the iteration's result
    /// or leave it to the iteration.
    #[test]
    fn a_projection_by_formulas_is_the_iteration() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        let (mut by_formulas, mut left) = (0, 0);
        for (name, set) in [
            ("models/spherical-pendulum", &[][..]),
            ("models/double-pendulum", &[]),
            ("models/kepler", &[]),
            ("models/chain", &[("n", "4")]),
            // Many rows, which are eliminated in an order of their own.
            ("models/chain", &[("n", "20")]),
            // Light beside heavy: the metric matters.
            (
                "suite/models/double-spherical-pendulum",
                &[("m", "(1, 1e-3)"), ("pb", "1e-3*(0.4, 0.5, -0.3)")],
            ),
        ] {
            let set =
                set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let settings = Settings { set, ..Settings::default() };
            let problem = Problem::load(format!("{folder}{name}.holo"), &settings)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let model = &problem.model;
            let field = Arc::new(model.field().unwrap().0);
            let vectors = StateVectors::of(model);
            let x0 = &moving(&field, &vectors, model);
            for (by_error, tolerance) in [(true, 0.0), (false, 0.0), (true, 1e-7)] {
                let mend = Mend::Projects { by_error, tolerance };
                let system = CompiledSystem::new(
                    &field,
                    &vectors,
                    &model.parameter_values,
                    true,
                    Some(mend),
                );
                let (m, groups) = (system.invariants().count, system.invariants().groups.len());
                let mut work = vec![0.0; system.work_len()];
                let mut target = vec![0.0; m];
                system.invariant_values(model.t0, x0, &mut target, &mut work);
                target[..field.constraints].fill(0.0);
                let kept = Kept { sizes: true, weights: by_error, lagged: false };
                for (k, off) in [1e-9, 1e-6, 1e-4, 0.03].into_iter().enumerate() {
                    let noise = Noise::new(7, k as u32);
                    let start: Vec<f64> = x0
                        .iter()
                        .enumerate()
                        .map(|(i, x)| x + off * noise.normal(i as u64, 0))
                        .collect();
                    let mut scales = Scales::new(&vectors.vectors, kept, Vec::new(), x0);
                    if by_error {
                        scales.start_off(vectors.vectors.count(), off);
                    }
                    let (mut values, mut deviations) = (vec![0.0; m], vec![0.0; groups]);
                    let mut x = start.clone();
                    let at = (model.t0, &target[..], &scales.carried[..]);
                    let found = system.mend(
                        Place::End,
                        at,
                        &mut x,
                        &mut values,
                        &mut deviations,
                        &mut work,
                    );
                    let mut expected = start.clone();
                    let mut projection = Projection::new(&system, tolerance, by_error);
                    let at = ((model.t0, 0.01), &target[..], &scales);
                    let (mut f, mut drift, mut cost) =
                        (vec![0.0; m], vec![0.0; groups], Cost::default());
                    let done = projection.apply(
                        &system,
                        at,
                        &mut expected,
                        &mut f,
                        &mut drift,
                        &mut work,
                        &mut cost,
                    );
                    match found {
                        None => {
                            left += 1;
                            assert_eq!(x, start, "{name}: what has not arrived moves nothing");
                            assert!(off > 1e-5, "{name}: {off} is near");
                        }
                        Some(_) => {
                            by_formulas += 1;
                            done.unwrap();
                            // Round-off of F, a few units, over its gradient: of the size of x and
                            // not of the move. A looser tolerance stops before three iterations
                            // have been made.
                            let near = if tolerance > 0.0 { 2.0 * tolerance } else { 1e-13 };
                            for (i, (x, expected)) in x.iter().zip(&expected).enumerate() {
                                assert!(
                                    (x - expected).abs() <= near,
                                    "{name}, {off}: {x} {expected} at {i}"
                                );
                            }
                        }
                    }
                }
            }
        }
        assert!(by_formulas >= 20 && left >= 6, "{by_formulas} by formulas, {left} not");
    }
}
