//! Fields over the sites of a lattice: a number at each site of a row or a grid.

use holonome_model::elaborate::model::{Model, Quantity, Role};
use holonome_model::elaborate::shape::Shape;

/// Least and largest number of sites.
const FEWEST: usize = 4;
const MOST: usize = 20_000;

/// Largest number of fields of which one can be chosen.
const FIELDS: usize = 6;

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lattice {
    /// Name of its array.
    pub name: String,
    /// Number of sites.
    pub sites: usize,
    /// Number of columns of a grid; `None` for a row.
    pub columns: Option<usize>,
}

/// Fields of a model, its observables first, momenta last.
pub(super) fn lattices(model: &Model) -> Vec<Lattice> {
    let mut found: Vec<Lattice> = model.observables.iter().filter_map(of_observable).collect();
    let is_momentum = |role: Role| matches!(role, Role::Momentum(_));
    let mut variables: Vec<_> = model.phase_variables().collect();
    variables.sort_by_key(|variable| is_momentum(variable.role));
    for variable in variables {
        let family = &variable.family;
        let lengths = family.bounds.iter().map(|(low, high)| (high - low + 1).max(0) as usize);
        let lengths: Vec<usize> = lengths.collect();
        found.extend(field(&family.name, family.shape, &lengths));
    }
    found.truncate(FIELDS);
    found
}

fn field(name: &str, shape: Shape, lengths: &[usize]) -> Option<Lattice> {
    let sites: usize = lengths.iter().product();
    let fits = shape == Shape::Scalar && (FEWEST..=MOST).contains(&sites);
    let columns = match lengths {
        [_] => None,
        [_, columns] => Some(*columns),
        _ => return None,
    };
    fits.then(|| Lattice { name: name.to_string(), sites, columns })
}

/// The field of an observable whose members are those of a box.
fn of_observable(observable: &Quantity) -> Option<Lattice> {
    let width = observable.indices.len();
    let members = &observable.member_indices;
    let (first, last) = (members.get(..width)?, members.get(members.len() - width..)?);
    let length = |(low, high): (&i32, &i32)| usize::try_from(high - low + 1).ok();
    let lengths: Vec<usize> = first.iter().zip(last).map(length).collect::<Option<_>>()?;
    let is_box = lengths.iter().product::<usize>() == observable.members;
    field(&observable.name, observable.shape, &lengths).filter(|_| is_box)
}
