//! Of executions by lot it is noted which operations of different threads came one after the other on an object.

use crate::arena::Arena;
use crate::base::{ObjId, Tid};
use crate::objects::row::Role;
use crate::state::{Act, Cell, Effects, Footprint, Side, Succession};

/// The order of two operations on an object matters, in some state.
fn matters(one: &Act, other: &Act, o: ObjId) -> bool {
    let (one, other) = (Footprint::of(one, Effects::NONE), Footprint::of(other, Effects::NONE));
    let on = |footprint: &Footprint| {
        let of_object = move |&&(cell, _): &&(Cell, _)| cell == Cell::Object(o);
        footprint.cells().iter().filter(of_object).map(|&(_, how)| how).next()
    };
    match (on(&one), on(&other)) {
        (Some(a), Some(b)) => !a.commutes(&b, false),
        _ => false,
    }
}

impl Arena {
    /// Thread `t` makes a transition. What gives a lock back is left out: in which order threads have had a lock is told by who acquired it.
    pub(super) fn note_orders(&mut self, t: Tid) {
        let act = self.world.act(t);
        let op = act.op;
        if matches!(op.kind.row().role, Role::Releases(_)) {
            return;
        }
        let fiber = &self.world.threads[t].fiber;
        let side = Side::new(op.kind, if op.kind.uses_memory() { fiber.place } else { 0 }, fiber.start);
        for &o in &op.operands() {
            let Some(object) = self.world.objects.get(o) else { continue };
            let key = object.key;
            let latest = self.orders.latest(o);
            let before = latest.known().iter().find(|(before, _)| matters(before, &act, o));
            let before = before.filter(|(before, _)| before.uid != act.uid).map(|(_, side)| *side);
            latest.push(act, side);
            if let Some(first) = before {
                self.orders.note(Succession { object: key, first, second: side });
            }
        }
    }
}
