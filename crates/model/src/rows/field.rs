//! A model as row programs: its field, its invariants and their Jacobian.

use super::{Piece, RowProgram};
use crate::elaborate::model::{Dynamics, Model, Quantity};
use crate::functional::Functional;
use crate::treatment::{InvariantGroup, InvariantKind};

/// Operations of a model, derivatives not counted, up to which it is written out whatever its form: straight-line code
/// runs as fast as rows do or faster up to about here, and beyond takes longer to make than it saves.
pub const LARGEST_STRAIGHT: usize = 200_000;

/// Rows pay where a template has this many of them on the average.
const ROWS_PER_TEMPLATE: usize = 16;

/// A vector field with its invariants, row by row: what [`Field`](crate::treatment::Field) is for a model that is
/// written out.
#[derive(Clone, Debug)]
pub struct RowField {
    /// Length of the state.
    pub dimension: usize,
    /// Number of the model's parameters.
    pub parameters: usize,
    /// X(t, x).
    pub field: RowProgram,
    /// F.
    pub invariants: RowProgram,
    /// The nonzeros of DF.
    pub jacobian: RowProgram,
    /// The entries of row i of DF are `row_start[i]..row_start[i + 1]`.
    pub row_start: Vec<usize>,
    /// The column of each of these entries.
    pub column: Vec<u32>,
    /// What the rows of F mean.
    pub groups: Vec<InvariantGroup>,
}

/// Whether a model is run over rows: it has no constraints, and is too large for straight-line code to be fast.
pub fn suits(model: &Model, largest_unrolled: usize) -> bool {
    let size = model.unrolled_size();
    let templates = model.template_size();
    let repeats = size > LARGEST_STRAIGHT && size / ROWS_PER_TEMPLATE >= templates;
    model.constraints.is_empty() && (repeats || size > largest_unrolled)
}

/// A part of F: a functional, with the row of F of each of its outputs.
struct Part<'a> {
    functional: &'a Functional,
    rows: Box<dyn Fn(usize) -> Option<u32> + 'a>,
}

impl RowField {
    /// The field of a model without constraints.
    pub fn new(model: &Model) -> RowField {
        let dimension = model.dimension();
        let pieces = match &model.dynamics {
            Dynamics::Hamiltonian(h, _) => RowProgram::hamiltonian_field(h, model.degrees()),
            Dynamics::Field(f) => RowProgram::values(f, &|output| Some(output as u32)),
        };
        let field = RowProgram::new(dimension, dimension, pieces);
        let (parts, groups, count) = parts(model);
        let (row_start, column) = pattern(&parts, count);
        let position = |row: u32, component: u32| {
            let first = row_start[row as usize];
            let columns = &column[first..row_start[row as usize + 1]];
            let full = columns.len() == dimension;
            let at = if full { component as usize } else { columns.partition_point(|&c| c < component) };
            (first + at) as u32
        };
        let collect = |derive: &dyn Fn(&Part) -> Vec<Piece>| parts.iter().flat_map(derive).collect::<Vec<Piece>>();
        let values = collect(&|part| RowProgram::values(part.functional, &part.rows));
        let entries = collect(&|part| RowProgram::jacobian(part.functional, &part.rows, &position));
        RowField {
            dimension,
            parameters: model.parameter_values.len(),
            field,
            invariants: RowProgram::new(dimension, count, values),
            jacobian: RowProgram::new(dimension, column.len(), entries),
            row_start,
            column,
            groups,
        }
    }

    /// Number of rows of F.
    pub fn count(&self) -> usize {
        self.invariants.outputs
    }

    /// ∂F/∂t at fixed x.
    pub fn explicit_rates(&self, model: &Model) -> RowProgram {
        let (parts, _, count) = parts(model);
        let pieces = parts.iter().flat_map(|part| RowProgram::time_derivatives(part.functional, &part.rows)).collect();
        RowProgram::new(self.dimension, count, pieces)
    }
}

/// F = (H, integrals), with the groups and the number of its rows.
fn parts(model: &Model) -> (Vec<Part<'_>>, Vec<InvariantGroup>, usize) {
    let (mut parts, mut groups, mut count) = (Vec::new(), Vec::new(), 0);
    if let Dynamics::Hamiltonian(functional, _) = &model.dynamics
        && !model.explicit_time
    {
        parts.push(Part { functional, rows: Box::new(|_| Some(0)) });
        let members = vec![vec![(0, 1.0)]];
        groups.push(InvariantGroup { name: "H".to_string(), kind: InvariantKind::Hamiltonian, members });
        count = 1;
    }
    for quantity in &model.integrals {
        parts.push(Part { functional: &quantity.functional, rows: Box::new(rows_of(quantity, count)) });
        let width = quantity.components.len();
        let member = |m: usize| {
            let components = quantity.components.iter().enumerate();
            components.map(|(k, component)| (count + m * width + k, component.multiplicity)).collect()
        };
        let members = (0..quantity.members).map(member).collect();
        groups.push(InvariantGroup { name: quantity.name.clone(), kind: InvariantKind::Integral, members });
        count += quantity.members * width;
    }
    (parts, groups, count)
}

/// The row of F of each output of a quantity whose first row is `first`; only independent components have one.
fn rows_of(quantity: &Quantity, first: usize) -> impl Fn(usize) -> Option<u32> + '_ {
    let (width, kept) = (quantity.shape.len(), quantity.components.len());
    let mut place = vec![None; width];
    for (k, component) in quantity.components.iter().enumerate() {
        place[component.offset] = Some(k);
    }
    move |output| place[output % width].map(|k| (first + output / width * kept + k) as u32)
}

/// The sparsity of DF by rows: where the entries of each row start, and their columns.
fn pattern(parts: &[Part], count: usize) -> (Vec<usize>, Vec<u32>) {
    // Entries as row · 2³² + column. Many of them coincide, so they are thinned out whenever they have doubled.
    const ROOM: usize = 1 << 20;
    let mut entries: Vec<u64> = Vec::new();
    let mut limit = ROOM;
    let thin_out = |entries: &mut Vec<u64>| {
        entries.sort_unstable();
        entries.dedup();
    };
    for part in parts {
        for term in &part.functional.terms {
            let (_, gradients) = term.gradients();
            for row in 0..term.rows() {
                for (output, gradient) in term.outputs(row).zip(&gradients) {
                    if let Some(f) = (part.rows)(output) {
                        let key =
                            |&(slot, _): &(u32, _)| (u64::from(f) << 32) | u64::from(term.row(row)[slot as usize]);
                        entries.extend(gradient.iter().map(key));
                    }
                }
                if entries.len() > limit {
                    thin_out(&mut entries);
                    limit = 2 * entries.len().max(ROOM);
                }
            }
        }
    }
    thin_out(&mut entries);
    let row_start = (0..=count).map(|row| entries.partition_point(|&e| e >> 32 < row as u64)).collect();
    (row_start, entries.into_iter().map(|e| e as u32).collect())
}
