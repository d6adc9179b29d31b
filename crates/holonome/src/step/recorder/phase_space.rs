//! Recorder as the phase space that a step is written over.

use super::{
    Call, Calls, Encounter, Frame, FsalMode, NoiseInputs, StepRecorder, Symbols, symbols, values,
};
use holonome_integrate::phase_space::{
    Asked, Body, Equations, Finding, Function, Guess, Monitored, Parameter, Part, PhaseSpace,
    Residual, Value, Vector,
};
use holonome_model::graph::op::{Binary, Unary};

/// Functions of a model that are steps by themselves: they state equations and ask for others.
pub trait CompositeFunctions: Symbols {
    /// X_{λ·g}.
    fn constraint_field(
        space: &mut StepRecorder<Self>,
        t: Value,
        x: &[Value],
        lambda: &[Value],
    ) -> Vec<Value>;
    /// x moved along its fibre.
    fn slide(space: &mut StepRecorder<Self>, t: Value, x: &[Value], lambda: &[Value])
    -> Vec<Value>;
    /// Exact flow of a part of H.
    fn flow(
        space: &mut StepRecorder<Self>,
        part: Part,
        t: Value,
        tau: Value,
        x: &[Value],
    ) -> Vec<Value>;
    /// State in the coordinates in which H is split, if these are not the model's, and back.
    fn split(space: &mut StepRecorder<Self>, x: &[Value]) -> Vec<Value>;
    fn joined(space: &mut StepRecorder<Self>, y: &[Value]) -> Vec<Value>;
    /// Nearness of bodies that may meet.
    fn nearness(space: &mut StepRecorder<Self>, y: &[Value]) -> Value;
    /// Rates of the momenta in a kick.
    fn kick(space: &mut StepRecorder<Self>, t: Value, y: &[Value]) -> Vec<Value>;
    /// Rigid body of x, and the state of a body.
    fn body(space: &mut StepRecorder<Self>, x: &[Value]) -> Body;
    fn state_of(space: &mut StepRecorder<Self>, body: &Body) -> Vec<Value>;
    /// Matrix of inertia of the rigid body, or its inverse.
    fn inertia(space: &mut StepRecorder<Self>, inverse: bool) -> [Vector; 3];
    /// Torque on the rigid body.
    fn torque(space: &mut StepRecorder<Self>, t: Value, body: &Body) -> Vector;
}

impl<S: CompositeFunctions> PhaseSpace for StepRecorder<S> {
    fn dimension(&self) -> usize {
        self.symbols.lengths().len()
    }

    fn degrees(&self) -> usize {
        self.symbols.degrees()
    }

    fn term_sizes(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        values::<S>(&self.symbols.term_sizes(S::symbol(t), &symbols::<S>(x)))
    }

    fn parts(&self) -> usize {
        self.symbols.parts()
    }

    fn energy_degree(&self) -> Option<u32> {
        self.symbols.energy_degree()
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
            Function::Exponential => Unary::Exp,
        };
        S::value(self.symbols.unary(op, S::symbol(a)))
    }

    fn within(&mut self, a: Value, bound: f64) -> Value {
        S::value(self.symbols.within(S::symbol(a), bound))
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
            Asked::Slope | Asked::Gradient => {
                counted(Calls { gradient: 1, ..Calls::default() }, arguments, values)
            }
            // Second derivatives are evaluated once, along however many directions.
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

    fn splits(&self) -> bool {
        self.symbols.splits()
    }

    fn recoil_commutes(&self) -> bool {
        self.symbols.recoil_commutes()
    }

    fn split(&mut self, x: &[Value]) -> Vec<Value> {
        S::split(self, x)
    }

    fn joined(&mut self, y: &[Value]) -> Vec<Value> {
        S::joined(self, y)
    }

    fn may_meet(&self) -> bool {
        self.symbols.may_meet()
    }

    fn nearness(&mut self, y: &[Value]) -> Value {
        S::nearness(self, y)
    }

    fn hand_over(&mut self, start: Value, end: Value) {
        let largest = self.size(&[start, end]);
        self.encounter = Some(Encounter { nearness: S::symbol(largest), start: S::symbol(start) });
    }

    fn flow(&mut self, part: Part, t: Value, tau: Value, y: &[Value]) -> Vec<Value> {
        S::flow(self, part, t, tau, y)
    }

    fn kick(&mut self, t: Value, y: &[Value]) -> Vec<Value> {
        S::kick(self, t, y)
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

    /// √(−2 ln u) cos 2πv (Box and Muller) of carried uniform numbers u and v. The caller of a step
    /// sets those of its number before it.
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

    fn carried(&mut self, like: &[Value], find: Finding) -> Vec<Value> {
        let lengths: Vec<u32> =
            like.iter().map(|&value| self.symbols.length(S::symbol(value))).collect();
        let (systems, calls, carried) = (self.systems.len(), self.calls.len(), self.carried.len());
        let mut found = symbols::<S>(&find(self));
        match self.given.fsal {
            FsalMode::Compute | FsalMode::ForcePlaces => {}
            FsalMode::FindOnly => {
                let symbols = found.iter().copied().zip(lengths).collect();
                self.found = Some(self.found_here(symbols));
            }
            FsalMode::Carry => {
                // Only their lengths were needed.
                self.systems.truncate(systems);
                self.calls.truncate(calls);
                self.carried.truncate(carried);
                found = found
                    .iter()
                    .zip(lengths)
                    .map(|(_, length)| self.symbols.input(length))
                    .collect();
                self.fsal_inputs.clone_from(&found);
                self.has_fsal = true;
            }
        }
        values::<S>(&found)
    }

    fn carried_state(&mut self, like: &[Value], find: Finding) -> Vec<Value> {
        self.extends_state = true;
        self.carried(like, find)
    }

    fn carried_guess(&mut self, like: &[Value], find: Finding) -> Vec<Value> {
        if self.given.guesses { self.carried(like, find) } else { find(self) }
    }

    fn carry(&mut self, values: &[Value]) {
        let inputs = std::mem::take(&mut self.fsal_inputs);
        self.carried.splice(0..0, inputs.into_iter().zip(symbols::<S>(values)));
    }

    fn monitor(&mut self, energy: Value) {
        let place = self.carried.iter().position(|&(_, next)| next == S::symbol(energy));
        if let Some(place) = place.filter(|_| self.symbols.autonomous() && self.has_fsal) {
            let start = self.symbols.input(1);
            self.carried.push((start, start));
            self.monitored = Some((place, self.carried.len() - 1));
        }
    }

    fn force_at(&mut self, q: &[Value]) {
        if self.given.fsal == FsalMode::ForcePlaces {
            let symbols = self.with_lengths(symbols::<S>(q));
            self.found = Some(self.found_here(symbols));
        }
    }

    fn solve(&mut self, equations: &Equations, residual: Residual) -> Vec<Value> {
        let lengths: Vec<u32> =
            equations.rows.iter().map(|&row| self.symbols.equations(row)).collect();
        let unknowns: Vec<S::Symbol> =
            lengths.into_iter().map(|length| self.symbols.input(length)).collect();
        let before = self.calls.len();
        self.frames.push(Frame::empty());
        let mut residuals = residual(self, &values::<S>(&unknowns));
        let slopes = residuals.split_off(unknowns.len());
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
            sweep_sizes: symbols::<S>(if equations.sweep_size.is_empty() {
                equations.size
            } else {
                equations.sweep_size
            }),
            guesses,
            residuals: symbols::<S>(&residuals),
            slopes: symbols::<S>(&slopes),
            monotone: equations.monotone,
        };
        let mut solution = values::<S>(&frame.unknowns);
        if inner.unknowns.is_empty() && equations.monotone.is_none() {
            let given = self.given(&frame, equations.monitored == Monitored::Never);
            if given.iter().any(Option::is_some) {
                for (value, given) in solution.iter_mut().zip(&given) {
                    *value = given.map_or(*value, S::value);
                }
                // Residuals of the other equations, and all else that the step computes, with these
                // in place.
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
            None => self.close(frame, equations.monitored),
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
            // x − sum is exact up to the last bit of x; `next` is the part of the step that did not
            // fit.
            let taken = s.binary(Binary::Sub, x, sum);
            let next = s.binary(Binary::Add, taken, step);
            self.carried.push((lost, next));
            sums.push(S::value(sum));
        }
        sums
    }

    fn record_multipliers(&mut self, start: &[Value], end: &[Value]) {
        // Multipliers at the end are asked for after the step. Those that are guesses for the next
        // step are carried already.
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
