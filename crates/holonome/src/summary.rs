//! Summary of a run: the drift of every invariant, the cost, the folder.

use crate::measure::Table;
use crate::orbit::OrbitError;
pub use crate::recording::Initial;
use crate::recording::{Nested, VariableLayout};
pub use holonome_integrate::state::Cost;
use holonome_integrate::state::StepState;
use holonome_model::treatment::{InvariantGroup, InvariantKind};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Cost of a field evaluation in gradients (Chang, Perlmutter, Vankerschaver 2022, Fig. 6: a field
/// with feedback consists of four gradients).
const GRADIENTS_OF_A_FIELD: u64 = 4;

/// Cost of second derivatives, and of a linear system with its matrix, in gradients. The paper does
/// not count them; on the small models of this repository a solve takes 4 to 5 times as long as a
/// gradient, second derivatives more.
const GRADIENTS_OF_A_HESSIAN: u64 = 4;
const GRADIENTS_OF_A_SOLVE: u64 = 4;

/// Description of the units of a cost.
pub const COUNTED: &str =
    "4 for a field, a Hessian or a linear solve, 1 for a gradient or a Newton iteration";

/// A cost in the units of the 2022 paper, gradients, including Hessians, linear solves and Newton
/// iterations, which the paper leaves out.
pub fn budget_of(cost: &Cost) -> u64 {
    GRADIENTS_OF_A_FIELD * cost.field
        + GRADIENTS_OF_A_HESSIAN * cost.hessian
        + GRADIENTS_OF_A_SOLVE * cost.linear_solves
        + cost.gradient
        + cost.newton_iterations
}

/// Drift of one group of invariants.
#[derive(Clone, Debug)]
pub struct Drift {
    /// Name given by the user.
    pub name: String,
    /// Kind of the invariant.
    pub kind: InvariantKind,
    /// True for a claim that the motion does not keep, so that it is not held.
    pub varying: bool,
    /// Value at the start; `None` for constraints, whose value should be 0, and for an ensemble.
    pub initial: Option<Initial>,
    /// Deviation at the end.
    pub last: f64,
    /// Largest deviation over all accepted steps and stored samples.
    pub max: f64,
    /// Both deviations relative to the scale of the terms that cancel in the quantity (see
    /// [`holonome_integrate::terms`]); `None` if that is not known.
    pub relative: Option<Relative>,
    /// Loss of an energy or an integral: its deviation over its content at that time (see
    /// [`holonome_integrate::terms`]), at the end and at most.
    pub loss: Relative,
}

/// A drift relative to the scale of the terms that cancel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Relative {
    /// Relative deviation at the end.
    pub last: f64,
    /// Largest relative deviation.
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

/// Scale of the terms of group `k` in a run of length `span`; `terms` has the measured scales. A
/// hidden constraint is a rate: its scale is at least that of a rate which changes its constraint
/// by the constraint's terms within the run, because at rest its own terms are rounding.
pub(crate) fn size_of_terms(groups: &[InvariantGroup], terms: &[f64], k: usize, span: f64) -> f64 {
    let own = terms.get(k).copied().unwrap_or(0.0);
    if groups[k].kind != InvariantKind::Hidden {
        return own;
    }
    let is_its = |group: &InvariantGroup| {
        group.kind == InvariantKind::Constraint && group.name == groups[k].name
    };
    let constraint = groups.iter().position(is_its).and_then(|constraint| terms.get(constraint));
    let rate = constraint.map_or(0.0, |terms| terms / span);
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

impl Drift {
    /// Part of itself or of its terms that the quantity has lost, if that is a good part: the
    /// motion is then not that of the model. If the run starts away from its targets
    /// (`off_target`), only the end counts, as of constraints.
    pub(crate) fn lost(&self, off_target: bool) -> Option<f64> {
        let of_end =
            off_target || matches!(self.kind, InvariantKind::Constraint | InvariantKind::Hidden);
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
        let least = match self.initial.as_ref().and_then(Initial::number) {
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
            off_target || matches!(d.kind, InvariantKind::Constraint | InvariantKind::Hidden);
        let what = match d.kind {
            InvariantKind::Hamiltonian => "the energy drifts".to_string(),
            InvariantKind::Penalised => "the energy with the penalty drifts".to_string(),
            InvariantKind::Constraint => format!("constraint '{}' is violated", d.name),
            InvariantKind::Hidden => format!("the hidden constraint of '{}' is violated", d.name),
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
        InvariantKind::Hidden => format!("hidden constraint of {}", d.name),
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
}

impl FinalState {
    pub(crate) fn new(variables: Vec<VariableLayout>, x: Vec<f64>) -> FinalState {
        FinalState { variables, x }
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

/// Result of a run.
#[derive(Clone, Debug)]
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
    /// True if the model is Hamiltonian.
    pub hamiltonian: bool,
    /// True if it is in a heat bath, which keeps neither energy nor integrals.
    pub heated: bool,
    /// Drift of every invariant, in the model's order.
    pub drift: Vec<Drift>,
    /// Names of what has lost a good part of itself ("H", integrals, constraints): the motion is
    /// not the model's.
    pub lost: Vec<String>,
    /// Results of the model's measures.
    pub measures: Vec<Table>,
    /// Counts of evaluations.
    pub cost: Cost,
    /// Time in the stepping loop.
    pub wall_seconds: f64,
    /// Folder of the run; `None` if it is in memory.
    pub out: Option<PathBuf>,
    /// Rate κ of the Gauss–Newton form, or the gains, as printed.
    pub gain: Option<String>,
    /// ω of a penalty, and true if the run started on the slow manifold.
    pub penalty: Option<(f64, bool)>,
    /// Maximum and mean of h λmax/r, if there is a gain.
    pub stability: Option<(f64, f64)>,
    /// Error of the orbit, if requested.
    pub error: Option<OrbitError>,
    /// True if it was stopped before its end.
    pub interrupted: bool,
    /// Warnings for the user: about the model, the options, the results.
    pub warnings: Vec<String>,
}

/// Largest count of numbers in a state that is shown unasked.
pub const LARGEST_SHOWN: u64 = 1000;

/// Summary of a run as JSON without its state, if that has more than [`LARGEST_SHOWN`] numbers. The
/// key `state` is then `null`, and `state_size` follows. Returns also the count of numbers that are
/// left out.
pub fn without_large_state(summary: &Value) -> (Value, Option<u64>) {
    fn numbers(value: &Value) -> u64 {
        match value {
            Value::Array(list) => list.iter().map(numbers).sum(),
            Value::Object(map) => map.values().map(numbers).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        }
    }
    let Some((object, size)) =
        summary.as_object().and_then(|object| Some((object, numbers(object.get("state")?))))
    else {
        return (summary.clone(), None);
    };
    if size <= LARGEST_SHOWN {
        return (summary.clone(), None);
    }
    let mut shown = Map::new();
    for (key, value) in object {
        if key == "state" {
            shown.insert(key.clone(), Value::Null);
            shown.insert("state_size".to_string(), json!(size));
        } else {
            shown.insert(key.clone(), value.clone());
        }
    }
    (Value::Object(shown), Some(size))
}

/// Stored summary of a finished run or ensemble: a [`Summary`] or a
/// [`SweepSummary`](crate::SweepSummary) as JSON, written by the version that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSummary(pub(crate) Value);

impl StoredSummary {
    fn count(&self, key: &str) -> u64 {
        self.0[key].as_u64().unwrap_or_default()
    }

    /// Time at which it ended; NaN if that is missing.
    pub fn t(&self) -> f64 {
        self.0["t"].as_f64().unwrap_or(f64::NAN)
    }

    /// Number of accepted steps.
    pub fn steps(&self) -> u64 {
        self.count("steps")
    }

    /// Number of trajectories of an ensemble.
    pub fn trajectories(&self) -> u64 {
        self.count("trajectories")
    }

    /// The JSON object that was printed when it ended.
    pub fn to_json(&self) -> &Value {
        &self.0
    }
}

/// True if a group is one of the claims that the motion does not keep.
pub(crate) fn is_varying(group: &InvariantGroup, varying: &[String]) -> bool {
    group.monitored_only
        && matches!(group.kind, InvariantKind::Constraint | InvariantKind::Integral)
        && varying.contains(&group.name)
}

/// The drifts by kind and name.
pub(crate) fn drift_json(list: &[Drift], hamiltonian: bool) -> Map<String, Value> {
    let mut drift = Map::new();
    let entry = |d: &Drift| {
        let relative =
            d.relative.map(|relative| json!({"final": relative.last, "max": relative.max}));
        let mut entry = match &d.initial {
            None => json!({"final": d.last, "max": d.max, "relative": relative}),
            Some(initial) => {
                json!({"initial": initial, "final": d.last, "max": d.max, "relative": relative})
            }
        };
        if d.varying {
            entry["held"] = json!(false);
        }
        entry
    };
    let group = |kind: InvariantKind| -> Map<String, Value> {
        list.iter().filter(|d| d.kind == kind).map(|d| (d.name.clone(), entry(d))).collect()
    };
    for (key, kind) in [
        ("hamiltonian", InvariantKind::Hamiltonian),
        ("penalised_hamiltonian", InvariantKind::Penalised),
    ] {
        if let Some(h) = list.iter().find(|d| d.kind == kind) {
            drift.insert(key.to_string(), entry(h));
        }
    }
    if let Some(modified) = list.iter().find(|d| d.kind == InvariantKind::ModifiedEnergy) {
        drift.insert("modified_energy".to_string(), entry(modified));
    }
    for (key, kind) in [
        ("constraints", InvariantKind::Constraint),
        ("hidden", InvariantKind::Hidden),
        ("integrals", InvariantKind::Integral),
    ] {
        // A state model has no hidden constraints; every other key is present even if it is empty.
        if kind != InvariantKind::Hidden || hamiltonian {
            drift.insert(key.to_string(), Value::Object(group(kind)));
        }
    }
    drift
}

/// Counts of a cost, with their names in JSON.
pub(crate) fn counts(cost: &Cost) -> [(&'static str, u64); 6] {
    [
        ("field", cost.field),
        ("gradient", cost.gradient),
        ("hessian", cost.hessian),
        ("linear_solves", cost.linear_solves),
        ("newton_iterations", cost.newton_iterations),
        ("rejected", cost.rejected),
    ]
}

impl Summary {
    /// Drifts of a run of length `span`; `varying` names the claims known before it to vary.
    pub(crate) fn drift_of(
        groups: &[InvariantGroup],
        varying: &[String],
        initial: &[Option<Initial>],
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

    /// The object that `run --json` prints.
    pub fn to_json(&self) -> Value {
        json!(self)
    }
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut cost: Map<String, Value> = counts(&self.cost)
            .into_iter()
            .map(|(name, count)| (name.to_string(), json!(count)))
            .collect();
        cost.insert("wall_seconds".to_string(), json!(self.wall_seconds));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &self.model)?;
        map.serialize_entry("method", &self.method)?;
        map.serialize_entry("t", &self.t)?;
        map.serialize_entry("steps", &self.steps)?;
        map.serialize_entry("state", &self.state)?;
        map.serialize_entry("drift", &drift_json(&self.drift, self.hamiltonian))?;
        map.serialize_entry("cost", &cost)?;
        if let Some(out) = &self.out {
            map.serialize_entry("out", &out.display().to_string())?;
        }
        // Entries that only some runs have come last.
        if !self.lost.is_empty() {
            map.serialize_entry("lost", &self.lost)?;
        }
        if !self.measures.is_empty() {
            map.serialize_entry("measures", &self.measures)?;
        }
        if let Some(gain) = &self.gain {
            map.serialize_entry("gain", gain)?;
        }
        if let Some((omega, slow)) = self.penalty {
            map.serialize_entry("penalty", &json!({"omega": omega, "slow_manifold": slow}))?;
        }
        if let Some((max, mean)) = self.stability {
            map.serialize_entry("stability", &json!({"max": max, "mean": mean}))?;
        }
        if let Some(error) = &self.error {
            map.serialize_entry("orbit_error", &error.to_json())?;
        }
        if self.interrupted {
            map.serialize_entry("interrupted", &true)?;
        }
        map.serialize_entry("warnings", &self.warnings)?;
        map.end()
    }
}
