//! Array names that are safe as folder names and as Zarr node names.

use std::collections::HashSet;

/// Maximum length of a name: file systems allow 255 bytes; the rest is for the suffixes that make a name unique.
const BYTES_MAX: usize = 200;

/// Names claimed so far, without their case: some file systems treat `R` and `r` as one name.
#[derive(Default)]
pub(super) struct ClaimedNames(HashSet<String>);

impl ClaimedNames {
    /// A safe form of `name` that no other array has: underscores are appended until it is unique.
    pub(super) fn claim(&mut self, name: &str) -> String {
        let mut candidate = safe(name);
        // Upper case first: some letters (ß, ſ, the Kelvin sign) differ from their lower case but not from its upper
        // one.
        while !self.0.insert(candidate.to_uppercase().to_lowercase()) {
            candidate.push('_');
        }
        candidate
    }
}

/// `name` without characters that have a meaning in a path or in the Zarr specification.
fn safe(name: &str) -> String {
    let keep = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut safe: String = name.chars().map(|c| if keep(c) { c } else { '_' }).collect();
    // Hidden names and `..`, `zarr.json` and the two other files of a run.
    if safe.starts_with('.') || safe.ends_with(".json") || safe.ends_with(".lock") {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_names_stay_and_dangerous_ones_change() {
        for name in ["q", "θ", "p_θ2", "_a", "rod.hidden", "名前"] {
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
        let mut names = ClaimedNames::default();
        assert_eq!([names.claim("time"), names.claim("time"), names.claim("time")], ["time", "time_", "time__"]);
        assert_eq!(
            [names.claim("R"), names.claim("r"), names.claim("R_")],
            ["R", "r_", "R__"],
            "the case is no difference"
        );
        assert_eq!([names.claim("Ω"), names.claim("ω"), names.claim("ß"), names.claim("SS")], ["Ω", "ω_", "ß", "SS_"]);
    }
}
