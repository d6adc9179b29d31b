//! The little numeric linear algebra that the symbolic half needs to look at a model: ranks, definiteness,
//! points of the constraint set. Integration has its own.

/// A sparse row: (column, value), columns increasing.
pub type Row = Vec<(u32, f64)>;

/// Σ aᵢ bᵢ of two sparse rows.
pub fn dot(a: &[(u32, f64)], b: &[(u32, f64)]) -> f64 {
    let (mut i, mut j, mut sum) = (0, 0, 0.0);
    while i < a.len() && j < b.len() {
        match a[i].0.cmp(&b[j].0) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                sum += a[i].1 * b[j].1;
                i += 1;
                j += 1;
            }
        }
    }
    sum
}

/// LDLᵀ of the Gram matrix of unit-scaled sparse rows without pivoting: each pivot is the squared sine of
/// the angle between a row and the span of the rows eliminated before it.
pub struct Gram {
    scale: Vec<f64>,
    /// Which row is eliminated at each place.
    order: Vec<usize>,
    /// Rows of L by place: (place, entry).
    lower: Vec<Vec<(usize, f64)>>,
    pivots: Vec<f64>,
}

/// A row whose pivot is below this is dependent: its angle to the span of the others is below 1e-6, and
/// the Gram matrix, which squares it, cannot resolve much less.
pub const DEPENDENT: f64 = 1e-12;

impl Gram {
    /// Factors the Gram matrix of `rows` in their own order, so that of dependent rows the later is found.
    pub fn in_order(rows: &[Row]) -> Gram {
        Gram::factor((rows, rows), (0..rows.len()).collect(), &neighbours(rows), 0.0)
    }

    /// Factors the Gram matrix of `rows`, with `shift` added to its diagonal, in an order that keeps it sparse.
    pub fn new(rows: &[Row], shift: f64) -> Gram {
        let neighbours = neighbours(rows);
        Gram::factor((rows, rows), minimum_degree(&neighbours), &neighbours, shift)
    }

    /// Factors the symmetric positive definite matrix of the products leftᵢ · rightⱼ.
    pub fn of_products(left: &[Row], right: &[Row]) -> Gram {
        let both = |(a, b): (&Row, &Row)| -> Row {
            let mut columns: Row = a.iter().chain(b).map(|&(c, _)| (c, 1.0)).collect();
            columns.sort_unstable_by_key(|&(c, _)| c);
            columns.dedup_by_key(|(c, _)| *c);
            columns
        };
        let neighbours = neighbours(&left.iter().zip(right).map(both).collect::<Vec<_>>());
        Gram::factor((left, right), minimum_degree(&neighbours), &neighbours, 0.0)
    }

    fn factor((left, right): (&[Row], &[Row]), order: Vec<usize>, neighbours: &[Vec<usize>], shift: f64) -> Gram {
        let n = left.len();
        let square = |(a, b): (&Row, &Row)| dot(a, b).sqrt();
        let scale: Vec<f64> = left.iter().zip(right).map(square).map(|s| if s > 0.0 { 1.0 / s } else { 0.0 }).collect();
        let mut place = vec![0; n];
        for (k, &row) in order.iter().enumerate() {
            place[row] = k;
        }
        let mut lower: Vec<Vec<(usize, f64)>> = Vec::with_capacity(n);
        let mut pivots: Vec<f64> = Vec::with_capacity(n);
        // Later places that hold an entry in each column of L.
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (i, &row) in order.iter().enumerate() {
            let mut partners: std::collections::BTreeMap<usize, f64> = neighbours[row]
                .iter()
                .filter(|&&other| place[other] < i)
                .map(|&other| (place[other], dot(&left[row], &right[other]) * scale[row] * scale[other]))
                .collect();
            let mut diagonal = if scale[row] > 0.0 { 1.0 + shift } else { 0.0 };
            let mut finished: Vec<(usize, f64)> = Vec::new();
            // Up-looking: the smallest remaining column is final; eliminating with it may add later ones.
            while let Some((j, mut value)) = partners.pop_first() {
                for &(k, l) in &lower[j] {
                    if let Ok(at) = finished.binary_search_by_key(&k, |&(k, _)| k) {
                        value -= finished[at].1 * pivots[k] * l;
                    }
                }
                let entry = if pivots[j] > DEPENDENT { value / pivots[j] } else { 0.0 };
                diagonal -= entry * entry * pivots[j];
                finished.push((j, entry));
                for &k in &below[j] {
                    partners.entry(k).or_insert(0.0);
                }
            }
            for &(j, _) in &finished {
                below[j].push(i);
            }
            lower.push(finished);
            pivots.push(diagonal);
        }
        Gram { scale, order, lower, pivots }
    }

    /// Rows that depend on the rows before them.
    pub fn dependent(&self) -> Vec<usize> {
        (0..self.pivots.len()).filter(|&i| self.pivots[i] <= DEPENDENT).map(|i| self.order[i]).collect()
    }

    /// y with x = Σ yᵢ rowᵢ the least change that alters the rows' products by `right`.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let n = right.len();
        let mut y: Vec<f64> = self.order.iter().map(|&row| right[row] * self.scale[row]).collect();
        for i in 0..n {
            for &(j, l) in &self.lower[i] {
                y[i] -= l * y[j];
            }
        }
        for (y, &d) in y.iter_mut().zip(&self.pivots) {
            *y = if d > DEPENDENT { *y / d } else { 0.0 };
        }
        for i in (0..n).rev() {
            for &(j, l) in &self.lower[i] {
                y[j] -= l * y[i];
            }
        }
        let mut solution = vec![0.0; n];
        for (&row, y) in self.order.iter().zip(y) {
            solution[row] = y * self.scale[row];
        }
        solution
    }

    /// The coefficients by which the dependent row `row` is a combination of the rows before it:
    /// (row, coefficient of unit rows).
    pub fn combination(&self, row: usize) -> Vec<(usize, f64)> {
        let i = self.order.iter().position(|&r| r == row).expect("a row of this matrix");
        let mut c = vec![0.0; i];
        for &(j, l) in &self.lower[i] {
            c[j] = l;
        }
        for j in (0..i).rev() {
            for &(k, l) in &self.lower[j] {
                c[k] -= l * c[j];
            }
        }
        c.into_iter().enumerate().filter(|(_, v)| v.abs() > 1e-7).map(|(k, v)| (self.order[k], v)).collect()
    }
}

/// For each row, the rows that share a column with it: the Gram matrix's entries that are not zero by
/// structure.
fn neighbours(rows: &[Row]) -> Vec<Vec<usize>> {
    let mut holders: rustc_hash::FxHashMap<u32, Vec<usize>> = Default::default();
    for (i, row) in rows.iter().enumerate() {
        for &(column, _) in row {
            holders.entry(column).or_default().push(i);
        }
    }
    let mut all = vec![Vec::new(); rows.len()];
    for (i, row) in rows.iter().enumerate() {
        all[i] = row.iter().flat_map(|(column, _)| &holders[column]).copied().filter(|&j| j != i).collect();
        all[i].sort_unstable();
        all[i].dedup();
    }
    all
}

/// The order of least degree first (Rose 1970): each eliminated node makes its neighbours a clique.
fn minimum_degree(neighbours: &[Vec<usize>]) -> Vec<usize> {
    let mut graph: Vec<std::collections::BTreeSet<usize>> =
        neighbours.iter().map(|l| l.iter().copied().collect()).collect();
    let mut queue: std::collections::BTreeSet<(usize, usize)> =
        graph.iter().enumerate().map(|(i, s)| (s.len(), i)).collect();
    let mut order = Vec::with_capacity(graph.len());
    while let Some((_, node)) = queue.pop_first() {
        order.push(node);
        let around = std::mem::take(&mut graph[node]);
        for &a in &around {
            queue.remove(&(graph[a].len(), a));
            graph[a].remove(&node);
            graph[a].extend(around.iter().copied().filter(|&b| b != a));
            queue.insert((graph[a].len(), a));
        }
    }
    order
}

/// Whether a dense symmetric matrix (row-major) is positive definite.
pub fn positive_definite(a: &[f64], n: usize) -> bool {
    let mut l = a.to_vec();
    for k in 0..n {
        let scale = a[k * n + k].abs();
        if l[k * n + k].is_nan() || l[k * n + k] <= scale * 1e-13 {
            return false;
        }
        for i in k + 1..n {
            let f = l[i * n + k] / l[k * n + k];
            if f == 0.0 {
                continue; // a chain's matrix is nearly empty
            }
            for j in k + 1..=i {
                l[i * n + j] -= f * l[j * n + k];
            }
        }
    }
    true
}

/// Rank of a dense matrix by elimination with complete pivoting; entries below `tolerance` times the
/// largest count as zero.
pub fn rank(a: &[f64], rows: usize, columns: usize, tolerance: f64) -> usize {
    let mut m = a.to_vec();
    let scale = m.iter().fold(0.0f64, |s, v| s.max(v.abs()));
    let mut used = vec![false; columns];
    for k in 0..rows.min(columns) {
        let best = (k..rows)
            .flat_map(|i| (0..columns).map(move |j| (i, j)))
            .filter(|&(_, j)| !used[j])
            .max_by(|&(a, b), &(c, d)| m[a * columns + b].abs().total_cmp(&m[c * columns + d].abs()));
        let Some((i, j)) = best else { return k };
        // Written so that NaN counts as zero rank left.
        if m[i * columns + j].abs() <= tolerance * scale || m[i * columns + j].is_nan() {
            return k;
        }
        used[j] = true;
        for c in 0..columns {
            m.swap(k * columns + c, i * columns + c);
        }
        for r in k + 1..rows {
            let f = m[r * columns + j] / m[k * columns + j];
            for c in 0..columns {
                m[r * columns + c] -= f * m[k * columns + c];
            }
        }
    }
    rows.min(columns)
}

/// Sets the entries of an n × n matrix to 0 that are rounding: below `tolerance` times the size of what cancels in them.
pub fn drop_rounding(a: &mut [f64], size: impl Fn(usize, usize) -> f64, n: usize, tolerance: f64) {
    for (k, v) in a.iter_mut().enumerate().filter(|(_, v)| **v != 0.0) {
        if v.abs() <= tolerance * size(k / n, k % n) {
            *v = 0.0;
        }
    }
}

/// An n × n matrix with rows and columns scaled so that the largest entry of each tends to 1 (Ruiz 2001): whatever the
/// units of rows and columns, the same matrix but for rounding.
pub fn equilibrated(a: &[f64], n: usize) -> Vec<f64> {
    let mut m = a.to_vec();
    // Converges like 2^-k in the logarithms of the scales.
    for _ in 0..60 {
        let largest = |entries: &mut dyn Iterator<Item = f64>| {
            let largest = entries.fold(0.0f64, |s, v| s.max(v.abs()));
            if largest > 0.0 && largest.is_finite() { 1.0 / largest.sqrt() } else { 1.0 }
        };
        let rows: Vec<f64> = (0..n).map(|i| largest(&mut m[i * n..(i + 1) * n].iter().copied())).collect();
        let columns: Vec<f64> = (0..n).map(|j| largest(&mut (0..n).map(|i| m[i * n + j]))).collect();
        m.iter_mut().enumerate().for_each(|(k, v)| *v = *v * rows[k / n] * columns[k % n]);
        if rows.iter().chain(&columns).all(|s| (s - 1.0).abs() < 1e-3) {
            break;
        }
    }
    m
}

/// [`rank`] of an n × n matrix in which the units of rows and columns change nothing; rounding has to be dropped before.
pub fn rank_in_any_units(a: &[f64], n: usize, tolerance: f64) -> usize {
    rank(&equilibrated(a, n), n, n, tolerance)
}

/// Reproducible test points: a 64-bit mixing generator (Steele, Lea, Flood 2014), uniform on (−1, 1).
pub struct Points(u64);

impl Points {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Points {
        Points(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
