//! Models on which the methods are tested, with their constraints and energies typed again, and the
//! methods that suit them.

use crate::common::{load_with, repository};
use holonome::method::{Method, Needs};
use holonome::{Problem, RunOptions, Simulation, StepSize, prepare};

/// A model at its start.
pub struct Case {
    /// Model file, relative to the folder `suite`.
    pub path: &'static str,
    /// Initial values other than the file's.
    pub set: &'static [(&'static str, &'static str)],
    /// The constraints, then their hidden constraints.
    pub restrictions: fn(f64, &[f64]) -> Vec<f64>,
    /// The energy H.
    pub energy: fn(&[f64]) -> f64,
    /// Step at which a method of order 2 errs by about a thousandth.
    pub h: f64,
    /// True if H is a sum of parts with known flows.
    pub flows: bool,
    /// True if H = ½ pᵀM⁻¹p + V with a constant M.
    pub natural: bool,
    /// Term of V that is declared stiff.
    pub stiff: Option<&'static str>,
}

impl Case {
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap().strip_suffix(".holo").unwrap()
    }

    pub fn problem(&self) -> Problem {
        load_with(&repository().join("suite").join(self.path), self.set, self.stiff).unwrap()
    }

    pub fn start(&self) -> Vec<f64> {
        self.problem().model.initial.clone()
    }

    /// Simulation of a method; its time does not affect the map. A heat bath has no friction, so
    /// that the map is deterministic.
    pub fn with(&self, method: &str) -> Simulation {
        let method: Method = method.parse().unwrap();
        let bath = (method.scheme.needs == Needs::HeatBath).then_some((0.0, 1.0));
        let options = RunOptions {
            method,
            step: StepSize::Fixed(0.5),
            until: 1.0,
            friction: bath.map(|(friction, _)| friction),
            inverse_temperature: bath.map(|(_, inverse_temperature)| inverse_temperature),
            ..RunOptions::default()
        };
        prepare(self.problem(), options)
            .unwrap_or_else(|error| panic!("{method}, {}: {error}", self.name()))
    }

    pub fn constrained(&self) -> bool {
        !(self.restrictions)(0.0, &self.start()).is_empty()
    }

    pub fn rolls(&self) -> bool {
        ROLLING.contains(&self.name())
    }

    /// True for a Poisson system: its state is no (q, p).
    pub fn is_poisson(&self) -> bool {
        brackets(self.name(), &[]).is_some()
    }

    /// True if a scheme that needs this of a model can run here. Every new kind of need has to be
    /// added.
    pub fn serves(&self, needs: Needs) -> bool {
        if self.name() == PLANETS {
            return matches!(needs, Needs::KeplerFlows(_));
        }
        match needs {
            Needs::Field | Needs::Series | Needs::Canonical | Needs::Hamiltonian => {
                !self.constrained() && !self.is_poisson()
            }
            Needs::Coisotropic => self.constrained() && !self.rolls(),
            Needs::Rolling => self.rolls(),
            Needs::Poisson | Needs::PoissonFlows => self.is_poisson(),
            Needs::Flows => self.flows,
            Needs::KeplerFlows(_) => self.name() == "kepler",
            Needs::Body => BODIES.contains(&self.name()),
            Needs::FreeBody => self.name() == "matrix-rigid-body",
            Needs::Natural | Needs::HeatBath => self.natural,
            Needs::Stiff => self.stiff.is_some(),
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn none(_: f64, _: &[f64]) -> Vec<f64> {
    Vec::new()
}

/// Case with several motions of Kepler, for methods that need them.
pub const PLANETS: &str = "two-planets";

/// Cases that are rigid bodies.
pub const BODIES: [&str; 4] = ["matrix-rigid-body", "magnetic-body", "heavy-top", "tilted-top"];

/// Cases with rolling constraints.
pub const ROLLING: [&str; 2] = ["knife-edge", "edge-on-a-sphere"];

/// hat(v), row by row.
fn hat(v: &[f64]) -> [[f64; 3]; 3] {
    [[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]]
}

/// Matrix J of a Poisson system, typed again; `None` for other models. Without a state it is one of
/// none.
pub fn brackets(name: &str, x: &[f64]) -> Option<Vec<Vec<f64>>> {
    let at = |k: usize| x.get(k).copied().unwrap_or(0.0);
    let mut j = vec![vec![0.0; x.len()]; x.len()];
    let mut set = |(a, b): (usize, usize), value: f64| {
        if b < x.len() {
            (j[a][b], j[b][a]) = (value, -value);
        }
    };
    let mut spins = |c: [f64; 3]| {
        for (i, c) in (0..3).zip(c) {
            let s = hat(&[at(3 * i), at(3 * i + 1), at(3 * i + 2)]);
            for (a, b) in [(0, 1), (0, 2), (1, 2)] {
                set((3 * i + a, 3 * i + b), s[a][b] / c);
            }
        }
    };
    match name {
        "three-species" => {
            set((0, 1), 1.5 * at(0) * at(1));
            set((0, 2), -0.8 * at(0) * at(2));
            set((1, 2), 1.1 * at(1) * at(2));
        }
        "top-by-brackets" => {
            let (m, g) = (hat(&[at(0), at(1), at(2)]), hat(&[at(3), at(4), at(5)]));
            for (a, b) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
                if a < b {
                    set((a, b), m[a][b]);
                }
                set((a, 3 + b), g[a][b]);
            }
        }
        "sphere-vortices" => spins([1.0, -0.6, 1.7]),
        "spin-ring" => spins([1.0; 3]),
        "plane-vortices" => {
            for (i, c) in [1.0, -1.0, 1.7].into_iter().enumerate() {
                set((2 * i, 2 * i + 1), 1.0 / c);
            }
        }
        "pendulum-by-brackets" => set((0, 1), 1.0),
        "flaschka" => {
            for i in 0..2 {
                set((i, 2 + i), -at(i));
                set((i, 3 + i), at(i));
            }
        }
        _ => return None,
    }
    Some(j)
}

/// QᵀQ = 1, or its rows' products, and their rates, for x = (Q, P) with Q' = P J⁻¹.
fn orthogonal(x: &[f64], inverse_mass: [[f64; 3]; 3]) -> Vec<f64> {
    let (q, p) = x.split_at(9);
    let v: Vec<f64> = (0..9)
        .map(|k| (0..3).map(|j| p[k / 3 * 3 + j] * inverse_mass[j][k % 3]).sum::<f64>())
        .collect();
    let column = |m: &[f64], j: usize| [m[j], m[3 + j], m[6 + j]];
    let pairs = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)];
    let product = |(i, j): (usize, usize)| dot(&column(q, i), &column(q, j)) - f64::from(i == j);
    let rate = |(i, j): (usize, usize)| {
        dot(&column(&v, i), &column(q, j)) + dot(&column(q, i), &column(&v, j))
    };
    pairs.iter().map(|&pair| product(pair)).chain(pairs.iter().map(|&pair| rate(pair))).collect()
}

fn diagonal(j: [f64; 3]) -> [[f64; 3]; 3] {
    [[1.0 / j[0], 0.0, 0.0], [0.0, 1.0 / j[1], 0.0], [0.0, 0.0, 1.0 / j[2]]]
}

/// Σ P² / 2J
fn kinetic(x: &[f64], j: [f64; 3]) -> f64 {
    (0..9).map(|k| x[9 + k] * x[9 + k] / (2.0 * j[k % 3])).sum()
}

/// The inverse of the mass moments of the tilted top, times their determinant 0.599.
const TILTED: [[f64; 3]; 3] = [[0.54, -0.17, 0.15], [-0.17, 0.83, -0.38], [0.15, -0.38, 1.04]];

/// All models: without constraints, separable or not; g(q), also with time and with H that is not
/// separable; g(q, p) with linear and with curved fibres, one and two of them; spheres; rolling.
pub static CASES: &[Case] = &[
    Case {
        path: "../models/henon-heiles.holo",
        set: &[],
        restrictions: none,
        energy: |x| dot(x, x) / 2.0 + x[0] * x[0] * x[1] - x[1].powi(3) / 3.0,
        h: 0.1,
        flows: true,
        natural: true,
        stiff: None,
    },
    Case {
        path: "../models/kepler.holo",
        set: &[("v", "(0.1, 1.1, 0.2)")],
        restrictions: none,
        energy: |x| dot(&x[3..], &x[3..]) / 2.0 - 1.0 / dot(&x[..3], &x[..3]).sqrt(),
        h: 0.05,
        flows: true,
        natural: true,
        stiff: None,
    },
    Case {
        path: "structure/two-planets.holo",
        set: &[],
        restrictions: none,
        energy: |_| f64::NAN,
        h: 0.1,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "../models/double-pendulum-angles.holo",
        set: &[("a", "0.3"), ("b", "-0.2")],
        restrictions: none,
        energy: |x| {
            let (l2, c) = (2f64.sqrt(), (x[0] - x[1]).cos());
            // The inverse of the mass matrix (2, l c; l c, l²).
            let (a, b, d) = (2.0, l2 * c, 2.0);
            let kinetic =
                (d * x[2] * x[2] - 2.0 * b * x[2] * x[3] + a * x[3] * x[3]) / (a * d - b * b) / 2.0;
            kinetic - 2.0 * x[0].cos() - l2 * x[1].cos()
        },
        h: 0.1,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "models/magnetic-particle.holo",
        set: &[],
        restrictions: none,
        energy: |x| {
            let v = [x[3] + 0.75 * x[1], x[4] - 0.75 * x[0], x[5]];
            dot(&v, &v) / 2.0 - 0.4 * x[0]
        },
        h: 0.1,
        flows: false,
        natural: false,
        stiff: None,
    },
    // H of these is not an invariant.
    Case {
        path: "structure/forced-pendulum.holo",
        set: &[],
        restrictions: none,
        energy: |_| f64::NAN,
        h: 0.05,
        flows: true,
        natural: false,
        stiff: None,
    },
    // A full mass matrix.
    Case {
        path: "structure/sprung-masses.holo",
        set: &[],
        restrictions: none,
        energy: |_| f64::NAN,
        h: 0.05,
        flows: true,
        natural: true,
        stiff: Some("stiff"),
    },
    // T(p) with more than squares, and a polynomial V that contains oscillators.
    Case {
        path: "structure/sliding-oscillator.holo",
        set: &[],
        restrictions: none,
        energy: |x| x[1] * x[1] / 2.0 + 0.3 * x[1] + x[0] * x[0] + x[0].powi(4) / 4.0 - 0.2 * x[0],
        h: 0.05,
        flows: true,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/forced-metric.holo",
        set: &[],
        restrictions: none,
        energy: |_| f64::NAN,
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "../models/spherical-pendulum.holo",
        set: &[],
        restrictions: |_, x| vec![dot(&x[..3], &x[..3]) - 1.0, 2.0 * dot(&x[..3], &x[3..])],
        energy: |x| dot(&x[3..], &x[3..]) / 2.0 + x[2],
        h: 0.05,
        flows: true,
        natural: false,
        stiff: None,
    },
    Case {
        path: "../models/double-pendulum.holo",
        set: &[("p1", "(0.3, 0)"), ("p2", "(0.1, -0.2)")],
        restrictions: |_, x| {
            let (a, d) = (&x[..2], [x[2] - x[0], x[3] - x[1]]);
            let w = [x[6] - x[4], x[7] - x[5]];
            vec![dot(a, a) - 1.0, dot(&d, &d) - 2.0, 2.0 * dot(a, &x[4..6]), 2.0 * dot(&d, &w)]
        },
        energy: |x| dot(&x[4..], &x[4..]) / 2.0 + x[1] + x[3],
        h: 0.1,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/metric-pendulum.holo",
        set: &[],
        restrictions: |_, x| {
            let (q, p) = x.split_at(3);
            let metric = 1.0 + q[0] * q[0] / 2.0;
            vec![dot(q, q) - 1.0, 2.0 * (metric * dot(q, p) + 0.2 * q[2] * q[0])]
        },
        energy: |x| {
            let (q, p) = x.split_at(3);
            (1.0 + q[0] * q[0] / 2.0) * dot(p, p) / 2.0
                + 0.7 * (q[0] * p[1] - q[1] * p[0])
                + 0.2 * q[2] * p[0]
                + q[2]
        },
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/two-spheres.holo",
        set: &[],
        restrictions: |_, x| {
            let (a, b, pa, pb) = (&x[..3], &x[3..6], &x[6..9], &x[9..]);
            vec![dot(a, a) - 1.0, dot(b, b) - 0.64, 2.0 * dot(a, pa), dot(b, pb)]
        },
        energy: |x| {
            let (a, b, pa, pb) = (&x[..3], &x[3..6], &x[6..9], &x[9..]);
            let d = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
            dot(pa, pa) / 2.0 + dot(pb, pb) / 4.0 + a[2] + 2.0 * b[2] + dot(&d, &d) / 4.0
        },
        h: 0.05,
        flows: true,
        natural: false,
        stiff: None,
    },
    Case {
        path: "models/driven-pendulum.holo",
        set: &[],
        restrictions: |t, x| {
            let d = [x[0] - 0.4 * (1.5 * t).sin(), x[1]];
            let w = [x[2] - 0.4 * 1.5 * (1.5 * t).cos(), x[3]];
            vec![dot(&d, &d) - 1.0, 2.0 * dot(&d, &w)]
        },
        energy: |x| dot(&x[2..], &x[2..]) / 2.0 + x[1],
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "models/hopf-oscillator.holo",
        // Away from |q| = |p|, where the multiplier is not determined.
        set: &[("q", "(0.96, 0)"), ("p", "(0, 0.28)")],
        restrictions: |_, x| vec![dot(x, x) - 1.0, 2.0 * dot(&x[..2], &x[2..])],
        energy: |x| dot(&x[2..], &x[2..]) / 2.0,
        h: 0.1,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "models/hopf-pendulum.holo",
        set: &[],
        // {g, H} = 2 q·p + 2 p·γ
        restrictions: |_, x| vec![dot(x, x) - 1.0, 2.0 * (dot(&x[..2], &x[2..]) - x[3])],
        energy: |x| dot(&x[2..], &x[2..]) / 2.0 + x[1],
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/hopf-pair.holo",
        set: &[],
        restrictions: |_, x| {
            let (a, b, pa, pb) = (&x[..2], &x[2..4], &x[4..6], &x[6..]);
            let s = 0.3 * dot(a, b);
            let (va, vb) = ([s * b[0] - 0.2, s * b[1]], [s * a[0], s * a[1] - 0.1]);
            vec![
                dot(a, a) + dot(pa, pa) - 1.0,
                2.0 * dot(b, b) + dot(pb, pb) / 2.0 - 1.0,
                2.0 * dot(a, pa) - 2.0 * dot(pa, &va),
                4.0 * dot(b, pb) - dot(pb, &vb),
            ]
        },
        energy: |x| {
            dot(&x[4..], &x[4..]) / 2.0 + 0.15 * dot(&x[..2], &x[2..4]).powi(2)
                - 0.2 * x[0]
                - 0.1 * x[3]
        },
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/curved-fibre.holo",
        set: &[],
        restrictions: |_, x| {
            let (q, p) = x.split_at(3);
            let g =
                dot(x, x) + 0.3 * (q[0] * p[1]).powi(2) + 0.2 * q[0].powi(3) + 0.1 * p[2].powi(3)
                    - 0.89048;
            let g_q =
                [2.0 * q[0] + 0.6 * q[0] * p[1] * p[1] + 0.6 * q[0] * q[0], 2.0 * q[1], 2.0 * q[2]];
            let g_p =
                [2.0 * p[0], 2.0 * p[1] + 0.6 * q[0] * q[0] * p[1], 2.0 * p[2] + 0.3 * p[2] * p[2]];
            let h_q = [-0.5, 0.3 * q[1] + 0.2 * q[2] * q[2], 0.4 * q[1] * q[2]];
            vec![g, dot(&g_q, p) - dot(&g_p, &h_q)]
        },
        energy: |x| {
            let (q, p) = x.split_at(3);
            dot(p, p) / 2.0 - 0.5 * q[0] + 0.15 * q[1] * q[1] + 0.2 * q[1] * q[2] * q[2]
        },
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/twisted-pair.holo",
        set: &[],
        restrictions: |_, x| {
            let (q, p) = x.split_at(3);
            let r2 = q[0] * q[0] + q[1] * q[1];
            let g_q = [2.0 * q[0] + 0.8 * r2 * q[0], 2.0 * q[1] + 0.8 * r2 * q[1], 2.0 * q[2]];
            let h_q = [-0.5, 0.2 * q[2], 0.2 * q[1] + 0.6 * q[2]];
            vec![
                dot(x, x) + 0.2 * r2 * r2 - 0.85192,
                q[0] * p[1] - q[1] * p[0] - 0.24,
                dot(&g_q, p) - 2.0 * dot(p, &h_q),
                q[1] * h_q[0] - q[0] * h_q[1],
            ]
        },
        energy: |x| {
            dot(&x[3..], &x[3..]) / 2.0 - 0.5 * x[0] + 0.2 * x[1] * x[2] + 0.3 * x[2] * x[2]
        },
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    // Rotation matrices: a free body, one with three equal moments of inertia, one in a potential,
    // and one whose frame is not that of the principal axes.
    Case {
        path: "models/matrix-rigid-body.holo",
        set: &[],
        restrictions: |_, x| orthogonal(x, diagonal([3.0, 2.0, 1.0])),
        energy: |x| kinetic(x, [3.0, 2.0, 1.0]),
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "../models/magnetic-body.holo",
        set: &[],
        restrictions: |_, x| orthogonal(x, diagonal([0.5; 3])),
        energy: |x| kinetic(x, [0.5; 3]) + x[8],
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "../models/heavy-top.holo",
        set: &[],
        restrictions: |_, x| orthogonal(x, diagonal([0.25, 0.75, 1.25])),
        energy: |x| kinetic(x, [0.25, 0.75, 1.25]) + x[8],
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    // H of this is not an invariant.
    Case {
        path: "structure/tilted-top.holo",
        set: &[],
        restrictions: |_, x| orthogonal(x, TILTED.map(|row| row.map(|entry| entry / 0.599))),
        energy: |_| f64::NAN,
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/knife-edge.holo",
        set: &[],
        restrictions: |_, x| vec![(x[2].sin() * x[3] - x[2].cos() * x[4]) / 2.0],
        energy: |x| {
            dot(&x[3..5], &x[3..5]) / 4.0 + x[5] * x[5] + dot(&x[..2], &x[..2]) - 0.6 * x[2].cos()
        },
        h: 0.1,
        flows: false,
        natural: false,
        stiff: None,
    },
    // H of this is not an invariant.
    Case {
        path: "structure/edge-on-a-sphere.holo",
        set: &[],
        restrictions: |t, x| {
            let (q, p) = (&x[..3], &x[4..7]);
            let metric = 1.0 + q[0] * q[0] / 2.0;
            let v = [metric * p[0] + 0.2 * q[2], metric * p[1], metric * p[2]];
            let blade = q[2] * v[0] - x[3].cos() * v[1] - 0.3 * t.sin() - 0.1;
            vec![dot(q, q) - 1.0, 2.0 * dot(q, &v), blade]
        },
        energy: |_| f64::NAN,
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    // Poisson systems.
    Case {
        path: "structure/pendulum-by-brackets.holo",
        set: &[],
        restrictions: none,
        energy: |_| f64::NAN,
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/three-species.holo",
        set: &[],
        restrictions: none,
        energy: |x| x[0] + x[1] + x[2] - x[0].ln() - 0.5 * x[1].ln(),
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/top-by-brackets.holo",
        set: &[],
        restrictions: none,
        energy: |_| f64::NAN,
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/sphere-vortices.holo",
        set: &[],
        restrictions: none,
        energy: |x| {
            let c = [1.0, -0.6, 1.7];
            let term = |(i, j): (usize, usize)| {
                let product = dot(&x[3 * i..3 * i + 3], &x[3 * j..3 * j + 3]);
                -c[i] * c[j] * (2.0 - 2.0 * product).ln() / 3.0
            };
            [(0, 1), (0, 2), (1, 2)].map(term).iter().sum()
        },
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/plane-vortices.holo",
        set: &[],
        restrictions: none,
        energy: |x| {
            let c = [1.0, -1.0, 1.7];
            let term = |(i, j): (usize, usize)| {
                let distance = (x[2 * i] - x[2 * j]).hypot(x[2 * i + 1] - x[2 * j + 1]);
                -c[i] * c[j] * distance.ln() / 2.0
            };
            [(0, 1), (0, 2), (1, 2)].map(term).iter().sum()
        },
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/spin-ring.holo",
        set: &[],
        restrictions: none,
        energy: |x| {
            let s = |i: usize| &x[3 * (i % 3)..3 * (i % 3) + 3];
            let site = |i: usize| -dot(s(i), s(i + 1)) - 0.4 * (i as f64 + 1.0) * s(i)[2].powi(2);
            (0..3).map(site).sum()
        },
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
    Case {
        path: "structure/flaschka.holo",
        set: &[],
        restrictions: none,
        energy: |x| 2.0 * dot(&x[..2], &x[..2]) + dot(&x[2..], &x[2..]),
        h: 0.05,
        flows: false,
        natural: false,
        stiff: None,
    },
];

pub fn case(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name() == name).unwrap()
}

/// Largest component of a − b.
pub fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

pub fn largest(list: &[f64]) -> f64 {
    list.iter().fold(0.0, |largest, x| x.abs().max(largest))
}

/// True if a number is below a bound; false for NaN.
pub fn below(number: f64, bound: f64) -> bool {
    number < bound
}
