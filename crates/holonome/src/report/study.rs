//! Pages and figures of studies: their claims, and their figures drawn anew.

use super::Axes;
use super::plot::columns_of_runs;
use super::{made_by, report};
use crate::error::Error;
use crate::store::StoredRun;
use crate::study::{
    Columns, Figure as Planned, Judged, MeasuredValue, Panel as Drawn, Points, Quantity, Study,
    StudyRun, Timing, What, short,
};
use crate::summary::COUNTED;
use holonome_figures::{Axis, Chart, Curve, Figure, Page, Panel, Section, Style, Table};
use holonome_words::option;
use std::collections::BTreeMap;
use std::path::Path;

/// A study whose runs were made.
pub struct Reproduced<'s> {
    /// Name, which is that of its folder.
    pub name: &'s str,
    /// Plan of the study.
    pub study: &'s Study,
    /// Verdicts on its claims.
    pub judged: &'s [Judged],
}

/// Page of a study: its claims, its figures, and its runs side by side.
///
/// # Errors
/// If a run is damaged.
pub fn study(
    of: &Reproduced,
    made: &BTreeMap<String, StudyRun>,
    index: &str,
) -> Result<Page, Error> {
    let study = of.study;
    let stored = |(name, made): (&String, &StudyRun)| match made {
        StudyRun::Stored { run, .. } if !study.runs[name].aside => Some(run.path().to_path_buf()),
        _ => None,
    };
    let paths: Vec<_> = made.iter().filter_map(stored).collect();
    let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
    let of_runs = if paths.is_empty() { Page::default() } else { report(&paths, false)? };
    let mut page = Page {
        title: study.title.clone(),
        warnings: differing(&[of]),
        made_by: made_by(),
        ..Page::default()
    };
    page.facts =
        vec![("paper".to_string(), study.paper.clone()), ("again by".to_string(), command(&[of]))];
    page.sections.push(Section {
        title: "All studies".into(),
        link: Some(index.into()),
        panels: vec![claims(of)],
        ..Section::default()
    });
    for (planned, figure) in drawn(study, made)? {
        let panels = figure
            .panels
            .into_iter()
            .map(|chart| Panel::Charts(vec![(String::new(), chart)]))
            .collect();
        let title = format!("{}: {}", planned.place, planned.title);
        page.sections.push(Section { title, panels, ..Section::default() });
    }
    let timings: Vec<Panel> =
        study.timings.iter().map(|timing| table(study, timing, made)).collect();
    if !timings.is_empty() {
        page.sections.push(Section {
            title: "Times".to_string(),
            panels: timings,
            ..Section::default()
        });
    }
    let runs = of_runs.sections.into_iter().enumerate().map(|(k, section)| match k {
        0 => Section { title: "The runs".to_string(), ..section },
        _ => section,
    });
    page.sections.extend(runs);
    Ok(page)
}

/// Page of all studies: their claims, with links to their own pages.
pub fn index(all: &[Reproduced]) -> Page {
    let all: Vec<&Reproduced> = all.iter().collect();
    let sections = all.iter().map(|of| Section {
        title: of.study.title.clone(),
        link: Some(format!("{}/report.html", of.name)),
        panels: vec![claims(of)],
        ..Section::default()
    });
    let claims = || all.iter().flat_map(|of| of.judged);
    let count = |agrees| claims().filter(|claim| claim.agrees == agrees).count().to_string();
    Page {
        title: "The papers' experiments, made again".to_string(),
        facts: vec![
            ("studies".to_string(), all.len().to_string()),
            ("claims".to_string(), claims().count().to_string()),
            ("as recorded".to_string(), count(Some(true))),
            ("again by".to_string(), command(&all)),
        ],
        warnings: differing(&all),
        sections: sections.collect(),
        made_by: made_by(),
        ..Page::default()
    }
}

fn command(all: &[&Reproduced]) -> String {
    format!("holonome reproduce {}", all.iter().map(|of| of.name).collect::<Vec<_>>().join(" "))
}

fn differing(all: &[&Reproduced]) -> Vec<String> {
    let of_one = |of: &&Reproduced| {
        let differ = of.judged.iter().filter(|claim| claim.agrees == Some(false));
        differ
            .map(|claim| {
                format!("{}: '{}' differs from what is recorded.", of.study.title, claim.says)
            })
            .collect()
    };
    all.iter().flat_map(of_one as fn(&&Reproduced) -> Vec<String>).collect()
}

/// Claims of a study with the measured values.
fn claims(of: &Reproduced) -> Panel {
    let mut rows = vec![["claim", "verdict", "measured (has to be)"].map(String::from).to_vec()];
    for Judged { says, place, verdict, because, agrees, measured } in of.judged {
        let verdict = match agrees {
            Some(true) => verdict.words(),
            Some(false) => "DIFFERS",
            None => "not looked at",
        };
        let because = because.as_ref().map_or(String::new(), |because| format!(": {because}"));
        let line = |MeasuredValue { name, value, wanted, failed, .. }: &MeasuredValue| {
            let value = value.map(short).or_else(|| failed.clone()).unwrap_or_default();
            format!("{name}: {value} ({wanted})")
        };
        let measured: Vec<String> = measured.iter().map(line).collect();
        rows.push(vec![
            format!("{says}\n{place}"),
            format!("{verdict}{because}"),
            measured.join("\n"),
        ]);
    }
    let title = "What the paper claims, and what was measured".to_string();
    Panel::Table(Table { title, rows, words: true, ..Table::default() })
}

/// Table of costs beside the seconds printed in a paper, both also relative to those of the first
/// run.
fn table(study: &Study, timing: &Timing, made: &BTreeMap<String, StudyRun>) -> Panel {
    let head = [
        "run",
        "forces or fields",
        "linear solves",
        "gradients",
        "over the first",
        "seconds",
        "over the first",
    ];
    let mut rows = vec![
        head.into_iter().chain(["printed", "over the first"]).map(String::from).collect::<Vec<_>>(),
    ];
    let of = |what: What, run: &str| Quantity::new(what).of_run(run).value(study, made);
    let ratio = |what: What, run: &str| Ok(of(what, run)? / of(what, &timing.runs[0])?);
    for (run, printed) in timing.runs.iter().zip(&timing.printed) {
        let ours = [
            of(What::Work, run),
            of(What::Solves, run),
            of(What::Budget, run),
            ratio(What::Budget, run),
            of(What::Seconds, run),
            ratio(What::Seconds, run),
            Ok(*printed),
            Ok(printed / timing.printed[0]),
        ];
        let cells = ours
            .into_iter()
            .map(|value: Result<f64, String>| value.map_or_else(|reason| reason, short));
        rows.push(std::iter::once(run.clone()).chain(cells).collect());
    }
    let note =
        format!("Gradients: {COUNTED}. Seconds are of the machine below and of the paper's.");
    Panel::Table(Table {
        title: format!("{}: {}", timing.place, timing.title),
        rows,
        note,
        words: false,
    })
}

/// Figures of a study for which there are runs.
///
/// # Errors
/// If a run is damaged, or lacks a quantity that a figure draws.
pub fn drawn<'s>(
    study: &'s Study,
    made: &BTreeMap<String, StudyRun>,
) -> Result<Vec<(&'s Planned, Figure)>, Error> {
    let of_one = |planned: &'s Planned| {
        let panels = planned.panels.iter().map(|panel| chart(study, planned, panel, made));
        Ok((planned, Figure { panels: panels.collect::<Result<_, Error>>()?, ..Figure::default() }))
    };
    let all: Vec<_> = study.figures.iter().map(of_one).collect::<Result<_, Error>>()?;
    Ok(all
        .into_iter()
        .filter(|(_, figure)| figure.panels.iter().any(|chart| !chart.is_empty()))
        .collect())
}

fn chart(
    study: &Study,
    figure: &Planned,
    panel: &Drawn,
    made: &BTreeMap<String, StudyRun>,
) -> Result<Chart, Error> {
    let names = figure.runs_of(panel);
    let mut missing = Vec::new();
    for name in names.iter().flat_map(|name| study.members(name)) {
        match made.get(name) {
            Some(StudyRun::Stored { .. }) => {}
            Some(StudyRun::Refused(reason)) => {
                missing.push(format!("{name} was refused: {reason}"))
            }
            None => missing
                .push(format!("{name} was not made, as it is long: {} makes it", option("full"))),
        }
    }
    let mut chart = match panel {
        Drawn::Points(points) => of_points(study, points, names, made, &mut missing),
        Drawn::Columns(columns) => of_columns(columns, names, made)?,
    };
    chart.title = format!("{} over {}", chart.y.label, chart.x.label);
    let notes = std::iter::once(&figure.note).chain(&missing).filter(|note| !note.is_empty());
    chart.note =
        notes.map(|note| format!("{}.", note.trim_end_matches('.'))).collect::<Vec<_>>().join(" ");
    Ok(chart)
}

fn of_columns(
    columns: &Columns,
    names: &[String],
    made: &BTreeMap<String, StudyRun>,
) -> Result<Chart, Error> {
    let stored = |name: &String| -> Option<&StoredRun> {
        match made.get(name) {
            Some(StudyRun::Stored { run, .. }) => Some(run),
            _ => None,
        }
    };
    let from = columns.from.as_ref().map(stored);
    if matches!(from, Some(None)) {
        return Ok(Chart::default());
    }
    let found = names.iter().filter_map(|name| Some((stored(name)?, name.clone())));
    let (runs, names): (Vec<&StoredRun>, Vec<String>) = found.unzip();
    let axes = Axes { x: columns.x.clone(), y: columns.y.clone(), ..Axes::default() };
    let mut chart = columns_of_runs(&runs, &names, &axes, (from.flatten(), &[]))?;
    if let Some(from) = &columns.from {
        chart.y.label = format!("{} − that of {from}", chart.y.label);
    }
    if columns.log && !chart.y.log {
        chart.y = Axis::log(format!("|{}|", chart.y.label));
        chart.curves.iter_mut().flat_map(|curve| &mut curve.y).for_each(|y| *y = y.abs());
    }
    Ok(chart)
}

/// A point per run; the reasons of missing ones are added to `missing`.
fn of_points(
    study: &Study,
    points: &Points,
    names: &[String],
    made: &BTreeMap<String, StudyRun>,
    missing: &mut Vec<String>,
) -> Chart {
    let mut curves = Vec::new();
    for (colour, name) in names.iter().enumerate() {
        let mut curve =
            Curve { name: name.clone(), colour, style: Style::Marked, ..Curve::default() };
        for member in study
            .members(name)
            .iter()
            .filter(|member| made.get(*member).is_some_and(StudyRun::is_stored))
        {
            let value = |of: &Quantity| of.of_run(member).value(study, made);
            match value(&points.x).and_then(|x| Ok((x, value(&points.y)?))) {
                Ok((x, y)) => {
                    curve.x.push(x);
                    curve.y.push(y);
                }
                Err(reason) => missing.push(reason),
            }
        }
        curves.push(curve);
    }
    let (x, y) = (Axis::log(points.x.label()), Axis::log(points.y.label()));
    Chart { x, y, curves, ..Chart::default() }
}
