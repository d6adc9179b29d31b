//! Orderings of sparse symmetric patterns: for little fill, and for a narrow band.

use std::collections::{BTreeSet, VecDeque};

/// The nodes joined to each of `n` nodes by these pairs, in either direction: increasing, each once and never itself.
pub fn neighbours(n: usize, pairs: &[(u32, u32)]) -> Vec<Vec<u32>> {
    let mut neighbours = vec![Vec::new(); n];
    for &(i, j) in pairs.iter().filter(|(i, j)| i != j) {
        neighbours[i as usize].push(j);
        neighbours[j as usize].push(i);
    }
    for list in &mut neighbours {
        list.sort_unstable();
        list.dedup();
    }
    neighbours
}

/// A minimum-degree ordering: repeatedly eliminates a node of least degree and joins its neighbours.
///
/// `neighbours[i]` lists the nodes joined to i, without i itself. Nodes of more than about 10√n neighbours come last,
/// because eliminating one early joins everything. Returns the nodes in their new order; ties go to the lower number,
/// so the result is reproducible.
pub fn minimum_degree(neighbours: &[Vec<u32>]) -> Vec<u32> {
    minimum_degree_after(neighbours, |_| false)
}

/// [`minimum_degree`] with the `late` nodes after all others that are not dense.
pub fn minimum_degree_after(neighbours: &[Vec<u32>], late: impl Fn(u32) -> bool) -> Vec<u32> {
    let n = neighbours.len();
    let dense = (10.0 * (n as f64).sqrt()).max(16.0) as usize;
    let is_dense: Vec<bool> = neighbours.iter().map(|list| list.len() > dense).collect();
    let mut graph: Vec<BTreeSet<u32>> = (0..n)
        .map(|i| {
            let keep = |&&j: &&u32| !is_dense[i] && !is_dense[j as usize] && j as usize != i;
            neighbours[i].iter().filter(keep).copied().collect()
        })
        .collect();
    let mut queue: BTreeSet<(bool, usize, u32)> =
        (0..n as u32).filter(|&i| !is_dense[i as usize]).map(|i| (late(i), graph[i as usize].len(), i)).collect();
    let mut order = Vec::with_capacity(n);
    while let Some((_, _, node)) = queue.pop_first() {
        order.push(node);
        let clique: Vec<u32> = std::mem::take(&mut graph[node as usize]).into_iter().collect();
        for &i in &clique {
            let neighbours = &mut graph[i as usize];
            queue.remove(&(late(i), neighbours.len(), i));
            neighbours.remove(&node);
            neighbours.extend(clique.iter().filter(|&&j| j != i));
            queue.insert((late(i), neighbours.len(), i));
        }
    }
    order.extend((0..n as u32).filter(|&i| is_dense[i as usize]));
    order
}

/// The reverse Cuthill–McKee ordering: breadth first from a node at the edge of each component, near nodes of low degree
/// first, and all of that backwards. Nodes that are joined end up near each other. `neighbours` as above.
pub fn reverse_cuthill_mckee(neighbours: &[Vec<u32>]) -> Vec<u32> {
    let n = neighbours.len();
    let mut order = Vec::with_capacity(n);
    let mut seen = vec![false; n];
    for start in 0..n {
        if seen[start] {
            continue;
        }
        // The node seen last from one end is at the other end.
        let mut edge = start as u32;
        for _ in 0..2 {
            edge = *breadth_first(neighbours, edge, &mut vec![false; n]).last().unwrap_or(&edge);
        }
        order.extend(breadth_first(neighbours, edge, &mut seen));
    }
    order.reverse();
    order
}

/// The component of `start`, nearest first; marks it as seen.
fn breadth_first(neighbours: &[Vec<u32>], start: u32, seen: &mut [bool]) -> Vec<u32> {
    let mut queue = VecDeque::from([start]);
    let mut order = Vec::new();
    seen[start as usize] = true;
    while let Some(node) = queue.pop_front() {
        order.push(node);
        let mut next: Vec<u32> = neighbours[node as usize].iter().copied().filter(|&j| !seen[j as usize]).collect();
        next.sort_by_key(|&j| (neighbours[j as usize].len(), j));
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
        // 0 − 5 − 1 − 6 − …: neighbours in the chain are far apart in number.
        let n = 11;
        let chain: Vec<u32> = (0..n).map(|k| (k * 5) % n).collect();
        let mut neighbours = vec![Vec::new(); n as usize];
        for pair in chain.windows(2) {
            neighbours[pair[0] as usize].push(pair[1]);
            neighbours[pair[1] as usize].push(pair[0]);
        }
        // And a node of its own.
        neighbours.push(Vec::new());
        let order = reverse_cuthill_mckee(&neighbours);
        let place = |node: u32| order.iter().position(|&j| j == node).unwrap();
        assert!(chain.windows(2).all(|pair| place(pair[0]).abs_diff(place(pair[1])) == 1), "{order:?}");
        assert_eq!(order.len(), 12);
    }

    #[test]
    fn a_star_is_eliminated_from_its_leaves() {
        let mut neighbours = vec![vec![0u32]; 6];
        neighbours[0] = (1..6).collect();
        let order = minimum_degree(&neighbours);
        // The centre has the largest degree until one leaf is left; then either may go.
        assert!(order.iter().position(|&node| node == 0).unwrap() >= 4);
    }

    #[test]
    fn dense_rows_come_last() {
        let n = 2000;
        let mut neighbours = vec![vec![7u32]; n];
        neighbours[7] = (0..n as u32).filter(|&i| i != 7).collect();
        assert_eq!(minimum_degree(&neighbours).last(), Some(&7));
    }

    #[test]
    fn every_node_comes_once() {
        let neighbours: Vec<Vec<u32>> = (0..50u32).map(|i| vec![(i + 1) % 50, (i + 49) % 50, (i * 7) % 50]).collect();
        let symmetric: Vec<Vec<u32>> = (0..50u32)
            .map(|i| {
                (0..50)
                    .filter(|&j| neighbours[i as usize].contains(&j) || neighbours[j as usize].contains(&i))
                    .collect()
            })
            .collect();
        let mut order = minimum_degree(&symmetric);
        order.sort();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }
}
