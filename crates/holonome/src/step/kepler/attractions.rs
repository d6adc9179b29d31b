//! Terms −κ/|r − s| and −κ/|r − c| of a potential energy, found by their values and derivatives at
//! random points. So it does not matter how they are written.

use holonome_model::elaborate::model::Model;
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::structure::{ambient_points, evaluate};
use rustc_hash::FxHashMap;

/// Part of their size by which values that are the same in formulas may differ at random points.
const ROUNDED: f64 = 1e-11;

/// Components of the vectors that may attract each other.
const DIMENSIONS: std::ops::RangeInclusive<usize> = 2..=3;

/// Seed of the random points.
const SEED: u64 = 0x6b3e;

/// A body or a fixed centre, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Body(usize),
    Centre(usize),
}

/// Term −κ/|r − s|; κ < 0 if it repels.
pub struct Attraction {
    /// s and r.
    pub between: [Place; 2],
    /// κ, a function of parameters.
    pub strength: Node,
    /// Number of the term.
    pub term: usize,
}

/// A fixed centre.
pub struct Centre {
    /// Functions of parameters, and their values.
    pub place: Vec<Node>,
    pub values: Vec<f64>,
}

/// All of them.
pub struct Attractions {
    /// Components of the bodies.
    pub bodies: Vec<Vec<usize>>,
    pub centres: Vec<Centre>,
    pub list: Vec<Attraction>,
}

/// What a term may be.
enum Form {
    /// Pairs of components of s and r.
    OfTwo(Vec<[usize; 2]>),
    /// The values of the centre.
    OfOne(Vec<f64>),
}

impl Attractions {
    /// Attractions among terms, which are given with the components that they read.
    pub fn new(
        g: &mut Graph,
        terms: &[(Node, Vec<usize>)],
        masses: &[Node],
        model: &Model,
    ) -> Attractions {
        let (lowest, highest) = (*DIMENSIONS.start(), 2 * *DIMENSIONS.end());
        let candidates: Vec<usize> =
            (0..terms.len()).filter(|&k| (lowest..=highest).contains(&terms[k].1.len())).collect();
        let mut nodes = masses.to_vec();
        for &k in &candidates {
            let (term, reads) = &terms[k];
            nodes.push(*term);
            let slopes: FxHashMap<u32, Node> = g.gradient(*term).into_iter().collect();
            let zero = g.zero();
            nodes.extend(reads.iter().map(|&i| slopes.get(&(i as u32)).copied().unwrap_or(zero)));
        }
        let points = ambient_points(model, 3, SEED);
        let at = |(t, x): (f64, &Vec<f64>)| evaluate(g, &nodes, t, x, &model.parameter_values);
        // Also at several times: what attracts must not move by itself, nor grow.
        let values: Vec<Vec<f64>> = [0.0, 0.3, 1.7].into_iter().zip(&points).map(at).collect();
        let mut found = Attractions { bodies: Vec::new(), centres: Vec::new(), list: Vec::new() };
        let mut first = masses.len();
        for &k in &candidates {
            let (term, reads) = &terms[k];
            let values: Vec<&[f64]> =
                values.iter().map(|values| &values[first..=first + reads.len()]).collect();
            first += reads.len() + 1;
            if let Some(form) = form(reads, &values, &points) {
                found.add(g, (k, *term), form, &points[0]);
            }
        }
        // Every body is as heavy along all its components.
        let heavy = |place: &Place| match *place {
            Place::Body(body) => {
                let mut own = found.bodies[body].iter().map(|&i| values[0][i]);
                let first = own.next().unwrap_or(0.0);
                own.all(|w| (w - first).abs() <= ROUNDED * first.abs())
            }
            Place::Centre(_) => true,
        };
        let even: Vec<bool> = found.list.iter().map(|a| a.between.iter().all(heavy)).collect();
        let mut even = even.into_iter();
        found.list.retain(|_| even.next().unwrap_or(false));
        found
    }

    /// κ of all attractions.
    pub fn strengths(&self) -> Vec<Node> {
        self.list.iter().map(|attraction| attraction.strength).collect()
    }

    fn add(&mut self, g: &mut Graph, (number, term): (usize, Node), form: Form, point: &[f64]) {
        match form {
            Form::OfTwo(pairs) => {
                let [first, second] = [0, 1]
                    .map(|side| -> Vec<usize> { pairs.iter().map(|pair| pair[side]).collect() });
                let reference = pairs
                    .iter()
                    .enumerate()
                    .flat_map(|(k, &[a, b])| [(a, if k == 0 { 1.0 } else { 0.0 }), (b, 0.0)]);
                let strength = minus_at(g, term, reference);
                if let (Some(first), Some(second)) = (self.body(first), self.body(second)) {
                    let between = [Place::Body(first), Place::Body(second)];
                    self.list.push(Attraction { between, strength, term: number });
                }
            }
            Form::OfOne(centre) => {
                let slopes = g.gradient(term);
                let reads: Vec<usize> = slopes.iter().map(|&(i, _)| i as usize).collect();
                let Some(body) = self.body(reads.clone()) else { return };
                let at_origin = centre.iter().all(|&c| c == 0.0);
                let (place, strength) = match at_origin {
                    true => {
                        let reference = reads
                            .iter()
                            .enumerate()
                            .map(|(k, &i)| (i, if k == 0 { 1.0 } else { 0.0 }));
                        (vec![g.zero(); reads.len()], minus_at(g, term, reference))
                    }
                    false => centre_of(g, term, &slopes, point),
                };
                let known = |known: &Centre| {
                    known.values.len() == centre.len()
                        && known.values.iter().zip(&centre).all(|(a, b)| {
                            let i = reads[0];
                            (a - b).abs() <= ROUNDED * (a.abs() + b.abs() + point[i].abs())
                        })
                };
                let number_of_centre = self.centres.iter().position(known).unwrap_or_else(|| {
                    self.centres.push(Centre { place, values: centre });
                    self.centres.len() - 1
                });
                let between = [Place::Centre(number_of_centre), Place::Body(body)];
                self.list.push(Attraction { between, strength, term: number });
            }
        }
    }

    /// Number of the body with these components; `None` if some of them are another's.
    fn body(&mut self, components: Vec<usize>) -> Option<usize> {
        if let Some(known) = self.bodies.iter().position(|body| *body == components) {
            return Some(known);
        }
        let taken = |i: &usize| self.bodies.iter().any(|body| body.contains(i));
        if components.iter().any(taken) {
            return None;
        }
        self.bodies.push(components);
        Some(self.bodies.len() - 1)
    }
}

/// −f at numbers for components of the state.
fn minus_at(g: &mut Graph, term: Node, numbers: impl Iterator<Item = (usize, f64)>) -> Node {
    let replaced = numbers.map(|(i, number)| (g.state(i), g.constant(number))).collect();
    let value = g.substituted(&[term], &replaced)[0];
    g.neg(value)
}

/// Centre c and κ of a term f = −κ/|x − c|, as functions of parameters: d = x − c is −∇f f/|∇f|² at any x.
fn centre_of(
    g: &mut Graph,
    term: Node,
    slopes: &[(u32, Node)],
    point: &[f64],
) -> (Vec<Node>, Node) {
    let nodes: Vec<Node> = slopes.iter().map(|&(_, slope)| slope).chain([term]).collect();
    let numbers: Vec<(Node, Node)> =
        slopes.iter().map(|&(i, _)| (g.state(i as usize), g.constant(point[i as usize]))).collect();
    let mut values = g.substituted(&nodes, &numbers.iter().copied().collect());
    let f = values.pop().expect("the term is the last node");
    let square = g.dot(&values, &values);
    let ratio = g.div(f, square);
    let between: Vec<Node> = values.iter().map(|&slope| g.mul(ratio, slope)).collect();
    // x − d with d = −ratio ∇f.
    let centre = numbers.iter().zip(&between).map(|(&(_, x), &b)| g.add(x, b)).collect();
    let square = g.dot(&between, &between);
    let distance = g.unary(holonome_model::graph::op::Unary::Sqrt, square);
    let product = g.mul(f, distance);
    (centre, g.neg(product))
}

/// True if two numbers agree up to rounding of their terms, of this size.
fn agree(a: f64, b: f64, size: f64) -> bool {
    (a - b).abs() <= ROUNDED * size
}

/// Form of a term with these values at the points, the term first and then its derivatives.
fn form(reads: &[usize], values: &[&[f64]], points: &[Vec<f64>]) -> Option<Form> {
    let opposite = |a: usize, b: usize| {
        values.iter().all(|v| {
            let (a, b) = (v[1 + a], v[1 + b]);
            a != 0.0 && agree(a, -b, a.abs() + b.abs())
        })
    };
    let partner = |a: usize| (0..reads.len()).find(|&b| b != a && opposite(a, b));
    let partners: Vec<Option<usize>> = (0..reads.len()).map(partner).collect();
    let dimension =
        if partners.iter().all(Option::is_some) { reads.len() / 2 } else { reads.len() };
    if !DIMENSIONS.contains(&dimension) {
        return None;
    }
    if dimension < reads.len() {
        let pairs: Vec<[usize; 2]> = partners
            .iter()
            .enumerate()
            .filter_map(|(a, b)| b.filter(|&b| a < b).map(|b| [a, b]))
            .collect();
        if pairs.len() != dimension {
            return None;
        }
        let distances = |x: &Vec<f64>| -> Vec<f64> {
            pairs.iter().map(|&[a, b]| x[reads[a]] - x[reads[b]]).collect()
        };
        let along = |v: &&[f64]| -> Vec<f64> { pairs.iter().map(|&[a, _]| v[1 + a]).collect() };
        return is_inverse_distance(values, points, distances, along)
            .then(|| Form::OfTwo(pairs.iter().map(|pair| pair.map(|k| reads[k])).collect()));
    }
    if partners.iter().any(Option::is_some) {
        return None;
    }
    // x − d, the same at all points.
    let centre_at = |(v, x): (&&[f64], &Vec<f64>)| -> Vec<f64> {
        let square: f64 = v[1..].iter().map(|slope| slope * slope).sum();
        reads.iter().zip(&v[1..]).map(|(&i, slope)| x[i] + v[0] * slope / square).collect()
    };
    let mut centre = centre_at((&values[0], &points[0]));
    let size = |x: &Vec<f64>| reads.iter().map(|&i| x[i].abs()).fold(0.0, f64::max);
    for (v, x) in values.iter().zip(points) {
        let same =
            centre_at((v, x)).iter().zip(&centre).all(|(&a, &b)| agree(a, b, size(x) + b.abs()));
        if !same {
            return None;
        }
    }
    let rounding = ROUNDED * size(&points[0]);
    centre.iter_mut().filter(|c| c.abs() <= rounding).for_each(|c| *c = 0.0);
    let distances =
        |x: &Vec<f64>| -> Vec<f64> { reads.iter().zip(&centre).map(|(&i, c)| x[i] - c).collect() };
    is_inverse_distance(values, points, distances, |v| v[1..].to_vec())
        .then(|| Form::OfOne(centre.clone()))
}

/// True for f = −κ/|d| with one κ at all points, whose derivatives by d are −f d/|d|².
fn is_inverse_distance(
    values: &[&[f64]],
    points: &[Vec<f64>],
    distances: impl Fn(&Vec<f64>) -> Vec<f64>,
    along: impl Fn(&&[f64]) -> Vec<f64>,
) -> bool {
    let mut strength = None;
    values.iter().zip(points).all(|(v, x)| {
        let d = distances(x);
        let square: f64 = d.iter().map(|d| d * d).sum();
        let product = v[0] * square.sqrt();
        let own = *strength.get_or_insert(product);
        let size = v[0].abs() / square.sqrt();
        product != 0.0
            && agree(product, own, own.abs())
            && along(v).iter().zip(&d).all(|(&slope, d)| agree(slope, -v[0] * d / square, size))
    })
}
