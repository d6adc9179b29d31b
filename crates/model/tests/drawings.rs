//! Tests of what models draw: members and points of forms, whole families, surfaces, labels.

mod support;

use holonome_model::elaborate::model::{Colour, Drawing, Form, Quantity};
use support::model;

const CHAIN: &str = "
    size n = 3
    parameter m[i in 1..n] = i
    coordinate r[i in 1..n] : R^2 = (i, -2*i)
    momentum p of r
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/(2*m[i]) + m[i]*r[i].y)
    ";

/// Drawings of a chain, with the values of their arguments at the start.
fn drawn(statements: &str) -> Vec<(Drawing, Vec<Vec<f64>>)> {
    let model = model(&format!("{CHAIN}{statements}"));
    // Velocities follow the state.
    let inputs: Vec<f64> = model.initial.iter().copied().chain(vec![0.0; 6]).collect();
    let value =
        |quantity: &Quantity| quantity.functional.evaluate(0.0, &inputs, &model.parameter_values);
    let all = model.drawings.iter();
    all.map(|d| (d.clone(), d.arguments.iter().map(value).collect())).collect()
}

#[test]
fn a_form_stands_at_each_member_of_a_family() {
    for text in ["draw[i in 1..n] sphere(r[i], 0.1*m[i])", "draw sphere(r, 0.1*m)"] {
        let all = drawn(&format!("{text} colour \"Red\" label \"body {{i}}\""));
        let [(drawing, values)] = &all[..] else { panic!("one drawing") };
        assert_eq!((drawing.form, drawing.members()), (Form::Sphere, 3), "{text}");
        assert_eq!(values[0], [1.0, -2.0, 2.0, -4.0, 3.0, -6.0]);
        assert!(values[1].iter().zip([0.1, 0.2, 0.3]).all(|(a, b)| (a - b).abs() < 1e-15));
        assert_eq!(drawing.labels, ["body 1", "body 2", "body 3"]);
        assert!(matches!(&drawing.colour, Some(Colour::Named(name)) if name == "red"));
    }
    let names = &drawn("draw[i in 1..n if i != 2] trail(r[i]) label \"first\", \"last\"")[0].0;
    assert_eq!((names.members(), &names.labels[..]), (2, &["first".into(), "last".into()][..]));
}

#[test]
fn a_polyline_goes_through_points_ranges_and_whole_families() {
    let through = |text: &str| {
        let (drawing, values) = drawn(text).remove(0);
        (drawing.points.clone(), values)
    };
    let all = vec![1.0, -2.0, 2.0, -4.0, 3.0, -6.0];
    assert_eq!(through("draw polyline(r)"), (vec![3], vec![all.clone()]));
    assert_eq!(through("draw polyline(i in 1..n : r[i])"), (vec![3], vec![all]));
    let (points, values) = through("draw polyline((0, 0), r[2], r[3])");
    assert_eq!((points, values[1].clone(), values.len()), (vec![1], vec![2.0, -4.0], 3));
    // A polyline for each member, each with points of its own number.
    let (points, values) = through("draw[i in 2..n] polyline(j in 1..i : r[j] + (0, i))");
    assert_eq!(points, [2, 3]);
    assert_eq!(values[0], [1.0, 0.0, 2.0, -2.0, 1.0, 1.0, 2.0, -1.0, 3.0, -3.0]);
    // A sum is a point.
    let (points, values) = through("draw sphere(sum(i in 1..n : m[i]*r[i])/6, 1)");
    assert_eq!(points, [1]);
    let near = |(a, b): (&f64, f64)| (a - b).abs() < 1e-14;
    assert!(values[0].iter().zip([14.0 / 6.0, -28.0 / 6.0]).all(near), "{values:?}");
}

#[test]
fn a_surface_has_points_from_one_end_of_its_ranges_to_the_other() {
    let (drawing, values) = drawn("draw surface(u, v in -1..3 : (u, v, r[1].x*u))").remove(0);
    assert_eq!(drawing.points, [625]);
    let points: Vec<&[f64]> = values[0].chunks(3).collect();
    assert_eq!(
        (points[0], points[24], points[624]),
        (&[0.0, -1.0, 0.0][..], &[0.0, 3.0, 0.0][..], &[1.0, 3.0, 1.0][..])
    );
    assert!((points[25][0] - 1.0 / 24.0).abs() < 1e-16);
}

#[test]
fn velocities_observables_and_numbers_as_colours_are_drawn() {
    let all = drawn(
        "observe middle = (r[1] + r[2])/2
         draw arrow(middle, r[1]') colour norm(r[2])
         draw[i in 1..n] box(0.1*i, r[i], (1, 2)) colour m[i]
         draw camera follow middle
         draw camera frame(0.5)",
    );
    let forms: Vec<Form> = all.iter().map(|(drawing, _)| drawing.form).collect();
    assert_eq!(forms, [Form::Arrow, Form::Box, Form::Follow, Form::Frame]);
    assert_eq!(all[1].0.quantities().count(), 4, "a number of the colour");
    assert_eq!(all[2].1[0], [1.5, -3.0]);
}

#[test]
fn draw_may_be_a_name() {
    let named = model("parameter draw = 2\nstate x = 1\nx' = draw*x\ndraw sphere((x, 0), 1)");
    assert_eq!(named.drawings.len(), 1);
}
