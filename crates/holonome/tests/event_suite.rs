//! Events where they are hard to find: every model of `suite/events`, by methods of every kind, alone
//! and in an ensemble, against the closed forms in its first lines.

mod common;

use common::{options, repository, run};
use holonome::{Error, Problem, RunOptions, SweepOptions, prepare_sweep};
use std::collections::BTreeMap;
use std::fs;

/// Methods with the error of a time of some units that they leave at a tolerance, or a step of 0.35.
const METHODS: [(&str, f64); 7] = [
    ("", 1e-6),
    ("--method plain:dop853 --rtol 1e-12", 1e-8),
    ("--method corrected:gauss16 --rtol 1e-12", 1e-8),
    ("--method corrected:taylor --rtol 1e-13", 1e-8),
    ("--method corrected:gauss8 --step 0.35", 1e-5),
    ("--method corrected:rk4 --step 0.005", 1e-6),
    ("--method radau5 --rtol 1e-10", 1e-5),
];

/// What the first lines of a model say.
#[derive(Default)]
struct Expected {
    until: f64,
    /// Times by the name of the event.
    times: BTreeMap<String, Vec<f64>>,
    ends: Option<String>,
    fails: Option<f64>,
    state: Vec<f64>,
}

impl Expected {
    fn of(text: &str) -> Expected {
        let mut expected = Expected::default();
        for line in text.lines().filter_map(|line| line.strip_prefix("#! ")) {
            let mut words = line.split_whitespace();
            let word = words.next().unwrap();
            let rest: Vec<&str> = words.collect();
            let numbers = || rest.iter().map(|word| word.parse().unwrap()).collect::<Vec<f64>>();
            match word {
                "until" => expected.until = numbers()[0],
                "ends" => expected.ends = Some(rest[0].to_string()),
                "fails" => expected.fails = Some(numbers()[0]),
                "state" => expected.state = numbers(),
                _ => drop(expected.times.insert(word.to_string(), numbers())),
            }
        }
        expected
    }
}

fn suite() -> Vec<(String, String)> {
    let files = fs::read_dir(repository().join("suite/events")).unwrap();
    let paths = files.map(|entry| entry.unwrap().path());
    let models = paths.filter(|path| path.extension().is_some_and(|ending| ending == "holo"));
    let mut all: Vec<(String, String)> = models
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().to_string();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

fn near(found: &[f64], expected: &[f64], tolerance: f64) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance)
}

#[test]
fn every_method_finds_them() {
    let all = suite();
    assert!(all.len() >= 12, "the suite is there");
    for (name, text) in &all {
        let expected = Expected::of(text);
        for (method, tolerance) in METHODS {
            let with = options(&format!("--until {} {method}", expected.until));
            let found = match (run(text.parse().unwrap(), with), expected.fails) {
                (Ok(found), None) => found,
                (Err(Error::Failed { failure, .. }), Some(t)) => {
                    let text = failure.to_string();
                    let limit = text.split("limit at t = ").nth(1).unwrap().split(',').next();
                    let limit: f64 = limit.unwrap().parse().unwrap();
                    assert!((limit - t).abs() <= tolerance, "{name} {method}: {limit}");
                    continue;
                }
                (Err(error), _) => panic!("{name} {method}: {error}"),
                (Ok(_), Some(_)) => panic!("{name} {method}: it did not fail"),
            };
            for table in &found.summary.events {
                let times = &expected.times[&table.name];
                assert!(near(&table.t, times, tolerance), "{name} {method}: {:?}", table);
            }
            assert_eq!(found.summary.ended_by, expected.ends, "{name} {method}");
            let state = found.state();
            let is_known = !expected.state.is_empty();
            assert!(!is_known || near(&state, &expected.state, tolerance), "{name}: {state:?}");
        }
    }
}

#[test]
fn trajectories_of_an_ensemble_find_them() {
    for (name, text) in suite() {
        let expected = Expected::of(&text);
        if expected.fails.is_some() {
            continue;
        }
        let options =
            RunOptions { until: expected.until, samples: Some(3), ..RunOptions::default() };
        let trajectories = SweepOptions { trajectories: 3, ..SweepOptions::default() };
        let problem: Problem = text.parse().unwrap();
        let solution = prepare_sweep(&problem, options, trajectories).unwrap().solve().unwrap();
        for (event, times) in &expected.times {
            let array =
                |ending: &str| solution.arrays[&format!("events.{event}.{ending}")].values();
            let count = times.len() as f64;
            assert_eq!(array("count"), [count; 3], "{name}: {event}");
            let Some((first, last)) = times.first().zip(times.last()) else {
                assert!(array("first").iter().all(|t| t.is_nan()), "{name}: {event}");
                continue;
            };
            assert!(near(array("first"), &[*first; 3], 1e-6), "{name}: {event}");
            assert!(near(array("last"), &[*last; 3], 1e-6), "{name}: {event}");
        }
    }
}
