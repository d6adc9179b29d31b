//! Systems made of plain Rust closures.

use super::{Group, GroupKind, Invariants, System, Vectors};

type FieldFn<'a> = Box<dyn Fn(f64, &[f64], &mut [f64]) + Send + Sync + 'a>;

type ScalarFn<'a> = Box<dyn Fn(f64, &[f64]) -> f64 + Send + Sync + 'a>;

/// A number F(t, x) that the motion conserves, with its gradient.
struct Scalar<'a> {
    name: String,
    kind: GroupKind,
    value: ScalarFn<'a>,
    gradient: FieldFn<'a>,
}

/// A system made of plain Rust closures, for users who bring their own field.
///
/// ```
/// use holonome_integrate::system::{FnSystem, GroupKind};
/// let oscillator = FnSystem::new(2, |_t, x, dx| {
///     dx[0] = x[1];
///     dx[1] = -x[0];
/// })
/// .with_invariant(
///     "H",
///     GroupKind::Hamiltonian,
///     |_t, x| 0.5 * (x[0] * x[0] + x[1] * x[1]),
///     |_t, x, gradient| gradient.copy_from_slice(x),
/// );
/// ```
pub struct FnSystem<'a> {
    dim: usize,
    field: FieldFn<'a>,
    /// The field with a pull towards the invariants.
    pulled: Option<FieldFn<'a>>,
    vectors: Vectors,
    invariants: Invariants,
    values: FieldFn<'a>,
    jacobian: FieldFn<'a>,
    /// Invariants one by one, constraints first; empty if all of them are given at once.
    scalars: Vec<Scalar<'a>>,
}

impl<'a> FnSystem<'a> {
    /// A field X(t, x) written into its last argument, without invariants.
    pub fn new(
        dim: usize,
        field: impl Fn(f64, &[f64], &mut [f64]) + Send + Sync + 'a,
    ) -> FnSystem<'a> {
        FnSystem {
            dim,
            field: Box::new(field),
            pulled: None,
            vectors: Vectors::components(dim),
            invariants: Invariants::none(),
            values: Box::new(|_, _, _| ()),
            jacobian: Box::new(|_, _, _| ()),
            scalars: Vec::new(),
        }
    }

    /// Add a number F(t, x) that the motion conserves, and its gradient. A constraint keeps the
    /// value 0, any other the value at the start.
    pub fn with_invariant(
        mut self,
        name: &str,
        kind: GroupKind,
        value: impl Fn(f64, &[f64]) -> f64 + Send + Sync + 'a,
        gradient: impl Fn(f64, &[f64], &mut [f64]) + Send + Sync + 'a,
    ) -> FnSystem<'a> {
        let scalar = Scalar {
            name: name.to_string(),
            kind,
            value: Box::new(value),
            gradient: Box::new(gradient),
        };
        let is_constraint =
            |scalar: &Scalar| matches!(scalar.kind, GroupKind::Constraint | GroupKind::Hidden);
        self.scalars.push(scalar);
        self.scalars.sort_by_key(|scalar| !is_constraint(scalar));
        let constraints = self.scalars.iter().filter(|scalar| is_constraint(scalar)).count();
        let group =
            |(row, scalar): (u32, &Scalar)| Group::rows(&scalar.name, scalar.kind, row..row + 1);
        let groups = (0..).zip(&self.scalars).map(group).collect();
        self.invariants = Invariants::dense(self.dim, self.scalars.len(), constraints, groups);
        self
    }

    /// Set the vectors that make up the state; by default they are its components.
    ///
    /// # Panics
    /// If they make up a state of another length.
    pub fn with_vectors(mut self, vectors: Vectors) -> FnSystem<'a> {
        assert_eq!(vectors.dim(), self.dim, "the vectors make up another state");
        self.vectors = vectors;
        self
    }

    /// Let steps take this field: the motion's own, with a term that pulls towards the invariants.
    pub fn with_feedback(
        mut self,
        pulled: impl Fn(f64, &[f64], &mut [f64]) + Send + Sync + 'a,
    ) -> FnSystem<'a> {
        self.pulled = Some(Box::new(pulled));
        self
    }

    /// Set these invariants in place of others: their description, F(t, x), and the entries of
    /// DF(t, x) in its order.
    pub fn with_invariants(
        mut self,
        invariants: Invariants,
        values: impl Fn(f64, &[f64], &mut [f64]) + Send + Sync + 'a,
        jacobian: impl Fn(f64, &[f64], &mut [f64]) + Send + Sync + 'a,
    ) -> FnSystem<'a> {
        self.invariants = invariants;
        self.values = Box::new(values);
        self.jacobian = Box::new(jacobian);
        self.scalars.clear();
        self
    }
}

impl System for FnSystem<'_> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], _work: &mut [f64]) {
        self.pulled.as_ref().unwrap_or(&self.field)(t, x, dx);
    }

    fn motion(&self, t: f64, x: &[f64], dx: &mut [f64], _work: &mut [f64]) -> bool {
        (self.field)(t, x, dx);
        true
    }

    fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    fn invariants(&self) -> &Invariants {
        &self.invariants
    }

    fn invariant_values(&self, t: f64, x: &[f64], f: &mut [f64], _work: &mut [f64]) {
        if self.scalars.is_empty() {
            return (self.values)(t, x, f);
        }
        for (scalar, f) in self.scalars.iter().zip(f) {
            *f = (scalar.value)(t, x);
        }
    }

    fn invariant_jacobian(&self, t: f64, x: &[f64], values: &mut [f64], _work: &mut [f64]) {
        if self.scalars.is_empty() {
            return (self.jacobian)(t, x, values);
        }
        for (scalar, row) in self.scalars.iter().zip(values.chunks_exact_mut(self.dim)) {
            (scalar.gradient)(t, x, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_quotient_of_a_quadratic_field() {
        let system = FnSystem::new(2, |_, x, dx| {
            dx[0] = x[0] * x[1];
            dx[1] = x[1] * x[1];
        });
        let mut out = [0.0; 2];
        system.field_derivative(0.0, &[2.0, 3.0], &[1.0, -1.0], &mut out, &mut []);
        // A central difference is exact on quadratics up to round-off: ε·|X|/δ ≈ 2e-16·9/1e-5 ≈
        // 2e-10.
        assert!((out[0] - 1.0).abs() < 1e-9 && (out[1] + 6.0).abs() < 1e-9, "{out:?}");
    }
}
