//! A step over columns as stages that are computed one after the other, with Newton iterations between them.
//!
//! Everything that a step computes stands in one row of numbers, the registers: x by components, t, h, what is carried
//! from step to step, and then, stage after stage, what later ones read. A column is stored where a function of the model
//! is called with it, as the function may read it at several members; what is combined member by member on the way is
//! computed where it is used.

use super::tracing::{ColumnSystem, ColumnTrace, Reduced, Reduction};
use crate::compiled::compile_rows;
use crate::component_names::component_name;
use crate::structured::first_same::{Finds, FirstSame};
use crate::structured::multipliers::Multipliers;
use crate::structured::program::LOST;
use crate::structured::tracing::Calls;
use holonome_integrate::newton::path::{Contraction, follow};
use holonome_integrate::newton::{CLOSE, MOST_ITERATIONS, fill_sizes, is_rounding, worst};
use holonome_integrate::phase_space::{Equation, Watched};
use holonome_integrate::scheme::explicit_rk::Stages;
use holonome_integrate::scheme::map::{NoStep, StepMap};
use holonome_integrate::state::Cost;
use holonome_integrate::tableau::Tableau;
use holonome_linear::unpivoted::Unpivoted;
use holonome_model::columns::{Column, Columns, Definition, Jacobian, Stored, accumulated, pieces};
use holonome_model::elaborate::model::{Model, Quantity, Variable};
use holonome_model::functional::Functional;
use holonome_model::graph::interpret::SEGMENT_LANES;
use holonome_model::rows::{Family, Layout, Piece, RowKernel, RowProgram};
use std::ops::Range;
use std::sync::Arc;

/// A step of a large model that can be run.
pub struct ColumnProgram {
    dimension: usize,
    registers: usize,
    /// x stands at the start of the registers, by columns.
    layout: Arc<Layout>,
    actions: Vec<Action>,
    /// Where the components of x₁, or what else is wanted, stand one behind the other.
    result: Range<usize>,
    /// What is carried stands behind x, t and h; where its next values start, and how many there are.
    carried: Vec<Range<usize>>,
    multipliers: Multipliers,
    calls: Calls,
    substeps: Vec<f64>,
    tolerance: f64,
    names: Names,
    /// The method's own parameters, which follow the model's.
    own: Vec<f64>,
    handover: Option<FirstSame<ColumnProgram>>,
    /// Where, among what is carried, a watched energy stands and where its value at the start of the run does.
    watched_energy: Option<(usize, usize)>,
}

/// What is needed to name an equation.
#[derive(Clone)]
struct Names {
    constraints: Vec<(Quantity, usize)>,
    variables: Vec<Variable>,
    state: Vec<Family>,
}

enum Action {
    Compute(Stage),
    /// One number for all of some registers.
    Reduce {
        how: Reduction,
        of: Vec<Range<usize>>,
        to: usize,
    },
    Solve(Box<Solve>),
}

/// Some columns of one length that do not read each other.
struct Stage {
    kernel: RowKernel,
    /// Where they go; all that is read stands before.
    first: usize,
    length: usize,
}

struct Solve {
    unknowns: Range<usize>,
    /// What cancels in the residuals; of a linear system, which needs no measure of them, only for a message.
    sizes: Stage,
    /// What the residuals are computed from, and they.
    stages: Vec<Stage>,
    residuals: Stage,
    jacobian: RowKernel,
    solver: Unpivoted,
    linear: bool,
    /// The families of equations with the number of the first of each.
    rows: Vec<(usize, Equation)>,
    /// Of a watched system its number among them.
    watch: Option<usize>,
    /// Whether its matrix is to be definite.
    definite: bool,
    calls: Calls,
}

impl Stage {
    fn range(&self) -> Range<usize> {
        self.first..self.first + self.length
    }

    fn run(&self, registers: &mut [f64], work: &mut [f64]) {
        let (read, written) = registers.split_at_mut(self.first);
        self.kernel.run(0.0, read, &mut written[..self.length], work);
    }
}

/// Decides what is stored, in which order it is computed, and where it stands.
struct Planner<'a> {
    columns: Columns,
    systems: &'a [ColumnSystem],
    /// Columns to be stored, after what they are computed from, with the number of systems that have to be solved before.
    stored: Vec<(Column, usize)>,
    reduced: &'a [Reduced],
    parameters: &'a [f64],
    registers: usize,
}

impl Planner<'_> {
    /// After how many solves a column can be computed.
    fn level(&self, column: Column) -> usize {
        let depends = |system: &ColumnSystem| self.columns.depends(column, &system.unknowns);
        self.systems.iter().rposition(depends).map_or(0, |k| k + 1)
    }

    /// Whether a function has to be called for a column that is not stored.
    fn calls(&self, column: Column) -> bool {
        if self.columns.stored(column).is_some() || self.is_planned(column) {
            return false;
        }
        match self.columns.definition(column) {
            Definition::Input(_) => self.reduced(column).is_some(),
            Definition::Call { .. } => true,
            _ => self.columns.arguments(column).iter().any(|&a| self.calls(a)),
        }
    }

    /// What an input is one number for.
    fn reduced(&self, input: Column) -> Option<&Reduced> {
        self.reduced.iter().find(|reduced| reduced.input == input)
    }

    fn is_planned(&self, column: Column) -> bool {
        self.stored.iter().any(|(planned, _)| *planned == column)
    }

    /// Plans to store what is called with to compute a column.
    fn need(&mut self, column: Column) {
        if self.columns.stored(column).is_some() || self.is_planned(column) {
            return;
        }
        if let Some(Reduced { over, .. }) = self.reduced(column).cloned() {
            for &column in &over {
                self.keep(column);
            }
            let level = over.iter().map(|&column| self.level(column)).max().unwrap_or(0);
            self.stored.push((column, level));
            return;
        }
        if self.columns.is_accumulated(column) {
            for argument in self.columns.arguments(column).to_vec() {
                let is_placed = matches!(self.columns.definition(argument), Definition::Input(_));
                if !is_placed || self.reduced(argument).is_some() {
                    self.keep(argument);
                }
            }
            self.stored.push((column, self.level(column)));
            return;
        }
        let is_call = matches!(self.columns.definition(column), Definition::Call { .. });
        for argument in self.columns.arguments(column).to_vec() {
            if is_call && self.calls(argument) { self.keep(argument) } else { self.need(argument) }
        }
    }

    /// Plans to store a column.
    fn keep(&mut self, column: Column) {
        self.need(column);
        if self.columns.stored(column).is_none() && !self.is_planned(column) {
            debug_assert!(self.reduced(column).is_none(), "planned where it is needed");
            self.stored.push((column, self.level(column)));
        }
    }

    /// Registers for so many numbers.
    fn room(&mut self, length: usize) -> usize {
        self.registers += length;
        self.registers - length
    }

    fn place(&mut self, column: Column) -> usize {
        let length = self.columns.length(column);
        let first = self.room(length as usize);
        self.columns.store(column, Stored { first: first as u32, stride: u32::from(length > 1) });
        first
    }

    /// A stage that computes columns of these lengths one behind the other.
    fn stage(&mut self, outputs: &[(Column, usize)]) -> Stage {
        let length = outputs.iter().map(|(_, length)| length).sum();
        let first = self.room(length);
        self.stage_at(first, outputs)
    }

    fn stage_at(&self, first: usize, outputs: &[(Column, usize)]) -> Stage {
        let (mut all, mut behind): (Vec<Piece>, usize) = (Vec::new(), 0);
        let mut rest = outputs;
        // Columns of one length share their formulas.
        while let Some(&(_, length)) = rest.first() {
            let together = rest.iter().take_while(|(_, l)| *l == length).count().min(MOST_TOGETHER);
            let (these, others) = rest.split_at(together);
            let columns: Vec<Column> = these.iter().map(|&(column, _)| column).collect();
            let place = |k: usize, member: u32| (behind + k * length) as u32 + member;
            all.extend(pieces(&self.columns, &columns, length as u32, &place));
            behind += together * length;
            rest = others;
        }
        let program = RowProgram::new(first, behind, all);
        Stage { kernel: compile_rows(&program, self.parameters), first, length: behind }
    }

    /// Actions that compute the planned columns of `level` for which `wanted` holds.
    fn compute(&mut self, level: usize, wanted: impl Fn(&Planner, Column) -> bool) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut due: Vec<Column> =
            self.stored.iter().filter(|(_, at)| *at == level).map(|&(column, _)| column).collect();
        due.retain(|&column| self.columns.stored(column).is_none() && wanted(self, column));
        while let Some(&first) = due.first() {
            if let Some(Reduced { how, over, .. }) = self.reduced(first).cloned() {
                let of = over.iter().map(|&c| {
                    let at = self.columns.stored(c).expect("planned before");
                    at.first as usize..at.first as usize + self.columns.length(c) as usize
                });
                let of = of.collect();
                let to = self.place(first);
                actions.push(Action::Reduce { how, of, to });
                due.remove(0);
                continue;
            }
            // All of its length that can be computed now: what stands before it in the plan is stored.
            let length = self.columns.length(first);
            let rows = self.rows_of(first);
            let mut group: Vec<Column> = Vec::new();
            for &column in &due {
                let ready = !due.iter().any(|&other| other != column && self.columns.depends(column, &[other]));
                let alike = self.columns.length(column) == length && self.rows_of(column) == rows;
                if ready && alike && self.reduced(column).is_none() {
                    group.push(column);
                }
            }
            let stage = if rows.is_some() {
                self.accumulated_stage(&group, length)
            } else {
                let outputs: Vec<(Column, usize)> = group.iter().map(|&column| (column, length as usize)).collect();
                self.stage(&outputs)
            };
            for (k, &column) in group.iter().enumerate() {
                let at = (stage.first + k * length as usize) as u32;
                self.columns.store(column, Stored { first: at, stride: u32::from(length > 1) });
            }
            due.retain(|column| !group.contains(column));
            actions.push(Action::Compute(stage));
        }
        actions
    }

    /// The call whose rows are added up to a column, if it is made like that.
    fn rows_of(&self, column: Column) -> Option<u32> {
        match self.columns.definition(column) {
            Definition::Call { call, .. } if self.columns.is_accumulated(column) => Some(call),
            _ => None,
        }
    }

    /// A stage that adds up columns of one call and length over the rows of its templates.
    fn accumulated_stage(&mut self, columns: &[Column], length: u32) -> Stage {
        let all = columns.len() * length as usize;
        // Behind what is read there is room for the last vector of a loop.
        self.room(SEGMENT_LANES);
        let first = self.room(all);
        let place = |k: usize, member: u32| k as u32 * length + member;
        let program = RowProgram::new(first, all, accumulated(&self.columns, columns, &place));
        Stage { kernel: compile_rows(&program, self.parameters), first, length: all }
    }

    fn lengths(&self, columns: &[Column], like: &[Column]) -> Vec<(Column, usize)> {
        columns.iter().zip(like).map(|(&column, &like)| (column, self.columns.length(like) as usize)).collect()
    }
}

/// Outputs that share one template at most.
const MOST_TOGETHER: usize = 8;

impl ColumnProgram {
    /// The program of a trace, made once for each of `substeps`, of a method with parameters of its `own`; the tolerance
    /// loosens that of the Newton iterations.
    pub fn new(trace: ColumnTrace, model: &Model, substeps: Vec<f64>, own: &[f64], tolerance: f64) -> ColumnProgram {
        let parameters = [&model.parameter_values, own].concat();
        let state = trace.mechanics.state.clone();
        let (dimension, layout) = (trace.mechanics.dimension, Arc::clone(&trace.mechanics.layout));
        let mut planner = Planner {
            columns: trace.mechanics.columns,
            systems: &trace.systems,
            stored: Vec::new(),
            reduced: &trace.reduced,
            parameters: &parameters,
            registers: 0,
        };
        for &column in trace.x.iter().chain([&trace.t, &trace.h]) {
            planner.place(column);
        }
        for &(input, _) in &trace.carried {
            planner.place(input);
        }
        // Unknowns are no columns to be planned, wherever they will stand.
        for system in &trace.systems {
            for &column in system.sizes.iter().chain(&system.guesses).chain(&system.residuals) {
                planner.need(column);
            }
        }
        let next: Vec<Column> = trace.carried.iter().map(|&(_, next)| next).collect();
        for &column in trace.result.iter().map(|(column, _)| column).chain(&next).chain(&trace.multipliers.0) {
            planner.need(column);
        }
        let (mut actions, mut watched) = (Vec::new(), 0);
        for (level, system) in trace.systems.iter().enumerate() {
            actions.extend(planner.compute(level, |_, _| true));
            let watch = (system.watched == Watched::Always).then_some(watched);
            watched += usize::from(watch.is_some());
            actions.extend(Solve::actions(&mut planner, level, system, watch));
        }
        actions.extend(planner.compute(trace.systems.len(), |_, _| true));
        let wanted: Vec<_> = trace.result.iter().map(|&(column, length)| (column, length as usize)).collect();
        let stage = planner.stage(&wanted);
        let result = stage.first..stage.first + stage.length;
        actions.push(Action::Compute(stage));
        let kept = |planner: &mut Planner, actions: &mut Vec<Action>, column: Column, length: usize| {
            if planner.columns.stored(column).is_none() {
                let stage = planner.stage(&[(column, length)]);
                let at = Stored { first: stage.first as u32, stride: u32::from(length > 1) };
                planner.columns.store(column, at);
                actions.push(Action::Compute(stage));
            }
            let first = planner.columns.stored(column).expect("stored above").first as usize;
            first..first + length
        };
        let mut carried = Vec::new();
        for &(input, next) in &trace.carried {
            let length = planner.columns.length(input) as usize;
            carried.push(kept(&mut planner, &mut actions, next, length));
        }
        let (start, end) = &trace.multipliers;
        let mut registers = Vec::new();
        for &column in start {
            let length = planner.columns.length(column) as usize;
            registers.push(kept(&mut planner, &mut actions, column, length));
        }
        let mut places = Vec::new();
        for &k in end {
            let first: usize = carried[..k].iter().map(Range::len).sum();
            places.push(first..first + carried[k].len());
        }
        let number = |entry: usize| carried[..entry].iter().map(Range::len).sum::<usize>();
        let watched_energy = trace.watched.map(|(energy, start)| (number(energy), number(start)));
        let names = Names::new(model, &state);
        let multipliers = Multipliers::new(names.scalars(&registers), names.scalars(&places), model);
        ColumnProgram {
            dimension,
            registers: planner.registers,
            layout,
            actions,
            result,
            carried,
            multipliers,
            calls: trace.calls,
            substeps,
            tolerance,
            names,
            own: own.to_vec(),
            handover: None,
            watched_energy,
        }
    }

    /// The same with a program that finds what a step takes over from the one before where there is none: its result is the
    /// first of what is carried.
    pub fn taking_over(self, find: ColumnProgram) -> ColumnProgram {
        ColumnProgram { handover: Some(FirstSame::new(find, self.watched_energy)), ..self }
    }

    /// The energy that steps of the length h watch, at (t, x); none if they watch none.
    pub fn watched_energy(&self, t_and_h: (f64, f64), x: &[f64]) -> Option<f64> {
        self.handover.as_ref()?.energy(t_and_h, x)
    }

    /// Whether a step solves equations by Newton's iteration; linear ones take none.
    pub fn iterates(&self) -> bool {
        self.solves().any(|solve| !solve.linear)
    }

    fn solves(&self) -> impl Iterator<Item = &Solve> {
        self.actions.iter().filter_map(|action| match action {
            Action::Solve(solve) => Some(&**solve),
            _ => None,
        })
    }

    fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.actions.iter().flat_map(|action| match action {
            Action::Compute(stage) => vec![stage],
            Action::Reduce { .. } => Vec::new(),
            Action::Solve(solve) => solve.stages.iter().chain([&solve.residuals]).collect(),
        })
    }

    /// The same program with other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> ColumnProgram {
        let handover = self.handover.as_ref().map(|handover| handover.rebound(|find| find.rebound(parameters)));
        let parameters = &[parameters, &self.own].concat();
        let stage = |stage: &Stage| Stage { kernel: stage.kernel.rebound(parameters), ..*stage };
        let action = |action: &Action| match action {
            Action::Compute(s) => Action::Compute(stage(s)),
            Action::Reduce { how, of, to } => Action::Reduce { how: *how, of: of.clone(), to: *to },
            Action::Solve(solve) => Action::Solve(Box::new(Solve {
                unknowns: solve.unknowns.clone(),
                sizes: stage(&solve.sizes),
                stages: solve.stages.iter().map(stage).collect(),
                residuals: stage(&solve.residuals),
                jacobian: solve.jacobian.rebound(parameters),
                solver: solve.solver.clone(),
                rows: solve.rows.clone(),
                ..**solve
            })),
        };
        ColumnProgram {
            layout: Arc::clone(&self.layout),
            result: self.result.clone(),
            actions: self.actions.iter().map(action).collect(),
            carried: self.carried.clone(),
            multipliers: self.multipliers.clone(),
            substeps: self.substeps.clone(),
            names: self.names.clone(),
            own: self.own.clone(),
            handover,
            ..*self
        }
    }

    fn carried_len(&self) -> usize {
        self.carried.iter().map(Range::len).sum()
    }

    fn watched(&self) -> usize {
        self.solves().filter(|solve| solve.watch.is_some()).count()
    }

    /// Puts x, t, h and what is carried into the registers.
    fn load(&self, (t, h): (f64, f64), x: &[f64], carried: &[f64], registers: &mut [f64]) {
        let at = self.dimension;
        self.layout.split(x, &mut registers[..at]);
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

    /// Puts columns one behind the other into the place of as many components of x.
    pub fn scatter(&self, columns: &[f64], x: &mut [f64]) {
        self.layout.join(columns, x);
    }

    fn substep(
        &self,
        registers: &mut [f64],
        scale: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<(), NoStep> {
        self.calls.count(1, cost);
        let h = registers[self.dimension + 1];
        for (place, action) in self.actions.iter().enumerate() {
            match action {
                Action::Compute(stage) => stage.run(registers, work),
                Action::Reduce { how, of, to } => how.reduce(of, *to, registers),
                Action::Solve(solve) => {
                    let mut solved = solve.run(registers, h, self.tolerance, scale, cost, work);
                    if let Err(Lost::Unsolved { far: true, .. }) = solved {
                        solved = self.follow(place, solve, registers, scale, cost, work);
                    }
                    solved.map_err(|lost| match lost {
                        Lost::Unsolved { iterations, residual, row, .. } => {
                            NoStep::NotSolved { iterations, residual, equation: self.names.equation(&solve.rows, row) }
                        }
                        Lost::Degenerate(determinant) => NoStep::Degenerate { determinant },
                        Lost::Indefinite => NoStep::Indefinite { eigenvalue: 0.0 },
                    })?;
                }
            }
        }
        Ok(())
    }
}

impl ColumnProgram {
    /// The solution of the system at this place among the actions that belongs to this step, followed from shorter ones.
    fn follow(
        &self,
        place: usize,
        solve: &Solve,
        registers: &mut [f64],
        scale: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<(), Lost> {
        let (unknowns, at) = (solve.unknowns.clone(), self.dimension + 1);
        let h = registers[at];
        let followed = follow(unknowns.len(), |part, prediction| {
            registers[at] = part * h;
            for action in &self.actions[..place] {
                match action {
                    Action::Compute(stage) => stage.run(registers, work),
                    Action::Reduce { how, of, to } => how.reduce(of, *to, registers),
                    Action::Solve(solve) => solve.run(registers, part * h, self.tolerance, scale, cost, work)?,
                }
            }
            prediction.predict(&mut registers[unknowns.clone()]);
            solve.run(registers, part * h, self.tolerance, scale, cost, work)?;
            prediction.solved(&registers[unknowns.clone()]);
            Ok(())
        });
        registers[at] = h;
        followed
    }
}

impl Reduction {
    /// Reduces registers to one.
    fn reduce(self, of: &[Range<usize>], to: usize, registers: &mut [f64]) {
        let parts = of.iter().map(|range| &registers[range.clone()]);
        registers[to] = self.of(parts);
    }

    fn of<'a>(self, parts: impl Iterator<Item = &'a [f64]>) -> f64 {
        match self {
            // NaN stays.
            Reduction::Largest => parts.flatten().fold(0.0, |a: f64, b| if b.abs() <= a { a } else { b.abs() }),
            Reduction::Sum => parts.map(sum).sum(),
        }
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

enum Lost {
    Unsolved { iterations: u32, residual: f64, row: usize, far: bool },
    Degenerate(f64),
    Indefinite,
}

/// Whether every residual is within `enough` of what cancels in it.
fn are_close(residuals: &[f64], sizes: &[f64], enough: f64) -> bool {
    // Counted without a branch, as that runs in vectors.
    let close = |(residual, size): (&f64, &f64)| u32::from(residual.abs() <= enough * size);
    residuals.iter().zip(sizes).map(close).sum::<u32>() == residuals.len() as u32
}

impl Solve {
    /// The actions that make the guesses of a system, and solve it.
    fn actions(planner: &mut Planner, level: usize, system: &ColumnSystem, watch: Option<usize>) -> Vec<Action> {
        let lengths = planner.lengths(&system.sizes, &system.unknowns);
        let sizes = planner.stage(&lengths);
        let m = sizes.length;
        let guesses = planner.lengths(&system.guesses, &system.unknowns);
        let guess = planner.stage(&guesses);
        let unknowns = guess.first..guess.first + m;
        let mut first = unknowns.start;
        let mut rows = Vec::new();
        for (k, &unknown) in system.unknowns.iter().enumerate() {
            let length = planner.columns.length(unknown) as usize;
            rows.push((first - unknowns.start, system.rows[k]));
            planner.columns.store(unknown, Stored { first: first as u32, stride: u32::from(length > 1) });
            first += length;
        }
        let needed = |planner: &Planner, column: Column| {
            system.residuals.iter().any(|&residual| planner.columns.depends(residual, &[column]))
        };
        let stages = planner.compute(level + 1, needed).into_iter().filter_map(|action| match action {
            Action::Compute(stage) => Some(stage),
            _ => None,
        });
        let stages = stages.collect();
        let residuals = planner.lengths(&system.residuals, &system.unknowns);
        let residual_stage = planner.stage(&residuals);
        let jacobians: Vec<Jacobian> = residuals
            .iter()
            .zip(&system.residuals)
            .map(|(&(_, length), residual)| {
                Jacobian::new(&planner.columns, std::slice::from_ref(residual), &system.unknowns, length as u32)
            })
            .collect();
        let at = |k: usize, member: u32, unknown: u32| (rows[k].0 as u32 + member, unknown - unknowns.start as u32);
        let entries: Vec<(u32, u32)> = jacobians
            .iter()
            .enumerate()
            .flat_map(|(k, jacobian)| jacobian.entries().map(move |(_, member, unknown)| at(k, member, unknown)))
            .collect();
        let solver = Unpivoted::new(m, &entries);
        let pieces = jacobians.iter().enumerate().flat_map(|(k, jacobian)| {
            jacobian.pieces(&|_, member, unknown| {
                let (row, column) = at(k, member, unknown);
                solver.place(row, column)
            })
        });
        let all = pieces.collect();
        let program = RowProgram::new(planner.registers, solver.values(), all);
        let solve = Solve {
            unknowns,
            sizes,
            stages,
            residuals: residual_stage,
            jacobian: compile_rows(&program, planner.parameters),
            solver,
            linear: system.linear,
            rows,
            watch,
            definite: system.watched == Watched::Definite,
            calls: system.calls,
        };
        vec![Action::Compute(guess), Action::Solve(Box::new(solve))]
    }

    fn work_len(&self) -> usize {
        let stages = self.stages.iter().chain([&self.sizes, &self.residuals]);
        let kernels = stages.map(|stage| stage.kernel.work_len());
        let solver = self.solver.work_len();
        self.solver.values() + kernels.chain([self.jacobian.work_len(), solver]).max().unwrap_or(0)
    }

    /// How far off the unknowns are, for a message.
    fn lost(&self, iterations: u32, registers: &mut [f64], work: &mut [f64]) -> Lost {
        for stage in self.stages.iter().chain([&self.sizes, &self.residuals]) {
            stage.run(registers, work);
        }
        let residuals = &registers[self.residuals.first..][..self.unknowns.len()];
        let (residual, row) = worst(residuals, &registers[self.sizes.range()]);
        Lost::Unsolved { iterations, residual, row, far: false }
    }

    /// Newton's method: as `newton::System::solve`, over stages.
    fn run(
        &self,
        registers: &mut [f64],
        h: f64,
        tolerance: f64,
        scale: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<(), Lost> {
        let (values, work) = work.split_at_mut(self.solver.values());
        let enough = tolerance.max(CLOSE);
        let m = self.unknowns.len();
        if !self.linear {
            self.sizes.run(registers, work);
        }
        let is_local = !self.linear && self.rows.iter().all(|(_, equation)| equation.is_stage());
        let mut contraction = Contraction::new(is_local);
        for iterations in 1..=MOST_ITERATIONS {
            for stage in &self.stages {
                stage.run(registers, work);
            }
            self.residuals.run(registers, work);
            self.calls.count(1, cost);
            let (before, residuals) = registers.split_at_mut(self.residuals.first);
            let residuals = &mut residuals[..m];
            if iterations == 1 && !self.linear {
                fill_sizes(residuals, &mut before[self.sizes.range()]);
            }
            let mut close = self.linear || are_close(residuals, &before[self.sizes.range()], enough);
            if self.solver.fills() {
                values.fill(0.0);
            }
            self.jacobian.overwrite(0.0, before, values, work);
            let pivots = self.solver.solve(values, residuals, work);
            cost.newton_iterations += u64::from(!self.linear);
            cost.linear_solves += 1;
            close |= is_rounding(iterations, residuals, &before[self.unknowns.clone()]);
            let far = !close && contraction.is_lost(residuals, &before[self.sizes.range()]);
            let mut finite = true;
            for (unknown, step) in before[self.unknowns.clone()].iter_mut().zip(&*residuals) {
                *unknown -= step;
                finite &= step.is_finite();
            }
            if !finite || (!close && iterations == MOST_ITERATIONS) {
                return Err(self.lost(iterations, registers, work));
            }
            if far {
                return Err(match self.lost(iterations, registers, work) {
                    Lost::Unsolved { iterations, residual, row, .. } => {
                        Lost::Unsolved { iterations, residual, row, far }
                    }
                    other => other,
                });
            }
            if !close {
                continue;
            }
            for stage in &self.stages {
                stage.run(registers, work);
            }
            // For any mass matrix the determinant is the product of the eigenvalues.
            if self.definite && pivots.negative {
                return Err(Lost::Indefinite);
            }
            if let Some(number) = self.watch {
                let scale = &mut scale[2 * number..2 * number + 2];
                let backwards = h < 0.0 && !m.is_multiple_of(2);
                let sign = if pivots.negative ^ backwards { -1.0 } else { 1.0 };
                let size = pivots.smallest / h.abs();
                if scale[0] == 0.0 {
                    scale.copy_from_slice(&[sign, size]);
                }
                if sign != scale[0] || size.is_nan() || size <= LOST * scale[1] {
                    return Err(Lost::Degenerate(sign * size / scale[1]));
                }
            }
            return Ok(());
        }
        unreachable!("the loop returns in its last turn")
    }
}

impl Names {
    fn new(model: &Model, state: &[Family]) -> Names {
        // The names only, not the formulas.
        let bare = |quantity: &Quantity| Quantity {
            name: quantity.name.clone(),
            span: quantity.span,
            functional: Functional::default(),
            shape: quantity.shape,
            indices: quantity.indices.clone(),
            member_indices: quantity.member_indices.clone(),
            members: quantity.members,
            components: quantity.components.clone(),
            depends: quantity.depends,
        };
        let constraints =
            model.constraints.iter().map(|quantity| (bare(quantity), quantity.components.len())).collect();
        Names { constraints, variables: model.variables.clone(), state: state.to_vec() }
    }

    /// The constraint of a family of equations.
    fn constraint(&self, mut family: usize) -> &Quantity {
        for (quantity, width) in &self.constraints {
            match family.checked_sub(*width) {
                Some(rest) => family = rest,
                None => return quantity,
            }
        }
        unreachable!("there are as many families of equations as of constraints")
    }

    /// What equation number `row` of a system says.
    fn equation(&self, rows: &[(usize, Equation)], row: usize) -> String {
        let (first, equation) = rows[rows.partition_point(|&(first, _)| first <= row) - 1];
        let member = row - first;
        match equation {
            Equation::Constraint(k) => self.constraint(k).member_name(member),
            Equation::Hidden(k) => format!("{}.hidden", self.constraint(k).member_name(member)),
            Equation::AngularMomentum(_) => unreachable!("methods of rigid bodies are refused for large models"),
            Equation::Stage(k) => {
                let family = self.state[k];
                let place = family.first as usize + member * family.stride as usize;
                let variable = self.variables.iter().rfind(|v| v.first <= place).expect("the first starts at 0");
                component_name(variable, place - variable.first)
            }
        }
    }

    /// Columns of numbers, one for each family of scalar constraints, as one number for each scalar constraint, in the
    /// model's order: member after member, and the components of each.
    fn scalars(&self, columns: &[Range<usize>]) -> Vec<usize> {
        let mut rest = columns;
        let mut all = Vec::new();
        for (quantity, width) in self.constraints.iter().filter(|_| !columns.is_empty()) {
            let (these, others) = rest.split_at(*width);
            for member in 0..quantity.members {
                all.extend(these.iter().map(|column| column.start + member));
            }
            rest = others;
        }
        all
    }
}

impl Finds for ColumnProgram {
    fn evaluate<'w>(
        &self,
        t_and_h: (f64, f64),
        x: &[f64],
        cost: &mut Cost,
        work: &'w mut [f64],
    ) -> Result<&'w [f64], NoStep> {
        let (registers, work) = work.split_at_mut(self.registers);
        self.load(t_and_h, x, &[], registers);
        self.substep(registers, &mut [], cost, work)?;
        Ok(&registers[self.result.clone()])
    }
}

impl StepMap for ColumnProgram {
    fn tableau(&self) -> Option<&'static Tableau> {
        None
    }

    fn work_len(&self) -> usize {
        let kernels = self.stages().map(|stage| stage.kernel.work_len());
        let solves = self.solves().map(Solve::work_len);
        let own = self.registers + 2 * self.watched() + kernels.chain(solves).max().unwrap_or(0);
        own.max(self.handover.as_ref().map_or(0, FirstSame::work_len))
    }

    fn memory_len(&self) -> usize {
        // The last number is the length of the step that handed over.
        self.carried_len() + 2 * self.watched() + usize::from(self.handover.is_some())
    }

    fn begin(
        &self,
        t_and_h: (f64, f64),
        x: &[f64],
        memory: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<(), NoStep> {
        self.handover.as_ref().map_or(Ok(()), |handover| handover.find(t_and_h, x, memory, cost, work))
    }

    fn watched_count(&self) -> usize {
        usize::from(self.watched_energy.is_some() && self.handover.is_some())
    }

    fn deviations(&self, memory: &[f64], deviations: &mut [f64]) {
        if let Some(handover) = &self.handover {
            handover.deviations(memory, deviations);
        }
    }

    fn takes_first_stage(&self) -> bool {
        false
    }

    fn fixed_step(
        &self,
        (t, h): (f64, f64),
        x: &Vec<f64>,
        _stages: &mut Stages<Vec<f64>>,
        memory: &mut [f64],
        x1: &mut Vec<f64>,
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<(), NoStep> {
        self.begin((t, h), x, memory, cost, work)?;
        let (registers, work) = work.split_at_mut(self.registers);
        let (carried, scale) = memory.split_at_mut(self.carried_len());
        let mut made = 0.0f64;
        for (k, &gamma) in self.substeps.iter().enumerate() {
            let from = if k == 0 { x } else { &*x1 };
            self.load((made.mul_add(h, t), gamma * h), from, carried, registers);
            self.substep(registers, scale, cost, work)?;
            self.unload(registers, x1, carried);
            made += gamma;
        }
        Ok(())
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
        let (registers, work) = work.split_at_mut(self.registers);
        let (scale, work) = work.split_at_mut(2 * self.watched());
        let after = self.multipliers.step((before, after));
        if after != 0.0 {
            // The first substep as it will be made: what it finds at its start acts here.
            let (carried, known) = memory.split_at(self.carried_len());
            scale.copy_from_slice(known);
            self.load((t, self.substeps[0] * after), x, carried, registers);
            if self.substep(registers, scale, &mut Cost::default(), work).is_err() {
                lambda.fill(f64::NAN);
                return;
            }
        }
        self.multipliers.put((before, after), registers, memory, lambda);
    }
}
