//! Analysis of a tape as the list of steps that code is emitted from: without steps that nothing
//! needs, with stores where they may happen, and with the next use of every value.
//!
//! Two lists come from one tape. *Run* stores an output as soon as it is known. *Iterate* is the
//! body of a loop in which output k becomes state k: some states are *carried* in registers from
//! one turn to the next; the others are stored once their old value has been read for the last
//! time.
//!
//! A repair is replaced by the value of its fast branch. The conjunction of the repairs' masks is a
//! value of its own ([`Steps::flags`]): it is true if none was needed.
//!
//! A list may be made for several vectors of lanes side by side: a step's operations wait for each
//! other, and another vector's fill the time. Item k of vector v of n then has the number n k + v.

use crate::schedule::{self, Task};
use holonome_model::graph::interpret::{Prologue, Refused};
use holonome_model::graph::primitive::{One, Three, Two};
use holonome_model::graph::tape::{Instruction, Tape};

/// Number of a value.
pub(crate) type Value = u32;

/// No value, or no later use.
pub(crate) const NEVER: u32 = u32::MAX;

/// Action of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Action {
    One(One),
    Two(Two),
    Three(Three),
    /// Copy the argument: the old value of a state that is about to be overwritten.
    Copy,
    /// Store the argument to output k.
    Store(u32),
}

/// Step of the code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub action: Action,
    pub arguments: [Value; 3],
    /// Number of arguments.
    pub count: u8,
    pub result: Value,
    /// Argument that is one lane of a value in memory, and that lane.
    pub lane: Option<(u8, u8)>,
    /// Next step that reads each argument; the number of steps if a use follows the last one,
    /// [`NEVER`] if none.
    pub next: [u32; 3],
    /// First step that reads the result, likewise.
    pub first: u32,
}

impl Step {
    fn new(action: Action, arguments: &[Value], result: Value) -> Step {
        let mut step = Step {
            action,
            arguments: [NEVER; 3],
            count: arguments.len() as u8,
            result,
            lane: None,
            next: [NEVER; 3],
            first: NEVER,
        };
        step.arguments[..arguments.len()].copy_from_slice(arguments);
        step
    }

    pub(crate) fn arguments(&self) -> &[Value] {
        &self.arguments[..self.count as usize]
    }
}

/// Place of a value when it is in no register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Nowhere,
    State(u32),
    Time(u32),
    Bound(u32),
    Output(u32),
    Spilled(u32),
}

/// Value carried from one turn of a loop to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    /// Value at the start of a turn.
    pub entry: Value,
    /// Value at the end of a turn.
    pub exit: Value,
    /// First step that reads `entry`.
    pub first: u32,
    /// The state it is outside the loop; `None` for the flag.
    pub state: Option<u32>,
}

/// Steps with all that code is emitted from.
pub(crate) struct Steps {
    pub list: Vec<Step>,
    /// Home of each value.
    pub homes: Vec<Home>,
    /// Values in registers from turn to turn.
    pub carried: Vec<Carried>,
    /// Masks that are true if every repair's mask was, one per vector.
    pub flags: Vec<Value>,
    /// Condition of going on, for all vectors together.
    pub goes_on: Option<Value>,
}

/// Analysis common to both lists.
pub(crate) struct Analysis<'a> {
    tape: &'a Tape,
    /// Value by register of the tape: the register itself, or for a repair the value of its fast
    /// branch.
    value: Vec<Value>,
    /// Instructions of the body that are needed and compute something, in the order of execution.
    order: Vec<u32>,
    homes: Vec<Home>,
    repairs: bool,
    /// Number of vectors computed side by side.
    vectors: u32,
    /// Lanes of each vector.
    width: u32,
}

impl<'a> Analysis<'a> {
    /// Analysis of a tape for a loop over rows.
    ///
    /// # Errors
    /// If the tape reads the time, or may have to be repeated by another program.
    ///
    /// # Panics
    /// See [`Analysis::new`].
    pub(crate) fn of_rows(
        tape: &'a Tape,
        prologue: &Prologue,
        together: (u32, u32),
    ) -> Result<Analysis<'a>, Refused> {
        let refused = |reason: &str| Err(Refused { reason: reason.to_string() });
        if tape.reads_time() {
            return refused("loops over rows are not told the time");
        }
        let analysis = Analysis::new(tape, prologue, together);
        if analysis.repairs() { refused("loops over rows repeat nothing") } else { Ok(analysis) }
    }

    /// # Panics
    /// If the tape is out of order: an instruction reads a later one or a state that does not
    /// exist, or numbers and parameters follow the prologue. What the emitted code reads depends on
    /// it.
    pub(crate) fn new(
        tape: &'a Tape,
        prologue: &Prologue,
        (vectors, width): (u32, u32),
    ) -> Analysis<'a> {
        let n = tape.instructions.len();
        let mut value: Vec<Value> = (0..n as Value).collect();
        let mut homes = vec![Home::Nowhere; n];
        for (i, &instruction) in tape.instructions.iter().enumerate() {
            assert!(
                instruction.arguments().all(|a| (a as usize) < i),
                "an instruction reads a later one"
            );
            match instruction {
                Instruction::State(k) => {
                    assert!((k as usize) < tape.states, "there is no state {k}");
                    homes[i] = Home::State(k);
                }
                Instruction::Time => homes[i] = Home::Time(0),
                Instruction::Constant(_) | Instruction::Parameter(_) => {
                    assert!(i < tape.prologue, "numbers and parameters are in the prologue");
                }
                Instruction::Repair(_, [_, _, fast, _]) if i >= tape.prologue => {
                    value[i] = value[fast as usize];
                }
                _ => {}
            }
        }
        for (k, &register) in prologue.bound().iter().enumerate() {
            homes[register as usize] = Home::Bound(k as u32);
        }
        assert!(tape.outputs.iter().all(|&o| (o as usize) < n), "an output is no instruction");
        let mut needed = vec![false; n];
        for &output in tape.outputs.iter().chain(&tape.goes_on) {
            needed[output as usize] = true;
        }
        let mut repairs = false;
        for (i, instruction) in tape.instructions.iter().enumerate().rev() {
            if needed[i] {
                match *instruction {
                    // Its other arguments are for programs that can branch.
                    Instruction::Repair(_, [_, _, fast, valid]) if i >= tape.prologue => {
                        needed[fast as usize] = true;
                        needed[valid as usize] = true;
                        repairs = true;
                    }
                    _ => instruction.arguments().for_each(|a| needed[a as usize] = true),
                }
            }
        }
        let order = ordered(tape, &value, &needed, (vectors, width));
        Analysis { tape, value, order, homes, repairs, vectors, width }
    }

    /// True if a call may have to be repeated by a program that can branch.
    pub(crate) fn repairs(&self) -> bool {
        self.repairs
    }

    fn output(&self, k: usize) -> Value {
        self.value[self.tape.outputs[k] as usize]
    }

    /// Computing steps, and the conjunction of the repairs' masks with `flag`.
    fn computing(
        &self,
        mut flag: Option<Value>,
        homes: &mut Vec<Home>,
    ) -> (Vec<Step>, Option<Value>) {
        let mut list = Vec::with_capacity(
            self.tape.instructions.len() - self.tape.prologue + self.tape.outputs.len(),
        );
        let at = |r: u32| self.value[r as usize];
        for &result in &self.order {
            match self.tape.instructions[result as usize] {
                Instruction::State(_)
                | Instruction::Time
                | Instruction::Constant(_)
                | Instruction::Parameter(_) => {}
                Instruction::One(op, a) => list.push(Step::new(Action::One(op), &[at(a)], result)),
                Instruction::Two(op, a, b) => {
                    list.push(Step::new(Action::Two(op), &[at(a), at(b)], result))
                }
                Instruction::Three(op, a, b, c) => {
                    list.push(Step::new(Action::Three(op), &[at(a), at(b), at(c)], result));
                }
                Instruction::Repair(_, [_, _, _, valid]) => {
                    flag = Some(match flag {
                        None => at(valid),
                        Some(before) => {
                            let result = fresh(homes);
                            list.push(Step::new(
                                Action::Two(Two::And),
                                &[before, at(valid)],
                                result,
                            ));
                            result
                        }
                    });
                }
            }
        }
        // If all lanes are one vector of the widest kind, arithmetic can broadcast a lane from
        // memory.
        if self.width == EIGHT && self.vectors == 1 {
            let kept =
                self.tape.outputs.iter().chain(&self.tape.goes_on).map(|&register| at(register));
            take_lanes(&mut list, &kept.chain(flag).collect::<Vec<Value>>());
        }
        (list, flag)
    }

    /// Steps of one evaluation.
    pub(crate) fn run(&self) -> Steps {
        let mut homes = self.homes.clone();
        let (computing, flag) = self.computing(None, &mut homes);
        let stores = (0..self.tape.outputs.len()).map(|k| (0, k as u32, self.output(k))).collect();
        let list = with_stores(computing, stores, homes.len());
        finish(side_by_side(
            Steps {
                list,
                homes,
                carried: Vec::new(),
                flags: flag.into_iter().collect(),
                goes_on: None,
            },
            self.vectors,
            self.width,
        ))
    }

    /// Steps of one turn of the loop; at most `registers` states are carried in registers.
    pub(crate) fn iterate(&self, registers: usize) -> Steps {
        let registers = registers / self.vectors as usize;
        let mut homes = self.homes.clone();
        let outputs = self.tape.outputs.len();
        assert!(outputs <= self.tape.states, "more outputs than states to put them into");
        let entry_flag = self.repairs.then(|| fresh(&mut homes));
        let (mut list, flag) = self.computing(entry_flag, &mut homes);

        // Several instructions of a handmade tape may read one state; the first stands for all.
        let mut state = vec![NEVER; self.tape.states];
        let mut same: Vec<Value> = (0..homes.len() as Value).collect();
        for value in 0..self.homes.len() {
            if let Home::State(k) = self.homes[value] {
                let first = &mut state[k as usize];
                if *first == NEVER {
                    *first = value as Value;
                }
                same[value] = *first;
            }
        }
        for argument in list.iter_mut().flat_map(|s| &mut s.arguments) {
            if let Some(&value) = same.get(*argument as usize) {
                *argument = value;
            }
        }
        let at = |v: Value| same[v as usize];

        // Steps during which a carried value would occupy a register while its state is not needed
        // or already known.
        let end = list.len() as u32;
        let (mut first_read, mut last_read) = (vec![end; homes.len()], vec![0; homes.len()]);
        let mut known = vec![0; homes.len()];
        for (p, step) in list.iter().enumerate() {
            for &a in step.arguments() {
                first_read[a as usize] = first_read[a as usize].min(p as u32);
                last_read[a as usize] = p as u32 + 1;
            }
            known[step.result as usize] = p as u32 + 1;
        }
        let mut in_memory: Vec<bool> =
            (0..outputs).map(|k| at(self.output(k)) != state[k]).collect();
        let mut moving: Vec<(u32, usize)> = (0..outputs)
            .filter(|&k| in_memory[k] && state[k] != NEVER)
            .map(|k| (first_read[state[k] as usize] + end - known[at(self.output(k)) as usize], k))
            .collect();
        moving.sort_unstable();
        let mut carried = Vec::new();
        if let (Some(entry), Some(exit)) = (entry_flag, flag) {
            carried.push(Carried { entry, exit: at(exit), first: NEVER, state: None });
        }
        for &(_, k) in moving.iter().take(registers.saturating_sub(carried.len())) {
            in_memory[k] = false;
            homes[state[k] as usize] = Home::Nowhere;
            let exit = at(self.output(k));
            carried.push(Carried { entry: state[k], exit, first: NEVER, state: Some(k as u32) });
        }

        // A value to be stored must not be a state that is itself overwritten in memory.
        let mut copies: Vec<Step> = Vec::new();
        let mut copy_of = vec![NEVER; outputs];
        let mut preserved = |value: Value, homes: &mut Vec<Home>| match homes[value as usize] {
            Home::State(j) if in_memory.get(j as usize) == Some(&true) => {
                let copy = &mut copy_of[j as usize];
                if *copy == NEVER {
                    *copy = fresh(homes);
                    copies.push(Step::new(Action::Copy, &[value], *copy));
                }
                *copy
            }
            _ => value,
        };
        for c in &mut carried {
            c.exit = preserved(c.exit, &mut homes);
        }
        let mut stores = Vec::new();
        for k in (0..outputs).filter(|&k| in_memory[k]) {
            let value = preserved(at(self.output(k)), &mut homes);
            let read = if state[k] == NEVER { 0 } else { last_read[state[k] as usize] };
            stores.push((read, k as u32, value));
        }
        // Copies come first and shift all other steps.
        if !copies.is_empty() {
            let shift = copies.len() as u32;
            stores.iter_mut().for_each(|(after, ..)| *after += shift);
            copies.append(&mut list);
            list = copies;
        }
        let list = with_stores(list, stores, homes.len());
        let goes_on = self.tape.goes_on.map(|mask| self.value[mask as usize]);
        let flags = flag.into_iter().collect();
        finish(side_by_side(
            Steps { list, homes, carried, flags, goes_on },
            self.vectors,
            self.width,
        ))
    }
}

/// Lanes of the widest vectors.
const EIGHT: u32 = 8;

/// Largest number of reads of a lane that are made from memory; otherwise it is loaded once.
const FEW_USES: usize = 2;

/// Let steps that can do so read one lane of a value instead of its spread; spreads that are `kept`
/// stay.
fn take_lanes(list: &mut Vec<Step>, kept: &[Value]) {
    let values = list.iter().map(|step| step.result as usize + 1).max().unwrap_or(0);
    let (mut spreads, mut uses) = (vec![None; values], vec![0; values]);
    for step in list.iter() {
        if let Action::One(One::Spread(lane)) = step.action {
            spreads[step.result as usize] = Some((step.arguments[0], lane));
        }
        for &a in step.arguments().iter().filter(|&&a| (a as usize) < values) {
            uses[a as usize] += 1;
        }
    }
    kept.iter().filter(|&&a| (a as usize) < values).for_each(|&a| uses[a as usize] = usize::MAX);
    for step in list.iter_mut() {
        let places: &[usize] = match step.action {
            Action::Three(Three::Fma | Three::Fms | Three::Fnma) => &[0, 1],
            Action::Two(Two::Add | Two::Mul) => &[1, 0],
            Action::Two(Two::Sub) => &[1],
            _ => continue,
        };
        let few = |&&j: &&usize| {
            let a = step.arguments[j];
            let alone = step.arguments().iter().filter(|&&other| other == a).count() == 1;
            alone
                && spreads.get(a as usize).is_some_and(Option::is_some)
                && uses[a as usize] <= FEW_USES
        };
        let Some(&j) = places.iter().find(few) else { continue };
        let spread = step.arguments[j] as usize;
        if let Some((value, lane)) = spreads[spread]
            && !step.arguments().contains(&value)
        {
            (step.arguments[j], step.lane) = (value, Some((j as u8, lane)));
            uses[spread] -= 1;
        }
    }
    list.retain(|step| {
        !matches!(step.action, Action::One(One::Spread(_))) || uses[step.result as usize] > 0
    });
}

/// Order of execution of the needed instructions of the body.
fn ordered(
    tape: &Tape,
    value: &[Value],
    needed: &[bool],
    (vectors, width): (u32, u32),
) -> Vec<u32> {
    let mut tasks = Vec::with_capacity(tape.instructions.len() - tape.prologue);
    for i in tape.prologue..tape.instructions.len() {
        let latency = match tape.instructions[i] {
            _ if !needed[i] => continue,
            Instruction::State(_)
            | Instruction::Time
            | Instruction::Constant(_)
            | Instruction::Parameter(_) => {
                continue;
            }
            Instruction::One(One::Sqrt, _) => 20,
            // Through memory, but for four lanes.
            Instruction::One(One::Spread(_), _) if width == EIGHT => 10,
            Instruction::One(One::Spread(_), _) => 3,
            Instruction::Three(Three::Shuffle, ..) => 3,
            Instruction::Two(Two::Div, ..) => 13,
            Instruction::Two(Two::Add | Two::Sub | Two::Mul, ..) => 4,
            Instruction::Three(Three::Fma | Three::Fms | Three::Fnma, ..) => 4,
            Instruction::Two(Two::Less | Two::LessEqual | Two::Equal, ..) => 4,
            Instruction::One(..)
            | Instruction::Two(..)
            | Instruction::Three(..)
            | Instruction::Repair(..) => 1,
        };
        let mut task = Task { result: i as u32, arguments: [0; 3], count: 0, latency };
        match tape.instructions[i] {
            Instruction::Repair(_, [.., valid]) => {
                task.arguments[0] = value[valid as usize];
                task.count = 1;
            }
            instruction => {
                for a in instruction.arguments() {
                    task.arguments[task.count as usize] = value[a as usize];
                    task.count += 1;
                }
            }
        }
        tasks.push(task);
    }
    let order = schedule::order(&tasks, tape.instructions.len(), vectors);
    order.into_iter().map(|task| tasks[task as usize].result).collect()
}

/// A new value that no instruction has.
fn fresh(homes: &mut Vec<Home>) -> Value {
    homes.push(Home::Nowhere);
    homes.len() as Value - 1
}

/// Insert stores (first step they may follow, output, value) after the steps that make them
/// possible.
fn with_stores(
    computing: Vec<Step>,
    mut stores: Vec<(u32, u32, Value)>,
    values: usize,
) -> Vec<Step> {
    let mut known = vec![0; values];
    for (p, step) in computing.iter().enumerate() {
        known[step.result as usize] = p as u32 + 1;
    }
    for (after, _, value) in &mut stores {
        *after = (*after).max(known[*value as usize]);
    }
    stores.sort_by_key(|&(after, ..)| after);
    let mut list = Vec::with_capacity(computing.len() + stores.len());
    let mut stores = stores.into_iter().peekable();
    for p in 0..=computing.len() {
        while let Some((_, k, value)) = stores.next_if(|&(after, ..)| after as usize <= p) {
            list.push(Step::new(Action::Store(k), &[value], NEVER));
        }
        list.extend(computing.get(p));
    }
    list
}

/// Repeat the steps for several vectors of `width` lanes, in turn.
fn side_by_side(steps: Steps, vectors: u32, width: u32) -> Steps {
    let mut list = Vec::with_capacity(steps.list.len() * vectors as usize);
    for step in &steps.list {
        for v in 0..vectors {
            let mut copy = *step;
            let mut from = v;
            if let Action::One(One::Spread(lane)) = &mut copy.action {
                let lane_in = (u32::from(*lane) / width, u32::from(*lane) % width);
                (from, *lane) = (lane_in.0, lane_in.1 as u8);
            }
            for argument in &mut copy.arguments[..step.count as usize] {
                *argument = *argument * vectors + from;
            }
            if let Action::Store(k) = &mut copy.action {
                *k = *k * vectors + v;
            }
            if copy.result != NEVER {
                copy.result = copy.result * vectors + v;
            }
            list.push(copy);
        }
    }
    let home = |home: Home, v: u32| match home {
        Home::Nowhere => Home::Nowhere,
        Home::State(k) => Home::State(k * vectors + v),
        Home::Time(k) => Home::Time(k * vectors + v),
        Home::Bound(k) => Home::Bound(k * vectors + v),
        Home::Output(k) => Home::Output(k * vectors + v),
        Home::Spilled(k) => Home::Spilled(k * vectors + v),
    };
    let carried = |c: &Carried, v: u32| Carried {
        entry: c.entry * vectors + v,
        exit: c.exit * vectors + v,
        first: c.first,
        state: c.state.map(|k| k * vectors + v),
    };
    let mut homes: Vec<Home> =
        steps.homes.iter().flat_map(|&h| (0..vectors).map(move |v| home(h, v))).collect();
    let goes_on = steps.goes_on.map(|mask| {
        (1..vectors).fold(mask * vectors, |all, v| {
            let both = fresh(&mut homes);
            list.push(Step::new(Action::Two(Two::And), &[all, mask * vectors + v], both));
            both
        })
    });
    Steps {
        list,
        homes,
        goes_on,
        carried: steps
            .carried
            .iter()
            .flat_map(|c| (0..vectors).map(move |v| carried(c, v)))
            .collect(),
        flags: steps
            .flags
            .iter()
            .flat_map(|&flag| (0..vectors).map(move |v| flag * vectors + v))
            .collect(),
    }
}

/// Fill in the next uses.
fn finish(mut steps: Steps) -> Steps {
    let end = steps.list.len() as u32;
    let mut upcoming = vec![NEVER; steps.homes.len()];
    for c in &steps.carried {
        upcoming[c.exit as usize] = end;
    }
    for &last in steps.flags.iter().chain(&steps.goes_on) {
        upcoming[last as usize] = end;
    }
    for (p, step) in steps.list.iter_mut().enumerate().rev() {
        if step.result != NEVER {
            step.first = upcoming[step.result as usize];
        }
        for j in 0..step.count as usize {
            step.next[j] = upcoming[step.arguments[j] as usize];
        }
        for j in 0..step.count as usize {
            upcoming[step.arguments[j] as usize] = p as u32;
        }
    }
    for c in &mut steps.carried {
        c.first = upcoming[c.entry as usize];
    }
    steps
}
