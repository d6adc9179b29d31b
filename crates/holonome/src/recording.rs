//! Recording of a run: samples into the store, checkpoints, progress.

mod batch;
mod measuring;
mod multipliers;
mod units;

pub(crate) use measuring::{Measuring, MeasuringScratch, NUMBERS_OF_A_SAMPLE, RunMeasure};
pub(crate) use multipliers::{SampleMultipliers, with_multipliers};
pub(crate) use units::deviation;
pub use units::{TIME, UnitLabels, unit_labels};

use crate::error::Error;
use crate::hold;
use crate::kernels::{Bound, CompiledSystem, Quantities, WithVelocities, compile_rows};
use crate::output::Output;
use crate::pieces::Pieces;
use crate::policy::FEWEST_IN_LANES;
use crate::serial::NumberArray;
use crate::store::{ArrayLayout, Dimension, Label, Layout, StoreError, units_attribute};
use batch::Batch;
use holonome_integrate::averages::Averages;
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::state::StepState;
use holonome_integrate::system::{System, all_finite};
use holonome_model::elaborate::expression::MULTIPLIER;
use holonome_model::elaborate::model::{
    Dynamics, Family, Model, Quantity, Role, Variable, multipliers,
};
use holonome_model::elaborate::shape::Shape;
use holonome_model::functional::{Functional, Template, work_len};
use holonome_model::graph::interpret::Interpreter;
use holonome_model::graph::{Graph, Node};
use holonome_model::policy;
use holonome_model::rows::RowProgram;
use holonome_model::syntax::diagnostic::did_you_mean;
use holonome_model::syntax::span::Span;
use holonome_model::treatment::following_nodes::FollowingNodes;
use holonome_model::treatment::{Field, InvariantGroup, InvariantKind, feedback};
use holonome_words::option;
use serde_json::Map;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval of checkpoints, if they are quick.
pub(crate) const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// Inverse of the largest share of time spent on checkpoints: those of a large state take long.
const SHARE_OF_CHECKPOINTS: u32 = 20;

/// Interval at which progress is shown and a run may be stopped: soon for a person, rare for a
/// processor.
pub(crate) const SHOW_INTERVAL: Duration = Duration::from_millis(20);

/// Steps between two checks of the clock: long steps and slow disks must not hide progress, short
/// steps must not pay for the clock.
const STEPS_BETWEEN_LOOKS: u64 = 64;

/// Steps between two checks of the clock; 1 if a test holds the run.
pub(crate) fn look_every() -> u64 {
    if hold::is_wanted() { 1 } else { STEPS_BETWEEN_LOOKS }
}

/// A variable, or any recorded quantity, with its place among the numbers and its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableLayout {
    /// Name.
    pub name: String,
    /// Place of its first number.
    pub first: usize,
    /// First and last value of each index of its family.
    pub bounds: Vec<(i64, i64)>,
    /// Shape of a member.
    pub shape: Shape,
}

impl VariableLayout {
    /// A single vector.
    pub(crate) fn vector(name: &str, length: usize) -> VariableLayout {
        VariableLayout {
            name: name.to_string(),
            first: 0,
            bounds: Vec::new(),
            shape: Shape::Vector(length),
        }
    }

    /// Number of numbers.
    pub fn len(&self) -> usize {
        self.bounds.iter().map(|&(a, b)| (b - a + 1).max(0) as usize).product::<usize>()
            * self.shape.len()
    }

    /// True if it holds no numbers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its numbers in `x`, family indices first.
    pub(crate) fn of(&self, x: &[f64]) -> NumberArray {
        let numbers = x[self.first..self.first + self.len()].to_vec();
        NumberArray { numbers, dimensions: self.dimensions() }
    }

    /// Lengths of the family indices and of the dimensions of a member.
    pub(crate) fn dimensions(&self) -> Vec<usize> {
        let mut dimensions: Vec<usize> =
            self.bounds.iter().map(|&(a, b)| (b - a + 1).max(0) as usize).collect();
        dimensions.extend(self.shape.dimensions());
        dimensions
    }
}

/// Progress of a run, for a progress bar.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Time at the start.
    pub from: f64,
    /// Time reached.
    pub t: f64,
    /// Time at the end.
    pub until: f64,
    /// Accepted steps.
    pub steps: u64,
    /// Number of steps of the whole run, if known.
    pub of: Option<u64>,
    /// Largest drift so far, with its name.
    pub drift: Option<(String, f64)>,
}

/// Variables in the model's order.
pub fn variables(model: &Model) -> Vec<VariableLayout> {
    model
        .phase_variables()
        .map(|v| VariableLayout {
            name: v.family.name.clone(),
            first: v.first,
            bounds: v.family.bounds.clone(),
            shape: v.family.shape,
        })
        .collect()
}

/// Initial values of the groups of invariants, as functions of the start.
pub(crate) struct InitialValues {
    /// For each group that is an integral, its number among the model's and its templates.
    integrals: Vec<Option<(usize, Vec<Template>)>>,
}

impl InitialValues {
    pub fn new(model: &Model, groups: &[InvariantGroup]) -> InitialValues {
        let of_integral = |group: &InvariantGroup| {
            let number = model.integrals.iter().position(|q| q.name == group.name);
            let number = number.expect("a group has its quantity");
            (number, model.integrals[number].functional.templates(&Interpreter))
        };
        let integrals = groups
            .iter()
            .map(|group| (group.kind == InvariantKind::Integral).then(|| of_integral(group)));
        InitialValues { integrals: integrals.collect() }
    }

    /// Initial value of each of the `groups`, whose rows have the values `f`, and of `modified`,
    /// which a method keeps in place of H; `None` for imposed invariants.
    pub fn of(
        &self,
        model: &Model,
        groups: &[InvariantGroup],
        f: &[f64],
        modified: Option<f64>,
    ) -> Vec<Option<NumberArray>> {
        let value = |(g, integral): (&InvariantGroup, &Option<(usize, Vec<Template>)>)| {
            if let Some((number, templates)) = integral {
                return Some(integral_value(model, &model.integrals[*number], templates));
            }
            match g.kind {
                InvariantKind::Hamiltonian | InvariantKind::Penalised => {
                    g.members.rows().next().map(|(row, _)| NumberArray::of(f[row]))
                }
                InvariantKind::ModifiedEnergy => modified.map(NumberArray::of),
                InvariantKind::Constraint | InvariantKind::Hidden(_) | InvariantKind::Integral => {
                    None
                }
            }
        };
        groups.iter().zip(&self.integrals).map(value).collect()
    }
}

fn integral_value(model: &Model, quantity: &Quantity, templates: &[Template]) -> NumberArray {
    let functional = &quantity.functional;
    let (mut numbers, mut work) = (vec![0.0; functional.outputs], vec![0.0; work_len(templates)]);
    let (x, parameters) = (&model.initial, &model.parameter_values);
    functional.run(templates, model.t0, x, parameters, &mut numbers, &mut work);
    let mut dimensions: Vec<usize> =
        if quantity.indices.is_empty() { vec![] } else { vec![quantity.members] };
    dimensions.extend(quantity.shape.dimensions());
    NumberArray { numbers, dimensions }
}

/// Members of a recorded family.
pub(crate) enum Members {
    /// A box of indices: name, first and last value.
    Box(Vec<(String, (i64, i64))>),
    /// A list with index values for each member.
    List(String, Vec<Label>),
}

/// Source of the numbers of a recorded array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The state, or the multipliers after it.
    State,
    /// The outputs of the kernel.
    Kernel,
    /// The deviations of the groups of invariants; for a single run only.
    Deviations,
}

/// One recorded array.
pub(crate) struct RecordedArray {
    pub(crate) name: String,
    pub(crate) role: &'static str,
    pub(crate) description: String,
    /// Label of its unit, if that is known.
    pub(crate) unit: Option<String>,
    pub(crate) family: Members,
    pub(crate) shape: Shape,
    /// Source of its numbers.
    pub(crate) place: Place,
    pub(crate) first: usize,
    pub(crate) len: usize,
    /// Place in the state of the first number of a variable; `None` for other quantities.
    pub(crate) variable: Option<usize>,
}

impl RecordedArray {
    /// True if it is a variable of the model.
    pub(crate) fn is_variable(&self) -> bool {
        self.variable.is_some()
    }

    /// A single number, the first of its kind.
    fn scalar(name: String, role: &'static str, description: String, place: Place) -> Self {
        let (family, shape) = (Members::Box(Vec::new()), Shape::Scalar);
        RecordedArray {
            name,
            role,
            description,
            unit: None,
            family,
            shape,
            place,
            first: 0,
            len: 1,
            variable: None,
        }
    }

    fn of_variable(model: &Model, variable: &Variable) -> RecordedArray {
        let Variable { family, role, first, .. } = variable;
        let name = family.name.clone();
        let (role, description) = match *role {
            Role::Coordinate => ("coordinate", format!("position {name}")),
            Role::Momentum(of) => {
                ("momentum", format!("momentum of {}", model.variables[of].family.name))
            }
            Role::State => ("state", format!("state {name}")),
            Role::Work => ("work", name.clone()),
        };
        RecordedArray {
            family: members_of_family(family),
            shape: family.shape,
            first: *first,
            len: family.len(),
            variable: Some(*first),
            ..RecordedArray::scalar(name, role, description, Place::State)
        }
    }

    fn of_quantity(
        quantity: &Quantity,
        name: String,
        role: &'static str,
        description: String,
    ) -> RecordedArray {
        RecordedArray {
            family: members(&name, quantity),
            shape: quantity.shape,
            len: quantity.functional.outputs,
            ..RecordedArray::scalar(name, role, description, Place::Kernel)
        }
    }

    /// Part that `selection` selects, which follows the name: a member (`[2]`) or a component
    /// (`[2].x`). `None` if there is none such.
    fn part(&self, selection: &str) -> Option<RecordedArray> {
        let Members::Box(indices) = &self.family else { return None };
        let family = Family {
            name: self.name.clone(),
            span: Span::default(),
            indices: indices.iter().map(|(index, _)| index.clone()).collect(),
            bounds: indices.iter().map(|(_, bounds)| *bounds).collect(),
            shape: self.shape,
        };
        let range = family.selected(selection)?;
        let shape = if range.len() == self.shape.len() { self.shape } else { Shape::Scalar };
        Some(RecordedArray {
            name: format!("{}{selection}", self.name),
            role: self.role,
            description: format!("{}{selection}", self.description),
            unit: self.unit.clone(),
            family: Members::Box(Vec::new()),
            shape,
            place: self.place,
            first: self.first + range.start,
            len: range.len(),
            variable: self.variable.map(|first| first + range.start),
        })
    }

    /// Deviations of a group of invariants.
    fn of_group(group: &InvariantGroup) -> RecordedArray {
        let of = stored_name(&group.name, group.kind);
        let name = deviation(&group.name, group.kind);
        let (role, description) = match group.kind {
            InvariantKind::Constraint | InvariantKind::Hidden(_) => {
                ("residual", format!("residual of constraint {of}"))
            }
            _ => ("drift", format!("drift of {of}")),
        };
        RecordedArray::scalar(name, role, description, Place::Deviations)
    }
}

/// Name of an invariant in a store: that of its array of values, or of its constraint.
pub(crate) fn stored_name(name: &str, kind: InvariantKind) -> String {
    match kind {
        InvariantKind::Penalised => "H_penalised".to_string(),
        // That of the energy balance has a space.
        kind => feedback::gain_name(name, kind).replace(' ', "_"),
    }
}

/// Quantities that are computed from a state: H, the integrals, the observables.
fn computed(model: &Model) -> Vec<(RecordedArray, &Functional)> {
    let mut all = Vec::new();
    let energy = |name: &str, description: &str| {
        let (name, description) = (name.to_string(), description.to_string());
        RecordedArray::scalar(name, "hamiltonian", description, Place::Kernel)
    };
    if let (Some(own), Dynamics::Hamiltonian(h, _)) = (model.own_hamiltonian(), &model.dynamics) {
        all.push((energy("H", "Hamiltonian"), own));
        if model.penalty.is_some() {
            all.push((energy("H_penalised", "Hamiltonian with the penalty"), h));
        }
    }
    let integrals = model.integrals.iter().map(|q| (q, "integral", "first integral"));
    let observables = model.observables.iter().map(|q| (q, "observable", "observable"));
    all.extend(integrals.chain(observables).map(|(q, role, words)| {
        let description = format!("{words} {}", q.name);
        let name = stored_name(&q.name, InvariantKind::Integral);
        (RecordedArray::of_quantity(q, name, role, description), &q.functional)
    }));
    all
}

/// Stored arrays of a sample: the variables, H, the integrals, the observables, the multipliers,
/// the residuals and drifts.
pub(crate) struct RecordedArrays {
    pub(crate) arrays: Vec<RecordedArray>,
    pub(crate) kernel: Box<dyn Quantities>,
    pub(crate) outputs: usize,
    /// Number of multipliers after the state of a sample.
    pub(crate) multipliers: usize,
    /// True if a recorded quantity uses the multipliers.
    pub(crate) uses_multipliers: bool,
    /// Labels of units by the names of arrays, those that are not stored among them.
    pub(crate) units: UnitLabels,
}

/// Names that a recording has given so far, and the names asked for.
pub(crate) struct Wanted<'a> {
    all: Vec<String>,
    only: Option<&'a [String]>,
}

impl<'a> Wanted<'a> {
    /// Empty list of names; `only` restricts those that will be stored.
    pub(crate) fn new(only: Option<&'a [String]>) -> Wanted<'a> {
        Wanted { all: Vec::new(), only }
    }

    /// Name under which `name` is stored; `None` if it is not asked for. Of two quantities with one
    /// name (a variable called H), the first keeps it.
    pub(crate) fn name(&mut self, name: String, other: &str) -> Option<String> {
        let name = if self.all.contains(&name) { format!("{name}{other}") } else { name };
        self.all.push(name.clone());
        self.only.is_none_or(|only| only.contains(&name)).then_some(name)
    }

    /// Parts of an array that are asked for.
    fn parts(&mut self, array: &RecordedArray) -> Vec<RecordedArray> {
        let asked = self.only.into_iter().flatten().filter_map(|name| {
            let selection = name.strip_prefix(&array.name)?;
            selection.starts_with(['[', '.']).then(|| array.part(selection))?
        });
        let parts: Vec<RecordedArray> = asked.collect();
        self.all.extend(parts.iter().map(|part| part.name.clone()));
        parts
    }

    /// Refuse a name that was asked for and does not exist.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Some(unknown) = self.only.into_iter().flatten().find(|name| !self.all.contains(name))
        else {
            return Ok(());
        };
        let help = match did_you_mean(unknown, self.all.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None => format!("this run can store: {}", self.all.join(", ")),
        };
        Err(Error::option(format!(
            "{record}: there is no '{unknown}' to store; {help}",
            record = option("record")
        )))
    }
}

impl RecordedArrays {
    /// Recording of a model, or of `only` a part; templated if there is no unrolled `field`. The
    /// state of a sample is followed by `multiplier_count` multipliers: those of the constraints,
    /// or none. `groups` are the invariants whose deviations are stored.
    ///
    /// # Errors
    /// If one of `only` does not exist. They are names of arrays, or of their members or components.
    pub(crate) fn new(
        model: &Model,
        field: Option<&Field>,
        multiplier_count: usize,
        groups: &[InvariantGroup],
        only: Option<&[String]>,
    ) -> Result<RecordedArrays, Error> {
        let (mut arrays, mut wanted) = (Vec::new(), Wanted::new(only));
        let units = unit_labels(model, groups);
        // Of two quantities with one name, the second gets the ending. True if it is stored.
        let mut add = |array: RecordedArray, ending: &str| {
            let before = arrays.len();
            let array = RecordedArray { unit: units.get(&array.name).cloned(), ..array };
            let parts = wanted.parts(&array);
            let name = wanted.name(array.name.clone(), ending);
            arrays.extend(name.map(|name| RecordedArray { name, ..array }));
            arrays.extend(parts);
            arrays.len() > before
        };
        let (mut outputs, mut functionals) = (0, Vec::new());
        for variable in model.phase_variables() {
            let array = RecordedArray::of_variable(model, variable);
            if !(model.reversed && matches!(variable.role, Role::Momentum(_))) {
                add(array, "_value");
                continue;
            }
            // The momenta of the run are the opposite of those of the model.
            let place = array.first..array.first + array.len;
            if add(RecordedArray { place: Place::Kernel, first: outputs, ..array }, "_value") {
                outputs += place.len();
                functionals.push(Cow::Owned(model.written_momentum(place)));
            }
        }
        for (array, functional) in computed(model) {
            if add(RecordedArray { first: outputs, ..array }, "_value") {
                outputs += functional.outputs;
                functionals.push(Cow::Borrowed(functional));
            }
        }
        // Steps that find no multipliers leave them to the field, which knows them in closed form.
        let of_field = multiplier_count == 0;
        let are_known = !of_field || field.is_some_and(|field| !field.multipliers.is_empty());
        let constraints = if are_known { model.stated_constraints() } else { &[][..] };
        for (constraint, first) in multipliers(constraints, model.dimension()) {
            let description = format!("multiplier of constraint {}", constraint.name);
            let name = format!("lambda.{}", constraint.name);
            let array = RecordedArray::of_quantity(constraint, name, "multiplier", description);
            let (place, at) = match of_field {
                true => (Place::Kernel, outputs),
                false => (Place::State, first),
            };
            let len = array.len;
            if add(RecordedArray { place, first: at, ..array }, "_") && of_field {
                outputs += len;
                let entries = Functional::components(first..first + len, constraint.span);
                functionals.push(Cow::Owned(entries));
            }
        }
        let functionals: Vec<&Functional> = functionals.iter().map(|f| &**f).collect();
        let kernel = quantities(model, field, multiplier_count, &functionals, outputs);
        for (first, group) in groups.iter().enumerate() {
            add(RecordedArray { first, ..RecordedArray::of_group(group) }, "_");
        }
        wanted.check()?;
        let depends = |observable: &Quantity| observable.depends & MULTIPLIER != 0;
        let uses_multipliers =
            arrays.iter().any(|array| array.role == "multiplier") || model.observed().any(depends);
        Ok(RecordedArrays {
            arrays,
            kernel,
            outputs,
            multipliers: multiplier_count,
            uses_multipliers,
            units,
        })
    }
}

/// Kernel of functionals with `outputs` outputs in all; templated if a model has no unrolled
/// `field`, or if they are too large beside it and read nothing that only the field knows.
fn quantities(
    model: &Model,
    field: Option<&Field>,
    multiplier_count: usize,
    functionals: &[&Functional],
    outputs: usize,
) -> Box<dyn Quantities> {
    let following = model.following();
    let reads = |range: Range<usize>| {
        let reads = |functional: &&Functional| functional.reads_state_within(&range);
        functionals.iter().any(reads)
    };
    let of_field = reads(following.accelerations..usize::MAX)
        || model.has_constraints_on_momenta() && reads(following.velocities..usize::MAX)
        || multiplier_count == 0 && reads(following.multipliers..following.velocities);
    let Some(field) = field.filter(|_| of_field || policy::unrolls(model, functionals)) else {
        if reads(following.velocities..following.accelerations) {
            return Box::new(WithVelocities::new(model, functionals));
        }
        let (mut pieces, mut first) = (Vec::new(), 0);
        for functional in functionals {
            pieces.extend(RowProgram::values(functional, &|output| Some((first + output) as u32)));
            first += functional.outputs;
        }
        let program = RowProgram::new(model.dimension() + multiplier_count, outputs, pieces);
        return Box::new(compile_rows(&program, &model.parameter_values));
    };
    let mut field = field.clone();
    let given = field.dimension + multiplier_count;
    let followed = FollowingNodes::new(&mut field, model, functionals, given);
    let mut state = |g: &mut Graph, k: usize| followed.node(g, k);
    let unroll = |functional: &&Functional| functional.unroll_over(&mut field.graph, &mut state);
    let nodes: Vec<Node> = functionals.iter().flat_map(unroll).collect();
    field.dimension = given;
    Box::new(Bound::of(&field, &nodes, &model.parameter_values))
}

/// Dimensions of a family's numbers: those of its members, and those of a member of this shape.
pub(crate) fn own_dimensions(family: &Members, shape: Shape) -> Vec<Dimension> {
    let mut dimensions: Vec<Dimension> = match family {
        Members::Box(indices) => {
            let index =
                |(name, (low, high)): &(String, (i64, i64))| Dimension::index(name, *low..=*high);
            indices.iter().map(index).collect()
        }
        Members::List(name, labels) => vec![Dimension::members(name, labels.clone())],
    };
    match shape {
        Shape::Scalar | Shape::Condition => {}
        Shape::Vector(k) => dimensions.push(Dimension::component(k)),
        Shape::Matrix(k, l) => dimensions.extend([Dimension::row(k), Dimension::column(l)]),
    }
    dimensions
}

/// Members of a declared family.
pub(crate) fn members_of_family(family: &Family) -> Members {
    Members::Box(family.indices.iter().cloned().zip(family.bounds.iter().copied()).collect())
}

/// Members of a quantity that is recorded as `name`: a box if its ranges do not depend on each
/// other.
pub(crate) fn members(name: &str, quantity: &Quantity) -> Members {
    if let Some(bounds) = bounds(quantity) {
        return Members::Box(quantity.indices.iter().cloned().zip(bounds).collect());
    }
    let k = quantity.indices.len();
    let label = |i: usize| Label {
        name: quantity.indices[i].clone(),
        values: quantity.member_indices.iter().skip(i).step_by(k).map(|&v| i64::from(v)).collect(),
    };
    Members::List(format!("{name}_member"), (0..k).map(label).collect())
}

/// First and last value of each index of a quantity, if its members are those of the box between
/// them, in order.
fn bounds(quantity: &Quantity) -> Option<Vec<(i64, i64)>> {
    let k = quantity.indices.len();
    let value = |member: usize, i: usize| i64::from(quantity.member_indices[member * k + i]);
    let last = quantity.members.checked_sub(1)?;
    let bounds: Vec<(i64, i64)> = (0..k).map(|i| (value(0, i), value(last, i))).collect();
    let mut length = 1;
    for (i, &(low, high)) in bounds.iter().enumerate().rev() {
        let places = usize::try_from(high - low + 1).ok()?;
        // The last index runs fastest.
        let of = |member: usize| low + (member / length % places.max(1)) as i64;
        if (0..quantity.members).any(|member| value(member, i) != of(member)) {
            return None;
        }
        length *= places;
    }
    (length == quantity.members).then_some(bounds)
}

/// Variables among the arrays of a layout, and the place of each in a state.
pub(crate) fn interpolated(
    recorded: &[RecordedArray],
    mut layout: Layout,
) -> (Layout, Vec<(usize, usize)>) {
    let is_variable =
        |name: &str| recorded.iter().any(|array| array.is_variable() && array.name == name);
    layout.arrays.retain(|array| is_variable(&array.name));
    let place = |array: &RecordedArray| Some((array.variable?, array.len));
    (layout, recorded.iter().filter_map(place).collect())
}

impl RecordedArrays {
    /// Add the recorded arrays to a layout.
    pub(crate) fn add_to(&self, layout: &mut Layout) {
        layout.time_unit = self.units.get(TIME).cloned();
        for array in &self.arrays {
            let own = own_dimensions(&array.family, array.shape).into_iter();
            let dimensions = own.map(|dimension| layout.dimension(dimension)).collect();
            let mut attributes = Map::from_iter([("role".to_string(), array.role.into())]);
            attributes.extend(array.unit.iter().map(|unit| units_attribute(unit)));
            layout.arrays.push(ArrayLayout {
                name: array.name.clone(),
                dimensions,
                description: array.description.clone(),
                attributes,
                once: false,
            });
        }
    }
}

/// Deviations of the groups of invariants at a sample.
pub(crate) struct Deviations<'a> {
    system: &'a dyn System,
    target: Arc<Vec<f64>>,
    deviations: Vec<f64>,
}

impl<'a> Deviations<'a> {
    /// Deviations from the `target` F₀.
    pub(crate) fn new(system: &'a dyn System, target: &Arc<Vec<f64>>) -> Deviations<'a> {
        let deviations = vec![0.0; system.invariants().groups.len()];
        Deviations { system, target: Arc::clone(target), deviations }
    }

    /// Length of the scratch.
    pub(crate) fn work_len(&self) -> usize {
        self.target.len() + self.system.work_len()
    }

    fn find(&mut self, t: f64, x: &[f64], work: &mut [f64]) {
        let x = &x[..self.system.dim()];
        let (values, work) = work.split_at_mut(self.target.len());
        self.system.monitor(t, &self.target, x, values, &mut self.deviations, work);
    }
}

/// State of recording in lanes.
pub(crate) enum LaneRecording {
    /// Not decided yet.
    Unknown,
    /// Not possible.
    No,
    /// Possible.
    Yes(Box<Batch>),
}

/// Observer that writes samples, stores checkpoints and reports progress.
pub(crate) struct Recorder<'a> {
    recorded: &'a RecordedArrays,
    measuring: Option<&'a Measuring>,
    scratch: MeasuringScratch,
    /// Multipliers that are reported, if samples do not contain these.
    multipliers: Option<&'a SampleMultipliers>,
    /// A sample with its multipliers.
    extended: Vec<f64>,
    output: &'a mut Output,
    watch: &'a mut (dyn FnMut(&Progress) -> Control + Send),
    plan: &'a Plan,
    groups: &'a [InvariantGroup],
    deviations: Deviations<'a>,
    system: &'a CompiledSystem,
    lanes: LaneRecording,
    /// Steps for an interpolant, if one is wanted.
    pieces: Option<&'a mut Pieces>,
    values: Vec<f64>,
    /// Scratch of the recorded quantities and of the deviations, one after the other, and its least
    /// length.
    work: Vec<f64>,
    work_len: usize,
    /// Number of samples in which each array holds a number that is not finite.
    pub(crate) undefined: Vec<u64>,
    /// Time of the last checkpoint, and the interval to the next.
    stored: Instant,
    interval: Duration,
    shown: Instant,
    steps: u64,
    /// Steps between two checks of the clock.
    look_every: u64,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(
        (plan, groups, system): (&'a Plan, &'a [InvariantGroup], &'a CompiledSystem),
        (recorded, measuring, multipliers): (
            &'a RecordedArrays,
            Option<&'a Measuring>,
            Option<&'a SampleMultipliers>,
        ),
        deviations: Deviations<'a>,
        output: &'a mut Output,
        pieces: Option<&'a mut Pieces>,
        watch: &'a mut (dyn FnMut(&Progress) -> Control + Send),
    ) -> Recorder<'a> {
        let now = Instant::now();
        Recorder {
            recorded,
            measuring,
            scratch: MeasuringScratch::default(),
            multipliers,
            extended: Vec::new(),
            output,
            watch,
            plan,
            groups,
            system,
            lanes: LaneRecording::Unknown,
            pieces,
            values: vec![0.0; recorded.outputs],
            work: Vec::new(),
            work_len: recorded.kernel.work_len().max(deviations.work_len()),
            deviations,
            undefined: vec![0; recorded.arrays.len()],
            stored: now,
            interval: CHECKPOINT_INTERVAL,
            shown: now,
            steps: 0,
            look_every: look_every(),
        }
    }
}

impl Observer for Recorder<'_> {
    type Error = StoreError;

    fn sample(&mut self, index: usize, t: f64, x: &[f64]) -> Result<(), StoreError> {
        if self.measuring.is_some_and(|measuring| measuring.outputs.sample(index).is_none()) {
            return Ok(());
        }
        if self.work.len() < self.work_len {
            self.work.resize(self.work_len, 0.0);
        }
        if self.recorded.arrays.iter().any(|array| array.place == Place::Deviations) {
            self.deviations.find(t, x, &mut self.work);
        }
        let x = with_multipliers(self.multipliers, t, x, &mut self.extended);
        self.recorded.kernel.run(t, x, &mut self.values, &mut self.work);
        let row = |array: &RecordedArray| -> &[f64] {
            let numbers = match array.place {
                Place::State => x,
                Place::Kernel => &self.values,
                Place::Deviations => &self.deviations.deviations,
            };
            &numbers[array.first..array.first + array.len]
        };
        let rows: Vec<&[f64]> = self.recorded.arrays.iter().map(row).collect();
        for (count, row) in self.undefined.iter_mut().zip(&rows) {
            *count += u64::from(row.iter().any(|v| !v.is_finite()));
        }
        self.output.append(&rows)
    }

    fn samples(&mut self, index: usize, t: &[f64], x: &[f64]) -> Result<(), (usize, StoreError)> {
        let width = x.len() / t.len();
        if matches!(self.lanes, LaneRecording::Unknown)
            && self.measuring.is_none()
            && t.len() >= FEWEST_IN_LANES
        {
            let batch = Batch::new(
                self.recorded,
                (self.system, &self.deviations.target),
                width,
                self.multipliers,
            );
            self.lanes =
                batch.map_or(LaneRecording::No, |batch| LaneRecording::Yes(Box::new(batch)));
        }
        let LaneRecording::Yes(batch) = &mut self.lanes else {
            for (k, (&t, x)) in t.iter().zip(x.chunks_exact(width.max(1))).enumerate() {
                self.sample(index + k, t, x).map_err(|error| (k, error))?;
            }
            return Ok(());
        };
        let rows = batch.rows(self.recorded, t, x);
        for ((undefined, rows), array) in
            self.undefined.iter_mut().zip(rows).zip(&self.recorded.arrays)
        {
            if !all_finite(rows) {
                let bad = |row: &&[f64]| !all_finite(row);
                *undefined += rows.chunks(array.len.max(1)).filter(bad).count() as u64;
            }
        }
        self.output.append_many(t.len(), rows)
    }

    fn accumulate(&mut self, index: usize, t: f64, x: &[f64], averages: &mut Vec<Averages>) {
        if let Some(measuring) =
            self.measuring.filter(|measuring| measuring.outputs.is_measured(index))
        {
            let x = with_multipliers(self.multipliers, t, x, &mut self.extended);
            measuring.take(&*measuring.kernel, (index, t, x), averages, &mut self.scratch);
        }
    }

    fn wants_pieces(&self) -> bool {
        self.pieces.is_some()
    }

    fn piece(
        &mut self,
        step: (f64, f64),
        target: &Arc<Vec<f64>>,
        states: &[f64],
    ) -> Result<(), StoreError> {
        if let Some(pieces) = &mut self.pieces {
            pieces.push(step, target, states);
        }
        Ok(())
    }

    fn rewind(&mut self, state: &StepState) -> Result<(), StoreError> {
        if let Some(pieces) = &mut self.pieces {
            pieces.rewind(state.t);
        }
        let before = |measuring: &Measuring| measuring.outputs.samples_before(state.next_sample);
        let rows = self.measuring.map_or(state.next_sample, before);
        self.output.rewind(rows, state)
    }

    fn scratch(&mut self) -> Option<&mut Vec<f64>> {
        Some(&mut self.work)
    }

    fn wants_multipliers(&self) -> bool {
        true
    }

    fn step(&mut self, state: &StepState) -> Result<Control, StoreError> {
        self.steps += 1;
        if !self.steps.is_multiple_of(self.look_every) && state.x.len() < 4096 {
            return Ok(Control::Continue);
        }
        if self.output.hold(state, || (self.watch)(&progress(self.plan, self.groups, state)))?
            == Control::Stop
        {
            return Ok(Control::Stop);
        }
        let now = Instant::now();
        if now - self.stored >= self.interval {
            self.output.checkpoint(state)?;
            self.stored = Instant::now();
            self.interval = CHECKPOINT_INTERVAL.max((self.stored - now) * SHARE_OF_CHECKPOINTS);
        }
        if now - self.shown < SHOW_INTERVAL {
            return Ok(Control::Continue);
        }
        self.shown = now;
        Ok((self.watch)(&progress(self.plan, self.groups, state)))
    }
}

/// Progress of a run in `state`.
pub(crate) fn progress(plan: &Plan, groups: &[InvariantGroup], state: &StepState) -> Progress {
    let drift = groups
        .iter()
        .zip(&state.drift)
        .map(|(g, d)| (feedback::gain_name(&g.name, g.kind), d.now))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let of = match &plan.stepping {
        Stepping::Fixed(fixed) => Some(fixed.count()),
        Stepping::Adaptive(_) => None,
    };
    let [from, t, until] = [plan.t0, state.t, plan.t_end()].map(|t| plan.clock(t));
    Progress { from, t, until, steps: state.step, of, drift }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{RunOptions, Settings, StepSize};
    use crate::problem::Problem;
    use crate::simulation::prepare;
    use std::collections::BTreeMap;

    const ROD: &str = "coordinate q : R^3 = (0, 1, 0)\nmomentum p of q = (1, 0, -1)\n\
        hamiltonian dot(p, p)/2 + q.z\nconstraint rod : dot(q, q) = 1\nintegral J = q.x*p.y - q.y*p.x";

    const CHAIN: &str = "size n = 9000\ncoordinate r[i in 1..n] : R^2 = (i, -2*i)\nmomentum p of r\n\
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)\nconstraint anchor : dot(r[1], r[1]) = 5\n\
        constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 5";

    /// Observer that accepts `room` samples, and then fails.
    struct Limited {
        room: usize,
        samples: Vec<Vec<f64>>,
    }

    impl Observer for Limited {
        type Error = ();

        fn sample(&mut self, index: usize, _t: f64, x: &[f64]) -> Result<(), ()> {
            if self.samples.len() == self.room {
                return Err(());
            }
            assert_eq!(index, self.samples.len(), "samples come in order, each once");
            self.samples.push(x.to_vec());
            Ok(())
        }

        fn wants_multipliers(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_state_follows_the_samples_that_were_taken_of_a_block() {
        // The state of a long chain is too large to be kept, and its blocks end at each sample.
        let cases = [(ROD, "rattle", 3.0), (ROD, "corrected:rk4", 3.0), (CHAIN, "rattle", 0.27)];
        for (model, method, until) in cases {
            let problem =
                Problem::from_text("model", model, &BTreeMap::new(), &Settings::default())
                    .expect("a model");
            let (method, step) = (method.parse().unwrap(), StepSize::Fixed(0.01));
            let options =
                RunOptions { method, step, until, every: Some(0.03), ..RunOptions::default() };
            let simulation = prepare(problem, options).unwrap_or_else(|error| panic!("{error}"));
            let mut end = simulation.state().clone();
            let mut all = Limited { room: usize::MAX, samples: Vec::new() };
            assert!(simulation.run_unstored(&simulation.plan, &mut end, &mut all).is_ok());
            let last = all.samples.last().expect("a sample at the end");
            let (x, multipliers) = last.split_at(end.x.len());
            assert!(x == end.x && multipliers.len() == simulation.recorded.multipliers);
            assert!(multipliers.iter().all(|lambda| lambda.is_finite() && *lambda != 0.0));
            let rooms = [0, 1, 17, 100].into_iter().filter(|room| *room <= all.samples.len());
            for room in rooms {
                let mut state = simulation.state().clone();
                let mut some = Limited { room, samples: Vec::new() };
                assert!(simulation.run_unstored(&simulation.plan, &mut state, &mut some).is_err());
                assert_eq!(state.next_sample, room, "{}", simulation.plan.method);
                assert_eq!(
                    state.x.len(),
                    simulation.state().x.len(),
                    "multipliers are not of the state"
                );
                some.room = usize::MAX;
                assert!(simulation.run_unstored(&simulation.plan, &mut state, &mut some).is_ok());
                assert_eq!(some.samples, all.samples);
                assert_eq!((state.x, state.cost), (end.x.clone(), end.cost.clone()));
            }
        }
    }
}
