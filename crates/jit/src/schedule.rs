//! Scheduling of the steps. A tape is in the order of depth-first search, one output after the
//! other, and a processor looks ahead only so far: a chain of waiting operations hides independent
//! ones from it. So the heads of long chains go first (list scheduling), within a window of the
//! tape's order that limits the number of live values. The window is wider where chains of
//! operations take longer than the operations do side by side: what spilled values cost is then
//! hidden in the waiting.

/// Operation to be scheduled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// Value of the operation, or one that nothing reads.
    pub result: u32,
    pub arguments: [u32; 3],
    /// Number of arguments.
    pub count: u8,
    /// Cycles until the result can be used.
    pub latency: u8,
}

impl Task {
    fn arguments(&self) -> &[u32] {
        &self.arguments[..self.count as usize]
    }
}

/// Distance by which an operation may be moved forward, in operations of all vectors.
const WINDOW: usize = 16;
/// This distance where operations wait for each other. Steps of the pendulum and of Kepler's
/// problem by gauss16, dop853 and taylor then take 5 to 18 % less time; less beyond 200.
const WAITING_WINDOW: usize = 128;
/// Part of the time of all operations side by side from which on the longest chain counts as
/// waiting. The chain takes 0.7 to 4 of that time in steps of small models, and less than 0.5 in
/// those of six planets, which become slower in a wide window.
const WAITING: f64 = 0.5;
/// Operations that can start in one cycle.
const ISSUED: u32 = 2;
/// Time that is not known yet.
const UNKNOWN: u32 = u32::MAX;

/// Operation that may be next.
#[derive(Clone, Copy)]
struct Candidate {
    task: u32,
    /// Time at which its arguments can be used.
    ready: u32,
    /// While that is [`UNKNOWN`], an argument that is not scheduled yet.
    waits_for: u32,
    /// Cycles from its start to the end of the chains that begin with it.
    height: u32,
}

impl Candidate {
    /// Find the time at which its arguments can be used.
    fn look(&mut self, arguments: &[u32], ready: &[u32]) {
        self.ready = 0;
        for &argument in arguments {
            self.ready = self.ready.max(ready[argument as usize]);
            if self.ready == UNKNOWN {
                self.waits_for = argument;
                return;
            }
        }
    }
}

/// Order in which to carry out `tasks`, each for this many vectors. In `tasks` every argument
/// precedes what reads it; there are `values` values.
pub(crate) fn order(tasks: &[Task], values: usize, vectors: u32) -> Vec<u32> {
    let mut height = vec![0u32; values];
    for task in tasks.iter().rev() {
        let own = height[task.result as usize].saturating_add(task.latency as u32);
        for &a in task.arguments() {
            height[a as usize] = height[a as usize].max(own);
        }
    }
    let longest = tasks
        .iter()
        .map(|task| height[task.result as usize] + task.latency as u32)
        .max()
        .unwrap_or(0);
    let side_by_side = tasks.len() as f64 * f64::from(vectors) / f64::from(ISSUED);
    let waits = f64::from(longest) > WAITING * side_by_side;
    let reach = if waits { WAITING_WINDOW } else { WINDOW } / vectors as usize;
    // Times at which values can be used: inputs at once.
    let mut ready = vec![0u32; values];
    for task in tasks {
        ready[task.result as usize] = UNKNOWN;
    }
    let mut order = Vec::with_capacity(tasks.len());
    let mut window: Vec<Candidate> = Vec::with_capacity(reach);
    let (mut entering, mut now, mut started) = (0, 0, 0);
    while order.len() < tasks.len() {
        while window.len() < reach && entering < tasks.len() {
            let task = &tasks[entering];
            let height = height[task.result as usize] + task.latency as u32;
            let mut candidate =
                Candidate { task: entering as u32, ready: UNKNOWN, waits_for: 0, height };
            candidate.look(task.arguments(), &ready);
            window.push(candidate);
            entering += 1;
        }
        let (mut best, mut soonest) = (None, UNKNOWN);
        for (place, candidate) in window.iter_mut().enumerate() {
            if candidate.ready == UNKNOWN && ready[candidate.waits_for as usize] != UNKNOWN {
                candidate.look(tasks[candidate.task as usize].arguments(), &ready);
            }
            if candidate.ready <= now {
                if best.is_none_or(|(height, _)| candidate.height > height) {
                    best = Some((candidate.height, place));
                }
            } else {
                soonest = soonest.min(candidate.ready);
            }
        }
        let Some((_, place)) = best else {
            // All arguments of the first of the window are scheduled, so this time is known.
            (now, started) = (soonest, 0);
            continue;
        };
        // Not by exchange with the last: the window stays in the tape's order, which decides
        // between equals.
        let task = window.remove(place).task;
        let Task { result, latency, .. } = tasks[task as usize];
        ready[result as usize] = now + latency as u32;
        order.push(task);
        started += 1;
        if started == ISSUED {
            (now, started) = (now + 1, 0);
        }
    }
    order
}
