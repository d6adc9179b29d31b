//! The checked model: every name resolved, every formula a sum of term templates.

use super::expression::{Depends, MOMENTUM, TIME};
use super::shape::Shape;
use super::start::Start;
use super::statistic::Statistic;
use crate::functional::Functional;
use crate::syntax::span::Span;
use std::cmp::Ordering;
use std::sync::Arc;

/// Values of an inner index up to which the members of a family that differ in it stand in columns of their own, like the
/// components of a vector: sites of a molecule. A loop over molecules reads lines then, and none of numbers apart.
pub(crate) const MOST_SITES: usize = 6;

/// A family of quantities of one shape over a box of indices; a single quantity is a family without indices.
#[derive(Clone, Debug)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub span: Span,
    /// Names of its indices.
    pub indices: Vec<String>,
    /// First and last value of each index.
    pub bounds: Vec<(i64, i64)>,
    /// Shape of one member.
    pub shape: Shape,
}

impl Family {
    /// Number of members.
    pub fn members(&self) -> usize {
        let counts = || self.bounds.iter().map(|&(low, high)| (high - low + 1).max(0) as usize);
        // An empty range first: the others may be of any length then.
        if counts().any(|c| c == 0) { 0 } else { counts().product() }
    }

    /// Number of scalars.
    pub fn len(&self) -> usize {
        self.members() * self.shape.len()
    }

    /// Number of scalars that belong together: those of a member, or of all the members that differ in an inner index of
    /// few values only, as the sites of a molecule.
    pub fn width(&self) -> usize {
        let counts = || self.bounds.iter().map(|&(low, high)| (high - low + 1).max(0) as usize);
        let sites = counts().next_back().filter(|_| self.bounds.len() > 1).unwrap_or(1);
        let molecules: usize = self.members() / sites.max(1);
        self.shape.len() * if sites <= MOST_SITES.min(molecules) { sites } else { 1 }
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A position.
    Coordinate,
    /// The momentum of the coordinate with this number among the variables.
    Momentum(usize),
    /// A variable of a `state` model.
    State,
}

/// A variable of the model.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Name, indices, shape.
    pub family: Family,
    /// What it is.
    pub role: Role,
    /// Its first component in the state x = (q, p).
    pub first: usize,
    /// Where its initial value stands.
    pub initial_span: Span,
    /// Where a state's derivative stands; for other variables, their declaration.
    pub rate_span: Span,
}

/// A parameter with its value.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Name, indices, shape.
    pub family: Family,
    /// Its first slot among [`Model::parameter_values`].
    pub first: usize,
}

/// A data table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Column names and values.
    pub columns: Vec<(String, Vec<f64>)>,
    /// Number of rows.
    pub rows: usize,
}

/// One scalar equation or value of a [`Quantity`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// Its place among the components of its member.
    pub offset: usize,
    /// How many entries of the user's quantity it stands for: 2 for an off-diagonal entry of a symmetric
    /// matrix, whose twin is left out.
    pub multiplicity: f64,
}

/// A named formula: a constraint (left minus right side), an integral, an observable.
#[derive(Clone, Debug)]
pub struct Quantity {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub span: Span,
    /// The formula.
    pub functional: Functional,
    /// Shape of a member.
    pub shape: Shape,
    /// Names of the family's indices.
    pub indices: Vec<String>,
    /// Index values of the members, one after the other.
    pub member_indices: Vec<i32>,
    /// Number of members.
    pub members: usize,
    /// The independent components of each member, in order.
    pub components: Vec<Component>,
    /// What it depends on.
    pub depends: Depends,
}

/// A `measure`.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What is measured, under the measure's name; of `temperature()` a place for p·∂H/∂p.
    pub quantity: Quantity,
    /// What is made of it.
    pub statistic: Statistic,
    /// Time between two samples; `None` if a run chooses it.
    pub every: Option<f64>,
    /// Time of the first sample; `None` if that is the start.
    pub from: Option<f64>,
    /// Formulas of the numbers and times.
    pub given: Vec<Functional>,
}

impl Quantity {
    /// The member's name with its indices, `link[3]`.
    pub fn member_name(&self, member: usize) -> String {
        let k = self.indices.len();
        if k == 0 {
            return self.name.clone();
        }
        let list: Vec<String> = self.member_indices[member * k..(member + 1) * k].iter().map(i32::to_string).collect();
        format!("{}[{}]", self.name, list.join(","))
    }

    /// The member with these index values.
    pub fn member(&self, indices: &[i64]) -> Option<usize> {
        let k = self.indices.len();
        let of = |member: usize| self.member_indices[member * k..(member + 1) * k].iter().map(|&i| i64::from(i));
        // Ranges run upwards, so the members are in order.
        let (mut low, mut high) = (0, self.members);
        while low < high {
            let middle = low + (high - low) / 2;
            match of(middle).cmp(indices.iter().copied()) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// The constraints with the places of their multipliers. These follow the state: one for each component of each member,
/// those left out of a symmetric matrix included.
pub fn multipliers(constraints: &[Quantity], dimension: usize) -> Vec<(&Quantity, usize)> {
    let mut next = dimension;
    let mut places = Vec::with_capacity(constraints.len());
    for quantity in constraints {
        places.push((quantity, next));
        next += quantity.functional.outputs;
    }
    places
}

/// What moves the state.
#[derive(Clone, Debug)]
pub enum Dynamics {
    /// ẋ = X_H, with H and where it stands.
    Hamiltonian(Functional, Span),
    /// ẋ = X(x, t).
    Field(Functional),
}

/// What an invariant is to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvariantKind {
    /// An equation of the model.
    Constraint,
    /// Its time derivative, G H_p + g_t (or G p, where that is empty).
    Hidden,
    /// H.
    Hamiltonian,
    /// H_ω, which has the penalty of the constraints in it.
    Penalised,
    /// A first integral that the user states.
    Integral,
    /// What a method keeps in the place of H: watched, and no row of F.
    ModifiedEnergy,
}

/// What a penalised model keeps of the constrained one.
#[derive(Clone, Debug)]
pub struct Penalty {
    /// ω's place among the parameter values.
    pub omega: usize,
    /// The constraints, no longer imposed.
    pub constraints: Vec<Quantity>,
    /// Their rates of change, G H_p + g_t, in the same order.
    pub hidden: Vec<Quantity>,
    /// The model's own H.
    pub hamiltonian: Functional,
    /// Whether the model's own H is constant along the constrained motion.
    pub conservative: bool,
}

/// What a model in a heat bath has besides.
#[derive(Clone, Debug)]
pub struct HeatBath {
    /// Place of the friction, force per velocity, among the parameter values.
    pub friction: usize,
    /// Place of the temperature kT.
    pub temperature: usize,
    /// Place of the number of the trajectory, which its random numbers belong to.
    pub trajectory: usize,
    /// Which random numbers there are.
    pub seed: u64,
    /// Whether H holds every momentum by its square alone.
    pub diagonal: bool,
    /// The model's own H, if the bath has added a potential.
    pub hamiltonian: Option<Functional>,
}

/// A checked model.
#[derive(Clone, Debug)]
pub struct Model {
    /// Coordinates in the file's order, then their momenta; or the states.
    pub variables: Vec<Variable>,
    /// Parameters in the file's order.
    pub parameters: Vec<Parameter>,
    /// Their values, all components one after the other.
    pub parameter_values: Vec<f64>,
    /// The initial state.
    pub initial: Vec<f64>,
    /// The time of the initial state.
    pub t0: f64,
    /// How both differ in the other trajectories of an ensemble.
    pub start: Start,
    /// The right-hand side.
    pub dynamics: Dynamics,
    /// The part of the potential energy in H that is called stiff, if one is.
    pub stiff: Option<Functional>,
    /// Constraints in the file's order.
    pub constraints: Vec<Quantity>,
    /// Claimed first integrals.
    pub integrals: Vec<Quantity>,
    /// What is recorded besides.
    pub observables: Vec<Quantity>,
    /// What is averaged along a run.
    pub measures: Vec<Measured>,
    /// Sizes, for reports.
    pub sizes: Vec<(String, i64)>,
    /// Whether H depends on t.
    pub explicit_time: bool,
    /// What a penalty has taken the place of, in a penalised model.
    pub penalty: Option<Arc<Penalty>>,
    /// The heat bath, of a model that is in one.
    pub heat_bath: Option<Arc<HeatBath>>,
}

impl Model {
    /// Length of the state.
    pub fn dimension(&self) -> usize {
        self.initial.len()
    }

    /// Number of positions n where the state is (q, p); 0 for a `state` model.
    pub fn degrees(&self) -> usize {
        match self.dynamics {
            Dynamics::Hamiltonian(..) => self.dimension() / 2,
            Dynamics::Field(_) => 0,
        }
    }

    /// Whether it is a Hamiltonian model.
    pub fn is_hamiltonian(&self) -> bool {
        matches!(self.dynamics, Dynamics::Hamiltonian(..))
    }

    /// Whether no constraint depends on momenta.
    pub fn is_holonomic(&self) -> bool {
        self.constraints.iter().all(|c| c.depends & MOMENTUM == 0)
    }

    /// What is looked at along a run and moves nothing: observables, and what measures are of.
    pub fn observed(&self) -> impl Iterator<Item = &Quantity> {
        self.observables.iter().chain(self.measures.iter().map(|measure| &measure.quantity))
    }

    /// Everything that is a formula: the right-hand side, constraints, integrals, what is observed.
    fn functionals(&self) -> impl Iterator<Item = &Functional> {
        let (Dynamics::Hamiltonian(dynamics, _) | Dynamics::Field(dynamics)) = &self.dynamics;
        let watched = self.penalty.iter().flat_map(|penalty| penalty.constraints.iter().chain(&penalty.hidden));
        let quantities = self.constraints.iter().chain(&self.integrals).chain(self.observed()).chain(watched);
        std::iter::once(dynamics).chain(quantities.map(|q| &q.functional))
    }

    /// Whether H is constant along the motion.
    pub fn conserves_energy(&self) -> bool {
        let moves = self.constraints.iter().any(|c| c.depends & TIME != 0);
        self.is_hamiltonian() && !self.explicit_time && !moves && self.heat_bath.is_none()
    }

    /// H as the user has written it, without a penalty or what a heat bath adds.
    pub fn own_hamiltonian(&self) -> Option<&Functional> {
        let Dynamics::Hamiltonian(all, _) = &self.dynamics else { return None };
        let of_bath = self.heat_bath.as_ref().and_then(|bath| bath.hamiltonian.as_ref());
        Some(self.penalty.as_ref().map_or(of_bath.unwrap_or(all), |penalty| &penalty.hamiltonian))
    }

    /// What H is called among the invariants, and what it is: of a penalised model, H_ω.
    pub fn energy(&self) -> (&'static str, InvariantKind) {
        match self.penalty {
            Some(_) => ("H.penalised", InvariantKind::Penalised),
            None => ("H", InvariantKind::Hamiltonian),
        }
    }

    /// The constraints of the model, whether they are imposed or penalised.
    pub fn stated_constraints(&self) -> &[Quantity] {
        self.penalty.as_ref().map_or(&self.constraints, |penalty| &penalty.constraints)
    }

    /// Nodes of the unrolled model before any derivative, at most.
    pub fn unrolled_size(&self) -> usize {
        self.functionals().map(Functional::unrolled_size).sum()
    }

    /// The same of what a step is made of: the right-hand side and the constraints.
    pub fn unrolled_dynamics(&self) -> usize {
        let (Dynamics::Hamiltonian(dynamics, _) | Dynamics::Field(dynamics)) = &self.dynamics;
        let constraints = self.constraints.iter().map(|q| q.functional.unrolled_size());
        dynamics.unrolled_size() + constraints.sum::<usize>()
    }

    /// Nodes of all its templates.
    pub fn template_size(&self) -> usize {
        self.functionals().flat_map(|f| &f.terms).map(|t| t.graph.len()).sum()
    }
}
