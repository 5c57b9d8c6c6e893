//! Does it matter that the processor lets a load overtake an earlier store?
//!
//! x86 keeps all orders of accesses but one: a plain store may become visible to others after a later plain load of other memory (Sewell,
//! Sarkar, Owens, Nardelli, Myreen: x86-TSO, CACM 2010). A program can tell only where it has a triangular race (Owens, ECOOP 2010): a
//! thread stores, then loads other memory with no fence or locked instruction between the two, and nothing orders that load with a store of
//! another thread. Memory that is loaded so is an object here, since its accesses are not ordered. Of a load and a store that nothing
//! orders both orders are explored, so it is enough to look for loads that come right after the store. Where there is none, what was
//! explored is all that there is on x86.

use std::collections::BTreeMap;

use vsrun_model::arena::Step;
use vsrun_model::memory::ATOMIC;
use vsrun_model::op::TRY;
use vsrun_model::{dependent_after, imprint, Kind, ObjId, Op, Tid};

use crate::trace::Trace;

/// Operations that glibc performs without a locked instruction and without a call of the kernel, at least sometimes.
const NO_FENCES: [Kind; 5] = [Kind::COND_SIGNAL, Kind::COND_BROADCAST, Kind::SPIN_UNLOCK, Kind::ONCE, Kind::JOIN];

/// So far apart two accesses are taken to be in no order.
const FAR: usize = 2000;

/// A thread loads an object while a plain store of its own to other memory may not be visible yet, and right after a store of another one.
pub fn loads_overtake(trace: &Trace) -> bool {
    let mut stored: BTreeMap<Tid, Vec<(ObjId, u8)>> = BTreeMap::new();
    trace.steps.iter().enumerate().any(|(at, step)| {
        let op = &step.act.op;
        let own = stored.entry(step.act.tid).or_default();
        let [bytes, _] = op.bytes();
        match op.kind {
            Kind::MEM_WRITE | Kind::MEM_WAIT if op.has(ATOMIC) => own.clear(),
            Kind::MEM_READ | Kind::MEM_WAIT => {
                let other = own.iter().any(|&(o, b)| o != op.obj || b & bytes == 0);
                return other && races(&trace.steps[..at], step);
            }
            Kind::MEM_WRITE => own.push((op.obj, bytes)),
            kind if NO_FENCES.contains(&kind) || op.has(TRY) => {}
            _ => own.clear(),
        }
        false
    })
}

/// The load comes right after a store of another thread: nothing that happens after that store happens before the load.
fn races(earlier: &[Step], load: &Step) -> bool {
    let (op, [bytes, _]) = (&load.act.op, load.act.op.bytes());
    let meets = |o: &Op| o.writes_memory() && o.obj == op.obj && o.bytes()[0] & bytes != 0;
    let mut seen: Vec<Tid> = vec![load.act.tid];
    for (at, store) in earlier.iter().enumerate().rev() {
        if earlier.len() - at > FAR {
            return true;
        }
        if meets(&store.act.op) && !seen.contains(&store.act.tid) {
            seen.push(store.act.tid);
            if !is_ordered(&earlier[at..], load) {
                return true;
            }
        }
    }
    false
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
