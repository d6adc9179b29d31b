//! Functions among whose linear combinations first integrals are searched: products of components
//! of the state, the time, and the functions of which H (or the field) is made where it is not a
//! polynomial.

use super::formula::{Binding, Names};
use holonome_integrate::system::all_finite;
use holonome_model::elaborate::model::component_suffix;
use holonome_model::elaborate::model::{Family, Model, Variable};
use holonome_model::elaborate::shape::Shape;
use holonome_model::graph::calculus::Gradient;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::scales::Scales;
use holonome_model::treatment::Field;
use holonome_model::treatment::structure::{Probe, points_of_run};
use std::collections::HashSet;
use std::ops::Range;

/// Largest number of functions beside components and the time that are factors.
const MOST_FUNCTIONS: usize = 12;

/// Largest dimension of a `state` model whose logarithms are factors: integrals of rate equations
/// have them.
const MOST_LOGARITHMS: usize = 4;

/// Names of indices in place of those that hide another name.
const INDICES: [&str; 8] = ["i", "j", "k", "l", "a", "b", "i_", "j_"];

/// How many times as many points are drawn as are wanted, if some have no values.
const MOST_DRAWS: u64 = 8;

/// Part of the speed of the fastest member of a family below which that of a member may be
/// rounding; and of the fastest family, each relative to its size.
const SLOWEST: f64 = 1e-5;

/// Factors of the products.
pub(super) struct Factors {
    pub names: Names,
    graph: Graph,
    dimension: usize,
    /// Functions of (t, x), with their gradients and ∂/∂t.
    functions: Vec<(Node, Gradient, Node)>,
    /// True if the model depends on time: otherwise the time enters products of up to two factors
    /// only.
    depends_on_time: bool,
    /// True if there are more functions than are factors.
    pub left_out: bool,
}

/// A factor at a point.
#[derive(Clone, Copy)]
struct Numbers {
    value: f64,
    rate: f64,
    /// Sizes that the value and the rate could have.
    extent: f64,
    wide: f64,
}

/// Candidates at a point of the constraint set.
pub(super) struct Sample {
    pub values: Vec<f64>,
    pub rates: Vec<f64>,
    /// Sizes that the values and the rates could have.
    pub extents: Vec<f64>,
    pub sizes: Vec<f64>,
    /// Values of the invariants of the field that are not constraints.
    pub known: Vec<f64>,
}

/// A product: its factors in ascending order.
type Product = Vec<usize>;

/// A function among whose combinations integrals are searched: a product, or a sum of products over
/// the members of families.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// The range of a sum, as `i in 1..3`; empty for a single product.
    pub range: String,
    /// One product, or those of the members.
    products: Vec<Product>,
    /// Names of the factors that depend on the members, for a sum.
    members: Vec<String>,
}

impl Candidate {
    fn single(product: Product) -> Candidate {
        Candidate { range: String::new(), products: vec![product], members: Vec::new() }
    }

    /// Number of factors.
    pub fn degree(&self) -> usize {
        self.products[0].len()
    }

    /// Number of products in a sum.
    pub fn members(&self) -> usize {
        self.products.len()
    }

    /// Names of the indices of a sum.
    pub fn indices(&self) -> Vec<&str> {
        self.range.split(", ").filter_map(|range| range.split(' ').next()).collect()
    }
}

impl Factors {
    /// Factors for a model whose right-hand side (H, or the components of the field) are these
    /// nodes of a graph.
    pub fn new(model: &Model, field: &Field, mut graph: Graph, moved_by: &[Node]) -> Factors {
        let g = &mut graph;
        let mut found = Functions::default();
        for &node in moved_by {
            found.collect(g, node);
        }
        let mut nodes = found.found;
        if !model.is_hamiltonian() && model.dimension() <= MOST_LOGARITHMS {
            for (i, _) in model.initial.iter().enumerate().filter(|(_, x)| **x > 0.0) {
                let x = g.state(i);
                nodes.push(g.unary(Unary::Log, x));
            }
        }
        let mut seen = HashSet::new();
        nodes.retain(|node| seen.insert(*node));
        let left_out = nodes.len() > MOST_FUNCTIONS;
        if left_out {
            nodes.clear();
        }
        let functions = nodes
            .into_iter()
            .map(|node| (node, g.gradient(node), g.time_derivative(node)))
            .collect();
        let names = Names::new(model, g);
        let is_time =
            |n: &Node| matches!(field.graph.expression(*n), Expression::Input(Input::Time));
        let depends_on_time = field.graph.reachable(&field.field).iter().any(is_time);
        Factors { names, graph, dimension: model.dimension(), functions, depends_on_time, left_out }
    }

    /// Number of factors: components, the time, functions.
    fn len(&self) -> usize {
        self.dimension + 1 + self.functions.len()
    }

    fn time(&self) -> usize {
        self.dimension
    }

    /// True if a candidate depends on the time by itself.
    pub fn depends_on_time(&self, candidate: &Candidate) -> bool {
        self.has_time(&candidate.products[0])
    }

    fn has_time(&self, product: &[usize]) -> bool {
        product.contains(&self.time())
    }

    /// Number of products of up to `degree` factors.
    pub fn count(&self, degree: usize) -> usize {
        // Of k kinds, multisets of up to d: C(k + d, d) − 1.
        let up_to = |kinds: usize, degree: usize| {
            (1..=degree).fold(1usize, |all, d| all.saturating_mul(kinds + d) / d).saturating_sub(1)
        };
        match self.depends_on_time {
            true => up_to(self.len(), degree),
            false => up_to(self.len() - 1, degree) + if degree >= 2 { self.len() + 1 } else { 1 },
        }
    }

    /// Products of up to `degree` factors, by degree.
    pub fn products(&self, degree: usize) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = Vec::new();
        let mut last: Vec<Product> = vec![Vec::new()];
        for degree in 1..=degree {
            let mut next = Vec::new();
            for product in &last {
                for factor in product.last().copied().unwrap_or(0)..self.len() {
                    let longer = [&product[..], &[factor]].concat();
                    if self.depends_on_time || degree <= 2 || !self.has_time(&longer) {
                        next.push(longer);
                    }
                }
            }
            all.extend(next.iter().cloned().map(Candidate::single));
            last = next;
        }
        all
    }

    /// True for a product of components, and of the time, that has those of one member only, and
    /// for sums of such products.
    pub fn is_of_one_member(&self, model: &Model, candidate: &Candidate) -> bool {
        if candidate.products[0].iter().any(|&factor| factor > self.time()) {
            return false;
        }
        let of_family = |&factor: &usize| {
            let v = model
                .variables
                .iter()
                .find(|v| (v.first..v.first + v.family.len()).contains(&factor))?;
            let member = (factor - v.first) / v.family.shape.len();
            (v.family.members() > 1).then_some((&v.family.bounds, member))
        };
        let mut members = candidate.products[0].iter().filter_map(of_family);
        members.next().is_none_or(|first| members.all(|other| other == first))
    }

    /// Vectors whose components with the same number a product of two multiplies, that number and
    /// how many there are; `None` for any other product. The vectors have the names of a member in
    /// a sum.
    pub fn vectors(
        &self,
        model: &Model,
        candidate: &Candidate,
    ) -> Option<([String; 2], usize, usize)> {
        let [a, b] = candidate.products[0][..] else { return None };
        let of = |factor: usize, at: usize| {
            let v = model
                .variables
                .iter()
                .find(|v| (v.first..v.first + v.family.len()).contains(&factor))?;
            let Shape::Vector(width) = v.family.shape else { return None };
            let k = (factor - v.first) % width;
            let name = candidate.members.get(at).map_or(self.names.state(factor), String::as_str);
            Some((name.strip_suffix(&component_suffix(v.family.shape, k))?.to_string(), k, width))
        };
        let ((one, k, width), (other, same, others)) = (of(a, 0)?, of(b, 1)?);
        (k == same && width == others).then_some(([one, other], k, width))
    }

    /// The sum over all members of which a product of one member's components is a part, and the
    /// indices of that member as they are written; `None` if it is no such product, or there are
    /// but two members.
    pub fn sum_with(
        &self,
        model: &Model,
        candidate: &Candidate,
    ) -> Option<(Candidate, Vec<String>)> {
        let product = &candidate.products[0];
        let (mut of, mut factors) = (None, Vec::new());
        for &factor in product.iter().filter(|factor| **factor != self.time()) {
            let v = model
                .variables
                .iter()
                .find(|v| (v.first..v.first + v.family.len()).contains(&factor))?;
            let (width, place) = (v.family.shape.len(), factor - v.first);
            let (_, member) = *of.get_or_insert((v, place / width));
            let is_of_it = of.is_some_and(|(first, _)| first.family.bounds == v.family.bounds);
            if member != place / width || !is_of_it || v.family.members() < 3 {
                return None;
            }
            factors.push((v, place % width));
        }
        let (first, member) = of.filter(|_| candidate.range.is_empty())?;
        let group = Group::new(first, self.indices(&first.family));
        let factors: Vec<Component> =
            factors.into_iter().map(|(v, k)| group.component(v, k)).collect();
        let time: Vec<usize> =
            product.iter().copied().filter(|factor| *factor == self.time()).collect();
        let sum = group.sum(&factors.iter().collect::<Vec<_>>(), &time);
        let name = first.family.member_name(member);
        let indices = name[first.family.name.len()..].trim_matches(['[', ']']);
        Some((sum, indices.split(',').map(String::from).collect()))
    }

    /// Names of the indices of a family, none of which is the name of anything in a formula.
    fn indices(&self, family: &Family) -> Vec<String> {
        let mut taken: Vec<&str> = self.names.roots().chain(["t"]).collect();
        let free = |taken: &[&str], name: &str| !taken.contains(&name);
        let mut names = Vec::new();
        for own in &family.indices {
            let name = std::iter::once(own.as_str()).chain(INDICES).find(|name| free(&taken, name));
            let name = name.unwrap_or(own);
            taken.push(name);
            names.push(name.to_string());
        }
        names
    }

    /// Sums over the members of families with equal indices: of products of two components of one
    /// member, and of the time and a component.
    pub fn sums(&self, model: &Model) -> Vec<Candidate> {
        let mut all = Vec::new();
        let mut rest: Vec<&Variable> =
            model.variables.iter().filter(|v| v.family.members() > 1).collect();
        while let Some(first) = rest.first() {
            let (of_group, others): (Vec<&Variable>, Vec<&Variable>) =
                rest.iter().partition(|v| v.family.bounds == first.family.bounds);
            let group = Group::new(first, self.indices(&first.family));
            let of = |v: &Variable| {
                (0..v.family.shape.len()).map(|k| group.component(v, k)).collect::<Vec<_>>()
            };
            let components: Vec<Component> = of_group.into_iter().flat_map(of).collect();
            for (k, one) in components.iter().enumerate() {
                all.extend(components[k..].iter().map(|other| group.sum(&[one, other], &[])));
                all.push(group.sum(&[one], &[self.time()]));
            }
            rest = others;
        }
        all
    }

    /// Texts of the factors above and below a fraction line; those of a member for a sum.
    pub fn texts(&self, candidate: &Candidate) -> [Vec<String>; 2] {
        let product = &candidate.products[0];
        let text = |factor: usize| match factor {
            i if i < self.dimension => {
                let of_member = product
                    .iter()
                    .position(|other| *other == i)
                    .and_then(|k| candidate.members.get(k));
                (of_member.map_or(self.names.state(i), String::as_str).to_string(), Binding::Whole)
            }
            i if i == self.time() => ("t".to_string(), Binding::Whole),
            i => self.names.bound(&self.graph, self.functions[i - self.dimension - 1].0),
        };
        let (mut numerator, mut denominator) = (Vec::new(), Vec::new());
        for together in product.chunk_by(|a, b| a == b) {
            let (mut base, mut binding) = text(together[0]);
            // A reciprocal divides the others.
            let over =
                base.strip_prefix("1/").filter(|_| binding == Binding::Product).map(String::from);
            let list = if over.is_some() { &mut denominator } else { &mut numerator };
            if let Some(over) = over {
                let binding_of = self
                    .names
                    .divisor(&self.graph, self.functions[together[0] - self.dimension - 1].0);
                (base, binding) = (over, binding_of);
            }
            let power = together.len();
            let bracketed =
                |least| if binding < least { format!("({base})") } else { base.clone() };
            list.push(match power {
                1 => bracketed(Binding::Power),
                _ => format!("{}^{power}", bracketed(Binding::Whole)),
            });
        }
        [numerator, denominator]
    }

    /// Candidates at up to `count` random points of the constraint set where they have values, with
    /// these parameters of the model. The points are `around` the initial state: at times in a
    /// span, and so many times as far as it is large.
    pub fn samples(
        &self,
        (model, field): (&Model, &Field),
        candidates: &[Candidate],
        around: ((f64, f64), f64),
        (count, seed): (usize, u64),
    ) -> Vec<Sample> {
        let parameters = &model.parameter_values;
        let invariants = field.constraints..field.invariants.len();
        let nodes = [&field.field[..], &field.invariants[invariants]].concat();
        let motion = Probe::new(&field.graph, &nodes, &[], field.dimension, parameters);
        let functions: Vec<Node> =
            self.functions.iter().flat_map(|(f, _, rate)| [*f, *rate]).collect();
        let gradients: Vec<&Gradient> =
            self.functions.iter().map(|(_, gradient, _)| gradient).collect();
        let functions = Probe::new(&self.graph, &functions, &gradients, self.dimension, parameters);
        let units = Scales::new(model).units(&model.initial);
        // Some points may have no value, as those with a negative argument of a logarithm.
        let points = (0..MOST_DRAWS)
            .flat_map(|draw| points_of_run(model, field, around, count, seed + (draw << 32)));
        let points: Vec<_> =
            points.filter(|(t, x)| all_finite(&motion.at(*t, x).0)).take(count).collect();
        // Where nothing depends on the time, it is as long as the motion takes to go as far as the
        // state is large.
        let (from, until) = around.0;
        let speeds = points.iter().map(|(t, x)| motion.at(*t, x).0);
        let own_time = typical_time(model, &units, speeds).unwrap_or(until - from);
        let sample = |(t, x): (f64, Vec<f64>)| {
            let t = if self.depends_on_time { t } else { (t - from) / (until - from) * own_time };
            let (mut v, _) = motion.at(t, &x);
            let known = v.split_off(field.dimension);
            let mut numbers = components(model, &units, &x, &v);
            numbers.push(Numbers { value: t, rate: 1.0, extent: t.abs(), wide: 1.0 });
            let (values, gradients) = functions.at(t, &x);
            for (of, gradient) in values.chunks_exact(2).zip(&gradients) {
                let (mut rate, mut wide) = (of[1], of[1].abs());
                for &(i, d) in gradient {
                    let Numbers { rate: own, wide: most, .. } = numbers[i as usize];
                    (rate, wide) = (rate + d * own, wide + d.abs() * most);
                }
                numbers.push(Numbers { value: of[0], rate, extent: of[0].abs(), wide });
            }
            let sample = Sample::new(candidates, &numbers, known);
            let has_values = [&sample.values, &sample.rates, &sample.known]
                .into_iter()
                .all(|list| all_finite(list));
            has_values.then_some(sample)
        };
        points.into_iter().filter_map(sample).collect()
    }
}

/// Families of a model's variables, by their components in the state.
fn families(model: &Model) -> impl Iterator<Item = (Range<usize>, usize)> {
    model.phase_variables().map(|v| (v.first..v.first + v.family.len(), v.family.shape.len()))
}

fn largest(list: &[f64]) -> f64 {
    list.iter().fold(0.0f64, |largest, v| largest.max(v.abs()))
}

/// Time in which families move by their size at some speeds, the geometric mean; `None` if nothing
/// moves.
fn typical_time(
    model: &Model,
    units: &[f64],
    speeds: impl Iterator<Item = Vec<f64>>,
) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for v in speeds {
        for (family, _) in families(model) {
            let logarithm = (largest(&units[family.clone()]) / largest(&v[family])).ln();
            if logarithm.is_finite() {
                (sum, count) = (sum + logarithm, count + 1.0);
            }
        }
    }
    (count > 0.0).then(|| f64::exp(sum / count))
}

/// Components of the state as factors at the state x with the speeds v.
fn components(model: &Model, units: &[f64], x: &[f64], v: &[f64]) -> Vec<Numbers> {
    let fastest = v.iter().zip(units).map(|(v, unit)| v.abs() / unit).fold(0.0, f64::max);
    let mut numbers = Vec::with_capacity(x.len() + 1);
    for (family, width) in families(model) {
        let of_family = largest(&v[family.clone()]);
        for first in family.step_by(width) {
            let member = first..first + width;
            let of_member = largest(&v[member.clone()]);
            numbers.extend(member.map(|i| Numbers {
                value: x[i],
                rate: v[i],
                extent: x[i].abs().max(units[i]),
                wide: of_member.max(SLOWEST * of_family.max(SLOWEST * fastest * units[i])),
            }));
        }
    }
    numbers
}

impl Sample {
    /// Only the candidates with these numbers.
    pub fn of(&self, kept: &[usize]) -> Sample {
        let [values, rates, extents, sizes] =
            [&self.values, &self.rates, &self.extents, &self.sizes]
                .map(|list| kept.iter().map(|&k| list[k]).collect());
        Sample { values, rates, extents, sizes, known: self.known.clone() }
    }

    fn new(candidates: &[Candidate], numbers: &[Numbers], known: Vec<f64>) -> Sample {
        let count = candidates.len();
        let [mut values, mut rates, mut extents, mut sizes] =
            [(); 4].map(|()| Vec::with_capacity(count));
        for candidate in candidates {
            let (mut value, mut extent, mut rate, mut size) = (0.0, 0.0, 0.0, 0.0);
            for product in &candidate.products {
                value += product.iter().map(|&factor| numbers[factor].value).product::<f64>();
                extent += product.iter().map(|&factor| numbers[factor].extent).product::<f64>();
                for (k, &factor) in product.iter().enumerate() {
                    let others = product.iter().enumerate().filter(|(other, _)| *other != k);
                    let others: f64 = others.map(|(_, &other)| numbers[other].value).product();
                    rate += others * numbers[factor].rate;
                    size += others.abs() * numbers[factor].wide;
                }
            }
            values.push(value);
            extents.push(extent);
            rates.push(rate);
            sizes.push(size);
        }
        Sample { values, rates, extents, sizes, known }
    }
}

/// Component of the members of a family: that of the first member, the distance to the next one's,
/// its name.
struct Component {
    first: usize,
    step: usize,
    name: String,
}

/// Families with equal indices.
struct Group {
    /// Names of the indices, and the range of a sum over them.
    indices: Vec<String>,
    range: String,
    members: usize,
}

impl Group {
    fn new(first: &Variable, indices: Vec<String>) -> Group {
        let bounds = &first.family.bounds;
        let range =
            indices.iter().zip(bounds).map(|(i, (low, high))| format!("{i} in {low}..{high}"));
        let range = range.collect::<Vec<_>>().join(", ");
        Group { indices, range, members: first.family.members() }
    }

    fn component(&self, v: &Variable, k: usize) -> Component {
        let suffix = component_suffix(v.family.shape, k);
        let name = format!("{}[{}]{suffix}", v.family.name, self.indices.join(","));
        Component { first: v.first + k, step: v.family.shape.len(), name }
    }

    /// Sum of the products of these components, times further factors.
    fn sum(&self, components: &[&Component], others: &[usize]) -> Candidate {
        let product = |member: usize| {
            let own = components.iter().map(|c| c.first + member * c.step);
            own.chain(others.iter().copied()).collect()
        };
        let members = components.iter().map(|c| c.name.clone()).collect();
        Candidate {
            range: self.range.clone(),
            products: (0..self.members).map(product).collect(),
            members,
        }
    }
}

/// Functions that are not polynomials, from the roots of formulas down.
#[derive(Default)]
struct Functions {
    found: Vec<Node>,
    seen: HashSet<Node>,
}

/// True if a node depends on the state or the time.
fn varies(g: &Graph, node: Node) -> bool {
    let moves =
        |n: &Node| matches!(g.expression(*n), Expression::Input(Input::State(_) | Input::Time));
    g.reachable(&[node]).iter().any(moves)
}

impl Functions {
    fn collect(&mut self, g: &mut Graph, node: Node) {
        if !self.seen.insert(node) {
            return;
        }
        match g.expression(node) {
            Expression::Constant(_) | Expression::Input(_) => {}
            Expression::Unary(Unary::Neg, a) => self.collect(g, a),
            Expression::Binary(Binary::Add | Binary::Sub | Binary::Mul, a, b) => {
                self.collect(g, a);
                self.collect(g, b);
            }
            Expression::Fused(_, a, b, c) => [a, b, c].into_iter().for_each(|n| self.collect(g, n)),
            Expression::Binary(Binary::Div, a, b) => {
                self.collect(g, a);
                if varies(g, b) {
                    let one = g.one();
                    self.found.push(g.div(one, b));
                }
            }
            Expression::Binary(Binary::Pow, a, b) => match g.value(b) {
                Some(power) if power >= 0.0 && power.fract() == 0.0 => self.collect(g, a),
                Some(power) if power.fract() == 0.0 => {
                    let one = g.one();
                    self.found.push(g.div(one, a));
                }
                _ if varies(g, node) => self.found.push(node),
                _ => {}
            },
            // Piecewise functions have no first integrals of their own.
            Expression::Unary(Unary::Abs | Unary::Round | Unary::Not, _) => {}
            Expression::Unary(op, a) if varies(g, a) => {
                self.found.push(node);
                // Derivatives of these lead to their partners.
                let partner = match op {
                    Unary::Sin => Some(Unary::Cos),
                    Unary::Cos => Some(Unary::Sin),
                    Unary::Sinh => Some(Unary::Cosh),
                    Unary::Cosh => Some(Unary::Sinh),
                    _ => None,
                };
                if let Some(partner) = partner {
                    self.found.push(g.unary(partner, a));
                }
            }
            _ => {}
        }
    }
}
