//! Field, invariants and Jacobian of a model as row programs.

use super::mechanics::{RowMechanics, Together};
use crate::columns::{Column, Columns, Jacobian, accumulated, pieces, time_derivatives};
use crate::elaborate::expression::TIME;
use crate::elaborate::model::{Dynamics, Model, Quantity};
use crate::functional::Functional;
use crate::rows::{Layout, Piece, RowProgram};
use crate::treatment::InvariantGroup;
use crate::treatment::invariants::{InvariantRows, InvariantSource};
use holonome_linear::pattern::Pattern;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// A vector field with its invariants over rows: the counterpart of
/// [`Field`](crate::treatment::Field) for a model that is not unrolled.
#[derive(Clone, Debug)]
pub struct RowField {
    /// Length of the state.
    pub dimension: usize,
    /// Number of the model's parameters.
    pub parameters: usize,
    /// X(t, x); for a model with constraints X_H, without the constraint forces.
    pub field: RowProgram,
    /// F: constraints and hidden constraints first.
    pub invariants: RowProgram,
    /// The nonzeros of DF.
    pub jacobian: RowProgram,
    /// Places of these nonzeros.
    pub pattern: Arc<Pattern>,
    /// Number of rows of F that are constraints or hidden constraints.
    pub constraints: usize,
    /// Meaning of the rows of F.
    pub groups: Vec<InvariantGroup>,
    /// Layout of the state by columns.
    pub layout: Arc<Layout>,
}

/// A part of F: a functional, with the row of F for each of its outputs.
struct Part<'a> {
    functional: &'a Functional,
    rows: Box<dyn Fn(usize) -> Option<u32> + 'a>,
    /// True if it is only monitored: its rows of DF are empty.
    monitored_only: bool,
    /// Sums of H that come with its gradient and are computed apart; `None` for other quantities.
    sums: Option<Sums>,
}

impl RowField {
    /// The field of a model that [`Way::of_field`](crate::policy::Way::of_field) runs over rows.
    pub fn new(model: &Model, mechanics: impl FnOnce() -> Option<RowMechanics>) -> RowField {
        let dimension = model.dimension();
        let pieces = match &model.dynamics {
            Dynamics::Hamiltonian(h, _) => RowProgram::hamiltonian_field(h, model.degrees()),
            Dynamics::Field(f) => RowProgram::values(f, &|output| Some(output as u32)),
        };
        let mechanics = mechanics();
        let mut pieces = pieces;
        if let Some(mechanics) = mechanics.clone().filter(|_| !model.forces.is_empty()) {
            pieces.extend(Composed::forces(model, mechanics).values());
        }
        let field = RowProgram::new(dimension, dimension, pieces);
        let hidden = Composed::of(model, mechanics.clone());
        let Parts { parts, groups, constraints, count } = parts(model, mechanics);
        let Differentiated { values, jacobian, pattern } =
            Differentiated::new(dimension, &parts, hidden.as_ref(), count);
        RowField {
            dimension,
            parameters: model.parameter_values.len(),
            field,
            invariants: values,
            jacobian,
            pattern: Arc::new(pattern),
            constraints,
            groups,
            layout: Arc::new(Layout::new(model)),
        }
    }

    /// F alone.
    pub fn invariants(
        model: &Model,
        mechanics: impl FnOnce() -> Option<RowMechanics>,
    ) -> RowProgram {
        let mechanics = mechanics();
        let hidden = Composed::of(model, mechanics.clone());
        let Parts { parts, count, .. } = parts(model, mechanics);
        values(model.dimension(), &parts, hidden.as_ref(), count)
    }

    /// Number of rows of F.
    pub fn count(&self) -> usize {
        self.invariants.outputs
    }

    /// ∂F/∂t at fixed x.
    pub fn explicit_rates(
        &self,
        model: &Model,
        mechanics: impl FnOnce() -> Option<RowMechanics>,
    ) -> RowProgram {
        let Parts { parts, count, .. } = parts(model, None);
        let held =
            parts.iter().flat_map(|part| RowProgram::time_derivatives(part.functional, &part.rows));
        let mut pieces: Vec<Piece> = held.collect();
        let timed = model.explicit_time || model.constraints.iter().any(|c| c.depends & TIME != 0);
        let hidden = if timed { Composed::of(model, mechanics()) } else { None };
        pieces.extend(hidden.iter().flat_map(|hidden| hidden.by_member(&time_derivatives)));
        RowProgram::new(self.dimension, count, pieces)
    }
}

/// Functions of (t, x) with their Jacobian.
#[derive(Clone, Debug)]
pub struct Differentiated {
    /// Values.
    pub values: RowProgram,
    /// Nonzeros of the Jacobian.
    pub jacobian: RowProgram,
    /// Places of these nonzeros.
    pub pattern: Pattern,
}

impl Differentiated {
    /// Some functionals over a state of length `dimension`, one after the other, each with the
    /// ascending outputs that are kept.
    pub fn of(dimension: usize, list: Vec<(&Functional, Vec<usize>)>) -> Differentiated {
        let (mut parts, mut count) = (Vec::new(), 0);
        for (functional, kept) in list {
            let first = count;
            count += kept.len();
            parts.push(Part {
                functional,
                rows: Box::new(kept_from(first, kept)),
                monitored_only: false,
                sums: None,
            });
        }
        Differentiated::new(dimension, &parts, None, count)
    }

    /// The field of a model without constraints. `None` if it has sums over near pairs: the places of
    /// their entries change along the motion.
    pub fn field(
        model: &Model,
        mechanics: impl FnOnce() -> Option<RowMechanics>,
    ) -> Option<Differentiated> {
        let dimension = model.dimension();
        let slopes = match &model.dynamics {
            Dynamics::Hamiltonian(h, _) => {
                Cow::Owned(RowProgram::hamiltonian_slopes(h, model.degrees()))
            }
            Dynamics::Field(f) => Cow::Borrowed(f),
        };
        let forces = model.forces.iter().map(|force| &force.functional);
        let mut terms = forces.chain([&*slopes]).flat_map(|functional| &functional.terms);
        if terms.any(|term| term.pairs.is_some()) {
            return None;
        }
        let forces = match model.forces.is_empty() {
            true => None,
            false => Some(Composed::forces(model, mechanics()?)),
        };
        let outputs = (0..slopes.outputs).collect();
        let part = Part {
            functional: &slopes,
            rows: Box::new(kept_from(0, outputs)),
            monitored_only: false,
            sums: None,
        };
        Some(Differentiated::new(dimension, &[part], forces.as_ref(), dimension))
    }

    /// The constraints of a model.
    pub fn constraints(model: &Model) -> Differentiated {
        let (mut parts, mut count) = (Vec::new(), 0);
        for quantity in &model.constraints {
            parts.push(held(quantity, count));
            count += quantity.scalars();
        }
        Differentiated::new(model.dimension(), &parts, None, count)
    }

    /// The hidden constraints of a model with these mechanics.
    pub fn hidden_constraints(model: &Model, mechanics: RowMechanics) -> Differentiated {
        let count = model.constraints.iter().map(Quantity::scalars).sum();
        let hidden = Composed::new(model, mechanics, 0);
        Differentiated::new(model.dimension(), &[], Some(&hidden), count)
    }

    fn new(
        dimension: usize,
        parts: &[Part],
        hidden: Option<&Composed>,
        count: usize,
    ) -> Differentiated {
        let derivatives = hidden.map_or(Vec::new(), Composed::derivatives);
        let pattern = pattern(dimension, parts, &derivatives, count);
        let position = |row: u32, component: u32| pattern.row(row as usize).place(component) as u32;
        let is_full = |row: u32| pattern.row(row as usize).count() == dimension;
        let entry =
            |part: &Part| RowProgram::jacobian(part.functional, &part.rows, &position, &is_full);
        let mut entries: Vec<Piece> =
            parts.iter().filter(|part| !part.monitored_only).flat_map(entry).collect();
        for ((first, step), derivatives) in &derivatives {
            entries.extend(
                derivatives
                    .pieces(&|_, member, component| position(first + member * step, component)),
            );
        }
        Differentiated {
            values: values(dimension, parts, hidden, count),
            jacobian: RowProgram::new(dimension, pattern.nonzeros(), entries),
            pattern,
        }
    }
}

/// Program for F, which has `count` rows.
fn values(dimension: usize, parts: &[Part], hidden: Option<&Composed>, count: usize) -> RowProgram {
    let (mut pieces, mut apart) = (Vec::new(), Vec::new());
    for Part { functional, rows, sums, .. } in parts {
        let Some(sums) = sums else {
            pieces.extend(RowProgram::values(functional, rows));
            continue;
        };
        let terms = sums.terms();
        let rest =
            functional.terms.iter().enumerate().filter(|(number, _)| !terms.contains(number));
        let rest = Functional {
            outputs: functional.outputs,
            terms: rest.map(|(_, term)| term.clone()).collect(),
        };
        pieces.extend(RowProgram::values(&rest, rows));
        pieces.extend(sums.pieces((count + apart.len()) as u32));
        apart.extend(terms.iter().filter_map(|_| rows(0)));
    }
    pieces.extend(hidden.into_iter().flat_map(Composed::values));
    RowProgram::new(dimension, count + apart.len(), pieces).adding_last(apart)
}

/// Sums of H that come with its gradient. A step that takes them from there and a computation
/// without the gradient give the same bits.
struct Sums {
    mechanics: RowMechanics,
    all: Vec<Together>,
}

impl Sums {
    fn new(mut mechanics: RowMechanics) -> Sums {
        let (t, x) = mechanics.stored_state();
        let all = mechanics.sums(t, &x);
        Sums { mechanics, all }
    }

    /// Terms of H that are summed.
    fn terms(&self) -> Vec<usize> {
        self.all.iter().flat_map(|together| &together.terms).copied().collect()
    }

    /// Pieces for the sums, as outputs from `first` on.
    fn pieces(&self, mut first: u32) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for together in &self.all {
            let (pieces_of, places) = accumulated(&self.mechanics.columns, &together.columns());
            let sums = places[together.slopes.len()].first;
            pieces.extend(pieces_of.into_iter().filter_map(|piece| piece.sums(sums, first)));
            first += together.values.len() as u32;
        }
        pieces
    }
}

/// Row of each kept output, counted from `first`.
fn kept_from(first: usize, kept: Vec<usize>) -> impl Fn(usize) -> Option<u32> {
    move |output| kept.binary_search(&output).ok().map(|k| (first + k) as u32)
}

/// Functions composed over columns: hidden constraints, of the constraints' derivatives and the
/// velocities, or forces with their work.
struct Composed {
    mechanics: RowMechanics,
    x: Vec<Column>,
    columns: Vec<Column>,
    /// Row of each column's first member, and the step to the row of the next.
    rows: Vec<(u32, u32)>,
    /// Number of members of each column.
    lengths: Vec<u32>,
}

/// Maker of pieces for members 0 to a length of some columns, at the places of its last argument.
type ByMember<'a> = dyn Fn(&Columns, &[Column], u32, &dyn Fn(usize, u32) -> u32) -> Vec<Piece> + 'a;

impl Composed {
    /// The hidden constraints of a model, if it has any.
    fn of(model: &Model, mechanics: Option<RowMechanics>) -> Option<Composed> {
        let first = model.constraints.iter().map(Quantity::scalars).sum();
        let mechanics = mechanics.filter(|_| !model.constraints.is_empty());
        mechanics.map(|mechanics| Composed::new(model, mechanics, first))
    }

    /// The hidden constraints, as rows from `first` on.
    fn new(model: &Model, mut mechanics: RowMechanics, mut first: usize) -> Composed {
        let (t, x) = mechanics.stored_state();
        let columns = mechanics.hidden_constraints(t, &x);
        let mut rows = Vec::new();
        for quantity in &model.constraints {
            let width = quantity.components.len();
            rows.extend((0..width).map(|k| ((first + k) as u32, width as u32)));
            first += quantity.scalars();
        }
        let lengths = mechanics.constraints.iter().map(|constraint| constraint.length).collect();
        Composed { mechanics, x, columns, rows, lengths }
    }

    /// The forces that act beside H, as rows of the field, and their work.
    fn forces(model: &Model, mut mechanics: RowMechanics) -> Composed {
        let (t, x) = mechanics.stored_state();
        let mut columns = mechanics.acting(t, &x).unwrap_or_default();
        let momenta = &mechanics.state[mechanics.degrees()..];
        let families = momenta.iter().zip(&columns);
        let mut rows: Vec<(u32, u32)> =
            families.clone().map(|(family, _)| (family.first, family.stride)).collect();
        let mut lengths: Vec<u32> = families.map(|(family, _)| family.length).collect();
        if let Some(work) = model.work() {
            let velocities = mechanics.gradient(t, &x, true);
            for column in mechanics.power(t, &x, &velocities) {
                rows.push((work as u32, 0));
                lengths.push(mechanics.columns.length(column));
                columns.push(column);
            }
        }
        Composed { mechanics, x, columns, rows, lengths }
    }

    fn values(&self) -> Vec<Piece> {
        self.by_member(&pieces)
    }

    /// Pieces of every column, made by [`pieces`] or [`time_derivatives`].
    fn by_member(&self, pieces: &ByMember) -> Vec<Piece> {
        let of = |k: usize| {
            let ((first, step), length) = (self.rows[k], self.lengths[k]);
            pieces(&self.mechanics.columns, &self.columns[k..=k], length, &|_, member| {
                first + member * step
            })
        };
        (0..self.columns.len()).flat_map(of).collect()
    }

    /// Derivatives, with the row of F of the first member and the step to that of the next.
    fn derivatives(&self) -> Vec<((u32, u32), Jacobian<'_>)> {
        let of = |k: usize| {
            let columns = &self.columns[k..=k];
            Jacobian::new(&self.mechanics.columns, columns, &self.x, self.lengths[k])
        };
        (0..self.columns.len()).map(|k| (self.rows[k], of(k))).collect()
    }
}

/// F without its hidden constraints, with its groups.
struct Parts<'a> {
    parts: Vec<Part<'a>>,
    groups: Vec<InvariantGroup>,
    /// Number of rows that are constraints or hidden constraints, and number of all rows.
    constraints: usize,
    count: usize,
}

/// Parts of F; the sums of H come with its gradient if there are `mechanics`.
fn parts(model: &Model, mut mechanics: Option<RowMechanics>) -> Parts<'_> {
    let all = vec![true; model.constraints.iter().map(Quantity::scalars).sum()];
    let rows = InvariantRows::new(model, &[all]);
    let (constraints, count) = (rows.constraints, rows.count);
    let part = |(first, source)| match source {
        InvariantSource::Monitored(functional, kept) => Some(Part {
            functional,
            rows: Box::new(kept_from(first, kept)),
            monitored_only: true,
            sums: None,
        }),
        InvariantSource::Constraint(k) => Some(held(&model.constraints[k], first)),
        InvariantSource::Hidden(_) => None,
        InvariantSource::Energy(functional) => Some(Part {
            functional,
            rows: Box::new(move |_| Some(first as u32)),
            monitored_only: false,
            sums: mechanics.take().map(Sums::new),
        }),
        InvariantSource::Integral(k) => Some(held(&model.integrals[k], first)),
    };
    let parts = rows.sources.into_iter().filter_map(part).collect();
    Parts { parts, groups: rows.groups, constraints, count }
}

/// A quantity that is held, from row `first` on.
fn held(quantity: &Quantity, first: usize) -> Part<'_> {
    Part {
        functional: &quantity.functional,
        rows: Box::new(rows_of(quantity, first)),
        monitored_only: false,
        sums: None,
    }
}

/// Row of F of each output of a quantity whose first row is `first`; only independent components
/// have one.
fn rows_of(quantity: &Quantity, first: usize) -> impl Fn(usize) -> Option<u32> + '_ {
    let (width, kept) = (quantity.shape.len(), quantity.components.len());
    let mut place = vec![None; width];
    for (k, component) in quantity.components.iter().enumerate() {
        place[component.offset] = Some(k);
    }
    move |output| place[output % width].map(|k| (first + output / width * kept + k) as u32)
}

/// Places of the nonzeros of DF.
fn pattern(
    dimension: usize,
    parts: &[Part],
    hidden: &[((u32, u32), Jacobian)],
    count: usize,
) -> Pattern {
    let terms = |part: &Part| -> Vec<_> {
        part.functional.terms.iter().map(|term| term.gradients().1).collect()
    };
    let gradients: Vec<_> =
        parts.iter().filter(|part| !part.monitored_only).map(|part| (part, terms(part))).collect();
    // Visits every entry, some of them more than once: its row, and columns in equal steps by
    // first, step and number.
    let each = |entries: &mut dyn FnMut(u32, (u32, u32, usize))| {
        for (part, gradients) in &gradients {
            for (term, gradients) in part.functional.terms.iter().zip(gradients) {
                for stretch in term.table.iter() {
                    // The rows of a stretch of a sum are added to one output.
                    let together = if stretch.step.last() == Some(&0) { stretch.rows } else { 1 };
                    for row in stretch.each().step_by(together) {
                        for (output, gradient) in term.outputs(row).zip(gradients) {
                            let Some(f) = (part.rows)(output) else { continue };
                            for &(slot, _) in gradient {
                                let step = stretch.step[slot as usize];
                                let number = if step == 0 { 1 } else { together };
                                entries(f, (row.at(slot as usize), step, number));
                            }
                        }
                    }
                }
            }
        }
        for ((first, step), derivatives) in hidden {
            derivatives.entries().for_each(|(_, member, component)| {
                entries(first + member * step, (component, 0, 1))
            });
        }
    };
    // One list holds the number of entries that each row meets, then the place of its next entry:
    // for a large model each list is tens of megabytes.
    let mut ends = vec![0; count];
    each(&mut |row, (_, _, number)| ends[row as usize] += number);
    // A row that meets more entries than it has columns, like that of a sum over all pairs, only
    // marks them.
    let mut marked: FxHashMap<u32, Vec<bool>> = FxHashMap::default();
    let mut met = 0;
    for (row, end) in (0..).zip(&mut ends) {
        if *end > dimension {
            marked.insert(row, vec![false; dimension]);
            *end = 0;
        }
        met += std::mem::replace(end, met);
    }
    let mut column = vec![0; met];
    each(&mut |row, (first, step, number)| {
        let these = (0..number as u32).map(|k| first.wrapping_add(k.wrapping_mul(step)));
        match marked.get_mut(&row) {
            Some(marks) => these.for_each(|column| marks[column as usize] = true),
            None => {
                let end = &mut ends[row as usize];
                column[*end..*end + number]
                    .iter_mut()
                    .zip(these)
                    .for_each(|(to, column)| *to = column);
                *end += number;
            }
        }
    });
    let (mut pattern, mut first) = (Pattern::new(), 0);
    for (row, end) in (0..).zip(ends) {
        match marked.get(&row) {
            Some(marks) => {
                pattern.push((0..).zip(marks).filter(|(_, marked)| **marked).map(|(k, _)| k))
            }
            None => {
                column[first..end].sort_unstable();
                let distinct = column[first..end].chunk_by(|a, b| a == b).map(|equal| equal[0]);
                pattern.push(distinct);
                first = end;
            }
        }
    }
    pattern
}
