//! Points at which a test holds the process until it kills or stops it, so that no test depends on the speed of a
//! machine.
//!
//! `HOLONOME_HOLD="POINT COUNT FILE"` names one: at the point the process makes FILE, which tells the test, and waits.
//!
//! - `created 0`: a new run's folder is there, nothing is computed;
//! - `samples N`: N samples (of an ensemble, trajectories) are stored or more, since the last checkpoint some;
//! - `checkpoint N`: the same, just behind a checkpoint;
//! - `write N`: half of the N-th file that the process replaces is written.
//!
//! Without the variable nothing is looked at but one flag, and never within a step.

use holonome_integrate::observer::Control;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A hold that was asked for.
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
    /// Waits while `go_on` says so.
    fn wait(&self, mut go_on: impl FnMut() -> Control) -> Control {
        // A test that waits for a file that cannot be made sees the process end.
        std::fs::write(&self.file, "").expect("the test's file can be written");
        while go_on() == Control::Continue {
            std::thread::sleep(Duration::from_millis(1));
        }
        Control::Stop
    }
}

/// Whether there is any: a run then looks at every step.
pub(crate) fn is_wanted() -> bool {
    wanted().is_some()
}

/// A run's folder was created.
pub(crate) fn created() {
    if let Some(hold) = wanted().filter(|hold| hold.point == "created") {
        hold.wait(|| Control::Continue);
    }
}

/// So many samples were stored, with a checkpoint where `checkpoint` makes one; `watch` may say stop.
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

/// Waits in the middle of a write, of which `half` writes the first half.
pub(crate) fn writing(half: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let Some(hold) = wanted().filter(|hold| hold.point == "write") else { return Ok(()) };
    if WRITES.fetch_add(1, Ordering::Relaxed) + 1 == hold.count {
        half()?;
        hold.wait(|| Control::Continue);
    }
    Ok(())
}
