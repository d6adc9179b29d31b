//! Computation of an ensemble block by block, by one process or several.

use super::batch::{BatchResult, compute};
use super::lanes::SweepLanes;
use super::tally::Tally;
use super::{Sweep, SweepProgress, SweepSummary};
use crate::error::Error;
use crate::hold;
use crate::store::{Blocks, EnsembleStore, Status, Taken};
use holonome_integrate::observer::Control;
use holonome_integrate::plan::Stepping;
use holonome_words::option;
use rayon::prelude::*;
use serde_json::Map;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Maximum number of trajectories of a task: enough for lanes to refill, few enough to spread over
/// threads.
pub(super) const TASK_TRAJECTORIES: u64 = 256;

/// Number of steps of a task up to which it may have more trajectories than that: to begin a task
/// takes as long as some hundred steps in lanes.
pub(super) const TASK_STEPS: u64 = 1 << 14;

/// Maximum number of values in a task, unless one vector of trajectories has more.
pub(super) const TASK_NUMBERS: usize = 1 << 21;

/// Number of tasks per thread between two looks at the progress.
pub(super) const TASKS_PER_THREAD: usize = 2;

/// Number of blocks up to which each is looked for by itself.
const FEW_BLOCKS: usize = 64;

/// Time between two looks at the blocks of other processes.
const LOOK: Duration = Duration::from_millis(500);

/// Blocks of an ensemble that a process computes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// All blocks that are not done.
    #[default]
    All,
    /// Those with these numbers.
    Blocks(Range<u64>),
    /// Every `of`-th block, beginning with the `number`-th, 1 ≤ `number` ≤ `of`.
    Worker {
        /// Number of this process.
        number: u64,
        /// Number of processes.
        of: u64,
    },
    /// All blocks that no other process has claimed.
    Claimed,
}

/// For every stored array, a row per trajectory of a block.
pub(super) type BlockRows = Vec<Vec<f64>>;

/// A block of which some tasks are computed, into their parts of its rows.
struct Building {
    block: u64,
    /// Tasks that are not begun, and the number of those that are not done.
    queue: VecDeque<Range<u64>>,
    tasks: usize,
    /// Number of trajectories of tasks that are begun.
    begun: usize,
    rows: BlockRows,
    tally: Tally,
}

/// Number of trajectories of a task, of `count` trajectories in so many tasks at a time: vectors of
/// `least` of them, each of so many steps and with a row of so many numbers.
pub(super) fn task_length(
    (count, tasks): (u64, u64),
    least: u64,
    (steps, row): (u64, usize),
) -> u64 {
    let share = count.div_ceil(tasks).next_multiple_of(least);
    let most = TASK_TRAJECTORIES.max(TASK_STEPS / steps.max(1)).min(share).max(least);
    ((TASK_NUMBERS / row.max(1)) as u64).clamp(least, most)
}

/// Callbacks of a computation.
pub(super) struct Steps<'a> {
    /// Next block to compute; `None` if there is none.
    pub next: &'a mut dyn FnMut() -> Result<Option<u64>, Error>,
    /// Take the rows of a block and the sums over them, in the order in which they were begun.
    pub take: &'a mut dyn FnMut(u64, &BlockRows, Tally) -> Result<Control, Error>,
    /// Watch the progress.
    pub watch: &'a mut dyn FnMut(&SweepProgress) -> Control,
}

impl Sweep {
    /// Compute blocks, one after the other; tasks of several are computed at the same time where
    /// one does not occupy all threads.
    pub(super) fn compute_each(
        &self,
        blocks: &Blocks,
        mut progress: SweepProgress,
        steps: Steps,
    ) -> Result<Control, Error> {
        let Steps { next, take, watch } = steps;
        let lanes = self.lanes();
        let widths = self.widths();
        let row: usize = widths.iter().sum();
        let least = lanes.map_or(1, SweepLanes::count) as u64;
        let at_once = rayon::current_num_threads() * TASKS_PER_THREAD;
        let share = (self.range.end - self.range.start, at_once as u64);
        // Trajectories of equal steps are as long as planned, others as those before.
        let (mut taken, mut of) = match &self.simulation.run_plan().stepping {
            Stepping::Fixed(fixed) => (fixed.steps, 1),
            Stepping::Adaptive(_) => (TASK_STEPS, 1),
        };
        let (mut pending, mut building) = (0, VecDeque::<Building>::new());
        // Rows of blocks that are taken, for others: new memory would have to be mapped.
        let mut spare: Vec<BlockRows> = Vec::new();
        loop {
            while pending < at_once
                && let Some(block) = next()?
            {
                let task = task_length(share, least, (taken / of, row));
                let Range { start, end } = blocks.range(block);
                let (start, end) = (self.range.start + start, self.range.start + end);
                let cut = (start..end).step_by(task as usize);
                let queue: VecDeque<Range<u64>> =
                    cut.map(|first| first..end.min(first + task)).collect();
                let mut rows = spare.pop().unwrap_or_else(|| vec![Vec::new(); widths.len()]);
                for (rows, width) in rows.iter_mut().zip(&widths) {
                    rows.resize(width * (end - start) as usize, f64::NAN);
                }
                pending += queue.len();
                let (tasks, begun, tally) = (queue.len(), 0, self.empty_tally());
                building.push_back(Building { block, queue, tasks, begun, rows, tally });
            }
            if pending == 0 {
                return Ok(Control::Continue);
            }
            let mut tasks = Vec::with_capacity(at_once);
            for building in &mut building {
                building.begin(&widths, at_once, &mut tasks);
            }
            pending -= tasks.len();
            let batches: Vec<(u64, Result<BatchResult, _>)> = tasks
                .into_par_iter()
                .map(|(range, rows)| (range.end - range.start, compute(self, lanes, range, rows)))
                .collect();
            for (count, batch) in batches {
                let batch = batch.map_err(Error::from)?;
                (taken, of) = (taken + batch.steps, of + count);
                progress.done += count;
                progress.failed += batch.failures.len() as u64;
                let first = building.front_mut().expect("a task belongs to a block");
                first.tally.add(count, batch);
                first.tasks -= 1;
                if first.tasks == 0
                    && let Some(Building { block, rows, mut tally, .. }) = building.pop_front()
                {
                    self.measure(&rows, &mut tally);
                    if take(block, &rows, tally)? == Control::Stop {
                        return Ok(Control::Stop);
                    }
                    spare.push(rows);
                }
            }
            if watch(&progress) == Control::Stop {
                return Ok(Control::Stop);
            }
        }
    }

    pub(super) fn empty_tally(&self) -> Tally {
        Tally::new(self.simulation.groups.len(), self.measures().count())
    }

    /// Add the measures of a block's trajectories to its sums.
    pub(super) fn measure(&self, rows: &BlockRows, tally: &mut Tally) {
        let first = rows.len() - 2 * self.measures().count();
        for (k, measure) in self.measures().enumerate() {
            let rows = rows[first + 2 * k].chunks_exact(measure.applied.results().max(1));
            for row in rows.filter(|row| row.iter().all(|number| number.is_finite())) {
                tally.measures[k].push(row);
            }
        }
    }

    /// Kernels of lanes, compiled once; `None` if the ensemble allows none.
    fn lanes(&self) -> Option<&SweepLanes> {
        self.lanes.get_or_init(|| SweepLanes::new(self, crate::backend::lanes())).as_ref()
    }

    /// The blocks of the ensemble: what is computed and stored at a time.
    ///
    /// # Errors
    /// If the recorded quantities cannot be stored.
    pub fn blocks(&self) -> Result<Blocks, Error> {
        match &self.store {
            Some(store) => Ok(store.blocks().clone()),
            None => self.layout().blocks().map_err(Error::store),
        }
    }

    /// Numbers of the blocks that are done in the ensemble's folder, which is open.
    ///
    /// # Errors
    /// If the folder is not open or cannot be read.
    pub fn done_blocks(&self) -> Result<BTreeSet<u64>, Error> {
        self.opened()?.done().map_err(Error::store)
    }

    /// Compute some blocks into the ensemble's folder, which is [open](Sweep::open); those that are
    /// done are left out. This is the work of one process among several: nothing but the blocks is
    /// written. [`Sweep::finish`] ends an ensemble of which all blocks are done.
    ///
    /// # Errors
    /// If the folder is not open, there is no such block, a trajectory cannot start, or the disk
    /// does not accept the results.
    pub fn compute_blocks(
        &self,
        blocks: impl IntoIterator<Item = u64>,
        watch: &mut dyn FnMut(&SweepProgress) -> Control,
    ) -> Result<Control, Error> {
        let store = self.opened()?;
        let blocks: Vec<u64> = blocks.into_iter().collect();
        let count = store.blocks().count();
        if let Some(block) = blocks.iter().find(|block| **block >= count) {
            return Err(Error::option(format!(
                "there is no block {block} in {}, whose blocks are 0 to {}",
                store.path().display(),
                count.saturating_sub(1)
            )));
        }
        self.compute_stored(store, blocks, false, watch).map(|(control, _)| control)
    }

    /// Compute those of the blocks that are not done. Returns the sums over those computed.
    fn compute_stored(
        &self,
        store: &EnsembleStore,
        blocks: Vec<u64>,
        exclusive: bool,
        watch: &mut dyn FnMut(&SweepProgress) -> Control,
    ) -> Result<(Control, Tally), Error> {
        // Few blocks are looked for one by one: a list of all takes milliseconds where they are many.
        let done: BTreeSet<u64> = match blocks.len() {
            ..=FEW_BLOCKS => blocks.iter().copied().filter(|&block| store.is_done(block)).collect(),
            _ => store.done().map_err(Error::store)?,
        };
        let length = |block: &u64| {
            let range = store.blocks().range(*block);
            range.end - range.start
        };
        let before: u64 = blocks.iter().filter(|block| done.contains(block)).map(length).sum();
        let progress =
            SweepProgress { done: before, of: blocks.iter().map(length).sum(), failed: 0 };
        let mut left = blocks.into_iter().filter(|block| !done.contains(block));
        let (mut claimed, mut tally) = (BTreeSet::new(), self.empty_tally());
        let watch = std::cell::RefCell::new(watch);
        let claimed_blocks = std::cell::RefCell::new(&mut claimed);
        let (mut written, mut bytes) = (before, Vec::new());
        let outcome = self.compute_each(
            store.blocks(),
            progress,
            Steps {
                next: &mut || {
                    for block in left.by_ref() {
                        if store.claim(block, exclusive).map_err(Error::store)? == Taken::Own {
                            claimed_blocks.borrow_mut().insert(block);
                            return Ok(Some(block));
                        }
                    }
                    Ok(None)
                },
                take: &mut |block, rows, sums| {
                    store.write(block, rows, &sums, &mut bytes).map_err(Error::store)?;
                    store.release(block);
                    claimed_blocks.borrow_mut().remove(&block);
                    written += sums.done;
                    tally.join(sums);
                    hold::stored(written as usize, || Ok(()), || (watch.borrow_mut())(&progress))
                },
                watch: &mut |progress| (watch.borrow_mut())(progress),
            },
        );
        claimed.into_iter().for_each(|block| store.release(block));
        outcome.map(|control| (control, tally))
    }

    fn opened(&self) -> Result<&EnsembleStore, Error> {
        self.store.as_ref().ok_or_else(|| {
            Error::option("the ensemble has no folder yet: open it first".to_string())
        })
    }

    /// Compute a share of the ensemble into its folder, which is created unless it is there, and
    /// end the ensemble if all of its blocks are done then. With [`Share::Claimed`] this goes on
    /// until all are done, by whomever.
    ///
    /// # Errors
    /// As [`Sweep::run`]; if there is no such share.
    pub fn run_share(
        &mut self,
        share: &Share,
        watch: &mut dyn FnMut(&SweepProgress) -> Control,
    ) -> Result<SweepSummary, Error> {
        let started = Instant::now();
        self.open()?;
        let this = &*self;
        let store = this.opened()?;
        let blocks = chosen(share, store.blocks().count())?;
        if store.status().map_err(Error::store)?.0 != Status::Running {
            store.set_status(Status::Running, ()).map_err(Error::store)?;
            store.publish(Map::new(), &[]).map_err(Error::store)?;
        }
        let outcome = match share {
            Share::Claimed => this.compute_claimed(store, blocks, watch),
            _ => this.compute_stored(store, blocks, false, watch),
        };
        let seconds = |started: Instant| started.elapsed().as_secs_f64();
        match outcome {
            Ok((control, own)) => match this.ended(store, seconds(started))? {
                Some(summary) => Ok(summary),
                None => {
                    let stopped = control == Control::Stop;
                    let out = Some(store.path().to_path_buf());
                    let done = store.done().map_err(Error::store)?;
                    // A part that is stopped tells of all that there is; a share of its own.
                    let tally =
                        if stopped { this.joined(store, done.iter().copied())? } else { own };
                    let mut summary = this.summary(&tally, out, seconds(started), stopped);
                    let lengths = (0..store.blocks().count()).filter(|block| !done.contains(block));
                    let lengths = lengths.map(|block| {
                        let range = store.blocks().range(block);
                        range.end - range.start
                    });
                    summary.missing = lengths.sum();
                    if stopped {
                        store.set_status(Status::Interrupted, &summary).map_err(Error::store)?;
                        let (attributes, groups) = this.ending(&summary, Status::Interrupted);
                        store.publish(attributes, &groups).map_err(Error::store)?;
                        // Others may have completed and ended it in this moment.
                        if let Some(whole) = this.ended(store, seconds(started))? {
                            return Ok(whole);
                        }
                    }
                    Ok(summary)
                }
            },
            Err(error) => {
                // The status would not matter to the user more than the failure.
                let _ = store.set_status(Status::Failed, error.report());
                let _ = this.ended(store, seconds(started));
                Err(error)
            }
        }
    }

    /// Compute blocks that no other process has claimed, until all are done.
    fn compute_claimed(
        &self,
        store: &EnsembleStore,
        mut blocks: Vec<u64>,
        watch: &mut dyn FnMut(&SweepProgress) -> Control,
    ) -> Result<(Control, Tally), Error> {
        // Processes begin at different places, so that few meet at one block.
        let place = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let middle = (place % blocks.len().max(1) as u64) as usize;
        blocks.rotate_left(middle);
        let mut all = self.empty_tally();
        loop {
            let (control, tally) = self.compute_stored(store, blocks.clone(), true, watch)?;
            let idle = tally.done == 0;
            all.join(tally);
            let complete =
                store.done().map_err(Error::store)?.len() as u64 >= store.blocks().count();
            if control == Control::Stop || complete {
                return Ok((control, all));
            }
            if idle {
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Wait until all blocks of the ensemble are done, by whomever, and end it. `None` if `watch`
    /// stops that.
    ///
    /// # Errors
    /// If the folder is not open or cannot be read.
    pub fn wait(
        &self,
        watch: &mut dyn FnMut(&SweepProgress) -> Control,
    ) -> Result<Option<SweepSummary>, Error> {
        let (store, started) = (self.opened()?, Instant::now());
        loop {
            if let Some(summary) = self.ended(store, started.elapsed().as_secs_f64())? {
                return Ok(Some(summary));
            }
            if watch(&self.progress()?) == Control::Stop {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// End an ensemble of which all blocks are done: join their sums, and store the summary. `None`
    /// if blocks are missing.
    ///
    /// # Errors
    /// If the folder is not open, or a file in it is damaged.
    pub fn finish(&self) -> Result<Option<SweepSummary>, Error> {
        self.ended(self.opened()?, 0.0)
    }

    pub(super) fn ended(
        &self,
        store: &EnsembleStore,
        seconds: f64,
    ) -> Result<Option<SweepSummary>, Error> {
        let (count, done) = (store.blocks().count(), store.done().map_err(Error::store)?);
        if (done.len() as u64) < count {
            return Ok(None);
        }
        let tally = self.joined(store, 0..count)?;
        let out = Some(store.path().to_path_buf());
        let summary = self.summary(&tally, out, seconds, false);
        store.set_status(Status::Finished, &summary).map_err(Error::store)?;
        let (attributes, groups) = self.ending(&summary, Status::Finished);
        store.publish(attributes, &groups).map_err(Error::store)?;
        Ok(Some(summary))
    }

    /// Sums over blocks that are done.
    pub(super) fn joined(
        &self,
        store: &EnsembleStore,
        blocks: impl Iterator<Item = u64>,
    ) -> Result<Tally, Error> {
        let mut all = self.empty_tally();
        for block in blocks {
            all.join(store.sums(block).map_err(Error::store)?);
        }
        Ok(all)
    }

    /// Progress of the ensemble in its folder, as far as its blocks are done.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn progress(&self) -> Result<SweepProgress, Error> {
        let of = self.range.end - self.range.start;
        let Some(store) = &self.store else { return Ok(SweepProgress { done: 0, of, failed: 0 }) };
        let mut progress = SweepProgress { done: 0, of, failed: 0 };
        for block in store.done().map_err(Error::store)? {
            let range = store.blocks().range(block);
            progress.done += range.end - range.start;
        }
        Ok(progress)
    }
}

impl Building {
    /// Begin tasks, up to `most` with those of other blocks: trajectories with their parts of the rows,
    /// which have these `widths`.
    fn begin<'r>(
        &'r mut self,
        widths: &[usize],
        most: usize,
        tasks: &mut Vec<(Range<u64>, Vec<&'r mut [f64]>)>,
    ) {
        let rows = self.rows.iter_mut().zip(widths);
        let mut rest: Vec<&mut [f64]> =
            rows.map(|(rows, width)| &mut rows[self.begun * width..]).collect();
        while tasks.len() < most
            && let Some(range) = self.queue.pop_front()
        {
            let count = (range.end - range.start) as usize;
            self.begun += count;
            let own = rest.iter_mut().zip(widths).map(|(rest, width)| {
                let (own, behind) = std::mem::take(rest).split_at_mut(count * width);
                *rest = behind;
                own
            });
            tasks.push((range, own.collect()));
        }
    }
}

/// Numbers of the blocks of a share, of `count` in all.
fn chosen(share: &Share, count: u64) -> Result<Vec<u64>, Error> {
    match *share {
        Share::All | Share::Claimed => Ok((0..count).collect()),
        Share::Blocks(ref blocks) if blocks.start >= count.max(1) => Err(Error::option(format!(
            "{} begins with block {}, and the last one is {}",
            option("blocks"),
            blocks.start,
            count.saturating_sub(1)
        ))),
        Share::Blocks(ref blocks) => Ok((blocks.start..blocks.end.min(count)).collect()),
        Share::Worker { number, of } if !(1..=of).contains(&number) => Err(Error::option(format!(
            "{} {number}/{of}: write k/n with k from 1 to n, for example {}",
            option("worker"),
            option("worker").of("1/4")
        ))),
        Share::Worker { number, of } => {
            Ok((number - 1..count).step_by(usize::try_from(of).unwrap_or(usize::MAX)).collect())
        }
    }
}
