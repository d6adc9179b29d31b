//! Readable dumps of the stages between a model and its tape.

use crate::error::Error;
use crate::kernels::Formula;
use crate::problem::Problem;
use holonome_model::elaborate::model::{Dynamics, Family, Model, Quantity, Role};
use holonome_model::functional::{Functional, Source};
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::rows::{Piece, RowProgram};
use holonome_model::treatment::Field;
use holonome_model::treatment::feedback::gain_name;
use std::fmt::Write;

/// The checked model: variables, parameters, and every formula as term templates.
pub fn model(model: &Model) -> String {
    let mut out = String::new();
    let w = &mut out;
    for (name, value) in &model.sizes {
        let _ = writeln!(w, "size {name} = {value}");
    }
    for p in &model.parameters {
        let values = &model.parameter_values[p.first..p.first + p.family.len()];
        let _ = writeln!(w, "parameter {} = {}", family(&p.family), list(values));
    }
    for v in &model.variables {
        let role = match v.role {
            Role::Coordinate => "coordinate".to_string(),
            Role::Momentum(of) => format!("momentum of {}", model.variables[of].family.name),
            Role::State => "state".to_string(),
            Role::Work => "work".to_string(),
        };
        let end = v.first + v.family.len();
        let _ = writeln!(
            w,
            "{role} {} = x[{}..{end}], initially {}",
            family(&v.family),
            v.first,
            list(&model.initial[v.first..end])
        );
    }
    match &model.dynamics {
        Dynamics::Hamiltonian(h, _) => functional(w, "hamiltonian", h),
        Dynamics::Field(f) => functional(w, "field", f),
    }
    for force in &model.forces {
        functional(w, &format!("force {}", force.name), &force.functional);
    }
    for (word, quantities) in [
        ("constraint", model.imposed_constraints()),
        ("integral", &model.integrals[..]),
        ("observe", &model.observables[..]),
    ] {
        for q in quantities {
            functional(w, &format!("{word} {}", quantity(q)), &q.functional);
        }
    }
    for drawing in &model.drawings {
        let name = drawing.form.row().name;
        for argument in drawing.quantities() {
            functional(w, &format!("draw {name}, {}", quantity(argument)), &argument.functional);
        }
    }
    for measure in &model.measures {
        functional(
            w,
            &format!(
                "measure {} = {}",
                measure.quantity.name,
                measure.statistic.of(&quantity(&measure.quantity))
            ),
            &measure.quantity.functional,
        );
    }
    out
}

fn family(f: &Family) -> String {
    let indices: Vec<String> = f
        .indices
        .iter()
        .zip(&f.bounds)
        .map(|(i, (low, high))| format!("{i} in {low}..{high}"))
        .collect();
    let indices =
        if indices.is_empty() { String::new() } else { format!("[{}]", indices.join(", ")) };
    format!("{}{indices} : {}", f.name, f.shape)
}

fn quantity(q: &Quantity) -> String {
    let members = if q.indices.is_empty() {
        String::new()
    } else {
        format!("[{}], {} members", q.indices.join(", "), q.members)
    };
    let independent = if q.components.len() == q.shape.len() {
        String::new()
    } else {
        format!(", {} independent components", q.components.len())
    };
    format!("{}{members} : {}{independent}", q.name, q.shape)
}

/// The first few numbers, and the number of the others.
fn list(values: &[f64]) -> String {
    const SHOWN: usize = 12;
    let text: Vec<String> = values.iter().take(SHOWN).map(f64::to_string).collect();
    let more = if values.len() > SHOWN {
        format!(", … {} more", values.len() - SHOWN)
    } else {
        String::new()
    };
    format!("({}{more})", text.join(", "))
}

fn functional(w: &mut String, what: &str, f: &Functional) {
    let _ = writeln!(w, "{what}");
    for term in &f.terms {
        let count = |s: Source| term.slots.iter().filter(|&&x| x == s).count();
        let _ = writeln!(
            w,
            "  template of {} slots ({} state, {} parameters, {} numbers) over {} rows:",
            term.slots.len(),
            count(Source::State),
            count(Source::Parameter),
            count(Source::Number),
            term.rows()
        );
        for line in lines(&term.graph, &term.roots).lines() {
            let _ = writeln!(w, "    {line}");
        }
    }
}

/// A graph from `roots` down, one node a line.
fn lines(graph: &Graph, roots: &[Node]) -> String {
    let mut out = String::new();
    for node in graph.reachable(roots) {
        let n = |n: Node| format!("n{}", n.0);
        let text = match graph.expression(node) {
            Expression::Constant(bits) => f64::from_bits(bits).to_string(),
            Expression::Input(Input::State(i)) => format!("x[{i}]"),
            Expression::Input(Input::Parameter(i)) => format!("parameter[{i}]"),
            Expression::Input(Input::Time) => "t".to_string(),
            Expression::Input(Input::Slot(i)) => format!("slot[{i}]"),
            Expression::Unary(op, a) => format!("{} {}", op.name(), n(a)),
            Expression::Binary(op, a, b) => format!("{} {} {}", n(a), op.name(), n(b)),
            Expression::Select(c, a, b) => format!("if {} then {} else {}", n(c), n(a), n(b)),
            Expression::Largest(a, b) => format!("largest |{}| {}", n(a), n(b)),
            Expression::RoughPower(a, b) => format!("about {}^{}", n(a), n(b)),
            Expression::Spread(a, lane) => format!("lane {lane} of {}", n(a)),
            Expression::Fused(op, a, b, c) => format!("{op:?} {} {} {}", n(a), n(b), n(c)),
        };
        let _ = writeln!(out, "n{} = {text}", node.0);
    }
    let roots: Vec<String> = roots.iter().map(|r| format!("n{}", r.0)).collect();
    let _ = writeln!(out, "value: {}", roots.join(", "));
    out
}

fn field(problem: &Problem) -> Result<&Field, Error> {
    match (&problem.examined.field, &problem.examined.too_large) {
        (Some((field, _)), _) => Ok(field),
        (None, Some(too_large)) => Err(Error::option(too_large.to_string())),
        (None, None) => {
            Err(problem.singularity().unwrap_or_else(|| Error::option("the model has no field")))
        }
    }
}

/// Description of the rows of each of a program's pieces, shown by `show`.
fn pieces(out: &mut String, what: &str, program: &RowProgram, show: impl Fn(&Piece) -> String) {
    for piece in program.pieces.iter() {
        let _ = writeln!(out, "{what}, over {} rows:", piece.rows);
        for line in show(piece).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
}

/// The field (for a constrained Hamiltonian its Dirac extension) and its invariants as one graph;
/// for a model that is templated, the graph of every template.
pub fn graph(problem: &Problem) -> Result<String, Error> {
    if let Some(rows) = &problem.examined.rows {
        let mut out = String::new();
        for (what, program) in [("field", &rows.field), ("invariants", &rows.invariants)] {
            pieces(&mut out, what, program, |piece| lines(&piece.graph, &piece.outputs));
        }
        return Ok(out);
    }
    let field = field(problem)?;
    let mut out = lines(&field.graph, &[field.field.clone(), field.invariants.clone()].concat());
    let name =
        |nodes: &[Node]| nodes.iter().map(|n| format!("n{}", n.0)).collect::<Vec<_>>().join(", ");
    let _ = writeln!(out, "field: {}", name(&field.field));
    for group in &field.groups {
        let rows: Vec<Node> = group.members.rows().map(|(row, _)| field.invariants[row]).collect();
        let _ = writeln!(out, "invariant {}: {}", gain_name(&group.name, group.kind), name(&rows));
    }
    Ok(out)
}

/// The field's tape, or the tape of every template.
pub fn tape(problem: &Problem) -> Result<String, Error> {
    if let Some(rows) = &problem.examined.rows {
        let mut out = format!("{} operations\n", rows.field.operations(rows.parameters));
        pieces(&mut out, "field", &rows.field, |piece| piece.tape(rows.parameters).to_string());
        return Ok(out);
    }
    let field = field(problem)?;
    // Tape of the optimised formulas, as it runs.
    let tape = Formula::new(&field.graph, &field.field).tape(field.dimension, field.parameters);
    Ok(format!("{} operations\n{tape}", tape.operations()))
}
