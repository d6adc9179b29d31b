//! Sums over trajectories: drifts, costs, failures, events, measures.

use super::batch::{BatchResult, EventCounts};
use holonome_integrate::averages::Moments;
use holonome_integrate::exact;
use holonome_integrate::state::Cost;
use serde::{Deserialize, Serialize};

/// Maximum number of failures reported; the others are counted, and marked in the store.
const SHOWN_FAILURES: usize = 5;

/// Sums over some trajectories. Those of the blocks of an ensemble, joined in the order of the
/// blocks, are the same numbers whoever computed them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub done: u64,
    /// Largest deviations of every group, at the end and at any time.
    #[serde(with = "exact::list")]
    pub last: Vec<f64>,
    #[serde(with = "exact::list")]
    pub max: Vec<f64>,
    /// Relative deviations: over the scales of the groups' terms.
    #[serde(default, with = "exact::list")]
    pub relative_last: Vec<f64>,
    #[serde(default, with = "exact::list")]
    pub relative_max: Vec<f64>,
    /// Losses of every group.
    #[serde(default, with = "exact::list")]
    pub loss_last: Vec<f64>,
    #[serde(default, with = "exact::list")]
    pub loss_max: Vec<f64>,
    pub steps: u64,
    pub cost: Cost,
    pub failed: u64,
    /// Number of trajectories whose start `--project-initial` moved far.
    #[serde(default)]
    pub far: u64,
    /// Events that trajectories met.
    #[serde(default)]
    pub met: EventCounts,
    /// The first failures, for the user.
    pub failures: Vec<(u64, String)>,
    /// Results of each measure, over the trajectories that have them.
    #[serde(default)]
    pub measures: Vec<Moments>,
}

impl Tally {
    pub fn new(groups: usize, measures: usize) -> Tally {
        let mut tally = Tally { last: vec![0.0; groups], ..Tally::default() };
        tally.measures = vec![Moments::default(); measures];
        tally.lists().into_iter().for_each(|list| list.resize(groups, 0.0));
        tally
    }

    fn lists(&mut self) -> [&mut Vec<f64>; 6] {
        let Tally { last, max, relative_last, relative_max, loss_last, loss_max, .. } = self;
        [last, max, relative_last, relative_max, loss_last, loss_max]
    }

    /// Add a batch of `count` trajectories, without its measures.
    pub fn add(&mut self, count: u64, batch: BatchResult) {
        let (last, max) = batch.drift.into_iter().unzip();
        let (relative_last, relative_max) = batch.relative.into_iter().unzip();
        let (loss_last, loss_max) = batch.losses.into_iter().unzip();
        let BatchResult { steps, cost, failures, met, far, .. } = batch;
        let (done, failed, far) = (count, failures.len() as u64, far.len() as u64);
        self.join(Tally {
            done,
            last,
            max,
            relative_last,
            relative_max,
            loss_last,
            loss_max,
            steps,
            cost,
            failed,
            far,
            met,
            failures,
            measures: Vec::new(),
        });
    }

    /// Add later trajectories of the same ensemble.
    pub fn join(&mut self, mut later: Tally) {
        // Numbers that an earlier version did not store are unknown, and shown as 0.
        for (list, later) in self.lists().into_iter().zip(later.lists()) {
            list.iter_mut().zip(later).for_each(|(most, later)| *most = most.max(*later));
        }
        self.done += later.done;
        self.steps += later.steps;
        self.cost.add(&later.cost);
        self.failed += later.failed;
        self.far += later.far;
        self.met.join(&later.met);
        let room = SHOWN_FAILURES.saturating_sub(self.failures.len());
        self.failures.extend(later.failures.into_iter().take(room));
        self.measures.iter_mut().zip(&later.measures).for_each(|(sum, later)| sum.join(later));
    }
}
