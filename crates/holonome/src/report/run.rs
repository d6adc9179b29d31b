//! Pages of runs, one or several side by side.

use super::command::command;
use super::events::Events;
use super::invariants::{self, DrawnRun, Invariant, charts, cost_rows, drift_table};
use super::lattice;
use super::measures;
use super::sampled;
use super::sampling::{Rates, Sampling};
use super::scene;
use super::{AGAIN, folded, model_section, section};
use crate::check::Report as Check;
use crate::error::Error;
use crate::recording::TIME;
use crate::simulation::stored_problem;
use crate::store::{Status, StoredRun};
use crate::summary::StoredSummary;
use holonome_figures::numbers::{count, exact, number, small};
use holonome_figures::{
    Axis, Chart, Curve, Motion, Page, Panel, Preset, Samples, Section, Style, Table,
};
use serde_json::Value;

/// Maximum number of curves of one quantity.
const CURVES: usize = 8;

/// Maximum number of multipliers drawn.
const MULTIPLIERS: usize = 12;

/// Data shown of a run.
pub(super) struct Shown {
    name: String,
    run: StoredRun,
    summary: StoredSummary,
    times: Vec<f64>,
    invariants: Vec<Invariant>,
    samples: Samples,
    motions: Vec<Motion>,
    events: Events,
    /// Report of the engine on the model; the error says why it is not known.
    derived: Result<String, String>,
}

impl Shown {
    /// Read a run, of which about `numbers` numbers of samples and `places` numbers of positions
    /// are shown.
    ///
    /// # Errors
    /// If the run is damaged.
    pub fn read(
        name: String,
        run: StoredRun,
        numbers: usize,
        places: usize,
    ) -> Result<Shown, Error> {
        let times = run.times().map_err(Error::store)?;
        let mut samples = sampled::samples(&run, &name, numbers)?;
        let mut summary = StoredSummary::from(run.summary());
        let invariants = invariants::invariants(summary.drift.take());
        let problem = stored_problem(run.path(), run.attributes());
        let mut sampling = Sampling::default();
        let (motions, derived) = match problem {
            Ok(problem) => {
                let mut rates = Rates::new(&run, &problem)?;
                if let Some(rates) = &mut rates {
                    sampling = rates.sampling(1)?;
                }
                let motions = scene::motions(&run, &problem, &times, rates.as_mut(), places)?;
                let check = Check::new(&problem);
                let words = check.plain_words();
                (
                    motions,
                    Ok(format!(
                        "{}in plain words:
{words}",
                        check.to_long_text()
                    )),
                )
            }
            Err(error) => (Vec::new(), Err(error.to_string())),
        };
        samples.joined = sampling.follows();
        samples.note = sampling.note().unwrap_or_default();
        let events = Events::read(&run, &samples, numbers)?;
        Ok(Shown { name, run, summary, times, invariants, samples, motions, events, derived })
    }

    /// Label of an axis of time.
    fn time_label(&self) -> String {
        sampled::with_unit(TIME, self.run.time_unit())
    }

    fn attribute(&self, key: &str) -> &str {
        self.run.attributes().get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Page of some runs.
pub(super) fn page(runs: &[Shown]) -> Result<Page, Error> {
    let mut titles: Vec<String> = Vec::new();
    for run in runs {
        let title = match runs.len() {
            1 => format!("{} by {}", run.attribute("model"), run.attribute("method")),
            _ => run.attribute("model").to_string(),
        };
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    let mut page = Page { title: titles.join(", "), ..Page::default() };
    for run in runs {
        let prefix = prefix_of(runs, run);
        page.warnings.extend(warnings(run).into_iter().map(|warning| format!("{prefix}{warning}")));
    }
    if let [run] = runs {
        page.facts = facts(run);
    }
    let motion = |run: &Shown| {
        let name = if runs.len() > 1 { run.name.clone() } else { "Motion".to_string() };
        let named = |motion: &Motion| Motion { name: name.clone(), ..motion.clone() };
        let motions: Vec<Motion> = run.motions.iter().map(named).collect();
        (!motions.is_empty()).then_some(Panel::Motion(motions))
    };
    let mut first: Vec<Panel> = runs.iter().filter_map(motion).collect();
    let sources: Vec<DrawnRun> = runs
        .iter()
        .map(|run| DrawnRun {
            name: &run.name,
            run: &run.run,
            times: &run.times,
            invariants: &run.invariants,
        })
        .collect();
    for run in runs {
        let maps = lattice::of_page(&run.run, &run.time_label())?;
        let named = maps.into_iter().map(|chart| {
            let title = format!("{}{}", prefix_of(runs, run), chart.title);
            (
                chart.map.as_ref().map_or_else(String::new, |map| map.name.clone()),
                Chart { title, ..chart },
            )
        });
        let named: Vec<(String, Chart)> = named.collect();
        first.extend((!named.is_empty()).then_some(Panel::Charts(named)));
    }
    first.extend(over_time(runs));
    let samples: Vec<Samples> = runs.iter().map(|run| run.samples.clone()).collect();
    if samples.iter().any(|samples| samples.columns.len() > 1) {
        let presets = presets(&runs[0]);
        let title = "Any variable over any other".to_string();
        first.push(Panel::Explorer { title, runs: samples, presets });
    }
    first.extend(runs.iter().flat_map(|run| run.events.panels(prefix_of(runs, run))));
    first.extend(runs.iter().flat_map(|run| measures::panels(&run.summary.measures)));
    for run in runs {
        let title = if runs.len() > 1 {
            format!("Multipliers of {}", run.name)
        } else {
            "Multipliers".to_string()
        };
        first.extend(
            multipliers(run, title).map(|chart| Panel::Charts(vec![(String::new(), chart)])),
        );
    }
    page.sections.push(section(first));
    let drifts = charts(&sources)?;
    let mut kept = Vec::new();
    if !drifts.is_empty() {
        kept.push(Panel::Charts(drifts));
    }
    kept.extend(tables(runs));
    page.sections.push(folded(kept_title(runs), kept));
    page.sections.extend(texts(runs));
    Ok(page)
}

/// What stands before texts about one of several runs.
fn prefix_of(runs: &[Shown], run: &Shown) -> String {
    if runs.len() > 1 { format!("{}: ", run.name) } else { String::new() }
}

fn warnings(run: &Shown) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let stood = |what: &str| {
        let t = run
            .times
            .get(run.run.samples().saturating_sub(1))
            .map_or(String::new(), |t| format!(" at t = {}", exact(*t)));
        format!(
            "{what}{t}: {} of {} samples are there",
            run.run.samples(),
            run.run.samples_planned()
        )
    };
    match run.run.status() {
        Status::Finished => {}
        Status::Running => all.push(stood("This run is not at its end; it stands")),
        Status::Interrupted => all.push(stood("This run was interrupted")),
        Status::Failed => {
            let error = run.summary.error.as_ref();
            let message = error.map_or("see its status", |error| &error.message);
            all.push(format!("{}: {message}", stood("This run failed")));
        }
    }
    all.extend(run.summary.warnings.iter().cloned());
    if let Err(reason) = &run.derived {
        all.push(format!("The motion is not shown, as the model cannot be read again: {reason}"));
    }
    all
}

fn facts(run: &Shown) -> Vec<(String, String)> {
    let summary = &run.summary;
    let mut facts: Vec<(&str, String)> = vec![("method", run.attribute("method").to_string())];
    let options = run.run.attributes().get("options").cloned().unwrap_or_default();
    match options["step"].as_f64() {
        Some(step) => facts.push(("step", exact(step))),
        None => facts.extend(options["rtol"].as_f64().map(|rtol| ("tolerance", number(rtol)))),
    }
    facts.extend(summary.t.map(|t| ("until t =", number(t))));
    facts.extend(summary.steps.map(|steps| ("steps", count(steps))));
    facts.push(("samples", count(run.run.samples() as u64)));
    let cost = summary.cost.as_ref();
    facts.extend(cost.map(|cost| ("seconds", format!("{:.3}", cost.wall_seconds))));
    facts.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// Initial axes: the orbit, the phase portrait, a section, and recorded quantities over time.
fn presets(run: &Shown) -> Vec<Preset> {
    let role = |wanted: &str| -> Vec<Vec<String>> {
        let columns = |array: String| -> Vec<String> {
            let names = run.run.column_names(&array).unwrap_or_default();
            names
                .into_iter()
                .filter(|name| run.samples.columns.iter().any(|(column, _)| column == name))
                .collect()
        };
        run.run
            .arrays()
            .into_iter()
            .filter(|array| array.has_role(wanted))
            .map(|array| columns(array.name))
            .filter(|columns| !columns.is_empty())
            .collect()
    };
    let over = |x: &str, y: &str, what: &str| Preset {
        name: format!("{what}: {y} over {x}"),
        x: x.to_string(),
        y: y.to_string(),
        section: None,
    };
    let (coordinates, momenta, states) = (role("coordinate"), role("momentum"), role("state"));
    let observables = role("observable");
    let mut presets = Vec::new();
    let q: Vec<&String> = coordinates.iter().flatten().collect();
    let p: Vec<&String> = momenta.iter().flatten().collect();
    // The plane that shows most of a motion in space is not known; x and y are a beginning.
    let first = coordinates.first().map_or(&[][..], |first| &first[..]);
    let stem = |name: &str| name.rsplit_once('.').map(|(stem, _)| stem.to_string());
    // In a family the last member moves most.
    let last: Vec<&String> = first
        .iter()
        .filter(|name| stem(name) == first.last().and_then(|last| stem(last)))
        .collect();
    // Numbers at the sites of a lattice are no orbit.
    let is_lattice = first.len() > 3 && !first[0].contains('.');
    if let ([a, b, ..], false) = (&last[..], is_lattice) {
        presets.push(over(a, b, "orbit"));
    }
    if let (Some(q), Some(p)) = (q.first(), p.first()) {
        presets.push(over(q, p, "phase portrait"));
    }
    if let ([q1, q2, ..], [_, p2, ..], false) = (&q[..], &p[..], is_lattice) {
        presets.push(Preset {
            name: format!("section: {p2} over {q2} where {q1} = 0"),
            x: q2.to_string(),
            y: p2.to_string(),
            section: Some((q1.to_string(), 0.0)),
        });
    }
    let x: Vec<&String> = states.iter().flatten().collect();
    if let [a, b, ..] = x[..] {
        presets.push(over(a, b, "states"));
    }
    for name in observables
        .iter()
        .flatten()
        .take(6)
        .chain(q.iter().copied().take(3))
        .chain(x.iter().copied().take(3))
    {
        presets.push(over("t", name, "time"));
    }
    if presets.is_empty() {
        presets.extend(run.samples.columns.get(1).map(|(name, _)| over("t", name, "time")));
    }
    presets
}

/// Title of what is told of the invariants and the cost.
fn kept_title(runs: &[Shown]) -> String {
    let of = |run: &Shown| {
        let relative = run.invariants.iter().filter_map(|i| Some(i.drift.relative?.max));
        relative.fold(None, |most: Option<f64>, drift| Some(most.unwrap_or(0.0).max(drift)))
    };
    match runs.iter().filter_map(of).reduce(f64::max) {
        Some(most) => format!("Invariants and cost: largest relative drift {}", small(most)),
        None => "Invariants and cost".to_string(),
    }
}

/// Charts over time: the observables of the first run, each with all of its components; otherwise
/// its positions or states.
fn over_time(runs: &[Shown]) -> Option<Panel> {
    let run = runs.first()?;
    let arrays = run.run.arrays();
    let of_role = |roles: &[&str]| -> Vec<(String, Vec<String>)> {
        let arrays = arrays.iter().filter(|array| roles.iter().any(|role| array.has_role(role)));
        let columns = arrays.map(|array| {
            let names = run.run.column_names(&array.name).unwrap_or_default();
            let is_there = |name: &String| run.samples.column(name).is_some();
            (array.name.clone(), names.into_iter().filter(is_there).collect::<Vec<String>>())
        });
        columns.filter(|(_, names)| !names.is_empty()).collect()
    };
    let observables = of_role(&["observable"]);
    let shown = match observables.is_empty() {
        true => of_role(&["coordinate", "state"]),
        false => observables,
    };
    let chart = |(array, names): &(String, Vec<String>)| {
        let mut curves = Vec::new();
        for (k, of) in runs.iter().enumerate() {
            for (j, name) in names.iter().take(CURVES).enumerate() {
                let Some(values) = of.samples.column(name) else { continue };
                curves.push(Curve {
                    name: match runs.len() {
                        1 => name.clone(),
                        _ => format!("{}: {name}", of.name),
                    },
                    colour: k * names.len().min(CURVES) + j,
                    x: of.samples.columns[0].1.clone(),
                    y: values.to_vec(),
                    style: if of.samples.joined { Style::Line } else { Style::Points },
                    bounds: Vec::new(),
                });
            }
        }
        if let [only] = &mut curves[..] {
            only.name.clear();
        }
        let unit = sampled::unit(&run.run, &names[0]);
        Chart {
            title: format!("{array} over time"),
            note: run.samples.note.clone(),
            x: Axis { label: run.time_label(), ..Axis::time() },
            y: Axis::linear(sampled::with_unit(array, unit.as_deref())),
            curves,
            ..Chart::default()
        }
    };
    let charts: Vec<(String, Chart)> = shown.iter().map(|of| (of.0.clone(), chart(of))).collect();
    (!charts.is_empty()).then_some(Panel::Charts(charts))
}

fn multipliers(run: &Shown, title: String) -> Option<Chart> {
    let all = run.samples.columns.iter().filter(|(name, _)| name.starts_with("lambda."));
    let curves: Vec<Curve> = all
        .take(MULTIPLIERS)
        .enumerate()
        .map(|(colour, (name, values))| Curve {
            name: name.clone(),
            colour,
            x: run.samples.columns[0].1.clone(),
            y: values.clone(),
            style: if run.samples.joined { Style::Line } else { Style::Points },
            bounds: Vec::new(),
        })
        .collect();
    let note = "Multipliers of the constraints, the forces that hold them.".to_string();
    (!curves.is_empty()).then(|| Chart {
        title,
        note,
        x: Axis { label: run.time_label(), ..Axis::time() },
        y: Axis::linear("λ"),
        curves,
        ..Chart::default()
    })
}

fn tables(runs: &[Shown]) -> Vec<Panel> {
    let summaries: Vec<&StoredSummary> = runs.iter().map(|run| &run.summary).collect();
    let mut tables = Vec::new();
    if let [run] = runs {
        tables.extend(drift_table(&run.invariants, &run.summary.units));
        let mut rows = cost_rows(&summaries);
        if !rows.is_empty() {
            rows.insert(0, vec!["cost".to_string(), String::new()]);
            tables.push(Table { title: "Cost".to_string(), rows, ..Table::default() });
        }
    } else {
        let head = |first: &str| {
            std::iter::once(first.to_string())
                .chain(runs.iter().map(|run| run.name.clone()))
                .collect()
        };
        let mut keys: Vec<(&str, &str)> = Vec::new();
        for invariant in runs.iter().flat_map(|run| &run.invariants) {
            if !keys.iter().any(|(key, _)| *key == invariant.key) {
                keys.push((&invariant.key, &invariant.label));
            }
        }
        let mut rows: Vec<Vec<String>> = vec![head("largest drift of")];
        for (key, label) in keys {
            let of = |run: &Shown| {
                run.invariants
                    .iter()
                    .find(|i| i.key == key)
                    .map_or(String::new(), |i| small(i.drift.max))
            };
            rows.push(std::iter::once(label.to_string()).chain(runs.iter().map(of)).collect());
        }
        rows.push(
            std::iter::once("method".to_string())
                .chain(runs.iter().map(|run| run.attribute("method").to_string()))
                .collect(),
        );
        rows.extend(cost_rows(&summaries));
        tables.push(Table { title: "Drifts and costs".to_string(), rows, ..Table::default() });
    }
    tables.into_iter().map(Panel::Table).collect()
}

/// Sections of the models with their reports, and of the commands that repeat the runs.
fn texts(runs: &[Shown]) -> Vec<Section> {
    let (mut texts, mut derived, mut known) = (Vec::new(), Vec::new(), Vec::new());
    for run in runs {
        let source = run.attribute("source");
        if !known.contains(&source) {
            known.push(source);
            let title = format!("{}.holo", run.attribute("model"));
            let of = |text: &String| Panel::Text { title: title.clone(), text: text.clone() };
            derived.extend(run.derived.as_ref().ok().map(of));
            texts.push((title, source.to_string()));
        }
    }
    let commands: Vec<String> =
        runs.iter().filter_map(|run| command(run.run.attributes())).collect();
    if !commands.is_empty() {
        texts.push((AGAIN.to_string(), commands.join("\n")));
    }
    let derived = (!derived.is_empty()).then(|| folded("What was derived of it", derived));
    [model_section(texts)].into_iter().chain(derived).collect()
}
