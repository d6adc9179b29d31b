//! Mechanics of a large model for structure-preserving methods: H with its derivatives, the
//! constraints and their forces, as functions of columns.

use crate::columns::{Column, Columns, Function, InputSegment, Jacobian, Stored};
use crate::elaborate::model::{Dynamics, Model, Role};
use crate::functional::{Entries, Functional, Source, Stretches, Term};
use crate::graph::op::{Binary, Unary};
use crate::graph::{Graph, Input, Node};
use crate::rows::{Layout, StridedFamily};
use std::sync::Arc;

/// Functions of a Hamiltonian model, which may have constraints on its positions.
#[derive(Clone, Debug)]
pub struct RowMechanics {
    /// Columns of the functions.
    pub columns: Columns,
    /// Length of the state.
    pub dimension: usize,
    /// Components of the positions, followed by those of the momenta in the same order.
    pub state: Vec<StridedFamily>,
    /// Layout of the components in the state.
    pub layout: Arc<Layout>,
    /// Independent components of the constraints, as outputs of g; the outputs of a symmetric
    /// matrix that repeat others are left out.
    pub constraints: Vec<StridedFamily>,
    /// First component and width of a member for each variable; in `quantities`, first output and
    /// width for each constraint.
    variables: Vec<(u32, usize)>,
    quantities: Vec<(u32, usize)>,
    /// Number of outputs of g.
    outputs: usize,
    /// Place of the first velocity among the inputs of forces: behind the multipliers of all stated
    /// constraints, also of those that are penalised or left out of g.
    velocities: usize,
    /// H and g, evened.
    hamiltonian: Arc<Functional>,
    all: Arc<Functional>,
    /// True if the model depends on the time.
    explicit_time: bool,
    gradient: usize,
    g: usize,
    forces: usize,
    /// Sum of the forces that act beside H, if there are any, as a function of state and velocities.
    acting: Option<usize>,
    /// True if these act apart from H_q.
    pub apart: bool,
    /// ∂H/∂t, made on first use.
    explicit: Option<usize>,
    hidden: usize,
    sizes: [usize; 2],
    /// Functions ∇_q of the derivatives of H along v: of the first, of the second, and of the first
    /// of its stiff part.
    curvature: Option<[usize; 3]>,
    /// Functions for the Dirac extension, made on first use: ∇ of the derivative of H along v, the
    /// same with the explicit time derivative, ∇_q (a·h) for given velocities, and the rates of h
    /// along velocities and accelerations.
    extension: Option<[usize; 4]>,
    /// Function that gives H with an output for every row of its terms, and the outputs of each
    /// term; made on first use.
    energies: Option<(usize, Vec<StridedFamily>)>,
    /// True if H is constant along the motion: nothing depends on the time, and the model is not in
    /// a heat bath.
    pub autonomous: bool,
}

/// Components of H_q that are added up over the rows of terms of H, with the values of these terms,
/// added up in the same pass.
#[derive(Clone, Debug)]
pub struct Together {
    /// Columns of these components.
    pub slopes: Vec<Column>,
    /// Numbers of the terms.
    pub terms: Vec<usize>,
    /// Values of the terms, a column of one number for each.
    pub values: Vec<Column>,
}

impl Together {
    /// All columns.
    pub fn columns(&self) -> Vec<Column> {
        [&self.slopes[..], &self.values].concat()
    }
}

impl RowMechanics {
    /// The mechanics of `model`; `None` if it is not a Hamiltonian model with constraints on
    /// positions only.
    pub fn new(model: &Model) -> Option<RowMechanics> {
        let Dynamics::Hamiltonian(hamiltonian, _) = &model.dynamics else { return None };
        if !model.is_holonomic() {
            return None;
        }
        debug_assert!(
            model.variables.iter().all(|v| v.role != Role::State),
            "a Hamiltonian model has none"
        );
        let variables =
            model.variables.iter().map(|v| (v.first as u32, v.family.width())).collect();
        let layout = Layout::new(model);
        let (mut constraints, mut quantities, mut outputs) = (Vec::new(), Vec::new(), 0);
        let mut all = Functional::default();
        for quantity in &model.constraints {
            let width = quantity.shape.len();
            quantities.push((outputs as u32, width));
            constraints.extend(quantity.components.iter().map(|component| StridedFamily {
                first: (outputs + component.offset) as u32,
                stride: width as u32,
                length: quantity.members as u32,
            }));
            let Functional { terms, .. } = quantity.functional.evened();
            all.terms.extend(terms.into_iter().map(|term| term.with_outputs_moved(outputs as u32)));
            outputs += quantity.functional.outputs;
        }
        all.outputs = outputs;
        let dimension = model.dimension();
        let mut columns = Columns::new();
        let hidden = along(&all, dimension + outputs, 1, true);
        let hamiltonian = hamiltonian.evened();
        let gradient = columns.function(Function::gradient_and_terms(&hamiltonian, dimension));
        let forces = columns.function(Function::gradient(&weighted(&all, dimension), dimension));
        let sizes = [&all, &hidden].map(|functional| {
            columns.function(Function::size(&sized(functional, model.degrees())))
        });
        let hidden = columns.function(Function::value(&hidden));
        let acting = (!model.forces.is_empty())
            .then(|| columns.function(Function::value(&model.force().evened())));
        let g = columns.function(Function::value(&all));
        Some(RowMechanics {
            columns,
            dimension,
            state: layout.families(),
            layout: Arc::new(layout),
            constraints,
            variables,
            quantities,
            outputs,
            velocities: model.following().velocities,
            hamiltonian: Arc::new(hamiltonian),
            all: Arc::new(all),
            explicit_time: model.explicit_time,
            gradient,
            g,
            forces,
            acting,
            apart: false,
            explicit: None,
            hidden,
            sizes,
            curvature: None,
            extension: None,
            energies: None,
            autonomous: model.conserves_energy(),
        })
    }

    /// Derives [`RowMechanics::hessian_times`] and [`RowMechanics::third_times`], for H = ½ pᵀM⁻¹p +
    /// V(q, t).
    ///
    /// # Errors
    /// If H is not of that form: a message that says why.
    pub fn derive_curvature(&mut self, model: &Model) -> Result<(), String> {
        let lengths: Vec<u32> = self.state.iter().map(|family| family.length).collect();
        let x: Vec<Column> = lengths.into_iter().map(|length| self.columns.input(length)).collect();
        let (t, n) = (self.columns.time(), self.degrees());
        let (v, slopes) = (self.gradient(t, &x, true), self.gradient(t, &x, false));
        let (q, p) = x[..2 * n].split_at(n);
        let varies = |column: &Column| {
            self.columns.depends(*column, q) || self.columns.depends(*column, &[t])
        };
        if v.iter().any(varies) || slopes.iter().any(|&slope| self.columns.depends(slope, p)) {
            return Err("its kinetic energy varies with position or time".into());
        }
        if !v.iter().all(|&v| self.columns.is_linear(v, p)) {
            return Err("its kinetic energy is not quadratic in the momenta".into());
        }
        let (degrees, behind) = (self.dimension / 2, self.dimension + self.outputs);
        let hamiltonian = Arc::clone(&self.hamiltonian);
        let mut of = |functional: &Functional, order: usize| {
            let derivative = along(functional, behind, order, false);
            self.columns.function(Function::gradient(&derivative, degrees))
        };
        let stiff = model.stiff.as_ref().map(Functional::evened);
        let stiff = stiff.as_ref().unwrap_or(&hamiltonian);
        self.curvature = Some([of(&hamiltonian, 1), of(&hamiltonian, 2), of(stiff, 1)]);
        Ok(())
    }

    /// See the field of this name.
    fn extension(&mut self) -> [usize; 4] {
        if let Some(known) = self.extension {
            return known;
        }
        let (dimension, behind) = (self.dimension, self.dimension + self.outputs);
        let (hamiltonian, hidden) = (&self.hamiltonian, along(&self.all, behind, 1, true));
        let mut gradient =
            |of: &Functional, length: usize| self.columns.function(Function::gradient(of, length));
        let slopes = gradient(&along(hamiltonian, behind, 1, false), dimension);
        let timed = match self.explicit_time {
            true => gradient(&along(hamiltonian, behind, 1, true), dimension),
            false => slopes,
        };
        let forces = gradient(&weighted(&hidden, dimension), dimension / 2);
        let rates = along(&hidden, behind + dimension, 1, true);
        *self.extension.insert([
            slopes,
            timed,
            forces,
            self.columns.function(Function::value(&rates)),
        ])
    }

    /// ∇ of the derivative of H along v at (t, x); with the explicit time derivative if `timed`.
    fn slopes_along(&mut self, timed: bool, t: Column, x: &[Column], v: &[Column]) -> Vec<Column> {
        let function = self.extension()[usize::from(timed)];
        let mut arguments = self.arguments(x);
        self.push(&mut arguments, self.dimension + self.outputs, v);
        self.columns.call(function, t, &arguments, &RowMechanics::outputs_of(&self.state))
    }

    /// X_{a·h} of the hidden constraints h at (t, x).
    pub fn hidden_field(&mut self, t: Column, x: &[Column], a: &[Column]) -> Vec<Column> {
        let [_, _, function, _] = self.extension();
        let n = self.degrees();
        let still = vec![self.columns.constant(0.0); n];
        let forces = self.constraint_forces(t, x, a);
        let slopes = self.slopes_along(false, t, x, &[still, forces].concat());
        let v = self.gradient(t, x, true);
        let mut arguments = self.arguments(x);
        self.push_multipliers(&mut arguments, a);
        self.push(&mut arguments, self.dimension + self.outputs, &v);
        let own =
            self.columns.call(function, t, &arguments, &RowMechanics::outputs_of(&self.state[..n]));
        let (of_positions, of_momenta) = slopes.split_at(n);
        let mut field = of_momenta.to_vec();
        for (&own, &slope) in own.iter().zip(of_positions) {
            let sum = self.columns.binary(Binary::Add, own, slope);
            field.push(self.columns.unary(Unary::Neg, sum));
        }
        field
    }

    /// Rates of the constraints g at (t, x), with ẋ = `v`.
    pub fn constraint_rates(&mut self, t: Column, x: &[Column], v: &[Column]) -> Vec<Column> {
        let arguments = self.with(x, &v[..self.degrees()]);
        self.columns.call(self.hidden, t, &arguments, &RowMechanics::outputs_of(&self.constraints))
    }

    /// Rates of the hidden constraints h at (t, x), with ẋ = `v`.
    pub fn hidden_rates(&mut self, t: Column, x: &[Column], v: &[Column]) -> Vec<Column> {
        let [.., function] = self.extension();
        let n = self.degrees();
        let accelerations = self.slopes_along(true, t, x, v).split_off(n);
        let mut arguments = self.with_velocities(t, x);
        let behind = self.dimension + self.outputs + self.dimension;
        self.push(&mut arguments, behind, &v[..n]);
        self.push(&mut arguments, behind + self.dimension + self.outputs, &accelerations);
        self.columns.call(function, t, &arguments, &RowMechanics::outputs_of(&self.constraints))
    }

    /// V_qq v at (t, x), for all of V or for its stiff part.
    pub fn hessian_times(
        &mut self,
        stiff: bool,
        t: Column,
        x: &[Column],
        v: &[Column],
    ) -> Vec<Column> {
        self.curved(if stiff { 2 } else { 0 }, t, x, v)
    }

    /// v·V_qqq·v at (t, x).
    pub fn third_times(&mut self, t: Column, x: &[Column], v: &[Column]) -> Vec<Column> {
        self.curved(1, t, x, v)
    }

    /// Columns whose members add up to H at (t, x): one for each of its terms.
    pub fn energies(&mut self, t: Column, x: &[Column]) -> Vec<Column> {
        let arguments = self.arguments(x);
        let (function, families) = self.energies.get_or_insert_with(|| {
            let (rows, families) = with_row_outputs(Functional::clone(&self.hamiltonian));
            (self.columns.function(Function::size(&rows)), families)
        });
        self.columns.call(*function, t, &arguments, &RowMechanics::outputs_of(families))
    }

    fn curved(&mut self, which: usize, t: Column, x: &[Column], v: &[Column]) -> Vec<Column> {
        let function = self.curvature.expect("made known before it is used")[which];
        let arguments = self.with(x, v);
        let outputs = RowMechanics::outputs_of(&self.state[..self.degrees()]);
        self.columns.call(function, t, &arguments, &outputs)
    }

    /// True if every velocity depends on its own momentum only, and on no other one.
    pub fn has_diagonal_mass(&self) -> bool {
        let mut mechanics = self.clone();
        let (t, x) = mechanics.stored_state();
        let velocities = mechanics.gradient(t, &x, true);
        let momenta = &x[self.degrees()..2 * self.degrees()];
        velocities.iter().zip(&self.state[self.degrees()..2 * self.degrees()]).all(
            |(velocity, family)| {
                let of = std::slice::from_ref(velocity);
                let derivatives = Jacobian::new(&mechanics.columns, of, momenta, family.length);
                let is_own = |(_, member, place)| place == family.first + member * family.stride;
                derivatives.entries().all(is_own)
            },
        )
    }

    /// Number of components of the positions.
    pub fn degrees(&self) -> usize {
        self.state.len() / 2
    }

    /// Columns of the state, or of its phase space alone, as arguments of a function.
    fn arguments(&self, x: &[Column]) -> Vec<InputSegment> {
        let mut rest = x;
        let mut segment = |&(first, width): &(u32, usize)| {
            let (columns, behind) = rest.split_at_checked(width)?;
            rest = behind;
            Some(InputSegment { first, columns: columns.to_vec() })
        };
        self.variables.iter().map_while(&mut segment).collect()
    }

    fn outputs_of(families: &[StridedFamily]) -> Vec<(u32, u32, u32)> {
        families.iter().map(|f| (f.first, f.stride, f.length)).collect()
    }

    /// H_q, or H_p if `of_momenta`, at (t, x).
    pub fn gradient(&mut self, t: Column, x: &[Column], of_momenta: bool) -> Vec<Column> {
        let n = self.degrees();
        let families = if of_momenta { &self.state[n..2 * n] } else { &self.state[..n] };
        let outputs = RowMechanics::outputs_of(families);
        let arguments = self.arguments(x);
        self.columns.call(self.gradient, t, &arguments, &outputs)
    }

    /// H_q at (t, x), less the forces that act beside H and not apart.
    pub fn slope(&mut self, t: Column, x: &[Column]) -> Vec<Column> {
        let slopes = self.gradient(t, x, false);
        let forces = if self.apart { None } else { self.acting(t, x) };
        let Some(forces) = forces else { return slopes };
        let less =
            |(slope, force): (Column, Column)| self.columns.binary(Binary::Sub, slope, force);
        slopes.into_iter().zip(forces).map(less).collect()
    }

    /// The forces Q that act beside H, at (t, x); `None` if there are none.
    pub fn acting(&mut self, t: Column, x: &[Column]) -> Option<Vec<Column>> {
        let function = self.acting?;
        let v = self.gradient(t, x, true);
        let mut arguments = self.arguments(x);
        self.push(&mut arguments, self.velocities, &v);
        let outputs = RowMechanics::outputs_of(&self.state[..self.degrees()]);
        Some(self.columns.call(function, t, &arguments, &outputs))
    }

    /// Columns whose members add up to the rate of the work, Q·v + H_t, at (t, x).
    pub fn power(&mut self, t: Column, x: &[Column], v: &[Column]) -> Vec<Column> {
        let Some(forces) = self.acting(t, x) else { return Vec::new() };
        let product = |(force, &v): (Column, &Column)| self.columns.binary(Binary::Mul, force, v);
        let mut parts: Vec<Column> = forces.into_iter().zip(v).map(product).collect();
        if self.explicit_time {
            parts.extend(self.explicit_rates(t, x));
        }
        parts
    }

    /// Columns whose members add up to ∂H/∂t at (t, x): one for each of its terms.
    fn explicit_rates(&mut self, t: Column, x: &[Column]) -> Vec<Column> {
        let arguments = self.arguments(x);
        let (rows, families) = with_row_outputs(Functional::clone(&self.hamiltonian));
        let function = *self.explicit.get_or_insert_with(|| {
            let term = |term: &Term| {
                let mut graph = term.graph.clone();
                let roots = term.roots.iter().map(|&root| graph.time_derivative(root)).collect();
                Term { graph, roots, ..term.clone() }
            };
            let terms = rows.terms.iter().map(term).collect();
            self.columns.function(Function::size(&Functional { outputs: rows.outputs, terms }))
        });
        self.columns.call(function, t, &arguments, &RowMechanics::outputs_of(&families))
    }

    /// Sums of H at (t, x) that come with H_q; empty unless H is constant along the motion.
    pub fn sums(&mut self, t: Column, x: &[Column]) -> Vec<Together> {
        if !self.autonomous {
            return Vec::new();
        }
        let mut slopes = self.gradient(t, x, false);
        slopes.retain(|&column| self.columns.is_accumulated(column));
        let (mut all, mut known) = (Vec::new(), Vec::new());
        while let Some(&first) = slopes.first() {
            let (these, others) =
                slopes.into_iter().partition(|&column| self.columns.share_call(column, first));
            slopes = others;
            let mut together = Together { slopes: these, terms: Vec::new(), values: Vec::new() };
            let mut parts: Vec<u32> =
                together.slopes.iter().flat_map(|&column| self.columns.parts(column)).collect();
            parts.sort_unstable();
            parts.dedup();
            for part in parts {
                if !known.contains(&part)
                    && let Some(value) = self.columns.beside(first, self.dimension as u32 + part)
                {
                    known.push(part);
                    together.terms.push(part as usize);
                    together.values.push(value);
                }
            }
            all.push(together);
        }
        all.retain(|together| !together.values.is_empty());
        all
    }

    /// Columns for the time and for the state at its place in a model's state.
    pub fn stored_state(&mut self) -> (Column, Vec<Column>) {
        let families = self.state.clone();
        let mut stored = |family: StridedFamily| {
            let column = self.columns.input(family.length);
            self.columns.store(column, Stored { first: family.first, stride: family.stride });
            column
        };
        let x = families.into_iter().map(&mut stored).collect();
        (self.columns.time(), x)
    }

    /// g at (t, x).
    pub fn constraints(&mut self, t: Column, x: &[Column]) -> Vec<Column> {
        let (outputs, arguments) = (RowMechanics::outputs_of(&self.constraints), self.arguments(x));
        self.columns.call(self.g, t, &arguments, &outputs)
    }

    /// The state and velocities v of the positions as arguments of functions of both; velocities of
    /// momenta are 0.
    fn with(&mut self, x: &[Column], v: &[Column]) -> Vec<InputSegment> {
        let mut arguments = self.arguments(x);
        self.push(&mut arguments, self.dimension + self.outputs, v);
        arguments
    }

    /// Adds to arguments a column for each component of the state, from `behind` on; components
    /// that `v` lacks are 0.
    fn push(&mut self, arguments: &mut Vec<InputSegment>, behind: usize, v: &[Column]) {
        let still = self.columns.constant(0.0);
        let mut rest = v.iter().copied().chain(std::iter::repeat(still));
        for &(first, width) in &self.variables {
            let columns = rest.by_ref().take(width).collect();
            arguments.push(InputSegment { first: behind as u32 + first, columns });
        }
    }

    /// Adds to arguments a column for each output of g, from `lambda`.
    fn push_multipliers(&mut self, arguments: &mut Vec<InputSegment>, lambda: &[Column]) {
        let zero = self.columns.constant(0.0);
        for &(first, width) in &self.quantities {
            let component = |offset: usize| {
                let place = self
                    .constraints
                    .iter()
                    .position(|family| family.first == first + offset as u32);
                place.map_or(zero, |k| lambda[k])
            };
            let columns = (0..width).map(component).collect();
            arguments.push(InputSegment { first: self.dimension as u32 + first, columns });
        }
    }

    fn with_velocities(&mut self, t: Column, x: &[Column]) -> Vec<InputSegment> {
        let v = self.gradient(t, x, true);
        self.with(x, &v)
    }

    /// The hidden constraints G H_p + g_t at (t, x).
    pub fn hidden_constraints(&mut self, t: Column, x: &[Column]) -> Vec<Column> {
        let (outputs, arguments) =
            (RowMechanics::outputs_of(&self.constraints), self.with_velocities(t, x));
        self.columns.call(self.hidden, t, &arguments, &outputs)
    }

    /// Scale of each constraint, or hidden one: Σ |∂g/∂x_i| max |x_j| over the components that it
    /// reads.
    pub fn constraint_sizes(&mut self, t: Column, x: &[Column], hidden: bool) -> Vec<Column> {
        let outputs = RowMechanics::outputs_of(&self.constraints);
        let arguments = if hidden { self.with_velocities(t, x) } else { self.arguments(x) };
        self.columns.call(self.sizes[usize::from(hidden)], t, &arguments, &outputs)
    }

    /// Gᵀλ at (t, x), one column for each component of the positions.
    pub fn constraint_forces(&mut self, t: Column, x: &[Column], lambda: &[Column]) -> Vec<Column> {
        let mut arguments = self.arguments(x);
        self.push_multipliers(&mut arguments, lambda);
        let outputs = RowMechanics::outputs_of(&self.state[..self.degrees()]);
        self.columns.call(self.forces, t, &arguments, &outputs)
    }
}

/// A term with `width` more slots, whose entries `entry` gives row by row, and with other roots
/// over them. The added entries advance by equal steps wherever the row's own entries do.
fn extended(
    term: &Term,
    width: usize,
    entry: impl Fn(Entries, usize) -> u32,
    roots: impl FnOnce(&mut Graph, &[Node]) -> Vec<Node>,
) -> Term {
    let mut graph = term.graph.clone();
    let count = term.slots.len();
    let added: Vec<Node> =
        (0..width).map(|k| graph.input(Input::Slot((count + k) as u32))).collect();
    let roots = roots(&mut graph, &added);
    let mut table = Stretches::new(term.table.width() + width);
    for stretch in term.table.iter() {
        let entries = |offset: usize| -> Vec<u32> {
            let row = stretch.row(offset);
            let added = (0..width).map(|k| entry(row, k));
            row.iter().take(count).chain(added).chain([row.last()]).collect()
        };
        let (first, second) = (entries(0), entries(1));
        let step: Vec<u32> =
            second.iter().zip(&first).map(|(second, first)| second.wrapping_sub(*first)).collect();
        table.push_stretch(first, step, stretch.rows);
    }
    let slots =
        term.slots.iter().copied().chain(std::iter::repeat_n(Source::State, width)).collect();
    Term { graph, roots, slots, table, ..term.clone() }
}

/// λ·g as a function of (x, λ), with λ after the state.
fn weighted(functional: &Functional, dimension: usize) -> Functional {
    let term = |term: &Term| {
        let lambda = |row: Entries, k: usize| dimension as u32 + row.last() + k as u32;
        let sum = |g: &mut Graph, lambda: &[Node]| vec![g.dot(lambda, &term.roots)];
        let extended = extended(term, term.roots.len(), lambda, sum);
        Term { table: extended.table.clone().with_last(0), ..extended }
    };
    Functional { outputs: 1, terms: functional.terms.iter().map(term).collect() }
}

/// A functional of one output as one with an output for every row of its terms, and the outputs of
/// each term.
fn with_row_outputs(mut functional: Functional) -> (Functional, Vec<StridedFamily>) {
    let (mut families, mut next) = (Vec::new(), 0);
    for term in &mut functional.terms {
        let first = next;
        let mut table = Stretches::new(term.table.width());
        let slots = term.slots.len();
        for stretch in term.table.iter() {
            let with = |entries: &[u32], last: u32| [&entries[..slots], &[last]].concat();
            table.push_stretch(with(stretch.first, next), with(stretch.step, 1), stretch.rows);
            next += stretch.rows as u32;
        }
        term.table = table;
        families.push(StridedFamily { first, stride: 1, length: next - first });
    }
    functional.outputs = next as usize;
    (functional, families)
}

/// Derivative of a functional along v, of order `order`, as a function of (x, v), where the
/// velocity of state component i is input `behind + i`; includes explicit time derivatives if
/// `timed`.
fn along(functional: &Functional, behind: usize, order: usize, timed: bool) -> Functional {
    let term = |term: &Term| {
        let moving: Vec<u32> = (0..term.slots.len() as u32)
            .filter(|&k| term.slots[k as usize] == Source::State)
            .collect();
        let velocity = |row: Entries, k: usize| behind as u32 + row.at(moving[k] as usize);
        let mut extended = extended(term, moving.len(), velocity, |g, v| {
            let mut roots = term.roots.clone();
            for _ in 0..order {
                for root in &mut roots {
                    let start = if timed { g.time_derivative(*root) } else { g.zero() };
                    let partials = g.adjoint(
                        *root,
                        |input| matches!(input, Input::Slot(k) if moving.contains(&k)),
                    );
                    *root = partials.into_iter().fold(start, |sum, (input, d)| {
                        let Input::Slot(slot) = input else { return sum };
                        let k = moving.binary_search(&slot).expect("it is among those that move");
                        let product = g.mul(d, v[k]);
                        g.add(sum, product)
                    });
                }
            }
            roots
        });
        if let Some(pairs) = &mut extended.pairs {
            pairs.sides.extend(moving.iter().map(|&slot| term.side(slot)));
        }
        extended
    };
    Functional { outputs: functional.outputs, terms: functional.terms.iter().map(term).collect() }
}

/// Scale of every term of f: Σ |∂f/∂x_i| max |x_j|.
fn sized(functional: &Functional, degrees: usize) -> Functional {
    let term = |term: &Term| {
        let (mut graph, gradients) = term.gradients();
        let zero = graph.zero();
        // 0 for positions, 1 for everything after them.
        let part = |slot: u32| {
            usize::from(term.rows() > 0 && term.row(0).at(slot as usize) as usize >= degrees)
        };
        let mut largest = [zero; 2];
        for (k, source) in term.slots.iter().enumerate() {
            if *source == Source::State {
                let slot = graph.input(Input::Slot(k as u32));
                let largest = &mut largest[part(k as u32)];
                *largest = graph.largest(slot, *largest);
            }
        }
        let size = |gradient: &Vec<(u32, Node)>| {
            gradient.iter().fold(zero, |sum, &(slot, d)| {
                let size = graph.unary(Unary::Abs, d);
                let size = graph.mul(size, largest[part(slot)]);
                graph.add(sum, size)
            })
        };
        let roots = gradients.iter().map(size).collect();
        Term { graph, roots, ..term.clone() }
    };
    Functional { outputs: functional.outputs, terms: functional.terms.iter().map(term).collect() }
}
