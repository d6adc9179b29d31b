//! Rolling constraints: equations that are affine in the velocities.

use super::CheckedFormulas;
use super::quantities::FormulaLowering;
use crate::elaborate::expression;
use crate::elaborate::lower::Purpose;
use crate::elaborate::model::{Dynamics, Following, Quantity, Rolling, momentum_derivatives};
use crate::functional::Functional;
use crate::graph::op::{Binary, Unary};
use crate::graph::{Expression, Graph, Input, Node};
use crate::syntax::diagnostic::Diagnostic;
use rustc_hash::FxHashSet;

/// Largest number of operations of H and of rolling constraints, which are unrolled.
const LARGEST: usize = 100_000;

/// The rolling constraints of a model as functions of positions and momenta, behind its other
/// `constraints`; `None` if one cannot be lowered.
pub(super) fn rollings(
    formulas: &CheckedFormulas,
    (dynamics, constraints): (Option<&Dynamics>, &[Quantity]),
    (dimension, degrees): (usize, usize),
    lowering: &mut FormulaLowering,
) -> Option<(Vec<Quantity>, Vec<Rolling>)> {
    if formulas.rollings.is_empty() {
        return Some((Vec::new(), Vec::new()));
    }
    let Some(Dynamics::Hamiltonian(h, _)) = dynamics else {
        let span = formulas.rollings[0].name.span;
        let message = "a rolling constraint belongs to a Hamiltonian model";
        let help = "the constraints of a vector field are its own: it must keep them";
        lowering.findings.push(Diagnostic::error(message, span, "no forces act here").help(help));
        return None;
    };
    // Their members are counted first: velocities stand behind the multipliers of all of them.
    let counted = lowering.quantities(Purpose::Other, formulas.rollings.iter())?;
    let all: Vec<Quantity> = constraints.iter().chain(&counted).cloned().collect();
    let following = Following::new(&all, dimension, degrees);
    lowering.context.following = following;
    let written = lowering.quantities(Purpose::Other, formulas.rollings.iter())?;
    let size = written.iter().map(|q| q.functional.unrolled_size()).sum::<usize>();
    if size + h.unrolled_size() > LARGEST {
        let message = format!("a model with rolling constraints has at most {LARGEST} operations");
        let span = written[0].span;
        lowering.findings.push(Diagnostic::error(message, span, "the model is larger"));
        return None;
    }
    let (mut quantities, mut rollings) = (Vec::new(), Vec::new());
    for quantity in written {
        let number = constraints.len() + quantities.len();
        let (composed, is_homogeneous) = match composed(&quantity, h, &following, degrees) {
            Ok(composed) => composed,
            Err(finding) => {
                lowering.findings.push(finding);
                return None;
            }
        };
        let depends = quantity.depends & !expression::VELOCITY | expression::MOMENTUM;
        let functional = quantity.functional.clone();
        rollings.push(Rolling { constraint: number, functional, is_homogeneous });
        quantities.push(Quantity { functional: composed, depends, ..quantity });
    }
    Some((quantities, rollings))
}

/// True if these formulas are sums of products with velocities: they are 0 wherever all velocities are
/// and the other factors have a value.
fn vanish_at_rest(g: &Graph, outputs: &[Node], is_velocity: impl Fn(Input) -> bool) -> bool {
    let mut vanishing: FxHashSet<Node> = FxHashSet::default();
    // Arguments come before what is made of them.
    for node in g.reachable(outputs) {
        let at_rest = |node| vanishing.contains(&node);
        let vanishes = match g.expression(node) {
            Expression::Input(input) => is_velocity(input),
            Expression::Unary(Unary::Neg, a) => at_rest(a),
            Expression::Binary(Binary::Add | Binary::Sub, a, b) => at_rest(a) && at_rest(b),
            Expression::Binary(Binary::Mul, a, b) => at_rest(a) || at_rest(b),
            Expression::Binary(Binary::Div, a, _) => at_rest(a),
            Expression::Select(_, a, b) => at_rest(a) && at_rest(b),
            _ => g.is_zero(node),
        };
        if vanishes {
            vanishing.insert(node);
        }
    }
    outputs.iter().all(|output| vanishing.contains(output))
}

/// A rolling constraint with H_p in the place of the velocities, and true if it is linear in them.
///
/// # Errors
/// If it is not affine in the velocities.
fn composed(
    quantity: &Quantity,
    h: &Functional,
    following: &Following,
    degrees: usize,
) -> Result<(Functional, bool), Diagnostic> {
    let mut g = Graph::new();
    let outputs = quantity.functional.unroll(&mut g);
    let is_velocity =
        |input: Input| matches!(input, Input::State(k) if (k as usize) >= following.velocities);
    for &output in &outputs {
        let slopes: Vec<Node> =
            g.adjoint(output, is_velocity).into_iter().map(|(_, d)| d).collect();
        let reads = |node: Node| matches!(g.expression(node), Expression::Input(input) if is_velocity(input));
        if g.reachable(&slopes).into_iter().any(reads) {
            let message =
                format!("rolling constraint '{}' is not affine in the velocities", quantity.name);
            let label = "a velocity stands in a product or a function";
            return Err(Diagnostic::error(message, quantity.span, label)
                .help("d'Alembert's principle gives the forces of A(q, t) q' + b(q, t) = 0 only"));
        }
    }
    let is_homogeneous = vanish_at_rest(&g, &outputs, is_velocity);
    let energy = h.unroll(&mut g)[0];
    let gradient = g.gradient(energy);
    let velocities = momentum_derivatives(&mut g, &gradient, degrees);
    let composed =
        quantity.functional.unroll_over(&mut g, &mut |g, k| following.node(g, k, &velocities));
    Ok((Functional::of_nodes(&g, &composed, quantity.span), is_homogeneous))
}
