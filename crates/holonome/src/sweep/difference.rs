//! Difference between an ensemble in a folder and the one that is to be computed there.

use holonome_words::{option, spelt};
use serde_json::{Map, Value};

/// Attributes whose entries are options of their own.
const OPTIONS: [&str; 3] = ["options", "settings", "sweep"];

/// Entries that follow from options, of other names.
const DERIVED: [&str; 2] = ["sampled_until", "start_off_set"];

/// First difference between the attributes of a stored ensemble and those of the one asked for, in
/// words; `None` if they are the same ensemble.
pub(super) fn difference(
    stored: &Map<String, Value>,
    asked: &Map<String, Value>,
) -> Option<String> {
    let of = |attributes: &Map<String, Value>, key: &str| -> Value {
        attributes.get(key).cloned().unwrap_or_default()
    };
    if let Some(found) = of_texts("the model", &of(stored, "source"), &of(asked, "source")) {
        return Some(found);
    }
    let (tables, new) = (of(stored, "tables"), of(asked, "tables"));
    for name in keys(&tables, &new) {
        if let Some(found) = of_texts(&name, &tables[&name], &new[&name]) {
            return Some(found);
        }
    }
    for part in OPTIONS {
        let (stored, asked) = (of(stored, part), of(asked, part));
        for name in keys(&stored, &asked) {
            let (before, now) = (&stored[&name], &asked[&name]);
            if before != now {
                let option = option_of(&name);
                return Some(format!(
                    "{option} is {} there, and {} here",
                    shown(before),
                    shown(now)
                ));
            }
        }
    }
    None
}

/// Option that gives an entry of the attributes.
fn option_of(name: &str) -> String {
    match name {
        // The start of the run and its end are given together.
        "span" => format!("{} or {}", option("from"), option("until")),
        name if DERIVED.contains(&name) => name.to_string(),
        name => spelt(name),
    }
}

/// Names of the entries of two objects.
fn keys(one: &Value, other: &Value) -> Vec<String> {
    let names = |value: &Value| -> Vec<String> {
        value.as_object().map_or(Vec::new(), |entries| entries.keys().cloned().collect())
    };
    let mut all = names(one);
    all.extend(names(other).into_iter().filter(|name| one.get(name).is_none()));
    // The number of trajectories often follows from others.
    all.sort_by_key(|name| name == "trajectories");
    all
}

/// First line in which two texts differ.
fn of_texts(what: &str, stored: &Value, asked: &Value) -> Option<String> {
    let (stored, asked) = (stored.as_str().unwrap_or(""), asked.as_str().unwrap_or(""));
    if stored == asked {
        return None;
    }
    let (mut before, mut now) = (stored.lines(), asked.lines());
    for line in 1.. {
        match (before.next(), now.next()) {
            (None, None) => break,
            (before, now) if before != now => {
                let quoted = |line: Option<&str>| {
                    line.map_or("missing".to_string(), |line| format!("`{}`", line.trim()))
                };
                return Some(format!(
                    "line {line} of {what} is {} there, and {} here",
                    quoted(before),
                    quoted(now)
                ));
            }
            _ => {}
        }
    }
    Some(format!("{what} has other ends of lines there"))
}

/// A value as it is given: lists of names with values as `g=1+i`.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not given".to_string(),
        Value::Bool(true) => "given".to_string(),
        Value::Bool(false) => "not given".to_string(),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => "not given".to_string(),
        Value::Array(list) => list.iter().map(entry).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

fn entry(value: &Value) -> String {
    match value {
        Value::Array(pair) if let [Value::String(name), Value::String(text)] = &pair[..] => {
            format!("{name}={text}")
        }
        Value::Object(of) if let (Some(name), Some(sum)) = (of.get("name"), of.get("crc32c")) => {
            format!(
                "{} ({} numbers, checksum {})",
                shown(name),
                shown(of.get("numbers").unwrap_or(&Value::Null)),
                shown(sum)
            )
        }
        other => shown(other),
    }
}
