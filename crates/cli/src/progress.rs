//! The progress bar of runs and ensembles. The most important part is first: a narrow terminal
//! shows the beginning.

use crate::arguments::OutputArguments;
use crate::output::moves_the_cursor;
use crate::table::count;
use holonome::report::figures::text::visible;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Duration of shorter runs, for which a bar would only flicker.
const SHORT: Duration = Duration::from_millis(700);

/// Time between two drawings of the bar.
const AGAIN: Duration = Duration::from_millis(100);

/// Number of divisions of a bar.
const TICKS: u64 = 10_000;

/// Bar that counts `of` pieces of work, with a word for them; `None` if it cannot be redrawn.
pub fn counting(of: u64, kind: &str, output: OutputArguments) -> Option<ProgressBar> {
    let template = format!("  [{{bar:30}}] {{pos}} of {{len}}{kind}  {{elapsed}}");
    (!output.quiet && moves_the_cursor()).then(|| {
        let style = ProgressStyle::with_template(&template)
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::new(of).with_style(style.progress_chars("=> "))
    })
}

/// Progress bar with the part that is done, the time left, and the rate.
pub struct Bar {
    wanted: bool,
    bar: Option<ProgressBar>,
    drawn: Instant,
    /// First look, so that the work of an earlier process takes no time in this one.
    first: Option<Look>,
}

struct Look {
    at: Instant,
    fraction: f64,
    made: u64,
}

impl Bar {
    pub fn new(wanted: bool) -> Bar {
        Bar { wanted, bar: None, drawn: Instant::now(), first: None }
    }

    /// Show that this `fraction` of all is done, with so many things `made`. `line` gets the time
    /// left and the number made per second.
    pub fn show(&mut self, fraction: f64, made: u64, line: impl FnOnce(&str, &str) -> String) {
        let now = Instant::now();
        let first = self.first.get_or_insert(Look { at: now, fraction, made });
        let elapsed = now - first.at;
        if !self.wanted || elapsed < SHORT || (self.bar.is_some() && now - self.drawn < AGAIN) {
            return;
        }
        self.drawn = now;
        let seconds = elapsed.as_secs_f64();
        let left = duration(seconds * (1.0 - fraction) / (fraction - first.fraction));
        let rate = count((made.saturating_sub(first.made) as f64 / seconds) as u64);
        let (position, message) =
            ((fraction * TICKS as f64) as u64, visible(&line(&left, &rate)).into_owned());
        if let Some(bar) = &self.bar {
            bar.set_position(position);
            bar.set_message(message);
            return;
        }
        let style = ProgressStyle::with_template("  [{bar:12}] {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
        let bar =
            ProgressBar::new(TICKS).with_style(style).with_position(position).with_message(message);
        bar.tick();
        self.bar = Some(bar);
    }

    pub fn clear(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Text of a time to wait, in the unit in which a person thinks of it.
pub fn duration(seconds: f64) -> String {
    const UNITS: [(f64, f64, &str); 4] = [
        (100.0, 1.0, "s"),
        (100.0 * 60.0, 60.0, "min"),
        (48.0 * 3600.0, 3600.0, "h"),
        (f64::MAX, 86400.0, "days"),
    ];
    match UNITS.iter().find(|(below, ..)| seconds < *below) {
        Some((_, unit, name)) => format!("{:.0} {name}", (seconds / unit).ceil()),
        None => "no end".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn times_are_short() {
        let cases = [
            (0.0, "0 s"),
            (0.2, "1 s"),
            (99.5, "100 s"),
            (100.0, "2 min"),
            (7200.0, "2 h"),
            (1e6, "12 days"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text);
        }
        // Nothing is done yet.
        assert_eq!(duration(1.0 / 0.0), "no end");
        assert_eq!(duration(f64::NAN), "no end");
    }
}
