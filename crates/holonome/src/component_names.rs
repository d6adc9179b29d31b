//! Names of the components of a state, as users write them.

use holonome_model::elaborate::model::{Model, Variable};

/// Names of the components of the state: `r[2].x`, `R[1,3]`.
pub(crate) fn component_names(model: &Model) -> Vec<String> {
    let names = |variable: &Variable| (0..variable.family.len()).map(|place| component_name(variable, place)).collect();
    model.variables.iter().flat_map(|variable| -> Vec<String> { names(variable) }).collect()
}

/// Name of a member of a variable: `r[2]`.
pub(crate) fn member_name(variable: &Variable, mut member: usize) -> String {
    let family = &variable.family;
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

/// Name of component number `place` of a variable.
pub(crate) fn component_name(variable: &Variable, place: usize) -> String {
    let shape = variable.family.shape;
    let mut component = place % shape.len();
    let mut name = member_name(variable, place / shape.len());
    match shape.dimensions()[..] {
        [count] if count <= 3 => name.push_str([".x", ".y", ".z"][component]),
        [_] => name.push_str(&format!("[{}]", component + 1)),
        [_, columns] => {
            let row = component / columns;
            component %= columns;
            name.push_str(&format!("[{},{}]", row + 1, component + 1));
        }
        _ => {}
    }
    name
}
