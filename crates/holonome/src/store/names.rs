//! Array names that are safe as folder names and as Zarr node names.

use std::cell::LazyCell;
use std::collections::HashSet;

/// Maximum length of a name in bytes on common file systems.
const FILE_SYSTEM_MAX: usize = 255;

/// Maximum length of a name: the rest is for the suffixes that make it unique.
const BYTES_MAX: usize = 200;

/// Endings of a run's own files.
const OF_FILES: [&str; 3] = [".json", ".lock", ".bin"];

/// Names claimed so far. Some file systems treat `R` and `r` as one name.
pub(super) struct ClaimedNames<'f> {
    claimed: HashSet<String>,
    /// The names without their case.
    folded: HashSet<String>,
    /// Answer of the file system, which is asked if two names differ by their case alone.
    case_matters: LazyCell<bool, Box<dyn FnOnce() -> bool + 'f>>,
}

impl<'f> ClaimedNames<'f> {
    /// No names yet, on a file system on which the case of a name matters or does not.
    pub(super) fn new(case_matters: &'f dyn Fn() -> bool) -> ClaimedNames<'f> {
        ClaimedNames {
            claimed: HashSet::new(),
            folded: HashSet::new(),
            case_matters: LazyCell::new(Box::new(case_matters)),
        }
    }

    /// A safe form of `name` that no other array has: underscores are appended until it is unique.
    pub(super) fn claim(&mut self, name: &str) -> String {
        let mut candidate = safe(name);
        while self.is_claimed(&candidate) {
            candidate.push('_');
        }
        self.folded.insert(without_case(&candidate));
        self.claimed.insert(candidate.clone());
        candidate
    }

    fn is_claimed(&self, name: &str) -> bool {
        self.claimed.contains(name)
            || self.folded.contains(&without_case(name)) && !*self.case_matters
    }
}

/// Form of a name that file systems give to all names that they do not tell apart by their case.
fn without_case(name: &str) -> String {
    // Upper case first: some letters (ß, ſ, the Kelvin sign) differ from their lower case but not
    // from its upper one.
    name.to_uppercase().to_lowercase()
}

/// `name` without characters that have a meaning in a path or in the Zarr specification.
fn safe(name: &str) -> String {
    let mut safe: String = name.chars().map(|c| if is_kept(c) { c } else { '_' }).collect();
    // Hidden names and `..`, and the files of a run.
    if safe.starts_with('.') || OF_FILES.iter().any(|ending| safe.ends_with(ending)) {
        safe = safe.replace('.', "_");
    }
    if safe.is_empty() || safe.starts_with("__") {
        safe.insert(0, 'v');
    }
    while safe.len() > BYTES_MAX {
        safe.pop();
    }
    safe
}

/// True if `name` can be that of an array's folder: it stays within the folder of the run, is none
/// of the run's own files, and is shown as it is. All names that [`ClaimedNames`] gives can.
pub(super) fn can_be_stored(name: &str) -> bool {
    let own = OF_FILES.iter().any(|ending| name.ends_with(ending));
    !name.is_empty()
        && name.len() <= FILE_SYSTEM_MAX
        && !name.starts_with('.')
        && !own
        && name.chars().all(is_kept)
}

fn is_kept(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']' | ',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_cannot_be_stored() {
        let mut names = ClaimedNames::new(&|| true);
        for name in [
            "q",
            "θ",
            "__x",
            "..",
            "a/../b",
            "zarr.json",
            "",
            "é\u{301}",
            "run.lock",
            "checkpoint.bin",
        ] {
            let stored = names.claim(name);
            assert!(can_be_stored(&stored), "{name}: {stored}");
        }
        let long = [names.claim(&"é".repeat(300)), names.claim(&"é".repeat(300))];
        assert!(long.iter().all(|name| can_be_stored(name)), "{long:?}");
        for name in [
            "",
            ".",
            "..",
            "../q",
            "/q",
            "a/b",
            "a\\b",
            ".q",
            "q\0",
            "q\n",
            "q\u{1b}",
            "q\u{9b}",
            "zarr.json",
        ] {
            assert!(!can_be_stored(name), "{name:?}");
        }
        for name in ["status.json", "run.lock", "checkpoint.bin", "C:q", &"q".repeat(256)] {
            assert!(!can_be_stored(name), "{name:?}");
        }
    }

    #[test]
    fn model_names_stay_and_dangerous_ones_change() {
        for name in ["q", "θ", "p_θ2", "_a", "rod.hidden", "名前", "r[2].x", "R[1,3]"] {
            assert_eq!(safe(name), name);
        }
        assert_eq!(safe("__x"), "v__x");
        assert_eq!(safe(".."), "v__");
        assert_eq!(safe("a/../b"), "a_.._b");
        assert_eq!(safe("zarr.json"), "zarr_json");
        assert_eq!(safe(""), "v");
        assert_eq!(safe(&"é".repeat(300)).len(), BYTES_MAX);
    }

    #[test]
    fn names_are_unique() {
        let mut names = ClaimedNames::new(&|| false);
        assert_eq!(
            [names.claim("time"), names.claim("time"), names.claim("time")],
            ["time", "time_", "time__"]
        );
        assert_eq!(
            [names.claim("R"), names.claim("r"), names.claim("R_")],
            ["R", "r_", "R__"],
            "the case is no difference"
        );
        assert_eq!(
            [names.claim("Ω"), names.claim("ω"), names.claim("ß"), names.claim("SS")],
            ["Ω", "ω_", "ß", "SS_"]
        );
        let mut names = ClaimedNames::new(&|| true);
        assert_eq!(["R", "r", "R"].map(|name| names.claim(name)), ["R", "r", "R_"]);
    }
}
