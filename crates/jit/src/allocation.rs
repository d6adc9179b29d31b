//! The system's allocator.

use std::sync::OnceLock;

/// Let large arrays return to the system as soon as they are freed. glibc else raises the size of
/// what it keeps for itself to that of the largest array freed so far, up to 32 MB: what a large
/// model frees between parsing and its first step then lies idle beside what it needs. The setting
/// holds for the whole process, so it is for programs, not for libraries. Other allocators are left
/// as they are.
pub fn return_freed_arrays() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // Arrays below are reused, which is faster than to ask the system for zeros again.
        const LARGE: libc::c_int = 4 << 20;
        // SAFETY: mallopt changes two numbers of the allocator, under its lock. A refusal changes
        // nothing.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            // What is free at the end of the heap stays there as well up to this size: the default
            // is far below.
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * LARGE);
        }
    }
}

/// Texts for stderr and stdout with which a process ends whose memory is exhausted.
static LAST_WORDS: OnceLock<[String; 2]> = OnceLock::new();

/// Let the process end with these texts and the exit status 1, rather than be aborted, where the
/// system gives it no more memory. The setting holds for the whole process, so it is for programs,
/// not for libraries. What asks for memory that may be refused (`try_reserve`) is told so as
/// before.
pub fn report_exhausted_memory(stderr: String, stdout: String) {
    #[cfg(unix)]
    {
        extern "C" fn end(_: libc::c_int) {
            let [stderr, stdout] = LAST_WORDS.get().map_or([""; 2], |texts| [&texts[0], &texts[1]]);
            for (file, text) in [(libc::STDERR_FILENO, stderr), (libc::STDOUT_FILENO, stdout)] {
                // SAFETY: a signal handler may call `write`, which reads the text. If the file is
                // closed, nobody reads the text.
                let _ = unsafe { libc::write(file, text.as_ptr().cast(), text.len()) };
            }
            // SAFETY: a signal handler may call `_exit`.
            unsafe { libc::_exit(1) }
        }
        if LAST_WORDS.set([stderr, stdout]).is_ok() {
            // SAFETY: the handler calls nothing that a handler may not call. Only `abort` raises
            // this signal, which Rust's allocation calls where memory ends.
            unsafe {
                libc::signal(libc::SIGABRT, end as extern "C" fn(libc::c_int) as libc::sighandler_t)
            };
        }
    }
    #[cfg(not(unix))]
    let _ = LAST_WORDS.set([stderr, stdout]);
}
