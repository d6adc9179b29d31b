//! `show`: a readable dump of each stage of a model's translation.

use crate::arguments::{ShowArguments, Stage};
use crate::exit::ExitCode;
use crate::output::{print_json, print_text};
use holonome::problem::parse_file;
use holonome::{Error, Problem};
use serde::Serialize;

/// Result of the command.
#[derive(Serialize)]
struct Shown {
    stage: &'static str,
    text: String,
}

pub fn show(arguments: ShowArguments) -> Result<ExitCode, Error> {
    let (stage, text) = match arguments.stage {
        Stage::Syntax => {
            let parsed = parse_file(&arguments.model.model)?;
            let text = holonome::model::syntax::print::dump(&parsed.file);
            if !parsed.diagnostics.is_empty() {
                if !arguments.output.json {
                    print_text(&text);
                }
                return Err(Error::Model {
                    text: Box::new(parsed.source),
                    diagnostics: parsed.diagnostics,
                });
            }
            ("syntax", text)
        }
        stage => {
            let problem = Problem::load(&arguments.model.model, &arguments.model.settings()?)?;
            match stage {
                Stage::Model => ("model", holonome::dump::model(&problem.model)),
                Stage::Graph => ("graph", holonome::dump::graph(&problem)?),
                _ => ("tape", holonome::dump::tape(&problem)?),
            }
        }
    };
    if arguments.output.json {
        print_json(&Shown { stage, text });
    } else {
        print_text(&text);
    }
    Ok(ExitCode::SUCCESS)
}
