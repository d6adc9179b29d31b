//! Report of `holonome check`: properties that the engine derived from a model.

mod pace;

use crate::backend::backend;
use crate::gain::is_imposed;
use crate::heat_bath::determinant_varies;
use crate::kernels::{Formula, Taylor};
use crate::policy::LONGEST_LOOP;
use crate::problem::Problem;
use crate::step::{self, survey};
use holonome_integrate::method::{Method, MethodTreatment, Needs, SCHEMES, Scheme, TREATMENTS};
use holonome_linear::gram::{Gram, Row, dot};
use holonome_linear::rank;
use holonome_model::consistency::Dependence;
use holonome_model::derived::Derived;
use holonome_model::elaborate::expression::{MOMENTUM, TIME};
use holonome_model::elaborate::model::{Dynamics, Model, Quantity, Role};
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::policy::Way;
use holonome_model::scales::{Scales, in_units};
use holonome_model::templated::RowField;
use holonome_model::treatment::feedback::gain_name;
use holonome_model::treatment::penalty::penalise;
use holonome_model::treatment::structure::{
    ConstraintKind, Probe, Structure, ambient_points, points_on_set,
};
use holonome_model::treatment::unrolled;
use holonome_model::treatment::{Field, InvariantGroup};
use holonome_words::option;
use pace::Pace;
use serde_json::{Value, json};

/// Row of a constraint.
pub struct ConstraintRow {
    name: String,
    members: usize,
    scalars: usize,
    holonomic: bool,
    rheonomic: bool,
    class: &'static str,
    hidden: Option<&'static str>,
}

/// Properties of the kinetic energy.
struct Mass {
    constant: bool,
    diagonal: bool,
    separable: bool,
}

impl Mass {
    fn line(&self) -> String {
        let mass = match (self.constant, self.diagonal) {
            (true, true) => "constant and diagonal",
            (true, false) => "constant",
            (false, _) => "depends on the state",
        };
        format!(
            "  mass matrix {mass}; {}",
            if self.separable { "separable, H = T(p) + V(q)" } else { "not separable" }
        )
    }
}

/// Width of a terminal in columns.
const COLUMNS: usize = 80;

/// Maximum number of lines of the short report.
const SHORT: usize = 10;

/// `head` and as many of the names as fit a line, with the number of the others.
fn listed(head: &str, names: &[&str]) -> String {
    let mut line = head.to_string();
    for (k, name) in names.iter().enumerate() {
        let rest = names.len() - k - 1;
        let more = if rest > 0 { format!(" … ({} more)", rest) } else { String::new() };
        let separator = if k == 0 { " " } else { ", " };
        if line.chars().count() + separator.len() + name.chars().count() + more.chars().count()
            > COLUMNS
        {
            line.push_str(&format!(" … ({} more)", rest + 1));
            break;
        }
        line.push_str(&format!("{separator}{name}"));
    }
    line
}

/// A line broken between words to the width of a terminal; continuation lines are indented further.
fn wrapped(line: &str) -> Vec<String> {
    let own = line.len() - line.trim_start().len();
    let indent = " ".repeat(own + 2);
    let mut out = Vec::new();
    let mut current = " ".repeat(own);
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let begun = !current.trim().is_empty();
        if begun && current.chars().count() + 1 + word.chars().count() > COLUMNS {
            out.push(std::mem::replace(&mut current, indent.clone()));
        } else if begun {
            current.push(' ');
        }
        current.push_str(word);
    }
    out.push(current);
    out
}

/// Rank of DF at the initial state and at a few points of the set.
#[derive(Clone, Copy)]
struct Rank {
    least: usize,
    largest: usize,
    rows: usize,
    points: usize,
}

/// Row of a method.
struct MethodRow {
    name: String,
    applies: bool,
    reason: String,
}

/// Schemes that follow a field; a scheme that needs formulas only if `field` has a series.
fn bases(field: Option<&Field>) -> Vec<&'static str> {
    let follows = |scheme: &&'static Scheme| {
        let method = Method::plain(scheme);
        let has_series = |field| Taylor::new(&method, field).is_ok();
        scheme.follows_fields() && (!scheme.needs_formulas() || field.is_some_and(has_series))
    };
    SCHEMES.iter().copied().filter(follows).map(|scheme| scheme.name).collect()
}

/// Report of a model.
pub struct Report {
    name: String,
    hamiltonian: bool,
    dimension: usize,
    degrees_of_freedom: Option<usize>,
    variables: Vec<(String, String, usize)>,
    constraints: Vec<ConstraintRow>,
    mass: Option<Mass>,
    /// True if the determinant of the constraints varies; `None` if that is not known.
    determinant_varies: Option<bool>,
    explicit_time: bool,
    invariants: Vec<String>,
    rank: Option<Rank>,
    nonzeros: Option<(usize, usize)>,
    operations: Option<usize>,
    /// Ways in which are computed: field and invariants, steps of explicit methods, steps of other
    /// methods, and steps of explicit methods in sweeps.
    ways: [Way; 4],
    /// Schemes that follow the model's field.
    bases: Vec<&'static str>,
    /// Number of templates and rows of a templated field.
    rows: Option<(usize, usize)>,
    varying: Vec<String>,
    weak: Vec<String>,
    notes: Vec<String>,
    methods: Vec<MethodRow>,
    /// Rows of the methods that are not Runge–Kutta methods; methods refused for the same reason
    /// share a row.
    structure_preserving: Vec<MethodRow>,
    /// Advice which method to take, and why.
    advice: Vec<String>,
}

impl Report {
    /// Derive the report of a problem.
    pub fn new(problem: &Problem) -> Report {
        let model = &problem.model;
        let field = problem.examined.field.as_ref();
        let templated = problem.examined.rows.as_ref();
        let structure = field.map(|(_, s)| s);
        let rank = match templated {
            Some(rows) => rank_of_rows(model, rows),
            None => field.map(|(f, _)| rank_on_set(model, f)),
        };
        let mut notes = Vec::new();
        if let Some(too_large) = &problem.examined.too_large {
            notes.push(format!("{too_large}; constraints and numbers at the start were checked over the rows of the templates, hidden constraints and ranks were not"));
        }
        if structure.is_some_and(|s| s.hidden.iter().any(|h| h.tangency)) {
            notes.push("the kinetic energy does not feel a constraint's normal: its hidden constraint is G p = 0 (the momentum is tangent)".to_string());
        }
        if let Some(r) = rank.filter(|r| r.least < r.rows) {
            notes.push(format!("the {} invariants have rank {} on the set: they say some things twice, which feedback and correction can bear", r.rows, r.least));
        }
        let survey = survey(model);
        let degrees = degrees_of_freedom(model, structure, problem.examined.redundant.is_empty());
        let held = field.and_then(|(field, _)| {
            let mut held = Field::clone(field);
            held.monitor_only(&problem.examined.varying);
            Held::new(model, &held)
        });
        Report {
            name: problem.name.clone(),
            hamiltonian: model.is_hamiltonian(),
            dimension: model.dimension(),
            degrees_of_freedom: degrees,
            variables: model
                .variables
                .iter()
                .map(|v| {
                    let role = match v.role {
                        Role::Coordinate => "coordinate".to_string(),
                        Role::Momentum(of) => {
                            format!("momentum of {}", model.variables[of].family.name)
                        }
                        Role::State => "state".to_string(),
                    };
                    (v.family.name.clone(), role, v.family.len())
                })
                .collect(),
            constraints: constraint_rows(model, structure),
            mass: mass(model),
            determinant_varies: field.and_then(|(f, _)| {
                let states =
                    [vec![model.initial.clone()], points_on_set(model, f, 3, 0xca11)].concat();
                determinant_varies(model, &states)
            }),
            explicit_time: model.explicit_time,
            invariants: kept_groups(problem).map(|g| gain_name(&g.name, g.kind)).collect(),
            rank,
            nonzeros: match templated {
                Some(rows) => Some((rows.pattern.nonzeros(), rows.count() * rows.dimension)),
                None => field.map(|(f, _)| {
                    (f.jacobian.iter().map(Vec::len).sum(), f.jacobian.len() * f.dimension)
                }),
            },
            operations: match templated {
                Some(rows) => Some(rows.field.operations(rows.parameters)),
                None => field.map(|(f, _)| {
                    Formula::new(&f.graph, &f.field).tape(f.dimension, f.parameters).operations()
                }),
            },
            ways: [
                Way::of_field(model),
                Way::of_step(model, true, 1, false),
                Way::of_step(model, false, 1, false),
                Way::of_step(model, true, 1, true),
            ],
            bases: bases(field.map(|(field, _)| &**field)),
            rows: templated.map(|rows| {
                let pieces = &rows.field.pieces;
                (pieces.len(), pieces.iter().map(|piece| piece.rows).sum())
            }),
            varying: problem.examined.varying.clone(),
            weak: problem.examined.weak_integrals.clone(),
            notes,
            methods: method_rows(problem),
            structure_preserving: structure_preserving_rows(&survey, problem),
            advice: advice(problem, &survey, held, degrees),
        }
    }

    /// The verdict and the advice, in at most ten lines of a terminal.
    pub fn to_text(&self) -> String {
        let mut lines = wrapped(&self.title());
        let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
        for c in &self.constraints {
            let kind = self.kind_of(c);
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, names)) => names.push(&c.name),
                None => kinds.push((kind, vec![&c.name])),
            }
        }
        for (kind, names) in kinds {
            lines.push(listed(&format!("  constraints ({kind}):"), &names));
        }
        let names: Vec<&str> = self.invariants.iter().map(String::as_str).collect();
        match names.is_empty() {
            // Without a field the invariants are not known.
            true if self.operations.is_none() => {}
            true => lines.push(
                "  no invariants are known; state some with `integral`, or let\n  `holonome integrals` search them"
                    .to_string(),
            ),
            false => lines.push(listed("  invariants:", &names)),
        }
        if self.explicit_time {
            lines.push("  the Hamiltonian depends on time: it is no invariant".to_string());
        }
        let applies = |rows: &[MethodRow]| {
            rows.iter().filter(|m| m.applies).map(|m| m.name.clone()).collect::<Vec<_>>()
        };
        let mut methods = Vec::new();
        let (treatments, structure_preserving) =
            (applies(&self.methods), applies(&self.structure_preserving).join(" "));
        if !treatments.is_empty() {
            let of_all = treatments.len() == self.methods.len();
            methods.push(if of_all { "TREATMENT:BASE".to_string() } else { treatments.join(" ") });
        }
        methods.extend(structure_preserving.split_whitespace().map(String::from));
        let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
        if !methods.is_empty() {
            lines.push(listed("  methods:", &methods));
        }
        lines.extend(self.mass.as_ref().map(Mass::line));
        let advice =
            self.advice.iter().map(|line| line.trim()).filter(|line| !line.starts_with(&penalty()));
        let advice: Vec<String> = advice
            .flat_map(|line| {
                wrapped(&format!("{}{line}", if line.starts_with(ADVICE) { "  " } else { "    " }))
            })
            .collect();
        // The last lines matter least.
        lines.truncate(SHORT.saturating_sub(advice.len() + 1).max(1));
        lines.extend(advice);
        let notes = match self.notes.len() {
            0 => String::new(),
            1 => ", a note".to_string(),
            n => format!(", {n} notes"),
        };
        lines.push(format!(
            "  {verbose} tells the rest: ranks, what does not apply and why{notes}",
            verbose = option("verbose")
        ));
        lines.into_iter().map(|line| line + "\n").collect()
    }

    fn title(&self) -> String {
        let mut out = format!("{}: ", self.name);
        out.push_str(if self.hamiltonian { "a Hamiltonian model" } else { "a vector field" });
        out.push_str(&format!(" with {} variables", self.dimension));
        if let Some(dof) = self.degrees_of_freedom {
            let degrees = if dof == 1 { "degree" } else { "degrees" };
            out.push_str(&if self.hamiltonian {
                format!(", {dof} {degrees} of freedom")
            } else {
                format!(" on a manifold of dimension {dof}")
            });
        }
        out
    }

    fn kind_of(&self, c: &ConstraintRow) -> &'static str {
        match (self.hamiltonian, c.holonomic) {
            (false, _) => "the state's manifold",
            (true, true) if c.rheonomic => "holonomic, rheonomic",
            (true, true) => "holonomic",
            (true, false) => "on phase space",
        }
    }

    /// The whole report as text.
    pub fn to_long_text(&self) -> String {
        self.long_text().lines().flat_map(wrapped).map(|line| line + "\n").collect()
    }

    fn long_text(&self) -> String {
        let mut out = format!("{}\n", self.title());
        for (name, role, len) in &self.variables {
            let components =
                if *len == 1 { "1 component".to_string() } else { format!("{len} components") };
            out.push_str(&match role.split_once(' ') {
                Some((role, of)) => format!("  {role} {name} {of}: {components}\n"), // momentum p of q
                None => format!("  {role} {name}: {components}\n"),
            });
        }
        for c in &self.constraints {
            let kind = self.kind_of(c);
            let members = if c.members == 1 {
                String::new()
            } else {
                format!(" ({} members, {} scalar equations)", c.members, c.scalars)
            };
            out.push_str(&format!(
                "  constraint {}{members}: {kind}{}",
                c.name,
                if c.class.is_empty() { String::new() } else { format!(", {}", c.class) }
            ));
            if let Some(hidden) = c.hidden {
                out.push_str(&format!("; hidden constraint {hidden}"));
            }
            out.push('\n');
        }
        if let Some(m) = &self.mass {
            out.push_str(&m.line());
            out.push('\n');
        }
        if let Some(varies) = self.determinant_varies {
            out.push_str(&match varies {
                true => format!("  det G M^-1 G^T varies: in a heat bath rods are not what stiff springs come to; {} adds Fixman's potential\n", option("fixman").of("on")),
                false => "  det G M^-1 G^T is constant as far as seen: in a heat bath stiff springs come to the rods\n".to_string(),
            });
        }
        if self.explicit_time {
            out.push_str("  the Hamiltonian depends on time: it is no invariant\n");
        }
        if !self.invariants.is_empty() {
            out.push_str(&format!(
                "  invariants (names for {gain}): {}\n",
                self.invariants.join(", "),
                gain = option("gain")
            ));
        }
        if let (Some(r), Some((nonzeros, dense))) = (self.rank, self.nonzeros)
            && r.rows > 0
        {
            out.push_str(&format!(
                "  their Jacobian: rank {} of {}, {nonzeros} of {dense} entries\n",
                r.least, r.rows
            ));
            out.push_str(&format!("  feedback's assumptions (2016): {}\n", self.assumptions(r)));
        }
        if let Some(operations) = self.operations {
            let form = self.rows.map(|(templates, rows)| {
                let templates = if templates == 1 {
                    "1 template".to_string()
                } else {
                    format!("{templates} templates")
                };
                format!(", templated: {templates} over {rows} rows")
            });
            out.push_str(&format!(
                "  the field takes {operations} operations{}\n",
                form.unwrap_or_default()
            ));
        }
        out.push_str(&format!("  field and invariants: {}\n", self.ways[0]));
        if self.hamiltonian {
            out.push_str(&format!(
                "  steps of explicit structure-preserving methods: {}\n  of others: {}\n  unrolled, fixed steps are \
                 a loop of machine code where that takes no more than {LONGEST_LOOP} operations\n",
                self.ways[1], self.ways[2]
            ));
            if self.ways[3].templated != self.ways[1].templated {
                out.push_str(&format!("  those of explicit ones in sweeps: {}\n", self.ways[3]));
            }
        }
        if !self.weak.is_empty() {
            out.push_str(&format!(
                "  constant on the constraint set only: {} (corrected there; feedback guarantees no decay for them)\n",
                self.weak.join(", ")
            ));
        }
        for note in &self.notes {
            out.push_str(&format!("  note: {note}\n"));
        }
        out.push_str("  methods:\n");
        for m in &self.methods {
            out.push_str(&format!(
                "    {} {}: {}\n",
                if m.applies { "yes" } else { "no " },
                m.name,
                m.reason
            ));
        }
        if self.methods.iter().any(|m| m.applies) {
            out.push_str(&format!("    BASE is one of {}\n", self.bases.join(" ")));
        }
        for m in &self.structure_preserving {
            let note = if m.reason.is_empty() { String::new() } else { format!(": {}", m.reason) };
            out.push_str(&format!(
                "    {} {}{note}\n",
                if m.applies { "yes" } else { "no " },
                m.name
            ));
        }
        for advice in &self.advice {
            out.push_str(&format!("  {advice}\n"));
        }
        out
    }

    /// Assumptions A1 to A3 of the 2016 paper, as far as they can be checked.
    fn assumptions(&self, r: Rank) -> String {
        let a1 = match (self.varying.is_empty(), self.weak.is_empty()) {
            (false, _) => {
                format!("A1 fails for {} (not constant along X)", self.varying.join(", "))
            }
            (true, true) => {
                "A1 holds (V does not grow along X at random ambient points)".to_string()
            }
            (true, false) => format!("A1 holds on the set only for {}", self.weak.join(", ")),
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

    /// The report as JSON, for programs.
    pub fn to_json(&self) -> Value {
        let mut all = json!({
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
            "determinant_varies": self.determinant_varies,
            "separable": self.mass.as_ref().map(|m| m.separable),
            "explicit_time": self.explicit_time,
            "invariants": self.invariants,
            "rank": self.rank.map(|r| json!({"rank": r.least, "largest": r.largest, "count": r.rows, "points": r.points})),
            "assumptions": self.rank.map(|r| self.assumptions(r)),
            "jacobian": self.nonzeros.map(|(nonzeros, dense)| json!({"nonzeros": nonzeros, "dense": dense})),
            "operations": self.operations,
            "varying": self.varying,
            "weak_integrals": self.weak,
            "notes": self.notes,
            "advice": self.advice,
            "methods": self.methods.iter().chain(&self.structure_preserving).map(|m| json!({"name": m.name, "applies": m.applies, "reason": m.reason})).collect::<Vec<_>>(),
        });
        if let (Some((templates, rows)), Some(object)) = (self.rows, all.as_object_mut()) {
            object.insert("rows".to_string(), json!({"templates": templates, "rows": rows}));
        }
        all
    }
}

fn degrees_of_freedom(
    model: &Model,
    structure: Option<&Structure>,
    regular: bool,
) -> Option<usize> {
    let scalars: usize = model.constraints.iter().map(|c| c.members * c.components.len()).sum();
    if !regular {
        return None;
    }
    if !model.is_hamiltonian() {
        return model.dimension().checked_sub(scalars);
    }
    if model.constraints.is_empty() {
        return Some(model.degrees());
    }
    match structure?.kind {
        ConstraintKind::Free => Some(model.degrees()),
        ConstraintKind::Holonomic | ConstraintKind::Coisotropic => {
            model.degrees().checked_sub(scalars)
        }
        ConstraintKind::SecondClass => (2 * model.degrees()).checked_sub(scalars).map(|d| d / 2),
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
                Some(ConstraintKind::SecondClass) => "second class",
                Some(ConstraintKind::Coisotropic) => {
                    "coisotropic, second class with its hidden constraint"
                }
                Some(ConstraintKind::Holonomic) => "second class with its hidden constraint",
                _ => "",
            };
            let formula =
                own.first().map(|h| match (h.tangency, holonomic, c.depends & TIME != 0) {
                    (true, ..) => "G p = 0",
                    (false, true, false) => "G H_p = 0",
                    (false, true, true) => "G H_p + g_t = 0",
                    (false, false, _) => "{g, H} = 0",
                });
            ConstraintRow {
                name: c.name.clone(),
                members: c.members,
                scalars,
                holonomic,
                rheonomic: c.depends & TIME != 0,
                class,
                hidden: formula,
            }
        })
        .collect()
}

/// True if a node depends on an input that `select` chooses.
fn moves(g: &Graph, node: Node, select: impl Fn(Input) -> bool) -> bool {
    g.reachable(&[node])
        .iter()
        .any(|&n| matches!(g.expression(n), Expression::Input(input) if select(input)))
}

fn mass(model: &Model) -> Option<Mass> {
    let Dynamics::Hamiltonian(h, _) = &model.dynamics else { return None };
    let n = model.degrees() as u32;
    let mut result = Mass { constant: true, diagonal: true, separable: true };
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

/// Groups of a model's invariants, from whichever form its field has.
fn groups(problem: &Problem) -> &[InvariantGroup] {
    match (&problem.examined.field, &problem.examined.rows) {
        (Some((field, _)), _) => &field.groups,
        (None, Some(field)) => &field.groups,
        (None, None) => &[],
    }
}

/// Groups of what the motion keeps: all but claims that vary.
fn kept_groups(problem: &Problem) -> impl Iterator<Item = &InvariantGroup> {
    groups(problem).iter().filter(|g| !problem.examined.varying.contains(&g.name))
}

/// Rows of the schemes that are not Runge–Kutta ones, suitable ones first.
fn structure_preserving_rows(
    survey: &[(&'static Scheme, Option<String>)],
    problem: &Problem,
) -> Vec<MethodRow> {
    let redundant = !problem.examined.redundant.is_empty();
    let refused = |(scheme, reason): &(&'static Scheme, Option<String>)| {
        let constrained = redundant
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

/// First word of advice.
const ADVICE: &str = "advice:";

/// First words of the advice on penalties.
fn penalty() -> String {
    format!("{} is for", option("penalty"))
}

/// Reason why a model whose constraints depend on each other has no multipliers.
const DEPENDENT: &str =
    "the constraints depend on each other at the start, so that they determine no multipliers";

/// Integrals that are held on the constraint set, at a random point of it.
#[derive(Clone, Copy)]
struct Held {
    /// Number of independent ones.
    independent: usize,
    /// Rank of their brackets, which are Dirac brackets if there are constraints; 0 for a field,
    /// which has none.
    brackets: usize,
}

impl Held {
    /// The ranks at random points of the set; `None` if there are too many rows.
    fn new(model: &Model, field: &Field) -> Option<Held> {
        const MOST_ROWS: usize = 300;
        let monitored: Vec<usize> = field
            .groups
            .iter()
            .filter(|g| g.monitored_only)
            .flat_map(|g| g.members.rows())
            .map(|(row, _)| row)
            .collect();
        let rows: Vec<usize> =
            (0..field.invariants.len()).filter(|row| !monitored.contains(row)).collect();
        if rows.len() > MOST_ROWS {
            return None;
        }
        let constraints = rows.iter().filter(|&&row| row < field.constraints).count();
        let gradients: Vec<_> = rows.iter().map(|&row| &field.jacobian[row]).collect();
        let probe =
            Probe::new(&field.graph, &[], &gradients, field.dimension, &model.parameter_values);
        let scales = Scales::new(model);
        let points = points_on_set(model, field, 5, 0xb7ac);
        let random = if points.len() > 1 { &points[1..] } else { &points };
        let at = |x: &Vec<f64>| {
            let df = probe.at(0.0, x).1;
            let gram = Gram::new(&in_units(&df, &scales.units(x)), 0.0);
            let brackets = if model.is_hamiltonian() {
                rank_of_brackets(&df, model.degrees())
            } else {
                constraints
            };
            // {F, F} = (C, B; −Bᵀ, D) with regular C of the constraints: its Schur complement has
            // the Dirac brackets.
            Held {
                independent: (rows.len() - gram.dependent().len()).saturating_sub(constraints),
                brackets: brackets.saturating_sub(constraints),
            }
        };
        // Ranks fall at special points only.
        random.iter().map(at).max_by_key(|held| (held.independent, held.brackets))
    }

    /// True if errors grow like T when these integrals are held: the motion is then conditionally
    /// periodic, with frequencies that are functions of them (Mishchenko, Fomenko 1978; n commuting
    /// ones are Liouville's case).
    fn all_actions(&self, degrees: usize) -> bool {
        2 * self.independent >= 2 * degrees + self.brackets
    }
}

/// Rank of the Poisson brackets of functions with these gradients.
fn rank_of_brackets(gradients: &[Row], degrees: usize) -> usize {
    // Brackets that vanish on the set are computed there only as precisely as the points lie on it.
    const ROUNDING: f64 = 1e-9;
    let (n, m) = (degrees as u32, gradients.len());
    let conjugate = |row: &Row| -> Row {
        let (q, p) = row.split_at(row.partition_point(|&(i, _)| i < n));
        let (q, p) = (q.iter().map(|&(i, d)| (i + n, -d)), p.iter().map(|&(i, d)| (i - n, d)));
        p.chain(q).collect()
    };
    let conjugates: Vec<Row> = gradients.iter().map(conjugate).collect();
    let mut brackets: Vec<f64> =
        (0..m * m).map(|k| dot(&gradients[k / m], &conjugates[k % m])).collect();
    let size = |row: &Row| -> Row { row.iter().map(|&(i, d)| (i, d.abs())).collect() };
    let (left, right): (Vec<Row>, Vec<Row>) =
        gradients.iter().map(size).zip(conjugates.iter().map(size)).unzip();
    rank::drop_rounding(&mut brackets, |i, j| dot(&left[i], &right[j]), m, ROUNDING);
    rank::rank_in_any_units(&brackets, m, ROUNDING)
}

/// Advice which method to take: a correction that holds all actions lets errors grow like T;
/// without one only a symplectic method does. Advised methods suit the model.
fn advice(
    problem: &Problem,
    survey: &[(&'static Scheme, Option<String>)],
    held: Option<Held>,
    degrees: Option<usize>,
) -> Vec<String> {
    let model = &problem.model;
    let penalised = || {
        penalise(model, 1.0)
            .is_ok_and(|model| suited(&step::survey(&Derived::new(model)), "stormer-verlet-a"))
    };
    if !problem.examined.redundant.is_empty() {
        return advice_on_dependence(&problem.examined.dependence, &penalised);
    }
    if problem.examined.too_large.is_some() {
        return vec![format!(
            "advice: make the model smaller with {set}, or split it",
            set = option("set")
        )];
    }
    let mut advice = Vec::new();
    if !problem.examined.varying.is_empty() && !problem.settings.allow_unverified {
        advice.push(format!(
            "advice: correct or leave out {} first, or run with {allow_unverified}: what varies is not held",
            problem.examined.varying.join(", "),
            allow_unverified = option("allow_unverified")
        ));
    }
    advice.extend(advice_on_methods(problem, survey, held, degrees));
    if let Some((name, _)) = explicit(problem).filter(|_| problem.examined.rows.is_none()) {
        let accurate = name.replace("dop853", "gauss16");
        advice.push(format!(
            "        {accurate} for errors below about 1e-6, where nothing is stiff"
        ));
    }
    let penalty = format!(
        "        {} redundant constraints, stiff potentials, or a fixed cost per step",
        penalty()
    );
    let holonomic = |q: &Quantity| q.depends & MOMENTUM == 0;
    if model.is_hamiltonian()
        && !model.constraints.is_empty()
        && model.constraints.iter().all(holonomic)
        && penalised()
    {
        advice.push(penalty);
    }
    advice
}

/// Advice for constraints that depend on each other at the start.
fn advice_on_dependence(dependence: &Dependence, penalised: &dyn Fn() -> bool) -> Vec<String> {
    if !dependence.singular.is_empty() {
        return vec![
            format!(
                "advice: write {} another way, or start elsewhere: the constraints are singular",
                dependence.singular.join(", ")
            ),
            "        with fewer constraints the model is another one, and a penalty converges slowly".to_string(),
        ];
    }
    let at_once = if dependence.implied.len() > 1 {
        ", all at once and nothing else"
    } else {
        ", nothing else"
    };
    let leave_out = format!("leave out {}{at_once}", dependence.implied.join(", "));
    match penalised() {
        true => vec![
            format!("advice: {leave_out}; or a penalty: the constraints are redundant"),
            format!(
                "        {method} {step} {penalty}",
                method = option("method").of("gauss4"),
                step = option("step").of("H"),
                penalty = option("penalty").of("auto")
            ),
        ],
        false => {
            vec![format!("advice: {leave_out}: redundant constraints determine no multipliers")]
        }
    }
}

fn suited(survey: &[(&'static Scheme, Option<String>)], name: &str) -> bool {
    survey.iter().any(|(scheme, reason)| scheme.name == name && reason.is_none())
}

/// The explicit method that suits a model best, with the names of the integrals that it holds;
/// `None` if none suits.
fn explicit(problem: &Problem) -> Option<(&'static str, Vec<String>)> {
    let moves = problem.model.constraints.iter().any(|c| c.depends & TIME != 0);
    if problem.examined.rows.is_some() && moves && unrolled::fits(&problem.model).is_err() {
        return None; // the forces of constraints that move are unrolled
    }
    let held: Vec<String> = kept_groups(problem)
        .filter(|g| !g.monitored_only)
        .map(|g| gain_name(&g.name, g.kind))
        .collect();
    Some((if held.is_empty() { "plain:dop853" } else { "corrected:dop853" }, held))
}

/// Advice on the methods of a model that can be run; see [`advice`].
fn advice_on_methods(
    problem: &Problem,
    survey: &[(&'static Scheme, Option<String>)],
    held: Option<Held>,
    degrees: Option<usize>,
) -> Vec<String> {
    let hamiltonian = problem.model.is_hamiltonian();
    let symplectic = ["cayley-symmetric", "rattle", "stormer-verlet-a"]
        .into_iter()
        .find(|name| suited(survey, name));
    let explicit = explicit(problem);
    let count =
        |n: usize, what: &str, many: &str| format!("{n} {}", if n == 1 { what } else { many });
    let known = held.zip(degrees).map(|(held, degrees)| {
        let mut integrals =
            count(held.independent, "independent integral", "independent integrals");
        if held.brackets > 0 {
            integrals.push_str(&format!(" (their brackets have rank {})", held.brackets));
        }
        if hamiltonian {
            let freedom = count(degrees, "degree of freedom", "degrees of freedom");
            return (held.all_actions(degrees), format!("{integrals} of {freedom}"));
        }
        // On a curve all errors are errors in time. A rigid body's field preserves a volume, so its
        // motion is conditionally periodic on a surface, too (Jacobi's last multiplier).
        let left = degrees.saturating_sub(held.independent);
        let all = left <= 1 || left == 2 && symplectic.is_some();
        (all, format!("{integrals} on a manifold of dimension {degrees}"))
    });
    if let (Some((name, held)), Some((true, integrals))) = (&explicit, &known)
        && !held.is_empty()
    {
        return vec![
            format!("advice: {name}, for short runs and for long ones"),
            format!("        it holds {integrals}: all actions, so that errors grow like T"),
        ];
    }
    let pace = Pace::new(problem);
    let growth = "a correction's error grows like T², a symplectic method's like T";
    match (symplectic, explicit) {
        (None, None) => {
            vec![format!("advice: no method suits this model: make it smaller with {set}", set = option("set"))]
        }
        (Some(symplectic), None) => vec![format!("advice: suzuki4({symplectic})")],
        (None, Some((name, held))) => vec![
            format!("advice: {name}: no method for long runs of Hamiltonian models suits this one"),
            match held.is_empty() {
                true => "        state the integrals that you know: those that are corrected cannot drift".to_string(),
                false => format!("        it holds {}; state what other integrals you know", held.join(", ")),
            },
        ],
        (Some(_), Some((name, _))) if pace.is_some_and(|pace| pace.uneven().is_some()) => vec![
            format!("advice: {name}, for short runs and for long ones"),
            format!(
                "        the steps that the motion needs vary by a factor of {:.0e} along it: equal steps, which symplectic methods need, would all be the shortest",
                pace.and_then(Pace::uneven).unwrap_or(1.0)
            ),
        ],
        (Some(symplectic), Some((name, _))) => vec![
            format!(
                "advice: suzuki4({symplectic}){} for long runs, {name} for short or very accurate ones",
                pace.map_or(String::new(), |pace| format!(
                    " {}",
                    option("step").with(format_args!("{:.0e}", pace.equal_step()))
                ))
            ),
            // For many constraints the rank is not determined.
            match known {
                Some((_, integrals)) => format!("        {integrals} cannot hold all actions: {growth}"),
                None => format!("        unless it holds all actions, {growth}"),
            },
        ],
    }
}

fn method_rows(problem: &Problem) -> Vec<MethodRow> {
    let refusal = match (&problem.examined.too_large, problem.examined.redundant.is_empty()) {
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
