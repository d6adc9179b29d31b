//! Background thread that writes full chunks into files while the run goes on: copying them takes
//! the system longer than many a step.

use super::chunks::Page;
use super::error::StoreError;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// A chunk of an array, by number, with the result of writing it.
type Written = (usize, Page, Result<(), StoreError>);

/// The thread. When this is dropped, it ends after all chunks that it was given.
#[derive(Debug)]
pub(super) struct Background {
    given: Option<SyncSender<(usize, Page)>>,
    /// In a mutex only because a store is shared between threads, which then do not write.
    written: Mutex<Receiver<Written>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Thread for a store of `arrays` arrays, each of which has one chunk away at a time. `None` if
    /// the system cannot start a thread.
    pub(super) fn new(arrays: usize) -> Option<Background> {
        // Bounded channels reserve their memory at the start: sending allocates nothing.
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

    /// Send a chunk; returns it if the thread has ended.
    pub(super) fn give(&self, array: usize, page: Page) -> Option<Page> {
        match &self.given {
            Some(given) => given.send((array, page)).err().map(|error| error.0.1),
            None => Some(page),
        }
    }

    /// Wait for the next written chunk.
    pub(super) fn take(&mut self) -> Option<Written> {
        self.written.get_mut().ok()?.recv().ok()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.given = None;
        if let Some(thread) = self.thread.take() {
            // The thread reports failed writes and does not panic.
            let _ = thread.join();
        }
    }
}
