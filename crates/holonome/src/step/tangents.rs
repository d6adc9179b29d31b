//! Recorded steps along tangent vectors. The recording is differentiated: its result by x and by the
//! solutions of its equations, and these by implicit differentiation, with the Newton matrix at the
//! solution, whatever the iteration that has found it.

use super::nodes::Nodes;
use super::program::{Action, LoweredProgram};
use super::recorder::System;
use super::unrolled::{Unrolled, UnrolledTrace};
use crate::kernels::{Bound, Formula, Quantities};
use holonome_integrate::cost::Cost;
use holonome_integrate::scheme::map::{NoStep, StepFrom, StepMap};
use holonome_linear::lu::Elimination;
use holonome_model::graph::{Expression, Graph, Input, Node};
use rustc_hash::FxHashMap;

/// Steps of a program with tangent vectors. Copies share their code.
#[derive(Clone)]
pub struct ProgramTangents {
    program: LoweredProgram<Unrolled>,
    systems: Vec<TangentSystem>,
    /// Derivative of x₁.
    result: Bound,
    /// Places, among the inputs of the recording, of x, t, h and the carried quantities.
    places: Vec<usize>,
    /// Number of inputs of the recording, which x's and the solutions' tangents follow.
    inputs: usize,
    /// Numbers that the program carries from step to step.
    memory: Vec<f64>,
}

/// Derivative of a system of equations.
#[derive(Clone)]
struct TangentSystem {
    /// Newton matrix at the solution.
    matrix: Bound,
    /// Derivatives of the residuals with the unknowns at rest.
    residuals: Bound,
    elimination: Elimination,
    /// Places of the unknowns among the inputs of the recording.
    places: Vec<usize>,
    /// First of their tangents.
    first: usize,
}

/// Kernels of a recording's derivative.
struct Derivation<'a> {
    graph: Graph,
    /// Tangent of each input that moves.
    moved: FxHashMap<Input, usize>,
    states: usize,
    parameters: &'a [f64],
}

impl Derivation<'_> {
    fn kernel(&self, nodes: &[Node]) -> Bound {
        let tape = Formula::new(&self.graph, nodes).tape(self.states, self.parameters.len());
        Bound::new(&tape, self.parameters)
    }

    /// Kernel of the derivatives of some nodes, along tangents of all inputs but those from `first`
    /// on.
    fn along(&mut self, nodes: &[Node], first: usize) -> Bound {
        let moved = &self.moved;
        let tangents = self.graph.tangent(nodes, |g, input| {
            moved.get(&input).filter(|tangent| **tangent < first).map(|&tangent| g.state(tangent))
        });
        self.kernel(&tangents)
    }
}

fn input_of(graph: &Graph, node: Node) -> Input {
    match graph.expression(node) {
        Expression::Input(input) => input,
        _ => unreachable!("x and unknowns are inputs"),
    }
}

fn place(graph: &Graph, node: Node) -> usize {
    match input_of(graph, node) {
        Input::State(place) => place as usize,
        _ => unreachable!("inputs of a recording are states"),
    }
}

impl ProgramTangents {
    /// Derivative of `program`, which carries no value but guesses from step to step, and of which
    /// `trace` is the recording. The parameters are those of the model and of the method.
    pub fn new(
        program: LoweredProgram<Unrolled>,
        trace: &UnrolledTrace,
        parameters: &[f64],
    ) -> ProgramTangents {
        let graph = trace.symbols.graph.clone();
        let n = trace.x.len();
        let inputs = trace.symbols.inputs();
        let unknowns = trace.systems.iter().flat_map(|system: &System<Nodes>| &system.unknowns);
        let moving: Vec<Node> = trace.x.iter().chain(unknowns).copied().collect();
        let moved = moving.iter().map(|&node| input_of(&graph, node)).zip(inputs..).collect();
        let states = inputs + moving.len();
        let mut derivation = Derivation { graph, moved, states, parameters };
        let mut first = inputs + n;
        let systems = trace.systems.iter().map(|system| {
            let values: Vec<Node> = system.jacobian.iter().map(|&(_, _, node)| node).collect();
            let of = TangentSystem {
                matrix: derivation.kernel(&values),
                residuals: derivation.along(&system.residuals, first),
                elimination: Elimination::new(system.unknowns.len(), &system.entries()),
                places: system.unknowns.iter().map(|&u| place(&derivation.graph, u)).collect(),
                first,
            };
            first += system.unknowns.len();
            of
        });
        let systems: Vec<TangentSystem> = systems.collect();
        let result: Vec<Node> = trace.result.iter().map(|&(node, _)| node).collect();
        let known = trace.x.iter().chain([&trace.t, &trace.h]);
        let known = known.chain(trace.carried.iter().map(|(input, _)| input));
        let memory = vec![0.0; program.memory_len()];
        ProgramTangents {
            result: derivation.along(&result, states),
            places: known.map(|&node| place(&derivation.graph, node)).collect(),
            systems,
            program,
            inputs,
            memory,
        }
    }

    /// Start a run.
    pub fn begin(&mut self) {
        self.memory.fill(0.0);
    }

    /// Make a step to `x1`. `tangents` are tangent vectors at its start, one after the other, and
    /// then those at its end.
    ///
    /// # Errors
    /// If the step has no result.
    pub fn step(
        &mut self,
        StepFrom { t, h, x }: StepFrom,
        x1: &mut [f64],
        tangents: &mut [f64],
    ) -> Result<(), NoStep> {
        let ProgramTangents { program, memory, .. } = self;
        let mut registers = vec![0.0; program.registers];
        let mut work = vec![0.0; program.substep_work_len()];
        x1.copy_from_slice(x);
        let (mut made, known) = (0.0f64, program.dimension + 2 + program.carried_len());
        for gamma in program.substeps.clone() {
            let step = StepFrom { t: made.mul_add(h, t), h: gamma * h, x: x1 };
            let (carried, scale) = memory.split_at_mut(program.carried_len());
            program.load(step, carried, &mut registers);
            let inputs = registers[..known].to_vec();
            program.substep(&mut registers, scale, &mut Cost::default(), &mut work, &mut [])?;
            if program.encounter.as_ref().is_some_and(|encounter| encounter.meets(&registers)) {
                let reason = "the derivative is that of steps that are not handed over".into();
                return Err(NoStep::HandedOver { after: 0.0, reason });
            }
            program.scatter(&registers[program.result.clone()], x1);
            let mut at = 0;
            for range in &program.carried {
                carried[at..at + range.len()].copy_from_slice(&registers[range.clone()]);
                at += range.len();
            }
            differentiate(
                (program, &self.systems, &self.result),
                (&self.places, self.inputs),
                (&inputs, &registers),
                tangents,
            )?;
            made += gamma;
        }
        Ok(())
    }
}

/// Replace tangent vectors at the start of a substep by those at its end. `known` are x, t, h and
/// the carried quantities at its start, `registers` those at its end.
fn differentiate(
    (program, systems, result): (&LoweredProgram<Unrolled>, &[TangentSystem], &Bound),
    (places, inputs): (&[usize], usize),
    (known, registers): (&[f64], &[f64]),
    tangents: &mut [f64],
) -> Result<(), NoStep> {
    let n = program.dimension;
    if tangents.is_empty() {
        return Ok(());
    }
    let solves: Vec<_> = program
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Solve(solve) => Some(solve),
            _ => None,
        })
        .collect();
    let moving = n + systems.iter().map(|system| system.places.len()).sum::<usize>();
    let mut states = vec![0.0; inputs + moving];
    for (&place, &value) in places.iter().zip(known) {
        states[place] = value;
    }
    for (system, solve) in systems.iter().zip(&solves) {
        for (&place, &value) in system.places.iter().zip(&registers[solve.task.unknowns.clone()]) {
            states[place] = value;
        }
    }
    let kernels = systems.iter().flat_map(|system| [&system.matrix, &system.residuals]);
    let work_len = kernels.chain([result]).map(Quantities::work_len).max().unwrap_or(0);
    let mut work = vec![0.0; work_len];
    let matrices = systems.iter().map(|system| {
        let mut values = vec![0.0; system.matrix.outputs()];
        system.matrix.run(0.0, &states, &mut values, &mut work);
        values
    });
    let matrices: Vec<Vec<f64>> = matrices.collect();
    for v in tangents.chunks_exact_mut(n) {
        states[inputs..inputs + n].copy_from_slice(v);
        for ((system, solve), matrix) in systems.iter().zip(&solves).zip(&matrices) {
            let m = system.places.len();
            let mut change = vec![0.0; m];
            system.residuals.run(0.0, &states, &mut change, &mut work);
            let mut room = vec![0.0; system.elimination.work_len()];
            let sizes = &registers[solve.task.sizes.clone()];
            system.elimination.solve(matrix, sizes, &mut change, &mut room);
            let into = &mut states[system.first..system.first + m];
            into.iter_mut().zip(change).for_each(|(to, change)| *to = -change);
        }
        result.run(0.0, &states, v, &mut work);
        if let Some(k) = v.iter().position(|number| !number.is_finite()) {
            return Err(NoStep::NotSolved {
                iterations: 0,
                residual: f64::NAN,
                equation: format!("the derivative of {}", program.names.component(k)),
            });
        }
    }
    Ok(())
}
