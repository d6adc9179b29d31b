//! Scales with which numbers of a model are compared, so that units do not matter.
//!
//! The scale of a state component is its absolute value, but at least a small part of the largest
//! of its family. A family that is at rest or at the origin has the size that the motion gives it:
//! |ẋ| τ and |ẍ| τ², with the time τ =
//! |y|/|ẏ| or √(|y|/|ÿ|) of the families y that have a size. Only maxima, products and quotients enter, so that powers
//! of two of units come out as they went in.

use crate::elaborate::model::{Dynamics, Model, Role};
use crate::functional::{Entries, Functional, Source, Template, Term};
use crate::graph::calculus::Gradient;
use crate::graph::interpret::{Backend, Interpreter};
use crate::graph::{Graph, Input, Node};
use crate::rows::RowProgram;
use holonome_linear::gram::Row;

/// Part of a family's size below which the numbers of its members are rounding: 1e-9 of it, the
/// precision of numbers that a user types, is some hundred roundings of a double.
const ROUNDED: f64 = 1e-4;

/// Smallest scale of a member's vector, as a part of its family's size, in comparisons of
/// directions.
const SMALL_MEMBER: f64 = 1e-3;

/// Step of a difference quotient, as a part of the largest position.
const DIFFERENCE: f64 = 1e-7;

/// A declared variable with all its members.
#[derive(Clone, Debug)]
struct Extent {
    first: usize,
    len: usize,
    /// Components of one member.
    width: usize,
    role: Role,
    /// Size that the motion gives it; 0 if unknown.
    natural: f64,
}

impl Extent {
    fn range(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.len
    }

    fn largest(&self, x: &[f64]) -> f64 {
        largest(&x[self.range()])
    }
}

fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0f64, |s, v| s.max(v.abs()))
}

/// Scales of the components of a model's states.
#[derive(Clone, Debug)]
pub struct Scales {
    families: Vec<Extent>,
    dimension: usize,
}

impl Scales {
    /// Scales of the states of `model`. Its initial state gives the size of a family at rest.
    pub fn new(model: &Model) -> Scales {
        Scales::by(&Interpreter, model)
    }

    /// [`Scales::new`] of a large model, whose rows are compiled by `backend`.
    pub fn by(backend: &dyn Backend, model: &Model) -> Scales {
        let families = model.variables.iter().filter(|v| !v.family.is_empty());
        let extent = |v: &crate::elaborate::model::Variable| Extent {
            first: v.first,
            len: v.family.len(),
            width: v.family.shape.len(),
            role: v.role,
            natural: 0.0,
        };
        let mut scales =
            Scales { families: families.map(extent).collect(), dimension: model.dimension() };
        let (velocity, acceleration) = motion(model, backend);
        let x = &model.initial;
        let time = |f: &Extent| {
            let (x, v, a) = (f.largest(x), f.largest(&velocity), f.largest(&acceleration));
            let time = (x / v).min((x / a).sqrt());
            (x > 0.0 && time.is_finite()).then_some(time)
        };
        let times: Vec<Option<f64>> = scales.families.iter().map(time).collect();
        let longest = times.iter().flatten().copied().reduce(f64::max);
        let natural = |f: &Extent| {
            // A family that is at rest or at the origin has its conjugate's time.
            let conjugate = scales.families.iter().position(|other| other.is_conjugate(f, model));
            let Some(time) = conjugate.and_then(|k| times[k]).or(longest) else { return 0.0 };
            let size = (f.largest(&velocity) * time).max(f.largest(&acceleration) * time * time);
            if size.is_finite() { size } else { 0.0 }
        };
        let natural: Vec<f64> = scales.families.iter().map(natural).collect();
        scales.families.iter_mut().zip(natural).for_each(|(f, natural)| f.natural = natural);
        scales
    }

    /// Writes the scales of the components of the states `x` in so many lanes, with which errors in
    /// them are compared. Nothing is allocated.
    pub fn put(&self, x: &[f64], lanes: usize, sizes: &mut [f64]) {
        for f in &self.families {
            for lane in 0..lanes {
                let components = f.range().map(|k| k * lanes + lane);
                let largest = components.clone().fold(0.0f64, |s, k| s.max(x[k].abs()));
                let floor = ROUNDED * largest.max(f.natural);
                components.for_each(|k| sizes[k] = x[k].abs().max(floor));
            }
        }
    }

    /// [`Scales::put`] as a vector.
    pub fn sizes(&self, x: &[f64]) -> Vec<f64> {
        let mut sizes = vec![0.0; self.dimension];
        self.put(x, 1, &mut sizes);
        sizes
    }

    /// Scales of the members' vectors around `x`, none 0: units for comparing directions and for
    /// drawing random points.
    pub fn units(&self, x: &[f64]) -> Vec<f64> {
        let has_own = |f: &Extent| f.largest(x) > SMALL_MEMBER * f.natural;
        let size = |f: &Extent| if has_own(f) { f.largest(x) } else { f.natural };
        let sizes: Vec<f64> = self.families.iter().map(size).collect();
        let fallback = |role: Role| {
            let alike = |other: &Extent| {
                std::mem::discriminant(&other.role) == std::mem::discriminant(&role)
            };
            let of = self
                .families
                .iter()
                .zip(&sizes)
                .filter(|(f, s)| alike(f) && **s > 0.0 && s.is_finite());
            of.map(|(_, &s)| s).reduce(f64::max).unwrap_or(1.0)
        };
        let mut units = vec![1.0; self.dimension];
        for (f, &size) in self.families.iter().zip(&sizes) {
            let size = if size > 0.0 && size.is_finite() { size } else { fallback(f.role) };
            let floor = if has_own(f) { SMALL_MEMBER * size } else { size };
            for member in f.range().step_by(f.width) {
                let member = member..member + f.width;
                let own = largest(&x[member.clone()]).max(floor);
                units[member].fill(own);
            }
        }
        units
    }
}

impl Extent {
    fn is_conjugate(&self, other: &Extent, model: &Model) -> bool {
        let of = |momentum: &Extent, coordinate: &Extent| match momentum.role {
            Role::Momentum(k) => {
                model.variables[k].first == coordinate.first && coordinate.role == Role::Coordinate
            }
            _ => false,
        };
        of(self, other) || of(other, self)
    }
}

/// Rows over a state in the units of its components.
pub fn in_units(rows: &[Row], units: &[f64]) -> Vec<Row> {
    rows.iter().map(|row| row.iter().map(|&(i, d)| (i, d * units[i as usize])).collect()).collect()
}

/// ẋ and ẍ at the start, template by template; for a Hamiltonian with constraints, without the
/// constraint forces.
fn motion(model: &Model, backend: &dyn Backend) -> (Vec<f64>, Vec<f64>) {
    let n = model.dimension();
    let mut velocity = vec![0.0; n];
    // Sums over near pairs are evaluated as a whole, and differentiated by a difference quotient.
    let dynamics = model.moved_by();
    let near: Vec<Term> =
        dynamics.terms.iter().filter(|term| term.pairs.is_some()).cloned().collect();
    let near = (!near.is_empty()).then(|| {
        let near = Functional { outputs: dynamics.outputs, terms: near };
        let pieces = match &model.dynamics {
            Dynamics::Hamiltonian(..) => RowProgram::hamiltonian_field(&near, model.degrees()),
            Dynamics::Field(_) => RowProgram::values(&near, &|output| Some(output as u32)),
        };
        RowProgram::new(n, n, pieces)
    });
    let of_near = |x: &[f64]| match &near {
        Some(near) => near.evaluate_by(backend, 0.0, x, &model.parameter_values),
        None => vec![0.0; n],
    };
    let derivative = |along: Option<&[f64]>| {
        let mut sum = of_near(&model.initial);
        if let Some(along) = along.filter(|_| near.is_some()) {
            let step = DIFFERENCE * largest(&model.initial) / largest(along);
            let moved: Vec<f64> =
                model.initial.iter().zip(along).map(|(x, v)| x + step * v).collect();
            sum = of_near(&moved)
                .iter()
                .zip(&sum)
                .map(|(there, here)| (there - here) / step)
                .collect();
        }
        match &model.dynamics {
            Dynamics::Hamiltonian(h, _) => {
                let degrees = model.degrees();
                for term in h.terms.iter().filter(|term| term.pairs.is_none()) {
                    let (graph, mut gradients) = term.gradients();
                    let gradient = gradients.swap_remove(0);
                    let roots: Vec<Node> = gradient.iter().map(|&(_, d)| d).collect();
                    let mut add = |row: Entries, values: &[f64]| {
                        for (&(slot, _), value) in gradient.iter().zip(values) {
                            let entry = row.at(slot as usize) as usize;
                            if entry < degrees {
                                sum[entry + degrees] -= value;
                            } else {
                                sum[entry - degrees] += value;
                            }
                        }
                    };
                    rows((model, backend), term, graph, roots, along, &mut add);
                }
            }
            Dynamics::Field(f) => {
                for term in f.terms.iter().filter(|term| term.pairs.is_none()) {
                    let mut add = |row: Entries, values: &[f64]| {
                        let first = row.last() as usize;
                        sum[first..].iter_mut().zip(values).for_each(|(s, v)| *s += v);
                    };
                    rows(
                        (model, backend),
                        term,
                        term.graph.clone(),
                        term.roots.clone(),
                        along,
                        &mut add,
                    );
                }
            }
        }
        sum
    };
    velocity.copy_from_slice(&derivative(None));
    let acceleration = derivative(Some(&velocity));
    (velocity, acceleration)
}

/// Evaluates `roots` of a term's template in every row, or their derivatives along a direction of
/// the state and of time.
fn rows(
    (model, backend): (&Model, &dyn Backend),
    term: &Term,
    mut graph: Graph,
    roots: Vec<Node>,
    along: Option<&[f64]>,
    add: &mut dyn FnMut(Entries, &[f64]),
) {
    let width = term.slots.len() as u32;
    let roots = match along {
        None => roots,
        Some(_) => graph.tangent(&roots, |g, input| match input {
            Input::Slot(k) if term.slots[k as usize] == Source::State => {
                Some(g.input(Input::Slot(width + k)))
            }
            Input::Time => Some(g.one()),
            _ => None,
        }),
    };
    let template = Template::new(&graph, &roots, 2 * term.slots.len(), backend);
    let mut work = vec![0.0; template.work_len()];
    let along = along.unwrap_or(&model.initial);
    for row in term.table.each() {
        add(
            row,
            template.row_beside(
                term,
                row,
                0.0,
                (&model.initial, along),
                &model.parameter_values,
                &mut work,
            ),
        );
    }
}

/// Formulas of a quantity's template, followed by the scale of an error in each: Σ |∂/∂slot| times
/// the size of the slot's value. The sizes of state components are read from the slots after the
/// template's own.
pub(crate) fn with_sizes(term: &Term) -> (Graph, Vec<Node>) {
    use crate::graph::op::Unary;
    let width = term.slots.len() as u32;
    let mut graph = term.graph.clone();
    let mut sizes = Vec::with_capacity(term.roots.len());
    for &root in &term.roots {
        let derivatives: Gradient = graph
            .adjoint(root, |input| matches!(input, Input::Slot(_)))
            .into_iter()
            .filter_map(|(input, d)| if let Input::Slot(k) = input { Some((k, d)) } else { None })
            .collect();
        let mut sum = graph.zero();
        for (k, d) in derivatives {
            let size = match term.slots[k as usize] {
                Source::State => graph.input(Input::Slot(width + k)),
                _ => {
                    let value = graph.input(Input::Slot(k));
                    graph.unary(Unary::Abs, value)
                }
            };
            let d = graph.unary(Unary::Abs, d);
            let product = graph.mul(d, size);
            sum = graph.add(sum, product);
        }
        sizes.push(sum);
    }
    let roots = term.roots.iter().copied().chain(sizes).collect();
    (graph, roots)
}
