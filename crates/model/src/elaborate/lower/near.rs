//! Sums over near pairs: `if norm(r[i] - r[j]) < rc` in a sum over i and j.
//!
//! Such a sum is lowered to its members (see [`Pairs`]) if its pairs are many and nothing in it but
//! the distance depends on both indices. Otherwise all its pairs become rows, with the same
//! meaning.

use super::Context;
use super::classes::{Class, ClassBuilder, Made};
use super::row_indices::RowIndices;
use crate::elaborate::expression::{
    self, CheckedExpression, CheckedRanges, Ex, IndexVariable, Kind,
};
use crate::elaborate::linear_algebra::Linear;
use crate::elaborate::shape::Shape;
use crate::functional::{Pairs, Side, Source, Term, Which};
use crate::graph::op::{Binary, Unary};
use crate::graph::{Expression, Input, Node};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Largest dimension of a space that is divided into cells.
const MOST_DIMENSIONS: usize = 3;

/// A condition that two positions are near each other.
pub(super) struct Nearness {
    /// Two positions, in any order.
    points: [Ex; 2],
    /// Lengths of the periodic box.
    lengths: Option<Ex>,
    /// The distance from which on the condition is false.
    reach: Ex,
}

impl Nearness {
    /// The condition of a summand that is absent beyond a distance.
    fn of(body: &Ex) -> Option<Nearness> {
        let Kind::Select(condition, _, absent) = &peeled(body).kind else { return None };
        if !is_zero(absent) {
            return None;
        }
        let mut conditions = vec![condition];
        while let Some(condition) = conditions.pop() {
            match &condition.kind {
                Kind::Binary(Binary::And, a, b) => conditions.extend([a, b]),
                Kind::Binary(Binary::Less | Binary::LessEqual, distance, reach)
                    if is_fixed(reach) =>
                {
                    let found = Nearness::of_distance(distance, reach);
                    if found.is_some() {
                        return found;
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn of_distance(distance: &Ex, reach: &Ex) -> Option<Nearness> {
        let apart = match &peeled(distance).kind {
            Kind::Linear(Linear::Norm, arguments) => &arguments[0],
            Kind::Unary(Unary::Abs, apart) => apart,
            _ => return None,
        };
        let (apart, lengths) = match &peeled(apart).kind {
            Kind::Linear(Linear::Nearest, arguments) if is_fixed(&arguments[1]) => {
                (&arguments[0], Some(&arguments[1]))
            }
            _ => (apart, None),
        };
        let few = match apart.shape {
            Shape::Scalar => true,
            Shape::Vector(count) => count <= MOST_DIMENSIONS,
            _ => false,
        };
        let points = few.then(|| ends(apart)).flatten()?;
        Some(Nearness { points, lengths: lengths.cloned(), reach: reach.clone() })
    }
}

/// Body of a `let` member; any other expression itself.
fn peeled(e: &Ex) -> &Ex {
    match &e.kind {
        Kind::Member(_, _, _, body) => peeled(body),
        _ => e,
    }
}

fn is_zero(e: &Ex) -> bool {
    match &e.kind {
        Kind::Stack(entries) => entries.iter().all(is_zero),
        _ => e.value() == Some(0.0),
    }
}

/// True if the value is the same for all pairs at all times.
fn is_fixed(e: &Ex) -> bool {
    e.depends & !expression::PARAMETER == 0 && !e.has_sum
}

/// a and b of a difference a − b; of vectors also component by component.
fn ends(apart: &Ex) -> Option<[Ex; 2]> {
    match &peeled(apart).kind {
        Kind::Add(terms) => match &terms[..] {
            [(false, a), (true, b)] | [(true, b), (false, a)] => Some([a.clone(), b.clone()]),
            _ => None,
        },
        Kind::Stack(entries) => {
            let ends = entries.iter().map(ends).collect::<Option<Vec<_>>>()?;
            let end = |k: usize| {
                let entries = ends.iter().map(|ends| ends[k].clone()).collect();
                CheckedExpression::new(Kind::Stack(entries), apart.shape, apart.span)
            };
            Some([end(0), end(1)])
        }
        _ => None,
    }
}

/// Collects the indices that an expression depends on, except for those of sums in it.
fn indices(
    e: &Ex,
    seen: &mut FxHashSet<*const CheckedExpression>,
    found: &mut FxHashSet<IndexVariable>,
) {
    if e.depends & expression::INDEX == 0 || !seen.insert(Arc::as_ptr(e)) {
        return;
    }
    if let Kind::Index(index) = e.kind {
        found.insert(index);
    }
    e.kind.for_each_part(&mut |part| indices(part, seen, found));
    if let Kind::Sum(ranges, _) = &e.kind {
        ranges.ranges.iter().for_each(|range| {
            found.remove(&range.index);
        });
    }
}

/// Member of the pair that a formula over the two indices depends on; `None` if it depends on both
/// indices.
fn side(names: &RowIndices, nodes: &[Node]) -> Option<Side> {
    let mut reads = [false; 2];
    for node in names.graph.reachable(nodes) {
        if let Expression::Input(Input::State(index)) = names.graph.expression(node) {
            reads[index as usize] = true;
        }
    }
    match reads {
        [false, false] => Some(Side::Both),
        [true, false] => Some(Side::First),
        [false, true] => Some(Side::Second),
        [true, true] => None,
    }
}

/// Term of a summand over near pairs, in the loops of `family` and of the summand's own sums;
/// `None` if the summand is not such a sum.
pub(super) fn near(
    builder: &ClassBuilder,
    context: &Context,
    family: &CheckedRanges,
) -> Option<Term> {
    let piece = builder.piece();
    const OTHER: expression::Depends =
        expression::DRAW | expression::MOMENTUM | expression::MULTIPLIER;
    if piece.body.depends & OTHER != 0 || family.filter.is_some() {
        return None;
    }
    let nearness = Nearness::of(&piece.body)?;
    let ranges: Vec<_> =
        family.ranges.iter().chain(piece.ranges.iter().flat_map(|ranges| &ranges.ranges)).collect();
    let [outer, inner] = ranges[..] else { return None };
    let filters: Vec<&Ex> =
        piece.ranges.iter().filter_map(|ranges| ranges.filter.as_ref()).collect();
    let (mut of_points, variables) =
        ([FxHashSet::default(), FxHashSet::default()], [outer.index, inner.index]);
    for (point, found) in nearness.points.iter().zip(&mut of_points) {
        indices(point, &mut FxHashSet::default(), found);
    }
    let owner = |found: &FxHashSet<IndexVariable>| match found.iter().collect::<Vec<_>>()[..] {
        [only] => variables.iter().position(|variable| variable == only),
        _ => None,
    };
    let points = match (owner(&of_points[0])?, owner(&of_points[1])?) {
        (0, 1) => [&nearness.points[0], &nearness.points[1]],
        (1, 0) => [&nearness.points[1], &nearness.points[0]],
        _ => return None,
    };
    let mut names = RowIndices::new(context, &ranges);
    let whole = |names: &mut RowIndices, e: &Ex, row: &[f64]| names.whole(e, row, "").ok();
    let (low, high) = (whole(&mut names, &outer.low, &[])?, whole(&mut names, &outer.high, &[])?);
    // Range of the inner index for each outer index.
    let mut inner_ranges = Vec::new();
    for i in 0..=((high - low).min(f64::from(u32::MAX)) as i64) {
        let i = low + i as f64;
        inner_ranges
            .push([whole(&mut names, &inner.low, &[i])?, whole(&mut names, &inner.high, &[i])?]);
    }
    let is_met = |range: &[f64; 2]| range[0] <= range[1];
    let (start, end) =
        (inner_ranges.iter().position(is_met)?, inner_ranges.iter().rposition(is_met)? + 1);
    let met = || inner_ranges[start..end].iter().filter(|range| is_met(range));
    let first_indices =
        [low + start as f64, met().map(|range| range[0]).fold(f64::INFINITY, f64::min)];
    let seconds = (met().map(|range| range[1]).fold(first_indices[1], f64::max) - first_indices[1])
        as usize
        + 1;
    let partners = inner_ranges[start..end].iter().map(|range| {
        let number = |index: f64| (index - first_indices[1]).max(0.0) as u32;
        if is_met(range) { [number(range[0]), number(range[1]) + 1] } else { [0, 0] }
    });
    let partners: Vec<[u32; 2]> = partners.collect();
    let firsts = partners.len();
    // The filter must have no guards.
    let mut filter = None;
    for condition in filters {
        let mut guards = Vec::new();
        names.guards_of(condition, &mut guards).ok()?;
        if !guards.is_empty() {
            return None;
        }
        let node = names.node(condition);
        filter = Some(filter.map_or(node, |others| names.graph.binary(Binary::And, others, node)));
    }
    let which =
        Which::new(partners, seconds, first_indices, filter.map(|node| (&names.graph, node)));
    let pair = first_indices;
    let others: Vec<&Ex> =
        points.into_iter().chain(&nearness.lengths).chain([&nearness.reach]).collect();
    let Made { class, decisions, others } =
        builder.template_with(&mut names, &pair, &others).ok()?;
    if !decisions.is_empty() {
        return None;
    }
    let [first, second, rest @ ..] = &others[..] else { return None };
    let (lengths, reach) = match rest {
        [lengths, reach] => {
            let all = first.len();
            (if lengths.len() == 1 { vec![lengths[0]; all] } else { lengths.clone() }, reach[0])
        }
        [reach] => (Vec::new(), reach[0]),
        _ => return None,
    };
    let sides: Vec<Side> = class
        .slots
        .iter()
        .map(|(slot, _)| side(&names, &slot.nodes()))
        .collect::<Option<Vec<_>>>()?;
    if class.guards.iter().any(|guard| side(&names, &guard.nodes()).is_none()) {
        return None;
    }
    let Class { guards, slots, mut term } = class;
    let counts = [firsts, seconds];
    for member in 0..which.members() {
        let row = [0, 1].map(|k| first_indices[k] + member.min(counts[k] - 1) as f64);
        for guard in &guards {
            names.check(guard, &row).ok()?;
        }
        let mut entries = Vec::with_capacity(slots.len() + 1);
        for (slot, span) in &slots {
            entries.push(
                slot.entry(context, &mut names, &row, *span, &mut term, &mut Vec::new()).ok()?,
            );
        }
        let of_family = if family.ranges.is_empty() { 0 } else { start + member.min(firsts - 1) };
        entries.push(builder.first_output(of_family));
        term.table.push(&entries);
    }
    // Slots must read the state at equal steps from member to member, so that the members are one
    // stretch of columns.
    let count_of = |side: Side| if side == Side::Second { seconds } else { firsts };
    let is_even = |(k, &side): (usize, &Side)| {
        let mut entries = vec![0; count_of(side)];
        term.table.column(k, 0, &mut entries);
        let step = |pair: &[u32]| pair[1].wrapping_sub(pair[0]);
        term.slots[k] != Source::State
            || entries.windows(2).all(|pair| step(pair) == step(&entries))
    };
    if !sides.iter().enumerate().all(is_even) {
        return None;
    }
    let points = [first.clone(), second.clone()];
    term.pairs = Some(Box::new(Pairs { sides, points, lengths, reach, which: Arc::new(which) }));
    Some(term)
}
