//! Sums over near pairs: `if norm(r[i] - r[j]) < rc` in a sum over i and j.
//!
//! Such a sum is lowered to its members (see [`Pairs`]) if its pairs are many and nothing in it but
//! the distance depends on both indices. Otherwise all its pairs become rows, with the same
//! meaning.

use super::Context;
use super::classes::{ClassBuilder, RowTemplate};
use super::row_indices::RowIndices;
use crate::elaborate::expression::index_set::{IndexSet, IndexVariable};
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind};
use crate::elaborate::functions::Function;
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
            Kind::Function(Function::Norm, arguments) => &arguments[0],
            Kind::Unary(Unary::Abs, apart) => apart,
            _ => return None,
        };
        let (apart, lengths) = match &peeled(apart).kind {
            Kind::Function(Function::Nearest, arguments) if is_fixed(&arguments[1]) => {
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

    /// The position that depends on the outer index of a set of two, and that of the inner one.
    fn ordered_points(&self, set: &IndexSet) -> Option<[&Ex; 2]> {
        let [outer, inner] = &set.ranges[..] else { return None };
        let owner = |point: &Ex| {
            let mut found = FxHashSet::default();
            indices(point, &mut FxHashSet::default(), &mut found);
            match found.into_iter().collect::<Vec<_>>()[..] {
                [only] if only == outer.index => Some(0),
                [only] if only == inner.index => Some(1),
                _ => None,
            }
        };
        let [a, b] = &self.points;
        match (owner(a)?, owner(b)?) {
            (0, 1) => Some([a, b]),
            (1, 0) => Some([b, a]),
            _ => None,
        }
    }
}

/// Body of a `let` member; any other expression itself.
fn peeled(e: &Ex) -> &Ex {
    match &e.kind {
        Kind::Definition(_, _, _, body) => peeled(body),
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
    if let Kind::Sum(set, _) = &e.kind {
        set.ranges.iter().for_each(|range| {
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

/// The members of both sides of a sum over two indices.
struct PairMembers {
    /// Values of the two indices at member 0 of each side.
    first_indices: [f64; 2],
    /// Number of values of the outer index before its first member, which have no partners.
    skipped: usize,
    which: Which,
}

impl PairMembers {
    /// The members of a sum over `outer` and `inner`; `None` if a range or a condition has guards
    /// that fail or that differ from pair to pair.
    fn of(names: &mut RowIndices, set: &IndexSet) -> Option<PairMembers> {
        let [outer, inner] = &set.ranges[..] else { return None };
        let [low, high] = names.ends(outer, &[]).ok()?;
        // Range of the inner index for each outer index.
        let mut inner_ranges = Vec::new();
        for i in 0..=((high - low).min(f64::from(u32::MAX)) as i64) {
            inner_ranges.push(names.ends(inner, &[low + i as f64]).ok()?);
        }
        let is_met = |range: &[f64; 2]| range[0] <= range[1];
        let (skipped, last) =
            (inner_ranges.iter().position(is_met)?, inner_ranges.iter().rposition(is_met)?);
        let ranges = &inner_ranges[skipped..=last];
        let met = || ranges.iter().filter(|range| is_met(range));
        let first = met().map(|range| range[0]).fold(f64::INFINITY, f64::min);
        let seconds = (met().map(|range| range[1]).fold(first, f64::max) - first) as usize + 1;
        let number = |index: f64| (index - first).max(0.0) as u32;
        let partners = ranges.iter().map(|range| match is_met(range) {
            true => [number(range[0]), number(range[1]) + 1],
            false => [0, 0],
        });
        let partners = partners.collect();
        let mut filter = None;
        for (_, condition) in &set.conditions {
            let mut guards = Vec::new();
            names.guards_of(condition, &mut guards).ok()?;
            if !guards.is_empty() {
                return None;
            }
            let node = names.node(condition);
            filter = Some(filter.map_or(node, |all| names.graph.binary(Binary::And, all, node)));
        }
        let first_indices = [low + skipped as f64, first];
        let filter = filter.map(|node| (&names.graph, node));
        let which = Which::new(partners, seconds, first_indices, filter);
        Some(PairMembers { first_indices, skipped, which })
    }
}

/// Term of a summand over near pairs, over the indices of `family` and of the summand's own sums;
/// `None` if the summand is not such a sum.
pub(super) fn near(builder: &ClassBuilder, context: &Context, family: &IndexSet) -> Option<Term> {
    const OTHER: expression::Depends =
        expression::DRAW | expression::MOMENTUM | expression::FOLLOWING;
    let piece = builder.piece;
    if piece.body.depends & OTHER != 0 || !family.conditions.is_empty() {
        return None;
    }
    let nearness = Nearness::of(&piece.body)?;
    let set = family.product(&piece.set);
    let points = nearness.ordered_points(&set)?;
    let mut names = RowIndices::new(context, &set);
    let members = PairMembers::of(&mut names, &set)?;
    let others: Vec<&Ex> =
        points.into_iter().chain(&nearness.lengths).chain([&nearness.reach]).collect();
    let RowTemplate { mut class, decisions, others } =
        builder.template(&mut names, &members.first_indices, &others).ok()?;
    if !decisions.is_empty() {
        return None;
    }
    let (points, lengths, reach) = match &others[..] {
        [first, second, lengths, reach] => {
            let all = first.len();
            let alike = lengths.len() == 1;
            let lengths = if alike { vec![lengths[0]; all] } else { lengths.clone() };
            ([first.clone(), second.clone()], lengths, reach[0])
        }
        [first, second, reach] => ([first.clone(), second.clone()], Vec::new(), reach[0]),
        _ => return None,
    };
    let sides = class.slots.iter().map(|(slot, _)| side(&names, &slot.nodes()));
    let sides: Vec<Side> = sides.collect::<Option<_>>()?;
    if class.guards.iter().any(|guard| side(&names, &guard.nodes()).is_none()) {
        return None;
    }
    let counts = members.which.counts();
    for member in 0..members.which.members() {
        let own = |k: usize| member.min(counts[k] - 1);
        let row = [0, 1].map(|k| members.first_indices[k] + own(k) as f64);
        let mut entries = Vec::with_capacity(sides.len() + 1);
        class.entries(context, &mut names, &row, &mut Vec::new(), &mut entries).ok()?;
        let of_family = if family.ranges.is_empty() { 0 } else { members.skipped + own(0) };
        entries.push(builder.first_output(of_family));
        class.term.table.push(&entries);
    }
    let mut term = class.term;
    if !are_even(&term, &sides, counts) {
        return None;
    }
    let which = Arc::new(members.which);
    term.pairs = Some(Box::new(Pairs { sides, points, lengths, reach, which }));
    Some(term)
}

/// True if slots read the state at equal steps from member to member, so that the members are one
/// stretch of columns.
fn are_even(term: &Term, sides: &[Side], [firsts, seconds]: [usize; 2]) -> bool {
    sides.iter().enumerate().all(|(k, &side)| {
        let mut entries = vec![0; if side == Side::Second { seconds } else { firsts }];
        term.table.column(k, 0, &mut entries);
        let step = |pair: &[u32]| pair[1].wrapping_sub(pair[0]);
        term.slots[k] != Source::State
            || entries.windows(2).all(|pair| step(pair) == step(&entries))
    })
}
