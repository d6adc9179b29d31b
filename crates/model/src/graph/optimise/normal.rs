//! Conversion of a graph to its normal form.

use super::monomial::ONE;
use super::system::{OpaqueFunction, System, TermValue, UniformTerm};
use super::uniform::{Coefficient, Divisors, NONE, UniformAtom, is_tame};
use crate::graph::op::{Binary, Unary};
use crate::graph::{Expression, Graph, Input, Node, strict};

/// Length up to which sums are expanded in longer ones, to find out if terms cancel.
const LONGEST_EXPANDED: usize = 32;
/// Length up to which sums are searched for such sums.
const LONGEST_SEARCHED: usize = 64;

/// Largest number of functions with a domain that are tracked.
const MOST_PARTIAL: usize = 1024;

/// Treatment of a product that several operations use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// Expanded in every use.
    Expanded,
    /// Kept as an atom.
    Shared,
}

/// Form of a node found so far.
enum Form {
    /// A sum that only one other operation uses, not yet sorted; `true` for its negative.
    Open(bool, Vec<UniformTerm>),
    /// A term, or 0.
    Closed(TermValue),
}

struct Reader<'a> {
    graph: &'a Graph,
    system: System,
    /// Position of a node among the reachable ones.
    position: Vec<u32>,
    uses: Vec<u32>,
    uniform: Vec<bool>,
    /// Divisors that make it infinite or NaN if they are 0, by node.
    lost: Vec<Divisors>,
    forms: Vec<Form>,
    /// True if a product is used by several operations.
    shares: bool,
    /// Functions with a domain, and their numbers among such atoms.
    partial: Vec<(Node, usize)>,
}

/// For each output, bits of the functions in `partial` whose NaN it has.
fn required(
    graph: &Graph,
    order: &[Node],
    outputs: &[Node],
    partial: &[(Node, usize)],
) -> Vec<Vec<u64>> {
    let mut required = vec![Vec::new(); outputs.len()];
    let words = partial.iter().map(|&(_, k)| k / 64 + 1).max().unwrap_or(0);
    for word in 0..words {
        let mut bits = vec![0u64; order.last().map_or(0, |last| last.index() + 1)];
        partial
            .iter()
            .filter(|(_, k)| k / 64 == word)
            .for_each(|&(node, k)| bits[node.index()] |= 1 << (k % 64));
        for &node in order {
            bits[node.index()] |= strict(graph.expression(node), |a| bits[a.index()]);
        }
        outputs
            .iter()
            .zip(&mut required)
            .for_each(|(output, list)| list.push(bits[output.index()]));
    }
    required
}

/// Read the nodes that `outputs` need; also returns true if other [`Products`] would give another
/// system.
pub fn read(graph: &Graph, outputs: &[Node], products: Products) -> (System, bool) {
    let order = graph.reachable(outputs);
    let mut position = vec![u32::MAX; graph.len()];
    for (i, node) in order.iter().enumerate() {
        position[node.index()] = i as u32;
    }
    let at = |node: Node| position[node.index()] as usize;
    let mut uses = vec![0u32; order.len()];
    for &output in outputs {
        // Two uses: an output is needed as it is.
        uses[at(output)] += 2;
    }
    let mut uniform = vec![false; order.len()];
    for (i, &node) in order.iter().enumerate() {
        let e = graph.expression(node);
        e.arguments().for_each(|a| uses[at(a)] += 1);
        uniform[i] = match e {
            Expression::Input(Input::Parameter(_)) | Expression::Constant(_) => true,
            Expression::Input(_) => false,
            _ => e.arguments().all(|a| uniform[at(a)]),
        };
    }
    let (forms, lost) = (Vec::with_capacity(order.len()), Vec::with_capacity(order.len()));
    let partial = Vec::new();
    let (system, shares) = (System::new(), false);
    let mut reader =
        Reader { graph, system, position, uses, uniform, lost, forms, shares, partial };
    for (i, &node) in order.iter().enumerate() {
        let lost = reader.lost(node);
        reader.lost.push(lost);
        let form = match reader.form(i, node) {
            form @ Form::Open(..) if reader.uses[i] != 1 => Form::Closed(reader.close(form)),
            Form::Closed(Some(term)) if reader.uses[i] > 1 && !reader.system.is_atom(term) => {
                reader.shares = true;
                Form::Closed(Some(if products == Products::Shared {
                    reader.system.as_atom(term)
                } else {
                    term
                }))
            }
            form => form,
        };
        reader.forms.push(form);
    }
    let required = required(graph, &order, outputs, &reader.partial);
    reader.system.partial.required = required;
    for &output in outputs {
        let value = reader.closed(output);
        let lost = reader.lost[reader.position[output.index()] as usize];
        let place = reader.system.place(value.into_iter().collect());
        reader.system.outputs.push((place, lost));
    }
    (reader.system, reader.shares)
}

impl Reader<'_> {
    fn form(&mut self, i: usize, node: Node) -> Form {
        let e = self.graph.expression(node);
        match e {
            Expression::Constant(bits) => {
                let value = f64::from_bits(bits);
                return Form::Closed(if bits == 0 {
                    None
                } else if is_tame(value) {
                    Some(UniformTerm { coefficient: Coefficient::number(value), monomial: ONE })
                } else {
                    Some(UniformTerm {
                        coefficient: self.system.uniforms.atom(UniformAtom::Wild(bits)),
                        monomial: ONE,
                    })
                });
            }
            Expression::Input(Input::Parameter(_)) => return Form::Closed(self.opaque(node)),
            Expression::Input(input) => return Form::Closed(Some(self.system.input(input))),
            Expression::Unary(Unary::Neg, a) => {
                let (negated, terms) = self.open(a);
                return Form::Open(!negated, terms);
            }
            Expression::Binary(Binary::Add, a, b) => return self.sum(a, b, false),
            Expression::Binary(Binary::Sub, a, b) => return self.sum(a, b, true),
            Expression::Binary(Binary::Mul, a, b) => {
                let (a, b) = (self.closed(a), self.closed(b));
                return Form::Closed(a.zip(b).map(|(a, b)| self.system.product(a, b)));
            }
            Expression::Binary(Binary::Div, a, b) => {
                let (a, b) = (self.closed(a), self.closed(b));
                if let Some(b) = b {
                    let inverse = self.system.reciprocal(b);
                    self.lost[i] |= self.system.uniforms.divisors(b.coefficient);
                    return Form::Closed(a.map(|a| self.system.product(a, inverse)));
                }
            }
            _ => {}
        }
        if self.uniform[i] {
            return Form::Closed(self.opaque(node));
        }
        let mut arguments = [None; 3];
        for (place, a) in arguments.iter_mut().zip(e.arguments()) {
            *place = self.closed(a);
        }
        let term = self.system.function(OpaqueFunction::of(e), arguments);
        if self.graph.is_partial_function(node)
            && let Some(atom) = self.system.monomials.atom(term.monomial)
        {
            let atoms = &mut self.system.partial.atoms;
            let number = atoms.iter().position(|a| *a == atom).unwrap_or(atoms.len());
            if number == atoms.len() && number < MOST_PARTIAL {
                atoms.push(atom);
            }
            self.partial.extend((number < atoms.len()).then_some((node, number)));
        }
        Form::Closed(Some(term))
    }

    /// A uniform node as an atom.
    fn opaque(&mut self, node: Node) -> TermValue {
        Some(UniformTerm {
            coefficient: self.system.uniforms.atom(UniformAtom::Node(node)),
            monomial: ONE,
        })
    }

    /// Divisors that make a node infinite or NaN through its arguments: sums, products and
    /// dividends pass these on.
    fn lost(&self, node: Node) -> Divisors {
        let of = |a: Node| self.lost[self.position[a.index()] as usize];
        match self.graph.expression(node) {
            Expression::Unary(Unary::Neg, a) | Expression::Binary(Binary::Div, a, _) => of(a),
            Expression::Binary(Binary::Add | Binary::Sub | Binary::Mul, a, b) => of(a) | of(b),
            _ => NONE,
        }
    }

    /// Terms of a node: its own if nothing else uses them.
    fn open(&mut self, node: Node) -> (bool, Vec<UniformTerm>) {
        let i = self.position[node.index()] as usize;
        match &mut self.forms[i] {
            Form::Open(negated, terms) => (*negated, std::mem::take(terms)),
            Form::Closed(value) => (false, value.iter().copied().collect()),
        }
    }

    fn sum(&mut self, a: Node, b: Node, minus: bool) -> Form {
        let ((a_negated, mut a), (b_negated, mut b)) = (self.open(a), self.open(b));
        let mut b_negated = b_negated != minus;
        let mut negated = a_negated;
        if a.len() < b.len() {
            std::mem::swap(&mut a, &mut b);
            std::mem::swap(&mut negated, &mut b_negated);
        }
        // Into the longer list: a chain of sums takes linear time on either side.
        let flip = negated != b_negated;
        a.extend(b.into_iter().map(|t| {
            if flip { UniformTerm { coefficient: t.coefficient.negated(), ..t } } else { t }
        }));
        Form::Open(negated, a)
    }

    fn closed(&mut self, node: Node) -> TermValue {
        let i = self.position[node.index()] as usize;
        if let Form::Closed(value) = self.forms[i] {
            return value;
        }
        let form = std::mem::replace(&mut self.forms[i], Form::Closed(None));
        let value = self.close(form);
        self.forms[i] = Form::Closed(value);
        value
    }

    fn close(&mut self, form: Form) -> TermValue {
        let (negated, mut terms) = match form {
            Form::Closed(value) => return value,
            Form::Open(negated, terms) => (negated, terms),
        };
        if negated {
            terms.iter_mut().for_each(|t| t.coefficient = t.coefficient.negated());
        }
        self.system.collect(&mut terms);
        expand(&mut self.system, &mut terms);
        self.system.value(terms)
    }
}

/// Expand the sums among the terms of a sum if terms cancel and make it shorter.
pub fn expand(system: &mut System, terms: &mut Vec<UniformTerm>) {
    if terms.len() > LONGEST_SEARCHED {
        return;
    }
    let mut i = 0;
    while i < terms.len() {
        let term = terms[i];
        i += 1;
        let Some(place) = system.monomials.atom(term.monomial).and_then(|atom| system.sum_of(atom))
        else {
            continue;
        };
        let inner = &system.sums[place as usize];
        if inner.len() > LONGEST_EXPANDED {
            continue;
        }
        // Each hit saves one term, and another one if nothing remains of it.
        let (mut hits, mut cancelled) = (0, 0);
        for k in 0..inner.len() {
            let t = system.sums[place as usize][k];
            if let Ok(hit) = terms.binary_search_by_key(&t.monomial, |t| t.monomial) {
                let amount = system.uniforms.product(t.coefficient, term.coefficient);
                hits += 1;
                cancelled +=
                    usize::from(system.uniforms.sum(amount, terms[hit].coefficient).is_none());
            }
        }
        let inner = &system.sums[place as usize];
        let accurate = inner.len() <= cancelled + 1 || system.distributes(term.coefficient, inner);
        if inner.len() <= hits + cancelled && accurate {
            let inner = inner.clone();
            terms.remove(i - 1);
            for t in inner {
                let coefficient = system.uniforms.product(t.coefficient, term.coefficient);
                terms.push(UniformTerm { coefficient, ..t });
            }
            system.collect(terms);
            i -= 1;
        }
    }
}
