//! Films of runs.

use super::sampling::Rates;
use super::{Stored, scene};
use crate::error::Error;
use crate::simulation::stored_problem;
use holonome_figures::Film;
use std::path::Path;

/// Numbers of a film's motion: it is sent to a browser on the same machine.
const NUMBERS: usize = 4_000_000;

/// Length of a film in seconds where no real time is known or suits.
const LENGTH: f64 = 12.0;

/// Lengths in seconds between which a film is in real time by itself.
const REAL: [f64; 2] = [1.0, 60.0];

/// Largest number of frames.
const FRAMES: f64 = 20_000.0;

/// How a run is filmed.
#[derive(Clone, Debug)]
pub struct FilmOptions {
    /// Time of the run that passes in a second: in seconds where the run's unit of time is one of
    /// seconds, minutes or days, otherwise in its own unit. Real time if that is known, and the film
    /// then takes between a second and a minute; otherwise it takes 12 seconds.
    pub speed: Option<f64>,
    /// Length of the film in seconds, in place of a speed.
    pub seconds: Option<f64>,
    /// Frames a second.
    pub rate: f64,
    /// First and last time that are shown; those of the run if absent.
    pub span: [Option<f64>; 2],
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// True for light things before a dark ground.
    pub dark: bool,
}

/// Film of the run in a folder.
///
/// # Errors
/// If the folder holds something else, the run has no motion that can be shown, or the options make
/// no sense.
pub fn film(path: &Path, options: &FilmOptions) -> Result<Film, Error> {
    let refuse = |reason: String| Err(Error::option(format!("{}: {reason}", path.display())));
    let run = match Stored::open(path)? {
        Stored::Run(run) => run,
        Stored::Sweep(_) => return refuse("a film is of one run, and this is an ensemble".into()),
        Stored::Comparison(_) => {
            return refuse("a film is of one run, and this is a comparison".into());
        }
    };
    let problem = stored_problem(run.path(), run.attributes())?;
    let times = run.times().map_err(Error::store)?;
    let mut rates = Rates::new(&run, &problem)?;
    let motion = scene::motion(&run, &problem, &times, rates.as_mut(), NUMBERS)?;
    let Some(motion) = motion else {
        return refuse("nothing that moves is stored; record the positions".into());
    };
    let [from, until] = match options.span {
        [from, until] => {
            let last = motion.times[motion.times.len() - 1];
            [from.unwrap_or(motion.times[0]), until.unwrap_or(last)]
        }
    };
    if from >= until {
        return refuse(format!("no time passes from {from} to {until}"));
    }
    let real = (until - from) * motion.seconds.unwrap_or(1.0);
    let is_known = motion.seconds.is_some();
    let length = match (options.seconds, options.speed) {
        (Some(seconds), _) => seconds,
        (None, Some(speed)) => real / speed,
        (None, None) if is_known && (REAL[0]..=REAL[1]).contains(&real) => real,
        (None, None) => LENGTH,
    };
    let frames = (length * options.rate).round();
    if !(1.0..=FRAMES).contains(&frames) {
        return refuse(format!(
            "a film of {length} s with {} frames a second has {frames} frames: one has to be there, and {FRAMES} are the most",
            options.rate
        ));
    }
    let time = |k: usize| from + (until - from) * k as f64 / frames;
    Ok(Film {
        times: (0..=frames as usize).map(time).collect(),
        motion,
        rate: options.rate,
        size: options.size,
        dark: options.dark,
        unit: run.time_unit().map(|unit| format!(" {unit}")).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RunOptions;
    use crate::problem::Problem;
    use crate::simulation::prepare;

    fn of(unit: &str, until: f64, options: impl FnOnce(&mut FilmOptions)) -> Result<Film, Error> {
        let text = format!(
            "{unit}\ncoordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2 + dot(q, q)/2"
        );
        let problem: Problem = text.parse().unwrap();
        let run = RunOptions { until, ..RunOptions::default() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let mut simulation = prepare(problem, run).unwrap();
        let solution = simulation.solve().unwrap();
        simulation.store(&solution, &path).unwrap();
        let (speed, seconds, span) = (None, None, [None; 2]);
        let mut film =
            FilmOptions { speed, seconds, rate: 10.0, span, size: (320, 240), dark: false };
        options(&mut film);
        super::film(&path, &film)
    }

    #[test]
    fn a_film_is_in_real_time_where_a_run_has_seconds() {
        let length = |unit: &str, until: f64| {
            let film = of(unit, until, |_| {}).unwrap();
            assert_eq!((film.times[0], film.times[film.times.len() - 1]), (0.0, until));
            (film.times.len() - 1) as f64 / film.rate
        };
        assert_eq!(length("unit m, kg, s", 5.0), 5.0);
        assert_eq!(length("unit m, kg, ms", 5000.0), 5.0);
        assert_eq!(length("unit m, kg, min", 0.5), 30.0);
        assert_eq!(length("unit m, kg, s", 300.0), LENGTH, "nobody looks on for five minutes");
        assert_eq!(length("", 5.0), LENGTH, "no seconds");
        assert_eq!(length("unit m, kg, moons", 5.0), LENGTH);
    }

    #[test]
    fn speed_length_and_span_can_be_chosen() {
        let faster = of("unit m, kg, s", 8.0, |film| film.speed = Some(4.0)).unwrap();
        assert_eq!((faster.times.len(), &faster.unit[..]), (21, " s"));
        let part = of("", 8.0, |film| {
            (film.seconds, film.span) = (Some(3.0), [Some(2.0), Some(5.0)]);
        });
        let times = part.unwrap().times;
        assert_eq!((times.len(), times[0], times[10], times[30]), (31, 2.0, 3.0, 5.0));
        let back = of("", -8.0, |film| film.seconds = Some(2.0)).unwrap();
        assert_eq!(
            (back.times[0], back.times[20]),
            (-8.0, 0.0),
            "a run backwards is seen forwards"
        );
        assert_eq!(back.motion.times[0], -8.0);
        let none = of("", 8.0, |film| film.span = [Some(8.0), None]);
        assert!(none.unwrap_err().to_string().contains("no time passes from 8 to 8"));
        let endless = of("", 8.0, |film| film.seconds = Some(1e6));
        assert!(endless.unwrap_err().to_string().contains("20000 are the most"));
    }
}
