//! What the engine derived from a model: the content of `holonome check`.

use crate::gain::is_imposed;
use crate::problem::Problem;
use holonome_integrate::method::{SCHEMES, TREATMENTS, Treatment};
use holonome_model::elaborate::expression::{MOMENTUM, TIME};
use holonome_model::elaborate::model::{Dynamics, Model, Role};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::numeric::Gram;
use holonome_model::treatment::feedback::gain_name;
use holonome_model::treatment::structure::{Kind, Structure, ambient_points, evaluate_rows, onto_set};
use holonome_model::treatment::Field;
use serde_json::{Value, json};

/// One constraint.
pub struct ConstraintRow {
    name: String,
    members: usize,
    scalars: usize,
    holonomic: bool,
    rheonomic: bool,
    class: &'static str,
    hidden: Option<&'static str>,
}

/// The kinetic energy.
struct Mass {
    constant: bool,
    diagonal: bool,
    separable: bool,
}

/// A method's row.
struct MethodRow {
    name: String,
    applies: bool,
    reason: String,
}

/// The report.
pub struct Report {
    name: String,
    hamiltonian: bool,
    dimension: usize,
    degrees_of_freedom: Option<usize>,
    variables: Vec<(String, String, usize)>,
    constraints: Vec<ConstraintRow>,
    mass: Option<Mass>,
    explicit_time: bool,
    invariants: Vec<String>,
    rank: Option<(usize, usize)>,
    nonzeros: Option<(usize, usize)>,
    operations: Option<usize>,
    weak: Vec<String>,
    notes: Vec<String>,
    methods: Vec<MethodRow>,
}

impl Report {
    /// Looks at a problem.
    pub fn new(problem: &Problem) -> Report {
        let model = &problem.model;
        let field = problem.examined.field.as_ref();
        let structure = field.map(|(_, s)| s);
        let rank = field.map(|(f, _)| rank_on_set(model, f));
        let mut notes = Vec::new();
        if let Some(too_large) = &problem.examined.too_large {
            notes.push(format!("{too_large}; constraints and numbers at the start were checked row by row, hidden constraints and ranks were not"));
        }
        if structure.is_some_and(|s| s.kind != Kind::Holonomic && s.kind != Kind::Free) {
            notes.push("a constraint that holds momenta is taken as a Hamiltonian (vakonomic) constraint, not as nonholonomic rolling".to_string());
        }
        if structure.is_some_and(|s| s.hidden.iter().any(|h| h.tangency)) {
            notes.push("the kinetic energy does not feel a constraint's normal: its hidden constraint is G p = 0 (the momentum is tangent)".to_string());
        }
        if let Some((rank, count)) = rank.filter(|(rank, count)| rank < count) {
            notes.push(format!("the {count} invariants have rank {rank} on the set: they say some things twice, which feedback and correction can bear"));
        }
        Report {
            name: problem.name.clone(),
            hamiltonian: model.is_hamiltonian(),
            dimension: model.dimension(),
            degrees_of_freedom: degrees_of_freedom(model, structure, problem.examined.redundant.is_empty()),
            variables: model
                .variables
                .iter()
                .map(|v| {
                    let role = match v.role {
                        Role::Coordinate => "coordinate".to_string(),
                        Role::Momentum(of) => format!("momentum of {}", model.variables[of].family.name),
                        Role::State => "state".to_string(),
                    };
                    (v.family.name.clone(), role, v.family.len())
                })
                .collect(),
            constraints: constraint_rows(model, structure),
            mass: mass(model),
            explicit_time: model.explicit_time,
            invariants: field.map_or(Vec::new(), |(f, _)| f.groups.iter().map(|g| gain_name(&g.name, g.kind)).collect()),
            rank,
            nonzeros: field.map(|(f, _)| (f.jacobian.iter().map(Vec::len).sum(), f.jacobian.len() * f.dimension)),
            operations: field.map(|(f, _)| Tape::new(&f.graph, &f.field, f.dimension, f.parameters).operations()),
            weak: problem.examined.weak_integrals.clone(),
            notes,
            methods: method_rows(problem),
        }
    }

    /// For people.
    pub fn to_text(&self) -> String {
        let mut out = format!("{}: ", self.name);
        out.push_str(if self.hamiltonian { "a Hamiltonian model" } else { "a vector field" });
        out.push_str(&format!(" with {} variables", self.dimension));
        if let Some(dof) = self.degrees_of_freedom {
            out.push_str(&if self.hamiltonian { format!(", {dof} degrees of freedom") } else { format!(" on a manifold of dimension {dof}") });
        }
        out.push('\n');
        for (name, role, len) in &self.variables {
            out.push_str(&format!("  {role} {name}: {len} components\n"));
        }
        for c in &self.constraints {
            let kind = match (self.hamiltonian, c.holonomic) {
                (false, _) => "the state's manifold",
                (true, true) if c.rheonomic => "holonomic, rheonomic",
                (true, true) => "holonomic",
                (true, false) => "on phase space",
            };
            let members = if c.members == 1 { String::new() } else { format!(" ({} members, {} scalar equations)", c.members, c.scalars) };
            out.push_str(&format!("  constraint {}{members}: {kind}{}", c.name, if c.class.is_empty() { String::new() } else { format!(", {}", c.class) }));
            if let Some(hidden) = c.hidden {
                out.push_str(&format!("; hidden constraint {hidden}"));
            }
            out.push('\n');
        }
        if let Some(m) = &self.mass {
            let mass = match (m.constant, m.diagonal) {
                (true, true) => "constant and diagonal",
                (true, false) => "constant",
                (false, _) => "depends on the state",
            };
            out.push_str(&format!("  mass matrix {mass}; {}\n", if m.separable { "separable, H = T(p) + V(q)" } else { "not separable" }));
        }
        if self.explicit_time {
            out.push_str("  the Hamiltonian depends on time: it is no invariant\n");
        }
        if !self.invariants.is_empty() {
            out.push_str(&format!("  invariants (names for --gain): {}\n", self.invariants.join(", ")));
        }
        if let (Some((rank, count)), Some((nonzeros, dense))) = (self.rank, self.nonzeros)
            && count > 0
        {
            out.push_str(&format!("  their Jacobian: rank {rank} of {count}, {nonzeros} of {dense} entries\n"));
        }
        if let Some(operations) = self.operations {
            out.push_str(&format!("  the field takes {operations} operations\n"));
        }
        if !self.weak.is_empty() {
            out.push_str(&format!("  constant on the constraint set only: {} (corrected there; feedback guarantees no decay for them)\n", self.weak.join(", ")));
        }
        for note in &self.notes {
            out.push_str(&format!("  note: {note}\n"));
        }
        out.push_str("  methods:\n");
        for m in &self.methods {
            out.push_str(&format!("    {} {}: {}\n", if m.applies { "yes" } else { "no " }, m.name, m.reason));
        }
        out
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        json!({
            "model": self.name,
            "kind": if self.hamiltonian { "hamiltonian" } else { "field" },
            "dimension": self.dimension,
            "degrees_of_freedom": self.degrees_of_freedom,
            "variables": self.variables.iter().map(|(name, role, len)| json!({"name": name, "role": role, "components": len})).collect::<Vec<_>>(),
            "constraints": self.constraints.iter().map(|c| json!({
                "name": c.name, "members": c.members, "scalars": c.scalars,
                "kind": if !self.hamiltonian { "manifold" } else if c.holonomic { "holonomic" } else { "phase-space" },
                "rheonomic": c.rheonomic, "class": c.class, "hidden": c.hidden,
            })).collect::<Vec<_>>(),
            "mass_matrix": self.mass.as_ref().map(|m| json!({"constant": m.constant, "diagonal": m.diagonal})),
            "separable": self.mass.as_ref().map(|m| m.separable),
            "explicit_time": self.explicit_time,
            "invariants": self.invariants,
            "rank": self.rank.map(|(rank, count)| json!({"rank": rank, "count": count})),
            "jacobian": self.nonzeros.map(|(nonzeros, dense)| json!({"nonzeros": nonzeros, "dense": dense})),
            "operations": self.operations,
            "weak_integrals": self.weak,
            "notes": self.notes,
            "methods": self.methods.iter().map(|m| json!({"name": m.name, "applies": m.applies, "reason": m.reason})).collect::<Vec<_>>(),
        })
    }
}

fn degrees_of_freedom(model: &Model, structure: Option<&Structure>, regular: bool) -> Option<usize> {
    let scalars: usize = model.constraints.iter().map(|c| c.members * c.components.len()).sum();
    if !regular {
        return None;
    }
    if !model.is_hamiltonian() {
        return model.dimension().checked_sub(scalars);
    }
    match structure?.kind {
        Kind::Free => Some(model.degrees()),
        Kind::Holonomic | Kind::Coisotropic => model.degrees().checked_sub(scalars),
        Kind::SecondClass => (2 * model.degrees()).checked_sub(scalars).map(|d| d / 2),
    }
}

fn constraint_rows(model: &Model, structure: Option<&Structure>) -> Vec<ConstraintRow> {
    let mut hidden = structure.map(|s| s.hidden.iter()).unwrap_or_default();
    model
        .constraints
        .iter()
        .map(|c| {
            let scalars = c.members * c.components.len();
            let own: Vec<_> = hidden.by_ref().take(scalars).collect();
            let holonomic = c.depends & MOMENTUM == 0;
            let class = match structure.map(|s| s.kind) {
                Some(Kind::SecondClass) => "second class",
                Some(Kind::Coisotropic) => "coisotropic, second class with its hidden constraint",
                Some(Kind::Holonomic) => "second class with its hidden constraint",
                _ => "",
            };
            let formula = own.first().map(|h| match (h.tangency, holonomic, c.depends & TIME != 0) {
                (true, ..) => "G p = 0",
                (false, true, false) => "G H_p = 0",
                (false, true, true) => "G H_p + g_t = 0",
                (false, false, _) => "{g, H} = 0",
            });
            ConstraintRow { name: c.name.clone(), members: c.members, scalars, holonomic, rheonomic: c.depends & TIME != 0, class, hidden: formula }
        })
        .collect()
}

/// Whether a node depends on the state or on time.
fn moves(g: &Graph, node: Node, select: impl Fn(Input) -> bool) -> bool {
    g.reachable(&[node]).iter().any(|&n| matches!(g.expression(n), Expression::Input(input) if select(input)))
}

fn mass(model: &Model) -> Option<Mass> {
    let Dynamics::Hamiltonian(h, _) = &model.dynamics else { return None };
    let n = model.degrees() as u32;
    let mut result = Mass { constant: true, diagonal: true, separable: true };
    // Template by template: what one template says holds for all of its rows.
    for term in &h.terms {
        let mut g = term.graph.clone();
        let momentum = |slot: u32| term.rows() > 0 && term.slots[slot as usize] == holonome_model::functional::Source::State && term.table[slot as usize] >= n;
        let state = |input: Input| matches!(input, Input::Slot(k) if term.slots[k as usize] == holonome_model::functional::Source::State);
        for (input, d) in g.adjoint(term.roots[0], |i| matches!(i, Input::Slot(k) if momentum(k))) {
            let Input::Slot(own) = input else { continue };
            for (other, dd) in g.adjoint(d, state) {
                let Input::Slot(slot) = other else { continue };
                if !momentum(slot) {
                    result.separable = false;
                    continue;
                }
                result.diagonal &= slot == own;
                result.constant &= !moves(&g, dd, |i| i == Input::Time || state(i));
            }
        }
    }
    Some(result)
}

/// Rank of DF at the initial state and at a few points of the set; (least rank, rows).
fn rank_on_set(model: &Model, field: &Field) -> (usize, usize) {
    let count = field.invariants.len();
    let gradients: Vec<_> = field.jacobian.iter().collect();
    let imposed: Vec<_> = field.jacobian[..field.constraints].iter().collect();
    let starts = ambient_points(model, 3, 0xca11);
    let on_set = starts.iter().filter_map(|x| onto_set(&field.graph, &field.invariants[..field.constraints], &imposed, 0.0, x, &model.parameter_values));
    let points = std::iter::once(model.initial.clone()).chain(on_set);
    let ranks = points.map(|x| count - Gram::new(&evaluate_rows(&field.graph, &gradients, 0.0, &x, &model.parameter_values), 0.0).dependent().len());
    (ranks.min().unwrap_or(count), count)
}

fn method_rows(problem: &Problem) -> Vec<MethodRow> {
    let refusal = match (&problem.examined.too_large, problem.examined.redundant.is_empty()) {
        (Some(too_large), _) => Some(too_large.to_string()),
        (None, false) => Some("it solves for multipliers, and the constraints are redundant".to_string()),
        _ => None,
    };
    let invariants = problem.examined.field.as_ref().map_or(0, |(f, _)| f.invariants.len());
    let imposed = problem.examined.field.as_ref().is_some_and(|(f, _)| f.groups.iter().any(|g| is_imposed(g.kind)));
    let bases: Vec<&str> = SCHEMES.iter().map(|s| s.name).collect();
    TREATMENTS
        .iter()
        .map(|t| {
            let name = format!("{}:BASE", t.name);
            if let Some(reason) = &refusal {
                return MethodRow { name, applies: false, reason: reason.clone() };
            }
            if t.treatment != Treatment::Plain && invariants == 0 {
                return MethodRow { name, applies: false, reason: "no invariants are known; state some with `integral`".to_string() };
            }
            let field = if imposed && problem.model.is_hamiltonian() { " on the Dirac extension" } else { "" };
            MethodRow { name, applies: true, reason: format!("{}{field} (BASE: {})", t.description, bases.join(" ")) }
        })
        .collect()
}
