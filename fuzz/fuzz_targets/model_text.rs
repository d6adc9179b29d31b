//! Arbitrary bytes → parse → elaborate → examine: a model or an error, never a panic.
//!
//! ```text
//! cargo install cargo-fuzz
//! cd fuzz && mkdir -p corpus/model_text && cp ../models/*.holo ../suite/models/*.holo ../suite/errors/*.holo corpus/model_text
//! cargo +nightly fuzz run model_text -- -max_len=4096 -timeout=30 -rss_limit_mb=8192
//! ```
//!
//! libFuzzer needs a nightly compiler. Where there is none, `cargo test -p holonome-model --test
//! fuzz` runs a bounded number of mutations through the same [`entry`]; `HOLONOME_FUZZ_CASES` sets
//! another number.
#![no_main]

#[path = "../entry.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    entry::read(&String::from_utf8_lossy(bytes));
});
