//! Events of a model, compiled: their functions with the rates along the motion, and the states that
//! they set.

mod impact;
mod log;

use crate::error::Error;
use crate::kernels::{
    Bound, Parametric, ParametricEvents, Quantities, StateVectors, WithVelocities,
};
use crate::options::RunOptions;
use crate::problem::Problem;
use holonome_integrate::events::{Action, Crossing, EventRule, Events};
use holonome_integrate::system::Vectors;
use holonome_model::elaborate::expression::{
    ACCELERATION, MOMENTUM, MULTIPLIER, REACTION, STATE, VELOCITY,
};
use holonome_model::elaborate::model::{Event, EventAction, Following, Model, Reset};
use holonome_model::functional::Functional;
use holonome_model::graph::op::Unary;
use holonome_model::graph::{Graph, Input, Node};
use holonome_model::syntax::diagnostic::Diagnostic;
use holonome_model::syntax::span::Span;
use holonome_model::treatment::following_nodes::FollowingNodes;
use holonome_model::treatment::{Field, Watched};
use holonome_words::option;
use impact::Impacts;
pub use log::EventTable;
pub(crate) use log::entries;
use std::sync::Arc;

/// Largest number of operations of the functions of a templated model's events.
const LARGEST: usize = 100_000;

/// What event functions do, compiled for a run.
#[derive(Clone)]
pub(crate) struct CompiledEvents {
    rules: Arc<Vec<EventRule>>,
    /// Functions, then their rates.
    values: Box<dyn Quantities>,
    /// Sums of their terms.
    terms: Box<dyn Quantities>,
    /// Values that events set, and where each event finds its own.
    resets: Option<Box<dyn Quantities>>,
    sets: Arc<Vec<Sets>>,
    reset_count: usize,
    impacts: Option<Impacts>,
}

/// What one event sets: pairs of a value and a component of the state; or the number of an impact.
#[derive(Clone, Debug)]
enum Sets {
    Values(Vec<(u32, u32)>),
    Impact(usize),
}

/// Formulas of what events do.
#[derive(Default)]
struct Doings {
    /// What each event sets.
    sets: Vec<Sets>,
    /// Values that are set.
    values: Vec<Node>,
    /// Function of each impact, with its restitution and friction.
    normals: Vec<Node>,
    coefficients: Vec<(Node, Option<Node>)>,
}

impl Doings {
    /// Formulas of the events of a model, whose functions are `functions`.
    fn of(model: &Model, functions: &[Node], source: &mut Source) -> Doings {
        let mut doings = Doings::default();
        let mut first = 0;
        for event in &model.events {
            let members = event.quantity.members;
            match &event.action {
                EventAction::Reset(resets) => doings.reset(resets, members, source),
                EventAction::Impact { restitution, friction } => {
                    let restitution = source.unroll(restitution);
                    let friction = friction.as_ref().map(|friction| source.unroll(friction));
                    for member in 0..members {
                        doings.sets.push(Sets::Impact(doings.normals.len()));
                        doings.normals.push(functions[first + member]);
                        let of_friction = friction.as_ref().map(|all| all[member]);
                        doings.coefficients.push((restitution[member], of_friction));
                    }
                }
                EventAction::Record | EventAction::Stop => {
                    doings.sets.extend((0..members).map(|_| Sets::Values(Vec::new())));
                }
            }
            first += members;
        }
        doings
    }

    fn reset(&mut self, resets: &[Reset], members: usize, source: &mut Source) {
        let mut own = vec![Vec::new(); members];
        for reset in resets {
            let nodes = source.unroll(&reset.values);
            let width = (nodes.len() / members.max(1)).max(1);
            for (k, (node, &place)) in nodes.into_iter().zip(&reset.places).enumerate() {
                own[k / width].push((self.values.len() as u32, place));
                self.values.push(node);
            }
        }
        self.sets.extend(own.into_iter().map(Sets::Values));
    }
}

/// `field` with the functions of the events of a problem, which loops of its steps watch.
///
/// # Errors
/// If an event needs what the field does not know, or the options name none.
pub(crate) fn watched(
    problem: &Problem,
    field: &Field,
    options: &RunOptions,
) -> Result<Field, Error> {
    let model = &problem.model;
    refuse_unknown(problem, Some(field), options)?;
    let mut source = Source::new(model, Some(field));
    let functions = source.functions(model);
    let rates = source.rates(&functions, model);
    let pairs = functions.into_iter().zip(rates);
    let watched = pairs.map(|(value, rate)| Watched { value, rate }).collect();
    Ok(Field { graph: source.graph, watched, ..field.clone() })
}

/// Compile the events of a problem; `None` if it has none. `field` is that of the motion, if it is
/// unrolled.
///
/// # Errors
/// If an event needs what the model's form does not know, or the options name none.
pub(crate) fn compile(
    problem: &Problem,
    field: Option<&Field>,
    vectors: &StateVectors,
    options: &RunOptions,
) -> Result<Option<Box<dyn ParametricEvents>>, Error> {
    let model = &problem.model;
    refuse_unknown(problem, field, options)?;
    let surfaces = field.map_or(0, |field| field.surfaces.len());
    if model.events.is_empty() && surfaces == 0 {
        return Ok(None);
    }
    let mut rules = rules(problem, options)?;
    rules.extend((1..=surfaces).map(surface));
    let mut source = Source::new(model, field);
    let functions = source.functions(model);
    let rates = source.rates(&functions, model);
    let terms: Vec<Node> = functions.iter().map(|&of| source.terms(of, &vectors.vectors)).collect();
    let doings = Doings::of(model, &functions, &mut source);
    let Doings { mut sets, values, normals, coefficients } = doings;
    sets.extend((0..surfaces).map(|_| Sets::Values(Vec::new())));
    let impacts = match normals.is_empty() {
        true => None,
        false => {
            let of = (&normals[..], &coefficients[..]);
            Some(Impacts::new(problem, field, vectors, of, &mut source)?)
        }
    };
    let functions: Vec<Node> = functions.into_iter().chain(rates).collect();
    Ok(Some(Box::new(CompiledEvents {
        rules: Arc::new(rules),
        values: source.compile(model, &functions),
        terms: source.compile(model, &terms),
        resets: (!values.is_empty()).then(|| source.compile(model, &values)),
        sets: Arc::new(sets),
        reset_count: values.len(),
        impacts,
    })))
}

/// Graph in which the formulas of events are written: that of an unrolled field, or one of their
/// own, whose kernels find the velocities first.
struct Source<'a> {
    graph: Graph,
    field: Option<&'a Field>,
    /// What follows the state, if the field is known.
    followed: Option<FollowingNodes>,
    following: Following,
    degrees: usize,
}

impl<'a> Source<'a> {
    fn new(model: &Model, field: Option<&'a Field>) -> Source<'a> {
        let events = model.events.iter();
        let read: Vec<&Functional> = events.flat_map(functionals).collect();
        let (graph, followed) = match field {
            Some(field) => {
                let (mut field, given) = (field.clone(), field.dimension);
                let followed = FollowingNodes::new(&mut field, model, &read, given);
                (field.graph, Some(followed))
            }
            None => (Graph::new(), None),
        };
        let (following, degrees) = (model.following(), model.degrees());
        Source { graph, field, followed, following, degrees }
    }

    /// Functions of a model's events, and then those of the switching surfaces of its field.
    fn functions(&mut self, model: &Model) -> Vec<Node> {
        let events = model.events.iter();
        let of_events = events.flat_map(|event| self.unroll(&event.quantity.functional));
        let mut functions: Vec<Node> = of_events.collect();
        functions.extend(self.field.iter().flat_map(|field| &field.surfaces));
        functions
    }

    fn unroll(&mut self, functional: &Functional) -> Vec<Node> {
        let Source { graph, followed, .. } = self;
        let mut state = |g: &mut Graph, k: usize| match followed {
            Some(followed) => followed.node(g, k),
            None => g.state(k),
        };
        functional.unroll_over(graph, &mut state)
    }

    /// Rows of A, by position, of a rolling constraint A v + b = 0.
    fn rolling_rows(&mut self, rolling: &Functional) -> Vec<Vec<(u32, Node)>> {
        let Source { graph, following, degrees, .. } = self;
        let (first, entries) = (following.velocities as u32, rolling.unroll(graph));
        let mut row = |entry: Node| -> Vec<(u32, Node)> {
            let slopes = graph.gradient(entry).into_iter();
            let by_velocity = slopes.filter_map(|(i, slope)| Some((i.checked_sub(first)?, slope)));
            by_velocity.filter(|&(i, _)| (i as usize) < *degrees).collect()
        };
        entries.into_iter().map(&mut row).collect()
    }

    /// Rate of a function along the motion, which reads only what is known to have one.
    fn rate(&mut self, of: Node) -> Node {
        let Source { graph, field, following, degrees, .. } = self;
        let along = graph.tangent(&[of], |g, input| match (input, &field) {
            (Input::State(k), Some(field)) => {
                let motion = field.underlying.as_ref().unwrap_or(&field.field);
                motion.get(k as usize).copied()
            }
            (Input::State(k), None) if (k as usize) < *degrees => {
                Some(g.state(following.velocities + k as usize))
            }
            _ => None,
        });
        let explicit = graph.time_derivative(of);
        graph.add(along[0], explicit)
    }

    /// Rates of the events' functions; NaN where they are not known: those of momenta, and of the
    /// variables of a large vector field, are no formulas.
    fn rates(&mut self, functions: &[Node], model: &Model) -> Vec<Node> {
        let unknown = if self.field.is_some() { 0 } else { MOMENTUM | STATE | VELOCITY };
        let events = model.events.iter().map(|event| &event.quantity);
        let known = events.flat_map(|quantity| {
            std::iter::repeat_n(quantity.depends & unknown == 0, quantity.members)
        });
        // Surfaces are those of a field, along which all is known.
        let known: Vec<bool> = known.chain(std::iter::repeat(true)).take(functions.len()).collect();
        let rate = |(&of, known): (&Node, bool)| match known {
            true => self.rate(of),
            false => self.graph.constant(f64::NAN),
        };
        functions.iter().zip(known).map(rate).collect()
    }

    /// Sum of the absolute terms of a function: Σ |∂g/∂x_i| |x|, where |x| is the length of the vector
    /// to which the component belongs.
    fn terms(&mut self, of: Node, vectors: &Vectors) -> Node {
        let g = &mut self.graph;
        let gradient = g.gradient(of);
        let mut sum = g.time_derivative(of);
        let t = g.input(Input::Time);
        sum = g.mul(sum, t);
        sum = g.unary(Unary::Abs, sum);
        let dimension: usize = (0..vectors.count()).map(|v| vectors.components_of(v).len()).sum();
        for (i, slope) in gradient.into_iter().filter(|&(i, _)| (i as usize) < dimension) {
            let components = vectors.components_of(vectors.vector_of(i as usize));
            let squares: Vec<Node> = components
                .map(|k| {
                    let x = g.state(k);
                    g.mul(x, x)
                })
                .collect();
            let square = g.sum(squares);
            let length = g.sqrt(square);
            let term = g.mul(slope, length);
            let term = g.unary(Unary::Abs, term);
            sum = g.add(sum, term);
        }
        sum
    }

    /// Kernel of these nodes.
    fn compile(&self, model: &Model, nodes: &[Node]) -> Box<dyn Quantities> {
        match self.field {
            Some(field) => {
                let field = Field { graph: self.graph.clone(), ..field.clone() };
                Box::new(Bound::of(&field, nodes, &model.parameter_values))
            }
            None => {
                let functional = Functional::of_nodes(&self.graph, nodes, Span::default());
                Box::new(WithVelocities::new(model, &[&functional]))
            }
        }
    }
}

/// Formulas of an event.
fn functionals(event: &Event) -> Vec<&Functional> {
    let mut all = vec![&event.quantity.functional];
    match &event.action {
        EventAction::Reset(resets) => all.extend(resets.iter().map(|reset| &reset.values)),
        EventAction::Impact { restitution, friction } => {
            all.push(restitution);
            all.extend(friction);
        }
        EventAction::Record | EventAction::Stop => {}
    }
    all
}

/// Events of a problem that act at every K-th crossing for K > 1, but whose crossings the run that it
/// starts from has not counted: the name of each family.
pub(crate) fn uncounted(problem: &Problem) -> Vec<&str> {
    let Some(start) = &problem.settings.start else { return Vec::new() };
    let is_uncounted = |event: &&Event| {
        let quantity = &event.quantity;
        let mut names = (0..quantity.members).map(|member| quantity.member_name(member));
        event.every > 1 && names.any(|name| !start.counts.contains_key(&name))
    };
    let events = problem.model.events.iter().filter(is_uncounted);
    events.map(|event| &*event.quantity.name).collect()
}

/// The rules of a problem's events, one for each member.
fn rules(problem: &Problem, options: &RunOptions) -> Result<Vec<EventRule>, Error> {
    let (model, start) = (&problem.model, problem.settings.start.as_ref());
    let mut rules = Vec::new();
    for event in &model.events {
        let crossing = match event.direction {
            0 => Crossing::Any,
            direction if direction > 0 => Crossing::Rising,
            _ => Crossing::Falling,
        };
        let action = match event.action {
            EventAction::Record => Action::Record,
            EventAction::Stop => Action::Stop,
            EventAction::Reset(_) | EventAction::Impact { .. } => Action::Reset,
        };
        // The function of an impact is a gap, unless it starts on the other side.
        let rest = match (crossing, &event.action) {
            (Crossing::Rising, _) => -1,
            (Crossing::Any, EventAction::Record | EventAction::Stop | EventAction::Reset(_)) => 0,
            _ => 1,
        };
        for member in 0..event.quantity.members {
            let name = event.quantity.member_name(member);
            let counted = start.and_then(|start| start.counts.get(&name)).map_or(0, |count| *count);
            let every = event.every;
            rules.push(EventRule { name, crossing, every, action, counted, last: None, rest });
        }
    }
    let Some((name, last)) = &options.until_event else { return Ok(rules) };
    let of_family = |rule: &EventRule| rule.name.split('[').next() == Some(name.as_str());
    let mut named =
        rules.iter_mut().filter(|rule| rule.name == *name || of_family(rule)).peekable();
    if named.peek().is_none() {
        let known: Vec<&str> = model.events.iter().map(|e| e.quantity.name.as_str()).collect();
        return Err(Error::option(format!(
            "{} names the event '{name}', which the model does not have; {}",
            option("until_event"),
            match known.is_empty() {
                true => "it has none: write event NAME : EXPR = 0".to_string(),
                false => format!("it has {}", known.join(", ")),
            }
        )));
    }
    named.for_each(|rule| rule.last = Some(rule.counted + *last));
    Ok(rules)
}

/// Rule of the switching surface of this number, which has no name in the model.
fn surface(number: usize) -> EventRule {
    EventRule {
        name: format!("switching surface {number}"),
        crossing: Crossing::Any,
        every: 1,
        action: Action::Land,
        counted: 0,
        last: None,
        rest: 0,
    }
}

/// Refuse events that read what nothing knows, and those that cannot be undone, backwards in time.
fn refuse_unknown(
    problem: &Problem,
    field: Option<&Field>,
    options: &RunOptions,
) -> Result<(), Error> {
    let model = &problem.model;
    if model.events.is_empty() && options.until_event.is_some() {
        rules(problem, options)?;
    }
    let refuse = |event: &Event, message: String, label: &str, help: &str| {
        let diagnostic = Diagnostic::error(message, event.quantity.span, label).help(help);
        Err(Error::Model { text: Box::new(problem.source.clone()), diagnostics: vec![diagnostic] })
    };
    for event in &model.events {
        let name = &event.quantity.name;
        let sets = matches!(event.action, EventAction::Reset(_) | EventAction::Impact { .. });
        if model.reversed && sets {
            let message =
                format!("event '{name}' sets the state, which a run backwards cannot undo");
            let help = "record it, or run forwards from an earlier state";
            return refuse(event, message, "this runs forwards only", help);
        }
        let depends = event.quantity.depends;
        if depends & MULTIPLIER != 0 && field.is_none_or(|field| field.multipliers.is_empty()) {
            let message = format!("event '{name}' uses multipliers, which have no formula here");
            let help = "make the model smaller, so that it is unrolled, or use the forces";
            return refuse(event, message, "not known", help);
        }
        if field.is_none() && depends & (ACCELERATION | REACTION) != 0 {
            let message = format!(
                "event '{name}' uses accelerations or reactions, and the model is too large to be unrolled"
            );
            let help = "an acceleration is M⁻¹ times the forces: write them";
            return refuse(event, message, "not known", help);
        }
        if field.is_none() && event.quantity.functional.unrolled_size() > LARGEST {
            let message = format!("event '{name}' has more than {LARGEST} operations");
            return refuse(event, message, "too large", "watch a part of the members");
        }
    }
    Ok(())
}

impl Parametric for CompiledEvents {
    fn rebind(&mut self, parameters: &[f64]) {
        self.values.rebind(parameters);
        self.terms.rebind(parameters);
        self.resets.rebind(parameters);
        if let Some(impacts) = &mut self.impacts {
            impacts.rebind(parameters);
        }
    }
}

impl ParametricEvents for CompiledEvents {
    fn boxed(&self) -> Box<dyn ParametricEvents> {
        Box::new(self.clone())
    }
}

impl Events for CompiledEvents {
    fn rules(&self) -> &[EventRule] {
        &self.rules
    }

    fn work_len(&self) -> usize {
        let resets = self.resets.as_ref().map_or(0, |resets| resets.work_len() + self.reset_count);
        let impacts = self.impacts.as_ref().map_or(0, Impacts::work_len);
        let values = 2 * self.rules.len() + self.values.work_len();
        values.max(self.terms.work_len()).max(resets).max(impacts)
    }

    fn values(&self, t: f64, x: &[f64], values: &mut [f64], rates: &mut [f64], work: &mut [f64]) {
        let count = values.len();
        let (both, work) = work.split_at_mut(2 * count);
        self.values.run(t, x, both, work);
        values.copy_from_slice(&both[..count]);
        rates.copy_from_slice(&both[count..]);
    }

    fn terms(&self, t: f64, x: &[f64], terms: &mut [f64], work: &mut [f64]) {
        self.terms.run(t, x, terms, work);
    }

    fn reset(&self, event: usize, t: f64, x: &mut [f64], work: &mut [f64]) {
        match (&self.sets[event], &self.resets, &self.impacts) {
            (Sets::Values(pairs), Some(resets), _) => {
                let (values, work) = work.split_at_mut(self.reset_count);
                resets.run(t, x, values, work);
                for &(value, place) in pairs {
                    x[place as usize] = values[value as usize];
                }
            }
            (Sets::Impact(number), _, Some(impacts)) => impacts.act(*number, t, x, work),
            _ => {}
        }
    }
}
