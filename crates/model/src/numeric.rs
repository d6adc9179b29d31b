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

/// LDLᵀ of the Gram matrix of unit-scaled sparse rows, by rows, without pivoting: pivot k is the squared
/// sine of the angle between row k and the span of the rows before it.
pub struct Gram {
    scale: Vec<f64>,
    /// Rows of L: (column, entry).
    lower: Vec<Vec<(usize, f64)>>,
    pivots: Vec<f64>,
}

/// A row whose pivot is below this is dependent: its angle to the span of the others is below 1e-6, and
/// the Gram matrix, which squares it, cannot resolve much less.
pub const DEPENDENT: f64 = 1e-12;

impl Gram {
    /// Factors the Gram matrix of `rows` with `shift` added to its diagonal.
    pub fn new(rows: &[Row], shift: f64) -> Gram {
        let scale: Vec<f64> = rows.iter().map(|r| { let s = dot(r, r).sqrt(); if s > 0.0 { 1.0 / s } else { 0.0 } }).collect();
        // Which rows share a column: the entries of the Gram matrix that are not zero by structure.
        let mut holders: rustc_hash::FxHashMap<u32, Vec<usize>> = Default::default();
        let mut lower: Vec<Vec<(usize, f64)>> = Vec::with_capacity(rows.len());
        let mut pivots: Vec<f64> = Vec::with_capacity(rows.len());
        for (i, row) in rows.iter().enumerate() {
            let mut partners: std::collections::BTreeMap<usize, f64> = Default::default();
            for &(column, _) in row {
                for &j in holders.get(&column).into_iter().flatten() {
                    partners.entry(j).or_insert_with(|| dot(row, &rows[j]) * scale[i] * scale[j]);
                }
                holders.entry(column).or_default().push(i);
            }
            let mut diagonal = if scale[i] > 0.0 { 1.0 + shift } else { 0.0 };
            let mut finished = Vec::new();
            // Up-looking: the smallest remaining column is final; eliminating with it may add later ones.
            while let Some((j, mut value)) = partners.pop_first() {
                for &(k, l) in &lower[j] {
                    if let Ok(at) = finished.binary_search_by_key(&k, |&(k, _)| k) {
                        let (_, lik): (usize, f64) = finished[at];
                        value -= lik * pivots[k] * l;
                    }
                }
                let entry = if pivots[j] > DEPENDENT { value / pivots[j] } else { 0.0 };
                diagonal -= entry * entry * pivots[j];
                finished.push((j, entry));
                // Fill: a later row that has column j also meets this one.
                for (k, others) in lower.iter().enumerate().skip(j + 1) {
                    if !partners.contains_key(&k) && others.binary_search_by_key(&j, |&(c, _)| c).is_ok() {
                        partners.insert(k, 0.0);
                    }
                }
            }
            lower.push(finished);
            pivots.push(diagonal);
        }
        Gram { scale, lower, pivots }
    }

    /// Rows that depend on the rows before them.
    pub fn dependent(&self) -> Vec<usize> {
        (0..self.pivots.len()).filter(|&i| self.pivots[i] <= DEPENDENT).collect()
    }

    /// The smallest pivot: how near the rows are to dependence (1 for orthogonal rows).
    pub fn smallest_pivot(&self) -> f64 {
        self.pivots.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// y with x = Σ yᵢ rowᵢ the least change that alters the rows' products by `right`.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let n = right.len();
        let mut y: Vec<f64> = right.iter().zip(&self.scale).map(|(r, s)| r * s).collect();
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
        y.iter().zip(&self.scale).map(|(y, s)| y * s).collect()
    }

    /// The coefficients by which dependent row `i` is a combination of the rows before it:
    /// (row, coefficient of unit rows).
    pub fn combination(&self, i: usize) -> Vec<(usize, f64)> {
        let mut c = vec![0.0; i];
        for &(j, l) in &self.lower[i] {
            c[j] = l;
        }
        for j in (0..i).rev() {
            for &(k, l) in &self.lower[j] {
                c[k] -= l * c[j];
            }
        }
        c.into_iter().enumerate().filter(|(_, v)| v.abs() > 1e-7).collect()
    }
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
        let best = (k..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).filter(|&(_, j)| !used[j]).max_by(|&(a, b), &(c, d)| m[a * columns + b].abs().total_cmp(&m[c * columns + d].abs()));
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

/// Reproducible test points: a 64-bit mixing generator (Steele, Lea, Flood 2014), uniform on (−1, 1).
pub struct Points(u64);

impl Points {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Points {
        Points(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
