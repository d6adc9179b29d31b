//! A traced step as kernels with Newton iterations between them.
//!
//! Everything that a step computes stands in one row of numbers, the registers: x, t, h, what is carried from step to
//! step, and then, kernel after kernel, what later ones need. A kernel reads all registers before its own and writes its
//! own, so nothing is copied. The kernel of a system's residuals reads the registers up to its unknowns, and what does
//! not depend on these is computed once, before the iteration.

use super::first_same::{Finds, FirstSame};
use super::many::{Ingredients, Many, Piloted};
use super::multipliers::Multipliers;
use super::natural::diagonal_mass;

use super::tracing::{Calls, System, Trace};
use crate::compiled::Bound;
use crate::component_names::component_names;
use holonome_integrate::method::Treatment;
use holonome_integrate::newton::path::follow;
use holonome_integrate::newton::{self, CLOSE};
use holonome_integrate::phase_space::{Equation, Watched};
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::scheme::explicit_rk::Stages;
use holonome_integrate::scheme::map::{Blocks, NoStep, StepMap};
use holonome_integrate::state::Cost;
use holonome_integrate::tableau::Tableau;
use holonome_linear::least_eigenvalue::LeastEigenvalue;
use holonome_linear::lu::Elimination;
use holonome_model::elaborate::model::Model;
use holonome_model::graph::fuse::fuse;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::treatment::Field;
use holonome_model::treatment::mechanics::Mechanics;
use holonome_model::treatment::structure::Kind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Steps of the pilot run that tells how many Newton iterations a step takes, and how many of them are left out.
const PILOT_STEPS: u64 = 64;
pub const FIRST_STEPS: u64 = 4;

/// Iterations from which on a system is not solved in a loop, which does not see whether they contract: one whose second
/// update is larger than half of the first, and which squares its error from there on, takes these at least.
const DOUBTFUL_ITERATIONS: u32 = 5;

/// The pivots of a watched system below this, relative to those at the start, count as lost.
pub const LOST: f64 = 1e-8;

/// A smallest eigenvalue of a matrix that is to be definite is remembered below the first, and ends the run below the
/// second: it is 1 without the step, and the force of the step grows like its inverse.
pub const NOTABLE: f64 = 0.9;
pub const INDEFINITE: f64 = 0.5;

/// A step that can be run.
pub struct Program {
    dimension: usize,
    /// The kernels between the solves: first, one after every solve.
    segments: Vec<Segment>,
    solves: Vec<Solve>,
    /// Where x₁ stands, or what else the trace results in.
    result: Range<usize>,
    /// Where the next values of what is carried stand.
    carried: Vec<usize>,
    multipliers: Multipliers,
    registers: usize,
    handover: Option<FirstSame<Program>>,
    /// The parameters of the method, behind those of the model.
    settings: Vec<f64>,
    /// γ₁ … γ_s.
    substeps: Vec<f64>,
    tolerance: f64,
    constraint_names: Vec<String>,
    component_names: Vec<String>,
    /// Many steps in one loop, for one run.
    many: Option<Many>,
}

struct Segment {
    kernel: Bound,
    /// How many registers it reads: all that stand before its own.
    first: usize,
    calls: Calls,
}

struct Solve {
    kernel: Bound,
    /// Its unknowns; the kernel reads all registers up to their end.
    unknowns: Range<usize>,
    sizes: Range<usize>,
    system: newton::System,
    watch: Option<Watch>,
    calls: Calls,
}

/// How a system is watched.
#[derive(Clone)]
struct Watch {
    /// Its number among the watched ones.
    number: usize,
    what: Watching,
}

/// What of a system is watched.
#[derive(Clone)]
enum Watching {
    /// Its determinant: whether it changes its sign, or vanishes.
    Determinant {
        /// Its equations hold h to this power, once in every row.
        power: i32,
        /// Whether it may have other solutions than the one near the guess.
        curved: bool,
    },
    /// Its smallest eigenvalue.
    LeastEigenvalue(Box<LeastEigenvalue>),
}

impl Watch {
    fn is_curved(&self) -> bool {
        matches!(self.what, Watching::Determinant { curved: true, .. })
    }

    fn least_eigenvalue(&self) -> Option<&LeastEigenvalue> {
        match &self.what {
            Watching::LeastEigenvalue(least) => Some(least),
            Watching::Determinant { .. } => None,
        }
    }
}

impl Program {
    /// The program of `trace`, made once for each of `substeps`; the tolerance loosens that of the Newton iterations, and
    /// `settings` are the parameters of the method.
    pub fn new(
        trace: &Trace,
        mechanics: &Mechanics,
        model: &Model,
        substeps: Vec<f64>,
        settings: &[f64],
        tolerance: f64,
    ) -> Program {
        let parameters = &[&model.parameter_values, settings].concat();
        let mut cut = Cut::new(trace);
        let mut program = Program {
            dimension: trace.dimension,
            segments: Vec::new(),
            solves: Vec::new(),
            result: 0..0,
            carried: Vec::new(),
            multipliers: Multipliers::new(Vec::new(), Vec::new(), model),
            registers: trace.dimension + 2 + trace.carried.len(),
            handover: trace.handover.as_ref().map(|handover| {
                let find = Program::new(&handover.find, mechanics, model, vec![1.0], settings, tolerance);
                FirstSame::new(find, handover.watched)
            }),
            settings: settings.to_vec(),
            substeps,
            tolerance,
            constraint_names: mechanics.constraints.iter().map(|constraint| constraint.name.clone()).collect(),
            component_names: component_names(model),
            many: None,
        };
        for (level, system) in trace.systems.iter().enumerate() {
            let calls = if level == 0 { trace.calls } else { Calls::default() };
            let (m, first) = (system.rows.len(), program.registers);
            // What later kernels need first, then the sizes, then the unknowns, which start as the guesses.
            let stored = cut.stored(level);
            let outputs = [&stored[..], &system.sizes, &system.guesses].concat();
            program.push(&mut cut, level, &outputs, parameters, calls);
            let sizes = first + stored.len()..first + stored.len() + m;
            cut.place(&stored, first);
            let unknowns = sizes.end..sizes.end + m;
            cut.place(&system.unknowns, unknowns.start);
            let curved = mechanics.kind == Kind::Coisotropic;
            let determinant = |power| Watching::Determinant { power, curved };
            let what = match system.watched {
                Watched::Never => None,
                Watched::Always => Some(determinant(1)),
                Watched::OnCurves => curved.then_some(determinant(2)),
                Watched::Definite => {
                    let least = LeastEigenvalue::new(m, &system.entries(), diagonal_mass(mechanics));
                    Some(Watching::LeastEigenvalue(Box::new(least)))
                }
            };
            let watch = what.map(|what| Watch { number: program.watched(), what });
            program.solves.push(Solve::new(&cut, system, watch, unknowns, sizes, parameters));
        }
        let last = trace.systems.len();
        let next: Vec<Node> = trace.carried.iter().map(|&(_, next)| next).collect();
        let calls = if last == 0 { trace.calls } else { Calls::default() };
        program.result = program.registers..program.registers + trace.result.len();
        let (start, end) = &trace.multipliers;
        // Multipliers that are unknowns stand among the registers already.
        let others: Vec<Node> = start.iter().copied().filter(|node| !cut.place.contains_key(node)).collect();
        let outputs = [&trace.result[..], &next, &others].concat();
        program.push(&mut cut, last, &outputs, parameters, calls);
        cut.place(&others, program.result.end + next.len());
        let start = start.iter().map(|node| cut.place[node]).collect();
        program.multipliers = Multipliers::new(start, end.clone(), model);
        program.carried = (0..next.len()).map(|k| program.result.end + k).collect();
        program
    }

    /// Whether a run finds something at its start that steps take over.
    pub fn finds_first(&self) -> bool {
        self.handover.is_some()
    }

    /// Whether a step solves equations by Newton's iteration; linear ones take none.
    pub fn iterates(&self) -> bool {
        let own = self.solves.iter().any(|solve| !solve.system.linear);
        own || self.handover.as_ref().is_some_and(|handover| handover.program().iterates())
    }

    /// The same program with other parameters of the model.
    pub fn rebound(&self, parameters: &[f64]) -> Program {
        let own = parameters;
        let parameters = &[parameters, &self.settings].concat();
        let segment = |s: &Segment| Segment { kernel: s.kernel.rebound(parameters), ..*s };
        let solve = |s: &Solve| Solve {
            kernel: s.kernel.rebound(parameters),
            unknowns: s.unknowns.clone(),
            sizes: s.sizes.clone(),
            system: s.system.clone(),
            watch: s.watch.clone(),
            ..*s
        };
        Program {
            segments: self.segments.iter().map(segment).collect(),
            solves: self.solves.iter().map(solve).collect(),
            result: self.result.clone(),
            carried: self.carried.clone(),
            handover: self.handover.as_ref().map(|handover| handover.rebound(|find| find.rebound(own))),
            settings: self.settings.clone(),
            multipliers: self.multipliers.clone(),
            substeps: self.substeps.clone(),
            constraint_names: self.constraint_names.clone(),
            component_names: self.component_names.clone(),
            many: None,
            ..*self
        }
    }

    fn push(&mut self, cut: &mut Cut, level: usize, outputs: &[Node], parameters: &[f64], calls: Calls) {
        let first = self.registers;
        let kernel = cut.kernel(outputs, level, first, parameters);
        self.segments.push(Segment { kernel, first, calls });
        self.registers += outputs.len();
    }

    /// What an equation says, for a reader.
    fn name(&self, equation: Equation) -> String {
        match equation {
            Equation::Constraint(i) => self.constraint_names[i].clone(),
            Equation::Hidden(i) => format!("{}.hidden", self.constraint_names[i]),
            Equation::Stage(i) => self.component_names[i].clone(),
            Equation::AngularMomentum(i) => format!("angular momentum, component {}", i + 1),
        }
    }

    /// Length of what follows the registers: residuals and Jacobians, and scratch.
    fn beyond(&self) -> usize {
        let solve = |solve: &Solve| {
            let least = solve.watch.as_ref().and_then(Watch::least_eigenvalue).map_or(0, LeastEigenvalue::work_len);
            solve.kernel.outputs() + solve.system.work_len() + solve.kernel.work_len().max(least)
        };
        let kernels = self.segments.iter().map(|segment| segment.kernel.work_len());
        self.solves.iter().map(solve).chain(kernels).max().unwrap_or(0)
    }

    /// One substep from what the registers hold at their start. `most` keeps the largest number of iterations of each
    /// system, or is empty.
    fn substep(
        &self,
        registers: &mut [f64],
        scale: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
        most: &mut [u32],
    ) -> Result<(), NoStep> {
        for (k, segment) in self.segments.iter().enumerate() {
            let (inputs, own) = registers.split_at_mut(segment.first);
            segment.kernel.run(0.0, inputs, &mut own[..segment.kernel.outputs()], work);
            segment.calls.count(1, cost);
            if let Some(solve) = self.solves.get(k) {
                let mut solved = solve.run(registers, self.tolerance, scale, cost, work, self.dimension);
                if let Err(Lost::Unsolved(newton::Unsolved { far: true, .. })) = solved {
                    solved = self.follow(k, registers, scale, cost, work);
                }
                let iterations = solved.map_err(|lost| match lost {
                    Lost::Unsolved(newton::Unsolved { iterations, residual, equation, .. }) => {
                        NoStep::NotSolved { iterations, residual, equation: self.name(equation) }
                    }
                    Lost::Degenerate(determinant) => NoStep::Degenerate { determinant },
                    Lost::Indefinite(eigenvalue) => NoStep::Indefinite { eigenvalue },
                })?;
                if let Some(most) = most.get_mut(k) {
                    *most = iterations.max(*most);
                }
            }
        }
        Ok(())
    }

    /// The solution of system `k` that belongs to this step, followed from shorter ones.
    fn follow(
        &self,
        k: usize,
        registers: &mut [f64],
        scale: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<u32, Lost> {
        let (unknowns, at) = (self.solves[k].unknowns.clone(), self.dimension + 1);
        let h = registers[at];
        let followed = follow(unknowns.len(), |part, prediction| {
            registers[at] = part * h;
            for (j, segment) in self.segments[..=k].iter().enumerate() {
                let (inputs, own) = registers.split_at_mut(segment.first);
                segment.kernel.run(0.0, inputs, &mut own[..segment.kernel.outputs()], work);
                segment.calls.count(1, cost);
                if j < k {
                    self.solves[j].run(registers, self.tolerance, scale, cost, work, self.dimension)?;
                }
            }
            prediction.predict(&mut registers[unknowns.clone()]);
            let iterations = self.solves[k].run(registers, self.tolerance, scale, cost, work, self.dimension)?;
            prediction.solved(&registers[unknowns.clone()]);
            Ok(iterations)
        });
        registers[at] = h;
        followed
    }

    /// How many watched systems there are: each remembers a scale.
    fn watched(&self) -> usize {
        self.solves.iter().filter(|solve| solve.watch.is_some()).count()
    }
}

enum Lost {
    Unsolved(newton::Unsolved),
    Degenerate(f64),
    Indefinite(f64),
}

impl Solve {
    fn new(
        cut: &Cut,
        system: &System,
        watch: Option<Watch>,
        unknowns: Range<usize>,
        sizes: Range<usize>,
        parameters: &[f64],
    ) -> Solve {
        let entries = system.entries();
        let values: Vec<Node> = system.jacobian.iter().map(|&(_, _, node)| node).collect();
        let outputs = [&system.residuals[..], &values].concat();
        let level = cut.level_of(system.unknowns[0]);
        Solve {
            kernel: cut.kernel(&outputs, level, unknowns.end, parameters),
            system: newton::System {
                rows: system.rows.clone(),
                linear: system.linear,
                elimination: Elimination::new(system.rows.len(), &entries),
            },
            unknowns,
            sizes,
            watch,
            calls: system.calls,
        }
    }

    /// Solves for the unknowns in place. `scale` holds, for a system whose determinant is watched, its sign and the size of
    /// the smallest pivot at the start of the run, 0 before it is known; for one whose smallest eigenvalue is watched, how
    /// far that has come below what is notable.
    fn run(
        &self,
        registers: &mut [f64],
        tolerance: f64,
        scale: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
        dimension: usize,
    ) -> Result<u32, Lost> {
        let h = registers[dimension + 1];
        let (outputs, work) = work.split_at_mut(self.kernel.outputs());
        let (elimination, work) = work.split_at_mut(self.system.work_len());
        let registers = &mut registers[..self.unknowns.end];
        let solved = self
            .system
            .solve(registers, self.sizes.clone(), tolerance, outputs, elimination, |registers, outputs| {
                self.kernel.run(0.0, registers, outputs, work);
            })
            .map_err(|unsolved| {
                self.calls.count(u64::from(unsolved.iterations), cost);
                let lost = unsolved.strayed && self.watch.as_ref().is_some_and(Watch::is_curved);
                if lost { Lost::Degenerate(0.0) } else { Lost::Unsolved(unsolved) }
            })?;
        let iterations = u64::from(solved.iterations);
        self.calls.count(iterations, cost);
        cost.linear_solves += iterations;
        if !self.system.linear {
            cost.newton_iterations += iterations;
        }
        let Some(Watch { number, what }) = &self.watch else { return Ok(solved.iterations) };
        let scale = &mut scale[2 * number..2 * number + 2];
        match what {
            &Watching::Determinant { power, curved } => {
                if curved && solved.strayed {
                    // It became singular on the way.
                    return Err(Lost::Degenerate(0.0));
                }
                // The determinant has the sign of h to the power of the number of rows, if that of one row is odd.
                let backwards = h < 0.0 && power == 1 && !self.unknowns.len().is_multiple_of(2);
                let sign = if solved.pivots.negative ^ backwards { -1.0 } else { 1.0 };
                let size = solved.pivots.smallest / h.abs().powi(power);
                if scale[0] == 0.0 {
                    scale.copy_from_slice(&[sign, size]);
                }
                if sign != scale[0] || size.is_nan() || size <= LOST * scale[1] {
                    return Err(Lost::Degenerate(sign * size / scale[1]));
                }
            }
            Watching::LeastEigenvalue(least) => {
                let (entries, smallest) = (&outputs[self.unknowns.len()..], NOTABLE - scale[0]);
                if !least.exceeds(entries, smallest, work) {
                    let eigenvalue = least.find(entries, smallest, work);
                    if eigenvalue < INDEFINITE {
                        return Err(Lost::Indefinite(eigenvalue));
                    }
                    scale[0] = NOTABLE - eigenvalue;
                }
            }
        }
        Ok(solved.iterations)
    }
}

/// The largest number of iterations that each system has taken in a pilot run.
struct Iterations {
    /// In its first steps, as no multipliers are known there.
    first: Vec<u32>,
    /// In all others.
    later: Vec<u32>,
}

/// Where a run starts, and over which parameters of the model and F₀ of the rows that are no constraints.
pub struct Start<'a> {
    pub parameters: &'a [f64],
    pub targets: &'a [f64],
    pub x: &'a [f64],
}

impl Program {
    /// A step from `x`, which becomes x₁.
    fn step(
        &self,
        (t, h): (f64, f64),
        x: &mut [f64],
        memory: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
        most: &mut [u32],
    ) -> Result<(), NoStep> {
        let n = self.dimension;
        let mut made = 0.0f64;
        for &gamma in &self.substeps {
            let (t, h) = (made.mul_add(h, t), gamma * h);
            self.find_handed((t, h), x, memory, cost, work)?;
            let (registers, work) = work.split_at_mut(self.registers);
            let (carried, scale) = memory.split_at_mut(self.carried.len());
            registers[..n].copy_from_slice(x);
            registers[n] = t;
            registers[n + 1] = h;
            registers[n + 2..n + 2 + carried.len()].copy_from_slice(carried);
            self.substep(registers, scale, cost, work, most)?;
            x.copy_from_slice(&registers[self.result.clone()]);
            for (carried, &place) in carried.iter_mut().zip(&self.carried) {
                *carried = registers[place];
            }
            made += gamma;
        }
        Ok(())
    }

    /// Finds what a substep takes over, where none of its length came before.
    fn find_handed(
        &self,
        t_and_h: (f64, f64),
        x: &[f64],
        memory: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<(), NoStep> {
        let Some(handover) = &self.handover else { return Ok(()) };
        handover.find(t_and_h, x, memory, cost, work)
    }

    /// The energy that steps of the length h watch, at (t, x); none if they watch none.
    pub fn watched_energy(&self, (t, h): (f64, f64), x: &[f64]) -> Option<f64> {
        self.handover.as_ref()?.energy((t, self.substeps[0] * h), x)
    }

    /// The smallest eigenvalue that the watched matrices have had in a run which now carries `memory`, or [`NOTABLE`] where
    /// none was smaller; none if none is watched.
    pub fn smallest_eigenvalue(&self, memory: &[f64]) -> Option<f64> {
        let scale = memory.get(self.carried.len()..)?;
        let watches = self.solves.iter().filter_map(|solve| solve.watch.as_ref());
        let below = watches.filter(|watch| watch.least_eigenvalue().is_some()).map(|watch| scale[2 * watch.number]);
        below.map(|below| NOTABLE - below).min_by(f64::total_cmp)
    }

    /// Some steps from `start`, with the number of iterations that they take; none where a step fails.
    fn pilot(&self, plan: &Plan, h: f64, start: &Start) -> Option<(Piloted, Iterations)> {
        let (mut x, mut memory) = (start.x.to_vec(), vec![0.0; self.memory_len()]);
        let (mut work, mut cost) = (vec![0.0; self.work_len()], Cost::default());
        let mut iterations = Iterations { first: vec![0; self.solves.len()], later: vec![0; self.solves.len()] };
        for step in 0..PILOT_STEPS {
            let most = if step < FIRST_STEPS { &mut iterations.first } else { &mut iterations.later };
            self.step((plan.t0 + step as f64 * h, h), &mut x, &mut memory, &mut cost, &mut work, most).ok()?;
        }
        memory.truncate(self.carried.len());
        Some((Piloted { parameters: self.all_parameters(plan, h, start), x, memory, steps: PILOT_STEPS }, iterations))
    }

    /// The parameters of the model and of the method, F₀, h and t₀.
    pub fn all_parameters(&self, plan: &Plan, h: f64, start: &Start) -> Vec<f64> {
        [start.parameters, &self.settings, start.targets, &[h, plan.t0]].concat()
    }

    /// Lets runs of `plan` take their steps in loops, if the step is small enough: one run, or several of one ensemble, of
    /// which `starts` are examples, and whose first steps are made in loops, too.
    pub fn repeat(&mut self, trace: &Trace, field: &Field, plan: &Plan, starts: &[Start], ensemble: bool) {
        self.many = None;
        let Stepping::Fixed(fixed) = &plan.stepping else { return };
        // On curved fibres every iteration is looked at, which a loop cannot; nor does it do determinants of shifted matrices.
        let alone =
            |watch: &Watch| watch.is_curved() || watch.least_eigenvalue().is_some_and(|least| !least.is_exact());
        let alone = self.solves.iter().filter_map(|solve| solve.watch.as_ref()).any(alone);
        if plan.method.treatment != Treatment::Plain || self.tolerance > CLOSE || alone {
            return;
        }
        let pilot = |start: &Start| self.rebound(start.parameters).pilot(plan, fixed.h, start);
        let (mut pilots, mut iterations): (Vec<Piloted>, Vec<Iterations>) = starts.iter().filter_map(pilot).unzip();
        while self.many.is_none() && !pilots.is_empty() {
            let own = starts[0].parameters.len();
            self.many = self.many_of((trace, field), (&pilots, &iterations), own, ensemble);
            // Runs that a loop serves do not wait for those that it cannot serve.
            pilots.truncate(pilots.len() / 2);
            iterations.truncate(pilots.len());
        }
    }

    /// A loop that serves these runs of a model with so many parameters.
    fn many_of(
        &self,
        (trace, field): (&Trace, &Field),
        (pilots, iterations): (&[Piloted], &[Iterations]),
        own: usize,
        ensemble: bool,
    ) -> Option<Many> {
        let largest = |of: fn(&Iterations) -> &Vec<u32>| -> Vec<u32> {
            (0..self.solves.len()).map(|k| iterations.iter().map(|run| of(run)[k]).max().unwrap_or(0)).collect()
        };
        let (first, later) = (largest(|run| &run.first), largest(|run| &run.later));
        let doubtful = |(solve, &most): (&Solve, &u32)| solve.system.is_local() && most >= DOUBTFUL_ITERATIONS;
        if self.solves.iter().zip(&later).any(doubtful) {
            return None;
        }
        let safe = ensemble && !self.solves.iter().zip(&first).any(doubtful);
        Many::new(&Ingredients {
            trace,
            iterations: &later,
            first_iterations: safe.then_some(&first),
            substeps: &self.substeps,
            field,
            own_parameters: own + self.settings.len(),
            pilots,
            multipliers: &self.multipliers,
        })
    }

    /// The same program for a run of `plan` from `start`, with its loop.
    pub fn rebound_for(&self, plan: &Plan, start: &Start) -> Program {
        let many = self.many.as_ref().zip(plan.fixed_step()).map(|(many, h)| {
            let mut many = many.clone();
            many.rebind(0, &self.all_parameters(plan, h, start));
            many.begin(start.x);
            many
        });
        Program { many, ..self.rebound(start.parameters) }
    }

    /// The same program with other parameters of the model, to [take over](Program::take_over) the trajectories of lanes.
    pub fn copy(&self, parameters: &[f64]) -> Program {
        Program { many: self.many.clone(), ..self.rebound(parameters) }
    }

    /// The loop, if there is one.
    pub fn many(&self) -> Option<&Many> {
        self.many.as_ref()
    }

    /// Gives this one the parameters of a lane's trajectory, `all` as in [`Piloted::parameters`] and the first of them
    /// `own` ones of the model.
    pub fn take_over(&mut self, lanes: &Many, lane: usize, own: usize, all: &[f64]) {
        self.rebind(&all[..own + self.settings.len()]);
        if let Some(many) = &mut self.many {
            many.rebind(0, all);
            many.begin_as(lanes, lane);
        }
    }

    /// Gives the kernels of single steps other parameters: those of the model and of the method.
    fn rebind(&mut self, parameters: &[f64]) {
        self.segments.iter_mut().for_each(|segment| segment.kernel.rebind(parameters));
        self.solves.iter_mut().for_each(|solve| solve.kernel.rebind(parameters));
        if let Some(handover) = &mut self.handover {
            handover.program_mut().rebind(parameters);
        }
    }
}

impl Finds for Program {
    fn evaluate<'w>(
        &self,
        (t, h): (f64, f64),
        x: &[f64],
        cost: &mut Cost,
        work: &'w mut [f64],
    ) -> Result<&'w [f64], NoStep> {
        let (registers, work) = work.split_at_mut(self.registers);
        registers[..x.len()].copy_from_slice(x);
        registers[x.len()] = t;
        registers[x.len() + 1] = h;
        self.substep(registers, &mut vec![0.0; 2 * self.watched()], cost, work, &mut [])?;
        Ok(&registers[self.result.clone()])
    }
}

impl StepMap for Program {
    fn tableau(&self) -> Option<&'static Tableau> {
        None
    }

    fn work_len(&self) -> usize {
        let trial = 2 * self.watched();
        let others =
            [self.many.as_ref().map_or(0, Many::work_len), self.handover.as_ref().map_or(0, FirstSame::work_len)];
        others.into_iter().fold(self.registers + trial + self.beyond(), usize::max)
    }

    fn memory_len(&self) -> usize {
        self.carried.len() + 2 * self.watched() + usize::from(self.handover.is_some())
    }

    fn begin(
        &self,
        t_and_h: (f64, f64),
        x: &[f64],
        memory: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<(), NoStep> {
        let (t, h) = t_and_h;
        self.find_handed((t, self.substeps[0] * h), x, memory, cost, work)
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
        self.many.as_ref().map(|many| many as &dyn Blocks)
    }

    fn fixed_step(
        &self,
        t_and_h: (f64, f64),
        x: &Vec<f64>,
        _stages: &mut Stages<Vec<f64>>,
        memory: &mut [f64],
        x1: &mut Vec<f64>,
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<(), NoStep> {
        x1.copy_from_slice(x);
        self.step(t_and_h, x1, memory, cost, work, &mut [])
    }

    fn multiplier_count(&self) -> usize {
        self.multipliers.count()
    }

    fn multipliers(
        &self,
        t: f64,
        (before, after): (f64, f64),
        x: &[f64],
        memory: &[f64],
        lambda: &mut [f64],
        work: &mut [f64],
    ) {
        let n = self.dimension;
        let (registers, work) = work.split_at_mut(self.registers);
        let (scale, work) = work.split_at_mut(2 * self.watched());
        let after = self.multipliers.step((before, after));
        if after != 0.0 {
            // The first substep as it will be made: what it finds at its start acts here.
            let (carried, known) = memory.split_at(self.carried.len());
            scale.copy_from_slice(known);
            registers[..n].copy_from_slice(x);
            registers[n] = t;
            registers[n + 1] = self.substeps[0] * after;
            registers[n + 2..n + 2 + carried.len()].copy_from_slice(carried);
            if self.substep(registers, scale, &mut Cost::default(), work, &mut []).is_err() {
                lambda.fill(f64::NAN);
                return;
            }
        }
        self.multipliers.put((before, after), registers, memory, lambda);
    }
}

/// A trace on the way to its kernels: at which level each node is known, and where it stands.
struct Cut<'a> {
    graph: &'a Graph,
    parameters_only: Vec<bool>,
    /// After how many solves a node can be computed.
    level: Vec<usize>,
    /// What later kernels need of each level.
    needed: Vec<Vec<Node>>,
    /// Where nodes stand among the registers.
    place: FxHashMap<Node, usize>,
}

impl<'a> Cut<'a> {
    fn new(trace: &'a Trace) -> Cut<'a> {
        let graph = &trace.graph;
        let mut solved: FxHashMap<Node, usize> = FxHashMap::default();
        for (k, system) in trace.systems.iter().enumerate() {
            solved.extend(system.unknowns.iter().map(|&unknown| (unknown, k + 1)));
        }
        let (mut level, mut parameters_only) = (Vec::with_capacity(graph.len()), Vec::with_capacity(graph.len()));
        for k in 0..graph.len() {
            let node = Node(k as u32);
            let expression = graph.expression(node);
            let of = |node: Node| level[node.0 as usize];
            level.push(match solved.get(&node) {
                Some(&level) => level,
                None => expression.arguments().map(of).max().unwrap_or(0),
            });
            parameters_only.push(match expression {
                Expression::Constant(_) | Expression::Input(Input::Parameter(_)) => true,
                Expression::Input(_) => false,
                _ => expression.arguments().all(|argument| parameters_only[argument.0 as usize]),
            });
        }
        let mut place: FxHashMap<Node, usize> = FxHashMap::default();
        for k in 0..graph.len() {
            if let Expression::Input(Input::State(i)) = graph.expression(Node(k as u32))
                && (i as usize) < trace.dimension + 2
            {
                place.insert(Node(k as u32), i as usize);
            }
        }
        for (k, &(input, _)) in trace.carried.iter().enumerate() {
            place.insert(input, trace.dimension + 2 + k);
        }
        let mut cut = Cut { graph, parameters_only, level, needed: vec![Vec::new(); trace.systems.len() + 1], place };
        cut.find_needs(trace);
        cut
    }

    /// After how many solves a node can be computed.
    fn level_of(&self, node: Node) -> usize {
        self.level[node.0 as usize]
    }

    /// Finds, from the last level to the first, what the kernels of a level need of earlier ones.
    fn find_needs(&mut self, trace: &Trace) {
        let last = trace.systems.len();
        let mut needed: Vec<FxHashSet<Node>> = vec![FxHashSet::default(); last + 1];
        for level in (0..=last).rev() {
            let mut roots: Vec<Node> = needed[level].iter().copied().collect();
            match trace.systems.get(level) {
                Some(system) => roots.extend(system.sizes.iter().chain(&system.guesses)),
                None => {
                    let next = trace.carried.iter().map(|(_, next)| next);
                    roots.extend(trace.result.iter().chain(next).chain(&trace.multipliers.0));
                }
            }
            // The residuals of the system before depend on its unknowns.
            if level > 0 {
                let system = &trace.systems[level - 1];
                roots.extend(system.residuals.iter().chain(system.jacobian.iter().map(|(_, _, node)| node)));
            }
            let mut seen = FxHashSet::default();
            while let Some(node) = roots.pop() {
                if !seen.insert(node) || self.parameters_only[node.0 as usize] {
                    continue;
                }
                let at = self.level_of(node);
                if at == level {
                    roots.extend(self.graph.expression(node).arguments());
                } else if self.graph.expression(node).arguments().next().is_some() {
                    needed[at].insert(node);
                }
            }
        }
        for (sorted, needed) in self.needed.iter_mut().zip(needed) {
            sorted.extend(needed);
            sorted.sort_unstable();
        }
    }

    /// What later kernels need of a level.
    fn stored(&self, level: usize) -> Vec<Node> {
        self.needed[level].clone()
    }

    /// Notes where nodes stand.
    fn place(&mut self, nodes: &[Node], first: usize) {
        for (k, &node) in nodes.iter().enumerate() {
            self.place.insert(node, first + k);
        }
    }

    /// The kernel of some nodes of this level at most, which reads the first `registers` registers.
    fn kernel(&self, outputs: &[Node], level: usize, registers: usize, parameters: &[f64]) -> Bound {
        debug_assert!(outputs.iter().all(|&node| self.level_of(node) <= level));
        let mut g = Graph::new();
        // In a fixed order: the order of nodes decides which products are fused.
        let mut places: Vec<(usize, Node)> = self.place.iter().map(|(&node, &place)| (place, node)).collect();
        places.sort_unstable();
        let known = places.into_iter().filter(|&(place, _)| place < registers);
        let known = known.map(|(place, node)| (node, g.state(place))).collect();
        let roots = g.copy_from(self.graph, outputs, &known);
        let (g, roots) = fuse(&g, &roots);
        Bound::new(&Tape::of_fused(&g, &roots, registers, parameters.len()), parameters)
    }
}
