//! Names of the components of a state, as users write them.

use holonome_model::elaborate::model::{Family, Model, Variable};
use holonome_model::elaborate::shape::Shape;

/// Names of the components of the state: `r[2].x`, `R[1,3]`.
pub(crate) fn component_names(model: &Model) -> Vec<String> {
    let names = |variable: &Variable| {
        (0..variable.family.len()).map(|place| component_name(&variable.family, place)).collect()
    };
    model.variables.iter().flat_map(|variable| -> Vec<String> { names(variable) }).collect()
}

/// Name of a member of a family: `r[2]`.
pub(crate) fn member_name(family: &Family, mut member: usize) -> String {
    // The last index runs fastest.
    let mut indices = Vec::new();
    for &(low, high) in family.bounds.iter().rev() {
        let count = (high - low + 1) as usize;
        indices.insert(0, (low + (member % count) as i64).to_string());
        member /= count;
    }
    let mut name = family.name.clone();
    if !indices.is_empty() {
        name.push_str(&format!("[{}]", indices.join(",")));
    }
    name
}

/// Name of component number `place` of a family.
pub(crate) fn component_name(family: &Family, place: usize) -> String {
    let width = family.shape.len();
    member_name(family, place / width) + &component_suffix(family.shape, place % width)
}

/// What follows a member's name in the name of a component: `.x`, `[1,3]`, nothing for a scalar.
pub(crate) fn component_suffix(shape: Shape, component: usize) -> String {
    match shape.dimensions()[..] {
        [count] if count <= 3 => [".x", ".y", ".z"][component].to_string(),
        [_] => format!("[{}]", component + 1),
        [_, columns] => format!("[{},{}]", component / columns + 1, component % columns + 1),
        _ => String::new(),
    }
}
