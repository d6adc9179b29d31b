//! Tests of templated models against the same models unrolled, and against themselves with other
//! numbers of lanes.

use super::{CompiledSystem, FieldJacobian, Parametric, Quantities, StateVectors, compile_rows};
use crate::backend::backend;
use crate::step::extension;
use crate::{Problem, Settings};
use holonome_integrate::system::System;
use holonome_jit::{BlockInterpreter, Isa, MachineCode};
use holonome_model::derived::Derived;
use holonome_model::graph::Graph;
use holonome_model::graph::interpret::{Backend, Interpreter, RowPlaces};
use holonome_model::graph::tape::Tape;
use holonome_model::rows::{BLOCK, RowKernel, RowProgram};
use holonome_model::treatment::Field;
use holonome_model::treatment::feedback::gauss_newton;
use holonome_model::treatment::structure::ambient_points;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Models that both forms can run, with names for messages.
const MODELS: [(&str, &str); 16] = [
    (
        "Fermi-Pasta-Ulam chain",
        "size n = 150\nparameter alpha = 0.25\nparameter beta = 0.1\ncoordinate q[i in 1..n] = sin(i)\nmomentum p of q = cos(2*i)\nlet site(i) = if(i < 1 or i > n, 0, q[i])\nlet d(i) = site(i + 1) - site(i)\nhamiltonian sum(i in 1..n : p[i]^2/2) + sum(i in 0..n : d(i)^2/2 + alpha*d(i)^3/3 + beta*d(i)^4/4)\n",
    ),
    (
        "ring with momentum and masses",
        "size n = 131\nparameter m[i in 1..n] = 1 + 0.5*sin(i)\ncoordinate q[i in 1..n] = sin(i)\nmomentum p of q = cos(2*i)\nlet next(i) = if(i == n, q[1], q[i + 1])\nhamiltonian sum(i in 1..n : p[i]^2/(2*m[i])) + sum(i in 1..n : 1 - cos(next(i) - q[i]))\nintegral P = sum(i in 1..n : p[i])\n",
    ),
    (
        "Henon-Heiles lattice",
        "size n = 80\ncoordinate r[i in 1..n] : R^2 = (0.1*sin(i), 0.1*cos(3*i))\nmomentum p of r = (0.1*cos(i), 0.05)\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + dot(r[i], r[i])/2 + r[i].x^2*r[i].y - r[i].y^3/3) + 0.1*sum(i in 1..n-1 : dot(r[i] - r[i+1], r[i] - r[i+1])/2)\n",
    ),
    (
        "phi^4 lattice in two dimensions",
        "size n = 13\nparameter m2 = -0.7\nparameter g = 0.4\ncoordinate f[i in 1..n, j in 1..n] = sin(i + 2*j)\nmomentum p of f = cos(3*i*j)\nhamiltonian sum(i in 1..n, j in 1..n : p[i,j]^2/2 + m2*f[i,j]^2/2 + g*f[i,j]^4/4) + sum(i in 1..n-1, j in 1..n : (f[i+1,j] - f[i,j])^2/2) + sum(i in 1..n, j in 1..n-1 : (f[i,j+1] - f[i,j])^2/2)\n",
    ),
    (
        "grid of springs",
        "size n = 9\nparameter k = 3\ncoordinate r[i in 1..n, j in 1..n] : R^3 = (i + 0.1*sin(i*j), j, 0.2*cos(i + j))\nmomentum p of r = (sin(j), 0, cos(i))\nlet stretch(d) = (norm(d) - 0.9)^2\nhamiltonian sum(i in 1..n, j in 1..n : dot(p[i,j], p[i,j])/2 + r[i,j].z) + k/2*(sum(i in 1..n-1, j in 1..n : stretch(r[i+1,j] - r[i,j])) + sum(i in 1..n, j in 1..n-1 : stretch(r[i,j+1] - r[i,j])))\n",
    ),
    (
        "gravity between pairs",
        "size N = 17\nparameter m[i in 1..N] = 1 + i/N\ncoordinate r[i in 1..N] : R^3 = (3*sin(i), 4*cos(2*i), 5*sin(3*i))\nmomentum p of r = (0.1*cos(i), 0.2*sin(i), 0)\nhamiltonian sum(i in 1..N : dot(p[i], p[i])/(2*m[i])) - sum(i in 1..N, j in i+1..N : m[i]*m[j]/norm(r[i] - r[j]))\nintegral P = sum(i in 1..N : p[i])\nintegral L = sum(i in 1..N : cross(r[i], p[i]))\n",
    ),
    (
        "softened gravity between pairs that are no neighbours",
        "size n = 30\nparameter m[i in 1..n] = 1 + 0.5*sin(i)\ncoordinate q[i in 1..n] : R^3 = (cos(2.4*i)*i, sin(2.4*i)*i, sin(7*i))\nmomentum p of q = (0.1*cos(i), 0.2*sin(i), 0)\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i])) - sum(i in 1..n, j in 1..n if j > i + 1 : m[i]*m[j]/sqrt(dot(q[i] - q[j], q[i] - q[j]) + 0.01))\nintegral P = sum(i in 1..n : p[i])\n",
    ),
    (
        "springs between few pairs, whose strength moves",
        "size n = 9\nparameter m[i in 1..n] = 1 + 0.5*sin(i)\ncoordinate c = 1.3\nmomentum g of c = 0.2\ncoordinate q[i in 1..n] : R^2 = (cos(2.4*i)*i, sin(2.4*i)*i)\nmomentum p of q = (0.1*cos(i), 0.2*sin(i))\nhamiltonian g^2/2 + sum(i in 1..n : dot(p[i], p[i])/(2*m[i])) + sum(i in 1..n, j in i+1..n : m[i]*c^2*dot(q[i] - q[j], q[i] - q[j])/(m[j] + 1))\nintegral P = sum(i in 1..n : p[i])\n",
    ),
    (
        "two families with numbers of every pair",
        "size a = 21\nsize b = 13\ncoordinate x[i in 1..a] : R^2 = (i, 0.2*sin(i))\nmomentum u of x = (0.1, 0)\ncoordinate y[j in 1..b] : R^2 = (2*j, 3 + 0.1*j)\nmomentum v of y = (0, -0.2)\nhamiltonian sum(i in 1..a : dot(u[i], u[i])/2) + sum(j in 1..b : dot(v[j], v[j])/4) + sum(i in 1..a, j in 1..b : cos(i*j)*(i + j)/sqrt(dot(x[i] - y[j], x[i] - y[j]))) + sum(i in 1..a, j in 1..a if j != i : 1/(dot(x[i] - x[j], x[i] - x[j]) + i))\n",
    ),
    (
        "a net in which everything feeds everything",
        "size n = 23\nparameter w[i in 1..n] = cos(3*i)\nstate x[i in 1..n] = sin(i)\nstate s : R^2 = (1, 2)\nx[i]' = sum(j in 1..n : w[j]*x[j]*(x[i] - 0.3*x[j]^2)/n) + s.x\ns' = sum(i in 1..n : (x[i], s.x*x[i]^2/n))\nintegral none[k in 1..2] = (sum(i in 1..n : x[i]^k), s.x)\n",
    ),
    (
        "driven chain, not separable",
        "size n = 100\ncoordinate q[i in 1..n] = sin(i)\nmomentum p of q = cos(i)\nhamiltonian sum(i in 1..n : (1 + q[i]^2)*p[i]^2/2 - q[i]*cos(0.7*t + i)) + sum(i in 1..n-1 : (q[i+1] - q[i])^2/2)\nintegral none = sum(i in 1..n : q[i]*t)\n",
    ),
    (
        "vector field",
        "size n = 90\nparameter F = 8\nstate x[i in 1..n] = sin(i)\nlet at(i) = if(i < 1, x[i + n], if(i > n, x[i - n], x[i]))\nx[i]' = (at(i + 1) - at(i - 2))*at(i - 1) - x[i] + F*cos(t)\nintegral none[k in 1..3] = (sum(i in 1..n : x[i]^k), x[k])\n",
    ),
    (
        "chain of rods",
        "size n = 40\ncoordinate r[i in 1..n] : R^2 = (i, -2*i)\nmomentum p of r\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)\nconstraint anchor : dot(r[1], r[1]) = 5\nconstraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 5\nintegral P = sum(i in 1..n : p[i].x)\n",
    ),
    (
        "tree of rods with masses",
        "size n = 31\nparameter m[i in 1..n] = 1 + 0.5*sin(i)\ncoordinate r[i in 1..n] : R^3 = (i, 0.3*i, 0)\nmomentum p of r\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i])*(1 + 0.1*r[i].z^2) + m[i]*r[i].z)\nconstraint rod[i in 1..15, s in 0..1] : dot(r[2*i + s] - r[i], r[2*i + s] - r[i]) = (i + s)^2*1.09\n",
    ),
    (
        "attitudes on a line",
        "size n = 12\ncoordinate R[i in 1..n] : R^(3,3) = identity(3)\nmomentum P of R\nhamiltonian sum(i in 1..n : dot(P[i]*(0, 0, 1), P[i]*(0, 0, 1))/2 + dot(P[i]*(1, 0, 0), P[i]*(1, 0, 0))/3 + dot(P[i]*(0, 1, 0), P[i]*(0, 1, 0))/4 + R[i][3,3])\nconstraint orthogonal[i in 1..n] : transpose(R[i])*R[i] = identity(3)\n",
    ),
    (
        "one row of each template",
        "coordinate q : R^2 = (1, 2)\nmomentum p of q = (0.5, 0.25)\nhamiltonian dot(p, p)/2 - 1/norm(q)\nintegral J = q.x*p.y - q.y*p.x\n",
    ),
];

fn load(text: &str) -> Derived {
    let problem = Problem::from_text("rows", text, &BTreeMap::new(), &Settings::default());
    problem.unwrap_or_else(|e| panic!("{e}\n{text}")).model
}

/// Extended field of a model with constraints.
fn extended(model: &Derived) -> Option<Box<dyn Quantities>> {
    (!model.constraints.is_empty()).then(|| extension(model, false))
}

fn unrolled(model: &Derived) -> Field {
    model.field().expect("it is small, without constraints").0
}

/// Field, F and DF of a system.
fn evaluated(system: &dyn System, t: f64, x: &[f64]) -> [Vec<f64>; 3] {
    let invariants = system.invariants();
    let mut all =
        [system.dim(), invariants.count, invariants.nonzeros()].map(|len| vec![f64::NAN; len]);
    let mut work = vec![f64::NAN; system.work_len()];
    system.field(t, x, &mut all[0], &mut work);
    system.invariant_values(t, x, &mut all[1], &mut work);
    system.invariant_jacobian(t, x, &mut all[2], &mut work);
    all
}

fn largest(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |m: f64, v| m.max(v.abs()))
}

#[test]
fn rows_agree_with_the_unrolled_model() {
    for ((name, text), near) in MODELS.into_iter().flat_map(|case| [(case, false), (case, true)]) {
        let model = load(text);
        let parameters = &model.parameter_values;
        let field = match unrolled(&model) {
            field if !near => field,
            field => match field.from_the_set() {
                Some(field) => field,
                None if model.constraints.is_empty() => continue,
                None => panic!("{name} has a shorter field near its constraints"),
            },
        };
        let extended = (!model.constraints.is_empty()).then(|| extension(&model, near));
        let unrolled = CompiledSystem::new(
            &Arc::new(field),
            &StateVectors::of(&model),
            parameters,
            true,
            None,
        );
        let rows = CompiledSystem::of_rows(
            &model.row_field(),
            &StateVectors::of(&model),
            parameters,
            extended,
        );
        let (a, b) = (unrolled.invariants(), rows.invariants());
        assert_eq!(a, b, "{name}");
        assert_eq!(b.inconsistency(model.dimension()), None, "{name}");
        for (k, point) in ambient_points(&model, 4, 0x905).iter().enumerate() {
            // Near the start: rods of very different lengths amplify the rounding of a difference.
            let x = &model
                .initial
                .iter()
                .zip(point)
                .map(|(start, x)| start + 0.1 * (x - start))
                .collect::<Vec<_>>();
            let t = 0.4 * k as f64;
            for (a, b) in evaluated(&unrolled, t, x).iter().zip(&evaluated(&rows, t, x)) {
                let size = largest(a).max(model.dimension() as f64);
                for (k, (a, b)) in a.iter().zip(b).enumerate() {
                    assert!((a - b).abs() <= 1e-14 * size, "{name}, {k}: {a} {b}");
                }
            }
            // A central difference, against the derivative of the formulas.
            let v: Vec<f64> = (0..x.len()).map(|i| (i as f64).cos()).collect();
            let [mut a, mut b] = [vec![0.0; x.len()], vec![0.0; x.len()]];
            unrolled.field_derivative(t, x, &v, &mut a, &mut vec![0.0; unrolled.work_len()]);
            rows.field_derivative(t, x, &v, &mut b, &mut vec![0.0; rows.work_len()]);
            let worst = a.iter().zip(&b).fold(0.0f64, |w, (a, b)| w.max((a - b).abs()));
            assert!(worst <= 1e-6 * largest(&a).max(1.0), "{name}: {worst:e} of {}", largest(&a));
        }
    }
}

/// Test the Gauss–Newton form of feedback as a formula, by a linear solve beside a compiled field,
/// and beside rows.
#[test]
fn every_form_pulls_alike() {
    for (name, text) in MODELS {
        let model = load(text);
        let vectors = StateVectors::of(&model);
        let (field, parameters) = (unrolled(&model), &model.parameter_values);
        // Near the start, where constraints and H depend on each other in some models.
        let point = &ambient_points(&model, 1, 0x905)[0];
        let x = &model
            .initial
            .iter()
            .zip(point)
            .map(|(start, x)| start + 0.1 * (x - start))
            .collect::<Vec<_>>();
        let unrolled =
            CompiledSystem::new(&Arc::new(field.clone()), &vectors, parameters, true, None);
        let [_, start, _] = evaluated(&unrolled, 0.0, x);
        // Off the level set by a thousandth and more, in a metric that is far from the Euclidean
        // one.
        let targets: Vec<f64> =
            start[field.constraints..].iter().map(|f| f * 0.999 + 1e-3).collect();
        let weights: Vec<f64> =
            (0..vectors.vectors.count()).map(|b| 4f64.powi((b % 5) as i32 - 2)).collect();
        let all = [&parameters[..], &targets, &[3.0], &weights].concat();
        let rows =
            CompiledSystem::of_rows(&model.row_field(), &vectors, parameters, extended(&model));
        let free = evaluated(&unrolled, 0.1, x)[0].clone();
        let unrolled = unrolled.rebound(&all).with_pull(&vectors, parameters.len(), &all);
        let rows = rows.rebound(&all).with_pull(&vectors, parameters.len(), &all);
        let mut systems: Vec<(&str, Box<dyn System>)> =
            vec![("solve", Box::new(unrolled)), ("rows", Box::new(rows))];
        // Unrolled formulas of a pull are for few rows.
        if field.invariants.len() <= 24 {
            let (treated, _) = gauss_newton(&field, &vectors.vector_of());
            systems.push((
                "formula",
                Box::new(CompiledSystem::new(&Arc::new(treated), &vectors, &all, true, None)),
            ));
        }
        let pulls: Vec<Vec<f64>> = systems
            .iter()
            .map(|(_, system)| {
                evaluated(&**system, 0.1, x)[0].iter().zip(&free).map(|(a, b)| a - b).collect()
            })
            .collect();
        assert!(largest(&pulls[0]) > 1e-5, "{name}");
        for (pull, (form, system)) in pulls.iter().zip(&systems) {
            let worst = pull.iter().zip(&pulls[0]).fold(0.0f64, |w, (a, b)| w.max((a - b).abs()));
            // The field's rounding, and that of the solve over the least pivot, ε where rows
            // depend.
            let bound = 1e-13 * largest(&free) + 1e-7 * largest(pull);
            assert!(worst <= bound, "{name}, {form}: {worst:e} of {:e}", largest(pull));
            // The motion is the field without the pull.
            let mut motion = vec![0.0; x.len()];
            if *form != "formula"
                && system.motion(0.1, x, &mut motion, &mut vec![f64::NAN; system.work_len()])
            {
                let worst = motion.iter().zip(&free).fold(0.0f64, |w, (a, b)| w.max((a - b).abs()));
                assert!(worst <= 1e-13 * largest(&free).max(1.0), "{name}, {form}: {worst:e}");
            }
        }
    }
}

/// Compare, bit by bit, the results of every backend for the rows of a model, side by side in these
/// numbers of lanes.
fn compare_bits(name: &str, text: &str, lanes: &[usize]) {
    let block = BlockInterpreter::detect();
    let machines: Vec<MachineCode> =
        Isa::ALL.into_iter().filter_map(|isa| MachineCode::new(isa).ok()).collect();
    let model = load(text);
    let (parameters, x) = (&model.parameter_values, &model.initial);
    let field = model.row_field();
    let explicit = field.explicit_rates(&model, || model.row_mechanics());
    for program in [&field.field, &field.invariants, &field.jacobian, &explicit] {
        let in_columns = program.in_columns(&field.layout);
        let bits = |program: &RowProgram, backend: &dyn Backend, lanes: usize| -> Vec<u64> {
            let kernel = RowKernel::new(program, parameters, backend, lanes);
            let mut out = vec![f64::NAN; program.outputs];
            kernel.run(0.7, x, &mut out, &mut vec![f64::NAN; kernel.work_len()]);
            out.iter().map(|v| v.to_bits()).collect()
        };
        let expected = bits(program, &Interpreter, 1);
        for &lanes in lanes {
            let every = [&Interpreter as &dyn Backend, &block, backend()].into_iter();
            for backend in every.chain(machines.iter().map(|machine| machine as &dyn Backend)) {
                assert!(bits(program, backend, lanes) == expected, "{name}: {lanes} lanes");
                assert!(
                    bits(&in_columns, backend, lanes) == expected,
                    "{name}: {lanes} lanes, columns"
                );
            }
        }
    }
}

#[test]
fn every_bit_is_independent_of_the_number_of_lanes() {
    for (name, text) in MODELS {
        compare_bits(name, text, &[1, 2, 3, 4, 8, 16, 32, 64, 100]);
    }
}

/// Test every number of rows that vectors leave over, and that are left over together.
#[test]
fn every_number_of_bodies_has_the_same_bits() {
    let (name, text) =
        MODELS.iter().find(|(name, _)| *name == "gravity between pairs").expect("it is there");
    for n in 2..=34 {
        compare_bits(
            &format!("{n} bodies, {name}"),
            &text.replace("size N = 17", &format!("size N = {n}")),
            &[16],
        );
    }
}

#[test]
fn parts_of_one_array_are_programs_by_themselves() {
    let machines: Vec<MachineCode> =
        Isa::ALL.into_iter().filter_map(|isa| MachineCode::new(isa).ok()).collect();
    for (name, text) in MODELS {
        let model = load(text);
        let (parameters, field) = (&model.parameter_values, model.row_field());
        let mut x = vec![0.0; model.dimension()];
        field.layout.split(&model.initial, &mut x);
        let programs = [&field.field, &field.invariants, &field.jacobian, &field.field];
        let programs = programs.map(|program| program.in_columns(&field.layout).without_apart());
        let mut expected = x.clone();
        for program in &programs {
            expected.extend(program.evaluate(0.7, &model.initial, parameters));
        }
        // The state of a part is everything before its outputs.
        let mut states = x.len();
        let parts: Vec<RowProgram> = programs
            .iter()
            .map(|program| {
                let part = RowProgram::new(states, program.outputs, program.pieces.to_vec());
                states += program.outputs;
                part
            })
            .collect();
        for backend in [&Interpreter as &dyn Backend]
            .into_iter()
            .chain(machines.iter().map(|m| m as &dyn Backend))
        {
            let kernel = RowKernel::of_parts(parts.clone(), parameters, backend, BLOCK);
            let mut all = vec![f64::NAN; states];
            all[..x.len()].copy_from_slice(&x);
            kernel.run_within(0.7, &mut all, &mut vec![f64::NAN; kernel.work_len()]);
            assert!(all.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
        }
    }
}

#[test]
fn rows_of_families_are_not_gathered() {
    // Without machine code all rows are gathered.
    if backend()
        .compile_rows(&[(
            Tape::new(&Graph::new(), &[], 0, 0),
            RowPlaces { states: vec![], outputs: vec![], rows: 1 },
        )])
        .is_err()
    {
        return;
    }
    // Families of vectors, of parameters and of numbers, and sums over them.
    let masses = "size n = 200\nparameter m[i in 1..n] = 1 + 0.5*sin(i)\ncoordinate r[i in 1..n] : R^3 = (i, i^2, 1)\n\
                  momentum p of r\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i])) + sum(i in 2..n : \
                  cos(i)*dot(r[i] - r[i-1], r[i] - r[i-1])^2)\nintegral P = sum(i in 1..n : p[i])\n";
    let chain = MODELS.iter().find(|(name, _)| *name == "chain of rods").expect("it is there").1;
    let pairs = MODELS.iter().filter(|(name, _)| name.contains("pair")).map(|&(_, text)| text);
    assert_eq!(pairs.clone().count(), 4);
    for text in [masses, chain].into_iter().chain(pairs) {
        let model = load(text);
        let field = model.row_field();
        for program in [&field.field, &field.invariants] {
            let kernel = compile_rows(&program.in_columns(&field.layout), &model.parameter_values);
            assert_eq!(kernel.gathered(), 0, "{text}");
        }
    }
}

#[test]
fn other_parameters_need_no_other_kernels() {
    let (_, text) = MODELS[1];
    let model = load(text);
    let field = model.row_field();
    let changed: Vec<f64> = model.parameter_values.iter().map(|m| m + 0.25).collect();
    let mut old = CompiledSystem::of_rows(
        &field,
        &StateVectors::of(&model),
        &model.parameter_values,
        extended(&model),
    );
    let new = CompiledSystem::of_rows(
        &field,
        &StateVectors::of(&model),
        &changed,
        extended(&model).map(|field| field.rebound(&changed)),
    );
    let [dx, f, df] = evaluated(&new, 0.0, &model.initial);
    assert_eq!(
        evaluated(&old.rebound(&[&changed[..], &[7.0]].concat()), 0.0, &model.initial),
        [dx, f.clone(), df]
    );
    old.rebind_invariants(&changed);
    assert_eq!(evaluated(&old, 0.0, &model.initial)[1], f);
}

/// The Jacobian of formulas, unrolled and templated, against exact derivatives along directions.
#[test]
fn jacobians_of_fields_agree_with_derivatives() {
    let damped = "size n = 60\nparameter c = 0.3\ncoordinate q[i in 1..n] = sin(i)\nmomentum p of q = cos(2*i)\nlet site(i) = if(i < 1 or i > n, 0, q[i])\nlet rate(i) = if(i < 1 or i > n, 0, q[i]')\nhamiltonian sum(i in 1..n : (1 + q[i]^2)*p[i]^2/2) + sum(i in 0..n : (site(i + 1) - site(i))^2/2)\nforce drag[i in 1..n] on q[i] = -c*(2*q[i]' - rate(i + 1) - rate(i - 1))*(1 + q[i]^2) + cos(t)\n";
    for (name, text) in MODELS.into_iter().chain([("damped chain", damped)]) {
        let model = load(text);
        let (parameters, vectors) = (&model.parameter_values, StateVectors::of(&model));
        let field = Arc::new(unrolled(&model));
        let system = || CompiledSystem::new(&field, &vectors, parameters, true, None);
        let mut systems =
            vec![("unrolled", system().with_field_jacobian(FieldJacobian::of(&field, parameters)))];
        if model.constraints.is_empty() {
            let rows = model.row_field();
            let of = model.row_jacobian().expect("it has no near pairs");
            let jacobian = FieldJacobian::of_rows(of, &rows.layout, parameters);
            let templated = CompiledSystem::of_rows(&rows, &vectors, parameters, None);
            systems.push(("templated", templated.with_field_jacobian(jacobian)));
        }
        let (t, x) = (0.3, &model.initial[..]);
        let v: Vec<f64> = (0..x.len()).map(|i| (3.0 * i as f64).sin()).collect();
        let (mut along, exact) = (vec![0.0; x.len()], system());
        // The first call compiles, and needs scratch of its own.
        exact.field_derivative(t, x, &v, &mut along, &mut vec![0.0; exact.work_len()]);
        let largest = largest(&along);
        for (form, system) in systems {
            let pattern = system.field_pattern().expect("it is known");
            let mut values = vec![f64::NAN; pattern.nonzeros()];
            system.field_jacobian(t, x, &mut values, &mut vec![f64::NAN; system.work_len()]);
            for (row, along) in pattern.rows().zip(&along) {
                let terms = row.entries().map(|(p, j)| values[p] * v[j]);
                let (sum, size) =
                    terms.fold((0.0, 0.0f64), |(sum, size), term| (sum + term, size + term.abs()));
                // Entries are sums of up to some hundred terms that may cancel in part, or altogether.
                let tolerance = 1e-12 * (size + largest);
                assert!((sum - along).abs() <= tolerance, "{name}, {form}: {sum} {along}");
            }
        }
    }
}
