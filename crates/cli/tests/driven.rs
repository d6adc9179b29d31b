//! `spline`, `linear` and `hold`: tables as functions of the state and of time.

mod common;

use common::{Folder, number};

const TABLE: &str = "t,y\n0,1\n0.5,-0.5\n1.25,2\n2,0.25\n3.5,1\n";

/// The area under the values of the table as steps, as lines, and as a natural spline, whose second
/// derivatives at the inner knots are twice the coefficients that scipy gives.
const STEPS: f64 = 0.5 - 0.375 + 1.5 + 0.375;
const LINES: f64 = 0.125 + 0.5625 + 0.84375 + 0.9375;

fn folder(force: &str) -> Folder {
    let folder = Folder::new();
    folder.write("table.csv", TABLE);
    folder.write("x.holo", format!("table T = \"table.csv\"\nstate x = 0\nx' = {force}\n"));
    folder
}

/// Steps end at the knots, so that each polynomial is integrated by itself: exactly, up to
/// rounding, by methods that integrate cubic polynomials exactly.
#[test]
fn knots_in_time_are_where_steps_end() {
    for (force, area) in [("hold(T.t, T.y, t)", STEPS), ("linear(T.t, T.y, t)", LINES)] {
        let folder = folder(force);
        for method in [
            "",
            "--method plain:tsit5 --rtol 1e-6",
            "--method plain:bs3 --rtol 1e-3",
            "--method gauss16 --rtol 1e-10",
        ] {
            let run = folder.summary(&format!("run x.holo --until 3.5 {method}"));
            assert!((number(&run, "/state/x") - area).abs() < 1e-13, "{force} {method}: {run}");
            // Four pieces of at most some steps each, and a step across every knot.
            assert!(
                number(&run, "/steps") < 60.0 && number(&run, "/cost/rejected") < 12.0,
                "{method}: {run}"
            );
            let back =
                folder.summary(&format!("run x.holo --from 3.5 --until 0 --set x={area} {method}"));
            assert!(number(&back, "/state/x").abs() < 1e-13, "{force} {method} back: {back}");
        }
    }
    let folder = folder("spline(T.t, T.y, t)");
    let of = |options: &str| {
        let run = folder.summary(&format!("run x.holo --until 3.5 {options}"));
        (number(&run, "/state/x"), run["warnings"].to_string())
    };
    // Simpson's rule on steps that meet the knots is exact for cubic polynomials.
    let (exact, warnings) = of("--method plain:rk4 --step 0.25");
    assert_eq!(warnings, "[]");
    for options in ["", "--method plain:tsit5 --rtol 1e-4", "--method gauss4 --step 1/8"] {
        assert!((of(options).0 - exact).abs() < 1e-13, "{options}: {} {exact}", of(options).0);
    }
}

#[test]
fn equal_steps_that_miss_a_knot_are_refused() {
    let folder = folder("spline(T.t, T.y, t)");
    folder
        .run("run x.holo --until 3 --method plain:rk4 --step 0.3")
        .refused(&["--step 0.3 misses the knot of table 'T' at t = 0.5", "adaptive steps"]);
    // An observable moves nothing, and the state is no time.
    folder.write("q.holo", "table T = \"table.csv\"\ncoordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + linear(T.t, T.y, q)\nobserve o = hold(T.t, T.y, t)\n");
    folder.run("run q.holo --until 3 --method plain:rk4 --step 0.3").ok();
}

#[test]
fn beyond_its_ends_a_table_is_constant_and_the_run_says_so() {
    let folder = folder("linear(T.t, T.y, t)");
    let run = folder.summary("run x.holo --from -1 --until 5");
    assert!((number(&run, "/state/x") - (LINES + 1.0 + 1.5)).abs() < 1e-13, "{run}");
    assert!(run["warnings"][0].to_string().contains("table 'T' is from t = 0 to 3.5"), "{run}");
    // A periodic spline repeats without a warning: ten periods have ten times the area of one.
    folder.write(
        "x.holo",
        "table T = \"table.csv\"\nstate x = 0\nx' = spline(T.t, T.y, t, periodic)\n",
    );
    let [one, ten] = [3.5, 35.0].map(|until| {
        let run = folder.summary(&format!("run x.holo --until {until}"));
        assert_eq!(run["warnings"].to_string(), "[]");
        number(&run, "/state/x")
    });
    assert!((ten - 10.0 * one).abs() < 1e-11, "{one} {ten}");
    folder.run("run x.holo --until 35 --method plain:rk4 --step 0.25").ok();
}

/// The force of a spline of the position is its derivative: one Euler step gives that of scipy.
#[test]
fn derivatives_are_those_of_the_polynomials() {
    let folder = Folder::new();
    folder.write("table.csv", TABLE);
    for (ends, expected) in [
        ("natural", [-3.8952830188679246, -3.420041928721173, 2.112012578616352]),
        ("not-a-knot", [-3.7805454545454547, -4.275710437710437, 7.447898989898986]),
    ] {
        folder.write("q.holo", format!("table T = \"table.csv\"\ncoordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + spline(T.t, T.y, q, {ends})\n"));
        for (at, slope) in [0.2, 1.9, 3.3].iter().zip(expected) {
            let run = folder.summary(&format!(
                "run q.holo --set q={at} --method plain:euler --step 1 --until 1"
            ));
            assert!((number(&run, "/state/p") + slope).abs() < 1e-13, "{ends} {at}: {run}");
        }
    }
    // The energy is kept along a motion through several pieces.
    let run = folder.summary("run q.holo --set q=0.3 --method gauss4 --step 0.002 --until 5");
    assert!(number(&run, "/drift/hamiltonian/max") < 1e-8, "{run}");
}

/// Ensembles and templated models heed knots as single, unrolled runs do, and resumed ones go on
/// with the same bits.
#[test]
fn ensembles_large_models_and_resumed_runs() {
    let folder = Folder::new();
    folder.write("table.csv", TABLE);
    folder.write(
        "chain.holo",
        "table T = \"table.csv\"\nsize n = 3\ncoordinate q[i in 1..n] = 0.1*i\nmomentum p of q\n\
         hamiltonian sum(i in 1..n : p[i]^2/2 + q[i]^4/4) + sum(i in 2..n : (q[i] - q[i-1])^2/2) -\n\
           q[1]*linear(T.t, T.y, t)\n",
    );
    folder.run("run chain.holo --until 4 --set q[2]=0.7 --out single").ok();
    let sweep = "sweep chain.holo --until 4 --samples 3 --trajectories 9 --vary p=i/9 --out sweep";
    folder.run(sweep).ok();
    let first = folder.summary("run chain.holo --until 4 --samples 3");
    let (names, rows) = folder.samples("sweep");
    let place = |name: &str| names.iter().position(|n| n == name).unwrap();
    let last = rows.iter().find(|row| row[place("trajectory")] == 0.0 && row[place("t")] == 4.0);
    assert_eq!(last.unwrap()[place("q[1]")], first["state"]["q"][0].as_f64().unwrap());
    let large = folder.summary("run chain.holo --set n=300 --until 4 --rtol 1e-11 --state");
    let finer =
        folder.summary("run chain.holo --set n=300 --until 4 --method gauss4 --step 1/64 --state");
    let [a, b] = [&large, &finer].map(|run| number(run, "/state/q/0"));
    assert!((a - b).abs() < 1e-6, "{a} {b}");
    for until in ["1", "2.1"] {
        folder.run(&format!("run chain.holo --until {until} --every 0.1 --out part")).ok();
        folder.run("resume part --until 4").ok();
        folder.run("run chain.holo --until 4 --every 0.1 --out whole").ok();
        assert_eq!(folder.samples("part"), folder.samples("whole"), "{until}");
        for out in ["part", "whole"] {
            std::fs::remove_dir_all(folder.path(out)).unwrap();
        }
    }
}

/// A force from a table moves a mass as its area says, forwards and back, with friction beside it.
#[test]
fn tables_drive_forces() {
    let folder = Folder::new();
    folder.write("table.csv", TABLE);
    folder.write(
        "q.holo",
        "table T = \"table.csv\"\nparameter c = 0\ncoordinate q = 0\nmomentum p of q\n\
         hamiltonian p^2/4\nforce drive on q = hold(T.t, T.y, t)\nforce friction on q = -c*q'\n",
    );
    let run = folder.summary("run q.holo --until 3.5");
    assert!((number(&run, "/state/p") - STEPS).abs() < 1e-13, "{run}");
    let there = folder.summary("run q.holo --until 3.5 --set c=0.3");
    let [q, p] = ["/state/q", "/state/p"].map(|path| number(&there, path));
    let back = format!("run q.holo --from 3.5 --until 0 --set c=0.3 --set q={q} --set p={p}");
    let back = folder.summary(&back);
    let [q, p] = ["/state/q", "/state/p"].map(|path| number(&back, path));
    assert!(q.abs() < 1e-8 && p.abs() < 1e-8, "{back}");
}
