//! Test of Jacobi's identity for the matrix of a Poisson system, at random points.

use super::{Examined, shown};
use crate::elaborate::model::Model;
use crate::poisson::{JacobiFailure, Poisson};
use crate::syntax::diagnostic::Diagnostic;
use holonome_words::option;

/// Name of the claim.
const JACOBI: &str = "Jacobi's identity";

/// Number of random points beside the start at which it is tested.
const POINTS: usize = 4;

/// Tests that the brackets of a Poisson system obey Jacobi's identity.
pub(super) fn jacobi_holds(model: &Model, found: &mut Examined) {
    let Some(poisson) = &model.poisson else { return };
    let states = Poisson::states_around(&model.initial, POINTS);
    let mut states = std::iter::once(&model.initial).chain(&states);
    let failure = states.find_map(|x| poisson.jacobi_failure(x, &model.parameter_values));
    let Some(JacobiFailure { places, sum, size }) = failure else { return };
    let names = model.component_names();
    let [a, b, c] = places.map(|place| &names[place as usize]);
    let message = format!(
        "the Poisson matrix breaks Jacobi's identity: {{{a}, {{{b}, {c}}}}} + {{{b}, {{{c}, {a}}}}} + {{{c}, {{{a}, {b}}}}} is {} ({:.1e} of its terms) at a random point",
        shown(sum),
        sum / size
    );
    let span = poisson.blocks.first().map_or(poisson.span, |block| block.span);
    let finding = Diagnostic::warning(message, span, "these are no Poisson brackets").help(format!(
        "correct the matrix; {allow_unverified} runs x' = J ∇H all the same: H is kept, and there need be no Casimirs",
        allow_unverified = option("allow_unverified")
    ));
    found.varying.push(JACOBI.to_string());
    found.unverified.push(finding);
}
