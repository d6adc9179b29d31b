//! Steps of a scheme along tangent vectors. The field of a model with its derivative along a vector
//! v is a field for (x, v), and a Runge–Kutta, collocation or Taylor step over it computes the
//! derivative of its own step: these schemes commute with differentiation (HLW VI.4.1).

use super::bound::Parametric;
use super::field_jacobian::FieldJacobian;
use super::map::{CompiledStep, StepSource};
use super::system::CompiledSystem;
use super::vectors::StateVectors;
use crate::error::Error;
use holonome_integrate::cost::Cost;
use holonome_integrate::fixed_point::{CollocationMap, SliceStages};
use holonome_integrate::method::{Method, Step};
use holonome_integrate::plan::Plan;
use holonome_integrate::scheme::map::{NoStep, StepFrom, StepMap, Workspace};
use holonome_integrate::simplified_newton::StiffMap;
use holonome_integrate::system::{System, all_finite};
use holonome_model::graph::Input;
use holonome_model::treatment::Field;
use std::ops::Range;
use std::sync::Arc;

/// Steps over the field for (x, v), and for the changes of parameters along v, which are constant.
/// Copies share their code.
#[derive(Clone)]
pub struct TangentSteps {
    plan: Plan,
    system: CompiledSystem,
    step: CompiledStep,
    dimension: usize,
    moving: usize,
    scratch: Scratch,
}

#[derive(Clone, Default)]
struct Scratch {
    z: Vec<f64>,
    z1: Vec<f64>,
    kept: Vec<Vec<f64>>,
    memory: Vec<f64>,
    work: Vec<f64>,
}

impl TangentSteps {
    /// Steps of `plan`'s scheme over `field`, with these parameters. Those in `moving` change
    /// with x.
    ///
    /// # Errors
    /// If the method needs formulas that the field does not have.
    pub fn new(
        plan: &Plan,
        (field, vectors): (&Field, &StateVectors),
        parameters: &[f64],
        moving: Range<usize>,
    ) -> Result<TangentSteps, Error> {
        let plan = Plan { method: Method::plain(plan.method.scheme), gain: None, ..plan.clone() };
        let (n, count) = (field.dimension, moving.len());
        let doubled = Arc::new(along_tangents(field, &moving));
        let vectors = vectors.with_tangents(count);
        let mut system = CompiledSystem::new(&doubled, &vectors, parameters, true, None);
        if plan.method.scheme.stiff().is_some() {
            system = system.with_field_jacobian(FieldJacobian::of(&doubled, parameters));
        }
        let unrolled = system.unrolled().expect("a field with a graph is unrolled");
        let of = StepSource {
            plan: &plan,
            field: &doubled,
            vectors: &vectors,
            system: unrolled,
            targets: parameters.len(),
            parameters: parameters.len(),
            // Steps are made one by one: stages are loops over slices.
            longest: 0,
        };
        let step = CompiledStep::new(&of, parameters)?;
        let scratch = Scratch::default();
        Ok(TangentSteps { plan, system, step, dimension: n, moving: count, scratch })
    }

    /// Set other parameters.
    pub fn rebind(&mut self, parameters: &[f64]) {
        self.system.rebind(parameters);
        self.step.rebind(&self.plan, parameters);
    }

    /// Make a step to `x1`. `tangents` are tangent vectors at its start, one after the other, and
    /// then those at its end; `changes` those of the parameters along each of them.
    ///
    /// # Errors
    /// If the step has no result.
    pub fn step(
        &mut self,
        from: StepFrom,
        x1: &mut [f64],
        tangents: &mut [f64],
        changes: &[f64],
    ) -> Result<(), NoStep> {
        let TangentSteps { plan, system, step, dimension, moving, scratch } = self;
        let (n, moving) = (*dimension, *moving);
        let scheme = plan.method.scheme;
        let stages;
        let map: Box<dyn StepMap + '_> = match (step.map(plan, system), scheme.step) {
            (Some(map), _) => map,
            (None, Step::Stiff(method)) => Box::new(StiffMap::new(method, plan, system)),
            (None, Step::Collocation(collocation)) => {
                stages = SliceStages::new(collocation, plan, system);
                Box::new(CollocationMap::new(collocation, plan, system, &stages))
            }
            (None, _) => unreachable!("a scheme of a field has a map"),
        };
        scratch.size(system, &*map);
        if tangents.is_empty() {
            scratch.run((system, &*map), from, (&vec![0.0; n], &vec![0.0; moving]))?;
        }
        for (k, v) in tangents.chunks_exact_mut(n).enumerate() {
            scratch.run((system, &*map), from, (v, &changes[k * moving..(k + 1) * moving]))?;
            v.copy_from_slice(&scratch.z1[n..2 * n]);
        }
        x1.copy_from_slice(&scratch.z1[..n]);
        Ok(())
    }
}

impl Scratch {
    fn size(&mut self, system: &CompiledSystem, map: &dyn StepMap) {
        let dim = system.dim();
        self.kept.resize_with(map.vectors(), || vec![0.0; dim]);
        self.memory.resize(map.memory_len(), 0.0);
        self.work.resize(map.work_len().max(system.work_len()), 0.0);
        self.z1.resize(dim, 0.0);
    }

    fn run(
        &mut self,
        (system, map): (&CompiledSystem, &dyn StepMap),
        StepFrom { t, h, x }: StepFrom,
        (v, changes): (&[f64], &[f64]),
    ) -> Result<(), NoStep> {
        let Scratch { z, z1, kept, memory, work } = self;
        z.clear();
        [x, v, changes].iter().for_each(|part| z.extend_from_slice(part));
        memory.fill(0.0);
        let step = StepFrom { t, h, x: z };
        if map.takes_first_stage() {
            system.field(t, z, &mut kept[0], work);
        }
        let workspace = &mut Workspace { kept, memory, cost: &mut Cost::default(), work };
        map.fixed_step(step, z1, workspace)?;
        match all_finite(z1) {
            true => Ok(()),
            false => Err(NoStep::NotSolved {
                iterations: 0,
                residual: f64::NAN,
                equation: "the derivative".to_string(),
            }),
        }
    }
}

/// Field for (x, v), and for the changes of the parameters in `moving` along v.
fn along_tangents(field: &Field, moving: &Range<usize>) -> Field {
    let (mut graph, n) = (field.graph.clone(), field.dimension);
    let along = graph.tangent(&field.field, |g, input| match input {
        Input::State(i) => Some(g.state(n + i as usize)),
        Input::Parameter(p) if moving.contains(&(p as usize)) => {
            Some(g.state(2 * n + p as usize - moving.start))
        }
        _ => None,
    });
    let zero = graph.zero();
    let constant = vec![zero; moving.len()];
    Field {
        dimension: 2 * n + moving.len(),
        parameters: field.parameters,
        field: [&field.field[..], &along, &constant].concat(),
        graph,
        underlying: None,
        velocities: Vec::new(),
        multipliers: Vec::new(),
        invariants: Vec::new(),
        jacobian: Vec::new(),
        constraints: 0,
        groups: Vec::new(),
        watched: Vec::new(),
        surfaces: Vec::new(),
    }
}
