//! Structure of a model's constraints, found from formulas and from numbers.

use super::Field;
use crate::elaborate::model::Model;
use crate::graph::aligned::Aligned;
use crate::graph::calculus::Gradient;
use crate::graph::interpret::{Backend, Interpreter, Kernel};
use crate::graph::tape::Tape;
use crate::graph::{Graph, Node};
use crate::points::Points;
use crate::scales::{Scales, in_units};
use holonome_linear::gram::{Gram, Row};

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
    /// Constraints of any other regular class: some brackets vanish on the set, or hidden
    /// constraints have hidden ones in turn; f = (g, hidden, hidden of second order, …).
    Mixed,
}

/// A hidden constraint.
#[derive(Clone, Debug)]
pub struct Hidden {
    /// Number of the scalar constraint that it belongs to.
    pub of: usize,
    /// 1, or 1 more than that of the hidden constraint whose rate it is.
    pub order: u32,
    /// G H_p + g_t, in general {g, H} + g_t less what determined multipliers take from it; or G p if
    /// that vanishes identically.
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
    /// Hidden constraints by order, and of each order by constraint; empty if there are none. Those
    /// of pairs are one for each scalar constraint, without those of rolling.
    pub hidden: Vec<Hidden>,
    /// Of [`ConstraintKind::Mixed`], for each multiplier the function f, counted from the stated
    /// constraints on, whose rate determines it, with its number: pivots in the order of their
    /// elimination at the start.
    pub pivots: Vec<(usize, usize)>,
}

impl Structure {
    /// Constraints of this kind with these hidden ones.
    pub fn new(kind: ConstraintKind, hidden: Vec<Hidden>) -> Structure {
        Structure { kind, hidden, pivots: Vec::new() }
    }

    /// For each order of hidden constraints, which of `count` scalar constraints have one.
    pub fn orders(&self, count: usize) -> Vec<Vec<bool>> {
        let most = self.hidden.iter().map(|hidden| hidden.order).max().unwrap_or(0);
        let mut orders = vec![vec![false; count]; most as usize];
        self.hidden.iter().for_each(|h| orders[h.order as usize - 1][h.of] = true);
        orders
    }
}

/// Reason why a model's constraints have no Dirac bracket.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Irregular {
    /// A multiplier is arbitrary.
    #[error(
        "the multiplier of {combination} is arbitrary: its brackets with H and with all constraints vanish, so that it moves {moves} at a rate that nothing determines (gauge freedom)"
    )]
    Gauge {
        /// The constraint, or a combination of constraints with numbers at the start.
        combination: String,
        /// Names of the components of the state that it moves.
        moves: String,
    },
    /// A hidden constraint is a number that is not 0 wherever the others hold.
    #[error(
        "the constraints contradict each other: {name} is {value} wherever {chain} hold, and should be 0"
    )]
    Inconsistent {
        /// Name of the hidden constraint.
        name: String,
        /// Its value at the start.
        value: f64,
        /// Names of the constraints that lead to it.
        chain: String,
    },
    /// A hidden constraint has no regular zeros near the start.
    #[error("{name}, which follows from {chain}, {defect}: it determines no motion")]
    Degenerate {
        /// Name of the hidden constraint.
        name: String,
        /// Names of the constraints that lead to it.
        chain: String,
        /// What is wrong with it.
        defect: &'static str,
    },
    /// Brackets that vanish at the start and not elsewhere on the set.
    #[error(
        "the brackets of the constraints have rank {here} at the initial state and {elsewhere} elsewhere on the constraint set: the start is singular"
    )]
    Exceptional {
        /// Rank at the start.
        here: usize,
        /// Rank elsewhere.
        elsewhere: usize,
    },
    /// Too many constraints for Dirac's algorithm.
    #[error(
        "the constraints need hidden ones of second order or are of mixed class, and this version finds these for up to {limit} scalar constraints; there are {count}"
    )]
    TooMany {
        /// Number of scalar constraints.
        count: usize,
        /// Largest number.
        limit: usize,
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
            break;
        }
    }
    // Quadratic convergence that has stalled at round-off is good enough for an examination. Where
    // functions are dependent, the iteration may also settle at a point at which they do not vanish.
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
