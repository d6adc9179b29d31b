//! `animate`: films of runs.

use crate::arguments::AnimateArguments;
use crate::exit::ExitCode;
use crate::interrupt::{INTERRUPTED, stop_flag};
use crate::output::{note, print_json};
use crate::progress::counting;
use holonome::Error;
use holonome::report::figures::Video;
use holonome::report::{FilmOptions, film, write_film};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// A format with the ending of its files, the frames a second and the size that films of it have by
/// default.
struct Row {
    video: Video,
    ending: &'static str,
    rate: f64,
    size: (u32, u32),
}

/// A GIF of more frames, or larger ones, is slow in browsers, and takes megabytes.
const FORMATS: [Row; 2] = [
    Row { video: Video::Gif, ending: "gif", rate: 20.0, size: (480, 360) },
    Row { video: Video::Mp4, ending: "mp4", rate: 30.0, size: (800, 600) },
];

/// Result of the command.
#[derive(Serialize)]
struct Written<'a> {
    path: &'a Path,
    out: Vec<String>,
}

pub fn animate(arguments: &AnimateArguments) -> Result<ExitCode, Error> {
    let mut files: Vec<(&PathBuf, &Row)> = Vec::new();
    files.extend(arguments.gif.iter().map(|file| (file, &FORMATS[0])));
    files.extend(arguments.mp4.iter().map(|file| (file, &FORMATS[1])));
    for file in &arguments.out {
        files.push((file, format_of(file)?));
    }
    let stop = stop_flag();
    let mut out = Vec::new();
    for (file, row) in files {
        let options = FilmOptions {
            speed: arguments.speed,
            seconds: arguments.seconds,
            rate: arguments.rate.unwrap_or(row.rate),
            span: [arguments.from, arguments.until],
            size: arguments.size.unwrap_or(row.size),
            dark: arguments.dark,
        };
        let film = film(&arguments.run, &options)?;
        let bar = counting(film.times.len() as u64, " frames", arguments.output);
        let mut watch = |frames: usize| {
            bar.iter().for_each(|bar| bar.set_position(frames as u64));
            !stop.load(Ordering::Relaxed)
        };
        let result = write_film(&film, row.video, file, arguments.browser.as_deref(), &mut watch);
        bar.iter().for_each(|bar| bar.finish_and_clear());
        if stop.load(Ordering::Relaxed) {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        result?;
        let length = (film.times.len() - 1) as f64 / film.rate;
        let text = format!("  film: {}, {} frames, {length} s\n", file.display(), film.times.len());
        note(&text, arguments.output);
        out.push(file.display().to_string());
    }
    if arguments.output.json {
        print_json(&Written { path: &arguments.run, out });
    }
    Ok(ExitCode::SUCCESS)
}

/// Format of a film by the ending of its file.
fn format_of(file: &Path) -> Result<&'static Row, Error> {
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let known = FORMATS.iter().find(|row| ending.as_deref() == Some(row.ending));
    known.ok_or_else(|| {
        let file = file.display();
        Error::option(format!(
            "the ending of {file} names no format of a film: end it in .gif or .mp4"
        ))
    })
}
