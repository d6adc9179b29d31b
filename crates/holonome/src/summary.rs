//! What a run came to: the drift of every invariant, the cost, where it is stored.

use crate::recording::VariableLayout;
pub use holonome_integrate::state::Cost;
use holonome_integrate::state::StepState;
use holonome_model::treatment::{InvariantGroup, InvariantKind};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The drift of one group of invariants.
#[derive(Clone, Debug)]
pub struct Drift {
    /// The user's name.
    pub name: String,
    /// What it is.
    pub kind: InvariantKind,
    /// Whether it is a claim that the motion does not keep, so that nothing holds it.
    pub varying: bool,
    /// Its value at the start; nothing for constraints, whose value should be 0.
    pub initial: Value,
    /// Deviation at the end.
    pub last: f64,
    /// Largest deviation over all accepted steps.
    pub max: f64,
}

/// A run's result.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The model's name.
    pub model: String,
    /// The method's name.
    pub method: String,
    /// Where it stands.
    pub t: f64,
    /// Accepted steps.
    pub steps: u64,
    /// The state by variable.
    pub state: Map<String, Value>,
    /// Whether the model is Hamiltonian.
    pub hamiltonian: bool,
    /// The drift of every invariant, in the model's order.
    pub drift: Vec<Drift>,
    /// Evaluations.
    pub cost: Cost,
    /// Time in the stepping loop.
    pub wall_seconds: f64,
    /// The run's folder.
    pub out: PathBuf,
    /// Rate κ of the Gauss–Newton form, or the gains, as printed.
    pub gain: Option<String>,
    /// ω of a penalty, and whether the run started on the slow manifold.
    pub penalty: Option<(f64, bool)>,
    /// Maximum and mean of h λmax/r, where a gain acts.
    pub stability: Option<(f64, f64)>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// What the user should know of the results.
    pub warnings: Vec<String>,
}

/// Whether a group is one of the claims that the motion does not keep.
pub(crate) fn is_varying(group: &InvariantGroup, varying: &[String]) -> bool {
    group.watched
        && matches!(group.kind, InvariantKind::Constraint | InvariantKind::Integral)
        && varying.contains(&group.name)
}

/// The drifts by kind and name.
pub(crate) fn drift_json(list: &[Drift], hamiltonian: bool) -> Map<String, Value> {
    let mut drift = Map::new();
    let entry = |d: &Drift| {
        let mut entry = match d.initial {
            Value::Null => json!({"final": d.last, "max": d.max}),
            _ => json!({"initial": d.initial, "final": d.last, "max": d.max}),
        };
        if d.varying {
            entry["held"] = json!(false);
        }
        entry
    };
    let group = |kind: InvariantKind| -> Map<String, Value> {
        list.iter().filter(|d| d.kind == kind).map(|d| (d.name.clone(), entry(d))).collect()
    };
    for (key, kind) in
        [("hamiltonian", InvariantKind::Hamiltonian), ("penalised_hamiltonian", InvariantKind::Penalised)]
    {
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
        // A state model has no hidden constraints; every other key is there even where it is empty.
        if kind != InvariantKind::Hidden || hamiltonian {
            drift.insert(key.to_string(), Value::Object(group(kind)));
        }
    }
    drift
}

/// The counts of a cost, under their names in JSON.
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
    pub(crate) fn state_of(variables: &[VariableLayout], x: &[f64]) -> Map<String, Value> {
        variables.iter().map(|v| (v.name.clone(), v.nested(&x[v.first..v.first + v.len()]))).collect()
    }

    /// The drifts of a run; `varying` names claims that are not held.
    pub(crate) fn drift_of(
        groups: &[InvariantGroup],
        varying: &[String],
        initial: &[Value],
        state: &StepState,
    ) -> Vec<Drift> {
        groups
            .iter()
            .zip(&state.drift)
            .zip(initial)
            .map(|((g, d), initial)| Drift {
                name: g.name.clone(),
                kind: g.kind,
                varying: is_varying(g, varying),
                initial: initial.clone(),
                last: d.now,
                max: d.max,
            })
            .collect()
    }

    /// The object that `run --json` prints.
    pub fn to_json(&self) -> Value {
        let drift = drift_json(&self.drift, self.hamiltonian);
        let mut cost: Map<String, Value> =
            counts(&self.cost).into_iter().map(|(name, count)| (name.to_string(), json!(count))).collect();
        cost.insert("wall_seconds".to_string(), json!(self.wall_seconds));
        let mut all = json!({
            "model": self.model, "method": self.method, "t": self.t, "steps": self.steps,
            "state": self.state, "drift": drift,
            "cost": cost,
        });
        let object = all.as_object_mut().expect("an object was written");
        object.insert("out".to_string(), json!(self.out.display().to_string()));
        // What not every run has comes last.
        if let Some(gain) = &self.gain {
            object.insert("gain".to_string(), json!(gain));
        }
        if let Some((omega, slow)) = self.penalty {
            object.insert("penalty".to_string(), json!({"omega": omega, "slow_manifold": slow}));
        }
        if let Some((max, mean)) = self.stability {
            object.insert("stability".to_string(), json!({"max": max, "mean": mean}));
        }
        if !self.warnings.is_empty() {
            object.insert("warnings".to_string(), json!(self.warnings));
        }
        if self.interrupted {
            object.insert("interrupted".to_string(), json!(true));
        }
        all
    }
}
