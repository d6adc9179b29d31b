//! Labels of quantities in the units that a model names; no number depends on them.
//!
//! What is certain without the units of parameters: a coordinate of two or three components is a
//! position, H an energy, and momenta follow from both. Formulas are read as far as that goes: all
//! terms of a sum have one dimension, and a quantity that is the only thing with a dimension keeps
//! it. A number may hide a constant of nature (9.8 q.z), and so may a bare square of a position; a
//! quantity whose dimension is not certain has no label.

use crate::elaborate::model::{Following, Model, Quantity, Role, Units, Variable};
use crate::elaborate::shape::Shape;
use crate::functional::{Functional, Source, Term};
use crate::graph::op::{Binary, Unary};
use crate::graph::{Expression, Input, Node};
use std::ops::{Div, Mul};

/// Exponents of length, mass and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dimension([i32; 3]);

const NONE: Dimension = Dimension([0, 0, 0]);
const LENGTH: Dimension = Dimension([1, 0, 0]);
const TIME: Dimension = Dimension([0, 0, 1]);
const VELOCITY: Dimension = Dimension([1, 0, -1]);
const ACCELERATION: Dimension = Dimension([1, 0, -2]);
const MOMENTUM: Dimension = Dimension([1, 1, -1]);
const FORCE: Dimension = Dimension([1, 1, -2]);
const ENERGY: Dimension = Dimension([2, 1, -2]);

/// Dimensions of formulas that get a label. Others (a length squared) are as often a quantity with
/// a factor of 1 left out, ½ k |q|² with k = 1.
const LABELLED: [Dimension; 10] = [
    LENGTH,
    TIME,
    VELOCITY,
    ACCELERATION,
    MOMENTUM,
    FORCE,
    ENERGY,
    Dimension([0, 0, -1]),
    Dimension([2, 1, -1]),
    Dimension([2, 1, -3]),
];

impl Mul for Dimension {
    type Output = Dimension;

    fn mul(self, other: Dimension) -> Dimension {
        Dimension(std::array::from_fn(|k| self.0[k] + other.0[k]))
    }
}

impl Div for Dimension {
    type Output = Dimension;

    fn div(self, other: Dimension) -> Dimension {
        Dimension(std::array::from_fn(|k| self.0[k] - other.0[k]))
    }
}

impl Dimension {
    /// The power; `None` if an exponent is not an integer.
    fn power(self, exponent: f64) -> Option<Dimension> {
        let powers = self.0.map(|own| f64::from(own) * exponent);
        let whole = powers.iter().all(|power| power.fract() == 0.0 && power.abs() < 1e3);
        whole.then(|| Dimension(powers.map(|power| power as i32)))
    }
}

impl Dimension {
    /// Label in these units, `kg m^2/s^2`; `None` for a number.
    fn label(self, of: &Units) -> Option<String> {
        let Dimension([length, mass, time]) = self;
        let units = [(&of.mass, mass), (&of.length, length), (&of.time, time)];
        let power = |(unit, exponent): (&String, i32)| match exponent {
            1 => unit.clone(),
            _ => format!("{unit}^{exponent}"),
        };
        let above: Vec<String> =
            units.into_iter().filter(|(_, exponent)| *exponent > 0).map(power).collect();
        let below = units.into_iter().filter(|(_, exponent)| *exponent < 0);
        let below: Vec<String> = below.map(|(unit, exponent)| power((unit, -exponent))).collect();
        match (above.is_empty(), &below[..]) {
            (true, []) => None,
            (_, []) => Some(above.join(" ")),
            (true, below) => Some(format!("1/{}", below.join("/"))),
            (false, below) => Some(format!("{}/{}", above.join(" "), below.join("/"))),
        }
    }
}

/// What is known of the dimension of a formula's node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// A number that is written in the formula.
    Number(f64),
    /// A quantity of this dimension.
    Of(Dimension),
    /// A quantity of any dimension.
    Open,
    /// Two dimensions that do not go together.
    Conflict,
}

impl Known {
    /// Dimension of a sum with such terms.
    fn plus(self, other: Known) -> Known {
        match (self, other) {
            (Known::Conflict, _) | (_, Known::Conflict) => Known::Conflict,
            (Known::Of(a), Known::Of(b)) if a != b => Known::Conflict,
            (known @ Known::Of(_), _) | (_, known @ Known::Of(_)) => known,
            (Known::Number(_), Known::Number(_)) => Known::Of(NONE),
            _ => Known::Open,
        }
    }

    /// Dimension of a product, with the sign −1 of a quotient.
    fn times(self, other: Known, over: bool) -> Known {
        match (self, other) {
            (Known::Conflict, _) | (_, Known::Conflict) => Known::Conflict,
            (Known::Of(a), Known::Of(b)) => Known::Of(if over { a / b } else { a * b }),
            (Known::Number(number), Known::Of(a)) if is_pure(number) => {
                Known::Of(if over { NONE / a } else { a })
            }
            (known @ Known::Of(_), Known::Number(number))
                if is_pure(if over { 1.0 / number } else { number }) =>
            {
                known
            }
            (Known::Number(a), Known::Number(b)) => Known::Number(if over { a / b } else { a * b }),
            _ => Known::Open,
        }
    }

    fn power(self, exponent: f64) -> Known {
        match self {
            Known::Of(of) => of.power(exponent).map_or(Known::Open, Known::Of),
            Known::Number(number) => Known::Number(number.powf(exponent)),
            known => known,
        }
    }
}

/// True for a factor that hides no constant: ±1, ±2, a half, an n-th.
fn is_pure(number: f64) -> bool {
    let inverse = 1.0 / number.abs();
    number.abs() == 2.0 || (inverse >= 1.0 && (inverse - inverse.round()).abs() < 1e-9 * inverse)
}

/// Labels of a model's quantities.
pub struct Labels<'m> {
    units: &'m Units,
    inputs: Inputs<'m>,
}

/// Dimensions of the inputs of a formula: of the state, and of what follows it.
struct Inputs<'m> {
    model: &'m Model,
    following: Following,
    /// True for each variable that is a position, or belongs to one.
    is_position: Vec<bool>,
    /// Dimensions of the multipliers: place of the first of each constraint.
    multipliers: Vec<(usize, Option<Dimension>)>,
}

impl<'m> Labels<'m> {
    /// Labels of a model; `None` if it names no units.
    pub fn new(model: &'m Model) -> Option<Labels<'m>> {
        let units = model.units.as_deref()?;
        let is_position = model.variables.iter().map(|variable| {
            let of = match variable.role {
                Role::Momentum(of) => &model.variables[of],
                _ => variable,
            };
            let has_room = matches!(of.family.shape, Shape::Vector(2 | 3));
            of.role == Role::Coordinate && has_room
        });
        let mut inputs = Inputs {
            model,
            following: model.following(),
            is_position: is_position.collect(),
            multipliers: Vec::new(),
        };
        inputs.leave_out_angles();
        let mut next = inputs.following.multipliers;
        for constraint in model.stated_constraints() {
            let of = inputs.multiplier(constraint);
            inputs.multipliers.push((next, of));
            next += constraint.functional.outputs;
        }
        Some(Labels { units, inputs })
    }

    /// Label of the time.
    pub fn time(&self) -> &str {
        &self.units.time
    }

    /// Label of energies. A bracket of one's own leaves the dimension of H open.
    pub fn energy(&self) -> Option<String> {
        self.inputs.model.is_hamiltonian().then(|| ENERGY.label(self.units))?
    }

    /// Label of a variable.
    pub fn variable(&self, variable: &Variable) -> Option<String> {
        self.inputs.dimension(variable.first)?.label(self.units)
    }

    /// Label of an integral or an observable.
    pub fn quantity(&self, quantity: &Quantity) -> Option<String> {
        let of = self.inputs.of(&quantity.functional, quantity.shape)?;
        LABELLED.contains(&of).then(|| of.label(self.units))?
    }

    /// Label of the multiplier of a constraint.
    pub fn multiplier(&self, constraint: &Quantity) -> Option<String> {
        self.inputs.multiplier(constraint)?.label(self.units)
    }

    /// Label of a constraint (order 0), or of its hidden constraint of this order.
    pub fn residual(&self, constraint: &Quantity, order: u32) -> Option<String> {
        let of = self.inputs.of(&constraint.functional, constraint.shape)?;
        let rate = TIME.power(f64::from(order))?;
        (of / rate).label(self.units)
    }
}

impl Inputs<'_> {
    /// Dimension of an input; `None` if it is not known.
    fn dimension(&self, place: usize) -> Option<Dimension> {
        let Following { multipliers, velocities, accelerations, reactions } = self.following;
        if place >= reactions {
            let (_, position) = self.following.reaction_at(place);
            return (self.dimension(position)? == LENGTH).then_some(FORCE);
        }
        if place >= accelerations {
            return (self.dimension(place - accelerations)? == LENGTH).then_some(ACCELERATION);
        }
        if place >= velocities {
            return (self.dimension(place - velocities)? == LENGTH).then_some(VELOCITY);
        }
        if place >= multipliers {
            let behind = self.multipliers.partition_point(|(first, _)| *first <= place);
            return self.multipliers[..behind].last()?.1;
        }
        let variables = &self.model.variables;
        let number = variables.iter().rposition(|v| v.first <= place && !v.family.is_empty())?;
        match variables[number].role {
            Role::Coordinate => self.is_position[number].then_some(LENGTH),
            Role::Momentum(_) => self.is_position[number].then_some(MOMENTUM),
            Role::Work => Some(ENERGY),
            Role::State => None,
        }
    }

    /// Dimension of the multiplier of a constraint: λ g is an energy, or its rate where the
    /// constraint is one on velocities.
    fn multiplier(&self, constraint: &Quantity) -> Option<Dimension> {
        let of = self.of(&constraint.functional, constraint.shape)?;
        let model = self.model;
        let rolls = model.rollings.iter().any(|rolling| {
            model.constraints.get(rolling.constraint).is_some_and(|c| c.name == constraint.name)
        });
        Some(if rolls { ENERGY / TIME / of } else { ENERGY / of })
    }

    /// Dimension of all components of a formula's members, if they have one.
    fn of(&self, functional: &Functional, shape: Shape) -> Option<Dimension> {
        let mut components = vec![None; shape.len()];
        for term in &functional.terms {
            let dimensions = self.dimensions(term);
            let first = term.table.iter().next()?.row(0).last() as usize;
            for (k, root) in term.roots.iter().enumerate() {
                let own = &mut components[(first + k) % shape.len()];
                let known = dimensions[root.index()];
                *own = Some(own.map_or(known, |own: Known| own.plus(known)));
            }
        }
        let of = |known: Option<Known>| match known {
            Some(Known::Of(of)) => Some(of),
            _ => None,
        };
        // A component that is 0 has no term.
        let mut known = components.into_iter().filter(Option::is_some);
        let first = of(known.next()?)?;
        known.all(|other| of(other) == Some(first)).then_some(first)
    }

    /// Variables of which a sine, an exponential or the like is taken are no positions.
    fn leave_out_angles(&mut self) {
        let model = self.model;
        let quantities = model.constraints.iter().chain(&model.integrals).chain(&model.observables);
        let forces = model.forces.iter().map(|force| &force.functional);
        let all = std::iter::once(model.moved_by()).chain(forces);
        let terms = all.chain(quantities.map(|q| &q.functional)).flat_map(|f| &f.terms);
        let mut angles = Vec::new();
        for term in terms {
            let dimensions = self.dimensions(term);
            let wrong = |node: &Node| match term.graph.expression(*node) {
                Expression::Unary(op, argument) if takes_numbers(op) => {
                    matches!(dimensions[argument.index()], Known::Of(of) if of != NONE)
                        .then_some(argument)
                }
                _ => None,
            };
            let wrong =
                term.graph.reachable(&term.roots).iter().filter_map(wrong).collect::<Vec<_>>();
            let inputs = term.graph.reachable(&wrong);
            angles.extend(inputs.into_iter().filter_map(|node| state_of(term, node)));
        }
        for place in angles {
            self.not_a_position(place);
        }
    }

    /// Marks the variable of an input, with its conjugate one.
    fn not_a_position(&mut self, place: usize) {
        let degrees = self.model.degrees();
        let Following { multipliers, velocities, accelerations, reactions } = self.following;
        let place = match place {
            place if place >= reactions => return,
            place if place >= accelerations => place - accelerations,
            place if place >= velocities => place - velocities,
            place if place >= multipliers => return,
            place => place % degrees.max(1),
        };
        let variables = &self.model.variables;
        let Some(number) = variables.iter().rposition(|v| v.first <= place) else { return };
        for (k, variable) in variables.iter().enumerate() {
            if k == number || variable.role == Role::Momentum(number) {
                self.is_position[k] = false;
            }
        }
    }

    /// What is known of the nodes of a term.
    fn dimensions(&self, term: &Term) -> Vec<Known> {
        let graph = &term.graph;
        let mut known: Vec<Known> = Vec::with_capacity(graph.len());
        for number in 0..graph.len() as u32 {
            let node = Node(number);
            let of = |node: Node| known[node.index()];
            let own = match graph.expression(node) {
                Expression::Constant(bits) => Known::Number(f64::from_bits(bits)),
                Expression::Input(input) => self.of_input(term, input),
                Expression::Unary(op, a) => of_unary(op, of(a)),
                Expression::Binary(op, a, b) => of_binary(op, of(a), of(b)),
                Expression::Select(_, a, b) => of(a).plus(of(b)),
                _ => Known::Open,
            };
            known.push(own);
        }
        known
    }

    fn of_input(&self, term: &Term, input: Input) -> Known {
        let slot = match input {
            Input::Time => return Known::Of(TIME),
            Input::Slot(slot) if term.slots[slot as usize] == Source::State => slot as usize,
            _ => return Known::Open,
        };
        let mut all = None;
        for stretch in term.table.iter() {
            for row in [0, stretch.rows.saturating_sub(1)] {
                let own = self.dimension(stretch.row(row).at(slot) as usize);
                let own = own.map_or(Known::Open, Known::Of);
                if *all.get_or_insert(own) != own {
                    return Known::Open;
                }
            }
        }
        all.unwrap_or(Known::Open)
    }
}

/// Place of the input that a node reads in the first row of a term.
fn state_of(term: &Term, node: Node) -> Option<usize> {
    let Expression::Input(Input::Slot(slot)) = term.graph.expression(node) else { return None };
    let is_state = term.slots[slot as usize] == Source::State;
    let first = term.table.iter().next().filter(|_| is_state)?;
    Some(first.row(0).at(slot as usize) as usize)
}

/// True for functions of numbers without a dimension.
fn takes_numbers(op: Unary) -> bool {
    !matches!(op, Unary::Neg | Unary::Sqrt | Unary::Abs | Unary::Round | Unary::Not)
}

fn of_unary(op: Unary, of: Known) -> Known {
    match op {
        Unary::Neg | Unary::Abs | Unary::Round => of,
        Unary::Sqrt => of.power(0.5),
        _ if of == Known::Conflict => of,
        _ => Known::Of(NONE),
    }
}

fn of_binary(op: Binary, a: Known, b: Known) -> Known {
    match op {
        Binary::Add | Binary::Sub | Binary::Min | Binary::Max => a.plus(b),
        Binary::Mul => a.times(b, false),
        Binary::Div => a.times(b, true),
        Binary::Pow => match b {
            Known::Number(exponent) => a.power(exponent),
            _ => Known::Open,
        },
        _ => Known::Of(NONE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_written_as_readers_of_units_expect() {
        let [length, mass, time] = ["m", "kg", "s"].map(String::from);
        let units = Units { length, mass, time };
        let label = |of| Dimension(of).label(&units).unwrap_or_default();
        assert_eq!(label([2, 1, -2]), "kg m^2/s^2");
        assert_eq!(label([0, 1, -2]), "kg/s^2");
        assert_eq!(label([-1, 0, -1]), "1/m/s");
        assert_eq!(label([0, 0, 0]), "");
    }

    #[test]
    fn numbers_that_may_hide_a_constant_leave_the_dimension_open() {
        let length = Known::Of(LENGTH);
        for pure in [1.0, -1.0, 2.0, 0.5, 1.0 / 3.0, 0.1] {
            assert_eq!(Known::Number(pure).times(length, false), length, "{pure}");
        }
        for hidden in [9.81, 10.0, 0.3] {
            assert_eq!(Known::Number(hidden).times(length, false), Known::Open, "{hidden}");
        }
        assert_eq!(length.plus(Known::Open).plus(Known::Of(TIME)), Known::Conflict);
    }
}
