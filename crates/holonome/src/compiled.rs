//! A field of the symbolic half as a system of the numeric half.

use holonome_integrate::system::{Group, GroupKind, Invariants, System};
use holonome_model::graph::Node;
use holonome_model::graph::aligned::Aligned;
use holonome_model::graph::interpret::Kernel;
use holonome_model::treatment::{Field, InvariantKind};

/// A kernel with its parameters.
pub struct Bound {
    kernel: Box<dyn Kernel>,
    values: Aligned,
}

impl Bound {
    /// Binds a kernel.
    pub fn new(kernel: Box<dyn Kernel>, parameters: &[f64]) -> Bound {
        let values = kernel.bind(parameters);
        Bound { kernel, values }
    }

    /// Evaluates at (t, x).
    pub fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.kernel.run(&self.values, &[t], x, out, work);
    }

    /// Scratch needed.
    pub fn work_len(&self) -> usize {
        self.kernel.work_len()
    }
}

/// The compiled system: field, invariants, their Jacobian, and the field's directional derivative.
pub struct CompiledSystem {
    dimension: usize,
    field: Bound,
    values: Bound,
    jacobian: Bound,
    derivative: Option<Bound>,
    invariants: Invariants,
}

impl CompiledSystem {
    /// Compiles `field` for these parameters (the model's, then its treatment's inputs). The directional
    /// derivative is compiled only where it is asked for: one pilot run uses it.
    pub fn new(field: &Field, parameters: &[f64], with_derivative: bool) -> CompiledSystem {
        let entries: Vec<Node> = field.jacobian.iter().flatten().map(|&(_, node)| node).collect();
        let derivative = with_derivative.then(|| {
            let mut doubled = field.clone();
            let nodes = doubled.directional_derivative();
            doubled.dimension *= 2;
            Bound::new(doubled.compile(&nodes), parameters)
        });
        let bind = |nodes: &[Node]| Bound::new(field.compile(nodes), parameters);
        CompiledSystem {
            dimension: field.dimension,
            field: bind(&field.field),
            values: bind(&field.invariants),
            jacobian: bind(&entries),
            derivative,
            invariants: invariants(field),
        }
    }
}

/// The numeric half's description of a field's invariants.
fn invariants(field: &Field) -> Invariants {
    let mut row_start = vec![0];
    let mut column = Vec::new();
    for row in &field.jacobian {
        column.extend(row.iter().map(|&(i, _)| i));
        row_start.push(column.len());
    }
    let groups = field
        .groups
        .iter()
        .map(|g| Group {
            name: g.name.clone(),
            kind: match g.kind {
                InvariantKind::Constraint => GroupKind::Constraint,
                InvariantKind::Hidden => GroupKind::Hidden,
                InvariantKind::Hamiltonian => GroupKind::Hamiltonian,
                InvariantKind::Integral => GroupKind::Integral,
            },
            members: g.members.iter().map(|m| m.iter().map(|&(row, w)| (row as u32, w)).collect()).collect(),
            watched_only: false,
        })
        .collect();
    Invariants { count: field.invariants.len(), row_start, column, constraints: field.constraints, groups }
}

impl System for CompiledSystem {
    fn dim(&self) -> usize {
        self.dimension
    }

    fn work_len(&self) -> usize {
        let derivative = self.derivative.as_ref().map_or(0, |d| d.work_len() + 2 * self.dimension);
        [self.field.work_len(), self.values.work_len(), self.jacobian.work_len(), derivative]
            .into_iter()
            .max()
            .unwrap_or(0)
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.field.run(t, x, dx, work);
    }

    fn invariants(&self) -> &Invariants {
        &self.invariants
    }

    fn invariant_values(&self, t: f64, x: &[f64], f: &mut [f64], work: &mut [f64]) {
        self.values.run(t, x, f, work);
    }

    fn invariant_jacobian(&self, t: f64, x: &[f64], values: &mut [f64], work: &mut [f64]) {
        self.jacobian.run(t, x, values, work);
    }

    fn field_derivative(&self, t: f64, x: &[f64], v: &[f64], out: &mut [f64], work: &mut [f64]) {
        let derivative = self.derivative.as_ref().expect("compiled where a pilot run asks for it");
        let (both, work) = work.split_at_mut(2 * self.dimension);
        both[..self.dimension].copy_from_slice(x);
        both[self.dimension..].copy_from_slice(v);
        derivative.run(t, both, out, work);
    }
}
