//! Summary of a run: the drift of every invariant, the cost, the folder.

use crate::error::ErrorFacts;
use crate::events::{EventTable, entries};
use crate::measure::Table;
use crate::options::MethodTrial;
use crate::orbit::OrbitError;
pub use crate::recording::UnitLabels;
use crate::recording::{TIME, VariableLayout, deviation};
pub use crate::serial::NumberArray;
use crate::serial::{self, Nested, number_or_nan};
use crate::store::Status;
use holonome_figures::numbers::{number, small};
use holonome_integrate::state::{Cost, StepState};
use holonome_model::treatment::{InvariantGroup, InvariantKind, feedback, hidden_name};
use indexmap::IndexMap;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use std::ops::{Deref, Not};
use std::path::PathBuf;

/// Cost of a field evaluation in gradients (Chang, Perlmutter, Vankerschaver 2022, Fig. 6: a field
/// with feedback consists of four gradients).
const GRADIENTS_OF_A_FIELD: u64 = 4;

/// Cost of second derivatives, and of a linear system with its matrix, in gradients. The paper does
/// not count them; on the small models of this repository a solve takes 4 to 5 times as long as a
/// gradient, second derivatives more.
const GRADIENTS_OF_A_HESSIAN: u64 = 4;
const GRADIENTS_OF_A_SOLVE: u64 = 4;

/// Description of the units of a budget.
pub const COUNTED: &str =
    "4 for a field, a Hessian or a linear solve, 1 for a gradient or a Newton iteration";

/// Cost of a run or an ensemble: counts of evaluations, and time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunCost {
    /// Evaluations of the complete vector field, those of rejected steps and dense output included.
    pub field: u64,
    /// Evaluations of forces.
    pub gradient: u64,
    /// Evaluations of second derivatives of H, in Newton matrices.
    pub hessian: u64,
    /// Linear systems solved.
    pub linear_solves: u64,
    /// Newton iterations.
    pub newton_iterations: u64,
    /// Rejected steps.
    pub rejected: u64,
    /// Steps that were handed over to another method, with its evaluations in the counts above.
    #[serde(skip_serializing_if = "is_none")]
    pub handed_over: u64,
    /// All this in gradients (see [`RunCost::in_gradients`]), in comparisons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Seconds in the stepping loop, storing included.
    pub wall_seconds: f64,
}

impl RunCost {
    /// Cost of a run that took these seconds.
    pub(crate) fn new(cost: &Cost, wall_seconds: f64) -> RunCost {
        RunCost {
            field: cost.field,
            gradient: cost.gradient,
            hessian: cost.hessian,
            linear_solves: cost.linear_solves,
            newton_iterations: cost.newton_iterations,
            rejected: cost.rejected,
            handed_over: cost.handed_over,
            budget: None,
            wall_seconds,
        }
    }

    /// Cost in the units of the 2022 paper, gradients, including Hessians, linear solves and Newton
    /// iterations, which the paper leaves out; see [`COUNTED`].
    pub fn in_gradients(&self) -> u64 {
        GRADIENTS_OF_A_FIELD * self.field
            + GRADIENTS_OF_A_HESSIAN * self.hessian
            + GRADIENTS_OF_A_SOLVE * self.linear_solves
            + self.gradient
            + self.newton_iterations
    }

    /// The counts, with their names in JSON and in words.
    pub fn counts(&self) -> [(&'static str, &'static str, u64); 6] {
        [
            ("field", "field evaluations", self.field),
            ("gradient", "force evaluations", self.gradient),
            ("hessian", "Hessians", self.hessian),
            ("linear_solves", "linear solves", self.linear_solves),
            ("newton_iterations", "Newton iterations", self.newton_iterations),
            ("rejected", "rejected steps", self.rejected),
        ]
    }
}

/// True for 0.
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Drift of one group of invariants.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Drift {
    /// Name given by the user.
    #[serde(skip)]
    pub name: String,
    /// Kind of the invariant.
    #[serde(skip, default = "unknown_kind")]
    pub kind: InvariantKind,
    /// Value at the start; `None` for constraints, whose value should be 0, and for an ensemble.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<NumberArray>,
    /// Deviation at the end.
    #[serde(rename = "final", deserialize_with = "number_or_nan")]
    pub last: f64,
    /// Largest deviation over all accepted steps and stored samples.
    #[serde(deserialize_with = "number_or_nan")]
    pub max: f64,
    /// Both deviations relative to the scale of the terms that cancel in the quantity (see
    /// [`holonome_integrate::terms`]); `None` if that is not known.
    pub relative: Option<Relative>,
    /// True for a claim that the motion does not keep, so that it is not held.
    #[serde(rename = "held", with = "negated", skip_serializing_if = "Not::not", default)]
    pub varying: bool,
    /// Loss of an energy or an integral: its deviation over its content at that time (see
    /// [`holonome_integrate::terms`]), at the end and at most.
    #[serde(skip)]
    pub loss: Relative,
}

/// A drift relative to the scale of the terms that cancel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Relative {
    /// Relative deviation at the end.
    #[serde(rename = "final", deserialize_with = "number_or_nan")]
    pub last: f64,
    /// Largest relative deviation.
    #[serde(deserialize_with = "number_or_nan")]
    pub max: f64,
}

impl Relative {
    /// Deviations at the end and at most, relative to `terms`.
    pub(crate) fn new(last: f64, max: f64, terms: f64) -> Option<Relative> {
        if max == 0.0 {
            return Some(Relative { last: 0.0, max: 0.0 });
        }
        (terms > 0.0).then(|| Relative { last: last / terms, max: max / terms })
    }
}

/// Kind of a drift that is being read; [`Drifts`] sets the true one.
fn unknown_kind() -> InvariantKind {
    InvariantKind::Integral
}

/// A truth value in JSON as its opposite.
mod negated {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(value: &bool, to: S) -> Result<S::Ok, S::Error> {
        (!value).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        bool::deserialize(from).map(|value| !value)
    }
}

/// Drift of every invariant, in the model's order. In JSON they stand by kind and name.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(from = "DriftsByKind", into = "DriftsByKind")]
pub struct Drifts {
    /// The drifts.
    pub all: Vec<Drift>,
    /// True if the model is Hamiltonian.
    pub hamiltonian: bool,
}

impl Deref for Drifts {
    type Target = [Drift];

    fn deref(&self) -> &[Drift] {
        &self.all
    }
}

impl<'a> IntoIterator for &'a Drifts {
    type Item = &'a Drift;
    type IntoIter = std::slice::Iter<'a, Drift>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct DriftsByKind {
    #[serde(skip_serializing_if = "Option::is_none")]
    hamiltonian: Option<Drift>,
    #[serde(skip_serializing_if = "Option::is_none")]
    penalised_hamiltonian: Option<Drift>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_energy: Option<Drift>,
    constraints: IndexMap<String, Drift>,
    /// A state model has no hidden constraints.
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<IndexMap<String, Drift>>,
    /// Hidden constraints of higher orders by `hidden2`, `hidden3`, …
    #[serde(flatten)]
    further: IndexMap<String, IndexMap<String, Drift>>,
    integrals: IndexMap<String, Drift>,
}

impl From<Drifts> for DriftsByKind {
    fn from(drifts: Drifts) -> DriftsByKind {
        let hidden = drifts.hamiltonian.then(IndexMap::new);
        let mut by = DriftsByKind { hidden, ..DriftsByKind::default() };
        for drift in drifts.all {
            let name = drift.name.clone();
            match drift.kind {
                InvariantKind::Hamiltonian => by.hamiltonian = Some(drift),
                InvariantKind::Penalised => by.penalised_hamiltonian = Some(drift),
                InvariantKind::ModifiedEnergy => by.modified_energy = Some(drift),
                InvariantKind::Constraint => drop(by.constraints.insert(name, drift)),
                InvariantKind::Hidden(1) => {
                    by.hidden.get_or_insert_default().insert(name, drift);
                }
                InvariantKind::Hidden(order) => {
                    let key = format!("hidden{order}");
                    by.further.entry(key).or_default().insert(name, drift);
                }
                InvariantKind::Integral => drop(by.integrals.insert(name, drift)),
            }
        }
        by
    }
}

impl From<DriftsByKind> for Drifts {
    fn from(by: DriftsByKind) -> Drifts {
        let hamiltonian = by.hidden.is_some();
        let energies = [
            (InvariantKind::Hamiltonian, "H", by.hamiltonian),
            (InvariantKind::Penalised, "H.penalised", by.penalised_hamiltonian),
            (InvariantKind::ModifiedEnergy, "modified_energy", by.modified_energy),
        ];
        let energies = energies.into_iter().filter_map(|(kind, name, drift)| {
            Some(Drift { kind, name: name.to_string(), ..drift? })
        });
        let groups = [
            (InvariantKind::Constraint, by.constraints),
            (InvariantKind::Hidden(1), by.hidden.unwrap_or_default()),
        ];
        let further = by.further.into_iter().filter_map(|(key, group)| {
            Some((InvariantKind::Hidden(key.strip_prefix("hidden")?.parse().ok()?), group))
        });
        let integrals = (InvariantKind::Integral, by.integrals);
        let groups = groups.into_iter().chain(further).chain([integrals]);
        let others = groups.flat_map(|(kind, group)| {
            group.into_iter().map(move |(name, drift)| Drift { kind, name, ..drift })
        });
        Drifts { all: energies.chain(others).collect(), hamiltonian }
    }
}

/// Scale of the terms of group `k` in a run of length `span`; `terms` has the measured scales. A
/// hidden constraint is a rate, of a higher order the rate of a rate: its scale is at least that of
/// one which changes its constraint by the constraint's terms within the run, because at rest its
/// own terms are rounding.
pub(crate) fn size_of_terms(groups: &[InvariantGroup], terms: &[f64], k: usize, span: f64) -> f64 {
    let own = terms.get(k).copied().unwrap_or(0.0);
    let InvariantKind::Hidden(order) = groups[k].kind else { return own };
    let is_its = |group: &InvariantGroup| {
        group.kind == InvariantKind::Constraint && group.name == groups[k].name
    };
    let constraint = groups.iter().position(is_its).and_then(|constraint| terms.get(constraint));
    let rate = constraint.map_or(0.0, |terms| terms / span.powi(order as i32));
    if rate.is_finite() { own.max(rate) } else { own }
}

/// Fraction of a quantity's terms beyond which a drift counts as large as the quantity itself.
const LARGE: f64 = 0.1;

/// Fraction of the terms from which on an energy's drift above half its value counts as large, too.
/// Below this fraction the value may be near 0 by chance: near a centre of force the terms are many
/// times as large as their sum.
const NOTABLE: f64 = 0.01;

/// Loss of an energy or an integral from which on it counts as lost. Energies of coarse steps that
/// keep the structure of a motion swing by less.
const LOST: f64 = 0.3;

/// Table of drifts with their labels: values at the start, deviations, relative deviations. `first` is
/// the head of the labels; of arrays with more than `most` entries only their number is shown.
pub fn drift_rows(first: &str, drifts: &[(String, &Drift)], most: usize) -> Vec<Vec<String>> {
    let head = [first, "initial", "final drift", "relative", "largest", "relative"];
    let row = |(label, drift): &(String, &Drift)| {
        let initial = drift.initial.as_ref().map(|initial| initial.text(most, number));
        let relative = [drift.relative.map(|of| of.last), drift.relative.map(|of| of.max)];
        let [last, max] = relative.map(|of| of.map_or(String::new(), small));
        vec![
            label.clone(),
            initial.unwrap_or_default(),
            small(drift.last),
            last,
            small(drift.max),
            max,
        ]
    };
    let mut rows: Vec<Vec<String>> = vec![head.map(String::from).to_vec()];
    rows.extend(drifts.iter().map(row));
    // An ensemble has no one initial value.
    if rows[1..].iter().all(|row| row[1].is_empty()) {
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    rows
}

/// The time `t`, with the label of its unit behind it.
pub fn time_with_unit(t: &str, units: &UnitLabels) -> String {
    units.get(TIME).map_or(t.to_string(), |unit| format!("{t} {unit}"))
}

impl Drift {
    /// [`Drift::label`] with the unit of the invariant, if that is among these.
    pub fn label_with_unit(&self, hamiltonian: &str, units: &UnitLabels) -> String {
        let label = self.label(hamiltonian);
        let unit = units.get(&deviation(&self.name, self.kind));
        unit.map_or(label.clone(), |unit| format!("{label} in {unit}"))
    }

    /// Name in words, with a word for H.
    pub fn label(&self, hamiltonian: &str) -> String {
        let word = match self.kind {
            InvariantKind::Constraint => "constraint ",
            InvariantKind::Hidden(_) => "hidden constraint ",
            InvariantKind::Hamiltonian => hamiltonian,
            InvariantKind::Penalised => "H with the penalty",
            InvariantKind::ModifiedEnergy => "modified energy",
            InvariantKind::Integral => "integral ",
        };
        let name = match self.kind {
            InvariantKind::Hidden(order @ 2..) => &hidden_name(&self.name, order),
            _ if word.ends_with(' ') => &self.name,
            _ => "",
        };
        let held = if self.varying { " (varies, not held)" } else { "" };
        format!("{word}{name}{held}")
    }

    /// Part of itself or of its terms that the quantity has lost, if that is a good part: the
    /// motion is then not that of the model. If the run starts away from its targets
    /// (`off_target`), only the end counts, as of constraints.
    pub(crate) fn lost(&self, off_target: bool) -> Option<f64> {
        let of_end =
            off_target || matches!(self.kind, InvariantKind::Constraint | InvariantKind::Hidden(_));
        let at = |relative: Relative| if of_end { relative.last } else { relative.max };
        // A claim that is known to fail has a warning already.
        if self.kind == InvariantKind::ModifiedEnergy
            || self.kind == InvariantKind::Integral && self.varying
        {
            return None;
        }
        let drift = if of_end { self.last } else { self.max };
        // A value near 0 is nothing special for an integral.
        let energy = self.kind != InvariantKind::Integral;
        let least = match self.initial.as_ref().and_then(NumberArray::number) {
            Some(initial) if energy && drift > 0.5 * initial.abs() => NOTABLE,
            _ => LARGE,
        };
        let (relative, loss) = (self.relative.map_or(0.0, at), at(self.loss));
        (relative > least || loss > LOST).then(|| relative.max(loss))
    }
}

/// Warnings about energies and integrals that drift by their own size, and about constraints that
/// are violated by theirs. If the run starts away from its targets, only the end counts.
pub(crate) fn large_drifts(drift: &[Drift], off_target: bool) -> Vec<String> {
    let large = |d: &Drift| {
        let size = d.lost(off_target)?;
        let of_end =
            off_target || matches!(d.kind, InvariantKind::Constraint | InvariantKind::Hidden(_));
        let what = match d.kind {
            InvariantKind::Hamiltonian => "the energy drifts".to_string(),
            InvariantKind::Penalised => "the energy with the penalty drifts".to_string(),
            InvariantKind::Constraint => format!("constraint '{}' is violated", d.name),
            InvariantKind::Hidden(1) => {
                format!("the hidden constraint of '{}' is violated", d.name)
            }
            InvariantKind::Hidden(order) => {
                format!("the hidden constraint '{}' is violated", hidden_name(&d.name, order))
            }
            InvariantKind::ModifiedEnergy | InvariantKind::Integral => {
                format!("integral '{}' drifts", d.name)
            }
        };
        let drift = if of_end { d.last } else { d.max };
        let part = match size {
            size if size < 10.0 => format!("{:.0} %", 100.0 * size),
            size => format!("{size:.1e} times the size"),
        };
        let how = format!("{what} by {drift:.1e}, {part} of the terms that it is the sum of");
        let remedy = match d.kind {
            InvariantKind::Integral => {
                "it is not constant, or the motion is not that of the model; a shorter step or a smaller tolerance shows which"
            }
            _ => "the motion is not that of the model; take a shorter step or a smaller tolerance",
        };
        Some(format!("{how}: {remedy}"))
    };
    drift.iter().filter_map(large).collect()
}

/// Names of the quantities that have lost a good part of themselves.
pub(crate) fn lost(drift: &[Drift], off_target: bool) -> Vec<String> {
    let name = |d: &Drift| match d.kind {
        InvariantKind::Hidden(1) => format!("hidden constraint of {}", d.name),
        InvariantKind::Hidden(order) => hidden_name(&d.name, order),
        _ => d.name.clone(),
    };
    drift.iter().filter(|d| d.lost(off_target).is_some()).map(name).collect()
}

/// State at the end of a run. In JSON it is written by variables, each with its indices, without a
/// tree of values, as it may have millions of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct FinalState {
    variables: Vec<VariableLayout>,
    x: Vec<f64>,
    /// True if it is `null` in JSON.
    left_out: bool,
}

impl FinalState {
    pub(crate) fn new(variables: Vec<VariableLayout>, x: Vec<f64>) -> FinalState {
        FinalState { variables, x, left_out: false }
    }

    /// Numbers of all variables, in the model's order.
    pub fn numbers(&self) -> &[f64] {
        &self.x
    }

    /// Names of the variables, in the model's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|variable| variable.name.as_str())
    }
}

impl Serialize for FinalState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.left_out {
            return serializer.serialize_none();
        }
        let mut map = serializer.serialize_map(Some(self.variables.len()))?;
        for variable in &self.variables {
            let numbers = &self.x[variable.first..variable.first + variable.len()];
            map.serialize_entry(
                &variable.name,
                &Nested { numbers, dimensions: &variable.dimensions() },
            )?;
        }
        map.end()
    }
}

/// Penalty of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunPenalty {
    /// Strength ω.
    pub omega: f64,
    /// True if the run started on the slow manifold.
    pub slow_manifold: bool,
}

/// h λmax/r along a run with a gain: a step is stable if it is below 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stability {
    /// Maximum.
    pub max: f64,
    /// Mean.
    pub mean: f64,
}

/// Result of a run. In JSON, entries that only some runs have come last.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The model's name.
    pub model: String,
    /// The method's name.
    pub method: String,
    /// Time that it reached.
    pub t: f64,
    /// Accepted steps.
    pub steps: u64,
    /// Final state.
    pub state: FinalState,
    /// Count of numbers of the state if it is left out in JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_size: Option<u64>,
    /// Drift of every invariant.
    pub drift: Drifts,
    /// Counts of evaluations, and time in the stepping loop.
    pub cost: RunCost,
    /// Labels of units by the names of arrays, `t` for the time; empty if the model names none.
    #[serde(skip_serializing_if = "UnitLabels::is_empty")]
    pub units: UnitLabels,
    /// Folder of the run; `None` if it is in memory.
    #[serde(serialize_with = "serial::path", skip_serializing_if = "Option::is_none")]
    pub out: Option<PathBuf>,
    /// Quantities whose arrays have other names in the folder, with these.
    #[serde(skip)]
    pub renamed: Vec<(String, String)>,
    /// True if it is in a heat bath, which keeps neither energy nor integrals.
    #[serde(skip)]
    pub heated: bool,
    /// Names of what has lost a good part of itself ("H", integrals, constraints): the motion is
    /// not the model's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Results of the model's measures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Table>,
    /// Events of the model, one table for each statement.
    #[serde(serialize_with = "entries", skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventTable>,
    /// Name of the event that ended the run, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// Rate κ of the Gauss–Newton form, or the gains, as printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<String>,
    /// Trial that has chosen the method, if nobody did and the run is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<MethodTrial>,
    /// Penalty, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty: Option<RunPenalty>,
    /// Stability of the steps, if there is a gain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stability: Option<Stability>,
    /// Error of the orbit, if requested.
    #[serde(rename = "orbit_error", skip_serializing_if = "Option::is_none")]
    pub error: Option<OrbitError>,
    /// True if it was stopped before its end.
    #[serde(skip_serializing_if = "Not::not")]
    pub interrupted: bool,
    /// Warnings for the user: about the model, the options, the results.
    pub warnings: Vec<String>,
}

/// What a run's or an ensemble's end tells in the attributes of its folder: texts and numbers by
/// name, which every file format takes. Numbers that are not finite are left out.
pub(crate) struct Ending<'a> {
    pub status: Status,
    pub t: f64,
    pub steps: u64,
    pub drift: &'a [Drift],
    pub error: Option<&'a OrbitError>,
    pub cost: &'a RunCost,
    pub warnings: &'a [String],
}

impl Ending<'_> {
    /// The attributes.
    pub fn attributes(&self) -> Map<String, Value> {
        let mut all = Map::new();
        let mut number = |name: String, number: f64| {
            if number.is_finite() {
                all.insert(name, number.into());
            }
        };
        number("t".to_string(), self.t);
        for drift in self.drift {
            let name = feedback::gain_name(&drift.name, drift.kind);
            number(format!("drift.{name}.final"), drift.last);
            number(format!("drift.{name}.largest"), drift.max);
            if let Some(relative) = drift.relative {
                number(format!("drift.{name}.relative"), relative.max);
            }
        }
        for (name, error) in self.error.into_iter().flat_map(|error| &error.families) {
            number(format!("error.{name}.final"), error.last);
            number(format!("error.{name}.largest"), error.max);
        }
        number("cost.seconds".to_string(), self.cost.wall_seconds);
        all.insert("cost.steps".to_string(), self.steps.into());
        all.extend(
            self.cost.counts().map(|(name, _, count)| (format!("cost.{name}"), count.into())),
        );
        if !self.warnings.is_empty() {
            all.insert("warnings".to_string(), self.warnings.join("\n").into());
        }
        let status = serde_json::to_value(self.status).expect("a status is a word");
        all.insert("status".to_string(), status);
        all
    }
}

/// Largest count of numbers in a state that is shown unasked.
pub const LARGEST_SHOWN: u64 = 1000;

/// Leave the state out of the JSON of a run's stored summary, like
/// [`Summary::leave_out_large_state`].
pub fn without_large_state(summary: &mut Value) -> Option<u64> {
    fn numbers(value: &Value) -> u64 {
        match value {
            Value::Array(list) => list.iter().map(numbers).sum(),
            Value::Object(map) => map.values().map(numbers).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        }
    }
    let object = summary.as_object_mut()?;
    let place = object.keys().position(|key| key == "state")?;
    let state = object.get_mut("state")?;
    let size = numbers(state);
    if size <= LARGEST_SHOWN {
        return None;
    }
    *state = Value::Null;
    object.shift_insert(place + 1, "state_size".to_string(), size.into());
    Some(size)
}

/// Stored result of a run or an ensemble, by whatever version: entries that it lacks are `None`, or
/// empty.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StoredSummary {
    /// Time at which it ended.
    pub t: Option<f64>,
    /// Number of accepted steps.
    pub steps: Option<u64>,
    /// Number of trajectories of an ensemble.
    pub trajectories: u64,
    /// Number of trajectories that failed.
    pub failed: u64,
    /// Final state of a run, by variables.
    pub state: IndexMap<String, NumberArray>,
    /// Drift of every invariant.
    pub drift: Option<Drifts>,
    /// Labels of units by the names of arrays.
    pub units: UnitLabels,
    /// Results of the model's measures.
    pub measures: Vec<Table>,
    /// Counts of evaluations, and time.
    pub cost: Option<RunCost>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// Error of a run that failed.
    pub error: Option<ErrorFacts>,
}

impl From<&Value> for StoredSummary {
    /// Summary from the JSON that is stored; empty if it is that of no run.
    fn from(json: &Value) -> StoredSummary {
        StoredSummary::deserialize(json).unwrap_or_default()
    }
}

/// True if a group is one of the claims that the motion does not keep.
pub(crate) fn is_varying(group: &InvariantGroup, varying: &[String]) -> bool {
    group.monitored_only
        && matches!(group.kind, InvariantKind::Constraint | InvariantKind::Integral)
        && varying.contains(&group.name)
}

impl Summary {
    /// Leave the state out of the JSON, if it has more than [`LARGEST_SHOWN`] numbers. The key
    /// `state` is then `null`, and `state_size` follows. Returns the count of numbers that are left
    /// out.
    pub fn leave_out_large_state(&mut self) -> Option<u64> {
        let size = self.state.x.len() as u64;
        self.state.left_out = size > LARGEST_SHOWN;
        self.state_size = self.state.left_out.then_some(size);
        self.state_size
    }

    /// Drifts of a run of length `span`; `varying` names the claims known before it to vary.
    pub(crate) fn drift_of(
        groups: &[InvariantGroup],
        varying: &[String],
        initial: &[Option<NumberArray>],
        (state, span): (&StepState, f64),
    ) -> Vec<Drift> {
        // All energies share the scale of their terms: a modified energy has no formula of its own,
        // and the energy to which a penalty is added is monitored without its gradient.
        let is_energy = |g: &InvariantGroup| {
            matches!(
                g.kind,
                InvariantKind::Hamiltonian
                    | InvariantKind::Penalised
                    | InvariantKind::ModifiedEnergy
            )
        };
        let energies =
            groups.iter().zip(&state.terms).filter(|(g, _)| is_energy(g)).map(|(_, &terms)| terms);
        let energy = energies.fold(0.0, f64::max);
        let terms = |k: usize| {
            if is_energy(&groups[k]) {
                energy
            } else {
                size_of_terms(groups, &state.terms, k, span)
            }
        };
        let all = groups.iter().zip(&state.drift).zip(initial).enumerate();
        all.map(|(k, ((g, d), initial))| {
            // If a run is stopped between blocks of steps, the next block would have counted the
            // present state.
            let (last, max) = (d.now, if d.max.is_nan() { d.max } else { d.max.max(d.now) });
            Drift {
                name: g.name.clone(),
                kind: g.kind,
                varying: is_varying(g, varying) || state.has_failed(k),
                initial: initial.clone(),
                last,
                max,
                relative: Relative::new(last, max, terms(k)),
                loss: state.losses.get(k).map_or(Relative::default(), |loss| Relative {
                    last: loss.last(),
                    max: loss.max(),
                }),
            }
        })
        .collect()
    }
}
