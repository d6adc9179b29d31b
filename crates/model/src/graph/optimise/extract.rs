//! Extraction of common factors: the greedy algorithm of Rajski and Vasudevamurthi (1992) for
//! two-term divisors and two-literal products, which Hosangadi, Fallah and Kastner (2006) applied
//! to polynomials.
//!
//! Two terms of a sum have a greatest common factor. It multiplies a *divisor*, a sum of two terms:
//! a x + b x has the divisor a + b, and so has every other pair of terms in this proportion
//! anywhere. The divisor that saves the most operations over the whole system becomes an atom, and
//! one term replaces two at each occurrence. Longer common factors grow out of shorter ones. Two
//! literals of a monomial are a divisor in the same way.

use super::cost::{Cost, weight};
use super::monomial::{Literal, Monomial};
use super::normal::expand;
use super::system::{Place, System, UniformTerm};
use super::uniform::Coefficient;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Kind of divisors that are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivisorKind {
    /// Sums of two terms.
    Sums,
    /// Products of two literals, or of a coefficient and a literal.
    Products,
}

/// Length of sums above which only terms near each other are paired, at most [`NEAR`] apart.
const ALL_PAIRS: usize = 24;
const NEAR: usize = 8;

/// Occurrences examined per term. Four times as many find nothing more in published models.
const EFFORT: usize = 20;

/// Occurrence of a divisor in a place.
#[derive(Clone, Copy)]
struct Occurrence {
    place: Place,
    /// The terms that it replaces; for a product, the same one twice.
    terms: [UniformTerm; 2],
    /// Factor of the divisor in the terms.
    cofactor: UniformTerm,
}

struct Candidate {
    /// One term or two.
    divisor: [Option<UniformTerm>; 2],
    occurrences: Vec<Occurrence>,
}

struct Extraction<'a> {
    system: &'a mut System,
    kind: DivisorKind,
    costs: Vec<Cost>,
    candidates: Vec<Candidate>,
    index: FxHashMap<[Option<UniformTerm>; 2], u32>,
    /// Candidates by their apparent saving; among equals the first that was found.
    queue: BinaryHeap<(i32, Reverse<u32>)>,
    /// Candidates with new occurrences.
    touched: Vec<u32>,
    /// Occurrences that may still be examined, and terms that may be moved: proportional to the
    /// graph, so that the search takes linear time.
    effort: usize,
}

/// Extract divisors in `places` as long as that saves operations. Returns true if there were any.
pub fn extract(system: &mut System, places: &[Place], kind: DivisorKind) -> bool {
    let terms: usize = places.iter().map(|&p| system.sums[p as usize].len()).sum();
    let mut extraction = Extraction {
        costs: vec![Cost::default(); system.sums.len()],
        system,
        kind,
        candidates: Vec::new(),
        index: FxHashMap::default(),
        queue: BinaryHeap::new(),
        touched: Vec::new(),
        effort: 1000 + EFFORT * terms,
    };
    for &place in places {
        extraction.costs[place as usize] =
            extraction.system.cost(&extraction.system.sums[place as usize]);
        extraction.offer_all(place);
    }
    extraction.run()
}

impl Extraction<'_> {
    /// Extract the best divisors one after the other; returns true if there were any.
    fn run(&mut self) -> bool {
        let mut found = false;
        self.enqueue();
        while let Some((promised, Reverse(candidate))) = self.queue.pop() {
            let saving = self.saving(candidate);
            if saving <= 0 {
                continue;
            }
            if saving < promised
                && self.queue.peek().is_some_and(|&next| next > (saving, Reverse(candidate)))
            {
                self.queue.push((saving, Reverse(candidate)));
                continue;
            }
            if self.effort == 0 {
                break;
            }
            self.apply(candidate);
            found = true;
            self.enqueue();
        }
        found
    }

    /// Evaluate candidates with new occurrences.
    fn enqueue(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for candidate in touched.drain(..) {
            let saving = self.saving(candidate);
            if saving > 0 {
                self.queue.push((saving, Reverse(candidate)));
            }
        }
        self.touched = touched;
    }

    /// Operations that a candidate saves now. Removes occurrences that no longer exist.
    fn saving(&mut self, candidate: u32) -> i32 {
        let candidate = candidate as usize;
        let mut occurrences = std::mem::take(&mut self.candidates[candidate].occurrences);
        self.effort = self.effort.saturating_sub(occurrences.len());
        occurrences.retain(|o| {
            o.terms.iter().all(|&t| find(&self.system.sums[o.place as usize], t).is_some())
        });
        let divisor = self.candidates[candidate].divisor;
        let divisor = match &divisor {
            [Some(a), Some(b)] => &[*a, *b][..],
            [a, _] => a.as_slice(),
        };
        let known = self.system.find(divisor);
        let own = known.and_then(|atom| self.system.sum_of(atom));
        let mut saving = if known.is_some() { 0 } else { -self.system.cost(divisor).operations() };
        // A new atom's sign is free: rescaling will set it as most occurrences need it.
        let negative = occurrences.iter().filter(|o| o.cofactor.coefficient.is_negative()).count();
        let turned = known.is_none() && 2 * negative > occurrences.len();
        for (i, o) in occurrences.iter().enumerate() {
            // Occurrences that share a term exclude each other; they were found one soon after the
            // other.
            let taken = self.kind == DivisorKind::Sums
                && occurrences[..i]
                    .iter()
                    .rev()
                    .take(NEAR)
                    .any(|p| p.place == o.place && p.terms.iter().any(|t| o.terms.contains(t)));
            if !taken && own != Some(o.place) {
                saving += self.gain(o, turned);
            }
        }
        self.candidates[candidate].occurrences = occurrences;
        saving
    }

    /// Saving of an occurrence; with `turned`, the divisor's sign is changed.
    fn gain(&self, o: &Occurrence, turned: bool) -> i32 {
        let cost = self.costs[o.place as usize];
        let mut after = cost;
        after.add(self.system.weight(o.terms[0]), -1);
        if self.kind == DivisorKind::Sums {
            after.add(self.system.weight(o.terms[1]), -1);
        }
        let cofactor = self.system.monomials.factors(o.cofactor.monomial);
        let coefficient = o.cofactor.coefficient;
        after.add(weight(if turned { coefficient.negated() } else { coefficient }, cofactor, 1), 1);
        cost.operations() - after.operations()
    }

    /// Make a divisor an atom.
    fn apply(&mut self, candidate: u32) {
        let candidate = candidate as usize;
        let mut divisor: Vec<UniformTerm> =
            self.candidates[candidate].divisor.into_iter().flatten().collect();
        let occurrences = std::mem::take(&mut self.candidates[candidate].occurrences);
        let replacement = match self.system.find(&divisor) {
            Some(atom) => self.system.atom(atom),
            None if self.kind == DivisorKind::Products => {
                let atom = self.system.define(divisor);
                self.system.atom(atom)
            }
            None => {
                // Its terms may cancel: then it is shorter than it seemed.
                expand(self.system, &mut divisor);
                match self.system.value(divisor) {
                    Some(value) => value,
                    None => return self.replace(occurrences.iter(), None),
                }
            }
        };
        let atom = self.system.monomials.atom(replacement.monomial);
        let own = atom.and_then(|atom| self.system.sum_of(atom));
        if let Some(own) = own
            && own as usize >= self.costs.len()
        {
            self.costs.resize(own as usize + 1, Cost::default());
            self.costs[own as usize] = self.system.cost(&self.system.sums[own as usize]);
            self.offer_all(own);
        }
        self.replace(occurrences.iter().filter(|o| own != Some(o.place)), Some(replacement));
    }

    /// Replace the occurrences of a divisor.
    fn replace<'o>(
        &mut self,
        occurrences: impl Iterator<Item = &'o Occurrence>,
        replacement: Option<UniformTerm>,
    ) {
        let mut occurrences: Vec<&Occurrence> = occurrences.collect();
        occurrences.sort_by_key(|o| o.place);
        for here in occurrences.chunk_by(|a, b| a.place == b.place) {
            let place = here[0].place;
            let mut terms = std::mem::take(&mut self.system.sums[place as usize]);
            self.effort = self.effort.saturating_sub(terms.len() / 4);
            let (mut gone, mut new) = (vec![false; terms.len()], Vec::with_capacity(here.len()));
            for o in here {
                let [i, j] = o.terms.map(|t| find(&terms, t).filter(|&i| !gone[i]));
                let (Some(i), Some(j)) = (i, j) else { continue };
                (gone[i], gone[j]) = (true, true);
                new.extend(replacement.map(|r| self.system.product(o.cofactor, r)));
            }
            let mut gone = gone.into_iter();
            terms.retain(|_| !gone.next().expect("one for each term"));
            terms.extend_from_slice(&new);
            self.system.collect(&mut terms);
            self.system.rewrite(place, terms);
            self.costs[place as usize] = self.system.cost(&self.system.sums[place as usize]);
            for term in new {
                let terms = &self.system.sums[place as usize];
                let Ok(at) = terms.binary_search_by_key(&term.monomial, |t| t.monomial) else {
                    continue;
                };
                match self.kind {
                    DivisorKind::Sums => self.pair(place, at),
                    DivisorKind::Products => self.split(place, at),
                }
            }
        }
    }

    /// Offer all divisors in a place.
    fn offer_all(&mut self, place: Place) {
        let count = self.system.sums[place as usize].len();
        for at in 0..count {
            match self.kind {
                DivisorKind::Sums => {
                    let last = if count <= ALL_PAIRS { count } else { count.min(at + 1 + NEAR) };
                    (at + 1..last).for_each(|other| self.offer_sum(place, at, other));
                }
                DivisorKind::Products => self.split(place, at),
            }
        }
    }

    /// Offer the divisors of a term with the others of its sum.
    fn pair(&mut self, place: Place, at: usize) {
        let count = self.system.sums[place as usize].len();
        let (first, last) = if count <= ALL_PAIRS {
            (0, count)
        } else {
            (at.saturating_sub(NEAR), count.min(at + 1 + NEAR))
        };
        for other in (first..last).filter(|&other| other != at) {
            self.offer_sum(place, at.min(other), at.max(other));
        }
    }

    /// Offer the divisor of two terms.
    fn offer_sum(&mut self, place: Place, i: usize, j: usize) {
        let sum = &self.system.sums[place as usize];
        let terms = [sum[i], sum[j]];
        let mut divisor = terms;
        let cofactor = self.system.take_content(&mut divisor);
        self.offer(divisor.map(Some), Occurrence { place, terms, cofactor });
    }

    /// Offer the products in a term.
    fn split(&mut self, place: Place, at: usize) {
        let term = self.system.sums[place as usize][at];
        let count = self.system.monomials.literals(term.monomial).len();
        let coefficient = term.coefficient;
        for i in 0..count {
            let (atom, e) = self.system.monomials.literals(term.monomial)[i];
            if !coefficient.is_unit() {
                let divisor = UniformTerm {
                    coefficient: coefficient.magnitude(),
                    monomial: self.system.monomials.power_of(atom, e.signum()),
                };
                self.offer_product(place, term, divisor);
            }
            if e.abs() > 1 {
                let monomial = self.system.monomials.power_of(atom, 2 * e.signum());
                self.offer_product(
                    place,
                    term,
                    UniformTerm { coefficient: Coefficient::UNIT, monomial },
                );
            }
            for j in i + 1..count {
                let (other, f) = self.system.monomials.literals(term.monomial)[j];
                let monomial = self.pair_of((atom, e.signum()), (other, f.signum()));
                self.offer_product(
                    place,
                    term,
                    UniformTerm { coefficient: Coefficient::UNIT, monomial },
                );
            }
        }
    }

    fn pair_of(&mut self, a: Literal, b: Literal) -> Monomial {
        let (a, b) =
            (self.system.monomials.power_of(a.0, a.1), self.system.monomials.power_of(b.0, b.1));
        self.system.monomials.product(a, b)
    }

    fn offer_product(&mut self, place: Place, term: UniformTerm, divisor: UniformTerm) {
        let coefficient = if divisor.coefficient == Coefficient::UNIT {
            term.coefficient
        } else if term.coefficient.is_negative() {
            Coefficient::UNIT.negated()
        } else {
            Coefficient::UNIT
        };
        let cofactor = UniformTerm {
            coefficient,
            monomial: self.system.monomials.quotient(term.monomial, divisor.monomial),
        };
        self.offer([Some(divisor), None], Occurrence { place, terms: [term; 2], cofactor });
    }

    fn offer(&mut self, divisor: [Option<UniformTerm>; 2], occurrence: Occurrence) {
        let next = self.candidates.len() as u32;
        let id = *self.index.entry(divisor).or_insert(next);
        if id == next {
            self.candidates.push(Candidate { divisor, occurrences: Vec::with_capacity(1) });
        }
        self.candidates[id as usize].occurrences.push(occurrence);
        self.touched.push(id);
    }
}

/// Position of a term in a sum.
fn find(sum: &[UniformTerm], term: UniformTerm) -> Option<usize> {
    sum.binary_search_by_key(&term.monomial, |t| t.monomial).ok().filter(|&at| sum[at] == term)
}
