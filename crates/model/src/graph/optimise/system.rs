//! A graph as a system of sums of products, the representation that the optimiser works on.

use super::monomial::{Monomial, Monomials, ONE};
use super::uniform::{Coefficient, Divisors, NONE, Uniforms};
use crate::graph::op::Binary;
use crate::graph::{Expression, Graph, Input, Node, strict};
use rustc_hash::FxHashMap;

/// A uniform coefficient times a monomial in atoms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UniformTerm {
    /// Number in [`System::monomials`].
    pub monomial: Monomial,
    /// Coefficient over [`System::uniforms`].
    pub coefficient: Coefficient,
}

/// A value as a term; `None` for 0. Sums of several terms are atoms.
pub type TermValue = Option<UniformTerm>;

/// Number of a sum in [`System::sums`].
pub type Place = u32;

/// Factor of monomials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// A state component, the time or a slot.
    Input(Input),
    /// A function of the values in some places; its operation is opaque.
    Function(OpaqueFunction, [Place; 3]),
    /// The sum in a place.
    Sum(Place),
}

/// An operation that is neither a sum nor a product: an expression whose arguments are
/// placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpaqueFunction(Expression);

impl OpaqueFunction {
    /// Operation of an expression.
    pub fn of(e: Expression) -> OpaqueFunction {
        let none = Node(0);
        OpaqueFunction(match e {
            Expression::Constant(_) | Expression::Input(_) => e,
            Expression::Unary(op, _) => Expression::Unary(op, none),
            Expression::Binary(op, ..) => Expression::Binary(op, none, none),
            Expression::Select(..) => Expression::Select(none, none, none),
            Expression::Fused(op, ..) => Expression::Fused(op, none, none, none),
            Expression::Largest(..) => Expression::Largest(none, none),
            Expression::RoughPower(..) => Expression::RoughPower(none, none),
            Expression::Spread(_, lane) => Expression::Spread(none, lane),
        })
    }

    /// Number of arguments.
    pub fn arity(self) -> usize {
        self.0.arguments().count()
    }

    /// Bits of the NaNs that it passes on from its arguments.
    fn strict(self, [a, b, c]: [u64; 3]) -> u64 {
        let bits = [a, b, c];
        // The arguments are placeholders, in their order.
        let mut place = 0;
        let next = |place: &mut usize| {
            *place += 1;
            Node(*place as u32 - 1)
        };
        let mut ordered = || next(&mut place);
        let e = match self.0 {
            Expression::Select(..) => Expression::Select(ordered(), ordered(), ordered()),
            Expression::Binary(op, ..) => Expression::Binary(op, ordered(), ordered()),
            Expression::Largest(..) => Expression::Largest(ordered(), ordered()),
            Expression::RoughPower(..) => Expression::RoughPower(ordered(), ordered()),
            Expression::Spread(_, lane) => Expression::Spread(ordered(), lane),
            Expression::Fused(op, ..) => Expression::Fused(op, ordered(), ordered(), ordered()),
            Expression::Unary(op, _) => Expression::Unary(op, ordered()),
            other => other,
        };
        strict(e, |node| bits[node.0 as usize])
    }

    /// Write the operation into a graph.
    pub fn write(self, out: &mut Graph, [a, b, c]: [Node; 3]) -> Node {
        match self.0 {
            Expression::Constant(_) | Expression::Input(_) => unreachable!("no operation"),
            Expression::Unary(op, _) => out.unary(op, a),
            Expression::Binary(op, ..) => out.binary(op, a, b),
            Expression::Select(..) => out.select(a, b, c),
            Expression::Fused(op, ..) => out.fused(op, a, b, c),
            Expression::Largest(..) => out.largest(a, b),
            Expression::RoughPower(..) => out.rough_power(a, b),
            Expression::Spread(_, lane) => out.spread(a, lane),
        }
    }
}

/// Functions that are NaN outside a domain.
#[derive(Default)]
pub struct Partial {
    /// Their atoms.
    pub atoms: Vec<u32>,
    /// For each output, bits of the functions whose NaN it has.
    pub required: Vec<Vec<u64>>,
}

/// Sums of products over atoms. The meaning of a place never changes, only its form.
pub struct System {
    /// Uniform numbers.
    pub uniforms: Uniforms,
    /// Products of atoms.
    pub monomials: Monomials,
    /// The atoms.
    pub atoms: Vec<Atom>,
    /// Definitions of atoms, arguments of functions, and outputs. Terms are in the order of their
    /// monomials, each monomial once.
    pub sums: Vec<Vec<UniformTerm>>,
    /// Atom that a place's sum defines, by place.
    owners: Vec<Option<u32>>,
    /// Places of the results, and the divisors that make them infinite or NaN if they are 0.
    pub outputs: Vec<(Place, Divisors)>,
    /// Functions with a domain.
    pub partial: Partial,
    /// Atoms of sums, by the forms of these.
    known: FxHashMap<Vec<UniformTerm>, u32>,
    functions: FxHashMap<(OpaqueFunction, [TermValue; 3]), u32>,
    inputs: FxHashMap<Input, u32>,
}

impl System {
    /// An empty system.
    pub fn new() -> System {
        System {
            uniforms: Uniforms::new(),
            monomials: Monomials::new(),
            atoms: Vec::new(),
            sums: Vec::new(),
            owners: Vec::new(),
            outputs: Vec::new(),
            partial: Partial::default(),
            known: FxHashMap::default(),
            functions: FxHashMap::default(),
            inputs: FxHashMap::default(),
        }
    }

    fn push_atom(&mut self, atom: Atom) -> u32 {
        self.atoms.push(atom);
        self.atoms.len() as u32 - 1
    }

    /// Create a place with these terms.
    pub fn place(&mut self, terms: Vec<UniformTerm>) -> Place {
        self.sums.push(terms);
        self.owners.push(None);
        self.sums.len() as Place - 1
    }

    /// An atom as a term.
    pub fn atom(&mut self, atom: u32) -> UniformTerm {
        UniformTerm { coefficient: Coefficient::UNIT, monomial: self.monomials.power_of(atom, 1) }
    }

    /// An input.
    pub fn input(&mut self, input: Input) -> UniformTerm {
        let atom = match self.inputs.get(&input) {
            Some(&atom) => atom,
            None => {
                let atom = self.push_atom(Atom::Input(input));
                self.inputs.insert(input, atom);
                atom
            }
        };
        self.atom(atom)
    }

    /// A function of some values.
    pub fn function(&mut self, function: OpaqueFunction, arguments: [TermValue; 3]) -> UniformTerm {
        let atom = match self.functions.get(&(function, arguments)) {
            Some(&atom) => atom,
            None => {
                let mut places = [0; 3];
                for k in 0..function.arity() {
                    places[k] = self.place(arguments[k].into_iter().collect());
                }
                let atom = self.push_atom(Atom::Function(function, places));
                self.functions.insert((function, arguments), atom);
                atom
            }
        };
        self.atom(atom)
    }

    /// Atom of a sum, if there is one.
    pub fn find(&self, terms: &[UniformTerm]) -> Option<u32> {
        self.known.get(terms).copied()
    }

    /// Atom of a sum, created if necessary.
    pub fn define(&mut self, terms: Vec<UniformTerm>) -> u32 {
        if let Some(atom) = self.find(&terms) {
            return atom;
        }
        let place = self.place(terms.clone());
        let atom = self.push_atom(Atom::Sum(place));
        self.owners[place as usize] = Some(atom);
        self.known.insert(terms, atom);
        atom
    }

    /// Rewrite a sum. If the new form is that of another atom, both become one.
    pub fn rewrite(&mut self, place: Place, terms: Vec<UniformTerm>) {
        let terms = match self.owners[place as usize] {
            Some(owner) => match self.known.get(&terms) {
                Some(&other) if other != owner => vec![self.atom(other)],
                Some(_) => terms,
                None => {
                    self.known.insert(terms.clone(), owner);
                    terms
                }
            },
            None => terms,
        };
        self.sums[place as usize] = terms;
    }

    /// Forget all forms of sums but the current ones: atoms have new scales.
    pub fn forget(&mut self) {
        self.known.clear();
        for (place, owner) in self.owners.iter().enumerate() {
            if let Some(owner) = owner {
                self.known.entry(self.sums[place].clone()).or_insert(*owner);
            }
        }
    }

    /// Atoms with a domain whose NaN each place still passes on: one bit for each of the atoms in
    /// `bits`.
    fn passed_on(&self, places: &[Place], bits: &FxHashMap<u32, u64>) -> Vec<u64> {
        let mut passed = vec![0u64; self.sums.len()];
        for &place in places {
            let mut all = 0;
            for term in &self.sums[place as usize] {
                for &(atom, _) in self.monomials.literals(term.monomial) {
                    all |= bits.get(&atom).copied().unwrap_or(0);
                    all |= match self.atoms[atom as usize] {
                        Atom::Input(_) => 0,
                        Atom::Sum(place) => passed[place as usize],
                        Atom::Function(function, places) => {
                            function.strict(places.map(|p| passed[p as usize]))
                        }
                    };
                }
            }
            passed[place as usize] = all;
        }
        passed
    }

    /// Restore in every output the NaN of functions that have cancelled in it: sqrt(x)/sqrt(x) is 1
    /// only for x ≥ 0.
    pub fn keep_domains(&mut self, places: &[Place]) {
        let partial = std::mem::take(&mut self.partial);
        for (word, atoms) in partial.atoms.chunks(64).enumerate() {
            let bits: FxHashMap<u32, u64> =
                atoms.iter().enumerate().map(|(k, &atom)| (atom, 1 << k)).collect();
            let passed = self.passed_on(places, &bits);
            for k in 0..self.outputs.len() {
                let place = self.outputs[k].0;
                let mut lost = partial.required[k][word] & !passed[place as usize];
                while lost != 0 {
                    let function = self.atom(atoms[lost.trailing_zeros() as usize]);
                    lost &= lost - 1;
                    self.guard(place, function);
                }
            }
        }
    }

    /// Replace the value by if(f == f, value, f), which is NaN where f is.
    fn guard(&mut self, place: Place, f: UniformTerm) {
        let none = Node(0);
        let equal = OpaqueFunction::of(Expression::Binary(Binary::Equal, none, none));
        let select = OpaqueFunction::of(Expression::Select(none, none, none));
        let terms = std::mem::take(&mut self.sums[place as usize]);
        let value = self.value(terms);
        let defined = self.function(equal, [Some(f), Some(f), None]);
        let guarded = self.function(select, [Some(defined), value, Some(f)]);
        self.sums[place as usize] = vec![guarded];
    }

    /// Atom that a place defines.
    pub fn owner(&self, place: Place) -> Option<u32> {
        self.owners[place as usize]
    }

    /// a b
    pub fn product(&mut self, a: UniformTerm, b: UniformTerm) -> UniformTerm {
        let monomial = self.monomials.product(a.monomial, b.monomial);
        if self.monomials.is_large(monomial) {
            let (a, b) = (self.as_atom(a), self.as_atom(b));
            return self.product(a, b);
        }
        UniformTerm { coefficient: self.uniforms.product(a.coefficient, b.coefficient), monomial }
    }

    /// True if a term is a coefficient times a single atom, or times none.
    pub fn is_atom(&self, a: UniformTerm) -> bool {
        a.monomial == ONE || self.monomials.atom(a.monomial).is_some()
    }

    /// A product as a coefficient times a single atom.
    pub fn as_atom(&mut self, a: UniformTerm) -> UniformTerm {
        if self.is_atom(a) {
            return a;
        }
        let atom =
            self.define(vec![UniformTerm { coefficient: Coefficient::UNIT, monomial: a.monomial }]);
        UniformTerm { coefficient: a.coefficient, ..self.atom(atom) }
    }

    /// 1 / a
    pub fn reciprocal(&mut self, a: UniformTerm) -> UniformTerm {
        UniformTerm {
            coefficient: self.uniforms.scaled(Coefficient::UNIT, a.coefficient, -1),
            monomial: self.monomials.times_power(ONE, a.monomial, -1),
        }
    }

    /// Sort terms and add up those with the same monomial.
    pub fn collect(&mut self, terms: &mut Vec<UniformTerm>) {
        // The sort is stable: the order of addition depends on the graph only.
        terms.sort_by_key(|t| t.monomial);
        let mut kept = 0;
        let mut i = 0;
        while i < terms.len() {
            let monomial = terms[i].monomial;
            let mut sum = Some(terms[i].coefficient);
            i += 1;
            while i < terms.len() && terms[i].monomial == monomial {
                let next = terms[i].coefficient;
                sum = match sum {
                    Some(s) => self.uniforms.sum(s, next),
                    None => Some(next),
                };
                i += 1;
            }
            if let Some(coefficient) = sum {
                terms[kept] = UniformTerm { coefficient, monomial };
                kept += 1;
            }
        }
        terms.truncate(kept);
    }

    /// A collected sum as a value: the content of its coefficients times an atom.
    pub fn value(&mut self, mut terms: Vec<UniformTerm>) -> TermValue {
        let (&first, rest) = terms.split_first()?;
        if rest.is_empty() {
            return Some(first);
        }
        let coefficient = self.take_coefficient(&mut terms);
        let atom = self.define(terms);
        Some(UniformTerm { coefficient, ..self.atom(atom) })
    }

    /// Divide terms by their common content, and return it.
    pub fn take_content(&mut self, terms: &mut [UniformTerm]) -> UniformTerm {
        let coefficient = self.take_coefficient(terms);
        let first = terms[0].monomial;
        let monomial = terms[1..].iter().fold(first, |m, t| self.monomials.common(m, t.monomial));
        if monomial != ONE {
            for term in terms.iter_mut() {
                term.monomial = self.monomials.quotient(term.monomial, monomial);
            }
            terms.sort_by_key(|t| t.monomial);
        }
        UniformTerm { coefficient, monomial }
    }

    /// Divide terms by the content of their coefficients, and return it.
    fn take_coefficient(&mut self, terms: &mut [UniformTerm]) -> Coefficient {
        let coefficient = self.uniforms.content(terms.iter().map(|t| t.coefficient));
        for term in terms.iter_mut() {
            term.coefficient = self.uniforms.without(term.coefficient, coefficient);
        }
        coefficient
    }

    /// Place of the sum that an atom stands for; `None` for other atoms.
    pub fn sum_of(&self, atom: u32) -> Option<Place> {
        match self.atoms[atom as usize] {
            Atom::Sum(place) => Some(place),
            _ => None,
        }
    }

    /// Places that the outputs need, each before those that need it; `None` if there is a cycle,
    /// which would be a mistake in the optimiser.
    pub fn needed(&self) -> Option<Vec<Place>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.sums.len()];
        let mut order = Vec::new();
        let mut stack: Vec<Place> = self.outputs.iter().rev().map(|o| o.0).collect();
        while let Some(&place) = stack.last() {
            match marks[place as usize] {
                Mark::New => {
                    marks[place as usize] = Mark::Open;
                    let top = stack.len();
                    for term in &self.sums[place as usize] {
                        for &(atom, _) in self.monomials.literals(term.monomial) {
                            stack.extend(self.places_of(atom));
                        }
                    }
                    stack[top..].reverse();
                    let mut open =
                        stack[top..].iter().filter(|&&p| marks[p as usize] == Mark::Open);
                    if open.next().is_some() {
                        return None;
                    }
                }
                Mark::Open => {
                    marks[place as usize] = Mark::Done;
                    order.push(place);
                    stack.pop();
                }
                Mark::Done => {
                    stack.pop();
                }
            }
        }
        Some(order)
    }

    /// For every place, the divisors that make all outputs that need it infinite or NaN.
    pub fn lost(&self, places: &[Place]) -> Vec<Divisors> {
        let mut lost = vec![!NONE; self.sums.len()];
        for &(place, divisors) in &self.outputs {
            lost[place as usize] &= divisors;
        }
        for &place in places.iter().rev() {
            let here = lost[place as usize];
            for term in &self.sums[place as usize] {
                for &(atom, _) in self.monomials.literals(term.monomial) {
                    self.places_of(atom).for_each(|p| lost[p as usize] &= here);
                }
            }
        }
        lost
    }

    /// Places that an atom reads.
    pub fn places_of(&self, atom: u32) -> impl Iterator<Item = Place> {
        let (places, count) = match self.atoms[atom as usize] {
            Atom::Input(_) => ([0; 3], 0),
            Atom::Function(f, places) => (places, f.arity()),
            Atom::Sum(place) => ([place, 0, 0], 1),
        };
        places.into_iter().take(count)
    }
}
