//! Stiff problems by `radau5`, against the values of the test set for initial value problem solvers
//! (Mazzia and Magherini, Test Set for IVP Solvers, release 2.4) at their ends.

mod common;

use common::*;
use holonome_integrate::failure::Failure;
use holonome_integrate::observer::Recorder;
use holonome_integrate::plan::Plan;
use holonome_integrate::run::run;
use holonome_integrate::state::StepState;
use holonome_integrate::system::FnSystem;

/// A problem: its name, its end, its field, its start, and the solution at the end.
struct Stiff<const N: usize> {
    name: &'static str,
    end: f64,
    field: fn(&[f64; N]) -> [f64; N],
    start: [f64; N],
    solution: [f64; N],
}

impl<const N: usize> Stiff<N> {
    /// Largest relative error at this tolerance, and the numbers of steps, rejections and
    /// evaluations.
    fn solve(&self, rtol: f64, atol: f64) -> (f64, [u64; 3]) {
        let field = self.field;
        let system = FnSystem::new(N, move |_t, x: &[f64], dx: &mut [f64]| {
            dx.copy_from_slice(&field(x.try_into().expect("N numbers")));
        });
        let plan = Plan::adaptive(method("radau5"), 0.0, self.end, rtol, atol).unwrap();
        let (state, _) = finish(&plan, &system, &self.start);
        let errors = state.x.iter().zip(self.solution).map(|(x, exact)| (x / exact - 1.0).abs());
        let counts = [state.step, state.cost.rejected, state.cost.field];
        (errors.fold(0.0, f64::max), counts)
    }
}

const VAN_DER_POL: Stiff<2> = Stiff {
    name: "van der Pol",
    end: 2.0,
    field: |&[y, v]| [v, ((1.0 - y * y) * v - y) / 1e-6],
    start: [2.0, 0.0],
    solution: [1.706_167_732_170_483, -0.892_809_701_024_797_5],
};

const ROBERTSON: Stiff<3> = Stiff {
    name: "Robertson",
    end: 1e11,
    field: |&[a, b, c]| {
        let (slow, fast, pair) = (0.04 * a, 3e7 * b * b, 1e4 * b * c);
        [pair - slow, slow - pair - fast, fast]
    },
    start: [1.0, 0.0, 0.0],
    solution: [0.208_334_014_970_122_15e-7, 0.833_336_077_033_471_3e-13, 0.999_999_979_166_505],
};

const HIRES: Stiff<8> = Stiff {
    name: "HIRES",
    end: 321.8122,
    field: |y| {
        let [a, b, c, d, e, f, g, h] = *y;
        let bound = 280.0 * f * h - 1.81 * g;
        [
            -1.71 * a + 0.43 * b + 8.32 * c + 0.0007,
            1.71 * a - 8.75 * b,
            -10.03 * c + 0.43 * d + 0.035 * e,
            8.32 * b + 1.71 * c - 1.12 * d,
            -1.745 * e + 0.43 * f + 0.43 * g,
            -280.0 * f * h + 0.69 * d + 1.71 * e - 0.43 * f + 0.69 * g,
            bound,
            -bound,
        ]
    },
    start: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057],
    solution: [
        0.737_131_257_332_566_8e-3,
        0.144_248_572_631_618_5e-3,
        0.588_872_974_096_757_5e-4,
        0.117_565_134_328_377_9e-2,
        0.238_635_619_893_167_7e-2,
        0.623_896_825_274_231_4e-2,
        0.284_999_839_518_571_7e-2,
        0.285_000_160_481_428_3e-2,
    ],
};

const OREGONATOR: Stiff<3> = Stiff {
    name: "Oregonator",
    end: 360.0,
    field: |&[a, b, c]| {
        [77.27 * (b + a * (1.0 - 8.375e-6 * a - b)), (c - (1.0 + a) * b) / 77.27, 0.161 * (a - c)]
    },
    start: [1.0, 2.0, 3.0],
    solution: [1.000_814_870_318_523, 1_228.178_521_549_917, 132.055_494_284_651_3],
};

/// `radau5` takes about the steps of SciPy's Radau at comparable errors: 311 and 874 on van der Pol's
/// equation at errors of 1e-6 and 7e-9, 568 on Robertson's at 1.5e-8, 210 and 634 on HIRES at 1e-7
/// and 8e-10, 366 and 1061 on the Oregonator at 1e-5 and 5e-8. Errors within ten tolerances are
/// those of a few hundred steps that each err by less than one.
#[test]
fn published_values_are_met() {
    fn check<const N: usize>(problem: &Stiff<N>, atol: f64, most: [u64; 3]) {
        for (rtol, most) in [1e-4, 1e-6, 1e-8].into_iter().zip(most) {
            let (error, counts) = problem.solve(rtol, atol * rtol);
            let [steps, rejected, evaluations] = counts;
            println!("{} at {rtol}: {error:.1e} {counts:?}", problem.name);
            assert!(error < 10.0 * rtol, "{} at {rtol}: {error}", problem.name);
            assert!(steps < most && 4 * rejected < most, "{} at {rtol}: {counts:?}", problem.name);
            // A step takes two or three iterations of three fields; difference quotients take 2 n
            // more.
            assert!(evaluations < (15 + 2 * N as u64) * (steps + rejected), "{counts:?}");
        }
    }
    check(&VAN_DER_POL, 0.0, [300, 600, 1300]);
    check(&ROBERTSON, 1e-14, [200, 400, 800]);
    check(&HIRES, 1e-4, [120, 250, 500]);
    check(&OREGONATOR, 1e-6, [350, 700, 1400]);
}

/// x' = −k (x − cos t) − sin t, whose solution is cos t, whatever k is.
fn relaxation(k: f64) -> FnSystem<'static> {
    FnSystem::new(1, move |t, x: &[f64], dx: &mut [f64]| dx[0] = -k * (x[0] - t.cos()) - t.sin())
}

#[test]
fn a_fast_decay_does_not_shorten_steps() {
    let steps = |k: f64| {
        let plan = Plan::adaptive(method("radau5"), 0.0, 10.0, 1e-6, 0.0).unwrap();
        let (state, _) = finish(&plan, &relaxation(k), &[1.0]);
        // Some ten steps err by a tolerance each; the decay damps what is older.
        assert!((state.x[0] - 10f64.cos()).abs() < 1e-5, "{k}: {:?}", state.x);
        state.step
    };
    let slow = steps(1.0);
    for k in [1e3, 1e6, 1e9] {
        assert!(steps(k) <= 2 * slow, "{k}: {} and {slow}", steps(k));
    }
}

/// Two charges on a line between walls of springs, with friction: at rest forces cancel, and all
/// momenta are rounding.
#[test]
fn steps_grow_as_a_motion_comes_to_rest() {
    let system = FnSystem::new(4, |_t, x: &[f64], dx: &mut [f64]| {
        let repulsion = 1.0 / ((x[0] - x[1]) * (x[0] - x[1]));
        dx[..2].copy_from_slice(&x[2..]);
        dx[2] = -1e3 * x[0] - repulsion - 0.5 * x[2];
        dx[3] = -1e3 * x[1] + repulsion - 0.5 * x[3];
    });
    for rtol in [1e-3, 1e-6, 1e-9] {
        let steps = |end: f64| {
            let plan = Plan::adaptive(method("radau5"), 0.0, end, rtol, 0.0).unwrap();
            finish(&plan, &system, &[-0.3, 0.1, 0.0, 0.0]).0.step
        };
        // The motion decays by e in a time of 4, to 10⁻⁸ in 74; then nothing moves any more.
        let (moving, all) = (steps(100.0), steps(1e5));
        assert!(all < moving + moving / 2 + 100, "{rtol}: {moving} steps, then {all}");
    }
}

#[test]
fn an_equal_step_without_a_solution_says_so() {
    let system = FnSystem::new(1, |_t, x: &[f64], dx: &mut [f64]| dx[0] = x[0] * x[0] + 1.0);
    let plan = Plan::fixed(method("radau5"), 0.0, 20.0, 10.0).unwrap();
    let mut state = StepState::new(&plan, &system, &[1.0], None);
    let failure = run(&plan, &system, &mut state, &mut Recorder::default()).unwrap_err();
    let Failure::NewtonNotConverged { t, iterations, residual, .. } = failure else {
        panic!("{failure:?}")
    };
    assert!(t == 0.0 && iterations > 5 && residual > 1e-6, "{iterations} {residual}");
}

/// Runs by explicit methods, with what they find: the time from which on stability limits them.
fn stiff_since(name: &str, rtol: f64, system: &FnSystem, end: f64, start: &[f64]) -> Option<f64> {
    let plan = Plan::adaptive(method(name), 0.0, end, rtol, 0.0).unwrap();
    let (state, _) = finish(&plan, system, start);
    (state.stiffness.ratio > 0.0).then_some(state.stiffness.since)
}

#[test]
fn steps_that_stability_limits_are_reported() {
    for name in ["bs3", "dopri5", "tsit5", "dop853"] {
        for rtol in [1e-3, 1e-6] {
            let since = stiff_since(name, rtol, &relaxation(1e4), 2.0, &[0.0]);
            // The start decays within 1e-4 log(1/rtol), and 64 steps end by 64 r/k < 0.05.
            assert!(since.is_some_and(|t| t < 0.1), "{name} at {rtol}: {since:?}");
        }
    }
}

#[test]
fn steps_that_accuracy_limits_are_not() {
    let lorenz = FnSystem::new(3, |_t, x: &[f64], dx: &mut [f64]| {
        dx[0] = 10.0 * (x[1] - x[0]);
        dx[1] = x[0] * (28.0 - x[2]) - x[1];
        dx[2] = x[0] * x[1] - 8.0 / 3.0 * x[2];
    });
    // A slow oscillation, and a fast one of small amplitude that stability limits: no decay.
    let springs = FnSystem::new(4, |_t, x: &[f64], dx: &mut [f64]| {
        dx.copy_from_slice(&[x[1], -x[0], x[3], -1e6 * x[2]]);
    });
    // At a loose tolerance bs3 damps the chaos away, and ends at a rest that is stiff.
    for name in ["dopri5", "tsit5", "dop853", "bs3"] {
        for rtol in if name == "bs3" { [1e-5, 1e-6] } else { [1e-3, 1e-6] } {
            let chaos = stiff_since(name, rtol, &lorenz, 100.0, &[1.0, 1.0, 1.0]);
            let fast = stiff_since(name, rtol, &springs, 20.0, &[1.0, 0.0, 1e-9, 0.0]);
            assert_eq!((chaos, fast), (None, None), "{name} at {rtol}");
        }
    }
}

#[test]
fn a_run_that_reaches_its_limit_says_that_it_is_stiff() {
    let mut plan = Plan::adaptive(method("dopri5"), 0.0, 10.0, 1e-6, 0.0).unwrap();
    plan.step_limit = 2000;
    let system = relaxation(1e4);
    let mut state = StepState::new(&plan, &system, &[0.0], None);
    let failure = run(&plan, &system, &mut state, &mut Recorder::default()).unwrap_err();
    assert!(failure.to_string().contains("`radau5` takes longer ones"), "{failure}");
}
