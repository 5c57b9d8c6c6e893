//! Does it matter that the processor lets a load overtake an earlier store?
//!
//! x86 keeps all orders of accesses but one: a plain store may become visible to others after a later plain load of other memory (Sewell,
//! Sarkar, Owens, Nardelli, Myreen: x86-TSO, CACM 2010). A program can tell only where it has a triangular race (Owens, ECOOP 2010): a
//! thread stores, then loads other memory with no fence or locked instruction between the two, and nothing orders that load with a store of
//! another thread. Memory that is loaded so is an object here, since its accesses are not ordered. So where no thread loads an
//! object behind a plain store to another one, what was explored is all that there is on x86.

use std::collections::BTreeMap;

use vsrun_model::memory::ATOMIC;
use vsrun_model::op::TRY;
use vsrun_model::{Kind, ObjId, Tid};

use crate::trace::Trace;

/// Operations that glibc performs without a locked instruction and without a call of the kernel, at least sometimes.
const NO_FENCES: [Kind; 5] = [Kind::COND_SIGNAL, Kind::COND_BROADCAST, Kind::SPIN_UNLOCK, Kind::ONCE, Kind::JOIN];

/// A thread loads an object while a plain store of its own to another one may not be visible yet.
pub fn loads_overtake(trace: &Trace) -> bool {
    let mut stored: BTreeMap<Tid, Vec<ObjId>> = BTreeMap::new();
    trace.steps.iter().any(|step| {
        let op = &step.act.op;
        let own = stored.entry(step.act.tid).or_default();
        match op.kind {
            Kind::MEM_READ => return own.iter().any(|&o| o != op.obj),
            Kind::MEM_WRITE if op.has(ATOMIC) => own.clear(),
            Kind::MEM_WRITE => own.push(op.obj),
            kind if NO_FENCES.contains(&kind) || op.has(TRY) => {}
            _ => own.clear(),
        }
        false
    })
}
