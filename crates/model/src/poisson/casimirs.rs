//! Casimir functions: J ∇C = 0, so that C is constant whatever H is.
//!
//! They are searched part by part, where a part is a set of components that brackets connect, among
//! linear combinations of given functions: the rates J ∇φ at random points form a matrix, and the
//! Casimirs are its null space. Parts that are alike, as spins are, share a search.

use super::Poisson;
use super::structure::{Entries, ROUNDED, slopes, units};
use crate::functional::{Functional, Source, Stretches, Term};
use crate::graph::op::Unary;
use crate::graph::{Graph, Input};
use crate::syntax::span::Span;
use holonome_linear::null_space::{self, null_space};
use rustc_hash::FxHashMap;

/// Largest number of components of a part whose products are candidates, and whose components are.
const MOST_IN_PRODUCTS: usize = 20;
const MOST_ALONE: usize = 160;

/// Number of parts that have a search of their own: others are tested for what these have.
const MOST_SEARCHES: usize = 200;

/// Part of the entries below which a pivot of the rates counts as zero.
const SINGULAR: f64 = 1e-9;

/// Largest denominator of a coefficient that is taken for a fraction, and the part by which it may
/// differ from one.
const LARGEST_DENOMINATOR: u32 = 12;
const FRACTION: f64 = 1e-9;

/// A function of some components of a part, by their numbers in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Factor {
    /// x_a
    Component(u32),
    /// log |x_a|: other trajectories may have another sign.
    Logarithm(u32),
    /// x_a x_b
    Product(u32, u32),
}

/// A combination: coefficients and functions.
pub type Terms = Vec<(f64, Factor)>;

/// A Casimir function of one or more parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Casimir {
    /// Coefficients and functions.
    pub terms: Terms,
    /// Components of each part.
    pub parts: Vec<Vec<u32>>,
    /// True if it is one whatever values the parameters have.
    pub for_all_parameters: bool,
}

impl Casimir {
    /// One scalar for each part.
    pub fn functional(&self, span: Span) -> Functional {
        let outputs = self.parts.len();
        let term = |(coefficient, factor): &(f64, Factor)| {
            let mut graph = Graph::new();
            let [a, b] = [0, 1].map(|slot| graph.input(Input::Slot(slot)));
            let (value, slots, components) = match *factor {
                Factor::Component(k) => (a, 1, vec![k]),
                Factor::Logarithm(k) => {
                    let size = graph.unary(Unary::Abs, a);
                    (graph.unary(Unary::Log, size), 1, vec![k])
                }
                Factor::Product(k, l) => (graph.mul(a, b), 2, vec![k, l]),
            };
            let coefficient = graph.constant(*coefficient);
            let root = graph.mul(coefficient, value);
            let mut table = Stretches::new(slots + 1);
            for (part, places) in self.parts.iter().enumerate() {
                let mut row: Vec<u32> = components.iter().map(|&k| places[k as usize]).collect();
                row.push(part as u32);
                table.push(&row);
            }
            Term {
                spans: vec![span; graph.len()].into(),
                graph,
                roots: vec![root],
                slots: vec![Source::State; slots],
                table,
                numbers: Vec::new(),
                pairs: None,
            }
        };
        Functional { outputs, terms: self.terms.iter().map(term).collect() }
    }
}

/// Brackets of a part at a point.
struct Sample {
    /// State of the part.
    x: Vec<f64>,
    /// Row, column and value of the entries of J.
    entries: Vec<(u32, u32, f64)>,
}

impl Sample {
    /// J g, and the sums of the absolute values of its terms.
    fn rates(&self, gradient: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut rates, mut sizes) = (vec![0.0; self.x.len()], vec![0.0; self.x.len()]);
        for &(row, column, value) in &self.entries {
            let term = value * gradient[column as usize];
            rates[row as usize] += term;
            sizes[row as usize] += term.abs();
        }
        (rates, sizes)
    }

    /// Gradient of a combination.
    fn gradient(&self, terms: &[(f64, Factor)]) -> Vec<f64> {
        let mut gradient = vec![0.0; self.x.len()];
        for &(c, factor) in terms {
            match factor {
                Factor::Component(a) => gradient[a as usize] += c,
                Factor::Logarithm(a) => gradient[a as usize] += c / self.x[a as usize],
                Factor::Product(a, b) => {
                    let (a, b) = (a as usize, b as usize);
                    gradient[a] += c * self.x[b];
                    gradient[b] += c * self.x[a];
                }
            }
        }
        gradient
    }

    /// True if a combination is constant whatever H is.
    fn is_casimir(&self, terms: &[(f64, Factor)]) -> bool {
        self.keeps(&self.gradient(terms))
    }

    /// True if a function with this gradient is constant whatever H is.
    fn keeps(&self, gradient: &[f64]) -> bool {
        let (rates, sizes) = self.rates(gradient);
        rates.iter().zip(sizes).all(|(rate, size)| rate.abs() <= ROUNDED * size)
    }

    /// A gradient in the units of the components, of length 1.
    fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        let mut direction: Vec<f64> =
            gradient.iter().zip(units(&self.x)).map(|(g, unit)| g * unit).collect();
        let norm = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
        direction.iter_mut().for_each(|d| *d /= norm);
        direction
    }
}

impl Poisson {
    /// Casimirs near a state that are not functions of those that `known` functions are, the
    /// functions of few factors first. Parts with equal Casimirs have one together.
    pub fn casimirs(&self, x: &[f64], parameters: &[f64], known: &[&Functional]) -> Vec<Casimir> {
        let parts = self.connected(x.len());
        let widest = parts.iter().map(Vec::len).max().unwrap_or(0).min(MOST_IN_PRODUCTS);
        let count = widest.div_ceil(2) + 4;
        let finite = |x: &Vec<f64>| {
            let values = Entries::values(&self.blocks, x, parameters).values;
            values.iter().all(|(.., value)| value.is_finite())
        };
        let states: Vec<Vec<f64>> =
            Poisson::states_around(x, 2 * count).into_iter().filter(finite).take(count).collect();
        if states.len() < count {
            return Vec::new();
        }
        let samples = self.samples(&parts, &states, parameters);
        // Other values of the parameters, at one of the points.
        let others: Vec<f64> = Poisson::states_around(parameters, 1).remove(0);
        let elsewhere = self.samples(&parts, &states[..1], &others);
        let gradients: Vec<_> =
            known.iter().flat_map(|of| gradients(of, &states[0], parameters)).collect();
        let known = by_part(&parts, x.len(), &gradients);
        let mut found: Vec<Casimir> = Vec::new();
        // Size of a part, signs of its state, and its Casimirs.
        let mut searches: Vec<(usize, bool, Vec<Terms>)> = Vec::new();
        for (number, places) in parts.iter().enumerate() {
            let (samples, own) = (&samples[number], &known[number]);
            if samples[0].entries.is_empty() && places.len() == 1 {
                continue; // a constant, which is no bracket's
            }
            let positive = places.iter().all(|&place| x[place as usize] > 0.0);
            let holds = |all: &[Terms]| {
                !all.is_empty()
                    && samples.iter().all(|sample| all.iter().all(|terms| sample.is_casimir(terms)))
            };
            let alike = searches.iter().find(|(size, signs, all)| {
                *size == places.len() && *signs == positive && holds(all)
            });
            let all = match alike {
                Some((.., all)) => all.clone(),
                None if searches.len() < MOST_SEARCHES => {
                    let all = search(samples, positive);
                    searches.push((places.len(), positive, all.clone()));
                    all
                }
                None => continue,
            };
            for terms in independent(all, &samples[0], own) {
                let for_all_parameters = elsewhere[number][0].is_casimir(&terms);
                let same = |of: &&mut Casimir| {
                    of.terms == terms && of.for_all_parameters == for_all_parameters
                };
                match found.iter_mut().find(same) {
                    Some(casimir) => casimir.parts.push(places.clone()),
                    None => found.push(Casimir {
                        terms,
                        parts: vec![places.clone()],
                        for_all_parameters,
                    }),
                }
            }
        }
        found
    }

    /// True if every output of a functional has vanishing brackets with all components at a state.
    pub fn is_casimir(&self, of: &Functional, x: &[f64], parameters: &[f64]) -> bool {
        let mut by_column: Vec<Vec<(u32, f64)>> = vec![Vec::new(); x.len()];
        for (row, column, value) in Entries::values(&self.blocks, x, parameters).values {
            by_column[column as usize].push((row, value));
        }
        gradients(of, x, parameters).iter().all(|gradient| {
            let mut rates: FxHashMap<u32, (f64, f64)> = FxHashMap::default();
            for &(component, slope) in gradient {
                for &(row, value) in by_column.get(component as usize).into_iter().flatten() {
                    let (rate, size) = rates.entry(row).or_default();
                    *rate += value * slope;
                    *size += (value * slope).abs();
                }
            }
            rates.values().all(|(rate, size)| rate.abs() <= ROUNDED * size)
        })
    }

    /// Brackets of each part at some states.
    fn samples(
        &self,
        parts: &[Vec<u32>],
        states: &[Vec<f64>],
        parameters: &[f64],
    ) -> Vec<Vec<Sample>> {
        let dimension = states[0].len();
        let mut of_place = vec![(0, 0); dimension];
        for (part, places) in parts.iter().enumerate() {
            for (k, &place) in places.iter().enumerate() {
                of_place[place as usize] = (part, k as u32);
            }
        }
        let of_part = |places: &Vec<u32>| {
            let sample = |x: &Vec<f64>| Sample {
                x: places.iter().map(|&place| x[place as usize]).collect(),
                entries: Vec::new(),
            };
            states.iter().map(sample).collect()
        };
        let mut samples: Vec<Vec<Sample>> = parts.iter().map(of_part).collect();
        for (number, x) in states.iter().enumerate() {
            for (row, column, value) in Entries::values(&self.blocks, x, parameters).values {
                let ((part, row), (_, column)) =
                    (of_place[row as usize], of_place[column as usize]);
                samples[part][number].entries.push((row, column, value));
            }
        }
        samples
    }
}

/// Gradients of the outputs of a functional.
fn gradients(of: &Functional, x: &[f64], parameters: &[f64]) -> Vec<Vec<(u32, f64)>> {
    let mut gradients = vec![Vec::new(); of.outputs];
    for (output, component, slope) in slopes(of, x, parameters) {
        gradients[output].push((component, slope));
    }
    gradients
}

/// Those of the gradients that lie in one part, as vectors over its components.
fn by_part(
    parts: &[Vec<u32>],
    dimension: usize,
    gradients: &[Vec<(u32, f64)>],
) -> Vec<Vec<Vec<f64>>> {
    let mut of_place = vec![0; dimension];
    for (part, places) in parts.iter().enumerate() {
        places.iter().for_each(|&place| of_place[place as usize] = part);
    }
    let mut by_part = vec![Vec::new(); parts.len()];
    for gradient in gradients {
        let Some(&(first, _)) = gradient.first() else { continue };
        let part = of_place[first as usize];
        if gradient.iter().any(|&(place, _)| of_place[place as usize] != part) {
            continue;
        }
        let mut dense = vec![0.0; parts[part].len()];
        for (place, slope) in gradient {
            if let Ok(k) = parts[part].binary_search(place) {
                dense[k] += slope;
            }
        }
        by_part[part].push(dense);
    }
    by_part
}

/// Candidates over a part, the simple ones first: of many components sums only.
fn candidates(size: usize, positive: bool) -> Vec<Terms> {
    let all = || 0..size as u32;
    let mut list: Vec<Terms> = Vec::new();
    if size <= MOST_ALONE {
        list.extend(all().map(|a| vec![(1.0, Factor::Component(a))]));
        if positive {
            list.extend(all().map(|a| vec![(1.0, Factor::Logarithm(a))]));
        }
    } else {
        list.push(all().map(|a| (1.0, Factor::Component(a))).collect());
        if positive {
            list.push(all().map(|a| (1.0, Factor::Logarithm(a))).collect());
        }
    }
    if size <= MOST_IN_PRODUCTS {
        let pairs = all().flat_map(|a| (a..size as u32).map(move |b| (a, b)));
        list.extend(pairs.map(|(a, b)| vec![(1.0, Factor::Product(a, b))]));
    } else {
        list.push(all().map(|a| (1.0, Factor::Product(a, a))).collect());
    }
    list
}

/// Combinations of the candidates that are Casimirs at all samples of a part.
fn search(samples: &[Sample], positive: bool) -> Vec<Terms> {
    let candidates = candidates(samples[0].x.len(), positive);
    // Rates by candidates, each with the sum of the absolute values of its terms.
    let mut columns: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut sizes = Vec::new();
    for terms in &candidates {
        let rates = |sample: &Sample| {
            let (rates, wide) = sample.rates(&sample.gradient(terms));
            let units = units(&sample.x).into_iter();
            let of = rates.into_iter().zip(wide).zip(units);
            of.map(|((rate, wide), unit)| (rate / unit, wide / unit)).collect::<Vec<_>>()
        };
        let column: Vec<(f64, f64)> = samples.iter().flat_map(rates).collect();
        let most = column.iter().fold(0.0f64, |most, (rate, _)| most.max(rate.abs()));
        sizes.push(if most > 0.0 { most } else { 1.0 });
        columns.push(column);
    }
    let row = |k: usize| {
        let entry = |(of, size): (&Vec<(f64, f64)>, &f64)| (of[k].0 / size, of[k].1 / size);
        let row: Vec<(f64, f64)> = columns.iter().zip(&sizes).map(entry).collect();
        let most = row.iter().fold(0.0f64, |most, (rate, _)| most.max(rate.abs()));
        let wide = row.iter().fold(0.0f64, |most, (_, wide)| most.max(*wide));
        // Rates of components of other units say as much, but for rounding.
        let unit = if most > ROUNDED * wide { most } else { f64::INFINITY };
        row.iter().map(|(rate, _)| rate / unit).collect()
    };
    let rows: Vec<Vec<f64>> = (0..columns[0].len()).map(row).collect();
    let (mut basis, _) = null_space(rows, SINGULAR);
    // What is rounding shows in these units only.
    let order: Vec<usize> = (0..candidates.len()).collect();
    null_space::reduce(&mut basis, &order, FRACTION);
    for vector in &mut basis {
        vector.iter_mut().zip(&sizes).for_each(|(v, size)| *v /= size);
        if let Some(first) = vector.iter().copied().find(|v| *v != 0.0) {
            vector.iter_mut().for_each(|v| *v /= first);
        }
    }
    let combined = |vector: Vec<f64>| -> Terms {
        let moving = vector.iter().zip(&candidates).filter(|(c, _)| **c != 0.0);
        moving
            .flat_map(|(&c, terms)| terms.iter().map(move |&(one, f)| (fraction(c) * one, f)))
            .collect()
    };
    let mut found: Vec<Terms> = basis.into_iter().map(combined).collect();
    found.retain(|terms| samples.iter().all(|sample| sample.is_casimir(terms)));
    found
}

/// A coefficient, or the fraction that it is a rounding of.
fn fraction(c: f64) -> f64 {
    let of = |denominator: u32| {
        let d = f64::from(denominator);
        let near = (c * d).round() / d;
        ((near - c).abs() <= FRACTION * c.abs()).then_some(near)
    };
    (1..=LARGEST_DENOMINATOR).find_map(of).unwrap_or(c)
}

/// Those of the Casimirs that are not functions of the ones before them and of those with the `known`
/// gradients, at the first sample.
fn independent(mut all: Vec<Terms>, sample: &Sample, known: &[Vec<f64>]) -> Vec<Terms> {
    let mut span = null_space::Span::default();
    for gradient in known.iter().filter(|gradient| sample.keeps(gradient)) {
        span.add(&sample.direction(gradient), 1e-7);
    }
    let degree = |terms: &[(f64, Factor)]| {
        let of = |(_, factor): &(f64, Factor)| match factor {
            Factor::Component(_) => 0,
            Factor::Logarithm(_) => 1,
            Factor::Product(..) => 2,
        };
        (terms.iter().map(of).max(), terms.len())
    };
    all.sort_by_key(|terms| degree(terms));
    all.retain(|terms| span.add(&sample.direction(&sample.gradient(terms)), 1e-7));
    all
}
