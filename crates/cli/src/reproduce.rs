//! `reproduce`: the published experiments, from their models to the verdicts on their claims.

use crate::arguments::{Cli, Command, ReproduceArguments, RunArguments};
use crate::interrupt::{INTERRUPTED, stop_flag};
use crate::output::{moves_the_cursor, note, print_json, show_result, warn};
use crate::report::show as show_page;
use crate::table::columns;
use clap::Parser;
use holonome::report::figures::Format;
use holonome::report::{self as pages, Reproduced};
use holonome::study::{Judged, Made, MeasuredValue, Planned, Study, short};
use holonome::{Control, Error, Problem, Resumed, Simulation, prepare};
use include_dir::{Dir, include_dir};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
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
    Made(Made),
    Interrupted,
}

pub fn reproduce(arguments: &ReproduceArguments) -> Result<ExitCode, Error> {
    let output = arguments.output;
    let studies = chosen(&arguments.studies)?;
    if arguments.list {
        let rows: Vec<Vec<String>> = studies
            .iter()
            .map(|named| vec![named.name.clone(), named.study.title.clone()])
            .collect();
        show_result(&columns(&rows), output);
        if output.json {
            let rows: Vec<Value> = studies.iter().map(|named| json!({"name": named.name, "title": named.study.title, "paper": named.study.paper, "claims": named.study.claims.len()})).collect();
            print_json(&json!({"studies": rows, "warnings": []}));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let unwritable = |path: &Path, error: std::io::Error| {
        Error::option(format!("--out: {}: {error}", path.display()))
    };
    for (folder, models) in &MODELS {
        let folder = arguments.out.join(folder);
        std::fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, error))?;
        models.extract(&folder).map_err(|error| unwritable(&folder, error))?;
    }
    let mut jobs: Vec<Job> = Vec::new();
    for (study, named) in studies.iter().enumerate() {
        let runs = named.study.runs.iter().filter(|(_, planned)| arguments.full || !planned.long);
        jobs.extend(runs.map(|(name, planned)| Job { study, name, planned }));
    }
    let stop = stop_flag();
    let bar = (!output.quiet && moves_the_cursor()).then(|| {
        let style = ProgressStyle::with_template("  [{bar:30}] {pos} of {len} runs  {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::new(jobs.len() as u64).with_style(style.progress_chars("=> "))
    });
    let outcomes: Vec<Result<Outcome, Error>> = jobs
        .par_iter()
        .map(|job| {
            let made = make(job, &studies[job.study].name, &arguments.out, &stop);
            bar.iter().for_each(|bar| bar.inc(1));
            made
        })
        .collect();
    bar.iter().for_each(ProgressBar::finish_and_clear);
    let mut made: Vec<BTreeMap<String, Made>> = studies.iter().map(|_| BTreeMap::new()).collect();
    let mut interrupted = false;
    for (job, outcome) in jobs.iter().zip(outcomes) {
        match outcome? {
            Outcome::Made(run) => drop(made[job.study].insert(job.name.to_string(), run)),
            Outcome::Interrupted => interrupted = true,
        }
    }
    let judged: Vec<Vec<Judged>> =
        studies.iter().zip(&made).map(|(named, made)| named.study.judge(made)).collect();
    let reproduced: Vec<Reproduced> = studies
        .iter()
        .zip(&judged)
        .map(|(Named { name, study }, judged)| Reproduced { name, study, judged })
        .collect();
    let page = arguments.out.join("report.html");
    if !interrupted {
        let pages = reproduced
            .par_iter()
            .zip(&made)
            .map(|(of, made)| show(of, made, &arguments.out.join(of.name)));
        pages.collect::<Result<Vec<()>, Error>>()?;
        pages::write(&pages::index(&reproduced), &page)?;
    }
    let path = arguments.out.join("claims.md");
    std::fs::write(&path, markdown(&studies, &judged)).map_err(|error| unwritable(&path, error))?;
    let all = || judged.iter().flatten();
    let count = |agrees| all().filter(|claim| claim.agrees == agrees).count();
    let (agree, differ, open) = (count(Some(true)), count(Some(false)), count(None));
    for (named, judged) in studies.iter().zip(&judged) {
        show_result(&describe(named, judged), output);
    }
    let mut counts = format!("{agree} of {} claims are as recorded", agree + differ + open);
    if differ > 0 {
        counts.push_str(&format!(", {differ} differ"));
    }
    if open > 0 {
        counts.push_str(&format!(", {open} were not looked at"));
    }
    let counts = format!("{counts}\n  table: {}\n", path.display());
    show_result(&counts, output);
    if !interrupted {
        let page = match &reproduced[..] {
            [of] => arguments.out.join(of.name).join("report.html"),
            _ => page,
        };
        show_page(&page, arguments.open, output);
    }
    if interrupted {
        note("interrupted: the same command goes on\n", output);
    } else if open > 0 && !arguments.full {
        note("next:   holonome reproduce --full   makes the long runs\n", output);
    }
    let mut warnings = Vec::new();
    for (named, claim) in studies
        .iter()
        .zip(&judged)
        .flat_map(|(named, all)| all.iter().map(move |claim| (named, claim)))
    {
        if claim.agrees == Some(false) {
            let text = format!("{}: '{}' differs from what is recorded", named.name, claim.says);
            warn(&text, output);
            warnings.push(text);
        }
    }
    if output.json {
        let studies: Vec<Value> = studies
            .iter()
            .zip(&judged)
            .map(|(named, claims)| json!({"name": named.name, "title": named.study.title, "paper": named.study.paper, "claims": claims}))
            .collect();
        let out = arguments.out.display().to_string();
        print_json(
            &json!({"studies": studies, "agree": agree, "differ": differ, "open": open, "interrupted": interrupted, "out": out, "warnings": warnings}),
        );
    }
    Ok(ExitCode::from(if interrupted { INTERRUPTED } else { u8::from(differ > 0) }))
}

/// Write a study's page, and its figures for papers.
fn show(of: &Reproduced, made: &BTreeMap<String, Made>, folder: &Path) -> Result<(), Error> {
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
    let io = |path: &Path, error: std::io::Error| {
        Error::option(format!("--out: {}: {error}", path.display()))
    };
    let known = std::fs::read_to_string(&recipe_at).is_ok_and(|known| known == recipe);
    let simulation = match known.then(|| Simulation::resume(&folder)) {
        Some(Ok(Resumed::Finished { .. })) => return Made::open(&folder).map(Outcome::Made),
        Some(Ok(Resumed::Continues(simulation))) => Ok(*simulation),
        _ => {
            if folder.exists() {
                std::fs::remove_dir_all(&folder).map_err(|error| io(&folder, error))?;
            }
            std::fs::create_dir_all(out.join(study)).map_err(|error| io(out, error))?;
            std::fs::write(&recipe_at, &recipe).map_err(|error| io(&recipe_at, error))?;
            begin(&arguments, &folder)
        }
    };
    let mut simulation = match simulation {
        Ok(simulation) => simulation,
        Err(error) => return Ok(Outcome::Made(Made::Refused(error.to_string()))),
    };
    let ended = simulation
        .run(&mut |_| if stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue });
    match ended {
        Ok(summary) if summary.interrupted => Ok(Outcome::Interrupted),
        // A run that fails is stored up to the failure, and may be the subject of a claim.
        Ok(_) | Err(Error::Failed { .. }) => Made::open(&folder).map(Outcome::Made),
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
fn describe(named: &Named, judged: &[Judged]) -> String {
    let mut out = format!("{}: {}\n", named.name, named.study.title);
    for claim in judged {
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
fn markdown(studies: &[Named], judged: &[Vec<Judged>]) -> String {
    let mut out = "# The papers' claims\n".to_string();
    for (named, judged) in studies.iter().zip(judged) {
        out.push_str(&format!(
            "\n## {}\n\n{}\n\n| claim | where | verdict | measured |\n| --- | --- | --- | --- |\n",
            named.study.title, named.study.paper
        ));
        for claim in judged {
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
