//! Motion of Kepler, Q'' = −k Q/|Q|³, for a given time, in universal variables: elliptic, parabolic and
//! hyperbolic orbits by the same formulas, without branches.
//!
//! With β = 2k/r − |V|², η = Q·V and ζ = k − β r at the start, Kepler's equation for the anomaly s is
//! τ = r s + η G₂(s) + ζ G₃(s), with G_n(s) = sⁿ c_n(β s²) and Stumpff's functions c_n. Its derivative by s is
//! the distance r + η G₁ + ζ G₂ at the end (Danby, Fundamentals of Celestial Mechanics, 6.9; Rein, Tamayo,
//! Mon. Not. R. Astron. Soc. 452 (2015) 376).

use super::super::formula_space::FormulaSpace;
use holonome_integrate::phase_space::{
    Equation, Equations, Function, Guess, Monitored, PhaseSpace, Value,
};

/// A vector that moves like that.
pub struct Motion<'a> {
    /// Places of Q.
    pub components: &'a [usize],
    /// 1/μ and κ, k = κ/μ.
    pub inverse_mass: Value,
    pub strength: Value,
}

/// Largest |β s²|, about (2π)²: an ellipse is followed over a period. Beyond there is no solution.
const LARGEST: f64 = 40.0;

/// Number of times that the argument is quartered before the series, whose argument is then below
/// 2.5, and the number of its terms: the next one is below 1e-17 of the first.
const QUARTERS: usize = 2;
const TERMS: usize = 10;

/// Numbers of a motion at its start.
struct Start {
    q: Vec<Value>,
    v: Vec<Value>,
    k: Value,
    r: Value,
    eta: Value,
    zeta: Value,
    beta: Value,
}

/// Functions G₁, G₂, G₃ of an anomaly.
type Anomaly = [Value; 3];

/// Move all vectors for the time `tau`.
pub fn orbits(
    space: &mut dyn FormulaSpace,
    tau: Value,
    y: &[Value],
    motions: &[Motion],
    moved: &mut [Value],
) {
    let n = y.len() / 2;
    let starts: Vec<Start> = motions.iter().map(|motion| Start::new(space, y, motion)).collect();
    let rows: Vec<Equation> =
        motions.iter().map(|motion| Equation::Kepler(motion.components[0])).collect();
    let (mut guesses, mut sizes) = (Vec::new(), Vec::new());
    for start in &starts {
        let guess = start.guess(space, tau);
        let travelled = space.product(start.r, guess);
        let [a, b] = [travelled, tau].map(|value| space.function(Function::Magnitude, value));
        guesses.push(guess);
        sizes.push(space.sum(a, b));
    }
    let equations = Equations {
        rows: &rows,
        size: &sizes,
        sweep_size: &[],
        guess: Guess::At(&guesses),
        monitored: Monitored::Never,
        monotone: true,
    };
    let anomalies = space.solve(&equations, &mut |space, anomalies| {
        let (mut residuals, mut slopes) = (Vec::new(), Vec::new());
        for (start, &s) in starts.iter().zip(anomalies) {
            let [g1, g2, g3] = functions(space, start.beta, s);
            let way = space.dot(&[start.r, start.eta, start.zeta], &[s, g2, g3]);
            residuals.push(space.difference(&[way], &[tau])[0]);
            let turned = space.dot(&[start.eta, start.zeta], &[g1, g2]);
            slopes.push(space.sum(start.r, turned));
        }
        [residuals, slopes].concat()
    });
    for ((start, motion), s) in starts.iter().zip(motions).zip(anomalies) {
        let (q, change) = start.end(space, tau, s);
        // The momentum μ V changes by μ times the change of V.
        for ((&i, q), change) in motion.components.iter().zip(q).zip(change) {
            moved[i] = q;
            let share = space.quotient(change, motion.inverse_mass);
            moved[n + i] = space.sum(y[n + i], share);
        }
    }
}

impl Start {
    fn new(space: &mut dyn PhaseSpace, y: &[Value], motion: &Motion) -> Start {
        let n = y.len() / 2;
        let at = |shift: usize| -> Vec<Value> {
            motion.components.iter().map(|&i| y[shift + i]).collect()
        };
        let (q, p) = (at(0), at(n));
        let v = space.multiplied(motion.inverse_mass, &p);
        let k = space.product(motion.strength, motion.inverse_mass);
        let (square, speed, eta) = (space.dot(&q, &q), space.dot(&v, &v), space.dot(&q, &v));
        let r = space.function(Function::Root, square);
        let twice = space.scaled(2.0, k);
        let fallen = space.quotient(twice, r);
        let beta = space.difference(&[fallen], &[speed])[0];
        let product = space.product(beta, r);
        let zeta = space.difference(&[k], &[product])[0];
        Start { q, v, k, r, eta, zeta, beta }
    }

    /// s by the first terms of its series in u = τ/r: u − η u²/2r + (η²/2r² − ζ/6r) u³. If they change u
    /// by more than half, τ over a distance of the orbit: the semi-major axis of an ellipse, and that
    /// which the velocity at the start reaches of a hyperbola.
    fn guess(&self, space: &mut dyn FormulaSpace, tau: Value) -> Value {
        let plain = space as &mut dyn PhaseSpace;
        let u = plain.quotient(tau, self.r);
        let ratio = plain.quotient(u, self.r);
        let along = plain.product(self.eta, ratio);
        let half = plain.scaled(-0.5, along);
        let square = plain.product(along, along);
        let curved = plain.product(self.zeta, ratio);
        let curved = plain.product(curved, u);
        let curved = plain.scaled(-1.0 / 6.0, curved);
        let third = plain.scaled(0.5, square);
        let third = plain.sum(third, curved);
        let change = plain.sum(half, third);
        let series = plain.product(change, u);
        let series = plain.sum(u, series);

        let zero = plain.constant(0.0);
        let over_axis = plain.quotient(self.beta, self.k);
        let ellipse = plain.product(tau, over_axis);
        let speed = plain.dot(&self.v, &self.v);
        let speed = plain.function(Function::Root, speed);
        let size = plain.function(Function::Magnitude, tau);
        let reached = plain.product(speed, size);
        let reached = plain.sum(self.r, reached);
        let hyperbola = plain.quotient(tau, reached);
        let far = space.if_less(zero, self.beta, ellipse, hyperbola);
        let size = (space as &mut dyn PhaseSpace).function(Function::Magnitude, change);
        let half = (space as &mut dyn PhaseSpace).constant(0.5);
        space.if_less(size, half, series, far)
    }

    /// Q at the end, and the change of V.
    fn end(&self, space: &mut dyn PhaseSpace, tau: Value, s: Value) -> (Vec<Value>, Vec<Value>) {
        let [g1, g2, g3] = functions(space, self.beta, s);
        let turned = space.dot(&[self.eta, self.zeta], &[g1, g2]);
        let r1 = space.sum(self.r, turned);
        let minus = space.scaled(-1.0, self.k);
        let [fallen, turned, slower] = [g1, g2, g3].map(|g| space.product(minus, g));
        // f − 1, g, f', g' − 1.
        let f = space.quotient(turned, self.r);
        let g = space.sum(tau, slower);
        let over = space.quotient(fallen, self.r);
        let f_rate = space.quotient(over, r1);
        let g_rate = space.quotient(turned, r1);
        let q = space.moved(&self.q, f, &self.q);
        let q = space.moved(&q, g, &self.v);
        let change = space.multiplied(f_rate, &self.q);
        let change = space.moved(&change, g_rate, &self.v);
        (q, change)
    }
}

/// G₁, G₂, G₃ of s.
fn functions(space: &mut dyn PhaseSpace, beta: Value, s: Value) -> Anomaly {
    let square = space.product(s, s);
    let z = space.product(beta, square);
    let z = space.within(z, LARGEST);
    let [c1, c2, c3] = stumpff(space, z);
    let cube = space.product(square, s);
    [space.product(s, c1), space.product(square, c2), space.product(cube, c3)]
}

/// Stumpff's functions c₁, c₂, c₃, with c_n(z) = Σ_k (−z)ᵏ/(2k + n)!.
fn stumpff(space: &mut dyn PhaseSpace, z: Value) -> [Value; 3] {
    let one = space.constant(1.0);
    let mut quarter = space.scaled(0.25f64.powi(QUARTERS as i32), z);
    let [mut c2, mut c3] = [2, 3].map(|n| {
        let coefficient = |k: usize| {
            let factorial: f64 = (1..=2 * k + n).map(|i| i as f64).product();
            (if k.is_multiple_of(2) { 1.0 } else { -1.0 }) / factorial
        };
        let highest = space.constant(coefficient(TERMS - 1));
        (0..TERMS - 1).rev().fold(highest, |sum, k| {
            let (product, next) = (space.product(sum, quarter), space.constant(coefficient(k)));
            space.sum(product, next)
        })
    });
    let mut c1 = one;
    for step in 0..=QUARTERS {
        // c₀ = 1 − z c₂, c₁ = 1 − z c₃.
        let [c0, own] = [c2, c3].map(|c| {
            let product = space.product(quarter, c);
            space.difference(&[one], &[product])[0]
        });
        c1 = own;
        if step == QUARTERS {
            break;
        }
        // c₂(4z) = c₁²/2, c₃(4z) = (c₂ + c₀ c₃)/4.
        let product = space.product(c0, c3);
        let both = space.sum(c2, product);
        c3 = space.scaled(0.25, both);
        let square = space.product(c1, c1);
        c2 = space.scaled(0.5, square);
        quarter = space.scaled(4.0, quarter);
    }
    [c1, c2, c3]
}

/// κ/|Q|³
pub fn over_cube(space: &mut dyn PhaseSpace, strength: Value, q: &[Value]) -> Value {
    let square = space.dot(q, q);
    let distance = space.function(Function::Root, square);
    let cube = space.product(square, distance);
    space.quotient(strength, cube)
}
