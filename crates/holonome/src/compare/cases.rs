//! Cases of a comparison: the runs that it consists of.

use super::budget;
use super::trial::Monitor;
use super::{CompareOptions, Failed, MeasuredRun, Row, RowPenalty};
use crate::error::Error;
use crate::options::{RTOL, RunOptions, StepSize};
use crate::problem::Problem;
use crate::simulation::{Simulation, prepare};
use holonome_integrate::method::{Method, MethodTreatment, Needs};
use holonome_words::option;

/// A method and its steps.
pub(super) struct Case {
    pub(super) method: Method,
    pub(super) steps: Steps,
}

/// Source of a case's steps.
#[derive(Clone, Copy)]
pub(super) enum Steps {
    Fixed(f64),
    Tolerance(f64, f64),
    Budget(u64),
}

/// True if a method chooses its steps when allowed to.
fn adapts(method: &Method) -> bool {
    method.scheme.adaptive() && !method.treatment.needs_equal_steps()
}

/// All cases: each method with every step, tolerance or budget that it can use. A method that can
/// choose its steps takes the tolerances, and the fixed steps only if there are no tolerances; the
/// others take the steps.
pub(super) fn cases(options: &CompareOptions) -> Result<Vec<Case>, Error> {
    let methods = &options.methods;
    check(methods)?;
    let refused = |message: String| Err(Error::option(message));
    let (budget, step) = (option("budgets").by_flag("budget"), option("steps").by_flag("step"));
    if options.budgets.contains(&0) {
        return refused(format!("{budget} must be positive, but it is 0"));
    }
    if !options.budgets.is_empty() {
        if options.run.every.is_some() {
            let (every, samples) = (option("every"), option("samples"));
            return refused(format!(
                "{every} asks for steps of its own, and {budget} for others: take {samples}"
            ));
        }
        if !(options.steps.is_empty() && options.rtol.is_empty() && options.atol.is_empty()) {
            let (rtol, atol) = (option("rtol"), option("atol"));
            return refused(format!(
                "{budget} chooses steps and tolerances itself: leave out {step}, {rtol} and {atol}"
            ));
        }
        return Ok(product(methods, |_| {
            options.budgets.iter().map(|&b| Steps::Budget(b)).collect()
        }));
    }
    let tolerances = tolerances(options)?;
    let fixed: Vec<Steps> = options.steps.iter().map(|&h| Steps::Fixed(h)).collect();
    if let (Some(method), true) = (methods.iter().find(|m| !adapts(m)), fixed.is_empty()) {
        return refused(format!(
            "{}: it does not choose its steps, they are fixed: add {} or {}",
            option("method").with(method),
            step.of("h1,h2,…"),
            budget.of("b1,b2,…")
        ));
    }
    Ok(product(methods, |method| {
        match adapts(method) && (fixed.is_empty() || !tolerances.is_empty()) {
            true => tolerances.clone(),
            false => fixed.clone(),
        }
    }))
}

/// Warnings about options that are given but used by no method.
pub(super) fn unused(options: &CompareOptions, cases: &[Case]) -> Vec<String> {
    let mut warnings = Vec::new();
    let (rtol, atol) = (option("rtol"), option("atol"));
    let step = option("steps").by_flag("step");
    let tolerances = !(options.rtol.is_empty() && options.atol.is_empty());
    if tolerances && !cases.iter().any(|case| matches!(case.steps, Steps::Tolerance(..))) {
        warnings.push(format!("{rtol} or {atol} has no effect: no method here chooses its steps"));
    }
    if !options.steps.is_empty() && !cases.iter().any(|case| matches!(case.steps, Steps::Fixed(_)))
    {
        warnings.push(format!("{step} has no effect: every method here chooses its steps from the tolerances; without {rtol} and {atol} they are fixed"));
    }
    warnings
}

fn check(methods: &[Method]) -> Result<(), Error> {
    methods.iter().try_for_each(Method::check)?;
    if let Some((_, method)) =
        methods.iter().enumerate().find(|(k, method)| methods[..*k].contains(method))
    {
        return Err(Error::option(format!(
            "{} is there twice: leave one out",
            option("method").with(method)
        )));
    }
    if let Some(method) = methods.iter().find(|method| method.scheme.needs == Needs::HeatBath) {
        return Err(Error::option(format!(
            "{}: a comparison measures the errors of orbits, which noise drives apart; compare averages over ensembles",
            option("method").with(method)
        )));
    }
    if methods.is_empty() {
        return Err(Error::option(format!(
            "there is nothing to compare: name methods, for example {}",
            option("methods").of("rk4, corrected:rk4")
        )));
    }
    Ok(())
}

fn product(methods: &[Method], of: impl Fn(&Method) -> Vec<Steps>) -> Vec<Case> {
    methods
        .iter()
        .flat_map(|&method| of(&method).into_iter().map(move |steps| Case { method, steps }))
        .collect()
}

/// Tolerances of the comparison; the default of a run if neither they nor steps are given.
fn tolerances(options: &CompareOptions) -> Result<Vec<Steps>, Error> {
    let (mut rtol, atol) = (options.rtol.clone(), &options.atol);
    if rtol.is_empty() {
        rtol = match (atol.len(), options.steps.len()) {
            (0, 1..) => return Ok(Vec::new()),
            (0, 0) => vec![RTOL],
            (many, _) => vec![RTOL; many],
        };
    }
    let pair = |(k, &relative): (usize, &f64)| match atol.len() {
        0 => Ok(Steps::Tolerance(relative, 0.0)),
        1 => Ok(Steps::Tolerance(relative, atol[0])),
        many if many == rtol.len() => Ok(Steps::Tolerance(relative, atol[k])),
        many => Err(Error::option(format!(
            "{} has {many} values and {} {}: give one for all, or one for each",
            option("atol"),
            option("rtol"),
            rtol.len()
        ))),
    };
    rtol.iter().enumerate().map(pair).collect()
}

impl Case {
    /// True if this method does not use an option, and another one does.
    fn another(&self, all: &[Case], uses: &dyn Fn(&Method) -> bool) -> bool {
        !uses(&self.method) && all.iter().any(|case| uses(&case.method))
    }

    /// Options of this case's run; without steps if it has a budget.
    fn options(&self, common: &RunOptions, all: &[Case]) -> RunOptions {
        let mut options =
            RunOptions { method: self.method, step: StepSize::default(), ..common.clone() };
        // An option that only another method here uses is not a mistake; an option that none uses
        // is a warning of each run.
        let another = |uses: &dyn Fn(&Method) -> bool| self.another(all, uses);
        if another(&|m| m.treatment == MethodTreatment::Feedback) {
            (options.gain, options.allow_unstable) = (None, false);
        }
        if another(&|m| m.treatment.iterates()) {
            options.projection_tolerance = None;
        }
        if another(&|m| m.scheme.needs.has_beta()) {
            options.beta = None;
        }
        if another(&|m| !m.scheme.facts().explicit) {
            options.newton_tolerance = None;
        }
        if another(&|m| m.treatment != MethodTreatment::Plain) {
            options.reference = None;
        }
        if another(&crate::penalty::takes) {
            (options.penalty, options.penalty_tolerance, options.slow_manifold) =
                (None, None, None);
        }
        match self.steps {
            Steps::Fixed(h) => options.step = StepSize::Fixed(h),
            Steps::Tolerance(rtol, atol) => options.step = StepSize::Adaptive { rtol, atol },
            Steps::Budget(_) => {}
        }
        options
    }

    /// Compile the case's run. A refused gain or budget depends on the step, so it is a result like
    /// others.
    ///
    /// # Errors
    /// If the options make no sense for the model at any step.
    pub(super) fn prepare(
        &self,
        problem: &Problem,
        common: &RunOptions,
        all: &[Case],
        monitor: &Monitor<'_>,
    ) -> Result<Result<Simulation, Failed>, Error> {
        let options = self.options(common, all);
        let mut problem = problem.clone();
        if self.another(all, &|m| m.scheme.needs == Needs::Stiff) {
            problem.settings.stiff = None;
        }
        let problem = &problem;
        let made = match self.steps {
            Steps::Budget(budget) if adapts(&self.method) => {
                budget::tolerance(problem, options, budget, monitor)
            }
            Steps::Budget(budget) => budget::step(problem, options, budget, monitor),
            _ => prepare(problem.clone(), options).map(Ok),
        };
        match made {
            Err(error @ Error::Gain { .. }) => Ok(Err(Failed::from(error))),
            made => made,
        }
    }

    /// Row of this case; `extrapolated` is true for that of the extrapolation with twice its ω.
    pub(super) fn row(
        &self,
        run: Option<&Simulation>,
        extrapolated: bool,
        outcome: Result<MeasuredRun, Failed>,
    ) -> Row {
        let used = run.map(|run| run.options.step);
        let penalty = run.and_then(|run| run.penalty.as_ref());
        let (step, tolerance, budget) = match self.steps {
            Steps::Fixed(h) => (Some(h), None, None),
            Steps::Tolerance(rtol, atol) => (None, Some((rtol, atol)), None),
            Steps::Budget(budget) if adapts(&self.method) => {
                (None, used.and_then(StepSize::tolerances), Some(budget))
            }
            Steps::Budget(budget) => (used.and_then(StepSize::fixed), None, Some(budget)),
        };
        let (rtol, atol) = tolerance.unzip();
        let penalty = penalty.map(|penalty| RowPenalty { omega: penalty.omega, extrapolated });
        Row { method: self.method.to_string(), step, rtol, atol, budget, penalty, outcome }
    }
}
