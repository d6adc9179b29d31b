//! `completions`: scripts with which shells complete commands, options and methods.

use crate::arguments::{Cli, CompletionsArguments};
use crate::exit::ExitCode;
use crate::output::{print_json, print_text};
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use holonome::Error;
use serde::Serialize;

/// Result of the command.
#[derive(Serialize)]
struct Completions {
    shell: String,
    script: String,
}

pub fn completions(arguments: CompletionsArguments) -> Result<ExitCode, Error> {
    let script = script(arguments.shell);
    match arguments.output.json {
        true => print_json(&Completions { shell: arguments.shell.to_string(), script }),
        false => print_text(&script),
    }
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> String {
    // The parser of options wants names that outlive it; the process ends with this script.
    let names: Vec<&'static str> =
        holonome::method::simple_names().into_iter().map(|name| &*name.leak()).collect();
    let mut command = match shell {
        Shell::Bash => Cli::command(),
        _ => Cli::command().mut_subcommands(|command| with_methods(command, &names)),
    };
    let mut script = Vec::new();
    generate(shell, &mut command, "holonome", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => {
            let function = METHODS_IN_BASH.replace("METHODS", &names.join(" "));
            function + &script.replace("complete -F _holonome ", "complete -F _holonome_or_method ")
        }
        _ => script,
    }
}

/// Command whose option `--method` has these values.
fn with_methods(command: Command, names: &[&'static str]) -> Command {
    let option = command.get_arguments().find(|option| option.get_long() == Some("method"));
    match option.map(|option| option.get_id().clone()) {
        Some(id) => command.mut_arg(id, |option| {
            option.value_parser(PossibleValuesParser::new(names.iter().copied()))
        }),
        None => command,
    }
}

/// Function that completes `--method` and leaves the rest to the generated one. Bash ends a word at
/// a colon, so that it has to be given the part of a name behind one; a treatment is completed
/// before its base. Of a list of methods the last is completed.
const METHODS_IN_BASH: &str = r#"_holonome_or_method() {
    local line="${COMP_LINE:0:COMP_POINT}" word option
    word="${line##*[[:space:]]}"
    option="${line%"$word"}"
    option="${option%"${option##*[![:space:]]}"}"
    option="${option##*[[:space:]]}"
    if [[ "$word" == --method=* ]]; then
        word="${word#--method=}"
    elif [[ "$option" != --method ]]; then
        _holonome "$@"
        return
    fi
    local last="${word##*,}" given=""
    local list="${word%"$last"}"
    if [[ "$word" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
        given="${word%"${word##*:}"}"
    fi
    local name previous=""
    COMPREPLY=()
    for name in $(compgen -W "METHODS" -- "$last"); do
        if [[ "$last" != *:* && "$name" == *:* ]]; then
            name="${name%%:*}:"
        fi
        if [[ "$name" != "$previous" ]]; then
            previous="$name"
            name="$list$name"
            COMPREPLY+=("${name#"$given"}")
        fi
    done
    if [[ ${#COMPREPLY[@]} == 1 && "${COMPREPLY[0]}" == *: ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
"#;
