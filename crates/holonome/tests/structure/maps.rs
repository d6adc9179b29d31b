//! Properties of the one-step maps: symplectic, symmetric, adjoint to one another, independent of a
//! start's place on its fibre.

use crate::cases::{CASES, Case, below, brackets, case, difference, largest};
use crate::methods::{bases, cases_of, compositions, few_cases_of};
use holonome::Simulation;
use holonome::method::{Method, Needs};

/// Start time of the maps, at which no rheonomic model is special.
const T0: f64 = 0.3;

/// A point of the case's set, at T0 for all cases: some way along the motion.
fn point(case: &Case) -> Vec<f64> {
    let method = match (case.rolls(), case.constrained()) {
        (true, _) => "nonholonomic-leapfrog",
        (false, true) => "rattle",
        (false, false) => "gauss6",
    };
    case.with(method).steps((0.0, T0 / 10.0), 10, &case.start()).unwrap()
}

/// f'(x), column by column, by the central formula of order 8 with steps of 0.01. Its error is
/// δ⁸/630 times a ninth derivative, 1e-13 for a function whose Taylor series has a radius of
/// convergence of 1, and its round-off a few 1e-16/δ.
pub fn jacobian(mut f: impl FnMut(&[f64]) -> Vec<f64>, x: &[f64]) -> Vec<Vec<f64>> {
    let delta = 0.01;
    let weights = [4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0];
    let count = f(x).len();
    (0..x.len())
        .map(|i| {
            let mut at = |k: f64| {
                let mut x = x.to_vec();
                x[i] += k * delta;
                f(&x)
            };
            let mut column = vec![0.0; count];
            for (k, weight) in weights.iter().enumerate() {
                let (plus, minus) = (at(k as f64 + 1.0), at(-(k as f64 + 1.0)));
                for (entry, (plus, minus)) in column.iter_mut().zip(plus.iter().zip(&minus)) {
                    *entry += weight * (plus - minus) / delta;
                }
            }
            column
        })
        .collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Orthonormal basis of the vectors orthogonal to `rows`, by Gram–Schmidt, twice because of
/// round-off.
fn tangent(rows: &[Vec<f64>], n: usize) -> Vec<Vec<f64>> {
    let mut normals: Vec<Vec<f64>> = Vec::new();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let units = (0..n).map(|i| (0..n).map(|j| f64::from(i == j)).collect());
    for (k, mut v) in rows.iter().cloned().chain(units).enumerate() {
        let length = dot(&v, &v).sqrt();
        for _ in 0..2 {
            for u in normals.iter().chain(&basis) {
                let share = dot(u, &v);
                v.iter_mut().zip(u).for_each(|(v, u)| *v -= share * u);
            }
        }
        let rest = dot(&v, &v).sqrt();
        // The remainder of a dependent vector is round-off; rows are independent.
        if rest > 1e-6 * length {
            v.iter_mut().for_each(|c| *c /= rest);
            if k < rows.len() { normals.push(v) } else { basis.push(v) }
        }
    }
    assert_eq!((normals.len(), basis.len()), (rows.len(), n - rows.len()));
    basis
}

/// ω(u, v) = Σ u_q v_p − u_p v_q
pub fn omega(u: &[f64], v: &[f64]) -> f64 {
    let n = u.len() / 2;
    dot(&u[..n], &v[n..]) - dot(&u[n..], &v[..n])
}

/// Points of the set of the first `count` restrictions around x: x + Σ uᵢ vᵢ over an orthonormal
/// basis of its tangent vectors, moved to the set along its normals at x. A map for g(q, p) is
/// defined on g = 0 only: fibres do not leave the level set on which they begin.
pub struct Chart<'a> {
    case: &'a Case,
    count: usize,
    t: f64,
    x: Vec<f64>,
    pub basis: Vec<Vec<f64>>,
    normals: Vec<Vec<f64>>,
}

impl Chart<'_> {
    fn new(case: &Case, count: usize) -> Chart<'_> {
        Chart::around(case, count, (T0, point(case)))
    }

    /// Chart around the start of a case, or a point some way along its motion if that is on the set
    /// at the start time as well.
    pub fn at_start(case: &Case) -> Chart<'_> {
        let (moved, start) = (point(case), case.start());
        let restrictions = (case.restrictions)(0.0, &moved);
        let x = if largest(&restrictions) < 1e-9 { moved } else { start };
        Chart::around(case, restrictions.len(), (0.0, x))
    }

    fn around(case: &Case, count: usize, (t, x): (f64, Vec<f64>)) -> Chart<'_> {
        let gradients = jacobian(|x| (case.restrictions)(t, x)[..count].to_vec(), &x);
        let normals: Vec<Vec<f64>> =
            (0..count).map(|row| gradients.iter().map(|column| column[row]).collect()).collect();
        let basis = tangent(&normals, x.len());
        Chart { case, count, t, x, basis, normals }
    }

    pub fn at(&self, u: &[f64]) -> Vec<f64> {
        let mut y = self.x.clone();
        let moved = |y: &mut Vec<f64>, c: f64, v: &[f64]| {
            y.iter_mut().zip(v).for_each(|(y, v)| *y += c * v)
        };
        u.iter().zip(&self.basis).for_each(|(&u, v)| moved(&mut y, u, v));
        // Newton with the matrix at x gains two digits per iteration; the points are within 0.04 of
        // x.
        let gram: Vec<Vec<f64>> =
            self.normals.iter().map(|a| self.normals.iter().map(|b| dot(a, b)).collect()).collect();
        for _ in 0..20 {
            let g = (self.case.restrictions)(self.t, &y)[..self.count].to_vec();
            let c = solved(gram.clone(), g);
            c.iter().zip(&self.normals).for_each(|(&c, normal)| moved(&mut y, -c, normal));
        }
        y
    }
}

/// Solution of a small positive definite system.
fn solved(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            let row = a[k].clone();
            a[i].iter_mut().zip(&row).for_each(|(a, b)| *a -= factor * b);
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - known) / a[k][k];
    }
    b
}

/// max |ω(f'u, f'v) − ω(u, v)| over tangent vectors u, v of the set of the first `count`
/// restrictions.
fn defect(case: &Case, simulation: &Simulation, h: f64, count: usize) -> f64 {
    let chart = Chart::new(case, count);
    let images = jacobian(
        |u| simulation.steps((T0, h), 1, &chart.at(u)).unwrap(),
        &vec![0.0; chart.basis.len()],
    );
    let mut defect = 0.0f64;
    if let Some(before) = brackets(case.name(), &chart.at(&vec![0.0; chart.basis.len()])) {
        let end = simulation.steps((T0, h), 1, &chart.at(&vec![0.0; chart.basis.len()])).unwrap();
        return poisson_defect(&images, &before, &brackets(case.name(), &end).unwrap());
    }
    for i in 0..images.len() {
        for j in 0..i {
            let (after, before) =
                (omega(&images[i], &images[j]), omega(&chart.basis[i], &chart.basis[j]));
            defect = defect.max((after - before).abs());
        }
    }
    defect
}

/// max |Φ' J(x) Φ'ᵀ − J(Φ(x))| of a map with these derivatives, one for each component of the state.
pub fn poisson_defect(images: &[Vec<f64>], before: &[Vec<f64>], after: &[Vec<f64>]) -> f64 {
    let n = before.len();
    let all = || (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
    let gap = |(a, b): (usize, usize)| {
        let sum: f64 = all().map(|(k, l)| images[k][a] * before[k][l] * images[l][b]).sum();
        (sum - after[a][b]).abs()
    };
    all().map(gap).fold(0.0, f64::max)
}

/// Number of restrictions that define the set on which a method is symplectic: SHAKE ignores the
/// hidden ones.
fn set_of(method: &Method, case: &Case) -> usize {
    let all = (case.restrictions)(0.0, &case.start()).len();
    if method.scheme.name == "shake" { all / 2 } else { all }
}

/// Largest defect of a symplectic map: the entries of the differences above are accurate to about
/// 1e-12, and ω sums a few products of them.
pub const DEFECT: f64 = 1e-11;

#[test]
fn methods_are_symplectic_as_their_facts_say() {
    let (mut worst, mut wrong) = ((0.0, String::new()), Vec::new());
    for method in bases().into_iter().chain(compositions()) {
        let mut kept = true;
        for case in few_cases_of(&method) {
            let simulation = case.with(&method.to_string());
            // In an accurate step a lack of symplecticity does not show.
            let longer = match method.order() {
                8.. if case.is_poisson() => 12.0,
                10.. => 3.0,
                _ => 1.0,
            };
            let h = if method.symplectic() { case.h } else { longer * case.h };
            let found = defect(case, &simulation, h, set_of(&method, case));
            let line = format!("{method} on {}: {found:.1e}", case.name());
            kept &= below(found, DEFECT);
            if method.symplectic() && !below(found, DEFECT) {
                wrong.push(line.clone());
            }
            if method.symplectic() && found > worst.0 {
                worst = (found, line);
            }
        }
        if kept && !method.symplectic() {
            wrong.push(format!("{method} is symplectic after all"));
        }
    }
    println!("worst: {}", worst.1);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The measure is sensitive: methods that are not symplectic fail by orders of magnitude.
#[test]
fn other_methods_are_not_symplectic() {
    // Under most methods the Hopf oscillator keeps its only invariants, H and J.
    for case in CASES.iter().filter(|case| case.name() != "hopf-oscillator") {
        let projected = ["projection:euler", "corrected:rk4"];
        let plain = ["rk4", "euler"];
        for name in plain
            .iter()
            .chain(projected.iter().filter(|_| case.constrained() || case.name() == "kepler"))
        {
            let method: Method = name.parse().unwrap();
            let found = defect(case, &case.with(name), case.h, set_of(&method, case));
            println!("{name} on {}: {found:.1e}", case.name());
            // One step of order 1 errs by h², of order 4 by h⁵ and some constant below 1.
            let least = if method.order() == 1 { 1e-5 } else { 1e-10 };
            assert!(found > least, "{name} on {}: {found:e}", case.name());
        }
    }
}

/// SHAKE is symplectic on the larger set, RATTLE only on the smaller one; so the measure
/// distinguishes the sets.
#[test]
fn rattle_keeps_the_form_on_its_own_set() {
    let case = case("metric-pendulum");
    let (shake, rattle) = (case.with("shake"), case.with("rattle"));
    assert!(defect(case, &shake, case.h, 1) < DEFECT && defect(case, &rattle, case.h, 1) < DEFECT);
    // Off g = 0, in all of phase space, neither is symplectic.
    assert!(defect(case, &shake, case.h, 0) > 1e-4 && defect(case, &rattle, case.h, 0) > 1e-4);
}

/// Gap after a step forth and back: the two solves are exact to a few roundings of a state of
/// length 1, like their start.
const THERE_AND_BACK: f64 = 2e-14;

#[test]
fn symmetric_methods_return() {
    let mut wrong = Vec::new();
    for method in bases().into_iter().chain(compositions()) {
        let mut returns = true;
        for case in few_cases_of(&method) {
            let (simulation, x) = (case.with(&method.to_string()), point(case));
            let there = simulation.steps((T0, case.h), 1, &x).unwrap();
            let back = simulation.steps((T0 + case.h, -case.h), 1, &there).unwrap();
            let gap = difference(&back, &x);
            if method.symmetric() && !below(gap, THERE_AND_BACK) {
                wrong.push(format!("{method} on {}: {gap:e}", case.name()));
            }
            // Without symmetry by the commutators of a corrector's flows only.
            let corrects = method.composition.is_some_and(|composition| !composition.symmetric());
            returns &= gap < if corrects { THERE_AND_BACK } else { 1e-6 };
        }
        // A method that is not symmetric is off by its error, SHAKE by a slide along the fibre.
        if method.symmetric() != returns {
            wrong.push(format!(
                "{method}: symmetric by its facts {}, by its maps {returns}",
                method.symmetric()
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn adjoints_undo_each_other() {
    for (one, other) in
        [("symplectic-euler-a", "symplectic-euler-b"), ("lie-trotter", "lie-trotter-adjoint")]
    {
        let method: Method = one.parse().unwrap();
        for case in cases_of(&method) {
            let (one, other, x) = (case.with(one), case.with(other), point(case));
            let there = one.steps((T0, case.h), 1, &x).unwrap();
            let back = other.steps((T0 + case.h, -case.h), 1, &there).unwrap();
            assert!(
                difference(&back, &x) < THERE_AND_BACK,
                "{}: {:e}",
                case.name(),
                difference(&back, &x)
            );
        }
    }
    // Between slides they are adjoint, too.
    for case in CASES.iter().filter(|case| case.serves(Needs::Coisotropic)) {
        let (one, other) =
            (case.with("rattle:symplectic-euler-a"), case.with("rattle:symplectic-euler-b"));
        let x = point(case);
        let there = one.steps((T0, case.h), 1, &x).unwrap();
        let back = other.steps((T0 + case.h, -case.h), 1, &there).unwrap();
        assert!(
            difference(&back, &x) < THERE_AND_BACK,
            "{}: {:e}",
            case.name(),
            difference(&back, &x)
        );
    }
}

/// x moved along the fibre of the first constraint for a time, by many small Runge–Kutta steps on
/// the gradient of the typed constraint: their error of 1e-13 is far below the change by a slide.
fn slid(case: &Case, x: &[f64], time: f64) -> Vec<f64> {
    let (n, constraints) = (x.len() / 2, (case.restrictions)(T0, x).len() / 2);
    let field = |x: &[f64]| -> Vec<f64> {
        let gradients = jacobian(|x| (case.restrictions)(T0, x)[..constraints].to_vec(), x);
        // Along all fibres at once, at different speeds.
        let d = |i: usize| {
            (0..constraints).map(|k| gradients[i][k] * (1.0 + 0.4 * k as f64)).sum::<f64>()
        };
        (0..n).map(|i| d(n + i)).chain((0..n).map(|i| -d(i))).collect()
    };
    let (count, mut x) = (16, x.to_vec());
    let h = time / f64::from(count);
    for _ in 0..count {
        let add = |x: &[f64], c: f64, v: &[f64]| -> Vec<f64> {
            x.iter().zip(v).map(|(x, v)| x + c * v).collect()
        };
        let k1 = field(&x);
        let k2 = field(&add(&x, h / 2.0, &k1));
        let k3 = field(&add(&x, h / 2.0, &k2));
        let k4 = field(&add(&x, h, &k3));
        for (k, weight) in [(k1, 1.0), (k2, 2.0), (k3, 2.0), (k4, 1.0)] {
            x = add(&x, h * weight / 6.0, &k);
        }
    }
    x
}

/// Starts on one fibre have one result. The start is accurate to the error of `slid`; the
/// multiplier that undoes the slide is larger than the step's own and so rounds more: a few 1e-14.
#[test]
fn a_slide_of_the_start_changes_nothing() {
    let slides = |method: &Method| {
        matches!(method.scheme.needs, Needs::Coisotropic | Needs::Body | Needs::FreeBody)
    };
    for method in bases().into_iter().filter(slides) {
        for case in few_cases_of(&method) {
            let (simulation, x) = (case.with(&method.to_string()), point(case));
            let plain = simulation.steps((T0, case.h), 3, &x).unwrap();
            for time in [1e-3, -0.01, 0.02] {
                let start = slid(case, &x, time);
                assert!(difference(&start, &x) > 1e-4);
                let g = &(case.restrictions)(T0, &start)[..];
                assert!(largest(&g[..g.len() / 2]) < 1e-12, "the fibres lie in g = 0: {g:?}");
                let moved = simulation.steps((T0, case.h), 3, &start).unwrap();
                let gap = difference(&moved, &plain);
                assert!(gap < 5e-13, "{method} on {}, slid by {time}: {gap:e}", case.name());
            }
        }
    }
}
