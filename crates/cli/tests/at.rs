//! `--at`: samples at times that are listed; and runs that are short at a large time.

mod common;

use common::{Folder, number};

const OSCILLATOR: &str = "coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + q^2/2\n";

#[test]
fn samples_are_at_the_listed_times() {
    let folder = Folder::new();
    folder.write("q.holo", OSCILLATOR).write("times.csv", "n,t\n1,0.5\n2,0.75\n3,4\n");
    folder.write("only.csv", "when\n0.5\n0.75\n4\n");
    let solution = |rows: &[Vec<f64>], near: f64| {
        for row in rows {
            assert!((row[1] - row[0].cos()).abs() < near, "{row:?}");
        }
    };
    for at in ["0.5,3/4,4", "times.csv", "times.csv:t", "only.csv"] {
        folder.run(&format!("run q.holo --at {at} --out out")).ok();
        assert_eq!(folder.times("out"), [0.5, 0.75, 4.0], "{at}");
        solution(&folder.samples("out").1, 1e-7);
        std::fs::remove_dir_all(folder.path("out")).unwrap();
    }
    // To a later end, backwards, on steps, and in ensembles with and without lanes.
    for (more, times, near) in [
        ("--at 0,0.3,2 --until 3", vec![0.0, 0.3, 2.0], 1e-7),
        ("--at 0,-0.3,-2 --until -3", vec![0.0, -0.3, -2.0], 1e-7),
        ("--at 0,-0.3,-2 --method rk4 --step 0.01", vec![0.0, -0.3, -2.0], 1e-8),
        ("--at 0.1,0.3,1.25 --method gauss4 --step 0.01", vec![0.1, 0.3, 1.25], 1e-8),
        (
            "--at 0.1,0.3,0.995 --method gauss4 --step 0.01 --until 0.995",
            vec![0.1, 0.3, 0.995],
            1e-8,
        ),
    ] {
        folder.run(&format!("run q.holo {more} --out out")).ok();
        let (_, rows) = folder.samples("out");
        assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), times, "{more}");
        solution(&rows, near);
        folder.run(&format!("sweep q.holo {more} --vary p=i --trajectories 9 --out sweep")).ok();
        let (names, swept) = folder.samples("sweep");
        let place = |name: &str| names.iter().position(|n| n == name).unwrap();
        let first: Vec<[f64; 2]> = swept
            .iter()
            .filter(|row| row[place("trajectory")] == 0.0)
            .map(|row| [row[place("t")], row[place("q")]])
            .collect();
        assert_eq!(first, rows.iter().map(|row| [row[0], row[1]]).collect::<Vec<_>>(), "{more}");
        for out in ["out", "sweep"] {
            std::fs::remove_dir_all(folder.path(out)).unwrap();
        }
    }
    folder.run("run q.holo --at 0.1,0.3,2 --until 3 --out out --max-steps 5 --rtol 1e-10");
    let resumed = folder.run("resume out --max-steps 1000").ok();
    assert!(resumed.shown().contains("goes on"), "{resumed:?}");
    assert_eq!(folder.times("out"), [0.1, 0.3, 2.0]);
    folder.run("resume out --until 4").refused(&["samples at times that were listed"]);
}

#[test]
fn times_that_are_no_samples_are_refused() {
    let folder = Folder::new();
    folder
        .write("q.holo", OSCILLATOR)
        .write("bare.csv", "0.1\n0.2\n")
        .write("two.csv", "a,b\n1,2\n");
    for (options, fragments) in [
        ("--at 1,0.5", vec!["--at", "t = 0.5 comes before t = 1"]),
        ("--at 1,5 --until 3", vec!["t = 5 is outside the run, from t = 0 to 3"]),
        (
            "--at 0.015 --method rk4 --step 0.01 --until 1",
            vec!["--at", "t = 0.015 is not on a step of 0.01"],
        ),
        ("--at bare.csv", vec!["bare.csv", "should name the columns"]),
        ("--at two.csv", vec!["several columns", "two.csv:COLUMN"]),
        ("--at nothing.csv", vec!["nothing.csv", "list the times"]),
    ] {
        folder.run(&format!("run q.holo {options}")).refused(&fragments);
    }
    assert_eq!(folder.run("run q.holo --at 1 --samples 3").code, Some(2));
}

/// A tenth of a second in Julian days: times are counted from the start, so steps that are shorter
/// than the rounding of t make the motion that they make at t = 0.
#[test]
fn a_short_run_at_a_large_time_is_resolved() {
    let folder = Folder::new();
    folder.write(
        "fast.holo",
        "parameter w = 5e6\ncoordinate q = 1\nmomentum p of q\nhamiltonian w*(p^2 + q^2)/2\n",
    );
    for method in
        ["", "--method stormer-verlet-a --step 1/2^27", "--method plain:tsit5", "--method taylor"]
    {
        let end = |span: &str| {
            let run = folder.summary(&format!("run fast.holo {method} {span}"));
            assert_eq!(run["warnings"].as_array().unwrap().len(), 0, "{run}");
            [number(&run, "/state/q"), number(&run, "/state/p"), number(&run, "/steps")]
        };
        // The end is rounded to 2⁻³¹ days, the span between is exact: 2⁻²⁰.
        let [late, early] = ["--from 2460000 --until 2460000+1/2^20", "--until 1/2^20"].map(end);
        let h = if method.contains("step") { 1e-2 } else { 1e-6 };
        assert!(
            (late[0] - early[0]).abs() < h && (late[1] - early[1]).abs() < h,
            "{method}: {late:?} {early:?}"
        );
    }
    // The number of steps is that of the span that was meant.
    let run = folder
        .summary("run fast.holo --method rk4 --step 1e-8 --from 2460000 --until 2460000.000001");
    assert_eq!((number(&run, "/steps"), run["warnings"].to_string().as_str()), (100.0, "[]"));
}
