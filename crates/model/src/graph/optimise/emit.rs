//! Emission of a graph from the normal form.

use super::cost::Weight;
use super::system::{Atom, Place, System, UniformTerm};
use super::uniform::{Coefficient, Writer, power};
use crate::graph::{Graph, Node};

struct Emitter<'a> {
    system: &'a System,
    out: Graph,
    numbers: Writer<'a>,
    sums: Vec<Option<Node>>,
    atoms: Vec<Option<Node>>,
}

/// Emit the sums in `places`, which are in the order of [`System::needed`].
pub fn emit(system: &System, source: &Graph, places: &[Place]) -> (Graph, Vec<Node>) {
    let mut out = Graph::new();
    let coefficients = places.iter().flat_map(|&p| &system.sums[p as usize]).map(|t| t.coefficient);
    let numbers = Writer::new(&mut out, &system.uniforms, source, coefficients);
    let (sums, atoms) = (vec![None; system.sums.len()], vec![None; system.atoms.len()]);
    let mut emitter = Emitter { system, out, numbers, sums, atoms };
    for &place in places {
        let node = emitter.sum(&system.sums[place as usize]);
        emitter.sums[place as usize] = Some(node);
    }
    let outputs = system
        .outputs
        .iter()
        .map(|&(p, _)| emitter.sums[p as usize].expect("outputs are needed"))
        .collect();
    (emitter.out, outputs)
}

impl Emitter<'_> {
    fn place(&self, place: Place) -> Node {
        self.sums[place as usize].expect("places are written in order")
    }

    fn atom(&mut self, atom: u32) -> Node {
        if let Some(node) = self.atoms[atom as usize] {
            return node;
        }
        let node = match self.system.atoms[atom as usize] {
            Atom::Input(input) => self.out.input(input),
            Atom::Sum(place) => self.place(place),
            Atom::Function(function, places) => {
                let mut arguments = [Node(0); 3];
                for (argument, &place) in arguments.iter_mut().zip(&places[..function.arity()]) {
                    *argument = self.place(place);
                }
                function.write(&mut self.out, arguments)
            }
        };
        self.atoms[atom as usize] = Some(node);
        node
    }

    fn sum(&mut self, terms: &[UniformTerm]) -> Node {
        let Some(lead) = self.lead(terms) else {
            if terms.is_empty() {
                return self.out.zero();
            }
            let opposite: Vec<UniformTerm> = terms
                .iter()
                .map(|t| UniformTerm { coefficient: t.coefficient.negated(), ..*t })
                .collect();
            let sum = self.sum(&opposite);
            return self.out.neg(sum);
        };
        let mut sum = self.term(terms[lead].coefficient, terms[lead]);
        for (i, &term) in terms.iter().enumerate() {
            if i != lead {
                let amount = self.term(term.coefficient.magnitude(), term);
                sum = match term.coefficient.is_negative() {
                    true => self.out.sub(sum, amount),
                    false => self.out.add(sum, amount),
                };
            }
        }
        sum
    }

    /// Position of the term that comes first: preferably one without a product to be fused and
    /// without a sign.
    fn lead(&self, terms: &[UniformTerm]) -> Option<usize> {
        let rank = |t: &UniformTerm| {
            let Weight { fuses, leads, .. } = self.system.weight(*t);
            leads.then_some((fuses, t.coefficient.is_negative()))
        };
        (0..terms.len()).filter_map(|i| rank(&terms[i]).map(|r| (r, i))).min().map(|(_, i)| i)
    }

    /// coefficient · (monomial of `term`)
    fn term(&mut self, coefficient: Coefficient, term: UniformTerm) -> Node {
        let literals = self.system.monomials.literals(term.monomial);
        let (mut above, mut below): (Option<Node>, Option<Node>) = (None, None);
        if !coefficient.is_unit() || literals.iter().all(|l| l.1 < 0) {
            above = Some(self.numbers.node(&mut self.out, coefficient));
        }
        for &(atom, e) in literals.iter().filter(|l| l.1 < 0) {
            let power = self.power(atom, e);
            below = Some(below.map_or(power, |b| self.out.mul(b, power)));
        }
        for &(atom, e) in literals.iter().filter(|l| l.1 > 0) {
            // The quotient first: a product after it can be fused.
            above = match (above, below.take()) {
                (Some(a), Some(b)) => Some(self.out.div(a, b)),
                (a, b) => {
                    below = b;
                    a
                }
            };
            let power = self.power(atom, e);
            above = Some(above.map_or(power, |a| self.out.mul(a, power)));
        }
        let above = above.expect("a number or a literal");
        below.map_or(above, |b| self.out.div(above, b))
    }

    fn power(&mut self, atom: u32, e: i32) -> Node {
        let base = self.atom(atom);
        power(&mut self.out, base, e.unsigned_abs())
    }
}
