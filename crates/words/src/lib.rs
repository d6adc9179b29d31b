//! Spelling of options in messages.
//!
//! A message tells its reader what to change, and readers know an option by different spellings: a
//! program that calls the library writes `max_step`, a user of the command line `--max-step`. The
//! halves and the library therefore name an option by [`option`], and the process chooses the
//! spelling once, before anything is computed.

use std::fmt::{Display, Formatter, Result};
use std::sync::atomic::{AtomicU8, Ordering};

/// A spelling of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// `max_step`, and with a value `max_step = 0.1`: for callers of the library.
    Names,
    /// `--max-step`, and with a value `--max-step 0.1`: for a command line.
    Flags,
}

/// Spelling of this process: 0 for names, 1 for flags.
static SPELLING: AtomicU8 = AtomicU8::new(Spelling::Names as u8);

/// Choose the spelling of options in the messages of this process.
pub fn spell_options(spelling: Spelling) {
    SPELLING.store(spelling as u8, Ordering::Relaxed);
}

/// Option named like its field in the library's options: `option("max_step")`.
pub const fn option(name: &'static str) -> OptionName {
    OptionName { name, flag: name, value: None }
}

/// Spelling of an option whose name is known only at run time.
pub fn spelt(name: &str) -> String {
    match spelling() {
        Spelling::Names => name.to_string(),
        Spelling::Flags => flag(name),
    }
}

fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

/// An option in a message, with or without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionName {
    name: &'static str,
    /// Name of its flag.
    flag: &'static str,
    value: Option<&'static str>,
}

impl OptionName {
    /// Option with another name on the command line: a list whose flag is given for each value.
    pub const fn by_flag(self, flag: &'static str) -> OptionName {
        OptionName { flag, ..self }
    }

    /// Option with a value, both as a reader would write them.
    pub const fn of(self, value: &'static str) -> OptionName {
        OptionName { value: Some(value), ..self }
    }

    /// Option with a value known only at run time, both as a reader would write them.
    pub fn with(self, value: impl Display) -> String {
        self.written(spelling(), Some(&value))
    }

    fn written(&self, spelling: Spelling, value: Option<&dyn Display>) -> String {
        let (name, between) = match spelling {
            Spelling::Names => (self.name.to_string(), " = "),
            Spelling::Flags => (flag(self.flag), " "),
        };
        value.map_or(name.clone(), |value| format!("{name}{between}{value}"))
    }
}

fn spelling() -> Spelling {
    match SPELLING.load(Ordering::Relaxed) {
        flags if flags == Spelling::Flags as u8 => Spelling::Flags,
        _ => Spelling::Names,
    }
}

impl Display for OptionName {
    fn fmt(&self, f: &mut Formatter) -> Result {
        let value = self.value.as_ref().map(|value| value as &dyn Display);
        f.write_str(&self.written(spelling(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_written_as_its_reader_would() {
        let written = |spelling| {
            let (plain, valued) = (option("max_step"), option("slow_manifold"));
            (plain.written(spelling, None), valued.written(spelling, Some(&"off")))
        };
        assert_eq!(written(Spelling::Names), ("max_step".into(), "slow_manifold = off".into()));
        assert_eq!(written(Spelling::Flags), ("--max-step".into(), "--slow-manifold off".into()));
        let list = option("steps").by_flag("step");
        assert_eq!(list.written(Spelling::Names, None), "steps");
        assert_eq!(list.written(Spelling::Flags, Some(&"0.1,0.2")), "--step 0.1,0.2");
        let (plain, valued) = (option("max_step"), option("slow_manifold").of("off"));
        let shown = [plain.to_string(), valued.to_string(), plain.with(0.5)];
        assert_eq!(
            shown,
            ["max_step", "slow_manifold = off", "max_step = 0.5"],
            "names, unless a process says otherwise"
        );
    }
}
