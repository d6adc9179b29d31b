//! A phase space whose values are columns: what a step does to one component of every member of a family.

use crate::structured::tracing::Calls;
use holonome_integrate::phase_space::{
    Body, Equation, Equations, Finding, Function, Guess, Part, PhaseSpace, Potential, Residual, Value, Vector, Watched,
};
use holonome_model::columns::{Column, Columns, Definition};
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::rows::RowMechanics;
use rustc_hash::FxHashMap;

/// What a step came to.
pub struct ColumnTrace {
    /// The model's functions, and all columns.
    pub mechanics: RowMechanics,
    /// x, t and h.
    pub x: Vec<Column>,
    pub t: Column,
    pub h: Column,
    /// x₁, or what else is wanted, with the length of each: that of a constant may be any.
    pub result: Vec<(Column, u32)>,
    /// The systems of equations, in the order in which they are solved.
    pub systems: Vec<ColumnSystem>,
    /// What is carried to the next step: the input here and its next value.
    pub carried: Vec<(Column, Column)>,
    /// The multipliers at the start of the step, and the places of those at its end among what is carried.
    pub multipliers: (Vec<Column>, Vec<usize>),
    /// Inputs that are one number for all members of some columns.
    pub reduced: Vec<Reduced>,
    /// Where, among what is carried, the watched energy stands and where its value at the start of the run does.
    pub watched: Option<(usize, usize)>,
    /// What is evaluated once.
    pub calls: Calls,
}

/// One number for all members of some columns.
#[derive(Clone, PartialEq, Eq)]
pub struct Reduced {
    pub input: Column,
    pub how: Reduction,
    pub over: Vec<Column>,
}

/// How numbers become one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The largest absolute value.
    Largest,
    Sum,
}

/// A system of equations of a step, one family of them for each family of unknowns.
pub struct ColumnSystem {
    pub unknowns: Vec<Column>,
    pub rows: Vec<Equation>,
    pub sizes: Vec<Column>,
    pub guesses: Vec<Column>,
    pub residuals: Vec<Column>,
    pub linear: bool,
    pub watched: Watched,
    /// What an iteration evaluates.
    pub calls: Calls,
}

#[derive(Default)]
struct Frame {
    unknowns: Vec<Column>,
    rows: Vec<Equation>,
    sizes: Vec<Column>,
    guesses: Vec<Option<Column>>,
    residuals: Vec<Column>,
}

struct Tracer {
    mechanics: RowMechanics,
    frames: Vec<Frame>,
    systems: Vec<ColumnSystem>,
    carried: Vec<(Column, Column)>,
    multipliers: (Vec<Column>, Vec<usize>),
    reduced: Vec<Reduced>,
    watched: Option<(usize, usize)>,
    calls: Vec<(Calls, Vec<Column>)>,
    /// The number of the method's own parameter.
    beta: usize,
    handing: Handing,
    /// What is taken over from the step before.
    taken: Vec<Column>,
    /// What is wanted in place of the step, and how many systems are solved for it.
    found: Option<(Vec<Column>, usize)>,
}

/// What becomes of what a step may take over from the one before.
#[derive(Clone, Copy, PartialEq, Eq)]
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

fn columns(values: &[Value]) -> Vec<Column> {
    values.iter().map(|value| Column(value.0)).collect()
}

fn values(columns: &[Column]) -> Vec<Value> {
    columns.iter().map(|column| Value(column.0)).collect()
}

/// Records a step over the columns of a large model, whose own parameter, if it has one, is number `beta`.
pub fn trace(
    mut mechanics: RowMechanics,
    (beta, handing): (usize, Handing),
    step: impl FnOnce(&mut dyn PhaseSpace, Value, Value, &[Value]) -> Vec<Value>,
) -> ColumnTrace {
    let lengths: Vec<u32> = mechanics.state.iter().map(|family| family.length).collect();
    let x: Vec<Column> = lengths.iter().map(|&length| mechanics.columns.input(length)).collect();
    let [t, h] = [1, 1].map(|length| mechanics.columns.input(length));
    let mut tracer = Tracer {
        mechanics,
        frames: Vec::new(),
        systems: Vec::new(),
        carried: Vec::new(),
        multipliers: (Vec::new(), Vec::new()),
        reduced: Vec::new(),
        watched: None,
        calls: Vec::new(),
        beta,
        handing,
        taken: Vec::new(),
        found: None,
    };
    let result = columns(&step(&mut tracer, Value(t.0), Value(h.0), &values(&x)));
    let mut result = tracer.with_lengths(result, lengths.len());
    if matches!(handing, Handing::Found | Handing::ForcePlaces) {
        let (found, systems) = tracer.found.take().unwrap_or_default();
        result = tracer.with_lengths(found, tracer.degrees());
        tracer.systems.truncate(systems);
        tracer.carried.clear();
    }
    let calls = tracer.count();
    let Tracer { mechanics, systems, carried, multipliers, reduced, watched, .. } = tracer;
    ColumnTrace { mechanics, x, t, h, result, systems, carried, multipliers, reduced, watched, calls }
}

impl Tracer {
    /// What belongs to the first `count` components of x, and single numbers behind it, with their lengths.
    fn with_lengths(&self, columns: Vec<Column>, count: usize) -> Vec<(Column, u32)> {
        let families = self.mechanics.state[..count].iter().map(|family| family.length);
        columns.into_iter().zip(families.chain(std::iter::repeat(1))).collect()
    }

    fn columns(&mut self) -> &mut Columns {
        &mut self.mechanics.columns
    }

    /// Counts what every system evaluates in an iteration; gives what the step evaluates once.
    fn count(&mut self) -> Calls {
        let columns = &self.mechanics.columns;
        self.calls.dedup_by(|a, b| a == b);
        for system in &mut self.systems {
            for (counts, values) in &self.calls {
                let varies = |value: &Column| columns.depends(*value, &system.unknowns);
                let needed = |value: &Column| system.residuals.iter().any(|&r| columns.depends(r, &[*value]));
                if values.iter().any(|value| varies(value) && needed(value)) {
                    let hessian = if system.linear { 0 } else { 1 };
                    system.calls = system.calls.plus(Calls { hessian, ..*counts });
                }
            }
        }
        self.calls.iter().fold(Calls::default(), |sum, (counts, _)| sum.plus(*counts))
    }

    fn called(&mut self, counts: Calls, found: Vec<Column>) -> Vec<Value> {
        let varying: Vec<Column> =
            found.iter().copied().filter(|&c| self.mechanics.columns.value(c).is_none()).collect();
        if !varying.is_empty() {
            self.calls.push((counts, varying));
        }
        values(&found)
    }

    /// The solution of a frame where its equations give it: r = u − f, and f does not depend on u.
    fn explicit(&mut self, frame: &Frame) -> Option<Vec<Column>> {
        let columns = &self.mechanics.columns;
        let mut solution = Vec::with_capacity(frame.unknowns.len());
        for (&residual, &unknown) in frame.residuals.iter().zip(&frame.unknowns) {
            let Definition::Binary(Binary::Add, a, b) = columns.definition(residual) else { return None };
            if a != unknown || columns.depends(b, &frame.unknowns) {
                return None;
            }
            solution.push(b);
        }
        Some(solution.into_iter().map(|minus| self.columns().unary(Unary::Neg, minus)).collect())
    }

    /// Turns a complete frame into a system to solve.
    fn close(&mut self, frame: Frame, watched: Watched) {
        // The equations' own guesses first: those of equations inside may depend on them, and so may sizes.
        let mut replaced = FxHashMap::default();
        let mut guesses = Vec::with_capacity(frame.unknowns.len());
        for (&unknown, &guess) in frame.unknowns.iter().zip(&frame.guesses) {
            let guess = match guess {
                Some(guess) => self.columns().substituted(guess, &mut replaced),
                None => self.extrapolated(unknown),
            };
            replaced.insert(unknown, guess);
            guesses.push(guess);
        }
        let sizes = frame.sizes.iter().map(|&size| self.size_at(size, &mut replaced)).collect();
        let columns = &self.mechanics.columns;
        let linear = frame.residuals.iter().all(|&residual| columns.is_linear(residual, &frame.unknowns));
        self.systems.push(ColumnSystem {
            unknowns: frame.unknowns,
            rows: frame.rows,
            sizes,
            guesses,
            residuals: frame.residuals,
            linear,
            watched,
            calls: Calls::default(),
        });
    }

    /// A size with guesses in place of unknowns.
    fn size_at(&mut self, size: Column, replaced: &mut FxHashMap<Column, Column>) -> Column {
        let Some(Reduced { over, .. }) = self.reduced.iter().find(|reduced| reduced.input == size) else {
            return self.columns().substituted(size, replaced);
        };
        let over = over.clone();
        let others: Vec<Column> = over.iter().map(|&column| self.columns().substituted(column, replaced)).collect();
        if others == over { size } else { self.reduced(Reduction::Largest, others) }
    }

    fn reduced(&mut self, how: Reduction, over: Vec<Column>) -> Column {
        let known = self.reduced.iter().find(|reduced| reduced.how == how && reduced.over == over);
        if let Some(Reduced { input, .. }) = known {
            return *input;
        }
        let input = self.columns().input(1);
        self.reduced.push(Reduced { input, how, over });
        input
    }

    /// The sum of all members of some columns; those of one length are added up member by member first.
    fn sum_of(&mut self, columns: Vec<Column>) -> Column {
        let mut over: Vec<Column> = Vec::new();
        for column in columns {
            let length = self.columns().length(column);
            match over.iter().position(|&other| self.mechanics.columns.length(other) == length) {
                Some(k) => over[k] = self.columns().binary(Binary::Add, over[k], column),
                None => over.push(column),
            }
        }
        self.reduced(Reduction::Sum, over)
    }

    /// 2 λₙ − λₙ₋₁ of what a system solved for in the last two steps: for smooth multipliers an iteration less than with
    /// λₙ.
    fn extrapolated(&mut self, unknown: Column) -> Column {
        let length = self.columns().length(unknown);
        let [last, before] = [(); 2].map(|()| self.columns().input(length));
        self.carried.extend([(last, unknown), (before, last)]);
        let minus = self.columns().unary(Unary::Neg, before);
        let change = self.columns().binary(Binary::Add, last, minus);
        self.columns().binary(Binary::Add, last, change)
    }
}

/// Why some functions are never asked for here.
const NO_BODY: &str = "methods of rigid bodies are refused for large models";

impl PhaseSpace for Tracer {
    fn dimension(&self) -> usize {
        self.mechanics.state.len()
    }

    fn degrees(&self) -> usize {
        self.mechanics.degrees()
    }

    fn constant(&mut self, c: f64) -> Value {
        Value(self.columns().constant(c).0)
    }

    fn sum(&mut self, a: Value, b: Value) -> Value {
        Value(self.columns().binary(Binary::Add, Column(a.0), Column(b.0)).0)
    }

    fn product(&mut self, a: Value, b: Value) -> Value {
        Value(self.columns().binary(Binary::Mul, Column(a.0), Column(b.0)).0)
    }

    fn quotient(&mut self, a: Value, b: Value) -> Value {
        Value(self.columns().binary(Binary::Div, Column(a.0), Column(b.0)).0)
    }

    fn function(&mut self, f: Function, a: Value) -> Value {
        let op = match f {
            Function::Negative => Unary::Neg,
            Function::Magnitude => Unary::Abs,
            Function::Root => Unary::Sqrt,
            Function::Sine => Unary::Sin,
            Function::Cosine => Unary::Cos,
        };
        Value(self.columns().unary(op, Column(a.0)).0)
    }

    fn size(&mut self, x: &[Value]) -> Value {
        Value(self.reduced(Reduction::Largest, columns(x)).0)
    }

    fn total(&mut self, x: &[Value]) -> Value {
        Value(self.sum_of(columns(x)).0)
    }

    fn field(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        let (t, x) = (Column(t.0), columns(x));
        let rates = self.mechanics.gradient(t, &x, true);
        let slopes = self.mechanics.gradient(t, &x, false);
        let forces: Vec<Column> = slopes.into_iter().map(|slope| self.columns().unary(Unary::Neg, slope)).collect();
        self.called(Calls { field: 1, ..Calls::default() }, [rates, forces].concat())
    }

    fn h_q(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        let found = self.mechanics.gradient(Column(t.0), &columns(x), false);
        self.called(Calls { gradient: 1, ..Calls::default() }, found)
    }

    fn h_p(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        values(&self.mechanics.gradient(Column(t.0), &columns(x), true))
    }

    fn constraints(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        values(&self.mechanics.constraints(Column(t.0), &columns(x)))
    }

    fn hidden_constraints(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        values(&self.mechanics.hidden_constraints(Column(t.0), &columns(x)))
    }

    fn constraint_sizes(&mut self, t: Value, x: &[Value], hidden: bool) -> Vec<Value> {
        values(&self.mechanics.constraint_sizes(Column(t.0), &columns(x), hidden))
    }

    fn constraint_field(&mut self, t: Value, x: &[Value], lambda: &[Value]) -> Vec<Value> {
        let forces = self.mechanics.constraint_forces(Column(t.0), &columns(x), &columns(lambda));
        let zero = self.columns().constant(0.0);
        let still = vec![zero; forces.len()];
        let forces: Vec<Column> = forces.into_iter().map(|force| self.columns().unary(Unary::Neg, force)).collect();
        values(&[still, forces].concat())
    }

    fn slide(&mut self, t: Value, x: &[Value], lambda: &[Value]) -> Vec<Value> {
        // Constraints on positions only: a kick.
        let moved = self.constraint_field(t, x, lambda);
        x.iter().zip(moved).map(|(&x, step)| self.sum(x, step)).collect()
    }

    fn flow(&mut self, _: Part, _: Value, _: Value, _: &[Value]) -> Vec<Value> {
        unreachable!("methods that need flows are refused for large models")
    }

    fn body(&mut self, _: &[Value]) -> Body {
        unreachable!("{NO_BODY}")
    }

    fn state_of(&mut self, _: &Body) -> Vec<Value> {
        unreachable!("{NO_BODY}")
    }

    fn inertia(&mut self) -> [Vector; 3] {
        unreachable!("{NO_BODY}")
    }

    fn inverse_inertia(&mut self) -> [Vector; 3] {
        unreachable!("{NO_BODY}")
    }

    fn torque(&mut self, _: Value, _: &Body) -> Vector {
        unreachable!("{NO_BODY}")
    }

    fn energy(&mut self, t: Value, x: &[Value]) -> Value {
        let energies = self.mechanics.energies(Column(t.0), &columns(x));
        Value(self.sum_of(energies).0)
    }

    fn hessian_times(&mut self, part: Potential, t: Value, x: &[Value], v: &[Value]) -> Vec<Value> {
        let stiff = part == Potential::Stiff;
        let found = self.mechanics.hessian_times(stiff, Column(t.0), &columns(x), &columns(v));
        self.called(Calls { hessian: 1, ..Calls::default() }, found)
    }

    fn third_times(&mut self, t: Value, x: &[Value], v: &[Value]) -> Vec<Value> {
        values(&self.mechanics.third_times(Column(t.0), &columns(x), &columns(v)))
    }

    fn beta(&mut self) -> Value {
        let beta = self.beta;
        Value(self.columns().parameter(beta).0)
    }

    fn take_over(&mut self, find: Finding) -> Vec<Value> {
        let (systems, calls) = (self.systems.len(), self.calls.len());
        let mut found = columns(&find(self));
        match self.handing {
            Handing::Nothing | Handing::ForcePlaces => {}
            Handing::Found => self.found = Some((found.clone(), self.systems.len())),
            Handing::Over => {
                // Only their lengths were wanted.
                self.systems.truncate(systems);
                self.calls.truncate(calls);
                let lengths = self.with_lengths(found, self.degrees());
                found = lengths.into_iter().map(|(_, length)| self.columns().input(length)).collect();
                self.taken.clone_from(&found);
            }
        }
        values(&found)
    }

    fn hand_over(&mut self, values: &[Value]) {
        let taken = std::mem::take(&mut self.taken);
        self.carried.splice(0..0, taken.into_iter().zip(columns(values)));
    }

    fn watch(&mut self, energy: Value) {
        let place = self.carried.iter().position(|&(_, next)| next == Column(energy.0));
        if let Some(place) = place.filter(|_| self.mechanics.autonomous && self.handing == Handing::Over) {
            let start = self.columns().input(1);
            self.carried.push((start, start));
            self.watched = Some((place, self.carried.len() - 1));
        }
    }

    fn force_at(&mut self, q: &[Value]) {
        if self.handing == Handing::ForcePlaces {
            self.found = Some((columns(q), self.systems.len()));
        }
    }

    fn solve(&mut self, equations: &Equations, residual: Residual) -> Vec<Value> {
        let length = |row: &Equation| match *row {
            Equation::Constraint(k) | Equation::Hidden(k) => self.mechanics.constraints[k].length,
            Equation::Stage(k) => self.mechanics.state[k].length,
            Equation::AngularMomentum(_) => unreachable!("{NO_BODY}"),
        };
        let lengths: Vec<u32> = equations.rows.iter().map(length).collect();
        let unknowns: Vec<Column> = lengths.into_iter().map(|length| self.columns().input(length)).collect();
        let before = self.calls.len();
        self.frames.push(Frame::default());
        let residuals = residual(self, &values(&unknowns));
        let inner = self.frames.pop().expect("pushed above");
        let guesses = match equations.guess {
            Guess::Last => vec![None; unknowns.len()],
            Guess::At(guess) => guess.iter().map(|value| Some(Column(value.0))).collect(),
        };
        let mut frame = Frame {
            unknowns,
            rows: equations.rows.to_vec(),
            sizes: columns(equations.size),
            guesses,
            residuals: columns(&residuals),
        };
        if inner.unknowns.is_empty()
            && let Some(solution) = self.explicit(&frame)
        {
            let solution = values(&solution);
            self.calls.truncate(before);
            residual(self, &solution);
            return solution;
        }
        let solution = values(&frame.unknowns);
        frame.join(inner);
        match self.frames.last_mut() {
            Some(outer) => outer.join(frame),
            None => self.close(frame, equations.watched),
        }
        solution
    }

    fn accumulate(&mut self, x: &[Value], increment: &[Value]) -> Vec<Value> {
        let mut sums = Vec::with_capacity(x.len());
        for (x, increment) in x.iter().zip(increment) {
            let (x, increment) = (Column(x.0), Column(increment.0));
            let length = self.columns().length(x);
            let lost = self.columns().input(length);
            let step = self.columns().binary(Binary::Add, increment, lost);
            let sum = self.columns().binary(Binary::Add, x, step);
            let taken = self.columns().binary(Binary::Sub, x, sum);
            let next = self.columns().binary(Binary::Add, taken, step);
            self.carried.push((lost, next));
            sums.push(Value(sum.0));
        }
        sums
    }

    fn record_multipliers(&mut self, start: &[Value], end: &[Value]) {
        let mut places = Vec::with_capacity(end.len());
        for end in columns(end) {
            let known = self.carried.iter().position(|&(_, next)| next == end);
            places.push(known.unwrap_or_else(|| {
                let length = self.columns().length(end);
                let input = self.columns().input(length);
                self.carried.push((input, end));
                self.carried.len() - 1
            }));
        }
        self.multipliers = (columns(start), places);
    }
}

impl Frame {
    /// Takes the equations of another frame behind its own.
    fn join(&mut self, other: Frame) {
        self.unknowns.extend(other.unknowns);
        self.rows.extend(other.rows);
        self.sizes.extend(other.sizes);
        self.guesses.extend(other.guesses);
        self.residuals.extend(other.residuals);
    }
}
