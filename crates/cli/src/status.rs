//! Command `status`: how far an ensemble is that others compute.

use crate::arguments::StatusArguments;
use crate::exit::ExitCode;
use crate::interrupt::{INTERRUPTED, stop_flag};
use crate::output::{print_json, show_result};
use crate::progress::duration;
use crate::table::count;
use holonome::Error;
use holonome::sweep::{self, SweepStatus};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(2);

pub fn status(arguments: StatusArguments) -> Result<ExitCode, Error> {
    let output = arguments.output;
    let stop = stop_flag();
    let mut shown = String::new();
    let status = loop {
        let status = sweep::status(&arguments.run)?;
        let text = describe(&status);
        if text != shown {
            show_result(&text, output);
            shown = text;
        }
        if status.complete || !arguments.watch {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        std::thread::sleep(LOOK);
    };
    if output.json {
        print_json(&status);
    }
    Ok(if status.complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(status: &SweepStatus) -> String {
    let SweepStatus { trajectories, done, failed, blocks, blocks_done, running, .. } = status;
    let mut line = format!(
        "{} of {} trajectories done ({} of {} blocks)",
        count(*done),
        count(*trajectories),
        count(*blocks_done),
        count(*blocks)
    );
    if *failed > 0 {
        line.push_str(&format!(", {} failed", count(*failed)));
    }
    if !status.complete {
        line.push_str(&format!(", {} blocks running", count(running.len() as u64)));
        if let (Some(rate), Some(left)) = (status.rate, status.seconds_left) {
            line.push_str(&format!(", {rate:.3e}/s, {} left", duration(left)));
        }
    }
    line.push('\n');
    line
}
