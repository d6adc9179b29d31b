//! Phase space that records a step: its values become quantities of [`Symbols`], its equations
//! systems to solve. Quantities are nodes of a graph for a small model, columns for a large one;
//! the recorder knows neither.

mod phase_space;

use super::symbols::Symbols;
use holonome_integrate::newton::Task;
use holonome_integrate::phase_space::{Equation, Monitored, PhaseSpace, Value};
use holonome_integrate::state::Cost;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::rows::StridedFamily;
pub use phase_space::CompositeFunctions;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Evaluations of the model in a piece of a step.
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
    /// These calls, `count` times.
    pub fn times(self, count: u64) -> Calls {
        Calls {
            field: count * self.field,
            gradient: count * self.gradient,
            hessian: count * self.hessian,
        }
    }

    /// Sum of these calls and others.
    pub fn plus(self, other: Calls) -> Calls {
        Calls {
            field: self.field + other.field,
            gradient: self.gradient + other.gradient,
            hessian: self.hessian + other.hessian,
        }
    }

    /// Add these calls, `times` times, to a run's cost.
    pub fn count(self, times: u64, cost: &mut Cost) {
        cost.field += times * self.field;
        cost.gradient += times * self.gradient;
        cost.hessian += times * self.hessian;
    }
}

/// Recording of a step: functions of (x, t, h), of carried quantities and of the solutions of the
/// step's equations.
pub struct Trace<S: Symbols> {
    /// Store of the quantities.
    pub symbols: S,
    /// The components of x, t and h.
    pub x: Vec<S::Symbol>,
    pub t: S::Symbol,
    pub h: S::Symbol,
    /// x₁, or other wanted quantities, with their lengths; the length of a constant may be any.
    pub result: Vec<(S::Symbol, u32)>,
    /// Systems of equations, in the order in which they are solved.
    pub systems: Vec<System<S>>,
    /// Carried quantities: the input here and its value for the next step. Quantities reused from
    /// the previous step (FSAL) come first.
    pub carried: Vec<(S::Symbol, S::Symbol)>,
    /// Multipliers at the start of the step, and the places, among the carried quantities, of those
    /// at its end.
    pub multipliers: (Vec<S::Symbol>, Vec<usize>),
    /// True if the step reuses values of the previous one (FSAL).
    pub has_fsal: bool,
    /// True if these are part of a longer state, and do not follow from x.
    pub extends_state: bool,
    /// Places, among the carried quantities, of the monitored energy and of its value at the start
    /// of the run.
    pub monitored: Option<(usize, usize)>,
    /// Places, among the carried quantities, of the sums of H at the end of the step, which are
    /// found with the forces there; empty, or all sums.
    pub sums: Range<usize>,
    /// Random numbers of the step, if it takes any.
    pub drawn: Option<Drawn>,
    /// Nearness of bodies that may meet in the step.
    pub encounter: Option<Encounter<S::Symbol>>,
    /// Evaluations that the step makes once.
    pub calls: Calls,
}

/// Nearness of bodies that may meet in a step.
#[derive(Clone, Copy)]
pub struct Encounter<T> {
    /// Largest one at its start and at its end.
    pub nearness: T,
    /// That at its start.
    pub start: T,
}

/// Places of a step's random numbers among the carried quantities.
#[derive(Clone)]
pub struct Drawn {
    /// Number of the step.
    pub number: usize,
    /// Two uniform numbers that make a normal one, for the components of the state of each family.
    pub uniform: Vec<([usize; 2], StridedFamily)>,
}

impl<S: Symbols> Trace<S> {
    /// True if the step depends on the time.
    pub fn reads_time(&self) -> bool {
        let systems =
            self.systems.iter().flat_map(|system| system.residuals.iter().chain(&system.guesses));
        let roots: Vec<S::Symbol> =
            self.result.iter().map(|(symbol, _)| symbol).chain(systems).copied().collect();
        self.symbols.reached(&roots).contains(&self.t)
    }

    /// Next values of the carried quantities.
    pub fn next(&self) -> Vec<S::Symbol> {
        self.carried.iter().map(|&(_, next)| next).collect()
    }
}

/// System of equations of a step, with one family of equations for each family of unknowns.
pub struct System<S: Symbols> {
    /// Inputs that stand for the solution.
    pub unknowns: Vec<S::Symbol>,
    /// Meaning of each family of equations.
    pub rows: Vec<Equation>,
    /// Scale of each family of equations: the size of the terms that cancel. And the scale for
    /// fixed-point iterations.
    pub sizes: Vec<S::Symbol>,
    pub sweep_sizes: Vec<S::Symbol>,
    /// Initial guesses of the iteration.
    pub guesses: Vec<S::Symbol>,
    /// Residuals, 0 at the solution.
    pub residuals: Vec<S::Symbol>,
    /// Derivatives of the residuals.
    pub jacobian: S::Jacobian,
    /// True if no derivative depends on the unknowns.
    pub linear: bool,
    /// See [`Equations::monotone`](holonome_integrate::phase_space::Equations::monotone).
    pub monotone: Option<f64>,
    /// Kind of monitoring: the run may end where the determinant vanishes.
    pub monitored: Monitored,
    /// Evaluations of an iteration.
    pub calls: Calls,
}

impl<S: Symbols> System<S> {
    /// Newton task for the system, with its unknowns and scales in these registers. The caller may
    /// choose another iteration later.
    pub fn task(&self, unknowns: Range<usize>, [sizes, sweep_sizes]: [Range<usize>; 2]) -> Task {
        let local = !self.linear && self.rows.iter().all(Equation::is_stage);
        Task {
            unknowns,
            sizes,
            sweep_sizes,
            linear: self.linear,
            local,
            sweeps: false,
            monotone: self.monotone,
        }
    }
}

/// Equations that are being stated.
struct Frame<T> {
    unknowns: Vec<T>,
    rows: Vec<Equation>,
    sizes: Vec<T>,
    sweep_sizes: Vec<T>,
    guesses: Vec<Option<T>>,
    residuals: Vec<T>,
    /// Slopes of the residuals by their own unknowns, if the step gives them.
    slopes: Vec<T>,
    /// See [`Equations::monotone`](holonome_integrate::phase_space::Equations::monotone).
    monotone: Option<f64>,
}

impl<T> Frame<T> {
    fn empty() -> Frame<T> {
        let (unknowns, rows, guesses) = (Vec::new(), Vec::new(), Vec::new());
        Frame {
            unknowns,
            rows,
            sizes: Vec::new(),
            sweep_sizes: Vec::new(),
            guesses,
            residuals: Vec::new(),
            slopes: Vec::new(),
            monotone: None,
        }
    }

    /// Drop the equations that `keep` does not hold for, and their unknowns.
    fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        fn kept<V>(list: &mut Vec<V>, keep: &impl Fn(usize) -> bool) {
            let mut numbers = 0..;
            list.retain(|_| numbers.next().is_some_and(keep));
        }
        kept(&mut self.unknowns, &keep);
        kept(&mut self.rows, &keep);
        kept(&mut self.sizes, &keep);
        kept(&mut self.sweep_sizes, &keep);
        kept(&mut self.guesses, &keep);
        kept(&mut self.residuals, &keep);
    }

    /// Append the equations of another frame, on which those of this one may depend.
    fn join(&mut self, other: Frame<T>) {
        if !other.unknowns.is_empty() {
            self.slopes.clear();
            self.monotone = None;
        }
        self.unknowns.extend(other.unknowns);
        self.rows.extend(other.rows);
        self.sizes.extend(other.sizes);
        self.sweep_sizes.extend(other.sweep_sizes);
        self.guesses.extend(other.guesses);
        self.residuals.extend(other.residuals);
    }
}

/// Function of the model that a step has asked for.
struct Call<T> {
    /// Evaluations that it counts as.
    counts: Calls,
    /// Arguments: t and x.
    arguments: Vec<T>,
    values: Vec<T>,
}

/// Treatment of the values that a step may reuse from the previous one (FSAL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsalMode {
    /// Compute them.
    Compute,
    /// Reuse them.
    Carry,
    /// Record nothing but them.
    FindOnly,
    /// Compute them; record nothing but the positions at which the force acts.
    ForcePlaces,
}

/// Intermediate values of a step, with their lengths.
struct Found<T> {
    symbols: Vec<(T, u32)>,
    /// Number of systems solved for them, and of calls of the model.
    systems: usize,
    calls: usize,
}

/// Inputs that stand for random numbers: the number of the step, and two uniform numbers for every
/// component of the momenta.
struct NoiseInputs<T> {
    number: T,
    pairs: Vec<[T; 2]>,
}

/// Facts about the steps before the recorded one.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// True if the previous step was as long, and its result is where this one begins.
    pub follows: bool,
    pub fsal: FsalMode,
    /// True if guesses are reused, too.
    pub guesses: bool,
}

/// Recording phase space of a model.
pub struct StepRecorder<S: Symbols> {
    pub symbols: S,
    frames: Vec<Frame<S::Symbol>>,
    systems: Vec<System<S>>,
    carried: Vec<(S::Symbol, S::Symbol)>,
    multipliers: (Vec<S::Symbol>, Vec<usize>),
    /// Part of a body's angular momentum that rounding loses in the state.
    lost: Vec<S::Symbol>,
    given: Given,
    /// Inputs for values reused from the previous step.
    fsal_inputs: Vec<S::Symbol>,
    /// True if values are reused, and if they do not follow from x.
    has_fsal: bool,
    extends_state: bool,
    /// Values recorded in place of the step's result.
    found: Option<Found<S::Symbol>>,
    monitored: Option<(usize, usize)>,
    noise: Option<NoiseInputs<S::Symbol>>,
    encounter: Option<Encounter<S::Symbol>>,
    calls: Vec<Call<S::Symbol>>,
}

fn symbols<S: Symbols>(values: &[Value]) -> Vec<S::Symbol> {
    values.iter().map(|&value| S::symbol(value)).collect()
}

fn values<S: Symbols>(symbols: &[S::Symbol]) -> Vec<Value> {
    symbols.iter().map(|&symbol| S::value(symbol)).collect()
}

/// Record a step.
pub fn record<S: CompositeFunctions>(
    mut symbols: S,
    given: Given,
    step: impl FnOnce(&mut dyn PhaseSpace, Value, Value, &[Value]) -> Vec<Value>,
) -> Trace<S> {
    let x: Vec<S::Symbol> =
        symbols.lengths().into_iter().map(|length| symbols.input(length)).collect();
    let [t, h] = [(); 2].map(|()| symbols.input(1));
    let mut recorder = StepRecorder::new(symbols, given);
    let result = step(&mut recorder, S::value(t), S::value(h), &values::<S>(&x));
    let mut result = recorder.with_lengths(self::symbols::<S>(&result));
    if matches!(given.fsal, FsalMode::FindOnly | FsalMode::ForcePlaces) {
        let found =
            recorder.found.take().unwrap_or(Found { symbols: Vec::new(), systems: 0, calls: 0 });
        result = found.symbols;
        recorder.systems.truncate(found.systems);
        recorder.calls.truncate(found.calls);
        recorder.carried.clear();
        recorder.multipliers = (Vec::new(), Vec::new());
        recorder.noise = None;
        recorder.encounter = None;
    }
    let (calls, drawn) = (recorder.count(), recorder.drawn());
    let StepRecorder {
        symbols,
        systems,
        carried,
        multipliers,
        has_fsal,
        extends_state,
        monitored,
        encounter,
        ..
    } = recorder;
    Trace {
        symbols,
        x,
        t,
        h,
        result,
        systems,
        carried,
        multipliers,
        has_fsal,
        extends_state,
        monitored,
        sums: 0..0,
        drawn,
        encounter,
        calls,
    }
}

impl<S: Symbols> StepRecorder<S> {
    fn new(symbols: S, given: Given) -> StepRecorder<S> {
        StepRecorder {
            symbols,
            frames: Vec::new(),
            systems: Vec::new(),
            carried: Vec::new(),
            multipliers: (Vec::new(), Vec::new()),
            lost: Vec::new(),
            given,
            fsal_inputs: Vec::new(),
            has_fsal: false,
            extends_state: false,
            found: None,
            monitored: None,
            noise: None,
            encounter: None,
            calls: Vec::new(),
        }
    }

    /// Places of the random numbers among the carried quantities.
    fn drawn(&self) -> Option<Drawn> {
        let NoiseInputs { number, pairs } = self.noise.as_ref()?;
        let place = |symbol: S::Symbol| self.carried.iter().position(|&(input, _)| input == symbol);
        let pair = |(pair, family): (&[S::Symbol; 2], StridedFamily)| {
            Some(([place(pair[0])?, place(pair[1])?], family))
        };
        let uniform = pairs.iter().zip(self.symbols.momenta()).map(pair).collect::<Option<_>>()?;
        Some(Drawn { number: place(*number)?, uniform })
    }

    fn found_here(&self, symbols: Vec<(S::Symbol, u32)>) -> Found<S::Symbol> {
        Found { symbols, systems: self.systems.len(), calls: self.calls.len() }
    }

    /// Symbols for the first components of x, with the lengths of these.
    fn with_lengths(&self, symbols: Vec<S::Symbol>) -> Vec<(S::Symbol, u32)> {
        symbols.into_iter().zip(self.symbols.lengths()).collect()
    }

    /// Count the evaluations of every system in an iteration; return those that the step makes
    /// once. A function that does not depend on a system's unknowns is not evaluated in its
    /// iterations.
    fn count(&mut self) -> Calls {
        // The same function at the same place is evaluated once.
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

    /// Unknowns given explicitly, as functions of the others: all of them, or the momenta at
    /// stages, on which the forces do not depend. The search starts from the last unknown:
    /// positions have a common unit, momenta of unlike masses do not. No component of a general
    /// field stands for the others, because their units are unknown. Equations whose matrix is
    /// monitored stay, unless their unknowns are given as they are written (`free` of a matrix).
    fn given(&mut self, frame: &Frame<S::Symbol>, free: bool) -> Vec<Option<S::Symbol>> {
        let mut given = vec![None; frame.unknowns.len()];
        // Unknowns given so far, and the unknowns that they depend on.
        let [mut gone, mut needed] = [(); 2].map(|()| FxHashSet::default());
        for (k, (&unknown, &residual)) in
            frame.unknowns.iter().zip(&frame.residuals).enumerate().rev()
        {
            if needed.contains(&unknown) {
                continue;
            }
            let reached = self.symbols.reached(&[residual]);
            if frame.unknowns.iter().any(|other| gone.contains(other) && reached.contains(other)) {
                continue;
            }
            let others = || frame.unknowns.iter().filter(|other| **other != unknown);
            let alone =
                free && frame.rows[k].is_stage() && !others().any(|other| reached.contains(other));
            given[k] = self.symbols.explicit(residual, unknown, alone);
            if given[k].is_some() {
                gone.insert(unknown);
                needed.extend(
                    frame
                        .unknowns
                        .iter()
                        .filter(|&&other| other != unknown && reached.contains(&other)),
                );
            }
        }
        let some = self.symbols.degrees() > 0 || needed.is_empty();
        if some { given } else { vec![None; given.len()] }
    }

    /// Turn a complete frame into a system to solve.
    fn close(&mut self, frame: Frame<S::Symbol>, monitored: Monitored) {
        // The equations' own guesses first: guesses of inner equations may depend on them, and so
        // may scales.
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
        let [sizes, sweep_sizes] = [&frame.sizes, &frame.sweep_sizes].map(|sizes| {
            sizes.iter().map(|&size| self.symbols.substituted(size, &mut replaced)).collect()
        });
        let (jacobian, linear) = match &frame.slopes[..] {
            [] => self.symbols.differentiated(&frame.residuals, &frame.unknowns),
            slopes => (self.symbols.diagonal(slopes), false),
        };
        self.systems.push(System {
            unknowns: frame.unknowns,
            rows: frame.rows,
            sizes,
            sweep_sizes,
            guesses,
            residuals: frame.residuals,
            jacobian,
            linear,
            monotone: frame.monotone,
            monitored,
            calls: Calls::default(),
        });
    }

    /// Solution of a system in the previous step; if that was as long as this one, 2 λₙ − λₙ₋₁,
    /// which for smooth multipliers saves an iteration.
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
