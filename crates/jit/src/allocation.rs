//! The system's allocator.

/// Let large arrays return to the system as soon as they are freed. glibc else raises the size of what it keeps for
/// itself to that of the largest array freed so far, up to 32 MB: what a large model frees between parsing and its first
/// step then lies idle beside what it needs. The setting holds for the whole process, so it is for programs, not for
/// libraries. Other allocators are left as they are.
pub fn return_freed_arrays() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // Arrays below are reused, which is faster than to ask the system for zeros again.
        const LARGE: libc::c_int = 4 << 20;
        // SAFETY: mallopt changes two numbers of the allocator, under its lock. A refusal changes nothing.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            // What is free at the end of the heap stays there as well up to this size: the default is far below.
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * LARGE);
        }
    }
}
