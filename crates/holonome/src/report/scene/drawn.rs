//! What a model draws, and its camera, from the states of a run.

use super::counted;
use super::rotation::{Attitude, product, rotation, transposed};
use crate::error::Error;
use crate::problem::Problem;
use crate::report::states::States;
use crate::simulation::Formulas;
use crate::store::StoredRun;
use holonome_figures::{Drawn, DrawnNumbers};
use holonome_model::elaborate::expression::{DYNAMIC, FOLLOWING, VELOCITY};
use holonome_model::elaborate::model::{Argument, Colour, Drawing, Form, Model, Quantity};
use holonome_model::elaborate::shape::Shape;

/// Largest number of numbers in a frame of what a model draws.
const MOST: usize = 1_000_000;

/// Place and axes from which a motion is seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Camera {
    centre: [f64; 3],
    /// By rows, from the axes of the camera to those of space.
    axes: [f64; 9],
}

impl Camera {
    /// A camera that stays.
    const STILL: Camera =
        Camera { centre: [0.0; 3], axes: [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0] };

    /// A point as the camera sees it.
    pub fn point(&self, x: [f64; 3]) -> [f64; 3] {
        self.vector(std::array::from_fn(|k| x[k] - self.centre[k]))
    }

    fn vector(&self, v: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|i| (0..3).map(|j| self.axes[3 * j + i] * v[j]).sum())
    }

    /// A rotation as the camera sees it.
    pub fn attitude(&self, r: [f64; 9]) -> [f64; 9] {
        product(&transposed(&self.axes), &r)
    }
}

/// Evaluator of all that a model draws.
pub(super) struct Pictures<'m> {
    drawings: Vec<&'m Drawing>,
    camera: Vec<&'m Drawing>,
    formulas: Formulas,
    states: States,
}

impl<'m> Pictures<'m> {
    /// Pictures of a model along a run of it; `None` if it draws nothing. The text says why what it
    /// draws is not shown.
    pub fn of(
        run: &StoredRun,
        problem: &'m Problem,
    ) -> Result<(Option<Pictures<'m>>, String), Error> {
        let model: &Model = &problem.model;
        let none =
            |reason: &str| Ok((None, format!("What the model draws is not shown: {reason}.")));
        if model.drawings.is_empty() {
            return Ok((None, String::new()));
        }
        let Some(states) = States::of(run, model)? else {
            return none("not all variables are stored");
        };
        let compiled = |all: &[&'m Drawing]| {
            let (camera, drawings): (Vec<&Drawing>, Vec<&Drawing>) =
                all.iter().copied().partition(|drawing| drawing.form.is_camera());
            let ordered = drawings.iter().chain(&camera).flat_map(|drawing| drawing.quantities());
            let quantities: Vec<Quantity> = ordered.cloned().collect();
            let size: usize = quantities.iter().map(|of| of.functional.outputs).sum();
            match size > MOST {
                true => Err("it is too much".to_string()),
                false => Formulas::new(problem, quantities)
                    .map(|formulas| (drawings, camera, formulas))
                    .map_err(|reason| reason.to_string()),
            }
        };
        let all: Vec<&Drawing> = model.drawings.iter().collect();
        let (made, said) = match compiled(&all) {
            Ok(made) => (made, String::new()),
            // Of a large model no field tells multipliers in closed form.
            Err(reason) => {
                let known = |drawing: &&&Drawing| {
                    drawing.quantities().all(|q| q.depends & FOLLOWING & !VELOCITY == 0)
                };
                let kept: Vec<&Drawing> = all.iter().filter(known).copied().collect();
                if kept.len() == all.len() || kept.is_empty() {
                    return none(&reason);
                }
                let said = "What reads multipliers, accelerations or reactions is not drawn: in a model of this size they are known to a method only.";
                match compiled(&kept) {
                    Ok(made) => (made, said.to_string()),
                    Err(reason) => return none(&reason),
                }
            }
        };
        let (drawings, camera, formulas) = made;
        Ok((Some(Pictures { drawings, camera, formulas, states }), said))
    }

    /// True if something is drawn, besides what a camera does.
    pub fn draw(&self) -> bool {
        !self.drawings.is_empty()
    }

    /// 3 if anything is in space.
    pub fn dimension(&self) -> usize {
        let in_space = |argument: &Quantity| match argument.shape {
            Shape::Vector(k) => k > 2,
            Shape::Matrix(k, _) => k > 2,
            Shape::Scalar | Shape::Condition => false,
        };
        let all = || self.drawings.iter().chain(&self.camera);
        let space = all().flat_map(|drawing| &drawing.arguments).any(in_space);
        if space || all().any(|drawing| drawing.form == Form::Cylinder) { 3 } else { 2 }
    }

    /// Numbers in a frame that change.
    pub fn width(&self) -> usize {
        let all = self.drawings.iter().flat_map(|drawing| drawing.quantities());
        let moves = |quantity: &&Quantity| {
            !self.camera.is_empty() || quantity.depends & (DYNAMIC | FOLLOWING) != 0
        };
        all.filter(moves).map(|quantity| quantity.members * 3).sum()
    }

    /// Words on what is drawn.
    pub fn note(&self) -> String {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for drawing in &self.drawings {
            let name = drawing.form.row().name;
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += drawing.members(),
                None => counts.push((name, drawing.members())),
            }
        }
        let words: Vec<String> = counts
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| match (name, count) {
                ("box", 2..) => format!("{count} boxes"),
                _ => counted(count, name),
            })
            .collect();
        let mut words = match words.is_empty() {
            true => String::new(),
            false => format!("Drawn by the model: {}.", words.join(", ")),
        };
        if self.camera.iter().any(|drawing| drawing.form == Form::Follow) {
            words.push_str(" The camera moves with a point.");
        }
        if self.camera.iter().any(|drawing| drawing.form == Form::Frame) {
            words.push_str(" The camera turns with the motion.");
        }
        words.trim_start().to_string()
    }

    /// Forms without numbers yet.
    pub fn forms(&self) -> Vec<Drawn> {
        let form = |drawing: &&Drawing| Drawn {
            form: drawing.form.row().name,
            points: drawing.points.iter().map(|&count| count as u32).collect(),
            colour: match &drawing.colour {
                Some(Colour::Named(name)) => Some(name.clone()),
                _ => None,
            },
            labels: drawing.labels.clone(),
            arguments: vec![DrawnNumbers::default(); drawing.arguments.len()],
            shades: drawing.quantities().nth(drawing.arguments.len()).map(|_| Default::default()),
        };
        self.drawings.iter().map(form).collect()
    }

    /// Adds the frame of a sample at `t` to the numbers of forms; returns its camera.
    pub fn add_frame(
        &mut self,
        sample: usize,
        t: f64,
        drawn: &mut [Drawn],
    ) -> Result<Camera, Error> {
        let x = self.states.at(sample)?;
        let values = self.formulas.at(t, &x);
        let mut rest = &values[..];
        let mut of = |quantity: &Quantity| {
            let (own, others) = rest.split_at(quantity.functional.outputs);
            rest = others;
            own
        };
        // The camera comes behind the drawings, which it moves.
        let drawn_values: Vec<&[f64]> =
            self.drawings.iter().flat_map(|drawing| drawing.quantities()).map(&mut of).collect();
        let mut camera = Camera::STILL;
        for drawing in &self.camera {
            let quantity = &drawing.arguments[0];
            let value = of(quantity);
            match drawing.form {
                Form::Follow => camera.centre[..value.len()].copy_from_slice(value),
                _ => camera.axes = attitude(quantity.shape, value),
            }
        }
        let mut drawn_values = drawn_values.into_iter();
        for (drawing, drawn) in self.drawings.iter().zip(drawn) {
            for (k, (quantity, numbers)) in
                drawing.arguments.iter().zip(&mut drawn.arguments).enumerate()
            {
                let values = drawn_values.next().expect("every quantity has values");
                let arguments = drawing.form.row().arguments;
                let argument = arguments[k.min(arguments.len() - 1)];
                add(argument, (quantity.shape, values), &camera, numbers);
            }
            if let Some(shades) = &mut drawn.shades {
                let values = drawn_values.next().expect("every quantity has values");
                add(Argument::Length, (Shape::Scalar, values), &camera, shades);
            }
        }
        Ok(camera)
    }
}

/// Adds the values of an argument in a frame, as the camera sees them.
fn add(
    argument: Argument,
    (shape, values): (Shape, &[f64]),
    camera: &Camera,
    numbers: &mut DrawnNumbers,
) {
    let before = numbers.values.len();
    for value in values.chunks(shape.len()) {
        let mut three = [0.0; 3];
        match argument {
            Argument::Attitude => {
                numbers.values.extend(camera.attitude(attitude(shape, value)));
                continue;
            }
            Argument::Length => {
                numbers.values.extend(value);
                continue;
            }
            _ => three[..value.len()].copy_from_slice(value),
        }
        numbers.values.extend(match argument {
            Argument::Vector => camera.vector(three),
            Argument::Sides => three,
            _ => camera.point(three),
        });
    }
    numbers.width = numbers.values.len() - before;
}

/// Rotation by rows that a value of this shape is.
fn attitude(shape: Shape, value: &[f64]) -> [f64; 9] {
    let plane = |c: f64, s: f64| [c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0];
    match shape {
        Shape::Scalar | Shape::Condition => plane(value[0].cos(), value[0].sin()),
        Shape::Matrix(2, _) => plane(value[0], value[2]),
        Shape::Matrix(..) => rotation(Attitude::Matrix, value),
        Shape::Vector(_) => rotation(Attitude::Quaternion, value),
    }
}

#[cfg(test)]
mod tests {
    use crate::options::{RunOptions, StepSize};
    use crate::problem::Problem;
    use crate::report::scene::motion;
    use crate::simulation::{open_run, prepare};
    use holonome_figures::Motion;
    use holonome_integrate::method::Method;

    /// Motion of a run of `text` by a method whose samples are exact for it to about 1e-9.
    fn film(text: &str, record: Option<Vec<String>>) -> Motion {
        let problem: Problem = text.parse().unwrap();
        let options = RunOptions {
            method: Method::named(if text.contains("size n") { "rattle" } else { "plain:dop853" })
                .unwrap(),
            step: StepSize::Fixed(0.02),
            until: 4.0,
            record,
            ..RunOptions::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let mut simulation = prepare(problem.clone(), options).unwrap();
        let solution = simulation.solve().unwrap();
        simulation.store(&solution, &path).unwrap();
        let run = open_run(&path).unwrap();
        let times = run.times().unwrap();
        motion(&run, &problem, &times, None, 1_000_000).unwrap().unwrap()
    }

    /// A point on a circle, with what `statements` draw.
    fn circle(statements: &str) -> Motion {
        let text = "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2 + dot(q, q)/2\n";
        film(&format!("{text}{statements}"), None)
    }

    #[track_caller]
    fn assert_near(found: &[f64], wanted: &[f64]) {
        let near = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-8);
        assert!(found.len() == wanted.len() && near, "{found:?} is not {wanted:?}");
    }

    #[test]
    fn forms_are_where_their_formulas_are() {
        let motion = circle(
            "draw sphere(q, 0.25) label \"planet\"
             draw arrow(q, q' + q'')
             draw box(t, q, (1, 2)) colour q.y
             draw line((0, 0), (3, 4)) colour \"red\"",
        );
        assert_eq!((motion.dimension, motion.moving), (2, 0), "nothing is guessed beside them");
        assert!(motion.note.contains("1 sphere, 1 arrow, 1 box, 1 line."), "{}", motion.note);
        let [sphere, arrow, boxed, line] = &motion.drawn[..] else { panic!("four forms") };
        assert_eq!((sphere.form, &sphere.labels[0][..]), ("sphere", "planet"));
        assert_eq!(sphere.arguments[1].values, [0.25], "what stays is kept once");
        assert_eq!(line.arguments[1].values, [3.0, 4.0, 0.0]);
        assert_eq!(line.colour.as_deref(), Some("red"));
        for (frame, &t) in motion.times.iter().enumerate() {
            let at = |numbers: &holonome_figures::DrawnNumbers| {
                numbers.values[frame * numbers.width..][..numbers.width].to_vec()
            };
            let (s, c) = t.sin_cos();
            assert_near(&at(&sphere.arguments[0]), &[c, s, 0.0]);
            assert_near(&at(&arrow.arguments[1]), &[-s - c, c - s, 0.0]);
            assert_near(&at(&boxed.arguments[0]), &[c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0]);
            assert_near(&at(boxed.shades.as_ref().unwrap()), &[s]);
        }
    }

    #[test]
    fn a_camera_follows_and_turns() {
        // What turns with the camera stands still, and what stands still turns the other way.
        let motion = circle(
            "draw trail(q)
             draw arrow(q, q')
             draw line((0, 0), 2*q)
             draw box(t + 0.5, q, (1, 2))
             draw camera follow q/2
             draw camera frame(matrix((cos(t), -sin(t)), (sin(t), cos(t))))",
        );
        let [trail, arrow, line, boxed] = &motion.drawn[..] else { panic!("four forms") };
        let (s, c) = 0.5f64.sin_cos();
        let frames = motion.times.len();
        for k in 0..frames {
            assert_near(&trail.arguments[0].values[3 * k..][..3], &[0.5, 0.0, 0.0]);
            assert_near(&arrow.arguments[1].values[3 * k..][..3], &[0.0, 1.0, 0.0]);
            assert_near(&line.arguments[0].values[3 * k..][..3], &[-0.5, 0.0, 0.0]);
            assert_near(&line.arguments[1].values[3 * k..][..3], &[1.5, 0.0, 0.0]);
            let turned = [c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0];
            assert_near(&boxed.arguments[0].values[9 * k..][..9], &turned);
        }
        // Without forms it moves what is found in the model.
        let guessed = circle("constraint rod : dot(q, q) = 1\ndraw camera follow q");
        assert_eq!((guessed.moving, guessed.balls, guessed.fixed.len()), (2, 1, 0));
        assert_eq!(guessed.sticks, [[0, 1]]);
        for (k, &t) in guessed.times.iter().enumerate() {
            let wanted = [0.0, 0.0, 0.0, -t.cos(), -t.sin(), 0.0];
            assert_near(&guessed.positions[6 * k..][..6], &wanted);
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        let text = "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2 + dot(q, q)/2\ndraw sphere(q, 1)";
        let motion = film(text, Some(vec!["q".to_string()]));
        assert_eq!((motion.moving, motion.drawn.len()), (1, 0), "what is found is shown");
        assert!(
            motion.note.ends_with("is not shown: not all variables are stored."),
            "{}",
            motion.note
        );
    }

    #[test]
    fn of_a_large_model_what_only_a_method_knows_is_left_out() {
        let chain = "size n = 120
             coordinate r[i in 1..n] : R^2 = (i, 0)
             momentum p of r
             hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)
             constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 1
             draw polyline(r)
             draw arrow(r[1], r[1]')
             draw arrow(r[n], lambda.link[n]*r[1])";
        let film = |n: &str| film(&chain.replace("120", n), None);
        let small = film("3");
        assert_eq!((small.drawn.len(), small.note.contains("not drawn")), (3, false));
        let large = film("1200");
        let forms: Vec<&str> = large.drawn.iter().map(|drawn| drawn.form).collect();
        assert_eq!(forms, ["polyline", "arrow"]);
        assert!(large.note.contains("What reads multipliers"), "{}", large.note);
    }

    #[test]
    fn the_camera_goes_with_bodies_on_a_long_way() {
        // A tether of 20 km at 7000 km, and two bodies that go apart as far as they go.
        let tether = film(
            "coordinate r[i in 1..2] : R^2 = (7000 + 20*(i - 1), 0)
             momentum p of r = (0, 300)
             hamiltonian sum(i in 1..2 : dot(p[i], p[i])/2)
             constraint rod : dot(r[2] - r[1], r[2] - r[1]) = 400",
            None,
        );
        assert!(tether.note.contains("moves with the middle"), "{}", tether.note);
        assert!(tether.positions.iter().all(|x| x.abs() < 10.1));
        let apart = film(
            "coordinate r[i in 1..2] : R^2 = (i, 0)
             momentum p of r = (100*i, 0)
             hamiltonian sum(i in 1..2 : dot(p[i], p[i])/2)",
            None,
        );
        assert!(!apart.note.contains("moves with the middle"), "{}", apart.note);
    }
}
