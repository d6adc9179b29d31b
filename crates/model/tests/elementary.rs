//! Tests of the elementary functions: against arbitrary precision, over all doubles; their special
//! values; that the straight line suffices where it has to; and that tapes compute the same bits.
//! `Exact::ulps` defines an error in ulps. With the environment variable `HOLONOME_LONG`, 100 times
//! as many points.

#[path = "support/exact.rs"]
mod exact;

use exact::Reference;
use holonome_model::graph::elementary::{Arithmetic, Elementary};
use holonome_model::graph::interpret::{Backend, Interpreter};
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::primitive::{Numbers, One, Primitives, TRUE, Three, Two};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Node};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, FRAC_PI_4, LN_2, PI};

/// Largest error in ulps that any function may have.
const TOLERANCE: f64 = 2.0;

/// Largest error in ulps that a function has, with a little room: anything above is a mistake.
fn expected(function: Elementary) -> f64 {
    match function {
        Elementary::Asin | Elementary::Acos => 0.75,
        Elementary::Log | Elementary::Atan => 0.8,
        Elementary::Sin | Elementary::Cos | Elementary::Sinh => 0.95,
        Elementary::Log10 => 0.55,
        Elementary::Log1p | Elementary::Expm1 => 0.95,
        Elementary::Erf => 1.4,
        Elementary::Special(_) => unreachable!("special functions have tables"),
        Elementary::Tan
        | Elementary::Cosh
        | Elementary::Tanh
        | Elementary::Exp
        | Elementary::Pow => 1.2,
        // The remainder of a quotient of subnormal numbers is lost.
        Elementary::Atan2 => 1.5,
    }
}

/// Random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in [a, b).
    fn within(&mut self, a: f64, b: f64) -> f64 {
        a + (b - a) * ((self.bits() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// A number of either sign, with a logarithm to base 2 in [a, b).
    fn sized(&mut self, a: f64, b: f64) -> f64 {
        self.within(a, b).exp2().copysign(self.bits() as i64 as f64)
    }

    /// Any finite double, all exponents alike.
    fn any(&mut self) -> f64 {
        let x = f64::from_bits(self.bits());
        if x.is_finite() { x } else { self.any() }
    }

    /// A number up to `steps` doubles away from x.
    fn near(&mut self, x: f64, steps: i64) -> f64 {
        f64::from_bits((x.to_bits() as i64 + self.bits() as i64 % (steps + 1)) as u64)
    }
}

/// A way to draw arguments.
type Draw = fn(&mut Random) -> [f64; 2];

/// Draws for a function: all exponents, ordinary sizes, and arguments that are hard for it.
fn draws(function: Elementary) -> Vec<Draw> {
    fn alone(x: f64) -> [f64; 2] {
        [x, x]
    }
    let mut list: Vec<Draw> = vec![
        |r| alone(r.any()),
        |r| alone(r.sized(-60.0, 11.0)),
        |r| alone(r.within(-1.0, 1.0)),
        |r| alone(r.within(-8.0, 8.0)),
        |r| alone(f64::from_bits(r.bits() & (u64::MAX >> 12)).copysign(r.within(-1.0, 1.0))),
    ];
    match function {
        Elementary::Special(_) => unreachable!("special functions have tables"),
        Elementary::Sin | Elementary::Cos | Elementary::Tan => list.extend::<[Draw; 6]>([
            |r| alone(r.within(-0.8, 0.8)),
            |r| alone(r.sized(0.0, 45.0)),
            |r| alone(r.sized(40.0, 1023.9)),
            // Multiples of π/2, and halfway between, where the reduction changes.
            |r| {
                let k = r.sized(0.0, 39.0).round();
                alone(r.near(k * FRAC_PI_2, 2))
            },
            |r| {
                let k = r.sized(0.0, 38.0).round();
                alone(r.near((2.0 * k + 1.0) * FRAC_PI_4, 20))
            },
            |r| alone(r.near(2f64.powi(40), 3)),
        ]),
        Elementary::Asin | Elementary::Acos => list.extend::<[Draw; 3]>([
            |r| {
                let x = 1.0 - r.sized(-53.0, -1.0).abs();
                alone(x.copysign(r.within(-1.0, 1.0)))
            },
            |r| alone(r.within(0.4, 0.6).copysign(r.within(-1.0, 1.0))),
            |r| alone(r.near(0.5, 3)),
        ]),
        Elementary::Atan => list.extend::<[Draw; 3]>([
            |r| alone(r.within(0.4, 2.1)),
            |r| alone(r.near(0.5, 3)),
            |r| alone(r.near(2.0, 3)),
        ]),
        Elementary::Exp | Elementary::Sinh | Elementary::Cosh | Elementary::Tanh => list
            .extend::<[Draw; 6]>([
                |r| alone(r.within(-750.0, 712.0)),
                |r| alone(r.within(-746.0, -707.0)),
                |r| alone(r.near(709.782712893384, 1000)),
                |r| alone(r.near(710.4758600739439, 1000)),
                |r| alone(r.within(17.0, 21.0)),
                // Where the reduction changes.
                |r| {
                    let k = r.within(-60.0, 60.0).round();
                    alone(r.near((k + 0.5) * LN_2, 100))
                },
            ]),
        Elementary::Expm1 => list.extend::<[Draw; 6]>([
            |r| alone(r.within(-45.0, 712.0)),
            |r| alone(r.near(709.782712893384, 1000)),
            |r| alone(r.near(700.0, 3)),
            |r| alone(r.near(-40.0, 3)),
            |r| alone(r.sized(-60.0, 0.0)),
            |r| {
                let k = r.within(-60.0, 60.0).round();
                alone(r.near((k + 0.5) * LN_2, 100))
            },
        ]),
        Elementary::Log1p => list.extend::<[Draw; 4]>([
            |r| alone(r.sized(-60.0, 0.0)),
            |r| alone(r.sized(-60.0, 1023.9).abs()),
            |r| alone(r.sized(-53.0, 0.0).abs() - 1.0),
            |r| {
                let k = r.within(-40.0, 40.0).round();
                alone(r.near((k + 0.5).exp2() - 1.0, 100))
            },
        ]),
        Elementary::Erf => list.extend::<[Draw; 4]>([
            |r| alone(r.within(-7.0, 7.0)),
            |r| alone(r.near(1.0, 1000)),
            |r| alone(r.near(6.0, 3)),
            |r| alone(r.sized(-60.0, 1.0)),
        ]),
        Elementary::Log | Elementary::Log10 => list.extend::<[Draw; 4]>([
            |r| alone(1.0 + r.sized(-52.0, -1.0)),
            |r| alone(r.sized(-1022.0, 1023.9).abs()),
            |r| {
                let k = r.within(-40.0, 40.0).round();
                alone(r.near((k + 0.5).exp2(), 100))
            },
            |r| alone(r.near(f64::MIN_POSITIVE, 3)),
        ]),
        Elementary::Pow => {
            /// A base, and an exponent such that the result has any size.
            fn any_result(r: &mut Random, base: f64) -> [f64; 2] {
                [base, r.within(-1080.0, 1030.0) / base.log2()]
            }
            list = vec![
                |r| [r.any(), r.any()],
                |r| [r.sized(-1074.0, 1023.9).abs(), r.sized(-60.0, 10.0)],
                |r| [r.within(0.0, 4.0), r.within(-20.0, 20.0)],
                |r| [r.within(-20.0, 20.0), r.within(-200.0, 200.0).round()],
                |r| [r.sized(-20.0, 20.0), (r.sized(0.0, 60.0)).round()],
                |r| {
                    let base = r.sized(-1074.0, 1023.9).abs();
                    any_result(r, base)
                },
                |r| {
                    let base = r.within(0.6, 1.6);
                    any_result(r, base)
                },
                |r| {
                    let base = 1.0 + r.sized(-52.0, -2.0);
                    any_result(r, base)
                },
                |r| {
                    let base = r.near(2f64.sqrt(), 100);
                    any_result(r, base)
                },
            ];
        }
        Elementary::Atan2 => {
            list = vec![
                |r| [r.any(), r.any()],
                |r| [r.within(-1.0, 1.0), r.within(-1.0, 1.0)],
                |r| {
                    let x = r.sized(-1000.0, 1020.0);
                    [x * r.sized(-60.0, 3.0), x]
                },
                |r| {
                    let x = r.sized(-1000.0, 1000.0);
                    let half_or_two = r.near(0.5, 3).powf(r.within(-1.0, 1.0).signum());
                    [x * half_or_two, x]
                },
                |r| [r.sized(-1074.0, -1000.0), r.sized(-1074.0, -900.0)],
                |r| [r.sized(1010.0, 1023.9), r.sized(900.0, 1023.9)],
            ];
        }
    }
    list
}

/// True if the value is NaN or on the table of special values, which the reference does not cover.
fn special(function: Elementary, a: f64, b: f64) -> bool {
    match function {
        Elementary::Asin | Elementary::Acos => a.abs() > 1.0 || a == 0.0,
        Elementary::Log | Elementary::Log10 => a <= 0.0,
        Elementary::Log1p => a <= -1.0 || a == 0.0,
        Elementary::Pow => a == 0.0 || b == 0.0 || (a < 0.0 && b.round() != b),
        Elementary::Atan2 => a == 0.0 || b == 0.0,
        _ => a == 0.0,
    }
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn values_are_right_to_the_last_places() {
    let points = if std::env::var_os("HOLONOME_LONG").is_some() { 100_000 } else { 1000 };
    // One thread for each function, as the reference takes its time.
    std::thread::scope(|scope| {
        for (k, function) in (1..).zip(Elementary::ALL) {
            scope.spawn(move || {
                let (mut reference, mut random) = (Reference::new(), Random(k));
                let (mut worst, mut at) = (0.0, [0.0; 2]);
                for draw in draws(function) {
                    for _ in 0..points {
                        let [a, b] = draw(&mut random);
                        if special(function, a, b) {
                            continue;
                        }
                        let value = function.evaluate(a, b);
                        let error = reference.of(function, a, b).ulps(value);
                        if error > worst {
                            (worst, at) = (error, [a, b]);
                        }
                        assert!(
                            error <= TOLERANCE,
                            "{function:?} of {a:e}, {b:e} is off by {error} ulp: {value:e}"
                        );
                    }
                }
                println!("{function:?}: {worst:.3} ulp at {:e}, {:e}", at[0], at[1]);
                assert!(
                    worst <= expected(function),
                    "{function:?} of {at:?} is off by {worst} ulp"
                );
            });
        }
    });
}

/// Hard arguments, from an independent program with 2400 bits: those nearest to multiples of π/2,
/// of all doubles and of those below 2⁴⁰, and others that a reduction may get wrong. The reference
/// itself has to agree within its rounding.
#[test]
fn hard_reductions() {
    let worst = 6381956970095103.0 * 2f64.powi(797);
    let worst_below = 6411027962775774.0 * 2f64.powi(-47);
    let table = [
        (worst, [1.0, -4.687165924254628e-19, -2.133485385753704e18]),
        (worst_below, [1.0, -6.189806365883577e-19, -1.6155594228467482e18]),
        (1e22, [-0.8522008497671888, 0.523214785395139, -1.6287782256068988]),
        (1e300, [-0.8178819121159085, -0.5753861119575491, 1.4214488238747245]),
        (2f64.powi(1023), [0.563127779850884, -0.826369834614148, -0.6814476476066215]),
        (f64::MAX, [0.004961954789184062, -0.9999876894265599, -0.004962015874444895]),
        (FRAC_PI_4, [FRAC_1_SQRT_2.next_down(), FRAC_1_SQRT_2, 0.9999999999999999]),
        (FRAC_PI_2, [1.0, 6.123233995736766e-17, 1.633123935319537e16]),
        (PI, [1.2246467991473532e-16, -1.0, -1.2246467991473532e-16]),
        (1e6, [-0.34999350217129294, 0.9367521275331447, -0.373624453987599]),
        (1e9, [0.5458434494486996, 0.8378871813639024, 0.6514522021451413]),
        (2f64.powi(40), [-0.40570501153282873, -0.914004071991557, 0.44387659088741604]),
    ];
    let mut reference = Reference::new();
    for (x, values) in table {
        for (function, value) in
            [Elementary::Sin, Elementary::Cos, Elementary::Tan].into_iter().zip(values)
        {
            let exact = reference.of(function, x, x);
            let (known, got) = (exact.ulps(value), exact.ulps(function.evaluate(x, x)));
            assert!(known <= 0.5, "the reference is wrong: {function:?} of {x:e} by {known} ulp");
            assert!(got <= expected(function), "{function:?} of {x:e} is off by {got} ulp");
        }
    }
}

const INFINITY: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

#[test]
fn special_values() {
    use Elementary::*;
    let tiny = f64::from_bits(1);
    // Odd functions and their values; the negative argument gives the negative value.
    let odd = [
        (Sin, vec![(0.0, 0.0), (tiny, tiny), (1e-300, 1e-300), (INFINITY, NAN)]),
        (Tan, vec![(0.0, 0.0), (tiny, tiny), (1e-300, 1e-300), (INFINITY, NAN)]),
        (
            Asin,
            vec![
                (0.0, 0.0),
                (tiny, tiny),
                (1.0, FRAC_PI_2),
                (1.0 + f64::EPSILON, NAN),
                (INFINITY, NAN),
            ],
        ),
        (
            Atan,
            vec![
                (0.0, 0.0),
                (tiny, tiny),
                (1.0, FRAC_PI_4),
                (f64::MAX, FRAC_PI_2),
                (INFINITY, FRAC_PI_2),
            ],
        ),
        (
            Sinh,
            vec![
                (0.0, 0.0),
                (tiny, tiny),
                (1e-300, 1e-300),
                (711.0, INFINITY),
                (f64::MAX, INFINITY),
            ],
        ),
        (Sinh, vec![(INFINITY, INFINITY)]),
        (
            Tanh,
            vec![
                (0.0, 0.0),
                (tiny, tiny),
                (20.0, 1.0),
                (1e9, 1.0),
                (f64::MAX, 1.0),
                (INFINITY, 1.0),
            ],
        ),
        (Erf, vec![(0.0, 0.0), (tiny, tiny), (6.0, 1.0), (f64::MAX, 1.0), (INFINITY, 1.0)]),
    ];
    for (function, values) in odd {
        for (x, y) in values {
            for (x, y) in [(x, y), (-x, -y)] {
                let got = function.evaluate(x, x);
                assert!(same(got, y), "{function:?} {x:e}: {got:e}, not {y:e}");
            }
        }
    }
    let others = [
        (Cos, vec![(0.0, 1.0), (-0.0, 1.0), (tiny, 1.0), (INFINITY, NAN), (-INFINITY, NAN)]),
        (Cosh, vec![(0.0, 1.0), (-0.0, 1.0), (tiny, 1.0), (711.0, INFINITY), (-711.0, INFINITY)]),
        (Cosh, vec![(INFINITY, INFINITY), (-INFINITY, INFINITY), (f64::MAX, INFINITY)]),
        (
            Acos,
            vec![(1.0, 0.0), (0.0, FRAC_PI_2), (-0.0, FRAC_PI_2), (-1.0, PI), (tiny, FRAC_PI_2)],
        ),
        (
            Acos,
            vec![
                (1.0 + f64::EPSILON, NAN),
                (-1.0 - f64::EPSILON, NAN),
                (INFINITY, NAN),
                (-INFINITY, NAN),
            ],
        ),
        (
            Exp,
            vec![
                (0.0, 1.0),
                (-0.0, 1.0),
                (tiny, 1.0),
                (-tiny, 1.0),
                (INFINITY, INFINITY),
                (-INFINITY, 0.0),
            ],
        ),
        (
            Exp,
            vec![
                (709.782712893384, 1.7976931348622732e308),
                (709.7827128933841, INFINITY),
                (f64::MAX, INFINITY),
            ],
        ),
        (Exp, vec![(-745.1332191019411, tiny), (-745.1332191019412, 0.0), (f64::MIN, 0.0)]),
        (
            Log,
            vec![
                (1.0, 0.0),
                (0.0, -INFINITY),
                (-0.0, -INFINITY),
                (INFINITY, INFINITY),
                (-1.0, NAN),
            ],
        ),
        (Log, vec![(-tiny, NAN), (-INFINITY, NAN), (2.0, LN_2), (tiny, -744.4400719213812)]),
        (Log10, vec![(1.0, 0.0), (0.0, -INFINITY), (-0.0, -INFINITY), (INFINITY, INFINITY)]),
        (Log10, (-22..=22).map(|k| (10f64.powi(k), f64::from(k))).collect()),
        (Log10, vec![(-1.0, NAN), (-tiny, NAN), (tiny, -323.3062153431158)]),
        (Log1p, vec![(0.0, 0.0), (-0.0, -0.0), (tiny, tiny), (-tiny, -tiny), (1.0, LN_2)]),
        (Log1p, vec![(-1.0, -INFINITY), (-1.5, NAN), (INFINITY, INFINITY), (-INFINITY, NAN)]),
        (Expm1, vec![(0.0, 0.0), (-0.0, -0.0), (tiny, tiny), (-tiny, -tiny)]),
        (Expm1, vec![(-50.0, -1.0), (-INFINITY, -1.0), (INFINITY, INFINITY)]),
        (Expm1, vec![(709.782712893384, 1.7976931348622732e308), (709.7827128933841, INFINITY)]),
    ];
    for (function, values) in others {
        for (x, y) in values {
            let got = function.evaluate(x, x);
            assert!(same(got, y), "{function:?} {x:e}: {got:e}, not {y:e}");
        }
    }
    for function in Elementary::ALL {
        assert!(
            function.evaluate(NAN, NAN).is_nan() && function.evaluate(-NAN, -NAN).is_nan(),
            "{function:?}"
        );
    }
}

/// Tests the table of IEEE 754-2019, section 9.2.1.
#[test]
fn special_powers_and_angles() {
    let power = |a: f64, b: f64| Elementary::Pow.evaluate(a, b);
    let tiny = f64::from_bits(1);
    let ordinary = [tiny, 1e-310, 0.3, 0.5, 1.5, 2.0, 3.0, 1e10, f64::MAX];
    for x in ordinary.into_iter().chain([0.0, INFINITY, NAN]) {
        for x in [x, -x] {
            assert!(same(power(x, 0.0), 1.0) && same(power(x, -0.0), 1.0), "{x}");
            assert!(same(power(1.0, x), 1.0), "{x}");
            assert!(same(power(x, 1.0), x), "{x}: {}", power(x, 1.0));
        }
    }
    for b in ordinary {
        let odd = b % 2.0 == 1.0;
        let zero = |sign: f64| if odd { 0.0f64.copysign(sign) } else { 0.0 };
        let infinite = |sign: f64| if odd { INFINITY.copysign(sign) } else { INFINITY };
        for sign in [1.0, -1.0] {
            assert!(same(power(0.0 * sign, b), zero(sign)), "{b}");
            assert!(same(power(0.0 * sign, -b), infinite(sign)), "{b}");
            assert!(same(power(INFINITY * sign, b), infinite(sign)), "{b}");
            assert!(same(power(INFINITY * sign, -b), zero(sign)), "{b}");
        }
        assert_eq!(power(-1.5, b).is_nan(), b.fract() != 0.0, "{b}");
    }
    for a in ordinary {
        let (up, down) = if a > 1.0 { (INFINITY, 0.0) } else { (0.0, INFINITY) };
        for a in [a, -a] {
            assert!(same(power(a, INFINITY), up) && same(power(a, -INFINITY), down), "{a}");
        }
    }
    for (a, b, y) in [
        (-1.0, INFINITY, 1.0),
        (-1.0, -INFINITY, 1.0),
        (0.0, INFINITY, 0.0),
        (-0.0, -INFINITY, INFINITY),
        (NAN, 2.0, NAN),
        (2.0, NAN, NAN),
        (-1.0, NAN, NAN),
        (-2.0, 3.0, -8.0),
        (-2.0, 1023.0, -(2f64.powi(1023))),
        (-2.0, -1074.0, tiny),
        (-2.0, 9007199254740993.0, INFINITY),
        (-0.5, 4503599627370497.0, -0.0),
        (2.0, 0.5, 2f64.sqrt()),
        (10.0, 308.0, 1e308),
        (10.0, -320.0, 1e-320),
        (tiny, 0.5, 2f64.powi(-537)),
    ] {
        assert!(same(power(a, b), y), "{a:e}^{b:e}: {:e}, not {y:e}", power(a, b));
    }

    let angle = |y: f64, x: f64| Elementary::Atan2.evaluate(y, x);
    let three_quarters = 3.0 * FRAC_PI_4;
    for (y, x, phi) in [
        (0.0, 0.0, 0.0),
        (0.0, -0.0, PI),
        (0.0, 1.0, 0.0),
        (0.0, -1.0, PI),
        (0.0, tiny, 0.0),
        (0.0, -tiny, PI),
        (1.0, 0.0, FRAC_PI_2),
        (1.0, -0.0, FRAC_PI_2),
        (tiny, 0.0, FRAC_PI_2),
        (tiny, tiny, FRAC_PI_4),
        (tiny, -tiny, three_quarters),
        (1.0, 1.0, FRAC_PI_4),
        (1.0, -1.0, three_quarters),
        (f64::MAX, f64::MAX, FRAC_PI_4),
        (tiny, 1.0, tiny),
        (tiny, f64::MAX, 0.0),
        (tiny, -f64::MAX, PI),
        (f64::MAX, tiny, FRAC_PI_2),
        (1.0, INFINITY, 0.0),
        (1.0, -INFINITY, PI),
        (0.0, INFINITY, 0.0),
        (0.0, -INFINITY, PI),
        (INFINITY, 1.0, FRAC_PI_2),
        (INFINITY, -1.0, FRAC_PI_2),
        (INFINITY, INFINITY, FRAC_PI_4),
        (INFINITY, -INFINITY, three_quarters),
        (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
        (0.0, NAN, NAN),
    ] {
        for (y, phi) in [(y, phi), (-y, -phi)] {
            assert!(same(angle(y, x), phi), "({x:e}, {y:e}): {:e}, not {phi:e}", angle(y, x));
        }
    }
}

/// Numbers that count the operations of the straight line, and the cases in which it does not
/// suffice.
#[derive(Default)]
struct Counted {
    repairs: usize,
}

impl Primitives for Counted {
    type Value = f64;

    fn bits(&mut self, bits: u64) -> f64 {
        Numbers.bits(bits)
    }

    fn one(&mut self, op: One, a: f64) -> f64 {
        Numbers.one(op, a)
    }

    fn two(&mut self, op: Two, a: f64, b: f64) -> f64 {
        Numbers.two(op, a, b)
    }

    fn three(&mut self, op: Three, a: f64, b: f64, c: f64) -> f64 {
        Numbers.three(op, a, b, c)
    }
}

impl Arithmetic for Counted {
    fn repair(&mut self, function: Elementary, arguments: [f64; 2], fast: f64, valid: f64) -> f64 {
        self.repairs += usize::from(valid.to_bits() != TRUE);
        Numbers.repair(function, arguments, fast, valid)
    }
}

#[test]
fn the_straight_line_suffices_for_ordinary_arguments() {
    let mut random = Random(3);
    let edges = [
        0.0,
        f64::from_bits(1),
        f64::MIN_POSITIVE,
        1e-300,
        0.5,
        1.0,
        2.0,
        1e6,
        2f64.powi(40),
        1e300,
        f64::MAX,
    ];
    for function in Elementary::ALL {
        let mut pairs: Vec<[f64; 2]> = edges.iter().flat_map(|&a| edges.map(|b| [a, b])).collect();
        for draw in draws(function) {
            pairs.extend((0..1000).map(|_| draw(&mut random)));
        }
        pairs.extend([[NAN, 1.0], [1.0, NAN], [NAN, NAN]]);
        let mut taken = 0;
        for [a, b] in pairs.iter().flat_map(|&[a, b]| [[a, b], [-a, b], [a, -b], [-a, -b]]) {
            // The exceptions that the head of the module names.
            let left_out = match function {
                Elementary::Sin | Elementary::Cos | Elementary::Tan => a.abs() > 2f64.powi(40),
                Elementary::Log | Elementary::Log10 => a < f64::MIN_POSITIVE || a == INFINITY,
                Elementary::Log1p => 1.0 + a < f64::MIN_POSITIVE || a == INFINITY,
                Elementary::Expm1 => a > 700.0,
                Elementary::Atan2 => a.abs().max(b.abs()) > 2f64.powi(1020),
                _ => false,
            };
            let mut counted = Counted::default();
            let value = function.expand(&mut counted, [a, b]);
            assert!(same(value, function.evaluate(a, b)));
            if !a.is_nan() && !b.is_nan() || left_out {
                assert_eq!(counted.repairs > 0, left_out, "{function:?} of {a:e}, {b:e}");
            } else {
                assert_eq!(counted.repairs, 0, "{function:?} of {a:e}, {b:e}");
            }
            taken += usize::from(!left_out);
        }
        assert!(taken > 1000);
    }
}

#[test]
fn symmetries_and_bounds_hold_exactly() {
    let mut random = Random(4);
    for function in Elementary::ALL {
        if matches!(function, Elementary::Pow | Elementary::Atan2) {
            continue;
        }
        for draw in draws(function) {
            for _ in 0..2000 {
                let [x, _] = draw(&mut random);
                let (plus, minus) = (function.evaluate(x, x), function.evaluate(-x, -x));
                match function {
                    Elementary::Cos | Elementary::Cosh => {
                        assert!(same(plus, minus), "{function:?} {x:e}")
                    }
                    Elementary::Acos
                    | Elementary::Exp
                    | Elementary::Log
                    | Elementary::Log10
                    | Elementary::Log1p
                    | Elementary::Expm1 => {}
                    _ => assert!(same(plus, -minus), "{function:?} {x:e}"),
                }
                match function {
                    Elementary::Sin | Elementary::Cos | Elementary::Tanh | Elementary::Erf => {
                        assert!(plus.abs() <= 1.0)
                    }
                    Elementary::Cosh => assert!(plus >= 1.0),
                    Elementary::Atan => assert!(plus.abs() <= FRAC_PI_2),
                    Elementary::Exp => assert!(plus >= 0.0),
                    _ => {}
                }
            }
        }
    }
}

/// Node of a function.
fn node(g: &mut Graph, function: Elementary, a: Node, b: Node) -> Node {
    let unary = match function {
        Elementary::Pow => return g.binary(Binary::Pow, a, b),
        Elementary::Atan2 => return g.binary(Binary::Atan2, a, b),
        Elementary::Sin => Unary::Sin,
        Elementary::Cos => Unary::Cos,
        Elementary::Tan => Unary::Tan,
        Elementary::Asin => Unary::Asin,
        Elementary::Acos => Unary::Acos,
        Elementary::Atan => Unary::Atan,
        Elementary::Sinh => Unary::Sinh,
        Elementary::Cosh => Unary::Cosh,
        Elementary::Tanh => Unary::Tanh,
        Elementary::Exp => Unary::Exp,
        Elementary::Log => Unary::Log,
        Elementary::Log10 => Unary::Log10,
        Elementary::Log1p => Unary::Log1p,
        Elementary::Expm1 => Unary::Expm1,
        Elementary::Erf => Unary::Erf,
        Elementary::Special(_) => unreachable!("special functions have tables"),
    };
    g.unary(unary, a)
}

fn run(tape: &Tape, x: [f64; 2]) -> f64 {
    let kernel = Interpreter.compile(tape, 1).unwrap();
    let bound = kernel.bind(&[]);
    let (mut out, mut work) = (vec![0.0; kernel.outputs()], vec![NAN; kernel.work_len()]);
    kernel.run(&bound, &[0.0], &x, &mut out, &mut work);
    out[0]
}

#[test]
fn tapes_compute_the_same_bits() {
    let mut random = Random(5);
    let constants = [
        0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 3.5, -0.3, 100.0, -77.0, 1e300, INFINITY, -INFINITY,
        NAN,
    ];
    for function in Elementary::ALL {
        let mut g = Graph::new();
        let (x, y) = (g.state(0), g.state(1));
        let output = node(&mut g, function, x, y);
        let tape = Tape::new(&g, &[output], 2, 0);
        let mut pairs: Vec<[f64; 2]> =
            constants.iter().flat_map(|&a| constants.map(|b| [a, b])).collect();
        for draw in draws(function) {
            pairs.extend((0..300).map(|_| draw(&mut random)));
        }
        for &[a, b] in &pairs {
            let (got, value) = (run(&tape, [a, b]), function.evaluate(a, b));
            assert!(same(got, value), "{function:?} of {a:e}, {b:e}: {got:e}, {value:e}");
        }
        // Much of an expansion folds away if an argument is a constant; the bits stay.
        for c in constants {
            let constant = g.constant(c);
            let (left, right) =
                (node(&mut g, function, constant, y), node(&mut g, function, x, constant));
            let [left, right] = [left, right].map(|output| Tape::new(&g, &[output], 2, 0));
            for &[a, b] in pairs.iter().step_by(7) {
                let (got, value) = (run(&left, [a, b]), function.evaluate(c, b));
                assert!(
                    same(got, value),
                    "{function:?} of the constant {c:e}, {b:e}: {got:e}, {value:e}"
                );
                let (got, value) = (run(&right, [a, b]), function.evaluate(a, c));
                assert!(
                    same(got, value),
                    "{function:?} of {a:e}, the constant {c:e}: {got:e}, {value:e}"
                );
            }
        }
    }
}

/// Numbers of operations of the functions, in the order of [`Elementary::ALL`].
const OPERATIONS: [usize; 17] =
    [40, 40, 55, 40, 43, 47, 47, 39, 48, 27, 32, 132, 59, 45, 40, 39, 81];

/// An increase is worth a look.
#[test]
fn operations() {
    let count = |functions: &[Elementary], exponent: Option<f64>| {
        let mut g = Graph::new();
        let (x, y) = (g.state(0), g.state(1));
        let y = exponent.map_or(y, |e| g.constant(e));
        let outputs: Vec<Node> = functions.iter().map(|&f| node(&mut g, f, x, y)).collect();
        Tape::new(&g, &outputs, 2, 0).operations()
    };
    for (function, most) in Elementary::ALL.into_iter().zip(OPERATIONS) {
        let operations = count(&[function], None);
        println!("{function:?}: {operations} operations");
        assert!(operations <= most, "{function:?}");
    }
    let (sine, both) =
        (count(&[Elementary::Sin], None), count(&[Elementary::Sin, Elementary::Cos], None));
    println!("sin and cos: {both}");
    assert!(both <= sine + 8);
    let all = count(&[Elementary::Sin, Elementary::Cos, Elementary::Tan], None);
    println!("sin, cos and tan: {all}");
    let hyperbolic = count(&[Elementary::Sinh, Elementary::Cosh], None);
    println!("sinh and cosh: {hyperbolic}");
    for exponent in [100.0, 99.0, 3.7] {
        println!("pow(x, {exponent}): {}", count(&[Elementary::Pow], Some(exponent)));
    }
    println!("asin and acos: {}", count(&[Elementary::Asin, Elementary::Acos], None));
}
