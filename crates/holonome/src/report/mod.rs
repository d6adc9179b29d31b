//! Pages of runs, ensembles and comparisons, written by `holonome report`.
//!
//! Each kind of result becomes panels, which [`holonome_figures`] draws. A page is a list of
//! panels, so the page of several results consists of the panels of each.

mod animation;
mod command;
mod comparison;
mod events;
mod folder;
mod histories;
mod invariants;
mod lattice;
mod measures;
mod plot;
mod run;
mod sampled;
mod sampling;
mod scene;
mod smooth;
mod states;
mod study;
mod sweep;

use crate::compare::Comparison;
use crate::error::Error;
use crate::store::{Status, StoreError, StoredRun};
use holonome_figures::{Chart, Figure, Film, Format, Page, Panel, Section, Style, Video};
use run::Shown;
use std::fs;
use std::path::Path;

pub use animation::{FilmOptions, film};
pub use folder::ComparisonFolder;
pub use holonome_figures as figures;
pub use plot::figure;
pub use study::{Reproduced, drawn, index, study};

/// Numbers in all tables of a page, and in its motions: with these limits it stays below 6 MB.
const NUMBERS: usize = 200_000;
const PLACES: usize = 900_000;

/// Seconds between two reloads of the page of a running run.
const RELOAD: u32 = 3;

/// Contents of a folder.
pub enum Stored {
    /// A run.
    Run(StoredRun),
    /// An ensemble.
    Sweep(StoredRun),
    /// A comparison.
    Comparison(Box<Comparison>),
}

impl Stored {
    /// Open a folder.
    ///
    /// # Errors
    /// If it holds neither a run nor a comparison, or is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Stored, Error> {
        let path = path.as_ref();
        let comparison = path.join("compare.json");
        if comparison.is_file() {
            let text = fs::read_to_string(&comparison)
                .map_err(|error| Error::store(StoreError::read(&comparison, error)))?;
            let damaged = |error| {
                Error::store(StoreError::damaged(
                    &comparison,
                    format!("it is not what `compare` writes: {error}"),
                ))
            };
            return serde_json::from_str(&text).map(Stored::Comparison).map_err(damaged);
        }
        let run = StoredRun::open(path).map_err(Error::store)?;
        Ok(if run.trajectories().is_some() { Stored::Sweep(run) } else { Stored::Run(run) })
    }

    /// True if it is still being written.
    pub fn is_running(&self) -> bool {
        matches!(self, Stored::Run(run) | Stored::Sweep(run) if run.status() == Status::Running)
    }
}

/// Page of the contents of the folders: runs side by side, then ensembles, then comparisons. With
/// `live` it is reloaded every few seconds.
///
/// # Errors
/// If a folder holds no result, or is damaged.
pub fn report(paths: &[&Path], live: bool) -> Result<Page, Error> {
    let (mut runs, mut sections, mut warnings, mut titles) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut facts = Vec::new();
    let several = paths.len() > 1;
    for path in paths {
        let name = path
            .file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        let mut of_one = match Stored::open(path)? {
            Stored::Run(run) => {
                runs.push((name, run));
                continue;
            }
            Stored::Sweep(run) => sweep::page(&run, NUMBERS / paths.len())?,
            Stored::Comparison(value) => comparison::page(&value),
        };
        if several {
            of_one.sections.iter_mut().filter(|section| section.title.is_empty()).for_each(
                |section| {
                    section.title = format!("{}: {name}", of_one.title);
                },
            );
        }
        titles.push(of_one.title);
        sections.extend(of_one.sections);
        warnings.extend(of_one.warnings);
        facts.extend(of_one.facts);
    }
    if !runs.is_empty() {
        let share = paths.len();
        let shown = runs
            .into_iter()
            .map(|(name, run)| Shown::read(name, run, NUMBERS / share, PLACES / share))
            .collect::<Result<Vec<_>, Error>>()?;
        let page = run::page(&shown)?;
        sections.splice(0..0, page.sections);
        warnings.splice(0..0, page.warnings);
        facts.splice(0..0, page.facts);
        titles.insert(0, page.title);
    }
    titles.dedup();
    Ok(Page {
        title: titles.join(" · "),
        facts: if several { Vec::new() } else { facts },
        warnings,
        sections,
        reload: live.then_some(RELOAD),
        made_by: made_by(),
    })
}

/// Columns that are drawn, and how; by default those that suit the result.
#[derive(Clone, Debug, Default)]
pub struct Axes {
    /// Column along the horizontal axis: `t`, `q.x`; for an ensemble also a varied quantity.
    pub x: Option<String>,
    /// Columns along the vertical axis: `q.x`; `q` for all of a quantity, `r[*].x` for all members.
    pub y: Vec<String>,
    /// Result of a grid of trajectories that is drawn over its two dimensions.
    pub map: Option<String>,
    /// Event whose states are drawn, in place of the samples.
    pub event: Option<String>,
    /// Points or lines; by default lines where samples follow the motion.
    pub style: Option<Style>,
    /// True for a logarithmic horizontal and vertical axis.
    pub log: [bool; 2],
    /// Ends of the horizontal and vertical axis.
    pub range: [Option<[f64; 2]>; 2],
    /// Title of the figure.
    pub title: String,
    /// Width and height of a panel, in points.
    pub size: Option<(f64, f64)>,
}

impl Axes {
    fn are_chosen(&self) -> bool {
        self.x.is_some() || !self.y.is_empty() || self.event.is_some() || self.map.is_some()
    }

    /// Gives a chart the scales and ends that were asked for.
    fn dress(&self, mut chart: Chart) -> Chart {
        let [x, y] = self.range;
        (chart.x.range, chart.y.range) = (x.or(chart.x.range), y.or(chart.y.range));
        chart.x.log |= self.log[0];
        chart.y.log |= self.log[1];
        if let Some(style) = self.style {
            chart.curves.iter_mut().for_each(|curve| curve.style = style);
        }
        chart.equal &= !chart.x.log && !chart.y.log && self.range == [None; 2];
        chart
    }
}

/// Write a page to a file, which appears, or is replaced, once it is complete.
///
/// # Errors
/// If the file cannot be written, or this build draws no pages.
pub fn write(page: &Page, path: impl AsRef<Path>) -> Result<(), Error> {
    let html = page.to_html().map_err(Error::option)?;
    crate::store::replace(path.as_ref(), html.as_bytes()).map_err(Error::store)
}

/// Write a figure to a file, which appears, or is replaced, once it is complete.
///
/// # Errors
/// If the figure cannot be drawn, or the file cannot be written.
pub fn write_figure(figure: &Figure, format: Format, path: impl AsRef<Path>) -> Result<(), Error> {
    let path = path.as_ref();
    let file = figure.to_file(format);
    let bytes = file.map_err(|reason| {
        Error::option(format!("the figure cannot be drawn as {format:?}: {reason}"))
    })?;
    crate::store::replace(path, &bytes).map_err(Error::store)
}

/// Write a film to a file, which appears, or is replaced, once it is complete. A `browser` of the
/// Chromium family draws it, by default the one that is found; `watch` is told the number of frames
/// that are drawn, and says whether to go on.
///
/// # Errors
/// If there is no browser, it cannot draw the film, or the file cannot be written.
pub fn write_film(
    film: &Film,
    video: Video,
    path: &Path,
    browser: Option<&Path>,
    watch: &mut dyn FnMut(usize) -> bool,
) -> Result<(), Error> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    let part = path.with_file_name(name);
    let failed = |reason| Error::option(format!("{}: {reason}", path.display()));
    film.write(video, &part, browser, watch).map_err(failed)?;
    fs::rename(&part, path).map_err(|error| Error::store(StoreError::write(path, error)))
}

/// The program and the processor that made a page.
fn made_by() -> String {
    let processor = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_string())
    });
    let machine = processor.unwrap_or_else(|| std::env::consts::ARCH.to_string());
    format!("Made by holonome {} on {machine}.", env!("CARGO_PKG_VERSION"))
}

/// Section of a model: its texts by their titles.
fn model_section(texts: impl IntoIterator<Item = (String, String)>) -> Section {
    let panels = texts.into_iter().map(|(title, text)| Panel::Text { title, text }).collect();
    Section { title: "The model".to_string(), panels, ..Section::default() }
}

/// Title of the command that repeats a run.
const AGAIN: &str = "Made again by";

/// A section of which only the title is shown at first.
fn folded(title: impl Into<String>, panels: Vec<Panel>) -> Section {
    Section { title: title.into(), panels, folded: true, ..Section::default() }
}

/// A section without a title of its own.
fn section(panels: Vec<Panel>) -> Section {
    Section { panels, ..Section::default() }
}
