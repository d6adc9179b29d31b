//! Check for constraints whose gradients or brackets are rank deficient.

use crate::elaborate::model::{Model, Quantity, component_suffix};
use crate::scales::{Scales, in_units};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::treatment::structure::{Irregular, Values, onto_zeros, spread_around};
use holonome_linear::dependence::null_vectors;
use holonome_linear::gram::{Gram, Row};
use holonome_words::option;
use std::collections::BTreeSet;

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
    /// Components that the other constraints imply, ascending and counted over all constraints;
    /// without them, all left out at once, the model is the same.
    pub implied: Vec<usize>,
    /// Components that the other constraints do not imply: the configuration is singular.
    pub singular: Vec<String>,
}

impl Dependence {
    /// True if no constraint depends on the others.
    pub fn is_none(&self) -> bool {
        self.implied.is_empty() && self.singular.is_empty()
    }

    /// True if equations can be left out: some follow from the others, and none is singular.
    pub fn is_redundant(&self) -> bool {
        !self.implied.is_empty() && self.singular.is_empty()
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

    /// Name of the component: `a.y`, `d[3,4]`, `joint[3].y`.
    fn name(&self) -> String {
        self.member_name() + &component_suffix(self.quantity.shape, self.offset)
    }
}

/// Finds constraints whose gradients depend on those of the others at the initial state, which lies
/// on the set, and reports them. `functions` gives the values and gradients of the constraints at
/// (t, x).
///
/// A constraint that depends on the others there is redundant if it holds wherever they hold.
/// Whether it does is seen at nearby points of their set; near the initial state they are
/// independent.
pub(super) fn redundancy(
    model: &Model,
    scales: &Scales,
    functions: &dyn Fn(f64, &[f64]) -> Values,
) -> (Dependence, Vec<Diagnostic>) {
    let x = &model.initial;
    let units = scales.units(x);
    let rows = in_units(&functions(model.t0, x).1, &units);
    let dependent = last_dependent(&rows);
    if dependent.is_empty() {
        return Default::default();
    }
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
    let (implied, singular): (Vec<usize>, Vec<usize>) =
        dependent.iter().partition(|&&row| near.implies(row));
    let mut found = Vec::new();
    if !implied.is_empty() {
        // Near the initial state more multipliers may be undetermined than there.
        let there = |x: &Vec<f64>| in_units(&functions(model.t0, x).1, &units);
        let all = std::iter::once(rows.clone()).chain(near.points.iter().map(there));
        let supports = all.flat_map(|rows| supports(&rows, &dependent));
        let concerns = |set: &BTreeSet<usize>| implied.iter().any(|row| set.contains(row));
        let loops = joined(supports.filter(concerns)).into_iter().map(Vec::from_iter);
        found.push(redundant(&scalars, &implied, &loops.collect::<Vec<_>>()));
    }
    for (&row, part) in dependent.iter().zip(supports(&rows, &dependent)) {
        if singular.contains(&row) {
            let others = part.into_iter().filter(|&other| other != row).map(|k| scalars[k]);
            found.push(singular_at(scalars[row], &others.collect::<Vec<_>>(), near.regular));
        }
    }
    let singular = singular.iter().map(|&row| scalars[row].name()).collect();
    (Dependence { implied, singular }, found)
}

/// Share of a row, in units of lengths of rows, below which a gradient has no part in another.
const NO_PART: f64 = 1e-7;

/// For each of the `dependent` rows, itself and the rows that it is a sum of.
fn supports(rows: &[Row], dependent: &[usize]) -> impl Iterator<Item = BTreeSet<usize>> + use<> {
    let vectors = null_vectors(rows, dependent, NO_PART);
    vectors.into_iter().map(|vector| vector.iter().map(|&(row, _)| row as usize).collect())
}

/// Rows that depend on those before them, ascending.
fn last_dependent(rows: &[Row]) -> Vec<usize> {
    // In their own order the constraints of a tree fill in the factor, so the test takes another
    // order. Among the rows that have a part in some dependence, the last ones are then found.
    let mut dependent = Gram::new(rows, 0.0).dependent();
    dependent.sort_unstable();
    let last = |part: BTreeSet<usize>| {
        let part: Vec<usize> = part.into_iter().collect();
        let of_part: Vec<&Row> = part.iter().map(|&row| &rows[row]).collect();
        let found = Gram::in_order(&of_part).dependent().into_iter();
        found.map(|place| part[place]).collect::<Vec<_>>()
    };
    let mut all: Vec<usize> =
        joined(supports(rows, &dependent)).into_iter().flat_map(last).collect();
    all.sort_unstable();
    all
}

/// Sets of which those with common members are joined.
fn joined(sets: impl Iterator<Item = BTreeSet<usize>>) -> Vec<BTreeSet<usize>> {
    let mut all: Vec<BTreeSet<usize>> = Vec::new();
    for mut set in sets {
        all.retain_mut(|other| {
            let apart = other.is_disjoint(&set);
            if !apart {
                set.append(other);
            }
            apart
        });
        all.push(set);
    }
    all
}

/// Constraints at points near the initial state.
struct Nearby {
    /// Rows that do not vanish on the set of the independent ones.
    not_implied: Vec<usize>,
    /// Points of the set of the independent ones.
    points: Vec<Vec<f64>>,
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
        let (mut not_implied, mut points, mut regular) = (Vec::new(), Vec::new(), false);
        for start in spread_around(scales, &model.initial, NEARBY, POINTS, 0x4e42) {
            let start = on_this_sheet(&independent, model, start);
            if let Some(x) = onto_zeros(&independent, model.t0, &start, units) {
                points.push(x.clone());
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
        if points.is_empty() {
            // Nothing is known, so nothing may be left out.
            not_implied.extend(dependent);
        }
        Nearby { not_implied, points, regular }
    }

    fn implies(&self, row: usize) -> bool {
        !self.not_implied.contains(&row)
    }
}

/// Maximum number of names in a list.
const MOST_NAMES: usize = 12;

/// Names, joined by commas and a last "and"; of many, the first ones and the number of the others.
fn listed(mut names: Vec<String>) -> String {
    if names.len() > MOST_NAMES {
        let others = names.len() - MOST_NAMES + 1;
        names.truncate(MOST_NAMES - 1);
        names.push(format!("{others} others"));
    }
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// Part of the change of a function that its derivative may miss on the same sheet of its zeros.
const CURVED: f64 = 0.25;

/// The point on the line from the initial state to `start`, by halves, up to which the derivatives
/// of the functions tell how they change. Far from the origin, a small part of the size of a
/// position is long beside a rod, and rods may be met there in another assembly.
fn on_this_sheet(
    functions: &dyn Fn(f64, &[f64]) -> Values,
    model: &Model,
    mut start: Vec<f64>,
) -> Vec<f64> {
    const MOST_HALVES: usize = 40;
    let x = &model.initial;
    let (before, rows) = functions(model.t0, x);
    for _ in 0..MOST_HALVES {
        let after = functions(model.t0, &start).0;
        let is_flat = |((before, after), row): ((&f64, &f64), &Row)| {
            let terms = row.iter().map(|&(k, d)| d * (start[k as usize] - x[k as usize]));
            let (sum, size) = terms.fold((0.0, 0.0), |(s, z), term| (s + term, z + term.abs()));
            (after - before - sum).abs() <= CURVED * size
        };
        if before.iter().zip(&after).zip(&rows).all(is_flat) {
            break;
        }
        start.iter_mut().zip(x).for_each(|(start, x)| *start = 0.5 * (*start + x));
    }
    start
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

/// Finding of the equations `implied` among all, ascending; the rows of each loop determine no
/// multipliers of their own.
fn redundant(all: &[Scalar], implied: &[usize], loops: &[Vec<usize>]) -> Diagnostic {
    let those = |rows: &[usize]| rows.iter().map(|&row| all[row]).collect::<Vec<_>>();
    let scalars = those(implied);
    let others = loops.iter().flatten().copied().filter(|row| implied.binary_search(row).is_err());
    let by = those(&others.collect::<Vec<_>>());
    let own = scalars[0].quantity.span;
    let names: Vec<String> = scalars.iter().map(|scalar| format!("'{}'", scalar.name())).collect();
    let (subject, holds) = match scalars[..] {
        [_] => ("constraint", "is redundant: it holds"),
        _ => ("constraints", "are redundant: they hold"),
    };
    let reason = match members(&by) {
        by if by.is_empty() => "everywhere".to_string(),
        by => {
            let does = if by.len() == 1 { "does" } else { "do" };
            format!("wherever {} {does}", listed(by))
        }
    };
    let message = format!("{subject} {} {holds} {reason}", listed(names));
    let of_loop = |rows: &Vec<usize>| listed(those(rows).iter().map(Scalar::name).collect());
    let closed = match loops {
        [one] => format!("{} close a loop", of_loop(one)),
        many => {
            let some = many.iter().take(MOST_LOOPS).map(of_loop).collect::<Vec<_>>().join("; ");
            let ending = if many.len() > MOST_LOOPS { "; ..." } else { "" };
            format!("{} loops are closed ({some}{ending})", many.len())
        }
    };
    let determined = all.len() - loops.iter().map(Vec::len).sum::<usize>();
    let rest = if determined > 0 { "; all other multipliers are determined" } else { "" };
    let label = "determines no multiplier of its own";
    let diagnostic = Diagnostic::warning(message, own, label).help(format!(
        "the motion is the same without {}; {closed}, whose multipliers are those of least norm{rest}",
        if scalars.len() == 1 { "it" } else { "them" },
    ));
    let diagnostic = beside(diagnostic, &scalars, own, label);
    beside(diagnostic, &by, own, "already says this")
}

/// Maximum number of loops that a finding lists.
const MOST_LOOPS: usize = 3;

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
        Irregular::Gauge { .. } => (
            "gauge freedom",
            "add a constraint that fixes one of these, for example that a component keeps its initial value",
        ),
        Irregular::Inconsistent { .. } => (
            "leads to a contradiction",
            "leave out a constraint that the motion cannot keep, or add what it lacks to the Hamiltonian",
        ),
        Irregular::Degenerate { .. } => (
            "leads to an irregular constraint",
            "write the constraints so that the gradients of all that follows from them are independent where they hold",
        ),
        Irregular::Exceptional { .. } => {
            ("singular at the initial state", "start from another state")
        }
        Irregular::TooMany { .. } => ("too many of them", "make the model smaller"),
        Irregular::RollingBesideMomenta { .. } => (
            "rolling beside a constraint on momenta",
            "state the constraint on momenta as a rolling one, on velocities",
        ),
        Irregular::Singular { .. } if !model.rollings.is_empty() => (
            "the forces of these are not determined",
            "leave out rolling constraints that follow from the others",
        ),
        Irregular::Singular { .. } => (
            "no Dirac bracket",
            "a constraint that is linear in the momenta may need its partner, for example q.z = 0 beside p.z = 0",
        ),
    };
    let diagnostic = Diagnostic::error(reason.to_string(), span, label).help(help);
    model.constraints.iter().skip(1).fold(diagnostic, |d, c| d.related(c.span, "with this"))
}
