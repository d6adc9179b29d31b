//! Many short lists in one array, such as patterns of sparse matrices by rows.

use std::ops::Index;

/// Lists of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lists {
    /// Start of each list, then the end of the last; length n + 1.
    start: Vec<usize>,
    all: Vec<u32>,
}

impl Default for Lists {
    fn default() -> Lists {
        Lists { start: vec![0], all: Vec::new() }
    }
}

impl Lists {
    /// Number of lists.
    pub fn len(&self) -> usize {
        self.start.len() - 1
    }

    /// True if there is no list.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// List number `i`.
    pub fn of(&self, i: usize) -> &[u32] {
        &self.all[self.start[i]..self.start[i + 1]]
    }

    /// All lists, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u32]> + ExactSizeIterator {
        (0..self.len()).map(|i| self.of(i))
    }

    /// Start of each list among the numbers of all, then the end of the last.
    pub fn starts(&self) -> &[usize] {
        &self.start
    }
}

impl Index<usize> for Lists {
    type Output = [u32];

    fn index(&self, i: usize) -> &[u32] {
        self.of(i)
    }
}

impl<L: IntoIterator<Item = u32>> FromIterator<L> for Lists {
    fn from_iter<I: IntoIterator<Item = L>>(lists: I) -> Lists {
        let mut all = Lists::default();
        for list in lists {
            all.all.extend(list);
            all.start.push(all.all.len());
        }
        all
    }
}

impl Lists {
    /// Group the second numbers of `pairs` by the first, which are below `n`. Each list is in the
    /// order of the pairs; `pairs` is called twice.
    pub fn collect<I: Iterator<Item = (u32, u32)>>(n: usize, pairs: impl Fn() -> I) -> Lists {
        let mut start = vec![0; n + 1];
        for (i, _) in pairs() {
            start[i as usize + 1] += 1;
        }
        for i in 0..n {
            start[i + 1] += start[i];
        }
        let mut next = start.clone();
        let mut all = vec![0; start[n]];
        for (i, j) in pairs() {
            let next = &mut next[i as usize];
            all[*next] = j;
            *next += 1;
        }
        Lists { start, all }
    }

    /// Sort every list and remove duplicates.
    pub fn sort(&mut self) {
        let mut kept = 0;
        for i in 0..self.len() {
            let (from, to) = (self.start[i], self.start[i + 1]);
            self.start[i] = kept;
            self.all[from..to].sort_unstable();
            let mut last = None;
            for k in from..to {
                let number = self.all[k];
                if last.replace(number) != Some(number) {
                    self.all[kept] = number;
                    kept += 1;
                }
            }
        }
        if let Some(end) = self.start.last_mut() {
            *end = kept;
        }
        self.all.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_become_sorted_lists() {
        let pairs = [(3, 7), (0, 2), (3, 1), (3, 7), (0, 0), (4, 5), (3, 1)];
        let mut lists = Lists::collect(6, || pairs.iter().copied());
        assert_eq!(lists.of(3), [7, 1, 7, 1]);
        lists.sort();
        let all: Vec<&[u32]> = lists.iter().collect();
        assert_eq!(all, [&[0, 2][..], &[], &[], &[1, 7], &[5], &[]]);
        assert_eq!(lists.starts(), [0, 2, 2, 2, 4, 5, 5]);
    }
}
