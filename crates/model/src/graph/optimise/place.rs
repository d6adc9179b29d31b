//! Placement of coefficients, reciprocals and small sums, once the common factors are found.

use super::cost::{Cost, QUOTIENT};
use super::monomial::{Monomial, ONE};
use super::system::{Place, System, UniformTerm};
use super::uniform::{Coefficient, Divisors, NONE};
use rustc_hash::FxHashMap;

/// Number of uses above which atoms stay as they are.
const MOST_USES: usize = 16;
/// Number of scales that are tried for an atom.
const MOST_SCALES: usize = 8;

/// Use of an atom: place, monomial of the term, and exponent.
type Use = (Place, Monomial, i32);

/// Rewritten sums.
type Rewritten = Vec<(Place, Vec<UniformTerm>)>;

/// Length above which sums stay as they are: every change of a term would copy them.
const LONGEST: usize = 64;

/// Uses of every atom.
struct Uses {
    /// Uses, atom by atom.
    list: Vec<Use>,
    /// Start of each atom's uses, then their number.
    starts: Vec<u32>,
}

impl Uses {
    /// Uses in `places`.
    fn new(system: &System, places: &[Place]) -> Uses {
        let terms = || {
            places
                .iter()
                .flat_map(|&p| system.sums[p as usize].iter().map(move |t| (p, t.monomial)))
        };
        let literals = || {
            terms().flat_map(|(p, m)| system.monomials.literals(m).iter().map(move |&l| (p, m, l)))
        };
        // Ends of each atom's uses; putting these in from the last to the first turns them into
        // starts.
        let mut starts = vec![0; system.atoms.len() + 1];
        for (_, _, (atom, _)) in literals() {
            starts[atom as usize] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut list = vec![(0, ONE, 0); sum as usize];
        for (place, monomial, (atom, e)) in literals().rev() {
            let start = &mut starts[atom as usize];
            *start -= 1;
            list[*start as usize] = (place, monomial, e);
        }
        Uses { list, starts }
    }

    /// The first uses of an atom, in the order of places: at most one more than [`MOST_USES`].
    fn of(&self, atom: u32) -> &[Use] {
        let (from, to) =
            (self.starts[atom as usize] as usize, self.starts[atom as usize + 1] as usize);
        &self.list[from..to.min(from + MOST_USES + 1)]
    }
}

/// Expand atoms that are other terms under another name, and products that are used once. Returns
/// true if there were any.
pub fn resolve(system: &mut System, places: &[Place]) -> bool {
    let (uses, mut any) = (Uses::new(system, places), false);
    // Definitions precede uses, so expanded terms are themselves resolved.
    for &place in places {
        let mut terms = std::mem::take(&mut system.sums[place as usize]);
        let mut changed = false;
        for term in &mut terms {
            let written = term.monomial;
            for k in 0..system.monomials.literals(written).len() {
                let (atom, e) = system.monomials.literals(written)[k];
                let Some(&[inner]) =
                    system.sum_of(atom).map(|p| system.sums[p as usize].as_slice())
                else {
                    continue;
                };
                let alias =
                    inner.coefficient.is_unit() && system.monomials.atom(inner.monomial).is_some();
                if !(alias || uses.of(atom).len() == 1 && e.abs() == 1) {
                    continue;
                }
                // An alias is the same up to its sign; others occur to the first power or its
                // inverse.
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
            any = true;
        } else {
            system.sums[place as usize] = terms;
        }
    }
    any
}

/// Share one reciprocal for every atom that is a divisor several times, unless that takes more
/// operations. It includes a coefficient if that helps. Returns true if there were any.
pub fn share_reciprocals(system: &mut System, places: &[Place]) -> bool {
    let (uses, lost) = (Uses::new(system, places), system.lost(places));
    let mut any = false;
    for atom in 0..system.atoms.len() as u32 {
        let uses = uses.of(atom);
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
            let Some(rewritten) = with_reciprocal(system, atom, &divided, scale, &lost) else {
                continue;
            };
            let saving = system.saving(&rewritten) - QUOTIENT as i32;
            if saving >= 0 && best.as_ref().is_none_or(|b| saving > b.0) {
                best = Some((saving, rewritten));
            }
        }
        if let Some((_, rewritten)) = best {
            system.accept(rewritten);
            any = true;
        }
    }
    any
}

/// Sums that are divided by `atom`, multiplied by scale / atom instead.
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
    let reciprocal = system.define(vec![UniformTerm { coefficient: scale, monomial }]);
    let own = system.sum_of(reciprocal);
    let mut result = Rewritten::new();
    for &(place, monomial, e) in uses.iter().filter(|u| Some(u.0) != own) {
        let term = system.term_in(&mut result, place, monomial)?;
        let (old, new) =
            (system.monomials.power_of(atom, e), system.monomials.power_of(reciprocal, -e));
        let rest = system.monomials.quotient(monomial, old);
        let (mut coefficient, monomial) = (term.coefficient, system.monomials.product(rest, new));
        for _ in 0..-e {
            coefficient = system.uniforms.scaled(coefficient, scale, -1);
        }
        if !system.uniforms.may_become(coefficient, term.coefficient, lost[place as usize]) {
            return None;
        }
        *term_in_mut(&mut result, place, term)? = UniformTerm { coefficient, monomial };
    }
    for (_, terms) in &mut result {
        system.collect(terms);
    }
    Some(result)
}

/// Expand an atom's sum in the sums that use it, if that saves operations. Returns true if there
/// were any.
pub fn inline(system: &mut System, places: &[Place]) -> bool {
    let first = Uses::new(system, places);
    // Uses of the atoms that are not used as at first.
    let mut changed: FxHashMap<u32, Vec<Use>> = FxHashMap::default();
    // From the outputs down: a sum that is expanded in another may be expanded further with it.
    for &place in places.iter().rev() {
        let mut i = 0;
        while i < system.sums[place as usize].len() {
            let monomial = system.sums[place as usize][i].monomial;
            i += 1;
            let Some(atom) = system.monomials.atom(monomial) else { continue };
            let Some(inner) = system.sum_of(atom) else { continue };
            let list = changed.get(&atom).map_or_else(|| first.of(atom), |list| &list[..]);
            let here = list.iter().any(|u| u.0 == place);
            if !here || list.len() > MOST_USES || list.iter().any(|u| u.1 != monomial) {
                continue;
            }
            let Some(rewritten) = expanded(system, inner, monomial, list) else { continue };
            if system.saving(&rewritten) + system.cost(&system.sums[inner as usize]).operations()
                <= 0
            {
                continue;
            }
            let list = list.to_vec();
            changed.insert(atom, Vec::new());
            for term in system.sums[inner as usize].clone() {
                for &(other, e) in system.monomials.literals(term.monomial) {
                    let uses = changed.entry(other).or_insert_with(|| first.of(other).to_vec());
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
    !changed.is_empty()
}

/// Sums of `uses` with `inner` expanded in place of its atom, given as a monomial.
fn expanded(
    system: &mut System,
    inner: Place,
    monomial: Monomial,
    uses: &[Use],
) -> Option<Rewritten> {
    let terms = system.sums[inner as usize].clone();
    let mut result: Rewritten = Vec::with_capacity(uses.len());
    for &(place, ..) in uses {
        let by = system.term(place, monomial)?.coefficient;
        if system.sums[place as usize].len() > LONGEST || !system.distributes(by, &terms) {
            return None;
        }
        let mut sum: Vec<UniformTerm> = system.sums[place as usize]
            .iter()
            .copied()
            .filter(|t| t.monomial != monomial)
            .collect();
        for t in &terms {
            let coefficient = system.uniforms.product(by, t.coefficient);
            sum.push(UniformTerm { coefficient, ..*t });
        }
        system.collect(&mut sum);
        result.push((place, sum));
    }
    Some(result)
}

/// Move coefficients between an atom's sum and its uses. k (a b + c d) costs one product less as k
/// a b + k c d with a known k a, and a sign or factor common to all uses belongs into the sum.
/// Returns false: coefficients need no places.
pub fn rescale(system: &mut System, places: &[Place]) -> bool {
    let (uses, lost) = (Uses::new(system, places), system.lost(places));
    let mut costs = vec![Cost::default(); system.sums.len()];
    for &place in places {
        costs[place as usize] = system.cost(&system.sums[place as usize]);
    }
    let (mut scales, mut best, mut next) = (Vec::new(), Rescaled::default(), Rescaled::default());
    for &place in places {
        let Some(atom) = system.owner(place) else { continue };
        let list = uses.of(atom);
        if list.is_empty() || list.len() > MOST_USES || list.iter().any(|u| u.2.abs() != 1) {
            continue;
        }
        // Coefficients that the atom meets, as factors to be moved; a sign only if there is one.
        let outside =
            list.iter().filter_map(|&(p, m, e)| system.term(p, m).map(|t| (t.coefficient, e)));
        let inside = system.sums[place as usize].iter().map(|t| (t.coefficient, -1));
        scales.clear();
        for (coefficient, e) in outside.chain(inside) {
            let sign = (Coefficient::UNIT.negated(), 1);
            if coefficient.is_negative() && !scales.contains(&sign) {
                scales.push(sign);
            }
            if !coefficient.is_unit()
                && !scales.contains(&(coefficient, e))
                && scales.len() < MOST_SCALES
            {
                scales.push((coefficient, e));
            }
        }
        best.clear();
        for &scale in &scales {
            if next.set(system, &costs, place, list, scale, &lost).is_some()
                && next.saving > best.saving
            {
                std::mem::swap(&mut best, &mut next);
            }
        }
        best.accept(system, &mut costs, place, list);
    }
    system.forget();
    false
}

/// Effect of scaling an atom by a power of a coefficient on its sum and its uses.
#[derive(Default)]
struct Rescaled {
    /// Coefficients of the sum's terms, then of the terms that use the atom.
    coefficients: Vec<Coefficient>,
    /// Operations that it saves, and coefficients that it removes. Coefficients beside a divisor
    /// count half: a reciprocal may include them.
    saving: (i32, i32),
}

impl Rescaled {
    /// Reset to no change.
    fn clear(&mut self) {
        self.coefficients.clear();
        self.saving = (0, 0);
    }

    /// Set to the effect of `scale`; `None` if that is not allowed.
    fn set(
        &mut self,
        system: &mut System,
        costs: &[Cost],
        place: Place,
        uses: &[Use],
        scale: (Coefficient, i32),
        lost: &[Divisors],
    ) -> Option<()> {
        self.clear();
        let length = system.sums[place as usize].len();
        if length > LONGEST || !system.distributes(scale.0, &system.sums[place as usize]) {
            return None;
        }
        let mut after = costs[place as usize];
        for k in 0..length {
            let term = system.sums[place as usize][k];
            let coefficient = system.uniforms.scaled(term.coefficient, scale.0, scale.1);
            if !system.uniforms.may_become(coefficient, term.coefficient, lost[place as usize]) {
                return None;
            }
            self.change(system, &mut after, term, coefficient);
        }
        self.saving.0 += costs[place as usize].operations() - after.operations();
        // Uses in one place are adjacent.
        for here in uses.chunk_by(|a, b| a.0 == b.0) {
            let at = here[0].0 as usize;
            let mut after = costs[at];
            for &(p, monomial, e) in here {
                let term = system.term(p, monomial).filter(|_| system.sums[at].len() <= LONGEST)?;
                let coefficient = system.uniforms.scaled(term.coefficient, scale.0, -e * scale.1);
                // A divisor must not become 0 either.
                let inverse = system.uniforms.scaled(Coefficient::UNIT, scale.0, -scale.1);
                if !system.uniforms.may_become(coefficient, term.coefficient, lost[at])
                    || e < 0 && !system.uniforms.may_become(inverse, Coefficient::UNIT, lost[at])
                {
                    return None;
                }
                self.change(system, &mut after, term, coefficient);
            }
            self.saving.0 += costs[at].operations() - after.operations();
        }
        Some(())
    }

    /// Change the coefficient of a term.
    fn change(
        &mut self,
        system: &System,
        cost: &mut Cost,
        term: UniformTerm,
        coefficient: Coefficient,
    ) {
        let changed = UniformTerm { coefficient, ..term };
        cost.add(system.weight(term), -1);
        cost.add(system.weight(changed), 1);
        self.saving.1 += system.burden(term) - system.burden(changed);
        self.coefficients.push(coefficient);
    }

    fn accept(&self, system: &mut System, costs: &mut [Cost], place: Place, uses: &[Use]) {
        let Some((own, outside)) =
            self.coefficients.split_at_checked(system.sums[place as usize].len())
        else {
            return;
        };
        for (term, &coefficient) in system.sums[place as usize].iter_mut().zip(own) {
            term.coefficient = coefficient;
        }
        costs[place as usize] = system.cost(&system.sums[place as usize]);
        for (&(p, monomial, _), &coefficient) in uses.iter().zip(outside) {
            let sum = &mut system.sums[p as usize];
            if let Ok(at) = sum.binary_search_by_key(&monomial, |t| t.monomial) {
                sum[at].coefficient = coefficient;
            }
            costs[p as usize] = system.cost(&system.sums[p as usize]);
        }
    }
}

/// Term of a rewritten sum, mutable.
fn term_in_mut(
    rewritten: &mut Rewritten,
    place: Place,
    term: UniformTerm,
) -> Option<&mut UniformTerm> {
    let (_, terms) = rewritten.iter_mut().find(|r| r.0 == place)?;
    terms.iter_mut().find(|t| **t == term)
}

impl System {
    /// Term of a place with this monomial.
    fn term(&self, place: Place, monomial: Monomial) -> Option<UniformTerm> {
        let sum = &self.sums[place as usize];
        sum.binary_search_by_key(&monomial, |t| t.monomial).ok().map(|at| sum[at])
    }

    /// Term with a monomial in a place, which is copied to `rewritten`; `None` if the sum is too
    /// long to be copied.
    fn term_in(
        &self,
        rewritten: &mut Rewritten,
        place: Place,
        monomial: Monomial,
    ) -> Option<UniformTerm> {
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

    /// Weight of a removable coefficient, which counts half if a reciprocal may include it.
    fn burden(&self, term: UniformTerm) -> i32 {
        if term.coefficient.is_unit() || term.monomial == ONE {
            0
        } else if self.monomials.factors(term.monomial).below > 0 {
            1
        } else {
            2
        }
    }

    /// Operations saved by rewriting some sums.
    fn saving(&self, rewritten: &[(Place, Vec<UniformTerm>)]) -> i32 {
        rewritten
            .iter()
            .map(|(place, terms)| {
                self.cost(&self.sums[*place as usize]).operations() - self.cost(terms).operations()
            })
            .sum()
    }
}
