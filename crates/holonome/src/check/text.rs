//! Report of a model as text: short, and whole.

use super::advice::{ADVICE, penalty};
use super::{
    ClassRow, ConstraintRole, ConstraintRow, Jacobian, MassMatrix, MethodRow, ModelKind, OrbitRow,
    Rank, Report, TemplateRows, VariableRow,
};
use crate::policy::LONGEST_LOOP;
use holonome_integrate::method::TREATMENTS;
use holonome_words::option;

/// Line on a Hamiltonian that depends on the time.
const OF_TIME: &str = "  the Hamiltonian depends on time: it is no invariant";

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

impl Report {
    /// The verdict and the advice, in at most ten lines of a terminal.
    pub fn to_text(&self) -> String {
        let mut lines = wrapped(&self.title());
        let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
        for c in &self.constraints {
            let kind = c.words();
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, names)) => names.push(&c.name),
                None => kinds.push((kind, vec![&c.name])),
            }
        }
        for (kind, names) in kinds {
            lines.push(listed(&format!("  constraints ({kind}):"), &names));
        }
        lines.extend(self.poisson.as_ref().map(|poisson| poisson.line(self.dimension)));
        if !self.test_bodies.is_empty() {
            let names: Vec<&str> = self.test_bodies.iter().map(String::as_str).collect();
            lines.push(listed("  test bodies, whose momentum is their velocity:", &names));
        }
        lines.extend(self.orbits_line());
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
        lines.extend(self.units_line());
        if self.explicit_time {
            lines.push(OF_TIME.to_string());
        }
        let (treatments, schemes) = self.methods.split_at(TREATMENTS.len());
        let applying = |rows: &'_ [MethodRow]| {
            let names = rows.iter().filter(|m| m.applies).map(|m| m.name.clone());
            names.collect::<Vec<_>>().join(" ")
        };
        let of_all = treatments.iter().all(|m| m.applies);
        let treatments = if of_all { "TREATMENT:BASE".to_string() } else { applying(treatments) };
        let schemes = applying(schemes);
        let mut methods: Vec<&str> = schemes.split_whitespace().collect();
        if !treatments.is_empty() {
            methods.insert(0, &treatments);
        }
        if !methods.is_empty() {
            lines.push(listed("  methods:", &methods));
        }
        lines.extend(self.mass_line());
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

    /// Line on the units of what has one.
    fn units_line(&self) -> Option<String> {
        let of = self.units.iter().map(|(name, unit)| format!("{name} in {unit}"));
        let of: Vec<String> = of.collect();
        let of: Vec<&str> = of.iter().map(String::as_str).collect();
        (!of.is_empty()).then(|| listed("  units:", &of))
    }

    fn title(&self) -> String {
        let hamiltonian = self.kind == ModelKind::Hamiltonian;
        let what = match self.kind {
            ModelKind::Hamiltonian => "a Hamiltonian model",
            ModelKind::Poisson => "a Poisson system",
            ModelKind::Field => "a vector field",
        };
        let degrees = self.degrees_of_freedom.map_or(String::new(), |degrees| {
            let ending = if degrees == 1 { "" } else { "s" };
            match hamiltonian {
                true => format!(", {degrees} degree{ending} of freedom"),
                false => format!(" on a manifold of dimension {degrees}"),
            }
        });
        format!("{}: {what} with {} variables{degrees}", self.model, self.dimension)
    }

    fn mass_line(&self) -> Option<String> {
        let mass = match self.mass_matrix? {
            MassMatrix { constant: true, diagonal: true } => "constant and diagonal",
            MassMatrix { constant: true, .. } => "constant",
            MassMatrix { .. } => "depends on the state",
        };
        let separable = self.separable?;
        let kind = if separable { "separable, H = T(p) + V(q)" } else { "not separable" };
        Some(format!("  mass matrix {mass}; {kind}"))
    }

    /// Summary of the motions of Kepler.
    fn orbits_line(&self) -> Option<String> {
        let largest = |of: fn(&OrbitRow) -> f64| self.orbits.iter().map(of).fold(0.0, f64::max);
        let count = match self.orbits.len() {
            0 => return None,
            1 => "a motion of Kepler".to_string(),
            count => format!("{count} motions of Kepler"),
        };
        let coupled = match largest(|orbit| orbit.coupling) {
            0.0 => "not coupled".to_string(),
            coupling => format!("coupled by {coupling:.0e}"),
        };
        let eccentricity = largest(|orbit| orbit.eccentricity);
        Some(format!("  {count}, {coupled}, eccentricities up to {eccentricity:.3}"))
    }

    /// The whole report as text.
    pub fn to_long_text(&self) -> String {
        let mut lines = vec![self.title()];
        lines.extend(self.variables.iter().map(VariableRow::line));
        for constraint in &self.constraints {
            lines.push(constraint.line());
            lines.extend(constraint.classes.iter().skip(1).map(ClassRow::line));
        }
        lines.extend(self.dimension_left.map(|left| {
            format!("  the constraints leave a set of dimension {left} of {}", self.dimension)
        }));
        lines.extend(self.poisson.as_ref().map(|poisson| poisson.line(self.dimension)));
        lines.extend(self.orbits.iter().map(OrbitRow::line));
        if self.orbits.len() > 1 {
            lines.extend(SPLITTINGS.map(str::to_string));
        }
        lines.extend(self.dynamics());
        lines.extend(self.jacobian_lines());
        lines.extend(self.computation());
        if !self.weak_integrals.is_empty() {
            lines.push(format!(
                "  constant on the constraint set only: {} (corrected there; feedback guarantees no decay for them)",
                self.weak_integrals.join(", ")
            ));
        }
        lines.extend(self.notes.iter().map(|note| format!("  note: {note}")));
        lines.extend(self.method_lines());
        lines.extend(self.advice.iter().map(|advice| format!("  {advice}")));
        lines.iter().flat_map(|line| wrapped(line)).map(|line| line + "\n").collect()
    }

    /// Meanings of the words that [`Report::to_long_text`] uses, a line each, for readers who do not
    /// know them.
    pub fn plain_words(&self) -> String {
        let kind = |role: ConstraintRole| self.constraints.iter().any(|c| c.kind == role);
        let class = |word: &str| self.constraints.iter().any(|c| c.class.contains(word));
        let words = [
            (kind(ConstraintRole::Holonomic), "holonomic: an equation between positions alone"),
            (
                self.constraints.iter().any(|c| c.hidden.is_some()),
                "hidden constraint: what the velocities have to obey so that a constraint stays met, its derivative by time",
            ),
            (kind(ConstraintRole::PhaseSpace), "on phase space: an equation that contains momenta"),
            (kind(ConstraintRole::Rolling), "rolling: an equation between velocities"),
            (
                class("second class"),
                "second class: the motion determines the force of the constraint; A with B: staying on A determines the force of B, and the reverse",
            ),
            (
                class("coisotropic"),
                "coisotropic: the constraints do not move each other, as equations between positions do not",
            ),
            (
                self.dimension_left.is_some(),
                "set of a dimension: so many numbers of the state can be chosen freely at the start, the others follow",
            ),
            (
                self.poisson.is_some(),
                "Casimir function: a quantity that is constant whatever the energy is, as the length of a spin",
            ),
            (
                self.mass_matrix.is_some(),
                "mass matrix: what multiplies the velocities in the momenta; separable: kinetic energy of the momenta, potential energy of the positions, so that many methods need not solve equations",
            ),
            (
                !self.invariants.is_empty(),
                "invariants: quantities that stay constant; the treatments corrected, projection and feedback hold them",
            ),
            (
                self.rank.is_some_and(|rank| rank.rows > 0),
                "rank of their Jacobian: how many invariants are independent of each other; A1, A2, A3: assumptions of the theorem on the method feedback, and of no other",
            ),
            (
                !self.weak_integrals.is_empty(),
                "constant on the constraint set only: constant along motions that meet the constraints",
            ),
            (
                self.operations.is_some(),
                "operations: the cost of one evaluation of the equations of motion; unrolled: every formula by itself; templated: one formula for all members of a family",
            ),
        ];
        let used = words.iter().filter(|(used, _)| *used);
        used.flat_map(|(_, word)| wrapped(&format!("  {word}"))).map(|line| line + "\n").collect()
    }

    /// Lines on the mass matrix, the constraints' determinant, the time and the invariants.
    fn dynamics(&self) -> Vec<String> {
        let mut lines = Vec::from_iter(self.mass_line());
        lines.extend(self.determinant_varies.map(|varies| match varies {
            true => format!("  det G M^-1 G^T varies: in a heat bath rods are not what stiff springs come to; {} adds Fixman's potential", option("fixman").of("on")),
            false => "  det G M^-1 G^T is constant as far as seen: in a heat bath stiff springs come to the rods".to_string(),
        }));
        lines.extend(self.explicit_time.then(|| OF_TIME.to_string()));
        if !self.invariants.is_empty() {
            let (gain, names) = (option("gain"), self.invariants.join(", "));
            lines.push(format!("  invariants (names for {gain}): {names}"));
        }
        lines
    }

    fn jacobian_lines(&self) -> Vec<String> {
        let rank = self.rank.filter(|rank| rank.rows > 0);
        let (Some(rank), Some(Jacobian { nonzeros, dense })) = (rank, self.jacobian) else {
            return Vec::new();
        };
        let Rank { least, rows, .. } = rank;
        vec![
            format!("  their Jacobian: rank {least} of {rows}, {nonzeros} of {dense} entries"),
            format!(
                "  feedback's assumptions (2016): {}",
                self.assumptions.as_deref().unwrap_or_default()
            ),
        ]
    }

    /// Lines on how the field and steps are computed.
    fn computation(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(operations) = self.operations {
            let form = self.rows.map_or(String::new(), |TemplateRows { templates, rows }| {
                let ending = if templates == 1 { "" } else { "s" };
                format!(", templated: {templates} template{ending} over {rows} rows")
            });
            lines.push(format!("  the field takes {operations} operations{form}"));
        }
        let [field, explicit, others, explicit_in_sweeps, others_in_sweeps] = &self.ways;
        lines.push(format!("  field and invariants: {field}"));
        if self.kind == ModelKind::Hamiltonian {
            lines.extend([
                format!("  steps of explicit structure-preserving methods: {explicit}"),
                format!("  of others: {others}"),
                format!("  unrolled, fixed steps are a loop of machine code where that takes no more than {LONGEST_LOOP} operations"),
            ]);
            if explicit_in_sweeps.templated != explicit.templated {
                lines.push(format!("  those of explicit ones in sweeps: {explicit_in_sweeps}"));
            }
            if others_in_sweeps.templated != others.templated {
                lines.push(format!("  those of others in sweeps: {others_in_sweeps}"));
            }
        }
        lines
    }

    /// Lines on the methods, those that apply and those that do not.
    fn method_lines(&self) -> Vec<String> {
        let yes = |m: &MethodRow| if m.applies { "yes" } else { "no " };
        let (treatments, schemes) = self.methods.split_at(TREATMENTS.len());
        let mut lines = vec!["  methods:".to_string()];
        lines.extend(treatments.iter().map(|m| format!("    {} {}: {}", yes(m), m.name, m.reason)));
        if treatments.iter().any(|m| m.applies) {
            lines.push(format!("    BASE is one of {}", self.bases.join(" ")));
        }
        lines.extend(schemes.iter().map(|m| {
            let note = if m.reason.is_empty() { String::new() } else { format!(": {}", m.reason) };
            format!("    {} {}{note}", yes(m), m.name)
        }));
        lines
    }
}

impl VariableRow {
    fn line(&self) -> String {
        let VariableRow { name, role, components } = self;
        let ending = if *components == 1 { "" } else { "s" };
        match role.split_once(' ') {
            Some((role, of)) => format!("  {role} {name} {of}: {components} component{ending}"), // momentum p of q
            None => format!("  {role} {name}: {components} component{ending}"),
        }
    }
}

impl ConstraintRow {
    /// Its kind in words.
    fn words(&self) -> &'static str {
        match self.kind {
            ConstraintRole::Manifold => "the state's manifold",
            ConstraintRole::Holonomic if self.rheonomic => "holonomic, rheonomic",
            ConstraintRole::Holonomic => "holonomic",
            ConstraintRole::PhaseSpace => "on phase space",
            ConstraintRole::Rolling => match self.integrable {
                None => "rolling",
                Some(false) => "rolling, not integrable",
                Some(true) => "rolling, integrable: could be on positions",
            },
        }
    }

    fn line(&self) -> String {
        let ConstraintRow { name, members, scalars, redundant, class, .. } = self;
        let mut line = format!("  constraint {name}");
        if *members != 1 {
            line.push_str(&format!(" ({members} members, {scalars} scalar equations)"));
        }
        if *redundant > 0 {
            line.push_str(&format!(", {redundant} redundant"));
        }
        line.push_str(&format!(": {}", self.words()));
        if !class.is_empty() {
            line.push_str(&format!(", {class}"));
        }
        if let Some(own) = self.classes.first().filter(|own| !own.with.is_empty()) {
            line.push_str(&format!(" with {}", own.with.join(", ")));
        }
        if let Some(hidden) = self.hidden {
            line.push_str(&format!("; hidden constraint {hidden}"));
        }
        line
    }
}

impl ClassRow {
    fn line(&self) -> String {
        let order = match self.order {
            1 => String::new(),
            2 => " of second order".to_string(),
            3 => " of third order".to_string(),
            order => format!(" of order {order}"),
        };
        let count = if self.scalars == 1 {
            String::new()
        } else {
            format!(" ({} scalar equations)", self.scalars)
        };
        let with = match self.with.is_empty() {
            true => String::new(),
            false => format!(", second class with {}", self.with.join(", ")),
        };
        format!("    {}{count}: hidden{order}{with}", self.name)
    }
}

/// What splittings into motions of Kepler do.
const SPLITTINGS: [&str; 2] = [
    "  kepler-splitting takes these in Jacobi coordinates, democratic-kepler-splitting in democratic heliocentric ones",
    "  where bodies come within four radii of Hill of each other, gauss16 makes the step",
];

impl OrbitRow {
    fn line(&self) -> String {
        let OrbitRow { of, about, semi_major_axis, eccentricity, period, coupling } = self;
        let period =
            period.map_or("not bound".to_string(), |period| format!("period {period:.4e}"));
        format!(
            "  motion of Kepler: {of} about {about}, semi-major axis {semi_major_axis:.4e}, eccentricity {eccentricity:.4}, {period}, coupling {coupling:.0e}"
        )
    }
}
