//! Command that repeats a run.

use crate::options::{Gains, PenaltyStrength, RunOptions, Settings};
use holonome_figures::numbers::exact;
use holonome_figures::text::shell_word;
use holonome_integrate::plan::{Metric, Singular};
use serde_json::{Map, Value};

/// Command that repeats a run or an ensemble with these attributes, from the file `NAME.holo` with
/// the model's text; `None` if the attributes cannot be read, or the run has options that no
/// command line can give.
pub(super) fn command(attributes: &Map<String, Value>) -> Option<String> {
    let read = |key: &str| attributes.get(key).cloned();
    let settings: Settings = serde_json::from_value(read("settings")?).ok()?;
    // Numbers that a program gave are in no file.
    let of_start = settings.start.as_ref().map_or(0, |start| start.values);
    if settings.given.len() > of_start {
        return None;
    }
    let options: RunOptions = serde_json::from_value(read("options")?).ok()?;
    let model = attributes.get("model")?.as_str()?;
    let sweep = attributes.get("sweep");
    let verb = if sweep.is_some() { "sweep" } else { "run" };
    let mut given: Vec<(&str, String)> = Vec::new();
    if let Some(sweep) = sweep {
        if sweep.get("each").is_some() {
            return None;
        }
        given.push(("trajectories", sweep["trajectories"].to_string()));
        for pair in sweep["vary"].as_array()? {
            given.push(("vary", format!("{}={}", pair[0].as_str()?, pair[1].as_str()?)));
        }
    }
    given.extend(of_model(&settings));
    let switches = [
        ("project_initial", settings.project_initial),
        ("allow_unverified", settings.allow_unverified),
        ("allow_unstable", options.allow_unstable),
        ("no_landing", !options.landing),
        ("error", options.error),
    ];
    let stiff = settings.stiff.map(|stiff| ("stiff", stiff));
    given.extend(of_run(options)?.into_iter().chain(stiff));
    let model = shell_word(&format!("{model}.holo"));
    let given = given.iter().map(|(name, value)| format!("{} {}", flag(name), shell_word(value)));
    let set = switches.iter().filter(|(_, set)| *set).map(|(name, _)| flag(name));
    let words = [format!("holonome {verb} {model}")].into_iter().chain(given).chain(set);
    Some(words.collect::<Vec<_>>().join(" "))
}

fn of_model(settings: &Settings) -> Vec<(&'static str, String)> {
    let set = settings.set.iter().map(|(name, value)| ("set", format!("{name}={value}")));
    let seed = (settings.seed != 0).then(|| ("seed", settings.seed.to_string()));
    let from = settings.span.and_then(|(from, _)| from).filter(|from| *from != 0.0);
    let from = from.map(|from| ("from", from.to_string()));
    let start = settings.start.as_ref().map(|start| ("start", start.path.clone()));
    set.chain(seed).chain(from).chain(start).collect()
}

/// Options of a run with their values; `None` if a command line cannot give one of them.
fn of_run(options: RunOptions) -> Option<Vec<(&'static str, String)>> {
    let number = |value: Option<f64>| value.map(exact);
    let count = |value: Option<u64>| value.map(|value| value.to_string());
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
    let singular = match options.singular {
        Singular::Stop => None,
        Singular::Continue => Some("continue".to_string()),
    };
    let on_or_off = |on| if on { "on" } else { "off" }.to_string();
    let (rtol, atol) = options.step.tolerances().unzip();
    let all = [
        ("method", Some(options.method.to_string())),
        ("step", number(options.step.fixed())),
        ("rtol", number(rtol)),
        ("atol", number(atol.filter(|atol| *atol != 0.0))),
        ("until", Some(exact(options.until))),
        ("every", number(options.every)),
        ("samples", count(options.samples)),
        ("at", options.at.map(|times| times.into_iter().map(exact).collect::<Vec<_>>().join(","))),
        ("max_step", number(options.max_step)),
        ("max_steps", count(options.max_steps)),
        ("metric", metric),
        ("singular", singular),
        ("record", options.record.map(|names| names.join(","))),
        ("gain", gain),
        ("reference", options.reference),
        ("projection_tolerance", number(options.projection_tolerance)),
        ("newton_tolerance", number(options.newton_tolerance)),
        ("penalty", penalty),
        ("penalty_tolerance", number(options.penalty_tolerance)),
        ("slow_manifold", options.slow_manifold.map(on_or_off)),
        ("beta", number(options.beta)),
    ];
    Some(all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

/// An option on a command line, whatever interface shows the page.
fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}
