//! Structure of a model's constraints, found from formulas and from numbers.

use super::Field;
use super::unrolled::{Scalar, Unrolled};
use crate::elaborate::model::Model;
use crate::graph::aligned::Aligned;
use crate::graph::calculus::Gradient;
use crate::graph::interpret::{Backend, Interpreter, Kernel};
use crate::graph::tape::Tape;
use crate::graph::{Graph, Node};
use crate::points::Points;
use crate::scales::{Scales, in_units};
use holonome_linear::gram::{Gram, Row};
use holonome_linear::rank;

/// Kind of constraints, by the origin of the second-class functions f (`{f, g}` is the Poisson
/// bracket).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstraintKind {
    /// No constraints, or a state model, whose field is given.
    Free,
    /// Constraints on positions (and time) only; f = (g, hidden).
    Holonomic,
    /// Rolling constraints, beside others on positions only: with d'Alembert's forces, and hidden
    /// constraints of the others.
    Nonholonomic,
    /// Phase-space constraints with regular {gᵢ, gⱼ}: f = g, no hidden constraints.
    SecondClass,
    /// Phase-space constraints with {gᵢ, gⱼ} = 0 on the set (coisotropic); f = (g, hidden).
    Coisotropic,
}

/// A hidden constraint.
#[derive(Clone, Debug)]
pub struct Hidden {
    /// G H_p + g_t, in general {g, H} + g_t; or G p if that vanishes identically.
    pub node: Node,
    /// Gradient of the node.
    pub gradient: Gradient,
    /// True if it is G p, because H does not depend on the momentum along the constraint's normal.
    pub tangency: bool,
}

/// The structure of a model's constraints.
#[derive(Clone, Debug)]
pub struct Structure {
    /// Kind of the constraints.
    pub kind: ConstraintKind,
    /// Hidden constraints, one for each scalar constraint in order, without those of rolling; empty
    /// if there are none.
    pub hidden: Vec<Hidden>,
}

/// Reason why a model's constraints have no Dirac bracket.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Irregular {
    /// Some brackets vanish and others do not.
    #[error(
        "the constraints {names} are neither second class among themselves (their brackets form a matrix of rank {rank} where {size} is needed) nor do all their brackets vanish"
    )]
    Mixed {
        /// Names of the constraints.
        names: String,
        /// Rank found.
        rank: usize,
        /// Rank needed.
        size: usize,
    },
    /// Rolling constraints beside constraints on momenta.
    #[error(
        "rolling constraints go with constraints on positions, and {name} is one on momenta: only one of them can have d'Alembert's forces"
    )]
    RollingBesideMomenta {
        /// Name of a constraint on momenta.
        name: String,
    },
    /// The matrix of brackets of f is singular at the initial state.
    #[error(
        "the brackets of the constraints and their hidden constraints form a singular matrix at the initial state (rank {rank} of {size}){hint}"
    )]
    Singular {
        /// Rank found.
        rank: usize,
        /// Rank needed.
        size: usize,
        /// Possible cause.
        hint: &'static str,
    },
}

/// Compiled nodes and sparse gradients of a graph.
pub struct Formulas {
    nodes: usize,
    /// Columns of each gradient.
    columns: Vec<Vec<u32>>,
    kernel: Box<dyn Kernel>,
}

impl Formulas {
    /// Compiles nodes and gradients for states of length `states` and `parameters` parameters.
    pub fn new(
        graph: &Graph,
        nodes: &[Node],
        gradients: &[&Gradient],
        states: usize,
        parameters: usize,
    ) -> Formulas {
        let entries = gradients.iter().flat_map(|r| r.iter().map(|&(_, n)| n));
        let outputs: Vec<Node> = nodes.iter().copied().chain(entries).collect();
        let kernel = Interpreter
            .compile(&Tape::new(graph, &outputs, states, parameters), 1)
            .expect("the interpreter never refuses");
        let columns = gradients.iter().map(|r| r.iter().map(|&(c, _)| c).collect()).collect();
        Formulas { nodes: nodes.len(), columns, kernel }
    }

    /// The parameters in the form that [`Formulas::at`] takes.
    pub fn bind(&self, parameters: &[f64]) -> Aligned {
        self.kernel.bind(parameters)
    }

    /// Values of the nodes, and the gradients as rows, at (t, x).
    pub fn at(&self, bound: &[f64], t: f64, x: &[f64]) -> (Vec<f64>, Vec<Row>) {
        let mut out = vec![0.0; self.kernel.outputs()];
        self.kernel.run(bound, &[t], x, &mut out, &mut vec![0.0; self.kernel.work_len()]);
        let mut entries = out.split_off(self.nodes).into_iter();
        let row = |columns: &Vec<u32>| {
            columns.iter().map(|&c| (c, entries.next().expect("one for each node"))).collect()
        };
        (out, self.columns.iter().map(row).collect())
    }
}

/// [`Formulas`] with their parameters, for evaluation at many points.
pub struct Probe {
    formulas: Formulas,
    bound: Aligned,
}

impl Probe {
    /// Compiles nodes and gradients for states of length `states`.
    pub fn new(
        graph: &Graph,
        nodes: &[Node],
        gradients: &[&Gradient],
        states: usize,
        parameters: &[f64],
    ) -> Probe {
        let formulas = Formulas::new(graph, nodes, gradients, states, parameters.len());
        Probe { bound: formulas.bind(parameters), formulas }
    }

    /// Values of the nodes, and the gradients as rows, at (t, x).
    pub fn at(&self, t: f64, x: &[f64]) -> (Vec<f64>, Vec<Row>) {
        self.formulas.at(&self.bound, t, x)
    }
}

/// Evaluates nodes of a graph at (t, x).
pub fn evaluate(graph: &Graph, nodes: &[Node], t: f64, x: &[f64], parameters: &[f64]) -> Vec<f64> {
    Probe::new(graph, nodes, &[], x.len(), parameters).at(t, x).0
}

/// Evaluates sparse gradients at (t, x).
pub fn evaluate_rows(
    graph: &Graph,
    rows: &[&Gradient],
    t: f64,
    x: &[f64],
    parameters: &[f64],
) -> Vec<Row> {
    Probe::new(graph, &[], rows, x.len(), parameters).at(t, x).1
}

/// Part of its size by which a component of a random point near a state moves.
const NEAR: f64 = 1.0 / 3.0;

/// `count` random points near the initial state. Each component moves by up to a third of its size
/// plus a third of the size of its member's vector, or of the size that the motion gives a vector
/// at rest.
pub fn ambient_points(model: &Model, count: usize, seed: u64) -> Vec<Vec<f64>> {
    points_around(&Scales::new(model), &model.initial, count, seed)
}

/// [`ambient_points`] around a state.
pub(crate) fn points_around(scales: &Scales, x: &[f64], count: usize, seed: u64) -> Vec<Vec<f64>> {
    spread_around(scales, x, NEAR, count, seed)
}

/// [`points_around`] a state that move components by up to `spread` of their own size and that of
/// their vectors.
pub(crate) fn spread_around(
    scales: &Scales,
    x: &[f64],
    spread: f64,
    count: usize,
    seed: u64,
) -> Vec<Vec<f64>> {
    let units = scales.units(x);
    let mut points = Points::new(seed);
    let mut moved = |(v, unit): (&f64, &f64)| v + (v.abs() + unit) * spread * points.draw();
    (0..count).map(|_| x.iter().zip(&units).map(&mut moved).collect()).collect()
}

/// Moves a point onto the zeros of a probe's nodes by Gauss–Newton steps of least change in the
/// given units; `None` if that fails.
pub fn onto_set(probe: &Probe, t: f64, start: &[f64], units: &[f64]) -> Option<Vec<f64>> {
    onto_zeros(&|t, x| probe.at(t, x), t, start, units)
}

/// Values of functions, and the rows of their Jacobian.
pub(crate) type Values = (Vec<f64>, Vec<Row>);

/// [`onto_set`] for functions given by their values and the rows of their Jacobian.
pub(crate) fn onto_zeros(
    functions: &dyn Fn(f64, &[f64]) -> Values,
    t: f64,
    start: &[f64],
    units: &[f64],
) -> Option<Vec<f64>> {
    let mut x = start.to_vec();
    for _ in 0..50 {
        let (f, rows) = functions(t, &x);
        let rows = in_units(&rows, units);
        let y = Gram::new(&rows, 1e-14).solve(&f);
        let mut step = vec![0.0; x.len()];
        for (row, y) in rows.iter().zip(&y) {
            row.iter().for_each(|&(column, d)| step[column as usize] += y * d);
        }
        if step.iter().any(|s| !s.is_finite()) {
            return None;
        }
        x.iter_mut().zip(&step).zip(units).for_each(|((x, step), unit)| *x -= step * unit);
        // Converged up to roundings of the numbers themselves.
        let settled = |((step, unit), x): ((&f64, &f64), &f64)| {
            (step * unit).abs() <= 1e-14 * (unit + x.abs())
        };
        if step.iter().zip(units).zip(&x).all(settled) {
            return Some(x);
        }
    }
    // Quadratic convergence that has stalled at round-off is good enough for an examination.
    let (f, rows) = functions(t, &x);
    let size = |row: &Row| {
        row.iter().map(|&(i, d)| d.abs() * units[i as usize].max(x[i as usize].abs())).sum::<f64>()
    };
    f.iter().zip(&rows).all(|(f, row)| f.abs() <= 1e-10 * size(row)).then_some(x)
}

/// Probe of the constraints and hidden constraints of `field` that are held.
pub(crate) fn set_probe(model: &Model, field: &Field) -> Probe {
    let monitored = |row: &usize| {
        let of = |g: &super::InvariantGroup| {
            g.monitored_only && g.members.rows().any(|(r, _)| r == *row)
        };
        field.groups.iter().any(of)
    };
    let rows: Vec<usize> = (0..field.constraints).filter(|row| !monitored(row)).collect();
    let gradients: Vec<&Gradient> = rows.iter().map(|&row| &field.jacobian[row]).collect();
    let nodes: Vec<Node> = rows.iter().map(|&row| field.invariants[row]).collect();
    Probe::new(&field.graph, &nodes, &gradients, field.dimension, &model.parameter_values)
}

/// The initial state and up to `count` random points of the set where the constraints and hidden
/// constraints of `field` vanish.
pub fn points_on_set(model: &Model, field: &Field, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let probe = set_probe(model, field);
    let units = Scales::new(model).units(&model.initial);
    let found = ambient_points(model, count, seed)
        .into_iter()
        .filter_map(|x| onto_set(&probe, 0.0, &x, &units));
    std::iter::once(model.initial.clone()).chain(found).collect()
}

/// Up to `count` random points (t, x), each on the set where the constraints and hidden constraints
/// of `field` vanish at a random time from `span.0` to `span.1`. They are up to `spread` times as
/// far from the initial state as it is large; with constraints they are near, on the same sheet of
/// the set.
pub fn points_of_run(
    model: &Model,
    field: &Field,
    (span, spread): ((f64, f64), f64),
    count: usize,
    seed: u64,
) -> Vec<(f64, Vec<f64>)> {
    let (probe, scales) = (set_probe(model, field), Scales::new(model));
    let (units, mut times) = (scales.units(&model.initial), Points::new(!seed));
    let on_set = |x: Vec<f64>| {
        let t = span.0 + 0.5 * (1.0 + times.draw()) * (span.1 - span.0);
        let x = if field.constraints == 0 { Some(x) } else { onto_set(&probe, t, &x, &units) };
        Some((t, x?))
    };
    let spread = if field.constraints == 0 { spread } else { spread.min(NEAR) };
    spread_around(&scales, &model.initial, spread, count, seed)
        .into_iter()
        .filter_map(on_set)
        .collect()
}

/// Determines the structure of a model's constraints.
///
/// # Errors
/// If the constraints are mixed: these have neither a Dirac bracket nor hidden constraints to
/// complete one.
pub fn structure(model: &Model, unrolled: &mut Unrolled) -> Result<Structure, Irregular> {
    let n = model.degrees();
    let all: Vec<Scalar> = unrolled.constraints.iter().flatten().cloned().collect();
    if all.is_empty() || !model.is_hamiltonian() {
        return Ok(Structure { kind: ConstraintKind::Free, hidden: Vec::new() });
    }
    if !model.rollings.is_empty() {
        return nonholonomic(model, unrolled);
    }
    let holonomic = all.iter().all(|s| s.gradient.iter().all(|&(i, _)| (i as usize) < n));
    let kind = if holonomic {
        ConstraintKind::Holonomic
    } else {
        phase_space_kind(model, unrolled, &all)?
    };
    if kind == ConstraintKind::SecondClass {
        return Ok(Structure { kind, hidden: Vec::new() });
    }
    let mut hidden: Vec<Hidden> = all.iter().map(|s| rate(unrolled, s, n)).collect();
    if holonomic {
        for k in degenerate(model, unrolled, &all, &hidden) {
            let g = &mut unrolled.graph;
            let zero = g.zero();
            let node = all[k].gradient.iter().fold(zero, |sum, &(i, d)| {
                let p = g.state(i as usize + n);
                let product = g.mul(d, p);
                g.add(sum, product)
            });
            hidden[k] = Hidden { node, gradient: g.gradient(node), tangency: true };
        }
    }
    Ok(Structure { kind, hidden })
}

/// Structure of rolling constraints beside those on positions.
fn nonholonomic(model: &Model, unrolled: &mut Unrolled) -> Result<Structure, Irregular> {
    let n = model.degrees();
    let count = model.constraints.len() - model.rollings.len();
    for (quantity, scalars) in model.constraints.iter().zip(&unrolled.constraints[..count]) {
        let on_momenta = |s: &Scalar| s.gradient.iter().any(|&(i, _)| i as usize >= n);
        if scalars.iter().any(on_momenta) {
            return Err(Irregular::RollingBesideMomenta { name: quantity.name.clone() });
        }
    }
    let positions: Vec<Scalar> = unrolled.constraints[..count].iter().flatten().cloned().collect();
    let hidden = positions.iter().map(|s| rate(unrolled, s, n)).collect();
    Ok(Structure { kind: ConstraintKind::Nonholonomic, hidden })
}

/// {g, H} + L_Q g + g_t.
fn rate(unrolled: &mut Unrolled, s: &Scalar, n: usize) -> Hidden {
    let bracket = unrolled.graph.poisson(&s.gradient, &unrolled.hamiltonian_gradient, n);
    let forced = unrolled.forced_rate(&s.gradient);
    let explicit = unrolled.graph.time_derivative(s.node);
    let node = unrolled.graph.sum(vec![bracket, forced, explicit]);
    Hidden { node, gradient: unrolled.graph.gradient(node), tangency: false }
}

/// Numbers of the constraints whose hidden constraint vanishes identically: at random ambient
/// points it is below the rounding error of its own terms.
fn degenerate(
    model: &Model,
    unrolled: &mut Unrolled,
    all: &[Scalar],
    hidden: &[Hidden],
) -> Vec<usize> {
    let n = model.degrees() as u32;
    let nodes: Vec<Node> = hidden.iter().map(|h| h.node).collect();
    let gradients: Vec<&Gradient> =
        all.iter().map(|s| &s.gradient).chain([&unrolled.hamiltonian_gradient]).collect();
    let mut vanishes = vec![true; all.len()];
    let probe =
        Probe::new(&unrolled.graph, &nodes, &gradients, model.dimension(), &model.parameter_values);
    for x in ambient_points(model, 4, 0x51de) {
        let (values, rows) = probe.at(0.3, &x);
        let (h_row, g_rows) = rows.split_last().expect("H is last");
        for (k, value) in values.iter().enumerate() {
            // Σ |G_i| |∂H/∂p_i|: the scale of the terms that would have to cancel.
            let size: f64 = g_rows[k]
                .iter()
                .map(|&(i, d)| {
                    d.abs()
                        * h_row
                            .binary_search_by_key(&(i + n), |&(j, _)| j)
                            .map_or(0.0, |at| h_row[at].1.abs())
                })
                .sum();
            if value.abs() > 1e-12 * size || !value.is_finite() {
                vanishes[k] = false;
            }
        }
    }
    (0..all.len()).filter(|&k| vanishes[k]).collect()
}

/// Scale of the bracket {f, g}: Σ |∂f/∂q_k ∂g/∂p_k| + |∂f/∂p_k ∂g/∂q_k|.
pub(crate) fn bracket_size(f: &Row, g: &Row, degrees: usize) -> f64 {
    let n = degrees as u32;
    let partner = |i: u32| if i < n { i + n } else { i - n };
    let of = |i: u32| g.binary_search_by_key(&i, |&(j, _)| j).map_or(0.0, |at| g[at].1);
    f.iter().map(|&(i, d)| (d * of(partner(i))).abs()).sum()
}

/// Kind of phase-space constraints: second class among themselves, or coisotropic.
fn phase_space_kind(
    model: &Model,
    unrolled: &mut Unrolled,
    all: &[Scalar],
) -> Result<ConstraintKind, Irregular> {
    let (n, m) = (model.degrees(), all.len());
    let mut brackets = Vec::with_capacity(m * m);
    for a in all {
        for b in all {
            brackets.push(unrolled.graph.poisson(&a.gradient, &b.gradient, n));
        }
    }
    let nodes: Vec<Node> = all.iter().map(|s| s.node).collect();
    let gradients: Vec<&Gradient> = all.iter().map(|s| &s.gradient).collect();
    let mut points = vec![model.initial.clone()];
    let constraints =
        Probe::new(&unrolled.graph, &nodes, &gradients, model.dimension(), &model.parameter_values);
    let units = Scales::new(model).units(&model.initial);
    for start in ambient_points(model, 4, 0xc0de) {
        points.extend(onto_set(&constraints, model.t0, &start, &units));
    }
    let probe = Probe::new(
        &unrolled.graph,
        &brackets,
        &gradients,
        model.dimension(),
        &model.parameter_values,
    );
    let (mut all_zero, mut regular, mut lowest) = (true, true, m);
    for x in &points {
        let (mut c, rows) = probe.at(model.t0, x);
        rank::drop_rounding(&mut c, |i, j| bracket_size(&rows[i], &rows[j], n), m, 1e-10);
        all_zero &= c.iter().all(|v| *v == 0.0);
        let rank = rank::rank_in_any_units(&c, m, 1e-10);
        regular &= rank == m;
        lowest = lowest.min(rank);
    }
    match (all_zero, regular) {
        (true, _) => Ok(ConstraintKind::Coisotropic),
        (_, true) => Ok(ConstraintKind::SecondClass),
        _ => {
            let names =
                model.constraints.iter().map(|c| c.name.clone()).collect::<Vec<_>>().join(", ");
            Err(Irregular::Mixed { names, rank: lowest, size: m })
        }
    }
}
