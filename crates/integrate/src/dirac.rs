//! `plain`: the field as it is. Of a Hamiltonian with holonomic constraints g it is
//! the Dirac extension, which keeps g and the hidden constraints h first integrals
//! also away from the set where they vanish (Chang, Perlmutter, Vankerschaver 2022,
//! theorem 1):
//!
//! X = X_H + X_{a·h} + X_{b·g}  with  Dg X + g_t = 0,  Dh X + h_t = 0.
//!
//! As {g_i, g_j} = 0, the first gives a, which vanishes where h does, and the
//! second b: two linear systems with the matrix G H_pp Gᵀ.

use crate::phase_space::{Equation, Equations, Guess, Monitored, PhaseSpace, Value};

/// X at (t, x). If `near`, X matters only where g and h vanish: it then has no a, and is the
/// underlying field of index reduction (HLW VII.1.1), which does not keep them elsewhere.
pub fn extended_field(space: &mut dyn PhaseSpace, t: Value, x: &[Value], near: bool) -> Vec<Value> {
    let free = space.field(t, x);
    let size = space.constraint_sizes(t, x, true);
    let rows: Vec<Equation> = (0..size.len()).map(Equation::Hidden).collect();
    let nothing = vec![space.constant(0.0); size.len()];
    let equations = Equations {
        rows: &rows,
        size: &size,
        sweep_size: &[],
        guess: Guess::At(&nothing),
        monitored: Monitored::Never,
        monotone: None,
    };
    let along = if near {
        free
    } else {
        let a = space.solve(&equations, &mut |space, a| {
            let field = space.hidden_field(t, x, a);
            let field = space.plus(&free, &field);
            space.constraint_rates(t, x, &field)
        });
        let along = space.hidden_field(t, x, &a);
        space.plus(&free, &along)
    };
    let b = space.solve(&equations, &mut |space, b| {
        let field = space.constraint_field(t, x, b);
        let field = space.plus(&along, &field);
        space.hidden_rates(t, x, &field)
    });
    let forces = space.constraint_field(t, x, &b);
    space.plus(&along, &forces)
}
