//! Tests that units of length, mass and time do not change the findings about a model.

mod support;

use holonome_model::consistency::{self, Examined};
use holonome_model::elaborate::model::{Dynamics, Model, Role};
use holonome_model::functional::{Functional, Source, Stretches, Term};
use holonome_model::graph::{Graph, Input, Node};
use holonome_model::scales::{Scales, in_units};

/// A change of units: x' = scale · x component by component, t' = time · t.
struct Units {
    scale: Vec<f64>,
    /// Place of the first velocity among the inputs of a force.
    velocities: usize,
    time: f64,
    action: f64,
}

impl Units {
    /// Units that are powers of two; those of conjugate families multiply to the unit of action.
    /// With `own`, families have units of their own.
    fn new(model: &Model, exponents: [i32; 3], own: bool) -> Units {
        let [length, action, time] = exponents.map(|e| 2f64.powi(e));
        let mut scale = vec![1.0; model.dimension()];
        for (k, variable) in model.variables.iter().enumerate() {
            let of = |k: usize| if own { length * 2f64.powi(3 * (k % 3) as i32) } else { length };
            let unit = match variable.role {
                Role::Momentum(coordinate) => action / of(coordinate),
                Role::Work => action / time,
                Role::Coordinate | Role::State => of(k),
            };
            scale[variable.first..variable.first + variable.family.len()].fill(unit);
        }
        Units { scale, velocities: model.following().velocities, time, action }
    }

    /// Unit of an input: a component of the state, or a velocity, which forces read.
    fn unit(&self, input: usize) -> f64 {
        match input.checked_sub(self.velocities) {
            Some(position) => self.scale[position] / self.time,
            None => self.scale.get(input).copied().unwrap_or(1.0),
        }
    }

    /// The functional with its inputs in the old units and its outputs in the new ones.
    fn functional(&self, functional: &Functional, output: &dyn Fn(usize) -> f64) -> Functional {
        let terms = functional.terms.iter().map(|term| self.term(term, output)).collect();
        Functional { outputs: functional.outputs, terms }
    }

    fn term(&self, term: &Term, output: &dyn Fn(usize) -> f64) -> Term {
        let width = term.slots.len() as u32;
        let mut graph = Graph::new();
        let roots = graph.instantiate(&term.graph, &term.roots, |g, input| match input {
            Input::Slot(k) if term.slots[k as usize] == Source::State => {
                let (x, scale) = (g.input(input), g.input(Input::Slot(width + k)));
                g.mul(x, scale)
            }
            Input::Time => {
                let (t, scale) = (g.input(input), g.constant(1.0 / self.time));
                g.mul(t, scale)
            }
            other => g.input(other),
        });
        let roots: Vec<Node> = roots
            .iter()
            .enumerate()
            .map(|(c, &root)| {
                let scale = graph.input(Input::Slot(2 * width + c as u32));
                graph.mul(root, scale)
            })
            .collect();
        let (added, mut numbers) = (term.slots.len() + roots.len(), term.numbers.clone());
        let mut table = Stretches::new(term.table.width() + added);
        for row in term.table.each() {
            let mut entries: Vec<u32> = row.iter().take(term.slots.len()).collect();
            let inverse = term.slots.iter().zip(row.iter()).map(|(source, entry)| match source {
                Source::State => 1.0 / self.unit(entry as usize),
                _ => 1.0,
            });
            let outputs = (0..roots.len()).map(|c| output(row.last() as usize + c));
            for number in inverse.chain(outputs) {
                entries.push(numbers.len() as u32);
                numbers.push(number);
            }
            entries.push(row.last());
            table.push(&entries);
        }
        let slots =
            term.slots.iter().copied().chain(std::iter::repeat_n(Source::Number, added)).collect();
        Term { graph, roots, slots, table, numbers, pairs: None, spans: Default::default() }
    }

    fn model(&self, model: &Model) -> Model {
        let mut changed = model.clone();
        changed.initial.iter_mut().zip(&self.scale).for_each(|(x, scale)| *x *= scale);
        changed.dynamics = match &model.dynamics {
            Dynamics::Hamiltonian(h, span) => {
                Dynamics::Hamiltonian(self.functional(h, &|_| self.action / self.time), *span)
            }
            Dynamics::Field(f) => {
                Dynamics::Field(self.functional(f, &|k| self.scale[k] / self.time))
            }
        };
        let degrees = model.degrees();
        for force in &mut changed.forces {
            let unit = |position: usize| self.scale[degrees + position] / self.time;
            force.functional = self.functional(&force.functional, &unit);
        }
        // Each quantity gets a unit of its own.
        let quantities = changed
            .constraints
            .iter_mut()
            .chain(&mut changed.integrals)
            .chain(&mut changed.observables);
        for (k, quantity) in quantities.enumerate() {
            let unit = 2f64.powi(7 * (k as i32 % 5) - 14);
            quantity.functional = self.functional(&quantity.functional, &|_| unit);
        }
        changed
    }
}

/// Findings without their numbers.
fn verdict(examined: &Examined) -> Vec<String> {
    let all = [&examined.diagnostics, &examined.singular, &examined.off_set, &examined.unverified];
    let words = |text: &str| text.replace(|c: char| c.is_ascii_digit() || ".-e+".contains(c), "");
    let mut verdict: Vec<String> = all
        .iter()
        .flat_map(|list| list.iter())
        .map(|d| format!("{:?} {:?} {}", d.severity, d.span, words(&d.message)))
        .collect();
    verdict.push(format!("varying {:?}, weak {:?}", examined.varying, examined.weak_integrals));
    verdict.push(format!(
        "{:?}, templated: {}",
        examined.field.as_ref().map(|(_, structure)| structure.kind),
        examined.rows.is_some()
    ));
    verdict
}

/// Changes of units, from atoms to planets.
const CHANGES: [[i32; 3]; 4] = [[-33, -113, -40], [40, 147, 20], [0, -60, 0], [-12, 9, 31]];

fn says_the_same(name: &str, model: &Model) {
    // Formulas that are changed have no places in the text any more, so they are compared with such
    // ones.
    let expected = verdict(&consistency::examine(&Units::new(model, [0; 3], false).model(model)));
    for exponents in CHANGES {
        for own in [true, false] {
            let changed = Units::new(model, exponents, own).model(model);
            assert_eq!(
                verdict(&consistency::examine(&changed)),
                expected,
                "{name} in units 2^{exponents:?}, {own}"
            );
        }
        let units = Units::new(model, exponents, false);
        let changed = units.model(model);
        // Scales are the same numbers in other units, bit for bit.
        let sizes = |model: &Model| {
            let scales = Scales::new(model);
            [scales.sizes(&model.initial), scales.units(&model.initial)].concat()
        };
        let twice = [units.scale.clone(), units.scale].concat();
        for ((old, new), unit) in sizes(model).iter().zip(sizes(&changed)).zip(twice) {
            // A component without a size has the scale 1.
            assert!(
                old * unit == new || (*old == 1.0 && new == 1.0),
                "{name}: {old:e}·{unit:e} is not {new:e}"
            );
        }
    }
}

#[test]
fn every_model_is_judged_alike_in_all_units() {
    for folder in ["models", "suite/models"] {
        for (name, text) in support::files(folder) {
            let model = support::check_in(folder, &text).0.unwrap_or_else(|| panic!("{name}"));
            says_the_same(&name, &model);
        }
    }
}

#[test]
fn large_models_are_judged_alike_in_all_units() {
    for (name, set) in
        [("chain", "n=2000"), ("fpu", "n=20000"), ("ring", "n=4000"), ("dna", "n=20000")]
    {
        let text = support::file(&format!("models/{name}.holo"));
        let (model, found) =
            support::check_with(&text, &|_| Err(String::new()), &[set.split_once('=').unwrap()]);
        let model = model.unwrap_or_else(|| panic!("{name}: {found:?}"));
        assert!(consistency::examine(&model).rows.is_some(), "{name} is not templated");
        says_the_same(name, &model);
    }
}

#[test]
fn faulty_models_are_found_in_all_units() {
    let mut examined = 0;
    let folder = format!("{}/../../suite/errors", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // One of the files is not text.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        // Whether constraints are singular at their start only is judged at points beside it, at
        // distances of the size of the positions. This one starts at the origin, without any
        // length.
        let has_no_length = name == "constraints-singular-start.holo";
        if let Some(model) =
            support::check_with(&text, &|_| Err(String::new()), &[]).0.filter(|_| !has_no_length)
        {
            says_the_same(&name, &model);
            examined += 1;
        }
    }
    assert!(examined >= 20, "{examined}");
}

/// A pendulum with a rod of length l, mass m, and gravity g, started at a part of its length.
fn pendulum(l: &str, m: &str, g: &str, start: &str, momentum: &str) -> Model {
    support::model(&format!(
        "parameter l = {l}\nparameter m = {m}\nparameter g = {g}\ncoordinate q : R^3 = {start}\nmomentum p of q = {momentum}\nhamiltonian dot(p, p)/(2*m) + m*g*q.z\nconstraint rod : dot(q, q) = l^2\n"
    ))
}

#[test]
fn a_start_off_its_rod_is_refused_for_rods_of_every_length() {
    for l in ["1e-9", "1e-6", "1", "1e9"] {
        for m in ["1e-27", "1", "1e30"] {
            for g in ["9.81", "0"] {
                let found = |start: &str, momentum: &str| {
                    consistency::examine(&pendulum(l, m, g, start, momentum)).off_set.len()
                };
                assert_eq!(found("(0.6*l, 0, -0.8*l)", "(0, m*l, 0)"), 0, "{l} {m}");
                // A start off by 1e-6 of the length is not rounding; nor is one at 0, off by the
                // length, or far too large.
                for factor in ["0.6000005", "0", "1.6", "1e3"] {
                    assert_eq!(
                        found(&format!("({factor}*l, 0, -0.8*l)"), "(0, 0, 0)"),
                        1,
                        "{l} {m} {factor}"
                    );
                }
                assert_eq!(found("(0, 0, 0)", "(0, 0, 0)"), 1, "{l} {m}: at the anchor");
                // The hidden constraint likewise; a momentum that is rounding relative to the
                // others is met.
                assert_eq!(found("(0.6*l, 0, -0.8*l)", "(m*l, 0, 0)"), 1, "{l} {m}");
                assert_eq!(found("(0.6*l, 0, -0.8*l)", "(1e-4*m*l, 0, 0)"), 1, "{l} {m}");
                assert_eq!(found("(l, 0, 0)", "(1e-16*m*l, m*l, 0)"), 0, "{l} {m}");
            }
        }
    }
    // A momentum of rounding alone, relative to what gravity would make of it.
    assert_eq!(
        consistency::examine(&pendulum("1", "1", "9.81", "(1, 0, 0)", "(1e-16, 0, 0)"))
            .off_set
            .len(),
        0
    );
}

#[test]
fn a_rod_far_from_the_origin_is_measured_from_its_end() {
    // The rounding of a rod of length 1 at a distance of 1e6 is 1e-10 of the rod: a start off by a
    // thousandth is not rounding.
    let text = |x: &str| {
        format!(
            "coordinate a : R^2 = (1e6, 0)\ncoordinate b : R^2 = ({x}, 1)\nmomentum p of a\nmomentum s of b\nhamiltonian (dot(p, p) + dot(s, s))/2\nconstraint rod : dot(a - b, a - b) = 1\n"
        )
    };
    assert!(consistency::examine(&support::model(&text("1e6"))).off_set.is_empty());
    assert!(
        consistency::examine(&support::model(&text("1e6 + 1e-5"))).off_set.is_empty(),
        "the square of 1e-5"
    );
    assert_eq!(consistency::examine(&support::model(&text("1e6 + 0.1"))).off_set.len(), 1);
}

#[test]
fn constraints_of_a_metre_and_a_micrometre_are_independent() {
    // Two pendula, and a rod from one to the other: all lengths in one family.
    let text = "parameter l = 1e-6\ncoordinate r[i in 1..3] : R^3 = (1, if(i > 1, l, 0), if(i > 2, 1, 0))\nmomentum p of r\nhamiltonian sum(i in 1..3 : dot(p[i], p[i])/2 + r[i].z)\nconstraint long : dot(r[1], r[1]) = 1\nconstraint short : dot(r[2] - r[1], r[2] - r[1]) = l^2\nconstraint other : dot(r[3] - r[2], r[3] - r[2]) = 1\n";
    let examined = consistency::examine(&support::model(text));
    assert!(
        examined.is_sound() && examined.dependence.is_none() && examined.field.is_some(),
        "{examined:?}"
    );
    // Lengths and angles, whose units differ: independent, and redundant.
    let text = |last: &str| {
        format!(
            "parameter l = 1e-9\ncoordinate x = 3e-9\ncoordinate phi = 3\nmomentum p of x\nmomentum s of phi\nhamiltonian p^2/2 + s^2/(2*l^2)\nconstraint roll : x = l*phi\nconstraint stop : {last}\n"
        )
    };
    let examined = consistency::examine(&support::model(&text("x = 2*l*phi - 3*l")));
    assert!(examined.dependence.is_none() && examined.field.is_some(), "{examined:?}");
    let examined = consistency::examine(&support::model(&text("2*x = 2*l*phi")));
    assert_eq!(examined.dependence.implied, [1], "{examined:?}");
    assert!(examined.singular.is_empty() && examined.independent.is_some(), "{examined:?}");
}

#[test]
fn ranks_are_those_of_directions_in_the_units_of_the_state() {
    let model = support::model(
        "coordinate x : R^2 = (1e-9, 2e-9)\ncoordinate y : R^2 = (1e3, 0)\nmomentum p of x\nmomentum s of y\nhamiltonian dot(p, p) + dot(s, s)\n",
    );
    let units = Scales::new(&model).units(&model.initial);
    let rows = [vec![(0, 1.0), (2, 1e-12)], vec![(0, 1.0), (2, -1e-12)]];
    let scaled = in_units(&rows, &units);
    // 1 in the unit 2e-9 is twice 1e-12 in the unit 1e3.
    assert!((scaled[0][0].1 / scaled[0][1].1 - 2.0).abs() < 1e-12, "{scaled:?}");
}
