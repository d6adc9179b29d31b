//! What has to be caught before a run starts: numbers that do not exist, a start off the constraint set,
//! redundant constraints, integrals that are not.

use crate::elaborate::expression::TIME;
use crate::elaborate::model::{Dynamics, Model, Quantity};
use crate::graph::Node;
use crate::graph::calculus::Gradient;
use crate::numeric::{self, Gram, Row};
use crate::syntax::diagnostic::{Diagnostic, Severity};
use crate::syntax::span::Span;
use crate::treatment::structure::{self, Irregular, Kind, Probe, Structure, evaluate, evaluate_rows};
use crate::treatment::unrolled::{TooLarge, unroll};
use crate::treatment::{Field, InvariantKind, dirac};

/// A residual below this fraction of the constraint's terms is rounding in the numbers a user types.
const TYPED: f64 = 1e-9;

/// A claimed integral whose rate of change is below this fraction of |DI| |X| is one.
const CONSTANT: f64 = 1e-8;

/// A model looked at with its numbers.
pub struct Examined {
    /// Findings: errors, and warnings about integrals and observables.
    pub diagnostics: Vec<Diagnostic>,
    /// Redundant constraints: an error for methods that solve for multipliers, a warning otherwise.
    pub redundant: Vec<Diagnostic>,
    /// The field with its invariants, where there is one.
    pub field: Option<(Field, Structure)>,
    /// Why there is no field, where the model is too large to be written out.
    pub too_large: Option<TooLarge>,
    /// The initial state does not meet a constraint or a hidden constraint: an error unless a run starts off the
    /// set on purpose.
    pub off_set: Vec<Diagnostic>,
    /// Claimed invariants that vary along the flow.
    pub varying: Vec<String>,
    /// Invariants that are constant on the constraint set only, and whose V grows somewhere off it.
    pub weak_integrals: Vec<String>,
}

impl Examined {
    /// Whether nothing stands against a run.
    pub fn is_sound(&self) -> bool {
        self.diagnostics.iter().all(|d| d.severity != Severity::Error)
    }
}

/// Examines `model` at its initial state.
pub fn examine(model: &Model) -> Examined {
    let mut found = Examined {
        diagnostics: Vec::new(),
        redundant: Vec::new(),
        field: None,
        too_large: None,
        off_set: Vec::new(),
        varying: Vec::new(),
        weak_integrals: Vec::new(),
    };
    finite_values(model, &mut found.diagnostics);
    let undefined = !found.is_sound();
    let off = constraints_met(model, &mut found.off_set);
    if undefined {
        return found; // derivatives of what does not exist say nothing
    }
    let unrolled = match unroll(model) {
        Ok(unrolled) => unrolled,
        Err(too_large) => {
            found.too_large = Some(too_large);
            return found;
        }
    };
    let gradients: Vec<Gradient> = unrolled.constraints.iter().flatten().map(|s| s.gradient.clone()).collect();
    let rows = evaluate_rows(
        &unrolled.graph,
        &gradients.iter().collect::<Vec<_>>(),
        0.0,
        &model.initial,
        &model.parameter_values,
    );
    if model.is_hamiltonian() {
        redundancy(model, &rows, off.is_empty(), &mut found.redundant);
    }
    let extended = match dirac::extend(model, unrolled) {
        Ok(extended) => extended,
        Err(reason) => {
            // Redundant constraints make the brackets singular: one mistake, one finding.
            if found.redundant.is_empty() && off.is_empty() {
                found.diagnostics.push(irregular(model, &reason));
            }
            return found;
        }
    };
    hidden_met(model, &extended.0, &extended.1, &off, &mut found.off_set);
    if found.is_sound() {
        field_is_finite(model, &extended.0, &mut found.diagnostics);
    }
    if found.is_sound() && found.redundant.is_empty() && found.off_set.is_empty() {
        integrals_hold(model, &extended.0, &mut found);
    }
    found.field = Some(extended);
    found
}

/// A number for a message: seven digits, in the form a person would write.
fn shown(value: f64) -> String {
    if (1e-3..1e6).contains(&value.abs()) { format!("{}", (value * 1e7).round() / 1e7) } else { format!("{value:.6e}") }
}

fn finite_values(model: &Model, out: &mut Vec<Diagnostic>) {
    if let Dynamics::Hamiltonian(h, span) = &model.dynamics {
        let value = h.evaluate(0.0, &model.initial, &model.parameter_values)[0];
        if !value.is_finite() {
            out.push(
                Diagnostic::error(
                    format!("H is {value} at the initial state: not a finite number"),
                    *span,
                    "cannot be evaluated there",
                )
                .help("look for a division by zero, or a root or logarithm of a negative number"),
            );
        }
    }
    let lists =
        [(&model.constraints, "constraint"), (&model.integrals, "integral"), (&model.observables, "observable")];
    for (list, what) in lists {
        for quantity in list {
            let values = quantity.functional.evaluate(0.0, &model.initial, &model.parameter_values);
            if let Some(at) = values.iter().position(|v| !v.is_finite()) {
                let name = quantity.member_name(at / quantity.shape.len());
                let message = format!("{what} '{name}' is {} at the initial state: not a finite number", values[at]);
                // An observable is only recorded: a gap in it stops nobody.
                let diagnostic = if what == "observable" {
                    Diagnostic::warning(message, quantity.span, "recorded as NaN there")
                } else {
                    Diagnostic::error(message, quantity.span, "cannot be evaluated there")
                };
                out.push(related_initial(model, quantity, at, diagnostic));
            }
        }
    }
}

/// Adds the places of the initial values that an output reads.
fn related_initial(model: &Model, quantity: &Quantity, output: usize, diagnostic: Diagnostic) -> Diagnostic {
    places(model, &quantity.functional.reads(output), diagnostic)
}

fn places(model: &Model, components: &[u32], mut diagnostic: Diagnostic) -> Diagnostic {
    for variable in &model.variables {
        let range = variable.first..variable.first + variable.family.len();
        if components.iter().any(|&c| range.contains(&(c as usize)))
            && !diagnostic.related.iter().any(|(s, _)| *s == variable.initial_span)
        {
            diagnostic =
                diagnostic.related(variable.initial_span, format!("the initial value of '{}'", variable.family.name));
        }
    }
    diagnostic
}

/// Reports every constraint that the initial state does not meet; returns their names.
fn constraints_met(model: &Model, out: &mut Vec<Diagnostic>) -> Vec<String> {
    let mut off = Vec::new();
    for quantity in &model.constraints {
        let values = quantity.functional.evaluate(0.0, &model.initial, &model.parameter_values);
        if values.iter().any(|v| !v.is_finite()) {
            continue; // reported already
        }
        let width = quantity.shape.len();
        let residual =
            |member: usize| values[member * width..(member + 1) * width].iter().map(|v| v * v).sum::<f64>().sqrt();
        let Some(worst) = (0..quantity.members).max_by(|&a, &b| residual(a).total_cmp(&residual(b))) else { continue };
        let scale = model.initial.iter().fold(1.0f64, |s, v| s.max(v.abs()));
        if residual(worst) > TYPED * scale * scale {
            off.push(quantity.name.clone());
            let name = quantity.member_name(worst);
            let output = (worst * width..(worst + 1) * width)
                .max_by(|&a, &b| values[a].abs().total_cmp(&values[b].abs()))
                .unwrap_or(worst * width);
            let size = if width == 1 {
                format!("left side minus right side is {}", shown(values[worst]))
            } else {
                format!("its residual is {}", shown(residual(worst)))
            };
            let diagnostic = Diagnostic::error(
                format!("the initial state does not meet constraint '{name}': {size}"),
                quantity.span,
                "not met at the start",
            )
            .help("correct the initial values, or let --project-initial move them onto the constraint set");
            out.push(related_initial(model, quantity, output, diagnostic));
        }
    }
    off
}

fn hidden_met(model: &Model, field: &Field, structure: &Structure, off: &[String], out: &mut Vec<Diagnostic>) {
    let nodes: Vec<Node> = structure.hidden.iter().map(|h| h.node).collect();
    let gradients: Vec<&Gradient> = structure.hidden.iter().map(|h| &h.gradient).collect();
    let values = evaluate(&field.graph, &nodes, 0.0, &model.initial, &model.parameter_values);
    let rows = evaluate_rows(&field.graph, &gradients, 0.0, &model.initial, &model.parameter_values);
    for group in field.groups.iter().filter(|g| g.kind == InvariantKind::Hidden && !off.contains(&g.name)) {
        let quantity =
            model.constraints.iter().find(|q| q.name == group.name).expect("a hidden constraint has its constraint");
        let first = field.constraints / 2;
        let mut worst: Option<(usize, f64, Vec<u32>)> = None;
        for (member, list) in group.members.iter().enumerate() {
            for &(row, _) in list {
                let k = row - first;
                // Σ |∂h/∂x_i| |x_i|: the size of the terms that should cancel.
                let size: f64 =
                    rows[k].iter().map(|&(i, d)| (d * model.initial[i as usize]).abs()).sum::<f64>().max(1.0);
                if values[k].abs() > TYPED * size && worst.as_ref().is_none_or(|w| values[k].abs() > w.1.abs()) {
                    worst = Some((member, values[k], rows[k].iter().map(|&(i, _)| i).collect()));
                }
            }
        }
        if let Some((member, value, components)) = worst {
            let name = quantity.member_name(member);
            let formula = match (structure.kind, structure.hidden.iter().any(|h| h.tangency)) {
                (Kind::Holonomic, false) => "the velocity along the constraint's normal, G H_p + g_t",
                (Kind::Holonomic, true) => "the momentum along the constraint's normal, G p",
                _ => "{g, H}",
            };
            let diagnostic = Diagnostic::error(
                format!(
                    "the initial state does not meet the hidden constraint of '{name}': {formula}, is {}",
                    shown(value)
                ),
                quantity.span,
                "its time derivative must vanish too",
            )
            .help("correct the initial momenta, or let --project-initial move them onto the constraint set");
            out.push(places(model, &components, diagnostic));
        }
    }
}

fn field_is_finite(model: &Model, field: &Field, out: &mut Vec<Diagnostic>) {
    let values = evaluate(&field.graph, &field.field, 0.0, &model.initial, &model.parameter_values);
    if let Some(at) = values.iter().position(|v| !v.is_finite()) {
        let variable = model
            .variables
            .iter()
            .find(|v| (v.first..v.first + v.family.len()).contains(&at))
            .expect("every component belongs to a variable");
        let message = format!(
            "the rate of change of '{}' is {} at the initial state: not a finite number",
            variable.family.name, values[at]
        );
        out.push(
            Diagnostic::error(message, variable.rate_span, "cannot start moving")
                .help("look for a division by zero, or a root or logarithm that cannot be differentiated there"),
        );
    }
}

/// Constraints whose gradients depend on those of the others.
fn redundancy(model: &Model, rows: &[Row], on_set: bool, out: &mut Vec<Diagnostic>) {
    if !on_set {
        return; // ranks mean little off the set
    }
    let owner: Vec<(usize, usize)> = model
        .constraints
        .iter()
        .enumerate()
        .flat_map(|(k, q)| (0..q.members).flat_map(move |m| std::iter::repeat_n((k, m), q.components.len())))
        .collect();
    let gram = Gram::in_order(rows);
    let mut named = Vec::new();
    for row in gram.dependent() {
        let (k, member) = owner[row];
        if named.contains(&k) {
            continue;
        }
        named.push(k);
        let quantity = &model.constraints[k];
        let name = quantity.member_name(member);
        let mut others: Vec<String> = Vec::new();
        for (other, _) in gram.combination(row) {
            let (k, member) = owner[other];
            let other = model.constraints[k].member_name(member);
            if other != name && !others.contains(&other) {
                others.push(other);
            }
        }
        let message = if others.is_empty() {
            format!("the gradient of constraint '{name}' vanishes on the constraint set (degenerate)")
        } else {
            format!(
                "constraint '{name}' is redundant: its gradient at the initial state is a combination of those of {}",
                others.join(", ")
            )
        };
        let mut diagnostic = Diagnostic::warning(message, quantity.span, "determines no multiplier of its own").help(
            "leave it out or write it another way; methods that solve for multipliers cannot treat it, penalties can",
        );
        for other in others {
            let base = other.split('[').next().unwrap_or(&other);
            if let Some(q) = model.constraints.iter().find(|q| q.name == base && q.name != quantity.name)
                && !diagnostic.related.iter().any(|(s, _)| *s == q.span)
            {
                diagnostic = diagnostic.related(q.span, "already says this");
            }
        }
        out.push(diagnostic);
    }
}

fn irregular(model: &Model, reason: &Irregular) -> Diagnostic {
    let span = model.constraints.first().map_or(Span::default(), |c| c.span);
    let (label, help) = match reason {
        Irregular::Mixed { .. } => (
            "first- and second-class constraints are mixed",
            "split the model: state the second-class pairs by themselves, or the coisotropic constraints by themselves",
        ),
        Irregular::Singular { .. } => (
            "no Dirac bracket",
            "a constraint that is linear in the momenta may need its partner, for example q.z = 0 beside p.z = 0",
        ),
    };
    let diagnostic = Diagnostic::error(reason.to_string(), span, label).help(help);
    model.constraints.iter().skip(1).fold(diagnostic, |d, c| d.related(c.span, "with this"))
}

/// Warns of integrals (and of a state model's constraints) that the flow does not keep.
fn integrals_hold(model: &Model, field: &Field, found: &mut Examined) {
    let t = 0.0;
    let imposed = |kind: InvariantKind| matches!(kind, InvariantKind::Constraint) && !model.is_hamiltonian();
    if !field.groups.iter().any(|g| g.kind == InvariantKind::Integral || imposed(g.kind)) {
        return;
    }
    let points = structure::points_on_set(model, field, 6, 0x1e57);
    let ambient = structure::ambient_points(model, 4, 0xa3b1);
    for group in field.groups.iter().filter(|g| g.kind == InvariantKind::Integral || imposed(g.kind)) {
        let list = if group.kind == InvariantKind::Integral { &model.integrals } else { &model.constraints };
        let quantity = list.iter().find(|q| q.name == group.name).expect("a group has its quantity");
        let (rows, weights): (Vec<usize>, Vec<f64>) = group.members.iter().flatten().copied().unzip();
        // X, the values and, where time is explicit, ∂I/∂t beside DI.
        let mut graph = field.graph.clone();
        let values: Vec<Node> = rows.iter().map(|&r| field.invariants[r]).collect();
        let explicit: Vec<Node> = match quantity.depends & TIME {
            0 => vec![graph.zero(); rows.len()],
            _ => values.iter().map(|&v| graph.time_derivative(v)).collect(),
        };
        let nodes = [field.field.clone(), values, explicit].concat();
        let gradients: Vec<&Gradient> = rows.iter().map(|&r| &field.jacobian[r]).collect();
        let probe = Probe::new(&graph, &nodes, &gradients, field.dimension, &model.parameter_values);
        // For each row its value, its rate, and what the rate could be at most.
        let rates = |x: &[f64]| -> Vec<(f64, f64, f64)> {
            let (mut v, jacobian) = probe.at(t, x);
            let mut values = v.split_off(field.dimension);
            let explicit = values.split_off(rows.len());
            let speed = v.iter().map(|v| v * v).sum::<f64>().sqrt();
            let one = |(k, row): (usize, &Row)| {
                let rate = explicit[k] + row.iter().map(|&(i, d)| d * v[i as usize]).sum::<f64>();
                (values[k], rate, numeric::dot(row, row).sqrt() * speed + explicit[k].abs())
            };
            jacobian.iter().enumerate().map(one).collect()
        };
        let rate = |x: &[f64]| -> (f64, f64) {
            let varies = |&(_, rate, size): &(f64, f64, f64)| rate.is_finite() && rate.abs() > CONSTANT * size;
            let largest = rates(x).into_iter().filter(varies).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
            largest.map_or((0.0, 0.0), |(_, rate, size)| (rate.abs(), rate.abs() / size))
        };
        // V = ½ Σ w (F − F₀)² may be constant although F is not: RᵀR = 1 of a rigid body off SO(3).
        let targets: Vec<f64> = match group.kind {
            InvariantKind::Integral => rates(&model.initial).into_iter().map(|(value, ..)| value).collect(),
            _ => vec![0.0; rows.len()],
        };
        let potential_varies = |x: &[f64]| {
            let (mut rate, mut size) = (0.0, 0.0);
            for (((value, r, s), target), weight) in rates(x).into_iter().zip(&targets).zip(&weights) {
                rate += weight * (value - target) * r;
                size += weight * (value - target).abs() * s;
            }
            rate.is_finite() && rate > CONSTANT * size
        };
        let worst = points.iter().map(|x| rate(x)).fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
        if worst.0 > 0.0 {
            let what = if group.kind == InvariantKind::Integral {
                ("integral", "is not a first integral")
            } else {
                ("constraint", "is not kept by the field")
            };
            found.varying.push(group.name.clone());
            found.diagnostics.push(
                Diagnostic::warning(format!("{} '{}' {}: it changes at the rate {:.3e} ({:.1e} of what its gradient and the field's size allow)", what.0, group.name, what.1, worst.0, worst.1), quantity.span, "varies along the flow")
                    .help("methods that hold it constant would bend the trajectory; record it with `observe` instead, or correct the formula"),
            );
        } else if ambient.iter().any(|x| potential_varies(x)) {
            found.weak_integrals.push(group.name.clone());
        }
    }
}

/// An initial state moved onto the constraint set.
#[derive(Clone, Debug)]
pub struct Projected {
    /// The state.
    pub initial: Vec<f64>,
    /// How far the positions moved, as a Euclidean distance.
    pub position: f64,
    /// How far the momenta moved.
    pub momentum: f64,
}

/// Moves the initial state onto the constraint set: positions along M⁻¹Gᵀ and then momenta along Gᵀ, the
/// least changes in the kinetic metric; other constraints by the least Euclidean change.
///
/// # Errors
/// In words, when Newton's iteration does not get there.
pub fn project_initial(model: &Model) -> Result<Projected, String> {
    let mut unrolled = unroll(model).map_err(|e| e.to_string())?;
    let n = model.degrees();
    let scalars: Vec<_> = unrolled.constraints.iter().flatten().cloned().collect();
    let structure = structure::structure(model, &mut unrolled).map_err(|e| e.to_string())?;
    let mut x = model.initial.clone();
    let nodes: Vec<Node> = scalars.iter().map(|s| s.node).collect();
    let gradients: Vec<&Gradient> = scalars.iter().map(|s| &s.gradient).collect();
    // H_pp at the start, by rows over the momenta.
    let mut metric: Vec<(u32, Gradient)> = Vec::new();
    if structure.kind == Kind::Holonomic {
        for (i, d) in unrolled.hamiltonian_gradient.clone() {
            if i as usize >= n {
                metric.push((i, unrolled.graph.gradient(d)));
            }
        }
    }
    let inverse_mass: Vec<Row> = {
        let rows: Vec<&Gradient> = metric.iter().map(|(_, row)| row).collect();
        evaluate_rows(&unrolled.graph, &rows, 0.0, &x, &model.parameter_values)
    };
    // M⁻¹ g for a row g over the positions.
    let raise = |row: &Row| -> Row {
        let mut dense: std::collections::BTreeMap<u32, f64> = Default::default();
        for ((i, _), h) in metric.iter().zip(&inverse_mass) {
            let sum: f64 = h
                .iter()
                .filter(|(j, _)| *j as usize >= n)
                .map(|&(j, v)| v * row.iter().find(|&&(c, _)| c == j - n as u32).map_or(0.0, |&(_, d)| d))
                .sum();
            if sum != 0.0 {
                dense.insert(i - n as u32, sum);
            }
        }
        dense.into_iter().collect()
    };
    let natural = structure.kind == Kind::Holonomic && structure.hidden.iter().all(|h| !h.tangency);
    let mut solve = |nodes: &[Node], gradients: &[&Gradient], select: &dyn Fn(&Row) -> Row| -> Result<(), String> {
        let scale = x.iter().fold(1.0f64, |s, v| s.max(v.abs()));
        let mut residual = f64::INFINITY;
        for _ in 0..100 {
            let f = evaluate(&unrolled.graph, nodes, 0.0, &x, &model.parameter_values);
            residual = f.iter().fold(0.0f64, |s, v| s.max(v.abs()));
            let rows = evaluate_rows(&unrolled.graph, gradients, 0.0, &x, &model.parameter_values);
            let directions: Vec<Row> = rows.iter().map(select).collect();
            let step = newton_step(&rows, &directions, &f).ok_or("the constraints are redundant there")?;
            let mut size = 0.0f64;
            for (d, y) in directions.iter().zip(&step) {
                for &(i, v) in d {
                    x[i as usize] -= y * v;
                    size = size.max((y * v).abs());
                }
            }
            if !size.is_finite() {
                break;
            }
            if size <= 4.0 * f64::EPSILON * scale {
                return Ok(());
            }
        }
        // Newton stalls at rounding; anything more is a failure.
        if residual <= 1e-13 * scale * scale {
            Ok(())
        } else {
            Err(format!("Newton's iteration stopped at a residual of {residual:.3e}"))
        }
    };
    if natural {
        solve(&nodes, &gradients, &|row| raise(row))?;
    } else {
        solve(&nodes, &gradients, &|row| row.clone())?;
    }
    let hidden: Vec<Node> = structure.hidden.iter().map(|h| h.node).collect();
    let hidden_gradients: Vec<&Gradient> = structure.hidden.iter().map(|h| &h.gradient).collect();
    if !hidden.is_empty() {
        if structure.kind == Kind::Holonomic {
            // δp = Gᵀμ: the hidden constraint's gradient is G M⁻¹ over the momenta, and M lowers it to G.
            let positions = evaluate_rows(&unrolled.graph, &gradients, 0.0, &x, &model.parameter_values);
            for _ in 0..3 {
                let f = evaluate(&unrolled.graph, &hidden, 0.0, &x, &model.parameter_values);
                let rows = evaluate_rows(&unrolled.graph, &hidden_gradients, 0.0, &x, &model.parameter_values);
                let directions: Vec<Row> =
                    positions.iter().map(|r| r.iter().map(|&(i, v)| (i + n as u32, v)).collect()).collect();
                let step = newton_step(&rows, &directions, &f).ok_or("the constraints are redundant there")?;
                for (d, y) in directions.iter().zip(&step) {
                    for &(i, v) in d {
                        x[i as usize] -= y * v;
                    }
                }
            }
        } else {
            let all: Vec<Node> = nodes.iter().chain(&hidden).copied().collect();
            let both: Vec<&Gradient> = gradients.iter().chain(&hidden_gradients).copied().collect();
            solve(&all, &both, &|row| row.clone())?;
        }
    }
    let distance = |range: std::ops::Range<usize>| range.map(|i| (x[i] - model.initial[i]).powi(2)).sum::<f64>().sqrt();
    let split = if n == 0 { x.len() } else { n };
    let (position, momentum) = (distance(0..split), distance(split..x.len()));
    Ok(Projected { initial: x, position, momentum })
}

/// y with Σ_j (rowᵢ · directionⱼ) yⱼ = fᵢ, by elimination with partial pivoting.
fn newton_step(rows: &[Row], directions: &[Row], f: &[f64]) -> Option<Vec<f64>> {
    let m = f.len();
    let mut a: Vec<Vec<f64>> =
        (0..m).map(|i| directions.iter().map(|d| numeric::dot(&rows[i], d)).chain([f[i]]).collect()).collect();
    for k in 0..m {
        let pivot = (k..m).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs()))?;
        a.swap(k, pivot);
        if a[k][k] == 0.0 || a[k][k].is_nan() {
            return None;
        }
        for i in k + 1..m {
            let factor = a[i][k] / a[k][k];
            if factor != 0.0 {
                for j in k..=m {
                    a[i][j] -= factor * a[k][j];
                }
            }
        }
    }
    let mut y = vec![0.0; m];
    for k in (0..m).rev() {
        let rest: f64 = (k + 1..m).map(|j| a[k][j] * y[j]).sum();
        y[k] = (a[k][m] - rest) / a[k][k];
    }
    Some(y)
}
