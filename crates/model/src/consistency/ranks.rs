//! Check for constraints whose gradients or brackets are rank deficient.

use crate::elaborate::model::Model;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::treatment::structure::Irregular;
use holonome_linear::gram::Gram;

/// Reports constraints whose gradients, in the units of the state's components, depend on those of the others at a
/// state on the constraint set.
pub(super) fn redundancy<R: AsRef<[(u32, f64)]>>(model: &Model, rows: &[R], out: &mut Vec<Diagnostic>) {
    // In their own order the constraints of a tree fill in the factor, so the test takes another order.
    if Gram::new(rows, 0.0).dependent().is_empty() {
        return;
    }
    let gram = Gram::in_order(rows);
    let owner: Vec<(usize, usize)> = model
        .constraints
        .iter()
        .enumerate()
        .flat_map(|(k, q)| (0..q.members).flat_map(move |m| std::iter::repeat_n((k, m), q.components.len())))
        .collect();
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

pub(super) fn irregular(model: &Model, reason: &Irregular) -> Diagnostic {
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
