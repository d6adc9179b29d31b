//! Interruption by the user, and by limits of the system.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status of a command that Ctrl-C has stopped.
pub const INTERRUPTED: u8 = 130;

/// A flag that Ctrl-C sets.
pub fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    // A second handler cannot be set and is not needed: a command calls this once.
    let _ = ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed));
    stop
}

/// Let a write beyond the largest file size fail, as on a full disk: the signal of that limit would
/// end the process. Threads that are started later inherit this.
pub fn outlive_file_limit() {
    #[cfg(unix)]
    {
        use nix::sys::signal::{SigSet, Signal};
        // Without success the limit acts as before.
        let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    }
}
