//! Loops compiled for several instruction sets.

use pulp::Arch;
use std::sync::OnceLock;

/// Run `f`, inlined, with the widest instructions that this processor has; the bits are the same
/// with all.
#[inline(always)]
pub fn widest<R>(f: impl FnOnce() -> R) -> R {
    static ARCH: OnceLock<Arch> = OnceLock::new();
    ARCH.get_or_init(Arch::new).dispatch(f)
}
