//! Recognition of rigid bodies in models. Formulas are compared at a few points, for the model's
//! parameters; what is taken from them are formulas of the parameters, not numbers.

use super::{Carrier, RigidBody};
use crate::kernels::Formula;
use holonome_model::elaborate::model::{Model, Role, Variable};
use holonome_model::elaborate::shape::Shape;
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::treatment::mechanics::Mechanics;
use holonome_model::treatment::structure::{ConstraintKind, Probe, ambient_points};
use holonome_words::option;

/// A 3 × 3 matrix of formulas.
type Matrix = [[Node; 3]; 3];

/// Relative difference between ways to write one formula: a few roundings of its terms.
const ROUNDINGS: f64 = 1e-12;

pub(super) fn rigid_body(mechanics: &Mechanics, model: &Model) -> Result<RigidBody, String> {
    if mechanics.degrees > 0 {
        of_momentum(mechanics, model)
    } else {
        of_velocity(mechanics, model)
    }
}

/// Rigid body of H = ½ tr(P J⁻¹ Pᵀ) + V(R, t) on RᵀR = 1.
fn of_momentum(mechanics: &Mechanics, model: &Model) -> Result<RigidBody, String> {
    let coordinates = model.variables.iter().filter(|v| v.role == Role::Coordinate);
    let (Some(name), 1) =
        (coordinates.clone().find_map(|v| named(v, Shape::Matrix(3, 3))), coordinates.count())
    else {
        return Err("a rigid body has one coordinate, of the shape R^(3,3)".into());
    };
    let samples = Samples::new(model, Some(0));
    on_rotations(mechanics, name, &samples)?;
    let (n, mut g) = (mechanics.degrees, mechanics.graph.clone());
    let (force, velocity) = mechanics.gradient.split_at(n);
    // H_P = P J⁻¹, by its first row.
    let inverse_mass: Matrix = std::array::from_fn(|i| {
        std::array::from_fn(|j| coefficient(&mut g, velocity[i], &[n + j]))
    });
    let product = |p: &[f64], k: &[f64]| -> Vec<f64> {
        (0..9)
            .map(|entry| (0..3).map(|j| p[entry / 3 * 3 + j] * k[3 * j + entry % 3]).sum())
            .collect()
    };
    let entries = samples.of(&g, inverse_mass.as_flattened());
    let velocities = samples.of(&g, velocity);
    let fits =
        |((point, k), v): ((&Point, &Vec<f64>), &Vec<f64>)| agree(v, &product(&point.1[n..], k));
    if reads_time(&g, inverse_mass.as_flattened())
        || !samples.points.iter().zip(&entries).zip(&velocities).all(fits)
    {
        let p = &model.variables[1].family.name;
        return Err(format!(
            "the Hamiltonian is not trace({p}*inverse(J)*transpose({p}))/2 with a constant matrix J, and a potential of {name}"
        ));
    }
    let mass = inverse(&mut g, &inverse_mass);
    let trace = g.sum([mass[0][0], mass[1][1], mass[2][2]]);
    let mut inertia = mass.map(|row| row.map(|entry| g.neg(entry)));
    for (i, row) in inertia.iter_mut().enumerate() {
        row[i] = g.add(trace, row[i]);
    }
    let numbers = with_inverse(&mut g, inertia);
    let values = samples.of(&g, &numbers).remove(0);
    if !values.iter().all(|value| value.is_finite()) {
        return Err(
            "the Hamiltonian's kinetic energy is that of no rigid body: its inertia has no inverse"
                .into(),
        );
    }
    let obstacle = if samples.of(&g, force).concat().iter().any(|&force| force != 0.0) {
        Some(
            "the Hamiltonian holds a potential, so that the body is not free; use cayley-symmetric"
                .to_string(),
        )
    } else {
        let largest = values[..9].iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let turned = [1, 2, 5].iter().any(|&k| values[k].abs() > ROUNDINGS * largest);
        turned.then(|| {
            format!("the body's frame is not that of its principal axes: turn {name} so that J becomes diagonal, or use cayley-symmetric")
        })
    };
    let carrier = Carrier::Momentum(Formula::unfused(&g, mass.as_flattened()));
    Ok(RigidBody {
        attitude: Some(0),
        second: n,
        carrier,
        inertia: Formula::unfused(&g, &numbers),
        obstacle,
    })
}

/// Check that the constraints say that R is a rotation.
fn on_rotations(mechanics: &Mechanics, name: &str, samples: &Samples) -> Result<(), String> {
    let orthogonal = format!("transpose({name})*{name} = identity(3)");
    if mechanics.kind != ConstraintKind::Holonomic || mechanics.constraints.len() != 6 {
        return Err(format!("a rigid body has the constraint {orthogonal}, and no other"));
    }
    for constraint in &mechanics.constraints {
        if samples
            .of(&mechanics.graph, &[constraint.node])
            .concat()
            .iter()
            .any(|value| value.abs() > ROUNDINGS)
        {
            return Err(format!("constraint `{}` is not {orthogonal}", constraint.name));
        }
    }
    Ok(())
}

/// Rigid body of R' = R hat(C w) and wᵢ' = aᵢ wⱼ wₖ + a torque of R and t, or of the second alone.
fn of_velocity(mechanics: &Mechanics, model: &Model) -> Result<RigidBody, String> {
    let find =
        |shape| model.variables.iter().find_map(|v| named(v, shape).map(|name| (name, v.first)));
    let (rotation, vector) = (find(Shape::Matrix(3, 3)), find(Shape::Vector(3)));
    let Some((w, second)) =
        vector.filter(|_| model.variables.len() == 1 + usize::from(rotation.is_some()))
    else {
        return Err("a rigid body has the states R : R^(3,3) and w : R^3, or w alone".into());
    };
    if let Some((name, first)) = rotation {
        begins_as_rotation(name, &model.initial[first..first + 9])?;
    }
    let samples = Samples::new(model, rotation.map(|(_, first)| first));
    let mut g = mechanics.graph.clone();
    let scale = match rotation {
        Some((name, first)) => turning(&mut g, mechanics, (name, first), (w, second), &samples)?,
        None => [g.one(); 3],
    };
    let rate = &mechanics.field[second..second + 3];
    let a = AXES.map(|(i, j, k)| coefficient(&mut g, rate[i], &[second + j, second + k]));
    let (numbers, rates, scales) =
        (samples.of(&g, &a), samples.of(&g, rate), samples.of(&g, &scale));
    let torques = samples.with_zeros(second..second + 3).of(&g, rate);
    for (i, j, k) in AXES {
        let fits = |s: usize| {
            let w = &samples.points[s].1[second..];
            let product = w[j] * w[k];
            // For a spherical body the product is the round-off of terms that cancel.
            let size = (scales[s][j] * scales[s][k] / scales[s][i] * product).abs();
            let expected = numbers[s][i] * product + torques[s][i];
            (rates[s][i] - expected).abs() <= ROUNDINGS * size.max(rates[s][i].abs())
        };
        if reads_time(&g, &a) || !(0..samples.points.len()).all(fits) {
            return Err(format!(
                "`{w}'` is not Euler's equations in the frame of the principal axes: component {} is not a*{w}[{}]*{w}[{}] and a torque without {w}",
                i + 1,
                j + 1,
                k + 1
            ));
        }
    }
    let scale = match rotation {
        None if is_momentum(&numbers[0]) => inverse_moments(&mut g, a),
        _ => scale,
    };
    // For Ω = C w: Ωᵢ' = aᵢ cᵢ/(cⱼ cₖ) Ωⱼ Ωₖ.
    let own = AXES.map(|(i, j, k)| {
        let (above, below) = (g.mul(a[i], scale[i]), g.mul(scale[j], scale[k]));
        g.div(above, below)
    });
    let moments = moments_of_inertia(&mut g, own);
    let values = samples.of(&g, &[moments, own].concat()).remove(0);
    let (moment, a) = values.split_at(3);
    let euler =
        |(i, j, k): (usize, usize, usize)| agree(&[moment[i] * a[i] + moment[k]], &[moment[j]]);
    if moment.iter().any(|m| !m.is_finite() || *m == 0.0) || !AXES.into_iter().all(euler) {
        return Err(format!(
            "`{w}'` is not Euler's equations: the factors {a:?} of its products are not (I2 - I3)/I1, (I3 - I1)/I2, (I1 - I2)/I3 for any I"
        ));
    }
    let zero = g.zero();
    let inertia =
        std::array::from_fn(|i| std::array::from_fn(|j| if i == j { moments[i] } else { zero }));
    let numbers = with_inverse(&mut g, inertia);
    let free = torques.concat().iter().all(|&torque| torque == 0.0);
    let obstacle = (!free).then(|| {
        format!("`{w}'` holds a torque, so that the body is not free; use cayley-symmetric")
    });
    let carrier = Carrier::Velocity(Formula::unfused(&g, &scale));
    let inertia = Formula::unfused(&g, &numbers);
    Ok(RigidBody { attitude: rotation.map(|(_, first)| first), second, carrier, inertia, obstacle })
}

/// True if these are the factors 1/I₃ − 1/I₂ and so on of Euler's equations for the angular
/// momentum, which add up to 0, and not those for the angular velocity.
fn is_momentum(a: &[f64]) -> bool {
    let largest = a.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let of_velocity = a.iter().sum::<f64>() + a.iter().product::<f64>();
    a.iter().sum::<f64>().abs() <= ROUNDINGS * largest && of_velocity.abs() > ROUNDINGS * largest
}

/// 1/I of a body with these factors for its angular momentum. They leave open a number that is
/// added to all three, because |Π|² is constant; this choice is a body with moments up to 1 : 2.
fn inverse_moments(g: &mut Graph, a: [Node; 3]) -> [Node; 3] {
    let third = g.constant(1.0 / 3.0);
    let differences = AXES.map(|(_, j, k)| {
        let difference = g.sub(a[j], a[k]);
        g.mul(difference, third)
    });
    let square = g.dot(&differences, &differences);
    let (root, three) = (g.sqrt(square), g.constant(3.0));
    let mean = g.mul(three, root);
    differences.map(|difference| g.add(mean, difference))
}

/// Check that the matrix R begins as a rotation, or a rotation and a reflection: turns keep that,
/// and are all that is done to it.
fn begins_as_rotation(name: &str, r: &[f64]) -> Result<(), String> {
    // Rounding of numbers that a user types, as in the check of constraints.
    const TYPED: f64 = 1e-9;
    let entry = |k: usize| {
        let product: f64 = (0..3).map(|row| r[3 * row + k / 3] * r[3 * row + k % 3]).sum();
        (product - if k / 3 == k % 3 { 1.0 } else { 0.0 }).abs()
    };
    let residual =
        (0..9).map(entry).fold(0.0, |largest: f64, v| if v.is_nan() { v } else { largest.max(v) });
    match residual <= TYPED {
        true => Ok(()),
        false => Err(format!(
            "`{name}` begins as no rotation: transpose({name})*{name} differs from identity(3) by {residual:.1e}; correct its initial value, or state `constraint transpose({name})*{name} = identity(3)`, onto which {project_initial} moves it",
            project_initial = option("project_initial")
        )),
    }
}

/// Diagonal of C in R' = R hat(C w).
fn turning(
    g: &mut Graph,
    mechanics: &Mechanics,
    (name, first): (&str, usize),
    (w, second): (&str, usize),
    samples: &Samples,
) -> Result<[Node; 3], String> {
    let rate = &mechanics.field[first..first + 9];
    // R' has the first row (R₁₂ Ω₃ − R₁₃ Ω₂, R₁₃ Ω₁ − R₁₁ Ω₃, R₁₁ Ω₂ − R₁₂ Ω₁).
    let c = AXES.map(|(i, j, k)| coefficient(g, rate[j], &[first + k, second + i]));
    let rates = samples.of(g, rate);
    let fits = |((point, c), rates): ((&Point, &Vec<f64>), &Vec<f64>)| {
        let omega: Vec<f64> = (0..3).map(|i| c[i] * point.1[second + i]).collect();
        let row = |r: &[f64]| AXES.map(|(_, j, k)| r[j] * omega[k] - r[k] * omega[j]);
        let expected: Vec<f64> = point.1[first..first + 9].chunks(3).flat_map(row).collect();
        agree(rates, &expected)
    };
    if reads_time(g, &c) || !samples.points.iter().zip(&samples.of(g, &c)).zip(&rates).all(fits) {
        return Err(format!(
            "`{name}'` is not {name}*hat({w}), nor so with multiples of the components of {w}"
        ));
    }
    Ok(c)
}

/// Moments of inertia, up to a factor, for a = ((I₂ − I₃)/I₁, (I₃ − I₁)/I₂, (I₁ − I₂)/I₃).
///
/// With the mass moments J, I₁ = J₂ + J₃ and so on, (1 − aᵢ)/(1 + aᵢ) is Jⱼ/Jₖ, which is 0/0 for a
/// plate without Jⱼ and Jₖ. So ((1 + aᵢ)(1 + aⱼ), (1 − aᵢ)(1 − aⱼ), (1 + aᵢ)(1 − aⱼ)) is a multiple
/// of (Jᵢ, Jⱼ, Jₖ), by the factor 4 Jₖ/(Iᵢ Iⱼ). The sum of these over the three axes k has a factor
/// that vanishes for no body.
fn moments_of_inertia(g: &mut Graph, a: [Node; 3]) -> [Node; 3] {
    let one = g.one();
    let (plus, minus) = (a.map(|a| g.add(one, a)), a.map(|a| g.sub(one, a)));
    let mut mass = [g.zero(); 3];
    for (i, j, k) in AXES {
        let products = [(i, plus[i], plus[j]), (j, minus[i], minus[j]), (k, plus[i], minus[j])];
        for (place, x, y) in products {
            let product = g.mul(x, y);
            mass[place] = g.add(mass[place], product);
        }
    }
    AXES.map(|(_, j, k)| g.add(mass[j], mass[k]))
}

/// Axes in the orders of a right-handed frame.
const AXES: [(usize, usize, usize); 3] = [(0, 1, 2), (1, 2, 0), (2, 0, 1)];

/// Name of a variable of this shape that is not a family.
fn named(variable: &Variable, shape: Shape) -> Option<&str> {
    let family = &variable.family;
    (family.shape == shape && family.indices.is_empty()).then_some(family.name.as_str())
}

/// Derivative of `node` with respect to these components of the state, at the state 0: a formula of
/// the parameters, and of the time if the derivative depends on it.
fn coefficient(g: &mut Graph, node: Node, components: &[usize]) -> Node {
    let zero = g.zero();
    let derivative = components.iter().fold(node, |node, &component| {
        let gradient = g.gradient(node);
        gradient.into_iter().find(|&(i, _)| i as usize == component).map_or(zero, |(_, d)| d)
    });
    let states = g.reachable(&[derivative]).into_iter();
    let states =
        states.filter(|&node| matches!(g.expression(node), Expression::Input(Input::State(_))));
    let origin = states.map(|node| (node, zero)).collect();
    g.substituted(&[derivative], &origin)[0]
}

fn reads_time(g: &Graph, nodes: &[Node]) -> bool {
    g.reachable(nodes).into_iter().any(|node| g.expression(node) == Expression::Input(Input::Time))
}

/// Matrix and its inverse, row by row.
fn with_inverse(g: &mut Graph, matrix: Matrix) -> Vec<Node> {
    let inverse = inverse(g, &matrix);
    [matrix, inverse].concat().concat()
}

/// Inverse of a symmetric matrix by its cofactors; with zeros in the matrix, few operations.
fn inverse(g: &mut Graph, m: &Matrix) -> Matrix {
    let cofactors: Matrix = AXES.map(|(_, j, k)| {
        AXES.map(|(_, a, b)| {
            let (plus, minus) = (g.mul(m[j][a], m[k][b]), g.mul(m[j][b], m[k][a]));
            g.sub(plus, minus)
        })
    });
    let determinant = g.dot(&m[0], &cofactors[0]);
    cofactors.map(|row| row.map(|cofactor| g.div(cofactor, determinant)))
}

/// True if two lists are the same but for rounding.
fn agree(a: &[f64], b: &[f64]) -> bool {
    let size = a.iter().chain(b).fold(0.0f64, |m, v| m.max(v.abs()));
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= ROUNDINGS * size)
}

/// Time and state.
type Point = (f64, Vec<f64>);

/// Points at which formulas are compared.
struct Samples<'a> {
    points: Vec<Point>,
    parameters: &'a [f64],
}

impl Samples<'_> {
    /// Points near the start. The matrix whose first component is `rotation` is a rotation.
    fn new(model: &Model, rotation: Option<usize>) -> Samples<'_> {
        let mut points: Vec<Point> =
            [0.0, 0.3, 1.7].into_iter().zip(ambient_points(model, 3, 0xb0d7)).collect();
        for (_, x) in &mut points {
            if let Some(first) = rotation {
                // Rotation of the quaternion (1, a).
                let a = [x[first + 1], x[first + 5], 0.5 - x[first + 6]];
                let square = a.iter().map(|a| a * a).sum::<f64>();
                for (i, j, k) in AXES {
                    let entries = [
                        (i, i, 1.0 - square + 2.0 * a[i] * a[i]),
                        (j, k, 2.0 * (a[j] * a[k] - a[i])),
                        (k, j, 2.0 * (a[j] * a[k] + a[i])),
                    ];
                    for (row, column, entry) in entries {
                        x[first + 3 * row + column] = entry / (1.0 + square);
                    }
                }
            }
        }
        Samples { points, parameters: &model.parameter_values }
    }

    /// These samples with some components 0.
    fn with_zeros(&self, components: std::ops::Range<usize>) -> Self {
        let mut points = self.points.clone();
        points.iter_mut().for_each(|(_, x)| x[components.clone()].fill(0.0));
        Samples { points, parameters: self.parameters }
    }

    /// Values of nodes at every point.
    fn of(&self, g: &Graph, nodes: &[Node]) -> Vec<Vec<f64>> {
        let probe = Probe::new(g, nodes, &[], self.points[0].1.len(), self.parameters);
        self.points.iter().map(|(t, x)| probe.at(*t, x).0).collect()
    }
}
