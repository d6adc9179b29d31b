//! A recorded step as a sequence of actions: kernels, with Newton iterations between them.
//!
//! All numbers of a step are in one array, the registers: x, t, h, the carried quantities, and
//! then, kernel after kernel, the values that later kernels need. A kernel reads registers before
//! its own and writes its own, so nothing is copied. A [`Lowering`] decides how a recording becomes
//! kernels and how equations are eliminated: [`unrolled`](super::unrolled) for small models,
//! [`columns`](super::columns) for large ones.

use super::draws::Draws;
use super::encounter::Encounter;
use super::fsal::{Finds, Fsal};
use super::multipliers::Multipliers;
use super::recorder::Calls;
use crate::kernels::{Parametric, Quantities};
use crate::monitored::{INDEFINITE, NOTABLE};
use holonome_integrate::newton::path::follow;
use holonome_integrate::newton::{NewtonSystem, Task, Unsolved};
use holonome_integrate::noise::Noise;
use holonome_integrate::phase_space::Equation;
use holonome_integrate::scheme::map::{Between, Blocks, NoStep, StepFrom, StepMap, Workspace};
use holonome_integrate::state::Cost;
use holonome_linear::least_eigenvalue::LeastEigenvalue;
use holonome_linear::lu::Pivots;
use holonome_model::rows::Layout;
use std::ops::Range;
use std::sync::Arc;

/// Pivots of a monitored system below this, relative to those at the start, count as lost.
pub const LOST: f64 = 1e-8;

/// Way in which a recording becomes numbers.
pub trait Lowering: Clone {
    /// Kernel that computes registers.
    type Kernel: Quantities + Clone;
    /// Equations in numbers.
    type Equations: LoweredEquations + Clone;
    /// Data needed to name an equation.
    type Names: Clone + Sync;
    /// Data needed to make many steps in one go.
    type Repeated: Clone + Sync;

    /// Meaning of an equation, for a reader; of a family of equations, that of number `member`.
    fn name(names: &Self::Names, equation: Equation, member: usize) -> String;

    /// Blocks of many steps in one go, if the program makes them, and the length of their scratch.
    fn blocks(program: &LoweredProgram<Self>) -> Option<(&dyn Blocks, usize)>;
}

/// Equations of a system.
pub trait LoweredEquations: NewtonSystem + Parametric + Sync {
    /// Length of the scratch.
    fn work_len(&self) -> usize;
    /// Operations of a sweep of a fixed-point iteration, and of an iteration of Newton's method.
    fn operations(&self) -> (usize, usize);
    /// Entries of the last matrix, in the order of [`LeastEigenvalue`], and the rest of the
    /// scratch. Registers from the residuals on may change.
    fn entries<'a>(&self, registers: &mut [f64], work: &'a mut [f64])
    -> (&'a [f64], &'a mut [f64]);
}

/// Step that can be run.
#[derive(Clone)]
pub struct LoweredProgram<L: Lowering> {
    pub dimension: usize,
    /// Layout of x at the start of the registers: by columns, or `None` for the order of the state.
    pub layout: Option<Arc<Layout>>,
    pub registers: usize,
    pub actions: Vec<Action<L>>,
    /// Registers of x₁, or of another result of the recording.
    pub result: Range<usize>,
    /// Registers of the next values of the carried quantities, which follow x, t and h.
    pub carried: Vec<Range<usize>>,
    pub multipliers: Multipliers,
    /// Evaluations that a step makes once.
    pub calls: Calls,
    /// γ₁ … γ_s.
    pub substeps: Vec<f64>,
    pub tolerance: f64,
    pub names: L::Names,
    /// Parameters of the method, which follow those of the model.
    pub own: Vec<f64>,
    pub fsal: Option<Fsal<LoweredProgram<L>>>,
    /// Places, among the carried quantities, of the sums of H that are found with the forces; empty
    /// if they are not.
    pub sums: Range<usize>,
    /// Random numbers of the steps, and those of the trajectory.
    pub draws: Option<(Draws, Noise)>,
    /// Encounters of bodies, in which steps are handed over.
    pub encounter: Option<Encounter>,
    /// True if fixed-point iteration is tried.
    pub may_sweep: bool,
    /// Data for many steps in one go.
    pub repeated: Option<L::Repeated>,
}

/// Piece of a step.
#[derive(Clone)]
pub enum Action<L: Lowering> {
    Compute(Stage<L::Kernel>),
    /// One number out of several ranges of registers.
    Reduce {
        how: Reduction,
        of: Vec<Range<usize>>,
        to: usize,
    },
    Solve(Box<Solve<L>>),
}

/// Registers that are computed together.
#[derive(Clone)]
pub struct Stage<K> {
    pub kernel: K,
    /// Register of the first; all registers that the kernel reads come before it.
    pub first: usize,
    pub length: usize,
}

/// Reduction of numbers to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Largest absolute value.
    Largest,
    Sum,
}

/// System of equations to be solved.
#[derive(Clone)]
pub struct Solve<L: Lowering> {
    pub equations: L::Equations,
    pub task: Task,
    /// Families of equations, each with the number of its first.
    pub rows: Vec<(usize, Equation)>,
    pub monitor: Option<SystemMonitor>,
    pub calls: Calls,
}

/// Monitoring of a system.
#[derive(Clone)]
pub struct SystemMonitor {
    /// Number among the monitored systems.
    pub number: usize,
    pub property: MonitoredProperty,
}

/// Monitored property of a system.
#[derive(Clone)]
pub enum MonitoredProperty {
    /// Determinant: it may not change its sign, nor vanish.
    Determinant {
        /// Power of h in every row of the equations.
        power: i32,
        /// True if the equations may have other solutions than the one near the guess.
        curved: bool,
    },
    /// Smallest eigenvalue, looked for in every so many solutions, and where a pivot is smaller than
    /// the smallest eigenvalue so far: it is at most as large as any pivot.
    LeastEigenvalue(Box<LeastEigenvalue>, u32),
}

impl SystemMonitor {
    fn is_curved(&self) -> bool {
        matches!(self.property, MonitoredProperty::Determinant { curved: true, .. })
    }

    /// Tester of the smallest eigenvalue, if that is monitored.
    pub fn least_eigenvalue(&self) -> Option<&LeastEigenvalue> {
        match &self.property {
            MonitoredProperty::LeastEigenvalue(least, _) => Some(least),
            _ => None,
        }
    }

    /// True if every iteration has to be checked, which a loop cannot do; nor does it compute
    /// determinants of shifted matrices.
    pub fn wants_single_steps(&self) -> bool {
        self.is_curved() || self.least_eigenvalue().is_some_and(|least| !least.is_exact())
    }
}

/// Numbers of iterations, of either kind, that a system has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    pub iterations: u32,
    pub sweeps: u32,
}

impl Taken {
    /// Larger of these numbers and others, each by itself.
    pub fn most(self, other: Taken) -> Taken {
        Taken {
            iterations: self.iterations.max(other.iterations),
            sweeps: self.sweeps.max(other.sweeps),
        }
    }
}

/// Start of a run: the parameters of the model, F₀ of the rows that are not constraints, and x.
pub struct Start<'a> {
    pub parameters: &'a [f64],
    pub targets: &'a [f64],
    pub x: &'a [f64],
}

/// Result of a pilot run.
pub struct Pilot {
    /// Most iterations of each system in the first steps, which have no guess from steps before,
    /// and in later ones.
    pub first: Vec<Taken>,
    pub later: Vec<Taken>,
    pub x: Vec<f64>,
    /// Carried quantities at x.
    pub memory: Vec<f64>,
}

/// Steps of a pilot run, which counts the iterations of a step, and how many of them are the first
/// ones.
pub const PILOT_STEPS: u64 = 64;
pub const FIRST_STEPS: u64 = 4;

/// Steps of the trials that choose the faster kind of iteration.
const TRIAL_STEPS: u64 = 16;

enum Lost {
    Unsolved(Unsolved),
    Degenerate(f64),
    Indefinite(f64),
}

impl<K> Stage<K> {
    /// Registers that are computed.
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.length
    }
}

impl<K: Quantities> Stage<K> {
    /// Compute the registers.
    pub fn run(&self, registers: &mut [f64], work: &mut [f64]) {
        self.kernel.run_within(registers, self.range(), work);
    }
}

impl<K: Quantities> Parametric for Stage<K> {
    fn rebind(&mut self, parameters: &[f64]) {
        self.kernel.rebind(parameters);
    }
}

impl Reduction {
    /// Reduce registers to one.
    fn reduce(self, of: &[Range<usize>], to: usize, registers: &mut [f64]) {
        let parts = of.iter().map(|range| &registers[range.clone()]);
        registers[to] = match self {
            // NaN stays.
            Reduction::Largest => {
                parts.flatten().fold(0.0, |a: f64, b| if b.abs() <= a { a } else { b.abs() })
            }
            Reduction::Sum => parts.map(sum).sum(),
        };
    }
}

/// Longest sum that is added up in vectors, without halving.
const SUMMED_TOGETHER: usize = 256;

/// Sum by halves: rounding grows with the logarithm of the length, in an order that depends on the
/// length only.
fn sum(numbers: &[f64]) -> f64 {
    if numbers.len() > SUMMED_TOGETHER {
        let (first, second) = numbers.split_at(numbers.len() / 2);
        return sum(first) + sum(second);
    }
    let mut lanes = [0.0; 8];
    for eight in numbers.chunks(lanes.len()) {
        lanes.iter_mut().zip(eight).for_each(|(lane, number)| *lane += number);
    }
    lanes.iter().sum()
}

impl<L: Lowering> Solve<L> {
    /// Solve for the unknowns in place, by the chosen iteration, or by Newton's if `newton` is set.
    /// `scale` has two numbers for each monitored system. For a determinant they are its sign and
    /// the size of the smallest pivot at the start of the run, 0 before they are known; for a
    /// smallest eigenvalue the first is its distance below [`NOTABLE`], the second counts solutions.
    fn run(
        &self,
        registers: &mut [f64],
        (h, tolerance, newton): (f64, f64, bool),
        scale: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<Taken, Lost> {
        let task = &Task { sweeps: self.task.sweeps && !newton, ..self.task.clone() };
        let solved =
            task.solve(&self.equations, registers, tolerance, work).map_err(|unsolved| {
                self.count(0, unsolved.iterations, cost);
                let lost =
                    unsolved.strayed && self.monitor.as_ref().is_some_and(SystemMonitor::is_curved);
                if lost { Lost::Degenerate(0.0) } else { Lost::Unsolved(unsolved) }
            })?;
        self.count(solved.sweeps, solved.iterations, cost);
        let taken = Taken { iterations: solved.iterations, sweeps: solved.sweeps };
        let Some(SystemMonitor { number, property }) = &self.monitor else { return Ok(taken) };
        let scale = &mut scale[2 * number..2 * number + 2];
        match property {
            &MonitoredProperty::Determinant { power, curved } => {
                if curved && solved.strayed {
                    // It became singular on the way.
                    return Err(Lost::Degenerate(0.0));
                }
                self.compare(power, h, solved.pivots, scale)?;
            }
            MonitoredProperty::LeastEigenvalue(least, every) => {
                let smallest = NOTABLE - scale[0];
                let Pivots { smallest: pivot, positive, .. } = solved.pivots;
                let is_due = scale[1] == 0.0;
                scale[1] = (scale[1] + 1.0) % f64::from(*every);
                if !is_due && positive && pivot > smallest {
                    return Ok(taken);
                }
                let (entries, work) = self.equations.entries(registers, work);
                if !least.exceeds(entries, smallest, work) {
                    let eigenvalue = least.find(entries, smallest, work);
                    if eigenvalue < INDEFINITE {
                        return Err(Lost::Indefinite(eigenvalue));
                    }
                    scale[0] = NOTABLE - eigenvalue;
                }
            }
        }
        Ok(taken)
    }

    /// Compare the pivots of a matrix, which has h to the power `power` in every row, with those at
    /// the start of the run.
    fn compare(&self, power: i32, h: f64, pivots: Pivots, scale: &mut [f64]) -> Result<(), Lost> {
        // The determinant has the sign of h to the power of the number of rows, if `power` is odd.
        let backwards = h < 0.0 && power == 1 && !self.task.unknowns.len().is_multiple_of(2);
        let sign = if pivots.negative ^ backwards { -1.0 } else { 1.0 };
        let size = pivots.smallest / h.abs().powi(power);
        if scale[0] == 0.0 {
            scale.copy_from_slice(&[sign, size]);
        }
        if sign != scale[0] || size.is_nan() || size <= LOST * scale[1] {
            return Err(Lost::Degenerate(sign * size / scale[1]));
        }
        Ok(())
    }

    fn count(&self, sweeps: u32, iterations: u32, cost: &mut Cost) {
        Calls { hessian: 0, ..self.calls }.count(u64::from(sweeps), cost);
        self.calls.count(u64::from(iterations), cost);
        cost.linear_solves += u64::from(iterations);
        cost.newton_iterations += if self.task.linear { 0 } else { u64::from(iterations) };
    }

    fn work_len(&self) -> usize {
        let least = self
            .monitor
            .as_ref()
            .and_then(SystemMonitor::least_eigenvalue)
            .map_or(0, LeastEigenvalue::work_len);
        self.equations.work_len() + least
    }
}

impl<L: Lowering> Parametric for LoweredProgram<L> {
    /// Set other parameters of the model in the kernels of single steps.
    fn rebind(&mut self, parameters: &[f64]) {
        self.fsal.rebind(parameters);
        self.encounter.rebind(parameters);
        if let Some((draws, noise)) = &mut self.draws {
            *noise = draws.noise(parameters);
        }
        let parameters = &[parameters, &self.own].concat();
        for action in &mut self.actions {
            match action {
                Action::Compute(stage) => stage.rebind(parameters),
                Action::Reduce { .. } => {}
                Action::Solve(solve) => solve.equations.rebind(parameters),
            }
        }
    }
}

impl<L: Lowering> LoweredProgram<L> {
    /// True if a step solves equations by Newton's iteration; linear equations need none.
    pub fn iterates(&self) -> bool {
        let own = self.solves().any(|solve| !solve.task.linear);
        own || self.fsal.as_ref().is_some_and(|fsal| fsal.program().iterates())
    }

    /// Systems, in the order in which they are solved.
    pub fn solves(&self) -> impl Iterator<Item = &Solve<L>> {
        self.actions.iter().filter_map(|action| match action {
            Action::Solve(solve) => Some(&**solve),
            _ => None,
        })
    }

    /// Copy with other parameters of the model, which makes every step by itself.
    pub fn single(&self, parameters: &[f64]) -> LoweredProgram<L> {
        LoweredProgram { repeated: None, ..self.rebound(parameters) }
    }

    /// True if a run computes, at its start, values that steps reuse (FSAL).
    pub fn finds_first(&self) -> bool {
        self.fsal.is_some()
    }

    /// Length of the carried quantities.
    pub fn carried_len(&self) -> usize {
        self.carried.iter().map(Range::len).sum()
    }

    /// Number of monitored systems, each of which carries a scale.
    pub fn monitored_systems(&self) -> usize {
        self.solves().filter(|solve| solve.monitor.is_some()).count()
    }

    /// Put x, t, h and the carried quantities into the registers.
    pub fn load(&self, StepFrom { t, h, x }: StepFrom, carried: &[f64], registers: &mut [f64]) {
        let at = self.dimension;
        match &self.layout {
            Some(layout) => layout.split(x, &mut registers[..at]),
            None => registers[..at].copy_from_slice(x),
        }
        registers[at] = t;
        registers[at + 1] = h;
        registers[at + 2..at + 2 + carried.len()].copy_from_slice(carried);
    }

    fn unload(&self, registers: &[f64], x: &mut [f64], carried: &mut [f64]) {
        self.scatter(&registers[self.result.clone()], x);
        let mut at = 0;
        for range in &self.carried {
            carried[at..at + range.len()].copy_from_slice(&registers[range.clone()]);
            at += range.len();
        }
    }

    /// Put a result in the place of the first components of x.
    pub fn scatter(&self, result: &[f64], x: &mut [f64]) {
        match &self.layout {
            Some(layout) => layout.join(result, x),
            None => x[..result.len()].copy_from_slice(result),
        }
    }

    /// Make one substep from the registers at its start. `most` receives the largest number of
    /// iterations of each system, or is empty.
    pub fn substep(
        &self,
        registers: &mut [f64],
        scale: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
        most: &mut [Taken],
    ) -> Result<(), NoStep> {
        self.calls.count(1, cost);
        if let Some((draws, noise)) = &self.draws {
            draws.put(std::slice::from_ref(noise), &mut registers[self.dimension + 2..]);
        }
        let h = registers[self.dimension + 1];
        let mut system = 0;
        for (place, action) in self.actions.iter().enumerate() {
            match action {
                Action::Compute(stage) => stage.run(registers, work),
                Action::Reduce { how, of, to } => how.reduce(of, *to, registers),
                Action::Solve(solve) => {
                    let mut solved =
                        solve.run(registers, (h, self.tolerance, false), scale, cost, work);
                    if let Err(Lost::Unsolved(Unsolved { far: true, .. })) = solved {
                        solved = self.follow(place, solve, registers, scale, cost, work);
                    }
                    let taken = solved.map_err(|lost| self.no_step(solve, lost))?;
                    if let Some(most) = most.get_mut(system) {
                        *most = most.most(taken);
                    }
                    system += 1;
                }
            }
        }
        Ok(())
    }

    /// Length of the scratch of a substep, besides the registers.
    pub fn substep_work_len(&self) -> usize {
        let actions = self.actions.iter().map(|action| match action {
            Action::Compute(stage) => stage.kernel.work_len(),
            Action::Reduce { .. } => 0,
            Action::Solve(solve) => solve.work_len(),
        });
        actions.max().unwrap_or(0)
    }

    fn no_step(&self, solve: &Solve<L>, lost: Lost) -> NoStep {
        match lost {
            Lost::Unsolved(Unsolved { iterations, residual, row, .. }) => {
                let (first, equation) =
                    solve.rows[solve.rows.partition_point(|&(first, _)| first <= row) - 1];
                NoStep::NotSolved {
                    iterations,
                    residual,
                    equation: L::name(&self.names, equation, row - first),
                }
            }
            Lost::Degenerate(determinant) => NoStep::Degenerate { determinant },
            Lost::Indefinite(eigenvalue) => NoStep::Indefinite { eigenvalue },
        }
    }

    /// Follow, from shorter steps, the solution of the system at `place` among the actions to the
    /// one that belongs to this step.
    fn follow(
        &self,
        place: usize,
        solve: &Solve<L>,
        registers: &mut [f64],
        scale: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<Taken, Lost> {
        let (unknowns, at) = (solve.task.unknowns.clone(), self.dimension + 1);
        let h = registers[at];
        let followed = follow(unknowns.len(), |part, prediction| {
            registers[at] = part * h;
            self.calls.count(1, cost);
            for action in &self.actions[..place] {
                match action {
                    Action::Compute(stage) => stage.run(registers, work),
                    Action::Reduce { how, of, to } => how.reduce(of, *to, registers),
                    Action::Solve(solve) => {
                        solve.run(
                            registers,
                            (part * h, self.tolerance, true),
                            scale,
                            cost,
                            work,
                        )?;
                    }
                }
            }
            prediction.predict(&mut registers[unknowns.clone()]);
            let taken =
                solve.run(registers, (part * h, self.tolerance, true), scale, cost, work)?;
            prediction.solved(&registers[unknowns.clone()]);
            Ok(taken)
        });
        registers[at] = h;
        followed
    }

    /// Make a step; its result is put into `x1`.
    pub fn step(
        &self,
        whole: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
        most: &mut [Taken],
    ) -> Result<(), NoStep> {
        let (StepFrom { t, h, x }, mut made) = (whole, 0.0f64);
        for (k, &gamma) in self.substeps.iter().enumerate() {
            let step =
                StepFrom { t: made.mul_add(h, t), h: gamma * h, x: if k == 0 { x } else { &*x1 } };
            self.find_fsal(step, workspace)?;
            let (registers, work) = workspace.work.split_at_mut(self.registers);
            let (carried, scale) = workspace.memory.split_at_mut(self.carried_len());
            self.load(step, carried, registers);
            // What is near at its start is not tried: it may have no solution.
            let near = match &self.encounter {
                Some(encounter) if encounter.begins_within(carried) => true,
                encounter => {
                    self.substep(registers, scale, workspace.cost, work, most)?;
                    encounter.as_ref().is_some_and(|encounter| encounter.takes(registers))
                }
            };
            if near {
                return self.hand_over(whole, x1, workspace);
            }
            self.unload(registers, x1, carried);
            made += gamma;
        }
        Ok(())
    }

    /// Make a whole step by the method for the whole field, and find what the next one reuses.
    fn hand_over(
        &self,
        whole: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<(), NoStep> {
        let Some(encounter) = &self.encounter else { return Ok(()) };
        encounter.step(whole, x1, workspace.cost)?;
        if self.fsal.is_none() {
            return Ok(());
        }
        if let Some(known_for) = workspace.memory.last_mut() {
            *known_for = 0.0;
        }
        let StepFrom { t, h, .. } = whole;
        self.find_fsal(StepFrom { t: t + h, h: self.substeps[0] * h, x: x1 }, workspace)
    }

    /// Make some steps from the start; `None` if one fails.
    pub fn pilot(&self, steps: u64, (t0, h): (f64, f64), start: &[f64]) -> Option<Pilot> {
        let (mut x, mut next, mut memory) =
            (start.to_vec(), start.to_vec(), vec![0.0; self.memory_len()]);
        let (mut work, mut cost) = (vec![0.0; self.work_len()], Cost::default());
        let [mut first, mut later] =
            [(); 2].map(|()| vec![Taken::default(); self.solves().count()]);
        for step in 0..steps {
            let most = if step < FIRST_STEPS { &mut first } else { &mut later };
            let from = StepFrom { t: t0 + step as f64 * h, h, x: &x };
            let (memory, cost, work) = (&mut memory, &mut cost, &mut work);
            self.step(from, &mut next, &mut Workspace { kept: &mut [], memory, cost, work }, most)
                .ok()?;
            std::mem::swap(&mut x, &mut next);
        }
        memory.truncate(self.carried_len());
        Some(Pilot { first, later, x, memory })
    }

    /// Choose the iteration for the stages of implicit methods, for steps of length h from a start:
    /// fixed-point iteration where its sweeps contract and take fewer operations than Newton's
    /// method.
    pub fn choose_iteration(&mut self, t0_and_h: (f64, f64), start: &[f64]) {
        let may = |solve: &Solve<L>| solve.task.local && self.may_sweep && self.tolerance == 0.0;
        let may: Vec<bool> = self.solves().map(may).collect();
        if !may.contains(&true) {
            return;
        }
        self.set_sweeps(&may);
        let swept = self.pilot(TRIAL_STEPS, t0_and_h, start);
        self.set_sweeps(&vec![false; may.len()]);
        let Some(swept) = swept else { return };
        // True if the sweeps of a step are cheaper than so many iterations of Newton's method.
        let pays = |(solve, k): (&Solve<L>, usize), iterations: usize| {
            let ((sweep, iteration), taken) = (solve.equations.operations(), swept.later[k]);
            may[k]
                && taken.iterations == 0
                && (taken.sweeps as usize) * sweep < iterations * iteration
        };
        // Newton's method takes one iteration at least. In a large system those of a trial take
        // longer than a run.
        let mut chosen: Vec<bool> = self.solves().zip(0..).map(|solve| pays(solve, 1)).collect();
        if chosen != may {
            let Some(newton) = self.pilot(TRIAL_STEPS, t0_and_h, start) else { return };
            let iterations = |k: usize| newton.later[k].iterations as usize;
            chosen = self.solves().zip(0..).map(|solve| pays(solve, iterations(solve.1))).collect();
        }
        self.set_sweeps(&chosen);
    }

    /// True if some equations are solved by fixed-point iteration.
    pub fn sweeps(&self) -> bool {
        self.solves().any(|solve| solve.task.sweeps)
    }

    fn set_sweeps(&mut self, sweeps: &[bool]) {
        let solves = self.actions.iter_mut().filter_map(|action| match action {
            Action::Solve(solve) => Some(solve),
            _ => None,
        });
        solves.zip(sweeps).for_each(|(solve, &sweeps)| solve.task.sweeps = sweeps);
    }

    /// Find the values that a substep reuses, if the previous one had another length or there was
    /// none.
    fn find_fsal(&self, step: StepFrom, workspace: &mut Workspace) -> Result<(), NoStep> {
        self.fsal.as_ref().map_or(Ok(()), |fsal| fsal.find(step, workspace))
    }

    /// Put into the registers the values that a trial substep reuses, if the previous one had
    /// another length or there was none: at the start of a run, or where steps become shorter.
    fn find_anew(
        &self,
        step: StepFrom,
        known_for: Option<f64>,
        registers: &mut [f64],
        work: &mut [f64],
    ) -> Result<(), NoStep> {
        let Some(fsal) = self.fsal.as_ref().filter(|fsal| !fsal.serves(known_for, step.h)) else {
            return Ok(());
        };
        let found = fsal.program().evaluate(step, &mut Cost::default(), work)?;
        registers[self.dimension + 2..][..found.len()].copy_from_slice(found);
        Ok(())
    }

    /// Monitored energy of steps of length h, at (t, x); `None` if they monitor none.
    pub fn monitored_energy(&self, (t, h): (f64, f64), x: &[f64]) -> Option<f64> {
        self.fsal.as_ref()?.energy(StepFrom { t, h: self.substeps[0] * h, x })
    }

    /// Smallest eigenvalue of the monitored matrices in a run that now carries `memory`;
    /// [`NOTABLE`] if none was smaller, `None` if no matrix is monitored.
    pub fn smallest_eigenvalue(&self, memory: &[f64]) -> Option<f64> {
        let scale = memory.get(self.carried_len()..)?;
        let monitors = self.solves().filter_map(|solve| solve.monitor.as_ref());
        let below = monitors
            .filter(|monitor| monitor.least_eigenvalue().is_some())
            .map(|monitor| scale[2 * monitor.number]);
        below.map(|below| NOTABLE - below).min_by(f64::total_cmp)
    }
}

impl<L: Lowering> Finds for LoweredProgram<L> {
    fn evaluate<'w>(
        &self,
        step: StepFrom,
        cost: &mut Cost,
        work: &'w mut [f64],
    ) -> Result<&'w [f64], NoStep> {
        let (registers, work) = work.split_at_mut(self.registers);
        self.load(step, &[], registers);
        self.substep(registers, &mut vec![0.0; 2 * self.monitored_systems()], cost, work, &mut [])?;
        Ok(&registers[self.result.clone()])
    }
}

impl<L: Lowering> StepMap for LoweredProgram<L> {
    fn work_len(&self) -> usize {
        // The trial step of `multipliers`, and the values found for it, follow the registers.
        let fsal = self.fsal.as_ref().map_or(0, Fsal::work_len);
        let own = self.registers + 2 * self.monitored_systems() + self.substep_work_len().max(fsal);
        own.max(L::blocks(self).map_or(0, |(_, work_len)| work_len))
    }

    fn memory_len(&self) -> usize {
        // The last number is the length of the step that left the reused values.
        self.carried_len() + 2 * self.monitored_systems() + usize::from(self.fsal.is_some())
    }

    fn begin(&self, step: StepFrom, workspace: &mut Workspace) -> Result<(), NoStep> {
        self.find_fsal(StepFrom { h: self.substeps[0] * step.h, ..step }, workspace)
    }

    fn monitored_count(&self) -> usize {
        self.fsal.as_ref().map_or(0, |fsal| usize::from(fsal.monitored.is_some()))
    }

    fn deviations(&self, memory: &[f64], deviations: &mut [f64]) {
        if let Some(fsal) = &self.fsal {
            fsal.deviations(memory, deviations);
        }
    }

    fn takes_first_stage(&self) -> bool {
        false
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        L::blocks(self).map(|(blocks, _)| blocks)
    }

    fn fixed_step(
        &self,
        step: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<(), NoStep> {
        self.step(step, x1, workspace, &mut [])
    }

    fn multiplier_count(&self) -> usize {
        self.multipliers.count()
    }

    fn multipliers(&self, at: Between, lambda: &mut [f64], work: &mut [f64]) {
        let Between { t, before, after, x, memory } = at;
        let (registers, work) = work.split_at_mut(self.registers);
        let (scale, work) = work.split_at_mut(2 * self.monitored_systems());
        let after = self.multipliers.step((before, after));
        if after != 0.0 {
            // The first substep as it will be made: the multipliers that it finds at its start act
            // here.
            let (carried, known) = memory.split_at(self.carried_len());
            scale.copy_from_slice(&known[..scale.len()]);
            let step = StepFrom { t, h: self.substeps[0] * after, x };
            self.load(step, carried, registers);
            let cost = &mut Cost::default();
            let found = self.find_anew(step, known.last().copied(), registers, work);
            if found.and_then(|()| self.substep(registers, scale, cost, work, &mut [])).is_err() {
                lambda.fill(f64::NAN);
                return;
            }
        }
        self.multipliers.put((before, after), registers, memory, lambda);
    }
}
