//! Phase space of one model, over which steps of structure-preserving methods are written.
//!
//! A step computes with [`Value`]s, numbers that it does not see: it adds and multiplies them, asks
//! for the model's functions, and states equations. Whoever runs the step turns that into formulas,
//! differentiates the equations and solves them by Newton's method. So a method reads like its
//! source, serves every model, and its Newton matrix is never typed.
//!
//! The state is x = (q, p). Rolling constraints A(q, t) v + b(q, t) = 0 act by forces alone, ṗ = … −
//! Aᵀμ. Other constraints are g = 0 with multipliers λ, and X_g = (g_p, −g_q) is the
//! field of g, so that a force of constraint has the sign ṗ = −H_q − g_qᵀλ.

/// A number of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value(pub u32);

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// −a
    Negative,
    /// |a|
    Magnitude,
    /// √a
    Root,
    /// sin a
    Sine,
    /// cos a
    Cosine,
    /// tanh a
    HyperbolicTangent,
    /// eᵃ
    Exponential,
}

/// Identity of an equation; a failed solve is reported with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Equation {
    /// Scalar constraint number i.
    Constraint(usize),
    /// Hidden constraint number i.
    Hidden(usize),
    /// Component i of the state at a stage of an implicit method.
    Stage(usize),
    /// Component i of a rigid body's angular momentum.
    AngularMomentum(usize),
    /// Kepler's equation of the motion whose vector has component i of the state as its first one.
    Kepler(usize),
}

impl Equation {
    /// True if the equation is that of a component of a stage. Its unknown then has its unit,
    /// unlike a multiplier of a constraint or an angular velocity.
    pub fn is_stage(&self) -> bool {
        matches!(self, Equation::Stage(_))
    }
}

/// Start of a Newton iteration.
#[derive(Clone, Copy, Debug)]
pub enum Guess<'a> {
    /// Solution of the step before; 0 in the first step.
    Last,
    /// These values.
    At(&'a [Value]),
}

/// Equations whose matrix is monitored along a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Monitored {
    /// No equations.
    Never,
    /// Equations whose matrix is h times one that does not depend on h, unless equations of stages
    /// are joined with them.
    Always,
    /// Equations whose matrix is h² times such a one. They are monitored only if fibres are not
    /// straight lines, as these may then meet the set that is solved for several times.
    OnCurves,
    /// Linear equations whose matrix is I + K M⁻¹ with a symmetric K, which vanishes with h, and
    /// the mass matrix M: the run ends if its smallest eigenvalue comes too near to 0.
    Definite,
}

/// System of as many equations as unknowns.
#[derive(Clone, Copy, Debug)]
pub struct Equations<'a> {
    /// Identities of the equations.
    pub rows: &'a [Equation],
    /// Scale of each equation: its round-off is a few units in the last place of that.
    pub size: &'a [Value],
    /// Scale of each equation where a fixed-point iteration solves them; empty if it is `size`.
    pub sweep_size: &'a [Value],
    /// Start of the iteration.
    pub guess: Guess<'a>,
    /// Monitoring of the matrix: the run ends if it becomes singular, or its determinant changes
    /// sign. The solution is lost there, though a solver may step over it.
    pub monitored: Monitored,
    /// Residual, relative to its scale, from which one more iteration is exact enough, if every
    /// equation depends on its own unknown alone and grows with it, and is NaN only where that is too
    /// large: it has one solution. The residual then gives, after all values, the slopes by which it
    /// is divided in an iteration: its derivatives, or slopes with which that converges faster.
    /// `None` for all other equations.
    pub monotone: Option<f64>,
}

/// A part of H whose flow is known exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The part of H whose flow moves the positions: free motion, great circles, rotations of a
    /// body, an oscillator, motions of Kepler. The rest of H is that of a [kick](PhaseSpace::kick).
    Motion,
    /// The part of H beside [`Part::Motion`] that momenta make up: the recoil of a centre from its
    /// bodies. It acts around a kick; most models have none.
    Recoil,
    /// Part of this number of the H of a Poisson system, below [`PhaseSpace::parts`].
    Numbered(usize),
}

/// Three numbers of a step.
pub type Vector = [Value; 3];

/// A rigid body, as a step sees it.
#[derive(Clone, Debug)]
pub struct Body {
    /// Rows of R, which maps the body's frame to space; empty if a model has no attitude.
    pub attitude: Vec<Vector>,
    /// Angular momentum Π = I Ω in the body's frame; in space it is R Π.
    pub momentum: Vector,
}

/// Part of the potential energy that a linearly implicit method linearises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Potential {
    /// All of it.
    Whole,
    /// The part that the user calls stiff, or the penalty.
    Stiff,
}

/// Computation within a step that another step may have made already.
pub type Finding<'a> = &'a mut dyn FnMut(&mut dyn PhaseSpace) -> Vec<Value>;

/// Function of the unknowns, of as many values, whose zero is sought; see [`Equations::monotone`].
pub type Residual<'a> = &'a mut dyn FnMut(&mut dyn PhaseSpace, &[Value]) -> Vec<Value>;

/// A function of the model at (t, x).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// ẋ.
    Field,
    /// H_q less the forces that act beside H, unless they act apart.
    Slope,
    /// Forces that act apart from the step, none if there are none: the step cannot take them.
    Force,
    /// Rate of friction that is one for all momenta, none if there is none: it acts apart.
    Friction,
    /// Rate of the work of the forces, Q·v + H_t, for velocities v.
    Power,
    /// H_p.
    Velocity,
    /// H, in parts of which it is the total.
    Energy,
    /// g.
    Constraints,
    /// Hidden constraints, and behind them A v + b of the rolling ones.
    Hidden,
    /// −Gᵀλ − Aᵀμ for multipliers λ of the constraints and μ of the rolling ones.
    Reaction,
    /// X_{a·h} of the hidden constraints h for multipliers a.
    HiddenField,
    /// Dg ẋ + g_t for a rate ẋ.
    ConstraintRates,
    /// Dh ẋ + h_t for a rate ẋ.
    HiddenRates,
    /// Scales of the constraints.
    ConstraintSizes,
    /// Scales of the hidden constraints.
    HiddenSizes,
    /// V_qq v for a direction v.
    Second,
    /// v·V_qqq·v for a direction v.
    Third,
    /// V_qq v of the stiff part of V.
    StiffSecond,
    /// ∇H by all components of the state of a Poisson system.
    Gradient,
    /// J(x) v of a Poisson system for a covector v.
    Brackets,
}

/// A parameter of a method besides the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// Newmark's β.
    Beta,
    /// γ of a heat bath, force per velocity.
    Friction,
    /// kT of a heat bath.
    Temperature,
}

/// The phase space of a model, as a step sees it.
pub trait PhaseSpace {
    /// Length of the state.
    fn dimension(&self) -> usize;

    /// Length n of q and of p; 0 for a general field.
    fn degrees(&self) -> usize;

    /// Constant c.
    fn constant(&mut self, c: f64) -> Value;
    /// a + b
    fn sum(&mut self, a: Value, b: Value) -> Value;
    /// a b
    fn product(&mut self, a: Value, b: Value) -> Value;
    /// a / b
    fn quotient(&mut self, a: Value, b: Value) -> Value;
    /// A function of a.
    fn function(&mut self, f: Function, a: Value) -> Value;

    /// a where |a| is below a bound, else NaN: nothing that depends on it has a value there, and no
    /// equation a solution.
    fn within(&mut self, a: Value, bound: f64) -> Value;

    /// max |x_i|, the scale of each of x's components: an increment of x is known to a rounding of
    /// x at best.
    fn size(&mut self, x: &[Value]) -> Value;

    /// Scale of every component of a state x to which `step` is added: the largest component among
    /// those that have a unit in common with it, positions or momenta.
    fn sizes(&mut self, x: &[Value], step: &[Value]) -> Vec<Value> {
        let degrees = self.degrees();
        let halves = if x.len() == 2 * degrees {
            [0..degrees, degrees..x.len()]
        } else {
            [0..x.len(), 0..0]
        };
        let mut sizes = Vec::with_capacity(x.len());
        for half in halves.into_iter().filter(|half| !half.is_empty()) {
            let size = self.size(&[&x[half.clone()], &step[half.clone()]].concat());
            sizes.extend(half.map(|_| size));
        }
        sizes
    }

    /// Sum of the sizes of the terms of every component of ẋ at (t, x), if the field is a general
    /// one whose equations may be solved by fixed-point iteration; else empty.
    fn term_sizes(&mut self, _t: Value, _x: &[Value]) -> Vec<Value> {
        Vec::new()
    }

    /// Sum of all numbers that these values stand for.
    fn total(&mut self, x: &[Value]) -> Value;

    /// A function of the model at (t, x); directions and multipliers follow x.
    fn ask(&mut self, asked: Asked, t: Value, x: &[Value]) -> Vec<Value>;

    /// X_{λ·g} at (t, x).
    fn constraint_field(&mut self, t: Value, x: &[Value], lambda: &[Value]) -> Vec<Value>;
    /// x moved along its fibre, by the flow of X_{λ·g} for the time 1: p − g_qᵀλ where g depends on
    /// q only.
    fn slide(&mut self, t: Value, x: &[Value], lambda: &[Value]) -> Vec<Value>;

    /// Number of the parts of H of a Poisson system whose flows are known.
    fn parts(&self) -> usize {
        0
    }

    /// Degree of the H of a Poisson system as a polynomial in the state; `None` if it is none.
    fn energy_degree(&self) -> Option<u32> {
        None
    }

    /// True if the parts of H are split in canonical coordinates that are not the model's own.
    fn splits(&self) -> bool {
        false
    }

    /// State in the canonical coordinates in which the parts of H are split.
    fn split(&mut self, x: &[Value]) -> Vec<Value> {
        x.to_vec()
    }

    /// State of the model from the coordinates of [`PhaseSpace::split`].
    fn joined(&mut self, y: &[Value]) -> Vec<Value> {
        y.to_vec()
    }

    /// True if the flow of [`Part::Recoil`] and kicks commute, or there is no recoil.
    fn recoil_commutes(&self) -> bool {
        true
    }

    /// True if parts of H that are small in a kick may become large: bodies that attract each other
    /// may meet.
    fn may_meet(&self) -> bool {
        false
    }

    /// Square of the largest radius of an encounter over the distance of the bodies, in the
    /// coordinates of [`PhaseSpace::split`]: at least 1 within an encounter.
    fn nearness(&mut self, _y: &[Value]) -> Value {
        self.constant(0.0)
    }

    /// Hand the step over to a method for the whole field if the nearness at its start or at its end
    /// is at least 1.
    fn hand_over(&mut self, _start: Value, _end: Value) {}

    /// Exact flow of a part of H for the time `tau`, in the coordinates of [`PhaseSpace::split`]. A
    /// method that needs it is refused if it is not known.
    fn flow(&mut self, part: Part, t: Value, tau: Value, y: &[Value]) -> Vec<Value>;

    /// Rates of the momenta by the part of H beside [`Part::Motion`], a function of the positions:
    /// those of a kick, in the same coordinates; within the tangent space where there are
    /// constraints.
    fn kick(&mut self, t: Value, y: &[Value]) -> Vec<Value>;

    /// Rigid body of the state x, where a step starts. A method that needs one is refused if the
    /// model is not a rigid body.
    fn body(&mut self, x: &[Value]) -> Body;
    /// State of this body, where the step ends. The rounding error of its angular momentum is added
    /// to it at the start of the next step: the error is alike in every step and would add up.
    fn state_of(&mut self, body: &Body) -> Vec<Value>;
    /// Matrix of inertia I of the body, in its frame, by rows.
    fn inertia(&mut self) -> [Vector; 3];
    /// I⁻¹.
    fn inverse_inertia(&mut self) -> [Vector; 3];
    /// Torque on the body, in its frame: −∂V(R exp(η̂))/∂η at η = 0.
    fn torque(&mut self, t: Value, body: &Body) -> Vector;
    /// A parameter of the method.
    fn parameter(&mut self, which: Parameter) -> Value;
    /// True if H contains every momentum by its square alone, so that H_p at the momenta 1 is 1/m.
    fn mass_is_diagonal(&self) -> bool;
    /// Independent standard normal numbers of this step, one per momentum. A method asks for them
    /// once.
    fn noise(&mut self) -> Vec<Value>;

    /// Unknowns for which `residual` vanishes. Equations stated inside a residual are solved
    /// together with the outer ones, never one Newton iteration within another; those that give
    /// their unknowns explicitly are not solved at all.
    fn solve(&mut self, equations: &Equations, residual: Residual) -> Vec<Value>;

    /// x + increment by compensated summation (HLW VIII.5): the rounding error is added to the next
    /// step's increment.
    fn accumulate(&mut self, x: &[Value], increment: &[Value]) -> Vec<Value>;

    /// FSAL values, which the step before has [carried over](PhaseSpace::carry) and which equal the
    /// result of `find` at the start of this one. If no step of this length came before, or its
    /// result was moved, `find` computes them. Each value is as many numbers as that of `like` in
    /// its place.
    fn carried(&mut self, like: &[Value], find: Finding) -> Vec<Value>;

    /// Values that the step before has [carried over](PhaseSpace::carry) and that make the state a
    /// longer one: `find` gives those with which it starts. See [`PhaseSpace::carried`].
    fn carried_state(&mut self, like: &[Value], find: Finding) -> Vec<Value> {
        self.carried(like, find)
    }

    /// FSAL values from which an iteration starts. They are carried over if the iteration itself
    /// detects whether it leads away from them.
    fn carried_guess(&mut self, like: &[Value], find: Finding) -> Vec<Value> {
        self.carried(like, find)
    }

    /// Carry FSAL values to the next step, which computes them at its start otherwise.
    fn carry(&mut self, values: &[Value]);

    /// Monitor one of the FSAL values along the run: an energy that the method conserves.
    fn monitor(&mut self, energy: Value);

    /// Declare that the force at the start of the step is, up to small terms, that of V at these
    /// positions and not at those of the step. The effect of stiff parts of V shows there.
    fn force_at(&mut self, q: &[Value]);

    /// Record the multipliers of the constraints that act at the start of the step and at its end.
    fn record_multipliers(&mut self, start: &[Value], end: &[Value]);
}

impl dyn PhaseSpace + '_ {
    /// ẋ at (t, x): (H_p, −H_q), or the model's own field.
    pub fn field(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        self.ask(Asked::Field, t, x)
    }

    /// ∇H of a Poisson system at (t, x).
    pub fn gradient(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        self.ask(Asked::Gradient, t, x)
    }

    /// J(x) v of a Poisson system.
    pub fn brackets(&mut self, t: Value, x: &[Value], v: &[Value]) -> Vec<Value> {
        self.ask(Asked::Brackets, t, &[x, v].concat())
    }

    /// H_q at (t, x), less the forces that act beside H and not apart.
    pub fn h_q(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        self.ask(Asked::Slope, t, x)
    }

    /// H_p at (t, x).
    pub fn h_p(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        self.ask(Asked::Velocity, t, x)
    }

    /// H at (t, x).
    pub fn energy(&mut self, t: Value, x: &[Value]) -> Value {
        let parts = self.ask(Asked::Energy, t, x);
        self.total(&parts)
    }

    /// Rate of the work of the forces at (t, x) with the velocities v, which H_p is on the
    /// constraint set.
    pub fn power(&mut self, t: Value, x: &[Value], v: &[Value]) -> Value {
        let parts = self.ask(Asked::Power, t, &[x, v].concat());
        self.total(&parts)
    }

    /// g at (t, x).
    pub fn constraints(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        self.ask(Asked::Constraints, t, x)
    }

    /// Hidden constraints X_g(H) + g_t at (t, x), and behind them the rolling constraints A v + b with
    /// v = H_p.
    pub fn hidden_constraints(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        self.ask(Asked::Hidden, t, x)
    }

    /// Forces −Gᵀλ − Aᵀμ at (t, x), for constraints on positions with multipliers λ and rolling ones
    /// with μ, which stand in the order of the hidden constraints.
    pub fn reaction(&mut self, t: Value, x: &[Value], multipliers: &[Value]) -> Vec<Value> {
        self.ask(Asked::Reaction, t, &[x, multipliers].concat())
    }

    /// X_{a·h} of the hidden constraints h at (t, x).
    pub fn hidden_field(&mut self, t: Value, x: &[Value], a: &[Value]) -> Vec<Value> {
        self.ask(Asked::HiddenField, t, &[x, a].concat())
    }

    /// Dg ẋ + g_t of the constraints g at (t, x).
    pub fn constraint_rates(&mut self, t: Value, x: &[Value], rate: &[Value]) -> Vec<Value> {
        self.ask(Asked::ConstraintRates, t, &[x, rate].concat())
    }

    /// Dh ẋ + h_t of the hidden constraints h at (t, x).
    pub fn hidden_rates(&mut self, t: Value, x: &[Value], rate: &[Value]) -> Vec<Value> {
        self.ask(Asked::HiddenRates, t, &[x, rate].concat())
    }

    /// Scale of each constraint, or hidden one: Σ |∂g/∂x_i| max |x_j|, with the maximum over
    /// positions or over momenta, as x_i is. It does not vanish where a component happens to.
    pub fn constraint_sizes(&mut self, t: Value, x: &[Value], hidden: bool) -> Vec<Value> {
        self.ask(if hidden { Asked::HiddenSizes } else { Asked::ConstraintSizes }, t, x)
    }

    /// V_qq v at (t, x), for H = ½ pᵀM⁻¹p + V(q, t) or for a part of V. A method that needs it is
    /// refused if H is of another form.
    pub fn hessian_times(
        &mut self,
        part: Potential,
        t: Value,
        x: &[Value],
        v: &[Value],
    ) -> Vec<Value> {
        self.ask(
            if part == Potential::Stiff { Asked::StiffSecond } else { Asked::Second },
            t,
            &[x, v].concat(),
        )
    }

    /// v·V_qqq·v at (t, x), for the same H.
    pub fn third_times(&mut self, t: Value, x: &[Value], v: &[Value]) -> Vec<Value> {
        self.ask(Asked::Third, t, &[x, v].concat())
    }

    /// c a
    pub fn scaled(&mut self, c: f64, a: Value) -> Value {
        let c = self.constant(c);
        self.product(c, a)
    }

    /// t + c h
    pub fn time(&mut self, t: Value, c: f64, h: Value) -> Value {
        let step = self.scaled(c, h);
        self.sum(t, step)
    }

    /// x + h v
    pub fn moved(&mut self, x: &[Value], h: Value, v: &[Value]) -> Vec<Value> {
        x.iter()
            .zip(v)
            .map(|(&x, &v)| {
                let step = self.product(h, v);
                self.sum(x, step)
            })
            .collect()
    }

    /// a − b
    pub fn difference(&mut self, a: &[Value], b: &[Value]) -> Vec<Value> {
        a.iter()
            .zip(b)
            .map(|(&a, &b)| {
                let minus = self.function(Function::Negative, b);
                self.sum(a, minus)
            })
            .collect()
    }

    /// a + b
    pub fn plus(&mut self, a: &[Value], b: &[Value]) -> Vec<Value> {
        a.iter().zip(b).map(|(&a, &b)| self.sum(a, b)).collect()
    }

    /// c v
    pub fn multiplied(&mut self, c: Value, v: &[Value]) -> Vec<Value> {
        v.iter().map(|&v| self.product(c, v)).collect()
    }

    /// a · b
    pub fn dot(&mut self, a: &[Value], b: &[Value]) -> Value {
        let products: Vec<Value> = a.iter().zip(b).map(|(&a, &b)| self.product(a, b)).collect();
        self.total(&products)
    }

    /// a × b
    pub fn cross(&mut self, a: Vector, b: Vector) -> Vector {
        [(1, 2), (2, 0), (0, 1)].map(|(i, j)| {
            let (plus, minus) = (self.product(a[i], b[j]), self.product(a[j], b[i]));
            self.difference(&[plus], &[minus])[0]
        })
    }

    /// x + h v
    pub fn moved_vector(&mut self, x: Vector, h: Value, v: Vector) -> Vector {
        std::array::from_fn(|i| self.moved(&[x[i]], h, &[v[i]])[0])
    }

    /// M v, M by its rows.
    pub fn transformed(&mut self, rows: &[Vector; 3], v: Vector) -> Vector {
        rows.map(|row| self.dot(&row, &v))
    }
}
