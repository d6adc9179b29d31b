//! Monomials: products of powers, each distinct one stored once.

use rustc_hash::FxHashMap;
use std::rc::Rc;

/// An atom and its exponent, which is not 0.
pub type Literal = (u32, i32);

/// Number of a monomial in its table.
pub type Monomial = u32;

/// The empty product.
pub const ONE: Monomial = 0;

/// Limits above which literals or exponents are not collected. Larger products become atoms, so
/// that a product of n factors costs a time that is linear in n.
const MOST_LITERALS: usize = 8;
const LARGEST_EXPONENT: i32 = 64;

/// Numbers of products that the powers of a monomial take.
#[derive(Clone, Copy, Debug, Default)]
pub struct FactorCounts {
    /// Number for positive exponents; a product of them takes one less.
    pub above: i32,
    /// Number for negative exponents.
    pub below: i32,
}

impl FactorCounts {
    fn of(literals: &[Literal]) -> FactorCounts {
        let mut factors = FactorCounts::default();
        for &(_, e) in literals {
            // A power takes one product for each squaring and each further bit.
            let size = e.unsigned_abs();
            let side = if e > 0 { &mut factors.above } else { &mut factors.below };
            *side += (size.ilog2() + size.count_ones()) as i32;
        }
        factors
    }
}

/// Table of monomials. Literals are in the order of their atoms.
pub struct Monomials {
    list: Vec<Rc<[Literal]>>,
    factors: Vec<FactorCounts>,
    known: FxHashMap<Rc<[Literal]>, Monomial>,
    scratch: Vec<Literal>,
}

impl Monomials {
    /// Create a table with the empty product.
    pub fn new() -> Monomials {
        let (list, factors, scratch) = (Vec::new(), Vec::new(), Vec::new());
        let mut table = Monomials { list, factors, known: FxHashMap::default(), scratch };
        table.intern();
        table
    }

    fn intern(&mut self) -> Monomial {
        if let Some(&id) = self.known.get(self.scratch.as_slice()) {
            return id;
        }
        let (id, literals) =
            (self.list.len() as Monomial, Rc::<[Literal]>::from(self.scratch.as_slice()));
        self.factors.push(FactorCounts::of(&literals));
        self.list.push(literals.clone());
        self.known.insert(literals, id);
        id
    }

    /// The literals of `m`.
    pub fn literals(&self, m: Monomial) -> &[Literal] {
        &self.list[m as usize]
    }

    /// Cost of the powers in `m`.
    pub fn factors(&self, m: Monomial) -> FactorCounts {
        self.factors[m as usize]
    }

    /// Atom of a monomial that is an atom to the first power; `None` for others.
    pub fn atom(&self, m: Monomial) -> Option<u32> {
        match *self.literals(m) {
            [(atom, 1)] => Some(atom),
            _ => None,
        }
    }

    /// True if a product exceeds the limits of collection.
    pub fn is_large(&self, m: Monomial) -> bool {
        let literals = self.literals(m);
        literals.len() > MOST_LITERALS || literals.iter().any(|&(_, e)| e.abs() > LARGEST_EXPONENT)
    }

    /// atom^e
    pub fn power_of(&mut self, atom: u32, e: i32) -> Monomial {
        self.scratch.clear();
        self.scratch.push((atom, e));
        self.intern()
    }

    /// a b^e
    pub fn times_power(&mut self, a: Monomial, b: Monomial, e: i32) -> Monomial {
        if b == ONE || e == 0 {
            return a;
        }
        if a == ONE && e == 1 {
            return b;
        }
        let (list, scratch) = (&self.list, &mut self.scratch);
        scratch.clear();
        merge(&list[a as usize], &list[b as usize], |atom, x, y| {
            let sum = x + e * y;
            if sum != 0 {
                scratch.push((atom, sum));
            }
        });
        self.intern()
    }

    /// a b
    pub fn product(&mut self, a: Monomial, b: Monomial) -> Monomial {
        self.times_power(a, b, 1)
    }

    /// a / b
    pub fn quotient(&mut self, a: Monomial, b: Monomial) -> Monomial {
        self.times_power(a, b, -1)
    }

    /// Literals that divide both: powers of one sign, the smaller of two.
    pub fn common(&mut self, a: Monomial, b: Monomial) -> Monomial {
        if a == b {
            return a;
        }
        let (list, scratch) = (&self.list, &mut self.scratch);
        scratch.clear();
        merge(&list[a as usize], &list[b as usize], |atom, x, y| {
            if x.signum() == y.signum() {
                scratch.push((atom, x.signum() * x.abs().min(y.abs())));
            }
        });
        if scratch.is_empty() { ONE } else { self.intern() }
    }
}

/// Visit two lists of literals side by side; an absent atom has exponent 0.
fn merge(a: &[Literal], b: &[Literal], mut visit: impl FnMut(u32, i32, i32)) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let left = a.get(i).map_or(u32::MAX, |l| l.0);
        let right = b.get(j).map_or(u32::MAX, |l| l.0);
        let atom = left.min(right);
        let x = if left == atom { a[i].1 } else { 0 };
        let y = if right == atom { b[j].1 } else { 0 };
        i += usize::from(left == atom);
        j += usize::from(right == atom);
        visit(atom, x, y);
    }
}
