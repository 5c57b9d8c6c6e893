//! Does it matter that the processor lets a load overtake an earlier store?
//!
//! x86 keeps all orders of accesses but one: a plain store may become visible to others after a later plain load of other memory (Sewell,
//! Sarkar, Owens, Nardelli, Myreen: x86-TSO, CACM 2010). A program can tell only where it has a triangular race (Owens, ECOOP 2010): a
//! thread stores, then loads other memory with no fence or locked instruction between the two, and nothing orders that load with a store of
//! another thread. Memory that is loaded so is an object here, since its accesses are not ordered. Of a load and a store that nothing
//! orders both orders are explored, so it is enough to look for loads that come right after the store. Where there is none, what was
//! explored is all that there is on x86. The whole argument is in docs/TSO.md.

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::arena::Step;
use vsrun_model::drains::Drains;
use vsrun_model::memory::{ATOMIC, FENCED, LATE};
use vsrun_model::watch::Entry;
use vsrun_model::{dependent_after, imprint, Act, Kind, ObjId, Op, Tid};

use crate::trace::Trace;

/// So far apart two accesses are taken to be in no order.
const FAR: usize = 2000;
/// So many pairs are named of one execution.
const MOST: usize = 8;

/// A load of an object while a plain store of its thread to other memory may not be visible yet, and right after a store of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overtaking {
    /// What may be late: a use of memory whose `arg` is its site, or another operation.
    pub store: Op,
    /// What may come first.
    pub load: Op,
}

/// Those of an execution, each pair of instructions once, in the order of their loads.
pub fn loads_overtake(trace: &Trace) -> Vec<Overtaking> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    // In most executions there is nothing that could be late.
    if !trace.steps.iter().any(|step| stores(&step.act)) {
        return found;
    }
    let mut threads: BTreeMap<Tid, Buffer> = BTreeMap::new();
    for (at, step) in trace.steps.iter().enumerate() {
        let buffer = threads.entry(step.act.tid).or_default();
        let Some(store) = buffer.step(&step.act) else { continue };
        let pair = [store, step.act.op].map(|op| (op.kind, op.arg));
        if found.len() < MOST && !known.contains(&pair) && races(&trace.steps[..at], step) {
            known.insert(pair);
            found.push(Overtaking { store, load: step.act.op });
        }
    }
    found
}

/// It may leave a store that is not visible yet.
fn stores(act: &Act) -> bool {
    match act.op.kind {
        Kind::MEM_READ | Kind::MEM_WRITE | Kind::MEM_WAIT => act.op.kind == Kind::MEM_WRITE,
        _ => Drains::of(act) == Drains::Stores,
    }
}

/// What a thread has stored that may not be visible yet.
#[derive(Default)]
struct Buffer {
    stores: Vec<Op>,
    /// Locks that it has acquired once, by a locked instruction.
    acquired: BTreeSet<ObjId>,
}

impl Buffer {
    /// The thread makes `act`: the youngest store that a load of it may overtake, if it has one.
    fn step(&mut self, act: &Act) -> Option<Op> {
        match act.op.kind {
            Kind::MEM_READ | Kind::MEM_WRITE | Kind::MEM_WAIT => self.uses_memory(&act.op),
            _ => self.operates(act),
        }
    }

    fn uses_memory(&mut self, op: &Op) -> Option<Op> {
        if op.has(FENCED) {
            self.stores.clear();
        }
        match op.kind {
            _ if op.has(ATOMIC) && op.writes_memory() => self.stores.clear(),
            // Loads that overtake it were explored.
            Kind::MEM_WRITE if op.has(LATE) => {}
            Kind::MEM_WRITE => self.stores.push(*op),
            // What the thread itself has stored there it finds, or else that is visible, and all that it has stored before.
            _ => return self.stores.iter().rev().take_while(|store| !is_found(store, op)).next().copied(),
        }
        None
    }

    fn operates(&mut self, act: &Act) -> Option<Op> {
        let object = act.op.obj;
        match Drains::of(act) {
            Drains::First => self.stores.clear(),
            Drains::Looks => return self.stores.last().copied(),
            Drains::Stores => self.stores.push(act.op),
            Drains::Acquires => {
                self.acquired.insert(object);
                self.stores.clear();
            }
            Drains::Again => {
                self.acquired.remove(&object);
            }
            Drains::Releases if self.acquired.contains(&object) => self.stores.clear(),
            Drains::Releases | Drains::Nothing => {}
        }
        None
    }
}

/// The load waits for the store of its own thread, or finds it: some byte of it by one instruction, all bytes by a function, which may load each by itself.
fn is_found(store: &Op, load: &Op) -> bool {
    let [stored, loaded] = [store.bytes()[0], load.bytes()[0]];
    let by_function = load.arg as u32 & Entry::FUNCTION != 0;
    overlap(store, load) && (!by_function || loaded & !stored == 0)
}

/// Two operations of a thread use a byte of memory both.
fn overlap(a: &Op, b: &Op) -> bool {
    a.kind == Kind::MEM_WRITE && a.obj == b.obj && a.bytes()[0] & b.bytes()[0] != 0
}

/// The load comes right after a store of another thread: nothing that happens after that store happens before the load.
fn races(earlier: &[Step], load: &Step) -> bool {
    let mut seen: Vec<Tid> = vec![load.act.tid];
    for (at, store) in earlier.iter().enumerate().rev() {
        if earlier.len() - at > FAR {
            return true;
        }
        if !seen.contains(&store.act.tid) && meets(store, load) {
            seen.push(store.act.tid);
            if !is_ordered(&earlier[at..], load) {
                return true;
            }
        }
    }
    false
}

/// The first may write what the second one loads.
fn meets(store: &Step, load: &Step) -> bool {
    match load.act.op.kind {
        Kind::MEM_READ | Kind::MEM_WAIT => {
            let (a, b) = (&store.act.op, &load.act.op);
            a.writes_memory() && a.obj == b.obj && a.bytes()[0] & b.bytes()[0] != 0
        }
        _ => dependent_after(&store.act, store.did, &load.act, load.did, true),
    }
}

/// Whether the first of these steps happens before the last one by another step between them.
fn is_ordered(steps: &[Step], last: &Step) -> bool {
    let mut after: Vec<(&Step, u64)> = vec![(&steps[0], imprint(&steps[0].act, steps[0].did))];
    let follows = |after: &[(&Step, u64)], step: &Step| {
        let print = imprint(&step.act, step.did);
        after.iter().any(|(e, p)| {
            e.act.tid == step.act.tid || p & print != 0 && dependent_after(&e.act, e.did, &step.act, step.did, true)
        })
    };
    for step in &steps[1..] {
        if follows(&after, step) {
            after.push((step, imprint(&step.act, step.did)));
        }
    }
    follows(&after[1..], last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_may_load_what_its_thread_has_not_stored() {
        let op = |kind, bytes, site: u32| Op { mask: bytes, ..Op::on(kind, 7).arg(site.into()) };
        let store = op(Kind::MEM_WRITE, 0b10, 3);
        let finds = |bytes, site| is_found(&store, &op(Kind::MEM_READ, bytes, site));
        assert!(finds(0b10, 5) && finds(0b11, 5) && !finds(0b01, 5), "by an instruction");
        let function = Entry::FUNCTION | 5;
        assert!(finds(0b10, function) && !finds(0b11, function) && !finds(0b01, function));
    }
}
