//! A user's own step: a splitting of order 4 with a tenth of the errors of Yoshida's, written as in
//! its paper.
//!
//! The position-extended Forest–Ruth-like method (Omelyan, Mryglod, Folk, Comput. Phys. Commun. 146
//! (2002) 188) alternates drifts and kicks, for H = T(p) + V(q). The engine compiles the function
//! below to machine code, monitors the energy along the run and reports failures, as for its own
//! methods.
//!
//! ```sh
//! cargo run --release -p holonome --example own_step
//! ```

use holonome::method::{Method, Needs, Scheme, SchemeFacts, Step};
use holonome::phase_space::{PhaseSpace, Value};
use holonome::{Problem, RunOptions, StepSize, prepare};
use std::error::Error;

/// ξ, λ and χ of the paper's (22).
const XI: f64 = 0.1786178958448091;
const LAMBDA: f64 = -0.2123418310626054;
const CHI: f64 = -0.0662645826698185;

static PEFRL: Scheme = Scheme {
    name: "pefrl",
    other_names: &[],
    needs: Needs::Hamiltonian,
    description: "position-extended Forest-Ruth-like splitting of order 4",
    citation: "Omelyan, Mryglod, Folk, Comput. Phys. Commun. 146 (2002) 188",
    file: include_str!("own_step.rs"),
    step: Step::Map(pefrl, FACTS),
};

const FACTS: SchemeFacts =
    SchemeFacts { order: 4, symmetric: true, symplectic: true, explicit: true };

/// Map of a step of length h from (t, x), x = (q, p).
fn pefrl(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (mut q, mut p) = (x[..space.degrees()].to_vec(), x[space.degrees()..].to_vec());
    let kicks = [(1.0 - 2.0 * LAMBDA) / 2.0, LAMBDA, LAMBDA, (1.0 - 2.0 * LAMBDA) / 2.0, 0.0];
    let drifts = [XI, CHI, 1.0 - 2.0 * (CHI + XI), CHI, XI];
    for (drift, kick) in drifts.into_iter().zip(kicks) {
        let v = space.h_p(t, &[&q[..], &p[..]].concat());
        let length = space.scaled(drift, h);
        q = space.moved(&q, length, &v);
        if kick != 0.0 {
            let force = space.h_q(t, &[&q[..], &p[..]].concat());
            let length = space.scaled(-kick, h);
            p = space.moved(&p, length, &force);
        }
    }
    [q, p].concat()
}

const HENON_HEILES: &str = "
    coordinate q : R^2 = (0, 0.1)
    momentum   p of q  = (0.49057, 0)
    hamiltonian (dot(p, p) + dot(q, q))/2 + q.x^2*q.y - q.y^3/3
";

/// Run both splittings at three steps, print their errors, and check the order of the new one.
pub fn main() -> Result<(), Box<dyn Error>> {
    let problem: Problem = HENON_HEILES.parse()?;
    let drift = |method: Method, h: f64| -> Result<f64, Box<dyn Error>> {
        let step = StepSize::Fixed(h);
        let options =
            RunOptions { method, step, until: 1000.0, samples: Some(2), ..RunOptions::default() };
        Ok(prepare(problem.clone(), options)?.solve()?.summary.drift[0].max)
    };

    println!(
        "largest error of H in 1000 units of time\n{:>6} {:>28} {:>9}",
        "step", "yoshida4(stormer-verlet-a)", "pefrl"
    );
    let (yoshida, own) = ("yoshida4(stormer-verlet-a)".parse()?, Method::plain(&PEFRL));
    let mut orders = Vec::new();
    for h in [0.2, 0.1, 0.05] {
        let (known, new) = (drift(yoshida, h)?, drift(own, h)?);
        println!("{h:6} {known:28.1e} {new:9.1e}");
        orders.push((new / drift(own, h / 2.0)?).log2());
        assert!(new < known / 5.0, "{new:e} is hardly below {known:e}");
    }
    assert!(orders.iter().all(|order| (order - 4.0).abs() < 0.5), "{orders:?}");
    Ok(())
}
