//! `report` and `plot`: pages and figures of the results of runs.

use crate::arguments::{OutputArguments, PlotArguments, ReportArguments};
use crate::exit::ExitCode;
use crate::interrupt::{INTERRUPTED, stop_flag};
use crate::output::{note, print_json, warn, warn_of_ending};
use holonome::Error;
use holonome::report::figures::{Format, Style};
use holonome::report::{self as pages, Axes, Stored};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time between two checks of a run that goes on.
const LOOK: Duration = Duration::from_secs(2);

/// Formats of figures, with the endings of their files.
const FORMATS: [(Format, &str); 3] =
    [(Format::Svg, "svg"), (Format::Pdf, "pdf"), (Format::Png, "png")];

/// Result of the commands: where the page or the figures are.
#[derive(Serialize)]
struct Written<'a, T> {
    paths: &'a [PathBuf],
    out: T,
}

pub fn report(arguments: ReportArguments) -> Result<ExitCode, Error> {
    let paths: Vec<&Path> = arguments.paths.iter().map(PathBuf::as_path).collect();
    let out = arguments.out.unwrap_or_else(|| match paths[..] {
        [path] => path.join("report.html"),
        _ => "report.html".into(),
    });
    let running = || -> Result<bool, Error> {
        let one = |path: &&Path| Stored::open(path).map(|stored| stored.is_running());
        Ok(paths.iter().map(one).collect::<Result<Vec<_>, _>>()?.into_iter().any(|running| running))
    };
    let mut live = arguments.live && running()?;
    write(&paths, &out, live)?;
    show(&out, arguments.open, arguments.output);
    let stop = stop_flag();
    while live {
        if stop.load(Ordering::Relaxed) {
            write(&paths, &out, false)?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        std::thread::sleep(LOOK);
        live = running()?;
        write(&paths, &out, live)?;
    }
    if arguments.output.json {
        print_json(&Written { paths: &arguments.paths, out: out.display().to_string() });
    }
    Ok(ExitCode::SUCCESS)
}

fn write(paths: &[&Path], out: &Path, live: bool) -> Result<(), Error> {
    pages::write(&pages::report(paths, live)?, out)
}

/// Report the place of a page, and open it if wanted.
pub fn show(out: &Path, open: bool, output: OutputArguments) {
    note(&format!("  report: {}\n", out.display()), output);
    if open && let Err(error) = open::that_detached(out) {
        warn(
            &format!("{} cannot be opened ({error}): open it in a browser", out.display()),
            output,
        );
    }
}

/// Write the page of a run that has just ended, in its folder.
pub fn of_run(run: &Path, open: bool, output: OutputArguments) -> Result<(), Error> {
    let out = run.join("report.html");
    write(&[run], &out, false)?;
    show(&out, open, output);
    Ok(())
}

pub fn plot(arguments: PlotArguments) -> Result<ExitCode, Error> {
    let names = FORMATS.map(|(_, name)| name);
    let mut files = Vec::new();
    for ((format, name), file) in
        FORMATS.into_iter().zip([arguments.svg, arguments.pdf, arguments.png])
    {
        files.extend(file.map(|file| (file, format, name)));
    }
    for file in arguments.out {
        let (format, name) = format_of(&file)?;
        files.push((file, format, name));
    }
    let paths: Vec<&Path> = arguments.paths.iter().map(PathBuf::as_path).collect();
    let y = arguments.y.iter().flat_map(|list| columns(list)).collect();
    let axes = Axes {
        x: arguments.x,
        y,
        map: arguments.map,
        event: arguments.event,
        style: match (arguments.points, arguments.lines) {
            (true, _) => Some(Style::Points),
            (_, true) => Some(Style::Line),
            _ => None,
        },
        log: ["x", "y"].map(|axis| arguments.log.as_ref().is_some_and(|log| log.contains(axis))),
        range: [arguments.x_range, arguments.y_range],
        title: arguments.title,
        size: arguments.size,
    };
    let figure = pages::figure(&paths, &axes)?;
    let mut written = Vec::new();
    for (file, format, name) in files {
        warn_of_ending(&file, name, names, arguments.output);
        pages::write_figure(&figure, format, &file)?;
        note(&format!("  figure: {}\n", file.display()), arguments.output);
        written.push(file.display().to_string());
    }
    if arguments.output.json {
        print_json(&Written { paths: &arguments.paths, out: written });
    }
    Ok(ExitCode::SUCCESS)
}

/// Format of a figure by the ending of its file.
fn format_of(file: &Path) -> Result<(Format, &'static str), Error> {
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let known = FORMATS.into_iter().find(|(_, name)| ending.as_deref() == Some(name));
    known.ok_or_else(|| {
        Error::option(format!(
            "the ending of {} names no format of a figure: end it in .svg, .pdf or .png",
            file.display()
        ))
    })
}

/// Columns of a list. Commas within brackets are part of a name: `x[1,2].y,t`.
fn columns(list: &str) -> Vec<String> {
    let mut depth = 0;
    let parts = list.split(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    });
    parts.map(str::to_string).collect()
}
