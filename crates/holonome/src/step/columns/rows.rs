//! Templated steps of large models, over columns: which columns are stored, in which order they are
//! computed, and sparse elimination of the equations.
//!
//! A column is stored if a function of the model is called with it, as the function may read it at
//! several members. Columns that are combined member by member are computed where they are used.

mod blocks;

use super::symbols::{ColumnSymbols, Reduced};
use crate::kernels::{Parametric, compile_parts};
use crate::policy::LONGEST_ELIMINATION;
use crate::step::draws::Draws;
use crate::step::fsal::Fsal;
use crate::step::multipliers::Multipliers;
use crate::step::program::{
    Action, LoweredEquations, LoweredProgram, Lowering, MonitoredProperty, Solve, Stage,
    SystemMonitor,
};
use crate::step::recorder::{Drawn, System, Trace};
use blocks::BlockData;
use holonome_integrate::newton::NewtonSystem;
use holonome_integrate::phase_space::{self, Equation};
use holonome_integrate::scheme::map::Blocks;
use holonome_linear::least_eigenvalue::LeastEigenvalue;
use holonome_linear::lu::Pivots;
use holonome_linear::unpivoted::Unpivoted;
use holonome_model::columns::{
    Alike, Column, Columns, Definition, Jacobian, Stored, accumulated, pieces,
};
use holonome_model::elaborate::model::{Model, Quantity, Variable};
use holonome_model::functional::Functional;
use holonome_model::graph::interpret::SEGMENT_LANES;
use holonome_model::rows::{Piece, RowKernel, RowProgram, StridedFamily};
use std::ops::Range;
use std::sync::Arc;

/// Templated lowering, over columns.
#[derive(Clone)]
pub struct Templated;

impl Lowering for Templated {
    type Kernel = RowKernel;
    type Equations = RowEquations;
    type Names = FamilyNames;
    type Repeated = BlockData;

    fn name(names: &FamilyNames, equation: Equation, member: usize) -> String {
        names.name(equation, member)
    }

    fn blocks(program: &LoweredProgram<Templated>) -> Option<(&dyn Blocks, usize)> {
        program.repeated.as_ref().map(|block| (program as &dyn Blocks, block.work_len(program)))
    }
}

/// Data needed to name an equation.
#[derive(Clone)]
pub struct FamilyNames {
    constraints: Vec<(Quantity, usize)>,
    variables: Vec<Variable>,
    state: Vec<StridedFamily>,
}

/// Approximate number of rows that a kernel runs side by side. An elimination goes through lists,
/// number by number.
const SIDE_BY_SIDE: usize = 8;

/// Number of solutions among which the smallest eigenvalue of a large matrix is looked for once:
/// that takes as long as a solution.
const LOOKS: u32 = 32;

/// Equations of many members, with a sparse matrix.
#[derive(Clone)]
pub struct RowEquations {
    /// Scales of linear equations, which only a message needs; those of other equations are
    /// computed before.
    sizes: Option<Stage<RowKernel>>,
    /// Everything that the residuals are computed from, the residuals, and the matrix.
    evaluated: Stage<RowKernel>,
    /// The same numbers without the matrix, for sweeps.
    swept: Option<Stage<RowKernel>>,
    /// Registers of the residuals, which the values of the matrix follow.
    residuals: Range<usize>,
    elimination: Elimination,
    /// Places of the entries among the values of the matrix, if their smallest eigenvalue is
    /// monitored.
    entries: Arc<[u32]>,
}

/// Elimination of the matrix.
#[derive(Clone)]
enum Elimination {
    Sparse(Unpivoted),
    /// Formulas among the evaluated ones, for a matrix that falls into many small ones of one
    /// pattern: registers of the solution, which the inverses of the pivots follow.
    Evaluated(Range<usize>),
}

impl NewtonSystem for RowEquations {
    fn measure(&self, registers: &mut [f64], work: &mut [f64]) {
        if let Some(sizes) = &self.sizes {
            sizes.run(registers, work);
        }
    }

    fn residuals(&self, registers: &mut [f64], work: &mut [f64]) {
        self.swept.as_ref().unwrap_or(&self.evaluated).run(registers, work);
    }

    fn evaluate(&self, registers: &mut [f64], work: &mut [f64]) {
        self.evaluated.run(registers, work);
    }

    fn split<'a>(
        &self,
        registers: &'a mut [f64],
        _: &'a mut [f64],
    ) -> (&'a mut [f64], &'a mut [f64]) {
        let (before, residuals) = registers.split_at_mut(self.residuals.start);
        (before, &mut residuals[..self.residuals.len()])
    }

    fn eliminate(&self, registers: &mut [f64], work: &mut [f64]) -> Pivots {
        match &self.elimination {
            Elimination::Sparse(solver) => {
                let (residuals, values) =
                    registers[self.residuals.start..].split_at_mut(self.residuals.len());
                solver.solve(&mut values[..solver.values()], residuals, work)
            }
            Elimination::Evaluated(solution) => {
                registers.copy_within(solution.clone(), self.residuals.start);
                Pivots::of_inverses(&registers[solution.end..][..solution.len()])
            }
        }
    }

    fn weighs_rows(&self) -> bool {
        false
    }
}

impl RowEquations {
    fn kernels(&self) -> impl Iterator<Item = &Stage<RowKernel>> {
        [Some(&self.evaluated), self.sizes.as_ref(), self.swept.as_ref()].into_iter().flatten()
    }
}

impl Parametric for RowEquations {
    fn rebind(&mut self, parameters: &[f64]) {
        self.sizes.rebind(parameters);
        self.evaluated.rebind(parameters);
        self.swept.rebind(parameters);
    }
}

impl LoweredEquations for RowEquations {
    fn work_len(&self) -> usize {
        let of_solver = match &self.elimination {
            Elimination::Sparse(solver) => solver.work_len(),
            Elimination::Evaluated(_) => 0,
        };
        let of_kernels = self.kernels().map(|stage| stage.kernel.work_len());
        of_kernels.fold(of_solver.max(self.entries.len()), usize::max)
    }

    fn operations(&self) -> (usize, usize) {
        let [sweep, iteration] = [self.swept.as_ref().unwrap_or(&self.evaluated), &self.evaluated]
            .map(|stage| stage.kernel.operations());
        match &self.elimination {
            Elimination::Sparse(solver) => (sweep, iteration + SIDE_BY_SIDE * solver.operations()),
            Elimination::Evaluated(_) => (sweep, iteration),
        }
    }

    fn entries<'a>(
        &self,
        registers: &mut [f64],
        work: &'a mut [f64],
    ) -> (&'a [f64], &'a mut [f64]) {
        // The elimination overwrites them.
        self.evaluate(registers, work);
        let (entries, rest) = work.split_at_mut(self.entries.len());
        let values = &registers[self.residuals.end..];
        let each = self.entries.iter().zip(&mut *entries);
        each.for_each(|(&place, entry)| *entry = values[place as usize]);
        (entries, rest)
    }
}

/// Plan of the columns that are stored, of the order in which they are computed, and of their
/// registers.
struct Planner<'a> {
    columns: Columns,
    systems: &'a [System<ColumnSymbols>],
    /// Columns to be stored, after those that they are computed from, with the number of systems to
    /// be solved before.
    stored: Vec<(Column, usize)>,
    reduced: &'a [Reduced],
    parameters: &'a [f64],
    /// Number of registers in use, and the largest number so far.
    registers: usize,
    most_registers: usize,
    solvers: &'a mut Solvers,
}

/// Solvers of a program's systems, by pattern; the systems that find reused values (FSAL) have the
/// same patterns.
#[derive(Default)]
struct Solvers(Vec<(Vec<(u32, u32)>, Unpivoted)>);

impl Solvers {
    /// Solver for a matrix of size `n` with these (row, column) entries.
    fn of(&mut self, n: usize, entries: Vec<(u32, u32)>) -> Unpivoted {
        if let Some((_, known)) =
            self.0.iter().find(|(of, known)| known.size() == n && *of == entries)
        {
            return known.clone();
        }
        let solver = Unpivoted::new(n, &entries);
        self.0.push((entries, solver.clone()));
        solver
    }
}

impl Planner<'_> {
    /// Number of solves after which a column can be computed.
    fn level(&self, column: Column) -> usize {
        let depends =
            |system: &System<ColumnSymbols>| self.columns.depends(column, &system.unknowns);
        self.systems.iter().rposition(depends).map_or(0, |k| k + 1)
    }

    /// True if a function has to be called for a column that is not stored.
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

    /// Reduction that an input stands for.
    fn reduced(&self, input: Column) -> Option<&Reduced> {
        self.reduced.iter().find(|reduced| reduced.input == input)
    }

    fn is_planned(&self, column: Column) -> bool {
        self.stored.iter().any(|(planned, _)| *planned == column)
    }

    /// Plan to store the arguments of the calls that compute a column.
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

    /// Plan to store a column.
    fn keep(&mut self, column: Column) {
        self.need(column);
        if self.columns.stored(column).is_none() && !self.is_planned(column) {
            debug_assert!(self.reduced(column).is_none(), "planned where it is needed");
            self.stored.push((column, self.level(column)));
        }
    }

    /// First of `length` new registers.
    fn room(&mut self, length: usize) -> usize {
        self.registers += length;
        self.most_registers = self.most_registers.max(self.registers);
        self.registers - length
    }

    /// Give up the registers from `first` on, whose numbers nobody reads any more. Kernels read
    /// registers before their own only, so it is the last ones that can be used again.
    fn free_from(&mut self, first: usize) {
        self.registers = first;
    }

    fn place(&mut self, column: Column) -> usize {
        let length = self.columns.length(column);
        let first = self.room(length as usize);
        self.columns.store(column, Stored { first: first as u32, stride: u32::from(length > 1) });
        first
    }

    /// Stage that computes columns of these lengths, one after the other.
    fn stage(&mut self, outputs: &[(Column, usize)]) -> Stage<RowProgram> {
        let length = outputs.iter().map(|(_, length)| length).sum();
        let first = self.room(length);
        self.stage_at(first, outputs)
    }

    fn stage_at(&self, first: usize, outputs: &[(Column, usize)]) -> Stage<RowProgram> {
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
        Stage { kernel: RowProgram::new(first, behind, all), first, length: behind }
    }

    /// Compile stages that are computed one after the other.
    fn compile(&self, stages: impl IntoIterator<Item = Stage<RowProgram>>) -> Stage<RowKernel> {
        let stages: Vec<_> = stages.into_iter().collect();
        let first = stages.first().map_or(0, |stage| stage.first);
        let length = stages.last().map_or(0, |stage| stage.range().end - first);
        let programs = stages.into_iter().map(|stage| stage.kernel).collect();
        Stage { kernel: compile_parts(programs, self.parameters), first, length }
    }

    /// Add stages that compute the planned columns of `level` for which `wanted` holds.
    fn compute(
        &mut self,
        actions: &mut Actions,
        level: usize,
        wanted: impl Fn(&Planner, Column) -> bool,
    ) {
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
                actions.push(self, Action::Reduce { how, of, to });
                due.remove(0);
                continue;
            }
            // All columns of its length, or of its call, that can be computed now: those before
            // them in the plan are stored.
            let (length, rows) = (self.columns.length(first), self.rows_of(first));
            let mut group: Vec<Column> = Vec::new();
            for &column in &due {
                let ready = !due
                    .iter()
                    .any(|&other| other != column && self.columns.depends(column, &[other]));
                let alike = self.rows_of(column) == rows
                    && (rows.is_some() || self.columns.length(column) == length);
                if ready && alike && self.reduced(column).is_none() {
                    group.push(column);
                }
            }
            let stage = if rows.is_some() {
                self.accumulated_stage(&group)
            } else {
                let outputs: Vec<(Column, usize)> =
                    group.iter().map(|&column| (column, length as usize)).collect();
                let stage = self.stage(&outputs);
                for (k, &column) in group.iter().enumerate() {
                    let at = (stage.first + k * length as usize) as u32;
                    self.columns.store(column, Stored { first: at, stride: u32::from(length > 1) });
                }
                stage
            };
            due.retain(|column| !group.contains(column));
            actions.compute(stage);
        }
    }

    /// Call whose rows are added up to a column; `None` if the column is computed otherwise.
    fn rows_of(&self, column: Column) -> Option<u32> {
        match self.columns.definition(column) {
            Definition::Call { call, .. } if self.columns.is_accumulated(column) => Some(call),
            _ => None,
        }
    }

    /// Stage that adds up columns of one call over the rows of its templates, and stores them.
    fn accumulated_stage(&mut self, columns: &[Column]) -> Stage<RowProgram> {
        let length = columns.iter().map(|&column| self.columns.length(column) as usize).sum();
        // Room after the registers that are read, for the last vector of a loop.
        self.room(SEGMENT_LANES);
        let first = self.room(length);
        let (pieces, places) = accumulated(&self.columns, columns);
        for (&column, at) in columns.iter().zip(places) {
            self.columns.store(column, Stored { first: at.first + first as u32, ..at });
        }
        Stage { kernel: RowProgram::new(first, length, pieces), first, length }
    }

    fn lengths(&self, columns: &[Column], like: &[Column]) -> Vec<(Column, usize)> {
        columns
            .iter()
            .zip(like)
            .map(|(&column, &like)| (column, self.columns.length(like) as usize))
            .collect()
    }
}

/// List of actions in the making.
#[derive(Default)]
struct Actions {
    done: Vec<Action<Templated>>,
    /// Next stages, one after the other.
    stages: Vec<Stage<RowProgram>>,
}

impl Actions {
    fn compute(&mut self, stage: Stage<RowProgram>) {
        self.stages.push(stage);
    }

    fn push(&mut self, planner: &Planner, action: Action<Templated>) {
        self.finish(planner);
        self.done.push(action);
    }

    /// Make one action of the stages.
    fn finish(&mut self, planner: &Planner) {
        if !self.stages.is_empty() {
            self.done.push(Action::Compute(planner.compile(self.stages.drain(..))));
        }
    }
}

/// Most outputs that share one template.
const MOST_TOGETHER: usize = 8;

/// Program of a trace, made once for each of `substeps`. `own` are the method's own parameters; the
/// tolerance loosens that of the Newton iterations. If the step reuses values of the previous one
/// (FSAL), `find` finds these; its flag is true if they serve steps of any length.
pub fn lower(
    trace: Trace<ColumnSymbols>,
    find: Option<(Trace<ColumnSymbols>, bool)>,
    model: &Model,
    substeps: Vec<f64>,
    own: &[f64],
    tolerance: f64,
) -> LoweredProgram<Templated> {
    lower_with(&mut Solvers::default(), trace, find, model, substeps, (own, tolerance))
}

fn lower_with(
    solvers: &mut Solvers,
    trace: Trace<ColumnSymbols>,
    find: Option<(Trace<ColumnSymbols>, bool)>,
    model: &Model,
    substeps: Vec<f64>,
    (own, tolerance): (&[f64], f64),
) -> LoweredProgram<Templated> {
    let parameters = [&model.parameter_values, own].concat();
    let ColumnSymbols { mechanics, reduced, .. } = trace.symbols;
    let definite =
        |system: &System<ColumnSymbols>| system.monitored == phase_space::Monitored::Definite;
    let diagonal = trace.systems.iter().any(definite) && mechanics.has_diagonal_mass();
    let mut planner = Planner {
        columns: mechanics.columns,
        systems: &trace.systems,
        stored: Vec::new(),
        reduced: &reduced,
        parameters: &parameters,
        registers: 0,
        most_registers: 0,
        solvers,
    };
    for &column in trace.x.iter().chain([&trace.t, &trace.h]) {
        planner.place(column);
    }
    for &(input, _) in &trace.carried {
        planner.place(input);
    }
    // Unknowns are inputs without registers yet, and are not planned.
    for system in &trace.systems {
        for &column in system.sizes.iter().chain(&system.guesses).chain(&system.residuals) {
            planner.need(column);
        }
    }
    let next: Vec<Column> = trace.carried.iter().map(|&(_, next)| next).collect();
    for &column in
        trace.result.iter().map(|(column, _)| column).chain(&next).chain(&trace.multipliers.0)
    {
        planner.need(column);
    }
    let (mut actions, mut monitored) = (Actions::default(), 0);
    for (level, system) in trace.systems.iter().enumerate() {
        planner.compute(&mut actions, level, |_, _| true);
        let is_monitored = planner.solve(&mut actions, level, system, (monitored, diagonal));
        monitored += usize::from(is_monitored);
    }
    planner.compute(&mut actions, trace.systems.len(), |_, _| true);
    let wanted: Vec<_> =
        trace.result.iter().map(|&(column, length)| (column, length as usize)).collect();
    let stage = planner.stage(&wanted);
    let result = stage.range();
    actions.compute(stage);
    let mut carried = Vec::new();
    for &(input, next) in &trace.carried {
        let length = planner.columns.length(input) as usize;
        carried.push(planner.kept(&mut actions, next, length));
    }
    let (start, end) = &trace.multipliers;
    let mut registers = Vec::new();
    for &column in start {
        let length = planner.columns.length(column) as usize;
        registers.push(planner.kept(&mut actions, column, length));
    }
    actions.finish(&planner);
    let number = |entry: usize| carried[..entry].iter().map(Range::len).sum::<usize>();
    let places: Vec<_> = end.iter().map(|&k| number(k)..number(k) + carried[k].len()).collect();
    let monitored_energy = trace.monitored.map(|(energy, start)| (number(energy), number(start)));
    let sums = number(trace.sums.start)..number(trace.sums.end);
    let drawn = trace.drawn.map(|Drawn { number: of_step, uniform }| Drawn {
        number: number(of_step),
        uniform: uniform.into_iter().map(|(pair, family)| (pair.map(number), family)).collect(),
    });
    let names = FamilyNames::new(model, &mechanics.state);
    LoweredProgram {
        dimension: mechanics.dimension,
        layout: Some(Arc::clone(&mechanics.layout)),
        registers: planner.most_registers,
        actions: actions.done,
        result,
        multipliers: Multipliers::new(names.scalars(&registers), names.scalars(&places), model),
        carried,
        calls: trace.calls,
        substeps,
        tolerance,
        names,
        own: own.to_vec(),
        fsal: find.map(|(find, any_length)| {
            let find = lower_with(solvers, find, None, model, vec![1.0], (own, tolerance));
            Fsal::new(find, any_length, monitored_energy)
        }),
        sums,
        encounter: None,
        draws: Draws::new(drawn, model).map(|draws| (draws.clone(), draws.noise(&parameters))),
        may_sweep: true,
        repeated: None,
    }
}

/// Monitored property of a system with these entries of its matrix, of a model whose mass matrix is
/// `diagonal` or not. Fibres of large models are straight.
fn monitored_property(
    system: &System<ColumnSymbols>,
    (size, entries): (usize, &[(u32, u32)]),
    diagonal: bool,
) -> Option<MonitoredProperty> {
    match system.monitored {
        phase_space::Monitored::Always => {
            Some(MonitoredProperty::Determinant { power: 1, curved: false })
        }
        phase_space::Monitored::Definite => {
            let least = LeastEigenvalue::new(size, entries, diagonal).by_discs_first();
            Some(MonitoredProperty::LeastEigenvalue(Box::new(least), LOOKS))
        }
        phase_space::Monitored::Never | phase_space::Monitored::OnCurves => None,
    }
}

impl Planner<'_> {
    /// Registers of a column; an action computes it now if it is not stored.
    fn kept(&mut self, actions: &mut Actions, column: Column, length: usize) -> Range<usize> {
        if self.columns.stored(column).is_none() {
            let stage = self.stage(&[(column, length)]);
            let at = Stored { first: stage.first as u32, stride: u32::from(length > 1) };
            self.columns.store(column, at);
            actions.compute(stage);
        }
        let first = self.columns.stored(column).expect("stored above").first as usize;
        first..first + length
    }

    /// Add the scales and the guesses of a system, and its solution; true if it is monitored, as
    /// system `number` of those.
    fn solve(
        &mut self,
        actions: &mut Actions,
        level: usize,
        system: &System<ColumnSymbols>,
        (number, diagonal): (usize, bool),
    ) -> bool {
        let guesses = self.lengths(&system.guesses, &system.unknowns);
        let guess = self.stage(&guesses);
        let m = guess.length;
        let unknowns = guess.range();
        let mut first = unknowns.start;
        let mut rows = Vec::new();
        for (k, &unknown) in system.unknowns.iter().enumerate() {
            let length = self.columns.length(unknown) as usize;
            rows.push((first - unknowns.start, system.rows[k]));
            self.columns
                .store(unknown, Stored { first: first as u32, stride: u32::from(length > 1) });
            first += length;
        }
        let needed = |planner: &Planner, column: Column| {
            system.residuals.iter().any(|&residual| planner.columns.depends(residual, &[column]))
        };
        let mut before = Actions::default();
        self.compute(&mut before, level + 1, needed);
        debug_assert!(before.done.is_empty(), "no number stands for many within a system");
        // The registers from here on are those of the iteration alone.
        let lengths = self.lengths(&system.sizes, &system.unknowns);
        let sizes = self.stage(&lengths);
        let residuals = self.lengths(&system.residuals, &system.unknowns);
        let residual_stage = self.stage(&residuals);
        let jacobians: Vec<Jacobian> = residuals
            .iter()
            .zip(&system.residuals)
            .map(|(&(_, length), residual)| {
                Jacobian::new(
                    &self.columns,
                    std::slice::from_ref(residual),
                    &system.unknowns,
                    length as u32,
                )
            })
            .collect();
        let at = |k: usize, member: u32, unknown: u32| {
            (rows[k].0 as u32 + member, unknown - unknowns.start as u32)
        };
        let entries: Vec<(u32, u32)> = jacobians
            .iter()
            .enumerate()
            .flat_map(|(k, jacobian)| {
                jacobian.entries().map(move |(_, member, unknown)| at(k, member, unknown))
            })
            .collect();
        let property = monitored_property(system, (m, &entries), diagonal);
        let monitor = property.map(|property| SystemMonitor { number, property });
        let is_monitored = monitor.is_some();
        let least = monitor.as_ref().and_then(SystemMonitor::least_eigenvalue);
        let monitored = least.map_or(Arc::default(), |least| least.places().into());
        let solver = self.solvers.of(m, entries);
        let pieces = jacobians.iter().enumerate().flat_map(|(k, jacobian)| {
            jacobian.pieces(&|_, member, unknown| {
                let (row, column) = at(k, member, unknown);
                solver.place(row, column)
            })
        });
        let all = pieces.collect();
        let first = self.room(solver.values());
        debug_assert_eq!(
            first,
            residual_stage.range().end,
            "the matrix stands behind the residuals"
        );
        let program = RowProgram::new(first, solver.values(), all);
        let program = if solver.fills() { program } else { program.leaving_gaps() };
        let jacobian = Stage { kernel: program, first, length: solver.values() };
        let eliminated = self.eliminated(&solver, (residual_stage.first, first));
        let task = system.task(unknowns, [sizes.range(), sizes.range()]);
        let sizes_first = sizes.first;
        let residuals = residual_stage.range();
        let before = before.stages;
        let with =
            |others: Vec<Stage<RowProgram>>| self.compile(before.iter().cloned().chain(others));
        let elimination = match &eliminated {
            Some(stage) => Elimination::Evaluated(stage.first..stage.first + m),
            None => Elimination::Sparse(solver),
        };
        let mut equations = RowEquations {
            sizes: None,
            swept: task.local.then(|| with(vec![residual_stage.clone()])),
            evaluated: with([residual_stage, jacobian].into_iter().chain(eliminated).collect()),
            residuals,
            elimination,
            entries: monitored,
        };
        // In the order of their registers.
        actions.compute(guess);
        if task.linear {
            equations.sizes = Some(self.compile([sizes]));
        } else {
            actions.compute(sizes);
        }
        actions.push(
            self,
            Action::Solve(Box::new(Solve { equations, task, rows, monitor, calls: system.calls })),
        );
        self.free_from(sizes_first);
        // Computed once more at the solution, for kernels that read it later on.
        actions.stages.extend(before);
        is_monitored
    }
}

impl Planner<'_> {
    /// Stage that eliminates a matrix; `None` unless this falls into small ones that are alike. The
    /// residuals and the values of the matrix begin at these places.
    fn eliminated(
        &mut self,
        solver: &Unpivoted,
        (residuals, values): (usize, usize),
    ) -> Option<Stage<RowProgram>> {
        let (count, of_one) = solver.alike()?;
        let n = solver.size() / count;
        let one = Unpivoted::new(n, of_one);
        if one.operations() > LONGEST_ELIMINATION {
            return None;
        }
        let first = |row: u32| row * count as u32;
        let place =
            |&(i, j): &(u32, u32)| ((i, j), values as u32 + solver.place(first(i), first(j)));
        let alike = Alike {
            count,
            entries: &of_one.iter().map(place).collect::<Vec<_>>(),
            right: &(0..n as u32).map(|row| residuals as u32 + first(row)).collect::<Vec<_>>(),
            order: &one.order(),
        };
        let pieces = alike.elimination().into_iter().collect();
        let (length, at) = (2 * solver.size(), self.room(2 * solver.size()));
        Some(Stage { kernel: RowProgram::new(at, length, pieces), first: at, length })
    }
}

impl FamilyNames {
    fn new(model: &Model, state: &[StridedFamily]) -> FamilyNames {
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
        let constraints = model
            .constraints
            .iter()
            .map(|quantity| (bare(quantity), quantity.components.len()))
            .collect();
        FamilyNames { constraints, variables: model.variables.clone(), state: state.to_vec() }
    }

    /// Constraint of a family of equations.
    fn constraint(&self, mut family: usize) -> &Quantity {
        for (quantity, width) in &self.constraints {
            match family.checked_sub(*width) {
                Some(rest) => family = rest,
                None => return quantity,
            }
        }
        unreachable!("there are as many families of equations as of constraints")
    }

    /// Meaning of this member's equation.
    fn name(&self, equation: Equation, member: usize) -> String {
        match equation {
            Equation::Constraint(k) => self.constraint(k).member_name(member),
            Equation::Hidden(k) => format!("{}.hidden", self.constraint(k).member_name(member)),
            Equation::AngularMomentum(_) => {
                unreachable!("methods of rigid bodies are refused for large models")
            }
            Equation::Kepler(_) => unreachable!("splittings are refused for large models"),
            Equation::Stage(k) => {
                let family = self.state[k];
                let place = family.first as usize + member * family.stride as usize;
                let variable = self
                    .variables
                    .iter()
                    .rfind(|v| v.first <= place)
                    .expect("the first starts at 0");
                variable.family.component_name(place - variable.first)
            }
        }
    }

    /// Registers of the scalar constraints in the model's order: member after member, and the
    /// components of each. `columns` are the registers of each family of scalar constraints.
    fn scalars(&self, columns: &[Range<usize>]) -> Vec<u32> {
        let mut rest = columns;
        let mut all = Vec::new();
        for (quantity, width) in self.constraints.iter().filter(|_| !columns.is_empty()) {
            let (these, others) = rest.split_at(*width);
            for member in 0..quantity.members {
                all.extend(these.iter().map(|column| (column.start + member) as u32));
            }
            rest = others;
        }
        all
    }
}
