//! Tests of the documentation: its models load, its commands run and print the output that it
//! shows, its tables list what the source has, its links lead somewhere.
//!
//! Meaning of the fenced blocks of README.md and docs/*.md:
//!
//! - `holo`: a model that loads without a warning; `holo fails`: one that is refused;
//! - `console`: lines `$ command`, each followed by its output, with `…` for omitted parts;
//!   `console fails`: the same for commands that exit with 2;
//! - `sh`: commands; those of `holonome` are run;
//! - `rust`: run by the tests of the library, whose documentation the page is;
//! - `python`: run at the end, if HOLONOME_PYTHON names a Python with xarray; the tests of the Python
//!   package run those that import it, and compare what they print with the block `text` below;
//! - `<!-- NAME -->` above a block: it is the file NAME, the repository's own if there is one,
//!   otherwise written for the commands that follow;
//! - `<!-- $ command -->` above a block: it is the output of this command.
//!
//! All blocks of a page share one folder, in their order. Words and numbers are compared, but for
//! times of a clock. After a change of the output, `HOLONOME_BLESS=1 cargo test -p holonome-cli
//! --test docs` writes the new one into the pages.

mod common;

use common::{Folder, repository};
use holonome::method::TREATMENTS;
use holonome::model;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

const PAGES: [&str; 18] = [
    "README.md",
    "docs/bodies.md",
    "docs/cluster.md",
    "docs/coming-from.md",
    "docs/driving.md",
    "docs/first.md",
    "docs/gallery.md",
    "docs/guide.md",
    "docs/langevin.md",
    "docs/language.md",
    "docs/lattices.md",
    "docs/library.md",
    "docs/methods.md",
    "docs/penalty.md",
    "docs/rolling.md",
    "docs/speed.md",
    "docs/storage.md",
    "docs/time.md",
];

fn read(page: &str) -> String {
    fs::read_to_string(repository().join(page)).unwrap()
}

/// A fenced block of a page.
struct Block {
    /// Text after the fence: the language and a word for this test.
    info: String,
    /// Text of the comment above it.
    label: Option<String>,
    /// Lines within the page, without the fences.
    lines: std::ops::Range<usize>,
    text: String,
}

fn blocks(page: &str, text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if let Some(info) = lines[at].strip_prefix("```") {
            let length = lines[at + 1..].iter().position(|line| *line == "```");
            let end = at
                + 1
                + length.unwrap_or_else(|| panic!("{page}:{}: the block is not closed", at + 1));
            let above = at.checked_sub(1).map_or("", |line| lines[line]);
            let label = above.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
            let text = lines[at + 1..end].iter().map(|line| format!("{line}\n")).collect();
            out.push(Block {
                info: info.to_string(),
                label: label.map(String::from),
                lines: at + 1..end,
                text,
            });
            at = end;
        }
        at += 1;
    }
    out
}

/// Arguments of a `holonome` command line; `None` for another program's.
fn arguments(line: &str) -> Option<Vec<String>> {
    let rest =
        line.strip_prefix("holonome ").or_else(|| line.strip_prefix("cargo run --release -- "))?;
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for c in rest.chars() {
        match c {
            '"' => (quoted, begun) = (!quoted, true),
            ' ' if !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            c => {
                assert!(
                    quoted || !"|<>&;'$`\\".contains(c),
                    "`{line}` needs a shell, which these tests have not"
                );
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    Some(words)
}

/// Run a command line and return what a terminal would show.
#[track_caller]
fn run(folder: &Folder, line: &str, code: i32) -> String {
    let arguments = arguments(line).unwrap_or_else(|| panic!("`{line}` is no command of holonome"));
    // Both streams in one pipe keep their order, as on a terminal.
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = folder.command("");
    command.args(arguments).stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command); // and with it this end of the pipe
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(code), "`{line}` printed\n{text}");
    text.trim_end().lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Words of a line, with `#` for times of a clock: numbers before a lone `s`.
fn words(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let seconds = word.trim_end_matches([',', ';', ')']) == "s";
        if let Some(last) = words.last_mut().filter(|last| seconds && last.parse::<f64>().is_ok()) {
            *last = "#".to_string();
        }
        // The length of an underline or a rule depends on the numbers beside it.
        let rule = word.chars().all(|c| c == '-') || word.chars().all(|c| c == '^');
        words.push(if rule { word[..1].to_string() } else { word.to_string() });
    }
    words.join(" ")
}

/// True if a page shows the output of a command; `…` stands for any lines, or for the rest of its
/// line.
fn shows(shown: &str, printed: &str) -> bool {
    fn same(shown: &str, printed: &str) -> bool {
        shown.strip_suffix('…').map_or(shown == printed, |start| printed.starts_with(start))
    }
    fn matches(shown: &[String], printed: &[String]) -> bool {
        match shown.split_first() {
            None => printed.is_empty(),
            Some((first, rest)) if first == "…" => {
                (0..=printed.len()).any(|skip| matches(rest, &printed[skip..]))
            }
            Some((first, rest)) => {
                printed.first().is_some_and(|line| same(first, line))
                    && matches(rest, &printed[1..])
            }
        }
    }
    let lines = |text: &str| text.trim_end().lines().map(words).collect::<Vec<_>>();
    matches(&lines(shown), &lines(printed))
}

/// Text of a JSON object for a page: one key a line down to `depth`, the rest in one line.
fn pretty(value: &Value, depth: usize, indent: usize) -> String {
    match value.as_object().filter(|object| depth > 0 && !object.is_empty()) {
        None => value.to_string().replace("\":", "\": ").replace(",\"", ", \""),
        Some(object) => {
            let pad = " ".repeat(indent + 2);
            let entries = object
                .iter()
                .map(|(key, v)| format!("{pad}\"{key}\": {}", pretty(v, depth - 1, indent + 2)));
            format!("{{\n{}\n{}}}", entries.collect::<Vec<_>>().join(",\n"), " ".repeat(indent))
        }
    }
}

/// Compared part of an object: everything but times.
fn without_times(value: &Value) -> Value {
    let kept = |(key, value): (&String, &Value)| match key.as_str() {
        "wall_seconds" => (key.clone(), Value::Null),
        _ => (key.clone(), without_times(value)),
    };
    match value {
        Value::Object(object) => Value::Object(object.iter().map(kept).collect()),
        Value::Array(list) => Value::Array(list.iter().map(without_times).collect()),
        other => other.clone(),
    }
}

/// Run a page: every block in its order, in one folder.
fn check_page(page: &str) {
    check_page_in(&Folder::new(), page);
}

/// Run a page in a folder where other pages may have been before.
fn check_page_in(folder: &Folder, page: &str) {
    let text = read(page);
    let bless = std::env::var_os("HOLONOME_BLESS").is_some();
    let mut replaced: Vec<(std::ops::Range<usize>, String)> = Vec::new();
    let mut python = Vec::new();
    for block in blocks(page, &text) {
        let place = format!("{page}:{}", block.lines.start);
        let (kind, fails) = match block.info.split_once(' ') {
            Some((kind, "fails")) => (kind, true),
            Some((_, other)) => panic!("{place}: what is `{other}`?"),
            None => (block.info.as_str(), false),
        };
        let code = if fails { 2 } else { 0 };
        let command = block.label.as_deref().and_then(|label| label.strip_prefix("$ "));
        match (kind, command, block.label.as_deref()) {
            ("json", Some(command), _) => {
                let printed: Value = serde_json::from_str(&run(folder, command, code)).unwrap();
                let shown: Value = serde_json::from_str(&block.text).unwrap_or_default();
                if without_times(&shown) != without_times(&printed) {
                    assert!(bless, "{place}: `{command}` printed\n{}", pretty(&printed, 2, 0));
                    replaced.push((block.lines, pretty(&printed, 2, 0) + "\n"));
                }
            }
            (_, Some(command), _) => {
                let printed = run(folder, command, code);
                if !shows(&block.text, &printed) {
                    assert!(bless, "{place}: `{command}` printed\n{printed}");
                    replaced.push((block.lines, printed));
                }
            }
            ("holo", None, label) => {
                let name = label.unwrap_or("block.holo");
                if repository().join(name).exists() {
                    assert_eq!(block.text, read(name), "{place}: not the text of {name}");
                }
                folder.write(name, &block.text);
                let printed = run(folder, &format!("holonome check {name}"), code);
                assert!(fails || !printed.contains("warning"), "{place}:\n{printed}");
            }
            ("console", None, None) => {
                let mut shown = block.text.lines().peekable();
                let mut all = String::new();
                while let Some(line) = shown.next() {
                    let command = line
                        .strip_prefix("$ ")
                        .unwrap_or_else(|| panic!("{place}: no command: {line}"));
                    let mut expected = String::new();
                    while let Some(line) = shown.next_if(|line| !line.starts_with("$ ")) {
                        expected.push_str(line);
                        expected.push('\n');
                    }
                    if command.starts_with("cargo ") {
                        // Its output is the next block, which runs without building.
                        assert!(
                            arguments(command).is_some() && expected.is_empty(),
                            "{place}: {command}"
                        );
                        all.push_str(&format!("{line}\n"));
                        continue;
                    }
                    let printed = run(folder, command, code);
                    let good = shows(&expected, &printed);
                    assert!(good || bless, "{place}: `{command}` printed\n{printed}");
                    all.push_str(&format!("{line}\n{}", if good { &expected } else { &printed }));
                }
                if all != block.text {
                    replaced.push((block.lines, all));
                }
            }
            ("sh", None, None) => {
                for line in block.text.lines() {
                    let program = line.split(' ').next().unwrap_or_default();
                    match arguments(line) {
                        Some(_) => drop(run(folder, line, code)),
                        None if program.contains('/') => {
                            assert!(repository().join(program).exists(), "{place}: {program}")
                        }
                        None => {}
                    }
                }
            }
            // Tests of the library run these blocks of its documentation.
            ("rust", None, None) => {}
            ("python", None, None) if block.text.contains("import holonome") => {}
            ("python", None, None) => python.push((place, block.text)),
            ("text", None, Some(name)) => drop(folder.write(name, &block.text)),
            ("text", None, None) => {}
            _ => panic!("{place}: a block of kind `{}`", block.info),
        }
    }
    match std::env::var_os("HOLONOME_PYTHON") {
        None if !python.is_empty() => {
            eprintln!("SKIPPED: the Python of {page}, because HOLONOME_PYTHON is not set")
        }
        None => {}
        Some(program) => {
            for (place, code) in python {
                let mut command = Command::new(&program);
                command.arg("-c").arg(&code).current_dir(folder.path("")).stdin(Stdio::null());
                let output = command
                    .output()
                    .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
                assert!(
                    output.status.success(),
                    "{place}:\n{}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
    }
    if !replaced.is_empty() {
        let mut lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
        for (range, new) in replaced.into_iter().rev() {
            lines.splice(range, [new]);
        }
        fs::write(repository().join(page), lines.concat()).unwrap();
    }
}

#[test]
fn the_readme_is_true() {
    check_page("README.md");
}

/// Every model is in the gallery, whose commands draw its picture anew. Pictures are compared, and
/// written with HOLONOME_BLESS.
#[test]
fn the_gallery_is_true() {
    let folder = Folder::new();
    check_page_in(&folder, "docs/gallery.md");
    let text = read("docs/gallery.md");
    let mut drawn = BTreeSet::new();
    for name in text.split("](figures/gallery/").skip(1).map(|rest| rest.split(')').next().unwrap())
    {
        let now = fs::read(folder.path(name)).unwrap_or_else(|_| panic!("no command draws {name}"));
        let picture = repository().join("docs/figures/gallery").join(name);
        if std::env::var_os("HOLONOME_BLESS").is_some() {
            fs::write(&picture, &now).unwrap();
        }
        let same = fs::read(&picture).is_ok_and(|shown| shown == now);
        assert!(same, "{name} is another picture: HOLONOME_BLESS=1 writes it");
        drawn.insert(name.to_string());
    }
    let names = |folder: &str, ending: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(repository().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter_map(|name| Some(format!("{}.svg", name.strip_suffix(ending)?))).collect()
    };
    assert_eq!(drawn, names("models", ".holo"));
    assert_eq!(drawn, names("docs/figures/gallery", ".svg"));
}

#[test]
fn the_guide_goes_on_where_the_first_page_ends() {
    let folder = Folder::new();
    check_page_in(&folder, "docs/first.md");
    check_page_in(&folder, "docs/guide.md");
}

#[test]
fn the_language_page_is_true() {
    check_page("docs/language.md");
}

#[test]
fn the_methods_page_is_true() {
    check_page("docs/methods.md");
}

#[test]
fn the_penalty_page_is_true() {
    check_page("docs/penalty.md");
}

#[test]
fn the_pages_for_newcomers_and_fields_are_true() {
    for page in ["coming-from", "lattices", "driving", "time", "bodies"] {
        check_page(&format!("docs/{page}.md"));
    }
}

/// The numbers of the table are those of the study.
#[test]
fn the_rolling_page_is_true() {
    check_page("docs/rolling.md");
    let study = Folder::new().run("reproduce nonholonomic-2020 --json").ok().json();
    let claims = study["studies"][0]["claims"].as_array().unwrap().clone();
    let measured: Vec<Value> =
        claims.iter().flat_map(|claim| claim["measured"].as_array().unwrap().clone()).collect();
    let text = read("docs/rolling.md");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 13);
    for row in rows {
        let run = row[0].trim_matches('`').replace("nonholonomic-", "").replace([':', '('], "-");
        for (problem, cell) in ["lopsided", "gauge"].iter().zip(&row[1..]) {
            let name = format!("largest drift of H by {problem}-{}", run.replace(')', ""));
            let found = measured.iter().find(|value| value["name"] == name.as_str());
            let found = found.unwrap_or_else(|| panic!("no {name}"))["value"].as_f64().unwrap();
            let shown: f64 = cell.parse().unwrap();
            // Energies at round-off are that, whatever their digits.
            let same = (shown - found).abs() <= 0.1 * found || shown.max(found) < 1e-12;
            assert!(same, "{name}: {shown:e}, {found:e}");
        }
    }
}

#[test]
fn the_speed_page_is_true() {
    check_page("docs/speed.md");
}

#[test]
fn the_storage_page_is_true() {
    check_page("docs/storage.md");
}

/// Rows of the tables below a heading, as cells without the header.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let text = read(page);
    let (_, section) = text
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("{page}: no {heading}"));
    let section = section.split("\n## ").next().unwrap();
    let cells = |line: &str| {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_string()).collect()
    };
    let rows: Vec<Vec<String>> =
        section.lines().filter(|line| line.starts_with('|')).map(cells).collect();
    let rule = rows.iter().position(|row: &Vec<String>| row[0].starts_with("---")).unwrap();
    rows[rule + 1..].to_vec()
}

/// Words in backticks, up to the first character that cannot be part of a name.
fn quoted(cell: &str) -> Vec<String> {
    let name = |quoted: &str| {
        quoted
            .split(|c: char| !c.is_alphanumeric() && !"_-".contains(c))
            .next()
            .unwrap()
            .to_string()
    };
    cell.split('`').skip(1).step_by(2).map(name).collect()
}

#[test]
fn the_language_page_lists_every_statement_and_function() {
    let page = "docs/language.md";
    let statements: Vec<String> =
        rows(page, "Statements").iter().map(|row| quoted(&row[0]).remove(0)).collect();
    let mut expected: Vec<String> =
        model::syntax::words::statement_words().map(String::from).collect();
    expected.push("NAME".to_string()); // NAME' = EXPR
    assert_eq!(
        statements.iter().collect::<BTreeSet<_>>(),
        expected.iter().collect::<BTreeSet<_>>()
    );

    let listed: BTreeSet<String> =
        rows(page, "Functions").iter().flat_map(|row| quoted(&row[0])).collect();
    let known = model::elaborate::names::function_names();
    let known: BTreeSet<String> = known.into_iter().map(String::from).collect();
    assert_eq!(listed, known);
    let reserved: BTreeSet<String> = model::syntax::words::FUNCTIONS.map(String::from).into();
    let free: BTreeSet<String> = model::elaborate::names::FREE.map(String::from).into();
    assert!(reserved.is_disjoint(&free));
    assert_eq!(known, &reserved | &free, "functions are reserved words, but for some");
}

#[test]
fn the_language_page_states_the_limits() {
    use model::{elaborate, syntax, treatment};
    let numbers: Vec<String> =
        rows("docs/language.md", "Limits").into_iter().map(|row| row[1].clone()).collect();
    for (what, limit) in [
        ("nesting", syntax::MAX_NESTING),
        ("height", syntax::MAX_HEIGHT),
        ("rows", elaborate::lower::MOST_ROWS),
        ("operations", treatment::unrolled::LARGEST_UNROLLED),
        ("constraints", treatment::unrolled::MOST_CONSTRAINTS),
    ] {
        assert!(numbers.contains(&limit.to_string()), "{what}: {limit} is not among {numbers:?}");
    }
    let inverse = elaborate::functions::LARGEST_INVERSE;
    assert!(numbers.contains(&format!("{inverse} by {inverse}")), "{numbers:?}");
}

#[test]
fn the_methods_page_lists_every_treatment() {
    let treatments: Vec<String> =
        rows("docs/methods.md", "Treatments").iter().map(|row| quoted(&row[0]).remove(0)).collect();
    assert_eq!(treatments, TREATMENTS.iter().map(|facts| facts.name).collect::<Vec<_>>());
}

/// The methods of the table that says which one to take exist.
#[test]
fn the_methods_page_advises_methods_that_exist() {
    let folder = Folder::new();
    let mut seen = 0;
    for row in rows("docs/methods.md", "Which method?") {
        for typed in row[1].split('`').skip(1).step_by(2) {
            let method = typed.split(' ').next().unwrap();
            if !method.starts_with("--") {
                folder.run(&format!("methods {method}")).ok();
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "{seen} methods");
}

/// Checksum of the program `cksum` (POSIX): a cyclic redundancy check of the bytes and of their
/// number.
fn cksum(bytes: &[u8]) -> u32 {
    let length = std::iter::successors(Some(bytes.len()), |rest| Some(rest >> 8))
        .take_while(|rest| *rest > 0);
    let all = bytes.iter().copied().chain(length.map(|rest| rest as u8));
    !all.fold(0u32, |mut crc, byte| {
        crc ^= u32::from(byte) << 24;
        for _ in 0..8 {
            crc = (crc << 1) ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 };
        }
        crc
    })
}

/// The pictures beside the gallery are those that the script draws; `sh docs/figures/draw.sh` draws
/// them anew.
#[test]
fn pictures_are_up_to_date() {
    assert_eq!(cksum(b"123456789"), 930_766_865);
    let drawn = read("docs/figures/drawn.txt");
    let mut noted = BTreeSet::new();
    for line in drawn.lines() {
        let [sum, size, file] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let bytes =
            fs::read(repository().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let now = (cksum(&bytes).to_string(), bytes.len().to_string());
        assert_eq!(
            (sum, size),
            (now.0.as_str(), now.1.as_str()),
            "{file} is another: sh docs/figures/draw.sh"
        );
        noted.insert(file.to_string());
    }
    for entry in fs::read_dir(repository().join("docs/figures")).unwrap() {
        let file = format!("docs/figures/{}", entry.unwrap().file_name().to_str().unwrap());
        assert!(!file.ends_with(".svg") || noted.contains(&file), "{file} is not in drawn.txt");
    }
}

/// The book has every page once.
#[test]
fn the_book_has_every_page() {
    let summary = read("docs/SUMMARY.md");
    for page in
        PAGES.iter().filter_map(|page| page.strip_prefix("docs/")).chain(["papers.md", "orders.md"])
    {
        assert_eq!(summary.matches(&format!("]({page})")).count(), 1, "{page}");
    }
    assert!(read("book.toml").contains("src = \"docs\""));
}

#[test]
fn the_readme_and_continuous_integration_run_the_same_tests() {
    let command = "scripts/test";
    let readme = read("README.md");
    assert!(
        blocks("README.md", &readme)
            .iter()
            .any(|b| b.info == "sh" && b.text == format!("{command}\n"))
    );
    assert_eq!(read(".ci/run").lines().last(), Some(command));
}

#[test]
fn links_lead_somewhere_and_lines_are_short() {
    for page in PAGES.into_iter().chain([
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "docs/orders.md",
        "docs/papers.md",
        "docs/SUMMARY.md",
    ]) {
        let text = read(page);
        let folder = repository().join(page).parent().unwrap().to_path_buf();
        let inline = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
        let references = text
            .lines()
            .filter(|line| line.starts_with('['))
            .filter_map(|line| line.split("]: ").nth(1));
        for target in inline.chain(references) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if target.starts_with("http") {
                continue;
            }
            let path = if file.is_empty() { repository().join(page) } else { folder.join(file) };
            assert!(path.exists(), "{page}: {target} does not exist");
            let heading = |line: &str| {
                let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
                line.starts_with('#') && title == anchor
            };
            assert!(
                anchor.is_empty() || fs::read_to_string(&path).unwrap().lines().any(heading),
                "{page}: {target}"
            );
        }
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            fenced ^= line.starts_with("```");
            // The output of a program has its own width, as have the tables that a test writes.
            let written = fenced || page == "docs/orders.md" && line.starts_with('|');
            let long = line.chars().count() > 110 && !written;
            assert!(!long, "{page}:{}: {} characters", number + 1, line.chars().count());
        }
    }
}
