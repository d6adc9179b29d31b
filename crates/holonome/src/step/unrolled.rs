//! Unrolled steps of small models: formulas as straight-line kernels, Newton matrices eliminated
//! with pivoting.

use super::draws::Draws;
use super::encounter::Encounter;
use super::fsal::Fsal;
use super::many::{LoopIngredients, Many, Piloted};
use super::multipliers::Multipliers;
use super::natural::diagonal_mass;
use super::nodes::Nodes;
use super::program::{
    Action, LoweredEquations, LoweredProgram, Lowering, MonitoredProperty, PILOT_STEPS, Pilot,
    Solve, Stage, Start, SystemMonitor, Taken,
};
use super::recorder::{self, System, Trace};
use super::symbols::Symbols;
use crate::kernels::{Bound, Parametric, Quantities};
use crate::policy::{FEWEST_SWEPT, LONGEST_LOOP};
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::newton::{CLOSE, NewtonSystem};
use holonome_integrate::phase_space::{Equation, Monitored};
use holonome_integrate::plan::Plan;
use holonome_integrate::scheme::map::Blocks;
use holonome_linear::least_eigenvalue::LeastEigenvalue;
use holonome_linear::lu::{Elimination, Pivots};
use holonome_model::elaborate::model::Model;
use holonome_model::graph::fuse::fuse;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::treatment::Field;
use holonome_model::treatment::mechanics::{Mechanics, Restriction};
use holonome_model::treatment::structure::ConstraintKind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Iterations from which on a system is not solved in a loop, because a loop does not check that
/// they contract. An iteration takes at least so many if its second update is larger than half of
/// the first and it squares its error from there on.
const DOUBTFUL_ITERATIONS: u32 = 5;

/// Unrolled lowering.
#[derive(Clone)]
pub struct Unrolled;

/// Recording of nodes.
pub type UnrolledTrace = Trace<Nodes>;

impl Lowering for Unrolled {
    type Kernel = Bound;
    type Equations = UnrolledEquations;
    type Names = EquationNames;
    type Repeated = Many;

    fn name(names: &EquationNames, equation: Equation, _: usize) -> String {
        match equation {
            Equation::Constraint(i) => names.constraints[i].clone(),
            Equation::Hidden(i) => names.hidden[i].clone(),
            Equation::Stage(i) => names.components[i].clone(),
            Equation::Kepler(i) => {
                let name = &names.components[i];
                format!("Kepler's equation for {name} (a step has to be shorter than a period)")
            }
            Equation::AngularMomentum(i) => format!("angular momentum, component {}", i + 1),
        }
    }

    fn blocks(program: &LoweredProgram<Unrolled>) -> Option<(&dyn Blocks, usize)> {
        program.repeated.as_ref().map(|many| (many as &dyn Blocks, many.work_len()))
    }
}

/// Data needed to name an equation.
#[derive(Clone)]
pub struct EquationNames {
    constraints: Vec<String>,
    hidden: Vec<String>,
    components: Vec<String>,
}

impl EquationNames {
    /// Name of a component of the state.
    pub fn component(&self, number: usize) -> &str {
        &self.components[number]
    }
}

/// Equations with residuals and Jacobian from one kernel.
#[derive(Clone)]
pub struct UnrolledEquations {
    kernel: Bound,
    /// Residuals alone, for equations that may be solved by fixed-point iteration.
    residuals: Option<Bound>,
    /// Operations of a sweep, and of an iteration of Newton's method.
    operations: (usize, usize),
    /// Registers of the unknowns. The kernels read all registers up to their end.
    unknowns: Range<usize>,
    sizes: Range<usize>,
    elimination: Elimination,
}

impl NewtonSystem for UnrolledEquations {
    fn residuals(&self, registers: &mut [f64], work: &mut [f64]) {
        let Some(kernel) = &self.residuals else { return self.evaluate(registers, work) };
        let (residuals, work) = work.split_at_mut(kernel.outputs());
        kernel.run(0.0, &registers[..self.unknowns.end], residuals, work);
    }

    fn evaluate(&self, registers: &mut [f64], work: &mut [f64]) {
        let (outputs, work) = work.split_at_mut(self.kernel.outputs());
        self.kernel.run(0.0, &registers[..self.unknowns.end], outputs, work);
    }

    fn split<'a>(
        &self,
        registers: &'a mut [f64],
        work: &'a mut [f64],
    ) -> (&'a mut [f64], &'a mut [f64]) {
        (registers, &mut work[..self.unknowns.len()])
    }

    fn eliminate(&self, registers: &mut [f64], work: &mut [f64]) -> Pivots {
        let (outputs, work) = work.split_at_mut(self.kernel.outputs());
        let (residuals, jacobian) = outputs.split_at_mut(self.unknowns.len());
        self.elimination.solve(jacobian, &registers[self.sizes.clone()], residuals, work)
    }

    fn weighs_rows(&self) -> bool {
        true
    }
}

impl Parametric for UnrolledEquations {
    fn rebind(&mut self, parameters: &[f64]) {
        self.kernel.rebind(parameters);
        self.residuals.rebind(parameters);
    }
}

impl LoweredEquations for UnrolledEquations {
    fn work_len(&self) -> usize {
        let residuals = self.residuals.as_ref().map_or(0, Bound::work_len);
        self.kernel.outputs()
            + self.kernel.work_len().max(self.elimination.work_len()).max(residuals)
    }

    fn operations(&self) -> (usize, usize) {
        self.operations
    }

    fn entries<'a>(&self, _: &mut [f64], work: &'a mut [f64]) -> (&'a [f64], &'a mut [f64]) {
        let (outputs, work) = work.split_at_mut(self.kernel.outputs());
        (&outputs[self.unknowns.len()..], work)
    }
}

impl System<Nodes> {
    /// Places of the entries of the Jacobian: row, unknown.
    pub fn entries(&self) -> Vec<(u32, u32)> {
        self.jacobian.iter().map(|&(i, j, _)| (i, j)).collect()
    }
}

/// Program of `trace`, made once for each of `substeps`. The tolerance loosens that of the Newton
/// iterations, and `own` are the parameters of the method. If the step reuses values of the
/// previous one (FSAL), `find` finds these.
pub fn lower(
    trace: &UnrolledTrace,
    find: Option<&UnrolledTrace>,
    (mechanics, model): (&Mechanics, &Model),
    substeps: Vec<f64>,
    own: &[f64],
    tolerance: f64,
) -> LoweredProgram<Unrolled> {
    let parameters = &[&model.parameter_values, own].concat();
    let mut cut = Cut::new(trace);
    let named =
        |list: &[Restriction]| list.iter().map(|restriction| restriction.name.clone()).collect();
    let names = EquationNames {
        constraints: named(&mechanics.constraints),
        hidden: named(&mechanics.hidden),
        components: model.component_names(),
    };
    let (mut actions, mut registers, mut monitored) =
        (Vec::new(), trace.x.len() + 2 + trace.carried.len(), 0);
    let compute = |cut: &Cut,
                   actions: &mut Vec<Action<Unrolled>>,
                   level: usize,
                   outputs: &[Node],
                   first: &mut usize| {
        let stage = Stage {
            kernel: cut.kernel(outputs, level, *first, parameters),
            first: *first,
            length: outputs.len(),
        };
        *first += stage.length;
        actions.push(Action::Compute(stage));
    };
    for (level, system) in trace.systems.iter().enumerate() {
        let (m, first) = (system.rows.len(), registers);
        // Values that later kernels need come first, then the scales, then the unknowns, which
        // start as the guesses.
        let stored = cut.stored(level);
        let own: &[Node] =
            if system.sweep_sizes == system.sizes { &[] } else { &system.sweep_sizes };
        let outputs = [&stored[..], &system.sizes, own, &system.guesses].concat();
        compute(&cut, &mut actions, level, &outputs, &mut registers);
        let sizes = first + stored.len()..first + stored.len() + m;
        cut.place(&stored, first);
        let sweep_sizes = sizes.start + own.len()..sizes.end + own.len();
        let unknowns = sweep_sizes.end..sweep_sizes.end + m;
        cut.place(&system.unknowns, unknowns.start);
        let monitor = monitored_property(system, mechanics)
            .map(|property| SystemMonitor { number: monitored, property });
        monitored += usize::from(monitor.is_some());
        actions.push(Action::Solve(Box::new(solve(
            &cut,
            system,
            monitor,
            unknowns,
            [sizes, sweep_sizes],
            parameters,
        ))));
    }
    let encounter = trace.encounter;
    let next = trace.next();
    let wanted: Vec<Node> = trace.result.iter().map(|&(node, _)| node).collect();
    let result = registers..registers + wanted.len();
    let (start, end) = &trace.multipliers;
    // Multipliers that are unknowns are among the registers already.
    let nearness = encounter.map(|encounter| encounter.nearness);
    let others: Vec<Node> = start
        .iter()
        .copied()
        .chain(nearness)
        .filter(|node| !cut.place.contains_key(node))
        .collect();
    compute(
        &cut,
        &mut actions,
        trace.systems.len(),
        &[&wanted[..], &next, &others].concat(),
        &mut registers,
    );
    cut.place(&others, result.end + next.len());
    let start = start.iter().map(|node| cut.place[node] as u32).collect();
    LoweredProgram {
        dimension: trace.x.len(),
        layout: None,
        registers,
        actions,
        carried: (0..next.len()).map(|k| result.end + k..result.end + k + 1).collect(),
        result,
        multipliers: Multipliers::new(
            start,
            end.iter().map(|&place| place as u32).collect(),
            model,
        ),
        calls: trace.calls,
        substeps,
        tolerance,
        names,
        own: own.to_vec(),
        fsal: find.map(|find| {
            let find = lower(find, None, (mechanics, model), vec![1.0], own, tolerance);
            Fsal::new(find, false, trace.monitored)
        }),
        sums: 0..0,
        draws: Draws::new(trace.drawn.clone(), model)
            .map(|draws| (draws.clone(), draws.noise(parameters))),
        encounter: encounter.map(|recorder::Encounter { nearness, start }| {
            let known = trace.carried.iter().position(|&(input, _)| input == start);
            Encounter::new(cut.place[&nearness], known)
        }),
        may_sweep: trace.symbols.degrees() > 0 || trace.x.len() >= FEWEST_SWEPT,
        repeated: None,
    }
}

fn solve(
    cut: &Cut,
    system: &System<Nodes>,
    monitor: Option<SystemMonitor>,
    unknowns: Range<usize>,
    sizes: [Range<usize>; 2],
    parameters: &[f64],
) -> Solve<Unrolled> {
    let values: Vec<Node> = system.jacobian.iter().map(|&(_, _, node)| node).collect();
    let outputs = [&system.residuals[..], &values].concat();
    let level = cut.level_of(system.unknowns[0]);
    let elimination = Elimination::new(system.rows.len(), &system.entries());
    let tape = cut.tape(&outputs, level, unknowns.end, parameters);
    let task = system.task(unknowns.clone(), sizes.clone());
    let residuals =
        task.local.then(|| cut.tape(&system.residuals, level, unknowns.end, parameters));
    Solve {
        equations: UnrolledEquations {
            operations: (
                residuals.as_ref().map_or(0, Tape::operations),
                tape.operations() + elimination.operations(),
            ),
            kernel: Bound::new(&tape, parameters),
            residuals: residuals.map(|tape| Bound::new(&tape, parameters)),
            unknowns,
            sizes: task.sizes.clone(),
            elimination,
        },
        task,
        rows: system.rows.iter().copied().enumerate().collect(),
        monitor,
        calls: system.calls,
    }
}

/// Monitored property of a system.
fn monitored_property(system: &System<Nodes>, mechanics: &Mechanics) -> Option<MonitoredProperty> {
    let curved = mechanics.kind == ConstraintKind::Coisotropic;
    match system.monitored {
        Monitored::Never => None,
        // Equations of stages, which others may be joined with, do not scale with h.
        Monitored::Always if system.rows.iter().any(Equation::is_stage) => None,
        Monitored::Always => Some(MonitoredProperty::Determinant { power: 1, curved }),
        Monitored::OnCurves => {
            curved.then_some(MonitoredProperty::Determinant { power: 2, curved })
        }
        Monitored::Definite => {
            let least = LeastEigenvalue::new(
                system.rows.len(),
                &system.entries(),
                diagonal_mass(mechanics),
            );
            Some(MonitoredProperty::LeastEigenvalue(Box::new(least), 1))
        }
    }
}

impl LoweredProgram<Unrolled> {
    /// Parameters of the model and of the method, F₀, h and t₀.
    pub fn all_parameters(&self, plan: &Plan, h: f64, start: &Start) -> Vec<f64> {
        let mut all = Vec::new();
        self.put_all_parameters((plan, h), start, &mut all);
        all
    }

    /// Replace `all` by [`LoweredProgram::all_parameters`].
    pub fn put_all_parameters(&self, (plan, h): (&Plan, f64), start: &Start, all: &mut Vec<f64>) {
        all.clear();
        for part in [start.parameters, &self.own, start.targets, &[h, plan.t0]] {
            all.extend_from_slice(part);
        }
    }

    /// Let runs of `plan` take their steps in loops, if the step is small enough: one run, or
    /// several of one ensemble. `starts` are examples of its runs, whose first steps are made in
    /// loops, too.
    pub fn repeat(
        &mut self,
        trace: &UnrolledTrace,
        field: &Field,
        plan: &Plan,
        starts: &[Start],
        ensemble: bool,
    ) {
        self.repeated = None;
        let Some(h) = plan.fixed_step() else { return };
        let alone = self
            .solves()
            .filter_map(|solve| solve.monitor.as_ref())
            .any(SystemMonitor::wants_single_steps);
        if plan.method.treatment != MethodTreatment::Plain || self.tolerance > CLOSE || alone {
            return;
        }
        let pilot = |start: &Start| {
            let Pilot { first, later, x, memory } =
                self.rebound(start.parameters).pilot(PILOT_STEPS, (plan.t0, h), start.x)?;
            let parameters = self.all_parameters(plan, h, start);
            Some((Piloted { parameters, x, memory, steps: PILOT_STEPS }, [first, later]))
        };
        let (mut pilots, mut taken): (Vec<Piloted>, Vec<_>) =
            starts.iter().filter_map(pilot).unzip();
        while self.repeated.is_none() && !pilots.is_empty() {
            let own = starts[0].parameters.len();
            self.repeated = self.many_of((trace, field), (&pilots, &taken), own, ensemble);
            // Runs that a loop serves do not wait for those that it cannot serve.
            pilots.truncate(pilots.len() / 2);
            taken.truncate(pilots.len());
        }
    }

    /// Loop that serves these runs of a model with `own` parameters.
    fn many_of(
        &self,
        (trace, field): (&UnrolledTrace, &Field),
        (pilots, taken): (&[Piloted], &[[Vec<Taken>; 2]]),
        own: usize,
        ensemble: bool,
    ) -> Option<Many> {
        let most = |of: usize| -> Vec<Taken> {
            let of_system =
                |k: usize| taken.iter().fold(Taken::default(), |most, run| most.most(run[of][k]));
            (0..self.solves().count()).map(of_system).collect()
        };
        let (first, later) = (most(0), most(1));
        let doubtful = |(solve, most): (&Solve<Unrolled>, &Taken)| {
            let mixed = solve.task.sweeps && most.iterations > 0;
            mixed || (solve.task.local && most.iterations >= DOUBTFUL_ITERATIONS)
        };
        if self.solves().zip(&later).any(doubtful) {
            return None;
        }
        let safe = ensemble && !self.solves().zip(&first).any(doubtful);
        Many::new(&LoopIngredients {
            trace,
            most: &later,
            most_first: safe.then_some(&first),
            substeps: &self.substeps,
            field,
            own_parameters: own + self.own.len(),
            pilots,
            multipliers: &self.multipliers,
            draws: self.draws.as_ref().map(|(draws, _)| draws),
            longest: LONGEST_LOOP,
        })
    }

    /// Prepare this program and its loop for a run of `plan` from `start`.
    pub fn rebind_for(&mut self, plan: &Plan, start: &Start) {
        self.rebind(start.parameters);
        let all = plan.fixed_step().map(|h| self.all_parameters(plan, h, start));
        match (&mut self.repeated, all) {
            (Some(many), Some(all)) => {
                many.rebind(0, &all);
                many.begin(start.x);
            }
            (repeated, _) => *repeated = None,
        }
    }

    /// Bind this program to a lane's trajectory. `all` is as in [`Piloted::parameters`], and its
    /// first `own` numbers are those of the model.
    pub fn bind_lane(&mut self, lanes: &Many, lane: usize, own: usize, all: &[f64]) {
        self.rebind(&all[..own]);
        if let Some(many) = &mut self.repeated {
            many.rebind(0, all);
            many.begin_as(lanes, lane);
        }
    }
}

/// Trace on the way to its kernels: the level at which each node is known, and its register.
struct Cut<'a> {
    graph: &'a Graph,
    parameters_only: Vec<bool>,
    /// Number of solves after which each node can be computed.
    level: Vec<usize>,
    /// Nodes of each level that later kernels need.
    needed: Vec<Vec<Node>>,
    /// Registers of nodes.
    place: FxHashMap<Node, usize>,
}

impl<'a> Cut<'a> {
    fn new(trace: &'a UnrolledTrace) -> Cut<'a> {
        let graph = &trace.symbols.graph;
        let mut solved: FxHashMap<Node, usize> = FxHashMap::default();
        for (k, system) in trace.systems.iter().enumerate() {
            solved.extend(system.unknowns.iter().map(|&unknown| (unknown, k + 1)));
        }
        let (mut level, mut parameters_only) =
            (Vec::with_capacity(graph.len()), Vec::with_capacity(graph.len()));
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
        let carried = trace.carried.iter().map(|(input, _)| input);
        for (k, &input) in trace.x.iter().chain([&trace.t, &trace.h]).chain(carried).enumerate() {
            place.insert(input, k);
        }
        let mut cut = Cut {
            graph,
            parameters_only,
            level,
            needed: vec![Vec::new(); trace.systems.len() + 1],
            place,
        };
        cut.find_needs(trace);
        cut
    }

    /// Number of solves after which a node can be computed.
    fn level_of(&self, node: Node) -> usize {
        self.level[node.0 as usize]
    }

    /// Find, from the last level to the first, the nodes of earlier levels that each level's
    /// kernels need.
    fn find_needs(&mut self, trace: &UnrolledTrace) {
        let last = trace.systems.len();
        let mut needed: Vec<FxHashSet<Node>> = vec![FxHashSet::default(); last + 1];
        for level in (0..=last).rev() {
            let mut roots: Vec<Node> = needed[level].iter().copied().collect();
            match trace.systems.get(level) {
                Some(system) => roots
                    .extend(system.sizes.iter().chain(&system.sweep_sizes).chain(&system.guesses)),
                None => {
                    let next = trace.carried.iter().map(|(_, next)| next);
                    let result = trace.result.iter().map(|(node, _)| node);
                    roots.extend(result.chain(next).chain(&trace.multipliers.0));
                    roots.extend(trace.encounter.map(|encounter| encounter.nearness));
                }
            }
            // The residuals of the system before depend on its unknowns.
            if level > 0 {
                let system = &trace.systems[level - 1];
                roots.extend(
                    system.residuals.iter().chain(system.jacobian.iter().map(|(_, _, node)| node)),
                );
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

    /// Nodes of a level that later kernels need.
    fn stored(&self, level: usize) -> Vec<Node> {
        self.needed[level].clone()
    }

    /// Note the registers of nodes.
    fn place(&mut self, nodes: &[Node], first: usize) {
        for (k, &node) in nodes.iter().enumerate() {
            self.place.insert(node, first + k);
        }
    }

    /// Kernel of some nodes of this level at most, which reads the first `registers` registers.
    fn kernel(
        &self,
        outputs: &[Node],
        level: usize,
        registers: usize,
        parameters: &[f64],
    ) -> Bound {
        Bound::new(&self.tape(outputs, level, registers, parameters), parameters)
    }

    /// Tape of the kernel of some nodes.
    fn tape(&self, outputs: &[Node], level: usize, registers: usize, parameters: &[f64]) -> Tape {
        debug_assert!(outputs.iter().all(|&node| self.level_of(node) <= level));
        let mut g = Graph::new();
        // In a fixed order: the order of nodes decides which products are fused.
        let mut places: Vec<(usize, Node)> =
            self.place.iter().map(|(&node, &place)| (place, node)).collect();
        places.sort_unstable();
        let known = places.into_iter().filter(|&(place, _)| place < registers);
        let known = known.map(|(place, node)| (node, g.state(place))).collect();
        let roots = g.copy_from(self.graph, outputs, &known);
        let (g, roots) = fuse(&g, &roots);
        Tape::of_fused(&g, &roots, registers, parameters.len())
    }
}
