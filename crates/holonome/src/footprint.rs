//! Estimates of a run's disk and memory, reported before it starts.

use crate::arrays::Arrays;
use crate::error::Error;
use crate::store::Layout;
use holonome_words::option;
use std::path::Path;

/// Size from which on a warning is given, in bytes.
const NOTABLE: f64 = 1e9;

/// Memory that is there without asking, which takes longer than a short run.
const SMALL: f64 = 1e7;

/// Estimated sizes of a run or an ensemble, in bytes, as floats because these cannot overflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Footprint {
    /// Final size on disk.
    pub disk: f64,
    /// Memory of the run's vectors.
    pub memory: f64,
}

impl Footprint {
    /// Warnings for the user before the run goes to the folder `out`.
    pub(crate) fn warnings(&self, out: &Path) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.disk >= NOTABLE {
            let free = free_space(out).filter(|free| *free < self.disk);
            let free =
                free.map_or(String::new(), |free| format!(", and {} are free there", size(free)));
            warnings.push(format!(
                "this will store up to {}{free}: {samples_n} stores fewer states, {record_name} less of each",
                size(self.disk),
                samples_n = option("samples").of("N"),
                record_name = option("record").of("NAME,…")
            ));
        }
        if self.memory >= NOTABLE {
            let available = available_memory().filter(|available| *available < self.memory);
            let available = available
                .map_or(String::new(), |memory| format!(", and {} are available", size(memory)));
            warnings.push(format!("this needs about {} of memory{available}", size(self.memory)));
        }
        warnings
    }

    /// Reserve arrays of `layout` in memory, beside the run's own.
    ///
    /// # Errors
    /// If memory does not suffice.
    pub(crate) fn in_memory(self, layout: &Layout) -> Result<Arrays, Error> {
        let needed = self.memory + self.disk;
        let refused = |available: String| {
            Error::option(format!(
                "the samples need about {} of memory{available}: store them in a folder, or record fewer of them or less of each with {samples} and {record}",
                size(needed),
                samples = option("samples"),
                record = option("record")
            ))
        };
        let asked = (needed >= SMALL).then(available_memory).flatten();
        match asked.filter(|available| *available < needed) {
            Some(available) => Err(refused(format!(", and {} are available", size(available)))),
            None => Arrays::planned(layout)
                .map_err(|_| refused(", which the system does not give".to_string())),
        }
    }

    /// Refuse lists that need so many bytes, more than is available; says how much that is.
    pub(crate) fn of_lists(bytes: f64) -> Result<(), String> {
        let available =
            available_memory().filter(|available| *available < bytes && bytes >= NOTABLE);
        available.map_or(Ok(()), |available| {
            Err(format!("about {} of memory, and {} are available", size(bytes), size(available)))
        })
    }

    /// Refuse sizes that the system does not give, before any of the memory is needed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refused = |_| {
            Error::option(format!(
                "this needs about {} of memory, which the system does not give: make the model smaller with {set}, or store fewer states with {samples}",
                size(self.memory),
                set = option("set"),
                samples = option("samples")
            ))
        };
        Vec::<u8>::new().try_reserve_exact(self.memory as usize).map_err(refused)
    }
}

/// A size, formatted for people.
fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e9 => format!("{:.0} MB", bytes / 1e6),
        bytes if bytes < 1e12 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.1} TB", bytes / 1e12),
    }
}

/// Memory available without swapping; `None` if the system does not report it.
fn available_memory() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok()? * 1024.0)
}

/// Free space on the file system of the nearest existing folder above `path`.
#[cfg(target_os = "linux")]
fn free_space(path: &Path) -> Option<f64> {
    let absolute = std::path::absolute(path).ok()?;
    let space = absolute.ancestors().find_map(|folder| rustix::fs::statvfs(folder).ok())?;
    Some(space.f_bavail as f64 * space.f_frsize as f64)
}

#[cfg(not(target_os = "linux"))]
fn free_space(_path: &Path) -> Option<f64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_runs_are_said_and_impossible_ones_refused() {
        let footprint = |disk, memory| Footprint { disk, memory };
        assert!(footprint(9e8, 9e8).warnings(".".as_ref()).is_empty());
        let warnings = footprint(1e18, 1e18).warnings("no/such/folder".as_ref());
        assert!(
            warnings[0].contains("1000000.0 TB") && warnings[0].contains("samples"),
            "{warnings:?}"
        );
        if cfg!(target_os = "linux") {
            assert!(
                warnings[0].contains("are free there") && warnings[1].contains("are available"),
                "{warnings:?}"
            );
        }
        assert!(footprint(0.0, 1e6).check().is_ok());
        assert!(footprint(0.0, 1e30).check().is_err());
    }
}
