//! Executable memory. It is written first and then made executable, and is never both: strict
//! systems allow that, and no mistake elsewhere can change the code.

#[cfg(all(unix, target_arch = "x86_64"))]
pub(crate) use system::Executable;

#[cfg(not(all(unix, target_arch = "x86_64")))]
pub(crate) use nowhere::Executable;

#[cfg(all(unix, target_arch = "x86_64"))]
mod system {
    use std::io;
    use std::ptr::{self, NonNull};

    /// Mapping of its own with code in it.
    #[derive(Debug)]
    pub(crate) struct Executable {
        start: NonNull<u8>,
        len: usize,
    }

    // SAFETY: nothing writes to the mapping once it is made, and its owner may unmap it from any
    // thread.
    unsafe impl Send for Executable {}
    // SAFETY: as above; it is only read and executed.
    unsafe impl Sync for Executable {}

    impl Executable {
        /// Put `code` into executable memory.
        ///
        /// # Errors
        /// If the system does not allow that.
        pub(crate) fn new(code: &[u8]) -> Result<Executable, String> {
            let refused = |what: &str| {
                Err(format!("this system does not {what}: {}", io::Error::last_os_error()))
            };
            let len = code.len().max(1);
            // SAFETY: a new private mapping; it touches no memory that is in use.
            let start = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    len,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            let start =
                if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast::<u8>()) };
            let Some(start) = start else { return refused("give memory for machine code") };
            // Unmaps it if a later call fails.
            let memory = Executable { start, len };
            // SAFETY: the mapping is writable, at least as long as the code, and known here only.
            unsafe { ptr::copy_nonoverlapping(code.as_ptr(), start.as_ptr(), code.len()) };
            // SAFETY: exactly the mapping made above; it loses the right to be written to.
            let protected = unsafe {
                libc::mprotect(start.as_ptr().cast(), len, libc::PROT_READ | libc::PROT_EXEC)
            };
            if protected != 0 {
                return refused("let a program run machine code that it made");
            }
            Ok(memory)
        }

        /// Call the function at `offset` with (x, t, bound, out, scratch, count), in registers of
        /// the System V convention on every system.
        ///
        /// # Safety
        /// There is such a function at `offset`, and it may access the arrays as it does.
        pub(crate) unsafe fn call(
            &self,
            offset: usize,
            [x, t, bound]: [*const f64; 3],
            [out, scratch]: [*mut f64; 2],
            count: u64,
        ) -> u64 {
            type Function = unsafe extern "sysv64" fn(
                *const f64,
                *const f64,
                *const f64,
                *mut f64,
                *mut f64,
                u64,
            ) -> u64;
            assert!(offset < self.len, "an entry lies in the code");
            // SAFETY: by the caller's promise a function of this type starts there.
            let function: Function =
                unsafe { std::mem::transmute(self.start.as_ptr().wrapping_add(offset)) };
            // SAFETY: the caller's promise.
            unsafe { function(x, t, bound, out, scratch, count) }
        }
    }

    impl Drop for Executable {
        fn drop(&mut self) {
            // SAFETY: exactly the mapping that `new` made; kernels call into it only while they own
            // it.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

#[cfg(not(all(unix, target_arch = "x86_64")))]
mod nowhere {
    /// Type without values: none can be made here.
    #[derive(Debug)]
    pub(crate) enum Executable {}

    impl Executable {
        pub(crate) fn new(_: &[u8]) -> Result<Executable, String> {
            Err("machine code is made for x86-64 processors under Unix-like systems only"
                .to_string())
        }

        /// # Safety
        /// There is no value that could be called.
        pub(crate) unsafe fn call(
            &self,
            _: usize,
            _: [*const f64; 3],
            _: [*mut f64; 2],
            _: u64,
        ) -> u64 {
            match *self {}
        }
    }
}
