//! Points at which a test holds the process until it kills or stops it, so that no test depends on
//! the speed of a machine.
//!
//! `HOLONOME_HOLD="POINT COUNT FILE"` names a point: there the process creates FILE, which signals
//! the test, and waits.
//!
//! - `created 0`: a new run's folder exists, nothing is computed;
//! - `samples N`: at least N samples (trajectories of an ensemble) are stored, some of them since
//!   the last checkpoint;
//! - `checkpoint N`: at least N samples are stored, and a checkpoint was just written;
//! - `write N`: half of the N-th file that the process replaces is written.
//!
//! Without the variable the only cost is one flag, which is never read within a step.

use holonome_integrate::observer::Control;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A requested hold.
struct Hold {
    point: String,
    count: u64,
    file: PathBuf,
}

fn wanted() -> Option<&'static Hold> {
    static HOLD: OnceLock<Option<Hold>> = OnceLock::new();
    let read = || {
        let text = std::env::var("HOLONOME_HOLD").ok()?;
        let mut words = text.splitn(3, ' ');
        let point = words.next()?.to_string();
        Some(Hold { point, count: words.next()?.parse().ok()?, file: words.next()?.into() })
    };
    HOLD.get_or_init(read).as_ref()
}

impl Hold {
    /// Wait as long as `go_on` returns [`Control::Continue`].
    fn wait(&self, mut go_on: impl FnMut() -> Control) -> Control {
        // If the file cannot be created, the process ends, which its test sees.
        std::fs::write(&self.file, "").expect("the test's file can be written");
        while go_on() == Control::Continue {
            std::thread::sleep(Duration::from_millis(1));
        }
        Control::Stop
    }
}

/// True if a hold is requested: a run then checks at every step.
pub(crate) fn is_wanted() -> bool {
    wanted().is_some()
}

/// Hold after a run's folder was created.
pub(crate) fn created() {
    if let Some(hold) = wanted().filter(|hold| hold.point == "created") {
        hold.wait(|| Control::Continue);
    }
}

/// Hold after `samples` samples were stored, with a checkpoint written by `checkpoint`; `watch` may
/// stop the run.
pub(crate) fn stored<E>(
    samples: usize,
    checkpoint: impl FnOnce() -> Result<(), E>,
    watch: impl FnMut() -> Control,
) -> Result<Control, E> {
    let Some(hold) = wanted().filter(|hold| samples as u64 >= hold.count) else {
        return Ok(Control::Continue);
    };
    match hold.point.as_str() {
        "samples" => Ok(hold.wait(watch)),
        "checkpoint" => {
            checkpoint()?;
            Ok(hold.wait(watch))
        }
        _ => Ok(Control::Continue),
    }
}

/// Hold in the middle of a write, of which `half` writes the first half.
pub(crate) fn writing(half: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let Some(hold) = wanted().filter(|hold| hold.point == "write") else { return Ok(()) };
    if WRITES.fetch_add(1, Ordering::Relaxed) + 1 == hold.count {
        half()?;
        hold.wait(|| Control::Continue);
    }
    Ok(())
}
