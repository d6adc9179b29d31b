//! Layout of a state as columns: one component of all members of a family after the other, as loops
//! over rows read it. The order of a model's state is that of its variables, member after member.

use crate::elaborate::model::Model;

/// Numbers at evenly spaced places: `first`, `first + stride` and so on, `length` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StridedFamily {
    /// Place of the first number.
    pub first: u32,
    /// Distance of the next one.
    pub stride: u32,
    /// Number of places.
    pub length: u32,
}

/// Places of the components of a state, by members and by columns.
#[derive(Clone, Debug)]
pub struct Layout {
    variables: Vec<Members>,
    length: usize,
}

/// Members of a variable, in the state from `first` on.
#[derive(Clone, Copy, Debug)]
struct Members {
    first: usize,
    width: usize,
    count: usize,
}

impl Layout {
    /// Layout of a model's state.
    pub fn new(model: &Model) -> Layout {
        let members = |first: usize, width: usize, count: usize| Members {
            first,
            width,
            count: if width == 0 { 0 } else { count },
        };
        let variables = model.variables.iter();
        let variables = variables
            .map(|v| members(v.first, v.family.width(), v.family.len() / v.family.width().max(1)))
            .collect();
        Layout { variables, length: model.dimension() }
    }

    /// Length of the state.
    pub fn len(&self) -> usize {
        self.length
    }

    /// True if there is no state.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// True if columns have the same places as members.
    pub fn is_plain(&self) -> bool {
        self.variables.iter().all(|v| v.width == 1 || v.count == 1)
    }

    /// Columns, by their places in the state.
    pub fn families(&self) -> Vec<StridedFamily> {
        let of = |v: &Members| {
            let v = *v;
            let place = move |c: usize| (v.first + c) as u32;
            (0..v.width).map(move |c| StridedFamily {
                first: place(c),
                stride: v.width as u32,
                length: v.count as u32,
            })
        };
        self.variables.iter().flat_map(of).collect()
    }

    /// Place of a component of the state among the columns.
    pub fn place(&self, component: u32) -> u32 {
        let component = component as usize;
        let v = self.variables[self.variables.partition_point(|v| v.first <= component) - 1];
        let (member, c) = ((component - v.first) / v.width, (component - v.first) % v.width);
        (v.first + c * v.count + member) as u32
    }

    /// Place among the columns of the components `first`, `first + step` and so on, `count` of
    /// them, with the step there. `None` if they are not one component of members of one variable.
    pub(super) fn line(&self, first: u32, step: i32, count: u32) -> Option<(u32, i32)> {
        let last = i64::from(first) + i64::from(step) * i64::from(count.max(1) - 1);
        let k = self.variables.partition_point(|v| v.first <= first as usize) - 1;
        let v = self.variables[k];
        let inside = (v.first as i64..(v.first + v.width * v.count) as i64).contains(&last);
        // The step of a single row is 0.
        let width = i32::try_from(v.width).ok()?;
        (inside && step % width == 0).then(|| (self.place(first), step / width))
    }

    /// Copy a state into columns.
    pub fn split(&self, x: &[f64], columns: &mut [f64]) {
        for v in &self.variables {
            let (x, columns) =
                (&x[v.first..][..v.width * v.count], &mut columns[v.first..][..v.width * v.count]);
            match v.width {
                1 => columns.copy_from_slice(x),
                2 => split::<2>(x, columns),
                3 => split::<3>(x, columns),
                _ => {
                    for (c, column) in columns.chunks_exact_mut(v.count.max(1)).enumerate() {
                        for (to, member) in column.iter_mut().zip(x.chunks_exact(v.width)) {
                            *to = member[c];
                        }
                    }
                }
            }
        }
    }

    /// Copy columns into a state; `columns` may hold the first variables only.
    pub fn join(&self, columns: &[f64], x: &mut [f64]) {
        for v in self.variables.iter().take_while(|v| v.first < columns.len()) {
            let (x, columns) =
                (&mut x[v.first..][..v.width * v.count], &columns[v.first..][..v.width * v.count]);
            match v.width {
                1 => x.copy_from_slice(columns),
                2 => join::<2>(columns, x),
                3 => join::<3>(columns, x),
                _ => {
                    for (c, column) in columns.chunks_exact(v.count.max(1)).enumerate() {
                        for (from, member) in column.iter().zip(x.chunks_exact_mut(v.width)) {
                            member[c] = *from;
                        }
                    }
                }
            }
        }
    }
}

/// Split in one vectorised pass over the members, for the common widths.
fn split<const W: usize>(x: &[f64], mut columns: &mut [f64]) {
    let (members, _) = x.as_chunks::<W>();
    let mut each: [&mut [f64]; W] = std::array::from_fn(|_| {
        let (column, rest) = std::mem::take(&mut columns).split_at_mut(members.len());
        columns = rest;
        column
    });
    for (k, member) in members.iter().enumerate() {
        for (column, value) in each.iter_mut().zip(member) {
            column[k] = *value;
        }
    }
}

fn join<const W: usize>(columns: &[f64], x: &mut [f64]) {
    let (members, _) = x.as_chunks_mut::<W>();
    let count = members.len();
    let each: [&[f64]; W] = std::array::from_fn(|c| &columns[c * count..][..count]);
    for (k, member) in members.iter_mut().enumerate() {
        for (column, value) in each.iter().zip(member) {
            *value = column[k];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_hold_one_component_of_every_member() {
        let (mut variables, mut first) = (Vec::new(), 0);
        for (width, count) in [(1, 5), (3, 1), (2, 5), (3, 4), (4, 3), (0, 2), (9, 1)] {
            variables.push(Members { first, width, count: if width == 0 { 0 } else { count } });
            first += width * count;
        }
        let layout = Layout { variables, length: first };
        let x: Vec<f64> = (0..first).map(|k| k as f64).collect();
        let (mut columns, mut back) = (vec![f64::NAN; first], vec![f64::NAN; first]);
        layout.split(&x, &mut columns);
        layout.join(&columns, &mut back);
        assert_eq!(back, x);
        for component in 0..first as u32 {
            assert_eq!(columns[layout.place(component) as usize], f64::from(component));
        }
        let mut next = 0;
        for family in layout.families() {
            for member in 0..family.length {
                assert_eq!(layout.place(family.first + member * family.stride), next);
                next += 1;
            }
        }
        assert_eq!(next as usize, first);
        // Second components of the 3-vectors from the first to the third, also backwards; then
        // across two variables.
        assert_eq!(layout.line(19, 3, 3), Some((layout.place(19), 1)));
        assert_eq!(layout.line(25, -6, 2), Some((layout.place(25), -2)));
        assert_eq!(layout.line(19, 2, 2), None);
        assert_eq!(layout.line(19, 12, 2), None);
        assert!(!layout.is_plain());
    }
}
