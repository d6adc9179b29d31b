//! Derivatives of flows: tangent vectors of a state, moved along by the derivatives of its steps.

use super::preparation::{settings, unrolled_field};
use super::stepping::{claim_fails, run_method, unstored};
use super::{From, Simulation, Trajectory};
use crate::error::Error;
use crate::kernels::{Bound, CompiledSystem, Quantities, TangentSteps};
use crate::step::ProgramTangents;
use crate::store::StoreError;
use holonome_integrate::failure::Failure;
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::Plan;
use holonome_integrate::run::Outcome;
use holonome_integrate::scheme::map::{NoStep, StepFrom};
use holonome_integrate::state::StepState;
use holonome_integrate::system::System;
use holonome_integrate::treatment::Treatment;
use holonome_integrate::treatment::derivative::{NoDerivative, Tangents};
use holonome_model::graph::{Input, Node};
use holonome_model::treatment::Field;
use holonome_words::option;
use std::sync::Arc;

/// Derivative of a simulation's steps. Copies share their code.
#[derive(Clone)]
pub(super) struct Derivative {
    /// Trajectory that makes its steps one by one.
    trajectory: Trajectory,
    base: Base,
    /// Unrolled system, of which F and DF are used.
    system: Arc<CompiledSystem>,
    /// Derivatives of the nonzeros of DF along a vector: kernel of (x, v).
    second: Bound,
}

/// Derivative of the base scheme's step.
#[derive(Clone)]
enum Base {
    Field(Box<TangentSteps>),
    Program(Box<ProgramTangents>),
}

impl Derivative {
    /// Derivative of the steps of `simulation`.
    ///
    /// # Errors
    /// If its steps are not equal, or not given by formulas.
    pub fn new(simulation: &Simulation) -> Result<Derivative, Error> {
        let Simulation { problem, options, plan, vectors, trajectory, treated, .. } = simulation;
        if plan.stepping.fixed().is_none() {
            return Err(Error::option(format!(
                "a derivative is that of equal steps: the choice of others is no smooth function of the state; give {}",
                option("step")
            )));
        }
        let own = &problem.model.parameter_values;
        let feeds_back = plan.method.treatment == MethodTreatment::Feedback;
        let field = unrolled_field(simulation)?;
        let (stepped, moving) = match (feeds_back, treated) {
            (true, Some(treated)) => (treated, own.len()..own.len() + trajectory.target_count()),
            (true, None) => {
                let instead = plan.method.scheme.name;
                return Err(Error::option(format!(
                    "`{}` has a derivative if its feedback term is a formula, and that of a model of this size is not: use corrected:{instead}",
                    plan.method
                )));
            }
            (false, _) => (&field, 0..0),
        };
        let targets = vec![0.0; trajectory.target_count()];
        let all = [&own[..], &targets, &trajectory.gains].concat();
        let extension = simulation.field.as_deref();
        let settings = settings(options, false)?;
        let program = crate::step::tangents(&plan.method, &problem.model, extension, &settings)?;
        let base = match program {
            Some(program) => Base::Program(Box::new(program)),
            None => {
                let steps = TangentSteps::new(plan, (stepped, vectors), &all, moving)?;
                Base::Field(Box::new(steps))
            }
        };
        let system = match trajectory.system.unrolled() {
            Some(_) => Arc::clone(&trajectory.system),
            None => Arc::new(CompiledSystem::new(&field, vectors, own, false, None)),
        };
        let program = trajectory.program.as_ref().map(|program| program.single(own));
        let step = trajectory.step.by_itself(&all);
        let trajectory = Trajectory { program, step, ..trajectory.clone() };
        Ok(Derivative { trajectory, base, system, second: second_derivative(&field, own) })
    }

    /// Replace the `tangents` at `x`, one after the other, by those at the end of its flow.
    ///
    /// # Errors
    /// If a step has no result, or no derivative.
    pub fn apply(
        &mut self,
        simulation: &Simulation,
        plan: &Plan,
        x: &[f64],
        tangents: &mut [f64],
    ) -> Result<(), Error> {
        let (parameters, n) = (&simulation.problem.model.parameter_values, x.len());
        let Derivative { trajectory, base, system, second } = self;
        trajectory.restart(plan, From { parameters, x, reference: None });
        let invariants = system.invariants();
        let mut work = vec![0.0; system.work_len().max(second.work_len())];
        let targets = target_tangents(system, (plan.t0, x), tangents, &mut work);
        let mut changes = Vec::new();
        match base {
            Base::Program(steps) => steps.begin(),
            Base::Field(steps) => {
                let own = &trajectory.state.target[invariants.constraints..];
                steps.rebind(&[&parameters[..], own, &trajectory.gains].concat());
                let rows = targets.chunks_exact(invariants.count.max(1));
                changes.extend(rows.flat_map(|row| &row[invariants.constraints..]));
            }
        }
        let mut along = Along {
            plan,
            treatment: Treatment::new(plan, &**system),
            base,
            system,
            second,
            x: x.to_vec(),
            reached: vec![0.0; n],
            tangents,
            targets,
            changes,
            work,
            failure: None,
        };
        let Trajectory { system, step, program, state, .. } = trajectory;
        let outcome = run_method((program.as_ref(), step, system), plan, state, &mut along);
        if let Some(failure) = along.failure {
            return Err(failure);
        }
        match outcome.map_err(unstored)? {
            Outcome::ClaimFailed => {
                Err(unstored(claim_fails(&simulation.plan, &simulation.groups, state)))
            }
            Outcome::Event | Outcome::Reset => Err(Error::option(format!(
                "a derivative of a flow goes through no event that stops it or sets the state, and one comes at t = {}: leave it out of the model, or end the flow before",
                simulation.plan.clock(state.t)
            ))),
            Outcome::Finished | Outcome::Stopped => Ok(()),
        }
    }
}

/// Changes of F₀ along tangent vectors of a start; those of constraints are 0, as their targets.
fn target_tangents(
    system: &CompiledSystem,
    (t, x): (f64, &[f64]),
    tangents: &[f64],
    work: &mut [f64],
) -> Vec<f64> {
    let invariants = system.invariants();
    let mut jacobian = vec![0.0; invariants.nonzeros()];
    system.invariant_jacobian(t, x, &mut jacobian, work);
    let along = |v: &[f64]| -> Vec<f64> {
        let row = |row: usize| match row < invariants.constraints {
            true => 0.0,
            false => invariants.row(row).entries().map(|(p, column)| jacobian[p] * v[column]).sum(),
        };
        (0..invariants.count).map(row).collect()
    };
    tangents.chunks_exact(x.len()).flat_map(along).collect()
}

/// Kernel of the derivatives of DF's nonzeros along v, from (x, v).
fn second_derivative(field: &Field, parameters: &[f64]) -> Bound {
    let mut doubled = field.clone();
    let entries: Vec<Node> = field.jacobian.iter().flatten().map(|&(_, node)| node).collect();
    let n = field.dimension;
    let nodes = doubled.graph.tangent(&entries, |g, input| match input {
        Input::State(i) => Some(g.state(n + i as usize)),
        _ => None,
    });
    doubled.dimension *= 2;
    Bound::of(&doubled, &nodes, parameters)
}

/// Observer that moves tangent vectors along with a run.
struct Along<'a> {
    plan: &'a Plan,
    treatment: Treatment,
    base: &'a mut Base,
    system: &'a CompiledSystem,
    second: &'a Bound,
    /// State at the start of the step.
    x: Vec<f64>,
    reached: Vec<f64>,
    tangents: &'a mut [f64],
    /// Changes of F₀ along the tangents, and of parameters of the field.
    targets: Vec<f64>,
    changes: Vec<f64>,
    work: Vec<f64>,
    failure: Option<Error>,
}

impl Along<'_> {
    /// Move the tangents along the step to `state`.
    fn follow(&mut self, state: &StepState) -> Result<(), Error> {
        let fixed = self.plan.stepping.fixed().expect("steps are equal");
        let (t0, step) = (self.plan.t0, state.step - 1);
        let (t, t1, h) = (fixed.time(t0, step), fixed.time(t0, step + 1), fixed.length(t0, step));
        let (base, changes) = (&mut *self.base, &self.changes);
        let second = self.second;
        let made = self.treatment.differentiate(
            self.system,
            (t, t1, h),
            (&state.target, &state.scales),
            (&self.x, &mut self.reached),
            Tangents { vectors: self.tangents, targets: &self.targets },
            &mut |x, x1, tangents| match base {
                Base::Field(steps) => steps.step(StepFrom { t, h, x }, x1, tangents, changes),
                Base::Program(steps) => steps.step(StepFrom { t, h, x }, x1, tangents),
            },
            &|t, x, v, out| {
                let mut work = vec![0.0; second.work_len()];
                second.run(t, &[x, v].concat(), out, &mut work);
            },
            &mut self.work,
        );
        self.x.copy_from_slice(&state.x);
        made.map_err(|reason| no_derivative(reason, (t, t1), state.step))
    }
}

impl Observer for Along<'_> {
    type Error = StoreError;

    fn step(&mut self, state: &StepState) -> Result<Control, StoreError> {
        match self.follow(state) {
            Ok(()) => Ok(Control::Continue),
            Err(failure) => {
                self.failure = Some(failure);
                Ok(Control::Stop)
            }
        }
    }
}

fn no_derivative(reason: NoDerivative, (t, t1): (f64, f64), step: u64) -> Error {
    let failure: Failure<StoreError> = match reason {
        NoDerivative::Base(NoStep::NotSolved { iterations, residual, equation })
            if residual.is_finite() =>
        {
            Failure::NewtonNotConverged { t, iterations, residual, constraint: equation }
        }
        NoDerivative::Base(NoStep::NotSolved { equation, .. }) => {
            Failure::NonFinite { t: t1, step, quantity: equation }
        }
        NoDerivative::Base(NoStep::Degenerate { determinant }) => {
            Failure::Degenerate { t, determinant }
        }
        NoDerivative::Base(NoStep::Indefinite { eigenvalue }) => {
            Failure::Indefinite { t, eigenvalue }
        }
        NoDerivative::Base(NoStep::HandedOver { .. }) => {
            return Error::option(format!(
                "the step from t = {t} has no derivative: bodies come near to each other in it, and it is handed over to another method; use gauss16 for the whole run"
            ));
        }
        NoDerivative::Untreated | NoDerivative::Unconverged(_) => {
            return Error::option(format!(
                "the step to t = {t1} has no derivative: the iteration for that of its treatment gets no nearer; take a shorter {}",
                option("step")
            ));
        }
    };
    unstored(failure)
}
