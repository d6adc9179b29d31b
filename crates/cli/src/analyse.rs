//! `analyse`: averages of a stored run, as tables.

use crate::arguments::AnalyseArguments;
use crate::exit::ExitCode;
use crate::measures::tables;
use crate::output::{print_json, show_result, warn};
use crate::table::{count, exact};
use holonome::{Analysis, Error, Measure, analyse as measured};

pub fn analyse(arguments: AnalyseArguments) -> Result<ExitCode, Error> {
    let output = arguments.output;
    let measures = arguments
        .measures
        .iter()
        .map(|text| text.parse())
        .collect::<Result<Vec<Measure>, Error>>()?;
    let analysis = measured(&arguments.run, &measures, arguments.from)?;
    if analysis.left_out > 0 {
        let (left_out, of) = (analysis.left_out, analysis.trajectories);
        warn(&format!("{left_out} of {of} trajectories ended early and are left out"), output);
    }
    show_result(&text(&analysis), output);
    if output.json {
        print_json(&analysis);
    }
    Ok(ExitCode::SUCCESS)
}

fn text(analysis: &Analysis) -> String {
    let (from, until) = (analysis.from, analysis.until);
    let of = match analysis.trajectories {
        1 => String::new(),
        trajectories => format!(" of {} trajectories", count(trajectories as u64)),
    };
    let samples = count(analysis.samples as u64);
    // A run's own measures state their samples themselves.
    let own = analysis.tables.iter().any(|table| table.name.is_some());
    let head = match own {
        true => String::new(),
        false => format!("{samples} samples{of}, t = {} to {}\n", exact(from), exact(until)),
    };
    format!("{head}{}", tables(&analysis.tables))
}
