//! `methods`: the registry as a table, and the names that methods have elsewhere.

use crate::arguments::{MethodsArguments, OutputArguments};
use crate::output::{note, print_json, print_text};
use crate::table::columns;
use holonome::Error;
use holonome::method::{ALIASES, Alias, COMPOSITIONS, SCHEMES, TREATMENTS};
use serde_json::json;
use std::process::ExitCode;

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
    if arguments.output.json {
        let schemes = SCHEMES.iter().map(|s| {
            json!({"name": s.name, "order": s.order, "symmetric": s.symmetric, "symplectic": s.symplectic, "explicit": s.explicit,
                "adaptive": s.adaptive, "needs": s.needs.to_string(), "description": s.description, "source": s.citation})
        });
        let treatments = TREATMENTS
            .iter()
            .map(|t| json!({"name": t.name, "needs": t.needs, "description": t.description, "source": t.citation}));
        let compositions = COMPOSITIONS.iter().map(|c| {
            json!({"name": c.name, "order": c.order, "substeps": c.substeps(), "description": c.description, "source": c.citation})
        });
        print_json(&json!({
            "schemes": schemes.collect::<Vec<_>>(), "treatments": treatments.collect::<Vec<_>>(),
            "compositions": compositions.collect::<Vec<_>>(),
            "other_names": ALIASES.iter().map(|alias| json!({"method": alias.method, "names": alias.names})).collect::<Vec<_>>(),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let yes = |b: bool| if b { "yes" } else { "no" }.to_string();
    let mut rows = vec![
        ["base", "order", "symplectic", "reversible", "explicit", "adaptive", "needs"]
            .map(String::from)
            .to_vec(),
    ];
    for s in SCHEMES {
        rows.push(vec![
            s.name.into(),
            s.order.to_string(),
            yes(s.symplectic),
            yes(s.symmetric),
            yes(s.explicit),
            yes(s.adaptive),
            s.needs.to_string(),
        ]);
    }
    let mut out = String::from(
        "METHOD is BASE, TREATMENT:BASE or COMPOSITION(METHOD), for example corrected:dop853 (the default) or suzuki4(rattle).\n\nBases:\n",
    );
    out.push_str(&columns(&rows));
    out.push_str("\nTreatments:\n");
    let rows: Vec<Vec<String>> = TREATMENTS
        .iter()
        .map(|t| vec![t.name.to_string(), t.description.to_string(), format!("needs {}", t.needs)])
        .collect();
    out.push_str(&columns(&rows));
    out.push_str("\nCompositions of a symmetric method of order 2:\n");
    let rows: Vec<Vec<String>> = COMPOSITIONS
        .iter()
        .map(|c| vec![c.name.to_string(), format!("order {}", c.order), c.description.to_string()])
        .collect();
    out.push_str(&columns(&rows));
    out.push_str("\nOther names of these methods:\n");
    let rows: Vec<Vec<String>> = ALIASES
        .iter()
        .map(|alias| vec![alias.method.to_string(), alias.names.join(", ")])
        .collect();
    out.push_str(&columns(&rows));
    out.push_str("\nSources:\n");
    let rows: Vec<Vec<String>> = SCHEMES
        .iter()
        .map(|s| (s.name, s.description, s.citation))
        .chain(TREATMENTS.iter().map(|t| (t.name, t.description, t.citation)))
        .chain(COMPOSITIONS.iter().map(|c| (c.name, c.description, c.citation)))
        .map(|(name, description, citation)| {
            vec![name.to_string(), format!("{description} [{citation}]")]
        })
        .collect();
    out.push_str(&columns(&rows));
    print_text(&out);
    Ok(ExitCode::SUCCESS)
}
