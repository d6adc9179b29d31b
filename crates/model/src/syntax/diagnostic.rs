//! Diagnostics: findings about a model with their places, one value that the command line, JSON and
//! Python all show.

use super::span::Span;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The model can be run; the user should know.
    Warning,
    /// The model cannot be run.
    Error,
}

/// One finding about a model's source.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Statement of the mistake, in one line that names the culprit.
    pub message: String,
    /// Span of the offending text.
    pub span: Span,
    /// A few words under the offending text.
    pub label: String,
    /// Remedy.
    pub help: Option<String>,
    /// Other places that explain the finding (where a bracket was opened, where a name was first
    /// declared).
    pub related: Vec<(Span, String)>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(message: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            message: message.into(),
            span,
            label: label.into(),
            help: None,
            related: Vec::new(),
        }
    }

    /// A warning at `span`.
    pub fn warning(message: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message, span, label) }
    }

    /// Adds the remedy.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the remedy that one of the `candidates` is meant by `name`, if one is near enough, and
    /// else the remedy that is given.
    pub fn suggest<'a>(
        self,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str>,
        otherwise: impl FnOnce() -> String,
    ) -> Self {
        match did_you_mean(name, candidates) {
            Some(meant) => self.help(format!("did you mean '{meant}'?")),
            None => self.help(otherwise()),
        }
    }

    /// Adds another place.
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }
}

/// The candidate nearest to `name`, if it is near enough to have been meant: at most a third of the
/// letters differ (Damerau–Levenshtein, case counts half as a difference), or only their case does.
pub fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(LONGEST_NAME + 1).collect();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let letters: Vec<char> = candidate.chars().take(LONGEST_NAME + 1).collect();
        let longest = name.len().max(letters.len());
        let shortest = name.len().min(letters.len());
        if longest > LONGEST_NAME || 3 * (longest - shortest) > longest {
            continue; // too far apart to look closer
        }
        let distance = half_differences(&name, &letters);
        let only_case = name.len() == letters.len()
            && name.iter().zip(&letters).all(|(a, b)| same_letter(*a, *b));
        let near = 3 * distance <= 2 * longest || only_case;
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Longest name that is compared: nobody mistypes longer ones, and a comparison takes the square of
/// their length.
const LONGEST_NAME: usize = 64;

fn same_letter(a: char, b: char) -> bool {
    a.to_lowercase().eq(b.to_lowercase())
}

/// Twice the Damerau–Levenshtein distance (letters inserted, left out, exchanged, or swapped with
/// their neighbour); a letter that differs in case only counts once instead of twice.
fn half_differences(a: &[char], b: &[char]) -> usize {
    // Row i holds the distances between a[..i] and every b[..j]; a swap looks two rows back.
    let mut above: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).map(|j| 2 * j).collect();
    for i in 1..=a.len() {
        let mut next = vec![2 * i];
        for j in 1..=b.len() {
            let (x, y) = (a[i - 1], b[j - 1]);
            let exchange = if x == y {
                0
            } else if same_letter(x, y) {
                1
            } else {
                2
            };
            let mut least = (row[j - 1] + exchange).min(row[j] + 2).min(next[j - 1] + 2);
            if i > 1 && j > 1 && x == b[j - 2] && a[i - 2] == y {
                least = least.min(above[j - 2] + 2);
            }
            next.push(least);
        }
        above = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

/// The text in the form that messages show: long texts are cut, line breaks become spaces.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut short: String =
        text.chars().take(LONGEST).map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_meant() {
        let words = ["parameter", "coordinate", "momentum", "p.z", "m", "hamiltonian"];
        for (name, meant) in [
            ("paramter", Some("parameter")),
            ("praameter", Some("parameter")),
            ("Parameter", Some("parameter")),
            ("HAMILTONIAN", Some("hamiltonian")),
            ("cordinates", Some("coordinate")),
            ("pz", Some("p.z")),
            ("M", Some("m")),
            ("q", None),
            ("tensor", None),
            ("", None),
        ] {
            assert_eq!(did_you_mean(name, words), meant, "{name}");
        }
    }

    #[test]
    fn the_nearest_wins_and_the_first_of_equals() {
        assert_eq!(did_you_mean("link", ["lin", "Link", "links"]), Some("Link"));
        assert_eq!(did_you_mean("abcd", ["abce", "abcf"]), Some("abce"));
    }

    #[test]
    fn a_swap_counts_once() {
        assert_eq!(half_differences(&['a', 'b', 'c'], &['a', 'c', 'b']), 2);
        assert_eq!(half_differences(&['a', 'b', 'c'], &['A', 'b']), 3);
    }

    #[test]
    fn long_names_are_not_compared() {
        let long = "x".repeat(1_000_000);
        assert_eq!(did_you_mean(&long, [long.as_str()]), None);
    }
}
