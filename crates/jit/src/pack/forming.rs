//! Packs are formed from the results of a tape back to its inputs.
//!
//! An operation is ready once all that read it are in packs. Operations that are ready do not wait
//! for each other, so that any of them may form a pack. Those that a pack wants side by side, as
//! the arguments of its lanes, do so as soon as all of them are ready, and so do those of one class.
//! Where this cannot go on, the last operation of the tape that is ready forms a pack with those of
//! its side that are ready too.

use super::body::{Arguments, Body, read};
use super::{LANES, Lanes, NONE, Packs, some};
use holonome_model::graph::primitive::{Three, Two};
use holonome_model::graph::tape::{Instruction, Register};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Operations that are wanted side by side.
struct Wanted {
    lanes: Lanes,
    /// True if a pack wants them; or they are the summands of one sum, whose place does not matter.
    by_pack: bool,
}

/// Operations of one class.
#[derive(Default)]
struct Class {
    members: Vec<Register>,
    /// Numbers of members that are not ready, and that are not in packs.
    waiting: u32,
    left: u32,
}

/// What is wanted side by side with an operation that is ready.
struct Side {
    /// The most of which all are ready, or none.
    all: Lanes,
    /// The most of others that are ready, or none.
    ready: Lanes,
    /// True if some are not ready.
    waits: bool,
}

/// Packs in the making.
pub(super) struct Forming<'a> {
    body: &'a Body<'a>,
    arguments: Vec<Arguments>,
    /// Number of operations that read a register, and that are not in packs.
    readers: Vec<u32>,
    unpacked_readers: Vec<u32>,
    is_packed: Vec<bool>,
    /// True for the members of the group that is filled into packs.
    is_member: Vec<bool>,
    /// Operations that are ready, the last first, and those of them that have to be looked at.
    ready: BinaryHeap<Register>,
    changed: Vec<Register>,
    classes: Vec<Class>,
    /// Operations that are or were ready, by their shape.
    of_shape: FxHashMap<u64, Vec<Register>>,
    wanted: Vec<Wanted>,
    /// Numbers of what is wanted of each register.
    wanted_of: Vec<Vec<u32>>,
    /// True if the operation is part of a sum whose summands are found.
    is_within: Vec<bool>,
    packs: Vec<Lanes>,
}

impl<'a> Forming<'a> {
    /// Packs of a body, with these results side by side.
    pub(super) fn packs(body: &'a Body<'a>, results: &[Lanes]) -> Packs<'a> {
        let n = body.tape.instructions.len();
        let mut readers = vec![0; n];
        let mut classes: Vec<Class> = Vec::new();
        for &i in &body.operations {
            read(&body.arguments[i as usize]).for_each(|a| readers[a] += 1);
            let class = body.classes[i as usize] as usize;
            classes.resize_with(classes.len().max(class + 1), Class::default);
            classes[class].members.push(i);
        }
        for class in &mut classes {
            (class.waiting, class.left) = (class.members.len() as u32, class.members.len() as u32);
        }
        let mut forming = Forming {
            body,
            arguments: body.arguments.clone(),
            unpacked_readers: readers.clone(),
            readers,
            is_packed: vec![false; n],
            is_member: vec![false; n],
            ready: BinaryHeap::new(),
            changed: Vec::new(),
            classes,
            of_shape: FxHashMap::default(),
            wanted: Vec::new(),
            wanted_of: vec![Vec::new(); n],
            is_within: vec![false; n],
            packs: Vec::new(),
        };
        results.iter().for_each(|&lanes| forming.want(lanes, true));
        for &i in &body.operations {
            if forming.readers[i as usize] == 0 {
                forming.arrive(i);
            }
        }
        while let Some(group) = forming.next() {
            forming.form(&group);
        }
        Packs::new(body, forming.arguments, forming.packs)
    }

    /// Note what is wanted side by side, one pack for each shape of operation.
    fn want(&mut self, lanes: Lanes, by_pack: bool) {
        let free = lanes.map(|r| match r {
            NONE => NONE,
            r if !self.body.is_operation(r) || self.is_packed[r as usize] => NONE,
            r => r,
        });
        let mut rest = free;
        while let Some(first) = rest.iter().copied().find(|&r| r != NONE) {
            let mut own = [NONE; LANES];
            for lane in 0..LANES {
                let r = rest[lane];
                if r != NONE && self.body.is_same(first, r) {
                    if !own.contains(&r) {
                        own[lane] = r;
                    }
                    rest[lane] = NONE;
                }
            }
            let number = self.wanted.len() as u32;
            self.wanted.push(Wanted { lanes: own, by_pack });
            some(&own).for_each(|(_, r)| self.wanted_of[r as usize].push(number));
        }
    }

    /// An operation is ready.
    fn arrive(&mut self, r: Register) {
        self.ready.push(r);
        self.changed.push(r);
        self.of_shape.entry(self.body.shapes[r as usize]).or_default().push(r);
        self.classes[self.body.classes[r as usize] as usize].waiting -= 1;
    }

    fn is_ready(&self, r: Register) -> bool {
        self.unpacked_readers[r as usize] == 0
    }

    /// The next operations that form packs, all of them ready; `None` at the end.
    fn next(&mut self) -> Option<Vec<Register>> {
        while let Some(r) = self.changed.pop() {
            if !self.is_packed[r as usize]
                && let Some(group) = self.group(r, false)
            {
                return Some(group);
            }
        }
        while let Some(r) = self.ready.pop() {
            if !self.is_packed[r as usize] {
                return self.group(r, true);
            }
        }
        None
    }

    /// Operations that form packs together with one that is ready. If they may be `incomplete`,
    /// there are some.
    fn group(&mut self, r: Register, incomplete: bool) -> Option<Vec<Register>> {
        let number = self.body.classes[r as usize];
        let Side { all, ready, waits } = self.beside(r);
        let class = &self.classes[number as usize];
        let of_class = |(_, r): (usize, u32)| self.body.classes[r as usize] == number;
        let is_whole = count(&all) == class.left as usize || !some(&all).all(of_class);
        if count(&all) == LANES || count(&all) > 1 && is_whole {
            return Some(members(&all));
        }
        let ready_of_class = || {
            let members = class.members.iter().copied();
            members.filter(|&r| self.is_left(r) && self.is_ready(r)).collect::<Vec<Register>>()
        };
        // Others of the class may be in the pack, too.
        if class.waiting == 0 && !(waits && count(&all) == 0) {
            return Some(ready_of_class());
        }
        if !incomplete {
            return None;
        }
        let mut group = match [all, ready].into_iter().find(|lanes| count(lanes) > 1) {
            Some(lanes) => members(&lanes),
            None => ready_of_class(),
        };
        // What is of its shape joins those that are wanted together.
        let shape = self.body.shapes[r as usize];
        let mut of_shape = self.of_shape.remove(&shape).unwrap_or_default();
        of_shape.retain(|&other| !self.is_packed[other as usize]);
        for &other in &of_shape {
            if group.len() >= LANES {
                break;
            }
            let Side { all, waits, .. } = self.beside(other);
            let joining = match count(&all) {
                0 if waits => continue,
                0 => vec![other],
                _ => members(&all),
            };
            // Numbers of shapes are hashes, which two operations may share.
            let is_new = |&other: &Register| !group.contains(&other) && self.body.is_same(r, other);
            let is_new = joining.iter().all(is_new);
            let wanted = group.len().max(joining.len()) > 1;
            if is_new && wanted && group.len() + joining.len() <= LANES {
                group.extend(joining);
            }
        }
        self.of_shape.insert(shape, of_shape);
        Some(group)
    }

    /// What is wanted side by side with an operation, by packs if there is such.
    fn beside(&self, r: Register) -> Side {
        let mut side = Side { all: [NONE; LANES], ready: [NONE; LANES], waits: false };
        for by_pack in [true, false] {
            for &wanted in &self.wanted_of[r as usize] {
                let Wanted { lanes, by_pack: own } = &self.wanted[wanted as usize];
                let left = lanes.map(|r| if self.is_left(r) { r } else { NONE });
                let ready = left.map(|r| if r != NONE && self.is_ready(r) { r } else { NONE });
                if *own != by_pack || count(&left) < 2 {
                    continue;
                }
                if ready != left {
                    side.waits = true;
                    if count(&ready) > count(&side.ready) {
                        side.ready = ready;
                    }
                } else if count(&left) > count(&side.all) {
                    side.all = left;
                }
            }
            if count(&side.all) > 0 || side.waits {
                break;
            }
        }
        side
    }

    fn is_left(&self, r: Register) -> bool {
        r != NONE && !self.is_packed[r as usize]
    }

    /// Form packs of operations that are ready.
    fn form(&mut self, members: &[Register]) {
        let (&first, others) = members.split_first().expect("a pack has members");
        others.iter().for_each(|&r| self.turn(first, r));
        let from = self.packs.len();
        if others.is_empty() {
            self.packs.push([first; LANES]);
        } else {
            self.fill(members);
        }
        for &r in members {
            self.is_packed[r as usize] = true;
            self.classes[self.body.classes[r as usize] as usize].left -= 1;
        }
        for &r in members {
            // What is wanted together with it has become less.
            for &wanted in &self.wanted_of[r as usize] {
                for (_, other) in some(&self.wanted[wanted as usize].lanes) {
                    if !self.is_packed[other as usize] && self.unpacked_readers[other as usize] == 0
                    {
                        self.changed.push(other);
                    }
                }
            }
        }
        for pack in from..self.packs.len() {
            let lanes = self.packs[pack];
            for j in 0..4 {
                let of = |r: Register| if r == NONE { NONE } else { self.arguments[r as usize][j] };
                let arguments = lanes.map(of);
                if !others.is_empty() {
                    self.want(arguments, true);
                }
            }
        }
        if others.is_empty() {
            self.want_summands(first);
        }
        for &r in members {
            let arguments = self.arguments[r as usize];
            for a in read(&arguments) {
                self.unpacked_readers[a] -= 1;
                if self.unpacked_readers[a] == 0 && self.body.is_operation(a as Register) {
                    self.arrive(a as Register);
                }
            }
        }
    }

    /// Put the arguments of an operation that may be exchanged into the order of those of another.
    fn turn(&mut self, first: Register, other: Register) {
        if !self.body.exchanges(other) {
            return;
        }
        let alike = |a: Register, b: Register| {
            let body = self.body;
            match body.is_operation(a) && body.is_operation(b) {
                _ if a == b => 3,
                true if body.shapes[a as usize] == body.shapes[b as usize] => 2,
                true => u32::from(body.is_same(a, b)),
                false => u32::from(!body.is_operation(a) && !body.is_operation(b)),
            }
        };
        let [a, b, ..] = self.arguments[first as usize];
        let [c, d, ..] = self.arguments[other as usize];
        if alike(a, d) + alike(b, c) > alike(a, c) + alike(b, d) {
            self.arguments[other as usize].swap(0, 1);
        }
    }

    /// Want the summands of a sum that is computed by itself side by side.
    fn want_summands(&mut self, sum: Register) {
        if self.is_within[sum as usize] {
            return;
        }
        let code = &self.body.tape.instructions;
        let mut rest = vec![sum];
        let mut found: FxHashMap<u64, Vec<Register>> = FxHashMap::default();
        let mut put = |r: Register| {
            if self.body.is_operation(r) {
                found.entry(self.body.shapes[r as usize]).or_default().push(r);
            }
        };
        while let Some(at) = rest.pop() {
            let arguments = self.arguments[at as usize];
            let summands: &[usize] = match code[at as usize] {
                Instruction::Two(Two::Add | Two::Sub, ..) => &[0, 1],
                Instruction::Three(Three::Fma | Three::Fms | Three::Fnma, ..) => {
                    [arguments[0], arguments[1]].into_iter().for_each(&mut put);
                    &[2]
                }
                _ => continue,
            };
            for &j in summands {
                let summand = arguments[j];
                // Sums of products within a sum are summands themselves.
                let is_part = match code[summand as usize] {
                    Instruction::Two(Two::Add | Two::Sub, ..) => true,
                    Instruction::Three(Three::Fma | Three::Fms | Three::Fnma, ..) => {
                        matches!(code[at as usize], Instruction::Three(..))
                    }
                    _ => false,
                };
                let is_operation = self.body.is_operation(summand);
                if is_part && is_operation && self.readers[summand as usize] == 1 {
                    self.is_within[summand as usize] = true;
                    rest.push(summand);
                } else {
                    put(summand);
                }
            }
        }
        let mut found: Vec<Vec<Register>> = found.into_values().collect();
        found.sort_unstable();
        for mut alike in found {
            alike.sort_unstable();
            alike.dedup();
            let size = if alike.len().is_multiple_of(3) { 3 } else { LANES };
            for part in alike.chunks(size).filter(|part| part.len() > 1) {
                let mut lanes = [NONE; LANES];
                lanes[..part.len()].copy_from_slice(part);
                self.want(lanes, false);
            }
        }
    }

    /// Fill packs with members of a group, in the lanes that are wanted.
    fn fill(&mut self, members: &[Register]) {
        let mut numbers: Vec<u32> =
            members.iter().flat_map(|&r| self.wanted_of[r as usize].iter().copied()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        members.iter().for_each(|&r| self.is_member[r as usize] = true);
        let within = |r: Register| if r != NONE && self.is_member[r as usize] { r } else { NONE };
        let of_number = |number: u32| self.wanted[number as usize].lanes.map(within);
        let mut wanted: Vec<Lanes> = numbers.into_iter().map(of_number).collect();
        members.iter().for_each(|&r| self.is_member[r as usize] = false);
        // Where almost all of a pack is wanted, it is formed like that.
        wanted.sort_by_key(|lanes| Reverse(count(lanes)));
        let enough = members.len().min(LANES);
        let enough = if members.len() > LANES { enough - 1 } else { enough };
        for lanes in &wanted {
            if count(lanes) >= enough && some(lanes).all(|(_, r)| !self.is_packed[r as usize]) {
                some(lanes).for_each(|(_, r)| self.is_packed[r as usize] = true);
                self.packs.push(*lanes);
            }
        }
        // The others where they are wanted first, as far as there is room.
        let order = wanted.iter().flat_map(some).chain(members.iter().map(|&r| (0, r)));
        let mut open: Vec<Lanes> = Vec::new();
        for (lane, register) in order {
            if std::mem::replace(&mut self.is_packed[register as usize], true) {
                continue;
            }
            if open.last().is_none_or(|pack| !pack.contains(&NONE)) {
                open.push([NONE; LANES]);
            }
            let pack = open.last_mut().expect("one is open");
            let mut free = (lane..LANES).chain(0..lane).filter(|&lane| pack[lane] == NONE);
            let free = free.next().expect("it has room");
            pack[free] = register;
        }
        self.packs.extend(open);
    }
}

/// Number of registers in lanes.
fn count(lanes: &Lanes) -> usize {
    some(lanes).count()
}

fn members(lanes: &Lanes) -> Vec<Register> {
    some(lanes).map(|(_, r)| r).collect()
}
