//! Threads that put full chunks into files while the run goes on: what the system takes to copy them is longer than
//! many a step.

use super::chunks::Page;
use super::error::StoreError;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, available_parallelism};

/// Threads at most: the system copies a few bytes a nanosecond, however many ask for it.
const MOST_THREADS: usize = 3;

/// A chunk of an array, by number, and whether it is in its file.
type Written = (usize, Page, Result<(), StoreError>);

/// The threads. They end, behind all that they were given, when this is dropped.
#[derive(Debug)]
pub(super) struct Background {
    given: Option<SyncSender<(usize, Page)>>,
    /// Behind a lock only because a store is shared between threads, which then do not write.
    written: Mutex<Receiver<Written>>,
    threads: Vec<JoinHandle<()>>,
}

impl Background {
    /// For a store of so many arrays, of each of which one chunk is away at a time. None where the system has no thread
    /// to give.
    pub(super) fn new(arrays: usize) -> Option<Background> {
        // Bounded channels have their room from the start: handing over allocates nothing.
        let (given, pages) = sync_channel::<(usize, Page)>(arrays);
        let (done, written) = sync_channel(arrays);
        let pages = Arc::new(Mutex::new(pages));
        let work = || {
            let (pages, done) = (Arc::clone(&pages), done.clone());
            move || loop {
                // One thread waits for a page, the others for their turn; none writes while it holds the lock.
                let next = pages.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((array, mut page)) = next else { return };
                let result = page.write();
                if done.send((array, page, result)).is_err() {
                    return;
                }
            }
        };
        let count = available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS)).min(arrays);
        let thread = |_| Builder::new().name("store".to_string()).spawn(work()).ok();
        let threads: Vec<JoinHandle<()>> = (0..count).map_while(thread).collect();
        (!threads.is_empty()).then(|| Background { given: Some(given), written: Mutex::new(written), threads })
    }

    /// Hands a chunk over; gives it back if the threads have ended.
    pub(super) fn give(&self, array: usize, page: Page) -> Option<Page> {
        match &self.given {
            Some(given) => given.send((array, page)).err().map(|error| error.0.1),
            None => Some(page),
        }
    }

    /// Waits for the next chunk to come back.
    pub(super) fn take(&mut self) -> Option<Written> {
        self.written.get_mut().ok()?.recv().ok()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.given = None;
        for thread in self.threads.drain(..) {
            // It reports what it could not write and does not panic.
            let _ = thread.join();
        }
    }
}
