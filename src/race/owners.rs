//! Exclusive access predicates: does every thread use memory only while it alone may?
//!
//! Stoller and Cohen, Optimistic Synchronization-Based State-Space Reduction (2006), Sections 1 and 2: for each protected variable and each
//! thread there is a predicate that holds in states from which the thread can use the variable, and those of two threads exclude each other.
//! Here a program states where its predicates change ([`Claim`]), byte by byte:
//! * a thread owns memory, and no other one does;
//! * it gives that up: nobody may use the memory until somebody owns it;
//! * it hands it over, to a thread, or to whoever uses or owns it next.
//!
//! Memory that nobody has claimed yet is free for all; who gives up or hands over what nobody has claimed has owned it until then. Memory that
//! is allocated anew is such memory.
//!
//! A thread may get a predicate only behind visible operations: the paper's invisible actions must not receive anything from other threads
//! (Section 4, hypotheses (16) and (17)). A claim is no place to switch, so that is checked: it has to come behind all that others have done
//! to the memory or said of it, in the order of happens-before that the search keeps ([`Order`]). Otherwise two threads which own and give up
//! in one transition each would never be seen to do so at once. With that, a violation which some execution has, with switches anywhere, shows in
//! a trace of the reduced search: take the first pair of events of different threads on the same bytes that nothing orders. Up to there the
//! execution is one of the reduced system, neither thread has made a further operation since its event, so in the trace that is explored
//! nothing orders the two either; and where all such events are ordered, who owns what at each is the same in all equivalent executions.

use std::collections::BTreeMap;

use vsrun_model::Tid;

use super::access::{Access, Claim, Note};
use super::conflict::{of_pending, Conflict, Flaw};
use super::copies;
use super::order::Order;
use super::words::Touch;
use crate::trace::Trace;

/// Who may use bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holder {
    /// Nothing has been said.
    Anyone,
    /// That thread.
    Thread(Tid),
    /// Whoever comes next.
    Next,
    /// No thread.
    Nobody,
}

/// Bytes of which all is the same.
#[derive(Clone)]
struct Region {
    end: u64,
    holder: Holder,
    /// What has made it so, as an index of [`Owners::events`]; nothing where anyone may use it.
    since: Option<u32>,
    /// The last event of each thread.
    last: Vec<u32>,
    /// It has been reported.
    told: bool,
}

impl Region {
    fn until(end: u64) -> Region {
        Region { end, holder: Holder::Anyone, since: None, last: Vec::new(), told: false }
    }
}

/// The machine, as far as an execution has come.
struct Owners<'a> {
    order: Order<'a>,
    /// Uses and claims.
    events: Vec<Touch>,
    /// All memory that is claimed in the course of the execution, by space and address; they do not overlap.
    regions: BTreeMap<(u32, u64), Region>,
    found: Vec<Conflict>,
}

/// Uses of memory, and claims to it, against what the program says of who may use it, in the order in which they come about: of each piece of
/// memory the first. The first of the two is what the second one violates: a claim, or what nothing orders before it. Nothing is done where no
/// claim is made.
pub fn trespasses<N>(trace: &Trace, notes: N) -> Vec<Conflict>
where
    N: IntoIterator<Item = Note, IntoIter: Clone>,
{
    let notes = notes.into_iter();
    let regions = claimed(notes.clone());
    if regions.is_empty() {
        return Vec::new();
    }
    let mut copied = copies::read(notes.clone());
    let mut owners = Owners { order: Order::new(trace), events: Vec::new(), regions, found: Vec::new() };
    for note in notes {
        match note {
            Note::Begins { thread, creator, process, parent } => {
                // A fork reads what its child is to read.
                let segment = owners.order.segment(creator);
                for access in copied.remove(&process).into_iter().flatten() {
                    owners.event((creator, segment), Access { space: parent, ..access }, None);
                }
                owners.order.begins(thread, creator, process, parent);
            }
            Note::Step { index } => owners.step(trace, index),
            Note::Ends { thread } => owners.order.ends(thread),
            Note::Anew { space, address, size, .. } => {
                for at in owners.within(space, address, address.saturating_add(size)) {
                    owners.regions.entry(at).and_modify(|region| *region = Region::until(region.end));
                }
            }
            Note::Touches { thread, access } => {
                let segment = owners.order.segment(thread);
                owners.event((thread, segment), access, None);
            }
            Note::Runs { thread, access, times, stride } => {
                let segment = owners.order.segment(thread);
                access.run(times, stride).for_each(|access| owners.event((thread, segment), access, None));
            }
            Note::Claims { thread, space, address, size, claim, at } => {
                let access = Access { space, address, size, write: true, locked: false, site: claim.site(at) };
                let segment = owners.order.segment(thread);
                owners.event((thread, segment), access, Some(claim));
            }
        }
    }
    owners.found
}

/// What of memory is claimed at some time.
fn claimed(notes: impl Iterator<Item = Note>) -> BTreeMap<(u32, u64), Region> {
    let mut ranges: Vec<(u32, u64, u64)> = notes
        .filter_map(|note| match note {
            Note::Claims { space, address, size, .. } => Some((space, address, address.saturating_add(size))),
            _ => None,
        })
        .collect();
    ranges.sort_unstable();
    let mut all: BTreeMap<(u32, u64), Region> = BTreeMap::new();
    for (space, start, end) in ranges {
        match all.range_mut((space, 0)..=(space, start)).next_back() {
            Some((_, known)) if known.end >= start => known.end = known.end.max(end),
            _ => {
                all.insert((space, start), Region::until(end));
            }
        }
    }
    all
}

impl Owners<'_> {
    fn step(&mut self, trace: &Trace, index: u32) {
        let Some(step) = trace.steps.get(index as usize) else { return };
        // A use that is an operation is ordered as that is: with the code before it.
        let (act, segment) = (&step.act, self.order.segment(step.act.tid));
        self.order.step(index as usize);
        for second in [false, true] {
            if let Some(touch) = of_pending(act, index + 1, Some(index), trace, second) {
                self.event((act.tid, segment), touch.access, None);
            }
        }
    }

    /// The regions that lie between `start` and `end`, cut there.
    fn within(&mut self, space: u32, start: u64, end: u64) -> Vec<(u32, u64)> {
        for at in [start, end] {
            let Some((_, around)) = self.regions.range_mut((space, 0)..(space, at)).next_back() else { continue };
            if around.end > at {
                let rest = around.clone();
                around.end = at;
                self.regions.insert((space, at), rest);
            }
        }
        self.regions.range((space, start)..(space, end.max(start))).map(|(&at, _)| at).collect()
    }

    /// `thread` uses memory in that segment of its code, or claims it.
    fn event(&mut self, (thread, segment): (Tid, u32), access: Access, claim: Option<Claim>) {
        // A free is no use, and a lock in memory that somebody owns may be for others to tell him by.
        if access.frees() || access.is_of_object() {
            return;
        }
        let regions = self.within(access.space, access.address, access.address.saturating_add(access.size));
        if regions.is_empty() {
            return;
        }
        let number = self.events.len() as u32;
        let (step, made) = (self.order.last_step(thread), self.order.steps_made());
        self.events.push(Touch { thread, step, access, made, segment, number });
        let mut against = None;
        for at in regions {
            let Some(mut region) = self.regions.remove(&at) else { continue };
            if let Some(other) = self.violated(&region, number, claim).filter(|_| !region.told) {
                region.told = true;
                against.get_or_insert(other);
            }
            if let Some(holder) = holder_after(region.holder, thread, claim) {
                (region.holder, region.since) = (holder, Some(number));
            }
            region.last.retain(|&n| self.events[n as usize].thread != thread);
            region.last.push(number);
            self.regions.insert(at, region);
        }
        if let Some(other) = against {
            let both = [self.events[other as usize], self.events[number as usize]];
            self.found.push(Conflict::new(Flaw::Trespass, both[0], both[1]));
        }
    }

    /// What the event `number` comes against, if it may not be.
    fn violated(&self, region: &Region, number: u32, claim: Option<Claim>) -> Option<u32> {
        let event = &self.events[number as usize];
        let late = |&n: &u32| {
            let other = &self.events[n as usize];
            !self.order.is_before(other.thread, other.segment, event.thread)
        };
        let may = match (region.holder, claim) {
            (Holder::Thread(owner), _) => owner == event.thread,
            (Holder::Nobody, claim) => claim == Some(Claim::Owns),
            (Holder::Anyone | Holder::Next, _) => true,
        };
        let since = region.since.filter(|n| !may || late(n));
        // A claim that is new comes behind all that others have done.
        since.or_else(|| region.last.iter().copied().find(|n| claim.is_some() && late(n)))
    }
}

/// Who may use memory after `thread` has used or claimed it; `None`: that changes nothing.
fn holder_after(before: Holder, thread: Tid, claim: Option<Claim>) -> Option<Holder> {
    match claim {
        Some(Claim::Owns) => Some(Holder::Thread(thread)),
        Some(Claim::Disowns) => Some(Holder::Nobody),
        Some(Claim::HandsOver(Some(to))) => Some(Holder::Thread(to)),
        Some(Claim::HandsOver(None)) => Some(Holder::Next),
        None if before == Holder::Next => Some(Holder::Thread(thread)),
        None => None,
    }
}

#[cfg(test)]
#[path = "owners_tests.rs"]
mod tests;
