//! Rows of the registry of schemes: names, facts, needs and sources, and the step itself.
//!
//! Facts that follow from coefficients are computed from them; those of a map are stated with it.

use std::fmt;
use std::sync::LazyLock;

use serde::Serialize;

use super::collocation::{CONVERGES_TO, Collocation};
use super::stiff_collocation::StiffCollocation;
use super::{SlidingFn, StepFn};
use crate::tableau::{Tableau, boundary};

/// A base scheme: its row of the registry.
#[derive(Debug)]
pub struct Scheme {
    /// Name on the command line.
    pub name: &'static str,
    /// Names elsewhere; letter case, hyphens and underscores do not matter.
    pub other_names: &'static [&'static str],
    /// Requirements on a model.
    pub needs: Needs,
    /// One line on the scheme and its use.
    pub description: &'static str,
    /// Source.
    pub citation: &'static str,
    /// Text of the scheme's own file, whose head comment a user reads; may be empty.
    pub file: &'static str,
    /// Form of the step.
    pub step: Step,
}

/// Facts about a scheme, as a user reads them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SchemeFacts {
    /// Order of convergence.
    pub order: u32,
    /// True if stepping forward and back returns to the start.
    pub symmetric: bool,
    /// True if the map preserves the symplectic form.
    pub symplectic: bool,
    /// True if a step solves no equations.
    pub explicit: bool,
}

/// Form of a scheme's step.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// An explicit Runge–Kutta method of these coefficients.
    RungeKutta(&'static LazyLock<Tableau>),
    /// Collocation, whose stages are found by fixed-point iteration.
    Collocation(&'static LazyLock<Collocation>),
    /// Collocation for stiff fields, whose stages are found with the Jacobian of the field.
    Stiff(&'static LazyLock<StiffCollocation>),
    /// Taylor series of the solution to this order, which needs the formulas of the field.
    Taylor(u32),
    /// A map of the phase space.
    Map(StepFn, SchemeFacts),
    /// Slides along fibres around an unconstrained map.
    Sliding(SlidingFn, SchemeFacts),
}

/// Coordinates of bodies that move about others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeplerCoordinates {
    /// Jacobi coordinates: each body from the centre of mass of those within its orbit.
    Jacobi,
    /// Democratic heliocentric coordinates: all bodies of a centre from this, with their momenta in
    /// the frame of the centre of mass.
    Democratic,
}

/// Requirements of a scheme on a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A vector field: of a model with constraints the Dirac extension, which has them in it.
    Field,
    /// A vector field of formulas that have a Taylor series.
    Series,
    /// A vector field; the scheme is symplectic for that of a Hamiltonian without constraints.
    Canonical,
    /// A Hamiltonian without constraints.
    Hamiltonian,
    /// A Hamiltonian with constraints whose brackets vanish on the constraint set: all g(q), and
    /// some g(q, p).
    Coisotropic,
    /// A Hamiltonian with rolling constraints, and perhaps others on positions.
    Rolling,
    /// A Hamiltonian whose parts have known flows.
    Flows,
    /// A Hamiltonian of motions of Kepler and a coupling of positions, without constraints, in these
    /// coordinates.
    KeplerFlows(KeplerCoordinates),
    /// A rigid body whose attitude is a rotation matrix.
    Body,
    /// A rigid body without torques, in the frame of its principal axes.
    FreeBody,
    /// A Hamiltonian ½ pᵀM⁻¹p + V(q, t) with a constant mass matrix M, without constraints.
    Natural,
    /// [`Needs::Natural`] with a part of V that is marked as the stiff one.
    Stiff,
    /// [`Needs::Natural`] in a heat bath, with constraints on positions or without any.
    HeatBath,
    /// A Poisson system: a Hamiltonian beside a matrix of brackets.
    Poisson,
    /// A Poisson system with a Hamiltonian whose parts have known flows.
    PoissonFlows,
}

impl Needs {
    /// True if the model has to contain formulas of a known form.
    pub fn recognised(self) -> bool {
        matches!(
            self,
            Needs::Flows
                | Needs::KeplerFlows(_)
                | Needs::Body
                | Needs::FreeBody
                | Needs::PoissonFlows
        )
    }

    /// True for steps that take no forces that depend on momenta: these act apart from them.
    pub fn sets_forces_apart(self) -> bool {
        matches!(
            self,
            Needs::Flows | Needs::KeplerFlows(_) | Needs::Natural | Needs::Stiff | Needs::HeatBath
        )
    }

    /// True for splittings of H into two parts with known flows.
    pub fn splits(self) -> bool {
        matches!(self, Needs::Flows | Needs::KeplerFlows(_))
    }

    /// True for steps over a vector field, which has all forces in it.
    pub fn is_field(self) -> bool {
        matches!(self, Needs::Field | Needs::Series | Needs::Canonical)
    }

    /// True for the requirements of Newmark's methods and their like, which have a parameter β.
    pub fn has_beta(self) -> bool {
        matches!(self, Needs::Natural | Needs::Stiff)
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Needs::Field | Needs::Canonical => "a vector field",
            Needs::Series => "a vector field of smooth formulas",
            Needs::Hamiltonian => "a Hamiltonian without constraints",
            Needs::Coisotropic => "a Hamiltonian with constraints",
            Needs::Rolling => "a Hamiltonian with rolling constraints",
            Needs::Flows => "a Hamiltonian of parts with known flows",
            Needs::KeplerFlows(_) => "a Hamiltonian of motions of Kepler and a coupling",
            Needs::Body => "a rigid body with its attitude",
            Needs::FreeBody => "a free rigid body",
            Needs::Natural => "a Hamiltonian with a constant mass matrix",
            Needs::Stiff => "a Hamiltonian with a constant mass matrix and a stiff part",
            Needs::HeatBath => "a Hamiltonian with a constant mass matrix in a heat bath",
            Needs::Poisson => "a Poisson system",
            Needs::PoissonFlows => "a Poisson system of parts with known flows",
        })
    }
}

impl SchemeFacts {
    /// Facts of a Runge–Kutta method of this order with the coefficients `a`, whose missing entries
    /// are 0, and the weights `b`. Each condition holds up to a few roundings of numbers below 1.
    pub fn of_coefficients(order: u32, a: &[Vec<f64>], b: &[f64]) -> SchemeFacts {
        let s = b.len();
        let a = |i: usize, j: usize| a[i].get(j).copied().unwrap_or(0.0);
        let all = |condition: &dyn Fn(usize, usize) -> bool| {
            (0..s).all(|i| (0..s).all(|j| condition(i, j)))
        };
        let vanishes = |x: f64| x.abs() < 4.0 * f64::EPSILON;
        SchemeFacts {
            order,
            // HLW V.2.1 (2.4).
            symmetric: all(&|i, j| vanishes(a(s - 1 - i, s - 1 - j) + a(i, j) - b[j])),
            // HLW VI.4 (4.3).
            symplectic: all(&|i, j| vanishes(b[i] * a(i, j) + b[j] * a(j, i) - b[i] * b[j])),
            explicit: all(&|i, j| j < i || a(i, j) == 0.0),
        }
    }
}

impl Scheme {
    /// Facts: computed from the coefficients, if the scheme has them.
    pub fn facts(&self) -> SchemeFacts {
        match self.step {
            Step::RungeKutta(t) => SchemeFacts::of_coefficients(t.order, &t.a, &t.b),
            Step::Collocation(c) => {
                SchemeFacts::of_coefficients(c.order, &c.of_field.stages, &c.weights)
            }
            Step::Stiff(method) => {
                let a: Vec<Vec<f64>> = method.a.iter().map(|row| row.to_vec()).collect();
                SchemeFacts::of_coefficients(method.order, &a, &a[a.len() - 1])
            }
            Step::Taylor(order) => {
                SchemeFacts { order, symmetric: false, symplectic: false, explicit: true }
            }
            Step::Map(_, facts) | Step::Sliding(_, facts) => facts,
        }
    }

    /// True if the scheme estimates its error, and so can choose its steps.
    pub fn adaptive(&self) -> bool {
        match self.step {
            Step::RungeKutta(tableau) => tableau.is_adaptive(),
            Step::Collocation(_) | Step::Stiff(_) | Step::Taylor(_) => true,
            Step::Map(..) | Step::Sliding(..) => false,
        }
    }

    /// Number of stages of a step; `None` for schemes without coefficients.
    pub fn stages(&self) -> Option<usize> {
        match self.step {
            Step::RungeKutta(tableau) => Some(tableau.stages_of_step),
            Step::Collocation(collocation) => Some(collocation.stages),
            Step::Stiff(method) => Some(method.nodes.len()),
            _ => None,
        }
    }

    /// Coefficients of a Runge–Kutta scheme, built and checked on first use; `None` for other
    /// schemes.
    pub fn runge_kutta(&self) -> Option<&'static Tableau> {
        match self.step {
            Step::RungeKutta(tableau) => Some(tableau),
            _ => None,
        }
    }

    /// Collocation method of a scheme; `None` unless its stages are found by fixed-point iteration.
    pub fn collocation(&self) -> Option<&'static Collocation> {
        match self.step {
            Step::Collocation(collocation) => Some(collocation),
            _ => None,
        }
    }

    /// Coefficients of a scheme for stiff fields; `None` for other schemes.
    pub fn stiff(&self) -> Option<&'static StiffCollocation> {
        match self.step {
            Step::Stiff(method) => Some(method),
            _ => None,
        }
    }

    /// True if the scheme steps along vector fields, with every treatment of a step's result, and
    /// needs nothing else of a model.
    pub fn follows_fields(&self) -> bool {
        match self.step {
            Step::RungeKutta(_) | Step::Collocation(_) | Step::Stiff(_) | Step::Taylor(_) => true,
            Step::Map(..) | Step::Sliding(..) => false,
        }
    }

    /// True if values of the field are not enough: the field has to consist of formulas.
    pub fn needs_formulas(&self) -> bool {
        self.needs == Needs::Series
    }

    /// Length r of the real interval h λ in [−r, 0] in which the scheme is stable, or its iteration
    /// converges; `None` for schemes without one.
    pub fn real_stability_interval(&self) -> Option<f64> {
        match self.step {
            Step::RungeKutta(tableau) => Some(tableau.real_stability_interval()),
            Step::Collocation(_) => Some(CONVERGES_TO),
            // L-stable.
            Step::Stiff(_) => Some(f64::INFINITY),
            Step::Taylor(order) => {
                // The first terms of the exponential function: beyond its one end they grow.
                let stable = |x: f64| {
                    let sum = (1..=order).rev().fold(1.0, |sum, k| 1.0 - x / f64::from(k) * sum);
                    sum.abs() <= 1.0 + 1e-12
                };
                Some(boundary(0.0, f64::from(order + 2), stable))
            }
            _ => None,
        }
    }

    /// [`Scheme::real_stability_interval`] of an explicit scheme that steps along fields.
    pub fn explicit_interval(&self) -> Option<f64> {
        let explicit = matches!(self.step, Step::RungeKutta(_) | Step::Taylor(_));
        self.real_stability_interval().filter(|_| explicit)
    }

    /// Degree of the polynomial of a step, and order of the states within; `None` if the polynomial
    /// is only a cubic with the field at both ends.
    pub fn dense_output(&self) -> Option<(usize, u32)> {
        match self.step {
            Step::RungeKutta(tableau) => {
                tableau.dense.as_ref().map(|dense| (dense.degree(), dense.order))
            }
            // A state within the step is found like its end.
            Step::Collocation(collocation) => Some((2 * collocation.stages, collocation.order)),
            Step::Stiff(method) => Some((method.nodes.len(), method.estimate)),
            Step::Taylor(order) => Some((order as usize, order)),
            _ => None,
        }
    }

    /// Coefficients of a scheme that is known to be a Runge–Kutta one, because it adapts its steps
    /// or carries a feedback term.
    ///
    /// # Panics
    /// If it is not.
    pub fn tableau(&self) -> &'static Tableau {
        self.runge_kutta().unwrap_or_else(|| panic!("{} is no Runge-Kutta method", self.name))
    }

    /// True if the scheme steps with any Hamiltonian, so that it can stand between slides along
    /// fibres.
    pub fn takes_any_hamiltonian(&self) -> bool {
        matches!(self.needs, Needs::Canonical | Needs::Hamiltonian)
    }
}

impl PartialEq for Scheme {
    /// A scheme equals itself only: of two statics, each has an address of its own.
    fn eq(&self, other: &Scheme) -> bool {
        std::ptr::eq(self, other)
    }
}
