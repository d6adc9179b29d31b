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

/// Residual of Kepler's equation, relative to its scale, from which one more iteration of third
/// order leaves at most 1e-7, and the correction at the end, of third order as well, rounding.
const CLOSE: f64 = 1e-3;

/// Least part of the terms of Kepler's equation that its scale is, of orbits that end nearly at the
/// centre: iterations contract by a distance over the least one on the way.
const LEAST: f64 = 1e-3;

/// Numbers of a motion at its start.
struct Start {
    q: Vec<Value>,
    v: Vec<Value>,
    k: Value,
    r: Value,
    /// 1/r and |V|².
    over: Value,
    speed: Value,
    eta: Value,
    zeta: Value,
    beta: Value,
}

/// Functions G₀, G₁, G₂, G₃ of an anomaly, each the derivative of the next one.
type Anomaly = [Value; 4];

/// Kepler's equation at an anomaly.
struct At {
    functions: Anomaly,
    /// Time there less τ, and its first and second derivative: the distance and its rate.
    residual: Value,
    distance: Value,
    rate: Value,
}

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
        sizes.push(start.size(space, tau, guess));
        guesses.push(guess);
    }
    let equations = Equations {
        rows: &rows,
        size: &sizes,
        sweep_size: &[],
        guess: Guess::At(&guesses),
        monitored: Monitored::Never,
        monotone: Some(CLOSE),
    };
    let anomalies = space.solve(&equations, &mut |space, anomalies| {
        let (mut residuals, mut slopes) = (Vec::new(), Vec::new());
        for (start, &s) in starts.iter().zip(anomalies) {
            let at = start.at(space, tau, s);
            residuals.push(at.residual);
            slopes.push(at.slope(space));
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
        let one = space.constant(1.0);
        let over = space.quotient(one, r);
        let twice = space.scaled(2.0, k);
        let fallen = space.product(twice, over);
        let beta = space.difference(&[fallen], &[speed])[0];
        let product = space.product(beta, r);
        let zeta = space.difference(&[k], &[product])[0];
        Start { q, v, k, r, over, speed, eta, zeta, beta }
    }

    /// Kepler's equation at s.
    fn at(&self, space: &mut dyn PhaseSpace, tau: Value, s: Value) -> At {
        let functions = functions(space, self.beta, s);
        let [g0, g1, g2, g3] = functions;
        let way = space.dot(&[self.r, self.eta, self.zeta], &[s, g2, g3]);
        let residual = space.difference(&[way], &[tau])[0];
        let rate = space.dot(&[self.eta, self.zeta], &[g0, g1]);
        let distance = self.distance(space, [g1, g2]);
        At { functions, residual, distance, rate }
    }

    /// Distance at the end.
    fn distance(&self, space: &mut dyn PhaseSpace, [g1, g2]: [Value; 2]) -> Value {
        let turned = space.dot(&[self.eta, self.zeta], &[g1, g2]);
        space.sum(self.r, turned)
    }

    /// Scale of Kepler's equation: r |s| + |τ|, times the semi-latus rectum over r where the orbit
    /// comes nearer to the centre than here.
    fn size(&self, space: &mut dyn FormulaSpace, tau: Value, guess: Value) -> Value {
        let plain = space as &mut dyn PhaseSpace;
        let travelled = plain.product(self.r, guess);
        let [a, b] = [travelled, tau].map(|value| plain.function(Function::Magnitude, value));
        let terms = plain.sum(a, b);
        let square = plain.product(self.r, self.speed);
        let inward = plain.product(self.eta, self.eta);
        let inward = plain.product(inward, self.over);
        // |Q × V|²/r
        let turning = plain.difference(&[square], &[inward])[0];
        let nearness = plain.quotient(turning, self.k);
        let (least, one) = (plain.constant(LEAST), plain.constant(1.0));
        let part = plain.sum(nearness, least);
        let part = space.if_less(part, one, part, one);
        (space as &mut dyn PhaseSpace).product(part, terms)
    }

    /// s by the first terms of its series in u = τ/r, with a = η/r and b = ζ/r:
    /// u − a u²/2 + (a²/2 − b/6) u³ + (5ab/12 + aβ/24 − 5a³/8) u⁴. If they change u by more than half,
    /// τ over a distance of the orbit: the semi-major axis of an ellipse, and that which the velocity
    /// at the start reaches of a hyperbola.
    fn guess(&self, space: &mut dyn FormulaSpace, tau: Value) -> Value {
        let plain = space as &mut dyn PhaseSpace;
        let u = plain.product(tau, self.over);
        let ratio = plain.product(u, self.over);
        // a u, b u² and β u².
        let along = plain.product(self.eta, ratio);
        let by_ratio = plain.product(ratio, u);
        let curved = plain.product(self.zeta, by_ratio);
        let turned = plain.product(u, u);
        let turned = plain.product(self.beta, turned);
        let half = plain.scaled(-0.5, along);
        let square = plain.product(along, along);
        let third = [(0.5, square), (-1.0 / 6.0, curved)].map(|(c, part)| plain.scaled(c, part));
        let third = plain.sum(third[0], third[1]);
        let fourth = [(5.0 / 12.0, curved), (1.0 / 24.0, turned), (-5.0 / 8.0, square)]
            .map(|(c, part)| plain.scaled(c, part));
        let fourth = fourth.into_iter().reduce(|sum, part| plain.sum(sum, part)).expect("three");
        let fourth = plain.product(fourth, along);
        let later = plain.sum(third, fourth);
        let change = plain.sum(half, later);
        let series = plain.product(change, u);
        let series = plain.sum(u, series);

        let zero = plain.constant(0.0);
        let over_axis = plain.quotient(self.beta, self.k);
        let ellipse = plain.product(tau, over_axis);
        let speed = plain.function(Function::Root, self.speed);
        let size = plain.function(Function::Magnitude, tau);
        let reached = plain.product(speed, size);
        let reached = plain.sum(self.r, reached);
        let hyperbola = plain.quotient(tau, reached);
        let far = space.if_less(zero, self.beta, ellipse, hyperbola);
        let size = (space as &mut dyn PhaseSpace).function(Function::Magnitude, change);
        let half = (space as &mut dyn PhaseSpace).constant(0.5);
        space.if_less(size, half, series, far)
    }

    /// Q at the end, and the change of V, by the functions at s and its last change.
    fn end(&self, space: &mut dyn PhaseSpace, tau: Value, s: Value) -> (Vec<Value>, Vec<Value>) {
        let [g1, g2, g3] = self.at(space, tau, s).corrected(space, self.beta);
        let r1 = self.distance(space, [g1, g2]);
        let one = space.constant(1.0);
        let over_end = space.quotient(one, r1);
        let minus = space.scaled(-1.0, self.k);
        let [fallen, turned, slower] = [g1, g2, g3].map(|g| space.product(minus, g));
        // f − 1, g, f', g' − 1.
        let f = space.product(turned, self.over);
        let g = space.sum(tau, slower);
        let over = space.product(fallen, self.over);
        let f_rate = space.product(over, over_end);
        let g_rate = space.product(turned, over_end);
        let q = space.moved(&self.q, f, &self.q);
        let q = space.moved(&q, g, &self.v);
        let change = space.multiplied(f_rate, &self.q);
        let change = space.moved(&change, g_rate, &self.v);
        (q, change)
    }
}

impl At {
    /// 1/F', F/F' and ½F'' F/F', where F is the residual.
    fn change(&self, space: &mut dyn PhaseSpace) -> [Value; 3] {
        let one = space.constant(1.0);
        let over = space.quotient(one, self.distance);
        let newton = space.product(self.residual, over);
        let half = space.scaled(0.5, self.rate);
        [over, newton, space.product(half, newton)]
    }

    /// F' (1 − c) with c = F F''/2F'², by which F is divided in Halley's iteration, of third order; at
    /// least F'/2, as 1 − c may vanish far from the solution.
    fn slope(&self, space: &mut dyn PhaseSpace) -> Value {
        let [over, _, bent] = self.change(space);
        let part = space.product(bent, over);
        // 1/2 + (w + |w|)/2 with w = 1/2 − c.
        let [half, quarter] = [0.5, 0.25].map(|number| space.constant(number));
        let halved = space.scaled(0.5, part);
        let room = space.difference(&[quarter], &[halved])[0];
        let size = space.function(Function::Magnitude, room);
        let above = space.sum(room, size);
        let factor = space.sum(half, above);
        space.product(self.distance, factor)
    }

    /// G₁, G₂, G₃ at the solution nearby: by Chebyshev's iteration, F/F' (1 + c), of third order, whose
    /// change is so small that terms of the second order in it are the last that count.
    fn corrected(self, space: &mut dyn PhaseSpace, beta: Value) -> [Value; 3] {
        let [over, newton, bent] = self.change(space);
        let part = space.product(bent, over);
        let part = space.product(part, newton);
        let back = space.sum(newton, part);
        let [g0, g1, g2, g3] = self.functions;
        let half = space.scaled(0.5, back);
        // G₋₁ = −β G₁
        let minus = space.scaled(-1.0, beta);
        let below = space.product(minus, g1);
        let mut shifted = |second: Value, first: Value, g: Value| {
            let bent = space.product(half, second);
            let rate = space.difference(&[first], &[bent])[0];
            let change = space.product(back, rate);
            space.difference(&[g], &[change])[0]
        };
        [shifted(below, g0, g1), shifted(g0, g1, g2), shifted(g1, g2, g3)]
    }
}

/// G₀, G₁, G₂, G₃ of s.
fn functions(space: &mut dyn PhaseSpace, beta: Value, s: Value) -> Anomaly {
    let square = space.product(s, s);
    let z = space.product(beta, square);
    let z = space.within(z, LARGEST);
    let [c0, c1, c2, c3] = stumpff(space, z);
    let cube = space.product(square, s);
    [c0, space.product(s, c1), space.product(square, c2), space.product(cube, c3)]
}

/// Stumpff's functions c₀, c₁, c₂, c₃, with c_n(z) = Σ_k (−z)ᵏ/(2k + n)!.
fn stumpff(space: &mut dyn PhaseSpace, z: Value) -> [Value; 4] {
    let one = space.constant(1.0);
    let mut quarter = space.scaled(0.25f64.powi(QUARTERS as i32), z);
    let powers = powers(space, quarter);
    let [mut c2, mut c3] = [2, 3].map(|n| {
        let coefficient = |k: usize| {
            let factorial: f64 = (1..=2 * k + n).map(|i| i as f64).product();
            (if k.is_multiple_of(2) { 1.0 } else { -1.0 }) / factorial
        };
        let terms = (0..TERMS).map(|k| space.constant(coefficient(k))).collect();
        polynomial(space, terms, &powers)
    });
    let mut step = 0;
    loop {
        // c₀ = 1 − z c₂, c₁ = 1 − z c₃.
        let [c0, c1] = [c2, c3].map(|c| {
            let product = space.product(quarter, c);
            space.difference(&[one], &[product])[0]
        });
        if step == QUARTERS {
            return [c0, c1, c2, c3];
        }
        // c₂(4z) = c₁²/2, c₃(4z) = (c₂ + c₀ c₃)/4.
        let product = space.product(c0, c3);
        let both = space.sum(c2, product);
        c3 = space.scaled(0.25, both);
        let square = space.product(c1, c1);
        c2 = space.scaled(0.5, square);
        quarter = space.scaled(4.0, quarter);
        step += 1;
    }
}

/// x, x², x⁴, … as far as a polynomial of [`TERMS`] terms needs them.
fn powers(space: &mut dyn PhaseSpace, x: Value) -> Vec<Value> {
    let mut powers = vec![x];
    while 1 << powers.len() < TERMS {
        let last = powers[powers.len() - 1];
        powers.push(space.product(last, last));
    }
    powers
}

/// Polynomial with these coefficients, from the constant on, of the first of the `powers` x, x², x⁴, …:
/// by pairs, and pairs of pairs, which do not wait for each other (Estrin).
fn polynomial(space: &mut dyn PhaseSpace, mut terms: Vec<Value>, powers: &[Value]) -> Value {
    for &power in powers {
        let pair = |pair: &[Value]| match *pair {
            [low, high] => {
                let product = space.product(high, power);
                space.sum(low, product)
            }
            _ => pair[0],
        };
        terms = terms.chunks(2).map(pair).collect();
    }
    terms[0]
}

/// κ/|Q|³
pub fn over_cube(space: &mut dyn PhaseSpace, strength: Value, q: &[Value]) -> Value {
    let square = space.dot(q, q);
    let distance = space.function(Function::Root, square);
    let cube = space.product(square, distance);
    space.quotient(strength, cube)
}
