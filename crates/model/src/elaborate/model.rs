//! The checked model: every name resolved, every formula a sum of term templates.

mod components;
mod drawing;
mod following;
mod redundancy;
pub mod start;

pub use components::component_suffix;
pub use drawing::{Argument, Colour, Drawing, FORMS, Form, FormRow};
pub use following::{Following, momentum_derivatives};
pub use redundancy::Redundancy;

use super::expression::{Depends, MOMENTUM, TIME, VELOCITY};
use super::shape::Shape;
use super::statistic::Statistic;
use crate::functional::Functional;
use crate::poisson::Poisson;
use crate::syntax::ast::Name;
use crate::syntax::span::Span;
use start::{Moving, Start};
use std::cmp::Ordering;
use std::sync::Arc;

/// Largest number of values of an inner index whose members stand in columns of their own, like the
/// components of a vector: the sites of a molecule. A loop over molecules then reads contiguous
/// lines.
pub(crate) const MOST_SITES: usize = 6;

/// A family of quantities of one shape over a box of indices; a single quantity is a family without
/// indices.
#[derive(Clone, Debug)]
pub struct Family {
    /// Name.
    pub name: String,
    /// Span of the declaration.
    pub span: Span,
    /// Names of the indices.
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
        // An empty range first, because the other ranges may then be of any length.
        if counts().any(|c| c == 0) { 0 } else { counts().product() }
    }

    /// Number of scalars.
    pub fn len(&self) -> usize {
        self.members() * self.shape.len()
    }

    /// Number of scalars that belong together: those of one member, or of all members that differ
    /// in an inner index of few values, as the sites of a molecule.
    pub fn width(&self) -> usize {
        let counts = || self.bounds.iter().map(|&(low, high)| (high - low + 1).max(0) as usize);
        let sites = counts().next_back().filter(|_| self.bounds.len() > 1).unwrap_or(1);
        let molecules: usize = self.members() / sites.max(1);
        self.shape.len() * if sites <= MOST_SITES.min(molecules) { sites } else { 1 }
    }

    /// True if the family has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Role of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A position.
    Coordinate,
    /// The momentum of the coordinate with this number among the variables.
    Momentum(usize),
    /// A variable of a `state` model.
    State,
    /// The work of all forces since the start, and ∫H_t dt: no part of the phase space.
    Work,
}

/// A variable of the model.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Name, indices, shape.
    pub family: Family,
    /// Role in the model.
    pub role: Role,
    /// First component in the state x = (q, p).
    pub first: usize,
    /// Span of the initial value.
    pub initial_span: Span,
    /// Span of a state's derivative; for other variables, of their declaration.
    pub rate_span: Span,
}

/// A parameter with its value.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Name, indices, shape.
    pub family: Family,
    /// First slot among [`Model::parameter_values`].
    pub first: usize,
}

impl Parameter {
    /// Name of the value in a place among those of all `parameters`.
    pub fn value_name(parameters: &[Parameter], place: usize) -> String {
        let is_its = |p: &&Parameter| (p.first..p.first + p.family.len()).contains(&place);
        let parameter = parameters.iter().find(is_its).expect("every value has a parameter");
        parameter.family.component_name(place - parameter.first)
    }
}

/// A data table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name.
    pub name: String,
    /// Column names and values.
    pub columns: Vec<(String, Vec<f64>)>,
    /// Number of rows.
    pub rows: usize,
    /// Description of the rows, for messages; empty if they are all that the file has.
    pub rows_are: &'static str,
}

impl Table {
    /// Message about a row that the table does not have.
    pub(super) fn no_row(&self, row: f64) -> String {
        let Table { name, rows, rows_are, .. } = self;
        match (*rows, rows_are.is_empty()) {
            (0, _) => format!("row {row} of table '{name}' does not exist: it has no rows"),
            (_, true) => format!("row {row} of table '{name}' is outside 1..{rows}"),
            (_, false) => {
                format!("row {row} of table '{name}' is outside 1..{rows}, the {rows_are}")
            }
        }
    }
}

/// Knots of an interpolation over the time.
#[derive(Clone, Debug, PartialEq)]
pub struct Knots {
    /// Name of the table.
    pub table: String,
    /// The knots, increasing.
    pub times: Vec<f64>,
    /// Length after which they repeat, if they do.
    pub period: Option<f64>,
    /// True if values jump there.
    pub jumps: bool,
}

/// One scalar equation or value of a [`Quantity`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// Position among the components of the member.
    pub offset: usize,
    /// Number of entries of the user's quantity that the component stands for: 2 for an
    /// off-diagonal entry of a symmetric matrix, whose twin is left out.
    pub multiplicity: f64,
}

impl Component {
    /// Positions of the entries that it stands for, in a member of this shape.
    pub fn offsets(&self, shape: Shape) -> impl Iterator<Item = usize> + use<> {
        let twin = match shape {
            Shape::Matrix(_, columns) if self.multiplicity > 1.0 => {
                Some(self.offset % columns * columns + self.offset / columns)
            }
            _ => None,
        };
        std::iter::once(self.offset).chain(twin)
    }
}

/// A named formula: a constraint (left minus right side), an integral, an observable.
#[derive(Clone, Debug)]
pub struct Quantity {
    /// Name.
    pub name: String,
    /// Span of the declaration.
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
    /// Inputs that it depends on.
    pub depends: Depends,
}

/// A `measure`.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Measured quantity, under the measure's name; a placeholder for p·∂H/∂p if the statistic is
    /// `temperature()`.
    pub quantity: Quantity,
    /// Statistic of the quantity.
    pub statistic: Statistic,
    /// Time between two samples; `None` if a run chooses it.
    pub every: Option<f64>,
    /// Time of the first sample; `None` if that is the start.
    pub from: Option<f64>,
    /// Formulas of the statistic's numbers, the interval and the first time.
    pub given: Vec<Functional>,
}

/// Words for the units of length, mass and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// Unit of length.
    pub length: String,
    /// Unit of mass.
    pub mass: String,
    /// Unit of time.
    pub time: String,
}

/// A `run` statement: the value of an option that the model suggests.
#[derive(Clone, Debug)]
pub struct RunDefault {
    /// Name of the option.
    pub name: Name,
    /// Its value.
    pub value: DefaultValue,
}

/// Value of an option in a `run` statement.
#[derive(Clone, Debug)]
pub enum DefaultValue {
    /// A text: the name of a method.
    Text(Name),
    /// A constant number, with its span and its formula.
    Number(f64, Span, Functional),
}

impl Quantity {
    /// Number of independent scalars of all members.
    pub fn scalars(&self) -> usize {
        self.members * self.components.len()
    }

    /// For each entry of a member, the number of its independent component and its share of that
    /// one's multiplier: two equal entries of a symmetric matrix have half of it each, so that
    /// Σ λ_ij ∂g_ij over all entries is the force.
    pub fn shares(&self) -> Vec<Option<(usize, f64)>> {
        let mut shares = vec![None; self.shape.len()];
        for (scalar, component) in self.components.iter().enumerate() {
            for offset in component.offsets(self.shape) {
                shares[offset] = Some((scalar, 1.0 / component.multiplicity));
            }
        }
        shares
    }

    /// The member's name with its indices, `link[3]`.
    pub fn member_name(&self, member: usize) -> String {
        let k = self.indices.len();
        if k == 0 {
            return self.name.clone();
        }
        let list: Vec<String> =
            self.member_indices[member * k..(member + 1) * k].iter().map(i32::to_string).collect();
        format!("{}[{}]", self.name, list.join(","))
    }

    /// Number of the member with these index values; `None` if there is none.
    pub fn member(&self, indices: &[i64]) -> Option<usize> {
        let k = self.indices.len();
        let of = |member: usize| {
            self.member_indices[member * k..(member + 1) * k].iter().map(|&i| i64::from(i))
        };
        // Ranges ascend, so the members are in order.
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

/// Constraints with the places of their multipliers. The multipliers follow the state: one for each
/// component of each member, including the components left out of a symmetric matrix.
pub fn multipliers(constraints: &[Quantity], dimension: usize) -> Vec<(&Quantity, usize)> {
    let mut next = dimension;
    let mut places = Vec::with_capacity(constraints.len());
    for quantity in constraints {
        places.push((quantity, next));
        next += quantity.functional.outputs;
    }
    places
}

/// A generalised force Q, which adds to ṗ.
#[derive(Clone, Debug)]
pub struct Force {
    /// Name.
    pub name: String,
    /// Span of the declaration.
    pub span: Span,
    /// Q with one output for every position; it may read velocities.
    pub functional: Functional,
    /// Inputs that it depends on.
    pub depends: Depends,
}

/// A rolling constraint A(q, t) q' + b(q, t) = 0, with the forces −Aᵀμ of d'Alembert's principle. As a
/// function of positions and momenta it is one of the [`Model::constraints`].
#[derive(Clone, Debug)]
pub struct Rolling {
    /// Its number among the constraints.
    pub constraint: usize,
    /// The left minus the right side, which reads velocities.
    pub functional: Functional,
    /// True if b = 0: its forces do no work.
    pub is_homogeneous: bool,
}

/// A function of the state whose zeros along the motion are events.
#[derive(Clone, Debug)]
pub struct Event {
    /// The function, a scalar for each member.
    pub quantity: Quantity,
    /// Sign of its rate at a crossing that counts; 0 if both do.
    pub direction: i8,
    /// Number of crossings from one at which it acts to the next.
    pub every: u64,
    /// What it does.
    pub action: EventAction,
}

/// What an event does.
#[derive(Clone, Debug)]
pub enum EventAction {
    /// It is recorded.
    Record,
    /// It is recorded, and ends the run.
    Stop,
    /// It sets components of the state.
    Reset(Vec<Reset>),
    /// An impact: the momenta get what turns the rate of the function around.
    Impact {
        /// Part of the rate that is left, one for each member.
        restitution: Functional,
        /// Coefficient of friction, if there is any.
        friction: Option<Functional>,
    },
}

impl EventAction {
    /// True for an impact.
    pub fn is_impact(&self) -> bool {
        matches!(self, EventAction::Impact { .. })
    }
}

/// Values that an event gives to components of the state.
#[derive(Clone, Debug)]
pub struct Reset {
    /// The values, of the state before; as many for each member of the event.
    pub values: Functional,
    /// Component of the state that each of them is given to.
    pub places: Vec<u32>,
}

/// Name of the integral H − H₀ − ∫(Q·q' + H_t) dt of a model with forces.
pub const ENERGY_BALANCE: &str = "energy balance";

/// Right-hand side of the equations of motion.
#[derive(Clone, Debug)]
pub enum Dynamics {
    /// ẋ = X_H, with H and its span.
    Hamiltonian(Functional, Span),
    /// ẋ = X(x, t).
    Field(Functional),
}

/// Kind of an invariant, as the user sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvariantKind {
    /// An equation of the model.
    Constraint,
    /// Time derivative of a constraint, G H_p + g_t (or G p, if that vanishes identically), or of a
    /// hidden constraint: its order is 1 or more.
    Hidden(u32),
    /// H.
    Hamiltonian,
    /// H_ω, that is H with the penalty of the constraints.
    Penalised,
    /// A first integral that the user states.
    Integral,
    /// Modified energy that a method conserves in place of H: monitored, not a row of F.
    ModifiedEnergy,
}

/// Parts of the constrained model that a penalised model keeps.
#[derive(Clone, Debug)]
pub struct Penalty {
    /// Place of ω among the parameter values.
    pub omega: usize,
    /// Constraints, no longer imposed.
    pub constraints: Vec<Quantity>,
    /// Rates of change of the constraints, G H_p + g_t, in the same order.
    pub hidden: Vec<Quantity>,
    /// The model's own H.
    pub hamiltonian: Functional,
    /// True if the model's own H is constant along the constrained motion.
    pub conservative: bool,
}

/// Additional data of a model in a heat bath.
#[derive(Clone, Debug)]
pub struct HeatBath {
    /// Place of the friction, force per velocity, among the parameter values.
    pub friction: usize,
    /// Place of the temperature kT.
    pub temperature: usize,
    /// Place of the trajectory's number, which keys its random numbers.
    pub trajectory: usize,
    /// Seed of the random numbers.
    pub seed: u64,
    /// True if each momentum enters H by its square alone.
    pub diagonal: bool,
    /// The model's own H, if the bath has added a potential.
    pub hamiltonian: Option<Functional>,
}

/// Bodies without mass: their momenta are their velocities.
#[derive(Clone, Debug)]
pub struct Massless {
    /// True for their positions.
    pub positions: Vec<bool>,
    /// H of the bodies with mass, if these act on them: what is constant then.
    pub energy: Option<Functional>,
}

/// A checked model.
#[derive(Clone, Debug)]
pub struct Model {
    /// Coordinates in the file's order, then their momenta; or the states.
    pub variables: Vec<Variable>,
    /// Parameters in the file's order.
    pub parameters: Vec<Parameter>,
    /// Values of the parameters, all components one after the other.
    pub parameter_values: Vec<f64>,
    /// Initial state.
    pub initial: Vec<f64>,
    /// Time of the initial state.
    pub t0: f64,
    /// True if it is the model as it was written backwards in time; see
    /// [`reversal`](crate::treatment::reversal).
    pub reversed: bool,
    /// Formulas of parameter values and initial state that differ between the trajectories of an
    /// ensemble.
    pub start: Start,
    /// The right-hand side.
    pub dynamics: Dynamics,
    /// The Hamiltonian and the matrix of brackets from which a field follows, if it does.
    pub poisson: Option<Arc<Poisson>>,
    /// Forces that act beside the Hamiltonian's own.
    pub forces: Vec<Force>,
    /// Velocities of the start and momenta that follow from them, if the model has a Lagrangian.
    pub lagrangian: Option<Arc<Moving>>,
    /// Bodies without mass, with the energy of the others where these act on them.
    pub massless: Option<Arc<Massless>>,
    /// Part of the potential energy in H that is called stiff, if any.
    pub stiff: Option<Functional>,
    /// Constraints in the file's order, as methods impose them.
    pub constraints: Vec<Quantity>,
    /// Constraints as stated, if some of their equations follow from the others.
    pub redundancy: Option<Arc<Redundancy>>,
    /// Those of the constraints that are rolling constraints.
    pub rollings: Vec<Rolling>,
    /// Claimed first integrals.
    pub integrals: Vec<Quantity>,
    /// Quantities that are only recorded.
    pub observables: Vec<Quantity>,
    /// Quantities averaged along a run.
    pub measures: Vec<Measured>,
    /// Events, impacts among them, in the file's order.
    pub events: Vec<Event>,
    /// What its pictures show, in the file's order.
    pub drawings: Vec<Drawing>,
    /// Knots of interpolations over the time, those of observables included.
    pub knots: Vec<Knots>,
    /// Options of runs that the model suggests.
    pub run: Vec<RunDefault>,
    /// Words for the units of length, mass and time, if the model has any.
    pub units: Option<Arc<Units>>,
    /// Sizes, for reports.
    pub sizes: Vec<(String, i64)>,
    /// True if H depends on t.
    pub explicit_time: bool,
    /// Constrained model behind a penalised one.
    pub penalty: Option<Arc<Penalty>>,
    /// Heat bath, if the model is in one.
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
            Dynamics::Hamiltonian(..) => self.dimension() / 2, // the work is no part of it
            Dynamics::Field(_) => 0,
        }
    }

    /// True if the model is Hamiltonian.
    pub fn is_hamiltonian(&self) -> bool {
        matches!(self.dynamics, Dynamics::Hamiltonian(..))
    }

    /// H and its span: of a Hamiltonian model, or of a Poisson system.
    pub fn hamiltonian(&self) -> Option<(&Functional, Span)> {
        match (&self.dynamics, &self.poisson) {
            (Dynamics::Hamiltonian(h, span), _) => Some((h, *span)),
            (Dynamics::Field(_), Some(poisson)) => Some((&poisson.hamiltonian, poisson.span)),
            (Dynamics::Field(_), None) => None,
        }
    }

    /// True if no constraint depends on momenta.
    pub fn is_holonomic(&self) -> bool {
        self.constraints.iter().all(|c| c.depends & MOMENTUM == 0)
    }

    /// True if a constraint depends on momenta and is none on velocities: its forces move positions,
    /// too.
    pub fn has_constraints_on_momenta(&self) -> bool {
        self.rollings.is_empty() && !self.is_holonomic()
    }

    /// Quantities that are monitored along a run and move nothing: observables and the quantities
    /// of measures.
    pub fn observed(&self) -> impl Iterator<Item = &Quantity> {
        self.observables.iter().chain(self.measures.iter().map(|measure| &measure.quantity))
    }

    /// Right-hand side: H, or the field of a state model.
    pub fn moved_by(&self) -> &Functional {
        let (Dynamics::Hamiltonian(functional, _) | Dynamics::Field(functional)) = &self.dynamics;
        functional
    }

    /// Formulas of the field and the invariants: the right-hand side, constraints, integrals,
    /// constraints of a penalty.
    fn functionals(&self) -> impl Iterator<Item = &Functional> {
        let monitored = self
            .penalty
            .iter()
            .flat_map(|penalty| penalty.constraints.iter().chain(&penalty.hidden));
        let quantities = self.constraints.iter().chain(&self.integrals).chain(monitored);
        let forces = self.forces.iter().map(|force| &force.functional);
        std::iter::once(self.moved_by()).chain(forces).chain(quantities.map(|q| &q.functional))
    }

    /// True if H is constant along the motion.
    pub fn conserves_energy(&self) -> bool {
        let rolls = |k: usize| self.rollings.iter().find(|rolling| rolling.constraint == k);
        let moves = self.constraints.iter().enumerate().any(|(k, c)| match rolls(k) {
            Some(rolling) => !rolling.is_homogeneous,
            None => c.depends & TIME != 0,
        });
        let alone = self.forces.is_empty() && self.heat_bath.is_none();
        let has_energy = self.is_hamiltonian() || self.poisson.is_some();
        has_energy && !self.explicit_time && !moves && alone
    }

    /// Variables of the phase space, or of a state model.
    pub fn phase_variables(&self) -> impl Iterator<Item = &Variable> {
        self.variables.iter().filter(|variable| variable.role != Role::Work)
    }

    /// Place of the work in the state, if the model keeps account of it.
    pub fn work(&self) -> Option<usize> {
        self.variables.last().filter(|last| last.role == Role::Work).map(|work| work.first)
    }

    /// True if the time stands in the equations of motion.
    pub fn moves_with_time(&self) -> bool {
        let of_forces = || self.forces.iter().any(|force| force.depends & TIME != 0);
        let of_constraints = || self.constraints.iter().any(|c| c.depends & TIME != 0);
        self.explicit_time || !self.is_hamiltonian() || of_forces() || of_constraints()
    }

    /// Length of the state without the work.
    pub fn phase_dimension(&self) -> usize {
        self.work().unwrap_or(self.dimension())
    }

    /// True if the only force is that on test bodies.
    pub fn has_passive_bodies(&self) -> bool {
        let acts = |massless: &Arc<Massless>| massless.energy.is_some();
        self.massless.as_ref().is_some_and(acts) && self.forces.len() == 1
    }

    /// True if a force depends on momenta or velocities.
    pub fn drags(&self) -> bool {
        self.forces.iter().any(|force| force.depends & (MOMENTUM | VELOCITY) != 0)
    }

    /// The sum of all forces, with one output for every position.
    pub fn force(&self) -> Functional {
        let terms = self.forces.iter().flat_map(|force| force.functional.terms.clone()).collect();
        Functional { outputs: self.degrees(), terms }
    }

    /// H as the user has written it, without a penalty and without what a heat bath adds; that of
    /// the bodies with mass where these move others.
    pub fn own_hamiltonian(&self) -> Option<&Functional> {
        let Dynamics::Hamiltonian(all, _) = &self.dynamics else { return None };
        if let Some(energy) = self.massless.as_ref().and_then(|massless| massless.energy.as_ref()) {
            return Some(energy);
        }
        let of_bath = self.heat_bath.as_ref().and_then(|bath| bath.hamiltonian.as_ref());
        Some(self.penalty.as_ref().map_or(of_bath.unwrap_or(all), |penalty| &penalty.hamiltonian))
    }

    /// Name and kind of H among the invariants: those of H_ω in a penalised model.
    pub fn energy(&self) -> (&'static str, InvariantKind) {
        match self.penalty {
            Some(_) => ("H.penalised", InvariantKind::Penalised),
            None => ("H", InvariantKind::Hamiltonian),
        }
    }

    /// Places of what follows the state among the inputs of a formula.
    pub fn following(&self) -> Following {
        Following::new(self.stated_constraints(), self.dimension(), self.degrees())
    }

    /// The constraints of the model, whether they are imposed or penalised.
    pub fn stated_constraints(&self) -> &[Quantity] {
        match &self.penalty {
            Some(penalty) => &penalty.constraints,
            None => self.imposed_constraints(),
        }
    }

    /// Upper bound for the number of nodes of the field and the invariants, unrolled, before any
    /// derivative.
    pub fn unrolled_size(&self) -> usize {
        self.functionals().map(Functional::unrolled_size).sum()
    }

    /// [`Model::unrolled_size`] of the formulas of a step alone: the right-hand side and the
    /// constraints.
    pub fn unrolled_dynamics(&self) -> usize {
        let constraints = self.constraints.iter().map(|q| q.functional.unrolled_size());
        let forces = self.forces.iter().map(|force| force.functional.unrolled_size());
        self.moved_by().unrolled_size() + constraints.chain(forces).sum::<usize>()
    }

    /// Number of nodes of the templates of the field and the invariants.
    pub fn template_size(&self) -> usize {
        self.functionals().flat_map(|f| &f.terms).map(|t| t.graph.len()).sum()
    }
}
