//! A phase space that records what a step computes: its values become quantities of [`Symbols`], its equations systems to
//! solve. What the quantities are, nodes of a graph for a small model or columns for a large one, is none of its business.

use super::symbols::Symbols;
use holonome_integrate::newton::Task;
use holonome_integrate::phase_space::{
    Asked, Body, Equation, Equations, Finding, Function, Guess, Parameter, Part, PhaseSpace, Residual, Value, Vector,
    Watched,
};
use holonome_integrate::state::Cost;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::rows::Family;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// How often a piece of a step evaluates the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Calls {
    /// The field.
    pub field: u64,
    /// H_q.
    pub gradient: u64,
    /// Second derivatives, in Newton matrices.
    pub hessian: u64,
}

impl Calls {
    /// So many times these.
    pub fn times(self, count: u64) -> Calls {
        Calls { field: count * self.field, gradient: count * self.gradient, hessian: count * self.hessian }
    }

    /// These and others.
    pub fn plus(self, other: Calls) -> Calls {
        Calls {
            field: self.field + other.field,
            gradient: self.gradient + other.gradient,
            hessian: self.hessian + other.hessian,
        }
    }

    /// Adds so many times these to a run's cost.
    pub fn count(self, times: u64, cost: &mut Cost) {
        cost.field += times * self.field;
        cost.gradient += times * self.gradient;
        cost.hessian += times * self.hessian;
    }
}

/// What a step came to, as functions of (x, t, h), of what is carried from step to step, and of the solutions of its
/// equations.
pub struct Trace<S: Symbols> {
    /// Where the quantities live.
    pub symbols: S,
    /// The components of x, t and h.
    pub x: Vec<S::Symbol>,
    pub t: S::Symbol,
    pub h: S::Symbol,
    /// x₁, or what else is wanted, with the length of each: that of a constant may be any.
    pub result: Vec<(S::Symbol, u32)>,
    /// The systems of equations, in the order in which they are solved.
    pub systems: Vec<System<S>>,
    /// What is carried to the next step: the input here and its next value. What is taken over comes first.
    pub carried: Vec<(S::Symbol, S::Symbol)>,
    /// The multipliers at the start of the step, and the places of those at its end among what is carried.
    pub multipliers: (Vec<S::Symbol>, Vec<usize>),
    /// Whether something is taken over from the step before.
    pub takes_over: bool,
    /// Where, among what is carried, the watched energy stands and where its value at the start of the run does.
    pub watched: Option<(usize, usize)>,
    /// Which of what is carried are sums of H at the end of the step, found with the forces there: none or all of them.
    pub sums: Range<usize>,
    /// The random numbers of the step, if it takes any.
    pub drawn: Option<Drawn>,
    /// What is evaluated once.
    pub calls: Calls,
}

/// Where the random numbers of a step stand among what is carried.
#[derive(Clone)]
pub struct Drawn {
    /// The number of the step.
    pub number: usize,
    /// For the components of the state of each family: two uniform numbers that make a normal one.
    pub uniform: Vec<([usize; 2], Family)>,
}

impl<S: Symbols> Trace<S> {
    /// Whether the step depends on the time.
    pub fn reads_time(&self) -> bool {
        let systems = self.systems.iter().flat_map(|system| system.residuals.iter().chain(&system.guesses));
        let roots: Vec<S::Symbol> = self.result.iter().map(|(symbol, _)| symbol).chain(systems).copied().collect();
        self.symbols.reached(&roots).contains(&self.t)
    }

    /// The next values of what is carried.
    pub fn next(&self) -> Vec<S::Symbol> {
        self.carried.iter().map(|&(_, next)| next).collect()
    }
}

/// A system of equations of a step, one family of them for each family of unknowns.
pub struct System<S: Symbols> {
    /// The inputs that stand for its solution.
    pub unknowns: Vec<S::Symbol>,
    /// What the equations say.
    pub rows: Vec<Equation>,
    /// The size of what cancels in each.
    pub sizes: Vec<S::Symbol>,
    /// Where the iteration starts.
    pub guesses: Vec<S::Symbol>,
    /// What is to vanish.
    pub residuals: Vec<S::Symbol>,
    /// Its derivatives.
    pub jacobian: S::Jacobian,
    /// Whether no derivative depends on the unknowns.
    pub linear: bool,
    /// Whether the run ends where its determinant vanishes.
    pub watched: Watched,
    /// What an iteration evaluates.
    pub calls: Calls,
}

impl<S: Symbols> System<S> {
    /// How it is solved, where unknowns and sizes stand there: by Newton's method, until something else is chosen.
    pub fn task(&self, unknowns: Range<usize>, sizes: Range<usize>) -> Task {
        let local = !self.linear && self.rows.iter().all(Equation::is_stage);
        Task { unknowns, sizes, linear: self.linear, local, sweeps: false }
    }
}

/// Equations that are being stated.
struct Frame<T> {
    unknowns: Vec<T>,
    rows: Vec<Equation>,
    sizes: Vec<T>,
    guesses: Vec<Option<T>>,
    residuals: Vec<T>,
}

impl<T> Frame<T> {
    fn empty() -> Frame<T> {
        let (unknowns, rows, sizes) = (Vec::new(), Vec::new(), Vec::new());
        Frame { unknowns, rows, sizes, guesses: Vec::new(), residuals: Vec::new() }
    }

    /// Drops the equations that `keep` does not hold for, and their unknowns.
    fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        fn kept<V>(list: &mut Vec<V>, keep: &impl Fn(usize) -> bool) {
            let mut numbers = 0..;
            list.retain(|_| numbers.next().is_some_and(keep));
        }
        kept(&mut self.unknowns, &keep);
        kept(&mut self.rows, &keep);
        kept(&mut self.sizes, &keep);
        kept(&mut self.guesses, &keep);
        kept(&mut self.residuals, &keep);
    }

    /// Takes the equations of another frame behind its own.
    fn join(&mut self, other: Frame<T>) {
        self.unknowns.extend(other.unknowns);
        self.rows.extend(other.rows);
        self.sizes.extend(other.sizes);
        self.guesses.extend(other.guesses);
        self.residuals.extend(other.residuals);
    }
}

/// A function of the model that a step has asked for.
struct Call<T> {
    /// What it counts as.
    counts: Calls,
    /// The place.
    arguments: Vec<T>,
    values: Vec<T>,
}

/// What becomes of what a step may take over from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handing {
    /// It is computed.
    Nothing,
    /// It is taken over.
    Over,
    /// It is all that is wanted.
    Found,
    /// It is computed, and where the force acts is all that is wanted.
    ForcePlaces,
}

/// Something on the way of a step, with the lengths.
struct Found<T> {
    symbols: Vec<(T, u32)>,
    /// How many systems are solved for it, and how often the model is asked.
    systems: usize,
    calls: usize,
}

/// What stands for random numbers: the number of the step, and two uniform numbers for every component of the momenta.
struct NoiseInputs<T> {
    number: T,
    pairs: Vec<[T; 2]>,
}

/// What is given of the steps before one.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// Whether the last was as long, and its result is where this one begins.
    pub follows: bool,
    pub handing: Handing,
    /// Whether guesses are handed, too.
    pub guesses: bool,
}

/// The recording phase space of a model.
pub struct Recorder<S: Symbols> {
    pub symbols: S,
    frames: Vec<Frame<S::Symbol>>,
    systems: Vec<System<S>>,
    carried: Vec<(S::Symbol, S::Symbol)>,
    multipliers: (Vec<S::Symbol>, Vec<usize>),
    /// What the state does not hold of a body's angular momentum.
    lost: Vec<S::Symbol>,
    given: Given,
    /// What is taken over from the step before.
    taken: Vec<S::Symbol>,
    /// Whether something is.
    takes_over: bool,
    /// What is wanted in place of the step.
    found: Option<Found<S::Symbol>>,
    watched: Option<(usize, usize)>,
    noise: Option<NoiseInputs<S::Symbol>>,
    calls: Vec<Call<S::Symbol>>,
}

fn symbols<S: Symbols>(values: &[Value]) -> Vec<S::Symbol> {
    values.iter().map(|&value| S::symbol(value)).collect()
}

fn values<S: Symbols>(symbols: &[S::Symbol]) -> Vec<Value> {
    symbols.iter().map(|&symbol| S::value(symbol)).collect()
}

/// Records a step.
pub fn record<S: Symbols>(
    mut symbols: S,
    given: Given,
    step: impl FnOnce(&mut dyn PhaseSpace, Value, Value, &[Value]) -> Vec<Value>,
) -> Trace<S> {
    let x: Vec<S::Symbol> = symbols.lengths().into_iter().map(|length| symbols.input(length)).collect();
    let [t, h] = [(); 2].map(|()| symbols.input(1));
    let mut recorder = Recorder::new(symbols, given);
    let result = step(&mut recorder, S::value(t), S::value(h), &values::<S>(&x));
    let mut result = recorder.with_lengths(self::symbols::<S>(&result));
    if matches!(given.handing, Handing::Found | Handing::ForcePlaces) {
        let found = recorder.found.take().unwrap_or(Found { symbols: Vec::new(), systems: 0, calls: 0 });
        result = found.symbols;
        recorder.systems.truncate(found.systems);
        recorder.calls.truncate(found.calls);
        recorder.carried.clear();
        recorder.multipliers = (Vec::new(), Vec::new());
        recorder.noise = None;
    }
    let (calls, drawn) = (recorder.count(), recorder.drawn());
    let Recorder { symbols, systems, carried, multipliers, takes_over, watched, .. } = recorder;
    Trace { symbols, x, t, h, result, systems, carried, multipliers, takes_over, watched, sums: 0..0, drawn, calls }
}

impl<S: Symbols> Recorder<S> {
    fn new(symbols: S, given: Given) -> Recorder<S> {
        Recorder {
            symbols,
            frames: Vec::new(),
            systems: Vec::new(),
            carried: Vec::new(),
            multipliers: (Vec::new(), Vec::new()),
            lost: Vec::new(),
            given,
            taken: Vec::new(),
            takes_over: false,
            found: None,
            watched: None,
            noise: None,
            calls: Vec::new(),
        }
    }

    /// Where random numbers stand among what is carried.
    fn drawn(&self) -> Option<Drawn> {
        let NoiseInputs { number, pairs } = self.noise.as_ref()?;
        let place = |symbol: S::Symbol| self.carried.iter().position(|&(input, _)| input == symbol);
        let pair = |(pair, family): (&[S::Symbol; 2], Family)| Some(([place(pair[0])?, place(pair[1])?], family));
        let uniform = pairs.iter().zip(self.symbols.momenta()).map(pair).collect::<Option<_>>()?;
        Some(Drawn { number: place(*number)?, uniform })
    }

    fn found_here(&self, symbols: Vec<(S::Symbol, u32)>) -> Found<S::Symbol> {
        Found { symbols, systems: self.systems.len(), calls: self.calls.len() }
    }

    /// What belongs to the first components of x, with their lengths.
    fn with_lengths(&self, symbols: Vec<S::Symbol>) -> Vec<(S::Symbol, u32)> {
        symbols.into_iter().zip(self.symbols.lengths()).collect()
    }

    /// Counts what every system evaluates in an iteration; gives what the step evaluates once. A function that does not
    /// depend on a system's unknowns is not evaluated in its iterations.
    fn count(&mut self) -> Calls {
        // The same function at the same place is one.
        let mut seen = FxHashSet::default();
        self.calls.retain(|call| seen.insert((call.counts, call.arguments.clone())));
        for system in &mut self.systems {
            let needed = self.symbols.reached(&system.residuals);
            let depends = |value: &S::Symbol| self.symbols.depends(*value, &system.unknowns);
            for call in &self.calls {
                if call.values.iter().any(|value| needed.contains(value) && depends(value)) {
                    let hessian = if system.linear { 0 } else { 1 };
                    system.calls = system.calls.plus(Calls { hessian, ..call.counts });
                }
            }
        }
        self.calls.iter().fold(Calls::default(), |sum, call| sum.plus(call.counts))
    }

    /// Unknowns that the others give, as functions of them: all, or momenta at stages, of which the forces are no functions.
    /// The last come first, as positions have a unit in common where momenta of unlike masses have not; and of a general
    /// field, whose components have units nobody knows, none is to stand for the others.
    fn given(&mut self, frame: &Frame<S::Symbol>) -> Vec<Option<S::Symbol>> {
        let mut given = vec![None; frame.unknowns.len()];
        // Those that are given so far, and those that they are functions of.
        let [mut gone, mut needed] = [(); 2].map(|()| FxHashSet::default());
        for (k, (&unknown, &residual)) in frame.unknowns.iter().zip(&frame.residuals).enumerate().rev() {
            if needed.contains(&unknown) {
                continue;
            }
            let reached = self.symbols.reached(&[residual]);
            if frame.unknowns.iter().any(|other| gone.contains(other) && reached.contains(other)) {
                continue;
            }
            given[k] = self.symbols.explicit(residual, unknown);
            if given[k].is_some() {
                gone.insert(unknown);
                needed.extend(frame.unknowns.iter().filter(|&&other| other != unknown && reached.contains(&other)));
            }
        }
        let some = self.symbols.degrees() > 0 || needed.is_empty();
        if some { given } else { vec![None; given.len()] }
    }

    /// Turns a complete frame into a system to solve.
    fn close(&mut self, frame: Frame<S::Symbol>, watched: Watched) {
        // The equations' own guesses first: those of equations inside may depend on them, and so may sizes.
        let mut replaced = FxHashMap::default();
        let mut guesses = Vec::with_capacity(frame.unknowns.len());
        for (&unknown, &guess) in frame.unknowns.iter().zip(&frame.guesses) {
            let guess = match guess {
                Some(guess) => self.symbols.substituted(guess, &mut replaced),
                None => self.last(unknown),
            };
            replaced.insert(unknown, guess);
            guesses.push(guess);
        }
        let sizes = frame.sizes.iter().map(|&size| self.symbols.substituted(size, &mut replaced)).collect();
        let (jacobian, linear) = self.symbols.differentiated(&frame.residuals, &frame.unknowns);
        self.systems.push(System {
            unknowns: frame.unknowns,
            rows: frame.rows,
            sizes,
            guesses,
            residuals: frame.residuals,
            jacobian,
            linear,
            watched,
            calls: Calls::default(),
        });
    }

    /// What a system solved for in the step before; where that was as long as this one, 2 λₙ − λₙ₋₁, which for smooth
    /// multipliers spares an iteration.
    fn last(&mut self, unknown: S::Symbol) -> S::Symbol {
        let length = self.symbols.length(unknown);
        let last = self.symbols.input(length);
        self.carried.push((last, unknown));
        if !self.given.follows {
            return last;
        }
        let before = self.symbols.input(length);
        self.carried.push((before, last));
        let minus = self.symbols.unary(Unary::Neg, before);
        let change = self.symbols.binary(Binary::Add, last, minus);
        self.symbols.binary(Binary::Add, last, change)
    }

    fn binary(&mut self, op: Binary, a: Value, b: Value) -> Value {
        S::value(self.symbols.binary(op, S::symbol(a), S::symbol(b)))
    }
}

impl<S: Symbols> PhaseSpace for Recorder<S> {
    fn dimension(&self) -> usize {
        self.symbols.lengths().len()
    }

    fn degrees(&self) -> usize {
        self.symbols.degrees()
    }

    fn constant(&mut self, c: f64) -> Value {
        S::value(self.symbols.constant(c))
    }

    fn sum(&mut self, a: Value, b: Value) -> Value {
        self.binary(Binary::Add, a, b)
    }

    fn product(&mut self, a: Value, b: Value) -> Value {
        self.binary(Binary::Mul, a, b)
    }

    fn quotient(&mut self, a: Value, b: Value) -> Value {
        self.binary(Binary::Div, a, b)
    }

    fn function(&mut self, f: Function, a: Value) -> Value {
        let op = match f {
            Function::Negative => Unary::Neg,
            Function::Magnitude => Unary::Abs,
            Function::Root => Unary::Sqrt,
            Function::Sine => Unary::Sin,
            Function::Cosine => Unary::Cos,
            Function::HyperbolicTangent => Unary::Tanh,
        };
        S::value(self.symbols.unary(op, S::symbol(a)))
    }

    fn size(&mut self, x: &[Value]) -> Value {
        S::value(self.symbols.largest(&symbols::<S>(x)))
    }

    fn total(&mut self, x: &[Value]) -> Value {
        S::value(self.symbols.total(symbols::<S>(x)))
    }

    fn ask(&mut self, asked: Asked, t: Value, x: &[Value]) -> Vec<Value> {
        let arguments = symbols::<S>(&[&[t], x].concat());
        let values = self.symbols.ask(asked, arguments[0], &arguments[1..]);
        let found = self::values::<S>(&values);
        let counted = |counts, arguments, values| Some(Call { counts, arguments, values });
        let call = match asked {
            Asked::Field => counted(Calls { field: 1, ..Calls::default() }, arguments, values),
            Asked::Slope => counted(Calls { gradient: 1, ..Calls::default() }, arguments, values),
            // However many directions it is taken along, it is one evaluation of second derivatives.
            Asked::Second | Asked::StiffSecond => {
                let positions = arguments[..=self.symbols.degrees()].to_vec();
                counted(Calls { hessian: 1, ..Calls::default() }, positions, Vec::new())
            }
            _ => None,
        };
        self.calls.extend(call);
        found
    }

    fn constraint_field(&mut self, t: Value, x: &[Value], lambda: &[Value]) -> Vec<Value> {
        S::constraint_field(self, t, x, lambda)
    }

    fn slide(&mut self, t: Value, x: &[Value], lambda: &[Value]) -> Vec<Value> {
        S::slide(self, t, x, lambda)
    }

    fn flow(&mut self, part: Part, t: Value, tau: Value, x: &[Value]) -> Vec<Value> {
        S::flow(self, part, t, tau, x)
    }

    fn body(&mut self, x: &[Value]) -> Body {
        let mut body = S::body(self, x);
        self.lost = body.momentum.map(|_| self.symbols.input(1)).to_vec();
        for (momentum, lost) in body.momentum.iter_mut().zip(self.lost.clone()) {
            *momentum = self.sum(*momentum, S::value(lost));
        }
        body
    }

    fn state_of(&mut self, body: &Body) -> Vec<Value> {
        let x = S::state_of(self, body);
        let read = S::body(self, &x).momentum;
        let next = (self as &mut dyn PhaseSpace).difference(&body.momentum, &read);
        let lost = std::mem::take(&mut self.lost);
        self.carried.extend(lost.into_iter().zip(symbols::<S>(&next)));
        x
    }

    fn inertia(&mut self) -> [Vector; 3] {
        S::inertia(self, false)
    }

    fn inverse_inertia(&mut self) -> [Vector; 3] {
        S::inertia(self, true)
    }

    fn torque(&mut self, t: Value, body: &Body) -> Vector {
        S::torque(self, t, body)
    }

    fn parameter(&mut self, which: Parameter) -> Value {
        S::value(self.symbols.parameter(which))
    }

    fn mass_is_diagonal(&self) -> bool {
        self.symbols.mass_is_diagonal()
    }

    /// √(−2 ln u) cos 2πv (Box and Muller) of numbers u and v that stand among what is carried, where whoever makes the step
    /// puts those of its number before it.
    fn noise(&mut self) -> Vec<Value> {
        let s = &mut self.symbols;
        let (number, one) = (s.input(1), s.constant(1.0));
        let next = s.binary(Binary::Add, number, one);
        self.carried.push((number, next));
        let (minus_two, turn) = (s.constant(-2.0), s.constant(std::f64::consts::TAU));
        let (mut pairs, mut normal) = (Vec::new(), Vec::new());
        for family in s.momenta() {
            let [u, v] = [(); 2].map(|()| s.input(family.length));
            self.carried.extend([(u, u), (v, v)]);
            pairs.push([u, v]);
            let logarithm = s.unary(Unary::Log, u);
            let square = s.binary(Binary::Mul, minus_two, logarithm);
            let radius = s.unary(Unary::Sqrt, square);
            let angle = s.binary(Binary::Mul, turn, v);
            let cosine = s.unary(Unary::Cos, angle);
            normal.push(S::value(s.binary(Binary::Mul, radius, cosine)));
        }
        self.noise = Some(NoiseInputs { number, pairs });
        normal
    }

    fn take_over(&mut self, like: &[Value], find: Finding) -> Vec<Value> {
        let lengths: Vec<u32> = like.iter().map(|&value| self.symbols.length(S::symbol(value))).collect();
        let (systems, calls, carried) = (self.systems.len(), self.calls.len(), self.carried.len());
        let mut found = symbols::<S>(&find(self));
        match self.given.handing {
            Handing::Nothing | Handing::ForcePlaces => {}
            Handing::Found => {
                let symbols = found.iter().copied().zip(lengths).collect();
                self.found = Some(self.found_here(symbols));
            }
            Handing::Over => {
                // Only their lengths were wanted.
                self.systems.truncate(systems);
                self.calls.truncate(calls);
                self.carried.truncate(carried);
                found = found.iter().zip(lengths).map(|(_, length)| self.symbols.input(length)).collect();
                self.taken.clone_from(&found);
                self.takes_over = true;
            }
        }
        values::<S>(&found)
    }

    fn take_over_guess(&mut self, like: &[Value], find: Finding) -> Vec<Value> {
        if self.given.guesses { self.take_over(like, find) } else { find(self) }
    }

    fn hand_over(&mut self, values: &[Value]) {
        let taken = std::mem::take(&mut self.taken);
        self.carried.splice(0..0, taken.into_iter().zip(symbols::<S>(values)));
    }

    fn watch(&mut self, energy: Value) {
        let place = self.carried.iter().position(|&(_, next)| next == S::symbol(energy));
        if let Some(place) = place.filter(|_| self.symbols.autonomous() && self.takes_over) {
            let start = self.symbols.input(1);
            self.carried.push((start, start));
            self.watched = Some((place, self.carried.len() - 1));
        }
    }

    fn force_at(&mut self, q: &[Value]) {
        if self.given.handing == Handing::ForcePlaces {
            let symbols = self.with_lengths(symbols::<S>(q));
            self.found = Some(self.found_here(symbols));
        }
    }

    fn solve(&mut self, equations: &Equations, residual: Residual) -> Vec<Value> {
        let lengths: Vec<u32> = equations.rows.iter().map(|&row| self.symbols.equations(row)).collect();
        let unknowns: Vec<S::Symbol> = lengths.into_iter().map(|length| self.symbols.input(length)).collect();
        let before = self.calls.len();
        self.frames.push(Frame::empty());
        let residuals = residual(self, &values::<S>(&unknowns));
        let inner = self.frames.pop().expect("pushed above");
        let guesses = match equations.guess {
            Guess::Last => vec![None; unknowns.len()],
            Guess::At(guess) => guess.iter().map(|&value| Some(S::symbol(value))).collect(),
        };
        // The outer unknowns first: inner guesses depend on them.
        let mut frame = Frame {
            unknowns,
            rows: equations.rows.to_vec(),
            sizes: symbols::<S>(equations.size),
            guesses,
            residuals: symbols::<S>(&residuals),
        };
        let mut solution = values::<S>(&frame.unknowns);
        if inner.unknowns.is_empty() {
            let given = self.given(&frame);
            if given.iter().any(Option::is_some) {
                for (value, given) in solution.iter_mut().zip(&given) {
                    *value = given.map_or(*value, S::value);
                }
                // The residuals of the others, and what the step wants to know besides, with these in place.
                self.calls.truncate(before);
                frame.residuals = symbols::<S>(&residual(self, &solution));
                frame.retain(|k| given[k].is_none());
            }
            if frame.unknowns.is_empty() {
                return solution;
            }
        }
        frame.join(inner);
        match self.frames.last_mut() {
            Some(outer) => outer.join(frame),
            None => self.close(frame, equations.watched),
        }
        solution
    }

    fn accumulate(&mut self, x: &[Value], increment: &[Value]) -> Vec<Value> {
        let mut sums = Vec::with_capacity(x.len());
        for (x, increment) in symbols::<S>(x).into_iter().zip(symbols::<S>(increment)) {
            let s = &mut self.symbols;
            let lost = s.input(s.length(x));
            let step = s.binary(Binary::Add, increment, lost);
            let sum = s.binary(Binary::Add, x, step);
            // x − sum is exact up to the last bit of x: what of the step did not fit.
            let taken = s.binary(Binary::Sub, x, sum);
            let next = s.binary(Binary::Add, taken, step);
            self.carried.push((lost, next));
            sums.push(S::value(sum));
        }
        sums
    }

    fn record_multipliers(&mut self, start: &[Value], end: &[Value]) {
        // Those at the end are asked for after the step. As guesses for the next one they are carried already.
        let mut places = Vec::with_capacity(end.len());
        for end in symbols::<S>(end) {
            let known = self.carried.iter().position(|&(_, next)| next == end);
            places.push(known.unwrap_or_else(|| {
                let input = self.symbols.input(self.symbols.length(end));
                self.carried.push((input, end));
                self.carried.len() - 1
            }));
        }
        self.multipliers = (symbols::<S>(start), places);
    }
}
