//! Check for constraints whose gradients or brackets are rank deficient.

use crate::elaborate::model::{Model, Quantity};
use crate::scales::{Scales, in_units};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::treatment::structure::{Irregular, Values, onto_zeros, spread_around};
use holonome_linear::gram::{Gram, Row};
use holonome_words::option;

/// Part of its size by which a component of a nearby point moves. Constraints that hold to first
/// order only are off there by its square, or a higher power.
const NEARBY: f64 = 0.02;

/// Number of nearby points.
const POINTS: usize = 3;

/// Part of its terms up to which a constraint counts as met at a nearby point, which lies on the
/// others' set to rounding: far below any small power of [`NEARBY`].
const MET: f64 = 1e-9;

/// Length of a gradient on the constraint set, as a part of that beside it, below which it vanishes
/// on the set.
const VANISHED: f64 = 1e-4;

/// Constraints whose gradients at the initial state depend on those of the others.
#[derive(Clone, Debug, Default)]
pub struct Dependence {
    /// Components that the other constraints imply; without them, all left out at once, the model
    /// is the same.
    pub implied: Vec<String>,
    /// Components that the other constraints do not imply: the configuration is singular.
    pub singular: Vec<String>,
}

impl Dependence {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.implied.is_empty() && self.singular.is_empty()
    }
}

/// A scalar constraint: the quantity, its member and its component.
#[derive(Clone, Copy)]
struct Scalar<'a> {
    quantity: &'a Quantity,
    member: usize,
    offset: usize,
}

impl Scalar<'_> {
    fn member_name(&self) -> String {
        self.quantity.member_name(self.member)
    }

    /// Name as an index would write it: `a[2]`, `d[3,4]`, `joint[3][2]`.
    fn name(&self) -> String {
        let suffix = match self.quantity.shape.dimensions()[..] {
            [_, columns] => {
                format!("[{},{}]", self.offset / columns + 1, self.offset % columns + 1)
            }
            [_] => format!("[{}]", self.offset + 1),
            _ => String::new(),
        };
        self.member_name() + &suffix
    }
}

/// Reports constraints whose gradients depend on those of the others at the initial state, which
/// lies on the set. `functions` gives the values and gradients of the constraints at (t, x).
///
/// A constraint that depends on the others there is redundant if it holds wherever they hold.
/// Whether it does is seen at nearby points of their set; near the initial state they are
/// independent.
pub(super) fn redundancy(
    model: &Model,
    scales: &Scales,
    functions: &dyn Fn(f64, &[f64]) -> Values,
    out: &mut Vec<Diagnostic>,
) -> Dependence {
    let x = &model.initial;
    let units = scales.units(x);
    let rows = in_units(&functions(model.t0, x).1, &units);
    // In their own order the constraints of a tree fill in the factor, so the test takes another
    // order.
    if Gram::new(&rows, 0.0).dependent().is_empty() {
        return Dependence::default();
    }
    let gram = Gram::in_order(&rows);
    let dependent = gram.dependent();
    let near = Nearby::new((model, scales), &units, functions, &dependent);
    let scalars: Vec<Scalar> = model
        .constraints
        .iter()
        .flat_map(|quantity| {
            let of = move |member| {
                let scalar = move |component: &crate::elaborate::model::Component| Scalar {
                    quantity,
                    member,
                    offset: component.offset,
                };
                quantity.components.iter().map(scalar)
            };
            (0..quantity.members).flat_map(of)
        })
        .collect();
    let others = |row: usize| {
        gram.combination(row).into_iter().map(|(other, _)| scalars[other]).collect::<Vec<_>>()
    };
    let (implied, singular): (Vec<usize>, Vec<usize>) =
        dependent.iter().partition(|&&row| near.implies(row));
    if !implied.is_empty() {
        let by: Vec<Scalar> = implied.iter().flat_map(|&row| others(row)).collect();
        out.push(redundant(&implied.iter().map(|&row| scalars[row]).collect::<Vec<_>>(), &by));
    }
    for &row in &singular {
        out.push(singular_at(scalars[row], &others(row), near.regular));
    }
    let names = |rows: &[usize]| rows.iter().map(|&row| scalars[row].name()).collect();
    Dependence { implied: names(&implied), singular: names(&singular) }
}

/// Constraints at points near the initial state.
struct Nearby {
    /// Rows that do not vanish on the set of the independent ones.
    not_implied: Vec<usize>,
    /// True if more constraints are independent at points of the set of all.
    regular: bool,
}

impl Nearby {
    fn new(
        (model, scales): (&Model, &Scales),
        units: &[f64],
        functions: &dyn Fn(f64, &[f64]) -> Values,
        dependent: &[usize],
    ) -> Nearby {
        let size = |row: &Row| row.iter().map(|&(i, d)| d.abs() * units[i as usize]).sum::<f64>();
        let independent = |t: f64, x: &[f64]| {
            let (values, rows) = functions(t, x);
            let keeps = |row: &usize| dependent.binary_search(row).is_err();
            let kept = (0..values.len()).filter(keeps);
            kept.map(|row| (values[row], rows[row].clone())).unzip()
        };
        let (mut not_implied, mut seen, mut regular) = (Vec::new(), false, false);
        for start in spread_around(scales, &model.initial, NEARBY, POINTS, 0x4e42) {
            if let Some(x) = onto_zeros(&independent, model.t0, &start, units) {
                seen = true;
                let (values, rows) = functions(model.t0, &x);
                let is_met = |row: usize| values[row].abs() <= MET * size(&rows[row]);
                not_implied.extend(dependent.iter().filter(|row| !is_met(**row)));
            }
            if let Some(x) = onto_zeros(functions, model.t0, &start, units) {
                let (beside, rows) = (functions(model.t0, &start).1, functions(model.t0, &x).1);
                let vanishes = |row: &usize| size(&rows[*row]) <= VANISHED * size(&beside[*row]);
                let vanishing = (0..rows.len()).filter(vanishes).count();
                let of = Gram::new(&in_units(&rows, units), 0.0).dependent().len();
                regular |= of.max(vanishing) < dependent.len();
            }
        }
        if !seen {
            // Nothing is known, so nothing may be left out.
            not_implied.extend(dependent);
        }
        Nearby { not_implied, regular }
    }

    fn implies(&self, row: usize) -> bool {
        !self.not_implied.contains(&row)
    }
}

/// Names in quotes, joined by commas and a last "and".
fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// Names of the members without repetition.
fn members(scalars: &[Scalar]) -> Vec<String> {
    let mut names = Vec::new();
    for scalar in scalars {
        let name = scalar.member_name();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Adds the places of these constraints, except those of `own`.
fn beside(mut diagnostic: Diagnostic, scalars: &[Scalar], own: Span, label: &str) -> Diagnostic {
    for scalar in scalars {
        let span = scalar.quantity.span;
        if span != own && !diagnostic.related.iter().any(|(s, _)| *s == span) {
            diagnostic = diagnostic.related(span, label);
        }
    }
    diagnostic
}

/// Finding of constraints that the others imply.
fn redundant(scalars: &[Scalar], by: &[Scalar]) -> Diagnostic {
    let names: Vec<String> = scalars.iter().map(Scalar::name).collect();
    let (one, own) = (names.len() == 1, scalars[0].quantity.span);
    let holds = if one { "it holds" } else { "they hold" };
    let reason = match &members(by)[..] {
        [] => format!("{holds} everywhere"),
        [by] => format!("{holds} wherever {by} does"),
        by => format!("{holds} wherever {} do", by.join(", ")),
    };
    let message = match one {
        true => format!("constraint {} is redundant: {reason}", listed(&names)),
        false => format!("constraints {} are redundant: {reason}", listed(&names)),
    };
    let label = "determines no multiplier of its own";
    let diagnostic = Diagnostic::warning(message, own, label).help(format!(
        "leave out {} and nothing else: the motion stays the same; or make the constraints a potential, {penalty} {method} {step}; methods that solve for multipliers cannot treat redundant constraints",
        if one { "it" } else { "exactly these, all at once" },
        penalty = option("penalty").of("auto"),
        method = option("method").of("gauss4"),
        step = option("step").of("H")
    ));
    let diagnostic = beside(diagnostic, scalars, own, label);
    beside(diagnostic, by, own, "already says this")
}

/// Finding of a constraint whose gradient depends on those of others that do not imply it;
/// `regular` if it does not at other points of the set.
fn singular_at(scalar: Scalar, others: &[Scalar], regular: bool) -> Diagnostic {
    let name = scalar.name();
    let here = match regular {
        true => {
            "at the initial state, a singular configuration from which the motion may go on in several ways"
        }
        false => "wherever the constraints hold",
    };
    let by = members(others);
    let message = match by.is_empty() {
        true => format!("the gradient of constraint '{name}' vanishes {here} (degenerate)"),
        false => format!(
            "constraint '{name}' is singular: its gradient is a combination of those of {} {here}, and yet they do not imply it",
            by.join(", ")
        ),
    };
    let remedy = match (regular, by.is_empty()) {
        (true, _) => "start from another configuration",
        (false, true) => {
            "write it so that its gradient does not vanish with it, without the square or the product for example"
        }
        (false, false) => {
            "write it another way, with a gradient of its own: that a point lies in the plane of three others, for example, as a fixed combination of them"
        }
    };
    let diagnostic =
        Diagnostic::warning(message, scalar.quantity.span, "determines no multiplier of its own").help(format!(
            "{remedy}; do not leave it out, that makes another model; methods that solve for multipliers cannot treat it, and with {penalty} the error falls more slowly than 1/omega",
            penalty = option("penalty")
        ));
    beside(diagnostic, others, scalar.quantity.span, "depends on these")
}

pub(super) fn irregular(model: &Model, reason: &Irregular) -> Diagnostic {
    let span = model.constraints.first().map_or(Span::default(), |c| c.span);
    let (label, help) = match reason {
        Irregular::Mixed { .. } => (
            "first- and second-class constraints are mixed",
            "split the model: state the second-class pairs by themselves, or the coisotropic constraints by themselves",
        ),
        Irregular::Singular { .. } => (
            "no Dirac bracket",
            "a constraint that is linear in the momenta may need its partner, for example q.z = 0 beside p.z = 0",
        ),
    };
    let diagnostic = Diagnostic::error(reason.to_string(), span, label).help(help);
    model.constraints.iter().skip(1).fold(diagnostic, |d, c| d.related(c.span, "with this"))
}
