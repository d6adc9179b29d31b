//! Claims of the blocks of an ensemble.

use super::*;
use std::fs::File;
use std::time::{Duration, SystemTime};

/// Claim of a process on another machine that was renewed so long ago.
fn claim_of_another(path: &Path, block: u64, ago: Duration) {
    let claims = path.join(".holonome").join("claims");
    fs::create_dir_all(&claims).unwrap();
    let claim = claims.join(block.to_string());
    fs::write(&claim, r#"{"host":"elsewhere","pid":1,"time":0}"#).unwrap();
    let file = File::options().append(true).open(claim).unwrap();
    file.set_modified(SystemTime::now() - ago).unwrap();
}

#[test]
fn a_claim_that_is_not_renewed_is_taken_over() {
    let scratch = Scratch::new();
    let path = scratch.join("ensemble");
    let layout = Layout {
        times: vec![0.0, 1.0],
        trajectories: Some(0..64),
        arrays: vec![array("q", &[])],
        ..Layout::default()
    };
    let (store, created) = EnsembleStore::create_or_open(&path, &layout).unwrap();
    assert!(created && store.blocks().count() >= 4);
    let seconds = Duration::from_secs;
    claim_of_another(&path, 1, seconds(10));
    claim_of_another(&path, 2, seconds(290));
    claim_of_another(&path, 3, seconds(310));
    assert_eq!(store.block_status().unwrap().running, [1, 2]);
    assert_eq!(store.claim(0, true).unwrap(), Taken::Own);
    assert_eq!(store.claim(1, true).unwrap(), Taken::Others);
    assert_eq!(store.claim(2, true).unwrap(), Taken::Others, "it is renewed each 30 seconds");
    assert_eq!(store.claim(3, true).unwrap(), Taken::Own);
    assert_eq!(store.block_status().unwrap().running, [0, 1, 2, 3]);
    // Whoever is told to compute a block does so.
    assert_eq!(store.claim(1, false).unwrap(), Taken::Own);
    // A claim that was being written when its process was killed.
    fs::write(path.join(".holonome/claims/2"), "").unwrap();
    assert_eq!(store.claim(2, true).unwrap(), Taken::Others);
    let file = File::options().append(true).open(path.join(".holonome/claims/2")).unwrap();
    file.set_modified(SystemTime::now() - seconds(310)).unwrap();
    assert_eq!(store.claim(2, true).unwrap(), Taken::Own);
    drop(store);
    let left = fs::read_dir(path.join(".holonome/claims")).unwrap().count();
    assert_eq!(left, 0, "claims end with their process");
}
