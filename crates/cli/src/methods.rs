//! `methods`: the registry as tables, and the account of a method.

use crate::arguments::{MethodsArguments, OutputArguments};
use crate::exit::ExitCode;
use crate::output::{note, print_json, print_text};
use crate::table::columns;
use holonome::Error;
use holonome::method::{Account, AccountFacts, Accounts, Alias, Method};
use serde_json::json;

/// Say which methods are meant by names that they have elsewhere.
pub fn note_other_names<'n>(
    methods: impl IntoIterator<Item = &'n String>,
    output: OutputArguments,
) {
    for word in methods.into_iter().flat_map(|name| name.split([':', '(', ')'])).map(str::trim) {
        if let Some(Alias { method, .. }) = Alias::named(word) {
            note(&format!("{word} is {method}\n"), output);
        }
    }
}

pub fn methods(arguments: MethodsArguments) -> Result<ExitCode, Error> {
    let accounts = match &arguments.name {
        Some(name) => Accounts::of(name)?,
        None => Accounts::all(),
    };
    if arguments.output.json {
        print_json(&json!(accounts));
        return Ok(ExitCode::SUCCESS);
    }
    match arguments.name {
        Some(name) => {
            note_other_names([&name], arguments.output);
            print_text(&parts(&name, &accounts));
        }
        None => print_text(&tables(&accounts)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Facts of a method and its order, as words.
fn words(order: u32, symmetric: bool, symplectic: bool) -> String {
    let [symmetric, symplectic] = [(symmetric, "reversible"), (symplectic, "symplectic")]
        .map(|(holds, word)| if holds { word.to_string() } else { format!("not {word}") });
    format!("order {order}, {symmetric}, {symplectic}")
}

/// Accounts of the parts of a method, and the facts of the whole if there are several.
fn parts(name: &str, accounts: &Accounts) -> String {
    let all = accounts.treatments.iter().chain(&accounts.compositions).chain(&accounts.schemes);
    let texts: Vec<String> =
        all.map(|account| account_text(account, &accounts.other_names)).collect();
    let whole = name.parse::<Method>().ok().filter(|_| texts.len() > 1);
    let whole = whole.map(|method| {
        format!("{method}: {}", words(method.order(), method.symmetric(), method.symplectic()))
    });
    whole.map(|whole| whole + "\n\n").unwrap_or_default() + &texts.join("\n")
}

fn account_text(account: &Account, other_names: &[Alias]) -> String {
    let facts = match &account.facts {
        AccountFacts::Scheme { facts, adaptive, stages, needs } => {
            let stages = match stages {
                Some(1) => ", one stage".to_string(),
                Some(stages) => format!(", {stages} stages"),
                None => String::new(),
            };
            format!(
                "{}, {}, {} steps{stages}\n  needs {needs}",
                words(facts.order, facts.symmetric, facts.symplectic),
                if facts.explicit { "explicit" } else { "implicit" },
                if *adaptive { "adaptive or fixed" } else { "fixed" },
            )
        }
        AccountFacts::Treatment { needs } => format!("needs {needs}"),
        AccountFacts::Composition { order, substeps, of_flows, corrects } => {
            let substeps: Vec<String> = substeps.iter().map(f64::to_string).collect();
            let lines: Vec<String> = substeps.chunks(3).map(|line| line.join(" ")).collect();
            let of = match (of_flows, corrects) {
                (_, true) => {
                    "with a corrector of flows of a splitting, in turn the motion and the kick"
                }
                (true, _) => "of the flows of a splitting, in turn the motion and the kick",
                (false, _) => "of a reversible method of order 2",
            };
            format!("order {order}, {of}\n  {}", lines.join("\n  "))
        }
    };
    let Account { name, description, source, account, .. } = account;
    let other_names = other_names.iter().find(|alias| alias.method == *name);
    let also = other_names.map(|alias| format!("  also called {}\n", alias.names.join(", ")));
    let (also, source) = (also.unwrap_or_default(), source.replace("; ", "\n       "));
    format!("{name}: {description}\n\n  {facts}\n{also}  from {source}\n\n{account}\n")
}

/// Tables of the whole registry.
fn tables(accounts: &Accounts) -> String {
    let yes = |b: bool| if b { "yes" } else { "no" }.to_string();
    let mut bases = vec![
        ["base", "order", "symplectic", "reversible", "explicit", "adaptive", "needs"]
            .map(String::from)
            .to_vec(),
    ];
    let (mut treatments, mut compositions, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    let all = accounts.schemes.iter().chain(&accounts.treatments).chain(&accounts.compositions);
    for Account { name, facts, description, source, .. } in all {
        let (name, description) = (name.to_string(), description.to_string());
        sources.push(vec![name.clone(), format!("{description} [{source}]")]);
        match facts {
            AccountFacts::Scheme { facts: f, adaptive, needs, .. } => bases.push(vec![
                name,
                f.order.to_string(),
                yes(f.symplectic),
                yes(f.symmetric),
                yes(f.explicit),
                yes(*adaptive),
                needs.clone(),
            ]),
            AccountFacts::Treatment { needs } => {
                treatments.push(vec![name, description, format!("needs {needs}")]);
            }
            AccountFacts::Composition { order, .. } => {
                compositions.push(vec![name, format!("order {order}"), description]);
            }
        }
    }
    let other_names = accounts.other_names.iter();
    let other_names: Vec<Vec<String>> =
        other_names.map(|alias| vec![alias.method.to_string(), alias.names.join(", ")]).collect();
    format!(
        "METHOD is BASE, TREATMENT:BASE or COMPOSITION(METHOD), for example corrected:dop853 (the default) or suzuki4(rattle).\n\
         \nBases:\n{}\
         \nTreatments:\n{}\
         \nCompositions of a symmetric method of order 2, or of its flows:\n{}\
         \nOther names of these methods:\n{}\
         \nSources:\n{}",
        columns(&bases),
        columns(&treatments),
        columns(&compositions),
        columns(&other_names),
        columns(&sources),
    )
}
