//! `check`: what the engine derived.

use crate::arguments::CheckArguments;
use crate::{print_json, print_text};
use holonome::report::Report;
use holonome::{Error, Problem};
use std::io::IsTerminal;
use std::process::ExitCode;

pub fn check(arguments: CheckArguments) -> Result<ExitCode, Error> {
    let problem = Problem::load(&arguments.model.model, &arguments.model.settings()?)?;
    let report = Report::new(&problem);
    if !arguments.output.quiet {
        say!("{}", problem.source.render(&problem.warnings(), std::io::stderr().is_terminal()));
    }
    if arguments.output.json {
        print_json(&report.to_json());
    } else if !arguments.output.quiet {
        print_text(&report.to_text());
    }
    Ok(ExitCode::SUCCESS)
}
