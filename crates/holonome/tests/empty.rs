//! Families without members change nothing, wherever they stand: every method, by itself and in an
//! ensemble, gives the numbers that it gives without them.

mod common;

use common::options;
use holonome::{Error, Problem, RunOptions, Settings, SweepOptions, prepare, prepare_sweep};
use std::collections::BTreeMap;

/// An oscillator, a pendulum, a field, a templated ring and a templated chain, each with what it is
/// without families that have no members (lines that begin with `~`), and with them.
const MODELS: [&str; 5] = [
    "~coordinate y[i in 1..0] = i\n~momentum v of y\ncoordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 0.5)\n\
     ~coordinate z[i in 1..0] : R^3 = (i, 0, 0)\n~momentum u of z\nhamiltonian dot(p, p)/2 + dot(q, q)^2/2\n\
     ~integral first[i in 1..0] = q.x*i\nintegral J = q.x*p.y - q.y*p.x\n~integral last[i in 1..0] = q.x*i\n\
     ~observe none[i in 1..0] = z[i].x\n",
    "coordinate q : R^2 = (0.6, -0.8)\nmomentum p of q = (0.4, 0.3)\n~coordinate z[i in 1..0] : R^2 = (i, 0)\n\
     ~momentum u of z\nhamiltonian dot(p, p)/2 + q.y\n~constraint first[i in 1..0] : q.x = i\n\
     constraint rod : dot(q, q) = 1\n~constraint last[i in 1..0] : z[i].x = i\n~integral none[i in 1..0] = q.x*i\n",
    "~state y[i in 1..0] = i\nstate x : R^2 = (1, 0)\n~state w[i in 1..0] : R^2 = (i, i)\n~y[i]' = -y[i]\n\
     x' = (x.y, -x.x)\n~w[i]' = w[i]\nintegral square = dot(x, x)\n~integral none[i in 1..0] = x.x*i\n",
    "size n = 400\n~coordinate y[i in 1..0] = i\n~momentum v of y\ncoordinate q[i in 1..n] = 0.3*sin(i)\n\
     momentum p of q = 0.2*cos(2*i)\n~coordinate z[i in 1..0] = i\n~momentum u of z\n\
     let next(i) = if(i == n, q[1], q[i + 1])\n\
     hamiltonian sum(i in 1..n : p[i]^2/2) + sum(i in 1..n : 1 - cos(next(i) - q[i]) + next(i)^4/9)\n\
     ~integral none[i in 1..0] = q[i]\n",
    "size n = 100\ncoordinate q[i in 1..n] : R^2 = (i, 0)\nmomentum p of q\n~coordinate z[i in 1..0] : R^2 = (i, 0)\n\
     ~momentum u of z\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + q[i].y)\n\
     ~constraint first[i in 1..0] : z[i].x = i\nconstraint top : dot(q[1], q[1]) = 1\n\
     constraint link[i in 2..n] : dot(q[i] - q[i-1], q[i] - q[i-1]) = 1\n~constraint last[i in 1..0] : q[i].x = i\n",
];

const METHODS: [&str; 22] = [
    "plain:rk4 --step 0.01",
    "corrected:rk4 --step 0.01",
    "projection:rk4 --step 0.01",
    "symmetric-projection:rk4 --step 0.01",
    "feedback:rk4 --step 0.01",
    "plain:dop853",
    "corrected:dop853",
    "projection:dopri5",
    "feedback:dop853",
    "gauss8",
    "gauss16",
    "corrected:gauss16",
    "gauss8 --step 0.01",
    "corrected:gauss16 --step 0.01",
    "radau5",
    "corrected:radau5 --step 0.01",
    "taylor",
    "corrected:taylor --step 0.01",
    "stormer-verlet-a --step 0.01",
    "rattle --step 0.01",
    "gauss4 --step 0.01",
    "implicit-midpoint --step 0.01",
];

/// Text of a model with families that have no members, or without.
fn text(model: &str, with: bool) -> String {
    let lines = model.lines().filter(|line| with || !line.starts_with('~'));
    lines.map(|line| format!("{}\n", line.trim_start_matches('~'))).collect()
}

/// Bits of all stored arrays by name, of a run or of an ensemble; the message of an error.
fn bits(
    text: &str,
    options: &RunOptions,
    trajectories: Option<u64>,
) -> Result<BTreeMap<String, Vec<u64>>, String> {
    let problem =
        Problem::from_text("empty", text, &BTreeMap::new(), &Settings::default()).unwrap();
    let solved = || -> Result<_, Error> {
        Ok(match trajectories {
            None => prepare(problem, options.clone())?.solve()?.arrays,
            Some(trajectories) => {
                let sweep = SweepOptions { trajectories, ..SweepOptions::default() };
                prepare_sweep(&problem, options.clone(), sweep)?.solve()?.arrays
            }
        })
    };
    let arrays = solved().map_err(|error| error.to_string())?;
    let of_name = |name: &str| {
        (name.to_string(), arrays[name].values().iter().map(|x| x.to_bits()).collect())
    };
    Ok(arrays.names().map(of_name).collect())
}

/// Check that a model has the same numbers with families that have no members as without.
fn same(model: &str, method: &str, trajectories: Option<u64>) {
    let options = options(&format!("--until 0.1 --samples 3 --method {method}"));
    let [with, without] =
        [true, false].map(|with| bits(&text(model, with), &options, trajectories));
    match (with, without) {
        (Ok(with), Ok(without)) => {
            for (name, expected) in &without {
                assert!(!expected.is_empty());
                assert_eq!(with.get(name), Some(expected), "{method}, {name}: {model}");
            }
        }
        (with, without) => assert_eq!(with.err(), without.err(), "{method}: {model}"),
    }
}

#[test]
fn families_without_members_change_nothing() {
    MODELS.iter().for_each(|model| METHODS.iter().for_each(|method| same(model, method, None)));
}

#[test]
fn ensembles_take_families_without_members() {
    MODELS[..3]
        .iter()
        .for_each(|model| METHODS.iter().for_each(|method| same(model, method, Some(9))));
}
