//! Tests of the stability monitor and of the rate that a pilot run finds.

use super::*;
use crate::pilot::pilot_rate;
use crate::plan::Plan;
use crate::state::StepState;
use crate::system::{FnSystem, Group, GroupKind, Invariants};

/// System with constant gradients: DF is `rows` throughout, over n columns.
fn linear(n: usize, rows: Vec<f64>) -> FnSystem<'static> {
    let m = rows.len() / n;
    let groups = vec![Group::rows("I", GroupKind::Integral, 0..m as u32)];
    let values = rows.clone();
    FnSystem::new(n, |_, _, dx| dx.fill(0.0)).with_invariants(
        Invariants::dense(n, m, 0, groups),
        move |_, x, f| {
            for (f, row) in f.iter_mut().zip(values.chunks(n)) {
                *f = row.iter().zip(x).map(|(a, x)| a * x).sum();
            }
        },
        move |_, _, df| df.copy_from_slice(&rows),
    )
}

fn ratio(system: &FnSystem, gain: &Gain, h: f64, interval: f64) -> f64 {
    let mut monitor = Monitor::new(gain, system, interval);
    let mut direction = Vec::new();
    monitor.prepare(&mut direction);
    let x = vec![0.0; system.dim()];
    monitor.ratio(system, 0.0, &x, h, &mut direction, &mut vec![0.0; system.work_len()])
}

#[test]
fn small_systems_by_hand() {
    // DF DFᵀ = [[5, 4], [4, 5]] has the eigenvalues 9 and 1; with K = diag(4, 1), K^½ DF DFᵀ K^½ =
    // [[20, 8], [8, 5]] has ½(25 ± √(225 + 256)).
    let system = linear(2, vec![1.0, 2.0, 2.0, 1.0]);
    assert!((ratio(&system, &Gain::Diagonal(vec![1.0, 1.0]), 0.5, 2.0) - 0.25 * 9.0).abs() < 1e-14);
    let expected = 0.5 * (25.0 + 481f64.sqrt());
    assert!((ratio(&system, &Gain::Diagonal(vec![4.0, 1.0]), 1.0, 1.0) - expected).abs() < 1e-13);
    let dense = Gain::Dense(vec![4.0, 0.0, 0.0, 1.0]);
    assert!((ratio(&system, &dense, 1.0, 1.0) - expected).abs() < 1e-13);
    // K = [[2, 1], [1, 2]]: K·DFDFᵀ = [[14, 13], [13, 14]], 27.
    assert!(
        (ratio(&system, &Gain::Dense(vec![2.0, 1.0, 1.0, 2.0]), 1.0, 1.0) - 27.0).abs() < 1e-13
    );
    assert_eq!(ratio(&system, &Gain::Rate(3.0), 0.5, 2.0), 0.75);
}

#[test]
fn a_rank_deficient_gram_matrix_is_no_obstacle() {
    // Two equal rows of length √5: DF DFᵀ = 5·[[1, 1], [1, 1]]; with K = [[2, 1], [1, 2]], 5·(2 + 1
    // + 1 + 2) = 30.
    let system = linear(2, vec![1.0, 2.0, 1.0, 2.0]);
    assert!(
        (ratio(&system, &Gain::Dense(vec![2.0, 1.0, 1.0, 2.0]), 1.0, 1.0) - 30.0).abs() < 1e-12
    );
}

#[test]
fn large_systems_iterate_to_the_same() {
    // 30 orthogonal rows of length 1 + i/10, gain 2: the largest eigenvalue is 2·3.9² = 30.42, the
    // next 2·3.8².
    let n = 40;
    let mut rows = vec![0.0; 30 * n];
    for i in 0..30 {
        rows[i * n + i] = 1.0 + i as f64 / 10.0;
    }
    let system = linear(n, rows);
    let gain = Gain::Diagonal(vec![2.0; 30]);
    let mut monitor = Monitor::new(&gain, &system, 1.0);
    let mut direction = Vec::new();
    monitor.prepare(&mut direction);
    let (x, mut work) = (vec![0.0; n], vec![0.0; system.work_len()]);
    let mut sample = || monitor.ratio(&system, 0.0, &x, 1.0, &mut direction, &mut work);
    // The quotient misses by q/(1 − q) times its last move, q = (3.8/3.9)⁴ = 0.90: 1e-3 after the
    // first sample.
    let first = sample();
    assert!((first / 30.42 - 1.0).abs() < 1e-3, "{first}");
    // The next samples go on from there.
    let later = (0..20).map(|_| sample()).last().unwrap();
    assert!((later / 30.42 - 1.0).abs() < 1e-4 && later >= first, "{later}");
}

#[test]
fn samples_are_chosen_by_number() {
    let system = linear(1, vec![1.0]);
    let gain = Gain::Diagonal(vec![1.0]);
    let monitor = |steps: f64| {
        let plan = Plan::fixed("rk4".parse().unwrap(), 0.0, steps, 1.0).unwrap();
        Monitor::new(&gain, &system, 1.0).along(&plan.stepping)
    };
    // Few steps are all sampled, many at an even spacing, beginning with the first.
    let short = monitor(SAMPLES as f64);
    assert!((0..SAMPLES).all(|step| short.samples(step)));
    let long = monitor(100.0 * SAMPLES as f64);
    let sampled: Vec<u64> = (0..1000).filter(|&step| long.samples(step)).collect();
    assert_eq!(sampled, (0..10).map(|k| 100 * k).collect::<Vec<_>>());
    // From any step, the next sampled one is as far away as predicted.
    for step in 0..300 {
        let next = (step + 1..).find(|&later| long.samples(later)).unwrap();
        assert_eq!(long.steps_to_sample(step), next - step);
    }
    // If their number is not known, the first samples are 64 steps apart, and the nine doublings
    // from 2¹³ steps on have 128 each. Together they stand for all steps.
    let plan = Plan::adaptive("dopri5".parse().unwrap(), 0.0, 1.0, 1e-6, 1e-6).unwrap();
    let adaptive = Monitor::new(&gain, &system, 1.0).along(&plan.stepping);
    let steps = 1 << 22;
    let sampled: Vec<u64> = (0..steps).filter(|&step| adaptive.samples(step)).collect();
    assert_eq!(sampled[..3], [0, 64, 128]);
    assert_eq!(sampled.len(), 128 + 9 * 128);
    assert!(sampled.windows(2).all(|pair| pair[0] + adaptive.spacing(pair[0]) == pair[1]));
}

#[test]
fn the_rate_is_a_median_over_a_hundred_steps() {
    // x' = −x for the first 60 steps and −5x after: of 100 states most have the rate 1, of 120 or
    // more they would not.
    let h = 0.01;
    let system =
        FnSystem::new(1, move |t, x, dx| dx[0] = if t < 59.5 * h { -x[0] } else { -5.0 * x[0] });
    let plan = Plan::fixed("rk4".parse().unwrap(), 0.0, 10.0, h).unwrap();
    let state = StepState::new(&plan, &system, &[1.0], None);
    let rate = pilot_rate(&plan, &system, &state).unwrap();
    assert!((rate - 1.0).abs() < 1e-6, "{rate}"); // the difference quotient's error
    let shorter =
        FnSystem::new(1, move |t, x, dx| dx[0] = if t < 40.5 * h { -x[0] } else { -5.0 * x[0] });
    let rate = pilot_rate(&plan, &shorter, &state).unwrap();
    assert!((rate - 5.0).abs() < 1e-6, "{rate}");
}
