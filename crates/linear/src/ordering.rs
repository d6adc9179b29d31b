//! Orderings of sparse symmetric patterns: for little fill, and for a narrow band.

use crate::lists::Lists;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Nodes joined to each of `n` nodes by these pairs, in either direction: increasing, without
/// duplicates or the node.
pub fn neighbours(n: usize, pairs: &[(u32, u32)]) -> Lists {
    let apart = || pairs.iter().copied().filter(|(i, j)| i != j);
    let mut neighbours = Lists::collect(n, || apart().flat_map(|(i, j)| [(i, j), (j, i)]));
    neighbours.sort();
    neighbours
}

/// Minimum-degree ordering: eliminates a node of least degree repeatedly and joins its neighbours.
///
/// `neighbours` lists for each node the nodes joined to it, increasing, without itself. Nodes of
/// more than about 10√n neighbours come last, because eliminating one early joins everything.
/// Returns the nodes in their new order. Ties go to the lower number, so the result is
/// reproducible.
pub fn minimum_degree(neighbours: &Lists) -> Vec<u32> {
    minimum_degree_after(neighbours, |_| false)
}

/// Lists of neighbours during the elimination; a list that grows moves to the end.
struct Graph {
    /// Start and length of each node's list.
    place: Vec<(usize, u32)>,
    all: Vec<u32>,
}

impl Graph {
    fn of(&self, node: u32) -> &[u32] {
        let (first, length) = self.place[node as usize];
        &self.all[first..first + length as usize]
    }

    fn replace(&mut self, node: u32, list: &[u32]) {
        let (first, room) = &mut self.place[node as usize];
        if list.len() > *room as usize {
            *first = self.all.len();
            self.all.extend_from_slice(list);
        } else {
            self.all[*first..*first + list.len()].copy_from_slice(list);
        }
        *room = list.len() as u32;
    }
}

/// Merge both increasing lists, without the nodes `without`.
fn join(mut a: &[u32], mut b: &[u32], without: [u32; 2], joined: &mut Vec<u32>) {
    joined.clear();
    loop {
        let next = match (a.first(), b.first()) {
            (Some(&x), Some(&y)) => x.min(y),
            (Some(&x), None) | (None, Some(&x)) => x,
            (None, None) => return,
        };
        a = &a[usize::from(a.first() == Some(&next))..];
        b = &b[usize::from(b.first() == Some(&next))..];
        if !without.contains(&next) {
            joined.push(next);
        }
    }
}

/// [`minimum_degree`] with the `late` nodes after all others that are not dense.
pub fn minimum_degree_after(neighbours: &Lists, late: impl Fn(u32) -> bool) -> Vec<u32> {
    let n = neighbours.len();
    let dense = (10.0 * (n as f64).sqrt()).max(16.0) as usize;
    let is_dense: Vec<bool> = neighbours.iter().map(|list| list.len() > dense).collect();
    let mut graph = Graph { place: Vec::with_capacity(n), all: Vec::new() };
    for (i, list) in neighbours.iter().enumerate() {
        let first = graph.all.len();
        graph.all.extend(
            list.iter().filter(|&&j| !is_dense[i] && !is_dense[j as usize] && j as usize != i),
        );
        graph.place.push((first, (graph.all.len() - first) as u32));
    }
    // A node is queued again whenever its degree changes; entries with an outdated degree are
    // skipped. A key holds in one number: the late flag, the degree, the node.
    let key = |node: u32, degree: usize| {
        Reverse(u64::from(late(node)) << 63 | (degree as u64) << 32 | u64::from(node))
    };
    let nodes = (0..n as u32).filter(|&i| !is_dense[i as usize]);
    let mut queue: BinaryHeap<_> = nodes.map(|i| key(i, graph.of(i).len())).collect();
    let mut eliminated = vec![false; n];
    let mut order = Vec::with_capacity(n);
    let (mut clique, mut joined) = (Vec::new(), Vec::new());
    while let Some(Reverse(least)) = queue.pop() {
        let (degree, node) = ((least << 1 >> 33) as usize, least as u32);
        if eliminated[node as usize] || degree != graph.of(node).len() {
            continue;
        }
        eliminated[node as usize] = true;
        order.push(node);
        clique.clear();
        clique.extend_from_slice(graph.of(node));
        for &i in &clique {
            join(graph.of(i), &clique, [node, i], &mut joined);
            if joined.len() != graph.of(i).len() {
                queue.push(key(i, joined.len()));
            }
            graph.replace(i, &joined);
        }
    }
    order.extend((0..n as u32).filter(|&i| is_dense[i as usize]));
    order
}

/// Reverse Cuthill–McKee ordering: breadth first from a node at the edge of each component, near
/// nodes of low degree first, and the whole reversed. Joined nodes end up near each other.
/// `neighbours` as for [`minimum_degree`].
pub fn reverse_cuthill_mckee(neighbours: &Lists) -> Vec<u32> {
    let n = neighbours.len();
    let mut order = Vec::with_capacity(n);
    let mut seen = vec![false; n];
    for start in 0..n {
        if seen[start] {
            continue;
        }
        // The node reached last from one end is at the other end.
        let mut edge = start as u32;
        for _ in 0..2 {
            edge = *breadth_first(neighbours, edge, &mut vec![false; n]).last().unwrap_or(&edge);
        }
        order.extend(breadth_first(neighbours, edge, &mut seen));
    }
    order.reverse();
    order
}

/// Component of `start`, nearest first; marks it as seen.
fn breadth_first(neighbours: &Lists, start: u32, seen: &mut [bool]) -> Vec<u32> {
    let mut queue = VecDeque::from([start]);
    let mut order = Vec::new();
    seen[start as usize] = true;
    while let Some(node) = queue.pop_front() {
        order.push(node);
        let mut next: Vec<u32> =
            neighbours.of(node as usize).iter().copied().filter(|&j| !seen[j as usize]).collect();
        next.sort_by_key(|&j| (neighbours.of(j as usize).len(), j));
        for j in next {
            seen[j as usize] = true;
            queue.push_back(j);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffled_chain_becomes_a_chain() {
        // 0 − 5 − 1 − 6 − …: neighbours in the chain have distant numbers.
        let n = 11;
        let chain: Vec<u32> = (0..n).map(|k| (k * 5) % n).collect();
        let mut neighbours = vec![Vec::new(); n as usize];
        for pair in chain.windows(2) {
            neighbours[pair[0] as usize].push(pair[1]);
            neighbours[pair[1] as usize].push(pair[0]);
        }
        // An isolated node.
        neighbours.push(Vec::new());
        let order = reverse_cuthill_mckee(&neighbours.into_iter().collect());
        let place = |node: u32| order.iter().position(|&j| j == node).unwrap();
        assert!(
            chain.windows(2).all(|pair| place(pair[0]).abs_diff(place(pair[1])) == 1),
            "{order:?}"
        );
        assert_eq!(order.len(), 12);
    }

    #[test]
    fn a_star_is_eliminated_from_its_leaves() {
        let mut neighbours = vec![vec![0u32]; 6];
        neighbours[0] = (1..6).collect();
        let order = minimum_degree(&neighbours.into_iter().collect());
        // The centre has the largest degree until one leaf is left; then either may be next.
        assert!(order.iter().position(|&node| node == 0).unwrap() >= 4);
    }

    #[test]
    fn dense_rows_come_last() {
        let n = 2000;
        let mut neighbours = vec![vec![7u32]; n];
        neighbours[7] = (0..n as u32).filter(|&i| i != 7).collect();
        assert_eq!(minimum_degree(&neighbours.into_iter().collect()).last(), Some(&7));
    }

    #[test]
    fn every_node_comes_once() {
        let neighbours: Vec<Vec<u32>> =
            (0..50u32).map(|i| vec![(i + 1) % 50, (i + 49) % 50, (i * 7) % 50]).collect();
        let symmetric: Vec<Vec<u32>> = (0..50u32)
            .map(|i| {
                (0..50)
                    .filter(|&j| {
                        neighbours[i as usize].contains(&j) || neighbours[j as usize].contains(&i)
                    })
                    .collect()
            })
            .collect();
        let mut order = minimum_degree(&symmetric.into_iter().collect());
        order.sort();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn the_order_is_that_of_sets() {
        use crate::random::Random;
        let mut random = Random::new(5);
        for n in [1usize, 2, 10, 60, 300] {
            for count in [0, n, 3 * n] {
                let node = |random: &mut Random| {
                    ((random.draw() + 1.0) / 2.0 * n as f64) as u32 % n as u32
                };
                let pairs: Vec<(u32, u32)> =
                    (0..count).map(|_| (node(&mut random), node(&mut random))).collect();
                let neighbours = neighbours(n, &pairs);
                let late = |i: u32| i.is_multiple_of(3);
                // By definition, with no nodes that count as dense.
                let mut sets: Vec<std::collections::BTreeSet<u32>> =
                    neighbours.iter().map(|list| list.iter().copied().collect()).collect();
                assert!(sets.iter().all(|set| set.len() <= 16));
                let mut rest: Vec<u32> = (0..n as u32).collect();
                let mut expected = Vec::new();
                while let Some(&node) =
                    rest.iter().min_by_key(|&&i| (late(i), sets[i as usize].len(), i))
                {
                    rest.retain(|&i| i != node);
                    expected.push(node);
                    let clique = std::mem::take(&mut sets[node as usize]);
                    for &i in &clique {
                        sets[i as usize].remove(&node);
                        sets[i as usize].extend(clique.iter().filter(|&&j| j != i));
                    }
                }
                assert_eq!(minimum_degree_after(&neighbours, late), expected);
            }
        }
    }
}
