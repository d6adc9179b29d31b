//! Rows that the members of a family stand on, with weights. Members whose rows advance by equal
//! steps form one stretch, of which only the first member and the step are stored: those of a
//! million equal links take no memory.

use std::ops::Range;

/// Rows of each member of a family, with their weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberRows {
    stretches: Vec<Stretch>,
    /// Rows and weights of the first members of all stretches.
    firsts: Vec<(u32, f64)>,
}

/// Members whose rows advance by equal steps, with equal weights.
#[derive(Clone, Debug, PartialEq)]
struct Stretch {
    /// Place of the first member's rows among [`MemberRows::firsts`].
    rows: Range<usize>,
    step: u32,
    count: usize,
}

/// Rows of one member, with their weights.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    first: &'a [(u32, f64)],
    /// Distance from the rows of the first member of its stretch.
    shift: u32,
}

impl MemberRows {
    /// Number of members.
    pub fn len(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.count).sum()
    }

    /// True if there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Members, in order.
    pub fn iter(&self) -> impl Iterator<Item = Member<'_>> {
        self.stretches.iter().flat_map(|stretch| {
            let first = &self.firsts[stretch.rows.clone()];
            (0..stretch.count).map(move |number| Member {
                first,
                shift: stretch.step.wrapping_mul(number as u32),
            })
        })
    }

    /// Rows of all members, with their weights.
    pub fn rows(&self) -> impl Iterator<Item = (usize, f64)> {
        self.iter().flatten()
    }

    /// Number of rows of all members together.
    pub fn row_count(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.count * stretch.rows.len()).sum()
    }

    /// True if some member has several rows.
    pub fn has_wide(&self) -> bool {
        self.stretches.iter().any(|stretch| stretch.count > 0 && stretch.rows.len() > 1)
    }

    /// Rows of the members, if these are one row each, of weight one and in line.
    pub fn in_line(&self) -> Option<Range<usize>> {
        let (mut first, mut end) = (None, 0);
        for stretch in self.stretches.iter().filter(|stretch| stretch.count > 0) {
            let &[(row, 1.0)] = &self.firsts[stretch.rows.clone()] else { return None };
            if first.is_some() && row != end || stretch.count > 1 && stretch.step != 1 {
                return None;
            }
            first.get_or_insert(row);
            end = row + stretch.count as u32;
        }
        Some(first.unwrap_or(0) as usize..end as usize)
    }

    /// These members with their rows counted from `first` in place of 0.
    pub fn moved(mut self, first: usize) -> MemberRows {
        self.firsts.iter_mut().for_each(|(row, _)| *row += first as u32);
        self
    }

    /// Append a member. It joins the last stretch if it goes on there.
    fn push(&mut self, member: impl IntoIterator<Item = (usize, f64)>) {
        let start = self.firsts.len();
        self.firsts.extend(member.into_iter().map(|(row, weight)| (row as u32, weight)));
        if let Some(last) = self.stretches.last_mut() {
            let (firsts, new) = self.firsts.split_at(start);
            let first = &firsts[last.rows.clone()];
            let distance = match (first, new) {
                ([(a, _), ..], [(b, _), ..]) => b.wrapping_sub(*a),
                _ => 0,
            };
            let step = if last.count == 1 { distance } else { last.step };
            let goes_on = |(&(a, v), &(b, w)): (&(u32, f64), &(u32, f64))| {
                b.wrapping_sub(a) == distance && v == w
            };
            let is_next = distance == step.wrapping_mul(last.count as u32);
            if is_next && first.len() == new.len() && first.iter().zip(new).all(goes_on) {
                (last.step, last.count) = (step, last.count + 1);
                self.firsts.truncate(start);
                return;
            }
        }
        self.stretches.push(Stretch { rows: start..self.firsts.len(), step: 0, count: 1 });
    }
}

impl<M: IntoIterator<Item = (usize, f64)>> FromIterator<M> for MemberRows {
    fn from_iter<I: IntoIterator<Item = M>>(members: I) -> MemberRows {
        let mut all = MemberRows::default();
        members.into_iter().for_each(|member| all.push(member));
        all
    }
}

impl<'a> Member<'a> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// True if the member has no rows.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Row and weight of a member with one row only.
    pub fn single(&self) -> Option<(usize, f64)> {
        match *self.first {
            [(row, weight)] => Some((row.wrapping_add(self.shift) as usize, weight)),
            _ => None,
        }
    }
}

impl<'a> IntoIterator for Member<'a> {
    type Item = (usize, f64);
    type IntoIter = MemberIter<'a>;

    fn into_iter(self) -> MemberIter<'a> {
        MemberIter { rest: self.first.iter(), shift: self.shift }
    }
}

/// Iterator over the rows of a member.
#[derive(Clone, Debug)]
pub struct MemberIter<'a> {
    rest: std::slice::Iter<'a, (u32, f64)>,
    shift: u32,
}

impl Iterator for MemberIter<'_> {
    type Item = (usize, f64);

    fn next(&mut self) -> Option<(usize, f64)> {
        self.rest.next().map(|&(row, weight)| (row.wrapping_add(self.shift) as usize, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(members: &MemberRows) -> Vec<Vec<(usize, f64)>> {
        members.iter().map(|member| member.into_iter().collect()).collect()
    }

    #[test]
    fn any_members_come_back_and_equal_steps_are_stored_once() {
        let all: [&[&[(usize, f64)]]; 6] = [
            &[],
            &[&[], &[], &[(3, 1.0)]],
            &[&[(3, 1.0)], &[(4, 1.0)], &[(5, 1.0)], &[(5, 1.0)], &[(5, 2.0)]],
            &[&[(0, 1.0), (1, 2.0)], &[(2, 1.0), (3, 2.0)], &[(4, 1.0), (6, 2.0)]],
            &[&[(9, 1.0)], &[(7, 1.0)], &[(5, 1.0)], &[(0, 1.0), (1, 1.0)]],
            &[&[(2, 1.0)], &[(2, 1.0)], &[(2, 1.0)]],
        ];
        for (given, stretches) in all.into_iter().zip([0, 2, 3, 2, 2, 1]) {
            let members: MemberRows = given.iter().map(|member| member.iter().copied()).collect();
            assert_eq!(
                lists(&members),
                given.iter().map(|member| member.to_vec()).collect::<Vec<_>>()
            );
            assert_eq!((members.len(), members.stretches.len()), (given.len(), stretches));
            assert_eq!(members.row_count(), members.rows().count());
            assert_eq!(members.has_wide(), given.iter().any(|member| member.len() > 1));
        }
        let links: MemberRows = (0..1000).map(|m| [(2 * m, 1.0), (2 * m + 1, 0.5)]).collect();
        assert_eq!(links.stretches.len(), 1);
        assert_eq!(
            links.moved(7).iter().nth(10).map(|m| m.into_iter().collect()),
            Some(vec![(27, 1.0), (28, 0.5)])
        );
    }

    #[test]
    fn scalars_of_weight_one_are_in_line_if_their_rows_are() {
        let of =
            |rows: &[(usize, f64)]| rows.iter().map(|&row| [row]).collect::<MemberRows>().in_line();
        assert_eq!(of(&[]), Some(0..0));
        assert_eq!(of(&[(4, 1.0)]), Some(4..5));
        assert_eq!(of(&[(4, 1.0), (5, 1.0), (6, 1.0)]), Some(4..7));
        assert_eq!(of(&[(4, 1.0), (6, 1.0)]), None);
        assert_eq!(of(&[(4, 1.0), (5, 2.0)]), None);
        assert_eq!(of(&[(4, 1.0), (5, 1.0), (5, 1.0)]), None);
        assert_eq!([[(0, 1.0), (1, 1.0)]].into_iter().collect::<MemberRows>().in_line(), None);
    }
}
