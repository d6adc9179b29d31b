//! Files that a model includes, and the files of the library.

use crate::regular;
use crate::source::Source;
use holonome_model::syntax::ast::Name;
use holonome_model::syntax::diagnostic::Diagnostic;
use holonome_model::syntax::span::Span;
use holonome_model::syntax::statements::StatementKind;
use holonome_model::syntax::{self, Reading};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files that any model may include, unless a file of the same name stands beside it.
const LIBRARY: &[(&str, &str)] = &[("molecules.holo", include_str!("library/molecules.holo"))];

/// Text of a file of the library.
fn library(path: &str) -> Option<String> {
    LIBRARY.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_string())
}

/// Largest number of files that include each other in a row: each takes some of the stack.
const MOST_NESTED: usize = 1000;

/// A model with the statements of all files that it includes, and the texts of these by their paths
/// relative to the model. `read` reads a file; its text is added to `source`. A file that is
/// included more than once counts once.
///
/// # Errors
/// If a file cannot be read, includes itself, or makes the model too large.
pub(crate) fn expanded(
    source: &mut Source,
    reading: Reading,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<(Reading, BTreeMap<String, String>), Vec<Diagnostic>> {
    let own = Path::new(source.name())
        .file_name()
        .map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let whole = source.text().to_string();
    let mut expansion = Expansion {
        source,
        whole,
        read,
        reading: Reading::default(),
        files: BTreeMap::new(),
        failed: false,
    };
    expansion.add(reading, &mut vec![own]);
    let Expansion { reading, files, failed, .. } = expansion;
    if failed { Err(reading.diagnostics) } else { Ok((reading, files)) }
}

struct Expansion<'a> {
    source: &'a mut Source,
    /// All texts so far, one after the other, so that the places in each are its own.
    whole: String,
    read: &'a dyn Fn(&str) -> Result<String, String>,
    reading: Reading,
    /// Files included so far.
    files: BTreeMap<String, String>,
    failed: bool,
}

impl Expansion<'_> {
    /// Add what was read of the last of the files `around`, each of which includes the next.
    fn add(&mut self, reading: Reading, around: &mut Vec<String>) {
        self.reading.diagnostics.extend(reading.diagnostics);
        self.reading.unread.extend(reading.unread);
        for mut statement in reading.file.statements {
            let beside = around.last().map_or("", String::as_str);
            let path = &mut statement.reference;
            match statement.kind {
                StatementKind::Include => {
                    let file = joined(beside, &path.text);
                    self.include(path, file, around);
                    continue;
                }
                // Tables of the model itself keep their names.
                StatementKind::Table if around.len() > 1 => path.text = joined(beside, &path.text),
                _ => {}
            }
            self.reading.file.statements.push(statement);
        }
    }

    fn include(&mut self, path: &Name, file: String, around: &mut Vec<String>) {
        if self.files.contains_key(&file) || around[0] == file {
            let Some(first) = around.iter().position(|other| *other == file) else { return };
            let circle =
                [&around[first..], std::slice::from_ref(&file)].concat().join(" includes ");
            let finding = Diagnostic::error(
                format!("a file includes itself: {circle}"),
                path.span,
                "a circle",
            );
            return self.fail(finding.help("move what both need into a third file"));
        }
        if around.len() > MOST_NESTED {
            let message = format!("more than {MOST_NESTED} files include each other in a row");
            return self.fail(
                Diagnostic::error(message, path.span, "one more")
                    .help("include several from one file"),
            );
        }
        // Path of the file, which serves as its name in messages.
        let beside = || Path::new(self.source.name()).with_file_name(&file).display().to_string();
        let read = (self.read)(&file).map(|text| (text, beside()));
        let found = read.or_else(|reason| {
            library(&path.text)
                .map(|text| (text, format!("{} of the library", path.text)))
                .ok_or(reason)
        });
        match found {
            Ok((text, name)) => {
                if (self.whole.len() + text.len()) as u64 > regular::LARGEST {
                    // It is not read once more.
                    self.files.insert(file, String::new());
                    let limit = regular::LARGEST >> 20;
                    let message = format!(
                        "the model is larger than {limit} MiB with the files that it includes"
                    );
                    let finding = Diagnostic::error(message, path.span, "with this file");
                    return self
                        .fail(finding.help("keep large data in a file and read it with 'table'"));
                }
                let start = self.source.append(&name, &text, 0);
                self.whole.push('\n');
                self.whole.push_str(&text);
                self.files.insert(file.clone(), text);
                let mut reading = syntax::read_from(&self.whole, start);
                reading.diagnostics.iter_mut().for_each(|finding| within(finding, start));
                around.push(file);
                self.add(reading, around);
                around.pop();
            }
            Err(reason) => {
                let names: Vec<&str> = LIBRARY.iter().map(|(name, _)| *name).collect();
                let help = format!(
                    "a path is relative to the file that includes it; the library has {}",
                    names.join(", ")
                );
                let message = format!("'{}' cannot be included: {reason}", path.text);
                self.fail(Diagnostic::error(message, path.span, "this file").help(help));
            }
        }
    }

    fn fail(&mut self, finding: Diagnostic) {
        self.reading.diagnostics.push(finding);
        self.failed = true;
    }
}

/// Move a finding about an empty end of a text into that text.
fn within(finding: &mut Diagnostic, start: usize) {
    let Span { start: from, end } = finding.span;
    finding.span = Span::new((from as usize).max(start), (end as usize).max(start));
}

/// Path of a file that `beside` names, relative to the folder of the model.
fn joined(beside: &str, path: &str) -> String {
    let folder = Path::new(beside).parent().map(Path::to_path_buf).unwrap_or_default();
    let mut parts: Vec<String> = Vec::new();
    let whole = folder.join(path);
    for part in whole.components() {
        let part = part.as_os_str().to_string_lossy();
        match (&*part, parts.last().map(String::as_str)) {
            (".", _) => {}
            ("..", Some(last)) if last != ".." && last != "/" => drop(parts.pop()),
            _ => parts.push(part.into_owned()),
        }
    }
    let path: PathBuf = parts.iter().collect();
    path.display().to_string()
}
