//! Names of methods, here and elsewhere, and what each of them stands for.

use serde::Serialize;

use super::{COMPOSITIONS, Composition, SCHEMES, Scheme, TREATMENTS, TreatmentFacts};

/// Names of a method elsewhere.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Alias {
    /// Name of the method here.
    pub method: &'static str,
    /// Its other names; letter case, hyphens and underscores do not matter.
    pub names: &'static [&'static str],
}

/// Other names of methods that are more than a scheme; those of a scheme stand in its row.
static COMPOSED: &[Alias] =
    &[Alias { method: "yoshida4(stormer-verlet-b)", names: &["forest-ruth"] }];

impl Alias {
    /// Every method that has other names.
    pub fn all() -> impl Iterator<Item = Alias> {
        let of_scheme = |s: &&'static Scheme| Alias { method: s.name, names: s.other_names };
        let of_schemes = SCHEMES.iter().map(of_scheme).filter(|alias| !alias.names.is_empty());
        of_schemes.chain(COMPOSED.iter().copied())
    }

    /// Alias with this name, however it is written.
    pub fn named(name: &str) -> Option<Alias> {
        Alias::all().find(|alias| alias.names.iter().any(|other| same(other, name)))
    }
}

/// Methods elsewhere that have relatives here.
#[derive(Debug)]
pub(super) struct Relatives {
    /// Their names, between blanks.
    names: &'static str,
    /// Description of the relatives.
    pub what: &'static str,
    /// Names of the relatives.
    pub methods: &'static [&'static str],
}

static RELATIVES: &[Relatives] = &[
    Relatives {
        names: "bdf ndf lsoda lsode odeint vode dvode zvode cvode cvodes dassl \
                daspk ode15s ode15i ode23s ode23t ode23tb rosenbrock rosenbrock23 rodas rodas5 sdirk dirk esdirk \
                trbdf2 kvaerno5 kencarp4 trapezoidal implicit-trapezoidal crank-nicolson implicit-euler \
                backward-euler implicit-runge-kutta",
        what: "constraints need no stiff method, `corrected:dop853` holds them, and an implicit method for stiff fields is",
        methods: &["radau5", "gauss4", "zhang-skeel"],
    },
    Relatives {
        names: "ias15 radau15 everhart mercurius gbs bulirsch-stoer odex gragg adams adams-bashforth adams-moulton \
                abm ode113 ode78 ode89 vern6 vern7 vern8 vern9 dopri8 dopri87 rk8 rk78 rk89 rkf78 feagin feagin10 \
                feagin14 hermite hermite4 dop1110",
        what: "an adaptive method of high order is",
        methods: &["dop853", "gauss16", "taylor"],
    },
    Relatives {
        names: "rkf45 fehlberg runge-kutta-fehlberg cash-karp rkck rk54 rk5 merson owren-zen5",
        what: "an adaptive method of order 5 is",
        methods: &["dopri5", "tsit5"],
    },
    Relatives {
        names: "rk2 rk3 ralston ssprk2 ssprk3 rk12 heun3 kutta3",
        what: "a Runge-Kutta method of low order is",
        methods: &["midpoint", "heun", "bs3"],
    },
    Relatives {
        names: "saba saba1 aba wh whm swift mercury symba",
        what: "a splitting into motions of Kepler is",
        methods: &["saba1064(kepler-splitting)", "kepler-splitting"],
    },
    Relatives {
        names: "mclachlan4 blanes-moan pefrl ruth4",
        what: "a symplectic method of high order is",
        methods: &["suzuki4(stormer-verlet-a)", "kahan-li8(stormer-verlet-a)", "gauss8"],
    },
    Relatives {
        names: "yoshida triple-jump",
        what: "the composition needs a method to compose, as in",
        methods: &[
            "yoshida4(stormer-verlet-a)",
            "yoshida6(stormer-verlet-a)",
            "yoshida8(stormer-verlet-a)",
        ],
    },
    Relatives {
        names: "suzuki kahan-li sofroniou-spaletta composition",
        what: "the composition needs a method to compose, as in",
        methods: &[
            "suzuki4(rattle)",
            "kahan-li8(stormer-verlet-a)",
            "sofroniou-spaletta10(stormer-verlet-a)",
        ],
    },
    Relatives {
        names: "symplectic-euler",
        what: "there are two of that kind,",
        methods: &["symplectic-euler-a", "symplectic-euler-b"],
    },
    Relatives {
        names: "beeman ruth3 symplectic",
        what: "a symplectic method is",
        methods: &["stormer-verlet-a", "rattle", "gauss4"],
    },
    Relatives {
        names: "gauss gauss-legendre gauss-legendre2 gauss-legendre4 gauss-legendre6 gl2 gl4 gl6 irk",
        what: "a method of Gauss and Legendre has its order in its name,",
        methods: &["gauss2", "gauss4", "gauss6", "gauss8", "gauss16"],
    },
    Relatives {
        names: "respa r-respa mts multiple-time-stepping",
        what: "a method for long steps in stiff forces is",
        methods: &["zhang-skeel", "zhang-skeel-stiff"],
    },
    Relatives {
        names: "hht hilber-hughes-taylor generalized-alpha generalised-alpha wilson-theta bathe",
        what: "a method of that kind is",
        methods: &["newmark", "zhang-skeel"],
    },
    Relatives {
        names: "lincs settle m-shake ccma",
        what: "a method that holds constraints is",
        methods: &["rattle", "shake"],
    },
    Relatives {
        names: "langevin gla obabo aboba oabao vrorv bbk brownian euler-maruyama sde nose-hoover andersen \
                berendsen bussi csvr v-rescale nvt npt",
        what: "a method for a heat bath is",
        methods: &["g-baoab"],
    },
    Relatives {
        names: "lie-euler rkmk crouch-grossman",
        what: "a method for a rigid body is",
        methods: &["cayley-symmetric", "rotation-splitting", "rattle"],
    },
    Relatives {
        names: "auto default adaptive",
        what: "the default is",
        methods: &["corrected:dop853"],
    },
];

/// Meaning of a name without a colon or brackets.
pub(super) enum Meaning {
    /// A scheme, by its own or another name.
    Scheme(&'static Scheme),
    /// A treatment.
    Treatment(&'static TreatmentFacts),
    /// A composition, which needs a method to compose.
    Composition(&'static Composition),
    /// Another name of the method of this name.
    Method(&'static str),
    /// Methods that are not here.
    Elsewhere(&'static Relatives),
}

impl Meaning {
    /// Meaning of a name, however it is written; `None` for unknown ones.
    pub fn of(name: &str) -> Option<Meaning> {
        let is_name = |known: &str| same(known, name);
        let scheme = || SCHEMES.iter().find(|scheme| is_name(scheme.name)).copied();
        let treatment = || TREATMENTS.iter().find(|facts| is_name(facts.name));
        let composition = || COMPOSITIONS.iter().find(|composition| is_name(composition.name));
        let other = || {
            let method = Alias::named(name)?.method;
            Some(Scheme::named(method).map_or(Meaning::Method(method), Meaning::Scheme))
        };
        let elsewhere =
            || RELATIVES.iter().find(|others| others.names.split_whitespace().any(is_name));
        (Scheme::named(name).or_else(scheme).map(Meaning::Scheme))
            .or_else(|| treatment().map(Meaning::Treatment))
            .or_else(|| composition().map(Meaning::Composition))
            .or_else(other)
            .or_else(|| elsewhere().map(Meaning::Elsewhere))
    }
}

/// True if two names differ in letter case, hyphens and the like only.
fn same(a: &str, b: &str) -> bool {
    letters(a).eq(letters(b))
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    let plain = |c| if c == 'ö' { 'o' } else { c };
    name.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).map(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Method;

    #[test]
    fn every_other_name_belongs_to_one_method() {
        let own = SCHEMES
            .iter()
            .map(|scheme| scheme.name)
            .chain(TREATMENTS.iter().map(|facts| facts.name));
        let own = own.chain(COMPOSITIONS.iter().map(|composition| composition.name));
        let others = Alias::all().flat_map(|alias| alias.names).copied();
        let others =
            others.chain(RELATIVES.iter().flat_map(|relatives| relatives.names.split_whitespace()));
        let names: Vec<&str> = own.chain(others).collect();
        for (k, name) in names.iter().enumerate() {
            assert!(!names[..k].iter().any(|other| same(other, name)), "{name} stands twice");
        }
    }

    #[test]
    fn other_names_are_those_of_methods() {
        for alias in Alias::all() {
            let method: Method = alias.method.parse().unwrap();
            assert_eq!(method.to_string(), alias.method);
            for name in alias.names {
                let cases = [
                    name.to_string(),
                    name.to_uppercase(),
                    name.replace('-', "_"),
                    name.replace('-', ""),
                ];
                for name in cases {
                    assert_eq!(name.parse(), Ok(method), "{name}");
                }
            }
        }
        for relatives in RELATIVES {
            for method in relatives.methods {
                assert_eq!(method.parse::<Method>().unwrap().to_string(), *method);
            }
            for name in relatives.names.split_whitespace() {
                let message = name.parse::<Method>().unwrap_err().to_string();
                assert!(
                    message.contains(relatives.what) && message.contains(relatives.methods[0]),
                    "{message}"
                );
            }
        }
    }
}
