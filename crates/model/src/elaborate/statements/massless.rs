//! Bodies without mass, as test bodies; see [`massless`](crate::massless).

use super::forces::balance;
use super::layout::ModelLayout;
use crate::elaborate::expression;
use crate::elaborate::model::{
    Drawing, Dynamics, ENERGY_BALANCE, Event, EventAction, Force, Massless, Model,
};
use crate::legendre::Legendre;
use crate::massless::{Motion, TestBodies};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use std::sync::Arc;

/// Name of the force that the other bodies exert. No name in a file has spaces.
const FIELD: &str = "field of the bodies with mass";

/// Test bodies, and what their motion adds to a model.
pub(super) struct Found {
    bodies: TestBodies,
    motion: Motion,
}

impl Found {
    /// The bodies of H, whose motion takes the place of that by H; `None` if it has none. With a
    /// Lagrangian, their momenta are velocities from here on.
    ///
    /// # Errors
    /// If a body without mass is no test body, or if the mass of one differs between trajectories,
    /// as `varies` tells.
    pub(super) fn new(
        dynamics: &mut Dynamics,
        legendre: Option<&mut Legendre>,
        places: &ModelLayout,
        (values, varies): (&[f64], &[bool]),
    ) -> Result<Option<Found>, Diagnostic> {
        let Dynamics::Hamiltonian(h, span) = dynamics else { return Ok(None) };
        let name = |place| places.parameter_name(place);
        let found = TestBodies::find(h, places.degrees, (values, &name));
        let Some(bodies) = found else { return Ok(None) };
        if bodies.masses().any(|place| varies.get(place) == Some(&true)) {
            let message = format!(
                "{} is 0 in the first trajectory and differs between trajectories",
                bodies.name()
            );
            return Err(Diagnostic::error(message, *span, "divides momenta by it").help(
                "a body without mass has equations of its own: vary masses that are not 0, and run this one apart",
            ));
        }
        let mut motion = bodies.motion(h, *span)?;
        if let Some(legendre) = legendre {
            legendre.momenta = bodies.momenta(&legendre.momenta, *span)?;
        }
        *h = std::mem::take(&mut motion.hamiltonian);
        Ok(Some(Found { bodies, motion }))
    }

    /// Takes the limit of all else that the model has.
    ///
    /// # Errors
    /// If a force or a condition does not go with a body without mass.
    pub(super) fn settle(self, model: &mut Model) -> Result<(), Diagnostic> {
        let Found { bodies, motion: Motion { field, energy, .. } } = self;
        let is_impact = |event: &&Event| matches!(event.action, EventAction::Impact { .. });
        let impacts = model.events.iter().filter(is_impact).map(|event| &event.quantity);
        let ties = model.constraints.iter().map(|quantity| ("constraint", quantity));
        for (what, quantity) in ties.chain(impacts.map(|quantity| ("impact", quantity))) {
            let name = format!("{what} '{}'", quantity.name);
            bodies.demand_apart(&quantity.functional, (&name, quantity.span))?;
        }
        for force in &mut model.forces {
            let name = format!("force '{}'", force.name);
            force.functional = bodies.force(&force.functional, (&name, force.span))?;
        }
        let own = model.integrals.iter_mut().filter(|integral| integral.name != ENERGY_BALANCE);
        let measured = model.measures.iter_mut().map(|measure| &mut measure.quantity);
        let watched = model.events.iter_mut().map(|event| &mut event.quantity);
        let drawn = model.drawings.iter_mut().flat_map(Drawing::quantities_mut);
        let seen = model.observables.iter_mut().chain(measured).chain(watched).chain(drawn);
        for quantity in own.chain(seen) {
            quantity.functional = bodies.quantity(&quantity.functional);
        }
        let acts = field.is_some();
        let span = model.hamiltonian().map_or(Span::default(), |(_, span)| span);
        if acts && model.conserves_energy() {
            model.integrals.push(balance(energy.clone(), span));
        }
        model.forces.extend(field.map(|functional| Force {
            name: FIELD.to_string(),
            span,
            functional,
            depends: expression::POSITION | expression::TIME,
        }));
        let (positions, energy) = (bodies.positions().to_vec(), acts.then_some(energy));
        model.massless = Some(Arc::new(Massless { positions, energy }));
        Ok(())
    }
}
