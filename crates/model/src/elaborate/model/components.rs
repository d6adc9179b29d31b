//! Names of the members and components of a family, as users write them: `r[2]`, `r[2].x`,
//! `R[1,3]`.

use super::{Family, Model, Variable};
use crate::elaborate::shape::Shape;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use std::ops::Range;

impl Family {
    /// Name of member number `member`: `r[2]`.
    pub fn member_name(&self, member: usize) -> String {
        let indices: Vec<String> = self.member_indices(member).iter().map(i32::to_string).collect();
        let mut name = self.name.clone();
        if !indices.is_empty() {
            name.push_str(&format!("[{}]", indices.join(",")));
        }
        name
    }

    /// Name of component number `place`, counted over all members: `r[2].x`.
    pub fn component_name(&self, place: usize) -> String {
        let width = self.shape.len();
        self.member_name(place / width) + &component_suffix(self.shape, place % width)
    }

    /// Components that `selection` selects, what follows the name of the family: all of them if it
    /// is empty, those of a member, or one. `None` if there are none such.
    pub fn selected(&self, selection: &str) -> Option<Range<usize>> {
        let selection: String = selection.chars().filter(|c| !c.is_whitespace()).collect();
        if selection.is_empty() {
            return Some(0..self.len());
        }
        let width = self.shape.len();
        let (member, rest) = match self.bounds.is_empty() {
            true => (0, &selection[..]),
            false => {
                let (indices, rest) = selection.strip_prefix('[')?.split_once(']')?;
                (self.member(indices)?, rest)
            }
        };
        let first = member * width;
        if rest.is_empty() {
            return Some(first..first + width);
        }
        let component = component(self.shape, rest)?;
        Some(first + component..first + component + 1)
    }

    /// Components that `selection`, written at `span`, selects; see [`Family::selected`].
    ///
    /// # Errors
    /// If there are none such: which there are.
    pub(in crate::elaborate) fn selection(
        &self,
        selection: &str,
        span: Span,
    ) -> Result<Range<usize>, Diagnostic> {
        self.selected(selection).ok_or_else(|| {
            let message = format!("'{}' has no member or component '{selection}'", self.name);
            let help = match self.len() {
                0 => "it has no components".to_string(),
                count => format!(
                    "its {count} components are {} to {}",
                    self.component_name(0),
                    self.component_name(count - 1)
                ),
            };
            Diagnostic::error(message, span, "no such numbers").help(help)
        })
    }

    /// Index values of member number `member`.
    pub(crate) fn member_indices(&self, mut member: usize) -> Vec<i32> {
        // The last index runs fastest.
        let mut indices = Vec::with_capacity(self.bounds.len());
        for &(low, high) in self.bounds.iter().rev() {
            let count = (high - low + 1) as usize;
            indices.push((low + (member % count) as i64) as i32);
            member /= count;
        }
        indices.reverse();
        indices
    }

    /// Number of the member with these indices, `2` or `2,3`.
    fn member(&self, indices: &str) -> Option<usize> {
        let indices: Vec<i64> =
            indices.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        if indices.len() != self.bounds.len() {
            return None;
        }
        indices.iter().zip(&self.bounds).try_fold(0, |member, (index, &(low, high))| {
            let inside = (low..=high).contains(index);
            inside.then(|| member * (high - low + 1) as usize + (index - low) as usize)
        })
    }
}

impl Model {
    /// Names of the components of the state, in its order.
    pub fn component_names(&self) -> Vec<String> {
        let names = |variable: &Variable| {
            (0..variable.family.len()).map(|place| variable.family.component_name(place)).collect()
        };
        self.variables.iter().flat_map(|variable| -> Vec<String> { names(variable) }).collect()
    }
}

/// Number of the component that `text` names behind a member: `.x`, `[1]`, `[1,3]`.
fn component(shape: Shape, text: &str) -> Option<usize> {
    let letter = [".x", ".y", ".z"].iter().position(|letter| *letter == text);
    let numbers = || text.strip_prefix('[')?.strip_suffix(']');
    let place = |number: &str, count: usize| {
        number.parse().ok().filter(|k| (1..=count).contains(k)).map(|k| k - 1)
    };
    match shape.dimensions()[..] {
        [count] => letter.or_else(|| place(numbers()?, count)).filter(|&k| k < count),
        [rows, columns] => {
            let (row, column) = numbers()?.split_once(',')?;
            Some(place(row, rows)? * columns + place(column, columns)?)
        }
        _ => None,
    }
}

/// What follows a member's name in the name of a component: `.x`, `[1,3]`, nothing for a scalar.
pub fn component_suffix(shape: Shape, component: usize) -> String {
    match shape.dimensions()[..] {
        [count] if count <= 3 => [".x", ".y", ".z"][component].to_string(),
        [_] => format!("[{}]", component + 1),
        [_, columns] => format!("[{},{}]", component / columns + 1, component % columns + 1),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::span::Span;

    #[test]
    fn components_have_letters_and_numbers() {
        let family = |shape| Family {
            name: "q".to_string(),
            span: Span::default(),
            indices: Vec::new(),
            bounds: Vec::new(),
            shape,
        };
        let five = family(Shape::Vector(5));
        assert_eq!([five.selected(".y"), five.selected(" [ 2 ]")], [Some(1..2), Some(1..2)]);
        assert_eq!(family(Shape::Vector(2)).selected(".z"), None);
        assert_eq!(family(Shape::Matrix(2, 3)).selected("[2, 1]"), Some(3..4));
    }

    #[test]
    fn every_name_selects_what_it_names() {
        let shapes = [
            Shape::Scalar,
            Shape::Vector(2),
            Shape::Vector(3),
            Shape::Vector(5),
            Shape::Matrix(2, 3),
        ];
        for shape in shapes {
            for bounds in [vec![], vec![(0, 3)], vec![(-1, 1), (2, 4)]] {
                let (name, indices) = ("r".to_string(), vec!["i".to_string(); bounds.len()]);
                let family = Family { name, span: Span::default(), indices, bounds, shape };
                let suffix = |name: &str| name[1..].to_string();
                for place in 0..family.len() {
                    let named = suffix(&family.component_name(place));
                    let all = shape.len() == 1 && family.bounds.is_empty();
                    let expected = if all { 0..1 } else { place..place + 1 };
                    assert_eq!(family.selected(&named), Some(expected), "{shape} {named}");
                }
                for member in 0..family.members() {
                    let first = member * shape.len();
                    let named = suffix(&family.member_name(member));
                    assert_eq!(family.selected(&named), Some(first..first + shape.len()));
                }
                assert_eq!(family.selected(""), Some(0..family.len()));
                for none in [".w", "[0]", "[9]", "[1,2,3]", "[1", ".x.y", "[1]x", "[1.5]", "[]"] {
                    let exists = none == "[0]" && family.bounds == [(0, 3)];
                    assert!(exists || family.selected(none).is_none(), "{shape} {none}");
                }
            }
        }
    }
}
