//! Where coefficients, reciprocals and small sums are best placed, once the common factors are found.

use super::cost::QUOTIENT;
use super::monomial::{Monomial, ONE};
use super::system::{Place, System, Term};
use super::uniform::{Coefficient, Divisors, NONE};

/// Atoms with more uses stay as they are.
const MOST_USES: usize = 16;
/// Scales that are tried for an atom.
const MOST_SCALES: usize = 8;

/// Where an atom stands: place, the term's monomial, and the exponent.
type Use = (Place, Monomial, i32);

/// Sums in another form.
type Rewritten = Vec<(Place, Vec<Term>)>;

/// Longer sums are left as they are: every change of a term would copy them.
const LONGEST: usize = 64;

/// The uses of every atom in `places`.
fn uses(system: &System, places: &[Place]) -> Vec<Vec<Use>> {
    let mut uses = vec![Vec::new(); system.atoms.len()];
    for &place in places {
        for &term in &system.sums[place as usize] {
            for &(atom, e) in system.monomials.literals(term.monomial) {
                let list: &mut Vec<Use> = &mut uses[atom as usize];
                if list.len() <= MOST_USES {
                    list.push((place, term.monomial, e));
                }
            }
        }
    }
    uses
}

/// Writes out atoms that are other terms under another name, and products that are used once.
pub fn resolve(system: &mut System, places: &[Place]) {
    let uses = uses(system, places);
    // Definitions come before uses, so what is written in is itself resolved.
    for &place in places {
        let mut terms = std::mem::take(&mut system.sums[place as usize]);
        let mut changed = false;
        for term in &mut terms {
            let literals: Vec<(u32, i32)> = system.monomials.literals(term.monomial).to_vec();
            for (atom, e) in literals {
                let Some(&[inner]) = system.sum_of(atom).map(|p| system.sums[p as usize].as_slice()) else { continue };
                let alias = inner.coefficient.is_unit() && system.monomials.atom(inner.monomial).is_some();
                if !(alias || uses[atom as usize].len() == 1 && e.abs() == 1) {
                    continue;
                }
                // An alias is the same up to its sign; others stand to the first power or its inverse.
                let coefficient = match e % 2 {
                    0 => term.coefficient,
                    _ => system.uniforms.scaled(term.coefficient, inner.coefficient, e.signum()),
                };
                let base = system.monomials.power_of(atom, e);
                let rest = system.monomials.quotient(term.monomial, base);
                let monomial = system.monomials.times_power(rest, inner.monomial, e);
                if system.monomials.is_large(monomial) {
                    continue;
                }
                term.monomial = monomial;
                term.coefficient = coefficient;
                changed = true;
            }
        }
        if changed {
            system.collect(&mut terms);
            system.rewrite(place, terms);
        } else {
            system.sums[place as usize] = terms;
        }
    }
}

/// One reciprocal for every atom that is divided by several times, unless that takes more operations. It
/// takes a coefficient with it where that helps.
pub fn share_reciprocals(system: &mut System, places: &[Place]) {
    let (uses, lost) = (uses(system, places), system.lost(places));
    for (atom, uses) in uses.iter().enumerate() {
        let atom = atom as u32;
        let divided: Vec<Use> = uses.iter().filter(|u| u.2 < 0).copied().collect();
        if divided.len() < 2 || uses.len() > MOST_USES {
            continue;
        }
        let mut scales = vec![Coefficient::UNIT];
        for &(place, monomial, _) in &divided {
            scales.extend(system.term(place, monomial).map(|t| t.coefficient.magnitude()));
        }
        scales.sort_unstable();
        scales.dedup();
        let mut best: Option<(i32, Rewritten)> = None;
        for scale in scales {
            let Some(rewritten) = with_reciprocal(system, atom, &divided, scale, &lost) else { continue };
            let saving = system.saving(&rewritten) - QUOTIENT as i32;
            if saving >= 0 && best.as_ref().is_none_or(|b| saving > b.0) {
                best = Some((saving, rewritten));
            }
        }
        if let Some((_, rewritten)) = best {
            system.accept(rewritten);
        }
    }
}

/// The sums where `atom` is divided by, with scale / atom instead.
fn with_reciprocal(
    system: &mut System,
    atom: u32,
    uses: &[Use],
    scale: Coefficient,
    lost: &[Divisors],
) -> Option<Rewritten> {
    let everywhere = uses.iter().fold(!NONE, |all, u| all & lost[u.0 as usize]);
    if !system.uniforms.may_become(scale, Coefficient::UNIT, everywhere) {
        return None;
    }
    let monomial = system.monomials.power_of(atom, -1);
    let reciprocal = system.define(vec![Term { coefficient: scale, monomial }]);
    let own = system.sum_of(reciprocal);
    let mut result = Rewritten::new();
    for &(place, monomial, e) in uses.iter().filter(|u| Some(u.0) != own) {
        let term = system.term_in(&mut result, place, monomial)?;
        let (old, new) = (system.monomials.power_of(atom, e), system.monomials.power_of(reciprocal, -e));
        let rest = system.monomials.quotient(monomial, old);
        let (mut coefficient, monomial) = (term.coefficient, system.monomials.product(rest, new));
        for _ in 0..-e {
            coefficient = system.uniforms.scaled(coefficient, scale, -1);
        }
        if !system.uniforms.may_become(coefficient, term.coefficient, lost[place as usize]) {
            return None;
        }
        *term_in_mut(&mut result, place, term)? = Term { coefficient, monomial };
    }
    for (_, terms) in &mut result {
        system.collect(terms);
    }
    Some(result)
}

/// Writes an atom's sum into the sums where it stands, where that saves operations.
pub fn inline(system: &mut System, places: &[Place]) {
    let mut uses = uses(system, places);
    // From the outputs down: what is written into a sum may be written on with it.
    for &place in places.iter().rev() {
        let mut i = 0;
        while i < system.sums[place as usize].len() {
            let monomial = system.sums[place as usize][i].monomial;
            i += 1;
            let Some(atom) = system.monomials.atom(monomial) else { continue };
            let Some(inner) = system.sum_of(atom) else { continue };
            let list = &uses[atom as usize];
            let here = list.iter().any(|u| u.0 == place);
            if !here || list.len() > MOST_USES || list.iter().any(|u| u.1 != monomial) {
                continue;
            }
            let Some(rewritten) = written_out(system, inner, monomial, list) else { continue };
            if system.saving(&rewritten) + system.cost(&system.sums[inner as usize]).operations() <= 0 {
                continue;
            }
            let list = std::mem::take(&mut uses[atom as usize]);
            for term in system.sums[inner as usize].clone() {
                for &(other, e) in system.monomials.literals(term.monomial) {
                    let uses = &mut uses[other as usize];
                    uses.retain(|u| u.0 != inner);
                    uses.extend(list.iter().map(|u| (u.0, term.monomial, e)));
                    uses.sort_unstable();
                    uses.dedup();
                }
            }
            system.accept(rewritten);
            i = 0;
        }
    }
}

/// The sums of `uses` with `inner` written out where its atom, as a monomial, stands.
fn written_out(system: &mut System, inner: Place, monomial: Monomial, uses: &[Use]) -> Option<Rewritten> {
    let terms = system.sums[inner as usize].clone();
    let mut result: Rewritten = Vec::with_capacity(uses.len());
    for &(place, ..) in uses {
        let by = system.term(place, monomial)?.coefficient;
        if system.sums[place as usize].len() > LONGEST || !system.distributes(by, &terms) {
            return None;
        }
        let mut sum: Vec<Term> =
            system.sums[place as usize].iter().copied().filter(|t| t.monomial != monomial).collect();
        for t in &terms {
            let coefficient = system.uniforms.product(by, t.coefficient);
            sum.push(Term { coefficient, ..*t });
        }
        system.collect(&mut sum);
        result.push((place, sum));
    }
    Some(result)
}

/// Moves coefficients between an atom's sum and its uses: k (a b + c d) costs one product less where it is
/// written k a b + k c d with k a known, and the sign or factor that all uses have in common belongs into
/// the sum.
pub fn rescale(system: &mut System, places: &[Place]) {
    let (uses, lost) = (uses(system, places), system.lost(places));
    for &place in places {
        let Some(atom) = system.owner(place) else { continue };
        let list = &uses[atom as usize];
        if list.is_empty() || list.len() > MOST_USES || list.iter().any(|u| u.2.abs() != 1) {
            continue;
        }
        // The coefficients that the atom meets, as factors to be moved; a sign only where one is in the way.
        let outside = list.iter().filter_map(|&(p, m, e)| system.term(p, m).map(|t| (t.coefficient, e)));
        let inside = system.sums[place as usize].iter().map(|t| (t.coefficient, -1));
        let mut scales: Vec<(Coefficient, i32)> = Vec::new();
        for (coefficient, e) in outside.chain(inside) {
            let sign = (Coefficient::UNIT.negated(), 1);
            if coefficient.is_negative() && !scales.contains(&sign) {
                scales.push(sign);
            }
            if !coefficient.is_unit() && !scales.contains(&(coefficient, e)) && scales.len() < MOST_SCALES {
                scales.push((coefficient, e));
            }
        }
        let mut best = ((0, 0), Rewritten::new());
        for scale in scales {
            let Some(rewritten) = rescaled(system, place, list, scale, &lost) else { continue };
            let saving = (system.saving(&rewritten), system.loosened(&rewritten));
            if saving > best.0 {
                best = (saving, rewritten);
            }
        }
        system.accept(best.1);
    }
    system.forget();
}

/// All that changes when the atom of `place` means what it did times a power of a coefficient; `None` where
/// that is not allowed.
fn rescaled(
    system: &mut System,
    place: Place,
    uses: &[Use],
    scale: (Coefficient, i32),
    lost: &[Divisors],
) -> Option<Rewritten> {
    if system.sums[place as usize].len() > LONGEST || !system.distributes(scale.0, &system.sums[place as usize]) {
        return None;
    }
    let mut sum = system.sums[place as usize].clone();
    for term in &mut sum {
        let coefficient = system.uniforms.scaled(term.coefficient, scale.0, scale.1);
        if !system.uniforms.may_become(coefficient, term.coefficient, lost[place as usize]) {
            return None;
        }
        term.coefficient = coefficient;
    }
    let mut result = vec![(place, sum)];
    for &(p, monomial, e) in uses {
        let term = system.term_in(&mut result, p, monomial)?;
        let coefficient = system.uniforms.scaled(term.coefficient, scale.0, -e * scale.1);
        // What divides is not to become 0 either.
        let inverse = system.uniforms.scaled(Coefficient::UNIT, scale.0, -scale.1);
        if !system.uniforms.may_become(coefficient, term.coefficient, lost[p as usize])
            || e < 0 && !system.uniforms.may_become(inverse, Coefficient::UNIT, lost[p as usize])
        {
            return None;
        }
        *term_in_mut(&mut result, p, term)? = Term { coefficient, monomial };
    }
    Some(result)
}

/// A term of a rewritten sum, to be changed.
fn term_in_mut(rewritten: &mut Rewritten, place: Place, term: Term) -> Option<&mut Term> {
    let (_, terms) = rewritten.iter_mut().find(|r| r.0 == place)?;
    terms.iter_mut().find(|t| **t == term)
}

impl System {
    /// The term of a place that has a monomial.
    fn term(&self, place: Place, monomial: Monomial) -> Option<Term> {
        let sum = &self.sums[place as usize];
        sum.binary_search_by_key(&monomial, |t| t.monomial).ok().map(|at| sum[at])
    }

    /// The term with a monomial in a place, which is copied to `rewritten`; `None` if it is too long for that.
    fn term_in(&self, rewritten: &mut Rewritten, place: Place, monomial: Monomial) -> Option<Term> {
        if !rewritten.iter().any(|r| r.0 == place) {
            let terms = &self.sums[place as usize];
            if terms.len() > LONGEST {
                return None;
            }
            rewritten.push((place, terms.clone()));
        }
        let (_, terms) = rewritten.iter().find(|r| r.0 == place)?;
        terms.iter().copied().find(|t| t.monomial == monomial)
    }

    fn accept(&mut self, rewritten: Rewritten) {
        for (place, terms) in rewritten {
            self.sums[place as usize] = terms;
        }
    }

    /// How many coefficients rewriting some sums takes away. Those beside a divisor count half: a reciprocal
    /// may take them over.
    fn loosened(&self, rewritten: &[(Place, Vec<Term>)]) -> i32 {
        let count = |terms: &[Term]| -> i32 {
            let weight = |t: &Term| {
                if t.coefficient.is_unit() || t.monomial == ONE {
                    0
                } else if self.monomials.literals(t.monomial).iter().any(|l| l.1 < 0) {
                    1
                } else {
                    2
                }
            };
            terms.iter().map(weight).sum()
        };
        rewritten.iter().map(|(place, terms)| count(&self.sums[*place as usize]) - count(terms)).sum()
    }

    /// How many operations it saves to write some sums in another way.
    fn saving(&self, rewritten: &[(Place, Vec<Term>)]) -> i32 {
        rewritten
            .iter()
            .map(|(place, terms)| self.cost(&self.sums[*place as usize]).operations() - self.cost(terms).operations())
            .sum()
    }
}
