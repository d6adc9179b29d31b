//! A recorded step as actions that are done one after the other, with Newton iterations between them.
//!
//! Everything that a step computes stands in one row of numbers, the registers: x, t, h, what is carried from step to
//! step, and then, kernel after kernel, what later ones need. A kernel reads registers before its own and writes its own,
//! so nothing is copied. How a recording becomes kernels and how equations are eliminated is the part of a [`Lowering`]:
//! [`straight`](super::straight) for small models, [`columns`](super::columns) for large ones.

use super::draws::Draws;
use super::first_same::{Finds, FirstSame};
use super::multipliers::Multipliers;
use super::recorder::Calls;
use crate::compiled::Quantities;
use crate::watched::{INDEFINITE, NOTABLE};
use holonome_integrate::newton::path::follow;
use holonome_integrate::newton::{Equations, Task, Unsolved};
use holonome_integrate::noise::Noise;
use holonome_integrate::phase_space::Equation;
use holonome_integrate::scheme::map::{Between, Blocks, NoStep, StepFrom, StepMap, Workspace};
use holonome_integrate::state::Cost;
use holonome_linear::least_eigenvalue::LeastEigenvalue;
use holonome_linear::lu::Pivots;
use holonome_model::rows::Layout;
use std::ops::Range;
use std::sync::Arc;

/// The pivots of a watched system below this, relative to those at the start, count as lost.
pub const LOST: f64 = 1e-8;

/// How a recording becomes numbers.
pub trait Lowering: Sized {
    /// What computes registers.
    type Kernel: Quantities;
    /// Equations in numbers.
    type Equations: LoweredEquations;
    /// What is needed to name an equation.
    type Names: Clone + Sync;
    /// What many steps in one go take besides.
    type Repeated: Sync;

    /// What an equation says, for a reader; of a family of them number `member`.
    fn name(names: &Self::Names, equation: Equation, member: usize) -> String;

    /// Many steps in one go, if the program makes them, and the scratch that they need.
    fn blocks(program: &Program<Self>) -> Option<(&dyn Blocks, usize)>;
}

/// The equations of a system.
pub trait LoweredEquations: Equations + Sync {
    /// Scratch needed.
    fn work_len(&self) -> usize;
    /// The same for other parameters.
    fn rebound(&self, parameters: &[f64]) -> Self;
    /// Gives these other parameters.
    fn rebind(&mut self, parameters: &[f64]);
    /// What a sweep of a fixed-point iteration takes, and an iteration of Newton's method.
    fn operations(&self) -> (usize, usize);
    /// The entries of the last matrix, as [`LeastEigenvalue`] knows them, and more scratch.
    fn entries<'a>(&self, work: &'a mut [f64]) -> (&'a [f64], &'a mut [f64]);
}

/// A step that can be run.
pub struct Program<L: Lowering> {
    pub dimension: usize,
    /// x stands at the start of the registers, by columns or as it is.
    pub layout: Option<Arc<Layout>>,
    pub registers: usize,
    pub actions: Vec<Action<L>>,
    /// Where x₁ stands, or what else the recording results in.
    pub result: Range<usize>,
    /// What is carried stands behind x, t and h; where its next values stand.
    pub carried: Vec<Range<usize>>,
    pub multipliers: Multipliers,
    /// What a step evaluates once.
    pub calls: Calls,
    /// γ₁ … γ_s.
    pub substeps: Vec<f64>,
    pub tolerance: f64,
    pub names: L::Names,
    /// The parameters of the method, behind those of the model.
    pub own: Vec<f64>,
    pub handover: Option<FirstSame<Program<L>>>,
    /// Where, among what is carried, the sums of H stand that are found with the forces; empty if they are not.
    pub sums: Range<usize>,
    /// The random numbers of its steps, and those of its trajectory.
    pub draws: Option<(Draws, Noise)>,
    /// Whether the sizes of what cancels in stages are comparable: not those of a general field's components, whose units
    /// nobody knows, so that they would decide with them how many sweeps are made.
    pub sizes_have_units: bool,
    /// For many steps in one go.
    pub repeated: Option<L::Repeated>,
}

/// A piece of a step.
pub enum Action<L: Lowering> {
    Compute(Stage<L::Kernel>),
    /// One number for all of some registers.
    Reduce {
        how: Reduction,
        of: Vec<Range<usize>>,
        to: usize,
    },
    Solve(Box<Solve<L>>),
}

/// Some registers that are computed together.
#[derive(Clone)]
pub struct Stage<K> {
    pub kernel: K,
    /// Where they stand; all that is read from elsewhere stands before.
    pub first: usize,
    pub length: usize,
}

/// How numbers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The largest absolute value.
    Largest,
    Sum,
}

/// A system of equations to be solved.
pub struct Solve<L: Lowering> {
    pub equations: L::Equations,
    pub task: Task,
    /// The families of equations with the number of the first of each.
    pub rows: Vec<(usize, Equation)>,
    pub watch: Option<Watch>,
    pub calls: Calls,
}

/// How a system is watched.
#[derive(Clone)]
pub struct Watch {
    /// Its number among the watched ones.
    pub number: usize,
    pub what: Watching,
}

/// What of a system is watched.
#[derive(Clone)]
pub enum Watching {
    /// Its determinant: whether it changes its sign, or vanishes.
    Determinant {
        /// Its equations hold h to this power, once in every row.
        power: i32,
        /// Whether it may have other solutions than the one near the guess.
        curved: bool,
    },
    /// Its smallest eigenvalue.
    LeastEigenvalue(Box<LeastEigenvalue>),
    /// Whether its determinant is positive, which for any mass matrix is the product of its eigenvalues.
    Positive,
}

impl Watch {
    fn is_curved(&self) -> bool {
        matches!(self.what, Watching::Determinant { curved: true, .. })
    }

    fn least_eigenvalue(&self) -> Option<&LeastEigenvalue> {
        match &self.what {
            Watching::LeastEigenvalue(least) => Some(least),
            _ => None,
        }
    }

    /// Whether every iteration has to be looked at, which a loop cannot; nor does it do determinants of shifted matrices.
    pub fn wants_single_steps(&self) -> bool {
        self.is_curved() || self.least_eigenvalue().is_some_and(|least| !least.is_exact())
    }
}

/// How many iterations of either kind a system has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    pub iterations: u32,
    pub sweeps: u32,
}

impl Taken {
    /// The most of these and others.
    pub fn most(self, other: Taken) -> Taken {
        Taken { iterations: self.iterations.max(other.iterations), sweeps: self.sweeps.max(other.sweeps) }
    }
}

/// Where a run starts, and over which parameters of the model and F₀ of the rows that are no constraints.
pub struct Start<'a> {
    pub parameters: &'a [f64],
    pub targets: &'a [f64],
    pub x: &'a [f64],
}

/// What a pilot run has seen, and where it ended.
pub struct Pilot {
    /// What each system has taken at most in the first steps, where nothing is known of the steps before, and in others.
    pub first: Vec<Taken>,
    pub later: Vec<Taken>,
    pub x: Vec<f64>,
    /// What is carried there.
    pub memory: Vec<f64>,
}

/// Steps of a pilot run that tells how many iterations a step takes, and how many of them are the first ones.
pub const PILOT_STEPS: u64 = 64;
pub const FIRST_STEPS: u64 = 4;

/// Steps of those that tell which kind of iteration is the faster one.
const TRIAL_STEPS: u64 = 16;

enum Lost {
    Unsolved(Unsolved),
    Degenerate(f64),
    Indefinite(f64),
}

impl<K> Stage<K> {
    /// Where they stand.
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.length
    }
}

impl<K: Quantities> Stage<K> {
    /// Computes them.
    pub fn run(&self, registers: &mut [f64], work: &mut [f64]) {
        self.kernel.run_within(registers, self.range(), work);
    }

    /// The same for other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> Stage<K> {
        Stage { kernel: self.kernel.rebound(parameters), ..*self }
    }
}

impl Reduction {
    /// Reduces registers to one.
    fn reduce(self, of: &[Range<usize>], to: usize, registers: &mut [f64]) {
        let parts = of.iter().map(|range| &registers[range.clone()]);
        registers[to] = match self {
            // NaN stays.
            Reduction::Largest => parts.flatten().fold(0.0, |a: f64, b| if b.abs() <= a { a } else { b.abs() }),
            Reduction::Sum => parts.map(sum).sum(),
        };
    }
}

/// Numbers up to which a sum is one in vectors.
const SUMMED_TOGETHER: usize = 256;

/// The sum by halves, so that rounding grows with the logarithm of the length, in an order that depends on that only.
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
    /// Solves for the unknowns in place, by the iteration that was chosen or by Newton's. `scale` holds, for a system whose determinant is watched, its sign and the size of
    /// the smallest pivot at the start of the run, 0 before it is known; for one whose smallest eigenvalue is watched, how
    /// far that has come below what is notable.
    fn run(
        &self,
        registers: &mut [f64],
        (h, tolerance, newton): (f64, f64, bool),
        scale: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<Taken, Lost> {
        let task = &Task { sweeps: self.task.sweeps && !newton, ..self.task.clone() };
        let solved = task.solve(&self.equations, registers, tolerance, work).map_err(|unsolved| {
            self.count(0, unsolved.iterations, cost);
            let lost = unsolved.strayed && self.watch.as_ref().is_some_and(Watch::is_curved);
            if lost { Lost::Degenerate(0.0) } else { Lost::Unsolved(unsolved) }
        })?;
        self.count(solved.sweeps, solved.iterations, cost);
        let taken = Taken { iterations: solved.iterations, sweeps: solved.sweeps };
        let Some(Watch { number, what }) = &self.watch else { return Ok(taken) };
        let scale = &mut scale[2 * number..2 * number + 2];
        match what {
            &Watching::Determinant { power, curved } => {
                if curved && solved.strayed {
                    // It became singular on the way.
                    return Err(Lost::Degenerate(0.0));
                }
                self.compare(power, h, solved.pivots, scale)?;
            }
            Watching::LeastEigenvalue(least) => {
                let smallest = NOTABLE - scale[0];
                let (entries, work) = self.equations.entries(work);
                if !least.exceeds(entries, smallest, work) {
                    let eigenvalue = least.find(entries, smallest, work);
                    if eigenvalue < INDEFINITE {
                        return Err(Lost::Indefinite(eigenvalue));
                    }
                    scale[0] = NOTABLE - eigenvalue;
                }
            }
            Watching::Positive if solved.pivots.negative => return Err(Lost::Indefinite(0.0)),
            Watching::Positive => {}
        }
        Ok(taken)
    }

    /// Compares the pivots of a matrix that holds h to this power in every row with those at the start of the run.
    fn compare(&self, power: i32, h: f64, pivots: Pivots, scale: &mut [f64]) -> Result<(), Lost> {
        // The determinant has the sign of h to the power of the number of rows, if that of one row is odd.
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
        let least = self.watch.as_ref().and_then(Watch::least_eigenvalue).map_or(0, LeastEigenvalue::work_len);
        self.equations.work_len() + least
    }

    fn rebound(&self, parameters: &[f64]) -> Solve<L> {
        Solve {
            equations: self.equations.rebound(parameters),
            task: self.task.clone(),
            rows: self.rows.clone(),
            watch: self.watch.clone(),
            calls: self.calls,
        }
    }
}

impl<L: Lowering> Program<L> {
    /// Whether a step solves equations by Newton's iteration; linear ones take none.
    pub fn iterates(&self) -> bool {
        let own = self.solves().any(|solve| !solve.task.linear);
        own || self.handover.as_ref().is_some_and(|handover| handover.program().iterates())
    }

    /// The systems, in the order in which they are solved.
    pub fn solves(&self) -> impl Iterator<Item = &Solve<L>> {
        self.actions.iter().filter_map(|action| match action {
            Action::Solve(solve) => Some(&**solve),
            _ => None,
        })
    }

    /// The same program with other parameters of the model.
    pub fn rebound(&self, parameters: &[f64]) -> Program<L> {
        let handover = self.handover.as_ref().map(|handover| handover.rebound(|find| find.rebound(parameters)));
        let draws = self.draws.as_ref().map(|(draws, _)| (draws.clone(), draws.noise(parameters)));
        let parameters = &[parameters, &self.own].concat();
        let action = |action: &Action<L>| match action {
            Action::Compute(stage) => Action::Compute(stage.rebound(parameters)),
            Action::Reduce { how, of, to } => Action::Reduce { how: *how, of: of.clone(), to: *to },
            Action::Solve(solve) => Action::Solve(Box::new(solve.rebound(parameters))),
        };
        Program {
            layout: self.layout.clone(),
            actions: self.actions.iter().map(action).collect(),
            result: self.result.clone(),
            carried: self.carried.clone(),
            multipliers: self.multipliers.clone(),
            substeps: self.substeps.clone(),
            names: self.names.clone(),
            own: self.own.clone(),
            handover,
            sums: self.sums.clone(),
            draws,
            repeated: None,
            ..*self
        }
    }

    /// Gives the kernels other parameters: those of the model and of the method.
    pub fn rebind(&mut self, parameters: &[f64]) {
        for action in &mut self.actions {
            match action {
                Action::Compute(stage) => stage.kernel.rebind(parameters),
                Action::Reduce { .. } => {}
                Action::Solve(solve) => solve.equations.rebind(parameters),
            }
        }
        if let Some(handover) = &mut self.handover {
            handover.program_mut().rebind(parameters);
        }
        if let Some((draws, noise)) = &mut self.draws {
            *noise = draws.noise(parameters);
        }
    }

    /// Whether a run finds something at its start that steps take over.
    pub fn finds_first(&self) -> bool {
        self.handover.is_some()
    }

    /// How many numbers are carried.
    pub fn carried_len(&self) -> usize {
        self.carried.iter().map(Range::len).sum()
    }

    /// How many watched systems there are: each remembers a scale.
    pub fn watched(&self) -> usize {
        self.solves().filter(|solve| solve.watch.is_some()).count()
    }

    /// Puts x, t, h and what is carried into the registers.
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

    /// Puts a result into the place of as many components of x.
    pub fn scatter(&self, result: &[f64], x: &mut [f64]) {
        match &self.layout {
            Some(layout) => layout.join(result, x),
            None => x[..result.len()].copy_from_slice(result),
        }
    }

    /// One substep from what the registers hold at their start. `most` keeps the largest number of iterations of each
    /// system, or is empty.
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
                    let mut solved = solve.run(registers, (h, self.tolerance, false), scale, cost, work);
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

    /// Scratch that a substep needs besides the registers.
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
                let (first, equation) = solve.rows[solve.rows.partition_point(|&(first, _)| first <= row) - 1];
                NoStep::NotSolved { iterations, residual, equation: L::name(&self.names, equation, row - first) }
            }
            Lost::Degenerate(determinant) => NoStep::Degenerate { determinant },
            Lost::Indefinite(eigenvalue) => NoStep::Indefinite { eigenvalue },
        }
    }

    /// The solution of the system at this place among the actions that belongs to this step, followed from shorter ones.
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
                        solve.run(registers, (part * h, self.tolerance, true), scale, cost, work)?;
                    }
                }
            }
            prediction.predict(&mut registers[unknowns.clone()]);
            let taken = solve.run(registers, (part * h, self.tolerance, true), scale, cost, work)?;
            prediction.solved(&registers[unknowns.clone()]);
            Ok(taken)
        });
        registers[at] = h;
        followed
    }

    /// A step, whose result is put into `x1`.
    pub fn step(
        &self,
        StepFrom { t, h, x }: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
        most: &mut [Taken],
    ) -> Result<(), NoStep> {
        let mut made = 0.0f64;
        for (k, &gamma) in self.substeps.iter().enumerate() {
            let step = StepFrom { t: made.mul_add(h, t), h: gamma * h, x: if k == 0 { x } else { &*x1 } };
            self.find_handed(step, workspace)?;
            let (registers, work) = workspace.work.split_at_mut(self.registers);
            let (carried, scale) = workspace.memory.split_at_mut(self.carried_len());
            self.load(step, carried, registers);
            self.substep(registers, scale, workspace.cost, work, most)?;
            self.unload(registers, x1, carried);
            made += gamma;
        }
        Ok(())
    }

    /// Some steps from the start; none where a step fails.
    pub fn pilot(&self, steps: u64, (t0, h): (f64, f64), start: &[f64]) -> Option<Pilot> {
        let (mut x, mut next, mut memory) = (start.to_vec(), start.to_vec(), vec![0.0; self.memory_len()]);
        let (mut work, mut cost) = (vec![0.0; self.work_len()], Cost::default());
        let [mut first, mut later] = [(); 2].map(|()| vec![Taken::default(); self.solves().count()]);
        for step in 0..steps {
            let most = if step < FIRST_STEPS { &mut first } else { &mut later };
            let from = StepFrom { t: t0 + step as f64 * h, h, x: &x };
            let (memory, cost, work) = (&mut memory, &mut cost, &mut work);
            self.step(from, &mut next, &mut Workspace { kept: &mut [], memory, cost, work }, most).ok()?;
            std::mem::swap(&mut x, &mut next);
        }
        memory.truncate(self.carried_len());
        Some(Pilot { first, later, x, memory })
    }

    /// Chooses, for steps of the length h from a start, between Newton's method and fixed-point iteration for the stages of
    /// implicit methods: where these contract in so few sweeps that they take less.
    pub fn choose_iteration(&mut self, t0_and_h: (f64, f64), start: &[f64]) {
        let may = |solve: &Solve<L>| solve.task.local && self.sizes_have_units && self.tolerance == 0.0;
        let may: Vec<bool> = self.solves().map(may).collect();
        if !may.contains(&true) {
            return;
        }
        let Some(newton) = self.pilot(TRIAL_STEPS, t0_and_h, start) else { return };
        self.set_sweeps(&may);
        let swept = self.pilot(TRIAL_STEPS, t0_and_h, start);
        let pays = |(solve, k): (&Solve<L>, usize)| {
            let (sweep, iteration) = solve.equations.operations();
            let Some(taken) = swept.as_ref().map(|swept| swept.later[k]) else { return false };
            let cheaper = taken.sweeps as usize * sweep < newton.later[k].iterations as usize * iteration;
            may[k] && taken.iterations == 0 && cheaper
        };
        let chosen: Vec<bool> = self.solves().zip(0..).map(pays).collect();
        self.set_sweeps(&chosen);
    }

    /// Whether some equations are solved by fixed-point iteration.
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

    /// Finds what a substep takes over, where none of its length came before.
    fn find_handed(&self, step: StepFrom, workspace: &mut Workspace) -> Result<(), NoStep> {
        self.handover.as_ref().map_or(Ok(()), |handover| handover.find(step, workspace))
    }

    /// Puts into the registers what a substep takes over that is tried, where none of its length came before: at the start
    /// of a run, or where steps become shorter.
    fn find_anew(
        &self,
        step: StepFrom,
        known_for: Option<f64>,
        registers: &mut [f64],
        work: &mut [f64],
    ) -> Result<(), NoStep> {
        let Some(handover) = self.handover.as_ref().filter(|handover| !handover.serves(known_for, step.h)) else {
            return Ok(());
        };
        let found = handover.program().evaluate(step, &mut Cost::default(), work)?;
        registers[self.dimension + 2..][..found.len()].copy_from_slice(found);
        Ok(())
    }

    /// The energy that steps of the length h watch, at (t, x); none if they watch none.
    pub fn watched_energy(&self, (t, h): (f64, f64), x: &[f64]) -> Option<f64> {
        self.handover.as_ref()?.energy(StepFrom { t, h: self.substeps[0] * h, x })
    }

    /// The smallest eigenvalue that the watched matrices have had in a run which now carries `memory`, or [`NOTABLE`] where
    /// none was smaller; none if none is watched.
    pub fn smallest_eigenvalue(&self, memory: &[f64]) -> Option<f64> {
        let scale = memory.get(self.carried_len()..)?;
        let watches = self.solves().filter_map(|solve| solve.watch.as_ref());
        let below = watches.filter(|watch| watch.least_eigenvalue().is_some()).map(|watch| scale[2 * watch.number]);
        below.map(|below| NOTABLE - below).min_by(f64::total_cmp)
    }
}

impl<L: Lowering> Finds for Program<L> {
    fn evaluate<'w>(&self, step: StepFrom, cost: &mut Cost, work: &'w mut [f64]) -> Result<&'w [f64], NoStep> {
        let (registers, work) = work.split_at_mut(self.registers);
        self.load(step, &[], registers);
        self.substep(registers, &mut vec![0.0; 2 * self.watched()], cost, work, &mut [])?;
        Ok(&registers[self.result.clone()])
    }
}

impl<L: Lowering> StepMap for Program<L> {
    fn work_len(&self) -> usize {
        // What `multipliers` tries a step with, and finds for it, stands behind the registers.
        let handed = self.handover.as_ref().map_or(0, FirstSame::work_len);
        let own = self.registers + 2 * self.watched() + self.substep_work_len().max(handed);
        own.max(L::blocks(self).map_or(0, |(_, work_len)| work_len))
    }

    fn memory_len(&self) -> usize {
        // The last number is the length of the step that handed over.
        self.carried_len() + 2 * self.watched() + usize::from(self.handover.is_some())
    }

    fn begin(&self, step: StepFrom, workspace: &mut Workspace) -> Result<(), NoStep> {
        self.find_handed(StepFrom { h: self.substeps[0] * step.h, ..step }, workspace)
    }

    fn watched_count(&self) -> usize {
        self.handover.as_ref().map_or(0, |handover| usize::from(handover.watched.is_some()))
    }

    fn deviations(&self, memory: &[f64], deviations: &mut [f64]) {
        if let Some(handover) = &self.handover {
            handover.deviations(memory, deviations);
        }
    }

    fn takes_first_stage(&self) -> bool {
        false
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        L::blocks(self).map(|(blocks, _)| blocks)
    }

    fn fixed_step(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Result<(), NoStep> {
        self.step(step, x1, workspace, &mut [])
    }

    fn multiplier_count(&self) -> usize {
        self.multipliers.count()
    }

    fn multipliers(&self, at: Between, lambda: &mut [f64], work: &mut [f64]) {
        let Between { t, before, after, x, memory } = at;
        let (registers, work) = work.split_at_mut(self.registers);
        let (scale, work) = work.split_at_mut(2 * self.watched());
        let after = self.multipliers.step((before, after));
        if after != 0.0 {
            // The first substep as it will be made: what it finds at its start acts here.
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
