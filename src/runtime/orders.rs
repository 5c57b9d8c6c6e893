//! What operations of executions are called that come one after the other: the same in all executions of a program, also elsewhere.

use vsrun_model::object::SHARED;
use vsrun_model::orders::{Side, Succession};
use vsrun_model::{Key, ObjKind};

use super::worker::Worker;
use crate::binary::{Modules, SymbolCache};

/// Names by what is mapped where the program stands before its main.
pub struct OrderNames {
    places: Modules,
}

impl Worker {
    /// What came after what in the execution last run, each pair once; nothing unless [`Spec::orders`](super::Spec::orders).
    pub fn orders(&self) -> &[Succession] {
        match self.spec.orders {
            true => self.arena.orders.seen.as_slice(),
            false => &[],
        }
    }

    /// What is needed to name them. Where the map of the process cannot be read, what is there has names by kind alone.
    pub fn order_names(&self) -> OrderNames {
        let places = Modules::of_process(self.root_pid(), &mut SymbolCache::default());
        OrderNames { places: places.unwrap_or_default() }
    }
}

impl OrderNames {
    /// The first or the second of two: what is done to which object, by threads with which start routine, and where, as far as that is known.
    pub fn side(&self, worker: &Worker, order: &Succession, first: bool) -> String {
        let Side { start, place, kind, .. } = if first { order.first } else { order.second };
        let by = match start {
            0 => "main".to_string(),
            start => self.code(start),
        };
        let watched = worker.watched.as_ref().filter(|_| place > 0);
        let at = watched.map(|watched| format!(" at {}", watched.instruction(place - 1).by_symbol()));
        format!("{} {} by {by}{}", kind.row().name, self.object(&order.object), at.unwrap_or_default())
    }

    fn code(&self, address: u64) -> String {
        match self.places.module(address) {
            Some(_) => self.places.locate(address).to_string(),
            None => "code that came later".to_string(),
        }
    }

    /// What has been allocated goes by its kind: where that is may differ between executions.
    fn object(&self, key: &Key) -> String {
        let kind = key.kind.name();
        if !is_in_memory(key.kind) {
            return format!("{kind} {:#x}", key.addr);
        }
        if key.space & SHARED != 0 {
            return format!("{kind} in shared memory+{:#x}", key.addr);
        }
        if let Some(name) = self.places.object_name(key.addr) {
            return name;
        }
        match self.places.module(key.addr) {
            Some(_) => self.places.locate(key.addr).to_string(),
            None => format!("{kind} in allocated memory"),
        }
    }
}

/// Objects of that kind are where a program has put them; others have names of their own.
fn is_in_memory(kind: ObjKind) -> bool {
    use ObjKind as K;
    matches!(
        kind,
        K::MUTEX | K::COND | K::RWLOCK | K::SPIN | K::BARRIER | K::ONCE | K::SEM | K::FUTEX | K::STREAM | K::MEMORY
    )
}
