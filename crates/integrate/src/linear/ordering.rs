//! Fill-reducing orderings of sparse symmetric matrices.

use std::collections::BTreeSet;

/// A minimum-degree ordering: repeatedly eliminates a node of least degree and joins its neighbours.
///
/// `neighbours[i]` lists the nodes joined to i, without i itself. Nodes of more than about 10√n neighbours come last,
/// because eliminating one early joins everything. Returns the nodes in their new order; ties go to the lower number,
/// so the result is reproducible.
pub fn minimum_degree(neighbours: &[Vec<u32>]) -> Vec<u32> {
    let n = neighbours.len();
    let dense = (10.0 * (n as f64).sqrt()).max(16.0) as usize;
    let is_dense: Vec<bool> = neighbours.iter().map(|list| list.len() > dense).collect();
    let mut graph: Vec<BTreeSet<u32>> = (0..n)
        .map(|i| {
            let keep = |&&j: &&u32| !is_dense[i] && !is_dense[j as usize] && j as usize != i;
            neighbours[i].iter().filter(keep).copied().collect()
        })
        .collect();
    let mut queue: BTreeSet<(usize, u32)> =
        (0..n).filter(|&i| !is_dense[i]).map(|i| (graph[i].len(), i as u32)).collect();
    let mut order = Vec::with_capacity(n);
    while let Some((_, node)) = queue.pop_first() {
        order.push(node);
        let clique: Vec<u32> = std::mem::take(&mut graph[node as usize]).into_iter().collect();
        for &i in &clique {
            let neighbours = &mut graph[i as usize];
            queue.remove(&(neighbours.len(), i));
            neighbours.remove(&node);
            neighbours.extend(clique.iter().filter(|&&j| j != i));
            queue.insert((neighbours.len(), i));
        }
    }
    order.extend((0..n as u32).filter(|&i| is_dense[i as usize]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

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
