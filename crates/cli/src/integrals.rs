//! `integrals`: first integrals that a model does not state.

use crate::arguments::IntegralsArguments;
use crate::exit::ExitCode;
use crate::output::{print_json, print_text, show_warnings};
use holonome::first_integrals::FirstIntegrals;
use holonome::{Error, Problem};

pub fn integrals(arguments: IntegralsArguments) -> Result<ExitCode, Error> {
    let problem = Problem::load(&arguments.model.model, &arguments.model.settings()?)?;
    let found = FirstIntegrals::search(&problem, arguments.degree.map(usize::from))?;
    show_warnings(&problem, arguments.output);
    if arguments.output.json {
        print_json(&found);
    } else if !arguments.output.quiet {
        print_text(&found.to_text());
    }
    Ok(ExitCode::SUCCESS)
}
