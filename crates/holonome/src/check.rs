//! Report of `holonome check`: properties that the engine derived from a model.

mod advice;
mod constraints;
mod held;
mod pace;
mod rows;
mod text;

use crate::backend::backend;
use crate::gain::is_imposed;
use crate::heat_bath::determinant_varies;
use crate::kernels::{FieldJacobian, Formula, Taylor};
use crate::problem::Problem;
use crate::recording::{UnitLabels, unit_labels};
pub use crate::step::OrbitRow;
use crate::step::{orbits, survey};
use advice::advice;
use constraints::{constraint_rows, degrees_of_freedom, dimension_left};
use held::{HeldIntegrals, groups, kept_groups};
use holonome_integrate::method::{Method, MethodTreatment, Needs, SCHEMES, Scheme, TREATMENTS};
use holonome_linear::gram::{Gram, Row};
use holonome_model::elaborate::model::{Dynamics, Model, Quantity, Role, Variable};
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::poisson::Poisson;
use holonome_model::policy::Way;
use holonome_model::scales::{Scales, in_units};
use holonome_model::templated::RowField;
use holonome_model::treatment::Field;
use holonome_model::treatment::feedback::gain_name;
use holonome_model::treatment::integrability::integrability;
use holonome_model::treatment::mechanics::Mechanics;
use holonome_model::treatment::structure::{Probe, Structure, ambient_points, points_on_set};
pub use rows::{
    ClassRow, ConstraintRole, ConstraintRow, Jacobian, MassMatrix, MethodRow, ModelKind,
    PoissonMatrix, Rank, TemplateRows, VariableRow,
};
use serde::Serialize;

/// Schemes that follow a field; a scheme that needs formulas only if `field` has a series, and one for
/// stiff fields only if there is a Jacobian.
fn bases(field: Option<&Field>, model: &Model) -> Vec<&'static str> {
    let follows = |scheme: &&'static Scheme| {
        let method = Method::plain(scheme);
        let has_series = |field| Taylor::new(&method, field).is_ok();
        let has_jacobian = || field.is_some() || FieldJacobian::missing(model).is_none();
        scheme.follows_fields()
            && (!scheme.needs_formulas() || field.is_some_and(has_series))
            && (scheme.stiff().is_none() || has_jacobian())
    };
    SCHEMES.iter().copied().filter(follows).map(|scheme| scheme.name).collect()
}

/// Report of a model.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The model's name.
    pub model: String,
    /// Its kind.
    pub kind: ModelKind,
    /// Number of variables.
    pub dimension: usize,
    /// Degrees of freedom, of a field the dimension of its manifold; `None` if not known.
    pub degrees_of_freedom: Option<usize>,
    /// Dimension of the set that the constraints leave; `None` if not known, or without constraints.
    pub dimension_left: Option<usize>,
    /// Variables, in the model's order.
    pub variables: Vec<VariableRow>,
    /// Labels of units by name, `t` for the time; empty if the model names none.
    #[serde(skip_serializing_if = "UnitLabels::is_empty")]
    pub units: UnitLabels,
    /// Constraints, in the model's order.
    pub constraints: Vec<ConstraintRow>,
    /// Matrix of brackets of a Poisson system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poisson: Option<PoissonMatrix>,
    /// Mass matrix; `None` for a field.
    pub mass_matrix: Option<MassMatrix>,
    /// True if the determinant of the constraints varies; `None` if that is not known.
    pub determinant_varies: Option<bool>,
    /// True if H = T(p) + V(q); `None` for a field.
    pub separable: Option<bool>,
    /// True if the model depends on the time itself.
    pub explicit_time: bool,
    /// Names of the invariants among the gains.
    pub invariants: Vec<String>,
    /// Rank of their Jacobian; `None` if not known.
    pub rank: Option<Rank>,
    /// Assumptions A1 to A3 of the 2016 paper, in words, as far as they can be checked.
    pub assumptions: Option<String>,
    /// Size of the invariants' Jacobian.
    pub jacobian: Option<Jacobian>,
    /// Number of operations of the field.
    pub operations: Option<usize>,
    /// Claims that the motion does not keep.
    pub varying: Vec<String>,
    /// Integrals that are constant on the constraint set only.
    pub weak_integrals: Vec<String>,
    /// Bodies without mass.
    pub test_bodies: Vec<String>,
    /// Motions of Kepler.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orbits: Vec<OrbitRow>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Lines of advice which method to take, and why.
    pub advice: Vec<String>,
    /// The treatments, then the methods that are not Runge–Kutta methods.
    pub methods: Vec<MethodRow>,
    /// Size of a templated field; `None` if it is unrolled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<TemplateRows>,
    /// Ways in which are computed: field and invariants, steps of explicit methods, steps of other
    /// methods, and both in sweeps.
    #[serde(skip)]
    ways: [Way; 5],
    /// Schemes that follow the model's field.
    #[serde(skip)]
    bases: Vec<&'static str>,
}

impl Report {
    /// Derive the report of a problem.
    pub fn new(problem: &Problem) -> Report {
        let model = &problem.model;
        let field = problem.examined.field.as_ref();
        let templated = problem.examined.rows.as_ref();
        let structure = field.map(|(_, structure)| structure);
        let unrolled = field.map(|(field, _)| &**field);
        let rank = match templated {
            Some(rows) => rank_of_rows(model, rows),
            None => unrolled.map(|field| rank_on_set(model, field)),
        };
        let (survey, orbits) = (survey(model), orbits(model));
        let degrees = degrees_of_freedom(model, structure, problem.examined.singular.is_empty());
        let mut methods = method_rows(problem);
        methods.extend(structure_preserving_rows(&survey, problem));
        let (mass_matrix, separable) = mass(model).unzip();
        Report {
            model: problem.name.clone(),
            kind: match (model.is_hamiltonian(), &model.poisson) {
                (true, _) => ModelKind::Hamiltonian,
                (false, Some(_)) => ModelKind::Poisson,
                (false, None) => ModelKind::Field,
            },
            poisson: poisson_matrix(model),
            dimension: model.phase_dimension(),
            degrees_of_freedom: degrees,
            variables: variable_rows(model),
            units: unit_labels(model, &[]),
            constraints: constraint_rows(
                model,
                field.map(|(field, structure)| (&**field, structure)),
            ),
            dimension_left: dimension_left(model, structure, degrees),
            mass_matrix,
            determinant_varies: unrolled.and_then(|field| {
                let start = vec![model.initial.clone()];
                determinant_varies(model, &[start, points_on_set(model, field, 3, 0xca11)].concat())
            }),
            separable,
            explicit_time: model.explicit_time,
            invariants: kept_groups(problem).map(|g| gain_name(&g.name, g.kind)).collect(),
            rank,
            assumptions: rank.map(|rank| assumptions(problem, rank)),
            jacobian: jacobian(templated, unrolled),
            operations: match templated {
                Some(rows) => Some(rows.field.operations(rows.parameters)),
                None => unrolled.map(|field| {
                    let formula = Formula::new(&field.graph, &field.field);
                    formula.tape(field.dimension, field.parameters).operations()
                }),
            },
            varying: problem.examined.varying.clone(),
            weak_integrals: problem.examined.weak_integrals.clone(),
            test_bodies: test_bodies(model),
            notes: notes(problem, structure, rank),
            advice: advice(problem, (&survey, &orbits), HeldIntegrals::of(problem), degrees),
            orbits,
            methods,
            rows: templated.map(|rows| TemplateRows {
                templates: rows.field.pieces.len(),
                rows: rows.field.pieces.iter().map(|piece| piece.rows).sum(),
            }),
            ways: [
                Way::of_field(model),
                Way::of_step(model, true, 1, false),
                Way::of_step(model, false, 1, false),
                Way::of_step(model, true, 1, true),
                Way::of_step(model, false, 1, true),
            ],
            bases: bases(unrolled, model),
        }
    }
}

fn notes(problem: &Problem, structure: Option<&Structure>, rank: Option<Rank>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(too_large) = &problem.examined.too_large {
        notes.push(format!("{too_large}; constraints and numbers at the start were checked over the rows of the templates, hidden constraints and ranks were not"));
    }
    if structure.is_some_and(|s| s.hidden.iter().any(|h| h.tangency)) {
        notes.push("the kinetic energy does not feel a constraint's normal: its hidden constraint is G p = 0 (the momentum is tangent)".to_string());
    }
    notes.extend(integrable_together(problem));
    if let Some(r) = rank.filter(|r| r.least < r.rows) {
        notes.push(format!("the {} invariants have rank {} on the set: they say some things twice, which feedback and correction can bear", r.rows, r.least));
    }
    notes.extend(kept_with_forces(problem));
    notes
}

/// Remark on rolling constraints that are integrable with each other, though one is not by itself.
fn integrable_together(problem: &Problem) -> Option<String> {
    let (field, _) = problem.examined.field.as_ref()?;
    let of = integrability(&problem.model, field)?;
    (of.together && of.alone.contains(&false)).then(|| {
        "the rolling constraints are integrable together (Frobenius): all of them could be constraints on positions".to_string()
    })
}

/// What is left of the structure of a model on which forces act.
fn kept_with_forces(problem: &Problem) -> Option<String> {
    let model = &problem.model;
    if model.forces.is_empty() {
        return None;
    }
    if model.has_passive_bodies() {
        return Some("test bodies do not act back: the symplectic form of the bodies with mass is kept, that of all is not".to_string());
    }
    let unrolled = problem.examined.rows.is_none();
    let friction = |mechanics: &Mechanics| mechanics.forces.friction.is_some();
    let uniform = unrolled && model.mechanics().is_ok_and(friction);
    Some(match uniform {
        true => "friction acts at one rate γ: symplectic methods take its flow exactly, and contract the symplectic form by e^(−γh) in every step".to_string(),
        false => "forces act: the symplectic form is not kept, the balance of the energy is".to_string(),
    })
}

/// Names of the bodies without mass: members of coordinates, or their components.
fn test_bodies(model: &Model) -> Vec<String> {
    let Some(massless) = &model.massless else { return Vec::new() };
    let mut names = Vec::new();
    for Variable { family, first, .. } in
        model.variables.iter().filter(|v| v.role == Role::Coordinate)
    {
        let width = family.shape.len();
        for member in 0..family.members() {
            let own = &massless.positions[first + member * width..][..width];
            match own.iter().filter(|&&own| own).count() {
                0 => {}
                count if count == width => names.push(family.member_name(member)),
                _ => names.extend(
                    (0..width)
                        .filter(|&k| own[k])
                        .map(|k| family.component_name(member * width + k)),
                ),
            }
        }
    }
    names
}

fn variable_rows(model: &Model) -> Vec<VariableRow> {
    let name = |variable: &Variable| variable.family.name.clone();
    let row = |variable: &Variable| {
        let role = match variable.role {
            Role::Coordinate => "coordinate".to_string(),
            Role::Momentum(of) => format!("momentum of {}", name(&model.variables[of])),
            Role::State => "state".to_string(),
            Role::Work => "work".to_string(),
        };
        VariableRow { name: name(variable), role, components: variable.family.len() }
    };
    model.phase_variables().map(row).collect()
}

fn jacobian(templated: Option<&RowField>, unrolled: Option<&Field>) -> Option<Jacobian> {
    match templated {
        Some(rows) => Some(Jacobian {
            nonzeros: rows.pattern.nonzeros(),
            dense: rows.count() * rows.dimension,
        }),
        None => unrolled.map(|field| Jacobian {
            nonzeros: field.jacobian.iter().map(Vec::len).sum(),
            dense: field.jacobian.len() * field.dimension,
        }),
    }
}

/// Assumptions A1 to A3 of the 2016 paper, as far as they can be checked.
fn assumptions(problem: &Problem, r: Rank) -> String {
    let (varying, weak) = (&problem.examined.varying, &problem.examined.weak_integrals);
    let a1 = match (varying.is_empty(), weak.is_empty()) {
        (false, _) => {
            format!("A1 fails for {} (not constant along X)", varying.join(", "))
        }
        (true, true) => "A1 holds (V does not grow along X at random ambient points)".to_string(),
        (true, false) => format!("A1 holds on the set only for {}", weak.join(", ")),
    };
    let a3 = match r.least == r.largest {
        true => format!(
            "A3 holds as far as seen (DF has the same rank at {} points of the set)",
            r.points
        ),
        false => format!(
            "A3 is doubtful (the rank of DF varies from {} to {} on the set)",
            r.least, r.largest
        ),
    };
    format!("{a1}; A2 (a compact level set) is undecided; {a3}")
}

/// Matrix of brackets of a Poisson system, at a random point.
fn poisson_matrix(model: &Model) -> Option<PoissonMatrix> {
    let poisson = model.poisson.as_ref()?;
    let (x, parameters) =
        (Poisson::states_around(&model.initial, 1).remove(0), &model.parameter_values);
    let known = |q: &&Quantity| poisson.is_casimir(&q.functional, &x, parameters);
    let known: Vec<&Quantity> = model.integrals.iter().filter(known).collect();
    Some(PoissonMatrix {
        rank: poisson.rank(&x, parameters).map(|rank| rank.rank),
        casimirs: known.iter().map(|quantity| quantity.name.clone()).collect(),
        scalars: known.iter().map(|quantity| quantity.scalars()).sum(),
    })
}

/// True if a node depends on an input that `select` chooses.
fn moves(g: &Graph, node: Node, select: impl Fn(Input) -> bool) -> bool {
    g.reachable(&[node])
        .iter()
        .any(|&n| matches!(g.expression(n), Expression::Input(input) if select(input)))
}

/// Mass matrix, and whether H is separable; `None` for a field.
fn mass(model: &Model) -> Option<(MassMatrix, bool)> {
    let Dynamics::Hamiltonian(h, _) = &model.dynamics else { return None };
    let n = model.degrees() as u32;
    let (mut mass, mut separable) = (MassMatrix { constant: true, diagonal: true }, true);
    // Template by template: the properties of a template hold for all its rows.
    for term in &h.terms {
        let mut g = term.graph.clone();
        let momentum = |slot: u32| {
            term.rows() > 0
                && term.slots[slot as usize] == holonome_model::functional::Source::State
                && term.row(0).at(slot as usize) >= n
        };
        let state = |input: Input| matches!(input, Input::Slot(k) if term.slots[k as usize] == holonome_model::functional::Source::State);
        for (input, d) in g.adjoint(term.roots[0], |i| matches!(i, Input::Slot(k) if momentum(k))) {
            let Input::Slot(own) = input else { continue };
            for (other, dd) in g.adjoint(d, state) {
                let Input::Slot(slot) = other else { continue };
                if !momentum(slot) {
                    separable = false;
                    continue;
                }
                mass.diagonal &= slot == own;
                mass.constant &= !moves(&g, dd, |i| i == Input::Time || state(i));
            }
        }
    }
    Some((mass, separable))
}

fn rank_on_set(model: &Model, field: &Field) -> Rank {
    let count = field.invariants.len();
    let gradients: Vec<_> = field.jacobian.iter().collect();
    let all = Probe::new(&field.graph, &[], &gradients, field.dimension, &model.parameter_values);
    let points = points_on_set(model, field, 3, 0xca11);
    let scales = Scales::new(model);
    let ranks: Vec<usize> = points
        .iter()
        .map(|x| {
            count - Gram::new(&in_units(&all.at(0.0, x).1, &scales.units(x)), 0.0).dependent().len()
        })
        .collect();
    let (least, largest) = (ranks.iter().min(), ranks.iter().max());
    Rank {
        least: least.copied().unwrap_or(count),
        largest: largest.copied().unwrap_or(count),
        rows: count,
        points: ranks.len(),
    }
}

/// Rank of DF at the initial state and at a few other points; `None` if there are many invariants,
/// for which the rank is not worth its cost.
fn rank_of_rows(model: &Model, field: &RowField) -> Option<Rank> {
    const MOST_INVARIANTS: usize = 64;
    let count = field.count();
    if count > MOST_INVARIANTS {
        return None;
    }
    let points: Vec<Vec<f64>> =
        std::iter::once(model.initial.clone()).chain(ambient_points(model, 3, 0xca11)).collect();
    let scales = Scales::by(backend(), model);
    let rank = |x: &Vec<f64>| {
        let values = field.jacobian.evaluate_by(backend(), 0.0, x, &model.parameter_values);
        let rows: Vec<Row> =
            field.pattern.rows().map(|row| row.values(&values).collect()).collect();
        count - Gram::new(&in_units(&rows, &scales.units(x)), 0.0).dependent().len()
    };
    let ranks: Vec<usize> = points.iter().map(rank).collect();
    let (least, largest) = (ranks.iter().min(), ranks.iter().max());
    Some(Rank {
        least: least.copied().unwrap_or(count),
        largest: largest.copied().unwrap_or(count),
        rows: count,
        points: ranks.len(),
    })
}

/// Rows of the schemes that are not Runge–Kutta ones, suitable ones first.
fn structure_preserving_rows(
    survey: &[(&'static Scheme, Option<String>)],
    problem: &Problem,
) -> Vec<MethodRow> {
    let singular = !problem.examined.singular.is_empty();
    let refused = |(scheme, reason): &(&'static Scheme, Option<String>)| {
        let constrained = singular
            && (matches!(scheme.needs, Needs::Coisotropic | Needs::HeatBath) || reason.is_some());
        (*scheme, if constrained { Some(DEPENDENT.to_string()) } else { reason.clone() })
    };
    let survey: Vec<(&'static Scheme, Option<String>)> = survey.iter().map(refused).collect();
    let mut reasons: Vec<Option<&String>> =
        survey.iter().map(|(_, reason)| reason.as_ref()).collect();
    reasons.sort();
    reasons.dedup();
    let row = |reason: Option<&String>| {
        let names =
            survey.iter().filter(|(_, r)| r.as_ref() == reason).map(|(scheme, _)| scheme.name);
        MethodRow {
            name: names.collect::<Vec<_>>().join(" "),
            applies: reason.is_none(),
            reason: reason.cloned().unwrap_or_default(),
        }
    };
    reasons.into_iter().map(row).collect()
}

/// Reason why a model whose constraints depend on each other has no multipliers.
const DEPENDENT: &str =
    "the constraints depend on each other at the start, so that they determine no multipliers";

fn method_rows(problem: &Problem) -> Vec<MethodRow> {
    let refusal = match (&problem.examined.too_large, problem.examined.singular.is_empty()) {
        (Some(too_large), _) => Some(too_large.to_string()),
        (None, false) => Some(
            "its field is the Dirac extension, which solves for multipliers, and the constraints depend on each other"
                .to_string(),
        ),
        _ => None,
    };
    let groups = groups(problem);
    let invariants: usize = groups.iter().map(|g| g.members.row_count()).sum();
    let imposed = groups.iter().any(|g| is_imposed(g.kind));
    TREATMENTS
        .iter()
        .map(|t| {
            let name = format!("{}:BASE", t.name);
            if let Some(reason) = &refusal {
                return MethodRow { name, applies: false, reason: reason.clone() };
            }
            if t.treatment != MethodTreatment::Plain && invariants == 0 {
                return MethodRow {
                    name,
                    applies: false,
                    reason: "no invariants are known; state some with `integral`".to_string(),
                };
            }
            // The description of `plain` contains this already.
            let extended =
                imposed && problem.model.is_hamiltonian() && t.treatment != MethodTreatment::Plain;
            let field = if extended { ", on the Dirac extension" } else { "" };
            MethodRow { name, applies: true, reason: format!("{}{field}", t.description) }
        })
        .collect()
}
