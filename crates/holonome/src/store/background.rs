//! A thread that puts full chunks into files while the run goes on: what the system takes to copy them is longer than
//! many a step.

use super::chunks::Page;
use super::error::StoreError;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// A chunk of an array, by number, and whether it is in its file.
type Written = (usize, Page, Result<(), StoreError>);

/// The thread. It ends, behind all that it was given, when this is dropped.
#[derive(Debug)]
pub(super) struct Background {
    given: Option<SyncSender<(usize, Page)>>,
    /// Behind a lock only because a store is shared between threads, which then do not write.
    written: Mutex<Receiver<Written>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// For a store of so many arrays, of each of which one chunk is away at a time. None where the system has no thread
    /// to give.
    pub(super) fn new(arrays: usize) -> Option<Background> {
        // Bounded channels have their room from the start: handing over allocates nothing.
        let (given, pages) = sync_channel::<(usize, Page)>(arrays);
        let (done, written) = sync_channel(arrays);
        let work = move || {
            for (array, mut page) in pages {
                let result = page.write();
                if done.send((array, page, result)).is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().name("store".to_string()).spawn(work).ok()?;
        Some(Background { given: Some(given), written: Mutex::new(written), thread: Some(thread) })
    }

    /// Hands a chunk over; gives it back if the thread has ended.
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
        if let Some(thread) = self.thread.take() {
            // It reports what it could not write and does not panic.
            let _ = thread.join();
        }
    }
}
