//! Runs over a system of the user's own: Rust code in place of a model's text.

use crate::error::Error;
use crate::footprint::Footprint;
use crate::options::{RunOptions, Settings};
use crate::output::Output;
use crate::recording::{Progress, SHOW_INTERVAL, Wanted, look_every, progress};
use crate::recording::{UnitLabels, VariableLayout};
use crate::serial::NumberArray;
use crate::simulation::{motion_warnings, plan, unused_options};
use crate::solution::Solution;
use crate::store::{ArrayLayout, Dimension, Layout, StoreError};
use crate::summary::{Drifts, FinalState, RunCost, Summary, large_drifts, lost};
use crate::unheld::Unheld;
use holonome_integrate::failure::Failure;
use holonome_integrate::method::{Method, MethodTreatment};
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::Plan;
use holonome_integrate::run::{Outcome, run};
use holonome_integrate::state::StepState;
use holonome_integrate::system::{GroupKind, Invariants, System};
use holonome_model::treatment::feedback::gain_name;
use holonome_model::treatment::{InvariantGroup, InvariantKind};
use holonome_words::option;
use std::sync::Arc;
use std::time::Instant;

/// Remedy for a claim of a system that fails.
const OF_FUNCTIONS: &str = "correct the function, or leave it out";

/// Largest start residual of a constraint, relative to the terms that cancel in it, that counts as
/// met.
const MET: f64 = 1e-8;

/// Run `system` from (t₀, x₀) in memory. The state is recorded as `x`, energies and integrals under
/// their names, their drifts as `drift.NAME`, and those of constraints as `residual.NAME`.
///
/// The method is one of the Runge–Kutta schemes, alone or under `corrected`, `projection` or
/// `symmetric-projection`: methods that need formulas (feedback, penalties, structure-preserving
/// steps) need a [`Problem`](crate::Problem).
///
/// # Errors
/// If the options make no sense or do not suit a system; if x₀ is not a state of it or off its
/// constraints; if the run fails, with the trajectory up to there.
pub fn integrate(
    system: &dyn System,
    start: (f64, &[f64]),
    options: &RunOptions,
) -> Result<Solution, Error> {
    integrate_while(system, start, options, &mut |_| Control::Continue)
}

/// Run [`integrate`] until `watch` returns [`Control::Stop`]; it is called every few hundredths of
/// a second.
///
/// # Errors
/// As [`integrate`].
pub fn integrate_while(
    system: &dyn System,
    (t0, x0): (f64, &[f64]),
    options: &RunOptions,
    watch: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Solution, Error> {
    let method = options.method;
    let mut warnings = checked(system, (t0, x0), options)?;
    let invariants = system.invariants();
    let plan = plan(options, (t0, false), method, &mut warnings)?;
    let recorded = Recorded::new(system, options.record.as_deref())?;
    let layout = recorded.layout(&plan);
    let numbers = recorded.rows.iter().map(|row| row.width).sum::<usize>() as f64
        * plan.sample_count() as f64;
    let footprint = Footprint {
        disk: 8.0 * numbers,
        memory: 8.0 * (40 * system.dim() + system.work_len()) as f64,
    };
    let mut output = Output::Memory(footprint.in_memory(&layout)?);
    let mut state = StepState::new(&plan, system, x0, None);
    let initial: Vec<_> =
        invariants.groups.iter().map(|group| initial_value(group, &state.values)).collect();
    let groups = groups(invariants);
    let started = Instant::now();
    let mut recorder = Recorder {
        system,
        recorded: &recorded,
        plan: &plan,
        groups: &groups,
        target: Arc::clone(&state.target),
        values: vec![0.0; invariants.count],
        deviations: vec![0.0; invariants.groups.len()],
        work: vec![0.0; system.work_len()],
        output: &mut output,
        watch,
        shown: started,
        steps: 0,
    };
    let outcome = run_holding(system, &plan, &mut state, &mut recorder);
    let wall_seconds = started.elapsed().as_secs_f64();
    let samples = output.kept();
    let arrays = output.into_parts().1.expect("the output is memory");
    let of = (system, &plan, &groups[..]);
    let mut summary = summary(of, &state, &initial, wall_seconds, warnings);
    summary.interrupted = !matches!(outcome, Ok(Outcome::Finished));
    match outcome {
        Ok(_) => Ok(Solution { summary, arrays, interpolant: None }),
        Err(failure) => {
            let (failure, kept) = (Box::new(failure), Some(Box::new(arrays)));
            Err(Error::Failed { failure, monitored: None, out: None, samples, kept })
        }
    }
}

/// Refuse what a run over a system cannot do; returns warnings about the rest.
fn checked(
    system: &dyn System,
    (t0, x0): (f64, &[f64]),
    options: &RunOptions,
) -> Result<Vec<String>, Error> {
    let method = options.method;
    check_method(method)?;
    refuse_unkept(options)?;
    check_start(system, t0, x0)?;
    let mut warnings = unused_options(options, &Settings::default(), &method, false);
    warnings.extend(of_models(options));
    let held = system.invariants().corrected_rows().contains(&true);
    if method.treatment != MethodTreatment::Plain && !held {
        let name = method.treatment.facts().name;
        warnings.push(format!("the system has no invariants, so `{name}` does what `plain` does"));
    }
    Ok(warnings)
}

/// Summary of a run to its end.
fn summary(
    (system, plan, groups): (&dyn System, &Plan, &[InvariantGroup]),
    state: &StepState,
    initial: &[Option<NumberArray>],
    wall_seconds: f64,
    mut warnings: Vec<String>,
) -> Summary {
    let drift = Summary::drift_of(groups, &[], initial, (state, plan.span()));
    warnings.extend(large_drifts(&drift, false));
    warnings.extend(motion_warnings(state, system, groups, plan, OF_FUNCTIONS));
    let hamiltonian =
        system.invariants().groups.iter().any(|group| group.kind == GroupKind::Hamiltonian);
    Summary {
        model: "system".to_string(),
        method: plan.method.to_string(),
        t: state.t,
        steps: state.step,
        state: FinalState::new(vec![VariableLayout::vector("x", state.x.len())], state.x.clone()),
        state_size: None,
        heated: false,
        lost: lost(&drift, false),
        drift: Drifts { all: drift, hamiltonian },
        events: Vec::new(),
        ended_by: None,
        measures: Vec::new(),
        cost: RunCost::new(&state.cost, wall_seconds),
        units: UnitLabels::new(),
        out: None,
        renamed: Vec::new(),
        gain: None,
        trial: None,
        penalty: None,
        stability: None,
        error: None,
        interrupted: false,
        warnings,
    }
}

/// Refuse methods that need more than a field and its invariants.
fn check_method(method: Method) -> Result<(), Error> {
    method.check()?;
    if !method.scheme.follows_fields() || method.scheme.needs_formulas() {
        return Err(Error::option(format!(
            "`{method}` is made from the formulas of a model, and a system of functions has none: write the model as text, or take a Runge-Kutta scheme as corrected:rk4"
        )));
    }
    if method.treatment == MethodTreatment::Feedback {
        return Err(Error::option(format!(
            "`{method}` adds a term of formulas to the field, which a system of functions does not have: `corrected:{}` holds the same invariants",
            method.scheme.name
        )));
    }
    Ok(())
}

/// Refuse a start that is not a state of the system, or off its constraints.
fn check_start(system: &dyn System, t0: f64, x0: &[f64]) -> Result<(), Error> {
    let (n, invariants) = (system.dim(), system.invariants());
    if x0.len() != n {
        return Err(Error::option(format!(
            "the start has {} numbers, and a state of the system {n}",
            x0.len()
        )));
    }
    if system.vectors().dim() != n {
        let made = system.vectors().dim();
        return Err(Error::option(format!(
            "the system's vectors make up {made} numbers, and its state has {n}"
        )));
    }
    if let Some(problem) = invariants.inconsistency(n) {
        return Err(Error::option(format!(
            "the system describes its invariants wrongly: {problem}"
        )));
    }
    let mut work = vec![0.0; system.work_len()];
    let (mut f, mut df) = (vec![0.0; invariants.count], vec![0.0; invariants.nonzeros()]);
    system.invariant_values(t0, x0, &mut f, &mut work);
    system.invariant_jacobian(t0, x0, &mut df, &mut work);
    let largest = x0.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    for (row, f) in f[..invariants.constraints].iter().enumerate() {
        let terms: f64 =
            df[invariants.row(row).range()].iter().map(|entry| entry.abs() * largest).sum();
        if f.abs() > MET * terms {
            return Err(Error::option(format!(
                "the start misses constraint '{}' by {:.1e}: start on the constraint set",
                invariants.row_name(row),
                f.abs()
            )));
        }
    }
    check_gradients(system, (t0, x0), &df)
}

/// Refuse gradients `df` at the start that contradict the values: along a direction without
/// symmetries the values change at another rate. A rate that depends on the length of its
/// difference quotient says nothing.
fn check_gradients(system: &dyn System, (t0, x0): (f64, &[f64]), df: &[f64]) -> Result<(), Error> {
    const DIFFERENT: f64 = 1e-3;
    const LENGTHS: [f64; 2] = [1e-5, 1e-4];
    let invariants = system.invariants();
    let largest = x0.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let rest = if largest > 0.0 { largest } else { 1.0 };
    let direction: Vec<f64> = (1..)
        .zip(x0)
        .map(|(i, x)| {
            let part = (f64::from(i) * 0.618_033_988_749_894_9).fract() - 0.5;
            (part + 0.5f64.copysign(part)) * if *x == 0.0 { rest } else { x.abs() }
        })
        .collect();
    let mut work = vec![0.0; system.work_len()];
    let mut values = |along: f64| {
        let x: Vec<f64> = x0.iter().zip(&direction).map(|(x, v)| x + along * v).collect();
        let mut f = vec![0.0; invariants.count];
        system.invariant_values(t0, &x, &mut f, &mut work);
        f
    };
    let [short, long] = LENGTHS.map(|length| {
        let (ahead, behind) = (values(length), values(-length));
        ahead
            .iter()
            .zip(behind)
            .map(|(ahead, behind)| (ahead - behind) / (2.0 * length))
            .collect::<Vec<f64>>()
    });
    for (row, (short, long)) in short.iter().zip(&long).enumerate() {
        let terms = invariants.row(row).entries().map(|(p, column)| df[p] * direction[column]);
        let (rate, size) =
            terms.fold((0.0, 0.0f64), |(rate, size), term| (rate + term, size + term.abs()));
        let missed = (rate - short).abs();
        if missed > DIFFERENT * size.max(short.abs()) && (short - long).abs() < 0.1 * missed {
            return Err(Error::option(format!(
                "the gradient of '{}' contradicts its values at the start: along a direction they change at the rate {short:.6e}, and by the gradient at {rate:.6e}; correct the gradient",
                invariants.row_name(row)
            )));
        }
    }
    Ok(())
}

/// Refuse options that ask for results in a form that a system of functions does not have.
fn refuse_unkept(options: &RunOptions) -> Result<(), Error> {
    let (out, interpolant) = (option("out"), option("interpolant"));
    if options.out.is_some() {
        let remedy =
            "leave it out and store the arrays of the solution, or write the model as text";
        return Err(Error::option(format!(
            "{out}: a system of functions is run in memory: {remedy}"
        )));
    }
    if options.interpolant {
        let remedy = format!("ask for more {}, or write the model as text", option("samples"));
        return Err(Error::option(format!(
            "{interpolant}: a system of functions has its samples only: {remedy}"
        )));
    }
    Ok(())
}

/// Warnings about given options that only models use.
fn of_models(options: &RunOptions) -> Vec<String> {
    let given = [
        (option("reference"), options.reference.is_some()),
        (option("penalty"), options.penalty.is_some() || options.penalty_tolerance.is_some()),
        (option("error"), options.error),
    ];
    let unused = given.into_iter().filter(|(_, given)| *given);
    unused
        .map(|(name, _)| format!("{name} has no effect: a system of functions is run without it"))
        .collect()
}

/// Run `plan`. If a claim fails on the way, the run goes on over a system that does not hold it.
fn run_holding(
    system: &dyn System,
    plan: &Plan,
    state: &mut StepState,
    recorder: &mut Recorder,
) -> Result<Outcome, Failure<StoreError>> {
    loop {
        let outcome =
            if state.failed_claims.is_empty() || plan.method.treatment == MethodTreatment::Plain {
                run(plan, system, state, recorder)?
            } else {
                let failed = |group| state.failed_claims.iter().any(|claim| claim.group == group);
                let unheld = Unheld::new(system, failed);
                run(plan, &unheld, state, recorder)?
            };
        if outcome != Outcome::ClaimFailed {
            return Ok(outcome);
        }
    }
}

/// Groups of a system's invariants in the terms of a summary.
fn groups(invariants: &Invariants) -> Vec<InvariantGroup> {
    let kind = |kind| match kind {
        GroupKind::Constraint => InvariantKind::Constraint,
        GroupKind::Hidden => InvariantKind::Hidden(1),
        GroupKind::Hamiltonian => InvariantKind::Hamiltonian,
        _ => InvariantKind::Integral,
    };
    let group = |group: &holonome_integrate::system::Group| InvariantGroup {
        name: group.name.clone(),
        kind: kind(group.kind),
        members: group.members.clone(),
        monitored_only: group.monitored_only,
    };
    invariants.groups.iter().map(group).collect()
}

/// Value of a group at the start; `None` for a constraint.
fn initial_value(group: &holonome_integrate::system::Group, f: &[f64]) -> Option<NumberArray> {
    let rows: Vec<f64> = group.members.rows().map(|(row, _)| f[row]).collect();
    match (group.kind, &rows[..]) {
        (GroupKind::Constraint | GroupKind::Hidden, _) => None,
        (_, [value]) => Some(NumberArray::of(*value)),
        _ => Some(NumberArray { dimensions: vec![rows.len()], numbers: rows }),
    }
}

/// Recorded arrays of each sample.
struct Recorded {
    rows: Vec<Row>,
}

/// One recorded array, and the source of its numbers.
struct Row {
    name: String,
    description: String,
    width: usize,
    from: From,
}

enum From {
    State,
    /// Rows of F with these numbers.
    Values(Vec<usize>),
    /// Deviation of the group with this number.
    Deviation(usize),
}

impl Recorded {
    fn new(system: &dyn System, only: Option<&[String]>) -> Result<Recorded, Error> {
        let mut wanted = Wanted::new(only);
        let mut rows = Vec::new();
        let mut add = |name: String, description: String, width: usize, from: From| {
            if let Some(name) = wanted.name(name, "_") {
                rows.push(Row { name, description, width, from });
            }
        };
        add("x".to_string(), "state".to_string(), system.dim(), From::State);
        let groups = &system.invariants().groups;
        for (k, group) in self::groups(system.invariants()).into_iter().enumerate() {
            if !matches!(groups[k].kind, GroupKind::Constraint | GroupKind::Hidden) {
                let values: Vec<usize> = group.members.rows().map(|(row, _)| row).collect();
                add(
                    group.name.clone(),
                    format!("first integral {}", group.name),
                    values.len(),
                    From::Values(values),
                );
            }
        }
        for (k, group) in self::groups(system.invariants()).into_iter().enumerate() {
            let of = gain_name(&group.name, group.kind);
            let (word, description) = match group.kind {
                InvariantKind::Constraint | InvariantKind::Hidden(_) => {
                    ("residual", "residual of constraint")
                }
                _ => ("drift", "drift of"),
            };
            add(format!("{word}.{of}"), format!("{description} {of}"), 1, From::Deviation(k));
        }
        wanted.check()?;
        Ok(Recorded { rows })
    }

    fn layout(&self, plan: &Plan) -> Layout {
        let times = (0..plan.sample_count()).map(|i| plan.sample_time(i)).collect();
        let mut layout = Layout { times, ..Layout::default() };
        for row in &self.rows {
            let dimensions = match row.width {
                1 if !matches!(row.from, From::State) => Vec::new(),
                width => vec![layout.dimension(Dimension::component(width))],
            };
            let (name, description) = (row.name.clone(), row.description.clone());
            layout.arrays.push(ArrayLayout {
                name,
                description,
                dimensions,
                ..ArrayLayout::default()
            });
        }
        layout
    }
}

/// Observer that keeps the samples in memory and reports progress.
struct Recorder<'a> {
    system: &'a dyn System,
    recorded: &'a Recorded,
    plan: &'a Plan,
    groups: &'a [InvariantGroup],
    target: Arc<Vec<f64>>,
    /// F at a sample, and the deviations of its groups.
    values: Vec<f64>,
    deviations: Vec<f64>,
    work: Vec<f64>,
    output: &'a mut Output,
    watch: &'a mut dyn FnMut(&Progress) -> Control,
    shown: Instant,
    steps: u64,
}

impl Observer for Recorder<'_> {
    type Error = StoreError;

    fn sample(&mut self, _index: usize, t: f64, x: &[f64]) -> Result<(), StoreError> {
        let Recorder { system, target, values, deviations, work, .. } = self;
        system.monitor(t, target, x, values, deviations, work);
        let picked = |row: &Row| -> Vec<f64> {
            match &row.from {
                From::State => x.to_vec(),
                From::Values(rows) => rows.iter().map(|&row| values[row]).collect(),
                From::Deviation(group) => vec![deviations[*group]],
            }
        };
        let rows: Vec<Vec<f64>> = self.recorded.rows.iter().map(picked).collect();
        self.output.append_many(1, &rows).map_err(|(_, error)| error)
    }

    fn rewind(&mut self, state: &StepState) -> Result<(), StoreError> {
        self.output.rewind(state.next_sample, state)
    }

    fn step(&mut self, state: &StepState) -> Result<Control, StoreError> {
        self.steps += 1;
        if !self.steps.is_multiple_of(look_every()) || self.shown.elapsed() < SHOW_INTERVAL {
            return Ok(Control::Continue);
        }
        self.shown = Instant::now();
        Ok((self.watch)(&progress(self.plan, self.groups, state)))
    }
}
