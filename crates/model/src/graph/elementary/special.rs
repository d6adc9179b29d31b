//! Special functions: called, not expanded into a straight line.
//!
//! Families that derivatives do not leave have an order as their first argument. Jₙ, Γ and ln Γ are
//! those of `libm`; next to a zero the error is one of the size of the function around it. The rest:
//!
//! - The complete elliptic integrals of the parameter m = k² and their derivatives of order n are
//!   hypergeometric series for −4 ≤ m ≤ 1/2, otherwise by arithmetic-geometric means (Gauss) and the
//!   recurrence that their differential equations of second order give for derivatives: m(1 − m)K'' +
//!   (1 − 2m)K' − K/4 = 0 and m(1 − m)E'' + (1 − m)E' + E/4 = 0 (*NIST Handbook of Mathematical
//!   Functions*, 19.4).
//! - ψ⁽ⁿ⁾, the derivatives of ln Γ, by recurrence up to [`FAR`] and from there by the asymptotic
//!   series with Bernoulli numbers (5.11, 5.15).
//! - P(a, x), the regularised lower incomplete gamma function, by its series up to x = a + 1 and a
//!   continued fraction beyond (8.7, 8.9). Where it is small its relative error is that of the exponent
//!   a ln x − x − ln Γ(a), times the exponent.

use std::f64::consts::{FRAC_PI_2, PI};

/// A special function of an order and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// Jₙ(x)
    BesselJ,
    /// dⁿK/dmⁿ at m
    EllipticK,
    /// dⁿE/dmⁿ at m
    EllipticE,
    /// Γ(x)
    Gamma,
    /// ln |Γ(x)|
    LogGamma,
    /// ψ⁽ⁿ⁾(x)
    Polygamma,
    /// P(a, x)
    GammaP,
}

impl Special {
    /// Every special function.
    pub const ALL: [Special; 7] = [
        Special::BesselJ,
        Special::EllipticK,
        Special::EllipticE,
        Special::Gamma,
        Special::LogGamma,
        Special::Polygamma,
        Special::GammaP,
    ];

    /// Value at x, for an order or the parameter a; those of one argument ignore `order`.
    pub fn evaluate(self, order: f64, x: f64) -> f64 {
        match self {
            Special::BesselJ => libm::jn(order as i32, x),
            Special::EllipticK => elliptic(order as usize, x, Kind::First),
            Special::EllipticE => elliptic(order as usize, x, Kind::Second),
            Special::Gamma => libm::tgamma(x),
            Special::LogGamma => libm::lgamma(x),
            Special::Polygamma => polygamma(order as u32, x),
            Special::GammaP => gamma_p(order, x),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    First,
    Second,
}

/// Ends of the series, whose terms shrink at least to 4/5 there.
const NEAR: [f64; 2] = [-4.0, 0.5];

/// Derivative of order n of a complete elliptic integral.
fn elliptic(n: usize, m: f64, kind: Kind) -> f64 {
    // E is finite at 1, and nothing is real beyond.
    if m == 1.0 && kind == Kind::Second && n == 0 {
        return 1.0;
    }
    if m.is_nan() || m > 1.0 {
        return f64::NAN;
    }
    if (NEAR[0]..=NEAR[1]).contains(&m) {
        return elliptic_series(n, m, kind);
    }
    let (k, e) = elliptic_means(m);
    let (value, slope) = match kind {
        // K' = (E − (1 − m)K)/(2m(1 − m)), E' = (E − K)/(2m)
        Kind::First => (k, (e - (1.0 - m) * k) / (2.0 * m * (1.0 - m))),
        Kind::Second => (e, (e - k) / (2.0 * m)),
    };
    let (mut before, mut last) = (value, slope);
    if n == 0 {
        return before;
    }
    for j in 0..n - 1 {
        let j = j as f64;
        let sum = match kind {
            Kind::First => (j * (j + 1.0) + 0.25) * before - (j + 1.0) * (1.0 - 2.0 * m) * last,
            Kind::Second => (j * j - 0.25) * before - (j * (1.0 - 2.0 * m) + 1.0 - m) * last,
        };
        (before, last) = (last, sum / (m * (1.0 - m)));
    }
    last
}

/// π/2 · dⁿ/dmⁿ ₂F₁(±1/2, 1/2; 1; m), which is ₂F₁ with n more in all three times a number; below 0
/// that of m/(m − 1) (E. E. Kummer's and J. F. Pfaff's transformation), where all terms have one sign.
fn elliptic_series(n: usize, m: f64, kind: Kind) -> f64 {
    let n = n as f64;
    let first = if kind == Kind::First { 0.5 } else { -0.5 };
    let mut factor = FRAC_PI_2;
    let mut k = 0.0;
    while k < n {
        factor *= (first + k) * (0.5 + k) / (1.0 + k);
        k += 1.0;
    }
    let (a, b, c) = (first + n, 0.5 + n, 1.0 + n);
    match m < 0.0 {
        true => factor * libm::pow(1.0 - m, -b) * hypergeometric(c - a, b, c, m / (m - 1.0)),
        false => factor * hypergeometric(a, b, c, m),
    }
}

/// ₂F₁(a, b; c; z) term by term.
fn hypergeometric(a: f64, b: f64, c: f64, z: f64) -> f64 {
    let (mut term, mut sum, mut k) = (1.0, 1.0, 0.0);
    loop {
        term *= (a + k) * (b + k) / ((c + k) * (1.0 + k)) * z;
        k += 1.0;
        let before = sum;
        sum += term;
        if sum == before {
            return sum;
        }
    }
}

/// K and E by arithmetic-geometric means.
fn elliptic_means(m: f64) -> (f64, f64) {
    let (mut a, mut b) = (1.0, (1.0 - m).sqrt());
    // Σ 2ⁱ⁻¹ cᵢ², c₀² = m.
    let (mut sum, mut power) = (0.5 * m, 0.5);
    while (a - b).abs() > 1e-8 * a {
        let c = 0.5 * (a - b);
        (a, b) = (0.5 * (a + b), (a * b).sqrt());
        power *= 2.0;
        sum += power * c * c;
    }
    // One more step, whose c is below rounding.
    let c = 0.5 * (a - b);
    a = 0.5 * (a + b);
    sum += 2.0 * power * c * c;
    let k = PI / (2.0 * a);
    (k, k * (1.0 - sum))
}

/// Where the asymptotic series of ψ⁽ⁿ⁾ begins; twelve terms then suffice up to n = 20.
const FAR: f64 = 30.0;

/// Numerators of the Bernoulli numbers B₂, B₄, …, as quotients.
const BERNOULLI: [f64; 12] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174611.0 / 330.0,
    854513.0 / 138.0,
    -236364091.0 / 2730.0,
];

/// ψ⁽ⁿ⁾(x), NaN at the poles 0, −1, …
fn polygamma(n: u32, x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 && x.fract() == 0.0 || x < -1e6 {
        return f64::NAN;
    }
    let factorial: f64 = (1..=n).map(f64::from).product();
    let sign = if n.is_multiple_of(2) { -1.0 } else { 1.0 };
    let power = |x: f64, by: u32| libm::pow(x, -f64::from(by));
    // ψ⁽ⁿ⁾(x) = ψ⁽ⁿ⁾(x + 1) − (−1)ⁿ n!/xⁿ⁺¹, small terms first.
    let mut steps = Vec::new();
    let mut at = x;
    while at < FAR {
        steps.push(sign * factorial * power(at, n + 1));
        at += 1.0;
    }
    let square = at * at;
    let mut sum = 0.0;
    for (k, bernoulli) in BERNOULLI.iter().enumerate().rev() {
        let double = 2 * (k as u32 + 1);
        // (2k + n − 1)!/(2k)!
        let ratio: f64 = match n {
            0 => 1.0 / f64::from(double),
            _ => (double + 1..double + n).map(f64::from).product(),
        };
        sum = (sum + bernoulli * ratio) / square;
    }
    let far = match n {
        0 => libm::log(at) - 0.5 / at - sum,
        _ => {
            let before: f64 = (1..n).map(f64::from).product();
            sign * (before * power(at, n) + 0.5 * factorial * power(at, n + 1) + sum * power(at, n))
        }
    };
    steps.iter().rev().fold(far, |sum, step| sum + step)
}

/// P(a, x) for a > 0 and x ≥ 0.
fn gamma_p(a: f64, x: f64) -> f64 {
    if !(a > 0.0 && x >= 0.0) {
        return f64::NAN;
    }
    if x == 0.0 || a.is_infinite() {
        return 0.0;
    }
    if x.is_infinite() {
        return 1.0;
    }
    let factor = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let (mut term, mut sum, mut k) = (1.0 / a, 1.0 / a, a);
        loop {
            k += 1.0;
            term *= x / k;
            let before = sum;
            sum += term;
            if sum == before {
                return factor * sum;
            }
        }
    }
    // 1 − P as a continued fraction, from its front (Lentz).
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..100_000 {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = an * d + b;
        d = if d.abs() < TINY { TINY } else { d };
        c = b + an / c;
        c = if c.abs() < TINY { TINY } else { c };
        d = 1.0 / d;
        let change = d * c;
        h *= change;
        if (change - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    1.0 - factor * h
}
