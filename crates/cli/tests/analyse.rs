//! `analyse`: averages of runs and ensembles.

mod common;

use common::{Folder, number};

const GAS: &str = "size n = 5\ncoordinate r[i in 1..n] : R^3 = (i, 0, 0)\nmomentum p of r\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + dot(r[i], r[i])/2)\nobserve square = dot(r[1], r[1])\n";

const HEAT: &str =
    "--method stormer-verlet-b --step 0.1 --thermostat gla --friction 1 --inverse-temperature 2";

/// The peak of g is shown if g is known, otherwise that of the distribution of distances.
#[test]
fn a_run_ends_with_its_measures() {
    let folder = Folder::new();
    let measures = "measure boxed = rdf(i in 1..n : r[i], 2, 8, 4)\nmeasure free = rdf(i in 1..n : r[i], 8, 8)\n";
    folder.write("gas.holo", format!("{GAS}{measures}"));
    let text =
        folder.run(&format!("run gas.holo {HEAT} --until 50 --samples 2 --out run")).ok().stdout;
    for (measure, height) in
        [("rdf(boxed, 2, 8, 4)", ", g = "), ("rdf(free, 8, 8)", ", density = ")]
    {
        let line =
            text.lines().find(|line| line.contains(measure)).unwrap_or_else(|| panic!("{text}"));
        assert!(
            line.contains("501 samples, t = 0 to 50: highest from ") && line.contains(height),
            "{line}"
        );
    }
}

/// Enough atoms that pairs are found by lists.
const ARGON: &str = "models/argon.holo --set N=400 --method stormer-verlet-a";

/// Energy and pressure of a Lennard-Jones liquid at the state of `models/argon.holo`, for which
/// NIST's Standard Reference Simulation Website has -5.5121 and 0.0068 by Monte Carlo.
#[test]
fn a_liquid_has_the_published_energy_and_pressure() {
    let folder = Folder::new();
    let heat = "--thermostat gla --friction 1 --inverse-temperature 1/0.85";
    folder
        .run(&format!("run {ARGON} --step 0.005 --until 30 --samples 600 {heat} --out fluid"))
        .ok();
    let answer =
        folder.summary("analyse fluid --from 8 --measure mean(energy) --measure mean(pressure)");
    for (k, (published, error)) in [(-5.5121, 0.02), (0.0068, 0.1)].into_iter().enumerate() {
        let row = &answer["measures"][k]["rows"][0];
        let [mean, found] = ["mean", "error"].map(|name| row[name].as_f64().unwrap());
        assert!(found < error && (mean - published).abs() < 5.0 * found, "{row}");
    }
}

/// The energy's error is that of the method, h²: pairs that a list misses would make it jump.
#[test]
fn lists_of_pairs_leave_the_energy_alone() {
    let folder = Folder::new();
    let largest = |step: f64| {
        let answer = folder
            .summary(&format!("run {ARGON} --step {step} --until 2 --samples 2 --out step-{step}"));
        let momentum = answer["drift"]["integrals"]["P"]["relative"]["max"].as_f64().unwrap();
        assert!(momentum < 1e-13, "{momentum}");
        answer["drift"]["hamiltonian"]["max"].as_f64().unwrap()
    };
    let [long, short] = [0.004, 0.002].map(largest);
    // Four in the limit; the largest error is found at other times.
    assert!((2.5..6.0).contains(&(long / short)), "{long} {short}");
}

#[test]
fn averages_of_a_run() {
    let folder = Folder::new();
    folder.write("gas.holo", GAS);
    folder.run(&format!("run gas.holo {HEAT} --until 4000 --every 2 --out run")).ok();
    let answer = folder.summary(
        "analyse run --from 20 --measure mean(square) --measure mean(r[*].x) --measure histogram(p[2].y,-4,4,16) \
         --measure rdf(r,8,32) --measure msd(r) --measure autocorrelation(r)",
    );
    let rows = |k: usize| answer["measures"][k]["rows"].as_array().unwrap().clone();
    let number = |row: &serde_json::Value, name: &str| row[name].as_f64().unwrap();
    assert_eq!(
        (answer["samples"].as_u64(), answer["trajectories"].as_u64()),
        (Some(1991), Some(1))
    );
    // Three components with kT = 1/2 each, at 1/(1 - h^2/4) of that.
    let square = &rows(0)[0];
    assert!((number(square, "mean") - 1.5).abs() < 5.0 * number(square, "error"), "{square}");
    assert!((0.01..0.1).contains(&number(square, "error")), "{square}");
    let places: Vec<_> =
        rows(1).iter().map(|row| row["of"].as_str().unwrap().to_string()).collect();
    assert_eq!(places, ["r[1].x", "r[2].x", "r[3].x", "r[4].x", "r[5].x"]);
    assert!(rows(1).iter().all(|row| number(row, "mean").abs() < 5.0 * number(row, "error")));
    // Parts of a normal distribution with the variance 1/2.
    let bins = rows(2);
    let total: f64 = bins.iter().map(|row| 0.5 * number(row, "density")).sum();
    assert!((total - 1.0).abs() < 1e-6, "{total}");
    let middle = number(&bins[8], "density");
    assert!((middle - 0.52050).abs() < 5.0 * number(&bins[8], "error"), "{middle}");
    // A distance is a normal vector with the variance 1: half of them are shorter than 1.538.
    let within: Vec<f64> = rows(3).iter().map(|row| number(row, "within")).collect();
    assert!((within[5] - 0.4778).abs() < 0.03 && within[31] > 0.999, "{within:?}");
    assert!(rows(3)[0]["g"].is_null(), "there is no cube");
    let far = rows(4);
    let last = far.last().unwrap();
    assert!(number(&far[0], "mean") == 0.0 && (number(last, "mean") - 3.0).abs() < 0.3, "{last}");
    assert!(
        (number(&rows(5)[0], "mean") - 1.0).abs() < 1e-12
            && number(&rows(5)[9], "mean").abs() < 0.1
    );
    // Without a measure, everything that is recorded beside the state.
    let text = folder.run("analyse run").ok().stdout;
    assert!(
        text.contains("2 001 samples, t = 0 to 4000")
            && text.contains("\n  H ")
            && text.contains("\n  square "),
        "{text}"
    );
    for (measure, says) in [
        ("mean(s)", "the run holds no 's'; it holds r, p, H, square"),
        ("mean(r[6])", "stands for nothing"),
        ("mean(r[1,2])", "another number of indices"),
        ("rdf(square,1,2)", "members of a family"),
        ("mode(r)", "make no measure"),
    ] {
        folder.run(&format!("analyse run --measure {measure}")).refused(&["--measure", says]);
    }
    folder.run("analyse run --from 4000").refused(&["1 samples from t = 4000 on"]);
}

#[test]
fn averages_of_an_ensemble() {
    let folder = Folder::new();
    folder.write("gas.holo", GAS);
    folder
        .run(&format!("sweep gas.holo {HEAT} --until 40 --every 2 --trajectories 400 --out sweep"))
        .ok();
    let answer =
        folder.summary("analyse sweep --from 20 --measure mean(square) --measure rdf(r,1,2,4)");
    let row = &answer["measures"][0]["rows"][0];
    let (mean, error) = (row["mean"].as_f64().unwrap(), row["error"].as_f64().unwrap());
    // 11 samples of 400 trajectories, each with a deviation of sqrt(6)/2.
    assert!((mean - 1.5).abs() < 5.0 * error && (0.018..0.05).contains(&error), "{row}");
    assert!(answer["measures"][1]["rows"][1]["g"].as_f64().unwrap() > 1.0);
}

#[test]
fn molecules_go_out_and_come_back() {
    let folder = Folder::new();
    folder.write("gas.holo", GAS);
    folder.run(&format!("run gas.holo {HEAT} --until 4 --every 4 --out run")).ok();
    for format in ["xyz", "pdb", "dcd", "xtc"] {
        folder.run(&format!("export run --{format} out.{format}")).ok();
    }
    // The first frame of each, as the start of a model.
    for file in ["out.xyz", "out.pdb"] {
        let start = format!("table start = \"{file}\"\n{GAS}")
            .replace("(i, 0, 0)", "(start.x[i], start.y[i], start.z[i])");
        folder.write("again.holo", &start);
        let summary =
            folder.summary("run again.holo --method stormer-verlet-b --step 0.1 --until 0.1 --out again --record r");
        folder.run("export again --csv again.csv").ok();
        let text = std::fs::read_to_string(folder.path("again.csv")).unwrap();
        assert!(
            text.lines().nth(1).unwrap().starts_with("0.0,1.0,0.0,0.0,2.0,0.0,0.0,3.0,"),
            "{text}"
        );
        assert_eq!(summary["steps"].as_u64(), Some(1));
        std::fs::remove_dir_all(folder.path("again")).unwrap();
    }
    for (text, says) in [
        ("two\n\n", "its first line is not the number of atoms"),
        ("2\n\nO 0 0 0\n", "the file ends after 1 of 2 atoms"),
        ("1\n\nO 0 x 0\n", "line 3, atom 1 of 1: 'x' is not a number"),
    ] {
        folder.write("out.xyz", text);
        folder.write("again.holo", format!("table start = \"out.xyz\"\n{GAS}"));
        folder.run("check again.holo").refused(&["table 'start'", says]);
    }
    folder.write("out.pdb", "HEADER\nEND\n");
    folder.write("again.holo", format!("table start = \"out.pdb\"\n{GAS}"));
    folder.run("check again.holo").refused(&["it has no atoms"]);
}

/// 3 · 0.7 is less than 2.1 by rounding.
#[test]
fn a_time_that_is_meant_to_be_a_sample_is_one() {
    let folder = Folder::new();
    folder.summary("run models/kepler.holo --every 0.7 --until 7 --out run");
    assert!(folder.times("run")[3] < 2.1);
    let from = |from: &str| {
        let answer = folder.summary(&format!("analyse run --from {from} --measure mean(H)"));
        (number(&answer, "/from"), number(&answer, "/samples"))
    };
    assert_eq!(from("2.1"), (3.0 * 0.7, 8.0));
    assert_eq!(from("2.0999"), (3.0 * 0.7, 8.0));
    assert_eq!(from("2.1001"), (4.0 * 0.7, 7.0));
}
