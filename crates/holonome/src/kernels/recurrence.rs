//! Taylor coefficients order by order, for fields whose series is too long as one formula: a short
//! program for each order, and between two orders the sums of products of lower ones, all side by
//! side.

use super::bound::{Bound, Parametric, Quantities};
use holonome_linear::widest::widest;
use holonome_model::graph::series::{Product, Recurrence};
use std::sync::Arc;

/// Compiled [`Recurrence`] up to an order.
#[derive(Clone)]
pub struct CompiledRecurrence {
    first: Bound,
    next: Bound,
    order: usize,
    /// Length of the state.
    n: usize,
    known: usize,
    products: Arc<[Product]>,
}

/// Numbers of a step, in the scratch.
struct Numbers<'w> {
    /// Coefficients of an order: those of the state, that of the time, and others.
    same: &'w mut [f64],
    /// Inputs of the program for an order.
    inputs: &'w mut [f64],
    outputs: &'w mut [f64],
    /// Factors of the sums, the coefficients of one order after those of another.
    left: &'w mut [f64],
    right: &'w mut [f64],
}

impl CompiledRecurrence {
    /// Compile programs for a state of length `n`.
    pub fn new(
        recurrence: Recurrence,
        n: usize,
        order: usize,
        parameters: &[f64],
    ) -> CompiledRecurrence {
        let Recurrence { first, next, known, products } = recurrence;
        let [first, next] = [first, next].map(|tape| Bound::new(&tape, parameters));
        CompiledRecurrence { first, next, order, n, known, products: products.into() }
    }

    /// Lengths of [`Numbers`], in their order.
    fn lengths(&self) -> [usize; 5] {
        let (sums, others) = (self.products.len(), self.next.outputs() - self.n);
        let inputs = self.n + 3 + self.known + sums;
        let outputs = self.next.outputs().max(self.first.outputs());
        [self.n + 1 + others, inputs, outputs, self.order * sums, self.order * sums]
    }

    /// Length of the scratch of [`CompiledRecurrence::run`].
    pub fn work_len(&self) -> usize {
        let kernels = self.first.work_len().max(self.next.work_len());
        self.lengths().iter().sum::<usize>() + kernels
    }

    /// Put the coefficients of orders 1 and more of the solution through x at t, in powers of time
    /// over `length`: shape (order, n).
    pub fn run(&self, (t, length): (f64, f64), x: &[f64], out: &mut [f64], work: &mut [f64]) {
        let (n, known, sums) = (self.n, self.known, self.products.len());
        let mut rest = work;
        let [same, inputs, outputs, left, right] = self.lengths().map(|length| {
            let (numbers, behind) = std::mem::take(&mut rest).split_at_mut(length);
            rest = behind;
            numbers
        });
        let numbers = Numbers { same, inputs, outputs, left, right };
        numbers.inputs[..n].copy_from_slice(x);
        numbers.inputs[n] = length;
        self.first.run(t, &numbers.inputs[..=n], &mut numbers.outputs[..known + n], rest);
        let (of_all, of_state) = numbers.outputs[..known + n].split_at(known);
        numbers.inputs[n + 3..n + 3 + known].copy_from_slice(of_all);
        out[..n].copy_from_slice(of_state);
        for k in 1..self.order {
            let before = &out[(k - 1) * n..k * n];
            let time = if k == 1 { length } else { 0.0 };
            numbers.inputs[..n].copy_from_slice(before);
            let per_order = [time, length * (1.0 / (k + 1) as f64), 1.0 / k as f64];
            numbers.inputs[n..n + 3].copy_from_slice(&per_order);
            let [left, right] = [&*numbers.left, &*numbers.right];
            add_products(k, left, right, &mut numbers.inputs[n + 3 + known..]);
            let outputs = &mut numbers.outputs[..self.next.outputs()];
            self.next.run(t, numbers.inputs, outputs, rest);
            let (others, next) = outputs.split_at(outputs.len() - n);
            out[k * n..(k + 1) * n].copy_from_slice(next);
            numbers.same[..=n].copy_from_slice(&numbers.inputs[..=n]);
            numbers.same[n + 1..].copy_from_slice(others);
            let these = k * sums..(k + 1) * sums;
            let factors = numbers.left[these.clone()].iter_mut().zip(&mut numbers.right[these]);
            for (product, (left, right)) in self.products.iter().zip(factors) {
                let [a, b] = product.factors.map(|place| numbers.same[place as usize]);
                (*left, *right) = (if product.weighted { k as f64 * a } else { a }, b);
            }
        }
    }
}

/// Put Σ a_j b_{k−j} over 0 < j < k into `sums`, one for each pair of factors a and b.
fn add_products(k: usize, left: &[f64], right: &[f64], sums: &mut [f64]) {
    let count = sums.len();
    widest(
        #[inline(always)]
        || {
            sums.fill(0.0);
            for j in 1..k {
                let [a, b] = [&left[j * count..], &right[(k - j) * count..]];
                for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                    *sum = a.mul_add(*b, *sum);
                }
            }
        },
    );
}

impl Parametric for CompiledRecurrence {
    fn rebind(&mut self, parameters: &[f64]) {
        self.first.rebind(parameters);
        self.next.rebind(parameters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Taylor;
    use crate::options::Settings;
    use crate::problem::Problem;
    use holonome_model::graph::tape::Tape;
    use holonome_model::graph::{Graph, Input, Node};
    use std::collections::BTreeMap;

    fn problem(text: &str) -> Problem {
        Problem::from_text("series", text, &BTreeMap::new(), &Settings::default()).unwrap()
    }

    /// Coefficients of all orders as one formula.
    fn straight(taylor: &Taylor, n: usize, parameters: &[f64]) -> Bound {
        let g = &mut Graph::new();
        let x: Vec<Node> = (0..n).map(|i| g.state(i)).collect();
        let (t, length) = (g.input(Input::Time), g.state(n));
        let c = taylor.coefficients(g, (t, length), &x);
        Bound::new(&Tape::of_fused(g, &c[1..].concat(), n + 1, parameters.len()), parameters)
    }

    /// Check that both ways give the same coefficients, to some roundings of those that are added
    /// up in them.
    fn compare(text: &str, t: f64) {
        let problem = problem(text);
        let method = "taylor".parse().unwrap();
        let (field, _) = problem.examined.field.as_ref().expect("a small model");
        let (n, parameters) = (field.dimension, &problem.model.parameter_values[..]);
        let taylor = Taylor::new(&method, field).unwrap();
        let recurrence = taylor.recurrence(parameters.len());
        let ours = CompiledRecurrence::new(recurrence, n, taylor.order as usize, parameters);
        let mut found = vec![f64::NAN; taylor.order as usize * n];
        let mut work = vec![f64::NAN; ours.work_len()];
        let theirs = straight(&taylor, n, parameters);
        let mut expected = vec![f64::NAN; found.len()];
        let mut scratch = vec![f64::NAN; theirs.work_len()];
        for length in [0.01, -0.02] {
            let x = &problem.model.initial;
            let inputs = [&x[..], &[length]].concat();
            // Twice, so that stale scratch would show.
            for _ in 0..2 {
                ours.run((t, length), x, &mut found, &mut work);
            }
            theirs.run(t, &inputs, &mut expected, &mut scratch);
            for (k, (found, expected)) in found.chunks(n).zip(expected.chunks(n)).enumerate() {
                let size = expected.iter().fold(0.0f64, |size, c| size.max(c.abs()));
                for (a, b) in found.iter().zip(expected) {
                    let near = (a - b).abs() <= 1e-12 * size;
                    assert!(near, "{text}: order {}: {a:e} {b:e} of {size:e}", k + 1);
                }
            }
        }
    }

    #[test]
    fn orders_one_by_one_give_the_coefficients_of_the_formula() {
        for formula in [
            "cos(t)*exp(x) + y",
            "sqrt(x)*y/(1 + x^2 + t)",
            "x^1.5 + y^(0.3*x)",
            "1/tanh(x) - atan2(y, x)",
            "asin(0.1*x)*log(x + t) + (x + y)^3",
            "if(a > 0, x*y, exp(x)) - a",
            "a",
            "t",
        ] {
            let text = format!(
                "parameter a = 0.7\nstate x = 0.9\nstate y = 0.4\nx' = {formula}\ny' = x - 0.1*y"
            );
            compare(&text, 0.3);
        }
    }

    #[test]
    fn long_series_are_those_of_the_formula() {
        for n in [2, 5, 10, 20] {
            compare(
                &format!(
                    "size n = {n}\ncoordinate r[i in 1..n] : R^2 = (i, -2*i)\nmomentum p[i] of r = (0.3, 0)\n\
                     hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)\n\
                     constraint anchor : dot(r[1] - (0.3*sin(t), 0), r[1] - (0.3*sin(t), 0)) = 5\n\
                     constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 5\n"
                ),
                0.0,
            );
        }
        for n in [3, 10, 20] {
            compare(
                &format!(
                    "size n = {n}\ncoordinate r[i in 1..n] : R^3 = (cos(2*i), sin(3*i), 0.5*i)\nmomentum p of r\n\
                     hamiltonian sum(i in 1..n : dot(p[i], p[i])/2) - sum(i in 1..n, j in i+1..n : 1/norm(r[i] - r[j]))\n"
                ),
                0.0,
            );
        }
    }
}
