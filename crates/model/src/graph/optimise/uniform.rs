//! Uniform numbers, which depend on parameters and constants only. They are computed once for a
//! run, so they are collected into coefficients as freely as numbers.

use super::monomial::{Monomial, Monomials, ONE};
use crate::graph::{Graph, Node};
use rustc_hash::FxHashMap;

/// A number times a monomial in uniform atoms; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Coefficient {
    bits: u64,
    /// Number in [`Uniforms`].
    pub monomial: Monomial,
}

/// Factor of uniform monomials.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UniformAtom {
    /// A node of the graph that is optimised, opaque.
    Node(Node),
    /// A number, by its bits, by which others are divided inexactly.
    Number(u64),
    /// A number, by its bits, that is not [tame](is_tame): −0, NaN, infinities and others of
    /// extreme size.
    Wild(u64),
    /// A product that is too large to be collected further.
    Product(Coefficient),
    /// A sum of two terms or more.
    Sum(Vec<Coefficient>),
}

/// Set of uniform atoms by which the model divides; only the first ones have a bit.
pub type Divisors = u64;

/// No divisors.
pub const NONE: Divisors = 0;

/// Sizes of numbers that may be multiplied by one another. The product of others could overflow
/// where the model's own order of operations does not.
const TAME: std::ops::Range<f64> = 1e-100..1e100;

/// Length above which sums become atoms of longer ones.
const LONGEST_SUM: usize = 16;

impl Coefficient {
    /// 1
    pub const UNIT: Coefficient = Coefficient { bits: 1.0f64.to_bits(), monomial: ONE };

    /// A number whose size is [tame](is_tame).
    pub fn number(factor: f64) -> Coefficient {
        Coefficient::new(factor, ONE)
    }

    fn new(factor: f64, monomial: Monomial) -> Coefficient {
        Coefficient { bits: factor.to_bits(), monomial }
    }

    /// Number in front.
    pub fn factor(self) -> f64 {
        f64::from_bits(self.bits)
    }

    /// True if it is 1 or −1.
    pub fn is_unit(self) -> bool {
        self.monomial == ONE && self.factor().abs() == 1.0
    }

    /// True if a product with it is exact: plus or minus a power of two.
    pub fn is_exact(self) -> bool {
        self.monomial == ONE && self.bits << 12 == 0
    }

    /// True if its number is negative.
    pub fn is_negative(self) -> bool {
        self.factor() < 0.0
    }

    /// Negative of the coefficient.
    pub fn negated(self) -> Coefficient {
        Coefficient::new(-self.factor(), self.monomial)
    }

    /// Coefficient without its number's sign.
    pub fn magnitude(self) -> Coefficient {
        Coefficient::new(self.factor().abs(), self.monomial)
    }
}

/// True if a number may be collected with others.
pub fn is_tame(value: f64) -> bool {
    TAME.contains(&value.abs())
}

/// a / b, if it is tame and needs no rounding.
fn exact_quotient(a: f64, b: f64) -> Option<f64> {
    let ratio = a / b;
    (is_tame(ratio) && ratio.mul_add(b, -a) == 0.0).then_some(ratio)
}

/// Table of uniform atoms and monomials.
pub struct Uniforms {
    /// The monomials.
    pub monomials: Monomials,
    /// Atoms; those in an atom have smaller numbers than it has.
    pub atoms: Vec<UniformAtom>,
    known: FxHashMap<UniformAtom, u32>,
    /// Bits of atoms that are divisors.
    numbers: Vec<Option<u32>>,
    divisors: u32,
}

impl Uniforms {
    /// An empty table.
    pub fn new() -> Uniforms {
        Uniforms {
            monomials: Monomials::new(),
            atoms: Vec::new(),
            known: FxHashMap::default(),
            numbers: Vec::new(),
            divisors: 0,
        }
    }

    /// An atom as a coefficient.
    pub fn atom(&mut self, atom: UniformAtom) -> Coefficient {
        let id = match self.known.get(&atom) {
            Some(&id) => id,
            None => {
                let id = self.atoms.len() as u32;
                self.atoms.push(atom.clone());
                self.numbers.push(None);
                self.known.insert(atom, id);
                id
            }
        };
        Coefficient::new(1.0, self.monomials.power_of(id, 1))
    }

    /// a b
    pub fn product(&mut self, a: Coefficient, b: Coefficient) -> Coefficient {
        let factor = a.factor() * b.factor();
        let monomial = self.monomials.product(a.monomial, b.monomial);
        if is_tame(factor) && !self.monomials.is_large(monomial) {
            return Coefficient::new(factor, monomial);
        }
        let (a, b) = (self.atom(UniformAtom::Product(a)), self.atom(UniformAtom::Product(b)));
        Coefficient::new(1.0, self.monomials.product(a.monomial, b.monomial))
    }

    /// a b^e for e = 1 or e = −1.
    pub fn scaled(&mut self, a: Coefficient, b: Coefficient, e: i32) -> Coefficient {
        if e > 0 {
            return self.product(a, b);
        }
        let monomial = self.monomials.quotient(a.monomial, b.monomial);
        match exact_quotient(a.factor(), b.factor()) {
            Some(ratio) => Coefficient::new(ratio, monomial),
            None => {
                let b = self.atom(UniformAtom::Number(b.bits));
                Coefficient::new(a.factor(), self.monomials.quotient(monomial, b.monomial))
            }
        }
    }

    /// Divisors in `a`: a value divided by `a` is lost if one of them is 0.
    pub fn divisors(&mut self, a: Coefficient) -> Divisors {
        let mut divisors = NONE;
        for &(atom, e) in self.monomials.literals(a.monomial) {
            let atom = atom as usize;
            if e > 0
                && self.numbers[atom].is_none()
                && !matches!(self.atoms[atom], UniformAtom::Wild(_))
            {
                self.numbers[atom] = (self.divisors < Divisors::BITS).then_some(self.divisors);
                self.divisors += 1;
            }
            divisors |= if e > 0 { self.bit(atom) } else { NONE };
        }
        divisors
    }

    fn bit(&self, atom: usize) -> Divisors {
        self.numbers[atom].map_or(NONE, |number| 1 << number)
    }

    /// True if a term may have the coefficient `new` instead of `old`, given the divisors `lost`
    /// that make all that it contributes to meaningless. A gain or a coefficient of gravity may be
    /// 0: terms that the model does not divide by it must not be divided by it.
    pub fn may_become(&self, new: Coefficient, old: Coefficient, lost: Divisors) -> bool {
        let old = self.monomials.literals(old.monomial);
        self.monomials.literals(new.monomial).iter().all(|&(atom, e)| {
            e > 0
                || old.iter().any(|&(other, f)| other == atom && f < 0)
                || self.bit(atom as usize) & lost != NONE
                || matches!(self.atoms[atom as usize], UniformAtom::Number(_))
        })
    }

    /// a + b; `None` for 0.
    pub fn sum(&mut self, a: Coefficient, b: Coefficient) -> Option<Coefficient> {
        if a.monomial == b.monomial {
            let factor = a.factor() + b.factor();
            if factor == 0.0 {
                return None;
            }
            if is_tame(factor) {
                return Some(Coefficient::new(factor, a.monomial));
            }
        }
        let mut terms = Vec::new();
        self.push_terms(a, &mut terms);
        self.push_terms(b, &mut terms);
        terms.sort_by_key(|t| t.monomial);
        let mut merged: Vec<Coefficient> = Vec::with_capacity(terms.len());
        for term in terms {
            match merged.last_mut() {
                Some(last)
                    if last.monomial == term.monomial && is_tame(last.factor() + term.factor()) =>
                {
                    *last = Coefficient::new(last.factor() + term.factor(), term.monomial);
                }
                Some(last) if last.monomial == term.monomial && last.factor() == -term.factor() => {
                    merged.pop();
                }
                _ => merged.push(term),
            }
        }
        let (&first, rest) = merged.split_first()?;
        if rest.is_empty() {
            return Some(first);
        }
        let content = self.content(merged.iter().copied());
        for term in &mut merged {
            *term = self.without(*term, content);
        }
        let sum = self.atom(UniformAtom::Sum(merged));
        Some(self.product(sum, content))
    }

    fn push_terms(&self, a: Coefficient, terms: &mut Vec<Coefficient>) {
        if let Some(atom) = self.monomials.atom(a.monomial)
            && let UniformAtom::Sum(inner) = &self.atoms[atom as usize]
            && inner.len() < LONGEST_SUM
            && inner.iter().all(|t| is_tame(t.factor() * a.factor()))
        {
            terms.extend(
                inner.iter().map(|t| Coefficient::new(t.factor() * a.factor(), t.monomial)),
            );
        } else {
            terms.push(a);
        }
    }

    /// Content of all terms: the literals that divide them all, and the first term's number if it
    /// divides the others exactly in double precision.
    pub fn content(&mut self, terms: impl Iterator<Item = Coefficient> + Clone) -> Coefficient {
        let Some(first) = terms.clone().next() else { return Coefficient::UNIT };
        let (f, mut monomial, mut divides) = (first.factor(), first.monomial, true);
        for t in terms {
            monomial = self.monomials.common(monomial, t.monomial);
            divides &= exact_quotient(t.factor(), f).is_some();
        }
        Coefficient::new(if divides { f } else { f.signum() }, monomial)
    }

    /// Term divided by its content.
    pub fn without(&mut self, term: Coefficient, content: Coefficient) -> Coefficient {
        Coefficient::new(
            term.factor() / content.factor(),
            self.monomials.quotient(term.monomial, content.monomial),
        )
    }
}

/// Writer of uniform numbers into a graph.
pub struct Writer<'a> {
    uniforms: &'a Uniforms,
    nodes: Vec<Option<Node>>,
    known: FxHashMap<Coefficient, Node>,
}

impl<'a> Writer<'a> {
    /// Write the atoms of `coefficients`; nodes come from `source`.
    pub fn new(
        out: &mut Graph,
        uniforms: &'a Uniforms,
        source: &Graph,
        coefficients: impl Iterator<Item = Coefficient>,
    ) -> Writer<'a> {
        let mut needed = vec![false; uniforms.atoms.len()];
        let mark = |c: Coefficient, needed: &mut Vec<bool>| {
            uniforms
                .monomials
                .literals(c.monomial)
                .iter()
                .for_each(|&(atom, _)| needed[atom as usize] = true);
        };
        coefficients.for_each(|c| mark(c, &mut needed));
        for atom in (0..needed.len()).rev() {
            match &uniforms.atoms[atom] {
                UniformAtom::Product(c) if needed[atom] => mark(*c, &mut needed),
                UniformAtom::Sum(terms) if needed[atom] => {
                    terms.iter().for_each(|&t| mark(t, &mut needed))
                }
                _ => {}
            }
        }
        let mut writer =
            Writer { uniforms, nodes: vec![None; needed.len()], known: FxHashMap::default() };
        writer.write_atoms(out, source, &needed);
        writer
    }

    fn write_atoms(&mut self, out: &mut Graph, source: &Graph, needed: &[bool]) {
        let atoms: Vec<usize> = (0..needed.len()).filter(|&a| needed[a]).collect();
        let roots: Vec<Node> = atoms
            .iter()
            .filter_map(|&a| match self.uniforms.atoms[a] {
                UniformAtom::Node(node) => Some(node),
                _ => None,
            })
            .collect();
        let mut copies = out.instantiate(source, &roots, |g, input| g.input(input)).into_iter();
        for a in atoms {
            let node = match &self.uniforms.atoms[a] {
                UniformAtom::Node(_) => copies.next().expect("one copy for each node"),
                UniformAtom::Number(bits) | UniformAtom::Wild(bits) => {
                    out.constant(f64::from_bits(*bits))
                }
                UniformAtom::Product(c) => self.node(out, *c),
                UniformAtom::Sum(terms) => {
                    let mut sum = self.node(out, terms[0]);
                    for &term in &terms[1..] {
                        let magnitude = self.node(out, term.magnitude());
                        sum = if term.is_negative() {
                            out.sub(sum, magnitude)
                        } else {
                            out.add(sum, magnitude)
                        };
                    }
                    sum
                }
            };
            self.nodes[a] = Some(node);
        }
    }

    /// Node of a coefficient.
    pub fn node(&mut self, out: &mut Graph, c: Coefficient) -> Node {
        if let Some(&node) = self.known.get(&c) {
            return node;
        }
        let (mut above, mut below) = (out.constant(c.factor()), out.one());
        for &(atom, e) in self.uniforms.monomials.literals(c.monomial) {
            let base = self.nodes[atom as usize].expect("atoms are written in order");
            let power = power(out, base, e.unsigned_abs());
            let side = if e > 0 { &mut above } else { &mut below };
            *side = out.mul(*side, power);
        }
        let node = out.div(above, below);
        self.known.insert(c, node);
        node
    }
}

/// base^e for e ≥ 1, by squaring.
pub fn power(out: &mut Graph, base: Node, e: u32) -> Node {
    let (mut square, mut result, mut rest) = (base, None, e);
    loop {
        if rest & 1 == 1 {
            result = Some(result.map_or(square, |r| out.mul(r, square)));
        }
        rest >>= 1;
        match result {
            Some(r) if rest == 0 => return r,
            _ => square = out.mul(square, square),
        }
    }
}
