//! Switching surfaces of a field: where its conditions change, and `min`, `max`, `abs` and `round`.
//!
//! A step that crosses such a surface is not as accurate as its order says. So the field is made one
//! for each side: its conditions are decided by parameters, the sides on which a trajectory is, and a
//! step ends where it meets a surface. On each side the field is as smooth as its formulas are.

use super::Field;
use crate::graph::op::{Binary, Unary};
use crate::graph::{Expression, Graph, Input, Node};
use rustc_hash::FxHashMap;

/// Largest number of surfaces at which steps end: more of them are cut-offs of pairs, or the knots
/// of a table.
pub const MOST_SURFACES: usize = 32;

/// Surfaces of a field, found node by node.
#[derive(Default)]
struct Surfaces {
    /// Functions that vanish on the surfaces.
    functions: Vec<Node>,
    numbers: FxHashMap<Node, usize>,
    /// True if all are known.
    is_closed: bool,
    /// Nodes of the graph, with those that take their place.
    replaced: FxHashMap<Node, Node>,
}

/// The field with conditions that parameters decide, one for each surface, from number
/// `field.parameters` on: +1 or −1 is the side on which [`Field::surfaces`] is positive or negative,
/// and 0 leaves the condition to the state. `None` if there are no surfaces that depend on the
/// state, or more than [`MOST_SURFACES`].
pub fn with_sides(field: &Field) -> Option<Field> {
    let mut field = field.clone();
    let motion: Vec<Node> =
        field.field.iter().chain(field.underlying.iter().flatten()).copied().collect();
    let mut surfaces = Surfaces::default();
    for node in field.graph.reachable(&motion) {
        surfaces.decide(&mut field.graph, field.parameters, node);
        if surfaces.functions.len() > MOST_SURFACES {
            return None;
        }
    }
    if surfaces.functions.is_empty() {
        return None;
    }
    // What is kept along the motion is on the same side; it has no surfaces of its own.
    surfaces.is_closed = true;
    let entries = field.jacobian.iter().flatten().map(|&(_, entry)| entry);
    let lists = [&field.velocities, &field.multipliers, &field.invariants];
    let all: Vec<Node> = lists.into_iter().flatten().copied().chain(entries).collect();
    for node in field.graph.reachable(&all) {
        surfaces.decide(&mut field.graph, field.parameters, node);
    }
    let Surfaces { functions, replaced, .. } = surfaces;
    field.parameters += functions.len();
    field.surfaces = functions;
    field.substitute(&replaced);
    Some(field)
}

impl Surfaces {
    /// Let a parameter decide a node, if that is a comparison or holds one.
    fn decide(&mut self, g: &mut Graph, first: usize, node: Node) {
        let decided = match g.expression(node) {
            Expression::Binary(Binary::Less | Binary::LessEqual, a, b) => {
                self.condition(g, first, (node, [a, b]))
            }
            Expression::Binary(op @ (Binary::Min | Binary::Max), a, b) => {
                let less = g.binary(Binary::Less, a, b);
                self.condition(g, first, (less, [a, b])).map(|less| {
                    let [a, b] = self.images(g, [a, b]);
                    if op == Binary::Min { g.select(less, a, b) } else { g.select(less, b, a) }
                })
            }
            Expression::Unary(Unary::Abs, a) => {
                let zero = g.zero();
                let negative = g.binary(Binary::Less, a, zero);
                self.condition(g, first, (negative, [a, zero])).map(|negative| {
                    let [a, _] = self.images(g, [a, zero]);
                    let opposite = g.neg(a);
                    g.select(negative, opposite, a)
                })
            }
            Expression::Unary(Unary::Round, a) => {
                // Its value is not decided: it has one for each integer.
                if !self.is_closed && self.depends_on_state(g, a) {
                    let pi = g.constant(std::f64::consts::PI);
                    let angle = g.mul(pi, a);
                    let function = g.unary(Unary::Cos, angle);
                    self.number(function);
                }
                None
            }
            _ => None,
        };
        if let Some(decided) = decided {
            self.replaced.insert(node, decided);
        }
    }

    /// The comparison a < b or a ≤ b as the parameter of its surface decides it; `None` if it does
    /// not depend on the state.
    fn condition(
        &mut self,
        g: &mut Graph,
        first: usize,
        (live, [a, b]): (Node, [Node; 2]),
    ) -> Option<Node> {
        let difference = g.sub(b, a);
        if !self.depends_on_state(g, difference) {
            return None;
        }
        let opposite = g.sub(a, b);
        // The function is positive where the comparison holds, or the other one of b and a is.
        let (number, holds_above) = match self.numbers.get(&opposite) {
            Some(&number) => (number, false),
            None if self.is_closed => (*self.numbers.get(&difference)?, true),
            None => (self.number(difference), true),
        };
        let side = g.parameter(first + number);
        let zero = g.zero();
        let is_open = g.binary(Binary::Equal, side, zero);
        let live = g.binary(Binary::And, is_open, live);
        let decided = match holds_above {
            true => g.binary(Binary::Less, zero, side),
            false => g.binary(Binary::Less, side, zero),
        };
        Some(g.binary(Binary::Or, live, decided))
    }

    fn number(&mut self, function: Node) -> usize {
        let next = self.functions.len();
        let number = *self.numbers.entry(function).or_insert(next);
        if number == next {
            self.functions.push(function);
        }
        number
    }

    fn depends_on_state(&self, g: &Graph, node: Node) -> bool {
        let is_state =
            |&node: &Node| matches!(g.expression(node), Expression::Input(Input::State(_)));
        g.reachable(&[node]).iter().any(is_state)
    }

    /// Arguments of a node, with what is decided in them.
    fn images(&self, g: &mut Graph, arguments: [Node; 2]) -> [Node; 2] {
        let images = g.substituted(&arguments, &self.replaced);
        [images[0], images[1]]
    }
}

impl Field {
    /// Puts other nodes in the place of some.
    fn substitute(&mut self, replaced: &FxHashMap<Node, Node>) {
        let Field {
            graph, field, underlying, velocities, multipliers, invariants, jacobian, ..
        } = self;
        let mut put = |list: &mut Vec<Node>| *list = graph.substituted(list, replaced);
        let lists = [field, velocities, multipliers, invariants];
        lists.into_iter().chain(underlying).for_each(&mut put);
        for row in jacobian {
            let mut entries: Vec<Node> = row.iter().map(|&(_, entry)| entry).collect();
            put(&mut entries);
            row.iter_mut().zip(entries).for_each(|((_, entry), new)| *entry = new);
        }
    }
}
