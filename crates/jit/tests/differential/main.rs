//! Random tapes on every backend, bit for bit. `HOLONOME_FUZZ_CASES=100` runs a hundred times as
//! many.

mod native;
mod simulated;
mod simulator;
#[path = "../../../../fuzz/tapes.rs"]
mod tapes;

use proptest::prelude::ProptestConfig;

/// Configuration with this many cases, or a multiple.
fn cases(count: u32) -> ProptestConfig {
    let times: u32 =
        std::env::var("HOLONOME_FUZZ_CASES").map_or(1, |v| v.parse().expect("a number"));
    ProptestConfig { cases: count * times, failure_persistence: None, ..ProptestConfig::default() }
}
