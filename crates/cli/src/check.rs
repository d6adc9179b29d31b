//! `check`: what the engine derived.

use crate::arguments::CheckArguments;
use crate::exit::ExitCode;
use crate::output::{print_json, print_text, show_warnings};
use holonome::check::Report;
use holonome::{Error, Problem};

pub fn check(arguments: CheckArguments) -> Result<ExitCode, Error> {
    let problem = Problem::load(&arguments.model.model, &arguments.model.settings()?)?;
    let report = Report::new(&problem);
    show_warnings(&problem, arguments.output);
    if arguments.output.json {
        print_json(&report);
    } else if !arguments.output.quiet {
        print_text(&if arguments.verbose { report.to_long_text() } else { report.to_text() });
    }
    Ok(ExitCode::SUCCESS)
}
