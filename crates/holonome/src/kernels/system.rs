//! Field and invariants of a model as a system of the numeric half, unrolled or templated.

use super::bound::{Bound, Parametric, Quantities, WideBound, compile_rows};
use super::deferred::Deferred;
use super::field_jacobian::FieldJacobian;
use super::formula::Formula;
use super::mending::{ITERATIONS, Mend};
use super::monitoring::{Monitoring, WideMonitor, group, is_small};
use super::pull::Pull;
use super::settling::{Settling, settling_tape};
use super::vectors::{Masses, StateVectors};
use holonome_integrate::events::Events;
use holonome_integrate::scales::Vectors;
use holonome_integrate::system::{Invariants, Mended, Place, System, all_finite};
use holonome_integrate::treatment::correction::largest_innovation;
use holonome_linear::pattern::Pattern;
use holonome_model::graph::Node;
use holonome_model::rows::RowProgram;
use holonome_model::templated::RowField;
use holonome_model::treatment::{Field, InvariantGroup};
use std::sync::{Arc, LazyLock};

/// Compiled system: field, invariants, their Jacobian, and the field's directional derivative.
#[derive(Clone)]
pub struct CompiledSystem {
    /// X as steps call it, without the pull.
    field: Box<dyn Quantities>,
    /// Field without the term of feedback, if the field has one.
    untreated: Option<Box<dyn Quantities>>,
    /// True if one of these is the motion's field: with constraints X_H alone is not.
    has_motion: bool,
    /// Term of feedback that the field does not hold yet.
    pull: Option<Pull>,
    values: Box<dyn Quantities>,
    jacobian: Box<dyn Quantities>,
    masses: Masses,
    invariants: Arc<Invariants>,
    unrolled: Option<UnrolledParts>,
    /// Jacobian of the field, for methods that solve with it.
    field_jacobian: Option<FieldJacobian>,
    /// Events along the motion.
    events: Option<Box<dyn ParametricEvents>>,
}

/// Events with the parameters of a model.
pub trait ParametricEvents: Events + Parametric + Send {
    /// Copy in a box.
    fn boxed(&self) -> Box<dyn ParametricEvents>;
}

impl Clone for Box<dyn ParametricEvents> {
    fn clone(&self) -> Box<dyn ParametricEvents> {
        (**self).boxed()
    }
}

/// Parts that a system has besides if its formulas are unrolled.
#[derive(Clone)]
pub struct UnrolledParts {
    /// X, from which the steps of a Runge–Kutta method are made, too.
    formula: Arc<LazyLock<Formula, Box<dyn FnOnce() -> Formula + Send>>>,
    derivative: Deferred,
    monitoring: Monitoring,
    settled: Option<SettlingKernels>,
    /// True if F depends on the time.
    depends_on_time: bool,
}

/// Settling of x at the end of a step, by formulas.
#[derive(Clone)]
struct SettlingKernels {
    /// Formulas, which a step that ends with them uses again: they are the most expensive to
    /// optimise.
    settling: Arc<Settling>,
    /// Kernel from (x, F₀) to F and the groups' deviations.
    monitor: Bound,
    /// Kernel from (x, F₀, scales) to the treated x, and F and deviations there.
    mend: Option<Bound>,
}

impl CompiledSystem {
    /// Compile `field`, and the treatment of steps' results, for these parameters (the model's,
    /// then its treatment's inputs). If steps call the field (`stepped`), it is compiled before
    /// there are any; else tests alone call it, a few times in a thousand steps. `vectors` make up
    /// the state.
    pub fn new(
        field: &Arc<Field>,
        vectors: &Arc<StateVectors>,
        parameters: &[f64],
        stepped: bool,
        mend: Option<Mend>,
    ) -> CompiledSystem {
        let entries: Vec<Node> = field.jacobian.iter().flatten().map(|&(_, node)| node).collect();
        let derived = Arc::clone(field);
        let formula: Box<dyn FnOnce() -> Formula + Send> =
            Box::new(move || Formula::new(&derived.graph, &derived.field));
        let formula = Arc::new(LazyLock::new(formula));
        let (of_steps, derived) = (stepped.then(|| Arc::clone(&formula)), Arc::clone(field));
        let compiled = Deferred::new(parameters, move |parameters| match of_steps {
            Some(formula) => {
                Bound::new(&formula.tape(derived.dimension, derived.parameters), parameters)
            }
            None => Bound::seldom(&derived, &derived.field, parameters),
        });
        if stepped {
            compiled.bound();
        }
        let derived = Arc::clone(field);
        let derivative = Deferred::new(parameters, move |parameters| {
            let mut doubled = (*derived).clone();
            let nodes = doubled.directional_derivative();
            doubled.dimension *= 2;
            Bound::of(&doubled, &nodes, parameters)
        });
        let settled = is_small(field).then(|| {
            let settling = Settling::new(field, mend.map(|mend| (mend, &**vectors)));
            let compiled =
                |settling: &Settling| Bound::new(&settling_tape(field, settling), parameters);
            let monitor = compiled(&settling.monitoring());
            let mend = settling.mend().map(|_| compiled(&settling));
            SettlingKernels { settling: Arc::new(settling), monitor, mend }
        });
        let values = Bound::of(field, &field.invariants, parameters);
        let (monitoring, depends_on_time) = (Monitoring::of(field), values.reads_time());
        CompiledSystem {
            field: Box::new(compiled),
            untreated: None,
            has_motion: true,
            pull: None,
            values: Box::new(values),
            jacobian: Box::new(Bound::of(field, &entries, parameters)),
            masses: Masses::new(vectors, parameters),
            invariants: Arc::new(invariants(field)),
            unrolled: Some(UnrolledParts {
                formula,
                derivative,
                monitoring,
                settled,
                depends_on_time,
            }),
            field_jacobian: None,
            events: None,
        }
    }

    /// Compile `field` as templates for these parameters. For a model with constraints the field is
    /// `extended`, which has these parameters and is NaN where it has no value; X_H if that is
    /// `None`.
    pub fn of_rows(
        field: &RowField,
        vectors: &Arc<StateVectors>,
        parameters: &[f64],
        extended: Option<Box<dyn Quantities>>,
    ) -> CompiledSystem {
        let invariants = Invariants {
            count: field.count(),
            pattern: Arc::clone(&field.pattern),
            constraints: field.constraints,
            groups: field.groups.iter().map(group).collect(),
        };
        let compiled = |program: &RowProgram| {
            Box::new(compile_rows(&program.in_columns(&field.layout), parameters))
        };
        CompiledSystem {
            has_motion: extended.is_some() || field.constraints == 0,
            field: extended.unwrap_or_else(|| compiled(&field.field)),
            untreated: None,
            pull: None,
            values: compiled(&field.invariants),
            jacobian: compiled(&field.jacobian),
            masses: Masses::new(vectors, parameters),
            invariants: Arc::new(invariants),
            unrolled: None,
            field_jacobian: None,
            events: None,
        }
    }

    /// This system with the Jacobian of its field.
    pub fn with_field_jacobian(self, jacobian: FieldJacobian) -> CompiledSystem {
        CompiledSystem { field_jacobian: Some(jacobian), ..self }
    }

    /// This system with events.
    pub fn with_events(self, events: Option<Box<dyn ParametricEvents>>) -> CompiledSystem {
        CompiledSystem { events, ..self }
    }

    /// This system, with `base` as the field without the term of feedback.
    pub fn with_untreated(mut self, base: &Arc<Field>, parameters: &[f64]) -> CompiledSystem {
        let base = Arc::clone(base);
        let untreated = Deferred::new(parameters, move |parameters| {
            Bound::seldom(&base, &base.field, parameters)
        });
        self.untreated = Some(Box::new(untreated));
        self
    }

    /// This system with the Gauss–Newton form of feedback by a linear solve. In `parameters`, those
    /// of the term follow the `first` ones of the model.
    pub fn with_pull(
        mut self,
        state: &Arc<StateVectors>,
        first: usize,
        parameters: &[f64],
    ) -> CompiledSystem {
        self.pull = Some(Pull::new(&self.invariants, state, first, parameters));
        self
    }

    /// The system with a feedback term that has a gain for each of these groups of invariants.
    pub fn with_gains(
        mut self,
        groups: &[InvariantGroup],
        first: usize,
        parameters: &[f64],
    ) -> CompiledSystem {
        self.pull = Some(Pull::of_gains(&self.invariants, groups, first, parameters));
        self
    }

    /// True if threads share some of the sums.
    pub fn is_divided(&self) -> bool {
        self.field.is_divided() || self.values.is_divided()
    }

    /// Unrolled parts; `None` if the system is templated.
    pub fn unrolled(&self) -> Option<&UnrolledParts> {
        self.unrolled.as_ref()
    }

    /// Invariants, to be shared.
    pub fn shared_invariants(&self) -> &Arc<Invariants> {
        &self.invariants
    }

    fn own_field(&self) -> &dyn Quantities {
        &**self.untreated.as_ref().unwrap_or(&self.field)
    }

    /// Set other parameters in the kernels of F and DF, and in no other kernel.
    pub fn rebind_invariants(&mut self, parameters: &[f64]) {
        self.values.rebind(parameters);
        self.jacobian.rebind(parameters);
    }

    /// Set other parameters in the kernels of the motion's field.
    pub fn rebind_motion(&mut self, parameters: &[f64]) {
        self.untreated.as_mut().unwrap_or(&mut self.field).rebind(parameters);
    }

    /// Set other parameters in the functions of events.
    pub fn rebind_events(&mut self, parameters: &[f64]) {
        self.events.rebind(parameters);
    }

    /// Set other parameters in the masses.
    pub fn rebind_masses(&mut self, parameters: &[f64]) {
        self.masses.rebind(parameters);
    }

    /// True if masses depend on the state or on time.
    pub fn has_moving_masses(&self) -> bool {
        self.masses.move_along()
    }

    /// F in so many lanes; `None` if it is not unrolled.
    pub fn wide_values(&self, lanes: usize) -> Option<WideBound> {
        self.values.in_lanes(lanes)
    }

    /// Monitor of the invariants in so many lanes, bit for bit as in one; `None` unless it is a
    /// kernel of its own.
    pub fn wide_monitor(&self, lanes: usize) -> Option<WideMonitor> {
        let unrolled = self.unrolled.as_ref()?;
        let kernel = unrolled.settled.as_ref()?.monitor.in_lanes(lanes)?;
        let first = self.dim() + self.invariants.count;
        Some(WideMonitor {
            kernel,
            monitoring: unrolled.monitoring.clone(),
            first,
            groups: self.invariants.groups.len(),
        })
    }

    /// Motion and DF in so many lanes; `None` if they are not unrolled.
    pub fn wide_rates(&self, lanes: usize) -> Option<WideRates> {
        let depends_on_time = self.unrolled.as_ref()?.depends_on_time;
        let (motion, jacobian) =
            (self.own_field().in_lanes(lanes)?, self.jacobian.in_lanes(lanes)?);
        Some(WideRates { motion, jacobian, depends_on_time })
    }

    /// Longest distance along `v`, in units of it, on which no family of vectors moves by more than
    /// its size; infinite if no family that moves has a size. Every family has units of its own.
    fn way(&self, x: &[f64], v: &[f64]) -> f64 {
        let vectors = self.masses.vectors();
        let ways = vectors.families().iter().map(|family| {
            let all = family.vectors.clone().flat_map(|vector| vectors.components_of(vector));
            let (size, speed) =
                all.fold((0.0f64, 0.0f64), |(a, b), i| (a.max(x[i].abs()), b.max(v[i].abs())));
            if size > 0.0 && speed > 0.0 { size / speed } else { f64::INFINITY }
        });
        ways.fold(f64::INFINITY, f64::min)
    }

    /// Derivative of the field along `v` by a central difference, NaN if nothing has a size. The
    /// step is eps^⅓ of the distance on which a family of vectors moves by its size. The error is
    /// of the order of eps^⅔ ≈ 4e-11 of the field's scale: no step needs the derivative, and a
    /// pilot run needs a few digits.
    fn difference_along(&self, t: f64, x: &[f64], v: &[f64], out: &mut [f64], work: &mut [f64]) {
        if v.iter().all(|v| *v == 0.0) {
            out.fill(0.0);
            return;
        }
        let step = f64::EPSILON.cbrt() * self.way(x, v);
        let (point, work) = work.split_at_mut(x.len());
        let (behind, work) = work.split_at_mut(x.len());
        let mut at = |step: f64, dx: &mut [f64]| {
            for (point, (x, v)) in point.iter_mut().zip(x.iter().zip(v)) {
                *point = v.mul_add(step, *x);
            }
            self.field(t, point, dx, work);
        };
        at(step, out);
        at(-step, behind);
        for (out, behind) in out.iter_mut().zip(behind) {
            *out = (*out - *behind) / (2.0 * step);
        }
    }
}

impl Parametric for CompiledSystem {
    fn rebind(&mut self, parameters: &[f64]) {
        self.field.rebind(parameters);
        self.untreated.rebind(parameters);
        self.pull.rebind(parameters);
        self.field_jacobian.rebind(parameters);
        self.events.rebind(parameters);
        self.rebind_invariants(parameters);
        self.masses.rebind(parameters);
        if let Some(UnrolledParts { derivative, settled, .. }) = &mut self.unrolled {
            derivative.rebind(parameters);
            if let Some(SettlingKernels { monitor, mend, .. }) = settled {
                monitor.rebind(parameters);
                mend.rebind(parameters);
            }
        }
    }
}

impl UnrolledParts {
    /// Formula of the field.
    pub(crate) fn formula(&self) -> &Formula {
        &self.formula
    }

    /// Formulas that monitor and mend, if these are kernels of their own.
    pub fn settling(&self) -> Option<&Settling> {
        self.settled.as_ref().map(|settled| &*settled.settling)
    }

    /// Run a kernel of [`settling_tape`], `more` being its inputs after the targets. Return the
    /// settled x, and its `unsettled` measure.
    fn settle<'w>(
        &self,
        kernel: &Bound,
        (t, target, x): (f64, &[f64], &[f64]),
        more: [&[f64]; 2],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &'w mut [f64],
    ) -> (&'w [f64], f64) {
        let (n, m) = (x.len(), values.len());
        let [scales, limit] = more;
        let (inputs, work) = work.split_at_mut(n + m + scales.len() + limit.len());
        inputs[..n].copy_from_slice(x);
        inputs[n..n + m].copy_from_slice(target);
        let (of_scales, of_limit) = inputs[n + m..].split_at_mut(scales.len());
        of_scales.copy_from_slice(scales);
        of_limit.copy_from_slice(limit);
        let (outputs, work) = work.split_at_mut(kernel.outputs());
        kernel.run(t, inputs, outputs, work);
        let (settled, rest) = outputs.split_at(n);
        let (f, rest) = rest.split_at(m);
        let (drift, unsettled) = rest.split_at(deviations.len());
        values.copy_from_slice(f);
        deviations.copy_from_slice(drift);
        self.monitoring.finish(deviations, 1);
        (settled, unsettled.first().copied().unwrap_or(0.0))
    }
}

impl System for CompiledSystem {
    fn events(&self) -> Option<&dyn Events> {
        self.events.as_ref().map(|events| &**events as &dyn Events)
    }

    fn dim(&self) -> usize {
        self.vectors().dim()
    }

    fn work_len(&self) -> usize {
        let (n, m, groups) = (self.dim(), self.invariants.count, self.invariants.groups.len());
        let (values, jacobian) = (self.values.work_len(), self.jacobian.work_len());
        let pull = self.pull.as_ref().map_or(0, |pull| {
            m + self.invariants.nonzeros() + pull.work_len().max(values).max(jacobian)
        });
        let field = self.field.work_len().max(pull);
        let unrolled = self.unrolled.as_ref();
        let derivative = 2 * n + unrolled.map_or(field, |unrolled| unrolled.derivative.work_len());
        let settled =
            unrolled.and_then(|unrolled| unrolled.settled.as_ref()).map_or(0, |settled| {
                let kernels = settled
                    .monitor
                    .work_len()
                    .max(settled.mend.as_ref().map_or(0, Bound::work_len));
                kernels + 2 * (n + m) + groups + 2 * self.vectors().count() + 2
            });
        let untreated = self.untreated.as_ref().map_or(0, |untreated| untreated.work_len());
        let of_field =
            self.field_jacobian.as_ref().map_or(0, |jacobian| jacobian.work_len(derivative));
        let masses = self.masses.work_len();
        let all = [field, untreated, values, jacobian, derivative, settled, of_field, masses];
        all.into_iter().max().unwrap_or(0)
    }

    fn vector_name(&self, vector: usize) -> String {
        self.masses.vector_name(vector)
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.field.run(t, x, dx, work);
        if let Some(pull) = &self.pull {
            let (values, work) = work.split_at_mut(self.invariants.count);
            let (jacobian, work) = work.split_at_mut(self.invariants.nonzeros());
            self.values.run(t, x, values, work);
            self.jacobian.run(t, x, jacobian, work);
            pull.subtract(&self.invariants, (values, jacobian), dx, work);
        }
    }

    fn motion(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) -> bool {
        if self.has_motion {
            self.own_field().run(t, x, dx, work);
        }
        self.has_motion
    }

    fn vectors(&self) -> &Vectors {
        self.masses.vectors()
    }

    fn masses(&self, t: f64, x: &[f64], masses: &mut [f64], work: &mut [f64]) {
        self.masses.at(t, x, masses, work);
    }

    fn invariants(&self) -> &Invariants {
        &self.invariants
    }

    fn invariant_values(&self, t: f64, x: &[f64], f: &mut [f64], work: &mut [f64]) {
        self.values.run(t, x, f, work);
    }

    fn monitor(
        &self,
        t: f64,
        target: &[f64],
        x: &[f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
    ) {
        let unrolled = self.unrolled.as_ref();
        match unrolled.and_then(|unrolled| Some((unrolled, unrolled.settled.as_ref()?))) {
            Some((unrolled, settled)) => {
                unrolled.settle(
                    &settled.monitor,
                    (t, target, x),
                    [&[], &[]],
                    values,
                    deviations,
                    work,
                );
            }
            None => {
                self.invariant_values(t, x, values, work);
                self.invariants.deviations(values, target, deviations);
            }
        }
    }

    fn mend(
        &self,
        place: Place,
        (t, target, carried): (f64, &[f64], &[f64]),
        x: &mut [f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
    ) -> Option<Mended> {
        let unrolled = self.unrolled.as_ref()?;
        let SettlingKernels { settling, mend, .. } = unrolled.settled.as_ref()?;
        let (limit, passes) = match place {
            Place::End => (largest_innovation(self.vectors().count()), 1),
            Place::Within => (f64::INFINITY, settling.mend()?.passes_within()),
        };
        let mut found = None;
        for _ in 0..passes {
            let more = [&carried[settling.scales()], &[limit]];
            let (mended, unsettled) =
                unrolled.settle(mend.as_ref()?, (t, target, x), more, values, deviations, work);
            found = match settling.mend()? {
                Mend::Corrects if !all_finite(mended) => return None,
                Mend::Corrects => Some(Mended::Corrected { innovation: unsettled }),
                Mend::Projects { .. } if !unsettled.is_finite() => return None,
                Mend::Projects { .. } => {
                    Some(Mended::Projected { iterations: ITERATIONS, moved: unsettled })
                }
            };
            x.copy_from_slice(mended);
        }
        found
    }

    fn invariant_jacobian(&self, t: f64, x: &[f64], values: &mut [f64], work: &mut [f64]) {
        self.jacobian.run(t, x, values, work);
    }

    fn field_pattern(&self) -> Option<&Pattern> {
        // The formulas do not hold the pull.
        let jacobian = self.field_jacobian.as_ref().filter(|_| self.pull.is_none())?;
        Some(&jacobian.pattern)
    }

    fn field_jacobian(&self, t: f64, x: &[f64], values: &mut [f64], work: &mut [f64]) {
        let jacobian = self.field_jacobian.as_ref().expect("its places are known");
        jacobian.compute((t, x), values, work, |v, out, work| {
            self.field_derivative(t, x, v, out, work);
        });
    }

    fn field_derivative(&self, t: f64, x: &[f64], v: &[f64], out: &mut [f64], work: &mut [f64]) {
        let Some(unrolled) = &self.unrolled else {
            return self.difference_along(t, x, v, out, work);
        };
        let (both, work) = work.split_at_mut(2 * x.len());
        both[..x.len()].copy_from_slice(x);
        both[x.len()..].copy_from_slice(v);
        unrolled.derivative.run(t, both, out, work);
    }
}

/// Motion and DF in several lanes, for checks of claims.
#[derive(Clone)]
pub struct WideRates {
    motion: WideBound,
    jacobian: WideBound,
    /// True if F depends on the time.
    pub depends_on_time: bool,
}

impl WideRates {
    /// Set the parameters of one lane.
    pub fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        self.motion.rebind(lane, parameters);
        self.jacobian.rebind(lane, parameters);
    }

    /// Evaluate both at (t, x) in every lane.
    pub fn run(
        &self,
        t: &[f64],
        x: &[f64],
        motion: &mut [f64],
        jacobian: &mut [f64],
        work: &mut [f64],
    ) {
        self.motion.run(t, x, motion, work);
        self.jacobian.run(t, x, jacobian, work);
    }

    /// Length of the scratch.
    pub fn work_len(&self) -> usize {
        self.motion.work_len().max(self.jacobian.work_len())
    }
}

/// Description of a field's invariants for the numeric half.
fn invariants(field: &Field) -> Invariants {
    let pattern = field.jacobian.iter().map(|row| row.iter().map(|&(i, _)| i)).collect::<Pattern>();
    let groups = field.groups.iter().map(group).collect();
    let pattern = Arc::new(pattern);
    Invariants { count: field.invariants.len(), pattern, constraints: field.constraints, groups }
}
