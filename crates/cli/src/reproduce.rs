//! `reproduce`: the published experiments, from their models to the verdicts on their claims.

use crate::arguments::{Cli, Command, OutputArguments, ReproduceArguments, RunArguments};
use crate::exit::ExitCode;
use crate::interrupt::{INTERRUPTED, stop_flag};
use crate::output::{note, print_json, show_result, warn};
use crate::progress::counting;
use crate::report::show as show_page;
use crate::table::columns;
use clap::Parser;
use holonome::report::figures::Format;
use holonome::report::{self as pages, Reproduced};
use holonome::study::{Judged, MeasuredValue, Planned, Study, StudyRun, short};
use holonome::{Control, Error, Problem, Resumed, Simulation, prepare};
use include_dir::{Dir, include_dir};
use indicatif::ProgressBar;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

static STUDIES: Dir = include_dir!("$CARGO_MANIFEST_DIR/studies");
/// Models, in the folders where the studies' commands find them.
static MODELS: [(&str, Dir); 2] = [
    ("models", include_dir!("$CARGO_MANIFEST_DIR/models")),
    ("suite/models", include_dir!("$CARGO_MANIFEST_DIR/suite-models")),
];

/// Extension of a file beside a run that records how it was made, so that the same run is not made
/// twice.
const RECIPE: &str = "recipe";

/// A study by its name.
struct Named {
    name: String,
    study: Study,
}

/// A run to be made.
struct Job<'s> {
    study: usize,
    name: &'s str,
    planned: &'s Planned,
}

/// Outcome of a job.
enum Outcome {
    Run(StudyRun),
    Interrupted,
}

/// A study with the number of its claims, or with the verdicts on them.
#[derive(Serialize)]
struct StudyOf<'s, C> {
    name: &'s str,
    title: &'s str,
    paper: &'s str,
    claims: C,
}

type JudgedStudy<'s> = StudyOf<'s, Vec<Judged>>;

/// Result of `--list`.
#[derive(Serialize)]
struct List<'s> {
    studies: Vec<StudyOf<'s, usize>>,
}

impl Named {
    fn with<C>(&self, claims: C) -> StudyOf<'_, C> {
        let Named { name, study: Study { title, paper, .. } } = self;
        StudyOf { name, title, paper, claims }
    }
}

/// Result of the command.
#[derive(Serialize)]
struct Reproduction<'s> {
    studies: Vec<JudgedStudy<'s>>,
    /// Numbers of claims that are as recorded, that differ, and that were not looked at.
    agree: usize,
    differ: usize,
    open: usize,
    interrupted: bool,
    out: String,
}

pub fn reproduce(arguments: &ReproduceArguments) -> Result<ExitCode, Error> {
    let output = arguments.output;
    let studies = chosen(&arguments.studies)?;
    if arguments.list {
        list(&studies, output);
        return Ok(ExitCode::SUCCESS);
    }
    for (folder, models) in &MODELS {
        let folder = arguments.out.join(folder);
        std::fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, error))?;
        models.extract(&folder).map_err(|error| unwritable(&folder, error))?;
    }
    let (made, interrupted) = make_all(&studies, arguments)?;
    let result = Reproduction::new(&studies, &made, interrupted, &arguments.out);
    let pages = match interrupted {
        true => None,
        false => Some(write_pages(&studies, &result, &made, &arguments.out)?),
    };
    let path = arguments.out.join("claims.md");
    let table = markdown(&result.studies);
    std::fs::write(&path, table).map_err(|error| unwritable(&path, error))?;
    result.studies.iter().for_each(|study| show_result(&describe(study), output));
    show_result(&format!("{}\n  table: {}\n", result.counts(), path.display()), output);
    if let Some(page) = pages {
        show_page(&page, arguments.open, output);
    }
    if interrupted {
        note("interrupted: the same command goes on\n", output);
    } else if result.open > 0 && !arguments.full {
        note("next:   holonome reproduce --full   makes the long runs\n", output);
    }
    result.differences().for_each(|difference| warn(&difference, output));
    if output.json {
        print_json(&result);
    }
    Ok(ExitCode::from(if interrupted { INTERRUPTED } else { u8::from(result.differ > 0) }))
}

fn list<'s>(studies: &'s [Named], output: OutputArguments) {
    let row = |named: &Named| vec![named.name.clone(), named.study.title.clone()];
    show_result(&columns(&studies.iter().map(row).collect::<Vec<_>>()), output);
    if output.json {
        let listed = |named: &'s Named| named.with(named.study.claims.len());
        print_json(&List { studies: studies.iter().map(listed).collect() });
    }
}

fn unwritable(path: &Path, error: std::io::Error) -> Error {
    Error::option(format!("--out: {}: {error}", path.display()))
}

/// Make the runs of all studies, by name for each study; true if they were interrupted.
fn make_all(
    studies: &[Named],
    arguments: &ReproduceArguments,
) -> Result<(Vec<BTreeMap<String, StudyRun>>, bool), Error> {
    let mut jobs: Vec<Job> = Vec::new();
    for (study, named) in studies.iter().enumerate() {
        let runs = named.study.runs.iter().filter(|(_, planned)| arguments.full || !planned.long);
        jobs.extend(runs.map(|(name, planned)| Job { study, name, planned }));
    }
    let stop = stop_flag();
    let bar = counting(jobs.len() as u64, " runs", arguments.output);
    let outcomes: Vec<Result<Outcome, Error>> = jobs
        .par_iter()
        .map(|job| {
            let made = make(job, &studies[job.study].name, &arguments.out, &stop);
            bar.iter().for_each(|bar| bar.inc(1));
            made
        })
        .collect();
    bar.iter().for_each(ProgressBar::finish_and_clear);
    let mut made: Vec<BTreeMap<String, StudyRun>> =
        studies.iter().map(|_| BTreeMap::new()).collect();
    let mut interrupted = false;
    for (job, outcome) in jobs.iter().zip(outcomes) {
        match outcome? {
            Outcome::Run(run) => drop(made[job.study].insert(job.name.to_string(), run)),
            Outcome::Interrupted => interrupted = true,
        }
    }
    Ok((made, interrupted))
}

impl<'s> Reproduction<'s> {
    /// Verdicts on the claims of the studies by the runs that were made.
    fn new(
        studies: &'s [Named],
        made: &[BTreeMap<String, StudyRun>],
        interrupted: bool,
        out: &Path,
    ) -> Reproduction<'s> {
        let judged = |(named, made): (&'s Named, _)| named.with(named.study.judge(made));
        let studies: Vec<JudgedStudy> = studies.iter().zip(made).map(judged).collect();
        let all =
            || studies.iter().flat_map(|study| study.claims.iter().map(move |of| (study, of)));
        let count = |agrees| all().filter(|(_, claim)| claim.agrees == agrees).count();
        let (agree, differ, open) = (count(Some(true)), count(Some(false)), count(None));
        let out = out.display().to_string();
        Reproduction { studies, agree, differ, open, interrupted, out }
    }

    /// Warnings about the claims that differ from what is recorded.
    fn differences(&self) -> impl Iterator<Item = String> {
        self.studies.iter().flat_map(|JudgedStudy { name, claims, .. }| {
            let differing = claims.iter().filter(|claim| claim.agrees == Some(false));
            differing
                .map(move |claim| format!("{name}: '{}' differs from what is recorded", claim.says))
        })
    }

    /// Number of claims by their verdicts.
    fn counts(&self) -> String {
        let Reproduction { agree, differ, open, .. } = self;
        let mut counts = format!("{agree} of {} claims are as recorded", agree + differ + open);
        if *differ > 0 {
            counts.push_str(&format!(", {differ} differ"));
        }
        if *open > 0 {
            counts.push_str(&format!(", {open} were not looked at"));
        }
        counts
    }
}

/// Write the pages of the studies and the one that leads to them; returns that of a single study,
/// or the leading one.
fn write_pages(
    studies: &[Named],
    result: &Reproduction,
    made: &[BTreeMap<String, StudyRun>],
    out: &Path,
) -> Result<PathBuf, Error> {
    let reproduced: Vec<Reproduced> = studies
        .iter()
        .zip(&result.studies)
        .map(|(Named { name, study }, of)| Reproduced { name, study, judged: &of.claims })
        .collect();
    let pages =
        reproduced.par_iter().zip(made).map(|(of, made)| show(of, made, &out.join(of.name)));
    pages.collect::<Result<Vec<()>, Error>>()?;
    let page = out.join("report.html");
    pages::write(&pages::index(&reproduced), &page)?;
    Ok(match &reproduced[..] {
        [of] => out.join(of.name).join("report.html"),
        _ => page,
    })
}

/// Write a study's page, and its figures for papers.
fn show(of: &Reproduced, made: &BTreeMap<String, StudyRun>, folder: &Path) -> Result<(), Error> {
    pages::write(&pages::study(of, made, "../report.html")?, folder.join("report.html"))?;
    for (planned, figure) in pages::drawn(of.study, made)? {
        let words: String = planned
            .place
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || *c == ' ')
            .collect();
        pages::write_figure(
            &figure,
            Format::Svg,
            folder.join(format!("{}.svg", words.replace(' ', "-"))),
        )?;
    }
    Ok(())
}

/// Studies of these names; all if none is given.
fn chosen(names: &[String]) -> Result<Vec<Named>, Error> {
    let mut all = Vec::new();
    for file in STUDIES
        .files()
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "toml"))
    {
        let name = file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = file.contents_utf8().unwrap_or_default();
        all.push(Named { study: Study::parse(&name, text)?, name });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|named| named.name != **name)) {
        return Err(Error::option(format!(
            "there is no study '{unknown}': `holonome reproduce --list` names them"
        )));
    }
    all.retain(|named| names.is_empty() || names.contains(&named.name));
    Ok(all)
}

/// Make a run, or open the one that was made before.
fn make(job: &Job, study: &str, out: &Path, stop: &AtomicBool) -> Result<Outcome, Error> {
    if stop.load(Ordering::Relaxed) {
        return Ok(Outcome::Interrupted);
    }
    let folder = out.join(study).join(job.name);
    let arguments = parse(study, job.planned, out)?;
    let model = &arguments.trajectory.model.model;
    let text = std::fs::read_to_string(model)
        .map_err(|error| Error::option(format!("{}: {error}", model.display())))?;
    let recipe = format!("{}\n{}\n{text}", env!("CARGO_PKG_VERSION"), job.planned.command);
    let recipe_at = out.join(study).join(format!("{}.{RECIPE}", job.name));
    let known = std::fs::read_to_string(&recipe_at).is_ok_and(|known| known == recipe);
    let simulation = match known.then(|| Simulation::resume(&folder)) {
        Some(Ok(Resumed::Finished { .. })) => {
            return StudyRun::open(&folder).map(Outcome::Run);
        }
        Some(Ok(Resumed::Continues(simulation))) => Ok(*simulation),
        _ => {
            if folder.exists() {
                std::fs::remove_dir_all(&folder).map_err(|error| unwritable(&folder, error))?;
            }
            std::fs::create_dir_all(out.join(study)).map_err(|error| unwritable(out, error))?;
            std::fs::write(&recipe_at, &recipe).map_err(|error| unwritable(&recipe_at, error))?;
            begin(&arguments, &folder)
        }
    };
    let mut simulation = match simulation {
        Ok(simulation) => simulation,
        Err(error) => return Ok(Outcome::Run(StudyRun::Refused(error.to_string()))),
    };
    let ended = simulation
        .run(&mut |_| if stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue });
    match ended {
        Ok(summary) if summary.interrupted => Ok(Outcome::Interrupted),
        // A run that fails is stored up to the failure, and may be the subject of a claim.
        Ok(_) | Err(Error::Failed { .. }) => StudyRun::open(&folder).map(Outcome::Run),
        Err(error) => Err(error),
    }
}

/// Arguments of a study's command, with the model in the folder of the models.
fn parse(study: &str, planned: &Planned, out: &Path) -> Result<RunArguments, Error> {
    let wrong =
        |error: &str| Error::option(format!("study {study}: '{}': {error}", planned.command));
    let words = ["holonome", "run"].into_iter().chain(planned.command.split_whitespace());
    let Command::Run(mut arguments) =
        Cli::try_parse_from(words).map_err(|error| wrong(&error.to_string()))?.command
    else {
        return Err(wrong("it is no run"));
    };
    let model = &mut arguments.trajectory.model.model;
    *model = out.join(&*model);
    Ok(arguments)
}

fn begin(arguments: &RunArguments, folder: &Path) -> Result<Simulation, Error> {
    let mut options = arguments.options()?;
    let trajectory = &arguments.trajectory;
    let problem = Problem::load(&trajectory.model.model, &trajectory.settings()?)?;
    options.method = trajectory.method()?;
    options.out = Some(PathBuf::from(folder));
    prepare(problem, options)
}

/// Text of a study with its claims, for a terminal.
fn describe(study: &JudgedStudy) -> String {
    let mut out = format!("{}: {}\n", study.name, study.title);
    for claim in &study.claims {
        let mark = match claim.agrees {
            Some(true) => claim.verdict.words(),
            Some(false) => "DIFFERS",
            None => "not looked at",
        };
        out.push_str(&format!("  {mark:<18}  {} ({})\n", claim.says, claim.place));
        if let Some(because) = &claim.because {
            out.push_str(&format!("  {:<18}    {because}\n", ""));
        }
        for measured in &claim.measured {
            out.push_str(&format!("  {:<18}    {}\n", "", in_words(measured)));
        }
    }
    out
}

fn in_words(measured: &MeasuredValue) -> String {
    let MeasuredValue { name, value, wanted, agrees, failed } = measured;
    let value = match (value, failed) {
        (Some(value), _) => short(*value),
        (None, Some(failed)) => failed.clone(),
        (None, None) => "nothing".to_string(),
    };
    let but = if *agrees { "" } else { ", but has to be" };
    format!("{name}: {value}{but} ({wanted})")
}

/// Table of all claims.
fn markdown(studies: &[JudgedStudy]) -> String {
    let mut out = "# The papers' claims\n".to_string();
    for JudgedStudy { title, paper, claims, .. } in studies {
        out.push_str(&format!(
            "\n## {title}\n\n{paper}\n\n| claim | where | verdict | measured |\n| --- | --- | --- | --- |\n"
        ));
        for claim in claims {
            let measured: Vec<String> = claim
                .measured
                .iter()
                .map(|m| {
                    format!(
                        "{}: {} ({})",
                        m.name,
                        m.value.map_or_else(|| "—".to_string(), short),
                        m.wanted
                    )
                })
                .collect();
            let verdict = match claim.agrees {
                Some(true) => claim.verdict.words().to_string(),
                Some(false) => format!("differs; recorded: {}", claim.verdict.words()),
                None => "not looked at".to_string(),
            };
            let because =
                claim.because.as_deref().map(|because| format!(": {because}")).unwrap_or_default();
            let cells =
                [&claim.says, &claim.place, &format!("{verdict}{because}"), &measured.join("<br>")];
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    out
}
