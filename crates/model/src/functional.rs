//! Sums of term templates: how every formula of a model is kept.
//!
//! A *term* is one small expression over a few local slots with a table that binds the slots row by row: a
//! bond, a pair, a site. The Hamiltonian of a chain of a million links is two terms, not a million
//! formulas. Small models are unrolled into one graph ([`Functional::unroll`]); sums over rows
//! ([`Functional::evaluate`]) never unroll anything.

use crate::graph::interpret::{Backend, Interpreter, Kernel};
use crate::graph::tape::Tape;
use crate::graph::{Graph, Input, Node};

/// What one slot of a template stands for in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Entries of the row table are state components.
    State,
    /// Entries are parameters.
    Parameter,
    /// Entries are positions in [`Term::numbers`].
    Number,
}

/// A template and its rows.
#[derive(Clone, Debug)]
pub struct Term {
    /// The template's expressions over `Input::Slot` and `Input::Time`.
    pub graph: Graph,
    /// The value's components; row r adds component c to output `first_output[r] + c`.
    pub roots: Vec<Node>,
    /// What each slot reads.
    pub slots: Vec<Source>,
    /// rows × slots.
    pub table: Vec<u32>,
    /// One entry a row.
    pub first_output: Vec<u32>,
    /// Row-dependent numbers.
    pub numbers: Vec<f64>,
}

/// A vector-valued function of (t, x, parameters): each output is a sum of terms.
#[derive(Clone, Debug, Default)]
pub struct Functional {
    /// Number of outputs.
    pub outputs: usize,
    /// The terms.
    pub terms: Vec<Term>,
}

impl Term {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.first_output.len()
    }

    fn row(&self, row: usize) -> &[u32] {
        &self.table[row * self.slots.len()..(row + 1) * self.slots.len()]
    }

    /// The template as a kernel whose state are the slots.
    fn kernel(&self) -> Box<dyn Kernel> {
        let mut g = Graph::new();
        let roots = g.instantiate(&self.graph, &self.roots, |g, input| match input {
            Input::Slot(k) => g.state(k as usize),
            other => g.input(other),
        });
        let tape = Tape::new(&g, &roots, self.slots.len(), 0);
        Interpreter.compile(&tape, 1).expect("the interpreter never refuses")
    }
}

impl Functional {
    /// The size of the unrolled graph at most: nodes of every template times its rows.
    pub fn unrolled_size(&self) -> usize {
        self.terms.iter().map(|t| t.graph.len() * t.rows()).sum()
    }

    /// The functional as nodes of `g`: every template instantiated for each of its rows.
    pub fn unroll(&self, g: &mut Graph) -> Vec<Node> {
        let zero = g.zero();
        let mut outputs = vec![zero; self.outputs];
        for term in &self.terms {
            let plan = term.graph.reachable(&term.roots);
            for row in 0..term.rows() {
                let binding = term.row(row);
                let values = g.instantiate_plan(&term.graph, &plan, &term.roots, &mut |g, input| match input {
                    Input::Slot(k) => {
                        let entry = binding[k as usize];
                        match term.slots[k as usize] {
                            Source::State => g.state(entry as usize),
                            Source::Parameter => g.parameter(entry as usize),
                            Source::Number => g.constant(term.numbers[entry as usize]),
                        }
                    }
                    other => g.input(other),
                });
                for (component, value) in values.into_iter().enumerate() {
                    let output = &mut outputs[term.first_output[row] as usize + component];
                    *output = g.add(*output, value);
                }
            }
        }
        outputs
    }

    /// The value at (t, x), by a loop over rows.
    pub fn evaluate(&self, t: f64, x: &[f64], parameters: &[f64]) -> Vec<f64> {
        let mut outputs = vec![0.0; self.outputs];
        for term in &self.terms {
            let kernel = term.kernel();
            let bound = kernel.bind(&[]);
            let mut work = vec![0.0; kernel.work_len()];
            let mut local = vec![0.0; term.slots.len()];
            let mut value = vec![0.0; term.roots.len()];
            for row in 0..term.rows() {
                for ((local, source), &entry) in local.iter_mut().zip(&term.slots).zip(term.row(row)) {
                    *local = match source {
                        Source::State => x[entry as usize],
                        Source::Parameter => parameters[entry as usize],
                        Source::Number => term.numbers[entry as usize],
                    };
                }
                kernel.run(&bound, &[t], &local, &mut value, &mut work);
                for (component, v) in value.iter().enumerate() {
                    outputs[term.first_output[row] as usize + component] += v;
                }
            }
        }
        outputs
    }

    /// The state components that output `output` reads, increasing.
    pub fn reads(&self, output: usize) -> Vec<u32> {
        let mut found = Vec::new();
        for term in &self.terms {
            for row in 0..term.rows() {
                let first = term.first_output[row] as usize;
                if !(first..first + term.roots.len()).contains(&output) {
                    continue;
                }
                for node in term.graph.reachable(&[term.roots[output - first]]) {
                    if let crate::graph::Expression::Input(Input::Slot(k)) = term.graph.expression(node)
                        && term.slots[k as usize] == Source::State
                    {
                        found.push(term.row(row)[k as usize]);
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
