//! Helpers that run models through the library, in folders that are removed at the end.

#![allow(dead_code, reason = "each test binary uses its part")]

use holonome::store::StoredRun;
use holonome::{
    Control, Error, Gains, PenaltyStrength, Problem, RunOptions, Settings, StepSize, Summary,
    Thermostat, prepare,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Model of the repository's `models` folder, with the values `set`.
pub fn model(name: &str, set: &[(&str, &str)]) -> Problem {
    load(&repository().join("models").join(format!("{name}.holo")), set).unwrap()
}

pub fn load(path: &Path, set: &[(&str, &str)]) -> Result<Problem, Error> {
    load_with(path, set, None)
}

/// [`load`] with a stiff term (`--stiff`).
pub fn load_with(path: &Path, set: &[(&str, &str)], stiff: Option<&str>) -> Result<Problem, Error> {
    let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Problem::load(path, &Settings { set, stiff: stiff.map(str::to_string), ..Settings::default() })
}

/// A finished run with its samples, whose folder is removed on drop.
pub struct Finished {
    pub summary: Summary,
    pub folder: PathBuf,
}

impl Finished {
    /// Samples of one array, row by row.
    pub fn array(&self, name: &str) -> Vec<Vec<f64>> {
        let run = StoredRun::open(&self.folder).unwrap();
        let numbers = run.read(name).unwrap();
        numbers.chunks(numbers.len() / run.samples()).map(<[f64]>::to_vec).collect()
    }

    pub fn times(&self) -> Vec<f64> {
        StoredRun::open(&self.folder).unwrap().times().unwrap()
    }

    /// Final state as one list, in the order of the model.
    pub fn state(&self) -> Vec<f64> {
        self.summary.state.numbers().to_vec()
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn run(problem: Problem, options: RunOptions) -> Result<Finished, Error> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("holonome-library-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let mut simulation = prepare(problem, RunOptions { out: Some(folder.clone()), ..options })?;
    let summary = simulation.run(&mut |_| Control::Continue)?;
    Ok(Finished { summary, folder })
}

/// Options from a command line.
pub fn options(text: &str) -> RunOptions {
    let mut options = RunOptions::default();
    let tolerances = |options: &RunOptions| options.step.tolerances().unwrap_or((1e-9, 0.0));
    let (rtol, atol) = (
        |options: &RunOptions| tolerances(options).0,
        |options: &RunOptions| tolerances(options).1,
    );
    let mut words = text.split_whitespace();
    while let Some(option) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{option} without a value"));
        let number = || value.parse::<f64>().unwrap();
        match option {
            "--method" => options.method = value.parse().unwrap(),
            "--step" => options.step = StepSize::Fixed(number()),
            "--until" => options.until = number(),
            "--rtol" => options.step = StepSize::Adaptive { rtol: number(), atol: atol(&options) },
            "--atol" => options.step = StepSize::Adaptive { rtol: rtol(&options), atol: number() },
            "--samples" => options.samples = Some(value.parse().unwrap()),
            "--every" => options.every = Some(number()),
            "--thermostat" => options.thermostat = (value == "gla").then_some(Thermostat::Gla),
            "--friction" => options.friction = Some(number()),
            "--inverse-temperature" => options.inverse_temperature = Some(number()),
            "--gain" => options.gain = Some(value.parse::<Gains>().unwrap()),
            "--max-steps" => options.max_steps = Some(value.parse().unwrap()),
            "--beta" => options.beta = Some(number()),
            "--penalty" => options.penalty = Some(PenaltyStrength::Omega(number())),
            "--slow-manifold" => options.slow_manifold = Some(value == "on"),
            "--metric" => options.metric = serde_json::from_value(json!(value)).unwrap(),
            "--singular" => options.singular = value.parse().unwrap(),
            "--reference" => options.reference = Some(value.to_string()),
            other => panic!("{other} is not known here"),
        }
    }
    options
}

/// All numbers in a JSON value, in their order.
pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(list) => list.iter().flat_map(numbers).collect(),
        Value::Object(object) => object.values().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap_or_else(|| panic!("{number} is no number"))],
    }
}

/// Euclidean distance.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}
