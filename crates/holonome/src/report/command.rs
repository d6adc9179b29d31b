//! Command that repeats a run.

use crate::options::{Gains, PenaltyStrength, RunOptions, Settings};
use holonome_figures::numbers::exact;
use holonome_figures::text::shell_word;
use holonome_integrate::plan::Metric;
use serde_json::{Map, Value};

/// Command that repeats a run or an ensemble with these attributes, from the file `NAME.holo` with
/// the model's text; `None` if the attributes cannot be read, or the run has options that no
/// command line can give.
pub(super) fn command(attributes: &Map<String, Value>) -> Option<String> {
    let read = |key: &str| attributes.get(key).cloned();
    let settings: Settings = serde_json::from_value(read("settings")?).ok()?;
    let options: RunOptions = serde_json::from_value(read("options")?).ok()?;
    let model = attributes.get("model")?.as_str()?;
    let sweep = attributes.get("sweep");
    let verb = if sweep.is_some() { "sweep" } else { "run" };
    let mut words = vec![format!("holonome {verb} {}", shell_word(&format!("{model}.holo")))];
    let mut add = |name: &'static str, value: &str| {
        words.push(format!("{} {}", flag(name), shell_word(value)))
    };
    if let Some(sweep) = sweep {
        add("trajectories", &sweep["trajectories"].to_string());
        for pair in sweep["vary"].as_array()? {
            add("vary", &format!("{}={}", pair[0].as_str()?, pair[1].as_str()?));
        }
    }
    for (name, value) in &settings.set {
        add("set", &format!("{name}={value}"));
    }
    if settings.seed != 0 {
        add("seed", &settings.seed.to_string());
    }
    if let Some((from, _)) = settings.span.filter(|(from, _)| *from != 0.0) {
        add("from", &from.to_string());
    }
    let default = RunOptions::default();
    add("method", &options.method.to_string());
    match options.step.tolerances() {
        None => add("step", &exact(options.step.fixed()?)),
        Some((rtol, atol)) => {
            add("rtol", &exact(rtol));
            if atol != 0.0 {
                add("atol", &exact(atol));
            }
        }
    }
    add("until", &exact(options.until));
    let number = |value: Option<f64>| value.map(exact);
    let gain = match &options.gain {
        None => None,
        Some(Gains::Auto) => Some("auto".to_string()),
        Some(Gains::Uniform(gain)) => Some(gain.to_string()),
        Some(Gains::Named(all)) => Some(
            all.iter().map(|(name, gain)| format!("{name}={gain}")).collect::<Vec<_>>().join(","),
        ),
        Some(Gains::Matrix(_) | Gains::Formula) => return None,
    };
    let penalty = options.penalty.map(|penalty| match penalty {
        PenaltyStrength::Auto => "auto".to_string(),
        PenaltyStrength::Omega(omega) => omega.to_string(),
    });
    let metric = match options.metric {
        Metric::Auto => None,
        Metric::Error => Some("error".to_string()),
        Metric::Euclidean => Some("euclidean".to_string()),
    };
    let count = |value: Option<u64>| value.map(|value| value.to_string());
    for (name, value) in [
        ("every", number(options.every)),
        ("samples", count(options.samples)),
        ("max_step", number(options.max_step)),
        ("max_steps", count(options.max_steps.filter(|_| options.max_steps != default.max_steps))),
        ("metric", metric),
        ("record", options.record.map(|names| names.join(","))),
        ("gain", gain),
        ("reference", options.reference),
        ("projection_tolerance", number(options.projection_tolerance)),
        ("newton_tolerance", number(options.newton_tolerance)),
        ("penalty", penalty),
        ("penalty_tolerance", number(options.penalty_tolerance)),
        (
            "slow_manifold",
            options.slow_manifold.map(|on| if on { "on" } else { "off" }.to_string()),
        ),
        ("beta", number(options.beta)),
        ("stiff", settings.stiff),
    ] {
        if let Some(value) = value {
            add(name, &value);
        }
    }
    for (name, set) in [
        ("project_initial", settings.project_initial),
        ("allow_unverified", settings.allow_unverified),
        ("allow_unstable", options.allow_unstable),
        ("error", options.error),
    ] {
        if set {
            words.push(flag(name));
        }
    }
    Some(words.join(" "))
}

/// An option on a command line, whatever interface shows the page.
fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}
