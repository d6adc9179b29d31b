//! Penalties: a constrained model run as a free one (`docs/penalty.md`), with its strength ω, its
//! start and its monitored quantities.

mod choice;
mod multipliers;
mod slow;

pub(crate) use choice::{Follow, Followed};
pub use multipliers::MeanMultipliers;
pub use slow::{Moved, SlowManifold};

use crate::backend::backend;
use crate::error::Error;
use crate::kernels::Parametric;
use crate::options::RunOptions;
use crate::problem::Problem;
use holonome_integrate::method::{Method, Needs};
use holonome_model::consistency;
use holonome_model::derived::Derived;
use holonome_model::elaborate::expression::MULTIPLIER;
use holonome_model::elaborate::model::Model;
use holonome_model::syntax::diagnostic::Severity;
use holonome_model::treatment::penalty::{Penalty, penalise};
use holonome_words::option;
use std::sync::Arc;

/// Facts about the penalty of a run.
pub struct Penalised {
    /// ω.
    pub omega: f64,
    /// Origin of ω, for the user.
    pub text: String,
    /// Distance by which the start was moved onto the slow manifold, if it was.
    pub moved: Option<Moved>,
    /// Slow manifold, for moving other starts onto it.
    pub slow: Option<SlowManifold>,
    /// Multipliers at a state; for templated models only if an observable uses them.
    pub multipliers: Option<MeanMultipliers>,
}

/// Fraction of its size by which a start may move and still be near the constraint set.
const WEAK: f64 = 0.1;

/// True if a method takes penalised models: methods that hold constraints themselves do not.
pub(crate) fn takes(method: &Method) -> bool {
    !matches!(
        method.scheme.needs,
        Needs::Coisotropic | Needs::Rolling | Needs::Body | Needs::FreeBody
    )
}

/// The problem that a run with these options integrates. If the options ask for a penalty and it
/// has something to act on, this is the penalised problem, with the facts about its penalty;
/// `options` then hold the final ω, found with pilot runs by `follow`.
///
/// # Errors
/// If the options make no sense, or a constraint cannot be penalised.
pub(crate) fn apply(
    problem: Problem,
    method: &Method,
    options: &mut RunOptions,
    warnings: &mut Vec<String>,
    follow: Follow,
) -> Result<(Problem, Option<Penalised>), Error> {
    let asked = options.penalty.is_some() || options.penalty_tolerance.is_some();
    let useless = match asked {
        false => {
            if options.slow_manifold.is_some() {
                warnings.push(format!(
                    "{slow_manifold} has no effect: there is no {penalty}",
                    slow_manifold = option("slow_manifold"),
                    penalty = option("penalty")
                ));
            }
            return Ok((problem, None));
        }
        true if !problem.model.is_hamiltonian() => {
            Some("the model is a vector field, and its constraints need none")
        }
        true if problem.model.constraints.is_empty() => Some("the model has no constraints"),
        true if !takes(method) => Some("the method holds the constraints itself"),
        true => None,
    };
    if let Some(reason) = useless {
        let name =
            if options.penalty.is_some() { option("penalty") } else { option("penalty_tolerance") };
        warnings.push(format!("{name} has no effect: {reason}"));
        (options.penalty, options.penalty_tolerance, options.slow_manifold) = (None, None, None);
        return Ok((problem, None));
    }
    let open = Open::new(&problem)?;
    let chosen = choice::choose((&problem, &open), method, options, warnings, follow)?;
    options.penalty = Some(crate::options::PenaltyStrength::Omega(chosen.omega));
    options.penalty_tolerance = None;
    let (penalised, mut known) =
        open.with_omega(&problem, chosen.omega, options.slow_manifold.unwrap_or(true))?;
    known.text = chosen.text;
    let size =
        problem.model.initial[..problem.model.degrees()].iter().map(|q| q * q).sum::<f64>().sqrt();
    if let Some(moved) = known.moved.filter(|moved| moved.position > WEAK * size) {
        warnings.push(format!(
            "the constraints give way: the forces at the start move the positions by {:.1e}, which are {size:.1e} from the origin; a larger omega holds them",
            moved.position
        ));
    }
    let claimed = |name: &&String| !problem.examined.varying.contains(name);
    for name in penalised.examined.varying.iter().filter(claimed) {
        warnings.push(format!(
            "integral '{name}' is constant on the constraint set only, not along the penalised motion: it is monitored and not held"
        ));
    }
    Ok((penalised, Some(known)))
}

/// A penalised model whose ω is not known yet, and the slow manifold for its start.
pub(crate) struct Open {
    /// With ω = 1.
    model: Model,
    penalty: Arc<Penalty>,
    manifold: SlowManifold,
}

impl Open {
    fn new(problem: &Problem) -> Result<Open, Error> {
        let model = penalise(&problem.model, 1.0).map_err(|reason| {
            Error::option(format!("{penalty}: {reason}", penalty = option("penalty")))
        })?;
        let penalty = model.penalty.clone().expect("a penalised model has one");
        let manifold = SlowManifold::new(&model, &penalty);
        Ok(Open { model, penalty, manifold })
    }

    /// The problem for a known ω, with its start moved onto the slow manifold if `slow` is set.
    fn with_omega(
        &self,
        problem: &Problem,
        omega: f64,
        slow: bool,
    ) -> Result<(Problem, Penalised), Error> {
        let mut model = self.model.clone();
        model.parameter_values[self.penalty.omega] = omega;
        // Its scales are those at the start, where ω has no effect.
        let manifold = self.manifold.rebound(&model.parameter_values);
        let moved = match slow {
            true => Some(manifold.put(&model.parameter_values, &mut model.initial).map_err(|reason| {
                Error::option(format!(
                    "{slow_manifold}: {reason}; a larger omega holds them, {slow_manifold_off} leaves the start where it is", slow_manifold = option("slow_manifold"), slow_manifold_off = option("slow_manifold").of("off")
                ))
            })?),
            false => None,
        };
        let model = Derived::new(model);
        let mut examined = consistency::examine_by(backend(), &model, problem.span);
        if let Some(finding) =
            examined.diagnostics.iter().find(|finding| finding.severity == Severity::Error)
        {
            let remedy = match slow {
                true => format!(
                    "a larger omega moves the start less, {slow_manifold_off} not at all",
                    slow_manifold_off = option("slow_manifold").of("off")
                ),
                false => "take a smaller omega".to_string(),
            };
            return Err(Error::option(format!(
                "{penalty} {}: {}; {remedy}",
                choice::shown(omega),
                finding.message,
                penalty = option("penalty")
            )));
        }
        examined.leave_out_unverified();
        let uses = model.observed().any(|q| q.depends & MULTIPLIER != 0);
        let form = match (&examined.field, &examined.rows) {
            (Some((field, _)), _) => Some(Ok(&**field)),
            (None, Some(rows)) => uses.then_some(Err(rows)),
            (None, None) => None,
        };
        let of_form = |form| {
            let manifold = manifold.rebound(&model.parameter_values);
            MeanMultipliers::new(&model, &self.penalty, form, manifold)
        };
        let multipliers = form.map(of_form);
        let penalised = Problem { model, examined, ..problem.clone() };
        let known = Penalised {
            omega,
            text: String::new(),
            moved,
            slow: slow.then_some(manifold),
            multipliers,
        };
        Ok((penalised, known))
    }
}
