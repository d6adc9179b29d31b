//! Tests of plans: steps, outputs, refusals.

use super::*;

fn method(name: &str) -> Method {
    name.parse().unwrap()
}

fn fixed(t0: f64, t_end: f64, h: f64) -> FixedSteps {
    match Plan::fixed(method("rk4"), t0, t_end, h).unwrap().stepping {
        Stepping::Fixed(fixed) => fixed,
        Stepping::Adaptive(_) => unreachable!(),
    }
}

#[test]
fn integer_ratios_have_no_short_step() {
    let f = fixed(0.0, 100.0, 1e-3);
    assert_eq!((f.steps, f.shorter_last), (100_000, None));
    let f = fixed(0.0, 0.3, 0.1); // 0.3/0.1 = 2.9999999999999996
    assert_eq!((f.steps, f.shorter_last), (3, None));
}

#[test]
fn other_ratios_land_on_the_end() {
    let f = fixed(1.0, 2.0, 0.3);
    assert_eq!((f.steps, f.shorter_last, f.count()), (3, Some(2.0), 4));
    assert_eq!(f.time(1.0, 4), 2.0);
    assert_eq!(f.time(1.0, 3) + f.length(1.0, 3), 2.0);
    let f = fixed(0.0, 0.1, 0.3); // one step, shorter than h
    assert_eq!((f.steps, f.count(), f.length(0.0, 0)), (0, 1, 0.1));
    let f = fixed(0.0, 1e-12, 1.0); // a ratio that is nearly the integer 0 still has a step
    assert_eq!((f.steps, f.count(), f.length(0.0, 0)), (0, 1, 1e-12));
}

#[test]
fn samples_are_even_and_include_both_ends() {
    let plan = Plan::fixed(method("rk4"), 0.0, 1.0, 0.1).unwrap().with_samples(3).unwrap();
    assert!(matches!(&plan.stepping, Stepping::Fixed(f) if f.samples == [0, 5, 10]));
    let plan = plan.with_samples(1001).unwrap();
    assert_eq!(plan.sample_count(), 11);
    let plan =
        Plan::adaptive(method("dop853"), 1.0, 3.0, 1e-9, 1e-9).unwrap().with_samples(1001).unwrap();
    assert_eq!(
        (plan.sample_time(0), plan.sample_time(500), plan.sample_time(1000)),
        (1.0, 2.0, 3.0)
    );
}

#[test]
fn spacing_falls_on_steps_or_is_refused() {
    let plan = Plan::fixed(method("rk4"), 0.0, 1.0, 0.1).unwrap();
    let spaced = plan.clone().with_spacing(0.3).unwrap();
    assert!(matches!(&spaced.stepping, Stepping::Fixed(f) if f.samples == [0, 3, 6, 9]));
    assert_eq!(
        plan.clone().with_spacing(0.25).unwrap_err(),
        PlanError::SpacingOffSteps { every: 0.25, h: 0.1 }
    );
    assert!(plan.with_spacing(0.01).is_err());
    let plan =
        Plan::adaptive(method("dop853"), 0.0, 1.0, 1e-9, 0.0).unwrap().with_spacing(0.3).unwrap();
    assert_eq!(plan.sample_count(), 4);
}

#[test]
fn senseless_plans_are_refused() {
    let rk4 = method("rk4");
    for (t0, t_end) in [(0.0, 0.0), (50.0, 10.0)] {
        assert_eq!(
            Plan::fixed(rk4, t0, t_end, 0.1).unwrap_err(),
            PlanError::EndNotAfterStart { t0, t_end }
        );
    }
    for (t0, t_end, h) in [(0.0, f64::INFINITY, 0.1), (0.0, 1.0, 0.0), (0.0, 1.0, f64::NAN)] {
        assert!(matches!(Plan::fixed(rk4, t0, t_end, h), Err(PlanError::OutOfRange { .. })));
    }
    assert!(matches!(Plan::fixed(rk4, 0.0, 1.0, 1e-300), Err(PlanError::TooMany { .. })));
    assert_eq!(
        Plan::adaptive(rk4, 0.0, 1.0, 1e-9, 1e-9).unwrap_err(),
        PlanError::NeedsStep { scheme: "rk4" }
    );
    let tsit5 = method("tsit5");
    for (rtol, atol) in [(0.0, 0.0), (1e-9, -1.0), (f64::INFINITY, 0.0), (1e-9, f64::NAN)] {
        assert!(matches!(
            Plan::adaptive(tsit5, 0.0, 1.0, rtol, atol),
            Err(PlanError::OutOfRange { .. })
        ));
    }
    assert!(Plan::fixed(rk4, 0.0, 1.0, 0.1).unwrap().with_samples(1).is_err());
}

#[test]
fn later_ends_continue_the_samples() {
    let rk4 = method("rk4");
    for (until, count, later) in [(1.0, 4, 2.5), (1.0, 1001, 1.2), (0.95, 3, 2.0), (1.0, 2, 1.05)] {
        let samples = |end: f64| {
            let plan =
                Plan::fixed(rk4, 0.0, end, 0.1).unwrap().with_samples_until(count, until).unwrap();
            let Stepping::Fixed(fixed) = plan.stepping else { unreachable!() };
            (fixed.samples.clone(), fixed.count())
        };
        let (few, few_steps) = samples(until);
        let same = Plan::fixed(rk4, 0.0, until, 0.1).unwrap().with_samples(count).unwrap();
        assert!(
            matches!(&same.stepping, Stepping::Fixed(f) if f.samples == few),
            "{until} {count}"
        );
        let (many, steps) = samples(later);
        // The last step of the shorter run, if shortened, is not a step of the longer one, but its
        // number is.
        let kept = few.iter().filter(|&&step| step < steps).count();
        assert_eq!(many[..kept], few[..kept]);
        assert!(
            many.is_sorted_by(|a, b| a < b)
                && many.last() == Some(&steps)
                && few.last() == Some(&few_steps)
        );
    }
    let adaptive = |end: f64| Plan::adaptive(method("dop853"), 1.0, end, 1e-9, 0.0).unwrap();
    let times =
        |plan: Plan| (0..plan.sample_count()).map(|i| plan.sample_time(i)).collect::<Vec<f64>>();
    let (few, many) = (
        times(adaptive(3.0).with_samples(8).unwrap()),
        times(adaptive(5.0).with_samples_until(8, 3.0).unwrap()),
    );
    assert_eq!(many[..8], few);
    assert_eq!((many.len(), many[14]), (15, 5.0), "no sliver at the end: {many:?}");
    assert_eq!(times(adaptive(3.0).with_samples_until(8, 3.0).unwrap()), few);
}

#[test]
fn there_are_no_more_samples_than_steps() {
    let plan = Plan::fixed(method("rk4"), 0.0, 1.0, 0.1).unwrap().with_samples(u64::MAX).unwrap();
    assert_eq!(plan.sample_count(), 11);
    let many = Plan::fixed(method("rk4"), 0.0, 1.0, 1e-12).unwrap().with_samples(u64::MAX);
    assert!(matches!(many, Err(PlanError::TooMany { .. })), "{many:?}");
}
