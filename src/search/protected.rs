//! Memory that locks protect: the objects of the mutex locking discipline (MLD': Stoller, TR 536, Sections 2.2 and 9) among those whose
//! uses are operations.
//!
//! Of each byte the *candidate set* is kept: the locks that were held at all uses seen, pending in any state explored. While it
//! is not empty the byte is protected and its uses are invisible. Candidate sets are those of the stricter MLD-L at the end of
//! Section 8: one lock for all executions, so going back in the search does not undo what has been taken out of them. A use
//! that empties one violates the discipline, and the search begins again with the uses of that byte visible. Where the
//! discipline holds in each execution with another lock, uses are visible, which is more than MLD' needs and loses nothing.
//!
//! **pendInvisOps.** In the paper's Algorithm 2-MLD' the operations that the candidate sets allow a pending transition beside
//! its visible one bring other threads into a persistent set (formula (6)). Here none does, since none has to. Let T be closed
//! for the visible operations alone, w what threads outside of T do while T stands still, t a pending transition of a thread in
//! T, and let the last of w and t be the first to use the same protected byte. Either
//! * its lock is held by the thread of t, and then nobody gets it in w;
//! * or t acquires it, and then the thread that gets it in w performs an operation that depends on a visible one of T, so it is
//!   in T;
//! * or one of the two uses is made without the lock: a violation, which is reachable from here, and looked for.
//!
//! For memory that is no operation the order of happens-before says the same (`src/race`). `tests/search/mld.rs` has the
//! algorithm as printed, to compare with.

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::{Act, Key, Kind, ObjKind};

use super::node::State;

/// So often uses may turn out to be unprotected; then no memory is protected.
const MAX_VIOLATIONS: u32 = 64;

/// The locks under which bytes of memory objects are used.
#[derive(Debug, Default)]
pub(super) struct Protected {
    /// By byte (object and number): the candidate set.
    candidates: BTreeMap<(Key, u32), BTreeSet<Key>>,
    violations: u32,
}

/// The bytes that an operation uses of memory objects; whether it does nothing else.
fn bytes(act: &Act, state: State) -> (Vec<(Key, u32)>, bool) {
    let plain = matches!(act.op.kind, Kind::MEM_READ | Kind::MEM_WRITE) && act.op.signals == 0 && !act.op.looks();
    let masks = if plain { act.op.bytes() } else { [u8::MAX; 2] };
    let objects = [act.op.obj, act.op.obj2].map(|object| state.objects.get(object as usize).copied());
    let memory = objects
        .iter()
        .zip(masks)
        .filter_map(|(key, mask)| key.filter(|k| k.kind == ObjKind::MEMORY).map(|k| (k, mask)));
    let of = |(key, mask)| (0..8).filter(move |b| mask & 1 << b != 0).map(move |b| (key, b));
    (memory.flat_map(of).collect(), plain)
}

impl Protected {
    /// Takes note of the locks under which memory is used. True: some was taken for protected and is not.
    pub(super) fn learn(&mut self, act: &Act, state: State) -> bool {
        let (used, plain) = bytes(act, state);
        if used.is_empty() {
            return false;
        }
        let held = state.held.range((act.tid, 0)..=(act.tid, u32::MAX)).filter(|_| plain);
        let held: BTreeSet<Key> = held.filter_map(|&(_, o)| state.objects.get(o as usize).copied()).collect();
        let mut violated = false;
        for byte in used {
            let locks = self.candidates.entry(byte).or_insert_with(|| held.clone());
            let before = !locks.is_empty();
            locks.retain(|lock| held.contains(lock));
            violated |= before && locks.is_empty();
        }
        self.violations += u32::from(violated);
        violated
    }

    /// All that the operation does is to use protected bytes.
    pub(super) fn protects(&self, act: &Act, state: State) -> bool {
        let (used, plain) = bytes(act, state);
        let protected = |byte| self.candidates.get(byte).is_some_and(|locks| !locks.is_empty());
        plain && self.violations < MAX_VIOLATIONS && !used.is_empty() && used.iter().all(protected)
    }
}
