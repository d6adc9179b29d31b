//! Tests that steps over columns are those of the same model unrolled.

use super::Templated;
use crate::kernels::{CompiledSystem, Parametric, StateVectors};
use crate::options::{RunOptions, Settings, StepSize};
use crate::problem::Problem;
use crate::simulation::prepare;
use crate::step::{
    LoweredProgram, MethodSettings, Program, Start, templated_places, templated_program,
    unrolled_places, unrolled_program,
};
use holonome_integrate::dirac::extended_field;
use holonome_integrate::method::{Method, Needs, Scheme, SchemeFacts, Step, register};
use holonome_integrate::phase_space::{PhaseSpace, Value};
use holonome_integrate::plan::Plan;
use holonome_integrate::scheme::map::{
    Between, Blocks, Carry, Outputs, StepFrom, StepMap, Workspace,
};
use holonome_integrate::state::Cost;
use holonome_integrate::system::System;
use holonome_model::derived::Derived;
use holonome_model::treatment::heat_bath::heat;
use std::collections::BTreeMap;
use std::ops::Range;

const CHAIN: &str = "size n = 7\nparameter L = sqrt(5)\ncoordinate r[i in 1..n] : R^2 = (i, -2*i)\nmomentum p of r\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)\nconstraint anchor : dot(r[1], r[1]) = L^2\n\
    constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = L^2\n";

/// Unequal masses that are parameters of every member, and numbers of a member in a force.
const MASSES: &str = "size n = 6\nparameter m[i in 1..n] = 1 + i/3\ncoordinate r[i in 1..n] : R^3 = (i, 0, 0)\n\
    momentum p[i] of r = (0, 0.1*i, 0.3)\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i]) + m[i]*r[i].y + 0.01*i*r[i].z^2)\n\
    constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 1\n";

const RING: &str = "size n = 8\nparameter side = 2*sin(pi/n)\n\
    coordinate r[i in 1..n] : R^2 = (cos(2*pi*i/n), sin(2*pi*i/n))\n\
    momentum p[i] of r = (0.3 - sin(2*pi*i/n), cos(2*pi*i/n))\nlet next(i) = if(i == n, r[1], r[i + 1])\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].x^3/3)\n\
    constraint rod[i in 1..n] : dot(next(i) - r[i], next(i) - r[i]) = side^2\n";

/// A vector of constraints for each member, one of them moving, and a kinetic energy that is not
/// separable.
const RAILS: &str = "size n = 5\ncoordinate r[i in 1..n] : R^3 = (i, 0, 1)\nmomentum p[i] of r = (0.2*i, 0, 0)\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/2*(1 + 0.1*r[i].x^2)) + sum(i in 2..n : dot(r[i], r[i-1]))\n\
    constraint rail[i in 1..n] : (r[i].y - 0.1*t^2*i, r[i].z^2) = (0, 1)\n";

/// No constraints, and a potential that couples neighbours.
const LATTICE: &str = "size n = 9\ncoordinate q[i in 1..n] = 0.3*sin(i)\nmomentum p of q = 0.2*cos(2*i)\n\
    hamiltonian sum(i in 1..n : p[i]^2/2) + sum(i in 2..n : 1 - cos(q[i] - q[i-1])) + sum(i in 1..n : q[i]^4/4)\n";

/// No constraints, and implicit for every method.
const MIXED: &str = "size n = 6\ncoordinate q[i in 1..n] = 0.3*sin(i)\nmomentum p of q = 0.2*cos(2*i)\n\
    hamiltonian sum(i in 1..n : p[i]^2/2*(1 + q[i]^2)) + sum(i in 2..n : p[i]*p[i-1]*cos(q[i] - q[i-1])/4)\n";

/// Softened gravity between all pairs but neighbours, unlike masses.
const CLUSTER: &str = "size n = 13\nparameter m[i in 1..n] = 1/2 + i/n\n\
    coordinate q[i in 1..n] : R^3 = (cos(2.4*i)*i/4, sin(2.4*i)*i/4, 0.3*sin(7*i))\n\
    momentum p[i] of q = m[i]*(-0.5*sin(2.4*i), 0.5*cos(2.4*i), 0)\n\
    let d2(i, j) = dot(q[i] - q[j], q[i] - q[j]) + 0.3^2\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i])) - \
    sum(i in 1..n, j in i+1..n if j != i + 1 : 0.1*m[i]*m[j]/sqrt(d2(i, j)))\n";

/// Two families and a single charge, with cross pairs in a driven field, and with numbers of their
/// own for each pair.
const IONS: &str = "size a = 10\nsize b = 9\n\
    coordinate x[i in 1..a] : R^2 = (i, 0.2*sin(i))\nmomentum u of x = (0.1, 0)\n\
    coordinate y[i in 1..b] : R^2 = (0.5*i, 3 + 0.1*i)\nmomentum v of y = (0, -0.2)\n\
    coordinate z : R^2 = (4, 1.5)\nmomentum w of z = (0.3, 0.1)\n\
    let coulomb(d) = 1/sqrt(dot(d, d) + 0.1)\n\
    hamiltonian sum(i in 1..a : dot(u[i], u[i])/2) + sum(i in 1..b : dot(v[i], v[i])/4) + dot(w, w)/6 + \
    sum(i in 1..a, j in 1..b : (1 + 0.1*cos(3*t))*(i*j/30)*coulomb(x[i] - y[j])) + \
    sum(i in 1..a, j in 1..i-1 : coulomb(x[i] - x[j])/i) + sum(i in 1..b, j in b+1..a : coulomb(x[j] - y[i])) + \
    sum(i in 1..b : coulomb(y[i] - z)/2) + sum(i in 1..3, j in 4..3 : dot(y[i], y[j]))\n";

/// Pairs that are near each other, in a trap.
const NEAR: &str = "size n = 16\nparameter far = 1.8\n\
    coordinate r[i in 1..n] : R^2 = (0.9*i + 0.1*sin(3*i), 1.3*i + 0.2*cos(5*i))\nmomentum p[i] of r = (0.3*sin(i), 0.2)\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + 0.1*r[i].y^2) + \
    sum(i in 1..n, j in i+1..n if norm(r[i] - r[j]) < far : (far^2 - dot(r[i] - r[j], r[i] - r[j]))^3/50)\n";

/// Pairs of any bodies of two families.
const MIXTURE: &str = "size a = 8\nsize b = 7\n\
    coordinate x[i in 1..a] = i\nmomentum u of x = 0.1\ncoordinate y[i in 1..b] = i + 0.3\nmomentum v of y = -0.2\n\
    let place(i) = if(i <= a, x[i], y[i - a])\n\
    hamiltonian sum(i in 1..a : u[i]^2/2) + sum(i in 1..b : v[i]^2/4) - \
    sum(i in 1..a+b, j in i+1..a+b : 1/sqrt((place(i) - place(j))^2 + 1))\n";

/// Rods between bodies of unlike masses, all of which attract each other.
const DUMBBELLS: &str = "size n = 9\nparameter m[i in 1..n] = 1 + i/n\n\
    coordinate x[i in 1..n] : R^3 = (cos(2.4*i)*i, sin(2.4*i)*i, 0.1*i)\nmomentum u of x = (0.1, 0.2, 0)\n\
    coordinate y[i in 1..n] : R^3 = (cos(2.4*i)*i, sin(2.4*i)*i + 0.6, 0.1*i + 0.8)\nmomentum v[i] of y = (0.2*sin(i), 0.2/m[i], 0)\n\
    let mass(d, a) = a/sqrt(dot(d, d) + 0.1)\n\
    hamiltonian sum(i in 1..n : dot(u[i], u[i])/(2*m[i]) + dot(v[i], v[i])/2) - \
    sum(i in 1..n, j in i+1..n : mass(x[i] - x[j], m[i]*m[j]) + mass(y[i] - y[j], 1)) - \
    sum(i in 1..n, j in 1..n if i != j : mass(x[i] - y[j], m[i]))\n\
    constraint rod[i in 1..n] : dot(x[i] - y[i], x[i] - y[i]) = 1\n";

fn problem(text: &str, settings: &Settings) -> Problem {
    Problem::from_text("model", text, &BTreeMap::new(), settings).unwrap_or_else(|e| panic!("{e}"))
}

/// State after some steps of a map, the multipliers there, and the cost.
fn run(map: &dyn StepMap, x: &[f64], h: f64, steps: usize) -> (Vec<f64>, Vec<f64>, Cost) {
    let (x, lambda, cost, _) = monitored_run(map, x, h, steps);
    (x, lambda, cost)
}

/// Result of [`run`], and the deviations of the monitored quantities at the end.
fn monitored_run(
    map: &dyn StepMap,
    x: &[f64],
    h: f64,
    steps: usize,
) -> (Vec<f64>, Vec<f64>, Cost, Vec<f64>) {
    let (mut x, mut x1) = (x.to_vec(), x.to_vec());
    let (mut memory, mut work) = (vec![0.0; map.memory_len()], vec![f64::NAN; map.work_len()]);
    let mut cost = Cost::default();
    for k in 0..steps {
        let (memory, cost, work) = (&mut memory, &mut cost, &mut work);
        let workspace = &mut Workspace { kept: &mut [], memory, cost, work };
        map.fixed_step(StepFrom { t: k as f64 * h, h, x: &x }, &mut x1, workspace)
            .unwrap_or_else(|failure| panic!("step {k}: {failure:?}"));
        std::mem::swap(&mut x, &mut x1);
    }
    let mut lambda = vec![0.0; map.multiplier_count()];
    if !lambda.is_empty() {
        let at = Between { t: steps as f64 * h, before: h, after: h, x: &x, memory: &memory };
        map.multipliers(at, &mut lambda, &mut work);
    }
    let mut deviations = vec![0.0; map.monitored_count()];
    map.deviations(&memory, &mut deviations);
    (x, lambda, cost, deviations)
}

fn compare(text: &str, names: &[&str], h: f64) {
    compare_with(text, &Settings::default(), names, h);
}

fn compare_with(text: &str, settings: &Settings, names: &[&str], h: f64) {
    compare_model(&problem(text, settings).model, names, h);
}

/// Comparison in a heat bath, whose noise cannot be run backwards.
fn compare_heated(text: &str, names: &[&str], h: f64, fixman: bool) {
    let heated = heat(&problem(text, &Settings::default()).model, (0.7, 0.5), 3, fixman).unwrap();
    compare_model(&Derived::new(heated), names, h);
}

fn compare_model(model: &Derived, names: &[&str], h: f64) {
    for name in names {
        let method: Method = name.parse().unwrap();
        let mechanics = model.mechanics().unwrap();
        let settings = MethodSettings { in_lanes: false, newton_tolerance: None, beta: 0.3 };
        let (unrolled, _) =
            unrolled_program(&method, mechanics, model, None, (&settings, true)).unwrap();
        let columns = templated_program(&method, model, &settings, true).unwrap();
        assert_eq!(columns.iterates(), unrolled.iterates(), "{name}");
        let (expected, multipliers, _) = run(&unrolled, &model.initial, h, 12);
        let (found, others, cost) = run(&columns, &model.initial, h, 12);
        // Each of the twelve steps rounds numbers of a size up to 20 some tens of times.
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 2e-13, "{name}: {found} {expected}");
        }
        // Multipliers are second differences over h.
        assert_eq!(others.len(), multipliers.len());
        for (found, expected) in others.iter().zip(&multipliers) {
            assert!((found - expected).abs() < 1e-13 / (h * h), "{name}: {found} {expected}");
        }
        assert!(cost.gradient > 0 || cost.field > 0, "{name}");
        // Backwards, too, and with parameters bound anew.
        let again = columns.rebound(&model.parameter_values);
        assert_eq!(run(&again, &model.initial, h, 12).0, found, "{name}");
        blocks_agree(&method, columns.rebound(&model.parameter_values), model, h);
        if model.heat_bath.is_some() {
            continue;
        }
        let (back, ..) = run(&columns, &expected, -h, 1);
        let (back_expected, ..) = run(&unrolled, &expected, -h, 1);
        assert!(
            back.iter().zip(back_expected).all(|(a, b)| (a - b).abs() < 2e-13),
            "{name} backwards"
        );
        // Energies are sums of some tens of numbers of a size up to 20.
        let energy = |(e, f): (&f64, &f64)| assert!((e - f).abs() < 2e-12, "{name}: {e} {f}");
        let (a, b) = (
            unrolled.monitored_energy((0.0, h), &expected),
            columns.monitored_energy((0.0, h), &expected),
        );
        assert_eq!(a.is_some(), b.is_some(), "{name}");
        a.iter().zip(&b).for_each(energy);
        let (a, b) = (
            monitored_run(&unrolled, &model.initial, h, 12).3,
            monitored_run(&again, &model.initial, h, 12).3,
        );
        assert_eq!(a.len(), b.len(), "{name}");
        assert!(a.iter().all(|off| *off > 1e-9), "{name}: {a:?}");
        a.iter().zip(&b).for_each(energy);
        if method.scheme.needs.has_beta() {
            let places = [
                unrolled_places(&method, mechanics, model, h, &settings).unwrap(),
                templated_places(&method, model, h, &settings).unwrap(),
            ];
            let [unrolled, columns] = places.map(|places| {
                let places = places?.rebound(&model.parameter_values);
                let mut x = model.initial.clone();
                places.put(0.3, &mut x).unwrap();
                Some(x)
            });
            assert_eq!(
                (columns.is_none(), unrolled.is_none()),
                (name.starts_with("newmark"), columns.is_none())
            );
            let off =
                columns.iter().flatten().zip(unrolled.iter().flatten()).map(|(a, b)| (a - b).abs());
            assert!(
                off.fold(0.0, f64::max) < 2e-13 && columns != Some(model.initial.clone()),
                "{name}: {columns:?}"
            );
        }
    }
}

#[test]
fn constrained_models() {
    let methods = [
        "rattle",
        "shake",
        "rattle:stormer-verlet-b",
        "suzuki4(rattle)",
        "rattle:symplectic-euler-a",
    ];
    compare(CHAIN, &methods, 0.02);
    compare(MASSES, &methods, 0.02);
    compare(RING, &methods, 0.02);
}

#[test]
fn constraints_that_move_and_kinetic_energies_that_depend_on_positions() {
    compare(RAILS, &["rattle", "shake", "yoshida4(rattle)"], 0.02);
}

/// Step of a user, which asks for functions that no structure-preserving method asks for: X over a
/// time that depends on the energy.
fn paced_euler(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (energy, one) = (space.energy(t, x), space.constant(1.0));
    let share = space.scaled(0.01, energy);
    let pace = space.sum(one, share);
    let time = space.product(h, pace);
    let field = extended_field(space, t, x, false);
    space.moved(x, time, &field)
}

static PACED: Scheme = Scheme {
    name: "paced-euler",
    other_names: &[],
    needs: Needs::Coisotropic,
    description: "",
    citation: "",
    file: "",
    step: Step::Map(
        paced_euler,
        SchemeFacts { order: 1, symmetric: false, symplectic: false, explicit: true },
    ),
};

#[test]
fn steps_of_users() {
    register(&PACED).unwrap();
    compare(CHAIN, &["paced-euler"], 0.02);
    compare(RAILS, &["paced-euler"], 0.02);
}

#[test]
fn models_without_constraints() {
    let methods = [
        "stormer-verlet-a",
        "stormer-verlet-b",
        "symplectic-euler-a",
        "symplectic-euler-b",
        "yoshida4(stormer-verlet-a)",
    ];
    compare(LATTICE, &methods, 0.05);
    let implicit =
        ["implicit-midpoint", "gauss4", "gauss6", "stormer-verlet-a", "symplectic-euler-b"];
    compare(LATTICE, &implicit[..3], 0.05);
    compare(MIXED, &implicit, 0.05);
}

#[test]
fn sums_over_pairs() {
    let methods = [
        "stormer-verlet-a",
        "stormer-verlet-b",
        "symplectic-euler-a",
        "yoshida4(stormer-verlet-a)",
    ];
    let implicit = ["implicit-midpoint", "gauss4"];
    for text in [CLUSTER, IONS] {
        compare(text, &methods, 0.05);
        compare(text, &implicit, 0.05);
    }
    // Forces of pairs are opposite: total momentum and angular momentum stay.
    let problem = problem(CLUSTER, &Settings::default());
    let (model, settings) =
        (&problem.model, MethodSettings { in_lanes: false, newton_tolerance: None, beta: 0.3 });
    let program =
        templated_program(&"stormer-verlet-a".parse().unwrap(), model, &settings, true).unwrap();
    let (x, ..) = run(&program, &model.initial, 0.05, 100);
    let kept = |x: &[f64]| -> Vec<f64> {
        let (q, p) = x.split_at(x.len() / 2);
        let spin = |(q, p): (&[f64], &[f64])| q[0] * p[1] - q[1] * p[0];
        let total = (0..3).map(|c| p.iter().skip(c).step_by(3).sum());
        total.chain([q.chunks(3).zip(p.chunks(3)).map(spin).sum()]).collect()
    };
    let moved = x.iter().zip(&model.initial).fold(0.0f64, |far, (a, b)| far.max((a - b).abs()));
    assert!(moved > 0.5, "{moved}");
    for (after, before) in kept(&x).iter().zip(kept(&model.initial)) {
        assert!((after - before).abs() < 1e-12, "{after} {before}");
    }
    compare(&IONS.replace("*cos(3*t)", ""), &["zhang-skeel", "newmark"], 0.1);
    compare(DUMBBELLS, &["rattle", "rattle:stormer-verlet-b", "suzuki4(rattle)"], 0.02);
}

/// Number of sums of H that come with the forces of a step.
fn sums_with_forces(text: &str, method: &str) -> usize {
    let settings = MethodSettings { in_lanes: false, newton_tolerance: None, beta: 0.3 };
    let program = templated_program(
        &method.parse().unwrap(),
        &problem(text, &Settings::default()).model,
        &settings,
        true,
    );
    program.unwrap().sums.len()
}

#[test]
fn energies_of_pairs_come_with_their_forces() {
    let steady = &IONS.replace("*cos(3*t)", "");
    for (text, method, sums) in [
        (CLUSTER, "stormer-verlet-a", 1),
        (CLUSTER, "yoshida4(stormer-verlet-a)", 1),
        (DUMBBELLS, "rattle", 2),
        (NEAR, "stormer-verlet-a", 1),
        (steady, "stormer-verlet-a", 4),
        // Its forces act in the middle.
        (CLUSTER, "stormer-verlet-b", 0),
        // A driven energy is not monitored.
        (IONS, "stormer-verlet-a", 0),
        // The forces do not read everything that the energy reads.
        (&CLUSTER.replace("0.1*m[i]*m[j]/", "0.01*p[i].x + 0.1*m[i]*m[j]/"), "stormer-verlet-a", 0),
        // Pairs within either family, and between them.
        (MIXTURE, "stormer-verlet-a", 3),
    ] {
        assert_eq!(sums_with_forces(text, method), sums, "{text} by {method}");
        compare(text, &[method], 0.02);
    }
}

#[test]
fn stiff_potentials() {
    let methods = [
        "zhang-skeel",
        "zhang-skeel-simplified",
        "newmark",
        "newmark-one-step",
        "pushforward-newmark",
        "yoshida4(zhang-skeel)",
    ];
    compare(LATTICE, &methods, 0.2);
    // Unequal masses, in three dimensions, in a driven field.
    let springs = MASSES
        .replace("constraint link[i in 2..n] :", "let rods = 50*sum(i in 2..n : (")
        .replace(" = 1\n", " - 1)^2)\n");
    let springs = springs.replace("0.01*i*r[i].z^2)", "0.01*i*r[i].z^2*cos(t)) + rods");
    compare(&springs, &methods, 0.1);
    let stiff = Settings { stiff: Some("rods".into()), ..Settings::default() };
    compare_with(&springs, &stiff, &["zhang-skeel-stiff"], 0.1);
    compare_with(
        &springs.replace("*cos(t)", ""),
        &stiff,
        &["zhang-skeel-stiff", "zhang-skeel"],
        0.1,
    );
    // A family without a force.
    let free = springs.replace("*cos(t)", "").replace(
        "hamiltonian ",
        "coordinate s[i in 1..3] = 1\nmomentum u of s = 0.1*i\nhamiltonian sum(i in 1..3 : u[i]^2/2) + ",
    );
    compare(&free, &methods, 0.1);
}

/// Check that steps in blocks are those made one by one, bit for bit and with the same deviations,
/// wherever blocks and outputs end.
fn blocks_agree(method: &Method, mut program: LoweredProgram<Templated>, model: &Derived, h: f64) {
    const STEPS: u64 = 12;
    let plan = Plan::fixed(*method, 0.0, STEPS as f64 * h, h).unwrap();
    let field = model.row_field();
    let system =
        CompiledSystem::of_rows(&field, &StateVectors::of(model), &model.parameter_values, None);
    let invariants = system.shared_invariants();
    let mut target = vec![0.0; invariants.count];
    let (n, mut values, mut work) =
        (model.initial.len(), target.clone(), vec![f64::NAN; system.work_len()]);
    system.invariant_values(0.0, &model.initial, &mut target, &mut work);
    target[..invariants.constraints].fill(0.0);
    let start = Start {
        parameters: &model.parameter_values,
        targets: &target[invariants.constraints..],
        x: &[],
    };
    program.repeat((|| model.row_invariants(), invariants), &plan, &start);
    program.rebind_for(&start);
    let Some(blocks) = program.blocks() else {
        assert!(method.substeps().len() > 1, "{method} makes no blocks");
        return;
    };
    let (mut x, mut memory, mut cost) =
        (model.initial.clone(), vec![0.0; program.memory_len()], Cost::default());
    let mut work = vec![f64::NAN; program.work_len().max(work.len())];
    let workspace =
        &mut Workspace { kept: &mut [], memory: &mut memory, cost: &mut cost, work: &mut work };
    program.begin(StepFrom { t: 0.0, h, x: &x }, workspace).unwrap();
    cost = Cost::default();
    let (begun, groups) = (memory.clone(), invariants.groups.len());
    let mut largest = vec![0.0f64; groups + program.monitored_count()];
    let (mut states, mut memories) = (vec![x.clone()], vec![memory.clone()]);
    for k in 0..STEPS {
        let (t, mut off) = ((k as f64) * h, vec![0.0; largest.len()]);
        system.monitor(t, &target, &x, &mut values, &mut off[..groups], &mut work);
        program.deviations(&memory, &mut off[groups..]);
        largest.iter_mut().zip(off).for_each(|(largest, off)| *largest = largest.max(off));
        let before = x.clone();
        let workspace =
            &mut Workspace { kept: &mut [], memory: &mut memory, cost: &mut cost, work: &mut work };
        program.fixed_step(StepFrom { t, h, x: &before }, &mut x, workspace).unwrap();
        states.push(x.clone());
        memories.push(memory.clone());
    }
    for ends in [vec![STEPS], vec![1, 5, STEPS]] {
        let (mut x, mut memory, mut first, mut most) =
            (model.initial.clone(), begun.clone(), 0, vec![0.0; largest.len()]);
        let mut spent = Cost::default();
        for end in ends {
            let after: Vec<u64> =
                [0, 3, 4, 5, 11, STEPS].into_iter().filter(|k| (first..=end).contains(k)).collect();
            let (mut kept, mut kept_memory) =
                (vec![0.0; after.len() * n], vec![0.0; after.len() * memory.len()]);
            let outputs = Outputs {
                after: &after,
                x: &mut kept,
                stride: n,
                memory: &mut kept_memory,
                starts: &mut [],
            };
            let mut part = vec![f64::NAN; largest.len()];
            let (memory, cost) = (&mut memory, &mut spent);
            let (innovation, sides) = (&mut 0.0, &mut []);
            let carry = Carry { memory, scales: &mut [], innovation, sides, cost, outputs };
            work.fill(f64::NAN);
            assert!(
                blocks.steps(first, end - first, &mut x, carry, &mut part, &mut work),
                "{method}"
            );
            most.iter_mut()
                .zip(part)
                .for_each(|(most, part): (&mut f64, f64)| *most = most.max(part));
            for (k, &after) in after.iter().enumerate() {
                assert_eq!(
                    kept[k * n..(k + 1) * n],
                    states[after as usize],
                    "{method} after {after}"
                );
                let len = memory.len();
                assert_eq!(
                    kept_memory[k * len..(k + 1) * len],
                    memories[after as usize],
                    "{method} after {after}"
                );
            }
            first = end;
        }
        assert_eq!((&x, &memory), (&states[STEPS as usize], &memories[STEPS as usize]), "{method}");
        assert_eq!(most, largest, "{method}");
        assert_eq!(spent, cost, "{method}");
    }
}

/// Compare 100 steps in a loop with single steps, from where 100 single steps have led.
fn loop_agrees(text: &str, method: &str, h: f64) {
    const STEPS: u64 = 100;
    let options = RunOptions {
        method: method.parse().unwrap(),
        step: StepSize::Fixed(h),
        until: 2.0 * STEPS as f64 * h,
        samples: Some(2),
        ..RunOptions::default()
    };
    let simulation = prepare(problem(text, &Settings::default()), options)
        .unwrap_or_else(|e| panic!("{method}: {e}"));
    let Some(Program::Unrolled(program, _)) = &simulation.trajectory.program else {
        panic!("{method} is not unrolled")
    };
    let many = program.repeated.as_ref().unwrap_or_else(|| panic!("{method} makes no loop"));
    let largest_system = program.solves().map(|solve| solve.rows.len()).max();
    assert!(largest_system > Some(crate::policy::FEW_ROWS), "{method}: {largest_system:?}");
    let (mut x, mut memory) =
        (simulation.problem.model.initial.clone(), vec![0.0; program.memory_len()]);
    let (mut cost, mut work) = (Cost::default(), vec![f64::NAN; program.work_len()]);
    let mut single = |steps: Range<u64>, x: &mut Vec<f64>, memory: &mut [f64]| {
        for k in steps {
            let before = x.clone();
            let workspace =
                &mut Workspace { kept: &mut [], memory, cost: &mut cost, work: &mut work };
            program.fixed_step(StepFrom { t: k as f64 * h, h, x: &before }, x, workspace).unwrap();
        }
    };
    single(0..STEPS, &mut x, &mut memory);
    let (mut looped, mut carried) = (x.clone(), memory.clone());
    single(STEPS..2 * STEPS, &mut x, &mut memory);
    let mut largest = vec![0.0; many.rows().largest.len()];
    let mut work = vec![f64::NAN; many.work_len()];
    let (innovation, outputs) = (&mut 0.0, Outputs::default());
    let carry = Carry {
        memory: &mut carried,
        scales: &mut [],
        sides: &mut [],
        innovation,
        cost: &mut Cost::default(),
        outputs,
    };
    assert!(many.steps(STEPS, STEPS, &mut looped, carry, &mut largest, &mut work), "{method}");
    // A hundred steps round numbers of a size up to 100 some tens of times each, too few for chaos
    // to show.
    for (found, expected) in looped.iter().zip(&x) {
        assert!((found - expected).abs() < 1e-10, "{method}: {found} {expected}");
    }
}

#[test]
fn loops_with_large_systems_make_the_steps_that_single_ones_are() {
    for method in ["rattle", "shake"] {
        loop_agrees(&CHAIN.replace("n = 7", "n = 37"), method, 0.002);
        loop_agrees(&RING.replace("n = 8", "n = 18"), method, 0.002);
    }
    for method in ["implicit-midpoint", "zhang-skeel", "rattle:gauss2"] {
        let text = if method.starts_with("rattle") { MASSES } else { LATTICE };
        loop_agrees(&text.replace("n = 9", "n = 23").replace("n = 6", "n = 19"), method, 0.02);
    }
    // A tree of links is eliminated from its ends.
    let tree = CHAIN
        .replace("n = 7", "n = 21")
        .replace("r[i-1]", "r[if(i > 11, 11, i - 1)]")
        .replace("(i, -2*i)", "(i, 0)");
    let tree = tree
        .replace("= L^2", "= if(i > 11, i - 11, 1)^2")
        .replace("r[1]) = if(i > 11, i - 11, 1)^2", "r[1]) = 1");
    loop_agrees(&tree, "rattle", 0.002);
}

#[test]
fn heat_baths() {
    for text in [CHAIN, DUMBBELLS] {
        compare_heated(text, &["rattle", "shake", "g-baoab", "suzuki4(rattle)"], 0.02, false);
    }
    compare_heated(DUMBBELLS, &["rattle", "g-baoab"], 0.02, true);
    compare_heated(CLUSTER, &["stormer-verlet-b", "zhang-skeel", "g-baoab"], 0.05, false);
}

#[test]
fn what_is_not_natural_is_refused() {
    let problem = problem(MIXED, &Settings::default());
    let settings = MethodSettings { in_lanes: false, newton_tolerance: None, beta: 0.3 };
    let refused = |name: &str| {
        templated_program(&name.parse().unwrap(), &problem.model, &settings, true).err().unwrap()
    };
    assert!(refused("zhang-skeel").contains("varies with position"), "{}", refused("zhang-skeel"));
    assert!(
        refused("zhang-skeel-stiff").contains("stiff = NAME"),
        "{}",
        refused("zhang-skeel-stiff")
    );
}
