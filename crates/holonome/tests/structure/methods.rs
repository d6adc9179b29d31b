//! Methods made from the registry, and their models.

use crate::cases::{BODIES, CASES, Case, PLANETS};
use holonome::method::{COMPOSITIONS, Method, Needs, SCHEMES, Scheme, Step};

/// Registered schemes that preserve a structure.
pub fn schemes() -> impl Iterator<Item = &'static Scheme> {
    // Heat baths are tested elsewhere (`langevin.rs`).
    let of_maps = |scheme: &&Scheme| {
        scheme.runge_kutta().is_none() && scheme.stiff().is_none() && !scheme.needs_formulas()
    };
    SCHEMES.iter().copied().filter(of_maps).filter(|scheme| scheme.needs != Needs::HeatBath)
}

/// Every method of these schemes without a composition: `rattle` also with each map that it takes.
pub fn bases() -> Vec<Method> {
    let mut list = Vec::new();
    for scheme in schemes() {
        list.push(scheme.name.parse().unwrap());
        if matches!(scheme.step, Step::Sliding(..)) {
            let with =
                |base: &&Scheme| format!("{}:{}", scheme.name, base.name).parse::<Method>().ok();
            list.extend(SCHEMES.iter().filter_map(with));
        }
    }
    list
}

/// Every composition of these methods.
pub fn compositions() -> Vec<Method> {
    let names = COMPOSITIONS.iter().map(|composition| composition.name);
    let methods = |name| {
        bases().into_iter().filter_map(move |base| format!("{name}({base})").parse::<Method>().ok())
    };
    names.flat_map(methods).collect()
}

/// Cases for a method; there are some for every registered one.
pub fn cases_of(method: &Method) -> Vec<&'static Case> {
    let cases: Vec<&Case> = CASES.iter().filter(|case| case.serves(method.scheme.needs)).collect();
    assert!(!cases.is_empty(), "nothing to try {method} on");
    cases
}

/// Cases for examining a method's map. Compositions and slides around a named map, whose parts are
/// tested on all cases, get one case of each kind. Cases whose fibres a Gauss method would follow
/// within the Newton iteration of another one are left out.
pub fn few_cases_of(method: &Method) -> Vec<&'static Case> {
    let mut cases = cases_of(method);
    if method.composition.is_some() {
        let of_each_kind = [
            "kepler",
            PLANETS,
            "sprung-masses",
            "forced-metric",
            "metric-pendulum",
            "hopf-pair",
            "two-spheres",
            "matrix-rigid-body",
            "heavy-top",
            "edge-on-a-sphere",
            "top-by-brackets",
            "sphere-vortices",
        ];
        cases.retain(|case| of_each_kind.contains(&case.name()));
    } else if method.unconstrained.is_some_and(|base| !base.facts().explicit) {
        cases.retain(|case| case.name() != "twisted-pair");
    }
    // Slides are linear in rotations, as in vectors: the effect of their parts shows on smaller
    // models.
    if method.scheme.needs == Needs::Coisotropic
        && (method.composition.is_some() || method.unconstrained.is_some())
    {
        cases.retain(|case| !BODIES.contains(&case.name()));
    }
    cases
}
